# SPDX-License-Identifier: Apache-2.0
"""The secrets of one service account: a list, a form that creates one, buttons that revoke them, and a form that adds
the account to the metalake.

Only service admins manage secrets. The value of a new secret is in a single response, which is never compressed or
stored.
"""

from __future__ import annotations

from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.rooms.console.http.addresses import part_of, segment_of
from limnos.rooms.console.http.credentials.tokens import life_input, life_of
from limnos.rooms.console.http.frame import Link, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.secret_lists import secrets_sheet
from limnos.rooms.console.http.sheets import (
    CodeBlock,
    FormView,
    SheetPage,
    hidden_fields,
    number_field,
    sheet_response,
)
from limnos.rooms.console.http.tabs import Fact
from limnos.services.identity.service_accounts import secret_create, secret_end
from limnos.services.identity.users import may_create, principal_load
from limnos.services.request.request_scope import RequestScope


async def secrets_page(page_request: PageRequest) -> Response:
    """Show a user's secrets without their values, and forms to create one and to add the user to the metalake."""
    metalake, user = (part_of(each) for each in page_request.request.params)
    sheet = await secrets_sheet(page_request, metalake, user=user)
    frame = await frame_of(page_request, f"Secrets of {user}", metalake=metalake, section="people")
    is_user, may_add = await _membership(page_request, metalake, user=user)
    form = FormView(
        action=_address(page_request, metalake, user=user),
        button="Create a secret",
        fields=(),
        inputs=(life_input(),),
        title="Create a secret",
    )
    joining = FormView(
        action=f"{page_request.base}/people/create",
        button=f"Add {user}",
        fields=hidden_fields(metalake=metalake, kind="user", name=user),
        title=f"Add the service account to {metalake}",
    )
    page = SheetPage(
        frame=frame,
        title=f"Secrets of {user}",
        intro=(
            "A user with a secret is a service account: a program that signs in with its name and secret instead of a"
            " password. Two secrets may be valid at once, so that one can replace the other."
        ),
        crumbs=(_user_link(page_request, metalake, user=user),) if is_user else (),
        sheets=(sheet,),
        forms=(form, joining) if may_add else (form,),
        warning="" if is_user else f"{user} is not a user of the metalake {metalake}, and has no role there.",
    )
    return sheet_response(page_request, page)


async def _membership(page_request: PageRequest, metalake: str, *, user: str) -> tuple[bool, bool]:
    """Return whether a user belongs to the metalake, and if not, whether the caller may add it."""
    scope = RequestScope(metalake)
    try:
        await page_request.ctx.read(scope, lambda view: principal_load(view, Kind.USER, user))
    except NotFound:
        return False, await page_request.ctx.read(scope, lambda view: may_create(view, Kind.USER))
    except PermissionDenied:  # the caller may not know whether the user belongs to it
        return True, False
    return True, False


def _address(page_request: PageRequest, metalake: str, *, user: str) -> str:
    return f"{page_request.base}/secrets/{segment_of(metalake)}/{segment_of(user)}"


def _user_link(page_request: PageRequest, metalake: str, *, user: str) -> Link:
    return Link(user, f"{page_request.base}/people/user/{segment_of(metalake)}/{segment_of(user)}")


async def create(page_request: PageRequest) -> Response:
    """Create a secret, and show its value, which no later page shows."""
    metalake, user = (part_of(each) for each in page_request.request.params)
    life_s = life_of(await page_request.form())
    secret, text = await secret_create(page_request.ctx, user=user, expires_in_s=life_s)
    frame = await frame_of(page_request, f"New secret of {user}", metalake=metalake, section="people")
    page = SheetPage(
        frame=frame,
        title=f"New secret of {user}",
        icon="key",
        intro="Copy it now: it is shown only once.",
        crumbs=(
            _user_link(page_request, metalake, user=user),
            Link("Secrets", _address(page_request, metalake, user=user)),
        ),
        facts=(Fact(label="Client", text=user), Fact(label="Secret", text=str(secret.id))),
        blocks=(CodeBlock("", text, "secret"),),
    )
    return sheet_response(page_request, page, is_secret=True)


async def end(page_request: PageRequest) -> Response:
    """Revoke a secret with all tokens issued for it, and redirect to the list."""
    fields = await page_request.form()
    metalake, user = fields.get("metalake", ""), fields.get("user", "")
    number = number_field(fields.get("id"), what="A secret's id")
    was_valid = await secret_end(page_request.ctx, user=user, secret_id=number)
    notice = f"Secret {number} {'has ended' if was_valid else 'was no longer valid'}"
    return redirect(f"{_address(page_request, metalake, user=user)}?{urlencode({'done': notice})}")


ROUTES = (
    ConsoleRoute(
        method="GET", path="/secrets/{m}/{name}", handler=secrets_page, operation="secrets-page", query=("done",)
    ),
    ConsoleRoute(method="POST", path="/secrets/{m}/{name}", handler=create, operation="create-secret-from-console"),
    ConsoleRoute(method="POST", path="/secrets/end", handler=end, operation="end-secret-from-console"),
)
