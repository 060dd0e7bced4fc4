# SPDX-License-Identifier: Apache-2.0
"""`limnos login`: the stored profile, the servers that receive its token, and the options that override it."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from limnos.cli import profiles
from limnos.cli.profiles import Profile
from limnos.config.local_server import write_address
from tests.cli.conftest import Run
from tests.client.fake import FakeServer, running

LOGIN = "/api/limnos/v1/login"
WHO = "/api/limnos/v1/whoami"
SESSION = {
    "user": "ana",
    "token": "lim_1_a",
    "expires_in_s": 3600,
    "refresh_token": "lim_2_b",
    "refresh_expires_in_s": 9,
}


@pytest.fixture(autouse=True)
def _typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a few words\n"))


@pytest.fixture
def file() -> Path:
    """The path of the profiles file."""
    return Path(os.environ["LIMNOS_PROFILES"])


def signed_in(fake: FakeServer, run: Run, *flags: str) -> None:
    """Sign in at a server."""
    fake.on("POST", LOGIN, SESSION)
    fake.on("GET", WHO, {"user": "ana"})
    done = run("login", "ana", "--uri", fake.uri, *flags)
    assert done.code == 0, done.err


def test_session_is_stored_in_a_private_file(fake: FakeServer, run: Run, file: Path) -> None:
    """The profiles file has mode 600, in a directory of mode 700. The password is sent once and not stored."""
    signed_in(fake, run)

    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "few words" not in file.read_text()
    assert fake.asked[0].body == {"user": "ana", "password": "a few words"}
    assert {each.name for each in file.parent.iterdir()} == {file.name, f".{file.name}.lock"}


def test_commands_without_flags_use_the_session(fake: FakeServer, run: Run) -> None:
    """Commands without flags are sent to the profile's server with its token."""
    signed_in(fake, run)

    assert run("whoami").code == 0
    assert fake.asked[-1].headers["Authorization"] == "Bearer lim_1_a"


def test_flags_and_environment_override_the_session(
    fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token or user from a flag or the environment is sent instead of the session's."""
    signed_in(fake, run)

    run("whoami", "--token", "lim_9_z")
    assert fake.asked[-1].headers["Authorization"] == "Bearer lim_9_z"
    monkeypatch.setenv("LIMNOS_TOKEN", "lim_8_y")
    run("whoami")
    assert fake.asked[-1].headers["Authorization"] == "Bearer lim_8_y"


def test_session_token_is_not_sent_to_another_server(fake: FakeServer, run: Run) -> None:
    """The session's token is not sent to another address."""
    signed_in(fake, run)
    with running() as other:
        other.on("GET", WHO, {"user": "anonymous"})
        run("whoami", "--uri", other.uri)

        assert "Authorization" not in other.asked[-1].headers


def test_expiring_token_is_refreshed_before_the_request(fake: FakeServer, run: Run, file: Path) -> None:
    """A token that is about to expire is refreshed before the request. The new token is stored, and the refresh token
    is kept.
    """
    signed_in(fake, run)
    document = json.loads(file.read_text())
    (name,) = document["profiles"]
    document["profiles"][name]["ends_at"] = time.time() + 5
    file.write_text(json.dumps(document))
    fake.routes.clear()
    fake.on("POST", LOGIN, {"user": "ana", "token": "lim_3_c", "expires_in_s": 3600}).on("GET", WHO, {"user": "ana"})

    assert run("whoami").code == 0

    refresh, *later = fake.asked[-3:]
    assert refresh.body == {"refresh_token": "lim_2_b"}
    assert {each.headers["Authorization"] for each in later} == {"Bearer lim_3_c"}
    profile = json.loads(file.read_text())["profiles"][name]
    assert (profile["token"], profile["refresh_token"]) == ("lim_3_c", "lim_2_b")


def test_profiles_file_readable_by_others_is_refused(fake: FakeServer, run: Run, file: Path) -> None:
    """A profiles file that other users can read is refused with advice, and no request is sent."""
    signed_in(fake, run)
    request_count = len(fake.asked)
    file.chmod(0o640)

    done = run("whoami")

    assert done.code == 1
    assert "can be read or written by others" in str(done.error["message"])
    assert len(fake.asked) == request_count


def test_invalid_profiles_file_is_reported(run: Run, file: Path) -> None:
    """A profiles file with unexpected content is reported as unreadable."""
    file.parent.mkdir()
    file.write_text("[1]")
    file.chmod(0o600)

    assert "cannot be read" in str(run("profile", "list").error["message"])


def test_profiles_are_listed_chosen_and_deleted(fake: FakeServer, run: Run) -> None:
    """The profile in use is the one of the last login, or the chosen one. Logging out revokes the token and deletes the
    profile.
    """
    signed_in(fake, run, "--profile", "one")
    with running() as other:
        signed_in(other, run_again(run), "--profile", "two")
        rows = run("profile", "list").result
        assert run("profile", "use", "one").code == 0
        assert run("profile", "use", "three").code == 3
        for token in ("2", "1"):
            fake.on("DELETE", f"/api/limnos/v1/tokens/{token}", {"revoked": True})
        assert run("logout").code == 0
        left = run("profile", "list").result

    assert [(each["profile"], each["used"]) for each in rows] == [("one", False), ("two", True)]  # type: ignore[attr-defined]
    assert [each["profile"] for each in left] == ["two"]  # type: ignore[attr-defined]
    revoked = [each.target for each in fake.asked if each.method == "DELETE"]
    assert revoked[:2] == ["/api/limnos/v1/tokens/2", "/api/limnos/v1/tokens/1"]


def run_again(run: Run) -> Run:
    """Run the same command line again, with the password typed again."""

    def call(*words: str):  # noqa: ANN202 - as it is
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.StringIO("a few words\n"))
            return run(*words)

    return call


