"""How a request reads and writes: gate, scene, cold reads, permits that went stale.

May import `telemetry`, `access`, `view`, `store` and `model`. This is the only place that loops; services are
straight lines.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from limnos.model.audit import RequestOrigin, audit_context_text
from limnos.model.errors import ServiceUnavailable, StalePermit
from limnos.services.request.request_view import RequestScope, RequestView, scope_zones
from limnos.telemetry.metrics import Counter
from limnos.view.cache_miss import CacheMiss

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limnos.access.authentication import Credential
    from limnos.model.permits import Permit
    from limnos.services.request.idempotency import IdempotentRequest
    from limnos.services.request.node_services import AuditedRequest, NodeServices
    from limnos.store.mutation_queue import Decided
    from limnos.store.sql import Load, Query, Row
    from limnos.store.tx import Tx

T = TypeVar("T")
C = TypeVar("C")
READS_MAX = 100
WRITES_FREE = 2
"""How often a write is tried before it takes the locks first."""
WRITES_MAX = 8
STALE_PERMITS = Counter("limnos_stale_permits_total", "Mutations decided again because access or a name moved.", ())


class Context:
    """One request: who asks, and the two ways to do something."""

    __slots__ = ("active", "asker", "credential", "once", "request_id", "services", "submitted")

    def __init__(
        self, services: NodeServices, credential: Credential, request_id: str, *, asker: AuditedRequest | None = None
    ) -> None:  # fmt: skip
        self.services = services
        self.credential = credential
        self.request_id = request_id
        self.submitted = False
        self.once: IdempotentRequest | None = None
        """What the request is if it has a key."""
        self.asker = asker
        """What the audit is told of; None for what the server asks by itself."""
        self.active: frozenset[str] | None = None
        """The names of the roles that alone may allow anything; None for every role that the caller holds."""

    async def read(self, scope: RequestScope, reader: Callable[[RequestView], T], *, refuse_disabled: bool = True) -> T:
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
                settled = view.scopes.get(scope)
                zones = scope_zones(view, scope) if settled is None else settled.zones
                if covered[: len(zones)] != zones or not view.is_paired(zones):
                    quiet = gate.inline and gate.ask_now(zones, reason)
                    if not gate.inline:
                        await gate.ask(zones, reason)
                    covered = zones
                    if not quiet:
                        is_same = settled is not None and view.scopes.get(scope) is settled
                        if not (is_same or scope_zones(view, scope) == zones) or not view.is_paired(zones):
                            reason = "unpaired"
                            continue
                reason = "resolved"
                try:
                    if refuse_disabled and self.active is None:  # by position: a class is dearer to call by name
                        request_view = RequestView(services, scope, self.credential, self.request_id)
                    else:
                        request_view = RequestView(
                            services, scope, self.credential, self.request_id, refuse_disabled=refuse_disabled,
                            active=self.active,
                        )  # fmt: skip
                    request_view.asker = self.asker
                    if request_view.settled.zones == zones:
                        return reader(request_view)
                except CacheMiss as cold:
                    lease = view.lease() if lease is None else lease
                    await gate.fetch(zones, cold.wanted)
                    if cold.goes_on:
                        rounds -= 1
                        await asyncio.sleep(0)
        finally:
            if lease is not None:  # what this request gathered was kept until now, over the budget or not
                view.release(lease)
        raise ServiceUnavailable("The answer changed faster than it could be read: try again")

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
        origin = RequestOrigin() if self.asker is None else self.asker.origin()
        return replace(permit, account=audit_context_text(origin, permit.decisions, user_id=permit.actor_id))

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
        scope: RequestScope,
        decide: Callable[[RequestView], Permit[C]],
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
        raise ServiceUnavailable("Access or names changed while this was being written; nothing was changed: try again")

    async def _write_held(
        self,
        scope: RequestScope,
        decide: Callable[[RequestView], Permit[C]],
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
