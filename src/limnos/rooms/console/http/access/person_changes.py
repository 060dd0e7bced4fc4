# SPDX-License-Identifier: Apache-2.0
"""Forms that create users, groups and roles, enable and disable users, and end all sessions of a user.

The services make all access decisions.
"""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.http.throttle import address_of
from limnos.model.errors import BadRequest, LimnosError, PermissionDenied
from limnos.model.kinds import Kind
from limnos.rooms.console.http.addresses import segment_of
from limnos.rooms.console.http.frame import Link, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import (
    Choice,
    CodeBlock,
    FormInput,
    FormView,
    SheetPage,
    hidden_fields,
    sheet_response,
    with_values,
)
from limnos.rooms.console.http.tabs import Fact
from limnos.services.identity.console_sessions import user_sign_out
from limnos.services.identity.logins import password_set
from limnos.services.identity.roles import role_create
from limnos.services.identity.service_accounts import may_manage_secrets
from limnos.services.identity.tokens import token_create
from limnos.services.identity.users import principal_add, principal_load, user_enable
from limnos.services.request.request_scope import RequestScope

PRINCIPAL_KINDS: Final = {"user": Kind.USER, "group": Kind.GROUP, "role": Kind.ROLE}
WAYS: Final = {"password": "a new password", "token": "an API token for 30 days"}
"""What a service admin can hand over to a user, who signs in with it."""
_TOKEN_S: Final = 30 * 86_400
_PASSWORD_BYTES: Final = 18


def person_url(page_request: PageRequest, word: str, *, metalake: str, name: str) -> str:
    """Return the URL of the page of a user, group or role."""
    return f"{page_request.base}/people/{word}/{segment_of(metalake)}/{segment_of(name)}"


def creation_form(page_request: PageRequest, word: str, *, metalake: str, is_admin: bool = False) -> FormView:
    """Return the form that creates a user, group or role. `is_admin` is whether the caller may hand over a password or
    token of the new user.
    """
    inputs = [FormInput(name="name", label="Name", is_required=True)]
    if word == "user" and is_admin:
        inputs.append(FormInput(name="way", label="To hand over", choices=(Choice("", "nothing"), *_way_choices())))
    return FormView(
        action=f"{page_request.base}/people/create",
        button="Create",
        fields=hidden_fields(metalake=metalake, kind=word),
        inputs=tuple(inputs),
        title=f"Create a {word}",
        label=f"Create the {word}",
    )


def _way_choices() -> tuple[Choice, ...]:
    return tuple(Choice(way, text) for way, text in WAYS.items())


def handover_form(page_request: PageRequest, *, metalake: str, name: str) -> FormView:
    """Return the form that makes a password or token for a user, to hand over."""
    return FormView(
        action=f"{page_request.base}/people/handover",
        button="Make one",
        fields=hidden_fields(metalake=metalake, name=name),
        inputs=(FormInput(name="way", label="Password or token", choices=_way_choices()),),
        label=f"Make a password or token for {name}",
    )


def state_form(page_request: PageRequest, *, metalake: str, name: str, is_enabled: bool) -> FormView:
    """Return the form that disables or enables a user."""
    return FormView(
        action=f"{page_request.base}/people/enable",
        button="Disable" if is_enabled else "Enable",
        fields=hidden_fields(metalake=metalake, name=name, enabled="no" if is_enabled else "yes"),
        label=f"{'Disable' if is_enabled else 'Enable'} {name}",
        is_danger=is_enabled,
    )


def sign_out_form(page_request: PageRequest, *, metalake: str, name: str) -> FormView:
    """Return the form that ends all sessions of a user, of the console and of password logins."""
    return FormView(
        action=f"{page_request.base}/people/sign-out",
        button="Sign out everywhere",
        fields=hidden_fields(metalake=metalake, name=name),
        label=f"Sign {name} out everywhere",
    )


async def create(page_request: PageRequest) -> Response:
    """Create a user, group or role, and redirect to its page."""
    fields = await page_request.form()
    metalake, word, name = (fields.get(each, "").strip() for each in ("metalake", "kind", "name"))
    if word not in PRINCIPAL_KINDS or not metalake or not name:
        raise BadRequest("Give the user, group or role a name")
    way = fields.get("way", "")
    page_request.retry = with_values(creation_form(page_request, word, metalake=metalake, is_admin=bool(way)), fields)
    if way:
        await _require_handover(page_request, word, way=way)
    if word == "role":
        await role_create(page_request.ctx, metalake=metalake, name=name, properties={}, privilege_requests=())
    else:
        await principal_add(page_request.ctx, metalake=metalake, kind=PRINCIPAL_KINDS[word], name=name)
    if way:
        try:
            return await _show_secret_once(page_request, metalake, name=name, way=way)
        except LimnosError as error:  # the user exists: the page of the user says so, and has the form
            notice = f"The user {name} is created, but has no {way} yet: {error.message}"
            return _back(page_request, word, metalake=metalake, name=name, done=notice)
    return _back(page_request, word, metalake=metalake, name=name, done=f"The {word} {name} is created")


