# SPDX-License-Identifier: Apache-2.0
"""`find`: its request, and how it shows the answer."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

SEARCH = "/api/limnos/v1/metalakes/lake/search"
HIT = {
    "id": 7,
    "kind": "table",
    "path": ["main", "raw", "my flights"],
    "tier": 4,
    "format": "iceberg",
    "changed_at": "x",
    "matched": [{"where": "column", "text": "flight_id"}],
}


def test_find_sends_words_and_filters_and_shows_paths(fake: FakeServer, limnos: Run) -> None:
    """`find` quotes words that contain spaces, and shows hits as paths that can be typed, with the matched text."""
    fake.on("GET", f"{SEARCH}?q=%22my%20flights%22%20kind%3Atable&limit=5", {"hits": [HIT], "more": True})

    done = limnos("find", "my flights", "kind:table", "--limit", "5")
    search_result = limnos("find", "my flights", "kind:table", "--limit", "5", "--output", "table")

    assert done.code == 0, done.err
    assert (done.code, done.result) == (0, [{**HIT, "name": "main.raw.`my flights`", "found_in": "column flight_id"}])
    assert "main.raw.`my flights`" in search_result.out
    assert "there are more" in search_result.err


def test_find_reports_incomplete_searches(fake: FakeServer, limnos: Run) -> None:
    """A search that reached its limit, and one whose index is behind, are reported on standard error."""
    fake.on("GET", f"{SEARCH}?q=a&limit=50", {"hits": [HIT], "bounded": True})
    fake.on("GET", f"{SEARCH}?q=b&limit=50", {"hits": [], "behind": 12345, "meant": ["bay"]})

    cut, behind = limnos("find", "a", "--output", "table"), limnos("find", "b", "--output", "table")

    assert "first 5,000" in cut.err
    assert "12345 changes" in behind.err
    assert "did you mean: bay" in behind.err


def test_find_with_facets_counts_hits_by_filter(fake: FakeServer, limnos: Run) -> None:
    """With `--facets` the counts of kinds, catalogs and formats follow the hits, each as a filter that can be added."""
    facets = [{"key": "kind", "value": "table", "count": 2}, {"key": "in", "value": "main", "count": 2}]
    fake.on("GET", f"{SEARCH}?q=a&limit=50&facets=true", {"hits": [HIT], "facets": facets})

    counted = limnos("find", "a", "--facets", "--output", "table")

    assert "kind:table 2  in:main 2" in counted.err


def test_find_splits_an_argument_with_a_filter(fake: FakeServer, limnos: Run) -> None:
    """A whole search in quotes is sent as it was typed, so that its filter is one."""
    fake.on("GET", f"{SEARCH}?q=kind%3Atable%20trips&limit=50", {"hits": [HIT]})

    done = limnos("find", "kind:table trips")

    assert done.rows[0]["name"] == "main.raw.`my flights`"


def test_find_notes_an_unknown_filter_in_every_format(fake: FakeServer, limnos: Run) -> None:
    """A search without results whose filter is none says so on standard error, also beside JSON."""
    fake.on("GET", f"{SEARCH}?q=nonsense%3Aabc&limit=50", {"hits": []})

    done = limnos("find", "nonsense:abc", "--output", "json")

    assert done.result == []
    assert "'nonsense:' is no filter" in done.err
