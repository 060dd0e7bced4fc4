# SPDX-License-Identifier: Apache-2.0
"""Declarations are values: equal declarations from a file and from Python compare equal."""

from __future__ import annotations

from limnos.pipeline.declaration import Sql, StepDeclaration
from limnos.pipeline.declared_values import SourcePosition


def test_source_position_does_not_affect_equality() -> None:
    """The source position does not affect equality."""
    here = StepDeclaration(table=("main", "a", "t"), body=Sql(text="SELECT 1"), at=SourcePosition("p.yaml", 3, 1))
    other_step = StepDeclaration(
        table=("main", "a", "t"),
        body=Sql(text="SELECT 1", at=SourcePosition("p.yaml", 9, 8)),
        at=SourcePosition("p.yaml", 8, 1),
    )

    assert here == other_step


def test_step_name_omits_the_catalog() -> None:
    """The name of a step is its table's path below the catalog."""
    step = StepDeclaration(table=("main", "curated", "nyc", "delays"), body=Sql(text="SELECT 1"))

    assert step.name == "curated.nyc.delays"
