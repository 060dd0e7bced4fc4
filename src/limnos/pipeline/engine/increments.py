# SPDX-License-Identifier: Apache-2.0
"""Increments: new or changed rows of a table between two snapshots, or the reason for a full read.

Selects the kind of read by the operations of the snapshots in between. Must not know steps. Iceberg's incremental read
returns only appended files and ignores other changes, so the operations are examined first:

- only appends (and rewrites that change no row): Iceberg's incremental read;
- format v3: rows that changed after the start, by row lineage;
- else the changelog, except after deletes by delete files, with columns that cannot be compared, or with its own names.

Deleted rows are in no increment.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from limnos.names import display, engine
from limnos.names.columns import CHANGE_COLUMNS
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.changes import quote_column
from limnos.pipeline.engine.merging import comparable
from limnos.pipeline.engine.metadata import TableMetadata, TableSnapshot, require_metadata

_ADDING = frozenset({"append", "replace"})
_LINEAGE_VERSION = 3
_DELETE_FILES = ("added-delete-files", "added-position-deletes", "added-equality-deletes", "added-dvs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment:
    """New and changed rows, or the reason for a full read.

    `only_new`: rows were added and none changed, so they may be appended to earlier results.
    """

    frame: DataFrame | None = None
    whole_because: str | None = None
    only_new: bool = False
    is_empty: bool = False
    """Whether nothing has changed."""


def increment(spark: SparkSession, table: Parts, *, since: int | None, until: int | None) -> Increment:
    """Return the rows of `table` that are new or changed at the snapshot `until` compared with `since`."""
    name = display.render(table)
    if since is None:
        return Increment(whole_because=f"{name} was not read before")
    metadata = require_metadata(spark, table)
    between, reason = _between(metadata, since=since, until=until)
    if reason is not None:
        return Increment(whole_because=f"{name}: {reason}")
    if not between:
        empty = _as_of(spark, table, snapshot=since).where(f.lit(False))
        return Increment(frame=empty, only_new=True, is_empty=True)
    if all(each.operation in _ADDING for each in between):
        return Increment(frame=_appended_rows(spark, table, since=since, until=until), only_new=True)
    start = metadata.snapshot(since)
    if metadata.format_version >= _LINEAGE_VERSION and start is not None and start.first_row_id is not None:
        return Increment(frame=_by_lineage(spark, table, until=until, after=start.sequence_number))
    if any(int(each.summary.get(key, "0")) for each in between for key in _DELETE_FILES):
        return Increment(
            whole_because=(
                f"{name}: rows were deleted by delete files (merge-on-read) since, which a changelog can't represent;"
                " with format version 3 it can"
            )
        )
    frame = _by_changelog(spark, table, since=since, until=until)
    if frame is None:
        return Increment(
            whole_because=(
                f"{name}: rows were changed since, and a changelog can't have its columns (maps, variants, "
                f"{', '.join(sorted(CHANGE_COLUMNS))})"
            )
        )
    return Increment(frame=frame)


def _between(metadata: TableMetadata, *, since: int, until: int | None) -> tuple[Sequence[TableSnapshot], str | None]:
    """Return the snapshots after `since` up to `until`, newest first; or the reason why `since` is not an ancestor."""
    chain: list[TableSnapshot] = []
    for each in metadata.ancestors(until):
        if each.snapshot_id == since:
            return chain, None
        chain.append(each)
    if metadata.snapshot(since) is None:
        return (), "the snapshot read last time has expired, or the table was replaced"
    return (
        (),
        "it was rolled back or rewritten since: the snapshot read last time is not an ancestor of the current one",
    )


def _as_of(spark: SparkSession, table: Parts, *, snapshot: int) -> DataFrame:
    return spark.sql(f"SELECT * FROM {engine.render_spark(table)} VERSION AS OF {snapshot}")


def _appended_rows(spark: SparkSession, table: Parts, *, since: int, until: int | None) -> DataFrame:
    reader = spark.read.option("start-snapshot-id", str(since)).option("end-snapshot-id", str(until))
    return reader.table(engine.render_spark(table))


def _by_lineage(spark: SparkSession, table: Parts, *, until: int | None, after: int) -> DataFrame:
    name = engine.render_spark(table)
    return spark.sql(f"SELECT * FROM {name} VERSION AS OF {until} WHERE _last_updated_sequence_number > {after}")


def _by_changelog(spark: SparkSession, table: Parts, *, since: int, until: int | None) -> DataFrame | None:
    columns = spark.table(engine.render_spark(table)).schema
    if not all(comparable(each.dataType) and each.name.lower() not in CHANGE_COLUMNS for each in columns.fields):
        return None
    view = f"limnos_changes_{uuid.uuid4().hex}"
    catalog, below = engine.render_spark(table[:1]), engine.render_spark(table[1:])
    spark.sql(
        f"CALL {catalog}.system.create_changelog_view(table => '{_escape_text(below)}', changelog_view => '{view}', "
        f"options => map('start-snapshot-id', '{since}', 'end-snapshot-id', '{until}'), net_changes => true)"
    )
    changes = spark.table(view)
    entries = [f.col(quote_column(each)) for each in changes.columns if each not in CHANGE_COLUMNS]
    return changes.where(f.col("_change_type") == "INSERT").select(*entries)


def _escape_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
