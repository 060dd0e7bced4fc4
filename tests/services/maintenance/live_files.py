"""An independent reader of Iceberg tables: which files must exist, by metadata on the disk alone.

Uses fastavro and JSON, and no code of the product: whatever the product gets wrong about a table, this says otherwise.
Entries of status DELETED name files that need not exist.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import fastavro

DELETED: Final = 2


def local(location: str) -> Path:
    """The path of a `file:` location."""
    return Path(location.removeprefix("file://"))


def read_metadata(location: str) -> dict[str, Any]:
    """Read a metadata file."""
    data = local(location).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)  # type: ignore[no-any-return]


def files_of_snapshot(snapshot: dict[str, Any]) -> dict[str, int | None]:
    """The files that a reader of a snapshot opens, with the sizes that its manifests state."""
    found: dict[str, int | None] = {snapshot["manifest-list"]: None}
    with local(snapshot["manifest-list"]).open("rb") as listed:
        for row in fastavro.reader(listed):
            found[row["manifest_path"]] = row["manifest_length"]
            with local(row["manifest_path"]).open("rb") as manifest:
                for entry in fastavro.reader(manifest):
                    if entry["status"] != DELETED:
                        file = entry["data_file"]
                        found[file["file_path"]] = file["file_size_in_bytes"]
    return found


def files_of_table(location: str) -> dict[str, int | None]:
    """The files that a table needs: its metadata file, those in its log, statistics, and those of all its snapshots."""
    metadata = read_metadata(location)
    found: dict[str, int | None] = {location: None}
    found |= {each["metadata-file"]: None for each in metadata.get("metadata-log", [])}
    for key in ("statistics", "partition-statistics"):
        found |= {each["statistics-path"]: each["file-size-in-bytes"] for each in metadata.get(key, [])}
    for snapshot in metadata.get("snapshots", []):
        found |= files_of_snapshot(snapshot)
    return found


def lost_files(needed: dict[str, int | None]) -> list[str]:
    """Those of the needed files that are not there, or have another size than stated."""
    return [
        location
        for location, size in needed.items()
        if not local(location).is_file() or size not in (None, local(location).stat().st_size)
    ]
