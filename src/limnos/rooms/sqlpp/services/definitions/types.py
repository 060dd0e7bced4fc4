# SPDX-License-Identifier: Apache-2.0
"""Types of SQL++: nodes whose record is the statement that created them, and record types with all type names replaced.

Must not know any wire format. Unqualified names in the definition of an object are looked up in the object's dataverse,
those in other statements in the active dataverse. A built-in type takes precedence over a created one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.names.display import render as display_name
from limnos.names.errors import InvalidName
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, tree
from limnos.rooms.sqlpp.language.declarations import declaring_statement
from limnos.rooms.sqlpp.language.errors import compilation, too_deep
from limnos.rooms.sqlpp.language.stored import is_built_in
from limnos.rooms.sqlpp.services.definitions.dataverse_objects import (
    SqlppObjectCreate,
    object_create_of,
    object_drop,
    object_make,
)
from limnos.rooms.sqlpp.services.definitions.dataverses import default_dataverse_make
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.request_view import RequestView

UNKNOWN_TYPE: Final = 1082
DUPLICATE_FIELD: Final = 13


class InlinedType(NamedTuple):
    """A type with the names of created types replaced by their definitions, and the ids of the types that it names
    itself (not of those that their definitions name).
    """

    type: tree.TypeExpression
    used: tuple[int, ...]


async def type_create(session: StatementSession, statement: tree.CreateType) -> None:
    """Execute CREATE TYPE. Raises SqlppError if the type is invalid or its name is taken, PermissionDenied."""
    ctx = session.ctx
    path = session.qualify(statement.name)
    dataverse = path[:-1]
    if path[-1].startswith("$"):
        raise compilation(f"Reserved type name {path[-1]}", statement.name.at)
    await default_dataverse_make(ctx, path[:-1])

    def decide(request_view: RequestView) -> Permit[SqlppObjectCreate]:
        inlined_type = inline_type(request_view, statement.type, dataverse=dataverse)
        whole = msgspec.structs.replace(statement, type=qualify_type(statement.type, dataverse))
        return object_create_of(request_view, path, kind=Kind.DATATYPE, statement=whole, used=inlined_type.used)

    await object_make(ctx, Kind.DATATYPE, decide=decide, name=statement.name, path=path, quiet=statement.if_not_exists)


async def type_drop(session: StatementSession, statement: tree.Drop) -> None:
    """Drop a type on which no object depends. Raises SqlppError, PermissionDenied, ProtectedObject."""
    ctx = session.ctx
    path = session.qualify(statement.name)
    session.warnings += await object_drop(
        ctx, (Kind.DATATYPE,), name=statement.name, path=path, quiet=statement.if_exists
    )


def inline_type(request_view: RequestView, type_: tree.TypeExpression, *, dataverse: Levels) -> InlinedType:
    """Replace the names of created types by their definitions, recursively.

    Raises SqlppError for a name that is unknown or hidden from the caller; CacheMiss.
    """
    used: dict[int, None] = {}
    try:
        return InlinedType(_inline_names(request_view, type_, dataverse=dataverse, used=used), tuple(used))
    except RecursionError:
        raise too_deep() from None


async def inlined_record(session: StatementSession, type_: tree.TypeExpression) -> tree.RecordType:
    """Return the record type of a statement, named or written inline, with all type names replaced. Raises
    SqlppError.
    """

    def read(request_view: RequestView) -> tree.TypeExpression:
        return inline_type(request_view, type_, dataverse=session.dataverse).type

    inlined = await session.ctx.read(scope_of(session.ctx), read)
    if not isinstance(inlined, tree.RecordType):
        raise compilation("TYPE and AS must name an object type", type_.at)
    return inlined


def _inline_names(
    request_view: RequestView, type_: tree.TypeExpression, *, dataverse: Levels, used: dict[int, None]
) -> tree.TypeExpression:
    match type_:
        case tree.RecordType(fields=fields):
            _check_names(fields)
            types = tuple(
                msgspec.structs.replace(
                    each, type=_inline_names(request_view, each.type, dataverse=dataverse, used=used)
                )
                for each in fields
            )
            return msgspec.structs.replace(type_, fields=types)
        case tree.ArrayType(item=item) | tree.BagType(item=item):
            return msgspec.structs.replace(
                type_, item=_inline_names(request_view, item, dataverse=dataverse, used=used)
            )
        case tree.NamedType(name=name) if not _is_built_in(name):
            create_type = _find_named_type(request_view, name, dataverse=dataverse, used=used)
            return _inline_names(request_view, create_type.type, dataverse=name.dataverse or dataverse, used={})
    return type_


def _check_names(fields: tuple[tree.FieldType, ...]) -> None:
    """Check that no two fields have the same name. Raises SqlppError."""
    names: set[str] = set()
    for field in fields:
        if field.name in names:
            raise SqlppError(DUPLICATE_FIELD, f"Duplicate field name '{field.name}'", field.at)
        names.add(field.name)


def _is_built_in(name: tree.DottedName) -> bool:
    return not name.dataverse and is_built_in(name.last)


def _find_named_type(
    request_view: RequestView, name: tree.DottedName, *, dataverse: Levels, used: dict[int, None]
) -> tree.CreateType:
    path = name.parts if name.dataverse else (*dataverse, name.last)
    try:
        check_levels(path)
        node = request_view.look_up(Kind.DATATYPE, path, Action.DATATYPE_LOAD).entity
    except (NotFound, InvalidName):
        raise SqlppError(UNKNOWN_TYPE, f"Cannot find datatype with name {display_name(name.parts)}", name.at) from None
    used[node.id] = None
    return declaring_statement(node, tree.CreateType)


def qualify_type(type_: tree.RecordType, dataverse: Levels) -> tree.RecordType:
    """Return a type with the names of created types qualified by the dataverse."""
    return msgspec.structs.replace(
        type_, fields=tuple(msgspec.structs.replace(each, type=_qualify(each.type, dataverse)) for each in type_.fields)
    )


def _qualify(type_: tree.TypeExpression, dataverse: Levels) -> tree.TypeExpression:
    match type_:
        case tree.RecordType():
            return qualify_type(type_, dataverse)
        case tree.ArrayType(item=item) | tree.BagType(item=item):
            return msgspec.structs.replace(type_, item=_qualify(item, dataverse))
        case tree.NamedType(name=name) if not name.dataverse and not is_built_in(name.last):
            return msgspec.structs.replace(type_, name=msgspec.structs.replace(name, parts=(*dataverse, name.last)))
    return type_
