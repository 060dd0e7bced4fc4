# SPDX-License-Identifier: Apache-2.0
"""The requests of Gravitino's table of refusals, `refusals.md`.

`python -m tests.rooms.gravitino.http.refusals` rewrites it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from limnos.rooms.gravitino.http.protocol import GravitinoProtocol
from tests.http import refusal_tables
from tests.http.admin import refusals as own_api
from tests.http.driver import API, PROGRAM, DriverAnswer, DriverNode, let_jobs, schema_view
from tests.http.refusal_tables import RefusalCase

TABLE = Path(__file__).with_suffix(".md")
OPEN = frozenset({"GET /health", "GET /health/live", "GET /health/ready"})
"""Routes that need no credentials."""
PROPERTY = {"updates": [{"@type": "setProperty", "property": "p", "value": "v"}]}
RULES = {"privileges": [{"name": "use_schema", "condition": "allow"}]}
KINDS = (
    ("METALAKE", "lake", None),
    ("CATALOG", "main", "nowhere"),
    ("SCHEMA", "main.there", "main.gone"),
    ("TABLE", "main.there.t", "main.there.gone"),
    ("VIEW", "main.there.v", "main.there.gone"),
    ("ROLE", "hand", "gone"),
    ("TAG", "red", "gone"),
    ("JOB_TEMPLATE", "there", "gone"),
)
"""Kinds of objects, an existing object and a missing one."""


def _case(route: str, thing: str, *names: str, body: object = None, query: str = "") -> RefusalCase:
    return refusal_tables.case(route, thing, *names, root="/api", body=body, query=query)


def routes() -> set[str]:
    """Return every route of the protocol whose answer depends on the caller."""
    return {f"{route.method} {route.path}" for route in GravitinoProtocol().router.routes} - OPEN


def cases(_node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of the table for one caller."""
    yield from _of_metalakes(who)
    yield from _of_catalogs(who)
    yield from _of_schemas(who)
    yield from _of_principals(who)
    yield from _of_roles(who)
    yield from _of_permissions()
    yield from _of_owners()
    yield from _of_tags(who)
    yield from _of_jobs(_node, who)
    yield from _of_maintenance()
    yield from _of_views(who)
    yield from _of_tables()


def _of_metalakes(who: str) -> Iterator[RefusalCase]:
    yield _case("GET /version", "")
    yield _case("GET /authn/me", "")
    yield _case("GET /metalakes", "all")
    yield _case("POST /metalakes", "new", body={"name": f"lake_{who}"})
    for name, thing in (("lake", "metalake"), ("nolake", "no metalake")):
        yield _case("GET /metalakes/{m}", thing, name)
        yield _case("PUT /metalakes/{m}", thing, name, body=PROPERTY)
        yield _case("PATCH /metalakes/{m}", thing, name, body={"inUse": True})
        yield _case("DELETE /metalakes/{m}", thing, name)


def _of_catalogs(who: str) -> Iterator[RefusalCase]:
    new = {"name": f"new_{who}", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {}}
    yield _case("GET /metalakes/{m}/catalogs", "names", "lake")
    yield _case("GET /metalakes/{m}/catalogs", "details", "lake", query="?details=true")
    yield _case("GET /metalakes/{m}/catalogs", "of no metalake", "nolake")
    yield _case("POST /metalakes/{m}/catalogs", "new", "lake", body=new)
    yield _case("POST /metalakes/{m}/catalogs", "taken name", "lake", body={**new, "name": "main"})
    yield _case("POST /metalakes/{m}/catalogs/testConnection", "new", "lake", body={**new, "name": "tried"})
    for name, thing in (("main", "catalog"), ("nowhere", "no catalog")):
        yield _case("GET /metalakes/{m}/catalogs/{c}", thing, "lake", name)
        yield _case("PUT /metalakes/{m}/catalogs/{c}", thing, "lake", name, body=PROPERTY)
        yield _case("PATCH /metalakes/{m}/catalogs/{c}", thing, "lake", name, body={"inUse": True})
        yield _case("DELETE /metalakes/{m}/catalogs/{c}", thing, "lake", name)
        yield _case("POST /metalakes/{m}/catalogs/{c}/testConnection", thing, "lake", name)
        yield _case("POST /metalakes/{m}/catalogs/{c}/testConnection", f"{thing}, changed", "lake", name, body=PROPERTY)


