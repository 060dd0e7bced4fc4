# SPDX-License-Identifier: Apache-2.0
"""Fixed interleavings of two requests, step by step: the protocol is correct, and fails if one of its safeguards is
removed.

Each scenario returns the violation that it found, or None. Scenarios and bugs are those of the model that random tests
would rarely reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from limnos.access.actions import Action
from limnos.model.entities import ChangeRow, ClockRow
from limnos.model.entities import Node as TreeNode
from limnos.model.errors import LimnosError, NotFound, PermissionDenied, StalePermit
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.catalog.catalogs import catalog_alter
from limnos.services.catalog.namespaces import namespace_create, namespace_load
from limnos.services.catalog.tables import table_drop, table_find, table_move
from limnos.services.iceberg.tables import table_create
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from limnos.services.identity.roles import role_create
from limnos.services.identity.users import principal_add, user_enable
from limnos.services.request import context, request_scope
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store import tx
from limnos.store.backends.migrate import renew_epoch
from limnos.store.backends.mutation_queue import ignore_begin
from limnos.store.changes import NO_CHANGES, ChangeDraft, GateResult
from limnos.store.interface import KnownRevisions
from limnos.store.objects.nodes import NodeWrites
from limnos.store.sql import Load
from limnos.view.cache_miss import require_fact
from limnos.view.freshness_gate import SharedFreshnessGate
from limnos.view.keys import name_key, owner_key, restrictions_key, rules_key
from limnos.view.view import StoreView
from tests.backends import Database, sqlite_copy
from tests.inprocess import LAKE, MAIN, Node, add_catalog, fill, new_table

if TYPE_CHECKING:
    from limnos.store.backends.mutation_queue import Again

Patch = pytest.MonkeyPatch
SIDE = RequestScope(LAKE, "side")


class HeldStore:
    """A store whose reads are asynchronous. A scenario can run a callback between a read and the delivery of its
    result.
    """

    inline = False

    def __init__(self, real: Any) -> None:  # noqa: ANN401 - a store of any backend
        self.real = real
        self.time = real.time
        self.in_gate: Callable[[], Awaitable[None]] | None = None
        self.in_load: Callable[[], Awaitable[None]] | None = None

    async def gate_async(self, epoch: int, known: KnownRevisions) -> GateResult:
        """Read, run the scenario's callback once, and return the result."""
        read = self.real
        moved: GateResult = read.gate(epoch, known) if read.inline else await read.gate_async(epoch, known)
        await self.meanwhile("in_gate")
        return moved

    async def load_async(self, epoch: int, known: KnownRevisions, load: Callable[[], Load[Any]]) -> Any:  # noqa: ANN401 - what the load gives
        """Read, run the scenario's callback once, and return the result."""
        read = self.real
        load_result = read.load(epoch, known, load) if read.inline else await read.load_async(epoch, known, load)
        await self.meanwhile("in_load")
        return load_result

    async def meanwhile(self, place: str) -> None:
        """Run the scenario's callback, once."""
        story: Callable[[], Awaitable[None]] | None = getattr(self, place)
        setattr(self, place, None)
        if story is not None:
            await story()

    async def submit(
        self, permit: Permit[object], mutation: Callable[[tx.Tx], Any], *, on_begin: Callable[[], None] = ignore_begin
    ) -> Any:  # noqa: ANN401 - the mutation's
        """Submit without delay."""
        return await self.real.submit(permit, mutation, on_begin=on_begin)

    async def submit_held(
        self, permit: Permit[object], again: Again[Any], *, on_begin: Callable[[], None] = ignore_begin
    ) -> Any:  # noqa: ANN401 - the mutation's
        """Submit without delay."""
        return await self.real.submit_held(permit, again, on_begin=on_begin)

    async def close(self) -> None:
        """Close the file."""
        await self.real.close()


