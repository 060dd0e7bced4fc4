# SPDX-License-Identifier: Apache-2.0
"""Tables of the server as DataFrames, Iceberg or Lance.

A name whose catalog the session has is an Iceberg table; any other name is a Lance table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.names import display
from limnos.spark.lance.server_access import SOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession


def table(
    spark: SparkSession,
    name: str,
    /,
    *,
    columns: Sequence[str] | None = None,
    version: int | None = None,
    tag: str | None = None,
) -> DataFrame:
    """Return a table as a DataFrame: `main.raw.nyc.flights` of a session's catalog, or `lance.ml.text.docs`.

    `columns` are the columns to read. `version` and `tag` select a version of the table (time travel); for an Iceberg
    table `version` is a snapshot id, and `tag` is a branch or tag.
    """
    parts = display.parse(name)
    if spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) is None:
        return _lance_table(spark, name, columns=columns, version=version, tag=tag)
    reader = spark.read
    for key, value in (("snapshot-id", version), ("tag", tag)):
        if value is not None:
            reader = reader.option(key, str(value))
    frame = reader.table(".".join(map(display.quote_part, parts)))
    return frame if columns is None else frame.select(*[display.quote_part(each) for each in columns])


def _lance_table(
    spark: SparkSession, name: str, *, columns: Sequence[str] | None, version: int | None, tag: str | None
) -> DataFrame:
    reader = spark.read.format(SOURCE)
    column_names_json = None if columns is None else msgspec.json.encode(list(columns)).decode()
    for key, value in (("columns", column_names_json), ("version", version), ("tag", tag)):
        if value is not None:
            reader = reader.option(key, str(value))
    return reader.load(name)
