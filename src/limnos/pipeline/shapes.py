"""Shapes of a pipeline's file: each parses a node and describes itself as JSON Schema.

Job: the small language in which `keys` defines the file's keys, so that the reader, the editors' completion and the
reference page agree. A shape returns a value, or records a problem and raises `InvalidNode`. Records continue with
their other keys, so that one reading finds all problems. May import `names` and this room's values; it must not know
the keys.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from limnos.names import display
from limnos.names.errors import InvalidName
from limnos.pipeline.declaration import Parts, Scalar, SourcePosition
from limnos.pipeline.directory import PipelineDirectory
from limnos.pipeline.problems import Problem, nearest_word
from limnos.pipeline.yaml import ListNode, MapNode, ScalarNode, YamlNode

Schema = dict[str, object]
Values = Mapping[str, Any]
"""Values of a record's keys. Keys that are not in the file are absent."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(s|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?) ?%")


class InvalidNode(Exception):
    """A node gave no value. The problem is already recorded."""


@dataclass(slots=True)
class ProblemNotes:
    """Problems collected while a file is read, and access to the file's directory."""

    beside: PipelineDirectory
    problems: list[Problem] = field(default_factory=list)

    def add(self, message: str, at: SourcePosition) -> None:
        """Record a problem and continue."""
        self.problems.append(Problem(message, at))

    def bad(self, message: str, at: SourcePosition) -> InvalidNode:
        """Record a problem that leaves no value. The caller raises the returned error."""
        self.add(message, at)
        return InvalidNode()


@dataclass(frozen=True, slots=True)
class NodeSite:
    """The node from which a value is built, for problems with the value as a whole."""

    node: YamlNode
    notes: ProblemNotes

    @property
    def at(self) -> SourcePosition:
        """Position of the node."""
        return self.node.at

    @property
    def beside(self) -> PipelineDirectory:
        """The directory of the file."""
        return self.notes.beside

    def add(self, message: str) -> None:
        """Record a problem and continue."""
        self.notes.add(message, self.at)

    def bad(self, message: str) -> InvalidNode:
        """Record a problem and return the error that the caller raises, because the node has no usable value."""
        return self.notes.bad(message, self.at)


class Shape(ABC):
    """The allowed content of one place in the file."""

    word: str
    """The shape's name in messages and pages: "text", "a list of texts"."""

    @abstractmethod
    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401  (each shape has a type of its own)
        """Return the value of a node. Raises InvalidNode."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the shape as JSON Schema."""


def _kind(node: YamlNode) -> str:
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    if node.value is None:
        return "nothing"
    return f"'{node.text[:40]}'"


@dataclass(frozen=True, slots=True)
class Text(Shape):
    """Text with at least one character that is not blank. All must match `pattern`; `rule` describes that in words."""

    word: str = "text"
    pattern: str | None = None
    rule: str = ""
    sql: bool = False
    """Keep the node instead of the text, because its position is needed."""

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            raise notes.bad(f"{self.word} belongs here, not {_kind(node)}{self._hint(node)}", node.at)
        if not node.value.strip():
            raise notes.bad(f"{self.word} belongs here, not an empty one", node.at)
        if self.pattern is not None and not re.fullmatch(self.pattern, node.value):
            raise notes.bad(f"'{node.value[:80]}' can't stand here: {self.rule}", node.at)
        if not self.sql:
            return node.value
        if node.joined and "--" in node.value:
            raise notes.bad(
                "a comment (--) in lines that YAML joins swallows the rest: begin the text with '|'", node.at
            )
        return node

    def schema(self) -> Schema:
        if self.pattern is None:
            return {"type": "string", "pattern": r"\S"}
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}

    def _hint(self, node: YamlNode) -> str:
        if not isinstance(node, ScalarNode):
            return ""
        if node.value is not None:
            return "; put it in quotes"
        # `{total: Sum, in grams}` has two keys, and the second one has no value.
        return "; one with a comma within {…} stands in quotes" if self.word == "text" else ""


@dataclass(frozen=True, slots=True)
class Boolean(Shape):
    """The word true or false."""

    word: str = "true or false"
    only: bool | None = None

    def read(self, node: YamlNode, notes: ProblemNotes) -> bool:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, bool):
            raise notes.bad(f"true or false belongs here, not {_kind(node)}", node.at)
        if self.only is not None and node.value is not self.only:
            raise notes.bad(f"only '{str(self.only).lower()}' means something here; leave the key out instead", node.at)
        return node.value

    def schema(self) -> Schema:
        return {"type": "boolean"} if self.only is None else {"const": self.only}


