# SPDX-License-Identifier: Apache-2.0
"""Commands that an answer proposes, checked before they are printed: each is one that its command takes.

A proposal is made of typed words, so it can have flags of other tools and more arguments than its command takes. Flags
become ours or are left out, words that only name a kind are left out, and missing arguments get their names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Final

from limnos.cli.errors import UsageError
from limnos.cli.flags import GUESSED_FLAGS, SWITCHES, filled_value, spelled_duration
from limnos.cli.foreign_flags import CHOICES, FILE, LIST_FILTERS
from limnos.cli.guesses import FILLERS
from limnos.cli.hints.near_flags import filtered_list
from limnos.cli.operations import KIND_WORDS, VERB_ALIASES, VERBS
from limnos.cli.sentences import quote_command, with_datasets
from limnos.cli.signatures import COMMON, Signature, signature_of
from limnos.cli.token_words import take_words

_AS_ARGUMENT: Final = frozenset(
    [
        "--name",
        "--path",
        "--table",
        "--table-name",
        "--catalog",
        "--catalog-name",
        "--schema",
        "--schema-name",
        "--database",
        "--database-name",
        "--namespace",
        "--group",
        "--group-name",
        "--role",
        "--role-name",
        "--principal",
        "--object",
        "--in",
        "--file",
        "--id",
        "--metalake-name",
    ]
)
"""Flags of other tools whose value is an argument here."""
_PLACES_OF: Final = {
    "--role": ("ROLE",),
    "--role-name": ("ROLE",),
    "--catalog-role": ("ROLE",),
    "--principal-role": ("ROLE",),
    "--user": ("USER",),
    "--user-name": ("USER",),
    "--username": ("USER",),
    "--principal": ("USER",),
    "--assignee": ("USER",),
    "--group": ("USER", "GROUP"),
    "--group-name": ("USER", "GROUP"),
    "--catalog": ("PATH",),
    "--table": ("PATH",),
    "--resource": ("PATH",),
    "--id": ("NAME",),
    "--namespace": ("PATH",),
}
"""Flags of other tools, and the places of proposals for their values."""
_KIND_NAMES: Final = frozenset({"ns", "db", "tbl", "serviceaccount", "privileges", "privilege", "member", "if", "not"})
"""Words that stand before a name in other tools, and are no kind here."""
_NOISE: Final = frozenset({*KIND_WORDS, *FILLERS, *_KIND_NAMES, "exists", "get", "details", *VERBS, *VERB_ALIASES})
_RELATIONS: Final = frozenset({"from", "of", "by", "in", "on", "to", "with"})
"""Words that relate two names: a deletion of one of both is another thing, so that none is proposed."""
_CONTAINERS: Final = {
    flag: rank
    for rank, flags in enumerate(
        (
            "--catalog --catalog-name --metastore-catalog",
            "--namespace --schema --schema-name --database --database-name",
            "--table --table-name --view --tables-to-delete",
        )
    )
    for flag in flags.split()
}
"""Flags of other tools for the parts of a path, and their order in it."""
_FILTERS_OF_PROGRAMS: Final = frozenset({"--sort-by", "--max-items", "--page-size", "--query", "--selector"})
"""Filters of lists that a program's name stands before; others have their own answer, which says more."""
_PARTS_MIN: Final = 2
_PLAIN: Final = re.compile(r"\w+")
"""A part of a path, which other tools type as a word of its own."""
OUTPUTS: Final = ("table", "json", "csv")
_depth: ContextVar[int] = ContextVar("depth", default=0)
_DEPTH_MAX: Final = 3
"""A proposal that is wrong itself is replaced by what its own answer proposes, so often at the most."""


def correct_command(tokens: Sequence[str], *, resolve: Callable[[Sequence[str]], list[str]]) -> str:
    """Return a command line without the program's name in quotes, corrected so that its command takes it.

    `resolve` reads a command line, as the grammar does. Flags that the command does not have are named after it.
    """
    tokens = _with_statement(_with_known_values(_fill_values(_with_whole_path(tokens))))
    plain = quote_command(tokens)
    if _depth.get() == _DEPTH_MAX or not tokens or tokens[0].startswith("-"):
        return plain
    token = _depth.set(_depth.get() + 1)
    try:
        resolved = resolve(tokens)
    except UsageError as error:
        again = error.hint or ""
        return again if again.lstrip("'").startswith("limnos ") and "--help' explains" not in again else plain
    finally:
        _depth.reset(token)
    signature = signature_of(resolved)
    if signature is None or resolved[-1] == "--help":
        return plain
    return _fit_words(tokens, resolved, signature=signature)


