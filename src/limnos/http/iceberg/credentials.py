"""Callers without a credential: who is told 401 instead of 403, and what becomes of OAuth's way to get a token.

May import `names`, `services`, `model`, `access` and the shared modules of `limnos.http`. The specification keeps
`/v1/oauth/tokens` for old clients only; its errors have OAuth's shape (RFC 6749, section 5.2), not Iceberg's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.http.refusals import lacks_credential
from limnos.http.response import Response, json_response
from limnos.model.errors import LimnosError, Unauthenticated

if TYPE_CHECKING:
    from limnos.http.request import Request
    from limnos.names.errors import InvalidName
    from limnos.services.context import Context

_MISSING = (
    "No credential was sent, and the user anonymous is not known here. Send a token as 'Authorization: Bearer lim_…': clients "
    "take it as their property token=lim_…; make one with 'limnos token create'. Or have an administrator add the user anonymous"
)
_NO_OAUTH = (
    "This server issues no OAuth tokens. Leave credential= out and give the client a Limnos token itself, as its property "
    "token=lim_…; make one with 'limnos token create'"
)


def who_are_you(error: LimnosError | InvalidName) -> LimnosError | InvalidName:
    """Return a refusal of nobody in particular as the question who asks; any other failure as it is."""
    return Unauthenticated(_MISSING) if lacks_credential(error) else error


async def token_issue(_request: Request, _ctx: Context) -> Response:
    """Answer a request for an OAuth token: there are none; says what to do instead."""
    body = {"error": "invalid_client", "error_description": _NO_OAUTH}
    return json_response(body, 401, ((b"www-authenticate", b"Bearer"), (b"cache-control", b"no-store")))
