"""Calls on storage (own API): whether a catalog's storage does what tables need, and the keys that seal secrets.

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import Flow, Resource, S, decode, request, verb
from limnos.client.paths import OWN, own_url
from limnos.client.values import SecretKeys, StorageChecked


class Storage(Resource[S]):
    """Storage of catalogs."""

    __slots__ = ()

    @verb
    def check(self, catalog: str) -> Flow[StorageChecked]:
        """Try to write, list, read and delete in a catalog's warehouse, and credentials for one place."""
        url = own_url(self.scope.metalake, "catalogs", catalog, "storage", "check")
        return decode((yield request("POST", url)), StorageChecked)

    @verb
    def keys(self) -> Flow[SecretKeys]:
        """Tell which keys seal secrets, by their ids. For service admins."""
        return decode((yield request("GET", f"{OWN}/storage/keys")), SecretKeys)

    @verb
    def rotate_key(self) -> Flow[SecretKeys]:
        """Put every catalog's secrets under the newest key, a new one where the server makes them. For service admins."""
        return decode((yield request("POST", f"{OWN}/storage/keys/rotate")), SecretKeys)
