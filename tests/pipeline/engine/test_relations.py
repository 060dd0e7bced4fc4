# SPDX-License-Identifier: Apache-2.0
"""Table names in queries, found by Spark's own grammar and replaced."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.engine.parser import bare_grammar
from limnos.pipeline.engine.relations import NamedRelation, NameForm, query_names, relations, splice_names
from limnos.pipeline.problems import InvalidQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMES = {
    "SELECT * FROM a.b": ["a.b"],
    "SELECT '😀 from x.y', `ä😀`.i FROM c.`ns 😀`.`d.e` AS `ä😀` JOIN t2": ["c.`ns 😀`.`d.e`", "t2"],
    "SELECT * FROM `a``b`.c -- FROM z.z\nWHERE '--' = \"FROM q.q\" /* FROM /* n.n */ r.r */": ["`a``b`.c"],
    "SELECT * FROM a /* here */ . b": ["a /* here */ . b"],
    "SELECT * FROM (a.b JOIN c.d) WHERE x IN (SELECT y FROM e.f) OR EXISTS (SELECT 1 FROM g.h)": [
        "a.b",
        "c.d",
        "e.f",
        "g.h",
    ],
    "SELECT (SELECT max(x) FROM a.b), CASE WHEN 1 > (SELECT 2 FROM c.d) THEN 1 END FROM e.f": ["a.b", "c.d", "e.f"],
    "SELECT * FROM a.b, LATERAL (SELECT b.x + y FROM c.d)": ["a.b", "c.d"],
    "SELECT * FROM a.b LATERAL VIEW explode(x) e AS y": ["a.b"],
    "SELECT * FROM a.b PIVOT (sum(x) FOR y IN (1, 2))": ["a.b"],
    "SELECT * FROM a.b UNPIVOT (v FOR k IN (x, y))": ["a.b"],
    "SELECT * FROM a.b TABLESAMPLE (10 PERCENT) s": ["a.b"],
    "SELECT * FROM a.b WITH (`split-size` = 5) s": ["a.b"],
    "SELECT sum(x) OVER w FROM a.b WINDOW w AS (ORDER BY (SELECT max(y) FROM c.d))": ["a.b", "c.d"],
    "VALUES (1), (2)": [],
    "SELECT * FROM range(10)": [],
    "FROM a.b |> WHERE x > 1 |> SELECT y": ["a.b"],
    "SELECT TRANSFORM (x) USING 'cat' AS (y) FROM a.b": ["a.b"],
    "SELECT * FROM a.b UNION ALL SELECT * FROM c.d ORDER BY 1;": ["a.b", "c.d"],
    "SELECT * FROM a.b a LEFT ANTI JOIN a.b c USING (x)": ["a.b", "a.b"],
    # Names of WITH, by scope.
    "WITH r AS (SELECT 1 FROM a.b) SELECT * FROM r": ["a.b"],
    "WITH r AS (SELECT * FROM u), u AS (SELECT 1) SELECT * FROM r, u": ["u"],
    "WITH r AS (SELECT * FROM R) SELECT * FROM r": ["R"],
    "WITH r AS (SELECT 1) SELECT * FROM a.r, R, `r`, x WHERE EXISTS (SELECT 1 FROM r)": ["a.r", "x"],
    "SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q) s, q": ["q"],
    "WITH r AS (WITH q AS (SELECT 1) SELECT * FROM q) SELECT * FROM r, q": ["q"],
    "WITH r AS (SELECT 1), s AS (WITH r AS (SELECT 2 FROM r) SELECT * FROM r) SELECT * FROM s": [],
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r, s": ["s"],
    "WITH `R r` AS (SELECT 1) SELECT * FROM `r R`": [],
}


@pytest.mark.parametrize("sql", NAMES)
def test_table_names_are_extracted_with_spans(sql: str) -> None:
    """Every table name that is not a CTE in its scope is found once per occurrence, with its span, and nothing else."""
    references = relations(None, sql)

    assert [sql[one.start : one.stop] for one in references] == NAMES[sql]


REFUSED = {
    "INSERT INTO a.b SELECT 1": "one query",
    "FROM a.b INSERT INTO c.d SELECT * INSERT INTO e.f SELECT *": "one query",
    "WITH x AS (SELECT 1) INSERT INTO b SELECT * FROM x": "one query",
    "MERGE INTO a USING b ON a.i = b.i WHEN MATCHED THEN DELETE": "one query",
    "DELETE FROM a.b": "one query",
    "DROP TABLE a.b": "one query",
    "CREATE TABLE a.b AS SELECT 1": "one query",
    "CACHE TABLE a AS SELECT 1": "one query",
    "CALL main.system.expire_snapshots('a.b')": "one query",
    "SET x = 1": "one query",
    "EXPLAIN SELECT 1": "one query",
    "EXECUTE IMMEDIATE 'SELECT 1'": "one query",
    "BEGIN SELECT 1; END": "'BEGIN'",
    "SELECT 1; DROP TABLE a": "'DROP'",
    "SELECT * FROM IDENTIFIER('a.b')": "IDENTIFIER",
    "SELECT * FROM IDENTIFIER(:t)": "IDENTIFIER",
    "SELECT * FROM STREAM a.b": "stream",
    "SELECT * FROM parquet.`/data/x`": r"files: /data/x, format: parquet",
    "SELECT '${spark.app.name}'": "parameter",
    "SELECT ? FROM a.b": "parameter",
    "SELECT": "end of input",
    "": "end of input",
    "SELECT * FROM f(TABLE a.b)": "parentheses are missing",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_statements_other_than_plain_queries_are_refused(sql: str) -> None:
    """Statements that write, or determine a table name only at run time, are refused with a message."""
    with pytest.raises(InvalidQuery, match=REFUSED[sql]):
        relations(None, sql)


def test_refusal_has_line_and_column() -> None:
    """Line and column begin at one, in the query's own text."""
    with pytest.raises(InvalidQuery) as refused:
        relations(None, "SELECT 1,\n  2 FROM a.b\n  WHER x > 1")

    assert (refused.value.line, refused.value.column) == (3, 8)


