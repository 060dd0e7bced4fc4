"""Relations: rows of typed columns, and what is made of them. What an engine of columns is asked for.

May import `terms`. Must not know SQL++'s plans, nor an engine. Columns have numbers that are given once in a statement, so no two sides of a join have one in
common; a relation that is used twice is made twice. Rows have no order but after `Sort`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from limnos.sqlpp.relations.terms import ColumnTerm, Term, columns_in

if TYPE_CHECKING:
    from collections.abc import Iterator

JoinKind = Literal["inner", "left", "right", "cross", "semi", "anti"]


class DatasetRead(Struct, frozen=True):
    """The rows of a dataset: top-level columns by name, each under a number."""

    dataverse: tuple[str, ...]
    name: str
    columns: tuple[tuple[int, str], ...]


class Filter(Struct, frozen=True):
    """The rows for which a condition is true."""

    source: Relation
    condition: Term


class Extension(Struct, frozen=True):
    """The rows with more columns."""

    source: Relation
    columns: tuple[tuple[int, Term], ...]


class Join(Struct, frozen=True):
    """Pairs of rows. `semi` and `anti` give rows of the left alone, those with and those without a partner."""

    kind: JoinKind
    left: Relation
    right: Relation
    condition: Term | None


class Measure(Struct, frozen=True):
    """An aggregate of groups: of a term's values that are not NULL, or without one of rows."""

    id: int
    function: str
    term: Term | None
    distinct: bool = False


class RowGrouping(Struct, frozen=True):
    """Groups of rows: their keys, and what is worked out for each. Without keys there is one group, also of no rows; without measures the keys are what is distinct."""

    source: Relation
    keys: tuple[tuple[int, Term], ...]
    measures: tuple[Measure, ...]


class Unnest(Struct, frozen=True):
    """Each row with each item of an array, and its place from 0; `outer` keeps rows without items, once."""

    source: Relation
    array: Term
    item: int
    place: int
    outer: bool


class OrderTerm(Struct, frozen=True):
    """One term of an order."""

    term: Term
    descending: bool
    nulls_first: bool


class WindowColumn(Struct, frozen=True):
    """A window function: its value for each row. `rows` are the frame's edges, None beyond which everything is in; without it, from the first row to the last that is equal."""

    id: int
    function: str
    arguments: tuple[Term, ...]
    partition: tuple[Term, ...]
    order: tuple[OrderTerm, ...]
    rows: tuple[int | None, int | None] | None


class Window(Struct, frozen=True):
    """The rows with the values of window functions."""

    source: Relation
    calls: tuple[WindowColumn, ...]


class Sort(Struct, frozen=True):
    """The rows in an order, or the first of them alone."""

    source: Relation
    places: tuple[OrderTerm, ...]


class RowLimit(Struct, frozen=True):
    """So many rows from an offset on; a limit of None takes all."""

    source: Relation
    limit: int | None
    offset: int


class Union(Struct, frozen=True):
    """The rows of all arms; of each arm these columns, under these numbers."""

    arms: tuple[tuple[Relation, tuple[int, ...]], ...]
    columns: tuple[int, ...]


Relation: TypeAlias = (
    "DatasetRead | Filter | Extension | Join | RowGrouping | Unnest | Window | Sort | RowLimit | Union"
)


def outputs(relation: Relation) -> frozenset[int]:
    """The columns that a relation has."""
    match relation:
        case DatasetRead(columns=columns):
            return frozenset(number for number, _ in columns)
        case Extension(source=source, columns=columns):
            return outputs(source).union(number for number, _ in columns)
        case Join(kind=kind, left=left, right=right):
            return outputs(left) if kind in ("semi", "anti") else outputs(left) | outputs(right)
        case RowGrouping(keys=keys, measures=measures):
            return frozenset([*(number for number, _ in keys), *(one.id for one in measures)])
        case Unnest(source=source, item=item, place=place):
            return outputs(source) | {item, place}
        case Window(source=source, calls=calls):
            return outputs(source).union(one.id for one in calls)
        case Union(columns=columns):
            return frozenset(columns)
        case Filter(source=source) | Sort(source=source) | RowLimit(source=source):
            return outputs(source)


def terms_of(relation: Relation) -> tuple[Term, ...]:
    """The terms of one relation itself, each over the columns of what it is made of."""
    match relation:
        case Filter(condition=condition):
            return (condition,)
        case Extension(columns=columns):
            return tuple(term for _, term in columns)
        case Join(condition=condition):
            return () if condition is None else (condition,)
        case RowGrouping(keys=keys, measures=measures):
            return (*(term for _, term in keys), *(one.term for one in measures if one.term is not None))
        case Unnest(array=array):
            return (array,)
        case Window(calls=calls):
            return tuple(_window_terms(calls))
        case Sort(places=places):
            return tuple(place.term for place in places)
        case Union(arms=arms):
            return tuple(ColumnTerm(number) for _, columns in arms for number in columns)
        case DatasetRead() | RowLimit():
            return ()


def _window_terms(calls: tuple[WindowColumn, ...]) -> Iterator[Term]:
    for one in calls:
        yield from (*one.arguments, *one.partition, *(place.term for place in one.order))


def sources_of(relation: Relation) -> tuple[Relation, ...]:
    """What a relation is made of."""
    match relation:
        case DatasetRead():
            return ()
        case Join(left=left, right=right):
            return (left, right)
        case Union(arms=arms):
            return tuple(arm for arm, _ in arms)
        case _:
            return (relation.source,)


def is_closed(relation: Relation) -> bool:
    """Whether every term reads what is there: none refers to rows of somebody else."""
    waiting = [relation]
    while waiting:
        one = waiting.pop()
        sources = sources_of(one)
        there = frozenset[int]().union(*map(outputs, sources))
        if not columns_in(*terms_of(one)) <= there:
            return False
        waiting.extend(sources)
    return True


def parts_of(relation: Relation) -> Iterator[Relation]:
    """A relation and all that it is made of."""
    waiting = [relation]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(sources_of(one))


def reads_of(relation: Relation) -> Iterator[DatasetRead]:
    """The datasets that a relation reads."""
    yield from (one for one in parts_of(relation) if isinstance(one, DatasetRead))
