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
from limnos.names.errors import InvalidName
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
        "GET",
        "/{prefix}/namespaces",
        namespaces.namespaces_list,
        "list-namespaces",
        query=("parent", "pageToken", "pageSize"),
    ),
    Route(
        "POST",
        "/{prefix}/namespaces",
        namespaces.namespace_create,
        "create-namespace",
        query=("parents",),
        asks=(Action.NAMESPACE_CREATE,),
    ),
    Route("GET", "/{prefix}/namespaces/{namespace}", namespaces.namespace_load, "load-namespace"),
    Route("HEAD", "/{prefix}/namespaces/{namespace}", namespaces.namespace_exists, "namespace-exists"),
    Route(
        "DELETE", "/{prefix}/namespaces/{namespace}", namespaces.namespace_drop, "drop-namespace", query=("cascade",)
    ),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/properties",
        namespaces.namespace_properties,
        "update-properties",
        asks=(Action.NAMESPACE_ALTER,),
    ),
    Route(
        "GET",
        "/{prefix}/namespaces/{namespace}/tables",
        tables.tables_list,
        "list-tables",
        query=("pageToken", "pageSize"),
    ),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/tables",
        tables.table_create,
        "create-table",
        asks=(Action.TABLE_CREATE,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route("POST", "/{prefix}/namespaces/{namespace}/register", tables.table_register, "register-table"),
    Route(
        "GET",
        "/{prefix}/namespaces/{namespace}/tables/{table}",
        tables.table_load,
        "load-table",
        query=("snapshots", "referenced-by"),
    ),
    Route("HEAD", "/{prefix}/namespaces/{namespace}/tables/{table}", tables.table_exists, "table-exists"),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/tables/{table}",
        tables.table_commit,
        "commit-table",
        asks=(Action.TABLE_COMMIT, Action.TABLE_CREATE),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        "DELETE",
        "/{prefix}/namespaces/{namespace}/tables/{table}",
        tables.table_drop,
        "drop-table",
        query=("purgeRequested",),
    ),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
        tables.table_unregister,
        "unregister-table",
    ),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
        tables.metrics_report,
        "report-metrics",
        asks=(Action.TABLE_EXISTS, Action.TABLE_LOAD),
        body_bytes_max=REPORT_BYTES_MAX,
    ),
    Route(
        "GET",
        "/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
        vended_credentials.credentials_load,
        "load-credentials",
        query=("referenced-by",),
    ),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/tables/{table}/plan",
        plans.scan_plan,
        "plan-scan",
        query=("referenced-by",),
        asks=(Action.TABLE_READ,),
        body_bytes_max=PLAN_BYTES_MAX,
    ),
    Route(
        "GET",
        "/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan}",
        plans.plan_load,
        "load-plan",
        query=("referenced-by",),
    ),
    Route(
        "DELETE",
        "/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan}",
        plans.plan_cancel,
        "cancel-plan",
        query=("referenced-by",),
    ),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
        plans.tasks_load,
        "load-tasks",
        query=("referenced-by",),
    ),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/tables/{table}/sign",
        signing.sign_request,
        "sign-request",
        asks=(Action.TABLE_LOAD,),
    ),
    Route("POST", "/{prefix}/tables/rename", tables.table_rename, "rename-table"),
    Route(
        "POST",
        "/{prefix}/transactions/commit",
        transactions.transaction_commit,
        "commit-transaction",
        asks=(Action.TABLE_COMMIT, Action.TABLE_CREATE),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route(
        "GET", "/{prefix}/namespaces/{namespace}/views", views.views_list, "list-views", query=("pageToken", "pageSize")
    ),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/views",
        views.view_create,
        "create-view",
        asks=(Action.VIEW_CREATE,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route("POST", "/{prefix}/namespaces/{namespace}/register-view", views.view_register, "register-view"),
    Route(
        "GET", "/{prefix}/namespaces/{namespace}/views/{view}", views.view_load, "load-view", query=("referenced-by",)
    ),
    Route("HEAD", "/{prefix}/namespaces/{namespace}/views/{view}", views.view_exists, "view-exists"),
    Route(
        "POST",
        "/{prefix}/namespaces/{namespace}/views/{view}",
        views.view_replace,
        "replace-view",
        asks=(Action.VIEW_ALTER,),
        body_bytes_max=ANY_BODY_BYTES,
    ),
    Route("DELETE", "/{prefix}/namespaces/{namespace}/views/{view}", views.view_drop, "drop-view"),
    Route("POST", "/{prefix}/views/rename", views.view_rename, "rename-view"),
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


def _error(error: LimnosError | InvalidName, _request: Request, operation: str) -> Response:
    return error_response(error, operation=operation)


class IcebergProtocol:
    """Iceberg REST at `/iceberg/v1`, as a protocol of the HTTP application."""

    name = "iceberg"
    anonymous = frozenset({"issue-token"})
    narrows = True

    def __init__(self) -> None:
        load = partial(config.config_load, endpoints=ENDPOINTS, passed_on=PASSED_ON)
        config_route: Route[Handler] = Route("GET", "/config", load, "load-config", query=("warehouse",))
        token_route: Route[Handler] = Route("POST", "/oauth/tokens", oauth.token_issue, "issue-token", takes="form")
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

    def error(self, error: LimnosError | InvalidName, *, request_id: str, operation: str) -> Response:
        """Return the response for an error. The request id is in the header."""
        response = error_response(error, operation=operation)
        return oauth.oauth_error(error, response) if operation == "issue-token" else response
