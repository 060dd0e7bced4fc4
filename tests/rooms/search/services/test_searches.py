# SPDX-License-Identifier: Apache-2.0
"""Searches and the index of words: other requests run while large documents are parsed."""

from __future__ import annotations

import asyncio

import pytest

from limnos.rooms.search.services import indexing, searches
from limnos.rooms.search.services.object_words import PARSED_BYTES
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import OWN, DriverNode
from tests.http.iceberg.wire import make_table


def is_on_loop() -> bool:
    """Return whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_large_documents_are_not_parsed_on_the_event_loop(
    node: DriverNode,  # noqa: F811 - a fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither indexing nor a search parses a large document on the event loop; small ones are parsed without a
    thread.
    """
    seen: list[tuple[str, int, bool]] = []
    for module, name in ((indexing, "object_words"), (searches, "match_words")):

        def watch(*args: object, name: str = name, real: object = getattr(module, name), **more: object) -> object:
            body = more.get("body", args[1])
            assert body is None or isinstance(body, bytes)
            seen.append((name, len(body or b""), is_on_loop()))
            assert callable(real)
            return real(*args, **more)

        monkeypatch.setattr(module, name, watch)
    for table, columns in (("small", 3), ("wide", 600)):
        fields = [
            {"id": number, "name": f"gauge_{number}", "required": False, "type": "string"}
            for number in range(1, columns)
        ]
        make_table(node, "a", table, schema={"type": "struct", "fields": fields})
    while node.runner.run(indexing.index_step(node.built.services)):
        pass

    hits = node.get(f"{OWN}/metalakes/lake/search?q=gauge").json()["hits"]

    assert [hit["path"][-1] for hit in hits] == ["wide", "small"]
    assert {(name, size > PARSED_BYTES) for name, size, _ in seen if size} == {
        (name, is_large) for name in ("object_words", "match_words") for is_large in (False, True)
    }
    assert all(on_loop is (size <= PARSED_BYTES) for _, size, on_loop in seen)
