# SPDX-License-Identifier: Apache-2.0
"""The list of service accounts: their roles, the number and expiry of their secrets, and the user who added each to the
metalake.

Has no business rules: the services show accounts to service admins, and users of the metalake to callers who may list
them.
"""

from __future__ import annotations

from typing import Final

from limnos.http.response import Response
from limnos.model.kinds import Kind
from limnos.rooms.console.http.addresses import segment_of
from limnos.rooms.console.http.frame import frame_of
from limnos.rooms.console.http.operation.sections import operation_tabs
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.sheets import Sheet, SheetCell, SheetColumn, SheetPage, sheet_response
from limnos.rooms.console.http.tabs import Chip
from limnos.services.identity.service_accounts import accounts_list
from limnos.services.identity.users import RoleHolder, holders_list
from limnos.services.request.request_scope import RequestScope
from limnos.store.identity.tokens import AccountSecrets

SHOWN: Final = 500
ROLES_SHOWN: Final = 3
"""The maximum number of roles that one row names."""


async def accounts_page(page_request: PageRequest) -> Response:
    """Show the service accounts with a valid secret."""
    accounts = await accounts_list(page_request.ctx)
    frame = await frame_of(page_request, "Service accounts", section="operations")
    holders = await page_request.ctx.read(RequestScope(frame.metalake), lambda view: holders_list(view, Kind.USER))
    users = {each.principal.name: each for each in holders}
    columns = (
        SheetColumn(text="User"),
        SheetColumn(text="In this metalake"),
        SheetColumn(text="Roles"),
        SheetColumn(text="Valid secrets", is_number=True),
        SheetColumn(text="Newest", hides=True),
        SheetColumn(text="The last one ends"),
        SheetColumn(text="Secrets", hides=True),
    )
    rows = tuple(
        _row(page_request, each, metalake=frame.metalake, user=users.get(each.user)) for each in accounts[:SHOWN]
    )
    more = f"The first {SHOWN} are shown; limnos list accounts lists all." if len(accounts) > SHOWN else ""
    page = SheetPage(
        frame=frame,
        title="Service accounts",
        intro=(
            "Users that are programs: they sign in with a secret. The page of each has its roles and secrets, and"
            " disables it. Create one on a user's page."
        ),
        tabs=operation_tabs(page_request, frame.metalake, current="accounts"),
        sheets=(Sheet(title="", columns=columns, rows=rows, note="No user has a valid secret.", more=more),),
    )
    return sheet_response(page_request, page)


def _row(
    page_request: PageRequest, account: AccountSecrets, *, metalake: str, user: RoleHolder | None
) -> tuple[SheetCell, ...]:
    path = f"{segment_of(metalake)}/{segment_of(account.user)}"
    secrets = f"{page_request.base}/secrets/{path}"
    state, own, roles = SheetCell(text="not a user of it"), secrets, ""
    if user is not None:
        chip = Chip("enabled", "ok", "check") if user.principal.enabled else Chip("disabled", "warn", "alert")
        state = SheetCell(chips=(chip,), small=f"added by {user.principal.created_by}")
        own, roles = f"{page_request.base}/people/user/{path}", _roles_text(user.roles)
    return (
        SheetCell(text=account.user, href=own, is_name=True),
        state,
        SheetCell(text=roles),
        SheetCell(text=str(account.secrets)),
        SheetCell(at_ms=account.newest_at),
        SheetCell(text="never") if account.ends_at is None else SheetCell(moment_ms=account.ends_at),
        SheetCell(text="show", href=secrets),
    )


def _roles_text(roles: tuple[str, ...]) -> str:
    more = len(roles) - ROLES_SHOWN
    return ", ".join(roles[:ROLES_SHOWN]) + (f" and {more} more" if more > 0 else "") or "none"


ROUTES = (
    ConsoleRoute(method="GET", path="/accounts", handler=accounts_page, operation="accounts-page", query=("metalake",)),
)
