# SPDX-License-Identifier: Apache-2.0
"""Metalake import: a client begins it under a name, sends batches of records, and then publishes the metalake or
abandons the import.

Must not know any wire format but the export's. Received records are in the store but not visible, so an interrupted
client continues after the last record that the import has. A task deletes abandoned imports, and imports that received
no batch for a day. Decision record 0081.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.access.principal_names import check_new_user
from limnos.files import place_key
from limnos.model.decisions import ChainLink
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict, NotFound
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.names.path import check_metalake_name
from limnos.rooms.exchange.formats.encoding import FORMS, Form, decode_records
from limnos.rooms.exchange.services.import_checks import CheckedRecord, catalog_of, record_check
from limnos.rooms.exchange.services.import_rows import ImportPart
from limnos.services.lookup.principal_names import principal_create
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_of_server, refuse_former
from limnos.services.request.named_storages import MetalakeLabel
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.task_context import TaskContext
from limnos.store.exchange.imports import OPEN, WHOLE, MetalakeImport, import_read, imports_read, lock_of, refs_read
from limnos.store.objects.node_reads import node_read
from limnos.store.objects.setting_names import setting_names_read
from limnos.store.objects.storage_locations import rivals_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import name_key

RECORDS_MAX: Final = 500
"""The maximum number of records in one request."""
FILES_AT_ONCE: Final = 8
LISTED_MAX: Final = 1000
IDS: Final = ("keep", "map")
PRUNE_IMPORT: Final = "prune-import"
PRUNED_AT_ONCE: Final = 500
IDLE_MS: Final = 86_400_000
"""The time after which an import without new batches is deleted, in milliseconds."""


class ImportBegin(msgspec.Struct, frozen=True):
    """The command to begin the import of a metalake under a name. `form` is the format of the file; with `keeps`
    objects keep their ids.
    """

    name: str
    form: str
    keeps: bool


class ImportFeed(msgspec.Struct, frozen=True, kw_only=True):
    """The command to import the next records of the file, which follow record number `after`."""

    import_id: int
    after: int
    records: tuple[CheckedRecord, ...]
    separator: str
    warehouse: str
    """The server's warehouse."""


class ImportEnd(msgspec.Struct, frozen=True):
    """The command to publish or abandon an import."""

    import_id: int
    admins: frozenset[str] = frozenset()
    """The service admins, one of whom may become the owner of a metalake without an owner."""


class PruneImport(msgspec.Struct, frozen=True):
    """The payload of the task that deletes an import's rows."""

    import_id: int


class FinishedImport(NamedTuple):
    """An imported metalake: its name, the count of imported records, and the secret properties that the file lacks."""

    name: str
    records: int
    masked: tuple[str, ...]


def _may(request_view: RequestView) -> None:
    request_view.require(Action.METALAKE_IMPORT, ())


async def import_begin(ctx: Context, *, name: str, form: str, ids: str) -> MetalakeImport:
    """Begin an import of a metalake under a name; with `ids="keep"`, objects keep their ids.

    Raises AlreadyExists, InvalidName, PermissionDenied, AuthenticationFailed for a token of an earlier user of the
    name, and BadRequest for an unknown `form` or `ids`.
    """
    check_metalake_name(name)
    if form not in FORMS or ids not in IDS:
        raise BadRequest(f"Field format must be {' or '.join(FORMS)}, and field ids must be {' or '.join(IDS)}")
    await refuse_former(ctx)

    def decide(request_view: RequestView) -> Permit[ImportBegin]:
        decision = request_view.require(Action.METALAKE_IMPORT, (ChainLink.absent(Kind.METALAKE, name),))
        _require_free(request_view, name)
        return request_view.permit(ImportBegin(name, form, ids == "keep"), decision)

    return await ctx.write(RequestScope(), decide, import_insert)


def _require_free(request_view: RequestView, name: str) -> None:
    if require_fact(request_view.view, name_key(ROOT_ID, "metalake", name), zone=ROOT_ID) is not None:
        raise AlreadyExists(f"Metalake {name} already exists: import under another name", kind="metalake")


def import_insert(tx: Tx, permit: Permit[ImportBegin]) -> MetalakeImport:
    """Insert the row of an import. Later batches write the imported objects."""
    command = permit.command
    return tx.imports.begin(command.name, form=command.form, keeps=command.keeps)


async def imports_list(ctx: Context) -> list[MetalakeImport]:
    """Return the imports that were neither published nor abandoned; for service admins. Raises PermissionDenied,
    AuthenticationFailed.
    """
    return await read_of_server(ctx, require=_may, work=lambda: ctx.look_up(lambda: imports_read(LISTED_MAX)))


async def import_load(ctx: Context, import_id: int) -> MetalakeImport:
    """Return an open import. Raises NotFound, also for an import that was published or abandoned, PermissionDenied and
    AuthenticationFailed.
    """
    load = partial(import_read, import_id)
    metalake_import = await read_of_server(ctx, require=_may, work=lambda: ctx.look_up(load))
    if metalake_import is None or metalake_import.state not in (OPEN, WHOLE):
        raise no_import(import_id)
    return metalake_import


