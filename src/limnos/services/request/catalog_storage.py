# SPDX-License-Identifier: Apache-2.0
"""Catalog storage: a catalog's warehouse and allowed roots, within the server's allowed storage.

Reads and writes no files (see `services.request.files`), but checks symbolic links of local locations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from limnos.files import (
    AllowedStorage,
    allowed_roots,
    check_size,
    check_within,
    is_local,
    is_within,
    normalise,
    parse,
    place_key,
    refuse_alias,
)
from limnos.model.errors import BadRequest, OutsideRoots, StorageFailed
from limnos.model.kinds import FILESET_PROVIDER, REST_PROVIDERS, TABLE_FORMATS
from limnos.model.records import CatalogRecord
from limnos.services.request import catalog_traits
from limnos.services.request.files import FileOperations
from limnos.services.request.location_rules import LocationRelation, relation_of
from limnos.services.request.named_storages import NamedStorages
from limnos.services.request.request_view import RequestView
from limnos.sources.vending import keys_life_ms

WAREHOUSE = "warehouse"
DIRECTORY = catalog_traits.DIRECTORY
"""The property of a catalog that shows the Lance tables of a directory."""
ALLOWED_LOCATIONS = "allowed-locations"
RESTRICTED_READS_DIRECTORY = "restricted-reads"
"""The directory in a catalog's warehouse for rewritten files of restricted tables. Nothing else may lie in it."""
PROVIDERS_WITH_WAREHOUSE = frozenset({*TABLE_FORMATS, FILESET_PROVIDER})
"""Providers whose catalogs have a warehouse."""
_UUID = re.compile("[0-9a-f-]{36}")
_NAMESPACE = re.compile("n[0-9]+")
"""A namespace's directory in its catalog's warehouse.

A table at that location would block the tables of the namespace.
"""


class CatalogStorage(NamedTuple):
    """A catalog's storage: its warehouse, allowed roots and connection properties.

    `home` is the normal form of the warehouse; None if the server does not allow it.
    """

    catalog: CatalogRecord
    warehouse: str
    roots: tuple[str, ...]
    home: str | None
    allowed: AllowedStorage

    def own_location(self, table_uuid: str) -> str:
        """Return the default location of a table. It contains no names and is unique to the table."""
        return f"{self.warehouse}/{table_uuid.replace('-', '')}"

    def normal_location(self, location: str, table_uuid: str, *, has_links: bool = True) -> str:
        """Return the normal form of a new table's location. `has_links` is false if no symbolic link is on its path.

        Raises:
            OutsideRoots: The location is outside of the roots of the catalog or of the server.
            BadRequest: The location is too long or too deep, contains the warehouse or the server's own directory, or
                is a namespace's directory.
        """
        name = table_uuid.replace("-", "")
        if self.home is not None and location == f"{self.warehouse}/{name}" and _UUID.fullmatch(table_uuid):
            return f"{self.home}/{name}"  # the default location: nothing to parse
        self.check(location)
        check_size(location)
        key, home = place_key(location), None if self.home is None else place_key(self.home)
        if home is not None and relation_of(key, home) in (LocationRelation.SAME, LocationRelation.ABOVE):
            raise BadRequest(f"Location {location} contains the catalog's warehouse: choose one below it")
        if any(self.allowed.holds_server_files(each) for each in {location, key}):
            raise BadRequest(f"Location {location} contains the server's own directory: choose another")
        if has_links and is_local(location):
            refuse_alias(location, self.roots)
        normal = normalise(location)
        if home is not None and _NAMESPACE.fullmatch(key.removeprefix(f"{home}/")):
            raise BadRequest(
                f"Location {location} is the location of a namespace's tables: choose one below it, or leave it out"
            )
        return normal

    def keys_life_ms(self, location: str) -> int:
        """Return the longest lifetime of credentials and signatures for a location that the catalog gives, in
        milliseconds; 0 if it gives none.
        """
        return keys_life_ms(self.catalog.properties, parse(location).scheme, is_named=False)

    async def has_unclaimed_files(self, files: FileOperations, location: str) -> bool:
        """Return whether files are at the new location of an object; False without a look if its catalog gives no keys.

        Clients of the object get no keys for such files: they belong to somebody whom the register of locations does
        not know (decision record 0164). Call it before anything is written there. The caller's own earlier files do not
        count: the claim of the location knows them. True if the storage refuses to list the location. Raises
        ServiceUnavailable if it does not answer.
        """
        if not self.keys_life_ms(location):
            return False
        try:
            return await files.holds(location, self.catalog.properties, roots=self.roots)
        except StorageFailed:
            return True

    def check(self, location: str) -> None:
        """Check that a location is within the catalog's roots and that the server allows it.

        Raises OutsideRoots if not, and BadRequest for a location in the directory of restricted reads.
        """
        may_be_reserved = RESTRICTED_READS_DIRECTORY in location.lower() or "%" in location  # only these need the key
        if may_be_reserved and RESTRICTED_READS_DIRECTORY in place_key(location).split("/"):
            raise BadRequest(
                f"Location {location} is reserved for rewritten files of restricted tables: choose another"
            )
        if not self.roots and self.warehouse:
            self.allowed.check_root(self.warehouse)
        try:
            check_within(location, self.roots)
        except OutsideRoots as error:
            if self.allowed.covers(location):
                raise
            raise OutsideRoots(
                f"{error.message} The server does not allow it either: it must be started with --allow-root"
                f" {_table_directory(normalise(location))}, or a directory above it (setting storage.allowed_roots).",
                location=location,
            ) from error
        self.allowed.check_root(location)


