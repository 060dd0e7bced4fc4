# SPDX-License-Identifier: Apache-2.0
"""The freshness gate: the number of statements for concurrent requests, and that no request uses a read that began
before it arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from limnos.model.entities import ChangeRow, ClockRow
from limnos.model.errors import ServiceUnavailable
from limnos.model.kinds import ROOT_ID, Kind
from limnos.store.changes import NO_CHANGES, UNKNOWN, GateResult
from limnos.view.fact_reads import LoadedFacts
from limnos.view.freshness_gate import COLD_READS, COLD_REFUSED, GATE_READS, GATE_SHARED, TURNS_MAX, SharedFreshnessGate
from limnos.view.keys import ABSENT, Key, node_key, owner_key
from limnos.view.view import StoreView

EPOCH = 1
ZONES = (ROOT_ID, 1, 2)


class FakeStore:
    """A fake store whose reads return the state at their start, and end when the test says so."""

    inline = False

    def __init__(self) -> None:
        self.revision = 1
        self.pruned_to = 0
        self.changes: list[ChangeRow] = []
        self.facts: dict[Key, object] = {}
        self.gates: list[tuple[int, tuple[tuple[int, int], ...]]] = []
        self.loads = 0
        self.landing = asyncio.Event()
        self.landing.set()
        self.load_landing = asyncio.Event()
        self.load_landing.set()
        self.error: Exception | None = None

    def change(self, node_id: int) -> None:
        """Commit a change of a node in every zone."""
        self.revision += 1
        self.changes += [
            ChangeRow(
                zone=zone,
                revision=self.revision,
                ordinal=0,
                operation="alter",
                kind=Kind.TABLE,
                node_id=node_id,
                name_space="table",
                old_parent=None,
                old_name=None,
                new_parent=None,
                new_name=None,
                owner_id=None,
            )
            for zone in ZONES
        ]
        self.facts[node_key(node_id)] = f"node {node_id} at {self.revision}"

    def _moved(self, known: tuple[tuple[int, int], ...]) -> GateResult:
        clocks = tuple(
            ClockRow(zone, self.revision, 0, self.pruned_to) for zone, revision in known if revision != self.revision
        )
        since = {zone: revision if revision >= 0 else self.revision for zone, revision in known}
        rows = tuple(change for change in self.changes if change.revision > since.get(change.zone, self.revision))
        return GateResult(EPOCH, clocks, rows) if clocks else NO_CHANGES

    async def gate_async(self, epoch: int, known: tuple[tuple[int, int], ...]) -> GateResult:
        """Read the state now, and return it later."""
        self.gates.append((self.revision, known))
        moved = self._moved(known)
        error = self.error
        await asyncio.sleep(0)
        await self.landing.wait()
        if error is not None:
            raise error
        return moved

    async def load_async(self, epoch: int, known: tuple[tuple[int, int], ...], load: Any) -> Any:  # noqa: ANN401 - a load
        """Read the state now, and return it later. The load names the facts."""
        self.loads += 1
        moved, facts = self._moved(known), LoadedFacts({key: self.facts.get(key) for key in load()}, {}, [])
        await asyncio.sleep(0)
        await self.load_landing.wait()
        return moved, facts


@pytest.fixture(autouse=True)
def plain_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Represent a load by its keys."""
    monkeypatch.setattr("limnos.view.freshness_gate.read_facts", tuple)


def run(story: Callable[[SharedFreshnessGate, FakeStore], Coroutine[Any, Any, None]], **settings: int) -> None:
    """Run a scenario of a gate and its store on a new event loop."""

    async def run_story() -> None:
        store = FakeStore()
        await story(SharedFreshnessGate(StoreView(), store, **settings), store)

    asyncio.run(run_story())


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_requests_that_come_together_share_one_read() -> None:
    """A hundred concurrent requests share one statement, and the metrics count it so."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        before, shared = sum(GATE_READS.values()), GATE_SHARED[()]

        await asyncio.gather(*(gate.refresh(ZONES, "arrival") for _ in range(100)))

        assert len(store.gates) == 1
        assert sum(GATE_READS.values()) - before + GATE_SHARED[()] - shared >= 100
        assert GATE_SHARED[()] - shared == 99

    run(story)


def test_requests_that_come_during_a_read_share_the_next() -> None:
    """Requests that arrive during a read all share the next one."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        store.landing.clear()
        first = asyncio.create_task(gate.refresh(ZONES, "arrival"))
        await settle()
        late = [asyncio.create_task(gate.refresh(ZONES, "arrival")) for _ in range(50)]
        await settle()
        assert len(store.gates) == 1

        store.landing.set()
        await asyncio.gather(first, *late)

        assert len(store.gates) == 2

    run(story)


