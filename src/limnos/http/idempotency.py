"""Requests with an `Idempotency-Key`: carried out once, and answered again however often they come.

May import `access`, `model`, `names`, `services`, `store`, `telemetry` and this package's shared modules. Knows no route: a protocol
says for which of its own a key counts, and how each is answered again. Wraps a handler; one whose request has no key is called as
if nothing were around it.
"""

from __future__ import annotations

import asyncio
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.http.response import Response
from limnos.model.errors import (
    AuthenticationFailed,
    BadRequest,
    KeyReused,
    LimnosError,
    NotFound,
    NotInUse,
    PermissionDenied,
    StateUnknown,
    TooManyAttempts,
)
from limnos.names.errors import InvalidName
from limnos.services.request.idempotency import IdempotentRequest, RepeatedRequest
from limnos.services.request.idempotency_replay import (
    GRACE_MS,
    KEY_QUEUE,
    entry_decide,
    is_decided,
    key_find,
    outcome_find,
    refusal_keep,
)
from limnos.services.request.table_formats import ExternalCatalogError
from limnos.telemetry.metrics import Counter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.http.routing import Route
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestScope
    from limnos.store.idempotency import RequestOutcome

    ReplayResponse = Callable[[Request, Context, int], Awaitable[Response]]
    """Makes an answer again from what is there, if that is still the object with the id; else NotFound."""

HEADER: Final = b"idempotency-key"
INLINE_BYTES_MAX: Final = 256 << 10
"""So much is hashed in less than a millisecond."""
_KEY: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_PASSING: Final = (ExternalCatalogError, PermissionDenied, NotInUse, TooManyAttempts, AuthenticationFailed)
"""Refusals that say who asks, what an administrator has switched off, or that it is another system's: they are decided again and never kept."""
REPEATS = Counter(
    "limnos_repeats_total", "Requests that came again under their key, by operation and how they were answered.",
    ("operation", "outcome"),
)  # fmt: skip


class IdempotentRoute(NamedTuple):
    """How a route's requests with a key are answered again.

    `shown` makes the answer from what is there; without it the answer has the body that was kept, or none. `has_files`: the
    client has written files for it and deletes them when it is refused, so once it was carried out it is never refused.
    `ends_rights`: the rights to it may hang on what it takes away, so a repetition by the same caller is not decided by them.
    """

    status: int = 204
    shown: ReplayResponse | None = None
    has_files: bool = False
    ends_rights: bool = False


class IdempotencyTerms(NamedTuple):
    """What a protocol says of its routes: where a request is about, and how a failure is spelled."""

    scope_of: Callable[[Request, Context], RequestScope]
    error: Callable[[LimnosError | InvalidName, Request, str], Response]


def make_idempotent(route: Route[Handler], keyed: IdempotentRoute, terms: IdempotencyTerms) -> Route[Handler]:
    """Return the route with keys looked at."""
    plan, handler = _IdempotentHandler(route, keyed, terms), route.handler

    def handle(request: Request, ctx: Context) -> Awaitable[Response]:
        sent = request.headers.get(HEADER)
        if sent is None or not ctx.services.defaults.idempotency_s:
            return handler(request, ctx)
        return plan.answer(request, ctx, sent)

    return route._replace(handler=handle)


def key_of(sent: bytes) -> str:
    """Read a key. Raises BadRequest."""
    text = sent.strip().lower()
    if _KEY.fullmatch(text) is None:
        shown = sent[:50].decode("latin-1")
        raise BadRequest(
            f"Idempotency-Key is '{shown}', which is no UUID of version 7: send one, in its form of 36 characters, or none"
        )
    return text.decode()


async def fingerprint_of(request: Request, data: bytes) -> bytes:
    """Tell a request from every other one: method, address and body as they were sent. A large body is no work for the loop."""
    found = blake2b(b"%s %s?%s\n" % (request.method.encode(), request.path, request.query_string), digest_size=16)
    if len(data) <= INLINE_BYTES_MAX:
        found.update(data)
    else:
        await asyncio.to_thread(found.update, data)
    return found.digest()


