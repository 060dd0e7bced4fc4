# SPDX-License-Identifier: Apache-2.0
"""Offsets of a topic: the pin of a run, the checkpoint of a step, and the range of each partition to read.

Pure. Must not know brokers or Spark. An offset is the number of the next record, so a range ends before its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OFFSET_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOffsets:
    """Offsets by partition: partition 0 first.

    In a run's pin, `starts` are the offsets from which a first read begins, and `ends` those at which every read of the
    run ends. In a step's checkpoint, the published rows are those from `starts` to `ends`.
    """

    topic: str
    topic_id: str | None = None
    """The broker's id of the topic. A topic that was deleted and created again has another one."""
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    schemas: tuple[int, ...] = ()
    """Of a pin, the ids of the topic's schemas in the registry, the newest last."""

    def text(self) -> str:
        """Return the form for a pin's fingerprint."""
        entries: dict[str, object] = {"topic": self.topic, "starts": self.starts, "ends": self.ends}
        if self.topic_id is not None:
            entries["id"] = self.topic_id
        if self.schemas:
            entries["schemas"] = self.schemas
        return json.dumps(entries, separators=(",", ":"), sort_keys=True)


def read_offsets(text: str | None) -> TopicOffsets | None:
    """Parse a fingerprint; None without one, or for another form: every writer of a table can write it."""
    try:
        entries = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(entries, dict) or not isinstance(entries.get("topic"), str):
        return None
    starts, ends, schemas = (_numbers(entries.get(name)) for name in ("starts", "ends", "schemas"))
    known, topic_id = entries.get("schemas"), entries.get("id")
    if starts is None or ends is None or len(starts) != len(ends) or (known is not None and schemas is None):
        return None
    return TopicOffsets(
        topic=entries["topic"],
        topic_id=topic_id if isinstance(topic_id, str) else None,
        starts=starts,
        ends=ends,
        schemas=schemas or (),
    )


def _numbers(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    numbers = tuple(each for each in value if isinstance(each, int) and not isinstance(each, bool))
    is_valid = len(numbers) == len(value) and all(0 <= each <= OFFSET_MAX for each in numbers)
    return numbers if is_valid else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """The offsets of a topic at the brokers now: the first and the next record of each partition."""

    topic_id: str | None
    earliest: tuple[int, ...]
    latest: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLookup:
    """The pin of a run that would start now, and the topic's state."""

    pin: TopicOffsets
    state: TopicState


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRead:
    """The ranges of a read by partition, without empty ones, and the checkpoint after it."""

    ranges: Mapping[int, tuple[int, int]]
    checkpoint: TopicOffsets
    lost: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Ranges that were not read and are gone."""
    replaced: str | None = None
    """Why the topic is not the one that the checkpoint describes; None if it is."""
    missing: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Of a whole read, ranges whose rows the published table has and that are gone."""

    @property
    def count(self) -> int:
        """The number of offsets in the ranges."""
        return sum(end - start for start, end in self.ranges.values())


def plan_read(
    pin: TopicOffsets,
    now: TopicState,
    *,
    before: TopicOffsets | None,
    whole: bool,
    records_max: int | None = None,
) -> TopicRead:
    """Plan the read of a step up to the offsets of the run's pin.

    Args:
        pin: The run's pin.
        now: The topic's state at this moment, in which records may have been removed since the pin.
        before: The step's checkpoint; None if the step has none, or must not continue from it.
        whole: Whether the published rows are read again, too.
        records_max: The largest number of offsets after those of the checkpoint.
    """
    replacement_reason = None if before is None else _replacement_reason(before, pin=pin, now=now)
    continued = before if replacement_reason is None else None
    partitions = range(len(pin.ends))
    if continued is None:
        firsts = nexts = [max(pin.starts[each], now.earliest[each]) for each in partitions]
        if before is not None and before.topic == pin.topic:  # the new topic is read from its beginning
            firsts = nexts = [now.earliest[each] for each in partitions]
        lost: dict[int, tuple[int, int]] = {}
    else:
        firsts, nexts = _pad_offsets(continued.starts, len(partitions)), _pad_offsets(continued.ends, len(partitions))
        lost = {each: (nexts[each], now.earliest[each]) for each in partitions if now.earliest[each] > nexts[each]}
    begins = [max(nexts[each], now.earliest[each]) for each in partitions]
    advances = _shares([max(0, pin.ends[each] - begins[each]) for each in partitions], records_max)
    ends = [begins[each] + advances[each] for each in partitions]
    missing: dict[int, tuple[int, int]] = {}
    starts = begins
    if whole and continued is not None:
        starts = [max(firsts[each], now.earliest[each]) for each in partitions]
        missing = {
            each: (firsts[each], min(starts[each], nexts[each]))
            for each in partitions
            if starts[each] > firsts[each] and nexts[each] > firsts[each]
        }
        firsts = starts
    return TopicRead(
        ranges={each: (starts[each], ends[each]) for each in partitions if ends[each] > starts[each]},
        checkpoint=TopicOffsets(topic=pin.topic, topic_id=pin.topic_id, starts=tuple(firsts), ends=tuple(ends)),
        lost=lost,
        replaced=replacement_reason,
        missing=missing,
    )


def _replacement_reason(before: TopicOffsets, *, pin: TopicOffsets, now: TopicState) -> str | None:
    """Return why the checkpoint's topic is another one than the present topic; None if it is the same."""
    if before.topic != pin.topic:
        return f"its published rows are those of topic {before.topic}"
    if before.topic_id is not None and now.topic_id is not None and before.topic_id != now.topic_id:
        return "the topic was deleted and created again since it was read"
    if len(before.ends) > len(now.latest):
        return f"the topic has {len(now.latest)} partitions, and {len(before.ends)} were read"
    for number, end in enumerate(before.ends):
        if end > now.latest[number]:
            return (
                f"partition {number} ends at offset {now.latest[number]}, and it was read up to {end}: the topic was "
                "deleted and created again, or its brokers lost records"
            )
    return None


def _pad_offsets(offsets: Sequence[int], count: int) -> list[int]:
    """Return the offsets with those of new partitions, which begin at 0."""
    return [*offsets, *([0] * (count - len(offsets)))][:count]


def _shares(backlogs: Sequence[int], most: int | None) -> list[int]:
    """Divide a number of records among partitions by their backlogs."""
    total = sum(backlogs)
    if most is None or total <= most:
        return list(backlogs)
    shares = [each * most // total for each in backlogs]
    left = most - sum(shares)
    by_rest = sorted(range(len(backlogs)), key=lambda number: (-(backlogs[number] * most % total), number))
    for number in by_rest[:left]:
        shares[number] += 1
    return shares


def ranges_text(ranges: Mapping[int, tuple[int, int]], *, most: int = 8) -> str:
    """Return ranges for a message: `partition 0: offsets 5 to 89`."""
    texts = [f"partition {number}: offsets {start} to {end - 1}" for number, (start, end) in sorted(ranges.items())]
    more = f" and {len(texts) - most} more partitions" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more


def describe_read(read: TopicRead) -> str:
    """Return the ranges of a read, and its missing records, for a plan."""
    texts = [f"{read.count:,} records ({ranges_text(read.ranges)})" if read.ranges else "no new records"]
    if read.replaced is not None:
        texts.append(read.replaced)
    if read.lost:
        texts.append(f"gone unread: {ranges_text(read.lost)}")
    if read.missing:
        texts.append(f"gone since they were published: {ranges_text(read.missing)}")
    return "; ".join(texts)
