# SPDX-License-Identifier: Apache-2.0
"""The rows of refusals.md for the query service: statements, and requests to its other routes.

`python -m tests.rooms.sqlpp.http.refusals` rewrites the table from the code. A cell is a status, and for a refused
statement its number.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from limnos.rooms.sqlpp.http.protocol import routes as all_routes
from tests.http import refusal_tables
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire as iceberg
from tests.http.refusal_tables import RefusalCase, RefusalRequest, Row, own
from tests.rooms.sqlpp.http.wire import SERVICE, ask, rows

CALLERS: dict[str, tuple[str, str]] = {
    **refusal_tables.CALLERS,
    "author": ("", f"{refusal_tables.USE} register_function"),
    "executor": ("", f"{refusal_tables.USE} execute_function"),
    "editor": ("", f"{refusal_tables.USE} modify_function"),
}
"""The callers: those of every protocol, and three with a privilege on functions."""
TABLE = Path(__file__).with_name("refusals.md")
POST = f"POST {SERVICE}"


def prepare(node: DriverNode) -> None:
    """Create all users and objects of the rows."""
    for who in CALLERS:
        if who not in ("nobody", "stranger", "admin"):
            node.done("POST", f"{API}/lake/users", {"name": who})
    rows(
        node,
        "create dataverse there; create type there.t as { id: int }; create dataset there.d(t) primary key id;"
        " create view there.v as select value 1; create function there.f() { 1 }; create synonym there.s for there.v;"
        " create dataverse shut.inside",
    )
    for who, (on_metalake, on_catalog) in CALLERS.items():
        rows(
            node,
            f"create dataverse drop_{who}; create type there.t_{who} as {{}}; create dataset there.d_{who}(t) primary"
            f" key id; create view there.v_{who} as select value 1; create function there.f_{who}() {{ 1 }}; create"
            f" synonym there.s_{who} for there.v; create index i_{who} on there.d(id)",
        )
        if on_metalake:
            grant(node, who, on_metalake, kind="METALAKE", on="lake")
        if on_catalog:
            grant(node, who, on_catalog, kind="CATALOG", on="main")
    for space in ("there", *(f"drop_{who}" for who in CALLERS)):
        own(node, "keeper", "SCHEMA", f"main.{space}")
    for name in ("d", *(f"d_{who}" for who in CALLERS)):
        own(node, "tabler", "TABLE", f"main.there.{name}")
    for name in ("v", *(f"v_{who}" for who in CALLERS)):
        own(node, "tabler", "VIEW", f"main.there.{name}")
    own(node, "owner", "CATALOG", "main")
    own(node, "laker", "METALAKE", "lake")

    for who in CALLERS:
        ask(node, "select value 1", user="keeper", mode="deferred", client_context_id=who)


def _handle(node: DriverNode, who: str) -> str:
    """Return the handle of a result of `keeper`, a separate one for each caller."""
    with closing(sqlite3.connect(node.data / "limnos.db")) as file:
        ((handle,),) = file.execute("SELECT handle FROM sqlpp_request WHERE client_context_id = ?", (who,))
    assert isinstance(handle, str)
    return handle


def cases(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows for a caller."""
    handle = _handle(node, who)
    for method, what in (("GET", "status"), ("GET", "result"), ("DELETE", "result")):
        for thing, path_segment in (("keeper's", handle), ("none", "none")):
            yield RefusalCase(
                f"{method} {SERVICE}/{what}/{{handle}}",
                thing,
                RefusalRequest(method, f"{SERVICE}/{what}/{path_segment}", None),
            )
    for thing, statement in _reading().items():
        yield RefusalCase(
            f"GET {SERVICE}", thing, RefusalRequest("GET", f"{SERVICE}?statement={statement.replace(' ', '+')}", None)
        )
    for thing, statement in statements(who).items():
        yield RefusalCase(POST, thing, RefusalRequest("POST", SERVICE, {"statement": statement}))
    for thing, name in (("dataset", "d"), ("no dataset", "gone")):
        target = f"/connector?dataverseName=there&datasetName={name}"
        yield RefusalCase("GET /connector", thing, RefusalRequest("GET", target, None))
    yield RefusalCase(f"OPTIONS {SERVICE}", "all", RefusalRequest("OPTIONS", SERVICE, None))
    for path in ("version", "cluster", "udf", "requests/running"):
        yield RefusalCase(f"GET /admin/{path}", "all", RefusalRequest("GET", f"/admin/{path}", None))
    yield RefusalCase(
        "DELETE /admin/requests/running",
        "none",
        RefusalRequest("DELETE", "/admin/requests/running?request_id=none", None),
    )


