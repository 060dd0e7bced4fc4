# SPDX-License-Identifier: Apache-2.0
"""Changes of rights: a page previews the consequence of a change in numbers and names, and its form makes the change.

The page changes nothing, but needs the same rights as the form.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest, LimnosError, NotFound
from limnos.model.kinds import Kind
from limnos.model.presets import PRESETS, PresetName, parse_preset
from limnos.model.privileges import GrantCondition, Privilege, parse_condition, parse_privilege
from limnos.names import display
from limnos.rooms.console.http.access.objects import grant_url
from limnos.rooms.console.http.access.requests import question_of, reason_input
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address, part_of
from limnos.rooms.console.http.errors import AccessAsk
from limnos.rooms.console.http.frame import Frame, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response, redirect
from limnos.rooms.console.http.sheets import FormInput, FormView, HiddenField, hidden_fields
from limnos.rooms.console.http.tabs import access_path, object_frame
from limnos.services.governance.details import details_load
from limnos.services.identity.access_consequences import (
    Consequence,
    ConsequenceLine,
    RolesQuestion,
    RulesQuestion,
    preset_consequence,
    privilege_request_at,
    roles_consequence,
    rules_consequence,
)
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from limnos.services.identity.presets.access_presets import PresetOutcome, PresetRequest, named_grants, preset_change
from limnos.services.identity.presets.access_requests import access_request_grant, answer_of
from limnos.services.request.request_scope import RequestScope

_GRANT_FIELDS = ("change", "role", "user", "privileges", "condition")
_PEOPLE = {"user": Kind.USER, "group": Kind.GROUP}
_HOLDERS = {**_PEOPLE, "role": Kind.ROLE}


class ChangePage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page that previews a change of rights, with its consequence."""

    frame: Frame
    title: str
    sentence: str
    lines: tuple[str, ...]
    concerned: str
    is_bounded: bool
    is_enforced: bool
    is_revoke: bool
    action: str
    fields: tuple[HiddenField, ...]
    back: str


async def grant_page(page_request: PageRequest) -> Response:
    """Show the consequence of a grant or revoke on an object."""
    address = parse_address(page_request.request.params)
    fields = {name: page_request.request.query(name) or "" for name in _GRANT_FIELDS}
    if not fields["user"]:
        page_request.retry = _role_form(grant_url(page_request, address), fields)
    verb, preposition = ("Revoke", "from") if fields["change"] == "revoke" else ("Grant", "to")
    path = display.render((address.catalog, *address.levels))
    if fields["privileges"] in PRESETS:
        preset = await _preset_change(page_request, address, fields=fields)
        consequence = await preset_consequence(page_request.ctx, preset)
        what = f"the preset {preset.preset}, with what it needs above,"
    else:
        change = await _privileges_change(page_request, address, fields=fields)
        consequence = await rules_consequence(page_request.ctx, change)
        words = ", ".join(privilege.word.replace("_", " ") for privilege, _ in change.privilege_request.privileges)
        what = f"the denial of {words}" if change.privilege_request.privileges[0][1] is GrantCondition.DENY else words
    sentence = f"{verb} {what} on {address.kind.word} {path} {preposition} {_holder_text(fields)}"
    frame = await object_frame(page_request, address)
    return _page(
        page_request,
        frame,
        consequence=consequence,
        sentence=sentence,
        action=grant_url(page_request, address),
        fields=fields,
        back=page_request.base + access_path(address),
        is_revoke=fields["change"] == "revoke",
    )


def _holder_text(fields: Mapping[str, str]) -> str:
    if fields.get("user"):
        return f"the user {fields['user']}"
    kind, name = _holder_of(fields["role"]) if fields["privileges"] in PRESETS else (Kind.ROLE, fields["role"])
    return f"the {kind.word} {name}"


async def access_ask(page_request: PageRequest, preset: PresetName) -> AccessAsk | None:
    """Return whom the caller of a refused page can ask for a preset: the owner of the object, or of the nearest
    container or metalake.

    Only objects that the caller may load count. None for pages without an object, and without such an owner. The
    answer is the same for hidden and for missing objects.
    """
    try:
        address = parse_address(page_request.request.params)
    except (LimnosError, IndexError):
        return None
    at: ObjectAddress | None = address
    owner, on = None, ""
    while at is not None and owner is None:
        owner = await _visible_owner(page_request, at.scope, kind=at.kind, levels=at.levels)
        on = f"{at.kind.word} {display.render((at.catalog, *at.levels))}"
        at = at.parent
    if owner is None:
        owner = await _visible_owner(page_request, RequestScope(address.metalake), kind=Kind.METALAKE, levels=())
        on = f"metalake {display.render((address.metalake,))}"
    if owner is None:
        return None
    query = urlencode({"change": "grant", "user": page_request.user, "privileges": preset})
    origin = page_request.site.own_origin(page_request.request.headers)
    form = FormView(
        action=f"{page_request.base}/ask{address.path.removeprefix('/o')}",
        button=f"Ask {owner}",
        fields=hidden_fields(preset=preset),
        inputs=(reason_input(),),
    )
    return AccessAsk(owner, on, f"{origin}{grant_url(page_request, address)}?{query}", form)


