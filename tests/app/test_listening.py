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

    found = listening.listen(Settings(server=ServerSection(listen="127.0.0.1:0")))

    assert len(found) == 1
    found[0].close()


def test_customary_ports_are_taken_when_they_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configured address the server also binds the customary ports, if they are free."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(listening, "DEFAULT_LISTEN", "127.0.0.1:0")
        monkeypatch.setattr(listening, "EXTRA_PORTS", (taken.getsockname()[1], 0))
        monkeypatch.setattr(listening, "SQLPP_PORT", taken.getsockname()[1])

        found = listening.listen(Settings())

    assert len(found) == 2
    for each in found:
        each.close()
