"""Versions of a Lance table: list, describe, commit.

May import the rooms below. Knows no wire format. Of a managed table the store says which versions there are: the row is the commit, by
compare-and-swap on the newest number, and the manifest gets its final name after it. What somebody wrote past the server is moved aside
before a list or a version is told, so nobody ever reads it. Of any other table its files say what there is, and nothing is kept here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.lance_manifests import VERSION_MAX, check_branch, manifest_name, manifest_of
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, CommitConflict, InvalidTable, MissingFile, NotFound, Unavailable
from limnos.model.lance import LanceVersion
from limnos.services.lance_manifests import Manifests
from limnos.services.lance_tables import LanceTable, lance_find, lance_load
from limnos.store.lance_versions import lance_top_read, lance_version_read, lance_versions_read

if TYPE_CHECKING:
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scene import Scene, Scope
    from limnos.store.tx import Tx

ROUNDS = 20
CHUNK = 1000


class Window(NamedTuple):
    """Which part of a list is asked for: so many after a version, in an order."""

    after: int | None = None
    limit: int | None = None
    descending: bool = False


class Shown(NamedTuple):
    """A version as it is told: where its manifest lies in the store, and what is known of it."""

    version: int
    path: str
    size: int | None
    e_tag: str | None
    at_ms: int | None
    metadata: str = "{}"


class NewVersion(NamedTuple):
    """A version that a client has staged and wants committed."""

    version: int
    path: str
    size: int | None
    e_tag: str | None
    metadata: str
    branch: str


class VersionCreate(msgspec.Struct, frozen=True):
    """Commit a version to a managed table; the one before it has its manifest, and is `settled`."""

    table: Node
    version: LanceVersion
    settled: int


def manifests_for(ctx: Context, table: LanceTable, *, branch: str) -> Manifests:
    """Return the manifests of a table's branch."""
    return Manifests(ctx.services.files, table.location, branch=branch, place=table.place)


async def latest(ctx: Context, table: LanceTable, *, branch: str) -> LanceVersion | None:
    """Return a managed table's newest version, its manifest in place and none above it; None when there is none.

    Raises InvalidTable when somebody has deleted its manifest.
    """
    manifests = manifests_for(ctx, table, branch=branch)
    read = partial(lance_top_read, table.node.id, branch)
    for _ in range(ROUNDS):
        top = await ctx.look_up(read)
        if top is None and branch:
            return None
        if top is not None and not await manifests.settle(top):
            raise _lost(table, top)
        above = await manifests.above(0 if top is None else top.version)
        if not above:
            return top
        if top == await ctx.look_up(read):  # else they are commits that came meanwhile
            for name in above:
                await manifests.move_aside(name)
    raise Unavailable("The table changed faster than it could be read: try again")


def _lost(table: LanceTable, version: LanceVersion) -> InvalidTable:
    name = manifest_name(version.version, version.scheme)
    return InvalidTable(
        f"The newest version, {version.version}, of the table at {table.location} has lost its manifest {name}: put the file back, or "
        "deregister the table and register what is left of it"
    )


async def versions_list(
    ctx: Context, scope: Scope, *, levels: Levels, branch: str, window: Window
) -> tuple[list[Shown], int | None]:
    """List versions of a branch in order; also the one to go on after. Raises NotFound (table, branch), Forbidden, InvalidTable."""
    branch = check_branch(branch)
    table = await ctx.read(scope, lambda scene: lance_load(scene, levels))
    if not table.record.managed:
        return _cut(await _in_storage(ctx, table, branch=branch), window)
    top = await latest(ctx, table, branch=branch)
    if top is None:
        if branch:
            raise NotFound(branch, kind="branch")
        return [], None
    manifests = manifests_for(ctx, table, branch=branch)
    if window.descending and window.limit == 1 and window.after is None:
        return [_shown(manifests, top)], top.version if top.version > 1 else None
    found = await _kept(ctx, table, manifests=manifests, top=top, window=window)
    return _cut(found, window)


async def _kept(
    ctx: Context, table: LanceTable, *, manifests: Manifests, top: LanceVersion, window: Window
) -> list[Shown]:
    """Read versions up to the newest one, those left out whose manifests a cleanup has deleted."""
    there = await manifests.names()
    wanted = None if window.limit is None else window.limit + 1
    shown: list[Shown] = []
    after: int | None = window.after
    while wanted is None or len(shown) < wanted:
        read = partial(lance_versions_read, table.node.id, manifests.branch)
        rows = await ctx.look_up(partial(read, after=after, descending=window.descending, limit=CHUNK))
        shown += [
            _shown(manifests, each)
            for each in rows
            if each.version == top.version or (each.version < top.version and each.version in there)
        ]
        if len(rows) < CHUNK:
            break
        after = rows[-1].version
    return shown


