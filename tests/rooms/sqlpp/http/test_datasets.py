# SPDX-License-Identifier: Apache-2.0
"""Datasets over the query service: tables with a type and a key; indexes, external files, statements over data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from limnos.files import allow_everything
from limnos.model.errors import PermissionDenied, ServiceUnavailable, StateUnknown
from limnos.model.permits import upkeep_permit
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.definitions.dataset_tables import (
    DROP_UNFINISHED,
    UnfinishedDataset,
    unfinished_drop_run,
)
from limnos.rooms.sqlpp.services.execution import data_statements
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.services.request.task_context import TaskContext
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire as iceberg
from tests.rooms.sqlpp.http.wire import refusal, rows

SEED = (
    "create dataverse sales.east; create type sales.east.orderType as { oid: bigint };"
    " create dataset sales.east.orders(sales.east.orderType) primary key oid;"
    " create dataverse sales.west; create type sales.west.orderType as { oid: bigint };"
    " create dataset sales.west.orders(sales.west.orderType) primary key oid;"
)


class RecordingEngine:
    """A fake engine that records its jobs and returns fixed rows."""

    def __init__(self, *result_rows: bytes) -> None:
        self.given = result_rows
        self.jobs: list[EngineJob] = []

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Record the job."""
        self.jobs.append(job)
        for row in self.given:
            yield row

    async def cancel(self, _job_id: str) -> None:
        """No-op: no job runs."""

    def close(self) -> None:
        """No-op: the fake holds no resources."""


@pytest.fixture
def recording_engine(node: DriverNode) -> RecordingEngine:
    """A fake engine in a node with the datasets of the seed."""
    rows(node, SEED)
    engine = RecordingEngine(b'{"oid":100}', b'{"oid":101}')
    ENGINE.put(node.built.services, engine)
    return engine


def test_a_dataset_is_an_iceberg_table(node: DriverNode) -> None:
    """A dataset is an Iceberg table of the same name with identifier fields and a column for undeclared fields."""
    rows(node, SEED)

    metadata = node.get(iceberg.table_path("sales", "east", "orders")).json()["metadata"]
    (schema,) = metadata["schemas"]
    assert [(field["name"], field["required"]) for field in schema["fields"]] == [("oid", True), ("_open", False)]
    assert schema["identifier-field-ids"] == [1]
    datasets = rows(
        node, "select value d from Metadata.`Dataset` d where d.DatasetName = 'orders' order by d.DataverseName"
    )
    assert [each["DataverseName"] for each in datasets] == ["sales.east", "sales.west"]
    groups = (
        "select value g.NodeNames from Metadata.`Dataset` d, Metadata.`Nodegroup` g where d.GroupName = g.GroupName"
    )
    joined = rows(node, f"{groups} and d.DatasetName = 'orders'")
    assert joined == [["limnos"]] * 2
    assert (datasets[0]["DatatypeDataverseName"], datasets[0]["DatatypeName"]) == ("sales.east", "orderType")
    assert datasets[0]["InternalDetails"]["PrimaryKey"] == [["oid"]]


def test_open_fields_can_be_stored_in_a_variant_column(recording_engine: RecordingEngine, node: DriverNode) -> None:
    """A dataset with a variant column for open fields is a table of format version 3, and the engine gets the column's
    type.
    """
    rows(node, "create dataset sales.east.loose(sales.east.orderType) primary key oid with {'open-part': 'variant'}")
    rows(node, "insert into sales.east.loose ({'oid': 1})")

    metadata = node.get(iceberg.table_path("sales", "east", "loose")).json()["metadata"]
    assert metadata["format-version"] == 3
    assert [(field["name"], field["type"]) for field in metadata["schemas"][0]["fields"]] == [
        ("oid", "long"),
        ("_open", "variant"),
    ]
    (job,) = recording_engine.jobs
    assert job.target is not None
    assert job.target.variant


