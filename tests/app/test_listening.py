# SPDX-License-Identifier: Apache-2.0
"""Which addresses a server binds."""

from __future__ import annotations

import socket

import pytest

from limnos.app import listening
from limnos.config.server import ServerSection
from limnos.config.settings import Settings


def test_only_the_configured_address_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a configured address, the server binds only that address."""
    monkeypatch.setattr(listening, "EXTRA_PORTS", (0,))

    sockets = listening.listen(Settings(server=ServerSection(listen="127.0.0.1:0")))

    assert len(sockets) == 1
    sockets[0].close()


def test_customary_ports_are_taken_when_they_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configured address the server also binds the customary ports, if they are free."""
    with socket.create_server(("127.0.0.1", 0)) as busy_socket:
        monkeypatch.setattr(listening, "DEFAULT_LISTEN", "127.0.0.1:0")
        monkeypatch.setattr(listening, "EXTRA_PORTS", (busy_socket.getsockname()[1], 0))
        monkeypatch.setattr(listening, "SQLPP_PORT", busy_socket.getsockname()[1])

        sockets = listening.listen(Settings())

    assert len(sockets) == 2
    for each in sockets:
        each.close()


@pytest.mark.parametrize(
    "address, hosts, url",
    [
        ("0.0.0.0", ("*.example.com", "lake.example.com:9000", "lake.example.com"), "https://lake.example.com:{}"),
        ("0.0.0.0", (), "https://0.0.0.0:{}"),
        ("127.0.0.1", ("lake.example.com",), "https://127.0.0.1:{}"),
    ],
)
def test_url_of_all_addresses_has_the_first_name(address: str, hosts: tuple[str, ...], url: str) -> None:
    """A server that listens on all addresses prints its name, which its certificate has."""
    with socket.create_server((address, 0)) as bound:
        assert listening.url_of(bound, scheme="https", hosts=hosts) == url.format(bound.getsockname()[1])
