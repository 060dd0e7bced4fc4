# SPDX-License-Identifier: Apache-2.0
"""Access: explanations of decisions, holders, rights of users and their differences, previews of changes, presets.

Has no business rules.
"""

from __future__ import annotations

from typing import Final, Literal

from limnos.access.action_words import parse_action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.refusals import decision_json, unescape_percent
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.entities import Grant
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind, KindGroup
from limnos.model.presets import PresetName, parse_preset
from limnos.model.privileges import Privilege, parse_condition, parse_privilege
from limnos.names import display
from limnos.names.parts import check_levels
from limnos.services.identity import access_consequences, access_holders, access_reach
from limnos.services.identity.access_consequences import Consequence
from limnos.services.identity.access_differences import DiffRequest, OwnRights, access_diff
from limnos.services.identity.access_objects import AccessQuestion, objects_at
from limnos.services.identity.explain import access_explain
from limnos.services.identity.presets.access_presets import PresetOutcome, PresetRequest, named_grants, preset_change
from limnos.services.identity.presets.missing_privileges import missing_privileges
from limnos.services.lookup.definer_rights import check_view_chain
from limnos.services.lookup.securables import parse_kind
from limnos.services.request.context import Context

LIMIT: Final = 100


class ExplainRequest(AdminRequestBody, frozen=True, kw_only=True):
    """A request to explain whether a user (by default the caller) may take an action on an object.

    The path starts with the catalog. `through` are the paths below the catalog of the views through which the
    object is read, the outermost first.
    """

    action: str
    path: tuple[str, ...] = ()
    user: str | None = None
    kind: str | None = None
    through: tuple[tuple[str, ...], ...] = ()


async def explain(request: Request, ctx: Context) -> Response:
    """Return the access decision on an action, and the grants that would allow a refused action."""
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
    """Parse the kind of a securable object or a principal. Raises BadRequest for an unknown kind."""
    return _PRINCIPALS.get(text.lower()) or parse_kind(text)


_PRINCIPALS = {kind.word: kind for kind in Kind if kind.form is KindGroup.PRINCIPAL}


async def holders(request: Request, ctx: Context) -> Response:
    """Return the users with access to an object, by name, with the reasons; for every access level, or for one
    `action`.
    """
    action, after = request.query("action"), request.query("after") or ""
    page = await access_holders.access_holders(
        ctx,
        _question(request),
        request=access_holders.HoldersRequest(
            parse_action(action) if action else None, after, _limit(request, access_holders.PAGE_MAX)
        ),
    )
    return json_response(
        {
            "kind": page.kind.word,
            "asked": page.asked,
            "holders": [
                {
                    "user": each.user,
                    "enabled": each.is_enabled,
                    "may": {name: [factor.as_json() for factor in why] for name, why in each.reasons.items()},
                    "restrictions": [
                        {"name": name, "object": {"kind": kind.word, "name": on}}
                        for name, kind, on in each.restrictions
                    ],
                }
                for each in page.holders
            ],
            "after": page.following,
            "enforced": page.is_enforced,
            "notes": [unescape_percent(each) for each in page.notes],
        }
    )


async def rules(request: Request, ctx: Context) -> Response:
    """Return the owners and grants that decide on an object, the object's own first, then those of its ancestors."""
    text = request.query("after") or "0"
    after = number_of(text)
    if after is None:
        raise BadRequest(f"after must be the page token 'after' of the previous page, not '{text[:20]}'")
    page = await access_holders.access_rules(
        ctx, _question(request), after=after, limit=_limit(request, access_holders.PAGE_MAX)
    )
    return json_response(
        {
            "kind": page.kind.word,
            "owners": [
                {
                    "kind": each.kind.word,
                    "name": each.name,
                    "object": {"kind": each.object_kind.word, "name": each.object_name},
                    "inherited": each.is_inherited,
                }
                for each in page.owners
            ],
            "rules": [
                {
                    "role": each.role,
                    "privilege": Privilege(each.privilege).name,
                    "condition": "allow" if each.is_allowed else "deny",
                    "object": {"kind": each.kind.word, "name": each.object_name},
                    "inherited": each.is_inherited,
                    "users": each.users,
                    "groups": each.groups,
                }
                for each in page.rules
            ],
            "hidden_rules": page.hidden_rules,
            "after": page.following,
            "enforced": page.is_enforced,
        }
    )


