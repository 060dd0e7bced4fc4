# SPDX-License-Identifier: Apache-2.0
"""Confinement: the token of a maintenance operation allows its user a few actions on one table, and nothing else.

Pure. The confinement grants nothing: the user must be allowed the action, too.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Decision, DecisionFactor, SecurableChain

TABLE_ACTIONS: Final = frozenset(
    {Action.TABLE_LOAD, Action.TABLE_READ, Action.TABLE_EXISTS, Action.TABLE_REPORTS, Action.TABLE_REWRITE}
)
"""The actions on the table that the confinement allows. A commit with such a token is a TABLE_REWRITE, which the server
checks.
"""


LEASES_ALONE: Final = 0
"""The table id in the token of the server's own executor, which may only lease operations."""


def has_fit_scope(table_id: int, *, metalake: str | None, catalog: str | None) -> bool:
    """Return whether a maintenance token may be used in a scope.

    A token for one table is valid in a catalog, the executor's token (`LEASES_ALONE`) only in a metalake.
    """
    return catalog is not None if table_id != LEASES_ALONE else metalake is not None and catalog is None


def confine(decision: Decision, action: Action, *, chain: SecurableChain, table_id: int) -> Decision:
    """Return a decision limited by a maintenance token.

    The token allows `TABLE_ACTIONS` on its table and `CATALOG_LOAD`; the executor's token allows `OPERATION_LEASE`.
    """
    if table_id == LEASES_ALONE:
        is_own = action == Action.OPERATION_LEASE
    else:
        is_own = (bool(chain) and chain[0].id == table_id and action in TABLE_ACTIONS) or action == Action.CATALOG_LOAD
    if not decision.allowed or is_own:
        return decision
    return msgspec.structs.replace(decision, allowed=False, factors=(DecisionFactor(kind="one-table"),))


def unfit_second(decision: Decision) -> Decision:
    """Return the refusal of what a token's user is allowed, because its second user was removed or disabled."""
    return msgspec.structs.replace(decision, allowed=False, factors=(DecisionFactor(kind="second-user"),))
