# SPDX-License-Identifier: Apache-2.0
"""Acting for a user: a task maintains a table on behalf of a user, with a separate token.

Must not know operations. The secret of the token never leaves the process, and the token is revoked afterwards. So
restrictions, ownership, the audit and the change feed treat the work as that of the user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Self, TypeAlias

from limnos.access.actions import Action
from limnos.access.authentication import Credential, hash_secret, new_secret
from limnos.model.entities import Principal, Token
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.names.path import Levels
from limnos.rooms.maintenance.services.policies import EffectivePolicy, PolicyTerms
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.maintenance import ancestors_read
from limnos.store.ancestry import path_of
from limnos.store.identity.principals import principal_by_id_read
from limnos.store.objects.owners import owner_read
from limnos.store.sql import Load
from limnos.store.tx import Tx

_LASTING: Final = {TokenPurpose.CLIENT: "secret", TokenPurpose.API: "API token"}
"""The credentials whose end also ends the operations that were requested with them, and their names."""
_RENEW_MS: Final = 60_000
"""The age at which a round replaces a token before it begins with another table, in milliseconds."""


WORK_ACTIONS: Final = (Action.TABLE_MAINTAIN, Action.TABLE_COMMIT)
REWRITE_ACTIONS: Final = (Action.TABLE_MAINTAIN, Action.TABLE_REWRITE, Action.TABLE_READ)
"""The actions that a policy's author, and who attached it, need on a table for the operations of the server, and for
rewrites of its files.
"""


PolicyAuthors: TypeAlias = tuple[Principal | None, Principal | None]
"""The author of a policy's terms, and the user who attached it; None if unknown or removed."""


class ResponsibleUser(NamedTuple):
    """The user on whose behalf a table is maintained, and the name of the policy; `refusal` is the reason if no user is
    responsible.
    """

    user: str
    policy: str | None
    refusal: str | None = None
    second_user_id: int = 0
    """The user who attached the policy: the work needs the rights of both. 0 without a policy."""
    terms: PolicyTerms | None = None


class ActingRequest(NamedTuple):
    """A request that a task makes on behalf of a user, about one table."""

    ctx: Context
    scope: RequestScope
    path: Levels
    """The table's path below the catalog."""


async def responsible_user(
    services: NodeServices, table_id: int, *, policy: EffectivePolicy | None, actions: Sequence[Action] = WORK_ACTIONS
) -> ResponsibleUser:
    """Return the user on whose behalf a table is maintained: the author of the policy's terms; without a policy, the
    table's owner.

    The result has a refusal as `authors_refusal`. Without a policy, and with access control off, it has one if the
    owner is a group or missing.
    """
    if policy is None or not services.rules.access_enabled:
        return await _responsible_owner(services, table_id, policy=policy)
    writer, attacher = await services.gate.look_up(lambda: _authors_read(policy))
    label = f"policy {policy.name}"
    refusal = await _authors_refusal(services, table_id, authors=(writer, attacher), label=label, actions=actions)
    user = "" if writer is None else writer.name
    second_user_id = 0 if attacher is None else attacher.id
    return ResponsibleUser(
        user=user, policy=policy.name, refusal=refusal, second_user_id=second_user_id, terms=policy.terms
    )


async def authors_refusal(
    services: NodeServices, table_id: int, *, policy: EffectivePolicy, label: str, actions: Sequence[Action]
) -> str | None:
    """Return the reason why the server does not act on a table by a policy; None if it does.

    It does not if the author of the policy, or the user who attached it, is unknown, removed or disabled, or may not
    perform one of the `actions` on the table. `label` is how the text names the policy.
    """
    if not services.rules.access_enabled:
        return None
    authors = await services.gate.look_up(lambda: _authors_read(policy))
    return await _authors_refusal(services, table_id, authors=authors, label=label, actions=actions)


async def _authors_refusal(
    services: NodeServices, table_id: int, *, authors: PolicyAuthors, label: str, actions: Sequence[Action]
) -> str | None:
    writer, attacher = authors
    again = "save its content again, or disable and enable it"
    refusal = _author_refusal(writer, who=f"the author of {label}", mend=again)
    if refusal is None:
        who, again = f"the user who attached {label}", "detach it and attach it again"
        refusal = _author_refusal(attacher, who=who, mend=again)
    if writer is None or attacher is None or refusal is not None:
        return refusal
    missing = await _missing_right(services, table_id, users=(writer.name, attacher.name), actions=actions)
    return None if missing is None else f"{label} does nothing here: {missing}"


async def _responsible_owner(
    services: NodeServices, table_id: int, *, policy: EffectivePolicy | None
) -> ResponsibleUser:
    object_id = table_id if policy is None else policy.id
    what = "the table" if policy is None else "the policy"
    name = None if policy is None else policy.name
    terms = None if policy is None else policy.terms
    owner = await services.gate.look_up(lambda: _owner_read(object_id))
    if owner is None or owner.kind is not Kind.USER:
        reason = "has no owner" if owner is None else f"is owned by group {owner.name}"
        return ResponsibleUser(
            user="", policy=name, refusal=f"{what} {reason}: set a user as owner, for whom the server can act"
        )
    return ResponsibleUser(user=owner.name, policy=name, terms=terms)


def _author_refusal(user: Principal | None, *, who: str, mend: str) -> str | None:
    """Return the reason why the server cannot act for a user of a policy; None if it can."""
    if user is None or user.kind is not Kind.USER:
        return f"{who} is unknown or no longer a user: {mend}"
    return None if user.enabled else f"{who} is disabled: {mend}"


