# SPDX-License-Identifier: Apache-2.0
"""Python functions as sources: batches from an executor, DataFrames from the driver, cached as returned."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.engine.sources import SourceRead, SourceReadRequest, frame_of
from limnos.pipeline.engine.sources.values import SourceFailed
from limnos.pipeline.source_declarations import DeclaredSource, PythonSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def batches(least: int, most: int = 3) -> Iterator[pa.RecordBatch | pa.Table]:
    """Yield numbers in two batches with another order and width of columns than declared."""
    yield pa.RecordBatch.from_pydict({"made": [uuid.uuid4().hex], "id": pa.array([least], pa.int16()), "more": [1]})
    yield pa.table({"id": pa.array([most], pa.int32()), "made": [uuid.uuid4().hex]})


def nothing() -> Iterator[pa.RecordBatch]:
    """Yield no batch."""
    yield from ()


def lacking() -> Iterator[pa.RecordBatch]:
    """Yield a batch without a declared column."""
    yield pa.RecordBatch.from_pydict({"name": ["x"]})


def unfitting(x: int) -> Iterator[pa.Table]:
    """Yield texts of which the fifth is no number."""
    yield pa.table({"id": ["1", "2"]})
    yield pa.table({"id": ["3", "4", "x", "5", "y"]})


def unknown() -> Iterator[pa.Table]:
    """Yield a NULL in the second row."""
    yield pa.table({"id": [1, None]})


def lists() -> Iterator[pa.Table]:
    """Yield a column of a type that is never a number, without rows."""
    yield pa.table({"id": pa.array([], pa.list_(pa.int64()))})


def entries(least: int) -> Iterator[dict[str, object] | list[dict[str, object]] | pa.Table]:
    """Yield rows alone, in a list and in a table; the second lacks a column, and its time is a text."""
    yield {"id": least, "made": "a", "at": datetime(2026, 5, 1, tzinfo=UTC), "more": [1]}
    yield [{"id": 3, "at": "2026-05-02T00:00:00Z"}, {"id": 4, "made": "c", "at": None}]
    yield pa.table({"id": [5], "made": ["d"], "at": [None]})
    yield {"id": 6, "made": "e"}


def many_entries() -> Iterator[dict[str, int]]:
    """Yield more rows than one batch has."""
    yield from ({"id": number} for number in range(25_000))


def unfitting_entry() -> Iterator[dict[str, object]]:
    """Yield rows of which the third does not fit."""
    yield from ({"id": each} for each in (1, 2, "x", "y"))


def misspelt_entries() -> Iterator[dict[str, object]]:
    """Yield rows without the declared column."""
    yield {"idd": 1}


def number() -> int:
    """Return no rows."""
    return 7


LOCK = threading.Lock()


def locked() -> Iterator[pa.Table]:
    """Use a value that cannot be sent to an executor."""
    with LOCK:
        yield pa.table({"id": [1]})


def failing() -> Iterator[pa.Table]:
    """Fail in pyarrow, in the function itself."""
    yield pa.table({"id": pa.array(["x"], pa.int64())})


def words() -> Iterator[str]:
    """Return a value that is not a sequence of batches."""
    yield "words"


def frame(spark: SparkSession, least: int = 5) -> DataFrame:
    """Return a DataFrame whose rows differ at each evaluation."""
    return spark.range(least).selectExpr("id", "uuid() AS made")


def no_frame(spark: SparkSession) -> list[int]:
    """Return a value that is not a DataFrame."""
    return [1]


def opened(spark: SparkSession, function: Callable[..., object] | str, schema: str | None = None) -> SourceRead:
    """Open a function of this module, with one parameter."""
    if isinstance(function, str):
        kind = PythonSource(function=function, schema=schema)
    else:
        kind = PythonSource(function=f"here:{function.__name__}", schema=schema, callable=function)
    return frame_of(
        SourceReadRequest(
            spark=spark,
            source=DeclaredSource(name="made", kind=kind, at=SourcePosition("p.yaml", 2, 2)),
            parameters={"least": 2, "x": 1},
        )
    )


def test_batches_are_cast_to_declared_types(here: SparkSession) -> None:
    """Batches are matched by column name and cast to the declared types, with parameters; two reads return the same
    rows.
    """
    read = opened(here, batches, "id BIGINT, made STRING")

    first = sorted(tuple(row) for row in read.frame.collect())
    assert [row[0] for row in first] == [2, 3]
    assert first == sorted(tuple(row) for row in read.frame.collect())
    assert dict(read.frame.dtypes) == {"id": "bigint", "made": "string"}
    read.release()


def test_rows_become_columns_of_declared_types(here: SparkSession) -> None:
    """Rows may come alone, in lists and beside tables. A row without a column has NULL there, and texts are cast."""
    read = opened(here, entries, "id BIGINT, made STRING, at TIMESTAMP")

    rows = sorted((row.id, row.made, row.at and row.at.day) for row in read.frame.collect())
    assert rows == [(2, "a", 1), (3, None, 2), (4, "c", None), (5, "d", None), (6, "e", None)]
    read.release()


def test_rows_of_several_batches_are_all_read(here: SparkSession) -> None:
    """A function may yield more rows than one batch has."""
    read = opened(here, many_entries, "id BIGINT")

    assert read.frame.selectExpr("count(*)", "sum(id)").first() == (25_000, 25_000 * 24_999 // 2)
    read.release()


def test_function_without_batches_returns_no_rows(here: SparkSession) -> None:
    """A function that yields no batch returns the declared columns and no rows."""
    read = opened(here, nothing, "id BIGINT")

    assert read.frame.columns == ["id"]
    assert read.frame.count() == 0


def test_function_with_spark_returns_cached_dataframe(here: SparkSession) -> None:
    """A function with a parameter `spark` returns a DataFrame, whose rows are cached; a schema orders its columns."""
    read = opened(here, frame)
    ordered = opened(here, frame, "made STRING, id BIGINT")

    assert sorted(read.frame.collect()) == sorted(read.frame.collect())
    assert read.frame.count() == 2
    assert ordered.frame.columns == ["made", "id"]
    assert read.pin.whole_because == "each run calls the function again"


def test_function_is_imported_by_its_name(here: SparkSession) -> None:
    """`module:function` is imported and called."""
    with pytest.raises(SourceFailed, match="yields rows, so its columns"):
        opened(here, "uuid:uuid4")


@pytest.mark.parametrize(
    "function,schema,words_",
    [
        ("nowhere", None, "write module:function"),
        ("limnos_nowhere:f", None, "cannot be imported"),
        ("json:nothing", None, "cannot be imported"),
        ("itertools:chain", None, "has no readable signature"),
        ("math:pi", None, "is not a function"),
        (batches, None, "its columns must be declared"),
        (batches, "id NOTHING", "is not a list of columns"),
        (lambda other: other, "id INT", "needs 'other', which is not a parameter"),
        (no_frame, None, "it returned list"),
        (frame, "id BIGINT, nobody INT", "returned no column 'nobody'"),
        (lacking, "id BIGINT", "yielded no column 'id'; it has name"),
        (words, "id BIGINT", "yielded str: yield Arrow batches, tables or rows as dict."),
        (number, "id BIGINT", "returned int: yield Arrow batches, tables or rows as dict."),
        (unfitting_entry, "id BIGINT", "yielded 'x' in row 3, column 'id', which must be int64."),
        (misspelt_entries, "id BIGINT", "yielded no column 'id'; it has idd"),
        (unfitting, "id BIGINT", "yielded 'x' in row 5, column 'id', which must be int64."),
        (unknown, "id BIGINT NOT NULL", "yielded None in row 2, column 'id', which must be int64 and not NULL."),
        (lists, "id BIGINT", "yielded the column 'id' as list<item: int64>, and it must be int64."),
        (locked, "id BIGINT", "locked cannot be sent to an executor: Could not serialize object: TypeError"),
        (failing, "id BIGINT", "failed: ArrowInvalid: Could not convert 'x'"),
    ],
)
def test_invalid_function_is_refused_with_position(
    here: SparkSession, function: Callable[..., object] | str, schema: str | None, words_: str
) -> None:
    """A missing function, or one that returns another type, is refused with its position and advice."""
    with pytest.raises(SourceFailed, match=r"^p\.yaml:2:2: source made: ") as refused:
        opened(here, function, schema)

    assert words_ in refused.value.message
