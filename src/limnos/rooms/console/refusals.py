# SPDX-License-Identifier: Apache-2.0
"""The page below `/console` on a server without the room."""

from __future__ import annotations

from html import escape

from limnos.http.error_statuses import status_of
from limnos.http.refusals import hidden_metalake, unescape_percent
from limnos.http.response import NO_STORE, Response
from limnos.model.errors import LimnosError


def error_response(error: LimnosError, *, request_id: str, operation: str) -> Response:
    """Return a page with the message of an error."""
    del operation
    visible_error = hidden_metalake(error)
    text = escape(unescape_percent(str(visible_error)))
    body = f"<!doctype html>\n<title>Limnos</title>\n<p>{text}</p>\n<p>Request {escape(request_id)}</p>\n"
    headers = (
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
        NO_STORE,
    )
    return Response(status_of(visible_error), body.encode(), headers)
