# SPDX-License-Identifier: Apache-2.0
"""Commits to Iceberg tables: check requirements, apply updates, write a metadata file, replace the document by
compare-and-swap, and retry after conflicts.

Must not know any wire format. If the commit fails, the new file is deleted; if the outcome is unknown, it is kept.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

import msgspec

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg import requirements as iceberg_requirements
from limnos.formats.iceberg import updates as iceberg_updates
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.offloaded import CommitTerms
from limnos.formats.iceberg.repeated_commits import build, check_unless_applied
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import AlreadyExists, CommitConflict
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.model.storage_locations import LocationKind
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_find
from limnos.services.iceberg import dataset_fence, tables
from limnos.services.iceberg.added_files import CommitFiles, check_added_files, check_statement_files
from limnos.services.iceberg.commit_values import CommitChange, CommitEffects, CommitGuards, CommitState
from limnos.services.iceberg.former_columns import EndedNames, ended_names, restrictions_follow
from limnos.services.iceberg.orphan_fence import fence_check, fence_require
from limnos.services.iceberg.rewrite_commits import OPERATION_COMMITS, RewriteTotals, rewrite_count, rewrite_require
from limnos.services.iceberg.snapshot_pins import pins_check, removed_snapshots, removes_snapshots
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.request.old_metadata_files import delete_old_metadata_files
from limnos.services.request.recent_metadata import RECENT_METADATA, RecentMetadata
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.location_claims import location_move, locations_claim, locations_lock
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter
from limnos.view.keys import document_key

log = get_logger("limnos.files")
PATIENCE_S = 300.0
"""The time for which a commit without a deadline is retried, in seconds."""
OFFERED_BYTES_MAX = 64 << 10
_PAUSE_S = 0.002
_PAUSE_MAX_S = 0.02
LOST_RACES = Counter("limnos_commit_races_lost_total", "Commits rebuilt after a concurrent commit.", ())


class TableCommit(msgspec.Struct, frozen=True, kw_only=True):
    """The command to replace a table's document by compare-and-swap: it must still be the one that the commit was built
    on.
    """

    table: Node
    document: MetadataDocument
    expected: int
    relocates: bool
    removed: frozenset[int] = frozenset()
    """The ids of the snapshots that it removes."""
    lock: dataset_fence.LockRequirement | None = None
    """The lock of the SQL++ statement that commits, if one does."""
    data_paths: tuple[str, ...] = ()
    """New data locations of the table outside of its own location."""
    keeps_words: bool = False
    """Whether its comment and its current schema stay, so that the search index needs no update."""
    ended: EndedNames = ()
    """Columns that it renames or drops."""
    fence_until: float | None = None
    """The time by which the commit must end; `orphan_fence.fence_check` sets it."""
    token_id: int | None = None
    """The token of the maintenance operation that commits, whose lease must be valid."""
    had_files: bool = False
    """Whether its new location has files of nobody."""

    def with_ended_names(self, before: Json | None, after: Json | None) -> TableCommit:
        """Return the command with the columns that it renames or drops."""
        return msgspec.structs.replace(self, ended=ended_names(before, after)) if before and after else self


class LostRace(Exception):
    """Raised on a commit conflict; the caller rebuilds the metadata on the result of the other commit."""


class CommitBase(NamedTuple):
    """The document and storage from which a commit builds new metadata."""

    permit: Permit[None]
    table: Node
    document: MetadataDocument
    place: CatalogStorage
    guard: dataset_fence.DatasetGuard | None = None
    token_id: int | None = None


class TableCommitRequest(NamedTuple):
    """A commit request: its change, its caller, and a function that reads the table's state."""

    ctx: Context
    scope: RequestScope
    look: Callable[[RequestView], CommitBase]
    change: CommitChange
    proof: dataset_fence.LockProof | None = None

    async def base(self) -> CommitBase:
        """Read the table's document and storage. Raises as `table_commit`."""
        if self.proof is not None:
            await check_statement_files(self.ctx, self.proof.token)
        return await self.ctx.read(self.scope, self.look)


class CommitResult(NamedTuple):
    """The result of a commit: the document, and the metadata before and after; `built` is None if nothing changed."""

    document: MetadataDocument
    built: tuple[Json, Json] | None


