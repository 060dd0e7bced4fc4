# SPDX-License-Identifier: Apache-2.0
"""The table of the protocol's operations: path, method of the interface, kind of body and kind of response.

Must not know implementations: it is for adapters of Lance's interface. The server's own routes are in `protocol`.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

RequestBodyForm = Literal["fields", "rows", "map"]
ResponseForm = Literal["fields", "nothing", "count", "text", "data", "metadata", "ids"]


class ProtocolOperation(NamedTuple):
    """An operation of Lance REST. `takes` is the kind of body (JSON fields, an Arrow stream of rows, or a bare map),
    `answers` the kind of response, by default fields.
    """

    method: str
    path: str
    call: str
    answers: ResponseForm = "fields"
    takes: RequestBodyForm = "fields"
    status: int = 200


_SPACE, _TABLE, _VIEW = "/namespace/{id}", "/table/{id}", "/materialized_view/{id}"
OPERATIONS: Final = (
    ProtocolOperation("POST", f"{_SPACE}/create", "create_namespace"),
    ProtocolOperation("GET", f"{_SPACE}/list", "list_namespaces"),
    ProtocolOperation("POST", f"{_SPACE}/describe", "describe_namespace"),
    ProtocolOperation("POST", f"{_SPACE}/drop", "drop_namespace"),
    ProtocolOperation("POST", f"{_SPACE}/exists", "namespace_exists", "nothing"),
    ProtocolOperation("GET", f"{_SPACE}/table/list", "list_tables"),
    ProtocolOperation("GET", "/table", "list_all_tables", "ids"),
    ProtocolOperation("POST", f"{_TABLE}/register", "register_table"),
    ProtocolOperation("POST", f"{_TABLE}/describe", "describe_table"),
    ProtocolOperation("POST", f"{_TABLE}/exists", "table_exists", "nothing"),
    ProtocolOperation("POST", f"{_TABLE}/drop", "drop_table"),
    ProtocolOperation("POST", f"{_TABLE}/deregister", "deregister_table"),
    ProtocolOperation("POST", f"{_TABLE}/declare", "declare_table"),
    ProtocolOperation("POST", f"{_TABLE}/create-empty", "declare_table"),
    ProtocolOperation("POST", f"{_TABLE}/create", "create_table", takes="rows"),
    ProtocolOperation("POST", f"{_TABLE}/rename", "rename_table"),
    ProtocolOperation("POST", f"{_TABLE}/restore", "restore_table"),
    ProtocolOperation(
        "POST", f"{_TABLE}/schema_metadata/update", "update_table_schema_metadata", "metadata", takes="map"
    ),
    ProtocolOperation("POST", f"{_TABLE}/update_field_metadata", "update_field_metadata"),
    ProtocolOperation("POST", f"{_TABLE}/stats", "get_table_stats"),
    ProtocolOperation("POST", f"{_TABLE}/insert", "insert_into_table", takes="rows"),
    ProtocolOperation("POST", f"{_TABLE}/merge_insert", "merge_insert_into_table", takes="rows"),
    ProtocolOperation("POST", f"{_TABLE}/update", "update_table"),
    ProtocolOperation("POST", f"{_TABLE}/delete", "delete_from_table"),
    ProtocolOperation("POST", f"{_TABLE}/query", "query_table", "data"),
    ProtocolOperation("POST", f"{_TABLE}/count_rows", "count_table_rows", "count"),
    ProtocolOperation("POST", f"{_TABLE}/explain_plan", "explain_table_query_plan", "text"),
    ProtocolOperation("POST", f"{_TABLE}/analyze_plan", "analyze_table_query_plan", "text"),
    ProtocolOperation("POST", f"{_TABLE}/add_columns", "alter_table_add_columns"),
    ProtocolOperation("POST", f"{_TABLE}/alter_columns", "alter_table_alter_columns"),
    ProtocolOperation("POST", f"{_TABLE}/drop_columns", "alter_table_drop_columns"),
    ProtocolOperation("POST", f"{_TABLE}/backfill_column", "alter_table_backfill_columns", status=202),
    ProtocolOperation("POST", f"{_TABLE}/create_index", "create_table_index"),
    ProtocolOperation("POST", f"{_TABLE}/create_scalar_index", "create_table_scalar_index"),
    ProtocolOperation("POST", f"{_TABLE}/index/list", "list_table_indices"),
    ProtocolOperation("POST", f"{_TABLE}/index/{{index_name}}/stats", "describe_table_index_stats"),
    ProtocolOperation("POST", f"{_TABLE}/index/{{index_name}}/drop", "drop_table_index"),
    ProtocolOperation("POST", f"{_TABLE}/tags/list", "list_table_tags"),
    ProtocolOperation("POST", f"{_TABLE}/tags/version", "get_table_tag_version"),
    ProtocolOperation("POST", f"{_TABLE}/tags/create", "create_table_tag"),
    ProtocolOperation("POST", f"{_TABLE}/tags/update", "update_table_tag"),
    ProtocolOperation("POST", f"{_TABLE}/tags/delete", "delete_table_tag"),
    ProtocolOperation("POST", f"{_TABLE}/branches/list", "list_table_branches"),
    ProtocolOperation("POST", f"{_TABLE}/branches/create", "create_table_branch"),
    ProtocolOperation("POST", f"{_TABLE}/branches/delete", "delete_table_branch"),
    ProtocolOperation("POST", f"{_TABLE}/version/list", "list_table_versions"),
    ProtocolOperation("POST", f"{_TABLE}/version/create", "create_table_version"),
    ProtocolOperation("POST", f"{_TABLE}/version/describe", "describe_table_version"),
    ProtocolOperation("POST", f"{_TABLE}/version/delete", "batch_delete_table_versions"),
    ProtocolOperation("POST", "/table/version/batch-create", "batch_create_table_versions"),
    ProtocolOperation("POST", "/table/batch-commit", "batch_commit_tables"),
    ProtocolOperation("POST", "/transaction/{id}/describe", "describe_transaction"),
    ProtocolOperation("POST", "/transaction/{id}/alter", "alter_transaction"),
    ProtocolOperation("POST", f"{_VIEW}/create", "create_materialized_view", status=201),
    ProtocolOperation("POST", f"{_VIEW}/refresh", "refresh_materialized_view", status=202),
)
NUMBERS: Final = frozenset({"limit"})
FLAGS: Final = frozenset(
    {
        "include_declared",
        "descending",
        "with_table_uri",
        "load_detailed_metadata",
        "check_declared",
        "when_matched_update_all",
        "when_not_matched_insert_all",
        "when_not_matched_by_source_delete",
        "use_index",
    }
)
MAPS: Final = frozenset({"properties", "storage_options"})
REPEATED: Final = frozenset({"on"})
"""Query parameters that may be repeated. The sets above list the parameters of other types than string."""
TEXTS: Final = frozenset(
    {
        "delimiter",
        "page_token",
        "branch",
        "mode",
        "when_matched_update_all_filt",
        "when_not_matched_by_source_delete_filt",
        "timeout",
    }
)
PARAMETERS: Final = NUMBERS | FLAGS | MAPS | REPEATED | TEXTS
"""All query parameters of the protocol."""
