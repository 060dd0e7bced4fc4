# SPDX-License-Identifier: Apache-2.0
"""Problems of a declared kind that its line cannot show: words that something else has, and types without a flag."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from limnos.cli.operations import COMMANDS, GROUPS, KIND_ALIASES, OPERATIONS, plural
from limnos.client import Client, session
from scripts.generate_openapi import documented_protocols

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limnos.model.declared_kinds import DeclaredKind

_OWN_COMMANDS: Final = ("create KIND", "list --only KIND", "show --kind KIND", "delete --kind KIND")
"""The commands that a declared kind has without a line of its own."""
_TEXTS: Final = tuple[str, ...]


def word_problems(declared: DeclaredKind) -> list[str]:
    """Return what already has a word of a declared kind: a command, a route, an operation or a resource."""
    kind = declared.kind.word
    problems = (*_command_problems(kind, declared.plural), *_route_problems(declared), *_client_problems(declared))
    return [f"kind {kind}: {problem}: choose another word" for problem in problems]


def _command_problems(kind: str, plural_word: str) -> Iterator[str]:
    own = {each.replace("KIND", kind) for each in _OWN_COMMANDS}
    for word in (kind, plural_word):
        if word in COMMANDS:
            yield f"'{word}' is the command 'limnos {word}'"
        if word in KIND_ALIASES:
            yield f"'{word}' is another word for a {KIND_ALIASES[word]} on the command line"
    if GROUPS["create"].count(kind) > 1:
        yield f"'create {kind}' is a command of another kind"
    for each in OPERATIONS:
        if {each.kind, plural(each.kind)} & {kind, plural_word} and each.command not in own:
            yield f"'limnos {each.verb} {each.kind}' is the command '{each.command}'"


def _route_problems(declared: DeclaredKind) -> Iterator[str]:
    kind, plural_word = declared.kind.word, declared.plural
    above = f"/api/limnos/v1/metalakes/{{m}}/catalogs/{{c}}/{plural_word}/{{namespace}}"
    own = {above, f"{above}/{{{kind}}}"}
    operations = {f"list-{plural_word}", *(f"{verb}-{kind}" for verb in ("create", "load", "alter", "drop"))}
    for protocol in documented_protocols():
        for route in protocol.router.routes:
            if route.path in own:
                continue
            if route.operation in operations:
                yield f"'{route.operation}' is the operation of {route.method} {route.path}"
            if f"/catalogs/{{c}}/{plural_word}/" in f"{route.path}/":
                yield f"'{plural_word}' is in the route {route.method} {route.path}"


def _client_problems(declared: DeclaredKind) -> Iterator[str]:
    word = declared.plural
    if hasattr(Client, word):
        yield f"'{word}' is an attribute of every client"
    count = resource_names()[word]
    with Client("http://127.0.0.1:1") as client:
        fields = getattr(getattr(client, word, None), "fields", None)
    if count != 1:
        yield f"client/session.py has {count} resources '{word}', and not one"
    elif fields is not declared.fields:
        yield f"the resource '{word}' of client/session.py is that of something else"


def resource_names() -> Counter[str]:
    """Return how often `client/session.py` assigns each resource of a client."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(session._Resources.__init__))).body
    return Counter(
        node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    )


def type_problem(field: msgspec.structs.FieldInfo) -> str | None:
    """Return why a field of a declared kind has no flag: its type, or a default of another type; None for a right
    field.
    """
    type_: Any = get_args(field.type)[0] if hasattr(field.type, "__metadata__") else field.type
    is_choice = get_origin(type_) is Literal and all(isinstance(each, str) for each in get_args(type_))
    if get_origin(type_) in (Union, UnionType):
        return f"{field.name}: a field is a text, number, bool, Literal or tuple of texts; its default means 'not set'"
    if type_ not in (str, bool, int, float, _TEXTS) and not is_choice:
        return f"{field.name}: a flag has no {type_}: use a text, number, bool, Literal or tuple of texts"
    try:
        msgspec.convert(field.default, field.type)
    except msgspec.ValidationError as error:
        return f"{field.name}: the default is not of the type: {error}"
    return None
