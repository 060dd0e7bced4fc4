"""Filesets: where their files are, by names, from templates or from what their schema and catalog say; and what lies there.

May import the rooms below. Knows no wire format. A fileset itself is found, listed and altered as what is in `services.lookup.leaves`. Every place
lies below the catalog's roots when the fileset is made, and is asked for again each time that it is told or listed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from limnos.access.actions import Action
from limnos.files import is_local, is_within, normalise, real, refuse_alias
from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.places import PlaceKind
from limnos.model.records import CatalogRecord, FilesetRecord, NamespaceRecord
from limnos.model.uuids import new_uuid
from limnos.names.iceberg import render
from limnos.services.catalog.fileset_purges import fileset_purge_later
from limnos.services.lookup.leaves import exists, leaf_create, leaf_drop, leaf_insert, leaf_load
from limnos.services.request.places import place_of
from limnos.services.request.table_formats import require_held
from limnos.services.storage.place_claims import places_release, places_take

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.model.entities import Node
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.lookup.leaves import LeafCreate, LeafDrop
    from limnos.services.request.context import Context
    from limnos.services.request.places import Place
    from limnos.services.request.scene import Scene, Scope
    from limnos.store.tx import Tx

UNKNOWN: Final = "unknown"
"""The name of a location that came without one."""
DEFAULT_NAME: Final = "default-location-name"
_LOCATION: Final = "location"
_NAMED: Final = "location-"
_PLACEHOLDER: Final = "placeholder-"
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_FILLS = re.compile(r"[\w.@=+ -]+")
NAMES_MAX: Final = 100
"""Locations that one fileset has at most."""


class FilesetRequest(NamedTuple):
    """What somebody asks for who makes a fileset."""

    comment: str | None
    external: bool
    locations: dict[str, str]
    properties: dict[str, str]


class FileInfo(NamedTuple):
    """Something in a directory of a fileset."""

    name: str
    is_directory: bool
    size: int
    modified_ms: int
    path: str


async def fileset_create(ctx: Context, scope: Scope, *, path: Levels, request: FilesetRequest) -> Node:
    """Make a fileset; the local directories of a managed one are there then. Raises as `leaf_create`; OutsideRoots, BadRequest."""
    uuid = new_uuid(ctx.services.store.time.now_ms())

    def decide(scene: Scene) -> tuple[FilesetRecord, Place]:
        scene.require_in_use()
        scene.look_up(Kind.NAMESPACE, path[:-1], Action.FILESET_CREATE)
        require_held(scene, Kind.FILESET)
        try:
            return _record(scene, path, request=request, uuid=uuid), place_of(scene)
        except BadRequest:
            if scene.find(path, Kind.FILESET)[0] is not None:
                raise exists(path, Kind.FILESET) from None  # clients ask whether it is there by making it
            raise

    record, place = await ctx.read(scope, decide)
    if not record.external:
        for location in record.locations.values():
            ctx.services.files.make_directory(location, roots=place.roots)
    return await leaf_create(ctx, scope, path=path, kind=Kind.FILESET, record=lambda _: record, insert=fileset_insert)


def fileset_insert(tx: Tx, permit: Permit[LeafCreate]) -> Node:
    """Insert the fileset with its places. Raises BadRequest where it would share files, Unavailable where files are being deleted."""
    record = cast("FilesetRecord", permit.command.record)
    locations = tuple(dict.fromkeys(record.locations.values()))
    node = leaf_insert(tx, permit)
    kind = PlaceKind.EXTERNAL_FILESET if record.external else PlaceKind.FILESET
    places_take(tx, kind, owner_id=node.id, catalog_id=permit.zone, locations=locations)
    tx.fileset_places.create(node.id, locations, managed=not record.external)
    return node


async def fileset_drop(ctx: Context, scope: Scope, *, path: Levels) -> None:
    """Drop a fileset; when it cannot be brought back any longer, the files of a managed one go. Raises NotFound, Forbidden, Protected."""
    await leaf_drop(ctx, scope, path=path, kind=Kind.FILESET, delete=fileset_delete)
    if not ctx.services.defaults.keep_dropped_ms:
        ctx.services.wake_worker()


def fileset_delete(tx: Tx, permit: Permit[LeafDrop]) -> None:
    """Drop the fileset; where nothing is kept, its files go now."""
    fileset_bury(tx, tx.nodes.confirm(permit.command.node), keep_ms=permit.command.keep_ms)


def fileset_bury(tx: Tx, held: Node, *, keep_ms: int) -> None:
    """Drop a fileset that was confirmed, in a transaction."""
    managed = not cast("FilesetRecord", held.record).external
    if not keep_ms:
        places_release(tx, held.id)
        if managed:
            fileset_purge_later(tx, catalog=held.zone, fileset=held.id)
    tx.nodes.drop(held, keep_ms=keep_ms, purges=managed)


def _record(scene: Scene, path: Levels, *, request: FilesetRequest, uuid: str) -> FilesetRecord:
    place, properties = place_of(scene), dict(request.properties)
    namespace, _ = scene.find(path[:-1], Kind.NAMESPACE)
    above = {} if namespace is None else cast("NamespaceRecord", namespace.record).properties
    wanted = request.locations or _inherited(scene.catalog_record, above, path=path)
    if not wanted and request.external:
        raise BadRequest("An external fileset has a location: give storageLocation or storageLocations")
    holes = _holes(scene, path, properties=(scene.catalog_record.properties, above, properties))
    locations = {name: place.normal_location(_filled(text, holes), "") for name, text in wanted.items()}
    locations = locations or {UNKNOWN: place.own_location(uuid)}
    if len(locations) > NAMES_MAX or not all(name.strip() for name in locations):
        raise BadRequest(f"A fileset has at most {NAMES_MAX} locations, each with a name")
    default = (
        properties.setdefault(DEFAULT_NAME, next(iter(locations)))
        if len(locations) == 1
        else properties.get(DEFAULT_NAME)
    )
    if default not in locations:
        raise BadRequest(
            f"Property {DEFAULT_NAME} says which of several locations is meant: set it to one of {', '.join(locations)}"
        )
    return FilesetRecord(request.comment, properties, request.external, locations)


def _inherited(catalog: CatalogRecord, schema: Mapping[str, str], *, path: Levels) -> dict[str, str]:
    """Return the locations that the schema gives its filesets, else the catalog; those without placeholders are added to."""
    for properties, rest in ((schema, path[-1:]), (catalog.properties, path)):
        found = named_locations(properties)
        if found:
            return {
                name: text if _HOLE.search(text) else "/".join((text.rstrip("/"), *rest))
                for name, text in found.items()
            }
    return {}


def named_locations(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the locations that properties name: `location`, and `location-NAME`."""
    found = {UNKNOWN: properties[_LOCATION]} if properties.get(_LOCATION) else {}
    named = {key.removeprefix(_NAMED): value for key, value in properties.items() if key.startswith(_NAMED) and value}
    return found | named


