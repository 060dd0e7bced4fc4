# SPDX-License-Identifier: Apache-2.0
"""Sign-in at an issuer in a real Chromium, at two nodes over PostgreSQL behind one address, each with two processes.

The sign-in starts at the first node, and the issuer sends the browser back to the second one.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.integration.chromium import running_chromium
from tests.issuer import AUDIENCE, BROWSER, Issuer, issuing
from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import Wire

pytestmark = [pytest.mark.integration, pytest.mark.heavy, pytest.mark.room("console")]
PATIENCE_MS = 120_000
ATTEMPTS_MAX = 600
"""Number of attempts to find the heartbeats of processes that have just started."""
PROCESSES = 2
"""The number of server processes of a node."""


class Forwarder(ThreadingHTTPServer):
    """One address for two nodes: the redirect from the issuer goes to the second node, every other request to the
    first.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _ForwardingHandler)
        self.ports: tuple[int, int] = (0, 0)
        self.forwarded: list[tuple[int, str]] = []
        """The number of the node and the path of each request, without its query."""
        self.threads = threading.Thread(target=self.serve_forever, daemon=True)
        self.threads.start()

    @property
    def url(self) -> str:
        """The address that browsers use."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _ForwardingHandler(BaseHTTPRequestHandler):
    server: Forwarder
    dropped: ClassVar = {"connection", "keep-alive", "transfer-encoding"}

    def do_GET(self) -> None:
        """Forward a request, and answer with the node's response."""
        path = self.path.partition("?")[0]
        number = int(path.endswith("/from-issuer"))
        self.server.forwarded.append((number, path))
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        node = http.client.HTTPConnection("127.0.0.1", self.server.ports[number], timeout=120)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in self.dropped}
            node.request(self.command, self.path, body=body, headers=headers)
            response = node.getresponse()
            content = response.read()
            self.send_response_only(response.status)
            for name, value in response.getheaders():
                if name.lower() not in self.dropped:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        finally:
            node.close()

    do_POST = do_GET  # noqa: N815 - the name that the base class calls

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """A running issuer."""
    with issuing() as running:
        yield running


@pytest.fixture(scope="module")
def forwarder() -> Iterator[Forwarder]:
    """The address of the console."""
    running = Forwarder()
    try:
        yield running
    finally:
        running.shutdown()
        running.server_close()


@pytest.fixture(scope="module")
def nodes(
    issuer: Issuer, forwarder: Forwarder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Process, Process]]:
    """Two nodes over PostgreSQL that accept the issuer's tokens, each with two processes."""
    cluster = PostgresCluster()
    directory = tmp_path_factory.mktemp("nodes")
    settings = {
        "ACCESS__AUTHENTICATION": "token",
        "OIDC__ISSUER": issuer.url,
        "OIDC__AUDIENCES": AUDIENCE,
        "OIDC__GROUPS_CLAIM": "groups",
        "OIDC__METALAKES": "lake",
        "OIDC__TIMEOUT_S": "30",
        "OIDC__CONSOLE_CLIENT_ID": BROWSER,
        "SERVER__PUBLIC_URL": forwarder.url,
        "SERVER__WORKERS": str(PROCESSES),
    }
    env = {f"LIMNOS__{name}": value for name, value in settings.items()}
    database = cluster.database()
    pair = tuple(Process(directory / "data", log=directory / f"{i}.log", database=database, env=env) for i in (0, 1))
    try:
        for node in pair:
            node.start()
        forwarder.ports = (_port(pair[0]), _port(pair[1]))
        yield pair[0], pair[1]
    finally:
        for node in pair:
            node.stop()
        cluster.stop()


def _port(node: Process) -> int:
    return int(node.uri.rpartition(":")[2])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with running_chromium() as running:
        yield running


@pytest.fixture
def context(nodes: tuple[Process, Process], forwarder: Forwarder, browser: Browser) -> Iterator[BrowserContext]:
    """A browser context without cookies; the record of forwarded requests is empty."""
    assert nodes
    forwarder.forwarded.clear()
    opened = browser.new_context()
    opened.set_default_timeout(PATIENCE_MS)
    try:
        yield opened
    finally:
        opened.close()


