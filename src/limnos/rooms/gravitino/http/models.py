# SPDX-License-Identifier: Apache-2.0
"""Models of a schema and their versions: register, list, load, alter, delete; link a version, and load it by number or
by alias.

Has no business rules.
"""

from __future__ import annotations

import msgspec

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.kinds import Kind
from limnos.model.model_versions import ModelVersionReference
from limnos.model.records import ModelRecord
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.namespace_objects import NamespaceObjectRoutes, drop_response, object_path_of
from limnos.rooms.gravitino.http.updates import (
    EntityUpdates,
    RemoveProperty,
    SetProperty,
    UpdateComment,
    VariedUpdate,
    check_properties,
    edits_of,
)
from limnos.services.catalog import models
from limnos.services.catalog.models import VersionEdits
from limnos.services.request.context import Context

ONE_VERSION, ONE_ALIAS = "{model}/versions/{version}", "{model}/aliases/{alias}"


class ModelRegister(GravitinoRequestBody, frozen=True):
    """The body of a request to register a model."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None


class VersionLink(GravitinoRequestBody, frozen=True, kw_only=True):
    """The body of a request to link a model version. `uri` is the unnamed URI."""

    uri: str | None = None
    uris: dict[str, str] | None = None
    aliases: list[str] | None = None
    comment: str | None = None
    properties: dict[str, str] | None = None


class UpdateUri(VariedUpdate, frozen=True, tag="updateUri"):
    """The change `updateUri`: sets a URI of a model version to a new value; without `uriName` the unnamed one."""

    new_uri: str
    uri_name: str | None = None


class AddUri(VariedUpdate, frozen=True, tag="addUri"):
    """The change `addUri`: adds a URI to a model version, unnamed without `uriName`."""

    uri: str
    uri_name: str | None = None


class RemoveUri(VariedUpdate, frozen=True, tag="removeUri"):
    """The change `removeUri`: removes a named URI from a model version."""

    uri_name: str


class UpdateAliases(VariedUpdate, frozen=True, tag="updateAliases"):
    """The change `updateAliases`: adds and removes aliases of a model version."""

    aliases_to_add: list[str] | None = None
    aliases_to_remove: list[str] | None = None


class VersionUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a model version: its changes, in order."""

    updates: list[UpdateComment | SetProperty | RemoveProperty | UpdateUri | AddUri | RemoveUri | UpdateAliases]


_LEAF = NamespaceObjectRoutes(Kind.MODEL, dto.model)


async def model_register(request: Request, ctx: Context, *, body: ModelRegister) -> Response:
    """Create a model without versions."""
    record = ModelRecord(body.comment, check_properties(body.properties))
    return await _LEAF.make(request, ctx, name=body.name, record=record)


async def model_alter(request: Request, ctx: Context, *, body: EntityUpdates) -> Response:
    """Apply updates of name, comment and properties to a model."""
    return await _LEAF.change(request, ctx, updates=body.updates)


async def versions_list(request: Request, ctx: Context) -> Response:
    """Return a model's versions: their numbers, or with `details` all fields."""
    schema_path, name = object_path_of(request)
    path = await schema_path.path(ctx, name)
    if request.query_flag("details"):
        versions = await models.versions_list(ctx, schema_path.scope, path=path)
        return ok(infos=[dto.model_version(each) for each in versions])
    return ok(versions=await models.version_numbers(ctx, schema_path.scope, path=path))


async def version_link(request: Request, ctx: Context, *, body: VersionLink) -> Response:
    """Add a version to a model."""
    schema_path, name = object_path_of(request)
    await models.version_link(
        ctx,
        schema_path.scope,
        path=await schema_path.path(ctx, name),
        uris=models.uris_of(body.uri, body.uris),
        aliases=tuple(body.aliases or ()),
        comment=body.comment,
        properties=check_properties(body.properties),
    )
    return ok()


def _version_selector(request: Request, *, is_alias: bool) -> ModelVersionReference:
    return ModelVersionReference(names_of(request)[4], is_alias)


async def _load(request: Request, ctx: Context, *, is_alias: bool) -> Response:
    schema_path, name = object_path_of(request)
    which = _version_selector(request, is_alias=is_alias)
    path = await schema_path.path(ctx, name)
    return ok(modelVersion=dto.model_version(await models.version_load(ctx, schema_path.scope, path=path, which=which)))


async def version_load(request: Request, ctx: Context) -> Response:
    """Return a model version by its number."""
    return await _load(request, ctx, is_alias=False)


async def alias_load(request: Request, ctx: Context) -> Response:
    """Return the model version that an alias points to."""
    return await _load(request, ctx, is_alias=True)


async def _uri(request: Request, ctx: Context, *, is_alias: bool) -> Response:
    schema_path, name = object_path_of(request)
    which, uri_name = _version_selector(request, is_alias=is_alias), request.query("uriName")
    path = await schema_path.path(ctx, name)
    return ok(uri=await models.version_uri(ctx, schema_path.scope, path=path, which=which, name=uri_name))


async def version_uri(request: Request, ctx: Context) -> Response:
    """Return one URI of a model version: that of the given name, else the default one."""
    return await _uri(request, ctx, is_alias=False)


async def alias_uri(request: Request, ctx: Context) -> Response:
    """Return one URI of the model version that an alias points to: that of the given name, else the default one."""
    return await _uri(request, ctx, is_alias=True)


async def _alter(request: Request, ctx: Context, *, body: VersionUpdates, is_alias: bool) -> Response:
    schema_path, name = object_path_of(request)
    which = _version_selector(request, is_alias=is_alias)
    path = await schema_path.path(ctx, name)
    version = await models.version_alter(ctx, schema_path.scope, path=path, which=which, edits=_edits(body))
    return ok(modelVersion=dto.model_version(version))


