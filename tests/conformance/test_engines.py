# SPDX-License-Identifier: Apache-2.0
"""The runner of other engines: how it handles archives and answers. The engines themselves run in `make
conformance`.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.engines import cross
from conformance.engines.archives import FLINK, FLINK_2, HERE, TRINO, Tarball, unpack
from conformance.engines.checks import Checks, Lake
from conformance.engines.driver import ABSENT, Driver, Levels, Place, SqlDriver
from conformance.engines.drivers.pyiceberg_driver import Engine as Witness
from conformance.engines.drivers.pyspark_sql import PySpark
from conformance.engines.drivers.spark_sql import SparkSql
from conformance.engines.foreign import Foreign
from conformance.engines.host import answer
from conformance.engines.page import ALIAS, PAGE, block
from conformance.engines.remote import CallRefused, Remote
from conformance.engines.rows import FIRST, PLAIN, SECOND, TYPED, Row, difference, remaining_rows, same
from conformance.engines.runner import Runner
from conformance.engines.scores import BEGIN, END, as_json, as_text, in_page, merged, totals
from conformance.engines.story import Story
from conformance.kit.jars import parse_lock
from tests.objects import ObjectStoreServer

JARS = {
    "t-1/lib/a.jar": b"a",
    "t-1/plugin/other/b.jar": b"b",
    "t-1/plugin/other/c.jar": b"c",
    "t-1/plugin/iceberg/i.jar": b"i",
}
LINKS = {"t-1/plugin/iceberg/a.jar": "t-1/lib/a.jar", "t-1/plugin/iceberg/b.jar": "t-1/plugin/other/b.jar"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive whose plugins share JARs by links, one of them to a JAR that comes later."""
    path = tmp_path / "t-1.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, target in LINKS.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.LNKTYPE, target
            tar.addfile(link)
        for name, data in JARS.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def test_only_selected_folders_are_unpacked(archive: Path, tmp_path: Path) -> None:
    """Wanted folders are unpacked completely, with JARs that they share with unwanted ones; of unwanted folders nothing
    remains.
    """
    unpack(archive, tmp_path / "out", prefixes=("lib/", "plugin/iceberg/"))

    unpacked_files = {
        str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in (tmp_path / "out").rglob("*.jar")
    }
    assert unpacked_files == {
        "t-1/lib/a.jar": b"a",
        "t-1/plugin/iceberg/a.jar": b"a",
        "t-1/plugin/iceberg/b.jar": b"b",
        "t-1/plugin/iceberg/i.jar": b"i",
    }
    assert [path.name for path in (tmp_path / "out" / "t-1" / "plugin").iterdir()] == ["iceberg"]


def test_server_archive_has_its_own_name_in_maven_layout() -> None:
    """An archive that is not a JAR is found under its own name in Maven's layout."""
    assert isinstance(TRINO, Tarball)
    assert TRINO.relative_path == "io/trino/trino-server/476/trino-server-476.tar.gz"


def test_every_jar_and_wheel_has_a_hash() -> None:
    """Each JAR and each wheel has a hash."""
    jars = [each for line in (FLINK, FLINK_2) for each in parse_lock((HERE / line).read_text(encoding="utf-8"))]
    wheels = [
        HERE / name
        for name in (
            "jdk25.txt",
            "chdb.txt",
            "daft.txt",
            "polars.txt",
            "pyiceberg-core.txt",
            "pysail.txt",
            "pyspark35.txt",
        )
    ]

    assert {len(each.sha256) for each in jars} == {64}
    for line in ("1.20", "2.1"):
        assert any(each.name == f"iceberg-flink-runtime-{line}" and each.version == "1.11.0" for each in jars)
    for file in wheels:
        text = file.read_text(encoding="utf-8").replace("\\\n", " ")
        pins = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        assert pins
        assert all("--hash=sha256:" in line for line in pins)


