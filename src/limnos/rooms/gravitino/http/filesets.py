# SPDX-License-Identifier: Apache-2.0
"""Filesets of a schema: create, list, load, alter, drop; the location of a file, and the entries of a directory.

Has no business rules.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import (
    GravitinoRequestBody,
    NamedBody,
    wrap_body_handler,
    wrap_handler,
)
from limnos.rooms.gravitino.http.namespace_objects import (
    NamespaceObjectRoutes,
    drop_response,
    object_path_of,
    schema_path_of,
)
from limnos.rooms.gravitino.http.updates import (
    RemoveProperty,
    RenameUpdate,
    SetProperty,
    UpdateComment,
    VariedUpdate,
    check_properties,
)
from limnos.services.catalog import filesets
from limnos.services.catalog.filesets import UNKNOWN, FilesetRequest
from limnos.services.request.context import Context

_TYPES = {"managed": False, "external": True}


class FilesetCreate(NamedBody, frozen=True, kw_only=True):
    """The body of a request to create a fileset. `storageLocation` is the unnamed location."""

    comment: str | None = None
    type: str | None = None
    storage_location: str | None = None
    storage_locations: dict[str, str] | None = None
    properties: dict[str, str] | None = None


class RemoveComment(VariedUpdate, frozen=True, tag="removeComment"):
    """The change `removeComment`: removes the fileset's comment."""


class FilesetUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a fileset: its changes, in order. Its locations never change."""

    updates: list[RenameUpdate | UpdateComment | RemoveComment | SetProperty | RemoveProperty]


_LEAF = NamespaceObjectRoutes(Kind.FILESET, dto.fileset)


async def fileset_create(request: Request, ctx: Context, *, body: FilesetCreate) -> Response:
    """Create a fileset with its locations. 409 if the name is taken."""
    schema_path, kind = schema_path_of(request), (body.type or "managed").lower()
    path = await schema_path.path(ctx, body.name)
    if kind not in _TYPES:
        raise BadRequest(f"A fileset must be managed or external, not {kind}")
    locations = {} if not body.storage_location else {UNKNOWN: body.storage_location}
    if locations and (body.storage_locations or locations).get(UNKNOWN, body.storage_location) != body.storage_location:
        raise BadRequest("storageLocation and storageLocations.unknown differ: send one of them")
    fileset_request = FilesetRequest(
        body.comment, _TYPES[kind], locations | (body.storage_locations or {}), check_properties(body.properties)
    )
    return _LEAF.object_response(
        await filesets.fileset_create(ctx, schema_path.scope, path=path, request=fileset_request)
    )


async def fileset_alter(request: Request, ctx: Context, *, body: FilesetUpdates) -> Response:
    """Apply updates of name, comment and properties to a fileset.

    Raises BadRequest for a property that decides where the files are, which is as fixed as the locations.
    """
    for each in body.updates:
        if isinstance(each, (SetProperty, RemoveProperty)) and filesets.is_fixed(each.property):
            raise BadRequest(
                f"Property {each.property} of a fileset is fixed when it is created, like its locations: create another"
            )
    updates = [UpdateComment() if isinstance(each, RemoveComment) else each for each in body.updates]
    return await _LEAF.change(request, ctx, updates=updates)


async def fileset_drop(request: Request, ctx: Context) -> Response:
    """Drop a fileset; a missing one is not an error."""
    schema_path, name = object_path_of(request)
    path = await schema_path.path(ctx, name)
    return await drop_response(filesets.fileset_drop(ctx, schema_path.scope, path=path), Kind.FILESET.word)


async def file_location(request: Request, ctx: Context) -> Response:
    """Return the full location of a file, from its path within the fileset."""
    schema_path, _ = object_path_of(request)
    path, sub_path, location = await _parse_file_path(request, ctx)
    fileset_location = await filesets.fileset_location(
        ctx, schema_path.scope, path=path, sub_path=sub_path, name=location
    )
    return ok(fileLocation=fileset_location)


async def files_list(request: Request, ctx: Context) -> Response:
    """Return the entries of a directory of a fileset."""
    schema_path, _ = object_path_of(request)
    path, sub_path, location = await _parse_file_path(request, ctx)
    infos = await filesets.fileset_files(ctx, schema_path.scope, path=path, sub_path=sub_path or "/", name=location)
    return ok(files=[dto.file_info(each) for each in infos])


async def _parse_file_path(request: Request, ctx: Context) -> tuple[tuple[str, ...], str | None, str | None]:
    """Parse a request for a file: the fileset, the path within it, and the name of the location."""
    schema_path, name = object_path_of(request)
    return await schema_path.path(ctx, name), request.query("sub_path"), request.query("location_name") or None


_FILESETS = "/metalakes/{m}/catalogs/{c}/schemas/{s}/filesets"
_LIST = "Failed to operate fileset(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate fileset(s) [{body.name}] operation [CREATE] under schema [{2}]"
_ONE = "Failed to operate fileset(s) [{3}] operation [%s] under schema [{2}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_FILESETS, handler=wrap_handler(_LIST, _LEAF.list), operation="list-filesets"),
    Route(
        method="POST",
        path=_FILESETS,
        handler=wrap_body_handler(_NEW, FilesetCreate, fileset_create),
        operation="create-fileset",
        asks=(Action.FILESET_CREATE,),
    ),
    Route(
        method="GET",
        path=f"{_FILESETS}/{{fileset}}",
        handler=wrap_handler(_ONE % "LOAD", _LEAF.load),
        operation="load-fileset",
    ),
    Route(
        method="PUT",
        path=f"{_FILESETS}/{{fileset}}",
        handler=wrap_body_handler(_ONE % "ALTER", FilesetUpdates, fileset_alter),
        operation="alter-fileset",
        asks=(Action.FILESET_ALTER,),
    ),
    Route(
        method="DELETE",
        path=f"{_FILESETS}/{{fileset}}",
        handler=wrap_handler(_ONE % "DROP", fileset_drop),
        operation="drop-fileset",
    ),
    Route(
        method="GET",
        path=f"{_FILESETS}/{{fileset}}/files",
        handler=wrap_handler(_ONE % "LIST_FILES", files_list),
        operation="list-fileset-files",
        query=("sub_path", "location_name"),
    ),
    Route(
        method="GET",
        path=f"{_FILESETS}/{{fileset}}/location",
        handler=wrap_handler(_ONE % "GET", file_location),
        operation="get-file-location",
        query=("sub_path", "location_name"),
    ),
)
