# SPDX-License-Identifier: Apache-2.0
"""Details of one object for display: its node, owner, tags, and the caller's rights on it, in one request view.

Must not know any wire format. Everything is read from one request view, so that a page never mixes two states. The
rights are decisions of the same policy that the operations use.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.access.actions import Action, actions_named
from limnos.model.decisions import SecurableChain
from limnos.model.entities import Node, Principal
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.governance.attachments import ObjectAttachment, attachments_of
from limnos.services.request.request_view import RequestView
from limnos.view.cache_miss import require_fact, require_facts
from limnos.view.keys import attached_key, node_key, principal_id_key

RIGHTS: Final[dict[str, Action]] = {
    "grant": Action.PRIVILEGE_GRANT,
    "explain_others": Action.EXPLAIN_OTHERS,
    "restrict": Action.RESTRICT,
    "protect": Action.PROTECT,
    "set_owner": Action.OWNER_SET,
    "read": Action.TABLE_READ,
    "scan": Action.TABLE_SCAN,
    "write": Action.TABLE_COMMIT,
    "read_files": Action.FILESET_READ,
    "create_namespace": Action.NAMESPACE_CREATE,
    "create_table": Action.TABLE_CREATE,
}
"""Words for rights that pages show, and the action of each. A kind has the words whose actions apply to its objects."""
_BY_VERB: Final = ("alter", "drop")
_RENAMES: Final[dict[Kind, Action]] = {
    Kind.CATALOG: Action.CATALOG_ALTER,
    Kind.NAMESPACE: Action.NAMESPACE_MOVE,
    Kind.TABLE: Action.TABLE_RENAME,
    Kind.VIEW: Action.VIEW_RENAME,
}
"""The action that renames an object within its parent, by kind: its right is the word `rename`."""


class ObjectDetails(NamedTuple):
    """The details of an object that the caller may load.

    - `rights`: the caller's rights on it, words of `RIGHTS`, and `alter`, `drop` and `rename`.
    - `column_tags`: names of the tags on its columns, by field id.
    - `is_access_on`: whether access control is on; otherwise every caller has all rights.
    """

    node: Node
    owner: Principal | None
    rights: frozenset[str]
    tags: list[ObjectAttachment]
    column_tags: dict[int, list[str]]
    is_access_on: bool


def details_load(request_view: RequestView, kind: Kind, *, levels: Levels) -> ObjectDetails:
    """Return the details of an object; `levels` is empty for the catalog or metalake of the request view's scope.

    Raises NotFound, NotInUse, PermissionDenied, and CacheMiss.
    """
    if kind not in (Kind.CATALOG, Kind.METALAKE):
        request_view.require_in_use()
    node, chain, _ = request_view.look_up(kind, levels, Action.METADATA_LOAD)
    owner_id = request_view.owner_of(chain[0])
    owner: Principal | None = None
    if owner_id is not None:
        owner = require_fact(request_view.view, principal_id_key(owner_id), zone=request_view.metalake.id)
    tags = attachments_of(request_view, chain, kind=Kind.TAG) if kind is not Kind.METALAKE else []
    column_tags = _column_tags(request_view, node) if kind is Kind.TABLE else {}
    rights = rights_of(request_view, kind, chain=chain)
    return ObjectDetails(
        node=node,
        owner=owner,
        rights=rights,
        tags=tags,
        column_tags=column_tags,
        is_access_on=request_view.rules.access_enabled,
    )


def rights_of(request_view: RequestView, kind: Kind, *, chain: SecurableChain) -> frozenset[str]:
    """Return the caller's rights on the first object of `chain`, as words such as `read`. No decision is recorded in
    the audit.
    """
    actions = {word: action for word, action in RIGHTS.items() if kind in action.kinds}
    actions |= {verb: action for verb in _BY_VERB for action in actions_named(verb, kind).values()}
    if kind in _RENAMES:
        actions["rename"] = _RENAMES[kind]
    return frozenset(word for word, action in actions.items() if request_view.decide(action, chain).allowed)


def _column_tags(request_view: RequestView, node: Node) -> dict[int, list[str]]:
    rows = require_fact(request_view.view, attached_key(Kind.TAG, node.id), zone=request_view.metalake.id)
    on_columns = [row for row in rows if row.field_id]
    keys = [node_key(row.attached_id) for row in on_columns]
    tags = require_facts(request_view.view, keys, zone=request_view.metalake.id)
    tags_by_field: dict[int, list[str]] = {}
    for row, tag in zip(on_columns, tags, strict=True):
        if (
            tag is not None
            and request_view.decide(Action.TAG_LOAD, request_view.find_outside(Kind.TAG, (tag.name,))[1]).allowed
        ):
            tags_by_field.setdefault(row.field_id, []).append(tag.name)
    return tags_by_field
