# SPDX-License-Identifier: Apache-2.0
"""Errors, confirmations and credentials of commands: exit codes, both output formats, help."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from limnos import __version__
from limnos.cli import operations
from limnos.cli.grammar.spelling import spell_operation
from limnos.cli.operations import OPERATIONS, VERBS
from limnos.cli.output import format_of
from limnos.client.flow import OWN
from tests.cli.conftest import Run
from tests.client.fake import FakeServer
from tests.client.test_session import free_port

WHO = f"{OWN}/whoami"


def failing(status: int, code: str = "", **more: object) -> dict[str, object]:
    """An error body of the admin API."""
    return {"error": {"code": code, "message": f"answered {status}", "request_id": "r-1", **more}}


@pytest.mark.parametrize(
    "status,code,expected",
    [
        (400, "illegal-name", 1),
        (401, "unauthenticated", 4),
        (403, "forbidden", 4),
        (404, "not-found", 3),
        (409, "already-exists", 5),
        (500, "internal", 1),
        (503, "unavailable", 6),
    ],
)
def test_each_kind_of_error_has_its_exit_code(
    fake: FakeServer, limnos: Run, status: int, code: str, expected: int
) -> None:
    """Each kind of error has its exit code; on standard error it is JSON with the request id."""
    fake.on("GET", WHO, failing(status, code), status=status)

    done = limnos("whoami")

    assert (done.code, done.out) == (expected, "")
    assert done.error["message"] == f"answered {status}"
    assert (done.error["code"], done.error["request_id"]) == (code, "r-1")


def test_error_in_table_format_has_two_lines(fake: FakeServer, limnos: Run) -> None:
    """In table format an error has two lines: the problem and the next step."""
    fake.on("GET", WHO, failing(404, "not-found"), status=404)

    done = limnos("whoami", "--output", "table")

    first, second = done.err.splitlines()
    assert first == "error: answered 404"
    assert second.startswith("  next: ")


def test_hint_for_unreachable_server_is_the_start_command(run: Run) -> None:
    """If no server listens, the exit code is 6 and the hint is the command that starts one."""
    done = run("ls", "--uri", f"http://127.0.0.1:{free_port()}")

    assert done.code == 6
    assert "limnos server start" in str(done.error["hint"])


def test_hint_for_refusal_is_the_explain_command(fake: FakeServer, limnos: Run) -> None:
    """The hint for a refusal with a decision is the command that explains it, and JSON has the decision."""
    decision = {"allowed": False, "action": "table_load", "target": {"name": "main.a.t"}, "user": "ana"}
    fake.on("GET", WHO, failing(403, "forbidden", decision=decision), status=403)

    error = limnos("whoami").error

    assert "limnos access explain table_load main.a.t" in str(error["hint"])
    assert isinstance(error["decision"], dict)


def test_hint_for_invalid_credential_explains_tokens(fake: FakeServer, limnos: Run) -> None:
    """The hint for an invalid credential says how to get a token."""
    fake.on("GET", WHO, failing(401, "unauthenticated"), status=401)

    assert "--token-file" in str(limnos("whoami", "--token", "old").error["hint"])


def test_hint_for_non_empty_namespace_is_ls(fake: FakeServer, limnos: Run) -> None:
    """The hint for a namespace that is not empty is the command that lists its children."""
    body = {"error": {"message": "not empty", "type": "NamespaceNotEmptyException", "code": 409}}
    fake.on("DELETE", "/iceberg/v1/lake.main/namespaces/a", body, status=409)

    done = limnos("drop", "main.a", "--kind", "namespace")

    assert (done.code, done.error["code"]) == (5, "not-empty")
    assert "limnos list" in str(done.error["hint"])


@pytest.mark.parametrize(
    "words,expected",
    [
        (["lss"], "ls"),
        (["user", "ad"], "limnos create user"),
        (["ls", "--nope"], "--nope"),
        (["user", "add"], "NAME"),
        (["ls", "--output", "yaml"], "yaml"),
        (["drop"], "PATH"),
        (["create", "namespace", "main..a"], "empty part"),
        (["create", "namespace", "main"], "too short"),
        (["create", "catalog", "c", "--property", "novalue"], "KEY=VALUE"),
        (["ls", "--uri", "localhost"], "not the address of a server"),
        (["ls", "--user", "a", "--token", "b"], "both give your identity"),
        (["ls", "--token-file", "no-such-file"], "no-such-file"),
    ],
)
def test_invalid_command_line_is_a_usage_error(run: Run, words: list[str], expected: str) -> None:
    """An invalid command line gives exit code 2 and names the problem."""
    done = run(*words)

    assert done.code == 2
    assert expected in done.err


@pytest.mark.parametrize(
    "words,page",
    [
        (["webhook", "retry", "abc"], "limnos webhook retry --help"),
        (["webhook", "nope"], "limnos webhook --help"),
        (["ls", "--nope"], "limnos list --help"),
        (["asdf"], "limnos --help"),
    ],
)
def test_hint_for_usage_error_names_help_of_the_command(run: Run, words: list[str], page: str) -> None:
    """If nothing better is known, the hint for a usage error names the help page of that command, which exists."""
    assert f"'{page}'" in run(*words, "--output", "table").err
    assert run(*page.split()[1:]).code == 0


@pytest.mark.parametrize(
    "flags,environ,expected",
    [
        ([], {}, None),
        ([], {"LIMNOS_USER": "eva"}, "Basic ZXZhOg=="),
        ([], {"LIMNOS_TOKEN": "env"}, "Bearer env"),
        ([], {"LIMNOS_TOKEN_FILE": "FILE"}, "Bearer filed"),
        ([], {"LIMNOS_TOKEN": "env", "LIMNOS_USER": "eva"}, "Bearer env"),
        (["--user", "eva"], {"LIMNOS_TOKEN": "env"}, "Basic ZXZhOg=="),
        (["--token-file", "FILE"], {"LIMNOS_TOKEN": "env"}, "Bearer filed"),
        (["--token", "flag"], {"LIMNOS_TOKEN": "env"}, "Bearer flag"),
    ],
)
def test_credential_flag_overrides_environment(  # noqa: PLR0917 - fixtures and one column per part of the case
    fake: FakeServer,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    environ: dict[str, str],
    expected: str | None,
) -> None:
    """A flag overrides the environment; within the environment a token overrides a user."""
    file = tmp_path / "token"
    file.write_text("filed\n", encoding="utf-8")
    for name, value in environ.items():
        monkeypatch.setenv(name, value.replace("FILE", str(file)))
    monkeypatch.setenv("LIMNOS_URI", fake.uri)
    fake.on("GET", WHO, {"user": "x"})

    run("whoami", *(str(file) if flag == "FILE" else flag for flag in flags))

    assert fake.asked[0].headers.get("Authorization") == expected


def test_empty_token_file_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    """A token file without a token is a usage error, not an anonymous request."""
    file = tmp_path / "token"
    file.write_text("\n", encoding="utf-8")

    done = run("whoami", "--token-file", str(file))

    assert done.code == 2
    assert "is empty" in str(done.error["message"])


NO_TOKENS = {
    "key.pem": "-----BEGIN PRIVATE KEY-----\nMIIEvgPlanted\n-----END PRIVATE KEY-----\n",
    "tok.json": '{\n  "id": 7,\n  "token": "lim_7_Planted-token"\n}\n',
    "line.json": '{"id":7,"secret":"Planted"}\n',
    "header": "Bearer Planted-token-of-a-caller\n",
    "break": "lim_7_Planted\r\nX-Other: Planted\n",
    "word": "Plänted",
}


@pytest.mark.parametrize("name", NO_TOKENS)
@pytest.mark.parametrize("source", ["--token-file", "LIMNOS_TOKEN_FILE", "--token", "LIMNOS_TOKEN"])
def test_text_that_is_no_token_is_neither_printed_nor_sent(  # noqa: PLR0917 - fixtures
    fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, name: str
) -> None:
    """A private key, JSON or other text in the place of a token is a usage error that names its source and has no part
    of it, and no request is sent.
    """
    file = tmp_path / name
    file.write_text(NO_TOKENS[name], encoding="utf-8", newline="")
    value = str(file) if "file" in source.lower() else NO_TOKENS[name]
    flags = (source, value) if source.startswith("-") else ()
    if not flags:
        monkeypatch.setenv(source, value)

    done = run("whoami", "--uri", fake.uri, *flags)

    assert (done.code, fake.asked) == (2, [])
    assert "holds no token" in done.err or "--token needs a value" in done.err
    assert (str(file) if "file" in source.lower() else source) in done.err
    assert "lanted" not in done.err + done.out
    assert "änted" not in done.err + done.out


def test_token_file_that_is_no_text_holds_no_token(fake: FakeServer, run: Run, tmp_path: Path) -> None:
    """A binary file in the place of a token file is a usage error."""
    file = tmp_path / "limnos.db"
    file.write_bytes(b"SQLite format 3\x00\xff\xfe")

    done = run("whoami", "--uri", fake.uri, "--token-file", str(file))

    assert (done.code, fake.asked) == (2, [])
    assert str(done.error["message"]).endswith("holds no token: it is not text")


def test_end_of_line_is_no_part_of_a_token(fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable with a token and a line break is sent without the line break."""
    monkeypatch.setenv("LIMNOS_TOKEN", "lim_7_planted\r\n")
    fake.on("GET", WHO, {"user": "x"})

    run("whoami", "--uri", fake.uri)

    assert fake.asked[0].headers["Authorization"] == "Bearer lim_7_planted"


