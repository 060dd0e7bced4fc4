# SPDX-License-Identifier: Apache-2.0
"""Relations: nodes of a relational algebra over typed columns, for a columnar engine.

Must not know SQL++'s plans or an engine. Column ids are unique within a statement, so the sides of a join never share a
column; a relation that is used twice is built twice. Rows are ordered only after `Sort`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from limnos.rooms.sqlpp.language.relations.terms import ColumnTerm, Term, columns_in

JoinKind = Literal["inner", "left", "right", "cross", "semi", "anti"]


class DatasetRead(Struct, frozen=True):
    """A table scan: all rows of a dataset, with an id for each top-level column."""

    dataverse: tuple[str, ...]
    name: str
    columns: tuple[tuple[int, str], ...]


class Filter(Struct, frozen=True):
    """A selection: the rows for which a condition is true."""

    source: Relation
    condition: Term


class Extension(Struct, frozen=True):
    """An extended projection: the rows with additional computed columns."""

    source: Relation
    columns: tuple[tuple[int, Term], ...]


class Join(Struct, frozen=True):
    """A join. A `semi` join returns the rows of the left side that have a match, an `anti` join those that have
    none.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    condition: Term | None


class Measure(Struct, frozen=True):
    """An aggregate of groups, over a term's values that are not NULL; over rows if there is no term."""

    id: int
    function: str
    term: Term | None
    distinct: bool = False


class RowGrouping(Struct, frozen=True):
    """An aggregation: groups of rows with their keys and measures.

    Without keys there is exactly one group, even of no rows. Without measures it returns the distinct keys.
    """

    source: Relation
    keys: tuple[tuple[int, Term], ...]
    measures: tuple[Measure, ...]


class Unnest(Struct, frozen=True, kw_only=True):
    """The rows joined with the items of an array column, with the item's 0-based position. `outer` keeps rows without
    items.
    """

    source: Relation
    array: Term
    item: int
    place: int
    outer: bool


class OrderTerm(Struct, frozen=True):
    """A term of ORDER BY, with its direction and the position of nulls."""

    term: Term
    descending: bool
    nulls_first: bool


class WindowColumn(Struct, frozen=True, kw_only=True):
    """A window function, and the id of the column for its values.

    `rows` are the bounds of a ROWS frame as offsets from the row, None for unbounded. If `rows` is None, the frame
    extends from the first row to the last peer.
    """

    id: int
    function: str
    arguments: tuple[Term, ...]
    partition: tuple[Term, ...]
    order: tuple[OrderTerm, ...]
    rows: tuple[int | None, int | None] | None


class Window(Struct, frozen=True):
    """The rows with additional columns of window functions."""

    source: Relation
    calls: tuple[WindowColumn, ...]


class Sort(Struct, frozen=True):
    """The rows of a relation, sorted by order terms."""

    source: Relation
    places: tuple[OrderTerm, ...]


class RowLimit(Struct, frozen=True):
    """The rows after an offset, at most `limit`; None for no limit."""

    source: Relation
    limit: int | None
    offset: int


class Union(Struct, frozen=True):
    """The rows of all arms (UNION ALL). Each arm lists the ids of its columns, which become `columns`."""

    arms: tuple[tuple[Relation, tuple[int, ...]], ...]
    columns: tuple[int, ...]


Relation: TypeAlias = (
    "DatasetRead | Filter | Extension | Join | RowGrouping | Unnest | Window | Sort | RowLimit | Union"
)


def outputs(relation: Relation) -> frozenset[int]:
    """Return the ids of a relation's output columns."""
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
    """Return the terms of a relation's own operation, not those of its sources."""
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
    """Return the direct sources of a relation."""
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
    """Return whether all terms refer only to columns of their relation's sources, so that there is no correlation."""
    waiting = [relation]
    while waiting:
        one = waiting.pop()
        sources = sources_of(one)
        union = frozenset[int]().union(*map(outputs, sources))
        if not columns_in(*terms_of(one)) <= union:
            return False
        waiting.extend(sources)
    return True


def parts_of(relation: Relation) -> Iterator[Relation]:
    """Yield a relation and all of its sources, recursively."""
    waiting = [relation]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(sources_of(one))


def reads_of(relation: Relation) -> Iterator[DatasetRead]:
    """Yield the datasets that a relation reads."""
    yield from (one for one in parts_of(relation) if isinstance(one, DatasetRead))
