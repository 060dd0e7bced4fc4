# SPDX-License-Identifier: Apache-2.0
"""Hints without a server: the parts of the command line that they repeat, and those that they must omit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limnos.cli import profiles
from limnos.cli.failures import ExitCode, failure_of
from limnos.cli.hints.failed_calls import hint_for
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.lookups import UsedServer, used_server
from limnos.cli.profiles import Profile
from limnos.client.errors import ConflictError, DeniedError, NotFoundError, RefusedError, UnavailableError
from limnos.model.restrictions import CLOSED_TO
from tests.cli.conftest import Run
from tests.client.fake import FakeServer


def test_hint_repeats_server_metalake_and_caller() -> None:
    """The hint repeats server, metalake and caller, quoted for a shell, and omits the token."""
    typed = TypedCommand(
        [
            "delete",
            "main.`a b`",
            "--uri",
            "http://h:1",
            "--metalake=sea",
            "--token",
            "s3cret",
            "--token-file",
            "my file",
        ]
    )
    error = NotFoundError("no such thing", status=404, code="not-found")

    hint = hint_for(error, typed)

    assert (
        hint == "'limnos list main --uri http://h:1 --metalake=sea --token-file 'my file'' lists the existing objects"
    )
    assert "s3cret" not in typed.again("-r") + TypedCommand(["delete", "main", "--token=s3cret"]).again("--force")


def test_invalid_path_is_omitted_from_hint() -> None:
    """An invalid path is omitted from the hint."""
    error = NotFoundError("no such thing", status=404, code="not-found")

    assert hint_for(error, TypedCommand(["list", "main..a"])) == "'limnos list' lists the existing objects"


def test_hint_for_full_metalake_lists_its_catalogs() -> None:
    """The hint for a metalake that is not empty lists its catalogs, with `--metalake`."""
    error = ConflictError("in use", status=409, code="in-use")

    hint = str(hint_for(error, TypedCommand(["delete", "sea", "--kind", "metalake"])))

    assert "'limnos list --metalake sea'" in hint
    assert "'limnos delete sea --kind metalake -r'" in hint


@pytest.mark.parametrize("sent,expected", [(True, "in a moment"), (False, "limnos server start")])
def test_hints_for_absent_and_slow_servers_differ(sent: bool, expected: str) -> None:
    """The hint for a server that does not listen differs from that for a server that is too slow."""
    assert expected in str(hint_for(UnavailableError("x", sent=sent), TypedCommand()))


def test_missing_extra_of_the_server_is_no_passing_failure() -> None:
    """A server without an engine is not answered by another attempt, and the exit code is not that of a busy server."""
    message = (
        "ASX3109: A statement over data (query) needs an engine, and this server has none: pip install 'limnos[spark]'"
    )
    error = UnavailableError(message, sent=True)

    failure = failure_of(error, TypedCommand(["sql", "-c", "select 1;"]))

    assert failure is not None
    assert (failure.exit_code, failure.message) == (ExitCode.FAILED, message)
    assert failure.hint == (
        "have the server's administrator install it where the server runs, then start the server again"
    )


def test_hint_without_decision_refers_to_callers_identity() -> None:
    """The hint for a refusal without a decision refers to the caller's identity."""
    hint = hint_for(DeniedError("User ana is disabled", status=403), TypedCommand(["list", "--user", "ana"]))

    assert hint == "'limnos whoami --user ana' shows who you are"


