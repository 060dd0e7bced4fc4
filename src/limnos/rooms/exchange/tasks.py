# SPDX-License-Identifier: Apache-2.0
"""Background tasks of the room `exchange`."""

from __future__ import annotations

from typing import Final

from limnos.app.task_kind import NoPayload, TaskKind, TaskOutcome, result_runner, typed_runner
from limnos.rooms.exchange.services.metalake_import import PRUNE_IMPORT, PruneImport, import_prune, imports_prune
from limnos.services.request.task_context import TaskContext

PRUNE_IMPORTS: Final = "prune-imports"
PRUNE_IMPORTS_EVERY_S: Final = 3600.0


async def _prune_imports(work: TaskContext, payload: NoPayload) -> TaskOutcome:
    del payload
    await imports_prune(work)
    return TaskOutcome()


KINDS: Final = (
    TaskKind(name=PRUNE_IMPORT, runner=result_runner(PruneImport, import_prune), tries=5),
    TaskKind(
        name=PRUNE_IMPORTS, runner=typed_runner(NoPayload, _prune_imports), tries=5, every_s=PRUNE_IMPORTS_EVERY_S
    ),
)
