# SPDX-License-Identifier: Apache-2.0
"""Attachments: tags and policies on objects and columns, attached, detached, inherited and listed.

Must not know any wire format. It returns the values of tags; `tag_values` changes them. Attachments belong to the
metalake's zone, even if the object lies in a catalog (decision record 0023).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action, kind_action
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, IllegalObject, NotFound, ServiceUnavailable
from limnos.model.kind_table import KIND_TABLE, kinds_with
from limnos.model.kinds import Kind, KindGroup
from limnos.model.permits import Permit
from limnos.services.federation.placeholder_nodes import read_attached, with_placeholders
from limnos.services.lookup.columns import column_require, field_ids
from limnos.services.lookup.metalake_objects import metalake_object_load
from limnos.services.lookup.securables import AttachmentTarget, target_require
from limnos.services.request.context import CONFIRMATIONS_MAX, Context
from limnos.services.request.multi_catalog_reads import read_many_scopes
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.ancestry import path_of
from limnos.store.objects.attachments import OWN, attached_objects_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import for_each, require_facts
from limnos.view.keys import attached_key, node_key

HOLDERS: Final = tuple(sorted(kinds_with(lambda row: row.attachable), key=lambda kind: kind.form is KindGroup.PART))
"""The kinds to which tags and policies can be attached."""
PLURAL: Final = {kind: row.attached_as for kind, row in KIND_TABLE.items() if row.attached_as}
NAMES_MAX: Final = 1_000
"""The maximum number of attachments that one request may add or remove."""


class AttachmentPoint(NamedTuple):
    """An existing target of attachments: its node, the object or column with its ancestors, and the column's field id
    (`OWN` for the object itself).
    """

    node: Node
    chain: SecurableChain
    field_id: int

    @property
    def column(self) -> str | None:
        """The column's name; None for the object itself."""
        return None if self.field_id == OWN else self.chain[0].name


class AttachmentsChange(msgspec.Struct, frozen=True, kw_only=True):
    """The command to attach tags or policies to an object and detach others; `visible_ids` are the ids visible to the
    caller.
    """

    kind: Kind
    target: Node
    field_id: int
    column: str | None
    attached: tuple[Node, ...]
    detached: tuple[Node, ...]
    visible_ids: frozenset[int]


class ObjectAttachment(NamedTuple):
    """A tag or policy on an object, its own or inherited; for a tag with its values on the object."""

    node: Node
    inherited: bool
    values: tuple[str, ...]


class AttachedObject(NamedTuple):
    """An object with an attachment: its path below the metalake, the catalog first."""

    kind: Kind
    path: tuple[str, ...]


def attachment_point_require(request_view: RequestView, on: AttachmentTarget, *, kind: Kind) -> AttachmentPoint:
    """Find the target of an attachment, if it is visible to the caller.

    Raises IllegalObject if objects of its kind cannot have tags or policies, NotFound, NotInUse, PermissionDenied.
    """
    if on.kind not in HOLDERS:
        name = ", ".join(each.word for each in HOLDERS)
        raise IllegalObject(f"A {on.kind.word} cannot have {PLURAL[kind]}: attach them to a {name}")
    request_view.require_in_metalake_use()
    if on.kind is Kind.COLUMN:
        column = column_require(request_view, on.full_name, action=Action.METADATA_LOAD)
        return AttachmentPoint(column.table, column.chain, column.field_id)
    target = target_require(request_view, on.kind, on.full_name, codec_of(request_view), Action.METADATA_LOAD)
    if target.node is None:
        raise IllegalObject(f"{on.kind.word.capitalize()} {on.full_name} cannot have {PLURAL[kind]}")
    return AttachmentPoint(target.node, target.chain, OWN)


async def attachments_list(ctx: Context, on: AttachmentTarget, *, kind: Kind) -> list[ObjectAttachment]:
    """Return an object's attachments that the caller may load: its own first, then the inherited ones.

    Raises as `attachment_point_require`, and ServiceUnavailable after too many concurrent changes of the object.
    """

    def read(request_view: RequestView) -> list[ObjectAttachment]:
        attachment_point = attachment_point_require(request_view, on, kind=kind)
        return attachments_of(request_view, attachment_point.chain, kind=kind, field_id=attachment_point.field_id)

    return await read_attached(
        ctx, on.scope, reader=read, otherwise=lambda request_view, chain: attachments_of(request_view, chain, kind=kind)
    )


async def attachment_load(ctx: Context, on: AttachmentTarget, *, kind: Kind, name: str) -> ObjectAttachment:
    """Return one attachment of an object. Raises as `attachments_list`, NotFound also if neither the object nor an
    ancestor has it.
    """
    for attachment in await attachments_list(ctx, on, kind=kind):
        if attachment.node.name == name:
            return attachment
    word = kind.word.capitalize()
    raise NotFound(f"{word} {name} is not on {on.kind.word} {on.full_name}, or you may not see it", kind=kind.word)


