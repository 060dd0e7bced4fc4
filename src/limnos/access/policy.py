# SPDX-License-Identifier: Apache-2.0
"""The policy: one human-readable table with the rule of every action.

Pure values; `access.decide` evaluates them. The rules are those of Gravitino's access control, extended to nested
namespaces, so that it is familiar to its users:

- A privilege counts if it is allowed on the target or an ancestor, and denied on none of them (`PrivilegeRule`).
- Owners pass regardless of denials, except where the rule also requires USE_CATALOG or USE_SCHEMA.
- The owner of a namespace owns everything in it, and passes wherever an object's owner would, given USE_CATALOG.
- A table directly in its catalog is in no schema: a right on the table itself stands for USE_SCHEMA.

Where Gravitino checks nothing (such as views over REST), the rule here is the strict one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from limnos.access.actions import Action, actions_named, kind_action
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
    UseSchemaRule,
)
from limnos.model.declared_kinds import DECLARED_KINDS
from limnos.model.kind_table import kinds_with
from limnos.model.kinds import METALAKE_OBJECTS, NAMESPACE_OBJECTS, Kind
from limnos.model.privileges import Privilege

# ------------------------------------------------------------------------------------------ building blocks


def owns(*kinds: Kind) -> OwnerRule:
    """Build the rule that the caller owns the target, or an ancestor of it, of one of these kinds."""
    return OwnerRule(frozenset(kinds))


_METALAKE: Final = owns(Kind.METALAKE)
_ABOVE: Final = owns(Kind.METALAKE, Kind.CATALOG)
_NAMESPACE: Final = owns(Kind.NAMESPACE)
_USE_CATALOG: Final = PrivilegeRule(Privilege.USE_CATALOG)
_USE_SCHEMA: Final = UseSchemaRule()


def inside(*enough: Rule) -> Rule:
    """Build the rule for objects in a namespace: USE_CATALOG, USE_SCHEMA and at least one of the rules `enough`; or
    ownership of a container.

    The owner of the metalake or catalog needs no privilege; the owner of a namespace also needs USE_CATALOG.
    """
    last = enough[0] if len(enough) == 1 else AnyOf(*enough)
    return AnyOf(AllOf(_USE_CATALOG, _USE_SCHEMA, last), _ABOVE, AllOf(_USE_CATALOG, _NAMESPACE))


def _namespace_load(*enough: Rule) -> Rule:
    return AnyOf(AllOf(_USE_CATALOG, AnyOf(*enough, _NAMESPACE)), _ABOVE)


def _list_item_rule(kind: Kind, *privileges: Privilege) -> Rule:
    """Build the rule for an item of a list whose parent the caller may list. It does not require USE privileges
    again.
    """
    return AnyOf(*map(PrivilegeRule, privileges), owns(Kind.METALAKE, Kind.CATALOG, Kind.NAMESPACE, kind))


def _metalake_object(privilege: Privilege) -> Rule:
    """Build the rule for metalake objects: a privilege on the metalake, or ownership of the metalake."""
    return AnyOf(PrivilegeRule(privilege), _METALAKE)


def _owner_rule(kind: Kind) -> Rule:
    """Build the rule for metalake objects that have owners: ownership of the object or of the metalake."""
    return owns(kind, Kind.METALAKE)


def _usable(kind: Kind, privilege: Privilege) -> Rule:
    """Build the rule for metalake objects that can be used by others: a privilege on the object, or the rule of
    `_own`.
    """
    return AnyOf(PrivilegeRule(privilege), _owner_rule(kind))


_CATALOG_LOAD: Final = AnyOf(_USE_CATALOG, _ABOVE)
_CATALOG_OWNED: Final = _ABOVE
_NAMESPACE_LOAD: Final = _namespace_load(_USE_SCHEMA)
_NAMESPACE_OWNED: Final = AnyOf(AllOf(_USE_CATALOG, _NAMESPACE), _ABOVE)
_TABLE, _VIEW = owns(Kind.TABLE), owns(Kind.VIEW)
_SELECT, _MODIFY, _CREATE_TABLE = (
    PrivilegeRule(Privilege.SELECT_TABLE),
    PrivilegeRule(Privilege.MODIFY_TABLE),
    PrivilegeRule(Privilege.CREATE_TABLE),
)
_SELECT_VIEW, _CREATE_VIEW = PrivilegeRule(Privilege.SELECT_VIEW), PrivilegeRule(Privilege.CREATE_VIEW)


def _namespace_object(
    kind: Kind,
    *,
    see: tuple[Privilege, ...],
    create: Privilege,
    load: Rule | None = None,
    alter: tuple[Privilege, ...] | None = None,
) -> dict[Action, Rule]:
    """Build the rules that are common to kinds of objects in a namespace.

    Who may load the namespace may list. The privileges `see` list an object and, unless there is a rule `load`, load
    it; so may its owner, who may also change and drop it. The privileges `alter` allow others to change it; with None
    the objects cannot be changed.
    """
    own = owns(kind)
    rules = {
        kind_action(kind, "list"): _NAMESPACE_LOAD,
        kind_action(kind, "see"): _list_item_rule(kind, *see),
        kind_action(kind, "create"): inside(PrivilegeRule(create)),
        kind_action(kind, "load"): load or inside(*map(PrivilegeRule, see), own),
        kind_action(kind, "drop"): inside(own),
    }
    if alter is not None:
        rules[kind_action(kind, "alter")] = inside(*map(PrivilegeRule, alter), own)
    return rules


# ------------------------------------------------------------------------------------------------ the table

_TREE: Final[dict[Action, Rule]] = {
    Action.METALAKE_LOAD: MemberRule(),  # every user of the metalake
    Action.METALAKE_ALTER: _METALAKE,
    Action.METALAKE_SET: _METALAKE,  # switch on and off
    Action.METALAKE_DROP: _METALAKE,
    Action.METALAKE_EXPORT: _METALAKE,  # the export holds all objects, whatever else the caller may see
    Action.OPERATION_LEASE: AnyOf(_METALAKE, ServiceAdminRule()),  # it gives tokens that rewrite tables of others
    Action.WEBHOOK_MANAGE: _METALAKE,  # list, create, drop: webhooks send changes to other systems
    Action.AUDIT_READ: AnyOf(_METALAKE, ServiceAdminRule()),  # records of all users; nobody needs it for own records
    Action.CATALOG_LIST: MemberRule(),  # the list is filtered to catalogs that the caller may load
    Action.CATALOG_CREATE: _metalake_object(Privilege.CREATE_CATALOG),  # also for testing a connection
    Action.CATALOG_LOAD: _CATALOG_LOAD,
    Action.CATALOG_ENABLE: _CATALOG_OWNED,  # Gravitino: _CATALOG_LOAD (setting access.catalog_enable)
    Action.CATALOG_ALTER: _CATALOG_OWNED,
    Action.CATALOG_DROP: _CATALOG_OWNED,
    Action.NAMESPACE_LIST: _CATALOG_LOAD,  # at every depth; the items are filtered
    Action.NAMESPACE_SEE: _list_item_rule(Kind.NAMESPACE, Privilege.USE_SCHEMA),
    # On the nearest existing scope; the owner of that scope needs no USE_CATALOG.
    Action.NAMESPACE_CREATE: AnyOf(
        AllOf(_USE_CATALOG, PrivilegeRule(Privilege.CREATE_SCHEMA)), owns(Kind.METALAKE, Kind.CATALOG, Kind.NAMESPACE)
    ),
    Action.NAMESPACE_LOAD: _NAMESPACE_LOAD,
    Action.NAMESPACE_LOAD_ICEBERG: _namespace_load(_USE_SCHEMA, PrivilegeRule(Privilege.CREATE_SCHEMA)),
    Action.NAMESPACE_ALTER: _NAMESPACE_OWNED,
    Action.NAMESPACE_DROP: _NAMESPACE_OWNED,
    Action.NAMESPACE_MOVE: _NAMESPACE_OWNED,  # and NAMESPACE_CREATE on the new parent
}

_LEAF: Final[dict[Action, Rule]] = {
    Action.TABLE_LIST: _NAMESPACE_LOAD,
    Action.TABLE_SEE: _list_item_rule(Kind.TABLE, Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE),
    Action.TABLE_CREATE: inside(_CREATE_TABLE),
    Action.TABLE_REGISTER: inside(_CREATE_TABLE),
    Action.TABLE_LOAD: inside(_SELECT, _MODIFY, _TABLE),
    # Its rows, if the server reads them for the caller, and values of rows in statistics.
    Action.TABLE_READ: inside(_SELECT, _TABLE),
    Action.TABLE_SCAN: inside(_SELECT, _TABLE),  # its rows through scan planning, within restrictions
    # Users who work with tables or views may ask whether a name is taken.
    Action.TABLE_EXISTS: inside(_SELECT, _MODIFY, _CREATE_TABLE, _SELECT_VIEW, _CREATE_VIEW, _TABLE, _VIEW),
    # A caller who may not load a table, but works with views or creates tables here, may learn that it does not exist.
    Action.TABLE_MAY_PROBE: AllOf(_USE_CATALOG, _USE_SCHEMA, AnyOf(_CREATE_TABLE, _SELECT_VIEW, _CREATE_VIEW, _VIEW)),
    Action.TABLE_ALTER: inside(_MODIFY, _TABLE),
    Action.TABLE_COMMIT: inside(_MODIFY, _TABLE),
    Action.TABLE_REPORTS: inside(_MODIFY, _TABLE),  # metrics reports of clients about scans and commits
    # Names of its files, which may have partition values, and whether they exist.
    Action.TABLE_CHECK: inside(AllOf(_SELECT, _MODIFY), _TABLE),
    Action.TABLE_REWRITE: inside(_MODIFY, _TABLE),  # commits of a maintenance operation, under its own token
    Action.TABLE_MAINTAIN: inside(_MODIFY, _TABLE),  # its maintenance needs, snapshot references and operations
    Action.TABLE_DROP: inside(_TABLE),
    Action.TABLE_RENAME: inside(_MODIFY, _TABLE),  # within its namespace
    Action.TABLE_MOVE: inside(_TABLE),  # and TABLE_CREATE on the new namespace
    Action.VIEW_LIST: _NAMESPACE_LOAD,
    Action.VIEW_SEE: _list_item_rule(Kind.VIEW, Privilege.SELECT_VIEW),
    Action.VIEW_CREATE: inside(_CREATE_VIEW),
    Action.VIEW_LOAD: inside(_SELECT_VIEW, _VIEW),
    Action.VIEW_EXISTS: inside(_SELECT_VIEW, _CREATE_VIEW, _VIEW),
    # Engines look for a view before a table. A right on a table of the same name allows the answer "no such view".
    Action.VIEW_MAY_PROBE: AllOf(
        _USE_CATALOG, _USE_SCHEMA, AnyOf(_CREATE_VIEW, _SELECT, _MODIFY, _CREATE_TABLE, _TABLE)
    ),
    Action.VIEW_ALTER: inside(_VIEW),
    Action.VIEW_DROP: inside(_VIEW),
    Action.VIEW_RENAME: inside(_VIEW),
    Action.VIEW_MOVE: inside(_VIEW),  # and VIEW_CREATE on the new namespace
    **_namespace_object(
        Kind.FILESET,
        see=(Privilege.READ_FILESET, Privilege.WRITE_FILESET),  # files and locations too
        create=Privilege.CREATE_FILESET,
        alter=(Privilege.WRITE_FILESET,),
    ),
    # Its files, by credentials.
    Action.FILESET_READ: inside(PrivilegeRule(Privilege.READ_FILESET), owns(Kind.FILESET)),
    **_namespace_object(
        Kind.TOPIC,
        see=(Privilege.CONSUME_TOPIC, Privilege.PRODUCE_TOPIC),
        create=Privilege.CREATE_TOPIC,
        alter=(Privilege.PRODUCE_TOPIC,),
    ),
    # Loading and changing a model includes its versions, their URIs and aliases.
    **_namespace_object(Kind.MODEL, see=(Privilege.USE_MODEL,), create=Privilege.REGISTER_MODEL, alter=()),
    Action.MODEL_LINK: inside(
        AllOf(PrivilegeRule(Privilege.USE_MODEL), PrivilegeRule(Privilege.LINK_MODEL_VERSION)), owns(Kind.MODEL)
    ),
    **_namespace_object(
        Kind.FUNCTION,
        see=(Privilege.EXECUTE_FUNCTION, Privilege.MODIFY_FUNCTION),
        create=Privilege.REGISTER_FUNCTION,
        alter=(Privilege.MODIFY_FUNCTION,),
    ),
    # Types and synonyms of SQL++ hold no data: users of the namespace see them.
    **_namespace_object(
        Kind.DATATYPE, see=(Privilege.USE_SCHEMA,), create=Privilege.CREATE_TABLE, load=_NAMESPACE_LOAD
    ),
    **_namespace_object(Kind.SYNONYM, see=(Privilege.USE_SCHEMA,), create=Privilege.CREATE_VIEW, load=_NAMESPACE_LOAD),
    **_namespace_object(Kind.EXTERNAL_DATASET, see=(Privilege.SELECT_TABLE,), create=Privilege.CREATE_TABLE),
    # Users of the namespace see objects of declared kinds, which have no data.
    **{
        action: rule
        for kind, declared in DECLARED_KINDS.items()
        for action, rule in _namespace_object(
            kind, see=(Privilege.USE_SCHEMA,), create=Privilege[declared.create_right], load=_NAMESPACE_LOAD, alter=()
        ).items()
    },
}

_ROLE_LOAD: Final = AnyOf(PrivilegeRule(Privilege.MANAGE_GRANTS), _owner_rule(Kind.ROLE), HoldsRoleRule())
_JOB_OWNED: Final = owns(Kind.JOB, Kind.JOB_TEMPLATE, Kind.METALAKE)  # a pipeline's owner is responsible for its runs

_APART_RULES: Final[dict[Action, Rule]] = {
    # Lists are open to members and filtered to the items that the caller may load.
    **dict.fromkeys((Action.USER_LIST, Action.GROUP_LIST, Action.ROLE_LIST, Action.TAG_LIST), MemberRule()),
    **dict.fromkeys((Action.POLICY_LIST, Action.JOB_TEMPLATE_LIST, Action.JOB_LIST), MemberRule()),
    Action.ACCESS_REQUEST: MemberRule(),  # ask its owner for access: gives nothing, and shows nothing
    Action.USER_MANAGE: _metalake_object(Privilege.MANAGE_USERS),  # add, remove, disable
    Action.USER_LOAD: AnyOf(PrivilegeRule(Privilege.MANAGE_USERS), _METALAKE, SelfRule()),
    Action.GROUP_MANAGE: _metalake_object(Privilege.MANAGE_GROUPS),  # add and remove the group itself
    # Adding a member gives the group's roles to the member, so it also takes the right to grant roles.
    Action.GROUP_MEMBERS: AnyOf(
        AllOf(PrivilegeRule(Privilege.MANAGE_GROUPS), PrivilegeRule(Privilege.MANAGE_GRANTS)), _METALAKE
    ),
    Action.GROUP_LOAD: AnyOf(PrivilegeRule(Privilege.MANAGE_GROUPS), _METALAKE, SelfRule()),
    Action.ROLE_CREATE: _metalake_object(Privilege.CREATE_ROLE),
    Action.ROLE_LOAD: _ROLE_LOAD,
    Action.ROLE_DROP: _owner_rule(Kind.ROLE),
    Action.ROLE_ASSIGN: _metalake_object(Privilege.MANAGE_GRANTS),  # to users and groups; replacing a role's grants too
    Action.TAG_CREATE: _metalake_object(Privilege.CREATE_TAG),
    Action.TAG_LOAD: _usable(Kind.TAG, Privilege.APPLY_TAG),
    Action.TAG_APPLY: _usable(Kind.TAG, Privilege.APPLY_TAG),  # and METADATA_LOAD on the target object
    Action.TAG_ALTER: _owner_rule(Kind.TAG),
    Action.TAG_DROP: _owner_rule(Kind.TAG),
    Action.POLICY_CREATE: _metalake_object(Privilege.CREATE_POLICY),
    Action.POLICY_LOAD: _usable(Kind.POLICY, Privilege.APPLY_POLICY),
    Action.POLICY_APPLY: _usable(Kind.POLICY, Privilege.APPLY_POLICY),  # and METADATA_LOAD on the target object
    Action.POLICY_ALTER: _owner_rule(Kind.POLICY),
    Action.POLICY_DROP: _owner_rule(Kind.POLICY),
    Action.JOB_TEMPLATE_CREATE: _metalake_object(Privilege.REGISTER_JOB_TEMPLATE),
    Action.JOB_TEMPLATE_LOAD: _usable(Kind.JOB_TEMPLATE, Privilege.USE_JOB_TEMPLATE),
    Action.JOB_TEMPLATE_ALTER: _owner_rule(Kind.JOB_TEMPLATE),
    Action.JOB_TEMPLATE_DROP: _owner_rule(Kind.JOB_TEMPLATE),
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


# Reading an object's owner, tags, policies or credentials takes the right to load the object.
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

# To set an object's owner: own it or a container of it, and have the USE privileges to reach it.
_LEAF_REACHED: Final = AllOf(_USE_SCHEMA, NotDeniedRule(Privilege.USE_CATALOG))
_OWNER_SET: Final = AnyOf(
    AllOf(_LEAF_REACHED, owns(*NAMESPACE_OBJECTS)), AllOf(_USE_CATALOG, _NAMESPACE), owns(*METALAKE_OBJECTS), _ABOVE
)

# To grant on an object: MANAGE_GRANTS on it or above it, and the USE privileges to reach it. Or the right to set its
# owner.
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

# To restore a dropped object: the right that would drop it, and the right to create such an object at its target.
_UNDROP: Final = ByKind({Kind.NAMESPACE: _NAMESPACE_OWNED, **_rules("drop", *kinds_with(lambda row: row.trash))})

# To protect an object: the right to drop it. To end the protection: ownership of a container of it.
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
        Action.SERVER_INSPECT: ServiceAdminRule(),  # the settings reveal storages and users of all metalakes
        Action.METALAKE_IMPORT: ServiceAdminRule(),  # it creates a metalake with the owners and rights of the file
        Action.AUDIT_READ_ALL: ServiceAdminRule(),
        Action.METALAKE_TAKE: ServiceAdminRule(),  # gives a metalake another owner when its owner cannot
        Action.SECRETS_EXPORT: ServiceAdminRule(),  # and METALAKE_EXPORT: no other request reveals catalogs' secrets
        Action.KEYS_MANAGE: ServiceAdminRule(),  # keys that encrypt the secrets of every metalake
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
        Action.RESTRICT: _PRIVILEGE_GRANT,  # see, set and remove restrictions: they limit what grants give
        Action.EXPLAIN_OTHERS: _metalake_object(Privilege.MANAGE_GRANTS),  # on the object or above it
    }
)
"""The rule of every action."""

SERVER_ACTIONS: Final = frozenset(
    {
        Action.METALAKE_CREATE,
        Action.TOKEN_MANAGE_OTHERS,
        Action.TASK_MANAGE,
        Action.SERVER_INSPECT,
        Action.METALAKE_IMPORT,
        Action.SECRETS_EXPORT,
        Action.KEYS_MANAGE,
        Action.AUDIT_READ_ALL,
        Action.METALAKE_TAKE,
    }
)
"""Actions on the server itself, for which membership of a metalake does not matter."""


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
"""For every list action, the action that decides whether an item is visible in the list."""