def _cut(found: list[Shown], window: Window) -> tuple[list[Shown], int | None]:
    """Cut a page from an ordered list, or from one that is to be put in order."""
    ordered = sorted(found, key=lambda each: each.version, reverse=window.descending)
    after = window.after
    if after is not None:
        ordered = [each for each in ordered if (each.version < after if window.descending else each.version > after)]
    if window.limit is None or len(ordered) <= window.limit:
        return ordered, None
    page = ordered[: window.limit]
    return page, page[-1].version if page else None


def _shown(manifests: Manifests, version: LanceVersion) -> Shown:
    path = manifests.path_of(manifest_name(version.version, version.scheme))
    return Shown(version.version, path, version.size, version.e_tag, version.created_at, version.metadata)


async def _in_storage(ctx: Context, table: LanceTable, *, branch: str) -> list[Shown]:
    """Read the versions of a table whose files say what there is. Raises NotFound for a branch that has none."""
    manifests = manifests_for(ctx, table, branch=branch)
    shown = []
    for entry in await manifests.entries():
        manifest = manifest_of(entry.name)
        if manifest is not None:
            path = manifests.path_of(entry.name)
            shown.append(Shown(manifest.version, path, entry.size, None, entry.modified_ms or None))
    if branch and not shown:
        raise NotFound(branch, kind="branch")
    return shown


async def version_describe(ctx: Context, scope: Scope, *, levels: Levels, branch: str, version: int | None) -> Shown:
    """Describe one version, the newest one for None. Raises NotFound (table, branch, version), Forbidden, InvalidTable."""
    branch = check_branch(branch)
    table = await ctx.read(scope, lambda scene: lance_load(scene, levels))
    if not table.record.managed:
        found = await _in_storage(ctx, table, branch=branch)
        wanted = version if version is not None else max((each.version for each in found), default=0)
        return next((each for each in found if each.version == wanted), None) or _refuse_version(version)
    top = await latest(ctx, table, branch=branch)
    if top is None:
        raise NotFound(branch, kind="branch") if branch else _no_version(version)
    manifests = manifests_for(ctx, table, branch=branch)
    if version is None or version == top.version:
        return _shown(manifests, top)
    row = await kept_version(ctx, table, manifests=manifests, version=version)
    return _shown(manifests, row)


async def kept_version(ctx: Context, table: LanceTable, *, manifests: Manifests, version: int) -> LanceVersion:
    """Return a version of a managed table whose manifest is there. Raises NotFound."""
    row = None
    if 0 < version <= VERSION_MAX:
        row = await ctx.look_up(partial(lance_version_read, table.node.id, manifests.branch, version=version))
    if row is None or not (await manifests.is_there(row) if row.settled else await manifests.settle(row)):
        raise _no_version(version)
    return row


def _no_version(version: int | None) -> NotFound:
    return NotFound("latest" if version is None else str(version), kind="version")


def _refuse_version(version: int | None) -> Shown:
    raise _no_version(version)


async def version_create(ctx: Context, scope: Scope, *, levels: Levels, asked: NewVersion) -> Shown:
    """Commit a version that a client has staged: the one after the newest. The same once more succeeds.

    Raises CommitConflict for any other number, BadRequest for what is no staged manifest of the table, NotFound, Forbidden.
    """
    branch = check_branch(asked.branch)
    table = await ctx.read(scope, lambda scene: lance_load(scene, levels, action=Action.TABLE_COMMIT))
    manifests = manifests_for(ctx, table, branch=branch)
    name = manifests.staged_name(asked.path)
    if not table.record.managed:
        return await _create_in_storage(ctx, scope, levels=levels, table=table, manifests=manifests, asked=asked)
    async with ctx.services.lines.turn(table.node.id):
        before = await settled_top(ctx, table, branch=branch)
        done = await repeated(ctx, table, manifests=manifests, asked=asked, name=name)
        if done is not None:
            return _shown(manifests, done)
        draft = await drafted(ctx, manifests, asked=asked, name=name)

        def decide(scene: Scene) -> Permit[VersionCreate]:
            node, _, decision = lance_find(scene, levels, action=Action.TABLE_COMMIT)
            return scene.permit(VersionCreate(node, draft, 0 if before is None else before.version), decision)

        made = await ctx.write(scope, decide, version_insert)
        await manifests.settle(made)
        if before is not None and before.version < made.version and await manifests.settle(before):
            await manifests.drop_staged(before)
    return _shown(manifests, made)


