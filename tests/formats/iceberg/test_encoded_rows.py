# SPDX-License-Identifier: Apache-2.0
"""Growing lists and their JSON, which must be what encoding the whole document gives."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.encoded_rows import GROWING, EncodedRows, put_encoded_lists
from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import add, appended, commit

FILES = st.text(max_size=8) | st.sampled_from(['},{"a":[', '\\"', "ä/é", "]"])
ROWS = st.builds(lambda time_ms, file: {"timestamp-ms": time_ms, "metadata-file": file}, st.integers(0, 2**53), FILES)
STEPS = st.lists(st.tuples(st.lists(ROWS, max_size=3), st.integers(0, 4), st.booleans()), max_size=12)


@given(st.lists(ROWS, min_size=6, max_size=12), STEPS)
def test_json_of_growing_lists_equals_that_of_plain_lists(
    rows: list[Json], steps: list[tuple[list[Json], int, bool]]
) -> None:
    """After any chain of rows added at the end, removed at the beginning or in the middle, each document is encoded as
    one of plain lists, and the earlier ones are unchanged.
    """
    before: Json = {"location": "a", "snapshots": list(rows), "refs": {}}
    for added, dropped, in_the_middle in steps:
        rows = [*rows[dropped:], *added] if not in_the_middle else [*rows[:2], *rows[2 + dropped :], *added]
        document: Json = {**before, "snapshots": list(rows)}
        former_bytes = iceberg_metadata.encode(before)
        put_encoded_lists(document, before)

        assert document["snapshots"] == rows
        assert iceberg_metadata.encode(document) == msgspec.json.encode({**document, "snapshots": rows})
        assert iceberg_metadata.encode(before) == former_bytes
        before = document


@pytest.mark.parametrize("key", GROWING)
def test_rows_of_the_former_document_are_not_encoded_again(key: str) -> None:
    """A list that has grown by one row, also one that lost its oldest row, contains the JSON of the former one."""
    rows: list[Json] = [{"a": number} for number in range(9)]
    marked = EncodedRows(rows, b'[{"a":0},MARK]')
    longer: Json = {key: [*rows, {"a": 9}]}
    moved: Json = {key: [*rows[1:], {"a": 9}]}
    for each in (longer, moved):
        put_encoded_lists(each, {key: marked})

    assert longer[key].encoded == b'[{"a":0},MARK,{"a":9}]'  # type: ignore[attr-defined]
    assert moved[key].encoded == b'[MARK,{"a":9}]'  # type: ignore[attr-defined]


def test_snapshots_have_their_ids_and_those_of_their_parents() -> None:
    """Documents that grow out of one another share the ids, which have no bound but twice the number of snapshots:
    commits that fail leave theirs, and removed snapshots, too.
    """
    document = appended(12)
    known = document["snapshots"].known  # type: ignore[attr-defined]
    assert known.ids == {number * 100 for number in range(1, 13)}
    assert known.parents == {None, *(number * 100 for number in range(1, 12))}

    for number in range(13, 100):
        other = commit(document, add(number, parent=12))
        again = commit(document, add(number, parent=12))

        for each in (other, again):
            rows: list[Json] = each["snapshots"]  # type: ignore[assignment]
            assert {row["snapshot-id"] for row in rows} <= each["snapshots"].known.ids  # type: ignore[attr-defined]
            assert len(each["snapshots"].known.ids) <= 2 * len(rows) + 1  # type: ignore[attr-defined]
        with pytest.raises(BadRequest, match="already exists"):
            commit(other, add(number, parent=12))
    removed = commit(document, {"action": "remove-snapshots", "snapshot-ids": [100]})
    assert commit(removed, add(1, at=document["last-updated-ms"], **{"sequence-number": 13}))


def test_document_keeps_ids_that_are_not_hashable() -> None:
    """A damaged row of an older release."""
    rows: list[Json] = [{"snapshot-id": [1], "parent-snapshot-id": {}} for _ in range(9)]
    document: Json = {"snapshots": rows}

    put_encoded_lists(document, {})

    assert document["snapshots"].known.ids == {"[1]"}  # type: ignore[attr-defined]


def test_commits_encode_added_rows_alone() -> None:
    """Snapshots, their log and the metadata log of a table with many commits are lists with their JSON, which equals
    that of the decoded document.
    """
    document = appended(12)

    assert [type(document[key]) for key in GROWING] == [EncodedRows] * 3
    assert iceberg_metadata.encode(document) == msgspec.json.encode(document)
