"""Finished answers, kept whole: to be sent again while what they rest on stands.

May import `services`, `view`, `model` and `telemetry`. Knows no protocol and no connection: a handler says that its answer lasts, and how
long (`Response.lasting`); the application asks here before it asks a handler. No answer is sent again but after this request's
own look at the store (docs/decisions/0035), and after the same question about the local metadata file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.http.active_roles import ACTIVE_ROLES
from limnos.http.request_audit import NOBODY
from limnos.model.errors import LimnosError
from limnos.telemetry.metrics import Counter, Gauge
from limnos.view.facts import size_of
from limnos.view.freshness_gate import GATE_QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limnos.http.request_audit import CachedAnswerProof
    from limnos.http.response import Response
    from limnos.services.request.cache_validity import CacheValidity
    from limnos.services.request.node_services import NodeServices
    from limnos.view.freshness_gate import GateWaiter

METHODS: Final = frozenset({"GET", "HEAD"})
HEADERS: Final = (b"authorization", b"if-none-match", b"accept", b"x-iceberg-access-delegation", ACTIVE_ROLES)
"""What of a request's head an answer that lasts may depend on, beside method and address."""
ENTRY_BYTES: Final = 2_000
"""What keeping an answer takes besides its body and the facts that it rests on."""
SENT_AGAIN = Counter(
    "limnos_answers_kept_total",
    "Finished answers that were sent again, by why they still held: nothing was committed, or nothing that they rest on.",
    ("because",),
)
KEPT_BYTES = Gauge("limnos_answers_kept_bytes", "What the finished answers take that are kept, in bytes.", ())
_QUIET: Final = ("quiet",)
_STANDS: Final = ("stands",)

ResponseCacheKey = tuple[str, bytes, tuple[bytes | None, ...]]


class CacheableRequest(NamedTuple):
    """A request whose answer may be kept: its key, and the store's moment and the view's generation before it was asked."""

    key: ResponseCacheKey
    moment: bytes | None
    generation: int


class CachedResponse:
    """An answer, and what it rests on. `head` is for whoever spells answers: how it begins, and how it goes on after the request id."""

    __slots__ = (
        "body",
        "bytes",
        "generation",
        "head",
        "headers",
        "key",
        "lasting",
        "moment",
        "observed",
        "operation",
        "path",
        "proven",
        "size",
        "status",
    )

    def __init__(
        self, keeping: CacheableRequest, response: Response, lasting: CacheValidity, *, observed: tuple[str, str], proven: CachedAnswerProof
    ) -> None:  # fmt: skip
        self.proven = proven
        method, url, _ = self.key = keeping.key
        self.moment, self.generation = keeping.moment, keeping.generation
        self.lasting = lasting
        self.status, self.headers = response.status, response.headers
        self.body = b"" if method == "HEAD" else response.body
        self.size = len(response.body)
        self.path = url.partition(b"?")[0]
        self.bytes = _size(keeping.key, self)
        self.observed = observed
        self.operation = (*observed, response.status)
        self.head: tuple[bytes, bytes] | None = None

    def headers_with(self, request_id: bytes) -> list[tuple[bytes, bytes]]:
        """Return all headers, as the application spells them for an answer that is found afresh."""
        sent = [*self.headers, (b"x-request-id", request_id)]
        if self.status not in (204, 304):
            sent.append((b"content-length", b"%d" % self.size))
        return sent


