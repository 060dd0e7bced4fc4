"""Shadows: nodes that stand for schemas and tables of an outside system, made when something is first to hang on them. Decision record 0078.

May import the rooms below, and `sources` for capabilities. Grants, owners and tags hang on ids of nodes; what a source has is no node. So an object
that is granted on gets one, under its name; until then it has the rights of what it lies in. What stands for an object decides access to that
name, whatever the source does below it; what the source has not is not there, whatever stands for it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import msgspec

from limnos.model.decisions import ChainLink
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, NotFound, PermissionDenied, ServiceUnavailable, StalePermit
from limnos.model.kinds import REST_PROVIDERS, Kind
from limnos.model.records import BLANK_NAMESPACE, BLANK_TABLE, TopicRecord, ViewRecord
from limnos.names.iceberg import render
from limnos.services.federation.sources import ask_source, catalog_source_of
from limnos.services.request.request_view import RequestScope
from limnos.services.request.table_formats import SOURCE, is_sourced
from limnos.sources.connectors.capabilities import with_schemas, with_tables, with_topics, with_views
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from limnos.access.actions import Action
    from limnos.model.decisions import Decision, SecurableChain
    from limnos.model.permits import Permit
    from limnos.model.records import NodeRecord
    from limnos.names.path import Levels
    from limnos.services.federation.sources import CatalogSource
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView
    from limnos.store.tx import Tx

P = ParamSpec("P")
T = TypeVar("T")
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
"""How many shadows one request makes: as many as it may name objects."""


class SourceLookup(NamedTuple):
    """An object of a source that the caller may do something to: whether it is there, the source knows."""

    origin: CatalogSource
    path: Levels
    node: Node | None
    """What stands for it, if anything does."""
    nearest: int
    """The nearest node that is there: itself, or what it lies in."""
    decision: Decision
    kind: Kind
    refusal: PermissionDenied | None = None
    """What is said when it is there: the caller may only learn that it is not."""


class MissingPlaceholder(NotFound):
    """Nothing stands for an object of a source yet. `readings` are the paths that its name may mean.

    Whoever catches it to decide says in `allowed` by which decision the object was asked for.
    """

    def __init__(self, message: str, *, scope: RequestScope, object_kind: Kind, readings: tuple[Levels, ...]) -> None:
        super().__init__(message, kind="object")
        self.scope = scope
        self.object_kind = object_kind
        self.readings = readings
        self.allowed: Callable[[RequestView, SecurableChain], Decision] | None = None


class PlaceholderCreate(msgspec.Struct, frozen=True):
    """Let nodes stand for what lies on a path below `parent`: kinds, name spaces and names, the outermost first.

    `renews`: the last one was just made in its source, so what stood for a predecessor of its name goes.
    """

    parent: Node
    steps: tuple[tuple[Kind, str, str], ...]
    owner_id: int | None
    renews: bool
    record: NodeRecord
    """Of the last one."""


def may_have_placeholders(request_view: RequestView, kind: Kind) -> bool:
    """Say whether nodes may stand for objects of a kind in the request's catalog."""
    if not is_sourced(request_view):
        return False
    return kind in (Kind.NAMESPACE, Kind.TABLE, Kind.TOPIC) or (
        kind is Kind.VIEW and request_view.catalog_record.provider in REST_PROVIDERS
    )


def find_source_object(
    request_view: RequestView, kind: Kind, *, path: Levels, action: Action, probe: Action | None = None
) -> SourceLookup:
    """Decide on an object of a source by its name. Raises PermissionDenied: never NotFound, which is the source's to say.

    Who may `probe` and not do it is told by `check_existence_probe` whether there is such a thing.
    """
    request_view.require_in_use()
    node, chain = placeholder_find(request_view, kind, path=path)
    nearest = next(link.id for link in chain if link.id > 0)
    decision = request_view.decide(action, chain)
    if not decision.allowed and probe is not None:
        probed = request_view.decide(probe, chain)
        if probed.allowed:
            return SourceLookup(
                catalog_source_of(request_view), path, node, nearest, probed, kind, request_view.refusal(decision)
            )
    return SourceLookup(catalog_source_of(request_view), path, node, nearest, request_view.require(action, chain), kind)