def _of_schemas(who: str) -> Iterator[RefusalCase]:
    spaces, one = "/metalakes/{m}/catalogs/{c}/schemas", "/metalakes/{m}/catalogs/{c}/schemas/{s}"
    yield _case(f"GET {spaces}", "all", "lake", "main")
    yield _case(f"GET {spaces}", "of a schema", "lake", "main", query="?parentSchema=there")
    yield _case(f"GET {spaces}", "of no schema", "lake", "main", query="?parentSchema=gone")
    yield _case(f"GET {spaces}", "of no catalog", "lake", "nowhere")
    yield _case(f"POST {spaces}", "new", "lake", "main", body={"name": f"new_{who}"})
    yield _case(f"POST {spaces}", "taken name", "lake", "main", body={"name": "there"})
    yield _case(f"POST {spaces}", "below a schema", "lake", "main", body={"name": f"there:new_{who}"})
    yield _case(f"POST {spaces}", "below none", "lake", "main", body={"name": f"none_{who}:new"})
    for name, thing in (("there", "schema"), ("gone", "no schema")):
        yield _case(f"GET {one}", thing, "lake", "main", name)
        yield _case(f"PUT {one}", thing, "lake", "main", name, body=PROPERTY)
    yield _case(f"DELETE {one}", "schema", "lake", "main", f"empty_{who}")
    yield _case(f"DELETE {one}", "no schema", "lake", "main", "gone")


def _of_principals(who: str) -> Iterator[RefusalCase]:
    for kind, path, known in (("user", "users", "dummy"), ("group", "groups", "crew")):
        key = f"{{{kind[0]}}}"
        yield _case(f"GET /metalakes/{{m}}/{path}", "names", "lake")
        yield _case(f"GET /metalakes/{{m}}/{path}", "details", "lake", query="?details=true")
        yield _case(f"POST /metalakes/{{m}}/{path}", "new", "lake", body={"name": f"new_{who}"})
        yield _case(f"POST /metalakes/{{m}}/{path}", "taken name", "lake", body={"name": known})
        yield _case(f"GET /metalakes/{{m}}/{path}/{key}", kind, "lake", known)
        yield _case(f"GET /metalakes/{{m}}/{path}/{key}", f"no {kind}", "lake", "gone")
        yield _case(f"DELETE /metalakes/{{m}}/{path}/{key}", kind, "lake", f"{kind}_{who}")
        yield _case(f"DELETE /metalakes/{{m}}/{path}/{key}", f"no {kind}", "lake", "gone")
    yield _case("GET /metalakes/{m}/users/{u}", "oneself", "lake", who)


def _of_roles(who: str) -> Iterator[RefusalCase]:
    def named(name: str, objects: list[object]) -> dict[str, object]:
        return {"name": name, "properties": {}, "securableObjects": objects}

    yield _case("GET /metalakes/{m}/roles", "names", "lake")
    yield _case("POST /metalakes/{m}/roles", "new", "lake", body=named(f"new_{who}", []))
    yield _case("POST /metalakes/{m}/roles", "taken name", "lake", body=named("hand", []))
    for name, thing in (("main.there", "on a schema"), ("main.gone", "on no schema")):
        body = named(f"on_{who}_{len(name)}", [{"fullName": name, "type": "SCHEMA", **RULES}])
        yield _case("POST /metalakes/{m}/roles", thing, "lake", body=body)
        override = {"overrides": [{"fullName": name, "type": "SCHEMA", **RULES}]}
        yield _case("PUT /metalakes/{m}/permissions/roles/{r}", thing, "lake", "spare", body=override)
    yield _case("GET /metalakes/{m}/roles/{r}", "role", "lake", "hand")
    yield _case("GET /metalakes/{m}/roles/{r}", "no role", "lake", "gone")
    yield _case("DELETE /metalakes/{m}/roles/{r}", "role", "lake", f"role_{who}")
    yield _case("DELETE /metalakes/{m}/roles/{r}", "no role", "lake", "gone")
    for kind, name, missing in KINDS:
        yield _case("GET /metalakes/{m}/objects/{type}/{fullName}/roles", kind.lower(), "lake", kind, name)
        if missing is not None:
            yield _case(
                "GET /metalakes/{m}/objects/{type}/{fullName}/roles", f"no {kind.lower()}", "lake", kind, missing
            )


