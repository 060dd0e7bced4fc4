# SPDX-License-Identifier: Apache-2.0
"""Trash of a catalog: lists and restores dropped objects, and decides who may restore them.

Must not know any wire format. The trash is read from the store at each request and not cached. Decisions use the view,
with the ancestors that the restored object would have: its own id, owner and grants, below its former parent. An object
that the caller may not restore is treated as missing.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import msgspec

from limnos.access.actions import Action, actions_named
from limnos.model.decisions import ChainLink, Decision, SecurableChain
from limnos.model.entities import Node, TrashRow
from limnos.model.errors import AlreadyExists, BadRequest, NotFound
from limnos.model.kind_table import kinds_with
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.names.iceberg import render
from limnos.names.logical import LogicalCodec
from limnos.names.parts import check_levels
from limnos.names.path import PARTS_MAX, Levels
from limnos.services.lance.purge_tasks import LANCE_PURGE, lance_purge_of
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, least_levels
from limnos.services.storage.fileset_purges import fileset_purge_later
from limnos.services.storage.location_claims import locations_mark_deleting, locations_release
from limnos.services.storage.purges import purge_later
from limnos.store.objects.trash import Ancestors, TrashRows, trash_expired, trash_read, trashed_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each, require_fact
from limnos.view.keys import node_key

PAGE_MAX = 1000
SLICE_MAX = 1000
"""The number of dropped objects that are read and decided together."""
SLICES_MAX = 20
"""The maximum number of slices without visible objects that one request reads."""
CONTENTS_MAX = 10_000
"""The maximum number of objects that are restored with a namespace."""
NEWEST = (2**62, 2**62)
_CREATES = actions_named("create", *kinds_with(lambda row: row.trash))
"""The action that restoring an object of a kind needs at the target."""


class TrashRestore(msgspec.Struct, frozen=True, kw_only=True):
    """The command to restore an object below `into`; with `contents` also the objects that were dropped in it.

    `room` is the maximum number of levels below it at the target.
    """

    dropped: TrashRow
    into: Node
    name: str
    contents: bool
    room: int
    codec: LogicalCodec
    """The codec of namespace names in the catalog: objects whose names it cannot spell stay in the trash."""


class TrashForget(msgspec.Struct, frozen=True):
    """The command to remove an object from the trash now; its files are kept."""

    dropped_id: int


class TrashEntry(NamedTuple):
    """An object that can be restored: its path below the catalog, with the current names of its ancestors, and the
    names of the restrictions that stay with its path, for callers who may restrict it.
    """

    row: TrashRow
    path: Levels
    restrictions: tuple[str, ...] = ()


class TrashPage(NamedTuple):
    """The objects that the caller may restore, newest first, and the page token of the next page; None at the end."""

    entries: tuple[TrashEntry, ...]
    following: tuple[int, int] | None


class TrashRestored(NamedTuple):
    """A restored object: its kind, its path below the catalog, and the counts of restored and skipped objects in it."""

    kind: Kind
    path: Levels
    contents: int
    left: int


def _catalog_id(request_view: RequestView) -> int:
    request_view.require_in_use()
    request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)
    return request_view.catalog.id


def _chain(request_view: RequestView, row: TrashRow, above: Ancestors) -> SecurableChain:
    """Return a dropped object with its ancestors up to the metalake, dropped or not."""
    links = [ChainLink(row.id, row.kind, row.name)]
    parent_id = row.parent_id
    while parent_id != request_view.catalog.id:
        node = require_fact(request_view.view, node_key(parent_id), zone=request_view.zone)
        if node is None:
            parent, kind, name = above[parent_id]
        else:
            parent, kind, name = node.parent_id, node.kind, node.name
        links.append(ChainLink(parent_id, kind, name))
        parent_id = parent
    return (*links, *request_view.settled.outer)


def _path(request_view: RequestView, chain: SecurableChain) -> Levels:
    return tuple(link.name for link in reversed(chain[: -len(request_view.settled.outer)]))


async def trash_list(
    ctx: Context, scope: RequestScope, *, below: Levels, before: tuple[int, int], limit: int
) -> TrashPage:
    """Return a page of the dropped objects that the caller may restore in a catalog, or below a path of it.

    The page token of a full page is the last returned object's, so that it does not reveal hidden objects. Raises
    NotFound and PermissionDenied for the catalog, NotInUse.
    """
    catalog_id = await ctx.read(scope, _catalog_id)
    count = max(1, min(limit, PAGE_MAX))
    entries: list[TrashEntry] = []
    for _ in range(SLICES_MAX):
        rows: TrashRows = await ctx.look_up(partial(trash_read, catalog_id, before=before, limit=SLICE_MAX))
        entries += await ctx.read(scope, partial(_visible_entries, catalog_id=catalog_id, rows=rows, below=below))
        is_last = len(rows.rows) < SLICE_MAX
        if len(entries) > count or (len(entries) == count and not is_last):
            return TrashPage(tuple(entries[:count]), _mark(entries[count - 1].row))
        if is_last:
            return TrashPage(tuple(entries), None)
        before = _mark(rows.rows[-1])
    return TrashPage(tuple(entries), before)


def _mark(row: TrashRow) -> tuple[int, int]:
    return row.dropped_at, row.id


def _visible_entries(
    request_view: RequestView, *, catalog_id: int, rows: TrashRows, below: Levels
) -> tuple[TrashEntry, ...]:
    """Return those of the dropped objects that are below a path and that the caller may restore."""
    if _catalog_id(request_view) != catalog_id:
        return ()

    def judge(row: TrashRow) -> TrashEntry | None:
        chain = _chain(request_view, row, rows.above)
        if not request_view.decide(Action.UNDROP, chain).allowed:
            return None
        # Whoever may restore an object may grant on it, and so may know its restrictions.
        return TrashEntry(row, _path(request_view, chain), rows.remembered.get(row.id, ()))

    entries = for_each(rows.rows, judge)
    return tuple([each for each in entries if each is not None and each.path[: len(below)] == below])


async def trash_restore(
    ctx: Context, scope: RequestScope, *, dropped_id: int, to: Levels | None = None, contents: bool = False
) -> TrashRestored:
    """Restore a dropped object.

    Args:
        ctx: The request.
        scope: The catalog.
        dropped_id: The id of the dropped object.
        to: The levels of its new name; None for its former path.
        contents: Whether the objects dropped in a namespace are restored with it; of several with one name, the one
            dropped last.

    Raises:
        NotFound: The trash has no such object that the caller may restore, or its parent was dropped too.
        AlreadyExists: The name is taken by now.
        BadRequest: The object has no contents, has too many, or would be nested too deep.
        InvalidName: The new name, or the name of a restored namespace, is not allowed in the catalog.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not create it at the target.
    """
    if to is not None:
        check_levels(to)
    path: Levels = ()

    def decide(request_view: RequestView) -> Permit[TrashRestore]:
        nonlocal path
        _catalog_id(request_view)
        if request_view.catalog.id != catalog_id or not rows.rows:
            raise _missing(scope, dropped_id)
        row = rows.rows[0]
        if contents and row.kind is not Kind.NAMESPACE:
            raise BadRequest(f"A {row.kind.word} has no contents: only a namespace has contents")
        chain = _chain(request_view, row, rows.above)
        decision = request_view.decide(Action.UNDROP, chain)
        if not decision.allowed:
            raise _missing(scope, dropped_id)
        into, path, existing_node = _restore_target(request_view, row, chain, to)
        codec = codec_of(request_view)
        if row.kind is Kind.NAMESPACE:
            codec.check_namespace(path)
        if request_view.is_taken(into.id, row.kind, path[-1]):
            raise _name_taken_error(row.kind, path)
        return request_view.permit(
            TrashRestore(
                dropped=row, into=into, name=path[-1], contents=contents, room=PARTS_MAX - len(path), codec=codec
            ),
            decision,
            existing_node,
        )

    catalog_id = await ctx.read(scope, _catalog_id)
    for _ in range(2):
        rows: TrashRows = await ctx.look_up(lambda: trashed_read(catalog_id, dropped_id))
        try:
            back = await ctx.write(scope, decide, trash_restore_run)
        except AlreadyExists as error:
            raise _name_taken_error(rows.rows[0].kind, path) from error
        if back is not None:
            return TrashRestored(rows.rows[0].kind, path, *back)
    raise _missing(scope, dropped_id)


async def trash_forget(ctx: Context, scope: RequestScope, *, dropped_id: int) -> None:
    """Remove an object from the trash before it expires. Only the principal who may reuse its location can create an
    object there; its files are kept.

    Raises NotFound for the object or the catalog, PermissionDenied for the catalog, NotInUse.
    """
    catalog_id = await ctx.read(scope, _catalog_id)
    rows = await ctx.look_up(lambda: trashed_read(catalog_id, dropped_id))

    def decide(request_view: RequestView) -> Permit[TrashForget]:
        if _catalog_id(request_view) != catalog_id or not rows.rows:
            raise _missing(scope, dropped_id)
        decision = request_view.decide(Action.UNDROP, _chain(request_view, rows.rows[0], rows.above))
        if not decision.allowed:
            raise _missing(scope, dropped_id)
        return request_view.permit(TrashForget(dropped_id), decision)

    if not await ctx.write(scope, decide, trash_forget_run):
        raise _missing(scope, dropped_id)


def trash_forget_run(tx: Tx, permit: Permit[TrashForget]) -> bool:
    """Permanently delete a dropped object from the trash. Returns whether the trash still had it."""
    locations_release(tx, permit.command.dropped_id, claimant_id=tx.actor_id)
    return tx.trash.forget(permit.command.dropped_id)


def _restore_target(
    request_view: RequestView, row: TrashRow, chain: SecurableChain, to: Levels | None
) -> tuple[Node, Levels, Decision]:
    """Return the restored object's parent and path, and the decision at the target.

    Raises as `trash_restore`.
    """
    if to is None:
        path, above = _path(request_view, chain), chain[1:]
        into = (
            request_view.catalog
            if len(path) == 1
            else require_fact(request_view.view, node_key(row.parent_id), zone=request_view.zone)
        )
        if into is None:
            raise NotFound(
                f"{row.kind.word.capitalize()} {render(path)} lay in namespace {render(path[:-1])}, which was dropped,"
                f" too (id {row.parent_id}): restore that first, or give another target",
                kind="namespace",
            )
    else:
        if row.kind is not Kind.NAMESPACE and len(to) < least_levels(request_view):
            raise BadRequest(f"A {row.kind.word} must be in a namespace: give at least two levels")
        path, (into, above) = to, request_view.find_parent(to)
    return into, path, request_view.require(_CREATES[row.kind], above)


def _missing(scope: RequestScope, dropped_id: int) -> NotFound:
    return NotFound(
        f"The trash of catalog {scope.catalog} has no object with id {dropped_id} that you may restore: it was"
        " restored, or has expired, or its files were purged; list the trash with 'limnos list trash'",
        kind="object",
    )


def _name_taken_error(kind: Kind, path: Levels) -> AlreadyExists:
    return AlreadyExists(
        f"{kind.word.capitalize()} {render(path)} has the name of the dropped one: restore that under another name",
        kind=kind.word,
    )


def trash_restore_run(tx: Tx, permit: Permit[TrashRestore]) -> tuple[int, int] | None:
    """Restore a dropped object with its contents.

    Returns the counts of restored and of skipped objects in it; None if the trash no longer has the object. Raises
    BadRequest if too many objects would be restored, or they would be nested too deep.
    """
    command = permit.command
    into = tx.nodes.confirm(command.into)
    row = command.dropped
    if not tx.trash.take(row.id):
        return None
    tx.nodes.revive(row.id, kind=row.kind, space=row.name_space, parent_id=into.id, name=command.name)
    tx.nodes.make_explicit(into, child=row.kind)
    back, left = _undrop_within(tx, row.id, codec=command.codec) if command.contents else (0, 0)
    if row.kind is Kind.NAMESPACE and tx.nodes.height(row.id) > command.room:
        raise BadRequest(f"At this path, objects of namespace {row.name} would be deeper than {PARTS_MAX} levels")
    return back, left


def trash_sweep(tx: Tx) -> int:
    """Permanently delete a batch of expired objects of the trash. Returns the count of deleted objects.

    The files of Lance tables, of SQL++ datasets and of managed filesets are deleted with them, by tasks.
    """
    objects = trash_expired(tx)
    for each in objects:
        locations_release(tx, each.node_id)
        if each.format == LANCE and each.location is not None:
            tx.tasks.create(LANCE_PURGE, lance_purge_of(each.zone, each.location))
            locations_mark_deleting(tx, each.node_id)
        elif each.purges and each.location is not None and each.metadata_location is not None:
            purge_later(tx, catalog=each.zone, metadata_location=each.metadata_location, location=each.location)
            locations_mark_deleting(tx, each.node_id)
        elif each.purges:
            fileset_purge_later(tx, catalog=each.zone, fileset=each.node_id)
    return sum(tx.trash.forget(each.node_id) for each in objects)


def _undrop_within(tx: Tx, parent_id: int, *, codec: LogicalCodec) -> tuple[int, int]:
    """Restore the objects that were dropped in a parent, recursively. Returns the counts of restored and skipped
    objects. Raises BadRequest for more than `CONTENTS_MAX` objects.
    """
    back = left = 0
    parents = [parent_id]
    while parents:
        at = parents.pop()
        for row in tx.trash.within(at, limit=CONTENTS_MAX):
            if back + left >= CONTENTS_MAX:
                raise BadRequest(
                    f"More than {CONTENTS_MAX} objects would be restored at once: restore only the namespace"
                )
            is_spelled = row.kind is not Kind.NAMESPACE or (codec.nested and codec.separator not in row.name)
            if not is_spelled or tx.nodes.find(at, row.name_space, row.name) is not None:
                left += 1
                continue
            tx.trash.take(row.id)
            tx.nodes.revive(row.id, kind=row.kind, space=row.name_space, parent_id=at, name=row.name)
            back += 1
            if row.kind is Kind.NAMESPACE:
                parents.append(row.id)
    return back, left
