# SPDX-License-Identifier: Apache-2.0
"""The rules of names as pure functions: source text in, complaints out. test_words.py applies them to the tree.

A class is a noun and has one meaning. Private words that were replaced must not return.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from tests.house.tidy import SourceFile, functions

MODULES_MAX: Final = 3
"""Maximum number of modules with a class of one name."""
PARTICIPLE: Final = re.compile(r"_?[A-Z][a-z]+(?:ed|ing)")
IRREGULAR: Final = frozenset(
    [
        "Bound",
        "Bought",
        "Broken",
        "Brought",
        "Built",
        "Caught",
        "Chosen",
        "Done",
        "Drawn",
        "Found",
        "Given",
        "Gone",
        "Grown",
        "Held",
        "Hidden",
        "Kept",
        "Known",
        "Laid",
        "Led",
        "Left",
        "Lent",
        "Lost",
        "Made",
        "Meant",
        "Met",
        "Paid",
        "Read",
        "Said",
        "Seen",
        "Sent",
        "Set",
        "Shown",
        "Sought",
        "Spent",
        "Stood",
        "Taken",
        "Thought",
        "Told",
        "Understood",
        "Written",
    ]
)
NOUNS: Final[Mapping[str, str]] = {
    "Listing": "a noun of its own",
    "String": "a noun",
    "Negated": "EXPLAIN prints it as the name of a plan's node",
    "Quantified": "EXPLAIN prints it as the name of a plan's node",
}
"""Names of one word that end like participles, and why they are allowed."""
VARIABLES: Final[Mapping[str, str]] = {
    "apart": "objects, or the thread pool that does the work",
    "asked": "request, requested names",
    "begun": "started, transaction",
    "chores": "offloaded work",
    "door": "connection, admission",
    "found": "result, match, or the kind of the object",
    "given": "value, arguments",
    "gone": "removed names",
    "got": "result",
    "heard": "message",
    "held": "current value, locks, value",
    "judged": "decision",
    "kept": "entries, cached response",
    "lasting": "validity",
    "leave": "release",
    "made": "created object, results",
    "said": "text, message",
    "shown": "text, output, visible ids",
    "taken": "used names",
    "there": "existing objects",
    "told": "response, result, text",
    "wanted": "expected value, requirement",
    "whom": "principal",
}
"""Participles and similar words that say nothing as a variable or a parameter, and nouns to use instead."""
PRIVATE: Final[Mapping[str, str]] = {
    "scene": "request view",
    "scenes": "request views",
    "deed": "transaction mutation",
    "deeds": "transaction mutations",
    "sight": "visible object",
    "sights": "visible objects",
    "shadows": "placeholder nodes",
    "shadow": "placeholder node",
    "chore": "offloaded work",
    "chores": "offloaded work",
    "lending": "definer's rights",
    "telling": "visibility, change publishing",
}
"""Words that only this code base used, and those of the field."""
IN_PROSE: Final[Mapping[str, str]] = {
    "cold": "not cached",
    "door": "connection, route",
    "guarded": "under admission control",
    "joint": "coalesced",
    "lane": "fast path",
    "lasting": "response cache",
    "parties": "commit groups",
    "told": "reported, shown, distinguished",
}
"""Words that are allowed as parts of other names, but not in docstrings, comments and pages."""
PHRASES: Final[Mapping[str, str]] = {
    "with one lane": "RFC 9106 calls a thread of Argon2 so",
    "limnos_cold_reads": "the name of a metric",
    "server.lane": "the name of a setting",
    "outcome    told": "a column that the command prints",
}
"""Exceptions for these words, and why."""
PROSE: Final = ("out of sight", "limnos.chores", "limnos_chores", "chore_processes", '_chores"', "CHORE_MEMORY", "log.")
"""Exceptions for these words: an idiom, and names that logs, metrics, settings and processes have on the wire."""

IN_MESSAGES: Final[Mapping[str, str]] = {
    "anew": "again",
    "carried out": "executed",
    "given up": "failed, abandoned",
    "has gone": "has disconnected, no longer exists",
    "let go": "removed, released",
    "looked at": "checked, read",
    "nobody": "no user, or the active voice",
    "sign of life": "heartbeat",
    "somebody": "another user, another client",
    "taken away": "removed, revoked",
    "took away": "removed, revoked",
    "whoever": "the operator, the owner",
}
"""Phrases with which messages, log lines and help texts paraphrased a term, and the term."""
IN_TEST_NAMES: Final = frozenset(
    [
        "anew",
        "asks",
        "gone",
        "hands",
        "kept",
        "lasting",
        "nobody",
        "said",
        "says",
        "somebody",
        "tell",
        "telling",
        "tells",
        "told",
        "wanted",
        "whoever",
        "whom",
        "whose",
    ]
)
"""Words that hide what a test checks: its name says reported, returned, refused, retained, deleted, the user or the
caller.
"""
CLAUSE: Final = re.compile(r"test_(?:it|one|that|they|those|what|who|whom|whose)(?:_|$)")
"""The beginning of a test's name without a subject: a clause or a pronoun."""


def participles(file: SourceFile) -> Iterator[str]:
    """Report classes that are named by a participle only, which does not name a thing."""
    for node in file.nodes(ast.ClassDef):
        if node.name not in NOUNS and _is_participle(node.name):
            yield f"{file.path}:{node.lineno}: class {node.name} is a participle; name the thing, as in ListRequest"


