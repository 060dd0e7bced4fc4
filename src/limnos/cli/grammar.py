# SPDX-License-Identifier: Apache-2.0
"""The grammar of the command line: what a user typed, as the command that performs it.

Runs no command and imports no parser, so that a slip is answered at once. `limnos VERB KIND PATH` and `limnos GROUP
COMMAND` are one grammar: flags stand anywhere, either order of verb and kind is taken, and other spellings of verbs
stay valid. A word that is no command raises UsageError with the command to type.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from typing import Final

from limnos.cli.errors import UsageError
from limnos.cli.flags import SWITCHES, VALUED
from limnos.cli.guesses import FILLERS, OTHER_VERBS, command_for, guess_table, guessed_words, own_words, without_sql
from limnos.cli.operations import (
    BY_VERB_AND_KIND,
    COMMANDS,
    GROUP_ALIASES,
    GROUPS,
    KIND_WORDS,
    OPERATIONS,
    VERB_ALIASES,
    VERBS,
    Operation,
    absence_of,
    plural,
)
from limnos.cli.proposals import proposed
from limnos.cli.sentences import proposal_for
from limnos.cli.sql_grants import SQL_PRIVILEGES, grant_for
from limnos.cli.token_words import take_words, token_width, with_flags
from limnos.manifests.switches import VARIABLE
from limnos.model.privileges import Privilege

HELP: Final = ("--help", "-h")
_ALONE: Final = frozenset({"audit", "create"})
"""Groups that are commands themselves, or whose first word may be a kind of another group."""
_SQL_WORDS: Final = ("on", "to", "from")
_PRIVILEGE_WORDS: Final = frozenset(each.word for each in Privilege)
_SAME_COMMANDS: Final = (
    {"create", "add", "new", "make", "register", "set"},
    {"delete", "remove", "rm", "drop", "del", "revoke", "end", "destroy"},
    {"list", "ls", "all", "runs"},
    {"show", "describe", "get", "info", "view", "desc", "explain", "status"},
    {"run", "start", "exec", "execute", "now"},
    {"cancel", "stop", "kill", "abort"},
    {"grant", "approve", "accept", "confirm"},
    {"decline", "reject", "refuse"},
    {"check", "test", "verify", "validate"},
)
"""Words for the same command in different groups."""
_FIRST_COMMANDS: Final = {
    "lineage": "up",
    "maintenance": "explain",
    "owner": "show",
    "request": "access",
    "table": "check",
    "restriction": "show",
    "lance": "list",
    "user": "describe",
    "role": "describe",
    "group": "describe",
    "tag": "describe",
    "policy": "describe",
    "pipeline": "check",
    "storage": "check",
    "trash": "list",
    "job": "show",
    "task": "show",
    "access": "holders",
    "profile": "use",
    "names": "check",
}
"""The command of a group that is meant when its name is followed by an argument."""
_ELSEWHERE: Final = {
    "trash restore": "undrop",
    "trash undrop": "undrop",
    "trash undelete": "undrop",
    "pipeline logs": "show run",
    "pipeline log": "show run",
    "pipeline history": "list runs",
    "table repair": "table mend",
    "table fix": "table mend",
    "table details": "show table",
    "owner change": "set owner",
    "profile add": "login",
    "profile create": "login",
    "role members": "show role",
    "role assignment": "grant role",
}
"""Commands that users look for in a group, and where they are."""
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z_-]*")


def resolve(tokens: Sequence[str]) -> list[str]:
    """Return the command line that performs what was typed. Raises UsageError if no command does."""
    typed = _split_quoted(tokens)
    if typed[:1] == ["limnos"]:
        raise UsageError("'limnos' is there twice", hint=f"'{shlex.join(typed)}'")
    if not typed or typed[0] == "--version":
        return typed
    if (plain := without_sql(typed)) is not None:
        raise UsageError("'if exists', 'if not exists' and 'or replace' are of SQL", hint=propose(plain))
    if any(token in HELP for token in _before_dashes(typed)) or typed[0] == "help":
        rest = [token for token in typed[typed[0] == "help" :] if token not in HELP]
        return [*_command(rest, is_help=True), "--help"]
    check_sentence(typed)
    return _command(typed, is_help=False)


def check_sentence(tokens: Sequence[str]) -> None:
    """Raise UsageError for a whole line of another tool's habit, with the command to type."""
    words, flags = take_words(tokens)
    proposal = proposal_for(words) or grant_for(words)
    command = None if proposal is None else with_flags(proposal.command, flags)
    if proposal is not None and command is not None:
        hint = propose(command)
        first = words[0].lower()
        is_alone = first in COMMANDS and first not in {*VERBS, *GROUPS}
        name = words[0] if is_alone else " ".join(words[:2])
        is_known = is_alone or (first, KIND_WORDS.get("".join(words[1:2]).lower())) in BY_VERB_AND_KIND
        plain = f"'limnos {name}' is typed otherwise" if is_known else f"there is no command '{name}'"
        raise UsageError(proposal.note or plain, hint=f"{hint}{proposal.more}")


