# SPDX-License-Identifier: Apache-2.0
"""Attempts to reach files, Java classes, other tables and other callers through a statement: each is refused before an
engine gets it.

`tests/rooms/sqlpp/engine/test_confinement.py` tests the files that an engine could still open. Paths are in
`test_datasets.py`, handles of others in `test_result_handles.py` and in the cells of `refusals.py`, locks of others in
`test_dataset_commits.py`, links in `tests/rooms/sqlpp/engine/test_loading.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from tests.http.driver import DriverNode, grant
from tests.rooms.sqlpp.http.test_datasets import RecordingEngine
from tests.rooms.sqlpp.http.wire import ask, refusal, rows

SEED = (
    "create dataverse deep.east; create type deep.east.T as { id: bigint }; create dataset"
    " deep.east.orders(deep.east.T) primary key id; create dataverse `text`; create dataverse global_temp"
)


@pytest.fixture(scope="module")
def lake(shared: DriverNode) -> DriverNode:
    """A node with a dataset."""
    rows(shared, SEED)
    return shared


@pytest.fixture
def recording_engine(lake: DriverNode) -> Iterator[RecordingEngine]:
    """A fake engine that records its requests."""
    services = lake.built.services
    before, engine = ENGINE.of(services), RecordingEngine(b'{"id":1}')
    ENGINE.put(services, engine)
    yield engine
    ENGINE.put(services, before)


FILES = [
    "select value t from `text`.`{data}/admin.token` t",
    "select value t from text.`{data}/admin.token` as t",
    "select value t from `parquet`.`{data}/warehouse` t",
    "select value t from `json`.`file://{data}/limnos.db` t",
    "select value t from `binaryFile`.`/etc/passwd` t",
    "select value t from `csv`.`/etc/passwd` t",
    "select value t from `/etc/passwd` t",
    "select value t from read_files('/etc/passwd') t",
    "select value t from dataset('`{data}/admin.token`') t",
    "create view v as select value t from `text`.`{data}/admin.token` t",
    "insert into deep.east.orders (select value t from `text`.`{data}/admin.token` t)",
]
CLASSES = [
    "java_method('java.lang.Runtime', 'getRuntime')",
    "reflect('java.util.UUID', 'randomUUID')",
    "try_reflect('java.lang.System', 'getenv')",
    "select value java_method('java.lang.System', 'getenv', 'HOME') from deep.east.orders o",
    "select value input_file_name() from deep.east.orders o",
    "select value raise_error('x') from deep.east.orders o",
    "select value from_avro(o.id, '') from deep.east.orders o",
    "create function deep.east.f() {{ java_method('java.lang.System', 'exit', 0) }}",
]
TABLES = [
    "select value f from deep.east.orders.files f",
    "select value f from deep.east.orders.snapshots f",
    "select value f from deep.east.`orders.files` f",
    "select value f from deep.east.orders.`branch_main` f",
    "select value f from global_temp.x f",
    "select value f from `spark_catalog`.`default`.x f",
    "select value f from `main`.`deep`.`east`.orders f",
    "select value f from deep.east.`orders VERSION AS OF 1` f",
    "select value f from deep.east.`orders`` WHERE 1=1 -- ` f",
]
SESSIONS = [
    "set `spark.sql.catalog.main.token` 'x'; cache table x",
    "add jar '/tmp/x.jar'",
    "create temporary view v as select 1",
    "refresh table deep.east.orders",
    "select value t from range(1) t; show tables",
    "call main.system.remove_orphan_files(table => 'deep.east.orders')",
]


@pytest.mark.parametrize("statement", FILES + CLASSES + TABLES + SESSIONS)
def test_no_trick_reaches_an_engine(lake: DriverNode, recording_engine: RecordingEngine, statement: str) -> None:
    """Statements that name files, Java classes, other tables or sessions are refused with an error code, and no engine
    gets a job.
    """
    status, message = refusal(lake, statement.format(data=lake.data))

    assert status == 400, message
    assert message.startswith("ASX"), message
    assert recording_engine.jobs == []


def test_text_reaches_the_engine_only_as_names_and_values(lake: DriverNode, recording_engine: RecordingEngine) -> None:
    """Text in other languages reaches the engine only as a name or value in the plan, never as part of a query."""
    evil = "'); DROP TABLE main.deep.east.orders; --"

    rows(lake, "select value o.`a``b` from deep.east.orders o where o.x = $x and o.y = $x", **{"$x": evil})

    (job,) = recording_engine.jobs
    assert [ref.path for ref in job.reads] == [("main", "deep", "east", "orders")]
    assert evil.encode() in job.plan  # a literal of the plan, which is msgpack


def test_the_credential_ends_with_the_statement(lake: DriverNode, recording_engine: RecordingEngine) -> None:
    """The engine's token belongs to the caller, is invalid after the statement, and appears in no answer."""
    grant(lake, "reader", "use_catalog use_schema select_table", kind="catalog", on="main")

    answer = ask(lake, "select value o from deep.east.orders o", user="reader")

    (job,) = recording_engine.jobs
    assert answer.status == 200
    assert job.credential not in answer.body.decode()
    late = lake.ask("GET", "/api/limnos/v1/whoami", user=None, authorization=f"Bearer {job.credential}")
    assert late.status == 401


def test_huge_literal_does_not_stop_the_service(lake: DriverNode, recording_engine: RecordingEngine) -> None:
    """A statement with a literal of 900,000 characters is accepted or refused, and the next statement is answered."""
    answer = ask(lake, f"select value '{'x' * 900_000}' from deep.east.orders o")

    assert answer.status in (200, 400)
    assert rows(lake, "select value 1") == [1]
    assert len(recording_engine.jobs) <= 1


def test_unauthorized_statement_is_refused_as_missing_dataset(
    lake: DriverNode, recording_engine: RecordingEngine
) -> None:
    """A statement of a user without rights on the dataset is refused as for a missing dataset, and no engine gets a
    job.
    """
    lake.ask("POST", "/api/metalakes/lake/users", {"name": "nobody"})

    for statement in ("select value o from deep.east.%s o", "insert into deep.east.%s ({'id': 1})"):
        status, message = refusal(lake, statement % "orders", user="nobody")
        missing = refusal(lake, statement % "absent", user="nobody")
        assert status in (400, 403)
        assert (status, message.replace("orders", "absent")) == missing
    assert recording_engine.jobs == []
