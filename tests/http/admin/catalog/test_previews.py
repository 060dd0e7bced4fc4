# SPDX-License-Identifier: Apache-2.0
"""Previews over HTTP: the rows that the caller may see, limits, killed processes, and the audit record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.app.preview_files import PREVIEW_FUNCTIONS
from limnos.app.restricted_files import RESTRICTED_FILE_FUNCTIONS
from limnos.formats.restricting import heads
from limnos.model.errors import ServiceUnavailable
from limnos.services.iceberg import previews
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.concurrency import previews as preview_limits
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER
from limnos.services.request.offloaded_work import InlineOffloader
from tests.http.driver import OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable
from tests.http.iceberg.test_restricted_plans import ROWS, SCHEMA
from tests.http.iceberg.test_restrictions import restrict
from tests.iceberg_manifests import data_file, entry

pytestmark = pytest.mark.slow

PREVIEW = f"{OWN}/metalakes/lake/catalogs/main/tables/preview"


class Workers(InlineOffloader):
    """Executes offloaded work in this process. With `dies` the next file reader ends like a killed process."""

    dies = False

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Execute offloaded work."""
        own = {**PREVIEW_FUNCTIONS, **RESTRICTED_FILE_FUNCTIONS}
        if name not in own:
            return await super().do(name, *parts, caller=caller)
        if self.dies:
            raise ServiceUnavailable("a process died")
        return own[name](*parts)


class PreviewedTable(WrittenTable):
    """A table of two files of ten rows; bob may read it."""

    def __init__(self, node: DriverNode) -> None:
        super().__init__(node, schema=SCHEMA)
        self.workers = Workers()
        SCAN_OFFLOADER.put(node.built.services, self.workers)
        PREVIEW_OFFLOADER.put(node.built.services, self.workers)
        self.commit([self.manifest(f"m{n}.avro", [entry(self.file(f"{n}.parquet"))]) for n in range(2)])
        grant(node, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="main")

    def file(self, name: str, rows: list[dict[str, Any]] = ROWS, **more: object) -> dict[str, object]:
        """Write a data file. Returns its manifest entry."""
        at = wire.local(self.write(name, b""))
        fields = [_field("id", pa.int64(), 1), _field("City", pa.string(), 2), _field("card", pa.string(), 3)]
        fields.append(_field("home", pa.struct([_field("street", pa.string(), 5)]), 4))
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), at, row_group_size=1_000)
        file_fields = {"file_size_in_bytes": at.stat().st_size, "record_count": len(rows), **more}
        return data_file(f"{self.location}/metadata/{name}", **file_fields)

    def ask(self, query: str = "", *, user: str = "bob") -> DriverAnswer:
        """Request a preview."""
        return self.node.get(f"{PREVIEW}?table=a.t{query}", user=user)

    def read(self, query: str = "", *, user: str = "bob") -> dict[str, Any]:
        """Read a preview."""
        answer = self.ask(query, user=user)
        assert answer.status == 200, answer.body
        return answer.json()  # type: ignore[no-any-return]


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


@pytest.fixture
def table(tmp_path: Path) -> Iterator[PreviewedTable]:
    """The table, over SQLite only: previews do not depend on the database."""
    with wire.node_over(tmp_path) as node:
        yield PreviewedTable(node)


def test_preview_has_columns_in_order_and_a_more_flag(table: PreviewedTable) -> None:
    """A preview has all columns in order, nested values, and whether more rows exist."""
    whole, part = table.read(), table.read("&rows=12&columns=card,id")

    assert [each["name"] for each in whole["columns"]] == ["id", "City", "card", "home"]
    assert whole["rows"] == [[row["id"], row["City"], row["card"], row["home"]] for row in [*ROWS, *ROWS]]
    assert (whole["complete"], whole["restricted"], whole["columns_left_out"]) == (True, False, 0)
    assert part["rows"] == [[row["card"], row["id"]] for row in [*ROWS, *ROWS[:2]]]
    assert (part["complete"], part["columns_left_out"], part["snapshot_id"]) == (False, 2, 100)


def test_restricted_reader_sees_filtered_and_masked_rows(table: PreviewedTable) -> None:
    """Filters apply to stored values, and masks to the shown values. A filter applies even if its column is not
    shown. The audit names the restriction.
    """
    assert restrict(table.node, filter="City = 'Rome'", masks={"card": "show-last-4"}).status == 200

    bob, admin = table.read("&columns=id,card"), table.read(user="admin")

    rome = [[row["id"], f"xxxxx{row['card'][-4:]}"] for row in ROWS if row["City"] == "Rome"]
    assert bob["rows"] == rome * 2
    assert [each["masked"] for each in bob["columns"]] == [False, True]
    assert bob["restricted"] is True
    assert len(admin["rows"]) == 20
    table.node.runner.run(table.node.built.services.audit.flush())
    details = [
        table.node.done("GET", f"{OWN}/metalakes/lake/audit?user={user}&action=preview-table")["lines"][0]["detail"]
        for user in ("bob", "admin")
    ]
    assert details == [
        f"preview of {len(bob['rows'])} rows of 2 columns, snapshot 100, restricted by eu",
        "preview of 20 rows of 4 columns, snapshot 100",
    ]


