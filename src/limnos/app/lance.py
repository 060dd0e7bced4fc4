"""The processes that read Lance tables, as the settings have them.

May import this room, `config`, `services`, `sources` for the name of their module, and `model`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from limnos.app.chores import REFUSALS, ChoreProcesses
from limnos.model.errors import InvalidTable, NotFound, StorageFailed, Unsupported
from limnos.services.lance_reading import ProcessReader
from limnos.sources.lance.questions import MODULE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limnos.config.settings import Lance
    from limnos.model.errors import LimnosError

_KINDS: Final = ("version", "tag", "branch", "table")
TOLD: Mapping[str, Callable[[str], LimnosError]] = {
    **REFUSALS,
    InvalidTable.code: InvalidTable,
    StorageFailed.code: StorageFailed,
    Unsupported.code: Unsupported,
    **{f"{NotFound.code}:{kind}": partial(NotFound, kind=kind) for kind in _KINDS},
}
"""What such a process may refuse with."""


def lance_reader(settings: Lance) -> ProcessReader:
    """Build what reads Lance tables; no process is there before somebody asks."""
    return ProcessReader(
        ChoreProcesses(
            processes_max=settings.workers_max, module=MODULE, refusals=TOLD,
            resident_bytes_max=settings.worker_bytes_max,
        )
    )  # fmt: skip
