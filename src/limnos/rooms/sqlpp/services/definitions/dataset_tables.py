# SPDX-License-Identifier: Apache-2.0
"""The table of a dataset: its creation, its temporary name while it is unfinished, and its final name.

Must not know engines. A dataset of CREATE DATASET … AS is unfinished until its objects are committed: it has a
temporary name, and one mutation renames it to the final name. If the server ends before that, a task drops it after the
statement's deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple
from uuid import uuid4

import msgspec

from limnos.access.actions import Action
from limnos.model import dataset_properties
from limnos.model.entities import MetadataDocument
from limnos.model.errors import AlreadyExists, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, render, stored, tree
from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.language.jobs import text_of
from limnos.rooms.sqlpp.services.definitions.dataverse_objects import dataverse_of
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.catalog.tables import (
    NewTable,
    TableCreate,
    TableDrop,
    TableMove,
    new_table_of,
    table_delete,
    table_insert,
    table_move_of,
    table_reparent,
)
from limnos.services.iceberg.tables import TableRequest, add_metadata_scheme, build_metadata, document_of
from limnos.services.request.request_view import RequestView
from limnos.services.request.task_context import TaskContext
from limnos.store.tx import Tx

OPEN_PART: Final = "open-part"
JSON, VARIANT = "json", "variant"
OUTSIDE_WRITERS: Final = "outside-writers"
DROP_UNFINISHED: Final = "drop-unfinished-dataset"
GRACE_MS: Final = 600_000
"""The time between the deadline of a statement and the drop of its dataset, in milliseconds."""
_NAME_BYTES_MAX: Final = 150


class DatasetCreate(msgspec.Struct, frozen=True):
    """The command to create a table that is a dataset, with the ids of the types that it needs.

    `drop_after_ms`: the dataset has a temporary name, and is dropped if it still has that name after this time.
    """

    table: TableCreate
    used: tuple[int, ...]
    drop_after_ms: int | None = None


class TypedDataset(NamedTuple):
    """The stored type of a dataset, its keys, and the ids of the types that it needs."""

    record: tree.RecordType
    keys: tuple[tuple[str, ...], ...]
    used: tuple[int, ...]


class UnfinishedDataset(msgspec.Struct, frozen=True):
    """The payload of the task that drops an unfinished dataset: its id, its temporary name, and the zone of its
    catalog.
    """

    table_id: int
    name: str
    zone: int


def dataset_settings_of(statement: tree.CreateDataset) -> Iterator[tuple[str, str | None, TextPosition]]:
    """Yield the fields of the WITH clause: name, value as text (None if it is not a string), and position."""
    for pair in () if statement.settings is None else statement.settings.pairs:
        if isinstance(pair.name, tree.String):
            yield pair.name.value, pair.value.value if isinstance(pair.value, tree.String) else None, pair.at


def has_variant(statement: tree.CreateDataset) -> bool:
    """Return whether the WITH clause stores the open fields as a VARIANT column."""
    return any(name == OPEN_PART and value == VARIANT for name, value, _ in dataset_settings_of(statement))


def _properties(statement: tree.CreateDataset, form: stored.StorageForm) -> dict[str, str]:
    """Return the Iceberg properties of the dataset's table: its storage form, and whether other writers are allowed."""
    entries = {name: value for name, value, _ in dataset_settings_of(statement)}
    writers = entries.get(OUTSIDE_WRITERS)
    return stored.properties_of(form) | ({} if writers is None else {dataset_properties.OUTSIDE_WRITERS: writers})


async def dataset_make(
    session: StatementSession,
    path: Levels,
    *,
    statement: tree.CreateDataset,
    resolve: Callable[[RequestView], TypedDataset],
    unfinished: Levels | None,
) -> None:
    """Create the table of a dataset. With `unfinished`, the table has that temporary path until `dataset_publish`.

    `resolve` returns the dataset's type. Raises SqlppError, NotFound, AlreadyExists, PermissionDenied, BadRequest.
    """
    table_path = path if unfinished is None else unfinished

    def look(request_view: RequestView) -> tuple[NewTable, TypedDataset]:
        dataverse_of(request_view, path[:-1], action=Action.TABLE_CREATE)
        draft = new_table_of(request_view, table_path[:-1], table_path[-1], Action.TABLE_CREATE)
        if table_path != path and request_view.find(path, Kind.TABLE)[0] is not None:
            raise AlreadyExists(f"A table has the name {path[-1]}", kind=Kind.TABLE.word)
        return draft, resolve(request_view)

    ctx = session.ctx
    scope = scope_of(ctx)
    draft, dataset = await ctx.read(scope, look)
    form = stored.storage_form_of_record(
        dataset.record, dataset.keys, autogenerated=statement.autogenerated, variant=has_variant(statement)
    )
    stored.check(form)
    request = TableRequest(
        name=table_path[-1],
        location=None,
        schema=stored.schema_of(form),
        partition_spec=None,
        write_order=None,
        properties=_properties(statement, form),
    )
    whole = await add_metadata_scheme(ctx.services.offloader, await build_metadata(ctx, request, draft))
    document, data = document_of(whole, previous=None, node_id=0, place=draft.place)
    drop_after_ms = None if table_path == path else round(session.seconds_left * 1000) + GRACE_MS

    def decide(request_view: RequestView) -> Permit[DatasetCreate]:
        now, again = look(request_view)
        if again != dataset:
            raise SqlppError(
                1082, "A type was dropped or created again while the dataset was created: try again", statement.at
            )
        return _command(
            now, table_path, document=document, statement=statement, dataset=again, drop_after_ms=drop_after_ms
        )

    async with ctx.services.files.written_file(
        document.metadata_location, data, draft.place.catalog.properties, first=True
    ):
        await ctx.write(
            scope,
            decide,
            dataset_insert,
            first=_command(
                draft, table_path, document=document, statement=statement, dataset=dataset, drop_after_ms=drop_after_ms
            ),
        )


