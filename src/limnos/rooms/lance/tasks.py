# SPDX-License-Identifier: Apache-2.0
"""Background tasks of the room `lance`."""

from __future__ import annotations

from typing import Final

from limnos.app.task_kind import TaskKind, result_runner
from limnos.rooms.lance.services.purges import lance_purge_run
from limnos.services.lance.purge_tasks import LANCE_PURGE, LancePurgePayload

KINDS: Final = (TaskKind(name=LANCE_PURGE, runner=result_runner(LancePurgePayload, lance_purge_run), tries=5),)
