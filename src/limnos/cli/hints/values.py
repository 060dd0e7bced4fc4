# SPDX-License-Identifier: Apache-2.0
"""Hints for values that a server or a file system refused: the typed command with the nearest value, or where the
existing values are listed.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from limnos.cli.errors import UsageError
from limnos.cli.foreign_flags import PRIVILEGE_ACTIONS
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.output import flag_values
from limnos.names import display

_MASKS: Final = {
    word: mask
    for mask, words in {
        "replace-with-null": "null none hide hidden nullify",
        "mask-to-fixed-value": "fixed fix redact redacted mask stars star constant",
        "show-last-4": "last4 last-4 last",
        "show-first-4": "first4 first-4 first",
        "truncate-to-year": "year",
        "truncate-to-month": "month",
        "sha-256-global": "sha256 sha-256 sha hash hashed md5 sha2",
    }.items()
    for word in words.split()
}
"""Words that people type for masks."""
_NO_MASK: Final = re.compile(r"There is no mask '(.+?)': use one of (.+)")
_PRIVILEGE: Final = re.compile(r"'(\w+)' is a privilege, not an action: ")
_ROWS: Final = re.compile(r"A preview must have 1 to (\d+) rows, not (-?\d+)")
_PROVIDER: Final = re.compile(r"Catalog \S+ of provider \S+ cannot contain (fileset|model|topic)s: ")
_NO_KIND: Final = re.compile(r"'(\w+)' is not a kind that can be searched: kinds are (.+)")
_TYPES: Final = {"topic": "messaging"}
_NO_PROVIDER: Final = re.compile(r"Catalog \S+ cannot have the provider (\S+): use one of ([^;]+)")
_PROVIDERS: Final = {
    word: provider
    for provider, words in {
        "lakehouse-iceberg": "iceberg",
        "lakehouse-generic": "lance lancedb generic",
        "iceberg-rest": "rest polaris nessie unity lakekeeper glue snowflake s3tables",
        "jdbc-postgresql": "postgres postgresql pg",
        "jdbc-mysql": "mysql mariadb",
        "hive": "hms metastore",
        "fileset": "files filesets hadoop",
        "model": "models mlflow",
        "messaging": "topics",
    }.items()
    for word in words.split()
}
"""Words that people type for providers of catalogs."""
_ILLEGAL: Final = re.compile(r"The \w+ name '(.+)' is illegal: use 1 to 64 ASCII letters")
_ABSENT: Final = re.compile(r"'?([^']+?)'? can't be read: No such file or directory")
_NO_PIPELINE: Final = re.compile(r"'([^']+)' is not a pipeline: name a file")
_COUNTS: Final = {"--limit": "20", "--rows": "20", "--depth": "3", "--count": "5"}
"""Flags that count rows, lines or levels, each with a usual number. `--rows 0` of a comparison shows none."""
_NEGATIVE: Final = re.compile(r"-[0-9]+")
_FILES_MAX: Final = 1_000
"""The number of files of a directory among which a near name is looked for."""


def check_counts(tokens: Sequence[str]) -> None:
    """Raise UsageError for a flag that counts, with a negative number or zero, and the command with a usual number."""
    for flag, usual in _COUNTS.items():
        for value in flag_values(tokens, flag):
            if not _NEGATIVE.fullmatch(value) and (value != "0" or flag == "--rows"):
                continue
            again = [f"{flag}={usual}" if each == f"{flag}={value}" else each for each in tokens]
            again = [usual if pair == (flag, value) else pair[1] for pair in itertools.pairwise(["", *again])]
            raise UsageError(f"{flag} takes a number above 0, not '{value}'", hint=_quote_command(again))


def _with_provider(word: str, typed: TypedCommand, *, providers: Sequence[str]) -> str:
    """Return the command with the provider that a word means or is near to; without one, where they are explained."""
    near = [_PROVIDERS.get(word.lower(), ""), *difflib.get_close_matches(word.lower(), providers, n=1)]
    meant = next((each for each in near if each in providers), None)
    if meant is None:
        return "leave --provider out for Iceberg tables; the documentation's page Connectors has what each of these is"
    end = re.compile(rf"(^|=){re.escape(word)}$")
    again = [
        end.sub(rf"\g<1>{meant}", token) if "--provider" in {token.partition("=")[0], before} else token
        for before, token in itertools.pairwise(["", *typed.tokens])
    ]
    return _quote_command(again)


def hint_for_value(message: str, typed: TypedCommand) -> str | None:
    """Return the hint for a refused value; None if the message is about none."""
    if (mask := _NO_MASK.match(message)) is not None:
        allowed_values = mask[2].split(", ")
        near = [_MASKS.get(mask[1].lower(), ""), *difflib.get_close_matches(mask[1].lower(), allowed_values, n=1)]
        meant = next((each for each in near if each in allowed_values), None)
        again = [re.sub(rf"={re.escape(mask[1])}$", f"={meant}", token) for token in typed.tokens]
        return None if meant is None else _quote_command(again)
    if (privilege := _PRIVILEGE.match(message)) is not None and privilege[1] in PRIVILEGE_ACTIONS:
        return _quote_command(
            [PRIVILEGE_ACTIONS[privilege[1]] if token == privilege[1] else token for token in typed.tokens]
        )
    if (rows := _ROWS.match(message)) is not None:
        end = re.compile(rf"(^|=){re.escape(rows[2])}$")
        return _quote_command([end.sub(rf"\g<1>{rows[1]}", token) for token in typed.tokens])
    if (unknown := _NO_PROVIDER.match(message)) is not None:
        return _with_provider(unknown[1], typed, providers=unknown[2].split(", "))
    if (kind := _PROVIDER.match(message)) is not None:
        creates = typed.command("create", "catalog", "NAME", "--type", _TYPES.get(kind[1], kind[1]))
        return f"'{typed.command('list', 'catalogs')}' has the provider of each; '{creates}' creates one"
    if (illegal := _ILLEGAL.match(message)) is not None and typed.words[:1] in {("create",), ("rename",)}:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", illegal[1]).strip("_-")[:64]
        return _quote_command([plain if token == illegal[1] else token for token in typed.tokens]) if plain else None
    if (kind := _NO_KIND.match(message)) is not None:
        near = difflib.get_close_matches(kind[1], kind[2].split(", "), n=1)
        again = [token.replace(kind[1], near[0]) if near else token for token in typed.tokens]
        return _quote_command(again) if near else None
    if message.startswith("The setting audit.export has no location"):
        return f"'{typed.command('audit', 'export', 'LOCATION')}' writes to a location that the server may use"
    if message.startswith("The table has no column ") and typed.path:
        return f"'{typed.command('show', display.render(typed.path))}' shows its columns"
    return None


def hint_for_file(message: str, typed: TypedCommand) -> str | None:
    """Return the hint for a file that does not exist: the typed command with the file of a near name beside it."""
    absence_match = _ABSENT.match(message) or _NO_PIPELINE.match(message)
    if absence_match is None:
        return None
    name, file = absence_match[1], Path(absence_match[1])
    try:
        with os.scandir(file.parent) as entries:
            names = [entry.name for _, entry in zip(range(_FILES_MAX), entries, strict=False) if entry.is_file()]
    except OSError:
        return f"there is no directory {file.parent}: check the path"
    near = [each for each in (f"{file.stem}.yaml", f"{file.stem}.yml") if each in names and "pipeline" in typed.words]
    near += difflib.get_close_matches(file.name, names, n=1, cutoff=0.8)
    if not near or name not in typed.tokens:
        return "check the path of the file" if _ABSENT.match(message) else None
    return _quote_command([str(file.parent / near[0]) if token == name else token for token in typed.tokens])


def _quote_command(tokens: list[str]) -> str:
    text = TypedCommand(tokens).again()
    return text if "'" in text else f"'{text}'"
