# SPDX-License-Identifier: Apache-2.0
"""Transactions over several catalogs of a metalake, on SQLite and PostgreSQL: all or nothing for every reader, with
rights revoked meanwhile, opposite orders of catalogs, and two nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from limnos.model.errors import CommitConflict, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.iceberg.commit_values import CommitChange
from limnos.services.iceberg.commits import LOST_RACES
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.transactions.operations import TableCommitOperation, TableCreateOperation, TableDropOperation
from limnos.services.transactions.transactions import joint_transaction_execute
from tests.backends import StoreLab
from tests.inprocess import LAKE, MAIN, Node, add_catalog, fill, new_table
from tests.services.conftest import ServiceDesk

SIDE = RequestScope(LAKE, "side")
WEST = RequestScope(LAKE, "west")
CATALOGS = (MAIN, SIDE, WEST)


@pytest.fixture
def wide(lab: StoreLab) -> ServiceDesk:
    """Three catalogs, each with namespace a and table t, on each store."""
    desk = ServiceDesk(lab)
    desk.run(fill(desk.ctx()))
    for scope in (SIDE, WEST):
        desk.run(add_catalog(desk.ctx(), scope.catalog or ""))
    desk.users("bob")
    for scope in CATALOGS:
        desk.namespace("a", scope=scope)
        desk.table("a", "t", scope=scope)
    return desk


def marking(scope: RequestScope, mark: str, *, requirements: list[object] | None = None) -> Any:  # noqa: ANN401 - a pair
    """Return the operation that sets a property of the table of a catalog."""
    updates: list[object] = [{"action": "set-properties", "updates": {"mark": mark}}]
    return scope, TableCommitOperation(("a", "t"), CommitChange(requirements or [], updates))


def together(node: Node, mark: str, *scopes: RequestScope, user: str = "admin") -> Any:  # noqa: ANN401 - a coroutine
    """Set a property of the tables of several catalogs."""
    return joint_transaction_execute(node.ctx(user), [marking(scope, mark) for scope in scopes])


def marks(desk: ServiceDesk) -> list[str | None]:
    """Return the property of each table, by catalog."""
    bodies = dict(desk.rows("SELECT node_id, body FROM document"))
    order = desk.rows(
        "SELECT n.id FROM node n JOIN node c ON c.id = n.zone WHERE n.name = 't' AND n.deleted = 0 ORDER BY c.id"
    )
    return [msgspec.json.decode(bytes(bodies[node_id]))["properties"].get("mark") for (node_id,) in order]


def clocks(desk: ServiceDesk) -> dict[int, int]:
    """Return the revision of each zone."""
    return dict(desk.rows("SELECT zone, revision FROM clock"))


def before_the_store(node: Node, patch: pytest.MonkeyPatch, *works: Callable[[], Any]) -> None:
    """Run callbacks between a decision and its transaction, each once."""
    left = iter(works)
    real = node.store.submit

    async def submit(permit: Any, mutation: Any, *, on_begin: Any) -> Any:  # noqa: ANN401 - as the store has it
        work = next(left, None)
        if work is not None:
            await work()
        return await real(permit, mutation, on_begin=on_begin)

    patch.setattr(node.store, "submit", submit)


def test_each_catalog_takes_one_revision(wide: ServiceDesk) -> None:
    """Commits in three catalogs take the next revision of each, and the answer has these revisions."""
    before = clocks(wide)

    revisions, documents = wide.run(together(wide.node, "x", WEST, MAIN, SIDE))

    assert marks(wide) == ["x"] * 3
    after = clocks(wide)
    moved = {zone for zone in after if after[zone] != before[zone]}
    assert sorted(revisions) == ["main", "side", "west"]
    assert len(moved) == 3
    assert all(after[zone] == before[zone] + 1 for zone in moved)
    assert sorted(revisions.values()) == sorted(after[zone] for zone in moved)
    assert len({document.metadata_location for document in documents if document is not None}) == 3


def test_change_feed_has_rows_of_each_catalog(wide: ServiceDesk) -> None:
    """The change rows of a transaction of several catalogs are in the zones of their own catalogs."""
    wide.run(together(wide.node, "x", MAIN, SIDE))

    rows = wide.rows("SELECT h.zone, n.zone FROM change h JOIN node n ON n.id = h.node_id WHERE h.operation = 'commit'")
    assert len(rows) == 2
    assert all(zone == of_node for zone, of_node in rows)


def test_created_tables_of_two_catalogs_do_not_share_an_id(wide: ServiceDesk) -> None:
    """Tables that one transaction creates in two catalogs, and commits to, are two tables with their own metadata."""
    operations: list[Any] = [(scope, TableCreateOperation(("a", "new"), new_table("new"))) for scope in (MAIN, SIDE)]
    wide.run(joint_transaction_execute(wide.ctx(), operations))

    rows = wide.rows("SELECT n.zone, d.uuid FROM node n JOIN document d ON d.node_id = n.id WHERE n.name = 'new'")
    assert len({zone for zone, _ in rows}) == len({uuid for _, uuid in rows}) == 2


def test_failed_requirement_in_one_catalog_changes_none(wide: ServiceDesk) -> None:
    """A requirement that fails in the last catalog leaves the others as they were, and names its table."""
    never = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}]
    before = clocks(wide)
    operations = [marking(MAIN, "x"), marking(SIDE, "x", requirements=never)]

    with pytest.raises(CommitConflict, match=r"table a.t"):
        wide.run(joint_transaction_execute(wide.ctx(), operations))

    assert marks(wide) == [None] * 3
    assert clocks(wide) == before


@pytest.mark.parametrize("revoked_scope", [MAIN, SIDE], ids=str)
def test_right_revoked_in_one_catalog_refuses_all(
    wide: ServiceDesk, monkeypatch: pytest.MonkeyPatch, revoked_scope: RequestScope
) -> None:
    """If another node revokes a right in one of two catalogs after the decision, neither catalog changes."""
    for scope in (MAIN, SIDE):
        wide.allow("bob", Kind.CATALOG, scope.catalog or "", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
        wide.allow("bob", Kind.TABLE, f"{scope.catalog}.a.t", Privilege.MODIFY_TABLE)
    wide.run(together(wide.node, "before", MAIN, SIDE, user="bob"))
    other = Node(wide.lab.open())
    privilege_request = PrivilegeRequest(
        Kind.TABLE, f"{revoked_scope.catalog}.a.t", ((Privilege.MODIFY_TABLE, GrantCondition.ALLOW),)
    )
    before_the_store(
        wide.node,
        monkeypatch,
        lambda: privileges_grant(
            other.ctx(), metalake=LAKE, role="of bob", privilege_request=privilege_request, grants_them=False
        ),
    )

    with pytest.raises(PermissionDenied, match=f"{revoked_scope.catalog}.a.t"):
        wide.run(together(wide.node, "after", MAIN, SIDE, user="bob"))

    assert marks(wide) == ["before", "before", None]


def test_changing_access_of_one_catalog_is_decided_under_the_locks(
    wide: ServiceDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If access of one catalog moves before each of the first attempts, the transaction decides while it holds the
    locks of all, and commits.
    """
    wide.users("carl")
    wide.allow("carl", Kind.CATALOG, "side", Privilege.USE_CATALOG)
    other = Node(wide.lab.open())

    def grant(privilege: Privilege) -> Callable[[], Any]:
        privilege_request = PrivilegeRequest(Kind.TABLE, "side.a.t", ((privilege, GrantCondition.ALLOW),))
        return lambda: privileges_grant(other.ctx(), metalake=LAKE, role="of carl", privilege_request=privilege_request)

    before_the_store(wide.node, monkeypatch, grant(Privilege.SELECT_TABLE), grant(Privilege.MODIFY_TABLE))

    wide.run(together(wide.node, "x", MAIN, SIDE))

    assert marks(wide) == ["x", "x", None]


