# SPDX-License-Identifier: Apache-2.0
"""Maintains Lance tables: reads their state, merges fragments, refreshes indexes and removes old versions.

Must not know policies. Runs in a worker process. A compaction and a refresh are commits like those of writers; if
another commit changed the same files, they fail without a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import lance
from lance.optimize import Compaction

from limnos.formats.lance_table_state import LanceIndexState, LanceTableState, LanceVersionState, MaintenanceResult
from limnos.rooms.lance.sources.library_errors import translate_library_errors
from limnos.rooms.lance.sources.maintenance_questions import CleanUp, Compact, ReadState, RefreshIndexes
from limnos.rooms.lance.sources.opening import open_for_rows, open_for_writing

_VECTOR: Final = "IVF"
"""The beginning of the types of vector indexes."""
THREADS: Final = 2
"""The number of threads that a compaction uses, so that requests to other tables have a core."""


def read_state(request: ReadState) -> LanceTableState:
    """Read the fragments, indexes and versions of a table from its metadata; no data file is opened. Raises NotFound
    for a table without data.
    """
    dataset = open_for_rows(request)
    with translate_library_errors(request.location):
        versions: list[Any] = list(dataset.versions())
        fragments = [each.metadata for each in dataset.get_fragments()]
        tasks = Compaction.plan(dataset, {}).tasks
        mergeable = {fragment.id for task in tasks for fragment in task.fragments}
        sizes = {each.id: sum(file.file_size_bytes or 0 for file in each.files) for each in fragments}
        rows = dataset.count_rows()
        tags, branches = dataset.tags.list(), dataset.branches.list()
        return LanceTableState(
            rows=rows,
            deleted_rows=max(0, sum(each.physical_rows for each in fragments) - rows),
            fragments=len(fragments),
            mergeable=len(mergeable),
            merged=len(tasks),
            mergeable_bytes=sum(sizes.get(each, 0) for each in mergeable),
            total_bytes=sum(sizes.values()),
            versions=tuple(
                [LanceVersionState(each["version"], int(each["timestamp"].timestamp() * 1000)) for each in versions]
            ),
            tags={name: tag["version"] for name, tag in tags.items() if not tag.get("branch")},
            branch_points={
                name: branch["parent_version"] for name, branch in branches.items() if not branch.get("parent_branch")
            },
            indexes=_indexes(dataset, rows=rows),
        )


def _indexes(dataset: lance.LanceDataset, *, rows: int) -> tuple[LanceIndexState, ...]:
    sizes = {each.fragment_id: each.metadata.num_rows for each in dataset.get_fragments()}
    return tuple(
        [
            LanceIndexState(
                each.name,
                max(0, rows - each.num_rows_indexed),
                len(list(each.segments)),
                _largest_segment(each, sizes) if each.index_type.startswith(_VECTOR) else 0,
            )
            for each in dataset.describe_indices()
            if not each.name.startswith("__")
        ]
    )


def _largest_segment(index: Any, sizes: Mapping[int, int]) -> int:  # noqa: ANN401 - Lance's description of an index
    return max([sum(sizes.get(number, 0) for number in each.fragment_ids) for each in index.segments], default=0)


def compact(request: Compact) -> MaintenanceResult:
    """Merge small fragments into larger ones, as one commit. Raises NotFound for a table without data,
    CommitConflict.
    """
    dataset = open_for_writing(request)
    with translate_library_errors(request.location):
        former_count = len(dataset.get_fragments())
        dataset.optimize.compact_files(num_threads=THREADS)
        return MaintenanceResult(before=former_count, after=len(dataset.get_fragments()))


def refresh_indexes(request: RefreshIndexes) -> MaintenanceResult:
    """Add to each index the rows that it does not cover, or retrain it if the table has outgrown it.

    The result has the counts of unindexed rows before and after. Raises NotFound for a table without data,
    CommitConflict.
    """
    dataset = open_for_writing(request)
    with translate_library_errors(request.location):
        rows = dataset.count_rows()
        indexes = _indexes(dataset, rows=rows)
        outgrown = [each.name for each in indexes if each.is_outgrown(rows)]
        stale = [
            each.name for each in indexes if each.name not in outgrown and (each.missing_rows or each.segments > 1)
        ]
        if stale:
            dataset.optimize.optimize_indices(index_names=stale)
        if outgrown:
            dataset.optimize.optimize_indices(index_names=outgrown, retrain=True)
        after = sum(each.missing_rows for each in _indexes(dataset, rows=dataset.count_rows()))
        return MaintenanceResult(
            before=sum(each.missing_rows for each in indexes), after=after, trained=tuple(outgrown)
        )


def clean_up(request: CleanUp) -> MaintenanceResult:
    """Remove versions, and the files that only they refer to. Raises NotFound for a table without data."""
    dataset = open_for_writing(request)
    with translate_library_errors(request.location):
        former_versions = {each["version"] for each in dataset.versions()}
        requested = sorted(former_versions & set(request.versions))
        if not requested:
            return MaintenanceResult(before=len(former_versions), after=len(former_versions))
        stats = dataset.cleanup_old_versions(versions=requested, error_if_tagged_old_versions=False)
        after = {each["version"] for each in dataset.versions()}
        return MaintenanceResult(
            before=len(former_versions),
            after=len(after),
            removed=tuple(sorted(former_versions - after)),
            removed_bytes=stats.bytes_removed,
        )
