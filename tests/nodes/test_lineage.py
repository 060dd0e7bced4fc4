# SPDX-License-Identifier: Apache-2.0
"""Lineage on two nodes: events sent to one node are in the other's answers, with current names and privileges."""

from __future__ import annotations

from tests.nodes.wire import OWN, Wire
from tests.nodes.world import NodesWorld

LINEAGE = f"{OWN}/metalakes/lake/lineage"
ROUNDS = 20


def event(target: str, source: str, *, at: int) -> dict[str, object]:
    """Return the event of a completed run."""
    source_, target_ = ({"namespace": "limnos://lake", "name": name} for name in (source, target))
    return {
        "eventType": "COMPLETE",
        "eventTime": f"2026-01-31T00:{at // 60:02}:{at % 60:02}Z",
        "run": {"runId": f"r{at}"},
        "job": {"namespace": "n", "name": "j"},
        "inputs": [source_],
        "outputs": [target_],
    }


def sources(wire: Wire, path: str) -> list[str]:
    """Return the sources of a table in one caller's answer."""
    graph = wire.do("GET", f"{LINEAGE}?path={path}").body
    return [".".join(each["path"]) if "path" in each else each["kind"] for each in graph["nodes"][1:]]  # type: ignore[index]


def test_lineage_change_on_one_node_is_visible_on_other(world: NodesWorld) -> None:
    """An event, a rename, a grant and its revoke on one node are reflected in the next answer of the other."""
    world.namespace("ln")
    for name in ("s", "t"):
        world.table("ln", name)
    ana = world.reader("ana_ln", schema="ln", selects=False)
    world.grant(f"{ana}_role", "table", "main.ln.t", "select_table")
    move, rights = f"{OWN}/metalakes/lake/catalogs/main/move", f"/api/metalakes/lake/permissions/roles/{ana}_role"
    name, wrong = "s", []
    for number in range(ROUNDS):
        here, other_node = number % 2, 1 - number % 2
        world.admin(here).do("POST", LINEAGE, event("main.ln.t", f"main.ln.{name}", at=number), fine=(201,))
        wrong += [f"{number}: event"] if sources(world.admin(other_node), "main.ln.t") != [f"main.ln.{name}"] else []
        new = f"s{number}"
        world.admin(here).do("POST", move, {"kind": "table", "source": ["ln", name], "target": ["ln", new]})
        name = new
        wrong += [f"{number}: rename"] if sources(world.admin(other_node), "main.ln.t") != [f"main.ln.{name}"] else []
        for verb, expected_source in (("grant", f"main.ln.{name}"), ("revoke", "hidden")):
            body = {"privileges": [{"name": "select_table", "condition": "allow"}]}
            world.admin(here).do("PUT", f"{rights}/TABLE/main.ln.{name}/{verb}", body)
            wrong += (
                [f"{number}: {verb}"] if sources(world.wire(other_node, ana), "main.ln.t") != [expected_source] else []
            )

    assert wrong == []
