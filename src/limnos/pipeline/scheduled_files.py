# SPDX-License-Identifier: Apache-2.0
"""The files of a pipeline that a server runs by a schedule: its own file, and the directory of it.

Must not know servers, which have limits of their own. Hidden files and compiled modules are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from os.path import normpath
from pathlib import Path
from typing import Final

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.directory import is_url
from limnos.pipeline.shipped import shipped_declaration, shipped_reference
from limnos.pipeline.side_tables import selects_from
from limnos.pipeline.source_declarations import Files, Stream

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


def copied_sources(pipeline: Pipeline, directory: Path) -> Mapping[str, str]:
    """Return the sources that are files in a pipeline's directory by relative paths. A schedule reads a copy
    of them, so files that come later are not read. Raises BadRequest for a relative path out of the directory.
    """
    root = directory.resolve()
    copied: dict[str, str] = {}
    for source in pipeline.sources:
        files = source.kind.files if isinstance(source.kind, Stream) else source.kind
        if not isinstance(files, Files) or is_url(files.path) or Path(files.path).is_absolute():
            continue
        if Path(normpath(root / files.path)).is_relative_to(root):
            copied[source.name] = files.path
        else:
            raise BadRequest(
                f"source {source.name} reads {files.path}, outside of the pipeline's directory, of which a schedule has"
                " a copy. Write an absolute path, in a directory of the server's setting jobs.readable, or a URL"
            )
    return copied


def require_no_repeated_files(pipeline: Pipeline, directory: Path) -> None:
    """Check a pipeline for a schedule: no incremental step reads files in its directory.

    Each run of a schedule has another copy of the directory, in which all files are new, so the step would write their
    rows again. Raises BadRequest.
    """
    for name, path in copied_sources(pipeline, directory).items():
        step = next((each for each in pipeline.steps if each.incremental and selects_from(each, name)), None)
        if step is not None:
            at = f"{step.at.file}:{step.at.line}: " if step.at is not None else ""
            raise BadRequest(
                f"{at}step {'.'.join(step.table[1:])} is incremental and reads {path} in the pipeline's directory. A"
                " schedule has a copy of this directory, so files that come later would not be read, and those of the"
                " copy would be read again by each run. Write an absolute path, in a directory of the server's setting"
                " jobs.readable, or a URL"
            )
