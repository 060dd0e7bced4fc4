# SPDX-License-Identifier: Apache-2.0
"""docs/guides/expectations.md and docs/guides/pipeline-sources.md: their pipelines are valid, and their example gives
the documented findings.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.engine.expectations import RowRules, has_failed_expectation, table_findings
from limnos.pipeline.engine.naming import quote_identifier
from limnos.pipeline.engine.sources import SourceReadRequest, frame_of
from limnos.pipeline.file import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.pipeline.declaration import Pipeline
    from limnos.pipeline.declared_values import Parts

DOCS = Path(__file__).parents[3] / "docs"
SPARK = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
AT = datetime(2026, 1, 2, tzinfo=UTC)


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a page in one language."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def declared(text: str, directory: Path) -> Pipeline:
    """Return the pipeline of a block."""
    return read(text, file="page.yaml", directory=directory)


@pytest.mark.parametrize("page,number", [("guides/expectations.md", 1), ("guides/pipeline-sources.md", 9)])
def test_documented_pipelines_are_valid(page: str, number: int, tmp_path: Path) -> None:
    """Each YAML block is a complete pipeline without errors."""
    for text in blocks("guides/pipeline-sources.md", "python"):
        (tmp_path / "weather.py").write_text(text)
    pipelines = [declared(text, tmp_path) for text in blocks(page, "yaml")]

    assert len(pipelines) == number
    assert all(pipeline.steps for pipeline in pipelines)


@pytest.mark.usefixtures("corner")
class TestExample:
    """Tests that need Spark."""

    pytestmark = SPARK

    def test_documented_expectations_give_documented_findings(
        self, here: SparkSession, corner: Parts, tmp_path: Path
    ) -> None:
        """The example's rows and rules give the documented findings."""
        (data,), (text,) = (blocks("guides/expectations.md", language) for language in ("csv", "yaml"))
        (tmp_path / "people.csv").write_text(data)
        pipeline = declared(text, tmp_path)
        (step,) = pipeline.steps
        table = quote_identifier((*corner, "members"))

        opened = frame_of(SourceReadRequest(spark=here, source=pipeline.sources[0], directory=tmp_path))
        staged = RowRules(step, parameters={"adult": 18}).stage(opened.frame, run="r", at=AT)
        staged.rows.writeTo(table).create()
        findings = [*staged.findings, *table_findings(here, step, reads=lambda _: table, run_at=AT)]

        assert "".join(f"{finding.message}\n" for finding in findings) == blocks("guides/expectations.md", "text")[0]
        assert not has_failed_expectation(findings)
        assert staged.quarantined is not None
        assert sorted(row.id for row in staged.quarantined.collect()) == [2, 4]
        staged.release()

    def test_documented_functions_return_their_rows(
        self, here: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The page's functions return the rows that its pipeline loads."""
        (text,) = blocks("guides/pipeline-sources.md", "python")
        (tmp_path / "weather.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        pipeline = next(
            one
            for one in (declared(text, tmp_path) for text in blocks("guides/pipeline-sources.md", "yaml"))
            if one.name == "weather"
        )

        measured, days = (
            frame_of(SourceReadRequest(spark=here, source=source, parameters={"days": 2}))
            for source in pipeline.sources
        )

        assert sorted(tuple(row) for row in measured.frame.collect()) == [(0, 20.5), (1, 21.5)]
        assert sorted(tuple(row) for row in days.frame.collect()) == [(0,), (1,)]
        measured.release()
        days.release()