def statements(who: str) -> dict[str, str]:
    """Return a caller's statements by their subject."""
    return {**_reading(), **_writing(who)}


def _reading() -> dict[str, str]:
    queries = {"constant": "select value 1", "metadata": "select value d from Metadata.`Dataset` d"}
    for kind, name in (("dataset", "d"), ("view", "v"), ("synonym", "s")):
        queries |= {kind: f"select * from there.{name} x", f"no {kind}": f"select * from there.no_{name} x"}
    queries |= {"function": "there.f()", "no function": "there.g()", "use": "use there", "use none": "use gone"}
    return queries | {"use implicit": "use shut", "in no dataverse": "select * from gone.d x"}


def _writing(who: str) -> dict[str, str]:
    return {
        "create dataverse": f"create dataverse new_{who}",
        "create dataverse there": "create dataverse there",
        "create dataverse below": f"create dataverse there.below_{who}",
        "drop dataverse": f"drop dataverse drop_{who}",
        "drop no dataverse": "drop dataverse gone",
        "create type": f"create type there.new_{who} as {{}}",
        "create type there": "create type there.t as {}",
        "create type in none": "create type gone.t as {}",
        "drop type": f"drop type there.t_{who}",
        "drop no type": "drop type there.gone",
        "create dataset": f"create dataset there.made_{who}(t) primary key id",
        "create dataset there": "create dataset there.d(t) primary key id",
        "drop dataset": f"drop dataset there.d_{who}",
        "drop no dataset": "drop dataset there.gone",
        "create index": f"create index j_{who} on there.d(id)",
        "create index on none": "create index i on there.gone(id)",
        "drop index": f"drop index there.d.i_{who}",
        "create synonym": f"create synonym there.sn_{who} for there.d",
        "drop synonym": f"drop synonym there.s_{who}",
        "drop no synonym": "drop synonym there.gone",
        "create view": f"create view there.vn_{who} as select value 2",
        "create or replace view": "create or replace view there.v as select value 2",
        "drop view": f"drop view there.v_{who}",
        "drop no view": "drop view there.gone",
        "create function": f"create function there.fn_{who}() {{ 2 }}",
        "create or replace function": "create or replace function there.f() { 2 }",
        "drop function": f"drop function there.f_{who}@0",
        "drop no function": "drop function there.gone@0",
        "set": "set `compiler.parallelism` '2'",
        "declare function": "declare function f() { 1 }; f()",
        "explain": "explain select * from there.d x",
        "create external dataset": (
            f"create external dataset there.ex_{who}(t) using localfs (('path'='/x'), ('format'='json'))"
        ),
        "create primary index": f"create primary index p_{who} on there.d",
        "create external function": "create function there.ef() as 'a' at there.lib",
        "upsert": "upsert into there.d ({'id': 1})",
        "insert": "insert into there.d ({'id': 1})",
        "insert into none": "insert into there.gone ({'id': 1})",
        "delete": "delete from there.d",
        "update": "update there.d as x set x.a = 1 where x.id = 1",
        "copy": "copy there.d from localfs path ('/x') with {'format': 'json'}",
        "copy to": "copy there.d to localfs path ('/x') with {'format': 'json'}",
        "analyze": "analyze dataset there.d",
        "load": "load dataset there.d using localfs (('path'='/x'), ('format'='json'))",
    }


def routes() -> set[str]:
    """Return every route of the protocol."""
    return {f"{route.method} {route.path}" for route in all_routes(1.0)}


def cell(answer: DriverAnswer) -> str:
    """Return a cell: a status; for results also their number, for a refusal its code."""
    body = answer.json() if answer.body else {}
    if isinstance(body, list):
        return f"200:{len(body)}"
    if answer.status != 200:
        number = re.match(r"ASX\d+", body["errors"][0]["msg"])
        return f"{answer.status}/{number[0]}" if number else str(answer.status)
    return f"200:{len(body['results'])}" if "results" in body else "200"


def render(answers: dict[Row, dict[str, DriverAnswer]]) -> str:
    """Render the table."""
    lines = [f"| route | about | {' | '.join(CALLERS)} |", f"|---|---|{'---|' * len(CALLERS)}"]
    lines += [
        f"| `{route}` | {thing} | {' | '.join(cell(row_answers[who]) for who in CALLERS)} |"
        for (route, thing), row_answers in answers.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the table from the code's current answers."""
    with tempfile.TemporaryDirectory() as folder, iceberg.node_over(Path(folder)) as node:
        prepare(node)
        table = render(refusal_tables.answers(node, cases, callers=CALLERS))
    words = TABLE.read_text(encoding="utf-8").partition("| route |")[0]
    TABLE.write_text(f"{words}{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
