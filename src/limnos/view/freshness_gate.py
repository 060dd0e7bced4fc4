"""The freshness gate: one question per request, "what has changed since the revisions I know?", before a cached fact is
used.

May import `model`, `store`, `telemetry` and this room. On SQLite the question is answered inline; on PostgreSQL the
requests that arrive while a read is in flight share the next one, which starts after each of them arrived (rule 1).
A read waits some turns of the loop for company, as long as each of them brings some (docs/decisions/0015).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from limnos.model.errors import ServiceUnavailable
from limnos.model.kinds import ROOT_ID
from limnos.store.changes import NO_CHANGES
from limnos.telemetry.metrics import Counter
from limnos.view.facts import Value, read_facts
from limnos.view.keys import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from limnos.store.changes import GateResult
    from limnos.store.interface import AwaitedStore, InlineStore, KnownRevisions
    from limnos.store.sql import Load, Query, Row
    from limnos.view.view import StoreView

GATE_READS = Counter("limnos_gate_reads_total", "Gate statements sent to the store.", ("reason",))
GATE_SHARED = Counter("limnos_gate_shared_total", "Requests that shared a gate statement with others.", ())
COLD_READS = Counter("limnos_cold_reads_total", "Read transactions for facts that the view lacked.", ())
COLD_REFUSED = Counter(
    "limnos_cold_reads_refused_total", "Requests refused because too many cold reads were waiting.", ()
)

T = TypeVar("T")
GATE_QUIET = Counter("limnos_gate_quiet_total", "Requests that needed no gate statement: nothing was committed.", ())
QUIET_MAX = 10_000
TURNS_MAX = 8
"""So many turns of the loop a question waits at most while each of them brings others who want it, too."""

Zones = tuple[int, ...]
"""In lock order: the server's, the metalake's, the catalog's."""


class GateWaiter(Protocol):
    """Who is told that a gate read is over: a future, or whoever wants to be called at once, before anything else runs."""

    def done(self) -> bool:
        """Say whether it is waited no longer."""
        ...

    def set_result(self, moment: KnownRevisions, /) -> None:
        """The view is at a moment after the waiter came. Must not raise."""
        ...

    def set_exception(self, error: Exception, /) -> None:
        """The gate could not be read. Must not raise."""
        ...


class FreshnessGate(Protocol):
    """What a request passes before it uses cached facts, and where it gets the facts that are missing."""

    view: StoreView
    inline: bool

    def ask_now(self, zones: Zones, reason: str) -> bool:
        """Bring the view up to now; only where `inline`. Says whether it was so already, these zones seen in one snapshot."""
        ...

    async def ask(self, zones: Zones, reason: str) -> None:
        """Bring the view up to a moment after this call."""
        ...

    def tell(self, zones: Zones, reason: str, waiter: GateWaiter) -> None:
        """Bring the view up to a moment after this call, then tell the waiter; only where not `inline`."""
        ...

    async def ask_together(self, chains: tuple[Zones, ...], reason: str) -> KnownRevisions:
        """Bring the view up to one moment after this call in all chains of zones; return the revisions of that moment."""
        ...

    async def fetch(self, zones: Zones, wanted: dict[Key, int]) -> None:
        """Load facts (key → zone) into the view, with the changes of the same snapshot."""
        ...

    async def look_up(self, load: Callable[[], Load[T]]) -> T:
        """Read what is not worth caching, straight from the store, in one snapshot that starts after this call."""
        ...

    async def find(self, query: Query) -> list[Row]:
        """The same by a single statement, for what many requests want."""
        ...


