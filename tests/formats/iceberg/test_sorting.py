# SPDX-License-Identifier: Apache-2.0
"""Sort orders."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg import sorting
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.schema import columns
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import field, order, schema, sort

BAD: dict[str, tuple[object, str]] = {
    "no object": ([], "must be an object"),
    "no fields": ({}, "'fields' is required"),
    "no source": (order({"transform": "day", "direction": "asc", "null-order": "nulls-first"}), "'source-id'"),
    "no direction": (order({"transform": "day", "source-id": 1, "null-order": "nulls-first"}), "'direction'"),
    "unknown direction": (order(sort(1, direction="up")), "direction must be asc or desc, not 'up'"),
    "unknown null order": (order(sort(1, nulls="first")), "null-order must be nulls-first or nulls-last"),
    "unknown transform": (order(sort(1, "zorder")), "unknown transform 'zorder'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_order_is_refused(name: str) -> None:
    """A sort order that breaks a rule is refused with a message that names the field."""
    bad_order, text = BAD[name]

    with pytest.raises(BadRequest) as caught:
        sorting.order_fields(bad_order)

    assert text in caught.value.message


@pytest.mark.parametrize("one", [sort(99), sort(99, "void"), sort(2, "hour"), sort(4, "void")])
def test_sort_field_without_valid_source_column_is_refused(one: Json) -> None:
    """A sort field needs a source column of a type that its transform accepts. Readers check that of `void`, too."""
    fields = sorting.order_fields(order(one))

    with pytest.raises(BadRequest) as caught:
        sorting.check_binding(
            fields, columns(schema(field(1, "id"), field(2, "name", "string"), field(4, "v", "variant")))
        )

    assert "Invalid sort order, field 0" in caught.value.message


def test_direction_is_stored_in_lower_case() -> None:
    """Directions and null orders are stored in a canonical spelling."""
    fields = sorting.order_fields(order(sort(1, direction="ASC", nulls="NULLS-LAST")))

    assert sorting.content_of(fields) == sorting.content_of([sort(1, nulls="nulls-last")])
    assert sorting.content_of(fields) != sorting.content_of([sort(1)])
