# SPDX-License-Identifier: Apache-2.0
"""`login`, `logout`, `profile list | use`.

A password is read from the terminal or standard input. It is never an argument and never stored.
"""

from __future__ import annotations

import getpass
import os
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from limnos.cli import profiles
from limnos.cli.command_line import typed_tokens
from limnos.cli.common import DEFAULTS, CommonFlags, open_client, renew_profile
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.identity.tokens import lifetime_of, note_earlier_end
from limnos.cli.output import flag_values, show_done, show_rows, visible
from limnos.cli.profiles import ExternalIssuer, Profile, Profiles
from limnos.client import ClientError
from limnos.client.errors import UnauthenticatedError, UnavailableError
from limnos.client.values import LoginResult

app = App(name="profile")

DeviceFlag = Annotated[
    bool, Parameter(name="--device", negative="", help="Sign in at the server's external issuer, in a browser.")
]
LocalFlag = Annotated[
    bool,
    Parameter(name="--local", negative="", help="Sign in as the admin of the server that you run on this machine."),
]
DataFlag = Annotated[
    Path | None, Parameter(name="--data", help="With --local: the server's data directory, ./limnos-data by default.")
]
LOCAL_S = 14 * 24 * 3600
"""The lifetime of a session on this machine without `--expires-in`, in seconds."""
ExpiresIn = Annotated[
    str | None, Parameter(help="With --local: the lifetime of the session, as `12h` or `30d`; 14 days by default.")
]


