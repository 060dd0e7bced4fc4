# SPDX-License-Identifier: Apache-2.0
"""Values of a table's metadata file, which writers of the table chose: what has another form than the format's is left
out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from limnos.client.values import Json

_TIME_MS_MAX: Final = 253_402_300_800_000
"""The first millisecond of the year 10000."""

UNNAMED: Final = "unknown"
"""The name that Gravitino's protocol gives the location of a fileset that was created without one."""


def structs_of(document: Json, key: str) -> list[Json]:
    """Return the objects in a list of a document; empty without one."""
    result = document.get(key)
    return [item for item in result if isinstance(item, dict)] if isinstance(result, list) else []


def whole_number(text: object) -> int | None:
    """Return the number of a text of digits; None for others."""
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def utc_time(at_ms: object) -> str | None:
    """Format a time in milliseconds since 1970, as metadata files have it, as ISO 8601 in UTC; None for an invalid
    time.
    """
    if not isinstance(at_ms, int) or not 0 <= at_ms < _TIME_MS_MAX:
        return None
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
