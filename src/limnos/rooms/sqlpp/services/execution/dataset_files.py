# SPDX-License-Identifier: Apache-2.0
"""Files of datasets: pins each dataset of a statement to the snapshot whose files the server has checked.

Must not know any wire format. The engine may open files that the caller may not, and the writers of a table choose the
names of its files. So no dataset goes to an engine before `check_table_files` has found all of its files below the
table's own locations. The engine refuses a table whose snapshot is not the pinned one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from limnos.formats.iceberg.current_files import DocumentFiles
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, InvalidTable, PermissionDenied
from limnos.model.kinds import Kind
from limnos.names.display import render as display_name
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.language.jobs import DatasetRef, EngineJob, SnapshotPin
from limnos.rooms.sqlpp.services.execution.row_access import missing_dataset_error
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.services.storage.checked_files import CheckedSnapshots, CheckedTable, check_table_files

TRIES: Final = 8
"""The maximum number of times that a job is repeated because its tables have other snapshots than the checked ones."""


class _StoredTable(NamedTuple):
    """The document of a dataset's table, and its catalog's storage."""

    document: MetadataDocument
    place: CatalogStorage


class PinnedDatasets(NamedTuple):
    """References with the pins of checked snapshots, and these snapshots."""

    refs: tuple[DatasetRef, ...]
    snapshots: CheckedSnapshots


class PinnedJob(NamedTuple):
    """A job whose datasets are pinned, and the checked snapshots that it reads."""

    job: EngineJob
    snapshots: CheckedSnapshots


async def pin_job(ctx: Context, job: EngineJob) -> PinnedJob:
    """Return a job whose datasets, to read and to write, are pinned to checked snapshots. Raises as `pin_datasets`."""
    targets = () if job.target is None else (job.target,)
    pinned = await pin_datasets(ctx, (*job.reads, *targets))
    target = pinned.refs[-1] if targets else None
    return PinnedJob(replace(job, reads=pinned.refs[: len(job.reads)], target=target), pinned.snapshots)


async def pin_datasets(ctx: Context, refs: Iterable[DatasetRef]) -> PinnedDatasets:
    """Check the files of all datasets, and return their references with the checked snapshots.

    The caller has decided on access to them. Raises SqlppError for a dataset that names files outside of its table's
    locations, and for a missing one.
    """
    refs = tuple(refs)
    tables = [ref for ref in refs if ref.files is None]
    if not tables:
        return PinnedDatasets(refs, CheckedSnapshots())
    stored_tables = await ctx.read(
        scope_of(ctx), lambda request_view: [_find_stored_table(request_view, ref) for ref in tables]
    )
    checked_tables: dict[Levels, CheckedTable] = {}
    for ref, table in zip(tables, stored_tables, strict=True):
        if ref.path not in checked_tables:
            checked_tables[ref.path] = await check_dataset_files(ctx, ref, table=table)
    pinned = [
        ref if ref.files is not None else replace(ref, pin=pin_of(checked_tables[ref.path].files)) for ref in refs
    ]
    snapshots = tuple([each for table in checked_tables.values() for each in table.snapshots])
    return PinnedDatasets(tuple(pinned), CheckedSnapshots(snapshots))


class PinnedCompaction(NamedTuple):
    """A dataset to compact: its reference with the current snapshot, the manifest lists of all its snapshots, and the
    checked snapshots.
    """

    ref: DatasetRef
    manifest_lists: tuple[str, ...]
    snapshots: CheckedSnapshots


async def pin_for_compaction(ctx: Context, ref: DatasetRef) -> PinnedCompaction:
    """Check the files of all snapshots of a dataset, since the compaction deletes files of expired ones.

    Raises as `pin_datasets`.
    """
    (table,) = await ctx.read(scope_of(ctx), lambda request_view: [_find_stored_table(request_view, ref)])
    files, snapshots = await check_dataset_files(ctx, ref, table=table, every_snapshot=True)
    lists = tuple([each.manifest_list for each in files.snapshots or () if each.manifest_list is not None])
    return PinnedCompaction(replace(ref, pin=pin_of(files)), lists, CheckedSnapshots(snapshots))


def _find_stored_table(request_view: RequestView, ref: DatasetRef) -> _StoredTable:
    node, _ = request_view.find(ref.path[1:], Kind.TABLE)
    if node is None or node.kind is not Kind.TABLE:
        raise missing_dataset_error((*ref.dataverse, ref.name))
    return _StoredTable(request_view.document(node.id), catalog_storage_of(request_view))


async def check_dataset_files(
    ctx: Context, ref: DatasetRef, *, table: _StoredTable, every_snapshot: bool = False
) -> CheckedTable:
    """Check the files and properties of a dataset's table. Raises SqlppError with the dataset's name and no file's."""
    try:
        return await check_table_files(ctx, table.document, place=table.place, every_snapshot=every_snapshot)
    except (BadRequest, InvalidTable, PermissionDenied) as error:
        raise compilation(f"Dataset {display_name(ref.path[1:])} cannot be opened: {error.message}") from error


def pin_of(files: DocumentFiles) -> SnapshotPin:
    """Return the pin of a document's current snapshot."""
    current = files.current
    return SnapshotPin() if current is None else SnapshotPin(current.snapshot_id, current.manifest_list)
