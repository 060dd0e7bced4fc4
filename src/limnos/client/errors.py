# SPDX-License-Identifier: Apache-2.0
"""Errors of the client: one exception per kind of failure, for all protocols.

Must not know transport. The codes are defined by `model.errors`, so callers need not know Gravitino's error codes or
Iceberg's error types.
"""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec

from limnos.client.values import Decision
from limnos.model.struct_types import json_decoder

_UNSPECIFIC_NUMBER = 1002
"""Gravitino's number of errors that its clients do not distinguish. With status 409 a table cannot be read."""
_BY_NUMBER = {
    1001: "bad-request",
    _UNSPECIFIC_NUMBER: "internal",
    1003: "not-found",
    1004: "already-exists",
    1005: "not-empty",
    1006: "unsupported",
    1007: "unavailable",
    1008: "forbidden",
    1009: "not-in-use",
    1010: "in-use",
    1011: "unauthenticated",
    1012: "commit-conflict",
}
"""Our codes for Gravitino's error numbers (ErrorConstants of Gravitino REST)."""

_BY_TYPE = {
    "AlreadyExistsException": "already-exists",
    "CommitFailedException": "commit-conflict",
    "CommitStateUnknownException": "state-unknown",
    "NamespaceNotEmptyException": "not-empty",
    "NotFoundException": "missing-file",
    "ProtectedException": "protected",
}
"""Our codes for Iceberg's error types that are more specific than the status."""

_BY_STATUS = {
    400: "bad-request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "unsupported",
    406: "unsupported",
    409: "conflict",
    413: "too-large",
    419: "unauthenticated",
    422: "unprocessable",
    429: "unavailable",
    501: "unsupported",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}


TLS_ADVICE = "a server with TLS closes connections without it: its address begins with https://"
"""The part of the message for a connection by http:// that the server closed without a response."""

NO_SPACE = "no-space"
"""The code of the error of a server whose storage or database is full."""


class ClientError(Exception):
    """Base class of the errors of failed calls.

    `status` is the HTTP status, 0 if there was no response. `code` is stable (`not-found`, `forbidden`, …).
    `request_id` is the id of the request in the server's log. `decision` has the reasons of a refusal, if the server
    sent them.
    """

    kind: ClassVar[str] = "failed"

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "internal",
        request_id: str | None = None,
        decision: Decision | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.decision = decision


class ArgumentError(ValueError):
    """Invalid arguments of a call, which was not sent. The message has advice."""


class RefusedError(ClientError):
    """The request is wrong or unsupported: a 4xx status without its own class."""


class UnauthenticatedError(ClientError):
    """The credential is missing, wrong, expired or revoked: 401."""

    kind = "denied"


class DeniedError(ClientError):
    """The caller has no right to do this: 403. `decision` names the missing privilege if the server sent it."""

    kind = "denied"


class NotFoundError(ClientError):
    """The object does not exist or is not visible to the caller: 404."""

    kind = "not-found"


class ConflictError(ClientError):
    """The name is taken, the container is not empty, or the request conflicts with a concurrent change: 409."""

    kind = "conflict"


class ServerError(ClientError):
    """The server failed: 5xx. The request may have taken effect or not."""


class UnexpectedAnswerError(ClientError):
    """The response has an unexpected form: the peer is not a Limnos server, or has another version."""


class UnavailableError(ClientError):
    """The server sent no response, or 429, 502, 503 or 504.

    `sent`: the request may have reached the server. `retry_after_s` is the value of the response's Retry-After in
    seconds.
    """

    kind = "unavailable"
    default_code: ClassVar[str] = "unavailable"

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        request_id: str | None = None,
        sent: bool = True,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, status=status, code=self.default_code, request_id=request_id)
        self.sent = sent
        self.retry_after_s = retry_after_s


class NoSpaceError(UnavailableError):
    """The server's storage or database is full. Nothing was changed, and retries alone do not help."""

    default_code = NO_SPACE


class _ErrorDetail(msgspec.Struct, kw_only=True):
    message: str = ""
    code: str | int = ""
    type: str = ""
    request_id: str | None = None
    decision: Decision | None = None


