# SPDX-License-Identifier: Apache-2.0
"""The rows of the table in refusals.md: requests to Lance REST and their objects.

`python -m tests.rooms.lance.http.refusals` rewrites the table from the code. A cell is a status, and for a refusal the
protocol's code.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import lance

from limnos.rooms.lance.http.protocol import ROUTES
from limnos.rooms.lance.sources.directories import LanceDirectory
from tests.arrow_rows import ROWS, arrow
from tests.http import refusal_tables
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire as iceberg
from tests.http.refusal_tables import CALLERS, RefusalCase, Row, case, own
from tests.rooms.lance.http.wire import ROOT, declare, fill, lay, make_space, stage, table

TABLE = Path(__file__).with_name("refusals.md")
SPACE_ACTIONS = ("describe", "exists")
OWN_TABLES = ("drop", "dereg", "name", "taken", "away", "over", "undone", "anew")
"""Separate tables of each caller, for rows that change them."""
STAGED: dict[str, str] = {}
"""The staged manifest of each caller for its table with managed versions."""
NAMED = tuple(who for who in CALLERS if who != "nobody")


def prepare(node: DriverNode) -> None:
    """Create all users and objects of the rows."""
    for who in NAMED:
        if who not in ("stranger", "admin"):
            node.done("POST", f"{API}/lake/users", {"name": who})
    for name in ("there", "other", "closed"):
        make_space(node, "lance", name)
    for path in (("there", "t"), ("closed", "t"), ("r",)):
        declare(node, "lance", *path)
    node.done("POST", f"{table('lance', 'there', 'held')}/register", {"location": lay(node, "held")})
    lance.dataset(fill(node, "lance", "there", "rows")["location"]).tags.create("seen", 1)
    declare(node, "lance", "there", "kept", properties={"managed_versioning": "true"})
    node.done("POST", f"{table('lance', 'there', 'kept')}/insert", arrow())
    _show(node)
    for who, (on_metalake, on_catalog) in CALLERS.items():
        _prepare_own(node, who)
        if on_metalake:
            grant(node, who, on_metalake, kind="METALAKE", on="lake")
        if on_catalog:
            for catalog in ("lance", "shown", f"side_{who}"):
                grant(node, who, on_catalog, kind="CATALOG", on=catalog)
    for space in ("there", "other", *(f"{name}_{who}" for name in ("gone", "full") for who in CALLERS)):
        own(node, "keeper", "SCHEMA", f"lance.{space}")
    for name in ("t", "held", "rows", "kept", *(f"{name}_{who}" for name in (*OWN_TABLES, "kept") for who in CALLERS)):
        own(node, "tabler", "TABLE", f"lance.there.{name}")
    for catalog in ("lance", "shown"):
        own(node, "owner", "CATALOG", catalog)
    own(node, "laker", "METALAKE", "lake")


def _show(node: DriverNode) -> None:
    """Create a catalog of a directory that has a table in a namespace."""
    directory = LanceDirectory(str(node.data / "warehouse" / "shown"))
    directory.create_namespace(("a",), {})
    lance.write_dataset(ROWS, directory.location(directory.declare(("a", "docs"))), mode="append")
    properties = {"lance-directory": f"file://{directory.root}"}
    body = {"name": "shown", "type": "RELATIONAL", "provider": "lakehouse-generic", "properties": properties}
    node.done("POST", f"{API}/lake/catalogs", body)


def _prepare_own(node: DriverNode, who: str) -> None:
    for name in ("gone", "full"):
        make_space(node, "lance", f"{name}_{who}")
    declare(node, "lance", f"full_{who}", "t")
    managed_table = declare(node, "lance", "there", f"kept_{who}", properties={"managed_versioning": "true"})
    STAGED[who] = stage(managed_table["location"], 1)
    make_space(node, f"side_{who}")
    for name in OWN_TABLES:
        declare(node, "lance", "there", f"{name}_{who}")
    for name in ("old", "older"):
        lay(node, f"{name}_{who}")


def cases(_node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of the table for one caller."""
    yield from _spaces(who)
    yield from _tables(who)


def _about(action: str, thing: str, *path: str, body: object = None) -> RefusalCase:
    """Return a row about a namespace or table by its full identifier."""
    joined = "$".join(path) or "$"
    return case(action, thing, joined, root=ROOT, body=body)


