# SPDX-License-Identifier: Apache-2.0
"""Lance's error body, and the status and code of each error.

Must not know routes. Clients read only the code, an integer that is required. They prefix `error` with their own text,
so `error` names only the object, and `detail` is the full message.
"""

from __future__ import annotations

import re
from typing import Final

from limnos.http.refusals import hidden_metalake, lacks_credential, unescape_percent
from limnos.http.response import NO_ENCODINGS, Response, json_response
from limnos.model import errors
from limnos.model.errors import AuthenticationFailed, LimnosError
from limnos.names.errors import InvalidName

UNSUPPORTED, INVALID, CONFLICT, DENIED, UNAUTHENTICATED, UNAVAILABLE, INTERNAL, BAD_STATE = (
    0,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
)
STORAGE_RETRY_AFTER_S: Final = 5
_MISSING: Final = (
    "No credential was sent, and this server has no user anonymous. Send a token as 'Authorization: Bearer lim_…' or as"
    " 'x-api-key: lim_…': clients read it from their property header.Authorization or as their api_key; make one with"
    " 'limnos create token'"
)
_NOT_FOUND: Final = {
    "metalake": 1,
    "catalog": 1,
    "namespace": 1,
    "table": 4,
    "index": 6,
    "tag": 8,
    "transaction": 10,
    "version": 11,
    "column": 12,
    "branch": 22,
    "route": UNSUPPORTED,
}
_TAKEN: Final = {"index": 7, "tag": 9, "branch": 23}
_TABLE: Final[tuple[tuple[type[LimnosError], int, int], ...]] = (
    (errors.NotEmpty, 409, 3),
    (errors.InUse, 409, BAD_STATE),
    (errors.InvalidTable, 409, BAD_STATE),
    (errors.SchemaMismatch, 400, 20),
    (errors.BadRequest, 400, INVALID),
    (errors.PropertyConflict, 400, INVALID),
    (errors.CommitConflict, 409, CONFLICT),
    (errors.RunConflict, 409, CONFLICT),
    (errors.PermissionDenied, 403, DENIED),
    (errors.NotInUse, 403, DENIED),
    (errors.AuthenticationFailed, 401, UNAUTHENTICATED),
    (errors.MissingFile, 409, BAD_STATE),
    (errors.TooSlow, 408, INVALID),
    (errors.TooLarge, 413, INVALID),
    (errors.WrongMediaType, 415, INVALID),
    (errors.MisdirectedRequest, 421, INVALID),
    (errors.HeadTooLarge, 431, INVALID),
    (errors.TooManyAttempts, 429, 21),
    (errors.StorageMisconfigured, 400, INVALID),
    (errors.StorageFailed, 503, UNAVAILABLE),
    (errors.ServiceUnavailable, 503, UNAVAILABLE),
)
_BEGINS: Final = re.compile(
    r"(?:Namespace|Table|View)(?: with same name)? (?:does not exist|already exists): "
    r"|Catalog (?=.* (?:does not exist|already exists))"
)
"""The text that clients put before the message themselves, by code."""
_NAMED_ALONE: Final = {"tag": "Tag", "branch": "Branch"}
"""Kinds of missing objects whose errors have the name as their message."""
_SPACES: Final = frozenset({"lance-create-namespace", "lance-create-namespace-root"})


def error_response(failure: LimnosError, *, request_id: str, operation: str) -> Response:
    """Return the response for an error. A missing metalake gets the same error as one that the caller may not use."""
    error = AuthenticationFailed(_MISSING) if lacks_credential(failure) else hidden_metalake(failure)
    status, code = classify(error, operation)
    message = unescape_percent(str(error))
    detail = message
    if isinstance(error, errors.NotFound) and error.kind in _NAMED_ALONE:
        detail = f"{_NAMED_ALONE[error.kind]} does not exist: {message}"
    body = {"error": _BEGINS.sub("", message, count=1), "code": code, "detail": detail, "instance": request_id}
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if status in (429, 503):
        headers = ((b"retry-after", b"%d" % getattr(error, "retry_after_s", STORAGE_RETRY_AFTER_S)),)
    if status == 415:
        headers = NO_ENCODINGS
    if status == 401:
        headers = ((b"www-authenticate", b"Bearer"),)
    response = json_response(body, status, headers)
    response.reason = message
    return response


def classify(error: LimnosError, operation: str) -> tuple[int, int]:
    """Return the HTTP status and Lance's integer code of an error."""
    if isinstance(error, InvalidName):
        return 400, INVALID
    if isinstance(error, errors.NotFound):
        return 404, _NOT_FOUND.get(error.kind, UNSUPPORTED)
    if isinstance(error, errors.AlreadyExists):
        return 409, _TAKEN.get(error.kind, 2 if operation in _SPACES else 5)
    if isinstance(error, errors.UnsupportedOperation):
        return (405 if operation == "unknown-method" else 406), UNSUPPORTED
    for kind, status, code in _TABLE:
        if isinstance(error, kind):
            return status, code
    return 500, INTERNAL
