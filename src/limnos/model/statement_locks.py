# SPDX-License-Identifier: Apache-2.0
"""Locks of SQL++ statements as values: their keys, modes and rows, and the secret by which a client proves one.

The components of a key are separate, so no two names have the same key.
"""

from __future__ import annotations

from enum import IntEnum
from hashlib import blake2b
from typing import Final, NamedTuple

from limnos.names.dataverse import DataverseName
from limnos.names.display import render


class LockKind(IntEnum):
    """The kind of a locked object, in locking order. A view is locked as a dataset; an index has no separate lock."""

    DATAVERSE = 1
    DATATYPE = 2
    DATASET = 3
    FUNCTION = 4
    SYNONYM = 5
    LIBRARY = 6


class LockMode(IntEnum):
    """The mode of a lock. Objects other than datasets use READ and WRITE only."""

    READ = 1
    MODIFY = 2
    INDEX_BUILD = 3
    EXCLUSIVE_MODIFY = 4
    UPGRADED_WRITE = 5
    WRITE = 6


class LockKey(NamedTuple):
    """The key of a lock: catalog, kind, dataverse and object name (`entity`, empty for a dataverse)."""

    catalog_id: int
    kind: LockKind
    dataverse: DataverseName
    entity: str = ""

    def __str__(self) -> str:
        parts = (*self.dataverse.parts, self.entity) if self.entity else self.dataverse.parts
        return f"{self.kind.name.lower()} {render(parts)}"


class LockRequest(NamedTuple):
    """A request for a lock: its key and mode."""

    key: LockKey
    mode: LockMode


class LockRow(NamedTuple):
    """A held or requested lock. `mode` is None until it is granted and differs from `wanted` during an upgrade.

    Tokens increase: an older request has a smaller token.
    """

    token: int
    key: LockKey
    mode: LockMode | None
    wanted: LockMode

    @property
    def waits(self) -> bool:
        """Whether the requested mode is not granted yet."""
        return self.mode is not self.wanted


_READ, _MODIFY, _BUILD = LockMode.READ, LockMode.MODIFY, LockMode.INDEX_BUILD
_EXCLUSIVE, _UPGRADED, _WRITE = LockMode.EXCLUSIVE_MODIFY, LockMode.UPGRADED_WRITE, LockMode.WRITE
_CONTAINED: Final = {
    _READ: frozenset({_READ}),
    _MODIFY: frozenset({_READ, _MODIFY}),
    _BUILD: frozenset({_READ, _BUILD}),
    _EXCLUSIVE: frozenset({_READ, _MODIFY, _BUILD, _EXCLUSIVE}),
    _UPGRADED: frozenset(LockMode),
    _WRITE: frozenset(LockMode),
}


def secret_of(holder: str, token: int) -> str:
    """Return the secret of a lock request, derived from its holder and token, which proves that a client holds the
    lock.
    """
    return blake2b(b"%d" % token, key=holder.encode(), digest_size=16).hexdigest()


def contains(mode: LockMode, lock_mode: LockMode) -> bool:
    """Return whether a held mode includes all rights of another mode."""
    return lock_mode in _CONTAINED[mode]
