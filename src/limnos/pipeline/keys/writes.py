"""Keys of `write`: the modes and what each takes.

Job: the tables. May import this room's values and shapes; it must not know how rows are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from limnos.pipeline.declaration import Mode, Write
from limnos.pipeline.keys.words import COLUMNS, SQL, TEXT
from limnos.pipeline.shapes import Boolean, Cases, Choice, Key, Notes, Record, Site, Values
from limnos.pipeline.yaml import Node, ScalarNode

_KEYS = Key(COLUMNS, "Columns by which a row is known; never NULL, never twice.", "keys: [flight_id]", required=True)
_MISSING = "Keys that the source lacks are {}. The step then reads the whole source, never an increment."


def _write(mode: Mode) -> Callable[[Values, Site], Write]:
    def build(values: Values, site: Site) -> Write:
        kept = {name: value for name, value in values.items() if name != "mode"}
        for name in ("delete_when", "as_of"):
            if name in kept:
                kept[name] = kept[name].text
        return Write(mode=mode, **kept)

    return build


def _mode(mode: Mode, *, keys: Mapping[str, Key]) -> Record:
    told = Key(Choice((mode.value,)), MODES[mode], f"mode: {mode.value}", required=True)
    return Record(name=f"'write: {mode.value}'", keys={"mode": told, **keys}, build=_write(mode))


MODES = {
    Mode.REPLACE: "The step's rows are the whole table.",
    Mode.APPEND: "The rows are added.",
    Mode.PARTITIONS: "The partitions that the rows fall into are replaced.",
    Mode.MERGE: "Rows are updated by their keys, or added.",
    Mode.HISTORY: "A row for each state of a key, with the times it held (slowly changing dimension, type 2).",
}
_SIMPLE = (Mode.REPLACE, Mode.APPEND, Mode.PARTITIONS)


class _ShortMode(Choice):
    """The modes that one word says; of the others it is told what they need besides."""

    def read(self, node: Node, notes: Notes) -> str:
        if isinstance(node, ScalarNode) and node.value in {"merge", "history"}:
            raise notes.bad(f"'{node.value}' needs keys: write {{mode: {node.value}, keys: [id]}}", node.at)
        return super().read(node, notes)


WRITE = Cases(
    name="'write'",
    tag="mode",
    short=_ShortMode(tuple(mode.value for mode in _SIMPLE)),
    from_short=lambda word, site: Write(mode=Mode(word)),
    cases={
        **{mode.value: _mode(mode, keys={}) for mode in _SIMPLE},
        "merge": _mode(
            Mode.MERGE,
            keys={
                "keys": _KEYS,
                "delete_when": Key(
                    SQL, "Condition over the source's row: its key is deleted.", "delete_when: op = 'D'"
                ),
                "delete_missing": Key(Boolean(), _MISSING.format("deleted"), "delete_missing: true", default="false"),
            },
        ),
        "history": _mode(
            Mode.HISTORY,
            keys={
                "keys": _KEYS,
                "tracked": Key(
                    COLUMNS, "Columns whose change makes a new row; else all but the keys.", "tracked: [price]"
                ),
                "as_of": Key(
                    SQL, "Expression of the time from which a row holds; else the run's.", "as_of: changed_at"
                ),
                "valid_from": Key(
                    TEXT, "Column of the time from which a row holds.", "valid_from: from_time", default="valid_from"
                ),
                "valid_to": Key(
                    TEXT, "Column of the time until which it held.", "valid_to: to_time", default="valid_to"
                ),
                "current": Key(TEXT, "Column that marks the newest state.", "current: is_latest", default="is_current"),
                "delete_missing": Key(Boolean(), _MISSING.format("closed"), "delete_missing: true", default="false"),
            },
        ),
    },
)
