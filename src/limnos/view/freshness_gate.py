# SPDX-License-Identifier: Apache-2.0
"""The freshness gate: before a request uses cached facts, it reads the changes after the known revisions from the
store.

Must not know policies or requests. On SQLite the read is synchronous. On PostgreSQL, requests that arrive while a read
is in flight share the next read, which starts after each of them arrived (rule 1). A read waits a few iterations of the
event loop, as long as each iteration brings more requests (docs/decisions/0015).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.model.kinds import ROOT_ID
from limnos.store.changes import NO_CHANGES, UNKNOWN, GateResult
from limnos.store.interface import AwaitedStore, InlineStore, KnownRevisions
from limnos.store.sql import Load, Query, Row
from limnos.telemetry.metrics import Counter
from limnos.view.fact_reads import LoadedFacts, read_facts
from limnos.view.keys import Key, node_key
from limnos.view.view import StoreView

GATE_READS = Counter("limnos_gate_reads_total", "Freshness checks sent to the store.", ("reason",))
GATE_SHARED = Counter("limnos_gate_shared_total", "Requests that shared a freshness check with others.", ())
COLD_READS = Counter("limnos_cold_reads_total", "Read transactions for facts that the view lacked.", ())
COLD_REFUSED = Counter(
    "limnos_cold_reads_refused_total", "Requests refused because too many reads after cache misses were waiting.", ()
)

T = TypeVar("T")
GATE_QUIET = Counter(
    "limnos_gate_quiet_total", "Requests that needed no freshness check, because nothing was committed.", ()
)
QUIET_MAX = 10_000
TURNS_MAX = 8
"""The maximum number of event loop turns that a read waits while each turn brings more requests that can share it."""

Zones = tuple[int, ...]
"""A chain of zones in lock order: the server, the metalake, the catalog."""


class GateWaiter(Protocol):
    """The receiver of a gate read's result: a future, or an object whose methods the gate calls directly."""

    def done(self) -> bool:
        """Return whether the waiter no longer waits, for example because the request was cancelled."""

    def set_result(self, moment: KnownRevisions, /) -> None:
        """Accept the revisions of a gate read that started after the waiter joined. Must not raise."""

    def set_exception(self, error: Exception, /) -> None:
        """Accept the error of a failed gate read. Must not raise."""


class FreshnessGate(Protocol):
    """Brings the view up to date before a request uses cached facts, and loads missing facts into it."""

    view: StoreView
    inline: bool

    def refresh_now(self, zones: Zones, reason: str) -> bool:
        """Bring the view up to date synchronously. Supported only if `inline` is true.

        Returns true if no read was needed, because nothing was committed since these zones were last read in one
        snapshot.
        """

    async def refresh(self, zones: Zones, reason: str) -> None:
        """Bring the view up to date: it includes all changes that were committed before this call."""

    def refresh_and_notify(self, zones: Zones, reason: str, waiter: GateWaiter) -> None:
        """Bring the view up to date as `refresh` does, then notify the waiter. Supported only if `inline` is false."""

    async def refresh_together(self, chains: tuple[Zones, ...], reason: str) -> KnownRevisions:
        """Bring the view up to date in several chains of zones (server, metalake, catalog), with one snapshot for all.

        Returns the revisions of that snapshot.
        """

    async def fetch(self, zones: Zones, requested: dict[Key, int]) -> None:
        """Load facts into the view, and apply the changes up to their snapshot. `requested` maps each key to its zone.

        Raises ServiceUnavailable if too many loads are in flight.
        """

    async def fetch_together(self, chains: tuple[Zones, ...], requested: dict[Key, int]) -> None:
        """Load facts of several chains of zones with one snapshot for all, as `fetch` does for one."""

    async def look_up(self, load: Callable[[], Load[T]], *, aside: bool = False) -> T:
        """Read values from the store without caching them, in one snapshot that starts after this call.

        `aside`: the statements may take longer than a few milliseconds, and return no bytes. The event loop goes on
        meanwhile.
        """

    async def find(self, query: Query) -> list[Row]:
        """Run one query on the store and return its rows, uncached. Cheaper than `look_up`, for reads that many
        requests need.
        """


