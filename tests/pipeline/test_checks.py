# SPDX-License-Identifier: Apache-2.0
"""Checks of a pipeline, from the file alone and with a real server."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from limnos.cli.main import main
from limnos.client import Client
from limnos.client.errors import NotFoundError
from limnos.model.errors import UnsupportedOperation
from limnos.model.kinds import GENERIC_PROVIDER
from limnos.pipeline.checks import CheckResult, check
from limnos.pipeline.file import read
from limnos.pipeline.lance_outputs import lance_problems
from limnos.pipeline.plan import plan
from limnos.pipeline.problems import InvalidPipeline
from limnos.pipeline.table_conflicts import find_declaration as pipelines_known
from limnos.pipeline.table_conflicts import put_declaration, require_own_tables
from tests.integration.live import LiveServer
from tests.pipeline.declared import declared_pipeline, make_table

pytestmark = [pytest.mark.integration, pytest.mark.spark]


def _problem_texts(checked: CheckResult) -> list[str]:
    return [str(problem) for problem in checked.problems]


def test_names_queries_and_order_are_checked_without_a_server() -> None:
    """All errors of all queries are reported at once, each at its position in the file."""
    pipeline = declared_pipeline(
        """
        a.x:
          sql: |
            SELECT :dya
            FROM orders, raw.t
        a.y: {sql: SELEC a}
        a.z: {sql: INSERT INTO a.b SELECT 1}
        a.w: {sql: "SELECT * FROM a.x.snapshots, x"}
        """,
        head="parameters: {day: date}\nsources: {order: data/*.csv}\n",
    )

    assert _problem_texts(check(pipeline)) == [
        "p.yaml:8:14: a.x: no parameter ':dya'; did you mean 'day'?; declare it under 'parameters'",
        (
            "p.yaml:9:12: a.x: no source 'orders'; did you mean 'order'?; declare it under 'sources', or write a table"
            " with its namespace"
        ),
        "p.yaml:10:14: a.y: not SQL that Spark can read: Syntax error at or near 'SELEC'.",
        (
            "p.yaml:11:14: a.z: a step's SQL must be one query (SELECT, WITH … SELECT, VALUES, TABLE, FROM …): the step"
            " writes its result"
        ),
        (
            "p.yaml:12:29: main.a.x.snapshots is a state of a table that this pipeline writes: a run reads its own"
            " branch of it; name main.a.x, or an older state with VERSION AS OF"
        ),
        (
            "p.yaml:12:44: a.w: no source 'x'; did you mean a.x?; declare it under 'sources', or write a table with its"
            " namespace"
        ),
    ]


def test_rule_reading_another_table_is_a_dependency() -> None:
    """A rule that reads another step's table is a dependency; a rule that reads its own table is not a cycle."""
    pipeline = declared_pipeline("""
        a.x: {sql: SELECT 1 AS i, expect: [{references: a.y, columns: i}, {empty: SELECT * FROM a.x JOIN a.z USING (i)}]}
        a.y: {sql: SELECT 1 AS i}
        a.z: {sql: SELECT i FROM main.a.y VERSION AS OF 5}
        """)

    checked = check(pipeline)

    assert [[step.name for step in level] for level in checked.levels] == [["a.y", "a.z"], ["a.x"]]
    assert checked.unchecked == ("tables and rights: without a server",)
    assert checked.holds


def test_cycles_through_sources_are_detected() -> None:
    """A source that reads a table of the pipeline is a dependency, so cycles through it are found."""
    pipeline = declared_pipeline(
        "a.x: {sql: SELECT * FROM own}\na.y: {sql: SELECT * FROM a.x}", head="sources: {own: {table: a.y}}\n"
    )

    assert _problem_texts(check(pipeline))[0].endswith("a.x reads a.y reads a.x; one of them must not read the other")


