# SPDX-License-Identifier: Apache-2.0
"""Named storages: the connection to a catalog's files, from the catalog's properties or a storage of the settings.

The values are built once at start-up. Only this module reads connection properties of a catalog, since it decrypts
secrets. Decision records 0099 and 0100.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from limnos.files import STORAGE, AllowedStorage, check_usable, root_of
from limnos.model.errors import BadRequest
from limnos.services.request.secret_sealing import SealingKeys

_CONNECTION: Final = re.compile(r"(?:s3|client|gcs|adls|oss|azure)[.-]")
"""Properties for the connection to an object store, including keys."""
_SCOPES: Final = ("locations", "metalakes")


class NamedStorage(NamedTuple):
    """A storage of the settings: its connection properties, the locations that it covers, and the metalakes that may
    use it.

    An empty `metalakes` allows all. A metalake counts by its name in settings, which a rename does not change.
    """

    properties: Mapping[str, str]
    locations: tuple[str, ...]
    metalakes: tuple[str, ...] = ()


class MetalakeLabel(NamedTuple):
    """A metalake: its current name, for messages, and its name in settings; "" for none."""

    name: str
    setting_name: str


class NamedStorages(NamedTuple):
    """The storages of the settings by name, and the keys that decrypt secrets."""

    named: Mapping[str, NamedStorage] = {}
    keys: SealingKeys = SealingKeys()  # empty and without a file, so it never changes and may be shared

    def merge_properties(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Return a catalog's properties, with those of its named storage if it has one.

        Encrypted ("sealed") secrets are not decrypted.
        """
        storage = self._of(properties)
        if storage is None:
            return properties
        own_properties = {
            key: value for key, value in properties.items() if key != STORAGE and not _CONNECTION.match(key)
        }
        return {**own_properties, **storage.properties}

    def open_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties as `stated` does, with secrets decrypted. A secret whose key this server lacks stays
        encrypted.
        """
        return self.keys.open_properties(self.merge_properties(properties))

    def usable(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the connection properties of a catalog or its named storage, with secrets decrypted.

        Raises StorageFailed if a secret cannot be decrypted.
        """
        results = self.open_properties(properties)
        check_usable(results)
        return results

    def allowed_storage(self, properties: Mapping[str, str], allowed: AllowedStorage) -> AllowedStorage:
        """Return the storage that a catalog may use. A named storage limits it to the storage's own locations."""
        storage = self._of(properties)
        return allowed if storage is None else allowed._replace(roots=storage.locations)

    def check(self, properties: Mapping[str, str], *, metalake: MetalakeLabel) -> None:
        """Check a catalog's named storage.

        Raises BadRequest for an unknown storage, one that is not for this metalake, or a catalog that has connection
        properties of its own as well.
        """
        name = properties.get(STORAGE)
        if name is None:
            return
        storage = self.named.get(name)
        if storage is None or (storage.metalakes and metalake.setting_name not in storage.metalakes):
            raise BadRequest(
                f"Storage '{name[:100]}' is not defined on this server for metalake {metalake.name}: the operator"
                " defines it in the settings, as [storage.NAME]"
            )
        connection_keys = sorted(key for key in properties if _CONNECTION.match(key))
        if connection_keys:
            raise BadRequest(
                f"Storage '{name}' already configures access to the catalog's files: leave out property"
                f" '{connection_keys[0]}', or name no storage"
            )

    def _of(self, properties: Mapping[str, str]) -> NamedStorage | None:
        name = properties.get(STORAGE)
        return None if name is None else self.named.get(name)


def read_storages(entries: Mapping[str, Mapping[str, str]]) -> dict[str, NamedStorage]:
    """Build the named storages from the settings: a mapping from name to properties.

    `locations` and `metalakes` are comma-separated lists.
    """
    return {
        name: NamedStorage(
            {key: value for key, value in properties.items() if key not in _SCOPES},
            tuple(map(root_of, split_list(properties["locations"]))),
            split_list(properties.get("metalakes", "")),
        )
        for name, properties in entries.items()
    }


def split_list(text: str) -> tuple[str, ...]:
    """Split a comma-separated list; empty parts are dropped."""
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)
