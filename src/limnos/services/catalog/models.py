# SPDX-License-Identifier: Apache-2.0
"""Model versions: link, list, load, alter and delete the versions of a model, and choose the URI to read.

Must not know any wire format. `services.lookup.namespace_objects` creates, alters and drops models. No decision depends
on a version's row: the server decides on the model, then reads its versions from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.model_versions import UNKNOWN_URI, ModelVersion, ModelVersionReference
from limnos.model.permits import Permit
from limnos.model.records import ModelRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.lookup.namespace_objects import namespace_object_find, namespace_object_load
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.objects.models import model_numbers_read, model_version_read, model_versions_read
from limnos.store.sql import Load
from limnos.store.tx import Tx

T = TypeVar("T")
DEFAULT_URI: Final = "default-uri-name"
"""The property of a version, model or catalog that names the URI to use if the caller names none."""
NAME_MAX: Final = 256
"""The maximum length of an alias and of the name of a URI, in characters."""


class VersionEdits(msgspec.Struct, frozen=True, kw_only=True):
    """Edits of a version: comment, properties, URIs by name, and aliases."""

    edits: PropertyEdits = PropertyEdits()
    adds: Mapping[str, str] = msgspec.field(default_factory=dict)
    updates: Mapping[str, str] = msgspec.field(default_factory=dict)
    removes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    unnames: tuple[str, ...] = ()


class VersionLink(msgspec.Struct, frozen=True):
    """The command to add a version to a model; the mutation assigns the version number."""

    model: Node
    version: ModelVersion


class VersionAlter(msgspec.Struct, frozen=True):
    """The command to change a version of a model."""

    model: Node
    path: Levels
    which: ModelVersionReference
    edits: VersionEdits


class VersionDelete(msgspec.Struct, frozen=True):
    """The command to delete a version of a model, and its aliases."""

    model: Node
    path: Levels
    which: ModelVersionReference


def version_label(path: Levels, which: ModelVersionReference) -> str:
    """Return the name of a version in messages, such as `version 3 of model a.m`."""
    return f"{'alias' if which.is_alias else 'version'} {which.text} of model {render(path)}"


def _missing_version_error(path: Levels, which: ModelVersionReference) -> NotFound:
    return NotFound(f"Model version does not exist: {version_label(path, which)}", kind="model_version")


async def version_numbers(ctx: Context, scope: RequestScope, *, path: Levels) -> list[int]:
    """Return the numbers of a model's versions. Raises NotFound, NotInUse, PermissionDenied."""
    return await _read_of_model(ctx, scope, path=path, load=model_numbers_read)


async def versions_list(ctx: Context, scope: RequestScope, *, path: Levels) -> list[ModelVersion]:
    """Return a model's versions, by number. Raises NotFound, NotInUse, PermissionDenied."""
    return await _read_of_model(ctx, scope, path=path, load=model_versions_read)


async def version_load(
    ctx: Context, scope: RequestScope, *, path: Levels, which: ModelVersionReference
) -> ModelVersion:
    """Return a version of a model. Raises NotFound for a missing model or version, NotInUse, PermissionDenied."""
    version = await _read_of_model(ctx, scope, path=path, load=lambda model_id: model_version_read(model_id, which))
    return _existing(version, path=path, which=which)


async def _read_of_model(ctx: Context, scope: RequestScope, *, path: Levels, load: Callable[[int], Load[T]]) -> T:
    """Read rows of a model by its id, for a caller who may load the model before and after the read."""
    _, rows = await ctx.read_confirmed(
        scope,
        lambda request_view: namespace_object_load(request_view, path, kind=Kind.MODEL).id,
        work=lambda model_id: ctx.look_up(lambda: load(model_id)),
    )
    return rows


def _existing(version: ModelVersion | None, *, path: Levels, which: ModelVersionReference) -> ModelVersion:
    if version is None:
        raise _missing_version_error(path, which)
    return version