def test_read_is_delayed_while_requests_arrive() -> None:
    """Requests in consecutive turns of the event loop share one statement. It is sent in the first turn without a new
    request.
    """

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        refreshes = []
        for _ in range(TURNS_MAX - 1):
            refreshes.append(asyncio.create_task(gate.refresh(ZONES, "arrival")))
            await asyncio.sleep(0)
        await asyncio.gather(*refreshes)
        assert len(store.gates) == 1

        for number in range(2, 5):
            await gate.refresh(ZONES, "arrival")
            assert len(store.gates) == number

    run(story)


def test_read_is_sent_after_a_limited_number_of_turns() -> None:
    """However many requests arrive in each turn, the statement is sent after a limited number of turns."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        refreshes = []
        for _ in range(3 * TURNS_MAX):
            refreshes.append(asyncio.create_task(gate.refresh(ZONES, "arrival")))
            await asyncio.sleep(0)
        assert len(store.gates) >= 1
        await asyncio.gather(*refreshes)

    run(story)


def test_request_does_not_join_an_earlier_read() -> None:
    """A request sees every commit before its arrival, although an earlier read is still running, because it does not
    join that read (rule 1).
    """

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        store.landing.clear()
        first = asyncio.create_task(gate.refresh(ZONES, "arrival"))
        await settle()
        store.change(50)
        late = asyncio.create_task(gate.refresh(ZONES, "arrival"))
        await settle()
        store.landing.set()
        await asyncio.gather(first, late)

        assert [revision for revision, _ in store.gates] == [1, 2]
        assert gate.view.zones[2].revision == 2

    run(story)


def test_shared_read_covers_all_zones_and_pairs_each_chain() -> None:
    """Requests for different catalogs share one statement over all zones, which pairs the zones of each request."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await asyncio.gather(
            gate.refresh((0, 1, 2), "arrival"), gate.refresh((0, 1, 3), "arrival"), gate.refresh((0,), "arrival")
        )

        assert len(store.gates) == 1
        assert {zone for zone, _ in store.gates[0][1]} == {0, 1, 2, 3}
        assert gate.view.is_paired((0, 1, 2))
        assert gate.view.is_paired((0, 1, 3))

    run(story)


def test_failed_read_fails_only_its_own_requests() -> None:
    """All requests that share a failed read get its error; the next request reads again."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        store.error = ServiceUnavailable("gone")
        errors = await asyncio.gather(*(gate.refresh(ZONES, "arrival") for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in errors] == [ServiceUnavailable] * 3

        store.error = None
        await gate.refresh(ZONES, "arrival")

        assert gate.view.is_paired(ZONES)

    run(story)


def test_requests_that_come_during_a_failing_read_get_its_error() -> None:
    """If a read finds the store unavailable, requests that arrived during it do not wait for another failure."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        store.error = ServiceUnavailable("gone")
        store.landing.clear()
        first = asyncio.create_task(gate.refresh(ZONES, "arrival"))
        await settle()
        late = asyncio.create_task(gate.refresh(ZONES, "arrival"))
        await settle()

        store.landing.set()
        errors = await asyncio.gather(first, late, return_exceptions=True)

        assert [type(each) for each in errors] == [ServiceUnavailable] * 2
        assert len(store.gates) == 1

    run(story)


def test_cancelled_request_does_not_affect_the_others() -> None:
    """The cancellation of one request does not affect the others that share the read."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        store.landing.clear()
        tasks = [asyncio.create_task(gate.refresh(ZONES, "arrival")) for _ in range(3)]
        await settle()
        tasks[0].cancel()
        store.landing.set()

        results = await asyncio.gather(*tasks, return_exceptions=True)

        assert [type(each) for each in results] == [asyncio.CancelledError, type(None), type(None)]

    run(story)


def test_concurrent_requests_for_one_fact_cause_one_load() -> None:
    """Ten requests that lack the same fact cause one load."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        before = COLD_READS[()]

        await asyncio.gather(*(gate.fetch(ZONES, {node_key(5): 2}) for _ in range(10)))

        assert store.loads == 1
        assert COLD_READS[()] - before == 1
        assert gate.view.get(node_key(5)) is None

    run(story)