async def table_commit(
    ctx: Context,
    scope: RequestScope,
    *,
    namespace: Levels,
    name: str,
    requirements: list[object],
    updates: list[object],
    raw: bytes | None = None,
    proof: dataset_fence.LockProof | None = None,
    version: int | None = None,
) -> tuple[MetadataDocument, CatalogRecord]:
    """Commit updates to a table, or create the table of a staged create.

    Args:
        ctx: The request.
        scope: The catalog.
        namespace: The levels of the table's namespace.
        name: The table's name.
        requirements: The requirements, as JSON values.
        updates: The updates, as JSON values.
        raw: The body of a large request; then `updates` is ignored, and `requirements` matters only for a create.
        proof: The lock that a SQL++ statement presents.
        version: The version of the document that the updates apply to; at another version they conflict; None for any.

    Returns:
        The table's document after the commit, and its catalog's record.

    Raises:
        CommitConflict: A requirement failed, or too many attempts conflicted with other commits.
        BadRequest: The updates are invalid, or files that a statement read were replaced.
        OutsideRoots: A new location is outside of the catalog's roots.
        NotFound, PermissionDenied: The table is missing, or the caller may not commit to it.
        OutsideWriter: Only SQL++ may make this change. Also raises LockLost, and ServiceUnavailable as `fence_check`.
    """
    if requirements and iceberg_requirements.is_create(requirements):
        return await _commit_create(ctx, scope, namespace, name, updates, raw=raw)

    look = partial(_commit_base, namespace=namespace, name=name, proof=proof, version=version)
    request = TableCommitRequest(
        ctx=ctx, scope=scope, look=look, change=CommitChange([] if raw else requirements, updates, raw), proof=proof
    )
    base, totals = await request.base(), None
    if base.token_id is not None:
        version = base.document.version
        request, totals = await _check_operation(request, base)
    await check_added_files(ctx, [commit_files_of(request.change, document=base.document, place=base.place)])
    result = await _commit_in_queue(request, base)
    if base.token_id is not None:
        rewrite_count(totals)
    if result.built is not None:
        await delete_old_metadata_files(ctx, result.document, built=result.built, place=base.place)
    return result.document, base.place.catalog


def _commit_base(
    request_view: RequestView,
    *,
    namespace: Levels,
    name: str,
    proof: dataset_fence.LockProof | None,
    version: int | None,
) -> CommitBase:
    """Return the state of a table for a caller who may commit to it.

    Raises CommitConflict if its document has another version, and the errors of a table that is not found.
    """
    node, chain, decision = table_find(request_view, namespace, name, request_view.commit_action)
    guard, more = dataset_fence.dataset_guard_of(request_view, node, chain=chain, path=(*namespace, name), proof=proof)
    document = request_view.document(node.id)
    if version is not None and document.version != version:
        raise CommitConflict("A concurrent commit has changed the table: read it again")
    return CommitBase(
        permit=request_view.permit(None, decision, *more),
        table=node,
        document=document,
        place=catalog_storage_of(request_view),
        guard=guard,
        token_id=None if request_view.operation_token is None else request_view.operation_token.id,
    )


def commit_files_of(change: CommitChange, *, document: MetadataDocument | None, place: CatalogStorage) -> CommitFiles:
    """Return the files of a change, for the check of added files."""
    return CommitFiles(updates=change.updates, raw=change.raw, document=document, place=place)


async def _check_operation(
    request: TableCommitRequest, base: CommitBase
) -> tuple[TableCommitRequest, RewriteTotals | None]:
    """Check the commit of a maintenance operation. Returns the checked request, and the totals of the rewrite; None
    for a commit that rewrites no files.
    """
    operation_check = await OPERATION_COMMITS.of(request.ctx.services).check(
        request.ctx, document=base.document, place=base.place, token_id=base.token_id or 0, change=request.change
    )
    return request._replace(
        change=CommitChange(operation_check.requirements, operation_check.updates)
    ), operation_check.totals


async def _commit_in_queue(request: TableCommitRequest, base: CommitBase) -> CommitResult:
    """Wait in the table's queue on this node, then commit. A commit whose requirements already fail is refused without
    waiting.
    """
    services, number = request.ctx.services, base.table.id
    if services.lines.is_free(number):
        async with services.lines.turn(number):
            return await _commit_until_won(request, base)
    requirements, updates = request.change.requirements, request.change.updates
    if requirements and not is_heavy(base.document):
        check_unless_applied(_metadata(RECENT_METADATA.of(services), base.document), requirements, updates)
    async with services.lines.turn(number):
        return await _commit_until_won(request, await request.base())


