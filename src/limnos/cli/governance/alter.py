# SPDX-License-Identifier: Apache-2.0
"""`set`: changes of an object's comment, columns' descriptions, properties, owner, tags and allowed locations.

The order of changes: tags, then comment, columns and properties by one request, then the owner, whose change may end
the caller's rights. Columns are looked up first. A refusal names what was changed before it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast, get_args, get_origin

import msgspec
from cyclopts import Parameter

from limnos.cli.catalog.columns import require_columns
from limnos.cli.common import DEFAULTS, CommonFlags, Kind, pairs_of, properties_of
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.identity.owners import owner_notes, print_notes
from limnos.cli.output import show_done
from limnos.client import ClientError
from limnos.client.values import Json
from limnos.model.declared_kinds import DECLARED

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
    field: Annotated[
        Words,
        Parameter(help="NAME=VALUE of a field, as the url of a dashboard; a,b for a list; may be repeated."),
    ] = ()
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
    column = next((each for each in changes.column if "=" not in each), None)
    if column is not None and changes.tag:
        tagged = shlex.join(["limnos", "set", "tag", changes.tag[0], path, "--column", column])
        raise UsageError(
            f"'{column}' is not KEY=VALUE", hint=f"'{tagged}' tags the column, --column {column}=TEXT describes it"
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
    if changes.remove_property:
        _require_properties(client, path, kind=kind, keys=changes.remove_property)
    if changes.column and (changes.tag or changes.untag):
        require_columns(client, path, columns=list(_descriptions(changes)))
    if changes.tag or changes.untag:

        def change_tags() -> None:
            attached = _own_tags(client, path, kind=kind) if changes.tag else set()
            adds = [each for each in changes.tag if each not in attached]
            if adds or changes.untag:
                client.tags.change(path, kind=kind, adds=adds, removes=changes.untag)

        steps.append(("tags", change_tags))
    if kind == "namespace" and updates:
        properties = properties_of(changes.property) | ({"comment": changes.comment} if changes.comment else {})
        removed = [*changes.remove_property, *(["comment"] if changes.comment == "" else [])]
        steps.append((names, lambda: client.namespaces.update(path, updates=properties, removals=removed)))
    elif updates:
        steps.append((names, lambda: client.objects.alter(path, kind=kind, updates=updates)))
    if changes.owner is not None:
        group, name = changes.owner.startswith("group:"), changes.owner.removeprefix("group:").removeprefix("user:")
        sentences = owner_notes(client, path, kind=kind, owner=name, group=group)

        def change_owner() -> None:
            client.owners.set(path, name, kind=kind, group=group)
            print_notes(sentences)

        steps.append(("owner", change_owner))
    return steps


def _own_tags(client: Client, path: str, *, kind: str) -> set[str]:
    """Return the tags on an object itself; empty if the caller cannot read them."""
    try:
        return {each.name for each in client.tags.on(path, kind=kind) if not each.inherited}
    except ClientError:
        return set()


def _descriptions(changes: Changes) -> dict[str, str]:
    """Return the descriptions of columns. Raises UsageError for a column without one."""
    return pairs_of(changes.column, flag="--column fare='in dollars'")


def _require_properties(client: Client, path: str, *, kind: str, keys: Sequence[str]) -> None:
    """Raise NotFoundError for the first property that an object lacks. Objects whose properties the caller cannot load
    are checked by the server.
    """
    try:
        properties = _properties(client, path, kind=kind)
    except ClientError:
        return
    for key in keys:
        if properties is not None and key not in properties:
            property_list = f"it has {', '.join(sorted(properties))}" if properties else "it has no properties"
            text = f"{kind} {path} has no property {key}: {property_list}"
            raise StoppedError(text, code="not-found", hint=f"'limnos show {shlex.quote(path)}' shows its properties")


def _properties(client: Client, path: str, *, kind: str) -> Mapping[str, object] | None:
    """Load the properties of a catalog, a namespace or an Iceberg table; None for other kinds."""
    if kind == "catalog":
        return client.catalogs.get(path).properties
    if kind == "namespace":
        return client.namespaces.load(path).properties
    if kind != "table":
        return None
    metadata = client.tables.load(path, snapshots="refs").metadata
    return cast("Mapping[str, object]", metadata.get("properties") or {})


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
    updates = _field_updates(kind, changes)
    names = [f"field {each['field']}" for each in updates]
    if changes.comment is not None:
        is_property = kind == "view"  # Iceberg's views have no comment apart from that property
        updates.append(
            {"@type": "setProperty", "property": "comment", "value": changes.comment}
            if is_property
            else {"@type": "updateComment", "newComment": changes.comment}
        )
        names.append("comment")
    for column, text in _descriptions(changes).items():
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


def _field_updates(kind: str, changes: Changes) -> list[Json]:
    """Return the updates of own fields. Raises UsageError for a kind without them, an unknown field, an invalid value,
    and a property with the name of a field.
    """
    declared = next((each for each in DECLARED if each.kind.word == kind), None)
    typed = pairs_of(changes.field, flag="--field url=https://charts.example.com/1")
    if declared is None:
        if typed:
            raise UsageError(f"a {kind} has no fields of its own", hint="--property sets a property")
        return []
    types = {each.name: each.type for each in msgspec.structs.fields(declared.fields)}
    own_property = next((each for each in properties_of(changes.property) if each in types), None)
    if own_property is not None:
        raise UsageError(
            f"{own_property} is a field of a {kind}, and no property", hint=f"write --field {own_property}=VALUE"
        )
    unknown = next((each for each in typed if each not in types), None)
    if unknown is not None:
        raise UsageError(f"a {kind} has no field {unknown}", hint=f"its fields are {', '.join(types)}")
    values: dict[str, object] = {
        name: [each for each in text.split(",") if each] if _is_list(types[name]) else text
        for name, text in typed.items()
    }
    try:
        read = msgspec.convert(values, declared.fields, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"--field: {error}", hint=f"'limnos create {kind} --help' explains the fields") from None
    return [{"@type": "setField", "field": name, "value": getattr(read, name)} for name in values]


def _is_list(type_: object) -> bool:
    plain = get_args(type_)[0] if get_origin(type_) is Annotated else type_
    return get_origin(plain) is tuple