def test_exception_counts_as_the_answer_of_a_check() -> None:
    """A check passes with the expected answer; an exception fails it with its message, or passes if a refusal is
    expected.
    """

    def fail() -> object:
        raise RuntimeError("needs SELECT_TABLE")

    checks = Checks("engine 1")
    checks.expect("right", lambda: [1], [1])
    checks.expect("wrong", lambda: [2], [1])
    checks.expect("broken", fail, [1])
    checks.expect_refusal("refused", fail, "SELECT_TABLE")
    checks.expect_refusal("refused otherwise", fail, "MODIFY_TABLE")
    checks.expect_refusal("let through", lambda: "SELECT_TABLE", "SELECT_TABLE")

    assert [check.passed for check in checks.made] == [True, False, False, True, False, False]
    assert checks.made[2].told == "RuntimeError: needs SELECT_TABLE"


SIGNED_IN = [
    "PyIceberg",
    "Daft",
    "Trino",
    "Trino on S3",
    "Flink",
    "Flink on S3",
    "DuckDB",
    "DuckDB on S3",
    "Spark",
    "Spark on S3",
]


@pytest.mark.parametrize("engine", [*SIGNED_IN, "chDB", "Sail"])
def test_engine_settings_come_from_the_page(engine: str) -> None:
    """Each engine's settings come from docs/guides/engines.md, with the given address, token and catalog."""
    code = block(engine, uri="http://h:1/iceberg", token="secret-1", catalog="other")

    assert "http://h:1/iceberg" in code
    assert code.count("secret-1") == 1
    assert "8090" not in code
    assert "other" in code
    assert "main" not in code


@pytest.mark.parametrize("engine", ["Spark", "Spark on S3"])
def test_spark_names_the_catalog_as_the_server_does(engine: str) -> None:
    """The page's settings of Spark give the catalog its own name, which views store; the runs use another name."""
    text = PAGE.read_text(encoding="utf-8")
    names = set(re.findall(r"spark\.sql\.catalog\.(\w+)", text.partition(f"# {engine}\n")[2]))

    assert names == {"main"}
    assert set(re.findall(r"spark\.sql\.catalog\.(\w+)", block(engine, uri="http://h:1/iceberg", token="t"))) == {ALIAS}


@pytest.mark.parametrize("engine", SIGNED_IN)
def test_credential_replaces_the_token_in_settings(engine: str) -> None:
    """Clients with a service account's secret have the secret, the account and the server's token address, and no
    token.
    """
    code = block(engine, uri="http://h:1/iceberg", token="etl:secret-1", catalog="other")

    assert code.count("secret-1") == 1
    assert "etl" in code
    assert "http://h:1/iceberg/v1/oauth/tokens" in code
    assert "TOKEN " not in code
    assert "other" in code


@pytest.mark.parametrize("engine", ["chDB", "Sail"])
def test_token_only_client_is_refused_a_credential(engine: str) -> None:
    """A client that supports only tokens is refused a credential."""
    with pytest.raises(LookupError, match="sign in by a credential"):
        block(engine, uri="http://h", token="etl:secret-1")


def test_store_address_is_set_for_engines_that_need_it() -> None:
    """Engines that do not get the store's address from the server have it in their settings."""
    assert "s3.endpoint=http://s:9\n" in block("Trino on S3", uri="http://h", token="t", store="http://s:9")


def test_engine_missing_on_the_page_raises_lookup_error() -> None:
    """An engine that is not on the page raises LookupError."""
    with pytest.raises(LookupError, match="no settings for Impala"):
        block("Impala", uri="http://h", token="t")


class PreparedEngine(Remote):
    """An engine with a prepared answer for each verb."""

    def __init__(self, answers: dict[str, object], limits: dict[str, str]) -> None:
        super().__init__((), {}, Path("/dev/null"), title="engine 1", limits=limits)
        self.answers = answers

    def ask(self, verb: str, *_: object) -> object:
        scripted_answer = self.answers[verb]
        if isinstance(scripted_answer, Exception):
            raise scripted_answer
        return scripted_answer


def story(answers: dict[str, object], **limits: str) -> Story:
    """Return a story of an engine, without checks by the witness."""
    lake = Lake(uri="http://h", admin="a", reader="r", work=Path())
    return Story("one", PreparedEngine(answers, limits), witness=Witness(), lake=lake, warehouse="main")


