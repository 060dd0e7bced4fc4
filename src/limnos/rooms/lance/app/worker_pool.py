# SPDX-License-Identifier: Apache-2.0
"""Worker processes for Lance tables, built from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from limnos.app.offload_processes import REFUSALS
from limnos.config.settings import LanceSection
from limnos.model.errors import (
    AlreadyExists,
    InUse,
    InvalidTable,
    LimnosError,
    NotFound,
    SchemaMismatch,
    StorageFailed,
    TooLarge,
    UnsupportedOperation,
)
from limnos.rooms.lance.app.processes import LanceProcesses
from limnos.rooms.lance.sources.questions import MODULE

_MISSING: Final = ("version", "tag", "branch", "table", "column", "index", "transaction")
_TAKEN: Final = ("tag", "branch", "table", "index")
_PLAIN: Final = (InvalidTable, SchemaMismatch, StorageFailed, TooLarge, UnsupportedOperation)
LANCE_REFUSALS: Mapping[str, Callable[[str], LimnosError]] = {
    **REFUSALS,
    **{each.code: each for each in _PLAIN},
    InUse.code: partial(InUse, kind="branch"),
    **{f"{NotFound.code}:{kind}": partial(NotFound, kind=kind) for kind in _MISSING},
    **{f"{AlreadyExists.code}:{kind}": partial(AlreadyExists, kind=kind) for kind in _TAKEN},
}
"""Errors that a worker process may report, by code."""
FRUGAL: Final = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Environment variables that make worker processes return memory to the system: per-thread heaps and Arrow's own pool
use a fifth more.
"""


def lance_processes(settings: LanceSection, *, environment: Mapping[str, str] | None = None) -> LanceProcesses:
    """Build the pool of worker processes. No process is started before the first request.

    Workers of a server inherit no environment variables of the server except `environment`.
    """
    return LanceProcesses(
        processes_max=settings.workers_max,
        resident_bytes_max=settings.worker_bytes_max,
        module=MODULE,
        refusals=LANCE_REFUSALS,
        environment={**FRUGAL, **(environment or {})},
    )
