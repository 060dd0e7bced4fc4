# SPDX-License-Identifier: Apache-2.0
"""Calls on storage (own API): checks of a catalog's storage, and the keys that seal secrets."""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, verb
from limnos.client.values import SecretKeys, StorageCheckResult


class Storage(Resource[S]):
    """Calls that check catalogs' storage and manage the keys that seal secrets."""

    @verb
    def check(self, catalog: str) -> Flow[StorageCheckResult]:
        """Check a catalog's storage: write, list, read and delete in its warehouse, and vend credentials."""
        url = self.own_url("catalogs", catalog, "storage", "check")
        return call("POST", url, answer=StorageCheckResult)

    @verb
    def keys(self) -> Flow[SecretKeys]:
        """List the ids of the keys that encrypt secrets, with their uses. For service admins."""
        return call("GET", f"{OWN}/storage/keys", answer=SecretKeys)

    @verb
    def rotate_key(self) -> Flow[SecretKeys]:
        """Re-encrypt the secrets of catalogs and webhooks under the newest key. For service admins.

        A server that manages its key file creates a new key first.
        """
        return call("POST", f"{OWN}/storage/keys/rotate", answer=SecretKeys)
