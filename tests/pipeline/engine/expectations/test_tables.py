# SPDX-License-Identifier: Apache-2.0
"""Table rules on a written branch: each kind satisfied and violated, empty tables, NULLs, shares, one query for several
rules.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Expectation, ExpectationAction, RuleKind, Sql, StepDeclaration
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.engine.expectations import has_failed_expectation, table_findings
from limnos.pipeline.engine.expectations.tables import check_columns
from limnos.pipeline.engine.naming import quote_identifier
from tests.pipeline.engine.conftest import CATALOG
from tests.pipeline.engine.spark_jobs import SparkJobCount

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.outcomes import ExpectationFinding

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

AT = datetime(2026, 1, 10, 12, tzinfo=UTC)
PLACE = SourcePosition("p.yaml", 9, 3)
ROWS = """
    SELECT * FROM VALUES
        (1, 'a', 10, TIMESTAMP '2026-01-08 12:00:00'), (2, 'b', NULL, TIMESTAMP '2026-01-09 12:00:00'),
        (2, 'b', 30, NULL), (NULL, 'c', 99, NULL), (NULL, 'c', 10, NULL) AS t(id, `na.me`, other, at)
"""


class Branches:
    """The tables of one test: each written on a branch, while `main` stays empty."""

    def __init__(self, spark: SparkSession, corner: Parts) -> None:
        self.spark = spark
        self.table = (*corner, "made")
        self.add("made", ROWS)
        self.add("others", "SELECT * FROM VALUES (10, 'a'), (30, 'b'), (30, 'b'), (NULL, 'x') AS t(key, `na.me`)")

    def add(self, name: str, query: str) -> None:
        """Write the rows of a query on the branch of a new table."""
        table = quote_identifier((*self.table[:-1], name))
        frame = self.spark.sql(query)
        self.spark.createDataFrame([], frame.schema).writeTo(table).create()
        self.spark.sql(f"ALTER TABLE {table} CREATE BRANCH work")
        frame.writeTo(f"{table}.`branch_work`").append()

    def reads(self, parts: Parts) -> str:
        """Return the SQL text that replaces a table in a query: its branch."""
        return f"{quote_identifier(parts)}.`branch_work`"

    def ask(self, *rules: Expectation, rows_before: int | None = None) -> tuple[ExpectationFinding, ...]:
        """Return the findings of these rules for the table."""
        declaration = StepDeclaration(table=self.table, body=Sql(text="SELECT 1"), expectations=rules)
        return table_findings(
            self.spark, declaration, reads=self.reads, run_at=AT, rows_before=rows_before, parameters={"least": 20}
        )


@pytest.fixture(scope="module")
def branches(here: SparkSession) -> Branches:
    """Two tables with rows on their branches only; tests do not write them."""
    here.sql(f"CREATE NAMESPACE {CATALOG}.table_rules")
    return Branches(here, (CATALOG, "table_rules"))


def rule(kind: RuleKind, **fields: object) -> Expectation:
    """An expectation of a kind, named after it."""
    return Expectation(name=kind.value, kind=kind, at=PLACE, **fields)  # type: ignore[arg-type]


def test_unique_rule_counts_repeated_rows(branches: Branches) -> None:
    """Rows that repeat an earlier row are counted, the first is not; NULL equals nothing; a name with dots is one
    column.
    """
    single, pair, fine = branches.ask(
        rule(RuleKind.UNIQUE, columns=("id",)),
        rule(RuleKind.UNIQUE, columns=("na.me", "id")),
        rule(RuleKind.UNIQUE, columns=("id", "other")),
    )

    assert (single.broken, single.checked, single.held) == (1, 5, False)
    assert single.sample == '[{"id": "2", "repeated": "2"}]'
    assert single.message == "unique: 1 of 5 rows repeat another's id"
    assert pair.broken == 1
    assert (fine.broken, fine.held, fine.sample) == (0, True, None)


def test_not_null_rule_counts_each_row_once(branches: Branches) -> None:
    """A row with NULL in one or more of the columns counts once."""
    one, both, none = branches.ask(
        rule(RuleKind.NOT_NULL, columns=("id",)),
        rule(RuleKind.NOT_NULL, columns=("id", "other")),
        rule(RuleKind.NOT_NULL, columns=("na.me",)),
    )

    assert [(finding.broken, finding.held) for finding in (one, both, none)] == [(2, False), (3, False), (0, True)]
    assert one.sample is not None
    assert '"na.me": "c"' in one.sample


def test_references_are_looked_up_in_the_branch(branches: Branches) -> None:
    """Only references without NULL can be missing; the referenced table is read on the run's branch."""
    others = (*branches.table[:-1], "others")

    lost, paired, same = branches.ask(
        rule(RuleKind.REFERENCES, columns=("other",), table=others, table_columns=("key",)),
        rule(RuleKind.REFERENCES, columns=("other", "na.me"), table=others, table_columns=("key", "na.me")),
        rule(RuleKind.REFERENCES, columns=("id",), table=branches.table),
    )

    assert (lost.broken, lost.checked) == (1, 5)
    assert lost.sample is not None
    assert '"other": "99"' in lost.sample
    assert paired.broken == 2
    assert same.held


