# SPDX-License-Identifier: Apache-2.0
"""Hints for objects that do not exist: a close one, the list that has the existing ones, or the trash."""

from __future__ import annotations

import difflib
import re
import shlex
from typing import cast, get_args

from limnos.cli.hints.arguments import hint_for_name_alone
from limnos.cli.hints.typed_command import PATHS, TypedCommand, path_parts
from limnos.cli.lookups import NamedKind, close_name, close_path, dropped_kind, exists, known_path, objects_named
from limnos.cli.operations import KIND_WORDS, plural
from limnos.cli.output import flag_values
from limnos.cli.signatures import signature_of
from limnos.client.errors import ClientError
from limnos.names import display

_NAMED = re.compile(
    r"(?:there is no (?:valid )?|Illegal )?'?(user|group|role|tag|policy|token|webhook|metalake|catalog|pipeline|job"
    r" template|run|task|job)\b",
    re.IGNORECASE,
)
"""The beginning of messages that name a missing or invalid object."""
NO_NAME = re.compile(r"(?:User|Group|Role|Tag|Policy) (.+?) does not exist\b")
"""The message about a missing name of a metalake."""
_NO_CATALOG = re.compile(r"Catalog (\S+) does not exist in metalake (\S+)$")
"""The message about a path whose first part is no catalog."""
_NO_OBJECT = re.compile(r"[\w ]+ does not exist: |there is no namespace, table or view ")
"""The beginning of messages about a path without an object."""
_KINDS_OF_CATALOGS = frozenset({"model", "fileset"})
"""Kinds of objects that have catalogs of their own, of the type with the same word."""
_FORMER_PARENT = re.compile(r" lay in .+\(id (\d+)\)")
"""The part of a message that names the object to restore first."""
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


def not_found_hint(error: ClientError, typed: TypedCommand) -> str:
    """Return the typed command with a close object, or a command that lists the existing ones."""
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
    restricted, lacks, _ = error.message.partition(" has no restriction ")
    if lacks:
        return f"'{typed.command('list', 'restrictions', restricted.partition(' ')[2])}' lists those of the object"
    if (closer := _closer(typed)) is not None:
        return closer
    if error.message.startswith("The fileset has no file ") and path:
        return f"'{typed.command('files', display.render(path))}' lists its files"
    if (of_table := _of_table(error.message, typed)) is not None:
        return of_table
    name_match = _NAMED.match(error.message)
    kind = name_match[1].lower() if name_match else ""
    if (instead := _of_another_kind(kind, typed)) is not None:
        return instead
    if (instead := _of_grants(kind, error, typed=typed)) is not None:
        return instead
    if kind == "catalog" and typed.path and "/" in typed.path[0]:
        dotted = display.render([part for part in typed.path[0].split("/") if part])
        spelled = [dotted if word in {typed.path[0], display.render(typed.path)} else word for word in typed.tokens]
        return f"a path has dots, not slashes: '{TypedCommand(spelled).again()}'"
    if kind == "catalog" and (listed := _kind_of_list(typed)) is not None:
        return listed
    if kind == "catalog" and (swapped := exchanged_arguments(typed)) is not None:
        return f"'{swapped}', if the order was wrong; '{typed.command('list')}' lists the existing objects"
    if kind == "catalog" and (name := _name_alone(error, typed)) and objects_named(name):
        return hint_for_name_alone(typed, name)
    if kind in _OF_LISTS:
        lists = f"'{typed.command(*_OF_LISTS[kind].split())}' lists the existing ones"
        return _closer_name(kind, error, typed=typed) or lists
    if kind == "metalake":
        return f"'{typed.command('list', '--kind', 'metalake')}' lists the existing ones"
    if kind != "catalog" and len(path) > 1:
        above = path[:1] if error.message.startswith("Schema ") else path[:-1]  # a schema of an external system
        if (known_object := known_path(above)) is not None and known_object.length > 0:
            above = above[: known_object.length]
        elif known_object is None and typed.words[0] == "list":
            above = path[:1]
        lists = f"'{typed.command('list', display.render(above))}' lists the existing objects"
        return f"{lists}{_dotted_name(typed, length=len(above)) if known_object is not None else ''}"
    return f"'{typed.command('list')}' lists the existing objects"


