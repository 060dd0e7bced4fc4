"""What AsterixDB's administration answers and has a meaning here: version, state, libraries, requests under way.

May import `model`, `services` and this package. Everybody sees and ends requests of their own; service admins all that run on the node that is asked.
"""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import TYPE_CHECKING

from limnos.http.response import json_response
from limnos.model.errors import BadRequest, NotFound
from limnos.services.sqlpp_statements import admitted

if TYPE_CHECKING:
    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.services.context import Context


async def version(_request: Request, ctx: Context) -> Response:
    """Answer what serves here."""
    await admitted(ctx)
    return json_response({"git.build.version": f"limnos {installed('limnos')}"})


async def cluster(_request: Request, ctx: Context) -> Response:
    """Answer that statements are taken."""
    await admitted(ctx)
    return json_response({"state": "ACTIVE", "ncs": [], "metadata_node": "limnos"})


async def libraries(_request: Request, ctx: Context) -> Response:
    """List libraries of functions: there are none, as functions are written in SQL++ here."""
    await admitted(ctx)
    return json_response([])


async def requests_list(_request: Request, ctx: Context) -> Response:
    """List requests that run on this node: the caller's own, for a service admin all."""
    user = await admitted(ctx)
    return json_response(
        [
            {
                "requestId": each.id, "clientContextID": each.client_context_id, "user": each.user, "state": "running",
                "statement": each.text, "requestTime": each.started_ms,
            }
            for each in ctx.services.sqlpp_requests.of(_whose(ctx, user))
        ]
    )  # fmt: skip


async def request_cancel(request: Request, ctx: Context) -> Response:
    """End a request that runs on this node, by its id or by the client's own."""
    user = await admitted(ctx)
    wanted, own = request.query("request_id"), request.query("client_context_id")
    if not wanted and not own:
        raise BadRequest("ASX0049: Parameter(s) client_context_id must be specified")
    found = [
        each
        for each in ctx.services.sqlpp_requests.of(_whose(ctx, user))
        if (wanted and each.id == wanted) or (own and each.client_context_id == own)
    ]
    if not found:
        raise NotFound("No request of that id runs on this node, or none of yours", kind="request")
    for each in found:
        each.stop()
    return json_response({"cancelled": [each.id for each in found]})


def _whose(ctx: Context, user: str) -> str | None:
    return None if user in ctx.services.rules.service_admins else user
