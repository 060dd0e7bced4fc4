# SPDX-License-Identifier: Apache-2.0
"""Output tables and namespaces at the start of a run, to detect that they are dropped or replaced during it.

Looks up outputs through the server at the start, and compares them after a step has failed. Must not know Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from limnos.client import Client
from limnos.client.errors import DeniedError, NotFoundError
from limnos.names import display
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.outcomes import StepBranch
from limnos.pipeline.run.refs import heads_of
from limnos.pipeline.run.retries import RetryPolicy

_NO_FILE = re.compile(r"Failed to open input stream|File does not exist|FileNotFoundException|NoSuchFileException")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutputs:
    """The output tables that existed when the run began, with their UUIDs, and the existing namespaces of new
    tables.
    """

    uuids: Mapping[Parts, str] = field(default_factory=dict)
    namespaces: frozenset[Parts] = frozenset()

    @property
    def existing_tables(self) -> frozenset[Parts]:
        """The tables and namespaces that existed. No step creates one of them again."""
        return self.namespaces.union(self.uuids)

    def to_record(self) -> dict[str, object]:
        """Encode the outputs as JSON for the run's record; `outputs_of` decodes it."""
        return {
            "uuids": [[list(table), uuid] for table, uuid in sorted(self.uuids.items())],
            "namespaces": [list(each) for each in sorted(self.namespaces)],
        }


def outputs_now(client: Client, tables: Iterable[Parts], *, patience: RetryPolicy) -> RunOutputs:
    """Look up the output tables, and the namespaces of output tables that do not exist."""
    uuids: dict[Parts, str] = {}
    namespaces: dict[Parts, bool] = {}
    for table in tables:
        heads = patience.call(lambda table=table: heads_of(client, table))  # type: ignore[misc]
        if heads is not None:
            uuids[table] = heads.uuid
            continue
        for length in range(2, len(table)):
            path = table[:length]
            if path not in namespaces:
                namespaces[path] = patience.call(lambda path=path: _namespace_exists(client, path))  # type: ignore[misc]
    return RunOutputs(uuids=uuids, namespaces=frozenset(path for path, is_there in namespaces.items() if is_there))


def outputs_of(result: object) -> RunOutputs:
    """Read the outputs from a run's record; empty for records of earlier releases."""
    if not isinstance(result, Mapping):
        return RunOutputs()
    return RunOutputs(
        uuids={tuple(table): str(uuid) for table, uuid in result.get("uuids", ())},
        namespaces=frozenset(tuple(each) for each in result.get("namespaces", ())),
    )


def dropped_output_messages(
    client: Client, outputs: RunOutputs, *, written: Iterable[Parts], branches: Iterable[StepBranch], message: str
) -> tuple[str, ...]:
    """Return a clause for each table or namespace of a failed step that was dropped, renamed or replaced during the
    run.

    `message` is the step's error. `written` are the tables that the step writes, `branches` the branches of
    earlier steps that it reads.
    """
    uuids = {**outputs.uuids, **{branch.table: branch.uuid for branch in branches}}
    names: list[str] = []
    for table in dict.fromkeys([*uuids.keys() & {each.table for each in branches}, *written]):
        path = display.render(table)
        heads = heads_of(client, table)
        if heads is not None:
            if uuids.get(table, heads.uuid) != heads.uuid:
                names.append(f"{path} was dropped and created again during the run")
        elif levels := next(
            (each for each in _namespaces(table, outputs) if not _namespace_exists(client, each)), None
        ):
            names.append(f"namespace {display.render(levels)} was renamed or dropped during the run")
        elif table in uuids or (_NO_FILE.search(message) and table[-1] in message):
            names.append(f"{path} was dropped or renamed during the run")
    return tuple(dict.fromkeys(names))


def _namespaces(table: Parts, outputs: RunOutputs) -> list[Parts]:
    """Return the namespaces of a table that existed when the run began, the outermost first."""
    were_there = table in outputs.uuids
    paths = [table[:length] for length in range(2, len(table))]
    return [path for path in paths if were_there or path in outputs.namespaces]


def _namespace_exists(client: Client, namespace: Parts) -> bool:
    """Return whether a namespace exists; a namespace that the caller may not see counts as existing."""
    try:
        client.namespaces.load(namespace)
    except NotFoundError:
        return False
    except DeniedError:
        return True
    return True
