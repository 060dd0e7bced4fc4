# SPDX-License-Identifier: Apache-2.0
"""Passwords: the requirements for a new one, and Argon2id hashes. Pure except for random salts.

Must not know stores or threads. A hash takes tens of milliseconds and 64 MiB, so callers compute it off the event loop.
Passwords are normalized to Unicode NFC: keyboards differ in the form they send.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from limnos.model.errors import BadRequest

CHARACTERS_MIN: Final = 10
BYTES_MAX: Final = 1_024
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_HASHER: Final = PasswordHasher(time_cost=3, memory_cost=65_536, parallelism=1)
"""The second recommended option of RFC 9106, with one lane: the number of threads limits concurrent hashes."""
DUMMY_HASH: Final = "$argon2id$v=19$m=65536,t=3,p=1$bm9ib2R5J3Mgc2FsdC4uLg$hnyqq2MzaMvVVxE1hS8bZpIu7+KdH5eQbW2DnSkEoyM"
"""Verified against if no user has the given name, so that both cases take equally long.

It matches no known password.
"""


def normalize_password(password: str) -> str:
    """Return a password in the form in which it is hashed (Unicode NFC)."""
    return unicodedata.normalize("NFC", password)


def check_password(password: str, *, user: str) -> str:
    """Check a new password and return it in the form in which it is hashed.

    Raises BadRequest if it is too short or too long, has fewer than three different characters or control characters,
    or contains the user's name.
    """
    result = normalize_password(password)
    if _CONTROL.search(result) or len(result.encode("utf-8", "replace")) > BYTES_MAX:
        raise BadRequest(f"A password must not have control characters or more than {BYTES_MAX} bytes")
    if len(result) < CHARACTERS_MIN or len(set(result)) <= 2:
        raise BadRequest(
            f"A password must have at least {CHARACTERS_MIN} characters, and more than two different ones: use a few"
            " words"
        )
    if user.casefold() in result.casefold():
        raise BadRequest("A password must not contain the user's name: choose another one")
    return result


def hash_password(password: str) -> str:
    """Hash a password that `check_password` returned."""
    return _HASHER.hash(password)


def is_password(password: str, against: str) -> bool:
    """Return whether a password matches an Argon2id hash. False for a malformed hash, too."""
    if len(password) > BYTES_MAX:
        return False
    try:
        return _HASHER.verify(against, normalize_password(password).encode("utf-8", "replace"))
    except (Argon2Error, InvalidHashError):
        return False
