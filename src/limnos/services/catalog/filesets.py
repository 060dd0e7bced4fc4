# SPDX-License-Identifier: Apache-2.0
"""Filesets: create and drop filesets, resolve their named locations and templates, and list their files.

Must not know any wire format. `services.lookup.namespace_objects` finds, lists and alters filesets. Every location must
lie below the catalog's roots when the fileset is created. That is checked again each time a location is returned or
listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple, cast

from limnos.access.actions import Action
from limnos.files import is_local, is_within, normalise, real_path, refuse_alias
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord, FilesetRecord, NamespaceRecord
from limnos.model.storage_locations import LocationKind
from limnos.model.uuids import new_uuid
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.lookup import namespace_objects
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import require_containable
from limnos.services.storage.fileset_purges import fileset_purge_later
from limnos.services.storage.location_claims import locations_claim, locations_release
from limnos.store.tx import Tx

UNKNOWN: Final = "unknown"
"""The name of a location that was given without one."""
DEFAULT_NAME: Final = "default-location-name"
_LOCATION: Final = "location"
_NAMED: Final = "location-"
_PLACEHOLDER: Final = "placeholder-"
_PLACEHOLDER_PATTERN = re.compile(r"\{\{(\w+)\}\}")
_VALUE_PATTERN = re.compile(r"[\w.@=+ -]+")
NAMES_MAX: Final = 100
"""The maximum number of locations of one fileset."""


class FilesetRequest(NamedTuple):
    """A request to create a fileset: comment, type, named locations and properties."""

    comment: str | None
    external: bool
    locations: dict[str, str]
    properties: dict[str, str]


class FileInfo(NamedTuple):
    """A file or directory in a fileset."""

    name: str
    is_directory: bool
    size: int
    modified_ms: int
    path: str


async def fileset_create(ctx: Context, scope: RequestScope, *, path: Levels, request: FilesetRequest) -> Node:
    """Create a fileset, and the local directories of a managed one.

    Raises as `namespace_object_create`, and OutsideRoots for a location outside of the catalog's roots, BadRequest for
    an invalid location or placeholder.
    """
    uuid = new_uuid(ctx.services.store.time.now_ms())

    def decide(request_view: RequestView) -> tuple[FilesetRecord, CatalogStorage]:
        request_view.require_in_use()
        request_view.look_up(Kind.NAMESPACE, path[:-1], Action.FILESET_CREATE)
        require_containable(request_view, Kind.FILESET)
        try:
            return _record(request_view, path, request=request, uuid=uuid), catalog_storage_of(request_view)
        except BadRequest:
            if request_view.find(path, Kind.FILESET)[0] is not None:
                # Clients create a fileset to test whether it exists, so this error precedes errors of the form.
                raise namespace_objects.namespace_object_exists_error(path, Kind.FILESET) from None
            raise

    record, catalog_storage = await ctx.read(scope, decide)
    had_files: set[str] = set()
    if not record.external:
        for location in record.locations.values():
            if await catalog_storage.has_unclaimed_files(ctx.services.files, location):
                had_files.add(location)
            ctx.services.files.make_directory(location, roots=catalog_storage.roots)
    insert = partial(fileset_insert, had_files=frozenset(had_files))
    return await namespace_objects.namespace_object_create(
        ctx, scope, path=path, kind=Kind.FILESET, record=lambda _: record, insert=insert
    )


def fileset_insert(
    tx: Tx, permit: Permit[namespace_objects.NamespaceObjectCreate], *, had_files: frozenset[str] = frozenset()
) -> Node:
    """Insert the fileset with its locations. `had_files` are those that have files of nobody.

    Raises AlreadyExists, BadRequest if it would share files with another object, ServiceUnavailable while files there
    are being deleted.
    """
    record = cast("FilesetRecord", permit.command.record)
    locations = tuple(dict.fromkeys(record.locations.values()))
    node = namespace_objects.namespace_object_insert(tx, permit)
    kind = LocationKind.EXTERNAL_FILESET if record.external else LocationKind.FILESET
    locations_claim(tx, kind, owner_id=node.id, catalog_id=permit.zone, locations=locations, had_files=had_files)
    tx.fileset_places.create(node.id, locations, managed=not record.external)
    return node


async def fileset_drop(ctx: Context, scope: RequestScope, *, path: Levels) -> None:
    """Drop a fileset. The files of a managed one are deleted when it can no longer be restored.

    Raises NotFound, PermissionDenied, ProtectedObject.
    """
    await namespace_objects.namespace_object_drop(ctx, scope, path=path, kind=Kind.FILESET, delete=fileset_delete)
    if not ctx.services.defaults.keep_dropped_ms:
        ctx.services.wake_worker()


def fileset_delete(tx: Tx, permit: Permit[namespace_objects.NamespaceObjectDrop]) -> None:
    """Drop the fileset. Without a trash, a task that deletes a managed fileset's files is created at once."""
    fileset_drop_confirmed(tx, tx.nodes.confirm(permit.command.node), keep_ms=permit.command.keep_ms)


