# SPDX-License-Identifier: Apache-2.0
"""Moves: decides on renaming or moving a table or view of an external system, and moves its placeholder node with it.

Must not know any wire format. `rename_in_source` does all steps. A protocol that forwards the rename itself decides by
`decide_placeholder_move`, and then moves the placeholder node by `placeholder_follow`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Decision
from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import BLANK_NAMESPACE
from limnos.names.path import Levels
from limnos.services.federation.placeholder_nodes import (
    SourceLookup,
    find_source_object,
    path_steps,
    submit_source_change,
)
from limnos.services.federation.source_objects import parent_chain
from limnos.services.federation.sources import (
    CatalogSource,
    ask_confirmed,
    ask_source,
    catalog_source_of,
    shown_after_change,
)
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.capabilities import BaseCatalog
from limnos.store.tx import Tx

C = TypeVar("C")
T = TypeVar("T")
_MOVES: Final = {
    Kind.TABLE: (Action.TABLE_RENAME, Action.TABLE_MOVE, Action.TABLE_CREATE),
    Kind.VIEW: (Action.VIEW_RENAME, Action.VIEW_MOVE, Action.VIEW_CREATE),
}
"""The actions for renaming, for moving to another namespace, and for creating in the target namespace."""


class MoveDecision(NamedTuple):
    """A table or view that the caller may rename or move, and the decisions that allow it."""

    source_lookup: SourceLookup
    decisions: tuple[Decision, ...]


def decide_move(request_view: RequestView, kind: Kind, *, source: Levels, target: Levels) -> MoveDecision:
    """Authorize the rename or the move of a table or view.

    Raises:
        BadRequest: A path has fewer than two levels, so it names no namespace.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller lacks the right to rename or move it, or to create it in the target namespace.
    """
    if min(len(source), len(target)) < 2:
        raise BadRequest(f"A {kind.word} must be in a namespace: give at least two levels")
    stays = source[:-1] == target[:-1]
    rename, move, make = _MOVES[kind]
    source_lookup = find_source_object(request_view, kind, path=source, action=rename if stays else move)
    if stays:
        return MoveDecision(source_lookup, (source_lookup.decision,))
    return MoveDecision(
        source_lookup, (source_lookup.decision, request_view.require(make, parent_chain(request_view, target)))
    )


def decide_after_move(request_view: RequestView, kind: Kind, *, source: Levels, target: Levels) -> CatalogSource:
    """Authorize showing an object that the caller has just renamed or moved: the caller must still have the right to
    rename it, or to create it in the new namespace. Returns the source.

    Raises NotInUse, PermissionDenied.
    """
    rename, _, make = _MOVES[kind]
    if source[:-1] == target[:-1]:
        return find_source_object(request_view, kind, path=target, action=rename).origin
    request_view.require_in_use()
    request_view.require(make, parent_chain(request_view, target))
    return catalog_source_of(request_view)


async def rename_in_source(
    ctx: Context,
    scope: RequestScope,
    *,
    kind: Kind,
    path: Levels,
    target: Levels,
    of: Callable[[BaseCatalog], C | None],
    rename: Callable[[C], None],
    load: Callable[[C], T],
) -> tuple[T, Node | None, Node]:
    """Rename or move an object of the source with its placeholder node, and load it again.

    Args:
        ctx: The request.
        scope: The catalog.
        kind: TABLE or VIEW.
        path: The path of the object.
        target: Its new path.
        of: Returns the part of the source's interface that has such objects, or None.
        rename: Renames the object in the source.
        load: Loads it at its new path.

    Returns:
        The loaded object, its placeholder node or None, and the catalog.

    Raises:
        StateUnknown: The object was renamed, and the caller lost the right to it meanwhile. Otherwise raises as
            `decide_move`, and the errors of the source.
    """
    source_lookup, permit = await ctx.read(
        scope, lambda request_view: decide_placeholder_move(request_view, kind, source=path, target=target)
    )
    await ask_source(ctx, source_lookup.origin, of=of, question=rename, changes=True)
    await placeholder_follow(ctx, permit)
    renamed_object = await shown_after_change(
        ask_confirmed(
            ctx,
            scope,
            of=of,
            question=load,
            first=source_lookup.origin,
            decide=lambda request_view: decide_after_move(request_view, kind, source=path, target=target),
        )
    )
    return renamed_object, source_lookup.node, source_lookup.origin.catalog


class PlaceholderMove(msgspec.Struct, frozen=True):
    """The command to move a placeholder node to its object's new path, given as kinds, name spaces and names.

    Without a `node`, only a stale placeholder node at the new path is dropped.
    """

    node: Node | None
    catalog: Node
    steps: tuple[tuple[Kind, str, str], ...]


def decide_placeholder_move(
    request_view: RequestView, kind: Kind, *, source: Levels, target: Levels
) -> tuple[SourceLookup, Permit[PlaceholderMove]]:
    """Authorize the rename or the move of a table or view. Returns the object, and the permit to move its placeholder
    node.

    Raises as `decide_move` does.
    """
    decision = decide_move(request_view, kind, source=source, target=target)
    command = PlaceholderMove(
        decision.source_lookup.node, request_view.catalog, path_steps(request_view, kind, path=target)
    )
    return decision.source_lookup, request_view.permit(command, *decision.decisions, zone=request_view.catalog.id)


async def placeholder_follow(ctx: Context, permit: Permit[PlaceholderMove]) -> None:
    """Move the placeholder node after the source renamed its object; a stale placeholder node of the new name is
    dropped.
    """
    await submit_source_change(ctx, permit, mutation=placeholder_move)


def placeholder_move(tx: Tx, permit: Permit[PlaceholderMove]) -> None:
    """Move a placeholder node to its object's new path, create missing parents, and drop a stale node of that path.
    No-op if the catalog was dropped.
    """
    command = permit.command
    catalog = tx.nodes.live(command.catalog.id)
    if catalog is None:
        return
    at, node = catalog, None if command.node is None else tx.nodes.live(command.node.id)
    for kind, space, name in command.steps[:-1]:
        result = tx.nodes.find(at.id, space, name)
        if result is None and node is None:
            return  # no placeholder node exists for the new parent or the object
        at = result or tx.nodes.create(
            kind=kind, space=space, name=name, parent_id=at.id, zone=permit.zone, record=BLANK_NAMESPACE, owner_id=None
        )
    _, space, name = command.steps[-1]
    stale = tx.nodes.find(at.id, space, name)
    if stale is not None and (node is None or stale.id != node.id):
        tx.nodes.drop(stale)
    if node is not None:
        tx.nodes.move(node, parent_id=at.id, name=name, moves_access=True)
