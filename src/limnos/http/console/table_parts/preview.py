"""The tab with the first rows of a table.

May import `services`, `model` and the console's shared modules. The service applies row filters and masks.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.http.console.addresses import ObjectAddress
from limnos.http.console.page_requests import PageRequest
from limnos.http.console.table_metadata import type_text
from limnos.model.errors import LimnosError, PermissionDenied, StorageFailed, UnsupportedOperation
from limnos.services.iceberg.previews import PreviewRequest, table_preview

ROWS: Final = 50


class PreviewHead(msgspec.Struct, frozen=True):
    """A column of the preview."""

    name: str
    type: str
    is_masked: bool
    is_number: bool


class PreviewCell(msgspec.Struct, frozen=True):
    """A cell of the preview: its text, and whether it is NULL or a number."""

    text: str
    is_null: bool
    is_number: bool


class PreviewTab(msgspec.Struct, frozen=True):
    """The first rows of a table, or the reason why there are none."""

    columns: tuple[PreviewHead, ...] = ()
    rows: tuple[tuple[PreviewCell, ...], ...] = ()
    is_complete: bool = True
    is_restricted: bool = False
    columns_left_out: int = 0
    refusal: str = ""


async def preview_tab(page_request: PageRequest, address: ObjectAddress) -> PreviewTab:
    """Show the first rows of a table. A refusal or a failure of storage is shown on the page."""
    try:
        preview = await table_preview(
            page_request.ctx, address.scope, path=address.levels, preview_request=PreviewRequest(ROWS)
        )
    except (PermissionDenied, StorageFailed, UnsupportedOperation) as error:
        return PreviewTab(refusal=_words(error))
    columns = tuple(
        PreviewHead(each.name, type_text(each.type), each.is_masked, each.type in _NUMBERS or _is_decimal(each.type))
        for each in preview.columns
    )
    rows = tuple(tuple(_cell(value) for value in row) for row in preview.rows)
    return PreviewTab(columns, rows, preview.is_complete, preview.is_restricted, preview.columns_left_out)


_NUMBERS: Final = ("int", "long", "float", "double")


def _is_decimal(kind: object) -> bool:
    return isinstance(kind, str) and kind.startswith("decimal")


def _words(error: LimnosError) -> str:
    if isinstance(error, PermissionDenied):
        return f"You may see this table, but not its rows. {error.message}"
    return error.message


def _cell(value: object) -> PreviewCell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None:
        return PreviewCell("null", is_null=True, is_number=False)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return PreviewCell(text, is_null=False, is_number=is_number)
