# SPDX-License-Identifier: Apache-2.0
"""The form of API tokens as text, so that a file or variable that has something else is neither sent nor printed.

Must not know which tokens a server issued. No message has any part of the text.
"""

from __future__ import annotations

import re
from typing import Final

TOKEN_CHARACTERS_MAX: Final = 16_384
"""The longest token that is sent, in characters. Tokens of external issuers have up to several thousand."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""The form of Bearer tokens (RFC 6750, section 2.1)."""


def token_fault(text: str) -> str | None:
    """Return why a text is no API token, as "it has several lines"; None for a token.

    White space around the text must be removed before.
    """
    if not text:
        return "it is empty"
    if len(text.splitlines()) > 1:
        return "it has several lines, and a token is one word"
    if text[:7].lower() == "bearer ":
        return "it begins with the word Bearer, which is no part of a token"
    if len(text) > TOKEN_CHARACTERS_MAX:
        return f"it is longer than {TOKEN_CHARACTERS_MAX:,} characters"
    if _TOKEN.fullmatch(text) is None:
        return "it has characters that no token has; a token is one word, as lim_1_…"
    return None
