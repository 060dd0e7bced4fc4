# SPDX-License-Identifier: Apache-2.0
"""The user's own API tokens: a list, a form that creates one, and buttons that revoke them.

Has no business rules. The value of a new token is in a single response, which is never compressed or stored.
"""

from __future__ import annotations

from typing import Final

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.principals import CredentialState
from limnos.rooms.console.http.frame import Link, frame_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.secret_lists import end_cell, is_revocable, state_chip
from limnos.rooms.console.http.sheets import (
    Choice,
    CodeBlock,
    FormInput,
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    number_field,
    sheet_response,
)
from limnos.rooms.console.http.tabs import Fact
from limnos.services.identity.credential_states import ListedCredential
from limnos.services.identity.tokens import STATEMENT_PREFIX, token_create, token_revoke, tokens_visible

DAY_S: Final = 86_400
LIVES: Final = (("30", "30 days"), ("7", "7 days"), ("1", "1 day"), ("365", "1 year"), ("", "until it is revoked"))
"""The lifetimes to choose from for a new token or secret: days, and their labels."""
NAME_MAX: Final = 100


async def tokens_page(page_request: PageRequest) -> Response:
    """Show the user's own tokens without their values, and a form to create one.

    Invalid tokens of statements are omitted: the server creates one for each statement that reads data.
    """
    tokens = [
        each
        for each in await tokens_visible(page_request.ctx, None)
        if each.state is CredentialState.VALID or not each.token.name.startswith(STATEMENT_PREFIX)
    ]
    frame = await frame_of(page_request, "Your API tokens", section="sessions")
    columns = (
        SheetColumn(text="Name"),
        SheetColumn(text="Created", hides=True),
        SheetColumn(text="Ends", hides=True),
        SheetColumn(text="State"),
        SheetColumn(text="Action"),
    )
    rows = tuple(_row(page_request, each) for each in reversed(tokens))
    form = FormView(
        action=f"{page_request.base}/tokens/create",
        button="Create a token",
        fields=(),
        inputs=(FormInput(name="name", label="Purpose", is_required=True), life_input()),
        title="Create a token",
    )
    page = SheetPage(
        frame=frame,
        title="Your API tokens",
        intro=(
            "Programs sign in as you with a token. The server does not store a token's text: it is shown once, at its"
            " creation."
        ),
        tabs=(
            Link("Sessions", f"{page_request.base}/sessions"),
            Link("API tokens", f"{page_request.base}/tokens", is_current=True),
        ),
        sheets=(Sheet(title="", columns=columns, rows=rows, note="You have no API token."),),
        forms=(form,),
    )
    return sheet_response(page_request, page)


def life_input() -> FormInput:
    """Return the form input for the lifetime of a token or secret."""
    return FormInput(
        name="days",
        label="Valid for",
        choices=tuple(Choice(days, f"for {words}" if days else words) for days, words in LIVES),
    )


def life_of(fields: dict[str, str]) -> int | None:
    """Return the chosen lifetime in seconds; None for no expiry. Raises BadRequest for a value that is not among the
    choices.
    """
    days = fields.get("days", "-")
    if days not in dict(LIVES):
        raise BadRequest("Choose its lifetime")
    return int(days) * DAY_S if days else None


def _row(page_request: PageRequest, listed: ListedCredential) -> tuple[SheetCell, ...]:
    token = listed.token
    revoke = FormView(
        action=f"{page_request.base}/tokens/revoke",
        button="Revoke",
        fields=hidden_fields(id=str(token.id)),
        label=f"Revoke {token.name}",
        is_danger=True,
    )
    return (
        SheetCell(text=token.name, is_name=True),
        SheetCell(at_ms=token.created_at),
        end_cell(token),
        SheetCell(chips=(state_chip(listed.state),)),
        SheetCell(form=revoke if is_revocable(listed.state) else None),
    )


async def create(page_request: PageRequest) -> Response:
    """Create a token for the session's user, and show its value, which no later page shows."""
    fields = await page_request.form()
    name = fields.get("name", "").strip()
    if not name or len(name) > NAME_MAX:
        raise BadRequest(f"Give the token's purpose, in at most {NAME_MAX} characters")
    token, text = await token_create(page_request.ctx, user=None, name=name, expires_in_s=life_of(fields))
    frame = await frame_of(page_request, "Your new token", section="sessions")
    page = SheetPage(
        frame=frame,
        title="Your new token",
        icon="key",
        intro="Copy it now: it is shown only once.",
        crumbs=(Link("API tokens", f"{page_request.base}/tokens"),),
        facts=(Fact(label="Name", text=token.name), Fact(label="Ends", at_ms=token.expires_at)),
        blocks=(CodeBlock("", text, "secret"),),
    )
    return sheet_response(page_request, page, is_secret=True)


async def revoke(page_request: PageRequest) -> Response:
    """Revoke a token, and redirect to the list."""
    fields = await page_request.form()
    was_valid = await token_revoke(page_request.ctx, token_id=number_field(fields.get("id"), what="A token's id"))
    notice = "The+token+is+revoked" if was_valid else "The+token+was+no+longer+valid"
    return redirect(f"{page_request.base}/tokens?done={notice}")


ROUTES = (
    ConsoleRoute(method="GET", path="/tokens", handler=tokens_page, operation="tokens-page", query=("done",)),
    ConsoleRoute(method="POST", path="/tokens/create", handler=create, operation="create-token-from-console"),
    ConsoleRoute(method="POST", path="/tokens/revoke", handler=revoke, operation="revoke-token-from-console"),
)
