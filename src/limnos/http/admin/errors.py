"""The admin API's error body and statuses: a stable code, the message, the request id, and the decision of a refusal.

May import `model`, `names` and the shared modules of `limnos.http`. Knows no resource.
"""

from __future__ import annotations

from limnos.http.refusals import hidden_metalake, unescape_percent, visible_decision_json
from limnos.http.response import Response, json_response
from limnos.model import errors
from limnos.model.errors import LimnosError
from limnos.names.errors import InvalidName

_STATUSES: tuple[tuple[type[LimnosError], int], ...] = (
    (errors.PositionPruned, 410),  # before BadRequest, of which it is a subclass
    (errors.BadRequest, 400),
    (errors.AuthenticationFailed, 401),
    (errors.PermissionDenied, 403),
    (errors.NotFound, 404),
    (errors.MissingFile, 404),
    (errors.UnsupportedOperation, 405),
    (errors.AlreadyExists, 409),
    (errors.NotEmpty, 409),
    (errors.InUse, 409),
    (errors.NotInUse, 409),
    (errors.CommitConflict, 409),
    (errors.RunConflict, 409),
    (errors.InvalidTable, 409),
    (errors.TooSlow, 408),
    (errors.TooLarge, 413),
    (errors.WrongMediaType, 415),
    (errors.MisdirectedRequest, 421),
    (errors.PropertyConflict, 422),
    (errors.HeadTooLarge, 431),
    (errors.StateUnknown, 500),
    (errors.StorageMisconfigured, 400),
    (errors.StorageFailed, 502),
    (errors.TooManyAttempts, 429),
    (errors.ServiceUnavailable, 503),
)


def error_response(failure: LimnosError | InvalidName, *, request_id: str) -> Response:
    """Return the response for an error."""
    error = hidden_metalake(failure)
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    if isinstance(error, InvalidName):
        status = 400
    body: dict[str, object] = {
        "code": code_of(error),
        "message": unescape_percent(str(error)),
        "request_id": request_id,
    }
    decision = visible_decision_json(error)
    if decision is not None:
        body["decision"] = decision
    return json_response({"error": body}, status, _headers(error, status))


def code_of(error: LimnosError | InvalidName) -> str:
    """Return the stable code of an error."""
    return errors.IllegalName.code if isinstance(error, InvalidName) else error.code


def _headers(error: LimnosError | InvalidName, status: int) -> tuple[tuple[bytes, bytes], ...]:
    if isinstance(error, errors.ServiceUnavailable):
        return ((b"retry-after", b"%d" % error.retry_after_s),)
    return ((b"www-authenticate", b"Bearer"),) if status == 401 else ()
