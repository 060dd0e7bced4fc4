# SPDX-License-Identifier: Apache-2.0
"""One step without a server: its branch, and the side table of malformed rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.names import engine
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import (
    Expectation,
    ExpectationAction,
    Load,
    Pipeline,
    RuleKind,
    Sql,
    StepDeclaration,
    WriteDeclaration,
    WriteMode,
)
from limnos.pipeline.engine import staging
from limnos.pipeline.engine.steps import carry_out
from limnos.pipeline.source_declarations import DeclaredSource, Files, MalformedRowPolicy
from tests.pipeline.engine.conftest import CATALOG
from tests.pipeline.engine.steps import BRANCH, RUN_AT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def context_of(pipeline: Pipeline, directory: Path, *, branch: str = BRANCH) -> StepContext:
    """The context of the first attempt at a run, without inputs of other steps."""
    return StepContext(
        pipeline=pipeline,
        directory=directory,
        run="0123456789ab",
        at=RUN_AT,
        attempt=1,
        branch=branch,
        parameters={},
        pins={},
        sources={},
        done_branches={},
        existing_tables=frozenset(),
        full=False,
        check=lambda: None,
    )


def test_malformed_table_of_an_older_release_goes_on(
    here: SparkSession, corner: tuple[str, ...], tmp_path: Path
) -> None:
    """A side table whose column is still called `_file` cannot be read; the next step with malformed rows renames the
    column and adds its rows.
    """
    (tmp_path / "a.csv").write_text("id,v\n1,x\n")
    table = engine.render_spark((*corner, "t__malformed"))
    here.sql(
        f"CREATE TABLE {table} (_text STRING, _file STRING, _source STRING, _run STRING, _at TIMESTAMP) USING iceberg"
    )
    here.sql(f"INSERT INTO {table} VALUES ('0,y', 'file:/old.csv', 'src', 'r', TIMESTAMP '2026-01-01 00:00:00')")
    options = {"header": "true"}
    kind = Files(path="a.csv", format="csv", schema="id INT, v INT", options=options, malformed=MalformedRowPolicy.KEEP)
    step = StepDeclaration(table=(*corner, "t"), body=Load(source="src"))
    pipeline = Pipeline(name="p", catalog=CATALOG, steps=(step,), sources=(DeclaredSource(name="src", kind=kind),))
    context = context_of(pipeline, tmp_path)

    outcome = carry_out(here, step, context=context)

    (head,) = [branch.head for branch in outcome.branches if branch.table[-1] == "t__malformed"]
    rows = here.sql(f"SELECT _text, _path FROM {table} VERSION AS OF {head} ORDER BY _text").collect()
    assert [tuple(row) for row in rows] == [("0,y", "file:/old.csv"), ("1,x", f"file:{tmp_path}/a.csv")]
    assert here.table(table).columns == ["_text", "_path", "_source", "_run", "_at"]


@pytest.mark.parametrize("bytes_min", [0, 1 << 60], ids=["later", "observed"])
@pytest.mark.parametrize(
    "how",
    [
        WriteDeclaration(),
        WriteDeclaration(mode=WriteMode.APPEND),
        WriteDeclaration(mode=WriteMode.MERGE, keys=("id",), delete_when="gone"),
        WriteDeclaration(mode=WriteMode.PARTITIONS),
    ],
    ids=lambda how: how.mode.value,
)
def test_row_rules_have_the_same_findings_whenever_they_are_counted(
    here: SparkSession,
    corner: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    how: WriteDeclaration,
    bytes_min: int,
) -> None:
    """Only the rows of the write are counted, not rows that the table had, in each mode; in a merge also the rows that
    it deletes.
    """
    monkeypatch.setattr(staging, "LARGE_BYTES", bytes_min)
    table = (*corner, "t")
    partition = ("gone",) if how.mode is WriteMode.PARTITIONS else ()
    by = f"PARTITIONED BY ({partition[0]})" if partition else ""
    here.sql(f"CREATE TABLE {engine.render_spark(table)} (id BIGINT, v INT, gone BOOLEAN) USING iceberg {by}")
    here.sql(f"INSERT INTO {engine.render_spark(table)} VALUES (-5, -1, false), (4, 4, false)")
    body = Sql(text="SELECT id, CAST(id - 2 AS INT) AS v, id = 4 AS gone FROM range(6)")
    rule = Expectation(name="positive", kind=RuleKind.ROW, action=ExpectationAction.WARN, condition="v > 0")
    step = StepDeclaration(table=table, body=body, write=how, partition=partition, expectations=(rule,))

    outcome = carry_out(here, step, context=context_of(Pipeline(name="p", catalog=CATALOG, steps=(step,)), tmp_path))

    assert [(each.broken, each.checked, each.held) for each in outcome.findings] == [(3, 6, False)]


@pytest.mark.parametrize("bytes_min", [0, 1 << 60], ids=["large", "small"])
@pytest.mark.parametrize("delete_when", [None, "id = 4"], ids=["no deletes", "deletes"])
def test_first_load_of_a_merge_counts_the_rows_of_its_source(
    here: SparkSession,
    corner: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    delete_when: str | None,
    bytes_min: int,
) -> None:
    """Row rules of a new table's merge have the same findings for large and small loads, with and without rows that the
    merge deletes.
    """
    monkeypatch.setattr(staging, "LARGE_BYTES", bytes_min)
    body = Sql(text="SELECT id, CAST(id - 2 AS INT) AS v FROM range(6)")
    rule = Expectation(name="positive", kind=RuleKind.ROW, action=ExpectationAction.WARN, condition="v > 0")
    how = WriteDeclaration(mode=WriteMode.MERGE, keys=("id",), delete_when=delete_when)
    step = StepDeclaration(table=(*corner, "t"), body=body, write=how, expectations=(rule,))

    outcome = carry_out(here, step, context=context_of(Pipeline(name="p", catalog=CATALOG, steps=(step,)), tmp_path))

    assert [(each.broken, each.checked, each.held) for each in outcome.findings] == [(3, 6, False)]
    assert outcome.rows == (6 if delete_when is None else 5)
