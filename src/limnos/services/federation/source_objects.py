# SPDX-License-Identifier: Apache-2.0
"""Source objects: the common parts of external schemas, tables, views and topics: visible names, creating and dropping.

Must not know the kinds: the caller passes the function that calls the source. Each function decides first, on one
request view, and then calls the source. If an object is not visible to the caller, the error is the same whether it
exists in the source or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from limnos.access.actions import Action
from limnos.access.policy import ITEMS
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import ProtectedObject
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import NodeRecord
from limnos.names.path import Levels, check_gravitino_name
from limnos.services.federation import placeholder_nodes
from limnos.services.federation.connector_values import listable_names
from limnos.services.federation.sources import (
    CatalogSource,
    ask_confirmed,
    ask_source,
    catalog_source_of,
    shown_after_change,
)
from limnos.services.request.context import Context
from limnos.services.request.name_pages import ALL_NAMES, EMPTY_PAGE, list_all_names, page_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.capabilities import BaseCatalog
from limnos.store.objects.protection import protection_read
from limnos.store.tx import Tx

C = TypeVar("C")
T = TypeVar("T")


class VisibleSourceNames(NamedTuple):
    """A filter for the names that a source lists, for one caller.

    A name with a placeholder node (in `known`) is visible if it is in `visible_names`, any other name if `others` is
    true.
    """

    origin: CatalogSource
    scope: RequestScope
    path: Levels
    visible_names: frozenset[str]
    others: bool
    known: frozenset[str]

    def of(self, names: list[str]) -> list[str]:
        """Return the visible names among `names`, in the same order."""
        return [name for name in names if (name in self.visible_names if name in self.known else self.others)]


def visible_names_of_container(
    request_view: RequestView, path: Levels, *, chain: SecurableChain, kind: Kind, action: Action
) -> VisibleSourceNames:
    """Return the filter for the visible names of a kind in a container. It is computed before the source lists the
    names, and again afterwards.
    """
    listed = (
        page_of(request_view, action, kind=kind, chain=chain, page_request=ALL_NAMES) if chain[0].id > 0 else EMPTY_PAGE
    )
    placeholder_names = list_all_names(request_view, kind=kind, chain=chain) if chain[0].id > 0 else ()
    others = request_view.decide(ITEMS[action], (ChainLink.absent(kind, "…"), *chain)).allowed
    return VisibleSourceNames(
        origin=catalog_source_of(request_view),
        scope=request_view.scope,
        path=path,
        visible_names=frozenset(listed.texts()),
        others=others,
        known=frozenset(placeholder_names),
    )


async def names_in_source(
    ctx: Context,
    seen: VisibleSourceNames,
    *,
    visible: Callable[[RequestView, Levels], VisibleSourceNames],
    of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], list[str]],
) -> list[str]:
    """List names in a source. Returns those that are visible to the caller both before and after the source's response.

    A name may become hidden during the call, or lose the placeholder node that hides it. `visible` computes the filter
    again. Raises its errors, and those of the source.
    """

    async def work(current: VisibleSourceNames) -> list[str]:
        names = await ask_source(ctx, current.origin, of=of, question=question)
        return current.of(listable_names(names, catalog=current.origin.catalog.name))

    current, names = await ctx.read_confirmed(
        seen.scope,
        lambda request_view: visible(request_view, seen.path),
        work=work,
        identity=lambda each: each.origin.identity,
        first=seen,
    )
    return current.of(names)


def namespace_objects_visible(
    request_view: RequestView, schema: Levels, *, kind: Kind, action: Action
) -> VisibleSourceNames:
    """Authorize a list of a schema's objects of a kind. Returns the filter for visible names. Raises NotInUse,
    PermissionDenied.
    """
    request_view.require_in_use()
    chain = placeholder_nodes.placeholder_find(request_view, Kind.NAMESPACE, path=schema)[1]
    request_view.require(action, chain)
    return visible_names_of_container(request_view, schema, chain=chain, kind=kind, action=action)


def parent_chain(request_view: RequestView, path: Levels) -> SecurableChain:
    """Return the ancestors of an object, its parent first. Ancestors without placeholder node are
    `ChainLink.absent`.
    """
    return (
        placeholder_nodes.placeholder_find(request_view, Kind.NAMESPACE, path=path[:-1])[1]
        if path[:-1]
        else request_view.settled.outer
    )


async def refuse_probe(ctx: Context, source_lookup: placeholder_nodes.SourceLookup) -> None:
    """Raise the error for a caller who has only the right of the probe, decided again after the source's response.
    Call it before a change in the source. No-op for other callers.
    """
    if source_lookup.refusal is not None:
        await _read_confirmed(
            ctx, source_lookup, work=lambda current: placeholder_nodes.check_existence_probe(ctx, current)
        )
        raise source_lookup.refusal  # the right was granted during the request


async def _read_confirmed(
    ctx: Context,
    source_lookup: placeholder_nodes.SourceLookup,
    *,
    work: Callable[[placeholder_nodes.SourceLookup], Awaitable[T]],
) -> tuple[placeholder_nodes.SourceLookup, T]:
    """Read an object of a source by `work`, and authorize it again afterwards. Returns the later lookup, too.

    The right may have been revoked meanwhile, and the object changed after that. Raises as `Context.read_confirmed`.
    """
    return await ctx.read_confirmed(
        source_lookup.scope,
        source_lookup.find_again,
        work=work,
        identity=lambda each: each.identity,
        first=source_lookup,
    )


async def read_in_source(
    ctx: Context,
    source_lookup: placeholder_nodes.SourceLookup,
    *,
    of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], T],
) -> tuple[placeholder_nodes.SourceLookup, T]:
    """Read an object of a source by a connector's capability, once access is granted, and authorize it again.

    Raises PermissionDenied, NotFound for a caller who may only learn that the object is missing, and as `ask_source`.
    """

    async def work(current: placeholder_nodes.SourceLookup) -> T:
        await placeholder_nodes.check_existence_probe(ctx, current)
        return await ask_source(ctx, current.origin, of=of, question=question)

    return await _read_confirmed(ctx, source_lookup, work=work)


async def create_in_source(
    ctx: Context,
    scope: RequestScope,
    *,
    kind: Kind,
    path: Levels,
    action: Action,
    of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], None],
    load: Callable[[C], T],
    record: NodeRecord | None = None,
) -> tuple[T, Node | None, Node]:
    """Create an object in the source; the caller owns its placeholder node.

    Args:
        ctx: The request.
        scope: The catalog.
        kind: The kind of the object.
        path: The path of the object.
        action: The action on the parent that is authorized.
        of: Returns the connector's capability for the kind; None if the connector lacks it.
        question: A function that creates the object by that capability.
        load: A function that then loads it.
        record: The record of the placeholder node; None for an empty one.

    Returns:
        The object, its placeholder node (None as for `placeholder_submit`), and its catalog.

    Raises:
        InvalidName: The name is not allowed.
        AlreadyExists: The source has an object of that name.
        NotFound: The parent is missing.
        BadRequest: The source refuses the request.
        UnsupportedOperation: The source has no objects of this kind.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not create it.
        StateUnknown: The object was created, but the caller may not see it any more. Also raises the source's errors.
    """
    check_gravitino_name(path[-1], kind="SCHEMA" if kind is Kind.NAMESPACE else kind.word.upper())

    def decide(request_view: RequestView) -> tuple[CatalogSource, Permit[placeholder_nodes.PlaceholderCreate]]:
        request_view.require_in_use()
        decision = request_view.require(action, parent_chain(request_view, path))
        return catalog_source_of(request_view), placeholder_nodes.placeholder_permit(
            request_view, kind, path=path, decision=decision, record=record
        )

    origin, permit = await ctx.read(scope, decide)
    await ask_source(ctx, origin, of=of, question=question, changes=True)
    node = await placeholder_nodes.placeholder_submit(ctx, permit)
    created_object = await shown_after_change(
        ask_confirmed(
            ctx, scope, decide=lambda request_view: decide(request_view)[0], of=of, question=load, first=origin
        )
    )
    return created_object, node, origin.catalog


async def drop_in_source(
    ctx: Context,
    scope: RequestScope,
    *,
    kind: Kind,
    path: Levels,
    action: Action,
    of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], None],
) -> None:
    """Drop an object in the source, and its placeholder node.

    Raises NotFound, NotEmpty, ProtectedObject, NotInUse, PermissionDenied, UnsupportedOperation if the source has no
    objects of this kind, and the source's errors.
    """
    source_lookup, permit = await ctx.read(
        scope,
        lambda request_view: placeholder_drop_permit(
            request_view, placeholder_nodes.find_source_object(request_view, kind, path=path, action=action)
        ),
    )
    await refuse_protected(ctx, source_lookup)
    await ask_source(ctx, source_lookup.origin, of=of, question=question, changes=True)
    await placeholder_drop(ctx, permit)


async def refuse_protected(ctx: Context, source_lookup: placeholder_nodes.SourceLookup) -> None:
    """Raise ProtectedObject for an object that is protected itself, or by an ancestor whose protection includes all
    objects below it.
    """
    protection = await ctx.look_up(lambda: protection_read(source_lookup.nearest))
    if protection is not None and (
        protection.below or (source_lookup.node is not None and protection.node_id == source_lookup.node.id)
    ):
        await ctx.read(source_lookup.scope, source_lookup.find_again)  # a caller without the right does not learn of it
        raise ProtectedObject(
            f"{source_lookup.path[-1]} is protected against drops, itself or by an object above it: remove the"
            " protection first",
            kind=source_lookup.kind.word,
        )


def placeholder_drop_permit(
    request_view: RequestView, source_lookup: placeholder_nodes.SourceLookup
) -> tuple[placeholder_nodes.SourceLookup, Permit[Node] | None]:
    """Return the permit to drop the placeholder node of an object that the source will drop; None if it has no node."""
    if source_lookup.node is None or source_lookup.refusal is not None:
        return source_lookup, None
    return source_lookup, request_view.permit(source_lookup.node, source_lookup.decision, zone=request_view.catalog.id)


async def placeholder_drop(ctx: Context, permit: Permit[Node] | None) -> None:
    """Drop the placeholder node of an object that the source has dropped.

    It is not an error if the node no longer exists or the right was revoked since.
    """
    if permit is not None:
        await placeholder_nodes.submit_source_change(ctx, permit, mutation=_drop)


def _drop(tx: Tx, permit: Permit[Node]) -> None:
    node = tx.nodes.live(permit.command.id)
    if node is not None:
        tx.nodes.drop(node)
