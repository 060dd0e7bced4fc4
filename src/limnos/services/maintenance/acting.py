"""Acting for a user: a task maintains a table on behalf of a user, with a separate token.

May import the layers below. Must not know operations. The secret of the token never leaves the process, and the token
is revoked afterwards. So restrictions, ownership, the audit and the change feed treat the work as that of the user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Self

from limnos.access.authentication import Credential, hash_secret, new_secret
from limnos.model.entities import Principal, Token
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.names.path import Levels
from limnos.services.maintenance.policies import EffectivePolicy
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import ancestors_read
from limnos.store.ancestry import path_of
from limnos.store.identity.principals import principal_by_id_read
from limnos.store.objects.owners import owner_read
from limnos.store.sql import Load
from limnos.store.tx import Tx

_TOKEN_MS: Final = 600_000
_RENEW_MS: Final = 60_000
"""The age at which a round replaces a token before it begins with another table, in milliseconds."""


class ResponsibleUser(NamedTuple):
    """The user on whose behalf a table is maintained, and the name of the policy; `refusal` is the reason if no user is
    responsible.
    """

    user: str
    policy: str | None
    refusal: str | None = None


class ActingRequest(NamedTuple):
    """A request that a task makes on behalf of a user, about one table."""

    ctx: Context
    scope: RequestScope
    path: Levels
    """The table's path below the catalog."""


async def responsible_user(services: NodeServices, table_id: int, *, policy: EffectivePolicy | None) -> ResponsibleUser:
    """Return the user on whose behalf a table is maintained: the policy's owner; without a policy, the table's owner.

    The result has a refusal if that owner is a group or missing.
    """
    object_id = table_id if policy is None else policy.id
    what = "the table" if policy is None else "the policy"
    name = None if policy is None else policy.name
    owner = await services.gate.look_up(lambda: _owner_read(object_id))
    if owner is None or owner.kind is not Kind.USER:
        reason = "has no owner" if owner is None else f"is owned by group {owner.name}"
        return ResponsibleUser("", name, f"{what} {reason}: set a user as owner, for whom the server can act")
    return ResponsibleUser(owner.name, name)


def _owner_read(object_id: int) -> Load[Principal | None]:
    owner_id = yield from owner_read(object_id)
    return None if owner_id is None else (yield from principal_by_id_read(owner_id))


def ended_secret(tx: Tx, root_id: int | None) -> str | None:
    """Return the reason why an operation gets no token: the service account's secret with which it was requested was
    revoked or has expired.

    Returns None if the secret is valid, or if the operation was requested with another credential, such as a session,
    which may have ended.
    """
    root = None if root_id is None else tx.tokens.by_id(root_id)
    if root is None or root.purpose is not TokenPurpose.CLIENT or not (root.revoked or root.is_over(tx.now_ms)):
        return None
    return f"the secret with which {root.user} requested this has ended: request it again with a valid one"


@asynccontextmanager
async def acting_as(
    work: TaskContext,
    services: NodeServices,
    *,
    user: str,
    table_id: int,
    name: str,
    trust: TokenTrust = TokenTrust.PROVEN,
    root_id: int | None = None,
) -> AsyncIterator[ActingRequest | None]:
    """Yield a request on behalf of a user about a table; None if the table was dropped.

    Args:
        work: The task.
        services: The node's services.
        user: The user.
        table_id: The table.
        name: The name of the token and of the request, for the audit.
        trust: The trust of the token.
        root_id: The root of the token family, if the user authenticated with a token.

    Raises:
        PermissionDenied: The user is a service account, and the secret with which the work was requested was revoked or
            has expired.
    """
    token = await _token_create(work, user=user, name=name.replace("-", " ", 1), trust=trust, root_id=root_id)
    try:
        yield await _request_of(services, token, table_id=table_id, name=name)
    finally:
        await work.submit(lambda tx: tx.tokens.revoke(token))


class ActingTokens:
    """The tokens of one round of a task, which acts for few users about many tables: one token for each user.

    An async context manager. Each new or revoked token makes concurrent writes repeat their access decisions, so few
    tokens are created.
    """

    def __init__(self, work: TaskContext, services: NodeServices, *, name: str) -> None:
        self._work = work
        self._services = services
        self._name = name
        self._tokens: dict[str, Token] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for user in list(self._tokens):
            await self.end(user)

    async def request(self, *, user: str, table_id: int, name: str) -> ActingRequest | None:
        """Return a request on behalf of a user about a table, named for the audit; None if the table was dropped.

        The token is valid for at least nine minutes.
        """
        token = self._tokens.get(user)
        if token is not None and not 0 <= self._services.store.time.now_ms() - token.created_at < _RENEW_MS:
            await self.end(user)
            token = None
        if token is None:
            token = self._tokens[user] = await _token_create(self._work, user=user, name=self._name)
        return await _request_of(self._services, token, table_id=table_id, name=name)

    async def end(self, user: str) -> None:
        """Revoke a user's token, if there is one. The next request gets a new one."""
        token = self._tokens.pop(user, None)
        if token is not None:
            await self._work.submit(lambda tx: tx.tokens.revoke(token))


async def _token_create(
    work: TaskContext, *, user: str, name: str, trust: TokenTrust = TokenTrust.PROVEN, root_id: int | None = None
) -> Token:
    """Create the token of a user for whom the server acts. Raises PermissionDenied as `acting_as`."""
    secret_hash = hash_secret(new_secret())

    def create(tx: Tx) -> Token:
        refusal = ended_secret(tx, root_id)
        if refusal is not None:
            raise PermissionDenied(refusal)
        return tx.tokens.create(
            user=user, name=name, secret_hash=secret_hash, expires_at=tx.now_ms + _TOKEN_MS, trust=trust,
            root_id=root_id,
        )  # fmt: skip

    return await work.submit(create)


async def _request_of(services: NodeServices, token: Token, *, table_id: int, name: str) -> ActingRequest | None:
    """Build a request about a table that is authenticated by a token; None if the table was dropped."""
    ctx = Context(services, Credential(None, token.id, token.secret_hash), name)
    ancestry = await ctx.look_up(lambda: ancestors_read([table_id]))
    path = path_of(table_id, ancestry)
    metalake = next((name for _, kind, name in ancestry.values() if kind is Kind.METALAKE), None)
    if path is None or metalake is None:
        return None
    return ActingRequest(ctx, RequestScope(metalake, path[0]), path[1:])
