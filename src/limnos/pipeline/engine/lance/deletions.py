# SPDX-License-Identifier: Apache-2.0
"""Deletion of rows of a Lance table's published version, by their addresses, as a part of a staged version.

Spark's tasks write the files that mark the rows as deleted, one task for each fragment. Must not know which rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance.fragment import FragmentMetadata
from pyspark.sql import functions as f

from limnos.names import display
from limnos.pipeline.engine.lance.reading import version_reader
from limnos.spark.lance.reading import ADDRESS, LanceTableFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.engine.lance.tables import LanceTarget

_DELETION: Final = "fragment bigint, remaining string"
_OFFSET_BITS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRows:
    """Fragments of which rows were deleted, with their new descriptions, and fragments without a row that is left."""

    updated: list[FragmentMetadata]
    removed: list[int]


def published_rows(spark: SparkSession, table: Parts, *, target: LanceTarget) -> DataFrame:
    """Return the rows of the version from which the staged one begins, with their addresses in the column `ADDRESS`."""
    return version_reader(spark, _published_files(target)).option("addresses", "true").load(display.render(table))


def delete_rows(addressed: DataFrame, *, target: LanceTarget) -> DeletedRows:
    """Mark rows as deleted, by the column `ADDRESS`. Each fragment has one task."""
    fragment = f.shiftrightunsigned(f.col(ADDRESS), _OFFSET_BITS)
    offset = f.col(ADDRESS).bitwiseAND(f.lit((1 << _OFFSET_BITS) - 1))
    addresses = addressed.select(fragment.alias("fragment"), offset.alias("row"))
    results = addresses.groupBy("fragment").applyInArrow(_task(_published_files(target)), _DELETION).collect()
    return DeletedRows(
        updated=[FragmentMetadata.from_json(row["remaining"]) for row in results if row["remaining"] is not None],
        removed=[int(row["fragment"]) for row in results if row["remaining"] is None],
    )


def _published_files(target: LanceTarget) -> LanceTableFiles:
    table = target.table
    return LanceTableFiles(table.location, table.base or 0, table.options)


def _task(files: LanceTableFiles) -> Callable[[pa.Table], pa.Table]:
    def delete(places: pa.Table) -> pa.Table:
        number = places.column("fragment")[0].as_py()
        fragment = files.open().get_fragment(number)
        if fragment is None:
            raise RuntimeError(f"the published version has no fragment {number}")
        remaining = fragment.delete_rows(sorted({*places.column("row").to_pylist()}))
        text = None if remaining is None else json.dumps(remaining.to_json())
        return pa.table({"fragment": pa.array([number], pa.int64()), "remaining": pa.array([text], pa.string())})

    return delete
