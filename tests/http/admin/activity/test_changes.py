# SPDX-License-Identifier: Apache-2.0
"""The change feed over HTTP."""

from __future__ import annotations

import msgspec
import pytest

from limnos.services.activity.feed_positions import position_of
from tests.http.driver import API, OWN, DriverNode
from tests.http.iceberg.wire import commit, make_space, make_table, set_properties

LAKE = f"{OWN}/metalakes/lake/changes"
MAIN = f"{OWN}/metalakes/lake/catalogs/main/changes"


def position(node: DriverNode, feed: str = LAKE) -> str:
    """Return the position after all changes."""
    return str(node.get(f"{feed}?after=now")["next"])


def test_change_has_all_its_fields(node: DriverNode) -> None:
    """A change states its operation, object, paths, user, time and request."""
    make_space(node, "a")
    at = position(node)
    make_table(node, "a", "t")
    commit(node, "a", "t", updates=[set_properties(k="v")])

    answer = node.get(f"{LAKE}?after={at}")

    created, committed = answer["changes"]  # type: ignore[misc]
    assert {key: created[key] for key in ("operation", "kind", "path", "new", "actor", "ordinal")} == {
        "operation": "create",
        "kind": "table",
        "path": ["main", "a", "t"],
        "new": ["main", "a", "t"],
        "actor": "admin",
        "ordinal": 0,
    }
    assert (committed["operation"], committed["id"]) == ("commit", created["id"])
    assert committed["revision"] == created["revision"] + 1
    assert created["request_id"] != committed["request_id"]
    assert created["at"].endswith("Z")
    assert "old" not in created
    assert answer["more"] is False
    assert node.get(f"{LAKE}?after={answer['next']}")["changes"] == []


def test_pages_continue_at_next(node: DriverNode) -> None:
    """A page says whether more changes exist, and `next` continues after it."""
    at = position(node, MAIN)
    for name in "abc":
        make_space(node, name)
    names, more = [], True
    while more:
        answer = node.get(f"{MAIN}?after={at}&limit=1")
        names += [change["path"] for change in answer["changes"]]  # type: ignore[attr-defined]
        at, more = answer["next"], answer["more"]

    assert names == [["main", name] for name in "abc"]


def test_pruned_position_is_410(node: DriverNode) -> None:
    """If the next changes of a position are pruned, the answer is 410, and its message says to start again."""
    at = position(node)
    make_space(node, "a")
    node.built.upkeep.keep_ms = -1000
    node.runner.run(node.built.upkeep.sweep())

    answer = node.get(f"{LAKE}?after={at}")

    assert (answer.status, answer.json()["error"]["code"]) == (410, "pruned")
    assert "start again" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "query",
    ["after=x", "after=%F0%9F%90%9F", "after=gqNhYmM", "limit=-1", "limit=1001", "limit=x", "wait_s=61", "wait_s=1.5"],
)
def test_malformed_position_or_number_is_400(node: DriverNode, query: str) -> None:
    """A malformed position, or a number outside its bounds, is 400."""
    assert node.get(f"{LAKE}?{query}").status == 400


def test_after_oldest_starts_at_the_oldest_change(node: DriverNode) -> None:
    """`after=oldest` returns the same changes as a request without a position: it begins at the oldest stored
    change.
    """
    make_space(node, "a")

    assert node.get(f"{LAKE}?after=oldest")["changes"] == node.get(LAKE)["changes"] != []


def test_forged_position_returns_no_foreign_changes(node: DriverNode) -> None:
    """A forged position that names zones of other metalakes returns only changes of the metalake's own zones."""
    from limnos.services.activity.feed_positions import FeedPosition, position_of

    make_space(node, "a")
    node.done("POST", "/api/metalakes", {"name": "other"})
    node.done(
        "POST", "/api/metalakes/other/catalogs", {"name": "c", "type": "RELATIONAL", "provider": "lakehouse-iceberg"}
    )
    foreign_position = position_of(str(node.get(f"{OWN}/metalakes/other/changes?after=now")["next"]))
    mine = position_of(position(node))
    table = make_table(node, "a", "t")
    forged = FeedPosition(mine.epoch, mine.home, dict.fromkeys({*foreign_position.zones, *mine.zones, 2**53}, 0))

    answer = node.get(f"{LAKE}?after={forged.text()}")

    assert table is not None
    assert answer.status == 200
    assert {change["zone"] for change in answer["changes"]} <= set(mine.zones)  # type: ignore[attr-defined]


def test_foreign_zones_in_a_position_are_returned_unchanged(node: DriverNode) -> None:
    """Zones of other metalakes and unknown zones in a position are returned unchanged, so they reveal nothing."""
    node.done("POST", API, {"name": "other", "comment": "", "properties": {}})
    other = f"{API}/other/catalogs"
    body = {"name": "c", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "comment": "", "properties": {}}
    node.done("POST", other, body)
    node.ask("POST", f"{API}/lake/users", {"name": "eve"})
    theirs = position_of(node.done("GET", f"{OWN}/metalakes/other/changes?after=now")["next"]).zones
    own = position_of(node.done("GET", f"{LAKE}?after=now", user="eve")["next"])
    foreign_zones = {zone: at for zone in (*theirs, 2**40) for at in (0, theirs.get(zone, 0), 10**6)}
    sent = [
        foreign_zones,
        dict.fromkeys(foreign_zones, 0),
        dict.fromkeys(foreign_zones, 1),
        dict.fromkeys(foreign_zones, 10**6),
    ]
    responses = []
    for zones in sent:
        forged = msgspec.structs.replace(own, zones=own.zones | zones)
        responses.append(node.get(f"{LAKE}?after={forged.text()}", user="eve"))

    assert len(theirs) == 2
    assert [answer.status for answer in responses] == [200] * len(sent)
    assert [position_of(str(answer["next"])).zones for answer in responses] == [own.zones | zones for zones in sent]
    assert [(answer["changes"], answer["more"]) for answer in responses] == [([], False)] * len(sent)
