# SPDX-License-Identifier: Apache-2.0
"""Lance REST as a protocol: routes below `/lance/v1`, and below `/v1` for clients that expect a separate port for
Lance.

Has no business rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeVar

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import H, Route, Router
from limnos.model.errors import AlreadyExists, BadRequest, LimnosError, NotFound
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.lance.http import batches, changes, indices, namespaces, queries, references, rows, tables, versions
from limnos.rooms.lance.http.errors import error_response
from limnos.rooms.lance.http.identifiers import is_remote, place_of
from limnos.rooms.lance.http.unsupported_operations import unsupported_routes
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

ROOT: Final = "/lance/v1"
_FIRST: Final = frozenset({b"namespace", b"table", b"transaction", b"materialized_view"})
"""The second path segments of the protocol. Other paths below `/v1` belong to other protocols."""

OWN_PARAMETERS: Final = ("delimiter", "metalake")
"""The query parameters of every operation: the protocol's, and the metalake."""
DESCRIBE_FLAGS: Final = ("load_detailed_metadata", "check_declared")
"""Flags that the generated clients (lance_namespace_urllib3_client, lance-namespace-apache-client) send with each
description.

The same flags in the body take precedence.
"""

NamedError = TypeVar("NamedError", NotFound, AlreadyExists)
_BELOW: Final = re.compile("(?:Namespace|Table|View)(?: with same name)? (?:does not exist|already exists): ")
"""Prefixes of messages that end with a name below its catalog."""

_SPACE, _TABLE, _TRANSACTION = "/namespace/{namespace_id}", "/table/{table_id}", "/transaction/{transaction_id}"
_QUICK: tuple[Route[Handler], ...] = (
    Route(
        method="POST", path=f"{_SPACE}/create", handler=namespaces.namespace_create, operation="lance-create-namespace"
    ),
    Route(
        method="GET",
        path=f"{_SPACE}/list",
        handler=namespaces.namespaces_page,
        operation="lance-list-namespaces",
        query=("page_token", "limit"),
    ),
    Route(
        method="POST",
        path=f"{_SPACE}/describe",
        handler=namespaces.namespace_describe,
        operation="lance-describe-namespace",
    ),
    Route(method="POST", path=f"{_SPACE}/drop", handler=namespaces.namespace_drop, operation="lance-drop-namespace"),
    Route(
        method="POST", path=f"{_SPACE}/exists", handler=namespaces.namespace_exists, operation="lance-namespace-exists"
    ),
    Route(
        method="GET",
        path=f"{_SPACE}/table/list",
        handler=namespaces.namespace_tables,
        operation="lance-list-tables",
        query=("include_declared", "page_token", "limit"),
    ),
    Route(
        method="GET",
        path="/table",
        handler=tables.tables_all,
        operation="lance-list-all-tables",
        query=("include_declared", "page_token", "limit"),
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/declare",
        handler=tables.table_declare,
        operation="lance-declare-table",
        query=("dry_run",),
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/create-empty",
        handler=tables.table_declare,
        operation="lance-create-empty-table",
        query=("dry_run",),
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/register",
        handler=tables.table_register,
        operation="lance-register-table",
        query=("dry_run",),
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/describe",
        handler=tables.table_describe,
        operation="lance-describe-table",
        query=DESCRIBE_FLAGS,
        query_ignored=("with_table_uri",),
    ),
    Route(method="POST", path=f"{_TABLE}/exists", handler=tables.table_exists, operation="lance-table-exists"),
    Route(method="POST", path=f"{_TABLE}/drop", handler=tables.table_drop, operation="lance-drop-table", takes="any"),
    Route(
        method="POST",
        path=f"{_TABLE}/deregister",
        handler=tables.table_deregister,
        operation="lance-deregister-table",
        takes="any",
    ),
    Route(method="POST", path=f"{_TABLE}/rename", handler=tables.table_rename, operation="lance-rename-table"),
    Route(
        method="POST",
        path=f"{_TABLE}/version/list",
        handler=versions.versions_list,
        operation="lance-list-table-versions",
        query=("branch", "descending", "page_token", "limit"),
        takes="any",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/version/create",
        handler=versions.version_create,
        operation="lance-create-table-version",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/version/describe",
        handler=versions.version_describe,
        operation="lance-describe-table-version",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/version/delete",
        handler=versions.versions_delete,
        operation="lance-batch-delete-table-versions",
    ),
    Route(
        method="POST",
        path="/table/version/batch-create",
        handler=batches.versions_create,
        operation="lance-batch-create-table-versions",
    ),
    Route(
        method="POST", path="/table/batch-commit", handler=batches.tables_commit, operation="lance-batch-commit-tables"
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/tags/list",
        handler=references.tags_list,
        operation="lance-list-table-tags",
        query=("page_token", "limit"),
        takes="any",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/tags/version",
        handler=references.tag_version,
        operation="lance-get-table-tag-version",
    ),
    Route(
        method="POST", path=f"{_TABLE}/tags/create", handler=references.tag_create, operation="lance-create-table-tag"
    ),
    Route(
        method="POST", path=f"{_TABLE}/tags/update", handler=references.tag_update, operation="lance-update-table-tag"
    ),
    Route(
        method="POST", path=f"{_TABLE}/tags/delete", handler=references.tag_delete, operation="lance-delete-table-tag"
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/branches/list",
        handler=references.branches_list,
        operation="lance-list-table-branches",
        query=("page_token", "limit"),
        takes="any",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/branches/create",
        handler=references.branch_create,
        operation="lance-create-table-branch",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/branches/delete",
        handler=references.branch_delete,
        operation="lance-delete-table-branch",
    ),
)

