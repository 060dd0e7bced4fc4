# SPDX-License-Identifier: Apache-2.0
"""Next steps after a failed call: the path is where the command has it, and what was meant is the command to type."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from limnos.cli import profiles
from limnos.cli.hints.arguments import hint_for_argument
from limnos.cli.hints.failed_calls import hint_for
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.profiles import Profile
from limnos.client.errors import (
    TLS_ADVICE,
    ClientError,
    ConflictError,
    NotFoundError,
    RefusedError,
    UnauthenticatedError,
    UnavailableError,
    UnexpectedAnswerError,
)
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

_MISSING = "there is no namespace, table or view 'main.raw.nope', or you may not know of it"
_HEADER = "The Authorization header is not valid: send a token as 'Bearer lim_…'"


def typed(line: str) -> TypedCommand:
    """Return a command line as the parser gets it."""
    return TypedCommand(shlex.split(line))


@pytest.mark.parametrize(
    "line,error,hint",
    [
        ("restriction set eu main.raw.nope --filter x", NotFoundError(_MISSING), "'limnos list main.raw'"),
        ("grant select_table --on main.raw.nope --to r", NotFoundError(_MISSING), "'limnos list main.raw'"),
        ("lineage up main.raw.nope", NotFoundError("Table does not exist: raw.nope"), "'limnos list main.raw'"),
        ("head assets.s.w --file 1/m", NotFoundError("The fileset has no file 1/m"), "'limnos files assets.s.w'"),
        (
            "delete restriction eu main.s.o",
            NotFoundError("table main.s.o has no restriction 'eu'; did you mean eu2?"),
            "'limnos list restrictions main.s.o'",
        ),
        (
            "create namespace models.a.b --parents",
            RefusedError("Schemas of catalog models do not nest, because its provider is model: a has no schemas"),
            "'limnos create namespace models.b'",
        ),
        (
            "set lance.s.t --comment x",
            RefusedError("Catalog lance holds Lance tables, which Lance REST changes, and not Gravitino REST"),
            "'limnos set lance.s --comment TEXT'",
        ),
        (
            "create fileset files.s.f --location s3://b/x",
            RefusedError("Location s3://b/x is outside the catalog's allowed roots (s3://a)."),
            "'limnos set files --allowed-location URL'",
        ),
        (
            "table check lance.s.t",
            NotFoundError(
                "Table does not exist: s.t. There is a Lance table: open it over Lance REST in catalog lance"
            ),
            "'limnos show lance.s.t' shows the Lance table",
        ),
        (
            "head lance.s.t --snapshot 99",
            NotFoundError("The table has no version 99"),
            "'limnos list snapshots lance.s.t' lists those that can be read",
        ),
        (
            "tag add pii lance.s.t --column c",
            RefusedError(
                "Only columns of Iceberg tables can be named here, and catalog lance has none: name the table"
            ),
            "'limnos set tag pii lance.s.t'",
        ),
        (
            "create dashboard main.s.d --url example.com",
            RefusedError("Expected `str` matching regex '^(https?://x)?$' - at `$.url`"),
            "'limnos create dashboard main.s.d --url https://example.com'",
        ),
        (
            "set lance.s.t --column a=b",
            RefusedError("Catalog lance holds Lance tables, which Lance REST changes, and not Gravitino REST"),
            "'limnos set lance.s.t --tag TAG'",
        ),
        (
            "delete lance.shop --yes",
            ConflictError("Namespace shop is not empty: drop its table items first", code="not-empty"),
            "or all with 'limnos delete lance.shop --recursive', which lists them and asks",
        ),
        ("show main/raw/x", NotFoundError("Catalog main/raw/x does not exist"), "'limnos show main.raw.x'"),
        ("owner set ben main.raw.x", NotFoundError("Catalog ben does not exist"), "'limnos set owner main.raw.x ben'"),
        ("tag add main.x pii", NotFoundError("Catalog pii does not exist"), "'limnos set tag pii main.x'"),
        ("grant role r --to staff", NotFoundError("User staff does not exist"), "--to-group staff"),
        ("task show abc", NotFoundError("Task abc does not exist"), "'limnos list tasks'"),
        ("token create --user ana", UnauthenticatedError(_HEADER), "'limnos create token --for ana'"),
        ("audit --user=ana", UnauthenticatedError(_HEADER), "'limnos audit --who=ana'"),
        ("role list --user ana", UnauthenticatedError(_HEADER), "'limnos show user ana'"),
        ("list", UnavailableError("no answer ([SSL: WRONG_VERSION_NUMBER] x)", sent=False), "write http://"),
        (
            "list",
            UnavailableError("no ([SSL: CERTIFICATE_VERIFY_FAILED] x)", sent=False),
            "'limnos list --ca-file FILE'",
        ),
        (
            "list",
            UnavailableError("no ([Errno -2] Name or service not known)", sent=False),
            "check the name of the host",
        ),
        ("list", UnavailableError(f"closed; {TLS_ADVICE}"), "write https://"),
        (
            "head main.raw.t",
            UnavailableError("A file of the table is missing, s3://b/x: limnos table check lists all of them"),
            "'limnos table check main.raw.t' lists all missing files and says what to do",
        ),
        (
            "head main.raw.t",
            NotFoundError("Failed to open input stream for file: s3://b/m0.avro: there is no such file"),
            "'limnos table check main.raw.t' lists all missing files and says what to do",
        ),
        (
            "head lance.s.t",
            RefusedError("At s3://b/t there is no readable Lance table (Not found): restore its files"),
            "'limnos list snapshots lance.s.t' lists them, and 'limnos head' takes one as --snapshot",
        ),
        (
            "head lance.s.t",
            NotFoundError("The table was declared and has no data yet: insert some first"),
            "a client of Lance, as LanceDB or pylance, writes its first rows; 'limnos show lance.s.t' has its location",
        ),
        (
            "access who main.raw --action table_read",
            RefusedError("Action table_read is done to a table, not to a schema"),
            "'limnos access who main.raw.TABLE --action table_read' one table",
        ),
        (
            "access who --action table_read",
            RefusedError("Action table_read is done to a table, not to a metalake"),
            "name a table: 'limnos access who --action table_read PATH'",
        ),
        (
            "access explain view_load main --for ben",
            RefusedError("Action view_load is done to a view, not to a catalog"),
            "'limnos access explain view_load main.VIEW --for ben'; 'limnos list main' lists",
        ),
        (
            "access who main.raw.t --action catalog_alter",
            RefusedError("Action catalog_alter is done to a catalog, not to a table"),
            "'limnos access explain --actions' lists the actions of each kind",
        ),
        (
            "restriction remove nope main.raw.x",
            NotFoundError("table main.raw.x has no restriction 'nope'"),
            "'limnos list restrictions main.raw.x'",
        ),
        (
            "user disable admin",
            RefusedError("User admin owns metalake lake: give it another owner before disabling the user"),
            "'limnos set owner lake USER --kind metalake'",
        ),
        (
            "access explain table_raed main.raw.t --for ana",
            RefusedError("Unknown action 'table_raed'; did you mean table_read, table_drop? 'limnos access …"),
            "'limnos access explain table_read main.raw.t --for ana'",
        ),
        (
            "audit --path main.raw.t --action select",
            RefusedError("There is no action 'select': did you mean read? Families of actions are grant, …"),
            "'limnos audit --path main.raw.t --action read'",
        ),
        ("list", UnexpectedAnswerError("a web page", status=404, code="unexpected-answer"), "check --uri"),
        (
            "grant create_catalog --on main --to r",
            RefusedError("Privilege CREATE_CATALOG cannot be granted on a CATALOG, only on METALAKE"),
            "'limnos grant create_catalog --to r --on-metalake'",
        ),
        (
            "grant use_catalog select_table --on main.raw.t --to r",
            RefusedError("Privilege USE_CATALOG cannot be granted on a TABLE, only on METALAKE or CATALOG"),
            "--preset reader PATH --to HOLDER",
        ),
    ],
)
def test_next_step_names_the_command_that_was_meant(line: str, error: ClientError, hint: str) -> None:
    """The next step is about the typed object, wherever its place in the command is."""
    assert hint in (hint_for(error, typed(line)) or "")


def test_unknown_token_names_server_and_profile(
    run: Run, fake: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A token that the server does not know is answered with the server, and the profile or flag that has the token."""
    refusal = {
        "error": {"code": "unauthenticated", "message": "The token is not valid: create one with 'limnos create …"}
    }
    for _ in range(2):
        fake.on("GET", "/api/limnos/v1/whoami", refusal, status=401)
    session = Profile(uri=fake.uri, user="ana", token="lim_1_old", ends_at=2**40, refresh_token=None)
    profiles.write(os.environ, profiles.read(os.environ).put("old", session))
    token = tmp_path / "ana.token"
    token.write_text("lim_1_other")

    of_profile, of_file = run("whoami", "--output", "json"), run("whoami", "--token-file", str(token))

    assert of_profile.error["message"] == (
        f"{fake.uri} does not know the session of profile old: it is of another server or store, or it was revoked"
    )
    assert "does not know the token of --token-file" in str(of_file.error["message"])
    assert str(of_profile.error["hint"]).startswith("'limnos login --local'")


