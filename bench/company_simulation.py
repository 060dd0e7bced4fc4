# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.company_simulation`: a thousand companies on several databases, by figures that were measured here.

Imports the standard library only, and runs no server. Each company is a metalake. It draws their sizes and request
rates, places them by consistent hashing and by first-fit, plays one day in steps of a quarter of an hour, and lets one
database fail at its busiest moment. The same seed prints the same report. `docs/explain/scale.md` has its assumptions.
"""

from __future__ import annotations

import argparse
import bisect
import hashlib
import math
import random
import statistics
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS: Final = 96
"""Steps of a day."""
STEP_S: Final = 86_400 // STEPS
POINTS: Final = 128
"""Places of each database on the ring of consistent hashing."""
REGIONS_H: Final = (0, 7, 15)
"""Hours by which the days of three regions differ."""
WEIGHTS: Final = (0.5, 0.3, 0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Measured costs: CPU µs of server and database, bytes, and rates. `docs/explain/scale.md` has the table."""

    load_us: float = 45.0
    cold_load_us: float = 510.0
    list_us: float = 60.0
    commit_us: float = 720.0
    create_us: float = 800.0
    poll_us: float = 190.0
    grant_us: float = 2_750.0
    bytes_each: float = 2_000.0
    backup_bytes_s: float = 40e6
    restore_bytes_s: float = 40e6
    export_each_s: float = 11_000.0
    import_each_s: float = 13_000.0
    tables_max: float = 10e6
    cores: float = 2.0
    used_max: float = 0.6
    """The share of the cores that requests may use at the busiest time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """A company: tables, CPU seconds a second at its busiest time, and the region of its day."""

    name: str
    tables: int
    requests_s: float
    cpu: float
    region: int

    def cpu_at(self, step: int) -> float:
        """Return CPU seconds a second at a step of the day."""
        return self.cpu * day_curve(step - REGIONS_H[self.region] * STEPS // 24)


def day_curve(step: int) -> float:
    """Return the share of the busiest time: work hours, and a fifth of it at night for jobs."""
    hour = step % STEPS * 24 / STEPS
    return 0.2 + 0.8 * max(0.0, math.sin((hour - 6) / 14 * math.pi)) if 6 <= hour <= 20 else 0.2


MIX: Final = {
    "load": 0.70,
    "cold_load": 0.04,
    "list": 0.12,
    "commit": 0.06,
    "create": 0.004,
    "poll": 0.075,
    "grant": 0.001,
}
"""The kinds of requests."""


def mean_us(figures: Figures) -> float:
    """Return the CPU of a mean request."""
    return sum(share * float(getattr(figures, f"{kind}_us")) for kind, share in MIX.items())


def draw_companies(count: int, *, seed: int, figures: Figures) -> list[Company]:
    """Draw companies: half of them have up to 3,000 tables, the largest a few million. A table brings requests, and a
    large company fewer for each: 0.02 a second at the busiest time for one of 1,000 tables.
    """
    dice, companies = random.Random(seed), []
    for number in range(count):
        tables = int(min(4e6, dice.lognormvariate(math.log(3_000), 2.0))) + 10
        rate = 0.02 * tables * (1_000 / max(tables, 1_000)) ** 0.3 * dice.lognormvariate(0, 0.6)
        companies.append(
            Company(
                name=f"company{number:04}",
                tables=tables,
                requests_s=rate,
                cpu=rate * mean_us(figures) / 1e6,
                region=dice.choices(range(len(REGIONS_H)), WEIGHTS)[0],
            )
        )
    return companies


Placement = list[list[Company]]


def hashed(companies: Sequence[Company], databases: int) -> Placement:
    """Place companies by consistent hashing of their names."""
    ring = sorted((_point(f"database{each}.{point}"), each) for each in range(databases) for point in range(POINTS))
    keys = [key for key, _ in ring]
    placed: Placement = [[] for _ in range(databases)]
    for company in companies:
        placed[ring[bisect.bisect(keys, _point(company.name)) % len(ring)][1]].append(company)
    return placed


def _point(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def first_fit(companies: Sequence[Company], figures: Figures) -> Placement:
    """Place companies, the largest first, in the first database that has room for their load at each hour and for their
    tables. A company that fits none gets a database of its own.
    """
    placed: Placement = []
    loads: list[list[float]] = []
    for company in sorted(companies, key=lambda each: (-max(each.cpu, each.tables / figures.tables_max), each.name)):
        own = [company.cpu_at(step) for step in range(0, STEPS, 4)]
        for number, load in enumerate(loads):
            fits = all(a + b <= figures.cores * figures.used_max for a, b in zip(load, own, strict=True))
            if fits and sum(each.tables for each in placed[number]) + company.tables <= figures.tables_max:
                break
        else:
            number = len(placed)
            placed.append([])
            loads.append([0.0] * len(own))
        placed[number].append(company)
        loads[number] = [a + b for a, b in zip(loads[number], own, strict=True)]
    return placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The loads of the databases in one day, as shares of their cores, by database and step."""

    used: list[list[float]]

    def peaks(self) -> list[float]:
        """Return the busiest step of each database."""
        return [max(each) for each in self.used]

    def over(self, limit: float) -> tuple[int, float]:
        """Return how many databases were above a limit, and for how many hours in all."""
        steps = [sum(value > limit for value in each) for each in self.used]
        return sum(each > 0 for each in steps), sum(steps) * 24 / STEPS