class _IdempotentHandler:
    """A route whose requests may have keys."""

    def __init__(self, route: Route[Handler], keyed: IdempotentRoute, terms: IdempotencyTerms) -> None:
        self.route = route
        self.keyed = keyed
        self.terms = terms

    async def answer(self, request: Request, ctx: Context, sent: bytes) -> Response:
        """Carry a request out, or answer it again."""
        text = key_of(sent)
        data = await request.body()
        key = await key_find(ctx, self.terms.scope_of(request, ctx), text)
        if key is None:  # there is nothing to be done once: it is refused, in the words that it gets without a key
            return await self.route.handler(request, ctx)
        lifetime_ms = ctx.services.defaults.idempotency_s * 1000 + GRACE_MS
        once = IdempotentRequest(
            key, await fingerprint_of(request, data), operation=self.route.operation, status=self.keyed.status, lifetime_ms=lifetime_ms
        )  # fmt: skip
        ctx.submitted = True  # an earlier one may be under way: who comes too late is not told that nothing was done
        async with KEY_QUEUE.of(ctx.services).turn(hash(key)):
            found = await outcome_find(ctx, once)
            if found is None:
                ctx.submitted = False
                try:
                    return await self._first(request, ctx, once)
                except RepeatedRequest as repeated:
                    found = repeated.outcome
                    ctx.submitted = True
            self._require_same(once, found)
            await self._decide_again(request, ctx, found)
            return await self._again(request, ctx, found)

    async def _first(self, request: Request, ctx: Context, once: IdempotentRequest) -> Response:
        """Carry a request out. A refusal that would be the same another time is kept before it is told.

        Raises Repeated when another node carried it out, or kept a refusal, meanwhile: what is refused may be its doing.
        """
        ctx.once = once
        try:
            return await self.route.handler(request, ctx)
        except (LimnosError, InvalidName) as error:
            found = await self._refused(request, ctx, once, error)
            if found is None:
                raise
        raise RepeatedRequest(found)

    async def _refused(
        self, request: Request, ctx: Context, once: IdempotentRequest, error: LimnosError | InvalidName
    ) -> RequestOutcome | None:
        """Keep a refusal if it is one to be kept; returns what was kept before."""
        if isinstance(error, _PASSING):
            return await outcome_find(ctx, once)
        refusal = self.terms.error(error, request, self.route.operation)
        if not 400 <= refusal.status < 500:
            return None
        if not await is_decided(ctx, lambda probe: self.route.handler(request, probe)):
            return None
        return await refusal_keep(ctx, once, status=refusal.status, body=refusal.body)

    def _require_same(self, once: IdempotentRequest, found: RequestOutcome) -> None:
        if found.fingerprint != once.fingerprint:
            REPEATS[self.route.operation, "reused"] += 1
            raise KeyReused(
                f"Idempotency-Key {once.key.text} was used for another request ({found.operation}): nothing was done now. "
                "Use a new key for each request, and the same one only to repeat it as it was"
            )

    async def _decide_again(self, request: Request, ctx: Context, found: RequestOutcome) -> None:
        """Refuse who may not do it any more.

        What was done and has no body shows nothing, and the rights to it may have hung on what it took away: then it is enough
        that its caller may still use the catalog.
        """
        try:
            if found.status == 204 or self.keyed.ends_rights:
                await entry_decide(ctx, self.terms.scope_of(request, ctx))
            else:
                await is_decided(ctx, lambda probe: self.route.handler(request, probe))
        except _PASSING as error:
            REPEATS[self.route.operation, "forbidden"] += 1
            raise self._kept_secret(found, error) from error

    async def _again(self, request: Request, ctx: Context, found: RequestOutcome) -> Response:
        """Answer as the first time, but with what is there now."""
        REPEATS[self.route.operation, "answered"] += 1
        if found.status >= 400 or found.body is not None:
            return Response(found.status, found.body or b"")
        if self.keyed.shown is None:
            return Response(found.status, b"", ())
        try:
            return await self.keyed.shown(request, ctx, found.object_id or 0)
        except (NotFound, *_PASSING) as error:
            raise self._kept_secret(found, error) from error

    def _kept_secret(self, found: RequestOutcome, error: LimnosError) -> LimnosError:
        """Tell a caller from whom the outcome is withheld. Who would delete files that a snapshot needs is not refused."""
        if self.keyed.has_files and found.status < 400:
            return StateUnknown(
                "This change was made under its Idempotency-Key; what it led to can't be shown any more, so keep its files "
                f"({error})"
            )
        return error
