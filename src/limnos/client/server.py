"""Calls on the server itself: version, published settings, who one is.

May import this room. Gravitino REST and Limnos' own API.
"""

from __future__ import annotations

import msgspec

from limnos.client.flow import Flow, Resource, S, Scope, decode, request, verb
from limnos.client.paths import API, OWN
from limnos.client.values import IssuerClient, Json, Version

DEFAULT_SEPARATOR = ":"


class _VersionAnswer(msgspec.Struct):
    version: Version


class _WhoAnswer(msgspec.Struct):
    user: str


class Server(Resource[S]):
    """The server and the caller."""

    __slots__ = ()

    @verb
    def version(self) -> Flow[Version]:
        """Tell which Gravitino version the server speaks for."""
        reply = yield request("GET", f"{API}/version")
        return decode(reply, _VersionAnswer).version

    @verb
    def configs(self) -> Flow[Json]:
        """Read the settings that the server shows to everyone."""
        reply = yield request("GET", "/configs")
        return decode(reply, Json)

    @verb
    def issuer(self) -> Flow[IssuerClient | None]:
        """Read at which issuer people sign in in a browser, and as which public client; None where there is none."""
        configs = decode((yield request("GET", "/configs")), Json)
        told = [configs.get(f"gravitino.authenticator.oauth.{name}") for name in ("authority", "clientId", "scope")]
        url, client_id, scope = told
        if not isinstance(url, str) or not isinstance(client_id, str):
            return None
        return IssuerClient(url, client_id, scope if isinstance(scope, str) else "openid")

    @verb
    def whoami(self) -> Flow[str]:
        """Tell which user the server takes the caller for."""
        reply = yield request("GET", f"{OWN}/whoami")
        return decode(reply, _WhoAnswer).user


def separator(scope: Scope) -> Flow[str]:
    """Learn how the server joins nested namespaces in one string; asked once per client."""
    if scope.separator is None:
        configs = decode((yield request("GET", "/configs")), Json)
        scope.separator = str(configs.get("gravitino.schema.separator", DEFAULT_SEPARATOR))
    return scope.separator
