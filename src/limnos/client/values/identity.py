# SPDX-License-Identifier: Apache-2.0
"""Values of the server's responses about users, groups, roles, tokens, sign-in and explanations of decisions.

Must not know HTTP.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from limnos.client.values.shared import AuditInfo, ObjectName


class User(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A member of a metalake. Requests of a disabled user are refused."""

    name: str
    roles: tuple[str, ...] = ()
    enabled: bool = True
    external_id: str | None = None
    audit: AuditInfo = AuditInfo()


class Group(msgspec.Struct, frozen=True, rename="camel"):
    """A group of a metalake, with the roles that it holds."""

    name: str
    roles: tuple[str, ...] = ()
    external_id: str | None = None
    audit: AuditInfo = AuditInfo()


class Privilege(msgspec.Struct, frozen=True):
    """A privilege of a role on one object, allowed or denied."""

    name: str
    condition: Literal["allow", "deny"] = "allow"


class SecurableObject(msgspec.Struct, frozen=True, rename="camel"):
    """A securable object of a role: its Gravitino type and full name, and the role's privileges on it."""

    full_name: str
    type: str
    privileges: tuple[Privilege, ...] = ()


class Role(msgspec.Struct, frozen=True, rename="camel"):
    """A role with all of its privileges, by object."""

    name: str
    securable_objects: tuple[SecurableObject, ...] = ()
    properties: dict[str, str] | None = None
    audit: AuditInfo = AuditInfo()


class Owner(msgspec.Struct, frozen=True):
    """The owner of an object; `type` is `user` or `group`."""

    name: str
    type: str


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An API token without its secret. Times are ISO 8601 strings in UTC."""

    id: int | str
    user: str
    name: str | None = None
    created_at: int | float | str | None = None
    expires_at: int | float | str | None = None
    revoked: bool = False
    trust: str | None = None
    state: str | None = None
    """`valid`, or why the token is of no effect, such as `user missing`; None from an older server."""


class NewToken(msgspec.Struct, frozen=True):
    """A new API token. `token` is the secret; no later response contains it."""

    id: int | str
    token: str
    user: str
    expires_at: int | float | str | None = None


class LoginResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a login: a token that expires, and after a login with a password a refresh token."""

    user: str
    token: str
    expires_in_s: int
    refresh_token: str | None = None
    refresh_expires_in_s: int | None = None


class ConsoleCode(msgspec.Struct, frozen=True):
    """A code that opens one session of the console. `public_url` is the server's URL for browsers, if it has one."""

    code: str
    expires_in_s: int
    public_url: str | None = None


class IssuerClient(msgspec.Struct, frozen=True):
    """An OpenID Connect issuer for browser logins, and its public client."""

    url: str
    client_id: str
    scope: str


class ServiceAccountInfo(msgspec.Struct, frozen=True):
    """A service account: the count of active secrets, and the latest expiry; None if a secret never expires."""

    user: str
    secrets: int
    newest_at: int | float | str | None = None
    ends_at: int | float | str | None = None


class SecretInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A secret of a service account, without its value."""

    id: int | str
    created_at: int | float | str | None = None
    expires_at: int | float | str | None = None
    ended: bool = False
    state: str | None = None
    """`valid`, or why the secret is of no effect, such as `user missing`; None from an older server."""


class NewSecret(msgspec.Struct, frozen=True):
    """A new secret, in the form of a client's `credential` property; no later response contains it."""

    id: int | str
    client_id: str
    client_secret: str
    expires_at: int | float | str | None = None


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A reason of a decision: its kind, the privilege and object, and the role or group that grants it."""

    kind: str = ""
    privilege: str | None = None
    object: ObjectName | str | None = None
    object_kind: str | None = None
    role: str | None = None
    group: str | None = None
    clause: int = 0
    """Missing privileges of one clause are alternatives: one of them is enough."""

    @property
    def object_name(self) -> str:
        """The object's path as a string, for example `main.a.t`; empty if the factor names no object."""
        return _name(self.object)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """An access decision: the action, its target, whether it is allowed, and the reasons."""

    allowed: bool = False
    action: str = ""
    target: ObjectName | str | None = None
    user: str | None = None
    factors: tuple[Factor, ...] = ()
    message: str | None = None

    @property
    def target_name(self) -> str:
        """The target's path as a string, for example `main.a.t`; empty if the decision has no target."""
        return _name(self.target)

    @property
    def sentence(self) -> str:
        """The decision as a sentence. The server doubles percent signs for clients that format messages."""
        return (self.message or "").replace("%%", "%")


def _name(named: ObjectName | str | None) -> str:
    return named.name if isinstance(named, ObjectName) else named or ""


class Explanation(msgspec.Struct, frozen=True):
    """An access decision, with suggestions of grants that would change it."""

    decision: Decision
    suggestions: tuple[str, ...] = ()
