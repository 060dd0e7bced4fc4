# SPDX-License-Identifier: Apache-2.0
"""The lineage graph after random events, renames, moves, drops and restores equals that of a model of plain
dictionaries, for users with all and with some rights.

The model identifies tables by its own numbers. Answers are compared by paths, so the test finds stale names, lost
edges, and edges that a new table inherits from a dropped one of the same name.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.http.driver import OWN, DriverNode, grant
from tests.http.iceberg.wire import make_space, make_table, table_path
from tests.rooms.pipelines.http.test_lineage import LINEAGE, dataset, event, link, store_events

pytestmark = pytest.mark.slow

MAIN = f"{OWN}/metalakes/lake/catalogs/main"
SPACES = ("n0", "n1", "n2")
STEPS = 150
Edge = tuple[str, str]


class Model:
    """The expected graph: tables by number, live or dropped, and the edges of the newest run of each job."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.spaces = {name: name for name in SPACES}
        self.paths: dict[int, tuple[str, str]] = {}
        """For each table: the original name of its namespace, and its own name."""
        self.dropped: dict[int, int] = {}
        """For each dropped table: its id in the trash."""
        self.said: dict[tuple[int, str], set[int]] = {}
        self.seen: set[int] = set()

    @property
    def live(self) -> list[int]:
        """Return the live tables."""
        return sorted(self.paths.keys() - self.dropped.keys())

    def levels(self, table: int) -> tuple[str, str]:
        """Return the current path of a table."""
        space, name = self.paths[table]
        return self.spaces[space], name

    def name(self, table: int) -> str:
        """Return the path of a table in display form."""
        return ".".join(("main", *self.levels(table)))

    def graph(self, root: int, *, up: bool, depth: int, seen: Callable[[int], bool]) -> set[Edge]:
        """Return the expected edges; hidden sources and targets are `?`."""
        pairs = {
            (source, target)
            for (target, _), sources in self.said.items()
            for source in sources
            if source not in self.dropped and target not in self.dropped
        }
        edges: set[Edge] = set()
        at, visited = {root}, {root}
        for _ in range(depth):
            steps = [(source, target) for source, target in pairs if (target if up else source) in at]
            edges |= {(self._shown(source, seen), self._shown(target, seen)) for source, target in steps}
            at = {source if up else target for source, target in steps} - visited
            at = {each for each in at if seen(each)}
            visited |= at
        return edges

    def _shown(self, table: int, seen: Callable[[int], bool]) -> str:
        return self.name(table) if seen(table) else "?"


class Story:
    """Random steps, executed by the node and by the model."""

    def __init__(self, node: DriverNode, model: Model) -> None:
        self.node = node
        self.model = model
        self.random = model.random
        self.number = 0

    def table(self) -> None:
        """Create a table, sometimes under the name of a dropped one; ana may load every second one."""
        space, name = self.random.choice(SPACES), f"t{self.random.randrange(12)}"
        self.number += 1
        used_paths = {self.model.paths[each] for each in self.model.live}
        if (space, name) in used_paths:
            return
        make_table(self.node, self.model.spaces[space], name)
        self.model.paths[self.number] = (space, name)
        if self.number % 2:
            self.model.seen.add(self.number)
            grant(self.node, "ana", "select_table", kind="TABLE", on=self.model.name(self.number))

    def say(self) -> None:
        """Send an event of one of a few jobs; a new run replaces the edges of the previous one."""
        if len(self.model.live) < 2:
            return
        target, *sources = self.random.sample(self.model.live, min(len(self.model.live), self.random.randint(2, 4)))
        job = self.random.choice(("one", "two"))
        self.number += 1
        columns = {"id": [link(self.model.name(each), "id") for each in sources]}
        run_event = event(
            dataset(self.model.name(target)),
            *(dataset(self.model.name(each)) for each in sources),
            job=job,
            run=f"run-{self.number}",
            columns=columns,
        )
        assert store_events(self.node, run_event) == len(sources)
        self.model.said[target, job] = set(sources)

    def move_table(self) -> None:
        """Rename a table, or move it to another namespace."""
        if not self.model.live:
            return
        table, space, name = self.random.choice(self.model.live), self.random.choice(SPACES), f"m{self.random.random()}"
        source, target = self.model.levels(table), (self.model.spaces[space], name.replace(".", ""))
        self.node.done("POST", f"{MAIN}/move", {"kind": "table", "source": source, "target": target})
        self.model.paths[table] = (space, target[1])

    def move_space(self) -> None:
        """Rename a namespace with its content."""
        space = self.random.choice(SPACES)
        old, new = self.model.spaces[space], f"s{self.random.randrange(10**9)}"
        self.node.done("POST", f"{MAIN}/move", {"kind": "namespace", "source": [old], "target": [new]})
        self.model.spaces[space] = new

    def drop(self) -> None:
        """Drop a table."""
        if not self.model.live:
            return
        table = self.random.choice(self.model.live)
        assert self.node.delete(table_path(*self.model.levels(table))).status == 204
        self.model.dropped[table] = int(self.node.done("GET", f"{MAIN}/trash?limit=1")["trash"][0]["id"])

    def undrop(self) -> None:
        """Restore a dropped table under an unused name."""
        if not self.model.dropped:
            return
        table = self.random.choice(sorted(self.model.dropped))
        space, name = self.random.choice(SPACES), f"b{self.random.randrange(10**9)}"
        to = [self.model.spaces[space], name]
        self.node.done("POST", f"{MAIN}/trash/{self.model.dropped.pop(table)}/undrop", {"to": to})
        self.model.paths[table] = (space, name)

    def sweep(self) -> None:
        """Run the sweep, which must have no visible effect."""
        self.node.runner.run(self.node.built.upkeep.sweep())

    def told(self, root: int, query: str, *, user: str) -> set[Edge]:
        """Return the edges of the node's answer; hidden sources and targets are `?`."""
        answer = self.node.get(f"{LINEAGE}?path={self.model.name(root)}&{query}", user=user)
        assert answer.status == 200, answer.body
        body = answer.json()
        names = {each["id"]: ".".join(each["path"]) if "path" in each else "?" for each in body["nodes"]}
        assert all(each.get("column", "id") == "id" for each in body["nodes"])
        return {(names[edge["source"]], names[edge["target"]]) for edge in body["edges"]}


@pytest.mark.parametrize("seed", range(4))
def test_lineage_graph_equals_the_model_after_random_steps(node: DriverNode, seed: int) -> None:
    """After random steps, the graph of each table equals the model's: upstream and downstream, of tables and columns,
    for a user with all rights and for one with half of them.
    """
    model = Model(seed)
    story = Story(node, model)
    for space in SPACES:
        make_space(node, space)
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    steps = (
        story.table,
        story.say,
        story.say,
        story.move_table,
        story.move_space,
        story.drop,
        story.undrop,
        story.sweep,
    )
    weights = (6, 5, 5, 3, 1, 2, 2, 1)
    comparisons = 0
    for _ in range(STEPS):
        model.random.choices(steps, weights)[0]()
        for user, seen in (("admin", lambda _: True), ("ana", model.seen.__contains__)):
            roots = [each for each in model.live if seen(each)]
            if not roots or model.random.random() < 0.5:
                continue
            root, up, depth = model.random.choice(roots), model.random.random() < 0.5, model.random.randint(1, 4)
            column = "&column=id" if model.random.random() < 0.4 else ""
            query = f"direction={'up' if up else 'down'}&depth={depth}{column}"
            comparisons += 1

            assert story.told(root, query, user=user) == model.graph(root, up=up, depth=depth, seen=seen), query
    assert comparisons > STEPS // 2