def _edits(body: VersionUpdates) -> VersionEdits:
    """Combine the changes of a model version; changes of the same kind apply in order."""
    plain_updates = [each for each in body.updates if isinstance(each, (UpdateComment, SetProperty, RemoveProperty))]
    edits = VersionEdits(edits=edits_of(plain_updates))
    for each in body.updates:
        match each:
            case UpdateUri(new_uri=uri, uri_name=name):
                edits = msgspec.structs.replace(
                    edits, updates={**edits.updates, **models.uris_of(uri, None, name=name)}
                )
            case AddUri(uri=uri, uri_name=name):
                edits = msgspec.structs.replace(edits, adds={**edits.adds, **models.uris_of(uri, None, name=name)})
            case RemoveUri(uri_name=removed):
                edits = msgspec.structs.replace(edits, removes=(*edits.removes, removed))
            case UpdateAliases(aliases_to_add=adds, aliases_to_remove=removes):
                names, unnames = (*edits.names, *(adds or ())), (*edits.unnames, *(removes or ()))
                edits = msgspec.structs.replace(edits, names=names, unnames=unnames)
    return edits


async def version_alter(request: Request, ctx: Context, *, body: VersionUpdates) -> Response:
    """Apply updates of comment, properties, URIs and aliases to a model version."""
    return await _alter(request, ctx, body=body, is_alias=False)


async def alias_alter(request: Request, ctx: Context, *, body: VersionUpdates) -> Response:
    """Apply updates of comment, properties, URIs and aliases to the model version that an alias points to."""
    return await _alter(request, ctx, body=body, is_alias=True)


async def _delete(request: Request, ctx: Context, *, is_alias: bool) -> Response:
    schema_path, name = object_path_of(request)
    which = _version_selector(request, is_alias=is_alias)
    path = await schema_path.path(ctx, name)
    return await drop_response(
        models.version_delete(ctx, schema_path.scope, path=path, which=which), "model_version", Kind.MODEL.word
    )


async def version_delete(request: Request, ctx: Context) -> Response:
    """Delete a model version; a missing one is not an error."""
    return await _delete(request, ctx, is_alias=False)


async def alias_delete(request: Request, ctx: Context) -> Response:
    """Delete the model version that an alias points to; a missing one is not an error."""
    return await _delete(request, ctx, is_alias=True)


_MODELS = "/metalakes/{m}/catalogs/{c}/schemas/{s}/models"
_LIST = "Failed to operate model(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate model(s) [{body.name}] operation [REGISTER] under schema [{2}]"
_ONE = "Failed to operate model(s) [{3}] operation [%s] under schema [{2}]"
_VERSION = "Failed to operate model(s) version [{4}] of [{3}] operation [%s] under schema [{2}]"


def _of_version(
    part: str, suffix: str, *, handlers: tuple[Handler, Handler, Handler, Handler]
) -> tuple[Route[Handler], ...]:
    load, uri, alter, drop = handlers
    path = f"{_MODELS}/{part}"
    return (
        Route(method="GET", path=path, handler=load, operation=f"load-model-{suffix}"),
        Route(method="GET", path=f"{path}/uri", handler=uri, operation=f"get-model-{suffix}-uri", query=("uriName",)),
        Route(method="PUT", path=path, handler=alter, operation=f"alter-model-{suffix}"),
        Route(method="DELETE", path=path, handler=drop, operation=f"delete-model-{suffix}"),
    )


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_MODELS, handler=wrap_handler(_LIST, _LEAF.list), operation="list-models"),
    Route(
        method="POST",
        path=_MODELS,
        handler=wrap_body_handler(_NEW, ModelRegister, model_register),
        operation="register-model",
        asks=(Action.MODEL_CREATE,),
    ),
    Route(
        method="GET",
        path=f"{_MODELS}/{{model}}",
        handler=wrap_handler(_ONE % "LOAD", _LEAF.load),
        operation="load-model",
    ),
    Route(
        method="PUT",
        path=f"{_MODELS}/{{model}}",
        handler=wrap_body_handler(_ONE % "ALTER", EntityUpdates, model_alter),
        operation="alter-model",
        asks=(Action.MODEL_ALTER,),
    ),
    Route(
        method="DELETE",
        path=f"{_MODELS}/{{model}}",
        handler=wrap_handler(_ONE % "DELETE", _LEAF.drop),
        operation="delete-model",
    ),
    Route(
        method="GET",
        path=f"{_MODELS}/{{model}}/versions",
        handler=wrap_handler(_ONE % "LIST_VERSIONS", versions_list),
        operation="list-model-versions",
        query=("details",),
    ),
    Route(
        method="POST",
        path=f"{_MODELS}/{{model}}/versions",
        handler=wrap_body_handler(_ONE % "LINK", VersionLink, version_link),
        operation="link-model-version",
        asks=(Action.MODEL_LINK,),
    ),
    *_of_version(
        ONE_VERSION,
        "version",
        handlers=(
            wrap_handler(_VERSION % "LOAD", version_load),
            wrap_handler(_VERSION % "LOAD", version_uri),
            wrap_body_handler(_VERSION % "ALTER", VersionUpdates, version_alter),
            wrap_handler(_VERSION % "DELETE", version_delete),
        ),
    ),
    *_of_version(
        ONE_ALIAS,
        "alias",
        handlers=(
            wrap_handler(_VERSION % "LOAD", alias_load),
            wrap_handler(_VERSION % "LOAD", alias_uri),
            wrap_body_handler(_VERSION % "ALTER", VersionUpdates, alias_alter),
            wrap_handler(_VERSION % "DELETE", alias_delete),
        ),
    ),
)
