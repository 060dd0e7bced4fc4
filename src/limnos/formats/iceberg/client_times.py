"""Times that clients bring, held against the server's clock.

May import the standard library and `limnos.model.errors`. Must not know documents.
"""

from __future__ import annotations

from typing import Final

from limnos.model.errors import BadRequest

AHEAD_MS: Final = 30_000
"""How far a client's clock may be ahead of the server's, unless a setting says otherwise. Iceberg's Java library allows a minute between two
times: half of it is left for the next client, whose clock may be behind."""


def check_time(
    at_ms: int, *, latest_ms: int, what: str, next_step: str = "set the client's clock right and write again"
) -> None:
    """Raise BadRequest for a time after the latest one allowed: nobody with a right clock could commit until then."""
    if at_ms > latest_ms:
        raise BadRequest(
            f"Invalid {what} {at_ms}: {(at_ms - latest_ms + 999) // 1000} s later than the server's clock allows (setting iceberg.clock_ahead_s): {next_step}"
        )
