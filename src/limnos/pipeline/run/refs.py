# SPDX-License-Identifier: Apache-2.0
"""Branches of a run's tables: looked up and changed through the server, without Spark.

A Lance table counts as a table whose branch `main` is at its newest version: its staged versions are files that only
the run's record names.

Looks up tables; creates branches at the heads of finished steps; removes the branches and tables of a run. Only refs
and new tables change here, never snapshots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from limnos.client import Client
from limnos.client.errors import ConflictError, DeniedError, NotFoundError, RefusedError
from limnos.names import display
from limnos.pipeline.context import MADE_BY, branches_prefix
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.outcomes import StepBranch

MAIN = "main"
RETAINED_MS = 7 * 24 * 3600 * 1000
_DROPS_MAX = 200
"""The maximum number of operations in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHeads:
    """The current state of a table: its UUID, and the snapshots of its branches and tags."""

    table: Parts
    uuid: str
    refs: Mapping[str, int]
    metadata: Mapping[str, Any]
    is_lance: bool = False

    @property
    def main(self) -> int | None:
        """The snapshot id of `main`; None if the table is empty."""
        return self.refs.get(MAIN)

    def snapshot(self, snapshot_id: int | None) -> Mapping[str, Any]:
        """Return the metadata of a snapshot; empty if the table does not have it."""
        snapshots = self.metadata.get("snapshots") or ()
        return next((each for each in snapshots if each.get("snapshot-id") == snapshot_id), {})


def heads_of(client: Client, table: Parts) -> TableHeads | None:
    """Look up a table; None if it does not exist or the caller may not see it."""
    try:
        metadata: Mapping[str, Any] = client.tables.load(table, snapshots="refs").metadata
    except NotFoundError:
        return _lance_heads(client, table)
    refs = metadata.get("refs") or {}
    return TableHeads(
        table=table,
        uuid=str(metadata["table-uuid"]),
        refs={name: int(ref["snapshot-id"]) for name, ref in refs.items()},
        metadata=metadata,
    )


def _lance_heads(client: Client, table: Parts) -> TableHeads | None:
    try:
        loaded = client.lance.load(table)
    except NotFoundError:
        return None
    refs = {} if loaded.version is None else {MAIN: loaded.version}
    metadata = {"current-schema-id": 0, "properties": loaded.properties}
    return TableHeads(table=table, uuid=loaded.location, refs=refs, metadata=metadata, is_lance=True)


def restart_branches(client: Client, branches: Iterable[StepBranch], *, name: str) -> tuple[StepBranch, ...]:
    """Create the branch `name` at the recorded head of each given branch, without later writes of an earlier process.

    Raises NotFoundError, RefusedError or ConflictError if a table or a snapshot no longer exists.
    """
    entries: list[StepBranch] = []
    operations: list[dict[str, object]] = []
    for branch in branches:
        if branch.head is not None and branch.staged is None:
            operations.append(_begin(branch, name))
        entries.append(_rename_branch(branch, name))
    if operations:
        run_operations(client, operations)
    return tuple(entries)


def run_operations(
    client: Client, operations: Sequence[Mapping[str, object]], *, key: str | None = None
) -> Mapping[str, int]:
    """Execute operations, each of which names its catalog, atomically. Returns the revision of each catalog."""
    catalogs = {str(each["catalog"]) for each in operations}
    if len(catalogs) > 1:
        return client.transactions.run_joint(operations, key=key).revisions
    catalog = catalogs.pop()
    return {catalog: client.transactions.run(catalog, operations, key=key).revision}


def _begin(branch: StepBranch, name: str) -> dict[str, object]:
    ref: dict[str, object] = {
        "action": "set-snapshot-ref",
        "ref-name": name,
        "type": "branch",
        "snapshot-id": branch.head,
        "max-ref-age-ms": RETAINED_MS,
    }
    uuid = {"type": "assert-table-uuid", "uuid": branch.uuid}
    table = {"catalog": branch.table[0], "path": list(branch.table[1:])}
    return {"do": "commit-table", **table, "requirements": [uuid], "updates": [ref]}


def _rename_branch(branch: StepBranch, name: str) -> StepBranch:
    return replace(branch, name=name)


@dataclass(frozen=True, slots=True)
class RemovedOutputs:
    """The branches and tables that discarding a run dropped: branches as `table@branch`, tables as dotted paths."""

    branches: tuple[str, ...]
    tables: tuple[str, ...]