def begin_sign_in(context: BrowserContext, forwarder: Forwarder, path: str = "/console/sessions") -> Page:
    """Open a page without a session, and follow the link to the issuer."""
    page = context.new_page()
    page.goto(forwarder.url + path)
    page.click("a[href*='/to-issuer']")
    page.wait_for_load_state("load")
    return page


def test_sign_in_started_at_one_node_completes_at_another(
    context: BrowserContext, forwarder: Forwarder, issuer: Issuer
) -> None:
    """After the sign-in the requested page opens for the user, at both nodes; scripts can read no cookie and no
    token.
    """
    issuer.person = "ana"
    page = begin_sign_in(context, forwarder)

    assert page.url == f"{forwarder.url}/console/sessions"
    assert page.locator(".who a[href$='sessions']").inner_text().strip() == "ana"
    assert (0, "/console/to-issuer") in forwarder.forwarded
    assert (1, "/console/from-issuer") in forwarder.forwarded
    assert page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]") == ["", 0, 0]
    cookies = context.cookies()
    assert [each["httpOnly"] for each in cookies] == [True]
    assert all("ey" not in each["value"][:2] for each in cookies), "a token of the issuer is no cookie"


def test_issuer_redirect_cannot_be_replayed(context: BrowserContext, forwarder: Forwarder, issuer: Issuer) -> None:
    """The issuer's redirect opens no second session, neither in the same browser nor in another one."""
    issuer.person = "ana"
    answers: list[str] = []
    context.on("request", lambda request: answers.append(request.url) if "/from-issuer?" in request.url else None)
    begin_sign_in(context, forwarder).close()
    (answer,) = answers
    context.clear_cookies()

    page = context.new_page()
    response = page.goto(answer)

    assert response is not None
    assert response.status == 401
    assert "was not started in this browser" in page.inner_text("main")
    assert context.cookies() == []


def test_refusal_by_the_issuer_is_shown_at_sign_in(
    context: BrowserContext, forwarder: Forwarder, issuer: Issuer
) -> None:
    """If the issuer refuses the user, the sign-in page shows the reason, and there is no session."""
    issuer.person = None
    page = begin_sign_in(context, forwarder)

    assert "access denied" in page.inner_text("main")
    assert page.locator(".who a[href$='sessions']").count() == 0
    page.goto(f"{forwarder.url}/console/sessions")
    assert page.locator("a[href*='/to-issuer']").count() == 1


def test_sign_out_ends_the_session_at_the_other_node(
    context: BrowserContext, forwarder: Forwarder, issuer: Issuer
) -> None:
    """A session that the second node opened and the first one ended is invalid at the second one."""
    issuer.person = "ana"
    page = begin_sign_in(context, forwarder)
    cookies = context.cookies()
    page.click(".who form button")
    page.wait_for_load_state("load")
    forwarder.ports = (forwarder.ports[1], forwarder.ports[0])
    context.add_cookies(cookies)  # an earlier copy of the cookie
    try:
        page.goto(f"{forwarder.url}/console/sessions")
    finally:
        forwarder.ports = (forwarder.ports[1], forwarder.ports[0])

    assert page.locator("a[href*='/to-issuer']").count() == 1
    assert page.locator(".who a[href$='sessions']").count() == 0


def test_nodes_page_knows_every_process(nodes: tuple[Process, Process]) -> None:
    """Soon after its start every process of both nodes is listed, and exactly one is marked as the process that
    answers.
    """
    for node in nodes:
        admin = Wire(node.uri, token=node.token)
        for _ in range(ATTEMPTS_MAX):
            seen: Any = admin.do("GET", "/api/limnos/v1/nodes").body["nodes"]
            if len(seen) == 2 * PROCESSES:
                break
            time.sleep(0.5)
        admin.close()
        assert len({each["id"] for each in seen}) == 2 * PROCESSES
        assert [each["own"] for each in seen].count(True) == 1
        assert not any(each["silent"] for each in seen)
