# SPDX-License-Identifier: Apache-2.0
"""Placeholder nodes: nodes for objects of an external system, created when the first grant, owner or tag needs one.

Grants, owners and tags belong to node ids, but external objects are not nodes. So an object with a grant gets a
placeholder node under its name. Until then its parent's grants apply to it. The placeholder node decides access to that
name, regardless of changes in the source. An object that is missing in the source does not exist, even with a
placeholder node. Decision record 0078.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial, wraps
from typing import Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink, Decision, SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, NotFound, PermissionDenied, ServiceUnavailable, StalePermit
from limnos.model.kinds import REST_PROVIDERS, Kind
from limnos.model.permits import Permit
from limnos.model.records import BLANK_NAMESPACE, BLANK_TABLE, NodeRecord, TopicRecord, ViewRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.federation.sources import CatalogSource, ask_source, catalog_source_of
from limnos.services.request.context import Context, read_and_confirm
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import SOURCE, is_sourced
from limnos.sources.connectors.capabilities import with_schemas, with_tables, with_topics, with_views
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")
C = TypeVar("C")
log = get_logger("limnos.sources")
_RECORDS: Final[Mapping[Kind, NodeRecord]] = {
    Kind.NAMESPACE: BLANK_NAMESPACE,
    Kind.TABLE: BLANK_TABLE,
    Kind.TOPIC: TopicRecord(None, {}),
    Kind.VIEW: ViewRecord(None, {}, 0),
}
READS_MAX: Final = 20
PLACEHOLDERS_MAX: Final = 2_100
"""The maximum number of placeholder nodes that one request may create: as many as it may name objects."""


class SourceLookup(NamedTuple):
    """An authorized lookup of an object of a source: its path and the decision. Only the source determines whether it
    exists.
    """

    origin: CatalogSource
    path: Levels
    node: Node | None
    """Its placeholder node, if there is one."""
    nearest: int
    """The id of the nearest existing node: its own placeholder node or an ancestor."""
    decision: Decision
    kind: Kind
    scope: RequestScope
    action: Action
    probe: Action | None
    refusal: PermissionDenied | None = None
    """The refusal to raise if it exists: the caller may only learn that it does not."""

    @property
    def identity(self) -> object:
        """The part of the lookup that must be equal before and after a call of the source."""
        return self.origin.identity, None if self.node is None else self.node.id, self.nearest, self.refusal is None

    def find_again(self, request_view: RequestView) -> SourceLookup:
        """Authorize the same action on the same path again, after a call of the source. Raises as
        `find_source_object`.
        """
        return find_source_object(request_view, self.kind, path=self.path, action=self.action, probe=self.probe)


class MissingPlaceholder(NotFound):
    """Raised if an operation needs the placeholder node of an object that has none yet. `readings` are the possible
    paths of an ambiguous name.

    A function that catches it may set `allowed`, the function that decides on access to the object.
    """

    def __init__(self, message: str, *, scope: RequestScope, object_kind: Kind, readings: tuple[Levels, ...]) -> None:
        super().__init__(message, kind="object")
        self.scope = scope
        self.object_kind = object_kind
        self.readings = readings
        self.allowed: Callable[[RequestView, SecurableChain], Decision] | None = None


class PlaceholderCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create placeholder nodes for a path below `parent`, given as kinds, name spaces and names, the
    outermost first.

    With `renews` the source has just created the last object, so a placeholder node of an earlier object of that name
    is dropped.
    """

    parent: Node
    steps: tuple[tuple[Kind, str, str], ...]
    owner_id: int | None
    renews: bool
    record: NodeRecord
    """The record of the last node."""


def may_have_placeholders(request_view: RequestView, kind: Kind) -> bool:
    """Return whether objects of a kind may have placeholder nodes in the request's catalog."""
    if not is_sourced(request_view):
        return False
    return kind in (Kind.NAMESPACE, Kind.TABLE, Kind.TOPIC) or (
        kind is Kind.VIEW and request_view.catalog_record.provider in REST_PROVIDERS
    )