def _fill_values(tokens: Sequence[str]) -> list[str]:
    """Return a command line in which values of flags stand at the places that have their names: other tools name each
    argument by a flag, as in `role grant --role reader --user ana`.
    """
    _, flags = take_words(tokens)
    result = list(tokens)
    for flag, value in itertools.pairwise(flags):
        for place in _PLACES_OF.get(flag.replace("_", "-"), ()):
            at = next((at for at, token in enumerate(result) if re.search(rf"(?:^|:){place}$", token)), None)
            if at is None or value.startswith("-"):
                continue
            prefix = "group:" if flag.startswith("--group") and place == "USER" else ""
            result[at] = result[at].removesuffix(place) + prefix + value
            start = next(at for at, token in enumerate(result) if token == flag)
            del result[start : start + 2]
            break
    return result


def _with_whole_path(tokens: Sequence[str]) -> list[str]:
    """Return a command line in which the parts of a path, that other tools type as flags, are the value of one."""
    parts = [(at, tokens[at + 1]) for at, flag in enumerate(tokens[:-1]) if flag.replace("_", "-") in _CONTAINERS]
    parts.sort(key=lambda part: _CONTAINERS[tokens[part[0]].replace("_", "-")])
    if len({_CONTAINERS[tokens[at].replace("_", "-")] for at, _ in parts}) < _PARTS_MIN:
        return list(tokens)
    path = ""
    for _, value in parts:
        path = value if not path or value.startswith(f"{path}.") else f"{path}.{value}"
    removed = {place for at, _ in parts[:-1] for place in (at, at + 1)}
    last = parts[-1][0]
    return [path if at == last + 1 else token for at, token in enumerate(tokens) if at not in removed]


def _with_statement(tokens: Sequence[str]) -> list[str]:
    """Return a command line in which the statement of `sql -c` has the names of SQL++."""
    result = list(tokens)
    for flag in ("-c", "--command"):
        if result[:1] == ["sql"] and flag in result[:-1]:
            at = result.index(flag) + 1
            result[at] = with_datasets(result[at])
    return result


def _with_known_values(tokens: Sequence[str]) -> list[str]:
    """Return a command line in which formats and durations of other tools are ours, as `--output json` for yaml."""
    result = list(tokens)
    for at, (flag, sign, value) in enumerate([token.partition("=") for token in tokens]):
        text = value if sign else "".join(tokens[at + 1 : at + 2])
        known_value = _known_value(flag, text)
        if known_value is not None and sign:
            result[at] = f"{flag}={known_value}"
        elif known_value is not None:
            result[at + 1] = known_value
    return result


def _known_value(flag: str, text: str) -> str | None:
    """Return our value of a flag for one of another tool; None for a value that is ours, or no other tool's."""
    if flag == "--output" and text not in OUTPUTS:
        word = text.lower()
        return word if word in OUTPUTS else CHOICES.get(word) if CHOICES.get(word) in OUTPUTS else None
    return spelled_duration(text) if flag == "--expires-in" else None


def fitting_flag(flag: str, flags: frozenset[str]) -> str | None:
    """Return the replacement for a flag at a command with these flags: itself, ours for it, or None if it has none.

    `{}` in the text stands for the value.
    """
    name = flag.replace("_", "-")
    if name in {*flags, *COMMON}:
        return name
    for guess in GUESSED_FLAGS.get(flag, GUESSED_FLAGS.get(name, "")).split("|"):
        if guess and guess.split()[0] in {*flags, *COMMON}:
            return guess
    return None


def _fit_words(tokens: Sequence[str], resolved: Sequence[str], *, signature: Signature) -> str:
    arguments, _ = take_words(resolved[len(signature.words) :])
    words, flags = take_words(tokens)
    head = words[: len(words) - len(arguments)]
    if any(flag in _AS_ARGUMENT for flag in flags) and all(word.lower() in _NOISE for word in arguments):
        arguments = []
    own_flags, missing_flags = _fitted_flags(flags, arguments, signature=signature)
    filters = [flag for flag in missing_flags if flag in LIST_FILTERS and flag in _FILTERS_OF_PROGRAMS]
    if filters and (filtered := filtered_list(filters[0], signature.words, rest=[*arguments, *flags])):
        return filtered.hint
    most = signature.most
    if _deletes(signature) and most is not None and len(arguments) > most and _RELATIONS & {*arguments}:
        return f"'limnos {' '.join(signature.words)} --help' explains its arguments"
    if most is not None and len(arguments) > most:
        arguments = [word for word in arguments if word.lower() not in _NOISE]
    if (
        len(head) > 1
        and most == 1
        and signature.arguments == ("PATH",)
        and len(arguments) > 1
        and not _deletes(signature)
    ):
        arguments = [".".join(arguments)] if all(_PLAIN.fullmatch(word) for word in arguments) else arguments
    if most is not None and len(arguments) > most:
        arguments = []
    missing = [name.removesuffix("...") for name in signature.arguments[len(arguments) : signature.required]]
    if own_flags == flags == _with_kinds(flags, signature)[0] and not missing and [*head, *arguments] == words:
        return quote_command(tokens)
    own_flags, note = _with_kinds(own_flags, signature)
    text = quote_command([*head, *arguments, *missing, *own_flags])
    text += note if text.startswith("'") else ""
    is_quoted = text.startswith("'")
    return f"{text} (it has no {' or '.join(dict.fromkeys(missing_flags))})" if missing_flags and is_quoted else text


