# SPDX-License-Identifier: Apache-2.0
"""Many concurrent callers on two nodes: on one table, creates beside grants, and grants alone. No request is refused
because of their number.

A refusal that a client would retry counts as a refusal. The summary of the run has the numbers of requests and
refusals.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.nodes.wire import (
    GRAVITINO,
    Wire,
    namespace_path,
    properties_body,
    rights_body,
    rights_path,
    table_body,
    table_path,
)
from tests.nodes.world import NodesWorld

WRITERS = 64
COMMITS = 3
CREATORS = GRANTERS = 8
TURNS = 6
Statuses = Counter[int]


Report = Callable[[str, object], None]


def crowd(
    world: NodesWorld, title: str, *, work: list[Callable[[Wire], list[int]]], report: Report, nodes: int = 2
) -> Statuses:
    """Let callers send requests concurrently on both nodes, each on its own connection. Returns the number of answers
    by status.
    """
    wires = [Wire(world.nodes[i % nodes].uri, user="admin") for i in range(len(work))]
    start_time = time.monotonic()
    try:
        with ThreadPoolExecutor(len(work)) as threads:
            futures = [threads.submit(one, wire) for one, wire in zip(work, wires, strict=True)]
            statuses = Counter(status for each in futures for status in each.result())
    finally:
        for wire in wires:
            wire.close()
    refused = sum(count for status, count in statuses.items() if status >= 300)
    store = "PostgreSQL" if "://" in world.database else "SQLite"
    report(
        "crowd",
        f"{title}, nodes: {nodes}, {store}: {statuses.total()} asked, refused {refused},"
        f" {time.monotonic() - start_time:.1f} s",
    )
    return statuses


def committer(number: int, space: str) -> Callable[[Wire], list[int]]:
    """Set properties that no other caller sets."""
    return lambda wire: [
        wire.ask("POST", table_path(space, "t"), properties_body(**{f"p{number}-{turn}": "x"})).status
        for turn in range(COMMITS)
    ]


def creator(number: int, space: str) -> Callable[[Wire], list[int]]:
    """Create tables in one namespace."""
    path = f"{namespace_path(space)}/tables"
    return lambda wire: [wire.ask("POST", path, table_body(f"t{number}_{turn}")).status for turn in range(TURNS)]


def granter(number: int, space: str) -> Callable[[Wire], list[int]]:
    """Grant a privilege on a namespace to a role of the caller's own, and revoke it, alternately."""
    paths = [rights_path(f"{space}{number}", "schema", f"main.{space}", verb) for verb in ("grant", "revoke")]
    body = rights_body("select_table")
    return lambda wire: [wire.ask("PUT", paths[turn % 2], body).status for turn in range(TURNS)]


def roles(world: NodesWorld, space: str, count: int) -> None:
    """Create a namespace, and a role for each granter."""
    world.namespace(space)
    for number in range(count):
        world.role(f"{space}{number}")


@pytest.mark.parametrize("nodes", [1, 2])
def test_concurrent_writers_of_one_table_all_succeed(world: NodesWorld, record_property: Report, nodes: int) -> None:
    """64 callers set properties of one table: all commits succeed, and the table has every property."""
    world.namespace(f"crowd{nodes}")
    world.table(f"crowd{nodes}", "t")
    work = [committer(number, f"crowd{nodes}") for number in range(WRITERS)]

    statuses = crowd(world, "64 writers of one table", work=work, report=record_property, nodes=nodes)

    assert statuses == {200: WRITERS * COMMITS}
    metadata = world.admin(1).do("GET", table_path(f"crowd{nodes}", "t")).body["metadata"]
    assert isinstance(metadata, dict)
    assert len([name for name in metadata["properties"] if name[0] == "p"]) == WRITERS * COMMITS


def test_concurrent_creates_and_grants_all_succeed(world: NodesWorld, record_property: Report) -> None:
    """8 callers create tables while 8 grant and revoke. All requests succeed, also those whose permits become stale
    repeatedly.
    """
    roles(world, "beside", GRANTERS)
    work = [creator(number, "beside") for number in range(CREATORS)]
    work += [granter(number, "beside") for number in range(GRANTERS)]

    statuses = crowd(world, "8 creators and 8 granters", work=work, report=record_property)

    assert statuses == {200: (CREATORS + GRANTERS) * TURNS}


def test_concurrent_grants_on_one_object_all_succeed(world: NodesWorld, record_property: Report) -> None:
    """16 callers grant and revoke on one object. No request is refused, and each role has the result of its last
    request.
    """
    roles(world, "alone", 2 * GRANTERS)

    statuses = crowd(
        world, "16 granters", work=[granter(number, "alone") for number in range(2 * GRANTERS)], report=record_property
    )

    assert statuses == {200: 2 * GRANTERS * TURNS}
    for number in range(2 * GRANTERS):
        role = world.admin(number % 2).do("GET", f"{GRAVITINO}/roles/alone{number}").body["role"]
        assert isinstance(role, dict)
        assert role["securableObjects"] == []
