# SPDX-License-Identifier: Apache-2.0
"""Last owners: the refusals that keep a metalake, its catalogs and its namespaces from losing their owner.

Must not know any wire format. Every check runs inside the transaction of the change. A table or another object whose
owner was removed is controlled by the owners of its namespace, catalog and metalake. Decision record 0173.
"""

from __future__ import annotations

from typing import Final

from limnos.model.entities import Principal
from limnos.model.errors import BadRequest, InUse
from limnos.store.tx import Tx

LISTED_MAX: Final = 5
"""The maximum number of objects that a refusal names."""


def owner_check(tx: Tx, principal: Principal, *, names: bool) -> None:
    """Check that a user or group that is to be removed owns no metalake, catalog or namespace.

    `names` is whether the caller may know the objects. Raises InUse.
    """
    owned_containers = tx.owners.containers_of(principal.id, limit=LISTED_MAX + 1)
    if not owned_containers:
        return
    text = "catalogs or schemas"
    if names:
        more = " and more" if len(owned_containers) > LISTED_MAX else ""
        text = f"{', '.join(tx.nodes.describe(each) for each in owned_containers[:LISTED_MAX])}{more}"
    word = principal.kind.word
    raise InUse(
        f"{word.capitalize()} {principal.name} owns {text}: an owner of the metalake gives them another owner first,"
        " 'limnos set owner PATH OWNER'",
        kind=word,
    )


def metalake_owner_check(tx: Tx, metalake_id: int) -> None:
    """Check, after a change in this transaction, that a user can still act as owner of the metalake. Raises BadRequest.

    A group is an owner only with a member who is enabled.
    """
    owner_id = tx.owners.of(metalake_id)
    if owner_id is None or tx.principals.is_active(owner_id):
        return
    owner = tx.principals.by_id(owner_id)
    name = "" if owner is None else f", {owner.kind.word} {owner.name},"
    raise BadRequest(
        f"The owner of the metalake{name} would have no user left who is enabled: give the metalake another owner"
        " first, or add a member to the group"
    )
