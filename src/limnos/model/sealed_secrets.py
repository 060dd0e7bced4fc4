# SPDX-License-Identifier: Apache-2.0
"""The text encoding of an encrypted ("sealed") secret: a version, the id of its key, and the ciphertext.

Pure. Must not know keys or properties. Clients of external systems check with this module whether a value still
contains an encrypted secret. The encoding has no character that is special in URLs, so an encrypted password inside a
URL keeps its position.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

SEALED: Final = re.compile(r"limnos-sealed-1\.([0-9a-f]{16})\.([A-Za-z0-9_-]{38,})")
"""An encrypted secret: the id of its key, then nonce and ciphertext in URL-safe base64."""

KEY_BYTES: Final = 32


def spell_sealed(key_id: str, text: str) -> str:
    """Encode the ciphertext `text` with the id of its key, as stored in properties and URLs."""
    return f"limnos-sealed-1.{key_id}.{text}"


def keys_of(value: str) -> frozenset[str]:
    """Return the ids of the keys of all encrypted secrets in a value."""
    return frozenset(match[1] for match in SEALED.finditer(value))


def parse_key(text: str) -> bytes:
    """Parse a key of 32 bytes in base64. Raises ValueError for a malformed key, without the key in the message."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a key is 32 bytes in base64, and this is not base64") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key is 32 bytes in base64, and this has {len(key)}")
    return key
