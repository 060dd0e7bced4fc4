# SPDX-License-Identifier: Apache-2.0
"""Keys of a step: its table, its body, its write mode and its expectations.

Defines the record of a step, and the draft of a step before its catalog is known. Must not know the other steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from limnos.pipeline.compound_schemas import Cases, ListOf, MapOf, Record, RecordKey
from limnos.pipeline.declaration import AllowedChanges, DeclaredColumn, Load, PythonStep, Sql, StepBody
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.directory import FunctionArgument
from limnos.pipeline.keys.lance import LANCE_KEYS
from limnos.pipeline.keys.loops import LoopItems
from limnos.pipeline.keys.rules import RULE
from limnos.pipeline.keys.shared import (
    COLUMNS,
    FUNCTION,
    OPTIONS,
    ORDER,
    SQL,
    TAG,
    TEXT,
    TRANSFORM,
    WORD,
    require_function,
)
from limnos.pipeline.keys.unit_tests import UNIT_TESTS
from limnos.pipeline.keys.writes import WRITE
from limnos.pipeline.node_schemas import Boolean, NodeSite, ProblemNotes, TableName, Text, Values
from limnos.pipeline.problems import offset
from limnos.pipeline.yaml import MapNode, ScalarNode, YamlNode

_JINJA: Final = re.compile(r"\{%|\{\{\s*(?:this\s*\}\}|\w+[\s\w.]*[(.])")
"""Jinja's blocks, and its calls as those of dbt; `{{name}}` alone is a variable of a loop."""
_NO_JINJA: Final = (
    "Jinja is not rendered: a query names its tables, as FROM raw.shop.orders in place of ref() and source(), and"
    " parameters by a colon, as :day; incremental: true reads only new rows, and for_each repeats a step"
)


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step as the file declares it, before the pipeline's catalog is added to its table's name."""

    values: Values
    body: StepBody
    arguments: tuple[FunctionArgument, ...] | None = None
    """The arguments of a Python function; None if they are unknown before it is imported."""


def _body(values: Values, site: NodeSite) -> StepBody:
    if "sql" in values:
        text: ScalarNode = values["sql"]
        if (jinja := _JINJA.search(text.text)) is not None:
            raise site.notes.bad(_NO_JINJA, offset(text.text_at, text.text, index=jinja.start()) or text.at)
        return Sql(text=text.text, at=text.text_at)
    if "load" in values:
        return Load(source=values["load"])
    if "python" in values:
        return PythonStep(function=values["python"], inputs=values.get("inputs", {}))
    written_path: str = values["sql_file"]
    try:
        text_of_file = site.beside.text(written_path)
    except ValueError as error:
        raise site.bad(str(error)) from None
    if not text_of_file.strip():
        raise site.bad(f"'{written_path}' is empty: it must have one query")
    if (jinja := _JINJA.search(text_of_file)) is not None:
        raise site.bad(f"'{written_path}', line {text_of_file.count(chr(10), 0, jinja.start()) + 1}: {_NO_JINJA}")
    return Sql(text=text_of_file, at=SourcePosition(str(site.beside.directory / written_path), 1, 1))


def _step(values: Values, site: NodeSite) -> StepDraft:
    arguments = require_function(values["python"], site) if "python" in values else None
    return StepDraft(values=require_unique_names(values, site), body=_body(values, site), arguments=arguments)


def require_unique_names(values: Values, site: NodeSite) -> Values:
    """Record a problem for each name that several expectations of a step have. Returns `values`, unchanged."""
    names = [one.name for one in values.get("expect", ())]
    for name in sorted({name for name in names if names.count(name) > 1}):
        site.add(f"two expectations are called '{name}': give them different names")
    return values


class _StepInputs(MapOf):
    """The schema of a Python step's inputs. A list of sources maps each argument to the source of the same name."""

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        if isinstance(node, MapNode):
            return {key: value for key, value, _ in super().read(node, notes)}
        return {name: name for name in ListOf(WORD).read(node, notes)}

    def schema(self) -> dict[str, object]:
        return {"anyOf": [super().schema(), ListOf(WORD).schema()]}


class _StepInput(TableName):
    """The schema of one input; its value is a source's name as a string, or a table's parts."""

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        parts = super().read(node, notes)
        return parts[0] if len(parts) == 1 else parts


def _column(values: Values, site: NodeSite) -> DeclaredColumn:
    return DeclaredColumn(name="", comment=values.get("comment"))


def _allowed_changes(values: Values, site: NodeSite) -> AllowedChanges:
    return AllowedChanges(**values)


