# SPDX-License-Identifier: Apache-2.0
"""Lance references: lists, creates, moves and deletes the tags and branches of a table.

Must not know any wire format. References are files of the table; Lance's own library reads and writes them in worker
processes. In a managed table a tag names a version in the store, and a branch exists once the store has its first
version. A branch that a client wrote directly to storage is not listed, and is replaced when a branch of its name is
created here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from limnos.access.actions import Action
from limnos.formats.lance_manifests import check_branch
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, NotFound
from limnos.model.lance import LanceVersion
from limnos.model.permits import Permit
from limnos.names.path import Levels
from limnos.rooms.lance.services.catalog_directories import table_read_confirmed
from limnos.rooms.lance.services.commits import FinalCheck
from limnos.rooms.lance.services.reference_reads import references_of
from limnos.rooms.lance.services.row_operations import bind_question
from limnos.rooms.lance.services.versions import latest_version, manifests_for, version_require
from limnos.rooms.lance.services.workers import answer_question, worker_task_of
from limnos.rooms.lance.sources import questions
from limnos.services.lance.tables import LanceTable, lance_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.store.tx import Tx


class BranchVersionsStore(msgspec.Struct, frozen=True):
    """The command to store the versions of a new branch of a managed table. Older rows of a branch of that name are
    replaced.
    """

    branch: str
    versions: tuple[LanceVersion, ...]


class ReferenceTarget(msgspec.Struct, frozen=True):
    """The version of a branch to which a tag or a new branch refers; a version of None means the newest."""

    version: int | None
    branch: str = ""


async def references_list(ctx: Context, scope: RequestScope, *, levels: Levels) -> questions.TableReferences:
    """List a table's tags and branches. Raises NotFound, PermissionDenied, InvalidTable."""
    return await table_read_confirmed(ctx, scope, levels=levels, work=partial(references_of, ctx))


async def tag_find(ctx: Context, scope: RequestScope, *, levels: Levels, name: str) -> questions.TagReference:
    """Return the branch and version to which a tag refers. Raises NotFound, PermissionDenied, InvalidTable."""
    reference = (await references_list(ctx, scope, levels=levels)).tags.get(name)
    if reference is None:
        raise NotFound(name, kind="tag")
    return reference


async def tag_put(
    ctx: Context, scope: RequestScope, *, levels: Levels, name: str, target: ReferenceTarget, replaces: bool
) -> None:
    """Create a tag, or with `replaces` move an existing one to another version.

    Raises NotFound (tag, version, branch), AlreadyExists, PermissionDenied.
    """
    table = await _to_change(ctx, scope, levels=levels)
    target = await _resolve_target(ctx, table, target=target)
    question = questions.TagPut(
        location="",
        options={},
        name=name,
        at_version=target.version,
        at_branch=target.branch or None,
        replaces=replaces,
    )
    await _change_and_announce(ctx, scope, levels=levels, table=table, question=question)


async def tag_drop(ctx: Context, scope: RequestScope, *, levels: Levels, name: str) -> None:
    """Delete a tag. Raises NotFound, PermissionDenied."""
    table = await _to_change(ctx, scope, levels=levels)
    await _change_and_announce(
        ctx, scope, levels=levels, table=table, question=questions.TagDrop(location="", options={}, name=name)
    )


async def branch_make(ctx: Context, scope: RequestScope, *, levels: Levels, name: str, target: ReferenceTarget) -> None:
    """Create a branch at a version; for a managed table, its versions are stored.

    Raises AlreadyExists, NotFound (table, version, branch), BadRequest for an invalid name, PermissionDenied,
    InvalidTable, ServiceUnavailable.
    """
    if not check_branch(name):
        raise BadRequest("The main branch always exists: choose another name")
    table = await _to_change(ctx, scope, levels=levels)
    target = await _resolve_target(ctx, table, target=target)
    question = questions.BranchMake(
        location="", options={}, name=name, from_version=target.version, from_branch=target.branch or None
    )
    if not table.record.managed:
        await _change_and_announce(ctx, scope, levels=levels, table=table, question=question)
        return
    async with ctx.services.lines.turn(table.node.id):
        if await latest_version(ctx, table, branch=name) is not None:
            raise AlreadyExists(name, kind="branch")
        try:
            look = await _change(ctx, scope, levels=levels, table=table, question=question)
        except AlreadyExists:  # a client wrote it directly to storage, or an interrupted request left it
            await _change(
                ctx,
                scope,
                levels=levels,
                table=table,
                question=questions.BranchDrop(location="", options={}, name=name),
            )
            look = await _change(ctx, scope, levels=levels, table=table, question=question)
        await _store_branch(ctx, look, table=table, branch=name)


