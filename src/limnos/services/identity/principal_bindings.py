# SPDX-License-Identifier: Apache-2.0
"""Principal bindings: restrictions and denials that apply to users because of a user, group or role.

Must not know any wire format. Dropping a principal must not lift a restriction or a denial without the right to change
it. A principal that a restriction names is not dropped at all: otherwise the restriction would apply to nobody.
Decision record 0167.
"""

from __future__ import annotations

import shlex
from typing import Final

from limnos.access.actions import Action
from limnos.model.errors import InUse, PermissionDenied
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.services.request.request_view import RequestView
from limnos.store.identity.restrictions import NamingRestriction
from limnos.store.tx import Tx

LISTED_MAX: Final = 5
"""The maximum number of restrictions that a refusal names."""
_NEEDED: Final = "needs the right to grant on the metalake (MANAGE_GRANTS, or its ownership)"


def may_lift(request_view: RequestView) -> bool:
    """Return whether the caller may change all grants, denials and restrictions of the metalake. No refusal is recorded
    in the audit.
    """
    return request_view.decide(Action.PRIVILEGE_GRANT, request_view.settled.outer[-1:]).allowed


def principal_bindings_check(
    tx: Tx, principal_id: int, *, kind: Kind, name: str, metalake_id: int, lifts: bool
) -> None:
    """Check that dropping a user or group lifts no restriction, and no denial that the caller may not lift.

    `lifts` is the result of `may_lift`. Raises InUse, PermissionDenied.
    """
    naming = _refuse_named(tx, principal_id, kind=kind, name=name, metalake_id=metalake_id, lifts=lifts)
    if lifts:
        return
    holders = {principal_id, *tx.principals.groups_of(principal_id)}
    roles = tx.roles.of_principals(holders)
    if tx.roles.deny_any(roles) or any(not (holders | roles).isdisjoint(each.restriction.terms.to) for each in naming):
        means = "disable the user instead" if kind is Kind.USER else "remove its members instead"
        raise PermissionDenied(
            f"Denials or read restrictions apply to {kind.word} {name} through its roles or groups, so dropping it"
            f" {_NEEDED}: {means}, or ask a user with that right"
        )


def role_bindings_check(tx: Tx, role_id: int, *, name: str, metalake_id: int, lifts: bool) -> None:
    """Check that dropping a role lifts no restriction, and no denial that the caller may not lift.

    Raises InUse, PermissionDenied.
    """
    _refuse_named(tx, role_id, kind=Kind.ROLE, name=name, metalake_id=metalake_id, lifts=lifts)
    if not lifts and tx.roles.deny_any({role_id}):
        raise PermissionDenied(
            f"Role {name} denies privileges, so dropping it {_NEEDED}: revoke its denials first, or ask a user with"
            " that right"
        )


def _refuse_named(
    tx: Tx, named_id: int, *, kind: Kind, name: str, metalake_id: int, lifts: bool
) -> list[NamingRestriction]:
    """Raise InUse if a restriction applies to the principal by name. Returns the restrictions that name principals."""
    restrictions = tx.restrictions.naming_principals(metalake_id)
    binding = [each for each in restrictions if named_id in each.restriction.terms.to]
    if not binding:
        return restrictions
    means = "A user who may grant on their objects must change or remove them first"
    if lifts:
        set_ones = {_key(each) for each in binding if each.former_path is None}
        # A restored object lies at its former path, which still remembers the restriction that is on it again.
        binding_left = [each for each in binding if not (_key(each) in set_ones and _is_at_former_path(tx, each))]
        objects = [_words(tx, each) for each in binding_left[:LISTED_MAX]]
        more = f" and {len(binding_left) - LISTED_MAX} more" if len(binding_left) > LISTED_MAX else ""
        means = f"Change or remove them first: {', '.join(objects)}{more}"
    raise InUse(
        f"Read restrictions name {kind.word} {name}, and would apply to no user without it. {means}", kind=kind.word
    )


def _is_at_former_path(tx: Tx, naming: NamingRestriction) -> bool:
    return naming.former_path == tx.places.names_of(naming.restriction.object_id)[1:]


def _key(naming: NamingRestriction) -> tuple[int, str]:
    return naming.restriction.object_id, naming.restriction.name


def _words(tx: Tx, naming: NamingRestriction) -> str:
    """Return a restriction with the object that it is set on, or with the path that remembers it for later objects."""
    name, object_id = naming.restriction.name, naming.restriction.object_id
    if naming.former_path is None:
        path = display.render(tx.places.names_of(object_id)[1:])
        kind = tx.nodes.describe(object_id).partition(" ")[0]
        remove = shlex.join(["limnos", "delete", "restriction", name, path, "--kind", kind])
        return f"{name} of {kind} {path} ('{remove}')"
    left = display.render(naming.former_path)
    remembers = f"{name}, which the free name {left} remembers"
    now = tx.places.names_of(object_id)[1:] if tx.nodes.is_alive(object_id) else None
    if now is not None and now[:-1] == naming.former_path[:-1]:
        return f"{remembers}: remove {name} from the object that left it, which forgets it"
    remove = shlex.join(["limnos", "delete", "restriction", name, left])
    return f"{remembers} for the next table there: create a table of that name, '{remove}', and delete the table"
