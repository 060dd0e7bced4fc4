# SPDX-License-Identifier: Apache-2.0
"""Purges: delete the files of a dropped table, as its metadata lists them, and the directories that become empty.

A purge may be killed at any point and restarted. Every file is deleted before the file that lists it, the metadata file
last, and a missing file is not an error. A writer of metadata could list any file. So a purge deletes and reads only
files below locations that the register has for the table: its location, its data paths, its earlier locations. Nothing
is deleted while another object is at, above or below its location, and nothing at a data path that overlaps another
object; such files are kept and reported. A location without files becomes free afterwards; others stay registered
(`services.upkeep.released_locations`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast
from urllib.parse import quote

import msgspec

from limnos.files import AllowedStorage, is_local, is_within, key_of, path_of, real_path, store_for, sweep_empty
from limnos.formats.avro import BadAvro, texts_of
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import LimnosError, MissingFile
from limnos.model.records import CatalogRecord
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.task_context import TaskContext
from limnos.services.storage.location_claims import rivals_of
from limnos.store.faults import PURGE_POINT, fault_point
from limnos.store.objects.catalogs import catalog_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.purge")
PURGE = "purge-table"
READERS_MS = 3_600_000
"""The retention time of files after their dataset was dropped permanently, in milliseconds: statements may still read
them.
"""
FILES_PER_BEAT = 100
KEPT_NAMED = 10
KEPT_REASON = "kept everything, because the catalog is unknown"
_UNQUOTED: Final = "/~!$&'()*+,;=:@"
METADATA_BYTES_MAX = 1 << 28
MANIFEST_BYTES_MAX = 64 << 20


class UnreadableFile(LimnosError):
    """Raised if a file that lists other files cannot be read, and a retry would fail, too."""

    code = "unreadable"


class PurgePayload(msgspec.Struct, rename="kebab"):
    """The payload of the task: the table's metadata file and location, and the catalog's roots.

    A task of an older release has no location; it is then read from the metadata. Without roots the catalog's current
    ones apply.
    """

    metadata_location: str
    catalog: int
    roots: tuple[str, ...] = ()
    location: str | None = None


class PurgeResult(NamedTuple):
    """The result of a purge: the count of deleted files, and the count and some names of files kept because they are
    not the table's own.
    """

    deleted: int
    kept_count: int
    kept_first: tuple[str, ...]
    is_reached: bool
    """Whether the location existed, so that the storage is the right one, and not a disk that is not mounted."""


def purge_later(tx: Tx, *, catalog: int, metadata_location: str, location: str) -> None:
    """Create the task that purges a dropped table, delayed until no running statement can still read the table."""
    payload = PurgePayload(metadata_location, catalog, location=location)
    tx.tasks.create(PURGE, msgspec.json.encode(payload).decode(), delay_ms=READERS_MS)


async def catalog_storage_find(work: TaskContext, catalog: int) -> CatalogStorage | None:
    """Return a catalog's storage; None if the catalog's record no longer exists."""
    record: CatalogRecord | None = await work.submit(lambda tx: catalog_read(tx, catalog))
    return None if record is None else work.place(record, catalog)


async def purge_run(work: TaskContext, payload: PurgePayload) -> str | None:
    """Purge a dropped table. Returns a sentence about the files that were kept, with the reason; None if all were
    deleted.
    """
    at = payload.location
    catalog_storage = await catalog_storage_find(work, payload.catalog)
    if not payload.roots:
        if catalog_storage is None:
            return KEPT_REASON
        payload = msgspec.structs.replace(payload, roots=catalog_storage.roots)
    owner, own_locations = (
        (0, [])
        if at is None
        else await work.submit(lambda tx: tx.places.is_being_deleted(key_of(at), catalog_id=payload.catalog))
    )
    claims = [] if at is None else await work.submit(lambda tx: rivals_of(tx, at, but=owner))
    other_locations = [] if at is None else [each for each in own_locations if each != key_of(at)]
    free = await work.submit(lambda tx: tuple(each for each in other_locations if not rivals_of(tx, each, but=owner)))
    properties, allowed_storage = (
        ({}, work.allowed) if catalog_storage is None else (catalog_storage.catalog.properties, catalog_storage.allowed)
    )
    purge = TablePurge(payload, properties, rivals=claims, allowed=allowed_storage, data_paths=free)
    purge_result = await work.run_in_thread(purge.run)
    log.info("purged", task=work.task_id, location=at, files=purge_result.deleted)
    if at is not None:
        for each in (key_of(at), *other_locations):
            await location_mark_purged(
                work,
                each,
                catalog=payload.catalog,
                place=catalog_storage,
                is_reached=purge_result.is_reached,
                roots=purge.roots,
            )
    if not purge_result.kept_count:
        return None
    reason = "another table is at that location" if claims else "they are not below the table's own locations"
    log.warning(
        "files of a dropped table are kept",
        task=work.task_id,
        location=at,
        files=purge_result.kept_count,
        reason=reason,
    )
    kept_names = ", ".join(purge_result.kept_first)
    return (
        f"deleted {purge_result.deleted} files; kept {purge_result.kept_count}, as {reason}:"
        f" {kept_names}{', …' if purge_result.kept_count > KEPT_NAMED else ''}"
    )


async def location_mark_purged(
    work: TaskContext,
    key: str,
    *,
    catalog: int,
    place: CatalogStorage | None,
    is_reached: bool,
    roots: Sequence[str] = (),
) -> None:
    """Record the end of a purge at a location: if no file is left, it is free once the object's credentials have
    expired, else reserved for its last owner.

    `is_reached`: the location existed before the purge (`PurgeResult`). `roots` are the catalog's roots when the object
    was dropped; empty for the current ones.
    """
    is_free = place is not None and await work.run_in_thread(
        lambda _: is_empty(key, place, is_reached=is_reached, roots=roots)
    )
    keys_ms = 0 if place is None else place.keys_life_ms(key)
    await work.submit(lambda tx: tx.places.record_purge(key, catalog_id=catalog, whole=is_free, keys_ms=keys_ms))


def is_empty(location: str, place: CatalogStorage, *, is_reached: bool = False, roots: Sequence[str] = ()) -> bool:
    """Return whether certainly no file is at or below a location. Blocks.

    False for a location that its catalog no longer covers. Also False on a local disk if the covering root is missing
    or empty, since the disk may not be mounted.

    Args:
        location: The location, as a key of the register.
        place: The storage of its catalog.
        is_reached: Whether the location existed before, so that the disk is mounted.
        roots: The catalog's roots when the object was dropped; empty for the current ones.

    Raises:
        StorageFailed: The storage refuses or fails.
        ServiceUnavailable: The storage does not answer.
    """
    covering = [root for root in roots or place.roots if is_within(location, [root])]
    if not covering or not place.allowed.covers(location):
        return False
    if is_local(location) and not is_reached and not any(map(_is_mounted, covering)):
        return False
    place.allowed.check_use(place.catalog.properties)
    # The register decodes percent escapes, and files may lie under either spelling.
    scheme, mark, path = location.partition("://")
    spellings = {location, f"{scheme}{mark}{quote(path, safe=_UNQUOTED)}"}
    return all(store_for(each, place.catalog.properties).is_empty(each) for each in spellings)


def _is_mounted(root: str) -> bool:
    try:
        with os.scandir(path_of(root)) as iterator:
            return any(iterator)
    except OSError:
        return False


class TablePurge:
    """A running purge of one table: the locations in which it may delete, and the deleted files."""

    def __init__(
        self,
        payload: PurgePayload,
        properties: Mapping[str, str],
        *,
        rivals: Sequence[str],
        allowed: AllowedStorage,
        data_paths: tuple[str, ...] = (),
    ) -> None:
        self.payload = payload
        self.allowed = allowed
        self.roots = allowed.narrow_roots(payload.roots)
        self.properties = properties
        self.rivals = rivals
        self.location = payload.location
        self.data_paths = data_paths
        """Other locations of the table, in which only this table has files."""
        self.deleted = 0
        self.kept_files: dict[str, None] = {}
        self.kept_count = 0
        self._directories: dict[str, bool] = {}

    def run(self, beat: Callable[[int], None]) -> PurgeResult:
        """Delete the table's files, and local directories that become empty. Blocks; calls `beat` regularly with the
        count of deleted files.

        Raises UnreadableFile if a manifest or manifest list cannot be parsed, StorageFailed, ServiceUnavailable.
        """
        self.allowed.check_use(self.properties)
        at = self.location
        is_there = at is not None and is_local(at) and Path(path_of(at)).is_dir()
        for location in self._files():
            if self._is_own(location):
                store_for(location, self.properties).delete(location)
                self.deleted += 1
                fault_point(PURGE_POINT)
            else:
                self._keep(location)
            if (self.deleted + self.kept_count) % FILES_PER_BEAT == 0:
                beat(self.deleted)
        if self.location is not None and is_local(self.location) and self._is_own(f"{self.location}/metadata"):
            sweep_empty(self.location, lambda: beat(self.deleted))
        for each in self.data_paths:
            if is_local(each) and self._is_own(f"{each}/data"):
                sweep_empty(each, lambda: beat(self.deleted))
        return PurgeResult(self.deleted, self.kept_count, tuple(self.kept_files), is_there or self.deleted > 0)

    def _is_own(self, location: str) -> bool:
        if self.rivals or self.location is None or not self.allowed.covers(location):
            return False
        own_location = next(
            (each for each in (self.location, *self.data_paths) if is_table_file(location, each, self.roots)), None
        )
        if own_location is None:
            return False
        return not is_local(location) or self._is_within_table(location.rpartition("/")[0], own_location)

    def _is_within_table(self, directory: str, own: str) -> bool:
        """Return whether a local directory, after resolving symbolic links, lies in the table's location and within the
        roots.
        """
        directory_status = self._directories.get(directory)
        if directory_status is None:
            home = real_path(own)
            inside = is_within(home, [real_path(root) for root in self.roots if is_local(root)])
            directory_status = self._directories[directory] = inside and is_within(real_path(directory), [home])
        return directory_status

    def _keep(self, location: str) -> None:
        self.kept_count += 1
        if len(self.kept_files) < KEPT_NAMED:
            self.kept_files[location[:1000]] = None

    def _read(self, location: str, bytes_max: int) -> bytes | None:
        """Read one of the table's own files; None if it does not exist."""
        try:
            return store_for(location, self.properties).read(location, bytes_max=bytes_max)
        except MissingFile:
            return None

    def _files(self) -> Iterator[str]:
        """Yield the locations of a table's files, each one before the file that lists it."""
        metadata_location = self.payload.metadata_location
        data = self._read(metadata_location, METADATA_BYTES_MAX) if is_within(metadata_location, self.roots) else None
        if data is None:
            return
        metadata = iceberg_metadata.decode(data)
        if self.location is None:
            self.location = str(metadata.get("location"))
        keeps_data = (iceberg_metadata.property_of(metadata, "gc.enabled") or "true").lower() == "false"
        seen_files: set[str] = set()
        for snapshot in iceberg_metadata.rows(metadata, "snapshots"):
            yield from self._files_of_snapshot(snapshot, seen_files, keeps_data=keeps_data)
        for key in ("statistics", "partition-statistics"):
            yield from _string_values(iceberg_metadata.rows(metadata, key), "statistics-path")
        yield from _string_values(iceberg_metadata.rows(metadata, "metadata-log"), "metadata-file")
        yield metadata_location

    def _files_of_snapshot(self, snapshot: Json, seen: set[str], *, keeps_data: bool) -> Iterator[str]:
        """Yield the locations of a snapshot's files, except data files with `keeps_data`. `seen` has the manifests
        already read.
        """
        manifest_list = snapshot.get("manifest-list")
        if isinstance(manifest_list, str):
            manifests = self._avro(manifest_list, "manifest_path")
        else:
            manifests = (
                each for each in cast("list[object]", snapshot.get("manifests") or []) if isinstance(each, str)
            )
        for manifest in manifests:
            if manifest in seen:
                continue
            seen.add(manifest)
            if not keeps_data:
                yield from self._avro(manifest, "data_file", "file_path")
            yield manifest
        if isinstance(manifest_list, str):
            yield manifest_list

    def _avro(self, location: str, *path: str) -> Iterator[str]:
        """Yield one string field of each record of an Avro file: a manifest or a manifest list of the table.

        Yields nothing if the file is missing or outside of the table's locations.

        Args:
            location: The file's location.
            *path: The names of the nested fields down to the string, such as `data_file`, `file_path`.

        Raises:
            UnreadableFile: The file is not an Avro file, or exceeds the limits. Then its list of files is unknown.
        """
        data = self._read(location, MANIFEST_BYTES_MAX) if self._is_own(location) else None
        if data is None:
            return
        try:
            yield from texts_of(data, *path)
        except BadAvro as error:
            raise UnreadableFile(f"File {location} is not a readable Avro file: {error}", location=location) from error


def _string_values(rows: Iterable[object], key: str) -> Iterator[str]:
    for row in rows:
        result = row.get(key) if isinstance(row, dict) else None
        if isinstance(result, str):
            yield result


def is_table_file(location: str, own: str, roots: Sequence[str]) -> bool:
    """Return whether a file is below a table's own location, not the location itself, and within the roots."""
    return is_within(location, [own]) and is_within(location, roots) and not is_within(own, [location])
