# SPDX-License-Identifier: Apache-2.0
"""The requests of the admin API's table of refusals, `refusals.md`; `python -m tests.http.admin.refusals` rewrites
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from limnos.http.admin.catalog import declared_objects
from limnos.http.admin.protocol import AdminProtocol
from tests.http import refusal_tables
from tests.http.driver import API, OWN, PROGRAM, SCHEDULE, DriverAnswer, DriverNode, let_jobs
from tests.http.iceberg import wire
from tests.http.refusal_tables import RefusalCase, Row, case
from tests.installed import has_room

TABLE = Path(__file__).with_suffix(".md")
LAKE = f"{OWN}/metalakes/{{m}}"
MOVE = f"POST {LAKE}/catalogs/{{c}}/move"
TRANSACT = f"POST {LAKE}/catalogs/{{c}}/transactions"
TRANSACT_JOINTLY = f"POST {LAKE}/transactions"
DECLARED: dict[str, object] = {"declaration": {"steps": []}}
WORDS = "a few words for this"
HOOK = {"url": "https://hooks.example.com/x"}
RUN = re.compile("`?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`?")
MEMBERS = f"{LAKE}/groups/{{g}}/members"


def routes() -> set[str]:
    """Return every route of the protocol whose answer depends on the caller."""
    protocol = AdminProtocol()
    return {
        f"{route.method} {route.path}"
        for route in protocol.router.routes
        if route.operation not in protocol.anonymous and route not in declared_objects.ROUTES
    }


def cases(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of the table for one caller."""
    yield case(f"GET {OWN}/whoami", "")
    yield from _moves(who)
    yield from _transactions(who)
    yield from _members(who)
    yield from _changes()
    yield from _trash(node, who)
    yield from _protection(who)
    yield from _restrictions(who)
    yield from _names()
    yield from _access_requests()
    yield from _exchange(who)
    yield from _audits()
    children = f"GET {LAKE}/catalogs/{{c}}/children"
    yield case(children, "catalog", "lake", "main")
    yield case(children, "namespace", "lake", "main", query="?path=there")
    yield case(children, "tables of a namespace", "lake", "main", query="?path=there&kind=table")
    yield case(children, "no namespace", "lake", "main", query="?path=gone")
    yield case(children, "tables of no namespace", "lake", "main", query="?path=gone&kind=table")
    yield case(children, "of no catalog", "lake", "nowhere")
    yield case(f"GET {LAKE}/search", "table", "lake", query="?q=main.there.t")
    yield case(f"GET {LAKE}/search", "of no metalake", "nolake", query="?q=t")
    yield from _tables()
    yield from _filesets(node, who)
    yield from _maintenance()
    yield from _lineage() if has_room("pipelines") else ()
    yield from _webhooks(node)
    if has_room("pipelines"):
        yield from _pipelines(node, who)
        yield from _runs(node, who)
    yield from _jobs(node, who)
    yield from _explanations()
    yield from _tokens(node, who)
    yield from _secrets(node, who)
    yield case(f"POST {LAKE}/catalogs/{{c}}/storage/check", "catalog", "lake", "main")
    yield case(f"POST {LAKE}/catalogs/{{c}}/storage/check", "no catalog", "lake", "nowhere")
    yield case(f"GET {OWN}/storage/keys", "keys")
    yield case(f"POST {OWN}/storage/keys/rotate", "keys")
    yield case(f"GET {OWN}/nodes", "nodes")
    yield case(f"GET {OWN}/settings", "settings")
    yield case(f"GET {OWN}/service-accounts", "service accounts")
    yield case(f"GET {OWN}/tasks", "tasks")
    yield case(f"GET {OWN}/tasks/{{id}}", "no task", "1")
    yield case(f"POST {OWN}/tasks/{{id}}/retry", "no task", "1")
    yield case(f"GET {LAKE}/users/{{u}}/groups", "user", "lake", "dummy")
    yield case(f"GET {LAKE}/users/{{u}}/groups", "no user", "lake", "gone")
    yield case(f"PATCH {LAKE}/users/{{u}}", "user", "lake", "dummy", body={"enabled": True})
    yield case(f"PATCH {LAKE}/users/{{u}}", "no user", "lake", "gone", body={"enabled": True})


def _maintenance() -> Iterator[RefusalCase]:
    maintenance = f"GET {LAKE}/catalogs/{{c}}/maintenance"
    for rest in ("findings", "operations"):
        yield case(f"{maintenance}/{rest}", "catalog", "lake", "main")
        yield case(f"{maintenance}/{rest}", "no catalog", "lake", "nowhere")
    start = f"POST {LAKE}/catalogs/{{c}}/maintenance/operations"
    yield case(start, "table", "lake", "main", body={"table": "there.t"})
    yield case(start, "no table", "lake", "main", body={"table": "there.gone"})
    yield case(start, "of no catalog", "lake", "nowhere", body={"table": "there.t"})
    yield case(f"{maintenance}/table", "table", "lake", "main", query="?table=there.t")
    yield case(f"{maintenance}/table", "no table", "lake", "main", query="?table=there.gone")
    yield case(f"{maintenance}/table", "of no catalog", "lake", "nowhere", query="?table=there.t")
    yield case(f"POST {LAKE}/maintenance/leases", "metalake", "lake", body={"holder": "x"})
    yield case(f"PUT {LAKE}/maintenance/leases", "metalake", "lake", body={"holder": "x"})
    yield case(f"POST {LAKE}/maintenance/operations/{{o}}/report", "metalake", "lake", "1", body={"outcome": "done"})
    yield case(f"POST {LAKE}/maintenance/operations/{{o}}/cancel", "no operation", "lake", "1")
    for rest in ("spans", "files"):
        of_operation = f"POST {LAKE}/catalogs/{{c}}/maintenance/operations/{{o}}/{rest}"
        yield case(of_operation, "no operation", "lake", "main", "1")
        yield case(of_operation, "of no catalog", "lake", "nowhere", "1")


