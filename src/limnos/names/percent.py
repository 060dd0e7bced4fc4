# SPDX-License-Identifier: Apache-2.0
"""Strict percent-encoding: malformed and ambiguous input is refused.

Must not know where in a request the string was sent. The standard library's decoder is not used: it ignores invalid
escapes and replaces invalid UTF-8, so two different inputs could decode to the same name.
"""

from __future__ import annotations

import re

from limnos.names.errors import InvalidName
from limnos.names.parts import quote_for_message

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_QUOTED = [chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in range(256)]
_ESCAPE = re.compile(rb"%(?:([0-9A-Fa-f]{2})|.{0,2})", re.DOTALL)
_RUN = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


def quote(text: str) -> str:
    """Percent-encode every byte of the string's UTF-8 form except ASCII letters, digits, `-`, `.`, `_` and `~`.

    Raises InvalidName for a lone surrogate.
    """
    try:
        return "".join([_QUOTED[byte] for byte in text.encode()])
    except UnicodeEncodeError:
        raise InvalidName(
            "bad-utf8", f"The text {quote_for_message(text)} holds half of a surrogate pair. Remove it."
        ) from None


def unquote_strict(raw: bytes | str) -> str:
    """Return the percent-decoded string. `+` is not decoded to a space.

    Raises InvalidName for `%` without two hex digits (bad-escape) and for bytes that are not UTF-8 (bad-utf8).
    """
    data = _utf8(raw) if isinstance(raw, str) else raw
    if b"%" in data:
        data = _ESCAPE.sub(_unescape, data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidName("bad-utf8", f"The name {_quote(raw)} is not UTF-8. Percent-encode its UTF-8 bytes.") from None


def unquote_form(raw: bytes | str) -> str:
    """Decode like `unquote_strict`, but `+` to a space: for path segments and query values of form-encoding clients.

    Raises InvalidName like `unquote_strict`.
    """
    data = _utf8(raw) if isinstance(raw, str) else raw
    return unquote_strict(data.replace(b"+", b" "))


def unquote_once_if_encoded(text: str) -> str:
    """Percent-decode a string once, for clients that percent-encode names inside a JSON body.

    A `%` that begins no valid escape, and escapes that are not UTF-8, are not decoded. Never raises.
    """
    return _RUN.sub(_decode_run, text) if "%" in text else text


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidName(
            "bad-utf8", f"The name {quote_for_message(text)} holds half of a surrogate pair. Remove it."
        ) from None


def _unescape(match: re.Match[bytes]) -> bytes:
    if digits := match[1]:
        return bytes.fromhex(digits.decode("ascii"))
    raise InvalidName(
        "bad-escape", f"{_quote(match[0])} is not a percent escape: two hex digits must follow. Write '%25' for '%'."
    )


def _decode_run(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(match[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return match[0]


def _quote(raw: bytes | str) -> str:
    return quote_for_message(raw if isinstance(raw, str) else raw.decode("ascii", "backslashreplace"))