def no_import(import_id: int | str) -> NotFound:
    """Return the error for an import that does not exist."""
    return NotFound(
        f"Import {import_id} does not exist, is complete or was abandoned: list the open ones with 'limnos import"
        " --list'",
        kind="import",
    )


async def import_feed(
    ctx: Context, import_id: int, *, after: int | None, body: Callable[[], Awaitable[bytes]]
) -> MetalakeImport:
    """Import the next records of the file atomically.

    Args:
        ctx: The request.
        import_id: The id of the import.
        after: The number of the last record before the batch; the import must be at that record.
        body: Reads the request's body; called after the caller was authorized.

    Returns:
        The import's progress.

    Raises:
        NotFound: There is no open import with that id.
        CommitConflict: The import is at another record.
        BadRequest: A record is refused; the message has its number. Also raised without `after`, for a wrong count of
            records, and after the file's last record.
        PermissionDenied: The caller is not a service admin.
    """
    metalake_import = await import_load(ctx, import_id)
    if after is None:
        raise BadRequest("after must be the number of the file's records before these")
    _require_at(metalake_import, after)
    data = await body()
    form: Form = "json" if metalake_import.form == "json" else "proto"
    records = decode_records(data, form, first=after + 1)
    if not 0 < len(records) <= RECORDS_MAX:
        raise BadRequest(f"One request must have 1 to {RECORDS_MAX} records, not {len(records)}")
    ready = await _records_check(
        ctx,
        metalake_import,
        records=[CheckedRecord(number=number, record=each) for number, each in enumerate(records, after + 1)],
    )
    command = ImportFeed(
        import_id=import_id,
        after=after,
        records=tuple(ready),
        separator=ctx.services.defaults.separator,
        warehouse=ctx.services.defaults.warehouse,
    )

    def decide(request_view: RequestView) -> Permit[ImportFeed]:
        return request_view.permit(command, request_view.require(Action.METALAKE_IMPORT, ()), zone=lock_of(import_id))

    return await ctx.write(RequestScope(), decide, import_take)


def _require_at(metalake_import: MetalakeImport, after: int) -> None:
    if metalake_import.state == WHOLE:
        raise BadRequest("The import has its last record: finish it, or abandon it")
    if metalake_import.records != after:
        raise CommitConflict(
            f"The import has {metalake_import.records} records: send the following ones, not those after {after}"
        )


async def _records_check(
    ctx: Context, metalake_import: MetalakeImport, *, records: Sequence[CheckedRecord]
) -> list[CheckedRecord]:
    """Validate each record separately. Reads the metadata files of tables here, before the transaction."""
    catalogs = await _catalogs(ctx, metalake_import, records=records)
    return await map_concurrently(
        records, lambda each: record_check(ctx, each, catalogs=catalogs), at_once=FILES_AT_ONCE
    )


async def _catalogs(
    ctx: Context, metalake_import: MetalakeImport, *, records: Sequence[CheckedRecord]
) -> Mapping[int, CatalogRecord]:
    """Return the catalogs of the records, by their ids in the file: the catalogs in these records, and the catalogs of
    earlier batches.
    """
    own_catalogs: dict[int, CatalogRecord] = {}
    requested: set[int] = set()
    is_free = metalake_import.name not in await ctx.look_up(setting_names_read)
    label = MetalakeLabel(metalake_import.name, metalake_import.name if is_free else "")
    for number, record, *_ in records:
        word = record.WhichOneof("record")
        if word == "catalog":
            own_catalogs[record.catalog.id] = catalog_of(
                number,
                record,
                defaults=ctx.services.defaults,
                metalake=label,
                keeps_warehouse=await _is_warehouse_free(ctx, record.warehouse, metalake_import=metalake_import),
            )
        elif word in ("namespace", "table", "entity"):
            requested.add(getattr(record, word).catalog_id)
    refs = await ctx.look_up(partial(refs_read, metalake_import.id, sorted(requested - set(own_catalogs))))
    for old, ref in refs.items():
        node = await ctx.look_up(partial(node_read, ref.new_id))
        if node is not None and isinstance(node.record, CatalogRecord):
            own_catalogs.setdefault(old, node.record)
    return own_catalogs


async def _is_warehouse_free(ctx: Context, warehouse: str, *, metalake_import: MetalakeImport) -> bool:
    """Return whether no other metalake has a location at, above or below the former default warehouse of a catalog."""
    try:
        key = place_key(warehouse) if warehouse else ""
    except BadRequest:
        return True  # the check of the record refuses it
    rival_locations = await ctx.look_up(partial(rivals_read, key)) if key else []
    return all(each.claim.metalake_id == metalake_import.metalake_id for each in rival_locations)


def import_take(tx: Tx, permit: Permit[ImportFeed]) -> MetalakeImport:
    """Write the records. Raises CommitConflict if they do not follow the import's last record, NotFound if the import
    has ended, BadRequest for an invalid record.

    The import's clock is locked, so batches are written one at a time.
    """
    command = permit.command
    metalake_import = tx.imports.read(command.import_id)
    if metalake_import is None or metalake_import.state not in (OPEN, WHOLE):
        raise no_import(command.import_id)
    _require_at(metalake_import, command.after)
    return ImportPart(tx, metalake_import, separator=command.separator, warehouse=command.warehouse).take(
        command.records
    )


