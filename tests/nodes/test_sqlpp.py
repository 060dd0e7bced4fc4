# SPDX-License-Identifier: Apache-2.0
"""SQL++ on two nodes: a statement at one node sees creates, drops and revokes of the other, and concurrent changes of
one dataverse are consistent.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.nodes.change_stories import ChangeTurn, FollowUpRequest, follow
from tests.nodes.wire import Wire, rights_body, rights_path
from tests.nodes.world import NodesWorld

ROUNDS = min(20, int(os.environ.get("LIMNOS_TEST_ROUNDS", "20")))
SERVICE = "/query/service"
RIVALS = 4
TURNS = 15


def run_statement(admin: Wire, statement: str) -> None:
    """Execute statements that must succeed."""
    admin.do("POST", SERVICE, {"statement": statement})


def asks(who: str, status: int, statement: str) -> FollowUpRequest:
    """Return a request with statements, and its expected status."""
    return FollowUpRequest(who=who, status=status, method="POST", path=SERVICE, body={"statement": statement})


def dataverses(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Create a dataverse and drop it: the other node sees both it and its metadata, or neither."""
    admin = world.nodes[0].token
    while True:
        yield ChangeTurn(
            "create dataverse",
            lambda wire: run_statement(wire, "create dataverse made.here"),
            (asks(admin, 200, "use made.here"),),
        )
        yield ChangeTurn(
            "drop dataverse",
            lambda wire: run_statement(wire, "drop dataverse made.here"),
            (asks(admin, 400, "use made.here"),),
        )


def objects(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Create and drop a view, a function, a synonym and a type: the other node can use each, or reports it as
    missing.
    """
    admin = world.nodes[0].token
    run_statement(world.admin(), "create dataverse things")
    definitions = {
        "view v as select value 1": ("view v", "select * from things.v x"),
        "function f() { 1 }": ("function f@0", "things.f()"),
        "synonym s for Metadata.`Dataset`": ("synonym s", "select value x.DatasetName from things.s x limit 1"),
        "type t as { id: int }": ("type t", ""),
    }
    while True:
        for create, (drop, uses) in definitions.items():
            kind, _, rest = create.partition(" ")
            name = f"{kind} things.{rest}"
            used = (asks(admin, 200, uses),) if uses else ()
            yield ChangeTurn(
                f"create {kind}",
                lambda wire, name=name: run_statement(wire, f"create {name}"),
                (*used, asks(admin, 400, f"create {name}")),
            )
            kind, _, rest = drop.partition(" ")
            name = f"{kind} things.{rest}"
            used = (asks(admin, 400, uses),) if uses else ()
            yield ChangeTurn(
                f"drop {kind}",
                lambda wire, name=name: run_statement(wire, f"drop {name}"),
                (*used, asks(admin, 400, f"drop {name}")),
            )


def rights(world: NodesWorld) -> Iterator[ChangeTurn]:
    """Revoke a privilege and grant it again: on a view, on a function, and on creating objects in a dataverse."""
    run_statement(
        world.admin(), "create dataverse shown; create view shown.v as select value 1; create function shown.f() { 1 }"
    )
    user = world.reader("sue", schema="shown", selects=False)
    privileges = (
        ("view", "main.shown.v", "select_view", "select * from shown.v x", 403),
        ("schema", "main.shown", "execute_function", "shown.f()", 400),
        ("schema", "main.shown", "create_table", "create type shown.t if not exists as { id: int }", 403),
    )
    while True:
        for kind, name, privilege, statement, refused in privileges:
            grant, revoke = (rights_path("sue_role", kind, name, verb) for verb in ("grant", "revoke"))
            body = rights_body(privilege)
            yield ChangeTurn(
                f"grant {privilege}",
                lambda wire, path=grant, body=body: wire.do("PUT", path, body),
                (asks(user, 200, statement),),
            )
            yield ChangeTurn(
                f"revoke {privilege}",
                lambda wire, path=revoke, body=body: wire.do("PUT", path, body),
                (asks(user, refused, statement),),
            )


@pytest.mark.parametrize("story", [dataverses, objects, rights], ids=lambda story: story.__name__)
def test_change_binds_next_statement_on_other_node(
    world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]]
) -> None:
    """After one node has acknowledged a change, the next statement on the other node has the correct status."""
    request_count, wrong = follow(world, story, ROUNDS)

    assert not wrong, f"{len(wrong)} of {request_count} decided wrong:\n" + "\n".join(wrong[:5])
    assert request_count >= ROUNDS


def test_concurrent_dataverse_creates_and_drops_stay_consistent(world: NodesWorld) -> None:
    """Each concurrent statement is executed, or refused according to the current state. At the end both nodes give the
    same answer, and one drop removes everything.
    """

    def rival(number: int) -> Counter[str]:
        wire = Wire(world.nodes[number % 2].uri, token=world.nodes[0].token)
        outcomes: Counter[str] = Counter()
        try:
            for turn in range(TURNS):
                for text in (
                    "create dataverse fought.here if not exists",
                    f"create type fought.here.t{number}_{turn} as {{ id: int }}",
                    "drop dataverse fought.here if exists",
                ):
                    answer = wire.ask("POST", SERVICE, {"statement": text})
                    errors = answer.body.get("errors")
                    outcomes[
                        "done" if answer.status == 200 else str(errors)[:200] if answer.status != 400 else "refused"
                    ] += 1
        finally:
            wire.close()
        return outcomes

    with ThreadPoolExecutor(RIVALS) as threads:
        outcomes = sum(threads.map(rival, range(RIVALS)), Counter())

    assert set(outcomes) <= {"done", "refused"}, outcomes
    assert outcomes["done"] >= RIVALS * TURNS
    for node in (0, 1):
        run_statement(world.admin(node), "drop dataverse fought.here if exists")
    left = "select value d.DataverseName from Metadata.`Dataverse` d where d.DataverseName like 'fought%'"
    types = "select value t from Metadata.`Datatype` t where t.DataverseName like 'fought%'"
    for node in (0, 1):
        for query in (left, types):
            assert world.admin(node).do("POST", SERVICE, {"statement": query}).body["results"] == []
