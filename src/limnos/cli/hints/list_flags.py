# SPDX-License-Identifier: Apache-2.0
"""`--columns` and `--wide` of a command that prints no list: it would do something else than the flag says."""

from __future__ import annotations

from collections.abc import Sequence

from limnos.cli.errors import UsageError
from limnos.cli.grammar.reading import answers
from limnos.cli.grammar.spelling import typed_as
from limnos.cli.output import TableOptions, flag_values
from limnos.cli.signatures import PREVIEW_LISTS, prints_list, signature_of
from limnos.cli.token_words import without_flag

_READING = frozenset({"show", "lineage", "changes", "whoami", "owner", "user", "group", "task", "job", "schedule"})
"""First words of commands among which some change nothing."""
_SHOWS = frozenset({"show", "describe", "whoami", "changes", "up", "down"})


def check_list_flags(tokens: Sequence[str], options: TableOptions) -> None:
    """Raise UsageError if a command line has a flag of lists, and its command prints none.

    `set policy NAME PATH --columns email` would otherwise attach the policy to the whole table.
    """
    signature = signature_of(tokens)
    if signature is None or options == TableOptions() or prints_list(tokens, signature=signature):
        return
    flag = "--columns" if options.columns else "--wide"
    words = [*typed_as(" ".join(signature.words)).split()]
    name = " ".join(["limnos", *words])
    rest = [token for token in tokens[len(signature.words) :] if token != "--wide"]  # noqa: S105 - a flag
    columns = list(flag_values(rest, "--columns"))
    plain = without_flag(rest, "--columns")
    preview = PREVIEW_LISTS.get(" ".join(signature.words))
    message = f"{flag} is for lists, and '{name}' prints none{f' without {preview}' if preview else ''}"
    if len(columns) == 1 and "--column" in signature.flags:
        raise UsageError(message, hint=answers.propose([*words, *plain, "--column", columns[0]]))
    if flag == "--wide" or (signature.words[0] in _READING and _SHOWS & {*signature.words}):
        raise UsageError(message, hint=answers.propose([*words, *plain]))
    raise UsageError(message, hint=f"'{name} --help' explains its flags")
