# SPDX-License-Identifier: Apache-2.0
"""Resources of dlt as sources: rows, Arrow tables, transformers, arguments, and a source of several resources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.engine.sources import SourceReadRequest, frame_of
from limnos.pipeline.engine.sources.values import SourceFailed
from limnos.pipeline.modules import code_of, enter_directory, import_module
from limnos.pipeline.source_declarations import DeclaredSource, PythonSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


SHOP = """
import dlt
import pyarrow as pa


@dlt.resource(primary_key="id", write_disposition="merge")
def orders(days: int = 2, cursor=dlt.sources.incremental("id", initial_value=0)):
    for day in range(days):
        yield [{"id": 10 * day + number, "at": f"2026-05-0{day + 1}T00:00:00Z"} for number in range(2)]


@dlt.resource
def readings():
    yield pa.table({"id": [1, 2], "at": [None, None]})


@dlt.transformer(data_from=readings)
def doubled(table):
    yield from ({"id": 2 * each} for each in table.column("id").to_pylist())


@dlt.source
def shop():
    return orders, readings


@dlt.resource
def failing(key: str = dlt.secrets.value):
    yield {"id": key}


def made():
    return shop().orders


orders_of_shop, one_day = made(), orders(days=1)
"""
"""A module of a pipeline's directory."""


@pytest.fixture
def shop(tmp_path: Path) -> ModuleType:
    """The imported module."""
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    return import_module("shop", tmp_path)


def _ids(spark: SparkSession, function: Callable[..., object], schema: str = "id BIGINT") -> list[int]:
    """Return the ids that a source has in a pipeline with a parameter `days`."""
    kind = PythonSource(function=f"shop:{function.__name__}", schema=schema, callable=function)
    source = DeclaredSource(name="made", kind=kind, at=SourcePosition("p.yaml", 2, 2))
    read = frame_of(SourceReadRequest(spark=spark, source=source, parameters={"days": 3}))
    try:
        return sorted(row.id for row in read.frame.collect())
    finally:
        read.release()


def test_resource_is_a_source(here: SparkSession, shop: ModuleType) -> None:
    """A resource gets the parameters of the pipeline, and its pages of rows become columns of the declared types."""
    assert _ids(here, shop.orders, "id BIGINT, at TIMESTAMP") == [0, 1, 10, 11, 20, 21]


@pytest.mark.parametrize(
    "name,expected",
    [("readings", [1, 2]), ("doubled", [2, 4]), ("orders_of_shop", [0, 1, 10, 11, 20, 21]), ("one_day", [0, 1])],
)
def test_other_resources_are_sources(here: SparkSession, shop: ModuleType, name: str, expected: list[int]) -> None:
    """Resources that yield Arrow tables or have another resource's rows, and one of a source, can be read."""
    assert _ids(here, getattr(shop, name)) == expected


@pytest.mark.parametrize(
    "name,words",
    [
        ("shop", "a source of several resources: name one of them"),
        ("made", "name the resource itself"),
        ("failing", "ConfigFieldMissingException: Missing 1 field"),
    ],
)
def test_invalid_resource_is_refused(here: SparkSession, shop: ModuleType, name: str, words: str) -> None:
    """A source of dlt would mix the rows of its resources, a resource that a function makes cannot go to an executor,
    and a missing setting is an error.
    """
    with pytest.raises(SourceFailed, match=words):
        _ids(here, getattr(shop, name))


def test_code_of_a_resource_is_that_of_its_module(shop: ModuleType, tmp_path: Path) -> None:
    """A changed module is noticed below the resource's decorator."""
    before = code_of(shop.orders)
    (tmp_path / "shop.py").write_text(SHOP.replace("10 * day", "20 * day"), encoding="utf-8")
    enter_directory(tmp_path, again=True)

    assert "10 * day" in before
    assert code_of(import_module("shop", tmp_path).orders) != before
