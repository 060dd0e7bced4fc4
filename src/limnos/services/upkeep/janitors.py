# SPDX-License-Identifier: Apache-2.0
"""Janitor: deletes unreferenced metadata files that this server wrote, and directories that become empty.

A process that is killed between writing a metadata file and committing it leaves such a file. Only files on local disks
that are certainly orphans are deleted:

- The name matches the pattern of this server's metadata files, and the time of its UUID lies in the window: after the
  janitor's first run on this store (or the first after a restore, since a younger state may have used the file), and
  longer ago than the grace time.
- In the directory of a live table: another file that the document names has the same version, so this one lost a race
  or was never committed. Files that only dropped out of the log stay, since they were committed once.
- Without a table: the directory lies directly in a catalog's warehouse, its name is a UUID that this server generated
  in the window, and it contains nothing but a table's first metadata file. No purge task is pending for it. The
  warehouse must contain this store's marker file, since two servers could share one.

The same round runs the cleanups of rooms, such as that of files that killed writers left in Lance tables.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from limnos.files import is_local, path_of
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.model.entities import MetadataDocument
from limnos.services.lance.purge_tasks import LANCE_PURGE, LancePurgePayload
from limnos.services.request.task_context import Heartbeat, TaskContext
from limnos.services.storage.location_claims import rivals_of
from limnos.services.storage.purges import PURGE, PurgePayload
from limnos.store.objects.catalogs import catalogs_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.janitor")
JANITOR = "janitor"
PAGE = 200
EVERY_S = 86_400.0
GRACE_MS = 7 * 86_400_000
MARK = ".limnos-store"
REMOVED = Counter("limnos_janitor_removed_total", "Removed orphaned metadata files and empty directories.", ("what",))
_FILE = re.compile(
    r"([0-9]{5,9})-([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json"
)
_DIRECTORY = re.compile("([0-9a-f]{12})7[0-9a-f]{19}")


class JanitorPayload(msgspec.Struct):
    """The payload of the task: the start of the orphan window (milliseconds since 1970), the store's epoch at that
    time, and the store's mark, the content of its marker files.

    The store writes a marker file into each of its warehouses.
    """

    since_ms: int = 0
    epoch: int = 0
    mark: str = ""


class OrphanWindow(NamedTuple):
    """The time window in which an unreferenced file of this server may be an orphan, in milliseconds since 1970."""

    since_ms: int
    until_ms: int

    def covers(self, at_ms: int) -> bool:
        """Return whether a time lies in the window."""
        return self.since_ms < at_ms < self.until_ms


class OrphanFiles(NamedTuple):
    """The paths of files to delete, and of directories that are or become empty."""

    files: tuple[str, ...]
    directories: tuple[str, ...]


NOTHING = OrphanFiles((), ())


def version_within(name: str, watch: OrphanWindow) -> int | None:
    """Parse the name of a metadata file into its version, if this server wrote it in the window; None for any other
    name.
    """
    match = _FILE.fullmatch(name)
    if match is None or not watch.covers(int(match[2] + match[3], 16)):
        return None
    return int(match[1])


def is_table_within(name: str, watch: OrphanWindow) -> bool:
    """Return whether a directory's name is a time-ordered UUID created within the orphan window."""
    match = _DIRECTORY.fullmatch(name)
    return match is not None and watch.covers(int(match[1], 16))


def lost_race_files(directory: str, document: MetadataDocument, watch: OrphanWindow) -> list[str]:
    """Return the metadata files in a live table's directory that lost a commit race to another file of the same
    version.
    """
    metadata = iceberg_metadata.decode(document.body)
    logged = [row.get("metadata-file") for row in iceberg_metadata.rows(metadata, "metadata-log")]
    needed_names = {str(each).rpartition("/")[2] for each in (document.metadata_location, *logged)}
    versions = {iceberg_metadata.version_of(name) for name in needed_names}
    names = [name for name in _names(directory) if name not in needed_names]
    return [f"{directory}/{name}" for name in names if version_within(name, watch) in versions]


