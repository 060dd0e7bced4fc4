# SPDX-License-Identifier: Apache-2.0
"""Steps made in a loop: `for_each` in a YAML file makes one step of each item.

Expands the nodes of the file before the keys of steps are read, so that each made step is an ordinary one whose
positions are those of the loop. Texts may contain `{{name}}` for the loop's variables. Values are words, so an inserted
value cannot end a string or begin a comment in a query. The items of a loop over a query are its rows, which are known
when a run has started; before that its steps are left out. Must not know the keys of a step.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

from limnos.pipeline.compound_schemas import MapOf
from limnos.pipeline.declaration import LOOP_VARIABLE, LoopRows, QueryLoop
from limnos.pipeline.node_schemas import InvalidNode, NodeSchema, ProblemNotes, Schema, describe_node
from limnos.pipeline.problems import Problem, nearest_word
from limnos.pipeline.yaml import NODES_MAX, ListNode, MapNode, ScalarNode, YamlNode

KEY: Final = "for_each"
STEPS_MAX = 10_000
"""The maximum number of steps that the loops of a file make."""
VARIABLES_MAX = 8
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9_]+(-[A-Za-z0-9_]+)*")
VALUE_MAX = 64
_QUERY: Final = "query"
_EXAMPLE: Final = "example"
_SAMPLES: Final = (("1", 1), ("x", "x"))
"""Words in place of unknown ones. A mistake that both make has nothing to do with the word."""
_Item = Mapping[str, ScalarNode]
"""The values of a loop's variables in one step."""
_Entry = tuple[ScalarNode, YamlNode]


@dataclass(frozen=True, slots=True)
class StepsMap(MapOf):
    """The schema of a mapping of steps: its loops are expanded before its entries are read."""

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        problem_count = len(notes.problems)
        expanded = expand_loops(node, notes)
        for key, body in query_loops(node) if notes.loop_rows is None else ():
            notes.problems += self._problems_of_template(key, body, notes=notes)
        if len(notes.problems) > problem_count:
            raise InvalidNode
        if notes.query_loops and isinstance(expanded, MapNode) and not expanded.entries:
            return ()
        return MapOf.read(self, expanded, notes)

    def _problems_of_template(self, key: ScalarNode, body: MapNode, *, notes: ProblemNotes) -> list[Problem]:
        """Return the mistakes of a loop over a query that do not depend on its words."""
        results = []
        for text, value in _SAMPLES:
            trial = ProblemNotes(notes.beside)
            word = ScalarNode(at=key.at, text=text, value=value, text_at=key.at)
            item = dict.fromkeys(_variables(key, body), word)
            step = MapNode(at=body.at, entries=[(_filled_scalar(key, item), _fill_variables(body, item))])
            with suppress(InvalidNode):
                MapOf.read(self, step, trial)
            results.append(trial.problems)
        return [problem for problem in results[0] if problem in results[1]]


class LoopItems(NodeSchema):
    """The schema of `for_each`. `expand_loops` reads it; a step that still has the key is not from a YAML file."""

    word = "a mapping from variables to lists, a list of mappings, or a query"

    def read(self, node: YamlNode, notes: ProblemNotes) -> Any:  # noqa: ANN401
        raise notes.bad("for_each belongs to YAML files: make the steps in a loop of Python", node.at)

    def schema(self) -> Schema:
        name: Schema = {"pattern": f"^{_VARIABLE.pattern}$"}
        value: Schema = {"type": ["string", "integer"], "pattern": f"^{_VALUE.pattern}$", "maxLength": VALUE_MAX}
        many: Schema = {"type": "array", "minItems": 1}
        lists: Schema = {"type": "object", "minProperties": 1, "propertyNames": name}
        rows: Schema = {"type": "object", "minProperties": 1, "propertyNames": name, "additionalProperties": value}
        query: Schema = {
            "type": "object",
            "properties": {_QUERY: {"type": "string"}, _EXAMPLE: rows},
            "required": [_QUERY],
            "additionalProperties": False,
        }
        return {"anyOf": [{**lists, "additionalProperties": {**many, "items": value}}, {**many, "items": rows}, query]}


