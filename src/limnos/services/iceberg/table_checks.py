# SPDX-License-Identifier: Apache-2.0
"""Table checks: whether the files that a table's metadata names exist and have the stated sizes.

Must not know any wire format. A check runs in slices, which are limited in files and time. Each returns the start of
the next one; nothing is stored in between. Decision record 0136.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg.file_lists import ListedFile, ListedManifest, SnapshotFiles
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, InvalidTable, LimnosError, MissingFile, OutsideRoots, TooLarge
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_find
from limnos.services.iceberg.added_files import OwnFiles, own_files
from limnos.services.iceberg.scan_queue import SCAN_QUEUE
from limnos.services.iceberg.unreadable_documents import reader_problems
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.files import AT_ONCE
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView

FILES_MAX: Final = 1_000
"""The maximum number of files of one slice."""
SLICE_S: Final = 10.0
"""The time after which a slice ends, once its current files are done, in seconds."""
_FILES_AT_A_TIME: Final = 200
MISSING, SIZE, UNREADABLE, OUTSIDE = "missing", "size", "unreadable", "outside"
REFUSED: Final = "refused"
"""The problem of a metadata document that some readers refuse."""
_ADVICE: Final = {
    ("metadata", MISSING): "restore it, or register the table again with its newest existing metadata file",
    (
        "manifest list",
        MISSING,
    ): "its snapshot cannot be read: restore it, or roll the table back to another snapshot and expire this one",
    (
        "manifest",
        MISSING,
    ): "snapshots that list it cannot be read: restore it, or roll the table back to a snapshot without it",
    (
        "file",
        MISSING,
    ): (
        "scans that need it fail: restore it, roll the table back to a snapshot without it, or delete it from the table"
        " and write its rows again"
    ),
    ("statistics", MISSING): "only statistics are lost: compute them again, or remove them from the table",
}
_WRONG: Final = {
    SIZE: "it was truncated or overwritten: restore the original file, or treat it as missing",
    UNREADABLE: "restore the original file, or treat it as missing",
    OUTSIDE: (
        "it is outside of the table's location and data paths, where the server does not check files: check it with the"
        " storage's own tools"
    ),
}


class FileFinding(NamedTuple):
    """A problem of a file: it is missing, unreadable, outside of the table's locations, or has another size than the
    table's metadata states.
    """

    kind: str
    """`metadata`, `manifest list`, `manifest`, `file` (of data or deletes), or `statistics`."""
    problem: str
    file: str
    snapshot_id: int | None
    size_told: int | None
    size_found: int | None
    note: str = ""
    """The problem and its remedy, if they are not those of all such files."""

    @property
    def advice(self) -> str:
        """Advice on how to repair the file."""
        return self.note or _ADVICE.get((self.kind, self.problem)) or _WRONG[self.problem]


class CheckSlice(NamedTuple):
    """The result of a slice: the count of checked files, the problems, and the start of the next slice; None at the
    end.
    """

    files: int
    findings: tuple[FileFinding, ...]
    after: str | None


class _SlicePosition(msgspec.Struct, frozen=True, array_like=True):
    """The start of a slice: a snapshot by time and id, a manifest in its list, and a file in that manifest."""

    timestamp_ms: int = -1
    snapshot_id: int = -1
    manifest: int = 0
    file: int = 0


_START: Final = _SlicePosition()


async def table_check(
    ctx: Context, scope: RequestScope, *, path: Levels, every: bool, after: str | None, files_max: int = FILES_MAX
) -> CheckSlice:
    """Check some files of a table.

    Args:
        ctx: The request.
        scope: The catalog.
        path: The path of the table.
        every: Whether to check every snapshot, or only the current one.
        after: The position that the slice before returned; None for the first slice.
        files_max: The approximate maximum number of files to check.

    Raises:
        NotFound: The table is missing, or has another format.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not check it, or its location conflicts with another one.
        UnsupportedOperation: The catalog is federated.
        BadRequest: The position is invalid, or a snapshot was removed during the check.
        ServiceUnavailable: The storage does not respond.
    """

    def look(request_view: RequestView) -> tuple[MetadataDocument, CatalogStorage, str]:
        node = table_find(request_view, path[:-1], path[-1], Action.TABLE_CHECK).entity
        request_view.defaults.location_conflicts.refuse(node.id, what="table")
        return request_view.document(node.id), catalog_storage_of(request_view), request_view.user

    document, catalog_storage, user = await ctx.read(scope, look)
    position = _position_of(after)
    files = own_files(ctx, document, place=catalog_storage)
    async with SCAN_QUEUE.of(ctx.services).turn((("caller", user),)):
        check = _SliceCheck(files, files_max=files_max, every=every)
        results = await ctx.services.offloader.do("iceberg-snapshots", document.body)
        if position == _START:
            problems = await reader_problems(ctx.services, document)
            await check.begin(document, msgspec.json.decode(results[1], type=list[ListedFile]), problems=problems)
        snapshots = msgspec.json.decode(results[0], type=list[SnapshotFiles])
        left = _remaining_snapshots(snapshots, current=msgspec.json.decode(results[2]), every=every, position=position)
        return await check.run(left, position=position)


def _position_of(after: str | None) -> _SlicePosition:
    if not after:
        return _START
    try:
        position = _SlicePosition(*map(int, after.split(".")))
    except (TypeError, ValueError):
        position = _START
    if len(after) > 100 or min(position.manifest, position.file) < 0 or position == _START:
        raise BadRequest(f"'{after[:50]}' is not a position in a check: send 'after' of the last response")
    return position


def _remaining_snapshots(
    snapshots: Sequence[SnapshotFiles], *, current: int | None, every: bool, position: _SlicePosition
) -> list[tuple[SnapshotFiles, SnapshotFiles | None]]:
    """Return the snapshots that are still to be checked, oldest first, each with its predecessor.

    Raises BadRequest if the snapshot at the position was removed.
    """
    if not every:
        requested = current if position == _START else position.snapshot_id
        requested_snapshots = [each for each in snapshots if each.snapshot_id == requested]
        if position != _START and not requested_snapshots:
            raise BadRequest(
                f"Snapshot {requested} was removed while it was checked: start the check again, without 'after'"
            )
        return [(each, None) for each in requested_snapshots]
    at = (position.timestamp_ms, position.snapshot_id)
    pairs = zip(snapshots, (None, *snapshots), strict=False)
    return [(each, before) for each, before in pairs if (each.timestamp_ms, each.snapshot_id) >= at]


class _SliceCheck:
    """Checks the files of one slice of a table check. A slice ends after `files_max` files or `SLICE_S` seconds."""

    def __init__(self, files: OwnFiles, *, files_max: int, every: bool) -> None:
        self.files = files
        self.every = every
        self.files_left = files_max
        self.count = 0
        self.findings: list[FileFinding] = []
        self.has_moved = False
        """Whether a manifest has been checked. Even a slow slice finishes one, so that the next slice begins at
        another.
        """
        self._until = asyncio.get_running_loop().time() + SLICE_S

    def is_over(self) -> bool:
        """Return whether the slice has used up its files or its time."""
        return self.has_moved and (self.files_left <= 0 or asyncio.get_running_loop().time() > self._until)

    async def begin(
        self, document: MetadataDocument, statistics: Sequence[ListedFile], *, problems: Sequence[str]
    ) -> None:
        """Report the problems of the metadata document, and check the files outside of snapshots: the metadata file
        and statistics.
        """
        location = document.metadata_location
        self.findings += [
            FileFinding(
                kind="metadata",
                problem=REFUSED,
                file=location,
                snapshot_id=None,
                size_told=None,
                size_found=None,
                note=note,
            )
            for note in problems
        ]
        await self._check_sizes([ListedFile(document.metadata_location, None)], kind="metadata", snapshot=None)
        await self._check_sizes(statistics, kind="statistics", snapshot=None)

    async def run(
        self, left: Sequence[tuple[SnapshotFiles, SnapshotFiles | None]], *, position: _SlicePosition
    ) -> CheckSlice:
        """Check snapshots until the slice is over."""
        for snapshot, before in left:
            is_at = snapshot.snapshot_id == position.snapshot_id
            manifest, file = (position.manifest, position.file) if is_at else (0, 0)
            stopped = await self._snapshot(snapshot, before, manifest=manifest, file=file)
            if stopped is not None:
                after = f"{snapshot.timestamp_ms}.{snapshot.snapshot_id}.{stopped[0]}.{stopped[1]}"
                return CheckSlice(self.count, tuple(self.findings), after)
        return CheckSlice(self.count, tuple(self.findings), None)

    async def _snapshot(
        self, snapshot: SnapshotFiles, before: SnapshotFiles | None, *, manifest: int, file: int
    ) -> tuple[int, int] | None:
        """Check a snapshot, starting at a position. Returns where the slice ended; None if the whole snapshot is
        checked.
        """
        if self.is_over():
            return manifest, file
        manifests = await self._manifests(snapshot, is_first=(manifest, file) == (0, 0))
        checked_paths = (
            set() if before is None else {each.path for each in await self._manifests(before, is_first=False)}
        )
        for number, each in enumerate(manifests[manifest:], manifest):
            if each.path in checked_paths:
                continue  # already checked with the previous snapshot
            skip = file if number == manifest else 0
            if self.is_over():
                return number, skip
            stopped = await self._manifest(each, snapshot, skip=skip)
            self.has_moved = True
            if stopped is not None:
                return number, stopped
        self.has_moved = True
        return None

    async def _manifests(self, snapshot: SnapshotFiles, *, is_first: bool) -> tuple[ListedManifest, ...]:
        """Read a snapshot's manifest list. Problems are reported only if `is_first`; otherwise an earlier slice has
        reported them.
        """
        location = snapshot.manifest_list
        if location is None:
            return tuple([ListedManifest(each, None, None) for each in snapshot.manifests])
        if is_first:
            self._count_files(1)
        try:
            return (await self.files.manifests(location))[0]
        except LimnosError as error:
            finding = self._finding(error, ListedFile(location, None), kind="manifest list", snapshot=snapshot)
            if is_first:
                self.findings.append(finding)
            return ()

    async def _manifest(self, manifest: ListedManifest, snapshot: SnapshotFiles, *, skip: int) -> int | None:
        """Check a manifest and its files, starting at a given file.

        Returns the file at which the slice ended; None if the whole manifest is checked.
        """
        file = ListedFile(manifest.path, manifest.size)
        if not skip:
            self._count_files(1)
        try:
            page, size = await self.files.page(
                manifest.path, only_added=False, skip=skip, limit=max(self.files_left, 1)
            )
        except LimnosError as error:
            self.findings.append(self._finding(error, file, kind="manifest", snapshot=snapshot))
            return None
        if not skip and manifest.size not in (None, size):
            self.findings.append(
                FileFinding(
                    kind="manifest",
                    problem=SIZE,
                    file=manifest.path,
                    snapshot_id=snapshot.snapshot_id,
                    size_told=manifest.size,
                    size_found=size,
                )
            )
        for first in range(0, len(page.files), _FILES_AT_A_TIME):
            if first and self.is_over():
                return skip + first
            await self._check_sizes(page.files[first : first + _FILES_AT_A_TIME], kind="file", snapshot=snapshot)
        return skip + len(page.files) if page.has_more else None

    async def _check_sizes(self, files: Sequence[ListedFile], *, kind: str, snapshot: SnapshotFiles | None) -> None:
        """Check concurrently that files exist and have the sizes that the metadata states."""

        async def look(file: ListedFile) -> FileFinding | None:
            try:
                size = await self.files.size(file.path)
                if size is None:
                    raise MissingFile("it does not exist")
            except (MissingFile, OutsideRoots) as error:
                return self._finding(error, file, kind=kind, snapshot=snapshot)
            if file.size in (None, size):
                return None
            return FileFinding(
                kind=kind,
                problem=SIZE,
                file=file.path,
                snapshot_id=None if snapshot is None else snapshot.snapshot_id,
                size_told=file.size,
                size_found=size,
            )

        self._count_files(len(files))
        self.findings += [
            result for result in await map_concurrently(files, look, at_once=AT_ONCE) if result is not None
        ]

    def _count_files(self, count: int) -> None:
        self.count += count
        self.files_left -= count

    @staticmethod
    def _finding(error: LimnosError, file: ListedFile, *, kind: str, snapshot: SnapshotFiles | None) -> FileFinding:
        """Convert an error of reading a file to a finding. Re-raises errors of the storage that do not concern the
        file.
        """
        if isinstance(error, MissingFile):
            problem = MISSING
        elif isinstance(error, OutsideRoots):
            problem = OUTSIDE
        elif isinstance(error, (InvalidTable, TooLarge)):
            problem = UNREADABLE
        else:
            raise error
        return FileFinding(
            kind=kind,
            problem=problem,
            file=file.path,
            snapshot_id=None if snapshot is None else snapshot.snapshot_id,
            size_told=file.size,
            size_found=None,
        )