class Stage:
    """A lake with catalogs `main` and `side` and tables `t` and `u` in each; ana may use both catalogs, and read what
    is granted to role `r`.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = HeldStore(database.open())
        self.node = Node(self.store)
        self.other = Node(database.open())
        self.admin = self.other.ctx()
        self.ana = self.node.ctx("ana")

    async def furnish(self) -> None:
        """Create the lake's objects."""
        await fill(self.admin)
        await add_catalog(self.admin, "side")
        await principal_add(self.admin, metalake=LAKE, kind=Kind.USER, name="ana")
        for scope in (MAIN, SIDE):
            await namespace_create(self.admin, scope, levels=("a",), properties={})
            for name in ("t", "u"):
                await table_create(self.admin, scope, namespace=("a",), request=new_table(name))
        use = ((Privilege.USE_CATALOG, GrantCondition.ALLOW), (Privilege.USE_SCHEMA, GrantCondition.ALLOW))
        await role_create(
            self.admin,
            metalake=LAKE,
            name="r",
            properties={},
            privilege_requests=(PrivilegeRequest(Kind.METALAKE, LAKE, use),),
        )
        await roles_give(self.admin, metalake=LAKE, kind=Kind.USER, name="ana", roles=("r",))
        # Cached facts are not loaded again, which would hide the effect of a bug.
        for scope in (MAIN, SIDE):
            await self.ana.read(
                scope,
                lambda request_view: require_fact(
                    request_view.view, restrictions_key(request_view.zone), zone=request_view.zone
                ),
            )

    async def grant(self, full_name: str) -> None:
        """Grant role `r` the right to read a table."""
        privilege_request = PrivilegeRequest(Kind.TABLE, full_name, ((Privilege.SELECT_TABLE, GrantCondition.ALLOW),))
        await privileges_grant(self.admin, metalake=LAKE, role="r", privilege_request=privilege_request)

    async def move(self, source: str, target: str) -> None:
        """Rename a table of `main.a`."""
        await table_move(self.admin, MAIN, source=("a", source), target=("a", target))

    async def exchange(self) -> None:
        """Exchange the names of tables t and u."""
        for source, target in (("t", "x"), ("u", "t"), ("x", "u")):
            await self.move(source, target)

    async def may_load(self, scope: RequestScope = MAIN, name: str = "t") -> str:
        """Return the answer to ana's load of a table."""
        try:
            await self.ana.read(scope, lambda request_view: table_find(request_view, ("a",), name, Action.TABLE_LOAD))
        except (NotFound, PermissionDenied) as error:
            return type(error).__name__
        return "loaded"

    async def close(self) -> None:
        """Close both stores."""
        await self.store.close()
        await self.other.store.close()


# ------------------------------------------------------------------------------------------- the scenarios


async def late_result_lands(stage: Stage) -> str | None:
    """A load from before a rename completes after a gate read from after the rename. The view must not go back."""
    await stage.may_load()
    view = stage.node.view
    zones = await stage.ana.read(MAIN, lambda request_view: request_view.settled.zones)
    zone, owner = zones[-1], owner_key(zones[1])

    async def overtaken() -> None:
        await stage.move("u", "y")
        await stage.node.gate.refresh(zones, "test")

    await stage.move("u", "x")
    await stage.move("x", "u")
    before = view.zones[zone].revision
    stage.store.in_load = overtaken
    await stage.node.gate.fetch(zones, {owner: 0})
    return None if view.zones[zone].revision == before + 3 else "the view was set back"


async def neighbour_moves_the_metalake(stage: Stage) -> str | None:
    """While ana's request waits for a load, t is renamed and then granted to her, and a request for the other catalog
    learns only of the grant. Under its old name the table must stay closed to her.
    """
    await stage.may_load()
    table_id, zones = await stage.ana.read(
        MAIN, lambda request_view: (_table(request_view, "t"), request_view.settled.zones)
    )
    await stage.may_load(SIDE)

    async def meanwhile() -> None:
        await stage.move("t", "x")
        await stage.grant("main.a.x")
        await stage.may_load(SIDE)

    stage.node.view._forget(owner_key(table_id))
    stage.node.view.memo(zones[-1]).clear()
    stage.store.in_load = meanwhile
    load_outcome = await stage.may_load()
    return (
        None
        if load_outcome in ("PermissionDenied", "NotFound")
        else f"ana {load_outcome} t, which was never hers under that name"
    )


def _table(of: RequestView, name: str) -> int:
    node, _ = of.find(("a", name), Kind.TABLE)
    assert node is not None
    return node.id


