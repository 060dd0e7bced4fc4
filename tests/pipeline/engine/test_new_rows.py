# SPDX-License-Identifier: Apache-2.0
"""Old rows of a query and the rows from its new inputs are the rows of a whole read, or the query is refused."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from pyspark.sql import SparkSession

from limnos.pipeline.engine.new_rows import NewRows, new_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
QUERIES = int(os.environ.get("LIMNOS_TEST_INCREMENT_QUERIES", "120"))
SEED = os.environ.get("LIMNOS_TEST_INCREMENT_QUERIES_SEED", "new rows")
TABLES = ("a", "b", "c")
Rows = list[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class State:
    """The rows of each table before a run, and those that were added since."""

    old: Mapping[str, Rows]
    new: Mapping[str, Rows]

    @property
    def changed(self) -> frozenset[str]:
        """Return the tables with new rows."""
        return frozenset(name for name, rows in self.new.items() if rows)

    def whole(self) -> dict[str, Rows]:
        """Return all rows of each table."""
        return {name: rows + self.new.get(name, []) for name, rows in self.old.items()}

    def increments(self) -> dict[str, Rows]:
        """Return the rows that an incremental run reads: only new rows of changed tables."""
        return {**self.whole(), **{name: self.new[name] for name in self.changed}}


OLD = {"a": [(1, 1), (2, 2), (2, 2)], "b": [(1, 5), (3, 6)], "c": [(1, 8), (2, 9)]}
ONE = State(old=OLD, new={"a": [(3, 3), (1, 1)]})
BOTH = State(old=OLD, new={"a": [(3, 3), (1, 1)], "b": [(2, 7)]})


def register(spark: SparkSession, tables: Mapping[str, Rows]) -> None:
    """Register each table's rows as a temporary view."""
    for name, rows in tables.items():
        values = ", ".join(str(row) for row in rows or [(0, 0)])
        condition = "true" if rows else "false"
        frame = spark.sql(f"SELECT * FROM VALUES {values} AS t(id, v) WHERE {condition}")
        frame.createOrReplaceTempView(name)


def results(spark: SparkSession, query: str, tables: Mapping[str, Rows]) -> Counter[tuple[object, ...]]:
    """Return the rows of a query over these tables."""
    register(spark, tables)
    return Counter(tuple(row) for row in spark.sql(query).collect())


def read(spark: SparkSession, query: str, state: State) -> NewRows:
    """Return the query's new rows over the increments of the changed tables."""
    register(spark, state.increments())
    return new_rows(spark.sql(query), views=state.changed, by_code=False)


def require_whole(spark: SparkSession, query: str, state: State) -> str | None:
    """Require that old and new results are those of a whole read. Returns the reason if the query is refused."""
    new = read(spark, query, state)
    if new.whole_because is not None:
        return new.whole_because
    added = Counter(tuple(row) for row in new.frame.collect())
    before, whole = (results(spark, query, tables) for tables in (state.old, state.whole()))
    assert before + added == whole, f"{query}\n{state}"
    return None


@pytest.mark.parametrize("state", [ONE, BOTH], ids=["one", "both"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, v FROM a UNION ALL SELECT id, v FROM b",
        "SELECT id, v FROM b UNION ALL SELECT id, v FROM a",
        "SELECT id, v FROM a UNION ALL SELECT id, v FROM a",
        "SELECT id, v FROM a UNION ALL SELECT 7, 7",
        "FROM a |> SELECT id, v |> UNION ALL (SELECT id, v FROM b) |> WHERE v > 1",
        "SELECT id, v FROM a UNION ALL SELECT * FROM VALUES (7, 7), (8, 8)",
        "SELECT id, v FROM a UNION ALL (SELECT id, v FROM c UNION ALL SELECT id, v FROM b)",
        "SELECT id, v + 1 FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM b) WHERE v > 1",
        "WITH u AS (SELECT id, v FROM a UNION ALL SELECT id, v FROM b) SELECT u.id, c.v FROM u JOIN c USING (id)",
        (
            "WITH u AS (SELECT * FROM b), w AS (SELECT * FROM a UNION ALL SELECT * FROM c)"
            " SELECT * FROM u UNION ALL SELECT * FROM w UNION ALL SELECT * FROM w"
        ),
        "SELECT a.id, c.v FROM a JOIN c ON a.id = c.id UNION ALL SELECT id, v FROM b",
        "SELECT a.id, v FROM a UNION ALL SELECT b.id, c.v FROM b LEFT JOIN c ON b.id = c.id",
        "SELECT id, v FROM a UNION ALL SELECT id, count(*) FROM c GROUP BY id",
        "SELECT id, v FROM a UNION ALL (SELECT id, v FROM c EXCEPT SELECT 1, 8)",
        "SELECT id, v FROM a UNION ALL SELECT id, v FROM c WHERE id IN (SELECT id FROM c WHERE v > 8)",
        "SELECT x.id, y.v FROM (SELECT * FROM a UNION ALL SELECT * FROM b) x JOIN c y ON x.id < y.id",
        "SELECT id, v FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM b) LATERAL VIEW explode(array(1, 2)) AS e",
    ],
)
def test_each_branch_of_a_union_reads_only_its_new_rows(spark: SparkSession, query: str, state: State) -> None:
    """Each branch of a UNION gives the new rows of its own input, and none if the input is unchanged: also in a
    subquery, a common table expression, and beside a joined table.
    """
    assert require_whole(spark, query, state) is None