@pytest.mark.parametrize("flags", [("--token", ""), ()])
def test_empty_token_is_a_usage_error(
    fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    """An empty token is a usage error, not an anonymous request, and no request is sent."""
    if not flags:
        monkeypatch.setenv("LIMNOS_TOKEN", "")
    done = run("whoami", "--uri", fake.uri, *flags)

    assert (done.code, fake.asked) == (2, [])
    assert "the token is empty" in str(done.error["message"])


class Terminal(io.StringIO):
    """A text buffer that claims to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.mark.parametrize("answer,code,request_count", [("y\n", 0, 1), ("n\n", 1, 0), ("\n", 1, 0), ("", 1, 0)])
def test_drop_on_a_terminal_needs_confirmation(  # noqa: PLR0917 - fixtures and one column per part of the case
    fake: FakeServer, limnos: Run, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, request_count: int
) -> None:
    """On a terminal `drop` asks for confirmation, and drops only after a yes."""
    fake.on("DELETE", "/api/metalakes/lake/users/ben", {"removed": True})
    fake.on("GET", "/api/metalakes/lake/users/ben", {"code": 0, "user": {"name": "ben", "roles": [], "audit": {}}})
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", terminal)

    done = limnos("user", "remove", "ben")

    assert done.code == code
    assert len([call for call in fake.calls if call.startswith("DELETE")]) == request_count
    assert "Remove user ben from metalake lake? [y/N]" in terminal.getvalue()


def test_yes_skips_the_question(fake: FakeServer, limnos: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--yes` nothing is asked, not even on a terminal."""
    fake.on("DELETE", "/api/metalakes/lake/users/ben", {"removed": True})
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", terminal)

    assert limnos("user", "remove", "ben", "--yes").code == 0
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    "tokens,environ,terminal,expected",
    [
        (["ls"], {}, True, "table"),
        (["ls"], {}, False, "json"),
        (["ls", "--output", "table"], {}, False, "table"),
        (["ls", "--output=json"], {}, True, "json"),
        (["ls"], {"LIMNOS_OUTPUT": "json"}, True, "json"),
        (["ls", "--output", "table"], {"LIMNOS_OUTPUT": "json"}, False, "table"),
        (["ls", "--output"], {}, True, "table"),
        (["server", "start"], {}, False, "table"),
        (["demo", "here"], {}, False, "table"),
        (["server", "config"], {}, False, "json"),
    ],
)
def test_format_flag_overrides_environment_and_default(
    tokens: list[str], environ: dict[str, str], *, terminal: bool, expected: str
) -> None:
    """A flag overrides the environment. By default a terminal gets tables and a pipe gets JSON; `server start` prints
    text.
    """
    assert format_of(tokens, environ, terminal=terminal) == expected


