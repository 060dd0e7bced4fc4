# SPDX-License-Identifier: Apache-2.0
"""The requests of the table of refusals of declared kinds, `declared_refusals.md`. It has one row for all kinds,
because all have the same rules; `python -m tests.http.admin.declared_refusals` rewrites it with the answers about the
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from limnos.model.declared_kinds import DECLARED, DeclaredKind
from tests.http import refusal_tables
from tests.http.declared_requests import collection
from tests.http.driver import OWN, DriverNode
from tests.http.refusal_tables import CALLERS, RefusalCase, case

TABLE = Path(__file__).with_suffix(".md")


def cases_of(declared: DeclaredKind, node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of one kind for one caller."""
    word = declared.kind.word
    if who == "nobody":  # the first one
        for name in ("there", *(f"{verb}_{each}" for verb in ("alter", "drop") for each in CALLERS)):
            node.done("POST", collection(declared, "there"), {"name": name}, user="laker")
            refusal_tables.own(node, "tabler", word.upper(), f"main.there.{name}", by="laker")
    above = f"{OWN}/metalakes/{{m}}/catalogs/{{c}}/{declared.plural}/{{namespace}}"
    one = f"{above}/{{{word}}}"
    yield case(f"GET {above}", "namespace", "lake", "main", "there")
    yield case(f"GET {above}", "no namespace", "lake", "main", "gone")
    yield case(f"GET {above}", "of no catalog", "lake", "nowhere", "there")
    yield case(f"POST {above}", "new", "lake", "main", "there", body={"name": f"new_{who}"})
    yield case(f"POST {above}", "taken name", "lake", "main", "there", body={"name": "there"})
    yield case(f"POST {above}", "in no namespace", "lake", "main", "gone", body={"name": f"new_{who}"})
    yield case(f"POST {above}", "of no catalog", "lake", "nowhere", "there", body={"name": f"new_{who}"})
    for method, verb, body in (
        ("GET", "there", None),
        ("PUT", f"alter_{who}", {"comment": "c"}),
        ("DELETE", f"drop_{who}", None),
    ):
        name = "there" if method == "GET" else verb
        yield case(f"{method} {one}", "object", "lake", "main", "there", name, body=body)
        yield case(f"{method} {one}", "no object", "lake", "main", "there", "gone", body=body)
        yield case(f"{method} {one}", "in no namespace", "lake", "main", "gone", name, body=body)
        yield case(f"{method} {one}", "of no catalog", "lake", "nowhere", "there", name, body=body)


def cases(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of every kind."""
    for declared in DECLARED:
        yield from cases_of(declared, node, who)


if __name__ == "__main__":
    refusal_tables.write(TABLE, lambda node, who: cases_of(DECLARED[0], node, who))