@pytest.mark.parametrize(
    "query, word",
    [
        ("SELECT id, v FROM a UNION SELECT id, v FROM b", "DISTINCT"),
        ("SELECT id, v FROM a INTERSECT SELECT id, v FROM b", "INTERSECT"),
        ("SELECT id, v FROM b EXCEPT SELECT id, v FROM a", "EXCEPT"),
        ("SELECT id, v FROM a UNION ALL SELECT id, v FROM b LIMIT 2", "LIMIT"),
        ("SELECT id, max(v) FROM (SELECT * FROM a UNION ALL SELECT * FROM b) GROUP BY id", "an aggregate"),
        ("SELECT id, sum(v) OVER (PARTITION BY id) FROM (SELECT * FROM a UNION ALL SELECT * FROM b)", "a window"),
        ("SELECT id, v FROM c UNION ALL SELECT id, max(v) FROM a GROUP BY id", "an aggregate"),
        ("SELECT x.id, y.v FROM a x JOIN a y ON x.id = y.id", "joins two inputs"),
        ("SELECT c.id, a.v FROM c LEFT JOIN a ON c.id = a.id", "LeftOuter"),
        ("SELECT id, v FROM (SELECT id, max(v) AS v FROM a GROUP BY id) AS a", "an aggregate"),
        ("SELECT id, v FROM (SELECT DISTINCT id, v FROM a) a UNION ALL SELECT id, v FROM b", "DISTINCT"),
        ("SELECT id, v FROM c AS a", "no row of the query"),
        ("WITH unused AS (SELECT * FROM a) SELECT id, v FROM c", "no row of the query"),
        ("SELECT id, v FROM c WHERE EXISTS (SELECT 1 FROM a WHERE a.id = c.id)", "subquery"),
        (
            (
                "WITH RECURSIVE r(id, v) AS (SELECT id, v FROM a UNION ALL SELECT id, v + 10 FROM r WHERE v < 10)"
                " SELECT id, v FROM r"
            ),
            "recursive",
        ),
    ],
)
def test_queries_that_combine_rows_are_refused(spark: SparkSession, query: str, word: str) -> None:
    """A query that combines new rows with others is refused, and the reason names the part; also if an alias in the
    query has the name of the input.
    """
    assert word in (require_whole(spark, query, ONE) or "")


def test_unchanged_branch_stays_in_the_plan(spark: SparkSession) -> None:
    """The plan still has the unchanged branch, so that lineage names its table, and columns keep names and types."""
    query = "SELECT id, CAST(v AS BIGINT) AS w FROM a UNION ALL SELECT id, v FROM b"

    new = read(spark, query, ONE)

    assert new.whole_because is None
    assert new.frame.dtypes == spark.sql(query).dtypes
    assert "subqueryalias b" in new.frame._jdf.queryExecution().analyzed().toString().lower()


def test_rows_that_a_function_made_are_refused_beside_new_rows(spark: SparkSession) -> None:
    """A function may compute rows from an input with new rows: a union with them cannot leave them out."""
    register(spark, ONE.increments())
    frame = spark.table("a").union(spark.createDataFrame([(len(spark.table("a").collect()), 1)], "id int, v int"))

    new = new_rows(frame, views=ONE.changed, by_code=True)

    assert "rows that it made itself" in (new.whole_because or "")


