# SPDX-License-Identifier: Apache-2.0
"""Requests for access: the button of a refusal's page that sends one, and the page on which owners answer them.

The services make all access decisions.
"""

from __future__ import annotations

from urllib.parse import urlencode

from limnos.http.console.access.objects import grant_url
from limnos.http.console.addresses import ObjectAddress, parse_address
from limnos.http.console.frame import frame_of
from limnos.http.console.page_requests import ConsoleRoute, PageRequest
from limnos.http.console.responses import redirect
from limnos.http.console.sheets import (
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    sheet_response,
)
from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.presets import parse_preset
from limnos.names import display
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.presets.access_requests import (
    OpenRequest,
    access_request_create,
    access_request_decline,
    access_requests_list,
    parse_request_cursor,
    request_cursor_text,
)


def question_of(address: ObjectAddress) -> AccessQuestion:
    """Return the object of an address as that of a question about access."""
    return AccessQuestion(address.metalake, address.kind, (address.catalog, *address.levels))


async def ask(page_request: PageRequest) -> Response:
    """Send a request for a preset on an object, and redirect to the first page."""
    address = parse_address(page_request.request.params)
    preset = parse_preset((await page_request.form()).get("preset", ""))
    await access_request_create(page_request.ctx, question=question_of(address), preset=preset)
    path = display.render((address.catalog, *address.levels))
    done = f"You asked for {preset} on {path}. Who may grant it sees your request on their first page."
    return redirect(f"{page_request.base}/?{urlencode({'metalake': address.metalake, 'done': done})}")


async def requests_page(page_request: PageRequest) -> Response:
    """Show the open requests that the caller may answer, each with a button that grants it and one that declines it."""
    frame = await frame_of(page_request, "Requests for access", section="requests")
    after = parse_request_cursor(page_request.request.query("after"))
    listed = await access_requests_list(page_request.ctx, frame.metalake, after=after)
    following = ""
    if listed.following is not None:
        query = {"metalake": frame.metalake, "after": request_cursor_text(listed.following)}
        following = f"{page_request.base}/requests?{urlencode(query)}"
    columns = (
        SheetColumn(text="User"),
        SheetColumn(text="Asks for"),
        SheetColumn(text="On"),
        SheetColumn(text="When"),
        SheetColumn(text="Grant"),
        SheetColumn(text="Decline"),
    )
    page = SheetPage(
        frame=frame,
        title="Requests for access",
        intro=(
            "Users ask for a preset on an object from the page that refused them. Granting gives the preset with what"
            " it needs above the object, to a role of the user's own. Both answers are in the audit. A request without"
            " an answer ends after thirty days."
        ),
        sheets=(
            Sheet(
                title="",
                columns=columns,
                rows=tuple(_row(page_request, frame.metalake, request=each) for each in listed.requests),
                note="No user asks for access to an object on which you may grant it.",
                following=following,
            ),
        ),
    )
    return sheet_response(page_request, page)


def _row(page_request: PageRequest, metalake: str, *, request: OpenRequest) -> tuple[SheetCell, ...]:
    address = ObjectAddress(request.kind, metalake, request.path[0], request.path[1:])
    path = display.render(request.path)
    fields = {"change": "grant", "user": request.user, "privileges": request.preset}
    about = f"{request.preset} on {path} to {request.user}"
    grant = FormView(
        action=grant_url(page_request, address),
        button="Grant",
        fields=hidden_fields(**fields, request="granted"),
        label=f"Grant {about}",
    )
    decline = FormView(
        action=f"{page_request.base}/requests{address.path.removeprefix('/o')}",
        button="Decline",
        fields=hidden_fields(user=request.user),
        label=f"Decline {about}",
        is_danger=True,
    )
    effect = f"{grant_url(page_request, address)}?{urlencode(fields)}"
    return (
        SheetCell(text=request.user, is_name=True),
        SheetCell(text=request.preset, href=effect),
        SheetCell(text=f"{request.kind.word.replace('_', ' ')} {path}", href=page_request.base + address.path),
        SheetCell(at_ms=request.asked_at),
        SheetCell(text=request.refusal) if request.refusal else SheetCell(form=grant),
        SheetCell(form=decline),
    )


async def decline(page_request: PageRequest) -> Response:
    """Decline a user's request for an object, and redirect to the list."""
    address = parse_address(page_request.request.params)
    user = (await page_request.form()).get("user", "")
    if not user:
        raise BadRequest("The form names no user: open the list of requests again")
    existed = await access_request_decline(page_request.ctx, question=question_of(address), user=user)
    done = f"The request of {user} is declined" if existed else f"{user} has no such request any more"
    return redirect(f"{page_request.base}/requests?{urlencode({'metalake': address.metalake, 'done': done})}")


ROUTES = (
    ConsoleRoute(method="POST", path="/ask/{kind}/{path...}", handler=ask, operation="ask-for-access"),
    ConsoleRoute(
        method="GET",
        path="/requests",
        handler=requests_page,
        operation="access-requests-page",
        query=("metalake", "after", "done"),
    ),
    ConsoleRoute(method="POST", path="/requests/{kind}/{path...}", handler=decline, operation="decline-from-console"),
)
