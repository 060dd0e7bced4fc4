# SPDX-License-Identifier: Apache-2.0
"""SQL++ engines: the interface to the engine that runs statements over data. `app` chooses the implementation.

Must not know the implementations.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from limnos.model.extras import install_hint
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.errors import NO_ENGINE
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.services.request.node_services import ComponentKey


class SqlppEngine(Protocol):
    """The interface of an engine that executes statements over data."""

    def begin(self) -> None:
        """Start the engine in the background, so that the first statement does not wait for the start."""
        ...

    @property
    def is_starting(self) -> bool:
        """Whether the engine was started recently, and has not executed a job yet."""
        ...

    def run(self, job: EngineJob, *, warnings: list[SqlppError] | None = None) -> AsyncIterator[bytes]:
        """Yield the results of a job, each one line of JSON without newline; append its warnings to the list.

        Closing the iterator early cancels the job. A data change is committed when the iterator ends. Raises SqlppError
        if the job fails; if the error is OutcomeUnknown, the change may have been committed.
        """
        ...

    async def cancel(self, job_id: str) -> None:
        """Cancel a job; no-op if it has ended."""
        ...

    def close(self) -> None:
        """Cancel all jobs, and stop the engine."""
        ...


class NoSqlppEngine:
    """Null engine: rejects every job, because the server has no SQL++ engine."""

    is_starting = False

    def begin(self) -> None:
        """No-op: the null engine needs no preparation."""

    def run(self, job: EngineJob, *, warnings: list[SqlppError] | None = None) -> AsyncIterator[bytes]:
        """Raise SqlppError, with advice on installing an engine."""
        raise SqlppError(
            NO_ENGINE,
            f"A statement over data ({job.kind}) needs an engine, and this server has none: {install_hint('spark')}",
        )

    async def cancel(self, _job_id: str) -> None:
        """No-op: the null engine has no jobs."""

    def close(self) -> None:
        """No-op: the null engine holds no resources."""


ENGINE: ComponentKey[SqlppEngine] = ComponentKey("engine", lambda _: NoSqlppEngine())
