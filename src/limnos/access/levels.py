# SPDX-License-Identifier: Apache-2.0
"""Access levels: read, write, create, drop and grant, each as a set of actions on a kind of object.

Pure. Reports about many users or objects are made per level, because levels are comparable across kinds. A request is
still decided by its own action.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from limnos.access.actions import Action, actions_named
from limnos.access.decide import is_allowed
from limnos.access.policy import POLICY, SERVER_ACTIONS
from limnos.access.rules import HoldsRoleRule, MemberRule, PrivilegeRule, SelfRule, ServiceAdminRule
from limnos.model.decisions import ChainLink
from limnos.model.kinds import METALAKE_OBJECTS, NAMESPACE_OBJECTS, Kind
from limnos.model.principals import HeldRole, RoleRules, Subject
from limnos.model.privileges import Privilege

LEVELS: Final = ("read", "write", "create", "drop", "grant")
"""The levels, in the order in which they are shown."""
_KINDS: Final = (*NAMESPACE_OBJECTS, *(kind for kind in METALAKE_OBJECTS if kind.is_node))
_CREATES: Final = tuple(
    action for action in Action if Kind.NAMESPACE in action.kinds and action.word.endswith("_create")
)


def _actions_by_kind(verb: str) -> dict[Kind, tuple[Action, ...]]:
    return {kind: (action,) for kind, action in actions_named(verb, *_KINDS).items()}


_READ: Final = _actions_by_kind("load") | {
    Kind.METALAKE: (Action.METALAKE_LOAD,),
    Kind.CATALOG: (Action.CATALOG_LOAD,),
    Kind.NAMESPACE: (Action.NAMESPACE_LOAD,),
    Kind.ROLE: (Action.ROLE_LOAD,),
    Kind.TABLE: (Action.TABLE_SCAN,),
    Kind.FILESET: (Action.FILESET_READ,),
}
_WRITE: Final = _actions_by_kind("alter") | {
    Kind.METALAKE: (Action.METALAKE_ALTER,),
    Kind.CATALOG: (Action.CATALOG_ALTER,),
    Kind.NAMESPACE: (Action.NAMESPACE_ALTER,),
    Kind.TABLE: (Action.TABLE_COMMIT,),
}
_CREATE: Final = {
    Kind.METALAKE: (Action.CATALOG_CREATE,),
    Kind.CATALOG: (Action.NAMESPACE_CREATE,),
    Kind.NAMESPACE: _CREATES,
}
_DROP: Final = _actions_by_kind("drop") | {
    Kind.METALAKE: (Action.METALAKE_DROP,),
    Kind.CATALOG: (Action.CATALOG_DROP,),
    Kind.NAMESPACE: (Action.NAMESPACE_DROP,),
    Kind.ROLE: (Action.ROLE_DROP,),
}
_GRANT: Final = dict.fromkeys(sorted(Action.PRIVILEGE_GRANT.kinds), (Action.PRIVILEGE_GRANT,))
_TABLE: Final[Mapping[str, Mapping[Kind, tuple[Action, ...]]]] = MappingProxyType(
    dict(zip(LEVELS, (_READ, _WRITE, _CREATE, _DROP, _GRANT), strict=True))
)
_USES: Final = frozenset({Privilege.USE_CATALOG, Privilege.USE_SCHEMA})
_FOR_EVERYBODY: Final = (MemberRule, SelfRule, HoldsRoleRule, ServiceAdminRule)
_ACTIONS: Final = {
    kind: tuple(action for action in Action if kind in action.kinds and action not in SERVER_ACTIONS) for kind in Kind
}
_BY_KIND: Final = {kind: {level: table[kind] for level, table in _TABLE.items() if kind in table} for kind in Kind}


def levels_of(kind: Kind) -> Mapping[str, tuple[Action, ...]]:
    """Return the access levels of a kind, each with its actions. A user who may take one of the actions has the
    level.
    """
    return _BY_KIND[kind]


def actions_on(kind: Kind) -> tuple[Action, ...]:
    """Return every action on an object of a kind, those of the server excepted."""
    return _ACTIONS[kind]


def levels_in(actions: Collection[Action], kind: Kind) -> tuple[str, ...]:
    """Return the access levels that a user has who may take these actions, in the order of `LEVELS`."""
    return tuple(
        level for level, needed_actions in levels_of(kind).items() if any(each in actions for each in needed_actions)
    )


def deciding_privileges(actions: Iterable[Action], kind: Kind) -> frozenset[Privilege] | None:
    """Return the privileges of which a user without ownership needs at least one for any of these actions.

    None means that every user of the metalake may take one of the actions.
    """
    privileges: set[Privilege] = set()
    for action in actions:
        leaves = tuple(POLICY[action].leaves(kind))
        if any(isinstance(leaf, _FOR_EVERYBODY) for leaf in leaves):
            return None
        own_privileges = {leaf.privilege for leaf in leaves if isinstance(leaf, PrivilegeRule)}
        privileges |= own_privileges if _suffices_to_use(action, kind) else own_privileges - _USES
    return frozenset(privileges)


@cache
def _suffices_to_use(action: Action, kind: Kind) -> bool:
    """Return whether USE_CATALOG and USE_SCHEMA alone allow an action to a user who owns nothing."""
    rules = RoleRules.of(1, "", allow=[(each, 1) for each in _USES])
    subject = Subject.of(1, "", roles=[HeldRole(rules, None)])
    chain = tuple(ChainLink(1, each, "") for each in (kind, Kind.NAMESPACE, Kind.CATALOG, Kind.METALAKE))
    return is_allowed(subject, action, chain=chain, owner_of=lambda _: None)
