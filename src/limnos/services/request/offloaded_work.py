"""Chores: work too heavy for the event loop, which whoever asks may end at any moment.

May import `formats`, `sqlpp` and `model`. A chore is a pure function that has a name, from bytes to bytes; where it runs is for `app` to
choose: in processes that can be killed, or right here, as tests and tools like it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

from limnos.formats.iceberg.offloaded import CHORES as ICEBERG
from limnos.sqlpp.offloaded_work import CHORES as SQLPP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limnos.model.entities import MetadataDocument

OFFLOADED_FUNCTIONS = {**ICEBERG, **SQLPP}
SCAN_FUNCTIONS_MODULE: Final = "limnos.formats.scans.offloaded"
"""Where chores of scans are, which a server does not load."""
REQUEST_BYTES_MAX = 64 << 10
"""Bodies up to this size are decoded and built on the loop, in a few milliseconds at most."""
DOCUMENT_BYTES_MAX = 256 << 10
"""Documents up to this size are worked on by the loop."""
PACKED_BYTES_MAX = 32 << 10
"""The same for tables whose files are compressed, which takes ten times as long."""


class WorkOffloader(Protocol):
    """Whoever does chores."""

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Do a chore; a cancellation ends it. A caller that is named leaves room for others. Raises what the chore raises, Unavailable when there is no room or it died."""
        ...

    def close(self) -> None:
        """End whatever is under way."""
        ...


class InlineOffloader:
    """Does chores at once, on the spot."""

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Do a chore."""
        del caller
        if name.startswith("scan-"):
            return cast("Mapping[str, Callable[..., list[bytes]]]", import_module(SCAN_FUNCTIONS_MODULE).CHORES)[name](
                *parts
            )
        return OFFLOADED_FUNCTIONS[name](*parts)

    def close(self) -> None:
        """Nothing is under way."""


def is_heavy(document: MetadataDocument) -> bool:
    """Say whether working on a document takes longer than the loop may be kept."""
    packed = document.metadata_location.endswith(".gz.metadata.json")
    return len(document.body) > (PACKED_BYTES_MAX if packed else DOCUMENT_BYTES_MAX)