def _spaces(who: str) -> Iterator[RefusalCase]:
    create, drop = "POST /namespace/{namespace_id}/create", "POST /namespace/{namespace_id}/drop"
    for action in ("list", "table/list"):
        route = f"GET /namespace/{{namespace_id}}/{action}"
        for thing, path in (
            ("root", ()),
            ("catalog", ("lance",)),
            ("no catalog", ("nowhere",)),
            ("namespace", ("lance", "there")),
            ("no namespace", ("lance", "gone")),
            ("closed namespace", ("lance", "closed")),
        ):
            yield _about(route, thing, *path)
    for action in SPACE_ACTIONS:
        route = f"POST /namespace/{{namespace_id}}/{action}"
        for thing, path in (
            ("root", ()),
            ("catalog", ("lance",)),
            ("no catalog", ("nowhere",)),
            ("namespace", ("lance", "there")),
            ("no namespace", ("lance", "gone")),
            ("closed namespace", ("lance", "closed")),
        ):
            yield _about(route, thing, *path, body={})
    yield _about(create, "catalog", f"cat_{who}", body={})
    yield _about(create, "free name", "lance", f"new_{who}", body={})
    yield _about(create, "taken name", "lance", "there", body={})
    yield _about(create, "taken name, exist ok", "lance", "there", body={"mode": "ExistOk"})
    yield _about(create, "below a namespace", "lance", "there", f"new_{who}", body={})
    yield _about(create, "below none", "lance", "gone", "new", body={})
    yield _about(create, "over a full one", "lance", f"full_{who}", body={"mode": "Overwrite"})
    yield _about(drop, "namespace", "lance", f"gone_{who}", body={})
    yield _about(drop, "no namespace", "lance", "gone", body={})
    yield _about(drop, "no namespace, skipped", "lance", "gone", body={"mode": "Skip"})
    yield _about(drop, "all in a namespace", "lance", f"full_{who}", body={"behavior": "Cascade"})
    yield _about(drop, "catalog", f"side_{who}", body={})
    yield _about(drop, "no catalog", "nowhere", body={})


def _tables(who: str) -> Iterator[RefusalCase]:
    yield case("GET /table", "all", root=ROOT)
    for action in ("describe", "exists"):
        yield from _each(action, "t", {})
    for action, mine in (("drop", "drop"), ("deregister", "dereg")):
        yield from _each(action, f"{mine}_{who}", {})
    rename = "POST /table/{table_id}/rename"
    yield from _each("rename", f"name_{who}", {"new_table_name": f"named_{who}"})
    yield _about(rename, "taken name", "lance", "there", f"taken_{who}", body={"new_table_name": "t"})
    destination = {"new_table_name": f"went_{who}", "new_namespace_id": ["lance", "other"]}
    yield _about(rename, "other namespace", "lance", "there", f"away_{who}", body=destination)
    for action in ("declare", "create-empty"):
        yield from _new(action, f"{action}_{who}", {})
    yield from _new("register", f"register_{who}", {"location": f"old_{who}"})
    yield from _each("version/list", "held", {})
    yield from _each("version/describe", "held", {"version": 1})
    yield from _each("version/create", f"kept_{who}", {"version": 1, "manifest_path": STAGED[who]})
    yield from _rows(who)
    yield from _kept_rows()
    yield from _directories()
    yield from _references(who)
    yield from _batches(who)
    over = {"location": f"older_{who}", "mode": "Overwrite"}
    yield _about("POST /table/{table_id}/register", "overwrite", "lance", "there", f"over_{who}", body=over)


