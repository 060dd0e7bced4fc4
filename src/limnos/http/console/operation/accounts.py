"""The list of service accounts: the number and expiry of their secrets, and the user who added each to the metalake.

May import `model`, `services`, `store` for types, and the console's shared modules. Has no business rules: the services
show accounts to service admins, and users of the metalake to callers who may list them.
"""

from __future__ import annotations

from typing import Final

from limnos.http.console.addresses import segment_of
from limnos.http.console.frame import frame_of
from limnos.http.console.operation.sections import operation_tabs
from limnos.http.console.page_requests import ConsoleRoute, PageRequest
from limnos.http.console.sheets import Sheet, SheetCell, SheetColumn, SheetPage, sheet_response
from limnos.http.console.tabs import Chip
from limnos.http.response import Response
from limnos.model.entities import Principal
from limnos.model.kinds import Kind
from limnos.services.identity.service_accounts import accounts_list
from limnos.services.identity.users import principals_list
from limnos.services.request.request_scope import RequestScope
from limnos.store.identity.tokens import AccountSecrets

SHOWN: Final = 500


async def accounts_page(page_request: PageRequest) -> Response:
    """Show the service accounts with a valid secret."""
    accounts = await accounts_list(page_request.ctx)
    frame = await frame_of(page_request, "Service accounts", section="operations")
    view = await page_request.ctx.read(RequestScope(frame.metalake), lambda view: principals_list(view, Kind.USER))
    users = {each.name: each for each in view}
    columns = (
        SheetColumn("User"), SheetColumn("In this metalake"), SheetColumn("Valid secrets", is_number=True), SheetColumn("Newest", hides=True),
        SheetColumn("The last one ends"), SheetColumn("Secrets", hides=True),
    )  # fmt: skip
    rows = tuple(
        _row(page_request, each, metalake=frame.metalake, user=users.get(each.user)) for each in accounts[:SHOWN]
    )
    more = f"The first {SHOWN} are shown; limnos user secret accounts lists all." if len(accounts) > SHOWN else ""
    page = SheetPage(
        frame, "Service accounts", intro="Users that are programs: they sign in with a secret. Create one on a user's page.",
        tabs=operation_tabs(page_request, frame.metalake, current="accounts"),
        sheets=(Sheet("", columns, rows, "No user has a valid secret.", more),),
    )  # fmt: skip
    return sheet_response(page_request, page)


def _row(
    page_request: PageRequest, account: AccountSecrets, *, metalake: str, user: Principal | None
) -> tuple[SheetCell, ...]:
    path = f"{segment_of(metalake)}/{segment_of(account.user)}"
    state = SheetCell("not a user of it")
    if user is not None:
        chip = Chip("enabled", "ok", "check") if user.enabled else Chip("disabled", "warn", "alert")
        state = SheetCell(chips=(chip,), small=f"added by {user.created_by}")
    return (
        SheetCell(account.user, "" if user is None else f"{page_request.base}/people/user/{path}", is_name=True), state,
        SheetCell(str(account.secrets)), SheetCell(at_ms=account.newest_at),
        SheetCell("never") if account.ends_at is None else SheetCell(moment_ms=account.ends_at),
        SheetCell("show", f"{page_request.base}/secrets/{path}"),
    )  # fmt: skip


ROUTES = (ConsoleRoute("GET", "/accounts", accounts_page, "accounts-page", ("metalake",)),)
