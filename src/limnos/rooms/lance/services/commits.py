# SPDX-License-Identifier: Apache-2.0
"""Lance commits: commits versions to a table with managed versions, or to one whose files define its versions.

Must not know any wire format. The row of a version is the commit; then its manifest gets its final name (decision
record 0052). A commit first completes earlier ones, so that at any time only the newest version may lack its final
manifest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from limnos.access.actions import Action
from limnos.formats.lance_manifests import V2, VERSION_MAX, check_branch, staged_version
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, CommitConflict, MissingFile, ServiceUnavailable, StorageFailed
from limnos.model.lance import LanceVersion
from limnos.model.permits import Permit
from limnos.names.path import Levels
from limnos.rooms.lance.services.manifests import BranchManifests
from limnos.rooms.lance.services.versions import VersionView, manifest_lost_error, manifests_for, version_view_of
from limnos.services.lance.table_files import NewVersion
from limnos.services.lance.tables import LanceTable, lance_find, lance_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.objects.lance_versions import lance_unsettled_read, lance_version_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.lance")
C = TypeVar("C")


class VersionCreate(msgspec.Struct, frozen=True):
    """The command to commit a version to a table with managed versions.

    Manifests of versions up to `settled` have their final names. With `anew` the command also deletes the branch's
    older rows, since the branch's files were deleted.
    """

    table: Node
    version: LanceVersion
    settled: int = 0
    anew: bool = False


class VersionDraft(NamedTuple):
    """A version to commit: its row, and the earlier rows without a final manifest.

    If `done`, an earlier identical request has committed the version, and `row` is the row of that commit.
    """

    manifests: BranchManifests
    row: LanceVersion
    before: tuple[LanceVersion, ...] = ()
    anew: bool = False
    done: bool = False

    def command(self, table: Node) -> VersionCreate:
        """Return the command that inserts the version's row."""
        return VersionCreate(table, self.row, self.before[-1].version if self.before else 0, self.anew)


async def version_create(ctx: Context, scope: RequestScope, *, levels: Levels, new_version: NewVersion) -> VersionView:
    """Commit a staged version, which must follow the newest one. Repeating the same commit succeeds.

    Raises CommitConflict for any other version number, BadRequest if there is no valid staged manifest at the path,
    InvalidTable if the newest manifest is lost, NotFound, PermissionDenied.
    """
    table = await ctx.read(scope, lambda request_view: lance_load(request_view, levels, action=Action.TABLE_COMMIT))
    if not table.record.managed:
        return await _create_in_storage(ctx, scope, levels=levels, new_version=new_version)
    async with ctx.services.lines.turn(table.node.id):
        draft = await version_draft_of(ctx, table, new_version=new_version)

        def decide(request_view: RequestView) -> Permit[VersionCreate]:
            node, _, decision = lance_find(request_view, levels, action=Action.TABLE_COMMIT)
            return request_view.permit(draft.command(node), decision)

        lance_version = draft.row if draft.done else await ctx.write(scope, decide, version_insert)
        return await publish_manifest(draft._replace(row=lance_version))


async def version_draft_of(ctx: Context, table: LanceTable, *, new_version: NewVersion) -> VersionDraft:
    """Check the staged version of a managed table, and complete earlier commits. Raises BadRequest for an invalid
    staged manifest, InvalidTable if the newest manifest is lost.
    """
    manifests = manifests_for(ctx, table, branch=check_branch(new_version.branch))
    name = manifests.staged_name(new_version.path)
    before, anew = await _settle_pending(ctx, table, manifests=manifests)
    repeated_commit = (
        None
        if anew
        else await _find_repeated_commit(ctx, table, manifests=manifests, new_version=new_version, name=name)
    )
    if repeated_commit is not None:
        return VersionDraft(manifests=manifests, row=repeated_commit, before=before, done=True)
    row = await new_row(ctx, manifests, new_version=new_version, name=name)
    return VersionDraft(manifests=manifests, row=row, before=before, anew=anew)


