"""Times on the wire: ISO-8601 in UTC, as Java's Instant spells them.

May import the standard library only.
"""

from __future__ import annotations

from datetime import UTC, datetime


def instant(at_ms: int | None) -> str | None:
    """Spell a time in milliseconds since the epoch; None stays None."""
    if at_ms is None:
        return None
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
