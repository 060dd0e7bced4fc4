# SPDX-License-Identifier: Apache-2.0
"""Random stories of keys, and a plain computation of what each write mode makes of them.

A turn is a run. Its input is a new file of changes (and sometimes an older file with other rows), a file of events, and
a whole export. The computation knows all rows of all turns, and neither Spark nor increments.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import dataclass, field

Row = tuple[object, ...]
"""A row of a file: id, v, w, at."""
START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - as Spark gives timestamps back, in its session's zone
TURNS = 5
CHANGES, EVENTS, EXPORT = "d", "e", "s"


def moment(minute: int) -> dt.datetime:
    """Return a time of the files."""
    return START + dt.timedelta(minutes=minute)


@dataclass
class Turn:
    """The input of one run: rows by file of the changes and of the events, and the export."""

    changes: dict[int, list[Row]] = field(default_factory=dict)
    events: dict[int, list[Row]] = field(default_factory=dict)
    export: list[Row] = field(default_factory=list)


class Stories:
    """The random stories of `keys` keys. `counts` has how often each kind of event happened."""

    def __init__(self, keys: int, *, seed: str) -> None:
        self.chance = random.Random(seed)
        self.keys = keys
        self.counts: Counter[str] = Counter()
        self.turns: list[Turn] = []
        self.last: dict[object, Row] = {}
        self.present: set[object] = set()
        for number in range(TURNS):
            self.turns.append(self._turn(number))

    def _turn(self, number: int) -> Turn:
        turn = Turn(changes={number: []}, events={number: []})
        for key in range(self.keys):
            turn.changes[number] += self._changes(key, number)
            turn.events[number] += self._events(key, number)
            turn.export += self._export(key, number)
        self.present = {row[0] for row in turn.export}
        self.last |= {row[0]: row for row in turn.export}
        if number == 2:  # the first files again, with other values and one more key
            turn.changes[0] = self._again(self.turns[0].changes[0])
            turn.events[0] = self._again(self.turns[0].events[0])
        return turn

    def _again(self, rows: list[Row]) -> list[Row]:
        changed = [
            (key, self._value(), w, at) if self.chance.random() < 0.2 else (key, v, w, at) for key, v, w, at in rows
        ]
        self.counts["re-exported"] += len(changed)
        return [*changed, (self.keys, 1, 1, moment(0))]

    def _value(self) -> int:
        return self.chance.randrange(3)

    def _minute(self, number: int, *, late: bool) -> int:
        return self.chance.randrange(10 * number) if late and number else 10 * number + self.chance.randrange(10)

    def _changes(self, key: int, number: int) -> list[Row]:
        """Return no row, or one: new or equal values, or a deletion (v = 9)."""
        if self.chance.random() < 0.4:
            return []
        v = 9 if self.chance.random() < 0.15 else self._value()
        self.counts["deleted" if v == 9 else "changed"] += 1
        return [(key, v, self._value(), moment(self._minute(number, late=False)))]

    def _events(self, key: int, number: int) -> list[Row]:
        """Return up to three events of a key at different times, some of them late."""
        lates = [self.chance.random() < 0.3 for _ in range(self.chance.choice([0, 0, 1, 1, 2, 3]))]
        minutes = dict.fromkeys(self._minute(number, late=late) for late in lates)
        self.counts["late"] += sum(minute < 10 * number for minute in minutes)
        self.counts["several at once"] += len(minutes) > 1
        return [(key, self._value(), self._value(), moment(minute)) for minute in minutes]

    def _export(self, key: int, number: int) -> list[Row]:
        """Return the export's row of a key: equal, changed, late or bad (v < 0); or none: the key is missing."""
        last, present = self.last.get(key), key in self.present
        draw = self.chance.random()
        if draw < 0.25:
            self.counts["missing"] += last is not None
            return []
        if draw < 0.35:
            self.counts["bad"] += 1
            return [(key, -1, 0, moment(self._minute(number, late=False)))]
        if last is not None and draw < 0.6 and last[1] != -1:
            self.counts["equal" if present else "returning"] += 1
            return [last]
        return [(key, self._value(), self._value(), moment(self._minute(number, late=draw > 0.9)))]


Line = dict[dt.datetime, Row | None]
"""The states of one key by the time of their events; None is an end."""


def intervals(line: Line, *, tracked: slice) -> list[Row]:
    """Return the rows of a history: state, start, end, whether it is current. Equal neighbours are one row."""
    groups: list[tuple[dt.datetime, Row | None]] = []
    for at in sorted(line):
        state = line[at]
        before = groups[-1][1] if groups else None
        same = state is None if before is None else state is not None and state[tracked] == before[tracked]
        if groups and same:
            groups[-1] = (groups[-1][0], state)
        else:
            groups.append((at, state))
    ends = [at for at, _ in groups[1:]] + [None]
    return [(*state, at, end, end is None) for (at, state), end in zip(groups, ends, strict=True) if state is not None]


class Computation:
    """The tables after each turn, by their names in the pipeline."""

    def __init__(self) -> None:
        self.files: dict[int, list[Row]] = {}
        self.merged: dict[object, Row] = {}
        self.exact: dict[object, Row] = {}
        self.states: dict[object, Line] = {}
        self.closed: dict[object, Line] = {}
        self.timed: dict[object, Line] = {}
        self.back: dict[object, Line] = {}

    def turn(self, turn: Turn, *, now: dt.datetime) -> None:
        """Apply the input of one run at the time `now`."""
        self.files |= turn.changes
        # An older file that was written again is the newest file.
        for number in sorted(turn.changes, reverse=True):
            for row in turn.changes[number]:
                newest = not any(
                    other[0] == row[0] for file in turn.changes if file < number for other in turn.changes[file]
                )
                if newest:
                    self._change(row, now=now)
        for number in sorted(turn.events, reverse=True):
            for row in turn.events[number]:
                self.timed.setdefault(row[0], {})[row[3]] = row  # type: ignore[index]
        self._export(turn.export, now=now)

    def _change(self, row: Row, *, now: dt.datetime) -> None:
        if row[1] == 9:
            self.merged.pop(row[0], None)
        else:
            self.merged[row[0]] = row
        self.states.setdefault(row[0], {})[now] = row

    def _export(self, rows: list[Row], *, now: dt.datetime) -> None:
        present = {row[0] for row in rows}
        good = {row[0]: row for row in rows if row[1] != -1}
        self.exact = {key: good.get(key, row) for key, row in self.exact.items() if key in present} | good
        for key, row in good.items():
            line = self.closed.setdefault(key, {})
            if not line or line[max(line)] != row:
                line[now] = row
            line, at = self.back.setdefault(key, {}), row[3]
            line[at] = row  # type: ignore[index]
            last = max(line)
            if line[last] is None:
                line[max(now, last)] = row
        for lines in (self.closed, self.back):
            for key, line in lines.items():
                if key not in present and line and line[max(line)] is not None:
                    line[max(now, *line)] = None

    def tables(self) -> dict[str, list[Row]]:
        """Return the rows of each table."""
        lines = {
            "states": (self.states, slice(1, 2)),
            "timed": (self.timed, slice(1, 2)),
            "closed": (self.closed, slice(1, 4)),
            "back": (self.back, slice(1, 4)),
        }
        return {
            "added": [row for rows in self.files.values() for row in rows],
            "merged": list(self.merged.values()),
            "exact": list(self.exact.values()),
            **{
                name: [row for line in each.values() for row in intervals(line, tracked=by)]
                for name, (each, by) in lines.items()
            },
        }