async def _settle_pending(
    ctx: Context, table: LanceTable, *, manifests: BranchManifests
) -> tuple[tuple[LanceVersion, ...], bool]:
    """Give the manifests of unfinished versions their final names.

    Returns the rows of these versions, and whether the branch's files were deleted.

    Raises InvalidTable if the newest manifest is lost.
    """
    rows = await ctx.look_up(partial(lance_unsettled_read, table.node.id, manifests.branch))
    for row in rows:
        if not await manifests.settle(row):
            if manifests.branch and not await manifests.names():
                return (), True
            if row is rows[-1]:
                raise manifest_lost_error(table, row)
    return tuple(rows), False


async def _find_repeated_commit(
    ctx: Context, table: LanceTable, *, manifests: BranchManifests, new_version: NewVersion, name: str
) -> LanceVersion | None:
    """Return the version that an earlier identical request committed, found by the staged file's name or its bytes;
    None if there was none.
    """
    if not 0 < new_version.version <= VERSION_MAX:
        return None
    row = await ctx.look_up(partial(lance_version_read, table.node.id, manifests.branch, version=new_version.version))
    if row is None:
        return None
    return row if row.staged == name or await manifests.is_same(name, row) else None


async def new_row(ctx: Context, manifests: BranchManifests, *, new_version: NewVersion, name: str) -> LanceVersion:
    """Check the staged manifest of a version, and return the version's row. Raises BadRequest if the manifest is
    invalid.
    """
    size = await manifests.check_staged(name, version=new_version.version, size=new_version.size)
    version_in_name = staged_version(name)
    return LanceVersion(
        branch=manifests.branch,
        version=new_version.version,
        scheme=V2 if version_in_name is None else version_in_name.scheme,
        staged=name,
        size=size,
        e_tag=new_version.e_tag,
        metadata=new_version.metadata,
        created_at=ctx.services.store.time.now_ms(),
        settled=False,
    )


async def publish_manifest(draft: VersionDraft) -> VersionView:
    """Finish a commit: give the manifest its final name, and delete staged files of earlier versions.

    Returns the version.

    A storage error here does not undo the commit, and reporting a failure would make the client repeat it. So the next
    access to the table completes it. Until then the returned path is that of the staged manifest.
    """
    manifests, row = draft.manifests, draft.row
    view = version_view_of(manifests, row)
    try:
        await manifests.settle(row)
        for each in draft.before:
            if each.version < row.version and await manifests.settle(each):
                await manifests.drop_staged(each)
    except (StorageFailed, ServiceUnavailable) as error:
        log.warning(
            "a committed manifest has no final name yet",
            table=draft.manifests.directory,
            version=row.version,
            error=error.message,
        )
        return view._replace(path=manifests.path_of(row.staged)) if row.staged else view
    return view


def version_insert(tx: Tx, permit: Permit[VersionCreate]) -> LanceVersion:
    """Insert the version if it follows the newest one, or return the row of an earlier commit of the same staged
    manifest. Raises CommitConflict for any other version number.
    """
    command = permit.command
    node, version, versions = tx.nodes.confirm(command.table), command.version, tx.lance_versions
    if command.anew:
        versions.delete_branch(node.id, version.branch)
    top = versions.top(node.id, version.branch)
    if top is not None and version.version != top.version + 1:
        lance_version = versions.find(node.id, version.branch, version=version.version)
        if lance_version is not None and lance_version.staged == version.staged:
            return lance_version
        raise version_conflict(node.name, version.version, top=top.version)
    if top is None and not version.branch and version.version != 1:
        raise version_conflict(node.name, version.version, top=0)
    if command.settled:
        versions.settle(node.id, version.branch, version=command.settled)
    versions.create(node.id, version)
    tx.nodes.add_commit_change(node)
    return version


