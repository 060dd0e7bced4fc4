# SPDX-License-Identifier: Apache-2.0
"""Steps made in a loop: their names and texts, limits, and the places of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.pipeline.declaration import Pipeline, Sql
from limnos.pipeline.file import load_readable, read
from limnos.pipeline.graph import order_steps
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.python import pipeline as python_pipeline
from limnos.pipeline.python import step
from limnos.pipeline.selection import parse_selection, select

HEAD = "pipeline: p\ncatalog: main\nsteps:\n"


def _read(steps: str) -> Pipeline:
    return read(HEAD + steps, file="p.yaml", directory=Path())


def _refused(steps: str) -> list[str]:
    with pytest.raises(InvalidPipeline) as refused:
        _read(steps)
    return [str(problem) for problem in refused.value.problems]


def test_each_item_makes_a_step() -> None:
    """The variables are filled in names, queries, expectations and lists; a number stays a number."""
    pipeline = _read("""
  raw.orders_{{country}}:
    for_each: [{country: de, least: 1}, {country: fr, least: 20}]
    sql: SELECT '{{ country }}' AS country FROM raw.all WHERE x > {{least}}
    expect: [{rows: {min: '{{least}}'}, name: 'some of {{country}}'}]
    tags: ['of_{{country}}']
  raw.all: {sql: SELECT 1 AS x}
