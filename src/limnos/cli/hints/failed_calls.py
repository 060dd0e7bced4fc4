# SPDX-License-Identifier: Apache-2.0
"""Hints for failed calls, by the kind of the failure."""

from __future__ import annotations

import os
import re
import shlex
import time
from typing import Final

from limnos.cli import profiles
from limnos.cli.errors import StoppedError
from limnos.cli.hints.denials import denied_hint
from limnos.cli.hints.missing_objects import not_found_hint
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.hints.values import hint_for_value
from limnos.cli.lookups import needs_extra, used_server
from limnos.cli.operations import KIND_WORDS
from limnos.cli.output import flag_values
from limnos.cli.signatures import signature_of
from limnos.cli.token_words import without_flag
from limnos.client.errors import (
    TLS_ADVICE,
    ClientError,
    DeniedError,
    NotFoundError,
    UnauthenticatedError,
    UnavailableError,
)
from limnos.model.declared_kinds import DECLARED_WORDS
from limnos.names import display

_DISABLED_CATALOG = re.compile(r"Catalog (\S+) is disabled: enable it first$")
"""The message about a disabled catalog."""
_DISABLED_USER = re.compile(r"User \S+ is disabled in metalake \S+: ask its administrator")
"""The message about a disabled user."""
_PRINCIPAL = re.compile(r"(User|Group|Role|Tag|Policy) (.+?) already exists")
"""The message about a name that another principal, tag or policy has."""
_OWNED_METALAKE = re.compile(r"User \S+ owns metalake (\S+): ")
"""The message about a user who is the last owner of a metalake."""

ANONYMOUS = "anonymous"
"""The user of requests without a credential."""
SIGN_IN = (
    "'limnos login --local' signs in as the admin where your server runs, 'limnos login USER' asks for a password; a"
    " token of 'limnos create token' goes into --token-file FILE or LIMNOS_TOKEN_FILE=FILE"
)
"""How to sign in."""


def is_anonymous(error: ClientError) -> bool:
    """Return whether a server refused a request because it had no credential."""
    return ANONYMOUS in error.message or error.message.startswith("Authenticate: ")


def sign_in_hint() -> str:
    """Return how to sign in; first the commands that use a stored session, if no profile is in use."""
    try:
        stored_profiles = profiles.read(os.environ)
    except StoppedError:
        return SIGN_IN
    sessions = (
        ""
        if stored_profiles.used in stored_profiles.profiles
        else profiles.other_sessions(stored_profiles, now_s=time.time())
    )
    return f"{sessions}; {SIGN_IN}" if sessions else SIGN_IN


