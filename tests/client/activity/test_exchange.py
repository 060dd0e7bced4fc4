# SPDX-License-Identifier: Apache-2.0
"""Splitting an export into parts: each part has complete records, and the parts do not depend on the read size."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.client import AsyncClient, Client, NotFoundError
from limnos.client.activity import exchange
from limnos.client.activity.exchange import RECORDS_AT_ONCE, cut_into_parts, form_of
from limnos.client.errors import ArgumentError
from limnos.model.frames import frame_message
from tests.client.fake import FakeServer


def pieces_of(data: bytes, size: int) -> list[bytes]:
    """Return the bytes in pieces of a size."""
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(st.lists(st.binary(min_size=1, max_size=2000), min_size=1, max_size=450), st.integers(1, 5000))
def test_parts_are_complete_and_equal_for_every_read_size(messages: list[bytes], size: int) -> None:
    """The parts have complete records and are the same for every read size, so that an interrupted import can continue
    at a part.
    """
    data = b"".join(frame_message(each) for each in messages)

    parts = list(cut_into_parts(pieces_of(data, size), "proto"))

    assert b"".join(part.data for part in parts) == data
    assert sum(part.records for part in parts) == len(messages)
    assert max(part.records for part in parts) <= RECORDS_AT_ONCE
    assert parts == list(cut_into_parts([data], "proto"))


def test_each_json_line_is_one_record() -> None:
    """In JSON each line is a record; the last newline may be missing. Incomplete records are sent, so that the server
    reports them.
    """
    data = b'{"a": 1}\n' * 201 + b'{"b": 2}'

    assert [part.records for part in cut_into_parts([data], "json")] == [200, 1, 1]
    assert [part.data for part in cut_into_parts([b'{"a": 1}\n\n  '], "json")] == [b'{"a": 1}\n\n']
    assert [part.data for part in cut_into_parts([b"\x05ab"], "proto")] == [b"\x05ab"]
    assert [part.data for part in cut_into_parts([b"\xff" * 20], "proto")] == [b"\xff" * 20]
    assert list(cut_into_parts([b""], "proto")) == []


def test_oversized_record_is_refused_without_further_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record larger than the server accepts is refused without reading the rest of the file."""
    monkeypatch.setattr(exchange, "RECORD_BYTES_MAX", 1000)
    endless = (b"x" * 100 for _ in range(10**9))

    with pytest.raises(ArgumentError, match="not an export"):
        list(cut_into_parts(endless, "json"))


@pytest.mark.parametrize(
    "head,form", [(b'{"header"', "json"), (b"{\n\x0a", "proto"), (b"\x31\x0a", "proto"), (b"", "proto")]
)
def test_format_is_detected_from_the_first_bytes(head: bytes, form: str) -> None:
    """The format is detected from the first bytes, also for a protobuf message of 123 bytes, whose first byte is
    `{`.
    """
    assert form_of(head) == form


def test_export_is_streamed_in_pieces(fake: FakeServer) -> None:
    """Both clients return an export in pieces, and raise the usual error for a refusal."""
    path = "/api/limnos/v1/metalakes/my%20lake/export?format=json"
    fake.on("GET", path, "some lines\n").on(
        "GET", f"{path}&secrets=true", {"error": {"code": "not-found", "message": "gone"}}, status=404
    )

    async def read() -> bytes:
        async with AsyncClient(fake.uri) as client:
            pieces = [piece async for piece in client.export("my lake", format="json")]
            with pytest.raises(NotFoundError):
                [piece async for piece in client.export("my lake", format="json", secrets=True)]
        return b"".join(pieces)

    with Client(fake.uri) as client:
        assert b"".join(client.export("my lake", format="json")) == b"some lines\n"
        with pytest.raises(NotFoundError, match="gone"):
            next(client.export("my lake", format="json", secrets=True))
    assert asyncio.run(read()) == b"some lines\n"