""")

    german, french, other = pipeline.steps

    assert [german.name, french.name, other.name] == ["raw.orders_de", "raw.orders_fr", "raw.all"]
    assert french.body == Sql(text="SELECT 'fr' AS country FROM raw.all WHERE x > 20")
    assert [(rule.name, rule.rows_min) for rule in french.expectations] == [("some of fr", 20)]
    assert french.tags == ("of_fr",)
    assert (french.at, german.at) == (german.at, french.at)


def test_lists_of_several_variables_are_combined() -> None:
    """A mapping of lists makes a step of each combination, in the order of the lists."""
    pipeline = _read("  a.t_{{x}}_{{y}}: {for_each: {x: [a, b], y: [1, 2]}, sql: 'SELECT {{y}}'}\n")

    assert [one.name for one in pipeline.steps] == ["a.t_a_1", "a.t_a_2", "a.t_b_1", "a.t_b_2"]


def test_made_steps_are_selected_by_their_names() -> None:
    """Selections find made steps as they find all others."""
    pipeline = _read("  a.t_{{x}}: {for_each: {x: [a, b]}, sql: SELECT 1}\n  a.u: {sql: SELECT 1}\n")
    needs: dict[str, frozenset[str]] = {one.name: frozenset() for one in pipeline.steps}

    chosen = select(pipeline, parse_selection(["a.t_*"], flag="--select"), needs=needs, modified=dict)

    assert chosen == ("a.t_a", "a.t_b")


WRONG = {
    "  a.t: {for_each: {x: [a, b]}, sql: SELECT 1}": "p.yaml:4:3: this loop makes a.t again: name {{x}} in the step's",
    "  a.t_{{x}}: {for_each: {x: [a, a]}, sql: SELECT 1}": "p.yaml:4:3: this loop makes a.t_a again",
    "  a.t_a: {sql: SELECT 1}\n  a.t_{{x}}: {for_each: {x: [a]}, sql: SELECT 1}": "p.yaml:5:3: this loop makes a.t_a",
    "  a.t_{{y}}: {for_each: {x: [a]}, sql: SELECT 1}": "p.yaml:4:3: the loop has no variable 'y'",
    "  a.t_{{x}}: {for_each: {x: [a]}, sql: 'SELECT {{z}}'}": "p.yaml:4:40: the loop has no variable 'z'; it has x",
    "  a.t_{{x}}: {for_each: {x: ['a; b']}, sql: SELECT 1}": "p.yaml:4:30: 'a; b' is not a word",
    "  a.t_{{x}}: {for_each: {x: [a--b]}, sql: SELECT 1}": "p.yaml:4:30: 'a--b' is not a word",
    '  a.t_{{x}}: {for_each: {x: ["a\'"]}, sql: SELECT 1}': "p.yaml:4:30: 'a'' is not a word",
    "  a.t_{{x}}: {for_each: {x: [true]}, sql: SELECT 1}": "p.yaml:4:30: a word is expected",
    "  a.t_{{x}}: {for_each: {x: []}, sql: SELECT 1}": "p.yaml:4:29: a list of values is expected",
    "  a.t_{{x}}: {for_each: {}, sql: SELECT 1}": "p.yaml:4:25: a mapping from variables to lists",
    "  a.t_{{x}}: {for_each: [a, b], sql: SELECT 1}": "p.yaml:4:26: a mapping from variables to values is expected",
    "  a.t_{{x}}: {for_each: [{x: a}, {y: b}], sql: SELECT 1}": "p.yaml:4:34: each item needs the same variables: x",
    "  a.t_{{x}}: {for_each: {'a b': [c]}, sql: SELECT 1}": "p.yaml:4:26: 'a b' is no variable",
    "  a.t_{{x}}: {for_each: {x: [a, b]}, sqll: SELECT 1}": "p.yaml:4:14: a step needs one of sql",
}


@pytest.mark.parametrize("steps,message", WRONG.items(), ids=WRONG.values())
def test_mistakes_have_their_place_in_the_file(steps: str, message: str) -> None:
    """A mistake in a loop is reported once, at its line and column."""
    problems = _refused(steps)

    assert problems[0].startswith(message)
    assert len(problems) == len(set(problems))


@pytest.mark.parametrize(
    "steps",
    [
        "  a.t_{{x}}_{{y}}: {for_each: {x: [%s], y: [%s]}, sql: SELECT 1}",
        "  a.t_{{x}}: {for_each: {x: [%s]}, sql: SELECT 1}\n  a.u_{{x}}: {for_each: {x: [%s]}, sql: SELECT 1}",
    ],
)
def test_the_number_of_steps_is_bounded(steps: str) -> None:
    """Loops of more than 10,000 steps, in one loop or together, are refused before they are made."""
    many = ", ".join(f"v{number}" for number in range(6000))

    problems = _refused(steps % (many, many))

    assert "10,000 steps" in problems[0]
    assert len(problems) == 1


def test_the_size_of_made_steps_is_bounded() -> None:
    """A large step in a large loop is refused before it is made."""
    many = ", ".join(f"v{number}" for number in range(10_000))
    tags = ", ".join(f"t{number}" for number in range(200))

    problems = _refused(f"  a.t_{{{{x}}}}: {{for_each: {{x: [{many}]}}, sql: SELECT 1, tags: [{tags}]}}")

    assert "more than 1,000,000 values" in problems[0]


def test_ten_thousand_steps_are_those_written_out() -> None:
    """A loop of 10,000 steps makes the same steps as the file that has them written out, and they are put in order."""
    many = ", ".join(str(number) for number in range(10_000))
    written = "".join(
        f"  a.t_{number}: {{sql: 'SELECT {number} AS x', expect: [x >= 0]}}\n" for number in range(10_000)
    )

    looped = _read(f"  a.t_{{{{n}}}}: {{for_each: {{n: [{many}]}}, sql: 'SELECT {{{{n}}}} AS x', expect: [x >= 0]}}\n")

    assert looped.steps == _read(written).steps
    assert len(order_steps(looped, {})[0]) == 10_000


def test_a_file_with_mistakes_keeps_the_steps_of_its_loops(tmp_path: Path) -> None:
    """A check of a file with a mistake elsewhere also reads the steps of its loops."""
    path = tmp_path / "p.yaml"
    path.write_text(HEAD + "  a.t_{{x}}: {for_each: {x: [a, b]}, sql: SELECT 1}\n  a.u: {sqll: SELECT 1}\n")

    readable = load_readable(path)

    assert readable is not None
    assert [one.name for one in readable.pipeline.steps] == ["a.t_a", "a.t_b", "a.u"]


def test_python_makes_its_steps_itself() -> None:
    """`for_each` in a Python pipeline is refused with advice."""
    with pytest.raises(InvalidPipeline, match="for_each belongs to YAML files"):
        python_pipeline("p", catalog="main", steps=[step("a.t", sql="SELECT 1", for_each={"x": ["a"]})])