@pytest.mark.parametrize(
    "low,high,broken_by", [(None, None, 0), (5, 5, 0), (6, None, 1), (None, 3, 2), (0, 5, 0), (7, 9, 2)]
)
def test_too_few_and_too_many_rows_are_reported(
    branches: Branches, low: int | None, high: int | None, broken_by: int
) -> None:
    """Too few and too many rows are reported, with the required number."""
    (finding,) = branches.ask(rule(RuleKind.ROWS, rows_min=low, rows_max=high))

    assert (finding.broken, finding.held) == (broken_by, broken_by == 0)
    assert "5 rows" in finding.message


@pytest.mark.parametrize("within_s,expected", [(86_400, True), (86_399, False)])
def test_newest_timestamp_is_compared_with_run_start(branches: Branches, within_s: int, expected: bool) -> None:
    """The newest timestamp is compared with the run's start, to the second."""
    (finding,) = branches.ask(rule(RuleKind.FRESH, columns=("at",), within_s=within_s))

    assert finding.held is expected
    assert "1.0 days before the run's start" in finding.message


def test_column_of_nulls_is_not_fresh(branches: Branches) -> None:
    """A column that is NULL in every row is not fresh; a date counts as its midnight."""
    branches.add("dates", "SELECT CAST(NULL AS TIMESTAMP) AS at, DATE '2026-01-10' AS day")
    declaration = StepDeclaration(
        table=(*branches.table[:-1], "dates"),
        body=Sql(text="SELECT 1"),
        expectations=(
            rule(RuleKind.FRESH, columns=("at",), within_s=10**9),
            rule(RuleKind.FRESH, columns=("day",), within_s=43_200),
        ),
    )

    unknown, day = table_findings(branches.spark, declaration, reads=branches.reads, run_at=AT)

    assert not unknown.held
    assert "NULL in all 1" in unknown.message
    assert day.held


@pytest.mark.parametrize(
    "before,tolerated,expected", [(None, 0.0, True), (5, 0.0, True), (6, 0.0, False), (6, 0.2, True)]
)
def test_fewer_rows_than_published_are_reported(
    branches: Branches, before: int | None, tolerated: float, expected: bool
) -> None:
    """A table with fewer rows than published is reported; a tolerated share is relative to the published rows."""
    (finding,) = branches.ask(rule(RuleKind.NO_FEWER_ROWS, tolerated=tolerated), rows_before=before)

    assert finding.held is expected


def test_rule_query_reads_branches_and_parameters(branches: Branches) -> None:
    """A query reads the branches by the tables' own names, in joins and subqueries, and uses the run's parameters."""
    rule_table, others = (quote_identifier((*branches.table[:-1], name)) for name in ("made", "others"))

    lonely, none = branches.ask(
        rule(
            RuleKind.EMPTY,
            query=f"WITH m AS (SELECT * FROM {rule_table}) SELECT * FROM m WHERE other NOT IN "
            f"(SELECT key FROM {others} WHERE key IS NOT NULL)",
        ),
        rule(RuleKind.EMPTY, query=f"SELECT * FROM {rule_table} WHERE id = 1 AND other > :least"),
    )

    assert (lonely.broken, lonely.held) == (1, False)
    assert lonely.message == "empty: the query returned 1 rows, none were expected"
    assert lonely.sample is not None
    assert none.held


def test_empty_table_violates_only_rules_requiring_rows(branches: Branches) -> None:
    """An empty table violates only rules that require rows; duplicate, NULL and lost rows need rows."""
    branches.add("none", ROWS + " WHERE 1 = 0")
    declaration = StepDeclaration(
        table=(*branches.table[:-1], "none"),
        body=Sql(text="SELECT 1"),
        expectations=(
            rule(RuleKind.UNIQUE, columns=("id",)),
            rule(RuleKind.NOT_NULL, columns=("id",)),
            rule(RuleKind.REFERENCES, columns=("id",), table=branches.table),
            rule(RuleKind.ROWS, rows_min=1),
            rule(RuleKind.FRESH, columns=("at",), within_s=60),
        ),
    )

    findings = table_findings(branches.spark, declaration, reads=branches.reads, run_at=AT)

    assert [finding.held for finding in findings] == [True, True, True, False, False]


