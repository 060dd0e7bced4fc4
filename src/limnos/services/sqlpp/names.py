"""What SQL++'s names mean on the tree, for one caller: dataverses, datasets, views, synonyms, functions.

May import the rooms below. Knows no wire format. A statement is bound against what is known (`Known`): what is not known yet is collected,
asked of a scene all at once, and the statement is bound again. So a large statement needs no scene while it is bound, and is bound in
a process.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

from limnos.access.actions import Action
from limnos.model.errors import BadRequest, Forbidden, NotFound
from limnos.model.kinds import Kind
from limnos.names.errors import InvalidName
from limnos.names.parts import check_levels
from limnos.services.iceberg.dataset_declarations import NOWHERE, body_of, one_declared
from limnos.services.request.scene import Scope
from limnos.services.sqlpp.errors import NO_DATAVERSE
from limnos.sqlpp import SqlppError, tree
from limnos.sqlpp.binder import Dataset, Synonym, UserFunction, View
from limnos.sqlpp.binding import Known, Question, UnparsedFunction, UnparsedQuery
from limnos.sqlpp.definitions import view_definition
from limnos.sqlpp.errors import BudgetSpent, compilation
from limnos.sqlpp.metadata import METADATA, METADATA_DATASETS
from limnos.view.cold import for_each

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limnos.model.entities import Document, Node
    from limnos.model.records import DeclaredRecord
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene

T = TypeVar("T")
DEFAULT: Final = ("Default",)
TEXT_SHORT: Final = 2048
"""Statements, and texts of views, up to this length are parsed on the event loop: in 4 ms at most."""
NODES_SHORT: Final = 2000
"""Most expressions that are bound on the event loop: in 4 ms at most."""
ROUNDS_MAX: Final = 200
"""How often a statement is bound until all is known: once for each view or function within another, and a few times more."""
LOADS: Final = {
    Kind.TABLE: Action.TABLE_LOAD,
    Kind.VIEW: Action.VIEW_LOAD,
    Kind.EXTERNAL_DATASET: Action.EXTERNAL_DATASET_LOAD,
}


BUILT_IN: Final[dict[Question, object]] = {
    Question("dataverse", METADATA): True,
    **{Question("dataset", METADATA, name): Dataset(METADATA, name) for name in METADATA_DATASETS},
}
"""What is known of the metadata's own names, whatever the tree holds and whoever asks."""


async def with_names(
    ctx: Context, bind: Callable[[Known], T], *, elsewhere: Callable[[Known], Awaitable[T]], known: Known | None = None
) -> T:  # fmt: skip
    """Bind something with the names of the tree, as the caller may know them. Raises SqlppError, Forbidden.

    `bind` has no effects, and is called as often as it asks for more. Where it raises BudgetSpent, as there is too much to be bound on the
    event loop, `elsewhere` does it from then on. `known` is what is known already, and takes what is asked.
    """
    known = Known() if known is None else known
    is_long = False
    for _ in range(ROUNDS_MAX):
        known.wanted.clear()
        found, failure = None, None
        try:
            if not is_long:
                try:
                    found = bind(known)
                except BudgetSpent:
                    is_long = True
                    known.wanted.clear()
            if is_long:
                found = await elsewhere(known)
        except SqlppError as error:
            failure = error
        if not known.wanted:
            if failure is not None:
                raise await _told_of_catalog(ctx, known, failure=failure)
            return cast("T", found)
        questions = tuple(known.wanted)
        answers = await ctx.read(scope_of(ctx), partial(_answers, questions))
        known.facts.update(zip(questions, answers, strict=True))
        await asyncio.sleep(0)  # others have their turn between two rounds
    raise BadRequest("The statement's views and functions lead from one to another without end")


async def _told_of_catalog(ctx: Context, known: Known, *, failure: SqlppError) -> SqlppError:
    """Say, of a dataverse that is missing and whose name begins like another catalog's, that no other one is read here."""
    home = scope_of(ctx)
    first = {each.dataverse[0] for each, found in known.facts.items() if each.about == "dataverse" and found is False}
    if failure.number != NO_DATAVERSE or len(first) != 1 or first == {home.catalog}:
        return failure
    (name,) = first
    try:
        await ctx.read(
            Scope(home.metalake, name), lambda scene: scene.require(Action.CATALOG_LOAD, scene.settled.outer)
        )
    except (Forbidden, NotFound, InvalidName):
        return failure  # as if there were no such catalog
    words = f"{failure.message}: {name} is a catalog, and statements read only the catalog {home.catalog}"
    return SqlppError(failure.number, words, failure.place, failure.told)


