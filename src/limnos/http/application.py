# SPDX-License-Identifier: Apache-2.0
"""The application: routes a request to a protocol, assigns an id, a deadline and a size limit, and counts the request
in the metrics.

Must not know protocols: `app` passes them in. It is an ASGI application, and `http.connection` calls it for ordinary
requests without ASGI. Both paths end in `respond`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

from limnos.access.authentication import Credential
from limnos.http.active_roles import ACTIVE_ROLES, active_roles_of, refuse_active_roles
from limnos.http.body_budget import BodyBudget, BodyShare
from limnos.http.client_timeouts import ClientTimeouts, client_timeouts_of
from limnos.http.cors import VARY, allow_origin, is_preflight, preflight_fields
from limnos.http.head_admission import HeadAdmission
from limnos.http.parameters import check_parameters
from limnos.http.request import IS_GONE, Body, Receive, Request, next_request_id
from limnos.http.request_audit import NOBODY, audit_proof_of
from limnos.http.request_outcomes import RequestOutcomes
from limnos.http.request_turns import RequestTurns
from limnos.http.response import Answer, Response
from limnos.http.response_cache import (
    METHODS,
    CacheableRequest,
    CachedResponse,
    ResponseCache,
    ResponseCacheKey,
    dependencies_of,
    key_of,
)
from limnos.http.route_targets import (
    UNKNOWN_ROUTE,
    Handler,
    Protocol,
    RouteTarget,
    find_target,
    unknown_target,
)
from limnos.http.routing import Route
from limnos.http.streamed_body import StreamedBody, StreamTruncated
from limnos.services.identity.issuer_sign_in import sign_in
from limnos.services.request.admission import require_possible_access
from limnos.services.request.concurrency.loop_turns import Deadlines
from limnos.services.request.context import Context
from limnos.services.request.node_services import ROUTE_OPERATIONS, NodeServices
from limnos.telemetry.current_request import current_request
from limnos.telemetry.request_log import RequestLog

AsgiScope = MutableMapping[str, object]
Send = Callable[[MutableMapping[str, object]], Awaitable[None]]

HEAD_TIMEOUT_S = 10.0
READING = frozenset({"GET", "HEAD"})
BODILESS = frozenset({"GET", "HEAD", "DELETE"})
"""Methods whose request bodies are never read."""
CACHED_ROUTES_MAX = 50_000
CACHED_PATH_BYTES_MAX = 1_000


class Application:
    """The ASGI application that routes requests to all protocols. The last protocol answers for unknown paths."""

    def __init__(
        self,
        services: NodeServices,
        protocols: list[Protocol],
        *,
        body_bytes_max: int,
        request_timeout_s: float,
        admission: HeadAdmission | None = None,
        client_timeouts: ClientTimeouts | None = None,
        request_log: RequestLog | None = None,
        kept_bytes_max: int = 0,
    ) -> None:
        self.services = services
        self.response_cache = ResponseCache(services, bytes_max=kept_bytes_max)
        self.admission = admission or HeadAdmission()
        self.client_timeouts = client_timeouts or client_timeouts_of(HEAD_TIMEOUT_S, request_timeout_s)
        self.protocols = protocols
        ROUTE_OPERATIONS.put(services, frozenset(route.operation for each in protocols for route in each.router.routes))
        self.body_bytes_max = body_bytes_max
        self.deadlines = Deadlines(request_timeout_s)
        self.outcomes = RequestOutcomes(services, self.deadlines, request_log=request_log)
        self.turns = RequestTurns(services.view)
        self.bodies = BodyBudget(body_bytes_max)
        self._targets: dict[tuple[str, bytes], RouteTarget] = {}

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request, or the lifespan of the server, which needs no action."""
        if scope["type"] != "http":
            await _lifespan(scope, receive, send)
            return
        request_id = next_request_id()
        status, headers, body = await self._answer(scope, receive, request_id)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if isinstance(body, bytes):
            await send({"type": "http.response.body", "body": body})
            return
        with suppress(StreamTruncated):  # the connection ends without a last message
            try:
                async for piece in body:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    await asyncio.sleep(0)
                await send({"type": "http.response.body", "body": b""})
            finally:
                await body.close()

    async def _answer(self, scope: AsgiScope, receive: Receive, request_id: str) -> Answer:
        """Answer an ASGI request, from the response cache if its entry is still valid."""
        method, raw, query = cast(
            "tuple[str, bytes, bytes]", (scope["method"], scope["raw_path"], scope["query_string"])
        )
        headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
        if is_preflight(method, headers, origins=self.admission.origins):
            return (
                204,
                [*preflight_fields(headers, self.admission.origins), VARY, (b"x-request-id", request_id.encode())],
                b"",
            )
        client = cast("tuple[str, int] | None", scope.get("client"))
        peer = "" if client is None else client[0]
        cacheable = response = None
        if (
            self.response_cache.is_on
            and method in METHODS
            and (key := key_of(method, b"?".join((raw, query)), dependencies_of(headers))) is not None
        ):
            response, cacheable = self.response_cache.find(key), self.response_cache.begin(key)
        status, sent_headers, answer = await self.respond(
            method,
            raw,
            query,
            headers,
            receive,
            request_id=request_id,
            peer=peer,
            cacheable=cacheable,
            cached_response=response,
            is_gone=cast("Callable[[], bool] | None", scope.get(IS_GONE)),
        )
        return status, [*sent_headers, *allow_origin(headers, self.admission.origins)], answer

    async def _is_still_valid(self, response: CachedResponse) -> bool:
        """Return whether a cached response is still valid, after a freshness check for this request."""
        if self.response_cache.inline:
            return self.response_cache.is_valid_now(response)
        await self.response_cache.gate.refresh(response.validity.dependencies.zones, "arrival")
        return self.response_cache.is_valid_after_gate(response)

    def answer_from_cache(
        self,
        response: CachedResponse,
        key: ResponseCacheKey,
        started: float,
        *,
        request_id: str,
        peer: str,
        headers: Mapping[bytes, bytes],
    ) -> Answer:
        """Return a cached response with this request's id, and count and log it like a new response."""
        self.outcomes.record_cached(response, key, started=started, request_id=request_id, peer=peer, headers=headers)
        return response.status, response.headers_with(request_id.encode()), response.body

    def answers_at_once(self, method: str) -> bool:
        """Return whether `respond` usually finishes without waiting: such a request needs neither a task nor a
        deadline.

        If the request has to wait nevertheless, the caller continues it in a task with a deadline.
        """
        return self.services.gate.inline and method in ("GET", "HEAD")

    async def respond(
        self,
        method: str,
        raw: bytes,
        query: bytes,
        headers: dict[bytes, bytes],
        body: Body,
        *,
        request_id: str,
        peer: str = "",
        at_once: bool = False,
        cacheable: CacheableRequest | None = None,
        cached_response: CachedResponse | None = None,
        is_gone: Callable[[], bool] | None = None,
    ) -> Answer:
        """Answer one request. Raises nothing except a cancellation of its task.

        `at_once`: it is begun outside of a task, and continued by `continued`. `cacheable`: the response may be cached.
        `cached_response` is sent if it is still valid. `is_gone` returns whether the client has disconnected.
        """
        target = self._target_of(method, raw)
        request = self._begin(
            target, method, raw=raw, query=query, headers=headers, body=body, request_id=request_id, peer=peer
        )
        request.is_cacheable, request.is_gone = cacheable is not None, is_gone
        ctx: Context | None = None
        task = None if at_once else self.watch(target.seconds)
        try:
            if target.handler is None:
                raise unknown_target(target, raw)
            if cached_response is not None and cacheable is not None:
                at_once = False
                if await self._is_still_valid(cached_response):
                    return self.answer_from_cache(
                        cached_response,
                        cacheable.key,
                        request.started,
                        request_id=request_id,
                        peer=peer,
                        headers=headers,
                    )
            header = b"" if target.anonymous else headers.get(b"authorization") or _header_of_key(target, headers)
            credential = self.services.authenticator.credential(header)
            if credential is None:
                at_once = False
                credential = await sign_in(self.services, header, request_id=request_id, audited_request=request)
            ctx = self._checked_context(target, request, credential=credential)
            at_once = at_once and self.turns.is_quiet
            response = await (
                target.handler(request, ctx) if at_once else self.turns.handle(request, ctx, target=target)
            )
            self._complete(response, target, request=request, cacheable=cacheable)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - every error gets a response, or is raised again
            request.failure = error if isinstance(error, Exception) else None
            response = self.outcomes.error_response(error, request, target=target, ctx=ctx)
        finally:
            if at_once:
                self.turns.record_step(request, target)
            if request.body_share is not None:
                request.release_body()
            if task is not None:
                self.deadlines.release(task)
        return self._finish_response(target, response, request)

    def _begin(
        self,
        target: RouteTarget,
        method: str,
        *,
        raw: bytes,
        query: bytes,
        headers: dict[bytes, bytes],
        body: Body,
        request_id: str,
        peer: str,
    ) -> Request:
        """Return a new request, which becomes the current one."""
        request = Request(
            method=method,
            path=raw,
            params=target.params,
            headers=headers,
            query_string=query,
            body=body,
            request_id=request_id,
            body_bytes_max=target.body_bytes_max,
            peer=peer,
            started=time.perf_counter(),
        )
        request.target, request.decided = target.key, [] if self.services.audit.is_on else None
        current_request.set(request)
        if method not in BODILESS and not isinstance(body, bytes):
            request.body_share = BodyShare(self.bodies, partial(self.turns.caller_of, request))
        return request

    def _checked_context(self, target: RouteTarget, request: Request, *, credential: Credential) -> Context:
        """Check the request's head against the route, and return the context for the handler."""
        request.credential = credential
        ctx = Context(self.services, credential, request.id, audited_request=request)
        headers, route = request.headers, target.route
        if request.query_string and route is not None:
            check_parameters(
                request.query_string,
                route.query,
                ignored=route.query_ignored,
                repeatable=route.query_repeatable,
                refused=route.query_refused,
                changes=request.method not in READING,
            )
        if ACTIVE_ROLES in headers and not target.anonymous:
            if not target.narrows:
                raise refuse_active_roles()
            ctx.active = active_roles_of(headers[ACTIVE_ROLES])
        if request.method not in BODILESS:
            request.require_type(target.takes)
            request.admit = partial(self._admit, target, request, ctx)
        return ctx

    def _complete(
        self, response: Response, target: RouteTarget, *, request: Request, cacheable: CacheableRequest | None
    ) -> None:
        """Add what responses have in common, and cache the response, with the data for the audit."""
        if self.admission.origins and target.takes_turns:  # health: the same for every origin
            response.headers = (*response.headers, VARY)
        if cacheable is not None and response.validity is not None:
            proven = audit_proof_of(request) if self.services.audit.takes_reads else NOBODY
            self.response_cache.store(cacheable, response, observed=request.target, proven=proven)

    def refusal(
        self, method: str, url: bytes, failure: Exception, *, peer: str = "", started: float | None = None
    ) -> Answer:
        """Return the response for a request that failed before its handler ran, and log and count it.

        `started` is when the request arrived, by `time.perf_counter`; None for now.
        """
        path = url.partition(b"?")[0]
        target = self._route(method, path)
        began = time.perf_counter() if started is None else started
        request = Request(
            method=method,
            path=path,
            params=(),
            headers={},
            query_string=b"",
            body=b"",
            request_id=next_request_id(),
            body_bytes_max=0,
            peer=peer,
            started=began,
        )
        request.target, request.failure = target.key, failure
        return self._finish_response(
            target, self.outcomes.error_response(failure, request, target=target, ctx=None), request
        )

    def stop(self) -> None:
        """Write pending log records."""
        self.outcomes.flush()

    def _finish_response(self, target: RouteTarget, response: Response, request: Request) -> Answer:
        """Return the response with all headers.

        The response is counted and logged now, or when the last chunk of a stream is sent.
        """
        status, method, body = response.status, request.method, response.body
        request.admit = None  # it refers to the request: without a cycle it is freed at once
        sent_headers = [*response.headers, (b"x-request-id", request.id.encode())]
        if response.stream is not None and method != "HEAD":
            count = partial(self.outcomes.record, request, target=target, response=response)
            use = self.turns.use_of(request) if target.takes_turns else None
            pieces = StreamedBody(
                response.stream,
                deadlines=self.deadlines,
                seconds=target.seconds or self.deadlines.seconds,
                request_id=request.id,
                ended=count,
                loop_use=use,
            )
            return status, sent_headers, pieces
        if status not in (204, 304) and response.stream is None:
            sent_headers.append((b"content-length", b"%d" % len(body)))
        size = 0 if method == "HEAD" else len(body)
        self.outcomes.record(request, size, target=target, response=response)
        return status, sent_headers, body if method != "HEAD" else b""

    @staticmethod
    async def _admit(target: RouteTarget, request: Request, ctx: Context) -> None:
        """Refuse a long body before it is read, if the caller lacks every right that the route could need."""
        route = cast("Route[Handler]", target.route)
        scope, kind, name = target.protocol.place_of(route.path, request, ctx=ctx)
        await ctx.read(
            scope, lambda request_view: require_possible_access(request_view, route.asks, kind=kind, name=name)
        )

    def watch(self, seconds: float | None = None) -> asyncio.Task[object]:
        """Set a deadline for the current task, and return the task. The caller must release it from `deadlines`."""
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self.deadlines.watch(task, seconds)
        return task

    def resume_response(
        self, work: Coroutine[Any, Any, Answer], waits_for: object, *, method: str, raw: bytes
    ) -> tuple[Awaitable[Answer], float | None]:
        """Return the rest of a response that was begun at once, and the timeout of its route in seconds or None."""
        target = self._target_of(method, raw)
        return self.turns.resume_work(work, waits_for, target=target), target.seconds

    def _target_of(self, method: str, raw: bytes) -> RouteTarget:
        return self._targets.get((method, raw)) or self._route(method, raw)

    def _route(self, method: str, raw: bytes) -> RouteTarget:
        """Find the target of a path, and cache it: it depends only on the path and the method."""
        target = find_target(self.protocols, method=method, raw=raw, body_bytes_max=self.body_bytes_max)
        if target.operation != UNKNOWN_ROUTE and len(raw) <= CACHED_PATH_BYTES_MAX:
            if len(self._targets) >= CACHED_ROUTES_MAX:
                self._targets.clear()
            self._targets[method, raw] = target
        return target


def _header_of_key(target: RouteTarget, headers: dict[bytes, bytes]) -> bytes:
    """Return the header `x-api-key`, in which some clients send a token, as an Authorization header; "" for none."""
    key = headers.get(b"x-api-key", b"") if target.takes_key else b""
    return b"Bearer " + key if key else b""


async def _lifespan(scope: AsgiScope, receive: Receive, send: Send) -> None:
    if scope["type"] != "lifespan":
        return
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
