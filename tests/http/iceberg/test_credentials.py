# SPDX-License-Identifier: Apache-2.0
"""Requests without credentials, and requests for OAuth tokens, over Iceberg REST: the messages say which credentials to
send.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import error_of

if TYPE_CHECKING:
    from limnos.telemetry.request_log import RequestLog

ASKED = pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/config?warehouse=main"),
        ("GET", "/config?warehouse=none"),
        ("GET", "/config?warehouse=nolake/main"),
        ("GET", "/lake.main/namespaces"),
        ("GET", "/lake.none/namespaces"),
        ("GET", "/nolake.main/namespaces"),
        ("GET", "/namespaces"),
        ("GET", "/lake.main/namespaces/a"),
        ("GET", "/lake.main/namespaces/a/tables/t"),
        ("DELETE", "/lake.main/namespaces/a"),
        ("HEAD", "/lake.main/namespaces/a"),
    ],
)


def ask(node: DriverNode, method: str, path: str, **headers: str) -> DriverAnswer:
    """Send a request without a user."""
    return node.ask(method, f"/iceberg/v1{path}", user=None, **headers)


@ASKED
@pytest.mark.parametrize("header", [None, "Bearer None"])
def test_missing_credentials_return_401_for_any_object(
    node: DriverNode, method: str, path: str, header: str | None
) -> None:
    """Missing credentials are 401 with the scheme and advice, alike for existing and missing objects."""
    node.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": "a"})

    answer = ask(node, method, path, **({} if header is None else {"authorization": header}))

    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    if method != "HEAD":
        status, kind, message = error_of(answer)
        assert (status, kind) == (401, "NotAuthorizedException")
        assert "Bearer lim_" in message
        assert "limnos create token" in message
        assert message == error_of(ask(node, "GET", "/nolake.nothing/namespaces"))[2]


def test_refusal_advice_of_head_requests_is_logged(node: DriverNode) -> None:
    """The log has the advice of a refused HEAD request, because the answer has no body."""
    lines: list[tuple[object, ...]] = []
    node.built.application.outcomes.request_log = cast(
        "RequestLog", SimpleNamespace(add=lines.append, flush=lambda: None)
    )

    ask(node, "HEAD", "/lake.main/namespaces/a")
    words = error_of(ask(node, "GET", "/lake.main/namespaces/a"))[2]

    assert [line[-1] for line in lines] == [words, words]


def test_anonymous_user_with_privileges_is_served(node: DriverNode) -> None:
    """If the user `anonymous` has privileges, requests without credentials use them. Other requests of it are refused
    with 403.
    """
    grant(node, "anonymous", "use_catalog", kind="CATALOG", on="main")

    config, listed, created = (
        ask(node, "GET", "/config?warehouse=main"),
        ask(node, "GET", "/lake.main/namespaces"),
        node.ask("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": ["x"]}, user=None),
    )

    assert (config.status, listed.status, created.status) == (200, 200, 403)
    assert "CREATE_SCHEMA" in error_of(created)[2]


def test_unknown_user_returns_403(node: DriverNode) -> None:
    """The name of an unknown user is 403, because the caller is identified."""
    assert node.get("/iceberg/v1/lake.main/namespaces", user="stranger").status == 403


def test_credentials_are_not_needed_with_access_control_off(open_node: DriverNode) -> None:
    """With access control off, no credentials are needed."""
    assert ask(open_node, "GET", "/lake.main/namespaces").status == 200


def test_anonymous_user_over_gravitino_rest_gets_403(node: DriverNode) -> None:
    """Over Gravitino's protocol, a request without credentials is from the user `anonymous`, as in Gravitino, and is
    refused with 403 instead of 401.
    """
    assert node.get(f"{API}/lake/catalogs", user=None).status == 403