@pytest.mark.parametrize(
    "line,message,code,hint",
    [
        (
            "create user ben",
            "User ben already exists in metalake lake",
            "already-exists",
            "choose another name; 'limnos show user ben' shows the one that has it",
        ),
        (
            "rename main.a.t main.b.u",
            "Cannot rename a.t to b.u. Table already exists",
            "already-exists",
            "choose another name; 'limnos show main.b.u' shows the object that has it",
        ),
        (
            "rename main.a.t main.b.c.t",
            "Namespace does not exist: b.c",
            "not-found",
            "'limnos list main.b' lists the existing objects",
        ),
        (
            "rename main.a.t main.b.t",
            "Table does not exist: a.t",
            "not-found",
            "'limnos list main.a' lists the existing objects",
        ),
        (
            "reports main.a.v",
            "Table does not exist: a.v",
            "not-found",
            "'limnos list main.a' lists the existing objects",
        ),
        (
            "protect main.a.v",
            "there is no namespace, table or view 'main.a.v'",
            "not-found",
            "'limnos list main.a' lists the existing objects",
        ),
        (
            "undrop main.a.t",
            "the trash has no 'main.a.t' that you may restore",
            "not-found",
            "'limnos list trash main' lists objects that you may restore",
        ),
        (
            "trash delete main 7",
            "The trash of catalog main has no object with id 7 that you may restore",
            "not-found",
            "'limnos list trash main' lists objects that you may restore",
        ),
        (
            "undrop main.a.t",
            "Table a.t lay in namespace a, which was dropped, too (id 5): restore that first",
            "not-found",
            "'limnos undrop main --id 5' restores the former parent; --to PATH restores the object at another path",
        ),
        (
            "undrop main.a.t --to main.b.t",
            "Table b.t exists by now",
            "already-exists",
            "choose another name; 'limnos show main.b.t' shows the object that has it",
        ),
        (
            "undrop main.a.t --to=main.b.t",
            "Namespace does not exist: b",
            "not-found",
            "'limnos list main' lists the existing objects",
        ),
        (
            "undrop main.a.t",
            "Table a.t exists by now",
            "already-exists",
            "choose another name; 'limnos show main.a.t' shows the object that has it",
        ),
        (
            "trash list nope",
            "Catalog nope does not exist in metalake lake",
            "not-found",
            "'limnos list' lists the existing objects",
        ),
        (
            "head lake.main.a.t --rows 3",
            "Catalog lake does not exist in metalake lake",
            "not-found",
            "'limnos head main.a.t --rows 3': paths begin with a catalog, below the metalake",
        ),
        (
            "head raw.weather.orders",
            "Catalog raw does not exist in metalake lake",
            "not-found",
            "'limnos list' lists the catalogs: a path begins with one, as CATALOG.raw.weather.orders",
        ),
        (
            "list tabels",
            "Catalog tabels does not exist in metalake lake",
            "not-found",
            "'limnos list tables', if a kind is meant; 'limnos list' lists the catalogs",
        ),
        (
            "create model models.shop.m",
            "Catalog models does not exist in metalake lake",
            "not-found",
            "'limnos create catalog models --type model' creates a catalog for it; 'limnos list' lists the existing ones",
        ),
        (
            "rename main.hr.people main.sales",
            "A table must be in a namespace: give at least two levels",
            "bad-request",
            "'limnos rename main.hr.people main.sales.people' moves it into main.sales",
        ),
        (
            "restriction show main",
            "A restriction applies to a table, or to all tables of a namespace, not to a catalog",
            "bad-request",
            "'limnos list main' lists the namespaces of the catalog",
        ),
        (
            "grant select_table --on main.a.t --to bob",
            "Role bob does not exist in metalake lake: create it first",
            "not-found",
            (
                "privileges are given to roles, and roles to users: 'limnos create role ROLE', repeat the command with --to"
                " ROLE, then 'limnos grant role ROLE --to USER'"
            ),
        ),
        (
            "grant role analyst --to bob",
            "Role analyst does not exist in metalake lake: create it first",
            "not-found",
            "'limnos list roles' lists the existing ones",
        ),
        (
            "token revoke 7",
            "there is no valid token with id '7'",
            "not-found",
            "'limnos list tokens' lists the existing ones",
        ),
        ("webhook retry 7", "Webhook 7 does not exist", "not-found", "'limnos list webhooks' lists the existing ones"),
    ],
)
def test_hint_is_about_the_object_in_the_message(line: str, message: str, code: str, hint: str) -> None:
    """A hint is about the object that the message names: the target of a move or restore if that is at fault, or the
    trash.
    """
    error_type = {"already-exists": ConflictError, "bad-request": RefusedError}.get(code, NotFoundError)
    error = error_type(message, status=404, code=code)

    assert hint_for(error, TypedCommand(line.split())) == hint


@pytest.mark.parametrize("line", ["delete main --force", "delete main", "delete sea --kind metalake --force"])
def test_hint_for_protected_object_does_not_suggest_force(line: str) -> None:
    """The hint for a protected object explains how to end the protection and does not suggest `--force`."""
    error = ConflictError("Catalog main is protected: end that with 'limnos unprotect main'", status=409, code="in-use")

    assert hint_for(error, TypedCommand(line.split())) is None


