"""Settings of access control and authentication.

May import pydantic and this room.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator, model_validator

from limnos.config.section import SettingsSection
from limnos.config.values import Words, is_loopback


def _user(name: str) -> str:
    if not name or ":" in name or any(ord(char) < 32 for char in name):
        raise ValueError(f"'{name}' is no user name: it must not be empty or hold ':' or control characters")
    return name


User = Annotated[str, AfterValidator(_user)]


class AccessSection(SettingsSection):
    """The settings of authentication and authorization."""

    enabled: bool = True
    """Decide by roles and owners; `off` lets everyone do everything."""
    authentication: Literal["simple", "token"] = "simple"
    """`simple` believes the user named by Basic, beside tokens; `token` takes tokens only."""
    session_s: PositiveInt = 3_600
    """How long a session lasts that a password opened, in seconds, until it is refreshed."""
    session_refresh_s: PositiveInt = 1_209_600
    """For how long it can be refreshed without the password, in seconds."""
    service_admins: Annotated[tuple[User, ...], Words] = ()
    """Users who may make metalakes, beside `server.admin`; separated by commas."""


def _issuer_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return url
    raise ValueError(f"'{url}' is not https://…: what is not on this machine has to prove who it is")


class OidcSection(SettingsSection):
    """An external issuer of tokens (OpenID Connect): its JWTs are taken as bearer tokens, in every protocol."""

    issuer: Annotated[str, AfterValidator(_issuer_url)] | None = None
    """The issuer's URL, exactly as its tokens say it as `iss`. Unset: none."""
    audiences: Annotated[tuple[str, ...], Words] = ()
    """What tokens must say as `aud`, one of them; separated by commas."""
    user_claim: str = "sub"
    """Claim that names the user: one that users of the issuer cannot choose themselves."""
    groups_claim: str | None = None
    """Claim that lists a user's groups. Unset: tokens say nothing of groups."""
    metalakes: Annotated[tuple[str, ...], Words] = ()
    """Metalakes to which users are added when they sign in first, and whose groups the tokens' groups are."""
    jwks_url: Annotated[str, AfterValidator(_issuer_url)] | None = None
    """Where the issuer's keys are. Unset: where its discovery document says."""
    client_id: str | None = None
    """The issuer's public client by which people sign in in a browser (`limnos login --device`). Unset: they cannot."""
    scope: str = "openid offline_access"
    """What that client asks the issuer for; `offline_access` lets sessions go on."""
    console_client_id: str | None = None
    """The issuer's client by which browsers sign in to the console. Unset: the console offers no sign-in at the issuer.
    """
    console_secret_file: str | None = None
    """File with the secret of that client, read at each sign-in. Unset: a public client."""
    skew_s: NonNegativeInt = 60
    """By how much the issuer's clock may differ from the database's, in seconds."""
    refresh_s: PositiveInt = 300
    """After so many seconds keys are fetched anew and known tokens checked again."""
    timeout_s: PositiveFloat = 5.0
    """Longest time for fetching the issuer's keys, in seconds."""

    @model_validator(mode="after")
    def _is_whole(self) -> OidcSection:
        if self.issuer is not None and not self.audiences:
            raise ValueError(
                "oidc.issuer needs oidc.audiences: without them a token made for any other service of the issuer would count here"
            )
        return self
