# SPDX-License-Identifier: Apache-2.0
"""Messages with length prefixes: each is decoded, however the bytes are split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.model.frames import BrokenFrame, frame_at, frame_message


@given(st.lists(st.binary(max_size=300)))
def test_framed_messages_are_decoded_in_order(messages: list[bytes]) -> None:
    """Framed messages are decoded one after the other, and none before its frame is complete."""
    data = b"".join(frame_message(each) for each in messages)
    at, decoded_messages = 0, []
    while at < len(data):
        frame = frame_at(data, at)
        assert frame is not None
        assert frame_at(data[: frame[1] - 1], at) is None
        decoded_messages.append(data[frame[0] : frame[1]])
        at = frame[1]

    assert decoded_messages == messages
    assert frame_at(data, len(data)) is None


def test_a_length_has_ten_bytes_at_most() -> None:
    """A length prefix of more than ten bytes is refused, not treated as incomplete."""
    assert frame_at(b"\xff" * 9, 0) is None
    with pytest.raises(BrokenFrame):
        frame_at(b"\xff" * 11, 0)