def test_deletes_are_applied(table: PreviewedTable) -> None:
    """Rows removed by position deletes and equality deletes are not shown."""
    name = f"{table.location}/metadata/0.parquet"
    at = wire.local(table.write("del.parquet", b""))
    pq.write_table(pa.table({"file_path": [name, name], "pos": pa.array([0, 2], pa.int64())}), at)
    deletes = data_file(f"{table.location}/metadata/del.parquet", content=1, file_size_in_bytes=at.stat().st_size)
    data = [table.manifest("again.avro", [entry(table.file("0.parquet"))])]
    table.commit([*data, table.manifest("deletes.avro", [entry(deletes)], deletes=True)])

    rows = table.read("&columns=id")["rows"]

    assert rows == [[number] for number in range(10) if number not in (0, 2)]


def test_only_the_beginning_of_a_large_file_is_read(table: PreviewedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first rows of a large file are decoded, within a small budget of bytes."""
    rows = [{"id": n, "City": "Oslo", "card": f"{n:032}", "home": None} for n in range(40_000)]
    table.commit([table.manifest("large.avro", [entry(table.file("large.parquet", rows))])])
    size = wire.local(f"{table.location}/metadata/large.parquet").stat().st_size
    monkeypatch.setattr(heads, "WHOLE_BYTES_MAX", 1)
    monkeypatch.setattr(previews, "READ_BYTES_MAX", size // 2)

    preview = table.read("&rows=5&columns=id")

    assert (preview["rows"], preview["complete"]) == ([[0], [1], [2], [3], [4]], False)


def test_budget_of_bytes_ends_a_preview(table: PreviewedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preview that would read too many bytes is refused with advice, without file names."""
    monkeypatch.setattr(previews, "READ_BYTES_MAX", 100)

    answer = table.ask()

    assert answer.status == 405
    assert b"with a client" in answer.body
    assert b"parquet" not in answer.body


def test_missing_file_is_named_to_unrestricted_readers(table: PreviewedTable) -> None:
    """A preview that meets a missing file names it, and the command that lists all of them; to restricted users it
    names no file, because file names may contain values.
    """
    location = f"{table.location}/metadata/0.parquet"
    wire.local(location).unlink()
    assert restrict(table.node, filter="City = 'Rome'").status == 200

    bob, admin = (table.ask(user=user) for user in ("bob", "admin"))

    assert (bob.status, admin.status) == (502, 502)
    assert f"A file of the table is missing, {location}: limnos table check lists all".encode() in admin.body
    assert b"A file of the table is missing: limnos table check names it" in bob.body
    assert b"parquet" not in bob.body


def test_killed_preview_process_is_503_with_advice(table: PreviewedTable) -> None:
    """If the preview process is killed, the answer is 503 with advice, and the next preview succeeds."""
    table.workers.dies = True
    answer = table.ask()
    table.workers.dies = False

    assert answer.status == 503
    assert b"request fewer columns or rows" in answer.body
    assert table.ask().status == 200


def test_deadline_ends_a_preview(table: PreviewedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preview that exceeds its deadline is cancelled and answered 503."""
    monkeypatch.setattr(preview_limits, "DEADLINE_S", 0.0)

    answer = table.ask()

    assert (answer.status, b"took longer" in answer.body) == (503, True)


@pytest.mark.parametrize(
    "query", ["&rows=0", "&rows=201", "&rows=x", "&columns=nowhere", "&snapshot=99", "&snapshot=x", "&table=a"]
)
def test_invalid_query_is_400(table: PreviewedTable, query: str) -> None:
    """Invalid limits, unknown columns and unknown snapshots are 400."""
    assert table.ask(query).status == 400


def test_preview_needs_the_right_to_read_rows(table: PreviewedTable) -> None:
    """A preview needs the right to read rows; the right to load the table is not enough."""
    grant(table.node, "eve", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    grant(table.node, "ann", "use_catalog use_schema create_table", kind="CATALOG", on="main")

    assert [table.ask(user=user).status for user in ("eve", "ann", "stranger")] == [403, 403, 403]
    assert b"SELECT_TABLE" in table.ask(user="eve").body  # she may load the table, and gets no rows


def test_each_preview_has_an_audit_record(table: PreviewedTable) -> None:
    """Each preview has an audit record with user, table, snapshot and number of rows, even if reads are not audited."""
    table.read("&rows=3")

    table.node.runner.run(table.node.built.services.audit.flush())
    (line,) = table.node.done("GET", f"{OWN}/metalakes/lake/audit?user=bob")["lines"]
    assert (line["operation"], line["outcome"], line["object"]["path"]) == ("preview-table", "done", "main.a.t")
    assert line["detail"] == "preview of 3 rows of 4 columns, snapshot 100"
    assert "select_table" in str(line).lower()
