# SPDX-License-Identifier: Apache-2.0
"""The access page of an object: users and their rights, the grants behind them, explanations of decisions, and a form
to grant.

Callers who may not list the users with access see their own rights, and the object's owner.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.access.actions import Action
from limnos.access.levels import levels_of
from limnos.http.refusals import decision_json, unescape_percent
from limnos.http.response import Response
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.presets import PRESET_KINDS, PRESETS, WAY, preset_privileges
from limnos.model.privileges import BINDS, Privilege
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address, segment_of
from limnos.rooms.console.http.errors import DecisionFactorView, factors_of
from limnos.rooms.console.http.frame import Frame
from limnos.rooms.console.http.navigation.heading_words import HeadingWords, further_heading, heading_words
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.sheets import Choice
from limnos.rooms.console.http.tabs import ObjectHeading, access_path, object_frame
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.identity.access_holders import (
    AccessHolder,
    AccessRules,
    HoldersPage,
    HoldersRequest,
    access_holders,
    access_rules,
)
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.access_reach import Reach, ReachRequest, access_reach
from limnos.services.identity.explain import access_explain
from limnos.services.identity.roles import roles_list
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, format_of

SHOWN: Final = 100


class HolderLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the list of users with access.

    `marks` has an entry per access level: the URL of the explanation, or "" if the user lacks the level.
    """

    user: str
    href: str
    is_enabled: bool
    marks: tuple[str, ...]
    through: str
    restrictions: str


class RuleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A grant on this object or on an ancestor. `revoke` is the URL of the page that revokes it; empty for an inherited
    grant.
    """

    role: str
    href: str
    privilege: str
    is_allowed: bool
    where: str
    is_inherited: bool
    users: int
    groups: int
    revoke: str


class CountLine(msgspec.Struct, frozen=True):
    """The count of objects of a kind on which a user has an access level."""

    level: str
    words: str


class WhyPart(msgspec.Struct, frozen=True, kw_only=True):
    """An access decision as text: a sentence, its reasons, and the changes that would reverse it."""

    user: str
    action: str
    is_allowed: bool
    sentence: str
    factors: tuple[DecisionFactorView, ...]
    suggestions: tuple[str, ...]


class AccessPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of an object's access page: users and their rights, owners, grants, an explanation, and forms."""

    frame: Frame
    heading: ObjectHeading
    own: str
    grant: str
    refusal: str
    levels: tuple[str, ...]
    holders: tuple[HolderLine, ...]
    following: str
    owners: tuple[str, ...]
    rules: tuple[RuleLine, ...]
    hidden_rules: int
    is_rules_cut: bool
    actions: tuple[Choice, ...]
    asked_user: str
    why: WhyPart | None
    counts: tuple[CountLine, ...]
    reached_user: str
    is_reach_bounded: bool
    privileges: tuple[Choice, ...]
    restrictions: str
    """The URL of the object's read restrictions, if the caller may set them; else empty."""
    roles: tuple[str, ...]
    """The first roles that the caller may see, as suggestions for the grant."""