def _of_permissions() -> Iterator[RefusalCase]:
    for verb in ("grant", "revoke"):
        for kind, path, names in (("user", "users", ("dummy", "idle")), ("group", "groups", ("dummys", "idles"))):
            route = f"PUT /metalakes/{{m}}/permissions/{path}/{{{kind[0]}}}/{verb}"
            yield _case(route, kind, "lake", names[verb == "revoke"], body={"roleNames": ["spare"]})
            yield _case(route, f"no {kind}", "lake", "gone", body={"roleNames": ["spare"]})
            yield _case(route, "no role", "lake", names[0], body={"roleNames": ["gone"]})
        route = f"PUT /metalakes/{{m}}/permissions/roles/{{r}}/{{type}}/{{fullName}}/{verb}"
        for kind, name, missing in (each for each in KINDS if each[0] != "ROLE"):
            right = {"TABLE": "select_table", "VIEW": "select_view", "TAG": "apply_tag"}.get(kind, "use_schema")
            rule = {"privileges": [{"name": right, "condition": "allow"}]}
            yield _case(route, kind.lower(), "lake", "spare", kind, name, body=rule)
            if missing is not None:
                yield _case(route, f"no {kind.lower()}", "lake", "spare", kind, missing, body=rule)
        yield _case(route, "no role", "lake", "gone", "CATALOG", "main", body=RULES)
    override = "PUT /metalakes/{m}/permissions/roles/{r}"
    yield _case(override, "no role", "lake", "gone", body={"overrides": []})


def _of_owners() -> Iterator[RefusalCase]:
    owners = {
        "METALAKE": "laker",
        "CATALOG": "owner",
        "SCHEMA": "keeper",
        "TABLE": "tabler",
        "VIEW": "tabler",
        "ROLE": "keeper",
        "TAG": "keeper",
        "JOB_TEMPLATE": "keeper",
    }
    route = "/metalakes/{m}/owners/{type}/{fullName}"
    for kind, name, missing in KINDS:
        body = {"name": owners[kind], "type": "USER"}
        yield _case(f"GET {route}", kind.lower(), "lake", kind, name)
        yield _case(f"PUT {route}", kind.lower(), "lake", kind, name, body=body)
        if missing is not None:
            yield _case(f"GET {route}", f"no {kind.lower()}", "lake", kind, missing)
            yield _case(f"PUT {route}", f"no {kind.lower()}", "lake", kind, missing, body=body)
    yield _case(f"PUT {route}", "to nobody", "lake", "CATALOG", "main", body={"name": "gone", "type": "USER"})