async def version_uri(
    ctx: Context, scope: RequestScope, *, path: Levels, which: ModelVersionReference, name: str | None
) -> str:
    """Return a URI of a version: the named one, else the default, else the only one.

    Raises NotFound for an unknown model, version or URI name, BadRequest for several URIs without a default, NotInUse,
    PermissionDenied.
    """

    def decide(request_view: RequestView) -> tuple[int, str | None]:
        model = namespace_object_load(request_view, path, kind=Kind.MODEL)
        record = cast("ModelRecord", model.record)
        return model.id, record.properties.get(DEFAULT_URI) or request_view.catalog_record.properties.get(DEFAULT_URI)

    async def read(model: tuple[int, str | None]) -> ModelVersion | None:
        return await ctx.look_up(lambda: model_version_read(model[0], which))

    (_, default), row = await ctx.read_confirmed(scope, decide, work=read)
    version = _existing(row, path=path, which=which)
    expected = name or version.properties.get(DEFAULT_URI) or default
    if expected is None:
        if len(version.uris) > 1:
            names = ", ".join(version.uris)
            raise BadRequest(
                f"{version_label(path, which)} has several URIs: name one of {names}, or set {DEFAULT_URI}"
            )
        expected = next(iter(version.uris))
    if expected not in version.uris:
        raise NotFound(f"URI {expected} does not exist in {version_label(path, which)}", kind="model_version_uri")
    return version.uris[expected]


async def version_link(
    ctx: Context,
    scope: RequestScope,
    *,
    path: Levels,
    uris: Mapping[str, str],
    aliases: tuple[str, ...],
    comment: str | None,
    properties: Mapping[str, str],
) -> int:
    """Add a version to a model and return its number.

    Raises NotFound, AlreadyExists (an alias belongs to another version), NotInUse, PermissionDenied, BadRequest (an
    invalid alias or URI, or a default URI that the version does not have).
    """
    if not uris:
        raise BadRequest("A version needs at least one URI: give uri or uris")
    for uri_name, uri in uris.items():
        _check(uri_name, "The name of a URI")
        _check_uri(uri)
    _check_default_uri(properties, uris)
    version = ModelVersion(
        version=0, comment=comment, properties=properties, uris=uris, aliases=_checked_version(aliases)
    )

    def decide(request_view: RequestView) -> Permit[VersionLink]:
        namespace_object = namespace_object_find(request_view, path, kind=Kind.MODEL, action=Action.MODEL_LINK)
        return request_view.permit(VersionLink(namespace_object.entity, version), namespace_object.decision)

    return await ctx.write(scope, decide, version_insert)


def _checked_version(aliases: tuple[str, ...]) -> tuple[str, ...]:
    for alias in aliases:
        _check(alias, "An alias")
        if alias.isdigit():
            raise BadRequest(f"An alias must not be a number, as {alias} is: clients take it for a version")
    return tuple(dict.fromkeys(aliases))


def _check(name: str, what: str) -> None:
    if not name.strip() or len(name) > NAME_MAX:
        raise BadRequest(f"{what} is empty or longer than {NAME_MAX} characters")


def _check_uri(uri: str) -> None:
    if not uri.strip():
        raise BadRequest("A URI is empty: give the location of the version")


def _check_default_uri(properties: Mapping[str, str], uris: Mapping[str, str]) -> None:
    """Check that a version's own property `default-uri-name` names one of its URIs. Raises BadRequest."""
    chosen = properties.get(DEFAULT_URI)
    if chosen is not None and chosen not in uris:
        raise BadRequest(f"{DEFAULT_URI} is {chosen}, which is no URI of the version: it has {', '.join(uris)}")


def version_insert(tx: Tx, permit: Permit[VersionLink]) -> int:
    """Insert the version under the next number; numbers are never reused. Raises AlreadyExists for a used alias."""
    node = tx.nodes.confirm(permit.command.model)
    record = cast("ModelRecord", node.record)
    number = record.next_version
    tx.nodes.write_record(node, replace(record, next_version=number + 1))
    version = msgspec.structs.replace(permit.command.version, version=number)
    name = tx.models.insert(node.id, version)
    if name is not None:
        raise _alias_taken_error(name, node)
    return number


def _alias_taken_error(alias: str, model: Node) -> AlreadyExists:
    text = f"Alias {alias} of model {model.name} belongs to another version already: remove it from that version first"
    return AlreadyExists(text, kind="alias")