class InlineFreshnessGate:
    """The freshness gate of a store whose reads are synchronous, as SQLite's.

    No other code can run between a read and the update of the view.
    """

    inline = True

    def __init__(self, view: StoreView, store: InlineStore) -> None:
        self.view = view
        self.store = store
        self._quiet: dict[Zones, tuple[bytes, int]] = {}

    def refresh_now(self, zones: Zones, reason: str) -> bool:
        """Bring the view up to date; runs no statement if `store.moment()` shows that no commit happened."""
        moment, view = self.store.moment(), self.view
        if moment is not None and self._quiet.get(zones) == (moment, view.generation):
            GATE_QUIET[()] += 1
            return True
        GATE_READS[reason,] += 1
        request = view.known_revisions(zones)
        gate_result = self.store.gate(view.epoch, request)
        if gate_result is not NO_CHANGES or not view.is_paired(zones):
            view.advance(gate_result, request)
        if moment is not None and view.is_paired(zones):
            self._store_commit_marker(zones, moment)
        return False

    def _store_commit_marker(self, zones: Zones, moment: bytes) -> None:
        """Record the store's commit marker for these zones. Until it changes, they need no gate statement."""
        if len(self._quiet) >= QUIET_MAX:
            self._quiet.clear()
        self._quiet[zones] = (moment, self.view.generation)

    async def refresh(self, zones: Zones, reason: str) -> None:
        """Bring the view up to date without waiting."""
        self.refresh_now(zones, reason)

    def refresh_and_notify(self, zones: Zones, reason: str, waiter: GateWaiter) -> None:
        """Raise RuntimeError: reads of an inline store are synchronous, so there are no waiters."""
        raise RuntimeError("Reads of this store are synchronous: call refresh_now")

    async def refresh_together(self, chains: tuple[Zones, ...], reason: str) -> KnownRevisions:
        """Bring the view up to date in all chains of zones with one statement."""
        GATE_READS[reason,] += 1
        request = self.view.known_revisions(_union(chains))
        return _advance(self.view, self.store.gate(self.view.epoch, request), request, chains)

    async def fetch(self, zones: Zones, requested: dict[Key, int]) -> None:
        """Load facts in one snapshot, and add them to the view after the changes up to that snapshot."""
        await self.fetch_together((zones,), requested)

    async def fetch_together(self, chains: tuple[Zones, ...], requested: dict[Key, int]) -> None:
        """Load facts in one snapshot, and add them to the view after the changes up to that snapshot."""
        COLD_READS[()] += 1
        zones = _union(chains)
        request = self.view.known_revisions(zones)
        gate_result, loaded_facts = self.store.load(self.view.epoch, request, partial(read_facts, tuple(requested)))
        _advance(self.view, gate_result, request, chains)
        view = self.view
        at = {zone: view.zones[zone].revision for zone in zones if zone in view.zones}
        _merge(view, loaded_facts, requested=requested, at=at, default=zones[-1])

    async def look_up(self, load: Callable[[], Load[T]], *, aside: bool = False) -> T:
        """Read values in one snapshot of the store, without caching them in the view; `aside`: in a thread."""
        if aside:
            return await self.store.load_aside(load)
        return self.store.load(self.view.epoch, (), load)[1]

    async def find(self, query: Query) -> list[Row]:
        """Run one query on the store synchronously and return its rows."""
        return self.store.find(query)


