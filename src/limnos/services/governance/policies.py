# SPDX-License-Identifier: Apache-2.0
"""Policies of a metalake: create, alter, enable and disable them; attach them to the kinds of objects that they
support.

Must not know any wire format. `formats.gravitino` checks the content of policies; `services.lookup.metalake_objects`
finds, lists and drops them. This module does not enforce policies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple, cast

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.policies import MAINTENANCE_TYPES, content_text, supported_types
from limnos.formats.iceberg.json_types import Json
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, IllegalObject
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.privileges import kind_word
from limnos.model.records import PolicyRecord
from limnos.names.path import check_gravitino_name
from limnos.services.governance.attachments import attachments_associate
from limnos.services.lookup.metalake_objects import (
    metalake_object_create,
    metalake_object_exists_error,
    metalake_object_find,
)
from limnos.services.lookup.securables import AttachmentTarget
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits, object_edit
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx

_MAINTENANCE_ACTIONS: Final = {
    Kind.TABLE: Action.TABLE_MAINTAIN,
    Kind.NAMESPACE: Action.NAMESPACE_ALTER,
    Kind.CATALOG: Action.CATALOG_ALTER,
}
"""The action on an object that attaching a maintenance policy to it needs."""


class PolicyRequest(NamedTuple):
    """A request to create a policy: type, content, comment and state."""

    policy_type: str
    content: Json
    comment: str | None = None
    enabled: bool = True


class PolicyContent(NamedTuple):
    """The new content of a policy; `policy_type` must be the policy's type."""

    policy_type: str
    content: Json


class PolicyAlter(msgspec.Struct, frozen=True):
    """The command to change a policy; None leaves a part unchanged."""

    policy: Node
    edits: PropertyEdits
    content: str | None
    enabled: bool | None


async def policy_create(ctx: Context, *, metalake: str, name: str, request: PolicyRequest) -> Node:
    """Create a policy; the caller owns it.

    Raises AlreadyExists, InvalidName, BadRequest for an unknown type or invalid content, PermissionDenied.
    """
    text = content_text(request.policy_type, request.content)
    record = PolicyRecord(
        comment=request.comment, properties={}, policy_type=request.policy_type, enabled=request.enabled, content=text
    )
    return await metalake_object_create(ctx, metalake=metalake, kind=Kind.POLICY, name=name, record=record)


async def policy_alter(
    ctx: Context,
    *,
    metalake: str,
    name: str,
    edits: PropertyEdits,
    content: PolicyContent | None = None,
    enabled: bool | None = None,
) -> Node:
    """Rename a policy, change its comment or content, or enable or disable it.

    Raises NotFound, AlreadyExists (the new name), InvalidName, BadRequest for invalid content, PermissionDenied.
    """
    if edits.name is not None:
        check_gravitino_name(edits.name, kind="POLICY")
    text = None if content is None else content_text(content.policy_type, content.content)

    def decide(request_view: RequestView) -> Permit[PolicyAlter]:
        metalake_object = metalake_object_find(request_view, Kind.POLICY, name=name, action=Action.POLICY_ALTER)
        record = cast("PolicyRecord", metalake_object.entity.record)
        if content is not None and text is not None:
            _require_same(record, content.policy_type, text=text)
        return request_view.permit(PolicyAlter(metalake_object.entity, edits, text, enabled), metalake_object.decision)

    try:
        return await ctx.write(RequestScope(metalake), decide, policy_update)
    except AlreadyExists:
        raise metalake_object_exists_error(Kind.POLICY, edits.name or name, metalake=metalake) from None


def _require_same(record: PolicyRecord, policy_type: str, *, text: str) -> None:
    """Refuse to change a policy's type or its kinds of objects, since existing attachments might not fit.

    Raises BadRequest if either differs.
    """
    if policy_type != record.policy_type:
        raise BadRequest(
            f"The policy is of type {record.policy_type} and cannot become one of {policy_type}: create another one"
        )
    before, after = (supported_types(policy_type, each) for each in (record.content, text))
    if set(before) != set(after):
        raise BadRequest(f"The policy is for {', '.join(before)}, which cannot change: create another one")


def policy_update(tx: Tx, permit: Permit[PolicyAlter]) -> Node:
    """Write the edited record, then the new name.

    The caller becomes the author of the policy's terms by a new content, and by enabling it.
    """
    command = permit.command
    node = tx.nodes.confirm(command.policy)
    record = cast("PolicyRecord", node.record)
    if command.content is not None or command.enabled:
        record = replace(record, writer_id=permit.actor_id or 0)
    if command.content is not None:
        record = replace(record, content=command.content)
    if command.enabled is not None:
        record = replace(record, enabled=command.enabled)
    return object_edit(tx, msgspec.structs.replace(node, record=record), edits=command.edits)


async def policies_associate(
    ctx: Context, on: AttachmentTarget, *, adds: tuple[str, ...], removes: tuple[str, ...]
) -> tuple[str, ...]:
    """Attach policies to an object and detach others.

    The server executes a maintenance policy with the rights that both its author and the caller have at that time. In
    addition the caller needs the right to maintain the table, or to alter the namespace or catalog.

    Raises IllegalObject for a policy that does not support the object's kind, and as `attachments_associate`.
    """
    word = kind_word(on.kind)

    def check(policy: Node) -> None:
        record = cast("PolicyRecord", policy.record)
        levels = supported_types(record.policy_type, record.content)
        if word not in levels:
            raise IllegalObject(f"Policy {policy.name} is for {', '.join(levels)}: it cannot be attached to a {word}")

    def action_on_target(policy: Node) -> Action | None:
        is_maintenance = cast("PolicyRecord", policy.record).policy_type in MAINTENANCE_TYPES
        return _MAINTENANCE_ACTIONS.get(on.kind) if is_maintenance else None

    return await attachments_associate(
        ctx, on, kind=Kind.POLICY, adds=adds, removes=removes, check=check, action_on_target=action_on_target
    )
