# SPDX-License-Identifier: Apache-2.0
"""The cost of requests: an authorized read with cached facts takes at most one statement, on both databases, also after
unrelated changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from limnos.http.application import Application
from limnos.http.iceberg.protocol import IcebergProtocol
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.catalog.catalogs import catalog_alter, catalog_enable
from limnos.services.catalog.namespaces import namespace_create, namespace_drop
from limnos.services.catalog.tables import table_load, table_move
from limnos.services.iceberg.tables import table_create
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from limnos.services.identity.groups import member_remove, members_add
from limnos.services.identity.roles import role_create, role_drop
from limnos.services.identity.tokens import token_create, token_revoke
from limnos.services.identity.users import principal_add, principal_remove, user_enable
from limnos.services.request.property_edits import PropertyEdits
from limnos.view.freshness_gate import GATE_READS, GATE_SHARED
from tests.backends import StoreLab
from tests.inprocess import ADMIN, LAKE, MAIN, Node, add_catalog, fill, new_table

PATH = b"/iceberg/v1/lake.main/namespaces/a/tables/t"
ANA = (b"authorization", b"Basic YW5hOg==")
Change = Callable[[Node], Coroutine[Any, Any, object]]


@pytest.fixture
def node(lab: StoreLab) -> Iterator[Node]:
    """A node whose lake has a table that ana may read by a role, and many other objects."""
    node = Node(lab.store)
    lab.run(furnish(node))
    yield node
    node.services.files.close()


async def furnish(node: Node) -> None:
    """Create the table, ana's rights on it, and the unrelated user bob."""
    ctx = node.ctx()
    await fill(ctx)
    await add_catalog(ctx, "side")
    for kind, name in ((Kind.USER, "ana"), (Kind.USER, "bob"), (Kind.GROUP, "staff"), (Kind.GROUP, "others")):
        await principal_add(ctx, metalake=LAKE, kind=kind, name=name)
    await members_add(ctx, metalake=LAKE, group="staff", users=("ana",))
    await members_add(ctx, metalake=LAKE, group="others", users=("bob",))
    await namespace_create(ctx, MAIN, levels=("a",), properties={})
    await table_create(ctx, MAIN, namespace=("a",), request=new_table("t"))
    await table_create(ctx, MAIN, namespace=("a",), request=new_table("u"))
    use = PrivilegeRequest(
        Kind.CATALOG,
        "main",
        tuple((each, GrantCondition.ALLOW) for each in (Privilege.USE_CATALOG, Privilege.USE_SCHEMA)),
    )
    select = PrivilegeRequest(Kind.TABLE, "main.a.t", ((Privilege.SELECT_TABLE, GrantCondition.ALLOW),))
    await role_create(ctx, metalake=LAKE, name="readers", properties={}, privilege_requests=(use, select))
    await role_create(ctx, metalake=LAKE, name="idle", properties={}, privilege_requests=())
    await roles_give(ctx, metalake=LAKE, kind=Kind.GROUP, name="staff", roles=("readers",))
    await roles_give(ctx, metalake=LAKE, kind=Kind.USER, name="bob", roles=("idle",))


async def read(node: Node) -> None:
    """Load the table as ana."""
    await node.ctx("ana").read(MAIN, lambda request_view: table_load(request_view, ("a",), "t"))


def cost(lab: StoreLab, node: Node, work: Coroutine[Any, Any, object]) -> int:
    """Return the number of gate and load statements that work takes."""
    before = node.store.statements
    lab.run(work)
    statement_count: int = node.store.statements - before
    return statement_count


async def _other_role(node: Node) -> None:
    privilege_request = PrivilegeRequest(Kind.TABLE, "main.a.u", ((Privilege.SELECT_TABLE, GrantCondition.ALLOW),))
    await privileges_grant(node.ctx(), metalake=LAKE, role="idle", privilege_request=privilege_request)


async def _token(node: Node) -> None:
    token, _ = await token_create(node.ctx(), user="bob", name="n", expires_in_s=None)
    await token_revoke(node.ctx(), token_id=token.id)


UNRELATED: dict[str, Change] = {
    "a table beside it": lambda node: table_create(node.ctx(), MAIN, namespace=("a",), request=new_table("v")),
    "a rename beside it": lambda node: table_move(node.ctx(), MAIN, source=("a", "u"), target=("a", "w")),
    "a namespace beside it": lambda node: namespace_create(node.ctx(), MAIN, levels=("b",), properties={}),
    "another catalog": lambda node: add_catalog(node.ctx(), "third"),
    "another catalog disabled": lambda node: catalog_enable(node.ctx(), metalake=LAKE, name="side", in_use=False),
    "a user added": lambda node: principal_add(node.ctx(), metalake=LAKE, kind=Kind.USER, name="eve"),
    "a user removed": lambda node: principal_remove(node.ctx(), metalake=LAKE, kind=Kind.USER, name="bob"),
    "a user disabled": lambda node: user_enable(node.ctx(), metalake=LAKE, name="bob", enabled=False),
    "a group removed": lambda node: principal_remove(node.ctx(), metalake=LAKE, kind=Kind.GROUP, name="others"),
    "somebody left a group": lambda node: member_remove(node.ctx(), metalake=LAKE, group="others", user="bob"),
    "a grant to another role": _other_role,
    "another role dropped": lambda node: role_drop(node.ctx(), metalake=LAKE, name="idle"),
    "a role given to another": lambda node: roles_give(
        node.ctx(), metalake=LAKE, kind=Kind.USER, name="bob", roles=("readers",)
    ),
    "a token made and revoked": _token,
}


def test_warm_read_costs_at_most_one_statement(lab: StoreLab, node: Node) -> None:
    """A cached authorized read takes at most one statement."""
    lab.run(read(node))

    costs = [cost(lab, node, read(node)) for _ in range(5)]

    assert max(costs) <= 1


