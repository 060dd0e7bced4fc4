# SPDX-License-Identifier: Apache-2.0
"""Members of groups: a list with buttons that remove them, a form that adds one, and the groups of a user.

The services make all access decisions.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.rooms.console.http.access.person_changes import person_url
from limnos.rooms.console.http.frame import Link
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import FormInput, FormView, Sheet, SheetCell, SheetColumn, TabPart, hidden_fields
from limnos.services.identity.groups import (
    groups_of_user,
    may_change_members,
    member_remove,
    members_add,
    members_list,
)
from limnos.services.identity.users import principals_list
from limnos.services.request.request_scope import RequestScope

ROWS: Final = 100
"""The number of members on one page of the list, and of users that the form suggests."""


async def members_part(page_request: PageRequest, metalake: str, *, group: str) -> TabPart:
    """Return a page of a group's members, with the forms that change them if the caller may."""
    scope = RequestScope(metalake)
    members, may_change, users = await page_request.ctx.read(
        scope,
        lambda view: (members_list(view, group), may_change_members(view, group), principals_list(view, Kind.USER)),
    )
    names = tuple(each.name for each in users)
    after = page_request.request.query("after") or ""
    rest = [name for name in members if name > after]
    page_url = person_url(page_request, "group", metalake=metalake, name=group)
    visible, present = frozenset(names), frozenset(members)
    rows = tuple(
        (
            SheetCell(
                text=name,
                href=person_url(page_request, "user", metalake=metalake, name=name) if name in visible else "",
                is_name=True,
            ),
            *((SheetCell(form=_removal_form(page_request, metalake, group=group, user=name)),) if may_change else ()),
        )
        for name in rest[:ROWS]
    )
    columns = (SheetColumn(text="User"), *((SheetColumn(text="Change"),) if may_change else ()))
    following = f"{page_url}?{urlencode({'after': rest[ROWS - 1]})}" if len(rest) > ROWS else ""
    note = "No more members follow." if members else "This group has no members."
    sheet = Sheet(title="Members", columns=columns, rows=rows, note=note, following=following)
    others = tuple(name for name in names if name not in present)[:ROWS]
    forms = (_addition_form(page_request, metalake, group=group, others=others),) if may_change else ()
    return TabPart(sheets=(sheet,), forms=forms)


def _addition_form(page_request: PageRequest, metalake: str, *, group: str, others: tuple[str, ...]) -> FormView:
    return FormView(
        action=f"{page_request.base}/people/members/add",
        button="Add",
        fields=hidden_fields(metalake=metalake, group=group),
        inputs=(FormInput(name="user", label="User", is_required=True, suggestions=others),),
        title="Add a member",
        label=f"Add the user to {group}",
    )


def _removal_form(page_request: PageRequest, metalake: str, *, group: str, user: str) -> FormView:
    return FormView(
        action=f"{page_request.base}/people/members/remove",
        button="Remove",
        fields=hidden_fields(metalake=metalake, group=group, user=user),
        label=f"Remove {user} from {group}",
        is_danger=True,
    )


async def group_links(page_request: PageRequest, metalake: str, *, user: str) -> tuple[Link, ...]:
    """Return links to the visible groups of a user."""
    names = await page_request.ctx.read(RequestScope(metalake), lambda view: groups_of_user(view, user))
    return tuple(Link(name, person_url(page_request, "group", metalake=metalake, name=name)) for name in names[:ROWS])


async def add(page_request: PageRequest) -> Response:
    """Add a user to a group, and redirect to the group's page."""
    metalake, group, user = await _fields_of(page_request)
    await members_add(page_request.ctx, metalake=metalake, group=group, users=(user,))
    return _back(page_request, metalake, group=group, done=f"{user} is a member of {group}")


async def remove(page_request: PageRequest) -> Response:
    """Remove a user from a group, and redirect to the group's page."""
    metalake, group, user = await _fields_of(page_request)
    was_member = await member_remove(page_request.ctx, metalake=metalake, group=group, user=user)
    notice = f"{user} is removed from {group}" if was_member else f"{user} was not a member of {group}"
    return _back(page_request, metalake, group=group, done=notice)


async def _fields_of(page_request: PageRequest) -> tuple[str, str, str]:
    """Parse a form into metalake, group and user. Raises BadRequest if one is missing."""
    fields = await page_request.form()
    metalake, group, user = (fields.get(name, "").strip() for name in ("metalake", "group", "user"))
    if not metalake or not group or not user:
        raise BadRequest("Name the group and the user")
    return metalake, group, user


def _back(page_request: PageRequest, metalake: str, *, group: str, done: str) -> Response:
    url = person_url(page_request, "group", metalake=metalake, name=group)
    return redirect(f"{url}?{urlencode({'done': done})}")


ROUTES = (
    ConsoleRoute(method="POST", path="/people/members/add", handler=add, operation="add-member-from-console"),
    ConsoleRoute(method="POST", path="/people/members/remove", handler=remove, operation="remove-member-from-console"),
)
