# SPDX-License-Identifier: Apache-2.0
"""Indexing of words on several nodes: one node has the lease and renews it only from time to time, and the lease can
expire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from limnos.rooms.search.app import search_indexing
from limnos.rooms.search.app.search_indexing import LEASE_MS, RENEWED_S, SearchIndexing
from limnos.store.activity.search_index import SearchIndexWrites, zones_behind_read
from tests.http.conftest import empty_database, fresh  # noqa: F401 - fixtures
from tests.http.driver import DriverNode, node_at
from tests.http.iceberg.wire import make_table


@pytest.fixture
def nodes(fresh: Callable[[str], Path]) -> Iterator[tuple[DriverNode, DriverNode]]:  # noqa: F811 - a fixture
    """Two nodes on one store."""
    data = fresh("data")
    with node_at(data) as one, node_at(data) as other:
        yield one, other


def take(node: DriverNode, indexing: SearchIndexing) -> bool:
    """Poll once. Returns whether all words are indexed then."""
    node.runner.run(indexing._take())
    return not node.runner.run(node.built.services.gate.look_up(partial(zones_behind_read, limit=1)))


def test_a_lease_is_renewed_before_it_ends(
    nodes: tuple[DriverNode, DriverNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node with the lease indexes each change, and renews the lease only after ten seconds. The other node indexes
    nothing meanwhile.
    """
    one, other = nodes
    first, second = SearchIndexing(one.built.services), SearchIndexing(other.built.services)
    now_s, leased_s, lease = [1_000.0], list[float](), SearchIndexWrites.lease

    def counted(writes: SearchIndexWrites, holder: str, *, lease_ms: int) -> bool:
        leased_s.append(now_s[0])
        return lease(writes, holder, lease_ms=lease_ms)

    monkeypatch.setattr(search_indexing, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(SearchIndexWrites, "lease", counted)
    for number, passed_s in enumerate((0.0, 1.0, RENEWED_S - 1.5, 1.0, 1.0)):
        now_s[0] += passed_s
        make_table(one, "a", f"t{number}")
        assert take(one, first)
    make_table(one, "a", "later")

    assert leased_s == [1_000.0, 1_000.5 + RENEWED_S]
    assert not take(other, second)
    assert take(one, first)


def test_a_lease_outlasts_two_renewals() -> None:
    """The lease in the store is longer than two renewal intervals, so a node that assumes to have it does have it."""
    assert LEASE_MS >= 2_000 * RENEWED_S
