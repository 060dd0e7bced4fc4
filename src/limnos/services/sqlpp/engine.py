"""Engines of SQL++: who works out statements over data. Which one there is, is for `app` to choose.

May import `sqlpp` and `model`. Must not know what an engine is made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from limnos.model.extras import install_hint
from limnos.services.request.node_services import ComponentKey
from limnos.sqlpp import SqlppError
from limnos.sqlpp.errors import NO_ENGINE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from limnos.sqlpp.jobs import EngineJob


class SqlppEngine(Protocol):
    """Whoever works out statements over data."""

    def begin(self) -> None:
        """Prepare, beside the loop, what the first statement would otherwise wait for."""
        ...

    def run(self, job: EngineJob) -> AsyncIterator[bytes]:
        """Give the results of a job, each one line of JSON without its end of line.

        Whoever does not take them all closes the iterator: that ends the job. A statement that changes data has done so, wholly, when the
        iterator ends; raises SqlppError when it has done nothing.
        """
        ...

    async def cancel(self, job_id: str) -> None:
        """End a job, if it is still under way."""
        ...

    def close(self) -> None:
        """End all jobs, and the engine."""
        ...


class NoSqlppEngine:
    """Refuses: for servers that have none."""

    def begin(self) -> None:
        """Nothing is to be prepared."""

    def run(self, job: EngineJob) -> AsyncIterator[bytes]:
        """Refuse, in words that say what to do."""
        raise SqlppError(
            NO_ENGINE,
            f"A statement over data ({job.kind}) needs an engine, and this server has none: {install_hint('spark')}",
        )

    async def cancel(self, _job_id: str) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is there."""


ENGINE: ComponentKey[SqlppEngine] = ComponentKey("engine", lambda _: NoSqlppEngine())
