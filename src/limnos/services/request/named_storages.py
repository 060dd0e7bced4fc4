"""How a catalog's files are reached: by its own properties, or by a storage that the server's settings name; with secrets open.

May import `files` for what is allowed, `sealing` and `model`. Values, made once at the start. What a catalog's record holds is never used by
itself to reach a store: it goes through here. Decision records 0099 and 0100.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.files import STORAGE, AllowedStorage, check_usable, root_of
from limnos.model.errors import BadRequest
from limnos.services.request.secret_sealing import SealingKeys

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONNECTION: Final = re.compile(r"(?:s3|client|gcs|adls|oss|azure)[.-]")
"""Properties by which a store is reached, and under whose keys."""
_SCOPES: Final = ("locations", "metalakes")


class NamedStorage(NamedTuple):
    """A storage of the settings: how its store is reached, below which locations, by catalogs of which metalakes (none named: of all)."""

    properties: Mapping[str, str]
    locations: tuple[str, ...]
    metalakes: tuple[str, ...] = ()


class NamedStorages(NamedTuple):
    """The storages of the settings by name, and the keys of sealed secrets."""

    named: Mapping[str, NamedStorage] = {}
    keys: SealingKeys = SealingKeys()  # holds none, and nothing changes that

    def stated(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Return a catalog's properties with what its storage says, if it names one. What is sealed stays so."""
        found = self._of(properties)
        if found is None:
            return properties
        own = {key: value for key, value in properties.items() if key != STORAGE and not _CONNECTION.match(key)}
        return {**own, **found.properties}

    def opened(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the properties by which a catalog's outside system is reached; a secret that no key here opens stays sealed."""
        return self.keys.opened(self.stated(properties))

    def usable(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return what `opened` does. Raises StorageFailed when a secret is sealed still, or the storage is not known."""
        found = self.opened(properties)
        check_usable(found)
        return found

    def allowed(self, properties: Mapping[str, str], allowed: AllowedStorage) -> AllowedStorage:
        """Return what a catalog may use: below its storage's locations, if it names one, which the settings open by that."""
        found = self._of(properties)
        return allowed if found is None else allowed._replace(roots=found.locations)

    def check(self, properties: Mapping[str, str], *, metalake: str) -> None:
        """Refuse a storage that is none, or not for this metalake, and properties that would bend it. Raises BadRequest."""
        name = properties.get(STORAGE)
        if name is None:
            return
        found = self.named.get(name)
        if found is None or (found.metalakes and metalake not in found.metalakes):
            raise BadRequest(
                f"Storage '{name[:100]}' is none of this server's for metalake {metalake}: whoever runs it names it in the settings, as [storage.NAME]"
            )
        own = sorted(key for key in properties if _CONNECTION.match(key))
        if own:
            raise BadRequest(
                f"Storage '{name}' says how the catalog's files are reached: leave out property '{own[0]}', or name no storage"
            )

    def _of(self, properties: Mapping[str, str]) -> NamedStorage | None:
        name = properties.get(STORAGE)
        return None if name is None else self.named.get(name)


def read_storages(told: Mapping[str, Mapping[str, str]]) -> dict[str, NamedStorage]:
    """Read the storages of the settings."""
    return {
        name: NamedStorage(
            {key: value for key, value in properties.items() if key not in _SCOPES},
            tuple(map(root_of, split_list(properties["locations"]))),
            split_list(properties.get("metalakes", "")),
        )
        for name, properties in told.items()
    }


def split_list(text: str) -> tuple[str, ...]:
    """Take a list apart that is separated by commas."""
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)
