# SPDX-License-Identifier: Apache-2.0
"""Statements: parses a request's statements, refuses changes in a read-only request, then decides and runs them in
order.

Must not know any wire format. A statement yields lines; the next statement begins when they are consumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Any, Final, Literal, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import StatementRequest
from limnos.model.errors import AlreadyExists, LimnosError, StateUnknown
from limnos.model.principals import Requester
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import ParsedStatement, SqlppError, parse, tree
from limnos.rooms.sqlpp.language.binding import UnparsedQuery
from limnos.rooms.sqlpp.language.declarations import NOWHERE
from limnos.rooms.sqlpp.language.explain import as_text
from limnos.rooms.sqlpp.language.offloaded_work import PARSE, spans_of
from limnos.rooms.sqlpp.language.plan import wire
from limnos.rooms.sqlpp.language.signatures import flat_signature
from limnos.rooms.sqlpp.services.definitions.dataset_tables import dataset_publish, unfinished_path
from limnos.rooms.sqlpp.services.definitions.datasets import (
    dataset_create,
    dataset_drop,
    external_create,
    index_create,
    index_drop,
)
from limnos.rooms.sqlpp.services.definitions.dataverses import dataverse_create, dataverse_drop, dataverse_use
from limnos.rooms.sqlpp.services.definitions.functions import function_create, function_drop
from limnos.rooms.sqlpp.services.definitions.statistics import dataset_analyze
from limnos.rooms.sqlpp.services.definitions.synonyms import synonym_create, synonym_drop
from limnos.rooms.sqlpp.services.definitions.types import type_create, type_drop
from limnos.rooms.sqlpp.services.definitions.views import view_create, view_drop
from limnos.rooms.sqlpp.services.execution.data_statements import CHANGES, change_rows, data_explain, data_rows
from limnos.rooms.sqlpp.services.execution.exports import files_export
from limnos.rooms.sqlpp.services.execution.prepared import PREPARED
from limnos.rooms.sqlpp.services.execution.queries import (
    process_do,
    query_bind,
    query_rows,
    require_metadata,
    statement_bind,
)
from limnos.rooms.sqlpp.services.requests.errors import invalid_operation, object_exists
from limnos.rooms.sqlpp.services.requests.names import TEXT_SHORT
from limnos.rooms.sqlpp.services.requests.node_limits import PARSING_SLOTS
from limnos.rooms.sqlpp.services.requests.options import check_memory, check_option
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS, StatementEnded
from limnos.rooms.sqlpp.services.requests.session import StatementDescription, StatementSession, UnsetParameters
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView

A = Action
READ_ONLY: Final = 44
DATASET_EXISTS: Final = 1072


class StatementKind(NamedTuple):
    """A kind of statement: its name in messages, whether it only reads, and the actions that it needs."""

    word: str
    reads: bool = False
    takes: tuple[Action, ...] = ()


async def caller_require(ctx: Context) -> Requester:
    """Return the caller, who must be a user of the metalake; each statement makes its own access decisions.

    Raises PermissionDenied.
    """
    return await ctx.read(RequestScope(ctx.services.defaults.metalake), _caller)


def _caller(request_view: RequestView) -> Requester:
    request_view.require(Action.METALAKE_LOAD, request_view.settled.outer)
    return Requester(request_view.user, request_view.subject.user_id or 0)


async def requests_list(ctx: Context) -> list[StatementRequest]:
    """Return the running requests of all nodes: the caller's own, or for a service admin those of all users.

    Raises PermissionDenied.
    """

    async def read(requester: Requester) -> list[StatementRequest]:
        return await REQUESTS.of(ctx.services).everywhere(requester, everybody=may_see_all_requests(ctx, requester))

    _, requests = await ctx.read_confirmed(RequestScope(ctx.services.defaults.metalake), _caller, work=read)
    return requests


def may_see_all_requests(ctx: Context, requester: Requester) -> bool:
    """Return whether the caller sees and cancels the requests of all users."""
    return requester.name in ctx.services.rules.service_admins


async def statements_of(ctx: Context, text: str, *, read_only: bool) -> tuple[ParsedStatement, ...]:
    """Parse a request's text; a text that contains only comments has no statement. Raises SqlppError for a syntax
    error, and with `read_only` for a statement that changes something; ServiceUnavailable.
    """
    parsed = _parsed_here(ctx, text) if len(text) <= TEXT_SHORT else await _parse_in_process(ctx, text)
    if read_only:
        for each in parsed:
            kind = statement_kind_of(each.statement)
            if not kind.reads:
                raise SqlppError(READ_ONLY, f"{kind.word} statement is not supported in read-only mode")
    return parsed


def _parsed_here(ctx: Context, text: str) -> tuple[ParsedStatement, ...]:
    entry = PREPARED.of(ctx.services).parsed
    statements = entry.get(text)
    if statements is None:
        statements = parse(text)
        # Other statements may contain secrets, and are rarely repeated.
        if False not in [statement_kind_of(each.statement).reads for each in statements]:
            entry.put(text, statements)
    return statements


async def _parse_in_process(ctx: Context, text: str) -> tuple[ParsedStatement, ...]:
    """Parse a long text: a worker process finds the statements, and this process parses the short ones.

    Long queries stay unparsed until a worker process binds them. Other long statements are parsed again on a thread,
    one at a time. Raises SqlppError, ServiceUnavailable.
    """
    _, data = await process_do(ctx, PARSE, text.encode("utf-8", "surrogatepass"))
    statements: list[ParsedStatement] = []
    for span in spans_of(data):
        own_text = text[span.start : span.end]
        if len(own_text) <= TEXT_SHORT:
            statements += parse(own_text, span)
            await asyncio.sleep(0)
        elif span.kind == tree.QueryStatement.__name__:
            body = UnparsedQuery(span.place, own_text, span.parameters)
            statements.append(ParsedStatement(tree.QueryStatement(span.place, body), own_text, ()))
        else:
            async with PARSING_SLOTS.of(ctx.services):
                statements += await asyncio.to_thread(parse, own_text, span)
    return tuple(statements)


async def dataverse_begin(
    session: StatementSession, dataverse: Levels, *, statements: Iterable[ParsedStatement]
) -> None:
    """Set the dataverse that a request's parameter names as the active one.

    If it does not exist, statements that only read run in `Default` with a warning, as in AsterixDB. A request whose
    changes would end up in `Default` is refused before its first statement runs. Raises SqlppError, PermissionDenied.
    """
    try:
        await dataverse_use(session, tree.Use(NOWHERE, tree.DottedName(NOWHERE, dataverse)))
    except SqlppError as error:
        if _changes_in_first_dataverse(each.statement for each in statements):
            raise SqlppError(
                error.number,
                f"{error.message}, which the parameter dataverse names. No statement was run: correct the parameter, or"
                " create the dataverse first",
            ) from None
        session.warnings.append(SqlppError(error.number, error.message))


def _changes_in_first_dataverse(statements: Iterable[tree.Statement]) -> bool:
    """Return whether a statement that changes objects precedes the first USE.

    Statements on dataverses do not count, because they have full names.
    """
    for each in statements:
        if isinstance(each, tree.Use):
            return False
        is_of_dataverse = isinstance(each, tree.CreateDataverse) or (
            isinstance(each, tree.Drop) and each.kind == "dataverse"
        )
        if not statement_kind_of(each).reads and not is_of_dataverse:
            return True
    return False


def has_results(statement: tree.Statement) -> bool:
    """Return whether a statement returns results: a query, an EXPLAIN, or a change with RETURNING."""
    if isinstance(statement, (tree.Insert, tree.Update)):
        return statement.returning is not None
    return isinstance(statement, (tree.QueryStatement, tree.Explain))


async def statement_run(session: StatementSession, parsed: ParsedStatement) -> AsyncGenerator[bytes, None]:
    """Execute one statement. Yields its results, one line of JSON each.

    Raises SqlppError, other LimnosError such as PermissionDenied, and StatementEnded if the statement is cancelled.
    """
    statement = parsed.statement
    if session.description is not None:
        session.description = _describe(session, statement, before=session.description)
    rows = _rows(session, parsed)
    if rows is not None:
        async with aclosing(rows):
            async for row in rows:
                yield row
        return
    if isinstance(statement, tree.CreateDataset) and statement.source is not None:
        await _create_filled(session, parsed, statement=statement, source=statement.source)
        return
    run = _RUNS.get(type(statement))
    if run is None:
        raise invalid_operation(f"{statement_kind_of(statement).word} statement is not supported", statement.at)
    if not session.compiles_only or statement_kind_of(statement).reads or isinstance(statement, tree.CopyTo):
        await run(session, statement)


def _describe(
    session: StatementSession, statement: tree.Statement, *, before: StatementDescription
) -> StatementDescription:
    """Describe a statement for clients; SET, USE and DECLARE leave the description of the previous one unchanged."""
    if isinstance(statement, (tree.SetOption, tree.Use, tree.DeclareFunction)):
        return before
    reads = statement_kind_of(statement).reads
    category: Literal["query", "update", "ddl"] = "update" if isinstance(statement, CHANGES) else "ddl"
    unset = session.parameters if isinstance(session.parameters, UnsetParameters) else None
    return StatementDescription(
        "query" if reads else category, explains=isinstance(statement, tree.Explain), parameters=unset
    )


async def _create_filled(
    session: StatementSession, parsed: ParsedStatement, *, statement: tree.CreateDataset, source: tree.QueryExpression
) -> None:
    """Execute CREATE DATASET … AS: the dataset has a temporary name until the query's results are inserted.

    If the statement fails, the dataset's name stays free, and the unfinished dataset is dropped. If it is unknown
    whether the final renaming was committed, a task drops the dataset later if it still has its temporary name. Raises
    SqlppError, LimnosError, and StatementEnded if the statement is cancelled.
    """
    await query_bind(session, source)
    if session.compiles_only:
        return
    path = session.qualify(statement.name)
    name = tree.DottedName(statement.name.at, path)
    unfinished = unfinished_path(path)
    target = tree.DottedName(statement.name.at, unfinished)
    created = msgspec.structs.replace(statement, name=name, source=None, if_not_exists=False)
    try:
        await dataset_create(session, created, unfinished=unfinished)
    except SqlppError as error:
        if error.number != DATASET_EXISTS or not statement.if_not_exists:
            raise
        return
    insert = tree.Insert(at=statement.at, upsert=False, target=target, variable=None, source=source, returning=None)
    try:
        async with aclosing(change_rows(session, msgspec.structs.replace(parsed, statement=insert))) as rows:
            async for _ in rows:
                pass
        await dataset_publish(session, unfinished=unfinished, path=path)
    except StateUnknown:
        raise
    except (LimnosError, SqlppError, StatementEnded) as error:
        await dataset_drop(session, tree.Drop(statement.at, "dataset", target, if_exists=True))
        if isinstance(error, StatementEnded):
            raise StatementEnded("nothing was changed") from None
        if not isinstance(error, AlreadyExists):
            raise
        if not statement.if_not_exists:
            raise object_exists("dataset", path, at=statement.name.at) from None


def _rows(session: StatementSession, parsed: ParsedStatement) -> AsyncGenerator[bytes, None] | None:
    """Return the results of a query, an EXPLAIN or a change of data; None for any other statement."""
    statement = parsed.statement
    if isinstance(statement, tree.QueryStatement):
        return _query(session, parsed, body=statement.body)
    if isinstance(statement, tree.Explain):
        return _explain(session, statement.query.body)
    return change_rows(session, parsed) if isinstance(statement, CHANGES) else None


async def _query(
    session: StatementSession, parsed: ParsedStatement, *, body: tree.Expression
) -> AsyncGenerator[bytes, None]:
    check_memory(session.options, at=body.at)
    bound_query = await statement_bind(session, parsed, body=body)
    if session.description is not None:
        session.description.signature = flat_signature(bound_query.query.expression)
    if session.compiles_only:
        await require_metadata(session.ctx, bound_query)
        return
    if bound_query.reads_data:
        rows = data_rows(session, bound_query)
    else:
        rows = query_rows(session.ctx, bound_query, warnings=session.warnings, tagged=session.results_tagged)
    async with aclosing(rows):
        async for row in rows:
            yield row


async def _explain(session: StatementSession, body: tree.Expression) -> AsyncGenerator[bytes, None]:
    """Yield the bound plan as JSON, with the component that executes each part if it reads data.

    Raises SqlppError, NotFound, PermissionDenied.
    """
    bound_query = await query_bind(session, body)
    await require_metadata(session.ctx, bound_query)
    data = (
        await data_explain(session, bound_query)
        if bound_query.reads_data
        else wire.encode(bound_query.query.expression)
    )
    yield as_text(data) if session.plans_as_text else data


async def _set(session: StatementSession, statement: tree.SetOption) -> None:
    check_option(statement)
    session.options[statement.name.lower()] = statement.value


async def _declare(session: StatementSession, statement: tree.DeclareFunction) -> None:
    session.declared = (*session.declared, statement)


_DROPS: Final = {
    "dataverse": StatementKind("DATAVERSE_DROP", takes=(A.NAMESPACE_DROP,)),
    "type": StatementKind("TYPE_DROP", takes=(A.DATATYPE_DROP,)),
    "dataset": StatementKind("DATASET_DROP", takes=(A.TABLE_DROP, A.EXTERNAL_DATASET_DROP)),
    "synonym": StatementKind("SYNONYM_DROP", takes=(A.SYNONYM_DROP,)),
    "view": StatementKind("VIEW_DROP", takes=(A.VIEW_DROP,)),
}
_READS: Final = (A.TABLE_READ, A.EXTERNAL_DATASET_LOAD, A.VIEW_LOAD, A.FUNCTION_LOAD, A.SYNONYM_LOAD)
_KINDS: Final[dict[type[tree.Statement], StatementKind]] = {
    tree.QueryStatement: StatementKind("QUERY", True, _READS),
    tree.Explain: StatementKind("QUERY", True, _READS),
    tree.Use: StatementKind("DATAVERSE_DECL", True, (A.NAMESPACE_LOAD,)),
    tree.SetOption: StatementKind("SET", True),
    tree.DeclareFunction: StatementKind("FUNCTION_DECL", True),
    tree.CreateDataverse: StatementKind("CREATE_DATAVERSE", takes=(A.NAMESPACE_CREATE,)),
    tree.CreateType: StatementKind("CREATE_TYPE", takes=(A.DATATYPE_CREATE, A.DATATYPE_LOAD)),
    tree.CreateDataset: StatementKind("CREATE_DATASET", takes=(A.TABLE_CREATE, A.DATATYPE_LOAD)),
    tree.CreateExternalDataset: StatementKind("CREATE_DATASET", takes=(A.EXTERNAL_DATASET_CREATE, A.DATATYPE_LOAD)),
    tree.CreateIndex: StatementKind("CREATE_INDEX", takes=(A.TABLE_ALTER,)),
    tree.CreatePrimaryIndex: StatementKind("CREATE_INDEX", takes=(A.TABLE_ALTER,)),
    tree.Analyze: StatementKind("ANALYZE", takes=(A.TABLE_ALTER,)),
    tree.CreateSynonym: StatementKind("CREATE_SYNONYM", takes=(A.SYNONYM_CREATE,)),
    tree.CreateView: StatementKind("CREATE_VIEW", takes=(A.VIEW_CREATE, A.VIEW_ALTER)),
    tree.CreateFunction: StatementKind("CREATE_FUNCTION", takes=(A.FUNCTION_CREATE, A.FUNCTION_ALTER)),
    tree.CreateExternalFunction: StatementKind("CREATE_FUNCTION"),
    tree.DropIndex: StatementKind("INDEX_DROP", takes=(A.TABLE_ALTER,)),
    tree.DropFunction: StatementKind("FUNCTION_DROP", takes=(A.FUNCTION_DROP, A.FUNCTION_ALTER)),
    tree.Insert: StatementKind("INSERT", takes=(A.TABLE_COMMIT,)),
    tree.Delete: StatementKind("DELETE", takes=(A.TABLE_COMMIT, A.TABLE_READ)),
    tree.Update: StatementKind("UPDATE", takes=(A.TABLE_COMMIT, A.TABLE_READ)),
    tree.Load: StatementKind("LOAD", takes=(A.TABLE_COMMIT,)),
    tree.CopyFrom: StatementKind("COPY_FROM", takes=(A.TABLE_COMMIT,)),
    tree.CopyTo: StatementKind("COPY_TO", takes=(*_READS, A.FILESET_ALTER)),
}


def statement_kind_of(statement: tree.Statement) -> StatementKind:
    """Return the kind of a statement; DROP has one kind for each kind of object, and UPSERT has its own."""
    if isinstance(statement, tree.Drop):
        return _DROPS[statement.kind]
    if isinstance(statement, tree.Insert) and statement.upsert:
        return _KINDS[tree.Insert]._replace(word="UPSERT")
    return _KINDS[type(statement)]


async def _drop(session: StatementSession, statement: tree.Drop) -> None:
    await _DROP_WORDS[statement.kind](session, statement)


_DROP_WORDS: Final = {
    "dataverse": dataverse_drop,
    "type": type_drop,
    "dataset": dataset_drop,
    "synonym": synonym_drop,
    "view": view_drop,
}
_RUNS: Final[dict[type[tree.Statement], Callable[[StatementSession, Any], Awaitable[None]]]] = {
    tree.Use: dataverse_use,
    tree.SetOption: _set,
    tree.DeclareFunction: _declare,
    tree.CreateDataverse: dataverse_create,
    tree.CreateType: type_create,
    tree.CreateDataset: dataset_create,
    tree.CreateExternalDataset: external_create,
    tree.CreateIndex: index_create,
    tree.CreatePrimaryIndex: index_create,
    tree.Analyze: dataset_analyze,
    tree.CreateSynonym: synonym_create,
    tree.CreateView: view_create,
    tree.CreateFunction: function_create,
    tree.Drop: _drop,
    tree.DropIndex: index_drop,
    tree.DropFunction: function_drop,
    tree.CopyTo: files_export,
}


def statement_kinds() -> Iterator[tuple[str, StatementKind]]:
    """Yield all kinds of statement, each with its keyword in SQL++."""
    for statement, kind in _KINDS.items():
        yield "".join(f" {each}" if each.isupper() else each for each in statement.__name__).strip().upper(), kind
    for what, kind in _DROPS.items():
        yield f"DROP {what.upper()}", kind
