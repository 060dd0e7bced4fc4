# SPDX-License-Identifier: Apache-2.0
"""The requests of every declared kind, which the families of tests below `tests/http` send without a line for a kind.

A kind's routes have one shape, so their bodies, their renames and what protects them follow from its declaration.
"""

from __future__ import annotations

from limnos.model.declared_kinds import DECLARED, DeclaredKind
from tests.http.driver import OWN, DriverNode

_CATALOG = f"{OWN}/metalakes/lake/catalogs/main"
NAMES = {each.kind.word: "x" for each in DECLARED}
BODIES: dict[str, object] = {
    f"{verb}-{each.kind.word}": {**body, **each.example}
    for each in DECLARED
    for verb, body in (("create", {"name": "n"}), ("alter", {"comment": "c"}))
}
READ_FOR = [f"admin {operation}" for operation in BODIES]
PROTECTED = {f"drop-{each.kind.word}": f"{each.kind.word.upper()}/main.a.x" for each in DECLARED}


def collection(declared: DeclaredKind, namespace: str = "a") -> str:
    """Return the path of a kind's objects in a namespace."""
    return f"{_CATALOG}/{declared.plural}/{namespace}"


def writes() -> dict[str, tuple[str, str, object]]:
    """Return the writes of every kind about the object `x`, as (method, path, body)."""
    return {
        f"{verb}-{each.kind.word}": (method, f"{collection(each)}{end}", BODIES.get(f"{verb}-{each.kind.word}"))
        for each in DECLARED
        for verb, method, end in (("create", "POST", ""), ("alter", "PUT", "/x"), ("drop", "DELETE", "/x"))
    }


def furnish(node: DriverNode) -> None:
    """Create the object `x` of every kind in the namespace `a`."""
    for each in DECLARED:
        node.done("POST", collection(each), {"name": "x", **each.example})