def scope_of(ctx: Context) -> Scope:
    """The catalog in which dataverses lie."""
    return Scope(ctx.services.defaults.metalake, ctx.services.defaults.sqlpp_catalog)


def _answers(questions: tuple[Question, ...], scene: Scene) -> list[object]:
    if any(question.dataverse != METADATA for question in questions):
        scene.require_in_use()
    return for_each(questions, lambda question: _ANSWERS[question.about](scene, question))


def is_builtin(dataverse: Levels) -> bool:
    """Whether a dataverse is there without being made."""
    return dataverse in (DEFAULT, METADATA)


def dataverse_find(scene: Scene, dataverse: Levels) -> Node | None:
    """The namespace that is a dataverse, for who may know it: somebody made it on purpose. Raises Forbidden."""
    try:
        check_levels(dataverse)
        node = scene.look_up(Kind.NAMESPACE, dataverse, Action.NAMESPACE_LOAD).entity
    except (NotFound, InvalidName):
        return None
    return None if node.implicit else node


def _dataverse(scene: Scene, question: Question) -> bool:
    return is_builtin(question.dataverse) or dataverse_find(scene, question.dataverse) is not None


def _dataset(scene: Scene, question: Question) -> Dataset | View | Synonym | None:
    """A dataset or a view goes before a synonym. What the caller may not see is refused as what is not there would be."""
    dataverse, name = question.dataverse, question.name
    if dataverse == METADATA:
        return Dataset(METADATA, name) if name in METADATA_DATASETS else None
    node = source_find(scene, (*dataverse, name))
    if node is None:
        return None
    if node.kind is Kind.VIEW:
        return View(dataverse, name, view_body(scene, node))
    if node.kind is Kind.SYNONYM:
        target = one_declared(node, tree.CreateSynonym).target
        return Synonym(target.dataverse or dataverse, target.last)
    return Dataset(dataverse, name)


def source_find(scene: Scene, levels: Levels) -> Node | None:
    """What a name in the position of a source is, for who may read it: a table, a view, an external dataset or a synonym.

    None for what is not there, where the caller may know that. Raises Forbidden, in the words for a table whatever it is.
    """
    try:
        check_levels(levels)
        node, _ = scene.find(levels, Kind.TABLE)
        if node is not None and scene.decide(LOADS[node.kind], scene.find(levels, node.kind)[1]).allowed:
            return node
        if node is None:
            node, chain = scene.find(levels, Kind.SYNONYM)
            if node is not None and scene.decide(Action.SYNONYM_LOAD, chain).allowed:
                return node
        scene.look_up(Kind.TABLE, levels, Action.TABLE_LOAD, probe=Action.TABLE_MAY_PROBE)
    except (NotFound, InvalidName):
        return None
    return None


def view_body(scene: Scene, node: Node) -> tree.Expression:
    """What a view says in SQL++. Raises SqlppError for one that says nothing in it."""
    text = view_text(scene.document(node.id))
    if text is not None and len(text) > TEXT_SHORT:
        return UnparsedQuery(NOWHERE, text)
    if text is None:
        raise compilation(f"View {node.name} has no text in SQL++: query it where the language of its text is spoken")
    return body_of(text)


def view_text(document: Document) -> str | None:
    """The text of a view in SQL++, if it has one."""
    return view_definition(document.body)


def _function(scene: Scene, question: Question) -> UserFunction | UnparsedFunction | None:
    """A function that the caller may call. One that is hidden is not there: its name may be a built-in function's."""
    node = function_find(scene, (*question.dataverse, question.name))
    if node is None:
        return None
    texts = cast("DeclaredRecord", node.record).statements
    found = UnparsedFunction(question.dataverse, question.name, question.arity, texts)
    return found.parsed() if sum(map(len, texts)) <= TEXT_SHORT else found


def function_find(scene: Scene, levels: Levels) -> Node | None:
    """The functions of a name that the caller may call, as one object; None for what is hidden or not there."""
    try:
        check_levels(levels)
        return scene.look_up(Kind.FUNCTION, levels, Action.FUNCTION_LOAD).entity
    except (NotFound, InvalidName, Forbidden):
        return None


_ANSWERS: Final[dict[str, Callable[[Scene, Question], object]]] = {
    "dataverse": _dataverse,
    "dataset": _dataset,
    "function": _function,
}
