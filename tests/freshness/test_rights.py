# SPDX-License-Identifier: Apache-2.0
"""Further interleavings of two requests, on both databases: one uses a privilege, a name or a membership that the other
removes.

Each scenario returns the violation that it found, or None; with its planted bug it must return one. `Stage` and the
store that delays a read are those of `test_scripts`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from limnos.access.actions import Action
from limnos.model.entities import Node as TreeNode
from limnos.model.errors import NotFound, StalePermit
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.privileges import GrantCondition, Privilege
from limnos.model.records import NamespaceRecord
from limnos.services.catalog.namespaces import namespace_create, namespace_move, namespaces_list
from limnos.services.catalog.tables import table_drop, table_find, tables_list
from limnos.services.iceberg.tables import table_create
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from limnos.services.identity.groups import member_remove, members_add
from limnos.services.identity.owners import owner_set
from limnos.services.identity.users import principal_add, user_enable
from limnos.services.request import context, request_scope
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store import tx
from limnos.store.objects.nodes import NodeWrites
from limnos.view.facts import Value
from limnos.view.freshness_gate import COLD_READS
from limnos.view.keys import Key, name_key, owner_key, principal_key
from limnos.view.view import StoreView, ZoneState
from tests.backends import Database
from tests.freshness.planted_bugs import memberships_not_touched, own_zone_only, paths_not_forgotten
from tests.freshness.test_scripts import Patch, Stage, Story, late_join, request_comes_during_a_read, tell
from tests.inprocess import LAKE, MAIN, new_table

RIGHT = ((Privilege.SELECT_TABLE, GrantCondition.ALLOW),)


def dropping(of: RequestView) -> Permit[TreeNode]:
    """Decide on dropping main.a.t. Returns the permit."""
    node, _, decision = table_find(of, ("a",), "t", Action.TABLE_DROP)
    return of.permit(node, decision)


async def outcome(stage: Stage, permit: Permit[TreeNode]) -> str | None:
    """Execute a drop with a stale permit. Returns None if it is refused."""
    try:
        await stage.store.submit(permit, lambda tx: tx.nodes.drop(tx.nodes.confirm(permit.command)))
    except StalePermit:
        return None
    return "the table was dropped by a right that had gone"


# ------------------------------------------------------------------------------------------- the scenarios


async def server_moves_alone(stage: Stage) -> str | None:
    """Ana leaves a group, whose other member stays, then the group becomes the metalake's owner, and a request for
    another catalog learns only of the second change.

    Ana's request arrived before both changes and waits for the load of a fact. At no moment was she an owner, so the
    request must be refused.
    """
    await principal_add(stage.admin, metalake=LAKE, kind=Kind.USER, name="bob")
    await principal_add(stage.admin, metalake=LAKE, kind=Kind.GROUP, name="g")
    await members_add(stage.admin, metalake=LAKE, group="g", users=("ana", "bob"))
    if await stage.may_load() != "PermissionDenied":
        return "ana may read without a right"
    zones = await stage.ana.read(MAIN, lambda of: of.settled.zones)
    node = stage.node

    async def meanwhile() -> None:
        await member_remove(stage.admin, metalake=LAKE, group="g", user="ana")
        await owner_set(
            stage.admin, metalake=LAKE, kind=Kind.METALAKE, full_name=LAKE, owner_kind=Kind.GROUP, owner="g"
        )
        await node.gate.fetch(zones[:1], {owner_key(zones[1]): zones[0]})

    node.view._forget(principal_key(zones[1], Kind.USER, "ana"))
    for zone in zones:
        node.view.memo(zone).clear()
    stage.store.in_load = meanwhile
    load_outcome = await stage.may_load()
    return (
        None
        if load_outcome == "PermissionDenied"
        else f"ana {load_outcome} a table that was closed to her all the time"
    )


async def right_goes_before_the_commit(stage: Stage) -> str | None:
    """Between decision and transaction the metalake's zone revokes the privilege, while the catalog's revision does not
    move. The change must be refused.
    """
    permit = await stage.node.ctx().read(MAIN, dropping)
    await user_enable(stage.admin, metalake=LAKE, name="ana", enabled=False)
    return await outcome(stage, permit)


async def membership_ends(stage: Stage) -> str | None:
    """Ana reads a table as a member of a group. After her membership has ended, the next read must be refused."""
    await principal_add(stage.admin, metalake=LAKE, kind=Kind.GROUP, name="g")
    await roles_give(stage.admin, metalake=LAKE, kind=Kind.USER, name="ana", roles=("r",), gives=False)
    await roles_give(stage.admin, metalake=LAKE, kind=Kind.GROUP, name="g", roles=("r",))
    await stage.grant("main.a.t")
    await members_add(stage.admin, metalake=LAKE, group="g", users=("ana",))
    if await stage.may_load() != "loaded":
        return "a member may not read at all"
    await member_remove(stage.admin, metalake=LAKE, group="g", user="ana")
    load_outcome = await stage.may_load()
    return (
        None
        if load_outcome in ("PermissionDenied", "NotFound")
        else f"ana {load_outcome} a table of a group that she has left"
    )


async def namespace_changes_its_name(stage: Stage) -> str | None:
    """Another namespace takes the name of the one in which ana has read a table. Ana's next read must be refused."""
    await stage.grant("main.a.t")
    if await stage.may_load() != "loaded":
        return "ana may not read at all"
    await namespace_move(stage.admin, MAIN, source=("a",), target=("z",))
    load_outcome = await stage.may_load()
    return (
        None
        if load_outcome in ("PermissionDenied", "NotFound")
        else f"ana {load_outcome} a table at an address that leads nowhere"
    )


