# SPDX-License-Identifier: Apache-2.0
"""Selections of steps by the graph, against a list that was made by hand."""

from __future__ import annotations

import time

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Load, Pipeline, Sql, StepDeclaration
from limnos.pipeline.run.options import RunOptions, select_steps
from limnos.pipeline.selection import NEW, InvalidSelection
from limnos.pipeline.source_declarations import DeclaredSource, Files

TAGS = {"raw.orders": ("nightly", "pii"), "raw.items": ("nightly",), "marts.daily": ("report",)}
NEEDS = {
    "raw.orders": "",
    "raw.items": "",
    "curated.lines": "raw.orders raw.items",
    "curated.people": "raw.orders",
    "marts.daily": "curated.lines",
    "marts.customers": "curated.lines curated.people",
    "marts.other": "",
}
MODIFIED = {"curated.lines": "its text changed", "marts.other": NEW}
SOURCES = ("orders_csv", "items_csv")
ALL = "raw.orders raw.items curated.lines curated.people marts.daily marts.customers marts.other"
SELECTIONS = {
    # selectors, excluded selectors: the steps that run, in the order of the file
    ("marts.customers", ""): "marts.customers",
    ("+marts.customers", ""): "raw.orders raw.items curated.lines curated.people marts.customers",
    ("1+marts.customers", ""): "curated.lines curated.people marts.customers",
    ("2+marts.daily", ""): "raw.orders raw.items curated.lines marts.daily",
    ("raw.*+", ""): "raw.orders raw.items curated.lines curated.people marts.daily marts.customers",
    ("raw.orders+1", ""): "raw.orders curated.lines curated.people",
    ("raw.*", ""): "raw.orders raw.items",
    ("*s", ""): "raw.orders raw.items curated.lines marts.customers",
    ("*.*e*", ""): "raw.orders raw.items curated.lines curated.people marts.customers marts.other",
    ("+curated.people+", ""): "raw.orders curated.people marts.customers",
    ("tag:nightly", ""): "raw.orders raw.items",
    ("tag:*i*", ""): "raw.orders raw.items",
    ("tag:nightly,tag:pii", ""): "raw.orders",
    ("tag:nightly tag:report", ""): "raw.orders raw.items marts.daily",
    ("tag:pii+,marts.*", ""): "marts.daily marts.customers",
    ("source:items_csv", ""): "raw.items",
    ("source:*_csv+1", ""): "raw.orders raw.items curated.lines curated.people",
    ("state:modified", ""): "curated.lines marts.other",
    ("state:modified+", ""): "curated.lines marts.daily marts.customers marts.other",
    ("state:new", ""): "marts.other",
    ("+state:modified,raw.*", ""): "raw.orders raw.items",
    ("", "raw.*+"): "marts.other",
    ("", "tag:nightly"): "curated.lines curated.people marts.daily marts.customers marts.other",
    ("raw.*+", "marts.*"): "raw.orders raw.items curated.lines curated.people",
    ("+marts.customers", "+curated.people"): "raw.items curated.lines marts.customers",
    ("state:modified", "*"): "",
}
SLIPS = {
    # a selection with a slip of the pen: the answer
    "marts.custmers": "no step 'marts.custmers'; did you mean 'marts.customers'?",
    "customers": "no step 'customers'; write its namespace: marts.customers",
    "Marts.Customers": "did you mean 'marts.customers'? Upper and lower case differ",
    "main.marts.daily": "leave the catalog out: marts.daily",
    "marts": "'marts' is a namespace; write marts.* for its steps",
    "nightly": "'nightly' is a tag; write tag:nightly",
    "orders_csv": "'orders_csv' is a source; `source:orders_csv` selects the steps that read it",
    "tag:nigthly": "no step has the tag 'nigthly'; did you mean 'nightly'?",
    "tag:": "'tag:' needs a value, as in `tag:nightly`",
    "tags:nightly": "there is no method 'tags:'; did you mean 'tag'?",
    "path:models": "there is no method 'path:'; it is one of tag, state, source",
    "state:modifed": "there is no state 'modifed'; did you mean 'modified'?",
    "source:orders": "the pipeline has no source 'orders'; did you mean 'orders_csv'?",
    "raw.orders, raw.items": "nothing stands on one side of a comma",
    "+": "'+' stands beside a selector",
    "marts.daily++": "'+' stands before or after a whole name",
    "@marts.daily": "'@' is not supported; write `marts.daily+` and `+marts.daily`",
    "staging.*": "no step matches 'staging.*'; its steps are raw.orders",
    "1000000000+marts.daily": "leave the number out to select all of them",
    " ": "it is empty; write a step",
}