def _of_table(message: str, typed: TypedCommand) -> str | None:
    """Return the hint for a column that an existing table lacks, for a command on Iceberg tables with a Lance table, or
    for a Lance table without data or without a version; None for other messages.
    """
    if NO_COLUMN in message:
        return _of_column(message, typed)
    spelled = display.render(typed.path)
    if ". There is a Lance table: " in message:
        return f"the command is for Iceberg tables; '{typed.command('show', spelled)}' shows the Lance table"
    if message.startswith("The table was declared and has no data yet"):
        shows = typed.command("show", spelled)
        return f"a client of Lance, as LanceDB or pylance, writes its first rows; '{shows}' has its location"
    if message.startswith("The table has no version "):
        return f"'{typed.command('list', 'snapshots', spelled)}' lists those that can be read"
    return None


def _kind_of_list(typed: TypedCommand) -> str | None:
    """Return the hint for a kind with a slip of the pen after `list`; None for other commands."""
    if typed.words[:1] != ("list",) or len(typed.words) != 2:
        return None
    plurals = sorted({*map(plural, {*KIND_WORDS.values()})})
    close = difflib.get_close_matches(typed.words[1].lower(), plurals, n=1, cutoff=0.75)
    if not close:
        return None
    return f"'{typed.command('list', close[0])}', if a kind is meant; '{typed.command('list')}' lists the catalogs"


def _name_alone(error: ClientError, typed: TypedCommand) -> str:
    """Return the typed name that a message calls a missing catalog; empty without one."""
    names = [
        word
        for word in typed.tokens
        if "." not in word and re.search(rf"(?<!\S){re.escape(word)}(?!\S)", error.message)
    ]
    return names[-1] if names and error.message.lower().startswith("catalog") else ""


def _of_grants(kind: str, error: ClientError, *, typed: TypedCommand) -> str | None:
    """Return the hint for a grant to a role or a user that does not exist; None for others."""
    if kind == "role" and typed.words[0] == "grant" and typed.words[1:2] != ("role",):
        command, text = typed.command("create", "role", "ROLE"), typed.command("grant", "role", "ROLE", "--to", "USER")
        again = "repeat the command with --to ROLE"
        return f"privileges are given to roles, and roles to users: '{command}', {again}, then '{text}'"
    if kind in {"user", "group", "role"} and (listed := _each_holder(typed)):
        return listed
    if (closer := _closer_name(kind, error, typed=typed)) is not None:
        return closer
    if kind == "user" and (of_group := _with_group(error, typed)) is not None:
        return of_group
    if kind == "user" and typed.words[:2] in (("grant", "role"), ("revoke", "role")):
        flag = "--to" if typed.words[0] == "grant" else "--from"
        names = [name for word in (flag, "--user") for name in flag_values(typed.tokens, word)]
        lists = f"'{typed.command('list', 'users')}' lists the existing ones"
        if any(name.startswith("user:") for name in names):
            return lists
        group = f"{flag}-group {shlex.quote(names[0])}" if names else f"{flag}-group GROUP"
        return f"{lists}; a group is named by {group}"
    return None