def _table_directory(location: str) -> str:
    """Return the directory of the table whose metadata file is at a location; any other location as it is."""
    directory, separator, _ = location.rpartition("/metadata/")
    return directory if separator and location.endswith(".metadata.json") else location


def split_own_locations(location: str, others: Iterable[str]) -> tuple[list[str], list[str]]:
    """Partition the locations of files into those below a table's location and all others."""
    own_locations: list[str] = []
    outside_locations: list[str] = []
    for each in others:
        (own_locations if is_within(each, [location]) else outside_locations).append(each)
    return own_locations, outside_locations


def catalog_storage_of(request_view: RequestView) -> CatalogStorage:
    """Return the storage of the request's catalog.

    A catalog without a warehouse has a directory in the server's warehouse.
    """
    scope_cache, key = request_view.view.scopes, ("place", request_view.scope)
    storage: CatalogStorage | None = scope_cache.get(key)
    if storage is None:
        record = request_view.catalog_record
        own_location = f"{request_view.defaults.warehouse}/{request_view.catalog.id}"
        storage = scope_cache[key] = catalog_storage_within(
            record, own_location, request_view.defaults.allowed, storages=request_view.defaults.storages
        )
    return storage


def catalog_storage_within(
    record: CatalogRecord, fallback: str, allowed: AllowedStorage, *, storages: NamedStorages
) -> CatalogStorage:
    """Return a catalog's storage, with its named storage applied and its roots narrowed to the server's current allowed
    roots.

    Args:
        record: The catalog's record.
        fallback: The warehouse of a catalog whose properties have none.
        allowed: The storage that the server allows.
        storages: The named storages of the settings, which also decrypt secrets.
    """
    allowed = storages.allowed_storage(record.properties, allowed)
    record = replace(record, properties=storages.open_properties(record.properties))
    roots = roots_of(record, fallback)
    warehouse = warehouse_of(record, fallback)
    home = roots[0] if warehouse and roots and allowed.covers(roots[0]) else None
    return CatalogStorage(
        catalog=record, warehouse=warehouse, roots=allowed.narrow_roots(roots), home=home, allowed=allowed
    )


def warehouse_of(record: CatalogRecord, fallback: str) -> str:
    """Return the directory of a catalog's tables: its `warehouse` property, else `fallback`.

    In a catalog of another Iceberg REST service the property means a warehouse of that service, so `fallback` applies.
    """
    if record.provider in REST_PROVIDERS:
        return fallback.rstrip("/")
    return (record.properties.get(WAREHOUSE) or fallback).rstrip("/")


def roots_of(record: CatalogRecord, fallback: str) -> tuple[str, ...]:
    """Return a catalog's roots, below which tables and their metadata must be: warehouse and allowed locations; for a
    fileset catalog also its locations.
    """
    more = [record.properties.get(ALLOWED_LOCATIONS) or "", *_bases(record.properties, provider=record.provider)]
    return allowed_roots(warehouse_of(record, fallback), ",".join(filter(None, more)))


def _bases(properties: Mapping[str, str], *, provider: str) -> list[str]:
    """Return the locations of a fileset catalog, each up to its first placeholder."""
    if provider != FILESET_PROVIDER:
        return []
    texts = [value for key, value in properties.items() if key == "location" or key.startswith("location-")]
    return [
        each.partition("{{")[0] if "{{" not in each else each.partition("{{")[0].rpartition("/")[0] for each in texts
    ]


def check_locations(properties: Mapping[str, str], allowed: AllowedStorage, *, provider: str = "") -> None:
    """Check the warehouse, roots and endpoints in a catalog's properties.

    Raises BadRequest for an invalid location, or an endpoint that is invalid or not allowed; OutsideRoots for a
    location that the server does not allow.
    """
    allowed.check_endpoints(properties)
    for location in stated_locations(properties, provider=provider):
        check_size(location)
        if normalise(location) == "file:///":
            raise BadRequest(f"Location {location} is the root of the file system: name a directory in it")
        allowed.check_root(location)


def stated_locations(properties: Mapping[str, str], *, provider: str = "") -> list[str]:
    """Return the locations that a catalog's properties set, not normalised."""
    locations = (
        None if provider in REST_PROVIDERS else properties.get(WAREHOUSE),
        properties.get(DIRECTORY),
        *(properties.get(ALLOWED_LOCATIONS) or "").split(","),
        *_bases(properties, provider=provider),
    )
    return [each.strip() for each in locations if each and each.strip()]


def check_server_location(location: str, warehouse: str, *, catalog_id: int | None) -> None:
    """Raise BadRequest if a catalog's location overlaps the server's warehouse.

    The directory of the catalog in that warehouse is allowed. `catalog_id` is the catalog whose directory is allowed;
    None allows the directory of any catalog, as for an import.
    """
    key, server = place_key(location), place_key(warehouse)
    relation = relation_of(key, server)
    if relation is LocationRelation.BELOW:
        directory = key.removeprefix(server).split("/")[1]
        if catalog_id is None or not directory.isdecimal() or directory == str(catalog_id):
            return
        raise BadRequest(
            f"Location {location} is reserved for another catalog in the server's warehouse: choose another"
        )
    if relation is not None:
        raise BadRequest(
            f"Location {location} contains the server's own warehouse, in which each catalog has a directory: choose"
            " another, or leave it out to get such a directory"
        )
