# SPDX-License-Identifier: Apache-2.0
"""Hints after a failure: for each kind of failure, the complete command that helps next.

A test runs every command that is named here. A failure without a known next step gets no hint.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from typing import Final

from limnos.cli.flags import takes_value
from limnos.cli.lookups import (
    AccessOffer,
    access_offer,
    close_path,
    known_path,
    needs_extra,
    other_metalake,
    used_server,
)
from limnos.cli.output import flag_values
from limnos.cli.signatures import signature_of
from limnos.client.errors import (
    TLS_ADVICE,
    ClientError,
    DeniedError,
    NotFoundError,
    UnauthenticatedError,
    UnavailableError,
)
from limnos.names import display
from limnos.names.errors import InvalidName

_CONNECTION = ("--uri", "--metalake", "--user", "--as", "--token-file")
"""Flags of server and credential, which a hint repeats. A token on the command line is not repeated."""

_NAMED = re.compile(
    r"(?:there is no (?:valid )?|Illegal )?'?(user|group|role|tag|policy|token|webhook|metalake|catalog|pipeline|job"
    r" template|run|task|job)\b",
    re.IGNORECASE,
)
"""The beginning of messages that name a missing or invalid object."""

_DECISION = re.compile(r"perform operation '(\w+)' on metadata '(.+?)': ", re.DOTALL)
"""The position of the decision in an error message of Iceberg REST, which has no separate field for it."""

_LEVELS = re.compile(r"(?:Namespace|Table|View) (?:does not exist|already exists): .+$")
"""Messages of Iceberg REST that name the namespace levels but not the catalog."""

_NOT_A_MEMBER = re.compile(r"Current user (\S+) doesn't exist in the metalake (\S+?),")
"""The message for a user who is not a member of the metalake."""

_AMBIGUOUS_PATH = re.compile(r" is both a namespace and a (\w+); name its kind")
"""The message about an ambiguous path."""

_NO_CATALOG = re.compile(r"Catalog (\S+) does not exist in metalake (\S+)$")
"""The message about a path whose first part is no catalog."""

_DISABLED_CATALOG = re.compile(r"Catalog (\S+) is disabled: enable it first$")
"""The message about a disabled catalog."""

_FORMER_PARENT = re.compile(r" lay in .+\(id (\d+)\)")
"""The part of a message that names the object to restore first."""

_NO_SERVER = "is not the address of a server"
"""The message about an address that is no URL."""

NO_COLUMN = " has no column "
"""The part of an error message for an existing table without the column."""

_OF_LISTS = {
    "user": "list users",
    "group": "list groups",
    "role": "list roles",
    "tag": "list tags",
    "policy": "list policies",
    "token": "list tokens",
    "webhook": "list webhooks",
    "job template": "list templates",
    "pipeline": "list pipelines",
    "run": "list runs",
    "task": "list tasks",
    "job": "list jobs",
}

_IN_METALAKE = frozenset(
    {"user_list", "user_manage", "group_list", "group_manage", "role_list", "role_create", "role_assign"}
)
"""Actions on the metalake. With a name, `access explain` would apply them to a user, group or role."""

_PATHS: Final = frozenset({"PATH", "SOURCE"})
"""The names of arguments that are paths, in the signatures of commands."""


class TypedCommand:
    """The command line as typed, for hints that repeat parts of it."""

    def __init__(self, tokens: Sequence[str] = ()) -> None:
        self.tokens = tuple(tokens)

    @property
    def words(self) -> tuple[str, ...]:
        """The command's name and its positional arguments."""
        names, skip = [], False
        for token in self.tokens:
            if skip:
                skip = False
            elif token.startswith("-") and len(token) > 1:
                skip = takes_value(token)
            else:
                names.append(token)
        return tuple(names)

    @property
    def path(self) -> tuple[str, ...]:
        """The path argument of the command; empty if there is none or it is malformed."""
        if (on := self._value("--on")) is not None:
            return _path_parts(on)
        signature = signature_of(self.words)
        if signature is None:
            return ()
        arguments = self.words[len(signature.words) :]
        is_new = signature.words[0] == "create" and signature.arguments[:1] == ("NAME",)
        at = (
            0 if is_new else next((at for at, name in enumerate(signature.arguments) if name in _PATHS), len(arguments))
        )
        return _path_parts(arguments[at]) if at < len(arguments) else ()

    def _value(self, flag: str) -> str | None:
        """The value of a flag; None without it."""
        return next(iter(flag_values(self.tokens, flag)), None)

    @property
    def metalake(self) -> str:
        """The metalake of the command's paths."""
        return next(iter(flag_values(self.tokens, "--metalake")), os.environ.get("LIMNOS_METALAKE", "lake"))

    @property
    def target(self) -> tuple[str, ...]:
        """The new path of the object: TARGET of `rename`, `--to` of `undrop`, else `path`; empty if it is malformed."""
        if self.words[:1] == ("rename",):
            return _path_parts(self.words[2]) if len(self.words) > 2 else ()
        if self.words[:1] != ("undrop",):
            return self.path
        for at, token in enumerate(self.tokens):
            if token == "--to" and at + 1 < len(self.tokens):  # noqa: S105 - a flag
                return _path_parts(self.tokens[at + 1])
            if token.startswith("--to="):
                return _path_parts(token.removeprefix("--to="))
        return self.path

    def located(self, message: str) -> str:
        """Append the typed path's catalog to a message that names an object without it, as Iceberg's messages do."""
        if not self.path or not _LEVELS.match(message) or message.endswith(f": {display.render(self.path)}"):
            return message
        return f"{message} in catalog {self.path[0]}"

    def command(self, *words: str) -> str:
        """Format a `limnos` command with the typed connection flags: the same server and credential."""
        return shlex.join(["limnos", *words, *self._connection()])

    @staticmethod
    def spell(*words: str) -> str:
        """Format a `limnos` command without connection flags, as another user would type it."""
        return shlex.join(["limnos", *words])

    def again(self, *more: str) -> str:
        """Format the typed command with more flags. A token in it is masked."""
        texts = list(self.tokens)
        for at, token in enumerate(texts):
            if token == "--token" and at + 1 < len(texts):  # noqa: S105 - a flag
                texts[at + 1] = "..."
            elif token.startswith("--token="):
                texts[at] = "--token=..."
        return shlex.join(["limnos", *texts, *more])

    def _connection(self) -> list[str]:
        names: list[str] = []
        for at, token in enumerate(self.tokens):
            name = token.partition("=")[0]
            if name in _CONNECTION:
                names += [token] if "=" in token else list(self.tokens[at : at + 2])
        return names