def test_missing_input_table_suggests_nearest_name(server: LiveServer, admin: Client, namespace: str) -> None:
    """The error for a missing table suggests the nearest name; tables of catalogs outside the server are not
    checked.
    """
    make_table(server, namespace, "orders")
    pipeline = declared_pipeline(f"""
        {namespace}.x: {{sql: SELECT * FROM {namespace}.orders}}
        {namespace}.y: {{sql: "SELECT * FROM {namespace}.order, main.{namespace}.orders"}}
        """)

    assert _problem_texts(check(pipeline, client=admin)) == [
        (
            f"p.yaml:5:3: {namespace}.y reads main.{namespace}.order, which does not exist, or you may not see it; did you"
            f" mean 'main.{namespace}.orders'?"
        )
    ]


@pytest.mark.parametrize("typed", ["{ns}.ordrs", "{ns}s.orders", "x_{ns}.orders"], ids=["t", "n", "o"])
def test_missing_input_table_suggests_a_table_of_the_catalog(
    server: LiveServer, admin: Client, namespace: str, typed: str
) -> None:
    """Tables that the pipeline does not read are suggested, too: of the namespace, of the one with the most similar
    name, and those of the same name.
    """
    make_table(server, namespace, "orders")
    pipeline = declared_pipeline(f"{namespace}.y: {{sql: 'SELECT * FROM {typed.format(ns=namespace)}'}}")

    (problem,) = _problem_texts(check(pipeline, client=admin))

    assert problem.endswith(f"you may not see it; did you mean 'main.{namespace}.orders'?")


def test_missing_input_table_is_not_answered_with_tables_made_from_it(admin: Client, namespace: str) -> None:
    """Neither the step's own table is proposed nor one that is made from it: that would be a circle."""
    pipeline = declared_pipeline(f"""
        {namespace}.orders1: {{sql: SELECT * FROM {namespace}.orders}}
        {namespace}.orders2: {{sql: SELECT * FROM {namespace}.orders1}}
        {namespace}.orders3: {{sql: SELECT * FROM {namespace}.orders2}}
        """)

    (problem,) = _problem_texts(check(pipeline, client=admin))
    assert f"reads main.{namespace}.orders, which does not exist, or you may not see it" in problem
    assert f"mean 'main.{namespace}." not in problem


def test_lance_output_without_its_library_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check says what to install, so that a run does not fail after its first steps."""
    pipeline = declared_pipeline("a.v: {catalog: lance, sql: SELECT 1 AS i}")
    monkeypatch.setattr("limnos.pipeline.lance_outputs.importlib.util.find_spec", lambda _: None)

    (problem,) = lance_problems(pipeline, {"lance": GENERIC_PROVIDER}, reads={})
    assert problem.message.startswith("a.v writes a Lance table, and Lance's library is not installed here: ")
    assert "[lance]" in problem.message
    assert list(lance_problems(pipeline, {"lance": "lakehouse-iceberg"}, reads={})) == []


def test_format_of_a_hidden_catalog_is_not_guessed() -> None:
    """A user who may not see the catalog gets the missing right, and no problem of the file, which may be right."""
    pipeline = declared_pipeline("a.v: {catalog: lance, sql: SELECT 1 AS i, vectors: {v: 2}}")

    assert list(lance_problems(pipeline, {}, reads={})) == []
    (problem,) = lance_problems(pipeline, {"lance": "lakehouse-iceberg"}, reads={})
    assert "'vectors' is for Lance tables" in problem.message


def test_check_without_a_parser_leaves_columns_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra `pipelines` alone there is no parser: a pipeline without queries is checked without it."""

    def missing(_spark: object) -> None:
        raise UnsupportedOperation("Spark's parser is not installed")

    for module in ("checks", "engine.output_columns"):
        monkeypatch.setattr(f"limnos.pipeline.{module}.grammar_of", missing)
    head = "sources:\n  orders: {files: orders.csv, format: csv, schema: id bigint}\n"

    checked = check(declared_pipeline("raw.orders: {load: orders}", head=head))

    assert checked.holds
    assert checked.unchecked[-1] == "columns: Spark's parser is not installed"


