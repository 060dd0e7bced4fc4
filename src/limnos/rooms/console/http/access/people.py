# SPDX-License-Identifier: Apache-2.0
"""Lists of users, groups and roles, and the page of each: its roles or grants, and forms that change them.

A list shows a page of the names visible to the caller.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.entities import Principal, RoleEntity
from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.names import display
from limnos.rooms.console.http.access.members import group_links, members_part
from limnos.rooms.console.http.access.objects import role_names
from limnos.rooms.console.http.access.person_changes import (
    PRINCIPAL_KINDS,
    creation_form,
    handover_form,
    person_url,
    sign_out_form,
    state_form,
)
from limnos.rooms.console.http.access.person_drops import drop_path
from limnos.rooms.console.http.addresses import KINDS, ObjectAddress, catalog_address, part_of, segment_of
from limnos.rooms.console.http.frame import Frame, Link, frame_of
from limnos.rooms.console.http.navigation.console_pages import SECRETS
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.secret_lists import secrets_sheet
from limnos.rooms.console.http.sheets import FormView, TabPart
from limnos.rooms.console.http.tabs import access_path
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.identity.roles import role_drop_of, role_load, role_objects, roles_list
from limnos.services.identity.service_accounts import may_manage_secrets
from limnos.services.identity.users import may_create, principal_load, principal_remove_of, principals_list
from limnos.services.request.request_scope import RequestScope

SHOWN: Final = 100
_WORDS: Final = {"user": "Users", "group": "Groups", "role": "Roles"}


class PersonLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the list of users, groups or roles."""

    name: str
    href: str
    is_enabled: bool
    made_by: str
    made_ms: int


class PeoplePage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page that lists users, groups or roles."""

    frame: Frame
    title: str
    kind: str
    tabs: tuple[Link, ...]
    starts: str
    lines: tuple[PersonLine, ...]
    following: str
    forms: tuple[FormView, ...]


class RoleRuleLine(msgspec.Struct, frozen=True, kw_only=True):
    """The grants of a role on one object. `href` is the URL of the object's access page; empty for an object without
    one.
    """

    kind: str
    path: str
    href: str
    allowed: str
    denied: str


class PersonPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page of a user, group or role."""

    frame: Frame
    name: str
    kind: str
    list_href: str
    list_title: str
    is_enabled: bool
    assign: str
    roles: tuple[Link, ...]
    rules: tuple[RoleRuleLine, ...]
    is_cut: bool
    secrets: str
    """The URL of the page of a user's secrets, if the caller may manage them; else empty."""
    reach: tuple[Link, ...]
    """For each catalog the URL of the page of a user's access levels in it."""
    forms: tuple[FormView, ...]
    assignable: tuple[str, ...]
    """Roles that the user or group does not have, as suggestions."""
    drop: str
    """The URL of the page that drops the user, group or role; empty if the caller may not."""
    groups: tuple[Link, ...]
    """The groups of a user that the caller may see."""
    part: TabPart
    """The members of a group, with the forms that change them; the secrets of a user for callers who manage them."""


async def people_page(page_request: PageRequest) -> Response:
    """Show a page of the visible users, groups or roles, by name."""
    query = page_request.request.query
    word = query("kind") or "user"
    if word not in PRINCIPAL_KINDS:
        raise NotFound("This list does not exist", kind="route")
    frame = await frame_of(page_request, _WORDS[word], section="people")
    starts, after = query("starts") or "", query("after") or ""
    scope = RequestScope(frame.metalake)
    entities: list[RoleEntity] | list[Principal]
    if word == "role":
        entities = await page_request.ctx.read(scope, roles_list)
    else:
        entities = await page_request.ctx.read(scope, lambda view: principals_list(view, PRINCIPAL_KINDS[word]))
    rest = [each for each in entities if each.name.startswith(starts) and each.name > after]
    lines = tuple(
        PersonLine(
            name=each.name,
            href=person_url(page_request, word, metalake=frame.metalake, name=each.name),
            is_enabled=getattr(each, "enabled", True),
            made_by=each.created_by,
            made_ms=each.created_at,
        )
        for each in rest[:SHOWN]
    )
    base = f"{page_request.base}/people?"
    following = ""
    if len(rest) > SHOWN:
        fields = {"metalake": frame.metalake, "kind": word, "starts": starts, "after": lines[-1].name}
        following = base + urlencode(fields)
    tabs = tuple(
        Link(text, base + urlencode({"metalake": frame.metalake, "kind": each}), each == word)
        for each, text in _WORDS.items()
    )
    is_maker = await page_request.ctx.read(scope, lambda view: may_create(view, PRINCIPAL_KINDS[word]))
    is_admin = SECRETS in page_request.needs
    forms = (creation_form(page_request, word, metalake=frame.metalake, is_admin=is_admin),) if is_maker else ()
    view = PeoplePage(
        frame=frame,
        title=_WORDS[word],
        kind=word,
        tabs=tabs,
        starts=starts,
        lines=lines,
        following=following,
        forms=forms,
    )
    return html_response(page_request.request, render("people.html", view))


