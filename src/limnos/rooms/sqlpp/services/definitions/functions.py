# SPDX-License-Identifier: Apache-2.0
"""Functions written in SQL++: one object for all functions of a name, with one statement for each arity.

Must not know any wire format. Adding a function to an existing name, replacing one, or dropping one of several alters
the object; its owner stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import SqlppObjectRecord
from limnos.names.display import render as display_name
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, tree
from limnos.rooms.sqlpp.language.binder import BoundDataset, BoundSynonym, BoundView, NameResolver, UserFunction
from limnos.rooms.sqlpp.language.declarations import FunctionDeclaration, function_declarations_of, record_of
from limnos.rooms.sqlpp.language.definitions import arity_of, signature
from limnos.rooms.sqlpp.language.functions.table import UNKNOWN_FUNCTION
from limnos.rooms.sqlpp.language.tree_walk import children
from limnos.rooms.sqlpp.services.definitions.body_dependencies import BodyDependencies, ids_of, needs_of, needs_text
from limnos.rooms.sqlpp.services.definitions.dataverse_objects import (
    ObjectInUse,
    SqlppObjectCreate,
    check_not_builtin,
    describe_user,
    drop_confirmed,
    is_made_here,
    object_create_of,
    object_insert,
    object_missing_error,
    refuse_used,
    statement_missing_error,
)
from limnos.rooms.sqlpp.services.definitions.dataverses import default_dataverse_make
from limnos.rooms.sqlpp.services.requests.errors import NO_DATAVERSE, check_object, in_use, object_exists
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx

ILLEGAL_FUNCTION = 1150


class FunctionChange(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create the first function of a name, or to replace the record of the object.

    None as record drops the object. `drops`: a function is removed, on which other objects may depend.
    """

    make: SqlppObjectCreate | None
    node: Node | None
    record: SqlppObjectRecord | None
    used: tuple[int, ...] = ()
    keep_ms: int = 0
    drops: bool = False


class _WithFunction:
    """A name resolver that includes the function that is being defined."""

    def __init__(self, names: NameResolver, function: UserFunction) -> None:
        self._names = names
        self._function = function

    def has_dataverse(self, dataverse: Levels) -> bool:
        """Return whether a dataverse exists and is visible to the caller."""
        return dataverse == self._function.dataverse or self._names.has_dataverse(dataverse)

    def resolve(self, dataverse: Levels, name: str) -> BoundDataset | BoundView | BoundSynonym | None:
        """Resolve the name of a dataset, view or synonym, as the wrapped resolver does."""
        return self._names.resolve(dataverse, name)

    def function(self, dataverse: Levels, name: str, *, arity: int) -> UserFunction | None:
        """Resolve a function: the one being defined, else as the wrapped resolver does."""
        own_function = self._function
        if (
            (dataverse, name) == (own_function.dataverse, own_function.name)
            and own_function.parameters is not None
            and len(own_function.parameters) == arity
        ):
            return own_function
        function = self._names.function(dataverse, name, arity=arity)
        is_variadic = function is None or function.parameters is None
        if (
            is_variadic
            and (dataverse, name) == (own_function.dataverse, own_function.name)
            and own_function.parameters is None
        ):
            return own_function
        return function


async def function_create(session: StatementSession, statement: tree.CreateFunction) -> None:
    """Create a function, or replace it (OR REPLACE). Raises SqlppError if its body is invalid or the function exists,
    PermissionDenied.
    """
    ctx = session.ctx
    check_object(statement.name)
    path = session.qualify(statement.name)
    check_not_builtin(path[:-1], Kind.FUNCTION, at=statement.name.at)
    await default_dataverse_make(ctx, path[:-1])
    needs = await _needs(session, statement, path=path)
    try:
        await ctx.write(
            scope_of(ctx),
            lambda request_view: _create_of(request_view, path, statement=statement, needs=needs),
            function_change,
        )
    except NotFound as error:
        raise statement_missing_error(error, path[:-1], at=statement.name.at) from None
    except AlreadyExists:
        if not statement.if_not_exists:
            raise object_exists(
                "function", (*path[:-1], signature(path[-1], arity_of(statement))), at=statement.name.at
            ) from None


async def _needs(session: StatementSession, statement: tree.CreateFunction, *, path: Levels) -> BodyDependencies:
    """Return the dependencies of a function, found by binding a call into which its body is inlined.

    Raises SqlppError if the body is invalid, PermissionDenied.
    """
    own_function = UserFunction(path[:-1], path[-1], statement.parameters, statement.body)
    nothing = tree.Null(statement.at)
    call = tree.Call(
        at=statement.at,
        function=tree.DottedName(statement.at, path),
        library=None,
        arguments=tuple(nothing for _ in statement.parameters or ()),
        star=False,
        distinct=False,
        filter=None,
        window=None,
    )
    try:
        return await needs_of(
            session,
            call,
            dataverse=path[:-1],
            within=lambda names: _WithFunction(names, own_function),
            own=own_function,
        )
    except SqlppError as error:
        raise _declared_call_error(session, statement, error=error) from None


