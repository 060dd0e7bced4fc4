# SPDX-License-Identifier: Apache-2.0
"""`token create | list | revoke`: API tokens.

A secret is printed once, or written to a file that only its owner can read, and nowhere else.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from limnos.cli.catalog.tree import require
from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.failures import UsageError
from limnos.cli.identity.principals import note_missing_user
from limnos.cli.output import show_done, show_fields, show_rows

app = App(name="token")

_DURATION = re.compile(r"(\d+)([smhdw])")
_CLOCKS_S = 300
"""The difference between this machine's clock and the server's that is no earlier end, in seconds."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

ForUserFlag = Annotated[
    str | None, Parameter(name="--for", help="Another user; needs the privilege to manage their tokens.")
]
ExpiresIn = Annotated[
    str | None,
    Parameter(
        help="Lifetime, as `12h`, `30d` or `8w`; at the latest until the end of the session or token that creates it."
    ),
]
SaveFlag = Annotated[Path | None, Parameter(help="Write the secret to a new file of mode 600, and do not print it.")]


@app.command
def create(
    *,
    for_: ForUserFlag = None,
    name: Annotated[str | None, Parameter(help="Purpose of the token, shown in lists.")] = None,
    expires_in: ExpiresIn = None,
    save: SaveFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Create an API token, and print its secret once.

    It ends at the latest with the session or token that creates it.
    """
    lifetime_s = lifetime_of(expires_in)
    check_free(save)
    with common.client() as client:
        token = client.tokens.create(user=for_, name=name, expires_in_s=lifetime_s)
    note_earlier_end(token.expires_at, asked_s=lifetime_s, again=f"limnos create token --for {shlex.quote(token.user)}")
    fields = msgspec.structs.asdict(token)
    if save is not None:
        write_secret(save, token.token)
        fields["token"] = None
        fields["file"] = str(save)
    show_fields(fields, output_format=common.output_format)


@app.command(name="list")
def list_tokens(
    *,
    for_: ForUserFlag = None,
    everyone: Annotated[
        bool, Parameter(name="--all", negative="", help="Tokens of all users; only for service admins.")
    ] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List your API tokens, without their secrets; with `--all` those of all users."""
    if for_ is not None and everyone:
        raise UsageError("--for and --all select different tokens", hint="keep one of them")
    with common.client() as client:
        rows = [msgspec.structs.asdict(token) for token in client.tokens.list(user=for_, everyone=everyone)]
        note_missing_user(client, for_, has_rows=bool(rows))
    if for_ is None and not everyone and common.output_format == "table":
        print(
            "note: these are your own; --all lists those of all users, --for USER another user's, to service admins",
            file=sys.stderr,
        )
    columns = ["id", "user", "name", "created_at", "expires_at", "state", "trust"]
    show_rows(rows, columns, output_format=common.output_format, empty="no tokens")


@app.command
def revoke(token_id: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Revoke a token, from the next request on.

    Parameters
    ----------
    token_id
        Its id, as `limnos list tokens` shows it.
    """
    confirm(f"Revoke token {token_id}?", yes=yes)
    with common.client() as client:
        require(client.tokens.revoke(token_id), "valid token with id", token_id)
    show_done(f"revoked token {token_id}", {"revoked": token_id}, output_format=common.output_format)


def lifetime_of(expires_in: str | None) -> int | None:
    """Parse the lifetime of a secret to seconds; None is unlimited. Raises UsageError for a malformed duration."""
    return None if expires_in is None else seconds_of(expires_in)


def note_earlier_end(
    expires_at: object, *, asked_s: int | None, what: str = "token", again: str = "limnos create token --for USER"
) -> float | None:
    """Print a note if a token or secret ends earlier than requested, as one that a session creates does. `asked_s` is
    the requested lifetime, None for unlimited; `again` is the command for another one. Returns the seconds until the
    end; None if it never ends.
    """
    if not isinstance(expires_at, str):
        return None
    lifetime_s = datetime.fromisoformat(expires_at).timestamp() - time.time()
    if asked_s is None or lifetime_s < asked_s - _CLOCKS_S:
        print(
            f"note: the {what} ends at {expires_at}, with the session or token that created it"
            f"{'' if asked_s is None else ', and not as late as you asked'};"
            f" an administrator can create one that ends later with a token without an end, such as admin.token in the"
            f" server's data directory: '{again} --token-file FILE'",
            file=sys.stderr,
        )
    return lifetime_s


def check_free(save: Path | None) -> None:
    """Raise UsageError if the file exists, before a secret is created that would be written to it."""
    if save is not None and save.exists():
        raise UsageError(f"the file '{save}' exists already", hint="choose another name, or remove it first")


def seconds_of(text: str) -> int:
    """Parse a duration such as `90s`, `30m`, `12h`, `30d` or `8w` to seconds. Raises UsageError for another form."""
    match = _DURATION.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise UsageError(f"'{text}' is not a duration", hint="write a number and s, m, h, d or w, as 12h or 30d")
    return int(match[1]) * _SECONDS[match[2]]


def write_secret(file: Path, secret: str) -> None:
    """Write a secret to a new file of mode 600. Raises FileExistsError if the file exists."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(f"{secret}\n")
