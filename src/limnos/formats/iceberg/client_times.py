# SPDX-License-Identifier: Apache-2.0
"""Checks timestamps from clients against the server's clock.

Must not know documents.
"""

from __future__ import annotations

from typing import Final

from limnos.model.errors import BadRequest

AHEAD_MS: Final = 30_000
"""The maximum time by which a client's clock may be ahead of the server's by default, in milliseconds.

Iceberg's Java library tolerates a minute between two times; half of it is left for the next client, whose clock may be
behind.
"""


def check_time(
    at_ms: int, *, latest_ms: int, what: str, next_step: str = "set the client's clock right and write again"
) -> None:
    """Check that a timestamp from a client is not after the latest allowed time.

    A later timestamp in the metadata would make commits of clients with correct clocks fail until that time.

    Args:
        at_ms: The client's time in milliseconds since 1970.
        latest_ms: The latest allowed time.
        what: The name of the timestamp in the message.
        next_step: The advice at the end of the message.

    Raises:
        BadRequest: The time is too late.
    """
    if at_ms > latest_ms:
        raise BadRequest(
            f"Invalid {what} {at_ms}: {(at_ms - latest_ms + 999) // 1000} s later than the server's clock allows"
            f" (setting iceberg.clock_ahead_s): {next_step}"
        )
