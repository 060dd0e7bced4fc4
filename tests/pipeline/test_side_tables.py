# SPDX-License-Identifier: Apache-2.0
"""The tables that belong to a step's own table, such as its quarantine."""

from __future__ import annotations

import pytest

from limnos.pipeline.declaration import (
    Expectation,
    ExpectationAction,
    Load,
    Pipeline,
    PythonStep,
    RuleKind,
    Sql,
    StepDeclaration,
)
from limnos.pipeline.side_tables import selects_from, tables_of
from limnos.pipeline.source_declarations import DeclaredSource, Files, MalformedRowPolicy, Stream

TABLE = ("main", "raw", "x.y")


@pytest.mark.parametrize(
    "action,malformed,is_loaded,suffixes",
    [
        (ExpectationAction.QUARANTINE, MalformedRowPolicy.KEEP, True, ["__quarantine", "__malformed"]),
        (ExpectationAction.QUARANTINE, MalformedRowPolicy.FAIL, False, ["__quarantine"]),
        (ExpectationAction.DROP, MalformedRowPolicy.KEEP, True, ["__malformed"]),
        (ExpectationAction.DROP, MalformedRowPolicy.COUNT, True, []),
    ],
)
def test_quarantined_and_malformed_rows_have_side_tables(
    action: ExpectationAction, malformed: MalformedRowPolicy, is_loaded: bool, suffixes: list[str]
) -> None:
    """Quarantined rows and kept malformed rows have tables next to the step's table; dropped and counted rows have
    none.
    """
    source = DeclaredSource(name="files", kind=Files(path="x.csv", format="csv", malformed=malformed))
    step = StepDeclaration(
        table=TABLE,
        body=Load(source="files") if is_loaded else Sql(text="SELECT 1"),
        expectations=(Expectation(name="e", kind=RuleKind.ROW, action=action),),
    )

    tables = tables_of(Pipeline(name="p", catalog="main", sources=(source,), steps=(step,)), step)

    assert tables == (TABLE, *[("main", "raw", f"x.y{suffix}") for suffix in suffixes])


@pytest.mark.parametrize(
    "body,sources,is_kept",
    [
        (Sql(text="SELECT * FROM a.t JOIN `Files` USING (id)"), None, True),
        (Sql(text="SELECT * FROM my_files"), None, False),
        (Sql(text="SELECT files FROM a.t"), None, True),
        (Sql(text="SELECT files FROM a.t"), {"other"}, False),
        (Sql(text="SELECT 1"), {"files"}, True),
        (PythonStep(function="m:f", inputs={"x": "files"}), None, True),
        (PythonStep(function="m:f", inputs={"files": ("a", "t")}), None, False),
    ],
)
def test_malformed_texts_of_every_read_file_source_are_stored(
    body: Sql | PythonStep, sources: set[str] | None, *, is_kept: bool
) -> None:
    """A step keeps malformed texts of every file source that it reads: a query by the sources found in it, or else by
    name; a function by its inputs.
    """
    files = Files(path="x.csv", format="csv", malformed=MalformedRowPolicy.KEEP)
    step = StepDeclaration(table=TABLE, body=body)

    for kind in (files, Stream(files=files)):
        pipeline = Pipeline(name="p", catalog="main", sources=(DeclaredSource(name="files", kind=kind),), steps=(step,))
        tables = tables_of(pipeline, step, sources=sources)
        assert tables[1:] == ((("main", "raw", "x.y__malformed"),) if is_kept else ())


@pytest.mark.parametrize(
    "text,is_read",
    [
        ("SELECT * FROM hives", True),
        ("SELECT * FROM a.t JOIN `Hives` USING (id)", True),
        ("SELECT * FROM a.t, hives", True),
        ("SELECT count(*) AS hives FROM a.t", False),
        ("SELECT * FROM raw.bees.hives", False),
        ("SELECT * FROM hives_of_may", False),
        ("SELECT * FROM hives.archive", False),
        ("SELECT * FROM (hives) JOIN ((b))", True),
        ("TABLE hives", True),
        ("SELECT sum(hives) FROM b", False),
    ],
)
def test_query_selects_from_a_source_where_a_table_may_stand(text: str, *, is_read: bool) -> None:
    """An alias, and a part of a longer name, are no reads of the source of that name."""
    step = StepDeclaration(table=TABLE, body=Sql(text=text))

    assert selects_from(step, "hives") == is_read
