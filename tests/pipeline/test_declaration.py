"""Declarations are values: equal ones from a file and from Python are equal."""

from __future__ import annotations

from limnos.pipeline.declaration import SourcePosition, Sql, StepDeclaration


def test_place_takes_no_part_in_comparison() -> None:
    """The same step written in another line is the same step."""
    here = StepDeclaration(table=("main", "a", "t"), body=Sql(text="SELECT 1"), at=SourcePosition("p.yaml", 3, 1))
    there = StepDeclaration(
        table=("main", "a", "t"),
        body=Sql(text="SELECT 1", at=SourcePosition("p.yaml", 9, 8)),
        at=SourcePosition("p.yaml", 8, 1),
    )

    assert here == there


def test_name_of_a_step_leaves_the_catalog_out() -> None:
    """A step is spoken of by its table's path below the catalog."""
    step = StepDeclaration(table=("main", "curated", "nyc", "delays"), body=Sql(text="SELECT 1"))

    assert step.name == "curated.nyc.delays"
