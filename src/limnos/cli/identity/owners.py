# SPDX-License-Identifier: Apache-2.0
"""`owner show | set`: owners of objects."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from limnos.cli.catalog.walk import walk
from limnos.cli.common import DEFAULTS, CommonFlags, OwnedWord
from limnos.cli.output import show_done, show_fields, visible
from limnos.client import ArgumentError, ClientError, NotFoundError
from limnos.model.presets import PRESET_KINDS
from limnos.names import display
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client

_RESTRICTED_MAX: Final = 20
"""The number of objects below one with a new owner whose restrictions are read for a note."""
_RULES_MAX: Final = 1_000
"""The number of grants among which those of a group that becomes an owner are looked for."""
_IN_CATALOGS: Final = frozenset({kind.word for kind in PRESET_KINDS} - {"metalake", "catalog"})
"""The kinds of objects that have containers, which an owner must be allowed to use."""

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
        notes = owner_notes(client, path, kind=match, owner=owner, group=group)
        client.owners.set(path, owner, kind=match, group=group)
    print_notes(notes)
    word = "group" if group else "user"
    result = {"object": path, "kind": match, "owner": owner, "owner_type": word}
    show_done(f"{match} {path} is now owned by {word} {owner}", result, output_format=common.output_format)


def owner_notes(client: Client, path: str, *, kind: str, owner: str, group: bool) -> list[str]:
    """Return the sentences to print after a user or group has become the owner of an object: restrictions that end for
    the new owner, and what the new owner lacks. Call it before the change, after which the caller may not know them.
    """
    return [
        *_lifted_restrictions(client, path, kind=kind, owner=owner, group=group),
        *_missing_ways(client, path, kind=kind, owner=owner, group=group),
    ]


def _missing_ways(client: Client, path: str, *, kind: str, owner: str, group: bool) -> list[str]:
    """Return a sentence if a new owner may not use the containers above the object, with the command that grants it;
    none if the server does not say.
    """
    if kind not in _IN_CATALOGS:
        return []
    try:
        name = display.render(display.parse(path))
        ways = (
            _missing_for_group(client, name, kind=kind, group=owner)
            if group
            else [
                f"{each.privilege} on {each.object.kind} {each.object.name}"
                for each in client.access.missing("reader", name, user=owner, kind=kind).missing
                if each.object.name != name
            ]
        )
    except (ClientError, ArgumentError, InvalidName):
        return []
    word = "group" if group else "user"
    if not ways:
        return []
    command = shlex.join(["limnos", "grant", "--preset", "reader", name, "--kind", kind, "--to", f"{word}:{owner}"])
    who = f"{word} {owner} has no" if not group else f"group {owner} has no role with"
    return [f"{who} {', '.join(ways)}, without which owners cannot reach {name}: '{command}'"]


def _missing_for_group(client: Client, path: str, *, kind: str, group: str) -> list[str]:
    """Return the privileges on the containers above an object that no role of a group has; none for a group that owns
    one of the containers.
    """
    access = client.access.rules(path, kind=kind, limit=_RULES_MAX)
    if access.hidden_rules or access.after is not None:
        return []
    if any(each.inherited and (each.kind, each.name) == ("group", group) for each in access.owners):
        return []
    roles = client.groups.get(group).roles
    allowed = {each.privilege for each in access.rules if each.role in roles and each.condition == "allow"}
    parts = display.parse(path)
    ways = [] if "USE_CATALOG" in allowed else [f"USE_CATALOG on catalog {display.render(parts[:1])}"]
    if len(parts) > 2 and "USE_SCHEMA" not in allowed:
        ways.append(f"USE_SCHEMA on namespace {display.render(parts[:-1])}")
    return ways


def _lifted_restrictions(client: Client, path: str, *, kind: str, owner: str, group: bool) -> list[str]:
    """Return a sentence for each restriction of an object, and of up to `_RESTRICTED_MAX` objects below it, that names
    a user or group who becomes its owner.
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
