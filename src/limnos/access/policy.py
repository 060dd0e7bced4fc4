"""The policy: for every action, who may. One table, to be read by people.

May import `model` and the expressions of `access.rules`. Pure values; evaluated by `access.decide`. The rules are
those of Gravitino's access control with nested namespaces, so that its users meet no surprise:

- a privilege counts when some level of the chain allows it and none denies it (`PrivilegeRule`);
- owners pass without asking for denials, except where the rule also wants USE_CATALOG or USE_SCHEMA;
- who owns a namespace owns everything in it, and passes where its owner would, given USE_CATALOG.

Where upstream leaves a gap (views over REST are not checked at all there), the rule here is the strict one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from limnos.access.actions import Action, actions_named
from limnos.access.rules import (
    AllOf,
    AnyOf,
    ByKind,
    HoldsRoleRule,
    MemberRule,
    NotDeniedRule,
    OwnerAboveRule,
    OwnerRule,
    PrivilegeRule,
    Rule,
    SelfRule,
    ServiceAdminRule,
)
from limnos.model.kind_table import kinds_with
from limnos.model.kinds import METALAKE_OBJECTS, NAMESPACE_OBJECTS, Kind
from limnos.model.privileges import Privilege

# ------------------------------------------------------------------------------------------ building blocks


def owns(*kinds: Kind) -> OwnerRule:
    """The caller owns an object of one of these kinds on the chain."""
    return OwnerRule(frozenset(kinds))


_METALAKE: Final = owns(Kind.METALAKE)
_ABOVE: Final = owns(Kind.METALAKE, Kind.CATALOG)
_NAMESPACE: Final = owns(Kind.NAMESPACE)
_USE_CATALOG: Final = PrivilegeRule(Privilege.USE_CATALOG)
_USE_SCHEMA: Final = PrivilegeRule(Privilege.USE_SCHEMA)


def inside(*enough: Rule) -> Rule:
    """For what lies in a namespace: USE_CATALOG, USE_SCHEMA and any of `enough`; or a container's owner.

    The owner of the metalake or catalog needs nothing else, the owner of a namespace also USE_CATALOG.
    """
    last = enough[0] if len(enough) == 1 else AnyOf(*enough)
    return AnyOf(AllOf(_USE_CATALOG, _USE_SCHEMA, last), _ABOVE, AllOf(_USE_CATALOG, _NAMESPACE))


def _namespace_load(*enough: Rule) -> Rule:
    return AnyOf(AllOf(_USE_CATALOG, AnyOf(*enough, _NAMESPACE)), _ABOVE)


def _listed_item(kind: Kind, *privileges: Privilege) -> Rule:
    """An item of a list whose parent one may list: no USE privilege is asked for again."""
    return AnyOf(*map(PrivilegeRule, privileges), owns(Kind.METALAKE, Kind.CATALOG, Kind.NAMESPACE, kind))


def _metalake_object(privilege: Privilege) -> Rule:
    """Things of the metalake: a privilege on it, or its owner."""
    return AnyOf(PrivilegeRule(privilege), _METALAKE)


def _own(kind: Kind) -> Rule:
    """Things of the metalake that have owners of their own: that owner, or the metalake's."""
    return owns(kind, Kind.METALAKE)


def _usable(kind: Kind, privilege: Privilege) -> Rule:
    """The same, or who may use it."""
    return AnyOf(PrivilegeRule(privilege), _own(kind))


_CATALOG_LOAD: Final = AnyOf(_USE_CATALOG, _ABOVE)
_CATALOG_OWNED: Final = _ABOVE
_NAMESPACE_LOAD: Final = _namespace_load(_USE_SCHEMA)
_NAMESPACE_OWNED: Final = AnyOf(AllOf(_USE_CATALOG, _NAMESPACE), _ABOVE)
_TABLE, _VIEW, _FILESET, _TOPIC = owns(Kind.TABLE), owns(Kind.VIEW), owns(Kind.FILESET), owns(Kind.TOPIC)
_MODEL, _FUNCTION, _DATATYPE = owns(Kind.MODEL), owns(Kind.FUNCTION), owns(Kind.DATATYPE)
_SYNONYM, _EXTERNAL = owns(Kind.SYNONYM), owns(Kind.EXTERNAL_DATASET)
_SELECT, _MODIFY, _CREATE_TABLE = (
    PrivilegeRule(Privilege.SELECT_TABLE),
    PrivilegeRule(Privilege.MODIFY_TABLE),
    PrivilegeRule(Privilege.CREATE_TABLE),
)
_SELECT_VIEW, _CREATE_VIEW = PrivilegeRule(Privilege.SELECT_VIEW), PrivilegeRule(Privilege.CREATE_VIEW)

