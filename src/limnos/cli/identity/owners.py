# SPDX-License-Identifier: Apache-2.0
"""`owner show | set`: owners of objects."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, OwnedWord
from limnos.cli.output import show_done, show_fields
from limnos.client import NotFoundError

app = App(name="owner")

OwnedKind = Annotated[
    OwnedWord | None,
    Parameter(
        help=(
            "Kind of PATH, if it is ambiguous: outside of catalogs, as `role` or `job_template` (a pipeline), PATH is"
            " its name."
        )
    ),
]


@app.command
def show(path: str, /, *, kind: OwnedKind = None, common: CommonFlags = DEFAULTS) -> None:
    """Show the owner of an object.

    Parameters
    ----------
    path
        The object, as `main.raw.nyc`.
    """
    with common.client() as client:
        result = kind or client.objects.kind(path)
        owner = client.owners.get(path, kind=result)
    if owner is None:
        raise NotFoundError(f"{result} '{path}' has no owner", status=404, code="not-found")
    fields = {"object": path, "kind": result, "owner": owner.name, "owner_type": owner.type.lower()}
    show_fields(fields, output_format=common.output_format)


@app.command(name="set")
def set_owner(
    path: str,
    owner: str,
    /,
    *,
    group: Annotated[bool, Parameter(negative="", help="OWNER is a group, not a user.")] = False,
    kind: OwnedKind = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Make a user or a group the owner of an object.

    Parameters
    ----------
    path
        The object, as `main.raw.nyc`.
    owner
        The new owner: a user, or with `--group` a group; also as `user:ana` or `group:staff`.
    """
    prefix, _, name = owner.rpartition(":")
    if prefix in {"user", "group"} and name:
        owner, group = name, group or prefix == "group"
    with common.client() as client:
        match = kind or client.objects.kind(path)
        client.owners.set(path, owner, kind=match, group=group)
    word = "group" if group else "user"
    result = {"object": path, "kind": match, "owner": owner, "owner_type": word}
    show_done(f"{match} {path} is now owned by {word} {owner}", result, output_format=common.output_format)