def play(placed: Placement, figures: Figures, *, seed: int) -> Day:
    """Play one day: requests of a step are drawn around their mean, in bursts of twenty."""
    dice = random.Random(seed)
    used = []
    for companies in placed:
        row = []
        for step in range(STEPS):
            mean = sum(each.cpu_at(step) for each in companies)
            bursts = mean * STEP_S * 1e6 / mean_us(figures) / 20
            drawn = dice.gauss(1.0, 1 / math.sqrt(max(bursts, 1.0)))
            row.append(mean * max(0.0, drawn) / figures.cores)
        used.append(row)
    return Day(used=used)


def failure(placed: Placement, day: Day, figures: Figures, *, backup_every_h: float) -> str:
    """Return what the failure of the busiest database does, at its busiest moment."""
    peaks = day.peaks()
    number = peaks.index(max(peaks))
    lost, step = placed[number], day.used[number].index(max(day.used[number]))
    tables = sum(each.tables for each in lost)
    refused_s = sum(each.requests_s * each.cpu_at(step) / each.cpu for each in lost)
    size = tables * figures.bytes_each
    restore_s = size / figures.restore_bytes_s
    others = max(1, len(placed) - 1)
    import_s = max(*(each.tables for each in lost), tables / others) / figures.import_each_s
    written = refused_s * (MIX["commit"] + MIX["create"]) * backup_every_h * 3_600 / 2
    hour, companies = step * 24 / STEPS, sum(map(len, placed))
    without = f"{len(lost)} of {companies} companies are without service"
    fullest = _with_guests(placed, number, step, figures)
    restore = f"{restore_s / 60:,.1f} minutes, {refused_s * restore_s:,.0f} requests refused"
    lines = [
        f"database {number} fails at {hour:.2f} h: {without}: {tables:,} tables, {refused_s:,.0f} requests a second",
        f"restore of its backup, {size / 1e9:.1f} GB, on another machine: {restore}",
        f"imports into the other databases: {import_s / 60:,.1f} minutes; the fullest then uses {fullest:.0%}",
        f"a backup every {backup_every_h:.0f} h loses {written:,.0f} changes (mean); an archive of the log loses none",
    ]
    return "\n".join(f"  {line}" for line in lines)


def _with_guests(placed: Placement, failed: int, step: int, figures: Figures) -> float:
    """Return the load of the fullest database after the others took the companies of a failed one, each by the least
    loaded at that moment.
    """
    loads = [sum(each.cpu_at(step) for each in row) for number, row in enumerate(placed) if number != failed] or [0.0]
    for company in sorted(placed[failed], key=lambda each: -each.cpu):
        least = loads.index(min(loads))
        loads[least] += company.cpu_at(step)
    return max(loads) / figures.cores


def moved_share(companies: Sequence[Company], databases: int) -> float:
    """Return the share of companies that one more database moves under consistent hashing."""
    before = {each.name: number for number, row in enumerate(hashed(companies, databases)) for each in row}
    after = {each.name: number for number, row in enumerate(hashed(companies, databases + 1)) for each in row}
    return sum(before[name] != after[name] for name in before) / len(before)


