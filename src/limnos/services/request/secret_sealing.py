"""Secrets at rest: sealed by AES-GCM before they are written, opened where an outside system is reached.

May import `files` for the file of keys, `model`, `telemetry`, and cryptography. Knows neither stores nor requests: properties in, properties out. What is secret is
known as when properties are shown (`catalog_properties`). What no key here opens stays sealed, and is refused by name where it would be used. Decision
record 0099.
"""

from __future__ import annotations

import base64
import os
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from limnos.files.key_file import add_key, keys_read
from limnos.model.errors import CannotStart, StorageMisconfigured
from limnos.model.sealed_secrets import KEY_BYTES, SEALED, keys_of, spell_sealed
from limnos.services.request.catalog_properties import is_secret, replace_passwords
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

log = get_logger("limnos.storage")
_NONCE_BYTES: Final = 12


class _SealingKey(NamedTuple):
    name: str
    cipher: AESGCM


def key_name(key: bytes) -> str:
    """Return the id of a key, which tells nothing of it."""
    return sha256(b"limnos key\0" + key).hexdigest()[:16]


class SealingKeys:
    """The keys of a server: the newest seals, all open. Those of a file are read again when it has changed."""

    def __init__(self, given: Sequence[bytes] = (), *, file: Path | None = None, makes: bool = False) -> None:
        self._given = tuple(given)
        self._file = file
        self.makes = makes and file is not None and not given
        """Whether this server itself makes the keys, in its file."""
        self._read_at: object = None
        self._held: dict[str, _SealingKey] = {}

    def begin(self) -> None:
        """Read the keys, and make the first one where this server makes them. Raises CannotStart."""
        if self.makes and self._file is not None and not keys_read(self._file):
            add_key(self._file, os.urandom(KEY_BYTES), only_first=True)
            log.info("a key that seals secrets was made: keep a copy of its file", file=str(self._file))
        self._held = self._all()

    def renew(self) -> bool:
        """Make a further key, which seals from now on; says False where others make them, and reads what they made."""
        if self.makes and self._file is not None:
            add_key(self._file, os.urandom(KEY_BYTES))
        self._held = self._all()
        return self.makes

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of the keys that are held, oldest first."""
        return tuple(self._fresh())

    @property
    def current(self) -> str | None:
        """The id of the key that seals; None where secrets are not sealed."""
        return next(reversed(self._fresh()), None)

    def sealed(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return properties with every secret under the newest key, also those that were under another; without keys as they are.

        What cannot be opened stays as it is.
        """
        held = self._fresh()
        if not held:
            return dict(properties)
        newest = next(reversed(held.values()))
        return {name: self._sealed(name, value, newest=newest) for name, value in properties.items()}

    def opened(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return properties with their secrets open, as far as the keys are here."""
        return {name: self._opened(name, value) for name, value in properties.items()}

    def sealed_text(self, name: str, text: str) -> str:
        """Return one secret as `sealed` does, under a name that is one of a secret."""
        return self.sealed({name: text})[name]

    def opened_text(self, name: str, text: str) -> str:
        """Return one secret open. Raises StorageMisconfigured, naming the key, when it is not here."""
        found = self._opened(name, text)
        lacking = sorted(keys_of(found))
        if lacking:
            raise StorageMisconfigured(
                f"A secret ({name}) is sealed under key {lacking[0]}, which this server does not have: whoever runs it puts that key into its file of keys ('limnos server check' names the file)"
            )
        return found

    def _sealed(self, name: str, value: str, *, newest: _SealingKey) -> str:
        if value and is_secret(name):
            return value if keys_of(value) == {newest.name} else _seal_text(name, self._opened(name, value), key=newest)
        return replace_passwords(
            value,
            lambda found: (
                found if keys_of(found) == {newest.name} else _seal_text(name, self._opened(name, found), key=newest)
            ),
        )

    def _opened(self, name: str, value: str) -> str:
        return SEALED.sub(lambda found: self._open_text(name, found), value) if "limnos-sealed-" in value else value

    def _open_text(self, name: str, found: re.Match[str]) -> str:
        key = self._held.get(found[1]) or self._fresh().get(found[1])
        if key is None:
            return found[0]
        data = base64.urlsafe_b64decode(found[2] + "=" * (-len(found[2]) % 4))
        try:
            return key.cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], name.encode()).decode()
        except InvalidTag:
            return found[0]

    def _fresh(self) -> dict[str, _SealingKey]:
        """Return the keys, read again when their file is another one by now."""
        if self._file is not None and _file_stamp(self._file) != self._read_at:
            self._held = self._all()
        return self._held

    def _all(self) -> dict[str, _SealingKey]:
        """Read all keys; those that were held stay readable for as long as this process lives, whatever became of their file."""
        kept = self._held
        self._read_at = None if self._file is None else _file_stamp(self._file)
        found = [*self._of_file(), *self._given]
        read = {key_name(key): _SealingKey(key_name(key), AESGCM(key)) for key in found}
        return {**{name: key for name, key in kept.items() if name not in read}, **read}

    def _of_file(self) -> tuple[bytes, ...]:
        if self._file is None:
            return ()
        try:
            return keys_read(self._file)
        except CannotStart as error:
            if not self._held:
                raise
            log.warning("the file of keys is not read", file=str(self._file), why=error.why)
            return ()


def _file_stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _seal_text(name: str, text: str, *, key: _SealingKey) -> str:
    """Seal a secret; the property's name is part of what is proven, so that no secret can be put under another name."""
    if not text or SEALED.search(text):
        return text
    nonce = os.urandom(_NONCE_BYTES)
    data = nonce + key.cipher.encrypt(nonce, text.encode(), name.encode())
    return spell_sealed(key.name, base64.urlsafe_b64encode(data).rstrip(b"=").decode())


def is_unsealed_secret(name: str, value: str) -> bool:
    """Say whether a property holds a secret that is not sealed."""
    if is_secret(name):
        return bool(value) and not keys_of(value)
    return replace_passwords(value, lambda text: text if not text or keys_of(text) else "\0") != value
