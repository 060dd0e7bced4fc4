"""Acting for a user: a task maintains a table on behalf of a user, with a token of its own.

May import the rooms below. Must not know operations. The secret of the token never leaves the process, and the token is
revoked afterwards. So restrictions, ownership, the audit and the change feed treat the work as that of the user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from limnos.access.authentication import Credential, hash_secret, new_secret
from limnos.model.entities import Token
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
from limnos.store.tx import Tx

_TOKEN_MS: Final = 600_000


class ResponsibleUser(NamedTuple):
    """The user on whose behalf a table is maintained, and the policy; `refusal` is the reason if there is no such
    user.
    """

    user: str
    policy: str | None
    refusal: str | None = None


class ActingRequest(NamedTuple):
    """The request of a task on behalf of a user, about one table."""

    ctx: Context
    scope: RequestScope
    path: Levels
    """The table's path below the catalog."""


async def responsible_user(services: NodeServices, table_id: int, *, policy: EffectivePolicy | None) -> ResponsibleUser:
    """Return the user on whose behalf a table is maintained: the policy's owner, else the table's owner."""
    object_id = table_id if policy is None else policy.id
    what = "the table" if policy is None else "the policy"
    name = None if policy is None else policy.name
    look_up = services.gate.look_up
    owner_id = await look_up(lambda: owner_read(object_id))
    owner = None if owner_id is None else await look_up(lambda: principal_by_id_read(owner_id))
    if owner is None or owner.kind is not Kind.USER:
        reason = "has no owner" if owner is None else f"is owned by group {owner.name}"
        return ResponsibleUser("", name, f"{what} {reason}: set a user as owner, for whom the server can act")
    return ResponsibleUser(owner.name, name)


def ended_secret(tx: Tx, root_id: int | None) -> str | None:
    """Return the reason why an operation gets no token: the service account's secret that requested it has ended.

    None if it has not, or if no secret requested the operation. A session that requested it may have ended.
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
        root_id: The root of the token's line, if the user authenticated with a token.

    Raises:
        PermissionDenied: The user is a service account, and the secret that requested the work has ended.
    """
    secret_hash = hash_secret(new_secret())

    def create(tx: Tx) -> Token:
        refusal = ended_secret(tx, root_id)
        if refusal is not None:
            raise PermissionDenied(refusal)
        return tx.tokens.create(
            user=user, name=name.replace("-", " ", 1), secret_hash=secret_hash, expires_at=tx.now_ms + _TOKEN_MS,
            trust=trust, root_id=root_id,
        )  # fmt: skip

    token = await work.submit(create)
    try:
        ctx = Context(services, Credential(None, token.id, secret_hash), name)
        ancestry = await ctx.look_up(lambda: ancestors_read([table_id]))
        path = path_of(table_id, ancestry)
        metalake = next((name for _, kind, name in ancestry.values() if kind is Kind.METALAKE), None)
        if path is None or metalake is None:
            yield None
        else:
            yield ActingRequest(ctx, RequestScope(metalake, path[0]), path[1:])
    finally:
        await work.submit(lambda tx: tx.tokens.revoke(token))