async def _missing_right(
    services: NodeServices, table_id: int, *, users: Sequence[str], actions: Sequence[Action]
) -> str | None:
    """Return the reason why one of the users may not perform one of the actions on a table; None if all may, or if the
    table was dropped.
    """
    ctx = Context(services, Credential(user=users[0]), "maintenance")
    place = await _place_of(ctx, table_id)
    if place is None:
        return None
    scope, path = place

    def look(request_view: RequestView) -> str | None:
        node, chain = request_view.find(path, Kind.TABLE)
        if node is None or node.id != table_id:
            return None
        decisions = [request_view.decide_for(user, action, chain) for user in users for action in actions]
        return next((each.message() for each in decisions if not each.allowed), None)

    return await ctx.read(scope, look)


def _authors_read(policy: EffectivePolicy) -> Load[PolicyAuthors]:
    writer = yield from principal_by_id_read(policy.writer_id)
    attacher = yield from principal_by_id_read(policy.attached_by)
    return writer, attacher


def _owner_read(object_id: int) -> Load[Principal | None]:
    owner_id = yield from owner_read(object_id)
    return None if owner_id is None else (yield from principal_by_id_read(owner_id))


def ended_secret_reason(tx: Tx, root_id: int | None) -> str | None:
    """Return the reason why an operation gets no token: the service account's secret, or the API token, with which it
    was requested was revoked or has expired.

    Returns None if that is valid, or if the operation was requested with another credential, such as a session, which
    may have ended.
    """
    root = None if root_id is None else tx.tokens.by_id(root_id)
    label = None if root is None else _LASTING.get(root.purpose)
    if root is None or label is None or not (root.revoked or root.is_over(tx.now_ms)):
        return None
    return f"the {label} with which {root.user} requested this has ended: request it again with a valid one"


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
    second_user_id: int = 0,
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
        second_user_id: The user who attached the policy, whose rights the work needs, too; 0 for none.

    Raises:
        PermissionDenied: The user is a service account, and the secret with which the work was requested was revoked or
            has expired.
    """
    token = await _token_create(
        work, user=user, name=name.replace("-", " ", 1), trust=trust, root_id=root_id, second_user_id=second_user_id
    )
    try:
        yield await _request_of(services, token, table_id=table_id, name=name)
    finally:
        await work.end_token(token)


class ActingTokens:
    """The tokens of one round of a task, which acts for few users about many tables: one token for each user,
    and second user.

    An async context manager. Each new or revoked token makes concurrent writes repeat their access decisions, so few
    tokens are created.
    """

    def __init__(self, work: TaskContext, services: NodeServices, *, name: str) -> None:
        self._work = work
        self._services = services
        self._name = name
        self._tokens: dict[tuple[str, int], Token] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for user, second_user_id in list(self._tokens):
            await self.end(user, second_user_id=second_user_id)

    async def request(self, *, user: str, table_id: int, name: str, second_user_id: int = 0) -> ActingRequest | None:
        """Return a request on behalf of a user about a table, named for the audit; None if the table was dropped.

        The token is valid for at least nine minutes, and as long as the task renews its lease.
        """
        key = (user, second_user_id)
        token = self._tokens.get(key)
        if token is not None and not 0 <= self._services.store.time.now_ms() - token.created_at < _RENEW_MS:
            await self.end(user, second_user_id=second_user_id)
            token = None
        if token is None:
            token = await _token_create(self._work, user=user, name=self._name, second_user_id=second_user_id)
            self._tokens[key] = token
        return await _request_of(self._services, token, table_id=table_id, name=name)

    async def end(self, user: str, *, second_user_id: int = 0) -> None:
        """Revoke a user's token, if there is one. The next request gets a new one."""
        token = self._tokens.pop((user, second_user_id), None)
        if token is not None:
            await self._work.end_token(token)


async def _token_create(
    work: TaskContext,
    *,
    user: str,
    name: str,
    trust: TokenTrust = TokenTrust.PROVEN,
    root_id: int | None = None,
    second_user_id: int = 0,
) -> Token:
    """Create the token of a user for whom the server acts. Raises PermissionDenied as `acting_as`."""

    def require(tx: Tx) -> None:
        refusal = ended_secret_reason(tx, root_id)
        if refusal is not None:
            raise PermissionDenied(refusal)

    return await work.create_token(
        user=user,
        name=name,
        secret_hash=hash_secret(new_secret()),
        trust=trust,
        root_id=root_id,
        second_user_id=second_user_id,
        require=require,
    )


async def _request_of(services: NodeServices, token: Token, *, table_id: int, name: str) -> ActingRequest | None:
    """Build a request about a table that is authenticated by a token; None if the table was dropped."""
    ctx = Context(services, Credential(user=None, token_id=token.id, secret_hash=token.secret_hash), name)
    place = await _place_of(ctx, table_id)
    return None if place is None else ActingRequest(ctx, *place)


async def _place_of(ctx: Context, table_id: int) -> tuple[RequestScope, Levels] | None:
    """Return the scope of a table's catalog, and the table's path below it; None if the table was dropped."""
    ancestry = await ctx.look_up(lambda: ancestors_read([table_id]))
    path = path_of(table_id, ancestry)
    metalake = next((name for _, kind, name in ancestry.values() if kind is Kind.METALAKE), None)
    return None if path is None or metalake is None else (RequestScope(metalake, path[0]), path[1:])