async def access_page(page_request: PageRequest) -> Response:
    """Show the users with access to an object, the reasons, and the caller's own rights."""
    address = parse_address(page_request.request.params)
    ctx = page_request.ctx
    details, table_format, words = await ctx.read(address.scope, lambda view: _load_heading(view, address))
    question = AccessQuestion(address.metalake, address.kind, (address.catalog, *address.levels))
    refusal, page, rules = "", None, None
    try:
        after = page_request.request.query("after") or ""
        page = await access_holders(ctx, question, request=HoldersRequest(None, after, SHOWN))
        rules = await access_rules(ctx, question, limit=SHOWN)
    except PermissionDenied:
        owner = "" if details.owner is None else f" Its owner is {details.owner.name}."
        refusal = f"You may not see other users' access: that needs the privilege to manage grants.{owner}"
    user = page_request.request.query("user") or page_request.user
    why = await _explain_decision(page_request, address, user=user)
    reach = await _reach(page_request, question)
    page_url = page_request.base + access_path(address)
    levels = tuple(levels_of(address.kind))
    action = page_request.request.query("action") or next(
        (each[0].word for each in levels_of(address.kind).values()), ""
    )
    view = AccessPage(
        frame=await object_frame(page_request, address),
        heading=further_heading(page_request, address, details=details, words=words, tab="access"),
        own=page_url,
        grant=grant_url(page_request, address),
        refusal=refusal,
        levels=levels,
        holders=tuple(
            _holder_line(page_request, each, own=page_url, levels=levels, address=address) for each in page.holders
        )
        if page is not None
        else (),
        following=_following(page, page_url),
        owners=() if rules is None else tuple(_owner_words(rules)),
        rules=_rule_lines(page_request, rules, address=address),
        hidden_rules=0 if rules is None else rules.hidden_rules,
        is_rules_cut=rules is not None and rules.following is not None,
        actions=tuple(_action_choices(address.kind, chosen=action)),
        asked_user=user,
        why=why,
        counts=() if reach is None else _count_lines(reach),
        reached_user="" if reach is None else reach.user,
        is_reach_bounded=reach is not None and reach.is_bounded,
        privileges=tuple(_privilege_choices(address.kind)) if "grant" in details.rights else (),
        restrictions=restrictions_url(page_request, address)
        if "grant" in details.rights and table_format == ICEBERG and address.kind in Action.RESTRICT.kinds
        else "",
        roles=await role_names(page_request, address.metalake) if "grant" in details.rights else (),
    )
    return html_response(page_request.request, render("access_object.html", view))


def _load_heading(view: RequestView, address: ObjectAddress) -> tuple[ObjectDetails, str, HeadingWords]:
    """Return an object's details, the format of its catalog's tables, and the content of its heading."""
    details = details_load(view, address.kind, levels=address.levels)
    return details, format_of(view), heading_words(view, address, details=details)


async def role_names(page_request: PageRequest, metalake: str) -> tuple[str, ...]:
    """Return the names of the first visible roles; none for callers who may not list roles."""
    try:
        roles = await page_request.ctx.read(RequestScope(metalake), roles_list)
    except PermissionDenied:
        return ()
    return tuple(each.name for each in roles[:SHOWN])


def grant_url(page_request: PageRequest, address: ObjectAddress) -> str:
    """Return the URL of the page that changes privileges on an object."""
    return f"{page_request.base}/grant{address.path.removeprefix('/o')}"


def restrictions_url(page_request: PageRequest, address: ObjectAddress) -> str:
    """Return the URL of the page of an object's read restrictions."""
    return f"{page_request.base}/restrictions{address.path.removeprefix('/o')}"


def _following(page: HoldersPage | None, own: str) -> str:
    return "" if page is None or page.following is None else f"{own}?{urlencode({'after': page.following})}"


def _holder_line(
    page_request: PageRequest, holder: AccessHolder, *, own: str, levels: tuple[str, ...], address: ObjectAddress
) -> HolderLine:
    through = dict.fromkeys(
        "a role" if factor.kind == "allow" and factor.role is None else factor.role or "ownership"
        for factors in holder.reasons.values()
        for factor in factors
        if factor.kind in ("allow", "owner")
    )
    first = levels_of(address.kind)
    marks = tuple(
        f"{own}?{urlencode({'user': holder.user, 'action': first[level][0].word})}#why"
        if level in holder.reasons
        else ""
        for level in levels
    )
    href = f"{page_request.base}/people/user/{segment_of(address.metalake)}/{segment_of(holder.user)}"
    return HolderLine(
        user=holder.user,
        href=href,
        is_enabled=holder.is_enabled,
        marks=marks,
        through=", ".join(through),
        restrictions=", ".join(name for name, _, _ in holder.restrictions),
    )


def _owner_words(rules: AccessRules) -> list[str]:
    return [
        f"{each.kind.word} {each.name}"
        + (f" owns the {each.object_kind.word} {each.object_name}" if each.is_inherited else " owns it")
        for each in rules.owners
    ]