def test_unexpected_exception_prints_its_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected exception is printed with its traceback, without local variables and secrets, and with a request to
    report it.
    """

    def broken(text: str) -> tuple[str, ...]:
        planted = "of-a-local" + "-variable"
        raise IndexError(f"{text} {len(planted)} postgresql://ana:hunter2@h/d {os.environ['LIMNOS_TOKEN']}")

    monkeypatch.setattr("limnos.names.display.parse", broken)
    monkeypatch.setenv("LIMNOS_TOKEN", "of-the-environment")

    done = run("ls", "main")

    assert done.code == 1
    assert "in broken" in done.err
    assert "IndexError: main 19 postgresql://ana:***@h/d ***" in done.err
    assert "please report it" in done.err
    assert [text for text in ("of-a-local-variable", "hunter2", "of-the-environment") if text in done.err] == []


def test_version_is_printed(run: Run) -> None:
    """`--version` prints the version."""
    assert run("--version").out == f"limnos {__version__}\n"


def test_help_names_every_command(run: Run) -> None:
    """The help page lists every command and the command that starts a server."""
    page = run("--help").out

    assert [name for name in operations.COMMANDS if f" {name} " not in page] == []
    assert "limnos server start" in page


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_names_every_kind(run: Run, verb: str) -> None:
    """The help of each verb lists all operations of it, those of users, roles, groups and tokens among them."""
    page = run(verb, "--help").out

    assert [
        spell_operation(each) for each in OPERATIONS if each.verb == verb and spell_operation(each) not in page
    ] == []


def test_command_help_has_arguments_and_example(run: Run) -> None:
    """The help of a command has its arguments and an example."""
    page = run("grant", "--help").out

    assert "limnos grant role analyst --to ana" in page
    assert "--to-group" in page


def test_process_exits_with_code_of_main_and_imports_little(tmp_path: Path) -> None:
    """The process exits with the code of `main`, and `ls` does not import pydantic, rich tables, SQLAlchemy, uvicorn
    and PySpark.
    """
    code = (
        "import sys\nfrom limnos.cli.main import main\ncode = main(['ls', '--uri',"
        f" 'http://127.0.0.1:{free_port()}'])\nheavy = [name for name in ('pydantic', 'rich.table', 'sqlalchemy',"
        " 'uvicorn', 'pyspark') if name in sys.modules]\nprint(heavy)\nsys.exit(code)\n"
    )
    environ = {key: value for key, value in os.environ.items() if not key.startswith("LIMNOS")}

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=environ
    )

    assert done.returncode == 6
    assert done.stdout == "[]\n"


def test_wrong_arguments_of_no_command_import_a_heavy_library(tmp_path: Path) -> None:
    """The answer to an unknown flag imports neither HTTP, TLS, settings nor the parser's console, for any command."""
    code = """
import contextlib, io, sys
from limnos.cli.main import main
from limnos.cli.operations import COMMANDS, GROUPS
heavy = ('asyncio', 'httpx2', 'limnos.client.session', 'limnos.config', 'limnos.rooms.sqlpp.language', 'pydantic', 'rich', 'ssl')
commands = [name for name in COMMANDS if name not in GROUPS]
commands += [f'{group} {name}' for group, names in GROUPS.items() for name in names]
for command in commands:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        code = main([*command.split(), '--zzz'])
    print(*[command, code, *(name for name in heavy if name in sys.modules)])
"""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("LIMNOS")}

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ
    )

    lines = done.stdout.splitlines()
    assert len(lines) > 100
    assert [line for line in lines if line.split()[-1] != "2"] == []


