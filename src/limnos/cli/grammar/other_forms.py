# SPDX-License-Identifier: Apache-2.0
"""Command lines in the form of other tools, turned to this one: `-h HOST -p PORT`, `git tag -a`, kubectl's `KIND/NAME`.

Unlike a line of `sentences`, these have flags, or one word that is two here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from limnos.cli.flags import PORT
from limnos.cli.foreign_flags import CLIENTS, SHELL_COMMANDS, STATEMENT_FLAGS
from limnos.cli.guesses import OTHER_VERBS, command_for
from limnos.cli.operations import BY_VERB_AND_KIND, GROUPS, KIND_WORDS, VERB_ALIASES, VERBS, plural
from limnos.cli.output import flag_values
from limnos.cli.sentences import proposal_for
from limnos.cli.signatures import is_installed
from limnos.cli.token_words import take_words, token_width, without_flag

_HOST_FLAGS: Final = ("-h", "--host")
_PORT_FLAGS: Final = ("-p", "--port")
_CLIENTS: Final = (["psql"], ["mysql"], ["trino"], ["beeline"], ["duckdb"])
_HOST: Final = re.compile(
    r"localhost|\d{1,3}(?:\.\d{1,3}){3}|[A-Za-z][\w-]*(?:\.[\w-]+)+|\[?[0-9a-fA-F]*:[0-9a-fA-F:]+\]?"
)
"""Names and addresses of hosts; a name alone may be a command, as in `-h list`."""
_WITH_GROUP: Final = 3
"""The number of words of `group grant NAME`."""
_NUMBER: Final = re.compile(r"-n?([0-9]{1,9})")
"""A number of lines as `head -5` and `tail -n20` have it."""
_LISTS: Final = frozenset({"list", "ls", "tree"})
_WHOLE: Final = frozenset({"changes", "show", "describe"})
"""Commands whose output no flag cuts."""
_LETTERS: Final = {"-l": "list", "-a": "list", "--all": "list", "-d": "delete", "--remove": "delete", "--new": "create"}
"""Flags of git, docker and others that stand for a command."""
_SLASHED: Final = re.compile(r"([A-Za-z_-]+)/([^/]+)")


class OtherForm(NamedTuple):
    """What is wrong with a line in the form of another tool, and the line to type."""

    message: str
    tokens: tuple[str, ...]


def other_form(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line to type for one in the form of another tool; None for other lines."""
    forms = (
        _client_list,
        _client_statement,
        _configuration,
        _with_host,
        _annotated_tag,
        _with_slash,
        _role_binding,
        _followed_log,
        _with_star,
        _numbered_form,
        _command_as_flag,
    )
    return next((form for read in forms if (form := read(tokens)) is not None), None)


