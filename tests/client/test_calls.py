# SPDX-License-Identifier: Apache-2.0
"""The exact request of each call, and the value that the call returns for an answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limnos.client import ArgumentError, Client, DeniedError, NotFoundError
from limnos.client.values import MoveResult, Privilege
from limnos.names import InvalidName
from tests.client.access_calls import ACCESS_CALLS
from tests.client.declared_calls import DECLARED_CALLS
from tests.client.fake import FakeServer
from tests.client.label_calls import LABELS

M = "/api/metalakes/lake"
I = "/iceberg/v1/lake.main"  # noqa: E741 - the Iceberg prefix
OWN = "/api/limnos/v1"
METALAKE = {"name": "lake", "comment": "c", "properties": {"in-use": "true"}, "audit": {"creator": "ana"}}
CATALOG = {"name": "main", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}, "audit": {}}
USER = {"name": "ben", "roles": ["r"], "audit": {"creator": "ana", "createTime": "2026-01-01T00:00:00Z"}}
GROUP = {"name": "staff", "roles": [], "audit": {}}
ROLE = {
    "name": "r",
    "properties": {},
    "securableObjects": [
        {"fullName": "main.a:b", "type": "schema", "privileges": [{"name": "use_schema", "condition": "allow"}]}
    ],
    "audit": {},
}
PIPES, RUNS = f"{OWN}/metalakes/lake/pipelines", f"{OWN}/metalakes/lake/runs"
PIPELINE = {"name": "nyc", "version": 2, "digest": "d", "declaration": {"steps": []}}
RUN = {"id": "r-1", "pipeline": "nyc", "state": "running", "attempt": 1, "user": "ana", "holder": "h:1"}
JOB = {"jobId": "j-1", "jobTemplateName": "load", "status": "queued", "queuedAt": "x", "audit": {"creator": "ana"}}
TEMPLATE = {
    "name": "load",
    "jobType": "shell",
    "executable": "/srv/load.sh",
    "arguments": ["{{day}}"],
    "scripts": [],
    "audit": {},
}
MODELS, FILESETS = f"{M}/catalogs/ml/schemas/a/models", f"{M}/catalogs/files/schemas/a/filesets"
MODEL = {"name": "churn", "comment": "c", "properties": {}, "latestVersion": 2, "audit": {}}
VERSION = {"version": 1, "uris": {"unknown": "s3://x"}, "aliases": ["new"], "audit": {}}
FILESET = {
    "name": "f",
    "type": "managed",
    "storageLocation": "s3://x",
    "storageLocations": {"unknown": "s3://x"},
    "audit": {},
}
FILE = {"name": "a.csv", "isDir": False, "size": 3, "lastModified": 5, "path": "/fileset/files/a/f"}
DROPPED = {"dropped": True}
TEMPLATES, JOBS = f"{M}/jobs/templates", f"{M}/jobs/runs"
TABLE = {"metadata-location": "file:/t/1.json", "metadata": {"format-version": 2}, "config": {}}
NAMES_CHANGED = {
    "state": "planned",
    "separator": ";",
    "replacement": "_",
    "nests": False,
    "planned_by": "ana",
    "planned_at": "x",
    "total": 1,
    "renamed": 0,
    "nested": 0,
    "left": 0,
    "done": True,
}
PAGE = "pageToken=&pageSize=1000"

Call = Callable[[Client], object]

# Name of the case; the call; then method, raw target and body of the expected request, and the answer.
CALLS: list[tuple[str, Call, str, str, object, object]] = [
    ("metalakes", lambda c: c.metalakes.list()[0].name, "GET", "/api/metalakes", None, {"metalakes": [METALAKE]}),
    ("metalake", lambda c: c.metalakes.get("lake").comment, "GET", M, None, {"metalake": METALAKE}),
    (
        "metalake-create",
        lambda c: c.metalakes.create("lake", comment="c", properties={"k": "v"}),
        "POST",
        "/api/metalakes",
        {"name": "lake", "comment": "c", "properties": {"k": "v"}},
        {"metalake": METALAKE},
    ),
    (
        "metalake-alter",
        lambda c: c.metalakes.alter("lake", name="sea", comment="x", updates={"a": "1"}, removals=["b"]),
        "PUT",
        M,
        {
            "updates": [
                {"@type": "rename", "newName": "sea"},
                {"@type": "updateComment", "newComment": "x"},
                {"@type": "setProperty", "property": "a", "value": "1"},
                {"@type": "removeProperty", "property": "b"},
            ]
        },
        {"metalake": METALAKE},
    ),
    ("metalake-enable", lambda c: c.metalakes.enable("lake"), "PATCH", M, {"inUse": True}, {"code": 0}),
    ("metalake-disable", lambda c: c.metalakes.disable("lake"), "PATCH", M, {"inUse": False}, {"code": 0}),
    ("metalake-drop", lambda c: c.metalakes.drop("lake"), "DELETE", M, None, {"dropped": True}),
    ("catalogs", lambda c: c.catalogs.list(), "GET", f"{M}/catalogs?details=true", None, {"catalogs": [CATALOG]}),
    ("catalog", lambda c: c.catalogs.get("main"), "GET", f"{M}/catalogs/main", None, {"catalog": CATALOG}),
    (
        "catalog-create",
        lambda c: c.catalogs.create("main", properties={"warehouse": "/w"}),
        "POST",
        f"{M}/catalogs",
        {
            "name": "main",
            "type": "relational",
            "provider": "lakehouse-iceberg",
            "properties": {"warehouse": "/w"},
        },
        {"catalog": CATALOG},
    ),
    (
        "catalog-alter",
        lambda c: c.catalogs.alter("main", removals=["k"]),
        "PUT",
        f"{M}/catalogs/main",
        {"updates": [{"@type": "removeProperty", "property": "k"}]},
        {"catalog": CATALOG},
    ),
    (
        "catalog-of-models",
        lambda c: c.catalogs.create("ml", type="model"),
        "POST",
        f"{M}/catalogs",
        {"name": "ml", "type": "model", "properties": {}},
        {"catalog": CATALOG},
    ),
    ("catalog-enable", lambda c: c.catalogs.enable("m-1"), "PATCH", f"{M}/catalogs/m-1", {"inUse": True}, {"code": 0}),
    ("catalog-disable", lambda c: c.catalogs.disable("m"), "PATCH", f"{M}/catalogs/m", {"inUse": False}, {"code": 0}),
    (
        "catalog-drop",
        lambda c: c.catalogs.drop("main", force=True),
        "DELETE",
        f"{M}/catalogs/main?force=true",
        None,
        {"dropped": True},
    ),
    (
        "namespaces",
        lambda c: c.namespaces.list("main.a.`b c`"),
        "GET",
        f"{I}/namespaces?parent=a%1Fb%20c&{PAGE}",
        None,
        {"namespaces": [["a", "b c", "d"]]},
    ),
    (
        "namespace",
        lambda c: c.namespaces.load(("main", "a/b", "c.d", "50%")),
        "GET",
        f"{I}/namespaces/a%2Fb%1Fc.d%1F50%25",
        None,
        {"namespace": ["a/b", "c.d", "50%"], "properties": None},
    ),
    (
        "namespace-create",
        lambda c: c.namespaces.create("main.a.b", properties={"k": "v"}, comment="x"),
        "POST",
        f"{I}/namespaces?parents=false",
        {"namespace": ["a", "b"], "properties": {"k": "v", "comment": "x"}},
        {"namespace": ["a", "b"], "properties": {}},
    ),
    (
        "namespace-update",
        lambda c: c.namespaces.update("main.a", updates={"k": "v"}, removals=["x"]),
        "POST",
        f"{I}/namespaces/a/properties",
        {"updates": {"k": "v"}, "removals": ["x"]},
        {"updated": ["k"], "removed": [], "missing": ["x"]},
    ),
    ("namespace-drop", lambda c: c.namespaces.drop("main.a"), "DELETE", f"{I}/namespaces/a", None, None),
    (
        "namespace-move",
        lambda c: c.namespaces.move("main.a.b", "main.x.b2"),
        "POST",
        f"{OWN}/metalakes/lake/catalogs/main/move",
        {"kind": "namespace", "source": ["a", "b"], "target": ["x", "b2"]},
        {"kind": "namespace", "path": ["main", "x", "b2"]},
    ),
    (
        "tables",
        lambda c: c.tables.list("main.a.b"),
        "GET",
        f"{I}/namespaces/a%1Fb/tables?{PAGE}",
        None,
        {"identifiers": [{"namespace": ["a", "b"], "name": "t"}]},
    ),
    ("table", lambda c: c.tables.load("main.a.t"), "GET", f"{I}/namespaces/a/tables/t", None, TABLE),
    (
        "table-refs",
        lambda c: c.tables.load("main.a.`t 1`", snapshots="refs"),
        "GET",
        f"{I}/namespaces/a/tables/t%201?snapshots=refs",
        None,
        TABLE,
    ),
    ("table-exists", lambda c: c.tables.exists("main.a.t"), "HEAD", f"{I}/namespaces/a/tables/t", None, None),
    (
        "table-mend",
        lambda c: c.tables.mend("main.a.t"),
        "POST",
        f"{I}/namespaces/a/tables/t",
        {"requirements": [], "updates": [{"action": "limnos-mend-metadata"}]},
        TABLE,
    ),
    ("table-drop", lambda c: c.tables.drop("main.a.t"), "DELETE", f"{I}/namespaces/a/tables/t", None, None),
    (
        "table-purge",
        lambda c: c.tables.drop("main.a.t", purge=True),
        "DELETE",
        f"{I}/namespaces/a/tables/t?purgeRequested=true",
        None,
        None,
    ),
    (
        "table-move",
        lambda c: c.tables.move("main.a.t", "main.b.u"),
        "POST",
        f"{OWN}/metalakes/lake/catalogs/main/move",
        {"kind": "table", "source": ["a", "t"], "target": ["b", "u"]},
        {"kind": "table", "path": ["main", "b", "u"]},
    ),
    (
        "transaction",
        lambda c: c.transactions.run("main", [{"do": "drop-table", "path": ("a", "t")}]).operations[0].path,
        "POST",
        f"{OWN}/metalakes/lake/catalogs/main/transactions",
        {"operations": [{"do": "drop-table", "path": ["a", "t"]}]},
        {"revision": 7, "operations": [{"do": "drop-table", "path": ["main", "a", "t"]}]},
    ),
    (
        "joint-transaction",
        lambda c: c.transactions.run_joint([{"do": "drop-table", "catalog": "main", "path": ("a", "t")}]).revisions,
        "POST",
        f"{OWN}/metalakes/lake/transactions",
        {"operations": [{"do": "drop-table", "catalog": "main", "path": ["a", "t"]}]},
        {"revisions": {"main": 7}, "operations": [{"do": "drop-table", "path": ["main", "a", "t"]}]},
    ),
    ("users", lambda c: c.users.list(), "GET", f"{M}/users?details=true", None, {"users": [USER]}),
    ("user", lambda c: c.users.get("a/b"), "GET", f"{M}/users/a%2Fb", None, {"user": USER}),
    ("user-add", lambda c: c.users.add("ben"), "POST", f"{M}/users", {"name": "ben"}, {"user": USER}),
    ("user-remove", lambda c: c.users.remove("ben"), "DELETE", f"{M}/users/ben", None, {"removed": True}),
    (
        "user-disable",
        lambda c: c.users.disable("ben"),
        "PATCH",
        f"{OWN}/metalakes/lake/users/ben",
        {"enabled": False},
        {"user": {"name": "ben", "enabled": False}},
    ),
    (
        "user-enable",
        lambda c: c.users.enable("ben"),
        "PATCH",
        f"{OWN}/metalakes/lake/users/ben",
        {"enabled": True},
        {"user": {"name": "ben", "enabled": True}},
    ),
    ("groups", lambda c: c.groups.list(), "GET", f"{M}/groups?details=true", None, {"groups": [GROUP]}),
    ("group", lambda c: c.groups.get("staff"), "GET", f"{M}/groups/staff", None, {"group": GROUP}),
    ("group-create", lambda c: c.groups.create("staff"), "POST", f"{M}/groups", {"name": "staff"}, {"group": GROUP}),
    ("group-delete", lambda c: c.groups.delete("staff"), "DELETE", f"{M}/groups/staff", None, {"removed": True}),
    (
        "members",
        lambda c: c.groups.members("staff"),
        "GET",
        f"{OWN}/metalakes/lake/groups/staff/members",
        None,
        {"members": ["ana"]},
    ),
    (
        "members-add",
        lambda c: c.groups.add("staff", ["ana", "ben"]),
        "POST",
        f"{OWN}/metalakes/lake/groups/staff/members",
        {"users": ["ana", "ben"]},
        {"members": ["ana", "ben"]},
    ),
    (
        "members-remove",
        lambda c: c.groups.remove("staff", "a b"),
        "DELETE",
        f"{OWN}/metalakes/lake/groups/staff/members/a%20b",
        None,
        {"removed": True},
    ),
    ("roles", lambda c: c.roles.list(), "GET", f"{M}/roles", None, {"names": ["r"]}),
    ("role", lambda c: c.roles.get("r"), "GET", f"{M}/roles/r", None, {"role": ROLE}),
    (
        "role-create",
        lambda c: c.roles.create("r"),
        "POST",
        f"{M}/roles",
        {"name": "r", "properties": {}, "securableObjects": []},
        {"role": ROLE},
    ),
    (
        "pipeline-put",
        lambda c: c.pipelines.put("nyc", {"steps": []}).version,
        "PUT",
        f"{PIPES}/nyc",
        {"declaration": {"steps": []}},
        PIPELINE,
    ),
    ("pipelines", lambda c: c.pipelines.list()[0].name, "GET", PIPES, None, {"pipelines": [PIPELINE]}),
    (
        "pipeline",
        lambda c: c.pipelines.load("a b", version=2).digest,
        "GET",
        f"{PIPES}/a%20b?version=2",
        None,
        PIPELINE,
    ),
    ("pipeline-drop", lambda c: c.pipelines.drop("nyc"), "DELETE", f"{PIPES}/nyc", None, {"dropped": "nyc"}),
    (
        "findings",
        lambda c: c.pipelines.findings("nyc", rule="r", step="s", limit=5),
        "GET",
        f"{PIPES}/nyc/findings?rule=r&step=s&limit=5",
        None,
        {"findings": [], "next": None},
    ),
    (
        "run-start",
        lambda c: (
            c.runs.start("nyc", "r-1", holder="h:1", steps=[{"name": "raw"}], parameters={"day": "x"}, version=2).state
        ),
        "POST",
        f"{PIPES}/nyc/runs",
        {
            "id": "r-1",
            "holder": "h:1",
            "lease_s": 30.0,
            "parameters": {"day": "x"},
            "options": {},
            "steps": [{"name": "raw"}],
            "version": 2,
        },
        RUN,
    ),
    ("runs", lambda c: c.runs.list(state="lost", limit=5), "GET", f"{RUNS}?state=lost&limit=5", None, {"runs": [RUN]}),
    ("run", lambda c: c.runs.load("r-1").steps, "GET", f"{RUNS}/r-1", None, RUN),
    (
        "run-beat",
        lambda c: c.runs.beat("r-1", 2, progress={"raw": {"tasks": 3}}).state,
        "POST",
        f"{RUNS}/r-1/beat",
        {"attempt": 2, "progress": {"raw": {"tasks": 3}}},
        {"state": "running", "attempt": 2},
    ),
    (
        "run-phases",
        lambda c: c.runs.beat("r-1", 2, phases_s={"steps": 1.5}).attempt,
        "POST",
        f"{RUNS}/r-1/beat",
        {"attempt": 2, "phases_s": {"steps": 1.5}},
        {"state": "published", "attempt": 2},
    ),
    (
        "run-resume",
        lambda c: c.runs.resume("r-1", holder="h:2", lease_s=5, after=1).attempt,
        "POST",
        f"{RUNS}/r-1/resume",
        {"holder": "h:2", "lease_s": 5, "after": 1},
        RUN,
    ),
    (
        "step-put",
        lambda c: c.runs.step_put("r-1", "a/b", attempt=1, state="done", rows=7, outputs=[]).rows,
        "PUT",
        f"{RUNS}/r-1/steps/a%2Fb",
        {"attempt": 1, "state": "done", "rows": 7, "outputs": []},
        {"name": "a/b", "rows": 7},
    ),
    (
        "run-finish",
        lambda c: c.runs.finish("r-1", 1, state="failed", message="so").state,
        "POST",
        f"{RUNS}/r-1/finish",
        {"attempt": 1, "state": "failed", "message": "so"},
        RUN,
    ),
    ("run-cancel", lambda c: c.runs.cancel("r-1").state, "POST", f"{RUNS}/r-1/cancel", None, RUN),
    (
        "job-templates",
        lambda c: c.job_templates.list()[0].arguments,
        "GET",
        f"{TEMPLATES}?details=true",
        None,
        {"jobTemplates": [TEMPLATE]},
    ),
    (
        "job-template",
        lambda c: c.job_templates.get("load").job_type,
        "GET",
        f"{TEMPLATES}/load",
        None,
        {"jobTemplate": TEMPLATE},
    ),
    (
        "job-template-register",
        lambda c: c.job_templates.register(
            "load", job_type="shell", executable="/srv/load.sh", fields={"arguments": ["a"]}
        ),
        "POST",
        TEMPLATES,
        {"jobTemplate": {"arguments": ["a"], "name": "load", "jobType": "shell", "executable": "/srv/load.sh"}},
        {"code": 0},
    ),
    (
        "job-template-alter",
        lambda c: c.job_templates.alter("load", job_type="shell", fields={"newArguments": []}).name,
        "PUT",
        f"{TEMPLATES}/load",
        {"updates": [{"@type": "updateTemplate", "newTemplate": {"@type": "shell", "newArguments": []}}]},
        {"jobTemplate": TEMPLATE},
    ),
    (
        "job-template-delete",
        lambda c: c.job_templates.delete("load"),
        "DELETE",
        f"{TEMPLATES}/load",
        None,
        {"dropped": True},
    ),
    ("jobs", lambda c: c.jobs.list()[0].status, "GET", JOBS, None, {"jobs": [JOB]}),
    ("jobs-of", lambda c: c.jobs.list("load")[0].job_id, "GET", f"{JOBS}?jobTemplateName=load", None, {"jobs": [JOB]}),
    ("job", lambda c: c.jobs.get("j-1").queued_at, "GET", f"{JOBS}/j-1", None, {"job": JOB}),
    (
        "job-run",
        lambda c: c.jobs.run("load", conf={"day": "1"}).job_id,
        "POST",
        JOBS,
        {"jobTemplateName": "load", "jobConf": {"day": "1"}},
        {"job": JOB},
    ),
    ("job-cancel", lambda c: c.jobs.cancel("j-1").status, "POST", f"{JOBS}/j-1", None, {"job": JOB}),
    (
        "job-result",
        lambda c: c.jobs.result("j-1").stdout,
        "GET",
        f"{OWN}/metalakes/lake/jobs/j-1",
        None,
        {"id": "j-1", "template": "load", "state": "failed", "user": "ana", "stdout": "hello"},
    ),
    *DECLARED_CALLS,
    *LABELS,
    *ACCESS_CALLS,
    (
        "tag-owner",
        lambda c: c.owners.get("red", kind="tag"),
        "GET",
        f"{M}/owners/tag/red",
        None,
        {"owner": {"name": "ana", "type": "user"}},
    ),
    ("role-delete", lambda c: c.roles.delete("r"), "DELETE", f"{M}/roles/r", None, {"dropped": True}),
    (
        "role-to-user",
        lambda c: c.roles.grant_to_user("ben", ["r", "s"]),
        "PUT",
        f"{M}/permissions/users/ben/grant",
        {"roleNames": ["r", "s"]},
        {"user": USER},
    ),
    (
        "role-from-user",
        lambda c: c.roles.revoke_from_user("ben", ["r"]),
        "PUT",
        f"{M}/permissions/users/ben/revoke",
        {"roleNames": ["r"]},
        {"user": USER},
    ),
    (
        "role-to-group",
        lambda c: c.roles.grant_to_group("staff", ["r"]),
        "PUT",
        f"{M}/permissions/groups/staff/grant",
        {"roleNames": ["r"]},
        {"group": GROUP},
    ),
    (
        "role-from-group",
        lambda c: c.roles.revoke_from_group("staff", ["r"]),
        "PUT",
        f"{M}/permissions/groups/staff/revoke",
        {"roleNames": ["r"]},
        {"group": GROUP},
    ),
    (
        "privilege-on-catalog",
        lambda c: c.roles.allow("r", ["use_catalog"], on="main", kind="catalog"),
        "PUT",
        f"{M}/permissions/roles/r/catalog/main/grant",
        {"privileges": [{"name": "use_catalog", "condition": "allow"}]},
        {"role": ROLE},
    ),
    (
        "privilege-on-metalake",
        lambda c: c.roles.allow("r", ["create_catalog"], on="lake", kind="metalake", deny=True),
        "PUT",
        f"{M}/permissions/roles/r/metalake/lake/grant",
        {"privileges": [{"name": "create_catalog", "condition": "deny"}]},
        {"role": ROLE},
    ),
    (
        "privilege-on-table",
        lambda c: c.roles.withdraw("r", ["select_table"], on=("main", "a", "t.1"), kind="table"),
        "PUT",
        f"{M}/permissions/roles/r/table/main.a.%60t.1%60/revoke",
        {"privileges": [{"name": "select_table", "condition": "allow"}]},
        {"role": ROLE},
    ),
    (
        "owner",
        lambda c: c.owners.get("main.a", kind="namespace"),
        "GET",
        f"{M}/owners/schema/main.a",
        None,
        {"owner": {"name": "ana", "type": "user"}},
    ),
    (
        "owner-set",
        lambda c: c.owners.set("r", "staff", kind="role", group=True),
        "PUT",
        f"{M}/owners/role/r",
        {"name": "staff", "type": "GROUP"},
        {"set": True},
    ),
    ("tokens", lambda c: c.tokens.list(user="ben"), "GET", f"{OWN}/tokens?user=ben", None, {"tokens": []}),
    ("tokens-all", lambda c: c.tokens.list(everyone=True), "GET", f"{OWN}/tokens?all=true", None, {"tokens": []}),
    (
        "token-create",
        lambda c: c.tokens.create(name="ci", expires_in_s=60),
        "POST",
        f"{OWN}/tokens",
        {"name": "ci", "expires_in_s": 60},
        {"id": 7, "token": "s", "user": "ana", "expires_at": 1},
    ),
    ("tasks", lambda c: c.tasks.list(), "GET", f"{OWN}/tasks?state=dead", None, {"tasks": []}),
    (
        "tasks-more",
        lambda c: c.tasks.list(state="waiting", after=9),
        "GET",
        f"{OWN}/tasks?state=waiting&after=9",
        None,
        {"tasks": []},
    ),
    ("task", lambda c: c.tasks.load(7), "GET", f"{OWN}/tasks/7", None, {"id": 7, "kind": "k", "state": "dead"}),
    ("task-retry", lambda c: c.tasks.retry(7), "POST", f"{OWN}/tasks/7/retry", None, {"retried": 7}),
    (
        "changes",
        lambda c: c.changes.read().next,
        "GET",
        f"{OWN}/metalakes/lake/changes",
        None,
        {"changes": [], "next": "x"},
    ),
    (
        "changes-more",
        lambda c: c.changes.read(after="x", catalog="m/n", limit=5, wait_s=20),
        "GET",
        f"{OWN}/metalakes/lake/catalogs/m%2Fn/changes?after=x&limit=5&wait_s=20",
        None,
        {"changes": [], "next": "y", "more": True},
    ),
    ("webhooks", lambda c: c.webhooks.list(), "GET", f"{OWN}/metalakes/lake/webhooks", None, {"webhooks": []}),
    (
        "webhook-create",
        lambda c: c.webhooks.create("https://h", after="oldest").secret,
        "POST",
        f"{OWN}/metalakes/lake/webhooks",
        {"url": "https://h", "after": "oldest"},
        {"id": 7, "url": "https://h", "user": "ana", "state": "well", "secret": "s"},
    ),
    ("webhook-drop", lambda c: c.webhooks.drop(7), "DELETE", f"{OWN}/metalakes/lake/webhooks/7", None, {"dropped": 7}),
    (
        "webhook-retry",
        lambda c: c.webhooks.retry(7),
        "POST",
        f"{OWN}/metalakes/lake/webhooks/7/retry",
        {},
        {"retried": 7},
    ),
    ("token-revoke", lambda c: c.tokens.revoke(7), "DELETE", f"{OWN}/tokens/7", None, {"revoked": True}),
    (
        "explain",
        lambda c: c.access.explain("table_load", "main.a.t", user="ben", kind="table"),
        "POST",
        f"{OWN}/metalakes/lake/access/explain",
        {"user": "ben", "action": "table_load", "path": ["main", "a", "t"], "kind": "table"},
        {"decision": {"allowed": True, "action": "table_load"}, "suggestions": []},
    ),
    (
        "explain-through",
        lambda c: c.access.explain("table_load", "main.a.t", through=["main.b.v", ("main", "c", "w")]),
        "POST",
        f"{OWN}/metalakes/lake/access/explain",
        {"action": "table_load", "path": ["main", "a", "t"], "through": [["b", "v"], ["c", "w"]]},
        {"decision": {"allowed": True, "action": "table_load"}, "suggestions": []},
    ),
    (
        "names-check",
        lambda c: c.names.check("main", separator=";"),
        "GET",
        f"{OWN}/metalakes/lake/catalogs/main/names?separator=%3B",
        None,
        {"nested": True, "separator": ";", "conflicts": 1, "names": ["a;b"], "free": [":"]},
    ),
    (
        "names-go-on",
        lambda c: c.names.go_on("main", to="undone"),
        "POST",
        f"{OWN}/metalakes/lake/catalogs/main/names/changes",
        {"to": "undone"},
        NAMES_CHANGED,
    ),
    (
        "protection",
        lambda c: c.protection.get("main.a", kind="namespace"),
        "GET",
        f"{OWN}/metalakes/lake/objects/schema/main.a/protection",
        None,
        {"protected": True, "by": {"kind": "catalog", "name": "main"}, "below": True, "set_by": "ana", "set_at": "x"},
    ),
    (
        "explain-metalake",
        lambda c: c.access.explain("catalog_create"),
        "POST",
        f"{OWN}/metalakes/lake/access/explain",
        {"action": "catalog_create", "path": []},
        {"decision": {"allowed": False}, "suggestions": ["ask"]},
    ),
    ("version", lambda c: c.server.version(), "GET", "/api/version", None, {"version": {"version": "1.3.1"}}),
    ("configs", lambda c: c.server.configs(), "GET", "/configs", None, {"k": "v"}),
]


@pytest.mark.parametrize("row", CALLS, ids=[row[0] for row in CALLS])
def test_call_sends_its_request(
    fake: FakeServer, client: Client, row: tuple[str, Call, str, str, object, object]
) -> None:
    """Each call sends exactly one request, with this method, this raw target, and this body without fields that are
    None.
    """
    _, call, method, target, body, answer = row
    fake.on(method, target, answer, status=204 if answer is None else 200)

    call(client)

    assert fake.calls == [f"{method} {target}"]
    assert fake.asked[0].body == body
    assert ("Content-Type" in fake.asked[0].headers) == (body is not None)


def test_every_page_of_a_list_is_read(fake: FakeServer, client: Client) -> None:
    """Lists follow opaque page tokens to the last page and return full paths."""
    url = f"{I}/namespaces/a/tables"
    fake.on("GET", f"{url}?{PAGE}", {"identifiers": [{"namespace": ["a"], "name": "t1"}], "next-page-token": "x+/= "})
    second = f"{url}?pageToken=x%2B%2F%3D%20&pageSize=1000"
    fake.on("GET", second, {"identifiers": [{"namespace": ["a"], "name": "t2"}], "next-page-token": None})

    identifiers = client.tables.list("main.a")

    assert identifiers == (("main", "a", "t1"), ("main", "a", "t2"))


def test_separator_is_requested_once_and_used(fake: FakeServer, client: Client) -> None:
    """Levels of a nested namespace in a full name are joined with the server's separator, which is requested once."""
    fake.on("GET", "/configs", {"gravitino.schema.separator": ";"})
    fake.on("GET", f"{M}/owners/schema/main.a%3Bb", {"owner": {"name": "ana", "type": "user"}})
    fake.on("GET", f"{M}/owners/table/main.a%3Bb.t", {"owner": {"name": "ana", "type": "user"}})

    owner = client.owners.get("main.a.b", kind="namespace")
    client.owners.get("main.a.b.t", kind="table")

    assert owner is not None
    assert owner.name == "ana"
    assert fake.calls.count("GET /configs") == 1


