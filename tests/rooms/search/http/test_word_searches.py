# SPDX-License-Identifier: Apache-2.0
"""Search by words in names, columns at every depth, comments and ancestors, with complete results before and after
indexing.
"""

from __future__ import annotations

import pytest

from limnos.rooms.search.services import indexed_words, indexing
from limnos.rooms.search.services.indexing import index_step
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import commit, make_space, make_table, make_view, set_properties, table_path
from tests.rooms.search.http.test_searches import CANARY, SEARCH, ask, list_hit_paths, move

NESTED = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "flightId", "required": True, "type": "long", "doc": "number in the bureau's files"},
        {
            "id": 2,
            "name": "home",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [
                    {"id": 3, "name": "postal_code", "required": False, "type": "string"},
                ],
            },
        },
    ],
}


def index(node: DriverNode) -> None:
    """Index all committed changes."""
    while node.runner.run(index_step(node.built.services)):
        pass


def filled(node: DriverNode) -> None:
    """Create tables, a view and a namespace with many kinds of words."""
    make_table(node, "nyc", "daily_flights", schema=NESTED)
    make_table(node, "nyc", "weather")
    make_table(node, "paris", "flightsArchive")
    make_view(node, "nyc", "late")
    make_space(node, "bureau", comment="what the harbour tells")
    commit(node, "nyc", "weather", updates=[set_properties(comment="Rainfall of three airports")])


@pytest.mark.parametrize("indexed", [False, True])
def test_words_match_names_columns_comments_and_ancestors(node: DriverNode, *, indexed: bool) -> None:
    """Results and matched fields are the same before and after the changes are indexed."""
    index(node)  # nothing to index: from here on, the zones have positions
    filled(node)
    if indexed:
        index(node)

    assert list_hit_paths(node, "flights") == ["main.paris.flightsArchive", "main.nyc.daily_flights"]
    assert list_hit_paths(node, "nyc flights") == ["main.nyc.daily_flights"]
    assert list_hit_paths(node, "archive paris") == ["main.paris.flightsArchive"]
    assert list_hit_paths(node, "flightid") == ["main.nyc.daily_flights"]
    (postal,) = ask(node, "postal")["hits"]
    assert (postal["tier"], postal["matched"]) == (4, [{"where": "column", "text": "home.postal_code"}])
    (rain,) = ask(node, "rainfall airp")["hits"]
    assert (rain["path"], rain["tier"]) == (["main", "nyc", "weather"], 5)
    assert list_hit_paths(node, "harbour") == ["main.bureau"]
    assert list_hit_paths(node, "bureau files nyc") == ["main.nyc.daily_flights"]
    assert list_hit_paths(node, "lights") == list_hit_paths(node, "nyc paris") == []
    assert ask(node, "flights")["behind"] == 0


def test_unindexed_changes_affect_the_next_search(node: DriverNode) -> None:
    """A commit, a rename of an ancestor, a drop and a restore each affect the next search, without indexing."""
    filled(node)
    index(node)
    commit(node, "nyc", "weather", updates=[set_properties(comment="Snow")])
    assert (list_hit_paths(node, "rainfall"), list_hit_paths(node, "snow")) == ([], ["main.nyc.weather"])
    move(node, "namespace", ["nyc"], ["york"])
    assert (list_hit_paths(node, "nyc flights"), list_hit_paths(node, "york flights")) == (
        [],
        ["main.york.daily_flights"],
    )
    node.delete(table_path("york", "daily_flights"))
    assert list_hit_paths(node, "daily") == list_hit_paths(node, "postal") == []
    index(node)
    assert (list_hit_paths(node, "daily"), list_hit_paths(node, "york weather")) == ([], ["main.york.weather"])