def test_parameter_names_are_extracted() -> None:
    """Parameter names are found, also if a plan cannot be made without their values."""
    sql = "SELECT :a, ':no', `:no` FROM t.u TABLESAMPLE (:b ROWS) WHERE x > interval :c day -- :no\nLIMIT :d"

    parsed_names = query_names(None, sql)

    assert parsed_names.parameters == {"a", "b", "c", "d"}
    assert [one.parts for one in parsed_names.relations] == [("t", "u")]


def test_tables_with_as_of_in_query_are_not_pinned() -> None:
    """Tables with VERSION AS OF or TIMESTAMP AS OF in the query are reported and not pinned."""
    sql = "SELECT * FROM a.b VERSION AS OF 12 x, a.b FOR TIMESTAMP AS OF '2026-01-01' y, a.b z"
    references = relations(None, sql)

    assert [one.travels for one in references] == [True, True, False]
    assert splice_names(sql, references, texts={("a", "b"): "a.b VERSION AS OF 7"}) == sql.replace(
        "a.b z", "a.b VERSION AS OF 7 z"
    )
    assert splice_names(sql, references, texts={}, past={("a", "b"): "c.a.b"}) == (
        "SELECT * FROM c.a.b VERSION AS OF 12 x, c.a.b FOR TIMESTAMP AS OF '2026-01-01' y, a.b z"
    )


