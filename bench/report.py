# SPDX-License-Identifier: Apache-2.0
"""Results as a table for people and as JSON for comparisons.

May import `operations` for titles and targets. Knows nothing of the measurement.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.operations import ALONE_WHEN_AIMED_US, OPERATIONS, RATIO_AIM, aim_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.comparisons import SideResult
    from bench.operations import Operation

_BY_KEY: Final = {operation.key: operation for operation in OPERATIONS}
_HEAD: Final = (
    "operation",
    "store",
    "tree",
    "conn",
    "CPU µs",
    "aim",
    "",
    "of it db",
    "alone",
    "times",
    "aim",
    "",
    "files",
    "req/s",
    "p50 ms",
    "p99 ms",
    "bytes",
)
_TEXT_COLUMNS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measurement: the round with the least CPU. Times in µs per request are CPU, those in ms are latency.

    `alone_us` is the cost of the server library alone with 6 KB answers between these rounds, `files_us` the cost of
    creating the operation's files alone.
    """

    operation: str
    store: str
    tree_nodes: int
    connections: int
    cpu_us: float
    database_us: float
    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float
    bytes_mean: float
    alone_us: float
    files_us: float | None
    rounds_us: tuple[float, ...]

    @property
    def aim_us(self) -> float | None:
        """The target of this measurement, if it has one."""
        return aim_of(_BY_KEY[self.operation], store=self.store, connections=self.connections)

    @property
    def times_alone(self) -> float:
        """The cost as a multiple of the server library's cost in the same minute."""
        return self.cpu_us / self.alone_us

    @property
    def aim_times(self) -> float | None:
        """The target as such a multiple on the day it was set."""
        return None if self.aim_us is None else self.aim_us / ALONE_WHEN_AIMED_US


def verdict(value: float, aim: float | None) -> str:
    """Return whether a target is met, as text."""
    if aim is None:
        return ""
    return "ok" if value <= aim else "over"


def row(one: Measurement) -> tuple[str, ...]:
    """Return a table row."""
    aim = one.aim_us
    return (
        _BY_KEY[one.operation].title,
        one.store,
        f"{one.tree_nodes:,}",
        str(one.connections),
        _number(one.cpu_us),
        "" if aim is None else f"{aim:g}",
        verdict(one.cpu_us, aim),
        _number(one.database_us) if one.store == "postgres" else "",
        _number(one.alone_us),
        f"{one.times_alone:.1f}",
        "" if one.aim_times is None else f"{one.aim_times:.1f}",
        verdict(one.times_alone, one.aim_times),
        "" if one.files_us is None else _number(one.files_us),
        f"{one.per_second:,.0f}",
        f"{one.p50_ms:.2f}",
        f"{one.p99_ms:.2f}",
        f"{one.bytes_mean:,.0f}",
    )


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def table(rows: Sequence[Sequence[str]], head: Sequence[str], *, text_columns: int) -> str:
    """Align rows under a head. All columns but the first are numbers, aligned right."""
    widths = [max(len(each[column]) for each in (head, *rows)) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < text_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(each, widths, strict=True))
        ).rstrip()
        for each in (head, ["-" * width for width in widths], *rows)
    ]
    return "\n".join(lines)


def measurements(results: Iterable[Measurement]) -> str:
    """Return the table of all measurements."""
    return table([row(one) for one in results], _HEAD, text_columns=_TEXT_COLUMNS)


def ratios(results: Sequence[Measurement]) -> str:
    """Return the ratio of the largest tree to the smallest, where both were measured."""
    groups: dict[tuple[str, str, int], dict[int, Measurement]] = {}
    for one in results:
        groups.setdefault((one.operation, one.store, one.connections), {})[one.tree_nodes] = one
    rows: list[tuple[str, ...]] = []
    for (key, store, connections), sizes in groups.items():
        small, large = min(sizes), max(sizes)
        if small == large:
            continue
        ratio = sizes[large].cpu_us / sizes[small].cpu_us
        trees = f"{large:,} / {small:,}"
        cells = (f"{ratio:.2f}", f"{RATIO_AIM:g}", verdict(ratio, RATIO_AIM))
        rows.append((_BY_KEY[key].title, store, trees, str(connections), *cells))
    head = ("operation", "store", "trees", "conn", "ratio", "aim", "")
    return table(rows, head, text_columns=_TEXT_COLUMNS) if rows else "one tree only: no ratios"


def summary(results: Sequence[Measurement]) -> str:
    """Return the targets, as absolute values and as multiples; an absolute value depends more on the machine."""
    aimed_results = [one for one in results if one.aim_us is not None]
    over = [one for one in aimed_results if verdict(one.cpu_us, one.aim_us) == "over"]
    far = [one for one in aimed_results if verdict(one.times_alone, one.aim_times) == "over"]
    met = f"{len(aimed_results) - len(over)} of {len(aimed_results)} aims are met as µs"
    lines = [
        (
            f"{met}; {len(aimed_results) - len(far)} as multiples of the server library alone ({ALONE_WHEN_AIMED_US:g}"
            " µs when set)"
        ),
        *(f"  over in µs: {_name(one)}: {one.cpu_us:.1f}, aim {one.aim_us:g}" for one in over),
        *(f"  over as a multiple: {_name(one)}: {one.times_alone:.1f}, aim {one.aim_times:.1f}" for one in far),
    ]
    return "\n".join(lines)


def _name(one: Measurement) -> str:
    return f"{_BY_KEY[one.operation].title}, {one.store}, {one.tree_nodes:,} nodes"


def comparisons(results: Sequence[SideResult]) -> str:
    """Return the sides of comparisons, each relative to the first."""
    head = ("compared", "", "CPU µs", "times", "aim", "", "peak MB")
    rows = [
        (
            one.title,
            one.side,
            _number(one.cpu_us),
            f"{one.times:.2f}",
            "" if one.aim is None else f"{one.aim:g}",
            verdict(one.times, one.aim),
            "" if one.peak_mb is None else str(one.peak_mb),
        )
        for one in results
    ]
    return table(rows, head, text_columns=2)


def write_json(
    results: Sequence[Measurement], beside: Sequence[SideResult], folder: Path, *, options: dict[str, object]
) -> Path:
    """Write all measurements, with a description of the machine. Returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"bench-{time.strftime('%Y%m%d-%H%M%S')}.json"
    whole = {
        "machine": {"cores": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "options": options,
        "measurements": [asdict(one) | {"aim_us": one.aim_us} for one in results],
        "comparisons": [one._asdict() for one in beside],
    }
    path.write_text(json.dumps(whole, indent=1) + "\n")
    return path


def is_chosen(key: str, words: Sequence[str]) -> bool:
    """Return whether a key begins with any of the words; True without words."""
    return not words or key.startswith(tuple(words))


def known_keys(chosen: Sequence[str], *, others: Sequence[str] = ()) -> tuple[Operation, ...]:
    """Return the chosen operations; none if only other keys are chosen. Raises ValueError."""
    operations = tuple(each for each in OPERATIONS if is_chosen(each.key, chosen))
    if not operations and not any(is_chosen(each, chosen) for each in others):
        raise ValueError(f"No operation begins with {', '.join(chosen)}: choose among {', '.join((*_BY_KEY, *others))}")
    return operations
