# SPDX-License-Identifier: Apache-2.0
"""`user add | remove | list | describe | disable | enable | password | secret`: users of a metalake."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Final

from cyclopts import App

from limnos.cli.catalog.tree import require
from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.identity import secrets
from limnos.cli.identity.login import ask_password
from limnos.cli.identity.principals import note_own_role, require_existing
from limnos.cli.output import Row, show_done, show_fields, show_rows, visible
from limnos.client import ArgumentError, ClientError, NotFoundError
from limnos.client.values import User
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

_NAMED_MAX: Final = 3
"""The number of owned objects that a removal names."""
app = App(name="user")
app.command(secrets.app)


@app.command
def add(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Add a user to the metalake.

    Parameters
    ----------
    name
        The user's name, as in their credentials.
    """
    with common.client() as client:
        user = client.users.add(name)
    show_done(f"added user {user.name}", _row(user), output_format=common.output_format)


@app.command
def remove(name: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Remove a user from the metalake. Tables and other objects that the user owns remain without an owner; owners of
    catalogs and namespaces are refused until another owner is set.

    Parameters
    ----------
    name
        The user's name, as `limnos list users` shows it.
    """
    with common.client() as client:
        if not yes:
            require_existing(client.users.get, name)
        _note_owned(client, name)
        confirm(f"Remove user {name} from metalake {common.metalake}?", yes=yes)
        require(client.users.remove(name), "user", name)
        note_own_role(client, f"user:{name}")
    show_done(f"removed user {name}", {"removed": name}, output_format=common.output_format)


@app.command(name="list")
def list_users(*, common: CommonFlags = DEFAULTS) -> None:
    """List the users of the metalake with their roles."""
    with common.client() as client:
        rows = [_row(user) for user in client.users.list()]
    show_rows(rows, ["name", "enabled", "roles"], output_format=common.output_format, empty="no users")


@app.command
def describe(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show a user with their roles and groups.

    Parameters
    ----------
    name
        The user's name, as `limnos list users` shows it.
    """
    with common.client() as client:
        user, groups = client.users.get(name), client.users.groups(name)
    show_fields({**_row(user), "groups": groups}, output_format=common.output_format)


@app.command
def disable(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Disable a user: the server refuses all further requests; roles and ownership do not change.

    Parameters
    ----------
    name
        The user's name, as `limnos list users` shows it.
    """
    with common.client() as client:
        user = client.users.disable(name)
    show_done(
        f"disabled user {user.name}", {"name": user.name, "enabled": user.enabled}, output_format=common.output_format
    )


@app.command
def enable(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Enable a disabled user.

    Parameters
    ----------
    name
        The user's name, as `limnos list users` shows it.
    """
    with common.client() as client:
        user = client.users.enable(name)
    show_done(
        f"enabled user {user.name}", {"name": user.name, "enabled": user.enabled}, output_format=common.output_format
    )


@app.command
def password(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Set a user's password, or your own, from a prompt or standard input. For your own, the old password is read
    first.

    Parameters
    ----------
    name
        The user's name, as `limnos list users` shows it.
    """
    with common.client() as client:
        old = ask_password("Old password, if any: ", required=False) if client.whoami() == name else None
        replaced = client.logins.set_password(name, ask_password("New password: "), old=old)
        _note_missing(client, name, metalake=common.metalake)
    show_done(
        f"set the password of user {name}", {"user": name, "replaced": replaced}, output_format=common.output_format
    )


def _note_missing(client: Client, name: str, *, metalake: str) -> None:
    """Print a note if the metalake does not have a user: passwords belong to the server, users to a metalake."""
    try:
        client.users.get(name)
    except NotFoundError:
        text = f"note: metalake {metalake} has no user {name}: 'limnos create user {shlex.quote(name)}' adds it"
        print(visible(text), file=sys.stderr)
    except (ClientError, ArgumentError):
        return


def _note_owned(client: Client, name: str) -> None:
    """Print a note that names objects of a user who will be removed, as far as the caller may search for them."""
    try:
        result = client.searches.find(f'owner:"{name}"', limit=_NAMED_MAX)
    except (ClientError, ArgumentError):
        return
    if result.hits:
        owned_paths = ", ".join(display.render(hit.path) for hit in result.hits)
        print(
            visible(
                f"note: {name} owns {owned_paths}{', …' if result.more else ''}, whose objects need another owner:"
                f" 'limnos find owner:{name}' lists them before, 'limnos set PATH --owner USER' hands one over"
            ),
            file=sys.stderr,
        )


def _row(user: User) -> Row:
    return {"name": user.name, "enabled": user.enabled, "roles": user.roles}
