"""Namespaces: make with missing parents, load, list, alter, drop, move with the whole subtree.

May import the rooms below. Knows no wire format. A missing namespace answers NotFound to whoever may list namespaces,
who can find out anyway, and Forbidden to everyone else; so a refusal does not tell whether it exists.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Link
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, Unsupported
from limnos.model.kinds import TABLE_FORMATS, Kind
from limnos.model.records import BLANK_NAMESPACE, NamespaceRecord
from limnos.names.dataverse import METADATA_NAME
from limnos.names.iceberg import render
from limnos.names.path import PARTS_MAX, check_part
from limnos.services.lookup.nested import NESTED
from limnos.services.lookup.objects import codec_of
from limnos.services.request.browsing import listing_require
from limnos.services.request.pages import EVERY, NO_PAGE, Asked, Page, page_of
from limnos.services.request.places import Place, place_of
from limnos.services.request.scene import Scope
from limnos.services.request.table_formats import is_sourced, refuse_federated, refuse_making, refuse_sourced
from limnos.services.storage.homes import base_of, home_of, located

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.model.decisions import Chain
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.properties import Edits
    from limnos.services.request.scene import Found, Scene
    from limnos.store.tx import Tx


class NamespaceCreate(msgspec.Struct, frozen=True):
    """Make a namespace below `parent`, with the missing ones between: `names` are theirs and, last, its own."""

    parent: Node
    names: Levels
    space: str
    record: NamespaceRecord
    owner_id: int | None


class NamespaceAlter(msgspec.Struct, frozen=True):
    """Replace a namespace's record; `edit` gets what is stored, `place` says where its location may be."""

    namespace: Node
    edit: Callable[[NamespaceRecord], NamespaceRecord]
    place: Place


class NamespaceDrop(msgspec.Struct, frozen=True):
    """Drop an empty namespace; it can be brought back for `keep_ms`."""

    namespace: Node
    keep_ms: int = 0
    levels: Levels = ()
    """Its whole name, for refusals."""


class NamespaceMove(msgspec.Struct, frozen=True):
    """Give a namespace another name, another parent, or both; its subtree goes along.

    `room`: how many levels may lie below it where it goes; None when it does not go deeper.
    """

    namespace: Node
    into: Node
    name: str
    room: int | None
    frees: bool = False
    """Whether who moves it may end its protection; else it stays in what it lies in while it is protected."""


def already_exists(levels: Levels, holder: str = "namespace") -> AlreadyExists:
    """Say that the name of a namespace is taken; `holder` is the kind of what has it, as a Lance catalog's tables may."""
    words = f"{holder.capitalize()} already exists: {render(levels)}"
    if holder != Kind.NAMESPACE.word:
        words += f", and no namespace can have the name of a {holder} beside it: choose another one"
    return AlreadyExists(words, kind="namespace")


def namespace_find(scene: Scene, levels: Levels, action: Action) -> Found[Node]:
    """Find a namespace for who may do the action to it. Raises NotFound, Forbidden."""
    scene.require_in_use()
    refuse_sourced(scene, Kind.NAMESPACE, levels=levels, action=action)
    return scene.look_up(Kind.NAMESPACE, levels, action)


def namespace_load(scene: Scene, levels: Levels, *, action: Action = Action.NAMESPACE_LOAD) -> Node:
    """Return a namespace."""
    return namespace_find(scene, levels, action).entity


def namespace_load_home(scene: Scene, levels: Levels, *, action: Action) -> tuple[Node, str]:
    """Return a namespace, and where clients that choose a table's location choose it."""
    node, chain, _ = namespace_find(scene, levels, action)
    return node, home_of(node, base_of(scene, chain[1:]))


def namespaces_list(scene: Scene, parent: Levels, asked: Asked = EVERY) -> Page:
    """Return a page of what the caller sees of a namespace's children, or of the catalog's for no levels.

    A namespace above what the caller may use is among them, as a name. Raises NotFound for a missing parent, Forbidden for a catalog
    that the caller may not use, unless a name in it is shown.
    """
    scene.require_in_use()
    listing_require(scene, parent)
    chain = scene.settled.outer
    refuse_federated(scene)
    if is_sourced(scene):
        return NO_PAGE
    if parent:
        node, chain = scene.find(parent, Kind.NAMESPACE)
        if node is None:
            raise scene.missing(Kind.NAMESPACE, parent)
    return page_of(scene, Action.NAMESPACE_LIST, kind=Kind.NAMESPACE, chain=chain, asked=asked)