def placeholder_find(request_view: RequestView, kind: Kind, *, path: Levels) -> tuple[Node | None, SecurableChain]:
    """Return what stands for an object, if anything of its kind does, and the chain of links from the object up; its own may be absent."""
    node, chain = request_view.find(path, kind)
    if node is not None and node.kind is not kind:  # a view that has become a table, or the reverse
        node, chain = None, chain[1:]
    return node, chain if node is not None else (ChainLink.absent(kind, path[-1]), *chain)


async def check_existence_probe(ctx: Context, source_lookup: SourceLookup) -> None:
    """Let who may only learn that something is missing learn that. Raises PermissionDenied when it is there, else NotFound."""
    if source_lookup.refusal is None:
        return
    if await is_in_source(ctx, source_lookup.origin, kind=source_lookup.kind, path=source_lookup.path):
        raise source_lookup.refusal
    raise NotFound(
        f"{source_lookup.kind.word.capitalize()} does not exist: {render(source_lookup.path)}",
        kind=source_lookup.kind.word,
    )


async def is_in_source(ctx: Context, origin: CatalogSource, *, kind: Kind, path: Levels) -> bool:
    """Ask the source whether it has an object."""
    if kind is Kind.NAMESPACE:
        return await ask_source(ctx, origin, of=with_schemas, question=lambda found: found.schema_exists(path))
    if kind is Kind.TOPIC:
        return await ask_source(
            ctx, origin, of=with_topics, question=lambda found: found.topic_exists(path[0], path[1])
        )
    if kind is Kind.VIEW:
        return await ask_source(
            ctx, origin, of=with_views, question=lambda found: found.view_exists(path[:-1], path[-1])
        )
    return await ask_source(ctx, origin, of=with_tables, question=lambda found: found.table_exists(path[:-1], path[-1]))


def with_placeholders(
    work: Callable[Concatenate[Context, P], Awaitable[T]],
) -> Callable[Concatenate[Context, P], Coroutine[object, object, T]]:
    """Let something stand for the objects of sources that a function of the service finds without, and call it again."""

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
    """Read what hangs on an object. Of one in a source for which nothing stands, `otherwise` says it from the links that it would have.

    So a read makes nothing, and answers what it would if something stood there already. Raises NotFound, and as the reader does.
    """
    for _ in range(READS_MAX):
        try:
            return await ctx.read(scope, reader)
        except MissingPlaceholder as lacking:
            path, missing = await _first_existing_path(ctx, lacking), lacking
        found = await ctx.read(scope, partial(_read_unattached, missing=missing, path=path, otherwise=otherwise))
        if found is not None:
            return found[0]
    raise ServiceUnavailable("The object changed faster than it could be read: try again")


def _read_unattached(
    request_view: RequestView,
    *,
    missing: MissingPlaceholder,
    path: Levels,
    otherwise: Callable[[RequestView, SecurableChain], T],
) -> tuple[T] | None:
    """Decide on an object that nothing stands for, and say what hangs on it; None when something has come to stand for it."""
    node, chain = placeholder_find(request_view, missing.object_kind, path=path)
    if node is not None or missing.allowed is None:
        return None
    missing.allowed(request_view, chain)
    return (otherwise(request_view, chain),)


async def _make_placeholder(ctx: Context, lacking: MissingPlaceholder) -> None:
    """Ask the source for an object, and let a node stand for it: for the first that its name may mean. Raises NotFound."""
    path, allowed = await _first_existing_path(ctx, lacking), lacking.allowed
    if allowed is not None:
        await placeholder_make(ctx, lacking.scope, kind=lacking.object_kind, path=path, allowed=allowed)


async def _first_existing_path(ctx: Context, lacking: MissingPlaceholder) -> Levels:
    """Return the first path that a name may mean which the source has. Raises NotFound."""
    if lacking.allowed is None:
        raise lacking
    origin = await ctx.read(lacking.scope, catalog_source_of)
    for path in lacking.readings:
        if await is_in_source(ctx, origin, kind=lacking.object_kind, path=path):
            return path
    raise NotFound(lacking.message, kind=lacking.kind)


