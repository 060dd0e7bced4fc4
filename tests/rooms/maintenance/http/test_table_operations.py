# SPDX-License-Identifier: Apache-2.0
"""Gravitino's seven operations of table maintenance: jobs by a policy, statistics, metrics, and the needed rights."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from limnos.access.authentication import Credential
from limnos.rooms.maintenance.http import table_operations
from limnos.rooms.maintenance.http.table_operations import StatisticsPayload
from limnos.rooms.maintenance.services.table_operations import MetricPoint
from limnos.services.request.context import Context
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import make_space, node_over
from tests.rooms.maintenance.services.histories import (
    DAY_MS,
    FIRST_MS,
    HistoryTable,
    add_policy,
    assess,
    explained,
    set_clock,
)
from tests.rooms.maintenance.services.rewriting.executor import (
    FakeExecutor,
    ask,
    commit_with,
    list_operations,
    replacement,
)

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "maintenance.md"
OPS = "/api/maintenance/table/ops"
COMPACTION, WHOLE = "system_iceberg_compaction", "system_iceberg_table_maintenance"
REWRITE, STATS = "builtin-iceberg-rewrite-data-files", "builtin-iceberg-update-stats"
HOUR_MS = 3_600_000
NOW_MS = FIRST_MS + 30 * DAY_MS
LINE = {"stats-type": "table", "identifier": "main.a.t", "custom-cost": 5}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node with a namespace `a`, whose tables `t` of twelve and `u` of thirty small files are assessed."""
    with node_over(tmp_path) as running:
        make_space(running, "a")
        for name, files in (("t", 12), ("u", 30)):
            HistoryTable(running, name).append(files)
        set_clock(running, NOW_MS)
        assess(running)
        yield running


def strategy(node: DriverNode, *tables: str, user: str = "admin", **more: object) -> DriverAnswer:
    """Request the jobs of a policy."""
    body = {"identifiers": [*tables], "strategyName": "small", **more}
    return node.post(f"{OPS}/strategy-jobs", body, user=user)


def reasons(node: DriverNode, *tables: str, policy: str = "small") -> dict[str, str]:
    """Request the jobs of a policy that gives no jobs. Returns the beginning of the reason for each table."""
    answer = strategy(node, *tables, strategyName=policy).json()
    assert answer["results"] == []
    return {each["identifier"]: each["reason"].partition(".")[0].partition(":")[0] for each in answer["withoutJobs"]}


def lines(*records: dict[str, Any], **more: object) -> dict[str, object]:
    """Return a body with lines of statistics."""
    text = "\n".join(json.dumps(each) for each in records)
    return {"calculatorName": "local-stats-calculator", "statisticsPayload": text, **more}


def test_policy_creates_jobs_for_recommended_tables(node: DriverNode) -> None:
    """Tables with a finding are recommended, most urgent first; without `dryRun` each gets one job."""
    add_policy(node, "small", COMPACTION, {}, on="main", kind="catalog")
    dry = strategy(node, "main.a.t", "main.a.u", dryRun=True).json()
    scores = [(each["identifier"], each["score"], each["jobTemplate"]) for each in dry["results"]]
    assert scores == [("main.a.u", 29, REWRITE), ("main.a.t", 11, REWRITE)]
    assert dry["results"][0]["jobConfig"] == {"catalog_name": "main", "table_identifier": "a.u"}
    assert (dry["dryRun"], list_operations(node)) == (True, [])

    done = strategy(node, "main.a.t", "main.a.u", limit=1).json()["results"]
    again = strategy(node, "main.a.u").json()["results"]
    assert [each["identifier"] for each in done] == ["main.a.u"]
    assert again[0]["jobId"] == done[0]["jobId"]
    job = node.get(f"{API}/lake/jobs/runs/{done[0]['jobId']}").json()["job"]
    assert (job["jobTemplateName"], job["status"]) == (REWRITE, "queued")
    (leased,) = FakeExecutor(node).lease()
    assert (leased["kind"], leased["path"]) == ("compact", ["a", "u"])


def test_jobs_have_the_options_of_the_policy(node: DriverNode) -> None:
    """A job of a policy, and an operation that a user requests, have the rewrite options of the policy."""
    content: dict[str, object] = {"rewriteOptions": {"min-input-files": "1000"}}
    add_policy(node, "small", COMPACTION, content, on="main", kind="catalog")
    assert strategy(node, "main.a.t").status == 200
    assert ask(node, "a.u").status == 200
    leased = FakeExecutor(node).lease()

    assert {(each["path"][-1], each["options"]["min-input-files"]) for each in leased} == {("t", "1000"), ("u", "1000")}