def test_closed_pipe_prints_no_traceback(fake: FakeServer, tmp_path: Path) -> None:
    """If the reader of the output closes the pipe, no traceback is printed."""
    rows = [{"name": f"user-{number}", "roles": [], "enabled": True} for number in range(5000)]
    fake.on("GET", "/api/metalakes/lake/users?details=true", {"users": rows})
    code = "import sys; from limnos.cli.main import main; sys.exit(main())"
    words = ["user", "list", "--uri", fake.uri, "--user", "ana"]

    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        complaint = process.stderr.read()

    assert complaint == b""


TOKENS = "/api/limnos/v1/tokens"


def test_as_runs_with_a_token_of_the_user(fake: FakeServer, run: Run) -> None:
    """With a token, `--as` creates a token of the user, runs the command with it, and revokes it."""
    created = {"id": 7, "token": "lim_of_ana", "user": "ana", "name": "limnos --as", "expires_at": None}
    fake.on("POST", TOKENS, created).on("GET", WHO, {"user": "ana"})
    fake.on("DELETE", f"{TOKENS}/7", {"revoked": True})

    done = run("whoami", "--as", "ana", "--token", "lim_admin", "--uri", fake.uri)

    assert done.code == 0
    assert [(each.method, each.headers["Authorization"]) for each in fake.asked] == [
        ("POST", "Bearer lim_admin"),
        ("GET", "Bearer lim_of_ana"),
        ("GET", "Bearer lim_of_ana"),
        ("DELETE", "Bearer lim_admin"),
    ]
    assert fake.asked[0].body == {"user": "ana", "name": "limnos --as", "expires_in_s": 900}
    assert "lim_" not in done.out + done.err


