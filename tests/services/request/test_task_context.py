# SPDX-License-Identifier: Apache-2.0
"""Work in its own thread: the task's lease is renewed while the work progresses, and the work stops when its task is
cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from limnos.files import allow_everything
from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.model.permits import upkeep_permit
from limnos.model.principals import TokenTrust
from limnos.services.identity.tokens import token_create
from limnos.services.request.task_context import TOKEN_MS, TaskContext
from limnos.store.identity.tokens import token_read

if TYPE_CHECKING:
    from limnos.model.entities import Token
    from limnos.services.request.task_context import Heartbeat
    from tests.services.conftest import ServiceDesk

SHORT_MS = 60
"""A lease that expires immediately without a heartbeat."""
LONG_MS = 30_000
"""A lease that no test lets expire."""
GIVEN_UP_S = 30
KEPT = "SELECT progress, leased_until FROM task WHERE progress IS NOT NULL"


def work_of(desk: ServiceDesk, lease_ms: int) -> TaskContext:
    """Create a task, and lease it."""
    desk.run(desk.lab.store.submit(upkeep_permit("test"), lambda tx: tx.tasks.create("purge", "{}")))
    ((task_id,),) = desk.rows("SELECT id FROM task")
    return TaskContext(
        task_id,
        store=desk.lab.store,
        permit=upkeep_permit("test"),
        allowed=allow_everything(),
        warehouse="file:/w",
        lease_ms=lease_ms,
    )


def test_work_returns_the_result_or_error_of_the_call(desk: ServiceDesk) -> None:
    """The result or the error of the call is the result of the work."""
    work = work_of(desk, LONG_MS)

    def fail(_beat: Heartbeat) -> None:
        raise BadRequest("no such place")

    assert desk.run(work.run_in_thread(lambda _beat: threading.current_thread() is threading.main_thread())) is False
    with pytest.raises(BadRequest, match="no such place"):
        desk.run(work.run_in_thread(fail))


def test_heartbeats_renew_the_lease_and_publish_progress(desk: ServiceDesk) -> None:
    """While the heartbeat counter increases, the lease is renewed and the progress is published."""
    work = work_of(desk, 3 * SHORT_MS)
    seen = threading.Event()

    def count(beat: Heartbeat) -> int:
        far = 0
        while not seen.wait(0.001):
            far += 1
            beat(far)
        return far

    async def watch() -> tuple[int, list[tuple[object, ...]]]:
        working = asyncio.create_task(work.run_in_thread(count))
        try:
            async with asyncio.timeout(GIVEN_UP_S):
                while not (rows := desk.rows(KEPT)):  # noqa: ASYNC110 - the row is all there is to see
                    await asyncio.sleep(0.01)
        finally:
            seen.set()
        return await working, rows

    far, ((progress, until),) = desk.run(watch())

    assert 0 < int(str(progress)) <= far
    assert until


def test_call_without_heartbeats_fails_with_a_temporary_error(desk: ServiceDesk) -> None:
    """A call that sends no heartbeat for the time of a lease fails with a temporary error, and its thread ends at its
    next heartbeat.
    """
    work = work_of(desk, SHORT_MS)
    given_up, ended = threading.Event(), threading.Event()

    def hang(beat: Heartbeat) -> None:
        assert given_up.wait(GIVEN_UP_S)
        try:
            beat(1)
        except InterruptedError:
            ended.set()
            raise

    with pytest.raises(ServiceUnavailable, match="retried"):
        desk.run(work.run_in_thread(hang))
    given_up.set()

    assert ended.wait(GIVEN_UP_S)


def test_node_stop_cancels_tasks_and_their_threads(desk: ServiceDesk) -> None:
    """When the node stops, tasks are cancelled, and their threads end at the next heartbeat."""
    work = work_of(desk, LONG_MS)
    began, ended = threading.Event(), threading.Event()

    def go_on(beat: Heartbeat) -> None:
        far = 0
        try:
            while True:
                began.set()
                beat(far := far + 1)
        except InterruptedError:
            ended.set()
            raise

    async def cancel() -> None:
        working = asyncio.create_task(work.run_in_thread(go_on))
        await asyncio.to_thread(began.wait, GIVEN_UP_S)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    desk.run(cancel())

    assert ended.wait(GIVEN_UP_S)


def test_tokens_of_a_task_live_as_long_as_its_lease(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of a task is valid for ten minutes, and longer while the task renews its lease. It never outlives the
    token with which the work was requested, and it is revoked when the task ends it.
    """
    work, clock = work_of(desk, 3 * SHORT_MS), desk.node.store.time
    start_ms = clock.now_ms()
    passed = [0]
    monkeypatch.setattr(clock, "now_ms", lambda: start_ms + passed[0])

    async def ends_of(token: Token) -> int:
        stored = await desk.node.gate.look_up(lambda: token_read(token.id))
        assert stored is not None
        return (stored.expires_at or 0) - start_ms

    async def run() -> list[int]:
        root, _ = await token_create(desk.ctx("ana"), user=None, name="laptop", expires_in_s=2400)
        own = {"name": "work", "secret_hash": b"x", "trust": TokenTrust.PROVEN}
        free = await work.create_token(user="ana", root_id=None, **own)
        bound = await work.create_token(user="ana", root_id=root.id, **own)

        async def long_work() -> None:
            for minute in range(9, 64, 9):
                passed[0] = minute * 60_000
                for _ in range(10_000):
                    if await ends_of(free) >= passed[0] + TOKEN_MS // 2:
                        break
                    await asyncio.sleep(0.001)

        first = [await ends_of(free), await ends_of(bound)]
        await work.await_with_lease(long_work())
        last = [await ends_of(free), await ends_of(bound)]
        await work.end_token(free)
        return first + last

    first_free, first_bound, last_free, last_bound = desk.run(run())
    assert (first_free, first_bound) == (TOKEN_MS, TOKEN_MS)
    assert last_free == 63 * 60_000 + TOKEN_MS
    assert last_bound == 2_400_000
    assert desk.rows("SELECT revoked FROM token WHERE purpose = 'work' ORDER BY id") == [(1,), (0,)]
