# SPDX-License-Identifier: Apache-2.0
"""The protocol as a whole: every route, access control off, and the error table."""

from __future__ import annotations

import pytest

from limnos.model import errors
from limnos.rooms.gravitino.http.errors import error_response
from limnos.rooms.gravitino.http.protocol import GravitinoProtocol
from tests.http.driver import DriverAnswer, DriverNode
from tests.http.test_coverage import BODIES as OF_OPERATIONS

ROUTES = [(route.method, f"/api{route.path}") for route in GravitinoProtocol().router.routes]
SERVICE = ("/api/version", "/api/health", "/api/authn")
VALUES = {
    "{m}": "lake",
    "{c}": "main",
    "{s}": "a",
    "{u}": "u",
    "{g}": "g",
    "{r}": "r",
    "{type}": "catalog",
    "{fullName}": "main",
}
ACCESS = ("/users", "/groups", "/roles", "/permissions", "/owners")


def fill(path: str) -> str:
    """Return a route's path with names filled in."""
    for placeholder, value in VALUES.items():
        path = path.replace(placeholder, value)
    return path


BODIES: tuple[object, ...] = (
    None,
    {"name": "n"},
    {"name": "n", "provider": "lakehouse-iceberg"},
    {"inUse": False},
    {"updates": []},
    {"roleNames": ["r"]},
    {"overrides": []},
    {"privileges": [{"name": "use_catalog", "condition": "allow"}]},
    {"name": "u", "type": "USER"},
    {"name": "n", "securableObjects": []},
    {"tagsToAdd": []},
    {"jobTemplate": {"name": "n", "jobType": "shell", "executable": "/bin/true"}},
    {"jobTemplateName": "n", "jobConf": {}},
    {"uri": "s3://x"},
    {"name": "n", "columns": [{"name": "id", "type": "long"}]},
    *(
        OF_OPERATIONS[each]
        for each in (
            "add-users",
            "remove-users",
            "create-policy",
            "set-policy",
            "associate-policies",
            "register-function",
        )
    ),
    *(
        OF_OPERATIONS[each]
        for each in (
            "submit-strategy-jobs",
            "submit-update-stats-jobs",
            "append-table-statistics",
            "monitor-table-metrics",
        )
    ),
    *(OF_OPERATIONS[f"{verb}{part}-statistics"] for verb in ("update", "drop") for part in ("", "-partition")),
)
"""For each route that takes a body, a valid one."""


def understood(node: DriverNode, method: str, path: str, **headers: str | None) -> list[DriverAnswer]:
    """Return the answers to all bodies that a route understands."""
    answers = [node.ask(method, fill(path), body, **headers) for body in BODIES]
    return [answer for answer in answers if answer.status != 400]


@pytest.mark.parametrize("method, path", [r for r in ROUTES if not r[1].startswith(SERVICE)], ids=str)
def test_every_route_refuses_a_user_outside_the_metalake(node: DriverNode, method: str, path: str) -> None:
    """Each route of a metalake refuses a user who is not in it with 403, or returns an empty list of metalakes."""
    served = understood(node, method, path, user="stranger")

    assert served
    if path == "/api/metalakes" and method == "GET":
        assert {answer.body for answer in served} == {b'{"code":0,"metalakes":[]}'}
    else:
        assert {(answer.status, answer["code"]) for answer in served} == {(403, 1008)}


@pytest.mark.parametrize("method, path", ROUTES, ids=str)
def test_every_route_refuses_a_wrong_token(node: DriverNode, method: str, path: str) -> None:
    """Every route except health refuses an unverifiable credential with 401 and code 1011."""
    served = understood(node, method, path, user=None, authorization="Bearer lim_77_wrong")

    expected = (200, 0) if "/health" in path else (401, 1011)
    assert {(answer.status, answer["code"]) for answer in served} == {expected}


@pytest.mark.parametrize(
    "method, path",
    [r for r in ROUTES if any(f"lake{a}" in fill(r[1]) for a in ACCESS) or r[1].endswith("}/roles")],
    ids=str,
)
def test_access_routes_return_405_with_access_control_off(open_node: DriverNode, method: str, path: str) -> None:
    """With access control off, the access routes refuse every body with 405 and code 1006, and name the setting."""
    answer = open_node.ask(method, fill(path), {})

    assert (answer.status, answer["code"], answer["type"]) == (405, 1006, "UnsupportedOperationException")
    assert "access.enabled" in str(answer["message"])


