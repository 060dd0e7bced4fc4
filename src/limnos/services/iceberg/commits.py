"""Commits to Iceberg tables: requirements, updates, a fresh metadata file, compare-and-swap; again when a race is lost.

May import the rooms below. Knows no wire format. The new file is deleted when it is certain that nothing points to it,
and kept when the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg import requirements as iceberg_requirements
from limnos.formats.iceberg import updates as iceberg_updates
from limnos.formats.iceberg.chores import CommitTerms
from limnos.formats.iceberg.repeats import build, check_or_made
from limnos.model.entities import Document, Node
from limnos.model.errors import AlreadyExists, CommitConflict, LimnosError
from limnos.model.places import PlaceKind
from limnos.services.catalog.tables import table_find
from limnos.services.iceberg.added_files import CommitFiles, check_added_files
from limnos.services.iceberg.dataset_fence import fenced, guard_of, lock_require
from limnos.services.iceberg.snapshot_pins import pins_check, removed_snapshots, removes_snapshots
from limnos.services.iceberg.tables import (
    Whole,
    document_of,
    new_data_paths,
    new_table_read,
    settled_whole,
    table_make,
    whole_of,
)
from limnos.services.request.chores import is_heavy
from limnos.services.request.places import Place, own_part, place_of
from limnos.services.request.recent import RECENT
from limnos.services.storage.place_claims import place_move, places_take
from limnos.store.documents import claims_read
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter
from limnos.view.keys import document_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limnos.formats.iceberg.json_types import Json
    from limnos.model.permits import Permit
    from limnos.model.records import CatalogRecord
    from limnos.names.path import Levels
    from limnos.services.iceberg.dataset_fence import Guard, LockShown, Proof
    from limnos.services.request.context import Context
    from limnos.services.request.recent import RecentMetadata
    from limnos.services.request.scene import Scene, Scope
    from limnos.services.request.shared import Services
    from limnos.store.tx import Tx

log = get_logger("limnos.files")
PATIENCE_S = 300.0
"""How long a commit that nobody set a deadline for is built again."""
OFFERED_BYTES_MAX = 64 << 10
_PAUSE_S = 0.002
_PAUSE_MAX_S = 0.02
LOST_RACES = Counter("limnos_commit_races_lost_total", "Commits built again because another one came first.", ())


class TableCommit(msgspec.Struct, frozen=True):
    """Replace a table's document if it is still the one the commit was built on."""

    table: Node
    document: Document
    expected: int
    relocates: bool
    removed: frozenset[int] = frozenset()
    """The snapshots that it removes."""
    lock: LockShown | None = None
    """The lock of a statement of SQL++ that it rests on."""
    data_paths: tuple[str, ...] = ()
    """Locations outside the table's own to which it sends writers from now on."""


class Brought(NamedTuple):
    """What a commit changes beside the document: snapshots that go, and locations to which the table sends writers from now on."""

    removed: frozenset[int]
    data_paths: tuple[str, ...]


class LostRace(Exception):
    """Another commit came first: build again on what it left."""


class Base(NamedTuple):
    """What a commit is built on."""

    permit: Permit[None]
    table: Node
    document: Document
    place: Place
    guard: Guard | None = None


class Change(NamedTuple):
    """What a commit asks of one table."""

    requirements: list[object]
    updates: list[object]
    raw: bytes | None = None
    """The body of a large request, which nobody but a chore decodes; requirements and updates are empty then."""


class Stand(NamedTuple):
    """What a change is applied to: a table's document, or what earlier changes of the same request made of it."""

    uuid: str
    file: str | None
    """Where it lies; None when it is not written anywhere yet."""
    metadata: Json | None
    """Decoded; None when only a chore decodes it."""
    body: bytes


class Asked(NamedTuple):
    """What is asked for, by whom, and how to look at the table."""

    ctx: Context
    scope: Scope
    look: Callable[[Scene], Base]
    change: Change
    proof: Proof | None = None

    async def base(self) -> Base:
        """Read what is there now. Raises NotFound, Forbidden."""
        return await self.ctx.read(self.scope, self.look)


class Made(NamedTuple):
    """What a commit led to: the document, and the metadata before and after; None when nothing was to be changed."""

    document: Document
    built: tuple[Json, Json] | None