async def _commit_until_won(request: TableCommitRequest, base: CommitBase) -> CommitResult:
    """Build the metadata and replace the document, and retry after each conflict.

    Raises CommitConflict when the time limit for retries has passed.
    """
    recent, loop = RECENT_METADATA.of(request.ctx.services), asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    for attempt in count():
        new_metadata = await change_apply(
            request.ctx.services, request.change, commit_state_of(recent, base.document, request.change)
        )
        if new_metadata is None:
            return CommitResult(base.document, None)
        old, whole = new_metadata[0], await tables.add_metadata_scheme(request.ctx.services.offloader, new_metadata[1])
        new = whole.metadata
        lock = dataset_fence.check_dataset_commit(base.guard, request.proof, before=old, after=new)
        document, data = tables.document_of(
            whole, previous=base.document, node_id=base.table.id, place=base.place, before=old
        )
        guards = await commit_guards(
            request.ctx, [request.change], before=base.document, after=document, place=base.place
        )
        paths = tables.new_data_paths(new, before=old, place=base.place)
        had_files = document.location != base.document.location and await base.place.has_unclaimed_files(
            request.ctx.services.files, document.location
        )
        keeps_words = whole.body is None and iceberg_metadata.keeps_words(old, new)
        ended = () if keeps_words else ended_names(old, new)
        news = CommitEffects(guards=guards, data_paths=paths, keeps_words=keeps_words, ended=ended, had_files=had_files)
        if await _swap(request, base, document=document, data=data, effects=news, lock=lock):
            if whole.body is None:
                recent.put(document, new)
            return CommitResult(document, (old, new))
        LOST_RACES[()] += 1
        if loop.time() > until:
            break
        await lost_race_pause(attempt)
        base = await request.base()
    raise CommitConflict("Too many commits to this table at once: read it again and retry")


def _metadata(recent: RecentMetadata, document: MetadataDocument) -> Json:
    return iceberg_metadata.with_uuid(recent.get(document) or iceberg_metadata.decode(document.body), document.uuid)


async def lost_race_pause(attempt: int) -> None:
    """Sleep for a short random backoff, so that concurrent commits do not conflict again."""
    await asyncio.sleep(random.uniform(0, min(_PAUSE_S * 2 ** min(attempt, 9), _PAUSE_MAX_S)))  # noqa: S311 - to spread the rivals


def commit_state_of(recent: RecentMetadata, document: MetadataDocument, change: CommitChange) -> CommitState:
    """Return the state to which the first change of a request applies: the table's stored document."""
    metadata = None if change.raw is not None or is_heavy(document) else _metadata(recent, document)
    return CommitState(document.uuid, document.metadata_location, metadata, document.body)


async def change_apply(
    services: NodeServices, change: CommitChange, commit_state: CommitState
) -> tuple[Json, tables.NewMetadata] | None:
    """Build the new metadata; None if the change has no effect. Large changes run as offloaded work, which can be
    cancelled.

    Returns the metadata before and after the change. Offloaded work returns an outline of the metadata before. Raises
    CommitConflict if a requirement fails, BadRequest for an invalid update.
    """
    now_ms, base, ahead_ms = services.store.time.now_ms(), commit_state.metadata, services.defaults.clock_ahead_ms
    if change.raw is None and base is not None:
        new = build(
            base,
            change.requirements,
            change.updates,
            now_ms=now_ms,
            previous_location=commit_state.file,
            ahead_ms=ahead_ms,
        )
        return None if new is base else (base, tables.NewMetadata(new))
    raw = change.raw or msgspec.json.encode({"requirements": change.requirements, "updates": change.updates})
    terms = msgspec.json.encode(CommitTerms(commit_state.uuid, now_ms, commit_state.file, ahead_ms))
    parts = await services.offloader.do("iceberg-commit", commit_state.body, raw, terms)
    return (msgspec.json.decode(parts[0]), tables.new_metadata_of(parts[1:])) if parts else None


async def change_create(services: NodeServices, change: CommitChange) -> tables.NewMetadata:
    """Build the metadata of a table that a commit creates, only from the commit's updates. Raises BadRequest for an
    invalid update.
    """
    now_ms, ahead_ms = services.store.time.now_ms(), services.defaults.clock_ahead_ms
    if change.raw is None:
        return tables.NewMetadata(
            iceberg_updates.apply(None, change.updates, now_ms=now_ms, previous_location=None, ahead_ms=ahead_ms)
        )
    return tables.new_metadata_of(
        await services.offloader.do("iceberg-commit-create", change.raw, b"%d %d" % (now_ms, ahead_ms))
    )


