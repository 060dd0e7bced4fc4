# SPDX-License-Identifier: Apache-2.0
"""Keys of `tests`: rows of a step's inputs, parameters, and the rows that the step must make of them.

Defines the records, and reads rows from YAML or from CSV files. Must not know the columns of inputs, or Spark.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from limnos.names.columns import case_twins
from limnos.pipeline.compound_schemas import MapOf, Record, RecordKey
from limnos.pipeline.declaration import SourcePosition, TestCell, UnitTest, UnitTestRows
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
from limnos.pipeline.yaml import ListNode, MapNode, ScalarNode, YamlNode, plain

ROWS_MAX = 10_000
"""The largest number of rows of an input or a result of a unit test."""
_KEYS = ("rows", "csv", "schema")


class RowsSchema(NodeSchema):
    """Rows: a list of mappings, the path of a CSV file, or a mapping with one of them and a `schema`."""

    word = "a list of rows, or a CSV file"

    def read(self, node: YamlNode, notes: ProblemNotes) -> UnitTestRows:
        if isinstance(node, ScalarNode):
            return _csv_rows(Text(word=self.word).read(node, notes), node, notes=notes)
        if isinstance(node, ListNode):
            return _listed_rows(node, notes)
        return self._of_mapping(node, notes)

    def _of_mapping(self, node: MapNode, notes: ProblemNotes) -> UnitTestRows:
        unknown = [key for key, _ in node.entries if key.text not in _KEYS]
        rows, file, schema = (node.get(key) for key in _KEYS)
        if unknown or (rows is None) == (file is None):
            advice = "write {rows: [{column: value}], schema: 'column type'}, or {csv: FILE, schema: …}"
            raise notes.bad(f"rows: {describe_node(node)} has other keys than {', '.join(_KEYS)}: {advice}", node.at)
        if rows is not None and not isinstance(rows, ListNode):
            raise notes.bad(f"a list of rows is expected, not {describe_node(rows)}", rows.at)
        columns = None if schema is None else Text(word="a list of columns").read(schema, notes)
        read = _listed_rows(rows, notes) if isinstance(rows, ListNode) else self._of_file(file, notes)
        return UnitTestRows(rows=read.rows, columns=read.columns, schema=columns, is_text=read.is_text, at=read.at)

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


def _listed_rows(node: ListNode, notes: ProblemNotes) -> UnitTestRows:
    if len(node.items) > ROWS_MAX:
        raise notes.bad(f"{len(node.items):,} rows, more than {ROWS_MAX:,}: a unit test needs few rows", node.at)
    columns: dict[str, None] = {}
    rows: list[Mapping[str, TestCell]] = []
    for item in node.items:
        if not isinstance(item, MapNode):
            raise notes.bad(f"a row is a mapping {{column: value}}, not {describe_node(item)}", item.at)
        columns.update({key.text: None for key, _ in item.entries})
        rows.append({key.text: _cell(value) for key, value in item.entries})
    _refuse_twins(list(columns), node.at, notes=notes)
    return UnitTestRows(rows=tuple(rows), columns=tuple(columns), at=node.at)


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
    lines = _csv_lines(text, SourcePosition(file, 1, 1), notes=notes)
    _, header = next(lines, (1, []))
    if not header:
        raise notes.bad(f"'{path}' is empty: its first line must have the names of the columns", node.at)
    _refuse_twins(header, SourcePosition(file, 1, 1), notes=notes)
    rows: list[Mapping[str, TestCell]] = []
    for number, values in lines:
        place = SourcePosition(file, number, 1)
        if len(values) != len(header):
            raise notes.bad(f"the row has {len(values)} values, and there are {len(header)} columns", place)
        if len(rows) >= ROWS_MAX:
            raise notes.bad(f"more than {ROWS_MAX:,} rows: a unit test needs few rows", place)
        rows.append({name: value or None for name, value in zip(header, values, strict=True)})
    return UnitTestRows(rows=tuple(rows), columns=tuple(header), is_text=True, at=SourcePosition(file, 1, 1))


def _csv_lines(text: str, at: SourcePosition, *, notes: ProblemNotes) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for values in reader:
            if values:
                yield reader.line_num, values
    except csv.Error as error:
        raise notes.bad(f"not CSV: {error}", SourcePosition(at.file, reader.line_num, 1)) from None


def _refuse_twins(columns: list[str], at: SourcePosition, *, notes: ProblemNotes) -> None:
    for earlier, name in case_twins(columns):
        raise notes.bad(f"the columns '{earlier}' and '{name}' differ by case alone, or are the same", at)


def _unit_test(values: Values, site: NodeSite) -> UnitTest:
    inputs = values.get("given", ())
    return UnitTest(
        name="",
        given={parts: rows for parts, rows, _ in inputs},
        given_at={parts: at for parts, _, at in inputs},
        parameters=dict(pairs(values.get("parameters", ()))),
        expected=values["expect"],
        at=site.at,
    )


def named_tests(tests: tuple[tuple[str, Any, SourcePosition], ...]) -> tuple[UnitTest, ...]:
    """Return the tests with their names and the positions of their names."""
    return tuple(
        UnitTest(
            name=name,
            given=test.given,
            given_at=test.given_at,
            parameters=test.parameters,
            expected=test.expected,
            at=at,
        )
        for name, test, at in tests
    )


UNIT_TESTS = MapOf(
    Text(word="a test's name"),
    Record(
        name="a test",
        keys={
            "given": RecordKey(
                value_schema=MapOf(TableName(word="a source or table", parts_min=1), RowsSchema()),
                description="Rows of each input of the step: a list, or a CSV file in the pipeline's directory.",
                example="given: {raw.shop.orders: [{customer: ana, amount: 12.5}]}",
            ),
            "parameters": RecordKey(
                value_schema=MapOf(WORD, AnyScalar(as_text=False)),
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
