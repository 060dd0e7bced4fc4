# SPDX-License-Identifier: Apache-2.0
"""Vended credentials for the files of a table or fileset.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.handler_wrappers import wrap_handler
from limnos.rooms.gravitino.http.metalake_objects import object_of
from limnos.services.request.context import Context
from limnos.services.vending import credentials

_LOCATION = b"current-location-name"


async def credentials_list(request: Request, ctx: Context) -> Response:
    """Return the credentials for a table's or fileset's files; empty if its catalog vends none."""
    location = request.headers.get(_LOCATION, b"").decode("latin-1") or None
    vended_credentials = await credentials.object_credentials(ctx, object_of(request), location=location)
    body = {"code": 0, "credentials": [] if vended_credentials is None else [dto.credential(vended_credentials)]}
    return json_response(body, headers=(NO_STORE,))


_OBJECTS = "/metalakes/{m}/objects/{type}/{fullName}/credentials"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_OBJECTS,
        handler=wrap_handler("Failed to get credentials under object [{1} {2}]", credentials_list),
        operation="list-credentials",
    ),
)
