# SPDX-License-Identifier: Apache-2.0
"""A pipeline together with its directory: the entry point for commands and notebooks.

Provides `load`, `Project` and `RunPlan`. Must not import Spark before it gets a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.shipped import absolute_path

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.pipeline.checks import CheckResult
    from limnos.pipeline.engine.driver import Session
    from limnos.pipeline.engine.preview import StepPreview
    from limnos.pipeline.plan import StepPlan
    from limnos.pipeline.run.events import Listener
    from limnos.pipeline.run.options import RunOptions
    from limnos.pipeline.run.request import RunMeans
    from limnos.pipeline.run.result import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The plan of a run: the check's result, the steps if there are no problems, and the expected changes of tables."""

    checked: CheckResult
    steps: tuple[StepPlan, ...] = ()
    previews: Mapping[str, StepPreview] = field(default_factory=dict)
    """The expected changes of tables, by step name; computed by Spark's analysis of the queries."""

    @property
    def holds(self) -> bool:
        """Whether a run could begin: the checks found no problems and no missing rights."""
        return self.checked.holds and all(each.refused is None for each in self.previews.values())


@dataclass(frozen=True, slots=True)
class Project:
    """A declaration and the directory of its file, which contains its Python modules and SQL files."""

    declaration: Pipeline
    directory: Path
    file: Path | None = None

    def run(
        self,
        spark: Session,
        *,
        parameters: Mapping[str, object] | None = None,
        options: RunOptions | None = None,
        client: Client | None = None,
        listener: Listener | None = None,
    ) -> RunResult:
        """Run the pipeline and publish all of its tables, or none.

        The server and the credential are taken from the session's catalog, unless a `client` is given. `listener` is
        called with each event. Errors after the start of the run are in the result; call `require()` on it to raise
        them.

        Raises InvalidPipeline, BadRequest or ClientError for problems found before the run begins.
        """
        from limnos.pipeline.run.start import start  # noqa: PLC0415 - needs the client's libraries only when it is run

        pipeline = self.bind_functions()
        with self._means(spark, client=client, listener=listener) as means:
            return start(
                pipeline,
                means,
                directory=self.directory,
                file=None if self.file is None else str(self.file),
                parameters=parameters,
                options=options,
            )

    def resume(
        self,
        spark: Session,
        *,
        run: str,
        options: RunOptions | None = None,
        client: Client | None = None,
        listener: Listener | None = None,
    ) -> RunResult:
        """Resume a run that was killed, failed, held or cancelled. Steps that changed since then run again."""
        from limnos.pipeline.run.resume import resume  # noqa: PLC0415

        pipeline = self.bind_functions()
        with self._means(spark, client=client, listener=listener) as means:
            return resume(pipeline, means, run_id=run, directory=self.directory, options=options)

    def check(self, spark: Session | None = None, *, client: Client | None = None) -> CheckResult:
        """Check the pipeline without changing anything.

        The result has `problems`, `missing` rights and `unchecked` parts. With a session or a `client`, tables and
        rights are checked at the server; otherwise only names and queries are checked. Raises ClientError if the server
        is unreachable.
        """
        from limnos.pipeline.checks import check  # noqa: PLC0415

        if spark is None or client is not None:
            return check(self.declaration, spark=spark, client=client)
        with self._client(spark) as request:
            return check(self.declaration, spark=spark, client=request)

    def plan(self, spark: Session, *, client: Client | None = None) -> RunPlan:
        """Plan a run without starting it.

        Queries of loops are run, and no query of a step; Python steps are called with empty DataFrames. Raises as
        `check` does.
        """
        from limnos.pipeline.engine.preview import preview  # noqa: PLC0415
        from limnos.pipeline.plan import plan  # noqa: PLC0415
        from limnos.pipeline.python import bind_functions  # noqa: PLC0415
        from limnos.pipeline.run.loop_rows import check_with_rows  # noqa: PLC0415

        check_result = self.check(spark, client=client)
        if check_result.holds and check_result.loops is not None:
            with ExitStack() as opened:
                check_result = check_with_rows(
                    check_result, spark, client=client or opened.enter_context(self._client(spark))
                )
        if not check_result.holds:
            return RunPlan(checked=check_result)
        previews = preview(
            spark,
            bind_functions(check_result.pipeline, self.directory),
            levels=check_result.levels,
            catalogs=check_result.catalogs,
            lance_catalogs=check_result.lance_catalogs,
        )
        return RunPlan(
            checked=check_result, steps=plan(check_result), previews=check_result.without_stand_ins(previews)
        )

    def _client(self, spark: Session, *, timeout_s: float = 60.0) -> Client:
        from limnos.pipeline.engine.connection import client_of  # noqa: PLC0415

        return client_of(spark, self.declaration.catalog, timeout_s=timeout_s)

    @contextmanager
    def _means(self, spark: Session, *, client: Client | None, listener: Listener | None) -> Iterator[RunMeans]:
        from limnos.pipeline.engine.driver import SparkEngine  # noqa: PLC0415
        from limnos.pipeline.run.events import ignore_event  # noqa: PLC0415
        from limnos.pipeline.run.request import RunMeans  # noqa: PLC0415
        from limnos.pipeline.run.stop import StopSignal  # noqa: PLC0415

        with ExitStack() as opened:
            run_client = client or opened.enter_context(self._client(spark))
            heartbeat_client = client or opened.enter_context(self._client(spark, timeout_s=10))
            engine = opened.enter_context(closing(SparkEngine(spark)))
            engine.ship(self.declaration, directory=self.directory)
            yield RunMeans(
                client=run_client,
                heartbeat_client=heartbeat_client,
                engine=engine,
                stop=StopSignal(),
                listener=listener or ignore_event,
            )

    def in_environment(self, name: str | None) -> Project:
        """Return the project whose steps write the tables of an environment, as with `--env`; itself for None.

        Raises BadRequest for an environment that the file does not have, InvalidPipeline for a rule that maps two
        tables to one.
        """
        from limnos.pipeline.environments import in_environment  # noqa: PLC0415

        return replace(self, declaration=in_environment(self.declaration, name))

    def bind_functions(self) -> Pipeline:
        """Return the declaration with its Python functions imported. Raises InvalidPipeline for a function that cannot
        be imported.
        """
        from limnos.pipeline.python import bind_functions  # noqa: PLC0415

        return bind_functions(self.declaration, self.directory)


def load(path: str | Path) -> Project:
    """Read a pipeline from a file. Raises InvalidPipeline with all problems of the file."""
    from limnos.pipeline.file import load as load_file  # noqa: PLC0415  (only this function needs PyYAML)

    path = Path(path)
    return Project(load_file(path), path.parent.absolute(), absolute_path(path))