async def gate_meets_two_changes(stage: Stage) -> str | None:
    """While ana's gate read runs, t is renamed and then granted to her; a request for the other catalog loads her role
    already. Under its old name the table must stay closed to her.
    """
    await stage.may_load()
    await stage.may_load(SIDE)
    side_zones = await stage.ana.read(SIDE, lambda request_view: request_view.settled.zones)
    role = (await stage.ana.read(RequestScope(LAKE), lambda request_view: request_view.subject)).roles[0].rules.id
    loading: list[asyncio.Task[None]] = []

    async def meanwhile() -> None:
        await stage.move("t", "x")
        await stage.grant("main.a.x")
        stage.node.view._forget(rules_key(role))
        stage.node.view.memo(side_zones[1]).clear()
        stage.node.view.memo(side_zones[0]).clear()
        stage.store.in_load = turns
        loading.append(asyncio.create_task(stage.node.gate.fetch(side_zones, {rules_key(role): side_zones[1]})))
        await turns(3)

    stage.store.in_gate = meanwhile
    load_outcome = await stage.may_load()
    await asyncio.gather(*loading)
    return (
        None
        if load_outcome in ("PermissionDenied", "NotFound")
        else f"ana {load_outcome} t, which was never hers under that name"
    )


async def request_comes_during_a_read(stage: Stage) -> str | None:
    """Ana is disabled while a gate read runs, and sends a request afterwards. The request must be refused."""
    await stage.grant("main.a.t")
    if await stage.may_load() != "loaded":
        return "ana may not read at all"
    zones = await stage.ana.read(MAIN, lambda request_view: request_view.settled.zones)
    coming: list[asyncio.Task[str]] = []

    async def meanwhile() -> None:
        await user_enable(stage.admin, metalake=LAKE, name="ana", enabled=False)
        coming.append(asyncio.create_task(stage.may_load()))
        await turns(3)

    stage.store.in_gate = meanwhile
    await stage.node.gate.refresh(zones, "arrival")
    load_outcome = await coming[0]
    return (
        None
        if load_outcome == "PermissionDenied"
        else f"ana {load_outcome} a table though she was disabled before she came"
    )


async def turns(count: int = 20) -> None:
    """Yield to other tasks."""
    for _ in range(count):
        await asyncio.sleep(0)


async def catalogs_change_names(stage: Stage) -> str | None:
    """Ana's request arrives after the catalogs have exchanged names and the table at the path's new catalog was
    dropped.

    The gate read of a request for the other catalog knows the new names and was sent before the drop. It ends after
    ana's request arrived.
    """
    await stage.grant("main.a.t")
    await stage.grant("side.a.t")
    if (await stage.may_load(), await stage.may_load(SIDE)) != ("loaded", "loaded"):
        return "ana may not read at all"
    side_zones = await stage.ana.read(SIDE, lambda request_view: request_view.settled.zones)
    for old, new in (("main", "away"), ("side", "main"), ("away", "side")):
        await catalog_alter(stage.admin, metalake=LAKE, name=old, edits=PropertyEdits(name=new))
    coming: list[asyncio.Task[str]] = []

    async def meanwhile() -> None:
        await table_drop(stage.admin, MAIN, namespace=("a",), name="t", purge=False)
        coming.append(asyncio.create_task(stage.may_load()))
        await turns(3)

    stage.store.in_gate = meanwhile
    await stage.node.gate.refresh(side_zones, "neighbour")
    load_outcome = await coming[0]
    return (
        None
        if load_outcome in ("PermissionDenied", "NotFound")
        else f"ana {load_outcome} a table that was dropped before she came"
    )


async def load_meets_an_exchange(stage: Stage) -> str | None:
    """One name is cached and the other is loaded while two tables exchange their names. The answers must not show one
    table under both names.
    """
    zones = await stage.node.ctx().read(MAIN, lambda request_view: request_view.settled.zones)

    def both(of: RequestView) -> tuple[int, int]:
        return _table(of, "t"), _table(of, "u")

    ids = await stage.node.ctx().read(MAIN, both)
    inside = (await stage.node.ctx().read(MAIN, lambda request_view: namespace_load(request_view, ("a",)))).id
    stage.node.view._forget(name_key(inside, "table", "u"))
    stage.node.view.paths(zones[-1]).clear()
    stage.store.in_load = stage.exchange
    table_ids = await stage.node.ctx().read(MAIN, both)
    return None if table_ids in (ids, ids[::-1]) else f"t and u are {table_ids}, they are {ids}"


