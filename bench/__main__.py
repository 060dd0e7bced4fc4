# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`: measures and prints.

The exit code is 1 only if an operation fails, because a benchmark is not a test.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import report
from bench.comparisons import SideResult, compare
from bench.load import LoadError
from bench.measure import Plan, measure_all, say, targets
from bench.stores import STORES, StartError
from bench.worlds import WORLDS

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = {
    "small": dict.fromkeys(STORES, 1_000),
    "large": {"sqlite": 1_000_000, "postgres": 100_000},
}
QUICK_LARGE = 100_000


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in _words(text))


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--stores", type=_words, default=STORES, help="sqlite,postgres")
    parser.add_argument("--sizes", type=_words, default=tuple(SIZES), help="trees: small,large")
    parser.add_argument("--connections", type=_numbers, default=None, help="1,16,64")
    parser.add_argument("--operations", type=_words, default=(), help="beginnings of their keys: head,load,list-1000,…")
    parser.add_argument("--seconds", type=float, default=None, help="of one round")
    parser.add_argument(
        "--rounds", type=int, default=10, help="of which the best stands; at most 3 where nothing is aimed at"
    )
    parser.add_argument(
        "--quick", action="store_true", help="16 connections, short rounds, large trees of 100,000 nodes"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-out"), help="folder of the JSON file")
    parser.add_argument("--data", type=Path, default=None, help="folder for the stores while it runs; on a real disk")
    parsed_arguments = parser.parse_args(arguments)
    for name, known in (("stores", STORES), ("sizes", tuple(SIZES))):
        wrong = set(getattr(parsed_arguments, name)) - set(known)
        if wrong or not getattr(parsed_arguments, name):
            parser.error(f"--{name}: choose among {', '.join(known)}")
    if parsed_arguments.connections is not None and not all(0 < each <= 1000 for each in parsed_arguments.connections):
        parser.error("--connections: numbers from 1 to 1000, separated by commas")
    if parsed_arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    return parsed_arguments


def plan_of(arguments: argparse.Namespace) -> Plan:
    """Build a plan from the options. Raises ValueError."""

    def nodes(size: str, store: str) -> int:
        return min(SIZES[size][store], QUICK_LARGE) if arguments.quick else SIZES[size][store]

    return Plan(
        operations=report.known_keys(arguments.operations, others=[key for keys, _ in WORLDS for key in keys]),
        sizes={store: tuple(nodes(size, store) for size in arguments.sizes) for store in arguments.stores},
        connections=arguments.connections or ((16,) if arguments.quick else (1, 16, 64)),
        rounds=arguments.rounds,
        seconds=arguments.seconds or (0.15 if arguments.quick else 0.25),
    )


def compare_all(words: tuple[str, ...], folder: Path, *, plan: Plan) -> Iterator[list[SideResult]]:
    """Measure the comparisons whose keys begin with any of the words, or all. Raises LoadError, StartError."""
    for keys, world in WORLDS:
        if chosen := [key for key in keys if report.is_chosen(key, words)]:
            with world(folder) as comparisons:
                yield from compare(
                    [each for each in comparisons if each.key in chosen], rounds=plan.rounds, seconds=plan.seconds
                )


def main() -> int:
    """Measure, print, and store the results."""
    arguments = options()
    try:
        plan = plan_of(arguments)
    except ValueError as error:
        say(str(error))
        return 2
    started = time.monotonic()
    measurements: list[report.Measurement] = []
    beside: list[SideResult] = []
    failure: str | None = None
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", dir=arguments.data, ignore_cleanup_errors=True) as folder:
        try:
            if plan.operations:
                with targets(plan, Path(folder)) as servers:
                    for results in measure_all(plan, servers, log=Path(folder) / "yardstick.log"):
                        measurements += results
                        say("\n".join("  ".join(report.row(one)) for one in results))
            for sides in compare_all(arguments.operations, Path(folder), plan=plan):
                beside += sides
                say(report.comparisons(sides))
        except (LoadError, StartError) as error:
            failure = str(error)
    if measurements:
        print(report.measurements(measurements), report.ratios(measurements), report.summary(measurements), sep="\n\n")
    if beside:
        print(report.comparisons(beside))
    if measurements or beside:
        report_file = report.write_json(
            measurements, beside, arguments.out, options={k: str(v) for k, v in vars(arguments).items()}
        )
        print(f"\n{time.monotonic() - started:.0f} s; kept in {report_file}")
    if failure is not None:
        say(f"failed: {failure}")
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