def expand_loops(node: YamlNode, notes: ProblemNotes) -> YamlNode:
    """Return the mapping of steps with the steps of each loop in its place. Problems are recorded in `notes`, and their
    loops are left out. So are loops over queries without known rows, which are recorded there, too.
    """
    if not isinstance(node, MapNode) or not any(_loop_of(value) is not None for _, value in node.entries):
        return node
    expansion = _Expansion(notes, written={key.text for key, value in node.entries if _loop_of(value) is None})
    entries: list[_Entry] = []
    for key, value in node.entries:
        loop = _loop_of(value)
        if loop is None or not isinstance(value, MapNode):
            entries.append((key, value))
            continue
        try:
            query = _query_of(loop, notes)
            if query is not None and key.text not in (notes.loop_rows or {}):
                notes.query_loops.append(_query_loop(key, value, loop=loop, query=query, notes=notes))
                continue
            entries += expansion.expand_loop(key, value, loop=loop)
        except InvalidNode:
            continue
    return MapNode(at=node.at, entries=entries)


def query_loops(node: YamlNode) -> Iterator[tuple[ScalarNode, MapNode]]:
    """Yield the loops over queries in a mapping of steps, without their key `for_each`."""
    for key, value in node.entries if isinstance(node, MapNode) else ():
        loop = _loop_of(value)
        if isinstance(value, MapNode) and isinstance(loop, MapNode) and isinstance(loop.get(_QUERY), ScalarNode):
            yield key, _body(value)


def _loop_of(value: YamlNode) -> YamlNode | None:
    return value.get(KEY) if isinstance(value, MapNode) else None


def _body(step: MapNode) -> MapNode:
    return MapNode(at=step.at, entries=[(name, value) for name, value in step.entries if name.text != KEY])


def _query_of(loop: YamlNode, notes: ProblemNotes) -> ScalarNode | None:
    """Return the query of a loop; None for a loop over items of the file. Raises InvalidNode for a wrong one."""
    query = loop.get(_QUERY) if isinstance(loop, MapNode) else None
    if not isinstance(loop, MapNode) or not isinstance(query, ScalarNode):
        return None
    if any(name.text not in {_QUERY, _EXAMPLE} for name, _ in loop.entries):
        raise notes.bad(f"a loop has a query, or lists: leave one out; as {KEY}: {{query: SELECT …}}", loop.at)
    if not isinstance(query.value, str) or not query.text.strip():
        raise notes.bad(f"a query is expected, not {describe_node(query)}; its columns are the variables", query.at)
    return query


def _query_loop(key: ScalarNode, step: MapNode, *, loop: YamlNode, query: ScalarNode, notes: ProblemNotes) -> QueryLoop:
    """Return a loop over a query. Raises InvalidNode for an example that has other values than words, or of variables
    that the step does not have.
    """
    example = loop.get(_EXAMPLE) if isinstance(loop, MapNode) else None
    variables = tuple(dict.fromkeys(_variables(key, _body(step))))
    values: dict[str, str | int] = {}
    if example is not None:
        if not isinstance(example, MapNode) or not example.entries:
            raise notes.bad(f"a mapping from variables to words is expected, not {describe_node(example)}", example.at)
        for name, value in example.entries:
            if name.text not in variables:
                advice = nearest_word(name.text, list(variables)) or f"; it has {', '.join(variables)}"
                raise notes.bad(f"the step has no variable '{name.text[:80]}'{advice}", name.at)
            word = loop_word(value, notes)
            values[name.text] = word.value if isinstance(word.value, int) else word.text
    return QueryLoop(
        name=key.text, query=query.text, variables=variables, example=values, at=key.at, query_at=query.text_at
    )