def _merge(
    view: StoreView, loaded: LoadedFacts, *, requested: dict[Key, int], at: dict[int, int], default: int
) -> None:
    """Merge facts into the view, which has advanced to their snapshot.

    Args:
        view: The view.
        loaded: The facts.
        requested: The zones of the requested keys.
        at: The revisions in the snapshot of the zones that the load covered, the server and the metalake among them.
        default: The zone of the other facts.
    """
    for clock in loaded.clocks:
        if clock.zone not in view.zones:
            above = (ROOT_ID, loaded.zones[node_key(clock.zone)])
            chain = (*((zone, at[zone]) for zone in above), (clock.zone, UNKNOWN))
            view.advance(GateResult(view.epoch, (clock,), ()), chain)
        at.setdefault(clock.zone, clock.revision)
    zone_of = {key: requested.get(key, loaded.zones.get(key, default)) for key in loaded.values}
    view.merge(loaded.values, zone_of=zone_of, at=at)


def _union(chains: Iterable[Zones]) -> Zones:
    """Return the distinct zones of several chains, each after the zones above it."""
    return tuple({zone: None for zones in sorted(chains) for zone in zones})


def _advance(view: StoreView, moved: GateResult, request: KnownRevisions, chains: Iterable[Zones]) -> KnownRevisions:
    """Apply the result of a gate statement for several chains of zones, and record the revisions of each chain
    separately.

    Returns the revisions of that statement's snapshot. The view may know newer revisions of some zones already.
    """
    zone_revisions = dict(request)
    for zones in chains:
        view.advance(moved, tuple((zone, zone_revisions[zone]) for zone in zones))
    zone_revisions.update((clock.zone, clock.revision) for clock in moved.clocks)
    return tuple(zone_revisions.items())