def login(
    user: str | None = None,
    /,
    *,
    device: DeviceFlag = False,
    local: LocalFlag = False,
    data: DataFlag = None,
    expires_in: ExpiresIn = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Sign in with a password or in a browser. Later commands use the session until it expires.

    `--profile NAME` names the session, by default with the server's host name; at a server of another name `--uri` is
    given once, and a later login with the same name goes there again.

    Parameters
    ----------
    user
        The user. The password is prompted for, or read from standard input. With `--device` the issuer names the user,
        with `--local` it is the server's admin.
    """
    if common.token is not None or common.token_file is not None:
        file = "FILE" if common.token_file is None else shlex.quote(str(common.token_file))
        raise UsageError(
            "a token needs no login: it is sent with each command",
            hint=f"'limnos whoami --token-file {file}', or LIMNOS_TOKEN_FILE={file} for all commands",
        )
    if [user is not None, device, local].count(True) != 1:
        raise UsageError(
            "a user signs in with a password, --device in a browser, --local at a server of one's own",
            hint="give one of USER, --device and --local",
        )
    if expires_in is not None and not local:
        raise UsageError(
            "the server's settings say how long a session with a password or an issuer lasts",
            hint="leave out --expires-in, or create a token: limnos create token --expires-in 30d",
        )
    profile_name, common = common.profile, _login_target(common)
    if local:
        result = _by_data_directory(data, common, lifetime_s=lifetime_of(expires_in) or LOCAL_S)
    else:
        result = _by_device(common) if user is None else _by_password(user, common)
    name = profile_name or result.uri.partition("://")[2].partition("/")[0]
    former = profiles.read(os.environ)
    profiles.update(os.environ, lambda known: known.put(name, result))
    back = _way_back(former, name, uri=result.uri)
    replaced_profile = former.profiles.get(name)
    other = replaced_profile is not None and (replaced_profile.user, replaced_profile.uri) != (result.user, result.uri)
    instead = (
        f", in the place of {replaced_profile.user} at {replaced_profile.uri} in profile {name}"
        if replaced_profile and other
        else ""
    )
    again = " ('--profile NAME' keeps both)" if instead and profile_name is None else ""
    show_done(
        f"signed in to {result.uri} as {result.user}{instead}{again}{back}",
        {"profile": name, "user": result.user},
        output_format=common.output_format,
    )


def _way_back(former: Profiles, name: str, *, uri: str) -> str:
    """Return the words for a login after which commands use another profile than before, with the command that goes
    back to the former one; empty without a change.
    """
    used = former.profiles.get(former.used or "")
    if former.used is None or used is None or former.used == name:
        return ""
    where = "commands go there now" if used.uri != uri else f"commands use profile {name} now"
    back = shlex.join(["limnos", "set", "profile", former.used])
    return f"; {where}, and '{back}' goes back{'' if used.uri != uri else f' to {used.user}'}"


def _login_target(common: CommonFlags) -> CommonFlags:
    """Return the flags with the server to sign in to: that of an existing profile which `--profile` names, without
    another one in a flag or the environment.
    """
    stored_profile = profiles.read(os.environ).profiles.get(common.profile or "")
    return replace(common, profile=None, uri=common.uri or (stored_profile.uri if stored_profile is not None else None))


def _by_password(user: str, common: CommonFlags) -> Profile:
    password = ask_password("Password: ")
    with open_client(common.server_url, ca_file=common.ca_path, timeout_s=common.timeout) as client:
        result = client.logins.login(user, password)
    return _profile(result, common)


def _by_data_directory(data: Path | None, common: CommonFlags, *, lifetime_s: int) -> Profile:
    """Create a token with the admin's, which only the server's user can read, at the server that runs with it."""
    from limnos.config import load
    from limnos.config.local_server import NoLocalServer, read_local_server

    directory = data or Path(load(flags={}, file=None, environ=os.environ).settings.server.data)
    try:
        uri, token = read_local_server(directory)
    except NoLocalServer as error:
        here = (
            "start one with 'limnos server start'; wait for the line `ready` of one that is starting; or name the"
            " directory of a running one with --data"
        )
        default = f": without it, it is {directory}" if data is None else ""
        other = "run it as the user who started 'limnos server start', with its --data; in a container: 'docker exec'"
        raise StoppedError(str(error), hint=here + default if error.is_absent else other) from None
    _require_own_address(uri, directory, common=common)
    ca_path = common.typed_ca_path
    with open_client(uri, token=token, ca_file=ca_path, timeout_s=common.timeout) as client:
        try:
            user = client.whoami()
        except UnavailableError as error:
            if "CERTIFICATE_VERIFY_FAILED" in error.message:  # the hint names the flag for the authority
                raise
            raise _unreachable(error, uri=uri, directory=directory) from error
        except UnauthenticatedError as error:
            raise StoppedError(
                f"{error.message.rstrip('.')} ({directory / 'admin.token'})",
                code=error.code,
                hint="start the server again: it then writes a new admin.token",
            ) from error
        created = client.tokens.create(name="login --local", expires_in_s=lifetime_s)
    return Profile(
        uri=uri,
        user=user,
        token=created.token,
        ends_at=time.time() + (note_earlier_end(created.expires_at, asked_s=lifetime_s) or lifetime_s),
        refresh_token=None,
        ca_file=ca_path,
    )


def _require_own_address(uri: str, directory: Path, *, common: CommonFlags) -> None:
    """Raise UsageError if `--uri` was typed with another address than that of the server in the directory: its token
    would go to whatever listens there.
    """
    typed_uri = next(iter(flag_values(typed_tokens.get(), "--uri")), None)
    if typed_uri is not None and typed_uri.rstrip("/") != uri:
        instead = _with_admin_token(typed_uri, directory, ca_file=common.ca_file)
        raise UsageError(
            f"--local signs in at the server of the data directory, {uri}: --uri is of no use",
            hint=f"leave out --uri; or without a session: {instead}",
        )


def _unreachable(error: UnavailableError, *, uri: str, directory: Path) -> StoppedError:
    """Return the error for the server of a data directory that does not answer at the address that it has of itself."""
    again = _with_admin_token("URI", directory, ca_file=None)
    hint = f"this machine must reach the server there (server.hosts, or --host-name of its start); else {again}"
    return StoppedError(f"{error.message}: {uri} is the server's own address", code="unavailable", hint=hint)


def _with_admin_token(uri: str, directory: Path, *, ca_file: str | None) -> str:
    """Return a command that uses the admin's token at another address of the server."""
    ca = ["--ca-file", ca_file] if ca_file is not None else []
    words = ["limnos", "whoami", "--uri", uri, "--token-file", str(directory / "admin.token"), *ca]
    return f"'{shlex.join(words)}'"


def _by_device(common: CommonFlags) -> Profile:
    """Sign in at the server's issuer in a browser, and request the user name of the token from the server."""
    from limnos.cli import issuers

    with open_client(common.server_url, ca_file=common.ca_path, timeout_s=common.timeout) as client:
        issuer = client.server.issuer()
    if issuer is None:
        raise StoppedError(
            f"{common.server_url} has no issuer for sign-in in a browser",
            hint="'limnos login USER' asks for a password; an operator sets oidc.issuer and oidc.client_id",
        )
    reach = issuers.IssuerAccess(common.timeout, common.ca_path)
    issuers.check_address(issuer.url)
    endpoints = issuers.endpoints_of(issuer.url, reach=reach)
    granted = issuers.sign_in(endpoints, issuer.client_id, scope=issuer.scope, show=_print_notice, reach=reach)
    with open_client(
        common.server_url, token=granted.token, ca_file=common.ca_path, timeout_s=common.timeout
    ) as client:
        user = client.whoami()
    external_issuer = ExternalIssuer(issuer.client_id, endpoints.token, endpoints.revoke)
    ends_at = time.time() + granted.expires_in_s
    return Profile(
        uri=common.server_url,
        user=user,
        token=granted.token,
        ends_at=ends_at,
        refresh_token=granted.refresh_token,
        ca_file=common.ca_path,
        external_issuer=external_issuer,
    )


def _print_notice(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)


def logout(*, common: CommonFlags = DEFAULTS) -> None:
    """End a session and delete its profile, by default the one that commands use."""
    stored_profiles = profiles.read(os.environ)
    profile = common.profile
    name = profile or _profile_in_use(common)
    if name is None or name not in stored_profiles.profiles:
        raise StoppedError(
            f"no session of {common.server_url} is stored" if profile is None else f"there is no profile {profile}",
            hint="'limnos list profiles' lists the profiles",
        )
    former = profiles.update(os.environ, lambda current: current.without(name))
    ended = former.profiles.get(name, stored_profiles.profiles[name])
    with suppress(ClientError, StoppedError):
        _end_session(ended, timeout_s=common.timeout)
    left = profiles.other_sessions(former.without(name), now_s=time.time()) if former.used == name else ""
    show_done(
        f"signed out of {ended.uri}: the session of {ended.user} has ended{f'; {left}' if left else ''}",
        {"profile": name, "user": ended.user, "uri": ended.uri},
        output_format=common.output_format,
    )


def _profile_in_use(common: CommonFlags) -> str | None:
    """Return the name of the profile whose session commands use; None without one.

    Raises UsageError if commands use another credential: its session is not the one that would end.
    """
    source = common.credential_source(os.environ)
    if source is not None:
        raise UsageError(
            f"commands use {source} here, which is no session of 'limnos login': nothing was ended",
            hint="'limnos list profiles' lists the sessions, 'limnos logout --profile NAME' ends one; "
            "'limnos delete token ID' ends a token",
        )
    return common.profile_name(os.environ)


def _end_session(ended: Profile, *, timeout_s: float) -> None:
    """Revoke a session's tokens at its server or issuer. No-op for an issuer's session without a refresh token."""
    if ended.refresh_token is None:
        if ended.external_issuer is None:
            with open_client(ended.uri, token=ended.token, ca_file=ended.ca_file, timeout_s=timeout_s) as client:
                client.tokens.revoke(ended.token.split("_")[1])
        return
    if ended.external_issuer is not None:
        from limnos.cli import issuers

        issuers.revoke(ended.external_issuer, ended.refresh_token, reach=issuers.IssuerAccess(timeout_s, ended.ca_file))
        return
    token = renew_profile(ended, timeout_s=timeout_s).token
    # Each by a token that is valid then: `token` was issued for the refresh token and ends with it.
    for own, text in ((token, ended.refresh_token), (ended.token, ended.token)):
        with open_client(ended.uri, token=own, ca_file=ended.ca_file, timeout_s=timeout_s) as client:
            client.tokens.revoke(text.split("_")[1])


@app.command(name="list")
def list_profiles(*, common: CommonFlags = DEFAULTS) -> None:
    """List the servers you are signed in to."""
    stored_profiles = profiles.read(os.environ)
    rows = [
        {"profile": name, "uri": each.uri, "user": each.user, "used": name == stored_profiles.used}
        for name, each in sorted(stored_profiles.profiles.items())
    ]
    show_rows(
        rows, ["profile", "uri", "user", "used"], output_format=common.output_format, empty="no profile is signed in"
    )


@app.command
def use(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Select the current profile, which commands use without another credential or server URL.

    Parameters
    ----------
    name
        The profile, as `limnos list profiles` shows it.
    """
    stored_profiles = profiles.read(os.environ)
    if name not in stored_profiles.profiles:
        raise StoppedError(f"there is no profile {name}", code="not-found", hint="'limnos list profiles' lists them")
    profiles.update(os.environ, lambda current: current.with_current(name))
    show_done(f"using {name}", {"profile": name}, output_format=common.output_format)


def ask_password(prompt: str, *, required: bool = True) -> str:
    """Read a password from the terminal without echo, or a line of standard input.

    Raises UsageError for an empty password, if it is `required`.
    """
    result = getpass.getpass(prompt, stream=sys.stderr) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if required and not result:
        raise UsageError("no password was given", hint="type it when asked, or pipe it in")
    return result


def _profile(result: LoginResult, common: CommonFlags) -> Profile:
    if result.refresh_token is None:
        raise StoppedError("the server gave no refresh token", hint="check that it has the same version")
    return Profile(
        uri=common.server_url,
        user=result.user,
        token=result.token,
        ends_at=time.time() + result.expires_in_s,
        refresh_token=result.refresh_token,
        ca_file=common.ca_path,
    )
