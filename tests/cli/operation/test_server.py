# SPDX-License-Identifier: Apache-2.0
"""`server …`, `spark jars` and `demo`: the arguments that they pass to packages which the base install may lack."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import limnos
from limnos.cli import extras as rooms_module
from limnos.cli.operation import server, spark
from limnos.config import LoadedSettings, Settings
from limnos.config.loading import FLAGS
from limnos.model.errors import CannotStart
from limnos.model.secrets import Secret
from tests.cli.conftest import Run


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Fakes of the functions that the commands call; they record their arguments."""
    seen = SimpleNamespace(given=[], problems=[], lacks=[], asked=[])

    def remember(answer: object) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            seen.given.append((args, more))
            return answer

        return call

    seen.start, seen.migrate, seen.main = remember(7), remember("already at version 1"), remember(0)
    seen.ensure_runtime, seen.ensure_s3 = remember(Path("iceberg.jar")), remember(Path("s3.jar"))
    seen.check = lambda _settings: seen.problems
    seen.startup_notes = lambda _settings: seen.lacks

    def room(module: str, *, extra: str) -> SimpleNamespace:
        seen.asked.append((module, extra))
        return seen

    monkeypatch.setattr(server, "import_extra", room)
    monkeypatch.setattr(spark, "import_extra", room)
    return seen


def settings_of(rooms: SimpleNamespace) -> Settings:
    """The settings of the last call."""
    argument = rooms.given[-1][0][0]
    settings = argument.settings if isinstance(argument, LoadedSettings) else argument
    assert isinstance(settings, Settings)
    return settings


def test_start_passes_every_flag_to_its_setting(run: Run, rooms: SimpleNamespace, tmp_path: Path) -> None:
    """Each flag of `server start` sets its setting, and the command exits with the server's exit code."""
    file = tmp_path / "limnos.toml"
    file.write_text('[log]\nlevel = "debug"\n', encoding="utf-8")
    words = "--data d --listen 0.0.0.0:1 --database postgresql://h/d --access off --admin root --bare --insecure-listen"

    done = run("server", "start", *words.split(), "--config", str(file))

    settings = settings_of(rooms)
    assert done.code == 7
    assert settings.server.model_dump(include={"data", "listen", "admin", "bare", "insecure_listen"}) == {
        "data": "d",
        "listen": "0.0.0.0:1",
        "admin": "root",
        "bare": True,
        "insecure_listen": True,
    }
    assert (settings.database.url, settings.access.enabled) == (Secret("postgresql://h/d"), False)
    assert settings.log.level == "debug"
    assert rooms.asked == [("limnos.app.server", "server")]


def test_each_flag_of_a_setting_has_its_name_in_reports() -> None:
    """The flags of `server start` are those that the report and the reference of settings name, and `--config`."""
    arguments = server.app["start"].assemble_argument_collection(parse_docstring=True)

    names = {name for argument in arguments for name in argument.names if name.startswith("--")}
    assert names == {*FLAGS.values(), "--config"}


def test_allow_flags_may_be_repeated(run: Run, rooms: SimpleNamespace) -> None:
    """Repeated `--allow-root` and `--allow-endpoint` flags all reach the settings."""
    words = "--allow-root /a --allow-root s3://b/c --allow-endpoint http://h:1 --allow-endpoint https://i"

    done = run("server", "start", *words.split())

    storage = settings_of(rooms).storage
    assert done.code == 7
    assert storage.allowed_roots == ("/a", "s3://b/c")
    assert storage.allowed_endpoints == ("http://h:1", "https://i")


@pytest.mark.parametrize("flag", ["--allow-root=here", "--allow-endpoint=host:9000", "--allow-endpoint=http://h/path"])
def test_start_refuses_invalid_roots_and_endpoints(run: Run, rooms: SimpleNamespace, flag: str) -> None:
    """A root that is not a location, or an endpoint with more than an address, is refused with advice, and no server
    starts.
    """
    done = run("server", "start", flag)

    assert done.code != 0
    assert "write " in done.err
    assert rooms.given == []


