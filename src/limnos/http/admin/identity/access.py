"""Explanations: the decision that a request would get, all its reasons, and what would change it.

May import `names`, `model`, `services`, `access` and this package. Knows no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.action_words import parse_action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.refusals import decision_json, unescape_percent
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.routing import Route
from limnos.model.kinds import Kind, KindGroup
from limnos.names.parts import check_levels
from limnos.services.identity.explain import access_explain
from limnos.services.lookup.definer_rights import check_view_chain
from limnos.services.lookup.securables import parse_kind

if TYPE_CHECKING:
    from limnos.http.route_targets import Handler
    from limnos.services.request.context import Context


class ExplainRequest(AdminRequestBody, frozen=True):
    """The question whether a user (by default the caller) may take an action on an object.

    The path starts with the catalog. `through` are the views through which a table or view is read, the outermost
    first, each below the catalog.
    """

    action: str
    path: tuple[str, ...] = ()
    user: str | None = None
    kind: str | None = None
    through: tuple[tuple[str, ...], ...] = ()


async def explain(request: Request, ctx: Context) -> Response:
    """Return the decision, and the grants that would turn a refusal into a permission."""
    (metalake,) = names_of(request)
    body = Request.decode(await request.body(), ExplainRequest)
    decision, suggestions = await access_explain(
        ctx,
        metalake=metalake,
        user=body.user,
        action=parse_action(body.action),
        kind=None if body.kind is None else _parse_kind(body.kind),
        path=check_levels(body.path),
        through=check_view_chain(tuple(map(check_levels, body.through))),
    )
    return json_response(
        {"decision": decision_json(decision), "suggestions": [unescape_percent(line) for line in suggestions]}
    )


def _parse_kind(text: str) -> Kind:
    """Parse the kind of the path: any securable object or principal."""
    return _PRINCIPALS.get(text.lower()) or parse_kind(text)


_PRINCIPALS = {kind.word: kind for kind in Kind if kind.form is KindGroup.PRINCIPAL}

ROUTES: tuple[Route[Handler], ...] = (
    Route("POST", "/api/limnos/v1/metalakes/{m}/access/explain", explain, "explain-access"),
)