def _tables() -> Iterator[RefusalCase]:
    reports = f"GET {LAKE}/catalogs/{{c}}/reports"
    yield case(reports, "table", "lake", "main", query="?table=there.t")
    yield case(reports, "no table", "lake", "main", query="?table=there.gone")
    yield case(reports, "of no catalog", "lake", "nowhere", query="?table=there.t")
    check = f"GET {LAKE}/catalogs/{{c}}/tables/check"
    yield case(check, "table", "lake", "main", query="?table=there.t")
    yield case(check, "no table", "lake", "main", query="?table=there.gone")
    yield case(check, "of no catalog", "lake", "nowhere", query="?table=there.t")
    load = f"POST {LAKE}/catalogs/{{c}}/load"
    yield case(load, "table", "lake", "main", body={"paths": [["there", "t"]]})
    yield case(load, "no table", "lake", "main", body={"paths": [["there", "gone"]]})
    yield case(load, "of no catalog", "lake", "nowhere", body={"paths": [["there", "t"]]})
    preview = (
        f"GET {LAKE}/catalogs/{{c}}/tables/preview"  # no rows are asked for: 400 after the decision, without a process
    )
    yield case(preview, "table", "lake", "main", query="?table=there.t&rows=0")
    yield case(preview, "no table", "lake", "main", query="?table=there.gone&rows=0")
    yield case(preview, "of no catalog", "lake", "nowhere", query="?table=there.t&rows=0")


def _make_fileset(node: DriverNode) -> None:
    """Make a fileset in a catalog of its own, which `reader` may read and `writer` write."""
    lake = f"{API}/lake"
    node.done("POST", f"{lake}/catalogs", {"name": "files", "type": "fileset"}, user="laker")
    node.done("POST", f"{lake}/catalogs/files/schemas", {"name": "there"}, user="laker")
    node.done("POST", f"{lake}/catalogs/files/schemas/there/filesets", {"name": "there"}, user="laker")
    for who, right in (("uses", ""), ("reader", "read_fileset"), ("writer", "write_fileset")):
        rules = [{"name": name, "condition": "allow"} for name in f"{refusal_tables.USE} {right}".split()]
        objects = [{"fullName": "files", "type": "CATALOG", "privileges": rules}]
        body = {"name": f"files_{who}", "properties": {}, "securableObjects": objects}
        node.done("POST", f"{lake}/roles", body, user="laker")
        node.done("PUT", f"{lake}/permissions/users/{who}/grant", {"roleNames": [f"files_{who}"]}, user="laker")
    refusal_tables.own(node, "owner", "CATALOG", "files", by="laker")