@pytest.mark.parametrize("change", UNRELATED)
def test_read_after_unrelated_change_takes_one_statement(lab: StoreLab, node: Node, change: str) -> None:
    """The first read after an unrelated change takes one statement."""
    other = Node(lab.open())
    lab.run(read(node))
    lab.run(UNRELATED[change](other))

    statement_count = cost(lab, node, read(node))

    assert statement_count == 1
    other.services.files.close()


def test_related_change_is_read_once(lab: StoreLab, node: Node) -> None:
    """After the table is renamed and renamed back, a read loads the changed facts once, and the next read uses the
    cache.
    """
    lab.run(read(node))
    lab.run(table_move(node.ctx(), MAIN, source=("a", "t"), target=("a", "x")))
    lab.run(table_move(node.ctx(), MAIN, source=("a", "x"), target=("a", "t")))

    first, second = cost(lab, node, read(node)), cost(lab, node, read(node))

    assert 1 < first <= 6
    assert second <= 1


def test_concurrent_reads_share_statements(lab: StoreLab, node: Node) -> None:
    """Fifty concurrent reads take far fewer statements; on PostgreSQL one or two."""
    lab.run(read(node))
    shared = GATE_SHARED[()]

    async def many() -> None:
        await asyncio.gather(*(read(node) for _ in range(50)))

    statement_count = cost(lab, node, many())

    assert statement_count <= 2 if not node.store.inline else statement_count <= 50
    if not node.store.inline:
        assert GATE_SHARED[()] - shared >= 48


def test_sqlite_read_without_commits_takes_no_statement(lab: StoreLab, node: Node) -> None:
    """On SQLite a read takes no statement until a process commits."""
    lab.run(read(node))
    lab.run(read(node))
    quiet = cost(lab, node, read(node))

    other = Node(lab.open())
    lab.run(namespace_create(other.ctx(), MAIN, levels=("z",), properties={}))

    assert quiet == (0 if node.store.inline else 1)
    assert cost(lab, node, read(node)) == 1
    other.services.files.close()


def reasons() -> dict[str, float]:
    """Return the gate's metric of statements by reason."""
    return {str(key[0]): value for key, value in GATE_READS.items()}


def count_reads_since(before: dict[str, float]) -> dict[str, float]:
    """Return the increase of the metric since an earlier value."""
    return {
        reason: count - before.get(reason, 0) for reason, count in reasons().items() if count != before.get(reason, 0)
    }


def test_freshness_reads_are_counted_by_reason(lab: StoreLab, node: Node) -> None:
    """An uncached read asks the gate again because it has learned more zones; a cached read asks once. The metric
    counts each with its reason.
    """
    cold = Node(lab.open())
    before = reasons()
    lab.run(read(cold))
    first = count_reads_since(before)
    lab.run(namespace_create(node.ctx(), MAIN, levels=("z",), properties={}))
    before = reasons()

    lab.run(read(cold))

    assert first["arrival"] == 1
    assert first["resolved"] >= 1
    assert count_reads_since(before) == {"arrival": 1}
    cold.services.files.close()


def test_catalog_rename_causes_a_second_freshness_read(lab: StoreLab, node: Node) -> None:
    """After a rename of its catalog a request needs other zones than it asked for. The metric counts the second gate
    read with its own reason.
    """
    lab.run(read(node))
    other = Node(lab.open())

    async def exchange() -> None:
        for old, new in (("main", "away"), ("side", "main"), ("away", "side")):
            await catalog_alter(other.ctx(), metalake=LAKE, name=old, edits=PropertyEdits(name=new))

    lab.run(exchange())
    before = reasons()
    with pytest.raises((NotFound, PermissionDenied)):
        lab.run(read(node))

    assert count_reads_since(before)["arrival"] == 1
    assert sum(count_reads_since(before).values()) >= 2
    other.services.files.close()


# ------------------------------------------------------------------------------------------- over the wire


async def call(application: Application, method: str = "GET", path: bytes = PATH) -> tuple[int, bytes]:
    """Call the ASGI application as a server does."""
    sent: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
        sent.append(message)

    scope = {"type": "http", "method": method, "raw_path": path, "headers": [ANA], "query_string": b""}
    await application(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_warm_request_costs_at_most_one_statement(lab: StoreLab, node: Node, method: str) -> None:
    """From the request's bytes to the response's, a cached read by a role takes at most one statement."""
    application = Application(node.services, [IcebergProtocol()], body_bytes_max=1000, request_timeout_s=30)
    lab.run(call(application, method))
    other = Node(lab.open())
    lab.run(namespace_create(other.ctx(ADMIN), MAIN, levels=("z",), properties={}))
    lab.run(namespace_drop(other.ctx(ADMIN), MAIN, levels=("z",)))

    before = node.store.statements
    status, body = lab.run(call(application, method))

    assert status == (200 if method == "GET" else 204)
    assert node.store.statements - before <= 1
    assert (b'"metadata-location"' in body) is (method == "GET")
    other.services.files.close()


def test_concurrent_http_requests_share_statements(lab: StoreLab, node: Node) -> None:
    """Thirty concurrent requests take one or two statements on PostgreSQL, at most one each on SQLite."""
    application = Application(node.services, [IcebergProtocol()], body_bytes_max=1000, request_timeout_s=30)
    lab.run(call(application))
    before = node.store.statements

    async def many() -> list[tuple[int, bytes]]:
        return await asyncio.gather(*(call(application) for _ in range(30)))

    responses = lab.run(many())

    assert {status for status, _ in responses} == {200}
    assert node.store.statements - before <= (30 if node.store.inline else 2)
