# SPDX-License-Identifier: Apache-2.0
"""Iceberg's error body, and the status and type of each error.

Must not know routes. Clients check the status first, then the type.
"""

from __future__ import annotations

from limnos.http.iceberg.credentials import as_unauthenticated
from limnos.http.refusals import hidden_metalake, unescape_percent
from limnos.http.response import NO_ENCODINGS, Response, json_response
from limnos.model import errors
from limnos.model.errors import LimnosError
from limnos.names.errors import InvalidName

STORAGE_RETRY_AFTER_S = 5
_COMMITS = frozenset({"commit-table", "commit-transaction", "replace-view"})
PLANS = frozenset({"plan-scan", "load-plan", "cancel-plan", "load-tasks"})
_NOT_FOUND = {
    "namespace": "NoSuchNamespaceException",
    "table": "NoSuchTableException",
    "view": "NoSuchViewException",
    "catalog": "NoSuchWarehouseException",
    "metalake": "NoSuchWarehouseException",
    "plan": "NoSuchPlanIdException",
    "plan-task": "NoSuchPlanTaskException",
}
_TABLE: tuple[tuple[type[LimnosError], int, str], ...] = (
    (errors.KeyReused, 400, "IdempotencyKeyReused"),
    (errors.BadRequest, 400, "IllegalArgumentException"),
    (errors.AuthenticationFailed, 401, "NotAuthorizedException"),
    (errors.PermissionDenied, 403, "ForbiddenException"),
    (errors.NotInUse, 403, "ForbiddenException"),
    (errors.MissingFile, 404, "NotFoundException"),
    (errors.AlreadyExists, 409, "AlreadyExistsException"),
    (errors.NotEmpty, 409, "NamespaceNotEmptyException"),
    (errors.ProtectedObject, 409, "ProtectedException"),
    (errors.InUse, 409, "ConflictException"),
    (errors.InvalidTable, 409, "ConflictException"),
    (errors.RunConflict, 409, "ConflictException"),
    (errors.CommitConflict, 409, "CommitFailedException"),
    (errors.TooSlow, 408, "BadRequestException"),
    (errors.TooLarge, 413, "BadRequestException"),
    (errors.WrongMediaType, 415, "BadRequestException"),
    (errors.MisdirectedRequest, 421, "BadRequestException"),
    (errors.HeadTooLarge, 431, "BadRequestException"),
    (errors.PropertyConflict, 422, "UnprocessableEntityException"),
    (errors.StateUnknown, 500, "CommitStateUnknownException"),
    (errors.StoreDamaged, 500, "ServiceFailureException"),
    (errors.StorageMisconfigured, 400, "BadRequestException"),  # clients would retry a 503 or 502
    (errors.StorageFailed, 503, "ServiceUnavailableException"),  # metadata files are read and written before a commit
    (errors.TooManyAttempts, 429, "TooManyRequestsException"),
    (errors.ServiceUnavailable, 503, "ServiceUnavailableException"),
)


def error_response(failure: LimnosError, *, operation: str) -> Response:
    """Return the response for an error. A missing metalake gets the same error as one that the caller may not use."""
    error = hidden_metalake(as_unauthenticated(failure))
    status, kind = _status(error, operation)
    body = {"error": {"message": str(error), "type": kind, "code": status}}
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if status in (429, 503):
        headers = ((b"retry-after", b"%d" % getattr(error, "retry_after_s", STORAGE_RETRY_AFTER_S)),)
    if status == 415:
        headers = NO_ENCODINGS
    if status == 401:
        headers = ((b"www-authenticate", b"Bearer"),)
    response = json_response(body, status, headers)
    response.reason = unescape_percent(str(error))
    return response


def _status(error: LimnosError, operation: str) -> tuple[int, str]:
    if isinstance(error, InvalidName):
        return 400, "IllegalArgumentException"
    if isinstance(error, errors.NotFound):
        return 404, _NOT_FOUND.get(error.kind, "NotFoundException")
    if isinstance(error, errors.UnsupportedOperation):
        return (
            (405, "UnsupportedOperationException")
            if operation == "unknown-method"
            else (
                406,
                "UnsupportedOperationException",
            )
        )
    if isinstance(error, errors.SourceLoop):
        return 508, "LoopDetectedException"  # a server of another catalog recognizes it, and passes it on
    if isinstance(error, errors.SourceFailed):
        return _of_source(error, operation)
    if isinstance(error, errors.InvalidTable) and operation in PLANS:
        return 500, "ServiceFailureException"  # 409 would mean a conflict that a retry may resolve
    for kind, status, name in _TABLE:
        if isinstance(error, kind):
            return status, name
    return 500, "CommitStateUnknownException" if operation in _COMMITS else "ServiceFailureException"


def _of_source(error: errors.SourceFailed, operation: str) -> tuple[int, str]:
    """Return the status and type for a failed source: 502, except for commits.

    Clients treat a 502 of a commit as an unknown outcome, although nothing was changed. So a commit gets 403 if the
    source refused it, else 503.
    """
    if operation not in _COMMITS:
        return 502, "BadGatewayException"
    if isinstance(error, errors.SourceRefused):
        return 403, "ForbiddenException"
    return 503, "ServiceUnavailableException"
