# SPDX-License-Identifier: Apache-2.0
"""`group create | delete | list | describe` for groups, `group add | remove` for their members."""

from __future__ import annotations

import shlex

from cyclopts import App

from limnos.cli.catalog.tree import require
from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.failures import UsageError
from limnos.cli.identity.principals import note_own_role
from limnos.cli.output import show_done, show_fields, show_rows
from limnos.client import NotFoundError

app = App(name="group")


@app.command
def create(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Create a group without members.

    Parameters
    ----------
    name
        The group's name, such as `analysts`.
    """
    with common.client() as client:
        group = client.groups.create(name)
    show_done(
        f"created group {group.name}", {"name": group.name, "roles": group.roles}, output_format=common.output_format
    )


@app.command
def delete(name: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Delete a group; its members stay users.

    Parameters
    ----------
    name
        The group's name, such as `analysts`.
    """
    confirm(f"Delete group {name} of metalake {common.metalake}?", yes=yes)
    with common.client() as client:
        require(client.groups.delete(name), "group", name)
        note_own_role(client, f"group:{name}")
    show_done(f"deleted group {name}", {"deleted": name}, output_format=common.output_format)


@app.command(name="list")
def list_groups(*, common: CommonFlags = DEFAULTS) -> None:
    """List the groups of the metalake with their roles."""
    with common.client() as client:
        rows = [{"name": group.name, "roles": group.roles} for group in client.groups.list()]
    show_rows(rows, ["name", "roles"], output_format=common.output_format, empty="no groups")


@app.command
def describe(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show a group with its roles and members.

    Parameters
    ----------
    name
        The group's name, such as `analysts`.
    """
    with common.client() as client:
        group = client.groups.get(name)
        members = client.groups.members(name)
    show_fields({"name": group.name, "roles": group.roles, "members": members}, output_format=common.output_format)


@app.command
def add(group: str, /, *users: str, common: CommonFlags = DEFAULTS) -> None:
    """Add users to a group, in one transaction.

    Parameters
    ----------
    group
        The group's name, such as `analysts`.
    users
        One or more users of the metalake.
    """
    _require_some(users)
    _require_blanks(group, users)
    with common.client() as client:
        members = client.groups.add(group, users)
    result = {"group": group, "members": members}
    show_done(f"added {', '.join(users)} to group {group}", result, output_format=common.output_format)


@app.command
def remove(group: str, /, *users: str, common: CommonFlags = DEFAULTS) -> None:
    """Remove users from a group.

    Parameters
    ----------
    group
        The group's name, such as `analysts`.
    users
        One or more of its members.
    """
    _require_some(users)
    with common.client() as client:
        absent_users = [user for user in users if not client.groups.remove(group, user)]
    if absent_users:
        raise NotFoundError(f"not in group '{group}': {', '.join(absent_users)}", status=404, code="not-found")
    result = {"group": group, "removed": users}
    show_done(f"removed {', '.join(users)} from group {group}", result, output_format=common.output_format)


def _require_blanks(group: str, users: tuple[str, ...]) -> None:
    """Raise UsageError for names that are separated by commas."""
    if any("," in each for each in users):
        names = [name for each in users for name in each.split(",") if name]
        correction = shlex.join(["limnos", "group", "add", group, *names])
        raise UsageError("users are separated by blanks, not by commas", hint=f"'{correction}'")


def _require_some(users: tuple[str, ...]) -> None:
    if not users:
        raise UsageError("no user is named", hint="write for example: limnos group add staff ana ben")
