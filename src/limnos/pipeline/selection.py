# SPDX-License-Identifier: Apache-2.0
"""Selection of steps by the graph: names, tags, sources and changed steps, with upstream and downstream steps.

Parses the selectors of `--select` and `--exclude`, and evaluates them over the dependencies of a pipeline's steps. Must
not know Spark, servers, or the way in which changed steps are found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import NoReturn

from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.pipeline.declaration import Pipeline, PythonStep, Sql, StepDeclaration
from limnos.pipeline.problems import nearest_word

Needs = Mapping[str, frozenset[str]]
"""For each step the names of the steps that it depends on."""
ModifiedSteps = Callable[[], Mapping[str, str]]
"""A function that returns the changed steps with the reasons. It is called at most once, and only if it is needed."""

STATES = ("modified", "new")
NEW = "no published run has it"
"""The reason of a step that was never published. `state:new` selects these steps, `state:modified` all changed ones."""
TERMS_MAX = 1000
_METHODS = ("tag", "state", "source")
_ATOM = re.compile(r"(?:(?P<before>\d*)\+)?(?P<body>[^+].*?)(?:\+(?P<after>\d*))?", re.DOTALL)
_WORD = re.compile(r"(?:`[^`]*`|\S)+")
_DIGITS_MAX = 6
_QUOTES = re.compile("['\"`]")
_SEPARATORS = re.compile("[;|&]")
_WILDCARDS = re.compile(r"\{\{[^{}]*\}\}|[%?]")
"""Wildcards of other tools, and the variable of a loop in a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """One selector: what it matches, and how far it follows the graph. `before` and `after` count levels of upstream
    and downstream steps; None means all levels.
    """

    text: str
    method: str
    """name, tag, state or source."""
    pattern: str
    before: int | None = 0
    after: int | None = 0


@dataclass(frozen=True, slots=True)
class SelectionTerm:
    """A term of a selection: selectors whose intersection it selects, and its place for messages."""

    selectors: tuple[Selector, ...]
    place: str


class InvalidSelection(BadRequest):
    """Raised for a selection that has no meaning for the pipeline. The message has the flag, the place and advice."""

    code = "invalid-selection"


def parse_selection(texts: Iterable[str], *, flag: str) -> tuple[SelectionTerm, ...]:
    """Parse the values of a flag. Terms are separated by blanks; the selectors of a term by commas.

    Raises InvalidSelection for a selector that cannot be read.
    """
    terms: list[SelectionTerm] = []
    for text in texts:
        words = list(_WORD.finditer(text))
        if not words:
            raise InvalidSelection(f"{flag}: it is empty; write a step, `tag:NAME`, `state:modified` or `source:NAME`")
        for number, word in enumerate(words, start=1):
            place = f"{flag} '{word.group()}'" if len(words) == 1 else f"{flag} '{text}', at '{word.group()}'"
            following = words[number].group() if number < len(words) else ""
            terms.append(SelectionTerm(_selectors(word.group(), place, following=following), place))
    if len(terms) > TERMS_MAX:
        raise InvalidSelection(f"{flag}: {len(terms):,} selectors, more than {TERMS_MAX:,}; select by tag or by `*`")
    return tuple(terms)


def require_known_words(pipeline: Pipeline, terms: Iterable[SelectionTerm]) -> None:
    """Raise InvalidSelection for a selector whose step, tag or source the pipeline lacks. Needs no queries."""
    for term in terms:
        for selector in term.selectors:
            _matches(pipeline, selector, place=term.place, modified=dict)


def uses_states(terms: Iterable[SelectionTerm]) -> bool:
    """Return whether a selector needs to know which steps have changed."""
    return any(one.method == "state" for term in terms for one in term.selectors)


def uses_graph(terms: Iterable[SelectionTerm]) -> bool:
    """Return whether a selector follows the dependencies of steps, which only the queries tell."""
    return any(one.before != 0 or one.after != 0 for term in terms for one in term.selectors)