def test_columns_of_sources_without_schema_are_reported_as_unchecked(admin: Client, namespace: str) -> None:
    """A check names the steps whose queries it cannot analyze, because a source has no schema. With a schema the query
    is analyzed, and its mistake is found.
    """
    steps = f"""
        {namespace}.x: {{sql: SELECT minuts FROM rides}}
        {namespace}.y: {{sql: SELECT 1 AS a}}
        """
    known, unknown = (
        check(
            declared_pipeline(steps, head=f"sources: {{rides: {{files: data/*.parquet, format: parquet{more}}}}}\n"),
            client=admin,
        )
        for more in (", schema: 'minutes int'", "")
    )

    assert unknown.unchecked == (
        f"columns in {namespace}.x: source rides has no 'schema', so only the run finds wrong names",
    )
    assert known.unchecked == ()
    assert "minuts" in _problem_texts(known)[0]


def test_step_writing_to_catalog_without_tables_is_refused(admin: Client) -> None:
    """A step that writes to a catalog of filesets is refused by the check, before a run starts Spark. A step of a Lance
    catalog is not.
    """
    admin.catalogs.create("files", type="fileset", provider="fileset")
    text = "pipeline: p\ncatalog: CATALOG\nsteps:\n  a.t: {sql: SELECT 1 AS x}\n"

    results = [
        check(read(text.replace("CATALOG", each), file="p.yaml", directory=Path()), client=admin)
        for each in ("files", "lance")
    ]

    assert [each.holds for each in results] == [False, True]
    assert "p.yaml:1:1: catalog 'files' has provider fileset, and pipelines write only" in _problem_texts(results[0])[0]
    assert plan(results[1])[0].is_lance


def test_step_with_namespace_named_like_catalog_is_refused(admin: Client) -> None:
    """A step whose namespace has the name of another catalog is refused, because Spark would read the name as that
    catalog.
    """
    admin.catalogs.create("elsewhere")

    problems = _problem_texts(check(declared_pipeline("elsewhere.a.t: {sql: SELECT 1}"), client=admin))

    assert problems == [
        (
            "p.yaml:4:3: elsewhere.a.t begins with the name of catalog 'elsewhere', and the step writes a table in 'main':"
            " leave it out and write 'catalog: elsewhere' in the step, or choose another namespace"
        )
    ]


def test_missing_catalog_is_reported_to_administrator(admin: Client) -> None:
    """If the catalog does not exist, an administrator gets a problem that says so."""
    pipeline = read("pipeline: p\ncatalog: nope\nsteps: {a.t: {sql: SELECT 1}}", file="p.yaml", directory=Path())

    assert _problem_texts(check(pipeline, client=admin)) == [
        "p.yaml:1:1: there is no catalog 'nope' in this metalake: create it, or name another one"
    ]


def test_misspelled_catalog_of_a_step_is_reported_at_the_step(admin: Client) -> None:
    """The nearest catalog that the caller sees is proposed."""
    pipeline = declared_pipeline("a.t: {sql: SELECT 1 AS i}\na.v: {catalog: lanse, sql: SELECT 1 AS i}")

    assert _problem_texts(check(pipeline, client=admin)) == [
        "p.yaml:5:3: there is no catalog 'lanse' in this metalake; did you mean 'lance'?"
    ]


@pytest.mark.parametrize(
    "schema, words",
    [
        ("id biginteger, d decimal(9,2)", "column id has an unknown type 'biginteger'; did you mean 'bigint'?"),
        ("id bigint, s struct<a: int, b: int>, x nosuchthing", "column x has an unknown type 'nosuchthing'"),
        ("id bigint, name string text", "'schema' is not a list of columns"),
    ],
)
def test_unknown_type_of_a_column_is_named(admin: Client, schema: str, words: str) -> None:
    """The column is named, and the nearest type is proposed."""
    head = f"sources: {{rides: {{files: data/*.csv, schema: '{schema}'}}}}\n"

    (problem,) = _problem_texts(check(declared_pipeline("a.x: {load: rides}", head=head), client=admin))
    assert words in problem


