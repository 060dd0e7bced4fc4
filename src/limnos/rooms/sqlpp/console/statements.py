# SPDX-License-Identifier: Apache-2.0
"""The worksheet: statements of SQL++, executed by a POST request with the caller's rights, and their first results.

Has no business rules: each statement makes its own access decisions. A GET request never executes a statement.
"""

from __future__ import annotations

import csv
import io
import secrets
from typing import Final

import msgspec

from limnos.http.error_statuses import status_of
from limnos.http.refusals import hidden_metalake, unescape_percent
from limnos.http.response import NO_STORE, Response
from limnos.model.errors import LimnosError
from limnos.rooms.console.http.connect import no_engine_text
from limnos.rooms.console.http.frame import Frame, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import SAFE, html_response, redirect
from limnos.rooms.console.http.sheets import Choice
from limnos.rooms.sqlpp.console.hints import hint_of
from limnos.rooms.sqlpp.console.samples import sample_statement
from limnos.rooms.sqlpp.services.worksheet import (
    ENGINE_STARTS,
    WorksheetRequest,
    WorksheetResult,
    worksheet_cancel,
    worksheet_run,
)

COLUMNS_MAX: Final = 60
CELL_CHARS_MAX: Final = 512
TEXT_CHARS_MAX: Final = 100_000
INDENTED_BYTES_MAX: Final = 2 << 20
_OPENING: Final = b"[{"
_NO_BRACKETS: Final = bytes(each for each in range(256) if each not in b"[]{}")
_VIEWS: Final = {"table": "As a table", "json": "As JSON", "csv": "As a CSV file", "plan": "Only the plan"}
_MODES: Final = {"read": "Only reads", "change": "Reads and changes"}
_REPEATED: Final = (
    "The server has already executed these statements, unless that run failed or was cancelled. It did not execute them"
    " again: the button does."
)
_VALUE: Final = "value"
"""The column of results that are not objects."""


class ResultCell(msgspec.Struct, frozen=True):
    """A cell of the result table: its text, and whether it is a number or MISSING."""

    text: str
    is_number: bool = False
    is_missing: bool = False


class WorksheetPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the worksheet page: the text, the options, and the results or the error.

    - `sample`: the statement that an empty field shows.
    - `no_engine`: what to install if the server has no engine for statements over data.
    - `note`: why the statements were not executed although nothing is wrong; a button runs them again.
    - `is_change`: whether the statements were allowed to change data.
    """

    frame: Frame
    text: str
    own_id: str
    views: tuple[Choice, ...]
    modes: tuple[Choice, ...]
    sample: str = ""
    no_engine: str = ""
    note: str = ""
    is_change: bool = False
    error: str = ""
    hint: str = ""
    was_run: bool = False
    summary: str = ""
    warnings: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[ResultCell, ...], ...] = ()
    block: str = ""


async def worksheet_page(page_request: PageRequest) -> Response:
    """Show an empty worksheet, or one with the text of a link, which is not executed."""
    text = (page_request.request.query("text") or "")[:TEXT_CHARS_MAX]
    return await _worksheet_response(page_request, {"text": text})


async def run(page_request: PageRequest) -> Response:
    """Execute the statements, and show the first results, or return them as a CSV file."""
    fields = await page_request.form()
    text, view = fields.get("text", ""), fields.get("view", "table")
    request = WorksheetRequest(
        text=text,
        may_change=fields.get("mode") == "change",
        is_plan=view == "plan",
        own_id=fields.get("id", ""),
        request_id=page_request.request.id,
        is_gone=page_request.request.is_gone,
    )
    try:
        result = await worksheet_run(page_request.ctx, request)
    except LimnosError as error:
        page_request.request.failure = error
        return await _worksheet_response(page_request, fields, failure=hidden_metalake(error))
    if view == "csv" and not result.is_repeated:
        return _csv_response(result)
    return await _worksheet_response(page_request, fields, result=result)


async def cancel(page_request: PageRequest) -> Response:
    """Cancel the statements that this worksheet is executing, and redirect to an empty worksheet."""
    await worksheet_cancel(page_request.ctx, (await page_request.form()).get("id", ""))
    return redirect(f"{page_request.base}/worksheet?done=The+statement+was+cancelled")


async def _worksheet_response(
    page_request: PageRequest,
    fields: dict[str, str],
    *,
    result: WorksheetResult | None = None,
    failure: LimnosError | None = None,
) -> Response:
    metalake = page_request.ctx.services.defaults.metalake
    frame = await frame_of(page_request, "Worksheet", metalake=metalake, section="worksheet")
    view, mode = fields.get("view", "table"), fields.get("mode", "read")
    was_run = result is not None and not result.is_repeated
    chosen = "read" if was_run else mode  # each change needs a choice of its own
    page = WorksheetPage(
        frame=frame,
        text=fields.get("text", ""),
        own_id=secrets.token_urlsafe(12),
        views=tuple(Choice(each, text, each == view) for each, text in _VIEWS.items()),
        modes=tuple(Choice(each, text, each == chosen) for each, text in _MODES.items()),
        is_change=mode == "change",
        no_engine="" if page_request.site.has_engine else no_engine_text(),
    )
    if not page.text:
        page = msgspec.structs.replace(page, sample=await sample_statement(page_request))
    if failure is not None and str(failure) == ENGINE_STARTS:
        page = msgspec.structs.replace(page, note=ENGINE_STARTS)
    elif result is not None and result.is_repeated:
        page = msgspec.structs.replace(page, note=_REPEATED)
    elif failure is not None:
        message = unescape_percent(str(failure))
        page = msgspec.structs.replace(page, error=message, hint=await hint_of(page_request, message, text=page.text))
    elif result is not None:
        page = _with_results(page, result, view=view)
    status = 200 if failure is None else status_of(failure)
    return html_response(page_request.request, render("worksheet.html", page), status=status)


def _with_results(page: WorksheetPage, result: WorksheetResult, *, view: str) -> WorksheetPage:
    count = len(result.lines)
    words = f"{'The first ' if result.has_more else ''}{count:,} result{'' if count == 1 else 's'}"
    page = msgspec.structs.replace(
        page,
        was_run=True,
        summary=f"{words} in {result.took_ms / 1000:.2f} s.{' There are more.' if result.has_more else ''}",
        warnings=result.warnings,
    )
    values = [msgspec.json.decode(line) for line in result.lines]
    if view != "table":
        texts = _indent_documents([msgspec.json.encode(each) for each in values])
        blocks = [
            each if isinstance(each, str) and view == "plan" else text for each, text in zip(values, texts, strict=True)
        ]
        return msgspec.structs.replace(page, block="\n".join(blocks))
    names = _names(values)
    columns = names[:COLUMNS_MAX]
    if len(names) > COLUMNS_MAX:
        page = msgspec.structs.replace(
            page, summary=f"{page.summary} {len(names) - COLUMNS_MAX} more columns are not shown."
        )
    rows = tuple(tuple(_cell(each, name) for name in columns) for each in values)
    return msgspec.structs.replace(page, columns=columns, rows=rows)


def _csv_response(result: WorksheetResult) -> Response:
    """Return the results as a CSV file with a column per field. The file name states whether results were omitted."""
    values = [msgspec.json.decode(line) for line in result.lines]
    names = _names(values)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(names)
    for each in values:
        fields = each if isinstance(each, dict) else {_VALUE: each}
        writer.writerow([_csv_text(fields.get(name)) for name in names])
    name = f"first-{len(values)}-results.csv" if result.has_more else "results.csv"
    headers = (
        (b"content-type", b"text/csv; charset=utf-8"),
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
        NO_STORE,
        *SAFE,
    )
    return Response(200, text.getvalue().encode(), headers)


def _csv_text(value: object) -> str:
    """Return a value for a CSV file: an empty string for null and missing, JSON for nested values."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _names(values: list[object]) -> tuple[str, ...]:
    """Return the names of the results' fields, in the order of their first occurrence."""
    return tuple(dict.fromkeys(name for each in values for name in (each if isinstance(each, dict) else (_VALUE,))))


def _indent_documents(lines: list[bytes]) -> list[str]:
    """Indent JSON texts for display, as long as the result may fit into INDENTED_BYTES_MAX; the remaining ones stay on
    one line.
    """
    left, texts = INDENTED_BYTES_MAX, []
    for line in lines:
        if len(line) * (1 + _depth(line)) <= left:
            text = msgspec.json.format(line, indent=2).decode()
            left -= len(text)
        else:
            text = line.decode()
        texts.append(text)
    return texts


def _depth(line: bytes) -> int:
    """Return an upper bound of the nesting depth of a line of JSON: brackets inside strings are counted, too."""
    depth = deepest = 0
    for each in line.translate(None, delete=_NO_BRACKETS):
        depth += 1 if each in _OPENING else -1
        deepest = max(deepest, depth)
    return deepest


def _cell(value: object, name: str) -> ResultCell:
    if not isinstance(value, dict):
        return _text_cell(value) if name == _VALUE else ResultCell("missing", is_missing=True)
    return _text_cell(value[name]) if name in value else ResultCell("missing", is_missing=True)


def _text_cell(value: object) -> ResultCell:
    if value is None:
        return ResultCell("null", is_missing=True)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return ResultCell(text[:CELL_CHARS_MAX], isinstance(value, int | float) and not isinstance(value, bool))


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/worksheet",
        handler=worksheet_page,
        operation="worksheet-page",
        query=("text", "done", "metalake"),
    ),
    ConsoleRoute(method="POST", path="/worksheet", handler=run, operation="run-worksheet"),
    ConsoleRoute(method="POST", path="/worksheet/cancel", handler=cancel, operation="cancel-worksheet"),
)
