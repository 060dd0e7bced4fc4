# SPDX-License-Identifier: Apache-2.0
"""An independent reader of Iceberg tables that determines from metadata on disk which files must exist.

It uses fastavro and JSON and no code of the product, so it does not share the product's errors. Manifest entries of
status DELETED name files that need not exist.
"""

from __future__ import annotations

import gzip
import json
import os
import stat
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import fastavro

DELETED: Final = 2


def local(location: str) -> Path:
    """Return the local path of a `file:` location."""
    return Path(location.removeprefix("file://"))


def read_metadata(location: str) -> dict[str, Any]:
    """Read a metadata file."""
    data = local(location).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)  # type: ignore[no-any-return]


def files_of_snapshot(snapshot: dict[str, Any]) -> dict[str, int | None]:
    """Return the files that a reader of a snapshot opens, with the sizes that its manifests state."""
    sizes_by_path: dict[str, int | None] = {snapshot["manifest-list"]: None}
    for path, length in _rows(snapshot["manifest-list"], ("manifest_path", "manifest_length")):
        sizes_by_path[path] = length
        sizes_by_path |= dict(_rows(path, ("file_path", "file_size_in_bytes")))
    return sizes_by_path


@lru_cache(maxsize=4_096)
def _rows(location: str, fields: tuple[str, str]) -> tuple[tuple[str, int], ...]:
    """Return two fields of each row of a manifest list, or of each live entry of a manifest. The result is cached,
    because such a file never changes.
    """
    with local(location).open("rb") as opened:
        rows: list[Any] = list(fastavro.reader(opened))
    live = [each.get("data_file", each) for each in rows if each.get("status") != DELETED]
    return tuple([(each[fields[0]], each[fields[1]]) for each in live])


def files_of_table(location: str) -> dict[str, int | None]:
    """Return the files that a table needs: its metadata file, those in its metadata log, statistics, and those of all
    its snapshots.
    """
    metadata = read_metadata(location)
    sizes_by_path: dict[str, int | None] = {location: None}
    sizes_by_path |= {each["metadata-file"]: None for each in metadata.get("metadata-log", [])}
    for key in ("statistics", "partition-statistics"):
        sizes_by_path |= {each["statistics-path"]: each["file-size-in-bytes"] for each in metadata.get(key, [])}
    for snapshot in metadata.get("snapshots", []):
        sizes_by_path |= files_of_snapshot(snapshot)
    return sizes_by_path


def lost_files(needed: dict[str, int | None]) -> list[str]:
    """Return the needed files that are missing or whose size differs from the stated one."""
    return [location for location, size in needed.items() if not _is_there(location, size)]


def _is_there(location: str, size: int | None) -> bool:
    try:
        status = os.stat(location.removeprefix("file://"))  # noqa: PTH116 - paths are slow, and there are many
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and size in (None, status.st_size)
