# SPDX-License-Identifier: Apache-2.0
"""Restricted files: a periodic task deletes the rewritten files of restricted users when no plan needs them.

Each catalog's warehouse has a reserved directory (`services.iceberg.restricted_reads`). Each directory in it has rows
in the store as long as a plan needs it. A directory without rows is deleted: its plans ended on a killed node or while
the store was unreachable. Directories with a number as name were created by an earlier release, one for each period of
12 hours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from limnos.files import delete_directory, store_for
from limnos.model.errors import LimnosError
from limnos.services.request.catalog_storage import RESTRICTED_READS_DIRECTORY
from limnos.services.request.task_context import Heartbeat, TaskContext
from limnos.store.objects.catalogs import catalogs_read
from limnos.store.objects.restricted_reads import ENDED_AT_ONCE
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.restricted_files")
PRUNE_RESTRICTED: Final = "prune-restricted"
_BINDING: Final = re.compile(r"t[0-9]+-[0-9a-f]{32}")
"""The directory of a table and the restrictions of its readers."""
_DIRECTORY: Final = re.compile(r"t[0-9]+-(?:[0-9a-f]{32}/|[0-9a-f]{12}-)[0-9a-f]{16}")
"""The directory of plans; that of an earlier release has another form."""
PRUNE_RESTRICTED_EVERY_S: Final = 3600.0
PERIOD_MS: Final = 12 * 3_600_000
"""The period of an earlier release, in milliseconds; files of one period were also used in the next."""


async def restricted_prune(work: TaskContext, *, now_ms: int) -> int:
    """Delete the directories that no plan needs, in every catalog. Returns the count of deleted directories.

    A catalog whose storage does not respond is skipped until the next run of the task.
    """
    removed_count = 0
    for home, properties in await work.submit(partial(_warehouses, work)):
        try:
            names = await work.run_in_thread(partial(_list_directories, home, properties=properties))
            directories = await work.submit(partial(_forget_ended, home))
            old = [
                each
                for each in names
                if f"{home}/{RESTRICTED_READS_DIRECTORY}/{each}" not in directories and _is_deletable(each, now_ms)
            ]
            removed_count += await work.run_in_thread(
                partial(delete_directories, home, properties=properties, names=old)
            )
        except LimnosError as error:
            log.warning("files of ended restricted plans stay for now", home=home, error=error.message)
    return removed_count


def _warehouses(work: TaskContext, tx: Tx) -> list[tuple[str, Mapping[str, str]]]:
    catalog_storages = [work.place(record, node_id) for node_id, record in catalogs_read(tx)]
    return list(
        {
            catalog_storage.home: (catalog_storage.home, catalog_storage.catalog.properties)
            for catalog_storage in catalog_storages
            if catalog_storage.home is not None
        }.values()
    )


def _list_directories(home: str, beat: Heartbeat, *, properties: Mapping[str, str]) -> list[str]:
    """List the directories below a warehouse.

    Must run before the rows are read: a directory is created after its row, so every listed directory in use has a row.
    """
    beat(0)
    store, root = store_for(home, properties), f"{home}/{RESTRICTED_READS_DIRECTORY}"
    names: list[str] = []
    for count, name in enumerate(store.directories(root)):
        beat(count)
        below = store.directories(f"{root}/{name}") if _BINDING.fullmatch(name) else None
        names += [name] if below is None else [f"{name}/{each}" for each in below]
    return names


def _forget_ended(home: str, tx: Tx) -> set[str]:
    """Delete the rows of directories whose plans have ended. Returns the directories that are still in use."""
    while len(tx.restricted_reads.end(home)) == ENDED_AT_ONCE:
        pass
    return tx.restricted_reads.read_known()


def _is_deletable(name: str, now_ms: int) -> bool:
    """Return whether a directory without rows may be deleted: one of this server's, or one of a period that has
    ended.
    """
    if name.isascii() and name.isdigit():
        return int(name) < now_ms // PERIOD_MS - 1
    return _DIRECTORY.fullmatch(name) is not None


def delete_directories(home: str, beat: Heartbeat, *, properties: Mapping[str, str], names: list[str]) -> int:
    """Delete directories below a warehouse. Returns the count of deleted directories. Raises StorageFailed,
    ServiceUnavailable.
    """
    for count, name in enumerate(names):
        beat(count)
        delete_directory(f"{home}/{RESTRICTED_READS_DIRECTORY}/{name}", properties)
    return len(names)
