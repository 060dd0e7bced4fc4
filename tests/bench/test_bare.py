# SPDX-License-Identifier: Apache-2.0
"""Requests on SQLite execute few statements, and their commits write few pages. The tests count both, on a copy of the
store's file, which does not depend on the machine's load.
"""

from __future__ import annotations

import pytest

from bench.bare import run

MAX = {
    "create table": (16, 48),
    "create table whose name is taken: 409": (11, 6),
    "commit, set one property": (18, 24),
    "create namespace among 5,000": (15, 32),
    "load of a missing table: 404": (1, None),
    "create namespace without the right: 403": (1, None),
}
"""Maximum numbers of statements and of writing system calls of a request: two for each page, and one for the lock. None
for requests with one statement, which can't write: what is written meanwhile is work of the node itself.
"""
REQUESTS = 100


@pytest.fixture(scope="module")
def counts() -> dict[str, tuple[float, float]]:
    """The statements and writes of each kind of request."""
    return run(REQUESTS)


def test_every_measured_request_has_limits(counts: dict[str, tuple[float, float]]) -> None:
    """Every kind of request has a maximum number of statements and writes."""
    assert list(counts) == list(MAX)


@pytest.mark.parametrize("title", MAX)
def test_request_stays_within_its_statements_and_writes(counts: dict[str, tuple[float, float]], title: str) -> None:
    """A request executes no more statements, and writes no more often, than its maximum. Work of the node itself adds
    some statements to the hundred requests, and not one to each.
    """
    statements, writes = counts[title]

    statements_max, writes_max = MAX[title]
    assert round(statements) <= statements_max
    assert writes_max is None or writes <= writes_max
