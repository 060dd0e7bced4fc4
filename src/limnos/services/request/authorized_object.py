# SPDX-License-Identifier: Apache-2.0
"""Authorized object: an existing object, with the decision that allows the caller's action on it.

Must not know the policy.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from limnos.model.decisions import Decision, SecurableChain
from limnos.model.entities import Node, Principal, RoleEntity

E = TypeVar("E", Node, Principal, RoleEntity)


class AuthorizedObject(NamedTuple, Generic[E]):
    """An existing object, its ancestors up to the metalake, and the decision that allows the caller's action on it."""

    entity: E
    chain: SecurableChain
    decision: Decision