def attachments_of(
    request_view: RequestView, chain: SecurableChain, *, kind: Kind, field_id: int = OWN
) -> list[ObjectAttachment]:
    """Return the tags or policies that the caller may load, of an object and its ancestors up to the catalog. Each is
    returned once, for the nearest object that has it.
    """
    holders = [link for link in chain if link.kind not in (Kind.METALAKE, Kind.COLUMN)]
    zone = request_view.metalake.id
    facts = require_facts(
        request_view.view, [attached_key(kind, link.id) for link in holders if link.id > 0], zone=zone
    )
    field_attachments = [each for each in facts[0] if each.field_id == field_id] if field_id != OWN else []
    first = (
        [field_attachments] if field_id != OWN or holders[0].id <= 0 else []
    )  # a missing object or column has no attachments
    rows = first + [[each for each in fact if each.field_id == OWN] for fact in facts]
    places: dict[int, tuple[bool, tuple[str, ...]]] = {}
    for depth, on in enumerate(rows):
        for each in on:
            places.setdefault(each.attached_id, (depth > 0, each.values))
    nodes = require_facts(request_view.view, [node_key(attached_id) for attached_id in places], zone=zone)
    pairs = zip(nodes, places.values(), strict=True)
    attachments = [ObjectAttachment(node, *rest) for node, rest in pairs if node is not None]
    visible_attachments = for_each(attachments, lambda each: _may_load(request_view, each.node))
    return [each for each, is_shown in zip(attachments, visible_attachments, strict=True) if is_shown]


def _may_load(request_view: RequestView, node: Node) -> bool:
    chain = (ChainLink(node.id, node.kind, node.name), *request_view.settled.outer[-1:])
    return request_view.decide(kind_action(node.kind, "load"), chain).allowed


@with_placeholders
async def attachments_associate(
    ctx: Context,
    on: AttachmentTarget,
    *,
    kind: Kind,
    adds: tuple[str, ...],
    removes: tuple[str, ...],
    check: Callable[[Node], None] = lambda _: None,
    action_on_target: Callable[[Node], Action | None] = lambda _: None,
) -> tuple[str, ...]:
    """Attach tags or policies to an object and detach others, atomically.

    Args:
        ctx: The request.
        on: The object or column.
        kind: TAG or POLICY.
        adds: The names to attach. A name in both lists is ignored.
        removes: The names to detach; detaching one that is not attached is not an error.
        check: Raises to refuse the attachment of a node.
        action_on_target: Returns the action on the object that attaching or detaching a node needs in addition to
            loading it.

    Returns:
        The names of the object's own attachments after the change, as far as the caller may load them.

    Raises:
        NotFound: The object or a name is missing.
        NotInUse: The metalake is disabled.
        PermissionDenied: The caller may not apply one of them, or may not load the object.
        AlreadyExists: One is attached already.
        IllegalObject: Objects of this kind cannot have tags or policies.
        BadRequest: The request names too many.
    """
    if len(adds) + len(removes) > NAMES_MAX:
        many = len(adds) + len(removes)
        raise BadRequest(f"{many} {PLURAL[kind]} in one request are more than the {NAMES_MAX} that are allowed")
    both = frozenset(adds) & frozenset(removes)
    added_names, removed_names = (
        tuple(dict.fromkeys(each for each in names if each not in both)) for names in (adds, removes)
    )

    def decide(request_view: RequestView) -> Permit[AttachmentsChange]:
        request_view.require_in_metalake_use()
        apply = kind_action(kind, "apply")
        results = for_each((*added_names, *removed_names), lambda name: request_view.look_up(kind, (name,), apply))
        nodes, decisions = tuple(each.entity for each in results), [each.decision for each in results]
        # After the names: a caller who may not apply one of them must not learn whether the object exists.
        attachment_point = attachment_point_require(request_view, on, kind=kind)
        decisions.append(request_view.require(Action.METADATA_LOAD, attachment_point.chain))
        actions = dict.fromkeys(action for node in nodes if (action := action_on_target(node)) is not None)
        decisions += [request_view.require(action, attachment_point.chain) for action in actions]
        for node in nodes[: len(added_names)]:
            check(node)
        command = AttachmentsChange(
            kind=kind,
            target=attachment_point.node,
            field_id=attachment_point.field_id,
            column=attachment_point.column,
            attached=nodes[: len(added_names)],
            detached=nodes[len(added_names) :],
            visible_ids=visible_ids_of(request_view, attachment_point, kind=kind, named=nodes),
        )
        return request_view.permit(command, *decisions, zone=request_view.metalake.id)

    return await ctx.write(on.scope, decide, attachments_change)


def visible_ids_of(
    request_view: RequestView, place: AttachmentPoint, *, kind: Kind, named: Iterable[Node]
) -> frozenset[int]:
    """Return the ids of the tags or policies that a response about an object may contain.

    These are the ones that the caller may load, and the ones that the request named.
    """
    attachments = attachments_of(request_view, place.chain, kind=kind, field_id=place.field_id)
    return frozenset([each.node.id for each in attachments] + [node.id for node in named])