async def namespace_create(
    ctx: Context, scope: Scope, *, levels: Levels, comment: str | None = None, properties: dict[str, str],
    check: Callable[[str], object] = check_part, parents: bool = True,
) -> tuple[Node, str]:  # fmt: skip
    """Make a namespace and its missing parents, all with the maker as owner; all or nothing. Returns it and its home.

    Without `parents` a missing parent is NotFound, for who may create there.
    `check` is a protocol's stricter rule for names; it is asked about those that are made, not about existing parents.
    Raises IllegalName for a part that holds the separator; BadRequest for a reserved name; OutsideRoots for its location; AlreadyExists; Forbidden without CREATE_SCHEMA on the nearest existing scope, or on one above it.
    """
    above = ""

    def decide(scene: Scene) -> Permit[NamespaceCreate]:
        nonlocal above
        record = NamespaceRecord(comment=comment, properties=properties)
        permit, above = namespace_create_of(scene, levels, record, check=check, parents=parents)
        return permit

    try:
        node = await ctx.write(scope, decide, namespace_insert)
    except AlreadyExists as error:
        raise already_exists(levels, error.kind) from None
    return node, home_of(node, above)


def namespace_create_of(
    scene: Scene, levels: Levels, record: NamespaceRecord, *, check: Callable[[str], object] = check_part,
    parents: bool = True,
) -> tuple[Permit[NamespaceCreate], str]:  # fmt: skip
    """Decide on making a namespace; returns what its home lies in, too. Raises what `namespace_create` does."""
    scene.require_in_use()
    _check_parts(scene, levels)
    nearest, lacking, chain = None, levels, scene.settled.outer
    for size in range(len(levels) - 1, 0, -1):
        node, found = scene.find(levels[:size], Kind.NAMESPACE)
        if node is not None:
            nearest, lacking, chain = node, levels[size:], found
            break
    absent = [Link.absent(Kind.NAMESPACE, name) for name in reversed(lacking[:-1])]
    decision = scene.require(Action.NAMESPACE_CREATE, (*absent, *chain))  # in the words that existing parents would get
    refuse_making(scene)
    _refuse_nesting(scene, levels)
    _refuse_reserved(scene, levels)
    parent = scene.catalog if nearest is None else nearest
    if len(lacking) > 1 and not parents:
        raise scene.missing(Kind.NAMESPACE, levels[:-1])
    if not lacking or (len(lacking) == 1 and scene.is_taken(parent.id, Kind.NAMESPACE, lacking[0])):
        holder = scene.holder_of(parent.id, Kind.NAMESPACE, lacking[0]) if lacking else None
        raise already_exists(levels, (holder or Kind.NAMESPACE).word)
    for name in lacking:
        check(name)
    placed = located(None, record, place_of(scene))
    command = NamespaceCreate(parent, lacking, scene.space(Kind.NAMESPACE), placed, scene.maker_id)
    return scene.permit(command, decision), base_of(scene, chain)


def _check_parts(scene: Scene, levels: Levels) -> None:
    """Refuse names that hold the separator: Gravitino's clients would read two. Raises InvalidName."""
    codec = codec_of(scene)
    for part in levels:
        codec.check_namespace_part(part)


def _refuse_nesting(scene: Scene, levels: Levels) -> None:
    """Refuse a namespace within another in a catalog whose schemas do not nest. Raises Unsupported."""
    if len(levels) > 1 and not codec_of(scene).nested:
        record = scene.catalog_record
        why = (
            f"its property {NESTED} says so"
            if record.provider in TABLE_FORMATS
            else f"its provider is {record.provider}"
        )
        raise Unsupported(f"Schemas of catalog {scene.catalog.name} do not nest, as {why}: {levels[0]} can hold none")


def _refuse_reserved(scene: Scene, levels: Levels) -> None:
    """Refuse `Metadata`, and what would lie in it, in the catalog of SQL++: its statements read their own metadata by that name. Raises BadRequest."""
    metalake, defaults = scene.settled.metalake, scene.defaults
    is_sqlpp = metalake is not None and (metalake.name, scene.catalog.name) == (
        defaults.metalake,
        defaults.sqlpp_catalog,
    )
    if is_sqlpp and levels[0] == METADATA_NAME:
        raise BadRequest(
            f"Namespace {'.'.join(levels)} cannot be created in catalog {scene.catalog.name}: SQL++ reserves {METADATA_NAME} there for its "
            "metadata. Choose another name"
        )


def namespace_insert(tx: Tx, permit: Permit[NamespaceCreate]) -> Node:
    """Insert the missing parents, outermost first, and the namespace itself."""
    command = permit.command
    parent = tx.nodes.confirm(command.parent)
    for position, name in enumerate(command.names, 1):
        last = position == len(command.names)
        taken = None if last else tx.nodes.find(parent.id, command.space, name)
        if taken is not None and taken.kind is Kind.NAMESPACE:
            tx.stale()  # a parent that was missing has come: decide on it
        parent = tx.nodes.create(
            kind=Kind.NAMESPACE, space=command.space, name=name, parent_id=parent.id, zone=permit.zone,
            record=command.record if last else BLANK_NAMESPACE,
            implicit=not last, owner_id=command.owner_id,
        )  # fmt: skip
    return parent