def test_tolerated_share_and_warning_do_not_fail_a_run(branches: Branches) -> None:
    """A tolerated share is relative to the table's rows; a warning is reported and does not prevent the publication."""
    findings = branches.ask(
        rule(RuleKind.UNIQUE, columns=("id",), tolerated=0.2),
        rule(RuleKind.NOT_NULL, columns=("id",), action=ExpectationAction.WARN),
    )

    assert [finding.held for finding in findings] == [True, False]
    assert not has_failed_expectation(findings)


def test_table_rules_share_one_query(branches: Branches) -> None:
    """All `not_null`, `rows`, `fresh` and `no_fewer_rows` rules need one query together; each `unique` rule counts by
    its keys.
    """
    few = [rule(RuleKind.NOT_NULL, columns=("na.me",)), rule(RuleKind.ROWS, rows_max=9)]
    many = [
        *few * 3,
        rule(RuleKind.UNIQUE, columns=("id", "other")),
        rule(RuleKind.UNIQUE, columns=("other", "na.me", "id")),
    ]
    many += [rule(RuleKind.FRESH, columns=("at",), within_s=10**9), rule(RuleKind.NO_FEWER_ROWS)]
    jobs = SparkJobCount(branches.spark)
    findings = branches.ask(*few)
    alone = jobs.count()

    jobs = SparkJobCount(branches.spark)
    findings += branches.ask(*many)

    assert all(finding.held for finding in findings)
    assert jobs.count() <= alone + 2 * 3  # two counts with two shuffles each; adaptive plans run a job per shuffle


def test_rules_with_queries_of_their_own_need_no_further_count(branches: Branches) -> None:
    """A `unique` and a `references` rule count the rows in their own queries: a `rows` rule beside them adds one."""
    own = [
        rule(RuleKind.UNIQUE, columns=("id",)),
        rule(RuleKind.REFERENCES, columns=("id",), table=branches.table, table_columns=("id",)),
    ]
    jobs = SparkJobCount(branches.spark)
    findings = branches.ask(*own)
    alone = jobs.count()

    jobs = SparkJobCount(branches.spark)
    branches.ask(*own, rule(RuleKind.ROWS, rows_max=9))

    assert [(each.broken, each.checked) for each in findings] == [(1, 5), (0, 5)]
    assert jobs.count() > alone


@pytest.mark.parametrize(
    "fields,words",
    [
        ({"kind": RuleKind.UNIQUE, "columns": ("nobody",)}, "names a column 'nobody'; the table has id, na.me"),
        ({"kind": RuleKind.EMPTY, "query": "SELECT * FORM x y"}, "line 1"),
        ({"kind": RuleKind.EMPTY, "query": "SELECT nobody"}, "UNRESOLVED_COLUMN"),
        ({"kind": RuleKind.EMPTY, "query": "DROP TABLE here.x"}, "one query"),
        ({"kind": RuleKind.REFERENCES, "columns": ("id",), "table": None}, "names no table"),
        ({"kind": RuleKind.REFERENCES, "columns": ("id",), "table_columns": ("nobody",)}, "cannot be evaluated"),
    ],
)
def test_unevaluable_rule_is_refused_with_position(branches: Branches, fields: dict[str, object], words: str) -> None:
    """A rule that names missing columns or tables, or is not a query, is refused with its position."""
    arguments = {"table": branches.table, **fields} if fields["kind"] is RuleKind.REFERENCES else fields

    with pytest.raises(BadRequest, match=r"^p\.yaml:9:3: expectation ") as refused:
        branches.ask(Expectation(name="wrong", at=PLACE, **arguments))  # type: ignore[arg-type]

    assert words in refused.value.message


def test_columns_are_checked_before_anything_runs() -> None:
    """Columns that table rules name are checked before the step writes, without regard to case; row rules have none."""
    declaration = StepDeclaration(
        table=("c", "t"),
        body=Sql(text="SELECT 1"),
        expectations=(rule(RuleKind.UNIQUE, columns=("ID",)), rule(RuleKind.ROW, condition="x > 0")),
    )

    check_columns(declaration, ["id", "v"])
    with pytest.raises(BadRequest, match="names a column 'ID'"):
        check_columns(declaration, ["v"])


def test_no_query_runs_without_table_rules(branches: Branches) -> None:
    """Without rules no query runs."""
    jobs = SparkJobCount(branches.spark)

    assert branches.ask(rule(RuleKind.ROW, condition="id > 0")) == ()
    assert jobs.count() == 0
