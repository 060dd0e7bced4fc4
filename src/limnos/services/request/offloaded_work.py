# SPDX-License-Identifier: Apache-2.0
"""Offloaded work: functions too heavy for the event loop, which their caller may cancel at any moment.

Offloaded work is a pure function with a name, from bytes to bytes. `app` chooses where it runs: in processes that can
be killed, or, for tests and tools, in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, Protocol, cast

from limnos.formats.iceberg.offloaded import OFFLOADED_WORK
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load
from limnos.model.entities import MetadataDocument

OffloadedFunctions = Mapping[str, Callable[..., list[bytes]]]
SCAN_FUNCTIONS_MODULE: Final = "limnos.formats.scans.offloaded"
"""The module of the offloaded functions of scans, which a server process itself does not load."""
REQUEST_BYTES_MAX = 64 << 10
"""Bodies up to this size are decoded and built on the event loop, in a few milliseconds at most."""
DOCUMENT_BYTES_MAX = 256 << 10
"""Documents up to this size are processed on the event loop."""
PACKED_BYTES_MAX = 32 << 10
"""The same limit for tables with compressed metadata files, whose processing takes ten times as long."""


class WorkOffloader(Protocol):
    """Runs named functions on large documents outside of the event loop."""

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Run an offloaded function by its name; cancelling the call ends the work.

        With `caller`, the number of worker processes that one caller can occupy is limited. Raises the errors of the
        function, and ServiceUnavailable if all workers are busy or the worker process died.
        """

    def close(self) -> None:
        """End all running work, and the worker processes."""


class InlineOffloader:
    """Runs offloaded work directly, in this process."""

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Run an offloaded function in this process. Raises the errors of the function."""
        del caller
        if name.startswith("scan-"):
            return cast("OffloadedFunctions", import_module(SCAN_FUNCTIONS_MODULE).OFFLOADED_WORK)[name](*parts)
        return (OFFLOADED_WORK if name in OFFLOADED_WORK else room_functions(name))[name](*parts)

    def close(self) -> None:
        """No-op: nothing runs in the background."""


def room_functions(name: str) -> OffloadedFunctions:
    """Return the offloaded functions of the room whose prefix a name has, which are imported now.

    Raises KeyError if no installed room has them.
    """
    for room in installed_rooms().manifests:
        for entry in room.offloaded:
            if name.startswith(entry.prefix):
                return cast("OffloadedFunctions", load(entry.functions))
    raise KeyError(name)


def is_heavy(document: MetadataDocument) -> bool:
    """Return whether processing a document would block the event loop for too long."""
    packed = document.metadata_location.endswith(".gz.metadata.json")
    return len(document.body) > (PACKED_BYTES_MAX if packed else DOCUMENT_BYTES_MAX)