def test_table_declared_by_another_pipeline_is_refused(admin: Client, ana: Client, namespace: str) -> None:
    """A table, or its quarantine table, that another pipeline declares is refused with that pipeline's name, until that
    pipeline no longer declares it. Users who may not see that pipeline get no problem.
    """
    rule = {"name": "r", "kind": "row", "condition": "a > 0", "action": "quarantine"}
    theirs = {"table": ["main", namespace, "t"], "expectations": [rule]}
    admin.roles.allow(f"role_{namespace}", ["use_catalog", "use_schema"], on="main", kind="catalog")
    admin.pipelines.put(f"its_{namespace}", {"steps": [theirs, {"table": None}, 1]})
    admin.pipelines.put(f"other_{namespace}", {"words": "of another program"})
    steps = f"""
        {namespace}.t: {{sql: SELECT 1 AS a}}
        {namespace}.t__quarantine: {{sql: SELECT 1 AS a}}
        {namespace}.u: {{sql: SELECT 1 AS a}}
        """

    mine = _problem_texts(check(declared_pipeline(steps, name="mine"), client=admin))
    unseen = _problem_texts(check(declared_pipeline(steps, name="mine"), client=ana))
    its = _problem_texts(check(declared_pipeline(steps, name=f"its_{namespace}"), client=admin))
    admin.pipelines.put(f"its_{namespace}", {"steps": []})
    given_up = _problem_texts(check(declared_pipeline(steps, name="mine"), client=admin))

    assert [line.partition(": they would")[0] for line in mine] == [
        f"p.yaml:4:3: {namespace}.t: main.{namespace}.t is also a table of pipeline 'its_{namespace}'",
        (
            f"p.yaml:5:3: {namespace}.t__quarantine: main.{namespace}.t__quarantine is also a table of pipeline"
            f" 'its_{namespace}'"
        ),
    ]
    assert (unseen, its, given_up) == ([], [], [])
    assert check(declared_pipeline(steps, name="mine"), client=ana).table_lookups is not None


@pytest.mark.parametrize("known", [False, True])
def test_later_of_two_concurrent_declarations_is_refused(admin: Client, namespace: str, *, known: bool) -> None:
    """If another pipeline is declared between a check and its declaration, the later declaration is refused and
    removed.
    """
    name, other = f"late_{known}", f"early_{known}"
    pipeline = declared_pipeline(f"{namespace}.t: {{sql: SELECT 1 AS a}}", name=name)
    if known:
        admin.pipelines.put(name, {"steps": []}, comment="as it was")
    rival = {"steps": [{"table": ["main", namespace, "t"]}]}

    overtaken = _Overtaken(admin, other, rival)
    before = pipelines_known(admin, name)

    require_own_tables(admin, pipeline)
    with pytest.raises(InvalidPipeline, match=f"is also a table of pipeline '{other}'"):
        put_declaration(overtaken, pipeline, declaration=rival, before=before)  # type: ignore[arg-type]

    if known:
        assert (admin.pipelines.load(name).declaration, admin.pipelines.load(name).comment) == (
            {"steps": []},
            "as it was",
        )
    else:
        with pytest.raises(NotFoundError):
            admin.pipelines.load(name)
    assert admin.pipelines.load(other).declaration == rival


class _Overtaken:
    """A client whose declaration of a pipeline is preceded by another one."""

    def __init__(self, client: Client, rival: str, declaration: dict[str, object]) -> None:
        self.client = client
        self.pipelines = _OvertakenPipelines(client, rival, declaration)

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)


class _OvertakenPipelines:
    """The pipeline calls of that client."""

    def __init__(self, client: Client, rival: str, declaration: dict[str, object]) -> None:
        self.client = client
        self.rival = rival
        self.told = declaration

    def put(self, name: str, declaration: dict[str, object], *, comment: str | None = None) -> object:
        """Declare the other pipeline first."""
        self.client.pipelines.put(self.rival, self.told)
        return self.client.pipelines.put(name, declaration, comment=comment)

    def __getattr__(self, name: str) -> object:
        return getattr(self.client.pipelines, name)


