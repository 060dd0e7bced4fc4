# SPDX-License-Identifier: Apache-2.0
"""Branches of a run: their starting snapshots, and that the run writes to no other branch."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.model.errors import BadRequest, CommitConflict, NotFound
from limnos.names import engine
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.branches import (
    MERGES,
    WriteKind,
    _written_table_of_text,
    begin,
    branch_identifier,
    drop,
    head,
    leftover_branches,
    require_branch,
    run_on_branch,
)
from limnos.pipeline.engine.metadata import _decode, _from_file, require_metadata, require_table
from limnos.pipeline.engine.tables import prepare
from limnos.pipeline.engine.writes import write
from limnos.pipeline.outcomes import StepBranch
from tests.pipeline.engine.steps import BRANCH, on_branch, on_main, published, rows, step_of, written

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
APPENDS = frozenset({WriteKind.APPEND})


@pytest.fixture
def table(spark: SparkSession, place: Parts) -> Parts:
    """A table with one row on `main`."""
    name = (*place, "t")
    spark.sql(f"CREATE TABLE {engine.render_spark(name)} AS SELECT 1 AS id")
    return name


def test_branch_starts_at_main_and_is_retained_for_a_week(spark: SparkSession, table: Parts) -> None:
    """The branch has the rows of `main` and its head as base, and expiration keeps it for seven days."""
    branch = begin(spark, step_of(table), branch=BRANCH)

    metadata = require_metadata(spark, table)
    assert (branch.base, branch.head) == (metadata.head(), metadata.head())
    assert (branch.uuid, branch.schema_id, branch.is_new) == (metadata.table_uuid, metadata.current_schema_id, False)
    assert metadata.refs[BRANCH].max_ref_age_ms == 7 * 24 * 3600 * 1000
    assert on_branch(spark, branch) == [(1,)]


def test_branch_of_empty_table_has_no_base(spark: SparkSession, place: Parts) -> None:
    """The branch of a table without snapshots has no base; if it is begun again, it is empty."""
    step = step_of((*place, "t"))
    first, _ = written(spark, step, spark.sql("SELECT 1 AS id"))

    again = begin(spark, step, branch=BRANCH)

    assert (first.base, again.base) == (None, None)
    assert on_branch(spark, again) == []
    assert again.is_new
    assert not begin(spark, step, branch="run_ffffffffffff_1").is_new


def test_branch_starts_at_given_metadata(spark: SparkSession, table: Parts) -> None:
    """A branch begins at the given metadata: a snapshot of another writer since then is neither read nor taken as the
    base.
    """
    seen = require_table(spark, table)
    spark.sql(f"INSERT INTO {engine.render_spark(table)} VALUES (7)")

    branch = begin(spark, step_of(table), branch=BRANCH, loaded=seen)

    assert (branch.base, branch.head) == (seen.metadata.head(), seen.metadata.head())
    assert head(spark, branch) == seen.metadata.head()
    assert (7,) not in on_branch(spark, branch)
    assert require_metadata(spark, table).head() != branch.base


def test_statement_runs_once_only_if_plan_writes_branch(spark: SparkSession, table: Parts) -> None:
    """A statement whose plan writes the branch runs once; a statement that would write elsewhere does not run."""
    branch = begin(spark, step_of(table), branch=BRANCH)
    before = on_main(spark, table)

    run_on_branch(spark, f"INSERT INTO {branch_identifier(branch)} SELECT 42", branch=branch, kinds=APPENDS)
    with pytest.raises(BadRequest, match="refused before it ran"):
        run_on_branch(spark, f"INSERT INTO {engine.render_spark(table)} SELECT 43", branch=branch, kinds=APPENDS)

    assert on_branch(spark, branch) == sorted([*before, (42,)])
    assert on_main(spark, table) == before


def test_statement_returns_table_as_its_commit_left_it(spark: SparkSession, table: Parts) -> None:
    """The table that a statement returns without another load is the one that a load returns."""
    branch = begin(spark, step_of(table), branch=BRANCH)

    written_table = run_on_branch(
        spark, f"INSERT INTO {branch_identifier(branch)} SELECT 42", branch=branch, kinds=APPENDS
    )

    assert written_table is not None
    assert written_table.metadata == require_metadata(spark, table)
    assert written_table.metadata.head(BRANCH) != branch.head


def test_later_attempt_reuses_snapshot_of_finished_step(spark: SparkSession, table: Parts) -> None:
    """A branch that begins at the snapshot of an earlier attempt has its rows, and keeps that attempt's base."""
    step = step_of(table)
    first, done = written(spark, step, spark.sql("SELECT 2 AS id"))

    second = begin(spark, step, branch="run_0123456789ab_2", at=done.head)

    assert on_branch(spark, second) == [(2,)]
    assert (second.base, second.head) == (first.base, done.head)