def fileset_drop_confirmed(tx: Tx, node: Node, *, keep_ms: int) -> None:
    """Drop a fileset within a transaction; the caller has checked that `node` is current.

    `keep_ms` is the time for which it can be restored, in milliseconds. With 0 it is deleted permanently, and a task is
    created that deletes a managed fileset's files.
    """
    managed = not cast("FilesetRecord", node.record).external
    if not keep_ms:
        locations_release(tx, node.id)
        if managed:
            fileset_purge_later(tx, catalog=node.zone, fileset=node.id)
    tx.nodes.drop(node, keep_ms=keep_ms, purges=managed)


def _record(request_view: RequestView, path: Levels, *, request: FilesetRequest, uuid: str) -> FilesetRecord:
    catalog_storage, properties = catalog_storage_of(request_view), dict(request.properties)
    namespace, _ = request_view.find(path[:-1], Kind.NAMESPACE)
    above = {} if namespace is None else cast("NamespaceRecord", namespace.record).properties
    requested = request.locations or _inherited_locations(request_view.catalog_record, above, path=path)
    if not requested and request.external:
        raise BadRequest("An external fileset needs a location: give storageLocation or storageLocations")
    holes = _placeholder_values(
        request_view, path, properties=(request_view.catalog_record.properties, above, properties)
    )
    locations = {
        name: catalog_storage.normal_location(_fill_template(text, holes), "") for name, text in requested.items()
    }
    locations = locations or {UNKNOWN: catalog_storage.own_location(uuid)}
    if len(locations) > NAMES_MAX or not all(name.strip() for name in locations):
        raise BadRequest(f"A fileset has at most {NAMES_MAX} locations, each with a name")
    default = (
        properties.setdefault(DEFAULT_NAME, next(iter(locations)))
        if len(locations) == 1
        else properties.get(DEFAULT_NAME)
    )
    if default not in locations:
        raise BadRequest(
            f"Property {DEFAULT_NAME} selects one of several locations: set it to one of {', '.join(locations)}"
        )
    return FilesetRecord(comment=request.comment, properties=properties, external=request.external, locations=locations)


def _inherited_locations(catalog: CatalogRecord, schema: Mapping[str, str], *, path: Levels) -> dict[str, str]:
    """Return the default locations of a fileset, from its schema or else its catalog.

    The names below that schema or catalog are appended to a location without placeholders.
    """
    for properties, rest in ((schema, path[-1:]), (catalog.properties, path)):
        results = named_locations(properties)
        if results:
            return {
                name: text if _PLACEHOLDER_PATTERN.search(text) else "/".join((text.rstrip("/"), *rest))
                for name, text in results.items()
            }
    return {}


