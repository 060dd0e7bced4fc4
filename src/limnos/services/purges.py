"""Purge: delete the files of a dropped table, as its metadata lists them, and the directories that this empties.

May import the rooms below. A purge may be killed anywhere and begun again: every file goes before the one
that lists it, the metadata file last, and what is gone already is fine.

What metadata lists is the word of whoever wrote it. So nothing is deleted, or even read, but what lies below the table's own
location, and nothing at all while another live table lies at, above or below it; the rest is kept and told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from limnos.files import is_local, is_within, real, store_for, sweep_empty
from limnos.formats.avro import BadAvro, texts_of
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.errors import LimnosError, MissingFile
from limnos.services.place_claims import key_of, rivals_of
from limnos.store.faults import PURGE_POINT, fault_point
from limnos.store.nodes import catalog_read
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from limnos.files import Allowed
    from limnos.formats.iceberg.json_types import Json
    from limnos.model.records import CatalogRecord
    from limnos.services.places import Place
    from limnos.services.work import Work
    from limnos.store.tx import Tx

log = get_logger("limnos.purge")
PURGE = "purge-table"
READERS_MS = 3_600_000
"""How long files stay at least after their dataset was dropped for good: statements may be reading them."""
FILES_PER_BEAT = 100
KEPT_NAMED = 10
KEPT = "kept everything, as nothing is known of the catalog"
METADATA_BYTES_MAX = 1 << 28
MANIFEST_BYTES_MAX = 64 << 20


class Unreadable(LimnosError):
    """A file that lists others cannot be read, and will not be at another try either."""

    code = "unreadable"


class PurgePayload(msgspec.Struct, rename="kebab"):
    """What the drop left: where the metadata and the table are, and the catalog's roots.

    A task of an older release has no location: the metadata says it. Without roots it is the catalog's as they are when it is done.
    """

    metadata_location: str
    catalog: int
    roots: tuple[str, ...] = ()
    location: str | None = None


class Purged(NamedTuple):
    """What a purge did: files deleted, and those kept because they are not the table's own (the first few by name)."""

    deleted: int
    kept: int
    kept_first: tuple[str, ...]


def purge_later(tx: Tx, *, catalog: int, metadata_location: str, location: str) -> None:
    """Leave the task to purge a table that was dropped, when nobody can be at reading it any more."""
    payload = PurgePayload(metadata_location, catalog, location=location)
    tx.tasks.create(PURGE, msgspec.json.encode(payload).decode(), delay_ms=READERS_MS)


async def place_known(work: Work, catalog: int) -> Place | None:
    """Where a catalog's tables may lie, and how they are reached; None for one of which nothing is known."""
    record: CatalogRecord | None = await work.submit(lambda tx: catalog_read(tx, catalog))
    return None if record is None else work.place(record, catalog)


async def purge_run(work: Work, payload: PurgePayload) -> str | None:
    """Purge a dropped table; returns which files were kept, None when none was."""
    at = payload.location
    place = await place_known(work, payload.catalog)
    if not payload.roots:
        if place is None:
            return KEPT
        payload = msgspec.structs.replace(payload, roots=place.roots)
    claims = [] if at is None else await work.submit(lambda tx: rivals_of(tx, at))
    properties, allowed = ({}, work.allowed) if place is None else (place.catalog.properties, place.allowed)
    purge = Purge(payload, properties, rivals=claims, allowed=allowed)
    done = await work.apart(purge.run)
    log.info("purged", task=work.task_id, location=at, files=done.deleted)
    if at is not None:
        await work.submit(lambda tx: tx.places.purged(key_of(at), catalog_id=payload.catalog, whole=not done.kept))
    if not done.kept:
        return None
    reason = "another table lies there" if claims else "they are not below the table's own location"
    log.warning("files of a dropped table are kept", task=work.task_id, location=at, files=done.kept, reason=reason)
    named = ", ".join(done.kept_first)
    return (
        f"deleted {done.deleted} files; kept {done.kept}, as {reason}: {named}{', …' if done.kept > KEPT_NAMED else ''}"
    )


