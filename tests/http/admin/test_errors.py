# SPDX-License-Identifier: Apache-2.0
"""The error body of the admin API."""

from __future__ import annotations

import json

import pytest

from limnos.http.admin.errors import error_response
from limnos.http.admin.protocol import AdminProtocol
from limnos.model import errors
from limnos.names.errors import InvalidName
from tests.http.driver import API, OWN, DriverNode
from tests.http.test_coverage import BODIES

ROUTES = [
    (route.method, route.path, route.operation) for route in AdminProtocol().router.routes if route.path.startswith(OWN)
]


@pytest.mark.parametrize(
    "error, status, code",
    [
        (errors.BadRequest("x"), 400, "bad-request"),
        (errors.IllegalPrivilege("x"), 400, "illegal-privilege"),
        (InvalidName("empty-part", "x"), 400, "illegal-name"),
        (errors.AuthenticationFailed("x"), 401, "unauthenticated"),
        (errors.PermissionDenied("x"), 403, "forbidden"),
        (errors.NotFound("x", kind="token"), 404, "not-found"),
        (errors.MissingFile("x"), 404, "missing-file"),
        (errors.UnsupportedOperation("x"), 405, "unsupported"),
        (errors.AlreadyExists("x", kind="table"), 409, "already-exists"),
        (errors.NotEmpty("x", kind="namespace"), 409, "not-empty"),
        (errors.InUse("x", kind="catalog"), 409, "in-use"),
        (errors.NotInUse("x", kind="catalog"), 409, "not-in-use"),
        (errors.CommitConflict("x"), 409, "commit-conflict"),
        (errors.TooLarge("x"), 413, "too-large"),
        (errors.PropertyConflict("x"), 422, "unprocessable"),
        (errors.StateUnknown("x"), 500, "state-unknown"),
        (errors.LimnosError("x"), 500, "internal"),
        (errors.ServiceUnavailable("x", retry_after_s=3), 503, "unavailable"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_error_class_has_its_status_and_code(error: errors.LimnosError, status: int, code: str) -> None:
    """Each error class has its status and its stable code."""
    response = error_response(error, request_id="q")

    assert response.status == status
    assert json.loads(response.body) == {"error": {"code": code, "message": "x", "request_id": "q"}}


def test_unavailable_has_retry_after_and_401_a_challenge() -> None:
    """503 has `Retry-After`, and 401 has a `Bearer` challenge."""
    responses = [
        error_response(e, request_id="q") for e in (errors.ServiceUnavailable("x"), errors.AuthenticationFailed("x"))
    ]

    assert [response.headers[-1] for response in responses] == [
        (b"retry-after", b"1"),
        (b"www-authenticate", b"Bearer"),
    ]


def test_request_id_matches_header_and_log(node: DriverNode) -> None:
    """The request id in the body equals the one in the header and in the log."""
    answer = node.get(f"{OWN}/nothing")

    assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]


def test_forbidden_answer_has_the_decision_with_reasons(node: DriverNode) -> None:
    """A 403 has the decision with its reasons, and does not reveal whether the object exists."""
    node.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": "a"})
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    path = f"{OWN}/metalakes/lake/catalogs/main/move"

    real, absent = (
        node.post(path, {"kind": "namespace", "source": [name], "target": ["b"]}, user="ana") for name in ("a", "z")
    )

    error = real.json()["error"]
    assert (real.status, error["code"]) == (403, "forbidden")
    assert error["decision"]["action"] == "namespace_move"
    assert error["decision"]["factors"]
    expected = {**error, "request_id": absent.json()["error"]["request_id"]}
    assert json.loads(json.dumps(expected).replace("main.a", "main.z")) == absent.json()["error"]


def test_percent_signs_in_messages_are_not_doubled(node: DriverNode) -> None:
    """The admin API does not double percent signs in messages, because no client formats these messages."""
    node.done("POST", f"{API}/lake/users", {"name": "50%"})

    answer = node.get(f"{OWN}/metalakes/lake/groups/60%25/members", user="50%")

    assert "%%" not in answer.json()["error"]["message"]
    assert "60%" in answer.json()["error"]["message"] or "50%" in answer.json()["error"]["message"]


@pytest.mark.parametrize("method, path, operation", ROUTES, ids=str)
def test_every_route_refuses_wrong_tokens_and_non_members(
    node: DriverNode, method: str, path: str, operation: str
) -> None:
    """A wrong token is 401 on every route. A user who is not in the metalake gets 403, whether the metalake exists or
    not.
    """
    bodies = [None, BODIES.get(operation)]
    target = (
        path.replace("{m}", "lake")
        .replace("{c}", "main")
        .replace("{id}", "1")
        .replace("{type}", "schema")
        .replace("{fullName}", "main.a")
        .replace("{p}", "nyc")
    )
    if target.endswith("/search"):
        target += "?q=t"
    if target.endswith("/access/missing"):
        target += "?preset=reader"
    if target.endswith("/access/diff"):
        target += "?user=ana&other=zoe"

    wrong = [node.ask(method, target, body, user=None, authorization="Bearer lim_9_x") for body in bodies]
    strange = [
        node.ask(method, target.replace("/lake", f"/{lake}"), body, user="zoe")
        for lake in ("lake", "none")
        for body in bodies
    ]

    assert {answer.status for answer in wrong} - {400} == {401}
    if "/metalakes/" in path:
        assert {answer.status for answer in strange} - {400} == {403}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"enabled": 1}', b'{"enabled": true, "x": 1}', b"\xff"])
def test_bad_bodies_are_400(node: DriverNode, body: bytes) -> None:
    """A malformed body is 400 with the reason."""
    answer = node.patch(f"{OWN}/metalakes/lake/users/admin", body)

    assert answer.status == 400
    assert answer.json()["error"]["code"] == "bad-request"
    assert str(answer.json()["error"]["message"]).startswith("Malformed json request: ")