async def settled_top(ctx: Context, table: LanceTable, *, branch: str) -> LanceVersion | None:
    """Return the newest version with its manifest in place, before another one is committed. Raises InvalidTable."""
    top = await ctx.look_up(partial(lance_top_read, table.node.id, branch))
    if top is not None and not await manifests_for(ctx, table, branch=branch).settle(top):
        raise _lost(table, top)
    return top


async def repeated(
    ctx: Context, table: LanceTable, *, manifests: Manifests, asked: NewVersion, name: str
) -> LanceVersion | None:
    """Return the version that a request has committed before, by the name of what it staged or by its bytes."""
    if not 0 < asked.version <= VERSION_MAX:
        return None
    row = await ctx.look_up(partial(lance_version_read, table.node.id, manifests.branch, version=asked.version))
    if row is None:
        return None
    return row if row.staged == name or await manifests.is_same(name, row) else None


async def drafted(ctx: Context, manifests: Manifests, *, asked: NewVersion, name: str) -> LanceVersion:
    """Return the row of a version whose staged manifest is there. Raises BadRequest."""
    size = await manifests.check_staged(name, version=asked.version, size=asked.size)
    scheme = (manifest_of(name.partition(".manifest")[0] + ".manifest") or (0, 2))[1]
    now_ms = ctx.services.store.time.now_ms()
    return LanceVersion(
        manifests.branch, asked.version, scheme, name, size, asked.e_tag, asked.metadata, now_ms, settled=False
    )


def version_insert(tx: Tx, permit: Permit[VersionCreate]) -> LanceVersion:
    """Insert the version if it is the one after the newest."""
    command = permit.command
    node = tx.nodes.confirm(command.table)
    return insert_after(tx, node, version=command.version, settled=command.settled)


def insert_after(tx: Tx, node: Node, *, version: LanceVersion, settled: int) -> LanceVersion:
    """Insert a version of a table that was confirmed. Raises CommitConflict unless it is the next one, or there already."""
    versions = tx.lance_versions
    top = versions.top(node.id, version.branch)
    if top is not None and version.version != top.version + 1:
        found = versions.find(node.id, version.branch, version=version.version)
        if found is not None and found.staged == version.staged:
            return found
        raise conflict(node.name, version.version, top=top.version)
    if top is None and not version.branch and version.version != 1:
        raise conflict(node.name, version.version, top=0)
    if settled:
        versions.settle(node.id, version.branch, version=settled)
    versions.create(node.id, version)
    tx.nodes.committed(node)
    return version


def conflict(table: str, version: int, *, top: int) -> CommitConflict:
    """Say that a version is not the next one."""
    have = f"its newest version is {top}" if top else "it has no version yet"
    return CommitConflict(
        f"Version {version} of table {table} is not the next one, as {have}: read it again, and commit {top + 1}"
    )


async def _create_in_storage(
    ctx: Context, scope: Scope, *, levels: Levels, table: LanceTable, manifests: Manifests, asked: NewVersion
) -> Shown:
    """Commit a version to a table whose files say what there is: its manifest gets its final name, if that is free."""
    name = manifests.staged_name(asked.path)
    draft = await drafted(ctx, manifests, asked=asked, name=name)
    there = await manifests.names()
    top = max(there, default=0)
    if asked.version not in there and asked.version != top + 1 and not (manifests.branch and not there):
        raise conflict(table.node.name, asked.version, top=top)
    try:
        await manifests.publish(draft)
    except (AlreadyExists, MissingFile):
        raise conflict(table.node.name, asked.version, top=top) from None
    await manifests.drop_staged(draft)
    await ctx.write(scope, partial(_announced, levels=levels), _announce)
    return _shown(manifests, draft)


def _announced(scene: Scene, *, levels: Levels) -> Permit[Node]:
    node, _, decision = lance_find(scene, levels, action=Action.TABLE_COMMIT)
    return scene.permit(node, decision)


def _announce(tx: Tx, permit: Permit[Node]) -> None:
    """Leave a change that says so."""
    tx.nodes.committed(tx.nodes.confirm(permit.command))