def _path_parts(path: str) -> tuple[str, ...]:
    try:
        return tuple(display.parse(path))
    except InvalidName:
        return ()


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
                "'--ca-file FILE' names the PEM file of the server's certificate or of its authority, which 'limnos"
                " login' keeps; a name that the certificate lacks is corrected in --uri"
            )
        if "Name or service not known" in error.message or "nodename nor servname" in error.message:
            return "check the name of the host in --uri or LIMNOS_URI"
        if TLS_ADVICE in error.message:
            return "if the server has TLS, write https:// in --uri or LIMNOS_URI; else try again in a moment"
        if error.sent:
            return "try again in a moment; the server's log says more"
        start = "start a server with 'limnos server start', or give its URL with --uri or LIMNOS_URI"
        used = used_server.get()
        if used is None or used.profile is None:
            return start
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
        return SIGN_IN
    if (disabled := _DISABLED_CATALOG.match(error.message)) is not None:
        return f"'{typed.command('catalog', 'enable', disabled[1])}' enables it, if you own it"
    if isinstance(error, DeniedError):
        return _denied_hint(error, typed)
    if error.code == "unexpected-answer" or error.message.startswith("This address does not exist"):
        return _PLAIN["unexpected-answer"]
    if isinstance(error, NotFoundError) or "does not exist" in error.message:
        return _not_found_hint(error, typed)
    return _by_code(error, typed)