PINNED = {
    "SELECT '😀', * FROM c.`n😀`.t AS x, c.`n😀`.t": "SELECT '😀', * FROM § AS x, §",
    "TABLE c.`n😀`.t": "(SELECT * FROM §)",
    "TABLE c.`n😀`.t UNION (TABLE c.`n😀`.t) ORDER BY 1": "(SELECT * FROM §) UNION ((SELECT * FROM §)) ORDER BY 1",
    "SELECT * FROM f(TABLE(c.`n😀`.t))": "SELECT * FROM f(TABLE(SELECT * FROM §))",
    "SELECT * FROM c.`n😀`.t TABLESAMPLE (5 ROWS) s": "SELECT * FROM § TABLESAMPLE (5 ROWS) s",
    "SELECT * FROM c.`n😀`.t WITH (`k` = 1) s": "SELECT * FROM § WITH (`k` = 1) s",
    "SELECT * FROM c.`n😀`.t PIVOT (sum(x) FOR y IN (1))": "SELECT * FROM § PIVOT (sum(x) FOR y IN (1))",
    "WITH t AS (TABLE c.`n😀`.t) FROM t |> WHERE x > 1": "WITH t AS ((SELECT * FROM §)) FROM t |> WHERE x > 1",
}
PIN = "c.`n😀`.t VERSION AS OF 8123"


@pytest.mark.parametrize("sql", PINNED)
def test_query_with_pinned_names_parses_with_versions(sql: str) -> None:
    """The query with pinned names is as a user would write it, and is parsed as a query in which every table has a
    version.
    """
    pinned = splice_names(sql, relations(None, sql), texts={("c", "n😀", "t"): PIN})

    assert pinned == PINNED[sql].replace("§", PIN)
    assert {(one.parts, one.travels) for one in relations(None, pinned)} == {(("c", "n😀", "t"), True)}


def test_names_of_sources_are_not_replaced() -> None:
    """Sources keep their names, which the session resolves."""
    sql = "SELECT * FROM flights JOIN a.b"

    assert splice_names(sql, relations(None, sql), texts={("a", "b"): "X"}) == "SELECT * FROM flights JOIN X"


def _random_query(dice: random.Random, depth: int, bound: tuple[str, ...], names: list[str]) -> str:
    """Return a random query; its table names are appended to `names`, in the order of the text."""

    def table() -> str:
        if bound and dice.random() < 0.3:
            return dice.choice(bound)
        name = dice.choice(["a.t", "c.`n 😀`.`x.y`", "b . u", "src", "`q``r`.v"])
        names.append(name)
        return name

    def below(more: tuple[str, ...] = ()) -> str:
        return _random_query(dice, depth - 1, (*bound, *more), names)

    if depth == 0:
        return f"SELECT '😀 FROM no.no' AS x /* FROM no.no */ FROM {table()} AS s{dice.randrange(99)}"
    shape = dice.randrange(9)
    if shape == 0:
        cte = f"k{depth}"
        return f"WITH {cte} AS ({below()}) ({below((cte,))})"
    if shape == 1:
        return f"SELECT x FROM {table()} y WHERE x IN ({below()}) AND EXISTS ({below()})"
    if shape == 2:
        return f"({below()}) UNION ALL ({below()})"
    if shape == 3:
        return f"SELECT * FROM ({below()}) l JOIN {table()} r ON l.x = (SELECT max(x) FROM ({below()}))"
    if shape == 4:
        return f"SELECT s.x, lag(x) OVER w AS x2 FROM {table()} s WINDOW w AS (ORDER BY ({below()}))"
    if shape == 5:
        return f"SELECT * FROM {table()} m, LATERAL ({below()}) n"
    if shape == 6:
        return f"FROM {table()} |> WHERE x > 1 |> SELECT x |> UNION ALL ({below()})"
    if shape == 7:
        return f"(TABLE {table()}) EXCEPT ({below()})"
    return f"SELECT count(*) FILTER (WHERE x NOT IN ({below()})) AS x FROM {table()} GROUP BY ({below()})"