async def _store_branch(ctx: Context, look: FinalCheck, *, table: LanceTable, branch: str) -> None:
    """Store the versions of a managed table's branch, read from the branch's manifests."""
    now_ms = ctx.services.store.time.now_ms()
    versions = await manifests_for(ctx, table, branch=branch).versions(now_ms=now_ms)
    await look.submit(BranchVersionsStore(branch, tuple(versions)), branch_versions_store)


def branch_versions_store(tx: Tx, permit: Permit[tuple[Node, BranchVersionsStore]]) -> None:
    """Store the branch's versions in place of older rows; no-op if the table was dropped."""
    decided, command = permit.command
    node = tx.nodes.live(decided.id)
    if node is None:
        return
    tx.lance_versions.delete_branch(node.id, command.branch)
    tx.lance_versions.create_all(node.id, command.versions)
    tx.nodes.add_commit_change(node)


async def branch_drop(ctx: Context, scope: RequestScope, *, levels: Levels, name: str) -> None:
    """Delete a branch with its files, and the rows of its versions.

    Raises NotFound, InUse if another branch or a tag needs it, BadRequest for the main branch, PermissionDenied,
    InvalidTable, ServiceUnavailable.
    """
    if not check_branch(name):
        raise BadRequest("The main branch cannot be deleted: drop the table instead")
    table = await _to_change(ctx, scope, levels=levels)
    if not table.record.managed:
        await _change_and_announce(
            ctx, scope, levels=levels, table=table, question=questions.BranchDrop(location="", options={}, name=name)
        )
        return
    async with ctx.services.lines.turn(table.node.id):
        if await latest_version(ctx, table, branch=name) is None:
            raise NotFound(name, kind="branch")
        look = await _change(
            ctx, scope, levels=levels, table=table, question=questions.BranchDrop(location="", options={}, name=name)
        )
        await _store_branch(ctx, look, table=table, branch=name)


async def _to_change(ctx: Context, scope: RequestScope, *, levels: Levels) -> LanceTable:
    return await ctx.read(scope, lambda request_view: lance_load(request_view, levels, action=Action.TABLE_COMMIT))


async def _resolve_target(ctx: Context, table: LanceTable, *, target: ReferenceTarget) -> ReferenceTarget:
    """Resolve a target to an exact version.

    For a managed table the store must have that version; for other tables only the branch name is checked. Raises
    NotFound (version, branch).
    """
    branch = check_branch(target.branch)
    if not table.record.managed:
        return ReferenceTarget(target.version, branch)
    top = await latest_version(ctx, table, branch=branch)
    if top is None:
        raise NotFound(branch, kind="branch") if branch else NotFound(str(target.version or "latest"), kind="version")
    if target.version is not None and target.version != top.version:
        await version_require(ctx, table, manifests=manifests_for(ctx, table, branch=branch), version=target.version)
    return ReferenceTarget(target.version or top.version, branch)


async def _change_and_announce(
    ctx: Context, scope: RequestScope, *, levels: Levels, table: LanceTable, question: questions.LanceQuestion
) -> None:
    """Change a table's files in a worker process, and publish the change."""
    look = await _change(ctx, scope, levels=levels, table=table, question=question)
    await look.announce()


async def _change(
    ctx: Context, scope: RequestScope, *, levels: Levels, table: LanceTable, question: questions.LanceQuestion
) -> FinalCheck:
    """Change a table's files in a worker process; access is decided again immediately before the change.

    Raises NotFound, PermissionDenied.
    """
    look = FinalCheck(ctx, scope, table=table, levels=levels)
    await answer_question(ctx, worker_task_of(ctx, bind_question(table, question), settled=look), shape=type(None))
    return look


def names_of(names: Iterable[str], *, after: str, limit: int | None) -> tuple[list[str], str | None]:
    """Return the page of at most `limit` names after `after`, and the name after which the next page begins; None at
    the end.
    """
    left = sorted(name for name in names if name > after)
    page = left if limit is None else left[:limit]
    return page, page[-1] if page and len(page) < len(left) else None