def test_token_of_as_is_revoked_after_a_failure(fake: FakeServer, run: Run) -> None:
    """The token is revoked if the command fails."""
    fake.on("POST", TOKENS, {"id": 7, "token": "lim_of_ana", "user": "ana", "name": "limnos --as"})
    fake.on("DELETE", f"{TOKENS}/7", {"revoked": True})

    done = run("show", "main.a.t", "--as", "ana", "--token", "lim_admin", "--uri", fake.uri)

    assert done.code != 0
    assert fake.calls[-1] == f"DELETE {TOKENS}/7"


def test_as_without_a_service_admin_is_explained(fake: FakeServer, run: Run) -> None:
    """Who may not create tokens of others learns that `--as` needs a service admin."""
    refusal = {"error": {"code": "forbidden", "message": "no", "request_id": "r"}}
    fake.on("POST", TOKENS, refusal, status=403)

    done = run("whoami", "--as", "ana", "--token", "lim_ben", "--uri", fake.uri)

    assert done.code == 4
    assert "--as ana needs a service admin" in done.err
    assert fake.calls == [f"POST {TOKENS}"]


def test_acting_as_a_disabled_user_is_answered_with_the_command_that_enables_it(fake: FakeServer, run: Run) -> None:
    """A service admin who acts as a disabled user learns that, and how to enable it."""
    text = "User ben is disabled and gets no tokens: an administrator can enable it, 'limnos user enable ben'"
    fake.on("POST", TOKENS, {"error": {"code": "forbidden", "message": text, "request_id": "r"}}, status=403)

    done = run("whoami", "--as", "ben", "--token", "lim_admin", "--uri", fake.uri)

    assert done.code == 4
    assert "user ben is disabled" in done.err
    assert "'limnos user enable ben'" in done.err
    assert "needs a service admin" not in done.err


def test_as_without_a_token_sends_the_name(fake: FakeServer, run: Run) -> None:
    """Without a token the name is sent, for servers that believe names; `--as` and `--user` together are refused."""
    fake.on("GET", WHO, {"user": "eva"})

    assert run("whoami", "--as", "eva", "--uri", fake.uri).code == 0
    assert fake.asked[0].headers["Authorization"] == "Basic ZXZhOg=="
    assert run("whoami", "--as", "eva", "--user", "ana", "--uri", fake.uri).code == 2
