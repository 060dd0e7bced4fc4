"""A pipeline with the directory it was read from: what commands and notebooks hold in their hands.

Job: `load`, `Project` and `RunPlan`. May import `client` and this room's modules; it must not import Spark before it is given a
session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.pipeline.declaration import Pipeline

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.pipeline.engine.driver import Session
    from limnos.pipeline.engine.preview import StepPreview
    from limnos.pipeline.plan import CheckResult, StepPlan
    from limnos.pipeline.run.events import Listener
    from limnos.pipeline.run.options import RunOptions
    from limnos.pipeline.run.result import RunResult
    from limnos.pipeline.run.start import RunMeans


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What a run would do: `checked` as a check found it, and where nothing is wrong so far its steps, and what would change of tables."""

    checked: CheckResult
    steps: tuple[StepPlan, ...] = ()
    previews: Mapping[str, StepPreview] = field(default_factory=dict)
    """By the step's name, by Spark's analysis of the query."""

    @property
    def holds(self) -> bool:
        """Whether a run could begin."""
        return self.checked.holds and all(each.refused is None for each in self.previews.values())


@dataclass(frozen=True, slots=True)
class Project:
    """A declaration, and the directory of its file: Python functions and texts are found there."""

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
        """Run all of it and publish it, or nothing; how it ended is in the value: `ended.require()` raises otherwise.

        The server and the caller are those of the session's catalog, unless a `client` is given. `listener` is called
        with each event. Raises what is found before the run begins: InvalidPipeline, BadRequest, ClientError.
        """
        from limnos.pipeline.run.start import start  # noqa: PLC0415 - needs the client's libraries only when it is run

        with self._means(spark, client=client, listener=listener) as means:
            return start(
                self.bound(),
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
        """Go on with a run that was killed, failed, was held or cancelled; steps that changed meanwhile run again."""
        from limnos.pipeline.run.resume import resume  # noqa: PLC0415

        with self._means(spark, client=client, listener=listener) as means:
            return resume(self.bound(), means, run_id=run, directory=self.directory, options=options)

    def check(self, spark: Session | None = None, *, client: Client | None = None) -> CheckResult:
        """Check all that can be checked without touching anything: `problems`, rights that are `missing`, what stays `unchecked`.

        With a session, or a `client`, by their server; without, names and queries alone. Raises ClientError where the server is not there.
        """
        from limnos.pipeline.plan import check  # noqa: PLC0415

        if spark is None or client is not None:
            return check(self.declaration, spark=spark, client=client)
        with self._client(spark) as asked:
            return check(self.declaration, spark=spark, client=asked)

    def plan(self, spark: Session, *, client: Client | None = None) -> RunPlan:
        """What a run would do, without doing it: no query is run, Python steps are called with empty frames. Raises as `check` does."""
        from limnos.pipeline.engine.preview import preview  # noqa: PLC0415
        from limnos.pipeline.plan import plan  # noqa: PLC0415

        checked = self.check(spark, client=client)
        if not checked.holds:
            return RunPlan(checked=checked)
        previews = preview(spark, self.bound(), levels=checked.levels, catalogs=checked.catalogs)
        return RunPlan(checked=checked, steps=plan(checked), previews=previews)

    def _client(self, spark: Session, *, timeout_s: float = 60.0) -> Client:
        from limnos.pipeline.engine.connection import client_of  # noqa: PLC0415

        return client_of(spark, self.declaration.catalog, timeout_s=timeout_s)

    @contextmanager
    def _means(self, spark: Session, *, client: Client | None, listener: Listener | None) -> Iterator[RunMeans]:
        from limnos.pipeline.engine.driver import SparkEngine  # noqa: PLC0415
        from limnos.pipeline.run.events import ignore_event  # noqa: PLC0415
        from limnos.pipeline.run.start import RunMeans  # noqa: PLC0415
        from limnos.pipeline.run.stop import StopSignal  # noqa: PLC0415

        with ExitStack() as opened:
            given = client or opened.enter_context(self._client(spark))
            heart = client or opened.enter_context(self._client(spark, timeout_s=10))
            engine = opened.enter_context(closing(SparkEngine(spark)))
            engine.ship(self.declaration, directory=self.directory)
            yield RunMeans(
                client=given, heart=heart, engine=engine, stop=StopSignal(), listener=listener or ignore_event
            )

    def bound(self) -> Pipeline:
        """The declaration with its Python functions imported. Raises InvalidPipeline."""
        from limnos.pipeline.python import bound  # noqa: PLC0415

        return bound(self.declaration, self.directory)


def load(path: str | Path) -> Project:
    """Read a pipeline from a file. Raises InvalidPipeline with everything that is wrong with it."""
    from limnos.pipeline.file import load as load_file  # noqa: PLC0415  (PyYAML is asked for only here)

    path = Path(path)
    return Project(load_file(path), path.parent.absolute(), path.absolute())