async def reach(request: Request, ctx: Context) -> Response:
    """Return the access levels of a user, by default the caller, below an object: counts, and objects by path."""
    after = request.query("after")
    page = await access_reach.access_reach(
        ctx,
        _question(request),
        request=access_reach.ReachRequest(
            request.query("user") or None,
            tuple(display.parse(after)) if after else (),
            _limit(request, access_reach.PAGE_MAX),
        ),
    )
    return json_response(
        {
            "user": page.user,
            "counts": {
                level: {kind.word: count for kind, count in sorted(by_kind.items())}
                for level, by_kind in page.counts.items()
            },
            "objects": [
                {"kind": each.kind.word, "path": each.path, "may": each.levels, "restricted": each.is_restricted}
                for each in page.objects
            ],
            "after": None if page.following is None else display.render(page.following),
            "looked": page.looked,
            "hidden": page.hidden,
            "bounded": page.is_bounded,
            "enforced": page.is_enforced,
            "notes": [unescape_percent(each) for each in page.notes],
        }
    )


async def diff(request: Request, ctx: Context) -> Response:
    """Return what each of two users may do on an object and below it, and the other may not, by path."""
    user, other, after = request.query("user"), request.query("other"), request.query("after")
    if not user or not other:
        raise BadRequest("Name two users, as user and other")
    limit = _limit(request, access_reach.PAGE_MAX)
    diff_request = DiffRequest(user, other, tuple(display.parse(after)) if after else (), limit)
    page = await access_diff(ctx, _question(request), request=diff_request)
    return json_response(
        {
            "objects": [
                {
                    "kind": each.kind.word,
                    "path": each.path,
                    "user": _own_rights(each.user),
                    "other": _own_rights(each.other),
                }
                for each in page.objects
            ],
            "after": None if page.following is None else display.render(page.following),
            "differing": page.differing,
            "hidden": page.hidden,
            "looked": page.looked,
            "bounded": page.is_bounded,
            "enforced": page.is_enforced,
        }
    )


def _own_rights(rights: OwnRights) -> dict[str, object]:
    return {
        "may": rights.levels,
        "actions": [action.word for action in rights.actions],
        "restrictions": rights.restrictions,
    }


async def missing(request: Request, ctx: Context) -> Response:
    """Return the privileges that a user, by default the caller, lacks for a preset on an object."""
    preset = parse_preset(request.query("preset") or "")
    lack = await missing_privileges(ctx, _question(request), user=request.query("user") or None, preset=preset)
    return json_response(
        {
            "user": lack.user,
            "kind": lack.kind.word,
            "missing": [
                {
                    "privilege": each.privilege.name,
                    "object": {"kind": each.kind.word, "name": each.object_name},
                    "denials": [
                        {
                            "role": denial.role,
                            "object": {"kind": denial.object_kind, "name": denial.object_name},
                            "restriction": lack.taken_over.get(denial),
                        }
                        for denial in each.denials
                    ],
                }
                for each in lack.missing
            ],
            "restrictions": lack.restrictions,
            "enforced": lack.is_enforced,
            "enabled": lack.is_enabled,
        }
    )


class PrivilegeBody(AdminRequestBody, frozen=True):
    """A privilege, allowed or denied."""

    name: str
    condition: str = "allow"


class WhatIfRequest(AdminRequestBody, frozen=True, kw_only=True):
    """A request to preview a change of rights.

    `grant` and `revoke` change the `privileges` of a `role` on the object of `kind` and `path`. `assign` and `unassign`
    change the `roles` of a `user` or a `group`. With a `preset`, `grant` and `revoke` are about its privileges, and the
    holder may also be a `user` or a `group`.
    """

    change: Literal["grant", "revoke", "assign", "unassign"]
    preset: PresetName | None = None
    role: str | None = None
    kind: str | None = None
    path: tuple[str, ...] = ()
    privileges: tuple[PrivilegeBody, ...] = ()
    user: str | None = None
    group: str | None = None
    roles: tuple[str, ...] = ()


