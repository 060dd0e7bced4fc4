# SPDX-License-Identifier: Apache-2.0
"""Settings of access control and authentication."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.functional_validators import AfterValidator, model_validator

from limnos.config.section import SettingsSection
from limnos.config.values import Words, is_loopback


def _user(name: str) -> str:
    if not name or ":" in name or any(ord(char) < 32 for char in name):
        raise ValueError(f"'{name}' is not a user name: it must not be empty or contain ':' or control characters")
    return name


User = Annotated[str, AfterValidator(_user)]


class AccessSection(SettingsSection):
    """The settings of authentication and authorization."""

    enabled: bool = True
    """Check access by roles and owners; with `off` all users may do everything."""
    authentication: Literal["simple", "token"] | None = None
    """`token` accepts tokens only; `simple` also accepts the user name of HTTP Basic without a password, so that every
    program that reaches the server acts as any user. Unset: `token`, and `simple` for a store that an earlier
    release served.
    """
    session_s: PositiveInt = 3_600
    """The lifetime in seconds of a session that was opened with a password, until it is refreshed."""
    session_refresh_s: PositiveInt = 1_209_600
    """The time in seconds during which such a session can be refreshed without the password."""
    service_admins: Annotated[tuple[User, ...], Words] = ()
    """Users who may do everything on the server, in addition to `server.admin`: create metalakes, act as any user and
    create tokens for any, read the audit of all; separated by commas.
    """
    catalog_enable: Literal["owners", "users"] = "owners"
    """Who may enable and disable a catalog: its owners, or all users with USE_CATALOG on it (`users`, Gravitino's
    rule).
    """


def _issuer_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return url
    raise ValueError(f"'{url}' is not https://…: an issuer on another machine needs TLS")


class OidcSection(SettingsSection):
    """An external OpenID Connect issuer: its JWTs are accepted as bearer tokens in every protocol."""

    issuer: Annotated[str, AfterValidator(_issuer_url)] | None = None
    """The issuer's URL, exactly as in the claim `iss` of its tokens. Unset: none."""
    audiences: Annotated[tuple[str, ...], Words] = ()
    """Accepted values of the tokens' claim `aud`; separated by commas."""
    user_claim: str = "sub"
    """Claim that names the user: one that the issuer's users cannot choose themselves."""
    groups_claim: str | None = None
    """Claim that lists a user's groups. Unset: groups are not taken from tokens."""
    metalakes: Annotated[tuple[str, ...], Words] = ()
    """Metalakes to which users are added at their first sign-in, and whose groups the tokens name; by the names with
    which they were created.
    """
    jwks_url: Annotated[str, AfterValidator(_issuer_url)] | None = None
    """URL of the issuer's keys. Unset: the one in its discovery document."""
    client_id: str | None = None
    """The issuer's public client with which users sign in in a browser (`limnos login --device`). Unset: such sign-ins
    are disabled.
    """
    scope: str = "openid offline_access"
    """The scopes that the client `oidc.client_id` requests from the issuer; `offline_access` allows sessions to be
    refreshed.
    """
    console_client_id: str | None = None
    """The issuer's client with which browsers sign in to the console. Unset: the console offers no sign-in at the
    issuer.
    """
    console_secret_file: str | None = None
    """File with the secret of `oidc.console_client_id`, read at each sign-in. Unset: a public client."""
    skew_s: NonNegativeInt = 60
    """The maximum difference between the issuer's clock and the database's, in seconds."""
    refresh_s: PositiveInt = 300
    """The interval in seconds at which keys are fetched again and accepted tokens are verified again."""
    timeout_s: PositiveFloat = 5.0
    """The maximum time for fetching the issuer's keys, in seconds."""

    @model_validator(mode="after")
    def _is_whole(self) -> OidcSection:
        if self.issuer is not None and not self.audiences:
            raise ValueError(
                "oidc.issuer needs oidc.audiences: without them the server would accept tokens for any other service of"
                " the issuer"
            )
        return self