# ------------------------------------------------------------------------------------------------ the table

_TREE: Final[dict[Action, Rule]] = {
    Action.METALAKE_LOAD: MemberRule(),  # being a user of the metalake is all it takes
    Action.METALAKE_ALTER: _METALAKE,
    Action.METALAKE_SET: _METALAKE,  # switch on and off
    Action.METALAKE_DROP: _METALAKE,
    Action.METALAKE_EXPORT: _METALAKE,  # all that is in it, whoever may see what
    Action.WEBHOOK_MANAGE: _METALAKE,  # list, make, drop: they send what happens to somewhere else
    Action.AUDIT_READ: AnyOf(_METALAKE, ServiceAdminRule()),  # what everybody did there; one's own lines need no right
    Action.CATALOG_LIST: MemberRule(),  # the list shrinks to what each may load
    Action.CATALOG_CREATE: _metalake_object(Privilege.CREATE_CATALOG),  # testing a connection is the same
    Action.CATALOG_LOAD: _CATALOG_LOAD,
    Action.CATALOG_ENABLE: _CATALOG_LOAD,  # as upstream: not for owners only
    Action.CATALOG_ALTER: _CATALOG_OWNED,
    Action.CATALOG_DROP: _CATALOG_OWNED,
    Action.NAMESPACE_LIST: _CATALOG_LOAD,  # at every depth; the items are filtered
    Action.NAMESPACE_SEE: _listed_item(Kind.NAMESPACE, Privilege.USE_SCHEMA),
    # On the nearest existing scope; the owner of that scope needs no USE_CATALOG.
    Action.NAMESPACE_CREATE: AnyOf(
        AllOf(_USE_CATALOG, PrivilegeRule(Privilege.CREATE_SCHEMA)), owns(Kind.METALAKE, Kind.CATALOG, Kind.NAMESPACE)
    ),
    Action.NAMESPACE_LOAD: _NAMESPACE_LOAD,
    Action.NAMESPACE_LOAD_ICEBERG: _namespace_load(_USE_SCHEMA, PrivilegeRule(Privilege.CREATE_SCHEMA)),
    Action.NAMESPACE_ALTER: _NAMESPACE_OWNED,
    Action.NAMESPACE_DROP: _NAMESPACE_OWNED,
    Action.NAMESPACE_MOVE: _NAMESPACE_OWNED,  # and NAMESPACE_CREATE where it goes
}

