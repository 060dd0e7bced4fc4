"""A request's statements, one after the other: read, refused as a whole where the request only reads, each decided and then done.

May import the rooms below. Knows no wire format. What a statement gives is an iterator of lines; the next statement begins when it was
taken to its end.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from limnos.access.actions import Action
from limnos.model.principals import Asker
from limnos.services.iceberg.dataset_declarations import NOWHERE
from limnos.services.request.scene import Scope
from limnos.services.sqlpp.data import change_rows, data_explained, data_rows
from limnos.services.sqlpp.datasets import dataset_create, dataset_drop, external_create, index_create, index_drop
from limnos.services.sqlpp.dataverses import dataverse_create, dataverse_drop, dataverse_use
from limnos.services.sqlpp.errors import invalid_operation
from limnos.services.sqlpp.functions import function_create, function_drop
from limnos.services.sqlpp.lanes import PARSING
from limnos.services.sqlpp.names import TEXT_SHORT
from limnos.services.sqlpp.prepared import PREPARED
from limnos.services.sqlpp.queries import process_do, query_bind, query_rows, statement_bind
from limnos.services.sqlpp.synonyms import synonym_create, synonym_drop
from limnos.services.sqlpp.types import type_create, type_drop
from limnos.services.sqlpp.views import view_create, view_drop
from limnos.sqlpp import Parsed, SqlppError, parse, tree
from limnos.sqlpp.binding import UnparsedQuery
from limnos.sqlpp.chores import PARSE, spans_of
from limnos.sqlpp.explained import as_text
from limnos.sqlpp.plan import wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator

    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.services.sqlpp.session import Session

A = Action
NOTHING: Final = 40
READ_ONLY: Final = 44


class Kind(NamedTuple):
    """What a statement of a class is called in messages, whether it only reads, and the actions that it takes."""

    word: str
    reads: bool = False
    takes: tuple[Action, ...] = ()


async def admitted(ctx: Context) -> Asker:
    """Return who asks, if that is a user of the metalake: the rest is for each statement to decide. Raises Forbidden."""

    def read(scene: Scene) -> Asker:
        scene.require(Action.METALAKE_LOAD, scene.settled.outer)
        return Asker(scene.user, scene.subject.user_id or 0)

    return await ctx.read(Scope(ctx.services.defaults.metalake), read)


async def statements_of(ctx: Context, text: str, *, read_only: bool) -> tuple[Parsed, ...]:
    """Read a request's text. Raises SqlppError."""
    parsed = _parsed_here(ctx, text) if len(text) <= TEXT_SHORT else await _parsed_elsewhere(ctx, text)
    if not parsed:
        raise SqlppError(NOTHING, "No statement provided")
    if read_only:
        for each in parsed:
            kind = kind_of(each.statement)
            if not kind.reads:
                raise SqlppError(READ_ONLY, f"{kind.word} statement is not supported in read-only mode")
    return parsed


def _parsed_here(ctx: Context, text: str) -> tuple[Parsed, ...]:
    kept = PREPARED.of(ctx.services).parsed
    found = kept.get(text)
    if found is None:
        found = parse(text)
        kept.put(text, found)
    return found


async def _parsed_elsewhere(ctx: Context, text: str) -> tuple[Parsed, ...]:
    """Have a process read a long text, and read its short statements here: long queries stay texts until a process binds them.

    Other long statements are read once more by a thread, one at a time, which takes two seconds at most.
    """
    _, told = await process_do(ctx, PARSE, text.encode("utf-8", "surrogatepass"))
    made: list[Parsed] = []
    for span in spans_of(told):
        own = text[span.start : span.end]
        if len(own) <= TEXT_SHORT:
            made += parse(own, span)
            await asyncio.sleep(0)
        elif span.kind == tree.QueryStatement.__name__:
            body = UnparsedQuery(span.place, own, span.parameters)
            made.append(Parsed(tree.QueryStatement(span.place, body), own, ()))
        else:
            async with PARSING.of(ctx.services):
                made += await asyncio.to_thread(parse, own, span)
    return tuple(made)


