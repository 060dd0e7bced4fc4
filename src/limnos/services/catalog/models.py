"""Model versions: link, list, load, alter and delete the versions of a model, and choose the URI to read.

May import the rooms below. Must not know any wire format. `services.lookup.namespace_objects` creates, alters and drops
models. No decision depends on a version's row: the server decides on the model, then reads its versions from the store.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.model_versions import UNKNOWN_URI, ModelVersion, ModelVersionReference
from limnos.names.iceberg import render
from limnos.services.lookup.namespace_objects import namespace_object_find, namespace_object_load
from limnos.services.request.property_edits import PropertyEdits
from limnos.store.objects.models import model_numbers_read, model_version_read, model_versions_read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.model.permits import Permit
    from limnos.model.records import ModelRecord
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.request_scope import RequestScope
    from limnos.services.request.request_view import RequestView
    from limnos.store.tx import Tx

DEFAULT_URI: Final = "default-uri-name"
"""The property of a version, model or catalog that names the URI to use if the caller names none."""
NAME_MAX: Final = 256
"""The maximum length of an alias and of the name of a URI, in characters."""


class VersionEdits(msgspec.Struct, frozen=True):
    """Edits of a version: comment, properties, URIs by name, and aliases."""

    edits: PropertyEdits = PropertyEdits()
    adds: Mapping[str, str] = msgspec.field(default_factory=dict)
    updates: Mapping[str, str] = msgspec.field(default_factory=dict)
    removes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    unnames: tuple[str, ...] = ()


class VersionLink(msgspec.Struct, frozen=True):
    """Add a version to a model; the mutation assigns its number."""

    model: Node
    version: ModelVersion


class VersionAlter(msgspec.Struct, frozen=True):
    """Change a version of a model."""

    model: Node
    path: Levels
    which: ModelVersionReference
    edits: VersionEdits


class VersionDelete(msgspec.Struct, frozen=True):
    """Delete a version of a model, and its aliases."""

    model: Node
    path: Levels
    which: ModelVersionReference


def version_label(path: Levels, which: ModelVersionReference) -> str:
    """Return how messages name a version, such as `version 3 of model a.m`."""
    return f"{'alias' if which.is_alias else 'version'} {which.text} of model {render(path)}"


def _missing(path: Levels, which: ModelVersionReference) -> NotFound:
    return NotFound(f"Model version does not exist: {version_label(path, which)}", kind="model_version")


async def version_numbers(ctx: Context, scope: RequestScope, *, path: Levels) -> list[int]:
    """Return the numbers of a model's versions. Raises NotFound, PermissionDenied."""
    model = await ctx.read(scope, lambda request_view: namespace_object_load(request_view, path, kind=Kind.MODEL))
    return await ctx.look_up(lambda: model_numbers_read(model.id))


async def versions_list(ctx: Context, scope: RequestScope, *, path: Levels) -> list[ModelVersion]:
    """Return a model's versions, by number. Raises NotFound, PermissionDenied."""
    model = await ctx.read(scope, lambda request_view: namespace_object_load(request_view, path, kind=Kind.MODEL))
    return await ctx.look_up(lambda: model_versions_read(model.id))


async def version_load(
    ctx: Context, scope: RequestScope, *, path: Levels, which: ModelVersionReference
) -> ModelVersion:
    """Return a version of a model. Raises NotFound for a missing model or version, PermissionDenied."""
    model = await ctx.read(scope, lambda request_view: namespace_object_load(request_view, path, kind=Kind.MODEL))
    return await _version_of(ctx, model, path=path, which=which)


async def _version_of(ctx: Context, model: Node, *, path: Levels, which: ModelVersionReference) -> ModelVersion:
    found = await ctx.look_up(lambda: model_version_read(model.id, which))
    if found is None:
        raise _missing(path, which)
    return found


async def version_uri(
    ctx: Context, scope: RequestScope, *, path: Levels, which: ModelVersionReference, name: str | None
) -> str:
    """Return a URI of a version: the named one, else the default, else the only one.

    Raises NotFound for an unknown model, version or URI name, BadRequest for several URIs without a default,
    PermissionDenied.
    """

    def read(request_view: RequestView) -> tuple[Node, str | None]:
        model = namespace_object_load(request_view, path, kind=Kind.MODEL)
        record = cast("ModelRecord", model.record)
        return model, record.properties.get(DEFAULT_URI) or request_view.catalog_record.properties.get(DEFAULT_URI)

    model, default = await ctx.read(scope, read)
    found = await _version_of(ctx, model, path=path, which=which)
    wanted = name or found.properties.get(DEFAULT_URI) or default
    if wanted is None:
        if len(found.uris) > 1:
            names = ", ".join(found.uris)
            raise BadRequest(
                f"{version_label(path, which)} has several URIs: name one of {names}, or set {DEFAULT_URI}"
            )
        wanted = next(iter(found.uris))
    if wanted not in found.uris:
        raise NotFound(f"URI {wanted} does not exist in {version_label(path, which)}", kind="model_version_uri")
    return found.uris[wanted]


async def version_link(
    ctx: Context, scope: RequestScope, *, path: Levels, uris: Mapping[str, str], aliases: tuple[str, ...], comment: str | None,
    properties: Mapping[str, str],
) -> int:  # fmt: skip
    """Add a version to a model and return its number.

    Raises NotFound, AlreadyExists (an alias belongs to another version), PermissionDenied, BadRequest.
    """
    if not uris:
        raise BadRequest("A version has at least one URI: give uri or uris")
    for uri_name, uri in uris.items():
        _check(uri_name, "The name of a URI")
        _check_uri(uri)
    version = ModelVersion(0, comment, properties, uris, _checked_version(aliases))

    def decide(request_view: RequestView) -> Permit[VersionLink]:
        found = namespace_object_find(request_view, path, kind=Kind.MODEL, action=Action.MODEL_LINK)
        return request_view.permit(VersionLink(found.entity, version), found.decision)

    return await ctx.write(scope, decide, version_insert)


