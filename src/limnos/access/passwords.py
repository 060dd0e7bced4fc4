"""Passwords: what one must be, and Argon2id over it. Pure but for the randomness of a salt.

May import `model` and argon2. Knows no store and no thread: a hash takes tens of milliseconds and 64 MiB, so whoever asks for one does that
beside the loop. One way of writing a letter counts (Unicode's NFC): keyboards differ in what they send.
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
"""RFC 9106's second choice, on one thread: as many are hashed at a time as there are threads for it."""
DUMMY_HASH: Final = "$argon2id$v=19$m=65536,t=3,p=1$bm9ib2R5J3Mgc2FsdC4uLg$hnyqq2MzaMvVVxE1hS8bZpIu7+KdH5eQbW2DnSkEoyM"
"""Compared with where there is no user of the name, so that both take as long; no password is known to have it."""


def normalize_password(password: str) -> str:
    """Return a password as it is hashed."""
    return unicodedata.normalize("NFC", password)


def check_password(password: str, *, user: str) -> str:
    """Return a new password as it is hashed. Raises BadRequest for one that is too short or long, holds what nobody can type, or tells the name."""
    found = normalize_password(password)
    if _CONTROL.search(found) or len(found.encode("utf-8", "replace")) > BYTES_MAX:
        raise BadRequest(f"A password has no control characters and {BYTES_MAX} bytes at most")
    if len(found) < CHARACTERS_MIN or len(set(found)) <= 2:
        raise BadRequest(
            f"A password has {CHARACTERS_MIN} characters at least, more than two of them different: use a few words"
        )
    if user.casefold() in found.casefold():
        raise BadRequest("A password does not hold the user's name: choose another one")
    return found


def hash_password(password: str) -> str:
    """Hash a password that was checked."""
    return _HASHER.hash(password)


def is_password(password: str, against: str) -> bool:
    """Say whether a text is the password of a hash."""
    if len(password) > BYTES_MAX:
        return False
    try:
        return _HASHER.verify(against, normalize_password(password).encode("utf-8", "replace"))
    except (Argon2Error, InvalidHashError):
        return False