def test_logout_ends_no_session_that_commands_do_not_use(
    fake: FakeServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a token of the environment, or another server's URL, `logout` ends no session. With the profile's name it
    ends that one, and says whose it was.
    """
    signed_in(fake, run, "--profile", "one")
    monkeypatch.setenv("LIMNOS_TOKEN_FILE", str(tmp_path / "token"))
    with_file = run("logout")
    monkeypatch.delenv("LIMNOS_TOKEN_FILE")
    elsewhere = run("logout", "--uri", "http://127.0.0.1:1")
    left = run("profile", "list").result
    for token in ("2", "1"):
        fake.on("DELETE", f"/api/limnos/v1/tokens/{token}", {"revoked": True})
    monkeypatch.setenv("LIMNOS_TOKEN_FILE", str(tmp_path / "token"))
    named = run("logout", "--profile", "one", "--output", "table")

    assert (with_file.code, elsewhere.code, len(left)) == (2, 1, 1)  # type: ignore[arg-type]
    assert "LIMNOS_TOKEN_FILE" in str(with_file.error["message"])
    assert "'limnos logout --profile NAME'" in str(with_file.error["hint"])
    assert named.out == f"signed out of {fake.uri}: the session of ana has ended\n"
    assert run("profile", "list").result == []


def test_whoami_without_a_credential_fails_with_the_commands_to_sign_in(fake: FakeServer, run: Run) -> None:
    """Without a credential `whoami` fails as not signed in; a name that was given is shown."""
    fake.on("GET", WHO, {"user": "anonymous"})
    fake.on("GET", WHO, {"user": "anonymous"})

    nobody = run("whoami", "--uri", fake.uri)
    named = run("whoami", "--uri", fake.uri, "--user", "anonymous")

    assert (nobody.code, named.code) == (4, 0)
    assert "you are not signed in" in str(nobody.error["message"])
    assert "'limnos login --local'" in str(nobody.error["hint"])


def test_whoami_notes_that_the_metalake_refuses_the_user(fake: FakeServer, run: Run) -> None:
    """A user who is disabled, or no member of the metalake, is named with a note that says so. No request is refused,
    so that the audit has no refusal of a user who only asked for the name.
    """
    fake.on("GET", WHO, {"user": "ana"})
    fake.on("GET", "/api/metalakes", {"code": 0, "metalakes": []})

    done = run("whoami", "--uri", fake.uri, "--user", "ana", "--output", "table")

    assert (done.code, done.out) == (0, f"ana at {fake.uri}\n")
    assert done.err.startswith("note: ana is no user of metalake lake, or disabled in it, or there is none: ")
    assert fake.calls == [f"GET {WHO}", "GET /api/metalakes"]


def test_whoami_of_a_member_has_no_note(fake: FakeServer, run: Run) -> None:
    """A user of the metalake is named without a note."""
    fake.on("GET", WHO, {"user": "ana"})
    fake.on("GET", "/api/metalakes", {"code": 0, "metalakes": [{"name": "lake", "audit": {}}]})

    done = run("whoami", "--uri", fake.uri, "--user", "ana", "--output", "table")

    assert (done.code, done.err) == (0, "")


def test_replaced_session_of_another_user_is_named(fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login in the place of another user's session names that user; a second one of the same user does not."""
    former = Profile(uri=fake.uri, user="ben", token="lim_2_x", ends_at=9e9, refresh_token=None)
    profiles.update(os.environ, lambda known: known.put("lake", former))
    fake.on("POST", LOGIN, SESSION)

    first = run("login", "ana", "--profile", "lake", "--output", "table")
    monkeypatch.setattr("sys.stdin", io.StringIO("a few words\n"))
    again = run("login", "ana", "--profile", "lake", "--output", "table")

    assert first.out == f"signed in to {fake.uri} as ana, in the place of ben at {fake.uri} in profile lake\n"
    assert again.out == f"signed in to {fake.uri} as ana\n"


def test_profile_of_one_command_is_used(fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--profile` sends one command to the profile's server with its session, also if the environment names another
    server and credential; the profile in use stays.
    """
    other = Profile(uri="http://127.0.0.1:1", user="ana", token="lim_9_x", ends_at=9e9, refresh_token=None)
    own = Profile(uri=fake.uri, user="ben", token="lim_2_x", ends_at=9e9, refresh_token=None)
    profiles.update(os.environ, lambda known: known.put("prod", own).put("home", other))
    monkeypatch.setenv("LIMNOS_URI", "http://127.0.0.1:1")
    monkeypatch.setenv("LIMNOS_TOKEN", "lim_7_x")
    fake.on("GET", "/api/metalakes", {"code": 0, "metalakes": []})

    done = run("list", "metalakes", "--profile", "prod")

    assert (done.code, fake.asked[-1].headers["Authorization"]) == (0, "Bearer lim_2_x")
    assert profiles.read(os.environ).used == "home"


@pytest.mark.parametrize(
    "flags, message",
    [
        (("--profile", "nope"), "there is no profile 'nope'"),
        (("--profile", "prod", "--user", "ana"), "--user and --profile both give your identity"),
        (("--profile", "prod", "--uri", "http://127.0.0.1:1"), "profile prod is of "),
    ],
)
def test_unknown_or_contradicted_profile_is_refused(
    fake: FakeServer, run: Run, flags: tuple[str, ...], message: str
) -> None:
    """A missing profile, and one beside another server or credential, is a usage error, and no request is sent."""
    own = Profile(uri=fake.uri, user="ben", token="lim_2_x", ends_at=9e9, refresh_token=None)
    profiles.update(os.environ, lambda known: known.put("prod", own))

    done = run("list", "metalakes", *flags)

    assert (done.code, fake.calls) == (2, [])
    assert str(done.error["message"]).startswith(message)


def test_password_for_an_unknown_user_prints_a_note(
    fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passwords belong to the server: one is set for any name, with a note if the metalake has no such user."""
    fake.on("GET", WHO, {"user": "admin"})
    fake.on("PUT", "/api/limnos/v1/users/eve/password", {"replaced": False})
    missing = {"code": 1003, "type": "NoSuchUserException", "message": "User eve does not exist in metalake lake"}
    fake.on("GET", "/api/metalakes/lake/users/eve", missing, status=404)
    monkeypatch.setattr("sys.stdin", io.StringIO("a few long words\n"))

    done = run("set", "password", "eve", "--uri", fake.uri, "--user", "admin", "--output", "table")

    assert (done.code, done.out) == (0, "set the password of user eve\n")
    assert done.err.endswith("note: metalake lake has no user eve: 'limnos create user eve' adds it\n")


TOKENS = "/api/limnos/v1/tokens"


@pytest.fixture
def local(fake: FakeServer, tmp_path: Path) -> Iterator[Path]:
    """The data directory of a running server of this user."""
    (tmp_path / "admin.token").touch(mode=0o600)
    (tmp_path / "admin.token").write_text("lim_1_admin\n")
    lock = write_address(tmp_path, fake.uri)
    assert lock is not None
    fake.on("GET", WHO, {"user": "admin"})
    fake.on("POST", TOKENS, {"id": 7, "token": "lim_7_own", "user": "admin", "expires_at": None})
    yield tmp_path
    os.close(lock)


def test_local_login_stores_a_token_of_its_own(fake: FakeServer, run: Run, file: Path, local: Path) -> None:
    """`login --local` creates an expiring token with the one of the data directory, and stores that alone. `logout`
    revokes it.
    """
    done = run("login", "--local", "--data", str(local))
    assert done.code == 0, done.err

    assert fake.asked[-1].headers["Authorization"] == "Bearer lim_1_admin"
    assert fake.asked[-1].body == {"name": "login --local", "expires_in_s": 14 * 24 * 3600}
    assert "lim_1_admin" not in file.read_text()
    assert run("whoami").code == 0
    assert fake.asked[-1].headers["Authorization"] == "Bearer lim_7_own"
    fake.on("DELETE", f"{TOKENS}/7", {"revoked": True})
    run("logout")
    assert fake.calls[-1] == f"DELETE {TOKENS}/7"


def test_login_elsewhere_is_answered_with_the_way_back(fake: FakeServer, run: Run, file: Path, local: Path) -> None:
    """A login at another server than that of the profile in use says that commands go there now, and how to return."""
    first = run("login", "--local", "--data", str(local), "--output", "table")
    former = Profile(uri="http://127.0.0.1:1", user="ana", token="lim_2_x", ends_at=9e9, refresh_token=None)
    profiles.update(os.environ, lambda known: known.put("lake", former))

    again = run("login", "--local", "--data", str(local), "--output", "table")

    assert "goes back" not in first.out
    assert "commands go there now, and 'limnos set profile lake' goes back" in again.out


def test_local_login_reports_an_earlier_end(fake: FakeServer, run: Run, file: Path, local: Path) -> None:
    """`--expires-in` is requested; a session that the server ends earlier is said, and the profile has its end."""
    soon = datetime.now(UTC) + timedelta(days=14)
    fake.routes["POST", TOKENS].clear()
    fake.on("POST", TOKENS, {"id": 7, "token": "lim_7_own", "user": "admin", "expires_at": soon.isoformat()})

    done = run("login", "--local", "--data", str(local), "--expires-in", "30d")

    assert done.code == 0
    assert fake.asked[-1].body == {"name": "login --local", "expires_in_s": 30 * 24 * 3600}
    assert f"the token ends at {soon.isoformat()}" in done.err
    (profile,) = json.loads(file.read_text())["profiles"].values()
    assert abs(profile["ends_at"] - soon.timestamp()) < 60
    assert "not as late" not in run("login", "--local", "--data", str(local), "--expires-in", "14d").err


def test_earlier_end_of_a_created_token_is_reported(fake: FakeServer, limnos: Run) -> None:
    """A token without a requested end, or with a later one, says when the session that creates it ends it."""
    soon = (datetime.now(UTC) + timedelta(days=14)).isoformat()
    fake.on("POST", TOKENS, {"id": 7, "token": "lim_7_own", "user": "ana", "expires_at": soon})

    for words in ((), ("--expires-in", "30d")):
        assert f"ends at {soon}" in limnos("create", "token", *words).err
    assert limnos("create", "token", "--expires-in", "7d").err == ""


def test_local_login_sends_the_token_to_the_running_server_only(
    fake: FakeServer, run: Run, local: Path, tmp_path: Path
) -> None:
    """Without a running server of the data directory nothing is sent, also not to `--uri`."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "admin.token").touch(mode=0o600)

    done = run("login", "--local", "--data", str(other), "--uri", fake.uri)

    assert (done.code, fake.asked) == (1, [])
    assert "limnos server start" in str(done.error["hint"])
    assert "as the user" not in str(done.error["hint"])


def test_local_login_takes_no_other_address(fake: FakeServer, run: Run, local: Path) -> None:
    """With `--uri` of another address nothing is sent, and the hint uses the admin's token there without a session."""
    refused = run("login", "--local", "--data", str(local), "--uri", "http://localhost:1")

    assert (refused.code, fake.asked) == (2, [])
    assert f"--uri http://localhost:1 --token-file {local / 'admin.token'}" in str(refused.error["hint"])
    assert run("login", "--local", "--data", str(local), "--uri", fake.uri).code == 0


@pytest.mark.parametrize("words", [("ana", "--local"), ("--local", "--device"), ()])
def test_several_ways_to_sign_in_are_refused(run: Run, words: tuple[str, ...]) -> None:
    """USER, `--device` and `--local` exclude each other."""
    assert run("login", *words).code == 2


def test_other_session_of_the_server_is_named_at_login_and_logout(
    fake: FakeServer, run: Run, file: Path, local: Path
) -> None:
    """A login with another profile of the same server says how to return; a logout names the remaining session, and so
    does the refusal of a command afterwards.
    """
    mine = Profile(uri=fake.uri, user="ana", token="lim_2_x", ends_at=9e9, refresh_token=None)
    profiles.update(os.environ, lambda known: known.put("lake", mine))
    fake.on("DELETE", f"{TOKENS}/7", {"revoked": True})

    back = run("login", "--local", "--data", str(local), "--profile", "boss", "--output", "table")
    out = run("logout", "--output", "table")
    fake.routes.pop(("GET", "/api/limnos/v1/whoami"), None)
    fake.on("GET", "/api/limnos/v1/whoami", {"user": "anonymous"})
    refusal = run("whoami", "--uri", fake.uri.replace("127.0.0.1", "localhost"))

    assert "commands use profile boss now, and 'limnos set profile lake' goes back to ana" in back.out
    assert f"'limnos set profile lake' uses the session of ana at {fake.uri}" in out.out
    assert "'limnos set profile lake' uses the session of ana" in str(refusal.error["hint"])