class Purge:
    """One purge under way: where it may delete, and what it has done."""

    def __init__(
        self, payload: PurgePayload, properties: Mapping[str, str], *, rivals: Sequence[str], allowed: Allowed
    ) -> None:
        self.payload = payload
        self.allowed = allowed
        self.roots = allowed.narrowed(payload.roots)
        self.properties = properties
        self.rivals = rivals
        self.location = payload.location
        self.deleted = 0
        self.kept: dict[str, None] = {}
        self.kept_count = 0
        self._directories: dict[str, bool] = {}

    def run(self, beat: Callable[[int], None]) -> Purged:
        """Delete the table's files. Blocks; `beat` is called now and then, with the count."""
        self.allowed.check_use(self.properties)
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
        return Purged(self.deleted, self.kept_count, tuple(self.kept))

    def _is_own(self, location: str) -> bool:
        own = self.location
        if self.rivals or own is None or not (lies_in(location, own, self.roots) and self.allowed.covers(location)):
            return False
        return not is_local(location) or self._leads_nowhere_else(location.rpartition("/")[0], own)

    def _leads_nowhere_else(self, directory: str, own: str) -> bool:
        """Say whether a local directory is still the table's own when links are followed."""
        known = self._directories.get(directory)
        if known is None:
            home = real(own)
            inside = is_within(home, [real(root) for root in self.roots if is_local(root)])
            known = self._directories[directory] = inside and is_within(real(directory), [home])
        return known

    def _keep(self, location: str) -> None:
        self.kept_count += 1
        if len(self.kept) < KEPT_NAMED:
            self.kept[location[:1000]] = None

    def _read(self, location: str, bytes_max: int) -> bytes | None:
        """Read one of the table's own files; None when it is gone."""
        try:
            return store_for(location, self.properties).read(location, bytes_max=bytes_max)
        except MissingFile:
            return None

    def _files(self) -> Iterator[str]:
        """List a table's files, each before the one that lists it."""
        place = self.payload.metadata_location
        data = self._read(place, METADATA_BYTES_MAX) if is_within(place, self.roots) else None
        if data is None:
            return
        metadata = iceberg_metadata.decode(data)
        if self.location is None:
            self.location = str(metadata.get("location"))
        keeps_data = (iceberg_metadata.property_of(metadata, "gc.enabled") or "true").lower() == "false"
        seen: set[str] = set()
        for snapshot in iceberg_metadata.rows(metadata, "snapshots"):
            yield from self._of_snapshot(snapshot, seen, keeps_data=keeps_data)
        for key in ("statistics", "partition-statistics"):
            yield from _texts(iceberg_metadata.rows(metadata, key), "statistics-path")
        yield from _texts(iceberg_metadata.rows(metadata, "metadata-log"), "metadata-file")
        yield place

    def _of_snapshot(self, snapshot: Json, seen: set[str], *, keeps_data: bool) -> Iterator[str]:
        """List a snapshot's files; a manifest that several snapshots share is read once."""
        listed = snapshot.get("manifest-list")
        if isinstance(listed, str):
            manifests = self._avro(listed, "manifest_path")
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
        if isinstance(listed, str):
            yield listed

    def _avro(self, location: str, *path: str) -> Iterator[str]:
        """Read a text of each row of one of the table's own Avro files; one that is gone has none, nor has one that is not ours.

        Raises Unreadable when it is none, or takes more than it may: then nobody can tell which files it lists.
        """
        data = self._read(location, MANIFEST_BYTES_MAX) if self._is_own(location) else None
        if data is None:
            return
        try:
            yield from texts_of(data, *path)
        except BadAvro as error:
            raise Unreadable(f"File {location} is no Avro file that can be read: {error}", location=location) from error


def _texts(rows: Iterable[object], key: str) -> Iterator[str]:
    for row in rows:
        found = row.get(key) if isinstance(row, dict) else None
        if isinstance(found, str):
            yield found


def lies_in(location: str, own: str, roots: Sequence[str]) -> bool:
    """Say whether a file is below a table's own location (not the location itself), and within the roots."""
    return is_within(location, [own]) and is_within(location, roots) and not is_within(own, [location])
