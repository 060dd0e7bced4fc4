# SPDX-License-Identifier: Apache-2.0
"""A YAML parser that returns a tree of nodes with positions, limits size and depth, and refuses tags.

Parses text into `YamlNode`. Scalars follow the core schema of YAML 1.2 (`yes` and `2026-01-01` are strings); keys are
unique, tags are refused, expanded aliases are counted as nodes. The tree is built from the parser's events instead of
PyYAML's loader, so that neither depth nor aliases can exhaust the machine. Must not know pipelines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import yaml

from limnos.pipeline.declared_values import Scalar, SourcePosition
from limnos.pipeline.problems import InvalidPipeline, Problem

BYTES_MAX = 4_000_000
DEPTH_MAX = 40
NODES_MAX = 1_000_000
"""The maximum number of nodes, with aliases expanded."""
DIGITS_MAX = 18
"""The maximum number of digits of an integer, which then fits into 64 bits."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(slots=True, kw_only=True)
class ScalarNode:
    """A scalar: its original `text`, and its `value`."""

    at: SourcePosition
    text: str
    value: Scalar
    text_at: SourcePosition
    """The position of the text's first character. For a block it is in the next line."""
    joined: bool = False
    """Whether the text joins several lines of the file, so that its line breaks differ from the file's."""


@dataclass(slots=True, kw_only=True)
class ListNode:
    """A YAML list: its items, in order."""

    at: SourcePosition
    items: list[YamlNode] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MapNode:
    """A YAML mapping: its entries, in the order of the file."""

    at: SourcePosition
    entries: list[tuple[ScalarNode, YamlNode]] = field(default_factory=list)

    def get(self, key: str) -> YamlNode | None:
        """Return the value of a key; None if the mapping lacks it."""
        return next((value for name, value in self.entries if name.text == key), None)


YamlNode = ScalarNode | ListNode | MapNode


def parse(text: str, *, file: str) -> YamlNode:
    """Parse a YAML document to a tree of nodes. Raises InvalidPipeline with positions in `file`."""
    if len(text) > BYTES_MAX:
        raise InvalidPipeline(
            [Problem(f"more than {BYTES_MAX:,} characters: divide the pipeline", SourcePosition(file, 1, 1))]
        )
    builder = _TreeBuilder(file, text.split("\n"))
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise InvalidPipeline([_syntax(error, builder)]) from None
    except yaml.YAMLError as error:  # from the reader: a character that YAML does not allow
        raise InvalidPipeline(
            [Problem(f"not YAML: {' '.join(str(error).split())}", SourcePosition(file, 1, 1))]
        ) from None
    if builder.problems:
        raise InvalidPipeline(builder.problems)
    if builder.root is None:
        raise InvalidPipeline([Problem("the file is empty: begin with 'pipeline: NAME'", SourcePosition(file, 1, 1))])
    return builder.root


def plain(node: YamlNode) -> object:
    """Convert the node to plain Python values, for validation by a JSON Schema."""
    if isinstance(node, MapNode):
        return {key.text: plain(value) for key, value in node.entries}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return node.value


