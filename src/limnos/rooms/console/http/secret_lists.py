# SPDX-License-Identifier: Apache-2.0
"""Lists of secrets and tokens: states, expiries, and the list of the secrets of a service account.

No list contains values of secrets.
"""

from __future__ import annotations

from limnos.model.entities import Token
from limnos.model.principals import CredentialState
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.sheets import FormView, Sheet, SheetCell, SheetColumn, hidden_fields
from limnos.rooms.console.http.tabs import Chip
from limnos.services.identity.credential_states import ListedCredential
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


def _row(page_request: PageRequest, listed: ListedCredential, *, metalake: str, user: str) -> tuple[SheetCell, ...]:
    secret, state = listed.token, state_chip(listed.state)
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
        SheetCell(form=end if is_revocable(listed.state) else None),
    )


def state_chip(state: CredentialState) -> Chip:
    """Return the state of a token or secret for display."""
    return Chip(state.value, "ok", "check") if state is CredentialState.VALID else Chip(state.value)


def is_revocable(state: CredentialState) -> bool:
    """Return whether a token or secret can still be revoked: it is not over for good."""
    return state not in {CredentialState.REVOKED, CredentialState.EXPIRED}


def end_cell(token: Token) -> SheetCell:
    """Return the table cell with the expiry of a token or secret."""
    return SheetCell(text="never") if token.expires_at is None else SheetCell(moment_ms=token.expires_at)
