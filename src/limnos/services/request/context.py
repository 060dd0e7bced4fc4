# SPDX-License-Identifier: Apache-2.0
"""Request context: the reads and writes of a request, with freshness gate, cache misses and stale permits.

Only this module retries; services are straight-line code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, TypeVar, cast

from msgspec.structs import replace

from limnos.access.actions import Action
from limnos.access.authentication import Credential
from limnos.model.audit import AuditedDecision, RequestOrigin, audit_context_text, audit_record
from limnos.model.errors import LocationTaken, MetalakeLockRequired, ServiceUnavailable, StalePermit
from limnos.model.kinds import ROOT_ID
from limnos.model.permits import Permit
from limnos.names import display
from limnos.names.path import Levels
from limnos.services.request.idempotency import IdempotentRequest
from limnos.services.request.node_services import AuditedRequest, ComponentKey, NodeServices
from limnos.services.request.request_scope import RequestScope, scope_zones
from limnos.services.request.request_view import RequestView
from limnos.store.backends.mutation_queue import Decided
from limnos.store.sql import Load, Query, Row
from limnos.store.tx import Tx
from limnos.telemetry.metrics import Counter
from limnos.view.cache_miss import CacheMiss

T = TypeVar("T")
D = TypeVar("D")
C = TypeVar("C")
READS_MAX = 100
CONFIRMATIONS_MAX = 5
"""The number of attempts of a read whose decision changes while it is executed."""
WRITES_FREE = 2
"""The number of attempts of a write before it takes the locks first."""
WRITES_MAX = 8
NameLocationHolder: TypeAlias = Callable[["Context", LocationTaken], Awaitable[LocationTaken]]


async def _leave_unnamed(_: Context, error: LocationTaken) -> LocationTaken:
    return error


LOCATION_HOLDERS: ComponentKey[NameLocationHolder] = ComponentKey("location_holders", lambda _: _leave_unnamed)
"""Adds the object that has a location to the error about it, if the caller may see the object."""
STALE_PERMITS = Counter("limnos_stale_permits_total", "Mutations decided again because access or a name moved.", ())


class Context:
    """One request: its caller, and its operations `read`, `read_confirmed` and `write`."""

    __slots__ = ("active", "audited_request", "credential", "once", "request_id", "services", "submitted")

    def __init__(
        self,
        services: NodeServices,
        credential: Credential,
        request_id: str,
        *,
        audited_request: AuditedRequest | None = None,
    ) -> None:
        self.services = services
        self.credential = credential
        self.request_id = request_id
        self.submitted = False
        self.once: IdempotentRequest | None = None
        """The request's idempotency key and fingerprint; None without a key."""
        self.audited_request = audited_request
        """The origin of the request, for the audit; None for the server's own work."""
        self.active: frozenset[str] | None = None
        """The names of the active roles, the only ones that count; None for every role that the caller has."""

    async def read(self, scope: RequestScope, reader: Callable[[RequestView], T], *, refuse_disabled: bool = True) -> T:
        """Run a reader on a request view that is a consistent snapshot of a moment after this call.

        The reader may use only zones that this request's freshness gate covered, and only if all cached facts of these
        zones belong to one snapshot. Otherwise the freshness gate is read again (rule 2).

        Args:
            scope: The scope of the request view.
            reader: A plain function over the request view. It runs again after each cache miss, so it must have no side
                effects.
            refuse_disabled: Whether a disabled user is refused.

        Returns:
            The result of the reader.

        Raises:
            ServiceUnavailable: The facts changed faster than they could be read. The errors of the reader are raised,
                too.
        """
        services = self.services
        gate, view = services.gate, services.view
        covered: tuple[int, ...] = ()
        reason, rounds, lease = "arrival", 0, None
        try:
            while rounds < READS_MAX:
                rounds += 1
                resolved_scope = view.scopes.get(scope)
                zones = scope_zones(view, scope) if resolved_scope is None else resolved_scope.zones
                if covered[: len(zones)] != zones or not view.is_paired(zones):
                    quiet = gate.inline and gate.refresh_now(zones, reason)
                    if not gate.inline:
                        await gate.refresh(zones, reason)
                    covered = zones
                    if not quiet:
                        is_same = resolved_scope is not None and view.scopes.get(scope) is resolved_scope
                        if not (is_same or scope_zones(view, scope) == zones) or not view.is_paired(zones):
                            reason = "unpaired"
                            continue
                reason = "resolved"
                try:
                    if refuse_disabled and self.active is None:  # by position: keyword arguments make this call slower
                        request_view = RequestView(services, scope, self.credential, self.request_id)
                    else:
                        request_view = RequestView(
                            services,
                            scope,
                            self.credential,
                            self.request_id,
                            refuse_disabled=refuse_disabled,
                            active=self.active,
                        )
                    request_view.audited_request = self.audited_request
                    if request_view.settled.zones == zones:
                        return reader(request_view)
                except CacheMiss as cold:
                    lease = view.lease() if lease is None else lease
                    await gate.fetch(zones, cold.missing_keys)
                    if cold.goes_on:
                        rounds -= 1
                        await asyncio.sleep(0)
        finally:
            if lease is not None:  # the lease kept this request's facts in memory, even beyond the budget
                view.release(lease)
        raise ServiceUnavailable("The data changed too often during the request: try again")

    def mark_decided(self) -> None:
        """Record that the request has decided on request views that it opened without `read`.

        No-op, except for a request that is only asked for its decision.
        """

    async def read_confirmed(
        self,
        scope: RequestScope,
        decide: Callable[[RequestView], D],
        *,
        work: Callable[[D], Awaitable[T]],
        identity: Callable[[D], object] = lambda decided: decided,
        first: D | None = None,
    ) -> tuple[D, T]:
        """Decide, read data that is not in the view, and decide again; start over if the decision has changed.

        For uncached rows, files, and answers of workers and external systems. Without the second decision a response
        could contain data from after the moment at which the caller lost the right to it.

        Args:
            scope: The scope of both request views.
            decide: Returns what was decided, such as the id of the object, or raises a refusal. It runs at least twice,
                or once with `first`.
            work: Reads the data for a decision. It must change nothing, since it may run several times.
            identity: The part of a decision that must be equal in both: ids and rights, not the records of objects,
                which change more often.
            first: An earlier decision of this request, which replaces the first call of `decide`.

        Returns:
            The later decision, and the data.

        Raises:
            ServiceUnavailable: The decision changed in every attempt. The errors of `decide` and `work` are raised,
                too; an error of `work` only if the decision is unchanged, so that it reveals nothing.
        """
        decided = await self.read(scope, decide) if first is None else first
        return await read_and_confirm(decided, lambda: self.read(scope, decide), work=work, identity=identity)

    async def look_up(self, load: Callable[[], Load[T]], *, aside: bool = False) -> T:
        """Read uncached data with several statements; `aside`: they may take longer than a few milliseconds.

        Data that an access decision covers is read inside of `read_confirmed`, which decides again afterwards. Without
        it, read only what every caller may see, the caller's own data, and immutable data found by the request view.
        """
        return await self.services.gate.look_up(load, aside=aside)

    async def find(self, query: Query) -> list[Row]:
        """Read uncached data with a single statement.

        On a remote database this takes a quarter of the time of `look_up`.
        """
        return await self.services.gate.find(query)

    async def submit(self, permit: Permit[C], mutation: Callable[[Tx, Permit[C]], T]) -> T:
        """Submit a mutation to the store.

        Sets `submitted` when the mutation begins. From then on a failure leaves the outcome unknown, unless the
        mutation was refused.
        """
        permit = self._with_audit_data(permit)
        return await self._await_write(
            self.services.store.submit(permit, self._bind(mutation, permit), on_begin=self._mark_submitted),
            is_told=permit.account is not None,
        )

    def without_key(self) -> Context:
        """Return a context of the same request for a change that is not the one which its idempotency key names."""
        if self.once is None:
            return self
        own_context = Context(self.services, self.credential, self.request_id, audited_request=self.audited_request)
        own_context.active = self.active
        return own_context

    def _with_audit_data(self, permit: Permit[C]) -> Permit[C]:
        """Add the data for the audit to the permit: the decisions behind it, and the origin of the request."""
        if not self._is_audited(permit):
            return permit
        origin = RequestOrigin() if self.audited_request is None else self.audited_request.origin()
        return replace(permit, account=audit_context_text(origin, permit.decisions, user_id=permit.actor_id))

    def _is_audited(self, permit: Permit[C]) -> bool:
        """Return whether a mutation is audited.

        Mutations of the server itself have no access decisions and are not audited.
        """
        return self.services.audit.rules.changes and bool(permit.decisions)

    def _bind(self, mutation: Callable[[Tx, Permit[C]], T], permit: Permit[C]) -> Callable[[Tx], T]:
        """Bind a mutation to its permit.

        With an idempotency key the mutation takes effect once, however often the request is repeated.
        """
        bound_mutation = partial(_run, mutation, permit)
        return bound_mutation if self.once is None else partial(self.once.run, bound_mutation)

    def audit_rows(self, target_id: int, path: Levels, *, kind: str, action: Action, user: str, detail: str) -> None:
        """Write an audit record about table rows in this request's response, even if reads are not audited."""
        origin = RequestOrigin() if self.audited_request is None else self.audited_request.origin()
        decisions = [] if self.audited_request is None else self.audited_request.decided or []
        own_rows = [AuditedDecision.of(each) for each in decisions if each.target_id == target_id]
        own_rows = ([each for each in own_rows if each.action == action.value] or own_rows)[-1:]
        metalake_id = next((each.revision[1][0] for each in decisions if len(each.revision) > 1), ROOT_ID)
        record = audit_record(
            AuditedDecision(action=action.value, object_id=target_id, kind=kind, name=display.render(path)),
            origin=origin,
            rights=tuple(own_rows),
            metalake_id=metalake_id,
            at=self.services.store.time.now_ms(),
            user=user,
            user_id=None if self.audited_request is None else self.audited_request.user_id,
            detail=detail,
            request_id=self.request_id,
            status=200,
        )
        self.services.audit.take([record])
        if self.audited_request is not None:
            self.audited_request.has_changed = True  # the request needs no audit record of its own

    def store_response(self, build_body: Callable[[dict[int, int]], bytes]) -> None:
        """Set a function that builds the response body inside the transaction, for a request with an idempotency key
        whose response cannot be rebuilt later.

        `build_body` receives the revisions, after the change, of the zones that it writes to.
        """
        if self.once is not None:
            self.once.answer = build_body

    async def _await_write(self, writing: Awaitable[T], *, is_told: bool) -> T:
        try:
            result = await writing
        except LocationTaken as error:
            self.submitted = False
            raise await LOCATION_HOLDERS.of(self.services)(self, error) from None
        except Exception:
            self.submitted = False
            raise
        if is_told and self.audited_request is not None:
            self.audited_request.has_changed = True
        return result

    def _mark_submitted(self) -> None:
        self.submitted = True

    async def write(
        self,
        scope: RequestScope,
        decide: Callable[[RequestView], Permit[C]],
        mutation: Callable[[Tx, Permit[C]], T],
        *,
        first: Permit[C] | None = None,
    ) -> T:
        """Decide, then run the mutation that the permit allows; start over if the permit is stale.

        A mutation that turns out to write to the metalake, too, starts over with the metalake's lock. After two stale
        permits the request decides while it holds the locks that keep permits from going stale (decision record 0019).

        Args:
            scope: The scope of the request view on which to decide.
            decide: Returns the permit, or raises a refusal. It may run several times.
            mutation: The function that runs in the store's transaction with the permit.
            first: A permit from an earlier decision of this request, which replaces the first call of `decide`.

        Returns:
            The result of the mutation.

        Raises:
            ServiceUnavailable: Every attempt met a stale permit; nothing was changed. Also raises the errors of
                `decide` and of the mutation.
        """
        return await self.write_decided(partial(self.read, scope, decide), mutation, first=first)

    async def write_decided(
        self,
        decide: Callable[[], Awaitable[Permit[C]]],
        mutation: Callable[[Tx, Permit[C]], T],
        *,
        first: Permit[C] | None = None,
    ) -> T:
        """Decide and run a mutation as `write` does, for decisions on request views that `decide` itself opens, such as
        those of several catalogs.
        """
        permit = await decide() if first is None else first
        for attempt in range(1, WRITES_MAX + 1):
            try:
                if attempt > WRITES_FREE:
                    return await self._write_held(decide, mutation, permit)
                return await self.submit(permit, mutation)
            except MetalakeLockRequired:
                decide = partial(_with_metalake, decide)
                permit = replace(permit, writes_metalake=True)
            except StalePermit:
                STALE_PERMITS[()] += 1
            if attempt != WRITES_FREE:  # the next attempt takes its locks from the stale permit, so do not decide here
                permit = await decide()
        raise ServiceUnavailable("Access or names changed while this was being written; nothing was changed: try again")

    async def _write_held(
        self,
        decide: Callable[[], Awaitable[Permit[C]]],
        mutation: Callable[[Tx, Permit[C]], T],
        stale: Permit[C],
    ) -> T:
        """Take the locks of the zones in the stale permit, then decide while holding them.

        Raises StalePermit if the new permit has other zones.
        """

        async def decide_again() -> Decided[T]:
            permit = self._with_audit_data(await decide())
            if permit.zones != stale.zones:
                raise StalePermit
            return permit, self._bind(mutation, permit)

        return await self._await_write(
            self.services.store.submit_held(stale, decide_again, on_begin=self._mark_submitted),
            is_told=self._is_audited(stale),
        )


async def _with_metalake(decide: Callable[[], Awaitable[Permit[C]]]) -> Permit[C]:
    """Decide, for a mutation of a catalog that writes to its metalake, too."""
    return replace(await decide(), writes_metalake=True)


async def read_and_confirm(
    decided: D,
    decide: Callable[[], Awaitable[D]],
    *,
    work: Callable[[D], Awaitable[T]],
    identity: Callable[[D], object],
) -> tuple[D, T]:
    """Read data for a decision that is already made, and decide again, as `Context.read_confirmed` does.

    For decisions that need more than one request view, such as those about several catalogs. `decide` makes the
    decision again.
    """
    for _ in range(CONFIRMATIONS_MAX):
        result, failure = None, None
        try:
            result = await work(decided)
        except Exception as error:  # noqa: BLE001 - raised below, if the caller still has the right
            failure = error
        current = await decide()
        if identity(current) == identity(decided):
            if failure is not None:
                raise failure
            return current, cast("T", result)
        decided = current
    raise ServiceUnavailable("Access or names changed while this was being read: try again", retry_after_s=1)


def _run(mutation: Callable[[Tx, Permit[C]], T], permit: Permit[C], tx: Tx) -> T:
    return mutation(tx, permit)