@dataclass(frozen=True, slots=True)
class WholeNumber(Shape):
    """A whole number from `least` to `most`."""

    least: int = 0
    most: int = 10**18
    word: str = "a whole number"

    def read(self, node: YamlNode, notes: ProblemNotes) -> int:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int):
            raise notes.bad(f"a whole number belongs here, not {_kind(node)}", node.at)
        if not self.least <= value <= self.most:
            raise notes.bad(f"{value} is not from {self.least} to {self.most}", node.at)
        return value

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class RowShare(Shape):
    """A share of the rows: `1%`, or a number from 0 to 1."""

    word: str = "a share like 1% or 0.01"

    def read(self, node: YamlNode, notes: ProblemNotes) -> float:
        value = node.value if isinstance(node, ScalarNode) else None
        match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            value = float(match[1]) / 100
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise notes.bad(f"a share from 0% to 100% belongs here (1%, 0.01), not {_kind(node)}", node.at)
        return float(value)

    def schema(self) -> Schema:
        percent = r"^(?:100(?:\.0+)?|\d{1,2}(?:\.\d+)?) ?%$"
        return {"oneOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": percent}]}


@dataclass(frozen=True, slots=True)
class Duration(Shape):
    """A length of time: `2 days`, `36h`, `90 minutes`, `1 week`."""

    word: str = "a length of time like '2 days' or 36h"

    def read(self, node: YamlNode, notes: ProblemNotes) -> int:
        value = node.value if isinstance(node, ScalarNode) else None
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise notes.bad(f"a length of time belongs here ('2 days', 36h, '90 minutes'), not {_kind(node)}", node.at)
        return int(float(match[1]) * _SECONDS[match[2][0]])

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{_DURATION.pattern})$"}


@dataclass(frozen=True, slots=True)
class Choice(Shape):
    """One of several words."""

    words: tuple[str, ...]

    @property
    def word(self) -> str:  # type: ignore[override]
        return "one of " + ", ".join(self.words)

    def read(self, node: YamlNode, notes: ProblemNotes) -> str:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, str) or value not in self.words:
            text = nearest_word(value, self.words) if isinstance(value, str) else ""
            raise notes.bad(f"{_kind(node)} is none of {', '.join(self.words)}{text}", node.at)
        return value

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class AnyScalar(Shape):
    """Text, number, true or false, as written. For keys whose consumer takes text."""

    word: str = "text or a number"
    as_text: bool = True

    def read(self, node: YamlNode, notes: ProblemNotes) -> Scalar:
        if not isinstance(node, ScalarNode) or node.value is None:
            raise notes.bad(f"text or a number belongs here, not {_kind(node)}", node.at)
        if not self.as_text:
            return node.value
        return node.text if not isinstance(node.value, bool) else str(node.value).lower()

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}


@dataclass(frozen=True, slots=True)
class TableName(Shape):
    """A table's name: parts separated by dots, in back quotes if needed."""

    word: str = "a table's name"
    parts_min: int = 2

    def read(self, node: YamlNode, notes: ProblemNotes) -> Parts:
        text = Text(word=self.word).read(node, notes)
        try:
            parts = display.parse(text)
        except InvalidName as error:
            raise notes.bad(error.message, node.at) from None
        if len(parts) < self.parts_min:
            raise notes.bad(f"'{text}' has no namespace: write it like curated.{text}", node.at)
        return parts

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"\.|^[^.]+$" if self.parts_min < 2 else r".\.."}


@dataclass(frozen=True, slots=True)
class ListOf(Shape):
    """A list without duplicates. `single`: one item without brackets is allowed."""

    item: Shape
    single: bool = False
    least: int = 1

    @property
    def word(self) -> str:  # type: ignore[override]
        return f"{self.item.word}, or a list of such" if self.single else f"a list of {self.item.word}"

    def read(self, node: YamlNode, notes: ProblemNotes) -> tuple[Any, ...]:
        if self.single and isinstance(node, ScalarNode) and node.value is not None:
            return (self.item.read(node, notes),)
        if not isinstance(node, ListNode):
            raise notes.bad(f"{self.word} belongs here, not {_kind(node)}", node.at)
        if len(node.items) < self.least:
            raise notes.bad("the list is empty: leave the key out", node.at)
        values = []
        for item in node.items:
            try:
                value = self.item.read(item, notes)
            except InvalidNode:
                continue
            if value in values:
                notes.add(f"{_kind(item)} stands twice in this list", item.at)
            values.append(value)
        if len(values) < len(node.items):
            raise InvalidNode
        return tuple(values)

    def schema(self) -> Schema:
        item = self.item.schema()
        many: Schema = {"type": "array", "items": item, "minItems": self.least, "uniqueItems": True}
        return {"anyOf": [item, many]} if self.single else many


