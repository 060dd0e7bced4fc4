# SPDX-License-Identifier: Apache-2.0
"""The table of decision record 0006: the status of every Iceberg route for each caller, as a node answers.

`python -m tests.http.iceberg.refusals` prints the table of the code's current answers, to be reviewed before it is
copied into the record. test_refusals.py compares the record with the node, cell by cell.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from limnos.http.iceberg.protocol import CATALOG_ROUTES
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg import wire

RECORD = Path(__file__).parents[3] / "docs" / "decisions" / "0006-403-and-404-over-iceberg-rest.md"
USE = "use_catalog use_schema"
CALLERS = {
    "stranger": None,
    "member": "",
    "uses": USE,
    "schemer": "use_catalog create_schema",
    "creator": f"{USE} create_table",
    "reader": f"{USE} select_table",
    "writer": f"{USE} modify_table",
    "drafter": f"{USE} create_view",
    "viewer": f"{USE} select_view",
    "keyless": "use_schema select_table modify_table select_view",
    "holder": "use_catalog",
    "owner": "",
}
"""Each column: the caller's privileges on the catalog. `holder` also owns the existing namespaces, and `owner` the
catalog.
"""

Request = tuple[str, str, object]
Row = tuple[str, str]
RENAME = "POST /{prefix}/tables/rename"
TRANSACTION = "POST /{prefix}/transactions/commit"
RENAME_VIEW = "POST /{prefix}/views/rename"
CONFIG = "GET /config"


def _table_body(name: str) -> dict[str, object]:
    return {"name": name, "schema": wire.SCHEMA}


def _rename(source: str, space: str, name: str) -> dict[str, object]:
    return {"source": {"namespace": ["there"], "name": source}, "destination": {"namespace": [space], "name": name}}


def _together(who: str, *tables: tuple[str, str], location: str = "") -> Request:
    updates = wire.creation(location) if location else [wire.set_properties(by=who)]
    asserts = [{"type": "assert-create"}] if location else []
    changes = [
        {"identifier": {"namespace": [space], "name": name}, "requirements": asserts, "updates": updates}
        for space, name in tables
    ]
    return "POST", f"{wire.ROOT}/transactions/commit", {"table-changes": changes}


def requests(who: str, files: dict[str, object]) -> dict[Row, Request]:
    """Return the request of each row for a caller. Objects that a row changes are separate per caller, so that cells
    are independent.
    """
    return _of_catalogs(who) | _of_namespaces(who, files) | _of_tables(who, files) | _of_views(who, files)


def _of_catalogs(who: str) -> dict[Row, Request]:
    spaces = wire.SPACES
    return {
        (CONFIG, "catalog"): ("GET", "/iceberg/v1/config?warehouse=main", None),
        (CONFIG, "no catalog"): ("GET", "/iceberg/v1/config?warehouse=nowhere", None),
        (CONFIG, "no metalake"): ("GET", "/iceberg/v1/config?warehouse=nolake/main", None),
        ("GET /{prefix}/namespaces", "catalog"): ("GET", spaces, None),
        ("GET /{prefix}/namespaces", "no catalog"): ("GET", "/iceberg/v1/lake.nowhere/namespaces", None),
        ("GET /{prefix}/namespaces", "no metalake"): ("GET", "/iceberg/v1/nolake.main/namespaces", None),
        ("GET /{prefix}/namespaces", "parent"): ("GET", f"{spaces}?parent=there", None),
        ("GET /{prefix}/namespaces", "no parent"): ("GET", f"{spaces}?parent=gone", None),
        ("POST /{prefix}/namespaces", "free name"): ("POST", spaces, {"namespace": [f"new_{who}"]}),
        ("POST /{prefix}/namespaces", "taken name"): ("POST", spaces, {"namespace": ["there"]}),
        ("POST /{prefix}/namespaces", "below a namespace"): ("POST", spaces, {"namespace": ["there", f"new_{who}"]}),
        ("POST /{prefix}/namespaces", "below none"): ("POST", spaces, {"namespace": [f"none_{who}", "new"]}),
    }


def _of_namespaces(who: str, files: dict[str, object]) -> dict[Row, Request]:
    existing_path, missing_path = wire.space_path("there"), wire.space_path("gone")
    requests_by_row: dict[Row, Request] = {}
    for route, method, path, body in (
        ("GET /{prefix}/namespaces/{namespace}", "GET", "", None),
        ("HEAD /{prefix}/namespaces/{namespace}", "HEAD", "", None),
        ("POST /{prefix}/namespaces/{namespace}/properties", "POST", "/properties", {"updates": {"by": who}}),
        ("GET /{prefix}/namespaces/{namespace}/tables", "GET", "/tables", None),
        ("GET /{prefix}/namespaces/{namespace}/views", "GET", "/views", None),
    ):
        requests_by_row[route, "namespace"] = (method, f"{existing_path}{path}", body)
        requests_by_row[route, "no namespace"] = (method, f"{missing_path}{path}", body)
        requests_by_row[route, "closed namespace"] = (method, f"{wire.space_path('closed')}{path}", body)
    drop, create = "DELETE /{prefix}/namespaces/{namespace}", "POST /{prefix}/namespaces/{namespace}/tables"
    register = "POST /{prefix}/namespaces/{namespace}/register"
    file, other_file = ({"metadata-location": files[f"{which}_{who}"]} for which in ("old", "older"))
    requests_by_row |= {
        (drop, "namespace"): ("DELETE", wire.space_path(f"empty_{who}"), None),
        (drop, "no namespace"): ("DELETE", missing_path, None),
        (create, "free name"): ("POST", f"{existing_path}/tables", _table_body(f"new_{who}")),
        (create, "taken name"): ("POST", f"{existing_path}/tables", _table_body("t")),
        (create, "no namespace"): ("POST", f"{missing_path}/tables", _table_body("t")),
        (register, "free name"): ("POST", f"{existing_path}/register", {"name": f"registered_{who}", **file}),
        (register, "taken name"): ("POST", f"{existing_path}/register", {"name": "t", **file}),
        (register, "no namespace"): ("POST", f"{missing_path}/register", {"name": "t", **file}),
        (register, "overwrite"): (
            "POST",
            f"{existing_path}/register",
            {"name": f"over_{who}", "overwrite": True, **other_file},
        ),
    }
    return requests_by_row


def _of_tables(who: str, files: dict[str, object]) -> dict[Row, Request]:
    root, existing_path, missing_path = wire.ROOT, wire.space_path("there"), wire.space_path("gone")
    requests_by_row: dict[Row, Request] = {}
    table = "/{prefix}/namespaces/{namespace}/tables/{table}"
    updates = {"updates": [wire.set_properties(by=who)]}
    for method, path, body in (
        ("GET", "", None),
        ("HEAD", "", None),
        ("POST", "", updates),
        ("DELETE", "", None),
        ("POST", "/metrics", {"report-type": "scan-report"}),
        ("POST", "/unregister", None),
        ("GET", "/credentials", None),
        ("POST", "/plan", {}),
        ("GET", "/plan/{plan}", None),
        ("DELETE", "/plan/{plan}", None),
        ("POST", "/tasks", {"plan-task": "none"}),
        (
            "POST",
            "/sign",
            {"region": "us-east-1", "uri": "https://b.s3.amazonaws.com/t/f", "method": "GET", "headers": {}},
        ),
    ):
        route, path = f"{method} {table}{path}", path.replace("{plan}", "none")  # noqa: PLW2901 - it is reported and requested differently
        own = f"drop_{who}" if (method, path) == ("DELETE", "") else f"leave_{who}" if path == "/unregister" else "t"
        requests_by_row[route, "table"] = (method, f"{existing_path}/tables/{own}{path}", body)
        requests_by_row[route, "no table"] = (method, f"{existing_path}/tables/gone{path}", body)
        requests_by_row[route, "no namespace"] = (method, f"{missing_path}/tables/t{path}", body)
        closed = wire.table_path("closed", "gone")
        requests_by_row[route, "no table in a closed namespace"] = (method, f"{closed}{path}", body)
    location = f"{Path(str(files['warehouse']))}/staged_{who}"
    staged = {"requirements": [{"type": "assert-create"}], "updates": wire.creation(f"file://{location}")}
    requests_by_row |= {
        (f"POST {table}", "staged, free name"): ("POST", f"{existing_path}/tables/staged_{who}", staged),
        (f"POST {table}", "staged, taken name"): ("POST", f"{existing_path}/tables/t", staged),
        (f"POST {table}", "staged, no namespace"): ("POST", f"{missing_path}/tables/staged_{who}", staged),
        (RENAME, "table"): ("POST", f"{root}/tables/rename", _rename(f"rename_{who}", "there", f"renamed_{who}")),
        (RENAME, "no table"): ("POST", f"{root}/tables/rename", _rename("gone", "there", f"renamed_{who}")),
        (RENAME, "taken name"): ("POST", f"{root}/tables/rename", _rename(f"taken_{who}", "there", "t")),
        (RENAME, "other namespace"): ("POST", f"{root}/tables/rename", _rename(f"move_{who}", "other", f"moved_{who}")),
        (RENAME, "no other namespace"): ("POST", f"{root}/tables/rename", _rename("t", "gone", "t")),
        (TRANSACTION, "table"): _together(who, ("there", "t")),
        (TRANSACTION, "no table"): _together(who, ("there", "gone")),
        (TRANSACTION, "no namespace"): _together(who, ("gone", "t")),
        (TRANSACTION, "table, and one of the holder's"): _together(who, ("there", "t"), ("there", "owned")),
        (TRANSACTION, "table, and one in a closed namespace"): _together(who, ("there", "t"), ("closed", "c")),
        (TRANSACTION, "free name"): _together(who, ("there", f"set_{who}"), location=f"file://{location}_set"),
        (TRANSACTION, "taken name"): _together(who, ("there", "t"), location=f"file://{location}_set"),
    }
    return requests_by_row


def _of_views(who: str, files: dict[str, object]) -> dict[Row, Request]:
    root, existing_path, missing_path = wire.ROOT, wire.space_path("there"), wire.space_path("gone")
    create, view = "POST /{prefix}/namespaces/{namespace}/views", "/{prefix}/namespaces/{namespace}/views/{view}"
    register, file = "POST /{prefix}/namespaces/{namespace}/register-view", {"metadata-location": files[f"oldv_{who}"]}
    requests_by_row: dict[Row, Request] = {
        (create, "free name"): ("POST", f"{existing_path}/views", wire.view_body(f"newv_{who}")),
        (create, "taken name"): ("POST", f"{existing_path}/views", wire.view_body("v")),
        (create, "name of a table"): ("POST", f"{existing_path}/views", wire.view_body("t")),
        (create, "no namespace"): ("POST", f"{missing_path}/views", wire.view_body("v")),
        (register, "free name"): ("POST", f"{existing_path}/register-view", {"name": f"registeredv_{who}", **file}),
        (register, "taken name"): ("POST", f"{existing_path}/register-view", {"name": "v", **file}),
        (register, "no namespace"): ("POST", f"{missing_path}/register-view", {"name": "v", **file}),
    }
    updates = {"updates": [wire.set_properties(by=who)]}
    for method, body in (("GET", None), ("HEAD", None), ("POST", updates), ("DELETE", None)):
        own = f"dropv_{who}" if method == "DELETE" else "v"
        requests_by_row[f"{method} {view}", "view"] = (method, f"{existing_path}/views/{own}", body)
        requests_by_row[f"{method} {view}", "no view"] = (method, f"{existing_path}/views/gone", body)
        requests_by_row[f"{method} {view}", "a table"] = (method, f"{existing_path}/views/t", body)
        requests_by_row[f"{method} {view}", "no namespace"] = (method, f"{missing_path}/views/v", body)
        requests_by_row[f"{method} {view}", "no view in a closed namespace"] = (
            method,
            wire.view_path("closed", "gone"),
            body,
        )
    rename = f"{root}/views/rename"
    return requests_by_row | {
        (RENAME_VIEW, "view"): ("POST", rename, _rename(f"renamev_{who}", "there", f"renamedv_{who}")),
        (RENAME_VIEW, "no view"): ("POST", rename, _rename("gone", "there", f"renamedv_{who}")),
        (RENAME_VIEW, "taken name"): ("POST", rename, _rename(f"takenv_{who}", "there", "v")),
        (RENAME_VIEW, "name of a table"): ("POST", rename, _rename(f"takenv_{who}", "there", "t")),
        (RENAME_VIEW, "other namespace"): ("POST", rename, _rename(f"movev_{who}", "other", f"movedv_{who}")),
        (RENAME_VIEW, "no other namespace"): ("POST", rename, _rename("v", "gone", "v")),
    }


def prepare(node: DriverNode) -> dict[str, object]:
    """Create all users and objects of the rows. Returns metadata files that can be registered."""
    files: dict[str, object] = {"warehouse": node.data / "warehouse" / "main"}
    for name in ("there", "other", "closed"):
        wire.make_space(node, name)
    wire.make_table(node, "there", "t")
    wire.make_table(node, "there", "owned")
    wire.make_table(node, "closed", "c")
    wire.make_view(node, "there", "v")
    for who, privileges in CALLERS.items():
        if privileges is not None:
            node.done("POST", f"{API}/lake/users", {"name": who})
        if privileges:
            grant(node, who, privileges, kind="CATALOG", on="main")
        wire.make_space(node, f"empty_{who}")
        for name in ("over", "drop", "leave", "rename", "move", "taken"):
            wire.make_table(node, "there", f"{name}_{who}")
        for name in ("dropv", "renamev", "movev", "takenv"):
            wire.make_view(node, "there", f"{name}_{who}")
        for name in (f"old_{who}", f"older_{who}"):
            files[name] = wire.make_table(node, "there", name)["metadata-location"]
            node.post(f"{wire.table_path('there', name)}/unregister")
        files[f"oldv_{who}"] = _copied_view(node, f"oldv_{who}")
    for space in ("there", "other", "empty_holder"):
        own(node, "holder", "SCHEMA", f"main.{space}")
    own(node, "holder", "TABLE", "main.there.owned")
    own(node, "owner", "CATALOG", "main")
    return files


def _copied_view(node: DriverNode, name: str) -> str:
    """Write a view's metadata as that of another view, at an unused location. Returns its file."""
    metadata = wire.make_view(node, "there", name)["metadata"]
    place = f"file://{node.data}/warehouse/main/{name}"
    file = wire.local(f"{place}/metadata/00000.metadata.json")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**metadata, "location": place, "view-uuid": str(uuid.uuid4())}))
    return f"file://{file}"


