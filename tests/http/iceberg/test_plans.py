# SPDX-License-Identifier: Apache-2.0
"""Scan plans over Iceberg REST: answers, privileges and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from limnos.services.iceberg.running_plans import RUNNING_PLANS
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable, paths_of
from tests.http.iceberg.wire import ROOT, drop_for_good, error_of, table_path
from tests.iceberg_manifests import data_file, entry, listed, manifest


def long(value: int) -> bytes:
    """Encode a bound of a column of longs."""
    return value.to_bytes(8, "little", signed=True)


def ranged(path: str, low: int, high: int, **more: object) -> dict[str, object]:
    """Return a data file whose column 1 lies between two values."""
    counts = {"value_counts": {1: 10, 2: 10}, "null_value_counts": {1: 0, 2: 10}}
    return data_file(path, lower_bounds={1: long(low)}, upper_bounds={1: long(high)}, **counts, **more)


def test_plan_has_matching_files_and_residual_filter(lake: DriverNode) -> None:
    """A plan has the files of the current snapshot that may contain matching rows, complete, with the residual
    filter.
    """
    table = WrittenTable(lake)
    entries = [entry(ranged(f"{table.location}/data/{n}.parquet", n * 10, n * 10 + 9)) for n in range(3)]
    table.commit([table.manifest("m.avro", entries)])

    every, some = table.plan(), table.plan(filter={"type": "gt", "term": "id", "value": 14}, stats_fields=["id"])

    assert [each["residual-filter"] for each in every.json()["file-scan-tasks"]] == [True] * 3
    assert every.json()["file-scan-tasks"][0]["data-file"] == {
        "spec-id": 0,
        "content": "data",
        "file-path": f"{table.location}/data/0.parquet",
        "file-format": "parquet",
        "partition": [],
        "file-size-in-bytes": 1_000,
        "record-count": 10,
    }
    task = some.json()["file-scan-tasks"][0]
    assert len(some.json()["file-scan-tasks"]) == 2
    assert task["residual-filter"] == {"type": "gt", "term": "id", "value": 14}
    assert task["data-file"]["lower-bounds"] == {"keys": [1], "values": [long(10).hex().upper()]}
    assert (every.json()["status"], "delete-files" in every.json()) == ("completed", False)


def test_plan_of_an_empty_table_has_no_files(lake: DriverNode) -> None:
    """A plan of an empty table has no files, but columns of the filter must exist."""
    table = WrittenTable(lake)

    planned, not_there = table.plan(), table.plan(filter={"type": "is-null", "term": "nowhere"})

    assert (planned.status, planned.json()["file-scan-tasks"]) == (200, [])
    assert error_of(not_there)[:2] == (400, "IllegalArgumentException")


def test_plan_needs_the_privilege_to_read_rows(lake: DriverNode) -> None:
    """A user who may write the table but not read it may not plan a scan, because a plan reveals rows."""
    table = WrittenTable(lake)
    grant(lake, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(lake, "writer", "use_catalog use_schema modify_table", kind="CATALOG", on="main")

    assert table.plan(user="reader").status == 200
    assert error_of(table.plan(user="writer"))[:2] == (403, "ForbiddenException")


def many(node: DriverNode, *, manifests: int = 3) -> WrittenTable:
    """A table of some manifests with two files each."""
    table = WrittenTable(node)
    added_manifests = [
        table.manifest(f"m{n}.avro", [entry(data_file(f"{table.location}/data/{n}{each}.parquet")) for each in "ab"])
        for n in range(manifests)
    ]
    table.commit(added_manifests)
    return table


def steer(node: DriverNode, **settings: object) -> None:
    """Change a node's settings of planning."""
    node.built.services.defaults = node.built.services.defaults._replace(**settings)  # type: ignore[arg-type]


def test_further_files_are_fetched_with_plan_tasks(lake: DriverNode) -> None:
    """Files beyond the first answer are fetched with plan tasks, and each task returns its own files. A repeated
    request for the plan gets the same answer.
    """
    table = many(lake)
    steer(lake, scan_files_max=3)

    planned = table.plan().json()
    again = lake.get(f"{table.path}/plan/{planned['plan-id']}").json()
    fetched = [lake.post(f"{table.path}/tasks", {"plan-task": each}) for each in planned["plan-tasks"]]

    assert (planned["file-scan-tasks"], len(planned["plan-tasks"])) == ([], 3)
    assert again == {key: value for key, value in planned.items() if key != "plan-id"}
    assert [paths_of(each) for each in fetched] == [[f"{n}a.parquet", f"{n}b.parquet"] for n in range(3)]


