# SPDX-License-Identifier: Apache-2.0
"""Datasets of SQL++: Iceberg tables whose record has the statements that created them, external datasets, and indexes.

Must not know any wire format. `sqlpp.stored` defines the conversion of an object to a row. A dataset stores the text of
its type with all type names replaced, so that it stays readable if the named types are dropped or changed. A table that
other clients created is a dataset without a primary key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.model.dataset_properties import ALLOWED, REFUSED
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import TableRecord
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, render, tree
from limnos.rooms.sqlpp.language.declarations import declarations_of, declaring_statement
from limnos.rooms.sqlpp.language.definitions import index_name
from limnos.rooms.sqlpp.language.errors import TextPosition, compilation
from limnos.rooms.sqlpp.language.jobs import DatasetRef, text_of, type_of
from limnos.rooms.sqlpp.language.lookups import LookupIndex
from limnos.rooms.sqlpp.language.metadata import METADATA
from limnos.rooms.sqlpp.services.definitions.dataset_settings import check_settings
from limnos.rooms.sqlpp.services.definitions.dataset_tables import (
    JSON,
    OPEN_PART,
    OUTSIDE_WRITERS,
    VARIANT,
    TypedDataset,
    dataset_make,
    dataset_settings_of,
    has_variant,
)
from limnos.rooms.sqlpp.services.definitions.dataverse_objects import (
    SqlppObjectCreate,
    check_not_builtin,
    object_create_of,
    object_drop,
    object_drop_of,
    object_make,
    statement_missing_error,
)
from limnos.rooms.sqlpp.services.definitions.dataverses import default_dataverse_make
from limnos.rooms.sqlpp.services.definitions.files import check_file_source
from limnos.rooms.sqlpp.services.definitions.index_fields import check_fields
from limnos.rooms.sqlpp.services.definitions.index_rules import check_enforced, check_index
from limnos.rooms.sqlpp.services.definitions.types import inline_type
from limnos.rooms.sqlpp.services.locks.exclusive_access import dataset_exclude_writers
from limnos.rooms.sqlpp.services.requests.errors import (
    check_name,
    check_object,
    invalid_operation,
    no_dataset,
    no_dataverse,
    object_exists,
    unknown_object,
)
from limnos.rooms.sqlpp.services.requests.names import dataverse_find, is_builtin, scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx

DUPLICATE_KEY, INCOMPATIBLE_KEYS = 1198, 1199


class DatasetAlter(msgspec.Struct, frozen=True):
    """The command to replace the statements in a dataset's record, such as those of its indexes, if the record is
    unchanged.
    """

    table: Node
    record: TableRecord


async def dataset_create(
    session: StatementSession, statement: tree.CreateDataset, *, unfinished: Levels | None = None
) -> None:
    """Create a dataset with its table. Raises SqlppError, PermissionDenied, OutsideRoots.

    `unfinished` is the temporary path of the dataset until `dataset_publish`; its final name must be free.
    """
    ctx = session.ctx
    check_object(statement.name)
    path, at = session.qualify(statement.name), statement.name.at
    check_not_builtin(path[:-1], Kind.TABLE, at=at)
    check_settings(statement.settings)
    _refuse_unserved(statement)
    await default_dataverse_make(ctx, path[:-1])
    try:
        await dataset_make(
            session,
            path,
            statement=statement,
            resolve=lambda request_view: dataset_type_resolve(request_view, statement, dataverse=path[:-1]),
            unfinished=unfinished,
        )
    except NotFound as error:
        raise statement_missing_error(error, path[:-1], at=at) from None
    except AlreadyExists as error:
        if not statement.if_not_exists:
            raise object_exists("view" if error.kind == Kind.VIEW.word else "dataset", path, at=at) from None


def _refuse_unserved(statement: tree.CreateDataset) -> None:
    if statement.meta is not None:
        raise invalid_operation("Datasets with a meta type are not supported", statement.meta.at)
    for name, value, at in dataset_settings_of(statement):
        if name == OPEN_PART and value not in (JSON, VARIANT):
            raise invalid_operation(f"{OPEN_PART} is {JSON}, the default, or {VARIANT}", at)
        if name == OUTSIDE_WRITERS and value not in (ALLOWED, REFUSED):
            text = f"{OUTSIDE_WRITERS} is {REFUSED}, the default, or {ALLOWED}"
            raise invalid_operation(text, at)


def dataset_type_resolve(
    request_view: RequestView, statement: tree.CreateDataset, *, dataverse: Levels
) -> TypedDataset:
    """Return the stored type of a dataset; unqualified type names are looked up in the dataset's dataverse.

    Raises SqlppError, CacheMiss.
    """
    keys = tuple(key.path for key in statement.keys)
    if statement.type is None:
        return TypedDataset(_keys_type(statement.at, [(key, key.path) for key in statement.keys]), keys, ())
    inlined_type = inline_type(request_view, statement.type, dataverse=dataverse)
    if not isinstance(inlined_type.type, tree.RecordType):
        raise SqlppError(1082, "The type of a dataset's objects must be an object type", statement.type.at)
    record = inlined_type.type
    if isinstance(statement.type, tree.RecordType):  # the fields of a type in the statement itself are optional
        key_names = {path[0] for path in keys if len(path) == 1}
        fields = tuple(
            msgspec.structs.replace(each, optional=each.optional and each.name not in key_names)
            for each in record.fields
        )
        record = msgspec.structs.replace(record, fields=fields)
    return TypedDataset(record, keys, inlined_type.used)


def _keys_type(at: TextPosition, keys: list[tuple[tree.KeyField, Levels]]) -> tree.RecordType:
    """Return an open record type that declares typed key fields, each at its path. Raises SqlppError if two paths
    collide.
    """
    fields: list[tree.FieldType] = []
    for name in dict.fromkeys(path[0] for _, path in keys):
        inner = [(key, path[1:]) for key, path in keys if path[0] == name]
        key = inner[0][0]
        ends = [one for one, rest in inner if not rest]
        if len(ends) > 1:
            raise SqlppError(DUPLICATE_KEY, f"Duplicate field '{'.'.join(key.path)}' in primary key", key.at)
        if ends and len(inner) > 1:
            one, other = (".".join(each.path) for each, _ in inner[:2])
            raise SqlppError(
                INCOMPATIBLE_KEYS, f"Fields '{one}' and '{other}' are incompatible for primary key", key.at
            )
        type_ = key.type if ends and key.type is not None else _keys_type(key.at, inner)
        fields.append(tree.FieldType(key.at, name, type_, optional=False))
    return tree.RecordType(at, open=True, fields=tuple(fields))


async def external_create(session: StatementSession, statement: tree.CreateExternalDataset) -> None:
    """Create an external dataset over files below a root that the server allows. Raises SqlppError,
    PermissionDenied.
    """
    ctx = session.ctx
    path = session.qualify(statement.name)
    check_file_source(ctx, statement.adapter, options=statement.options, at=statement.at)
    await default_dataverse_make(ctx, path[:-1])

    def decide(request_view: RequestView) -> Permit[SqlppObjectCreate]:
        inlined_type = inline_type(request_view, statement.type, dataverse=path[:-1])
        return object_create_of(
            request_view,
            path,
            kind=Kind.EXTERNAL_DATASET,
            statement=_with_type(statement, path[:-1]),
            used=inlined_type.used,
        )

    await object_make(
        ctx, Kind.EXTERNAL_DATASET, decide=decide, name=statement.name, path=path, quiet=statement.if_not_exists
    )


def _with_type(statement: tree.CreateExternalDataset, dataverse: Levels) -> tree.CreateExternalDataset:
    if isinstance(statement.type, tree.NamedType) and not statement.type.name.dataverse:
        name = msgspec.structs.replace(statement.type.name, parts=(*dataverse, statement.type.name.last))
        return msgspec.structs.replace(statement, type=msgspec.structs.replace(statement.type, name=name))
    return statement


async def dataset_drop(session: StatementSession, statement: tree.Drop) -> None:
    """Drop a dataset on which no object depends; it can be restored from the trash for a while.

    Waits for the statements that use it. Raises SqlppError, PermissionDenied, ProtectedObject, LockTimeout,
    ServiceUnavailable.
    """
    ctx = session.ctx
    path = session.qualify(statement.name)
    if path[:-1] == METADATA:
        raise invalid_operation("Cannot drop a dataset belonging to the dataverse: Metadata", statement.name.at)
    kinds = (Kind.TABLE, Kind.EXTERNAL_DATASET)
    async with dataset_exclude_writers(
        session, path, may=lambda request_view: object_drop_of(request_view, path, kinds=kinds)
    ):
        session.warnings += await object_drop(ctx, kinds, name=statement.name, path=path, quiet=statement.if_exists)


async def index_create(session: StatementSession, statement: tree.CreateIndex | tree.CreatePrimaryIndex) -> None:
    """Execute CREATE INDEX: add the statement to the dataset's record. Only B-tree indexes are used for lookups.

    Raises SqlppError, PermissionDenied.
    """
    ctx = session.ctx
    path = session.qualify(statement.dataset)
    name = index_name(statement, path[-1])
    check_name(name, statement.at)
    if isinstance(statement, tree.CreateIndex):
        check_index(statement)
    whole = msgspec.structs.replace(statement, name=name)

    def decide(request_view: RequestView) -> Permit[DatasetAlter]:
        node, record, permit = alter_decide(request_view, path, at=statement.dataset.at)
        if name in index_names(node):
            raise object_exists("index", (*path[:-1], name), at=statement.at)
        if isinstance(statement, tree.CreateIndex):
            check_fields(type_of(record.object_type), statement)
            check_enforced(declarations_of(node, tree.CreateIndex), statement)
        new_record = record_with(record, (*record.statements, render(whole)))
        return permit.about(DatasetAlter(node, new_record))

    try:
        await ctx.write(scope_of(ctx), decide, dataset_alter)
    except SqlppError as error:
        if error.number != 1084 or not statement.if_not_exists:
            raise


async def index_drop(session: StatementSession, statement: tree.DropIndex) -> None:
    """Execute DROP INDEX. Raises SqlppError for a missing index, PermissionDenied."""
    ctx = session.ctx
    check_object(statement.dataset)
    path = session.qualify(statement.dataset)

    def decide(request_view: RequestView) -> Permit[DatasetAlter]:
        node, record, permit = alter_decide(request_view, path, at=statement.dataset.at)
        if statement.name == node.name:
            text = f"Cannot drop index '{node.name}'. Drop dataset '{node.name}' to remove this index"
            raise compilation(text, statement.at)
        if statement.name not in index_names(node):
            raise unknown_object("index", (*path[:-1], statement.name), at=statement.at)
        levels = tuple(
            render(each)
            for each in (
                *declarations_of(node, tree.CreateDataset),
                *indexes_of(node),
                *declarations_of(node, tree.Analyze),
            )
            if isinstance(each, (tree.CreateDataset, tree.Analyze)) or each.name != statement.name
        )
        return permit.about(DatasetAlter(node, record_with(record, levels)))

    try:
        await ctx.write(scope_of(ctx), decide, dataset_alter)
    except SqlppError as error:
        if error.number not in (1083, 1050) or not statement.if_exists:
            raise


def alter_decide(
    request_view: RequestView, path: Levels, *, at: TextPosition
) -> tuple[Node, TableRecord, Permit[None]]:
    """Decide whether the caller may alter a dataset that SQL++ created. Returns its node, its record and the permit.

    Raises SqlppError for a missing dataset, and for a table that SQL++ did not create, PermissionDenied.
    """
    request_view.require_in_use()
    try:
        node, _, decision = request_view.look_up(Kind.TABLE, path, Action.TABLE_ALTER)
    except NotFound:
        if not is_builtin(path[:-1]) and dataverse_find(request_view, path[:-1]) is None:
            raise no_dataverse(path[:-1], at) from None
        raise no_dataset(path, at) from None
    record = cast("TableRecord", node.record)
    if not record.statements:
        raise invalid_operation(f"{node.name} is a table that SQL++ did not create: it cannot have indexes", at)
    return node, record, request_view.permit(None, decision)


def record_with(record: TableRecord, statements: tuple[str, ...]) -> TableRecord:
    """Return a copy of a dataset's record with these statements in place of its own."""
    return replace(record, statements=statements)


