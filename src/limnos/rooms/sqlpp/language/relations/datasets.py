# SPDX-License-Identifier: Apache-2.0
"""Datasets as relations: the columns of a table, and the shape of its objects.

Must not know plans. A null column of a declared field means MISSING, unless the open part has a NULL for the field. In
a table that SQL++ did not create it always means MISSING.
"""

from __future__ import annotations

from collections.abc import Iterator

from limnos.rooms.sqlpp.language.relations.nodes import DatasetRead
from limnos.rooms.sqlpp.language.relations.shapes import CellShape, ItemsShape, RecordShape, Shape, is_null
from limnos.rooms.sqlpp.language.relations.terms import (
    ColumnTerm,
    LiteralTerm,
    Term,
    TruthTerm,
    all_of,
    any_of,
    call,
    not_of,
)
from limnos.rooms.sqlpp.language.stored import (
    OPEN,
    ArrayType,
    BagType,
    DeclaredType,
    RecordType,
    Scalar,
    columns,
    has_open,
)


def dataset_of(
    dataverse: tuple[str, ...], name: str, *, record: RecordType, ids: Iterator[int]
) -> tuple[DatasetRead, RecordShape]:
    """Return the relation that reads all objects of a dataset, and the shape of the objects."""
    field_names = [field.name for field in columns(record)]
    if has_open(record):
        field_names.append(OPEN)
    read = DatasetRead(dataverse, name, tuple((next(ids), column) for column in field_names))
    terms: dict[str, Term] = {column: ColumnTerm(number) for number, column in read.columns}
    return read, _record(record, terms, is_present=True, missing=True)


def _record(record: RecordType, terms: dict[str, Term], *, is_present: TruthTerm, missing: TruthTerm) -> RecordShape:
    """Return the shape of an object from the terms of its fields. `missing` applies where `is_present` is false."""
    opened = terms.get(OPEN) if has_open(record) else None
    fields = []
    for field in columns(record):
        own = _is_empty_missing(record, field.name, opened=opened) if field.optional else True
        absent = own if is_present is True else any_of(all_of(not_of(is_present), missing), all_of(is_present, own))
        is_known = is_present is True and not field.optional
        fields.append(
            (field.name, shape_of(terms[field.name], field.type, record=record, missing=absent, known=is_known))
        )
    return RecordShape(fields=tuple(fields), is_present=is_present, missing=missing, declared=record, open=opened)


def _is_empty_missing(record: RecordType, name: str, *, opened: Term | None) -> TruthTerm:
    """Return the flag for whether a null column means MISSING: the open part has no NULL for the field."""
    if record.foreign or opened is None:
        return True
    return not_of(call("said_null", opened, LiteralTerm(name, "string")))


def shape_of(term: Term, type_: DeclaredType, *, record: RecordType, missing: TruthTerm, known: bool) -> Shape:
    """Return the shape of a column, or of a field nested in it. Raises TypeError for a type without columns."""
    if isinstance(type_, Scalar):
        return CellShape(_read(term, type_, record=record), type_.name, missing, known)
    if isinstance(type_, (ArrayType, BagType)):
        return ItemsShape(term, type_.item, isinstance(type_, BagType), missing)
    if not isinstance(type_, RecordType):
        raise TypeError(f"{type_} has no column")
    terms: dict[str, Term] = {field.name: call("field", term, word=field.name) for field in columns(type_)}
    if has_open(type_):
        terms[OPEN] = call("field", term, word=OPEN)
    existing: TruthTerm = True if known else not_of(is_null(term))
    return _record(type_, terms, is_present=existing, missing=missing)


def _read(term: Term, type_: Scalar, *, record: RecordType) -> Term:
    """Return the term of a column; in a table that SQL++ did not create, cast to the precision of the SQL++ type."""
    if not record.foreign:
        return term
    if type_.name == "double":
        return call("cast", term, word="double")
    return call("milliseconds", term) if type_.name == "datetime" else term