def test_submitted_plan_completes_at_a_later_request(lake: DriverNode) -> None:
    """With a wait of zero, the plan is answered as submitted. It is complete when the client requests it again."""
    table = many(lake)
    steer(lake, scan_wait_s=0.0)

    planned = table.plan().json()
    steer(lake, scan_wait_s=30.0)
    fetched_plan = lake.get(f"{table.path}/plan/{planned['plan-id']}")

    assert (planned.keys(), planned["status"]) == ({"plan-id", "status"}, "submitted")
    assert (fetched_plan.json()["status"], len(paths_of(fetched_plan))) == ("completed", 6)


def test_plan_of_a_stopped_node_is_computed_by_another(lake: DriverNode) -> None:
    """If the node of a plan stops, the next node that gets a request for the plan computes it."""
    table = many(lake)
    steer(lake, scan_wait_s=0.0)
    planned = table.plan().json()

    lake.runner.run(_forget(lake))
    steer(lake, scan_wait_s=30.0)

    assert len(paths_of(lake.get(f"{table.path}/plan/{planned['plan-id']}"))) == 6


async def _forget(node: DriverNode) -> None:
    RUNNING_PLANS.of(node.built.services).close()


def test_completed_plan_can_be_cancelled(lake: DriverNode) -> None:
    """Cancelling a plan that was complete in its first answer succeeds; users without rights are refused."""
    table = many(lake)
    plan_id = table.plan().json()["plan-id"]

    assert [lake.delete(f"{table.path}/plan/{plan_id}").status for _ in range(2)] == [204, 204]
    assert lake.get(f"{table.path}/plan/{plan_id}").status == 404
    assert lake.delete(f"{table.path}/plan/{'0' * 32}").status == 404
    assert lake.delete(f"{table.path}/plan/{plan_id}", user="stranger").status in (403, 404)


def test_cancelled_plan_ends_its_computation_and_tasks(lake: DriverNode) -> None:
    """A cancelled plan has this status, its tasks are 404, and its computation has ended."""
    table = many(lake)
    steer(lake, scan_files_max=3)
    parted = table.plan().json()
    steer(lake, scan_wait_s=0.0)
    submitted = table.plan().json()

    answers = [lake.delete(f"{table.path}/plan/{each['plan-id']}").status for each in (parted, submitted)]

    assert answers == [204, 204]
    assert len(RUNNING_PLANS.of(lake.built.services)) == 0
    for each in (parted, submitted):
        assert lake.get(f"{table.path}/plan/{each['plan-id']}").json() == {"status": "cancelled"}
    assert error_of(lake.post(f"{table.path}/tasks", {"plan-task": parted["plan-tasks"][0]}))[:2] == NO_TASK


NO_PLAN, NO_TASK = (404, "NoSuchPlanIdException"), (404, "NoSuchPlanTaskException")


