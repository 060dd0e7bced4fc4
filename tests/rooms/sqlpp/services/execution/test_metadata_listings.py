# SPDX-License-Identifier: Apache-2.0
"""Slices of metadata queries: how many listings each one reads."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from limnos.model.kinds import Kind
from limnos.rooms.sqlpp.services.execution import metadata
from limnos.rooms.sqlpp.services.execution.metadata_listings import PARENTS_AT_ONCE, ListingSlice, NamespaceListing
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import make_space, make_table

LISTINGS = [NamespaceListing(number, Kind.TABLE) for number in range(200)]
SPACES, TABLES = 24, 4


def test_slices_read_more_listings_while_all_are_used_and_no_more_than_they_use() -> None:
    """Listings of few entries are read with twice as many at once, up to a limit; those of many one by one."""

    def next_count(read: int, used: int) -> int:
        return ListingSlice(entries=[], waiting=LISTINGS[used:], listings=LISTINGS, revisions=(), read=read).next_count

    assert [next_count(4, 4), next_count(40, 40), next_count(50, 50)] == [8, PARENTS_AT_ONCE, PARENTS_AT_ONCE]
    assert [next_count(12, 3), next_count(12, 1), next_count(12, 0)] == [3, 1, 1]


def test_query_over_metadata_reads_each_listing_a_few_times(
    node: DriverNode,  # noqa: F811 - a fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query over many dataverses does not list again, for each of its slices, those that later slices read."""
    for number in range(SPACES):
        make_space(node, f"s{number:02}")
        for table in range(TABLES):
            make_table(node, f"s{number:02}", f"t{table}")
    pages, ids_of = list[int](), metadata.ids_of

    def recorded(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        pages.append(1)
        return ids_of(*args, **named)

    monkeypatch.setattr(metadata, "SLICE", TABLES)
    monkeypatch.setattr(metadata, "ids_of", recorded)

    answer = node.post("/query/service", {"statement": "SELECT VALUE count(*) FROM Metadata.`Dataset` d"})

    assert answer.json()["status"] == "success", answer.body
    listings = SPACES * 4 + 1  # namespaces, tables, external datasets and views of each, and the catalog's
    assert len(pages) <= 4 * listings


def test_other_requests_run_between_a_listing_and_the_read_of_its_objects(
    node: DriverNode,  # noqa: F811 - a fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One step of the event loop does not both list a slice and read its objects."""
    make_space(node, "s")
    make_table(node, "s", "t")
    events, listed, read = list[str](), metadata._list_entries, metadata.live_nodes_read

    def list_entries(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        events.append("list")
        asyncio.get_running_loop().call_soon(events.append, "others")
        return listed(*args, **named)

    def nodes_read(*args: Any) -> Any:  # noqa: ANN401 - passed on
        events.append("read")
        return read(*args)

    monkeypatch.setattr(metadata, "_list_entries", list_entries)
    monkeypatch.setattr(metadata, "live_nodes_read", nodes_read)

    answer = node.post("/query/service", {"statement": "SELECT VALUE count(*) FROM Metadata.`Dataset` d"})

    assert answer.json()["status"] == "success", answer.body
    assert "read" in events
    assert ("list", "read") not in pairwise(events)
