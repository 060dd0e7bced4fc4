"""Which tables lie beside a step's own."""

from __future__ import annotations

import pytest

from limnos.pipeline.aside import tables_of
from limnos.pipeline.declaration import (
    Action,
    Expectation,
    Files,
    Load,
    Malformed,
    Pipeline,
    PythonStep,
    RuleKind,
    Source,
    Sql,
    Step,
    Stream,
)

TABLE = ("main", "raw", "x.y")


@pytest.mark.parametrize(
    "action,malformed,is_loaded,suffixes",
    [
        (Action.QUARANTINE, Malformed.KEEP, True, ["__quarantine", "__malformed"]),
        (Action.QUARANTINE, Malformed.FAIL, False, ["__quarantine"]),
        (Action.DROP, Malformed.KEEP, True, ["__malformed"]),
        (Action.DROP, Malformed.COUNT, True, []),
    ],
)
def test_what_is_kept_apart(action: Action, malformed: Malformed, is_loaded: bool, suffixes: list[str]) -> None:
    """Rows in quarantine and texts that are kept have tables beside the step's; what is dropped or counted has none."""
    source = Source(name="files", kind=Files(path="x.csv", format="csv", malformed=malformed))
    step = Step(
        table=TABLE,
        body=Load(source="files") if is_loaded else Sql(text="SELECT 1"),
        expectations=(Expectation(name="e", kind=RuleKind.ROW, action=action),),
    )

    found = tables_of(Pipeline(name="p", catalog="main", sources=(source,), steps=(step,)), step)

    assert found == (TABLE, *[("main", "raw", f"x.y{suffix}") for suffix in suffixes])


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
def test_texts_are_kept_apart_for_every_step_that_reads_them(
    body: Sql | PythonStep, sources: set[str] | None, *, is_kept: bool
) -> None:
    """A query's sources are those that were found in it, or guessed by name; a function's are its inputs; streams of files count."""
    files = Files(path="x.csv", format="csv", malformed=Malformed.KEEP)
    step = Step(table=TABLE, body=body)

    for kind in (files, Stream(files=files)):
        pipeline = Pipeline(name="p", catalog="main", sources=(Source(name="files", kind=kind),), steps=(step,))
        found = tables_of(pipeline, step, sources=sources)
        assert found[1:] == ((("main", "raw", "x.y__malformed"),) if is_kept else ())