def _holes(scene: Scene, path: Levels, *, properties: tuple[Mapping[str, str], ...]) -> dict[str, str]:
    """What may stand in a template: the names of the fileset and above it, who makes it, and what properties give."""
    given = {
        key.removeprefix(_PLACEHOLDER): value
        for each in properties
        for key, value in each.items()
        if key.startswith(_PLACEHOLDER)
    }
    return {**given, "catalog": scene.catalog.name, "schema": path[-2], "fileset": path[-1], "user": scene.user}


def _filled(text: str, holes: Mapping[str, str]) -> str:
    """Put values in the place of placeholders. Raises BadRequest for one that has none, or one that is no part of a path."""

    def fill(found: re.Match[str]) -> str:
        value = holes.get(found[1])
        if value is None:
            raise BadRequest(
                f"Location {text}: nothing is known of {found[0]}: set the property {_PLACEHOLDER}{found[1]}"
            )
        if not _FILLS.fullmatch(value) or not value.strip("."):
            raise BadRequest(f"Location {text}: the value of {found[0]} cannot be part of a path: {value}")
        return value

    return _HOLE.sub(fill, text)


def location_name(record: FilesetRecord, name: str | None) -> str:
    """Return the name of the location that is meant: the one that is named, else the default one."""
    return name or record.properties.get(DEFAULT_NAME, UNKNOWN)


def place_in(scene: Scene, path: Levels, *, sub_path: str | None, name: str | None) -> tuple[str, Place]:
    """Return where something in a fileset lies, for who may load that. Raises NotFound for a location's name, BadRequest, OutsideRoots."""
    node = leaf_load(scene, path, kind=Kind.FILESET)
    record = cast("FilesetRecord", node.record)
    scene.defaults.place_conflicts.refuse(node.id, what="fileset")
    if sub_path is None:
        raise BadRequest("Query parameter sub_path is missing: name the file within the fileset, or / for all of it")
    wanted, place = location_name(record, name), place_of(scene)
    if wanted not in record.locations:
        raise NotFound(
            f"Fileset {render(path)} has no location {wanted}: it has {', '.join(record.locations)}",
            kind="location_name",
        )
    base, rest = record.locations[wanted], sub_path.strip("/")
    place.check(base)  # the catalog's roots may have been others when it was made
    location = f"{base}/{rest}" if rest else base
    if not is_within(normalise(location), [base]):
        raise BadRequest(f"Path {sub_path} leads out of the fileset: name something in it")
    return location, place


async def fileset_location(ctx: Context, scope: Scope, *, path: Levels, sub_path: str | None, name: str | None) -> str:
    """Return where something in a fileset lies. Raises NotFound, Forbidden, BadRequest, OutsideRoots."""
    return (await ctx.read(scope, lambda scene: place_in(scene, path, sub_path=sub_path, name=name)))[0]


async def fileset_files(ctx: Context, scope: Scope, *, path: Levels, sub_path: str, name: str | None) -> list[FileInfo]:
    """List what lies directly in a directory of a fileset, directories first. Raises as `fileset_location`; StorageFailed, Unavailable."""
    location, place = await ctx.read(scope, lambda scene: place_in(scene, path, sub_path=sub_path, name=name))
    if is_local(location):  # links may be younger than the fileset
        base = location.removesuffix(f"/{sub_path.strip('/')}")
        refuse_alias(base, place.roots)
        if not is_within(real(location), [real(base)]):
            refuse_alias(location, place.roots)
    files, properties = ctx.services.files, place.catalog.properties
    within = "/".join(("/fileset", str(scope.catalog), *path, *filter(None, [sub_path.strip("/")])))
    directories = await files.directories(location, properties, roots=place.roots)
    entries = await files.entries(location, properties, roots=place.roots)
    return [
        *(FileInfo(each, True, 0, 0, within) for each in sorted(directories)),
        *(FileInfo(each.name, False, each.size, each.modified_ms, within) for each in sorted(entries)),
    ]
