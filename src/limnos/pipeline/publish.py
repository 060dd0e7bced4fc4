# SPDX-License-Identifier: Apache-2.0
"""The operations of the transaction that publishes a run: it moves `main` of all tables, or of none.

Builds the JSON of docs/guides/transactions.md from the branches and the staged versions of Lance tables that a run
wrote. Must not know Spark or servers. Each operation asserts the state from which the run began: of an Iceberg table
the UUID, the schema and the snapshot. After a failed assertion the step runs again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from limnos.names import display
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.outcomes import StagedVersion, StepBranch

Json = Mapping[str, Any]
_MAIN = "main"


def publish_operations(
    branches: Iterable[StepBranch], *, metadata: Mapping[Parts, Json] | None = None
) -> tuple[Json, ...]:
    """Build one `commit-table` operation per branch, and one `commit-lance-version` operation per staged version of a
    Lance table, in the order of `branches`.

    `metadata` is required for tables with `columns_to_drop`: the metadata of the branch's schema, as Iceberg REST
    returns it. Raises ValueError if it is missing or of another schema.
    """
    return tuple(
        operation for branch in branches for operation in _operations(branch, (metadata or {}).get(branch.table))
    )


def _operations(branch: StepBranch, metadata: Json | None) -> list[Json]:
    if branch.staged is None:
        return [_commit(branch, metadata)]
    return [_version_commit(branch, each) for each in branch.staged]


def _version_commit(branch: StepBranch, staged: StagedVersion) -> Json:
    return {
        "do": "commit-lance-version",
        "catalog": branch.table[0],
        "path": list(branch.table[1:]),
        "version": staged.version,
        "manifest_path": staged.manifest_path,
        "manifest_size": staged.manifest_size,
        "e_tag": staged.e_tag,
        "metadata": {"limnos.branch": branch.name},
    }


def _commit(branch: StepBranch, metadata: Json | None) -> Json:
    return {
        "do": "commit-table",
        "catalog": branch.table[0],
        "path": list(branch.table[1:]),
        "requirements": _requirements(branch),
        "updates": [*_drops(branch, metadata), *_moves(branch)],
    }


def _requirements(branch: StepBranch) -> list[Json]:
    return [
        {"type": "assert-table-uuid", "uuid": branch.uuid},
        {"type": "assert-current-schema-id", "current-schema-id": branch.schema_id},
        {"type": "assert-ref-snapshot-id", "ref": _MAIN, "snapshot-id": branch.base},
        {"type": "assert-ref-snapshot-id", "ref": branch.name, "snapshot-id": branch.head},
    ]


def _moves(branch: StepBranch) -> list[Json]:
    """Return updates: move `main` to the branch's head, remove the branch. An unchanged branch is only removed."""
    removed: Json = {"action": "remove-snapshot-ref", "ref-name": branch.name}
    if branch.head is None or branch.head == branch.base:
        return [removed]
    moved = {"action": "set-snapshot-ref", "ref-name": _MAIN, "type": "branch", "snapshot-id": branch.head}
    return [moved, removed]


def _drops(branch: StepBranch, metadata: Json | None) -> list[Json]:
    if not branch.columns_to_drop:
        return []
    name = display.render(branch.table)
    if metadata is None:
        raise ValueError(f"{name} loses columns: its metadata is needed to determine the remaining ones.")
    if metadata["current-schema-id"] != branch.schema_id:
        raise ValueError(f"The schema of {name} has changed since the step ran: run the step again.")
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == branch.schema_id)
    fields: Sequence[Json] = schema["fields"]
    for column in branch.columns_to_drop:
        fields = _without(fields, tuple(column.lower().split(".")), whole=column)
    fresh = {**schema, "schema-id": max(each["schema-id"] for each in metadata["schemas"]) + 1, "fields": fields}
    return [{"action": "add-schema", "schema": fresh}, {"action": "set-current-schema", "schema-id": -1}]


def _without(fields: Sequence[Json], path: Parts, *, whole: str) -> list[Json]:
    """Return the schema's fields without the field at `path`. A path that contains dots is first looked up as a single
    name. Raises ValueError if there is no such field.
    """
    entries = [each for each in fields if each["name"].lower() != ".".join(path)]
    if len(entries) < len(fields):
        return entries
    for length in range(1, len(path)):
        head = ".".join(path[:length])
        if any(each["name"].lower() == head for each in fields):
            return [
                {**each, "type": _without_field(each["type"], path[length:], whole=whole)}
                if each["name"].lower() == head
                else each
                for each in fields
            ]
    raise ValueError(f"Column {whole!r} is not in the table's schema.")


def _without_field(kind: object, path: Parts, *, whole: str) -> Json:
    if isinstance(kind, Mapping) and kind["type"] == "struct":
        return {**kind, "fields": _without(kind["fields"], path, whole=whole)}
    if isinstance(kind, Mapping) and path[0] in {"element", "value"} and path[0] in kind:
        return {**kind, path[0]: _without_field(kind[path[0]], path[1:], whole=whole)}
    raise ValueError(f"Column {whole!r} is not in the table's schema.")
