# SPDX-License-Identifier: Apache-2.0
"""Keys of `tests`: rows of a step's inputs, parameters, and the rows that the step must make of them.

Defines the records, and reads rows from YAML or from CSV files. Must not know the columns of inputs, or Spark.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from limnos.names.columns import case_twins
from limnos.pipeline.compound_schemas import MapOf, Record, RecordKey
from limnos.pipeline.declaration import TestCell, UnitTest, UnitTestRows
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.keys.shared import WORD, pairs
from limnos.pipeline.node_schemas import (
    AnyScalar,
    InvalidNode,
    NodeSchema,
    NodeSite,
    ProblemNotes,
    Schema,
    TableName,
    Text,
    Values,
    describe_node,
)
from limnos.pipeline.problems import nearest_word
from limnos.pipeline.yaml import ListNode, MapNode, ScalarNode, YamlNode, plain

ROWS_MAX = 10_000
"""The largest number of rows of an input or a result of a unit test."""
_KEYS = ("rows", "csv", "schema")
_ROWS = "[{column: value}]"
_FORMS = f"{{rows: {_ROWS}, schema: 'column type'}}, or {{csv: FILE}}"
_SEPARATORS = {";": "';'", "\t": "tabs", "|": "'|'"}
"""Separators of values that other programs write, and their names."""


class RowsSchema(NodeSchema):
    """Rows: a list of mappings, the path of a CSV file, or a mapping with one of them and a `schema`."""

    word = "a list of rows, or a CSV file"

    def read(self, node: YamlNode, notes: ProblemNotes) -> UnitTestRows:
        if isinstance(node, ScalarNode) and node.value is None:
            raise notes.bad(f"rows are missing here: write {_ROWS}, or [] for no rows", node.at)
        if isinstance(node, ScalarNode):
            return _csv_rows(Text(word=self.word).read(node, notes), node, notes=notes)
        if isinstance(node, ListNode):
            return _listed_rows(node, notes)
        return self._of_mapping(node, notes)

    def _of_mapping(self, node: MapNode, notes: ProblemNotes) -> UnitTestRows:
        for key, _ in node.entries:
            if key.text not in _KEYS:
                raise notes.bad(_unknown_key(key.text, node), key.at)
        rows, file, schema = (node.get(key) for key in _KEYS)
        if (rows is None) == (file is None):
            fault = "neither 'rows' nor 'csv'" if rows is None else "both 'rows' and 'csv'"
            raise notes.bad(f"there is {fault}: write {_FORMS}", node.at)
        if rows is not None and not isinstance(rows, ListNode):
            raise notes.bad(f"a list of rows is expected, not {describe_node(rows)}; write {_ROWS}", rows.at)
        columns = None if schema is None else Text(word="a list of columns").read(schema, notes)
        read = _listed_rows(rows, notes) if isinstance(rows, ListNode) else self._of_file(file, notes)
        return dataclasses.replace(read, schema=columns)

    def _of_file(self, node: YamlNode | None, notes: ProblemNotes) -> UnitTestRows:
        if not isinstance(node, ScalarNode):
            raise InvalidNode
        return _csv_rows(Text(word="a CSV file").read(node, notes), node, notes=notes)

    def schema(self) -> Schema:
        rows: Schema = {"type": "array", "items": {"type": "object"}, "maxItems": ROWS_MAX}
        file: Schema = {"type": "string", "pattern": r"\S"}
        mapping: Schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {"rows": rows, "csv": file, "schema": file},
            "oneOf": [{"required": ["rows"]}, {"required": ["csv"]}],
        }
        return {"anyOf": [file, rows, mapping]}


def _unknown_key(key: str, node: MapNode) -> str:
    """Return the message for a mapping in the place of rows: a misspelt key, or a row without its list."""
    near = nearest_word(key, _KEYS)
    if near:
        return f"unknown key '{key}'{near}"
    if any(isinstance(value, ListNode) for _, value in node.entries):
        return f"rows are written one by one, not as columns: write {_ROWS}"
    row = ", ".join(f"{one.text}: {value.text}" for one, value in node.entries if isinstance(value, ScalarNode))
    return f"a row stands in a list, also a single one: write [{{{row[:80] or 'column: value'}}}]"


def _listed_rows(node: ListNode, notes: ProblemNotes) -> UnitTestRows:
    if len(node.items) > ROWS_MAX:
        raise notes.bad(f"{len(node.items):,} rows, more than {ROWS_MAX:,}: a unit test needs few rows", node.at)
    columns: dict[str, SourcePosition] = {}
    rows: list[Mapping[str, TestCell]] = []
    for item in node.items:
        if not isinstance(item, MapNode):
            raise notes.bad(f"a row is a mapping {{column: value}}, not {describe_node(item)}", item.at)
        for key, value in item.entries:
            if ":" in key.text and isinstance(value, ScalarNode) and not value.text:
                name, _, text = key.text.partition(":")
                raise notes.bad(f"a blank is missing after ':' in '{key.text[:80]}': write {name}: {text}", key.at)
            columns.setdefault(key.text, key.at)
        rows.append({key.text: _cell(value) for key, value in item.entries})
    _refuse_twins(columns, notes=notes)
    return UnitTestRows(
        rows=tuple(rows),
        columns=tuple(columns),
        at=node.at,
        rows_at=tuple(item.at for item in node.items),
        columns_at=columns,
    )


def _cell(node: YamlNode) -> TestCell:
    """Return a scalar as it is, and a list or mapping as JSON."""
    return node.value if isinstance(node, ScalarNode) else json.dumps(plain(node), ensure_ascii=False)


def _csv_rows(path: str, node: ScalarNode, *, notes: ProblemNotes) -> UnitTestRows:
    """Read a CSV file whose first line has the names of the columns. An unquoted empty value is NULL."""
    try:
        text = notes.beside.text(path)
    except ValueError as error:
        raise notes.bad(str(error), node.at) from None
    file = str(notes.beside.directory / path)
    head = SourcePosition(file, 1, 1)
    lines = _csv_lines(text, head, notes=notes)
    _, header = next(lines, (1, []))
    if not header:
        raise notes.bad(f"'{path}' is empty: its first line must have the names of the columns", node.at)
    _check_header(header, head, notes=notes)
    rows: list[Mapping[str, TestCell]] = []
    rows_at: list[SourcePosition] = []
    for number, values in lines:
        place = SourcePosition(file, number, 1)
        if len(values) != len(header):
            raise notes.bad(_uneven(values, header), place)
        if len(rows) >= ROWS_MAX:
            raise notes.bad(f"more than {ROWS_MAX:,} rows: a unit test needs few rows", place)
        rows.append({name: value or None for name, value in zip(header, values, strict=True)})
        rows_at.append(place)
    return UnitTestRows(
        rows=tuple(rows),
        columns=tuple(header),
        is_text=True,
        at=head,
        rows_at=tuple(rows_at),
        columns_at=dict.fromkeys(header, head),
    )


def _check_header(header: list[str], at: SourcePosition, *, notes: ProblemNotes) -> None:
    """Refuse names of columns that cannot be meant. Raises InvalidNode."""
    if len(header) == 1 and (separator := next((one for one in _SEPARATORS if one in header[0]), None)):
        raise notes.bad(
            f"the columns are separated by {_SEPARATORS[separator]}: write commas, as in "
            f"{','.join(part.strip() for part in header[0].split(separator))[:80]}",
            at,
        )
    for number, name in enumerate(header, start=1):
        if not name.strip():
            raise notes.bad(f"column {number} has no name: write one, or take the comma before it out", at)
        if name != name.strip():
            raise notes.bad(f"blanks around the name of column '{name.strip()}': write no blanks beside commas", at)
    _refuse_twins(dict.fromkeys(header, at), notes=notes, repeated=header)


def _uneven(values: list[str], header: list[str]) -> str:
    """Return the message for a row with too few or too many values."""
    many = f"{len(values)} value{'' if len(values) == 1 else 's'}"
    advice = (
        "an empty value between commas is NULL"
        if len(values) < len(header)
        else 'a value with a comma stands in quotes, "1,5"'
    )
    return f"the row has {many}, and there are {len(header)} columns ({', '.join(header)[:200]}): {advice}"


def _csv_lines(text: str, at: SourcePosition, *, notes: ProblemNotes) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each row's first line, with the row's values."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    first = 1
    try:
        for values in reader:
            if values:
                yield first, values
            first = reader.line_num + 1
    except csv.Error as error:
        fault = {
            "unexpected end of data": 'a quote (") that opens here is not closed',
            "',' expected after '\"'": "text follows a closing quote: double a quote within quotes",
        }.get(str(error), f"not CSV: {error}")
        raise notes.bad(fault, SourcePosition(at.file, first, 1)) from None


def _refuse_twins(
    columns: Mapping[str, SourcePosition], *, notes: ProblemNotes, repeated: Sequence[str] | None = None
) -> None:
    for earlier, name in case_twins(list(columns) if repeated is None else repeated):
        same = (
            f"there are two columns '{name}'"
            if earlier == name
            else f"the columns '{earlier}' and '{name}' differ by case alone"
        )
        raise notes.bad(f"{same}: each has its own name", columns[name])


def _unit_test(values: Values, site: NodeSite) -> UnitTest:
    inputs = values.get("given", ())
    return UnitTest(
        name="",
        given={parts: rows for parts, rows, _ in inputs},
        given_at={parts: at for parts, _, at in inputs},
        parameters=dict(pairs(values.get("parameters", ()))),
        parameters_at={name: at for name, _, at in values.get("parameters", ())},
        expected=values["expect"],
        at=site.at,
    )


def named_tests(tests: tuple[tuple[str, Any, SourcePosition], ...]) -> tuple[UnitTest, ...]:
    """Return the tests with their names and the positions of their names."""
    return tuple(dataclasses.replace(test, name=name, at=at) for name, test, at in tests)


class _Inputs(MapOf):
    """The schema of `given`."""

    advice = "given: {INPUT: [{column: value}]}"


class _Values(MapOf):
    """The schema of the values of parameters."""

    advice = "parameters: {name: value}"


class _Tests(MapOf):
    """The schema of `tests`."""

    advice = "tests: {NAME: {given: {INPUT: [{column: value}]}, expect: [{column: value}]}}"


UNIT_TESTS = _Tests(
    Text(word="a test's name"),
    Record(
        name="a test",
        keys={
            "given": RecordKey(
                value_schema=_Inputs(TableName(word="a source or table", parts_min=1), RowsSchema()),
                description="Rows of each input of the step: a list, or a CSV file in the pipeline's directory.",
                example="given: {raw.shop.orders: [{customer: ana, amount: 12.5}]}",
            ),
            "parameters": RecordKey(
                value_schema=_Values(WORD, AnyScalar(as_text=False)),
                description="Values of parameters; the others have their defaults.",
                example="parameters: {least: 5}",
            ),
            "expect": RecordKey(
                value_schema=RowsSchema(),
                description="The rows that the step makes, in any order. Only the columns that they have are compared.",
                example="expect: [{customer: ana, total: 12.5}]",
                required=True,
            ),
        },
        build=_unit_test,
    ),
)