_LEAF: Final[dict[Action, Rule]] = {
    Action.TABLE_LIST: _NAMESPACE_LOAD,
    Action.TABLE_SEE: _listed_item(Kind.TABLE, Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE),
    Action.TABLE_CREATE: inside(_CREATE_TABLE),
    Action.TABLE_REGISTER: inside(_CREATE_TABLE),
    Action.TABLE_LOAD: inside(_SELECT, _MODIFY, _TABLE),  # partitions and statistics too
    Action.TABLE_READ: inside(_SELECT, _TABLE),  # its rows, where the server reads them for somebody
    Action.TABLE_SCAN: inside(_SELECT, _TABLE),  # the same where scans are planned, as far as restrictions let
    # Anyone who works with tables or views may ask whether the name is taken.
    Action.TABLE_EXISTS: inside(_SELECT, _MODIFY, _CREATE_TABLE, _SELECT_VIEW, _CREATE_VIEW, _TABLE, _VIEW),
    # Who may not load a table but works with views or creates tables here learns that it does not exist.
    Action.TABLE_MAY_PROBE: AllOf(_USE_CATALOG, _USE_SCHEMA, AnyOf(_CREATE_TABLE, _SELECT_VIEW, _CREATE_VIEW, _VIEW)),
    Action.TABLE_ALTER: inside(_MODIFY, _TABLE),
    Action.TABLE_COMMIT: inside(_MODIFY, _TABLE),
    Action.TABLE_REPORTS: inside(_MODIFY, _TABLE),  # what clients told of their scans and commits
    Action.TABLE_CHECK: inside(_MODIFY, _TABLE),  # names of its files, and whether they are there
    Action.TABLE_DROP: inside(_TABLE),
    Action.TABLE_RENAME: inside(_MODIFY, _TABLE),  # within its namespace
    Action.TABLE_MOVE: inside(_TABLE),  # and TABLE_CREATE where it goes
    Action.VIEW_LIST: _NAMESPACE_LOAD,
    Action.VIEW_SEE: _listed_item(Kind.VIEW, Privilege.SELECT_VIEW),
    Action.VIEW_CREATE: inside(_CREATE_VIEW),
    Action.VIEW_LOAD: inside(_SELECT_VIEW, _VIEW),
    Action.VIEW_EXISTS: inside(_SELECT_VIEW, _CREATE_VIEW, _VIEW),
    # Engines look for a view before a table: any right on a like-named table answers for its absence.
    Action.VIEW_MAY_PROBE: AllOf(
        _USE_CATALOG, _USE_SCHEMA, AnyOf(_CREATE_VIEW, _SELECT, _MODIFY, _CREATE_TABLE, _TABLE)
    ),
    Action.VIEW_ALTER: inside(_VIEW),
    Action.VIEW_DROP: inside(_VIEW),
    Action.VIEW_RENAME: inside(_VIEW),
    Action.VIEW_MOVE: inside(_VIEW),  # and VIEW_CREATE where it goes
    Action.FILESET_LIST: _NAMESPACE_LOAD,
    Action.FILESET_SEE: _listed_item(Kind.FILESET, Privilege.READ_FILESET, Privilege.WRITE_FILESET),
    Action.FILESET_CREATE: inside(PrivilegeRule(Privilege.CREATE_FILESET)),
    Action.FILESET_LOAD: inside(
        PrivilegeRule(Privilege.READ_FILESET), PrivilegeRule(Privilege.WRITE_FILESET), _FILESET
    ),  # files and locations too
    Action.FILESET_READ: inside(PrivilegeRule(Privilege.READ_FILESET), _FILESET),  # its files, by credentials
    Action.FILESET_ALTER: inside(PrivilegeRule(Privilege.WRITE_FILESET), _FILESET),
    Action.FILESET_DROP: inside(_FILESET),
    Action.TOPIC_LIST: _NAMESPACE_LOAD,
    Action.TOPIC_SEE: _listed_item(Kind.TOPIC, Privilege.CONSUME_TOPIC, Privilege.PRODUCE_TOPIC),
    Action.TOPIC_CREATE: inside(PrivilegeRule(Privilege.CREATE_TOPIC)),
    Action.TOPIC_LOAD: inside(PrivilegeRule(Privilege.CONSUME_TOPIC), PrivilegeRule(Privilege.PRODUCE_TOPIC), _TOPIC),
    Action.TOPIC_ALTER: inside(PrivilegeRule(Privilege.PRODUCE_TOPIC), _TOPIC),
    Action.TOPIC_DROP: inside(_TOPIC),
    Action.MODEL_LIST: _NAMESPACE_LOAD,
    Action.MODEL_SEE: _listed_item(Kind.MODEL, Privilege.USE_MODEL),
    Action.MODEL_CREATE: inside(PrivilegeRule(Privilege.REGISTER_MODEL)),
    Action.MODEL_LOAD: inside(PrivilegeRule(Privilege.USE_MODEL), _MODEL),  # versions and their URIs too
    Action.MODEL_LINK: inside(
        AllOf(PrivilegeRule(Privilege.USE_MODEL), PrivilegeRule(Privilege.LINK_MODEL_VERSION)), _MODEL
    ),
    Action.MODEL_ALTER: inside(_MODEL),  # versions and aliases too
    Action.MODEL_DROP: inside(_MODEL),
    Action.FUNCTION_LIST: _NAMESPACE_LOAD,
    Action.FUNCTION_SEE: _listed_item(Kind.FUNCTION, Privilege.EXECUTE_FUNCTION, Privilege.MODIFY_FUNCTION),
    Action.FUNCTION_CREATE: inside(PrivilegeRule(Privilege.REGISTER_FUNCTION)),
    Action.FUNCTION_LOAD: inside(
        PrivilegeRule(Privilege.EXECUTE_FUNCTION), PrivilegeRule(Privilege.MODIFY_FUNCTION), _FUNCTION
    ),
    Action.FUNCTION_ALTER: inside(PrivilegeRule(Privilege.MODIFY_FUNCTION), _FUNCTION),
    Action.FUNCTION_DROP: inside(_FUNCTION),
    # Types and synonyms of SQL++ say how data is called and shaped, and hold none: who may use a namespace sees them.
    Action.DATATYPE_LIST: _NAMESPACE_LOAD,
    Action.DATATYPE_SEE: _listed_item(Kind.DATATYPE, Privilege.USE_SCHEMA),
    Action.DATATYPE_CREATE: inside(_CREATE_TABLE),
    Action.DATATYPE_LOAD: _NAMESPACE_LOAD,
    Action.DATATYPE_DROP: inside(_DATATYPE),
    Action.SYNONYM_LIST: _NAMESPACE_LOAD,
    Action.SYNONYM_SEE: _listed_item(Kind.SYNONYM, Privilege.USE_SCHEMA),
    Action.SYNONYM_CREATE: inside(_CREATE_VIEW),
    Action.SYNONYM_LOAD: _NAMESPACE_LOAD,
    Action.SYNONYM_DROP: inside(_SYNONYM),
    Action.EXTERNAL_DATASET_LIST: _NAMESPACE_LOAD,
    Action.EXTERNAL_DATASET_SEE: _listed_item(Kind.EXTERNAL_DATASET, Privilege.SELECT_TABLE),
    Action.EXTERNAL_DATASET_CREATE: inside(_CREATE_TABLE),
    Action.EXTERNAL_DATASET_LOAD: inside(_SELECT, _EXTERNAL),
    Action.EXTERNAL_DATASET_DROP: inside(_EXTERNAL),
}