def hint_for(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the hint for a failed call, usually a command to run next; None without one."""
    if (acts_as := _acts_as(error, typed)) is not None:
        return acts_as
    if isinstance(error, UnavailableError):
        if "WRONG_VERSION_NUMBER" in error.message:
            return "the server there speaks http, not https: write http:// in --uri or LIMNOS_URI"
        if needs_extra(error):
            return "have the server's administrator install it where the server runs, then start the server again"
        if "CERTIFICATE_VERIFY_FAILED" in error.message:
            return (
                f"{_with_ca_file(typed)} names the PEM file of the authority that signed the server's certificate (a"
                " self-signed one is its own), which 'limnos login' keeps; correct a name that the certificate lacks in"
                " --uri"
            )
        if "Name or service not known" in error.message or "nodename nor servname" in error.message:
            return "check the name of the host in --uri or LIMNOS_URI"
        if TLS_ADVICE in error.message:
            return "if the server has TLS, write https:// in --uri or LIMNOS_URI; else try again in a moment"
        if "A file of the table is missing" in error.message:
            return _of_missing_file(typed)
        if error.sent:
            return "try again in a moment; the server's log says more"
        start = "start a server with 'limnos server start', or give its URL with --uri or LIMNOS_URI"
        used = used_server.get()
        if used is None or used.profile is None:
            is_named = any(flag_values(typed.tokens, "--uri")) or "LIMNOS_URI" in os.environ
            stored_profiles = used is not None and not is_named and profiles.read(os.environ).profiles
            return (
                f"{start}; 'limnos list profiles' lists the servers that you signed in to" if stored_profiles else start
            )
        return f"{start}; {used.uri} is of profile {used.profile}, and 'limnos list profiles' lists the others"
    if isinstance(error, UnauthenticatedError) or is_anonymous(error):
        if any(each.partition("=")[0] == "--user" for each in typed.tokens):
            if (instead := _of_a_user(typed)) is not None:
                return f"'--user' says who you are, and this server believes tokens only: {instead}"
            return (
                "'--user NAME' sends a name instead of a token, which this server does not believe: leave it out; to"
                " act as another user, a service admin types '--as NAME'; 'limnos audit --who NAME' lists a user's"
                " actions"
            )
        return sign_in_hint() if is_anonymous(error) else SIGN_IN
    if (disabled := _DISABLED_CATALOG.match(error.message)) is not None:
        return f"'{typed.command('catalog', 'enable', disabled[1])}' enables it, if you own it"
    if _DISABLED_USER.match(error.message) is not None:
        return None  # the message names who enables the user
    if isinstance(error, DeniedError):
        return denied_hint(error, typed)
    if error.code == "unexpected-answer" or error.message.startswith("This address does not exist"):
        return _PLAIN["unexpected-answer"]
    if error.message.startswith("Failed to open input stream for file: "):
        return _of_missing_file(typed)
    if isinstance(error, NotFoundError) or "does not exist" in error.message:
        return not_found_hint(error, typed)
    return _by_code(error, typed)


def _of_missing_file(typed: TypedCommand) -> str | None:
    """Return the hint for a missing data file or metadata file of an Iceberg table; None without a path."""
    if len(typed.path) < 2 or typed.words[:2] == ("table", "check"):
        return None
    checks = typed.command("table", "check", display.render(typed.path))
    return f"'{checks}' lists all missing files and says what to do"


def _with_ca_file(typed: TypedCommand) -> str:
    """Return the typed command with the flag for the file of an authority; the flag alone if one was typed."""
    has_file = any(flag_values(typed.tokens, "--ca-file"))
    return "'--ca-file FILE'" if has_file or not typed.tokens else f"'{typed.again('--ca-file', 'FILE')}'"


def _acts_as(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the hint after `--as` was refused, without that flag; None for other failures."""
    user = next(iter(flag_values(typed.tokens, "--as")), "")
    if not user:
        return None
    if error.message.startswith("--as "):
        return f"leave out '--as {shlex.quote(user)}': only service admins act as other users"
    if not error.message.startswith((f"User {user} does not exist", f"Current user {user} doesn't exist")):
        return None
    own_command = TypedCommand(without_flag(typed.tokens, "--as"))
    return f"'{own_command.command('list', 'users')}' lists the existing ones"


def _of_a_user(typed: TypedCommand) -> str | None:
    """Return the command that is about a user, for one with `--user`; None if none is known."""
    signature = signature_of(typed.words)
    user = next(iter(flag_values(typed.tokens, "--user")), "")
    if signature is None or not user:
        return None
    if signature.words in (("role", "list"), ("group", "list")):
        return f"'{typed.spell('show', 'user', user)}' shows the user's roles and groups"
    for flag in ("--who", "--for"):
        if flag in signature.flags:
            again = [flag if word == "--user" else word.replace("--user=", f"{flag}=") for word in typed.tokens]
            return f"'{TypedCommand(again).again()}'"
    return None


_ACTIONS: Final = {
    word: action
    for action, words in {
        "read": "select read scan query",
        "commit": "write insert update delete modify append commit table_write",
        "drop": "drop",
        "create": "create",
        "alter": "alter",
        "rename": "rename move",
    }.items()
    for word in words.split()
}
"""Words that people type for actions on a table, and the end of the action's name."""


def _of_unknown_action(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the command with the action that a word of SQL means for a table; None for other errors."""
    unknown = re.match(r"Unknown action '(\w+)'(?:; did you mean (\w+))?", error.message)
    if unknown is None:
        return None
    end = _ACTIONS.get(unknown[1].lower())
    meant = f"table_{end}" if end is not None else unknown[2]
    if not meant:
        return None
    again = [meant if token == unknown[1] else token for token in typed.tokens]
    return f"'{TypedCommand(again).again()}'{', for a table' if end is not None else ''}"


_OF_OTHER_KIND: Final = re.compile(r"Action (\w+) is done to an? ([\w ]+), not to an? ([\w ]+)$")
"""The message about an action on an object of a kind that does not have it."""


def _of_other_kind(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the hint for an action on an object of a kind that does not have it; None for other errors."""
    if (match := _OF_OTHER_KIND.match(error.message)) is None:
        return None
    path = next((word for word in typed.words[2:] if word != match[1]), "")
    kind = match[2].partition(" or ")[0]
    levels = ["metalake", "catalog", "schema", "namespace"]
    if match[3] not in levels or kind in levels[:2] or typed.words[:1] != ("access",):
        return "'limnos access explain --actions' lists the actions of each kind"
    if not path:
        return f"name a {kind}: '{typed.again('PATH')}'"
    inside = f"{path}.{kind.replace(' ', '_').upper()}"
    again = TypedCommand([inside if token == path else token for token in typed.tokens]).again()
    lists = f"'{typed.command('list', path)}' lists what is in it"
    if typed.words[:2] == ("access", "explain"):
        return f"'{again}'; {lists}"
    return f"'{typed.command('access', 'who', path)}' lists who may read or write what is in it, '{again}' one {kind}"


def _by_code(error: ClientError, typed: TypedCommand) -> str | None:
    if (instead := _of_other_kind(error, typed)) is not None:
        return instead
    if (action := _of_unknown_action(error, typed)) is not None:
        return action
    if (other := re.match(r"There is no action '(\w+)': did you mean (\S+)\?", error.message)) is not None:
        return f"'{TypedCommand([other[2] if token == other[1] else token for token in typed.tokens]).again()}'"
    path = display.render(typed.path) if typed.path else ""
    if error.code == "already-exists":
        return _of_taken_name(error, typed)
    if "limnos unprotect" in error.message:
        return None
    if (owned := _OWNED_METALAKE.match(error.message)) is not None:
        return f"'{typed.command('set', 'owner', owned[1], 'USER', '--kind', 'metalake')}', then repeat the command"
    if " or " in error.message.partition("only on ")[2] and typed.words[:1] in (("grant",), ("revoke",)):
        return (
            "give each privilege on an object of its kind, or all that a reader needs: 'limnos grant --preset reader"
            " PATH --to HOLDER'"
        )
    if "only on METALAKE" in error.message and typed.words[:1] in (("grant",), ("revoke",)):
        flags = [token for at, token in enumerate(typed.tokens) if "--on" not in typed.tokens[max(0, at - 1) : at + 1]]
        return f"'{TypedCommand([*flags, '--on-metalake']).again()}'"
    if error.code in {"not-empty", "in-use"}:
        if typed.words[:1] != ("delete",) or not path:
            return None
        if "metalake" in typed.tokens:
            inside = shlex.join(["limnos", "list", "--metalake", typed.words[1]])
            return f"'{inside}' lists its content: drop that first, or all with '{typed.again('-r')}'"
        if "disable it first" in error.message:
            first = typed.command("catalog", "disable", path)
            return f"'{first}', then repeat the command once it is empty; with all its content '{typed.again('-r')}'"
        look = f"'{typed.command('list', path)}' lists its content: drop that first"
        again = TypedCommand([token for token in typed.tokens if token not in {"--yes", "-y"}]).again("--recursive")
        return f"{look}, or all with '{again}', which lists them and asks"
    if (instead := _of_values(error, typed, path=path)) is not None:
        return instead
    if (instead := hint_for_value(error.message, typed)) is not None:
        return instead
    return _PLAIN.get(error.code)


def _of_taken_name(error: ClientError, typed: TypedCommand) -> str:
    """Return the hint for a name that another object has, or a state that the object has already."""
    path = display.render(typed.target) if typed.target else ""
    if " is a service account, " in error.message:
        return "a program signs in with its secrets; a password is for a user without any"
    if " is on " in error.message and error.message.endswith(" already"):
        return "nothing is left to do"
    if error.message.startswith("Pipeline "):
        return f"'{typed.again()}' after that; another name makes another pipeline for the same tables"
    if (principal := _PRINCIPAL.match(error.message)) is not None:
        shows = typed.command("show", principal[1].lower(), principal[2])
        return f"choose another name; '{shows}' shows the one that has it"
    kind = typed.words[1] if typed.words[:1] == ("create",) and len(typed.words) > 1 else ""
    if path and kind == "metalake":
        shows = typed.command("show", path, "--kind", "metalake")
        return f"choose another name; '{shows}' shows the metalake that has it"
    if path and kind in DECLARED_WORDS:
        changes = typed.command("set", path, "--field", "NAME=VALUE")
        return f"choose another name; '{changes}' changes the {kind} that has it"
    if path.lower() in KIND_WORDS:
        shows = typed.command("show", path, "--kind", "catalog")
        return f"choose another name; '{shows}' shows the catalog that has it"
    if not path:
        return "choose another name"
    return f"choose another name; '{typed.command('show', path)}' shows the object that has it"


def _of_values(error: ClientError, typed: TypedCommand, *, path: str) -> str | None:
    """Return the hint for a name or value that the object cannot have; None for other errors."""
    if " do not nest, because " in error.message and "--parents" in typed.tokens and len(typed.path) > 2:
        plain = typed.command("create", "namespace", display.render((typed.path[0], typed.path[-1])))
        return f"namespaces of catalog {typed.path[0]} do not nest: '{plain}'"
    if "matching regex '^(https?://" in error.message:
        url = next(iter(flag_values(typed.tokens, "--url")), "")
        again = [
            token.replace(url, f"https://{url}") if url and token.endswith(url) else token for token in typed.tokens
        ]
        return f"a URL begins with http:// or https://: '{TypedCommand(again).again()}'"
    if "must be in a namespace" in error.message and typed.words[:1] == ("rename",) and len(typed.words) > 2:
        into = f"{typed.words[2]}.{display.render(typed.path[-1:])}"
        return f"'{typed.command('rename', path, into)}' moves it into {typed.words[2]}"
    if error.message.startswith("A restriction applies to a table") and typed.path:
        return f"'{typed.command('list', display.render(typed.path[:1]))}' lists the namespaces of the catalog"
    if "holds Lance tables, which Lance REST changes" in error.message and path:
        above = typed.command("set", display.render(typed.path[:-1]), "--comment", "TEXT")
        return (
            f"a Lance table has no comment, descriptions or properties here, and LanceDB's clients change its columns;"
            f" '{typed.command('set', path, '--tag', 'TAG')}' tags it, '--owner USER' gives it an owner, '{above}'"
            " describes what it is in"
        )
    if " there is no readable Lance table (" in error.message and path:
        lists = typed.command("list", "snapshots", path)
        return f"an earlier version may be whole: '{lists}' lists them, and 'limnos head' takes one as --snapshot"
    if error.message.startswith("The table has no snapshot ") and path:
        return f"'{typed.command('list', 'snapshots', path)}' lists those that can be read"
    if "is outside the catalog's allowed roots" in error.message and typed.path:
        catalog = display.render(typed.path[:1])
        return f"'{typed.command('set', catalog, '--allowed-location', 'URL')}' replaces its other allowed locations"
    if "Only columns of Iceberg tables can be named here" in error.message and path:
        tag = typed.words[2] if typed.words[:2] == ("tag", "add") and len(typed.words) > 2 else "TAG"
        return f"columns of Lance tables have no tags: '{typed.command('set', 'tag', tag, path)}' tags the table"
    return None


_PLAIN = {
    "pruned": "--after oldest continues with the retained changes",
    "commit-conflict": "another request changed it concurrently: load it again and repeat",
    "not-in-use": "it is disabled: its owner enables it, a catalog by 'limnos catalog enable NAME'",
    "state-unknown": "check whether it was done before you repeat it",
    "unexpected-answer": "check --uri and LIMNOS_URI: they have the server's address alone, as http://127.0.0.1:8090",
}