async def _swap(
    request: TableCommitRequest,
    base: CommitBase,
    *,
    document: MetadataDocument,
    data: bytes,
    effects: CommitEffects,
    lock: dataset_fence.LockRequirement | None,
) -> bool:
    """Write the metadata file, then replace the document by compare-and-swap.

    Returns False after a conflicting commit, or if the path names another table, or the catalog's storage or the guard
    has changed.

    If only access rules changed concurrently, the new metadata is still valid: access is decided again, and the written
    file is used.
    """

    def command(now: CommitBase) -> Permit[TableCommit]:
        relocates = document.location != base.document.location
        (removed_ids, fence_until), paths, keeps_words, ended_names, had_files = effects
        command = TableCommit(
            table=now.table,
            document=document,
            expected=base.document.version,
            relocates=relocates,
            removed=removed_ids,
            lock=lock,
            data_paths=paths,
            keeps_words=keeps_words,
            ended=ended_names,
            fence_until=fence_until,
            token_id=now.token_id,
            had_files=had_files,
        )
        return now.permit.about(command)

    def decide(request_view: RequestView) -> Permit[TableCommit]:
        now = request.look(request_view)
        if now.document != base.document or now.place != base.place or now.guard != base.guard:
            raise LostRace
        return command(now)

    services = request.ctx.services
    view, epoch = services.view, services.view.epoch
    try:
        async with services.files.written_file(document.metadata_location, data, base.place.catalog.properties):
            revision = await request.ctx.write(request.scope, decide, document_swap, first=command(base))
    except LostRace:
        return False
    if len(document.body) <= OFFERED_BYTES_MAX:
        key = document_key(document.node_id)
        view.offer(key, document, zone=base.permit.zone, revision=revision, epoch=epoch)
    return True


def document_swap(tx: Tx, permit: Permit[TableCommit]) -> int:
    """Replace the table's document if its version is still the expected one (compare-and-swap).

    Returns the zone's revision of the commit. Raises StalePermit if the table was moved or another commit came first,
    LockLost, PermissionDenied (an expired lease), CommitConflict (a pinned snapshot), ServiceUnavailable (a passed
    deadline).
    """
    command = permit.command
    dataset_fence.lock_require(tx, command.lock)
    if command.token_id is not None:
        rewrite_require(tx, table_id=command.table.id, token_id=command.token_id)
    if command.relocates or command.data_paths:
        locations_lock(tx, documents=(command.document,) * command.relocates, locations=command.data_paths)
    if not tx.documents.swap(
        command.document, expected=command.expected, relocates=command.relocates, table=command.table
    ):
        tx.stale()
    if command.removed:
        pins_check(tx, command.table.id, removed=command.removed)
    fence_require(command.fence_until)
    if command.relocates:
        location_move(
            tx,
            LocationKind.TABLE,
            owner_id=command.table.id,
            catalog_id=permit.zone,
            location=command.document.location,
            had_files=command.had_files,
        )
    if command.data_paths:
        locations_claim(
            tx, LocationKind.DATA_PATH, owner_id=command.table.id, catalog_id=permit.zone, locations=command.data_paths
        )
    if command.ended:
        restrictions_follow(tx, command.table, ended=command.ended)
    tx.nodes.add_commit_change(command.table, keeps_words=command.keeps_words)
    return tx.revision


async def commit_guards(
    ctx: Context,
    changes: Sequence[CommitChange],
    *,
    before: MetadataDocument,
    after: MetadataDocument,
    place: CatalogStorage,
) -> CommitGuards:
    """Return the guards that a commit's transaction checks.

    Raises CommitConflict and ServiceUnavailable as `fence_check` does.
    """
    removed_ids: frozenset[int] = frozenset()
    for each in changes if ctx.services.defaults.keep_pinned else ():
        if removes_snapshots(each.updates, each.raw):
            removed_ids = removed_snapshots(before.body, after.body)
            break
    return CommitGuards(removed_ids, await fence_check(ctx, changes, document=before, place=place))


async def _commit_create(
    ctx: Context,
    scope: RequestScope,
    namespace: Levels,
    name: str,
    updates: list[object],
    *,
    raw: bytes | None,
) -> tuple[MetadataDocument, CatalogRecord]:
    """Create the table of a staged create from the commit's updates. Raises CommitConflict if the table exists, and as
    `tables.table_create`.
    """
    try:
        draft, change = await tables.new_table_read(ctx, scope, namespace, name), CommitChange([], updates, raw)
        await check_added_files(ctx, [commit_files_of(change, document=None, place=draft.place)])
        whole = await change_create(ctx.services, change)
        return await tables.table_make(ctx, scope, namespace=namespace, name=name, whole=whole, draft=draft)
    except AlreadyExists as error:
        if error.kind == "table":
            raise CommitConflict("Requirement failed: table already exists") from error
        raise