@dataclass
class Generator:
    """Random queries with the columns `id` and `v` over three tables. `parts` counts the kinds of their parts."""

    chance: random.Random
    parts: Counter[str] = field(default_factory=Counter)
    number: int = 0

    def query(self, depth: int) -> str:
        """Return a query of at most `depth` nested operators."""
        if depth == 0:
            return f"SELECT id, v FROM {self.chance.choice(TABLES)}"
        kinds = ["union"] * 6 + ["filter", "project"] * 3 + ["join"] * 3
        kinds += ["constant", "common", "aggregate", "distinct", "limit", "window", "except", "exists", "explode"]
        kind = self.chance.choice(kinds)
        self.parts[kind] += 1
        return getattr(self, f"_{kind}")(depth - 1)

    def _source(self, depth: int) -> str:
        self.number += 1
        alias = self.chance.choice([f"q{self.number}", *TABLES])
        return f"({self.query(self.chance.randint(0, depth))}) AS {alias}"

    def _union(self, depth: int) -> str:
        return " UNION ALL ".join(f"({self.query(self.chance.randint(0, depth))})" for _ in range(2))

    def _filter(self, depth: int) -> str:
        return f"SELECT id, v FROM {self._source(depth)} WHERE v % 3 <> {self.chance.randint(0, 2)}"

    def _project(self, depth: int) -> str:
        return f"SELECT v AS id, id + 1 AS v FROM {self._source(depth)}"

    def _join(self, depth: int) -> str:
        kind = self.chance.choice(["", "", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
        self.parts[f"{kind or 'INNER'} JOIN"] += 1
        left, right = self.query(self.chance.randint(0, depth)), self.query(self.chance.randint(0, depth))
        columns = "l.id, l.v" if kind.startswith("LEFT ") else "l.id, r.v"
        return f"SELECT {columns} FROM ({left}) AS l {kind} JOIN ({right}) AS r ON l.id = r.id"

    def _constant(self, depth: int) -> str:
        return f"{self.query(depth)} UNION ALL SELECT 4, 4"

    def _common(self, depth: int) -> str:
        self.number += 1
        name = f"w{self.number}"
        return (
            f"WITH {name} AS ({self.query(depth)}) SELECT id, v FROM {name} UNION ALL SELECT id, v + 1 FROM {name}"
            f" UNION ALL SELECT id, v FROM {self.chance.choice(TABLES)}"
        )

    def _aggregate(self, depth: int) -> str:
        return f"SELECT id, max(v) AS v FROM {self._source(depth)} GROUP BY id"

    def _distinct(self, depth: int) -> str:
        return f"SELECT DISTINCT id, v FROM {self._source(depth)}"

    def _limit(self, depth: int) -> str:
        return f"SELECT id, v FROM {self._source(depth)} ORDER BY id, v LIMIT 2"

    def _window(self, depth: int) -> str:
        return f"SELECT id, max(v) OVER (PARTITION BY id) AS v FROM {self._source(depth)}"

    def _except(self, depth: int) -> str:
        return f"({self.query(depth)}) EXCEPT ALL (SELECT id, v FROM {self.chance.choice(TABLES)})"

    def _exists(self, depth: int) -> str:
        table = self.chance.choice(TABLES)
        return f"SELECT id, v FROM {self._source(depth)} WHERE id NOT IN (SELECT v FROM {table} WHERE v IS NOT NULL)"

    def _explode(self, depth: int) -> str:
        return f"SELECT id, e AS v FROM {self._source(depth)} LATERAL VIEW explode(array(v, id)) x AS e"


def random_state(chance: random.Random, query: str) -> State:
    """Return a few rows of each table. One to three have new rows, mostly tables that the query reads."""

    def rows(least: int) -> Rows:
        return [(chance.randrange(4), chance.randrange(4)) for _ in range(chance.randint(least, 3))]

    used = sorted(set(re.findall(r"FROM ([abc])\b", query)))
    changed = chance.sample(used, 1) if chance.random() < 0.8 else chance.sample(TABLES, chance.randint(1, 3))
    return State(old={name: rows(0) for name in TABLES}, new={name: rows(1) for name in changed})


def test_random_queries_equal_whole_reads_or_are_refused(spark: SparkSession) -> None:
    """For random queries and rows: the old results with the new rows are the results of a whole read, or the query is
    refused. Neither are all refused, nor none.
    """
    generator = Generator(random.Random(SEED))
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    queries = [generator.query(3) for _ in range(QUERIES)]
    states = [random_state(generator.chance, query) for query in queries]
    reasons = [require_whole(spark, query, state) for query, state in zip(queries, states, strict=True)]
    refused = sum(reason is not None for reason in reasons)

    print(f"\nnew rows: {QUERIES} queries, {refused} refused, seed {SEED!r}: {dict(generator.parts)}")
    assert QUERIES / 5 < refused < QUERIES * 4 / 5
