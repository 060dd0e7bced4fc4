"""How a secret is spelled that is sealed: a version, the id of its key, and what only that key opens.

May import the standard library alone. Pure. Holds no keys and knows no properties: whoever talks to an outside system asks here whether it still holds what should
have been opened. The spelling has no sign that means something in a URL, so a password sealed inside of one stays where it was.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

SEALED: Final = re.compile(r"limnos-sealed-1\.([0-9a-f]{16})\.([A-Za-z0-9_-]{38,})")
"""A sealed secret: the id of its key, and nonce and text in base64 for URLs."""

KEY_BYTES: Final = 32


def spell_sealed(key_id: str, text: str) -> str:
    """Spell what a key has sealed."""
    return f"limnos-sealed-1.{key_id}.{text}"


def keys_of(value: str) -> frozenset[str]:
    """Return the ids of the keys under which a value holds something."""
    return frozenset(found[1] for found in SEALED.finditer(value))


def parse_key(text: str) -> bytes:
    """Read a key. Raises ValueError, without the key in its words."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a key is 32 bytes in base64, and this is no base64") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key is 32 bytes in base64, and this has {len(key)}")
    return key