def test_later_attempt_is_refused_when_main_has_moved(spark: SparkSession, table: Parts) -> None:
    """If another writer has published meanwhile, the snapshot is not reused, because the other writer's rows would be
    lost.
    """
    step = step_of(table)
    _, done = written(spark, step, spark.sql("SELECT 2 AS id"))
    spark.sql(f"INSERT INTO {engine.render_spark(table)} VALUES (7)")

    with pytest.raises(CommitConflict, match="has moved"):
        begin(spark, step, branch="run_0123456789ab_2", at=done.head)


def test_later_attempt_is_refused_when_main_was_rolled_back(spark: SparkSession, table: Parts) -> None:
    """If the base of the snapshot was rolled back, it is not reused, because that would restore the rolled-back
    rows.
    """
    step = step_of(table)
    before = require_metadata(spark, table).head()
    spark.sql(f"INSERT INTO {engine.render_spark(table)} VALUES (7)")
    _, done = written(spark, step, spark.sql("SELECT 2 AS id"))
    spark.sql(f"CALL main.system.rollback_to_snapshot('{'.'.join(table[1:])}', {before})")

    with pytest.raises(CommitConflict, match="has moved"):
        begin(spark, step, branch="run_0123456789ab_2", at=done.head)


def test_expired_snapshot_and_missing_table_are_named(spark: SparkSession, table: Parts) -> None:
    """The errors for an expired snapshot and a missing table name them."""
    with pytest.raises(NotFound, match="has expired"):
        begin(spark, step_of(table), branch=BRANCH, at=42)
    with pytest.raises(NotFound, match="nothing_here"):
        begin(spark, step_of((*table[:2], "nothing_here")), branch=BRANCH)


def test_branches_are_listed_and_dropped(spark: SparkSession, table: Parts) -> None:
    """Branches of runs are found by their names, other branches are ignored, and a second drop has no effect."""
    branch = begin(spark, step_of(table), branch=BRANCH)
    spark.sql(f"ALTER TABLE {engine.render_spark(table)} CREATE BRANCH audit")

    listed = leftover_branches(spark, table)
    drop(spark, table, name=BRANCH)
    drop(spark, table, name=BRANCH)

    assert listed == (BRANCH,)
    assert head(spark, branch) is None
    assert leftover_branches(spark, (*table[:2], "gone")) == ()
    with pytest.raises(BadRequest, match="the published branch"):
        drop(spark, table, name="main")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {table} SELECT 2",
        "INSERT INTO {table} WITH ('branch' = '{name}') SELECT 2",
        "INSERT INTO {table}.branch_other SELECT 2",
        "CREATE OR REPLACE TABLE {table} AS SELECT 2 AS id",
        "CREATE TABLE {table}_new AS SELECT 2 AS id",
        "DELETE FROM {branch}",
        "INSERT OVERWRITE {branch} SELECT 2",
        "MERGE INTO {table} t USING (SELECT 2 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        "DROP TABLE {table}",
        "SELECT * FROM {branch}",
    ],
)
@pytest.mark.parametrize("session_says", [False, True])
def test_statement_not_writing_the_branch_is_refused(
    spark: SparkSession, table: Parts, statement: str, session_says: bool
) -> None:
    """A statement that does not write the branch is refused by its plan, also if the session sets a branch to write."""
    branch = begin(spark, step_of(table), branch=BRANCH)
    spark.sql(f"ALTER TABLE {engine.render_spark(table)} CREATE BRANCH other")
    text = statement.format(table=engine.render_spark(table), branch=branch_identifier(branch), name=BRANCH)
    if session_says:
        spark.conf.set("spark.wap.branch", "other")

    with pytest.raises(BadRequest, match="refused before it ran"):
        require_branch(spark, text, branch=branch, kinds=APPENDS)

    assert on_main(spark, table) == [(1,)]


def test_check_of_correct_statement_does_not_run_it(spark: SparkSession, table: Parts) -> None:
    """The check of a correct statement neither fails nor writes."""
    branch = begin(spark, step_of(table), branch=BRANCH)
    merge = "MERGE INTO {} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 3"

    require_branch(spark, f"INSERT INTO {branch_identifier(branch)} SELECT 2", branch=branch, kinds=APPENDS)
    require_branch(spark, merge.format(branch_identifier(branch)), branch=branch, kinds=MERGES)

    assert on_branch(spark, branch) == [(1,)]


def test_statement_on_table_named_like_branch_is_refused(spark: SparkSession, table: Parts) -> None:
    """A table `branch_x` in a namespace with the table's name hides the branch: the plan shows it, and the statement is
    refused.
    """
    branch = begin(spark, step_of(table), branch=BRANCH)
    spark.sql(f"CREATE NAMESPACE {engine.render_spark((*table[:2], 'other'))}")
    spark.sql(f"CREATE TABLE {engine.render_spark((*table[:2], 'other', f'branch_{BRANCH}'))} (id int)")
    namesake = StepBranch(**{**_values(branch), "table": (*table[:2], "other")})

    with pytest.raises(BadRequest, match="refused before it ran"):
        require_branch(spark, f"INSERT INTO {branch_identifier(namesake)} SELECT 2", branch=namesake, kinds=APPENDS)


