# SPDX-License-Identifier: Apache-2.0
"""Policy types in the order of the form, each with an example of its content.

Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.http.console.sheets import Sheet, SheetCell, SheetColumn


class PolicyExample(NamedTuple):
    """A policy type with an example of valid content, and the effect of the example."""

    policy_type: str
    content: str
    words: str


POLICY_EXAMPLES: Final = (
    PolicyExample(
        "system_iceberg_table_maintenance",
        '{"targetFileSizeBytes": 134217728, "quietHours": ["22:00-06:00 UTC"]}',
        "Rewrites small files and manifests, in these hours only.",
    ),
    PolicyExample(
        "system_iceberg_compaction",
        '{"minDeleteFileNumber": 5}',
        "Rewrites files of a table with so many delete files.",
    ),
    PolicyExample(
        "system_iceberg_snapshot_expiration",
        '{"olderThanDays": 30, "retainLast": 10}',
        "Expires older snapshots, but not the last ten.",
    ),
    PolicyExample(
        "system_iceberg_orphan_file_removal",
        '{"olderThanDays": 7}',
        "Deletes files that no snapshot names, after a week.",
    ),
    PolicyExample(
        "limnos-row-retention",
        '{"column": "created_at", "olderThanDays": 365}',
        "Deletes rows whose column is older than a year.",
    ),
    PolicyExample(
        "custom",
        '{"supportedObjectTypes": ["TABLE"], "customRules": {"review": "yearly"}}',
        "The server stores it for other programs.",
    ),
)


def type_text(policy_type: str) -> str:
    """Return the name of a policy type for display, such as `snapshot expiration`."""
    short = policy_type.removeprefix("system_iceberg_").removeprefix("limnos-")
    return short.replace("_", " ").replace("-", " ") if short != policy_type else policy_type


def examples_sheet() -> Sheet:
    """Return the list of the examples for the page of policies."""
    columns = (SheetColumn("Type"), SheetColumn("Content", is_code=True), SheetColumn("Meaning", hides=True))
    rows = tuple(
        (SheetCell(type_text(each.policy_type)), SheetCell(each.content), SheetCell(each.words))
        for each in POLICY_EXAMPLES
    )
    return Sheet("Examples of content", columns, rows)