def select(
    pipeline: Pipeline,
    terms: Sequence[SelectionTerm],
    *,
    excluded: Sequence[SelectionTerm] = (),
    needs: Needs,
    modified: ModifiedSteps,
) -> tuple[str, ...]:
    """Return the names of the selected steps, in the order of the file: what any term selects, without what any term of
    `excluded` selects. Without terms all steps are selected.

    Raises InvalidSelection for an unknown step, tag or source, and for terms whose selectors have no common step.
    """
    known: dict[str, Mapping[str, str]] = {}

    def find_changed() -> Mapping[str, str]:
        if "steps" not in known:
            known["steps"] = modified()
        return known["steps"]

    graph = _Graph(needs)
    names = [step.name for step in pipeline.steps]
    chosen = _union(pipeline, terms, graph=graph, modified=find_changed) if terms else frozenset(names)
    if terms and not chosen and not uses_states(terms):
        raise InvalidSelection(f"{terms[0].place}: no step is in all of these; a blank in place of ',' joins them")
    chosen -= _union(pipeline, excluded, graph=graph, modified=find_changed)
    return tuple(name for name in names if name in chosen)


class _Graph:
    """The dependencies of steps in both directions."""

    def __init__(self, needs: Needs) -> None:
        self._before = needs
        self._after: dict[str, set[str]] = {}
        for name, needed in needs.items():
            for other in needed:
                self._after.setdefault(other, set()).add(name)

    def add_neighbours(self, names: frozenset[str], selector: Selector) -> frozenset[str]:
        """Return the steps with as many levels of their upstream and downstream steps as the selector says."""
        return (
            names
            | _walk(names, self._before, levels=selector.before)
            | _walk(names, self._after, levels=selector.after)
        )


def _walk(names: frozenset[str], edges: Mapping[str, Iterable[str]], *, levels: int | None) -> frozenset[str]:
    reached: set[str] = set()
    front: set[str] = set(names)
    while front and (levels is None or levels > 0):
        front = {other for name in front for other in edges.get(name, ())} - reached
        reached |= front
        levels = None if levels is None else levels - 1
    return frozenset(reached)


def _union(
    pipeline: Pipeline, terms: Iterable[SelectionTerm], *, graph: _Graph, modified: ModifiedSteps
) -> frozenset[str]:
    results: set[str] = set()
    for term in terms:
        parts = [
            graph.add_neighbours(_matches(pipeline, one, place=term.place, modified=modified), one)
            for one in term.selectors
        ]
        results |= frozenset.intersection(*parts)
    return frozenset(results)


def _selectors(word: str, place: str, *, following: str) -> tuple[Selector, ...]:
    parts = word.split(",")
    if any(not part for part in parts) and len(parts) > 1:
        raise InvalidSelection(
            f"{place}: nothing stands on one side of a comma; `a,b` selects what both select, `a b` what either selects"
        )
    return tuple(_selector(part, place, following=following) for part in parts)


def _selector(text: str, place: str, *, following: str) -> Selector:
    """Parse one selector. `following` is the next word of the flag's value, for messages."""
    match = _ATOM.fullmatch(text)
    if match is None:
        raise InvalidSelection(
            f"{place}: '+' stands beside a selector, without a blank; write `+STEP`, `STEP+` or `2+STEP+1`"
        )
    body = match["body"]
    if body.startswith("@"):
        raise InvalidSelection(f"{place}: '@' is not supported; write `{body[1:]}+` and `+{body[1:]}`")
    before, after = _levels(match["before"], place), _levels(match["after"], place)
    method, colon, pattern = body.partition(":")
    if not colon:
        if "+" in body:
            raise InvalidSelection(f"{place}: '+' stands before or after a whole name; write `+STEP` or `STEP+1`")
        return Selector(text=text, method="name", pattern=body.replace("`", ""), before=before, after=after)
    if method not in _METHODS:
        advice = nearest_word(method.lower(), _METHODS) or (
            f"; it is one of {', '.join(_METHODS)}, and a step is written without one"
        )
        raise InvalidSelection(f"{place}: there is no method '{method}:'{advice}")
    if not pattern:
        example = f"`{method}:{following}`, without a blank" if following else _EXAMPLES[method]
        raise InvalidSelection(f"{place}: '{method}:' needs a value, as in {example}")
    if method == "state" and pattern not in STATES:
        advice = nearest_word(pattern, STATES) or f"; it is one of {', '.join(STATES)}"
        raise InvalidSelection(f"{place}: there is no state '{pattern}'{advice}")
    return Selector(text=text, method=method, pattern=pattern, before=before, after=after)


