# SPDX-License-Identifier: Apache-2.0
"""How the client sends requests: credentials, retries, the blocking and the asynchronous client, and invalid
answers.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from limnos import __version__
from limnos.client import (
    ArgumentError,
    AsyncClient,
    Client,
    ConflictError,
    NotFoundError,
    ServerError,
    UnavailableError,
    UnexpectedAnswerError,
)
from limnos.client.flow import Request, retry_pause_s
from limnos.client.session import _ServerTarget
from tests.authority import Authority
from tests.client.fake import FakeServer, running

WHO = "/api/limnos/v1/whoami"


def free_port() -> int:
    """Return a loopback port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accept_handshakes(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Accept connections and answer their TLS handshakes, until the listener is closed."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with suppress(OSError), connection, context.wrap_socket(connection, server_side=True):
            pass


def test_user_is_sent_as_basic(fake: FakeServer) -> None:
    """A user name is sent as Basic authentication with an empty password, in UTF-8."""
    fake.on("GET", WHO, {"user": "zoë"})

    with Client(fake.uri, user="zoë") as client:
        assert client.whoami() == "zoë"

    expected = base64.b64encode("zoë:".encode()).decode()
    assert fake.asked[0].headers["Authorization"] == f"Basic {expected}"
    assert fake.asked[0].headers["User-Agent"] == f"limnos/{__version__}"


def test_token_of_a_file_is_sent_without_its_line_break(fake: FakeServer) -> None:
    """White space around a token is left out, as that of a file's last line."""
    fake.on("GET", WHO, {"user": "ana"})

    with Client(fake.uri, token=" s3cret\n") as client:
        client.whoami()

    assert fake.asked[0].headers["Authorization"] == "Bearer s3cret"


@pytest.mark.parametrize("token", ["", " ", "s3\ncret", "s3 cret", "s3crét"])
def test_token_that_no_header_has_is_refused_without_it(token: str) -> None:
    """A token that cannot be sent is refused before a request, and the message does not have it."""
    with pytest.raises(ArgumentError, match="is no token") as refused:
        Client("http://127.0.0.1:8090", token=token)

    assert "s3" not in str(refused.value)


def test_token_is_sent_as_bearer(fake: FakeServer) -> None:
    """A token is sent as Bearer."""
    fake.on("GET", WHO, {"user": "ana"})

    with Client(fake.uri, token="s3cret") as client:
        client.whoami()

    assert fake.asked[0].headers["Authorization"] == "Bearer s3cret"


def test_anonymous_client_sends_no_credential(fake: FakeServer) -> None:
    """Without token and user no Authorization header is sent."""
    fake.on("GET", WHO, {"user": "anonymous"})

    with Client(f"{fake.uri}/") as client:
        assert client.whoami() == "anonymous"

    assert "Authorization" not in fake.asked[0].headers


@pytest.mark.parametrize(
    "uri,who,expected",
    [
        ("127.0.0.1:8090", {}, "write for example http://127.0.0.1:8090"),
        ("ftp://h", {}, "not the address of a server"),
        ("http://h", {"token": "t", "user": "u"}, "not both"),
        ("http://h", {"user": "a:b"}, "not a user name"),
        ("http://h", {"user": ""}, "not a user name"),
    ],
)
def test_invalid_address_or_credential_is_refused(uri: str, who: dict[str, str], expected: str) -> None:
    """An invalid address or credential is refused before a request is sent."""
    with pytest.raises(ArgumentError, match=expected):
        Client(uri, **who)  # type: ignore[arg-type]


@pytest.mark.parametrize("token", ["lim_1_planted\nx", "-----BEGIN planted-----\nMII", '{"token": "planted"}', " \n"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_text_that_is_no_token_is_refused_without_its_content(
    fake: FakeServer, kind: type[Client | AsyncClient], token: str
) -> None:
    """A text that is no token is refused before a request, and the error has no part of it."""
    with pytest.raises(ArgumentError, match="is no token") as raised:
        kind(fake.uri, token=token)

    lines = "".join(traceback.format_exception(raised.value))
    assert "planted" not in str(raised.value)
    assert "BEGIN" not in str(raised.value)
    assert "planted" not in lines
    assert fake.asked == []


def test_end_of_line_of_a_token_file_is_not_sent(fake: FakeServer) -> None:
    """White space around a token, as from a file, is no part of it; neither for the client nor for PyIceberg."""
    fake.on("GET", WHO, {"user": "ana"})

    with Client(fake.uri, token="lim_1_x\n") as client:
        client.whoami()

        assert client.iceberg_properties("main")["token"] == "lim_1_x"
    assert fake.asked[0].headers["Authorization"] == "Bearer lim_1_x"


def test_illegal_header_is_no_broken_connection_and_is_not_printed(fake: FakeServer) -> None:
    """A request that HTTP cannot send raises ArgumentError, without the header and without a cause that has it."""
    with Client(fake.uri, token="lim_1_x") as client:
        client._sender.http.headers["Authorization"] = "Bearer planted\nx"
        with pytest.raises(ArgumentError, match="was not sent") as raised:
            client.whoami()

    assert "planted" not in "".join(traceback.format_exception(raised.value))
    assert fake.asked == []


def test_server_that_hangs_up_without_tls_may_have_it(fake: FakeServer) -> None:
    """If a server closes a connection by http:// without a response, the error says that TLS begins with https://."""
    fake.on("GET", WHO, hang_up=True)

    with (
        Client(fake.uri, user="ana") as client,
        pytest.raises(UnavailableError, match="begins with https://") as raised,
    ):
        client.whoami()

    assert raised.value.sent


def test_untrusted_certificate_is_named(tmp_path: Path) -> None:
    """A certificate that no trusted authority signed is an error of its own: nothing was sent."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    Authority(tmp_path).give(certificate, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept_handshakes, args=(listener, context), daemon=True).start()
        uri = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with Client(uri, user="ana") as client, pytest.raises(UnavailableError, match="is not trusted") as raised:
            client.whoami()

    assert not raised.value.sent


def test_loopback_requests_bypass_the_proxy(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to loopback do not use the proxy of the environment, in the blocking and the asynchronous client."""
    with running() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.uri)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        fake.on("GET", WHO, {"user": "ana"})

        async def awaited() -> str:
            async with AsyncClient(fake.uri, token="s3cret") as client:
                return await client.whoami()

        with Client(fake.uri, token="s3cret") as client:
            users = [client.whoami(), asyncio.run(awaited())]

    assert users == ["ana", "ana"]
    assert proxy.calls == []


@pytest.mark.parametrize(
    "uri, are_read",
    [("http://127.0.0.1:8090", False), ("https://127.0.0.1:8090", True), ("http://lake.example.com", True)],
)
def test_authorities_are_read_unless_no_request_uses_tls(uri: str, are_read: bool) -> None:
    """A client of a server on this machine without TLS reads no authorities and trusts nobody; a proxy or a server
    elsewhere may use TLS.
    """
    verify = _ServerTarget(uri, token=None, user="ana", metalake="lake", ca_file=None).verify

    assert (verify is True) == are_read
    if isinstance(verify, ssl.SSLContext):
        assert (verify.verify_mode, verify.check_hostname, verify.get_ca_certs()) == (ssl.CERT_REQUIRED, True, [])


def test_unreachable_server_is_unavailable() -> None:
    """If no process listens, the error names the address and states that nothing was sent."""
    uri = f"http://127.0.0.1:{free_port()}"

    with Client(uri) as client, pytest.raises(UnavailableError) as caught:
        client.users.add("ben")

    assert uri in caught.value.message
    assert caught.value.sent is False
    assert caught.value.status == 0


def test_read_is_repeated_after_retry_after(fake: FakeServer) -> None:
    """A GET that is answered 503 with Retry-After is repeated, and the next answer is returned."""
    fake.on(
        "GET", WHO, {"error": {"code": "unavailable", "message": "busy"}}, status=503, headers=(("Retry-After", "0"),)
    )
    fake.on("GET", WHO, {"user": "ana"})

    with Client(fake.uri) as client:
        assert client.whoami() == "ana"

    assert len(fake.asked) == 2


def test_read_is_repeated_after_a_hang_up(fake: FakeServer) -> None:
    """A GET whose connection broke is repeated."""
    fake.on("GET", WHO, hang_up=True).on("GET", WHO, {"user": "ana"})

    with Client(fake.uri) as client:
        assert client.whoami() == "ana"


def test_create_is_never_repeated(fake: FakeServer, client: Client) -> None:
    """A POST is sent once, even if it fails."""
    url = "/api/metalakes/lake/users"
    fake.on("POST", url, {"code": 1002, "message": "busy"}, status=503, headers=(("Retry-After", "0"),))

    with pytest.raises(UnavailableError, match="busy"):
        client.users.add("ben")

    assert fake.calls == [f"POST {url}"]


def test_last_error_is_raised_after_three_attempts(fake: FakeServer) -> None:
    """After three attempts the last error is raised."""
    fake.on("GET", WHO, {"error": {"message": "busy"}}, status=503, headers=(("Retry-After", "0"),))

    with Client(fake.uri) as client, pytest.raises(UnavailableError, match="busy"):
        client.whoami()

    assert len(fake.asked) == 3


@pytest.mark.parametrize(
    "method,error,attempt,pause",
    [
        ("GET", UnavailableError("x", sent=False), 1, 0.1),
        ("GET", UnavailableError("x", sent=False), 2, 0.4),
        ("GET", UnavailableError("x", sent=False), 3, None),
        ("GET", UnavailableError("x"), 1, 0.1),
        ("DELETE", UnavailableError("x", sent=False), 1, 0.1),
        ("DELETE", UnavailableError("x"), 1, None),
        ("DELETE", UnavailableError("x", status=503, retry_after_s=2), 1, 2),
        ("PUT", UnavailableError("x", status=503, retry_after_s=60), 1, 10),
        ("PUT", UnavailableError("x", status=503), 1, None),
        ("PATCH", UnavailableError("x", status=503, retry_after_s=1), 1, None),
        ("POST", UnavailableError("x", sent=False), 1, None),
        ("GET", UnavailableError("x", status=504), 1, None),
        ("GET", ServerError("x", status=500), 1, None),
    ],
)
def test_only_idempotent_requests_are_repeated(
    method: str, error: Exception, attempt: int, pause: float | None
) -> None:
    """Only idempotent requests are repeated, only if there was no answer or the server asks for it, and with a limited
    pause.
    """
    assert retry_pause_s(Request(method=method, path="/"), error, attempt) == pause


def test_transaction_is_repeated_only_with_idempotency_key(fake: FakeServer) -> None:
    """A transaction without an answer is repeated under its idempotency key; without a key it is not."""
    url = "/api/limnos/v1/metalakes/lake/catalogs/main/transactions"
    key = "01912345-0000-7000-8000-000000000001"
    done = {"revision": 7, "operations": []}
    fake.on("POST", url, hang_up=True).on("POST", url, done).on("POST", url, hang_up=True)

    with Client(fake.uri) as client:
        assert client.transactions.run("main", [], key=key).revision == 7
        with pytest.raises(UnavailableError):
            client.transactions.run("main", [])

    assert [request.headers.get("Idempotency-Key") for request in fake.asked] == [key, key, None]


def test_runner_heartbeat_is_repeated(fake: FakeServer) -> None:
    """A heartbeat without an answer is repeated, because it is idempotent; a resume only if it names the preceding
    attempt.
    """
    runs = "/api/limnos/v1/metalakes/lake/runs/r-1"
    run = {"id": "r-1", "pipeline": "nyc", "state": "running", "attempt": 2, "user": "ana", "holder": "h:1"}
    fake.on("POST", f"{runs}/beat", hang_up=True).on("POST", f"{runs}/beat", {"state": "running", "attempt": 1})
    fake.on("POST", f"{runs}/resume", hang_up=True).on("POST", f"{runs}/resume", run).on(
        "POST", f"{runs}/resume", hang_up=True
    )

    with Client(fake.uri) as client:
        assert client.runs.beat("r-1", 1).state == "running"
        assert client.runs.resume("r-1", holder="h:1", after=1).attempt == 2
        with pytest.raises(UnavailableError):
            client.runs.resume("r-1", holder="h:1")


def test_slow_server_is_unavailable(fake: FakeServer) -> None:
    """If the server does not answer within the timeout, UnavailableError is raised without another attempt."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"

        with Client(uri, timeout_s=0.05) as client, pytest.raises(UnavailableError, match="did not answer in time"):
            client.whoami()


@pytest.mark.parametrize("body", ["<html>hello</html>", {"nobody": 1}, [1]])
def test_unexpected_answer_suggests_a_wrong_address(fake: FakeServer, body: object) -> None:
    """The error for an answer of another shape suggests a wrong address."""
    fake.on("GET", WHO, body)

    with Client(fake.uri) as client, pytest.raises(UnexpectedAnswerError, match="check that the URI"):
        client.whoami()


def test_redirect_is_no_success(fake: FakeServer) -> None:
    """A redirect, for instance to a login page, is an error and is not followed."""
    fake.on("GET", WHO, "moved", status=302, headers=(("Location", "http://127.0.0.1:1/"),))

    with Client(fake.uri) as client, pytest.raises(UnexpectedAnswerError, match="302"):
        client.whoami()


def test_async_client_behaves_as_the_blocking_one(fake: FakeServer) -> None:
    """The asynchronous client sends the same requests, reads the same pages, and repeats and raises as the blocking
    one.
    """
    busy = {"error": {"message": "busy"}}
    fake.on("GET", WHO, busy, status=503, headers=(("Retry-After", "0"),)).on("GET", WHO, {"user": "ana"})
    first = "/iceberg/v1/lake.main/namespaces?pageToken=&pageSize=1000"
    fake.on("GET", first, {"namespaces": [["a"]], "next-page-token": "t1"})
    fake.on("GET", first.replace("pageToken=", "pageToken=t1"), {"namespaces": [["b"]]})
    fake.on("DELETE", "/iceberg/v1/lake.main/namespaces/a", {"error": {"message": "full", "code": 409}}, status=409)

    async def scenario() -> tuple[str, tuple[tuple[str, ...], ...]]:
        async with AsyncClient(fake.uri, user="ana") as client:
            who = await client.whoami()
            namespaces = await client.namespaces.list("main")
            with pytest.raises(ConflictError, match="full"):
                await client.namespaces.drop("main.a")
            with pytest.raises(NotFoundError):
                await client.objects.kind("main.a.none")
            return who, namespaces

    assert asyncio.run(scenario()) == ("ana", (("main", "a"), ("main", "b")))
    assert fake.asked[0].headers["Authorization"].startswith("Basic ")


def test_async_client_reports_unreachable_servers() -> None:
    """The asynchronous client reports an unreachable server as the blocking one does."""

    async def scenario() -> None:
        async with AsyncClient(f"http://127.0.0.1:{free_port()}") as client:
            await client.users.list()

    with pytest.raises(UnavailableError, match="no server answers"):
        asyncio.run(scenario())


def test_iceberg_properties_connect_pyiceberg() -> None:
    """The properties for PyIceberg name the server, the catalog and the token."""
    with Client("http://h:1", token="t", metalake="m") as client:
        properties = client.iceberg_properties("main")

    assert properties == {"type": "rest", "uri": "http://h:1/iceberg", "warehouse": "m/main", "token": "t"}


def test_call_on_the_class_has_a_docstring() -> None:
    """On the class a call has its docstring."""
    assert "Return the user" in (type(Client("http://h").server).whoami.__doc__ or "")


def test_pyiceberg_properties_contain_the_ca_file(tmp_path: Path) -> None:
    """The properties for PyIceberg contain the client's CA file. A file that is not PEM is refused before a request is
    sent.
    """
    authority = Authority(tmp_path)
    with Client("https://h:1", ca_file=authority.file) as client:
        properties: Mapping[str, object] = client.iceberg_properties("main")
    (tmp_path / "no.pem").write_text("no certificate")

    assert properties["ssl"] == {"cabundle": str(authority.file)}
    with pytest.raises(ArgumentError, match="not a readable PEM file"):
        Client("https://h:1", ca_file=tmp_path / "no.pem")