def find_source_object(
    request_view: RequestView, kind: Kind, *, path: Levels, action: Action, probe: Action | None = None
) -> SourceLookup:
    """Authorize an action on an object of a source. Does not query the source, so it never raises NotFound.

    Args:
        request_view: The request view of the catalog.
        kind: The kind of the object.
        path: The path of the object.
        action: The action on it.
        probe: An action whose right lets a caller learn that the object is missing. If the caller has only this right,
            `check_existence_probe` later queries the source.

    Raises:
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller has neither right.
    """
    request_view.require_in_use()
    node, chain = placeholder_find(request_view, kind, path=path)
    nearest = next(link.id for link in chain if link.id > 0)
    decision, refusal = request_view.decide(action, chain), None
    probed = None if decision.allowed or probe is None else request_view.decide(probe, chain)
    if probed is not None and probed.allowed:
        decision, refusal = probed, request_view.refusal(decision)
    else:
        decision = request_view.require(action, chain)
    return SourceLookup(
        origin=catalog_source_of(request_view),
        path=path,
        node=node,
        nearest=nearest,
        decision=decision,
        kind=kind,
        scope=request_view.scope,
        action=action,
        probe=probe,
        refusal=refusal,
    )


def placeholder_find(request_view: RequestView, kind: Kind, *, path: Levels) -> tuple[Node | None, SecurableChain]:
    """Return the placeholder node of an object (None without one of its kind), and the object with its ancestors."""
    node, chain = request_view.find(path, kind)
    if node is not None and node.kind is not kind:  # a view that has become a table, or the reverse
        node, chain = None, chain[1:]
    return node, chain if node is not None else (ChainLink.absent(kind, path[-1]), *chain)


async def check_existence_probe(ctx: Context, source_lookup: SourceLookup) -> None:
    """Raise the error for a caller who has only the right of the probe: PermissionDenied if the object exists, else
    NotFound. No-op for other callers.

    The caller must decide again before an error becomes visible, as `source_objects` does.
    """
    if source_lookup.refusal is None:
        return
    if await is_in_source(ctx, source_lookup.origin, kind=source_lookup.kind, path=source_lookup.path):
        raise source_lookup.refusal
    raise NotFound(
        f"{source_lookup.kind.word.capitalize()} does not exist: {render(source_lookup.path)}",
        kind=source_lookup.kind.word,
    )


async def is_in_source(ctx: Context, origin: CatalogSource, *, kind: Kind, path: Levels) -> bool:
    """Return whether an object exists in the external system, by a query. Raises the source's errors."""
    if kind is Kind.NAMESPACE:
        return await ask_source(
            ctx, origin, of=with_schemas, question=lambda namespaces: namespaces.schema_exists(path)
        )
    if kind is Kind.TOPIC:
        return await ask_source(
            ctx, origin, of=with_topics, question=lambda catalog: catalog.topic_exists(path[0], path[1])
        )
    if kind is Kind.VIEW:
        return await ask_source(
            ctx, origin, of=with_views, question=lambda catalog: catalog.view_exists(path[:-1], path[-1])
        )
    return await ask_source(
        ctx, origin, of=with_tables, question=lambda catalog: catalog.table_exists(path[:-1], path[-1])
    )


