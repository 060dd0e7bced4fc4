# SPDX-License-Identifier: Apache-2.0
"""What a user typed, as the command that performs it.

`limnos VERB KIND PATH` and `limnos GROUP COMMAND` are one grammar: flags stand anywhere, either order of verb and kind
is taken, and other spellings of verbs stay valid. A word that is no command raises UsageError with the command to type
(see `wrong_words`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from limnos.cli.errors import UsageError
from limnos.cli.flags import SWITCHES, VALUED
from limnos.cli.grammar.listed_grants import single_grants
from limnos.cli.grammar.other_forms import other_form
from limnos.cli.grammar.spelling import aliases_of, nearest, spell_operation
from limnos.cli.grammar.wrong_words import SQL_WORDS, WrongWords
from limnos.cli.guesses import FILLERS, OTHER_VERBS, command_for, guess_table, without_sql
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
from limnos.cli.output import flag_values
from limnos.cli.sentences import proposal_for
from limnos.cli.sql_grants import grant_for
from limnos.cli.token_words import take_words, token_width, with_flags, without_flag
from limnos.manifests.switches import VARIABLE

HELP: Final = ("--help", "-h")
_HELP_WORDS: Final = frozenset({"help", "man"})
_ALONE: Final = frozenset({"audit", "create"})
"""Groups that are commands themselves, or whose first word may be a kind of another group."""
_SPOKEN: Final = ("--on", "--to", "--from", "--for", "--to-snapshot", "--to-version")
"""Flags that a line of another tool has as words, in the order of such a line."""
CATALOG_NAMES: Final = frozenset({"model", "view", "fileset", "topic", "function", "pipeline", "dashboard"})
"""Kinds whose plural is a likely name of a catalog."""
_PATH: Final = re.compile(r"\w+(?:\.\w+)+")
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z_-]*")


def resolve(tokens: Sequence[str]) -> list[str]:
    """Return the command line that performs what was typed. Raises UsageError if no command does."""
    words = _split_quoted(tokens)
    if words[:1] == ["limnos"]:
        raise UsageError("'limnos' is there twice", hint=f"'{shlex.join(words)}'")
    if not words or words[0] == "--version":
        return words
    if (plain := without_sql(words)) is not None:
        raise UsageError("'if exists', 'if not exists' and 'or replace' are of SQL", hint=answers.propose(plain))
    if (other := other_form(words)) is not None:
        raise UsageError(other.message, hint=answers.propose(other.tokens))
    if any(token in HELP for token in _before_dashes(words)) or words[0] in _HELP_WORDS:
        rest = [token for token in words[words[0] in _HELP_WORDS :] if token not in HELP]
        return [*_command(rest, is_help=True), "--help"]
    _check_blanks(words)
    if (grants := single_grants(words)) is not None:
        raise UsageError(
            f"'{words[0]}' takes one object and one holder, and names of roles without commas",
            hint=_each_of(grants),
        )
    check_sentence(words)
    return _command(words, is_help=False)


def _each_of(commands: Sequence[Sequence[str]]) -> str:
    """Return the proposals for several commands; after a long one the words in which the others differ."""
    first, *others = dict.fromkeys(answers.propose(each) for each in commands)
    if "'; " not in first and "', " not in first:
        return ", then ".join([first, *others])
    differ = [word for each in commands[1:] for word in each if word not in commands[0]]
    return f"{first}; then the same for {', '.join(dict.fromkeys(differ))}" if differ else first


def _check_blanks(tokens: Sequence[str]) -> None:
    """Raise UsageError for a path with white space at an end, which no name of an object has."""
    words, _ = take_words(tokens)
    for word in words:
        if word != word.strip() and _PATH.fullmatch(word.strip()) is not None:
            again = [token.strip() if token == word else token for token in tokens]
            raise UsageError(f"'{word}' has a blank before or after the path", hint=answers.propose(again))


def check_sentence(tokens: Sequence[str]) -> None:
    """Raise UsageError for a whole line of another tool's habit, with the command to type."""
    words, flags = take_words(tokens)
    if any(not body.startswith("-") for body in flag_values(flags, "--json")):
        flags = without_flag(flags, "--json")  # the body of another tool's request
    if any(not uri.startswith("http") for uri in flag_values(flags, "--uri")):
        flags = without_flag(flags, "--uri")  # the URI of a model's version or of a table, not of a server
    if not _is_command(words) and (spoken := _with_spoken_flags(words, flags)) is not None:
        line, rest = spoken
        if proposal_for(line) or grant_for(line):
            words, flags = line, rest
    proposal = proposal_for(words) or grant_for(words)
    command = None if proposal is None else with_flags(proposal.command, flags)
    if proposal is not None and command is not None:
        hint = answers.propose(command)
        first = words[0].lower()
        is_alone = first in COMMANDS and first not in {*VERBS, *GROUPS}
        name = words[0] if is_alone else " ".join(words[:2])
        is_known = is_alone or (first, KIND_WORDS.get("".join(words[1:2]).lower())) in BY_VERB_AND_KIND
        plain = f"'limnos {name}' is typed otherwise" if is_known else f"there is no command '{name}'"
        raise UsageError(proposal.note or plain, hint=f"{hint}{proposal.more}")


