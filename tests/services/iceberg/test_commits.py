# SPDX-License-Identifier: Apache-2.0
"""Concurrent commits: writers of one table wait in a queue, and none is refused because of their number."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from limnos.model.errors import CommitConflict, LimnosError
from limnos.services.iceberg import commits
from limnos.services.iceberg.commits import LOST_RACES, table_commit
from limnos.services.identity.users import user_enable
from tests.inprocess import LAKE, MAIN, Node
from tests.services.conftest import ServiceDesk

WRITERS = 64


def setting(name: str) -> list[object]:
    """Return the update that sets one property."""
    return [{"action": "set-properties", "updates": {name: "x"}}]


def commit(node: Node, name: str, requirements: list[object] | None = None) -> Any:  # noqa: ANN401 - a coroutine
    """Set a property of table a.t."""
    return table_commit(
        node.ctx(), MAIN, namespace=("a",), name="t", requirements=requirements or [], updates=setting(name)
    )


def properties(desk: ServiceDesk) -> dict[str, str]:
    """Return the properties in the stored document."""
    ((body,),) = desk.rows("SELECT body FROM document")
    stored_properties: dict[str, str] = msgspec.json.decode(bytes(body))["properties"]
    return stored_properties


@pytest.fixture
def table(desk: ServiceDesk) -> ServiceDesk:
    """A desk with the table a.t."""
    desk.namespace("a")
    desk.table("a", "t")
    return desk


def crowd(desk: ServiceDesk, nodes: list[Node]) -> list[object]:
    """Run many commits concurrently on several nodes. Returns the errors."""

    async def all_at_once() -> list[object]:
        work = [commit(nodes[number % len(nodes)], f"p{number}") for number in range(WRITERS)]
        return [each for each in await asyncio.gather(*work, return_exceptions=True) if isinstance(each, Exception)]

    return desk.run(all_at_once())


def test_concurrent_commits_to_one_table_are_queued(table: ServiceDesk) -> None:
    """64 concurrent commits to one table succeed. If all are made on one node, no commit is built twice."""
    lost = LOST_RACES[()]

    assert crowd(table, [table.node]) == []
    assert properties(table).keys() >= {f"p{number}" for number in range(WRITERS)}
    assert LOST_RACES[()] == lost
    assert len(table.node.services.lines) == 0


def test_concurrent_commits_on_two_nodes_all_succeed(table: ServiceDesk) -> None:
    """Concurrent commits on two nodes, each with its own queue, all succeed. A commit that loses the race between nodes
    is built again.
    """
    other = Node(table.lab.open())

    assert crowd(table, [table.node, other]) == []
    assert properties(table).keys() >= {f"p{number}" for number in range(WRITERS)}


def test_failed_requirement_is_refused_without_queueing(table: ServiceDesk) -> None:
    """A commit whose requirement fails is refused immediately, without waiting in the queue."""
    demand: list[object] = [{"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}]

    async def story() -> None:
        ((number,),) = table.rows("SELECT node_id FROM document")
        async with table.node.services.lines.turn(number):
            with pytest.raises(CommitConflict, match="Requirement failed"):
                await asyncio.wait_for(commit(table.node, "p", demand), 300)

    table.run(story())


def test_expired_commit_does_not_delay_the_queue(table: ServiceDesk) -> None:
    """A commit whose deadline passes leaves the queue, writes nothing, and does not delay the other commits."""

    async def story() -> None:
        ((number,),) = table.rows("SELECT node_id FROM document")
        async with table.node.services.lines.turn(number):
            waiting = asyncio.create_task(commit(table.node, "late"))
            for _ in range(50):
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await commit(table.node, "next")

    table.run(story())

    assert "late" not in properties(table)
    assert "next" in properties(table)


def test_commit_that_loses_races_is_rebuilt_until_success(table: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that loses several races is rebuilt on each newer state, until it succeeds."""
    other = Node(table.lab.open())
    before = LOST_RACES[()]
    rivals = iter(range(20))
    build = commits.change_apply

    async def overtaken(*args: Any) -> Any:  # noqa: ANN401 - as the real one
        built = await build(*args)
        if args[0] is table.node.services and (number := next(rivals, None)) is not None:
            await commit(other, f"r{number}")
        return built

    monkeypatch.setattr(commits, "change_apply", overtaken)

    table.run(commit(table.node, "mine"))

    assert properties(table).keys() >= {"mine", *[f"r{number}" for number in range(20)]}
    assert LOST_RACES[()] == before + 20


def test_access_change_does_not_rewrite_metadata_file(table: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """If only an access revision changed meanwhile, the commit is authorized again, and its written metadata file is
    used.
    """
    written: list[str] = []
    real = table.node.services.files.write
    moving = iter([False])

    async def write(location: str, data: bytes, properties: Any, *, first: bool = False) -> None:  # noqa: ANN401 - as there
        written.append(location)
        for _ in moving:
            other = ServiceDesk(table.lab)
            other.node.store = other.node.services.store = table.lab.open()
            await user_enable(other.ctx(), metalake=LAKE, name="bob", enabled=False)
        await real(location, data, properties, first=first)

    monkeypatch.setattr(table.node.services.files, "write", write)

    table.run(commit(table.node, "mine"))

    assert len(written) == 1
    assert "mine" in properties(table)


def test_commit_is_refused_after_the_time_limit(table: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that loses every race is refused after the server's time limit."""

    async def never(*_: object, **__: object) -> bool:
        return False

    monkeypatch.setattr(commits, "_swap", never)
    monkeypatch.setattr(commits, "PATIENCE_S", -1.0)

    with pytest.raises(LimnosError, match="Too many commits to this table at once"):
        table.run(commit(table.node, "mine"))
