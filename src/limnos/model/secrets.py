# SPDX-License-Identifier: Apache-2.0
"""Secrets as values that cannot be printed by accident, and masking of secrets in strings.

Must not know the sources and uses of secrets.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from typing import Final, NoReturn

from limnos.names.errors import InvalidName
from limnos.names.percent import unquote_strict

MASK: Final = "***"
"""The text that is printed instead of a secret."""
NAMES: Final = r"secret|passw|passphrase|pwd|token|credential|api[_-]?key|access[_-]?key|signature"
"""Parts of parameter names whose values are secrets."""
KNOWN_LEAST: Final = 4
"""The minimum length of known secrets that are masked: shorter ones would match inside ordinary words."""
_USERINFO: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*://[^/?#@\s:'\"]*:)[^/?#@\s'\"]+(?=@)")
_QUERY: Final = re.compile(rf"([?&;][^=&;?\s]*(?:{NAMES}|\bsig\b)[^=&;?\s]*=)[^&;#\s'\"]+", re.IGNORECASE)
_FIELD: Final = re.compile(r"(\b(?:ssl)?(?:password|passwd|pwd)(?:=|['\"]:\s?)['\"]?)[^\s'\",;&)}]+", re.IGNORECASE)
_HEADER: Final = re.compile(r"\b((?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{16,}")
_OWN_TOKEN: Final = re.compile(r"\blim_[A-Za-z0-9]+_[A-Za-z0-9_-]{8,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}")
_ADDRESS: Final = re.compile(r"(?s)((?:jdbc:)?[a-zA-Z][a-zA-Z0-9+.-]*://)(.*)@")


class Secret:
    """A secret string that `repr`, `str`, `format`, tracebacks and JSON render as `***`. `reveal` returns it.

    Two secrets with the same string are equal. A secret cannot be pickled, so its string leaves the process only by
    `reveal`.
    """

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """Return the secret as a plain string."""
        return self.__text

    def __repr__(self) -> str:
        return MASK

    def __str__(self) -> str:
        return MASK

    def __format__(self, _format: str) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self.__text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__text.encode(), other.__text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self.__text))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, _memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled: call reveal() if its text must leave the process")


def passwords_of_url(url: str) -> tuple[str, ...]:
    """Return the passwords in a URL, both percent-encoded as in the URL and decoded. The URL may be malformed.

    A password that is shorter than `KNOWN_LEAST` or also occurs elsewhere in the URL is omitted: masking it would also
    mask a host or database name.
    """
    names = [each[0].removeprefix(each[1]) for each in _QUERY.finditer(url)]
    rest = _QUERY.sub(r"\1", url)
    if address := _ADDRESS.match(url):
        user, _, password = address[2].partition(":")
        names.append(password)
        rest = f"{address[1]}{user}@{rest.rpartition('@')[2]}"
    return tuple(
        dict.fromkeys(
            text
            for each in names
            for text in (each, _decode_percent(each))
            if len(text) >= KNOWN_LEAST and text not in rest
        )
    )


def _decode_percent(text: str) -> str:
    try:
        return unquote_strict(text)
    except InvalidName:
        return text


def hide_secrets(text: str, known: Iterable[str] = ()) -> str:
    """Return a string for messages or logs with `***` in place of secrets.

    Passwords in URLs and connection strings, credentials of requests and tokens of this server are recognized by
    pattern.

    Args:
        text: The string to mask.
        known: Secrets; each occurrence is replaced, except for secrets shorter than `KNOWN_LEAST` characters.
    """
    for secret in sorted(known, key=len, reverse=True):
        if len(secret) >= KNOWN_LEAST:
            text = text.replace(secret, MASK)
    if "://" in text:
        text = _QUERY.sub(rf"\1{MASK}", _USERINFO.sub(rf"\1{MASK}", text))
    text = _FIELD.sub(rf"\1{MASK}", text)
    return _OWN_TOKEN.sub(MASK, _HEADER.sub(rf"\1{MASK}", text))
