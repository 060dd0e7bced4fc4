# SPDX-License-Identifier: Apache-2.0
"""Offsets of topics: planned ranges, checkpoints that continue each other, and damaged fingerprints."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.pipeline.topic_offsets import (
    TopicOffsets,
    TopicState,
    plan_read,
    ranges_text,
    read_offsets,
)


def _pin(*ends: int, starts: tuple[int, ...] | None = None) -> TopicOffsets:
    return TopicOffsets(topic="t", topic_id="a", starts=starts or (0,) * len(ends), ends=ends)


def _state(*latest: int, earliest: tuple[int, ...] | None = None) -> TopicState:
    return TopicState(topic_id="a", earliest=earliest or (0,) * len(latest), latest=latest)


@given(
    growth=st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=6),
    most=st.none() | st.integers(1, 40),
)
def test_runs_read_each_offset_once(growth: list[list[int]], most: int | None) -> None:
    """Runs that follow each other read adjoining ranges, at most `records` of them, from the first to the last."""
    before, latest, seen = None, [0, 0, 0], [0, 0, 0]
    for added in growth:
        latest = [one + more for one, more in zip(latest, added, strict=True)]
        read = plan_read(_pin(*latest), _state(*latest), before=before, whole=False, records_max=most)
        for partition, (start, end) in read.ranges.items():
            assert start == seen[partition]
            seen[partition] = end
        assert read.count == min(most or read.count, sum(latest) - sum(before.ends if before else (0,)))
        before = read_offsets(read.checkpoint.text())
        assert before == read.checkpoint
    rest = plan_read(_pin(*latest), _state(*latest), before=before, whole=False)

    assert [rest.ranges.get(each, (0, seen[each]))[1] for each in range(3)] == latest


def test_whole_read_has_published_rows_and_new_ones() -> None:
    """A whole read begins at the table's first offset, and says which of its offsets are gone."""
    before = TopicOffsets(topic="t", topic_id="a", starts=(5, 0), ends=(9, 4))
    complete = plan_read(_pin(12, 4), _state(12, 4, earliest=(2, 0)), before=before, whole=True)
    removed = plan_read(_pin(12, 4), _state(12, 4, earliest=(7, 0)), before=before, whole=True)

    assert (complete.ranges, complete.missing) == ({0: (5, 12), 1: (0, 4)}, {})
    assert (removed.ranges[0], removed.missing) == ((7, 12), {0: (5, 7)})
    assert removed.checkpoint.starts == (7, 0)


def test_pin_of_smaller_ends_reads_nothing() -> None:
    """A checkpoint beyond the run's pin, as a later run leaves it, stays."""
    before = TopicOffsets(topic="t", topic_id="a", starts=(0,), ends=(9,))
    read = plan_read(_pin(5), _state(9), before=before, whole=False)

    assert (read.ranges, read.checkpoint.ends) == ({}, (9,))


def test_other_topics_are_recognized() -> None:
    """Another id, name or number of partitions, or an end below the checkpoint, is another topic."""
    before = TopicOffsets(topic="t", topic_id="a", starts=(0,), ends=(9,))
    reasons = [
        plan_read(_pin(9), replace(_state(9), topic_id="b"), before=before, whole=False).replaced,
        plan_read(_pin(9), _state(9), before=replace(before, topic="u"), whole=False).replaced,
        plan_read(_pin(9), _state(9), before=replace(before, starts=(0, 0), ends=(1, 1)), whole=False).replaced,
        plan_read(_pin(8), _state(8), before=before, whole=False).replaced,
    ]

    assert [bool(each) for each in reasons] == [True] * 4
    assert plan_read(_pin(9), _state(9), before=before, whole=False).replaced is None


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        '{"topic":1,"starts":[],"ends":[]}',
        '{"topic":"t","starts":[0],"ends":[1,2]}',
        '{"topic":"t","starts":[-1],"ends":[1]}',
        '{"topic":"t","starts":[true],"ends":[1]}',
        '{"topic":"t","starts":[0],"ends":[1],"schemas":["x"]}',
    ],
)
def test_damaged_fingerprint_is_no_checkpoint(text: str | None) -> None:
    """Values that other writers may have put into a table's summary are not used."""
    assert read_offsets(text) is None


def test_ranges_are_listed_up_to_a_number() -> None:
    """A message has the first ranges and the number of the others."""
    ranges = {number: (number, number + 2) for number in range(10)}

    assert ranges_text({0: (5, 90)}) == "partition 0: offsets 5 to 89"
    assert ranges_text(ranges, most=1) == "partition 0: offsets 0 to 1 and 9 more partitions"
