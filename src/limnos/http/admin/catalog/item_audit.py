# SPDX-License-Identifier: Apache-2.0
"""Audit records of the items of one request: a refused item is recorded as its own request would be.

Must not know items.
"""

from __future__ import annotations

from limnos.access.authentication import known_user
from limnos.http.admin.errors import error_fields
from limnos.http.request import Request
from limnos.http.request_audit import audit_response
from limnos.model.errors import LimnosError
from limnos.services.request.context import Context


def request_of_item(request: Request) -> Request:
    """Return a request with the origin of `request`, which records the decisions and the refusal of one item."""
    own = Request(
        method=request.method,
        path=request.path,
        params=(),
        headers=request.headers,
        query_string=b"",
        body=b"",
        request_id=request.id,
        body_bytes_max=0,
        peer=request.peer,
        started=request.started,
    )
    own.target, own.credential = request.target, request.credential
    own.decided = None if request.decided is None else []
    return own


def audit_item_error(own: Request, ctx: Context, *, error: LimnosError) -> None:
    """Record the error of an item in the audit, with the item's request."""
    audit = ctx.services.audit
    if not audit.is_on:
        return
    own.failure = error
    user = known_user(ctx.services.view, own.credential)
    status = int(str(error_fields(error)["status"]))
    audit_response(audit, own, status=status, user=user, anonymous=False)
    own.failure = None
