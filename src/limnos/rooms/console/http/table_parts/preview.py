# SPDX-License-Identifier: Apache-2.0
"""The first rows of a table, and the beginning of a fileset's file.

The service applies row filters and masks.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Final

import msgspec

from limnos.model.errors import (
    BadRequest,
    InvalidTable,
    LimnosError,
    NotFound,
    OutsideRoots,
    PermissionDenied,
    ServiceUnavailable,
    StorageFailed,
    UnsupportedOperation,
)
from limnos.model.previews import PreviewRequest, TablePreview
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import size_text
from limnos.rooms.console.http.table_metadata import type_text
from limnos.services.catalog.fileset_browsing import FilePath, file_preview
from limnos.services.iceberg.previews import table_preview, table_preview_as
from limnos.services.lance.table_files import LANCE_FILES

ROWS: Final = 50


class PreviewHead(msgspec.Struct, frozen=True):
    """The heading of a column in the preview: the column's name and type, and whether its values are masked."""

    name: str
    type: str
    is_masked: bool
    is_number: bool


class PreviewCell(msgspec.Struct, frozen=True):
    """A cell of the preview: its text, and whether it is NULL or a number."""

    text: str
    is_null: bool
    is_number: bool


class PreviewTab(msgspec.Struct, frozen=True, kw_only=True):
    """The first rows of a table, or the beginning of a file; or the reason why they cannot be shown."""

    columns: tuple[PreviewHead, ...] = ()
    rows: tuple[tuple[PreviewCell, ...], ...] = ()
    is_complete: bool = True
    is_restricted: bool = False
    columns_left_out: int = 0
    refusal: str = ""
    is_file: bool = False
    is_binary: bool = False
    size: str = ""
    text: str = ""
    is_busy: bool = False

    @property
    def status(self) -> int:
        """The HTTP status of a page with this tab: 503 after a temporary failure, otherwise 200."""
        return 503 if self.is_busy else 200


async def preview_tab(page_request: PageRequest, address: ObjectAddress, *, is_lance: bool = False) -> PreviewTab:
    """Return the first rows of a table. A refusal, a table without data and a failure of storage are returned as the
    reason.
    """
    read = LANCE_FILES.of(page_request.ctx.services).preview if is_lance else table_preview
    return await _tab_of(
        read(page_request.ctx, address.scope, path=address.levels, preview_request=PreviewRequest(ROWS))
    )


async def preview_tab_as(page_request: PageRequest, address: ObjectAddress, *, user: str) -> PreviewTab:
    """Return the first rows of an Iceberg table as another user sees them. A refusal, a table without data and a
    failure of storage are returned as the reason.
    """
    return await _tab_of(
        table_preview_as(
            page_request.ctx, address.scope, path=address.levels, user=user, preview_request=PreviewRequest(ROWS)
        )
    )


async def _tab_of(reading: Awaitable[TablePreview]) -> PreviewTab:
    try:
        preview = await reading
    except (PermissionDenied, BadRequest, NotFound, InvalidTable, StorageFailed, UnsupportedOperation) as error:
        return PreviewTab(refusal=_words(error))
    except ServiceUnavailable as error:
        return PreviewTab(refusal=error.message, is_busy=True)
    columns = tuple(
        PreviewHead(each.name, type_text(each.type), each.is_masked, is_number_type(each.type))
        for each in preview.columns
    )
    rows = tuple(tuple(_cell(value) for value in row) for row in preview.rows)
    return PreviewTab(
        columns=columns,
        rows=rows,
        is_complete=preview.is_complete,
        is_restricted=preview.is_restricted,
        columns_left_out=preview.columns_left_out,
    )


async def file_preview_tab(page_request: PageRequest, address: ObjectAddress, *, at: FilePath) -> PreviewTab:
    """Return the beginning of a fileset's file. A refusal, a missing file and a failure of storage are returned as the
    reason.
    """
    try:
        preview = await file_preview(page_request.ctx, address.scope, at=at, rows=ROWS)
    except PermissionDenied as error:
        return PreviewTab(refusal=f"You may see that this file exists, but not its content. {error.message}")
    except (BadRequest, NotFound, OutsideRoots, StorageFailed, UnsupportedOperation) as error:
        return PreviewTab(refusal=error.message)
    except ServiceUnavailable as error:
        return PreviewTab(refusal=error.message, is_busy=True)
    rows = tuple(tuple(_cell(value) for value in row) for row in preview.rows)
    columns = tuple(
        PreviewHead(name, kind, False, is_number_type(kind) if kind else _has_numbers(rows, index))
        for index, (name, kind) in enumerate(preview.columns)
    )
    return PreviewTab(
        columns=columns,
        rows=rows,
        is_complete=preview.is_complete,
        columns_left_out=preview.columns_left_out,
        is_file=True,
        is_binary=preview.text is None and not columns,
        size=size_text(preview.size),
        text=preview.text or "",
    )


_NUMBER_TYPE: Final = re.compile(r"u?int\d*|long|(half)?float\d*|double|decimal.*")
"""Names of numeric types: Iceberg's, and Arrow's in Lance tables."""


def is_number_type(kind: object) -> bool:
    """Return whether a type is numeric; numbers are aligned to the right."""
    return isinstance(kind, str) and _NUMBER_TYPE.fullmatch(kind) is not None


def _has_numbers(rows: tuple[tuple[PreviewCell, ...], ...], place: int) -> bool:
    """Return whether all values of the column at index `place`, except NULL, are numbers; used for columns without
    a type.
    """
    cells = [row[place] for row in rows if not row[place].is_null]
    return bool(cells) and all(each.is_number for each in cells)


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
