# SPDX-License-Identifier: Apache-2.0
"""Iceberg REST as a protocol: routes with and without a prefix, and the error body.

Has no business rules.
"""

from __future__ import annotations

from functools import partial

from limnos.access.actions import Action
from limnos.http.iceberg import (
    config,
    namespaces,
    oauth,
    plans,
    signing,
    tables,
    transactions,
    vended_credentials,
    views,
)
from limnos.http.iceberg.errors import error_response
from limnos.http.iceberg.federated import HANDLERS, serve_federated
from limnos.http.iceberg.paths import levels_of, name_of, split_path
from limnos.http.iceberg.prefixless import prefixless
from limnos.http.idempotency import IdempotencyTerms, IdempotentRoute, make_idempotent
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import ANY_BODY_BYTES, Route, Router
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

ROOT = "/iceberg/v1"
REPORT_BYTES_MAX = 1 << 18
"""The maximum length of a metrics report, in bytes."""

PLAN_BYTES_MAX = 2 << 20
"""The maximum length of a request for a scan plan, in bytes: its filter may list many values."""

CATALOG_ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/{prefix}/namespaces",
        handler=namespaces.namespaces_list,
        operation="list-namespaces",
        query=("parent", "pageToken", "pageSize"),
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces",
        handler=namespaces.namespace_create,
        operation="create-namespace",
        query=("parents",),
        asks=(Action.NAMESPACE_CREATE,),
    ),
    Route(
        method="GET",
        path="/{prefix}/namespaces/{namespace}",
        handler=namespaces.namespace_load,
        operation="load-namespace",
    ),
    Route(
        method="HEAD",
        path="/{prefix}/namespaces/{namespace}",
        handler=namespaces.namespace_exists,
        operation="namespace-exists",
    ),
    Route(
        method="DELETE",
        path="/{prefix}/namespaces/{namespace}",
        handler=namespaces.namespace_drop,
        operation="drop-namespace",
        query=("cascade",),
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/properties",
        handler=namespaces.namespace_properties,
        operation="update-properties",
        asks=(Action.NAMESPACE_ALTER,),
    ),
    Route(
        method="GET",
        path="/{prefix}/namespaces/{namespace}/tables",
        handler=tables.tables_list,
        operation="list-tables",
        query=("pageToken", "pageSize"),
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/tables",
        handler=tables.table_create,
        operation="create-table",
        asks=(Action.TABLE_CREATE,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/register",
        handler=tables.table_register,
        operation="register-table",
    ),
    Route(
        method="GET",
        path="/{prefix}/namespaces/{namespace}/tables/{table}",
        handler=tables.table_load,
        operation="load-table",
        query=("snapshots", "referenced-by"),
    ),
    Route(
        method="HEAD",
        path="/{prefix}/namespaces/{namespace}/tables/{table}",
        handler=tables.table_exists,
        operation="table-exists",
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/tables/{table}",
        handler=tables.table_commit,
        operation="commit-table",
        asks=(Action.TABLE_COMMIT, Action.TABLE_CREATE),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="DELETE",
        path="/{prefix}/namespaces/{namespace}/tables/{table}",
        handler=tables.table_drop,
        operation="drop-table",
        query=("purgeRequested",),
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
        handler=tables.table_unregister,
        operation="unregister-table",
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
        handler=tables.metrics_report,
        operation="report-metrics",
        asks=(Action.TABLE_EXISTS, Action.TABLE_LOAD),
        body_bytes_max=REPORT_BYTES_MAX,
    ),
    Route(
        method="GET",
        path="/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
        handler=vended_credentials.credentials_load,
        operation="load-credentials",
        query=("referenced-by",),
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/tables/{table}/plan",
        handler=plans.scan_plan,
        operation="plan-scan",
        query=("referenced-by",),
        asks=(Action.TABLE_READ,),
        body_bytes_max=PLAN_BYTES_MAX,
    ),
    Route(
        method="GET",
        path="/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan}",
        handler=plans.plan_load,
        operation="load-plan",
        query=("referenced-by",),
    ),
    Route(
        method="DELETE",
        path="/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan}",
        handler=plans.plan_cancel,
        operation="cancel-plan",
        query=("referenced-by",),
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
        handler=plans.tasks_load,
        operation="load-tasks",
        query=("referenced-by",),
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/tables/{table}/sign",
        handler=signing.sign_request,
        operation="sign-request",
        asks=(Action.TABLE_LOAD,),
    ),
    Route(method="POST", path="/{prefix}/tables/rename", handler=tables.table_rename, operation="rename-table"),
    Route(
        method="POST",
        path="/{prefix}/transactions/commit",
        handler=transactions.transaction_commit,
        operation="commit-transaction",
        asks=(Action.TABLE_COMMIT, Action.TABLE_CREATE),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="GET",
        path="/{prefix}/namespaces/{namespace}/views",
        handler=views.views_list,
        operation="list-views",
        query=("pageToken", "pageSize"),
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/views",
        handler=views.view_create,
        operation="create-view",
        asks=(Action.VIEW_CREATE,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/register-view",
        handler=views.view_register,
        operation="register-view",
    ),
    Route(
        method="GET",
        path="/{prefix}/namespaces/{namespace}/views/{view}",
        handler=views.view_load,
        operation="load-view",
        query=("referenced-by",),
    ),
    Route(
        method="HEAD",
        path="/{prefix}/namespaces/{namespace}/views/{view}",
        handler=views.view_exists,
        operation="view-exists",
    ),
    Route(
        method="POST",
        path="/{prefix}/namespaces/{namespace}/views/{view}",
        handler=views.view_replace,
        operation="replace-view",
        asks=(Action.VIEW_ALTER,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        method="DELETE",
        path="/{prefix}/namespaces/{namespace}/views/{view}",
        handler=views.view_drop,
        operation="drop-view",
    ),
    Route(method="POST", path="/{prefix}/views/rename", handler=views.view_rename, operation="rename-view"),
)
"""All routes of a catalog. Reads are also served without `/{prefix}`, for the default catalog."""

KEYED: dict[str, IdempotentRoute] = {
    "create-namespace": IdempotentRoute(200, namespaces.replay_namespace_create),
    "drop-namespace": IdempotentRoute(),
    "update-properties": IdempotentRoute(200),
    "create-table": IdempotentRoute(200, tables.replay_table_create),
    "register-table": IdempotentRoute(200, tables.replay_table_create),
    "commit-table": IdempotentRoute(200, tables.replay_table_commit, has_files=True),
    "drop-table": IdempotentRoute(),
    "unregister-table": IdempotentRoute(200, ends_rights=True),
    "rename-table": IdempotentRoute(),
    "commit-transaction": IdempotentRoute(has_files=True),
    "create-view": IdempotentRoute(200, views.replay_view_create),
    "register-view": IdempotentRoute(200, views.replay_view_create),
    "replace-view": IdempotentRoute(200, views.replay_view_replace),
    "drop-view": IdempotentRoute(),
    "rename-view": IdempotentRoute(),
}
"""Operations that accept an `Idempotency-Key`, with the functions that answer repetitions."""

ENDPOINTS = tuple(f"{route.method} /v1{route.path}".replace("{plan}", "{plan-id}") for route in CATALOG_ROUTES)
PASSED_ON = tuple(f"{route.method} /v1{route.path}" for route in CATALOG_ROUTES if route.operation in HANDLERS)
"""The endpoints with a handler for federated catalogs. Scan planning has none: clients plan these scans themselves."""


def _error(error: LimnosError, _request: Request, operation: str) -> Response:
    return error_response(error, operation=operation)


class IcebergProtocol:
    """Iceberg REST at `/iceberg/v1`, as a protocol of the HTTP application."""

    name = "iceberg"
    anonymous = frozenset({"issue-token"})
    narrows = True

    def __init__(self) -> None:
        load = partial(config.config_load, endpoints=ENDPOINTS, passed_on=PASSED_ON)
        config_route: Route[Handler] = Route(
            method="GET", path="/config", handler=load, operation="load-config", query=("warehouse",)
        )
        token_route: Route[Handler] = Route(
            method="POST", path="/oauth/tokens", handler=oauth.token_issue, operation="issue-token", takes="form"
        )
        reads, writes = prefixless([serve_federated(route) for route in CATALOG_ROUTES])
        terms = IdempotencyTerms(lambda request, ctx: split_path(request, ctx, 0)[0], _error)
        routes = [
            serve_federated(
                make_idempotent(route, KEYED[route.operation], terms) if route.operation in KEYED else route
            )
            for route in CATALOG_ROUTES
        ]
        self.router: Router[Handler] = Router(ROOT, (config_route, token_route, *routes, *reads), refusing=writes)

    def place_of(self, path: str, request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the catalog, namespace, table or view in a path below a prefix."""
        scope, params = split_path(request, ctx, path.count("{") - 1)
        if len(params) == 0:
            return scope, None, ()
        levels = levels_of(params[0])
        if len(params) == 1:
            return scope, Kind.NAMESPACE, levels
        return scope, Kind.VIEW if "/views/" in path else Kind.TABLE, (*levels, name_of(params[1]))

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Return the response for an error. The request id is in the header."""
        response = error_response(error, operation=operation)
        return oauth.oauth_error(error, response) if operation == "issue-token" else response