def test_plan_text_gives_same_node_table_and_branch(spark: SparkSession, table: Parts) -> None:
    """The text of a plan gives the same node, table and branch."""
    branch = begin(spark, step_of(table), branch=BRANCH)

    write_target = _written_table_of_text(spark, f"INSERT OVERWRITE {branch_identifier(branch)} SELECT 2")
    other = _written_table_of_text(spark, f"INSERT INTO {engine.render_spark(table)} SELECT 2")

    assert write_target == ("OverwriteByExpression", (*table, f"branch_{BRANCH}"), BRANCH)
    assert other == ("AppendData", table, None)


def test_metadata_from_file_equals_sparks_copy(spark: SparkSession, table: Parts) -> None:
    """The metadata from the newest metadata file, for Spark Connect, equals Spark's own copy."""
    begin(spark, step_of(table), branch=BRANCH)
    name = engine.render_spark(table)

    ours, theirs = _decode(_from_file(spark, name)), require_metadata(spark, table)

    assert (ours.table_uuid, ours.refs, ours.snapshots, ours.schemas) == (
        theirs.table_uuid,
        theirs.refs,
        theirs.snapshots,
        theirs.schemas,
    )


def test_step_is_done_if_failed_write_has_committed(
    spark: SparkSession, table: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a write raises an error but the branch has its commit, the step is done; without the commit it fails."""
    from limnos.pipeline.engine import writes

    whole = writes.insert

    def lost(*arguments: object, **named: object) -> None:
        whole(*arguments, **named)
        raise ConnectionError("the answer was cut")

    monkeypatch.setattr(writes, "insert", lost)
    branch, done = written(spark, step_of(table), spark.sql("SELECT 5 AS id"))

    assert on_branch(spark, branch) == [(5,)]
    assert done.rows == 1
    monkeypatch.setattr(writes, "insert", lambda *_, **__: (_ for _ in ()).throw(ConnectionError("never sent")))
    with pytest.raises(ConnectionError, match="never sent"):
        written(spark, step_of(table), spark.sql("SELECT 6 AS id"))


def test_publication_of_two_tables_is_atomic(spark: SparkSession, place: Parts, admin: Client) -> None:
    """Two tables are published together; if one has changed, neither is published, and the branches are kept."""
    steps = [step_of((*place, name)) for name in ("one", "two")]
    published(admin, spark, *[written(spark, each, spark.sql("SELECT 1 AS id"))[0] for each in steps])
    first = [on_main(spark, each.table) for each in steps]

    branches = [written(spark, each, spark.sql("SELECT 2 AS id"))[0] for each in steps]
    spark.sql(f"INSERT INTO {engine.render_spark(steps[1].table)} VALUES (9)")
    with pytest.raises(Exception, match="two"):
        published(admin, spark, *branches)

    assert first == [[(1,)], [(1,)]]
    assert [on_main(spark, each.table) for each in steps] == [[(1,)], [(1,), (9,)]]
    assert [leftover_branches(spark, each.table) for each in steps] == [(BRANCH,), (BRANCH,)]


def test_late_writes_of_killed_attempt_are_not_published(spark: SparkSession, table: Parts, admin: Client) -> None:
    """Late writes of a killed attempt go to its own branch and are not published by the next attempt."""
    step = step_of(table)
    first, _ = written(spark, step, spark.sql("SELECT 2 AS id"))
    second = begin(spark, step, branch="run_0123456789ab_2", at=head(spark, first))
    spark.sql(f"INSERT INTO {branch_identifier(first)} VALUES (99)")

    published(admin, spark, second)

    assert on_main(spark, table) == [(2,)]
    assert leftover_branches(spark, table) == (BRANCH,)


def test_writing_onto_a_dropped_branch_fails(spark: SparkSession, table: Parts) -> None:
    """A write to a dropped branch fails: it neither creates the branch again nor writes `main`."""
    step = step_of(table)
    frame = spark.sql("SELECT 2 AS id")
    prepare(spark, step, frame=frame, branch=BRANCH)
    branch = begin(spark, step, branch=BRANCH)
    drop(spark, table, name=BRANCH)

    with pytest.raises(Exception, match=BRANCH):
        write(spark, step, frame=frame, branch=branch, marks={})

    assert rows(spark, f"SELECT * FROM {engine.render_spark(table)}") == [(1,)]


def _values(branch: StepBranch) -> dict[str, object]:
    return {name: getattr(branch, name) for name in StepBranch.__dataclass_fields__}