async def dataverse_begin(session: Session, dataverse: Levels, *, statements: Iterable[Parsed]) -> None:
    """Use the dataverse that a request names beside its statements.

    If it does not exist, statements that only read run in `Default` with a warning, as in AsterixDB. A request whose changes would
    end up in `Default` is refused before its first statement runs.

    Raises SqlppError, Forbidden.
    """
    try:
        await dataverse_use(session, tree.Use(NOWHERE, tree.Name(NOWHERE, dataverse)))
    except SqlppError as error:
        if _changes_in_first_dataverse(each.statement for each in statements):
            raise SqlppError(
                error.number,
                f"{error.message}, which the parameter dataverse names. No statement was run: correct the parameter, or create the dataverse first",
            ) from None
        session.warnings.append(SqlppError(error.number, error.message))


def _changes_in_first_dataverse(statements: Iterable[tree.Statement]) -> bool:
    """Whether a statement that changes something comes before the first USE; the names of dataverses are always whole."""
    for each in statements:
        if isinstance(each, tree.Use):
            return False
        is_of_dataverse = isinstance(each, tree.CreateDataverse) or (
            isinstance(each, tree.Drop) and each.kind == "dataverse"
        )
        if not kind_of(each).reads and not is_of_dataverse:
            return True
    return False


def gives(statement: tree.Statement) -> bool:
    """Whether a statement has results."""
    if isinstance(statement, tree.Insert):
        return statement.returning is not None
    return isinstance(statement, (tree.QueryStatement, tree.Explain))


async def statement_run(session: Session, parsed: Parsed) -> AsyncGenerator[bytes, None]:
    """Carry one statement out; gives its results, a line of JSON each. Raises SqlppError, Forbidden and what the tree refuses."""
    statement = parsed.statement
    rows = _rows(session, parsed)
    if rows is not None:
        async with aclosing(rows):
            async for row in rows:
                yield row
        return
    run = _RUNS.get(type(statement))
    if run is None:
        raise invalid_operation(f"{kind_of(statement).word} statement is not supported", statement.at)
    if not session.compiles_only or kind_of(statement).reads:
        await run(session, statement)


def _rows(session: Session, parsed: Parsed) -> AsyncGenerator[bytes, None] | None:
    """The results of a statement that is worked out; None for one that makes or drops something."""
    statement = parsed.statement
    if isinstance(statement, tree.QueryStatement):
        return _query(session, parsed, body=statement.body)
    if isinstance(statement, tree.Explain):
        return _explain(session, statement.query.body)
    return change_rows(session, parsed) if isinstance(statement, (tree.Insert, tree.Delete, tree.Load)) else None


async def _query(session: Session, parsed: Parsed, *, body: tree.Expression) -> AsyncGenerator[bytes, None]:
    bound = await statement_bind(session, parsed, body=body)
    if session.compiles_only:
        return
    rows = data_rows(session, bound) if bound.reads_data else query_rows(session.ctx, bound)
    async with aclosing(rows):
        async for row in rows:
            yield row


async def _explain(session: Session, body: tree.Expression) -> AsyncGenerator[bytes, None]:
    """The bound plan, as engines are given it, and which part of it runs where."""
    bound = await query_bind(session, body)
    told = await data_explained(session.ctx, bound) if bound.reads_data else wire.encode(bound.query.expression)
    yield as_text(told) if session.plans_as_text else told


async def _set(session: Session, statement: tree.SetOption) -> None:
    session.options[statement.name.lower()] = statement.value


async def _declare(session: Session, statement: tree.DeclareFunction) -> None:
    session.declared = (*session.declared, statement)


