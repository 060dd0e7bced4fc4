# SPDX-License-Identifier: Apache-2.0
"""Client calls on objects of declared kinds: rows of `test_calls`, the same for each kind."""

from __future__ import annotations

from collections.abc import Callable

from limnos.client import Client
from limnos.model.declared_kinds import DECLARED, DeclaredKind

Row = tuple[str, Callable[[Client], object], str, str, object, object]


def _rows(declared: DeclaredKind) -> list[Row]:
    word, plural, example = declared.kind.word, declared.plural, dict(declared.example)
    above = f"/api/limnos/v1/metalakes/lake/catalogs/main/{plural}/a.b"
    answer = {"name": "x", "path": ["main", "a", "b", "x"], "comment": None, "properties": {}, **example}
    own = {name: tuple(value) if isinstance(value, list) else value for name, value in example.items()}
    edits = {"name": "y", "sets": {"k": "v"}, "removes": ["r"], **example}
    return [
        (plural, lambda c: c.declared(declared).list("main.a.b"), "GET", above, None, {plural: [answer]}),
        (word, lambda c: c.declared(declared).get("main.a.b.x").fields, "GET", f"{above}/x", None, answer),
        (
            f"{word}-create",
            lambda c: c.declared(declared).create("main.a.b.x", declared.fields(**own), comment="c"),
            "POST",
            above,
            {"name": "x", "comment": "c", "properties": {}, **_sent(declared)},
            answer,
        ),
        (
            f"{word}-alter",
            lambda c: c.declared(declared).alter(
                "main.a.b.x", name="y", sets={"k": "v"}, removes=["r"], fields=declared.example
            ),
            "PUT",
            f"{above}/x",
            edits,
            answer,
        ),
        (f"{word}-drop", lambda c: c.declared(declared).drop("main.a.b.x"), "DELETE", f"{above}/x", None, {}),
    ]


def _sent(declared: DeclaredKind) -> dict[str, object]:
    """Return the own fields of a create: all of them, those of the example with its values."""
    default = declared.fields()
    values = {name: getattr(default, name) for name in declared.fields.__struct_fields__}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in {**values, **declared.example}.items()
    }


DECLARED_CALLS: list[Row] = [row for declared in DECLARED for row in _rows(declared)]
