# SPDX-License-Identifier: Apache-2.0
"""Requests make few calls. The tests count calls of the server's own functions, which do not depend on the machine's
load.
"""

from __future__ import annotations

import pytest

from bench.ways import WAYS, trace_all
from tests.installed import ALL_ROOMS

CALLS_MAX = {
    "load-kept": 25,
    "load-changed": 183,
    "commit": 330,
    "append": 463,
    "rename": 440,
    "create": 333,
    "gravitino-create": 434,
    "lance-declare": 385,
    "constant": 260,
    "metadata": 640,
    "metadata-new": 1160,
    "metadata-all": 6915,
}
"""Maximum number of calls of a warm request of each kind; a change that needs more gives a reason and raises the
number.

A table to register may be one of many in a transaction, and routes belong to rooms: three to seven calls.
The steps of a request are measured, by an object that is made when the request first waits, and parts of its begin and
end are functions of their own: ten calls. A request takes its turn on the event loop: eight calls of a rename. Rows
that a commit adds to snapshots and logs are encoded one by one: 4 calls, and 21 of an append. The parents of a new
snapshot and its schema are looked up: 16 calls of an append; its id is compared with the known ones: 3.
Actions of a kind and a verb are composed by a function: 3 calls of a metadata query.
A metadata query decides again after it has read nodes that are not in the view: 15 calls for each slice. Between the
list of objects and their documents it gives its turn to others: 10 to 12 calls, 2 of them to a higher layer.
"""
pytestmark = pytest.mark.room(*ALL_ROOMS)
UP_MAX = 32
"""Maximum number of calls of a request from a layer to one above it."""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, int]]:
    """The calls of each kind of request, and how many of them go to a higher layer.

    Periodic work of the server adds calls to requests that take long on a busy machine. So the kinds with too many are
    traced again in more rounds, of which the one with the fewest calls counts.
    """
    counts: dict[str, tuple[int, int]] = {}
    for rounds in (3, 30):
        above = [key for key, most in CALLS_MAX.items() if key not in counts or exceeds(counts[key], most)]
        if above:
            traces = trace_all(tmp_path_factory.mktemp("ways"), chosen=above, rounds=rounds)
            counts |= {way.key: (trace.count, trace.up) for way, trace in traces}
    return counts


def exceeds(counts: tuple[int, int], most: int) -> bool:
    """Return whether the calls of a request, or those to a higher layer, are too many."""
    return counts[0] > most or counts[1] > UP_MAX


def test_every_traced_request_kind_has_a_call_limit() -> None:
    """Every traced kind of request has a maximum number of calls."""
    assert [way.key for way in WAYS] == list(CALLS_MAX)


@pytest.mark.parametrize("key", CALLS_MAX)
def test_warm_request_stays_within_its_call_limit(traced: dict[str, tuple[int, int]], key: str) -> None:
    """A warm request makes no more than the maximum number of calls of the server's functions, and at least half of
    it.
    """
    calls, up = traced[key]

    assert CALLS_MAX[key] // 2 < calls <= CALLS_MAX[key]
    assert up <= UP_MAX