def test_type_used_by_a_dataset_cannot_be_dropped(node: DriverNode) -> None:
    """A type that a dataset uses cannot be dropped; dropping the dataset does not drop the type."""
    rows(node, SEED)

    assert refusal(node, "drop type sales.east.orderType")[1].startswith(
        "ASX1148: Cannot drop type sales.east.orderType being used by dataset sales.east.orders"
    )
    rows(
        node,
        "drop dataset sales.east.orders; drop type sales.east.orderType; drop dataverse sales.east; drop dataverse"
        " sales.west",
    )
    assert node.get(iceberg.SPACES).json()["namespaces"] == []


@pytest.mark.parametrize(
    "statement, message",
    [
        ("create dataset d(t) primary key nothing", "ASX1014: "),
        ("create dataset d(t) primary key name", "ASX1021: "),
        ("create dataset d(t) primary key id autogenerated", "ASX"),
        (
            "create dataset d(no_such) primary key id",
            "ASX1082: Cannot find datatype with name no_such (in line 1, at column 18)",
        ),
        ("create dataset no.d(t) primary key id", "ASX1063: "),
        ("create dataset d0(t) primary key id", "ASX1072: A dataset with name d0 already exists in dataverse Default"),
        (
            "create dataset d(t) primary key id with {'open-part': 'xml'}",
            "ASX1079: Compilation error: Invalid operation - open-part is json, the default, or variant",
        ),
        ("create dataset Metadata.d(t) primary key id", "ASX1079: "),
        ("create index i on d0(name)", "ASX1084: An index with this name i already exists"),
        ("create index i on no_such(name)", "ASX1050: Cannot find dataset with name no_such in dataverse Default"),
        ("drop index d0.j", "ASX1083: Cannot find index with name j in dataverse Default"),
        (
            "insert into no_such ({})",
            "ASX1050: Cannot find dataset with name no_such in dataverse Default (in line 1, at column 13)",
        ),
        ("insert into no.such ({})", "ASX1063: Cannot find dataverse with name no"),
        (
            "insert into Metadata.`Dataset` ({})",
            "ASX1079: Compilation error: Invalid operation - Insert operation is not permitted in dataverse Metadata",
        ),
        (
            "create external dataset e(t) using localfs (('path'='localhost:///etc/passwd'), ('format'='csv'))",
            "ASX1079: ",
        ),
        ("create external dataset e(t) using hdfs (('path'='x'), ('format'='csv'))", "ASX1079: "),
        ("load dataset d0 using localfs (('path'='/etc/passwd'), ('format'='csv'))", "ASX1079: "),
        (
            (
                "create external dataset e(t) using localfs (('path'='localhost:///x'), ('format'='csv'),"
                " ('fs.file.impl'='x'))"
            ),
            "ASX1079: Compilation error: Invalid operation - Option fs.file.impl names a class",
        ),
        (
            "load dataset d0 using localfs (('path'='localhost:///x'), ('format'='csv'), ('parser-factory'='x'))",
            "ASX1079: Compilation error: Invalid operation - Option parser-factory names a class",
        ),
        ("select * from d0", "ASX3109: A statement over data (query) needs an engine"),
        ("select * from d0, Metadata.`Dataset` d", "ASX1079: Compilation error: A query over data can't read"),
    ],
)
def test_invalid_definition_is_refused_with_its_code(dataset_node: DriverNode, statement: str, message: str) -> None:
    """Each invalid definition is refused with its code, and nothing is changed."""
    status, error_message = refusal(dataset_node, statement)

    assert error_message.startswith(message), error_message
    assert status == (503 if "engine" in error_message else 400)


@pytest.fixture(scope="module")
def dataset_node(shared: DriverNode) -> DriverNode:
    """A node with a dataset."""
    rows(
        shared,
        "create type t as { id: int, name: string? }; create dataset d0(t) primary key id; create index i on d0(name)",
    )
    return shared