def _rule_lines(
    page_request: PageRequest, rules: AccessRules | None, *, address: ObjectAddress
) -> tuple[RuleLine, ...]:
    if rules is None:
        return ()
    target = grant_url(page_request, address)
    lines = []
    for each in rules.rules:
        privilege = Privilege(each.privilege).word
        fields = {
            "change": "revoke",
            "role": each.role,
            "privileges": privilege,
            "condition": "allow" if each.is_allowed else "deny",
        }
        lines.append(
            RuleLine(
                role=each.role,
                href=f"{page_request.base}/people/role/{segment_of(address.metalake)}/{segment_of(each.role)}",
                privilege=privilege,
                is_allowed=each.is_allowed,
                where=f"{each.kind.word} {each.object_name}",
                is_inherited=each.is_inherited,
                users=each.users,
                groups=each.groups,
                revoke="" if each.is_inherited else f"{target}?{urlencode(fields)}",
            )
        )
    return tuple(lines)


async def _explain_decision(page_request: PageRequest, address: ObjectAddress, *, user: str) -> WhyPart | None:
    """Explain the access decision on the action in the query; None if the query has no action.

    Raises BadRequest for an action that the object's kind does not have; also raises as `access_explain`.
    """
    word = page_request.request.query("action")
    if not word:
        return None
    action = next((each for each in _actions(address.kind) if each.word == word), None)
    if action is None:
        raise BadRequest("The object's kind does not have this action: choose one on the page")
    decision, suggestions = await access_explain(
        page_request.ctx,
        metalake=address.metalake,
        user=user,
        action=action,
        kind=address.kind,
        path=(address.catalog, *address.levels),
    )
    factors = factors_of(decision_json(decision))
    sentence = unescape_percent(decision.message())
    if not decision.allowed and any(each.kind == "member" for each in decision.factors):
        sentence = f"{user} is not a user of the metalake {address.metalake}."
    return WhyPart(
        user=user,
        action=word,
        is_allowed=decision.allowed,
        sentence=sentence,
        factors=factors,
        suggestions=tuple(unescape_percent(each) for each in suggestions),
    )


def _actions(kind: Kind) -> list[Action]:
    return [each for each in Action if kind in each.kinds]


def _action_choices(kind: Kind, *, chosen: str) -> list[Choice]:
    return [Choice(each.word, each.word.replace("_", " "), each.word == chosen) for each in _actions(kind)]


async def _reach(page_request: PageRequest, question: AccessQuestion) -> Reach | None:
    """Count the objects below a container that a user may access; None if the query does not request the counts."""
    user = page_request.request.query("reach")
    if not user or question.kind not in (Kind.CATALOG, Kind.NAMESPACE):
        return None
    return await access_reach(page_request.ctx, question, request=ReachRequest(user, (), 1))


def _count_lines(reach: Reach) -> tuple[CountLine, ...]:
    return tuple(
        CountLine(
            level,
            ", ".join(
                f"{count:,} {kind.word.replace('_', ' ')}{'' if count == 1 else 's'}"
                for kind, count in sorted(by_kind.items())
            ),
        )
        for level, by_kind in reach.counts.items()
    )


def _privilege_choices(kind: Kind) -> list[Choice]:
    """Return the choices of privileges for the kind: first presets, the smallest one first, then every single
    privilege.
    """
    choices: list[Choice] = []
    known: set[tuple[Privilege, ...]] = {()}
    for preset in PRESETS if kind in PRESET_KINDS else ():
        privileges = tuple(each for each in preset_privileges(preset, kind) if each not in WAY)
        if privileges not in known:
            choices.append(Choice(preset, f"{preset} (all that is needed)"))
        known.add(privileges)
    singles = [each.word for each in Privilege if kind in BINDS[each]]
    return [*choices, *(Choice(word, word.replace("_", " ")) for word in singles)]


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/access/{kind}/{path...}",
        handler=access_page,
        operation="access-page",
        query=("user", "action", "reach", "after", "done"),
    ),
)
