# SPDX-License-Identifier: Apache-2.0
"""Definitions of steps: what changes them, and what is said about a change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
    WriteDeclaration,
    WriteMode,
)
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.definitions import (
    CODE,
    UNRECORDED,
    change_reason,
    declared_change,
    declared_parts,
    digests,
    encode,
    parameter_parts,
)
from limnos.pipeline.modules import code_of_file
from limnos.pipeline.source_declarations import DeclaredSource, Files

AT = SourcePosition("p.yaml", 1, 1)
RULE = Expectation(name="r", kind=RuleKind.ROW, action=ExpectationAction.DROP, condition="v > 0")
STEP = StepDeclaration(
    table=("main", "a", "t"),
    body=Sql(text="SELECT * FROM src"),
    write=WriteDeclaration(mode=WriteMode.MERGE, keys=("id",)),
    expectations=(RULE,),
)
SOURCE = DeclaredSource(name="src", kind=Files(path="d/*.csv", format="csv", options={"header": "true"}))

CHANGES = {
    "a comment": (replace(STEP, comment="c", at=AT), SOURCE, None),
    "a layout": (replace(STEP, partition=("id",), sort=("v",), properties={"k": "v"}), SOURCE, None),
    "a warning": (
        replace(STEP, expectations=(replace(RULE, action=ExpectationAction.WARN, condition="v > 9"), RULE)),
        SOURCE,
        None,
    ),
    "a source's comment": (STEP, replace(SOURCE, comment="c", at=AT), None),
    "another query": (replace(STEP, body=Sql(text="SELECT 1")), SOURCE, "the query"),
    "another body": (replace(STEP, body=Load(source="src")), SOURCE, "the query"),
    "other keys": (replace(STEP, write=replace(STEP.write, keys=("v",))), SOURCE, "the write mode"),
    "another rule": (
        replace(STEP, expectations=(replace(RULE, condition="v > 1"),)),
        SOURCE,
        "the rules that remove rows",
    ),
    "no rule": (replace(STEP, expectations=()), SOURCE, "the rules that remove rows"),
    "other options": (STEP, replace(SOURCE, kind=replace(SOURCE.kind, options={"header": "false"})), "source src"),
    "two parts": (
        replace(STEP, body=Sql(text="SELECT 1"), write=WriteDeclaration()),
        SOURCE,
        "the query and the write mode",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_of_a_declaration_are_named(what: str) -> None:
    """A part that changes rows is named, in a run and in a plan; comments, layout and warnings are no changes."""
    step, source, named = CHANGES[what]
    recorded = encode(
        declared_parts(Pipeline(name="p", catalog="main", steps=(STEP,), sources=(SOURCE,)), STEP, sources=["src"])
    )
    pipeline = Pipeline(name="p", catalog="main", steps=(step,), sources=(source,))

    reason = change_reason(recorded, declared_parts(pipeline, step, sources=["src"]))

    assert reason == (None if named is None else f"{named} changed since it was published")
    assert declared_change(pipeline, step, recorded=recorded) == reason


def test_plan_does_not_compare_parameters() -> None:
    """A plan does not know the values of parameters; a run names those that changed, or that the step uses now."""
    pipeline = Pipeline(name="p", catalog="main", steps=(STEP,), sources=(SOURCE,))
    declared = declared_parts(pipeline, STEP, sources=["src"])
    recorded = encode({**declared, **parameter_parts({"a": 1, "b": 2}, {"a", "b"})})

    assert declared_change(pipeline, STEP, recorded=recorded) is None
    assert change_reason(recorded, {**declared, **parameter_parts({"a": 1, "b": 3}, {"a", "b"})}) == (
        "parameter b changed since it was published"
    )


@pytest.mark.parametrize("recorded", [None, "", "{", "[1]", "7", "0123456789abcdef"])
def test_unreadable_definition_counts_as_not_recorded(recorded: str | None) -> None:
    """A table without a readable definition was published by another release, and the reason says so."""
    assert change_reason(recorded, {"the query": "x"}) == UNRECORDED


def test_plan_compares_python_code_without_importing_it(tmp_path: Path) -> None:
    """A plan names a changed function by the text of its file; the file is not run."""
    text = "raise RuntimeError('imported')\ndef make(src): return src"
    (tmp_path / "f.py").write_text(text)
    step = replace(STEP, body=PythonStep(function="f:make"))
    pipeline = Pipeline(name="p", catalog="main", steps=(step,), at=SourcePosition(str(tmp_path / "p.yaml"), 1, 1))
    code = code_of_file("f", tmp_path)
    recorded = encode({**declared_parts(pipeline, step, sources=()), **digests({CODE: code})})

    assert declared_change(pipeline, step, recorded=recorded) is None
    (tmp_path / "f.py").write_text(text + ".limit(1)")
    assert declared_change(pipeline, step, recorded=recorded) == "the Python code changed since it was published"