def find_leftover(directory: str, watch: OrphanWindow) -> OrphanFiles:
    """Return the files and directories that a failed creation of a table left in a directory; empty if it contains
    anything else.
    """
    files, inner = [], []
    for name in _names(directory):
        path = f"{directory}/{name}"
        if name not in ("data", "metadata") or Path(path).is_symlink() or not Path(path).is_dir():
            return NOTHING
        inner.append(path)
        files += [f"{path}/{each}" for each in _names(path)]
    if Path(directory).is_symlink() or not Path(directory).is_dir() or len(files) > 1:
        return NOTHING
    for path in files:
        parent, _, name = path.rpartition("/")
        if not parent.endswith("/metadata") or version_within(name, watch) != 0 or not Path(path).is_file():
            return NOTHING
    return OrphanFiles(tuple(files), (*inner, directory))


async def janitor_run(
    work: TaskContext, payload: JanitorPayload, *, dry: bool = False
) -> tuple[JanitorPayload, list[str]]:
    """Run the orphan-file cleanup once; with `dry` only list the orphan files.

    The first run, and the first run after a change of the store's epoch, delete nothing: they only record the epoch and
    the time.

    Returns:
        The payload for the next run, and the paths of the orphan files.
    """
    epoch = await work.submit(lambda tx: tx.epoch())
    now_ms = time.time_ns() // 1_000_000
    if payload.epoch != epoch:
        return JanitorPayload(now_ms, epoch, payload.mark or os.urandom(16).hex()), []
    sweep = _JanitorSweep(work, payload, OrphanWindow(payload.since_ms, now_ms - GRACE_MS), dry=dry)
    await sweep.tables()
    await sweep.warehouses()
    for cleanup in work.cleanups:
        sweep.deleted_names += await cleanup(work, now_ms=now_ms, dry=dry)
    if sweep.deleted_names and not dry:
        log.info("orphans removed", paths=len(sweep.deleted_names), first=sweep.deleted_names[:10])
    return payload, sweep.deleted_names


class _JanitorSweep:
    """One round of the janitor, in pages: it reads the store in transactions, and the disk in threads."""

    def __init__(self, work: TaskContext, payload: JanitorPayload, watch: OrphanWindow, *, dry: bool) -> None:
        self.work = work
        self.mark = payload.mark
        self.watch = watch
        self.dry = dry
        self.deleted_names: list[str] = []

    async def tables(self) -> None:
        """Check the files in the directory of every live table's metadata file."""
        after = ""
        while page := await self.work.submit(partial(_page, after)):
            after = page[-1].location
            here = [
                one for one in page if one.current and is_local(one.current) and self.work.allowed.covers(one.location)
            ]
            for one in await self.work.run_in_thread(partial(_with_candidates, here, self.watch)):
                document = await self.work.submit(partial(_document, one.node_id))
                if document is not None:
                    await self._take(await self.work.run_in_thread(partial(_losers_of, document, self.watch)))

    async def warehouses(self) -> None:
        """Check the warehouse of each catalog for files of failed table creations."""
        pending = await self.work.submit(_pending_purges)
        for home in await self.work.submit(self._homes):
            names = await self.work.run_in_thread(partial(_tables_within, home, self.watch))
            if names and not await self.work.run_in_thread(partial(self._is_ours, home)):
                log.warning("warehouse is marked by another store: orphans are not removed", home=home, mark=MARK)
                continue
            for at in range(0, len(names), PAGE):
                warehouse_urls = [f"file://{home}/{name}" for name in names[at : at + PAGE]]
                free = await self.work.submit(
                    partial(_find_unclaimed, [each for each in warehouse_urls if each not in pending])
                )
                await self._take(await self.work.run_in_thread(partial(_leftovers, free, self.watch)))

    def _homes(self, tx: Tx) -> list[str]:
        catalog_storages = [self.work.place(record, node_id) for node_id, record in catalogs_read(tx)]
        return list(dict.fromkeys(path_of(each.home) for each in catalog_storages if each.home and is_local(each.home)))

    def _is_ours(self, home: str, _beat: Heartbeat) -> bool:
        """Return whether a warehouse has this store's marker file. Creates the file in a warehouse without one, except
        in a dry run.
        """
        with suppress(FileExistsError, FileNotFoundError):
            if not self.dry:
                with Path(home, MARK).open("x") as file:
                    file.write(self.mark)
        try:
            return Path(home, MARK).read_text() == self.mark
        except FileNotFoundError:
            return self.dry
        except (OSError, ValueError):
            return False

    async def _take(self, files: OrphanFiles) -> None:
        if self.dry:
            self.deleted_names += [*files.files, *files.directories]
        elif files.files or files.directories:
            self.deleted_names += await self.work.run_in_thread(partial(_remove, files))