def test_omitted_switch_does_not_override_the_environment(
    run: Run, rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch that is omitted does not override the environment."""
    monkeypatch.setenv("LIMNOS__SERVER__BARE", "true")
    monkeypatch.setenv("LIMNOS__ACCESS__ENABLED", "off")

    run("server", "start")

    assert settings_of(rooms).server.bare is True
    assert settings_of(rooms).access.enabled is False


def test_start_with_invalid_setting_exits_with_2(
    run: Run, rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid setting ends the start with exit code 2 and a readable message, also in a log."""
    monkeypatch.setenv("LIMNOS__SERVER__DATE", "x")

    done = run("server", "start")

    assert (done.code, rooms.given) == (2, [])
    assert done.err.startswith("error: unknown setting 'server.date'")
    assert "did you mean 'server.data'?" in done.err


@pytest.mark.parametrize("value", ["yes", "ON "])
def test_access_flag_accepts_only_on_and_off(run: Run, value: str) -> None:
    """`--access` accepts only `on` and `off`."""
    assert run("server", "start", "--access", value).code == 2


def test_check_lists_problems(run: Run, rooms: SimpleNamespace) -> None:
    """`server check` exits with 1 and lists problems, or exits with 0 and an empty list."""
    good = run("server", "check")
    rooms.problems = [CannotStart("no directory", why="it is a file", advice="name another")]
    bad = run("server", "check")

    assert (good.code, good.result) == (0, [])
    assert (bad.code, bad.result) == (
        1,
        [{"problem": "no directory", "why": "it is a file", "next": "name another", "stops": True}],
    )


def test_check_prints_problems_whole(run: Run, rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text, each problem has lines of its own, which a narrow terminal does not cut."""
    monkeypatch.setenv("COLUMNS", "60")
    rooms.problems = [CannotStart("no directory", why="it is a file", advice=f"name another one {'x' * 100}")]

    lines = run("server", "check", "--output", "table").out.splitlines()

    assert lines == ["error: no directory", "  why: it is a file", f"  next: name another one {'x' * 100}"]


def test_check_reports_harmless_findings_as_notes(run: Run, rooms: SimpleNamespace) -> None:
    """A finding that does not prevent a start is a note beside the result, and the exit code is 0."""
    rooms.lacks = ["SQL++ over data needs an archive"]

    done = run("server", "check")

    assert (done.code, done.result, done.err) == (0, [], "note: SQL++ over data needs an archive\n")


def test_migrate_prints_the_report_of_the_store(run: Run, rooms: SimpleNamespace) -> None:
    """`server migrate` prints the store's report."""
    done = run("server", "migrate", "--data", "d")

    assert (done.code, done.out) == (0, "already at version 1\n")
    assert settings_of(rooms).server.data == "d"
    assert rooms.given[-1][1] == {"restored": False, "keeps_tokens": False, "beside_servers": False}


def test_migrate_passes_the_restored_flag(run: Run, rooms: SimpleNamespace) -> None:
    """`server migrate --restored` passes the flag to the migration."""
    done = run("server", "migrate", "--restored")

    assert done.code == 0, done.err
    assert rooms.given[-1][1] == {"restored": True, "keeps_tokens": False, "beside_servers": False}


def test_config_shows_values_and_origins(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`server config` shows each value with its origin, and no password."""
    monkeypatch.setenv("LIMNOS__DATABASE__URL", "postgresql://u:hunter2@h/d")

    done = run("server", "config", "--admin", "root")

    assert isinstance(done.result, list)
    rows_by_setting = {row["setting"]: (row["value"], row["origin"]) for row in done.result}
    assert rows_by_setting["server.admin"] == ("root", "flag --admin")
    assert rows_by_setting["database.url"] == ("postgresql://u:*****@h/d", "environment LIMNOS__DATABASE__URL")
    assert rows_by_setting["log.level"] == ("info", "default")
    assert "hunter2" not in run("server", "config", "--output", "table").out


def test_spark_jars_passes_repository_and_cache(
    run: Run, rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`spark jars` passes repository and cache, where a flag overrides the environment, and prints the file."""
    monkeypatch.setenv("LIMNOS__SPARK__REPOSITORY", "https://other/maven2")
    monkeypatch.setenv("LIMNOS__SPARK__CACHE", "elsewhere")

    done = run("spark", "jars", "--cache", "here", "--output", "table")

    assert (done.code, done.out) == (0, "iceberg.jar\n")
    assert rooms.given == [((), {"repository": "https://other/maven2", "cache": Path("here")})]


def test_spark_jars_with_s3_fetches_two_jars(run: Run, rooms: SimpleNamespace) -> None:
    """`spark jars --s3` also fetches the JAR for tables on S3."""
    done = run("spark", "jars", "--s3", "--output", "table")

    assert (done.code, done.out) == (0, "iceberg.jar\ns3.jar\n")


def test_demo_runs_in_its_directory(run: Run, rooms: SimpleNamespace) -> None:
    """`demo` passes its directory to the demo."""
    done = run("demo", "here")

    assert done.code == 0
    assert rooms.given == [((Path("here"),), {})]
    assert rooms.asked == [("examples.demo.run", "server,spark,demo")]


def test_demo_of_installed_package_is_the_bundled_one(
    run: Run, rooms: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`demo` of an installed package imports the demo from the package's own directory."""
    monkeypatch.setattr(spark, "checkout_of", lambda _file: None)
    monkeypatch.setattr(sys, "path", [])

    assert run("demo", "here").code == 0

    assert sys.path == [str(Path(limnos.__file__).parent / "bundled")]
    assert rooms.asked == [("examples.demo.run", "server,spark,demo")]


def test_missing_library_names_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the base install a command that needs more says which extra to install."""

    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named 'uvicorn' (for {name})", name="uvicorn")

    monkeypatch.setattr(rooms_module, "importlib", SimpleNamespace(import_module=missing))

    done = run("server", "migrate")

    assert done.code == 1
    assert "pip install -e '.[server]'" in done.err


def test_missing_database_driver_names_the_extra(run: Run, rooms: SimpleNamespace) -> None:
    """If a database driver is missing when the server starts, the error names the extra that has it."""

    def start(_loaded: LoadedSettings) -> int:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    rooms.start = start

    done = run("server", "start", "--database", "postgresql://h/d")

    assert done.code == 1
    assert "pip install -e '.[postgres]'" in done.err


def test_config_shows_one_setting_or_section(run: Run) -> None:
    """A setting is shown alone, a section with its settings; a misspelt one is answered by the near one."""
    one = run("server", "config", "server.admin", "--admin", "root")
    section = run("server", "config", "log")
    wrong = run("server", "config", "server.admn")

    assert one.result == [{"setting": "server.admin", "value": "root", "origin": "flag --admin"}]
    assert isinstance(section.result, list)
    assert {row["setting"].partition(".")[0] for row in section.result} == {"log"}
    assert wrong.code == 2
    assert wrong.error["hint"] == "did you mean 'limnos server config server.admin'?"
