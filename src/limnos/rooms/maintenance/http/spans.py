# SPDX-License-Identifier: Apache-2.0
"""Operations that write files for restricted users: executors fetch parts of data files, and report their files.

Has no business rules. Both routes need the operation's token.
"""

from __future__ import annotations

import msgspec

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.rooms.maintenance.services.spans.plans import spans_load
from limnos.rooms.maintenance.services.spans.reports import span_report
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

_BASE = "/api/limnos/v1/metalakes/{m}/catalogs/{c}/maintenance/operations/{o}"
_NO_OPERATION = 0


class SpansBody(AdminRequestBody, frozen=True):
    """A request for parts of data files: the number of the last one, -1 for none, and the maximum number of parts."""

    after: int = -1
    limit: int = 16


class FilesBody(AdminRequestBody, frozen=True):
    """A report on a part of a data file: its name, and the locations of the files that the executor wrote for it."""

    name: str = ""
    files: tuple[str, ...] = ()


async def spans_fetch(request: Request, ctx: Context) -> Response:
    """Return the next parts of data files that a leased operation writes for restricted users.

    Each has the data file with its deletes; `common` has the restrictions, the directory and vended credentials. Parts
    whose files exist are left out. No parts mean that the operation is done.
    """
    metalake, catalog, operation = names_of(request)
    body = Request.decode(await request.body() or b"{}", SpansBody)
    batch = await spans_load(
        ctx, RequestScope(metalake, catalog), operation=_number(operation), after=body.after, limit=body.limit
    )
    return json_response(msgspec.structs.asdict(batch))


async def files_report(request: Request, ctx: Context) -> Response:
    """Report the files that an executor wrote for a part of a data file.

    The server compares their columns and numbers of rows with those that it would have written, and computes their
    statistics. Files that differ are deleted, and the status is 400.
    """
    metalake, catalog, operation = names_of(request)
    body = Request.decode(await request.body() or b"{}", FilesBody)
    await span_report(
        ctx, RequestScope(metalake, catalog), operation=_number(operation), name=body.name, files=body.files
    )
    return json_response({"accepted": True})


def _number(text: str) -> int:
    """Return the number of an operation; that of no operation for another text, so that it is refused as any other."""
    return number_of(text) or _NO_OPERATION


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="POST", path=f"{_BASE}/spans", handler=spans_fetch, operation="fetch-restricted-spans"),
    Route(method="POST", path=f"{_BASE}/files", handler=files_report, operation="report-restricted-files"),
)