def _declared_call_error(session: StatementSession, statement: tree.CreateFunction, *, error: SqlppError) -> SqlppError:
    """Return the error of a function body that calls a function declared in the request, which a stored body cannot
    call.

    Returns `error` unchanged if it has another cause.
    """
    for function in session.declared if error.number == UNKNOWN_FUNCTION else ():
        if any(call.at == error.place and call.function.last == function.name for call in _calls(statement.body)):
            arity = tree.VARIADIC if function.parameters is None else len(function.parameters)
            text = f"Illegal use of function {signature(function.name, arity)}"
            return SqlppError(ILLEGAL_FUNCTION, f"{text}: only the request that declares it can call it", error.place)
    return error


def _calls(body: tree.SyntaxNode) -> Iterator[tree.Call]:
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Call):
            yield node
        waiting.extend(children(node))


def functions_without(node: Node, *, arity: int) -> tuple[FunctionDeclaration, ...]:
    """Return the functions of a name except the one of this arity."""
    return tuple(each for each in function_declarations_of(node) if arity_of(each[0]) != arity)


def functions_record(functions: tuple[FunctionDeclaration, ...]) -> SqlppObjectRecord:
    """Return the record of the object that has all functions of a name."""
    record = record_of(*(statement for statement, _ in functions))
    return replace(record, dependencies=tuple(text for _, text in functions))


def _create_of(
    request_view: RequestView, path: Levels, *, statement: tree.CreateFunction, needs: BodyDependencies
) -> Permit[FunctionChange]:
    used = ids_of(request_view, needs)
    node, _ = request_view.find(path, Kind.FUNCTION)
    if node is None:
        permit = object_create_of(request_view, path, kind=Kind.FUNCTION, statement=statement, used=used)
        record = replace(permit.command.record, dependencies=(needs_text(needs),))
        return permit.about(
            FunctionChange(make=msgspec.structs.replace(permit.command, record=record), node=None, record=None)
        )
    request_view.require_in_use()
    result = request_view.look_up(Kind.FUNCTION, path, Action.FUNCTION_ALTER)
    others = functions_without(node, arity=arity_of(statement))
    if not is_made_here(node):
        raise AlreadyExists("It was not registered by SQL++, so SQL++ cannot replace it", kind="function")
    if len(others) < len(cast("SqlppObjectRecord", node.record).statements) and not statement.or_replace:
        raise AlreadyExists("It exists", kind="function")
    record = functions_record((*others, (statement, needs_text(needs))))
    return request_view.permit(FunctionChange(make=None, node=node, record=record, used=used), result.decision)


async def function_drop(session: StatementSession, statement: tree.DropFunction) -> None:
    """Execute DROP FUNCTION for a name and an arity. Raises SqlppError for a missing function, PermissionDenied."""
    ctx = session.ctx
    path, at = session.qualify(statement.name), statement.name.at
    if statement.library is not None:
        raise SqlppError(1117, f"Cannot find library with name {display_name((statement.library,))}", at)
    try:
        await ctx.write(
            scope_of(ctx), lambda request_view: _drop_of(request_view, path, arity=statement.arity), function_change
        )
    except NotFound:
        failure = await object_missing_error(
            ctx, "function", path=(*path[:-1], signature(path[-1], statement.arity)), at=at
        )
        if not statement.if_exists:
            raise failure from None
        if failure.number == NO_DATAVERSE:
            session.warnings.append(failure)
    except ObjectInUse as error:
        name = signature(display_name(path), statement.arity)
        raise in_use("function", name, by=await describe_user(ctx, error), at=at) from None


def _drop_of(request_view: RequestView, path: Levels, *, arity: int) -> Permit[FunctionChange]:
    request_view.require_in_use()
    node, _ = request_view.find(path, Kind.FUNCTION)
    rest = () if node is None else functions_without(node, arity=arity)
    action = Action.FUNCTION_ALTER if rest else Action.FUNCTION_DROP
    result = request_view.look_up(Kind.FUNCTION, path, action)
    if len(rest) == len(cast("SqlppObjectRecord", result.entity.record).statements):
        raise request_view.missing(Kind.FUNCTION, path)
    record = functions_record(rest) if rest else None
    keep_ms = request_view.defaults.keep_dropped_ms
    return request_view.permit(
        FunctionChange(make=None, node=result.entity, record=record, used=(), keep_ms=keep_ms, drops=True),
        result.decision,
    )


def function_change(tx: Tx, permit: Permit[FunctionChange]) -> None:
    """Create, replace or drop the object that has the functions of a name.

    A removal raises ObjectInUse if another object depends on a function of this name, regardless of its arity.
    """
    command = permit.command
    if command.make is not None:
        object_insert(tx, permit.about(command.make))
        return
    node = tx.nodes.confirm(cast("Node", command.node))
    if node.record != cast("Node", command.node).record:
        tx.stale()
    if command.drops:
        refuse_used(tx, node)
    if command.record is None:
        drop_confirmed(tx, node, keep_ms=command.keep_ms)
        return
    tx.dependencies.add(node.id, command.used)
    tx.nodes.write_record(node, command.record)
