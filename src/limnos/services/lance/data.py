"""What is done with the rows of a Lance table: counted, queried, written.

May import the rooms below. The store is asked first, and decides; the work is that of processes of their own (`services.lance.work`). To read rows takes
another right than to be told of a table: TABLE_READ. To change them takes TABLE_COMMIT, and it is looked at twice: before a body is read, and again when all of it
is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

import msgspec

from limnos.access.actions import Action
from limnos.files import is_local, leads_within
from limnos.model.errors import BadRequest, CommitConflict, NotFound, OutsideRoots
from limnos.services.lance.calls import Calls, newest_of
from limnos.services.lance.describing import VERSION_END, At, state_of
from limnos.services.lance.sights import readable
from limnos.services.lance.tables import holds_data, lance_load
from limnos.services.lance.work import WORKERS, answer, errand_of, options_of
from limnos.sources.lance.questions import Explain, Merge, Query, Question, Written

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from limnos.names.path import Levels
    from limnos.services.lance.tables import LanceTable
    from limnos.services.lance.work import Errand
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene, Scope

T = TypeVar("T")
_NEWEST: Final = At()
NOTHING_YET: Final = "The table was declared and holds no data yet: insert some first"


async def table_for_rows(
    ctx: Context, scope: Scope, *, levels: Levels, at: At, action: Action = Action.TABLE_READ
) -> tuple[LanceTable, At]:
    """Find a table that holds rows, for who may do the action to it, and the state of it that is meant.

    Raises NotFound, also where nothing was written yet, Forbidden.
    """
    table = await readable(ctx, scope, levels=levels, action=action)
    check_version(at)
    state = await state_of(ctx, table, at=at)
    if state is None:
        raise NotFound(NOTHING_YET, kind="table")
    return table, state


def table_to_change(scene: Scene, levels: Levels, *, action: Action = Action.TABLE_COMMIT) -> LanceTable:
    """Return a table whose files this server changes, for who may do the action to it. Raises NotFound, Forbidden."""
    return lance_load(scene, levels, action=action)


def asked_of(table: LanceTable, question: Question, *, at: At = _NEWEST) -> Question:
    """Say of a question which table, and which state of it, it is about. Raises OutsideRoots for one that may not lie where it does."""
    place = table.place
    place.check(table.location)
    if not is_local(table.location):
        place.allowed.check_use(place.catalog.properties)
    elif not leads_within(table.location, place.roots, allowed=place.allowed):
        raise OutsideRoots(
            f"A link leads from {table.location} out of the catalog's roots: nobody reads or writes there"
        )
    return msgspec.structs.replace(
        question, location=table.location, options=options_of(place.catalog.properties), version=at.version, tag=at.tag,
        branch=at.branch,
    )  # fmt: skip


def settled(
    ctx: Context, scope: Scope, *, table: LanceTable, decide: Callable[[Scene], LanceTable]
) -> Callable[[], Awaitable[None]]:
    """Return what looks, just before a change is made, whether the caller still may make it to the same table."""

    async def again() -> None:
        now = await ctx.read(scope, decide)
        if (now.node.id, now.location) != (table.node.id, table.location):
            raise CommitConflict("The table was replaced by another one meanwhile, and nothing was changed: look again")

    return again


async def told(
    ctx: Context, scope: Scope, *, levels: Levels, at: At, question: Question, shape: type[T], action: Action
) -> T:  # fmt: skip
    """Have something told of a table's files, to who may do the action: TABLE_READ for its rows, else TABLE_LOAD.

    Raises NotFound (table, version, tag, branch, column, index, transaction), BadRequest, Forbidden.
    """
    table, at = await table_for_rows(ctx, scope, levels=levels, at=at, action=action)
    return await answer(ctx, errand_of(ctx, asked_of(table, question, at=at)), shape=shape)


async def changed(ctx: Context, scope: Scope, *, levels: Levels, at: At, question: Question, shape: type[T]) -> T:
    """Have a table's files changed. Raises as `told`, and AlreadyExists (index), SchemaMismatch, CommitConflict."""

    def decide(scene: Scene) -> LanceTable:
        return table_to_change(scene, levels)

    table = await ctx.read(scope, decide)
    check_version(at)
    if not await holds_data(ctx, table):
        raise NotFound(NOTHING_YET, kind="table")
    errand = await _change(
        ctx, scope, table=table, levels=levels, question=asked_of(table, question, at=at), decide=decide
    )
    return await answer(ctx, errand, shape=shape)