_DROPS: Final = {
    "dataverse": Kind("DATAVERSE_DROP", takes=(A.NAMESPACE_DROP,)),
    "type": Kind("TYPE_DROP", takes=(A.DATATYPE_DROP,)),
    "dataset": Kind("DATASET_DROP", takes=(A.TABLE_DROP, A.EXTERNAL_DATASET_DROP)),
    "synonym": Kind("SYNONYM_DROP", takes=(A.SYNONYM_DROP,)),
    "view": Kind("VIEW_DROP", takes=(A.VIEW_DROP,)),
}
_KINDS: Final[dict[type[tree.Statement], Kind]] = {
    tree.QueryStatement: Kind("QUERY", True, (A.TABLE_LOAD, A.VIEW_LOAD, A.FUNCTION_LOAD, A.SYNONYM_LOAD)),
    tree.Explain: Kind("QUERY", True, (A.TABLE_LOAD, A.VIEW_LOAD, A.FUNCTION_LOAD, A.SYNONYM_LOAD)),
    tree.Use: Kind("DATAVERSE_DECL", True, (A.NAMESPACE_LOAD,)),
    tree.SetOption: Kind("SET", True),
    tree.DeclareFunction: Kind("FUNCTION_DECL", True),
    tree.CreateDataverse: Kind("CREATE_DATAVERSE", takes=(A.NAMESPACE_CREATE,)),
    tree.CreateType: Kind("CREATE_TYPE", takes=(A.DATATYPE_CREATE, A.DATATYPE_LOAD)),
    tree.CreateDataset: Kind("CREATE_DATASET", takes=(A.TABLE_CREATE, A.DATATYPE_LOAD)),
    tree.CreateExternalDataset: Kind("CREATE_DATASET", takes=(A.EXTERNAL_DATASET_CREATE, A.DATATYPE_LOAD)),
    tree.CreateIndex: Kind("CREATE_INDEX", takes=(A.TABLE_ALTER,)),
    tree.CreatePrimaryIndex: Kind("CREATE_INDEX", takes=(A.TABLE_ALTER,)),
    tree.CreateSynonym: Kind("CREATE_SYNONYM", takes=(A.SYNONYM_CREATE,)),
    tree.CreateView: Kind("CREATE_VIEW", takes=(A.VIEW_CREATE, A.VIEW_ALTER)),
    tree.CreateFunction: Kind("CREATE_FUNCTION", takes=(A.FUNCTION_CREATE, A.FUNCTION_ALTER)),
    tree.CreateExternalFunction: Kind("CREATE_FUNCTION"),
    tree.DropIndex: Kind("INDEX_DROP", takes=(A.TABLE_ALTER,)),
    tree.DropFunction: Kind("FUNCTION_DROP", takes=(A.FUNCTION_DROP, A.FUNCTION_ALTER)),
    tree.Insert: Kind("INSERT", takes=(A.TABLE_COMMIT,)),
    tree.Delete: Kind("DELETE", takes=(A.TABLE_COMMIT,)),
    tree.Load: Kind("LOAD", takes=(A.TABLE_COMMIT,)),
}


def kind_of(statement: tree.Statement) -> Kind:
    """What kind of statement it is."""
    if isinstance(statement, tree.Drop):
        return _DROPS[statement.kind]
    if isinstance(statement, tree.Insert) and statement.upsert:
        return _KINDS[tree.Insert]._replace(word="UPSERT")
    return _KINDS[type(statement)]


async def _drop(session: Session, statement: tree.Drop) -> None:
    await _DROPPED[statement.kind](session, statement)


_DROPPED: Final = {
    "dataverse": dataverse_drop, "type": type_drop, "dataset": dataset_drop, "synonym": synonym_drop, "view": view_drop,
}  # fmt: skip
_RUNS: Final[dict[type[tree.Statement], Callable[[Session, Any], Awaitable[None]]]] = {
    tree.Use: dataverse_use,
    tree.SetOption: _set,
    tree.DeclareFunction: _declare,
    tree.CreateDataverse: dataverse_create,
    tree.CreateType: type_create,
    tree.CreateDataset: dataset_create,
    tree.CreateExternalDataset: external_create,
    tree.CreateIndex: index_create,
    tree.CreatePrimaryIndex: index_create,
    tree.CreateSynonym: synonym_create,
    tree.CreateView: view_create,
    tree.CreateFunction: function_create,
    tree.Drop: _drop,
    tree.DropIndex: index_drop,
    tree.DropFunction: function_drop,
}


def kinds() -> Iterator[tuple[str, Kind]]:
    """All kinds of statement, each with what it is written as."""
    for statement, kind in _KINDS.items():
        yield "".join(f" {each}" if each.isupper() else each for each in statement.__name__).strip().upper(), kind
    for what, kind in _DROPS.items():
        yield f"DROP {what.upper()}", kind
