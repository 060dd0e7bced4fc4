# SPDX-License-Identifier: Apache-2.0
"""`role create | delete | list | describe`: roles and their privileges.

`grant` and `revoke` change a role's privileges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App

from limnos.cli.catalog.tree import require
from limnos.cli.common import DEFAULTS, CommonFlags, Property, YesFlag, confirm, properties_of
from limnos.cli.identity.principals import require_existing
from limnos.cli.output import Row, show_done, show_rows, visible
from limnos.client import ClientError
from limnos.client.values import Role

if TYPE_CHECKING:
    from limnos.client import Client

app = App(name="role")


@app.command
def create(name: str, /, *, property: Property = None, common: CommonFlags = DEFAULTS) -> None:
    """Create a role without privileges.

    Parameters
    ----------
    name
        The role's name, such as `analyst`.
    """
    with common.client() as client:
        role = client.roles.create(name, properties=properties_of(property))
    show_done(f"created role {role.name}", {"name": role.name, "grants": []}, output_format=common.output_format)


@app.command
def delete(name: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Delete a role. Its users and groups lose its privileges.

    Parameters
    ----------
    name
        The role's name, such as `analyst`.
    """
    with common.client() as client:
        if not yes:
            require_existing(client.roles.get, name)
        confirm(f"Delete role {name} of metalake {common.metalake}?", yes=yes)
        require(client.roles.delete(name), "role", name)
    show_done(f"deleted role {name}", {"deleted": name}, output_format=common.output_format)


@app.command(name="list")
def list_roles(*, common: CommonFlags = DEFAULTS) -> None:
    """List the roles that are visible to you."""
    with common.client() as client:
        rows = [{"name": name} for name in client.roles.list()]
    show_rows(rows, ["name"], output_format=common.output_format, empty="no roles")


@app.command
def describe(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show a role's privileges, and the users and groups that have the role, as far as you may list these.

    Parameters
    ----------
    name
        The role's name, such as `analyst`.
    """
    with common.client() as client:
        role = client.roles.get(name)
        grants = grants_of(client, role)
        holders = _holders_of(client, name)
    if common.output_format == "json":
        show_done(
            "",
            {
                "name": role.name,
                "properties": role.properties or {},
                "grants": grants,
                **({} if holders is None else {"holders": holders}),
            },
            output_format="json",
        )
    else:
        columns = ["privilege", "condition", "kind", "object"]
        show_rows(grants, columns, output_format="table", empty=f"role {role.name} grants nothing")
        if holders is not None:
            print(visible(f"\ngranted to {', '.join(holders) or 'no user and no group'}, as far as you may list them"))


def _holders_of(client: Client, role: str) -> list[str] | None:
    """Return the users and groups that have a role, such as `user:ana`; None if the caller may not list them."""
    try:
        users = [f"user:{user.name}" for user in client.users.list() if role in user.roles]
        return users + [f"group:{group.name}" for group in client.groups.list() if role in group.roles]
    except ClientError:
        return None


def grants_of(client: Client, role: Role) -> list[Row]:
    """Return a role's privileges, one row per privilege and object; `object` is a path, as `--on` takes it."""
    return [
        {
            "privilege": privilege.name.lower(),
            "condition": privilege.condition,
            "kind": "namespace" if securable_object.type.lower() == "schema" else securable_object.type.lower(),
            "object": client.objects.path(securable_object.full_name, kind=securable_object.type),
        }
        for securable_object in role.securable_objects
        for privilege in securable_object.privileges
    ]
