# SPDX-License-Identifier: Apache-2.0
"""Profiles: the servers that a user is signed in to, in a file that only this user can read.

Must not know servers. The file is replaced atomically. A file that other users can read is refused, because they could
use its tokens.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from limnos.cli.errors import StoppedError

FILE = "profiles.json"
_NAMED_MAX: Final = 3
"""The number of sessions that a message names."""


class ExternalIssuer(msgspec.Struct, frozen=True):
    """The external issuer of a session: the client id, and the token and revocation endpoints."""

    client_id: str
    token_url: str
    revoke_url: str | None = None


class Profile(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A server and the user's session there. `ends_at` is the session's expiry in seconds since 1970 by this machine's
    clock.

    `external_issuer` is None for a session that the server itself issued. An external issuer may issue no refresh
    token; the session then ends with its token.
    """

    uri: str
    user: str
    token: str
    ends_at: float
    refresh_token: str | None
    ca_file: str | None = None
    external_issuer: ExternalIssuer | None = msgspec.field(default=None, name="outside")


class Profiles(msgspec.Struct, frozen=True):
    """The content of the profiles file. `used` is the name of the current profile."""

    used: str | None = None
    profiles: dict[str, Profile] = {}

    def put(self, name: str, profile: Profile) -> Profiles:
        """Return a copy with a new or replaced profile, which becomes the current profile."""
        return Profiles(name, {**self.profiles, name: profile})

    def with_current(self, name: str) -> Profiles:
        """Return a copy whose current profile is `name`; unchanged if another command has removed the profile."""
        return Profiles(name, self.profiles) if name in self.profiles else self

    def with_refreshed(self, name: str, profile: Profile) -> Profiles:
        """Return a copy with a refreshed profile; unchanged if another command has removed the profile."""
        return Profiles(self.used, {**self.profiles, name: profile}) if name in self.profiles else self

    def without(self, name: str) -> Profiles:
        """Return a copy without the profile `name`."""
        rest = {each: profile for each, profile in self.profiles.items() if each != name}
        return Profiles(None if self.used == name else self.used, rest)


def other_sessions(known: Profiles, *, now_s: float) -> str:
    """Return the commands that use the sessions of profiles, without those that have ended; empty without a session.

    `now_s` is the time in seconds since 1970.
    """
    names = [
        name for name, each in sorted(known.profiles.items()) if each.refresh_token is not None or each.ends_at > now_s
    ]
    commands = [
        f"'{shlex.join(['limnos', 'set', 'profile', name])}' uses the session of {known.profiles[name].user} at"
        f" {known.profiles[name].uri}"
        for name in names[:_NAMED_MAX]
    ]
    more = ["'limnos list profiles' lists more"] if len(names) > _NAMED_MAX else []
    return ", ".join([*commands, *more])


def file_of(environ: Mapping[str, str]) -> Path:
    """Return the path of the profiles file: `LIMNOS_PROFILES`, or a file in the user's configuration directory."""
    if text := environ.get("LIMNOS_PROFILES"):
        return Path(text)
    base = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or os.path.expanduser("~")) / ".config"  # noqa: PTH111 - as `HOME` may be unset
    return Path(base) / "limnos" / FILE


def read(environ: Mapping[str, str]) -> Profiles:
    """Read the profiles; empty if the file does not exist or is not readable.

    Raises StoppedError if other users can read or write the file, or if it is malformed.
    """
    file = file_of(environ)
    try:
        with file.open("rb") as opened:
            result = os.fstat(opened.fileno())
            text = opened.read()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return Profiles()
    if result.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or result.st_uid != os.geteuid():
        raise StoppedError(
            f"the profiles in {file} can be read or written by others, and are not used",
            hint=f"'chmod 600 {file}' if no other user has read it; else remove it and sign in again",
        )
    try:
        return msgspec.json.decode(text, type=Profiles)
    except msgspec.DecodeError as error:
        raise StoppedError(
            f"the profiles in {file} cannot be read: {error}", hint="remove it and sign in again"
        ) from None


@contextmanager
def lock_profiles(environ: Mapping[str, str]) -> Iterator[None]:
    """Lock the profiles for the body of a `with`: an issuer may accept a refresh token only once."""
    file = file_of(environ)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.with_name(f".{file.name}.lock").open("ab") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        yield


def update(environ: Mapping[str, str], change: Callable[[Profiles], Profiles]) -> Profiles:
    """Replace the profiles by the result of `change` on the stored ones, under the lock. Returns the former ones.

    Without the lock a command that read the profiles earlier would store them again, and with them a session that a
    logout has ended meanwhile. Raises StoppedError as `read`.
    """
    with lock_profiles(environ):
        stored_profiles = read(environ)
        write(environ, change(stored_profiles))
    return stored_profiles


def write(environ: Mapping[str, str], profiles: Profiles) -> None:
    """Replace the profiles file atomically, with mode 600; create its directory if needed."""
    file = file_of(environ)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".profiles.")  # mkstemp creates it with mode 600
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(msgspec.json.format(msgspec.json.encode(profiles)) + b"\n")
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
