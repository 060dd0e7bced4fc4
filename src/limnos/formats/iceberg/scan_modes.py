# SPDX-License-Identifier: Apache-2.0
"""Reads the scan planning mode from a property of a table's metadata, without decoding the other parts.

Must not know requests. Source: Iceberg's OpenAPI, `LoadTableResult`, `scan-planning-mode`.
"""

from __future__ import annotations

from typing import Final

import msgspec

SCAN_MODE: Final = "scan-planning-mode"
"""The property's name in a table's or a catalog's properties, and in load results."""
SCAN_MODES: Final = ("client", "server")


class _TableProperties(msgspec.Struct):
    properties: dict[str, str] = {}


def scan_mode(body: bytes) -> list[bytes]:
    """Return the scan planning mode of a table as a list with one element: one of `SCAN_MODES`, or empty if not set.

    Runs in a worker process.
    """
    try:
        result = msgspec.json.decode(body, type=_TableProperties).properties.get(SCAN_MODE, "")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [b""]
    return [result.encode() if result in SCAN_MODES else b""]