_EXAMPLES = {"tag": "`tag:nightly`", "state": "`state:modified`", "source": "`source:orders`"}


def _levels(text: str | None, place: str) -> int | None:
    if text is None:
        return 0
    if len(text) > _DIGITS_MAX:
        raise InvalidSelection(f"{place}: {text} levels; leave the number out to select all of them")
    return int(text) if text else None


def _matches(pipeline: Pipeline, selector: Selector, *, place: str, modified: ModifiedSteps) -> frozenset[str]:
    """Return the steps that a selector matches by itself. Raises InvalidSelection if it cannot match any."""
    if selector.method == "state":
        changes = modified()
        return frozenset(name for name, why in changes.items() if selector.pattern == "modified" or why == NEW)
    if selector.method == "source":
        sources = [source.name for source in pipeline.sources]
        matching_sources = [name for name in sources if _is_match(selector.pattern, name)]
        if not matching_sources:
            raise InvalidSelection(_absent("source", selector.pattern, known=sources, place=place))
        from limnos.pipeline.side_tables import names_source  # noqa: PLC0415

        return frozenset(
            step.name for step in pipeline.steps if any(names_source(step, name) for name in matching_sources)
        )
    if selector.method == "tag":
        tags = sorted({tag for step in pipeline.steps for tag in step.tags})
        if not any(_is_match(selector.pattern, tag) for tag in tags):
            raise InvalidSelection(_absent("tag", selector.pattern, known=tags, place=place))
        return frozenset(
            step.name for step in pipeline.steps if any(_is_match(selector.pattern, tag) for tag in step.tags)
        )
    names = [step.name for step in pipeline.steps]
    matching = frozenset(name for name in names if _is_match(selector.pattern, name))
    if not matching:
        _raise_unknown(pipeline, selector.pattern, names=names, place=place)
    return matching


def _absent(kind: str, word: str, *, known: Sequence[str], place: str) -> str:
    has = {"source": "the pipeline has no source", "tag": "no step has the tag"}[kind]
    advice = nearest_word(word, known) or (f"; there are {_join_words(known)}" if known else f"; there are no {kind}s")
    return f"{place}: {has} '{word}'{advice}"


def _raise_unknown(pipeline: Pipeline, pattern: str, *, names: Sequence[str], place: str) -> NoReturn:
    advice = _other_spelling(pipeline, pattern, names=names) or _other_meaning(pipeline, pattern, names=names)
    if advice:
        raise InvalidSelection(f"{place}: {advice}")
    kind = "no step matches" if "*" in pattern else "the pipeline has no step"
    spelled = [
        step.name if " " not in step.name else display.render(step.declared_table[1:]) for step in pipeline.steps
    ]
    raise InvalidSelection(f"{place}: {kind} '{pattern}'{nearest_word(pattern, spelled) or _steps(names)}")


