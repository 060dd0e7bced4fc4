# SPDX-License-Identifier: Apache-2.0
"""The change feed of a metalake or a catalog: the committed changes, visible to the caller, after a feed position.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.services.activity.feed import LIMIT_MAX, WAIT_S_MAX, changes_read
from limnos.services.lookup.change_publishing import PublishedChange
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

DEADLINE_S = WAIT_S_MAX + 30
LIMIT = 500


async def changes(request: Request, ctx: Context) -> Response:
    """Return the visible changes of about `limit` revisions after the feed position `after`, and the next position.

    `after` may also be `now`, which returns no change but a position to continue from, or `oldest` (the default),
    which starts at the oldest retained revision. `wait_s` is the maximum time to wait for a first change, in seconds.
    """
    page = await changes_read(
        ctx,
        RequestScope(*names_of(request)),
        after=request.query("after"),
        limit=_number(request.query("limit"), "limit", LIMIT_MAX, unset=LIMIT),
        wait_s=_number(request.query("wait_s"), "wait_s", int(WAIT_S_MAX), unset=0),
    )
    entries = [encode(each) for each in page.changes]
    return json_response({"changes": entries, "next": page.position.text(), "more": page.more})


def encode(change: PublishedChange) -> dict[str, object]:
    """Encode a change as JSON, without the paths that are hidden from the caller."""
    fields: dict[str, object] = {
        "zone": change.zone,
        "revision": change.revision,
        "ordinal": change.ordinal,
        "operation": change.operation,
        "kind": change.kind.word,
        "id": change.id,
    }
    fields |= {
        key: list(path) for key, path in (("path", change.path), ("old", change.old), ("new", change.new)) if path
    }
    return fields | {"actor": change.actor, "request_id": change.request_id, "at": instant(change.at)}


def _number(text: str | None, name: str, most: int, *, unset: int) -> int:
    if text is None:
        return unset
    number = number_of(text, most)
    if number is None:
        raise BadRequest(f"Query parameter {name} must be a number up to {most}, not '{text[:50]}'")
    return number


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/changes",
        handler=changes,
        operation="list-changes",
        query=("after", "limit", "wait_s"),
        deadline_s=DEADLINE_S,
    ),
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/changes",
        handler=changes,
        operation="list-catalog-changes",
        query=("after", "limit", "wait_s"),
        deadline_s=DEADLINE_S,
    ),
)