class InlineFreshnessGate:
    """The gate of a store that answers at once; nothing can come between a read and its landing."""

    inline = True

    def __init__(self, view: StoreView, store: InlineStore) -> None:
        self.view = view
        self.store = store
        self._quiet: dict[Zones, tuple[bytes, int]] = {}

    def ask_now(self, zones: Zones, reason: str) -> bool:
        """Bring the view up to now. While nothing is committed, what was seen in one snapshot remains so."""
        moment, view = self.store.moment(), self.view
        if moment is not None and self._quiet.get(zones) == (moment, view.generation):
            GATE_QUIET[()] += 1
            return True
        GATE_READS[reason,] += 1
        asked = view.known(zones)
        moved = self.store.gate(view.epoch, asked)
        if moved is not NO_CHANGES or not view.is_paired(zones):
            view.advance(moved, asked)
        if moment is not None and view.is_paired(zones):
            self._keep_quiet(zones, moment)
        return False

    def _keep_quiet(self, zones: Zones, moment: bytes) -> None:
        """Remember the moment before a read of these zones: while it lasts, they need no other one."""
        if len(self._quiet) >= QUIET_MAX:
            self._quiet.clear()
        self._quiet[zones] = (moment, self.view.generation)

    async def ask(self, zones: Zones, reason: str) -> None:
        """Bring the view up to now."""
        self.ask_now(zones, reason)

    def tell(self, zones: Zones, reason: str, waiter: GateWaiter) -> None:
        """Never called: this store answers at once."""
        raise RuntimeError("this store answers at once")

    async def ask_together(self, chains: tuple[Zones, ...], reason: str) -> KnownRevisions:
        """Bring the view up to now in all chains of zones, by one statement."""
        GATE_READS[reason,] += 1
        asked = self.view.known(_union(chains))
        return _advance(self.view, self.store.gate(self.view.epoch, asked), asked, chains)

    async def fetch(self, zones: Zones, wanted: dict[Key, int]) -> None:
        """Load facts in one snapshot with the changes before them."""
        COLD_READS[()] += 1
        asked = self.view.known(zones)
        moved, facts = self.store.load(self.view.epoch, asked, partial(read_facts, tuple(wanted)))
        self.view.advance(moved, asked)
        _merge(self.view, zones, facts, wanted)

    async def look_up(self, load: Callable[[], Load[T]]) -> T:
        """Read straight from the store."""
        return self.store.load(self.view.epoch, self.view.known((ROOT_ID,)), load)[1]

    async def find(self, query: Query) -> list[Row]:
        """Read straight from the store, by one statement."""
        return self.store.find(query)


def _merge(view: StoreView, zones: Zones, facts: dict[Key, Value], wanted: dict[Key, int]) -> None:
    """Merge facts right after the advance of their own snapshot, so they are at the zones' known revisions."""
    at = {zone: view.zones[zone].revision for zone in zones if zone in view.zones}
    zone_of = {key: wanted.get(key, zones[-1]) for key in facts}
    view.merge(facts, zone_of=zone_of, at=at)


def _union(chains: Iterable[Zones]) -> Zones:
    """Return every zone of several chains once, each after those above it."""
    return tuple({zone: None for zones in sorted(chains) for zone in zones})


def _advance(view: StoreView, moved: GateResult, asked: KnownRevisions, chains: Iterable[Zones]) -> KnownRevisions:
    """Apply what one statement over the union of several chains found, each chain paired by itself.

    Returns the revisions of that statement's snapshot: the view may know newer ones of some zones already.
    """
    known = dict(asked)
    for zones in chains:
        view.advance(moved, tuple((zone, known[zone]) for zone in zones))
    known.update((clock.zone, clock.revision) for clock in moved.clocks)
    return tuple(known.items())


