"""Calls on the server itself: version, published settings, who one is.

May import this room. Gravitino REST and Limnos' own API.
"""

from __future__ import annotations

from limnos.client.flow import API, OWN, ClientScope, Flow, Resource, S, call, verb
from limnos.client.values import IssuerClient, Json, Version

DEFAULT_SEPARATOR = ":"


class Server(Resource[S]):
    """The server and the caller."""

    __slots__ = ()

    @verb
    def version(self) -> Flow[Version]:
        """Tell which Gravitino version the server speaks for."""
        return call("GET", f"{API}/version", answer=Version, field="version")

    @verb
    def configs(self) -> Flow[Json]:
        """Read the settings that the server shows to everyone."""
        return call("GET", "/configs", answer=Json)

    @verb
    def issuer(self) -> Flow[IssuerClient | None]:
        """Read at which issuer people sign in in a browser, and as which public client; None where there is none."""
        configs = yield from call("GET", "/configs", answer=Json)
        told = [configs.get(f"gravitino.authenticator.oauth.{name}") for name in ("authority", "clientId", "scope")]
        url, client_id, scope = told
        if not isinstance(url, str) or not isinstance(client_id, str):
            return None
        return IssuerClient(url, client_id, scope if isinstance(scope, str) else "openid")

    @verb
    def whoami(self) -> Flow[str]:
        """Tell which user the server takes the caller for."""
        return call("GET", f"{OWN}/whoami", answer=str, field="user")


def separator(scope: ClientScope) -> Flow[str]:
    """Learn how the server joins nested namespaces in one string; asked once per client."""
    if scope.separator is None:
        configs = yield from call("GET", "/configs", answer=Json)
        scope.separator = str(configs.get("gravitino.schema.separator", DEFAULT_SEPARATOR))
    return scope.separator
