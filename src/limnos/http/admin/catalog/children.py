# SPDX-License-Identifier: Apache-2.0
"""Children: the objects of all kinds directly in a namespace or a catalog, in one page.

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
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.names.path import Levels
from limnos.services.catalog.children import CHILD_KINDS, PAGE_MAX, ChildObject, ChildrenRequest, children_list
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

LIMIT: Final = 100
_KINDS: Final = {kind.word: kind for kind in CHILD_KINDS}


async def children(request: Request, ctx: Context) -> Response:
    """Return a page of the children of the namespace at `path`, or of the catalog; of all kinds or of one `kind`."""
    scope = RequestScope(*names_of(request))
    text = request.query("path")
    parent = tuple(display.parse(text)) if text else ()
    word = request.query("kind")
    children_request = ChildrenRequest(
        _parse_page_token(request.query("after")), _limit(request.query("limit")), _kind(word) if word else None
    )
    page = await children_list(ctx, scope, parent=parent, request=children_request)
    following = None if page.following is None else f"{page.following[0].word}:{page.following[1]}"
    above = (scope.catalog or "", *parent)
    return json_response({"children": [_encode(each, above) for each in page.children], "after": following})


def _encode(child: ChildObject, above: Levels) -> dict[str, object]:
    body: dict[str, object] = {"kind": child.kind.word, "name": child.name, "path": [*above, child.name]}
    if child.node is None:
        return body
    owner = child.owner
    return body | {
        "id": child.node.id,
        "format": child.node.format or None,
        "owner": None if owner is None else {"kind": owner.kind.word, "name": owner.name},
        "comment": child.comment,
        "created_by": child.node.created_by,
        "created_at": instant(child.node.created_at),
        "changed_at": instant(child.changed_at),
    }


def _parse_page_token(text: str | None) -> tuple[Kind, str] | None:
    if not text:
        return None
    word, _, name = text.partition(":")
    if word not in _KINDS:
        raise BadRequest(f"'{text[:50]}' is not a page token: send the 'after' of the previous page")
    return _KINDS[word], name


def _kind(word: str) -> Kind:
    if word not in _KINDS:
        raise BadRequest(f"'{word[:50]}' is not a kind of child: kinds are {', '.join(_KINDS)}")
    return _KINDS[word]


def _limit(text: str | None) -> int:
    limit = number_of(text or str(LIMIT), PAGE_MAX)
    if not limit:
        raise BadRequest(f"limit must be a number from 1 to {PAGE_MAX}, not '{(text or '')[:20]}'")
    return limit


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/children",
        handler=children,
        operation="list-children",
        query=("path", "kind", "after", "limit"),
    ),
)