def test_chain_of_namespaces_is_made_in_one_call(fake: FakeServer, client: Client) -> None:
    """With `parents` all namespaces are created by one request, which is atomic, and in any characters."""
    answer = {"namespace": ["a", "new york", "c"], "properties": {"comment": "x"}}
    fake.on("POST", f"{I}/namespaces?parents=true", answer)

    namespace = client.namespaces.create("main.a.`new york`.c", parents=True, comment="x")

    assert namespace.path == ("main", "a", "new york", "c")
    assert fake.asked[-1].body == {"namespace": ["a", "new york", "c"], "properties": {"comment": "x"}}


def test_move_returns_the_full_target_path(fake: FakeServer, client: Client) -> None:
    """A move returns the full path of the target, including the catalog."""
    fake.on("POST", f"{OWN}/metalakes/lake/catalogs/main/move", {"kind": "namespace", "path": ["main", "x"]})

    assert client.namespaces.move("main.a", "main.x") == MoveResult(kind="namespace", path=("main", "x"))


@pytest.mark.parametrize(
    "call,expected",
    [
        (lambda c: c.namespaces.move("main.a", "other.a"), "stays in its catalog"),
        (lambda c: c.namespaces.move("main", "main.a"), "at least two parts"),
        (lambda c: c.tables.load("main.a"), "give catalog.namespace.table"),
        (lambda c: c.namespaces.load("main"), "give catalog.namespace"),
        (lambda c: c.models.register("ml.a.m.v2"), "'ml.a.m.v2' is too long for a model: give catalog.schema.model"),
        (lambda c: c.filesets.create("files.a"), "'files.a' is too short for a fileset: give catalog.schema.fileset"),
        (lambda c: c.owners.get("main.a", kind="view"), "give catalog.namespace.table"),
    ],
)
def test_path_of_wrong_length_sends_no_request(fake: FakeServer, client: Client, call: Call, expected: str) -> None:
    """A path of the wrong length is refused with advice before a request is sent."""
    with pytest.raises(ArgumentError, match=expected):
        call(client)

    assert fake.asked == []


