# SPDX-License-Identifier: Apache-2.0
"""Scan plans and restrictions on two nodes of one store: a plan of one node continues at the other, and a restriction
set at one node applies at the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.nodes.planned_tables import PARTS, files_of, plan, restriction_path, table_with_parts, tasks_of
from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import GRAVITINO, Wire

ROUNDS = 3
CALLERS = 6
BESIDE = {"LIMNOS__PLANNING__PLANS_MAX": "6"}


class Pair:
    """Two nodes on one store, a table whose plans have parts, and bob, who may read and write the table."""

    def __init__(self, here: Process, other_node: Process) -> None:
        self.nodes = (here, other_node)
        self.admin = [Wire(node.uri, token=node.token) for node in self.nodes]
        self.bob = [Wire(node.uri, user="bob", timeout_s=300) for node in self.nodes]
        self.path = table_with_parts(self.admin[0], "sea")
        rights = [
            {"name": name, "condition": "allow"}
            for name in ("use_catalog", "use_schema", "select_table", "modify_table")
        ]
        self.admin[0].do("POST", f"{GRAVITINO}/users", {"name": "bob"})
        self.admin[0].do(
            "POST",
            f"{GRAVITINO}/roles",
            {
                "name": "crew",
                "properties": {},
                "securableObjects": [{"fullName": "main", "type": "catalog", "privileges": rights}],
            },
        )
        self.admin[0].do("PUT", f"{GRAVITINO}/permissions/users/bob/grant", {"roleNames": ["crew"]})

    def hang_up(self) -> None:
        """Close the connections, so that the next request opens a new one. A plan takes longer than idle connections
        stay open.
        """
        for each in (*self.admin, *self.bob):
            each.close()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The nodes."""
    cluster = PostgresCluster() if request.param == "postgresql" else None
    directory = tmp_path_factory.mktemp(request.param)
    database = cluster.database() if cluster else None
    nodes = [Process(directory / "data", log=directory / f"{i}.log", database=database, env=BESIDE) for i in (0, 1)]
    try:
        for node in nodes:
            node.start()
        node_pair = Pair(nodes[0], nodes[1])
        yield node_pair
        node_pair.hang_up()
    finally:
        for node in nodes:
            node.stop()
        if cluster is not None:
            cluster.stop()


def test_plan_can_be_continued_on_other_node(pair: Pair) -> None:
    """A plan that one node began can be read, fetched and cancelled at the other. After the cancellation it exists at
    neither.
    """
    for number in range(ROUNDS):
        pair.hang_up()
        here, other_wire = pair.bob[number % 2], pair.bob[1 - number % 2]
        plan_answer = plan(here, pair.path)
        at, tasks = f"{pair.path}/plan/{plan_answer.body['plan-id']}", tasks_of(plan_answer)
        pair.hang_up()

        assert len(tasks) == PARTS
        assert tasks_of(other_wire.do("GET", at)) == tasks
        task_files = [
            files_of(wire.do("POST", f"{pair.path}/tasks", {"plan-task": task}))
            for task, wire in zip(tasks, (other_wire, here, other_wire), strict=True)
        ]
        assert [[name.rpartition("/")[2] for name in names] for names in task_files] == [
            [f"{n}.parquet"] for n in range(PARTS)
        ]
        pair.hang_up()
        assert other_wire.ask("DELETE", at).status == 204
        assert here.do("GET", at).body == {"status": "cancelled"}
        assert {
            wire.ask("POST", f"{pair.path}/tasks", {"plan-task": tasks[0]}).status for wire in (here, other_wire)
        } == {404}


def test_restriction_invalidates_plans_on_other_node(pair: Pair) -> None:
    """After a restriction at one node, the other refuses older plans and their tasks at its next request, and a new
    plan has only visible rows. Removing the restriction restores the access.
    """
    for number in range(ROUNDS):
        pair.hang_up()
        here, other_wire = pair.admin[number % 2], pair.bob[1 - number % 2]
        plan_answer = plan(other_wire, pair.path)
        at, body = f"{pair.path}/plan/{plan_answer.body['plan-id']}", {"plan-task": tasks_of(plan_answer)[0]}
        assert other_wire.ask("POST", f"{pair.path}/tasks", body).status == 200

        pair.hang_up()
        here.do("PUT", restriction_path("sea"), {"filter": f"id < {number + 3}", "masks": {}})
        assert other_wire.ask("POST", f"{pair.path}/tasks", body).status == 403
        assert other_wire.ask("GET", at).status == 403
        restricted_plan = plan(other_wire, pair.path)
        assert len(files_of(restricted_plan)) == 1
        assert "/restricted-reads/" in files_of(restricted_plan)[0]
        assert restricted_plan.body["file-scan-tasks"][0]["data-file"]["record-count"] == number + 3  # type: ignore[index]

        pair.hang_up()
        here.do("DELETE", restriction_path("sea"))
        assert other_wire.ask("POST", f"{pair.path}/tasks", body).status == 200
        assert len(tasks_of(plan(other_wire, pair.path))) == PARTS


def test_plan_limit_per_user_holds_across_nodes(pair: Pair) -> None:
    """If a user begins more plans than allowed, at two nodes concurrently, only the allowed number of them is kept.
    Plans of other users are not affected.
    """
    pair.hang_up()
    own = plan(pair.admin[0], pair.path)

    def begin(number: int) -> str:
        wire = Wire(pair.nodes[number % 2].uri, user="bob", timeout_s=300)
        try:
            return str(plan(wire, pair.path).body["plan-id"])
        finally:
            wire.close()

    with ThreadPoolExecutor(CALLERS) as callers:
        plan_ids = list(callers.map(begin, range(2 * CALLERS)))
    pair.hang_up()
    statuses = [pair.bob[0].ask("GET", f"{pair.path}/plan/{each}").status for each in plan_ids]

    assert len(set(plan_ids)) == 2 * CALLERS
    assert statuses.count(200) == 6
    assert set(statuses) == {200, 404}
    assert tasks_of(pair.admin[1].do("GET", f"{pair.path}/plan/{own.body['plan-id']}")) == tasks_of(own)
