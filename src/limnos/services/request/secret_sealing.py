# SPDX-License-Identifier: Apache-2.0
"""Secret sealing: encrypts secret properties with AES-GCM before they are written, and decrypts them for use.

Must not know stores or requests. `catalog_properties` defines which properties are secret. A secret whose key this
server lacks stays encrypted ("sealed"), and the error at its use names the key. Decision record 0099.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from limnos.files.key_file import add_key, keys_read
from limnos.model.errors import CannotStart, StorageMisconfigured
from limnos.model.sealed_secrets import KEY_BYTES, SEALED, keys_of, spell_sealed
from limnos.services.request.catalog_properties import is_secret, replace_passwords
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.storage")
_NONCE_BYTES: Final = 12


class _SealingKey(NamedTuple):
    name: str
    cipher: AESGCM


def key_name(key: bytes) -> str:
    """Return the id of a key: a hash that reveals nothing of the key."""
    return sha256(b"limnos key\0" + key).hexdigest()[:16]


class SealingKeys:
    """A server's encryption keys: the newest key encrypts, all keys decrypt.

    A key file is read again when it has changed.
    """

    def __init__(self, arguments: Sequence[bytes] = (), *, file: Path | None = None, makes: bool = False) -> None:
        self._given = tuple(arguments)
        self._file = file
        self.makes = makes and file is not None and not arguments
        """Whether this server manages its keys: it creates those in its file."""
        self._read_at: object = None
        self._held: dict[str, _SealingKey] = {}

    def begin(self) -> None:
        """Read the keys; create the first key if this server manages its keys.

        Raises CannotStart if the key file cannot be used.
        """
        if self.makes and self._file is not None and not keys_read(self._file):
            add_key(self._file, os.urandom(KEY_BYTES), only_first=True)
            log.info("a key that seals secrets was created: keep a copy of its file", file=str(self._file))
        self._held = self._all()

    def renew(self) -> bool:
        """Create a new key, with which secrets are encrypted from now on.

        Returns False if this server does not manage its keys; their file is then read again.
        """
        if self.makes and self._file is not None:
            add_key(self._file, os.urandom(KEY_BYTES))
        self._held = self._all()
        return self.makes

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of all keys, oldest first."""
        return tuple(self._fresh())

    @property
    def current(self) -> str | None:
        """The id of the key that encrypts; None if secrets are not sealed."""
        return next(reversed(self._fresh()), None)

    def seal_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties with every secret encrypted with the newest key, including secrets that were encrypted
        with an older key.

        Without keys they are returned unchanged. A secret that cannot be decrypted is returned unchanged.
        """
        sealing_key = self._fresh()
        if not sealing_key:
            return dict(properties)
        newest = next(reversed(sealing_key.values()))
        return {name: self._seal_value(name, value, newest=newest) for name, value in properties.items()}

    def open_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties with their secrets decrypted, except those whose keys this server lacks."""
        return {name: self._open_value(name, value) for name, value in properties.items()}

    def sealed_text(self, name: str, text: str) -> str:
        """Encrypt one secret. `name` must be the name of a secret property; it is authenticated as associated data."""
        return self.seal_properties({name: text})[name]

    def opened_text(self, name: str, text: str) -> str:
        """Decrypt one secret. Raises StorageMisconfigured, which names the key, if this server lacks it."""
        result = self._open_value(name, text)
        missing_key_names = sorted(keys_of(result))
        if missing_key_names:
            raise StorageMisconfigured(
                f"A secret ({name}) is sealed under key {missing_key_names[0]}, which this server does not have: the"
                " operator must add that key to its key file ('limnos server check' names the file)"
            )
        return result

    def _seal_value(self, name: str, value: str, *, newest: _SealingKey) -> str:
        if value and is_secret(name):
            return (
                value
                if keys_of(value) == {newest.name}
                else _seal_text(name, self._open_value(name, value), key=newest)
            )
        return replace_passwords(
            value,
            lambda result: (
                result
                if keys_of(result) == {newest.name}
                else _seal_text(name, self._open_value(name, result), key=newest)
            ),
        )

    def _open_value(self, name: str, value: str) -> str:
        return SEALED.sub(lambda match: self._open_text(name, match), value) if "limnos-sealed-" in value else value

    def _open_text(self, name: str, match: re.Match[str]) -> str:
        key = self._held.get(match[1]) or self._fresh().get(match[1])
        if key is None:
            return match[0]
        data = base64.urlsafe_b64decode(match[2] + "=" * (-len(match[2]) % 4))
        try:
            return key.cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], name.encode()).decode()
        except InvalidTag:
            return match[0]

    def _fresh(self) -> dict[str, _SealingKey]:
        """Return the keys, read again if their file has changed."""
        if self._file is not None and _file_stamp(self._file) != self._read_at:
            self._held = self._all()
        return self._held

    def _all(self) -> dict[str, _SealingKey]:
        """Read all keys.

        Keys that this process has read stay usable until it ends, even if they are removed from the file.
        """
        sealing_key = self._held
        self._read_at = None if self._file is None else _file_stamp(self._file)
        results = [*self._of_file(), *self._given]
        read = {key_name(key): _SealingKey(key_name(key), AESGCM(key)) for key in results}
        return {**{name: key for name, key in sealing_key.items() if name not in read}, **read}

    def _of_file(self) -> tuple[bytes, ...]:
        if self._file is None:
            return ()
        try:
            return keys_read(self._file)
        except CannotStart as error:
            if not self._held:
                raise
            log.warning("the key file cannot be read", file=str(self._file), why=error.why)
            return ()


def _file_stamp(path: Path) -> object:
    try:
        result = path.stat()
    except OSError:
        return None
    return result.st_ino, result.st_mtime_ns, result.st_size


def _seal_text(name: str, text: str, *, key: _SealingKey) -> str:
    """Encrypt a secret.

    The property's name is authenticated with it (associated data), so that a secret cannot be moved to another
    property.
    """
    if not text or SEALED.search(text):
        return text
    nonce = os.urandom(_NONCE_BYTES)
    data = nonce + key.cipher.encrypt(nonce, text.encode(), name.encode())
    return spell_sealed(key.name, base64.urlsafe_b64encode(data).rstrip(b"=").decode())


def is_unsealed_secret(name: str, value: str) -> bool:
    """Return whether a property contains a secret that is not sealed."""
    if is_secret(name):
        return bool(value) and not keys_of(value)
    return replace_passwords(value, lambda text: text if not text or keys_of(text) else "\0") != value