async def handover(page_request: PageRequest) -> Response:
    """Make a password or token for a user of the metalake, and show it, which no later page does."""
    metalake, name, fields = await _user_of(page_request)
    way = fields.get("way", "")
    await _require_handover(page_request, "user", way=way)
    await page_request.ctx.read(RequestScope(metalake), lambda view: principal_load(view, Kind.USER, name))
    return await _show_secret_once(page_request, metalake, name=name, way=way)


async def _require_handover(page_request: PageRequest, word: str, *, way: str) -> None:
    """Raise BadRequest for an unknown way to sign in, PermissionDenied if the caller is no service admin."""
    if way not in WAYS or word != "user":
        raise BadRequest(f"A user gets {' or '.join(WAYS.values())}: choose one")
    if not await page_request.ctx.read(RequestScope(), may_manage_secrets):
        raise PermissionDenied("Only service admins make passwords and tokens of other users")


async def _show_secret_once(page_request: PageRequest, metalake: str, *, name: str, way: str) -> Response:
    """Make the password or token, and return the page that shows it once. Raises as `password_set` and
    `token_create`; BadRequest for the caller's own name.
    """
    if name == page_request.user:
        raise BadRequest("Make your own token on the page of your API tokens; limnos set password sets your password")
    ctx = page_request.ctx
    if way == "password":
        text = secrets.token_urlsafe(_PASSWORD_BYTES)
        await password_set(ctx, user=name, password=text, old=None, address=address_of(page_request.request.peer))
        ends = None
    else:
        own_note = f"handed over by {page_request.user}"
        token, text = await token_create(ctx, user=name, name=own_note, expires_in_s=_TOKEN_S)
        ends = token.expires_at
    title = f"New {way} of {name}"
    page = SheetPage(
        frame=await frame_of(page_request, title, metalake=metalake, section="people"),
        title=title,
        icon="key",
        intro=f"Copy it now and give it to {name}: it is shown only once. {_NEXT_STEP[way]}",
        crumbs=(Link(name, person_url(page_request, "user", metalake=metalake, name=name)),),
        facts=(Fact(label="User", text=name), *(() if ends is None else (Fact(label="Ends", at_ms=ends),))),
        blocks=(CodeBlock("", text, "secret"),),
    )
    return sheet_response(page_request, page, is_secret=True)


_NEXT_STEP: Final = {
    "password": "It opens the console and limnos login; limnos set password changes it. Former sessions have ended.",
    "token": "Programs send it as LIMNOS_TOKEN, and the sign-in page takes it.",
}


async def enable(page_request: PageRequest) -> Response:
    """Enable or disable a user, and redirect to the user's page."""
    metalake, name, fields = await _user_of(page_request)
    if fields.get("enabled") not in ("yes", "no"):
        raise BadRequest("Choose whether the user is enabled")
    enabled = fields["enabled"] == "yes"
    await user_enable(page_request.ctx, metalake=metalake, name=name, enabled=enabled)
    notice = f"{name} is enabled" if enabled else f"{name} is disabled, and refused from the next request on"
    return _back(page_request, "user", metalake=metalake, name=name, done=notice)


async def sign_out(page_request: PageRequest) -> Response:
    """End all sessions of a user, but no API tokens, and redirect to the user's page."""
    metalake, name, _ = await _user_of(page_request)
    ended_count = await user_sign_out(page_request.ctx, user=name)
    done = f"{name} is signed out: {ended_count} session{'' if ended_count == 1 else 's'} ended"
    return _back(page_request, "user", metalake=metalake, name=name, done=done)


async def _user_of(page_request: PageRequest) -> tuple[str, str, dict[str, str]]:
    """Parse a form about a user into the metalake, the user's name, and the form's fields. Raises BadRequest if a
    name is missing.
    """
    fields = await page_request.form()
    metalake, name = fields.get("metalake", ""), fields.get("name", "")
    if not metalake or not name:
        raise BadRequest("Name the user")
    return metalake, name, fields


def _back(page_request: PageRequest, word: str, *, metalake: str, name: str, done: str) -> Response:
    url = person_url(page_request, word, metalake=metalake, name=name)
    return redirect(f"{url}?{urlencode({'done': done})}")


ROUTES = (
    ConsoleRoute(method="POST", path="/people/create", handler=create, operation="create-person-from-console"),
    ConsoleRoute(method="POST", path="/people/handover", handler=handover, operation="handover-from-console"),
    ConsoleRoute(method="POST", path="/people/enable", handler=enable, operation="enable-user-from-console"),
    ConsoleRoute(method="POST", path="/people/sign-out", handler=sign_out, operation="sign-user-out-from-console"),
)
