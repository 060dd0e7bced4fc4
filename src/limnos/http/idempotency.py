# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys: a request with an `Idempotency-Key` is executed once, and repetitions get the same response.

Must not know routes: a protocol defines the routes that accept a key, and their responses to repetitions.
`make_idempotent` wraps a handler; a request without a key goes to the handler directly.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
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
from limnos.services.request import idempotency_replay
from limnos.services.request.context import Context
from limnos.services.request.idempotency import IdempotentRequest, RepeatedRequest
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.table_formats import ExternalCatalogError
from limnos.store.idempotency import RequestOutcome
from limnos.telemetry.metrics import Counter

ReplayResponse = Callable[[Request, Context, int], Awaitable[Response]]
"""Builds the response to a repetition from the current state of the object with this id.

Raises NotFound if it no longer exists.
"""

HEADER: Final = b"idempotency-key"
INLINE_BYTES_MAX: Final = 256 << 10
"""The size in bytes up to which a body is hashed on the event loop, in less than a millisecond."""
_KEY: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_PASSING: Final = (ExternalCatalogError, PermissionDenied, NotInUse, TooManyAttempts, AuthenticationFailed)
"""Refusals that depend on the caller, on a disabled object, or on an external system.

They are decided again at a repetition, and never stored.
"""
REPEATS = Counter(
    "limnos_repeats_total",
    "Requests repeated with the same idempotency key, by operation and kind of answer.",
    ("operation", "outcome"),
)


class IdempotentRoute(NamedTuple):
    """The options of a route that supports idempotency keys: how it answers a repeated request.

    - `replay` builds the answer from the current state. If it is None, the answer has the stored body, or none.
    - `has_files`: the client wrote files for the request and deletes them on a refusal. So a repetition of a request
      that was executed is never refused.
    - `ends_rights`: the rights to the request may depend on the deleted object, so they are not checked for a
      repetition by the same caller.
    """

    status: int = 204
    replay: ReplayResponse | None = None
    has_files: bool = False
    ends_rights: bool = False


class IdempotencyTerms(NamedTuple):
    """Functions of a protocol: the scope of a request, and the response for an error."""

    scope_of: Callable[[Request, Context], RequestScope]
    error: Callable[[LimnosError, Request, str], Response]


def make_idempotent(route: Route[Handler], keyed: IdempotentRoute, terms: IdempotencyTerms) -> Route[Handler]:
    """Return the route with support for idempotency keys."""
    plan, handler = _IdempotentHandler(route, keyed, terms), route.handler

    def handle(request: Request, ctx: Context) -> Coroutine[Any, Any, Response]:
        sent_key = request.headers.get(HEADER)
        if sent_key is None or not ctx.services.defaults.idempotency_s:
            return handler(request, ctx)
        return plan.answer(request, ctx, sent_key)

    return route._replace(handler=handle)


def key_of(sent: bytes) -> str:
    """Parse the value of an `Idempotency-Key` header. Raises BadRequest if it is not a UUID of version 7."""
    text = sent.strip().lower()
    if _KEY.fullmatch(text) is None:
        rendered = sent[:50].decode("latin-1")
        raise BadRequest(
            f"Idempotency-Key is '{rendered}', which is not a UUID of version 7: send one, in its form of 36"
            " characters, or none"
        )
    return text.decode()


async def fingerprint_of(request: Request, data: bytes) -> bytes:
    """Return a hash of method, URL and body as the client sent them. A large body is hashed in a thread."""
    digest = blake2b(b"%s %s?%s\n" % (request.method.encode(), request.path, request.query_string), digest_size=16)
    if len(data) <= INLINE_BYTES_MAX:
        digest.update(data)
    else:
        await asyncio.to_thread(digest.update, data)
    return digest.digest()