def attachments_change(tx: Tx, permit: Permit[AttachmentsChange]) -> tuple[str, ...]:
    """Write and delete the attachments, if the object and the tags or policies still exist. Returns the names of the
    object's own attachments. Raises AlreadyExists.
    """
    command, rows = permit.command, tx.attachments(permit.command.kind, column=permit.command.column)
    target = tx.nodes.confirm(command.target)
    for node in command.attached:
        if not rows.attach(
            tx.nodes.confirm(node).id, target.id, field_id=command.field_id, user_id=permit.actor_id or 0
        ):
            raise already_attached_error(node, target, field_id=command.field_id)
    for node in command.detached:
        rows.detach(tx.nodes.confirm(node).id, target.id, field_id=command.field_id)
    return names_on(tx, target, kind=command.kind, field_id=command.field_id, visible_ids=command.visible_ids)


def already_attached_error(node: Node, target: Node, *, field_id: int, how: str = "") -> AlreadyExists:
    """Return the error for a tag or policy that is already attached to an object. `how` is appended to the message."""
    where = f"{'' if field_id == OWN else 'a column of '}{target.kind.word} {target.name}"
    text = f"{node.kind.word.capitalize()} {node.name} is on {where} already{how}"
    return AlreadyExists(text, kind=f"{node.kind.word}_attachment")


def names_on(tx: Tx, target: Node, *, kind: Kind, field_id: int, visible_ids: frozenset[int]) -> tuple[str, ...]:
    """Return the names of an object's or column's own attachments whose ids are in `visible_ids`, ordered by name."""
    results = tx.attachments(kind).on(target.id, field_id=field_id)
    return tuple([name for attached_id, name in results if attached_id in visible_ids])


async def attached_objects_list(
    ctx: Context, *, metalake: str, kind: Kind, name: str, value: str | None = None
) -> list[AttachedObject]:
    """Return the visible objects and columns that a tag or policy is attached to, in the order of their paths.

    With `value`, only those where the tag has this value. Raises NotFound, PermissionDenied.
    """
    scope = RequestScope(metalake)
    node = await ctx.read(scope, lambda request_view: metalake_object_load(request_view, kind, name=name))
    for _ in range(CONFIRMATIONS_MAX):
        current, objects = await _attached_objects_read(ctx, scope, node=node, value=value)
        if current.id == node.id:
            return objects
        node = current
    word = kind.word.capitalize()
    raise ServiceUnavailable(f"{word} {name} was replaced while it was being read: try again", retry_after_s=1)


async def _attached_objects_read(
    ctx: Context, scope: RequestScope, *, node: Node, value: str | None
) -> tuple[Node, list[AttachedObject]]:
    """Read the objects of a tag or policy. Returns the one that has the name afterwards, which the caller may load in
    the same snapshot as the objects, and the objects.
    """
    pairs, nodes = await ctx.look_up(lambda: attached_objects_read(node.kind, node.id, value=value))
    attachment_rows = [
        _AttachmentRow(object_id, nodes[object_id][1], path, field_id)
        for object_id, field_id in pairs
        if object_id in nodes and (path := path_of(object_id, nodes)) is not None
    ]
    catalogs = dict.fromkeys(each.path[0] for each in attachment_rows)

    def read(request_views: tuple[RequestView, ...]) -> tuple[Node, list[AttachedObject]]:
        current = metalake_object_load(request_views[0], node.kind, name=node.name)
        return current, _known_row(attachment_rows, dict(zip(catalogs, request_views[1:], strict=True)))

    return await read_many_scopes(ctx, (scope, *(scope._replace(catalog=each) for each in catalogs)), read)


class _AttachmentRow(NamedTuple):
    """An object with an attachment: its id, its kind, its path when it was read, and the field id of a column."""

    object_id: int
    kind: Kind
    path: tuple[str, ...]
    field_id: int


def _known_row(places: list[_AttachmentRow], request_views: dict[str, RequestView]) -> list[AttachedObject]:
    columns: dict[tuple[str, ...], dict[int, str]] = {}
    """The columns' names by field id, for each table's path; read once."""
    objects = for_each(places, lambda each: _attached_object(request_views[each.path[0]], each, columns=columns))
    return sorted([each for each in objects if each is not None], key=lambda each: each[::-1])


def _attached_object(
    request_view: RequestView, row: _AttachmentRow, *, columns: dict[tuple[str, ...], dict[int, str]]
) -> AttachedObject | None:
    """Return the object of an attachment if it is visible to the caller; None if it is hidden, or was renamed or
    dropped since, even if another object has its path.
    """
    if row.kind is Kind.CATALOG:
        node, chain = request_view.settled.catalog, request_view.settled.outer
    else:
        node, chain = request_view.find(row.path[1:], row.kind)
    if node is None or node.id != row.object_id or not request_view.decide(Action.METADATA_LOAD, chain).allowed:
        return None
    if row.kind is Kind.CATALOG or row.field_id == OWN:
        return AttachedObject(row.kind, row.path)
    if row.path not in columns:
        columns[row.path] = {field_id: name for name, field_id in field_ids(request_view, node).items()}
    name = columns[row.path].get(row.field_id)
    return None if name is None else AttachedObject(Kind.COLUMN, (*row.path, name))
