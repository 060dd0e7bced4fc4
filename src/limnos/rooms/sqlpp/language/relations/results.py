# SPDX-License-Identifier: Apache-2.0
"""Decodes rows of relations to values: the layout of the fetched columns, and the conversion of a row to a value.

Must not know an engine: a row has the plain values of `stored`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from limnos.rooms.sqlpp.language.relations.deferred_expressions import function_of
from limnos.rooms.sqlpp.language.relations.shapes import (
    CellShape,
    FinishedShape,
    FixedShape,
    ItemsShape,
    RecordShape,
    Shape,
)
from limnos.rooms.sqlpp.language.relations.terms import LiteralTerm, Term, TruthTerm
from limnos.rooms.sqlpp.language.stored import (
    ArrayType,
    BagType,
    DeclaredType,
    Plain,
    Scalar,
    read_open_part,
    reader_of,
)
from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Value, object_of

Row = Sequence["Plain"]
RowMaker = Callable[[Row], Value]
_BOOLEAN, _STRING = Scalar("boolean"), Scalar("string")


class ResultLayout(NamedTuple):
    """The layout of result rows: the fetched terms with their types, and the function that converts a row to a
    value.
    """

    columns: tuple[tuple[Term, DeclaredType], ...]
    make: RowMaker
    finished: tuple[str, ...] = ()
    """Reasons why the evaluator computes parts of values; empty if it does not."""
    keep: Callable[[Row], bool] | None = None
    limit: int | None = None
    offset: int = 0
    """The offset, which is applied here together with `keep` and `limit` if the evaluator must filter the rows."""

    def values(self, rows: Iterable[Row]) -> Iterator[Value]:
        """Convert the engine's rows to results. Applies the filter and limit that the engine could not apply."""
        keep = self.keep
        if keep is None:
            return map(self.make, rows)
        end = None if self.limit is None else self.offset + self.limit
        return islice((self.make(row) for row in rows if keep(row)), self.offset, end)


def layout_of(
    shape: Shape, evaluator_conditions: tuple[Shape, ...] = (), *, limit: int | None = None, offset: int = 0
) -> ResultLayout:
    """Return the row layout for results of a shape. The evaluator applies `evaluator_conditions` to each row."""
    building = _LayoutBuilder()
    make = building.maker(shape)
    requested = [building.maker(one) for one in evaluator_conditions]
    keep = (lambda row: all(ask(row) is True for ask in requested)) if requested else None
    return ResultLayout(
        columns=tuple(building.columns),
        make=make,
        finished=tuple(dict.fromkeys(building.finished)),
        keep=keep,
        limit=limit,
        offset=offset,
    )


class _LayoutBuilder:
    """Builds a ResultLayout: the columns to select, and their conversion to result values."""

    def __init__(self) -> None:
        self.columns: list[tuple[Term, DeclaredType]] = []
        self.finished: list[str] = []

    def _at(self, term: Term, type_: DeclaredType) -> int:
        self.columns.append((term, type_))
        return len(self.columns) - 1

    def maker(self, shape: Shape) -> RowMaker:
        if isinstance(shape, CellShape):
            return self._cell(shape)
        if isinstance(shape, ItemsShape):
            type_ = BagType(shape.item) if shape.bag else ArrayType(shape.item)
            return self._read(shape.term, type_, missing=shape.missing)
        if isinstance(shape, FinishedShape):
            return self._finished_maker(shape)
        if isinstance(shape, FixedShape):
            makers = [self.maker(item) for item in shape.items]
            kind = Bag if shape.bag else tuple
            return lambda row: kind([make(row) for make in makers])
        return self._record(shape)

    def _finished_maker(self, shape: FinishedShape) -> RowMaker:
        """Return the function that computes a deferred expression from a row."""
        self.finished.append(shape.reason)
        makers, work = [self.maker(one) for one in shape.inputs], function_of(shape)
        missing = self._flag(shape.missing)
        return lambda row: MISSING if missing(row) else work([make(row) for make in makers])

    def _cell(self, cell: CellShape) -> RowMaker:
        if cell.type == "null":
            return self._unknown(cell.missing)
        if isinstance(cell.term, LiteralTerm) and cell.term.value is not None:
            value = cell.term.value
            return lambda _: value
        return self._read(cell.term, Scalar(cell.type), missing=cell.missing)

    def _read(self, term: Term, type_: DeclaredType, *, missing: TruthTerm) -> RowMaker:
        at, read, unknown = self._at(term, type_), reader_of(type_), self._unknown(missing)
        return lambda row: unknown(row) if row[at] is None else read(row[at])

    def _unknown(self, missing: TruthTerm) -> RowMaker:
        if isinstance(missing, bool):
            value: Value = MISSING if missing else None
            return lambda _: value
        at = self._at(missing, _BOOLEAN)
        return lambda row: MISSING if row[at] else None

    def _record(self, record: RecordShape) -> RowMaker:
        existing = None if record.is_present is True else self._flag(record.is_present)
        unknown = self._unknown(record.missing) if existing is not None else None
        make = self._fields(record) if record.declared is None else self._object_maker(record)
        if existing is None or unknown is None:
            return make
        return lambda row: make(row) if existing(row) else unknown(row)

    def _flag(self, flag: TruthTerm) -> Callable[[Row], bool]:
        if isinstance(flag, bool):
            return lambda _: flag
        at = self._at(flag, _BOOLEAN)
        return lambda row: bool(row[at])

    def _fields(self, record: RecordShape) -> RowMaker:
        makers = [(name, self.maker(field)) for name, field in record.fields]

        def make(row: Row) -> Value:
            result = ((name, work(row)) for name, work in makers)
            return object_of(result)

        return make

    def _object_maker(self, record: RecordShape) -> RowMaker:
        """Return the function that builds a dataset's object from a row.

        The open part contains undeclared fields, and declared fields that are NULL.
        """
        makers = [(name, self._plainly(field)) for name, field in record.fields]
        opened = None if record.open is None else self._at(record.open, _STRING)
        names = [] if record.declared is None else [field.name for field in record.declared.fields]

        def make(row: Row) -> Value:
            fields = object_of((name, work(row)) for name, work in makers)
            text = None if opened is None else row[opened]
            if not isinstance(text, str):
                return fields
            all_fields = {**read_open_part(text), **fields}
            return {**{name: all_fields[name] for name in names if name in all_fields}, **all_fields}

        return make

    def _plainly(self, field: Shape) -> RowMaker:
        """Return the function that reads a field of a dataset's object from a row; MISSING if its column is null."""
        if isinstance(field, CellShape) and field.type != "null":
            return self._read(field.term, Scalar(field.type), missing=True)
        if isinstance(field, ItemsShape):
            return self._read(field.term, BagType(field.item) if field.bag else ArrayType(field.item), missing=True)
        return self.maker(field)
