# SPDX-License-Identifier: Apache-2.0
"""Files of scheduled pipelines: sources of which a schedule has a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.file import load
from limnos.pipeline.scheduled_files import copied_sources, require_no_repeated_files

PIPELINE = """
pipeline: shop
catalog: main
sources:
  orders:
    files: {path}
    format: csv
    schema: id bigint
    options: {{header: true}}
steps:
  raw.orders:
    {body}
    incremental: {incremental}
    write: append
"""


def pipeline_of(directory: Path, *, path: str, body: str = "load: orders", incremental: bool = True) -> Pipeline:
    """Return a pipeline with a step that reads a source of files."""
    (directory / "data").mkdir(exist_ok=True)
    (directory / "data" / "orders.csv").write_text("id\n1\n")
    text = PIPELINE.format(path=path, body=body, incremental=str(incremental).lower())
    (directory / "shop.yaml").write_text(text)
    return load(directory / "shop.yaml")


@pytest.mark.parametrize("body", ["load: orders", "sql: select id from Orders"])
def test_incremental_step_on_copied_files_is_refused(tmp_path: Path, body: str) -> None:
    """Each run of a schedule has another copy, in which all files are new: their rows would be written again."""
    pipeline = pipeline_of(tmp_path, path="data/orders*.csv", body=body)

    with pytest.raises(BadRequest, match=r"shop\.yaml:\d+: step raw\.orders is incremental and reads data/orders"):
        require_no_repeated_files(pipeline, tmp_path)


@pytest.mark.parametrize("incremental", [True, False])
def test_files_outside_of_the_directory_are_refused(tmp_path: Path, incremental: bool) -> None:
    """A relative path out of the directory is not in the copy that a schedule has, so no run could read it."""
    pipeline = pipeline_of(tmp_path, path="../elsewhere/*.csv", incremental=incremental)

    with pytest.raises(BadRequest, match=r"source orders reads \.\./elsewhere/\*\.csv, outside of"):
        require_no_repeated_files(pipeline, tmp_path)


@pytest.mark.parametrize("body", ["sql: select id as orders from curated.orders", "sql: select id from a.t orders"])
def test_other_names_of_a_query_are_no_copied_files(tmp_path: Path, body: str) -> None:
    """A table, a column and an alias that are called like a source of copied files do not read it."""
    require_no_repeated_files(pipeline_of(tmp_path, path="data/orders*.csv", body=body), tmp_path)


def test_whole_reads_of_copied_files_are_named(tmp_path: Path) -> None:
    """A step that reads its files whole is scheduled, and the command can say which files are copied."""
    pipeline = pipeline_of(tmp_path, path="data/orders.csv", incremental=False)

    require_no_repeated_files(pipeline, tmp_path)

    assert copied_sources(pipeline, tmp_path) == {"orders": "data/orders.csv"}


def test_files_elsewhere_are_not_copied(tmp_path: Path) -> None:
    """A URL and an absolute path, also one inside of the directory, are read where they are."""
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "in").mkdir()
    for folder in ("in", "home/data"):
        (tmp_path / folder / "orders.csv").write_text("id\n1\n")
    inside, outside = (str(tmp_path / each / "orders.csv") for each in ("home/data", "in"))
    for path in (inside, outside, "s3://lake/orders.csv"):
        pipeline = pipeline_of(tmp_path / "home", path=path)

        require_no_repeated_files(pipeline, tmp_path / "home")

        assert copied_sources(pipeline, tmp_path / "home") == {}
