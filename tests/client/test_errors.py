# SPDX-License-Identifier: Apache-2.0
"""Error bodies of every protocol are mapped to the same exceptions and codes."""

from __future__ import annotations

import json

import pytest

from limnos.client import (
    ClientError,
    ConflictError,
    DeniedError,
    NotFoundError,
    RefusedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
)
from limnos.client.errors import NoSpaceError, error_from


def make_error(
    status: int, body: object, *, request_id: str | None = None, retry_after: str | None = None
) -> ClientError:
    """Return the exception for an answer."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return error_from(status, raw, request_id=request_id, retry_after=retry_after)


def gravitino(code: int, message: str = "m") -> dict[str, object]:
    """An error body of Gravitino REST."""
    return {"code": code, "type": "SomeException", "message": message, "stack": []}


def own(code: str) -> dict[str, object]:
    """An error body of the admin API."""
    return {"error": {"code": code, "message": "m", "request_id": "r"}}


def iceberg(kind: str, code: int) -> dict[str, object]:
    """An error body of Iceberg REST."""
    return {"error": {"message": "m", "type": kind, "code": code}}


@pytest.mark.parametrize(
    "status,body,expected,code",
    [
        (404, {"error": {"code": "not-found", "message": "m"}}, NotFoundError, "not-found"),
        (409, {"error": {"code": "commit-conflict", "message": "m"}}, ConflictError, "commit-conflict"),
        (400, {"error": {"code": "illegal-name", "message": "m"}}, RefusedError, "illegal-name"),
        (400, gravitino(1001), RefusedError, "bad-request"),
        (500, gravitino(1002), ServerError, "internal"),
        (409, gravitino(1002), ConflictError, "invalid-table"),
        (404, gravitino(1003), NotFoundError, "not-found"),
        (409, gravitino(1004), ConflictError, "already-exists"),
        (409, gravitino(1005), ConflictError, "not-empty"),
        (405, gravitino(1006), RefusedError, "unsupported"),
        (403, gravitino(1008), DeniedError, "forbidden"),
        (409, gravitino(1009), ConflictError, "not-in-use"),
        (409, gravitino(1010), ConflictError, "in-use"),
        (401, gravitino(1011), UnauthenticatedError, "unauthenticated"),
        (404, iceberg("NoSuchTableException", 404), NotFoundError, "not-found"),
        (404, iceberg("NotFoundException", 404), NotFoundError, "missing-file"),
        (409, iceberg("NamespaceNotEmptyException", 409), ConflictError, "not-empty"),
        (409, iceberg("AlreadyExistsException", 409), ConflictError, "already-exists"),
        (403, iceberg("ForbiddenException", 403), DeniedError, "forbidden"),
        (500, iceberg("CommitStateUnknownException", 500), ServerError, "state-unknown"),
        (422, iceberg("UnprocessableEntityException", 422), RefusedError, "unprocessable"),
        (503, own("no-space"), NoSpaceError, "no-space"),
        (503, own("unavailable"), UnavailableError, "unavailable"),
        (502, "bad gateway", UnavailableError, "unavailable"),
        (418, "teapot", RefusedError, "internal"),
    ],
)
def test_body_becomes_exception(status: int, body: object, expected: type[ClientError], code: str) -> None:
    """Status and body of each protocol determine the class and the stable code."""
    error = make_error(status, body)

    assert type(error) is expected
    assert (error.status, error.code) == (status, code)


def test_decision_and_request_id_are_carried() -> None:
    """A refusal has the decision that the server sent, and the request id."""
    decision = {
        "allowed": False,
        "action": "table_load",
        "target": {"id": 5, "kind": "table", "name": "main.raw.t"},
        "user": "ana",
        "factors": [
            {
                "kind": "missing",
                "privilege": "SELECT_TABLE",
                "object": {"id": 5, "kind": "table", "name": "main.raw.t"},
            },
            {"kind": "deny", "privilege": "USE_SCHEMA", "object": "main.raw", "object_kind": "schema", "role": "r"},
        ],
        "message": "no 100%% right",
    }

    error = make_error(403, {"error": {"code": "forbidden", "message": "m", "request_id": "r-1", "decision": decision}})

    assert error.request_id == "r-1"
    assert error.decision is not None
    assert error.decision.target_name == "main.raw.t"
    assert [factor.object_name for factor in error.decision.factors] == ["main.raw.t", "main.raw"]
    assert error.decision.sentence == "no 100% right"


def test_header_gives_the_request_id() -> None:
    """If the body has no request id, that of the header is used."""
    assert make_error(404, gravitino(1003), request_id="r-2").request_id == "r-2"


def test_doubled_percent_of_gravitino_is_read_back() -> None:
    """Percent signs, which Gravitino's messages double for its own client, are shown once."""
    assert make_error(404, gravitino(1003, "no schema a%%b")).message == "no schema a%b"


@pytest.mark.parametrize(
    "message,expected",
    [
        (
            "Failed to operate catalog(s) [main] operation [DROP] under metalake [lake], reason [in use [really]]",
            "in use [really]",
        ),
        ("Failed to operate object(a, reason) x, reason [why\nso]", "why\nso"),
        ("Failed to operate nothing", "Failed to operate nothing"),
        ("reason [x]", "reason [x]"),
    ],
)
def test_only_the_reason_of_gravitinos_message_is_shown(message: str, expected: str) -> None:
    """Of Gravitino's standard message only the reason is kept; any other message is unchanged."""
    assert make_error(409, gravitino(1010, message)).message == expected


def test_empty_or_foreign_error_body_gives_a_message() -> None:
    """For an empty body the message is the status; for a body of another kind, its beginning."""
    assert make_error(500, "").message == "the server answered 500 without a reason"
    assert make_error(500, "<html>\n  oops</html>").message == "<html> oops</html>"


@pytest.mark.parametrize("header,expected", [("7", 7.0), (None, None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)])
def test_retry_after_is_read_in_seconds(header: str | None, expected: float | None) -> None:
    """Retry-After in seconds is parsed; its date form is ignored."""
    error = make_error(503, {"error": {"message": "busy"}}, retry_after=header)

    assert isinstance(error, UnavailableError)
    assert error.retry_after_s == expected