def _of_tags(who: str) -> Iterator[RefusalCase]:
    yield _case("GET /metalakes/{m}/tags", "names", "lake")
    yield _case("GET /metalakes/{m}/tags", "details", "lake", query="?details=true")
    yield _case("POST /metalakes/{m}/tags", "new", "lake", body={"name": f"new_{who}"})
    yield _case("POST /metalakes/{m}/tags", "taken name", "lake", body={"name": "red"})
    for name, thing in (("red", "tag"), ("gone", "no tag")):
        yield _case("GET /metalakes/{m}/tags/{tag}", thing, "lake", name)
        yield _case("GET /metalakes/{m}/tags/{tag}/objects", thing, "lake", name)
        yield _case("PUT /metalakes/{m}/tags/{tag}", thing, "lake", name, body=PROPERTY)
    yield _case("DELETE /metalakes/{m}/tags/{tag}", "tag", "lake", f"tag_{who}")
    yield _case("DELETE /metalakes/{m}/tags/{tag}", "no tag", "lake", "gone")
    for on in ("/metalakes/{m}/objects/{type}/{fullName}/tags", "/metalakes/{m}/tags/{type}/{fullName}"):
        for kind, name, missing in KINDS[1:5]:
            for full_name, thing in ((name, kind.lower()), (missing, f"no {kind.lower()}")):
                yield _case(f"GET {on}", thing, "lake", kind, str(full_name))
                yield _case(f"POST {on}", thing, "lake", kind, str(full_name), body={"tagsToRemove": ["red"]})
        yield _case(f"POST {on}", "no tag", "lake", "TABLE", "main.there.t", body={"tagsToAdd": ["gone"]})
        yield _case(f"GET {on}/{{tag}}", "tag", "lake", "TABLE", "main.there.t", "red")
        yield _case(f"GET {on}/{{tag}}", "no tag", "lake", "TABLE", "main.there.t", "gone")


