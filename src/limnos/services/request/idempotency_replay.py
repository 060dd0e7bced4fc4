# SPDX-License-Identifier: Apache-2.0
"""Idempotency replay: finds the outcome of an earlier request with the same key, and checks the caller's current rights
before it is returned.

Must not know any wire format or operation. To check a repeated request, it is run on a context that stops at the first
access decision.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NoReturn, TypeVar

from limnos.access.actions import Action
from limnos.model import errors
from limnos.model.permits import Permit
from limnos.services.request.concurrency.per_key_queue import PerKeyQueue
from limnos.services.request.context import Context
from limnos.services.request.idempotency import IdempotentRequest
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.idempotency import IdempotencyKey, RequestOutcome, outcome_of, outcome_query
from limnos.store.tx import Tx

T = TypeVar("T")
C = TypeVar("C")
GRACE_MS = 300_000
"""The additional retention time of an outcome, in milliseconds, for repeated requests that are already in transit.
"""


class DecisionReached(Exception):
    """Raised to stop a probed request after its access decision, which has allowed it."""


class DecisionProbe(Context):
    """A context that stops a request at its first decision: the request builds, writes and changes nothing."""

    __slots__ = ("looked",)

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx.services, ctx.credential, ctx.request_id)
        self.looked = False

    async def read(self, scope: RequestScope, reader: Callable[[RequestView], T], *, refuse_disabled: bool = True) -> T:
        """Run the reader with its decisions, then stop. Raises DecisionReached, or the errors of the reader."""
        self.looked = True
        await super().read(scope, reader, refuse_disabled=refuse_disabled)
        raise DecisionReached

    def mark_decided(self) -> NoReturn:
        """Raise DecisionReached: the request has made its decision on request views of its own."""
        self.looked = True
        raise DecisionReached

    async def write_decided(
        self,
        decide: Callable[[], Awaitable[Permit[C]]],
        mutation: Callable[[Tx, Permit[C]], T],
        *,
        first: Permit[C] | None = None,
    ) -> T:
        """Decide, then stop. Raises DecisionReached, or the errors of `decide`."""
        del mutation, first
        await decide()
        self.mark_decided()

    async def submit(self, permit: Permit[C], mutation: Callable[[Tx, Permit[C]], T]) -> NoReturn:
        """Raise DecisionReached: the request already has a permit, so its decision was made."""
        del permit, mutation
        raise DecisionReached


async def key_find(ctx: Context, scope: RequestScope, text: str) -> IdempotencyKey | None:
    """Return the full idempotency key: the client's key `text`, the caller, and the catalog's zone; for a request on
    several catalogs, the metalake's zone.

    Returns None if the scope names no existing catalog or metalake, or if the caller has no access to it.
    """

    def read(request_view: RequestView) -> IdempotencyKey | None:
        if request_view.settled.catalog is None and (
            scope.catalog is not None or request_view.settled.metalake is None
        ):
            return None
        user_id = request_view.subject.user_id
        return IdempotencyKey(
            request_view.zone, f"name {request_view.user}" if user_id is None else f"id {user_id}", text
        )

    try:
        return await ctx.read(scope, read)
    except (errors.NotFound, errors.PermissionDenied, errors.AuthenticationFailed):
        return None


async def outcome_find(ctx: Context, once: IdempotentRequest) -> RequestOutcome | None:
    """Return the outcome of an earlier request with the key; None if there is none."""
    now_ms = ctx.services.store.time.now_ms()
    return outcome_of(await ctx.find(outcome_query(once.key, now_ms=now_ms)))


async def is_decided(ctx: Context, run: Callable[[Context], Awaitable[object]]) -> bool:
    """Check the caller's current access for a repeated request.

    Returns False if the request was refused as invalid before any access check. A missing or conflicting object counts
    as allowed: only a caller with rights on the object gets such an error. Raises PermissionDenied,
    AuthenticationFailed, NotInUse and ServiceUnavailable as the request itself does.
    """
    probe = DecisionProbe(ctx)
    try:
        await run(probe)
    except DecisionReached:
        return True
    except (errors.PermissionDenied, errors.AuthenticationFailed, errors.NotInUse, errors.ServiceUnavailable):
        raise
    except errors.LimnosError:
        return probe.looked
    return probe.looked


async def entry_decide(ctx: Context, scope: RequestScope) -> None:
    """Check that the caller may still use the catalog.

    Raises PermissionDenied if not, NotInUse if the catalog is disabled.
    """

    def read(request_view: RequestView) -> None:
        request_view.require_in_use()
        request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)

    await ctx.read(scope, read)


async def refusal_keep(ctx: Context, once: IdempotentRequest, *, status: int, body: bytes) -> RequestOutcome | None:
    """Store a refusal in a separate transaction.

    Returns the outcome of an earlier request with the key if that committed first; None if the refusal was stored.
    """
    permit: Permit[None] = Permit(
        command=None,
        decisions=(),
        zone=once.key.zone,
        stamps=(),
        actor="limnos",
        actor_id=None,
        request_id=ctx.request_id,
    )
    return await ctx.services.store.submit(permit, partial(IdempotentRequest.refuse, once, status=status, body=body))


KEY_QUEUE: ComponentKey[PerKeyQueue] = ComponentKey("key_lines", lambda _: PerKeyQueue())
