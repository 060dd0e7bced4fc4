# SPDX-License-Identifier: Apache-2.0
"""`user secret create | accounts | list | end`: secrets of service accounts.

A secret is printed once, or written to a file that only its owner can read, and nowhere else.
"""

from __future__ import annotations

import shlex

import msgspec
from cyclopts import App

from limnos.cli.catalog.tree import require
from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.failures import StoppedError
from limnos.cli.identity.principals import is_missing_user, note_missing_user
from limnos.cli.identity.tokens import ExpiresIn, SaveFlag, check_free, lifetime_of, note_earlier_end, write_secret
from limnos.cli.lookups import close_name
from limnos.cli.output import show_done, show_fields, show_rows

app = App(name="secret", help="Secrets of service accounts: users that are programs.")


@app.command
def create(
    user: str, /, *, expires_in: ExpiresIn = None, save: SaveFlag = None, common: CommonFlags = DEFAULTS
) -> None:
    """Create a secret of a service account, and print it once. Clients use credential=USER:SECRET.

    Parameters
    ----------
    user
        The service account. At most two secrets are valid at a time: the current one and its successor.
    """
    lifetime_s = lifetime_of(expires_in)
    check_free(save)
    with common.client() as client:
        if is_missing_user(client, user):
            raise _unknown_user(user, metalake=common.metalake)
        secret = client.service_accounts.create_secret(user, expires_in_s=lifetime_s)
    note_earlier_end(
        secret.expires_at, asked_s=lifetime_s, what="secret", again=f"limnos create secret {shlex.quote(user)}"
    )
    fields = msgspec.structs.asdict(secret)
    if save is not None:
        write_secret(save, secret.client_secret)
        fields |= {"client_secret": None, "file": str(save)}
    show_fields(fields, output_format=common.output_format)


def _unknown_user(user: str, *, metalake: str) -> StoppedError:
    """Return the error for a secret of a user that the metalake does not have: it would give no rights there."""
    near = close_name("user", user)
    meant = "" if near is None else f"; did you mean {near}?"
    return StoppedError(
        f"user {user} does not exist in metalake {metalake}, so a secret would give no rights there{meant}",
        code="not-found",
        hint=f"'{shlex.join(['limnos', 'create', 'user', user])}' adds it, then repeat the command",
    )


@app.command
def accounts(*, common: CommonFlags = DEFAULTS) -> None:
    """List the service accounts that have a valid secret, with the latest expiry."""
    with common.client() as client:
        rows = [msgspec.structs.asdict(account) for account in client.service_accounts.list()]
    show_rows(
        rows,
        ["user", "secrets", "newest_at", "ends_at"],
        output_format=common.output_format,
        empty="no service accounts",
    )


@app.command(name="list")
def list_secrets(user: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """List the secrets of a service account, without their values.

    Parameters
    ----------
    user
        The service account's name, as `limnos list accounts` shows it.
    """
    with common.client() as client:
        rows = [msgspec.structs.asdict(secret) for secret in client.service_accounts.list_secrets(user)]
        note_missing_user(client, user, has_rows=bool(rows))
    show_rows(rows, ["id", "created_at", "expires_at", "state"], output_format=common.output_format, empty="no secrets")


@app.command
def end(user: str, secret_id: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Revoke a secret and all of its tokens, from the next request on.

    Parameters
    ----------
    user
        The service account's name, as `limnos list accounts` shows it.
    secret_id
        Its id, as `limnos list secrets` shows it.
    """
    confirm(f"Revoke secret {secret_id} of {user}, and all tokens issued for it?", yes=yes)
    with common.client() as client:
        require(client.service_accounts.end_secret(user, secret_id), "valid secret with id", secret_id)
    show_done(
        f"revoked secret {secret_id} of {user}", {"user": user, "ended": secret_id}, output_format=common.output_format
    )
