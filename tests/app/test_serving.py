# SPDX-License-Identifier: Apache-2.0
"""A server process builds what its threads share before it serves, and tunes the garbage collector."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from limnos.app import serving
from limnos.app.serving import settle_memory


@pytest.fixture
def thresholds() -> Iterator[None]:
    """Restore the garbage collector."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("thresholds")
def test_new_objects_are_collected_in_short_steps() -> None:
    """A collection looks at 5,000 new objects, or at 15,000 with those that outlived one, and rarely at all objects."""
    settle_memory()

    new, young, old = gc.get_threshold()
    assert new <= 5_000
    assert new * (young + 2) <= 15_000
    assert new * (young + 1) * old >= 100_000_000


def test_descriptions_of_structs_are_built_before_threads_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of the node, and with them all structs, are imported; the store has no thread yet."""
    calls: list[str] = []

    async def bootstrap(*_: object) -> None:
        calls.append("bootstrap")
        raise InterruptedError

    async def close() -> None:
        calls.append("close")

    services = SimpleNamespace(store=SimpleNamespace(inline=True))
    node = SimpleNamespace(services=services, close=close)
    monkeypatch.setattr(serving, "build", lambda *_: calls.append("build") or node)
    monkeypatch.setattr(serving, "build_struct_types", lambda: calls.append("structs"))
    monkeypatch.setattr(serving, "bootstrap", bootstrap)
    settings = SimpleNamespace(server=SimpleNamespace(workers=1))
    with pytest.raises(InterruptedError), socket.socket() as own:
        serving.serve(SimpleNamespace(settings=settings, origins={}), [own], lambda: None)  # type: ignore[arg-type]

    assert calls == ["build", "structs", "bootstrap", "close"]
