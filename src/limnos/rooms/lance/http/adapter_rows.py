# SPDX-License-Identifier: Apache-2.0
"""Rows of a directory that the adapter serves: it uses the handlers of the server's own routes, and creates tables with
rows.

Must not know stores.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest
from limnos.rooms.lance.http import changes, indices, queries, rows
from limnos.rooms.lance.http.identifiers import path_of
from limnos.rooms.lance.http.namespaces import parse_choice
from limnos.rooms.lance.services.directory_tables import FolderTables
from limnos.rooms.lance.services.table_creation import MODES

Handler = Callable[[Request, FolderTables], Awaitable[Response]]


async def table_create(request: Request, folders: FolderTables) -> Response:
    """Create a table from the rows in the body, at the location that the directory's layout determines.

    Raises BadRequest without an identifier, for an unknown mode, and for a location in the request.
    """
    levels = path_of(request)
    mode = parse_choice(request.query("mode"), MODES, field="mode")
    if not levels:
        raise BadRequest("Name a table")
    if rows.LOCATION in request.headers:
        raise BadRequest("The layout of the directory determines a table's location: leave out the location")
    body = request.stream(bytes_max=folders.limits.body_bytes_max)
    table = await folders.create(levels, mode=mode, properties=rows.properties_of(request), body=body)
    response: dict[str, object] = {"location": table.table.uri, "properties": table.table.entry.properties}
    if table.written is not None:
        response |= {"version": table.written.version, "transaction_id": table.written.transaction_id}
    return json_response(response)


ROWS: Final[Mapping[str, Handler]] = {
    "create_table": table_create,
    "insert_into_table": rows.rows_insert,
    "merge_insert_into_table": rows.rows_merge,
    "count_table_rows": rows.rows_count,
    "update_table": changes.rows_update,
    "delete_from_table": changes.rows_delete,
    "restore_table": changes.table_restore,
    "update_table_schema_metadata": changes.schema_metadata_update,
    "update_field_metadata": changes.field_metadata_update,
    "alter_table_add_columns": changes.columns_add,
    "alter_table_alter_columns": changes.columns_alter,
    "alter_table_drop_columns": changes.columns_drop,
    "get_table_stats": changes.table_stats,
    "describe_transaction": changes.transaction_describe,
    "alter_transaction": changes.transaction_alter,
    "query_table": queries.table_query,
    "explain_table_query_plan": queries.query_explain,
    "analyze_table_query_plan": queries.query_analyze,
    "create_table_index": indices.index_create,
    "create_table_scalar_index": indices.scalar_index_create,
    "list_table_indices": indices.indices_list,
    "describe_table_index_stats": indices.index_stats,
    "drop_table_index": indices.index_drop,
}
"""The handler for each operation of the interface on rows.

The directory's own implementation answers all other operations.
"""
