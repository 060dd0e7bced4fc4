# SPDX-License-Identifier: Apache-2.0
"""Schemas (`NodeSchema`) of scalars in a pipeline's file: each parses a node and has a JSON Schema.

`keys` defines the file's keys by them, so that the parser, the editors' completion and the reference page agree. A
`NodeSchema` returns a value, or records a problem and raises `InvalidNode`. Lists and mappings are in
`compound_schemas`. Must not know the keys.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from limnos.names import display
from limnos.names.errors import InvalidName
from limnos.pipeline.declaration import LoopRows, QueryLoop
from limnos.pipeline.declared_values import Parts, Scalar, SourcePosition
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
    """Raised if a node has no valid value. The problem is already recorded."""


@dataclass(slots=True)
class ProblemNotes:
    """Problems collected while a file is read, and access to the file's directory."""

    beside: PipelineDirectory
    problems: list[Problem] = field(default_factory=list)
    loop_rows: Mapping[str, LoopRows] | None = None
    """The rows of loops over queries, by the names of the loops; None if they are not known yet."""
    query_loops: list[QueryLoop] = field(default_factory=list)
    """The loops over queries whose rows are not known yet."""

    def add(self, message: str, at: SourcePosition) -> None:
        """Record a problem and continue."""
        self.problems.append(Problem(message, at))

    def bad(self, message: str, at: SourcePosition) -> InvalidNode:
        """Record a problem of a node without a usable value. The caller raises the returned error."""
        self.add(message, at)
        return InvalidNode()


@dataclass(frozen=True, slots=True)
class NodeSite:
    """The position in the file of a value that is being built. `add` and `bad` record problems of the whole value."""

    node: YamlNode
    notes: ProblemNotes

    @property
    def at(self) -> SourcePosition:
        """The position of the YAML node in the file, for problems."""
        return self.node.at

    @property
    def beside(self) -> PipelineDirectory:
        """The directory of the pipeline's file, which contains its SQL files and Python modules."""
        return self.notes.beside

    def add(self, message: str) -> None:
        """Record a problem and continue."""
        self.notes.add(message, self.at)

    def bad(self, message: str) -> InvalidNode:
        """Record a problem of a node without a usable value, and return the error that the caller raises."""
        return self.notes.bad(message, self.at)


class NodeSchema(ABC):
    """The schema of a YAML node in the file: it validates the node, converts it, and has a JSON Schema."""

    word: str
    """The schema's name in messages and pages: "text", "a list of text"."""

    @abstractmethod
    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401  (each schema has a value type of its own)
        """Validate a YAML node and convert it to a value. Raises InvalidNode."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the JSON Schema of the accepted nodes."""


def describe_node(node: YamlNode) -> str:
    """Return a description of a node for a message: "a mapping", "'text'"."""
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    if node.value is None:
        return "nothing"
    return f"'{node.text[:40]}'"


@dataclass(frozen=True, slots=True)
class Text(NodeSchema):
    """A string with at least one non-blank character. With `pattern` the whole string must match it; `rule` describes
    the pattern in messages.
    """

    word: str = "text"
    pattern: str | None = None
    rule: str = ""
    sql: bool = False
    """Whether to return the node instead of its string, because its position is needed."""

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            raise notes.bad(f"{self.word} is expected, not {describe_node(node)}{self._hint(node)}", node.at)
        if not node.value.strip():
            raise notes.bad(f"{self.word} is expected, not an empty string", node.at)
        if self.pattern is not None and not re.fullmatch(self.pattern, node.value):
            raise notes.bad(f"'{node.value[:80]}' is not allowed here: {self.rule}", node.at)
        if not self.sql:
            return node.value
        if node.joined and "--" in node.value:
            raise notes.bad(
                "a comment (--) in lines that YAML joins hides the lines after it: begin the string with '|'", node.at
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
        return "; a string with a comma within {…} needs quotes" if self.word == "text" else ""


@dataclass(frozen=True, slots=True)
class Boolean(NodeSchema):
    """A YAML boolean: true or false."""

    word: str = "true or false"
    only: bool | None = None

    def read(self, node: YamlNode, notes: ProblemNotes) -> bool:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, bool):
            raise notes.bad(f"true or false is expected, not {describe_node(node)}", node.at)
        if self.only is not None and node.value is not self.only:
            raise notes.bad(f"only '{str(self.only).lower()}' is allowed here; leave the key out instead", node.at)
        return node.value

    def schema(self) -> Schema:
        return {"type": "boolean"} if self.only is None else {"const": self.only}


@dataclass(frozen=True, slots=True)
class WholeNumber(NodeSchema):
    """An integer from `least` to `most`."""

    least: int = 0
    most: int = 10**18
    word: str = "a whole number"

    def read(self, node: YamlNode, notes: ProblemNotes) -> int:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int):
            raise notes.bad(f"a whole number is expected, not {describe_node(node)}", node.at)
        if not self.least <= value <= self.most:
            raise notes.bad(f"{value} is not from {self.least} to {self.most}", node.at)
        return value

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class RowShare(NodeSchema):
    """A share of the rows: `1%`, or a number from 0 to 1."""

    word: str = "a share like 1% or 0.01"

    def read(self, node: YamlNode, notes: ProblemNotes) -> float:
        value = node.value if isinstance(node, ScalarNode) else None
        match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            value = float(match[1]) / 100
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise notes.bad(f"a share from 0% to 100% is expected (1%, 0.01), not {describe_node(node)}", node.at)
        return float(value)

    def schema(self) -> Schema:
        percent = r"^(?:100(?:\.0+)?|\d{1,2}(?:\.\d+)?) ?%$"
        return {"oneOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": percent}]}


@dataclass(frozen=True, slots=True)
class Duration(NodeSchema):
    """A length of time: `2 days`, `36h`, `90 minutes`, `1 week`."""

    word: str = "a duration like '2 days' or 36h"

    def read(self, node: YamlNode, notes: ProblemNotes) -> int:
        value = node.value if isinstance(node, ScalarNode) else None
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise notes.bad(f"a duration is expected ('2 days', 36h, '90 minutes'), not {describe_node(node)}", node.at)
        return int(float(match[1]) * _SECONDS[match[2][0]])

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{_DURATION.pattern})$"}


@dataclass(frozen=True, slots=True)
class Choice(NodeSchema):
    """An enumeration: one of several allowed words."""

    words: tuple[str, ...]

    @property
    def word(self) -> str:  # type: ignore[override]
        return "one of " + ", ".join(self.words)

    def read(self, node: YamlNode, notes: ProblemNotes) -> str:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, str) or value not in self.words:
            text = nearest_word(value, self.words) if isinstance(value, str) else ""
            raise notes.bad(f"{describe_node(node)} is not one of {', '.join(self.words)}{text}", node.at)
        return value

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class AnyScalar(NodeSchema):
    """A scalar of any type (string, number, boolean). With `as_text` its value is a string, for options of Spark's
    readers.
    """

    word: str = "text or a number"
    as_text: bool = True

    def read(self, node: YamlNode, notes: ProblemNotes) -> Scalar:
        if not isinstance(node, ScalarNode) or node.value is None:
            raise notes.bad(f"text or a number is expected, not {describe_node(node)}", node.at)
        if not self.as_text:
            return node.value
        return node.text if not isinstance(node.value, bool) else str(node.value).lower()

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}


@dataclass(frozen=True, slots=True)
class TableName(NodeSchema):
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