async def _visible_owner(
    page_request: PageRequest, scope: RequestScope, *, kind: Kind, levels: tuple[str, ...]
) -> str | None:
    """Return the owner's name of an object that the caller may load; None if the caller may not, or there is none."""
    try:
        details = await page_request.ctx.read(scope, lambda view: details_load(view, kind, levels=levels))
    except LimnosError:
        return None
    return None if details.owner is None else details.owner.name


def _role_form(action: str, fields: Mapping[str, str]) -> FormView:
    """Return the form that requests the preview of the change again, with another role."""
    rest = {name: value for name, value in fields.items() if name != "role"}
    inputs = (FormInput(name="role", label="Role", value=fields["role"], is_required=True),)
    return FormView(
        action=action,
        button="See what it changes…",
        fields=hidden_fields(**rest),
        inputs=inputs,
        title="Another role",
        method="get",
    )


def _page(
    page_request: PageRequest,
    frame: Frame,
    *,
    consequence: Consequence,
    sentence: str,
    action: str,
    fields: Mapping[str, str],
    back: str,
    is_revoke: bool,
) -> Response:
    view = ChangePage(
        frame=frame,
        title="Revoke" if is_revoke else "Grant",
        sentence=sentence,
        lines=_consequence_lines(consequence),
        concerned=_count_text(consequence.users, "user"),
        is_bounded=consequence.is_bounded,
        is_enforced=consequence.is_enforced,
        is_revoke=is_revoke,
        action=action,
        fields=tuple(HiddenField(name, value) for name, value in fields.items()),
        back=back,
    )
    return html_response(page_request.request, render("access_change.html", view))


def _consequence_lines(consequence: Consequence) -> tuple[str, ...]:
    """Describe the consequence as text, such as `2 users gain read of 312 tables: ana and 1 more`."""
    return tuple(
        f"{_count_text(each.users, 'user')} {'gain' if each.gains else 'lose'}{'s' if each.users == 1 else ''} "
        f"{each.level} of {_count_text(each.objects, each.kind.word.replace('_', ' '))}{_names_text(each)}"
        for each in consequence.lines
    )


def _names_text(line: ConsequenceLine) -> str:
    """Return the names of a line's users and the count of the others; empty if the caller may see none of the names."""
    if not line.names:
        return ""
    others = line.users - len(line.names)
    return f": {', '.join(line.names)}{f' and {others:,} more' if others > 0 else ''}"