class _Expansion:
    """Makes the steps of a file's loops, within the limits for all of them. `written` are names of other steps."""

    def __init__(self, notes: ProblemNotes, *, written: set[str]) -> None:
        self._notes = notes
        self._written = written
        self._steps = 0
        self._nodes = 0

    def expand_loop(self, key: ScalarNode, step: MapNode, *, loop: YamlNode) -> Iterator[_Entry]:
        """Return the steps of one loop. Raises InvalidNode after recording a problem."""
        body = _body(step)
        rows = self._notes.loop_rows or {}
        is_query = _query_of(loop, self._notes) is not None
        items = list(self._row_items(rows.get(key.text), loop=loop) if is_query else self._items(loop))
        self._require_known_variables(key, body, item=items[0])
        self._count(body, items=len(items), loop=loop)
        names = [_filled_scalar(key, item) for item in items]
        for name, item in zip(names, items, strict=True):
            if name.text in self._written:
                if is_query and items.count(item) > 1:
                    words = ", ".join(f"{variable} = {value.text}" for variable, value in item.items())
                    raise self._notes.bad(
                        f"the loop's query returns {words} more than once: write SELECT DISTINCT", loop.at
                    )
                raise self._notes.bad(
                    f"this loop makes {name.text} again: name {' and '.join('{{' + one + '}}' for one in item)} in "
                    "the step's name",
                    key.at,
                )
            self._written.add(name.text)
        return ((name, _fill_variables(body, item)) for name, item in zip(names, items, strict=True))

    def _row_items(self, rows: LoopRows | None, *, loop: YamlNode) -> Iterator[_Item]:
        """Yield the values of the variables in each row of the loop's query."""
        if rows is None or not rows.rows:
            raise self._notes.bad("the loop's query returns no row, so it makes no step", loop.at)
        for name in rows.columns:
            if not _VARIABLE.fullmatch(name):
                raise self._notes.bad(
                    f"the loop's query has the column '{name[:80]}', which is no variable: rename it with AS, in"
                    " letters, digits and '_'",
                    loop.at,
                )
        if len(rows.columns) > VARIABLES_MAX:
            raise self._notes.bad(f"the loop's query has more than {VARIABLES_MAX} columns: leave some out", loop.at)
        for row in rows.rows:
            yield {
                name: self._row_value(value, name=name, loop=loop)
                for name, value in zip(rows.columns, row, strict=True)
            }

    def _row_value(self, value: str | int | None, *, name: str, loop: YamlNode) -> ScalarNode:
        if value is None:
            raise self._notes.bad(
                f"the loop's query returns a NULL in {name}: leave it out, as WHERE {name} IS NOT NULL", loop.at
            )
        text = str(value)
        if len(text) > VALUE_MAX:
            raise self._notes.bad(
                f"the loop's query returns a {name} of more than {VALUE_MAX} characters, which begins with"
                f" {text[:20]!r}: leave it out in the query, or return a shorter word for it",
                loop.at,
            )
        if not _VALUE.fullmatch(text):
            raise self._notes.bad(
                f"the loop's query returns {name} = {text!r}, which is not a word of letters, digits, '_' and single"
                " '-': leave it out in the query, or return another value for it",
                loop.at,
            )
        return ScalarNode(at=loop.at, text=text, value=value, text_at=loop.at)

    def _items(self, loop: YamlNode) -> Iterator[_Item]:
        """Yield the values of the variables: of a list each mapping, of a mapping each combination of its lists."""
        if isinstance(loop, ListNode) and loop.items:
            first = loop.items[0]
            names = [key.text for key, _ in first.entries] if isinstance(first, MapNode) else []
            for item in loop.items:
                if not isinstance(item, MapNode) or not item.entries:
                    raise self._notes.bad(
                        f"a mapping from variables to values is expected, not {describe_node(item)}; of one variable, "
                        f"write {KEY}: {{name: [a, b]}}",
                        item.at,
                    )
                if sorted(key.text for key, _ in item.entries) != sorted(names):
                    raise self._notes.bad(f"each item needs the same variables: {', '.join(names)}", item.at)
                yield {self._variable(key): loop_word(value, self._notes) for key, value in item.entries}
            return
        if not isinstance(loop, MapNode) or not loop.entries:
            raise self._notes.bad(f"{LoopItems.word} is expected, not {describe_node(loop)}", loop.at)
        lists = {self._variable(key): self._values(value) for key, value in loop.entries}
        if len(lists) > VARIABLES_MAX or prod(map(len, lists.values())) > STEPS_MAX:
            raise self._notes.bad(
                f"more than {STEPS_MAX:,} steps, or more than {VARIABLES_MAX} variables: divide the pipeline", loop.at
            )
        for values in itertools.product(*lists.values()):
            yield dict(zip(lists, values, strict=True))

    def _variable(self, key: ScalarNode) -> str:
        if not _VARIABLE.fullmatch(key.text):
            raise self._notes.bad(
                f"'{key.text[:80]}' is no variable: write letters, digits and '_', beginning with a letter", key.at
            )
        return key.text

    def _values(self, node: YamlNode) -> list[ScalarNode]:
        if not isinstance(node, ListNode) or not node.items:
            raise self._notes.bad(f"a list of values is expected, not {describe_node(node)}", node.at)
        if len(node.items) > STEPS_MAX:
            raise self._notes.bad(f"more than {STEPS_MAX:,} values: divide the pipeline", node.at)
        return [loop_word(item, self._notes) for item in node.items]

    def _count(self, body: MapNode, *, items: int, loop: YamlNode) -> None:
        """Count the steps and their nodes before they are made."""
        self._steps += items
        self._nodes += items * sum(1 for _ in _scalars(body))
        if self._steps > STEPS_MAX:
            raise self._notes.bad(f"the loops make more than {STEPS_MAX:,} steps: divide the pipeline", loop.at)
        if self._nodes > NODES_MAX:
            raise self._notes.bad(f"the loops make more than {NODES_MAX:,} values: divide the pipeline", loop.at)

    def _require_known_variables(self, key: ScalarNode, body: MapNode, *, item: _Item) -> None:
        problem_count = len(self._notes.problems)
        for scalar in (key, *_scalars(body)):
            for name in LOOP_VARIABLE.findall(scalar.text):
                if name not in item:
                    advice = nearest_word(name, list(item)) or f"; it has {', '.join(item)}"
                    self._notes.add(f"the loop has no variable '{name[:80]}'{advice}", scalar.at)
        if len(self._notes.problems) > problem_count:
            raise InvalidNode