def test_anonymous_can_change_schemas_with_access_control_off(open_node: DriverNode) -> None:
    """With access control off, a request without credentials can create and drop schemas."""
    path = "/api/metalakes/lake/catalogs/main/schemas"

    created = open_node.post(path, {"name": "a:b"}, user=None)
    dropped = open_node.delete(f"{path}/a%3Ab", user="ana")

    assert (created.status, dropped.json()) == (200, {"code": 0, "dropped": True})


@pytest.mark.parametrize(
    "error, status, code, name",
    [
        (errors.BadRequest("x"), 400, 1001, "IllegalArgumentException"),
        (errors.IllegalPrivilege("x"), 400, 1001, "IllegalPrivilegeException"),
        (errors.IllegalRole("x"), 400, 1001, "IllegalRoleException"),
        (errors.IllegalObject("x"), 400, 1001, "IllegalMetadataObjectException"),
        (errors.OutsideRoots("x"), 400, 1001, "IllegalArgumentException"),
        (errors.PropertyConflict("x"), 400, 1001, "IllegalArgumentException"),
        (errors.AuthenticationFailed("x"), 401, 1011, "UnauthorizedException"),
        (errors.PermissionDenied("x"), 403, 1008, "ForbiddenException"),
        (errors.NotFound("x", kind="table"), 404, 1003, "NoSuchTableException"),
        (errors.NotFound("x", kind="namespace"), 404, 1003, "NoSuchSchemaException"),
        (errors.NotFound("x", kind="object"), 404, 1003, "NoSuchMetadataObjectException"),
        (errors.NotFound("x", kind="route"), 404, 1003, "NotFoundException"),
        (errors.MissingFile("x"), 404, 1003, "NotFoundException"),
        (errors.AlreadyExists("x", kind="namespace"), 409, 1004, "SchemaAlreadyExistsException"),
        (errors.NotEmpty("x", kind="catalog"), 409, 1005, "NonEmptyCatalogException"),
        (errors.UnsupportedOperation("x"), 405, 1006, "UnsupportedOperationException"),
        (errors.NotInUse("x", kind="metalake"), 409, 1009, "MetalakeNotInUseException"),
        (errors.InUse("x", kind="catalog"), 409, 1010, "CatalogInUseException"),
        (errors.CommitConflict("x"), 409, 1012, "OptimisticLockException"),
        (errors.TooLarge("x"), 413, 1001, "IllegalArgumentException"),
        (errors.ServiceUnavailable("x", retry_after_s=7), 503, 1002, "RuntimeException"),
        (errors.StateUnknown("x"), 500, 1002, "RuntimeException"),
        (errors.LimnosError("x"), 500, 1002, "RuntimeException"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_error_classes_have_expected_status_and_code(
    error: errors.LimnosError, status: int, code: int, name: str
) -> None:
    """Each error class has the status, code and exception name that clients expect."""
    response = error_response(error)

    assert response.status == status
    assert f'"code":{code},"type":"{name}","message":"x"'.encode() in response.body


def test_unavailable_answer_has_retry_after() -> None:
    """503 has Retry-After, in seconds."""
    response = error_response(errors.ServiceUnavailable("x", retry_after_s=7))

    assert (b"retry-after", b"7") in response.headers


def test_unexpected_error_returns_500_without_its_message(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is 500 with code 1002 and a request id, without its message."""
    monkeypatch.setattr(node.built.services.gate, "refresh_now", lambda *_: 1 // 0)

    answer = node.get("/api/metalakes")

    assert (answer.status, answer["code"], answer["type"]) == (500, 1002, "RuntimeException")
    assert answer.headers["x-request-id"] in str(answer["message"])
    assert "ZeroDivision" not in str(answer["message"])


def test_body_over_the_limit_is_413(node: DriverNode) -> None:
    """A body over the limit is refused with 413, by its declared and by its actual length."""
    limit = node.built.application.body_bytes_max
    node.built.application.body_bytes_max = 100

    answers = [
        node.post("/api/metalakes", b'{"name": "' + b"x" * 200 + b'"}'),
        node.ask("POST", "/api/metalakes", {"name": "x"}, content_length="101"),
    ]
    node.built.application.body_bytes_max = limit

    assert [(answer.status, answer["code"]) for answer in answers] == [(413, 1001)] * 2
    assert "body_bytes_max" in str(answers[0]["message"])