def test_indexes_are_listed_and_can_be_dropped(node: DriverNode) -> None:
    """The metadata lists primary and secondary indexes, and each index can be dropped separately."""
    rows(
        node,
        "create type b as { c: int }; create dataset d(id uuid not unknown, a string, b b) primary key id"
        " autogenerated; create index x on d(a, b.c); create index y on d(a) type keyword; create primary index on d;"
        " create index x if not exists on d(a)",
    )

    indexes = rows(
        node,
        "select value [i.IndexName, i.IndexStructure, i.SearchKey, i.IsPrimary] from Metadata.`Index` i order by"
        " i.IndexName",
    )
    assert indexes == [
        ["d", "BTREE", [["id"]], True],
        ["primary_idx_d", "BTREE", [], False],
        ["x", "BTREE", [["a"], ["b", "c"]], False],
        ["y", "KEYWORD", [["a"]], False],
    ]
    rows(node, "drop index d.x; drop index Default.d.y; drop index d.x if exists")
    assert rows(node, "select value i.IndexName from Metadata.`Index` i where not i.IsPrimary") == ["primary_idx_d"]


def test_concurrent_index_changes_are_all_stored(node: DriverNode) -> None:
    """Indexes that several statements create and drop at once are all created and dropped, since each statement
    replaces the whole record of the dataset.
    """
    rows(node, "create type t as { id: int }; create dataset d(t) primary key id; create index old on d(o: int)")
    statements = [*(f"create index i{at} on d(f{at}: int)" for at in range(6)), "drop index d.old"]

    async def run_all() -> list[DriverAnswer]:
        return await asyncio.gather(
            *(
                node.answer("POST", "/query/service", {"statement": each}, content_type="application/json")
                for each in statements
            )
        )

    answers = node.runner.run(run_all())
    names = rows(
        node, "select value i.IndexName from Metadata.`Index` i where i.DatasetName = 'd' order by i.IndexName"
    )

    assert [each.json()["status"] for each in answers] == ["success"] * len(statements)
    assert names == ["d", *(f"i{at}" for at in range(6))]


def test_explain_names_the_index_used(node: DriverNode) -> None:
    """EXPLAIN names the index that a query uses. Indexes of other types and dropped indexes are not used."""
    rows(
        node,
        "create type t as { id: int, a: string?, l: [string]? }; create dataset d(t) primary key id; create index x on"
        " d(a); create index y on d(id) type ngram(2); create index z on d(unnest l: string) exclude unknown key",
    )
    text = "explain select value d.id from d where d.a between 'b' and 'c'"

    (explanation,) = rows(node, text)
    (other,) = rows(node, "explain select value d.id from d where d.id > 5")
    rows(node, "drop index d.x")
    (after,) = rows(node, text)

    assert explanation["index"] == ["Default.d: x"]
    assert "index" not in other
    assert "index" not in after
    assert explanation["plan"] == after["plan"]


def test_tables_of_other_clients_are_datasets_without_a_key(node: DriverNode) -> None:
    """Tables of other clients are datasets without a key and cannot have indexes."""
    iceberg.make_table(node, "a", "t")

    (dataset,) = rows(node, "select value d from Metadata.`Dataset` d where d.DataverseName = 'a'")
    assert (dataset["DatasetType"], dataset["DatatypeName"], dataset["InternalDetails"]["PrimaryKey"]) == (
        "INTERNAL",
        "AnyObject",
        [],
    )
    assert refusal(node, "create index i on a.t(x)")[1].startswith("ASX1079: ")


def test_query_job_has_plan_datasets_and_caller_token(node: DriverNode, recording_engine: RecordingEngine) -> None:
    """A query's job has the plan, the datasets read, and a token of the caller that ends with the statement."""
    result_rows = rows(node, "use sales.east; select value o from orders o, sales.west.orders w where o.oid = w.oid")

    assert result_rows == [{"oid": 100}, {"oid": 101}]
    (job,) = recording_engine.jobs
    assert job.kind == "query"
    assert [ref.path for ref in job.reads] == [("main", "sales", "east", "orders"), ("main", "sales", "west", "orders")]
    assert (job.reads[0].type, job.reads[0].key) == ("OPEN { oid: bigint }", (("oid",),))
    assert b"orders" in job.plan
    assert node.get(f"{API}/lake", user=None, authorization=f"Bearer {job.credential}").status == 401