async def what_if(request: Request, ctx: Context) -> Response:
    """Count the users who would gain or lose each access level, and the affected objects. Changes nothing."""
    (metalake,) = names_of(request)
    body = Request.decode(await request.body(), WhatIfRequest)
    if body.preset is not None:
        return json_response(_consequence(await _preset_consequence(ctx, metalake, body=body)))
    if body.change in ("grant", "revoke"):
        return json_response(_consequence(await _privileges_consequence(ctx, metalake, body=body)))
    if not body.roles or (body.user is None) is (body.group is None):
        raise BadRequest("Name the roles, and the user or the group")
    kind, name = (Kind.USER, body.user) if body.user is not None else (Kind.GROUP, body.group or "")
    question = access_consequences.RolesQuestion(
        metalake=metalake, kind=kind, name=name, roles=body.roles, gives=body.change == "assign"
    )
    return json_response(_consequence(await access_consequences.roles_consequence(ctx, question)))


async def _privileges_consequence(ctx: Context, metalake: str, *, body: WhatIfRequest) -> Consequence:
    if body.role is None or body.kind is None or not body.privileges:
        raise BadRequest("Name the role, the kind and path of the object, and the privileges")
    privileges = tuple((parse_privilege(each.name), parse_condition(each.condition)) for each in body.privileges)
    on = AccessQuestion(metalake, parse_kind(body.kind), check_levels(body.path))
    privilege_request = await access_consequences.privilege_request_at(ctx, on, privileges=privileges)
    question = access_consequences.RulesQuestion(metalake, body.role, privilege_request, body.change == "grant")
    return await access_consequences.rules_consequence(ctx, question)


async def _preset_consequence(ctx: Context, metalake: str, *, body: WhatIfRequest) -> Consequence:
    if body.change not in ("grant", "revoke") or body.preset is None or body.kind is None:
        raise BadRequest("Grant or revoke a preset, and name the kind and path of its object")
    preset = PresetRequestBody(
        change="grant" if body.change == "grant" else "revoke",
        preset=body.preset,
        kind=body.kind,
        path=body.path,
        user=body.user,
        group=body.group,
        role=body.role,
    )
    return await access_consequences.preset_consequence(ctx, await _preset_request(ctx, metalake, body=preset))


def _consequence(consequence: Consequence) -> dict[str, object]:
    return {
        "users": consequence.users,
        "gaining": consequence.gaining,
        "losing": consequence.losing,
        "objects": consequence.objects,
        "lines": [
            {
                "level": each.level,
                "kind": each.kind.word,
                "gains": each.gains,
                "users": each.users,
                "objects": each.objects,
                "names": each.names,
            }
            for each in consequence.lines
        ],
        "bounded": consequence.is_bounded,
        "enforced": consequence.is_enforced,
    }


class PresetRequestBody(AdminRequestBody, frozen=True, kw_only=True):
    """A request to grant a preset on the object of `kind` and `path` to a `user`, a `group` or a `role`, or to revoke
    it.
    """

    change: Literal["grant", "revoke"]
    preset: PresetName
    kind: str
    path: tuple[str, ...] = ()
    user: str | None = None
    group: str | None = None
    role: str | None = None


async def change_preset(request: Request, ctx: Context) -> Response:
    """Grant all privileges that a reader, writer or administrator of an object needs, or revoke them, in one
    transaction. Returns the role and the changed privileges.
    """
    (metalake,) = names_of(request)
    body = Request.decode(await request.body(), PresetRequestBody)
    preset_request = await _preset_request(ctx, metalake, body=body)
    request.audit_text = preset_request.text
    outcome = await preset_change(ctx, preset_request)
    return json_response(
        {
            "role": outcome.role,
            "created": outcome.is_created,
            "changed": _preset_grants(outcome, outcome.changed),
            "unchanged": _preset_grants(outcome, outcome.unchanged),
        }
    )


