# SPDX-License-Identifier: Apache-2.0
"""Acting as another user: tokens of that user, created for one command and revoked when the command ends.

Only service admins may create them. The server records the creation with the admin, and the command's requests with the
other user and the id of the token.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.cli.errors import StoppedError
from limnos.client.errors import ClientError, DeniedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.client import Client

LIFETIME_S: Final = 900
"""The lifetime of a token, for a command that is killed before it revokes it."""


class _ActingToken(NamedTuple):
    """A token that is to be revoked, and how to open a client with the admin's own token."""

    token_id: int | str
    open_admin: Callable[[], Client]


_tokens: Final[list[_ActingToken]] = []


def create_token(user: str, *, lifetime_s: int, open_admin: Callable[[], Client]) -> str:
    """Create a token of `user` for the running command. Returns its secret.

    Raises DeniedError, with the way out, if the caller is not a service admin, and StoppedError for a disabled user.
    """
    with open_admin() as client:
        try:
            token = client.tokens.create(user=user, name="limnos --as", expires_in_s=lifetime_s)
        except DeniedError as error:
            if f"User {user} is disabled" in str(error):
                enable = shlex.join(["limnos", "user", "enable", user])
                raise StoppedError(f"user {user} is disabled", code="denied", hint=f"'{enable}'") from error
            raise DeniedError(
                f"--as {user} needs a service admin: {error}", status=error.status, code=error.code
            ) from error
    _tokens.append(_ActingToken(token.id, open_admin))
    return token.token


def revoke_tokens() -> None:
    """Revoke the tokens of the command. A server that does not answer lets them expire."""
    while _tokens:
        token = _tokens.pop()
        try:
            with token.open_admin() as client:
                client.tokens.revoke(token.token_id)
        except ClientError:
            continue