def test_missing_right_is_refused_in_the_order_of_the_operations(wide: ServiceDesk) -> None:
    """The refusal is that of the first operation that lacks a right, whichever catalog it is in."""
    wide.allow("bob", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.MODIFY_TABLE)

    with pytest.raises(PermissionDenied, match=r"west"):
        wide.run(together(wide.node, "x", MAIN, WEST, SIDE, user="bob"))

    assert marks(wide) == [None] * 3


def test_readers_of_two_nodes_never_see_a_part(wide: ServiceDesk) -> None:
    """While two nodes commit to three catalogs in opposite orders, no consistent read on either node finds two marks,
    nobody deadlocks, and each transaction commits once.
    """
    other = Node(wide.lab.open())
    torn: list[list[object]] = []
    reads = 0
    lost = LOST_RACES[()]

    def look(request_views: tuple[RequestView, ...]) -> list[object]:
        properties: list[object] = []
        for request_view in request_views:
            node, _ = request_view.find(("a", "t"), Kind.TABLE)
            assert node is not None
            properties.append(msgspec.json.decode(bytes(request_view.document(node.id).body))["properties"].get("mark"))
        return properties

    async def read(node: Node, over: asyncio.Event) -> None:
        nonlocal reads
        while not over.is_set():
            properties = await read_many_scopes(node.ctx(), CATALOGS, look)
            reads += 1
            if len(set(properties)) > 1:
                torn.append(properties)
            await asyncio.sleep(0)

    async def write(node: Node, number: int) -> None:
        orders = (CATALOGS, CATALOGS[::-1], (SIDE, WEST, MAIN))
        for turn in range(8):
            await together(node, f"{number}-{turn}", *orders[(number + turn) % 3])

    async def story() -> None:
        over = asyncio.Event()
        readers = [asyncio.create_task(read(node, over)) for node in (wide.node, other)]
        await asyncio.gather(*(write((wide.node, other)[number % 2], number) for number in range(6)))
        over.set()
        await asyncio.gather(*readers)

    before = clocks(wide)
    wide.run(asyncio.wait_for(story(), 300))

    assert torn == []
    assert reads > 10
    after = clocks(wide)
    assert sorted(after[zone] - before[zone] for zone in after if after[zone] != before[zone]) == [48] * 3
    assert len(set(marks(wide))) == 1
    assert LOST_RACES[()] >= lost


def test_single_commits_share_catalog_with_larger_transactions(wide: ServiceDesk) -> None:
    """Transactions of several catalogs and of one of them, on two nodes at once, all commit."""
    other = Node(wide.lab.open())

    async def story() -> None:
        await asyncio.gather(
            *(together(wide.node, f"j{number}", WEST, MAIN) for number in range(12)),
            *(together(other, f"s{number}", (MAIN, WEST)[number % 2]) for number in range(12)),
        )

    before = clocks(wide)
    wide.run(asyncio.wait_for(story(), 300))

    after = clocks(wide)
    assert sorted(after[zone] - before[zone] for zone in after if after[zone] != before[zone]) == [18, 18]


def test_drop_in_one_catalog_and_commit_in_another(wide: ServiceDesk) -> None:
    """A table of one catalog is dropped at the moment at which that of another changes."""
    operations: list[Any] = [(MAIN, TableDropOperation(("a", "t"))), marking(SIDE, "x")]

    wide.run(joint_transaction_execute(wide.ctx(), operations))

    assert marks(wide)[:2] == ["x", None]
