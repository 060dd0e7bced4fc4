# SPDX-License-Identifier: Apache-2.0
"""The states of tokens and secrets in lists: valid, or why not.

A credential outlives its user: it authenticates a name, and the metalakes decide what the name may do. A list that
showed such a credential as valid would be wrong in the question for which an auditor reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from limnos.model.entities import Token
from limnos.model.principals import CredentialState
from limnos.services.request.context import Context
from limnos.services.request.defaults import AccessSettings
from limnos.store.identity.principals import UserEntry, user_entries_read


class ListedCredential(NamedTuple):
    """A token or secret, and its state."""

    token: Token
    state: CredentialState


async def with_states(ctx: Context, tokens: Sequence[Token]) -> tuple[ListedCredential, ...]:
    """Return tokens with their states. The caller of this function may see the tokens."""
    if not tokens:
        return ()
    entries = await ctx.look_up(partial(user_entries_read, sorted({token.user for token in tokens})))
    rules, now_ms = ctx.services.rules, ctx.services.store.time.now_ms()
    return tuple(
        ListedCredential(token, state_of(token, rules, now_ms=now_ms, entries=entries[token.user])) for token in tokens
    )


def state_of(token: Token, rules: AccessSettings, *, now_ms: int, entries: Sequence[UserEntry]) -> CredentialState:
    """Return the state of a token whose user has these entries in metalakes.

    Without access control, every name may do everything, so a token needs no user. Service admins need none either.
    """
    if token.revoked:
        return CredentialState.REVOKED
    if token.is_over(now_ms):
        return CredentialState.EXPIRED
    if token.trust not in rules.trusts:
        return CredentialState.UNTRUSTED
    if not rules.access_enabled:
        return CredentialState.VALID
    token_entries = [entry for entry in entries if token.root_id >= entry.tokens_from]
    is_admin = token.user in rules.service_admins
    if not token_entries and (entries or not is_admin):
        return CredentialState.USER_MISSING
    if not is_admin and not any(entry.is_enabled for entry in token_entries):
        return CredentialState.USER_DISABLED
    return CredentialState.VALID
