# SPDX-License-Identifier: Apache-2.0
"""Feed positions as text: an issued position can be parsed again, and every other text is refused."""

from __future__ import annotations

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.model.errors import BadRequest
from limnos.services.activity.feed_positions import NUMBER_MAX, FeedPosition, position_of

NUMBERS = st.integers(0, NUMBER_MAX)


@given(NUMBERS, NUMBERS, st.dictionaries(st.integers(1, NUMBER_MAX), NUMBERS))
def test_position_text_round_trip(epoch: int, home: int, zones: dict[int, int]) -> None:
    """A position survives encoding and decoding, and its text is valid in a URL."""
    position = FeedPosition(epoch, home, zones)

    text = position.text()

    assert position_of(text) == position
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(st.text(max_size=40) | st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_arbitrary_text_is_parsed_or_raises_bad_request(text: str) -> None:
    """Any other text either parses to a position with valid numbers or raises BadRequest."""
    try:
        position = position_of(text)
    except BadRequest:
        return
    assert all(0 < zone <= NUMBER_MAX and 0 <= at <= NUMBER_MAX for zone, at in position.zones.items())


@pytest.mark.parametrize("zones", [{0: 1}, {-1: 1}, {1: -1}, {2**60: 1}, {1: 2**60}], ids=str)
def test_positions_with_impossible_numbers_are_refused(zones: dict[int, int]) -> None:
    """A position with the server's zone, or with numbers that no store issues, is refused."""
    data = msgspec.msgpack.encode([1, 1, zones])

    with pytest.raises(BadRequest):
        position_of(base64.urlsafe_b64encode(data).rstrip(b"=").decode())
