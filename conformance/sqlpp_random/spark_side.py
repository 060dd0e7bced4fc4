# SPDX-License-Identifier: Apache-2.0
"""Runs random queries on the engine's Spark, in this process, for a server with the tables.

May import the engine, the tests' live server and this package. It must not compare results.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from conformance.sqlpp_random.sql_queries import TYPES
from conformance.sqlpp_random.tables import DATAVERSE, constant_of
from limnos.rooms.sqlpp.engine.sessions import StatementSessions
from limnos.rooms.sqlpp.engine.statements import run_job
from limnos.rooms.sqlpp.engine.wire import EngineStart
from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.relations import UntranslatableExpression, translate_query
from limnos.rooms.sqlpp.language.stored import storage_form_of_record
from tests.integration.live import serving
from tests.rooms.sqlpp.engine.live_engine import EngineDataverse
from tests.rooms.sqlpp.language.relations import relation_queries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLOTS: Final = 2
INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
ALL_TYPES: Final = {**TYPES, "orders": relation_queries.ORDERS, "people": relation_queries.PEOPLE}


class SparkTables:
    """Datasets on a server, and queries over them on Spark.

    With `is_interpreted` Spark interprets its expressions and compiles none, which takes less time for small tables.
    """

    def __init__(self, dataverse: EngineDataverse, sessions: StatementSessions, *, is_interpreted: bool) -> None:
        self._dataverse, self._sessions = dataverse, sessions
        self._settings = INTERPRETED if is_interpreted else {}
        dataverse.rest("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": list(DATAVERSE)})
        for name, type_ in ALL_TYPES.items():
            dataverse.make(name, type_, "id")
            rows = relation_queries.HELD[name] if name in relation_queries.HELD else constant_of(name)
            job = dataverse.job(rows, "insert", target=name)
            with sessions.of(job) as spark:
                list(run_job(spark, job, parts=sessions.parts, stop=_never))

    def results(self, text: str) -> list[object]:
        """Return the results of a query. Raises SqlppError."""
        job = self._dataverse.job(text)
        with self._sessions.of(job) as spark:
            for name, value in self._settings.items():
                spark.conf.set(name, value)
            return [json.loads(line) for line in run_job(spark, job, parts=self._sessions.parts, stop=_never)]

    def is_relation(self, text: str) -> bool:
        """Return whether Spark executes all of a query."""
        expression = self._dataverse.bound(text).expression
        if not isinstance(expression, plan.Subquery):
            return False
        try:
            translate_query(
                expression.query, lambda _, name: storage_form_of_record(type_of(ALL_TYPES[name]), (("id",),)).type
            )
        except UntranslatableExpression:
            return False
        return True


def _never() -> None:
    """Never stop the query."""


@contextmanager
def spark_with_tables(directory: Path, *, memory: str, is_interpreted: bool = False) -> Iterator[SparkTables]:
    """Yield Spark with the tables, on a server in `directory`."""
    with serving(directory / "server") as server:
        start = EngineStart(
            uri=server.uri,
            metalake="lake",
            master=f"local[{SLOTS}]",
            memory=memory,
            slots=SLOTS,
            statements_max=1,
            scratch=str(directory),
            readable=(),
            writable=(),
            closed=(),
        )
        sessions = StatementSessions(start)
        sessions.begin()
        dataverse = EngineDataverse(server, None, DATAVERSE)  # type: ignore[arg-type]
        yield SparkTables(dataverse, sessions, is_interpreted=is_interpreted)