def test_all_objects_are_reindexed_after_the_feed_is_pruned(node: DriverNode) -> None:
    """A restored object is found. After the change feed was pruned, all objects are indexed again, and until then the
    answer has the number of unindexed changes.
    """
    filled(node)
    index(node)
    node.delete(table_path("nyc", "weather"))
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash"
    number = node.get(trash).json()["trash"][0]["id"]
    node.done("POST", f"{trash}/{number}/undrop", {})
    assert list_hit_paths(node, "rainfall") == ["main.nyc.weather"]
    services = node.built.services
    node.runner.run(services.store.submit(indexing.upkeep_permit("t"), _lose_positions))

    assert ask(node, "rainfall")["behind"] > 0
    index(node)
    assert (list_hit_paths(node, "rainfall"), ask(node, "rainfall")["behind"]) == (["main.nyc.weather"], 0)


def _lose_positions(tx: object) -> None:
    for (zone,) in tx.rows(indexing_zones(), {}):  # type: ignore[attr-defined]
        tx.search.store_progress(zone, epoch=1, revision=0, scan_after=None)  # type: ignore[attr-defined]


def indexing_zones() -> object:
    """Return all zones with their index positions."""
    from limnos.store.sql import Sql

    return Sql("SELECT zone FROM search_position")


def test_objects_of_an_older_release_are_indexed(node: DriverNode) -> None:
    """When all objects are indexed again, also those are indexed whose folded names an older release left empty."""
    filled(node)
    index(node)

    def lose_names(tx: object) -> None:
        from limnos.store.sql import Sql

        tx.count(Sql("UPDATE node SET folded = NULL"), {})  # type: ignore[attr-defined]
        tx.count(Sql("DELETE FROM search_text"), {})  # type: ignore[attr-defined]
        _lose_positions(tx)

    node.runner.run(node.built.services.store.submit(indexing.upkeep_permit("t"), lose_names))
    index(node)

    assert list_hit_paths(node, "postal") == ["main.nyc.daily_flights"]


def test_number_of_unread_changes_is_reported(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If more changes wait than a search reads, the answer has the number of unread changes until they are indexed."""
    index(node)
    monkeypatch.setattr(indexed_words, "TAIL_MAX", 2)
    filled(node)
    behind = ask(node, "postal")["behind"]
    index(node)

    assert behind > 0
    assert (ask(node, "postal")["behind"], list_hit_paths(node, "postal")) == (0, ["main.nyc.daily_flights"])


def test_many_objects_are_indexed_in_steps(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first indexing of a zone continues after each step where it ended."""
    monkeypatch.setattr(indexing, "OBJECTS_AT_ONCE", 3)
    filled(node)
    for number in range(7):
        make_table(node, "many", f"part_{number}_x")
    index(node)

    assert len(list_hit_paths(node, "part", more="&kind=table")) == 7
    assert len(list_hit_paths(node, "many part kind:table")) == 7


def test_words_of_hidden_tables_match_nothing(node: DriverNode) -> None:
    """Words of hidden tables find nothing, indexed or not; filters and words are combined."""
    index(node)
    filled(node)
    make_table(node, CANARY, "x", schema=NESTED)
    grant(node, "ana", "USE_CATALOG", kind="CATALOG", on="main")
    grant(node, "ana", "USE_SCHEMA SELECT_TABLE", kind="SCHEMA", on="main.nyc")
    before = list_hit_paths(node, "postal", user="ana")
    index(node)

    assert before == list_hit_paths(node, "postal", user="ana") == ["main.nyc.daily_flights"]
    assert CANARY in str(list_hit_paths(node, "postal"))
    for question in ("flights", "postal", "code", f"{CANARY} postal", "harbour"):
        assert CANARY not in str(ask(node, question, user="ana")["hits"])
        assert "bureau" not in str([hit["path"] for hit in ask(node, question, user="ana")["hits"]])
    node.done("POST", f"{API}/lake/tags", {"name": "pii"})
    node.done("POST", f"{API}/lake/objects/table/main.nyc.daily_flights/tags", {"tagsToAdd": ["pii"]})
    assert list_hit_paths(node, "postal tag:pii") == ["main.nyc.daily_flights"]
    assert list_hit_paths(node, "rainfall tag:pii") == []
    assert node.get(f"{SEARCH}?q=postal", user="stranger").status == 403
