# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of lists of files: a short record of the files that a run has read.

Converts a list of files to a string for the run's record and the table's snapshot, and finds new files by comparing two
fingerprints. If a file changed after it was read, all files must be read again, because its old rows in the table
cannot be identified. Pure: may import the standard library only.

Up to `EACH_MAX` files have an entry each, of eight bytes: four of the path's digest, four of path, size and time. For
more files, only the newest time and one digest of all files are stored. New files are then the files with later times,
if all other files still have the same digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

EACH_MAX = 500
_HALF = 4
_UNKNOWN = bytes(2 * _HALF)
"""The entry of a file that is gone, if the last fingerprint had no entries."""


@dataclass(frozen=True, slots=True, order=True)
class SourceFileState:
    """A file: URL, size, and time of its last change in milliseconds."""

    path: str
    size_bytes: int
    changed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFingerprint:
    """The fingerprint of a list of files. `schema` is the inferred schema as Spark's JSON, if any."""

    files: int
    newest_ms: int
    digest: str
    each: bytes | None
    schema: str | None = field(default=None)
    content: str | None = field(default=None)
    """The digest of the files' content, if they are local and small; otherwise only names, sizes and times are
    compared.
    """
    gone: bytes = b""
    """Entries of files that were read and are not there any more, at most `EACH_MAX`: their rows are in the table."""

    def text(self) -> str:
        """Return the fingerprint as compact, deterministic JSON."""
        fields: dict[str, Any] = {"files": self.files, "newest_ms": self.newest_ms, "digest": self.digest}
        if self.each is not None:
            fields["each"] = base64.b64encode(self.each).decode()
        if self.gone:
            fields["gone"] = base64.b64encode(self.gone).decode()
        if self.content is not None:
            fields["content"] = self.content
        if self.schema is not None:
            fields["schema"] = json.loads(self.schema)
        return json.dumps(fields, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFiles:
    """The files to read: the files that are new, or all files and the reason for a full read."""

    files: tuple[SourceFileState, ...]
    whole_because: str | None = None


def take_fingerprint(
    files: Iterable[SourceFileState],
    *,
    schema: str | None = None,
    content: str | None = None,
    before: FilesFingerprint | None = None,
) -> FilesFingerprint:
    """Compute the fingerprint of a source's files: their count, newest time, and digests of paths, sizes and times.

    `before` is the last fingerprint, of which files may be gone.
    """
    ordered = sorted(files)
    return FilesFingerprint(
        files=len(ordered),
        newest_ms=max((file.changed_ms for file in ordered), default=0),
        digest=_digest(ordered),
        each=b"".join(_path(file) + _state(file) for file in ordered) if len(ordered) <= EACH_MAX else None,
        schema=schema,
        content=content,
        gone=b"" if before is None else b"".join(_missing_entries(ordered, before)[:EACH_MAX]),
    )


def read(text: str | None) -> FilesFingerprint | None:
    """Parse the JSON of a fingerprint; None if the text is None or malformed."""
    try:
        result = json.loads(text or "")
        each, schema, content = result.get("each"), result.get("schema"), result.get("content")
        return FilesFingerprint(
            files=int(result["files"]),
            newest_ms=int(result["newest_ms"]),
            digest=str(result["digest"]),
            each=None if each is None else base64.b64decode(each),
            schema=None if schema is None else json.dumps(schema),
            content=None if content is None else str(content),
            gone=base64.b64decode(result.get("gone", "")),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def is_same(before: FilesFingerprint, now: FilesFingerprint) -> bool:
    """Return whether two fingerprints have the same names, sizes and times, and the same content if both have it."""
    if before.digest != now.digest:
        return False
    return before.content is None or now.content is None or before.content == now.content


def new_since(files: Sequence[SourceFileState], before: FilesFingerprint | None, *, rereads: bool = False) -> NewFiles:
    """Return the files that are not in `before`, or all files if others were changed. If `before` has an entry for each
    file, removed files are ignored, because their rows were already read; else a removed file requires a full read.

    With `rereads`, a changed file is a new file: the rows that were derived from it are replaced by their keys.
    """
    if before is None:
        return NewFiles(files=tuple(files), whole_because="nothing was read before")
    if before.each is not None:
        return _by_each(files, before.each + before.gone, rereads=rereads)
    old = [file for file in files if file.changed_ms <= before.newest_ms]
    if len(old) == before.files and _digest(sorted(old)) == before.digest:
        return NewFiles(files=tuple(file for file in files if file.changed_ms > before.newest_ms))
    return NewFiles(
        files=tuple(files), whole_because="files were changed or removed, or have older times than those read"
    )


def are_missing(files: Sequence[SourceFileState], before: FilesFingerprint | None) -> bool:
    """Return whether files that were read are not among `files` any more. Of more than `EACH_MAX` files, changed files
    count as missing.
    """
    return before is not None and bool(_missing_entries(files, before))


def _missing_entries(files: Sequence[SourceFileState], before: FilesFingerprint) -> list[bytes]:
    paths = {_path(file) for file in files}
    entries = [entry for entry in _entries((before.each or b"") + before.gone) if entry[:_HALF] not in paths]
    if before.each is None and sum(file.changed_ms <= before.newest_ms for file in files) < before.files:
        entries.append(_UNKNOWN)
    return entries


def _by_each(files: Sequence[SourceFileState], each: bytes, *, rereads: bool) -> NewFiles:
    entries = _entries(each)
    paths, known = {entry[:_HALF] for entry in entries}, set(entries)
    unread = [file for file in files if _path(file) + _state(file) not in known]
    changed_files = [file for file in unread if _path(file) in paths]
    if changed_files and not rereads:
        return NewFiles(files=tuple(files), whole_because=f"{changed_files[0].path} was changed since it was read")
    return NewFiles(files=tuple(unread))


def _entries(each: bytes) -> list[bytes]:
    return [each[start : start + 2 * _HALF] for start in range(0, len(each), 2 * _HALF)]


def _path(file: SourceFileState) -> bytes:
    return hashlib.blake2b(file.path.encode(), digest_size=_HALF).digest()


def _state(file: SourceFileState) -> bytes:
    text = f"{file.path}\0{file.size_bytes}\0{file.changed_ms}"
    return hashlib.blake2b(text.encode(), digest_size=_HALF).digest()


def _digest(ordered: Sequence[SourceFileState]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in ordered:
        digest.update(f"{file.path}\0{file.size_bytes}\0{file.changed_ms}\n".encode())
    return digest.hexdigest()
