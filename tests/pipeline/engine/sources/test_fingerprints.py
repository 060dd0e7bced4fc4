# SPDX-License-Identifier: Apache-2.0
"""Detection of new files from a small fingerprint; it is never wrong, and if it is impossible all files count as
new.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.pipeline.engine.sources.fingerprints import (
    EACH_MAX,
    SourceFileState,
    are_missing,
    is_same,
    new_since,
    read,
    take_fingerprint,
)

MANY = [SourceFileState(f"f{number}", 1, number) for number in range(EACH_MAX + 1)]


def files(*names: str, at: int = 1) -> list[SourceFileState]:
    """Files of one byte."""
    return [SourceFileState(name, 1, at) for name in names]


@pytest.mark.parametrize("listed", [files("a", "b"), MANY, []])
def test_fingerprint_round_trip(listed: list[SourceFileState]) -> None:
    """A written fingerprint is read back, including the schema, for any order of the listed files."""
    fingerprint = take_fingerprint(reversed(listed), schema='{"fields": [], "type": "struct"}')

    assert read(fingerprint.text()) == fingerprint
    assert take_fingerprint(listed, schema=fingerprint.schema).text() == fingerprint.text()


@pytest.mark.parametrize(
    "now,content,same",
    [
        (files("a", "b"), "1", True),
        (files("a", "b"), None, True),  # their content could not be read
        (files("a", "b"), "2", False),
        (files("a"), "1", False),
        (files("a", "b", "c"), "1", False),
        (files("a", "b", at=2), "1", False),
    ],
)
def test_files_are_compared_by_name_size_time_and_content(
    now: list[SourceFileState], content: str | None, same: bool
) -> None:
    """A difference in name, size or time means that a source has changed; content counts only if both fingerprints have
    it.
    """
    before = read(take_fingerprint(files("a", "b"), content="1").text())
    assert before is not None

    assert is_same(before, take_fingerprint(now, content=content)) is same


@pytest.mark.parametrize("text", [None, "", "x", "[]", "{}", '{"files": "x"}', "1", '{"checkpoint": "a"}'])
def test_malformed_fingerprint_is_ignored(text: str | None) -> None:
    """Text that is not a fingerprint is ignored."""
    assert read(text) is None


def test_late_files_with_older_times_are_new() -> None:
    """Files that arrive late with older times are new; deleted files are ignored."""
    before = take_fingerprint(files("a", "b", at=10))

    new = new_since([*files("b", at=10), *files("c", at=5)], before)

    assert new.files == tuple(files("c", at=5))
    assert new.whole_because is None


@pytest.mark.parametrize("changed", [SourceFileState("b", 2, 1), SourceFileState("b", 1, 2)])
def test_changed_file_causes_full_read(changed: SourceFileState) -> None:
    """A file whose size or time has changed causes a full read, and the reason names it."""
    new = new_since([*files("a"), changed], take_fingerprint(files("a", "b")))

    assert len(new.files) == 2
    assert new.whole_because == "b was changed since it was read"


def test_files_beyond_list_limit_are_compared_by_time() -> None:
    """Beyond the number of files that a fingerprint lists, files with later times are new if the others are
    unchanged.
    """
    before = take_fingerprint(MANY)
    later = SourceFileState("new", 1, EACH_MAX + 5)

    assert before.each is None
    assert new_since([*MANY, later], before).files == (later,)
    assert new_since([*MANY, SourceFileState("late", 1, 3)], before).whole_because is not None
    assert new_since(MANY[1:], before).whole_because is not None
    assert new_since(MANY, before).files == ()


def test_first_run_reads_all_files() -> None:
    """The first run reads all files."""
    assert new_since(files("a"), None).whole_because == "nothing was read before"


def test_fingerprint_is_small() -> None:
    """A fingerprint is stored in a snapshot's summary, so it has at most some kilobytes."""
    assert len(take_fingerprint(MANY[:EACH_MAX]).text()) < 6000
    assert len(take_fingerprint(MANY).text()) < 200
    assert set(json.loads(take_fingerprint(MANY).text())) == {"files", "newest_ms", "digest"}


@given(
    st.lists(
        st.builds(SourceFileState, st.sampled_from("abcdef"), st.integers(0, 3), st.integers(0, 3)),
        unique_by=lambda f: f.path,
    ),
    st.lists(
        st.builds(SourceFileState, st.sampled_from("abcdef"), st.integers(0, 3), st.integers(0, 3)),
        unique_by=lambda f: f.path,
    ),
)
def test_increment_has_exactly_the_new_files_or_all(
    first: list[SourceFileState], second: list[SourceFileState]
) -> None:
    """After any additions, deletions and changes an increment has exactly the new files, or all files are read."""
    new = new_since(second, take_fingerprint(first))

    if new.whole_because is None:
        assert set(new.files) == set(second) - set(first)
        assert not {file.path for file in new.files} & {file.path for file in first}
    else:
        assert set(new.files) == set(second)


@pytest.mark.parametrize("count", [2, EACH_MAX + 1])
def test_removed_files_are_remembered(count: int) -> None:
    """A removed file stays in the later fingerprints, so that a whole read knows that it lacks rows; a file that comes
    back unchanged is not new.
    """
    listed = files(*(f"f{number}" for number in range(count)))
    first = take_fingerprint(listed)
    second = take_fingerprint([*listed[1:], *files("new", at=2)], before=first)
    third = read(take_fingerprint([*listed[1:], *files("new", "newer", at=3)], before=second).text())

    assert third is not None
    assert (are_missing(listed, None), are_missing(listed, first), are_missing(listed[1:], first)) == (
        False,
        False,
        True,
    )
    assert are_missing([*listed[1:], *files("new", "newer", at=3)], third)
    if count <= EACH_MAX:
        assert not are_missing([*listed, *files("new", "newer", at=3)], third)
        assert new_since([*listed, *files("new", "newer", at=3)], third).files == ()


def test_changed_file_is_new_if_it_may_be_read_again() -> None:
    """A changed file causes a whole read, except if its rows replace their older ones."""
    before = take_fingerprint(files("a", "b"))
    now = [*files("a"), *files("b", at=2)]

    assert new_since(now, before).whole_because == "b was changed since it was read"
    assert new_since(now, before, rereads=True).files == tuple(files("b", at=2))
