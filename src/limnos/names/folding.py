# SPDX-License-Identifier: Apache-2.0
"""Case folding of names for searches.

Names keep their case: only searches use the folded form.
"""

from __future__ import annotations

import unicodedata


def fold(text: str) -> str:
    """Return the string with Unicode's full case folding applied, in normal form C (NFC)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