def test_failure_with_listed_words_counts_as_client_limit() -> None:
    """A failed check counts as the client's limit if the error has the words that its driver lists; otherwise it has
    failed.
    """
    one = story(
        {"drop": CallRefused("No: DROP is not spoken here")},
        known="not spoken",
        gone="not spoken",
        other="unknown verb",
    )
    one.check("fine", lambda: None)
    one.check("wrong", lambda: "it reads nothing")
    one.check("raised", lambda: one.remote.ask("drop"))
    one.check("known", lambda: one.remote.ask("drop"))
    one.check("gone", lambda: None)
    one.check("other", lambda: one.remote.ask("drop"))

    assert [each.result for each in one.outcomes] == ["ok", "FAILED", "FAILED", "client", "FAILED", "FAILED"]
    assert "DROP is not spoken here" in one.outcomes[2].told
    assert "FAILED one: wrong\n       it reads nothing" in as_text(one.outcomes)
    assert totals(one.outcomes, {"one": "engine 1"}).endswith("| engine 1 | 6 | 1 | 1 | 4 |")
    assert json.loads(as_json(one.outcomes, {}))["outcomes"][0]["check"] == "fine"


def test_limit_of_a_kind_applies_to_all_its_checks() -> None:
    """A limit of a kind applies to every check of it, with the same words; one for a check takes precedence."""
    one = story({}, one="No: one", all="No: all")
    one.check("one", lambda: "No: one", kind="all")
    one.check("two", lambda: "No: all", kind="all")
    one.check("three", lambda: "No: other", kind="all")
    one.check("four", lambda: "No: all")

    assert [each.result for each in one.outcomes] == ["client", "client", "FAILED", "FAILED"]


def test_other_engines_must_read_the_writers_rows() -> None:
    """Other engines must read the rows that the witness sees, including a replaced value; for a missing table none is
    asked.
    """
    rows = [[*row[:6], row[6] or [], row[7]] for row in remaining_rows(deleted=True)]

    class PreparedWitness(Witness):
        def is_partitioned_by_day(self, levels: Levels, name: str) -> bool:
            return True

        def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
            return list(rows)

    message = "the witness reads " + difference([[*FIRST[2][:6], [], None]], [FIRST[2]], TYPED)
    one = story(dict.fromkeys(("be", "create_typed", "append_typed", "delete")), **{"types: delete": message})
    one.remote.limits["types: write"] = "the witness reads"
    one.witness = PreparedWitness()
    assert cross.written(one) == rows
    assert [each.result for each in one.outcomes] == ["ok", "client", "client"]

    two = story({"be": None, "read": remaining_rows(deleted=True)})
    cross.read(two, {"one": rows, "two": remaining_rows(deleted=True)})
    assert [each.result for each in two.outcomes] == ["FAILED", "ok"]
    assert two.outcomes[0].told.startswith("it reads [[3, ")

    failed = story({"be": None, "create_typed": CallRefused("No")})
    assert cross.written(failed) == []


def test_expected_refusal_must_have_the_servers_message() -> None:
    """A caller without the right must be refused, with the server's message."""
    one = story({"append": CallRefused("403: needs MODIFY_TABLE"), "read": CallRefused("403"), "drop": None})
    for verb in one.remote.answers:  # type: ignore[attr-defined]
        one.refused(verb, verb, by=["MODIFY_TABLE"])

    assert [each.result for each in one.outcomes] == ["ok", "FAILED", "FAILED"]


def test_driver_results_are_sent_over_the_pipe(tmp_path: Path) -> None:
    """A driver's rows, limits and exceptions, with causes, are sent over the pipe; an unknown verb is an error."""

    class Engine(Driver):
        title = "engine 1"

        def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
            try:
                raise OSError("away")
            except OSError as error:
                raise RuntimeError(f"{levels} {name} {columns}") from error

    engine = Engine()
    place = {"uri": "u", "warehouse": "w", "tokens": {}, "work": str(tmp_path)}

    assert answer(engine, json.dumps(["start", [place]])) == {
        "told": {"title": "engine 1", "dialect": "", "limits": {}}
    }
    assert engine.place == Place(uri="u", warehouse="w", tokens={}, work=tmp_path)
    assert answer(engine, json.dumps(["read", [["a"], "t", ["id"]]])) == {
        "error": "RuntimeError: ['a'] t ['id'] / OSError: away"
    }
    assert answer(engine, json.dumps(["drop", [["a"], "t"]])) == {"error": f"Absent: {ABSENT}"}


