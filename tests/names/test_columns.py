# SPDX-License-Identifier: Apache-2.0
"""Names of columns that engines reserve."""

from __future__ import annotations

import pytest

from limnos.names.columns import CHANGE_COLUMNS, METADATA_COLUMNS, case_twins, is_reserved, reserved_column_message


@pytest.mark.parametrize("name", sorted(METADATA_COLUMNS | CHANGE_COLUMNS))
def test_reserved_names_are_known_in_any_case(name: str) -> None:
    """Engines that fold names find the metadata column for any spelling; other names with an underscore are free."""
    assert is_reserved(name)
    assert is_reserved(name.upper())
    assert not is_reserved(name[1:])


def test_message_names_rows_or_changes() -> None:
    """A metadata column makes the rows unreadable, a column of changes the changes alone."""
    assert "the table's rows" in reserved_column_message("_file")
    assert "the table's changes" in reserved_column_message("_Change_Type")
    assert not is_reserved("_metadata")


def test_twins_are_equal_or_differ_by_case() -> None:
    """Each later name is paired with the first one that it equals when case is ignored."""
    assert list(case_twins(["a", "b", "A", "a", "c"])) == [("a", "A"), ("a", "a")]
    assert list(case_twins([])) == []
