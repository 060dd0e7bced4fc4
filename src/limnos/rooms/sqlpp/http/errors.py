# SPDX-License-Identifier: Apache-2.0
"""The status and the error entry of each error of the query service.

Must not know statements. An error has AsterixDB's form: a list of errors whose code is always 1, with the number in the
message. Errors for which AsterixDB returns 500 have status 400 here if the caller's statement caused them.
"""

from __future__ import annotations

from typing import Final

from limnos.http.refusals import hidden_metalake, lacks_credential, unescape_percent
from limnos.http.response import NO_ENCODINGS, Response, json_response
from limnos.model import errors
from limnos.model.errors import AuthenticationFailed, LimnosError
from limnos.names.errors import InvalidName
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.errors import NO_ENGINE, EngineFailed, EngineUnavailable, OutcomeUnknown
from limnos.rooms.sqlpp.services.requests.running_requests import RequestEnded

STORAGE_RETRY_AFTER_S: Final = 5
_MISSING: Final = (
    "No credential was sent, and this server has no user anonymous. Send a token as 'Authorization: Bearer lim_…'; make"
    " one with 'limnos create token'"
)
_TABLE: Final[tuple[tuple[type[LimnosError], int], ...]] = (
    (InvalidName, 400),
    (errors.BadRequest, 400),
    (errors.PropertyConflict, 400),
    (errors.UnsupportedOperation, 400),
    (errors.NotFound, 404),
    (errors.AlreadyExists, 409),
    (errors.NotEmpty, 409),
    (errors.InUse, 409),
    (errors.CommitConflict, 409),
    (errors.InvalidTable, 409),
    (errors.MissingFile, 409),
    (errors.RunConflict, 409),
    (errors.PermissionDenied, 403),
    (errors.NotInUse, 403),
    (errors.AuthenticationFailed, 401),
    (errors.TooSlow, 408),
    (errors.TooLarge, 413),
    (errors.WrongMediaType, 415),
    (errors.MisdirectedRequest, 421),
    (errors.HeadTooLarge, 431),
    (errors.TooManyAttempts, 429),
    (errors.StorageMisconfigured, 400),
    (errors.StorageFailed, 503),
    (errors.ServiceUnavailable, 503),
)
Failure = LimnosError | SqlppError | RequestEnded


def public_failure(failure: Failure) -> Failure:
    """Return the error in the form that the caller may see.

    A missing metalake and one that the caller may not use give the same error, so that the names of metalakes do not
    leak.
    """
    if isinstance(failure, (SqlppError, RequestEnded)):
        return failure
    return AuthenticationFailed(_MISSING) if lacks_credential(failure) else hidden_metalake(failure)


def error_entry(failure: Failure) -> dict[str, object]:
    """Return one entry of a body's `errors` or `warnings`: `{"code": 1, "msg": "…"}`."""
    return {"code": 1, "msg": unescape_percent(str(public_failure(failure)))}


def status_of(failure: Failure, operation: str = "") -> int:
    """Return the HTTP status of an error that occurred before any part of the response was sent."""
    result = public_failure(failure)
    if isinstance(result, SqlppError):
        if isinstance(result, EngineUnavailable) or result.number == NO_ENGINE:
            return 503
        return 500 if isinstance(result, (EngineFailed, OutcomeUnknown)) else 400
    if isinstance(result, RequestEnded):
        return 200 if result.late else 400
    if operation == "unknown-method":
        return 405
    return next((status for kind, status in _TABLE if isinstance(result, kind)), 500)


def headers_of(failure: Failure, status: int) -> tuple[tuple[bytes, bytes], ...]:
    """Return the response headers that a status requires: `Retry-After` for 429 and 503, `WWW-Authenticate` for 401."""
    if status in (429, 503):
        return ((b"retry-after", b"%d" % getattr(failure, "retry_after_s", STORAGE_RETRY_AFTER_S)),)
    if status == 415:
        return NO_ENCODINGS
    return ((b"www-authenticate", b"Bearer"),) if status == 401 else ()


def error_response(failure: Failure, *, request_id: str, operation: str) -> Response:
    """Return the response to a request that failed before it returned any result."""
    status = status_of(failure, operation)
    entry = error_entry(failure)
    body = {"requestID": request_id, "errors": [entry], "status": "fatal"}
    response = json_response(body, status, headers_of(failure, status))
    response.reason = str(entry["msg"])
    return response
