"""Commits to Iceberg tables: requirements, updates, a fresh metadata file, compare-and-swap; again when a race is lost.

May import the rooms below. Knows no wire format. The new file is deleted when it is certain that nothing points to it,
and kept when the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg import metadata as documents
from limnos.formats.iceberg import requirements as demands
from limnos.formats.iceberg import updates as changes
from limnos.model.entities import Document, Node
from limnos.model.errors import AlreadyExists, CommitConflict, LimnosError, StalePermit
from limnos.services.iceberg_tables import document_of, draft_read, settled, table_make
from limnos.services.places import Place, own_part, place_of
from limnos.services.tables import table_find
from limnos.store.documents import claims_read
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter
from limnos.view.facts import document_key

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json
    from limnos.model.permits import Permit
    from limnos.model.records import CatalogRecord
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.recent import RecentMetadata
    from limnos.services.scene import Scene, Scope
    from limnos.store.tx import Tx

log = get_logger("limnos.files")
RACES_MAX = 4
LARGE_BYTES = 256 << 10
OFFERED_BYTES_MAX = 64 << 10
_PAUSE_S = 0.005
LOST_RACES = Counter("limnos_commit_races_lost_total", "Commits built again because another one came first.", ())


class TableCommit(msgspec.Struct, frozen=True):
    """Replace a table's document if it is still the one the commit was built on."""

    table: Node
    document: Document
    expected: int
    relocates: bool


class Base(NamedTuple):
    """What a commit is built on."""

    permit: Permit[None]
    table: Node
    document: Document
    place: Place


async def table_commit(
    ctx: Context, scope: Scope, *, namespace: Levels, name: str, requirements: list[object], updates: list[object]
) -> tuple[Document, CatalogRecord]:
    """Commit updates to a table, or make the table of a staged create.

    Raises CommitConflict (a requirement failed, or too many races were lost), BadRequest, NotFound, Forbidden.
    """
    if demands.is_create(requirements):
        return await _commit_create(ctx, scope, namespace, name, updates)

    def look(scene: Scene) -> Base:
        node, _, decision = table_find(scene, namespace, name, Action.TABLE_COMMIT)
        return Base(scene.permit(None, decision), node, scene.document(node.id), place_of(scene))

    for attempt in range(RACES_MAX + 1):
        base = await ctx.read(scope, look)
        built = await _build(ctx.services.recent, base.document, requirements, updates)
        if built is None:
            return base.document, base.place.catalog
        old, new = built[0], settled(built[1])
        document, data = document_of(new, previous=base.document, node_id=base.table.id, place=base.place, before=old)
        if await _swap(ctx, base, document, data):
            ctx.services.recent.put(document, new)
            gone = changes.removed_metadata_files(old, new) if documents.deletes_old_files(new) else []
            await _clean(ctx, document, gone=gone, place=base.place)
            return document, base.place.catalog
        LOST_RACES[()] += 1
        await asyncio.sleep(random.uniform(0, _PAUSE_S * 2**attempt))  # noqa: S311 - to spread the rivals
    raise CommitConflict("Too many commits to this table at once: read it again and retry")


async def _build(
    recent: RecentMetadata, document: Document, requirements: list[object], updates: list[object]
) -> tuple[Json, Json] | None:
    """Build the new metadata, None when nothing changes; large documents in a thread."""

    def build() -> tuple[Json, Json] | None:
        base = documents.with_uuid(recent.get(document) or documents.decode(document.body), document.uuid)
        demands.check(base, requirements)
        now_ms = time.time_ns() // 1_000_000
        new = changes.apply(base, updates, now_ms=now_ms, previous_location=document.metadata_location)
        return None if new is base else (base, new)

    return await asyncio.to_thread(build) if len(document.body) > LARGE_BYTES else build()


async def _swap(ctx: Context, base: Base, document: Document, data: bytes) -> bool:
    """Write the file, then swap the document; False when another commit came first, or access moved."""
    relocates = document.location != base.document.location
    permit = base.permit.about(TableCommit(base.table, document, base.document.version, relocates))
    files, epoch = ctx.services.files, ctx.services.view.epoch
    try:
        async with files.written(document.metadata_location, data, base.place.catalog.properties):
            revision = await ctx.submit(permit, document_swap)
    except StalePermit:
        return False
    if len(document.body) <= OFFERED_BYTES_MAX:
        key = document_key(document.node_id)
        ctx.services.view.offer(key, document, zone=permit.zone, revision=revision, epoch=epoch)
    return True


def document_swap(tx: Tx, permit: Permit[TableCommit]) -> int:
    """Swap the document and return the revision that did. Raises StalePermit when the table moved, or a race was lost."""
    command = permit.command
    if not tx.documents.swap(
        command.document, expected=command.expected, relocates=command.relocates, table=command.table
    ):
        tx.stale()
    tx.nodes.committed(command.table)
    return tx.revision


async def _clean(ctx: Context, document: Document, *, gone: list[str], place: Place) -> None:
    """Delete metadata files that fell off the log, only now that the commit is certain, and only the table's own.

    Whatever goes wrong here is for the log: the commit is made.
    """
    if not gone:
        return
    try:
        claims = await ctx.look_up(claims_read(document.location))
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
    ctx: Context, scope: Scope, namespace: Levels, name: str, updates: list[object]
) -> tuple[Document, CatalogRecord]:
    """Make the table of a staged create: the commit carries everything."""
    try:
        draft = await draft_read(ctx, scope, namespace, name)
        metadata = changes.apply(None, updates, now_ms=time.time_ns() // 1_000_000, previous_location=None)
        return await table_make(ctx, scope, namespace=namespace, name=name, metadata=metadata, draft=draft)
    except AlreadyExists as error:
        if error.kind in ("table", "view"):
            raise CommitConflict("Requirement failed: table already exists") from error
        raise