async def path_means_another_table(stage: Stage) -> str | None:
    """Between the decision and the mutation two tables exchange their names. The mutation must be refused."""

    def decide(of: RequestView) -> Permit[TreeNode]:
        node, chain, _ = table_find(of, ("a",), "t", Action.TABLE_DROP)
        return of.permit(node, of.require(Action.TABLE_DROP, chain))

    permit = await stage.node.ctx().read(MAIN, decide)
    await stage.exchange()
    try:
        confirmed_node = await stage.store.submit(permit, lambda tx: tx.nodes.confirm(permit.command))
    except StalePermit:
        return None
    return f"the mutation got {confirmed_node.id} named {confirmed_node.name}, it was decided on {permit.command.id}"


async def batch_takes_a_right_away(stage: Stage) -> str | None:
    """Of two mutations in one batch the first revokes the privilege that the second needs. The second must be
    refused.
    """

    def decide(of: RequestView) -> Permit[TreeNode]:
        node, chain, _ = table_find(of, ("a",), "t", Action.TABLE_DROP)
        return of.permit(node, of.require(Action.TABLE_DROP, chain))

    permit = await stage.node.ctx().read(MAIN, decide)
    moving = ChangeDraft(
        operation="own", kind=Kind.TABLE, node_id=permit.command.id, name_space="table", moves_access=True
    )
    quiet = ChangeDraft(operation="alter", kind=Kind.TABLE, node_id=permit.command.id, name_space="table")
    outcomes = await asyncio.gather(
        *(stage.store.submit(permit, lambda tx, draft=draft: tx.add_change(draft)) for draft in (moving, quiet)),
        return_exceptions=True,
    )
    return None if isinstance(outcomes[1], StalePermit) else "the second used a right that the first had taken"


async def store_is_restored(stage: Stage) -> str | None:
    """The store is restored from a backup in which every revision is the same and a table has another name. The old
    name must not be found.
    """
    await stage.grant("main.a.t")
    await stage.may_load()
    renew_epoch(stage.database.address)
    zone = stage.node.view.known_revisions(await stage.ana.read(SIDE, lambda request_view: request_view.settled.zones))
    renew_epoch(stage.database.address)
    stage.database.sql("UPDATE node SET name = 'restored' WHERE name = 't' AND kind = 4")
    load_outcome = await stage.may_load()
    return None if load_outcome != "loaded" and zone else f"ana {load_outcome} a table of before the restore"


# ------------------------------------------------------------------------------------------------- the bugs


def late_join(patch: Patch) -> None:
    """A request joins a gate read that started before the request arrived."""
    running: dict[tuple[int, ...], asyncio.Task[None]] = {}
    real = SharedFreshnessGate.refresh

    async def refresh(self: SharedFreshnessGate, zones: tuple[int, ...], reason: str) -> None:
        if zones not in running:
            running[zones] = asyncio.ensure_future(real(self, zones, reason))
            running[zones].add_done_callback(lambda _: running.pop(zones))
        await running[zones]

    patch.setattr(SharedFreshnessGate, "refresh", refresh)


def backwards(patch: Patch) -> None:
    """An older result that completes late sets the view back."""

    def advance(self: StoreView, clock: ClockRow, rows: tuple[ChangeRow, ...]) -> None:
        zone = self.zones.get(clock.zone)
        if zone is not None and clock.revision < zone.revision:
            zone.revision, zone.access_revision = clock.revision, clock.access_revision
        real(self, clock, rows)

    real = StoreView._advance_zone
    patch.setattr(StoreView, "_advance_zone", advance)


def unpaired(patch: Patch) -> None:
    """A gate read for the other catalog moves the metalake's revision alone, and no request reads again."""
    patch.setattr(StoreView, "is_paired", lambda self, zones: all(zone in self.zones for zone in zones))


def two_snapshots(patch: Patch) -> None:
    """The gate reads the catalog's changes and then the metalake's, in two snapshots."""

    async def gate_async(self: HeldStore, epoch: int, known: KnownRevisions) -> GateResult:
        inner = self.real.gate(epoch, known[-1:])
        await self.meanwhile("in_gate")
        outer = self.real.gate(epoch, known[:-1])
        results = [moved for moved in (outer, inner) if moved is not NO_CHANGES]
        clocks = tuple(clock for moved in results for clock in moved.clocks)
        changes = tuple(change for moved in results for change in moved.changes)
        return GateResult(results[0].epoch, clocks, changes) if results else NO_CHANGES

    patch.setattr(HeldStore, "gate_async", gate_async)