COLUMN = Cases(
    name="a column",
    short=TEXT,
    from_short=lambda text, site: DeclaredColumn(name="", comment=text),
    cases={
        "comment": Record(
            name="a column",
            keys={
                "comment": RecordKey(
                    value_schema=TEXT,
                    description="Description of the column.",
                    example="comment: Minutes late.",
                    required=True,
                )
            },
            build=_column,
        )
    },
)
_INPUTS = RecordKey(
    value_schema=_StepInputs(WORD, _StepInput(word="a source or table", parts_min=1)),
    description=(
        "What the function's arguments are given: sources, or tables. Without it, each argument receives the source of"
        " its name; parameters, `run_id`, `run_at` and `spark` are passed by their names."
    ),
    example="inputs: {flights: flights, airlines: raw.nyc.airlines}",
)
_BODIES = {
    "sql": RecordKey(
        value_schema=SQL,
        description="One query. Its inputs are found with Spark's own grammar.",
        example="sql: SELECT * FROM flights",
    ),
    "sql_file": RecordKey(
        value_schema=TEXT,
        description="A file with the query, in the pipeline's directory or below.",
        example="sql_file: sql/delays.sql",
    ),
    "python": RecordKey(
        value_schema=FUNCTION, description="A function from DataFrames to a DataFrame.", example="python: delays:make"
    ),
    "inputs": _INPUTS,
    "load": RecordKey(value_schema=WORD, description="A source, loaded without changes.", example="load: flights"),
}
_LOOP = {
    "for_each": RecordKey(
        value_schema=LoopItems(),
        description=(
            "Makes a step of each item, in YAML: `{{name}}` in its name and texts is the item's word. With `query` the"
            " items are rows of published tables, and `example` has words for tests and checks."
        ),
        example="for_each: {country: [de, fr]}",
    ),
}
_TABLE = {
    "catalog": RecordKey(
        value_schema=WORD,
        description="The catalog of the step's table, if it is not the pipeline's.",
        example="catalog: archive",
    ),
    "write": RecordKey(
        value_schema=WRITE,
        description="How the rows are written to the table.",
        example="write: append",
        default="replace",
    ),
    "incremental": RecordKey(
        value_schema=Boolean(),
        description="Read only rows that are new since the last publication, where the result is the same; modes that"
        " need all rows write nothing if nothing has changed.",
        example="incremental: true",
        default="false",
    ),
    "partition": RecordKey(
        value_schema=ListOf(TRANSFORM, single=True),
        description=(
            "Partitioning of a new table; of a Lance table, with `write: partitions`, which rows are replaced together."
        ),
        example="partition: days(day)",
    ),
    "sort": RecordKey(
        value_schema=ListOf(ORDER, single=True),
        description="The order of rows in files.",
        example="sort: [carrier, day desc]",
    ),
    "properties": RecordKey(
        value_schema=OPTIONS,
        description="Properties of the table.",
        example="properties: {write.target-file-size-bytes: 134217728}",
    ),
    **LANCE_KEYS,
    "columns": RecordKey(
        value_schema=MapOf(Text(word="a column"), COLUMN),
        description="Comments of columns.",
        example="columns: {delay: Minutes late.}",
    ),
    "comment": RecordKey(value_schema=TEXT, description="Comment of the table.", example="comment: Delays by day."),
    "allow": RecordKey(
        value_schema=Record(
            name="'allow'",
            some_of=("drop", "narrow"),
            keys={
                "drop": RecordKey(
                    value_schema=COLUMNS, description="Columns that may be dropped.", example="drop: [old_code]"
                ),
                "narrow": RecordKey(
                    value_schema=COLUMNS,
                    description="Columns whose type may become narrower.",
                    example="narrow: [price]",
                ),
            },
            build=_allowed_changes,
        ),
        description="Changes of the table's columns that lose data, by name.",
        example="allow: {drop: [old_code]}",
    ),
    "expect": RecordKey(
        value_schema=ListOf(RULE), description="Rules for the rows.", example="expect: [delay >= -120]"
    ),
    "tests": RecordKey(
        value_schema=UNIT_TESTS,
        description="Unit tests of the step's body, for `limnos pipeline test`.",
        example="tests: {one order: {given: {orders: [{id: 1}]}, expect: [{id: 1}]}}",
    ),
    "tags": RecordKey(
        value_schema=ListOf(TAG, single=True),
        description="Words by which `--select tag:NAME` finds the step.",
        example="tags: [nightly, finance]",
    ),
    "after": RecordKey(
        value_schema=ListOf(TableName(), single=True),
        description="Steps that run before this one although it does not read them.",
        example="after: curated.nyc.days",
    ),
}
STEP = Record(
    name="a step",
    one_of=("sql", "sql_file", "python", "load"),
    together={"inputs": "python"},
    keys={**_BODIES, **_LOOP, **_TABLE},
    build=_step,
)
FUNCTION_STEP = Record(name="a step", keys={"inputs": _INPUTS, **_TABLE}, build=require_unique_names)
"""The keys that the decorator `step` takes over a function."""