def _acts_as(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the hint after `--as` was refused, without that flag; None for other failures."""
    user = next(iter(flag_values(typed.tokens, "--as")), "")
    if not user:
        return None
    if error.message.startswith("--as "):
        return f"leave out '--as {shlex.quote(user)}': only service admins act as other users"
    if not error.message.startswith((f"User {user} does not exist", f"Current user {user} doesn't exist")):
        return None
    own = TypedCommand(_without_flag(typed.tokens, "--as"))
    return f"'{own.command('list', 'users')}' lists the existing ones"


def _without_flag(tokens: Sequence[str], flag: str) -> list[str]:
    """Return a command line without a flag and its value."""
    pairs = zip(["", *tokens], tokens, strict=False)
    return [token for before, token in pairs if flag not in {token, before} and not token.startswith(f"{flag}=")]


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
            return f"'{shlex.join(['limnos', *again])}'"
    return None


def hint_for_argument(message: str, typed: TypedCommand) -> str | None:
    """Return the hint for arguments that the client rejected; None without one."""
    if match := _AMBIGUOUS_PATH.search(message):
        return f"'{typed.again('--kind', 'namespace')}', or '{typed.again('--kind', match[1])}'"
    if _NO_SERVER in message:
        typed_uri = next(iter(flag_values(typed.tokens, "--uri")), "")
        is_host = typed_uri and "://" not in typed_uri
        again = [f"http://{token}" if token == typed_uri else token for token in typed.tokens]
        return f"'{shlex.join(['limnos', *again])}'" if is_host else None
    if typed.words[:1] == ("undrop",) and typed.words[-1].isdigit():
        return f"'{typed.spell('undrop', 'CATALOG', '--id', typed.words[-1])}', with the catalog of the trash"
    if "is too short: give catalog.namespace" in message:
        place = f"{typed.words[-1]}.NAME" if typed.words else "PATH"
        return f"'{typed.command(*typed.words[:-1], place)}'"
    return None


def _denied_hint(error: DeniedError, typed: TypedCommand) -> str:
    action, kind, target = _decision_parts(error)
    if not_a_member := _NOT_A_MEMBER.match(error.message):
        if (other := other_metalake(not_a_member[2], typed.spell("list", "metalakes"))) is not None:
            return other
        added = typed.spell("create", "user", not_a_member[1], "--metalake", not_a_member[2])
        return f"an admin of the metalake adds you with '{added}'"
    if not action:
        return f"'{typed.command('whoami')}' shows who you are"
    whole = kind == "metalake" or action in _IN_METALAKE
    words = ["access", "explain", action, *([] if whole or not target else [target])]
    words += ["--kind", kind] if kind and not whole else []
    shows = f"'{typed.command(*words)}' shows what is missing"
    offer = None if whole else access_offer(action, kind=kind, path=target)
    return shows if offer is None else f"{_ask(offer, typed)}; {shows}"


def _ask(offer: AccessOffer, typed: TypedCommand) -> str:
    """Return the command that asks for access, and of whom."""
    words = ["request", "access", offer.path]
    words += ["--preset", offer.preset] if offer.preset != "reader" else []
    words += ["--kind", offer.kind] if offer.kind not in {"table", "catalog"} else []
    owner = f" ({offer.owned} is owned by {offer.owner})" if offer.owner else ""
    asks = f"'{typed.command(*words)}' asks for access{owner}"
    return asks if offer.owned == offer.path else f"{asks}, if you were told that it exists"


def _decision_parts(error: DeniedError) -> tuple[str, str, str]:
    """Return the action of a refusal, the kind of its target, and the target; empty strings if they are unknown."""
    decision = error.decision
    if decision is not None and decision.action:
        kind = getattr(decision.target, "kind", "")
        return decision.action, kind, decision.target_name
    match = _DECISION.search(error.message)
    return (match[1], "", match[2]) if match else ("", "", "")


def _not_found_hint(error: ClientError, typed: TypedCommand) -> str:
    path = typed.path
    if (missing := _NO_CATALOG.match(error.message)) is not None and (hint := _without_lake(missing, typed)):
        return hint
    if typed.words[:2] == ("create", "namespace") and len(path) > 2:
        return f"'{typed.again('--parents')}' creates the missing parents too"
    if (hint := _trash_hint(error, typed)) is not None:
        return hint
    place = typed.target[:-1]
    if place and place != path and error.message == f"Namespace does not exist: {'.'.join(place[1:])}":
        return f"'{typed.command('list', display.render(place[:-1]))}' lists the existing objects"
    if (closer := _closer(typed)) is not None:
        return closer
    table, lacks, _ = error.message.partition(NO_COLUMN)
    if lacks:
        return f"'{typed.command('show', table)}' shows its columns"
    named = _NAMED.match(error.message)
    kind = named[1].lower() if named else ""
    if kind == "role" and typed.words[0] == "grant" and typed.words[1:2] != ("role",):
        command, text = typed.command("create", "role", "ROLE"), typed.command("grant", "role", "ROLE", "--to", "USER")
        return (
            f"privileges are given to roles, and roles to users: '{command}', repeat this with --to ROLE, then '{text}'"
        )
    if kind == "user" and typed.words[:2] in (("grant", "role"), ("revoke", "role")):
        flag = "--to" if typed.words[0] == "grant" else "--from"
        names = [name for word in (flag, "--user") for name in flag_values(typed.tokens, word)]
        group = f"{flag}-group {shlex.quote(names[0])}" if names else f"{flag}-group GROUP"
        return f"'{typed.command('list', 'users')}' lists the existing ones; a group is named by {group}"
    if kind == "catalog" and typed.path and "/" in typed.path[0]:
        dotted = display.render([part for part in typed.path[0].split("/") if part])
        spelled = [dotted if word in {typed.path[0], display.render(typed.path)} else word for word in typed.tokens]
        return f"a path has dots, not slashes: '{shlex.join(['limnos', *spelled])}'"
    if kind == "catalog" and (swapped := _swapped(typed)) is not None:
        return f"'{swapped}', if the order was wrong; '{typed.command('list')}' lists the existing objects"
    if kind in _OF_LISTS:
        return f"'{typed.command(*_OF_LISTS[kind].split())}' lists the existing ones"
    if kind == "metalake":
        return f"'{typed.command('list', '--kind', 'metalake')}' lists the existing ones"
    if kind != "catalog" and len(path) > 1:
        above = path[:-1] if len(path) == 2 or typed.words[0] != "list" else path[:1]
        if (known := known_path(above)) is not None and known.length > 0:
            above = above[: known.length]
        return f"'{typed.command('list', display.render(above))}' lists the existing objects"
    return f"'{typed.command('list')}' lists the existing objects"


def _closer(typed: TypedCommand) -> str | None:
    """Return the typed command with the path of a close, visible object; None if its path has none."""
    path = typed.path
    spelled = display.render(path)
    if typed.words[:1] == ("create",) or not any(token in {spelled, ".".join(path)} for token in typed.tokens):
        return None
    if (near := close_path(path)) is None:
        return None
    if typed.words[:1] == ("delete",):
        shows = typed.command("show", display.render(near))
        return f"the nearest is {display.render(near)}: '{shows}' shows it"
    again = [display.render(near) if token in {spelled, ".".join(path)} else token for token in typed.tokens]
    return f"did you mean '{shlex.join(['limnos', *again])}'?"


def _without_lake(missing: re.Match[str], typed: TypedCommand) -> str | None:
    """Return the hint for a path whose first part is no catalog: the path without the metalake, if that is the part, or
    where catalogs are listed; None if no such path was typed.
    """
    name = missing[1]
    at = next((at for at, word in enumerate(typed.tokens) if word.startswith(f"{name}.")), None)
    if at is None:
        return None
    path = typed.tokens[at]
    if name == missing[2]:
        again = [*typed.tokens[:at], path.removeprefix(f"{name}."), *typed.tokens[at + 1 :]]
        return f"'{TypedCommand(again).again()}': paths begin with a catalog, below the metalake"
    return f"'{typed.command('list')}' lists the catalogs: a path begins with one, as main.{path}"


def _swapped(typed: TypedCommand) -> str | None:
    """Return the command with its two arguments exchanged, if the one in the place of the path has no dot."""
    signature = signature_of(typed.words)
    if signature is None or len(typed.words) != len(signature.words) + 2 or not _PATHS & {*signature.arguments}:
        return None
    first, second = typed.words[-2:]
    path, other = (first, second) if signature.arguments[0] in _PATHS else (second, first)
    if "." in path or "." not in other:
        return None
    exchanged = [{first: second, second: first}.get(token, token) for token in typed.tokens]
    return shlex.join(["limnos", *exchanged])


def _trash_hint(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the hint for a failed command on the trash: to restore the parent first, or to list the trash."""
    catalog = typed.path[:1] or (_path_parts(typed.words[2])[:1] if typed.words[:2] == ("trash", "delete") else ())
    if not catalog or typed.words[0] not in {"trash", "undrop"}:
        return None
    if former_parent := _FORMER_PARENT.search(error.message):
        first = typed.command("undrop", display.render(catalog), "--id", former_parent[1])
        return f"'{first}' restores that one; or give another target for this one with --to"
    if "you may restore" in error.message:
        return f"'{typed.command('list', 'trash', display.render(catalog))}' lists objects that you may restore"
    return None


_ACTIONS: Final = {
    word: action
    for action, words in {
        "read": "select read scan query load",
        "commit": "write insert update delete modify append commit table_write",
        "drop": "drop",
        "create": "create",
        "rename": "alter rename move",
    }.items()
    for word in words.split()
}
"""Words that people type for actions on a table, and the end of the action's name."""


def _of_unknown_action(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the command with the action that a word of SQL means for a table; None for other errors."""
    unknown = re.match(r"Unknown action '(\w+)'", error.message)
    if unknown is None or (end := _ACTIONS.get(unknown[1].lower())) is None:
        return None
    again = [f"table_{end}" if token == unknown[1] else token for token in typed.tokens]
    return f"'{TypedCommand(again).again()}', for a table"


def _by_code(error: ClientError, typed: TypedCommand) -> str | None:
    if (action := _of_unknown_action(error, typed)) is not None:
        return action
    path = display.render(typed.path) if typed.path else ""
    if error.code == "already-exists":
        path = display.render(typed.target) if typed.target else ""
        if " is on " in error.message and error.message.endswith(" already"):
            return "nothing is left to do"
        if path and typed.words[:2] == ("create", "metalake"):
            shows = typed.command("show", path, "--kind", "metalake")
            return f"choose another name; '{shows}' shows the metalake that has it"
        return (
            f"choose another name; '{typed.command('show', path)}' shows the object that has it"
            if path
            else "choose another name"
        )
    if "limnos unprotect" in error.message:
        return None
    if " or " in error.message.partition("only on ")[2] and typed.words[:1] in (("grant",), ("revoke",)):
        return (
            "give each privilege on an object of its kind, or all that a reader needs: 'limnos grant --preset reader"
            " PATH --to HOLDER'"
        )
    if "only on METALAKE" in error.message and typed.words[:1] in (("grant",), ("revoke",)):
        flags = [token for at, token in enumerate(typed.tokens) if "--on" not in typed.tokens[max(0, at - 1) : at + 1]]
        return f"'{shlex.join(['limnos', *flags, '--on-metalake'])}'"
    if error.code in {"not-empty", "in-use"}:
        if typed.words[:1] != ("delete",) or not path:
            return None
        if "metalake" in typed.tokens:
            inside = shlex.join(["limnos", "list", "--metalake", typed.words[1]])
            return f"'{inside}' lists its content: drop that first, or all with '{typed.again('-r')}'"
        if "disable it first" in error.message:
            first = typed.command("catalog", "disable", path)
            return f"'{first}', then this again once it is empty; with all its content '{typed.again('-r')}'"
        look = f"'{typed.command('list', path)}' lists its content: drop that first"
        return f"{look}, or all with '{typed.again('-r')}'" if len(typed.path) == 1 else look
    return _PLAIN.get(error.code)


_PLAIN = {
    "pruned": "--after oldest continues with the retained changes",
    "commit-conflict": "another request changed it concurrently: load it again and repeat",
    "not-in-use": "it is disabled: its owner enables it, a catalog by 'limnos catalog enable NAME'",
    "state-unknown": "check whether it was done before you repeat it",
    "unexpected-answer": "check --uri and LIMNOS_URI: they have the server's address alone, as http://127.0.0.1:8090",
}