async def person_page(page_request: PageRequest) -> Response:
    """Show a user or group with its roles, or a role with its grants."""
    word, metalake, name = (part_of(each) for each in page_request.request.params)
    if word not in PRINCIPAL_KINDS:
        raise NotFound("This page does not exist", kind="route")
    scope, is_cut = RequestScope(metalake), False
    rules: tuple[RoleRuleLine, ...] = ()
    roles: tuple[Link, ...] = ()
    assignable: tuple[str, ...] = ()
    is_enabled, secrets = True, ""
    reach: tuple[Link, ...] = ()
    forms: tuple[FormView, ...] = ()
    groups: tuple[Link, ...] = ()
    part = TabPart()
    if word == "role":
        rules, is_cut = await _role_rules(page_request, scope, name=name)
    else:
        holder = await page_request.ctx.read(scope, lambda view: principal_load(view, PRINCIPAL_KINDS[word], name))
        roles = tuple(
            Link(each, person_url(page_request, "role", metalake=metalake, name=each)) for each in holder.roles
        )
        assignable = tuple(each for each in await role_names(page_request, metalake) if each not in holder.roles)
        is_enabled = holder.principal.enabled
        if word == "user":
            is_admin = await page_request.ctx.read(RequestScope(), may_manage_secrets)
            if is_admin:
                secrets = f"{page_request.base}/secrets/{segment_of(metalake)}/{segment_of(name)}"
                part = TabPart(sheets=(await secrets_sheet(page_request, metalake, user=name, title="Secrets"),))
            groups = await group_links(page_request, metalake, user=name)
            reach = await _reach_links(page_request, metalake, user=name)
            forms = await _user_forms(page_request, metalake, name=name, is_enabled=is_enabled, is_admin=is_admin)
        else:
            part = await members_part(page_request, metalake, group=name)
    frame = await frame_of(page_request, name, metalake=metalake, section="people")
    page_path = f"/{word}/{segment_of(metalake)}/{segment_of(name)}"
    view = PersonPage(
        frame=frame,
        name=name,
        kind=word,
        list_href=f"{page_request.base}/people?{urlencode({'metalake': metalake, 'kind': word})}",
        list_title=_WORDS[word],
        is_enabled=is_enabled,
        assign="" if word == "role" else f"{page_request.base}/assign{page_path}",
        roles=roles,
        rules=rules,
        is_cut=is_cut,
        secrets=secrets,
        reach=reach,
        forms=forms,
        assignable=assignable,
        drop=await _drop_url(page_request, word, metalake=metalake, name=name),
        groups=groups,
        part=part,
    )
    return html_response(page_request.request, render("person.html", view))


async def _drop_url(page_request: PageRequest, word: str, *, metalake: str, name: str) -> str:
    """Return the URL of the page that drops a user, group or role; empty if the caller may not drop it."""
    try:
        await page_request.ctx.read(
            RequestScope(metalake),
            lambda view: (
                role_drop_of(view, name)
                if word == "role"
                else principal_remove_of(view, PRINCIPAL_KINDS[word], name=name)
            ),
        )
    except (BadRequest, PermissionDenied):  # the metalake's owner, or a caller without the right
        return ""
    return page_request.base + drop_path(word, metalake=metalake, name=name)


async def _reach_links(page_request: PageRequest, metalake: str, *, user: str) -> tuple[Link, ...]:
    """Return links to the user's access levels in the first visible catalogs, one link for each."""
    catalogs = await page_request.ctx.read(RequestScope(metalake), catalogs_list)
    query = urlencode({"reach": user})
    return tuple(
        Link(each.name, f"{page_request.base}{access_path(catalog_address(metalake, each.name))}?{query}#reach")
        for each in catalogs[:SHOWN]
    )


async def _user_forms(
    page_request: PageRequest, metalake: str, *, name: str, is_enabled: bool, is_admin: bool
) -> tuple[FormView, ...]:
    """Return the forms of a user's page that the caller has the right to submit."""
    forms: list[FormView] = []
    if await page_request.ctx.read(RequestScope(metalake), lambda view: may_create(view, Kind.USER)):
        forms.append(state_form(page_request, metalake=metalake, name=name, is_enabled=is_enabled))
    if is_admin:
        forms.append(sign_out_form(page_request, metalake=metalake, name=name))
        if name != page_request.user:
            forms.append(handover_form(page_request, metalake=metalake, name=name))
    return tuple(forms)


async def _role_rules(
    page_request: PageRequest, scope: RequestScope, *, name: str
) -> tuple[tuple[RoleRuleLine, ...], bool]:
    """Return the grants of a role on its first objects, ordered by the objects' paths, and whether more follow."""
    role = await page_request.ctx.read(scope, lambda view: role_load(view, name))
    lines: list[RoleRuleLine] = []
    async for part in role_objects(page_request.ctx, role, metalake=scope.metalake):
        for each in part:
            if len(lines) == SHOWN:
                return tuple(lines), True
            allowed_words, denied_words = (
                ", ".join(Privilege(grant.privilege).word for grant in each.grants if grant.allowed is is_allowed)
                for is_allowed in (True, False)
            )
            path = each.path[0] if each.kind is Kind.METALAKE else display.render(each.path)
            href = _access_address(page_request, scope.metalake or "", kind=each.kind, path=each.path)
            lines.append(
                RoleRuleLine(
                    kind=each.kind.word.replace("_", " "),
                    path=path,
                    href=href,
                    allowed=allowed_words,
                    denied=denied_words,
                )
            )
    return tuple(lines), False


def _access_address(page_request: PageRequest, metalake: str, *, kind: Kind, path: tuple[str, ...]) -> str:
    if kind.word not in KINDS:
        return ""
    return page_request.base + access_path(ObjectAddress(kind, metalake, path[0], path[1:]))


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/people",
        handler=people_page,
        operation="people-page",
        query=("metalake", "kind", "starts", "after"),
    ),
    ConsoleRoute(
        method="GET",
        path="/people/{kind}/{m}/{name}",
        handler=person_page,
        operation="person-page",
        query=("done", "after"),
    ),
)