def dataset_alter(tx: Tx, permit: Permit[DatasetAlter]) -> None:
    """Write the new record of the dataset. The permit is stale if the stored record has changed."""
    node = tx.nodes.confirm(permit.command.table)
    if node.record != permit.command.table.record:
        tx.stale()
    tx.nodes.write_record(node, permit.command.record)


def indexes_of(node: Node) -> tuple[tree.CreateIndex | tree.CreatePrimaryIndex, ...]:
    """Return the CREATE INDEX and CREATE PRIMARY INDEX statements of a dataset, parsed from its record."""
    return (*declarations_of(node, tree.CreateIndex), *declarations_of(node, tree.CreatePrimaryIndex))


def index_names(node: Node) -> frozenset[str]:
    """Return the names of a dataset's indexes. The index of the primary key has the dataset's name."""
    return frozenset({node.name, *(index_name(each, node.name) for each in indexes_of(node))})


def ref_of(request_view: RequestView, node: Node, *, path: Levels) -> DatasetRef:
    """Return the reference by which the engine opens a dataset: its table, type, key and indexes."""
    whole = (request_view.catalog.name, *path)
    record = cast("TableRecord", node.record)
    if node.kind is not Kind.TABLE or not record.statements:
        return DatasetRef(path=whole, type="", key=())
    statement = declarations_of(node, tree.CreateDataset)[0]
    keys = tuple(key.path for key in statement.keys)
    return DatasetRef(
        path=whole,
        type=record.object_type,
        key=keys,
        autogenerated=statement.autogenerated,
        indexes=_lookup_indexes(node),
        variant=has_variant(statement),
    )


def _lookup_indexes(node: Node) -> tuple[LookupIndex, ...]:
    """Return the indexes that statements can use for lookups: B-tree indexes without array fields."""
    fields = [
        (one.name, tuple(field.path for field in one.fields if isinstance(field, tree.IndexField)), len(one.fields))
        for one in declarations_of(node, tree.CreateIndex)
        if one.kind == "btree"
    ]
    return tuple(LookupIndex(name, paths) for name, paths, count in fields if len(paths) == count)


def external_ref_of(ctx: Context, request_view: RequestView, *, node: Node, path: Levels) -> DatasetRef:
    """Return the reference by which the engine opens an external dataset: its type, and its files if the server still
    allows them.

    Raises SqlppError, CacheMiss.
    """
    statement = declaring_statement(node, tree.CreateExternalDataset)
    inlined_type = inline_type(request_view, statement.type, dataverse=path[:-1])
    if not isinstance(inlined_type.type, tree.RecordType):
        raise SqlppError(1082, "The type of a dataset's objects must be an object type", statement.type.at)
    files = check_file_source(ctx, statement.adapter, options=statement.options, at=statement.at)
    return DatasetRef(path=(request_view.catalog.name, *path), type=text_of(inlined_type.type), key=(), files=files)
