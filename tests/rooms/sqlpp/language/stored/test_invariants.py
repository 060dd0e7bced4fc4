# SPDX-License-Identifier: Apache-2.0
"""The invariants of a dataset's table, as values.

`tests/rooms/sqlpp/http/test_dataset_commits.py` tests them over HTTP.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.stored import (
    StorageForm,
    broken_property,
    broken_schema,
    properties_of,
    schema_of,
    storage_form_of_record,
)

FORM: StorageForm = storage_form_of_record(type_of("{ id: bigint, tags: [string]?, `a.b`: string? }"), (("id",),))


def test_nested_item_type_change_violates_the_invariant() -> None:
    """A changed item type of an array violates the invariant; a changed description does not."""
    before = schema_of(FORM)
    after = schema_of(storage_form_of_record(type_of("{ id: bigint, tags: [bigint]?, `a.b`: string? }"), (("id",),)))

    assert broken_schema(FORM, before=before, after=after) == "its column tags"
    assert broken_schema(FORM, before=before, after=before | {"schema-id": 7}) is None


def test_missing_column_allows_changes_but_not_reuse_of_its_name() -> None:
    """A column that is missing already does not block other changes, but its name cannot be given to another column."""
    whole = schema_of(FORM)
    short = whole | {"fields": [each for each in whole["fields"] if each["name"] != "tags"]}  # type: ignore[union-attr, index, call-overload]

    assert broken_schema(FORM, before=short, after=short) is None
    assert broken_schema(FORM, before=short, after=whole) == "its column tags"


def test_other_writers_cannot_set_properties_of_the_keys() -> None:
    """Other writers may set properties, also for file formats, but not those on which keys depend."""
    before = properties_of(FORM)

    assert broken_property(before, before | {"mine": "1", "write.merge.mode": "copy-on-write"}) is None
    assert broken_property(before, before | {"sqlpp.outside-writers": "allowed"}) is None
    assert broken_property(before, before | {"sqlpp.more": "1"}) == "sqlpp.more"
    assert broken_property(before, {}) == "sqlpp.type"