_ROLE_LOAD: Final = AnyOf(PrivilegeRule(Privilege.MANAGE_GRANTS), _own(Kind.ROLE), HoldsRoleRule())
_JOB_OWNED: Final = owns(Kind.JOB, Kind.JOB_TEMPLATE, Kind.METALAKE)  # who owns a pipeline answers for its runs

_APART_RULES: Final[dict[Action, Rule]] = {
    # Lists are open to members and shrink to what each may load.
    **dict.fromkeys((Action.USER_LIST, Action.GROUP_LIST, Action.ROLE_LIST, Action.TAG_LIST), MemberRule()),
    **dict.fromkeys((Action.POLICY_LIST, Action.JOB_TEMPLATE_LIST, Action.JOB_LIST), MemberRule()),
    Action.USER_MANAGE: _metalake_object(Privilege.MANAGE_USERS),  # add, remove, disable
    Action.USER_LOAD: AnyOf(PrivilegeRule(Privilege.MANAGE_USERS), _METALAKE, SelfRule()),
    Action.GROUP_MANAGE: _metalake_object(Privilege.MANAGE_GROUPS),  # add and remove the group itself
    # Whoever fills a group hands out its roles, so that takes the right to hand out roles as well.
    Action.GROUP_MEMBERS: AnyOf(
        AllOf(PrivilegeRule(Privilege.MANAGE_GROUPS), PrivilegeRule(Privilege.MANAGE_GRANTS)), _METALAKE
    ),
    Action.GROUP_LOAD: AnyOf(PrivilegeRule(Privilege.MANAGE_GROUPS), _METALAKE, SelfRule()),
    Action.ROLE_CREATE: _metalake_object(Privilege.CREATE_ROLE),
    Action.ROLE_LOAD: _ROLE_LOAD,
    Action.ROLE_DROP: _own(Kind.ROLE),
    Action.ROLE_ASSIGN: _metalake_object(Privilege.MANAGE_GRANTS),  # to users and groups; replacing a role's rules too
    Action.TAG_CREATE: _metalake_object(Privilege.CREATE_TAG),
    Action.TAG_LOAD: _usable(Kind.TAG, Privilege.APPLY_TAG),
    Action.TAG_APPLY: _usable(Kind.TAG, Privilege.APPLY_TAG),  # and METADATA_LOAD on what is tagged
    Action.TAG_ALTER: _own(Kind.TAG),
    Action.TAG_DROP: _own(Kind.TAG),
    Action.POLICY_CREATE: _metalake_object(Privilege.CREATE_POLICY),
    Action.POLICY_LOAD: _usable(Kind.POLICY, Privilege.APPLY_POLICY),
    Action.POLICY_APPLY: _usable(Kind.POLICY, Privilege.APPLY_POLICY),  # and METADATA_LOAD on what it is attached to
    Action.POLICY_ALTER: _own(Kind.POLICY),
    Action.POLICY_DROP: _own(Kind.POLICY),
    Action.JOB_TEMPLATE_CREATE: _metalake_object(Privilege.REGISTER_JOB_TEMPLATE),
    Action.JOB_TEMPLATE_LOAD: _usable(Kind.JOB_TEMPLATE, Privilege.USE_JOB_TEMPLATE),
    Action.JOB_TEMPLATE_ALTER: _own(Kind.JOB_TEMPLATE),
    Action.JOB_TEMPLATE_DROP: _own(Kind.JOB_TEMPLATE),
    Action.JOB_RUN: AnyOf(
        AllOf(
            PrivilegeRule(Privilege.RUN_JOB), AnyOf(PrivilegeRule(Privilege.USE_JOB_TEMPLATE), owns(Kind.JOB_TEMPLATE))
        ),
        _METALAKE,
    ),
    Action.JOB_LOAD: _JOB_OWNED,
    Action.JOB_CANCEL: _JOB_OWNED,
}


