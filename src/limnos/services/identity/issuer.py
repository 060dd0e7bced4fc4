"""External token issuer: the interface that services use; `limnos.app` fetches its keys.

May import `model`. Must not know the network or any wire format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from limnos.model.errors import AuthenticationFailed
from limnos.services.request.node_services import ComponentKey

if TYPE_CHECKING:
    from limnos.model.principals import IssuerIdentity


class PublicClient(NamedTuple):
    """The settings with which programs let people sign in at the issuer. Clients read these field names."""

    authority: str
    clientId: str  # noqa: N815 - Gravitino's
    scope: str


class Issuer(Protocol):
    """Checks tokens of the external issuer, and has its settings."""

    metalakes: tuple[str, ...]
    """The metalakes that learn of users and groups from its tokens."""
    remember_s: float
    """How long a verified token is not verified again, in seconds."""
    client: PublicClient | None
    """The public client for signing in with a browser, if the settings name one."""

    async def identity(self, text: str) -> IssuerIdentity:
        """Verify a token. Raises AuthenticationFailed; ServiceUnavailable if the issuer's keys cannot be fetched."""
        ...


class NoIssuer:
    """The issuer of a server whose settings name none."""

    metalakes: tuple[str, ...] = ()
    remember_s = 0.0
    client: PublicClient | None = None

    async def identity(self, text: str) -> IssuerIdentity:
        """Refuse every token. Raises AuthenticationFailed."""
        raise AuthenticationFailed(
            f"No outside issuer is set up here whose token of {len(text)} bytes could be checked"
        )


ISSUER: ComponentKey[Issuer] = ComponentKey("issuer", lambda _: NoIssuer())
