# SPDX-License-Identifier: Apache-2.0
"""Keys of `write`: the modes and their settings.

Defines the record of each mode. Must not know the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from limnos.pipeline.compound_schemas import Cases, Record, RecordKey
from limnos.pipeline.declaration import WriteDeclaration, WriteMode
from limnos.pipeline.keys.shared import COLUMNS, SQL, TEXT
from limnos.pipeline.node_schemas import Boolean, Choice, NodeSite, ProblemNotes, Values, describe_node
from limnos.pipeline.problems import nearest_word
from limnos.pipeline.yaml import ScalarNode, YamlNode

_KEYS = RecordKey(
    value_schema=COLUMNS,
    description="Columns that identify a row; never NULL, unique.",
    example="keys: [flight_id]",
    required=True,
)
_MISSING = "Keys that the source lacks are {}. The step then reads the whole source, never an increment."


def _write(mode: WriteMode) -> Callable[[Values, NodeSite], WriteDeclaration]:
    def build(values: Values, site: NodeSite) -> WriteDeclaration:
        fields = {name: value for name, value in values.items() if name != "mode"}
        for name in ("delete_when", "as_of"):
            if name in fields:
                fields[name] = fields[name].text
        return WriteDeclaration(mode=mode, **fields)

    return build


def _mode(mode: WriteMode, *, keys: Mapping[str, RecordKey]) -> Record:
    key = RecordKey(
        value_schema=Choice((mode.value,)), description=MODES[mode], example=f"mode: {mode.value}", required=True
    )
    return Record(name=f"'write: {mode.value}'", keys={"mode": key, **keys}, build=_write(mode))


MODES = {
    WriteMode.REPLACE: "The step's rows are the whole table.",
    WriteMode.APPEND: "The rows are added.",
    WriteMode.PARTITIONS: "The partitions that the rows fall into are replaced.",
    WriteMode.MERGE: "Rows are updated by their keys, or added.",
    WriteMode.HISTORY: (
        "A row for each state of a key, with its period of validity (slowly changing dimension, type 2)."
    ),
}
_SIMPLE = (WriteMode.REPLACE, WriteMode.APPEND, WriteMode.PARTITIONS)


class _ShortMode(Choice):
    """The schema of a mode written as one word. The message for a mode that needs settings names them."""

    def read(self, node: YamlNode, notes: ProblemNotes) -> str:
        if isinstance(node, ScalarNode) and node.value in {"merge", "history"}:
            raise notes.bad(f"'{node.value}' needs keys: write {{mode: {node.value}, keys: [id]}}", node.at)
        if isinstance(node, ScalarNode) and node.text not in self.words:
            advice = nearest_word(node.text, self.words) or "; merge and history need keys: {mode: merge, keys: [id]}"
            raise notes.bad(f"{describe_node(node)} is not one of {', '.join(self.words)}{advice}", node.at)
        return super().read(node, notes)


WRITE = Cases(
    name="'write'",
    tag="mode",
    short=_ShortMode(tuple(mode.value for mode in _SIMPLE)),
    from_short=lambda word, site: WriteDeclaration(mode=WriteMode(word)),
    cases={
        **{mode.value: _mode(mode, keys={}) for mode in _SIMPLE},
        "merge": _mode(
            WriteMode.MERGE,
            keys={
                "keys": _KEYS,
                "delete_when": RecordKey(
                    value_schema=SQL,
                    description="Condition over a row of the step, which has the columns it reads: its key is deleted.",
                    example="delete_when: op = 'D'",
                ),
                "delete_missing": RecordKey(
                    value_schema=Boolean(),
                    description=_MISSING.format("deleted"),
                    example="delete_missing: true",
                    default="false",
                ),
            },
        ),
        "history": _mode(
            WriteMode.HISTORY,
            keys={
                "keys": _KEYS,
                "tracked": RecordKey(
                    value_schema=COLUMNS,
                    description="Columns whose change creates a new row; the default is all but the keys.",
                    example="tracked: [price]",
                ),
                "as_of": RecordKey(
                    value_schema=SQL,
                    description="Expression of the time from which a row is valid; the default is the run's time.",
                    example="as_of: changed_at",
                ),
                "valid_from": RecordKey(
                    value_schema=TEXT,
                    description="Column of the time from which a row is valid.",
                    example="valid_from: from_time",
                    default="valid_from",
                ),
                "valid_to": RecordKey(
                    value_schema=TEXT,
                    description="Column of the time until which it was valid.",
                    example="valid_to: to_time",
                    default="valid_to",
                ),
                "current": RecordKey(
                    value_schema=TEXT,
                    description="Column that marks the newest state.",
                    example="current: is_latest",
                    default="is_current",
                ),
                "delete_missing": RecordKey(
                    value_schema=Boolean(),
                    description=_MISSING.format("closed"),
                    example="delete_missing: true",
                    default="false",
                ),
            },
        ),
    },
)