def _other_spelling(pipeline: Pipeline, pattern: str, *, names: Sequence[str]) -> str | None:
    """Return the advice for a name that is written in another way, as with its catalog; None for another one."""
    within = next((name for name in _below_catalog(pipeline, pattern) if _is_any(name, names)), None)
    if within is not None:
        return f"leave the catalog out: {within}"
    lowered = next((name for name in names if _is_match(pattern.lower(), name.lower())), None)
    if lowered is not None:
        return f"no step '{pattern}'; did you mean '{lowered}'? Upper and lower case differ"
    last = [name for name in names if _is_match(pattern, name.rpartition(".")[2])]
    if last:
        return f"no step '{pattern}'; write its namespace: {_join_words(last)}"
    bare = _QUOTES.sub("", pattern)
    if bare != pattern and _is_any(bare, names):
        return f"leave the quotes within the word out: {bare}"
    if pattern[:1] in {"-", "!", "^"} and _is_any(pattern[1:], names):
        return f"a selector leaves no steps out; write --exclude {pattern[1:]}"
    if (several := _SEPARATORS.split(pattern))[1:] and all(_is_any(one, names) for one in several):
        return f"a blank joins selectors: '{' '.join(several)}'"
    starred = _WILDCARDS.sub("*", pattern)
    if starred != pattern and _is_any(starred, names):
        return f"no step '{pattern}'; '*' stands for any characters: {starred}"
    return None


def _below_catalog(pipeline: Pipeline, pattern: str) -> list[str]:
    """Return the pattern without its first part, if that is a catalog, and without two parts for a metalake, too."""
    first, _, rest = pattern.partition(".")
    second, _, last = rest.partition(".")
    return [*([rest] if first in pipeline.catalogs else []), *([last] if second in pipeline.catalogs else [])]


def _other_meaning(pipeline: Pipeline, pattern: str, *, names: Sequence[str]) -> str | None:
    """Return the advice for the name of something else: a source, a tag, a namespace, a file; None for another one."""
    method, equals, value = pattern.partition("=")
    if equals and method in _METHODS:
        return f"write {method}:{value}"
    if any(source.name == pattern for source in pipeline.sources):
        return f"'{pattern}' is a source; `source:{pattern}` selects the steps that read it"
    if any(pattern in step.tags for step in pipeline.steps):
        return f"'{pattern}' is a tag; write tag:{pattern}"
    namespace = pattern.rstrip(".")
    if any(name.startswith(f"{namespace}.") for name in names):
        return f"'{pattern}' is a namespace; write {namespace}.* for its steps"
    if pattern in STATES:
        return f"'{pattern}' is a state; write state:{pattern}"
    steps = [step.name for step in pipeline.steps if _is_file_of(pattern, step)]
    if steps:
        return f"'{pattern}' is a file; write the step that it is of: {_join_words(steps)}"
    if pipeline.at is not None and PurePath(pattern).name == PurePath(pipeline.at.file).name:
        return f"'{pattern}' is the pipeline's file; write one of its steps: {_join_words(names)}"
    return None


def _is_file_of(word: str, step: StepDeclaration) -> bool:
    """Return whether a word is the file of a step's query or function."""
    if isinstance(step.body, Sql):
        file = None if step.body.at is None or step.at is None else step.body.at.file
        return file is not None and step.at is not None and file != step.at.file and PurePath(file).match(word)
    if isinstance(step.body, PythonStep):
        path = step.body.function.partition(":")[0].replace(".", "/")
        return PurePath(f"{path}.py").match(word)
    return False


def _is_any(pattern: str, names: Sequence[str]) -> bool:
    return bool(pattern) and any(_is_match(pattern, name) for name in names)


def _steps(names: Sequence[str]) -> str:
    return f"; its steps are {_join_words(names)}"


def _join_words(words: Sequence[str]) -> str:
    more = f" and {len(words) - 10} more" if len(words) > 10 else ""
    return ", ".join(words[:10]) + more


def _is_match(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern, in which `*` stands for any characters."""
    if "*" not in pattern:
        return pattern == name
    first, *middle, last = pattern.split("*")
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in middle:  # without a regular expression: a pattern with many `*` must not take exponential time
        position = name.find(piece, at, end)
        if position < 0:
            return False
        at = position + len(piece)
    return True