async def placeholder_make(
    ctx: Context, scope: RequestScope, *, kind: Kind, path: Levels, allowed: Callable[[RequestView, SecurableChain], Decision],
    record: NodeRecord | None = None,
) -> Node:  # fmt: skip
    """Let a node stand for an object that the source has. Raises PermissionDenied.

    `record` is what is kept of it here; what stands for it already keeps its own.
    """

    def decide(request_view: RequestView) -> Permit[PlaceholderCreate]:
        decision = allowed(request_view, placeholder_find(request_view, kind, path=path)[1])
        return placeholder_permit(request_view, kind, path=path, decision=decision, made_here=False, record=record)

    while True:
        try:
            return await ctx.write(scope, decide, placeholder_insert)
        except AlreadyExists:  # somebody else was at it
            continue


def placeholder_permit(
    request_view: RequestView, kind: Kind, *, path: Levels, decision: Decision, made_here: bool = True, record: NodeRecord | None = None
) -> Permit[PlaceholderCreate]:  # fmt: skip
    """Return the permit by which a node will stand for what the source is going to make, or to change: taken before the source is asked."""
    owner_id = request_view.maker_id if made_here else None
    command = PlaceholderCreate(
        request_view.catalog, path_steps(request_view, kind, path=path), owner_id, made_here, record or _RECORDS[kind]
    )
    return request_view.permit(command, decision, zone=request_view.catalog.id)


async def placeholder_submit(ctx: Context, permit: Permit[PlaceholderCreate]) -> Node | None:
    """Let a node stand for what the source has made; None when the catalog has gone meanwhile."""
    return await submit_source_change(ctx, permit, mutation=placeholder_insert_current)


async def submit_source_change(ctx: Context, permit: Permit[C], *, mutation: Callable[[Tx, Permit[C]], T]) -> T | None:
    """Write down what a source has done, under the decision that was taken before it: it is done, whatever became of the right since.

    `mutation` must do with what it finds. Returns None, and the log says so, when others change the same names all the time.
    """
    bare = msgspec.structs.replace(permit, stamps=())
    for _ in range(READS_MAX):
        with suppress(AlreadyExists, StalePermit):  # somebody else was at it
            return await ctx.submit(bare, mutation)
    log.warning("nothing stands for what a source has done", zone=permit.zone)
    return None


def placeholder_insert_current(tx: Tx, permit: Permit[PlaceholderCreate]) -> Node | None:
    """Insert what is missing of a path in a catalog that may have another name by now. A maker who is gone owns nothing."""
    command = permit.command
    catalog = tx.nodes.live(command.parent.id)
    if catalog is None:
        return None
    owner_id = command.owner_id if command.owner_id is not None and tx.principals.by_id(command.owner_id) else None
    return placeholder_insert(tx, permit.about(msgspec.structs.replace(command, parent=catalog, owner_id=owner_id)))


def path_steps(request_view: RequestView, kind: Kind, *, path: Levels) -> tuple[tuple[Kind, str, str], ...]:
    """Return kinds, name spaces and names of what lies on a path."""
    kinds = (*(Kind.NAMESPACE for _ in path[:-1]), kind)
    return tuple((each, request_view.space(each), name) for each, name in zip(kinds, path, strict=True))


def placeholder_insert(tx: Tx, permit: Permit[PlaceholderCreate]) -> Node:
    """Insert what is missing of a path."""
    command = permit.command
    at = tx.nodes.confirm(command.parent)
    for position, (kind, space, name) in enumerate(command.steps, 1):
        last = position == len(command.steps)
        found = tx.nodes.find(at.id, space, name)
        if found is not None and (found.kind is not kind or (last and command.renews)):
            tx.nodes.drop(found)
            found = None
        at = found or tx.nodes.create(
            kind=kind, space=space, name=name, parent_id=at.id, zone=permit.zone,
            node_format=SOURCE if kind in (Kind.TABLE, Kind.VIEW) else "",
            record=command.record if last else _RECORDS[kind], owner_id=command.owner_id if last else None,
        )  # fmt: skip
    return at
