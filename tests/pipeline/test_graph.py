# SPDX-License-Identifier: Apache-2.0
"""The order of steps: levels, dependencies, cycles, and steps that cannot be in one pipeline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.pipeline.declaration import Expectation, ExpectationAction, Pipeline, RuleKind, Sql, StepDeclaration
from limnos.pipeline.declared_values import Parts, SourcePosition
from limnos.pipeline.graph import order_steps
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.source_declarations import DeclaredSource, Files


def _step(name: str, *, after: tuple[Parts, ...] = (), line: int = 1, catalog: str = "main") -> StepDeclaration:
    return StepDeclaration(
        table=(catalog, *name.split(".")), body=Sql(text="SELECT 1"), after=after, at=SourcePosition("p.yaml", line, 3)
    )


def _pipeline(*steps: StepDeclaration) -> Pipeline:
    return Pipeline(name="p", catalog="main", steps=steps)


def _reads(**names: str) -> dict[str, frozenset[Parts]]:
    return {
        f"a.{name}": frozenset(("main", "a", other) for other in sources.split()) for name, sources in names.items()
    }


def _levels(pipeline: Pipeline, reads: dict[str, frozenset[Parts]]) -> list[list[str]]:
    return [[step.name for step in level] for level in order_steps(pipeline, reads)]


def test_independent_steps_share_a_level_in_file_order() -> None:
    """Steps that do not depend on each other have the same level, in the order of the file: a diamond has three
    levels.
    """
    pipeline = _pipeline(_step("a.end"), _step("a.right"), _step("a.left"), _step("a.start"))

    assert _levels(pipeline, _reads(end="left right outside", right="start", left="start")) == [
        ["a.start"],
        ["a.right", "a.left"],
        ["a.end"],
    ]


def test_after_is_a_dependency() -> None:
    """`after` is a dependency like a table that is read."""
    pipeline = _pipeline(_step("a.x", after=(("main", "a", "y"),)), _step("a.y"))

    assert _levels(pipeline, {}) == [["a.y"], ["a.x"]]


def test_cycle_is_refused_with_its_steps() -> None:
    """Steps in a cycle are refused, and the error names only the steps of the cycle."""
    pipeline = _pipeline(_step("a.user"), _step("a.x", line=7), _step("a.y"), _step("a.z"))

    with pytest.raises(InvalidPipeline) as refused:
        order_steps(pipeline, _reads(user="x", x="y", y="z", z="x"))

    assert str(refused.value) == (
        "p.yaml:7:3: steps in a circle: a.x reads a.y reads a.z reads a.x; one of them must not read the other"
    )


def test_step_reading_its_own_table_is_refused_with_advice() -> None:
    """A step that reads its own table has its own message with advice."""
    with pytest.raises(InvalidPipeline, match=r"a\.x reads the table that it writes; .*write: merge"):
        order_steps(_pipeline(_step("a.x")), _reads(x="x"))


def test_two_steps_of_one_table_are_refused_with_positions() -> None:
    """The error for two steps of one table has the positions of both."""
    with pytest.raises(
        InvalidPipeline, match=r"p\.yaml:9:3: two steps write main\.a\.x \(the other one: p\.yaml:2:3\)"
    ):
        order_steps(_pipeline(_step("a.x", line=2), _step("a.x", line=9)), {})


def test_step_names_with_same_spelling_are_refused() -> None:
    """Two steps whose names have the same spelling, because a part contains a dot, are refused."""
    steps = (StepDeclaration(table=("main", "a", "b.c"), body=Sql(text="SELECT 1")), _step("a.b.c"))

    with pytest.raises(InvalidPipeline, match="two steps write"):
        order_steps(_pipeline(*steps), {})


def test_step_that_makes_a_side_table_of_another_is_refused() -> None:
    """A step must not create the table in which another one keeps its quarantined rows."""
    rule = Expectation(name="r", kind=RuleKind.ROW, action=ExpectationAction.QUARANTINE, condition="TRUE")
    one = replace(_step("a.x"), expectations=(rule,))

    with pytest.raises(InvalidPipeline) as refused:
        order_steps(_pipeline(one, _step("a.x__quarantine", line=7)), {})

    assert str(refused.value).startswith("p.yaml:7:3: a.x__quarantine is the table in which step a.x keeps")
    assert len(order_steps(_pipeline(one, _step("a.x__malformed"), _step("a.y__quarantine")), {})) == 1


def test_sources_that_differ_by_case_are_refused() -> None:
    """The second source is named with its position."""
    sources = tuple(
        DeclaredSource(name=name, kind=Files(path="x.csv", format="csv"), at=SourcePosition("p.yaml", line, 3))
        for line, name in enumerate(("src", "other", "SRC"))
    )

    with pytest.raises(InvalidPipeline) as refused:
        order_steps(replace(_pipeline(_step("a.x")), sources=sources), {})

    assert str(refused.value) == "p.yaml:2:3: the sources 'src' and 'SRC' differ by case alone: rename one"


def test_tables_without_a_namespace_are_refused() -> None:
    """All tables without a namespace are reported at once, by name, whichever catalog they are in."""
    with pytest.raises(InvalidPipeline) as refused:
        order_steps(
            _pipeline(_step("a.x", catalog="other"), _step("lone", catalog="other"), _step("alone", line=2)), {}
        )

    assert [problem.message.split(" ")[0] for problem in refused.value.problems] == ["other.lone", "main.alone"]


def test_steps_of_two_catalogs_are_ordered() -> None:
    """A step reads the table of a step in another catalog, and comes after it."""
    pipeline = _pipeline(_step("a.y", catalog="other"), _step("a.x"))

    levels = order_steps(pipeline, {"a.y": frozenset({("main", "a", "x")})})

    assert [[step.table[0] for step in level] for level in levels] == [["main"], ["other"]]
    assert pipeline.catalogs == ("main", "other")


def test_unknown_name_in_after_suggests_nearest_step() -> None:
    """The error for an unknown name in `after` suggests the nearest step."""
    steps = (_step("a.flights"), _step("a.x", after=(("main", "a", "flight"),)))

    with pytest.raises(InvalidPipeline, match=r"names a\.flight, which no step writes; did you mean 'a\.flights'\?"):
        order_steps(_pipeline(*steps), {})


def test_unknown_name_in_after_does_not_suggest_the_step_itself() -> None:
    """A step that waits for itself would be the next error."""
    with pytest.raises(InvalidPipeline, match=r"names a\.xx, which no step writes(?!; did you mean)"):
        order_steps(_pipeline(_step("a.x", after=(("main", "a", "xx"),)), _step("b.other")), {})


def test_chain_of_ten_thousand_steps_is_ordered() -> None:
    """A chain of ten thousand steps is ordered without recursion."""
    size = 10_000
    pipeline = _pipeline(*(_step(f"a.t{index}") for index in reversed(range(size))))
    reads = {f"a.t{index}": frozenset({("main", "a", f"t{index - 1}")}) for index in range(1, size)}

    levels = order_steps(pipeline, reads)

    assert [level[0].name for level in levels] == [f"a.t{index}" for index in range(size)]


@given(st.lists(st.frozensets(st.integers(0, 11), max_size=4), min_size=1, max_size=12), st.randoms())
def test_random_steps_are_in_level_after_last_dependency(dependencies: list[frozenset[int]], shuffle: object) -> None:
    """In random acyclic graphs every step is in the level after its last dependency."""
    before = {index: {other for other in others if other < index} for index, others in enumerate(dependencies)}
    names = list(before)
    shuffle.shuffle(names)  # type: ignore[attr-defined]
    reads = {f"a.t{one}": frozenset(("main", "a", f"t{other}") for other in before[one]) for one in before}

    levels = order_steps(_pipeline(*(_step(f"a.t{one}") for one in names)), reads)

    level = {step.name: index for index, steps in enumerate(levels) for step in steps}
    assert len(level) == len(before)
    for one, others in before.items():
        assert level[f"a.t{one}"] == max((level[f"a.t{other}"] + 1 for other in others), default=0)
