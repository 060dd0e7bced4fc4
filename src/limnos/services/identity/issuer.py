"""An outside issuer of tokens, as the services see it; who fetches its keys stands in `limnos.app`.

May import `model`. Knows no network and no wire format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from limnos.model.errors import AuthenticationFailed
from limnos.services.request.node_services import ComponentKey

if TYPE_CHECKING:
    from limnos.model.principals import IssuerIdentity


class PublicClient(NamedTuple):
    """What people's programs must know to have them sign in at the issuer. The names are those that clients read."""

    authority: str
    clientId: str  # noqa: N815 - Gravitino's
    scope: str


class Issuer(Protocol):
    """Who checks tokens of the outside issuer, and what the settings say of it."""

    metalakes: tuple[str, ...]
    """Those that learn of users and groups by its tokens."""
    remember_s: float
    """How long a token that was found right is not checked again."""
    client: PublicClient | None
    """By which people sign in in a browser, if the settings name one."""

    async def identity(self, text: str) -> IssuerIdentity:
        """Check a token. Raises AuthenticationFailed, ServiceUnavailable when the issuer's keys cannot be had."""
        ...


class NoIssuer:
    """Stands where the settings name no issuer; nothing asks it."""

    metalakes: tuple[str, ...] = ()
    remember_s = 0.0
    client: PublicClient | None = None

    async def identity(self, text: str) -> IssuerIdentity:
        """Refuse."""
        raise AuthenticationFailed(
            f"No outside issuer is set up here whose token of {len(text)} bytes could be checked"
        )


ISSUER: ComponentKey[Issuer] = ComponentKey("issuer", lambda _: NoIssuer())
