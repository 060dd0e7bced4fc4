"""What keeps the store small: old rows of the change feed, grants on objects that are gone.

May import this room. Runs inside a transaction; a view that sleeps past the pruned feed starts afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.store.changes import PRUNE_CHANGES, PRUNE_CLOCKS
from limnos.store.roles import SWEEP

if TYPE_CHECKING:
    from limnos.store.tx import Tx


def feed_prune(tx: Tx, *, keep_ms: int) -> int:
    """Delete change rows older than this, after noting in the clocks how far; returns how many."""
    tx.count(PRUNE_CLOCKS, {"before": tx.now_ms - keep_ms})
    return tx.count(PRUNE_CHANGES, {})


def grants_sweep(tx: Tx) -> int:
    """Delete grants on objects that were dropped (their ids never come back); returns how many."""
    return tx.count(SWEEP, {})
