"""Where a table says that its scans are to be planned: a property of it, read without the rest of its document.

May import msgspec. Iceberg's OpenAPI, `LoadTableResult`, `scan-planning-mode`.
"""

from __future__ import annotations

from typing import Final

import msgspec

SCAN_MODE: Final = "scan-planning-mode"
"""The name of the property: in a table's or a catalog's properties, and in what clients are told."""
SCAN_MODES: Final = ("client", "server")


class _TableProperties(msgspec.Struct):
    properties: dict[str, str] = {}


def scan_mode(body: bytes) -> list[bytes]:
    """Return the mode of a document, a chore's bytes: one of `SCAN_MODES`, or empty."""
    try:
        found = msgspec.json.decode(body, type=_TableProperties).properties.get(SCAN_MODE, "")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [b""]
    return [found.encode() if found in SCAN_MODES else b""]
