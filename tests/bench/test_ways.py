# SPDX-License-Identifier: Apache-2.0
"""Requests make few calls in few files. The tests count calls of the server's own functions, which do not depend on
the machine's load.
"""

from __future__ import annotations

import pytest

from bench.ways import WAYS, Trace, trace_all
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
FILES_MAX = {"load-kept": 9, "load-changed": 33, "commit": 60, "rename": 46, "create": 62}
"""Maximum number of files that a request's calls are in: who follows a request reads these."""
UP_MAX = 32
"""Maximum number of calls of a request from a layer to one above it."""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """The calls of each kind of request.

    Periodic work of the server adds calls to requests that take long on a busy machine. So the kinds with too many are
    traced again in more rounds, of which the one with the fewest calls counts.
    """
    traces: dict[str, Trace] = {}
    for rounds in (3, 30):
        above = [key for key in CALLS_MAX if key not in traces or exceeds(traces[key], key)]
        if above:
            traced_ways = trace_all(tmp_path_factory.mktemp("ways"), chosen=above, rounds=rounds)
            traces |= {way.key: trace for way, trace in traced_ways}
    return traces


def exceeds(trace: Trace, key: str) -> bool:
    """Return whether the calls of a request, their files, or the calls to a higher layer are too many."""
    return trace.count > CALLS_MAX[key] or trace.up > UP_MAX or trace.files > FILES_MAX.get(key, trace.files)


def test_every_traced_request_kind_has_a_call_limit() -> None:
    """Every traced kind of request has a maximum number of calls."""
    assert [way.key for way in WAYS] == list(CALLS_MAX)


@pytest.mark.parametrize("key", CALLS_MAX)
def test_warm_request_stays_within_its_call_limit(traced: dict[str, Trace], key: str) -> None:
    """A warm request makes no more than the maximum number of calls of the server's functions, and at least half of
    it.
    """
    trace = traced[key]

    assert CALLS_MAX[key] // 2 < trace.count <= CALLS_MAX[key]
    assert trace.up <= UP_MAX


@pytest.mark.parametrize("key", FILES_MAX)
def test_warm_request_stays_within_its_files(traced: dict[str, Trace], key: str) -> None:
    """The functions that a warm request calls lie in no more than the maximum number of files."""
    assert traced[key].files <= FILES_MAX[key]
