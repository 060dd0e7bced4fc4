"""Once: what the transaction of a request with a key does before and after its mutation.

May import `store` and `model`. Knows no wire format, and not how a request is repeated: that is `services.request.repeats`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from limnos.store.idempotency import RequestOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.store.idempotency import IdempotencyKey
    from limnos.store.tx import Tx

T = TypeVar("T")


class RepeatedRequest(Exception):
    """The request was carried out, or refused for good, before: this is what became of it. Nothing was done now."""

    def __init__(self, outcome: RequestOutcome) -> None:
        super().__init__(outcome.operation)
        self.outcome = outcome


class IdempotentRequest:
    """A request with a key: what it is, and what is kept of it when it is carried out."""

    __slots__ = ("answer", "fingerprint", "key", "lifetime_ms", "operation", "status")

    def __init__(
        self, key: IdempotencyKey, fingerprint: bytes, *, operation: str, status: int, lifetime_ms: int
    ) -> None:
        self.key = key
        self.fingerprint = fingerprint
        self.operation = operation
        self.status = status
        """What it is answered with when all goes well."""
        self.lifetime_ms = lifetime_ms
        self.answer: Callable[[int], bytes] | None = None
        """Gives the answer's body right after the mutation, from the revision that it leaves its zone at; None where it can be
        made again from what is there.
        """

    def run(self, work: Callable[[Tx], T], tx: Tx) -> T:
        """Run a mutation and keep what became of the request, all in the mutation's transaction.

        Raises Repeated when the transaction of an earlier request with the key, maybe on another node, was faster.
        """
        result = work(tx)
        made = tx.drafts[-1].node_id if tx.drafts else None
        revision = tx.revision if tx.drafts else tx.revision - 1
        body = None if self.answer is None else self.answer(revision)
        found = self._keep(tx, RequestOutcome(self.fingerprint, self.operation, self.status, made, body))
        if found is not None:
            raise RepeatedRequest(found)  # which undoes the mutation
        return result

    def refuse(self, tx: Tx, status: int, body: bytes) -> RequestOutcome | None:
        """Keep a refusal, so that no repetition that is still on its way is carried out. Returns what was kept before."""
        return self._keep(tx, RequestOutcome(self.fingerprint, self.operation, status, None, body))

    def _keep(self, tx: Tx, outcome: RequestOutcome) -> RequestOutcome | None:
        return tx.outcomes.keep(self.key, outcome, lifetime_ms=self.lifetime_ms)
