# SPDX-License-Identifier: Apache-2.0
"""Rights, owners and places of objects that change while a report about access is read: it has no object from after
the change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from limnos.services.identity import access_subtrees
from limnos.services.request.context import Context
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import SCHEMA, SPACES, make_space, make_table, space_path

ACCESS = f"{OWN}/metalakes/lake/access"
MOVE = f"{OWN}/metalakes/lake/catalogs/main/move"
READER = "use_catalog use_schema select_table"


@contextmanager
def before_uncached_read(
    patch: pytest.MonkeyPatch, act: Callable[[], Awaitable[None]], *, number: int = 1
) -> Iterator[list[int]]:
    """Execute `act` before a request's uncached read with this number. The list has the numbers of all reads."""
    numbers: list[int] = []
    real = Context.look_up

    async def look_up(self: Context, load: Callable[[], object], **named: bool) -> object:
        numbers.append(len(numbers) + 1)
        if numbers[-1] == number:
            patches.setattr(Context, "look_up", real)
            await act()
            patches.setattr(Context, "look_up", look_up)
        return await real(self, load, **named)  # type: ignore[arg-type]

    with patch.context() as patches:
        patches.setattr(Context, "look_up", look_up)
        yield numbers


async def send(node: DriverNode, method: str, target: str, body: object = None) -> None:
    """Send a request of the administrator, which must succeed."""
    answer = await node.answer(method, target, body)
    assert answer.status in (200, 204), answer


async def create_table(node: DriverNode, *levels: str) -> None:
    """Create a table."""
    await send(node, "POST", f"{space_path(*levels[:-1])}/tables", {"name": levels[-1], "schema": SCHEMA})


def reached(node: DriverNode, path: str, *, user: str = "ana") -> list[str]:
    """Return the paths of the objects that a user can access below an object."""
    objects = node.done("GET", f"{ACCESS}/reach?path={path}", user=user)["objects"]
    return [".".join(each["path"]) for each in objects]


def test_reach_has_no_object_created_after_a_revoke(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who loses a role while the reach is read sees no table that is created after that."""
    make_table(node, "a", "t")
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    role = grant(node, "ana", "use_schema select_table", kind="schema", on="main.a")
    assert "main.a.t" in reached(node, "main.a")

    async def act() -> None:
        await send(node, "PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": [role]})
        await create_table(node, "a", "late")

    with before_uncached_read(monkeypatch, act) as reads:
        paths = reached(node, "main.a")

    assert reads
    assert paths == []


def test_reach_has_no_object_created_after_a_change_of_owner(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the owner of a namespace changes after it was read and before its tables are read, the former owner sees no
    table that is created after that.
    """
    make_table(node, "a", "t")
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    owners = f"{API}/lake/owners/SCHEMA/main.a"
    node.done("PUT", owners, {"name": "ana", "type": "USER"})
    assert "main.a.t" in reached(node, "main.a")

    async def act() -> None:
        await send(node, "PUT", owners, {"name": "admin", "type": "USER"})
        await create_table(node, "a", "late")

    with before_uncached_read(monkeypatch, act, number=2) as reads:
        paths = reached(node, "main.a")

    assert len(reads) > 1
    assert paths == []


def test_reach_has_no_object_created_in_a_moved_namespace(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace that moves to a hidden place while the reach is read adds no table that is created there."""
    make_table(node, "a", "deep", "t")
    make_space(node, "b")
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "use_schema select_table", kind="schema", on="main.a")
    assert "main.a.deep.t" in reached(node, "main.a")
    monkeypatch.setattr(access_subtrees, "AT_ONCE", 1)

    async def act() -> None:
        body = {"kind": "namespace", "source": ["a", "deep"], "target": ["b", "deep"]}
        await send(node, "POST", MOVE, body)
        await create_table(node, "b", "deep", "late")

    with before_uncached_read(monkeypatch, act, number=3) as reads:  # after `a` and `a.deep`, before its tables
        paths = reached(node, "main.a")

    assert len(reads) > 2
    assert paths == ["main.a"]


def test_consequence_of_a_grant_counts_no_object_of_a_moved_namespace(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the namespace moves to a hidden place while the consequence is read, and another gets its name, the objects
    of the other are counted.
    """
    make_space(node, "a")
    make_space(node, "a", "x")
    make_space(node, "b")
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "use_schema manage_grants", kind="schema", on="main.a")
    role = grant(node, "bob", "use_catalog", kind="catalog", on="main")
    body = {
        "change": "grant",
        "role": role,
        "kind": "schema",
        "path": ["main", "a", "x"],
        "privileges": [{"name": "use_schema"}],
    }
    assert node.done("POST", f"{ACCESS}/what-if", body, user="ana")["objects"] == 1

    async def act() -> None:
        await send(node, "POST", MOVE, {"kind": "namespace", "source": ["a", "x"], "target": ["b", "x"]})
        await send(node, "POST", SPACES, {"namespace": ["a", "x"]})
        for name in ("one", "two"):
            await create_table(node, "b", "x", name)

    with before_uncached_read(monkeypatch, act) as reads:
        consequence = node.done("POST", f"{ACCESS}/what-if", body, user="ana")

    assert reads
    assert consequence["objects"] == 1


def test_consequence_of_an_assignment_is_of_the_role_that_has_the_name_at_the_end(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the role is dropped and created again without grants while the consequence is read, no object is counted."""
    make_table(node, "a", "t")
    role = grant(node, "ana", READER, kind="catalog", on="main")
    node.ask("POST", f"{API}/lake/users", {"name": "bob"})
    body = {"change": "assign", "roles": [role], "user": "bob"}
    assert node.done("POST", f"{ACCESS}/what-if", body)["objects"] == 3

    async def act() -> None:
        await send(node, "DELETE", f"{API}/lake/roles/{role}")
        await send(node, "POST", f"{API}/lake/roles", {"name": role, "properties": {}, "securableObjects": []})

    with before_uncached_read(monkeypatch, act, number=3) as reads:
        consequence = node.done("POST", f"{ACCESS}/what-if", body)

    assert len(reads) > 2
    assert (consequence["objects"], consequence["lines"]) == (0, [])