def test_policy_that_does_not_apply_creates_no_jobs(node: DriverNode) -> None:
    """A policy that does not apply, is disabled, or is about other operations creates no jobs and returns a reason for
    each table. A missing policy is 404, and one of another type is refused.
    """
    add_policy(node, "small", WHOLE, {"compact": False}, on="main.a.t", kind="table")
    assert reasons(node, "main.a.t", "main.a.u") == {
        "main.a.t": "The policy requests no job here",
        "main.a.u": "The policy does not apply to this table",
    }
    add_policy(node, "none", WHOLE, {"compact": False, "manifests": False}, on="main.a.u", kind="table")
    assert reasons(node, "main.a.u", policy="none") == {"main.a.u": "The policy requests no job here"}
    node.post(f"{API}/lake/objects/table/main.a.u/policies", {"policiesToRemove": ["none"]})
    node.post(f"{API}/lake/objects/catalog/main/policies", {"policiesToAdd": ["small"]})
    node.patch(f"{API}/lake/policies/small", {"enable": False})
    assert reasons(node, "main.a.u") == {"main.a.u": "The policy is disabled"}
    retention = {"column": "id", "olderThanDays": 1}
    add_policy(node, "rows", "limnos-row-retention", retention, on="main", kind="catalog")
    for name, status, text in (("no", 404, "Policy no"), ("rows", 400, "strategyName must name a policy of type")):
        answer = strategy(node, "main.a.t", strategyName=name)
        assert (answer.status, text in str(answer.body)) == (status, True), answer.body


def test_overriding_policy_is_named_in_the_reason(node: DriverNode) -> None:
    """If another policy decides about an operation, the reason has its type, and its name if the caller may load it."""
    add_policy(node, "whole", WHOLE, {"compact": True}, on="main", kind="catalog")
    add_policy(node, "small", COMPACTION, {}, on="main", kind="catalog")
    grant(node, "bob", "use_catalog use_schema select_table modify_table", kind="CATALOG", on="main")
    grant(node, "bob", "apply_policy", kind="POLICY", on="whole")
    named, hidden = (
        strategy(node, "main.a.t", user=user, strategyName="whole").json()["withoutJobs"][0]["reason"]
        for user in ("admin", "bob")
    )

    assert f"policy small of type {COMPACTION} decides about compact" in named
    assert "there is no finding manifests" in named
    assert f"another policy of type {COMPACTION} decides about compact" in hidden
    decides = {each["name"]: each["decides"] for each in explained(node)["policies"]}
    assert decides == {"small": ["compact", "deletes"], "whole": ["manifests"]}


def test_request_bodies_of_the_guide_are_accepted(node: DriverNode) -> None:
    """The routes accept the request bodies of the guide."""
    add_policy(node, "compact", WHOLE, {}, on="main", kind="catalog")
    text = GUIDE.read_text(encoding="utf-8").replace("main.raw.trips", "main.a.t").replace("'$started'", "1700000000")
    requests = re.findall(r"""\$ops/([\w/-]+\??[\w=]*)"? -d '([^']+)'""", text)
    answers = {path: node.post(f"{OPS}/{path}", json.loads(body)) for path, body in requests}

    assert {path: answer.status for path, answer in answers.items()} == {
        "strategy-jobs": 200,
        "statistics?metalake=lake": 200,
        "metrics/monitor": 200,
    }


def test_statistics_request_creates_one_job_per_table(node: DriverNode) -> None:
    """Each table gets a job of the built-in template for statistics. For metrics, no job is created."""
    path = f"{OPS}/update-stats-jobs"
    options = {
        "updaterOptions": {"gravitino_uri": "http://x", "metalake": "lake"},
        "sparkConf": {"spark.master": "yarn"},
    }
    dry = node.post(path, {"identifiers": ["main.a.t"], "dryRun": True, **options}).json()["results"]
    assert ([each["jobTemplate"] for each in dry], "jobId" in dry[0], list_operations(node)) == ([STATS], False, [])
    done = node.post(path, {"identifiers": ["main.a.t", "main.a.u"], "updateMode": "stats"}).json()["results"]
    assert {each["kind"] for each in list_operations(node)} == {"statistics"}
    assert len({each["jobId"] for each in done}) == 2
    assert node.post(path, {"identifiers": ["main.a.t"], "updateMode": "metrics"}).status == 405
    assert node.post(path, {"identifiers": ["main.a.t"], "updateMode": "x"}).status == 400