async def table_commit(
    ctx: Context, scope: Scope, *, namespace: Levels, name: str, requirements: list[object], updates: list[object],
    raw: bytes | None = None, proof: Proof | None = None,
) -> tuple[Document, CatalogRecord]:  # fmt: skip
    """Commit updates to a table, or make the table of a staged create.

    `raw` is the body of a large request; `updates` are not looked at then, and `requirements` only for a create. `proof` is the lock that a
    statement of SQL++ shows.
    Raises CommitConflict (a requirement failed, or too many races were lost), BadRequest, NotFound, Forbidden.
    """
    if requirements and iceberg_requirements.is_create(requirements):
        return await _commit_create(ctx, scope, namespace, name, updates, raw=raw)

    def look(scene: Scene) -> Base:
        node, chain, decision = table_find(scene, namespace, name, Action.TABLE_COMMIT)
        guard, more = guard_of(scene, node, chain=chain, path=(*namespace, name), proof=proof)
        return Base(scene.permit(None, decision, *more), node, scene.document(node.id), place_of(scene), guard)

    asked = Asked(ctx, scope, look, Change([] if raw else requirements, updates, raw), proof)
    base = await asked.base()
    await check_added_files(ctx, [files_of(asked.change, document=base.document, place=base.place)])
    made = await _make_in_turn(asked, base)
    if made.built is not None:
        await clean(ctx, made.document, built=made.built, place=base.place)
    return made.document, base.place.catalog


def files_of(change: Change, *, document: Document | None, place: Place) -> CommitFiles:
    """Return what a change says of files."""
    return CommitFiles(change.updates, change.raw, document, place)


async def _make_in_turn(asked: Asked, base: Base) -> Made:
    """Stand in the table's line of this node, then commit. Who fails a requirement already need not stand in it."""
    services, number = asked.ctx.services, base.table.id
    if services.lines.is_free(number):
        async with services.lines.turn(number):
            return await _make(asked, base)
    requirements, updates = asked.change.requirements, asked.change.updates
    if requirements and not is_heavy(base.document):
        check_or_made(_metadata(RECENT.of(services), base.document), requirements, updates)
    async with services.lines.turn(number):
        return await _make(asked, await asked.base())


async def _make(asked: Asked, base: Base) -> Made:
    """Build and swap until no other node comes first, or the request's deadline ends it."""
    recent, loop = RECENT.of(asked.ctx.services), asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    for attempt in count():
        built = await change_apply(asked.ctx.services, asked.change, stand_of(recent, base.document, asked.change))
        if built is None:
            return Made(base.document, None)
        old, whole = built[0], await settled_whole(asked.ctx.services.chores, built[1])
        new = whole.metadata
        lock = fenced(base.guard, asked.proof, before=old, after=new)
        document, data = document_of(whole, previous=base.document, node_id=base.table.id, place=base.place, before=old)
        removed = removed_by(asked.ctx.services, [asked.change], before=base.document, after=document)
        paths = new_data_paths(new, before=old, place=base.place)
        news = Brought(removed, paths)
        if await _swap(asked, base, document=document, data=data, brought=news, lock=lock):
            if whole.body is None:
                recent.put(document, new)
            return Made(document, (old, new))
        LOST_RACES[()] += 1
        if loop.time() > until:
            break
        await lost_race_pause(attempt)
        base = await asked.base()
    raise CommitConflict("Too many commits to this table at once: read it again and retry")


def _metadata(recent: RecentMetadata, document: Document) -> Json:
    return iceberg_metadata.with_uuid(recent.get(document) or iceberg_metadata.decode(document.body), document.uuid)


async def lost_race_pause(attempt: int) -> None:
    """Wait a little, so that rivals do not meet again at once."""
    await asyncio.sleep(random.uniform(0, min(_PAUSE_S * 2 ** min(attempt, 9), _PAUSE_MAX_S)))  # noqa: S311 - to spread the rivals


def stand_of(recent: RecentMetadata, document: Document, change: Change) -> Stand:
    """Return what the first change of a table is applied to."""
    metadata = None if change.raw is not None or is_heavy(document) else _metadata(recent, document)
    return Stand(document.uuid, document.metadata_location, metadata, document.body)


async def change_apply(services: Services, change: Change, stand: Stand) -> tuple[Json, Whole] | None:
    """Build the new metadata, None when nothing changes; what is large goes to a process that can be ended.

    Returns what it was built on, too, or an outline of that.
    """
    now_ms, base, ahead_ms = services.store.time.now_ms(), stand.metadata, services.defaults.clock_ahead_ms
    if change.raw is None and base is not None:
        new = build(
            base, change.requirements, change.updates, now_ms=now_ms, previous_location=stand.file, ahead_ms=ahead_ms
        )
        return None if new is base else (base, Whole(new))
    raw = change.raw or msgspec.json.encode({"requirements": change.requirements, "updates": change.updates})
    terms = msgspec.json.encode(CommitTerms(stand.uuid, now_ms, stand.file, ahead_ms))
    parts = await services.chores.do("iceberg-commit", stand.body, raw, terms)
    return (msgspec.json.decode(parts[0]), whole_of(parts[1:])) if parts else None


