# SPDX-License-Identifier: Apache-2.0
"""A table's metadata as a value, and loaded from a session's catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from limnos.model.errors import NotFound
from limnos.names import engine
from limnos.pipeline.engine.metadata import (
    TableMetadata,
    TableSnapshot,
    is_classic,
    metadata_of,
    require_metadata,
    require_table,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOUND = msgspec.convert(
    {
        "table-uuid": "u",
        "format-version": 3,
        "current-schema-id": 7,
        "schemas": [{"schema-id": 7, "fields": []}],
        "snapshots": [
            {"snapshot-id": 1, "sequence-number": 1, "summary": {"operation": "append"}},
            {"snapshot-id": 2, "parent-snapshot-id": 1, "sequence-number": 2, "summary": {"operation": "delete"}},
            {"snapshot-id": 4, "parent-snapshot-id": 3, "sequence-number": 4, "first-row-id": 12},
        ],
        "refs": {"main": {"snapshot-id": 2, "type": "branch"}, "branch": {"snapshot-id": 4}},
    },
    TableMetadata,
)


def test_branch_ancestors_end_at_expired_snapshot() -> None:
    """The ancestors of a branch end at the first expired snapshot."""
    assert (FOUND.head(), FOUND.head("branch"), FOUND.head("none")) == (2, 4, None)
    assert [each.snapshot_id for each in FOUND.ancestors(FOUND.head())] == [2, 1]
    assert [each.snapshot_id for each in FOUND.ancestors(4)] == [4]
    assert [*FOUND.ancestors(None), *FOUND.ancestors(9)] == []
    assert [each.operation for each in FOUND.snapshots] == ["append", "delete", "append"]
    second = FOUND.snapshot(2)
    assert second is not None
    assert second.parent_snapshot_id == 1
    assert FOUND.snapshot(9) is None


def test_missing_specs_mean_unpartitioned_and_unsorted() -> None:
    """A table without partition specs and sort orders is neither partitioned nor sorted."""
    assert (FOUND.schema.schema_id, FOUND.spec.fields, FOUND.order.fields) == (7, (), ())


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_writes_of_another_session_are_visible(here: SparkSession, corner: tuple[str, ...]) -> None:
    """Writes of another session are visible; a missing table is None, or an error for callers that need it."""
    table = (*corner, "t x")
    name = engine.render_spark(table)
    here.sql(f"CREATE TABLE {name} (id BIGINT) PARTITIONED BY (bucket(4, id))")
    before = require_metadata(here, table)
    here.sql(f"INSERT INTO {name} VALUES (1)")
    after = metadata_of(here, table)

    assert is_classic(here)
    assert before.head() is None
    assert after is not None
    assert after.table_uuid == before.table_uuid
    assert [each.transform for each in after.spec.fields] == ["bucket[4]"]
    assert [each.operation for each in after.ancestors(after.head())] == ["append"]
    assert metadata_of(here, (*corner, "none")) is None
    with pytest.raises(NotFound, match="does not exist"):
        require_metadata(here, (*corner, "none"))


def test_branch_ancestors_in_a_circle_end() -> None:
    """Each snapshot is an ancestor once, also if an older release stored parents in a circle."""
    circle = (TableSnapshot(snapshot_id=1, parent_snapshot_id=2), TableSnapshot(snapshot_id=2, parent_snapshot_id=1))

    metadata = msgspec.structs.replace(FOUND, snapshots=circle)

    assert [each.snapshot_id for each in metadata.ancestors(2)] == [2, 1]


def test_loaded_table_has_the_columns_that_spark_reads(spark: SparkSession, place: tuple[str, ...]) -> None:
    """The columns of a loaded table, converted without a request, are those of a DataFrame that reads it."""
    table = (*place, "typed")
    name = engine.render_spark(table)
    spark.sql(
        f"CREATE TABLE {name} (id bigint NOT NULL COMMENT 'key', price decimal(12, 3), day date, at timestamp,"
        " local timestamp_ntz, `a.b` struct<x: int COMMENT 'inner', `y z`: array<string>>, m map<string, double>, raw"
        " binary, ok boolean, small float) TBLPROPERTIES ('format-version' = '3')"
    )

    assert require_table(spark, table).columns(spark, table) == spark.table(name).schema