def test_load_survives_cancellation_of_its_first_request() -> None:
    """If the first request for a fact is cancelled, the load continues for the others."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        store.load_landing.clear()
        first, second = (asyncio.create_task(gate.fetch(ZONES, {node_key(5): 2})) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        store.load_landing.set()

        await second

        assert gate.view.get(node_key(5)) is None
        assert store.loads == 1

    run(story)


def test_request_does_not_join_a_finished_load() -> None:
    """A request that arrives when a load has just ended, before its waiters run, starts a new load."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        store.load_landing.clear()
        first = asyncio.create_task(gate.fetch(ZONES, {node_key(5): 2}))
        await settle()
        (under_way,) = gate._cold.values()

        async def newcomer() -> int:
            while not under_way.done():  # noqa: ASYNC110 - no event marks this turn of the loop
                await asyncio.sleep(0)
            assert not first.done()
            await gate.fetch(ZONES, {node_key(5): 2})
            return store.loads

        late = asyncio.create_task(newcomer())
        await settle()
        store.load_landing.set()

        assert await late == 2
        await first

    run(story)


def test_too_many_cold_reads_are_refused() -> None:
    """Beyond the limit of loads, a request is refused immediately with Retry-After; the others continue."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        store.load_landing.clear()
        waiting = [asyncio.create_task(gate.fetch(ZONES, {node_key(i): 2})) for i in range(3)]
        await settle()
        before = COLD_REFUSED[()]

        with pytest.raises(ServiceUnavailable, match="try again") as refused:
            await gate.fetch(ZONES, {node_key(9): 2})

        assert refused.value.retry_after_s >= 1
        assert COLD_REFUSED[()] - before == 1
        joined = asyncio.create_task(gate.fetch(ZONES, {node_key(1): 2}))
        store.load_landing.set()
        await asyncio.gather(*waiting, joined)
        await gate.fetch(ZONES, {node_key(9): 2})

    run(story, cold_reads_max=3)


def test_late_load_does_not_merge_changed_facts() -> None:
    """When a load ends, facts that changed since its read are not merged into the view; unchanged ones are (rule 3)."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        store.facts = {node_key(5): "old", owner_key(5): 7}
        store.load_landing.clear()
        slow = asyncio.create_task(gate.fetch(ZONES, {node_key(5): 2, owner_key(5): 2}))
        await settle()
        store.change(5)
        await gate.refresh(ZONES, "arrival")
        store.load_landing.set()
        await slow

        assert gate.view.zones[2].revision == 2
        assert gate.view.get(node_key(5)) is ABSENT
        assert gate.view.get(owner_key(5)) == 7

    run(story)


def test_late_load_does_not_set_back_revisions() -> None:
    """An older load that ends after a newer gate read sets back no revision and no pairing (rule 1)."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        store.change(5)
        store.load_landing.clear()
        slow = asyncio.create_task(gate.fetch(ZONES, {node_key(6): 2}))
        await settle()
        store.change(5)
        await gate.refresh(ZONES, "arrival")
        store.load_landing.set()
        await slow

        assert [gate.view.zones[zone].revision for zone in ZONES] == [3, 3, 3]
        assert gate.view.is_paired(ZONES)

    run(story)


def test_newer_load_applies_its_changes_before_its_facts() -> None:
    """A load that is newer than the last gate read applies its changes before its facts, which advances the view."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        store.change(5)

        await gate.fetch(ZONES, {node_key(5): 2})

        assert gate.view.zones[2].revision == 2
        assert gate.view.get(node_key(5)) == "node 5 at 2"

    run(story)


def test_result_from_before_a_view_reset_is_discarded() -> None:
    """The result of a read is discarded if the view was reset meanwhile, and the gate reads again."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        store.facts = {node_key(5): "old"}
        store.landing.clear()
        store.load_landing.clear()
        refresh_task = asyncio.create_task(gate.refresh(ZONES, "arrival"))
        slow = asyncio.create_task(gate.fetch(ZONES, {node_key(5): 2}))
        await settle()
        gate.view.reset(EPOCH)
        store.change(5)
        store.landing.set()
        store.load_landing.set()
        await asyncio.gather(refresh_task, slow)

        assert len(store.gates) == 3
        assert gate.view.zones[2].revision == 2
        assert gate.view.get(node_key(5)) is ABSENT

    run(story)


def test_no_chain_is_partly_known_after_a_pruned_feed() -> None:
    """If a shared read finds that the feed of one zone is pruned, no ancestor chain stays partly known."""

    async def story(gate: SharedFreshnessGate, store: FakeStore) -> None:
        await gate.refresh(ZONES, "arrival")
        for _ in range(5):
            store.change(5)
        store.pruned_to = 4

        await asyncio.gather(gate.refresh((ROOT_ID,), "arrival"), gate.refresh(ZONES, "arrival"))

        for zones in ((ROOT_ID,), ZONES):
            if not gate.view.is_paired(zones):
                await gate.refresh(zones, "unpaired")
            assert gate.view.is_paired(zones)
            assert all(revision != UNKNOWN for _, revision in gate.view.known_revisions(zones))

    run(story)