async def import_finish(ctx: Context, import_id: int) -> FinishedImport:
    """Publish the metalake with all of its content. Raises NotFound, PermissionDenied, BadRequest if the file is
    incomplete, AlreadyExists if the name is in use.
    """
    metalake_import = await import_load(ctx, import_id)

    def decide(request_view: RequestView) -> Permit[ImportEnd]:
        decision = request_view.require(
            Action.METALAKE_IMPORT, (ChainLink.absent(Kind.METALAKE, metalake_import.name),)
        )
        _require_free(request_view, metalake_import.name)
        return request_view.permit(ImportEnd(import_id, request_view.rules.service_admins), decision)

    finished_import = await ctx.write(RequestScope(), decide, import_publish)
    ctx.services.wake_worker()
    return finished_import


def import_publish(tx: Tx, permit: Permit[ImportEnd]) -> FinishedImport:
    """Publish the metalake under its name, and create the task that deletes the import's rows.

    Without an owner in the file, the importing user becomes its owner. Raises NotFound, BadRequest, AlreadyExists.
    """
    metalake_import = _open(tx, permit)
    if metalake_import.state != WHOLE:
        raise BadRequest(
            f"The import has {metalake_import.records} records, but not the file's last one: send the remaining"
            " records. A file without a last record was truncated: export again"
        )
    if tx.nodes.find(ROOT_ID, "metalake", metalake_import.name) is not None:
        raise AlreadyExists(
            f"Metalake {metalake_import.name} already exists: abandon this import and import under another name",
            kind="metalake",
        )
    tx.setting_names.assign(metalake_import.metalake_id, metalake_import.name)
    tx.imports.publish(metalake_import, owner_id=_owner(tx, metalake_import, admins=permit.command.admins))
    tx.tasks.create(PRUNE_IMPORT, _import_view(metalake_import.id))
    return FinishedImport(metalake_import.name, metalake_import.records, metalake_import.masked)


def _owner(tx: Tx, metalake_import: MetalakeImport, *, admins: frozenset[str]) -> int:
    """Return the id of the metalake's owner. Raises BadRequest if the file does not define the owner that it names."""
    if metalake_import.owner_id:
        ref = tx.imports.refs(metalake_import.id, [metalake_import.owner_id]).get(metalake_import.owner_id)
        if ref is None or ref.kind not in (Kind.USER, Kind.GROUP):
            raise BadRequest(
                f"Record 2: the metalake's owner {metalake_import.owner_id} is not a user or group of the file"
            )
        owner = ref.new_id
    else:
        drafts = list(tx.drafts)
        user = tx.principals.find(metalake_import.metalake_id, Kind.USER, tx.actor)
        if user is None:
            check_new_user(tx, tx.actor, admins=admins)
            user = principal_create(tx, metalake_import.metalake_id, kind=Kind.USER, name=tx.actor)
        owner = user.id
        tx.drafts = drafts  # the user's change precedes the metalake's name, so no reader can miss it
    tx.owners.insert(metalake_import.metalake_id, owner)
    return owner


async def import_give_up(ctx: Context, import_id: int) -> None:
    """Abandon an import; a task deletes its rows. Raises NotFound, PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[ImportEnd]:
        return request_view.permit(
            ImportEnd(import_id), request_view.require(Action.METALAKE_IMPORT, ()), zone=lock_of(import_id)
        )

    await import_load(ctx, import_id)
    await ctx.write(RequestScope(), decide, import_abandon)
    ctx.services.wake_worker()


def import_abandon(tx: Tx, permit: Permit[ImportEnd]) -> None:
    """Close the import, and create the task that deletes its rows."""
    metalake_import = _open(tx, permit)
    tx.imports.give_up(metalake_import.id)
    tx.tasks.create(PRUNE_IMPORT, _import_view(metalake_import.id))


def _open(tx: Tx, permit: Permit[ImportEnd]) -> MetalakeImport:
    metalake_import = tx.imports.read(permit.command.import_id)
    if metalake_import is None or metalake_import.state not in (OPEN, WHOLE):
        raise no_import(permit.command.import_id)
    return metalake_import


def _import_view(import_id: int) -> str:
    return msgspec.json.encode(PruneImport(import_id)).decode()


async def import_prune(work: TaskContext, payload: PruneImport) -> None:
    """Delete the rows of an ended import, a few hundred at a time."""
    while await work.submit(lambda tx: tx.imports.prune(payload.import_id, limit=PRUNED_AT_ONCE)):
        pass


async def imports_prune(work: TaskContext) -> None:
    """Abandon imports that received no batch for a day, and create the tasks that delete their rows."""

    def give_up(tx: Tx) -> None:
        for import_id in tx.imports.idle(before=tx.now_ms - IDLE_MS):
            tx.imports.give_up(import_id)
            tx.tasks.create(PRUNE_IMPORT, _import_view(import_id))

    await work.submit(give_up)
