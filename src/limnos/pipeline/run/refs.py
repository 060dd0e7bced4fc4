"""Branches and heads of a run's tables as the server tells them, and changes of them that need no Spark.

Job: look at tables over the wire; begin branches where a finished step stood; take away what a run has left. May import
`client` and this room's values. Snapshots are never changed here, only what points to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limnos.client.errors import ConflictError, NotFoundError, RefusedError
from limnos.pipeline.context import MADE_BY, branches_prefix
from limnos.pipeline.outcomes import StepBranch

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.pipeline.declaration import Parts

MAIN = "main"
RETAINED_MS = 7 * 24 * 3600 * 1000
_DROPS_MAX = 200
"""Operations in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHeads:
    """A table as it is now: which one, and where its branches and tags point."""

    table: Parts
    uuid: str
    refs: Mapping[str, int]
    metadata: Mapping[str, Any]

    @property
    def main(self) -> int | None:
        """Snapshot of `main`; None while it has none."""
        return self.refs.get(MAIN)

    def snapshot(self, snapshot_id: int | None) -> Mapping[str, Any]:
        """What the metadata says of a snapshot; nothing where it is not told."""
        known = self.metadata.get("snapshots") or ()
        return next((each for each in known if each.get("snapshot-id") == snapshot_id), {})


def heads_of(client: Client, table: Parts) -> TableHeads | None:
    """Look at a table; None when there is none of the name, as far as the caller may know."""
    try:
        metadata: Mapping[str, Any] = client.tables.load(table, snapshots="refs").metadata
    except NotFoundError:
        return None
    refs = metadata.get("refs") or {}
    return TableHeads(
        table=table,
        uuid=str(metadata["table-uuid"]),
        refs={name: int(ref["snapshot-id"]) for name, ref in refs.items()},
        metadata=metadata,
    )


def restart_branches(client: Client, branches: Iterable[StepBranch], *, name: str) -> tuple[StepBranch, ...]:
    """Begin the branch `name` where each branch's head stands; what an earlier process still writes is not seen there.

    Raises RefusedError or ConflictError when a table or a head is not there any longer.
    """
    begun: list[StepBranch] = []
    operations: list[dict[str, object]] = []
    for branch in branches:
        if branch.head is not None:
            operations.append(_begin(branch, name))
        begun.append(_rename_branch(branch, name))
    if operations:
        client.transactions.run(begun[0].table[0], operations)
    return tuple(begun)


def _begin(branch: StepBranch, name: str) -> dict[str, object]:
    ref: dict[str, object] = {
        "action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": branch.head,
        "max-ref-age-ms": RETAINED_MS,
    }  # fmt: skip
    uuid = {"type": "assert-table-uuid", "uuid": branch.uuid}
    return {"do": "commit-table", "path": list(branch.table[1:]), "requirements": [uuid], "updates": [ref]}


def _rename_branch(branch: StepBranch, name: str) -> StepBranch:
    return StepBranch(
        table=branch.table,
        name=name,
        uuid=branch.uuid,
        schema_id=branch.schema_id,
        base=branch.base,
        head=branch.head,
        is_new=branch.is_new,
        columns_to_drop=branch.columns_to_drop,
    )


@dataclass(frozen=True, slots=True)
class RemovedOutputs:
    """What was taken away: branches as `table@branch`, tables as dotted paths."""

    branches: tuple[str, ...]
    tables: tuple[str, ...]


def clear_branches(client: Client, tables: Mapping[Parts, bool], *, run: str) -> RemovedOutputs:
    """Drop every branch of the run in these tables, and those tables that it made (`True`) and nobody else has written.

    What somebody changes meanwhile is looked at again once; what is still in the way then is raised.
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
        name = ".".join(table)
        ours = sorted(each for each in heads.refs if each.startswith(branches_prefix(run)))
        operations = by_catalog.setdefault(table[0], [])
        if is_new and set(heads.refs) == set(ours) and (ours or _is_made_by(heads, run)):
            dropped.append(name)
            operations.append({"do": "drop-table", "path": list(table[1:])})
        elif ours:
            branches += [f"{name}@{each}" for each in ours]
            operations.append(_removal(heads, ours))
    for catalog, operations in by_catalog.items():
        for start in range(0, len(operations), _DROPS_MAX):
            client.transactions.run(catalog, operations[start : start + _DROPS_MAX])
    return RemovedOutputs(tuple(branches), tuple(dropped))


def _is_made_by(heads: TableHeads, run: str) -> bool:
    """Whether a table itself says that the run made it: a record is its user's word, and whoever discards has other rights."""
    properties = heads.metadata.get("properties") or {}
    return f"{properties.get(MADE_BY)}_" == branches_prefix(run)


def _removal(heads: TableHeads, refs: Iterable[str]) -> dict[str, object]:
    return {
        "do": "commit-table",
        "path": list(heads.table[1:]),
        "requirements": [{"type": "assert-table-uuid", "uuid": heads.uuid}],
        "updates": [{"action": "remove-snapshot-ref", "ref-name": name} for name in refs],
    }
