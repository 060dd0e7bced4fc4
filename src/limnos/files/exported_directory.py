# SPDX-License-Identifier: Apache-2.0
"""A local directory of exported files, which is published atomically by a rename.

Must not know the files' content. The files are written to a staging directory beside the target, which is renamed at
the end. A process that is killed earlier leaves only the staging directory; a later export in the same parent directory
removes it after a day.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from limnos.files import file_errors
from limnos.files.local import path_of
from limnos.model.errors import BadRequest, NotEmpty

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

_TAKEN: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})
HIDDEN: Final = ".limnos-export-"
STALE_S: Final = 86_400


class ExportedDirectory:
    """The files of one export.

    Methods block. Each may raise BadRequest (a name is too long), NoSpace (full disk), ServiceUnavailable (a retry may
    help) and StorageFailed; `write` and `close` raise RuntimeError if no file is open.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._target = Path(path_of(location))
        self._staging = self._target.parent / f"{HIDDEN}{uuid4().hex}"
        self._file: BinaryIO | None = None

    def begin(self) -> None:
        """Create the staging directory. Raises NotEmpty if the target is a file or a directory with files."""
        try:
            if self._target.exists() and (not self._target.is_dir() or any(self._target.iterdir())):
                raise NotEmpty(f"{self._location} is not empty", kind="directory")
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._remove_stale()
            self._staging.mkdir()
        except OSError as error:
            raise file_errors.storage_error("write", self._location, error) from error

    def open(self, names: Sequence[str]) -> None:
        """Create a file; `names` are the components of its relative path.

        Raises BadRequest if the path, or a parent of it, is already a file or directory of the export.
        """
        directory = self._staging
        try:
            for name in names[:-1]:
                directory /= name
                directory.mkdir(exist_ok=True)  # never creates the staging directory again: earlier files were in it
            self._file = (directory / names[-1]).open("xb")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise BadRequest(f"{'/'.join(names)} is the name of a directory and of a file of this export") from None
        except OSError as error:
            raise file_errors.storage_error("write", self._location, error) from error

    def write(self, data: bytes) -> None:
        """Append data to the current file, which `open` created."""
        if self._file is None:
            raise RuntimeError("no file is open")
        try:
            self._file.write(data)
        except OSError as error:
            raise file_errors.storage_error("write", self._location, error) from error

    def close(self) -> None:
        """Sync the current file to disk and close it."""
        if self._file is None:
            raise RuntimeError("no file is open")
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise file_errors.storage_error("write", self._location, error) from error
        self._file = None

    def publish(self) -> None:
        """Rename the staging directory to its final name.

        Raises NotEmpty if a file, or a directory with files, was created under that name since `begin`.
        """
        try:
            self._staging.rename(self._target)
        except OSError as error:
            if error.errno in _TAKEN:
                raise NotEmpty(f"{self._location} is not empty", kind="directory") from None
            raise file_errors.storage_error("write", self._location, error) from error

    def discard(self) -> None:
        """Close the current file and delete all files, unless they are published."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        shutil.rmtree(self._staging, ignore_errors=True)

    def _remove_stale(self) -> None:
        """Delete the staging directories of killed processes that are more than a day old."""
        before = time.time() - STALE_S
        for each in self._target.parent.glob(f"{HIDDEN}*"):
            with contextlib.suppress(OSError):
                if each.stat().st_mtime < before:
                    shutil.rmtree(each, ignore_errors=True)
