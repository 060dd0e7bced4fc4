# SPDX-License-Identifier: Apache-2.0
"""`limnos user secret`: a secret is shown once, listed without its text, and revoked."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

SECRETS = "/api/limnos/v1/users/etl/secrets"
USER = "/api/metalakes/lake/users/etl"
KNOWN = {"code": 0, "user": {"name": "etl", "roles": [], "audit": {}}}
MADE = {"id": 7, "client_id": "etl", "client_secret": "lim_7_words", "expires_at": None}


def test_saved_secret_is_in_a_private_file_and_not_printed(fake: FakeServer, limnos: Run, tmp_path: Path) -> None:
    """With `--save` the secret is written to a new file of mode 600 and not printed. If the file exists, no secret is
    created.
    """
    fake.on("POST", SECRETS, MADE).on("GET", USER, KNOWN)
    file = tmp_path / "etl.secret"

    print_result = limnos("user", "secret", "create", "etl", "--expires-in", "2d")
    save_result = limnos("user", "secret", "create", "etl", "--save", str(file))
    again = limnos("user", "secret", "create", "etl", "--save", str(file))

    assert (print_result.code, save_result.code, again.code) == (0, 0, 2)
    assert next(each.body for each in fake.asked if each.method == "POST") == {"expires_in_s": 172_800}
    assert "lim_7_words" in print_result.out
    assert "lim_7_words" not in save_result.out + save_result.err
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("lim_7_words\n", 0o600)
    assert fake.calls.count(f"POST {SECRETS}") == 2


def test_secret_of_an_unknown_user_is_refused(fake: FakeServer, limnos: Run) -> None:
    """No secret is created for a name that is no user of the metalake; the refusal says how to add the user."""
    fake.on("POST", SECRETS, MADE).on("GET", USER, KNOWN)

    known = limnos("create", "secret", "etl")
    fake.routes.pop(("GET", USER))
    unknown = limnos("create", "secret", "etl")

    assert (known.code, unknown.code, fake.calls.count(f"POST {SECRETS}")) == (0, 3, 1)
    assert "user etl does not exist in metalake lake, so a secret would give no rights there" in unknown.err
    assert "'limnos create user etl' adds it" in unknown.err


def test_secrets_are_listed_and_ended(fake: FakeServer, limnos: Run) -> None:
    """`list` has no secret texts; `end` reports a secret that is no longer valid."""
    listed = {"id": 7, "created_at": "2026-11-21T20:00:00Z", "expires_at": None, "ended": False, "state": "valid"}
    fake.on("GET", SECRETS, {"secrets": [listed]})
    fake.on("DELETE", f"{SECRETS}/7", {"ended": True}).on("DELETE", f"{SECRETS}/7", {"ended": False})

    assert limnos("user", "secret", "list", "etl").result == [listed]
    assert limnos("user", "secret", "end", "etl", "7").code == 0
    assert limnos("user", "secret", "end", "etl", "7").code == 3


def test_secret_that_ends_earlier_than_requested_is_reported(fake: FakeServer, limnos: Run) -> None:
    """A note says that a secret ends with the session that created it, and what to do for a later end."""
    fake.on("POST", SECRETS, MADE | {"expires_at": "2020-01-01T00:00:00Z"}).on("GET", USER, KNOWN)

    done = limnos("user", "secret", "create", "etl", "--expires-in", "90d")

    assert "the secret ends at 2020-01-01T00:00:00Z" in done.err
    assert "'limnos create secret etl --token-file FILE'" in done.err