def _with_group(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the hint for an owner that is a group and was typed as a user; None for others."""
    missing = NO_NAME.match(error.message)
    name = "" if missing is None else missing[1]
    if typed.words[:2] != ("owner", "set") or name not in typed.tokens or not exists("group", name):
        return None
    again = TypedCommand([f"group:{name}" if token == name else token for token in typed.tokens]).again()
    return f"{name} is a group: '{again}'"


def _each_holder(typed: TypedCommand) -> str:
    """Return the commands for each holder of a grant whose holders were typed as a list; empty for other commands."""
    flag = "--to" if typed.words[0] == "grant" else "--from"
    value = next(iter(flag_values(typed.tokens, flag)), "")
    if typed.words[1:2] == ("role",) and any("," in word for word in typed.words[2:]):
        plain = [name for token in typed.tokens for name in (token.split(",") if token in typed.words[2:] else [token])]
        return f"names of roles have blanks between them: '{TypedCommand([name for name in plain if name]).again()}'"
    names = [name.strip() for name in value.split(",") if name.strip()]
    if typed.words[0] not in {"grant", "revoke"} or len(names) < 2:
        return ""
    each = [
        TypedCommand([token.replace(value, name) if token.endswith(value) else token for token in typed.tokens]).again()
        for name in names
    ]
    return f"one holder a command: {', then '.join(map(repr, each))}"


def _of_another_kind(kind: str, typed: TypedCommand) -> str | None:
    """Return the hint for a name that is probably one of another kind than the command takes; None for others."""
    words = typed.words
    if kind == "group" and words[:2] in {("group", "add"), ("group", "remove")} and len(words) == 4:
        again = typed.command(*words[:2], words[3], words[2])
        if exists("group", words[3]):
            return f"'{again}': {words[3]} is a group, and stands first"
    if kind == "catalog" and words[:2] in {("access", "who"), ("access", "holders")} and len(typed.path) == 1:
        name = typed.path[0]
        if exists("user", name):
            return f"'{typed.command('access', 'what', name)}': {name} is a user, and no object"
    if kind == "tag" and (tag := next((each for each in flag_values(typed.tokens, "--tag") if "=" in each), "")):
        with_property = TypedCommand([re.sub("^--tag(?==|$)", "--property", token) for token in typed.tokens])
        plain = typed.command("set", display.render(typed.path), "--tag", tag.partition("=")[0])
        again = with_property.again()
        return f"values of tags are set in the console; a property has one here: '{again}', or '{plain}'"
    if kind == "catalog" and words[:2] == ("tag", "list") and len(typed.path) == 1 and exists("tag", typed.path[0]):
        return f"'{typed.command('show', 'tag', typed.path[0])}': {typed.path[0]} is a tag, and no object"
    if kind == "run" and words[0] == "job":
        return f"'{typed.command('list', 'jobs')}' lists the existing ones"
    if kind == "token" and words[:2] == ("token", "revoke") and len(words) > 2 and not words[2].isdigit():
        lists = typed.command("list", "tokens", "--for", words[2])
        return f"a token is revoked by its id: '{lists}' lists those of {words[2]}, if it is a user"
    if kind == "job template" and words[0] in {"pipeline", "schedule"}:
        return f"'{typed.command('list', 'pipelines')}' lists the existing ones"
    if kind == "job template" and words[:2] == ("job", "run"):
        lists = f"'{typed.command('list', 'templates')}' lists the existing ones"
        return f"{lists}; a pipeline is run by '{typed.command('pipeline', 'run', 'FILE')}'"
    return None


def _dotted_name(typed: TypedCommand, *, length: int) -> str:
    """Return how to write the missing parts of a path as one name with dots; "" if only one part is missing. The first
    `length` parts exist.
    """
    path, spelled = typed.path, display.render(typed.path)
    at = next((at for at, token in enumerate(typed.tokens) if token in {spelled, ".".join(path)}), None)
    if at is None or len(path) - length < 2 or typed.words[:1] == ("create",):
        return ""
    name = display.render([*path[:length], ".".join(path[length:])])
    again = TypedCommand([*typed.tokens[:at], name, *typed.tokens[at + 1 :]]).again()
    missing = display.render(path[length : length + 1])
    return f": it has no {missing} that you see; a name with dots is one name in back-quotes, as in {again}"


def _closer(typed: TypedCommand) -> str | None:
    """Return the typed command with the path of a close, visible object; None if its path has none."""
    path = typed.path
    spelled = display.render(path)
    if typed.words[:1] == ("create",) or not any(token in {spelled, ".".join(path)} for token in typed.tokens):
        return None
    if (near := close_path(path)) is None:
        return None
    if typed.is_removal:
        shows = typed.command("show", display.render(near))
        return f"the nearest is {display.render(near)}: '{shows}' shows it"
    again = [display.render(near) if token in {spelled, ".".join(path)} else token for token in typed.tokens]
    return f"did you mean '{TypedCommand(again).again()}'?"


def _closer_name(kind: str, error: ClientError, *, typed: TypedCommand) -> str | None:
    """Return the typed command with the nearest name of a user, group, role, tag or policy; None if none is near. For
    a command that takes something away, what the nearest one is.
    """
    missing = NO_NAME.match(error.message)
    if kind not in get_args(NamedKind) or missing is None:
        return None
    name = missing[1]
    positions = [
        at for at, token in enumerate(typed.tokens) if re.fullmatch(rf"(?:[\w-]+[:=])*{re.escape(name)}", token)
    ]
    if not positions or (near := close_name(cast("NamedKind", kind), name)) is None:
        return None
    lists = f"'{typed.command(*_OF_LISTS[kind].split())}' lists the existing ones"
    if typed.is_removal:
        return f"the nearest is {near}: '{typed.command('show', kind, near)}' shows it; {lists}"
    again = [
        f"{token.removesuffix(name)}{near}" if at == positions[-1] else token for at, token in enumerate(typed.tokens)
    ]
    return f"did you mean '{TypedCommand(again).again()}'? {lists}"


def _of_column(message: str, typed: TypedCommand) -> str:
    """Return the hint for a column that a table lacks: the typed command with a near one, and where all are."""
    table, _, column = message.partition(NO_COLUMN)
    shows = f"'{typed.command('show', table)}' shows its columns"
    near = _with_near_column(column, typed)
    return shows if near is None else f"did you mean '{near}'? {shows}"


def _with_near_column(text: str, typed: TypedCommand) -> str | None:
    """Return the typed command with the nearest column; None if none is near. `text` is the end of the message, such as
    `totl: it has fare, total`.
    """
    column, _, columns = text.partition(": it has ")
    near = difflib.get_close_matches(column.lower(), columns.split(", "), n=1, cutoff=0.7)
    positions = [at for at, token in enumerate(typed.tokens) if re.search(rf"(?:^|[.,=]){re.escape(column)}$", token)]
    if not near or not positions:
        return None
    again = list(typed.tokens)
    again[positions[-1]] = f"{again[positions[-1]].removesuffix(column)}{near[0]}"
    return TypedCommand(again).again()


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
    kind = next((word for word in typed.words[:2] if word in _KINDS_OF_CATALOGS), "")
    if "create" in typed.words[:2] and kind and len(typed.path) > 2:
        first = typed.command("create", "catalog", name, "--type", kind)
        return f"'{first}' creates a catalog for it; '{typed.command('list')}' lists the existing ones"
    return f"'{typed.command('list')}' lists the catalogs: a path begins with one, as CATALOG.{path}"


def exchanged_arguments(typed: TypedCommand) -> str | None:
    """Return the command with its two arguments exchanged, if the one in the place of the path has no dot."""
    signature = signature_of(typed.words)
    if signature is None or len(typed.words) != len(signature.words) + 2 or not PATHS & {*signature.arguments}:
        return None
    first, second = typed.words[-2:]
    path, other = (first, second) if signature.arguments[0] in PATHS else (second, first)
    if "." in path or "." not in other:
        return None
    exchanged = [{first: second, second: first}.get(token, token) for token in typed.tokens]
    return TypedCommand(exchanged).again()


def _trash_hint(error: ClientError, typed: TypedCommand) -> str | None:
    """Return the hint for a failed command on the trash: to restore the parent first, or to list the trash; for a
    missing object that is in the trash, the command that restores it. None for others.
    """
    if typed.words[0] in {"delete", "show"} and _NO_OBJECT.match(error.message):
        dropped = dropped_kind(typed.path)
        restores = typed.command("undrop", display.render(typed.path))
        return None if dropped is None else f"'{restores}' restores the {dropped} that was deleted there"
    catalog = typed.path[:1] or (path_parts(typed.words[2])[:1] if typed.words[:2] == ("trash", "delete") else ())
    if not catalog or typed.words[0] not in {"trash", "undrop"}:
        return None
    if former_parent := _FORMER_PARENT.search(error.message):
        first = typed.command("undrop", display.render(catalog), "--id", former_parent[1])
        return f"'{first}' restores the former parent; --to PATH restores the object at another path"
    if "you may restore" in error.message:
        return f"'{typed.command('list', 'trash', display.render(catalog))}' lists objects that you may restore"
    return None
