# SPDX-License-Identifier: Apache-2.0
"""Finds the secrets in the arguments and the environment of this command, which printed failures mask.

Must not know any command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from limnos.model.secrets import NAMES, passwords_of_url

_SECRET: Final = re.compile(rf"{NAMES}|\bkeys?\b|[._-]keys?\b|_KEYS?\b", re.IGNORECASE)
_NOT_SECRET: Final = re.compile(
    r"(?:file|path|uri|user|id|expires|keep|no)(?:[_-]|$)|[_-](?:file|path|uri|url|user|id)$", re.IGNORECASE
)
"""Parameters that only name the location or owner of a secret, and may be shown."""
_FLAG: Final = re.compile(r"-[a-zA-Z]|--[a-z]+(?:-[a-z]+)*(?:=.*)?", re.DOTALL)
"""A flag. Another word that begins with "-" is a value, such as a random password."""
_PREFIX: Final = "LIMNOS_"


def collect_secrets(tokens: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the strings that must not be printed: tokens, passwords in URLs, and values of properties with the name of
    a secret.
    """
    names = [*_of_words(tokens), *_of_environment(environ)]
    return tuple(dict.fromkeys(spelled for text in names if text for spelled in (text, *_spellings(text))))


def _spellings(text: str) -> Iterator[str]:
    """Yield the texts as which a secret stands in JSON, and each line of one with several: a private key that was
    passed as a token.
    """
    for line in text.splitlines():
        yield line
        yield json.dumps(line)[1:-1]
        yield json.dumps(line, ensure_ascii=False)[1:-1]


def is_secret_name(name: str) -> bool:
    """Return whether the value of a flag, property or variable of this name is a secret, such as `token` or
    `s3.secret-access-key`.
    """
    return _SECRET.search(name) is not None and _NOT_SECRET.search(name) is None


def _of_words(tokens: Sequence[str]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        yield from passwords_of_url(token)
        name, mark, value = token.removeprefix("--").partition("=")
        if mark and is_secret_name(name):
            yield value
        elif token.startswith("--") and is_secret_name(name) and at + 1 < len(tokens):
            yield "" if _FLAG.fullmatch(tokens[at + 1]) else tokens[at + 1]


def _of_environment(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        if not name.upper().startswith(_PREFIX):
            continue
        yield from passwords_of_url(value)
        if name.upper() == "LIMNOS__STORAGE__NAMED":
            yield from _of_storages(value)
        elif is_secret_name(name):
            yield from [value, *(part.strip() for part in value.split(","))]


def _of_storages(value: str) -> Iterator[str]:
    """Yield the secrets in the JSON of an environment variable with named storages; the whole value if it is
    malformed.
    """
    try:
        result = json.loads(value)
    except ValueError:
        yield value
        return
    for properties in result.values() if isinstance(result, dict) else ():
        if isinstance(properties, dict):
            yield from (str(each) for name, each in properties.items() if is_secret_name(str(name)))
