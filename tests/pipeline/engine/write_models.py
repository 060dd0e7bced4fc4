# SPDX-License-Identifier: Apache-2.0
"""A model of the write modes in plain Python: tables are lists of tuples, without regard to speed."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from limnos.pipeline.declaration import WriteDeclaration, WriteMode

Row = tuple[object, ...]
START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - as Spark gives timestamps back, in its session's zone


@dataclass(frozen=True, kw_only=True)
class WriteModeCase:
    """A mode, its source's columns, a generator of random rows, and the model of its result."""

    write: WriteDeclaration
    schema: str
    rows: Callable[[random.Random, int], list[Row]]
    after: Callable[[Sequence[Row], Sequence[Row], dt.datetime], list[Row]]
    partition: tuple[str, ...] = ()


def instant(minute: int) -> dt.datetime:
    """Return a point in time of the random runs."""
    return START + dt.timedelta(minutes=minute)


def value(chance: random.Random) -> str | None:
    """Return one of a few values, including NULL."""
    return chance.choice([None, "a", "b", "c"])


def some_rows(chance: random.Random, turn: int) -> list[Row]:
    """Return random rows (id, v, p), including duplicates."""
    return [(chance.randrange(4), value(chance), chance.randrange(3)) for _ in range(chance.randrange(5))]


def keyed_rows(chance: random.Random, turn: int) -> list[Row]:
    """Return random rows (id, v, gone), each key once."""
    keys = chance.sample(range(6), chance.randrange(6))
    return [(key, value(chance), chance.choice([None, False, False, True])) for key in keys]


def timed_rows(chance: random.Random, turn: int) -> list[Row]:
    """Return random rows (id, v, w, at, gone): several times per key, early and late, each once."""
    moments = [(key, minute) for key in range(3) for minute in range(8)]
    chosen = chance.sample(moments, chance.randrange(7))
    return [(key, value(chance), value(chance), instant(minute), chance.random() < 0.2) for key, minute in chosen]


def replaced(table: Sequence[Row], source: Sequence[Row], now: dt.datetime) -> list[Row]:
    """`replace`."""
    return list(source)


def appended(table: Sequence[Row], source: Sequence[Row], now: dt.datetime) -> list[Row]:
    """`append`."""
    return [*table, *source]


def partitioned(table: Sequence[Row], source: Sequence[Row], now: dt.datetime) -> list[Row]:
    """`partitions`, by the third column."""
    fresh = {row[2] for row in source}
    return [*(row for row in table if row[2] not in fresh), *source]


def merged(table: Sequence[Row], source: Sequence[Row], now: dt.datetime) -> list[Row]:
    """`merge` by the first column. Rows whose last column is true are deleted."""
    rows_by_key = {row[0]: row for row in table}
    for row in source:
        if row[-1]:
            rows_by_key.pop(row[0], None)
        else:
            rows_by_key[row[0]] = row
    return list(rows_by_key.values())


def merged_exactly(table: Sequence[Row], source: Sequence[Row], now: dt.datetime) -> list[Row]:
    """`merge` with `delete_missing`."""
    keys = {row[0] for row in source}
    return merged([row for row in table if row[0] in keys], source, now)


def track_history(table: Sequence[Row], source: Sequence[Row], now: dt.datetime) -> list[Row]:
    """`history` of (id, v, w, at, gone) by `at`, tracking v. Result rows end in start, end, is current.

    A row of the table has its first event's time as start, and its newest event's time in `at`.
    """
    keys = {row[0] for row in source}
    several = [row for row in table if row[0] in keys and row[3] > row[5] and (row[6] is None or row[3] < row[6])]  # type: ignore[operator]
    newest = {(row[0], row[3]): row[:5] for row in several}
    return _timelines(table, {**newest, **{(row[0], row[3]): row for row in source}}, width=5, tracked=1)  # type: ignore[dict-item]