async def _change(
    ctx: Context, scope: Scope, *, table: LanceTable, levels: Levels, question: Question, decide: Callable[[Scene], LanceTable]
) -> Errand:  # fmt: skip
    """Send a change on its way; of a managed table with its newest versions, and with who commits the next one."""
    kept = await newest_of(ctx, table, branch=question.branch, version=question.version)
    calls = None if kept is None else Calls(ctx, scope, levels=levels)
    look = settled(ctx, scope, table=table, decide=decide)
    return errand_of(ctx, msgspec.structs.replace(question, kept=kept), settled=look, calls=calls)


async def rows_query(
    ctx: Context, scope: Scope, *, levels: Levels, at: At, question: Question
) -> AsyncGenerator[bytes, None]:
    """Find rows: an Arrow file in pieces, of which the first one is made already. Raises as `told`."""
    table, at = await table_for_rows(ctx, scope, levels=levels, at=at)
    pieces = WORKERS.of(ctx.services).stream(errand_of(ctx, asked_of(table, question, at=at)))
    first = await anext(pieces)
    return _following(first, pieces)


async def _following(first: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for piece in pieces:
            yield piece
    finally:
        await pieces.aclose()


async def query_explain(
    ctx: Context, scope: Scope, *, levels: Levels, at: At, query: Query, verbose: bool = False, runs: bool = False
) -> str:
    """Tell how a query would be done; with `runs` do it, and tell how it went. Raises as `told`."""
    table, at = await table_for_rows(ctx, scope, levels=levels, at=at)
    asked = cast("Query", asked_of(table, query, at=at))
    question = Explain(asked.location, asked.options, query=asked, verbose=verbose, runs=runs)
    return await answer(ctx, errand_of(ctx, question), shape=str)


async def rows_fed(
    ctx: Context, scope: Scope, *, levels: Levels, branch: str | None, question: Question, body: AsyncGenerator[bytes, None]
) -> Written:  # fmt: skip
    """Have a table changed by the rows in a body; one that holds none yet is made by a `Write`.

    Raises NotFound, SchemaMismatch, BadRequest for a body that is no Arrow stream or did not end, CommitConflict, Forbidden.
    """

    def decide(scene: Scene) -> LanceTable:
        return table_to_change(scene, levels)

    table = await ctx.read(scope, decide)
    check_keys(question)  # who may not change it is told that, and not how
    question = asked_of(table, question, at=At(branch=branch))
    return await fed(ctx, scope, table=table, levels=levels, question=question, decide=decide, body=body)


def check_keys(question: Question) -> None:
    """Refuse a merge that does not say by which columns. Raises BadRequest."""
    if isinstance(question, Merge) and not question.on:
        raise BadRequest("A merge goes by key columns: name them as on=COLUMN, once for each")


def check_version(at: At) -> None:
    """Refuse the number of a version that there cannot be. Raises NotFound."""
    if at.version is not None and not 0 < at.version < VERSION_END:
        raise NotFound(str(at.version), kind="version")


async def fed(
    ctx: Context, scope: Scope, *, table: LanceTable, levels: Levels, question: Question,
    decide: Callable[[Scene], LanceTable], body: AsyncGenerator[bytes, None],
) -> Written:  # fmt: skip
    """Have a table changed by what a body brings."""
    errand = await _change(ctx, scope, table=table, levels=levels, question=question, decide=decide)
    return msgspec.json.decode(await WORKERS.of(ctx.services).feed(errand, body), type=Written)