def named_locations(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the locations in properties, by name: `location-NAME` gives the location `NAME`, and `location` the one
    named `unknown`.
    """
    results = {UNKNOWN: properties[_LOCATION]} if properties.get(_LOCATION) else {}
    locations = {
        key.removeprefix(_NAMED): value for key, value in properties.items() if key.startswith(_NAMED) and value
    }
    return results | locations


def _placeholder_values(
    request_view: RequestView, path: Levels, *, properties: tuple[Mapping[str, str], ...]
) -> dict[str, str]:
    """Return the values of placeholders: the names of the fileset and its parents, the user, and the `placeholder-`
    properties.
    """
    arguments = {
        key.removeprefix(_PLACEHOLDER): value
        for each in properties
        for key, value in each.items()
        if key.startswith(_PLACEHOLDER)
    }
    return {
        **arguments,
        "catalog": request_view.catalog.name,
        "schema": path[-2],
        "fileset": path[-1],
        "user": request_view.user,
    }


def _fill_template(text: str, holes: Mapping[str, str]) -> str:
    """Replace placeholders by their values.

    Raises BadRequest for one without a value, or whose value cannot be part of a path.
    """

    def fill(match: re.Match[str]) -> str:
        value = holes.get(match[1])
        if value is None:
            raise BadRequest(f"Location {text}: {match[0]} is undefined: set the property {_PLACEHOLDER}{match[1]}")
        if not _VALUE_PATTERN.fullmatch(value) or not value.strip("."):
            raise BadRequest(f"Location {text}: the value of {match[0]} cannot be part of a path: {value}")
        return value

    return _PLACEHOLDER_PATTERN.sub(fill, text)


def is_fixed(name: str) -> bool:
    """Return whether a property decides where a fileset's files are."""
    return name == DEFAULT_NAME or name.startswith(_PLACEHOLDER)


def location_name(record: FilesetRecord, name: str | None) -> str:
    """Return the name of a fileset's location: `name`, or the default location's name for None."""
    return name or record.properties.get(DEFAULT_NAME, UNKNOWN)


class FilesetPath(NamedTuple):
    """The location of a path in a fileset. `base` is the fileset's own location, and `node_id` its id."""

    location: str
    place: CatalogStorage
    base: str
    node_id: int


def place_identity(fileset: FilesetPath) -> tuple[int, str]:
    """Return the fileset's id and the location: two decisions about a path must agree on both."""
    return fileset.node_id, fileset.location


def fileset_path(
    request_view: RequestView,
    path: Levels,
    *,
    sub_path: str | None,
    name: str | None,
    action: Action = Action.FILESET_LOAD,
) -> FilesetPath:
    """Return the location of a path in a fileset, for a caller who may do the action on the fileset.

    Raises NotFound (the fileset, or no location of that name), PermissionDenied, BadRequest (no `sub_path`, or one that
    leads out of the fileset), OutsideRoots (a location outside of the catalog's roots).
    """
    node = namespace_objects.namespace_object_find(request_view, path, kind=Kind.FILESET, action=action).entity
    record = cast("FilesetRecord", node.record)
    request_view.defaults.location_conflicts.refuse(node.id, what="fileset")
    if sub_path is None:
        raise BadRequest("Query parameter sub_path is missing: name the file within the fileset, or / for all of it")
    expected, catalog_storage = location_name(record, name), catalog_storage_of(request_view)
    if expected not in record.locations:
        raise NotFound(
            f"Fileset {render(path)} has no location {expected}: it has {', '.join(record.locations)}",
            kind="location_name",
        )
    base, rest = record.locations[expected], sub_path.strip("/")
    catalog_storage.check(base)  # the catalog's roots may have changed since the fileset was created
    location = f"{base}/{rest}" if rest else base
    if not is_within(normalise(location), [base]):
        raise BadRequest(f"Path {sub_path} is outside of the fileset: name a file in it")
    return FilesetPath(location, catalog_storage, base, node.id)


async def fileset_location(
    ctx: Context, scope: RequestScope, *, path: Levels, sub_path: str | None, name: str | None
) -> str:
    """Return the location of a path in a fileset. Raises as `fileset_path`."""
    fileset = await ctx.read(scope, lambda view: fileset_path(view, path, sub_path=sub_path, name=name))
    return fileset.location


async def fileset_files(
    ctx: Context, scope: RequestScope, *, path: Levels, sub_path: str, name: str | None
) -> list[FileInfo]:
    """List the files and directories directly in a directory of a fileset, directories first.

    Raises as `fileset_location`, and StorageFailed, ServiceUnavailable.
    """
    within = "/".join(("/fileset", str(scope.catalog), *path, *filter(None, [sub_path.strip("/")])))

    async def read(fileset: FilesetPath) -> list[FileInfo]:
        check_links(fileset)
        files, properties, roots = ctx.services.files, fileset.place.catalog.properties, fileset.place.roots
        directories = await files.directories(fileset.location, properties, roots=roots)
        entries = await files.entries(fileset.location, properties, roots=roots)
        return [
            *(
                FileInfo(name=printable(each), is_directory=True, size=0, modified_ms=0, path=within)
                for each in sorted(directories)
            ),
            *(
                FileInfo(
                    name=printable(each.name),
                    is_directory=False,
                    size=each.size,
                    modified_ms=each.modified_ms,
                    path=within,
                )
                for each in sorted(entries)
            ),
        ]

    _, listed = await ctx.read_confirmed(
        scope, lambda view: fileset_path(view, path, sub_path=sub_path, name=name), work=read, identity=place_identity
    )
    return listed


def check_links(fileset: FilesetPath) -> None:
    """Refuse a local directory that a symbolic link makes an alias of another location. Raises BadRequest.

    The link may have been created after the fileset.
    """
    if is_local(fileset.location):
        refuse_alias(fileset.base, fileset.place.roots)
        if not is_within(real_path(fileset.location), [real_path(fileset.base)]):
            refuse_alias(fileset.location, fileset.place.roots)


def printable(name: str) -> str:
    """Return the name of a local file as valid Unicode: bytes that are not UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
