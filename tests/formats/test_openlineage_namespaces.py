# SPDX-License-Identifier: Apache-2.0
"""Paths of datasets from the namespaces that a metalake's properties map to catalogs."""

from __future__ import annotations

import pytest

from limnos.formats.openlineage_namespaces import PREFIX, check_namespaces, mapped_path
from limnos.model.errors import BadRequest

PROPERTIES = {
    "owner": "lake=other",
    f"{PREFIX}duckdb://*": "lake=main",
    f"{PREFIX}duckdb://:memory:": "memory=scratch",
    f"{PREFIX}trino://*": "*=main",
    f"{PREFIX}trino://two": "a=first,b=second",
    f"{PREFIX}spark://old": "main",
}


@pytest.mark.parametrize(
    "namespace, name, path",
    [
        ("duckdb:///x.db", "lake.shop.orders", ("main", "shop", "orders")),
        ("duckdb:///x.db", "other.shop.orders", None),
        ("duckdb://:memory:", "memory.shop.orders", ("scratch", "shop", "orders")),
        ("duckdb://:memory:", "lake.a.b.orders", ("main", "a", "b", "orders")),
        ("trino://one", "a.b.c", ("main", "a", "b", "c")),
        ("trino://two", "a.b.c", ("first", "b", "c")),
        ("trino://two", "b.b.c", ("second", "b", "c")),
        ("spark://old", "a.b", None),
        ("owner", "lake.a.b", None),
    ],
)
def test_longest_property_with_the_first_name_counts(namespace: str, name: str, path: tuple[str, ...] | None) -> None:
    """The longest property that fits the namespace and has the first name decides; one that cannot be read is none."""
    assert mapped_path(PROPERTIES, namespace, name=name) == path


def test_unreadable_property_is_refused() -> None:
    """Properties of other names may have any value."""
    check_namespaces({"owner": "main", f"{PREFIX}a": "b=c"})

    with pytest.raises(BadRequest, match=r"lineage.namespace.spark://old must be a list"):
        check_namespaces(PROPERTIES)
