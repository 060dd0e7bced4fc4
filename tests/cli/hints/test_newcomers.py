# SPDX-License-Identifier: Apache-2.0
"""Answers to what administrators met on a new server: no metalake, an own authority of certificates, kept sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.cli import lookups
from limnos.cli.common import CommonFlags
from limnos.cli.hints.arguments import hint_for_argument
from limnos.cli.hints.failed_calls import hint_for
from limnos.cli.hints.typed_command import TypedCommand
from limnos.client.errors import ConflictError, DeniedError, UnavailableError
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

NOT_A_MEMBER = "Current user ana doesn't exist in the metalake lake, you should add the user to the metalake first"


@pytest.mark.parametrize("names, creates", [((), True), (("sea",), False), (("lake",), False), (None, False)], ids=repr)
def test_server_without_metalakes_leads_to_the_creation_of_one(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...] | None, creates: bool
) -> None:
    """Who is no member of a metalake learns how to create it only if the server has none that the caller may know."""
    monkeypatch.setattr(lookups, "metalake_names", lambda: names)
    error = DeniedError(NOT_A_MEMBER, status=403, code="denied")

    hint = hint_for(error, TypedCommand(["list"])) or ""

    assert ("'limnos create metalake lake'" in hint) is creates
    assert "limnos create user" in hint or "'limnos list metalakes'" in hint


def test_unknown_authority_leads_to_the_typed_command_with_its_file() -> None:
    """A certificate that is not trusted is answered by the typed command with `--ca-file`, unless that was typed."""
    error = UnavailableError("no server answers (CERTIFICATE_VERIFY_FAILED)", sent=False)

    without = hint_for(error, TypedCommand(["login", "--local", "--data", "second"]))
    with_file = hint_for(error, TypedCommand(["whoami", "--ca-file", "lake.pem"]))

    assert (without or "").startswith("'limnos login --local --data second --ca-file FILE' names the PEM file")
    assert (with_file or "").startswith("'--ca-file FILE' names the PEM file")


def test_path_of_an_authority_is_stored_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that keeps the file of an authority is used in other directories, so its path is absolute."""
    monkeypatch.chdir(tmp_path)

    assert CommonFlags(ca_file="lake.pem").ca_path == str(tmp_path / "lake.pem")
    assert CommonFlags(ca_file="/etc/lake.pem").ca_path == "/etc/lake.pem"


def test_unreadable_file_of_a_session_is_not_advised_against_as_a_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no `--ca-file` was typed, the advice is about the session that keeps the file."""
    monkeypatch.delenv("LIMNOS_CA_FILE", raising=False)
    message = "lake.pem is not a readable PEM file of certificates"

    of_session = hint_for_argument(message, TypedCommand(["list"]))
    typed = hint_for_argument(message, TypedCommand(["list", "--ca-file", "lake.pem"]))

    assert "'limnos login --ca-file FILE' signs in" in (of_session or "")
    assert "leave out --ca-file" in (typed or "")


def test_password_of_a_service_account_is_not_about_names() -> None:
    """The refusal of a password for a user with secrets does not advise another name."""
    text = "etl is a service account, which has secrets and no password: revoke them first"
    error = ConflictError(text, status=409, code="already-exists")

    assert "name" not in (hint_for(error, TypedCommand(["set", "password", "etl"])) or "")


@pytest.mark.parametrize("flags, has_note", [((), True), (("--all",), False), (("--for", "ben"), False)])
def test_own_tokens_have_a_note_about_those_of_others(
    fake: FakeServer, run: Run, flags: tuple[str, ...], has_note: bool
) -> None:
    """A list of the caller's own tokens says how to list those of other users."""
    entry = {"id": 7, "user": "ana", "state": "valid"}
    for query in ("", "?all=true", "?user=ben"):
        fake.on("GET", f"/api/limnos/v1/tokens{query}", {"tokens": [entry]})

    done = run("list", "tokens", *flags, "--uri", fake.uri, "--user", "ana", "--output", "table")

    assert (done.code, "--all lists those of all users" in done.err) == (0, has_note)
    assert "valid" in done.out