def with_placeholders(
    work: Callable[Concatenate[Context, P], Awaitable[T]],
) -> Callable[Concatenate[Context, P], Coroutine[object, object, T]]:
    """Decorate a service function: when it raises MissingPlaceholder, create the placeholder node and call it again."""

    @wraps(work)
    async def call(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(PLACEHOLDERS_MAX):
            try:
                return await work(ctx, *args, **kwargs)
            except MissingPlaceholder as lacking:
                await _make_placeholder(ctx, lacking)
        return await work(ctx, *args, **kwargs)

    return call


async def read_attached(
    ctx: Context,
    scope: RequestScope,
    *,
    reader: Callable[[RequestView], T],
    otherwise: Callable[[RequestView, SecurableChain], T],
) -> T:
    """Read the attachments of an object; a read creates no placeholder node.

    Args:
        ctx: The request.
        scope: The object's scope.
        reader: Reads the attachments. It raises MissingPlaceholder for an external object without placeholder node.
        otherwise: Returns the attachments of such an object from its ancestors, after the source has confirmed that it
            exists.

    Raises:
        NotFound: The object is missing.
        PermissionDenied: The caller may not read the attachments.
        ServiceUnavailable: Concurrent changes of the object made every attempt fail.
    """
    for _ in range(READS_MAX):
        try:
            return await ctx.read(scope, reader)
        except MissingPlaceholder as lacking:
            path, missing = await _first_existing_path(ctx, lacking), lacking
        result = await ctx.read(scope, partial(_read_unattached, missing=missing, path=path, otherwise=otherwise))
        if result is not None:
            return result[0]
    raise ServiceUnavailable("The object changed faster than it could be read: try again")


async def read_attached_rows(
    ctx: Context,
    scope: RequestScope,
    *,
    reader: Callable[[RequestView], D],
    otherwise: Callable[[RequestView, SecurableChain], D],
    work: Callable[[D], Awaitable[T]],
    identity: Callable[[D], object],
) -> tuple[D, T]:
    """Decide as `read_attached` does, read data that is not in the view, and decide again.

    `work` and `identity` are those of `Context.read_confirmed`. Raises as `read_attached`.
    """

    async def decide() -> D:
        return await read_attached(ctx, scope, reader=reader, otherwise=otherwise)

    decided = await decide()
    if decided is None:
        return decided, await work(decided)  # an external object without placeholder node: nothing is stored about it
    return await read_and_confirm(decided, decide, work=work, identity=identity)


def _read_unattached(
    request_view: RequestView,
    *,
    missing: MissingPlaceholder,
    path: Levels,
    otherwise: Callable[[RequestView, SecurableChain], T],
) -> tuple[T] | None:
    """Authorize and read the attachments of an object without placeholder node, as a tuple of one; None if a node was
    created concurrently.
    """
    node, chain = placeholder_find(request_view, missing.object_kind, path=path)
    if node is not None or missing.allowed is None:
        return None
    missing.allowed(request_view, chain)
    return (otherwise(request_view, chain),)


async def _make_placeholder(ctx: Context, lacking: MissingPlaceholder) -> None:
    """Create a placeholder node for the first of the possible paths that exists in the source.

    Raises NotFound if none exists.
    """
    path, allowed = await _first_existing_path(ctx, lacking), lacking.allowed
    if allowed is not None:
        await placeholder_make(ctx, lacking.scope, kind=lacking.object_kind, path=path, allowed=allowed)


async def _first_existing_path(ctx: Context, lacking: MissingPlaceholder) -> Levels:
    """Return the first of the possible paths that exists in the source. Raises NotFound if none exists."""
    allowed = lacking.allowed
    if allowed is None:
        raise lacking

    def decide(request_view: RequestView) -> CatalogSource:
        allowed(request_view, placeholder_find(request_view, lacking.object_kind, path=lacking.readings[0])[1])
        return catalog_source_of(request_view)

    async def search(origin: CatalogSource) -> Levels:
        for path in lacking.readings:
            if await is_in_source(ctx, origin, kind=lacking.object_kind, path=path):
                return path
        raise NotFound(lacking.message, kind=lacking.kind)

    return (await ctx.read_confirmed(lacking.scope, decide, work=search, identity=lambda origin: origin.identity))[1]


async def placeholder_make(
    ctx: Context,
    scope: RequestScope,
    *,
    kind: Kind,
    path: Levels,
    allowed: Callable[[RequestView, SecurableChain], Decision],
    record: NodeRecord | None = None,
) -> Node:
    """Create the placeholder node of an object that exists in the source.

    Args:
        ctx: The request.
        scope: The catalog.
        kind: The kind of the object.
        path: The path of the object.
        allowed: Decides on the object with its ancestors, or raises a refusal.
        record: The record of a new node; an existing placeholder node keeps its own.

    Raises:
        PermissionDenied: `allowed` refused.
    """

    def decide(request_view: RequestView) -> Permit[PlaceholderCreate]:
        decision = allowed(request_view, placeholder_find(request_view, kind, path=path)[1])
        return placeholder_permit(request_view, kind, path=path, decision=decision, made_here=False, record=record)

    return await ctx.without_key().write(scope, decide, placeholder_insert)


def placeholder_permit(
    request_view: RequestView,
    kind: Kind,
    *,
    path: Levels,
    decision: Decision,
    made_here: bool = True,
    record: NodeRecord | None = None,
) -> Permit[PlaceholderCreate]:
    """Return the permit for the placeholder node of an object that the source will create or change.

    Get the permit before the call of the source, so that the decision precedes the change.

    Args:
        request_view: The request view of the catalog.
        kind: The kind of the object.
        path: The path of the object.
        decision: The decision that allows the caller's action.
        made_here: Whether the source creates the object, which the caller then owns.
        record: The record of the placeholder node; None for an empty one.
    """
    owner_id = request_view.maker_id if made_here else None
    command = PlaceholderCreate(
        parent=request_view.catalog,
        steps=path_steps(request_view, kind, path=path),
        owner_id=owner_id,
        renews=made_here,
        record=record or _RECORDS[kind],
    )
    return request_view.permit(command, decision, zone=request_view.catalog.id)


async def placeholder_submit(ctx: Context, permit: Permit[PlaceholderCreate]) -> Node | None:
    """Create the placeholder node of an object that the source has created; None if the catalog was dropped, or
    concurrent changes made every attempt fail.
    """
    return await submit_source_change(ctx, permit, mutation=placeholder_insert_current)


async def submit_source_change(ctx: Context, permit: Permit[C], *, mutation: Callable[[Tx, Permit[C]], T]) -> T | None:
    """Record a change that a source has already made. The decision made before the change still applies, even if the
    right was revoked since.

    `mutation` must accept any state of the store. Returns None, with a log message, if concurrent changes of the same
    names make every attempt fail.
    """
    bare = msgspec.structs.replace(permit, stamps=())
    for _ in range(READS_MAX):
        with suppress(AlreadyExists, StalePermit):  # another request changed the same names
            return await ctx.submit(bare, mutation)
    log.warning("no placeholder node for a change in a source", zone=permit.zone)
    return None


def placeholder_insert_current(tx: Tx, permit: Permit[PlaceholderCreate]) -> Node | None:
    """Create the missing placeholder nodes of a path, also if the catalog was renamed since the decision; None if it
    was dropped.

    If the owner was removed since, the node gets no owner.
    """
    command = permit.command
    catalog = tx.nodes.live(command.parent.id)
    if catalog is None:
        return None
    owner_id = command.owner_id if command.owner_id is not None and tx.principals.by_id(command.owner_id) else None
    return placeholder_insert(tx, permit.about(msgspec.structs.replace(command, parent=catalog, owner_id=owner_id)))


def path_steps(request_view: RequestView, kind: Kind, *, path: Levels) -> tuple[tuple[Kind, str, str], ...]:
    """Return kind, name space and name of each object on a path, the outermost first."""
    kinds = (*(Kind.NAMESPACE for _ in path[:-1]), kind)
    return tuple((each, request_view.space(each), name) for each, name in zip(kinds, path, strict=True))


def placeholder_insert(tx: Tx, permit: Permit[PlaceholderCreate]) -> Node:
    """Create the missing placeholder nodes of a path.

    The mutation holds the catalog's lock, so no other request can use a name between the check and the creation.
    """
    command = permit.command
    at = tx.nodes.confirm(command.parent)
    for position, (kind, space, name) in enumerate(command.steps, 1):
        last = position == len(command.steps)
        node = tx.nodes.find(at.id, space, name)
        if node is not None and (node.kind is not kind or (last and command.renews)):
            tx.nodes.drop(node)
            node = None
        at = node or tx.nodes.create(
            kind=kind,
            space=space,
            name=name,
            parent_id=at.id,
            zone=permit.zone,
            node_format=SOURCE if kind in (Kind.TABLE, Kind.VIEW) else "",
            record=command.record if last else _RECORDS[kind],
            owner_id=command.owner_id if last else None,
        )
    return at