def test_malformed_path_sends_nothing(fake: FakeServer, client: Client) -> None:
    """A malformed path is refused before a request is sent."""
    with pytest.raises(InvalidName, match="empty part"):
        client.namespaces.load("main..a")

    assert fake.asked == []


def test_kind_of_longer_path_is_requested_from_server(fake: FakeServer, client: Client) -> None:
    """A path of one part is a catalog; the kind of a longer path is requested from the server."""
    fake.on("GET", f"{I}/namespaces/a%1Ft", {"error": {"message": "no", "code": 404}}, status=404)
    fake.on("GET", f"{I}/namespaces/a/tables/t?snapshots=refs", TABLE)
    fake.on("GET", f"{I}/namespaces/a", {"namespace": ["a"], "properties": {}})

    assert client.objects.kind("main") == "catalog"
    assert client.objects.kind("main.a") == "namespace"
    assert client.objects.kind("main.a.t") == "table"


def test_ambiguous_kind_is_refused(fake: FakeServer, client: Client) -> None:
    """If a namespace and a table have the same path, the error asks for the kind."""
    fake.on("GET", f"{I}/namespaces/a%1Ft", {"namespace": ["a", "t"], "properties": {}})
    fake.on("GET", f"{I}/namespaces/a/tables/t?snapshots=refs", TABLE)

    with pytest.raises(ArgumentError, match="both a namespace and a table"):
        client.objects.kind("main.a.t")


