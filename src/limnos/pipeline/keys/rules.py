# SPDX-License-Identifier: Apache-2.0
"""Keys of `expect`: a record for each kind of rule.

Defines the records, and the default names of rules. Must not know the evaluation of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from limnos.pipeline.compound_schemas import Cases, Record, RecordKey
from limnos.pipeline.declaration import Expectation, ExpectationAction, RuleKind
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.keys.shared import COLUMNS, SQL, TEXT
from limnos.pipeline.node_schemas import (
    Boolean,
    Choice,
    Duration,
    NodeSite,
    RowShare,
    TableName,
    Text,
    Values,
    WholeNumber,
)
from limnos.pipeline.yaml import MapNode, ScalarNode, YamlNode


def _rule(kind: RuleKind, fields: Callable[[Values], dict[str, Any]]) -> Callable[[Values, NodeSite], Expectation]:
    def build(values: Values, site: NodeSite) -> Expectation:
        results = fields(values)
        return Expectation(
            name=values.get("name") or _rule_name(kind, results),
            kind=kind,
            action=ExpectationAction(values.get("action", "fail")),
            tolerated=values.get("tolerated", 0.0),
            at=_sql_position(site.node, kind),
            **results,
        )

    return build


def _sql_position(node: YamlNode, kind: RuleKind) -> SourcePosition:
    """Return the position of the rule's SQL, or of the rule if it has none."""
    value = node.get(kind.value) if isinstance(node, MapNode) else node
    return value.text_at if isinstance(value, ScalarNode) else node.at


def _rule_name(kind: RuleKind, results: Mapping[str, Any]) -> str:
    """Return the default name of a rule: a description of its content."""
    if kind is RuleKind.ROW:
        return " ".join(str(results["condition"]).split())[:120]
    if kind is RuleKind.EMPTY:
        return "empty " + " ".join(str(results["query"]).split())[:100]
    if kind is RuleKind.ROWS:
        return "rows " + " ".join(
            f"{word} {results[key]}" for word, key in _BOUNDS.items() if results.get(key) is not None
        )
    words = [kind.value, *results.get("columns", ())]
    return " ".join(words)


_BOUNDS = {"min": "rows_min", "max": "rows_max"}


def _row(values: Values) -> dict[str, Any]:
    return {"condition": values["row"].text}


def _references(values: Values) -> dict[str, Any]:
    return {
        "table": values["references"],
        "columns": values["columns"],
        "table_columns": values.get("to", values["columns"]),
    }


def _rows(values: Values) -> dict[str, Any]:
    return {"rows_min": values["rows"].get("min"), "rows_max": values["rows"].get("max")}


def _between(values: Values, site: NodeSite) -> Values:
    if values.get("min", 0) > values.get("max", 10**18):
        raise site.bad(f"min {values['min']} is more than max {values['max']}")
    return values


_NAME = RecordKey(
    value_schema=TEXT, description="Name of the rule in findings; the default is its text.", example="name: delay_known"
)
_TOLERATED = RecordKey(
    value_schema=RowShare(), description="Share of the rows that may violate it.", example="tolerated: 1%", default="0%"
)
_STRICT = Choice(("fail", "warn"))
_ROW_ACTION = RecordKey(
    value_schema=Choice(tuple(one.value for one in ExpectationAction)),
    description=(
        "Treatment of rows that violate it: the run fails, the rows are left out (drop), kept in `<table>__quarantine`,"
        " or only reported."
    ),
    example="action: quarantine",
    default="fail",
)
_ACTION = RecordKey(
    value_schema=_STRICT,
    description="Treatment of the run when the rule is violated.",
    example="action: warn",
    default="fail",
)


def _case(kind: RuleKind, key: RecordKey, *, fields: Callable[[Values], dict[str, Any]], **more: RecordKey) -> Record:
    """Build a rule's record: the key of its kind, the keys of all rules, and the keys of this kind."""
    action = _ROW_ACTION if kind is RuleKind.ROW else _ACTION
    keys = {kind.value: key, "name": _NAME, "action": action, **more}
    return Record(name=f"a rule '{kind.value}'", keys=keys, build=_rule(kind, fields))


RULES: Mapping[str, Record] = {
    "row": _case(
        RuleKind.ROW,
        RecordKey(
            value_schema=SQL,
            description="Condition that is true for a valid row; NULL violates it.",
            example="row: delay >= -120",
            required=True,
        ),
        fields=_row,
        tolerated=_TOLERATED,
    ),
    "unique": _case(
        RuleKind.UNIQUE,
        RecordKey(
            value_schema=COLUMNS,
            description="Columns whose values are unique among all rows.",
            example="unique: [carrier, flight, day]",
            required=True,
        ),
        fields=lambda values: {"columns": values["unique"]},
        tolerated=_TOLERATED,
    ),
    "not_null": _case(
        RuleKind.NOT_NULL,
        RecordKey(
            value_schema=COLUMNS, description="Columns without NULL.", example="not_null: [carrier, day]", required=True
        ),
        fields=lambda values: {"columns": values["not_null"]},
        tolerated=_TOLERATED,
    ),
    "references": _case(
        RuleKind.REFERENCES,
        RecordKey(
            value_schema=TableName(),
            description="The table that contains each value of `columns`.",
            example="references: raw.nyc.airlines",
            required=True,
        ),
        fields=_references,
        columns=RecordKey(
            value_schema=COLUMNS, description="Columns of this table.", example="columns: carrier", required=True
        ),
        to=RecordKey(
            value_schema=COLUMNS,
            description="Columns of the other table; the default is the same names.",
            example="to: carrier",
        ),
        tolerated=_TOLERATED,
    ),
    "rows": _case(
        RuleKind.ROWS,
        RecordKey(
            value_schema=Record(
                name="'rows'",
                some_of=("min", "max"),
                keys={
                    "min": RecordKey(
                        value_schema=WholeNumber(), description="Minimum number of rows.", example="min: 1"
                    ),
                    "max": RecordKey(
                        value_schema=WholeNumber(), description="Maximum number of rows.", example="max: 1000000"
                    ),
                },
                build=_between,
            ),
            description="Allowed number of rows of the table.",
            example="rows: {min: 1}",
            required=True,
        ),
        fields=_rows,
    ),
    "fresh": _case(
        RuleKind.FRESH,
        RecordKey(
            value_schema=Text(word="a column"),
            description="Column whose newest value must be recent.",
            example="fresh: changed_at",
            required=True,
        ),
        fields=lambda values: {"columns": (values["fresh"],), "within_s": values["within"]},
        within=RecordKey(
            value_schema=Duration(),
            description="Maximum age of that value when the run starts.",
            example="within: 2 days",
            required=True,
        ),
    ),
    "no_fewer_rows": _case(
        RuleKind.NO_FEWER_ROWS,
        RecordKey(
            value_schema=Boolean(only=True),
            description="At least as many rows as last published.",
            example="no_fewer_rows: true",
            required=True,
        ),
        fields=lambda values: {},
        tolerated=RecordKey(
            value_schema=RowShare(),
            description="Share of the rows by which the number may shrink.",
            example="tolerated: 5%",
            default="0%",
        ),
    ),
    "empty": _case(
        RuleKind.EMPTY,
        RecordKey(
            value_schema=SQL,
            description="Query that must return no row.",
            example="empty: SELECT * FROM curated.t WHERE a > b",
            required=True,
        ),
        fields=lambda values: {"query": values["empty"].text},
    ),
}

RULE = Cases(
    name="an expectation", short=SQL, from_short=lambda text, site: RULES["row"].build({"row": text}, site), cases=RULES
)