def _is_command(words: Sequence[str]) -> bool:
    """Return whether words begin with a command, or with a verb and a kind that it takes."""
    first = words[0].lower() if words else ""
    if first in VERBS:
        return len(words) == 1 or (first, KIND_WORDS.get(words[1].lower())) in BY_VERB_AND_KIND
    return first in COMMANDS


def _with_spoken_flags(words: Sequence[str], flags: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return a line in which flags such as `--to ana` are words, and the other flags; None if it has no such flag."""
    spoken = {flag: value for flag in _SPOKEN for value in flag_values(flags, flag)}
    if not spoken:
        return None
    line = [*words, *(word for flag, value in spoken.items() for word in (flag[2:], value))]
    for flag in spoken:
        flags = without_flag(flags, flag)
    return line, list(flags)


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
        raise UsageError(f"a command has no hyphen before it: '{tokens[0]}'", hint=answers.propose([bare, *tokens[1:]]))
    if not words:
        if is_help:
            return []
        if tokens[0].partition("=")[0] not in {*VALUED, "--wide"}:
            near = nearest(tokens[0].lower(), ("--version", "--help")) or "--version" * (tokens[0] in {"-V", "-v"})
            raise UsageError(f"there is no flag {tokens[0]} without a command", hint=f"'limnos {near or '--help'}'")
        complete = tokens if len(tokens) > 1 or "=" in tokens[0] else []
        first = ["sql"] if tokens[0].partition("=")[0] in {"-c", "-f", "--command", "--file"} else ["list"]
        hint = answers.propose([*first, *complete])
        hint += ", or 'limnos --help' for all commands" if first == ["list"] else ""
        raise UsageError("the command is missing: there are only options", hint=hint)
    lowered = [word.lower() if _PLAIN.fullmatch(word) else word for word in words]
    lowered[0] = VERB_ALIASES.get(lowered[0], lowered[0])
    if not is_help and (verb := _other_verb(lowered)) is not None:
        kind = KIND_WORDS[lowered[0]] if len(words) > 2 or verb == "show" else lowered[0]
        raise UsageError(
            f"there is no command '{' '.join(words[:2])}'", hint=answers.propose([verb, kind, *words[2:], *rest])
        )
    if lowered[0] not in COMMANDS or len(lowered) > 1:
        _check_absence(lowered)
    if not is_help:
        _check_phrase(lowered, words, flags=rest)
    known = _operation_words(lowered, words, flags=rest, is_help=is_help) or _group_words(
        lowered, () if is_help else rest
    )
    if known is not None:
        command, count = known
        return [*command, *_without(tokens, words[:count])]
    if lowered[0] == "import":
        return ["import", *_with_new_name(_without(tokens, words[:1]))]
    if lowered[0] in COMMANDS:
        if len(words) == 1 and not rest and lowered[0] in GROUPS and not is_help:
            return [lowered[0], "--help"]
        if lowered[0] in GROUPS and not is_help and lowered[0] not in _ALONE:
            raise answers.unknown_in_group(lowered, words, flags=rest)
        if lowered[0] == "create" and not is_help:
            raise answers.unknown_kind("create", lowered, words=words, flags=rest)
        if lowered[0] in {"grant", "revoke"} and any(word in SQL_WORDS for word in lowered[1:]):
            raise answers.sql_grant(lowered[0], words[1:], flags=rest)
        return [lowered[0], *_without(tokens, words[:1])]
    raise answers.unknown_command(words, rest)


def _other_verb(lowered: Sequence[str]) -> str | None:
    """Return our verb for `KIND VERB` with a verb of another tool, such as `catalogs get main`; None for others."""
    if len(lowered) < 2 or lowered[0] not in KIND_WORDS or lowered[1] in {*VERBS, *VERB_ALIASES}:
        return None
    if " ".join(lowered[:2]) in guess_table():
        return None
    group = lowered[0] if lowered[0] in GROUPS else lowered[0].removesuffix("s")
    if lowered[1] in (*GROUPS.get(group, ()), *aliases_of(group)):
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
            raise answers.guess_error(" ".join(words[:2]), guess, flags=flags)
    if len(words) > most:
        kinds = [word for each in OPERATIONS if each.verb == verb for word in (each.kind, plural(each.kind))]
        near = nearest(lowered[1], kinds)
        if near is not None:
            raise UsageError(
                f"'limnos {verb}' knows no '{words[1]}'",
                hint=answers.propose([verb, near, *words[2:], *flags]),
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
    lowered: Sequence[str], words: Sequence[str], *, flags: Sequence[str], is_help: bool
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
            raise answers.guess_error("show " + words[1], (["show", kind, *arguments], ""), flags=flags)
        reason = "'show' is for one object"
        if not arguments and kind in CATALOG_NAMES:
            reason += f" (a catalog of that name: 'limnos show {words[1]} --kind catalog')"
        raise answers.guess_error("show " + words[1], (["list", lowered[1], *arguments], reason), flags=flags)
    operation = BY_VERB_AND_KIND.get((verb, kind))
    if operation is None:
        raise answers.unknown_kind(verb, [verb, kind], words=words, flags=flags)
    required = [each for each in operation.arguments.split() if not each.startswith("[")]
    if verb != "create" and required and len(words) == 2 and not is_help:
        hint = _with_named_values(operation, flags)
        if is_plural and kind in CATALOG_NAMES and verb in {"set", "delete", "show"}:
            hint += f", or of a catalog of that name {answers.propose([verb, f'`{words[1]}`', *flags])}"
        is_of_restrictions = kind == "restriction" and verb in {"list", "show"}
        raise UsageError(
            f"{' and '.join(required)} {'are' if len(required) > 1 else 'is'} missing after '{words[0]} {words[1]}'"
            f"{_RESTRICTED_TABLES if is_of_restrictions else ''}",
            hint=hint,
        )
    return operation.command.split(), 2


_RESTRICTED_TABLES: Final = (
    "; 'limnos ask \"select distinct path from effective_access where restricted\"' lists the tables that users read"
    " with one"
)


def _with_named_values(operation: Operation, flags: Sequence[str]) -> str:
    """Return how an operation is typed, with the values of flags that have the names of its arguments, as `--id 7`."""
    spelling = spell_operation(operation).split()
    others: list[str] = []
    for at, flag in enumerate(flags):
        if flag in _SET_FLAGS and operation.verb in {"set", "create"}:
            others += flags[at : at + 2]
    for at, argument in enumerate(spelling):
        value = _value_for(argument, operation, flags=flags) if argument.isupper() else ""
        spelling[at] = shlex.quote(value) if value else argument
    return f"'{' '.join([*spelling, *map(shlex.quote, others)])}'"


_SET_FLAGS: Final = frozenset({"--comment", "--property", "--owner"})
"""Flags of `set`, which its answers repeat."""


def _value_for(argument: str, operation: Operation, *, flags: Sequence[str]) -> str:
    """Return the value that a flag of another tool has for an argument: its own name, the kind's, or `--name`, below
    the namespace of another flag; empty without one.
    """
    kind_flags = [f"--{operation.kind}", f"--{operation.kind}-name"] if operation.arguments.startswith(argument) else []
    flag_values_found = [
        (flag, value) for flag in (f"--{argument.lower()}", *kind_flags, "--name") for value in flag_values(flags, flag)
    ]
    if {"NAME", "PATH"} <= {*operation.arguments.split()}:  # of both, a path has a dot
        flag_values_found = [
            (flag, value)
            for flag, value in flag_values_found
            if flag != "--name" or ("." in value) == (argument == "PATH")
        ]
    value = next((value for _, value in flag_values_found), "")
    containers = ("--database-name", "--database", "--schema", "--namespace")
    above = next((value for flag in containers for value in flag_values(flags, flag)), "") if argument == "PATH" else ""
    return f"{above}.{value}" if above and value and "." not in value else value


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
        raise answers.unknown_in_group(["user secret"], ["user secret"], flags=flags)
    if len(lowered) < 3:
        return ["user", "secret"], 2
    command = GROUP_ALIASES.get(f"user secret {lowered[2]}", f"user secret {lowered[2]}").split()
    if command[2] not in GROUPS["user secret"]:
        raise answers.unknown_in_group(["user secret", lowered[2]], ["user secret", lowered[2]], flags=[])
    return command, 3


answers: Final = WrongWords(resolve)
"""The answers to words that are no command."""