class _IdempotentHandler:
    """The handler of a route whose requests may have idempotency keys."""

    def __init__(self, route: Route[Handler], keyed: IdempotentRoute, terms: IdempotencyTerms) -> None:
        self.route = route
        self.keyed = keyed
        self.terms = terms

    async def answer(self, request: Request, ctx: Context, sent: bytes) -> Response:
        """Execute a request with the idempotency key `sent`.

        If the key was used before, check the caller's access again and replay the response. Raises BadRequest for a
        malformed key, KeyReused if the earlier request with the key was a different one.
        """
        text = key_of(sent)
        data = await request.body()
        key = await idempotency_replay.key_find(ctx, self.terms.scope_of(request, ctx), text)
        if key is None:  # no such catalog, or no access: the handler refuses it as without a key
            return await self.route.handler(request, ctx)
        lifetime_ms = ctx.services.defaults.idempotency_s * 1000 + idempotency_replay.GRACE_MS
        once = IdempotentRequest(
            key,
            await fingerprint_of(request, data),
            operation=self.route.operation,
            status=self.keyed.status,
            lifetime_ms=lifetime_ms,
        )
        ctx.submitted = True  # the same request may be running already, so after a timeout the outcome is unknown
        async with idempotency_replay.KEY_QUEUE.of(ctx.services).turn(hash(key)):
            outcome = await idempotency_replay.outcome_find(ctx, once)
            if outcome is None:
                ctx.submitted = False
                try:
                    return await self._first(request, ctx, once)
                except RepeatedRequest as repeated:
                    outcome = repeated.outcome
                    ctx.submitted = True
            self._require_same(once, outcome)
            await self._decide_again(request, ctx, outcome)
            return await self._again(request, ctx, outcome)

    async def _first(self, request: Request, ctx: Context, once: IdempotentRequest) -> Response:
        """Execute a request for the first time.

        A refusal that a repetition would get, too, is stored before it is sent. Raises RepeatedRequest if another node
        has executed the request or stored a refusal concurrently.
        """
        ctx.once = once
        try:
            return await self.route.handler(request, ctx)
        except LimnosError as error:
            outcome = await self._store_refusal(request, ctx, once, error)
            if outcome is None:
                raise
        raise RepeatedRequest(outcome)

    async def _store_refusal(
        self, request: Request, ctx: Context, once: IdempotentRequest, error: LimnosError
    ) -> RequestOutcome | None:
        """Store a refusal, unless it depends on the caller or on temporary conditions. Returns the outcome that another
        request with the key has stored before, or None.
        """
        if isinstance(error, _PASSING):
            return await idempotency_replay.outcome_find(ctx, once)
        refusal = self.terms.error(error, request, self.route.operation)
        if not 400 <= refusal.status < 500:
            return None
        if not await idempotency_replay.is_decided(ctx, lambda probe: self.route.handler(request, probe)):
            return None
        return await idempotency_replay.refusal_keep(ctx, once, status=refusal.status, body=refusal.body)

    def _require_same(self, once: IdempotentRequest, outcome: RequestOutcome) -> None:
        if outcome.fingerprint != once.fingerprint:
            REPEATS[self.route.operation, "reused"] += 1
            raise KeyReused(
                f"Idempotency-Key {once.key.text} was used for another request ({outcome.operation}): nothing was done"
                " now. Use a new key for each request, and reuse a key only to repeat the same request"
            )

    async def _decide_again(self, request: Request, ctx: Context, outcome: RequestOutcome) -> None:
        """Repeat the access decisions for a repetition, and refuse a caller who has lost the right.

        Raises PermissionDenied or another refusal in `_PASSING`; StateUnknown instead where `_hidden_outcome_error`
        requires it. An outcome without a body reveals nothing, and the rights may have depended on the deleted object.
        In that case the caller only needs the right to use the catalog.
        """
        try:
            if outcome.status == 204 or self.keyed.ends_rights:
                await idempotency_replay.entry_decide(ctx, self.terms.scope_of(request, ctx))
            else:
                await idempotency_replay.is_decided(ctx, lambda probe: self.route.handler(request, probe))
        except _PASSING as error:
            REPEATS[self.route.operation, "forbidden"] += 1
            raise self._hidden_outcome_error(outcome, error) from error

    async def _again(self, request: Request, ctx: Context, outcome: RequestOutcome) -> Response:
        """Answer a repetition with the outcome of the first request and the current state of the object."""
        REPEATS[self.route.operation, "answered"] += 1
        if outcome.status >= 400 or outcome.body is not None:
            return Response(outcome.status, outcome.body or b"")
        if self.keyed.replay is None:
            return Response(outcome.status, b"", ())
        try:
            return await self.keyed.replay(request, ctx, outcome.object_id or 0)
        except (NotFound, *_PASSING) as error:
            raise self._hidden_outcome_error(outcome, error) from error

    def _hidden_outcome_error(self, outcome: RequestOutcome, error: LimnosError) -> LimnosError:
        """Return the error for a caller who may not see the outcome.

        A client that would delete files which a snapshot needs gets StateUnknown instead of a refusal.
        """
        if self.keyed.has_files and outcome.status < 400:
            return StateUnknown(
                "This change was made under its Idempotency-Key; its result is no longer available, so keep its files"
                f" ({error})"
            )
        return error
