# SPDX-License-Identifier: Apache-2.0
"""Types of Lance tables in Spark, and back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from limnos.model.errors import BadRequest
from limnos.spark.lance.types import FIXED_SIZE, arrow_schema_of, as_schema, check_append, fits, spark_schema_of

EVERY = pa.table(
    {
        "flag": [True],
        "i8": pa.array([1], pa.int8()),
        "u8": pa.array([255], pa.uint8()),
        "i64": [1],
        "u64": pa.array([2**64 - 1], pa.uint64()),
        "f16": pa.array([1.5], pa.float16()),
        "f64": [1.5],
        "text": ["a"],
        "large": pa.array(["b"], pa.large_string()),
        "bytes": [b"c"],
        "fixed": pa.array([b"ab"], pa.binary(2)),
        "day": [dt.date(2020, 1, 2)],
        "at": pa.array([dt.datetime(2020, 1, 2, tzinfo=dt.UTC)], pa.timestamp("ns", "UTC")),
        "local": pa.array([0], pa.timestamp("s")),
        "price": [Decimal("1.50")],
        "vector": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
        "many": [[1, 2]],
        "inner": [{"a": 1, "b": ["x"]}],
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "word": pa.array(["w"]).dictionary_encode(),
        "while": pa.array([dt.timedelta(seconds=1)], pa.duration("ms")),
    }
)


def test_every_type_is_read_as_the_arrow_type_spark_expects() -> None:
    """Each column has the Arrow type that Spark expects, with its value."""
    schema = to_arrow_schema(spark_schema_of(EVERY.schema), timestamp_utc=True)

    row = as_schema(EVERY.to_batches()[0], schema).to_pylist()[0]

    assert row["u64"] == Decimal(2**64 - 1)
    assert (row["u8"], row["f16"], row["fixed"], row["word"]) == (255, 1.5, b"ab", "w")
    assert row["vector"] == [1.0, 2.0]
    assert row["inner"] == {"a": 1, "b": ["x"]}
    assert row["at"] == dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
    assert row["while"] == dt.timedelta(seconds=1)


def test_vector_size_is_restored_on_write() -> None:
    """The size of a vector comes from the column's metadata, or from an option, which takes precedence."""
    schema = spark_schema_of(pa.schema([pa.field("vector", pa.list_(pa.float32(), 2))]))

    assert schema["vector"].metadata == {FIXED_SIZE: 2}
    assert arrow_schema_of(schema, vectors={}).field("vector").type.list_size == 2
    assert arrow_schema_of(schema, vectors={"vector": 3}).field("vector").type.list_size == 3


def test_invalid_vector_column_is_refused() -> None:
    """A vector column that is missing or not an array is refused, as is an array of another length when it is
    written.
    """
    schema = spark.StructType([spark.StructField("id", spark.LongType())])

    with pytest.raises(BadRequest, match="names vector, which is not a written column"):
        arrow_schema_of(schema, vectors={"vector": 2})
    with pytest.raises(BadRequest, match="Column id is not an array"):
        arrow_schema_of(schema, vectors={"id": 2})
    batch = pa.record_batch({"v": pa.array([[1.0]], pa.list_(pa.float32()))})
    with pytest.raises(BadRequest, match="Column v has a value that does not fit"):
        as_schema(batch, pa.schema([pa.field("v", pa.list_(pa.float32(), 2))]))


def test_type_that_spark_lacks_is_refused_with_advice() -> None:
    """The error for a type that Spark lacks says how to read the other columns."""
    with pytest.raises(BadRequest, match=r"Column t is of type time64.*option columns"):
        spark_schema_of(pa.schema([("t", pa.time64("us"))]))


TABLE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("vector", pa.list_(pa.float32(), 2)),
    ]
)


def columns(**kinds: spark.DataType) -> spark.StructType:
    """Return columns of a DataFrame."""
    return spark.StructType([spark.StructField(name, kind) for name, kind in kinds.items()])


def test_compatible_schema_can_be_appended() -> None:
    """Fewer columns, narrower numbers, and arrays for vectors can be appended."""
    assert check_append(columns(vector=spark.ArrayType(spark.DoubleType()), id=spark.IntegerType()), TABLE) == TABLE


@pytest.mark.parametrize(
    "sent, words",
    [
        (columns(id=spark.LongType(), more=spark.LongType()), "no column more"),
        (columns(id=spark.StringType()), "Column id is string, and the table's is int64"),
        (columns(id=spark.LongType(), vector=spark.FloatType()), "Column vector is float"),
        (columns(text=spark.StringType()), "Column id of the table is required"),
    ],
)
def test_append_error_names_the_first_incompatible_column(sent: spark.StructType, words: str) -> None:
    """The error names the first column that cannot be appended."""
    with pytest.raises(BadRequest, match=words):
        check_append(sent, TABLE)


def test_too_large_numbers_and_required_nulls_are_refused() -> None:
    """A number that is too large, and NULL in a required column, are refused; a column that is not sent is NULL."""
    narrow = pa.schema([pa.field("id", pa.int8(), nullable=False), pa.field("text", pa.string())])

    with pytest.raises(BadRequest, match="does not fit int8"):
        as_schema(pa.record_batch({"id": [1000]}), narrow)
    with pytest.raises(BadRequest, match="is required"):
        as_schema(pa.record_batch({"id": pa.array([None], pa.int64())}), narrow)
    assert as_schema(pa.record_batch({"id": [1]}), narrow).to_pylist() == [{"id": 1, "text": None}]


@pytest.mark.parametrize(
    "source, target, fit",
    [
        (pa.int64(), pa.float32(), True),
        (pa.string(), pa.int64(), False),
        (pa.int64(), pa.string(), False),
        (pa.string(), pa.large_string(), True),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), True),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64())]), True),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int64())]), False),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), True),
        (pa.string(), pa.dictionary(pa.int32(), pa.string()), True),
        (pa.bool_(), pa.int8(), False),
    ],
)
def test_types_are_converted_only_within_their_family(source: pa.DataType, target: pa.DataType, fit: bool) -> None:
    """A type is written as another one only within its family, and structs only with the same fields."""
    assert fits(source, target) is fit