def _pipeline() -> Pipeline:
    bodies = {"raw.orders": Load(source="orders_csv"), "raw.items": Load(source="items_csv")}
    return Pipeline(
        name="p",
        catalog="main",
        sources=tuple(DeclaredSource(name=name, kind=Files(path="x.csv", format="csv")) for name in SOURCES),
        steps=tuple(
            StepDeclaration(
                table=("main", *name.split(".")), body=bodies.get(name, Sql(text="")), tags=TAGS.get(name, ())
            )
            for name in NEEDS
        ),
    )


def _selected(selected: str, excluded: str = "") -> tuple[str, ...]:
    options = RunOptions(select=(selected,) if selected else (), exclude=(excluded,) if excluded else ())
    needs = {name: frozenset(needed.split()) for name, needed in NEEDS.items()}
    return select_steps(_pipeline(), options, needs=needs, modified=lambda: MODIFIED)


@pytest.mark.parametrize("selection, expected", SELECTIONS.items(), ids=" - ".join)
def test_selection_runs_the_steps_of_the_list(selection: tuple[str, str], expected: str) -> None:
    """Each selection returns the steps of the list, in the order of the file."""
    assert " ".join(_selected(*selection)) == expected


@pytest.mark.parametrize("text, answer", SLIPS.items())
def test_slip_is_answered_with_its_place_and_the_next_step(text: str, answer: str) -> None:
    """An invalid selection is refused; the message has the flag, the place, and what to write instead."""
    with pytest.raises(InvalidSelection) as error:
        _selected(text)

    assert error.value.message.startswith("--select")
    assert text.split(" ", maxsplit=1)[0] in error.value.message
    assert answer in error.value.message


def test_step_with_a_blank_in_its_name_is_selected_in_back_quotes() -> None:
    """A name with a blank is one word in back-quotes, with its neighbours in the graph, and so is it proposed."""
    steps = tuple(StepDeclaration(table=("main", "a", name), body=Sql(text="")) for name in ("by city", "x"))
    pipeline = Pipeline(name="p", catalog="main", steps=steps)
    needs = {"a.by city": frozenset(), "a.x": frozenset({"a.by city"})}

    assert select_steps(pipeline, RunOptions(select=("a.`by city`",)), needs=needs) == ("a.by city",)
    assert select_steps(pipeline, RunOptions(select=("a.`by city`+",)), needs=needs) == ("a.by city", "a.x")
    with pytest.raises(InvalidSelection, match=r"did you mean 'a\.`by city`'"):
        select_steps(pipeline, RunOptions(select=("a.`by cty`",)), needs=needs)


def test_exclusion_of_all_steps_is_refused() -> None:
    """If `--exclude` leaves out every step, the command is refused; only a selection by state may have no steps."""
    with pytest.raises(InvalidSelection, match="--exclude leaves out all selected steps"):
        _selected("raw.*", "raw.*")

    assert _selected("state:new", "marts.*") == ()


def test_selections_do_not_combine_with_only_and_from() -> None:
    """`--select` together with `--only` or `--from` is refused."""
    options = RunOptions(select=("raw.*",), only=("raw.orders",))

    with pytest.raises(BadRequest, match="replace --only and --from"):
        select_steps(_pipeline(), options, needs={})


def test_pattern_with_many_stars_takes_linear_time() -> None:
    """A pattern with thousands of `*` is matched without backtracking."""
    began = time.process_time()

    with pytest.raises(InvalidSelection):
        _selected("*a" * 5000 + "b")

    assert time.process_time() - began < 2