def test_all_engines_write_before_any_reads() -> None:
    """Every engine writes before any reads; engines without a driver are skipped."""

    class LoggedRunner(Runner):
        def _with(self, name: str, catalog: str, tell: Callable[[Story], object]) -> None:
            calls.append((name, catalog))

    calls: list[tuple[str, str]] = []
    lake = Lake(uri="http://h", admin="a", reader="r", work=Path())
    LoggedRunner(lake, ObjectStoreServer(), Path()).run_crossed(["go", "none", "trino"])

    assert calls == [("go", "main"), ("trino", "main")] * 2


def test_ended_engine_process_is_reported_by_later_verbs(tmp_path: Path) -> None:
    """If an engine's process ends, the next verb and all later ones report that."""
    remote = Remote(command=[sys.executable, "-c", "input()"], environment={}, log=tmp_path / "log")
    place = Place(uri="u", warehouse="w", tokens={}, work=tmp_path)
    with pytest.raises(CallRefused, match="has ended"):
        remote.start(place)
    with pytest.raises(CallRefused, match="has ended"):
        remote.ask("read")
    remote.stop()


PROGRAM = """#!{python}
import json, sys
for line in sys.stdin:
    with open("asked", "a") as asked:
        asked.write(line)
    told = [{{"place": {{"label": "here", "x": 1}}, "id": 1}}] if '"read"' in line else None
    print(json.dumps({{"told": told}}), flush=True)
"""


def test_foreign_language_program_gets_iceberg_json(tmp_path: Path) -> None:
    """A program in another language gets settings by name, schemas as Iceberg's JSON and rows by column name; columns
    are returned in the requested order.
    """
    program = tmp_path / "program"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)

    class Engine(Foreign):
        section = "iceberg-go"

        def built(self) -> Path:
            return program

    engine = Engine()
    engine.start(Place(uri="http://h:1/iceberg", warehouse="other", tokens={"admin": "t1"}, work=tmp_path))
    engine.be("admin")
    engine.create_typed(["a"], "t")
    engine.append_typed(["a"], "t", FIRST[:1])
    assert engine.read(["a"], "t", ["id", "place"]) == [[1, [1, "here"]]]
    engine.stop()

    opened, created, appended, _ = map(json.loads, (tmp_path / "asked").read_text().splitlines())
    assert opened[1][0]["properties"] == {
        "type": "rest",
        "uri": "http://h:1/iceberg",
        "warehouse": "other",
        "token": "t1",
    }
    assert (created[0], created[1][0]["day"]) == ("create", "at")
    assert [each["name"] for each in created[1][0]["schema"]["fields"]] == list(TYPED)
    assert appended[1][0]["rows"][0]["place"] == {"x": 1, "label": "here"}


def test_typed_values_are_compared_by_value() -> None:
    """Timestamps, decimals and structs are compared by their value."""
    read_rows: list[Row] = [
        [
            "1",
            "Ada",
            12.5,
            "2026-01-02",
            "2026-01-02 03:04:05.123456",
            "2026-01-02 04:04:05.123456+01:00",
            '["a", "b"]',
            {"x": 1, "label": "here"},
        ],
    ]
    assert same(read_rows, FIRST[:1], TYPED)
    for i, other in enumerate(
        (2, "ada", "12.51", "2026-01-03", "2026-01-02 03:04:05", "2026-01-02 03:04:05.123457", [], [1, None])
    ):
        row = list(read_rows[0])
        row[i] = other
        assert not same([row], FIRST[:1], TYPED), other
    assert difference([[1, "a"], [2, "b"]], [[2, "b"], [1, "c"]], PLAIN) == "[[1, 'a']] in place of [[1, 'c']]"
    assert difference([[1, "a"], [1, "a"]], [[1, "a"]], PLAIN) == "[[1, 'a']] in place of []"
    assert same([[2, "b"], [1, None]], [[1, None], [2, "b"]], PLAIN)
    assert not same([[1, None]], [[1, "None"]], PLAIN)
    assert [row[0] for row in remaining_rows(deleted=True)] == [1, 3, 4]
    assert len(remaining_rows(deleted=False)) == len([*FIRST, *SECOND])