def test_field_order_setting_is_sent_to_the_engine(node: DriverNode, recording_engine: RecordingEngine) -> None:
    """The engine gets the setting of the field order, because it knows the types of datasets. Without it, UPDATE puts
    changed fields first.
    """
    for option in ("", "set `compiler.ordered.fields` 'false'; "):
        rows(node, f"use sales.east; {option} select o.x, o.oid from orders o")
        rows(node, f"use sales.east; {option} update orders set x = 1 where oid = 100")

    assert [job.ordered_fields for job in recording_engine.jobs] == [True, True, False, False]
    assert [b"object_concat" in job.plan for job in recording_engine.jobs] == [False, False, False, True]


def test_writing_statement_job_has_its_target(node: DriverNode, recording_engine: RecordingEngine) -> None:
    """A writing statement's job has its target; the results are those of RETURNING."""
    assert rows(node, "use sales.east; insert into orders ({'oid': 100})") == []
    assert rows(node, "upsert into sales.east.orders as o ([{'oid': 1}]) returning o.oid + oid") == [
        {"oid": 100},
        {"oid": 101},
    ]
    rows(node, "use sales.east; delete from orders o where o.oid > 5; delete from orders where oid = 1")
    rows(node, "create synonym mine for sales.east.orders; insert into mine (select value o from sales.west.orders o)")

    kinds = [(job.kind, None if job.target is None else job.target.path) for job in recording_engine.jobs]
    target = ("main", "sales", "east", "orders")
    assert kinds == [(kind, target) for kind in ("insert", "upsert", "delete", "delete", "insert")]
    assert recording_engine.jobs[1].returning is not None
    assert [ref.path[2] for ref in recording_engine.jobs[4].reads] == ["west"]