def _rules(verb: str, *kinds: Kind) -> dict[Kind, Rule]:
    """Return the rule of the action `<kind>_<verb>` for each kind that has one."""
    rules = _LEAF | _APART_RULES
    return {kind: rules[action] for kind, action in actions_named(verb, *kinds).items() if action in rules}


# Reading what hangs on an object (owner, tags, policies, credentials) takes the right to load the object.
_METADATA_LOAD: Final = ByKind(
    {
        Kind.METALAKE: MemberRule(),
        Kind.CATALOG: _CATALOG_LOAD,
        Kind.NAMESPACE: _NAMESPACE_LOAD,
        Kind.COLUMN: _LEAF[Action.TABLE_LOAD],
        Kind.ROLE: _ROLE_LOAD,
        Kind.JOB: _JOB_OWNED,
        **_rules("load", *NAMESPACE_OBJECTS),
        **_rules("load", *(kind for kind in METALAKE_OBJECTS if kind.is_node), Kind.USER, Kind.GROUP),
    }
)

# To give an object away: own it or a container of it, and be able to reach what one owns.
_LEAF_REACHED: Final = AllOf(_USE_SCHEMA, NotDeniedRule(Privilege.USE_CATALOG))
_OWNER_SET: Final = AnyOf(
    AllOf(_LEAF_REACHED, owns(*NAMESPACE_OBJECTS)), AllOf(_USE_CATALOG, _NAMESPACE), owns(*METALAKE_OBJECTS), _ABOVE
)