async def namespace_moves_before_the_commit(stage: Stage) -> str | None:
    """Between decision and transaction the namespace of the table is renamed, which does not change the table's own
    row. The drop must be refused.
    """
    permit = await stage.node.ctx().read(MAIN, dropping)
    await namespace_move(stage.admin, MAIN, source=("a",), target=("z",))
    return await outcome(stage, permit)


async def object_vanishes_before_the_grant(stage: Stage) -> str | None:
    """A table is dropped between the decision on a grant on it and the transaction. No rule on the table may be
    stored.
    """
    real, dropped = stage.store.submit, list[str]()

    async def submit(permit: Permit[object], mutation: Callable[[tx.Tx], object], **options: Any) -> object:  # noqa: ANN401 - as the store has it
        if not dropped:
            dropped.append("t")
            await table_drop(stage.admin, MAIN, namespace=("a",), name="t", purge=False)
        return await real(permit, mutation, **options)

    stage.store.submit = submit  # type: ignore[method-assign]
    privilege_request = PrivilegeRequest(Kind.TABLE, "main.a.t", RIGHT)
    try:
        await privileges_grant(stage.node.ctx(), metalake=LAKE, role="r", privilege_request=privilege_request)
    except NotFound:
        return None
    return "a right was granted on a table that is not there"


async def two_names_in_a_revision(stage: Stage) -> str | None:
    """One revision adds two names to a cached listing. The listing must have both."""
    ctx = stage.node.ctx()

    def listed(of: RequestView) -> list[str]:
        return namespaces_list(of, ()).texts()

    def deciding(of: RequestView) -> Permit[None]:
        return of.permit(None, of.require(Action.NAMESPACE_CREATE, of.settled.outer))

    def both(inside: tx.Tx) -> None:
        zone = permit.zone
        for name in ("m", "n"):
            inside.nodes.create(
                kind=Kind.NAMESPACE,
                space="namespace",
                name=name,
                parent_id=zone,
                zone=zone,
                record=NamespaceRecord(comment=None, properties={}),
            )

    before = await ctx.read(MAIN, listed)
    permit = await ctx.read(MAIN, deciding)
    await stage.store.submit(permit, both)
    after = await ctx.read(MAIN, listed)
    return None if (before, after) == (["a"], ["a", "m", "n"]) else f"{after} is listed after {before}"


async def catalog_is_learnt_on_the_way(stage: Stage) -> str | None:
    """Ana's node has no name of the catalog in its view: her gate covers only the metalake, and the name is read
    afterwards. The catalog's changes must not be missed.
    """
    await stage.grant("main.a.t")
    if await stage.may_load() != "loaded":
        return "ana may not read at all"
    lake = await stage.ana.read(RequestScope(LAKE), lambda of: of.metalake.id)
    await table_drop(stage.admin, MAIN, namespace=("a",), name="t", purge=False)
    stage.node.view.scopes.clear()
    stage.node.view._forget(name_key(lake, "catalog", "main"))
    load_outcome = await stage.may_load()
    return (
        None
        if load_outcome in ("PermissionDenied", "NotFound")
        else f"ana {load_outcome} a table that was dropped before she came"
    )


