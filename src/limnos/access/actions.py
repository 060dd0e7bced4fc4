# SPDX-License-Identifier: Apache-2.0
"""Every action that a user can take, as one flat enum.

Must not know rules: `access.policy` has the rules. An action names one operation. Two actions that need the same right
today are still two actions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from limnos.model.declared_kinds import DECLARED_KINDS
from limnos.model.errors import BadRequest
from limnos.model.kind_table import kinds_with
from limnos.model.kinds import CONTAINERS, METALAKE_OBJECTS, NAMESPACE_OBJECTS, Kind
from limnos.model.privileges import kind_word

_SCOPES = (Kind.CATALOG, Kind.NAMESPACE)
_PROTECTED = kinds_with(lambda row: row.protected)
_OWNED = kinds_with(lambda row: row.owned)


class Action(StrEnum):
    """An action, such as `TABLE_LOAD`: its name in lower case, and the kinds of objects that can be its target.

    The target of a create or a list is the container. The target of any action may not exist: see `ChainLink.absent`.
    """

    kinds: frozenset[Kind]
    word: str

    def __new__(cls, word: str, *kinds: Kind) -> Self:
        """Create a member whose value is the action's name, so that an action can be stored, compared and sent as
        text.
        """
        action = str.__new__(cls, word)
        action._value_ = word
        action.word = word
        action.kinds = frozenset(kinds)
        return action

    # The server. The ancestor chain may be empty, or hold the metalake that is created.
    METALAKE_CREATE = "metalake_create", Kind.METALAKE
    TOKEN_MANAGE_OTHERS = "token_manage_others", Kind.METALAKE, Kind.USER, Kind.TOKEN
    TASK_MANAGE = "task_manage", Kind.METALAKE
    SERVER_INSPECT = "server_inspect", Kind.METALAKE
    METALAKE_IMPORT = "metalake_import", Kind.METALAKE
    SECRETS_EXPORT = "secrets_export", Kind.METALAKE
    KEYS_MANAGE = "keys_manage", Kind.METALAKE
    AUDIT_READ_ALL = "audit_read_all", Kind.METALAKE
    METALAKE_TAKE = "metalake_take", Kind.METALAKE

    METALAKE_LOAD = "metalake_load", Kind.METALAKE
    METALAKE_ALTER = "metalake_alter", Kind.METALAKE
    METALAKE_SET = "metalake_set", Kind.METALAKE
    METALAKE_DROP = "metalake_drop", Kind.METALAKE
    METALAKE_EXPORT = "metalake_export", Kind.METALAKE

    OPERATION_LEASE = "operation_lease", Kind.METALAKE
    WEBHOOK_MANAGE = "webhook_manage", Kind.METALAKE
    AUDIT_READ = "audit_read", Kind.METALAKE

    CATALOG_LIST = "catalog_list", Kind.METALAKE
    CATALOG_CREATE = "catalog_create", Kind.METALAKE
    CATALOG_LOAD = "catalog_load", Kind.CATALOG
    CATALOG_ENABLE = "catalog_enable", Kind.CATALOG
    CATALOG_ALTER = "catalog_alter", Kind.CATALOG
    CATALOG_DROP = "catalog_drop", Kind.CATALOG

    NAMESPACE_LIST = "namespace_list", *_SCOPES
    NAMESPACE_SEE = "namespace_see", Kind.NAMESPACE
    NAMESPACE_CREATE = "namespace_create", *_SCOPES
    NAMESPACE_LOAD = "namespace_load", Kind.NAMESPACE
    NAMESPACE_LOAD_ICEBERG = "namespace_load_iceberg", Kind.NAMESPACE
    NAMESPACE_ALTER = "namespace_alter", Kind.NAMESPACE
    NAMESPACE_DROP = "namespace_drop", Kind.NAMESPACE
    NAMESPACE_MOVE = "namespace_move", Kind.NAMESPACE

    TABLE_LIST = "table_list", Kind.NAMESPACE
    TABLE_SEE = "table_see", Kind.TABLE
    TABLE_CREATE = "table_create", Kind.NAMESPACE
    TABLE_REGISTER = "table_register", Kind.NAMESPACE
    TABLE_LOAD = "table_load", Kind.TABLE
    TABLE_READ = "table_read", Kind.TABLE
    TABLE_SCAN = "table_scan", Kind.TABLE
    TABLE_EXISTS = "table_exists", Kind.TABLE, Kind.VIEW
    TABLE_MAY_PROBE = "table_may_probe", Kind.TABLE, Kind.VIEW
    TABLE_ALTER = "table_alter", Kind.TABLE
    TABLE_COMMIT = "table_commit", Kind.TABLE
    TABLE_REPORTS = "table_reports", Kind.TABLE
    TABLE_CHECK = "table_check", Kind.TABLE
    TABLE_MAINTAIN = "table_maintain", Kind.TABLE
    TABLE_REWRITE = "table_rewrite", Kind.TABLE
    TABLE_DROP = "table_drop", Kind.TABLE
    TABLE_RENAME = "table_rename", Kind.TABLE
    TABLE_MOVE = "table_move", Kind.TABLE

    VIEW_LIST = "view_list", Kind.NAMESPACE
    VIEW_SEE = "view_see", Kind.VIEW
    VIEW_CREATE = "view_create", Kind.NAMESPACE
    VIEW_LOAD = "view_load", Kind.VIEW
    VIEW_EXISTS = "view_exists", Kind.VIEW
    VIEW_MAY_PROBE = "view_may_probe", Kind.VIEW, Kind.TABLE
    VIEW_ALTER = "view_alter", Kind.VIEW
    VIEW_DROP = "view_drop", Kind.VIEW
    VIEW_RENAME = "view_rename", Kind.VIEW
    VIEW_MOVE = "view_move", Kind.VIEW

    FILESET_LIST = "fileset_list", Kind.NAMESPACE
    FILESET_SEE = "fileset_see", Kind.FILESET
    FILESET_CREATE = "fileset_create", Kind.NAMESPACE
    FILESET_LOAD = "fileset_load", Kind.FILESET
    FILESET_READ = "fileset_read", Kind.FILESET
    FILESET_ALTER = "fileset_alter", Kind.FILESET
    FILESET_DROP = "fileset_drop", Kind.FILESET

    TOPIC_LIST = "topic_list", Kind.NAMESPACE
    TOPIC_SEE = "topic_see", Kind.TOPIC
    TOPIC_CREATE = "topic_create", Kind.NAMESPACE
    TOPIC_LOAD = "topic_load", Kind.TOPIC
    TOPIC_ALTER = "topic_alter", Kind.TOPIC
    TOPIC_DROP = "topic_drop", Kind.TOPIC

    MODEL_LIST = "model_list", Kind.NAMESPACE
    MODEL_SEE = "model_see", Kind.MODEL
    MODEL_CREATE = "model_create", Kind.NAMESPACE
    MODEL_LOAD = "model_load", Kind.MODEL
    MODEL_LINK = "model_link", Kind.MODEL
    MODEL_ALTER = "model_alter", Kind.MODEL
    MODEL_DROP = "model_drop", Kind.MODEL

    FUNCTION_LIST = "function_list", Kind.NAMESPACE
    FUNCTION_SEE = "function_see", Kind.FUNCTION
    FUNCTION_CREATE = "function_create", Kind.NAMESPACE
    FUNCTION_LOAD = "function_load", Kind.FUNCTION
    FUNCTION_ALTER = "function_alter", Kind.FUNCTION
    FUNCTION_DROP = "function_drop", Kind.FUNCTION

    DATATYPE_LIST = "datatype_list", Kind.NAMESPACE
    DATATYPE_SEE = "datatype_see", Kind.DATATYPE
    DATATYPE_CREATE = "datatype_create", Kind.NAMESPACE
    DATATYPE_LOAD = "datatype_load", Kind.DATATYPE
    DATATYPE_DROP = "datatype_drop", Kind.DATATYPE

    SYNONYM_LIST = "synonym_list", Kind.NAMESPACE
    SYNONYM_SEE = "synonym_see", Kind.SYNONYM
    SYNONYM_CREATE = "synonym_create", Kind.NAMESPACE
    SYNONYM_LOAD = "synonym_load", Kind.SYNONYM
    SYNONYM_DROP = "synonym_drop", Kind.SYNONYM

    EXTERNAL_DATASET_LIST = "external_dataset_list", Kind.NAMESPACE
    EXTERNAL_DATASET_SEE = "external_dataset_see", Kind.EXTERNAL_DATASET
    EXTERNAL_DATASET_CREATE = "external_dataset_create", Kind.NAMESPACE
    EXTERNAL_DATASET_LOAD = "external_dataset_load", Kind.EXTERNAL_DATASET
    EXTERNAL_DATASET_DROP = "external_dataset_drop", Kind.EXTERNAL_DATASET

    # The actions of declared kinds, named by `kind_action`.
    _ignore_ = "_kind _verb"
    for _kind in DECLARED_KINDS:
        for _verb in ("list", "see", "create", "load", "alter", "drop"):
            vars()[f"{_kind.name}_{_verb.upper()}"] = (
                f"{_kind.word}_{_verb}",
                Kind.NAMESPACE if _verb in ("list", "create") else _kind,
            )

    USER_LIST = "user_list", Kind.METALAKE
    USER_MANAGE = "user_manage", Kind.METALAKE, Kind.USER
    USER_LOAD = "user_load", Kind.USER
    GROUP_LIST = "group_list", Kind.METALAKE
    GROUP_MANAGE = "group_manage", Kind.METALAKE, Kind.GROUP
    GROUP_MEMBERS = "group_members", Kind.GROUP
    GROUP_LOAD = "group_load", Kind.GROUP

    ROLE_LIST = "role_list", Kind.METALAKE
    ROLE_CREATE = "role_create", Kind.METALAKE
    ROLE_LOAD = "role_load", Kind.ROLE
    ROLE_DROP = "role_drop", Kind.ROLE
    ROLE_ASSIGN = "role_assign", Kind.METALAKE, Kind.ROLE, Kind.USER, Kind.GROUP

    PRIVILEGE_GRANT = (
        "privilege_grant",
        *CONTAINERS,
        *NAMESPACE_OBJECTS,
        *(kind for kind in METALAKE_OBJECTS if kind.is_node),
    )
    ACCESS_REQUEST = "access_request", *CONTAINERS, *NAMESPACE_OBJECTS
    RESTRICT = "restrict", *kinds_with(lambda row: row.restricted)
    PROTECT = "protect", *_PROTECTED
    UNPROTECT = "unprotect", *_PROTECTED
    UNDROP = "undrop", *kinds_with(lambda row: row.trash)
    OWNER_LOAD = "owner_load", *_OWNED
    OWNER_SET = "owner_set", *_OWNED
    METADATA_LOAD = "metadata_load", *CONTAINERS, *NAMESPACE_OBJECTS, Kind.COLUMN, *METALAKE_OBJECTS
    EXPLAIN_OTHERS = "explain_others", *CONTAINERS, *NAMESPACE_OBJECTS, *METALAKE_OBJECTS, Kind.USER, Kind.GROUP

    TAG_LIST = "tag_list", Kind.METALAKE
    TAG_CREATE = "tag_create", Kind.METALAKE
    TAG_LOAD = "tag_load", Kind.TAG
    TAG_APPLY = "tag_apply", Kind.TAG
    TAG_ALTER = "tag_alter", Kind.TAG
    TAG_DROP = "tag_drop", Kind.TAG
    POLICY_LIST = "policy_list", Kind.METALAKE
    POLICY_CREATE = "policy_create", Kind.METALAKE
    POLICY_LOAD = "policy_load", Kind.POLICY
    POLICY_APPLY = "policy_apply", Kind.POLICY
    POLICY_ALTER = "policy_alter", Kind.POLICY
    POLICY_DROP = "policy_drop", Kind.POLICY

    JOB_TEMPLATE_LIST = "job_template_list", Kind.METALAKE
    JOB_TEMPLATE_CREATE = "job_template_create", Kind.METALAKE
    JOB_TEMPLATE_LOAD = "job_template_load", Kind.JOB_TEMPLATE
    JOB_TEMPLATE_ALTER = "job_template_alter", Kind.JOB_TEMPLATE
    JOB_TEMPLATE_DROP = "job_template_drop", Kind.JOB_TEMPLATE
    JOB_LIST = "job_list", Kind.METALAKE
    JOB_RUN = "job_run", Kind.JOB_TEMPLATE
    JOB_LOAD = "job_load", Kind.JOB
    JOB_CANCEL = "job_cancel", Kind.JOB


def actions_named(verb: str, *kinds: Kind) -> dict[Kind, Action]:
    """Return the action `<kind>_<verb>` of each kind for which it exists.

    A kind without such an action is omitted: no rule covers it, so every such request is refused. The house test lists
    these kinds.
    """
    members = Action.__members__
    return {kind: members[f"{kind.name}_{verb.upper()}"] for kind in kinds if f"{kind.name}_{verb.upper()}" in members}


def kind_action(kind: Kind, verb: str) -> Action:
    """Return the action `<kind>_<verb>`. Raises ValueError if the kind has no such action."""
    return Action(f"{kind.word}_{verb}")


def require_kind(action: Action, kind: Kind) -> None:
    """Check that an action applies to a kind of object. Raises BadRequest if it does not."""
    if kind not in action.kinds:
        fits = " or ".join(kind_word(k).lower() for k in sorted(action.kinds))
        raise BadRequest(f"Action {action.word} is done to a {fits}, not to a {kind_word(kind).lower()}")
