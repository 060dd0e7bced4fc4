# SPDX-License-Identifier: Apache-2.0
"""Every route of the console: its headers, the required sign-in, and accepted POST requests. Other protocols do not
accept the console's cookie.
"""

from __future__ import annotations

from urllib.parse import quote

import pytest

from limnos.rooms.console.http.protocol import CONSOLE_ROUTES, ConsoleProtocol
from limnos.rooms.console.http.site import ConsoleSite
from limnos.services.request.concurrency.loop_turns import FREE_S, LoopTurns
from tests.http.driver import API, DriverNode
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

POSTS = [route for route in CONSOLE_ROUTES if route.method == "POST"]
PAGES = [route for route in CONSOLE_ROUTES if route.method == "GET"]
FORGED = {
    "no header": {"x_nothing": "1"},
    "same-site": {"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate"},
    "cross-site": {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
    "typed": {"sec_fetch_site": "none"},
    "other host": {"origin": "http://evil.example.com"},
    "other scheme": {"origin": "https://localhost:8090"},
    "other port": {"origin": "http://localhost:8091"},
    "null": {"origin": "null"},
    "own page, other origin": {"sec_fetch_site": "same-origin", "origin": "http://evil.example.com"},
}


def path_of(path: str) -> str:
    """Return a URL that matches a route."""
    return "/console" + path.replace("{kind}/{path...}", "catalog/lake/main").replace(
        "{kind}/{m}/{name}", "user/lake/admin"
    ).replace("{m}/{name}", "lake/pii").replace("{name}", "limnos.css")


@pytest.mark.parametrize("signed_in", [False, True])
def test_every_answer_has_the_security_headers(lake: DriverNode, signed_in: bool) -> None:
    """Each answer has a strict policy without inline scripts and with Trusted Types, with and without a session."""
    for route in CONSOLE_ROUTES:
        visitor = ConsoleVisitor(lake).sign_in() if signed_in else ConsoleVisitor(lake)
        path = path_of(route.path)
        answer = visitor.get(path) if route.method == "GET" else visitor.post(path, {})
        assert answer.status in {200, 303, 400, 401, 403, 404, 409}, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        if not route.path.startswith("/static"):
            assert answer.headers["cache-control"] == "no-store", path


def test_unknown_url_and_wrong_method_have_security_headers(lake: DriverNode) -> None:
    """Unknown URLs and wrong methods are answered with HTML pages that have the security headers."""
    visitor = ConsoleVisitor(lake)

    for answer in (visitor.get("/console/nothing/here"), visitor.post("/console/sessions", {})):
        assert answer.status in {404, 405}
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["content-type"].startswith("text/html")


def test_tls_answers_have_strict_transport_security(lake: DriverNode) -> None:
    """Over TLS every answer has `Strict-Transport-Security`."""
    protocol = ConsoleProtocol(ConsoleSite(is_tls=True))
    lake.built.application.protocols = [
        protocol if each.name == "console" else each for each in lake.built.application.protocols
    ]

    answer = ConsoleVisitor(lake, host="lake.example.com").get("/console/sign-in")

    assert "max-age" in answer.headers["strict-transport-security"]


def test_pages_need_a_session(lake: DriverNode) -> None:
    """Without a session a page redirects to the sign-in. An Authorization header does not replace the session."""
    for route in [route for route in PAGES if not route.is_public]:
        path = path_of(route.path)
        answer = ConsoleVisitor(lake).get(path)
        with_header = lake.ask("GET", path, user="admin", host="localhost:8090")
        for each in (answer, with_header):
            assert each.status == 303, path
            assert each.headers["location"].startswith("/console/sign-in")
        if path != "/console/":
            assert quote(path, safe="") in answer.headers["location"]


@pytest.mark.parametrize("route", POSTS, ids=lambda route: route.path)
def test_forged_posts_are_refused(lake: DriverNode, route: object) -> None:
    """A POST that another origin could send is refused, even with the session's cookie and right fields."""
    visitor = ConsoleVisitor(lake).sign_in()

    for shape, headers in FORGED.items():
        answer = visitor.post(path_of(route.path), {"user": "admin", "everywhere": "yes"}, **headers)
        assert answer.status == 403, shape
    assert visitor.get("/console/").status == 200


def test_session_cookie_is_accepted_by_the_console_only(admin: ConsoleVisitor) -> None:
    """A session's cookie or token is accepted by the console only."""
    (text,) = admin.cookies.values()

    for path in ("/api/limnos/v1/tokens", "/iceberg/v1/config?warehouse=main", "/api/metalakes/lake/catalogs"):
        assert admin.get(path).status in {401, 403}
        assert admin.node.ask("GET", path, user=None, authorization=f"Bearer {text}").status == 401


def test_api_token_is_refused_as_cookie(lake: DriverNode) -> None:
    """An API token is not accepted as the cookie."""
    token = lake.done("POST", "/api/limnos/v1/tokens", {"name": "laptop"})["token"]
    visitor = ConsoleVisitor(lake, cookies={"limnos-8090": token})

    assert visitor.get("/console/").status == 303


def test_reads_change_nothing(admin: ConsoleVisitor) -> None:
    """GET requests change nothing in the store."""
    before = admin.node.done("GET", "/api/limnos/v1/metalakes/lake/changes?after=now")["next"]

    for route in PAGES:
        admin.get(path_of(route.path))

    after = admin.node.done("GET", f"/api/limnos/v1/metalakes/lake/changes?after={before}")
    assert after["changes"] == []


def test_no_page_contains_the_session_cookie(admin: ConsoleVisitor) -> None:
    """No page contains the session cookie's value."""
    (text,) = admin.cookies.values()

    for route in PAGES:
        assert text not in text_of(admin.get(path_of(route.path)))


def test_browser_at_the_root_is_redirected_to_the_console(lake: DriverNode) -> None:
    """A browser is redirected to the console, below a proxy's prefix, too; programs get text."""
    browser = lake.ask("GET", "/", user=None, accept="text/html,application/xhtml+xml")
    program = lake.ask("GET", "/", user=None, accept="*/*")

    assert (browser.status, browser.headers["location"]) == (303, "console/")
    assert program.headers["content-type"].startswith("text/plain")


def test_form_with_a_repeated_field_is_refused(admin: ConsoleVisitor) -> None:
    """A form that has a field twice is refused as a whole, since the two values could mean different objects."""
    own = {"sec_fetch_site": "same-origin", "origin": f"http://{admin.host}"}

    answer = admin._sent("POST", "/console/tags/create", b"metalake=lake&name=first&name=second&comment=", own)

    assert answer.status == 400
    assert "more than once" in text_of(answer)
    assert admin.node.done("GET", f"{API}/lake/tags")["names"] == []


def test_pages_of_the_console_take_turns_of_their_user(node: DriverNode) -> None:
    """A page of a user who has too many requests waiting is an error page, 503 with Retry-After, and the session goes
    on; another user's page is shown.
    """
    admin, other = ConsoleVisitor(node).sign_in(), ConsoleVisitor(node).sign_in("ana")
    clock = iter(range(1_000_000))
    node.built.application.turns.loop_turns = LoopTurns(now=lambda: next(clock) * 2 * FREE_S, waiting_max=0)

    pages = [admin.get("/console/"), admin.get("/console/"), other.get("/console/")]
    node.built.application.turns.loop_turns = LoopTurns()

    assert [each.status for each in pages] == [200, 503, 200]
    assert pages[1].headers["retry-after"] == "2"
    assert "requests are waiting" in text_of(pages[1])
    assert admin.get("/console/").status == 200