def test_foreign_forged_and_expired_plans_return_404(lake: DriverNode) -> None:
    """Plans of other users or tables, and forged or expired plans, are 404."""
    table, other = many(lake), WrittenTable(lake, "other")
    steer(lake, scan_files_max=3)
    grant(lake, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    planned = table.plan().json()
    plan_id, task = planned["plan-id"], planned["plan-tasks"][0]
    made_up = [
        "",
        "x",
        "0" * 32,
        f"{plan_id}-",
        f"{plan_id}-3",
        f"{plan_id}--1",
        f"{plan_id}-٣",
        f"{plan_id}-{'9' * 40}",
        task.upper(),
    ]

    answers = [
        lake.get(f"{table.path}/plan/{plan_id}", user="reader"),
        lake.get(f"{other.path}/plan/{plan_id}"),
        lake.get(f"{table.path}/plan/{'0' * 32}"),
        lake.delete(f"{table.path}/plan/x"),
    ]
    fetched = [lake.post(f"{table.path}/tasks", {"plan-task": each}) for each in made_up]
    fetched += [
        lake.post(f"{table.path}/tasks", {"plan-task": task}, user="reader"),
        lake.post(f"{other.path}/tasks", {"plan-task": task}),
    ]
    with at_ms(lake, 3_600_001):
        late = lake.post(f"{table.path}/tasks", {"plan-task": task})

    assert {error_of(each)[:2] for each in answers} == {NO_PLAN}
    assert {error_of(each)[:2] for each in (*fetched, late)} == {NO_TASK}
    assert lake.post(f"{table.path}/tasks", {"plan-task": task}).status == 200


@contextmanager
def at_ms(node: DriverNode, later_ms: int) -> Iterator[None]:
    """Advance a node's clock."""
    clock = node.built.services.store.time
    now = clock.now_ms
    clock.now_ms = lambda: now() + later_ms  # type: ignore[method-assign]
    yield
    clock.now_ms = now  # type: ignore[method-assign]


def test_plan_survives_rename_and_ends_at_revoke_or_drop(lake: DriverNode) -> None:
    """A plan stays valid after a rename of its table. It ends when the user loses the right, or when the table is
    dropped.
    """
    table = many(lake)
    steer(lake, scan_files_max=3)
    role = grant(lake, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    task = table.plan(user="reader").json()["plan-tasks"][0]
    body = {"plan-task": task}
    table.commit([])
    ends = {end: {"namespace": ["a"], "name": name} for end, name in (("source", "t"), ("destination", "u"))}

    lake.post(f"{ROOT}/tables/rename", ends)
    moved, missing = (
        lake.post(f"{table_path('a', 'u')}/tasks", body, user="reader"),
        lake.post(f"{table.path}/tasks", body, user="reader"),
    )
    lake.done("DELETE", f"{API}/lake/roles/{role}")
    revoked = lake.post(f"{table_path('a', 'u')}/tasks", body, user="reader")

    assert paths_of(moved) == ["0a.parquet", "0b.parquet"]
    assert error_of(missing)[:2] == (404, "NoSuchTableException")
    assert error_of(revoked)[:2] == (403, "ForbiddenException")


def test_recreated_table_has_no_old_plans(lake: DriverNode) -> None:
    """A later table of the same name has none of the plans."""
    table = many(lake)
    steer(lake, scan_files_max=3)
    body = {"plan-task": table.plan().json()["plan-tasks"][0]}

    drop_for_good(lake, table.path)
    WrittenTable(lake)

    assert error_of(lake.post(f"{table.path}/tasks", body))[:2] == NO_TASK


def test_missing_manifest_returns_404_and_damaged_500(lake: DriverNode) -> None:
    """A missing manifest is 404 with the error type for files, and a damaged one 500 with its name. A manifest outside
    of the table is not read.
    """
    missing, damaged, elsewhere, bomb = (
        WrittenTable(lake, name) for name in ("missing", "damaged", "elsewhere", "bomb")
    )
    good = manifest([entry(data_file("file:///x.parquet"))])
    missing.commit([listed(f"{missing.location}/metadata/gone.avro", good)])
    damaged.commit([listed(damaged.write("m.avro", good[:-40]), good)])
    elsewhere.commit([listed(damaged.write("good.avro", good), good)])
    bomb.write("snap-1.avro", b"Obj\x01" + b"\xff" * 100)
    wire.commit(
        lake,
        "a",
        "bomb",
        updates=[wire.snapshot(1, manifest_list=f"{bomb.location}/metadata/snap-1.avro"), wire.point(1)],
    )

    errors = [error_of(each.plan()) for each in (missing, damaged, elsewhere, bomb)]

    assert [each[:2] for each in errors] == [
        (404, "NotFoundException"),
        (500, "ServiceFailureException"),
        (406, "UnsupportedOperationException"),
        (500, "ServiceFailureException"),
    ]
    assert "m.avro" in errors[1][2]
    assert "files outside of the table's locations" in errors[2][2]
    assert "good.avro" not in errors[2][2]


def test_scan_may_select_metadata_columns(lake: DriverNode) -> None:
    """A scan may select columns such as `_file`, which engines read to change rows; its plan is that of all rows."""
    table = many(lake)

    chosen = table.plan(select=["id", "_file", "_pos", "_spec_id", "_partition", "_row_id"])

    assert chosen.status == 200, chosen.body
    assert len(chosen.json()["file-scan-tasks"]) == len(table.plan().json()["file-scan-tasks"])


def deep(levels: int) -> object:
    """Return a filter with this nesting depth."""
    expression: object = {"type": "is-null", "term": "city"}
    for _ in range(levels):
        expression = {"type": "not", "child": expression}
    return expression


BAD: dict[str, dict[str, object]] = {
    "unknown snapshot": {"snapshot_id": 99},
    "unknown column": {"filter": {"type": "eq", "term": "nowhere", "value": 1}},
    "unknown field": {"select": ["nowhere"]},
    "unknown field of statistics": {"stats_fields": ["nowhere"]},
    "another type": {"filter": {"type": "eq", "term": "id", "value": "x"}},
    "a truth": {"filter": {"type": "eq", "term": "id", "value": True}},
    "starts with": {"filter": {"type": "starts-with", "term": "id", "value": "1"}},
    "no number": {"filter": {"type": "is-nan", "term": "city"}},
    "a type that is no text": {"filter": {"type": [True], "term": "id"}},
    "no type": {"filter": {"term": "id"}},
    "no filter": {"filter": {"type": "sort", "term": "id"}},
    "a list": {"filter": []},
    "a text": {"filter": "id > 1"},
    "half a filter": {"filter": {"type": "and", "left": True}},
    "a nameless column": {"filter": {"type": "is-null", "child": {"type": "reference"}}},
    "unknown id": {"filter": {"type": "is-null", "child": {"type": "reference", "id": 77}}},
    "a case": {"filter": {"type": "is-null", "term": "ID"}},
    "too deep": {"filter": deep(400)},
    "both": {"snapshot_id": 1, "start_snapshot_id": 1, "end_snapshot_id": 1},
    "no end": {"start_snapshot_id": 1},
    "no start": {"end_snapshot_id": 1},
    "not an ancestor": {"start_snapshot_id": 100, "end_snapshot_id": 99},
    "fewer than no rows": {"min_rows_requested": -1},
    "a number of more bits": {"snapshot_id": 1 << 64},
    "values that are none": {"filter": {"type": "in", "term": "id", "values": 1}},
}


def test_invalid_request_is_refused(lake: DriverNode) -> None:
    """An invalid request is refused with its reason."""
    table = many(lake)

    errors = {what: error_of(table.plan(**arguments)) for what, arguments in BAD.items()}

    assert {what: each[:2] for what, each in errors.items() if each[:2] != (400, "IllegalArgumentException")} == {}


def test_deep_or_large_filter_is_answered(lake: DriverNode) -> None:
    """A filter of 10,000 levels, or with a megabyte of values, is answered without harm to the server."""
    table = many(lake)
    nested = b'{"filter":' + b'{"type":"not","child":' * 10_000 + b"true" + b"}" * 10_001
    values = {"type": "in", "term": "city", "values": [f"city {n:060}" for n in range(14_000)]}

    far, large = lake.ask("POST", f"{table.path}/plan", nested), table.plan(filter=values)

    assert far.status == 400
    assert (large.status, len(paths_of(large))) == (200, 6)
    assert table.plan().status == 200


def test_incremental_plan_has_only_appended_files(lake: DriverNode) -> None:
    """A plan between two snapshots has files that appends added, and no rewritten ones."""
    table = WrittenTable(lake)
    manifests = []
    for n in range(3):
        manifests.append(table.manifest(f"m{n}.avro", [entry(data_file(f"{table.location}/data/{n}.parquet"))]))
        table.commit(manifests)
    table.commit(
        [table.manifest("m3.avro", [entry(data_file(f"{table.location}/data/3.parquet"))])], operation="overwrite"
    )

    assert table.paths(start_snapshot_id=100, end_snapshot_id=300) == ["1.parquet", "2.parquet"]
    assert table.paths(start_snapshot_id=100, end_snapshot_id=400) == ["1.parquet", "2.parquet"]
    assert table.paths(start_snapshot_id=300, end_snapshot_id=300) == []
    assert table.paths(snapshot_id=200) == ["0.parquet", "1.parquet"]
    assert table.paths() == ["3.parquet"]


def test_min_rows_requested_limits_the_files(lake: DriverNode) -> None:
    """With `min-rows-requested`, only as many files are returned as certainly contain these rows."""
    table = many(lake)

    assert [len(table.paths(min_rows_requested=rows)) for rows in (1, 15, 1_000)] == [1, 2, 6]
