# SPDX-License-Identifier: Apache-2.0
"""Messages between a command and its helper: form, version, length, and arbitrary bytes."""

from __future__ import annotations

import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.rooms.pipelines.cli.helper.protocol import (
    Answer,
    Kind,
    ProtocolError,
    Request,
    close_all,
    decode_answer,
    decode_request,
    encode_words,
    peer_user,
    receive,
    send,
)

REQUEST = Request(
    fingerprint="f",
    tokens=encode_words(("pipeline", "check", "ä\udcff")),
    argv=encode_words(("limnos",)),
    search_path=(b"", b"/x"),
    environment=((b"A", b"b\xff"),),
    umask=0o22,
)


def _received(data: bytes) -> tuple[Kind, bytes, list[int]]:
    """Receive a message from a peer that sends these bytes and closes."""
    own, peer = socket.socketpair()
    with own, peer:
        own.settimeout(5)
        peer.sendall(data)
        peer.close()
        return receive(own)


def test_messages_arrive_with_documents_and_files() -> None:
    """A request arrives as it was sent, with open files; an answer's bytes may be anything."""
    own, peer = socket.socketpair()
    with own, peer:
        send(peer, Kind.REQUEST, document=REQUEST, descriptors=[0, 1, 2])
        kind, body, descriptors = receive(own)
        send(own, Kind.DONE, document=Answer(exit_code=3, output=b"\xff\x00"))
        answer = decode_answer(receive(peer)[1])
        user = peer_user(own)
    close_all(descriptors)

    assert (kind, decode_request(body), len(descriptors)) == (Kind.REQUEST, REQUEST, 3)
    assert answer == Answer(exit_code=3, output=b"\xff\x00")
    assert user == os.geteuid()


@pytest.mark.parametrize(
    "header",
    [
        struct.pack("!4sBBHI", b"LMNH", 2, 5, 0, 0),
        struct.pack("!4sBBHI", b"LMNX", 1, 5, 0, 0),
        struct.pack("!4sBBHI", b"LMNH", 1, 99, 0, 0),
        struct.pack("!4sBBHI", b"LMNH", 1, 5, 0, 0xFFFFFFFF),
        struct.pack("!4sBBHI", b"LMNH", 1, 1, 0, 5 << 20),
        struct.pack("!4sBBHI", b"LMNH", 1, 5, 0, 4) + b"abc",
        b"LMN",
        b"",
    ],
    ids=["version", "magic", "kind", "length", "request's length", "cut", "header", "nothing"],
)
def test_message_of_another_form_is_refused(header: bytes) -> None:
    """Another version or kind, a length beyond the limit and a cut message are refused; nothing is read for them."""
    with pytest.raises(ProtocolError):
        _received(header)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_protocol_errors_only(data: bytes) -> None:
    """Whatever a peer sends, the receiver refuses it as a message or decodes it."""
    for message in (data, b"LMNH\x01\x01\x00\x00" + len(data).to_bytes(4, "big") + data):
        try:
            decode_request(_received(message)[1])
        except ProtocolError:
            continue


def test_too_long_request_is_not_sent() -> None:
    """A request beyond the limit raises before anything is sent."""
    own, peer = socket.socketpair()
    with own, peer:
        with pytest.raises(ProtocolError, match="too long"):
            send(peer, Kind.REQUEST, document="x" * (5 << 20))
        peer.close()
        with pytest.raises(ProtocolError, match="ended"):
            receive(own)
