# SPDX-License-Identifier: Apache-2.0
"""Times in protocols: ISO-8601 in UTC, in the format of Java's `Instant`.

Must not know clocks.
"""

from __future__ import annotations

from datetime import UTC, datetime


def instant(at_ms: int | None) -> str | None:
    """Encode a time in milliseconds since 1970; None for None."""
    if at_ms is None:
        return None
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_of(text: str) -> int | None:
    """Parse a date or time in ISO 8601, as UTC if it has no zone. Returns None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    zoned_moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        return int(zoned_moment.timestamp() * 1000)
    except (OverflowError, ValueError):
        return None
