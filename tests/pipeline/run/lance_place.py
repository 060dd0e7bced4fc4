# SPDX-License-Identifier: Apache-2.0
"""A pipeline in namespaces of its own in a catalog of Iceberg tables and one of Lance tables, for tests of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
from lance_namespace import ListTableVersionsRequest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import Pipeline, StepDeclaration
from limnos.pipeline.engine.driver import SparkEngine
from limnos.pipeline.outcomes import StepOutcome
from limnos.pipeline.project import load
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.refs import heads_of
from limnos.pipeline.run.request import RunMeans
from limnos.pipeline.run.result import RunResult
from limnos.pipeline.run.resume import resume
from limnos.pipeline.run.start import start
from limnos.pipeline.run.stop import StopSignal
from tests.integration.live import LiveServer


class LancePlace:
    """A pipeline in a namespace of its own in two catalogs, and its runs."""

    def __init__(self, spark: SparkSession, server: LiveServer, *, file: Path, space: str) -> None:
        self.spark, self.server, self.file, self.space = spark, server, file, space
        self.client = Client(server.uri, token=server.token)
        self.heartbeat_client = Client(server.uri, token=server.token)
        self.engine = SparkEngine(spark)
        self.client.namespaces.create(f"main.{space}")

    def write(self, text: str) -> None:
        """Replace the pipeline's file; `SPACE` stands for the namespace."""
        self.file.write_text(text.replace("SPACE", self.space))

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline, with its functions."""
        return load(self.file).bind_functions()

    def means(self, engine: SparkEngine | None = None) -> RunMeans:
        """Return what a run needs."""
        return RunMeans(
            client=self.client, heartbeat_client=self.heartbeat_client, engine=engine or self.engine, stop=StopSignal()
        )

    def run(self, *, engine: SparkEngine | None = None, day: int = 1, **options: object) -> RunResult:
        """Run the pipeline for a day."""
        pipeline = self.pipeline
        self.engine.ship(pipeline, directory=self.file.parent)
        return start(
            pipeline,
            self.means(engine),
            directory=self.file.parent,
            parameters={"day": day},
            options=RunOptions(**{"lease_s": 5, **options}),  # type: ignore[arg-type]
        )

    def resume(self, run: str, *, engine: SparkEngine | None = None) -> RunResult:
        """Resume a run."""
        return resume(self.pipeline, self.means(engine), run_id=run, directory=self.file.parent)

    def dataset(self, table: str) -> lance.LanceDataset:
        """Open a Lance table as a reader does."""
        return self.client.lance.dataset(f"lance.{self.space}.{table}")

    def ids(self, table: str) -> list[int]:
        """Return the ids in a published Lance table."""
        return sorted(self.dataset(table).to_table(columns=["id"])["id"].to_pylist())

    def versions(self, table: str) -> list[int]:
        """Return the versions of a Lance table that the server knows."""
        request = ListTableVersionsRequest(id=["lance", self.space, table])
        return sorted(each.version for each in self.client.lance.namespace().list_table_versions(request).versions)

    def state(self) -> tuple[int | None, int | None]:
        """Return the published snapshot of the Iceberg table and the version of the Lance table made from it."""
        tables = (("main", self.space, "docs"), ("lance", self.space, "vectors"))
        heads = [heads_of(self.client, table) for table in tables]
        return tuple(None if each is None else each.main for each in heads)  # type: ignore[return-value]


class FailingEngine(SparkEngine):
    """An engine that fails after a step has written, or calls a function then."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        after: str,
        call: Callable[[], object] | None = None,
        carried: list[str] | None = None,
    ) -> None:
        super().__init__(spark)
        self.after, self.call = after, call
        self.carried = [] if carried is None else carried

    def carry_out(self, step: StepDeclaration, *, context: StepContext) -> StepOutcome:
        """Execute the step, then fail or call the function."""
        self.carried.append(step.name)
        outcome = super().carry_out(step, context=context)
        if step.table[-1] == self.after:
            if self.call is None:
                raise KeyboardInterrupt
            self.call()
            self.after = ""
        return outcome