def test_names_in_random_queries_are_extracted_and_replaced() -> None:
    """In generated queries exactly the inserted names are found; after their replacement exactly the new ones are
    found.
    """
    dice = random.Random(20261121)
    pins = (f"z.`p{number}` VERSION AS OF {number}" for number in itertools.count())
    for _ in range(150):
        names: list[str] = []
        sql = _random_query(dice, dice.randrange(5), (), names)
        references = relations(None, sql)
        texts = {one.parts: next(pins) for one in references}
        pinned = splice_names(sql, references, texts=texts)
        again = relations(None, pinned)

        assert [sql[one.start : one.stop].removeprefix("TABLE ") for one in references] == names
        assert len(again) == len(references)
        assert all(one.travels for one in again)
        assert [pinned[one.start : one.stop] for one in again] == [texts[one.parts].split(" ")[0] for one in references]


def test_grammatical_form_of_name_is_recognized() -> None:
    """The grammatical form of a name determines what may replace it; a table may be called `table`."""
    assert relations(None, "TABLE table.x") == (
        NamedRelation(parts=("table", "x"), start=0, stop=13, form=NameForm.STATEMENT),
    )
    assert relations(None, "SELECT * FROM table") == (NamedRelation(parts=("table",), start=14, stop=19),)


def test_second_parse_reuses_the_java_process() -> None:
    """A second parse uses the Java process of the first."""
    assert bare_grammar() is bare_grammar()


QUALIFIED = {
    "SELECT la.t.id, c.la.t.v FROM la.t WHERE LA.`T`.v > 0": "SELECT t.id, t.v FROM § AS t WHERE t.v > 0",
    "SELECT la.t.*, x.y FROM la.t JOIN x": "SELECT t.*, x.y FROM § AS t JOIN x",
    "SELECT la.t.v, lc.t.v.f FROM la.t, lc.t": "SELECT la__t.v, lc__t.v.f FROM § AS la__t, § AS lc__t",
    "SELECT t.v, la.t.v FROM la.t, lc.t": "SELECT t.v, la.t.v FROM § AS t, § AS t",
    "SELECT la.t.v FROM la.t AS o": "SELECT la.t.v FROM § AS o",
    "SELECT f(la.t.v).la.t, a[0].b FROM la.t": "SELECT f(t.v).la.t, a[0].b FROM § AS t",
}


@pytest.mark.parametrize("sql", QUALIFIED)
def test_columns_follow_the_alias_of_a_renamed_table(sql: str) -> None:
    """Columns that a table's whole name qualifies are qualified by its alias. If several tables have the last part of
    their names in common, each has its own alias, unless a column is qualified by that part alone.
    """
    names = relations(None, sql)
    texts = {one.parts: "§" for one in names if len(one.parts) > 1}

    assert splice_names(sql, names, texts=texts, renamed=frozenset(texts)) == QUALIFIED[sql]


STAMPS = {
    "SELECT id, :at AS at FROM a.t": {"at"},
    "SELECT :at FROM a.t UNION ALL SELECT now() FROM a.t": {"at"},
    "SELECT :at + INTERVAL 1 DAY AS at FROM a.t": set(),
    "SELECT :at AS at FROM a.t WHERE x < :at": set(),
    "SELECT * FROM (SELECT :at AS at FROM a.t)": set(),
    "WITH c AS (SELECT :at AS at FROM a.t) SELECT * FROM c": set(),
}


@pytest.mark.parametrize("sql", STAMPS)
def test_parameters_that_only_stamp_rows_are_known(sql: str) -> None:
    """A parameter that is a column of the query itself, and is used nowhere else, chooses no rows."""
    assert query_names(None, sql).stamps == STAMPS[sql]


SETTINGS = ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers")


@pytest.mark.spark
def test_same_text_is_parsed_again_under_other_settings(here: SparkSession) -> None:
    """A setting by which double quotes are identifiers changes the names in a text that was parsed before."""
    for name in SETTINGS:
        here.conf.set(name, "true")
    try:
        assert [one.parts for one in query_names(here, 'SELECT * FROM "c"').relations] == [("c",)]
    finally:
        for name in SETTINGS:
            here.conf.unset(name)
    with pytest.raises(InvalidQuery):
        query_names(here, 'SELECT * FROM "c"')