def test_missing_role_has_the_exit_code_of_missing_objects(limnos: Run, fake: FakeServer) -> None:
    """A role, user or group that does not exist ends a command with 3, whatever the status of the server's answer."""
    missing = {"code": 1003, "type": "NoSuchRoleException", "message": "Role r does not exist in metalake lake"}
    fake.on("PUT", "/api/metalakes/lake/permissions/users/bob/grant", missing, status=400)

    assert limnos("grant", "role", "r", "--to", "bob").code == 3


@pytest.mark.parametrize("words", [("main",), ("lake", "--kind", "metalake")])
def test_owner_that_is_a_group_is_named_as_one(limnos: Run, fake: FakeServer, words: tuple[str, ...]) -> None:
    """An owner that was typed as a user and is a group is answered by the command with the group."""
    path, *rest = words
    kind = "metalake" if rest else "catalog"
    missing = {"code": 1003, "type": "NoSuchUserException", "message": "User staff does not exist in metalake lake"}
    fake.on("PUT", f"/api/metalakes/lake/owners/{kind}/{path}", missing, status=404)
    fake.on("GET", "/api/metalakes/lake/groups/staff", {"code": 0, "group": {"name": "staff", "roles": []}})

    refused = limnos("set", "owner", path, "staff", *rest)

    assert refused.error["message"] == "User staff does not exist in metalake lake"
    assert f"'limnos set owner {path} group:staff" in str(refused.error["hint"])


