# SPDX-License-Identifier: Apache-2.0
"""Shared handlers of tables and views in federated catalogs, whose source is another Iceberg REST catalog.

Must not know access rules.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.http.iceberg.federated_bodies import page_of
from limnos.http.iceberg.paths import levels_of, name_of, split_path, table_of
from limnos.http.iceberg.tables import RenameTable
from limnos.http.request import Request
from limnos.http.response import Response, json_response, no_content
from limnos.model.kinds import Kind
from limnos.names import iceberg
from limnos.names.path import Levels
from limnos.services.federation import forwarded_requests as federation
from limnos.services.federation.forwarded_requests import SourceObjectRequest
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.sources.connectors.capabilities import RestCall

_PROBES: Final = {Kind.TABLE: Action.TABLE_MAY_PROBE, Kind.VIEW: Action.VIEW_MAY_PROBE}


class FederatedObject(NamedTuple):
    """The table or view in a path, and the action on it."""

    scope: RequestScope
    thing: SourceObjectRequest

    def call(
        self, endpoint: str, *, body: bytes | None = None, query: tuple[tuple[str, str], ...] = (), missing: str = ""
    ) -> RestCall:
        """Build the request to the source about this object.

        `missing` is the object to report as missing if the source returns 404 without details; by default this one.
        """
        path = self.thing.path
        return RestCall(
            endpoint=endpoint,
            namespace=path[:-1],
            name=path[-1],
            query=query,
            body=body,
            missing=missing or self.thing.kind.word,
        )


def federated_object_of(request: Request, ctx: Context, *, kind: Kind, action: Action) -> FederatedObject:
    """Return the object in a request's path, with the action on it.

    Raises InvalidName for an invalid name, NotFound for a table without a namespace.
    """
    if kind is Kind.TABLE:
        scope, namespace, name = table_of(request, ctx)
        path = (*namespace, name)
    else:
        scope, path = path_of(request, ctx)
    return FederatedObject(scope, SourceObjectRequest(kind, path, action, _PROBES[kind]))


def path_of(request: Request, ctx: Context) -> tuple[RequestScope, Levels]:
    """Return the scope and the levels of a path, the object's name included. Raises InvalidName for an invalid name."""
    scope, params = split_path(request, ctx, 2)
    return scope, (*levels_of(params[0]), name_of(params[1]))


async def federated_object_exists(ctx: Context, leaf: FederatedObject, *, endpoint: str) -> Response:
    """Check whether the object exists: 204 or 404."""
    await federation.forward_request(ctx, leaf.scope, thing=leaf.thing, call=leaf.call(endpoint))
    return no_content()


async def federated_objects_list(request: Request, ctx: Context, *, kind: Kind, endpoint: str) -> Response:
    """Return the names of the visible tables or views of a namespace of the source."""
    scope, params = split_path(request, ctx, 1)
    namespace = levels_of(params[0])
    call = RestCall(endpoint=endpoint, namespace=namespace, query=page_of(request))
    names = await federation.forward_list(ctx, scope, kind=kind, call=call)
    entries = [{"namespace": namespace, "name": name} for name in names.names]
    return json_response({"identifiers": entries, "next-page-token": names.token})


async def federated_object_rename(request: Request, ctx: Context, *, kind: Kind, endpoint: str) -> Response:
    """Rename a table or view in the source, move it to another namespace, or both."""
    scope, _ = split_path(request, ctx, 0)
    body = request.decode(await request.body(), RenameTable)
    source, target = iceberg.decode_body(body.source.namespace), iceberg.decode_body(body.destination.namespace)
    source_body = {
        "source": {"namespace": source, "name": body.source.name},
        "destination": {"namespace": target, "name": body.destination.name},
    }
    call = RestCall(
        endpoint=endpoint,
        namespace=source,
        name=body.source.name,
        body=msgspec.json.encode(source_body),
        missing=kind.word,
        conflict_meaning=kind.word,
    )
    await federation.forward_rename(ctx, scope, kind=kind, target=(*target, body.destination.name), call=call)
    return no_content()
