"""Catalogs that show another Iceberg REST catalog: which handler serves a route for them, after the tree has said that it is not its affair.

May import this package, `model` and `services`. A handler there comes after the one for the tree, which has read the body and decided already.

403 or 404: who may not do something gets 403 whether it is there or not; who makes tables or views in its namespace learns that it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.http.iceberg import federated_namespaces, federated_tables, federated_views
from limnos.model.kinds import REST_PROVIDERS
from limnos.services.request.table_formats import ExternalCatalogError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.http.routing import Route
    from limnos.services.request.context import Context

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
    """Return the route with catalogs that show another one served: when the tree says that it is not its affair."""
    handler, there = route.handler, HANDLERS.get(route.operation)
    if there is None:
        return route

    async def handle(request: Request, ctx: Context) -> Response:
        try:
            return await handler(request, ctx)
        except ExternalCatalogError as elsewhere:
            if elsewhere.provider not in REST_PROVIDERS:
                raise
        ctx.once = None  # what the source does is not ours to repeat
        return await there(request, ctx)

    return route._replace(handler=handle)