def _is_participle(name: str) -> bool:
    return PARTICIPLE.fullmatch(name) is not None or name.lstrip("_") in IRREGULAR


def class_names(file: SourceFile) -> frozenset[str]:
    """Return the names of a file's classes."""
    return frozenset(node.name for node in file.nodes(ast.ClassDef))


def repeated(names: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Report class names that are used in too many modules; names of the classes of each file by its path."""
    modules: dict[str, set[str]] = defaultdict(set)
    for path, names_of_classes in names.items():
        for name in names_of_classes:
            modules[name].add(SourceFile(path, "").module)
    for name, module_names in sorted(modules.items()):
        if len(module_names) > MODULES_MAX:
            yield (
                f"class {name} stands in {len(module_names)} modules, {MODULES_MAX} at most:"
                f" {', '.join(sorted(module_names))}"
            )


def variables(file: SourceFile) -> Iterator[str]:
    """Report variables and parameters that are named by a participle only.

    Fields and methods of classes are exempt: many are names on the wire, in stored bytes or in settings.
    """
    nodes = [node for kind, name in _NAME_FIELDS.items() for node in file.nodes(kind) if _noun(getattr(node, name))]
    outside = {id(node) for node in _outside_class_bodies(file.tree)} if nodes else set()
    for node in nodes:
        if id(node) in outside:
            for name in _bound_names(node):
                line = getattr(node, "lineno", 0)
                yield f"{file.path}:{line}: the variable {name} says nothing; name the thing: {_noun(name)}"


@cache
def _noun(name: str | None) -> str | None:
    """Return what to say instead of a variable's name; None for a name that is allowed."""
    return VARIABLES.get(name.strip("_")) if name else None


def test_names(file: SourceFile) -> Iterator[str]:
    """Report tests whose name has no subject, or a word that hides what is checked."""
    for node in functions(file):
        if node.name.startswith("test_"):
            words = IN_TEST_NAMES.intersection(node.name.split("_"))
            if words or CLAUSE.match(node.name):
                yield (
                    f"{file.path}:{node.lineno}: {node.name}: say subject, verb and object, as in"
                    " test_expired_lease_is_refused"
                )


def _outside_class_bodies(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without the assignments that declare the fields of classes."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.ClassDef):
            children = [each for each in children if not isinstance(each, ast.Assign | ast.AnnAssign)]
        waiting += children


_NAME_FIELDS: Final[Mapping[type[ast.AST], str]] = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.alias: "asname",
}
"""The classes of the nodes that `_bound_names` reads, and the field with the name."""


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Return the names that a node binds as variables or parameters, not those of functions, classes and attributes."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.alias(asname=str(name)):
            yield name


def private(path: str, text: str) -> Iterator[str]:
    """Report private words in a source or a page, in names and in prose."""
    if not _has_any(text, PRIVATE):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r"[A-Za-z]+", line):
            if (better := PRIVATE.get(word.lower())) is not None and not any(each in line for each in PROSE):
                yield f"{path}:{number}: {word} is a word of ours alone; say {better}"


def _has_any(text: str, words: Iterable[str]) -> bool:
    """Return whether a text has one of some words in any case, also as a part of another word."""
    lower = text.lower()
    return any(word in lower for word in words)


def private_prose(path: str, lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Report private words in lines of prose, without code between back quotes."""
    for number, line in lines:
        if not _has_any(line, IN_PROSE) or any(each in line for each in PHRASES):
            continue
        for word in re.findall(r"[A-Za-z]+", re.sub(r"`[^`]*`", "", line)):
            if (better := IN_PROSE.get(word.lower())) is not None:
                yield f"{path}:{number}: {word} is a word of ours alone; say {better}"


def riddles(file: SourceFile) -> Iterator[str]:
    """Report phrases in a module's strings that paraphrase a term. Docstrings are exempt."""
    docstrings = {id(node.value) for node in file.nodes(ast.Expr)}
    for node in file.nodes(ast.Constant):
        if isinstance(node.value, str) and id(node) not in docstrings:
            for hit in _PARAPHRASE.finditer(node.value):
                phrase = hit[0].lower()
                yield f"{file.path}:{node.lineno}: a message says {phrase}; say {IN_MESSAGES[phrase]}"


_PARAPHRASE: Final = re.compile(rf"\b(?:{'|'.join(IN_MESSAGES)})\b", re.IGNORECASE)
_IN_PROSE: Final = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(IN_PROSE)})(?![A-Za-z])", re.IGNORECASE)


def prose_of_source(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield the lines of a module's comments and docstrings, including those of attributes, with their numbers."""
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in file.nodes(ast.Expr):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield from enumerate(text.splitlines(), node.lineno)


def private_prose_of_source(file: SourceFile) -> Iterator[str]:
    """Report private words in the comments and docstrings of a module.

    Only a module that has such a word anywhere is split into tokens, which takes twice as long as its parsing.
    """
    has_word = _has_any(file.text, IN_PROSE) and _IN_PROSE.search(file.text) is not None
    return private_prose(file.path, prose_of_source(file) if has_word else ())


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page outside of blocks of code, with their numbers."""
    within = False
    for number, line in enumerate(text.splitlines(), 1):
        within ^= line.lstrip().startswith("```")
        if not within:
            yield number, line