def test_visible_metadata_is_sent_to_the_engine_as_constants(
    node: DriverNode, recording_engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata objects that the caller may see are sent to the engine as constants; too many are refused."""
    monkeypatch.setattr(data_statements, "ROWS_AT_ONCE", 1)
    insert = (
        "insert into sales.east.orders (select value {'oid': 1, 'of': d.DatasetName} from Metadata.`Dataset` d"
        " where d.DataverseName in ['sales.east', 'sales.west'])"
    )
    assert rows(node, insert) == []
    (job,) = recording_engine.jobs
    assert (job.kind, job.reads, job.plan.count(b"orders")) == ("insert", (), 2)
    monkeypatch.setattr(data_statements, "METADATA_ROWS_MAX", 1)
    status, text = refusal(node, insert)

    assert (status, "at most 1 objects of the metadata" in text) == (400, True)
    assert len(recording_engine.jobs) == 1


FILLED = (
    "create dataset sales.east.copies(sales.east.orderType) primary key oid as select value o from sales.east.orders o"
)


class FailingEngine(RecordingEngine):
    """A fake engine whose jobs all fail."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Fail before the first row."""
        self.jobs.append(job)
        raise self.error
        yield b""


@pytest.mark.parametrize(
    "error, status",
    [
        (SqlppError(1079, "a type does not fit"), 400),
        (PermissionDenied("SELECT_TABLE is missing"), 403),
        (ServiceUnavailable("the engine is away"), 503),
        (StateUnknown("the commit had no answer"), 500),
    ],
    ids=["query", "right", "engine", "unknown"],
)
def test_failed_create_as_query_creates_no_dataset(node: DriverNode, error: Exception, status: int) -> None:
    """If the query of CREATE DATASET … AS fails, no dataset is left. If the outcome of the commit is unknown, the
    unfinished dataset stays until its task drops it.
    """
    rows(node, SEED)
    engine = FailingEngine(error)
    ENGINE.put(node.built.services, engine)

    assert refusal(node, FILLED)[0] == status

    assert len(engine.jobs) == 1
    (job,) = engine.jobs
    assert job.target is not None
    unfinished = job.target.path[-1]
    assert unfinished.startswith("copies_unfinished_")
    assert names(node, "copies%") == ([unfinished] if status == 500 else [])


def names(node: DriverNode, pattern: str) -> list[object]:
    """The names of datasets."""
    text = (
        f"select value d.DatasetName from Metadata.`Dataset` d where d.DatasetName like '{pattern}' order by"
        " d.DatasetName"
    )
    return rows(node, text)


def unfinished_datasets(node: DriverNode) -> list[UnfinishedDataset]:
    """Return the datasets that tasks have to drop."""
    task_rows = node.runner.run(
        node.built.services.store.submit(upkeep_permit("test"), lambda tx: tx.tasks.of_kind(DROP_UNFINISHED))
    )
    return [msgspec.json.decode(text, type=UnfinishedDataset) for _, text, _ in task_rows]


def test_create_as_fills_a_temporary_name_then_renames(node: DriverNode, recording_engine: RecordingEngine) -> None:
    """The engine fills a dataset under a temporary name, which is then renamed, and no task is left. If the dataset
    exists, IF NOT EXISTS does not call the engine.
    """
    rows(node, FILLED)

    (job,) = recording_engine.jobs
    assert job.target is not None
    assert job.target.path[-1].startswith("copies_unfinished_")
    assert names(node, "copies%") == ["copies"]
    assert unfinished_datasets(node) == []
    assert refusal(node, FILLED)[0] == 400
    rows(node, FILLED.replace(") primary", ") if not exists primary"))
    assert len(recording_engine.jobs) == 1


def test_an_unfinished_dataset_is_dropped_by_its_task(node: DriverNode) -> None:
    """The task of an unfinished dataset, as a stopped server leaves it, drops the dataset."""
    rows(node, SEED)
    ENGINE.put(node.built.services, FailingEngine(StateUnknown("the commit had no answer")))
    assert refusal(node, FILLED)[0] == 500
    assert len(names(node, "copies%")) == 1
    (dataset,) = unfinished_datasets(node)
    services = node.built.services
    work = TaskContext(
        1,
        store=services.store,
        permit=upkeep_permit("limnos"),
        allowed=allow_everything(),
        warehouse="file:/w",
        lease_ms=60_000,
        services=services,
    )

    outcome = node.runner.run(unfinished_drop_run(work, dataset))

    assert outcome is not None
    assert outcome.startswith("dropped copies_unfinished_")
    assert names(node, "copies%") == []


def test_files_are_read_only_below_allowed_roots(
    node: DriverNode, recording_engine: RecordingEngine, tmp_path: Path
) -> None:
    """LOAD and external datasets read files only below an allowed root. Links and `..` cannot lead outside."""
    defaults = node.built.services.defaults
    node.built.services.defaults = defaults._replace(file_roots=(f"file://{tmp_path}",))
    (tmp_path / "in").mkdir(exist_ok=True)

    def load(path: str) -> str:
        return f"load dataset sales.east.orders using localfs (('path'='{path}'), ('format'='json'))"

    rows(node, load(f"localhost://{tmp_path}/in/orders.json"))
    (job,) = recording_engine.jobs
    assert (job.kind, job.source.adapter) == ("load", "localfs")  # type: ignore[union-attr]
    assert dict(job.source.options)["path"] == f"file://{tmp_path}/in/orders.json"  # type: ignore[union-attr]
    files = f"from localfs path ('{tmp_path}/in/orders.csv') with {{'format': 'csv'}}"
    rows(node, f"copy sales.east.orders (oid bigint not unknown, of sales.east.orderType) {files}")
    assert recording_engine.jobs[-1].source.type == "OPEN { oid: bigint, of: OPEN { oid: bigint }? }"  # type: ignore[union-attr]
    assert "ASX1082" in refusal(node, f"copy sales.east.orders as (a wrongType) {files}")[1]
    assert "object type" in refusal(node, f"copy sales.east.orders as (string) {files}")[1]
    for path in (
        f"{tmp_path}/../x",
        f"localhost://{tmp_path}/in/../../x",
        "/etc/passwd",
        f"elsewhere://{tmp_path}/x",
        "s3://bucket/x",
        str(node.data / "limnos.db"),
        f"{tmp_path}/in/a,/etc/passwd",
    ):
        assert refusal(node, load(path))[0] == 400, path
    rows(
        node,
        f"create external dataset sales.east.files(orderType) using localfs (('path'='localhost://{tmp_path}/in'),"
        " ('format'='json'))",
    )
    dataset_types = rows(node, "select value d.DatasetType from Metadata.`Dataset` d where d.DatasetName = 'files'")
    assert dataset_types == ["EXTERNAL"]
    rows(node, "select * from sales.east.files f where f.oid = 1")
    (ref,) = recording_engine.jobs[-1].reads
    assert ref.files is not None
    assert dict(ref.files.options) == {"path": f"file://{tmp_path}/in", "format": "json"}
    assert "oid: bigint" in ref.type
    (plan,) = rows(node, "explain select value f.oid from sales.east.files f where f.oid = 1")
    assert "the dataset files" in plan["because"]
    grant(node, "other", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "doorless", "use_catalog select_table", kind="CATALOG", on="main")
    assert refusal(node, "select * from sales.east.files", user="other")[0] == 403
    assert refusal(node, "select * from sales.east.files", user="doorless")[0] == 403
    assert refusal(node, "insert into sales.east.files ({'oid': 1})")[0] == 400
    rows(node, "drop dataset sales.east.files")


def test_privileges_are_checked_before_the_engine_runs(node: DriverNode, recording_engine: RecordingEngine) -> None:
    """Reading needs SELECT_TABLE, writing MODIFY_TABLE, creating CREATE_TABLE, dropping ownership; all are checked
    before the engine runs.
    """
    grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, "writer", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    grant(node, "maker", "use_catalog use_schema create_table", kind="CATALOG", on="main")
    query, insert = "select * from sales.east.orders o", "insert into sales.east.orders ({'oid': 1})"
    make, drop = "create dataset sales.east.d2(sales.east.orderType) primary key oid", "drop dataset sales.east.orders"

    rows(node, query, user="reader")
    for statement in (insert, make, drop, "create index i on sales.east.orders(x: int)"):
        assert refusal(node, statement, user="reader")[0] == 403, statement
    rows(node, f"{insert}; create index i on sales.east.orders(x: int)", user="writer")
    for statement in (make, drop):
        assert refusal(node, statement, user="writer")[0] == 403, statement
    rows(node, make, user="maker")
    assert refusal(node, drop, user="maker")[0] == 403
    assert [job.kind for job in recording_engine.jobs] == ["query", "insert"]


def test_connector_route_returns_key_type_and_location(node: DriverNode) -> None:
    """The connector route returns key, type and location of a dataset; a missing name or dataset is 400."""
    rows(node, SEED)

    description = node.get("/connector?dataverseName=sales&dataverseName=east&datasetName=orders").json()
    assert description["keys"] == "oid"
    assert (description["type"]["name"], description["type"]["open"], description["type"]["fields"]) == (
        "orderType",
        True,
        [{"oid": "bigint"}],
    )
    assert description["splits"][0]["path"].startswith("file://")
    for query in (
        "",
        "?dataverseName=sales",
        "?dataverseName=sales.east&datasetName=orders",
        "?dataverseName=&datasetName=x",
    ):
        assert node.get(f"/connector{query}").status == 400, query
