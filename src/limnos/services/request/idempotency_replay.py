"""Requests that come again under their key: whose key it is, what became of the first, and whether its caller still may.

May import the rooms below. Knows no wire format and no operation. A repetition is decided as the request itself is, by
running the request on a context that ends it at its first decision.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

from limnos.access.actions import Action
from limnos.model.errors import (
    AuthenticationFailed,
    LimnosError,
    NotFound,
    NotInUse,
    PermissionDenied,
    ServiceUnavailable,
)
from limnos.model.permits import Permit
from limnos.names.errors import InvalidName
from limnos.services.request.context import Context
from limnos.services.request.idempotency import IdempotentRequest
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.per_key_queue import PerKeyQueue
from limnos.store.idempotency import IdempotencyKey, outcome_of, outcome_query

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limnos.services.request.request_view import RequestScope, RequestView
    from limnos.store.idempotency import RequestOutcome
    from limnos.store.tx import Tx

T = TypeVar("T")
C = TypeVar("C")
GRACE_MS = 300_000
"""So much longer than told to clients an outcome is kept: a request may be on its way for some time."""


class DecisionReached(Exception):
    """The request would be carried out: its caller may do it."""


class DecisionProbe(Context):
    """A context on which a request gets as far as its first decision and no further: nothing is built, written or changed."""

    __slots__ = ("looked",)

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx.services, ctx.credential, ctx.request_id)
        self.looked = False

    async def read(self, scope: RequestScope, reader: Callable[[RequestView], T], *, refuse_disabled: bool = True) -> T:
        """Read, decision and all, and end."""
        self.looked = True
        await super().read(scope, reader, refuse_disabled=refuse_disabled)
        raise DecisionReached

    async def write(
        self, scope: RequestScope, decide: Callable[[RequestView], Permit[C]], mutation: Callable[[Tx, Permit[C]], T], *,
        first: Permit[C] | None = None,
    ) -> T:  # fmt: skip
        """Decide, and end."""
        del mutation, first
        await self.read(scope, decide)
        raise AssertionError("a read of a probe does not return")

    async def submit(self, permit: Permit[C], mutation: Callable[[Tx, Permit[C]], T]) -> NoReturn:
        """End: there is a permit."""
        del permit, mutation
        raise DecisionReached


async def key_find(ctx: Context, scope: RequestScope, text: str) -> IdempotencyKey | None:
    """Say whose key it is, and on which zone's clock; None where there is no such place, or the caller is nobody there."""

    def read(request_view: RequestView) -> IdempotencyKey | None:
        if request_view.settled.catalog is None:
            return None
        user_id = request_view.subject.user_id
        return IdempotencyKey(
            request_view.zone, f"name {request_view.user}" if user_id is None else f"id {user_id}", text
        )

    try:
        return await ctx.read(scope, read)
    except (NotFound, PermissionDenied, AuthenticationFailed):
        return None


async def outcome_find(ctx: Context, once: IdempotentRequest) -> RequestOutcome | None:
    """Return what became of an earlier request with the key."""
    now_ms = ctx.services.store.time.now_ms()
    return outcome_of(await ctx.find(outcome_query(once.key, now_ms=now_ms)))


async def is_decided(ctx: Context, run: Callable[[Context], Awaitable[object]]) -> bool:
    """Decide on a request again; False when it was refused for itself, before anybody looked who asks.

    Raises Forbidden and its like for who may not do it (any more). What is missing, or in its way, is told to nobody but who
    may know: such a refusal is a decision in the caller's favour.
    """
    probe = DecisionProbe(ctx)
    try:
        await run(probe)
    except DecisionReached:
        return True
    except (PermissionDenied, AuthenticationFailed, NotInUse, ServiceUnavailable):
        raise
    except (LimnosError, InvalidName):
        return probe.looked
    return probe.looked


async def entry_decide(ctx: Context, scope: RequestScope) -> None:
    """Decide whether the caller may still use the catalog. Raises Forbidden, NotInUse."""

    def read(request_view: RequestView) -> None:
        request_view.require_in_use()
        request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)

    await ctx.read(scope, read)


async def refusal_keep(ctx: Context, once: IdempotentRequest, *, status: int, body: bytes) -> RequestOutcome | None:
    """Keep a refusal in a transaction of its own; returns what an earlier request with the key has left, if it was faster."""
    permit: Permit[None] = Permit(None, (), once.key.zone, (), "limnos", None, ctx.request_id)
    return await ctx.services.store.submit(permit, partial(IdempotentRequest.refuse, once, status=status, body=body))


KEY_QUEUE: ComponentKey[PerKeyQueue] = ComponentKey("key_lines", lambda _: PerKeyQueue())
