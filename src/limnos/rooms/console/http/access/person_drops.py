# SPDX-License-Identifier: Apache-2.0
"""Removing a user or group and dropping a role: a page with the consequences, and its form.

The services make all access decisions. None of these changes can be undone, so a page confirms each.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import NotFound
from limnos.rooms.console.http.access.person_changes import PRINCIPAL_KINDS, person_url
from limnos.rooms.console.http.addresses import part_of, segment_of
from limnos.rooms.console.http.frame import Link, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import FormView, SheetPage, sheet_response
from limnos.rooms.console.http.tabs import Fact
from limnos.services.identity.roles import role_drop, role_drop_of, role_load
from limnos.services.identity.users import principal_load, principal_remove, principal_remove_of
from limnos.services.request.request_scope import RequestScope

_CONSEQUENCES: Final = {
    "user": "The user is refused from the next request on: sessions, API tokens and secrets end. Objects that the user"
    " owns stay, without an owner. A user that is created again under this name gets none of the roles back.",
    "group": "Its members lose its roles with their next request. Objects that it owns stay, without an owner.",
    "role": "Its rules end for everybody who has the role, with their next request. That takes away what it allows, and"
    " lifts what it denies.",
}


async def drop_page(page_request: PageRequest) -> Response:
    """Show the consequences of removing a user or group or of dropping a role, with the form that does it."""
    word, metalake, name = _parts(page_request)
    scope = RequestScope(metalake)
    if word == "role":
        await page_request.ctx.read(scope, lambda view: role_drop_of(view, name))
        role = await page_request.ctx.read(scope, lambda view: role_load(view, name))
        count = len({grant.object_id for grant in role.grants})
        fact = Fact(
            label="Rules on", text="many objects" if role.in_parts else f"{count} object{'' if count == 1 else 's'}"
        )
    else:
        kind = PRINCIPAL_KINDS[word]
        await page_request.ctx.read(scope, lambda view: principal_remove_of(view, kind, name=name))
        holder = await page_request.ctx.read(scope, lambda view: principal_load(view, kind, name))
        fact = Fact(label="Roles", text=", ".join(holder.roles) or "none")
    page_url = person_url(page_request, word, metalake=metalake, name=name)
    list_url = f"{page_request.base}/people?{urlencode({'metalake': metalake, 'kind': word})}"
    frame = await frame_of(page_request, f"Drop {name}", metalake=metalake, section="people")
    form = FormView(
        action=page_request.base + drop_path(word, metalake=metalake, name=name),
        button="Drop",
        label=f"Drop {name}",
        is_danger=True,
    )
    return sheet_response(
        page_request,
        SheetPage(
            frame=frame,
            title=f"Drop the {word} {name}?",
            icon="key" if word == "role" else "person",
            intro=_CONSEQUENCES[word],
            crumbs=(Link(f"{word.capitalize()}s", list_url), Link(name, page_url)),
            facts=(fact,),
            forms=(form,),
            warning="This cannot be undone.",
            cancel=page_url,
        ),
    )


async def drop(page_request: PageRequest) -> Response:
    """Remove a user or group, or drop a role, and redirect to the list."""
    word, metalake, name = _parts(page_request)
    if word == "role":
        await role_drop(page_request.ctx, metalake=metalake, name=name)
    else:
        await principal_remove(page_request.ctx, metalake=metalake, kind=PRINCIPAL_KINDS[word], name=name)
    fields = {"metalake": metalake, "kind": word, "done": f"The {word} {name} is dropped"}
    return redirect(f"{page_request.base}/people?{urlencode(fields)}")


def drop_path(word: str, *, metalake: str, name: str) -> str:
    """Return the path of the page that drops a user, group or role, below the console's root."""
    return f"/people/drop/{word}/{segment_of(metalake)}/{segment_of(name)}"


def _parts(page_request: PageRequest) -> tuple[str, str, str]:
    """Return the kind, the metalake and the name of the route. Raises NotFound for an unknown kind, InvalidName for a
    malformed name.
    """
    word, metalake, name = (part_of(each) for each in page_request.request.params)
    if word not in PRINCIPAL_KINDS:
        raise NotFound("This page does not exist", kind="route")
    return word, metalake, name


ROUTES = (
    ConsoleRoute(method="GET", path="/people/drop/{kind}/{m}/{name}", handler=drop_page, operation="drop-person-page"),
    ConsoleRoute(
        method="POST", path="/people/drop/{kind}/{m}/{name}", handler=drop, operation="drop-person-from-console"
    ),
)
