# SPDX-License-Identifier: Apache-2.0
"""`owner show | set`: owners of objects."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from limnos.cli.catalog.walk import walk
from limnos.cli.common import DEFAULTS, CommonFlags, OwnedWord
from limnos.cli.output import show_done, show_fields, visible
from limnos.client import ArgumentError, ClientError, NotFoundError
from limnos.names import display
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client

_RESTRICTED_MAX: Final = 20
"""The number of objects below one with a new owner whose restrictions are read for a note."""

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
        notes = lifted_restrictions(client, path, kind=match, owner=owner, group=group)
        client.owners.set(path, owner, kind=match, group=group)
    print_notes(notes)
    word = "group" if group else "user"
    result = {"object": path, "kind": match, "owner": owner, "owner_type": word}
    show_done(f"{match} {path} is now owned by {word} {owner}", result, output_format=common.output_format)


def lifted_restrictions(client: Client, path: str, *, kind: str, owner: str, group: bool) -> list[str]:
    """Return a sentence for each restriction of an object, and of up to `_RESTRICTED_MAX` objects below it, that names
    a user or group who becomes its owner. Call it before the change, after which the caller may not see them.
    """
    word = f"{'group' if group else 'user'} {owner}"
    sentences: list[str] = []
    if kind not in {"catalog", "namespace", "table"}:
        return sentences
    try:
        objects = [(kind, display.render(display.parse(path)))] if kind != "catalog" else []
        if kind != "table":
            below = walk(client, display.parse(path), objects_max=_RESTRICTED_MAX).objects
            objects += [(each.kind, display.render(each.path)) for each in below if each.kind in {"namespace", "table"}]
        for object_kind, name in objects:
            sentences += [
                f"restriction {each.name} of {name} no longer applies to {word}, which owns it now"
                for each in client.restrictions.list(name, kind=object_kind)
                if each.on.name == name and owner in (each.to.groups if group else each.to.users)
            ]
    except (ClientError, ArgumentError, InvalidName):
        return sentences
    return sentences


def print_notes(sentences: list[str]) -> None:
    """Print notes about a change that was made."""
    for each in sentences:
        print(visible(f"note: {each}"), file=sys.stderr)
