# SPDX-License-Identifier: Apache-2.0
"""Length-delimited messages: each message in a stream follows its length as a varint, as Protobuf's libraries write it.

Must not know the content of messages: the light client splits a file into records without decoding them.
"""

from __future__ import annotations

from typing import Final

VARINT_BYTES_MAX: Final = 10


class BrokenFrame(ValueError):
    """The length prefix of a frame is malformed."""


def frame_message(message: bytes) -> bytes:
    """Return the message with its length as a prefix."""
    head = bytearray()
    left = len(message)
    while left > 0x7F:
        head.append(left & 0x7F | 0x80)
        left >>= 7
    head.append(left)
    return bytes(head) + message


def frame_at(data: bytes | bytearray, start: int) -> tuple[int, int] | None:
    """Return the begin and end of the message in the frame at `start`, or None if the frame is incomplete.

    Raises BrokenFrame for a length of more than ten bytes.
    """
    length = shift = 0
    for count, byte in enumerate(data[start : start + VARINT_BYTES_MAX], 1):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            begin = start + count
            return (begin, begin + length) if begin + length <= len(data) else None
    if len(data) - start >= VARINT_BYTES_MAX:
        raise BrokenFrame("a length of more than ten bytes")
    return None
