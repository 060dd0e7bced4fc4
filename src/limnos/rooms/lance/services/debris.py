# SPDX-License-Identifier: Apache-2.0
"""Lance debris: a task deletes old unreferenced files of killed or refused writers, and old manifests that were moved
aside.

The setting `lance.debris_age_s` is the minimum age of these files. A file of rows is deleted only if no manifest of the
table refers to it, of any version, branch or writer (`formats.lance_orphans`). Manifests are read after the files were
listed, so files committed since are either referred to or younger. If any part of a table cannot be read, all of its
files are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from limnos.files import FileStore, is_local, is_within, leads_within, store_for, sweep_empty
from limnos.formats.lance_orphans import AgedFile, ReferenceSearch, sort_files
from limnos.model.errors import LimnosError
from limnos.rooms.lance.services.purges import OWN
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.table_formats import LANCE
from limnos.services.request.task_context import Heartbeat, TaskContext
from limnos.store.objects.catalogs import catalog_of, catalog_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.janitor")
PAGE: Final = 200
MANIFEST_BYTES_MAX: Final = 1 << 28
REMOVED: Final = Counter("limnos_lance_debris_total", "Removed files of Lance tables that no version refers to.", ())


class DebrisTable(NamedTuple):
    """A Lance table to clean: its location, its catalog's storage, and the names of its newest versions' staged
    manifests.
    """

    location: str
    place: CatalogStorage
    staged: frozenset[str]


async def debris_run(work: TaskContext, *, now_ms: int, dry: bool) -> list[str]:
    """Delete old files that no version of any Lance table refers to; with `dry` only list them. Returns the names of
    the deleted or listed files.
    """
    if not work.debris_ms:
        return []
    names: list[str] = []
    after = ""
    while page := await work.submit(partial(_page, after)):
        after = page[-1][1]
        for node_id, location, metadata in page:
            if not metadata:
                table = await work.submit(partial(_table, node_id=node_id, location=location, work=work))
                names += (
                    [] if table is None else await _tidy_table(work, table, before_ms=now_ms - work.debris_ms, dry=dry)
                )
    return names


def _page(after: str, tx: Tx) -> list[tuple[int, str, str]]:
    return tx.documents.page(after, limit=PAGE)


def _table(tx: Tx, *, node_id: int, location: str, work: TaskContext) -> DebrisTable | None:
    """Return the table of a node; None if it no longer exists, or its location is no longer allowed."""
    zone = catalog_of(tx, node_id, node_format=LANCE)
    record = None if zone is None else catalog_read(tx, zone)
    if zone is None or record is None:
        return None
    place = work.place(record, zone)
    if not is_within(location, place.roots) or (
        is_local(location) and not leads_within(location, place.roots, allowed=work.allowed)
    ):
        return None
    return DebrisTable(location, place, frozenset(tx.lance_versions.read_staged_names(node_id)))


async def _tidy_table(work: TaskContext, table: DebrisTable, *, before_ms: int, dry: bool) -> list[str]:
    try:
        table.place.allowed.check_use(table.place.catalog.properties)
        names = await work.run_in_thread(partial(delete_debris, table, before_ms=before_ms, dry=dry))
    except LimnosError as error:
        log.warning("a table was not checked for unreferenced files", location=table.location, error=error.message)
        return []
    if names and not dry:
        REMOVED[()] += len(names)
        log.info(
            "unreferenced files of a Lance table removed", location=table.location, files=len(names), first=names[:5]
        )
    return [f"{table.location}/{name}" for name in names]


def delete_debris(table: DebrisTable, beat: Heartbeat, *, before_ms: int, dry: bool = False) -> list[str]:
    """Delete one table's orphan files that were last modified before `before_ms` (milliseconds since 1970); with `dry`
    only list them. Returns their names.

    Raises MissingFile, TooLarge for a manifest, StorageFailed, ServiceUnavailable.
    """
    store = store_for(table.location, table.place.catalog.properties)
    files = [
        AgedFile(f"{name}/{each.name}", each.modified_ms)
        for name in OWN
        for each in store.entries(f"{table.location}/{name}", deep=True)
    ]
    kind = sort_files(files, before_ms=before_ms, staged=table.staged)

    def read(name: str) -> bytes:
        beat(read_so_far.__next__())
        return store.read(f"{table.location}/{name}", bytes_max=MANIFEST_BYTES_MAX)

    read_so_far = iter(range(1 << 62))
    unknown_files = _find_unknown_files(kind.marked, kind.transactions, manifests=kind.manifests, read=read)
    names = [*kind.unowned, *unknown_files]
    if not dry:
        _delete(store, table.location, names=names, beat=beat)
    return names


def _find_unknown_files(
    marked: Mapping[bytes, list[str]],
    transactions: Mapping[bytes, list[str]],
    *,
    manifests: list[str],
    read: Callable[[str], bytes],
) -> list[str]:
    """Return the files that no manifest refers to.

    Usually the first manifests refer to all files, and the others are not read.
    """
    search = ReferenceSearch(marked)
    if not search.suspects or not manifests:
        return []
    for name in manifests:
        if search.clear(read(name)):
            return []
    search.narrow()
    search.suspects.update(transactions)
    for name in manifests:
        if search.clear_by_bytes(read(name)):
            return []
    needed_files = {**marked, **transactions}
    return sorted(name for mark in search.suspects for name in needed_files[mark])


def _delete(store: FileStore, location: str, *, names: Iterable[str], beat: Heartbeat) -> None:
    for count, name in enumerate(names):
        store.delete(f"{location}/{name}")
        beat(count)
    if is_local(location):
        for index in {name.rpartition("/")[0] for name in names if "_indices/" in name}:
            sweep_empty(f"{location}/{index}", lambda: None)