class SharedFreshnessGate:
    """The gate of a store that must be awaited: one read in flight, the next carries everyone who came meanwhile."""

    inline = False

    def __init__(self, view: StoreView, store: AwaitedStore, *, cold_reads_max: int = 64) -> None:
        self.view = view
        self.store = store
        self.cold_reads_max = cold_reads_max
        self._waiting: list[tuple[Zones, GateWaiter]] = []
        self._reading: asyncio.Task[None] | None = None
        self._cold: dict[tuple[Key, ...], asyncio.Future[None]] = {}

    def ask_now(self, zones: Zones, reason: str) -> bool:
        """Never called: this store must be awaited."""
        raise RuntimeError("this store must be awaited")

    async def ask(self, zones: Zones, reason: str) -> None:
        """Wait for a gate read that starts from now on."""
        await self._waiter((zones,), reason)

    async def ask_together(self, chains: tuple[Zones, ...], reason: str) -> KnownRevisions:
        """Wait for a gate read that starts from now on and covers all chains of zones in its one snapshot."""
        return await self._waiter(chains, reason)

    def tell(self, zones: Zones, reason: str, waiter: GateWaiter) -> None:
        """Tell the waiter when a gate read is over that starts from now on."""
        self._join((zones,), reason, waiter)

    def _waiter(self, chains: tuple[Zones, ...], reason: str) -> asyncio.Future[KnownRevisions]:
        """Join the next gate read. A plain function, as every request passes here and a coroutine more is felt."""
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
        """Let come who is about to: requests that lie in sockets already, those of clients who were answered just now first.

        Else steady clients fall apart into parties, each of which waits for the question of the other.
        """
        for _ in range(TURNS_MAX):
            before = len(self._waiting)
            await asyncio.sleep(0)
            if len(self._waiting) == before:
                return

    async def _read(self, waiting: list[tuple[Zones, GateWaiter]]) -> None:
        """One statement, one snapshot, over the union of the zones; then each chain of zones is paired by itself."""
        GATE_SHARED[()] += len(waiting) - 1
        chains = {zones for zones, _ in waiting}
        asked = self.view.known(_union(chains))
        generation = self.view.generation
        try:
            moved = await self.store.gate_async(self.view.epoch, asked)
            if self.view.generation != generation:  # the view began afresh meanwhile: ask for them again
                self._waiting = waiting + self._waiting
                return
            moment = _advance(self.view, moved, asked, chains)
        except Exception as error:  # noqa: BLE001 - every waiter is told
            _settle(waiting, error)
        else:
            _settle(waiting, moment)

    async def fetch(self, zones: Zones, wanted: dict[Key, int]) -> None:
        """Load facts; the same facts wanted twice are read once."""
        keys = tuple(wanted)
        running = self._cold.get(keys)
        if running is not None:
            await asyncio.shield(running)
            return
        if len(self._cold) >= self.cold_reads_max:
            COLD_REFUSED[()] += 1
            raise ServiceUnavailable("The server is busy reading: try again", retry_after_s=1)
        self._cold[keys] = future = asyncio.ensure_future(self._load_shared(keys, zones, wanted))
        await asyncio.shield(future)

    async def look_up(self, load: Callable[[], Load[T]]) -> T:
        """Read straight from the store."""
        return (await self.store.load_async(self.view.epoch, self.view.known((ROOT_ID,)), load))[1]

    async def find(self, query: Query) -> list[Row]:
        """Read straight from the store, by one statement."""
        return await self.store.find_async(query)

    async def _load_shared(self, keys: tuple[Key, ...], zones: Zones, wanted: dict[Key, int]) -> None:
        """Load, and forget the load before its waiters run on: one that still lacks a fact must start a new load."""
        try:
            await self._load(zones, wanted)
        finally:
            del self._cold[keys]

    async def _load(self, zones: Zones, wanted: dict[Key, int]) -> None:
        COLD_READS[()] += 1
        asked = self.view.known(zones)
        epoch, generation = self.view.epoch, self.view.generation
        moved, facts = await self.store.load_async(epoch, asked, partial(read_facts, tuple(wanted)))
        if self.view.generation != generation:
            return
        found = {clock.zone: clock.revision for clock in moved.clocks}
        self.view.advance(moved, asked)
        at = {zone: found.get(zone, known) for zone, known in asked}
        self.view.merge(facts, zone_of={key: wanted.get(key, zones[-1]) for key in facts}, at=at)


def _settle(waiting: list[tuple[Zones, GateWaiter]], outcome: KnownRevisions | Exception) -> None:
    for _, waiter in waiting:
        if waiter.done():
            continue
        if isinstance(outcome, Exception):
            waiter.set_exception(outcome)
        else:
            waiter.set_result(outcome)
