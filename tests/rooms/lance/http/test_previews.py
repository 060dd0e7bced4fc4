# SPDX-License-Identifier: Apache-2.0
"""Previews of Lance tables: first rows with shortened vectors, limits, versions, needed privileges, and audit
records.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.rooms.lance.services.workers import WORKERS, NoLanceWorkers, WorkerTask
from limnos.services.request.concurrency import previews as preview_limits
from tests.arrow_rows import arrow
from tests.http.driver import OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.test_restrictions import restrict
from tests.http.iceberg.wire import node_over
from tests.rooms.lance.http.wire import declare, fill, make_space, table

pytestmark = pytest.mark.slow

PREVIEW = f"{OWN}/metalakes/lake/catalogs/lance/tables/preview"
ROWS = pa.table(
    {
        "id": pa.array(range(300), pa.int64()),
        "<script>": [f"row {number}" for number in range(300)],
        "vector": pa.array([[float(number)] * 8 for number in range(300)], pa.list_(pa.float32(), 8)),
    }
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a table of 300 rows, which bob may read; eve may change it, ann may create others."""
    with node_over(tmp_path_factory.mktemp("lance_previews")) as running:
        make_space(running, "lance", "s")
        fill(running, "lance", "s", "t", rows=ROWS)
        for user, privileges in (
            ("bob", "use_catalog use_schema select_table"),
            ("eve", "use_catalog use_schema modify_table"),
            ("ann", "use_catalog use_schema create_table"),
        ):
            grant(running, user, privileges, kind="CATALOG", on="lance")
        yield running


def ask(node: DriverNode, query: str = "", *, user: str = "bob", name: str = "s.t") -> DriverAnswer:
    """Request a preview."""
    return node.get(f"{PREVIEW}?table={name}{query}", user=user)


def read(node: DriverNode, query: str = "", *, user: str = "bob") -> dict[str, Any]:
    """Read a preview."""
    answer = ask(node, query, user=user)
    assert answer.status == 200, answer.body
    return answer.json()  # type: ignore[no-any-return]


def test_preview_returns_first_rows_with_types(node: DriverNode) -> None:
    """A preview has the columns in order with types, the first numbers of vectors, and whether more rows exist."""
    head = read(node, "&rows=2")

    assert [(each["name"], each["type"]) for each in head["columns"]] == [
        ("id", "int64"),
        ("<script>", "string"),
        ("vector", "vector of 8 float"),
    ]
    assert head["rows"] == [
        [0, "row 0", "[0, 0, 0, 0, … 8 numbers]"],
        [1, "row 1", "[1, 1, 1, 1, … 8 numbers]"],
    ]
    assert (head["complete"], head["restricted"], head["columns_left_out"], head["snapshot_id"]) == (False, False, 0, 1)


def test_requested_columns_and_row_limits_are_applied(node: DriverNode) -> None:
    """Columns are returned in the requested order. At most 200 rows are returned, and omitted columns are counted."""
    head = read(node, "&rows=200&columns=vector,id")

    assert [each["name"] for each in head["columns"]] == ["vector", "id"]
    assert [row[1] for row in head["rows"]] == list(range(200))
    assert (head["complete"], head["columns_left_out"]) == (False, 1)


def test_earlier_version_can_be_previewed(node: DriverNode) -> None:
    """A preview of an earlier version has its rows. An unknown version is 404."""
    fill(node, "lance", "s", "versions", rows=ROWS.slice(0, 1))
    node.done("POST", f"{table('lance', 's', 'versions')}/insert?mode=append", arrow(ROWS.slice(5, 1)))
    url = f"{PREVIEW}?table=s.versions&columns=id"

    first, now = node.done("GET", f"{url}&snapshot=1"), node.done("GET", url)

    assert (first["rows"], first["complete"]) == ([[0]], True)
    assert (now["rows"], now["snapshot_id"]) == ([[0], [5]], 2)
    for missing in (9, 0, 9_999_999_999_999_999_999):
        answer = node.get(f"{url}&snapshot={missing}")
        assert (answer.status, answer["error"]["message"]) == (404, f"The table has no version {missing}")  # type: ignore[index]


def test_preview_of_declared_table_reports_no_data(node: DriverNode) -> None:
    """A preview of a table without data says that the table has none."""
    declare(node, "lance", "s", "empty")

    answer = ask(node, name="s.empty", user="admin")

    assert (answer.status, b"no data yet" in answer.body) == (404, True)


@pytest.mark.parametrize("query", ["&rows=0", "&rows=201", "&rows=x", "&columns=nowhere", "&snapshot=x"])
def test_invalid_preview_parameters_return_400(node: DriverNode, query: str) -> None:
    """Invalid limits, unknown columns and versions are 400."""
    assert ask(node, query).status == 400


def test_preview_needs_the_privilege_to_read_rows(node: DriverNode) -> None:
    """A preview needs the privilege to read rows; the privilege to describe or change the table is not enough."""
    assert [ask(node, user=user).status for user in ("eve", "ann", "stranger")] == [403, 403, 403]
    assert b"SELECT_TABLE" in ask(node, user="eve").body
    assert node.post(f"{table('lance', 's', 't')}/describe", {}, user="eve").status == 200


@pytest.mark.parametrize("kind, name", [("TABLE", "lance.s.t"), ("SCHEMA", "lance.s")])
def test_lance_tables_have_no_restrictions(node: DriverNode, kind: str, name: str) -> None:
    """Lance tables cannot have restrictions, so previews apply none."""
    answer = restrict(node, kind=kind, on=name, masks={"id": "replace-with-null"})

    assert (answer.status, b"Lance tables" in answer.body) == (400, True)


def test_each_preview_has_its_line_in_the_audit(node: DriverNode) -> None:
    """Each preview has an audit record with user, table, version and number of rows."""
    read(node, "&rows=3&columns=id")

    node.runner.run(node.built.services.audit.flush())
    line = node.done("GET", f"{OWN}/metalakes/lake/audit?user=bob")["lines"][0]
    assert (line["operation"], line["outcome"], line["object"]["path"]) == ("preview-table", "done", "lance.s.t")
    assert line["detail"] == "preview of 3 rows of 1 columns, version 1"
    assert "select_table" in str(line).lower()


class DyingWorkers(NoLanceWorkers):
    """Fake workers that end while they read."""

    async def ask(self, worker_task: WorkerTask) -> bytes:
        """End like a killed process."""
        raise ServiceUnavailable("a process died")


def test_killed_worker_or_deadline_returns_503_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the worker process is killed or exceeds the deadline, the answer is 503 with advice, and the next preview
    succeeds.
    """
    with node_over(tmp_path) as node:
        make_space(node, "lance", "s")
        fill(node, "lance", "s", "t", rows=ROWS.slice(0, 1))
        workers = WORKERS.of(node.built.services)
        WORKERS.put(node.built.services, DyingWorkers())
        killed = ask(node, user="admin")
        WORKERS.put(node.built.services, workers)
        monkeypatch.setattr(preview_limits, "DEADLINE_S", 0.0)
        late = ask(node, user="admin")
        monkeypatch.setattr(preview_limits, "DEADLINE_S", 600.0)

        assert (killed.status, b"worker process has ended" in killed.body) == (503, True)
        assert (late.status, b"took longer" in late.body) == (503, True)
        assert ask(node, user="admin").status == 200