def test_suggested_grants_suffice_to_run_the_pipeline(
    server: LiveServer, admin: Client, ana: Client, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the suggested grants are made, round by round, the user may run the pipeline."""
    make_table(server, namespace, "orders")
    make_table(server, namespace, "there")
    pipeline = declared_pipeline(
        f"""
        {namespace}.there: {{sql: SELECT * FROM {namespace}.orders}}
        {namespace}.made: {{sql: SELECT * FROM {namespace}.there}}
        new_of_{namespace}.deep.made: {{sql: SELECT 1 AS a}}
        """,
        name="grants",
    )
    role = f"role_{namespace}"
    rounds = []
    while (checked := check(pipeline, client=ana)).missing:
        lines = list(dict.fromkeys(line for one in checked.missing for line in one.grants))
        rounds.append(lines)
        assert len(rounds) < 6, rounds
        for line in lines:
            words = shlex.split(line.replace("ROLE", role))[1:]
            assert main([*words, "--uri", server.uri, "--token", server.token]) == 0, line

    capsys.readouterr()
    assert rounds[0] == ["limnos grant use_catalog --on main --to ROLE"]
    assert f"limnos grant modify_table --on main.{namespace}.there --to ROLE" in {
        line for lines in rounds for line in lines
    }
    assert "limnos grant register_job_template --on lake --kind metalake --to ROLE" in rounds[1]
    assert checked.holds
    ana.namespaces.create(("main", f"new_of_{namespace}"))
    ana.pipelines.put("grants", {"name": "grants"})


def test_pipeline_of_another_user_needs_use_job_template(admin: Client, ana: Client, namespace: str) -> None:
    """To run an existing pipeline of another user, use_job_template on it and run_job on the metalake are needed."""
    admin.pipelines.put("theirs", {"name": "theirs"})
    role = f"role_{namespace}"
    admin.roles.allow(role, ["use_catalog"], on="main", kind="catalog")
    admin.roles.allow(role, ["use_job_template"], on="theirs", kind="job_template")
    pipeline = declared_pipeline(f"{namespace}.t: {{sql: SELECT 1 AS a}}", name="theirs")

    lacking = [one for one in check(pipeline, client=ana).missing if one.needed_for == "run"]
    admin.roles.allow(role, ["run_job"], on="lake", kind="metalake")

    assert [one.grants for one in lacking] == [("limnos grant run_job --on lake --kind metalake --to ROLE",)]
    assert [one for one in check(pipeline, client=ana).missing if one.needed_for == "run"] == []


def test_check_names_the_pipeline_that_it_could_not_see(admin: Client, ana: Client, namespace: str) -> None:
    """A user who may register and run pipelines cannot know whether a name is taken; one who may use all can."""
    admin.pipelines.put("hers", {"name": "hers"})
    role = f"role_{namespace}"
    admin.roles.allow(role, ["use_catalog", "use_schema", "create_table"], on="main", kind="catalog")
    admin.roles.allow(role, ["register_job_template", "run_job"], on="lake", kind="metalake")
    pipeline = declared_pipeline(f"{namespace}.t: {{sql: SELECT 1 AS a}}", name="hers")

    unseen = [one for one in check(pipeline, client=ana).unchecked if "another user" in one]
    admin.roles.allow(role, ["use_job_template"], on="hers", kind="job_template")
    seen = check(pipeline, client=ana)

    assert len(unseen) == 1
    assert "'limnos grant use_job_template --on hers --kind pipeline --to ROLE'" in unseen[0]
    assert seen.holds
    assert not any("another user" in one for one in seen.unchecked)
    new = declared_pipeline(f"{namespace}.t: {{sql: SELECT 1 AS a}}", name="nobodys")
    assert not any("another user" in one for one in check(new, client=admin).unchecked)
