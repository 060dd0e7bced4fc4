# SPDX-License-Identifier: Apache-2.0
"""Runs whose steps read Lance tables: published ones at a pinned version, and ones that the same run has staged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.model.errors import PermissionDenied
from limnos.pipeline.checks import check
from limnos.pipeline.engine.driver import SparkEngine
from limnos.pipeline.modified_steps import modified_steps
from limnos.pipeline.plan import plan
from limnos.pipeline.project import load
from limnos.pipeline.run.dry_run import intents
from limnos.pipeline.run.options import RunOptions
from limnos.spark.lance.server_access import ServerAccess
from tests.integration.live import LiveServer
from tests.pipeline.run.lance_place import FailingEngine, LancePlace

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PIPELINE = """
pipeline: SPACE
catalog: main
parameters: {day: {type: int, default: 1}}
sources: {again: {table: lance.SPACE.prior}}
steps:
  SPACE.vectors:
    catalog: lance
    sql: SELECT id, concat(text, '!') AS text, vector FROM lance.SPACE.prior WHERE id > 2
    vectors: {vector: 2}
    indexes: [{scalar: id}]
    expect: [{rows: {min: 1}}]
  SPACE.joined:
    sql: |
      SELECT v.id, v.text AS louder, p.text AS plain, size(v.vector) AS dimension
      FROM lance.SPACE.vectors AS v JOIN lance.SPACE.prior AS p ON v.id = p.id
    expect: [{columns: id, references: lance.SPACE.prior}]
  SPACE.coded: {python: 'MODULE:coded', inputs: {rows: lance.SPACE.vectors}}
  SPACE.loaded: {load: again}
"""
CODE = """
def coded(rows):
    return rows.where("id % 2 = 1").select("id", "text")
"""


@pytest.fixture
def place(
    spark: SparkSession, server: LiveServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LancePlace]:
    """A place with a published Lance table of five rows."""
    space = "i" + "".join(filter(str.isalnum, request.node.name))[-30:].lower()
    opened = LancePlace(spark, server, file=tmp_path / f"{space}.yaml", space=space)
    (tmp_path / f"code_{space}.py").write_text(CODE)
    opened.write(PIPELINE.replace("MODULE", f"code_{space}"))
    opened.client.namespaces.create(f"lance.{space}")
    opened.client.lance.declare(f"lance.{space}.prior", properties={"managed_versioning": "true"})
    write_rows(opened, range(5))
    yield opened
    opened.client.close()
    opened.heartbeat_client.close()


def write_rows(place: LancePlace, ids: range, *, mode: str = "append") -> None:
    """Write rows to the published table, as another client does."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0] * (2 * len(ids)), pa.float32()), 2)
    rows = pa.table({"id": pa.array(ids, pa.int64()), "text": [f"text {each}" for each in ids], "vector": vectors})
    lance.write_dataset(
        rows, namespace_client=place.client.lance.namespace(), table_id=["lance", place.space, "prior"], mode=mode
    )


def rows_of(place: LancePlace, table: str) -> list[tuple[object, ...]]:
    """Return the sorted rows of a published Iceberg table."""
    return sorted(tuple(row) for row in place.spark.table(f"main.{place.space}.{table}").collect())


def test_steps_read_published_and_staged_versions(place: LancePlace) -> None:
    """A run reads a Lance table as it was when the run began, and another one as an earlier step has staged it. The
    record and the lineage have both.
    """
    checked = check(place.pipeline, spark=place.spark, client=place.client)
    assert checked.problems == ()
    assert checked.unchecked == ()
    reads = {(each.step.table[-1], one.name): one for each in plan(checked) for one in each.reads}
    assert reads["vectors", f"lance.{place.space}.prior"].snapshot == 1
    previews = load(place.file).plan(place.spark, client=place.client).previews
    assert [each.refused for each in previews.values()] == [None] * 4

    ended = place.run(engine=FailingEngine(place.spark, after="vectors", call=lambda: write_rows(place, range(5, 9))))

    assert ended.state == "published", ended.message
    assert place.versions("vectors") == [1, 2]
    assert rows_of(place, "joined") == [(each, f"text {each}!", f"text {each}", 2) for each in (3, 4)]
    assert rows_of(place, "coded") == [(3, "text 3!")]
    assert [row[0] for row in rows_of(place, "loaded")] == [0, 1, 2, 3, 4]
    steps = {each.name.rpartition(".")[2]: each for each in place.client.runs.load(ended.run).steps}
    inputs = {tuple(each["table"])[-1]: each for each in steps["joined"].inputs}
    assert inputs["prior"]["snapshot"] == 1
    assert inputs["vectors"]["snapshot"] == 2
    lineage = place.client.lineage.up(f"main.{place.space}.joined", column="louder")
    assert ("lance", place.space, "vectors") in [each.path for each in lineage.nodes]
    assert ("lance", place.space, "prior") in [each.path for each in lineage.nodes]
    text = place.file.read_text().replace("size(v.vector)", "size(v.vektor)")
    place.file.write_text(text)
    problems = [each.message for each in check(place.pipeline, client=place.client).problems]
    assert any("vektor" in each for each in problems), problems


def test_resumed_run_reads_version_of_its_first_attempt(place: LancePlace) -> None:
    """A step that runs in a second attempt reads the version that the first attempt has staged, and nothing is computed
    or published twice.
    """
    good = place.file.read_text()
    place.file.write_text(good.replace("size(v.vector)", "size(v.vector) + assert_true(v.id < 0, 'too large')"))
    failed = place.run()
    assert failed.state == "failed", failed.message
    write_rows(place, range(5, 9))
    place.file.write_text(good)
    carried: list[str] = []

    resumed = place.resume(failed.run, engine=FailingEngine(place.spark, after="", carried=carried))

    assert resumed.state == "published", resumed.message
    assert f"{place.space}.vectors" not in carried
    assert place.ids("vectors") == [3, 4]
    assert [row[0] for row in rows_of(place, "joined")] == [3, 4]


