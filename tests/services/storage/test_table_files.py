# SPDX-License-Identifier: Apache-2.0
"""Commits of SQL++ statements: refused if a manifest of what the statement read was replaced after its check."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.services.storage.table_files import STATEMENT_FILES, StatementFiles
from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable
from tests.iceberg_manifests import data_file, entry, manifest_list
from tests.rooms.sqlpp.http.test_datasets import RecordingEngine
from tests.rooms.sqlpp.http.wire import ask

INSERT = "insert into a.t (select value s from a.source as s)"


class CommittingEngine(RecordingEngine):
    """A fake engine that commits to the target as Spark does, after `meanwhile` has changed files."""

    def __init__(self, target: WrittenTable, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self.target, self.meanwhile = target, meanwhile
        self.answers: list[DriverAnswer] = []

    async def run(self, job: EngineJob, **more: object) -> AsyncIterator[bytes]:
        """Change files, commit an empty snapshot."""
        self.meanwhile()
        place = self.target.write("snap-9.avro", manifest_list([]))
        update = wire.snapshot(9, manifest_list=place, parent=1)
        update["snapshot"] |= {"sequence-number": 9, "summary": {"operation": "append", "sqlpp.statement": job.id}}  # type: ignore[operator]
        headers = {"authorization": f"Bearer {job.credential}", "x_limnos_lock": job.lock}
        body = {"requirements": [], "updates": [update, wire.point(9)]}
        self.answers.append(await self.target.node._ask("POST", self.target.path, body, None, headers))
        async for row in super().run(job, **more):
            yield row


def test_a_commit_that_another_process_gets_is_refused(node: DriverNode) -> None:
    """A process that runs no statement with the lock of a commit does not know the files to compare, and refuses it."""
    table = WrittenTable(node, "t")
    table.commit([table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])])
    engine = CommittingEngine(table, lambda: STATEMENT_FILES.put(node.built.services, StatementFiles()))
    ENGINE.put(node.built.services, engine)

    ask(node, "insert into a.t ([])")
    assert [each.status for each in engine.answers] == [409]
    assert node.get(table.path).json()["metadata"]["current-snapshot-id"] == 100


@pytest.mark.parametrize("replaced", ["t", "source", None])
def test_a_statement_that_read_replaced_files_does_not_commit(node: DriverNode, replaced: str | None) -> None:
    """If a manifest of a table that a statement reads, or of the one that it changes, is replaced while the engine
    works, the engine's commit is refused and the table keeps its snapshot; else it is accepted.
    """
    tables = {name: WrittenTable(node, name) for name in ("t", "source")}
    for table in tables.values():
        table.commit([table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])])
    foreign = [entry(data_file("file:///etc/passwd"))]
    replace = (lambda: None) if replaced is None else partial(tables[replaced].manifest, "m1.avro", foreign)
    engine = CommittingEngine(tables["t"], replace)
    ENGINE.put(node.built.services, engine)

    answer = ask(node, INSERT)
    statuses = [each.status for each in engine.answers]
    current = node.get(tables["t"].path).json()["metadata"]["current-snapshot-id"]
    assert (statuses, current) == (([200], 900) if replaced is None else ([400], 100)), answer.body
