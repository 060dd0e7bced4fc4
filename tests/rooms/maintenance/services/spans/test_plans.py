# SPDX-License-Identifier: Apache-2.0
"""The spans of an operation: who may fetch them, which ones are returned, and what an executor learns."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from limnos.access.authentication import Credential
from limnos.files import AllowedStorage
from limnos.model.errors import UnsupportedOperation
from limnos.model.records import CatalogRecord
from limnos.rooms.maintenance.services.rewriting import leases
from limnos.rooms.maintenance.services.spans.plans import PLANS, executor_credentials
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from limnos.services.vending.credentials import VENDOR, CredentialVendor
from limnos.sources.credentials import AwsCredentials, AwsRole
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.test_plans import steer
from tests.http.iceberg.test_restricted_plans import RestrictedTable
from tests.http.iceberg.test_restriction_bypasses import InlineRewrites
from tests.http.iceberg.test_restrictions import restrict
from tests.rooms.maintenance.services.histories import MAINTENANCE, HistoryTable
from tests.rooms.maintenance.services.rewriting.executor import commit_with
from tests.rooms.maintenance.services.spans.fake_executor import SpanExecutor, plan_beside

pytestmark = pytest.mark.slow

Work = Callable[[SpanExecutor, dict[str, Any]], Awaitable[Any]]


def with_operation(table: RestrictedTable, work: Work) -> Any:  # noqa: ANN401 - the result of any work
    """Return the result of an executor's work with a leased operation, which is executed afterwards."""

    async def run(executor: SpanExecutor) -> object:
        operation = await executor.await_operation()
        try:
            return await work(executor, operation)
        finally:
            body = {"holder": executor.holder, "outcome": "failed", "text": "the end of the test"}
            target = f"/api/limnos/v1/metalakes/lake/maintenance/operations/{operation['operation']}/report"
            await executor.node.answer("POST", target, body)

    return plan_beside(table, run)[1]