def test_another_table_of_the_name_is_not_read(place: LancePlace) -> None:
    """A table that is dropped and declared again during the run has the pinned version's number, and other rows."""

    def replace() -> None:
        name = f"lance.{place.space}.prior"
        place.client.lance.drop(name)
        place.client.lance.declare(name, properties={"managed_versioning": "true"})
        write_rows(place, range(100, 105))

    ended = place.run(engine=FailingEngine(place.spark, after="vectors", call=replace))

    assert ended.state == "failed"
    assert "was dropped and created again since the run began" in ended.message


def test_tables_are_read_with_rights_of_the_caller(place: LancePlace) -> None:
    """A user who may not read the Lance table gets no row of it, and a check names the missing right."""
    user, role = f"u{place.space}", f"r{place.space}"
    client = place.client
    client.users.add(user)
    client.roles.create(role)
    client.roles.grant_to_user(user, [role])
    client.roles.allow(role, ["run_job", "register_job_template"], on="lake", kind="metalake")
    client.roles.allow(role, ["use_catalog", "use_schema"], on="lance", kind="catalog")
    client.roles.allow(role, ["use_catalog", "use_schema", "create_table", "select_table"], on="main", kind="catalog")
    place.write(
        "pipeline: SPACE\ncatalog: main\nparameters: {day: {type: int, default: 1}}\n"
        "steps: {SPACE.copied: {sql: SELECT id FROM lance.SPACE.prior}}\n"
    )
    token = client.tokens.create(user=user).token
    with Client(place.server.uri, token=token) as theirs:
        missing = check(place.pipeline, client=theirs).missing
        assert [each.table for each in missing if each.needed_for == "read"] == [("lance", place.space, "prior")]
        place.client = theirs
        engine = SparkEngine(place.spark, access=ServerAccess(uri=place.server.uri, metalake="lake", token=token))
        with pytest.raises(PermissionDenied, match="prior"):
            place.run(engine=engine)
    place.client = client


def test_changed_columns_of_a_read_table_modify_the_step(place: LancePlace) -> None:
    """`state:modified` finds the steps that read a Lance table whose columns have changed since, and no others."""
    place.write(
        "pipeline: SPACE\ncatalog: main\nparameters: {day: {type: int, default: 1}}\n"
        "steps: {SPACE.copied: {sql: SELECT id FROM lance.SPACE.prior}, SPACE.one: {sql: SELECT 1 AS x}}\n"
    )
    assert place.run().state == "published"
    reads = {f"{place.space}.copied": frozenset({("lance", place.space, "prior")})}
    write_rows(place, range(5, 9))
    assert modified_steps(place.client, place.pipeline, reads=reads) == {}
    place.dataset("prior").add_columns({"more": "id + 1"})

    modified = modified_steps(place.client, place.pipeline, reads=reads)

    assert modified == {f"{place.space}.copied": f"columns of lance.{place.space}.prior, which it reads, changed"}
    planned = intents(place.pipeline, place.means(), parameters={"day": 1}, options=RunOptions())
    assert planned.steps[0].reads == (f"lance.{place.space}.prior at 3",)


INCREMENTAL = """
pipeline: SPACE
catalog: main
parameters: {day: {type: int, default: 1}}
steps:
  SPACE.copied: {sql: "SELECT id, text FROM lance.SPACE.prior WHERE id <> 1", write: append, incremental: true}
  SPACE.log: {catalog: lance, sql: "SELECT :day AS id, concat('day ', :day) AS text", write: append}
  SPACE.days: {sql: "SELECT id, text FROM lance.SPACE.log", write: {mode: merge, keys: [id]}, incremental: true}
"""


def test_incremental_steps_read_added_fragments(place: LancePlace) -> None:
    """An incremental step reads the rows of fragments that were added since its last run, also if they were compacted
    with others since, or if the same run has staged them. After a deletion it reads everything, and says why.
    """
    place.write(INCREMENTAL)
    assert place.run().state == "published"
    write_rows(place, range(5, 9))
    place.dataset("prior").optimize.compact_files(target_rows_per_fragment=1000)
    assert len(place.dataset("prior").get_fragments()) == 1
    write_rows(place, range(9, 10))

    second = place.run(day=2)

    assert second.state == "published", second.message
    steps = {each.name.rpartition(".")[2]: each for each in place.client.runs.load(second.run).steps}
    assert (steps["copied"].rows, steps["days"].rows) == (5, 1)
    assert [each["from_snapshot"] for name in ("copied", "days") for each in steps[name].inputs] == [1, 1]
    assert [row[0] for row in rows_of(place, "copied")] == [0, *range(2, 10)]
    assert [row[0] for row in rows_of(place, "days")] == [1, 2]
    place.dataset("prior").delete("id = 2")

    third = place.run(day=3)

    assert third.state == "published", third.message
    steps = {each.name.rpartition(".")[2]: each for each in place.client.runs.load(third.run).steps}
    assert "rows were changed or removed in version 6" in str(steps["copied"].message)
    assert [row[0] for row in rows_of(place, "copied")] == [0, *range(3, 10)]
    again = place.run(day=3, select=(f"{place.space}.copied",))
    steps = {each.name.rpartition(".")[2]: each for each in place.client.runs.load(again.run).steps}
    assert (steps["copied"].rows, steps["copied"].message) == (0, None)