class SharedFreshnessGate:
    """The freshness gate of a store whose reads are asynchronous, as PostgreSQL's.

    At most one gate read is in flight; requests that arrive during it share the next gate read.
    """

    inline = False

    def __init__(self, view: StoreView, store: AwaitedStore, *, cold_reads_max: int = 64) -> None:
        self.view = view
        self.store = store
        self.cold_reads_max = cold_reads_max
        self._waiting: list[tuple[Zones, GateWaiter]] = []
        self._reading: asyncio.Task[None] | None = None
        self._cold: dict[tuple[Key, ...], asyncio.Future[None]] = {}

    def refresh_now(self, zones: Zones, reason: str) -> bool:
        """Raise RuntimeError, because reads of this store are asynchronous."""
        raise RuntimeError("Reads of this store are asynchronous: await refresh")

    async def refresh(self, zones: Zones, reason: str) -> None:
        """Wait for a gate read that starts after this call."""
        await self._waiter((zones,), reason)

    async def refresh_together(self, chains: tuple[Zones, ...], reason: str) -> KnownRevisions:
        """Wait for a gate read that starts after this call and covers all chains of zones in one snapshot."""
        return await self._waiter(chains, reason)

    def refresh_and_notify(self, zones: Zones, reason: str, waiter: GateWaiter) -> None:
        """Notify the waiter when a gate read that starts after this call has finished."""
        self._join((zones,), reason, waiter)

    def _waiter(self, chains: tuple[Zones, ...], reason: str) -> asyncio.Future[KnownRevisions]:
        """Join the next gate read, and return a future of its revisions.

        Not a coroutine: every request calls it, and one more coroutine would cost measurable time.
        """
        future: asyncio.Future[KnownRevisions] = asyncio.get_running_loop().create_future()
        self._join(chains, reason, future)
        return future

    def _join(self, chains: tuple[Zones, ...], reason: str, waiter: GateWaiter) -> None:
        GATE_READS[reason,] += 1
        for zones in chains:
            self._waiting.append((zones, waiter))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all())

    async def _read_all(self) -> None:
        try:
            while self._waiting:
                await self._gather()
                waiting, self._waiting = self._waiting, []
                await self._read(waiting)
        finally:
            self._reading = None

    async def _gather(self) -> None:
        """Wait up to `TURNS_MAX` iterations of the event loop for further requests to join the read.

        Without this wait, clients in a steady loop split into two groups, each of which waits for the gate read of the
        other.
        """
        for _ in range(TURNS_MAX):
            before = len(self._waiting)
            await asyncio.sleep(0)
            if len(self._waiting) == before:
                return

    async def _read(self, waiting: list[tuple[Zones, GateWaiter]]) -> None:
        """Run one gate statement over the union of the zones, then record the revisions of each chain separately.

        Sets the result or the error of all waiters. If the store is unavailable, the requests that joined meanwhile get
        the error, too: they would wait for the next failure, up to twice as long as the others.
        """
        GATE_SHARED[()] += len(waiting) - 1
        chains = {zones for zones, _ in waiting}
        request = self.view.known_revisions(_union(chains))
        generation = self.view.generation
        try:
            gate_result = await self.store.gate_async(self.view.epoch, request)
            if self.view.generation != generation:  # the view was reset during the read: read again
                self._waiting = waiting + self._waiting
                return
            moment = _advance(self.view, gate_result, request, chains)
        except Exception as error:  # noqa: BLE001 - every waiter gets the error
            if isinstance(error, ServiceUnavailable):
                waiting, self._waiting = waiting + self._waiting, []
            _settle(waiting, error)
        else:
            _settle(waiting, moment)

    async def fetch(self, zones: Zones, requested: dict[Key, int]) -> None:
        """Load facts into the view. Concurrent requests for the same facts share one load.

        Raises ServiceUnavailable if `cold_reads_max` loads are in flight.
        """
        await self.fetch_together((zones,), requested)

    async def fetch_together(self, chains: tuple[Zones, ...], requested: dict[Key, int]) -> None:
        """Load facts of several chains of zones into the view, as `fetch` does."""
        keys = tuple(requested)
        running = self._cold.get(keys)
        if running is not None:
            await asyncio.shield(running)
            return
        if len(self._cold) >= self.cold_reads_max:
            COLD_REFUSED[()] += 1
            raise ServiceUnavailable("The server has too many reads in progress: try again", retry_after_s=1)
        self._cold[keys] = future = asyncio.ensure_future(self._load_shared(keys, chains, requested))
        await asyncio.shield(future)

    async def look_up(self, load: Callable[[], Load[T]], *, aside: bool = False) -> T:
        """Read values in one snapshot of the store, without caching them in the view."""
        return (await self.store.load_async(self.view.epoch, (), load))[1]

    async def find(self, query: Query) -> list[Row]:
        """Run one query on the store and await its rows."""
        return await self.store.find_async(query)

    async def _load_shared(self, keys: tuple[Key, ...], chains: tuple[Zones, ...], requested: dict[Key, int]) -> None:
        """Load facts, and remove the load from `_cold` before its waiters resume.

        A waiter that still lacks a fact then starts another load instead of joining this one.
        """
        try:
            await self._load(chains, requested)
        finally:
            del self._cold[keys]

    async def _load(self, chains: tuple[Zones, ...], requested: dict[Key, int]) -> None:
        COLD_READS[()] += 1
        zones = _union(chains)
        request = self.view.known_revisions(zones)
        epoch, generation = self.view.epoch, self.view.generation
        gate_result, loaded_facts = await self.store.load_async(epoch, request, partial(read_facts, tuple(requested)))
        if self.view.generation != generation:
            return
        results = {clock.zone: clock.revision for clock in gate_result.clocks}
        _advance(self.view, gate_result, request, chains)
        at = {zone: results.get(zone, revision) for zone, revision in request}
        _merge(self.view, loaded_facts, requested=requested, at=at, default=zones[-1])


def _settle(waiting: list[tuple[Zones, GateWaiter]], outcome: KnownRevisions | Exception) -> None:
    for _, waiter in waiting:
        if waiter.done():
            continue
        if isinstance(outcome, Exception):
            waiter.set_exception(outcome)
        else:
            waiter.set_result(outcome)