def loop_word(node: YamlNode, notes: ProblemNotes) -> ScalarNode:
    """Return the value of a variable in a file. Raises InvalidNode after recording a problem."""
    is_word = isinstance(node, ScalarNode) and not isinstance(node.value, (bool, float, type(None)))
    if not isinstance(node, ScalarNode) or not is_word:
        raise notes.bad(f"a word is expected, not {describe_node(node)}; put yes, 1.5 and the like in quotes", node.at)
    if len(node.text) > VALUE_MAX or not _VALUE.fullmatch(node.text):
        raise notes.bad(
            f"'{node.text[:80]}' is not a word: write up to {VALUE_MAX} letters, digits, '_' and single '-'", node.at
        )
    return node


def _variables(key: ScalarNode, body: MapNode) -> list[str]:
    """Return the names of the variables in a step's name and texts."""
    return [name for scalar in (key, *_scalars(body)) for name in LOOP_VARIABLE.findall(scalar.text)]


def _scalars(node: YamlNode) -> Iterator[ScalarNode]:
    """Yield the scalars of a node, keys included. The depth of a file is limited."""
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _scalars(item)
    else:
        for key, value in node.entries:
            yield key
            yield from _scalars(value)


def _fill_variables(node: YamlNode, item: _Item) -> YamlNode:
    """Return the node with the values of the loop's variables. Nodes without variables are shared between the steps."""
    if isinstance(node, ScalarNode):
        return _filled_scalar(node, item)
    if isinstance(node, ListNode):
        return ListNode(at=node.at, items=[_fill_variables(each, item) for each in node.items])
    return MapNode(
        at=node.at, entries=[(_filled_scalar(key, item), _fill_variables(value, item)) for key, value in node.entries]
    )


def _filled_scalar(node: ScalarNode, item: _Item) -> ScalarNode:
    if "{{" not in node.text:
        return node
    whole = LOOP_VARIABLE.fullmatch(node.text)
    if whole is not None:  # a number stays a number
        value = item[whole[1]]
        return replace(node, text=value.text, value=value.value)
    text = LOOP_VARIABLE.sub(lambda match: item[match[1]].text, node.text)
    return replace(node, text=text, value=text if isinstance(node.value, str) else node.value)
