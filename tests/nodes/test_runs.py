# SPDX-License-Identifier: Apache-2.0
"""Two nodes and one pipeline: of two concurrent starts, two resumes, a publish and a cancel, or two publishing
attempts, exactly one succeeds.
"""

from __future__ import annotations

import json
from collections import Counter
from uuid import uuid4

import pytest

from tests.nodes.test_two_nodes import load, race
from tests.nodes.wire import OWN, Wire, properties_body, table_path
from tests.nodes.world import NodesWorld

ROUNDS = 8
BEATS = 64
LAKE = f"{OWN}/metalakes/lake"
FINE = (400, 403, 404, 409)


def begin(world: NodesWorld, name: str) -> str:
    """Declare a pipeline and start a run of it."""
    run = str(uuid4())
    world.admin(0).do("PUT", f"{LAKE}/pipelines/{name}", {"declaration": {}})
    world.admin(0).do("POST", f"{LAKE}/pipelines/{name}/runs", {"id": run, "holder": "h:1", "lease_s": 3600})
    return run


def state(world: NodesWorld, run: str) -> tuple[object, object]:
    """Return state and attempt of a run, which both nodes must report alike."""
    runs = [world.admin(at).do("GET", f"{LAKE}/runs/{run}").body for at in (0, 1)]
    assert runs[0]["state"] == runs[1]["state"]
    return runs[0]["state"], runs[0]["attempt"]


def finish(world: NodesWorld, run: str, word: str, attempt: int) -> None:
    """End a run with an outcome."""
    world.admin(0).do("POST", f"{LAKE}/runs/{run}/finish", {"attempt": attempt, "state": word})


def publish(wire: Wire, run: str, attempt: int, path: tuple[str, str], by: str) -> int:
    """Commit to a table and publish. Returns the status."""
    operations = [
        {"do": "commit-table", "path": list(path), **properties_body(by=by)},
        {"do": "publish-run", "run": run, "attempt": attempt},
    ]
    return wire.do("POST", f"{LAKE}/catalogs/main/transactions", {"operations": operations}, fine=FINE).status


def by_of(world: NodesWorld, *path: str) -> object:
    """Return the last writer of the table's property."""
    return load(world.admin(1), table_path(*path))["properties"].get("by")  # type: ignore[attr-defined]


def test_concurrent_starts_of_pipeline_start_one_run(world: NodesWorld) -> None:
    """Of concurrent starts of one pipeline on both nodes, one succeeds and the others get the name of the running one.
    The same id on both nodes starts one run.
    """
    world.admin(0).do("PUT", f"{LAKE}/pipelines/starts", {"declaration": {}})
    for number in range(ROUNDS):
        ids = [str(uuid4()) for _ in range(4)]
        same = number % 2 == 0

        def run(wire: Wire, client: int, ids: list[str] = ids, same: bool = same) -> tuple[int, str]:
            body = {"id": ids[0 if same else client], "holder": f"h:{client}", "lease_s": 3600}
            answer = wire.do("POST", f"{LAKE}/pipelines/starts/runs", body, fine=FINE)
            return answer.status, json.dumps(answer.body)

        answers = race(world, run)

        statuses = Counter(status for status, _ in answers)
        assert statuses == ({200: 4} if same else {200: 1, 409: 3}), answers
        (winner,) = {json.loads(body)["id"] for status, body in answers if status == 200}
        assert all(winner in body for _, body in answers)
        finish(world, winner, "failed", 1)


def test_concurrent_resumes_of_run_succeed_once(world: NodesWorld) -> None:
    """Of several processes that resume a run after the same attempt one succeeds, and no attempt number is given
    twice.
    """
    run = begin(world, "resumes")
    for attempt in range(1, ROUNDS):
        finish(world, run, "failed", attempt)

        def again(wire: Wire, client: int, attempt: int = attempt) -> int:
            body = {"holder": f"h:{client}", "lease_s": 3600, "after": attempt}
            return wire.do("POST", f"{LAKE}/runs/{run}/resume", body, fine=FINE).status

        assert Counter(race(world, again)) == {200: 1, 409: 3}
        assert state(world, run) == ("running", attempt + 1)


def test_replaced_attempt_never_publishes(world: NodesWorld) -> None:
    """An attempt that a later one has replaced never publishes, however close together they are. The table has the
    commit of the later one.
    """
    world.namespace("attempts")
    for number in range(ROUNDS):
        name = f"t{number}"
        world.table("attempts", name)
        run = begin(world, f"attempts{number}")
        finish(world, run, "failed", 1)

        def act(wire: Wire, client: int, run: str = run, name: str = name) -> int:
            if client == 0:
                return publish(wire, run, 1, ("attempts", name), "old")
            wire.do("POST", f"{LAKE}/runs/{run}/resume", {"holder": "h:2", "lease_s": 3600, "after": 1})
            return publish(wire, run, 2, ("attempts", name), "new")

        assert race(world, act, clients=2) == [409, 200]
        assert (state(world, run), by_of(world, "attempts", name)) == (("published", 2), "new")


@pytest.mark.parametrize("rival", ["cancel", "fail", "publish"])
def test_publish_and_concurrent_cancel_exclude_each_other(world: NodesWorld, rival: str) -> None:
    """Of a publish and a concurrent cancel exactly one succeeds: the tables have moved if and only if the run is
    published.
    """
    space = f"rival_{rival}"
    world.namespace(space)
    seen: Counter[object] = Counter()
    for number in range(ROUNDS):
        name = f"t{number}"
        world.table(space, name)
        run = begin(world, f"{space}{number}")

        def act(wire: Wire, client: int, run: str = run, name: str = name) -> int:
            if client == 0 or rival == "publish":
                return publish(wire, run, 1, (space, name), f"by {client}")
            verb, body = ("cancel", None) if rival == "cancel" else ("finish", {"attempt": 1, "state": "failed"})
            return wire.do("POST", f"{LAKE}/runs/{run}/{verb}", body, fine=FINE).status

        statuses = race(world, act, clients=2)

        ended, _ = state(world, run)
        seen[ended] += 1
        assert sorted(statuses) == [200, 409]
        assert (
            (by_of(world, space, name) is not None)
            == (ended == "published")
            == (statuses[0] == 200 or rival == "publish")
        )
    assert sum(seen.values()) == ROUNDS


def test_concurrent_heartbeats_are_all_accepted(world: NodesWorld) -> None:
    """Concurrent heartbeats of sixty-four runs on both nodes are all accepted while tables are committed to. The feed
    contains no heartbeat.
    """
    runs = [begin(world, f"beats{number}") for number in range(BEATS)]
    world.namespace("crowd")
    world.table("crowd", "t")
    before = world.admin(0).do("GET", f"{LAKE}/changes?after=now").body["next"]

    def beat(wire: Wire, client: int) -> list[int]:
        path = f"{LAKE}/runs/{runs[client]}/beat"
        statuses = [wire.do("POST", path, {"attempt": 1, "progress": {"s": {"n": n}}}).status for n in range(5)]
        wire.do("POST", table_path("crowd", "t"), properties_body(**{f"p{client}": "x"}), fine=(409,))
        return statuses

    assert race(world, beat, clients=BEATS) == [[200] * 5] * BEATS

    changes = world.admin(0).do("GET", f"{LAKE}/changes?after={before}&limit=1000").body["changes"]
    assert {each["kind"] for each in changes} == {"table"}  # type: ignore[union-attr, index]
    for run in runs:
        finish(world, run, "failed", 1)