def test_statistics_are_imported_from_lines(node: DriverNode) -> None:
    """Statistics of tables and partitions are returned by the statistics routes. Lines about tables that were not
    requested are ignored.
    """
    partition = {
        "stats-type": "partition",
        "identifier": "main.a.t",
        "partition-path": {"dt": "1", "hour": "2"},
        "custom-rows": {"value": 7},
        "timestamp": 5,
    }
    other = {**LINE, "identifier": "main.a.u"}
    answer = node.post(f"{OPS}/statistics", lines(LINE, partition, other, identifiers=["main.a.t"]))
    counts = {"code": 0, "totalRecords": 2, "tableRecords": 1, "partitionRecords": 1, "jobRecords": 0}
    assert (answer.status, answer.json()) == (200, counts), answer.body
    at = f"{API}/lake/objects/table/main.a"
    assert [(each["name"], each["value"]) for each in node.get(f"{at}.t/statistics").json()["statistics"]] == [
        ("custom-cost", 5)
    ]
    parts = node.get(f"{at}.t/statistics/partitions?from=d").json()["partitionStatistics"]
    assert [(each["partitionName"], each["statistics"][0]["value"]) for each in parts] == [("dt=1/hour=2", 7)]
    assert node.get(f"{at}.u/statistics").json()["statistics"] == []


@pytest.mark.parametrize(
    "record, text",
    [
        ({**LINE, "stats-type": "job"}, "use table, or partition"),
        ({**LINE, "stats-type": "partition"}, "partition-path"),
        ({"stats-type": "table"}, "Line 1"),
        ({**LINE, "partition-path": {"d": "1"}}, "use table, or partition"),
        ({"identifier": "main.a.t", "cost": 1}, "custom-"),
        ({**LINE, "identifier": "a.t"}, "catalog.schema.table"),
    ],
)
def test_malformed_line_is_refused(node: DriverNode, record: dict[str, Any], text: str) -> None:
    """A malformed line is refused with the reason, and nothing is written."""
    answer = node.post(f"{OPS}/statistics", lines(record))

    assert (answer.status, text in str(answer.body)) == (400, True), answer.body
    assert node.get(f"{API}/lake/objects/table/main.a.t/statistics").json()["statistics"] == []


@pytest.mark.parametrize(
    "bad",
    [
        {"identifier": "main.a.none"},
        {"cost": 1},
        {"custom-cost": None},
        {"custom-x": "x" * 20_000},
        {"custom-cost": "-"},
    ],
    ids=["missing", "reserved", "empty", "long", "none"],
)
def test_a_bad_later_line_writes_nothing(node: DriverNode, bad: dict[str, Any]) -> None:
    """If a later line is invalid, no statistics of any table are written."""
    record = {**LINE, "identifier": "main.a.u", **bad}
    if bad == {"custom-cost": "-"}:
        del record["custom-cost"]
    answer = node.post(f"{OPS}/statistics", lines(LINE, record))

    assert answer.status in (400, 404), answer.body
    for table in ("t", "u"):
        assert node.get(f"{API}/lake/objects/table/main.a.{table}/statistics").json()["statistics"] == []
    both = node.post(f"{OPS}/statistics", lines(LINE, {**LINE, "identifier": "main.a.u"}))
    assert both.status == 200, both.body
    for table in ("t", "u"):
        assert len(node.get(f"{API}/lake/objects/table/main.a.{table}/statistics").json()["statistics"]) == 1


def test_too_deeply_nested_line_is_refused(node: DriverNode) -> None:
    """A line that is nested too deeply is refused as malformed."""
    text = f'{{"identifier": "main.a.t", "custom-deep": {"[" * 3_000}{"]" * 3_000}}}'
    answer = node.post(f"{OPS}/statistics", {"calculatorName": "x", "statisticsPayload": text})

    assert (answer.status, b"Line 1" in answer.body) == (400, True), answer.body


class SetOnly(list[str]):
    """A list that can be iterated but not searched."""

    def __contains__(self, key: object) -> bool:
        raise AssertionError(f"the list is searched for {key}")


