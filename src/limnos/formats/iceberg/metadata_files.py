# SPDX-License-Identifier: Apache-2.0
"""Names of metadata files in a directory, and which of them is the newest.

Pure. Source: Iceberg specification, "Table Metadata and Snapshots" (names of Hive's and of Hadoop's catalogs).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from limnos.model.errors import InvalidTable, MissingFile

DIRECTORY: Final = "metadata"
"""The directory of a table that has its metadata files."""
HINT: Final = "version-hint.text"
"""The file of Hadoop's catalogs with a version that exists, which may not be the newest."""
HINT_BYTES_MAX: Final = 64
_FILE: Final = re.compile(r"(?:v([0-9]{1,18})(?:\.gz)?|([0-9]{1,18})-.*)\.metadata\.json")


def is_metadata_file(name: str) -> bool:
    """Return whether a file of the directory `metadata` is a metadata file of a version."""
    return _FILE.fullmatch(name) is not None


def version_of_file(name: str) -> int:
    """Return the version in the name of a metadata file. Raises InvalidTable for another name."""
    match = _FILE.fullmatch(name)
    if match is None:
        raise InvalidTable(f"{name[:80]!r} is not the name of a metadata file")
    return int(match[1] or match[2])


def newest_metadata_file(names: Sequence[str], *, hint: str | None = None) -> str:
    """Return the name of the newest metadata file of a directory.

    `hint` is the text of `version-hint.text`: the versions that follow the hinted one without a gap are newer, and
    others do not count. Without a usable hint it is the file of the highest version.

    Raises MissingFile if there is none, InvalidTable if two files have the highest version: a commit was lost, or is
    under way.
    """
    hinted = _hinted(frozenset(names), hint)
    if hinted is not None:
        return hinted
    versions = [(version_of_file(name), name) for name in names if is_metadata_file(name)]
    if not versions:
        raise MissingFile("it has no metadata file")
    newest = max(versions)[0]
    files = [name for version, name in versions if version == newest]
    if len(files) > 1:
        raise InvalidTable(f"it has {len(files)} metadata files of version {newest}: a commit was lost or is under way")
    return files[0]


def _hinted(names: frozenset[str], hint: str | None) -> str | None:
    """Return the file at which a reader of Hadoop's catalogs arrives from a hint; None if the hint is not usable."""
    text = (hint or "").strip()
    if not text.isascii() or not text.isdigit() or len(text) > HINT_BYTES_MAX:
        return None
    version, newest = int(text), _file_of(names, int(text))
    while newest is not None and (following := _file_of(names, version + 1)) is not None:
        version, newest = version + 1, following
    return newest


def _file_of(names: Iterable[str], version: int) -> str | None:
    """Return the file of a version, as Hadoop's catalogs name it."""
    return next((name for name in (f"v{version}.metadata.json", f"v{version}.gz.metadata.json") if name in names), None)