def own(node: DriverNode, user: str, kind: str, name: str) -> None:
    """Make a user the owner of an object."""
    node.done("PUT", f"{API}/lake/owners/{kind}/{name}", {"name": user, "type": "USER"})


def ask(node: DriverNode, who: str, request: Request) -> int:
    """Return the status that a caller gets."""
    method, path, body = request
    return node.ask(method, path, body, user=who).status


def rows_written() -> Iterator[tuple[Row, dict[str, int]]]:
    """Return the rows of the record's table: route, object, status by caller."""
    lines = [
        line.strip("| ").split("|")
        for line in RECORD.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    for cells in lines:
        route, thing, *statuses = (cell.strip() for cell in cells)
        assert len(statuses) == len(CALLERS), route
        yield (route.strip("`"), thing), {who: int(status) for who, status in zip(CALLERS, statuses, strict=True)}


def routes() -> set[str]:
    """Return every route of the protocol."""
    return {f"{route.method} {route.path}" for route in CATALOG_ROUTES} | {CONFIG}


def render(node: DriverNode) -> str:
    """Return the table of a node's current answers."""
    files = prepare(node)
    requests_by_caller: dict[str, dict[Row, Request]] = {who: requests(who, files) for who in CALLERS}
    order: Callable[[Row], tuple[bool, str]] = lambda row: (row[0] != CONFIG, "")  # noqa: E731 - a key, used once
    lines = [f"| route | object | {' | '.join(CALLERS)} |", f"|---|---|{'---|' * len(CALLERS)}"]
    for row in sorted(requests_by_caller["member"], key=order):
        statuses = [str(ask(node, who, requests_by_caller[who][row])) for who in CALLERS]
        lines.append(f"| `{row[0]}` | {row[1]} | {' | '.join(statuses)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, wire.node_over(Path(folder)) as running:
        print(render(running))
