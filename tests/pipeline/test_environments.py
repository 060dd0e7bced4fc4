# SPDX-License-Identifier: Apache-2.0
"""Rules of environments: which table each step writes and reads, and the rules that are refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from limnos.model.errors import BadRequest
from limnos.pipeline.checks import check
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.declaration_json import encode_declaration
from limnos.pipeline.engine.relations import query_names
from limnos.pipeline.environments import in_environment, reading_production
from limnos.pipeline.file import read
from limnos.pipeline.graph import order_steps
from limnos.pipeline.modified_steps import step_states
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.python import pipeline as python_pipeline
from limnos.pipeline.python import step
from limnos.pipeline.reads import all_reads, tables
from limnos.pipeline.side_tables import tables_of
from limnos.pipeline.source_declarations import Stream, TableSource

SHOP = """
pipeline: shop
catalog: main
environments:
  dev: {prefix: dev_}
  stage: {catalog: stage}
  ana: {catalogs: {main: stage, archive: stage_archive}, prefix: ana_}
sources: {old: {table: raw.orders}, feed: {stream: {table: main.raw.orders}}, elsewhere: {table: raw.other}}
steps:
  raw.orders: {sql: "SELECT 1 AS id", expect: [{row: id > 0, action: quarantine}]}
  marts.sums: {sql: SELECT * FROM raw.orders, after: raw.orders}
  marts.kept: {catalog: archive, sql: SELECT * FROM main.raw.orders JOIN raw.other}
"""


def _read(text: str = SHOP) -> Pipeline:
    return read(text, file="p.yaml", directory=Path())


def _reads(pipeline: Pipeline) -> dict[str, frozenset[tuple[str, ...]]]:
    return tables(all_reads(pipeline, queries=partial(query_names, None), catalogs=frozenset({"main"})))


@pytest.mark.parametrize(
    "environment,written",
    [
        ("dev", ["main.dev_raw.orders", "main.dev_marts.sums", "archive.dev_marts.kept"]),
        ("stage", ["stage.raw.orders", "stage.marts.sums", "stage.marts.kept"]),
        ("ana", ["stage.ana_raw.orders", "stage.ana_marts.sums", "stage_archive.ana_marts.kept"]),
    ],
)
def test_steps_write_the_tables_of_the_environment(environment: str, written: list[str]) -> None:
    """A rule gives each table its catalog and prefix; side tables follow; names of steps stay those of the file."""
    own = in_environment(_read(), environment)

    assert [".".join(one.table) for one in own.steps] == written
    assert ".".join(tables_of(own, own.steps[0])[1]) == f"{written[0]}__quarantine"
    assert [one.name for one in own.steps] == ["raw.orders", "marts.sums", "marts.kept"]
    assert own.name == f"shop.{environment}"
    assert own.steps[1].after == (own.steps[0].table,)


@pytest.mark.spark
def test_names_in_queries_stand_for_tables_of_the_environment() -> None:
    """A query's name of a step's table, with or without its catalog, reads the environment's; other tables stay."""
    own = in_environment(_read(), "dev")

    reads = _reads(own)

    assert reads["marts.sums"] == {("main", "dev_raw", "orders")}
    assert reads["marts.kept"] == {("main", "dev_raw", "orders"), ("main", "raw", "other")}
    assert [[one.name for one in level] for level in order_steps(own, reads)] == [
        ["raw.orders"],
        ["marts.sums", "marts.kept"],
    ]


def test_sources_that_are_tables_of_steps_follow() -> None:
    """Table sources and streams of a step's table read the environment's table; other tables stay."""
    own = in_environment(_read(), "dev")

    kinds = {one.name: one.kind for one in own.sources}

    assert kinds["old"] == TableSource(table=("main", "dev_raw", "orders"))
    assert kinds["feed"] == Stream(table=("main", "dev_raw", "orders"))
    assert kinds["elsewhere"] == TableSource(table=("raw", "other"))


@pytest.mark.spark
def test_tables_that_the_environment_lacks_stand_for_production() -> None:
    """After `reading_production` the names of these tables read production's, in queries and sources."""
    own = reading_production(in_environment(_read(), "dev"), {("main", "raw", "orders")})

    assert _reads(own)["marts.sums"] == {("main", "raw", "orders")}
    assert own.sources[0].kind == TableSource(table=("raw", "orders"))
    assert own.steps[0].table == ("main", "dev_raw", "orders")


def test_changes_are_compared_with_production() -> None:
    """The states of steps, by which `state:modified` compares, are the same in every environment."""
    pipeline = _read()

    assert step_states(in_environment(pipeline, "dev")) == step_states(pipeline)


def test_the_stored_declaration_names_the_environment_and_its_tables() -> None:
    """The server's record of an environment's pipeline has its tables, and not the file's declaration twice."""
    document = encode_declaration(in_environment(_read(), "dev"))

    steps = document["steps"]
    assert document["environment"] == {"name": "dev", "pipeline": "shop"}
    assert isinstance(steps, list)
    assert steps[0]["table"] == ["main", "dev_raw", "orders"]
    assert steps[0]["properties"] == {"limnos.environment": "shop.dev"}


