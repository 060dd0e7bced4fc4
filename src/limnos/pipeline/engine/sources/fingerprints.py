"""Which files a run has read, in a few bytes.

Job: turn a list of files into a text that is kept with the run and in the table's snapshot, and say from two of them which
files are new. A file that was changed after it was read makes the answer "the whole, because": its rows stand in the table and
cannot be told from others. Pure: may import the standard library only; knows nothing of Spark nor of who lists.

Up to `EACH_MAX` files are told one by one, eight bytes each: four of the path's digest, four of path, size and time. Of more, only the newest time
and a digest of all are kept; then new files are those with later times, if the others come to the same digest.
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


@dataclass(frozen=True, slots=True, order=True)
class SourceFileState:
    """A file that is there: URL, size, time of its last change in milliseconds."""

    path: str
    size_bytes: int
    changed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFingerprint:
    """What is kept of a list of files. `schema` is the inferred one (Spark's JSON), when there is any."""

    files: int
    newest_ms: int
    digest: str
    each: bytes | None
    schema: str | None = field(default=None)
    content: str | None = field(default=None)
    """Digest of what is in the files, where they are local and small; else their names, sizes and times have to do."""

    def text(self) -> str:
        """As JSON, short and always the same."""
        told: dict[str, Any] = {"files": self.files, "newest_ms": self.newest_ms, "digest": self.digest}
        if self.each is not None:
            told["each"] = base64.b64encode(self.each).decode()
        if self.content is not None:
            told["content"] = self.content
        if self.schema is not None:
            told["schema"] = json.loads(self.schema)
        return json.dumps(told, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFiles:
    """What is to be read: files that are new, or all, for a reason."""

    files: tuple[SourceFileState, ...]
    whole_because: str | None = None


def take_fingerprint(
    files: Iterable[SourceFileState], *, schema: str | None = None, content: str | None = None
) -> FilesFingerprint:
    """Make the fingerprint of these files."""
    ordered = sorted(files)
    return FilesFingerprint(
        files=len(ordered),
        newest_ms=max((file.changed_ms for file in ordered), default=0),
        digest=_digest(ordered),
        each=b"".join(_path(file) + _state(file) for file in ordered) if len(ordered) <= EACH_MAX else None,
        schema=schema,
        content=content,
    )


def read(text: str | None) -> FilesFingerprint | None:
    """Read a fingerprint back; None for what is none of ours."""
    try:
        told = json.loads(text or "")
        each, schema, content = told.get("each"), told.get("schema"), told.get("content")
        return FilesFingerprint(
            files=int(told["files"]),
            newest_ms=int(told["newest_ms"]),
            digest=str(told["digest"]),
            each=None if each is None else base64.b64decode(each),
            schema=None if schema is None else json.dumps(schema),
            content=None if content is None else str(content),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def is_same(before: FilesFingerprint, now: FilesFingerprint) -> bool:
    """Whether two lists are of the same files: same names, sizes and times, and the same content where both tell it."""
    if before.digest != now.digest:
        return False
    return before.content is None or now.content is None or before.content == now.content


def new_since(files: Sequence[SourceFileState], before: FilesFingerprint | None) -> NewFiles:
    """Say which of `files` were not read `before`. Files that are gone since are no matter: their rows were taken."""
    if before is None:
        return NewFiles(files=tuple(files), whole_because="nothing was read before")
    if before.each is not None:
        return _by_each(files, before.each)
    old = [file for file in files if file.changed_ms <= before.newest_ms]
    if len(old) == before.files and _digest(sorted(old)) == before.digest:
        return NewFiles(files=tuple(file for file in files if file.changed_ms > before.newest_ms))
    return NewFiles(
        files=tuple(files), whole_because="files were changed, taken away, or came with older times than those read"
    )


def _by_each(files: Sequence[SourceFileState], each: bytes) -> NewFiles:
    entries = [each[start : start + 2 * _HALF] for start in range(0, len(each), 2 * _HALF)]
    paths, known = {entry[:_HALF] for entry in entries}, set(entries)
    unread = [file for file in files if _path(file) + _state(file) not in known]
    changed = [file for file in unread if _path(file) in paths]
    if changed:
        return NewFiles(files=tuple(files), whole_because=f"{changed[0].path} was changed since it was read")
    return NewFiles(files=tuple(unread))


def _path(file: SourceFileState) -> bytes:
    return hashlib.blake2b(file.path.encode(), digest_size=_HALF).digest()


def _state(file: SourceFileState) -> bytes:
    told = f"{file.path}\0{file.size_bytes}\0{file.changed_ms}"
    return hashlib.blake2b(told.encode(), digest_size=_HALF).digest()


def _digest(ordered: Sequence[SourceFileState]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in ordered:
        digest.update(f"{file.path}\0{file.size_bytes}\0{file.changed_ms}\n".encode())
    return digest.hexdigest()