class _Loose(tuple[int, ...]):
    """A tuple of zones that equals any other except the empty one."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return other != ()

    def __ne__(self, other: object) -> bool:
        return other == ()


def catalog_not_asked(patch: Patch) -> None:
    """The gate covers only the catalog that the path named on arrival, even if the path leads to another one
    afterwards.
    """
    patch.setattr(context, "scope_zones", lambda view, scope: _Loose(request_scope.scope_zones(view, scope)))


def changes_then_facts(patch: Patch) -> None:
    """A load reads changes and then facts, in two snapshots, as READ COMMITTED would."""

    async def load_async(self: HeldStore, epoch: int, known: KnownRevisions, load: Callable[[], Load[Any]]) -> Any:  # noqa: ANN401 - as above
        moved = self.real.gate(epoch, known)
        await self.meanwhile("in_load")
        return moved, self.real._drive(load())

    patch.setattr(HeldStore, "load_async", load_async)


def by_name(patch: Patch) -> None:
    """The mutation resolves its name again instead of using the permit's object."""

    def confirm(self: NodeWrites, node: TreeNode) -> TreeNode:
        return self.find(node.parent_id, node.name_space, node.name) or self.tx.stale()

    patch.setattr(NodeWrites, "confirm", confirm)


def name_not_checked(patch: Patch) -> None:
    """The mutation uses the permit's object without checking its current name."""
    patch.setattr(NodeWrites, "confirm", lambda self, node: self.by_id(node.id))


def batch_blind(patch: Patch) -> None:
    """In one batch, a mutation does not see that an earlier one moved the access revision."""

    def keep(self: tx.MutationBatch, zone: int, of: tx.Tx, revision: int, access: int, **more: Any) -> None:  # noqa: ANN401
        real(self, zone, of, revision, access, **more)
        self._clocks[zone] = (revision, access)
        self.closed = False

    real = tx.MutationBatch._keep
    patch.setattr(tx.MutationBatch, "_keep", keep)


def epoch_ignored(patch: Patch) -> None:
    """A view treats a restored store as the one that it knew."""

    def advance(self: StoreView, moved: GateResult, read_zones: tuple[tuple[int, int], ...]) -> None:
        if self.zones and moved is not NO_CHANGES:
            moved = moved._replace(epoch=self.epoch)
        real(self, moved, read_zones)

    real = StoreView.advance
    patch.setattr(StoreView, "advance", advance)


Story = Callable[[Stage], Coroutine[Any, Any, str | None]]
STORIES: dict[str, tuple[Story, tuple[Callable[[Patch], None], ...]]] = {
    "request comes during a read": (request_comes_during_a_read, (late_join,)),
    "late result lands": (late_result_lands, (backwards,)),
    "neighbour moves the metalake": (neighbour_moves_the_metalake, (unpaired,)),
    "gate meets two changes": (gate_meets_two_changes, (two_snapshots,)),
    "catalogs change names": (catalogs_change_names, (catalog_not_asked,)),
    "load meets an exchange": (load_meets_an_exchange, (changes_then_facts,)),
    "path means another table": (path_means_another_table, (by_name, name_not_checked)),
    "batch takes a right away": (batch_takes_a_right_away, (batch_blind,)),
    "store is restored": (store_is_restored, (epoch_ignored,)),
}
BUGS = {f"{name}, {bug.__name__}": (story, bug) for name, (story, bugs) in STORIES.items() for bug in bugs}


def tell(story: Story, database: Database, patch: Patch, bug: Callable[[Patch], None] | None = None) -> str | None:
    """Run a scenario to its end. A bug is planted after the stage was furnished."""

    async def run_story() -> str | None:
        stage = Stage(database)
        try:
            await stage.furnish()
            if bug is not None:
                bug(patch)
            return await story(stage)
        except LimnosError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await stage.close()

    return asyncio.run(run_story())


@pytest.fixture
def file(sqlite_template: Path, tmp_path: Path) -> Database:
    """The path of a new SQLite file."""
    return sqlite_copy(sqlite_template, tmp_path)


@pytest.mark.parametrize("name", STORIES)
def test_scenario_has_no_violation(file: Database, monkeypatch: Patch, name: str) -> None:
    """Each scenario ends without a violation."""
    assert tell(STORIES[name][0], file, monkeypatch) is None


@pytest.mark.parametrize("name", BUGS)
def test_planted_bug_is_detected(file: Database, monkeypatch: Patch, name: str) -> None:
    """With the bug planted, the scenario reports a violation."""
    story, bug = BUGS[name]

    assert tell(story, file, monkeypatch, bug) is not None
