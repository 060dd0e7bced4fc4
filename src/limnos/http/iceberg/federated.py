# SPDX-License-Identifier: Apache-2.0
"""Routing for federated catalogs, whose source is another Iceberg REST catalog: selects the handler of a route for
them.

Must not know bodies. Such a handler runs after the route's own handler has read the body and raised
ExternalCatalogError for a federated catalog.

403 or 404: a caller without a right gets 403, whether the object exists or not. A caller who may create tables or views
in the namespace gets 404 for an object that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from limnos.http.iceberg import federated_namespaces, federated_tables, federated_views
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.kinds import REST_PROVIDERS
from limnos.services.request.context import Context
from limnos.services.request.table_formats import ExternalCatalogError

HANDLERS: Final[Mapping[str, Handler]] = {
    "list-namespaces": federated_namespaces.namespaces_list,
    "create-namespace": federated_namespaces.namespace_create,
    "load-namespace": federated_namespaces.namespace_load,
    "namespace-exists": federated_namespaces.namespace_exists,
    "drop-namespace": federated_namespaces.namespace_drop,
    "update-properties": federated_namespaces.namespace_properties,
    "list-tables": federated_tables.tables_list,
    "create-table": federated_tables.table_create,
    "register-table": federated_tables.table_register,
    "load-table": federated_tables.table_load,
    "table-exists": federated_tables.table_exists,
    "commit-table": federated_tables.table_commit,
    "drop-table": federated_tables.table_drop,
    "unregister-table": federated_tables.table_unregister,
    "report-metrics": federated_tables.metrics_report,
    "load-credentials": federated_tables.credentials_load,
    "rename-table": federated_tables.table_rename,
    "commit-transaction": federated_tables.transaction_commit,
    "list-views": federated_views.views_list,
    "create-view": federated_views.view_create,
    "register-view": federated_views.view_register,
    "load-view": federated_views.view_load,
    "view-exists": federated_views.view_exists,
    "replace-view": federated_views.view_replace,
    "drop-view": federated_views.view_drop,
    "rename-view": federated_views.view_rename,
}


def serve_federated(route: Route[Handler]) -> Route[Handler]:
    """Return the route with a handler that also serves federated catalogs, if the operation is supported for them."""
    handler, existing = route.handler, HANDLERS.get(route.operation)
    if existing is None:
        return route

    async def handle(request: Request, ctx: Context) -> Response:
        try:
            return await handler(request, ctx)
        except ExternalCatalogError as elsewhere:
            if elsewhere.provider not in REST_PROVIDERS:
                raise
        ctx.once = None  # a change of the source has no stored outcome here
        return await existing(request, ctx)

    return route._replace(handler=handle)