def _client_list(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `psql -l`, which lists databases."""
    words, _ = take_words(tokens)
    is_list = words[:1] in _CLIENTS and {"-l", "--list"} & {*tokens}
    note = "what others call a database is a catalog here, and 'limnos list catalogs' lists them"
    return OtherForm(note, ("list", "catalogs")) if is_list else None


def _client_statement(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `psql -c STATEMENT` and `beeline -u URL -e STATEMENT`, as shells of databases have it: the
    connection is left out. A command of such a shell, as `.tables`, is no statement, in `sql -c` neither.
    """
    client = tokens[0].lower()
    text = next((value for flag in STATEMENT_FLAGS for value in flag_values(tokens, flag)), "").strip()
    text = text or (tokens[-1] if client in {"sqlite3", "duckdb"} and SHELL_COMMANDS.fullmatch(tokens[-1]) else "")
    is_command = SHELL_COMMANDS.fullmatch(text) is not None
    if not text and client in CLIENTS and any("://" in value for value in flag_values(tokens, "-u")):
        return OtherForm("the server is named by --uri or LIMNOS_URI; 'limnos sql' is a shell for SQL++", ("sql",))
    if not text or client not in {*CLIENTS, "sql"} or (client == "sql" and not is_command):
        return None
    plain = text.rstrip(";").strip()
    if ";" not in plain:
        meant = proposal_for([plain]) or proposal_for(plain.split())
        if meant is None and (guess := command_for(plain.split())) is not None:
            return OtherForm(guess[1] or _statement_note(text, is_command=is_command), tuple(guess[0]))
        if meant is not None:
            return OtherForm(meant.note or _statement_note(text, is_command=is_command), meant.command)
    if is_command:
        return OtherForm(f"'{text}' is a command of another shell, and no statement", ("sql", "--help"))
    if not is_installed(("sql",)):
        return None
    return OtherForm("statements are run by 'limnos sql', in SQL++", ("sql", "-c", f"{plain};"))


def _statement_note(text: str, *, is_command: bool) -> str:
    """Return the sentence about a statement, or a command of another shell, that is a command here."""
    kind = "a command of another shell, and no statement" if is_command else "no statement of SQL++"
    return f"'{text}' is {kind}"


def _configuration(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `databricks configure --token`, which stores a credential."""
    words, _ = take_words(tokens)
    if words[:2] not in (["databricks", "configure"], ["aws", "configure"]):
        return None
    return OtherForm("a session at a server is a profile; a token needs none: --token-file FILE", ("login", "USER"))


def _with_host(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `-h HOST -p PORT COMMAND`, as database clients have it; `-h` alone asks for help."""
    host = next((value for flag in _HOST_FLAGS for value in flag_values(tokens, flag)), "")
    port = next((value for flag in _PORT_FLAGS for value in flag_values(tokens, flag)), "")
    if _HOST.fullmatch(host) is None or (not port.isdigit() and "-h" not in tokens):
        return None
    rest = list(tokens)
    for flag in (*_HOST_FLAGS, *(_PORT_FLAGS if port.isdigit() else ())):
        rest = without_flag(rest, flag)
    words, _ = take_words(rest)
    if words[:1] in _CLIENTS:
        return OtherForm(
            "'limnos sql' is a shell for SQL++; the documentation's page Clients and engines has settings of others",
            ("sql",),
        )
    address = f"{host}:{port if port.isdigit() else PORT}"
    if words[:1] == ["server"]:
        return OtherForm("a server listens at --listen", (*rest, "--listen", address))
    return OtherForm(
        "the server is named by --uri", (*([] if words else ["list"]), *rest, "--uri", f"http://{address}")
    )


def _annotated_tag(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `tag -a NAME PATH` or `tag -d NAME`, as git has it."""
    words, flags = take_words(tokens)
    if words[:1] == ["tag"] and (deleted := next(iter(flag_values(flags, "-d")), "")):
        return OtherForm("tags are deleted by 'limnos delete tag'", ("delete", "tag", deleted))
    name = next((value for flag in ("-a", "--annotate") for value in flag_values(flags, flag)), "")
    if words[:1] != ["tag"] or not name or len(words) > 2:
        return None
    note = "a tag is attached to an object, and has no message: 'limnos create tag NAME' makes one first"
    return OtherForm(note.replace("NAME", name), ("set", "tag", name, words[1] if len(words) > 1 else "PATH"))


def _with_slash(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `VERB KIND/NAME`, as kubectl has it."""
    words, flags = take_words(tokens)
    match = _SLASHED.fullmatch(words[1]) if len(words) == 2 else None
    kind = KIND_WORDS.get(match[1].lower()) if match is not None else None
    if match is None or kind is None:
        return None
    first = words[0].lower()
    verb = VERB_ALIASES.get(first, first if first in VERBS else OTHER_VERBS.get(first, ""))
    operation = BY_VERB_AND_KIND.get((verb, kind))
    if operation is None:
        return None
    message = f"'{words[1]}' is two words here, the kind and the name"
    is_path = operation.arguments.startswith("PATH") and kind not in {"catalog", "metalake"}
    if is_path and "." not in match[2]:
        search = ("find", match[2]) if is_installed(("find",)) else ("tree",)
        return OtherForm(f"{message}; a {kind} has a path, which begins with a catalog", search)
    return OtherForm(message, (verb, kind, match[2], *flags))


def _role_binding(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for a grant with a flag for each part: kubectl's `create rolebinding`, Gravitino's `role grant
    --role ROLE --privilege PRIVILEGE`.
    """
    words, _ = take_words(tokens)
    values = {
        name: next((value for flag in names for value in flag_values(tokens, flag)), "")
        for name, *names in (
            ("role", "--role", "--clusterrole"),
            ("user", "--user", "--serviceaccount"),
            ("group", "--group"),
            ("privilege", "--privilege"),
            ("path", "--name", "--on", "--table"),
        )
    }
    if len(words) == _WITH_GROUP and "--group" in tokens:  # the flag has no value at `set owner`
        values["group"] = words[2]
    role = values["role"]
    lowered = [word.lower() for word in words if word not in values.values()]
    holder = f"group:{values['group']}" if values["group"] else values["user"]
    if lowered[:1] == ["create"] and lowered[1:2] in (["rolebinding"], ["clusterrolebinding"]) and role:
        return OtherForm("a role is granted, without a binding", ("grant", "role", role, "--to", holder or "USER"))
    if lowered in (["user", "grant"], ["user", "revoke"], ["group", "grant"], ["group", "revoke"]) and role and holder:
        way = "--to" if lowered[1] == "grant" else "--from"
        return OtherForm("a role is granted to a holder", (lowered[1], "role", role, way, holder))
    if lowered == ["owner", "set"] and values["path"] and holder:
        return OtherForm("the owner stands without a flag", ("set", values["path"], "--owner", holder))
    if lowered in (["role", "grant"], ["role", "revoke"]) and role and values["privilege"]:
        way = "--to" if lowered[1] == "grant" else "--from"
        privileges = values["privilege"].replace(",", " ").lower().split()
        line = (lowered[1], *privileges, "--on", values["path"] or "PATH", way, role)
        return OtherForm("privileges are granted to a role", line)
    return None


def _followed_log(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `logs -f RUN`, as kubectl and docker have it."""
    if tokens[0].lower() not in {"log", "logs"} or not {"-f", "--follow"} & {*tokens}:
        return None
    rest = [token for token in tokens if token not in {"-f", "--follow"}]
    return OtherForm("a log is not followed", tuple(rest))


def _with_star(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `list tables main.raw.*`: a list has all that is below a path. `show` and deletions are of
    one object.
    """
    words, _ = take_words(tokens)
    if words[:1] not in (["list"], ["ls"], ["tree"]) or not words[-1].endswith(".*") or words[-1].count("*") > 1:
        return None
    plain = tuple(token.removesuffix(".*") if token == words[-1] else token for token in tokens)
    return OtherForm(f"a path has no '*': a list has all that is below '{words[-1].removesuffix('.*')}'", plain)


def _numbered_form(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `head -5 PATH`, as shells have it: the number as the value of a flag of any list."""
    words, _ = take_words(tokens)
    at = 0
    while at < len(tokens) and tokens[at] != "--":
        match = _NUMBER.fullmatch(tokens[at])
        if match is not None and words:
            rest = (*tokens[:at], *tokens[at + 1 :])
            if tokens[at] == "-1" and words[0].lower() in _LISTS:
                return OtherForm("a list has one object a line", rest)
            limit = () if words[0].lower() in _WHOLE else ("--max-items", match[1])
            return OtherForm(f"a number follows a flag, and '{tokens[at]}' is none", (*rest, *limit))
        at += token_width(tokens, at)
    return None


def _command_as_flag(tokens: Sequence[str]) -> OtherForm | None:
    """Return the line for `tag --list` or `tag -d NAME`, as git has it: the command of a group without hyphens."""
    group = tokens[0].lower()
    if group not in GROUPS or len(tokens) == 1:
        return None
    word = _LETTERS.get(tokens[1], tokens[1].removeprefix("--").lower())
    kind = KIND_WORDS.get(group, "")
    if tokens[1] == word or (word not in GROUPS[group] and (word, kind) not in BY_VERB_AND_KIND):
        return None
    usual = plural(kind) if word == "list" else kind
    typed = (word, usual) if (word, kind) in BY_VERB_AND_KIND else (group, word)
    return OtherForm(f"'{tokens[1]}' is a word here, without hyphens", (*typed, *tokens[2:]))
