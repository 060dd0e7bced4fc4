# SPDX-License-Identifier: Apache-2.0
"""Lists of secrets and tokens: states, expiries, and the list of the secrets of a service account.

No list contains values of secrets.
"""

from __future__ import annotations

from limnos.model.entities import Token
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.sheets import FormView, Sheet, SheetCell, SheetColumn, hidden_fields
from limnos.rooms.console.http.tabs import Chip
from limnos.services.identity.service_accounts import secrets_list


async def secrets_sheet(page_request: PageRequest, metalake: str, *, user: str, title: str = "") -> Sheet:
    """Return the list of a user's secrets without their values, each with a button that revokes it.

    Raises PermissionDenied if the caller may not manage secrets.
    """
    secrets = await secrets_list(page_request.ctx, user=user)
    columns = (
        SheetColumn(text="Secret"),
        SheetColumn(text="Created"),
        SheetColumn(text="Ends", hides=True),
        SheetColumn(text="State"),
        SheetColumn(text="Action"),
    )
    rows = tuple(_row(page_request, each, metalake=metalake, user=user) for each in reversed(secrets))
    return Sheet(title=title, columns=columns, rows=rows, note="This user has no secret.")


def _row(page_request: PageRequest, secret: Token, *, metalake: str, user: str) -> tuple[SheetCell, ...]:
    state = state_of(secret, page_request.now_ms)
    end = FormView(
        action=f"{page_request.base}/secrets/end",
        button="End",
        fields=hidden_fields(metalake=metalake, user=user, id=str(secret.id)),
        label=f"End secret {secret.id}",
        is_danger=True,
    )
    return (
        SheetCell(text=str(secret.id), is_name=True),
        SheetCell(at_ms=secret.created_at),
        end_cell(secret),
        SheetCell(chips=(state,)),
        SheetCell(form=end if state.look == "ok" else None),
    )


def state_of(token: Token, now_ms: int) -> Chip:
    """Return the state of a token or secret for display: `valid`, `expired` or `revoked`."""
    if token.revoked:
        return Chip("revoked")
    return Chip("expired") if token.is_over(now_ms) else Chip("valid", "ok", "check")


def end_cell(token: Token) -> SheetCell:
    """Return the table cell with the expiry of a token or secret."""
    return SheetCell(text="never") if token.expires_at is None else SheetCell(moment_ms=token.expires_at)