_READS, _WRITES = (Action.TABLE_READ,), (Action.TABLE_COMMIT,)
_SLOW: tuple[Route[Handler], ...] = (
    Route(
        method="POST",
        path=f"{_TABLE}/create",
        handler=rows.table_create,
        operation="lance-create-table",
        query=("mode", "properties"),
        query_ignored=("storage_options",),
        takes="any",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/insert",
        handler=rows.rows_insert,
        operation="lance-insert-into-table",
        query=("mode", "branch"),
        takes="any",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/count_rows",
        handler=rows.rows_count,
        operation="lance-count-table-rows",
        asks=_READS,
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/merge_insert",
        handler=rows.rows_merge,
        operation="lance-merge-insert-into-table",
        query=(
            "on",
            "when_matched_update_all",
            "when_matched_update_all_filt",
            "when_not_matched_insert_all",
            "when_not_matched_by_source_delete",
            "when_not_matched_by_source_delete_filt",
            "use_index",
            "timeout",
            "branch",
        ),
        query_repeatable=("on",),
        takes="any",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/update",
        handler=changes.rows_update,
        operation="lance-update-table",
        asks=_WRITES,
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/delete",
        handler=changes.rows_delete,
        operation="lance-delete-from-table",
        asks=_WRITES,
    ),
    Route(method="POST", path=f"{_TABLE}/restore", handler=changes.table_restore, operation="lance-restore-table"),
    Route(
        method="POST",
        path=f"{_TABLE}/schema_metadata/update",
        handler=changes.schema_metadata_update,
        operation="lance-update-table-schema-metadata",
        query=("branch",),
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/update_field_metadata",
        handler=changes.field_metadata_update,
        operation="lance-update-field-metadata",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/add_columns",
        handler=changes.columns_add,
        operation="lance-alter-table-add-columns",
        query=("branch",),
        takes="any",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/alter_columns",
        handler=changes.columns_alter,
        operation="lance-alter-table-alter-columns",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/drop_columns",
        handler=changes.columns_drop,
        operation="lance-alter-table-drop-columns",
    ),
    Route(method="POST", path=f"{_TABLE}/stats", handler=changes.table_stats, operation="lance-get-table-stats"),
    Route(
        method="POST", path=f"{_TABLE}/create_index", handler=indices.index_create, operation="lance-create-table-index"
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/create_scalar_index",
        handler=indices.scalar_index_create,
        operation="lance-create-table-scalar-index",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/index/list",
        handler=indices.indices_list,
        operation="lance-list-table-indices",
        query=("page_token", "limit"),
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/index/{{index_name}}/stats",
        handler=indices.index_stats,
        operation="lance-describe-table-index-stats",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/index/{{index_name}}/drop",
        handler=indices.index_drop,
        operation="lance-drop-table-index",
        query=("branch",),
        takes="any",
    ),
    Route(
        method="POST",
        path=f"{_TRANSACTION}/describe",
        handler=changes.transaction_describe,
        operation="lance-describe-transaction",
    ),
    Route(
        method="POST",
        path=f"{_TRANSACTION}/alter",
        handler=changes.transaction_alter,
        operation="lance-alter-transaction",
    ),
    Route(
        method="POST", path=f"{_TABLE}/query", handler=queries.table_query, operation="lance-query-table", asks=_READS
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/explain_plan",
        handler=queries.query_explain,
        operation="lance-explain-table-query-plan",
        asks=_READS,
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/analyze_plan",
        handler=queries.query_analyze,
        operation="lance-analyze-table-query-plan",
        asks=_READS,
    ),
)
"""Operations on a table's rows. They have their own deadline, and bodies of rows are limited only by the settings."""
ROUTES: tuple[Route[Handler], ...] = (*_QUICK, *_SLOW)


