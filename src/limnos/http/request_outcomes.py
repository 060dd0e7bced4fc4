# SPDX-License-Identifier: Apache-2.0
"""Outcomes of requests: the response for an error, and the records of an answered request in metrics, log and audit.

Must not know protocols, or what a handler does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import cast

from limnos.access.authentication import known_user
from limnos.http.request import Request
from limnos.http.request_audit import TOO_MANY, audit_repeat, audit_response
from limnos.http.response import Response
from limnos.http.response_cache import CachedResponse, ResponseCacheKey
from limnos.http.route_targets import RouteTarget, refusal_response
from limnos.http.throttle import CredentialThrottle
from limnos.model.errors import (
    DESCRIPTORS,
    OUT_OF_DESCRIPTORS,
    AuthenticationFailed,
    LimnosError,
    ServiceUnavailable,
    StateUnknown,
)
from limnos.services.request.concurrency.loop_turns import Deadlines
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import request_seconds, requests
from limnos.telemetry.request_log import RequestLog

log = get_logger("limnos.http")


class RequestOutcomes:
    """The outcomes of a node's requests."""

    def __init__(self, services: NodeServices, deadlines: Deadlines, *, request_log: RequestLog | None) -> None:
        self.audit = services.audit
        self.request_log = request_log
        self.throttle = CredentialThrottle()
        self._view = services.view
        self._deadlines = deadlines

    def flush(self) -> None:
        """Write pending log records."""
        self.throttle.flush()
        if self.request_log is not None:
            self.request_log.flush()

    def record_cached(
        self,
        response: CachedResponse,
        key: ResponseCacheKey,
        *,
        started: float,
        request_id: str,
        peer: str,
        headers: Mapping[bytes, bytes],
    ) -> None:
        """Count a cached response that is sent, and write it to the log and to the audit."""
        requests[response.operation] += 1
        ended_at = time.perf_counter()
        request_seconds.observe(response.observed, ended_at - started)
        if self.request_log is not None:
            self.request_log.add(
                (
                    ended_at,
                    ended_at - started,
                    request_id,
                    key[0],
                    response.path,
                    response.observed[1],
                    response.status,
                    response.validity.user,
                    peer,
                    len(response.body),
                    "",
                )
            )
        if self.audit.takes_reads:
            request = (key[0], response.path, peer, request_id)
            audit_repeat(
                self.audit,
                response.proven,
                observed=response.operation,
                user=response.validity.user,
                request=request,
                headers=headers,
            )

    def record(self, request: Request, size: int, *, target: RouteTarget, response: Response) -> None:
        """Count the response of a request, `size` bytes of which were sent, and write it to the log and the audit."""
        status, started = response.status, request.started
        key = target.keys.get(status)
        if key is None:
            key = target.keys[status] = (*target.key, status)
        requests[key] += 1
        ended_at = time.perf_counter()
        request_seconds.observe(target.key, ended_at - started)
        if self.request_log is not None and (status != TOO_MANY or self.throttle.samples()):
            user = known_user(self._view, request.credential)
            self.request_log.add(
                (
                    ended_at,
                    ended_at - started,
                    request.id,
                    request.method,
                    request.path,
                    target.operation,
                    status,
                    user,
                    request.peer,
                    size,
                    response.reason,
                )
            )
        if (status >= 400 or self.audit.takes_reads) and self.audit.is_on and target.route is not None:
            user = _principal_of(request.failure) or known_user(self._view, request.credential)
            audit_response(self.audit, request, status=status, user=user, anonymous=target.anonymous)
        request.failure = request.loop_use = None  # they refer to the request, too

    def error_response(
        self, error: BaseException, request: Request, *, target: RouteTarget, ctx: Context | None
    ) -> Response:
        """Return the response for an error that is being handled.

        Re-raises a cancellation that was not caused by the deadline.
        """
        known_error: LimnosError
        if isinstance(error, AuthenticationFailed):
            known_error = error if error.was_right else self.throttle.answer(request.peer, error)
        elif isinstance(error, LimnosError):
            known_error = error
        elif isinstance(error, asyncio.CancelledError):
            if not self._deadlines.was_late(cast("asyncio.Task[object]", asyncio.current_task())):
                raise error
            late = f"The request was not complete within {target.seconds or self._deadlines.seconds:g} s"
            known_error = _incomplete_error(late, ctx, retry_after_s=5)
        elif isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS:
            known_error = _incomplete_error(DESCRIPTORS, ctx, retry_after_s=1)
        else:
            log.error("unexpected failure", operation=target.operation, request_id=request.id, exc_info=error)
            public_error = LimnosError(
                f"An unexpected error occurred; tell your administrator the request id {request.id}"
            )
            public_error.__cause__ = error
            return refusal_response(target, public_error, request_id=request.id)
        response = refusal_response(target, known_error, request_id=request.id)
        if response.status >= 500:
            context = getattr(known_error, "context", {})
            log.error("failed", operation=target.operation, request_id=request.id, error=str(known_error), **context)
        return response


def _principal_of(failure: BaseException | None) -> str | None:
    """Return the user of a right credential in a request's body, as that of a sign-in of a disabled user."""
    return (failure.principal or None) if isinstance(failure, AuthenticationFailed) else None


def _incomplete_error(why: str, ctx: Context | None, *, retry_after_s: int) -> LimnosError:
    """Return the error for a request that ended early. If a change was submitted to the store, its outcome is
    unknown.
    """
    if ctx is not None and ctx.submitted:
        return StateUnknown(f"{why}, and the change may have been made: check before you repeat it")
    return ServiceUnavailable(f"{why}, and nothing was changed: try again", retry_after_s=retry_after_s)
