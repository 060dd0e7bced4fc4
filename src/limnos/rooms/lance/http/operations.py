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
    ProtocolOperation(method="POST", path=f"{_SPACE}/create", call="create_namespace"),
    ProtocolOperation(method="GET", path=f"{_SPACE}/list", call="list_namespaces"),
    ProtocolOperation(method="POST", path=f"{_SPACE}/describe", call="describe_namespace"),
    ProtocolOperation(method="POST", path=f"{_SPACE}/drop", call="drop_namespace"),
    ProtocolOperation(method="POST", path=f"{_SPACE}/exists", call="namespace_exists", answers="nothing"),
    ProtocolOperation(method="GET", path=f"{_SPACE}/table/list", call="list_tables"),
    ProtocolOperation(method="GET", path="/table", call="list_all_tables", answers="ids"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/register", call="register_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/describe", call="describe_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/exists", call="table_exists", answers="nothing"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/drop", call="drop_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/deregister", call="deregister_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/declare", call="declare_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/create-empty", call="declare_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/create", call="create_table", takes="rows"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/rename", call="rename_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/restore", call="restore_table"),
    ProtocolOperation(
        method="POST",
        path=f"{_TABLE}/schema_metadata/update",
        call="update_table_schema_metadata",
        answers="metadata",
        takes="map",
    ),
    ProtocolOperation(method="POST", path=f"{_TABLE}/update_field_metadata", call="update_field_metadata"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/stats", call="get_table_stats"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/insert", call="insert_into_table", takes="rows"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/merge_insert", call="merge_insert_into_table", takes="rows"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/update", call="update_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/delete", call="delete_from_table"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/query", call="query_table", answers="data"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/count_rows", call="count_table_rows", answers="count"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/explain_plan", call="explain_table_query_plan", answers="text"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/analyze_plan", call="analyze_table_query_plan", answers="text"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/add_columns", call="alter_table_add_columns"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/alter_columns", call="alter_table_alter_columns"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/drop_columns", call="alter_table_drop_columns"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/backfill_column", call="alter_table_backfill_columns", status=202),
    ProtocolOperation(method="POST", path=f"{_TABLE}/create_index", call="create_table_index"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/create_scalar_index", call="create_table_scalar_index"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/index/list", call="list_table_indices"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/index/{{index_name}}/stats", call="describe_table_index_stats"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/index/{{index_name}}/drop", call="drop_table_index"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/tags/list", call="list_table_tags"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/tags/version", call="get_table_tag_version"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/tags/create", call="create_table_tag"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/tags/update", call="update_table_tag"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/tags/delete", call="delete_table_tag"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/branches/list", call="list_table_branches"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/branches/create", call="create_table_branch"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/branches/delete", call="delete_table_branch"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/version/list", call="list_table_versions"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/version/create", call="create_table_version"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/version/describe", call="describe_table_version"),
    ProtocolOperation(method="POST", path=f"{_TABLE}/version/delete", call="batch_delete_table_versions"),
    ProtocolOperation(method="POST", path="/table/version/batch-create", call="batch_create_table_versions"),
    ProtocolOperation(method="POST", path="/table/batch-commit", call="batch_commit_tables"),
    ProtocolOperation(method="POST", path="/transaction/{id}/describe", call="describe_transaction"),
    ProtocolOperation(method="POST", path="/transaction/{id}/alter", call="alter_transaction"),
    ProtocolOperation(method="POST", path=f"{_VIEW}/create", call="create_materialized_view", status=201),
    ProtocolOperation(method="POST", path=f"{_VIEW}/refresh", call="refresh_materialized_view", status=202),
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