def test_default_server_without_an_answer_leads_to_the_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who signed in elsewhere, and types a command without a server, learns of the list of profiles; not who names a
    server, or has no profile.
    """
    monkeypatch.setenv("LIMNOS_PROFILES", str(tmp_path / "profiles.json"))
    monkeypatch.delenv("LIMNOS_URI", raising=False)
    former = used_server.set(UsedServer("http://h:1", None, None))
    error = UnavailableError("no server answers", sent=False)
    before = hint_for(error, TypedCommand(["list"]))
    elsewhere = Profile(uri="http://127.0.0.1:1", user="ana", token="lim_2_x", ends_at=9e9, refresh_token=None)
    profiles.update(os.environ, lambda known: known.put("lake", elsewhere))

    bare = hint_for(error, TypedCommand(["list"]))
    named = hint_for(error, TypedCommand(["list", "--uri", "http://h:1"]))

    used_server.reset(former)
    assert "list profiles" not in str(before)
    assert "'limnos list profiles' lists the servers" in str(bare)
    assert "list profiles" not in str(named)


def test_user_who_may_not_grant_above_an_object_gets_another_way() -> None:
    """A preset for a user needs a right on the metalake, which others who may grant on an object lack. The hint names
    what they can do: grant to the role of an earlier preset, or answer a request. For a request whose preset needs a
    privilege above the object, it names who has to answer.
    """
    message = "User 'mira' is not authorized to perform operation '{}' on metadata '{}': needs MANAGE_GRANTS on {}"
    assign = DeniedError(message.format("role_assign", "lake", "lake"), status=403, code="denied")
    above = DeniedError(message.format("privilege_grant", "main", "main"), status=403, code="denied")

    preset = str(
        hint_for(assign, TypedCommand(["grant", "--preset", "reader", "main.clinic.wards", "--to", "user:jon"]))
    )
    words = ["grant", "--preset", "writer", "main.clinic", "--kind", "namespace", "--to", "user:jon"]
    whole = str(hint_for(assign, TypedCommand(words)))
    request = str(hint_for(above, TypedCommand(["request", "grant", "4de6", "--token-file", "mira.token"])))

    assert "'limnos grant --preset reader main.clinic.wards --to role:user:jon' grants to that role" in preset
    assert "owner" not in preset
    assert "'limnos request access main.clinic.wards'" in preset
    assert "'limnos request access main.clinic --preset writer --kind namespace'" in whole
    assert "a privilege on main, above the object that you own" in request
    assert "'limnos request grant 4de6'" in request


def test_disabled_user_gets_no_further_step() -> None:
    """The refusal of a disabled user names who enables them, and `whoami` would say less."""
    message = "User sam is disabled in metalake lake: ask its administrator"

    hint = hint_for(DeniedError(message, status=403, code="denied"), TypedCommand(["list"]))

    assert hint is None


def test_restricted_user_is_pointed_to_the_rows_that_are_left() -> None:
    """A refusal by a read restriction proposes `head`, which reads what the user may see, and no access to explain."""
    message = (
        "User 'ana' is not authorized to perform operation 'table_load' on metadata 'main.raw.t': restriction r of"
        f" main.raw.t ({CLOSED_TO})"
    )
    error = DeniedError(message, status=403, code="denied")

    hint = hint_for(error, TypedCommand(["lineage", "up", "main.raw.t"]))

    assert hint is not None
    assert "'limnos head main.raw.t' shows those that are left to you" in hint
    assert "access explain" not in hint


def test_refused_namespace_is_listed_if_its_list_shows_something(fake: FakeServer, limnos: Run) -> None:
    """The refusal to show a namespace names the list of it, if that list shows something below it to the caller. It
    asks for no list that would be refused.
    """
    message = "User 'sam' is not authorized to perform operation 'namespace_load_iceberg' on metadata '{}': needs x"
    own = "/api/limnos/v1/metalakes/lake/catalogs"
    fake.on(
        "GET", "/api/metalakes/lake/catalogs", {"code": 0, "identifiers": [{"namespace": ["lake"], "name": "main"}]}
    )
    corp = {"kind": "namespace", "name": "corp", "path": ["main", "corp"]}
    crm = {"kind": "namespace", "name": "crm", "path": ["main", "corp", "crm"]}
    fake.on("GET", f"{own}/main/children?limit=500", {"children": [corp]})
    fake.on("GET", f"{own}/main/children?path=corp&limit=500", {"children": [crm]})
    for path in ("corp", "hidden"):
        error = {"message": message.format(f"main.{path}"), "type": "ForbiddenException", "code": 403}
        fake.on("GET", f"/iceberg/v1/lake.main/namespaces/{path}", {"error": error}, status=403)

    hints = [str(limnos("show", f"main.{path}").error["hint"]) for path in ("corp", "hidden")]

    assert hints[0].startswith("'limnos list main.corp --uri")
    assert "lists what you may see in it" in hints[0]
    assert "limnos list" not in hints[1]
