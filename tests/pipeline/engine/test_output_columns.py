# SPDX-License-Identifier: Apache-2.0
"""Names of columns in declarations: those of SELECT lists, of declared schemas and of histories."""

from __future__ import annotations

import pytest

from limnos.pipeline.declaration import Load, Pipeline, Sql, StepBody, StepDeclaration, WriteDeclaration, WriteMode
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.engine.output_columns import column_problems
from limnos.pipeline.source_declarations import DeclaredSource, Files

pytestmark = pytest.mark.spark
PLAIN = WriteDeclaration()


def problems(body: StepBody, write: WriteDeclaration = PLAIN, schema: str | None = None) -> list[str]:
    """Return the problems of one step, with their positions."""
    source = DeclaredSource(name="s", kind=Files(path="a.csv", format="csv", schema=schema))
    step = StepDeclaration(table=("main", "a", "t"), body=body, write=write, at=SourcePosition("p.yaml", 3, 3))
    pipeline = Pipeline(name="p", catalog="main", steps=(step,), sources=(source,))
    return [str(problem) for problem in column_problems(pipeline, spark=None)]


@pytest.mark.parametrize(
    "query,place",
    [
        ("SELECT 1 AS id,\n  2 AS _file", "11:12"),
        ("WITH a AS (SELECT 1 AS _pos) SELECT a.`_ROW_id` FROM a UNION ALL SELECT 1", "10:41"),
        ("(SELECT DISTINCT 1 `_spec_id`)", "10:24"),
        ("SELECT _change_type FROM t ORDER BY 1", "10:12"),
    ],
)
def test_reserved_name_is_found_with_its_position(query: str, place: str) -> None:
    """Aliases and columns of the query's own SELECT list are read; the position is that of the name."""
    (problem,) = problems(Sql(text=query, at=SourcePosition("p.yaml", 10, 5)))

    assert problem.startswith(f"p.yaml:{place}: a.t: the column '_")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT 1 AS _file)",
        "SELECT _file.x, _pos + 1 AS y, max(_pos) FROM t",
        "VALUES (1)",
        "TABLE t",
        "FROM t SELECT a AS b",
        "SELECT a FROM t WHERE _deleted",
        "SELECT 1 AS",
        "SELECT a, `a.a`, b.`A.b` FROM t",
    ],
)
def test_other_names_are_no_problem(query: str) -> None:
    """Names below a star, in expressions and in conditions, and queries without names, are left to the analysis."""
    assert problems(Sql(text=query)) == []


def test_twins_of_a_select_list_are_named() -> None:
    """Equal names, and names that differ by case alone, also with the columns of a history."""
    write = WriteDeclaration(mode=WriteMode.HISTORY, keys=("a",), valid_from="_pos")

    assert problems(Sql(text="SELECT 1 AS a, 2 AS A", at=SourcePosition("p.yaml", 10, 5))) == [
        "p.yaml:10:25: a.t has the columns 'a' and 'A', which differ by case alone: rename one with AS"
    ]
    assert problems(Sql(text="SELECT 1 AS a, a FROM t")) == ["a.t has two columns 'a': rename one with AS"]
    (reserved, twin) = problems(Sql(text="SELECT 1 AS a, 2 AS Is_Current"), write)
    assert "'_pos'" in reserved
    assert "'Is_Current' and 'is_current'" in twin


def test_declared_schema_of_a_loaded_source_is_read() -> None:
    """The columns of a source without a query are those of its schema; an unreadable one is left to its reader."""
    (problem,) = problems(Load(source="s"), schema="id INT, `_deleted` BOOLEAN")

    assert problem.startswith("p.yaml:3:3: a.t: the column '_deleted'")
    assert problems(Load(source="s"), schema="no such") == []
    assert problems(Load(source="s")) == []
