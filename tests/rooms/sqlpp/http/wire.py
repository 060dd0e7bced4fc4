# SPDX-License-Identifier: Apache-2.0
"""Helpers of the query service's tests: short requests and parsed answers."""

from __future__ import annotations

from urllib.parse import urlencode

from tests.http.driver import DriverAnswer, DriverNode

SERVICE = "/query/service"
FORM = "application/x-www-form-urlencoded"


def ask(node: DriverNode, statement: str, *, user: str | None = "admin", **more: object) -> DriverAnswer:
    """Send statements as JSON. Underscores in parameter names become dashes."""
    body = {"statement": statement, **{_named(name): value for name, value in more.items()}}
    return node.ask("POST", SERVICE, body, user=user, content_type="application/json")


def form(node: DriverNode, *pairs: tuple[str, str], user: str = "admin") -> DriverAnswer:
    """Send a form."""
    return node.ask("POST", SERVICE, urlencode(pairs).encode(), user=user, content_type=FORM)


def rows(node: DriverNode, statement: str, *, user: str = "admin", **more: object) -> list:
    """Run statements that must succeed. Returns their results."""
    answer = ask(node, statement, user=user, **more)
    body = answer.json()
    assert (answer.status, body["status"]) == (200, "success"), answer.body.decode()
    return body.get("results", [])


def refusal(node: DriverNode, statement: str, *, user: str = "admin", **more: object) -> tuple[int, str]:
    """Return status and message of refused statements; the body must have AsterixDB's form."""
    return status_and_message(ask(node, statement, user=user, **more))


def status_and_message(answer: DriverAnswer) -> tuple[int, str]:
    """Return status and message of a refusal."""
    body = answer.json()
    assert body["status"] in ("fatal", "timeout"), body
    assert "results" not in body
    assert isinstance(body["requestID"], str)
    (error,) = body["errors"]
    assert error["code"] == 1
    return answer.status, error["msg"]


def _named(name: str) -> str:
    return {"compile_only": "compile-only", "plan_format": "plan-format"}.get(name, name)