async def version_alter(
    ctx: Context, scope: RequestScope, *, path: Levels, which: ModelVersionReference, edits: VersionEdits
) -> ModelVersion:
    """Change a version of a model. Raises NotFound, AlreadyExists (an alias), NotInUse, PermissionDenied, BadRequest
    (an invalid alias or URI, or one that does not fit the version's URIs).
    """
    checked_edits = msgspec.structs.replace(edits, names=_checked_version(edits.names))
    for uri_name, uri in (*edits.adds.items(), *edits.updates.items()):
        _check(uri_name, "The name of a URI")
        _check_uri(uri)

    def decide(request_view: RequestView) -> Permit[VersionAlter]:
        namespace_object = namespace_object_find(request_view, path, kind=Kind.MODEL, action=Action.MODEL_ALTER)
        return request_view.permit(
            VersionAlter(namespace_object.entity, path, which, checked_edits), namespace_object.decision
        )

    return await ctx.write(scope, decide, version_update)


def version_update(tx: Tx, permit: Permit[VersionAlter]) -> ModelVersion:
    """Write the edited version and its aliases, and update the time of the model's last change.

    Raises NotFound (the version), AlreadyExists (an alias), BadRequest (a URI).
    """
    command, edits = permit.command, permit.command.edits
    node = tx.nodes.confirm(command.model)
    version = tx.models.read(node.id, command.which)
    if version is None:
        raise _missing_version_error(command.path, command.which)
    new_version = msgspec.structs.replace(
        version,
        comment=edits.edits.edited_comment(version.comment),
        properties=edits.edits.over(version.properties),
        uris=_edited_uris(version.uris, edits),
    )
    if version.properties.get(DEFAULT_URI) in (None, *version.uris):  # an older release stored others
        _check_default_uri(new_version.properties, new_version.uris)
    tx.models.update(node.id, new_version)
    tx.models.unname(node.id, version.version, aliases=edits.unnames)
    name = tx.models.name(node.id, version.version, aliases=edits.names)
    if name is not None:
        raise _alias_taken_error(name, node)
    tx.nodes.write_record(node, node.record)
    again = tx.models.at(node.id, version.version)
    return new_version if again is None else again


def _edited_uris(uris: Mapping[str, str], edits: VersionEdits) -> dict[str, str]:
    """Return the URIs with the edits applied.

    Raises BadRequest for adding an existing name, for changing or removing a missing one, and for removing the last
    URI.
    """
    entries = dict(uris)
    for name in edits.removes:
        if entries.pop(name, None) is None:
            raise BadRequest(f"The version has no URI {name} to remove: it has {', '.join(uris)}")
    for name, uri in edits.updates.items():
        if name not in entries:
            raise BadRequest(f"The version has no URI {name} to change: it has {', '.join(entries)}; add it instead")
        entries[name] = uri
    for name, uri in edits.adds.items():
        if name in entries:
            raise BadRequest(f"The version has a URI {name} already: change it instead")
        entries[name] = uri
    if not entries:
        raise BadRequest("A version needs at least one URI: delete the version instead")
    return entries


async def version_delete(ctx: Context, scope: RequestScope, *, path: Levels, which: ModelVersionReference) -> None:
    """Delete a version of a model, and its aliases. Raises NotFound, NotInUse, PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[VersionDelete]:
        namespace_object = namespace_object_find(request_view, path, kind=Kind.MODEL, action=Action.MODEL_ALTER)
        return request_view.permit(VersionDelete(namespace_object.entity, path, which), namespace_object.decision)

    await ctx.write(scope, decide, version_remove)


def version_remove(tx: Tx, permit: Permit[VersionDelete]) -> None:
    """Delete the version, and update the time of the model's last change. Raises NotFound."""
    command = permit.command
    node = tx.nodes.confirm(command.model)
    version = tx.models.read(node.id, command.which)
    if version is None:
        raise _missing_version_error(command.path, command.which)
    tx.models.delete(node.id, version.version)
    tx.nodes.write_record(node, node.record)


def uris_of(uri: str | None, uris: Mapping[str, str] | None, *, name: str | None = None) -> dict[str, str]:
    """Return the URIs of a request as one mapping; a `uri` without a `name` gets the name `unknown`.

    Raises BadRequest for two URIs of one name.
    """
    named_uri = {} if uri is None else {name or UNKNOWN_URI: uri}
    for each, other in (uris or {}).items():
        if named_uri.setdefault(each, other) != other:
            raise BadRequest(f"uri and uris.{each} name the same URI with different values: send one of them")
    return named_uri