def version_conflict(table: str, version: int, *, top: int) -> CommitConflict:
    """Return the error for a version that does not follow the newest one."""
    have = f"its newest version is {top}" if top else "it has no version yet"
    return CommitConflict(
        f"Version {version} of table {table} is not the next one, as {have}: read it again, and commit {top + 1}"
    )


async def _create_in_storage(
    ctx: Context, scope: RequestScope, *, levels: Levels, new_version: NewVersion
) -> VersionView:
    """Commit a version to a table whose files define its versions: its manifest gets its final name, if that is free.
    Raises CommitConflict if not, and as `version_create`.
    """
    table = await ctx.read(scope, lambda request_view: lance_load(request_view, levels, action=Action.TABLE_COMMIT))
    manifests = manifests_for(ctx, table, branch=check_branch(new_version.branch))
    row = await new_row(ctx, manifests, new_version=new_version, name=manifests.staged_name(new_version.path))
    names = await manifests.names()
    look = FinalCheck(ctx, scope, table=table, levels=levels)
    top = max(names, default=0)
    if new_version.version not in names and new_version.version != top + 1 and (names or not manifests.branch):
        raise version_conflict(table.node.name, new_version.version, top=top)
    await look()
    try:
        await manifests.publish(row)
    except (AlreadyExists, MissingFile):
        raise version_conflict(table.node.name, new_version.version, top=top) from None
    await manifests.drop_staged(row)
    await look.announce()
    return version_view_of(manifests, row)


async def announce_change(ctx: Context, scope: RequestScope, *, levels: Levels) -> None:
    """Publish a change of a table's files, for a caller who may change them. Raises NotFound, PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[Node]:
        node, _, decision = lance_find(request_view, levels, action=Action.TABLE_COMMIT)
        return request_view.permit(node, decision)

    await ctx.write(scope, decide, _mark_committed)


def _mark_committed(tx: Tx, permit: Permit[Node]) -> None:
    tx.nodes.add_commit_change(tx.nodes.confirm(permit.command))


class FinalCheck:
    """The access decision on a change of a table's files, made just before the change, and the publishing of the
    change.

    The store's transaction cannot include files. If a right is revoked after this check, the files have already
    changed, so the change is published under this check's permit. Call the instance before the change, and `announce`
    or `submit` after it.
    """

    __slots__ = ("_ctx", "_levels", "_permit", "_scope", "_table")

    def __init__(self, ctx: Context, scope: RequestScope, *, table: LanceTable, levels: Levels) -> None:
        self._ctx, self._scope, self._table, self._levels = ctx, scope, table, levels
        self._permit: Permit[Node] | None = None

    async def __call__(self) -> None:
        """Make the access decision on the change.

        Raises NotFound, PermissionDenied, CommitConflict (another table has replaced it).
        """
        permit, location = await self._ctx.read(self._scope, self._decide)
        if (permit.command.id, location) != (self._table.node.id, self._table.location):
            raise CommitConflict(
                "The table was replaced by another one concurrently, and nothing was changed: read the table again"
            )
        self._permit = permit

    def _decide(self, request_view: RequestView) -> tuple[Permit[Node], str]:
        node, _, decision = lance_find(request_view, self._levels, action=Action.TABLE_COMMIT)
        return request_view.permit(node, decision), request_view.document(node.id).location

    async def announce(self) -> None:
        """Publish that files of the table changed, for the change feed and caches."""
        await self.submit(None, _write_announcement)

    async def submit(self, command: C, mutation: Callable[[Tx, Permit[tuple[Node, C]]], None]) -> None:
        """Run a mutation under the permit of the last check, even if the right was revoked since then."""
        if self._permit is None:
            raise RuntimeError("the table was not read before the change")
        permit = self._permit.about((self._permit.command, command))
        await self._ctx.submit(replace(permit, stamps=()), mutation)


def _write_announcement(tx: Tx, permit: Permit[tuple[Node, None]]) -> None:
    node = tx.nodes.live(permit.command[0].id)
    if node is not None:
        tx.nodes.add_commit_change(node)
