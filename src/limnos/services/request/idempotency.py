# SPDX-License-Identifier: Apache-2.0
"""Idempotency: stores the outcome of a request with an idempotency key in the transaction of its mutation.

Must not know any wire format, nor the replay of requests (`services.request.idempotency_replay`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from limnos.store.idempotency import IdempotencyKey, RequestOutcome
from limnos.store.tx import Tx

T = TypeVar("T")


class RepeatedRequest(Exception):
    """An earlier request with the same key was executed or permanently refused; `outcome` is its result.

    This request changed nothing.
    """

    def __init__(self, outcome: RequestOutcome) -> None:
        super().__init__(outcome.operation)
        self.outcome = outcome


class IdempotentRequest:
    """A request with an idempotency key, and the outcome to store when it is executed."""

    __slots__ = ("answer", "fingerprint", "key", "lifetime_ms", "operation", "status")

    def __init__(
        self, key: IdempotencyKey, fingerprint: bytes, *, operation: str, status: int, lifetime_ms: int
    ) -> None:
        self.key = key
        self.fingerprint = fingerprint
        self.operation = operation
        self.status = status
        """The HTTP status of a successful answer."""
        self.lifetime_ms = lifetime_ms
        self.answer: Callable[[dict[int, int]], bytes] | None = None
        """Builds the response body right after the mutation, from the revisions of its zones after it.

        None if the body can be rebuilt later from stored data.
        """

    def run(self, work: Callable[[Tx], T], tx: Tx) -> T:
        """Run a mutation and store the outcome of the request, in one transaction.

        Raises RepeatedRequest if an earlier request with the key committed first, maybe on another node.
        """
        result = work(tx)
        count = tx.drafts[-1].node_id if tx.drafts else None
        body = None if self.answer is None else self.answer(tx.next_revisions)
        outcome = self._keep(
            tx,
            RequestOutcome(
                fingerprint=self.fingerprint, operation=self.operation, status=self.status, object_id=count, body=body
            ),
        )
        if outcome is not None:
            raise RepeatedRequest(outcome)  # this rolls back the mutation
        return result

    def refuse(self, tx: Tx, status: int, body: bytes) -> RequestOutcome | None:
        """Store the refusal of a request, so that a concurrent request with the same key is not executed.

        Returns the existing outcome of the key; None if the refusal was stored.
        """
        return self._keep(
            tx,
            RequestOutcome(
                fingerprint=self.fingerprint, operation=self.operation, status=status, object_id=None, body=body
            ),
        )

    def _keep(self, tx: Tx, outcome: RequestOutcome) -> RequestOutcome | None:
        return tx.outcomes.keep(self.key, outcome, lifetime_ms=self.lifetime_ms)