def _split_quoted(tokens: Sequence[str]) -> list[str]:
    """Split a first argument such as "show tables", which was typed in quotes."""
    first, *rest = tokens or [""]
    words = first.split() if not first.startswith("-") else [first]
    return [*words, *rest] if first else list(rest)


def _before_dashes(tokens: Sequence[str]) -> Sequence[str]:
    return tokens[: tokens.index("--")] if "--" in tokens else tokens


def _command(tokens: Sequence[str], *, is_help: bool) -> list[str]:
    """Return the command's words, then everything else as typed."""
    words, rest = take_words(tokens)
    bare = tokens[0].lstrip("-") if tokens and tokens[0] not in {*VALUED, *SWITCHES} else ""
    is_known = bare in COMMANDS or bare in VERB_ALIASES or bare in guess_table()
    if is_known and tokens[0].startswith("-") and not is_help:
        raise UsageError(f"a command has no hyphen before it: '{tokens[0]}'", hint=propose([bare, *tokens[1:]]))
    if not words:
        if is_help:
            return []
        if tokens[0].partition("=")[0] not in {*VALUED, "--wide"}:
            near = _nearest(tokens[0].lower(), ("--version", "--help")) or "--version" * (tokens[0] in {"-V", "-v"})
            raise UsageError(f"there is no flag {tokens[0]} without a command", hint=f"'limnos {near or '--help'}'")
        complete = tokens if len(tokens) > 1 or "=" in tokens[0] else []
        first = ["sql"] if tokens[0].partition("=")[0] in {"-c", "-f", "--command", "--file"} else ["list"]
        hint = propose([*first, *complete])
        hint += ", or 'limnos --help' for all commands" if first == ["list"] else ""
        raise UsageError("the command is missing: there are only options", hint=hint)
    lowered = [word.lower() if _PLAIN.fullmatch(word) else word for word in words]
    lowered[0] = VERB_ALIASES.get(lowered[0], lowered[0])
    if not is_help and (verb := _other_verb(lowered)) is not None:
        kind = KIND_WORDS[lowered[0]] if len(words) > 2 or verb == "show" else lowered[0]
        raise UsageError(f"there is no command '{' '.join(words[:2])}'", hint=propose([verb, kind, *words[2:], *rest]))
    if lowered[0] not in COMMANDS or len(lowered) > 1:
        _check_absence(lowered)
    if not is_help:
        _check_phrase(lowered, words, flags=rest)
    known = _operation_words(lowered, words, flags=rest) or _group_words(lowered, () if is_help else rest)
    if known is not None:
        command, count = known
        return [*command, *_without(tokens, words[:count])]
    if lowered[0] == "import":
        return ["import", *_with_new_name(_without(tokens, words[:1]))]
    if lowered[0] in COMMANDS:
        if len(words) == 1 and not rest and lowered[0] in GROUPS and not is_help:
            return [lowered[0], "--help"]
        if lowered[0] in GROUPS and not is_help and lowered[0] not in _ALONE:
            raise _unknown_in_group(lowered, words, flags=rest)
        if lowered[0] == "create" and not is_help:
            raise _unknown_kind("create", lowered, words=words, flags=rest)
        if lowered[0] in {"grant", "revoke"} and any(word in _SQL_WORDS for word in lowered[1:]):
            raise _sql_grant(lowered[0], words[1:], flags=rest)
        return [lowered[0], *_without(tokens, words[:1])]
    raise unknown_command(words, rest)