def _command(
    draft: NewTable,
    path: Levels,
    *,
    document: MetadataDocument,
    statement: tree.CreateDataset,
    dataset: TypedDataset,
    drop_after_ms: int | None,
) -> Permit[DatasetCreate]:
    record = TableRecord(
        comment=None,
        properties={},
        statements=(render(_qualify_type(statement, path[:-1])),),
        object_type=text_of(dataset.record),
    )
    table = TableCreate(
        namespace=draft.namespace,
        name=path[-1],
        space=draft.space,
        document=document,
        owner_id=draft.owner_id,
        record=record,
    )
    return draft.permit.about(DatasetCreate(table, dataset.used, drop_after_ms))


def _qualify_type(statement: tree.CreateDataset, dataverse: Levels) -> tree.CreateDataset:
    """Return the statement with the name of its type qualified by the dataverse."""
    if isinstance(statement.type, tree.NamedType) and not statement.type.name.dataverse:
        name = msgspec.structs.replace(statement.type.name, parts=(*dataverse, statement.type.name.last))
        return msgspec.structs.replace(statement, type=msgspec.structs.replace(statement.type, name=name))
    return statement


def dataset_insert(tx: Tx, permit: Permit[DatasetCreate]) -> None:
    """Insert the table, its document and its dependencies, and the task that drops an unfinished dataset."""
    command = permit.command
    document = table_insert(tx, permit.about(command.table))
    tx.dependencies.replace(document.node_id, command.used)
    if command.drop_after_ms is not None:
        dataset = UnfinishedDataset(document.node_id, command.table.name, permit.zone)
        unfinished_drop_later(tx, dataset, delay_ms=command.drop_after_ms)


def unfinished_path(path: Levels) -> Levels:
    """Return a unique temporary path for a dataset's table, which it has until the dataset is filled."""
    start = path[-1].encode()[:_NAME_BYTES_MAX].decode(errors="ignore")
    return (*path[:-1], f"{start}_unfinished_{uuid4().hex}")


def unfinished_drop_later(tx: Tx, dataset: UnfinishedDataset, *, delay_ms: int) -> None:
    """Create the delayed task that drops an unfinished dataset, in the transaction that creates the dataset."""
    tx.tasks.create(DROP_UNFINISHED, msgspec.json.encode(dataset).decode(), delay_ms=delay_ms)


async def dataset_publish(session: StatementSession, *, unfinished: Levels, path: Levels) -> None:
    """Rename a finished dataset to its final name. Raises NotFound, AlreadyExists, PermissionDenied."""
    await session.ctx.write(
        scope_of(session.ctx), lambda request_view: table_move_of(request_view, unfinished, path), dataset_rename
    )


def dataset_rename(tx: Tx, permit: Permit[TableMove]) -> None:
    """Rename the dataset, and delete the task that would drop it."""
    table_reparent(tx, permit)
    for task_id, text, _ in tx.tasks.of_kind(DROP_UNFINISHED):
        if msgspec.json.decode(text, type=UnfinishedDataset).table_id == permit.command.table.id:
            tx.tasks.delete_finished(task_id)


async def unfinished_drop_run(work: TaskContext, payload: UnfinishedDataset) -> str | None:
    """Drop a dataset that still has its temporary name; it can be restored from the trash for a while.

    Returns the name of the dropped dataset, for the task's result. Raises ServiceUnavailable.
    """
    if work.services is None:
        raise ServiceUnavailable("This node runs no services: another node runs the task")
    keep_ms = work.services.defaults.keep_dropped_ms
    permit = upkeep_permit("limnos", zone=payload.zone)
    return await work.services.store.submit(permit, partial(_drop, payload, permit=permit, keep_ms=keep_ms))


def _drop(payload: UnfinishedDataset, tx: Tx, *, permit: Permit[None], keep_ms: int) -> str | None:
    node = tx.nodes.live(payload.table_id)
    if node is None or node.name != payload.name:
        return None
    table_delete(tx, permit.about(TableDrop(node, None, keep_ms)))
    return f"dropped {payload.name}, which a statement left unfinished"
