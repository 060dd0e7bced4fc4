"""Folding: the form of a name in which searches compare it, whatever its case.

May import the standard library only. Names themselves keep their case: only searches use this form.
"""

from __future__ import annotations

import unicodedata


def fold(text: str) -> str:
    """Return a text without differences of case (Unicode's full case folding), composed (NFC)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