def _of_jobs(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    templates, runs = "/metalakes/{m}/jobs/templates", "/metalakes/{m}/jobs/runs"
    for name in ("there", f"shed_{who}"):
        own_api.declare(node, name)
    yield _case(f"GET {templates}", "names", "lake")
    yield _case(f"GET {templates}", "details", "lake", query="?details=true")
    program = _program_of(node, f"program_{who}")
    yield _case(f"POST {templates}", "new", "lake", body={"jobTemplate": {**PROGRAM, "name": f"new_{who}"}})
    yield _case(f"GET {templates}/{{template}}", "of a program", "lake", program)
    newer = {"@type": "updateTemplate", "newTemplate": {"@type": "shell", "newArguments": [who]}}
    yield _case(f"PUT {templates}/{{template}}", "of a program", "lake", program, body={"updates": [newer]})
    yield _case(f"POST {runs}", "of a program", "lake", body={"jobTemplateName": program})
    job_id = node.done("POST", f"{API}/lake/jobs/runs", {"jobTemplateName": program}, user="laker")["job"]["jobId"]
    yield _case(f"GET {runs}", "of a program", "lake", query=f"?jobTemplateName={program}")
    yield _case(f"GET {runs}/{{job}}", "of a program", "lake", job_id)
    yield _case(f"POST {runs}/{{job}}", "of a program", "lake", job_id)
    comment = {"updates": [{"@type": "updateComment", "newComment": who}]}
    other = {"updates": [{"@type": "updateTemplate", "newTemplate": {}}]}
    for name, thing in (("there", "job template"), ("gone", "no job template")):
        yield _case(f"GET {templates}/{{template}}", thing, "lake", name)
        yield _case(f"PUT {templates}/{{template}}", thing, "lake", name, body=comment)
        yield _case(f"PUT {templates}/{{template}}", f"{thing}, what it runs", "lake", name, body=other)
        yield _case(f"POST {runs}", thing, "lake", body={"jobTemplateName": name, "jobConf": {}})
        yield _case(f"GET {runs}", f"of {thing}", "lake", query=f"?jobTemplateName={name}")
    yield _case(f"DELETE {templates}/{{template}}", "job template", "lake", f"shed_{who}")
    yield _case(f"DELETE {templates}/{{template}}", "no job template", "lake", "gone")
    yield _case(f"GET {runs}", "jobs", "lake")
    for run, thing in ((own_api.run_of(node, f"job_{who}"), "job"), (str(uuid4()), "no job")):
        yield _case(f"GET {runs}/{{job}}", thing, "lake", run)
        yield _case(f"POST {runs}/{{job}}", thing, "lake", run)


def _of_maintenance() -> Iterator[RefusalCase]:
    ops = "/maintenance/table/ops"
    for name, thing in (("main.there.t", "table"), ("main.there.gone", "no table")):
        tables = {"identifiers": [name]}
        line = json.dumps({"identifier": name, "custom-n": 1})
        payload = {**tables, "calculatorName": "c", "statisticsPayload": line}
        yield _case(f"POST {ops}/strategy-jobs", thing, body={**tables, "strategyName": "gone", "dryRun": True})
        yield _case(f"POST {ops}/update-stats-jobs", thing, body={**tables, "updateMode": "stats", "dryRun": True})
        yield _case(f"POST {ops}/statistics", thing, body=payload)
        yield _case(f"POST {ops}/metrics", thing, body=payload)
        yield _case(f"POST {ops}/metrics/monitor", thing, body={**tables, "actionTime": 1})
        yield _case(f"GET {ops}/metrics/tables", thing, query=f"?identifiers={name}")
    yield _case(f"GET {ops}/metrics/jobs", "no job", query="?identifiers=maintenance-9999")


def _program_of(node: DriverNode, name: str) -> str:
    """Register a program that `keeper` owns; returns its name."""
    let_jobs(node)
    node.done("POST", f"{API}/lake/jobs/templates", {"jobTemplate": {**PROGRAM, "name": name}}, user="laker")
    refusal_tables.own(node, "keeper", "JOB_TEMPLATE", name, by="laker")
    return name


def _of_views(who: str) -> Iterator[RefusalCase]:
    views = "/metalakes/{m}/catalogs/{c}/schemas/{s}/views"
    for name, thing in (("there", "schema"), ("gone", "no schema")):
        yield _case(f"GET {views}", f"of {thing}", "lake", "main", name)
        yield _case(f"POST {views}", f"in {thing}", "lake", "main", name, body=schema_view(f"newv_{who}"))
    yield _case(f"POST {views}", "taken name", "lake", "main", "there", body=schema_view("v"))
    for name, thing in (("v", "view"), ("gone", "no view")):
        yield _case(f"GET {views}/{{v}}", thing, "lake", "main", "there", name)
        yield _case(f"PUT {views}/{{v}}", thing, "lake", "main", "there", name, body=PROPERTY)
        new = {"updates": [{"@type": "rename", "newName": f"renamedv_{who}"}]}
        own = name if name == "gone" else f"namev_{who}"
        yield _case(f"PUT {views}/{{v}}", f"{thing}, renamed", "lake", "main", "there", own, body=new)
        own = name if name == "gone" else f"dropv_{who}"
        yield _case(f"DELETE {views}/{{v}}", thing, "lake", "main", "there", own)


def _of_tables() -> Iterator[RefusalCase]:
    tables = "GET /metalakes/{m}/catalogs/{c}/schemas/{s}/tables"
    for name, thing in (("there", "schema"), ("gone", "no schema")):
        yield _case(tables, f"of {thing}", "lake", "main", name)
    for name, thing in (("t", "table"), ("gone", "no table")):
        yield _case(f"{tables}/{{t}}", thing, "lake", "main", "there", name)


_SPELLED = {"nolake": "lake", "nowhere": "main", "gone": "there"}
"""Names of missing objects, each with the name of the existing object that replaces it."""


def same_words(answer: DriverAnswer, who: str) -> object:
    """Return a refusal's message with the object's name replaced by a fixed one."""
    message = own_api.RUN.sub("there", str(answer["message"]))
    own = (
        f"user_{who}",
        f"group_{who}",
        f"role_{who}",
        f"empty_{who}",
        f"tag_{who}",
        f"namev_{who}",
        f"dropv_{who}",
        f"shed_{who}",
    )
    for name in (
        *own,
        "main.there.there",
        "main.there.t",
        "main.there.v",
        "dummys",
        "dummy",
        "idles",
        "idle",
        "crew",
        "hand",
        "red",
    ):
        message = message.replace(name, "main.there" if name.startswith("main") else "there")
    for missing, existing in _SPELLED.items():
        message = message.replace(missing, existing)
    return message.replace("main.there.there", "main.there")


if __name__ == "__main__":
    refusal_tables.write(TABLE, cases)