def test_lines_are_not_compared_with_each_table(node: DriverNode) -> None:
    """The server does not compare each line with each table: a body of 64 KiB can have 1,000 lines and name thousands
    of tables.
    """
    text = str(lines(LINE, {**LINE, "identifier": "main.a.u"})["statisticsPayload"])
    body = StatisticsPayload(calculator_name="x", statistics_payload=text, identifiers=SetOnly(["main.a.t"]))
    ctx = Context(node.built.services, Credential(user="admin", token_id=None, secret_hash=None), "request")

    ((line, values),) = node.runner.run(table_operations._lines(ctx, "lake", body=body))
    assert (line.identifier, values) == ("main.a.t", {"custom-cost": 5})


def test_metrics_are_encoded_table_by_table(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node runs other requests between the metrics of two tables, each of which may have thousands of values."""
    turns, at = [0], list[int]()

    async def ask(method: str, target: str, body: object = None) -> DriverAnswer:
        request = asyncio.ensure_future(node.answer(method, target, body))
        while not request.done():
            turns[0] += 1
            await asyncio.sleep(0)
        return request.result()

    def encoded(points: Sequence[MetricPoint]) -> dict[str, list[dict[str, int]]]:
        at.append(turns[0])
        return {"number": [{"value": len(points)}]}

    monkeypatch.setattr(table_operations, "_metrics", encoded)
    listed = node.runner.run(ask("GET", f"{OPS}/metrics/tables?identifiers=main.a.t,main.a.u"))
    body = {"identifiers": ["main.a.t", "main.a.u"], "actionTime": 1}
    compared = node.runner.run(ask("POST", f"{OPS}/metrics/monitor", body))

    assert ([each["metrics"]["number"][0]["value"] for each in listed.json()["results"]], compared.status) == (
        [36, 90],
        200,
    )
    assert (len(at), len(set(at))) == (6, 4)  # for each monitored table, the values before and after the given time


def test_metrics_of_tables_and_jobs_are_evaluated(node: DriverNode) -> None:
    """Metrics of tables come from their snapshots and those of jobs from their operations. A table with a growing
    number of files fails its evaluation. Unsupported parameters are refused.
    """
    add_policy(node, "small", COMPACTION, {}, on="main", kind="catalog")
    at = f"{OPS}/metrics"
    (seen,) = node.get(f"{at}/tables?identifiers=main.a.t").json()["results"]
    assert [each["value"] for each in seen["metrics"]["total-data-files"]] == [*range(1, 13)]
    (job,) = strategy(node, "main.a.t").json()["results"]
    assert node.get(f"{at}/jobs?identifiers={job['jobId']}").json()["results"] == [
        {"scopeType": "JOB", "identifier": job["jobId"], "metrics": {}}
    ]
    set_clock(node, NOW_MS + HOUR_MS)
    (leased,) = FakeExecutor(node).lease()
    FakeExecutor(node).report(leased["operation"])
    (ended,) = node.get(f"{at}/jobs?identifiers={job['jobId']}").json()["results"]
    assert [*ended["metrics"]] == ["duration_ms"]
    assert ended["metrics"]["duration_ms"][0]["value"] < HOUR_MS, "the wait for an executor does not count"
    times = node.get(f"{API}/lake/jobs/runs/{job['jobId']}").json()["job"]
    assert times["queuedAt"] < times["startedAt"] <= times["finishedAt"]

    last = seen["metrics"]["total-data-files"][-1]["timestamp"]
    body = {"identifiers": ["main.a.t"], "actionTime": last, "rangeSeconds": 100 * 86_400}
    (grown,) = node.post(f"{at}/monitor", body).json()["results"]
    assert (grown["evaluation"], grown["scopeType"], grown["rangeSeconds"]) == (False, "TABLE", 100 * 86_400)
    assert node.post(at, lines(LINE)).status == 405
    assert node.get(f"{at}/tables?identifiers=main.a.t&partitionPath=d").status == 405
    assert node.post(f"{at}/monitor", {**body, "partitionPath": "d"}).status == 405
    assert node.post(f"{at}/monitor", {**body, "rangeSeconds": 0}).status == 400
    assert node.post(f"{at}/monitor", {**body, "actionTime": last * 1000}).status == 400
    assert node.get(f"{at}/jobs?identifiers=maintenance-9999").status == 404
    assert node.get(f"{at}/jobs?identifiers=other").status == 404
    assert node.get(f"{at}/jobs").status == node.get(f"{at}/tables").status == 400


def requests(table: str, job: str) -> list[tuple[str, str, object]]:
    """Return a request of each operation for a table, or for a job on it."""
    return [
        ("POST", f"{OPS}/strategy-jobs", {"identifiers": [table], "strategyName": "small"}),
        ("POST", f"{OPS}/strategy-jobs", {"identifiers": [table], "strategyName": "small", "dryRun": True}),
        ("POST", f"{OPS}/update-stats-jobs", {"identifiers": [table]}),
        ("POST", f"{OPS}/statistics", lines({**LINE, "identifier": table})),
        ("POST", f"{OPS}/metrics", lines({**LINE, "identifier": table})),
        ("POST", f"{OPS}/metrics/monitor", {"identifiers": [table], "actionTime": 1}),
        ("GET", f"{OPS}/metrics/tables?identifiers={table}", None),
        ("GET", f"{OPS}/metrics/jobs?identifiers={job}", None),
    ]


def test_operations_need_modify_privilege_on_every_table(node: DriverNode) -> None:
    """Each operation needs the privilege to modify every one of its tables. The privilege to read them, or to modify
    another table, is not enough.
    """
    add_policy(node, "small", COMPACTION, {}, on="main", kind="catalog")
    (job,) = strategy(node, "main.a.t").json()["results"]
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, "half", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, "half", "modify_table", kind="TABLE", on="main.a.u")
    grant(node, "writer", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    grant(node, "writer", "apply_policy", kind="METALAKE", on="lake")
    before = len(list_operations(node))
    for method, target, body in requests("main.a.t", str(job["jobId"])):
        statuses = [node.ask(method, target, body, user=user).status for user in ("stranger", "reader", "half")]
        if "/jobs?" in target:
            assert statuses == [403, 404, 404], target
        else:
            assert statuses == [403, 403, 403], target
    grant(node, "modifier", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    assert strategy(node, "main.a.t", user="modifier").status == 404, "who may not load a policy does not learn of it"
    both = {"identifiers": ["main.a.u", "main.a.t"]}
    assert node.post(f"{OPS}/update-stats-jobs", both, user="half").status == 403
    assert len(list_operations(node)) == before, "nothing was begun for one of the two tables"

    writer = [
        (target.partition("?")[0].removeprefix(OPS), node.ask(method, target, body, user="writer").status)
        for method, target, body in requests("main.a.t", str(job["jobId"]))
    ]
    assert {status for target, status in writer if target != "/metrics"} == {200}, writer


def test_invalid_requests_are_refused(node: DriverNode) -> None:
    """Invalid table names, missing tables, too many tables, and another metalake are refused."""
    add_policy(node, "small", COMPACTION, {}, on="main", kind="catalog")
    for tables, status in ((["t"], 400), (["main.a"], 400), ([], 400), (["main.a.none"], 404), (["none.a.t"], 404)):
        assert strategy(node, *tables).status == status, tables
    assert strategy(node, *[f"main.a.t{number}" for number in range(101)]).status == 400
    assert strategy(node, "main.a.t", limit=0).status == 400
    body = {"identifiers": ["main.a.t"], "strategyName": "small"}
    assert node.post(f"{OPS}/strategy-jobs?metalake=none", body).status in (403, 404)
    assert node.post(f"{OPS}/strategy-jobs?metalake=lake", body).status == 200


def test_compacted_table_passes_its_evaluation(node: DriverNode) -> None:
    """A table with fewer files after a rewrite passes its evaluation."""
    history_table = HistoryTable(node, "v")
    history_table.append(3)
    add_policy(node, "small", COMPACTION, {}, on="main", kind="catalog")
    node.post(
        f"{API}/lake/jobs/runs",
        {
            "jobTemplateName": REWRITE,
            "jobConf": {"catalog_name": "main", "table_identifier": "a.v"},
        },
    )
    (leased,) = FakeExecutor(node).lease()
    at_ms = FIRST_MS + DAY_MS
    updates = replacement(history_table, summary={"total-data-files": "1"}, snapshot={"timestamp-ms": at_ms})
    answer = commit_with(node, leased["token"], "v", updates)
    assert answer.status == 200, answer.body
    body = {"identifiers": ["main.a.v"], "actionTime": at_ms // 1000, "rangeSeconds": 100 * 86_400}
    (result,) = node.post(f"{OPS}/metrics/monitor", body).json()["results"]

    assert result["evaluation"] is True, result