def test_address_without_scheme_is_completed() -> None:
    """An address without `http://` is answered by the command with it, and a short path by one with a name more."""
    address = hint_for_argument("'h:1' is not the address of a server; …", typed("list --uri h:1"))
    path = hint_for_argument("'main' is too short: give catalog.namespace", typed("create namespace main"))

    assert address == "'limnos list --uri http://h:1'"
    assert path == ("'limnos create catalog main' creates a catalog; in one: 'limnos create namespace CATALOG.main'")
    assert hint_for_argument("'h' is not the address of a server; …", typed("list --uri h")) == (
        "'limnos list --uri http://h:8090'"
    )


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_timeout_that_is_no_time_is_refused(limnos: Run, value: str) -> None:
    """A timeout of no or of unlimited length is a usage error, not a server that does not answer."""
    refused = limnos("list", "--timeout", value)

    assert (refused.code, refused.error["message"]) == (2, "--timeout takes a number of seconds above 0")


def test_number_of_audit_lines_is_positive(limnos: Run) -> None:
    """No and less than no lines are a usage error, not an empty audit."""
    assert limnos("audit", "--limit", "-1").code == 2


def test_privileges_may_be_separated_by_commas(limnos: Run, fake: FakeServer) -> None:
    """`a,b` are two privileges; an unknown one among them is named."""
    refused = limnos("grant", "select_table,frobnicate", "--on", "main.raw", "--to", "reader")

    assert (refused.code, refused.error["message"]) == (2, "'frobnicate' is not a privilege")


def test_web_page_is_no_answer_of_a_server(limnos: Run) -> None:
    """An address with a path of the console is answered by a page: its text is not printed."""
    from limnos.client.errors import error_from

    error = error_from(404, b"<!doctype html>\n<html>x</html>", request_id=None, retry_after=None)
    proxy = error_from(503, b"<html>busy</html>", request_id=None, retry_after=None)

    assert (error.code, "<" in error.message) == ("unexpected-answer", False)
    assert isinstance(proxy, UnavailableError)


def test_error_of_a_wrong_output_is_printed_as_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--output yaml` does not make the error JSON where tables were asked for."""
    monkeypatch.setenv("LIMNOS_OUTPUT", "table")
    assert run("show", "main", "--output", "yaml").err.startswith("error: --output takes one of")