async def namespace_alter(ctx: Context, scope: Scope, *, levels: Levels, edits: Edits) -> Node:
    """Change a namespace's comment and properties, its own only."""

    def edit(record: NamespaceRecord) -> NamespaceRecord:
        return replace(record, comment=edits.comment_over(record.comment), properties=edits.over(record.properties))

    return await namespace_edit(ctx, scope, levels=levels, edit=edit)


async def namespace_edit(
    ctx: Context, scope: Scope, *, levels: Levels, edit: Callable[[NamespaceRecord], NamespaceRecord]
) -> Node:
    """Change a namespace's record by a function of what is stored."""

    def decide(scene: Scene) -> Permit[NamespaceAlter]:
        node, _, decision = namespace_find(scene, levels, Action.NAMESPACE_ALTER)
        return scene.permit(NamespaceAlter(node, edit, place_of(scene)), decision)

    return await ctx.write(scope, decide, namespace_update)


def namespace_update(tx: Tx, permit: Permit[NamespaceAlter]) -> Node:
    """Write the namespace's edited record; an edit that changes nothing leaves it unmodified."""
    command = permit.command
    held = tx.nodes.confirm(command.namespace)
    before = cast("NamespaceRecord", held.record)
    after = command.edit(before)
    if after == before:
        return held
    tx.nodes.write_record(held, located(before, after, command.place))
    return tx.nodes.by_id(held.id)


async def namespace_drop(ctx: Context, scope: Scope, *, levels: Levels) -> None:
    """Drop a namespace, that one only. Raises NotFound, NotEmpty."""
    await ctx.write(scope, lambda scene: namespace_drop_of(scene, levels), namespace_delete)


def namespace_drop_of(scene: Scene, levels: Levels) -> Permit[NamespaceDrop]:
    """Decide on dropping a namespace. Raises NotFound, Forbidden."""
    node, _, decision = namespace_find(scene, levels, Action.NAMESPACE_DROP)
    return scene.permit(NamespaceDrop(node, scene.defaults.keep_dropped_ms, levels), decision)


def namespace_delete(tx: Tx, permit: Permit[NamespaceDrop]) -> None:
    """Drop the namespace if nothing is in it."""
    command = permit.command
    held = tx.nodes.confirm(command.namespace)
    tx.nodes.require_empty(held, named=render(command.levels) if command.levels else "")
    tx.nodes.drop(held, keep_ms=command.keep_ms)


async def namespace_move(ctx: Context, scope: Scope, *, source: Levels, target: Levels) -> None:
    """Rename or move a namespace within its catalog, subtree and all; one row is written.

    Raises NotFound (source, or the target's parent), AlreadyExists, BadRequest for a move into itself or to a reserved name.
    """
    await ctx.write(scope, lambda scene: namespace_move_of(scene, source, target), namespace_reparent)


def namespace_move_of(scene: Scene, source: Levels, target: Levels) -> Permit[NamespaceMove]:
    """Decide on renaming or moving a namespace. Raises NotFound, Forbidden."""
    _check_parts(scene, target)
    node, chain, decision = namespace_find(scene, source, Action.NAMESPACE_MOVE)
    _refuse_nesting(scene, target)
    if source[0] != METADATA_NAME:  # one that is there from before may be renamed within it
        _refuse_reserved(scene, target)
    into, above = parent_of(scene, target)
    decisions = [decision]
    stays = into.id == node.parent_id
    if not stays:
        decisions.append(scene.require(Action.NAMESPACE_CREATE, above))
    room = PARTS_MAX - len(target) if len(target) > len(source) else None
    frees = stays or scene.decide(Action.UNPROTECT, chain).allowed
    return scene.permit(NamespaceMove(node, into, target[-1], room, frees), *decisions)


def parent_of(scene: Scene, levels: Levels) -> tuple[Node, Chain]:
    """Return the container that levels name without the last: a namespace, or the catalog."""
    if len(levels) == 1:
        return scene.catalog, scene.settled.outer
    node, chain = scene.find(levels[:-1], Kind.NAMESPACE)
    if node is None:
        node, chain, _ = scene.look_up(Kind.NAMESPACE, levels[:-1], Action.NAMESPACE_LOAD)
    return node, chain


def namespace_reparent(tx: Tx, permit: Permit[NamespaceMove]) -> None:
    """Put the namespace where it goes."""
    command = permit.command
    held = tx.nodes.confirm(command.namespace)
    into = tx.nodes.confirm(command.into)
    if tx.nodes.is_below(into.id, held.id):
        raise BadRequest(f"Namespace {held.name} cannot be moved into itself or below itself: choose another target")
    if held.parent_id != into.id and not command.frees:
        tx.protection.refuse_move(held)
    if command.room is not None and tx.nodes.height(held.id) > command.room:
        raise BadRequest(f"Moved there, what lies in namespace {held.name} would be deeper than {PARTS_MAX} levels")
    tx.nodes.move(held, parent_id=into.id, name=command.name, moves_access=True)