async def _preset_request(ctx: Context, metalake: str, *, body: PresetRequestBody) -> PresetRequest:
    principals = [
        (kind, name)
        for kind, name in ((Kind.USER, body.user), (Kind.GROUP, body.group), (Kind.ROLE, body.role))
        if name is not None
    ]
    if len(principals) != 1:
        raise BadRequest("Name one holder of the preset: a user, a group or a role")
    kind, name = principals[0]
    preposition = "to" if body.change == "grant" else "from"
    target = f"{body.kind} {display.render(body.path) or metalake}"
    on = AccessQuestion(metalake, parse_kind(body.kind), check_levels(body.path))
    privilege_request = await access_consequences.privilege_request_at(ctx, on, privileges=())
    return PresetRequest(
        metalake=metalake,
        preset=body.preset,
        privilege_request=privilege_request,
        holder_kind=kind,
        holder=name,
        grants_them=body.change == "grant",
        text=f"{body.change} preset {body.preset} on {target} {preposition} {kind.word} {name}",
    )


def _preset_grants(outcome: PresetOutcome, grants: tuple[Grant, ...]) -> list[dict[str, object]]:
    return [
        {"privilege": privilege, "object": {"kind": kind.word, "name": name}}
        for privilege, kind, name in named_grants(outcome, grants)
    ]


async def objects(request: Request, ctx: Context) -> Response:
    """Return the objects at `path` of which the caller may know, by kind, with their owners. Nothing is refused: a
    hidden object is left out like a missing one. `complete` is false for a catalog of an external system, which may
    have others.
    """
    (metalake,) = names_of(request)
    text = request.query("path")
    objects_at_path = await objects_at(ctx, metalake, path=tuple(display.parse(text)) if text else ())
    results = [
        {
            "kind": each.kind.word,
            "owner": None if each.owner is None else {"kind": each.owner.kind.word, "name": each.owner.name},
        }
        for each in objects_at_path.objects
    ]
    return json_response({"objects": results, "complete": objects_at_path.is_complete})


def _question(request: Request) -> AccessQuestion:
    (metalake,) = names_of(request)
    path, kind = request.query("path"), request.query("kind")
    return AccessQuestion(metalake, _parse_kind(kind) if kind else None, tuple(display.parse(path)) if path else ())


def _limit(request: Request, most: int) -> int:
    text = request.query("limit") or str(LIMIT)
    limit = number_of(text, most)
    if not limit:
        raise BadRequest(f"limit must be a number from 1 to {most}, not '{text[:20]}'")
    return limit


_ACCESS: Final = "/api/limnos/v1/metalakes/{m}/access"
ROUTES: tuple[Route[Handler], ...] = (
    Route(method="POST", path=f"{_ACCESS}/explain", handler=explain, operation="explain-access"),
    Route(
        method="GET",
        path=f"{_ACCESS}/holders",
        handler=holders,
        operation="list-access-holders",
        query=("path", "kind", "action", "after", "limit"),
    ),
    Route(
        method="GET",
        path=f"{_ACCESS}/rules",
        handler=rules,
        operation="list-access-rules",
        query=("path", "kind", "after", "limit"),
    ),
    Route(
        method="GET",
        path=f"{_ACCESS}/reach",
        handler=reach,
        operation="list-access-reach",
        query=("path", "kind", "user", "after", "limit"),
    ),
    Route(
        method="GET",
        path=f"{_ACCESS}/diff",
        handler=diff,
        operation="list-access-differences",
        query=("user", "other", "path", "kind", "after", "limit"),
    ),
    Route(
        method="GET",
        path=f"{_ACCESS}/missing",
        handler=missing,
        operation="list-missing-privileges",
        query=("preset", "user", "path", "kind"),
    ),
    Route(method="GET", path=f"{_ACCESS}/objects", handler=objects, operation="list-known-objects", query=("path",)),
    Route(method="POST", path=f"{_ACCESS}/what-if", handler=what_if, operation="what-if-access"),
    Route(method="POST", path=f"{_ACCESS}/presets", handler=change_preset, operation="change-access-preset"),
)