def _other_verb(lowered: Sequence[str]) -> str | None:
    """Return our verb for `KIND VERB` with a verb of another tool, such as `catalogs get main`; None for others."""
    if len(lowered) < 2 or lowered[0] not in KIND_WORDS or lowered[1] in {*VERBS, *VERB_ALIASES}:
        return None
    if " ".join(lowered[:2]) in guess_table():
        return None
    group = lowered[0] if lowered[0] in GROUPS else lowered[0].removesuffix("s")
    if lowered[1] in (*GROUPS.get(group, ()), *_aliases_of(group)):
        return None
    verb = OTHER_VERBS.get(lowered[1])
    return verb if (verb, KIND_WORDS[lowered[0]]) in BY_VERB_AND_KIND else None


def _check_absence(lowered: Sequence[str]) -> None:
    """Raise UsageError for a command of a room that is switched off."""
    if reason := absence_of(lowered):
        raise UsageError(reason, hint=f"leave it out of the environment variable {VARIABLE}")


def _with_new_name(tokens: Sequence[str]) -> list[str]:
    """Return the arguments of `import`, in which `--as` without `--into` is the former spelling of `--into`."""
    names = [token.partition("=")[0] for token in tokens]
    if "--into" in names:
        return list(tokens)
    return ["--into" + token[4:] if name == "--as" else token for name, token in zip(names, tokens, strict=True)]


def _check_phrase(lowered: Sequence[str], words: Sequence[str], *, flags: Sequence[str]) -> None:
    """Raise UsageError if a verb is followed by a word that is no kind, and by more than it takes."""
    verb, most = lowered[0], 3 if lowered[0] == "rename" else 2
    if verb not in VERBS or verb == "create" or len(lowered) < 2:
        return
    if lowered[1] in KIND_WORDS and (verb, KIND_WORDS[lowered[1]]) in BY_VERB_AND_KIND:
        return
    for first in (words[0].lower(), verb):
        if (guess := command_for([first, *words[1:]], least=2)) is not None:
            raise guess_error(" ".join(words[:2]), guess, flags=flags)
    if len(words) > most:
        kinds = [word for each in OPERATIONS if each.verb == verb for word in (each.kind, plural(each.kind))]
        near = _nearest(lowered[1], kinds)
        if near is not None:
            raise UsageError(
                f"'limnos {verb}' knows no '{words[1]}'",
                hint=propose([verb, near, *words[2:], *flags]),
            )


