# SPDX-License-Identifier: Apache-2.0
"""The simulation of companies: placements are complete and within their limits, and a report can be repeated."""

from __future__ import annotations

import pytest

from bench.company_simulation import (
    STEPS,
    Figures,
    draw_companies,
    first_fit,
    hashed,
    moved_share,
    play,
    report,
)

FIGURES = Figures()
COMPANIES = draw_companies(300, seed=7, figures=FIGURES)


def test_report_is_the_same_for_the_same_seed() -> None:
    """The same seed gives the same report, another seed another one."""
    one, same, other = (report(100, seed=seed, figures=FIGURES, backup_every_h=24.0) for seed in (1, 1, 2))

    assert one == same
    assert one != other


@pytest.mark.parametrize("placed", [first_fit(COMPANIES, FIGURES), hashed(COMPANIES, 5)], ids=["first-fit", "hashed"])
def test_placement_has_each_company_once(placed: list[list[object]]) -> None:
    """Each company is in exactly one database."""
    assert sorted(each.name for row in placed for each in row) == sorted(each.name for each in COMPANIES)


def test_first_fit_keeps_each_database_within_its_limits() -> None:
    """At no hour has a database more load than its limit or more tables than it has room for, unless it has a single
    company.
    """
    limit = FIGURES.cores * FIGURES.used_max

    for row in first_fit(COMPANIES, FIGURES):
        busiest = max(sum(each.cpu_at(step) for each in row) for step in range(0, STEPS, 4))
        assert len(row) == 1 or busiest <= limit
        assert sum(each.tables for each in row) <= FIGURES.tables_max


def test_hashing_moves_few_companies_to_one_more_database() -> None:
    """One more database of ten moves about an eleventh of the companies, and not half of them."""
    assert 0.03 < moved_share(COMPANIES, 10) < 0.2


def test_day_has_the_mean_load_of_its_companies() -> None:
    """The drawn loads of a day are around the loads of the companies."""
    placed = first_fit(COMPANIES, FIGURES)

    used = play(placed, FIGURES, seed=1).used

    expected = sum(each.cpu_at(step) for row in placed for each in row for step in range(STEPS)) / FIGURES.cores
    assert sum(map(sum, used)) == pytest.approx(expected, rel=0.02)
