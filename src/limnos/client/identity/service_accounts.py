# SPDX-License-Identifier: Apache-2.0
"""Calls on secrets of service accounts (own API)."""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, segments, verb
from limnos.client.values import NewSecret, SecretInfo, ServiceAccountInfo


class ServiceAccounts(Resource[S]):
    """Calls on the secrets of service accounts, for service admins."""

    @verb
    def list(self) -> Flow[tuple[ServiceAccountInfo, ...]]:
        """List the service accounts that have an active secret."""
        return call("GET", f"{OWN}/service-accounts", answer=tuple[ServiceAccountInfo, ...], field="service_accounts")

    @verb
    def list_secrets(self, user: str) -> Flow[tuple[SecretInfo, ...]]:
        """List a service account's secrets without their values, including revoked and expired secrets."""
        return call("GET", f"{OWN}/users{segments(user)}/secrets", answer=tuple[SecretInfo, ...], field="secrets")

    @verb
    def create_secret(self, user: str, *, expires_in_s: int | None = None) -> Flow[NewSecret]:
        """Create a secret. Only this response contains its value. Two secrets can be active at a time."""
        body = {"expires_in_s": expires_in_s}
        return call("POST", f"{OWN}/users{segments(user)}/secrets", answer=NewSecret, body=body)

    @verb
    def end_secret(self, user: str, secret_id: int | str) -> Flow[bool]:
        """Revoke a secret and the tokens that were issued for it. Returns whether it was active."""
        url = f"{OWN}/users{segments(user)}/secrets{segments(str(secret_id))}"
        return call("DELETE", url, answer=bool, field="ended")
