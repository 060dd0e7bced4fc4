# SPDX-License-Identifier: Apache-2.0
"""Calls on the server itself: version, public settings, the caller.

Gravitino REST and Limnos' own API.
"""

from __future__ import annotations

from limnos.client.flow import API, OWN, ClientScope, Flow, Resource, S, call, verb
from limnos.client.values import IssuerClient, Json, Version

DEFAULT_SEPARATOR = ":"


class Server(Resource[S]):
    """Calls about the server itself (version, public settings, login issuer) and about the caller."""

    @verb
    def version(self) -> Flow[Version]:
        """Return the Gravitino version that the server implements."""
        return call("GET", f"{API}/version", answer=Version, field="version")

    @verb
    def configs(self) -> Flow[Json]:
        """Return the settings that the server publishes to all clients."""
        return call("GET", "/configs", answer=Json)

    @verb
    def issuer(self) -> Flow[IssuerClient | None]:
        """Return the OpenID Connect issuer for browser logins, and its public client; None if there is none."""
        configs = yield from call("GET", "/configs", answer=Json)
        entries = [configs.get(f"gravitino.authenticator.oauth.{name}") for name in ("authority", "clientId", "scope")]
        url, client_id, scope = entries
        if not isinstance(url, str) or not isinstance(client_id, str):
            return None
        return IssuerClient(url, client_id, scope if isinstance(scope, str) else "openid")

    @verb
    def whoami(self) -> Flow[str]:
        """Return the user name under which the server authenticates the caller."""
        return call("GET", f"{OWN}/whoami", answer=str, field="user")


def separator(scope: ClientScope) -> Flow[str]:
    """Return the server's separator of nested namespaces; requested once per client."""
    if scope.separator is None:
        configs = yield from call("GET", "/configs", answer=Json)
        scope.separator = str(configs.get("gravitino.schema.separator", DEFAULT_SEPARATOR))
    return scope.separator
