# SPDX-License-Identifier: Apache-2.0
"""`set`: changes of an object's comment, columns' descriptions, properties, owner, tags and allowed locations.

The order of changes: tags, then comment, columns and properties by one request, then the owner, whose change may end
the caller's rights. Columns are looked up first. A refusal names what was changed before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from limnos.cli.catalog.columns import column_names
from limnos.cli.common import DEFAULTS, CommonFlags, Kind, pairs_of, properties_of
from limnos.cli.failures import UsageError
from limnos.cli.output import show_done
from limnos.client import ClientError, NotFoundError
from limnos.client.values import Json

if TYPE_CHECKING:
    from limnos.client import Client

Words = Annotated[tuple[str, ...], Parameter(negative=())]
ALLOWED_LOCATIONS = "allowed-locations"
"""The property of a catalog that lists further locations for its tables."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of an object."""

    comment: Annotated[str | None, Parameter(help="The description of the object; empty: none.")] = None
    column: Annotated[Words, Parameter(help="COLUMN=DESCRIPTION of a table's column; may be repeated.")] = ()
    property: Annotated[Words, Parameter(help="KEY=VALUE; may be repeated.")] = ()
    remove_property: Annotated[Words, Parameter(help="A property to remove; may be repeated.")] = ()
    allowed_location: Annotated[
        Words, Parameter(help="A further location for tables of a catalog; may be repeated, and replaces the others.")
    ] = ()
    owner: Annotated[str | None, Parameter(help="The new owner: a user, or a group as group:NAME.")] = None
    tag: Annotated[Words, Parameter(help="A tag to attach; may be repeated.")] = ()
    untag: Annotated[Words, Parameter(help="A tag to detach; may be repeated.")] = ()


NO_CHANGES = Changes()


def set_(
    path: str,
    /,
    *,
    changes: Changes = NO_CHANGES,
    kind: Annotated[Kind | None, Parameter(help="Kind of PATH, if it is ambiguous, or `metalake` or `tag`.")] = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Change an object: its comment, columns' descriptions, properties, allowed locations, owner and tags.

    Parameters
    ----------
    path
        The object, as `main.raw.nyc.flights`.
    """
    if changes == NO_CHANGES:
        raise UsageError(
            "nothing to change is given",
            hint=f"'limnos set {f'{kind} ' if kind else ''}{path} --comment TEXT', or --owner, --tag, --property",
        )
    with common.client() as client:
        word = kind or client.objects.kind(path)
        steps = _steps(client, path, kind=word, changes=changes)
        done: list[str] = []
        for name, step in steps:
            try:
                step()
            except ClientError as error:
                if done:
                    error.message = f"{error.message} (changed before it, and still so: {', '.join(done)})"
                raise
            done.append(name)
    show_done(
        f"changed {', '.join(done)} of {word} {path}",
        {"path": path, "kind": word, "changed": done},
        output_format=common.output_format,
    )


def _steps(client: Client, path: str, *, kind: str, changes: Changes) -> list[tuple[str, Callable[[], None]]]:
    """Return the calls that change an object, with the names of what they change."""
    steps: list[tuple[str, Callable[[], None]]] = []
    updates, names = _updates(kind, changes)
    if changes.column and (changes.tag or changes.untag):
        _require_columns(client, path, columns=list(pairs_of(changes.column, flag="--column fare='in dollars'")))
    if changes.tag or changes.untag:

        def change_tags() -> None:
            client.tags.change(path, kind=kind, adds=changes.tag, removes=changes.untag)

        steps.append(("tags", change_tags))
    if kind == "namespace" and updates:
        properties = properties_of(changes.property) | ({"comment": changes.comment} if changes.comment else {})
        removed = [*changes.remove_property, *(["comment"] if changes.comment == "" else [])]
        steps.append((names, lambda: client.namespaces.update(path, updates=properties, removals=removed)))
    elif updates:
        steps.append((names, lambda: client.objects.alter(path, kind=kind, updates=updates)))
    if changes.owner is not None:
        group, name = changes.owner.startswith("group:"), changes.owner.removeprefix("group:").removeprefix("user:")
        steps.append(("owner", lambda: client.owners.set(path, name, kind=kind, group=group)))
    return steps


def _require_columns(client: Client, path: str, *, columns: list[str]) -> None:
    """Raise NotFoundError for the first column that an Iceberg table lacks. Other tables are checked by the server."""
    try:
        names = column_names(client, path)
    except ClientError:
        return
    for column in columns if names else []:
        if column not in names and column.split(".")[0] not in names:
            text = f"{path} has no column {column}: it has {', '.join(names)}"
            raise NotFoundError(text, status=404, code="not-found")


def _updates(kind: str, changes: Changes) -> tuple[list[Json], str]:
    """Return Gravitino's updates, and the names of what they change. Raises UsageError for changes that the kind of
    object lacks.
    """
    if changes.column and kind != "table":
        raise UsageError(
            f"a {kind} has no columns to describe", hint="--column is for tables; --comment describes the object"
        )
    if changes.allowed_location and kind != "catalog":
        raise UsageError(f"a {kind} has no allowed locations", hint="set them for its catalog")
    updates: list[Json] = []
    names: list[str] = []
    if changes.comment is not None:
        updates.append({"@type": "updateComment", "newComment": changes.comment})
        names.append("comment")
    for column, text in pairs_of(changes.column, flag="--column fare='in dollars'").items():
        updates.append({"@type": "updateColumnComment", "fieldName": column.split("."), "newComment": text})
        names.append(f"column {column}")
    pairs = properties_of(changes.property)
    if changes.allowed_location:
        pairs[ALLOWED_LOCATIONS] = ",".join(changes.allowed_location)
    for key, value in pairs.items():
        updates.append({"@type": "setProperty", "property": key, "value": value})
        names.append(f"property {key}")
    for key in changes.remove_property:
        updates.append({"@type": "removeProperty", "property": key})
        names.append(f"property {key}")
    return updates, ", ".join(names)
