# SPDX-License-Identifier: Apache-2.0
"""Row rules with real writes: every action, rules that Spark refuses, unusual names, empty and NULL rows, one pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import (
    Expectation,
    ExpectationAction,
    RuleKind,
    Sql,
    StepDeclaration,
    WriteDeclaration,
    WriteMode,
)
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.engine.expectations import RowRules, has_failed_expectation
from limnos.pipeline.engine.naming import quote_identifier
from tests.pipeline.engine.spark_jobs import SparkJobCount

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.declared_values import Parts

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def row(
    name: str, condition: str, action: ExpectationAction = ExpectationAction.FAIL, tolerated: float = 0.0
) -> Expectation:
    """A row rule, as written in line 7 of a file."""
    return Expectation(
        name=name,
        kind=RuleKind.ROW,
        action=action,
        tolerated=tolerated,
        condition=condition,
        at=SourcePosition("p.yaml", 7, 5),
    )


def step(table: Parts, *rules: Expectation) -> StepDeclaration:
    """A step with these rules."""
    return StepDeclaration(table=table, body=Sql(text="SELECT 1"), expectations=rules)


def fill(spark: SparkSession, table: Parts, frame: DataFrame) -> str:
    """Write `frame` into a new table with the branch `work`, as steps do, and return how SQL names the branch."""
    name = quote_identifier(table)
    spark.createDataFrame([], frame.schema).writeTo(name).create()
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH work")
    frame.writeTo(f"{name}.`branch_work`").append()
    return f"{name}.`branch_work`"


def ten(spark: SparkSession) -> DataFrame:
    """Ten rows: id 0 to 9, v NULL where id is 3."""
    return spark.range(10).selectExpr("id", "CASE WHEN id <> 3 THEN id * 10 END AS v")


def test_violations_are_counted_during_the_write(here: SparkSession, corner: Parts) -> None:
    """All rules are counted while the rows are written; NULL violates a rule; samples are of violating rows."""
    rules = RowRules(
        step(
            (*corner, "t"),
            row("small", "id < 8"),
            row("known", "v >= 0", ExpectationAction.WARN),
            row("fine", "id >= 0"),
        )
    )

    frame, counted = rules.watch(ten(here))
    branch = fill(here, (*corner, "t"), frame)
    findings = counted.findings(lambda: here.table(branch), rows=10)

    assert frame.columns == ["id", "v"]
    assert [(one.broken, one.checked, one.held) for one in findings] == [
        (2, 10, False),
        (1, 10, False),
        (0, 10, True),
    ]
    assert findings[0].sample == '[{"id": "8", "v": "80"}, {"id": "9", "v": "90"}]'
    assert findings[1].sample == '[{"id": "3", "v": null}]'
    assert findings[2].sample is None
    assert has_failed_expectation(findings)
    assert not has_failed_expectation(findings[1:])


def test_counts_of_nondeterministic_source_match_written_rows(here: SparkSession, corner: Parts) -> None:
    """If each reading of the source gives different rows, the counts are those of the written rows."""
    rules = RowRules(step((*corner, "t"), row("half", "r < 0.5", ExpectationAction.WARN)))

    frame, counted = rules.watch(here.range(10_000).selectExpr("id", "rand() AS r"))
    branch = fill(here, (*corner, "t"), frame)
    findings = counted.findings()

    assert findings[0].broken == here.table(branch).where("r >= 0.5").count()


def test_mismatched_counts_are_recomputed_from_branch(here: SparkSession, corner: Parts) -> None:
    """If the observed counts do not match the number of written rows, the rows of the branch are counted."""
    rules = RowRules(step((*corner, "t"), row("small", "id < 8")))
    frame, counted = rules.watch(ten(here))
    frame.limit(4).collect()  # the observation counts these rows only

    branch = fill(here, (*corner, "t"), ten(here))
    findings = counted.findings(lambda: here.table(branch), rows=10)

    assert (findings[0].broken, findings[0].checked) == (2, 10)


def test_staged_rows_are_dropped_or_quarantined(here: SparkSession, corner: Parts) -> None:
    """Dropped rows are removed, quarantined rows have the names of all violated rules; both come from one reading of
    the source.
    """
    source_rows = here.range(10).selectExpr("id", "rand() AS r")
    rules = RowRules(
        step(
            (*corner, "t"),
            row("not three", "id <> 3", ExpectationAction.DROP),
            row("small", "id < 7", ExpectationAction.QUARANTINE),
            row('not nine, "said" he', "id <> 9", ExpectationAction.QUARANTINE, 0.5),
            row("even", "id % 2 = 0", ExpectationAction.WARN),
            row("not eight", "id <> 8"),
        )
    )

    staged = rules.stage(source_rows, run="run-1", at=AT)
    retained_rows = staged.rows.collect()
    aside = staged.quarantined.orderBy("id").collect() if staged.quarantined else []

    assert [one.id for one in retained_rows] == [0, 1, 2, 4, 5, 6]
    assert [(one.id, list(one._rule), one._run) for one in aside] == [
        (7, ["small"], "run-1"),
        (8, ["small"], "run-1"),
        (9, ["small", 'not nine, "said" he'], "run-1"),
    ]
    assert {one.r for one in retained_rows} == {one.r for one in staged.rows.collect()}
    assert [(one.broken, one.checked) for one in staged.findings] == [(1, 10), (3, 10), (1, 10), (2, 6), (0, 6)]
    assert not has_failed_expectation(staged.findings)
    staged.release()


def test_row_to_drop_and_quarantine_is_quarantined(here: SparkSession, corner: Parts) -> None:
    """A row that violates a `drop` and a `quarantine` rule is quarantined."""
    rules = RowRules(
        step(
            (*corner, "t"), row("a", "id < 5", ExpectationAction.DROP), row("b", "id < 8", ExpectationAction.QUARANTINE)
        )
    )

    staged = rules.stage(here.range(10), run="run-1", at=AT)

    assert staged.rows.count() == 5
    assert staged.quarantined is not None
    assert [(one.id, list(one._rule)) for one in staged.quarantined.orderBy("id").collect()] == [
        (8, ["a", "b"]),
        (9, ["a", "b"]),
    ]
    staged.release()


def test_released_stage_occupies_no_storage_blocks(here: SparkSession, corner: Parts) -> None:
    """After its release a stage occupies no storage blocks."""
    persistent_rdds = here.sparkContext._jsc.getPersistentRDDs
    rules = RowRules(step((*corner, "t"), row("a", "id < 5", ExpectationAction.DROP)))
    before = persistent_rdds().size()

    staged = rules.stage(here.range(10), run="run-1", at=AT)
    while_held = persistent_rdds().size()
    staged.release()

    assert while_held == before + 1
    assert persistent_rdds().size() == before


@pytest.mark.parametrize(
    "condition,words",
    [
        ("nothing > 1", "UNRESOLVED_COLUMN"),
        ("id >", "line 2, column 1"),
        ("id > 1 AND\n  )", "line 2, column 3"),
        ("id", "is of type bigint"),
        ("'yes'", "is of type string"),
        ("1) AS x, (2", "not one condition"),
        ("true) FROM VALUES (1) AS t(id) --", "line 2, column 1"),
        ("count(*) > 1", "Spark"),
        ("explode(array(1, 2)) > 1", "Spark"),
        ("id IN (SELECT id FROM here.others)", "reads the table here.others"),
        ("id > :nobody", "Spark"),
        ("", "not SQL"),
    ],
)
def test_unusable_rule_is_refused_before_a_write(here: SparkSession, corner: Parts, condition: str, words: str) -> None:
    """A condition that Spark refuses is reported with position, name and error, and nothing runs."""
    rules = RowRules(step((*corner, "t"), row("fine", "id > 0"), row("wrong", condition)))

    with pytest.raises(BadRequest, match=r"^p\.yaml:7:5: expectation 'wrong' of ") as refused:
        rules.watch(ten(here))

    assert words in refused.value.message


def test_condition_may_have_comments_braces_and_parameters(here: SparkSession, corner: Parts) -> None:
    """A condition may contain a trailing comment, braces, quotes and a named parameter."""
    rules = RowRules(
        step(
            (*corner, "t"),
            row("comment", "id < 9 -- not the last"),
            row("braces", "concat('{v}', id) <> '{v}4' /* }{ */"),
            row("parameter", "id <> :left_out"),
            row("null", "NULL", ExpectationAction.WARN),
        ),
        parameters={"left_out": 5},
    )

    frame, counted = rules.watch(ten(here))
    fill(here, (*corner, "t"), frame)

    assert [one.broken for one in counted.findings()] == [1, 1, 1, 10]


def test_special_characters_in_names_need_no_escaping(here: SparkSession, corner: Parts) -> None:
    """Dots, back quotes, quotes, blanks and braces in names of columns and rules need no escaping."""
    odd = ["a.b", "ba`ck", "quo'te", 'dou"ble', "sp ace", "{x}", "semi;colon", "--"]
    frame = here.range(4).selectExpr("id", *(f"id AS {quote_identifier([name])}" for name in odd))
    rules = [row(f"{name} is small", f"{quote_identifier([name])} < 3") for name in odd]
    aside = [row(f"{name} has none", f"{quote_identifier([name])} > 0", ExpectationAction.QUARANTINE) for name in odd]

    watched, counted = RowRules(step((*corner, "t"), *rules)).watch(frame)
    branch = fill(here, (*corner, "t"), watched)
    findings = counted.findings(lambda: here.table(branch), rows=4)
    staged = RowRules(step((*corner, "t"), *rules, *aside)).stage(frame, run="r", at=AT)

    assert [one.broken for one in findings] == [1] * len(odd)
    assert all("a.b" in (one.sample or "") for one in findings)
    assert staged.quarantined is not None
    assert staged.quarantined.columns == ["id", *odd, "_rule", "_run", "_at"]
    assert len(staged.quarantined.collect()[0]._rule) == len(odd)
    staged.release()


def test_rules_are_satisfied_without_rows(here: SparkSession, corner: Parts) -> None:
    """Without rows every rule is satisfied, observed or staged."""
    none = ten(here).where("id > 100")
    frame, counted = RowRules(step((*corner, "t"), row("a", "id < 0"))).watch(none)
    fill(here, (*corner, "t"), frame)

    staged = RowRules(step((*corner, "t"), row("a", "id < 0", ExpectationAction.QUARANTINE))).stage(
        none, run="r", at=AT
    )

    assert [(one.broken, one.checked, one.held) for one in counted.findings()] == [(0, 0, True)]
    assert [(one.broken, one.checked, one.held) for one in staged.findings] == [(0, 0, True)]
    staged.release()


def test_null_values_violate_every_condition(here: SparkSession, corner: Parts) -> None:
    """A condition over NULL evaluates to NULL, which violates the rule, negated or not."""
    nothing = here.range(3).selectExpr("CAST(NULL AS INT) AS v")
    rules = RowRules(step((*corner, "t"), row("a", "v > 0"), row("b", "NOT (v > 0)"), row("c", "v IS NULL")))

    frame, counted = rules.watch(nothing)
    fill(here, (*corner, "t"), frame)

    assert [one.broken for one in counted.findings()] == [3, 3, 0]


def test_dataframe_is_unchanged_without_rules(here: SparkSession, corner: Parts) -> None:
    """Without rules the DataFrame is returned unchanged, and there are no findings."""
    frame = ten(here)

    watched, counted = RowRules(step((*corner, "t"))).watch(frame)

    assert watched is frame
    assert counted.findings() == ()


def test_drop_rules_are_refused_without_a_stage(here: SparkSession, corner: Parts) -> None:
    """Rules that drop rows are refused without a stage, because the rows to be dropped would be published."""
    rules = RowRules(step((*corner, "t"), row("a", "id < 5", ExpectationAction.DROP)))

    assert rules.need_stage
    assert not rules.quarantine
    with pytest.raises(BadRequest, match="must be staged"):
        rules.watch(ten(here))


@pytest.mark.parametrize("name", ["_rule", "_RUN", "_at"])
def test_column_named_like_quarantine_column_is_refused(here: SparkSession, corner: Parts, name: str) -> None:
    """A step whose column has a name of a quarantine column is refused before it runs."""
    rules = RowRules(step((*corner, "t"), row("a", "id < 5", ExpectationAction.QUARANTINE)))

    with pytest.raises(BadRequest, match="rename it"):
        rules.stage(here.range(3).selectExpr("id", f"1 AS {name}"), run="r", at=AT)


def test_rules_need_no_job_beyond_the_write(here: SparkSession, corner: Parts) -> None:
    """All rules of a step need no job apart from that of the write, and samples are read only for violated rules."""
    conditions = [row(f"r{number}", f"id <> {number * 1000}", ExpectationAction.WARN) for number in range(9)]
    rules = RowRules(step((*corner, "t"), *conditions, row("all", "id >= 0")))
    fill(here, (*corner, "t"), here.range(1))
    jobs = SparkJobCount(here)

    frame, counted = rules.watch(here.range(0, 1_000_000, 1, 4))
    frame.writeTo(f"{quote_identifier((*corner, 't'))}.`branch_work`").overwritePartitions()
    findings = counted.findings()

    assert jobs.count() == 1
    assert [(one.broken, one.checked) for one in findings] == [(1, 1_000_000)] * 9 + [(0, 1_000_000)]


def test_many_rows_are_counted_after_the_write(here: SparkSession, corner: Parts) -> None:
    """Conditions that read few columns of many rows are counted in the written rows: by one further job, and without an
    observation in the write.
    """
    rules = RowRules(step((*corner, "t"), row("small", "id < 2999990"), row("even", "v % 2 = 0")))
    rows = here.range(0, 3_000_000, 1, 4).selectExpr("id", "2 * id AS v", "0 AS w")
    fill(here, (*corner, "t"), rows.limit(1))

    frame, counted = rules.watch(rows)
    frame.writeTo(f"{quote_identifier((*corner, 't'))}.`branch_work`").overwritePartitions()
    jobs = SparkJobCount(here)
    findings = counted.findings(lambda: here.table(f"{quote_identifier((*corner, 't'))}.`branch_work`"), rows=3_000_000)

    assert frame is rows
    assert [(one.broken, one.checked) for one in findings] == [(10, 3_000_000), (0, 3_000_000)]
    assert jobs.count() <= 4  # counts, and a sample of the violated rule


@pytest.mark.parametrize(
    "condition",
    [
        "rand() < 2",
        "input_file_name() <> 'x'",
        "row_number() OVER (ORDER BY id) > 0",
        "id + v + w + x >= 0",
    ],
)
def test_conditions_are_counted_during_the_write_if_the_table_may_differ(here: SparkSession, condition: str) -> None:
    """Conditions that are not deterministic, that depend on other rows, or that read many columns are observed in the
    write also for many rows.
    """
    rules = RowRules(step(("a", "t"), row("rule", condition)))
    rows = here.range(0, 3_000_000, 1, 4).selectExpr("id", "id AS v", "id AS w", "id AS x")

    frame, _ = rules.watch(rows)

    assert "CollectMetrics" in frame._jdf.queryExecution().analyzed().toString()
    assert frame.columns == rows.columns


def test_staged_rows_of_a_merge_are_counted(here: SparkSession) -> None:
    """Rows that a merge has staged are counted there, because the table does not show which rows it got."""
    declaration = replace(
        step(("a", "t"), row("small", "id < 2999990")), write=WriteDeclaration(mode=WriteMode.MERGE, keys=("id",))
    )
    rows = here.range(0, 3_000_000, 1, 4)

    frame, counted = RowRules(declaration).watch(rows)
    counted.count_staged(frame)

    assert [(one.broken, one.checked) for one in counted.findings()] == [(10, 3_000_000)]


def test_append_of_no_rows_violates_nothing(here: SparkSession) -> None:
    """A write that adds no rows has no rows to count."""
    declaration = replace(step(("a", "t"), row("small", "id < 8")), write=WriteDeclaration(mode=WriteMode.APPEND))

    _, counted = RowRules(declaration).watch(here.range(0, 3_000_000, 1, 4))

    assert [(one.broken, one.checked, one.held) for one in counted.findings(rows=0)] == [(0, 0, True)]
