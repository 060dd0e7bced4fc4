# SPDX-License-Identifier: Apache-2.0
"""Each kind of rule with each of its actions, in whole runs on data that violates it: `fail` publishes nothing, `warn`
is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.declaration import RuleKind
from limnos.pipeline.keys.rules import RULES
from limnos.pipeline.project import load
from limnos.pipeline.run.result import EndReason, RunResult
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

OLD = 'DATE "2020-01-01"'
BASE = {
    "other": "{sql: SELECT 10 AS id}",
    "t": f"{{sql: 'SELECT id, id AS ref, {OLD} AS at FROM range(4)'}}",
    "m": "{sql: 'SELECT 1 AS id, 1 AS v', write: {mode: merge, keys: id}}",
    "h": "{sql: 'SELECT 1 AS id, 1 AS v', write: {mode: history, keys: id}}",
}
"""The published state before: four rows in `t`, one in each of the other tables."""
NEW = {"other": "{sql: SELECT 10 AS id UNION ALL SELECT 11}", "new": "{sql: SELECT 1 AS x}"}
"""The run's other tables: new rows for a published one, and a new one."""
ROWS = f"SELECT * FROM VALUES (1L, 10L, {OLD}), (1L, NULL, {OLD}), (2L, 99L, {OLD}) AS rows(id, ref, at)"
"""A duplicate id, a NULL reference and a missing one, old dates, and one row fewer than before."""
BROKEN = {
    "row": ("row: id > 1", 2),
    "unique": ("unique: id", 1),
    "not_null": ("not_null: ref", 1),
    "references": ("references: SPACE.other, columns: ref, to: id", 1),
    "rows": ("rows: {max: 2}", 1),
    "fresh": ("fresh: at, within: 1 day", 1),
    "no_fewer_rows": ("no_fewer_rows: true", 1),
    "empty": ("empty: SELECT * FROM SPACE.t WHERE ref > 50", 1),
}
"""For each kind a rule that these rows violate, and the count of violations."""
FAILING = {
    **{kind: ("t", f"{{sql: '{ROWS}', expect: [{{{rule}}}]}}", kind) for kind, (rule, _) in BROKEN.items()},
    "too many dropped": ("t", f"{{sql: '{ROWS}', expect: [{{row: id > 1, action: drop, tolerated: 50%}}]}}", "row"),
    "too many aside": ("t", f"{{sql: '{ROWS}', expect: [{{row: id > 1, action: quarantine, tolerated: 50%}}]}}", "row"),
    "merge twice": ("m", f"{{sql: 'SELECT id, ref AS v FROM ({ROWS})', write: {{mode: merge, keys: id}}}}", "key"),
    "merge NULL": ("m", f"{{sql: 'SELECT ref AS id, 2 AS v FROM ({ROWS})', write: {{mode: merge, keys: id}}}}", "key"),
    "history NULL": (
        "h",
        f"{{sql: 'SELECT ref AS id, 2 AS v FROM ({ROWS})', write: {{mode: history, keys: id}}}}",
        "key",
    ),
}
"""The violating step, its declaration, and the kind of the violated rule."""


@dataclass(frozen=True)
class Lake:
    """A pipeline in its own namespace, which is declared again for each run."""

    spark: SparkSession
    client: Client
    file: Path

    @property
    def space(self) -> str:
        """The namespace, which is the pipeline's name."""
        return self.file.stem

    def run(self, steps: dict[str, str]) -> RunResult:
        """Declare these steps and run them."""
        lines = "".join(f"  SPACE.{name}: {text}\n" for name, text in steps.items())
        text = f"pipeline: SPACE\ncatalog: main\nsteps:\n{lines}"
        self.file.write_text(text.replace("SPACE", self.space))
        return load(self.file).run(self.spark)

    def heads(self) -> dict[str, object]:
        """Return the snapshot of `main` of every table in the namespace."""
        names = [path[-1] for path in self.client.tables.list(f"main.{self.space}")]
        return {
            name: self.client.tables.load(f"main.{self.space}.{name}").metadata["refs"]["main"]
            for name in names
            if "main" in self.client.tables.load(f"main.{self.space}.{name}").metadata["refs"]
        }  # type: ignore[index,operator]

    def broken(self, ended: RunResult) -> dict[str, int]:
        """Return the violated rules by kind, with the count of violations."""
        findings = self.client.runs.load(ended.run).findings
        return {each.kind: each.broken for each in findings if not each.held}


