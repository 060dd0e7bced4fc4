# SPDX-License-Identifier: Apache-2.0
"""Rows of tables: create with rows, insert, merge, count.

Must not know the content of rows: they are an Arrow stream, which is passed on as it arrives. Options are in the query.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest
from limnos.rooms.lance.http.identifiers import IdentifiedBody, body_of, place_of
from limnos.rooms.lance.http.namespaces import parse_choice
from limnos.rooms.lance.http.row_targets import Where, find_rows
from limnos.rooms.lance.http.vended_credentials import credentials_response, delegates_of, options_of
from limnos.rooms.lance.services import table_creation as lance_creating
from limnos.rooms.lance.services.table_creation import TableCreateRequest
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.sources.questions import Count, Merge, Write
from limnos.services.request.context import Context

_TIME: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
TIMEOUT_MAX_S: Final = 86_400.0
INSERT_MODES = ("append", "overwrite")
LOCATION, PROPERTIES = b"x-lance-table-location", b"x-lance-table-properties"


class CountRows(IdentifiedBody, kw_only=True):
    """The body of a request to count rows."""

    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    predicate: str | None = None


def branch_of(request: Request) -> str | None:
    """Return the branch that a query names, or None for the main one."""
    return request.query("branch") or None


async def table_create(request: Request, ctx: Context) -> Response:
    """Create a table from the rows in the body.

    Storage options of the caller are ignored: the catalog determines them.
    """
    object_path = place_of(request, ctx)
    mode = parse_choice(request.query("mode"), lance_creating.MODES, field="mode")
    location = request.headers.get(LOCATION, b"").decode("latin-1") or None
    table_create_request = TableCreateRequest(
        levels=object_path.levels,
        mode=mode,
        location=location,
        properties=properties_of(request),
        delegates=delegates_of(request),
    )
    table = await lance_creating.table_create(
        ctx,
        object_path.scope,
        request=table_create_request,
        body=request.stream(bytes_max=ctx.services.defaults.lance_body_bytes_max),
    )
    body: dict[str, object] = {"location": table.table.location, "properties": dict(table.table.record.properties)}
    if table.written is not None:
        body |= {"version": table.written.version, "transaction_id": table.written.transaction_id}
    return credentials_response(
        {**body, **await options_of(request, ctx, place=object_path, table=table.table, is_new=True)}
    )


def properties_of(request: Request) -> dict[str, str]:
    """Parse the table's properties: JSON in the query, or in a header of older clients. Raises BadRequest unless it is
    a JSON object of strings.
    """
    text = request.query("properties") or request.headers.get(PROPERTIES, b"").decode("utf-8", "replace")
    try:
        return msgspec.json.decode(text, type=dict[str, str]) if text else {}
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise BadRequest(f"The properties must be a JSON object with string values: {error}") from None


async def rows_insert(request: Request, where: Where) -> Response:
    """Append the rows in the body to a table, or replace all its rows with them."""
    rows = find_rows(request, where)
    mode = parse_choice(request.query("mode"), INSERT_MODES, field="mode")
    question = Write(location="", options={}, mode=mode, batch_bytes_max=rows.batch_bytes_max)
    body = request.stream(bytes_max=rows.body_bytes_max)
    result = await rows.feed(question, branch=branch_of(request), body=body)
    entries = {"num_inserted_rows": result.inserted, "version": result.version, "transaction_id": result.transaction_id}
    return json_response(entries)


async def rows_count(request: Request, where: Where) -> Response:
    """Return the number of rows that match a predicate, as a bare JSON number."""
    body = request.decode(await body_of(request), CountRows)
    rows = find_rows(request, where, body=body)
    at = VersionReference(body.version, body.tag, body.branch)
    question = Count(location="", options={}, predicate=body.predicate)
    return json_response(await rows.answer(question, at=at, shape=int, reads=True))


async def rows_merge(request: Request, where: Where) -> Response:
    """Merge the rows in the body into a table by key columns: update, insert or delete rows as the query states."""
    rows = find_rows(request, where)
    keys = [each for each in request.query_each("on") if each]
    deletes_if = request.query("when_not_matched_by_source_delete_filt") or None
    updates_if = request.query("when_matched_update_all_filt") or None
    question = Merge(
        location="",
        options={},
        on=keys,
        batch_bytes_max=rows.batch_bytes_max,
        updates=request.query_flag("when_matched_update_all") or updates_if is not None,
        updates_if=updates_if,
        inserts=request.query_flag("when_not_matched_insert_all"),
        deletes=request.query_flag("when_not_matched_by_source_delete") or deletes_if is not None,
        deletes_if=deletes_if,
        use_index=request.query_flag("use_index", default=True),
        timeout_s=_seconds_of(request.query("timeout")),
    )
    body = request.stream(bytes_max=rows.body_bytes_max)
    result = await rows.feed(question, branch=branch_of(request), body=body)
    counts = {
        "num_updated_rows": result.updated,
        "num_inserted_rows": result.inserted,
        "num_deleted_rows": result.deleted,
    }
    return json_response({**counts, "version": result.version, "transaction_id": result.transaction_id})


def _seconds_of(text: str | None) -> float | None:
    """Parse a duration in the form of the clients: `30s`, `500ms`, `2m`, or a number of seconds. Raises BadRequest for
    another form.
    """
    if not text:
        return None
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise BadRequest(f"timeout must be a duration such as 30s, 500ms or 2m, not {text[:40]}")
    return min(float(match[1]) * _UNITS[match[2] or "s"], TIMEOUT_MAX_S)