def _rows(who: str) -> Iterator[RefusalCase]:
    """Yield the requests about rows of a table."""
    create = "POST /table/{table_id}/create"
    yield from _new("create", f"filled_{who}", arrow(), existing="rows")
    for thing, name, mode in (
        ("declared before", f"anew_{who}", "create"),
        ("taken name, exist ok", "t", "exist_ok"),
        ("overwrite", f"anew_{who}", "overwrite"),
    ):
        yield case(create, thing, f"lance$there${name}", root=ROOT, body=arrow(), query=f"?mode={mode}")
    yield from _each("insert", "rows", arrow())
    yield from _each("query", "rows", {"k": 1})
    yield from _each("delete", "rows", {"predicate": "id > 100"})
    for action, body in (
        ("count_rows", {}),
        ("explain_plan", {"query": {"k": 1}}),
        ("analyze_plan", {"k": 1}),
        ("stats", {}),
        ("merge_insert?on=id&when_not_matched_insert_all=true", arrow()),
        ("update", {"updates": [["text", "'x'"]]}),
        ("restore", {"version": 1}),
        ("schema_metadata/update", {"a": "b"}),
        ("update_field_metadata", {"updates": [{"path": "id", "metadata": {"a": "b"}}]}),
        ("create_index", {"column": "id", "index_type": "BTREE", "name": f"i_{who}"}),
        ("create_scalar_index", {"column": "id", "index_type": "BTREE", "name": f"s_{who}"}),
        ("index/list", {}),
        ("index/{index_name}/stats", {}),
        ("index/{index_name}/drop", {}),
        ("add_columns", {"new_columns": [{"name": f"c_{who}", "expression": "id + 1"}]}),
        ("alter_columns", {"alterations": [{"path": "text", "nullable": True}]}),
        ("drop_columns", {"columns": [f"c_{who}"]}),
    ):
        yield from _both(action, body, index=f"i_{who}")
    for action, body in (("describe", {}), ("alter", {"actions": []})):
        for thing, name in (("transaction", "lance$there$rows$x"), ("no table's transaction", "lance$there$gone$x")):
            yield case(f"POST /transaction/{{transaction_id}}/{action}", thing, name, root=ROOT, body=body)


def _kept_rows() -> Iterator[RefusalCase]:
    """Yield the requests about rows of a table with managed versions."""
    for action, body in (
        ("insert", arrow()),
        ("merge_insert?on=id&when_not_matched_insert_all=true", arrow()),
        ("update", {"updates": [["text", "'x'"]]}),
        ("delete", {"predicate": "id > 100"}),
        ("restore", {"version": 1}),
        ("add_columns", {"new_columns": [{"name": "id", "expression": "1"}]}),
        ("query", {"k": 1}),
        ("count_rows", {}),
        ("stats", {}),
    ):
        path, _, query = action.partition("?")
        route = f"POST /table/{{table_id}}/{path}"
        yield case(route, "managed table", "lance$there$kept", root=ROOT, body=body, query=query and f"?{query}")


def _directories() -> Iterator[RefusalCase]:
    """Yield the requests about a directory catalog: the directory is read with the rights on the catalog and never
    changed.
    """
    for action in ("list", "table/list"):
        yield _about(f"GET /namespace/{{namespace_id}}/{action}", "directory", "shown")
        yield _about(f"GET /namespace/{{namespace_id}}/{action}", "namespace of a directory", "shown", "a")
    yield _about("POST /namespace/{namespace_id}/create", "in a directory", "shown", "new", body={})
    for action, body in (("declare", {}), ("create", arrow()), ("register", {"location": "elsewhere"})):
        yield _about(f"POST /table/{{table_id}}/{action}", "in a directory", "shown", "a", "new", body=body)
    for action, body in (
        ("describe", {}),
        ("exists", {}),
        ("query", {"k": 1}),
        ("count_rows", {}),
        ("version/list", {}),
        ("tags/list", {}),
        ("index/list", {}),
        ("insert", arrow()),
        ("delete", {"predicate": "true"}),
        ("create_index", {"column": "id", "index_type": "BTREE"}),
        ("drop", {}),
        ("deregister", {}),
        ("rename", {"new_table_name": "other"}),
    ):
        for thing, name in (("table of a directory", "docs"), ("no table of a directory", "gone")):
            yield _about(f"POST /table/{{table_id}}/{action}", thing, "shown", "a", name, body=body)


def _both(action: str, body: object, *, index: str) -> Iterator[RefusalCase]:
    """Yield the same request for an existing and for a missing table."""
    path, _, query = action.partition("?")
    names = (index,) if "{index_name}" in path else ()
    for thing, table_id in (("table", "lance$there$rows"), ("no table", "lance$there$gone")):
        yield case(
            f"POST /table/{{table_id}}/{path}",
            thing,
            table_id,
            *names,
            root=ROOT,
            body=body,
            query=query and f"?{query}",
        )


