# SPDX-License-Identifier: Apache-2.0
"""Formats of the values of records: JSON, Avro, text and bytes, as columns, with malformed records marked.

Must not know brokers or offsets. A record is malformed if its value does not fit the format or the schema, or if a text
is not UTF-8. A record without a value (a tombstone) has NULL in all columns of the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from limnos.names.columns import case_twins
from limnos.pipeline.engine.naming import BAD, FILE, quote_identifier
from limnos.pipeline.engine.sources.values import SourceReadRequest, first_line
from limnos.pipeline.reader_options import VALUE_OPTIONS
from limnos.pipeline.source_declarations import Kafka, RecordFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDS: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
    ]
)
"""The columns of records as Spark's connector reads them."""
_VALUE, _TEXT = "_limnos_value", "_limnos_record"
_HEADER_BYTES: Final = 5
"""The bytes before a value in the wire format of registries: zero, and the schema's id in four bytes."""


def decode_records(
    request: SourceReadRequest, kafka: Kafka, *, records: DataFrame, schemas: Mapping[int, str] | None = None
) -> DataFrame:
    """Return the source's columns, and `BAD` and `FILE` of malformed records.

    `schemas` are those of the registry by id, the newest last. Raises SourceFailed for an invalid schema, or for two
    columns of one name.
    """
    text = F.col("value").cast("string")
    if kafka.format is RecordFormat.JSON:
        parsed, bad = _json(request, kafka, text=text)
    elif kafka.format is RecordFormat.AVRO:
        parsed, bad = _avro(kafka, schemas=schemas)
    elif kafka.format is RecordFormat.STRING:
        parsed, bad = F.struct(text.alias("value")), ~F.is_valid_utf8(text)
    else:
        parsed, bad = F.struct(F.col("value").alias("value")), F.lit(False)
    try:
        valued = records.withColumn(_VALUE, parsed)
        kind = valued.schema[_VALUE].dataType
        names = [each for each in kind.fieldNames() if each != BAD] if isinstance(kind, StructType) else []
        values = [F.col(_VALUE)[name].alias(name) for name in names] or [F.col(_VALUE).alias("value")]
        further = [_record_column(column).alias(name) for column, name in kafka.columns.items()]
        whole = valued.select(*values, *further, _text(kafka, bad).alias(BAD), _place().alias(FILE))
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(f"its values cannot be read by the schema: {first_line(error)}") from None
    _check_names(request, [each for each in whole.columns if each not in (BAD, FILE)])
    return whole


def newest_of_each_key(records: DataFrame) -> DataFrame:
    """Return the newest record of each key, as a compacted topic has it; all records without a key.

    In one partition the offset decides. A key in several partitions has the record of the latest time.
    """
    from pyspark.sql import Window  # noqa: PLC0415

    keyed = records.where(F.col("key").isNotNull())
    in_partition = Window.partitionBy("key", "partition").orderBy(F.col("offset").desc())
    over_all = Window.partitionBy("key").orderBy(F.col("timestamp").desc(), F.col("partition").desc())
    for window in (in_partition, over_all):
        keyed = keyed.withColumn(_TEXT, F.row_number().over(window)).where(F.col(_TEXT) == 1).drop(_TEXT)
    return keyed.unionAll(records.where(F.col("key").isNull()))


def _json(request: SourceReadRequest, kafka: Kafka, *, text: Column) -> tuple[Column, Column]:
    schema = request.declared(kafka.schema or "")
    options = {name: value for name, value in kafka.options.items() if name in VALUE_OPTIONS}
    reading = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
    parsed = F.from_json(text, StructType([*schema.fields]).add(BAD, StringType()), reading)
    bad = ~F.is_valid_utf8(text) | F.col(_VALUE).isNull() | F.col(_VALUE)[BAD].isNotNull()
    return parsed, bad


def _avro(kafka: Kafka, *, schemas: Mapping[int, str] | None) -> tuple[Column, Column]:
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415 - needs archives that may not be loaded yet

    if schemas is None:
        writer = kafka.schema or ""
        parsed = from_avro(F.col("value"), writer, _avro_options(writer))
        return parsed, _is_null(writer)
    reader = kafka.schema or list(schemas.values())[-1]
    payload = F.expr(f"substring(value, {_HEADER_BYTES + 1})")
    number = F.conv(F.hex(F.substring(F.col("value"), 2, 4)), 16, 10).cast("bigint")
    is_framed = (F.substring(F.col("value"), 1, 1) == F.lit(bytearray(1))) & (F.length("value") >= _HEADER_BYTES)
    cases = [
        (is_framed & (number == F.lit(each)), from_avro(payload, writer, _avro_options(reader)))
        for each, writer in schemas.items()
    ]
    parsed = reduce(lambda rest, case: F.when(*case).otherwise(rest), cases[1:], F.when(*cases[0]))
    return parsed, _is_null(reader)


def _avro_options(reader: str) -> dict[str, str]:
    return {"mode": "PERMISSIVE", "avroSchema": _add_default_field(reader)}


def _add_default_field(schema: str) -> str:
    """Add a field with a default to a record's schema. A value that cannot be read has NULL there, as in all fields."""
    entries = json.loads(schema)
    if not isinstance(entries, dict) or entries.get("type") != "record" or not isinstance(entries.get("fields"), list):
        return schema
    return json.dumps({**entries, "fields": [*entries["fields"], {"name": BAD, "type": "int", "default": 1}]})


def _is_null(reader: str) -> Column:
    value = F.col(_VALUE)
    return value.isNull() if _add_default_field(reader) == reader else value.isNull() | value[BAD].isNull()


def _text(kafka: Kafka, bad: Column) -> Column:
    """Return the text of a malformed record, in Base64 if it is not a text; NULL for a valid record."""
    text = F.col("value").cast("string")
    is_text = kafka.format in (RecordFormat.JSON, RecordFormat.STRING)
    display_text = F.when(F.is_valid_utf8(text), text).otherwise(F.base64("value")) if is_text else F.base64("value")
    broken = F.col("value").isNotNull() & bad
    if "key" in kafka.columns:
        broken = broken | (F.col("key").isNotNull() & ~F.is_valid_utf8(F.col("key").cast("string")))
    return F.when(broken, F.coalesce(display_text, F.lit("")))


def _place() -> Column:
    return F.concat_ws("/", F.col("topic"), F.col("partition"), F.col("offset"))


_COLUMNS: Final[Mapping[str, Callable[[], Column]]] = {
    "key": lambda: F.col("key").cast("string"),
    "tombstone": lambda: F.col("value").isNull(),
}


def _record_column(name: str) -> Column:
    return _COLUMNS.get(name, lambda: F.col(quote_identifier((name,))))()


def _check_names(request: SourceReadRequest, names: Sequence[str]) -> None:
    twin = next(case_twins(names), None)
    if twin is not None:
        raise request.failed(
            f"its value has the column {twin[0]!r}, and `columns` adds {twin[1]!r}: write `{twin[1]} as` and another"
            " name."
        )