async def change_create(services: Services, change: Change) -> Whole:
    """Build the metadata of a table that a commit makes: it carries everything."""
    now_ms, ahead_ms = services.store.time.now_ms(), services.defaults.clock_ahead_ms
    if change.raw is None:
        return Whole(
            iceberg_updates.apply(None, change.updates, now_ms=now_ms, previous_location=None, ahead_ms=ahead_ms)
        )
    return whole_of(await services.chores.do("iceberg-commit-create", change.raw, b"%d %d" % (now_ms, ahead_ms)))


async def _swap(
    asked: Asked, base: Base, *, document: Document, data: bytes, brought: Brought, lock: LockShown | None
) -> bool:
    """Write the file, then swap the document; False when another commit came first, or the path means another table.

    When only access moved, what was built is still right: then it is decided again, and the file stays.
    """

    def command(now: Base) -> Permit[TableCommit]:
        relocates = document.location != base.document.location
        removed, paths = brought
        return now.permit.about(
            TableCommit(now.table, document, base.document.version, relocates, removed, lock, paths)
        )

    def decide(scene: Scene) -> Permit[TableCommit]:
        now = asked.look(scene)
        if now.document != base.document or now.place != base.place or now.guard != base.guard:
            raise LostRace
        return command(now)

    services = asked.ctx.services
    view, epoch = services.view, services.view.epoch
    try:
        async with services.files.written(document.metadata_location, data, base.place.catalog.properties):
            revision = await asked.ctx.write(asked.scope, decide, document_swap, first=command(base))
    except LostRace:
        return False
    if len(document.body) <= OFFERED_BYTES_MAX:
        key = document_key(document.node_id)
        view.offer(key, document, zone=base.permit.zone, revision=revision, epoch=epoch)
    return True


def document_swap(tx: Tx, permit: Permit[TableCommit]) -> int:
    """Swap the document and return the revision that did. Raises StalePermit when the table moved, or a race was lost."""
    command = permit.command
    lock_require(tx, command.lock)
    if not tx.documents.swap(
        command.document, expected=command.expected, relocates=command.relocates, table=command.table
    ):
        tx.stale()
    pins_check(tx, command.table.id, removed=command.removed)
    if command.relocates:
        place_move(
            tx, PlaceKind.TABLE, owner_id=command.table.id, catalog_id=permit.zone, location=command.document.location
        )
    if command.data_paths:
        places_take(
            tx, PlaceKind.DATA_PATH, owner_id=command.table.id, catalog_id=permit.zone, locations=command.data_paths
        )
    tx.nodes.committed(command.table)
    return tx.revision


def removed_by(services: Services, changes: Sequence[Change], *, before: Document, after: Document) -> frozenset[int]:
    """Return the snapshots that changes of a table remove; none where nobody asks who needs them."""
    if services.defaults.keep_pinned:
        for each in changes:
            if removes_snapshots(each.updates, each.raw):
                return removed_snapshots(before.body, after.body)
    return frozenset()


async def clean(ctx: Context, document: Document, *, built: tuple[Json, Json], place: Place) -> None:
    """Delete metadata files that fell off the log, only now that the commit is certain, and only the table's own.

    `built` is the metadata before and after. Whatever goes wrong here is for the log: the commit is made.
    """
    gone = iceberg_updates.removed_metadata_files(*built) if iceberg_metadata.deletes_old_files(built[1]) else []
    if not gone:
        return
    try:
        claims = await ctx.look_up(lambda: claims_read(document.location))
    except LimnosError as error:
        log.warning("old metadata files are kept", location=document.location, error=error.message)
        return
    own, elsewhere = own_part(document.location, gone)
    rivals = [at for node_id, at in claims if node_id != document.node_id]  # an older release let locations nest
    if elsewhere or rivals:
        log.warning(
            "metadata files that are not the table's own are kept", location=document.location,
            count=len(elsewhere), first=elsewhere[:10], rivals=rivals[:10],
        )  # fmt: skip
    if not rivals:
        for location in own:
            await ctx.services.files.delete(location, place.catalog.properties)


async def _commit_create(
    ctx: Context, scope: Scope, namespace: Levels, name: str, updates: list[object], *,
    raw: bytes | None,
) -> tuple[Document, CatalogRecord]:  # fmt: skip
    """Make the table of a staged create: the commit carries everything."""
    try:
        draft, change = await new_table_read(ctx, scope, namespace, name), Change([], updates, raw)
        await check_added_files(ctx, [files_of(change, document=None, place=draft.place)])
        whole = await change_create(ctx.services, change)
        return await table_make(ctx, scope, namespace=namespace, name=name, whole=whole, draft=draft)
    except AlreadyExists as error:
        if error.kind == "table":
            raise CommitConflict("Requirement failed: table already exists") from error
        raise
