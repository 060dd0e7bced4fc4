# SPDX-License-Identifier: Apache-2.0
"""One-use codes that open the console in a browser for a caller who is signed in elsewhere.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.services.identity.console_sessions import code_create
from limnos.services.request.context import Context


async def console_code_create(_request: Request, ctx: Context) -> Response:
    """Create a one-use code that opens a session of the console for the caller."""
    code, expires_in_s = await code_create(ctx)
    body = {"code": code, "expires_in_s": expires_in_s, "public_url": ctx.services.defaults.public_url}
    return json_response(body, headers=(NO_STORE,))


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="POST", path="/api/limnos/v1/console/codes", handler=console_code_create, operation="create-console-code"
    ),
)
