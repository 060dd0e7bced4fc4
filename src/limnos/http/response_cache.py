# SPDX-License-Identifier: Apache-2.0
"""The response cache: complete responses, sent again while their dependencies are unchanged.

Must not know protocols or connections: a handler sets the validity of its response (`Response.validity`), and the
application checks the cache before it runs a handler. A response is used only after a freshness check for this request
(docs/decisions/0035), and after a check that the local metadata file still exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from limnos.http.active_roles import ACTIVE_ROLES
from limnos.http.request_audit import NOBODY, CachedAnswerProof
from limnos.http.response import Response
from limnos.model.errors import LimnosError
from limnos.services.request.cache_validity import CacheValidity
from limnos.services.request.node_services import NodeServices
from limnos.telemetry.metrics import Counter, Gauge
from limnos.view.facts import size_of
from limnos.view.freshness_gate import GATE_QUIET, GateWaiter

METHODS: Final = frozenset({"GET", "HEAD"})
"""The methods of requests whose responses can be cached."""
HEADERS: Final = (b"authorization", b"if-none-match", b"accept", b"x-iceberg-access-delegation", ACTIVE_ROLES)
"""Request headers that a cached response may depend on, besides method and URL."""
ENTRY_BYTES: Final = 2_000
"""The estimated size of an entry in bytes, besides its body and its facts."""
SENT_AGAIN = Counter(
    "limnos_answers_kept_total",
    "Cached responses that were sent again, by why they were still valid: no commit at all, or none that they"
    " depend on.",
    ("because",),
)
KEPT_BYTES = Gauge("limnos_answers_kept_bytes", "Memory of cached responses, in bytes.", ())
_QUIET: Final = ("quiet",)
_STANDS: Final = ("stands",)

ResponseCacheKey = tuple[str, bytes, tuple[bytes | None, ...]]


class CacheableRequest(NamedTuple):
    """A request whose response may be cached: its key, and the store's commit marker and the view's generation when it
    began.
    """

    key: ResponseCacheKey
    moment: bytes | None
    generation: int


class CachedResponse:
    """A response, and its dependencies.

    `head` is a cache of the connection: the encoded head before and after the request id. `advances` is the view's
    count of changes when the dependencies were compared last; -1 before that.
    """

    __slots__ = (
        "advances",
        "body",
        "bytes",
        "generation",
        "head",
        "headers",
        "key",
        "moment",
        "observed",
        "operation",
        "path",
        "proven",
        "size",
        "status",
        "validity",
    )

    def __init__(
        self,
        cacheable: CacheableRequest,
        response: Response,
        validity: CacheValidity,
        *,
        observed: tuple[str, str],
        proven: CachedAnswerProof,
    ) -> None:
        self.proven = proven
        method, url, _ = self.key = cacheable.key
        self.moment, self.generation = cacheable.moment, cacheable.generation
        self.validity, self.advances = validity, -1
        self.status, self.headers = response.status, response.headers
        self.body = b"" if method == "HEAD" else response.body
        self.size = len(response.body)
        self.path = url.partition(b"?")[0]
        self.bytes = _size(cacheable.key, self)
        self.observed = observed
        self.operation = (*observed, response.status)
        self.head: tuple[bytes, bytes] | None = None

    def headers_with(self, request_id: bytes) -> list[tuple[bytes, bytes]]:
        """Return all headers, as the application builds them for a new response."""
        sent_headers = [*self.headers, (b"x-request-id", request_id)]
        if self.status not in (204, 304):
            sent_headers.append((b"content-length", b"%d" % self.size))
        return sent_headers


class ResponseCache:
    """The cached responses of a node, in two generations: when it is full, responses that were not used recently are
    dropped.
    """

    def __init__(self, services: NodeServices, *, bytes_max: int) -> None:
        self.is_on = bytes_max > 0
        self.bytes_max = bytes_max
        self.gate = services.gate
        self.inline = services.gate.inline
        self._view = services.view
        self._time = services.store.time
        self._exists = services.files.exists_now
        self._moment: Callable[[], bytes | None] = getattr(services.store, "moment", _no_moment)
        self._young: dict[ResponseCacheKey, CachedResponse] = {}
        self._old: dict[ResponseCacheKey, CachedResponse] = {}
        self._young_bytes = self._old_bytes = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def find(self, key: ResponseCacheKey) -> CachedResponse | None:
        """Return the cached response for a key without checking its validity, or None."""
        response = self._young.get(key)
        if response is None and (response := self._old.pop(key, None)) is not None:
            self._put(key, response)
        return response

    def begin(self, key: ResponseCacheKey) -> CacheableRequest:
        """Record the store's commit marker before a handler runs: its response is valid as of that marker or later."""
        return CacheableRequest(key, self._moment(), self._view.generation)

    def store(
        self,
        cacheable: CacheableRequest,
        response: Response,
        *,
        observed: tuple[str, str],
        proven: CachedAnswerProof = NOBODY,
    ) -> None:
        """Cache a response, unless it has no validity, is streamed, or too large."""
        validity = response.validity
        if validity is None or response.stream is not None or len(response.body) > self.bytes_max // 16:
            return
        self._put(cacheable.key, CachedResponse(cacheable, response, validity, observed=observed, proven=proven))

    def is_valid_now(self, answer: CachedResponse) -> bool:
        """Return whether a response is valid now; only for an inline store, which answers without waiting.

        It is valid if nothing was committed since, or if a freshness check finds its facts unchanged.
        """
        moment, view = self._moment(), self._view
        if moment is not None and answer.moment == moment and answer.generation == view.generation:
            if not self._lasts(answer.validity):
                return self._drop(answer)
            GATE_QUIET[()] += 1
            SENT_AGAIN[_QUIET] += 1
            return True
        try:
            self.gate.refresh_now(answer.validity.dependencies.zones, "arrival")
        except Exception:  # noqa: BLE001 - the handler meets the same error and answers it
            return False
        if not self.is_valid_after_gate(answer):
            return False
        answer.moment, answer.generation = moment, view.generation
        return True

    def start_check(self, answer: CachedResponse, waiter: GateWaiter) -> None:
        """Start a freshness check for a response, which notifies the waiter when it is complete."""
        self.gate.refresh_and_notify(answer.validity.dependencies.zones, "arrival", waiter)

    def is_valid_after_gate(self, answer: CachedResponse) -> bool:
        """Return whether a response is still valid after a freshness check.

        The caller must not await between the freshness check of the response's zones and this call.
        """
        validity, view = answer.validity, self._view
        if answer.advances != view.advances:
            if not validity.dependencies.stands(view):
                return self._drop(answer)
            answer.advances = view.advances
        if not self._lasts(validity):
            return self._drop(answer)
        SENT_AGAIN[_STANDS] += 1
        return True

    def _drop(self, answer: CachedResponse) -> bool:
        """Remove a response that is no longer valid, so that the next request runs only one freshness check.

        Always returns False, so that callers can return it as the validity.
        """
        if self._young.get(answer.key) is answer:
            del self._young[answer.key]
            self._young_bytes -= answer.bytes
        elif self._old.get(answer.key) is answer:
            del self._old[answer.key]
            self._old_bytes -= answer.bytes
        KEPT_BYTES[()] = self._young_bytes + self._old_bytes
        return False

    def _lasts(self, validity: CacheValidity) -> bool:
        """Return whether a response's conditions outside the store are met: the token has not expired, the local file
        exists.
        """
        if validity.expires_ms is not None and validity.expires_ms <= self._time.now_ms():
            return False
        try:
            return validity.file is None or self._exists(validity.file)
        except LimnosError:  # the handler will raise the same error and report it
            return False

    def _put(self, key: ResponseCacheKey, answer: CachedResponse) -> None:
        former_entry = self._young.get(key)
        self._young[key] = answer
        self._young_bytes += answer.bytes - (0 if former_entry is None else former_entry.bytes)
        if self._young_bytes > self.bytes_max // 2:
            self._old, self._young = self._young, {}
            self._old_bytes, self._young_bytes = self._young_bytes, 0
        KEPT_BYTES[()] = self._young_bytes + self._old_bytes


def key_of(method: str, url: bytes, depends: tuple[bytes | None, ...]) -> ResponseCacheKey | None:
    """Return the cache key of a GET or HEAD request, or None if its response cannot be cached: the meaning of a plus in
    a URL depends on the client's name (docs/decisions/0022).
    """
    return None if b"+" in url else (method, url, depends)


def dependencies_of(headers: Mapping[bytes, bytes]) -> tuple[bytes | None, ...]:
    """Return the values of the request headers that a response may depend on, such as `Authorization`."""
    return tuple([headers.get(name) for name in HEADERS])


def _size(key: ResponseCacheKey, answer: CachedResponse) -> int:
    facts = sum([size_of(*fact) for fact in answer.validity.dependencies.facts])
    sent = sum([len(each) for each in key[2] if each is not None])
    return ENTRY_BYTES + len(answer.body) + facts + 2 * len(key[1]) + sent


def _no_moment() -> bytes | None:
    return None