@pytest.fixture(scope="module")
def lake(served_spark: SparkSession, server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The pipeline, published once."""
    with Client(server.uri, token=server.token) as client:
        client.namespaces.create("main.ruled")
        ruled_lake = Lake(served_spark, client, tmp_path_factory.mktemp("ruled") / "ruled.yaml")
        ruled_lake.run(BASE).require()
        yield ruled_lake


def test_sample_data_violates_every_kind_of_rule() -> None:
    """The test data violates every kind of rule that a file can declare, and the kind that Limnos adds."""
    assert set(BROKEN) == set(RULES)
    assert {kind for _, _, kind in FAILING.values()} == {kind.value for kind in RuleKind}


@pytest.mark.parametrize("case", FAILING)
def test_violated_rule_publishes_nothing(lake: Lake, case: str) -> None:
    """Neither the violating table nor the run's other tables are published; the exit code is that of invalid data, and
    the message names the rule.
    """
    name, step, kind = FAILING[case]
    before = lake.heads()
    ended = lake.run({**NEW, name: step})

    assert (ended.state, ended.why, ended.exit_code) == ("failed", EndReason.DATA, 10), ended.message
    assert lake.heads() == before
    assert list(lake.broken(ended)) == [kind]
    finding = next(each for each in lake.client.runs.load(ended.run).findings if not each.held)
    assert finding.message in ended.message


def test_violated_warnings_are_counted_and_run_is_published(lake: Lake) -> None:
    """All kinds of violated warnings on the same rows are counted, and the run is published."""
    rules = ", ".join(f"{{{rule}, action: warn}}" for rule, _ in BROKEN.values())

    ended = lake.run({**NEW, "t": f"{{sql: '{ROWS}', expect: [{rules}]}}"})

    assert ended.state == "published", ended.message
    assert lake.broken(ended) == {kind: number for kind, (_, number) in BROKEN.items()}
    assert lake.spark.table(f"main.{lake.space}.t").count() == 3
    lake.run({"t": BASE["t"]}).require()


def test_dropped_and_quarantined_rows_are_not_published(lake: Lake) -> None:
    """Dropped rows are not published, quarantined rows are in the quarantine table with their rule, and both are
    counted.
    """
    aside, drop_rule = "{row: id > 1, name: aside, action: quarantine}", "{row: ref < 50, name: gone, action: drop}"

    ended = lake.run(
        {**BASE, "d": f"{{sql: '{ROWS}', expect: [{drop_rule}]}}", "q": f"{{sql: '{ROWS}', expect: [{aside}]}}"}
    )

    assert ended.state == "published", ended.message
    rows = {name: lake.spark.table(f"main.{lake.space}.{name}") for name in ("d", "q", "q__quarantine")}
    assert [tuple(row) for row in rows["d"].select("id", "ref").collect()] == [(1, 10)]
    assert [tuple(row) for row in rows["q"].select("id", "ref").collect()] == [(2, 99)]
    quarantined_rows = rows["q__quarantine"].select("id", "ref", "_rule").orderBy("ref").collect()
    assert [(row[0], row[1], list(row[2])) for row in quarantined_rows] == [(1, None, ["aside"]), (1, 10, ["aside"])]
    assert {each.rule: each.broken for each in lake.client.runs.load(ended.run).findings} == {"aside": 2, "gone": 2}
