# SPDX-License-Identifier: Apache-2.0
"""Flags of all commands that use a server: its URL, the credential and the output format.

Must not know any command. A credential on the command line takes precedence over a credential in the environment, a
token over a user, and all of these over a profile.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Group, Parameter
from msgspec.structs import replace

from limnos.cli import lookups, profiles
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.output import Format, format_of, visible
from limnos.cli.profiles import Profile
from limnos.model.kind_table import kinds_with
from limnos.model.kinds import Kind as DataKind

if TYPE_CHECKING:
    from limnos.client import Client

CONNECTION = Group("Connection", sort_key=100)
URI_DEFAULT = "http://127.0.0.1:8090"
RUN_S = 86_400
"""The lifetime of a token with which a pipeline runs as another user."""
SOON_S = 60.0
"""A session that expires within this many seconds is refreshed first."""

if TYPE_CHECKING:
    Kind: TypeAlias = str
    OwnedWord: TypeAlias = str
    ExplainedKind: TypeAlias = str
    AttachedKind: TypeAlias = str
else:
    Kind, OwnedWord, ExplainedKind = (
        Literal[tuple(kind.word for kind in kinds_with(lambda row, part=part: part in (row.cli or ())))]
        for part in ("path", "owner", "explain")
    )
    AttachedKind = Literal[
        tuple(kind.word for kind in kinds_with(lambda row: row.attachable is True) if kind is not DataKind.COLUMN)
    ]
"""The kinds that the flag `--kind` of commands about paths, owners, explanations, and tags and policies of objects may
have, from the table of kinds.
"""
KindFlag = Annotated[
    Kind | None,
    Parameter(
        help=(
            "Kind of PATH, if it is ambiguous: outside of catalogs, as `tag` or `job_template` (a pipeline), PATH is"
            " its name."
        )
    ),
]
AttachedKindFlag = Annotated[AttachedKind | None, Parameter(help="Kind of PATH, if it is ambiguous.")]
AttachedColumnFlag = Annotated[str | None, Parameter(help="A column of the table PATH, instead of the table itself.")]
YesFlag = Annotated[bool, Parameter(name="--yes", negative="", help="Do not ask for confirmation.")]
Comment = Annotated[str | None, Parameter(help="A description of the object.")]
Property = Annotated[list[str] | None, Parameter(name="--property", negative="", help="KEY=VALUE; may be repeated.")]


@Parameter(name="*", group=CONNECTION)
@dataclass(frozen=True, slots=True, kw_only=True)
class CommonFlags:
    """Flags of every command that uses a server: URL, metalake, credential, timeout, certificate authorities and output
    format.
    """

    uri: Annotated[
        str | None,
        Parameter(
            env_var="LIMNOS_URI", help="URL of the server; the default is that of the profile in use, or loopback."
        ),
    ] = None
    metalake: Annotated[str, Parameter(env_var="LIMNOS_METALAKE", help="Metalake of all paths and names.")] = "lake"
    token: Annotated[str | None, Parameter(help="API token; safer in LIMNOS_TOKEN, which other users cannot read.")] = (
        field(default=None, repr=False)
    )
    token_file: Annotated[Path | None, Parameter(help="File with an API token; also LIMNOS_TOKEN_FILE.")] = None
    user: Annotated[
        str | None, Parameter(help="User name, for servers that do not authenticate users; also LIMNOS_USER.")
    ] = None
    as_user: Annotated[
        str | None,
        Parameter(name="--as", help="Act as this user; with a token only for service admins."),
    ] = None
    profile: Annotated[
        str | None, Parameter(help="Server and session of this profile instead of the current one's, for one command.")
    ] = None
    ca_file: Annotated[
        str | None,
        Parameter(
            env_var="LIMNOS_CA_FILE",
            help="PEM file of CA certificates to trust for https://, in addition to the machine's.",
        ),
    ] = None
    timeout: Annotated[float, Parameter(help="Timeout of a request, in seconds.")] = 30.0
    output: Annotated[
        Format | None,
        Parameter(env_var="LIMNOS_OUTPUT", help="Output format; the default is `table` on a terminal, else `json`."),
    ] = None

    @property
    def output_format(self) -> Format:
        """The output format: that of the flag or environment, else a table on a terminal and JSON otherwise."""
        return self.output or format_of((), os.environ, terminal=sys.stdout.isatty())

    def client(self) -> Client:
        """Build the client. Raises the errors of `credential`, and UsageError for a timeout that is no time."""
        if not 0 < self.timeout < math.inf:
            raise UsageError("--timeout takes a number of seconds above 0", hint="write for example --timeout 30")
        source, profile = self.credential_source(os.environ), self.profile_name(os.environ)
        lookups.used_server.set(lookups.UsedServer(self.server_url, source, None if source else profile))
        token, user = self.credential(os.environ)
        opener = partial(
            open_client, self.server_url, token=token, user=user, metalake=self.metalake, ca_file=self.ca_path
        )
        if self.as_user is None or token is None:  # the token of another user ends with the command
            lookups.reopen.set(partial(opener, timeout_s=min(self.timeout, lookups.TIMEOUT_S)))
        return opener(timeout_s=self.timeout)

    def credential(self, environ: Mapping[str, str], *, lifetime_s: int = 0) -> tuple[str | None, str | None]:
        """Return the token and the user; at most one of them is set. Refreshes a profile's session that expires soon.

        With `--as` they are those of the other user: a token that is created now if the caller has one, else the name.

        Raises UsageError if several of `--token`, `--token-file` and `--user` are given, or for an empty token;
        StoppedError and the client's errors if the session cannot be refreshed or the other user's token is refused.
        """
        if self.as_user is None:
            return self._own_credential(environ)
        if self.user is not None:
            raise UsageError("--as and --user both say who acts", hint="keep --as")
        token, _ = self._own_credential(environ)
        if token is None:
            return None, self.as_user
        from limnos.cli.acting import LIFETIME_S, create_token

        def open_admin() -> Client:
            return open_client(self.server_url, token=token, timeout_s=self.timeout, ca_file=self.ca_path)

        lifetime_s = max(LIFETIME_S, lifetime_s)
        return create_token(self.as_user, lifetime_s=lifetime_s, open_admin=open_admin), None

    def _own_credential(self, environ: Mapping[str, str]) -> tuple[str | None, str | None]:
        """Return the caller's own token or user, whatever `--as` says. Raises as `credential`."""
        names = [name for name in ("token", "token_file", "user", "profile") if getattr(self, name) is not None]
        if len(names) > 1:
            flags = " and ".join(f"--{name.replace('_', '-')}" for name in names)
            raise UsageError(f"{flags} both give your identity", hint="keep one of them")
        if self.token is not None:
            return _require_token(self.token, source="--token"), None
        if self.token_file is not None:
            return read_token(self.token_file), None
        if self.user is not None:
            return None, self.user
        if self.profile is not None:
            return self._token_of_profile(environ), None
        if (token := environ.get("LIMNOS_TOKEN")) is not None:
            return _require_token(token, source="LIMNOS_TOKEN"), None
        if file := environ.get("LIMNOS_TOKEN_FILE"):
            return read_token(Path(file)), None
        if named := environ.get("LIMNOS_USER"):
            return None, named
        return self._token_of_profile(environ), None

    def credential_source(self, environ: Mapping[str, str]) -> str | None:
        """Return the flag or environment variable with the caller's credential; None if a profile has it."""
        flags = [f"--{name.replace('_', '-')}" for name in ("token", "token_file", "user") if getattr(self, name)]
        if self.profile is not None:
            return None
        variables = [name for name in ("LIMNOS_TOKEN", "LIMNOS_TOKEN_FILE", "LIMNOS_USER") if environ.get(name)]
        return next(iter([*flags, *variables]), None)

    def profile_name(self, environ: Mapping[str, str]) -> str | None:
        """Return the name of the profile of the server's URL, or of the current profile; None without one."""
        result = self._profile(environ)
        return None if result is None else result[0]

    def access_identity(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Describe the server and the origin of the credential, without a request. Secret: it may have a token."""
        file = self.token_file or environ.get("LIMNOS_TOKEN_FILE")
        return (
            self.server_url,
            self.metalake,
            self.token or "",
            "" if file is None else file_identity(Path(file)),
            self.user or "",
            self.as_user or "",
            self.ca_path or "",
            self.profile_name(environ) or "",
        )

    @property
    def server_url(self) -> str:
        """The URL of the server: of the flag or environment, else of the current profile, else the default."""
        if self.uri is not None and self.profile is None:
            return self.uri.rstrip("/")
        profile = self._profile(os.environ)
        return URI_DEFAULT if profile is None else profile[1].uri

    @property
    def typed_ca_path(self) -> str | None:
        """The PEM file of the flag or the environment as an absolute path: a profile that keeps it is used in other
        directories, too. None without one.
        """
        return None if self.ca_file is None else str(Path(self.ca_file).expanduser().absolute())

    @property
    def ca_path(self) -> str | None:
        """The PEM file of additional certificate authorities, from the flag, the environment or the profile; None
        without one.
        """
        if self.ca_file is not None or not self.server_url.startswith("https:"):
            return self.typed_ca_path
        profile = self._profile(os.environ)
        return None if profile is None else profile[1].ca_file

    def _profile(self, environ: Mapping[str, str]) -> tuple[str, Profile] | None:
        """Return the current profile, or with `--uri` the profile of that URL: a token is for its server only."""
        stored_profiles = profiles.read(environ)
        if self.profile is not None:
            return self.profile, self._named_profile(stored_profiles.profiles, environ)
        if self.uri is None:
            return (
                (stored_profiles.used, stored_profiles.profiles[stored_profiles.used])
                if stored_profiles.used in stored_profiles.profiles
                else None
            )
        same = [each for each in stored_profiles.profiles.items() if each[1].uri == self.uri.rstrip("/")]
        return next((each for each in same if each[0] == stored_profiles.used), same[0] if same else None)

    def _named_profile(self, known: Mapping[str, Profile], environ: Mapping[str, str]) -> Profile:
        """Return the profile that `--profile` names. Raises UsageError if there is none, or if `--uri` names another
        server: a token is for its server only. LIMNOS_URI gives way to the flag.
        """
        name = self.profile or ""
        if (profile := known.get(name)) is None:
            near = ", ".join(sorted(known)) or "there are none: 'limnos login' makes one"
            raise UsageError(f"there is no profile '{name}'", hint=f"'limnos list profiles' lists them: {near}")
        if self.uri is not None and self.uri != environ.get("LIMNOS_URI") and self.uri.rstrip("/") != profile.uri:
            raise UsageError(
                f"profile {name} is of {profile.uri}, and --uri names another server", hint="leave one of both out"
            )
        return profile

    def _token_of_profile(self, environ: Mapping[str, str]) -> str | None:
        """Return the profile's token, refreshed if it expires soon. Raises StoppedError if the session cannot be
        refreshed, and the client's errors.
        """
        result = self._profile(environ)
        if result is None:
            return None
        name, profile = result
        if profile.ends_at - time.time() > SOON_S:
            return profile.token
        with profiles.lock_profiles(environ):
            profile = profiles.read(environ).profiles.get(name, profile)  # another command may have refreshed it
            if profile.ends_at - time.time() <= SOON_S:
                profile = renew_profile(profile, timeout_s=self.timeout, ca_file=self.typed_ca_path)
                profiles.write(environ, profiles.read(environ).with_refreshed(name, profile))
        return profile.token


DEFAULTS = CommonFlags()
"""The default if no flags are given. Cyclopts still reads the environment."""


def file_identity(path: Path) -> str:
    """Return the identity of a file's content without reading it: a replaced or changed file has another one."""
    try:
        status = path.stat()
    except OSError:
        return f"{path.absolute()} absent"
    return f"{path.absolute()} {status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def renew_profile(profile: Profile, *, timeout_s: float, ca_file: str | None = None) -> Profile:
    """Refresh a profile's session, at its server or at its external issuer. Raises StoppedError if the external issuer
    refuses, and the server's errors as ClientError.
    """
    if profile.refresh_token is None:
        if profile.ends_at > time.time():
            return profile
        raise StoppedError(
            "the session has expired, and cannot be refreshed",
            code="denied",
            hint=f"sign in again with 'limnos login {'--device' if profile.external_issuer else '--local'}'",
        )
    ca_path = ca_file or profile.ca_file
    if profile.external_issuer is not None:
        from limnos.cli import issuers

        granted = issuers.refresh(
            profile.external_issuer, profile.refresh_token, reach=issuers.IssuerAccess(timeout_s, ca_path)
        )
        return replace(
            profile,
            token=granted.token,
            ends_at=time.time() + granted.expires_in_s,
            refresh_token=granted.refresh_token or profile.refresh_token,
        )
    with open_client(profile.uri, timeout_s=timeout_s, ca_file=ca_path) as client:
        session = client.logins.refresh(profile.refresh_token)
    return replace(profile, token=session.token, ends_at=time.time() + session.expires_in_s)


def open_client(
    uri: str,
    *,
    token: str | None = None,
    user: str | None = None,
    metalake: str = "lake",
    timeout_s: float,
    ca_file: str | None = None,
) -> Client:
    """Build a client. Its module, and HTTP, are imported here, because a wrong command line needs neither."""
    from limnos.client import Client

    return Client(uri, token=token, user=user, metalake=metalake, timeout_s=timeout_s, ca_file=ca_file)


def read_token(file: Path) -> str:
    """Read an API token from a file. Raises UsageError if the file cannot be read or holds no token; the message has
    no part of its content.
    """
    from limnos.model.token_text import TOKEN_CHARACTERS_MAX

    try:
        with file.open("rb") as opened:
            content = opened.read(4 * TOKEN_CHARACTERS_MAX)
    except OSError as error:
        raise UsageError(
            f"the token file '{file}' cannot be read: {error}",
            hint="a server writes the admin's to admin.token in its --data directory",
        ) from error
    try:
        token = content.decode().strip()
    except UnicodeDecodeError:
        raise _no_token(f"the token file '{file}'", "it is not text") from None
    if not token:
        raise UsageError(
            f"the token is empty: the token file '{file}' is empty", hint="'limnos create token --save FILE' writes one"
        )
    return _require_token(token, source=f"the token file '{file}'")


def _require_token(text: str, *, source: str) -> str:
    """Return a token without white space around it. Raises UsageError if the text is empty or no token; the message
    has no part of it.
    """
    from limnos.model.token_text import token_fault

    token = text.strip()
    if not token:
        raise UsageError(
            f"the token is empty: {source} is set, and has no text",
            hint="give a token, or leave it unset to act without one",
        )
    if (fault := token_fault(token)) is not None:
        raise _no_token(source, fault)
    return token


def _no_token(source: str, fault: str) -> UsageError:
    return UsageError(
        f"{source} holds no token: {fault}", hint="'limnos create token --save FILE' writes a file with a token alone"
    )


def properties_of(pairs: Iterable[str] | None) -> dict[str, str]:
    """Parse `--property KEY=VALUE` flags. Raises UsageError for a flag of another form."""
    return pairs_of(pairs, flag="--property team=logistics")


def pairs_of(pairs: Iterable[str] | None, *, flag: str) -> dict[str, str]:
    """Parse flags of the form KEY=VALUE. Raises UsageError for another form; the message has the example `flag`."""
    results: dict[str, str] = {}
    for pair in pairs or ():
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise UsageError(f"'{pair}' is not KEY=VALUE", hint=f"write for example {flag}")
        results[key] = value
    return results


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation on a terminal before a destructive change.

    Does not ask without a terminal or with `--yes`. Raises StoppedError if the user declines.
    """
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(visible(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise StoppedError("nothing was done", hint="answer y, or pass --yes")
