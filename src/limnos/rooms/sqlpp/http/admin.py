# SPDX-License-Identifier: Apache-2.0
"""AsterixDB's administration routes that apply here: version, state, libraries, running requests.

Must not know statements. Users see and cancel their own requests on all nodes; service admins those of all users.
"""

from __future__ import annotations

from importlib.metadata import version as installed

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest, NotFound
from limnos.rooms.sqlpp.services import statements
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS
from limnos.rooms.sqlpp.services.statements import caller_require, may_see_all_requests
from limnos.services.request.context import Context


async def options(_request: Request, ctx: Context) -> Response:
    """Return the product in the header `Server`. AsterixDB's JDBC driver tests a connection with this request."""
    await caller_require(ctx)
    headers = ((b"server", f"Limnos/{installed('limnos')}".encode()), (b"allow", b"GET, POST, OPTIONS"))
    return Response(200, b"", headers)


async def version(_request: Request, ctx: Context) -> Response:
    """Return product and version in the field `git.build.version`, as AsterixDB's `/admin/version` does."""
    await caller_require(ctx)
    return json_response({"git.build.version": f"limnos {installed('limnos')}"})


async def cluster(_request: Request, ctx: Context) -> Response:
    """Return the state of the server, which is always ready for statements."""
    await caller_require(ctx)
    return json_response({"state": "ACTIVE", "ncs": [], "metadata_node": "limnos"})


async def libraries(_request: Request, ctx: Context) -> Response:
    """Return an empty list of function libraries: functions are written in SQL++ here."""
    await caller_require(ctx)
    return json_response([])


async def requests_list(_request: Request, ctx: Context) -> Response:
    """Return the running requests of all nodes: the caller's own, or for a service admin all."""
    requests = await statements.requests_list(ctx)
    return json_response(
        [
            {
                "requestId": each.request_id,
                "clientContextID": each.client_context_id or None,
                "user": each.user_name,
                "state": "running",
                "statement": each.statement,
                "requestTime": each.started_at,
            }
            for each in requests
        ]
    )


async def request_cancel(request: Request, ctx: Context) -> Response:
    """Cancel a running request on any node, by its id or by the client's context id: the caller's own, or for a service
    admin any.
    """
    requester = await caller_require(ctx)
    requested_id, own = request.query("request_id"), request.query("client_context_id")
    if not requested_id and not own:
        raise BadRequest("ASX0049: Parameter(s) client_context_id must be specified")
    by = ("request_id", requested_id) if requested_id else ("client_context_id", own)
    requests = REQUESTS.of(ctx.services)
    ended = await requests.cancel(
        by[0], by[1] or "", requester=requester, everybody=may_see_all_requests(ctx, requester)
    )
    if not ended:
        raise NotFound("No request with that id is running, or it is another user's", kind="request")
    return json_response({"cancelled": ended})
