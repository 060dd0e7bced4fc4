"""Calls on storage (own API): whether a catalog's storage does what tables need, and the keys that seal secrets.

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, verb
from limnos.client.values import SecretKeys, StorageCheckResult


class Storage(Resource[S]):
    """Storage of catalogs."""

    __slots__ = ()

    @verb
    def check(self, catalog: str) -> Flow[StorageCheckResult]:
        """Try to write, list, read and delete in a catalog's warehouse, and credentials for one place."""
        url = self.own_url("catalogs", catalog, "storage", "check")
        return call("POST", url, answer=StorageCheckResult)

    @verb
    def keys(self) -> Flow[SecretKeys]:
        """Tell which keys seal secrets, by their ids. For service admins."""
        return call("GET", f"{OWN}/storage/keys", answer=SecretKeys)

    @verb
    def rotate_key(self) -> Flow[SecretKeys]:
        """Put every catalog's secrets under the newest key, a new one where the server makes them. For service admins."""
        return call("POST", f"{OWN}/storage/keys/rotate", answer=SecretKeys)