def test_spans_are_those_of_the_plan_without_secrets(table: RestrictedTable) -> None:
    """An executor gets every span with the data file, the restrictions and the directory of its operation. It gets
    neither a property of the catalog nor credentials for files on a disk.
    """
    secret = {"@type": "setProperty", "property": "s3.secret-access-key", "value": "hidden-secret"}
    key = {"@type": "setProperty", "property": "s3.access-key-id", "value": "hidden-key"}
    table.node.done("PUT", f"{API}/lake/catalogs/main", {"updates": [key, secret]})

    async def fetch(executor: SpanExecutor, operation: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return operation, await executor.spans(operation)

    operation, batch = with_operation(table, fetch)

    assert [each["number"] for each in batch["spans"]] == [0, 1, 2, 3]
    assert len({each["task"]["data-file"]["file-path"] for each in batch["spans"]}) == 4
    common = batch["common"]
    assert (common["credentials"], "properties" in common) == ({}, False)
    assert common["into"].endswith(f"/x{operation['operation']}")
    assert common["shape"]["masks"] == {"3": "show-last-4"}
    assert "hidden" not in json.dumps(batch)


def test_written_and_earlier_spans_are_left_out(table: RestrictedTable) -> None:
    """Spans whose files exist are left out, and those up to the number `after`."""

    async def fetch(executor: SpanExecutor, operation: dict[str, Any]) -> list[list[int]]:
        batches = [await executor.spans(operation, limit=1)]
        await executor.write(operation, batches[0])
        for after, limit in ((-1, 16), (-1, 2), (2, 16), (3, 16)):
            batches.append(await executor.spans(operation, after=after, limit=limit))
        return [[each["number"] for each in batch["spans"]] for batch in batches]

    assert with_operation(table, fetch) == [[0], [1, 2, 3], [1, 2], [3], []]


def test_any_node_computes_the_same_spans(table: RestrictedTable) -> None:
    """A node that did not plan the scan computes the same spans from the stored recipe."""

    async def fetch(executor: SpanExecutor, operation: dict[str, Any]) -> list[list[str]]:
        batches = [await executor.spans(operation)]
        PLANS.of(executor.node.built.services).clear()
        batches.append(await executor.spans(operation))
        return [[each["name"] for each in batch["spans"]] for batch in batches]

    names, recomputed_names = with_operation(table, fetch)
    assert names == recomputed_names
    assert len(names) == 4


def test_spans_that_no_plan_needs_are_not_returned(table: RestrictedTable) -> None:
    """If no plan needs the directory any more, an executor gets no spans."""
    steer(table.node, scan_keep_ms=1)

    async def fetch(executor: SpanExecutor, operation: dict[str, Any]) -> dict[str, Any]:
        return await executor.spans(operation)

    assert with_operation(table, fetch)["spans"] == []


def test_only_the_token_of_the_operation_opens_its_spans(table: RestrictedTable) -> None:
    """The table's owner, who may lease operations, gets no spans with another credential; nor does the token of another
    operation, nor that of an operation of another kind. Nothing is written by their reports.
    """
    HistoryTable(table.node, "other").append(2)
    SCAN_OFFLOADER.put(table.node.built.services, InlineRewrites())

    async def fetch(executor: SpanExecutor, operation: dict[str, Any]) -> list[DriverAnswer]:
        body = {"table": "a.other", "operation": "manifests"}
        assert (await executor.node.answer("POST", f"{MAINTENANCE}/operations", body)).status == 200
        compaction = await executor.await_operation()
        assert compaction["kind"] == "manifests"
        answers = []
        for what in ("spans", "files"):
            target = f"{MAINTENANCE}/operations/{operation['operation']}/{what}"
            answers.append(await executor.node.answer("POST", target, {}))
            answers.append(await executor.request({**compaction, "operation": operation["operation"]}, what, {}))
            answers.append(await executor.request({**operation, "operation": operation["operation"] + 1}, what, {}))
            answers.append(await executor.request(compaction, what, {}))
        return answers

    statuses = [each.status for each in with_operation(table, fetch)]
    assert statuses == [403, 403, 403, 400] * 2


def test_expired_lease_opens_no_spans(table: RestrictedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor whose lease has expired gets no spans, and its report is refused."""
    monkeypatch.setattr(leases, "LEASE_MS", 0)

    async def fetch(executor: SpanExecutor, operation: dict[str, Any]) -> list[DriverAnswer]:
        return [await executor.request(operation, what, {}) for what in ("spans", "files")]

    answers = with_operation(table, fetch)
    assert [each.status for each in answers] == [403, 403]
    assert all(b"lease of this operation has expired" in each.body for each in answers)


@pytest.mark.parametrize(
    "privileges,status",
    [("select_table", 403), ("modify_table", 403), ("select_table modify_table", 200)],
)
def test_user_of_the_operation_must_read_and_modify_the_table(
    table: RestrictedTable, privileges: str, status: int
) -> None:
    """Spans are returned as long as the operation's user may read and modify the table, also after a change of its
    owner.
    """
    node = table.node
    assert restrict(node, filter="City = 'Rome'", masks={"card": "show-last-4"}, to={"users": ["bob"]}).status == 200
    grant(node, "dora", f"use_catalog use_schema {privileges}", kind="CATALOG", on="main")
    node.done("PUT", f"{API}/lake/owners/TABLE/main.a.t", {"name": "dora", "type": "USER"})

    async def fetch(executor: SpanExecutor, operation: dict[str, Any]) -> list[int]:
        statuses = [(await executor.request(operation, "spans", {})).status]
        body = {"name": "admin", "type": "USER"}
        assert (await node.answer("PUT", f"{API}/lake/owners/TABLE/main.a.t", body)).status == 200
        statuses.append((await executor.request(operation, "spans", {})).status)
        statuses.append((await executor.request(operation, "files", {})).status)
        return statuses

    assert with_operation(table, fetch) == [200, status, 400 if status == 200 else status]


def test_numbers_out_of_range_are_refused(table: RestrictedTable) -> None:
    """A number of the last span below -1 and a limit out of range are 400."""

    async def fetch(executor: SpanExecutor, operation: dict[str, Any]) -> list[int]:
        bodies = ({"after": -2}, {"limit": 0}, {"limit": 65})
        return [(await executor.request(operation, "spans", body)).status for body in bodies]

    assert with_operation(table, fetch) == [400] * 3


def test_token_of_the_operation_commits_nothing(table: RestrictedTable) -> None:
    """A commit with the operation's token is 403: the operation changes no table."""

    async def lease(executor: SpanExecutor, operation: dict[str, Any]) -> DriverAnswer:
        path, token = wire.table_path("a", "t"), f"Bearer {operation['token']}"
        updates = [{"action": "remove-statistics", "snapshot-id": 1}]
        body = {"requirements": [], "updates": updates}
        return await executor.node.answer("POST", path, body, user=None, authorization=token)

    answer = with_operation(table, lease)
    assert answer.status == 403
    assert "commits nothing" in answer.body.decode()
    assert commit_with(table.node, "lim_1_none", "t", []).status == 401


ROLE = {
    "s3.role-arn": "arn:aws:iam::123456789012:role/lake",
    "s3.access-key-id": "own-key",
    "s3.secret-access-key": "own-secret",
    "s3-secret-access-key": "own-secret",
    "s3.region": "eu-west-1",
    "adls.sas-token": "own-secret",
    "comment": "own-secret",
}


def credentials_of(node: DriverNode, properties: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return an executor's properties for a table on S3, whose token service echoes the policy."""

    def issue(role: AwsRole, policy: str) -> AwsCredentials:
        del role
        return AwsCredentials("vended-key", policy, "vended-token", node.built.services.store.time.now_ms() + 3_600_000)

    services = node.built.services
    VENDOR.put(services, CredentialVendor(timeout_s=60.0, time=services.store.time, issue=issue))  # type: ignore[arg-type]
    record = CatalogRecord(
        type="relational", provider="lakehouse-iceberg", comment=None, properties=properties, in_use=True
    )
    allowed = AllowedStorage(("s3://",))
    home = "s3://bucket/home"
    place = CatalogStorage(catalog=record, warehouse=home, roots=(home,), home=home, allowed=allowed)
    ctx = Context(services, Credential(user="admin"), "test")
    into = f"{home}/restricted-reads/t1-0/0/x7"
    return node.runner.run(executor_credentials(ctx, place, into=into, roots=(f"{home}/table",)))


def test_executor_gets_narrow_credentials_and_no_secrets(node: DriverNode) -> None:
    """For an object store an executor gets credentials that read the table's location, and others that write below the
    directory of the operation. The catalog's own secrets are not passed on.
    """
    credentials = credentials_of(node, ROLE)

    into, table = "s3://bucket/home/restricted-reads/t1-0/0/x7", "s3://bucket/home/table"
    assert list(credentials) == [into, table]
    assert {name for each in credentials.values() for name in each} == {
        "s3.region",
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
    }
    assert "own" not in json.dumps(credentials)
    policies = {at: json.loads(each["s3.secret-access-key"])["Statement"] for at, each in credentials.items()}
    writes = {at: [each for each in policy if "s3:PutObject" in each["Action"]] for at, policy in policies.items()}
    assert writes[table] == []
    assert [each["Resource"] for each in writes[into]] == [f"arn:aws:s3:::{into.removeprefix('s3://')}/*"]


def test_catalog_that_vends_nothing_has_no_credentials_for_executors(node: DriverNode) -> None:
    """Without vended credentials an executor gets none, rather than the catalog's own."""
    properties = {name: value for name, value in ROLE.items() if name != "s3.role-arn"}
    with pytest.raises(UnsupportedOperation, match="vends no credentials"):
        credentials_of(node, properties)