async def others_write_during_a_list(stage: Stage) -> str | None:
    """While a listing is read, a table is created elsewhere in the catalog and the view learns of it. Nothing may be
    read twice.
    """
    ctx, node = stage.node.ctx(), stage.node
    zones = await ctx.read(MAIN, lambda of: of.settled.zones)
    await namespace_create(stage.admin, MAIN, levels=("b",), properties={})
    await stage.admin.read(MAIN, lambda of: tables_list(of, ("b",)))
    others: list[float] = []

    async def reads() -> tuple[list[str], float]:
        before, others[:] = COLD_READS[()], []
        listed = await ctx.read(MAIN, lambda of: tables_list(of, ("a",)).texts())
        for key in [key for key in node.view.items() if key[0] == "block"]:
            node.view._forget(key)
        return listed, COLD_READS[()] - before - sum(others)

    async def meanwhile() -> None:
        before = COLD_READS[()]
        await table_create(stage.admin, MAIN, namespace=("b",), request=new_table("x"))
        others.append(COLD_READS[()] - before)
        await node.gate.refresh(zones, "neighbour")

    await reads()
    quiet = await reads()
    stage.store.in_load = meanwhile
    busy = await reads()
    return None if quiet == busy and others else f"{busy} instead of {quiet}"


# ------------------------------------------------------------------------------------------------- the bugs


def blocks_of_the_very_revision(patch: Patch) -> None:
    """A block counts as current only if nothing in its zone has moved."""
    real = StoreView._is_current

    def is_current(zone: ZoneState, key: Key, value: Value, revision: int) -> bool:
        return real(zone, key, value, revision) and (key[0] != "block" or zone.revision == revision)

    patch.setattr(StoreView, "_is_current", staticmethod(is_current))


def paired_without_the_server(patch: Patch) -> None:
    """The view pairs a metalake and a catalog of one snapshot, whatever the server's clock says."""
    real = StoreView.is_paired

    def is_paired(self: StoreView, zones: tuple[int, ...]) -> bool:
        known = self.zones
        if len(zones) < 3 or any(zone not in known for zone in zones):
            return real(self, zones)
        return known[zones[2]].outer_revisions[1:] == (known[zones[1]].revision,)

    patch.setattr(StoreView, "is_paired", is_paired)


def quiet_namespaces(patch: Patch) -> None:
    """Moving a namespace does not move the access revision, although every path below it changes."""
    real = NodeWrites.move

    def place(self: NodeWrites, node: TreeNode, *, parent_id: int, name: str, moves_access: bool) -> None:
        real(self, node, parent_id=parent_id, name=name, moves_access=moves_access and node.kind is not Kind.NAMESPACE)

    patch.setattr(NodeWrites, "move", place)


def granted_unseen(patch: Patch) -> None:
    """A grant checks neither the catalog's access revision nor the object."""
    own_zone_only(patch)
    patch.setattr(NodeWrites, "confirm", lambda self, node: node)


def one_row_of_a_revision(patch: Patch) -> None:
    """A listing applies only the last change of a revision."""
    real = StoreView._follow
    patch.setattr(StoreView, "_follow", lambda self, space, rows: real(self, space, rows[-1:]))


class _CoveringZones(tuple[int, ...]):
    """A tuple of zones that counts as covered if the zones above it are covered."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return not self != other

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, tuple) or other == () or tuple(self)[: len(other)] != tuple(other)


def covered_from_above(patch: Patch) -> None:
    """A gate read of the metalake also counts as a gate read of its catalogs."""
    patch.setattr(context, "scope_zones", lambda of, scope: _CoveringZones(request_scope.scope_zones(of, scope)))


STORIES: dict[str, tuple[Story, tuple[Callable[[Patch], None], ...]]] = {
    "request comes during a read": (request_comes_during_a_read, (late_join,)),
    "server moves alone": (server_moves_alone, (paired_without_the_server,)),
    "right goes before the commit": (right_goes_before_the_commit, (own_zone_only,)),
    "membership ends": (membership_ends, (memberships_not_touched,)),
    "namespace changes its name": (namespace_changes_its_name, (paths_not_forgotten,)),
    "namespace moves before the commit": (namespace_moves_before_the_commit, (quiet_namespaces,)),
    "object vanishes before the grant": (object_vanishes_before_the_grant, (granted_unseen,)),
    "two names in a revision": (two_names_in_a_revision, (one_row_of_a_revision,)),
    "others write during a list": (others_write_during_a_list, (blocks_of_the_very_revision,)),
    "catalog is learnt on the way": (catalog_is_learnt_on_the_way, (covered_from_above,)),
}
BUGS = {f"{name}, {bug.__name__}": (story, bug) for name, (story, bugs) in STORIES.items() for bug in bugs}


@pytest.mark.parametrize("name", STORIES)
def test_scenario_has_no_violation(database: Database, monkeypatch: Patch, name: str) -> None:
    """Each scenario ends without a violation."""
    assert tell(STORIES[name][0], database, monkeypatch) is None


@pytest.mark.parametrize("name", BUGS)
def test_planted_bug_is_detected(database: Database, monkeypatch: Patch, name: str) -> None:
    """With the bug planted, the scenario reports a violation."""
    story, bug = BUGS[name]

    assert tell(story, database, monkeypatch, bug) is not None