def _checked_version(aliases: tuple[str, ...]) -> tuple[str, ...]:
    for alias in aliases:
        _check(alias, "An alias")
    return tuple(dict.fromkeys(aliases))


def _check(name: str, what: str) -> None:
    if not name.strip() or len(name) > NAME_MAX:
        raise BadRequest(f"{what} is empty or longer than {NAME_MAX} characters")


def _check_uri(uri: str) -> None:
    if not uri.strip():
        raise BadRequest("A URI is empty: say where the version lies")


def version_insert(tx: Tx, permit: Permit[VersionLink]) -> int:
    """Insert the version under the next number; numbers are never reused."""
    held = tx.nodes.confirm(permit.command.model)
    record = cast("ModelRecord", held.record)
    number = record.next_version
    tx.nodes.write_record(held, replace(record, next_version=number + 1))
    version = msgspec.structs.replace(permit.command.version, version=number)
    taken = tx.models.insert(held.id, version)
    if taken is not None:
        raise _alias_taken_error(taken, held)
    return number


def _alias_taken_error(alias: str, model: Node) -> AlreadyExists:
    return AlreadyExists(f"Alias {alias} of model {model.name} leads to another version already", kind="alias")


async def version_alter(
    ctx: Context, scope: RequestScope, *, path: Levels, which: ModelVersionReference, edits: VersionEdits
) -> ModelVersion:
    """Change a version of a model. Raises NotFound, AlreadyExists (an alias), PermissionDenied, BadRequest."""
    checked = msgspec.structs.replace(edits, names=_checked_version(edits.names))
    for uri_name, uri in (*edits.adds.items(), *edits.updates.items()):
        _check(uri_name, "The name of a URI")
        _check_uri(uri)

    def decide(request_view: RequestView) -> Permit[VersionAlter]:
        found = namespace_object_find(request_view, path, kind=Kind.MODEL, action=Action.MODEL_ALTER)
        return request_view.permit(VersionAlter(found.entity, path, which, checked), found.decision)

    return await ctx.write(scope, decide, version_update)


def version_update(tx: Tx, permit: Permit[VersionAlter]) -> ModelVersion:
    """Write the edited version and its aliases. This counts as a change of the model."""
    command, edits = permit.command, permit.command.edits
    held = tx.nodes.confirm(command.model)
    found = tx.models.read(held.id, command.which)
    if found is None:
        raise _missing(command.path, command.which)
    changed = msgspec.structs.replace(
        found, comment=edits.edits.edited_comment(found.comment), properties=edits.edits.over(found.properties),
        uris=_uris_over(found.uris, edits),
    )  # fmt: skip
    tx.models.update(held.id, changed)
    tx.models.unname(held.id, found.version, aliases=edits.unnames)
    taken = tx.models.name(held.id, found.version, aliases=edits.names)
    if taken is not None:
        raise _alias_taken_error(taken, held)
    tx.nodes.write_record(held, held.record)
    again = tx.models.at(held.id, found.version)
    return changed if again is None else again


def _uris_over(uris: Mapping[str, str], edits: VersionEdits) -> dict[str, str]:
    """Return the URIs with the edits applied.

    Raises BadRequest for adding an existing name, for changing or removing a missing one, and for removing the last
    URI.
    """
    kept = dict(uris)
    for name in edits.removes:
        if kept.pop(name, None) is None:
            raise BadRequest(f"The version has no URI {name} to remove: it has {', '.join(uris)}")
    for name, uri in edits.updates.items():
        if name not in kept:
            raise BadRequest(f"The version has no URI {name} to change: it has {', '.join(kept)}; add it instead")
        kept[name] = uri
    for name, uri in edits.adds.items():
        if name in kept:
            raise BadRequest(f"The version has a URI {name} already: change it instead")
        kept[name] = uri
    if not kept:
        raise BadRequest("A version has at least one URI: delete the version instead")
    return kept


async def version_delete(ctx: Context, scope: RequestScope, *, path: Levels, which: ModelVersionReference) -> None:
    """Delete a version of a model, and its aliases. Raises NotFound, PermissionDenied."""

    def decide(request_view: RequestView) -> Permit[VersionDelete]:
        found = namespace_object_find(request_view, path, kind=Kind.MODEL, action=Action.MODEL_ALTER)
        return request_view.permit(VersionDelete(found.entity, path, which), found.decision)

    await ctx.write(scope, decide, version_remove)


def version_remove(tx: Tx, permit: Permit[VersionDelete]) -> None:
    """Delete the version. This counts as a change of the model."""
    command = permit.command
    held = tx.nodes.confirm(command.model)
    found = tx.models.read(held.id, command.which)
    if found is None:
        raise _missing(command.path, command.which)
    tx.models.delete(held.id, found.version)
    tx.nodes.write_record(held, held.record)


def uris_of(uri: str | None, uris: Mapping[str, str] | None, *, name: str | None = None) -> dict[str, str]:
    """Return the URIs of a request as one mapping; a `uri` without a name is called `unknown`."""
    return {**({} if uri is None else {name or UNKNOWN_URI: uri}), **(uris or {})}