def _with_kinds(flags: list[str], signature: Signature) -> tuple[list[str], str]:
    """Return flags in which each principal of a restriction has its kind, and a note about the others that may be
    meant; without it such a command is refused.
    """
    if signature.words != ("restriction", "set"):
        return flags, ""
    result, names = list(flags), []
    for at, (flag, value) in enumerate(itertools.pairwise(flags)):
        if flag in {"--to", "--except"} and ":" not in value and not value.startswith("-"):
            result[at + 1] = f"user:{value}"
            names.append(value)
    note = "".join(f"; or group:{name} or role:{name}, if {name} is one" for name in names if not name.isupper())
    return result, note


def _deletes(signature: Signature) -> bool:
    return bool({"delete", "remove", "end", "revoke", "drop"} & {*signature.words})


def _fitted_flags(flags: Sequence[str], arguments: list[str], *, signature: Signature) -> tuple[list[str], list[str]]:
    """Return the flags that the command takes, and the names of the others. Values of some become arguments."""
    own_flags: list[str] = []
    missing_flags: list[str] = []
    at = 0
    while at < len(flags):
        name, sign, value = flags[at].partition("=")
        at += 1
        has_value = bool(sign)
        if not sign and at < len(flags) and not flags[at].startswith("-"):
            value, has_value = flags[at], True
            at += 1
        fitting = fitting_flag(name, signature.flags)
        is_free = has_value and (signature.most is None or len(arguments) < signature.most)
        is_argument = is_free and signature.most is not None and name.replace("_", "-") in _AS_ARGUMENT
        own_names = {f"--{word}{end}" for word in signature.words for end in ("", "-name")}
        names_object = len(arguments) < signature.required and name in own_names
        is_above = name in _CONTAINERS and signature.arguments[:1] == ("PATH",) and len(arguments) == 1
        if name == "-n" and is_free and value and not value.isdigit() and "-n" not in signature.flags:
            arguments.append(value)  # kubectl's namespace
        elif name in own_names and not has_value and name in SWITCHES:  # `--group` of `create group --group NAME`
            continue
        elif name == "--user" and has_value and "USERS..." in signature.arguments:
            arguments.append(value)
        elif names_object and has_value:
            arguments.insert(0, value)
        elif is_above and has_value and "." not in arguments[0]:
            arguments[0] = f"{value}.{arguments[0]}"
        elif name == "-f" and _deletes(signature):  # of kubectl it names a file, of rm it asks nothing
            arguments += [value] if is_free and "." in value and FILE.fullmatch(value) is None else []
        elif is_argument and name.replace("_", "-") not in signature.flags:
            arguments.append(value)
        elif fitting in {"--to", "--on"} and fitting in own_flags:
            missing_flags.append(name)
        elif fitting is not None and (value.isdigit() or ":{}" not in fitting):  # `-p` may be no port
            own_flags += with_value(fitting, value if has_value else None, sign=sign)
            if has_value and not sign and is_free and _is_switch(fitting):
                arguments.append(value)
        elif is_free and len(arguments) < signature.required:
            arguments.append(value)
        else:
            missing_flags.append(name)
    return own_flags, missing_flags


def _is_switch(flag: str) -> bool:
    words = flag.split()
    return "{}" not in flag and (len(words) > 1 or words[0] in SWITCHES)


def with_value(flag: str, value: str | None, *, sign: str = "") -> list[str]:
    """Return the words of a flag, or of its template, with a value."""
    value = value and (_known_value(flag, value) or value)
    if "{}" in flag:
        return [filled_value(word, value or "VALUE") for word in flag.split()]
    if value is None or _is_switch(flag):
        return flag.split()
    return [f"{flag}={value}"] if sign else [flag, value]
