# SPDX-License-Identifier: Apache-2.0
"""The protocol's 54 operations with their numbers, names and paths from its document.

May import the standard library only: the list is the protocol's, independent of our routes.
"""

from __future__ import annotations

from typing import Final

_SPACE: Final = (
    "create_namespace",
    "list_namespaces",
    "describe_namespace",
    "drop_namespace",
    "namespace_exists",
    "list_tables",
)
_TABLE: Final = (
    "list_all_tables",
    "register_table",
    "describe_table",
    "table_exists",
    "drop_table",
    "deregister_table",
    "declare_table",
    "create_table",
    "rename_table",
    "restore_table",
    "update_table_schema_metadata",
    "update_field_metadata",
    "get_table_stats",
    "insert_into_table",
    "merge_insert_into_table",
    "update_table",
    "delete_from_table",
    "query_table",
    "count_table_rows",
    "explain_table_query_plan",
    "analyze_table_query_plan",
    "alter_table_add_columns",
    "alter_table_alter_columns",
    "alter_table_drop_columns",
    "alter_table_backfill_columns",
    "create_table_index",
    "create_table_scalar_index",
    "list_table_indices",
    "describe_table_index_stats",
    "drop_table_index",
    "list_table_tags",
    "get_table_tag_version",
    "create_table_tag",
    "update_table_tag",
    "delete_table_tag",
    "list_table_branches",
    "create_table_branch",
    "delete_table_branch",
    "list_table_versions",
    "create_table_version",
    "describe_table_version",
    "batch_delete_table_versions",
    "batch_create_table_versions",
    "batch_commit_tables",
    "describe_transaction",
    "alter_transaction",
    "create_materialized_view",
    "refresh_materialized_view",
)
SPACE_OPERATIONS: Final = _SPACE
TABLE_OPERATIONS: Final = _TABLE
OPERATIONS: Final = (*_SPACE, *_TABLE)
NUMBERS: Final = {name: number for number, name in enumerate(OPERATIONS, 1)}
"""The number of each operation in the protocol's list."""
