# SPDX-License-Identifier: Apache-2.0
"""The database is lost immediately after a COMMIT: on every route, the write is still answered as a success.

A 503 says that nothing was committed. An answer that needs another read of the store could therefore be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, rmtree
from typing import NamedTuple, NoReturn
from uuid import UUID

import pytest

from limnos.model.errors import ServiceUnavailable
from scripts.generate_openapi import documented_protocols
from tests.arrow_rows import arrow
from tests.http import declared_requests
from tests.http.admin.operation.test_tasks import poisoned, work
from tests.http.driver import API, OWN, PROGRAM, SCHEDULE, DriverNode, let_jobs, node_at, schema_view
from tests.http.iceberg.wire import (
    ROOT,
    SCHEMA,
    SPACES,
    make_table,
    make_view,
    replaced_by,
    set_properties,
    table_path,
    view_body,
    view_path,
    view_version,
)
from tests.http.test_coverage import BODIES, FUNCTION, LINEAGE, POLICY
from tests.installed import absent_operations, has_room
from tests.rooms.lance.http.wire import lay, lay_rows, stage

LAKE, MAIN = f"{API}/lake", f"{API}/lake/catalogs/main"
HOOKS = f"{OWN}/metalakes/lake/webhooks"
RUN = f"{OWN}/metalakes/lake/runs/{UUID(int=2)}"
LANCE = "/lance/v1/table/lance$s"
WORDS = "a few words for this"
ROLE = f"{LAKE}/permissions/roles/hands"
MODELS = f"{LAKE}/catalogs/models/schemas/a/models"
BULK = "/api/bulk/metalakes/lake/users"
FUNCTIONS = f"{MAIN}/schemas/a/functions"
STATISTICS = f"{LAKE}/objects/TABLE/main.a.t/statistics"
RULES = [{"name": "use_schema", "condition": "allow"}]
OBJECTS = [{"fullName": "main.a", "type": "SCHEMA", "privileges": RULES}]
PROPERTY = {"updates": [{"@type": "setProperty", "property": "p", "value": "v"}]}
ROLES = {"roleNames": ["hands"]}
READ_ONLY = {
    "issue-token",
    "sign-request",
    "check-storage",
    "report-metrics",
    "fetch-restricted-spans",
    "report-restricted-files",
    "plan-scan",
    "load-tasks",
    "cancel-plan",
    "test-new-catalog",
    "test-catalog",
    "load-objects",
    "explain-access",
    "what-if-access",
    "lance-describe-namespace",
    "lance-namespace-exists",
    "lance-describe-table",
    "lance-table-exists",
    "lance-list-table-versions",
    "lance-describe-table-version",
    "lance-list-table-tags",
    "lance-get-table-tag-version",
    "lance-list-table-branches",
    "lance-insert-into-table",
    "lance-count-table-rows",
    "lance-query-table",
    "lance-explain-table-query-plan",
    "lance-analyze-table-query-plan",
    "lance-merge-insert-into-table",
    "lance-update-table",
    "lance-delete-from-table",
    "lance-restore-table",
    "lance-update-table-schema-metadata",
    "lance-update-field-metadata",
    "lance-alter-table-add-columns",
    "lance-alter-table-alter-columns",
    "lance-alter-table-drop-columns",
    "lance-get-table-stats",
    "lance-create-table-index",
    "lance-create-table-scalar-index",
    "lance-list-table-indices",
    "lance-describe-table-index-stats",
    "lance-drop-table-index",
    "lance-describe-transaction",
    "lance-alter-transaction",
    "sqlpp-cancel",
    "query-service-options",
    "add-partitions",
    "drop-partition",
    "append-table-metrics",
    "monitor-table-metrics",
    "submit-strategy-jobs",  # no table here needs a job
}
"""Operations with a body that write nothing to the store."""


class Write(NamedTuple):
    """A writing request, and the objects of it, which `furnish` created."""

    method: str
    target: str
    body: object = None


WRITES: dict[str, Write] = {
    "create-namespace": Write("POST", SPACES, {"namespace": ["n"]}),
    "drop-namespace": Write("DELETE", f"{SPACES}/empty"),
    "update-properties": Write("POST", f"{SPACES}/a/properties", {"updates": {"k": "v"}}),
    "create-table": Write("POST", f"{SPACES}/a/tables", {"name": "n", "schema": SCHEMA}),
    "register-table": Write("POST", f"{SPACES}/a/register", {"name": "n", "metadata-location": "LOCATION"}),
    "commit-table": Write("POST", table_path("a", "t"), {"updates": [set_properties(k="v")]}),
    "drop-table": Write("DELETE", table_path("a", "t")),
    "unregister-table": Write("POST", f"{table_path('a', 't')}/unregister"),
    "rename-table": Write(
        "POST",
        f"{ROOT}/tables/rename",
        {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["empty"], "name": "n"}},
    ),
    "commit-transaction": Write(
        "POST",
        f"{ROOT}/transactions/commit",
        {"table-changes": [{"identifier": {"namespace": ["a"], "name": "t"}, "updates": [set_properties(k="v")]}]},
    ),
    "create-view": Write("POST", f"{SPACES}/a/views", view_body("n")),
    "register-view": Write("POST", f"{SPACES}/a/register-view", {"name": "n", "metadata-location": "VIEW"}),
    "replace-view": Write("POST", view_path("a", "v"), replaced_by(view_version("select 2 as id"))),
    "drop-view": Write("DELETE", view_path("a", "v")),
    "rename-view": Write(
        "POST",
        f"{ROOT}/views/rename",
        {"source": {"namespace": ["a"], "name": "v"}, "destination": {"namespace": ["empty"], "name": "n"}},
    ),
    "create-schema-view": Write("POST", f"{MAIN}/schemas/a/views", schema_view("n")),
    "alter-schema-view": Write("PUT", f"{MAIN}/schemas/a/views/v", {"updates": [{"@type": "rename", "newName": "n"}]}),
    "drop-schema-view": Write("DELETE", f"{MAIN}/schemas/a/views/v"),
    "lance-create-namespace": Write("POST", "/lance/v1/namespace/lance$n/create", {}),
    "lance-drop-namespace": Write("POST", "/lance/v1/namespace/lance$s/drop", {"behavior": "cascade"}),
    "lance-declare-table": Write("POST", f"{LANCE}$n/declare", {}),
    "lance-create-empty-table": Write("POST", f"{LANCE}$n/create-empty", {}),
    "lance-register-table": Write("POST", f"{LANCE}$n/register", {"location": "laid"}),
    "lance-create-table": Write("POST", f"{LANCE}$n/create", arrow()),
    "lance-drop-table": Write("POST", f"{LANCE}$t/drop"),
    "lance-deregister-table": Write("POST", f"{LANCE}$t/deregister", {}),
    "lance-rename-table": Write("POST", f"{LANCE}$t/rename", {"new_table_name": "n"}),
    "lance-batch-delete-table-versions": Write(
        "POST", f"{LANCE}$two/version/delete", {"ranges": [{"start_version": 2, "end_version": 3}]}
    ),
    "lance-create-table-tag": Write("POST", f"{LANCE}$two/tags/create", {"tag": "new", "version": 2}),
    "lance-update-table-tag": Write("POST", f"{LANCE}$two/tags/update", {"tag": "old", "version": 2}),
    "lance-delete-table-tag": Write("POST", f"{LANCE}$two/tags/delete", {"tag": "old"}),
    "lance-create-table-branch": Write("POST", f"{LANCE}$two/branches/create", {"name": "new"}),
    "lance-delete-table-branch": Write("POST", f"{LANCE}$two/branches/delete", {"name": "dev"}),
    "lance-batch-create-table-versions": Write(
        "POST",
        "/lance/v1/table/version/batch-create",
        {"entries": [{"id": ["lance", "s", "kept"], "version": 1, "manifest_path": "STAGED"}]},
    ),
    "lance-batch-commit-tables": Write(
        "POST", "/lance/v1/table/batch-commit", {"operations": [{"deregister_table": {"id": ["lance", "s", "t"]}}]}
    ),
    "lance-create-table-version": Write(
        "POST", f"{LANCE}$kept/version/create", {"version": 1, "manifest_path": "STAGED"}
    ),
    "create-metalake": Write("POST", API, {"name": "n"}),
    "alter-metalake": Write("PUT", LAKE, PROPERTY),
    "set-metalake": Write("PATCH", LAKE, {"inUse": False}),
    "drop-metalake": Write("DELETE", f"{API}/pond"),
    "create-catalog": Write(
        "POST", f"{LAKE}/catalogs", {"name": "n", "type": "RELATIONAL", "provider": "lakehouse-iceberg"}
    ),
    "alter-catalog": Write("PUT", MAIN, PROPERTY),
    "set-catalog": Write("PATCH", MAIN, {"inUse": False}),
    "drop-catalog": Write("DELETE", f"{LAKE}/catalogs/side"),
    "create-schema": Write("POST", f"{MAIN}/schemas", {"name": "n"}),
    "alter-schema": Write("PUT", f"{MAIN}/schemas/a", PROPERTY),
    "drop-schema": Write("DELETE", f"{MAIN}/schemas/empty"),
    "add-user": Write("POST", f"{LAKE}/users", {"name": "n"}),
    "remove-user": Write("DELETE", f"{LAKE}/users/ana"),
    "add-users": Write("POST", f"{BULK}/add", {"users": [{"name": "n"}, {"name": "o"}]}),
    "remove-users": Write("POST", f"{BULK}/remove", {"names": ["ana", "bob"]}),
    "add-group": Write("POST", f"{LAKE}/groups", {"name": "n"}),
    "remove-group": Write("DELETE", f"{LAKE}/groups/crew"),
    "create-role": Write("POST", f"{LAKE}/roles", {"name": "n", "properties": {}, "securableObjects": OBJECTS}),
    "drop-role": Write("DELETE", f"{LAKE}/roles/hands"),
    "grant-roles-to-user": Write("PUT", f"{LAKE}/permissions/users/bob/grant", ROLES),
    "revoke-roles-from-user": Write("PUT", f"{LAKE}/permissions/users/ana/revoke", ROLES),
    "grant-roles-to-group": Write("PUT", f"{LAKE}/permissions/groups/crew/grant", ROLES),
    "revoke-roles-from-group": Write("PUT", f"{LAKE}/permissions/groups/staff/revoke", ROLES),
    "change-access-preset": Write(
        "POST",
        f"{OWN}/metalakes/lake/access/presets",
        {"change": "grant", "preset": "reader", "kind": "table", "path": ["main", "a", "t"], "role": "hands"},
    ),
    "request-access": Write(
        "POST", f"{OWN}/metalakes/lake/access/requests", {"kind": "table", "path": ["main", "a", "t"]}
    ),
    "withdraw-access-request": Write(
        "POST", f"{OWN}/metalakes/lake/access/requests/withdraw", {"kind": "table", "path": ["main", "a", "open"]}
    ),
    "answer-access-request": Write(
        "POST",
        f"{OWN}/metalakes/lake/access/requests/answer",
        {"answer": "decline", "user": "ana", "kind": "table", "path": ["main", "a", "t"], "preset": "reader"},
    ),
    "grant-privileges": Write("PUT", f"{ROLE}/CATALOG/main/grant", {"privileges": RULES}),
    "revoke-privileges": Write("PUT", f"{ROLE}/SCHEMA/main.a/revoke", {"privileges": RULES}),
    "override-role": Write("PUT", ROLE, {"overrides": [{**OBJECTS[0], "fullName": "main.empty"}]}),
    "set-owner": Write("PUT", f"{LAKE}/owners/SCHEMA/main.a", {"name": "ana", "type": "USER"}),
    "create-schema-table": Write(
        "POST", f"{MAIN}/schemas/a/tables", {"name": "n", "columns": [{"name": "id", "type": "long"}]}
    ),
    "alter-schema-table": Write("PUT", f"{MAIN}/schemas/a/tables/t", PROPERTY),
    "drop-schema-table": Write("DELETE", f"{MAIN}/schemas/a/tables/t"),
    **{
        f"{verb}-{kind}": Write(method, f"{LAKE}/catalogs/{kind}s/schemas/a/{kind}s{end}", body)
        for kind in ("fileset", "topic")
        for verb, method, end, body in (
            ("create", "POST", "", {"name": "n"}),
            ("alter", "PUT", "/x", PROPERTY),
            ("drop", "DELETE", "/x", None),
        )
    },
    "register-function": Write("POST", FUNCTIONS, {"name": "n", **FUNCTION}),
    "alter-function": Write("PUT", f"{FUNCTIONS}/f", {"updates": [{"@type": "updateComment", "newComment": "c"}]}),
    "drop-function": Write("DELETE", f"{FUNCTIONS}/f"),
    "create-policy": Write("POST", f"{LAKE}/policies", {"name": "n", **POLICY}),
    "alter-policy": Write("PUT", f"{LAKE}/policies/keep", {"updates": [{"@type": "rename", "newName": "n"}]}),
    "set-policy": Write("PATCH", f"{LAKE}/policies/keep", {"enable": False}),
    "drop-policy": Write("DELETE", f"{LAKE}/policies/keep"),
    "associate-policies": Write("POST", f"{LAKE}/objects/SCHEMA/main.a/policies", {"policiesToAdd": ["keep"]}),
    "update-statistics": Write("PUT", f"{STATISTICS}", {"updates": {"custom-n": 1}}),
    "drop-statistics": Write("POST", STATISTICS, {"names": ["custom-there"]}),
    "update-partition-statistics": Write(
        "PUT", f"{STATISTICS}/partitions", {"updates": [{"partitionName": "p", "statistics": {"custom-n": 1}}]}
    ),
    "drop-partition-statistics": Write(
        "POST", f"{STATISTICS}/partitions", {"drops": [{"partitionName": "p", "statisticNames": ["custom-there"]}]}
    ),
    "register-model": Write("POST", MODELS, {"name": "n"}),
    "alter-model": Write("PUT", f"{MODELS}/churn", PROPERTY),
    "delete-model": Write("DELETE", f"{MODELS}/churn"),
    "link-model-version": Write("POST", f"{MODELS}/churn/versions", {"uri": "s3://x"}),
    **{
        f"{verb}-model-{word}": Write(method, f"{MODELS}/churn/{part}", body)
        for verb, method, body in (("alter", "PUT", PROPERTY), ("delete", "DELETE", None))
        for word, part in (("version", "versions/0"), ("alias", "aliases/new"))
    },
    "joint-transaction": Write(
        "POST",
        f"{OWN}/metalakes/lake/transactions",
        {"operations": [{"do": "create-namespace", "catalog": "main", "path": ["n"]}]},
    ),
    "transaction": Write(
        "POST",
        f"{OWN}/metalakes/lake/catalogs/main/transactions",
        {"operations": [{"do": "create-namespace", "path": ["n"]}]},
    ),
    **{
        f"take-lineage{more}": Write("POST", path, LINEAGE)
        for more, path in (
            ("", "/api/lineage"),
            ("-v1", "/api/v1/lineage"),
            ("-of-metalake", f"{OWN}/metalakes/lake/lineage"),
        )
    },
    "move": Write(
        "POST",
        f"{OWN}/metalakes/lake/catalogs/main/move",
        {"kind": "table", "source": ["a", "t"], "target": ["empty", "n"]},
    ),
    "plan-name-changes": Write("PUT", f"{OWN}/metalakes/lake/catalogs/main/names/changes", {"replacement": "-"}),
    "change-names": Write("POST", f"{OWN}/metalakes/lake/catalogs/main/names/changes", {"to": "migrated"}),
    "confirm-name-changes": Write("DELETE", f"{OWN}/metalakes/lake/catalogs/main/names/changes"),
    "bulk": Write(
        "POST",
        f"{OWN}/metalakes/lake/bulk?job=j&atomic=true",
        b'{"do": "create-namespace", "path": ["main", "n"]}\n',
    ),
    "begin-import": Write("POST", f"{OWN}/imports", {"name": "n"}),
    "feed-import": Write(
        "POST", f"{OWN}/imports/IMPORT/records?after=0", b'{"header": {"version": {"major_version": 1}}}\n'
    ),
    "finish-import": Write("POST", f"{OWN}/imports/READ/finish"),
    "give-up-import": Write("DELETE", f"{OWN}/imports/IMPORT"),
    "create-tag": Write("POST", f"{LAKE}/tags", {"name": "n"}),
    "alter-tag": Write("PUT", f"{LAKE}/tags/red", PROPERTY),
    "drop-tag": Write("DELETE", f"{LAKE}/tags/red"),
    "associate-tags": Write("POST", f"{LAKE}/objects/SCHEMA/main.a/tags", {"tagsToAdd": ["red"]}),
    "associate-tags-old": Write("POST", f"{LAKE}/tags/SCHEMA/main.a", {"tagsToAdd": ["red"]}),
    "forget-trash": Write("DELETE", f"{OWN}/metalakes/lake/catalogs/main/trash/DROPPED"),
    "protect": Write("PUT", f"{OWN}/metalakes/lake/objects/SCHEMA/main.a/protection", {"below": True}),
    "unprotect": Write("DELETE", f"{OWN}/metalakes/lake/objects/SCHEMA/main.kept/protection"),
    "set-restriction": Write(
        "PUT", f"{OWN}/metalakes/lake/objects/TABLE/main.a.t/restrictions/n", {"masks": {"city": "replace-with-null"}}
    ),
    "remove-restriction": Write("DELETE", f"{OWN}/metalakes/lake/objects/SCHEMA/main.a/restrictions/old"),
    "undrop": Write("POST", f"{OWN}/metalakes/lake/catalogs/main/trash/DROPPED/undrop"),
    "add-members": Write("POST", f"{OWN}/metalakes/lake/groups/crew/members", {"users": ["bob"]}),
    "remove-member": Write("DELETE", f"{OWN}/metalakes/lake/groups/staff/members/ana"),
    "enable-user": Write("PATCH", f"{OWN}/metalakes/lake/users/ana", {"enabled": False}),
    "create-webhook": Write("POST", HOOKS, {"url": "https://hooks.example.com/x"}),
    "drop-webhook": Write("DELETE", f"{HOOKS}/HOOK"),
    "retry-webhook": Write("POST", f"{HOOKS}/HOOK/retry"),
    "export-audit": Write("POST", f"{OWN}/audit/export", {"location": "LOCATION"}),
    "put-pipeline": Write("PUT", f"{OWN}/metalakes/lake/pipelines/new", {"declaration": {"steps": []}}),
    "drop-pipeline": Write("DELETE", f"{OWN}/metalakes/lake/pipelines/idle"),
    "start-run": Write("POST", f"{OWN}/metalakes/lake/pipelines/idle/runs", {"id": str(UUID(int=1)), "holder": "h:1"}),
    "put-schedule": Write("PUT", f"{OWN}/metalakes/lake/pipelines/idle/schedule", SCHEDULE),
    "set-schedule": Write("POST", f"{OWN}/metalakes/lake/pipelines/timed/schedule", {"paused": True}),
    "delete-schedule": Write("DELETE", f"{OWN}/metalakes/lake/pipelines/undue/schedule"),
    "beat-run": Write("POST", f"{RUN}/beat", {"attempt": 1}),
    "put-step": Write("PUT", f"{RUN}/steps/s", {"attempt": 1, "state": "done"}),
    "finish-run": Write("POST", f"{RUN}/finish", {"attempt": 1, "state": "failed"}),
    "cancel-run": Write("POST", f"{RUN}/cancel"),
    "resume-run": Write("POST", f"{OWN}/metalakes/lake/runs/{UUID(int=3)}/resume", {"holder": "h:2"}),
    "register-job-template": Write("POST", f"{LAKE}/jobs/templates", {"jobTemplate": {**PROGRAM, "name": "n"}}),
    "run-job": Write("POST", f"{LAKE}/jobs/runs", {"jobTemplateName": "program"}),
    "alter-job-template": Write(
        "PUT", f"{LAKE}/jobs/templates/idle", {"updates": [{"@type": "rename", "newName": "n"}]}
    ),
    "drop-job-template": Write("DELETE", f"{LAKE}/jobs/templates/idle"),
    "cancel-job": Write("POST", f"{LAKE}/jobs/runs/{UUID(int=2)}"),
    "query-service": Write("POST", "/query/service", {"statement": "create dataverse n.m"}),
    "query-service-discard": Write("DELETE", "/query/service/result/HANDLE"),
    "create-token": Write("POST", f"{OWN}/tokens", {"name": "n"}),
    "create-console-code": Write("POST", f"{OWN}/console/codes", {}),
    "login": Write("POST", f"{OWN}/login", {"user": "ana", "password": WORDS}),
    "set-password": Write("PUT", f"{OWN}/users/bob/password", {"password": WORDS}),
    "remove-password": Write("DELETE", f"{OWN}/users/ana/password"),
    "create-secret": Write("POST", f"{OWN}/users/robot/secrets", {}),
    "end-secret": Write("DELETE", f"{OWN}/users/robot/secrets/SECRET"),
    "revoke-token": Write("DELETE", f"{OWN}/tokens/TOKEN"),
    "submit-update-stats-jobs": Write(
        "POST", "/api/maintenance/table/ops/update-stats-jobs", {"identifiers": ["main.a.t"]}
    ),
    "append-table-statistics": Write(
        "POST", "/api/maintenance/table/ops/statistics", BODIES["append-table-statistics"]
    ),
    "start-maintenance-operation": Write(
        "POST", f"{OWN}/metalakes/lake/catalogs/main/maintenance/operations", {"table": "a.t"}
    ),
    "lease-maintenance-operations": Write("POST", f"{OWN}/metalakes/lake/maintenance/leases", {"holder": "x"}),
    "renew-maintenance-leases": Write(
        "PUT", f"{OWN}/metalakes/lake/maintenance/leases", {"holder": "x", "operations": [1]}
    ),
    "report-maintenance-operation": Write(
        "POST", f"{OWN}/metalakes/lake/maintenance/operations/1/report", {"holder": "x", "outcome": "done"}
    ),
    "cancel-maintenance-operation": Write("POST", f"{OWN}/metalakes/lake/maintenance/operations/OPERATION/cancel"),
    "rotate-storage-keys": Write("POST", f"{OWN}/storage/keys/rotate"),
    "retry-task": Write("POST", f"{OWN}/tasks/TASK/retry"),
    **{operation: Write(*write) for operation, write in declared_requests.writes().items()},
}


def operations() -> set[str]:
    """Return every writing operation of every protocol."""
    routes = [route for protocol in documented_protocols() for route in protocol.router.routes]
    names = {route.operation for route in routes if route.method not in ("GET", "HEAD")}
    return {name.removesuffix("-default-catalog") for name in names}


def furnish(node: DriverNode) -> dict[str, str]:
    """Create the objects of the writes. Returns values unknown before: ids, and a metadata file without a table."""
    poisoned(node)
    work(node)
    location = str(make_table(node, "a", "gone")["metadata-location"])
    assert node.delete(table_path("a", "gone")).status == 204
    make_table(node, "a", "t")
    view = str(make_view(node, "a", "gone")["metadata-location"])
    assert node.delete(view_path("a", "gone")).status == 204
    make_view(node, "a", "v")
    node.done("POST", SPACES, {"namespace": ["empty"]})
    for path, body in (
        ("users", {"name": "ana"}),
        ("users", {"name": "bob"}),
        ("groups", {"name": "crew"}),
        ("groups", {"name": "staff"}),
        ("roles", {"name": "hands", "properties": {}, "securableObjects": OBJECTS}),
        ("tags", {"name": "red"}),
        (
            "catalogs",
            {"name": "side", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {"token": "x"}},
        ),
    ):
        node.done("POST", f"{LAKE}/{path}", body)
    node.done("PUT", f"{LAKE}/permissions/users/ana/grant", ROLES)
    node.done("PUT", f"{LAKE}/permissions/groups/staff/grant", ROLES)
    node.post(f"{OWN}/metalakes/lake/groups/staff/members", {"users": ["ana"]})
    node.done("PATCH", f"{LAKE}/catalogs/side", {"inUse": False})
    node.done("POST", API, {"name": "pond"})
    node.done("PATCH", f"{API}/pond", {"inUse": False})
    node.done("POST", "/lance/v1/namespace/lance$s/create", {})
    node.done("POST", f"{LANCE}$t/declare", {})
    lay(node, "laid")
    lay_rows(node, "two")
    node.done("POST", f"{LANCE}$two/register", {"location": "two"})
    managed_table = node.done("POST", f"{LANCE}$kept/declare", {"properties": {"managed_versioning": "true"}})
    token = node.post(f"{OWN}/tokens", {"name": "old"}).json()
    node.done("PUT", f"{OWN}/users/ana/password", {"password": WORDS})
    node.done("POST", f"{LAKE}/users", {"name": "robot"})
    hook = node.done("POST", HOOKS, {"url": "https://hooks.example.com/old"})
    (task,) = node.get(f"{OWN}/tasks").json()["tasks"]
    node.done("POST", SPACES, {"namespace": ["kept"]})
    node.done("PUT", f"{OWN}/metalakes/lake/catalogs/main/names/changes", {})
    node.done("PUT", f"{OWN}/metalakes/lake/objects/SCHEMA/main.kept/protection")
    node.done(
        "PUT", f"{OWN}/metalakes/lake/objects/SCHEMA/main.a/restrictions/old", {"masks": {"city": "replace-with-null"}}
    )
    node.done("POST", f"{OWN}/metalakes/lake/access/requests", {"kind": "table", "path": ["main", "a", "open"]})
    _furnish_runs(node)
    _furnish_leaves(node)
    declared_requests.furnish(node)
    ids = {
        "DROPPED": node.get(f"{OWN}/metalakes/lake/catalogs/main/trash").json()["trash"][0],
        "TOKEN": token,
        "SECRET": node.done("POST", f"{OWN}/users/robot/secrets", {}),
        "TASK": task,
        "HOOK": hook,
        **(_furnish_imports(node) if has_room("exchange") else {}),
    }
    if has_room("sqlpp"):
        deferred = node.done("POST", "/query/service", {"statement": "select value 1", "mode": "deferred"})
        handle = {"HANDLE": str(deferred["handle"]).rpartition("/")[2]}
    else:
        handle = {}
    return handle | {
        "LOCATION": location,
        **({"OPERATION": _furnish_operation(node)} if has_room("maintenance") else {}),
        "VIEW": view,
        "STAGED": stage(managed_table["location"], 1),
        **{word: str(entity["id"]) for word, entity in ids.items()},
    }


def _furnish_operation(node: DriverNode) -> str:
    body = {"table": "a.t", "operation": "manifests"}
    return str(node.done("POST", f"{OWN}/metalakes/lake/catalogs/main/maintenance/operations", body)["operation"])


def _furnish_imports(node: DriverNode) -> dict[str, dict]:
    """Start one import, `IMPORT`, and send all records of another one, `READ`."""
    lines = node.get(f"{OWN}/metalakes/pond/export?format=json").body
    started_import, read = (
        node.post(f"{OWN}/imports", {"name": name, "format": "json"}).json() for name in ("first", "second")
    )
    node.done("POST", f"{OWN}/imports/{read['id']}/records?after=0", lines)
    return {"IMPORT": started_import, "READ": read}


def _furnish_leaves(node: DriverNode) -> None:
    """Create a catalog of each other type, and an object in it."""
    node.done("POST", f"{LAKE}/catalogs", {"name": "models", "type": "MODEL"})
    node.done("POST", f"{LAKE}/catalogs/models/schemas", {"name": "a"})
    node.done("POST", MODELS, {"name": "churn"})
    node.done("POST", FUNCTIONS, {"name": "f", **FUNCTION})
    node.done("POST", f"{LAKE}/policies", {"name": "keep", **POLICY})
    node.done("PUT", STATISTICS, {"updates": {"custom-there": 1}})
    node.done(
        "PUT", f"{STATISTICS}/partitions", {"updates": [{"partitionName": "p", "statistics": {"custom-there": 1}}]}
    )
    node.done("POST", f"{MODELS}/churn/versions", {"uri": "s3://x", "aliases": ["new"]})
    for kind, word in (("fileset", "FILESET"), ("topic", "MESSAGING")):
        node.done("POST", f"{LAKE}/catalogs", {"name": f"{kind}s", "type": word})
        node.done("POST", f"{LAKE}/catalogs/{kind}s/schemas", {"name": "a"})
        node.done("POST", f"{LAKE}/catalogs/{kind}s/schemas/a/{kind}s", {"name": "x"})


def _furnish_runs(node: DriverNode) -> None:
    """Create a pipeline without runs, one with a run, one with a failed run, and two with a schedule."""
    let_jobs(node)
    if has_room("jobs"):
        for name in ("program",) if has_room("pipelines") else ("program", "idle"):
            node.done("POST", f"{LAKE}/jobs/templates", {"jobTemplate": {**PROGRAM, "name": name}})
    if not has_room("pipelines"):
        return
    for number, name in ((0, "idle"), (2, "busy"), (3, "broken")):
        node.done("PUT", f"{OWN}/metalakes/lake/pipelines/{name}", {"declaration": {}})
        if number:
            body = {"id": str(UUID(int=number)), "holder": "h:1", "steps": [{"name": "s"}]}
            node.done("POST", f"{OWN}/metalakes/lake/pipelines/{name}/runs", body)
    for name in ("timed", "undue"):
        node.done("PUT", f"{OWN}/metalakes/lake/pipelines/{name}", {"declaration": {}})
        node.done("PUT", f"{OWN}/metalakes/lake/pipelines/{name}/schedule", SCHEDULE)
    node.done("POST", f"{OWN}/metalakes/lake/runs/{UUID(int=3)}/finish", {"attempt": 1, "state": "failed"})


def cut_after_commit(node: DriverNode, patch: pytest.MonkeyPatch, *, marks: int = 0) -> list[int]:
    """Let the next commit succeed, after a number of commits without changes, and let all later requests to the store
    fail. Returns a list that records the commit.
    """
    store, commits = node.built.services.store, []

    def raise_unavailable() -> NoReturn:
        raise ServiceUnavailable("The database does not answer: try again")

    for name in ("gate", "load", "moment"):
        real = getattr(store, name)
        patch.setattr(store, name, lambda *args, real=real: raise_unavailable() if commits else real(*args))
    for name in ("submit", "submit_held"):

        async def submit(*args: object, real: object = getattr(store, name), **named: object) -> object:
            nonlocal marks
            if commits:
                raise_unavailable()
            result = await real(*args, **named)  # type: ignore[operator]
            if not marks:
                commits.append(1)
            marks = max(0, marks - 1)
            return result

        patch.setattr(store, name, submit)
    return commits


def test_every_writing_route_has_a_case() -> None:
    """Each writing route has a case here."""
    absent = {operation for _, operation in absent_operations()}

    assert operations() - READ_ONLY == set(WRITES) - absent


def fill(write: Write, names: dict[str, str]) -> Write:
    """Return a write with the values that `furnish` returned."""
    method, target, body = write
    for word, value in names.items():
        target = target.replace(word, value)
        body = _filled(body, word, value=value)
    return Write(method, target, body)


def _filled(body: object, word: str, *, value: str) -> object:
    """Return a body with a value in place of a placeholder."""
    if isinstance(body, dict):
        return {key: _filled(each, word, value=value) for key, each in body.items()}
    if isinstance(body, list):
        return [_filled(each, word, value=value) for each in body]
    return value if body == word else body


BEFORE = {"lance-create-table": 1, "rotate-storage-keys": 1}
"""Commits before the last one: of the task that deletes the files of a killed process, and of a catalog's secrets
before a webhook's.
"""


WHERE_NOTHING_WAITS = {
    "lease-maintenance-operations": Write("POST", f"{OWN}/metalakes/pond/maintenance/leases", {"holder": "x"})
}
"""Writes that are sent to another address when the database is lost. A lease has several commits, and it expires if the
later ones fail.
"""


def test_interrupted_rotation_reports_state_unknown(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the database fails between two secrets, the rotation is answered with 500 and the code `state-unknown`, and
    the next rotation succeeds.
    """
    furnish(node)
    method, target, body = WRITES["rotate-storage-keys"]
    cut_after_commit(node, monkeypatch)

    answer = node.ask(method, target, body)

    monkeypatch.undo()
    assert (answer.status, answer.json()["error"]["code"]) == (500, "state-unknown")
    assert node.ask(method, target, body).status == 200


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, str]]:
    """A data directory with an object for every write, a copy of it, and what `furnish` returned: created once,
    restored for each test.
    """
    folder = tmp_path_factory.mktemp("cut")
    data, backup = folder / "data", folder / "kept"
    with node_at(data) as node:
        names = furnish(node)
    copytree(data, backup, symlinks=True)
    return data, backup, names


@pytest.fixture
def furnished(seed: tuple[Path, Path, dict[str, str]]) -> Iterator[tuple[DriverNode, dict[str, str]]]:
    """A node over the restored directory, at the same path because locations of tables are absolute."""
    data, backup, names = seed
    rmtree(data)
    copytree(backup, data, symlinks=True)
    with node_at(data) as node:
        let_jobs(node)
        yield node, names


@pytest.mark.parametrize("operation", [each for each in WRITES if each in operations()])
def test_write_succeeds_if_database_is_lost_after_commit(
    furnished: tuple[DriverNode, dict[str, str]], monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """A write whose database is lost right after the COMMIT is answered as a success."""
    node, names = furnished
    method, target, body = fill(WHERE_NOTHING_WAITS.get(operation, WRITES[operation]), names)
    marks = BEFORE.get(operation, 0)
    commits = cut_after_commit(node, monkeypatch, marks=marks)

    answer = node.ask(method, target, body)

    monkeypatch.undo()
    assert commits, f"nothing was committed: {answer}"
    assert answer.status in (200, 201, 204), answer
