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
    RuleKind,
    Source,
    Sql,
    Step,
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
