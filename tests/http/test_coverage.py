# SPDX-License-Identifier: Apache-2.0
"""Endpoint coverage: callers without rights send every operation of openapi/.

No operation may succeed or cause an error, except for those in coverage_allowed.txt, each with a reason. No entry may
be added to that file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.arrow_rows import arrow
from tests.http import declared_requests
from tests.http.driver import API, PROGRAM, SCHEDULE, DriverAnswer, DriverNode, schema_view
from tests.http.iceberg import wire
from tests.installed import absent_operations, has_room

FOLDER = Path(__file__).parents[2] / "openapi"
ALLOWED = Path(__file__).with_name("coverage_allowed.txt")
ALLOWED_MAX = 92
"""The number of entries of the list. Lower it with every removed entry, and never raise it for an operation that should
refuse.
"""

CALLERS = {
    "nobody": {"user": None},
    "wrong-token": {"user": None, "authorization": "Bearer lim_1_wrong"},
    "stranger": {"user": "stranger"},
    "member": {"user": "member"},
}
NAMES = {
    "prefix": "lake.main",
    "namespace": "a",
    "table": "t",
    "view": "v",
    "m": "lake",
    "c": "main",
    "s": "a",
    "v": "v",
    "u": "ana",
    "g": "crew",
    "r": "hands",
    "type": "SCHEMA",
    "fullName": "main.a",
    "id": "1",
    "p": "nyc",
    "step": "s",
    "folder": "guides",
    "page": "nope.html",
    "namespace_id": "lance$a",
    "table_id": "lance$a$t",
    "index_name": "i",
    "transaction_id": "lance$a$t$x",
    "template": "nyc",
    "job": "1",
    "model": "churn",
    "alias": "new",
    "version": "0",
    "fileset": "f",
    "topic": "o",
    "function": "f",
    "policy": "keep",
    "handle": "none",
    "plan": "none",
    "t": "t",
    "tag": "red",
    "o": "1",
    "name": "n",
    **declared_requests.NAMES,
}
BUILT_IN = "builtin-iceberg-"
"""The prefix of the names of job templates that every metalake has."""
RUN = "01234567-0123-4567-89ab-0123456789ab"
CATALOG = {"name": "n", "type": "RELATIONAL", "provider": "lakehouse-iceberg"}
GRANT = [{"name": "use_schema", "condition": "allow"}]
OBJECTS = [{"fullName": "main.a", "type": "SCHEMA", "privileges": GRANT}]
LINEAGE = {
    "eventTime": "2026-01-31T00:00:00Z",
    "eventType": "COMPLETE",
    "job": {"namespace": "n", "name": "j"},
    "inputs": [{"namespace": "kafka://k", "name": "x"}],
    "outputs": [{"namespace": "limnos://lake", "name": "main.a.t"}],
}
FUNCTION = {
    "functionType": "scalar",
    "deterministic": True,
    "definitions": [
        {"parameters": [], "returnType": "long", "impls": [{"language": "SQL", "runtime": "SPARK", "sql": "1"}]}
    ],
}
POLICY = {
    "policyType": "custom",
    "content": {"supportedObjectTypes": ["CATALOG", "SCHEMA", "TABLE"], "customRules": {"days": 7}},
}
BODIES: dict[str, object] = {
    "issue-token": b"grant_type=urn:ietf:params:oauth:grant-type:token-exchange&subject_token=lim_1_wrong",
    "create-namespace": {"namespace": ["n"]},
    "update-properties": {"updates": {"k": "v"}},
    "register-table": {"name": "n", "metadata-location": "file:///x"},
    "create-table": {"name": "n", "schema": wire.SCHEMA},
    "commit-table": {"updates": [wire.set_properties(k="v")]},
    "report-metrics": {"report-type": "scan-report"},
    "plan-scan": {},
    "load-tasks": {"plan-task": "none"},
    "rename-table": {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "n"}},
    "commit-transaction": {
        "table-changes": [{"identifier": {"namespace": ["a"], "name": "t"}, "updates": [wire.set_properties(k="v")]}]
    },
    "create-view": wire.view_body("n"),
    "register-view": {"name": "n", "metadata-location": "file:///x"},
    "replace-view": {"updates": [wire.set_properties(k="v")]},
    "rename-view": {"source": {"namespace": ["a"], "name": "v"}, "destination": {"namespace": ["a"], "name": "n"}},
    "alter-schema-view": {"updates": []},
    "create-schema-view": schema_view("n"),
    "create-tag": {"name": "n"},
    "alter-tag": {"updates": []},
    "associate-tags": {"tagsToAdd": []},
    "associate-tags-old": {"tagsToAdd": []},
    "create-metalake": {"name": "n"},
    "alter-metalake": {"updates": []},
    "set-metalake": {"inUse": False},
    "create-catalog": CATALOG,
    "test-new-catalog": CATALOG,
    "alter-catalog": {"updates": []},
    "set-catalog": {"inUse": False},
    "test-catalog": {"updates": []},
    "create-schema": {"name": "n"},
    "alter-schema": {"updates": []},
    "add-user": {"name": "n"},
    "add-group": {"name": "n"},
    "create-role": {"name": "n", "properties": {}, "securableObjects": OBJECTS},
    "set-owner": {"name": "member", "type": "USER"},
    **{
        key: {"roleNames": ["hands"]}
        for key in [
            f"{what}-{principal}" for what in ("grant-roles-to", "revoke-roles-from") for principal in ("user", "group")
        ]
    },
    "grant-privileges": {"privileges": GRANT},
    "revoke-privileges": {"privileges": GRANT},
    "override-role": {"overrides": []},
    "load-objects": {"paths": [["a", "t"]]},
    "explain-access": {"action": "table_load", "path": ["main", "a", "t"], "kind": "table", "user": "ana"},
    "what-if-access": {"change": "assign", "roles": ["hands"], "user": "member"},
    "request-access": {"kind": "table", "path": ["main", "a", "t"]},
    "withdraw-access-request": {"kind": "table", "path": ["main", "a", "never"]},
    "answer-access-request": {
        "answer": "grant",
        "user": "ana",
        "kind": "table",
        "path": ["main", "a", "t"],
        "preset": "reader",
    },
    "change-access-preset": {
        "change": "grant",
        "preset": "reader",
        "kind": "table",
        "path": ["main", "a", "t"],
        "user": "member",
    },
    "transaction": {"operations": [{"do": "drop-table", "path": ["a", "t"]}]},
    "joint-transaction": {"operations": [{"do": "drop-table", "catalog": "main", "path": ["a", "t"]}]},
    "sign-request": {"region": "us-east-1", "uri": "https://b.s3.amazonaws.com/t/f", "method": "GET", "headers": {}},
    "change-names": {"to": "planned"},
    "begin-import": {"name": "n"},
    "feed-import": b"",
    "bulk": b'{"do": "drop", "kind": "table", "path": ["main", "a", "t"]}',
    "move": {"kind": "table", "source": ["a", "t"], "target": ["a", "n"]},
    "add-members": {"users": ["member"]},
    "enable-user": {"enabled": False},
    **{f"take-lineage{more}": LINEAGE for more in ("", "-v1", "-of-metalake")},
    "lance-create-namespace": {},
    "lance-describe-namespace": {},
    "lance-drop-namespace": {},
    "lance-namespace-exists": {},
    "lance-declare-table": {},
    "lance-create-empty-table": {},
    "lance-register-table": {"location": "nowhere"},
    "lance-describe-table": {},
    "lance-table-exists": {},
    "lance-drop-table": {},
    "lance-deregister-table": {},
    "lance-rename-table": {"new_table_name": "n"},
    "lance-list-table-versions": {},
    "lance-describe-table-version": {"version": 1},
    "lance-create-table-version": {"version": 1, "manifest_path": "x"},
    "lance-batch-delete-table-versions": {"ranges": []},
    "lance-batch-create-table-versions": {"entries": [{"id": ["lance", "a", "t"], "version": 1, "manifest_path": "x"}]},
    "lance-batch-commit-tables": {"operations": [{"deregister_table": {"id": ["lance", "a", "t"]}}]},
    "lance-list-table-tags": {},
    "lance-list-table-branches": {},
    **{
        f"lance-{verb}-table-tag{more}": {"tag": "v", "version": 1}
        for verb, more in (("create", ""), ("update", ""), ("delete", ""), ("get", "-version"))
    },
    **{f"lance-{verb}-table-branch": {"name": "b"} for verb in ("create", "delete")},
    **dict.fromkeys(("lance-create-table", "lance-insert-into-table"), arrow()),
    "lance-count-table-rows": {},
    "lance-query-table": {"k": 1},
    "query-service": {"statement": "create dataverse n"},
    "lance-explain-table-query-plan": {"query": {"k": 1}},
    "lance-analyze-table-query-plan": {"k": 1},
    "lance-merge-insert-into-table": arrow(),
    "lance-update-table": {"updates": [["id", "1"]]},
    "lance-delete-from-table": {"predicate": "true"},
    "lance-restore-table": {"version": 1},
    "lance-update-table-schema-metadata": {},
    "lance-update-field-metadata": {"updates": [{"path": "id", "metadata": {}}]},
    "lance-alter-table-add-columns": {"new_columns": [{"name": "n", "expression": "1"}]},
    "lance-alter-table-drop-columns": {"columns": ["id"]},
    "lance-alter-table-alter-columns": {"alterations": [{"path": "id", "rename": "n"}]},
    "lance-get-table-stats": {},
    "lance-list-table-indices": {},
    **{
        key: {"column": "id", "index_type": "BTREE"}
        for key in ("lance-create-table-index", "lance-create-table-scalar-index")
    },
    **{key: {} for key in ("lance-describe-table-index-stats", "lance-drop-table-index", "lance-describe-transaction")},
    "lance-alter-transaction": {"actions": []},
    "create-token": {"user": "admin"},
    "login": {"user": "admin", "password": "a few words, all wrong"},
    "set-password": {"password": "a few words for you"},
    "remove-password": {},
    "create-secret": {},
    "undrop": {},
    "protect": {},
    "set-restriction": {"masks": {"city": "replace-with-null"}},
    "create-webhook": {"url": "https://hooks.example.com/x"},
    "retry-webhook": {},
    "export-audit": {},
    "put-pipeline": {"declaration": {}},
    "put-schedule": SCHEDULE,
    "set-schedule": {"paused": True},
    "start-run": {"id": RUN, "holder": "h:1"},
    "beat-run": {"attempt": 1},
    "resume-run": {"holder": "h:1"},
    "register-job-template": {"jobTemplate": {**PROGRAM, "name": "n"}},
    "alter-job-template": {"updates": []},
    "run-job": {"jobTemplateName": "nyc", "jobConf": {}},
    "create-schema-table": {"name": "n", "columns": [{"name": "id", "type": "long"}]},
    "alter-schema-table": {"updates": []},
    "add-partitions": {"partitions": []},
    **{f"create-{kind}": {"name": "n"} for kind in ("fileset", "topic")},
    **{f"alter-{kind}": {"updates": []} for kind in ("fileset", "topic")},
    "register-function": {"name": "n", **FUNCTION},
    "alter-function": {"updates": []},
    "create-policy": {"name": "n", **POLICY},
    "alter-policy": {"updates": []},
    "set-policy": {"enable": True},
    "associate-policies": {"policiesToAdd": []},
    "update-statistics": {"updates": {"custom-n": 1}},
    "drop-statistics": {"names": ["custom-n"]},
    "update-partition-statistics": {"updates": [{"partitionName": "p", "statistics": {"custom-n": 1}}]},
    "drop-partition-statistics": {"drops": [{"partitionName": "p", "statisticNames": ["custom-n"]}]},
    "submit-strategy-jobs": {"identifiers": ["main.a.t"], "strategyName": "n"},
    "submit-update-stats-jobs": {"identifiers": ["main.a.t"]},
    "monitor-table-metrics": {"identifiers": ["main.a.t"], "actionTime": 1},
    **{
        f"append-table-{what}": {
            "calculatorName": "n",
            "statisticsPayload": '{"stats-type": "table", "identifier": "main.a.t", "custom-n": 1}',
        }
        for what in ("statistics", "metrics")
    },
    "add-users": {"users": [{"name": "n"}]},
    "remove-users": {"names": ["n"]},
    "register-model": {"name": "n"},
    "alter-model": {"updates": []},
    "link-model-version": {"uri": "s3://x"},
    "alter-model-version": {"updates": []},
    "alter-model-alias": {"updates": []},
    "put-step": {"attempt": 1, "state": "done"},
    "finish-run": {"attempt": 1, "state": "failed"},
    **declared_requests.BODIES,
}
"""A valid body for every operation that takes one, so that a refusal is about the caller and not about the body."""


QUERIES = {
    "feed-import": "?after=0",
    "bulk": "?job=j&atomic=true",
    "search": "?q=t",
    "list-table-metrics": "?identifiers=main.a.t",
    "list-job-metrics": "?identifiers=maintenance-1",
    "list-access-reach": "?user=ana",
    "list-access-differences": "?user=ana&other=dummy",
    "list-known-objects": "?path=main.a.t",
    "list-missing-privileges": "?user=ana&preset=reader&path=main",
    "query-service-read": "?statement=select+value+1",
    "sqlpp-cancel": "?client_context_id=x",
    "sqlpp-connector": "?dataverseName=a&datasetName=t",
}
"""The required query parameters of operations."""


class Operation(NamedTuple):
    """An operation of a document."""

    protocol: str
    method: str
    path: str
    name: str
    takes_body: bool

    @property
    def target(self) -> str:
        """Return the path with names of existing objects."""
        path = self.path
        for name, value in NAMES.items():
            path = path.replace(f"{{{name}}}", value)
        return path + QUERIES.get(self.name, "")


def operations(*, with_absent: bool = False) -> Iterator[Operation]:
    """Return every operation of the committed documents that is served here; on request also those of other rooms."""
    for file in sorted(FOLDER.glob("*.json")):
        for path, methods in json.loads(file.read_text(encoding="utf-8"))["paths"].items():
            for method, operation in methods.items():
                name = operation["operationId"].removesuffix("-default-catalog")
                if not with_absent and (file.stem, name) in absent_operations():
                    continue
                yield Operation(
                    protocol=file.stem,
                    method=method.upper(),
                    path=path,
                    name=name,
                    takes_body="requestBody" in operation,
                )


OPERATIONS = tuple(operations())
Asked = tuple[str, str]


def allowed() -> dict[Asked, str]:
    """Return the allowed successes: (caller, operation as `METHOD /path`) with the reason."""
    reasons: dict[Asked, str] = {}
    for line in ALLOWED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            callers, operation, reason = (part.strip() for part in line.split("|"))
            reasons |= {(caller, operation): reason for caller in callers.split()}
    return reasons


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Asked, DriverAnswer]]:
    """Return the answer of every operation to every caller. Refused requests must not change the store or the
    warehouse.
    """
    responses: dict[Asked, DriverAnswer] = {}
    listed = allowed()
    with wire.node_over(tmp_path_factory.mktemp("coverage")) as node:
        prepare(node)
        for caller, headers in CALLERS.items():
            with wire.nothing_done(node):
                responses |= {
                    key: ask(node, each, headers) for each in OPERATIONS if (key := _key(caller, each)) not in listed
                }
            responses |= {key: ask(node, each, headers) for each in OPERATIONS if (key := _key(caller, each)) in listed}
        yield responses


def _key(caller: str, operation: Operation) -> Asked:
    return caller, f"{operation.method} {operation.path}"


def prepare(node: DriverNode) -> None:
    """Create the objects that the paths name."""
    wire.make_table(node, "a", "t")
    wire.make_view(node, "a", "v")
    if has_room("lance"):
        node.done("POST", "/lance/v1/namespace/lance$a/create", {})
        node.done("POST", "/lance/v1/table/lance$a$t/declare", {})
    for user in ("member", "ana"):
        node.done("POST", f"{API}/lake/users", {"name": user})
    node.done("POST", f"{API}/lake/groups", {"name": "crew"})
    if has_room("pipelines"):
        node.done("PUT", "/api/limnos/v1/metalakes/lake/pipelines/nyc", {"declaration": {}})
    node.done("POST", f"{API}/lake/roles", {"name": "hands", "properties": {}, "securableObjects": OBJECTS})


def ask(node: DriverNode, operation: Operation, headers: dict[str, str | None]) -> DriverAnswer:
    """Send an operation with its body."""
    return node.ask(operation.method, operation.target, BODIES.get(operation.name), **headers)  # type: ignore[arg-type]


def test_every_path_parameter_has_a_test_value() -> None:
    """`NAMES` has a name for each path parameter."""
    parameters = {name for each in OPERATIONS for name in re.findall(r"\{(\w+)\}", each.path)}

    assert parameters - set(NAMES) == set()


def test_every_operation_with_a_body_has_a_test_body() -> None:
    """`BODIES` has a body for each operation that takes one."""
    assert {each.name for each in OPERATIONS if each.takes_body} - set(BODIES) == set()


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_caller_without_rights_is_refused_everywhere(
    answers: dict[Asked, DriverAnswer], caller: str, operation: Operation
) -> None:
    """A caller without rights gets 401, 403 or 404 in the protocol's error format, unless the list has a reason."""
    key = _key(caller, operation)
    answer = answers[key]

    if key in allowed():
        is_missing_page = operation.path.startswith("/docs") and answer.status == 404
        assert 200 <= answer.status < 300 or answer.status == 303 or is_missing_page
    else:
        assert answer.status in ((401,) if caller == "wrong-token" else (401, 403, 404)), answer.body
        assert operation.method == "HEAD" or json.loads(answer.body)


def test_list_of_exceptions_does_not_grow() -> None:
    """The list has no more entries than before, each with a reason and an existing operation."""
    exceptions = allowed()

    assert len(exceptions) == ALLOWED_MAX
    assert all(len(reason) > 10 for reason in exceptions.values())
    assert set(exceptions) <= {_key(caller, each) for caller in CALLERS for each in operations(with_absent=True)}


def test_member_lists_contain_only_the_members_objects(answers: dict[Asked, DriverAnswer]) -> None:
    """A list that a member may request contains only the member's own objects."""
    for (caller, operation), answer in answers.items():
        if caller == "member" and operation.startswith("GET /api/metalakes/{m}/") and 200 <= answer.status < 300:
            (items,) = [value for key, value in answer.json().items() if isinstance(value, list)]
            own = [item for item in items if not str(item).startswith(BUILT_IN)]
            assert own in ([], ["member"]), operation