def hashed_need(companies: Sequence[Company], figures: Figures, *, least: int, seed: int) -> int:
    """Return with how many databases consistent hashing keeps each below its limit; 0 for none up to four times as
    many as first-fit needs.
    """
    for databases in range(least, 4 * least + 1):
        placed = hashed(companies, databases)
        if max(play(placed, figures, seed=seed).peaks()) <= figures.used_max * 1.05 and all(
            sum(each.tables for each in row) <= figures.tables_max for row in placed
        ):
            return databases
    return 0


def report(count: int, *, seed: int, figures: Figures, backup_every_h: float) -> str:
    """Return the report."""
    companies = draw_companies(count, seed=seed, figures=figures)
    tables = sorted(each.tables for each in companies)
    total_cpu = max(sum(each.cpu_at(step) for each in companies) for step in range(STEPS))
    sizes = f"median {statistics.median(tables):,.0f}, 99th percentile {tables[count * 99 // 100]:,}"
    room = f"{figures.cores:.0f} cores, filled to {figures.used_max:.0%}, and {figures.tables_max:,.0f} tables"
    lines = [
        f"{count:,} companies, seed {seed}: {sum(tables):,} tables; {sizes}, largest {tables[-1]:,}",
        f"a mean request costs {mean_us(figures):.0f} µs; the busiest moment of all needs {total_cpu:.1f} cores",
        f"a database with its servers has {room}",
    ]
    fitted = first_fit(companies, figures)
    least = len(fitted)
    for title, placed in (
        (f"first-fit by load: {least} databases", fitted),
        (f"consistent hashing over {least}", hashed(companies, least)),
    ):
        lines += ["", title, _day_of(placed, figures, seed=seed, backup_every_h=backup_every_h)]
    need = hashed_need(companies, figures, least=least, seed=seed)
    outcome = f"needs {need} databases" if need else f"fails with any number up to {4 * least}"
    small, large = statistics.median(tables) * _move_s(figures), tables[-1] * _move_s(figures)
    return "\n".join(
        [
            *lines,
            "",
            f"to keep each database below its limit, consistent hashing {outcome}",
            f"one more database: hashing moves {moved_share(companies, least):.1%} of the companies, first-fit none",
            f"a move by export and import: the median company {small:.1f} s, the largest {large / 60:.1f} minutes",
        ]
    )


def _day_of(placed: Placement, figures: Figures, *, seed: int, backup_every_h: float) -> str:
    """Return the part of the report about one placement."""
    day = play(placed, figures, seed=seed)
    peaks = day.peaks()
    above, hours = day.over(1.0)
    fullest = max(sum(each.tables for each in row) for row in placed)
    span = f"{min(peaks):.0%} to {max(peaks):.0%}, median {statistics.median(peaks):.0%}"
    return "\n".join(
        [
            f"  cores in use at a database's busiest moment: {span}; the fullest has {fullest:,} tables",
            f"  databases with more work than cores: {above}, for {hours:.1f} hours in all",
            failure(placed, day, figures, backup_every_h=backup_every_h),
        ]
    )


def _move_s(figures: Figures) -> float:
    """Return the seconds that a move takes for each table."""
    return 1 / figures.export_each_s + 1 / figures.import_each_s


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.company_simulation", description=__doc__)
    parser.add_argument("--companies", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=51)
    parser.add_argument("--cores", type=float, default=Figures().cores, help="of each database with its servers")
    parser.add_argument("--backup-every-h", type=float, default=24.0)
    parsed_arguments = parser.parse_args(arguments)
    if parsed_arguments.companies < 2 or parsed_arguments.cores <= 0 or parsed_arguments.backup_every_h <= 0:
        parser.error("--companies: at least 2; --cores and --backup-every-h: above 0")
    return parsed_arguments


def main() -> int:
    """Print the report."""
    chosen = options()
    figures = Figures(cores=chosen.cores)
    print(report(chosen.companies, seed=chosen.seed, figures=figures, backup_every_h=chosen.backup_every_h))
    return 0


if __name__ == "__main__":
    sys.exit(main())