def test_sql_names_and_literals_are_quoted_and_typed() -> None:
    """Names are quoted, levels are joined by dots, and literals have the column's type."""
    statements: list[str] = []

    class Plain(SqlDriver):
        types = {"long": "BIGINT", "string": "VARCHAR"}  # noqa: RUF012

        def ask(self, text: str) -> list[Row]:
            statements.append(text)
            return []

    Plain().append(["a", "b"], 't"u', [[1, "it's"], [2, None]])
    assert statements == ['INSERT INTO lake."a.b"."t""u" VALUES (1, \'it\'\'s\'), (2, CAST(NULL AS VARCHAR))']


def test_spark_sql_quotes_each_level_and_escapes_strings() -> None:
    """Each level is one part of the name, a quote in a string is escaped by a backslash, and a typed table has
    partitions.
    """
    statements: list[str] = []

    class Plain(SparkSql):
        def ask(self, text: str) -> list[Row]:
            statements.append(text)
            return []

    Plain().append(["a", "b.c"], "t`u", [[1, "it's \\"]])
    Plain().create_typed(["a"], "t")
    assert statements[0] == "INSERT INTO lake.`a`.`b.c`.`t``u` VALUES (1, 'it\\'s \\\\')"
    assert "`tags` ARRAY<STRING>" in statements[1]
    assert " USING iceberg PARTITIONED BY (days(`at`)) " in statements[1]


def test_each_spark_caller_has_its_own_catalog(tmp_path: Path) -> None:
    """Settings that Spark accepts only at its start are not repeated; each caller's catalog has the page's settings and
    the caller's token.
    """
    settings: dict[str, str] = {}
    spark = PySpark()
    spark.place = Place(uri="http://h", warehouse="w", tokens={"reader": "r"}, work=tmp_path, is_remote=True)
    spark.spark = SimpleNamespace(conf=SimpleNamespace(set=settings.__setitem__))  # type: ignore[assignment]

    spark.be("reader")
    assert all(name.startswith("spark.sql.catalog.lake_reader") for name in settings)
    assert settings["spark.sql.catalog.lake_reader.token"] == "r"
    assert settings["spark.sql.catalog.lake_reader.header.X-Iceberg-Access-Delegation"] == "vended-credentials"
    assert spark.space(["a"]) == "lake_reader.`a`"


def test_page_tables_are_replaced_by_the_last_run() -> None:
    """The tables of a run replace those of the last run; results of engines that did not run are kept, outdated ones of
    those that ran are removed.
    """
    first, second = (story({}), story({}, gone="No"))
    second.engine = "two"
    for each in (first, second):
        each.check("here", lambda: None)
        each.check("gone", lambda: "No")
        each.check("deeper: alone", lambda: None)
    stored_results = as_json([*first.outcomes, *second.outcomes], {"one": "engine 1", "two": "engine 2"})
    outcomes, titles = merged(stored_results, second.outcomes[:1], {"two": "engine 2.1"})
    page = in_page(f"a\n{BEGIN}\nold\n{END}\nb", outcomes, titles)
    same_version, _ = merged(stored_results, first.outcomes[:1], {"one": "engine 1"})

    assert len(same_version) == len(first.outcomes) + len(second.outcomes)
    assert [(each.engine, each.check) for each in outcomes] == [
        ("one", "here"),
        ("one", "gone"),
        ("one", "deeper: alone"),
        ("two", "here"),
    ]
    assert page.startswith(f"a\n{BEGIN}\n\n| engine")
    assert page.endswith(f"| gone | **failed** |  |\n\n{END}\nb")
    assert "| here | ok | ok |" in page
    assert "engine 2.1" in page
    assert "old" not in page