def _count_text(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


async def _privileges_change(
    page_request: PageRequest, address: ObjectAddress, *, fields: Mapping[str, str]
) -> RulesQuestion:
    """Parse the change in a form. Raises BadRequest for an invalid field, IllegalPrivilege for a privilege that the
    object's kind does not have.
    """
    if fields.get("change") not in ("grant", "revoke") or not fields.get("role") or not fields.get("privileges"):
        raise BadRequest("Choose a role and privileges on the object's access page")
    condition = parse_condition(fields.get("condition") or "allow")
    privileges = tuple((parse_privilege(each), condition) for each in fields["privileges"].split(","))
    on = question_of(address)
    privilege_request: PrivilegeRequest = await privilege_request_at(page_request.ctx, on, privileges=privileges)
    return RulesQuestion(address.metalake, fields["role"], privilege_request, fields["change"] == "grant")


def _holder_of(text: str) -> tuple[Kind, str]:
    """Parse who gets a preset: `user:ana`, `group:ops`, `role:analyst`, or the name of a role."""
    word, mark, name = text.partition(":")
    kind = _HOLDERS.get(word) if mark else None
    return (Kind.ROLE, text) if kind is None else (kind, name)


async def _preset_change(
    page_request: PageRequest, address: ObjectAddress, *, fields: Mapping[str, str]
) -> PresetRequest:
    """Parse a change by a preset in a form, which may be the answer to an open request of the user.

    Raises BadRequest for an invalid field, or a denial.
    """
    change, preset, user = fields.get("change"), parse_preset(fields["privileges"]), fields.get("user")
    kind, holder = (Kind.USER, user) if user else _holder_of(fields.get("role") or "")
    if (
        change not in ("grant", "revoke")
        or not holder
        or (user and fields.get("role"))
        or (fields.get("condition") or "allow") != "allow"
    ):
        raise BadRequest("Choose a role on the object's access page; a preset is allowed, never denied")
    on = question_of(address)
    answer = None
    if kind is Kind.USER and change == "grant":
        answer = await answer_of(page_request.ctx, question=on, user=holder, preset=preset)
    if answer is not None:
        return answer
    privilege_request = await privilege_request_at(page_request.ctx, on, privileges=())
    return PresetRequest(
        metalake=address.metalake,
        preset=preset,
        privilege_request=privilege_request,
        holder_kind=kind,
        holder=holder,
        grants_them=change == "grant",
    )


async def _preset_apply(
    page_request: PageRequest, address: ObjectAddress, *, fields: Mapping[str, str]
) -> tuple[PresetRequest, PresetOutcome]:
    """Make a change by a preset in a form. A grant that a user asked for ends the request. Raises as `_preset_change`,
    and NotFound if the form answers a request that is not open.
    """
    preset = await _preset_change(page_request, address, fields=fields)
    if not preset.is_answer and fields.get("request") != "granted":
        return preset, await preset_change(page_request.ctx, preset)
    question = question_of(address)
    outcome = await access_request_grant(page_request.ctx, question=question, user=preset.holder, preset=preset.preset)
    return preset, outcome


async def grant_change(page_request: PageRequest) -> Response:
    """Grant privileges on an object to a role, or revoke them, and redirect to the object's access page; an answer to a
    request to the list of requests, because the kind of an object that was hidden from the user may be another one.
    """
    address = parse_address(page_request.request.params)
    fields = await page_request.form()
    if fields.get("privileges") in PRESETS:
        preset, outcome = await _preset_apply(page_request, address, fields=fields)
        changed_text = named_grants(outcome, outcome.changed)
        grants_text = ", ".join(f"{privilege} on {kind.word} {name}" for privilege, kind, name in changed_text)
        words = f"the preset {preset.preset} ({grants_text or 'no change'})"
        role, grants_them = outcome.role, preset.grants_them
    else:
        change = await _privileges_change(page_request, address, fields=fields)
        role, grants_them = change.role, change.grants_them
        await privileges_grant(
            page_request.ctx,
            metalake=address.metalake,
            role=role,
            privilege_request=change.privilege_request,
            grants_them=grants_them,
        )
        words = ", ".join(Privilege(privilege).word for privilege, _ in change.privilege_request.privileges)
    text = f"{words} {'granted to' if grants_them else 'revoked from'} {role}"
    if fields.get("request"):
        query = urlencode({"metalake": address.metalake, "done": text})
        return redirect(f"{page_request.base}/requests?{query}")
    return redirect(f"{page_request.base}{access_path(address)}?{urlencode({'done': text})}")


def person_of(page_request: PageRequest) -> tuple[Kind, str, str]:
    """Parse the URL of a user's or group's page into kind, metalake and name. Raises NotFound for an unknown kind,
    InvalidName for an invalid name.
    """
    word, metalake, name = (part_of(each) for each in page_request.request.params)
    if word not in _PEOPLE:
        raise NotFound("This page does not exist", kind="route")
    return _PEOPLE[word], metalake, name


def _roles_change(page_request: PageRequest, fields: Mapping[str, str]) -> RolesQuestion:
    """Parse the role assignment in a form. Raises BadRequest for an invalid field; also raises as `person_of`."""
    kind, metalake, name = person_of(page_request)
    if fields.get("change") not in ("assign", "unassign") or not fields.get("role"):
        raise BadRequest("Choose a role on the page of the user or group")
    return RolesQuestion(
        metalake=metalake, kind=kind, name=name, roles=(fields["role"],), gives=fields["change"] == "assign"
    )


async def assign_page(page_request: PageRequest) -> Response:
    """Show the consequence of assigning a role to a user or group, or of revoking it."""
    fields = {name: page_request.request.query(name) or "" for name in ("change", "role")}
    page_request.retry = _role_form(page_request.own_path.partition("?")[0], fields)
    change = _roles_change(page_request, fields)
    consequence = await roles_consequence(page_request.ctx, change)
    verb, preposition = ("Assign", "to") if change.gives else ("Revoke", "from")
    sentence = f"{verb} the role {change.roles[0]} {preposition} {change.kind.word} {change.name}"
    frame = await frame_of(page_request, sentence, metalake=change.metalake, section="people")
    page_path = page_request.own_path.partition("?")[0]
    return _page(
        page_request,
        frame,
        consequence=consequence,
        sentence=sentence,
        action=page_path,
        fields=fields,
        back=page_path.replace("/assign/", "/people/", 1),
        is_revoke=not change.gives,
    )


async def assign_change(page_request: PageRequest) -> Response:
    """Assign a role to a user or group, or revoke it, and redirect to the page of the user or group."""
    change = _roles_change(page_request, await page_request.form())
    await roles_give(
        page_request.ctx,
        metalake=change.metalake,
        kind=change.kind,
        name=change.name,
        roles=change.roles,
        gives=change.gives,
    )
    text = f"{change.roles[0]} {'assigned to' if change.gives else 'revoked from'} {change.name}"
    back = page_request.own_path.partition("?")[0].replace("/assign/", "/people/", 1)
    return redirect(f"{back}?{urlencode({'done': text})}")


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/grant/{kind}/{path...}",
        handler=grant_page,
        operation="grant-page",
        query=_GRANT_FIELDS,
        is_form=True,
    ),
    ConsoleRoute(method="POST", path="/grant/{kind}/{path...}", handler=grant_change, operation="grant-from-console"),
    ConsoleRoute(
        method="GET",
        path="/assign/{kind}/{m}/{name}",
        handler=assign_page,
        operation="assign-page",
        query=("change", "role"),
        is_form=True,
    ),
    ConsoleRoute(
        method="POST", path="/assign/{kind}/{m}/{name}", handler=assign_change, operation="assign-from-console"
    ),
)
