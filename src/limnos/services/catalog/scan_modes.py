"""Where a table's scans are to be planned: as the table says, else its catalog.

May import the rooms below and `formats.iceberg`. Knows no wire format. A word to clients, and no rule: who reads the files may plan by itself, and who is bound by read restrictions cannot
whatever stands here (`services.iceberg.restricted`). Decision record 0104.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.formats.iceberg.scan_modes import SCAN_MODE, SCAN_MODES, scan_mode
from limnos.model.errors import BadRequest
from limnos.services.request.offloaded_work import is_heavy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.model.entities import MetadataDocument
    from limnos.services.request.context import Context

_MARK: Final = SCAN_MODE.encode()


def check_scan_mode(properties: Mapping[str, str]) -> None:
    """Refuse a mode that is none, of a catalog. Raises BadRequest."""
    if (word := properties.get(SCAN_MODE)) is not None and word not in SCAN_MODES:
        raise BadRequest(f"Property {SCAN_MODE} is {word[:50]!r}: it is {' or '.join(SCAN_MODES)}")


def catalog_scan_mode(properties: Mapping[str, str]) -> str:
    """Return what a catalog says; empty where it says nothing."""
    word = properties.get(SCAN_MODE, "")
    return word if word in SCAN_MODES else ""


async def table_scan_mode(ctx: Context, document: MetadataDocument, *, properties: Mapping[str, str]) -> str:
    """Return where a table's scans are to be planned; empty where neither the table nor its catalog says so."""
    own = ""
    if _MARK in document.body:
        (found,) = (
            await ctx.services.chores.do("iceberg-scan-mode", document.body)
            if is_heavy(document)
            else scan_mode(document.body)
        )
        own = found.decode()
    return own or catalog_scan_mode(properties)
