"""Positions in the change feed, and the opaque text that callers keep of one.

May import the rooms below. Knows nothing of what a change means. A text is no secret and no proof: whoever reads on from one
is asked for every right again.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from limnos.model.errors import BadRequest, PositionPruned

TEXT_MAX = 65_536
NUMBER_MAX = 2**53


class FeedPosition(msgspec.Struct, frozen=True, array_like=True):
    """How far somebody has read: for each zone that they follow, the revision up to which they were told.

    `home` is the metalake or catalog whose changes they are, `epoch` the store's.
    """

    epoch: int
    home: int
    zones: dict[int, int]

    def text(self) -> str:
        """Spell it for a caller."""
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).rstrip(b"=").decode()


def position_of(text: str) -> FeedPosition:
    """Read a position's text. Raises BadRequest."""
    try:
        if len(text) > TEXT_MAX:
            raise ValueError
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = msgspec.msgpack.decode(data, type=FeedPosition)
        if any(not 0 < zone <= NUMBER_MAX or not 0 <= at <= NUMBER_MAX for zone, at in found.zones.items()):
            raise ValueError
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise BadRequest(
            f"'{text[:50]}' is no position in the changes: give 'next' of the answer before, 'now' or 'oldest'"
        ) from None
    return found


def pruned_error(why: str) -> PositionPruned:
    """Say that reading can't go on from a position."""
    return PositionPruned(
        f"Changes after this position are not kept any longer ({why}): read what there is now, then start anew"
    )
