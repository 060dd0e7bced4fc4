# SPDX-License-Identifier: Apache-2.0
"""Browsing of filesets: a page of a directory's entries, and the beginning of a file.

Must not know any wire format. Listing needs the right to load the fileset, and content the right to read its files.
Symbolic links are not listed, and a file that a link places outside of the fileset's location is treated as missing. A
worker process reads files, within limits. Each preview is audited, because content leaves the lake.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from limnos.access.actions import Action
from limnos.files import FileEntry
from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.previews import ANSWER_BYTES_MAX, COLUMNS_MAX, ROWS_MAX, PreviewColumn
from limnos.names.path import Levels
from limnos.services.catalog.filesets import FilesetPath, check_links, fileset_path, place_identity, printable
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER, RUNNING_PREVIEWS, ended_process_explained
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView

PAGE_MAX: Final = 1_000
READ_BYTES_MAX: Final = 64 << 20
"""The maximum number of bytes of a file that one preview reads."""


class FilePath(NamedTuple):
    """A path within a fileset: the fileset, the path in it, and the name of its location; None for the default."""

    fileset: Levels
    path: str
    location: str | None = None


class DirectoryPage(NamedTuple):
    """A page of a directory's entries, directories first, and the cursor of the next page; None at the end.

    Bytes of local names that are not UTF-8 are surrogates (`surrogateescape`), which `printable` replaces. The cursor
    `after` is the last entry's name, with a slash at the end for a directory. In it, a name that is not UTF-8 is
    percent-encoded after two slashes, with which no name begins.
    """

    directories: list[str]
    files: list[FileEntry]
    after: str | None


class FilePreview(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a file: rows with columns, or text, or neither for a binary file."""

    size: int
    is_complete: bool
    columns: list[tuple[str, str]] = []
    rows: list[list[object]] = []
    columns_left_out: int = 0
    text: str | None = None

    @property
    def preview_columns(self) -> tuple[PreviewColumn, ...]:
        """The columns of the previewed rows."""
        return tuple(PreviewColumn(name, kind) for name, kind in self.columns)


async def directory_page(
    ctx: Context, scope: RequestScope, *, at: FilePath, after: str = "", size: int = PAGE_MAX
) -> DirectoryPage:
    """List a page of the entries directly in a directory of a fileset, for a caller who may load the fileset.

    Raises NotFound (the fileset, its location, the directory), PermissionDenied, BadRequest (limits, a path outside),
    OutsideRoots, StorageFailed, ServiceUnavailable.
    """

    def find(view: RequestView) -> FilesetPath:
        directory = fileset_path(view, at.fileset, sub_path=at.path, name=at.location)
        if not 1 <= size <= PAGE_MAX:
            raise BadRequest(f"A page must have 1 to {PAGE_MAX} entries, not {size}")
        return directory

    async def read(directory: FilesetPath) -> DirectoryPage:
        return await _page_read(ctx, directory, after=after, size=size)

    _, page = await ctx.read_confirmed(scope, find, work=read, identity=place_identity)
    return page


async def _page_read(ctx: Context, directory: FilesetPath, *, after: str, size: int) -> DirectoryPage:
    check_links(directory)
    files, properties, roots = ctx.services.files, directory.place.catalog.properties, directory.place.roots
    after_name = _parse_cursor(after.removesuffix("/"))
    is_in_files = bool(after) and not after.endswith("/")
    directories = [] if is_in_files else await files.directories(directory.location, properties, roots=roots)
    left = sorted(name for name in directories if name > after_name)
    visible = left[:size]
    if len(left) > size:
        return DirectoryPage(visible, [], f"{_cursor(visible[-1])}/")
    room, start = size - len(visible), after_name if is_in_files else ""

    def choose(names: list[str]) -> list[str]:
        return sorted(name for name in names if name > start)[: room + 1]

    entries = await files.list_selected(directory.location, properties, roots=roots, choose=choose)
    page = entries[:room]
    if len(entries) <= room:
        return DirectoryPage(visible, page, None)
    return DirectoryPage(visible, page, _cursor(page[-1].name) if page else f"{_cursor(visible[-1])}/")


def _cursor(name: str) -> str:
    """Encode a file name as a cursor, which `_parse_cursor` decodes. A name that is not UTF-8 is percent-encoded after
    `//`.
    """
    if printable(name) == name:
        return name
    return f"//{quote_from_bytes(name.encode('utf-8', 'surrogateescape'), safe='')}"


def _parse_cursor(text: str) -> str:
    if not text.startswith("//"):
        return text
    return unquote_to_bytes(text[2:]).decode("utf-8", "surrogateescape")


async def file_preview(ctx: Context, scope: RequestScope, *, at: FilePath, rows: int = ROWS_MAX) -> FilePreview:
    """Return the beginning of a fileset's file, for a caller who may read the fileset's files.

    Raises NotFound (the fileset, its location, the file), PermissionDenied, BadRequest (limits, a path outside),
    OutsideRoots, UnsupportedOperation (damaged), StorageFailed, ServiceUnavailable (deadline, dead process).
    """

    def find(view: RequestView) -> tuple[FilesetPath, str]:
        file = fileset_path(view, at.fileset, sub_path=at.path, name=at.location, action=Action.FILESET_READ)
        if not 1 <= rows <= ROWS_MAX:
            raise BadRequest(f"A preview must have 1 to {ROWS_MAX} rows, not {rows}")
        return file, view.user

    async def read(decided: tuple[FilesetPath, str]) -> FilePreview:
        file, user = decided
        preview = await _preview_read(ctx, file, rows=rows, user=user)
        if preview is None:
            raise NotFound(f"The fileset has no file {at.path.strip('/')}", kind="file")
        return preview

    (file, user), preview = await ctx.read_confirmed(
        scope, find, work=read, identity=lambda decided: (place_identity(decided[0]), decided[1])
    )
    what = f"{len(preview.rows)} rows" if preview.columns else f"{len(preview.text or '')} characters"
    ctx.audit_rows(
        file.node_id,
        (scope.catalog or "", *at.fileset),
        kind=Kind.FILESET.word,
        action=Action.FILESET_READ,
        user=user,
        detail=f"preview of {what} of {at.path.strip('/')[:200]}",
    )
    return preview


async def _preview_read(ctx: Context, file: FilesetPath, *, rows: int, user: str) -> FilePreview | None:
    """Read the beginning of a file in a worker process; None if the file is missing."""
    question = {
        "location": file.location,
        "root": file.base,
        "properties": file.place.catalog.properties,
        "kept": file.place.allowed.own_directories,
        "open_within": file.place.allowed.open_within,
        "read_bytes_max": READ_BYTES_MAX,
        "limits": {"rows_max": rows, "columns_max": COLUMNS_MAX, "bytes_max": ANSWER_BYTES_MAX},
    }

    async def read() -> FilePreview | None:
        with ended_process_explained():
            (answer,) = await PREVIEW_OFFLOADER.of(ctx.services).do(
                "preview-fileset-file", msgspec.json.encode(question), caller=user
            )
        return msgspec.json.decode(answer, type=FilePreview | None)

    return await RUNNING_PREVIEWS.of(ctx.services).run(user, read, offloader=PREVIEW_OFFLOADER.of(ctx.services))
