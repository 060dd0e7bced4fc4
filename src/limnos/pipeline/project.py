"""A pipeline with the directory it was read from: what commands and notebooks hold in their hands.

Job: `load` and `Project`. May import `client` and this room's modules; it must not import Spark before it is given a
session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.pipeline.declaration import Pipeline

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.pipeline.engine.driver import Session
    from limnos.pipeline.run.ended import Ended
    from limnos.pipeline.run.events import Listener
    from limnos.pipeline.run.options import Options
    from limnos.pipeline.run.start import Means


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
        options: Options | None = None,
        client: Client | None = None,
        listener: Listener | None = None,
    ) -> Ended:
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
        options: Options | None = None,
        client: Client | None = None,
        listener: Listener | None = None,
    ) -> Ended:
        """Go on with a run that was killed, failed, was held or cancelled; steps that changed meanwhile run again."""
        from limnos.pipeline.run.resume import resume  # noqa: PLC0415

        with self._means(spark, client=client, listener=listener) as means:
            return resume(self.bound(), means, run_id=run, directory=self.directory, options=options)

    @contextmanager
    def _means(self, spark: Session, *, client: Client | None, listener: Listener | None) -> Iterator[Means]:
        from limnos.pipeline.engine.connection import client_of  # noqa: PLC0415
        from limnos.pipeline.engine.driver import SparkEngine  # noqa: PLC0415
        from limnos.pipeline.run.events import nobody  # noqa: PLC0415
        from limnos.pipeline.run.start import Means  # noqa: PLC0415
        from limnos.pipeline.run.stop import Stop  # noqa: PLC0415

        with ExitStack() as opened:
            given = client or opened.enter_context(client_of(spark, self.declaration.catalog))
            heart = client or opened.enter_context(client_of(spark, self.declaration.catalog, timeout_s=10))
            engine = opened.enter_context(closing(SparkEngine(spark)))
            engine.ship(self.declaration, directory=self.directory)
            yield Means(client=given, heart=heart, engine=engine, stop=Stop(), listener=listener or nobody)

    def bound(self) -> Pipeline:
        """The declaration with its Python functions imported. Raises InvalidPipeline."""
        from limnos.pipeline.python import bound  # noqa: PLC0415

        return bound(self.declaration, self.directory)


def load(path: str | Path) -> Project:
    """Read a pipeline from a file. Raises InvalidPipeline with everything that is wrong with it."""
    from limnos.pipeline.file import load as load_file  # noqa: PLC0415  (PyYAML is asked for only here)

    path = Path(path)
    return Project(load_file(path), path.parent.absolute(), path.absolute())
