# SPDX-License-Identifier: Apache-2.0
"""SQL++ names on the tree, for one caller: dataverses, datasets, views, synonyms, functions.

Must not know any wire format. A statement is bound against the names that were looked up so far (`ResolvedNames`).
Missing names are collected and looked up in one request view, and the statement is bound again. So the binding itself
needs no request view, and a large statement can be bound in a worker process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeVar, cast

from limnos.access.actions import Action
from limnos.model.decisions import Decision
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.records import SqlppObjectRecord
from limnos.names.errors import InvalidName
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, tree
from limnos.rooms.sqlpp.language.binder import BoundDataset, BoundSynonym, BoundView, UserFunction
from limnos.rooms.sqlpp.language.binding import NameLookup, ResolvedNames, UnparsedFunction, UnparsedQuery
from limnos.rooms.sqlpp.language.declarations import NOWHERE, body_of, declaring_statement
from limnos.rooms.sqlpp.language.definitions import view_definition
from limnos.rooms.sqlpp.language.errors import BudgetSpent, compilation
from limnos.rooms.sqlpp.language.metadata import METADATA, METADATA_DATASETS
from limnos.rooms.sqlpp.services.requests.errors import NO_DATAVERSE
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.view.cache_miss import for_each

T = TypeVar("T")
DEFAULT: Final = ("Default",)
TEXT_SHORT: Final = 2048
"""The length in characters up to which statements and view texts are parsed on the event loop, in at most 4 ms."""
NODES_SHORT: Final = 2000
"""The number of expressions up to which a statement is bound on the event loop, in at most 4 ms."""
ROUNDS_MAX: Final = 200
"""The maximum number of bindings of a statement until no name is missing: one for each nested view or function, and a
few more.
"""
LOADS: Final = {
    Kind.TABLE: Action.TABLE_LOAD,
    Kind.VIEW: Action.VIEW_LOAD,
    Kind.EXTERNAL_DATASET: Action.EXTERNAL_DATASET_LOAD,
    Kind.SYNONYM: Action.SYNONYM_LOAD,
}
"""The kinds of objects that a name in FROM may mean, and the action that binds the name. It reads no rows."""


BUILT_IN: Final[dict[NameLookup, object]] = {
    NameLookup("dataverse", METADATA): True,
    **{NameLookup("dataset", METADATA, name): BoundDataset(METADATA, name) for name in METADATA_DATASETS},
}
"""The names of the dataverse Metadata, regardless of the tree and the caller."""


async def bind_with_names(
    ctx: Context,
    bind: Callable[[ResolvedNames], T],
    *,
    elsewhere: Callable[[ResolvedNames], Awaitable[T]],
    known: ResolvedNames | None = None,
) -> T:
    """Bind a statement with the names of the tree that are visible to the caller.

    Args:
        ctx: The request.
        bind: Binds with the names looked up so far, and records missing ones. It has no other side effects, and is
            called until none is missing.
        elsewhere: Replaces `bind` once that has raised BudgetSpent, since the statement is too large for the event
            loop.
        known: The names looked up so far; further names are added.

    Raises:
        SqlppError: The statement is invalid.
        PermissionDenied: The caller may not read an object.
        BadRequest: Views and functions refer to each other in a cycle.
    """
    known = ResolvedNames() if known is None else known
    is_long = False
    for _ in range(ROUNDS_MAX):
        known.unresolved.clear()
        result, failure = None, None
        try:
            if not is_long:
                try:
                    result = bind(known)
                except BudgetSpent:
                    is_long = True
                    known.unresolved.clear()
            if is_long:
                result = await elsewhere(known)
        except SqlppError as error:
            failure = error
        if not known.unresolved:
            if failure is not None:
                raise await _missing_catalog_hint(ctx, known, failure=failure)
            return cast("T", result)
        lookups = tuple(known.unresolved)
        answers = await ctx.read(scope_of(ctx), partial(_answers, lookups))
        known.facts.update(zip(lookups, answers, strict=True))
        await asyncio.sleep(0)  # other requests get a turn between two rounds
    raise BadRequest("The statement's views and functions refer to each other in a cycle")


async def _missing_catalog_hint(ctx: Context, known: ResolvedNames, *, failure: SqlppError) -> SqlppError:
    """Add a hint to the error for a missing dataverse whose first part is the name of another catalog."""
    home = scope_of(ctx)
    first = {each.dataverse[0] for each, result in known.facts.items() if each.about == "dataverse" and result is False}
    if failure.number != NO_DATAVERSE or len(first) != 1 or first == {home.catalog}:
        return failure
    (name,) = first
    try:
        await ctx.read(
            RequestScope(home.metalake, name),
            lambda request_view: request_view.require(Action.CATALOG_LOAD, request_view.settled.outer),
        )
    except (PermissionDenied, NotFound, InvalidName):
        return failure  # answers as if there were no such catalog
    words = f"{failure.message}: {name} is a catalog, and statements read only the catalog {home.catalog}"
    return SqlppError(failure.number, words, failure.place, failure.has_position)


def scope_of(ctx: Context) -> RequestScope:
    """Return the scope of the catalog that contains the dataverses."""
    return RequestScope(ctx.services.defaults.metalake, ctx.services.defaults.sqlpp_catalog)


def _answers(lookups: tuple[NameLookup, ...], request_view: RequestView) -> list[object]:
    if any(lookup.dataverse != METADATA for lookup in lookups):
        request_view.require_in_use()
    return for_each(lookups, lambda lookup: _ANSWERS[lookup.about](request_view, lookup))


def is_builtin(dataverse: Levels) -> bool:
    """Return whether a dataverse is built in, such as `Metadata`."""
    return dataverse in (DEFAULT, METADATA)


def dataverse_find(request_view: RequestView, dataverse: Levels) -> Node | None:
    """Return the namespace of a dataverse that is visible to the caller and was created explicitly; else None.

    Raises PermissionDenied.
    """
    try:
        check_levels(dataverse)
        node = request_view.look_up(Kind.NAMESPACE, dataverse, Action.NAMESPACE_LOAD).entity
    except (NotFound, InvalidName):
        return None
    return None if node.implicit else node


def _dataverse(request_view: RequestView, lookup: NameLookup) -> bool:
    return is_builtin(lookup.dataverse) or dataverse_find(request_view, lookup.dataverse) is not None


def _dataset(request_view: RequestView, lookup: NameLookup) -> BoundDataset | BoundView | BoundSynonym | None:
    """Resolve the name of a dataset, view or synonym; a dataset or view takes precedence over a synonym.

    Returns None for a missing object. Raises PermissionDenied, and SqlppError for a view in another dialect.
    """
    dataverse, name = lookup.dataverse, lookup.name
    if dataverse == METADATA:
        return BoundDataset(METADATA, name) if name in METADATA_DATASETS else None
    node = source_find(request_view, (*dataverse, name))
    if node is None:
        return None
    if node.kind is Kind.VIEW:
        return BoundView(dataverse, name, view_body(request_view, node))
    if node.kind is Kind.SYNONYM:
        target = declaring_statement(node, tree.CreateSynonym).target
        return BoundSynonym(target.dataverse or dataverse, target.last)
    return BoundDataset(dataverse, name)


def source_find(request_view: RequestView, levels: Levels, *, actions: Mapping[Kind, Action] = LOADS) -> Node | None:
    """Return the object of a name in FROM, if its kind has an action in `actions` that the caller may perform on it.

    Returns None for a missing object or one of another kind, if the caller may know that. Raises PermissionDenied, with
    the message for a table regardless of the kind.
    """
    try:
        check_levels(levels)
        node, _ = request_view.find(levels, Kind.TABLE)
        if node is None and Kind.SYNONYM in actions:
            node, _ = request_view.find(levels, Kind.SYNONYM)
        action = None if node is None else actions.get(node.kind)
        if (
            node is not None
            and action is not None
            and request_view.decide(action, request_view.find(levels, node.kind)[1]).allowed
        ):
            return node
        request_view.look_up(Kind.TABLE, levels, actions[Kind.TABLE], probe=Action.TABLE_MAY_PROBE)
    except (NotFound, InvalidName):
        return None
    except PermissionDenied as error:
        raise _restricted_error(error) from None
    return None


def _restricted_error(error: PermissionDenied) -> PermissionDenied:
    """Return a refusal with the clients that read a table which is closed by read restrictions alone."""
    decision = error.decision
    if not isinstance(decision, Decision) or any(factor.kind != "restricted" for factor in decision.factors):
        return error
    text = f"{error}. SQL++ reads no restricted tables: 'limnos head', PyIceberg and Spark read the visible part"
    return PermissionDenied(text, decision=decision)


def view_body(request_view: RequestView, node: Node) -> tree.Expression:
    """Return the parsed body of a SQL++ view. Raises SqlppError for a view in another dialect."""
    text = view_text(request_view.document(node.id))
    if text is not None and len(text) > TEXT_SHORT:
        return UnparsedQuery(NOWHERE, text)
    if text is None:
        raise compilation(f"View {node.name} has no SQL++ text: query it in an engine that has its dialect")
    return body_of(text)


def view_text(document: MetadataDocument) -> str | None:
    """Return a view's text in the dialect `sqlpp`; None if it has none."""
    return view_definition(document.body)


def _function(request_view: RequestView, lookup: NameLookup) -> UserFunction | UnparsedFunction | None:
    """Resolve a function that the caller may call.

    A hidden function counts as missing, since a built-in function may have its name.
    """
    node = function_find(request_view, (*lookup.dataverse, lookup.name))
    if node is None:
        return None
    texts = cast("SqlppObjectRecord", node.record).statements
    function = UnparsedFunction(lookup.dataverse, lookup.name, lookup.arity, texts)
    return function.parse() if sum(map(len, texts)) <= TEXT_SHORT else function


def function_find(request_view: RequestView, levels: Levels) -> Node | None:
    """Return the object that has all functions of a name, if the caller may call them; None if it is hidden or
    missing.
    """
    try:
        check_levels(levels)
        return request_view.look_up(Kind.FUNCTION, levels, Action.FUNCTION_LOAD).entity
    except (NotFound, InvalidName, PermissionDenied):
        return None


_ANSWERS: Final[dict[str, Callable[[RequestView, NameLookup], object]]] = {
    "dataverse": _dataverse,
    "dataset": _dataset,
    "function": _function,
}
