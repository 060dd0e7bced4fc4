"""The processes that work on Lance tables, as the settings have them.

May import this room, `config`, `sources` for the name of their module, and `model`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from limnos.app.lance_processes import LanceProcesses
from limnos.app.offload_processes import REFUSALS
from limnos.model.errors import (
    AlreadyExists,
    InUse,
    InvalidTable,
    NotFound,
    SchemaMismatch,
    StorageFailed,
    TooLarge,
    UnsupportedOperation,
)
from limnos.sources.lance.questions import MODULE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limnos.config.settings import LanceSection
    from limnos.model.errors import LimnosError

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
"""What such a process may refuse with."""
FRUGAL: Final = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""What makes such a process give memory back: with a heap for each thread, and Arrow's own beside them, it has a fifth more for the same rows."""


def lance_processes(settings: LanceSection, *, environment: Mapping[str, str] | None = None) -> LanceProcesses:
    """Build what works on Lance tables; no process is there before somebody asks. A server's are given nothing of its environment."""
    return LanceProcesses(
        processes_max=settings.workers_max,
        resident_bytes_max=settings.worker_bytes_max,
        module=MODULE,
        refusals=LANCE_REFUSALS,
        environment={**FRUGAL, **(environment or {})},
    )
