# SPDX-License-Identifier: Apache-2.0
"""Lance REST over either backend: its own statements have the same effect on SQLite and PostgreSQL."""

from __future__ import annotations

from limnos.model.permits import upkeep_permit
from limnos.services.lance.purge_tasks import LANCE_PURGE
from limnos.services.upkeep.trash import trash_sweep
from limnos.store.sql import Sql
from tests.http.driver import DriverNode
from tests.rooms.lance.http.wire import declare, failure_of, make_space, names, space

EXPIRE = Sql("UPDATE trash SET expires_at = 0")


def test_files_of_a_dropped_namespace_expire_with_the_trash(lake: DriverNode) -> None:
    """Dropping a namespace drops its tables. Their files are deleted after the trash retention."""
    make_space(lake, "lance", "a")
    make_space(lake, "lance", "a", "b")
    for path in (("a", "t"), ("a", "b", "t"), ("r",)):
        declare(lake, "lance", *path)
    lake.done("POST", f"{space('lance', 'a')}/drop", {"behavior": "Cascade"})
    assert failure_of(lake.post(f"{space('lance', 'a')}/exists")) == (404, 1)
    assert names(lake.get("/lance/v1/table")) == ["lance$r"]

    async def expire() -> tuple[int, int]:
        store = lake.built.services.store
        await store.submit(upkeep_permit("t"), lambda tx: tx.count(EXPIRE, {}))
        expired_count = await store.submit(upkeep_permit("t"), trash_sweep)
        return expired_count, len(await store.submit(upkeep_permit("t"), lambda tx: tx.tasks.payloads(LANCE_PURGE)))

    assert lake.runner.run(expire()) == (4, 2)
