"""Purge: delete the files of a dropped table, as its metadata lists them; never a directory.

May import the rooms below and fastavro. A purge may be killed anywhere and begun again: every file goes before the one
that lists it, the metadata file last, and what is gone already is fine.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, cast

import fastavro
import msgspec

from limnos.files import is_within, store_for
from limnos.formats.iceberg import metadata as documents
from limnos.model.errors import MissingFile
from limnos.store.faults import PURGE_POINT, reach
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from limnos.formats.iceberg.json_types import Json

log = get_logger("limnos.purge")
FILES_PER_BEAT = 100


class PurgePayload(msgspec.Struct, rename="kebab"):
    """What the drop left: where the metadata is, and the prefixes within which files may be deleted."""

    metadata_location: str
    roots: tuple[str, ...]
    catalog: int


def files_purge(payload: PurgePayload, properties: Mapping[str, str], beat: Callable[[int], None]) -> int:
    """Delete a dropped table's files and return how many. Blocks; `beat` is called now and then, with the count."""
    deleted = 0
    for location in _files(payload.metadata_location, properties):
        if is_within(location, payload.roots):
            store_for(location, properties).delete(location)
            deleted += 1
            reach(PURGE_POINT)
        else:
            log.warning("file outside the catalog's roots is kept", location=location)
        if deleted % FILES_PER_BEAT == 0:
            beat(deleted)
    return deleted


def _files(metadata_location: str, properties: Mapping[str, str]) -> Iterator[str]:
    """List a table's files, each before the one that lists it."""
    try:
        metadata = documents.decode(store_for(metadata_location, properties).read(metadata_location))
    except MissingFile:
        return
    keeps_data = (documents.property_of(metadata, "gc.enabled") or "true").lower() == "false"
    for snapshot in documents.rows(metadata, "snapshots"):
        yield from _of_snapshot(snapshot, properties, keeps_data=keeps_data)
    for key, field in (("statistics", "statistics-path"), ("partition-statistics", "statistics-path")):
        yield from (cast("str", row[field]) for row in documents.rows(metadata, key) if isinstance(row.get(field), str))
    logged = (row.get("metadata-file") for row in documents.rows(metadata, "metadata-log"))
    yield from (location for location in logged if isinstance(location, str))
    yield metadata_location


def _of_snapshot(snapshot: Json, properties: Mapping[str, str], *, keeps_data: bool) -> Iterator[str]:
    listed = snapshot.get("manifest-list")
    if isinstance(listed, str):
        manifests = [cast("str", row["manifest_path"]) for row in _avro(listed, properties)]
    else:
        manifests = [each for each in cast("list[object]", snapshot.get("manifests") or []) if isinstance(each, str)]
    for manifest in manifests:
        if not keeps_data:
            for entry in _avro(manifest, properties):
                yield cast("str", cast("dict[str, object]", entry["data_file"])["file_path"])
        yield manifest
    if isinstance(listed, str):
        yield listed


def _avro(location: str, properties: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """Read the rows of an Avro file; one that is gone has none."""
    try:
        data = store_for(location, properties).read(location)
    except MissingFile:
        return
    yield from cast("Iterator[dict[str, object]]", fastavro.reader(io.BytesIO(data)))