def test_kind_detection_raises_denial_before_not_found(fake: FakeServer, client: Client) -> None:
    """If one request is denied and the other not found, the denial is raised."""
    fake.on("GET", f"{I}/namespaces/a%1Ft", {"error": {"message": "no such", "code": 404}}, status=404)
    fake.on(
        "GET", f"{I}/namespaces/a/tables/t?snapshots=refs", {"error": {"message": "needs X", "code": 403}}, status=403
    )

    with pytest.raises(DeniedError, match="needs X"):
        client.objects.kind("main.a.t")


def test_kind_of_missing_object_raises_not_found(fake: FakeServer, client: Client) -> None:
    """If no object has the path, the error names all kinds."""
    with pytest.raises(NotFoundError, match=r"no namespace, table or view 'main\.a\.t'"):
        client.objects.kind("main.a.t")


def test_exists_returns_a_boolean(fake: FakeServer, client: Client) -> None:
    """`exists` returns True for an existing table and False if the server answers 404."""
    fake.on("HEAD", f"{I}/namespaces/a/tables/t", status=204)

    assert client.tables.exists("main.a.t") is True
    assert client.tables.exists("main.a.none") is False


def test_role_is_read_with_its_grants(fake: FakeServer, client: Client) -> None:
    """A role is returned with its objects, spelled as in Gravitino, and the privileges on each."""
    fake.on("GET", f"{M}/roles/r", {"role": ROLE})

    role = client.roles.get("r")

    assert role.securable_objects[0].full_name == "main.a:b"
    assert role.securable_objects[0].privileges == (Privilege(name="use_schema", condition="allow"),)


def test_user_is_read_with_audit(fake: FakeServer, client: Client) -> None:
    """A user is returned with roles, state and creator; fields that the server omits have defaults."""
    fake.on("GET", f"{M}/users/ben", {"user": USER})

    user = client.users.get("ben")

    assert (user.roles, user.enabled, user.audit.create_time) == (("r",), True, "2026-01-01T00:00:00Z")
