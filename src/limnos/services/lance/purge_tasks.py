# SPDX-License-Identifier: Apache-2.0
"""The task that deletes the files of a dropped Lance table: its name and its payload.

The room of Lance executes it (`purges`). On a server without the room the task waits, and the location stays taken.
"""

from __future__ import annotations

from typing import Final

import msgspec


class LancePurgePayload(msgspec.Struct):
    """The payload of the task: the table's catalog and location."""

    catalog: int
    location: str


LANCE_PURGE: Final = "purge-lance-table"


def lance_purge_of(catalog_id: int, location: str) -> str:
    """Return the payload of the task that deletes a table's files."""
    return msgspec.json.encode({"catalog": catalog_id, "location": location}).decode()