class _LiveTable(NamedTuple):
    """A table that is not in the trash, with its location and its current metadata file."""

    node_id: int
    location: str
    current: str


def _page(after: str, tx: Tx) -> list[_LiveTable]:
    return [_LiveTable(*row) for row in tx.documents.page(after, limit=PAGE)]


def _document(node_id: int, tx: Tx) -> MetadataDocument | None:
    return tx.documents.read(node_id)


def _find_unclaimed(places: list[str], tx: Tx) -> list[str]:
    return [directory for directory in places if not rivals_of(tx, directory)]


def _pending_purges(tx: Tx) -> set[str]:
    """Return the locations of purges that are pending or have failed permanently."""
    payloads = (msgspec.json.decode(text, type=PurgePayload) for text in tx.tasks.payloads(PURGE))
    lance = (msgspec.json.decode(text, type=LancePurgePayload) for text in tx.tasks.payloads(LANCE_PURGE))
    names = {payload.location for payload in payloads if payload.location is not None}
    return names | {payload.location for payload in lance}


def _with_candidates(page: list[_LiveTable], watch: OrphanWindow, beat: Heartbeat) -> list[_LiveTable]:
    """Return the tables of a page whose directory may contain an orphan, so that their documents must be read."""
    tables = []
    for count, one in enumerate(page):
        beat(count)
        directory, _, current = one.current.rpartition("/")
        names = _names(path_of(directory))
        if any(name != current and version_within(name, watch) is not None for name in names):
            tables.append(one)
    return tables


def _losers_of(document: MetadataDocument, watch: OrphanWindow, _beat: Heartbeat) -> OrphanFiles:
    directory = path_of(document.metadata_location.rpartition("/")[0])
    return OrphanFiles(tuple(lost_race_files(directory, document, watch)), ())


def _tables_within(home: str, watch: OrphanWindow, _beat: Heartbeat) -> list[str]:
    return [name for name in _names(home) if is_table_within(name, watch)]


def _leftovers(places: list[str], watch: OrphanWindow, beat: Heartbeat) -> OrphanFiles:
    files: list[str] = []
    directories: list[str] = []
    for count, directory in enumerate(places):
        beat(count)
        orphan_files = find_leftover(path_of(directory), watch)
        files += orphan_files.files
        directories += orphan_files.directories
    return OrphanFiles(tuple(files), tuple(directories))


def _remove(files: OrphanFiles, beat: Heartbeat) -> list[str]:
    names = []
    for count, (path, remove) in enumerate(
        [*((each, os.unlink) for each in files.files), *((each, os.rmdir) for each in files.directories)]
    ):
        beat(count)
        with suppress(OSError):  # it no longer exists, or the directory is no longer empty
            remove(path)
            names.append(path)
            REMOVED["file" if remove is os.unlink else "directory",] += 1
    return names


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return []