def clear_branches(client: Client, tables: Mapping[Parts, bool], *, run: str) -> RemovedOutputs:
    """Drop all branches of the run in these tables, and new tables that no other client has written.

    `tables` maps each table to whether the run created it. A failure by a concurrent change is retried once; a second
    failure is raised.
    """
    try:
        return _clear_branches_once(client, tables, run=run)
    except (ConflictError, NotFoundError, RefusedError):
        return _clear_branches_once(client, tables, run=run)


def _clear_branches_once(client: Client, tables: Mapping[Parts, bool], *, run: str) -> RemovedOutputs:
    branches: list[str] = []
    dropped: list[str] = []
    by_catalog: dict[str, list[dict[str, object]]] = {}
    for table, is_new in tables.items():
        heads = heads_of(client, table)
        if heads is None:
            continue
        name = display.render(table)
        ours = sorted(each for each in heads.refs if each.startswith(branches_prefix(run)))
        operations = by_catalog.setdefault(table[0], [])
        if is_new and _is_unpublished(heads, run):
            dropped.append(name)
            if heads.is_lance:
                client.lance.drop(table)
                continue
            operations.append({"do": "drop-table", "path": list(table[1:])})
        elif ours:
            branches += [f"{name}@{each}" for each in ours]
            operations.append(_removal(heads, ours))
    for catalog, operations in by_catalog.items():
        for start in range(0, len(operations), _DROPS_MAX):
            client.transactions.run(catalog, operations[start : start + _DROPS_MAX])
    return RemovedOutputs(tuple(branches), tuple(dropped))


def drop_new_tables(client: Client, tables: Iterable[Parts], *, run: str) -> tuple[Parts, ...]:
    """Drop the tables that the run created and has not published, so that no reader finds them. Returns those tables.

    They are in the trash of their catalog, with the run's branches, until `restore_new_tables` restores them.
    """
    dropped = [heads for table in tables if (heads := heads_of(client, table)) and _is_unpublished(heads, run)]
    by_transaction = [heads.table for heads in dropped if not heads.is_lance]
    for start in range(0, len(by_transaction), _DROPS_MAX):
        part = by_transaction[start : start + _DROPS_MAX]
        run_operations(client, [{"do": "drop-table", "catalog": table[0], "path": list(table[1:])} for table in part])
    for heads in dropped:
        if heads.is_lance:
            client.lance.drop(heads.table)
    return tuple(heads.table for heads in dropped)


def restore_new_tables(client: Client, tables: Iterable[Parts], *, run: str) -> None:
    """Restore the tables of the run that `drop_new_tables` dropped.

    A table that cannot be restored stays dropped: its step runs again.
    """
    for table in tables:
        if heads_of(client, table) is not None:
            continue
        try:
            client.trash.undrop(table)
        except (ConflictError, DeniedError, NotFoundError, RefusedError):
            continue
        heads = heads_of(client, table)
        if heads is not None and not _is_unpublished(heads, run):  # a later table of this name
            (client.lance if heads.is_lance else client.tables).drop(table)


@contextmanager
def inspected_tables(client: Client, tables: Collection[Parts], *, run: str) -> Iterator[None]:
    """Restore the new tables of a failed run for the body of a `with`."""
    restore_new_tables(client, tables, run=run)
    try:
        yield
    finally:
        drop_new_tables(client, tables, run=run)


def _is_unpublished(heads: TableHeads, run: str) -> bool:
    """Return whether the run created a table that nobody has written: it has no branches beside the run's."""
    ours = {each for each in heads.refs if each.startswith(branches_prefix(run))}
    return set(heads.refs) == ours and (bool(ours) or _is_made_by(heads, run))


def _is_made_by(heads: TableHeads, run: str) -> bool:
    """Return whether the table's own property names the run as its creator.

    The run's record is not sufficient: its user wrote it, and the caller who discards may have other rights.
    """
    properties = heads.metadata.get("properties") or {}
    return f"{properties.get(MADE_BY)}_" == branches_prefix(run)


def _removal(heads: TableHeads, refs: Iterable[str]) -> dict[str, object]:
    return {
        "do": "commit-table",
        "path": list(heads.table[1:]),
        "requirements": [{"type": "assert-table-uuid", "uuid": heads.uuid}],
        "updates": [{"action": "remove-snapshot-ref", "ref-name": name} for name in refs],
    }
