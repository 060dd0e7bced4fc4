# SPDX-License-Identifier: Apache-2.0
"""The admin API's error body and statuses: a stable code, the message, the request id, and for a denied access the
decision.

Must not know resources.
"""

from __future__ import annotations

from limnos.http.error_statuses import status_of
from limnos.http.refusals import hidden_metalake, unescape_percent, visible_decision_json
from limnos.http.response import NO_ENCODINGS, Response, json_response
from limnos.model import errors
from limnos.model.errors import LimnosError


def error_response(failure: LimnosError, *, request_id: str) -> Response:
    """Build the admin API's JSON body and status for an error."""
    error = hidden_metalake(failure)
    status = status_of(error)
    body: dict[str, object] = {
        "code": error.code,
        "message": unescape_percent(str(error)),
        "request_id": request_id,
    }
    decision = visible_decision_json(error)
    if decision is not None:
        body["decision"] = decision
    return json_response({"error": body}, status, _headers(error, status))


def error_fields(failure: LimnosError) -> dict[str, object]:
    """Return status, code and message of an error that is a part of a response."""
    error = hidden_metalake(failure)
    return {"status": status_of(error), "code": error.code, "message": unescape_percent(str(error))}


def _headers(error: LimnosError, status: int) -> tuple[tuple[bytes, bytes], ...]:
    if isinstance(error, errors.ServiceUnavailable):
        return ((b"retry-after", b"%d" % error.retry_after_s),)
    if status == 415:
        return NO_ENCODINGS
    return ((b"www-authenticate", b"Bearer"),) if status == 401 else ()
