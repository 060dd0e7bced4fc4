# SPDX-License-Identifier: Apache-2.0
"""Names of columns that engines reserve, and names that differ by case alone.

Must not know schemas. Source: Iceberg's `MetadataColumns` and its changelog scans. Iceberg's Java library refuses to
read a column of a table with the name of a metadata column, in each format version and whatever its type. Names of
nested fields are free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

METADATA_COLUMNS: Final = frozenset(
    {"_file", "_pos", "_deleted", "_partition", "_spec_id", "_row_id", "_last_updated_sequence_number"}
)
"""Columns that Iceberg adds to each table. Spark and Trino cannot read a table's own column of such a name."""
CHANGE_COLUMNS: Final = frozenset({"_change_type", "_change_ordinal", "_commit_snapshot_id"})
"""Columns that Iceberg adds to the changes of a table. A table's own columns of these names can be read, but not its
changes.
"""


def is_reserved(name: str) -> bool:
    """Return whether rows of a table with a top-level column of this name could not be read, or its changes not.

    Case is ignored, as engines do that fold names.
    """
    return name.lower() in METADATA_COLUMNS or name.lower() in CHANGE_COLUMNS


def reserved_column_message(name: str) -> str:
    """Return the message for a query that makes a column of a reserved name."""
    what = "rows" if name.lower() in METADATA_COLUMNS else "changes"
    return (
        f"the column {name!r} has a name that Iceberg reserves, and engines could not read the table's {what}: rename"
        " it in the query with AS. If the table has the column already, rename it there too, with ALTER TABLE … RENAME"
        " COLUMN"
    )


def case_twins(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the earlier and the later name of each pair that is equal, or differs by case alone."""
    names_by_folded: dict[str, str] = {}
    for name in names:
        if name.lower() in names_by_folded:
            yield names_by_folded[name.lower()], name
        else:
            names_by_folded[name.lower()] = name