@dataclass(frozen=True, slots=True)
class MapOf(Shape):
    """A mapping with free keys. Returns triples of key, value and position in the order of the file."""

    key: Shape
    value: Shape
    least: int = 1
    most: int = 100_000

    @property
    def word(self) -> str:  # type: ignore[override]
        return f"a mapping from {self.key.word} to {self.value.word}"

    def read(self, node: YamlNode, notes: ProblemNotes) -> tuple[tuple[Any, Any, SourcePosition], ...]:
        if not isinstance(node, MapNode):
            raise notes.bad(f"{self.word} belongs here, not {_kind(node)}", node.at)
        if not self.least <= len(node.entries) <= self.most:
            text = "it is empty" if not node.entries else f"it has {len(node.entries):,} keys, more than {self.most:,}"
            raise notes.bad(f"{text}: {self.word} belongs here", node.at)
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
    """Return a key as text, whatever it looks like, as in JSON."""
    return ScalarNode(at=key.at, text=key.text, value=key.text, text_at=key.text_at)


@dataclass(frozen=True, slots=True)
class RecordKey:
    """A key of a record: its shape, description and example."""

    shape: Shape
    told: str
    example: str
    required: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Shape):
    """A mapping with known keys, converted to a value by `build`."""

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
            raise notes.bad(f"{self.name}: {self.word} belongs here, not {_kind(node)}", node.at)
        before = len(notes.problems)
        self._require(node, notes)
        values: dict[str, Any] = {}
        for key, value in node.entries:
            known = self.keys.get(key.text)
            if known is None:
                self._unknown(key, value, notes=notes)
                continue
            try:
                values[key.text] = known.shape.read(value, notes)
            except InvalidNode:
                continue
        if len(notes.problems) > before:
            raise InvalidNode
        return self.build(values, NodeSite(node, notes))

    def _unknown(self, key: ScalarNode, value: YamlNode, *, notes: ProblemNotes) -> None:
        if key.text == "<<":
            notes.add("keys are not merged ('<<'): write them out, or use an alias for a whole value", key.at)
            return
        if isinstance(value, ScalarNode) and not value.text:
            notes.add(f"'{key.text}' has no value; a comma within {{…}} ends a text, unless it is in quotes", key.at)
            return
        known = tuple(self.keys)
        text = nearest_word(key.text, known) or f"; {self.name} takes {', '.join(known)}"
        notes.add(f"unknown key '{key.text}'{text}", key.at)

    def _require(self, node: MapNode, notes: ProblemNotes) -> None:
        written = {key.text: key.at for key, _ in node.entries}
        for name, key in self.keys.items():
            if key.required and name not in written:
                notes.add(f"{self.name} needs '{name}': {key.example.strip()}", node.at)
        chosen = [name for name in self.one_of if name in written]
        if self.one_of and not chosen:
            notes.add(f"{self.name} needs one of {', '.join(self.one_of)}", node.at)
        if len(chosen) > 1:
            notes.add(f"{self.name} has {' and '.join(chosen)}: only one of them", written[chosen[1]])
        if self.some_of and not any(name in written for name in self.some_of):
            notes.add(f"{self.name} needs {' or '.join(self.some_of)}", node.at)
        for name, other in self.together.items():
            if name in written and other not in written:
                notes.add(f"'{name}' means something only beside '{other}'", written[name])

    def schema(self) -> Schema:
        properties = {name: {**key.shape.schema(), "description": key.told} for name, key in self.keys.items()}
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
class Cases(Shape):
    """One of several records. A key that only one of them has selects it, or the value of the key `tag`.

    `short` is the shape allowed instead of a mapping.
    """

    name: str
    cases: Mapping[str, Record]
    tag: str | None = None
    """The key whose value selects the record; None: the first record whose own key is present."""
    short: Shape | None = None
    from_short: Callable[[Any, NodeSite], Any] | None = None

    @property
    def word(self) -> str:  # type: ignore[override]
        mapping = f"a mapping with {self.tag or 'one of'} {', '.join(self.cases)}"
        return f"{self.short.word}, or {mapping}" if self.short else mapping

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        if self.short is not None and self.from_short is not None and isinstance(node, ScalarNode):
            return self.from_short(self.short.read(node, notes), NodeSite(node, notes))
        if not isinstance(node, MapNode):
            raise notes.bad(f"{self.name}: {self.word} belongs here, not {_kind(node)}", node.at)
        return self.cases[self._case(node, notes)].read(node, notes)

    def _case(self, node: MapNode, notes: ProblemNotes) -> str:
        if self.tag is not None:
            chooser = node.get(self.tag)
            if chooser is None:
                raise notes.bad(f"{self.name} needs '{self.tag}', one of {', '.join(self.cases)}", node.at)
            return Choice(tuple(self.cases)).read(chooser, notes)
        written = [key.text for key, _ in node.entries]
        result = next((case for case in self.cases if case in written), None)
        if result is None:
            text = next((hint for key in written if (hint := nearest_word(key, tuple(self.cases)))), "")
            raise notes.bad(f"{self.name} needs one of {', '.join(self.cases)}{text}", node.at)
        return result

    def schema(self) -> Schema:
        cases: list[Schema] = [record.schema() for record in self.cases.values()]
        return {"oneOf": [*([self.short.schema()] if self.short else []), *cases]}
