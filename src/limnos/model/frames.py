"""Messages one after the other in a stream: each behind its length, a varint, as Protobuf's own libraries write them.

May import the standard library only: the light client cuts a file into records without knowing what they say.
"""

from __future__ import annotations

from typing import Final

VARINT_BYTES_MAX: Final = 10


class BrokenFrame(ValueError):
    """Bytes that are no message behind its length."""


def frame_message(message: bytes) -> bytes:
    """Put a message behind its length."""
    head = bytearray()
    left = len(message)
    while left > 0x7F:
        head.append(left & 0x7F | 0x80)
        left >>= 7
    head.append(left)
    return bytes(head) + message


def frame_at(data: bytes | bytearray, start: int) -> tuple[int, int] | None:
    """Return where the message of the frame at `start` begins and ends; None when not all of it is there. Raises BrokenFrame."""
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
