# SPDX-License-Identifier: Apache-2.0
"""Protocols decode, call and encode: no module of `http`, here or in a room, makes access decisions."""

from __future__ import annotations

import ast

import pytest

from limnos.services.request.request_view import RequestView
from tests.house.one_pass import complaints, sentences
from tests.house.tidy import SourceFile

DECIDING = (
    "decide",
    "decide_for",
    "require",
    "require_in_use",
    "require_in_metalake_use",
    "judge",
    "bindings_of",
)
"""Methods of a request view that make decisions, wherever they are named."""
DECIDING_CALLED = ("look_up", "permit")
"""The same; other objects have a method or a field of this name, which is not a decision."""
NO_DECISION = ("ctx.look_up",)
"""Reads on which no decision depends."""


def decisions_in(source: SourceFile) -> list[str]:
    """Return the places of a protocol's module that make decisions: the name, and its line."""
    if source.room != "http":
        return []
    named = [node for node in source.nodes(ast.Attribute) if node.attr in DECIDING]
    called = [node.func for node in source.nodes(ast.Call)]
    named += [node for node in called if isinstance(node, ast.Attribute) and node.attr in DECIDING_CALLED]
    return [
        f"{source.path}:{node.lineno}: {ast.unparse(node)}" for node in named if ast.unparse(node) not in NO_DECISION
    ]


DECISIONS = complaints(decisions_in, "src/limnos/http", "src/limnos/rooms")


def test_protocols_make_no_access_decisions() -> None:
    """Access decisions are made in services, which other protocols call as well."""
    assert sentences(DECISIONS) == []


@pytest.mark.parametrize(
    "text",
    [
        "request_view.require(Action.TABLE_LIST, request_view.settled.outer)",
        "ctx.read(scope, lambda request_view: request_view.decide(action, chain).allowed)",
        "view.require_in_use()",
        "partial(seen.decide_for, user)",
        "request_view.look_up(kind, path, action)",
        "request_view.permit(None, decision)",
    ],
)
def test_planted_decision_is_detected(text: str) -> None:
    """A planted decision is found, whatever the name of its object, in the protocols of rooms, too."""
    assert len(decisions_in(SourceFile("src/limnos/http/a.py", text))) == 1
    assert len(decisions_in(SourceFile("src/limnos/rooms/lake/http/a.py", text))) == 1


def test_decision_methods_exist() -> None:
    """The names are those of existing methods, so that a renamed one is searched under its new name."""
    assert [name for name in (*DECIDING, *DECIDING_CALLED) if not callable(getattr(RequestView, name, None))] == []