def kept_from_now(table: Sequence[Row], source: Sequence[Row], now: dt.datetime) -> list[Row]:
    """`history` of (id, v, gone) from the run's time, tracking all but the key, with `delete_missing`."""
    events: dict[tuple[object, dt.datetime], Row] = {}
    for row in source:
        known = [moment for old in table if old[0] == row[0] for moment in old[3:5] if moment is not None]
        events[row[0], max([now, *known])] = row
    for old in table:
        if old[5] and old[0] not in {row[0] for row in source}:
            events[old[0], max(now, old[3])] = (*old[:2], True)
    return _timelines(table, events, width=3, tracked=None)


def _timelines(
    table: Sequence[Row], events: dict[tuple[object, dt.datetime], Row], *, width: int, tracked: int | None
) -> list[Row]:
    touched = {key for key, _ in events}
    lines: dict[object, dict[dt.datetime, Row | None]] = {key: {} for key in touched}
    for row in table:
        if row[0] in touched and row[width + 1] is not None:
            lines[row[0]].setdefault(row[width + 1], None)
    for row in table:
        if row[0] in touched:
            lines[row[0]][row[width]] = row[:width]
    for (key, moment), row in events.items():
        lines[key][moment] = None if row[-1] else row
    result = [row for row in table if row[0] not in touched]
    for line in lines.values():
        result += _intervals(line, tracked=tracked)
    return result


def _intervals(line: dict[dt.datetime, Row | None], *, tracked: int | None) -> list[Row]:
    groups: list[tuple[dt.datetime, Row | None]] = []
    for moment in sorted(line):
        state = line[moment]
        before = groups[-1][1] if groups else None
        same = groups and (
            (state is None and before is None)
            or (state is not None and before is not None and _followed(state, tracked) == _followed(before, tracked))
        )
        if same:
            groups[-1] = (groups[-1][0], state)
        else:
            groups.append((moment, state))
    ends = [moment for moment, _ in groups[1:]] + [None]
    return [
        (*state, start, end, end is None) for (start, state), end in zip(groups, ends, strict=True) if state is not None
    ]


def _followed(row: Row, tracked: int | None) -> object:
    return row[1:] if tracked is None else row[tracked]


CASES = {
    "replace": WriteModeCase(
        write=WriteDeclaration(), schema="id int, v string, p int", rows=some_rows, after=replaced
    ),
    "append": WriteModeCase(
        write=WriteDeclaration(mode=WriteMode.APPEND), schema="id int, v string, p int", rows=some_rows, after=appended
    ),
    "partitions": WriteModeCase(
        write=WriteDeclaration(mode=WriteMode.PARTITIONS),
        schema="id int, v string, p int",
        rows=some_rows,
        after=partitioned,
        partition=("p",),
    ),
    "merge": WriteModeCase(
        write=WriteDeclaration(mode=WriteMode.MERGE, keys=("id",), delete_when="gone"),
        schema="id int, v string, gone boolean",
        rows=keyed_rows,
        after=merged,
    ),
    "merge-exactly": WriteModeCase(
        write=WriteDeclaration(mode=WriteMode.MERGE, keys=("ID",), delete_when="gone", delete_missing=True),
        schema="id int, v string, gone boolean",
        rows=keyed_rows,
        after=merged_exactly,
    ),
    "history": WriteModeCase(
        write=WriteDeclaration(mode=WriteMode.HISTORY, keys=("id",), as_of="at", tracked=("v",), delete_when="gone"),
        schema="id int, v string, w string, at timestamp, gone boolean",
        rows=timed_rows,
        after=track_history,
    ),
    "history-now": WriteModeCase(
        write=WriteDeclaration(
            mode=WriteMode.HISTORY, keys=("id",), delete_when="gone", delete_missing=True, valid_from="since"
        ),
        schema="id int, v string, gone boolean",
        rows=keyed_rows,
        after=kept_from_now,
    ),
}
