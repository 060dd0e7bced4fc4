# SPDX-License-Identifier: Apache-2.0
"""Listing of files: the files that a URL or pattern matches, and their paths for Spark.

Lists files through Spark, so that every file system of Spark works, also over Spark Connect. Must not know formats.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from limnos.pipeline.engine.sources.fingerprints import SourceFileState
from limnos.pipeline.engine.sources.values import SourceReadRequest, first_line
from limnos.pipeline.reader_options import LISTING_OPTIONS
from limnos.pipeline.source_declarations import Files
from limnos.spark.scala import scala_items

CONTENT_BYTES_MAX = 16 * 1024 * 1024
"""The total size up to which the content of local files is digested, in bytes, to detect an edit that keeps size and
time.
"""
_STATUSES_MAX = 100
"""The number of files up to which their states are read one by one from Java."""
_GLOB = re.compile(r"[\\\[\]{}*?]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SECRET = re.compile(r"//[^/@]*@")


def locate_path(request: SourceReadRequest, path: str) -> str:
    """Return a source's path for Spark.

    URLs and absolute paths are unchanged; a relative path is below the pipeline's directory. Raises SourceFailed for an
    empty path.
    """
    if not path.strip():
        raise request.failed("its path is empty: write a URL, or a path from the pipeline's file.")
    if _SCHEME.match(path) or path.startswith("/") or request.directory is None:
        return path
    return escape_pattern(str(request.directory.absolute())) + "/" + path


def list_files(request: SourceReadRequest, files: Files, *, path: str) -> tuple[SourceFileState, ...]:
    """List the files that exist now and are not empty, sorted by path; none if all files are empty.

    A file of zero bytes has no rows, and is listed once it has some. Raises SourceFailed if there is no file, if a
    Parquet file is empty, or if the listing fails.
    """
    reader = request.spark.read.format("binaryFile")
    selecting = {option.lower() for option in LISTING_OPTIONS}
    reader = reader.options(**{name: value for name, value in files.options.items() if name.lower() in selecting})
    try:
        listed = reader.load(path)
        states = _states(listed)
        every = listed.inputFiles() if not states or files.format == "parquet" else []
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(_why(error, path_without_credentials(path))) from error
    if files.format == "parquet" and len(every) > len(states):
        full = {_bare(state.path) for state in states}
        empty = min(one for one in every if _bare(one) not in full)
        raise request.failed(f"{path_without_credentials(empty)} is empty, so it is not a Parquet file: remove it.")
    if not states and not every:
        raise request.failed(f"there is no file at {path_without_credentials(path)}. {_hint(path)}")
    return states


def _states(listed: DataFrame) -> tuple[SourceFileState, ...]:
    """Return the state of each file of a listing that is not empty, sorted by path.

    Spark has listed them before it reads the frame: a few files are taken from there, which costs a tenth of a query.
    """
    java: Any = getattr(listed, "_jdf", None)
    if java is not None:
        statuses = java.queryExecution().analyzed().relation().location().allFiles()
        if statuses.size() <= _STATUSES_MAX:
            return tuple(sorted(state for each in scala_items(statuses) if (state := _state(each)).size_bytes))
    rows = listed.select("path", "length", F.unix_millis("modificationTime").alias("at")).collect()
    return tuple(
        sorted(SourceFileState(path=row["path"], size_bytes=row["length"], changed_ms=row["at"]) for row in rows)
    )


def _state(status: Any) -> SourceFileState:  # noqa: ANN401 - Hadoop's own
    """Return the state of a file from its `FileStatus`."""
    return SourceFileState(
        path=status.getPath().toString(), size_bytes=status.getLen(), changed_ms=status.getModificationTime()
    )


def content_digest(files: Sequence[SourceFileState], *, bytes_max: int = CONTENT_BYTES_MAX) -> str | None:
    """Return a digest of the content of local files; None if a file is not local or not readable, or their total size
    exceeds `bytes_max`.
    """
    if sum(file.size_bytes for file in files) > bytes_max:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(files):
        if not file.path.startswith("file:"):
            return None
        path = Path("/" + file.path.removeprefix("file:").lstrip("/"))
        try:
            with path.open("rb") as opened:
                digest.update(hashlib.blake2b(opened.read(file.size_bytes + 1), digest_size=16).digest())
        except OSError:
            return None
    return digest.hexdigest()


def paths_of(files: Sequence[SourceFileState]) -> list[str]:
    """Return paths for a reader that match exactly these files: glob characters are escaped."""
    return [escape_pattern(file.path) for file in files]


def base_path(files: Sequence[SourceFileState], path: str) -> str | None:
    """Return the directory below which `column=value` directories are columns; None if there are none.

    It is the path up to its first glob character, as in Spark's own listing.
    """
    root = root_of(path)
    plain = root.partition(":")[2].lstrip("/") if _SCHEME.match(root) else root.lstrip("/")
    below = [file.path.partition(plain + "/")[2] for file in files]
    return root if plain and any("=" in part for one in below for part in one.split("/")[:-1]) else None


def root_of(path: str) -> str:
    """Return a path up to its first part with a glob character: the directory in which a pattern begins, else the whole
    path. It has no `..`, as the paths of the files that Spark lists.
    """
    parts: list[str] = []
    for part in path.split("/"):
        if _GLOB.search(part):
            break
        if part == ".." and len(parts) > 1:
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts).rstrip("/")


def escape_pattern(path: str) -> str:
    """Escape the glob characters of a path."""
    return _GLOB.sub(lambda match: "\\" + match[0], path)


def path_without_credentials(path: str) -> str:
    """Mask the credentials of a URL, for messages."""
    return _SECRET.sub("//***@", path)


def _why(error: PySparkException | Py4JJavaError, path: str) -> str:
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    if condition == "PATH_NOT_FOUND":
        return f"there is no file at {path}. {_hint(path)}"
    if "CONFLICTING_DIRECTORY" in condition:
        return (
            f"{path} contains directories of partitions (column=value) and others: give the path of one of them, or set"
            " the option recursiveFileLookup to true."
        )
    return f"{path} cannot be listed: {first_line(error)}"


def _bare(path: str) -> str:
    """Return a path without the slashes of an empty authority, which Spark writes in two ways."""
    return path.replace("file:///", "file:/", 1)


def _hint(path: str) -> str:
    if path.rpartition("/")[2].startswith(("_", ".")):
        return "Spark hides files whose names begin with _ or a dot: give the file another name."
    if _SCHEME.match(path):
        return (
            "Check the URL and its pattern; directories are not searched recursively unless recursiveFileLookup is"
            " true."
        )
    return f"It was searched in {Path(path).parent}; paths are relative to the pipeline's file."
