"""Files of external datasets: the server lists them before its last decision about a statement.

May import the layers below. Must not know engines. The statement's token does not protect these files, because the
engine opens them directly. So the engine reads only files that were listed before that decision.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from limnos.sqlpp import SqlppError
from limnos.sqlpp.errors import compilation
from limnos.sqlpp.jobs import DatasetRef, ExternalSource, PinnedFile

FILES_MAX: Final = 100_000
"""The maximum number of files that one statement reads: about 15 MB of the engine's message."""


def pin_files(refs: tuple[DatasetRef, ...]) -> tuple[DatasetRef, ...]:
    """Return references with the files of external datasets listed. Blocks, so it runs on a thread.

    Lists at most one file more than `check_count` allows.
    """
    pinned, left = [], FILES_MAX + 1
    for ref in refs:
        if ref.files is None:
            pinned.append(ref)
            continue
        files = tuple(file for file, _ in zip(_listed(ref.files), range(left), strict=False))
        left -= len(files)
        pinned.append(msgspec.structs.replace(ref, files=msgspec.structs.replace(ref.files, pinned=files)))
    return tuple(pinned)


def check_count(refs: tuple[DatasetRef, ...]) -> None:
    """Check the number of pinned files. Raises SqlppError if they are too many for one statement."""
    count = sum(len(ref.files.pinned or ()) for ref in refs if ref.files is not None)
    if count > FILES_MAX:
        raise _too_many_error()


def _too_many_error() -> SqlppError:
    return compilation(f"A statement reads at most {FILES_MAX:,} files: create an external dataset for a part of them")


def _listed(source: ExternalSource) -> Iterator[PinnedFile]:
    """Yield the files of a source, with one entry for a location without files."""
    closed = [_path(location).resolve() for location in source.outside]
    roots = [_path(location).resolve() for location in source.within]
    for location in dict(source.options)["path"].split(","):
        path = _path(location)
        real = path.resolve()
        is_open = any(real.is_relative_to(root) for root in roots) and not any(map(real.is_relative_to, closed))
        files = _existing([path]) or (_existing(sorted(_files_below(path, closed))) if is_open else [])
        yield from files or [PinnedFile(str(path), 0, 0)]


def _path(location: str) -> Path:
    """Return the path of a location as the engine reads it, with percent signs decoded."""
    return Path(unquote(urlsplit(location).path))


def _files_below(directory: Path, closed: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that the engine finds below a directory: none in a closed directory or behind a link to a
    directory, and none whose names begin with `.` or `_`.
    """
    for folder, names, files in os.walk(directory):
        names[:] = [name for name in names if Path(folder, name).resolve() not in closed]
        yield from (Path(folder, name) for name in files if not name.startswith((".", "_")))


def _existing(paths: Iterable[Path]) -> list[PinnedFile]:
    """Return the identities of those paths that are files."""
    results = []
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            if S_ISREG(status.st_mode):
                results.append(PinnedFile(str(path), status.st_dev, status.st_ino))
    return results
