# SPDX-License-Identifier: Apache-2.0
"""The files of a pipeline that a server runs by a schedule: its own file, and the directory of it.

Must not know servers, which have limits of their own. Hidden files and compiled modules are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from limnos.model.errors import BadRequest
from limnos.pipeline.shipped import shipped_declaration, shipped_reference

FILES_MAX: Final = 200
BYTES_MAX: Final = 512 << 10
_LEFT_OUT: Final = "__pycache__"


def scheduled_files(file: Path) -> tuple[str, dict[str, bytes]]:
    """Return the name of a pipeline's file, and all files of its directory by their relative paths; of a shipped
    pipeline its one file.

    Raises BadRequest for too many or too large files, before they are read, and if a file cannot be read.
    """
    shipped = shipped_reference(str(file))
    if shipped is not None:
        name = f"{shipped[0]}.yaml"
        return name, {name: shipped_declaration(*shipped).encode()}
    directory = file.absolute().parent
    files: dict[str, bytes] = {}
    size = 0
    try:
        for path in sorted(directory.rglob("*")):
            relative = path.relative_to(directory)
            if any(part.startswith(".") or part == _LEFT_OUT for part in relative.parts) or not path.is_file():
                continue
            size += path.stat().st_size
            if len(files) == FILES_MAX or size > BYTES_MAX:
                raise BadRequest(
                    f"{directory} has more than {FILES_MAX} files or {BYTES_MAX >> 10} KiB, which is the most that a"
                    " schedule takes: put the pipeline into a directory of its own, without data"
                )
            files[relative.as_posix()] = path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{error.filename} cannot be read: {error.strerror}") from None
    return file.name, files
