# SPDX-License-Identifier: Apache-2.0
"""Retention of rows by a column: the rule of a policy, and the day before which rows of a table are deleted.

Pure. Rows are deleted by whole days in UTC, so that partitions by day are dropped without rewriting their files, and a
second run on the same day deletes nothing.
"""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

import msgspec

from limnos.model.errors import BadRequest
from limnos.rooms.maintenance.formats.table_metadata import TableMetadata

RETENTION: Final = "retention"
COLUMN_TYPES: Final = ("date", "timestamp", "timestamptz")
_DAY_MS: Final = 86_400_000


class RetentionRule(msgspec.Struct, frozen=True, array_like=True):
    """A rule that deletes the rows whose value in `column` (a date or timestamp) is more than `days` days ago."""

    column: str
    days: int


class RetentionTerms(NamedTuple):
    """The column, its type, and the UTC day before which rows are deleted."""

    column: str
    column_type: str
    before: str

    def options(self) -> dict[str, str]:
        """Encode the terms as options of a row retention operation, for its executor."""
        return {"column": self.column, "column-type": self.column_type, "before": self.before}


def retention_terms(metadata: TableMetadata, rule: RetentionRule, *, now_ms: int) -> RetentionTerms:
    """Return the column, and the day before which a rule deletes the table's rows at the time `now_ms`.

    Raises BadRequest if the table has no such column, or if its type is not a date or timestamp.
    """
    schema = next((each for each in metadata.schemas or () if each.schema_id == metadata.current_schema_id), None)
    field = next((each for each in (() if schema is None else schema.fields) if each.name == rule.column), None)
    if field is None:
        raise BadRequest(f"The table has no column {rule.column}: name a top-level column in the policy")
    if field.type not in COLUMN_TYPES:
        type_text = field.type if isinstance(field.type, str) else "nested"
        raise BadRequest(
            f"Column {rule.column} has type {type_text}: rows are deleted by a column of type {', '.join(COLUMN_TYPES)}"
        )
    day = dt.date(1970, 1, 1) + dt.timedelta(days=max(0, now_ms // _DAY_MS - rule.days))
    return RetentionTerms(rule.column, field.type, day.isoformat())
