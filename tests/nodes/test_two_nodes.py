# SPDX-License-Identifier: Apache-2.0
"""Two nodes without other callers, and clients that race for one table or one name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

import pytest

from tests.nodes.change_stories import STORIES, ChangeTurn, follow
from tests.nodes.wire import (
    PREFIX,
    Wire,
    namespace_body,
    namespace_path,
    properties_body,
    rename_body,
    table_body,
    table_path,
)
from tests.nodes.world import NodesWorld

ROUNDS = 20
CLIENTS = 4
COMMITS = 15
TRIES = 500
T = TypeVar("T")
Metadata = dict[str, object]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_idle_node_sees_next_mutation_of_other_node(
    world: NodesWorld, story: Callable[[NodesWorld], Iterator[ChangeTurn]]
) -> None:
    """A node that reads an unchanged store and caches that result sees the other node's next acknowledged mutation."""
    request_count, wrong = follow(world, story, ROUNDS)

    assert not wrong, f"{len(wrong)} of {request_count} decided wrong:\n" + "\n".join(wrong[:5])
    assert request_count >= ROUNDS


def race(world: NodesWorld, run: Callable[[Wire, int], T], clients: int = CLIENTS) -> list[T]:
    """Run clients concurrently, spread over both nodes, each with its own connection."""
    wires = [Wire(world.nodes[i % 2].uri, user="admin") for i in range(clients)]
    try:
        with ThreadPoolExecutor(clients) as threads:
            return list(threads.map(run, wires, range(clients)))
    finally:
        for wire in wires:
            wire.close()


def load(wire: Wire, path: str) -> Metadata:
    """Load a table's metadata."""
    return cast("Metadata", wire.do("GET", path).body["metadata"])


def test_commits_without_requirements_are_all_applied(world: NodesWorld) -> None:
    """Commits without requirements are all applied, each as a version of its own, whichever node executes them."""
    world.namespace("blind")
    world.table("blind", "t")
    path = table_path("blind", "t")

    def run(wire: Wire, client: int) -> int:
        tries = 0
        for number in range(COMMITS):
            status = 0
            while status != 200 and tries < TRIES:
                status = wire.do("POST", path, properties_body(**{f"p{client}-{number}": "x"}), fine=(409, 503)).status
                tries += 1
        return tries

    race(world, run)

    metadata = load(world.admin(0), path)
    properties = cast("dict[str, str]", metadata["properties"])
    assert {key for key in properties if key[0] == "p"} == {f"p{i}-{n}" for i in range(CLIENTS) for n in range(COMMITS)}
    assert len(cast("list[object]", metadata["metadata-log"])) == CLIENTS * COMMITS
    assert load(world.admin(1), path) == metadata


def test_commits_with_requirements_lose_no_update(world: NodesWorld) -> None:
    """Clients read a table and add a column with a requirement: the table has as many new columns as successful
    commits, and no id is assigned twice.
    """
    world.namespace("checked")
    world.table("checked", "t")
    path = table_path("checked", "t")

    def add_column(wire: Wire, name: str) -> bool:
        metadata = load(wire, path)
        last = cast("int", metadata["last-column-id"])
        schema = cast("list[dict[str, list[object]]]", metadata["schemas"])[-1]
        fields = [*schema["fields"], {"id": last + 1, "name": name, "type": "long", "required": False}]
        body = {
            "requirements": [
                {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last},
                {"type": "assert-current-schema-id", "current-schema-id": metadata["current-schema-id"]},
            ],
            "updates": [
                {"action": "add-schema", "schema": {"type": "struct", "fields": fields}, "last-column-id": last + 1},
                {"action": "set-current-schema", "schema-id": -1},
            ],
        }
        return wire.do("POST", path, body, fine=(409, 503)).status == 200

    def run(wire: Wire, client: int) -> int:
        done = tries = 0
        while done < COMMITS and tries < TRIES:
            done += add_column(wire, f"c{client}_{done}")
            tries += 1
        return done

    done = race(world, run)

    assert done == [COMMITS] * CLIENTS
    metadata = load(world.admin(1), path)
    fields = cast("list[dict[str, list[dict[str, object]]]]", metadata["schemas"])[-1]["fields"]
    assert metadata["last-column-id"] == 1 + CLIENTS * COMMITS
    assert [field["id"] for field in fields] == list(range(1, 2 + CLIENTS * COMMITS))
    assert {field["name"] for field in fields} == {"id"} | {f"c{i}_{n}" for i in range(CLIENTS) for n in range(COMMITS)}


def test_concurrent_creates_of_one_name_succeed_once(world: NodesWorld) -> None:
    """Of clients that create a namespace or table of one name concurrently, one succeeds and all others get
    AlreadyExists.
    """
    world.namespace("names")

    def make(wire: Wire, _: int) -> list[int]:
        statuses = []
        for number in range(COMMITS):
            path = f"{namespace_path('names')}/tables"
            statuses.append(wire.do("POST", path, table_body(f"t{number}"), fine=(409,)).status)
            body = namespace_body("names", f"n{number}", "below")
            statuses.append(wire.do("POST", f"{PREFIX}/namespaces", body, fine=(409,)).status)
        return statuses

    statuses = race(world, make)

    for answers in zip(*statuses, strict=True):
        assert sorted(answers) == [200] + [409] * (CLIENTS - 1)


def test_concurrent_renames_of_one_table_succeed_once(world: NodesWorld) -> None:
    """Of clients that rename one table to different names concurrently, one succeeds, and the table has its name."""
    world.namespace("renamed")
    for number in range(COMMITS):
        world.table("renamed", f"t{number}")

    def rename(wire: Wire, client: int) -> list[bool]:
        return [
            wire.do(
                "POST",
                f"{PREFIX}/tables/rename",
                rename_body(("renamed", f"t{number}"), ("renamed", f"u{number}-{client}")),
                fine=(404,),
            ).status
            == 204
            for number in range(COMMITS)
        ]

    won = race(world, rename)

    for number, answers in enumerate(zip(*won, strict=True)):
        assert sum(answers) == 1
        existing = [
            world.admin(1).ask("HEAD", table_path("renamed", f"u{number}-{client}")).status == 204
            for client in range(CLIENTS)
        ]
        assert existing == list(answers)


def test_drop_and_concurrent_commit_are_serialized(world: NodesWorld) -> None:
    """A commit that races with a drop either precedes the drop or finds no table. No document without a table
    remains.
    """
    world.namespace("agree")
    for number in range(COMMITS):
        world.table("agree", f"t{number}")

    def run(wire: Wire, client: int) -> list[int]:
        statuses = []
        for number in range(COMMITS):
            path = table_path("agree", f"t{number}")
            if client == 0:
                statuses.append(wire.do("DELETE", path).status)
            else:
                statuses.append(wire.do("POST", path, properties_body(x=str(client)), fine=(404, 409)).status)
        return statuses

    statuses = race(world, run)

    assert statuses[0] == [204] * COMMITS
    assert {status for answers in statuses[1:] for status in answers} <= {200, 404, 409}
    listed = world.admin(1).do("GET", f"{namespace_path('agree')}/tables").body["identifiers"]
    assert listed == []
