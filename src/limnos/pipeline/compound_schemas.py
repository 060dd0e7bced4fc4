# SPDX-License-Identifier: Apache-2.0
"""Schemas (`NodeSchema`) of lists and mappings in a pipeline's file: lists, mappings with any keys, records with fixed
keys, and unions of records.

They are composed of the schemas in `node_schemas`. A record continues with its other keys after a problem, so that one
pass finds all problems. Must not know the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.node_schemas import (
    Choice,
    InvalidNode,
    NodeSchema,
    NodeSite,
    ProblemNotes,
    Schema,
    Values,
    describe_node,
)
from limnos.pipeline.problems import nearest_word
from limnos.pipeline.yaml import ListNode, MapNode, ScalarNode, YamlNode

_FOREIGN: Final = {
    "models": ("steps", "steps: has a key for each table, as raw.shop.orders: {sql: SELECT …}"),
    "materialized": (
        "write",
        "write: says how rows are written (replace, append, merge, …); incremental: true reads only new rows",
    ),
    "incremental_strategy": ("write", "write: says how rows are written, as write: {mode: merge, keys: [id]}"),
    "unique_key": ("write", "keys belong to write: {mode: merge, keys: [id]}"),
    "depends_on": (
        "after",
        "inputs are found in the query; after: names steps that run before this one although it does not read them",
    ),
    "data_tests": ("expect", "expect: has what must be true of the rows, as expect: [amount > 0]"),
    "partition_by": ("partition", "it is partition: here, as partition: days(day)"),
    "query": ("sql", "sql: has the query"),
    "vars": ("parameters", "it is parameters: here, which stand in queries as :day"),
    "description": ("comment", "it is comment: here"),
}
"""Keys of other tools: the key of ours that a record must have, and what to write in place of them."""


@dataclass(frozen=True, slots=True)
class ListOf(NodeSchema):
    """A list without duplicates. `single` allows an item in place of a list of one item. `least` is the smallest
    allowed length.
    """

    item: NodeSchema
    single: bool = False
    least: int = 1

    @property
    def word(self) -> str:  # type: ignore[override]
        return f"{self.item.word}, or a list of them" if self.single else f"a list of {self.item.word}"

    def read(self, node: YamlNode, notes: ProblemNotes) -> tuple[Any, ...]:
        if self.single and isinstance(node, ScalarNode) and node.value is not None:
            return (self.item.read(node, notes),)
        if not isinstance(node, ListNode):
            raise notes.bad(f"{self.word} is expected, not {describe_node(node)}", node.at)
        if len(node.items) < self.least:
            raise notes.bad("the list is empty: leave the key out", node.at)
        values = []
        for item in node.items:
            try:
                value = self.item.read(item, notes)
            except InvalidNode:
                continue
            if value in values:
                notes.add(f"{describe_node(item)} is repeated in this list", item.at)
            values.append(value)
        if len(values) < len(node.items):
            raise InvalidNode
        return tuple(values)

    def schema(self) -> Schema:
        item = self.item.schema()
        many: Schema = {"type": "array", "items": item, "minItems": self.least, "uniqueItems": True}
        return {"anyOf": [item, many]} if self.single else many


@dataclass(frozen=True, slots=True)
class MapOf(NodeSchema):
    """A mapping with any keys. Its value is a tuple of triples (key, value, position), in the order of the file."""

    key: NodeSchema
    value: NodeSchema
    least: int = 1
    most: int = 100_000
    advice: ClassVar[str] = ""
    """What to write, for messages about a value that is no such mapping. Subclasses set it."""

    @property
    def word(self) -> str:  # type: ignore[override]
        return f"a mapping from {self.key.word} to {self.value.word}"

    def read(self, node: YamlNode, notes: ProblemNotes) -> tuple[tuple[Any, Any, SourcePosition], ...]:
        advice = f"; write {self.advice}" if self.advice else ""
        if not isinstance(node, MapNode):
            raise notes.bad(f"{self.word} is expected, not {describe_node(node)}{advice}", node.at)
        if not self.least <= len(node.entries) <= self.most:
            text = "it is empty" if not node.entries else f"it has {len(node.entries):,} keys, more than {self.most:,}"
            raise notes.bad(f"{text}: {self.word} is expected{advice}", node.at)
        pairs = []
        for key, value in node.entries:
            try:
                pairs.append((self.key.read(_as_text(key), notes), self.value.read(value, notes), key.at))
            except InvalidNode:
                continue
        if len(pairs) < len(node.entries):
            raise InvalidNode
        return tuple(pairs)

    def schema(self) -> Schema:
        return {
            "type": "object",
            "propertyNames": self.key.schema(),
            "additionalProperties": self.value.schema(),
            "minProperties": self.least,
        }


def _as_text(key: ScalarNode) -> ScalarNode:
    """Convert a key of any scalar type to a string, in JSON's notation."""
    return ScalarNode(at=key.at, text=key.text, value=key.text, text_at=key.text_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKey:
    """A key of a record: the schema of its value, the description, example and default for the reference page, and
    whether it is required.
    """

    value_schema: NodeSchema
    description: str
    example: str
    required: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(NodeSchema):
    """A mapping with a fixed set of keys, converted to a value by `build`."""

    name: str
    keys: Mapping[str, RecordKey]
    build: Callable[[Values, NodeSite], Any]
    one_of: tuple[str, ...] = ()
    """Exactly one of these keys must be present."""
    together: Mapping[str, str] = field(default_factory=dict)
    """Keys that require another key."""
    some_of: tuple[str, ...] = ()
    """At least one of these keys must be present."""

    @property
    def word(self) -> str:  # type: ignore[override]
        return f"a mapping ({', '.join(self.keys)})"

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        if not isinstance(node, MapNode):
            raise notes.bad(f"{self.name}: {self.word} is expected, not {describe_node(node)}", node.at)
        problem_count = len(notes.problems)
        self._require(node, notes)
        values: dict[str, Any] = {}
        for key, value in node.entries:
            key_schema = self.keys.get(key.text)
            if key_schema is None:
                self._unknown(key, value, notes=notes)
                continue
            try:
                values[key.text] = key_schema.value_schema.read(value, notes)
            except InvalidNode:
                continue
        if len(notes.problems) > problem_count:
            raise InvalidNode
        return self.build(values, NodeSite(node, notes))

    def _unknown(self, key: ScalarNode, value: YamlNode, *, notes: ProblemNotes) -> None:
        if key.text == "<<":
            notes.add(
                "merge keys ('<<') are not supported: write the keys out, or use an alias for a whole value", key.at
            )
            return
        if isinstance(value, ScalarNode) and not value.text:
            notes.add(f"'{key.text}' has no value; a comma within {{…}} ends a string, unless it is in quotes", key.at)
            return
        key_names = tuple(self.keys)
        own, instead = _FOREIGN.get(key.text, ("", ""))
        text = f"; {instead}" if own in self.keys else nearest_word(key.text, key_names)
        text = text or f"; {self.name} takes {', '.join(key_names)}"
        notes.add(f"unknown key '{key.text}'{text}", key.at)

    def _require(self, node: MapNode, notes: ProblemNotes) -> None:
        written_keys = {key.text: key.at for key, _ in node.entries}
        for name, key in self.keys.items():
            if key.required and name not in written_keys:
                notes.add(f"{self.name} needs '{name}': {key.example.strip()}", node.at)
        chosen_keys = [name for name in self.one_of if name in written_keys]
        if self.one_of and not chosen_keys:
            notes.add(f"{self.name} needs one of {', '.join(self.one_of)}", node.at)
        if len(chosen_keys) > 1:
            notes.add(f"{self.name} has {' and '.join(chosen_keys)}: only one of them", written_keys[chosen_keys[1]])
        if self.some_of and not any(name in written_keys for name in self.some_of):
            notes.add(f"{self.name} needs {' or '.join(self.some_of)}", node.at)
        for name, other in self.together.items():
            if name in written_keys and other not in written_keys:
                notes.add(f"'{name}' is only valid together with '{other}'", written_keys[name])

    def schema(self) -> Schema:
        properties = {
            name: {**key.value_schema.schema(), "description": key.description} for name, key in self.keys.items()
        }
        fields: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
        required = [name for name, key in self.keys.items() if key.required]
        if required:
            fields["required"] = required
        if self.one_of:
            fields["oneOf"] = [{"required": [name]} for name in self.one_of]
        if self.some_of:
            fields["anyOf"] = [{"required": [name]} for name in self.some_of]
        if self.together:
            fields["dependentRequired"] = {name: [other] for name, other in self.together.items()}
        return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases(NodeSchema):
    """A union of several records. It is selected by a key that only one of them has, or by the value of the key `tag`.

    `short` is the schema of a scalar that is allowed instead of a mapping; `from_short` converts it.
    """

    name: str
    cases: Mapping[str, Record]
    tag: str | None = None
    """The key whose value selects the record; if None, the first record is selected whose own key is present."""
    short: NodeSchema | None = None
    from_short: Callable[[Any, NodeSite], Any] | None = None

    @property
    def word(self) -> str:  # type: ignore[override]
        mapping = f"a mapping with {self.tag or 'one of'} {', '.join(self.cases)}"
        return f"{self.short.word}, or {mapping}" if self.short else mapping

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        if self.short is not None and self.from_short is not None and isinstance(node, ScalarNode):
            return self.from_short(self.short.read(node, notes), NodeSite(node, notes))
        if not isinstance(node, MapNode):
            raise notes.bad(f"{self.name}: {self.word} is expected, not {describe_node(node)}", node.at)
        return self.cases[self._case(node, notes)].read(node, notes)

    def _case(self, node: MapNode, notes: ProblemNotes) -> str:
        if self.tag is not None:
            chooser = node.get(self.tag)
            if chooser is None:
                raise notes.bad(f"{self.name} needs '{self.tag}', one of {', '.join(self.cases)}", node.at)
            return Choice(tuple(self.cases)).read(chooser, notes)
        written_keys = [key.text for key, _ in node.entries]
        result = next((case for case in self.cases if case in written_keys), None)
        if result is None:
            text = next((hint for key in written_keys if (hint := nearest_word(key, tuple(self.cases)))), "")
            raise notes.bad(f"{self.name} needs one of {', '.join(self.cases)}{text}", node.at)
        return result

    def schema(self) -> Schema:
        cases: list[Schema] = [record.schema() for record in self.cases.values()]
        return {"oneOf": [*([self.short.schema()] if self.short else []), *cases]}
