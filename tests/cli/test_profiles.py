# SPDX-License-Identifier: Apache-2.0
"""Profiles: commands that change the stored sessions at the same time."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from limnos.cli import profiles
from limnos.cli.profiles import Profile, Profiles

ANA = Profile(
    uri="http://a",
    user="ana",
    token="lim_1_a",
    ends_at=100.0,
    refresh_token="lim_2_b",
)
KNOWN = Profiles("a", {"a": ANA})


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with its own profiles file."""
    return {"LIMNOS_PROFILES": str(tmp_path / "limnos" / "profiles.json")}


@pytest.mark.parametrize("change", [lambda one: one.with_refreshed("a", ANA), lambda one: one.with_current("a")])
def test_logged_out_profile_is_not_stored_again(change: Callable[[Profiles], Profiles]) -> None:
    """A refresh and a selection that finish after a logout leave the profile removed."""
    assert change(KNOWN.without("a")) == Profiles(None, {})


def test_refreshed_profile_replaces_the_stored_one() -> None:
    """A refresh of a stored profile stores the new token and keeps the current profile."""
    fresh = Profile(uri="http://a", user="ana", token="lim_3_c", ends_at=200.0, refresh_token="lim_2_b")

    assert KNOWN.with_refreshed("a", fresh) == Profiles("a", {"a": fresh})
    assert KNOWN.with_current("a") == KNOWN


def test_update_changes_what_is_stored_at_its_turn(environ: dict[str, str]) -> None:
    """An update that waits for another command reads the profiles again after that command."""
    profiles.write(environ, KNOWN)
    waits = threading.Event()
    done: list[Profiles] = []

    def select() -> None:
        waits.set()
        done.append(profiles.update(environ, lambda known: known.with_current("a")))

    with profiles.lock_profiles(environ):
        other = threading.Thread(target=select)
        other.start()
        waits.wait()
        profiles.write(environ, KNOWN.without("a"))
    other.join()

    assert done == [Profiles(None, {})]
    assert profiles.read(environ) == Profiles(None, {})


def test_update_holds_the_lock(environ: dict[str, str]) -> None:
    """While an update computes its change, no other command gets the lock."""
    profiles.write(environ, KNOWN)
    lock = Path(environ["LIMNOS_PROFILES"]).with_name(".profiles.json.lock")
    refused: list[bool] = []

    def change(known: Profiles) -> Profiles:
        with lock.open("ab") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                refused.append(True)
        return known

    profiles.update(environ, change)

    assert refused == [True]
    assert Path(environ["LIMNOS_PROFILES"]).stat().st_mode & 0o777 == 0o600


def test_sessions_that_ended_are_not_offered() -> None:
    """Profiles with a session are offered by their commands; one that has ended is not."""
    one = Profile(uri="http://a:1", user="ana", token="t", ends_at=10.0, refresh_token=None)
    known = Profiles(None, {"old": one, "a b": msgspec.structs.replace(one, ends_at=30.0)})

    assert profiles.other_sessions(known, now_s=20.0) == (
        "'limnos set profile 'a b'' uses the session of ana at http://a:1"
    )
