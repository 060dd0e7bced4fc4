"""How a request reads and writes: gate, scene, cold reads, permits that went stale.

May import `telemetry`, `access`, `view`, `store` and `model`. This is the only place that loops; services are
straight lines.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from typing import Protocol as Interface

from msgspec.structs import replace

from limnos.model.audit import Origin, account_text
from limnos.model.errors import StalePermit, Unavailable
from limnos.services.audit_lines import AuditLines
from limnos.services.chores import OwnChores
from limnos.services.credentials import Vendor
from limnos.services.hashing import Hashing, Tries
from limnos.services.issuer import NoIssuer
from limnos.services.job_rules import JobRules
from limnos.services.joint import Joint
from limnos.services.lance_descriptions import Descriptions
from limnos.services.lance_work import NoWorkers
from limnos.services.lines import Lines
from limnos.services.recent import RecentMetadata
from limnos.services.reports import Reports
from limnos.services.scan_flights import Flights
from limnos.services.scan_turns import NoTurns, ScanTurns
from limnos.services.scene import Scene, Scope, zones_now
from limnos.services.snapshot_pins import PlanPins
from limnos.services.sources import Sources, no_sources
from limnos.services.sqlpp_engine import NoEngine
from limnos.services.sqlpp_locking import Locks
from limnos.services.sqlpp_requests import Requests
from limnos.services.watch import Watch
from limnos.telemetry.metrics import Counter
from limnos.view.cold import Cold

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limnos.access.authentication import Authenticator, Credential
    from limnos.model.decisions import Decision
    from limnos.model.permits import Permit
    from limnos.services.chores import Chores
    from limnos.services.defaults import Defaults, Rules
    from limnos.services.files import Files
    from limnos.services.issuer import Issuer
    from limnos.services.lance_work import LanceWorkers
    from limnos.services.once import Once
    from limnos.services.sqlpp_engine import Engine
    from limnos.store.interface import Store
    from limnos.store.jobs import Decided
    from limnos.store.sql import Load, Query, Row
    from limnos.store.tx import Tx
    from limnos.view.gate import Gate

T = TypeVar("T")
C = TypeVar("C")
READS_MAX = 100
GATHERING_MAX = 4
"""Queries at once that gather objects of SQL++'s metadata; one statement at once that is no query is parsed by a thread."""
WRITES_FREE = 2
"""How often a write is tried before it takes the locks first."""
WRITES_MAX = 8
STALE_PERMITS = Counter("limnos_stale_permits_total", "Mutations decided again because access or a name moved.", ())


class Services:
    """What every request shares: the store, the gate before the view, files and rules."""

    scan_turns: ScanTurns

    def __init__(
        self,
        *,
        store: Store,
        gate: Gate,
        rules: Rules,
        authenticator: Authenticator,
        defaults: Defaults,
        files: Files,
        wake_worker: Callable[[], None],
        chores: Chores | None = None,
        lance: LanceWorkers | None = None,
        engine: Engine | None = None,
        sqlpp_chores: Chores | None = None,
        scan_chores: Chores | None = None,
        vendor: Vendor | None = None,
        sources: Sources | None = None,
        issuer: Issuer | None = None,
        wake_deliveries: Callable[[], object] = lambda: None,
        job_rules: JobRules | None = None,
    ) -> None:
        self.store = store
        self.gate, self.view = gate, gate.view
        self.rules, self.authenticator = rules, authenticator
        self.defaults, self.files = defaults, files
        self.wake_worker, self.wake_deliveries = wake_worker, wake_deliveries
        self.job_rules = JobRules() if job_rules is None else job_rules
        """What jobs of its own this server runs."""
        self.wake_executor: Callable[[], object] = lambda: None
        self.chores: Chores = OwnChores() if chores is None else chores
        self.lance: LanceWorkers = NoWorkers() if lance is None else lance
        self.descriptions = Descriptions(files.mark_now)
        """Of Lance tables."""
        self.joint, self.restricted_joint = Joint(), Joint()
        """What many ask at once: of Lance tables, and for files of restricted readers."""
        self.vendor: Vendor = Vendor(timeout_s=20.0, time=store.time) if vendor is None else vendor
        """Of credentials for tables' files."""
        self.sources = no_sources() if sources is None else sources
        """Outside systems that catalogs show."""
        self.engine: Engine = NoEngine() if engine is None else engine
        self.sqlpp_chores: Chores = OwnChores() if sqlpp_chores is None else sqlpp_chores
        self.sqlpp_parsing, self.sqlpp_gathering = asyncio.Semaphore(1), asyncio.Semaphore(GATHERING_MAX)
        """Of their own, so that a long query holds up no commit."""
        self.scan_chores: Chores = scan_chores or OwnChores()
        self.scan_turns, self.scan_flights, self.plan_pins = NoTurns(), Flights(), PlanPins()
        self.sqlpp_requests = Requests(gate, store)
        self.recent, self.lines, self.added_files_turns = RecentMetadata(), Lines(), asyncio.Semaphore(4)
        self.audit = AuditLines(store, gate, rules=defaults.audit)
        self.reports = Reports(store, keep_ms=defaults.keep_reports_ms, sample=defaults.reports_sample)
        self.repeats = Lines()  # of requests with the same key
        self.watch = Watch(gate, store)
        self.issuer: Issuer = NoIssuer() if issuer is None else issuer
        """Of tokens from outside."""
        self.signing_in = Lines()  # of requests that bring the same token of an issuer for the first time
        self.hashing = Hashing()
        """Of passwords."""
        self.tries = Tries()
        self.tended: dict[int, int] = {}
        """Until when debris of a dataset is looked after by a task that is on the list, by the table's id."""
        self.locks = Locks(gate, store)  # of SQL++ statements


