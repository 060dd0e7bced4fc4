# SPDX-License-Identifier: Apache-2.0
"""Read restrictions of tables and namespaces: list, set, remove.

Has no business rules.
"""

from __future__ import annotations

import msgspec
from msgspec import field

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.privileges import Privilege
from limnos.services.governance import restrictions
from limnos.services.governance.restrictions import RestrictionPrincipals, RestrictionTarget
from limnos.services.lookup.securables import parse_kind
from limnos.services.request.context import Context

_PATH = "/api/limnos/v1/metalakes/{m}/objects/{type}/{fullName}/restrictions"


class RestrictedPrincipals(AdminRequestBody, frozen=True):
    """The names of users, groups and roles to which a restriction applies, or which are exempt from it."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


class RestrictionSet(AdminRequestBody, frozen=True, rename={"unless": "except"}):
    """A restriction: row filter, column masks, and the principals it applies to.

    `filter` is a SQL condition or an expression of Iceberg REST. `masks` are by column. An empty `to` means all users;
    `except` are exempt principals.
    """

    filter: object = None
    masks: dict[str, str] = field(default_factory=dict)
    to: RestrictedPrincipals = RestrictedPrincipals()
    unless: RestrictedPrincipals = RestrictedPrincipals()


async def restrictions_list(request: Request, ctx: Context) -> Response:
    """Return the restrictions that apply to a table or namespace: its own, then those of its ancestors."""
    views = await restrictions.restrictions_list(ctx, _restricted_object([*names_of(request)]))
    return json_response({"restrictions": [_encode_restriction(each) for each in views]})


async def restriction_set(request: Request, ctx: Context) -> Response:
    """Set a restriction on a table or namespace. It replaces one of the same name."""
    *names, name = names_of(request)
    body = Request.decode(await request.body(), RestrictionSet)
    restriction_request = restrictions.RestrictionRequest(
        body.filter, body.masks, _restricted_principals(body.to), _restricted_principals(body.unless)
    )
    await restrictions.restriction_set(ctx, _restricted_object(names), name=name, request=restriction_request)
    return json_response({"name": name})


async def restriction_remove(request: Request, ctx: Context) -> Response:
    """Remove a restriction from the object it is set on, and return whether it existed."""
    *names, name = names_of(request)
    return json_response({"removed": await restrictions.restriction_remove(ctx, _restricted_object(names), name=name)})


def _restricted_object(names: list[str]) -> RestrictionTarget:
    metalake, kind, full_name = names
    return RestrictionTarget(metalake, parse_kind(kind), full_name)


def _restricted_principals(named: RestrictedPrincipals) -> RestrictionPrincipals:
    return RestrictionPrincipals(named.users, named.groups, named.roles)


def _encode_restriction(view: restrictions.RestrictionView) -> dict[str, object]:
    restriction, (kind, name) = view.restriction, view.on
    terms = restriction.terms
    row_filter = terms.row_filter
    return {
        "name": restriction.name,
        "on": {"kind": kind.word, "name": name},
        "filter": msgspec.json.decode(row_filter) if row_filter else None,
        "masks": {mask.column: mask.action for mask in terms.masks},
        "to": view.to._asdict(),
        "except": view.unless._asdict(),
        "set_by": restriction.set_by,
        "set_at": instant(restriction.set_at),
        **({"denies": [Privilege(each).word for each in terms.denies]} if terms.denies else {}),
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_PATH, handler=restrictions_list, operation="list-restrictions"),
    Route(method="PUT", path=f"{_PATH}/{{name}}", handler=restriction_set, operation="set-restriction"),
    Route(method="DELETE", path=f"{_PATH}/{{name}}", handler=restriction_remove, operation="remove-restriction"),
)
