# SPDX-License-Identifier: Apache-2.0
"""Notices after a form: shown to the session that sent it, and never with text from a link."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from limnos.names.percent import unquote_form
from limnos.rooms.console.http.notices import signed_location, verified_notice
from limnos.rooms.console.http.page_requests import ConsoleRoute
from limnos.rooms.console.http.protocol import CONSOLE_ROUTES
from tests.http.driver import DriverAnswer, DriverNode
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

NOW_MS = 1_700_000_000_000
SPOOF = "Call 555-1234"
PAGES = [route for route in CONSOLE_ROUTES if route.method == "GET" and not route.is_public]
PARTS = {"{kind}/{path...}": "table/lake/main/raw/flights", "{kind}/{m}": "user/lake", "{m}": "lake", "{name}": "admin"}
"""Values of path parameters. If a page has no such object, its error page shows the notice."""


def address_of(path: str, *, done: str) -> str:
    """Return the URL of a route with a notice."""
    for parameter, value in PARTS.items():
        path = path.replace(parameter, value)
    return f"/console{path}?done={done}"


def enable(visitor: ConsoleVisitor) -> DriverAnswer:
    """Send a form that succeeds and redirects with a notice."""
    return visitor.post("/console/people/enable", {"metalake": "lake", "name": "admin", "enabled": "yes"})


@pytest.mark.parametrize("route", PAGES, ids=lambda route: route.operation)
def test_notice_without_a_valid_signature_is_not_shown(
    lake: DriverNode, admin: ConsoleVisitor, route: ConsoleRoute
) -> None:
    """No page shows a notice without a signature, with changed text, or with the signature of another session."""
    lake.done("POST", "/api/metalakes/lake/tags", {"name": "admin", "comment": "", "properties": {}})
    own = enable(admin).headers["location"].partition("?done=")[2]
    foreign = enable(ConsoleVisitor(lake).sign_in()).headers["location"].partition("?done=")[2]
    changed = own[: own.index(".") + 1] + "Call%20555-1234"

    for done in ("Call+555-1234", changed, foreign):
        answer = admin.get(address_of(route.path, done=done))
        assert "555-1234" not in text_of(answer)
        assert "is enabled" not in text_of(answer)
    if "done" in route.query:
        assert "admin is enabled" in text_of(admin.get(address_of(route.path, done=own)))


def test_a_notice_is_not_shown_again_later(admin: ConsoleVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is loaded again after a minute no longer shows the notice."""
    location = enable(admin).headers["location"]
    clock = admin.node.built.services.store.time
    real = clock.now_ms

    assert "admin is enabled" in admin.read(location).text
    monkeypatch.setattr(clock, "now_ms", lambda: real() + 61_500)
    assert "admin is enabled" not in admin.read(location).text


def test_a_sign_in_signs_no_notice(lake: DriverNode, admin: ConsoleVisitor) -> None:
    """A sign-in does not sign a notice in the link of the page to open, so the page does not show it."""
    target = "/console/?done=Call+555-1234"

    for visitor in (ConsoleVisitor(lake), admin):
        answer = visitor.post("/console/sign-in", {"user": "admin", "next": target})

        assert answer.headers["location"] == target
        assert SPOOF not in PageReader(text_of(visitor.get(target))).text


@pytest.mark.parametrize("text", ["plain", "a.b.c is back", "Größe \N{PILE OF POO} & more=?", ""])
def test_signed_notice_is_verified_for_one_minute(text: str) -> None:
    """A signed notice is verified with the same secret for one minute. Another secret, none, or a changed time is
    rejected.
    """
    target = f"/console/x?a=1&{urlencode({'done': text})}&b=2".encode()
    location = signed_location(target, b"secret", now_ms=NOW_MS).decode()
    value = unquote_form(location.partition("done=")[2].removesuffix("&b=2"))

    assert location.startswith("/console/x?a=1&done=")
    assert verified_notice(value, b"secret", now_ms=NOW_MS + 60_000) == text
    assert verified_notice(value, b"another", now_ms=NOW_MS) == ""
    assert verified_notice(value, None, now_ms=NOW_MS) == ""
    assert verified_notice(value, b"secret", now_ms=NOW_MS + 61_000) == ""
    later = value.replace(f".{NOW_MS // 1000}.", f".{NOW_MS // 1000 + 99}.")
    assert verified_notice(later, b"secret", now_ms=NOW_MS) == ""


def test_redirect_without_a_notice_is_unchanged() -> None:
    """A target without a notice is not changed."""
    assert signed_location(b"/console/sign-in", b"secret", now_ms=NOW_MS) == b"/console/sign-in"
    assert signed_location(b"/console/x?a=1&undone=2", b"secret", now_ms=NOW_MS) == b"/console/x?a=1&undone=2"