class ResponseCache:
    """The finished answers of a node, in two generations: what is asked for stays, the rest goes when there is too much."""

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
        """Return what was answered to such a request, whether it still holds or not."""
        found = self._young.get(key)
        if found is None and (found := self._old.pop(key, None)) is not None:
            self._put(key, found)
        return found

    def keeping(self, key: ResponseCacheKey) -> CacheableRequest:
        """Look at the clocks before a request is answered afresh: what comes of it was true then or later."""
        return CacheableRequest(key, self._moment(), self._view.generation)

    def keep(
        self, keeping: CacheableRequest, response: Response, *, observed: tuple[str, str], proven: CachedAnswerProof = NOBODY
    ) -> None:  # fmt: skip
        """Keep an answer, if it lasts and is not too large."""
        lasting = response.lasting
        if lasting is None or response.stream is not None or len(response.body) > self.bytes_max // 16:
            return
        if lasting.ground is None and keeping.moment is None:
            return
        self._put(keeping.key, CachedResponse(keeping, response, lasting, observed=observed, proven=proven))

    def holds_now(self, answer: CachedResponse) -> bool:
        """Say whether an answer holds at this moment; for a store that answers at once.

        Either nothing was committed since it was found, or the gate is asked and what it rests on is what it was.
        """
        moment, view = self._moment(), self._view
        if moment is not None and answer.moment == moment and answer.generation == view.generation:
            if not self._lasts(answer.lasting):
                return self._drop(answer)
            GATE_QUIET[()] += 1
            SENT_AGAIN[_QUIET] += 1
            return True
        ground = answer.lasting.ground
        if ground is None:
            return self._drop(answer)
        try:
            self.gate.ask_now(ground.zones, "arrival")
        except Exception:  # noqa: BLE001 - whoever answers afresh meets it again, and says so
            return False
        if not self.holds_after_gate(answer):
            return False
        answer.moment, answer.generation = moment, view.generation
        return True

    def ask(self, answer: CachedResponse, waiter: GateWaiter) -> bool:
        """Ask the gate on an answer's behalf; the waiter is told. Says no where no gate can tell whether it holds."""
        ground = answer.lasting.ground
        if ground is not None:
            self.gate.tell(ground.zones, "arrival", waiter)
        return ground is not None

    def holds_after_gate(self, answer: CachedResponse) -> bool:
        """Say whether an answer holds at the moment of a gate over its zones, from which nothing was awaited since."""
        lasting = answer.lasting
        if lasting.ground is None or not lasting.ground.stands(self._view) or not self._lasts(lasting):
            return self._drop(answer)
        SENT_AGAIN[_STANDS] += 1
        return True

    def _drop(self, answer: CachedResponse) -> bool:
        """Forget an answer that holds no more: who asks again is answered after one look at the store, not two. Says no."""
        if self._young.get(answer.key) is answer:
            del self._young[answer.key]
            self._young_bytes -= answer.bytes
        elif self._old.get(answer.key) is answer:
            del self._old[answer.key]
            self._old_bytes -= answer.bytes
        KEPT_BYTES[()] = self._young_bytes + self._old_bytes
        return False

    def _lasts(self, lasting: CacheValidity) -> bool:
        """Say whether what no clock of the store tells still holds: the token's time, the local file."""
        if lasting.expires_ms is not None and lasting.expires_ms <= self._time.now_ms():
            return False
        try:
            return lasting.file is None or self._exists(lasting.file)
        except LimnosError:  # whoever answers afresh meets it again, and says so
            return False

    def _put(self, key: ResponseCacheKey, answer: CachedResponse) -> None:
        before = self._young.get(key)
        self._young[key] = answer
        self._young_bytes += answer.bytes - (0 if before is None else before.bytes)
        if self._young_bytes > self.bytes_max // 2:
            self._old, self._young = self._young, {}
            self._old_bytes, self._young_bytes = self._young_bytes, 0
        KEPT_BYTES[()] = self._young_bytes + self._old_bytes


def key_of(method: str, url: bytes, depends: tuple[bytes | None, ...]) -> ResponseCacheKey | None:
    """Return the key of a request's answer; None where it may depend on what no key holds.

    A plus in an address means what the client's name says (docs/decisions/0022).
    """
    return (method, url, depends) if method in METHODS and b"+" not in url else None


def dependencies_of(headers: Mapping[bytes, bytes]) -> tuple[bytes | None, ...]:
    """Return what an answer may depend on of a request's head."""
    return tuple([headers.get(name) for name in HEADERS])


def _size(key: ResponseCacheKey, answer: CachedResponse) -> int:
    ground = answer.lasting.ground
    facts = 0 if ground is None else sum([size_of(*fact) for fact in ground.facts])
    sent = sum([len(each) for each in key[2] if each is not None])
    return ENTRY_BYTES + len(answer.body) + facts + 2 * len(key[1]) + sent


def _no_moment() -> bytes | None:
    return None
