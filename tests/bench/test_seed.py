# SPDX-License-Identifier: Apache-2.0
"""Trees of the benchmark: the server accepts the inserted rows, with the tables' current columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import seed
from bench.operations import PREFIX, TEMPLATES
from bench.seed import TEMPLATE, Shape, plant
from bench.stores import Place
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import node_over

SMALL = {
    "HOT_NAMESPACES": 1,
    "HOT_TABLES": 2,
    "WIDE_TABLES": 1,
    "COMMIT_TABLES": 2,
    "LISTS": (3, 4),
    "SIBLINGS": 2,
    "CROWDS": (5,),
}
SHAPE = Shape(20)
USERS = {"reader": 200, "denied": 200, "picker": 403, "writer": 200}
"""The users, and the expected status of each for the first readable table."""


def prepare(node: DriverNode) -> None:
    """Create the templates, as the benchmark does."""
    node.done("POST", f"{PREFIX}/namespaces", {"namespace": [TEMPLATE]})
    for template in TEMPLATES:
        node.done("POST", f"{PREFIX}/namespaces/{TEMPLATE}/tables", template)


def names(node: DriverNode, space: str, user: str = "admin") -> list[str]:
    """Return the tables of a namespace that a user may list."""
    return [each["name"] for each in node.get(f"{PREFIX}/namespaces/{space}/tables", user=user)["identifiers"]]


def test_seeded_tables_are_listed_loaded_and_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All inserted tables are listed and loaded, accept commits, and are visible to users according to their roles."""
    for name, value in SMALL.items():
        monkeypatch.setattr(seed, name, value)
    with node_over(tmp_path) as node:
        prepare(node)

    plant(Place(tmp_path, None), SHAPE)

    with node_over(tmp_path) as node:
        leaf = "%1F".join(SHAPE.leaf(1))
        assert names(node, leaf) == [f"t{i}" for i in range(seed.LEAF_TABLES)]
        assert names(node, "crowd5") == [seed.crowd_table(i) for i in range(5)]
        assert len(node.get(f"{PREFIX}/namespaces?parent=siblings")["namespaces"]) == 2
        for table in (f"{leaf}/tables/t0", "hot0/tables/t1", "wide/tables/t0", "commits/tables/t1"):
            assert node.get(f"{PREFIX}/namespaces/{table}").status == 200
        commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
        assert node.post(f"{PREFIX}/namespaces/commits/tables/t1", commit, user="writer").status == 200
        assert node.post(f"{PREFIX}/namespaces/commits/tables/t1", commit, user="reader").status == 403
        statuses = {user: node.get(f"{PREFIX}/namespaces/hot0/tables/t0", user=user).status for user in USERS}
        assert statuses == USERS
        assert [len(names(node, "list3", user)) for user in USERS] == [3, 2, 1, 3]