def _references(who: str) -> Iterator[RefusalCase]:
    """Yield the requests about tags, branches and old versions: each caller uses separate names on one table with
    rows.
    """
    yield from _each("version/delete", "rows", {"ranges": []})
    yield from _each("tags/list", "rows", {})
    yield from _each("tags/version", "rows", {"tag": "seen"})
    for action in ("create", "update", "delete"):
        yield from _each(f"tags/{action}", "rows", {"tag": f"tag_{who}", "version": 1})
    yield from _each("branches/list", "rows", {})
    for action in ("create", "delete"):
        yield from _each(f"branches/{action}", "rows", {"name": f"branch_{who}"})


def _batches(who: str) -> Iterator[RefusalCase]:
    """Yield the commits to several tables: first to one, then with a second, missing one."""
    create, commit = "POST /table/version/batch-create", "POST /table/batch-commit"
    table_entry = {"id": ["lance", "there", f"kept_{who}"], "version": 1, "manifest_path": STAGED[who]}
    missing_entry = {**table_entry, "id": ["lance", "there", "gone"]}
    nowhere = {**table_entry, "id": ["lance", "gone", "t"]}
    for thing, entries in (("table", [table_entry]), ("no table", [missing_entry]), ("no namespace", [nowhere])):
        yield case(create, thing, root=ROOT, body={"entries": entries})
        operations = [{"create_table_version": each} for each in entries]
        yield case(commit, thing, root=ROOT, body={"operations": operations})
    for word, about in (
        ("declare_table", {"id": ["lance", "there", f"batch_{who}"]}),
        ("delete_table_versions", {"id": table_entry["id"], "ranges": []}),
        ("deregister_table", {"id": ["lance", "there", f"undone_{who}"]}),
    ):
        yield case(commit, word, root=ROOT, body={"operations": [{word: about}]})


def _each(action: str, name: str, body: object) -> Iterator[RefusalCase]:
    route = f"POST /table/{{table_id}}/{action}"
    yield _about(route, "table", "lance", "there", name, body=body)
    yield _about(route, "no table", "lance", "there", "gone", body=body)
    yield _about(route, "no namespace", "lance", "gone", "t", body=body)
    yield _about(route, "no table in a closed namespace", "lance", "closed", "gone", body=body)
    yield _about(route, "no table in the catalog", "lance", "gone_t", body=body)


def _new(action: str, name: str, body: object, *, existing: str = "t") -> Iterator[RefusalCase]:
    route = f"POST /table/{{table_id}}/{action}"
    yield _about(route, "free name", "lance", "there", name, body=body)
    yield _about(route, "taken name", "lance", "there", existing, body=body)
    yield _about(route, "no namespace", "lance", "gone", name, body=body)
    if action == "declare":
        yield _about(route, "in the catalog", "lance", name, body=body)


def routes() -> set[str]:
    """Return every route of the protocol."""
    return {f"{route.method} {route.path}" for route in ROUTES}


def cell(answer: DriverAnswer) -> str:
    """Return a cell: a status; for a list also its length, for a refusal the code."""
    if not answer.body or answer.headers["content-type"] != "application/json":
        return str(answer.status)
    body = answer.json()
    if answer.status != 200:
        return f"{answer.status}/{body['code']}"
    if not isinstance(body, dict):
        return str(answer.status)
    sizes = [len(value) for key, value in body.items() if key in ("namespaces", "tables", "versions", "branches")]
    return f"200:{sizes[0]}" if sizes else "200"


def render(answer_table: dict[Row, dict[str, DriverAnswer]]) -> str:
    """Render the table."""
    lines = [f"| route | about | {' | '.join(CALLERS)} |", f"|---|---|{'---|' * len(CALLERS)}"]
    lines += [
        f"| `{route}` | {thing} | {' | '.join(cell(row_answers[who]) for who in CALLERS)} |"
        for (route, thing), row_answers in answer_table.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the table from the code's current answers."""
    with tempfile.TemporaryDirectory() as folder, iceberg.node_over(Path(folder)) as node:
        prepare(node)
        table = render(refusal_tables.answers(node, cases))
    words = TABLE.read_text(encoding="utf-8").partition("| route |")[0]
    TABLE.write_text(f"{words}{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
