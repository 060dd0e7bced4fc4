# SPDX-License-Identifier: Apache-2.0
"""Requests for access: the form of a refusal's page that sends one, and the page on which owners answer them, and users
read the answers to their own.

The services make all access decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.presets import parse_preset
from limnos.names import display
from limnos.rooms.console.http.access.objects import grant_url
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address
from limnos.rooms.console.http.frame import frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import (
    FormInput,
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    sheet_response,
    with_values,
)
from limnos.rooms.console.http.tabs import Chip
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.presets.access_requests import (
    OpenRequest,
    access_request_create,
    access_request_decline,
    access_requests_list,
    parse_request_cursor,
    request_cursor_text,
)
from limnos.services.identity.presets.own_access_requests import (
    OwnRequest,
    access_request_withdraw,
    own_access_requests,
)
from limnos.services.identity.presets.request_texts import TEXT_MAX


def question_of(address: ObjectAddress) -> AccessQuestion:
    """Return the object of an address as that of a question about access."""
    return AccessQuestion(address.metalake, address.kind, (address.catalog, *address.levels))


def reason_input() -> FormInput:
    """Return the field for the reason of a request."""
    return FormInput(name="reason", label=f"Why you need it (optional, at most {TEXT_MAX} characters)", rows=3)


async def ask(page_request: PageRequest) -> Response:
    """Send a request for a preset on an object, and redirect to the first page."""
    address = parse_address(page_request.request.params)
    fields = await page_request.form()
    preset = parse_preset(fields.get("preset", ""))
    form = FormView(
        action=page_request.own_path,
        button="Ask for access",
        fields=hidden_fields(preset=preset),
        inputs=(reason_input(),),
        title="Ask for access",
    )
    page_request.retry = with_values(form, fields)
    await access_request_create(
        page_request.ctx, question=question_of(address), preset=preset, reason=fields.get("reason", "")
    )
    path = display.render((address.catalog, *address.levels))
    notice = f"You asked for {preset} on {path}. Who may grant it sees your request on their first page."
    return redirect(f"{page_request.base}/?{urlencode({'metalake': address.metalake, 'done': notice})}")


async def requests_page(page_request: PageRequest) -> Response:
    """Show the open requests that the caller may answer, each with a button that grants it and one that declines it;
    and the caller's own requests with their answers, the open ones with a button that withdraws them.
    """
    frame = await frame_of(page_request, "Requests for access", section="requests")
    after = parse_request_cursor(page_request.request.query("after"))
    request_page = await access_requests_list(page_request.ctx, frame.metalake, after=after)
    following = ""
    if request_page.following is not None:
        query = {"metalake": frame.metalake, "after": request_cursor_text(request_page.following)}
        following = f"{page_request.base}/requests?{urlencode(query)}"
    columns = (
        SheetColumn(text="User"),
        SheetColumn(text="Asks for"),
        SheetColumn(text="On"),
        SheetColumn(text="Reason", is_quoted=True),
        SheetColumn(text="When"),
        SheetColumn(text="Grant"),
        SheetColumn(text="Decline"),
    )
    own_requests = (
        await own_access_requests(page_request.ctx, frame.metalake) if not page_request.request.query("after") else ()
    )
    page = SheetPage(
        frame=frame,
        title="Requests for access",
        intro=(
            "Users ask for a preset on an object from the page that refused them. Granting gives the preset with what"
            " it needs above the object, to a role of the user's own. Both answers are in the audit, and the user sees"
            " them with your name, and with your note if you decline. A request without an answer ends after thirty"
            " days."
        ),
        sheets=(
            Sheet(
                title="",
                columns=columns,
                rows=tuple(_row(page_request, frame.metalake, request=each) for each in request_page.requests),
                note="No user asks for access to an object on which you may grant it.",
                following=following,
            ),
            *([_own_sheet(page_request, frame.metalake, requests=own_requests)] if own_requests else ()),
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
        inputs=(FormInput(name="note", label=f"Note (optional, at most {TEXT_MAX} characters)"),),
        label=f"Decline {about}",
        is_danger=True,
        is_inline=True,
    )
    effect = f"{grant_url(page_request, address)}?{urlencode(fields)}"
    return (
        SheetCell(text=request.user, is_name=True),
        SheetCell(text=request.preset, href=effect),
        SheetCell(text=f"{request.kind.word.replace('_', ' ')} {path}", href=page_request.base + address.path),
        SheetCell(text=request.reason),
        SheetCell(at_ms=request.asked_at),
        SheetCell(text=request.refusal) if request.refusal else SheetCell(form=grant),
        SheetCell(form=decline),
    )


def _own_sheet(page_request: PageRequest, metalake: str, *, requests: Sequence[OwnRequest]) -> Sheet:
    columns = (
        SheetColumn(text="State"),
        SheetColumn(text="You asked for"),
        SheetColumn(text="On"),
        SheetColumn(text="When"),
        SheetColumn(text="Your reason", is_quoted=True, hides=True),
        SheetColumn(text="Answered by"),
        SheetColumn(text="Answered"),
        SheetColumn(text="Note", is_quoted=True),
        SheetColumn(text="Withdraw"),
    )
    return Sheet(
        title="Your own requests",
        columns=columns,
        rows=tuple(_own_row(page_request, metalake, own=each) for each in requests),
        more="Answers are kept for thirty days.",
    )


def _own_row(page_request: PageRequest, metalake: str, *, own: OwnRequest) -> tuple[SheetCell, ...]:
    request, answer = own
    address = ObjectAddress(request.kind, metalake, request.path[0], request.path[1:])
    path = display.render(request.path)
    asked_for = (
        SheetCell(text=request.preset),
        SheetCell(text=f"{request.kind.word.replace('_', ' ')} {path}", href=page_request.base + address.path),
        SheetCell(at_ms=request.asked_at),
        SheetCell(text=request.reason),
    )
    if answer is not None:
        return (
            SheetCell(chips=(Chip(answer.answer, "ok" if answer.answer == "granted" else "warn"),)),
            *asked_for,
            SheetCell(text=answer.answered_by),
            SheetCell(at_ms=answer.answered_at),
            SheetCell(text=answer.note),
            SheetCell(),
        )
    form = FormView(
        action=f"{page_request.base}/withdraw{address.path.removeprefix('/o')}",
        button="Withdraw",
        label=f"Withdraw the request for {request.preset} on {path}",
    )
    return (
        SheetCell(chips=(Chip("open", "info"),)),
        *asked_for,
        SheetCell(),
        SheetCell(),
        SheetCell(),
        SheetCell(form=form),
    )


async def withdraw(page_request: PageRequest) -> Response:
    """Withdraw the caller's request for an object, and redirect to the list."""
    address = parse_address(page_request.request.params)
    await access_request_withdraw(page_request.ctx, question=question_of(address))
    notice = f"Your request for {display.render((address.catalog, *address.levels))} is withdrawn"
    return redirect(f"{page_request.base}/requests?{urlencode({'metalake': address.metalake, 'done': notice})}")


async def decline(page_request: PageRequest) -> Response:
    """Decline a user's request for an object, and redirect to the list."""
    address = parse_address(page_request.request.params)
    fields = await page_request.form()
    user = fields.get("user", "")
    if not user:
        raise BadRequest("The form names no user: open the list of requests again")
    form = FormView(
        action=page_request.own_path,
        button="Decline",
        fields=hidden_fields(user=user),
        inputs=(FormInput(name="note", label=f"Note (optional, at most {TEXT_MAX} characters)", rows=3),),
        title=f"Decline the request of {user}",
        is_danger=True,
    )
    page_request.retry = with_values(form, fields)
    note = fields.get("note", "")
    existed = await access_request_decline(page_request.ctx, question=question_of(address), user=user, note=note)
    notice = f"The request of {user} is declined" if existed else f"{user} has no such request any more"
    return redirect(f"{page_request.base}/requests?{urlencode({'metalake': address.metalake, 'done': notice})}")


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
    ConsoleRoute(method="POST", path="/withdraw/{kind}/{path...}", handler=withdraw, operation="withdraw-from-console"),
)