_TAKEN: Final = ("tag", "branch", "index")
SERVER_VERSION: Final = (b"phalanx-version", b"0.3.0")
"""The header by which LanceDB's remote clients learn what a server serves: several vectors in one query since 0.2.0,
structured full-text queries since 0.3.0. Uploads in parts (0.4.0) and blobs (0.5.0) are not served.
"""


def _with_plain_errors(handler: Handler) -> Handler:
    """Wrap a handler so that a missing column, or a taken name, becomes 400 for LanceDB's clients.

    They treat any 404 about a table as a missing table, and retry a 409 endlessly.
    """

    async def answer(request: Request, ctx: Context) -> Response:
        try:
            response = await handler(request, ctx)
            response.headers = (*response.headers, SERVER_VERSION)
            return response
        except NotFound as error:
            if error.kind == "column" and is_remote(request):
                raise BadRequest(error.message) from error
            raise _with_catalog(error, request, ctx=ctx) from None
        except AlreadyExists as error:
            if error.kind in _TAKEN and is_remote(request):
                raise BadRequest(f"{error.kind.capitalize()} {error.message} already exists") from error
            raise _with_catalog(error, request, ctx=ctx) from None

    return answer


def _with_catalog(error: NamedError, request: Request, *, ctx: Context) -> NamedError:
    """Prefix the name in an error message with its catalog, as in the request's identifier: for Lance a catalog is the
    first namespace.
    """
    result = _BELOW.match(error.message)
    try:
        path = place_of(request, ctx).path
    except LimnosError:
        return error
    if result is None or not path:
        return error
    return error.with_message(f"{result[0]}{path[0]}.{error.message[result.end() :]}")


def _without_root(routes: Iterable[Route[Handler]]) -> tuple[Route[Handler], ...]:
    """Return copies of the routes of namespaces whose paths lack the identifier, for the root namespace.

    With the delimiter `.`, the clients' libraries drop the identifier of the root.
    """
    return tuple(
        route._replace(path=route.path.replace("/{namespace_id}", ""), operation=f"{route.operation}-root")
        for route in routes
        if route.path.startswith(_SPACE)
    )


class LanceRouter(Router[H]):
    """A router that ignores doubled slashes, and accepts each path with or without its first segment."""

    def find(self, segments: list[bytes]) -> tuple[dict[str, Route[H]], tuple[bytes, ...]] | None:
        """Return the routes at a path, by method, and its parameters; None if there are none."""
        normal_segments = _normalize_segments(segments)
        return None if normal_segments is None else super().find(normal_segments)

    def reach(self, segments: list[bytes]) -> int:
        """Return the number of leading segments that match."""
        normal_segments = _normalize_segments(segments)
        return 0 if normal_segments is None else super().reach(normal_segments)


def _normalize_segments(segments: list[bytes]) -> list[bytes] | None:
    """Return a path's segments in the form of the routes, or None for a path of another protocol."""
    first = segments[0]
    if first == b"lance":
        return [each for each in segments if each]
    if first != b"v1":
        return None
    rest = [each for each in segments if each]
    return [b"lance", *rest] if len(rest) > 1 and rest[1] in _FIRST else None


class LanceProtocol:
    """Lance REST at `/lance/v1`, as a protocol of the HTTP application."""

    name = "lance"
    anonymous: frozenset[str] = frozenset()
    takes_key = True
    narrows = True

    def __init__(self, *, data_timeout_s: float = 600.0) -> None:
        slow = {route.operation for route in _SLOW}
        routes = [
            each._replace(
                query=(*each.query, *OWN_PARAMETERS),
                deadline_s=data_timeout_s if each.operation in slow else each.deadline_s,
                handler=_with_plain_errors(each.handler),
            )
            for each in ROUTES
        ]
        self.router: Router[Handler] = LanceRouter(
            ROOT, routes, refusing=(*_without_root(routes), *unsupported_routes())
        )

    def place_of(self, path: str, request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the scope of a path, and the kind and levels of a namespace or table in a catalog, if it names one."""
        object_path = place_of(request, ctx)
        if not object_path.levels:
            return object_path.scope, None, ()
        return object_path.scope, Kind.TABLE if "{table_id}" in path else Kind.NAMESPACE, object_path.levels

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Convert an error to the error response of Lance REST."""
        return error_response(error, request_id=request_id, operation=operation)