class _LanceErrorBody(msgspec.Struct):
    error: str
    detail: str = ""


class _StatementError(msgspec.Struct):
    msg: str = ""


class _ErrorBody(msgspec.Struct, kw_only=True):
    """Any of the four error bodies: the field `error` of Limnos' own API and of Iceberg, Gravitino's top level, the
    first element of SQL++'s `errors`.
    """

    error: _ErrorDetail | None = None
    errors: tuple[_StatementError, ...] = ()
    message: str = ""
    code: str | int = ""
    type: str = ""
    decision: Decision | None = None


_ASX = re.compile(r"ASX\d{4}\b")
"""The prefix of SQL++ messages."""

_FRAME = re.compile(r"Failed to (?:operate|execute|get) .*?, reason \[(.+)\]", re.DOTALL)
"""A pattern for the text around the reason in messages of Gravitino's handlers."""

_CLASSES: dict[int, type[ClientError]] = {
    401: UnauthenticatedError,
    403: DeniedError,
    404: NotFoundError,
    409: ConflictError,
    419: UnauthenticatedError,
}


def error_from(status: int, body: bytes, *, request_id: str | None, retry_after: str | None) -> ClientError:
    """Build the exception for a response with a status of 300 or more. Accepts any body."""
    if status < 400:
        return UnexpectedAnswerError(
            f"the server answered {status}, a redirect, which a Limnos server never does; check the URI",
            status=status,
            code="unexpected-answer",
        )
    if status in (404, 405) and body[:200].lstrip().lower().startswith((b"<!doctype", b"<html")):
        return UnexpectedAnswerError(
            f"a web page answered with {status}, not the API of a Limnos server",
            status=status,
            code="unexpected-answer",
        )
    inner = _inner(body)
    message = inner.message or _excerpt(body) or f"the server answered {status} without a reason"
    code = _code(status, inner)
    request_id = inner.request_id or request_id
    if _BY_STATUS.get(status) == "unavailable":
        wait_s = float(retry_after) if retry_after and retry_after.isdigit() else None
        kind = NoSpaceError if code == NO_SPACE else UnavailableError
        return kind(message, status=status, request_id=request_id, retry_after_s=wait_s)
    error = _CLASSES.get(status, ServerError if status >= 500 else RefusedError)
    return error(message, status=status, code=code, request_id=request_id, decision=inner.decision)


def _inner(body: bytes) -> _ErrorDetail:
    try:
        parsed = json_decoder(_ErrorBody).decode(body)
    except msgspec.DecodeError:
        return _lance_inner(body)
    if parsed.error is not None:
        return parsed.error
    if parsed.errors:
        code = _ASX.match(parsed.errors[0].msg)
        return _ErrorDetail(message=parsed.errors[0].msg, code=code[0] if code else "")
    # Gravitino's Python client formats messages with printf, so the server doubles percent signs. The text around the
    # reason repeats the call, which our caller knows.
    framed = _FRAME.fullmatch(parsed.message)
    message = (framed[1] if framed else parsed.message).replace("%%", "%")
    return _ErrorDetail(message=message, code=parsed.code, type=parsed.type, decision=parsed.decision)


def _lance_inner(body: bytes) -> _ErrorDetail:
    """Parse Lance's error body. Its error codes are less specific than the HTTP status."""
    try:
        return _ErrorDetail(message=json_decoder(_LanceErrorBody).decode(body).detail)
    except msgspec.DecodeError:
        return _ErrorDetail()


def _code(status: int, inner: _ErrorDetail) -> str:
    if isinstance(inner.code, str) and inner.code:
        return inner.code
    if inner.code == _UNSPECIFIC_NUMBER and status == 409:
        return "invalid-table"
    if isinstance(inner.code, int) and inner.code in _BY_NUMBER:
        return _BY_NUMBER[inner.code]
    return _BY_TYPE.get(inner.type) or _BY_STATUS.get(status, "internal")


def _excerpt(body: bytes) -> str:
    return " ".join(body[:300].decode(errors="replace").split())
