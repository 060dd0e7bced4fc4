# SPDX-License-Identifier: Apache-2.0
"""Positions in the change feed, and the opaque string by which callers refer to a position.

Must not know the meaning of changes. The string is neither secret nor a credential: each read from a position checks
all rights again.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from limnos.model.errors import BadRequest, PositionPruned

TEXT_MAX = 65_536
NUMBER_MAX = 2**53


class FeedPosition(msgspec.Struct, frozen=True, array_like=True):
    """The position of a reader in the change feed: for each followed zone, the last revision that was read.

    `home` is the metalake or catalog of the feed, `epoch` the store's epoch.
    """

    epoch: int
    home: int
    zones: dict[int, int]

    def text(self) -> str:
        """Return the position as an opaque string for callers, which `position_of` parses."""
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).rstrip(b"=").decode()


def position_of(text: str) -> FeedPosition:
    """Parse the string of a position. Raises BadRequest if it is malformed."""
    try:
        if len(text) > TEXT_MAX:
            raise ValueError
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        position = msgspec.msgpack.decode(data, type=FeedPosition)
        if any(not 0 < zone <= NUMBER_MAX or not 0 <= at <= NUMBER_MAX for zone, at in position.zones.items()):
            raise ValueError
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise BadRequest(
            f"'{text[:50]}' is not a position in the changes: give 'next' of the previous answer, 'now' or 'oldest'"
        ) from None
    return position


def pruned_error(why: str) -> PositionPruned:
    """Return the error for a position whose following changes were pruned."""
    return PositionPruned(
        f"Changes after this position are no longer kept ({why}): read the present state, then start again at 'now'"
    )