def test_production_is_the_file_itself() -> None:
    """Without an environment, and with `prod`, the declaration is unchanged."""
    pipeline = _read()

    assert in_environment(pipeline, None) is pipeline
    assert in_environment(pipeline, "prod") is pipeline


def test_unknown_environment_is_refused_with_the_nearest_name() -> None:
    """An unknown name is answered with the nearest one, and in a file without environments with the key."""
    with pytest.raises(BadRequest, match="no environment 'stag'; did you mean 'stage'"):
        in_environment(_read(), "stag")
    with pytest.raises(BadRequest, match="the file has no key 'environments'"):
        in_environment(_read("pipeline: p\ncatalog: main\nsteps: {a.t: {sql: SELECT 1}}"), "dev")


HOSTILE = {
    "a production table": (
        "dev: {catalog: main}",
        "a.t: {sql: SELECT 1}",
        "main.a.t for step a.t, and the file declares",
    ),
    "another step's production table": (
        "dev: {prefix: dev_}",
        "a.t: {sql: SELECT 1}, dev_a.t: {sql: SELECT 1}",
        "main.dev_a.t for step a.t, and the file declares it",
    ),
    "a production side table": (
        "dev: {prefix: dev_}",
        "a.t__quarantine: {sql: SELECT 1}, dev_a.t: {sql: SELECT 1 AS x, expect: [{row: x > 0, action: quarantine}]}",
        "main.dev_a.t__quarantine for step a.t__quarantine, and the file declares",
    ),
    "two side tables of one name": (
        "dev: {catalog: dev}",
        (
            "a.t: {sql: SELECT 1, expect: [{row: x, action: drop}, {row: y, action: quarantine}]}, a.t__quarantine:"
            " {catalog: o, sql: SELECT 1}"
        ),
        "dev.a.t__quarantine for step a.t__quarantine, and step a.t writes it in environment dev",
    ),
    "a table of another environment": (
        "test: {prefix: x_}, dev: {prefix: x_}",
        "a.t: {sql: SELECT 1}",
        "main.x_a.t for step a.t, and step a.t writes it in environment test",
    ),
    "another catalog's production table": (
        "dev: {catalogs: {main: other}}",
        "a.t: {sql: SELECT 1}, b.t: {catalog: other, sql: SELECT 1}",
        "other.b.t for step b.t, and the file declares it",
    ),
}


@pytest.mark.parametrize("rules,steps,message", HOSTILE.values(), ids=HOSTILE)
def test_rules_that_map_to_a_table_of_others_are_refused(rules: str, steps: str, message: str) -> None:
    """A rule that names a production table, a table of another environment, or one table twice is refused, with its
    place, by a check and before a run.
    """
    pipeline = _read(f"pipeline: p\ncatalog: main\nenvironments: {{{rules}}}\nsteps: {{{steps}}}")

    with pytest.raises(InvalidPipeline) as refused:
        in_environment(pipeline, "dev")
    problems = [one for one in check(pipeline).problems if one.message.startswith("environment")]

    assert message in refused.value.message
    assert refused.value.problems[0].at is not None
    assert refused.value.problems[0].at.line == 3
    assert problems == list(refused.value.problems)


@pytest.mark.parametrize(
    "rule,message",
    [
        ("prod: {prefix: x_}", "prod is what the file declares"),
        ("Dev: {prefix: x_}", "small letters"),
        ("dev: {prefix: '`'}", "write up to 50 letters"),
        ("dev: {prefix: a.b}", "write up to 50 letters"),
        ("dev: {catalog: a.b}", "beginning with a letter"),
        ("dev: {prefix: ''}", "not an empty string"),
        ("dev: {}", "needs catalog or catalogs or prefix"),
        ("dev: {schema: x}", "unknown key 'schema'"),
    ],
)
def test_invalid_rules_are_refused_with_their_place(rule: str, message: str) -> None:
    """Names, prefixes and catalogs that could be read as something else are refused at their place in the file."""
    with pytest.raises(InvalidPipeline) as refused:
        _read(f"pipeline: p\ncatalog: main\nenvironments: {{{rule}}}\nsteps: {{a.t: {{sql: SELECT 1}}}}")

    assert message in refused.value.message
    assert all(one.at is not None and one.at.line == 3 for one in refused.value.problems)


def test_names_that_are_too_long_together_are_refused() -> None:
    """The pipeline's and the environment's name together fit into a name at the server."""
    with pytest.raises(BadRequest, match="longer than 64 characters"):
        in_environment(_read(SHOP.replace("shop", "s" * 61)), "dev")


def test_pipelines_in_python_have_environments() -> None:
    """`pipeline(environments=…)` takes the same rules as a file."""
    declared = python_pipeline(
        "p", catalog="main", steps=[step("a.t", sql="SELECT 1")], environments={"dev": {"prefix": "dev_"}}
    )

    assert in_environment(declared, "dev").steps[0].table == ("main", "dev_a", "t")
