# SPDX-License-Identifier: Apache-2.0
"""Namespaces of OpenLineage producers: which catalogs the names in them belong to, by a metalake's properties.

Must not know stores or callers. The property `lineage.namespace.trino://trino:8080` with the value `lake=main` says:
the name `lake.shop.totals` in that namespace is `shop.totals` of the catalog `main`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from limnos.model.errors import BadRequest

PREFIX: Final = "lineage.namespace."
"""The prefix of the properties; the namespace follows, whose last `*` stands for any text."""
EVERY: Final = "*"
"""The first name that stands for all: names without a catalog are below the catalog."""


def check_namespaces(properties: Mapping[str, str]) -> None:
    """Raise BadRequest for a property of this module that cannot be read."""
    for key, value in properties.items():
        if key.startswith(PREFIX):
            _catalogs_of(key, value)


def mapped_path(properties: Mapping[str, str], namespace: str, *, name: str) -> tuple[str, ...] | None:
    """Return the path of a dataset from its catalog down; None if no property says it.

    The longest property that fits the namespace counts.
    """
    first, *rest = name.split(".")
    for catalogs in _fitting(properties, namespace):
        if first in catalogs:
            return (catalogs[first], *rest)
        if EVERY in catalogs:
            return (catalogs[EVERY], first, *rest)
    return None


def _fitting(properties: Mapping[str, str], namespace: str) -> Iterator[dict[str, str]]:
    for key in sorted(properties, key=len, reverse=True):
        pattern = key.removeprefix(PREFIX)
        is_prefix = pattern.endswith(EVERY)
        if key.startswith(PREFIX) and (namespace.startswith(pattern[:-1]) if is_prefix else namespace == pattern):
            try:
                yield _catalogs_of(key, properties[key])
            except BadRequest:  # it was stored before it was checked
                continue


def _catalogs_of(key: str, value: str) -> dict[str, str]:
    """Parse `NAME=CATALOG, …`. Raises BadRequest."""
    catalogs: dict[str, str] = {}
    for entry in value.split(","):
        first, equals, catalog = (part.strip() for part in entry.partition("="))
        if not equals or not first or not catalog:
            raise BadRequest(
                f"Property {key} must be a list such as lake=main: first names in that namespace, each with its catalog"
            )
        catalogs[first] = catalog
    return catalogs
