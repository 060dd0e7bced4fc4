# SPDX-License-Identifier: Apache-2.0
"""Registration of harvested tables in a task: sends bulk jobs to the server, and yields the outcome of each table.

A job's name follows from its items, so a task that is repeated, or a run that is resumed, repeats the jobs that it has
sent, and no item is executed twice. Must not know Spark's sessions. A refusal is an outcome; only a server that is not
reachable ends the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from limnos.client.activity.bulk import cut_into_parts, send_part
from limnos.client.errors import ClientError
from limnos.model.errors import InvalidTable, LimnosError
from limnos.model.harvest_formats import ICEBERG, LANCE, REGISTRABLE_FORMATS
from limnos.model.table_states import TableState, relation, table_state
from limnos.names import display
from limnos.spark.batch_loads import load_batch
from limnos.spark.harvest.listing import reason
from limnos.spark.harvest.metadata import MetadataReader
from limnos.spark.harvest.stores import store_of
from limnos.spark.verification.findings import in_parts

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import BulkOutcome
    from limnos.spark.lance.server_access import ServerAccess

VANISHED, UNLISTED = "vanished", "unlisted"
REGISTERED, FORWARD, UNCHANGED, AHEAD = "registered", "brought-forward", "unchanged", "ahead"
SETTLED: Final = (REGISTERED, FORWARD, UNCHANGED, AHEAD)
"""Outcomes after which a table is sent again only if its directory has changed."""
ROWS_AT_ONCE: Final = 400
INPUT: Final = (
    *("namespace", "name", "format", "directory", "metadata_location", "state", "problem", "conflict"),
    *("former_path", "former_outcome", "former_location"),
)
"""The columns that a task needs of a harvested table, and of its outcome in the last published run."""
SCHEMA: Final = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("format", pa.string()),
        pa.field("directory", pa.string()),
        pa.field("metadata_location", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("code", pa.string()),
        pa.field("message", pa.string()),
    ]
)
"""The columns of rows, one for each table."""
_TEXTS: Final = {
    AHEAD: "the table here took commits, the one there did not",
    UNLISTED: "a directory above it, or its database, could not be listed",
    "diverged": "both took commits, or the one there too many to tell: compare them, and choose one by hand",
    "other": "the catalog has another table of this name",
}
_EXISTS: Final = "already-exists"
_MESSAGE_MAX: Final = 1_000


class TableOutcome(NamedTuple):
    """The outcome of a table."""

    outcome: str
    message: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationTask:
    """The function of a task, from batches of harvested tables to batches of outcomes. Spark pickles it with the
    credential.
    """

    home: ServerAccess
    into: tuple[str, ...]
    """The catalog, and the levels of a namespace for the tables' namespaces."""
    formats: tuple[str, ...]
    """The formats of the tables to register."""
    run: str
    """The run, for the names of jobs."""
    plans: bool = False
    """Whether nothing is registered, and tables that would be sent have the outcome `planned`."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Register tables, and yield rows of `SCHEMA`. Raises UnavailableError if the server is not reachable."""
        with self.home.client() as client:
            registrar = TableRegistrar(client, self)
            tables = (row for batch in batches for row in batch.select(INPUT).to_pylist())
            for some in in_parts(tables, ROWS_AT_ONCE):
                outcomes = registrar.outcomes(some)
                rows = [self._row(table, outcome) for table, outcome in zip(some, outcomes, strict=True)]
                yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    def path(self, table: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the path of a table on the server, catalog first."""
        return (*self.into, *table["namespace"], table["name"])

    def _row(self, table: Mapping[str, Any], outcome: TableOutcome) -> dict[str, object]:
        return {
            "path": display.render(self.path(table)),
            "format": table["format"],
            "directory": table["directory"],
            "metadata_location": table["metadata_location"],
            "outcome": outcome.outcome,
            "code": outcome.code or None,
            "message": outcome.message[:_MESSAGE_MAX] or None,
        }


class TableRegistrar:
    """Registers tables with one client."""

    def __init__(self, client: Client, task: RegistrationTask) -> None:
        self._client, self._task = client, task
        self._namespaces: dict[tuple[str, ...], str] = {}
        """The namespaces that were created, each with the message of a refusal, or empty."""

    def outcomes(self, tables: Sequence[Mapping[str, Any]]) -> list[TableOutcome]:
        """Register tables, and return their outcomes in order. Raises UnavailableError."""
        results = {index: self._known(table) for index, table in enumerate(tables)}
        rest = {index: tables[index] for index, outcome in results.items() if outcome is None}
        if self._task.plans:
            return [outcome or TableOutcome("planned") for outcome in results.values()]
        self._create_namespaces(rest.values())
        items = [self._item(table) for table in rest.values()]
        sent = dict(zip(rest, self._send(items), strict=True))
        existing_tables = {index: tables[index] for index, outcome in sent.items() if outcome.code == _EXISTS}
        compared = self._compared(existing_tables, sent)
        for index, outcome in sent.items():
            results[index] = compared.get(index) or self._outcome(tables[index], outcome)
        return [outcome or TableOutcome("failed") for outcome in results.values()]

    def _known(self, table: Mapping[str, Any]) -> TableOutcome | None:
        """Return the outcome of a table that is not sent; None for one that is."""
        if table["state"] == VANISHED:
            return TableOutcome(VANISHED, "it is gone from where it was; a table here stays as it is")
        if table["problem"] is not None:
            return TableOutcome("unreadable", table["problem"])
        if table["conflict"] is not None:
            return TableOutcome("conflict", table["conflict"])
        if table["format"] not in self._task.formats:
            can = (
                "name its format in 'formats'"
                if table["format"] in REGISTRABLE_FORMATS
                else "the server has no such tables"
            )
            return TableOutcome("left-out", f"a table of {table['format']} is not registered: {can}")
        former = table["former_outcome"]
        is_same = table["format"] == LANCE or table["former_location"] == table["metadata_location"]
        is_same = is_same and table["former_path"] == display.render(self._task.path(table))
        if former not in SETTLED or not is_same:
            # Its row is one of an earlier run, and this run has not seen its directory.
            return TableOutcome(UNLISTED, _TEXTS[UNLISTED]) if table["state"] == UNLISTED else None
        return TableOutcome(AHEAD, _TEXTS[AHEAD]) if former == AHEAD else TableOutcome(UNCHANGED)

    def _create_namespaces(self, tables: Iterable[Mapping[str, Any]]) -> None:
        """Create the namespaces of tables, as far as they are missing and the caller may."""
        paths = dict.fromkeys(self._task.path(table)[:-1] for table in tables)
        new = sorted(set(paths) - set(self._namespaces), key=lambda path: (len(path), path))
        items = [{"do": "create-namespace", "path": list(path), "exists": "skip"} for path in new]
        for path, outcome in zip(new, self._send(items), strict=True):
            self._namespaces[path] = "" if outcome.outcome in ("made", "same") else outcome.message

    def _item(self, table: Mapping[str, Any]) -> dict[str, object]:
        path = list(self._task.path(table))
        if table["format"] == LANCE:
            return {"do": "register-lance-table", "path": path, "location": table["directory"]}
        return {"do": "register-table", "path": path, "metadata_location": table["metadata_location"]}

    def _send(self, items: Sequence[Mapping[str, object]]) -> list[BulkOutcome]:
        """Send items as a job, and return their outcomes in order."""
        lines = [msgspec.json.encode(each) for each in items]
        digest = blake2b(b"\n".join(lines), digest_size=10).hexdigest()
        job = f"harvest-{re.sub('[^A-Za-z0-9]', '', self._task.run)[:32]}-{digest}"
        return [each for part in cut_into_parts(lines) for each in send_part(self._client, job, part=part)]

    def _outcome(self, table: Mapping[str, Any], sent: BulkOutcome) -> TableOutcome:
        """Return the outcome of a table that was sent as a new one."""
        if sent.outcome == "made":
            return TableOutcome(REGISTERED)
        if sent.outcome == "same":
            return TableOutcome(UNCHANGED)
        refused = self._namespaces.get(self._task.path(table)[:-1])
        message = f"{sent.message} (the namespace was not created: {refused})" if refused else sent.message
        return TableOutcome(sent.outcome, message, sent.code)

    def _compared(
        self, tables: Mapping[int, Mapping[str, Any]], sent: Mapping[int, BulkOutcome]
    ) -> dict[int, TableOutcome]:
        """Return the outcomes of tables whose names are taken: those that are behind are brought forward."""
        results: dict[int, TableOutcome] = {}
        behind: dict[int, dict[str, object]] = {}
        paths = [display.render(self._task.path(each)) for each in tables.values() if each["format"] == ICEBERG]
        loaded = load_batch(self._client.tables.load_each, paths)
        for index, table in tables.items():
            refusal = TableOutcome("refused", sent[index].message, sent[index].code)
            if table["format"] == LANCE:
                results[index] = self._compared_lance(table, refusal)
                continue
            path = display.render(self._task.path(table))
            try:
                info = loaded.get(path) or self._client.tables.load(path, snapshots="refs")
                target = table_state(info.metadata_location, info.metadata)
            except (ClientError, InvalidTable) as error:
                if isinstance(error, ClientError) and error.status == 0:
                    raise
                results[index] = refusal
                continue
            source = _source_state(table["metadata_location"])
            if isinstance(source, TableOutcome):
                results[index] = source
                continue
            word = relation(source, target)
            if word == "behind":
                behind[index] = {**self._item(table), "exists": "replace", "expected": target.metadata_location}
            elif word == "same":
                has_changed = table["former_location"] not in (None, table["metadata_location"])
                results[index] = TableOutcome(FORWARD if has_changed else UNCHANGED)
            else:
                results[index] = TableOutcome(word, _TEXTS[word])
        for index, outcome in zip(behind, self._send(list(behind.values())), strict=True):
            is_done = outcome.outcome in ("made", "same")
            results[index] = TableOutcome(FORWARD) if is_done else self._outcome(tables[index], outcome)
        return results

    def _compared_lance(self, table: Mapping[str, Any], refusal: TableOutcome) -> TableOutcome:
        try:
            existing_table = self._client.lance.load(self._task.path(table))
        except ClientError as error:
            if error.status == 0:
                raise
            return refusal
        is_same = existing_table.location.rstrip("/") == table["directory"]
        return TableOutcome(UNCHANGED) if is_same else TableOutcome("other", _TEXTS["other"])


def _source_state(file: str) -> TableState | TableOutcome:
    """Return the state of a table in its directory, or the outcome if its metadata cannot be read."""
    try:
        return MetadataReader(store_of(file)).state(file)
    except (OSError, LimnosError) as error:
        return TableOutcome("unreadable", f"its metadata cannot be read: {reason(error)}")
