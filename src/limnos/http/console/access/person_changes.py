# SPDX-License-Identifier: Apache-2.0
"""Forms that create users, groups and roles, enable and disable users, and end all sessions of a user.

The services make all access decisions.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from limnos.http.console.addresses import segment_of
from limnos.http.console.page_requests import ConsoleRoute, PageRequest
from limnos.http.console.responses import redirect
from limnos.http.console.sheets import FormInput, FormView, hidden_fields, with_values
from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.services.identity.console_sessions import user_sign_out
from limnos.services.identity.roles import role_create
from limnos.services.identity.users import principal_add, user_enable

PRINCIPAL_KINDS: Final = {"user": Kind.USER, "group": Kind.GROUP, "role": Kind.ROLE}


def person_url(page_request: PageRequest, word: str, *, metalake: str, name: str) -> str:
    """Return the URL of the page of a user, group or role."""
    return f"{page_request.base}/people/{word}/{segment_of(metalake)}/{segment_of(name)}"


def creation_form(page_request: PageRequest, word: str, *, metalake: str) -> FormView:
    """Return the form that creates a user, group or role."""
    return FormView(
        f"{page_request.base}/people/create",
        "Create",
        hidden_fields(metalake=metalake, kind=word),
        (FormInput("name", "Name", is_required=True),),
        title=f"Create a {word}",
        label=f"Create the {word}",
    )


def state_form(page_request: PageRequest, *, metalake: str, name: str, is_enabled: bool) -> FormView:
    """Return the form that disables or enables a user."""
    return FormView(
        f"{page_request.base}/people/enable",
        "Disable" if is_enabled else "Enable",
        hidden_fields(metalake=metalake, name=name, enabled="no" if is_enabled else "yes"),
        label=f"{'Disable' if is_enabled else 'Enable'} {name}",
        is_danger=is_enabled,
    )


def sign_out_form(page_request: PageRequest, *, metalake: str, name: str) -> FormView:
    """Return the form that ends all sessions of a user, of the console and of password logins."""
    return FormView(
        f"{page_request.base}/people/sign-out",
        "Sign out everywhere",
        hidden_fields(metalake=metalake, name=name),
        label=f"Sign {name} out everywhere",
    )


async def create(page_request: PageRequest) -> Response:
    """Create a user, group or role, and redirect to its page."""
    fields = await page_request.form()
    metalake, word, name = (fields.get(each, "").strip() for each in ("metalake", "kind", "name"))
    if word not in PRINCIPAL_KINDS or not metalake or not name:
        raise BadRequest("Give the user, group or role a name")
    page_request.retry = with_values(creation_form(page_request, word, metalake=metalake), fields)
    if word == "role":
        await role_create(page_request.ctx, metalake=metalake, name=name, properties={}, wishes=())
    else:
        await principal_add(page_request.ctx, metalake=metalake, kind=PRINCIPAL_KINDS[word], name=name)
    return _back(page_request, word, metalake=metalake, name=name, done=f"The {word} {name} is created")


async def enable(page_request: PageRequest) -> Response:
    """Enable or disable a user, and redirect to the user's page."""
    metalake, name, fields = await _user_of(page_request)
    if fields.get("enabled") not in ("yes", "no"):
        raise BadRequest("Choose whether the user is enabled")
    enabled = fields["enabled"] == "yes"
    await user_enable(page_request.ctx, metalake=metalake, name=name, enabled=enabled)
    done = f"{name} is enabled" if enabled else f"{name} is disabled, and refused from the next request on"
    return _back(page_request, "user", metalake=metalake, name=name, done=done)


async def sign_out(page_request: PageRequest) -> Response:
    """End all sessions of a user, but no API tokens, and redirect to the user's page."""
    metalake, name, _ = await _user_of(page_request)
    ended = await user_sign_out(page_request.ctx, user=name)
    done = f"{name} is signed out: {ended} session{'' if ended == 1 else 's'} ended"
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
    ConsoleRoute("POST", "/people/create", create, "create-person-from-console"),
    ConsoleRoute("POST", "/people/enable", enable, "enable-user-from-console"),
    ConsoleRoute("POST", "/people/sign-out", sign_out, "sign-user-out-from-console"),
)
