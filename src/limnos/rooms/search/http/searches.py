# SPDX-License-Identifier: Apache-2.0
"""Search: objects of a metalake by name, words, tags and owners.

Has no business rules.
"""

from __future__ import annotations

from typing import Final

from limnos.http.admin.bodies import names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.rooms.search.services.hits import SearchHit
from limnos.rooms.search.services.questions import question_of
from limnos.rooms.search.services.searches import LIMIT_MAX, search
from limnos.rooms.search.services.spelling import correct_query
from limnos.services.request.context import Context

LIMIT: Final = 50


async def search_show(request: Request, ctx: Context) -> Response:
    """Return the objects that match the query `q` and that the caller may load, best first.

    `in`, `kind`, `tag`, `owner` and `format` are filters, with the same meaning as `key:value` pairs in the query. With
    `facets=true` the response counts the first 200 hits by kind, catalog and format.
    """
    (metalake,) = names_of(request)
    limit = number_of(request.query("limit") or str(LIMIT), LIMIT_MAX)
    if not limit:
        raise BadRequest(f"limit must be a number from 1 to {LIMIT_MAX}, not '{(request.query('limit') or '')[:20]}'")
    filters = {
        "in": request.query("in"),
        "kind": request.query("kind"),
        "tag": request.query("tag"),
        "owner": request.query("owner"),
        "format": request.query("format"),
    }
    question = question_of(request.query("q") or "", filters)
    text, with_facets = request.query("q") or "", request.query_flag("facets")
    result = await search(ctx, metalake, question=question, limit=limit, with_facets=with_facets)
    body: dict[str, object] = {
        "hits": [_encode(each) for each in result.hits],
        "more": result.more,
        "bounded": result.is_bounded,
        "behind": result.unindexed_changes,
        "meant": [correct_query(text, each) for each in result.suggestions],
    }
    if with_facets:
        body["facets"] = [{"key": each.key, "value": each.value, "count": each.hits} for each in result.facets]
    return json_response(body)


def _encode(hit: SearchHit) -> dict[str, object]:
    return {
        "id": hit.node_id,
        "kind": hit.kind.word,
        "path": hit.path,
        "format": hit.table_format or None,
        "tier": hit.tier,
        "matched": [{"where": each.where, "text": each.text} for each in hit.matched],
        "changed_at": instant(hit.changed_at),
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/search",
        handler=search_show,
        operation="search",
        query=("q", "in", "kind", "tag", "owner", "format", "limit", "facets"),
    ),
)
