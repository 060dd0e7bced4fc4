# SPDX-License-Identifier: Apache-2.0
"""Previews: a request for the first rows of an object, and the rows.

Pure values, the same for every format.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.model.errors import BadRequest

ROWS_MAX: Final = 200
COLUMNS_MAX: Final = 60
ANSWER_BYTES_MAX: Final = 1 << 20


class PreviewRequest(NamedTuple):
    """A request for the first rows of an object: a row limit, columns, and a snapshot (of a Lance table: version), by
    default the current one.

    If no columns are named, the first `COLUMNS_MAX` are returned.
    """

    rows: int = 100
    columns: tuple[str, ...] = ()
    snapshot_id: int | None = None

    def check(self) -> None:
        """Raise BadRequest if the requested rows or columns exceed the limits."""
        if not 1 <= self.rows <= ROWS_MAX:
            raise BadRequest(f"A preview must have 1 to {ROWS_MAX} rows, not {self.rows}")
        if len(self.columns) > COLUMNS_MAX:
            raise BadRequest(f"A preview may have at most {COLUMNS_MAX} columns: name fewer")


class PreviewColumn(NamedTuple):
    """A column of a preview. `type` is as in the table's schema."""

    name: str
    type: object
    is_masked: bool = False


class TablePreview(NamedTuple):
    """The first rows of a table. `is_complete` is true if these are all rows visible to the caller.

    `columns_left_out` is the number of columns that are not in the preview: not requested, or above the limit.
    """

    columns: tuple[PreviewColumn, ...]
    rows: list[list[object]]
    snapshot_id: int | None
    is_complete: bool
    is_restricted: bool
    columns_left_out: int