class Asker(Interface):
    """A request as the audit wants it: where it came from, what was decided for it, and whether it changed anything."""

    decided: list[Decision] | None
    """What was decided in this request so far; None where nobody wants to know."""
    user_id: int | None
    has_changed: bool

    def origin(self) -> Origin:
        """Say where it came from."""
        ...


class Context:
    """One request: who asks, and the two ways to do something."""

    __slots__ = ("active", "asker", "credential", "once", "request_id", "services", "submitted")

    def __init__(
        self, services: Services, credential: Credential, request_id: str, *, asker: Asker | None = None
    ) -> None:  # fmt: skip
        self.services = services
        self.credential = credential
        self.request_id = request_id
        self.submitted = False
        self.once: Once | None = None
        """What the request is if it has a key."""
        self.asker = asker
        """What the audit is told of; None for what the server asks by itself."""
        self.active: frozenset[str] | None = None
        """The names of the roles that alone may allow anything; None for every role that the caller holds."""

    @property
    def locks(self) -> Locks:
        """Locks of SQL++ statements on this node."""
        return self.services.locks

    async def read(self, scope: Scope, reader: Callable[[Scene], T], *, refuse_disabled: bool = True) -> T:
        """Run a reader on a scene that is true at some moment after this call.

        It decides only in zones that its own gate covered, and only when all it knows of them was seen in one
        snapshot; otherwise it asks again (rule 2).
        """
        services = self.services
        gate, view = services.gate, services.view
        covered: tuple[int, ...] = ()
        reason, rounds, lease = "arrival", 0, None
        try:
            while rounds < READS_MAX:
                rounds += 1
                zones = zones_now(view, scope)
                if covered[: len(zones)] != zones or not view.is_paired(zones):
                    quiet = gate.inline and gate.ask_now(zones, reason)
                    if not gate.inline:
                        await gate.ask(zones, reason)
                    covered = zones
                    if not quiet and (zones_now(view, scope) != zones or not view.is_paired(zones)):
                        reason = "unpaired"
                        continue
                reason = "resolved"
                try:
                    if refuse_disabled and self.active is None:  # by position: a class is dearer to call by name
                        scene = Scene(services, scope, self.credential, self.request_id)
                    else:
                        scene = Scene(
                            services, scope, self.credential, self.request_id, refuse_disabled=refuse_disabled,
                            active=self.active,
                        )  # fmt: skip
                    scene.asker = self.asker
                    if scene.settled.zones == zones:
                        return reader(scene)
                except Cold as cold:
                    lease = view.lease() if lease is None else lease
                    await gate.fetch(zones, cold.wanted)
                    if cold.goes_on:
                        rounds -= 1
                        await asyncio.sleep(0)
        finally:
            if lease is not None:  # what this request gathered was kept until now, over the budget or not
                view.release(lease)
        raise Unavailable("The answer changed faster than it could be read: try again")

    async def look_up(self, load: Callable[[], Load[T]]) -> T:
        """Read what no decision rests on and nothing caches, such as the names of the objects in a role."""
        return await self.services.gate.look_up(load)

    async def find(self, query: Query) -> list[Row]:
        """Read the same by a single statement, which costs a quarter of a snapshot where the database is elsewhere."""
        return await self.services.gate.find(query)

    async def submit(self, permit: Permit[C], mutation: Callable[[Tx, Permit[C]], T]) -> T:
        """Hand a mutation to the store. Once it has begun, unless it is refused, nobody can say that nothing was changed."""
        permit = self._accounted(permit)
        return await self._submitted(
            self.services.store.submit(permit, self._bound(mutation, permit), begun=self._begun),
            is_told=permit.account is not None,
        )

    def _accounted(self, permit: Permit[C]) -> Permit[C]:
        """Have the mutation's transaction keep by which right it was made, and where the request came from."""
        if not self._is_told(permit):
            return permit
        origin = Origin() if self.asker is None else self.asker.origin()
        return replace(permit, account=account_text(origin, permit.decisions, user_id=permit.actor_id))

    def _is_told(self, permit: Permit[C]) -> bool:
        """Say whether a mutation leaves a line: what the server does by its own right leaves none with a right."""
        return self.services.audit.rules.changes and bool(permit.decisions)

    def _bound(self, mutation: Callable[[Tx, Permit[C]], T], permit: Permit[C]) -> Callable[[Tx], T]:
        """Bind a mutation to its permit; that of a request with a key is carried out once, whatever is repeated."""
        bound = partial(_run, mutation, permit)
        return bound if self.once is None else partial(self.once.run, bound)

    def keep_answer(self, answer: Callable[[int], bytes]) -> None:
        """Say how the answer's body is made within the transaction, if a request with a key can't have it made again later.

        `answer` takes the revision after the change.
        """
        if self.once is not None:
            self.once.answer = answer

    async def _submitted(self, writing: Awaitable[T], *, is_told: bool) -> T:
        try:
            result = await writing
        except Exception:
            self.submitted = False
            raise
        if is_told and self.asker is not None:
            self.asker.has_changed = True
        return result

    def _begun(self) -> None:
        self.submitted = True

    async def write(
        self,
        scope: Scope,
        decide: Callable[[Scene], Permit[C]],
        mutation: Callable[[Tx, Permit[C]], T],
        *,
        first: Permit[C] | None = None,
    ) -> T:
        """Decide, then run the mutation that the permit allows; again from the start when the permit went stale.

        Whose permit went stale again and again decides while the locks are held that hold back what makes permits stale
        (decision record 0019). `first` is a permit that the caller has already, from a decision a moment ago.
        """
        permit = await self.read(scope, decide) if first is None else first
        for attempt in range(1, WRITES_MAX + 1):
            try:
                if attempt > WRITES_FREE:
                    return await self._write_held(scope, decide, mutation, permit)
                return await self.submit(permit, mutation)
            except StalePermit:
                STALE_PERMITS[()] += 1
            if attempt != WRITES_FREE:  # whose locks come next are known from the permit that went stale
                permit = await self.read(scope, decide)
        raise Unavailable("Access or names changed while this was being written; nothing was changed: try again")

    async def _write_held(
        self,
        scope: Scope,
        decide: Callable[[Scene], Permit[C]],
        mutation: Callable[[Tx, Permit[C]], T],
        stale: Permit[C],
    ) -> T:
        """Let the store take the locks that a permit names, and only then decide. Raises StalePermit when it names others."""

        async def again() -> Decided[T]:
            permit = self._accounted(await self.read(scope, decide))
            if permit.zones != stale.zones:
                raise StalePermit
            return permit, self._bound(mutation, permit)

        return await self._submitted(
            self.services.store.submit_held(stale, again, begun=self._begun), is_told=self._is_told(stale)
        )


def _run(mutation: Callable[[Tx, Permit[C]], T], permit: Permit[C], tx: Tx) -> T:
    return mutation(tx, permit)
