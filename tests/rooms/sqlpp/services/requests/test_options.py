# SPDX-License-Identifier: Apache-2.0
"""Options of SET: refused options, and the effect of options on `~=`."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import SqlppError, parse, tree
from limnos.rooms.sqlpp.services.requests.options import check_memory, check_option, similarity_of


def _check(name: str, value: str) -> None:
    (parsed,) = parse(f'SET `{name}` "{value}"')
    assert isinstance(parsed.statement, tree.SetOption)
    check_option(parsed.statement)
    check_memory({name: value}, at=parsed.statement.at)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("compiler.joinmemory", "4LS", "The given string: 4LS is not a byte unit string (e.g., 320KiB or 1024)."),
        (
            "compiler.groupmemory",
            "-10GB",
            (
                'Invalid `compiler.groupmemory` "-10737418240" for frame size=32768. value should be >= 4 * frame size:'
                ' `compiler.groupmemory` "131072" in bytes'
            ),
        ),
        (
            "compiler.sortmemory",
            "98303",
            (
                'Invalid `compiler.sortmemory` "98303" for frame size=32768. value should be >= 3 * frame size: '
                '`compiler.sortmemory` "98304" in bytes'
            ),
        ),
        ("simfunction", "soundex", "Unknown similarity function soundex: there are jaccard, edit-distance"),
        (
            "compiler.ordered.fields",
            "perhaps",
            "The option compiler.ordered.fields takes true or false, and has perhaps",
        ),
        ("output-record", "x", "Query parameter output-record is not supported"),
    ],
)
def test_unknown_options_and_invalid_sizes_are_refused(name: str, value: str, message: str) -> None:
    """Unknown options are refused by name, and invalid sizes with AsterixDB's messages."""
    with pytest.raises(SqlppError) as refused:
        _check(name, value)

    assert message in refused.value.text


@pytest.mark.parametrize(
    "name, value",
    [
        ("compiler.sortmemory", "98304"),
        ("compiler.joinmemory", "32 MB"),
        ("compiler.groupmemory", "0.5GiB"),
        ("simfunction", "edit-distance"),
        ("compiler.ordered.fields", "FALSE"),
        ("import-private-functions", "true"),
    ],
)
def test_valid_memory_sizes_are_accepted(name: str, value: str) -> None:
    """Memory sizes that AsterixDB accepts are accepted."""
    _check(name, value)


def test_invalid_sort_memory_is_reported_first() -> None:
    """Some options cannot be set by SET. Of several invalid memory sizes, that of the sort is reported first."""
    (parsed,) = parse('SET `compiler.groupmemory` "-1"')
    assert isinstance(parsed.statement, tree.SetOption)
    check_option(parsed.statement)

    with pytest.raises(SqlppError, match=r"compiler\.sortmemory"):
        check_memory({"compiler.groupmemory": "-1", "compiler.sortmemory": "-1"}, at=parsed.statement.at)


def test_similarity_operator_uses_jaccard_by_default() -> None:
    """`~=` means Jaccard similarity by default, and edit distance if the options say so."""
    assert similarity_of({}) == ("similarity_jaccard", ">=", 0.5)
    assert similarity_of({"simthreshold": "0.8f"}) == ("similarity_jaccard", ">=", 0.8)
    assert similarity_of({"simfunction": "edit-distance", "simthreshold": "3"}) == ("edit_distance", "<=", 3.0)
    with pytest.raises(SqlppError, match="simthreshold takes a number"):
        similarity_of({"simthreshold": "near"})
