# SPDX-License-Identifier: Apache-2.0
"""The table of kinds: its rows, derived sets, and the error for a missing row."""

from __future__ import annotations

import pytest

from limnos.model import kind_table
from limnos.model.kind_table import KIND_TABLE, ONLY_KINDS, KindRow, kinds_with, may_contain, name_space_of, no, row_of
from limnos.model.kinds import GENERIC_PROVIDER, ICEBERG_PROVIDER, SHARED_SPACE, Kind


def test_an_exclusion_is_false_and_has_a_reason() -> None:
    """A row's `no` is false when sets are derived, and contains the reason."""
    assert not no("it has no files")
    assert no("it has no files").reason == "it has no files"
    assert all(not value for value in KindRow())


def test_kinds_with_an_aspect_are_listed_in_number_order() -> None:
    """The kinds with an aspect are listed in the order of their numbers, without excluded kinds."""
    assert kinds_with(lambda row: row.attached_as) == (Kind.TAG, Kind.POLICY)
    assert kinds_with(lambda row: row.locations) == (Kind.CATALOG, Kind.TABLE, Kind.VIEW, Kind.FILESET)


def test_a_catalog_without_tables_holds_one_kind() -> None:
    """Each provider that holds no tables has one kind of object."""
    assert ONLY_KINDS == {"fileset": Kind.FILESET, "messaging": Kind.TOPIC, "model": Kind.MODEL}


def test_catalogs_contain_the_kinds_of_their_provider() -> None:
    """A catalog contains the kinds whose rows name its provider. A row can name one provider, several, or all."""
    providers = (ICEBERG_PROVIDER, GENERIC_PROVIDER, "model")
    holding = {
        kind: [provider for provider in providers if may_contain(kind, provider)]
        for kind in (Kind.DATATYPE, Kind.TABLE, Kind.FUNCTION, Kind.TAG)
    }

    assert holding[Kind.DATATYPE] == [ICEBERG_PROVIDER]
    assert holding[Kind.TABLE] == [ICEBERG_PROVIDER, GENERIC_PROVIDER]
    assert holding[Kind.FUNCTION] == list(providers)
    assert holding[Kind.TAG] == []


def test_kinds_share_name_spaces_as_their_rows_state() -> None:
    """In an Iceberg catalog views share the name space of tables. In a Lance catalog all kinds share one."""
    assert name_space_of(Kind.VIEW, ICEBERG_PROVIDER) == name_space_of(Kind.EXTERNAL_DATASET) == "table"
    assert name_space_of(Kind.FUNCTION, ICEBERG_PROVIDER) == "function"
    assert {name_space_of(kind, GENERIC_PROVIDER) for kind in (Kind.NAMESPACE, Kind.TABLE)} == {SHARED_SPACE}
    assert name_space_of(Kind.TAG, GENERIC_PROVIDER) == "tag"


def test_error_for_a_missing_row_names_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking up the row of a kind without one raises an error with the kind's name. Derived sets omit the kind."""
    rows = {kind: row for kind, row in KIND_TABLE.items() if kind is not Kind.TAG}
    monkeypatch.setattr(kind_table, "KIND_TABLE", rows)

    assert kinds_with(lambda row: row.attached_as) == (Kind.POLICY,)
    with pytest.raises(LookupError, match="kind tag has no row"):
        row_of(Kind.TAG)