def _filesets(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    if who == "nobody":  # the first one
        _make_fileset(node)
    for route, file in (("entries", ""), ("preview", "&file=a.csv&rows=0")):
        files = f"GET {LAKE}/catalogs/{{c}}/filesets/{route}"
        yield case(files, "fileset", "lake", "files", query=f"?fileset=there.there{file}")
        yield case(files, "no fileset", "lake", "files", query=f"?fileset=there.gone{file}")
        yield case(files, "of no catalog", "lake", "nowhere", query=f"?fileset=there.there{file}")


def _moves(who: str) -> Iterator[RefusalCase]:
    def move(thing: str, kind: str, source: str, target: str, *, catalog: str = "main") -> RefusalCase:
        body = {"kind": kind, "source": source.split("/"), "target": target.split("/")}
        return case(MOVE, thing, "lake", catalog, body=body)

    yield move("namespace, another name", "namespace", f"mv_{who}", f"mv_{who}_moved")
    yield move("namespace, into another", "namespace", f"away_{who}", f"other/away_{who}")
    yield move("namespace, into none", "namespace", f"alter_{who}", f"gone/alter_{who}")
    yield move("namespace, taken name", "namespace", f"alter_{who}", "there")
    yield move("no namespace", "namespace", "gone", f"gone_{who}")
    yield move("table, another name", "table", f"there/mvt_{who}", f"there/mvt_{who}_moved")
    yield move("table, into another namespace", "table", f"there/awayt_{who}", f"other/awayt_{who}")
    yield move("table, into no namespace", "table", "there/t", f"gone/t_{who}")
    yield move("table, taken name", "table", "there/t", f"there/mvt_{who}_moved")
    yield move("no table", "table", "there/gone", f"there/gone_{who}")
    yield move("of no catalog", "namespace", "there", "elsewhere", catalog="nowhere")


def _transactions(who: str) -> Iterator[RefusalCase]:
    """Return each operation followed by an operation that gets 400 for everybody before access is decided.

    A 400 therefore shows that the first operation is allowed.
    """

    def do(thing: str, *operations: dict[str, object], catalog: str = "main", guarded: bool = True) -> RefusalCase:
        never: dict[str, object] = {"do": "move-table", "source": ["there"], "target": ["there"]}
        body = {"operations": [*operations, *([never] if guarded else [])]}
        return case(TRANSACT, thing, "lake", catalog, body=body)

    updates = [wire.set_properties(by=who)]
    create: dict[str, object] = {"do": "create-table", "schema": wire.SCHEMA}
    commit: dict[str, object] = {"do": "commit-table", "updates": updates}
    yield do("table committed to", commit | {"path": ["there", "t"]}, guarded=False)
    yield do("no table committed to", commit | {"path": ["there", "gone"]})
    yield do("table made", create | {"path": ["there", f"new_{who}"]})
    yield do("table made, taken name", create | {"path": ["there", "t"]})
    yield do("table dropped", {"do": "drop-table", "path": ["there", "t"]})
    yield do("no table dropped", {"do": "drop-table", "path": ["there", "gone"]})
    yield do("table renamed", {"do": "move-table", "source": ["there", "t"], "target": ["there", f"t_{who}"]})
    yield do("table moved", {"do": "move-table", "source": ["there", "t"], "target": ["other", f"t_{who}"]})
    view_body = wire.view_body("v")
    parts = {"schema": view_body["schema"], "view_version": view_body["view-version"]}
    yield do("view made", {"do": "create-view", "path": ["there", f"newv_{who}"], **parts})
    yield do("view made, taken name", {"do": "create-view", "path": ["there", "t"], **parts})
    yield do("view written anew", {"do": "commit-view", "path": ["there", "v"]})
    yield do("no view written anew", {"do": "commit-view", "path": ["there", "gone"]})
    yield do("view dropped", {"do": "drop-view", "path": ["there", "v"]})
    yield do("view renamed", {"do": "move-view", "source": ["there", "v"], "target": ["there", f"v_{who}"]})
    yield do("view moved", {"do": "move-view", "source": ["there", "v"], "target": ["other", f"v_{who}"]})
    yield do("namespace made", {"do": "create-namespace", "path": [f"new_{who}"]})
    yield do("namespace made in one", {"do": "create-namespace", "path": ["there", f"new_{who}"]})
    yield do("namespace dropped", {"do": "drop-namespace", "path": [f"empty_{who}"]})
    yield do("no namespace dropped", {"do": "drop-namespace", "path": ["gone"]})
    yield do("namespace renamed", {"do": "move-namespace", "source": ["there"], "target": [f"there_{who}"]})
    yield do("namespace moved", {"do": "move-namespace", "source": ["there"], "target": ["other", f"there_{who}"]})
    yield do(
        "table committed to, and none dropped",
        commit | {"path": ["there", "t"]},
        {"do": "drop-table", "path": ["there", "gone"]},
    )
    yield do("of no catalog", {"do": "drop-namespace", "path": ["there"]}, catalog="nowhere")
    yield from _joint_transactions(commit)
    for thing, name in (("table that is missing", "gone"), ("table", "t")):
        item = {"do": "set-properties", "kind": "table", "path": ["main", "there", name], "set": {"a": "b"}}
        yield case(f"POST {LAKE}/bulk", thing, "lake", query=f"?job=j-{who}-{name}", body=item)
    yield case(
        f"POST {LAKE}/bulk",
        "namespace made",
        "lake",
        query=f"?job=a-{who}&atomic=true",
        body={"do": "create-namespace", "path": ["main", f"bulk_{who}"]},
    )


def _joint_transactions(commit: dict[str, object]) -> Iterator[RefusalCase]:
    """Return transactions of a metalake: of the caller's catalog, and with an operation in a catalog without rights."""

    def do(thing: str, *operations: dict[str, object]) -> RefusalCase:
        return case(TRANSACT_JOINTLY, thing, "lake", body={"operations": list(operations)})

    own: dict[str, object] = commit | {"path": ["there", "t"], "catalog": "main"}
    version: dict[str, object] = {"do": "commit-lance-version", "version": 1, "manifest_path": "x"}
    yield do("table committed to", own)
    yield do("table and no Lance table committed to", own, version | {"catalog": "main", "path": ["there", "gone"]})
    yield do("table committed to, and one of no catalog", own, commit | {"path": ["there", "t"], "catalog": "nowhere"})


def _pipelines(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Create two pipelines for each caller: one to change and run, one to drop."""
    one, pipelines = f"{LAKE}/pipelines/{{p}}", f"{LAKE}/pipelines"
    for name in ("there", f"pipe_{who}", f"shed_{who}"):
        declare(node, name)
    yield case(f"GET {pipelines}", "pipelines", "lake")
    yield case(f"PUT {one}", "new", "lake", f"new_{who}", body=DECLARED)
    yield case(f"PUT {one}", "the same", "lake", "there", body=DECLARED)
    yield case(f"PUT {one}", "pipeline", "lake", f"pipe_{who}", body={"declaration": {"by": who}})
    for name, thing in (("there", "pipeline"), ("gone", "no pipeline")):
        yield case(f"GET {one}", thing, "lake", name)
        yield case(f"GET {one}/findings", thing, "lake", name)
    yield from _schedules(node, who)
    yield case(f"DELETE {one}", "pipeline", "lake", f"shed_{who}")
    yield case(f"DELETE {one}", "no pipeline", "lake", "gone")
    for name, thing in ((f"pipe_{who}", "pipeline"), ("gone", "no pipeline")):
        yield case(f"POST {one}/runs", thing, "lake", name, body={"id": str(uuid4()), "holder": "h:1"})


def _schedules(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Create schedules of `laker`: their user may resume them, who owns the pipeline may pause and delete them."""
    one = f"{LAKE}/pipelines/{{p}}/schedule"
    let_jobs(node)
    for name in (f"due_{who}", f"paused_{who}", f"undue_{who}"):
        declare(node, name)
        node.done("PUT", f"{OWN}/metalakes/lake/pipelines/{name}/schedule", SCHEDULE, user="laker")
    yield case(f"GET {LAKE}/schedules", "schedules", "lake")
    for name, thing in ((f"due_{who}", "schedule"), ("gone", "no pipeline")):
        yield case(f"GET {one}", thing, "lake", name)
        yield case(f"PUT {one}", thing, "lake", name, body=SCHEDULE)
    yield case(f"PUT {one}", "pipeline without a schedule", "lake", f"pipe_{who}", body=SCHEDULE)
    for name, thing in ((f"paused_{who}", "schedule"), ("gone", "no pipeline")):
        yield case(f"POST {one}", f"{thing} resumed", "lake", name, body={"paused": False})
        yield case(f"POST {one}", f"{thing} paused", "lake", name, body={"paused": True})
    yield case(f"DELETE {one}", "schedule", "lake", f"undue_{who}")
    yield case(f"DELETE {one}", "no pipeline", "lake", "gone")


def declare(node: DriverNode, name: str) -> None:
    """Declare a pipeline that `keeper` owns, once."""
    path = f"{OWN}/metalakes/lake/pipelines/{name}"
    if node.get(path, user="laker").status != 200:
        node.done("PUT", path, DECLARED, user="laker")
        refusal_tables.own(node, "keeper", "JOB_TEMPLATE", name, by="laker")


def _runs(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Create runs of `laker`: only a run's owner may continue it; the pipeline's owner may see and stop it."""
    one = f"{LAKE}/runs/{{id}}"
    yield case(f"GET {LAKE}/runs", "runs", "lake")
    yield case(f"GET {LAKE}/runs", "runs of no pipeline", "lake", query="?pipeline=gone")
    step_report: dict[str, object] = {"attempt": 1, "state": "running"}
    failed: dict[str, object] = {"attempt": 1, "state": "failed"}
    discarded: dict[str, object] = {"attempt": 1, "state": "discarded"}
    for thing, run in (("run", run_of(node, f"told_{who}")), ("no run", str(uuid4()))):
        yield case(f"GET {one}", thing, "lake", run)
        yield case(f"POST {one}/beat", thing, "lake", run, body={"attempt": 1})
        yield case(f"PUT {one}/steps/{{step}}", thing, "lake", run, "s", body=step_report)
    rows = (
        ("finish", "run", "running", failed),
        ("finish", "run, discarded", "failed", discarded),
        ("cancel", "run", "running", None),
        ("resume", "run", "failed", {"holder": "h:2"}),
    )
    for verb, thing, state, body in rows:
        run = run_of(node, f"{verb}_{state}_{who}", state=state)
        yield case(f"POST {one}/{verb}", thing, "lake", run, body=body)
        if "," not in thing:
            yield case(f"POST {one}/{verb}", f"no {thing}", "lake", str(uuid4()), body=body)
    never: dict[str, object] = {"do": "move-table", "source": ["there"], "target": ["there"]}
    for thing, run in (("run published", run_of(node, f"out_{who}")), ("no run published", str(uuid4()))):
        publish: dict[str, object] = {"do": "publish-run", "run": run, "attempt": 1}
        yield case(TRANSACT, thing, "lake", "main", body={"operations": [publish, never]})


def _jobs(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Create a job of `laker`."""
    for thing, job in (("job", job_of(node, f"job_{who}")), ("no job", str(uuid4()))):
        yield case(f"GET {LAKE}/jobs/{{id}}", thing, "lake", job)


def job_of(node: DriverNode, name: str) -> str:
    """Request a job of a program that `keeper` owns. Returns its id, and without the room of jobs that of no job."""
    if not has_room("jobs"):
        return str(uuid4())
    let_jobs(node)
    node.done("POST", f"{API}/lake/jobs/templates", {"jobTemplate": {**PROGRAM, "name": name}}, user="laker")
    refusal_tables.own(node, "keeper", "JOB_TEMPLATE", name, by="laker")
    job_id: str = node.done("POST", f"{API}/lake/jobs/runs", {"jobTemplateName": name}, user="laker")["job"]["jobId"]
    return job_id


def run_of(node: DriverNode, name: str, *, state: str = "running") -> str:
    """Start a run of a new pipeline, with a step. Returns its id."""
    declare(node, name)
    run = str(uuid4())
    body = {"id": run, "holder": "h:1", "steps": [{"name": "s"}]}
    node.done("POST", f"{OWN}/metalakes/lake/pipelines/{name}/runs", body, user="laker")
    if state != "running":
        node.done("POST", f"{OWN}/metalakes/lake/runs/{run}/finish", {"attempt": 1, "state": state}, user="laker")
    return run


def _members(who: str) -> Iterator[RefusalCase]:
    for group, thing in (("crew", "group"), ("gone", "no group")):
        yield case(f"GET {MEMBERS}", thing, "lake", group)
        yield case(f"POST {MEMBERS}", thing, "lake", group, body={"users": ["idle"]})
        yield case(f"DELETE {MEMBERS}/{{u}}", thing, "lake", group, "dummy")
    yield case(f"POST {MEMBERS}", "no user", "lake", "crew", body={"users": ["gone"]})
    yield case(f"DELETE {MEMBERS}/{{u}}", "no user", "lake", f"group_{who}", "gone")


def _changes() -> Iterator[RefusalCase]:
    of_catalog = f"GET {LAKE}/catalogs/{{c}}/changes"
    yield case(f"GET {LAKE}/changes", "metalake", "lake", query="?after=now")
    yield case(f"GET {LAKE}/changes", "of no metalake", "nolake", query="?after=now")
    yield case(of_catalog, "catalog", "lake", "main", query="?after=now")
    yield case(of_catalog, "of no catalog", "lake", "nowhere", query="?after=now")


def _protection(who: str) -> Iterator[RefusalCase]:
    route = f"{LAKE}/objects/{{type}}/{{fullName}}/protection"
    things = (
        ("SCHEMA", "main.there", "namespace"),
        ("TABLE", "main.there.t", "table"),
        ("CATALOG", "main", "the catalog"),
    )
    absent = (("SCHEMA", "main.gone", "no namespace"), ("TABLE", "main.there.gone", "no table"))
    for kind, name, thing in (*things, *absent, ("CATALOG", "nowhere", "no catalog")):
        yield case(f"GET {route}", thing, "lake", kind, name)
    for kind, name, thing in (
        ("SCHEMA", f"main.alter_{who}", "namespace"),
        ("TABLE", f"main.there.mvt_{who}_moved", "table"),
        *absent,
    ):
        yield case(f"DELETE {route}", thing, "lake", kind, name)
        yield case(f"PUT {route}", thing, "lake", kind, name)


def _restrictions(who: str) -> Iterator[RefusalCase]:
    route = f"{LAKE}/objects/{{type}}/{{fullName}}/restrictions"
    terms = {"masks": {"city": "replace-with-null"}, "to": {"users": ["admin"]}}
    absent = (("SCHEMA", "main.gone", "no namespace"), ("TABLE", "main.there.gone", "no table"))
    for kind, name, thing in (("SCHEMA", "main.there", "namespace"), ("TABLE", "main.there.t", "table"), *absent):
        yield case(f"GET {route}", thing, "lake", kind, name)
    for kind, name, thing in (
        ("SCHEMA", f"main.alter_{who}", "namespace"),
        ("TABLE", f"main.there.mvt_{who}_moved", "table"),
        *absent,
    ):
        yield case(f"PUT {route}/{{name}}", thing, "lake", kind, name, "none", body=terms)
        yield case(f"DELETE {route}/{{name}}", thing, "lake", kind, name, "none")


def _names() -> Iterator[RefusalCase]:
    names = f"{LAKE}/catalogs/{{c}}/names"
    changes = f"{names}/changes"
    for thing, catalog in (("names", "main"), ("of no catalog", "nowhere")):
        yield case(f"GET {names}", thing, "lake", catalog)
        yield case(f"PUT {changes}", thing, "lake", catalog, body={})
        yield case(f"GET {changes}", thing, "lake", catalog)
        yield case(f"POST {changes}", thing, "lake", catalog, body={"to": "planned"})
        yield case(f"DELETE {changes}", thing, "lake", catalog)


def _exchange(who: str) -> Iterator[RefusalCase]:
    yield case(f"GET {LAKE}/export", "metalake", "lake")
    yield case(f"GET {LAKE}/export", "with secrets", "lake", query="?secrets=true")
    yield case(f"GET {LAKE}/system-tables", "metalake", "lake")
    yield case(f"GET {LAKE}/system-tables", "of no metalake", "nolake")
    yield case(f"GET {LAKE}/system-tables/{{table}}", "table", "lake", "nodes")
    yield case(f"GET {LAKE}/system-tables/{{table}}", "of no metalake", "nolake", "nodes")
    yield case(f"GET {LAKE}/system-tables/{{table}}/rows", "table", "lake", "nodes")
    yield case(f"GET {LAKE}/system-tables/{{table}}/rows", "of no metalake", "nolake", "nodes")
    yield case(f"GET {OWN}/imports", "imports")
    yield case(f"POST {OWN}/imports", "metalake", body={"name": f"imported_{who}"})
    yield case(f"POST {OWN}/imports", "name that is taken", body={"name": "lake"})
    one = f"{OWN}/imports/{{id}}"
    yield case(f"GET {one}", "no import", "1")
    yield case(f"POST {one}/records", "no import", "1", query="?after=0")
    yield case(f"POST {one}/finish", "no import", "1")
    yield case(f"DELETE {one}", "no import", "1")


def _trash(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    route = f"{LAKE}/catalogs/{{c}}/trash"
    yield case(f"GET {route}", "trash", "lake", "main")
    yield case(f"GET {route}", "of no catalog", "lake", "nowhere")
    table, other, shed, space = _dropped(node, who)
    undrop = f"POST {route}/{{id}}/undrop"
    yield case(undrop, "table", "lake", "main", table)
    yield case(undrop, "table, into another namespace", "lake", "main", other, body={"to": ["other", f"lost_{who}"]})
    yield case(undrop, "namespace", "lake", "main", space)
    forget = f"DELETE {route}/{{id}}"
    yield case(forget, "table", "lake", "main", shed)
    yield case(forget, "nothing", "lake", "main", "1")
    yield case(undrop, "nothing", "lake", "main", "1")
    yield case(undrop, "of no catalog", "lake", "nowhere", table)


def _dropped(node: DriverNode, who: str) -> list[str]:
    """Drop three tables and a namespace, to be restored. Returns their ids."""
    for name in ("lost", "astray", "shed"):
        wire.make_table(node, "there", f"{name}_{who}", user="laker")
        refusal_tables.own(node, "tabler", "TABLE", f"main.there.{name}_{who}", by="laker")
        assert node.delete(wire.table_path("there", f"{name}_{who}"), user="laker").status == 204
    wire.make_space(node, f"bygone_{who}", user="laker")
    refusal_tables.own(node, "keeper", "SCHEMA", f"main.bygone_{who}", by="laker")
    assert node.delete(wire.space_path(f"bygone_{who}"), user="laker").status == 204
    trash_entries = node.get(f"{OWN}/metalakes/lake/catalogs/main/trash?limit=4", user="laker").json()["trash"]
    by_name = {each["path"][-1]: str(each["id"]) for each in trash_entries}
    return [by_name[f"{name}_{who}"] for name in ("lost", "astray", "shed", "bygone")]


def _lineage() -> Iterator[RefusalCase]:
    def event(target: str) -> dict[str, object]:
        source, written = ({"namespace": "limnos://lake", "name": name} for name in ("main.there.away", target))
        outside = {"namespace": "kafka://k", "name": "topic"}
        return {
            "eventTime": "2026-01-31T00:00:00Z",
            "eventType": "COMPLETE",
            "run": {"runId": "r"},
            "job": {"namespace": "n", "name": "j"},
            "inputs": [source, outside],
            "outputs": [written],
        }

    get_route = f"GET {LAKE}/lineage"
    for name, thing in (("t", "table"), ("gone", "no table"), ("v", "view")):
        yield case(get_route, thing, "lake", query=f"?path=main.there.{name}")
    yield case(get_route, "of no catalog", "lake", query="?path=nowhere.there.t")
    yield case(get_route, "of no metalake", "nolake", query="?path=main.there.t")
    for route in ("POST /api/lineage", "POST /api/v1/lineage"):
        yield case(route, "table", body=event("main.there.t"))
        yield case(route, "no table", body=event("main.there.gone"))
    post_route = f"POST {LAKE}/lineage"
    for name, thing in (("t", "table"), ("gone", "no table"), ("v", "view")):
        yield case(post_route, thing, "lake", body=event(f"main.there.{name}"))
    yield case(post_route, "of no catalog", "lake", body=event("nowhere.there.t"))
    yield case(post_route, "of no metalake", "nolake", body=event("main.there.t"))


def _webhooks(node: DriverNode) -> Iterator[RefusalCase]:
    hooks = f"{LAKE}/webhooks"
    yield case(f"GET {hooks}", "of no metalake", "nolake")
    yield case(f"POST {hooks}", "webhook", "lake", body=HOOK)
    yield case(f"POST {hooks}", "of no metalake", "nolake", body=HOOK)
    yield case(f"POST {hooks}/{{id}}/retry", "webhook", "lake", _webhook(node))
    yield case(f"POST {hooks}/{{id}}/retry", "no webhook", "lake", "1")
    yield case(f"DELETE {hooks}/{{id}}", "webhook", "lake", _webhook(node))
    yield case(f"DELETE {hooks}/{{id}}", "no webhook", "lake", "1")


def _webhook(node: DriverNode) -> str:
    """Create a webhook. Returns its id."""
    return str(node.done("POST", f"{OWN}/metalakes/lake/webhooks", HOOK, user="laker")["id"])


def _access_requests() -> Iterator[RefusalCase]:
    """Requests for access: to ask, to list, to withdraw, to answer."""
    asking = f"POST {LAKE}/access/requests"
    wish = {"kind": "table", "path": ["main", "there", "t"]}
    yield case(asking, "for an object", "lake", body=wish)
    yield case(asking, "for nothing", "lake", body={**wish, "path": ["main", "there", "gone"]})
    yield case(asking, "for no catalog", "lake", body={**wish, "path": ["none", "there", "t"]})
    yield case(asking, "of no metalake", "nolake", body=wish)
    yield case(f"GET {LAKE}/access/requests", "to answer", "lake")
    yield case(f"GET {LAKE}/access/requests", "one's own", "lake", query="?own=true")
    yield case(f"GET {LAKE}/access/requests", "of no metalake", "nolake")
    route = f"POST {LAKE}/access/requests/withdraw"
    own = {"kind": "table", "path": ["main", "there", "t"]}
    yield case(route, "for an object", "lake", body=own)
    yield case(route, "for nothing", "lake", body={**own, "path": ["main", "there", "gone"]})
    yield case(route, "for no catalog", "lake", body={**own, "path": ["none", "there", "t"]})
    yield case(route, "for an object, without a request", "lake", body={"kind": "namespace", "path": ["main", "there"]})
    yield case(route, "for nothing, without a request", "lake", body={**own, "path": ["main", "there", "nor"]})
    yield case(route, "of no metalake", "nolake", body=own)
    route = f"POST {LAKE}/access/requests/answer"
    decline = {**wish, "answer": "decline", "user": "dummy", "preset": "reader"}
    yield case(route, "declined", "lake", body=decline)
    yield case(route, "declined, on nothing", "lake", body={**decline, "path": ["main", "there", "gone"]})
    yield case(route, "of no user", "lake", body={**decline, "user": "nobody else"})
    yield case(route, "granted, without a request", "lake", body={**decline, "answer": "grant"})
    yield case(route, "of no metalake", "nolake", body=decline)


def _explanations() -> Iterator[RefusalCase]:
    route = f"POST {LAKE}/access/explain"
    question = {"action": "table_load", "kind": "table", "path": ["main", "there", "t"]}
    yield case(route, "one's own", "lake", body=question)
    yield case(route, "another's", "lake", body={**question, "user": "dummy"})
    yield case(
        route, "another's, of nothing", "lake", body={**question, "path": ["main", "there", "gone"], "user": "dummy"}
    )
    yield case(
        route, "another's, of no catalog", "lake", body={**question, "path": ["none", "a", "t"], "user": "dummy"}
    )
    yield case(route, "of no metalake", "nolake", body=question)
    for name in ("holders", "rules", "reach"):
        get_route = f"GET {LAKE}/access/{name}"
        path = "main.there" if name == "reach" else "main.there.t"
        more = "&user=dummy" if name == "reach" else ""
        yield case(get_route, "of an object", "lake", query=f"?path={path}{more}")
        yield case(get_route, "of nothing", "lake", query=f"?path=main.gone&kind=namespace{more}")
        yield case(get_route, "of no catalog", "lake", query=f"?path=none.a&kind=namespace{more}")
        yield case(get_route, "of no metalake", "nolake", query=f"?path={path}{more}")
    yield case(f"GET {LAKE}/access/reach", "one's own", "lake", query="?path=main.there")
    for name, more in (("diff", "&user=dummy&other=laker"), ("missing", "&user=dummy&preset=reader")):
        get_route = f"GET {LAKE}/access/{name}"
        yield case(get_route, "of an object", "lake", query=f"?path=main.there.t{more}")
        yield case(get_route, "of nothing", "lake", query=f"?path=main.there.gone&kind=table{more}")
        yield case(get_route, "of no catalog", "lake", query=f"?path=none.a&kind=namespace{more}")
        yield case(get_route, "of no metalake", "nolake", query=f"?path=main.there.t{more}")
        nobody = more.replace("dummy", "nobody else")
        yield case(get_route, "of no user", "lake", query=f"?path=main.there.t{nobody}".replace(" ", "+"))
    own = "?path=main.there.t&preset=reader"
    yield case(f"GET {LAKE}/access/missing", "one's own", "lake", query=own)
    yield case(f"GET {LAKE}/access/objects", "table", "lake", query="?path=main.there.t")
    yield case(f"GET {LAKE}/access/objects", "of no metalake", "nolake", query="?path=main.there.t")
    change = {
        "change": "grant",
        "role": "of dummy",
        "kind": "table",
        "path": ["main", "there", "t"],
        "privileges": [{"name": "select_table"}],
    }
    route = f"POST {LAKE}/access/what-if"
    yield case(route, "of a grant", "lake", body=change)
    yield case(route, "of a grant on nothing", "lake", body={**change, "path": ["main", "there", "gone"]})
    yield case(route, "of roles", "lake", body={"change": "assign", "roles": ["of dummy"], "user": "dummy"})
    yield case(route, "of no metalake", "nolake", body=change)
    preset = {"change": "grant", "preset": "reader", "kind": "table", "path": ["main", "there", "t"]}
    yield case(route, "of a preset", "lake", body={**preset, "user": "dummy"})
    route = f"POST {LAKE}/access/presets"
    missing = ["main", "there", "gone"]
    yield case(route, "to a user", "lake", body={**preset, "user": "dummy"})
    yield case(route, "to a user, on nothing", "lake", body={**preset, "user": "dummy", "path": missing})
    yield case(route, "to no user", "lake", body={**preset, "user": "nobody else"})
    yield case(route, "to a role", "lake", body={**preset, "role": "of dummy"})
    yield case(route, "to no role", "lake", body={**preset, "role": "none"})
    revoke = {**preset, "change": "revoke"}
    yield case(route, "from a role", "lake", body={**revoke, "role": "of dummy"})
    yield case(route, "from a role, on nothing", "lake", body={**revoke, "role": "of dummy", "path": missing})
    yield case(route, "of no metalake", "nolake", body={**preset, "user": "dummy"})


def _tokens(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    tokens = f"{OWN}/tokens"
    yield case(f"GET {tokens}", "one's own")
    yield case(f"GET {tokens}", "another's", query="?user=dummy")
    yield case(f"GET {tokens}", "everybody's", query="?all=true")
    yield case(f"POST {tokens}", "one's own", body={})
    yield case(f"POST {tokens}", "another's", body={"user": "dummy"})
    yield case(f"POST {OWN}/console/codes", "one's own")
    password = f"{OWN}/users/{{u}}/password"
    yield case(f"PUT {password}", "another's", "dummy", body={"password": WORDS})
    yield case(f"PUT {password}", "one's own", "dummy" if who == "nobody" else who, body={"password": WORDS})
    yield case(f"DELETE {password}", "another's", "dummy")
    yield case(f"DELETE {password}", "one's own", "dummy" if who == "nobody" else who, body={"old": WORDS})
    yield case(f"DELETE {tokens}/{{id}}", "another's", _token(node, "dummy"))
    yield case(f"DELETE {tokens}/{{id}}", "no token", "1")
    yield case(f"DELETE {tokens}/{{id}}", "one's own", _token(node, "dummy" if who == "nobody" else who))


def _audits() -> Iterator[RefusalCase]:
    yield case(f"GET {LAKE}/audit", "audit", "lake", query="?action=create&path=main.there.t")
    yield case(f"GET {LAKE}/audit", "audit of objects", "lake", query="?action=create&exact=main&exact=main.there")
    yield case(f"GET {LAKE}/audit", "of no metalake", "nolake")
    yield case(f"GET {OWN}/audit", "audit", query="?action=create&path=main.there.t")
    yield case(f"POST {OWN}/audit/export", "audit", body={"location": "file:///nowhere/allowed"})


def _secrets(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    secrets, robot = f"{OWN}/users/{{u}}/secrets", f"robot of {who}"
    node.done("POST", f"{API}/lake/users", {"name": robot}, user="hirer")
    secret_id = str(node.done("POST", f"{OWN}/users/robot%20of%20{who}/secrets", {})["id"])
    yield case(f"GET {secrets}", "another's", robot)
    yield case(f"GET {secrets}", "one's own", "dummy" if who == "nobody" else who)
    yield case(f"POST {secrets}", "another's", robot, body={})
    yield case(f"POST {secrets}", "no user", "gone", body={})
    yield case(f"POST {secrets}", "one's own", "dummy" if who == "nobody" else who, body={})
    yield case(f"DELETE {secrets}/{{id}}", "no secret", robot, "1")
    yield case(f"DELETE {secrets}/{{id}}", "another's", robot, secret_id)


def _token(node: DriverNode, user: str) -> str:
    """Create a token to be revoked. Returns its id. An unknown user gets one by a first request."""
    token_request = ({}, user) if user == "stranger" else ({"user": user}, "admin")
    return str(node.done("POST", f"{OWN}/tokens", token_request[0], user=token_request[1])["id"])


def may_know(answers: dict[Row, dict[str, DriverAnswer]], row: Row, who: str) -> bool:
    """Return whether a caller may load the row's pipeline or run. Such a caller gets more than "not found"."""
    if row[1].startswith("pipeline"):
        return answers[f"GET {LAKE}/pipelines/{{p}}", "pipeline"][who].status == 200
    return row[1].startswith("run") and answers[f"GET {LAKE}/runs/{{id}}", "run"][who].status == 200


def same_words(answer: DriverAnswer, who: str) -> object:
    """Return a refusal's message with the object's name replaced by a fixed one."""
    message = str(answer["error"]["message"])  # type: ignore[index]
    for name in (
        "gone",
        "dummy",
        "crew",
        f"empty_{who}",
        f"alter_{who}",
        f"mvt_{who}_moved",
        f"pipe_{who}",
        f"shed_{who}",
    ):
        message = message.replace(name, "there")
    message = message.replace("nowhere", "main")
    message = RUN.sub("there", message)
    return re.sub(r"main\.there\.[tv]\b", "main.there.there", message)


if __name__ == "__main__":
    refusal_tables.write(TABLE, cases)