class _TreeBuilder:
    """Builds the tree, with a stack instead of recursion, and checks the limits at each node."""

    def __init__(self, file: str, lines: list[str]) -> None:
        self.problems: list[Problem] = []
        self.root: YamlNode | None = None
        self.file = file
        self.lines = lines
        self._open: list[tuple[YamlNode, str | None]] = []
        self._keys: list[ScalarNode | None] = []
        self._seen: list[set[str]] = []
        self._anchors: dict[str, YamlNode] = {}
        self._sizes: dict[int, int] = {}
        self._count = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise InvalidPipeline([Problem("a second document ('---'): a file is one pipeline", self._place(event))])
        if isinstance(event, yaml.NodeEvent):
            self._refuse_tag(event)
        if isinstance(event, yaml.ScalarEvent):
            self._put(self._scalar(event), anchor=event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._put_alias(event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._begin(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._end()

    def _begin(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        at = self._place(event)
        if len(self._open) >= DEPTH_MAX:
            raise InvalidPipeline([Problem(f"nested more than {DEPTH_MAX} deep", at)])
        is_map = isinstance(event, yaml.MappingStartEvent)
        self._require_value(at)
        self._open.append((MapNode(at=at) if is_map else ListNode(at=at), event.anchor))
        self._keys.append(None)
        self._seen.append(set())
        self._sizes[id(self._open[-1][0])] = self._count

    def _end(self) -> None:
        node, anchor = self._open.pop()
        self._keys.pop()
        self._seen.pop()
        self._put(node, anchor=anchor)
        self._sizes[id(node)] = self._count - self._sizes[id(node)]

    def _put(self, node: YamlNode, *, anchor: str | None) -> None:
        self._count_values(1, node.at)
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self.root = node
            return
        parent = self._open[-1][0]
        if isinstance(parent, ListNode):
            parent.items.append(node)
        elif isinstance(parent, MapNode):
            self._put_in_map(parent, node)

    def _put_in_map(self, parent: MapNode, node: YamlNode) -> None:
        key = self._keys[-1]
        if key is None:
            self._keys[-1] = node if isinstance(node, ScalarNode) else None
            if not isinstance(node, ScalarNode):
                raise InvalidPipeline([Problem("a key must be a string, not a list or mapping", node.at)])
            return
        self._keys[-1] = None
        if key.text in self._seen[-1]:
            first = next(one for one, _ in parent.entries if one.text == key.text)
            self.problems.append(Problem(f"'{key.text}' is repeated here; first in line {first.at.line}", key.at))
            return
        self._seen[-1].add(key.text)
        parent.entries.append((key, node))

    def _put_alias(self, event: yaml.AliasEvent) -> None:
        at = self._place(event)
        node = self._anchors.get(event.anchor or "")
        if node is None:
            raise InvalidPipeline([Problem(f"'*{event.anchor}' refers to no anchor that is complete before it", at)])
        self._count_values(self._sizes.get(id(node), 1), at)
        self._put(node, anchor=None)

    def _require_value(self, at: SourcePosition) -> None:
        if self._open and isinstance(self._open[-1][0], MapNode) and self._keys[-1] is None:
            raise InvalidPipeline([Problem("a key must be a string, not a list or mapping", at)])

    def _count_values(self, size: int, at: SourcePosition) -> None:
        self._count += size
        if self._count > NODES_MAX:
            raise InvalidPipeline([Problem(f"more than {NODES_MAX:,} values once aliases are written out", at)])

    def _refuse_tag(self, event: yaml.NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            at = self._place(event)
            short = tag.replace("tag:yaml.org,2002:", "!!", 1)
            self.problems.append(Problem(f"the tag '{short}' is not supported in a pipeline; leave it out", at))

    def _place(self, event: yaml.Event) -> SourcePosition:
        mark = event.start_mark
        return SourcePosition(self.file, mark.line + 1, mark.column + 1) if mark else SourcePosition(self.file, 1, 1)

    def _scalar(self, event: yaml.ScalarEvent) -> ScalarNode:
        at = self._place(event)
        value = self._value(event, at)
        several = bool(event.start_mark and event.end_mark and event.end_mark.line > event.start_mark.line)
        return ScalarNode(
            at=at,
            text=event.value,
            value=value,
            text_at=self._text_place(event, at),
            joined=several and event.style != "|",
        )

    def _value(self, event: yaml.ScalarEvent, at: SourcePosition) -> Scalar:
        text: str = event.value
        if event.style:  # quoted and block scalars are always strings
            return text
        if text in _NULL:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if _NO_NUMBER.fullmatch(text):
            self.problems.append(Problem(f"{text} is not a number that can be used here", at))
        elif _INT.fullmatch(text) and len(text) <= DIGITS_MAX:
            return int(text)
        elif _FLOAT.fullmatch(text) and len(text) <= DIGITS_MAX * 2:
            return self._float(text, at)
        return text

    def _float(self, text: str, at: SourcePosition) -> float:
        number = float(text)
        if number in {float("inf"), float("-inf")}:
            self.problems.append(Problem(f"{text} is too large", at))
        return number

    def _text_place(self, event: yaml.ScalarEvent, at: SourcePosition) -> SourcePosition:
        if event.style in {"'", '"'}:
            return SourcePosition(self.file, at.line, at.column + 1)
        if event.style not in {"|", ">"}:
            return at
        blank, result = 0, ""
        for line in event.value.split("\n"):
            if line.strip():
                result = line
                break
            blank += 1
        number = at.line + blank
        raw = self.lines[number].rstrip("\r") if number < len(self.lines) else ""
        return SourcePosition(self.file, at.line + 1, max(len(raw) - len(result), 0) + 1)


_SYNTAX = (
    ("',' or ']'", "the list that '[' opens in line {line} is not closed before this: ',' or ']' is missing; {quotes}"),
    (
        "',' or '}'",
        "the mapping that '{{' opens in line {line} is not closed before this: ',' or '}}' is missing; {quotes}",
    ),
    (
        "mapping values are not allowed",
        "a key with ': ' cannot stand here: {quotes}, and indent keys of one mapping equally",
    ),
    (
        "block sequence entries",
        "an item '- ' cannot follow its key in one line: begin the list in the next line, or write [a, b]",
    ),
    (
        "expected '-' indicator",
        "this line is no item of the list above it: begin it with '- ', or indent it like its mapping's keys",
    ),
    ("comment or line break", "nothing may follow '|' or '>' in its line: begin the text in the next line"),
    ("expected node content", "a value is missing before this; {quotes}"),
    ("unknown escape", "in double quotes '\\' begins an escape, and there is none like this: write single quotes"),
    ("could not find expected ':'", "a key needs ': ' after it, or its line belongs to a text that '|' begins"),
    ("unexpected ':'", "a blank is missing after ':'"),
    ("alphabetic or numeric", "a value cannot begin with '*' or '&': put it in quotes"),
)
"""Parts of the parser's messages, and what they mean for the author. `line` is where the unfinished part begins."""
_QUOTES = "put a value with ': ', ',' or brackets in quotes"


def _syntax(error: yaml.MarkedYAMLError, builder: _TreeBuilder) -> Problem:
    mark, began = error.problem_mark or error.context_mark, error.context_mark or error.problem_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    text = ", ".join(part for part in (error.context, error.problem) if part)
    raw = builder.lines[line] if line < len(builder.lines) else ""
    advice = next((advice for part, advice in _SYNTAX if part in text), None)
    if "\t" in raw[: len(raw) - len(raw.lstrip())]:
        text = "a tab stands before the first word of this line: indent by blanks, not by tabs"
    elif "quoted scalar" in text and "end of stream" in text and began is not None:
        text, line, column = "the quote that opens here is not closed", began.line, began.column
    elif "cannot start any token" in text:
        text = f"a value cannot begin with {raw[column : column + 1]}: put it in quotes"
    elif "did not find expected key" in text:
        is_behind = bool(raw[:column].strip())
        text = (
            "text follows a closing quote: double a quote within quotes ('it''s'), or put the whole value in quotes"
            if is_behind
            else "this line is indented like none of the keys above it: indent it like the keys of its mapping"
        )
    elif advice is not None:
        text = advice.format(line=began.line + 1 if began else 1, quotes=_QUOTES)
    return Problem(f"not YAML: {text}", SourcePosition(builder.file, line + 1, column + 1))