def _without(tokens: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the tokens without the first occurrences of the words of the command, which are no values of flags."""
    left, at = list(words), 0
    result: list[str] = []
    while at < len(tokens):
        token = tokens[at]
        if left and token == left[0]:
            left.pop(0)
        else:
            result += tokens[at : at + token_width(tokens, at)]
            at += token_width(tokens, at) - 1
        at += 1
    return result


def _operation_words(
    lowered: Sequence[str], words: Sequence[str], *, flags: Sequence[str]
) -> tuple[list[str], int] | None:
    """Return the command of `VERB KIND` or `KIND VERB` and the number of typed words; None if it is no operation."""
    if len(lowered) < 2:
        return None
    verb, kind = lowered[0], KIND_WORDS.get(lowered[1])
    if verb not in VERBS:
        verb, kind = VERB_ALIASES.get(lowered[1], lowered[1]), KIND_WORDS.get(lowered[0])
        if (
            verb not in VERBS
            or lowered[1] in GROUPS.get(lowered[0], ())
            or f"{lowered[0]} {lowered[1]}" in GROUP_ALIASES
        ):
            return None
    names_kind = any(flag.partition("=")[0] == "--kind" for flag in flags)
    if kind is None or (names_kind and len(words) <= (3 if verb == "rename" else 2)):
        return None
    is_plural = lowered[1] != kind and lowered[1].endswith("s")
    if verb == "show" and is_plural and ("list", kind) in BY_VERB_AND_KIND and kind != "restriction":
        arguments = [word for word in words[2:] if word.lower() not in FILLERS]
        takes_none = not BY_VERB_AND_KIND["list", kind].arguments
        if takes_none and len(arguments) == 1 and ("show", kind) in BY_VERB_AND_KIND:
            raise guess_error("show " + words[1], (["show", kind, *arguments], ""), flags=flags)
        raise guess_error(
            "show " + words[1], (["list", lowered[1], *arguments], "'show' is for one object"), flags=flags
        )
    operation = BY_VERB_AND_KIND.get((verb, kind))
    if operation is None:
        raise _unknown_kind(verb, [verb, kind], words=words, flags=flags)
    required = [each for each in operation.arguments.split() if not each.startswith("[")]
    if verb != "create" and required and len(words) == 2:
        raise UsageError(
            f"{' and '.join(required)} {'are' if len(required) > 1 else 'is'} missing after '{words[0]} {words[1]}'",
            hint=f"'{spelled(operation)}'",
        )
    return operation.command.split(), 2


def spelled(operation: Operation) -> str:
    """Return how an operation is typed, with its arguments."""
    kind = plural(operation.kind) if operation.verb == "list" else operation.kind
    return f"limnos {operation.verb} {kind} {operation.arguments}".strip()


def typed_as(command: str) -> str:
    """Return the words by which a command is best typed: verb and kind where an operation performs it."""
    known = {each.command: each for each in OPERATIONS}
    if command not in known or " " not in command:
        return command
    return spelled(known[command]).removeprefix("limnos ").removesuffix(known[command].arguments).strip()


def _group_words(lowered: Sequence[str], flags: Sequence[str]) -> tuple[list[str], int] | None:
    """Return the command of `GROUP COMMAND` or `COMMAND GROUP` and the number of typed words; None if it is none.

    `list lance` and `show lance` are no commands of a group: they are about the catalog of that name.
    """
    is_path = len(lowered) == 2 and (lowered[0] == "list" or lowered == ["show", "lance"])
    is_path = is_path or any(flag.partition("=")[0] == "--kind" for flag in flags)
    for pair in (lowered[:2], *([] if is_path else [lowered[1::-1]])):
        if len(pair) == 2:
            singular = pair[0].removesuffix("s")
            typed = f"{singular if singular in GROUPS else pair[0]} {pair[1]}"
            group, command = GROUP_ALIASES.get(typed, typed).split(" ", 1)
            if command in GROUPS.get(group, ()):
                return _secret_words(lowered, flags) if command == "secret" else ([group, command], 2)
    return None


def _secret_words(lowered: Sequence[str], flags: Sequence[str]) -> tuple[list[str], int]:
    if len(lowered) < 3 and flags:
        raise _unknown_in_group(["user secret"], ["user secret"], flags=flags)
    if len(lowered) < 3:
        return ["user", "secret"], 2
    command = GROUP_ALIASES.get(f"user secret {lowered[2]}", f"user secret {lowered[2]}").split()
    if command[2] not in GROUPS["user secret"]:
        raise _unknown_in_group(["user secret", lowered[2]], ["user secret", lowered[2]], flags=[])
    return command, 3


def _unknown_in_group(lowered: Sequence[str], words: Sequence[str], *, flags: Sequence[str]) -> UsageError:
    """Return the error for a group without a command, or with a word that is none of its commands."""
    group, commands = lowered[0], GROUPS[lowered[0]]
    known = ", ".join(commands)
    if len(lowered) == 1:
        typed = propose([*group.split(), commands[0], *flags])
        return UsageError(f"options come after a command of 'limnos {group}': {known}", hint=typed)
    if (guess := command_for([*group.split(), *words[1:]], least=2)) is not None:
        return guess_error(f"{group} {words[1]}", guess, flags=flags)
    near = _same_command(lowered[1], commands) or _nearest(lowered[1], [*commands, *_aliases_of(group)])
    if near is None and group in ("tag", "policy") and "." in words[1] and len(words) > 2:
        typed = propose(["set", group, words[2], words[1], *flags])
        return UsageError(f"the command is missing between '{group}' and '{words[1]}'", hint=typed)
    if near is None and (verb := _ELSEWHERE.get(f"{group} {lowered[1]}")) is not None:
        return UsageError(
            f"'limnos {group}' has no command '{words[1]}'", hint=propose([*verb.split(), *words[2:], *flags])
        )
    is_name = len(words) == 2 or "." in words[1] or "`" in words[1]
    if near is None and group in _FIRST_COMMANDS and is_name:
        named = typed_as(f"{group} {_FIRST_COMMANDS[group]}").split()
        typed = propose([*named, words[1], *flags])
        return UsageError(
            f"the command is missing between '{group}' and '{words[1]}'", hint=f"{typed}, or another command: {known}"
        )
    if near is None:
        hint = f"'limnos {group} --help' explains them"
        return UsageError(f"'limnos {group}' has no command '{words[1]}'; it has {known}", hint=hint)
    typed = propose([*typed_as(f"{group} {near}").split(), *words[2:], *flags])
    return UsageError(f"'limnos {group}' has no command '{words[1]}'", hint=typed)


def _aliases_of(group: str) -> list[str]:
    return [alias.removeprefix(f"{group} ") for alias in GROUP_ALIASES if alias.rpartition(" ")[0] == group]


def _same_command(word: str, commands: Sequence[str]) -> str | None:
    """Return the command of a group that means the same as a word."""
    for same in _SAME_COMMANDS:
        if word in same:
            return next((command for command in commands if command in same), None)
    return None


def propose(tokens: Sequence[str]) -> str:
    """Return a command line as an answer proposes it, in quotes and corrected (see `proposals`)."""
    return proposed(tokens, resolve=resolve)


def _unknown_kind(verb: str, lowered: Sequence[str], *, words: Sequence[str], flags: Sequence[str]) -> UsageError:
    """Return the error for a verb with a kind that it does not take, or with none."""
    kinds = [each.kind for each in OPERATIONS if each.verb == verb]
    if len(lowered) < 2:
        return UsageError(
            f"'limnos {verb}' needs a kind: {', '.join(kinds)}", hint=f"'limnos {verb} --help' explains them"
        )
    guess = command_for([verb, *words[1:]]) or command_for([verb, words[1].removesuffix("s"), *words[2:]])
    if guess is not None:
        return guess_error(f"{verb} {words[1]}", guess, flags=flags)
    if (error := _of_another_verb(verb, lowered, words=words, flags=flags)) is not None:
        return error
    near = _nearest(lowered[1], kinds)
    if near is not None and near != lowered[1]:
        typed = propose([verb, near, *words[2:], *flags])
        return UsageError(f"'limnos {verb}' knows no '{words[1]}'", hint=typed)
    if verb == "create" and "." in words[1]:
        typed = propose(["create", "namespace", *words[1:], *flags])
        return UsageError(
            "the kind is missing: engines create tables, this command the rest",
            hint=f"{typed}, or another kind: {', '.join(kinds)}",
        )
    return UsageError(
        f"'limnos {verb}' does not take '{words[1]}'; it takes {', '.join(kinds)}",
        hint=f"'limnos {verb} --help' explains them",
    )


def _of_another_verb(
    verb: str, lowered: Sequence[str], *, words: Sequence[str], flags: Sequence[str]
) -> UsageError | None:
    """Return the error for a kind that other verbs take, with the command to type and how an object of this name is
    typed; None for other words.
    """
    kind = KIND_WORDS.get(lowered[1])
    others = [each for each in OPERATIONS if each.kind == kind and each.verb != verb]
    if kind is None or not others:
        return None
    best = next((each for each in others if each.verb in _NEAR_VERBS.get(verb, ())), others[0])
    typed = words[1] if KIND_WORDS.get(words[1].lower()) == kind else words[0]
    usual = plural(kind) if best.verb == "list" else kind
    hint = propose([*_SAID_OTHERWISE.get(f"{verb} {kind}", f"{best.verb} {usual}").split(), *words[2:], *flags])
    if verb in {"list", "show", "set", "rename", "delete"}:
        hint += f"; a catalog of this name: {propose([verb, '--kind', 'catalog', typed])}"
    return UsageError(f"'limnos {verb}' does not take '{typed}'", hint=hint)


_NEAR_VERBS: Final = {"list": ("show",), "show": ("list",), "create": ("set",), "set": ("create",), "delete": ("set",)}
_SAID_OTHERWISE: Final = {
    "list maintenance": "list operations",
    "list lineage": "show lineage",
    "set run": "pipeline resume",
}
"""For a verb with a kind that it does not take, the command that does what is meant."""


def _sql_grant(verb: str, words: Sequence[str], *, flags: Sequence[str]) -> UsageError:
    """Return the error for words of SQL that `grant_for` does not know as a whole grant, with the options that the
    command has instead.
    """
    spoken = [word.rstrip(",") for word in words if word.lower() not in {"privileges", "privilege"}]
    at = next((at for at, word in enumerate(spoken) if word.lower() in _SQL_WORDS), len(spoken))
    granted, places = [word.lower() for word in spoken[:at]], _places(spoken[at:])
    holder = next((f"--{word} {places[word]}" for word in ("to", "from") if word in places), "")
    path = places.get("on", "PATH")
    privileges = [SQL_PRIVILEGES.get(word, word) for word in granted]
    note = f"'{verb}' takes options where SQL has words: --on, --to, --from"
    name = places.get("to", places.get("from", "NAME"))
    if granted == ["all"]:
        preset = ["--preset", "admin", path, f"--{'from' if verb == 'revoke' else 'to'}", f"user:{name}"]
        return UsageError(
            "all that an administrator of an object needs is a preset", hint=propose([verb, *preset, *flags])
        )
    if "on" not in places and "--on" not in flags and granted[:1] != ["role"]:
        is_known = all(word in _PRIVILEGE_WORDS or word in SQL_PRIVILEGES for word in granted)
        turned = [*privileges, "--on", "PATH"] if is_known else ["role", *spoken[:at]]
        return UsageError(note, hint=propose([verb, *turned, *holder.split(), *flags]))
    turned = [*(spoken[:at] if granted[:1] == ["role"] else privileges), *(["--on", path] if "on" in places else [])]
    return UsageError(note, hint=propose([verb, *turned, *holder.split(), *flags]))


def _places(words: Sequence[str]) -> dict[str, str]:
    """Return the word after `on`, `to` and `from`, past a word for its kind."""
    result: dict[str, str] = {}
    place = ""
    for word in words:
        if word.lower() in _SQL_WORDS:
            place = word.lower()
        elif place and (place not in result or result[place].lower() in KIND_WORDS):
            result[place] = word
    return result


def unknown_command(words: Sequence[str], flags: Sequence[str] = ()) -> UsageError:
    """Return the error for words that are no command, with the command to type."""
    if [each.lower() for each in (words[0], *words[2:3])] == ["add", "to"] and len(words) > 3:
        typed = propose(["group", "add", words[3], words[1], *flags])
        return UsageError(f"'add {words[1]} to' does not say to what", hint=f"{typed}, if {words[3]} is a group")
    if (meant := own_words([*words, *flags])) is not None:
        return UsageError(f"there is no command '{words[0]}'", hint=propose(meant))
    guess = command_for(words)
    if guess is not None:
        return guess_error(words[0], guess, flags=flags)
    near = _nearest(words[0].lower(), [*COMMANDS, *VERB_ALIASES, "help"])
    if near is not None:
        return UsageError(f"there is no command '{words[0]}'", hint=propose([near, *words[1:], *flags]))
    near = _nearest(words[0].lower(), guessed_words(), cutoff=0.86)
    if near is not None and (guess := command_for([near, *words[1:]])) is not None:
        return guess_error(words[0], guess, flags=flags)
    if "." in words[0] or "`" in words[0]:
        hint = f"{propose(['show', *words, *flags])} shows it"
        return UsageError(f"the verb is missing before '{words[0]}'", hint=hint)
    return UsageError(
        f"there is no command '{words[0]}'",
        hint=f"'limnos --help' lists all; '{shlex.join(['limnos', 'find', *words])}' searches the objects of the lake",
    )


def guess_error(typed: str, guess: tuple[list[str], str], *, flags: Sequence[str]) -> UsageError:
    """Return the error for words that the table of guesses has; `guess` is what `command_for` returned."""
    command, note = guess
    message = note or f"there is no command '{typed}'"
    return UsageError(
        message,
        hint=propose([*command, *flags]) if command else "'limnos --help' lists all commands",
    )


def close_words(word: str, known: Sequence[str], *, cutoff: float) -> list[str]:
    """Return the known words that a misspelt one may be, the nearest first: they begin with the same letter, since
    words that differ in it, such as `mask` and `task`, are different words.
    """
    start = word.lstrip("-")[:1]
    same = [each for each in known if each.lstrip("-")[:1] == start]
    return difflib.get_close_matches(word, same, n=3, cutoff=cutoff)


def _nearest(word: str, known: Sequence[str], *, cutoff: float = 0.72) -> str | None:
    close = close_words(word, known, cutoff=cutoff)
    if close:
        return close[0]
    longer = [each for each in known if len(word) > 4 and each.startswith(word)]
    return longer[0] if len(longer) == 1 else None