# To grant on an object: MANAGE_GRANTS on it or above it, and be able to reach it; or the right to give it away.
_GRANTS: Final = PrivilegeRule(Privilege.MANAGE_GRANTS)
_PRIVILEGE_GRANT: Final = AnyOf(
    ByKind(
        {
            **dict.fromkeys((Kind.METALAKE, Kind.CATALOG, *METALAKE_OBJECTS), _GRANTS),
            Kind.NAMESPACE: AllOf(_USE_CATALOG, _GRANTS),
            **dict.fromkeys(NAMESPACE_OBJECTS, AllOf(_LEAF_REACHED, _GRANTS)),
        }
    ),
    _OWNER_SET,
)

# To bring back what was dropped: the right to drop it, were it there, and to make such a thing where it goes.
_UNDROP: Final = ByKind({Kind.NAMESPACE: _NAMESPACE_OWNED, **_rules("drop", *kinds_with(lambda row: row.trash))})

# To protect something: the right to drop it. To end that: more than that, the ownership of something above it.
_PROTECTED: Final = kinds_with(lambda row: row.protected)
_PROTECT: Final = ByKind(
    {Kind.CATALOG: _CATALOG_OWNED, Kind.NAMESPACE: _NAMESPACE_OWNED, **_rules("drop", *_PROTECTED)}
)
_UNPROTECT: Final = ByKind(
    {
        **dict.fromkeys(_PROTECTED, _NAMESPACE_OWNED),
        Kind.CATALOG: _METALAKE,
        Kind.NAMESPACE: AnyOf(AllOf(_USE_CATALOG, OwnerAboveRule(frozenset({Kind.NAMESPACE}))), _ABOVE),
    }
)

POLICY: Final[Mapping[Action, Rule]] = MappingProxyType(
    {
        Action.METALAKE_CREATE: ServiceAdminRule(),
        Action.TOKEN_MANAGE_OTHERS: ServiceAdminRule(),
        Action.TASK_MANAGE: ServiceAdminRule(),
        Action.METALAKE_IMPORT: ServiceAdminRule(),  # it makes a metalake, with owners and rights as the file says
        Action.AUDIT_READ_ALL: ServiceAdminRule(),
        Action.SECRETS_EXPORT: ServiceAdminRule(),  # and METALAKE_EXPORT: catalogs' secrets otherwise leave for nobody
        Action.KEYS_MANAGE: ServiceAdminRule(),  # those that seal secrets of every metalake
        **_TREE,
        **_LEAF,
        **_APART_RULES,
        Action.METADATA_LOAD: _METADATA_LOAD,
        Action.OWNER_LOAD: _METADATA_LOAD,
        Action.OWNER_SET: _OWNER_SET,
        Action.UNDROP: _UNDROP,
        Action.PROTECT: _PROTECT,
        Action.UNPROTECT: _UNPROTECT,
        Action.PRIVILEGE_GRANT: _PRIVILEGE_GRANT,
        Action.RESTRICT: _PRIVILEGE_GRANT,  # see, set and remove restrictions: who gives rights says how far they go
        Action.EXPLAIN_OTHERS: _metalake_object(Privilege.MANAGE_GRANTS),  # on the object or above it
    }
)
"""Who may, for every action."""

SERVER_ACTIONS: Final = frozenset(
    {
        Action.METALAKE_CREATE,
        Action.TOKEN_MANAGE_OTHERS,
        Action.TASK_MANAGE,
        Action.METALAKE_IMPORT,
        Action.SECRETS_EXPORT,
        Action.KEYS_MANAGE,
        Action.AUDIT_READ_ALL,
    }
)
"""Asked of the server: being a user of a metalake is neither needed nor of help."""


def _items(verb: str, *kinds: Kind) -> dict[Action, Action]:
    items = actions_named(verb, *kinds)
    return {action: items[kind] for kind, action in actions_named("list", *kinds).items() if kind in items}


ITEMS: Final[Mapping[Action, Action]] = MappingProxyType(
    {
        Action.CATALOG_LIST: Action.CATALOG_LOAD,
        Action.NAMESPACE_LIST: Action.NAMESPACE_SEE,
        **_items("see", *NAMESPACE_OBJECTS),
        **_items("load", *METALAKE_OBJECTS, Kind.USER, Kind.GROUP),
    }
)
"""For every list, the action that decides whether an item shows in it."""
