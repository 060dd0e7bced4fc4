# SPDX-License-Identifier: Apache-2.0
"""Stored functions: functions registered over Gravitino's API for other engines, or written in SQL++; both are one kind
of object.

Must not know any wire format. `formats.gravitino` checks a registered function, the record stores it, and this server
never runs it. Responses contain the statements of a function of SQL++, only SQL++ changes its definition, and it cannot
be dropped while another object needs it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.functions import (
    Function,
    FunctionChange,
    change_function,
    check_function,
    encode_function,
    function_json,
    function_read,
)
from limnos.formats.iceberg.json_types import Json
from limnos.model.entities import Node
from limnos.model.errors import InUse, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import SqlppObjectRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.catalog.stored_statements import stored_statements
from limnos.services.lookup.namespace_objects import namespace_object_create, namespace_object_find
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx

_ANYTHING = {"type": "external", "catalogString": "any"}


class FunctionAlter(msgspec.Struct, frozen=True):
    """The command to change a function's comment and its definition."""

    node: Node
    edits: PropertyEdits
    changes: tuple[FunctionChange, ...]


class FunctionDrop(msgspec.Struct, frozen=True):
    """The command to drop a function on which no object depends; it can be restored for `keep_ms`."""

    node: Node
    path: Levels
    keep_ms: int


def function_of(node: Node) -> Function | None:
    """Return a registered function's definition; None for a function of SQL++."""
    text = cast("SqlppObjectRecord", node.record).definition
    return function_read(text) if text else None


def function_view(node: Node) -> Json:
    """Return a function as JSON in the form of Gravitino's API.

    A function of SQL++ has no types and no implementations, so the result contains its statements. Their parameters are
    empty on a server without the room that reads them.
    """
    function = function_of(node)
    if function is not None:
        return function_json(function)
    statements, reader = cast("SqlppObjectRecord", node.record).statements, stored_statements()
    parameters = [()] * len(statements) if reader is None else reader.function_parameters(node)
    definitions = [
        {
            "parameters": [{"name": name, "dataType": _ANYTHING} for name in names],
            "returnType": _ANYTHING,
            "impls": [],
            "statement": text,
        }
        for text, names in zip(statements, parameters, strict=True)
    ]
    return {"functionType": "scalar", "deterministic": True, "definitions": definitions}


async def function_register(
    ctx: Context, scope: RequestScope, *, path: Levels, comment: str | None, function: Function
) -> Node:
    """Register a function; the caller owns it. Raises BadRequest for an invalid definition, and as
    `namespace_object_create`.
    """
    record = SqlppObjectRecord(
        comment=comment, properties={}, statements=(), definition=encode_function(check_function(function))
    )
    return await namespace_object_create(ctx, scope, path=path, kind=Kind.FUNCTION, record=lambda _: record)


async def function_alter(
    ctx: Context, scope: RequestScope, *, path: Levels, edits: PropertyEdits, changes: tuple[FunctionChange, ...]
) -> Node:
    """Change a function's comment or definition.

    Raises NotFound, PermissionDenied, BadRequest for invalid changes, UnsupportedOperation for the definition of a
    SQL++ function.
    """

    def decide(request_view: RequestView) -> Permit[FunctionAlter]:
        namespace_object = namespace_object_find(request_view, path, kind=Kind.FUNCTION, action=Action.FUNCTION_ALTER)
        if changes and function_of(namespace_object.entity) is None:
            raise UnsupportedOperation(
                f"Function {render(path)} is written in SQL++: replace it there, with CREATE OR REPLACE FUNCTION"
            )
        return request_view.permit(FunctionAlter(namespace_object.entity, edits, changes), namespace_object.decision)

    return await ctx.write(scope, decide, function_update)


def function_update(tx: Tx, permit: Permit[FunctionAlter]) -> Node:
    """Apply the changes to the stored record of a function, and write it. Raises BadRequest for invalid changes."""
    command = permit.command
    node = tx.nodes.confirm(command.node)
    record = cast("SqlppObjectRecord", node.record)
    text = record.definition
    if command.changes:
        if not text:
            tx.stale()  # SQL++ replaced it concurrently
        text = encode_function(change_function(function_read(text), command.changes))
    tx.nodes.write_record(node, replace(record, comment=command.edits.edited_comment(record.comment), definition=text))
    return tx.nodes.by_id(node.id)


async def function_drop(ctx: Context, scope: RequestScope, *, path: Levels) -> None:
    """Drop a function. Raises NotFound, PermissionDenied, ProtectedObject, InUse if an object of SQL++ needs it."""

    def decide(request_view: RequestView) -> Permit[FunctionDrop]:
        namespace_object = namespace_object_find(request_view, path, kind=Kind.FUNCTION, action=Action.FUNCTION_DROP)
        command = FunctionDrop(namespace_object.entity, path, request_view.defaults.keep_dropped_ms)
        return request_view.permit(command, namespace_object.decision)

    await ctx.write(scope, decide, function_delete)


def function_delete(tx: Tx, permit: Permit[FunctionDrop]) -> None:
    """Drop a function. Raises InUse if an object of SQL++ needs it."""
    command = permit.command
    node = tx.nodes.confirm(command.node)
    if tx.dependencies.user_of(node.id) is not None:
        raise InUse(
            f"Function {render(command.path)} is needed by an SQL++ object: drop or replace that first", kind="function"
        )
    tx.nodes.drop(node, keep_ms=command.keep_ms, purges=False)
