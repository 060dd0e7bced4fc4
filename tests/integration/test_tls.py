# SPDX-License-Identifier: Apache-2.0
"""TLS on the server's own address with real clients: clients that trust the authority get answers, also while the
certificate is replaced.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from cryptography import x509
from pyiceberg.catalog import load_catalog

from limnos.client import Client, UnavailableError
from tests.authority import Authority
from tests.integration.live import LiveServer, serving

CALLERS = 64
REPLACED = 4
"""Number of certificate replacements under load."""
PATIENCE_S = 300
LONG = 200_000
IN_A_ROW = 20
"""Number of consecutive connections with the same certificate: both workers have served some of them."""


class Lake:
    """A server with TLS, its authority and its files."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.authority = Authority(directory)
        self.files = directory / "lake.pem", directory / "lake.key"
        self.serial = self.authority.give(*self.files)
        self.flags = ("--certificate", str(self.files[0]), "--key", str(self.files[1]), *flags)
        self.data = directory / "data"
        self.server: LiveServer

    @property
    def port(self) -> int:
        """Return the port of the server."""
        return urlsplit(self.server.uri).port or 0

    def shown(self) -> int:
        """Return the serial number of the certificate in a new connection."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=10) as plain,
            ssl.create_default_context(cafile=str(self.authority.file)).wrap_socket(
                plain, server_hostname="localhost"
            ) as secured,
        ):
            certificate = secured.getpeercert(binary_form=True)
            assert certificate is not None
            return x509.load_der_x509_certificate(certificate).serial_number

    def wait_shown(self, serial: int, *, times: int = 1) -> None:
        """Wait until the given number of consecutive connections have a certificate: each worker has its own."""
        until, row = time.monotonic() + PATIENCE_S, 0
        while row < times:
            assert time.monotonic() < until, "the new certificate was never served"
            row = row + 1 if self.shown() == serial else 0


@pytest.fixture(scope="module", params=[(), ("--workers", "2")], ids=["one process", "two workers"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A server that speaks TLS."""
    tls_lake = Lake(tmp_path_factory.mktemp("tls"), *request.param)
    with serving(tls_lake.data, *tls_lake.flags) as tls_lake.server:
        yield tls_lake


def test_client_trusts_only_the_configured_ca_file(lake: Lake) -> None:
    """With `ca_file` the client is answered; without it the error says that no trusted server answers."""
    assert lake.server.uri.startswith("https://")
    with Client(lake.server.uri, token=lake.server.token, ca_file=lake.authority.file) as client:
        assert client.whoami() == "admin"
    with (
        Client(lake.server.uri, token=lake.server.token) as client,
        pytest.raises(UnavailableError, match="CERTIFICATE"),
    ):
        client.whoami()


def test_pyiceberg_and_requests_trust_the_configured_ca(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyIceberg connects with the properties of the client, requests with its own setting.

    A CA bundle of the environment overrides that of a session in requests, so there must be none.
    """
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with Client(lake.server.uri, token=lake.server.token, ca_file=lake.authority.file) as client:
        catalog = load_catalog("main", **client.iceberg_properties("main"))
    response = requests.get(f"{lake.server.uri}/health/ready", verify=str(lake.authority.file), timeout=10)

    assert catalog.list_namespaces() == []
    assert response.status_code == 200


def test_curl_trusts_the_given_cacert(lake: Lake) -> None:
    """With `--cacert`, curl trusts the given authority."""
    process = subprocess.run(
        [shutil.which("curl") or "curl", "-sS", "--cacert", str(lake.authority.file), f"{lake.server.uri}/metrics"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert "limnos_tls_certificate_ends_seconds" in process.stdout


def test_body_longer_than_a_tls_record_is_complete(lake: Lake) -> None:
    """Bodies larger than a TLS record (16 KiB) arrive complete in both directions."""
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {lake.server.token}"
        url, believed = f"{lake.server.uri}/iceberg/v1/lake.main/namespaces", str(lake.authority.file)
        session.post(url, json={"namespace": ["long"], "properties": {"long": "x" * LONG}}, verify=believed, timeout=30)
        namespace = session.get(f"{url}/long", verify=believed, timeout=30).json()
        session.delete(f"{url}/long", verify=believed, timeout=30)

    assert namespace["properties"]["long"] == "x" * LONG


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_tls_and_no_tls_are_not_answered(lake: Lake) -> None:
    """A handshake with TLS 1.1 fails; a plain-text request gets no byte of an answer."""
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", lake.port), timeout=10) as plain, pytest.raises(ssl.SSLError):
        old.wrap_socket(plain, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", lake.port), timeout=10) as plain:
        plain.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")

        assert b"HTTP/1.1" not in plain.recv(1000)


def test_certificate_is_replaced_under_load(lake: Lake) -> None:
    """While the certificate is replaced, no request of sixty-four callers fails, on kept-alive and on new
    connections.
    """
    failed: list[str] = []
    counts = [0] * CALLERS
    over = threading.Event()

    def ask(number: int) -> None:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {lake.server.token}"
        while not over.is_set():
            try:
                response = session.get(
                    f"{lake.server.uri}/api/limnos/v1/whoami",
                    verify=str(lake.authority.file),
                    timeout=PATIENCE_S,
                    headers={"Connection": "close"} if number % 2 else {},
                )
            except requests.RequestException as error:
                failed.append(repr(error))
                return
            if response.status_code != 200:
                failed.append(response.text)
            counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(REPLACED):
            lake.wait_shown(lake.authority.give(*lake.files, rsa_key=turn % 2 == 0), times=IN_A_ROW)
    finally:
        over.set()
        for thread in threads:
            thread.join()

    assert not failed, failed[:3]
    assert all(counts)


def test_invalid_certificate_pair_keeps_the_old_one_in_use(lake: Lake) -> None:
    """An invalid certificate and key leave the old pair in use; the log names the reason, and the next valid pair is
    loaded without a restart.
    """
    good = lake.authority.give(*lake.files)
    lake.wait_shown(good, times=IN_A_ROW)
    lake.files[1].write_bytes(b"no key")
    log = next(lake.data.parent.glob("data.*.log"))
    until = time.monotonic() + PATIENCE_S
    while "cannot be used; the old one stays in use" not in log.read_text():
        assert time.monotonic() < until, "the invalid pair was not reported"
        time.sleep(0.1)

    assert lake.shown() == good
    lake.wait_shown(lake.authority.give(*lake.files), times=IN_A_ROW)


def test_expired_certificate_prevents_server_start(tmp_path: Path) -> None:
    """With an expired certificate the server does not start, and `server check` reports it."""
    lake = Lake(tmp_path)
    lake.authority.give(*lake.files, starts=-2, ends=-1)
    with pytest.raises(AssertionError, match="has expired"), serving(lake.data, *lake.flags):
        pass
