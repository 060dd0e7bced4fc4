# SPDX-License-Identifier: Apache-2.0
"""One step without a server: its branch, and the side table of malformed rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.names import engine
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import DeclaredSource, Files, Load, MalformedRowPolicy, Pipeline, StepDeclaration
from limnos.pipeline.engine.steps import carry_out
from tests.pipeline.engine.conftest import CATALOG
from tests.pipeline.engine.steps import BRANCH, RUN_AT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


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
    context = StepContext(
        pipeline=pipeline,
        directory=tmp_path,
        run="0123456789ab",
        at=RUN_AT,
        attempt=1,
        branch=BRANCH,
        parameters={},
        pins={},
        sources={},
        done_branches={},
        existing_tables=frozenset(),
        full=False,
        check=lambda: None,
    )

    outcome = carry_out(here, step, context=context)

    (head,) = [branch.head for branch in outcome.branches if branch.table[-1] == "t__malformed"]
    rows = here.sql(f"SELECT _text, _path FROM {table} VERSION AS OF {head} ORDER BY _text").collect()
    assert [tuple(row) for row in rows] == [("0,y", "file:/old.csv"), ("1,x", f"file:{tmp_path}/a.csv")]
    assert here.table(table).columns == ["_text", "_path", "_source", "_run", "_at"]
