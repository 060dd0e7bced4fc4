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

from limnos.model.decisions import Link
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, Forbidden, NotFound, StalePermit, Unavailable
from limnos.model.kinds import FEDERATED, Kind
from limnos.model.records import BLANK_NAMESPACE, BLANK_TABLE, TopicRecord, ViewRecord
from limnos.names.iceberg import render
from limnos.services.federation.sources import ask, origin_of
from limnos.services.request.scene import Scope
from limnos.services.request.table_formats import SOURCE, is_sourced
from limnos.sources.connectors.capabilities import with_schemas, with_tables, with_topics, with_views
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from limnos.access.actions import Action
    from limnos.model.decisions import Chain, Decision
    from limnos.model.permits import Permit
    from limnos.model.records import NodeRecord
    from limnos.names.path import Levels
    from limnos.services.federation.sources import Origin
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
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
MADE_MAX: Final = 2_100
"""How many shadows one request makes: as many as it may name objects."""


class Sought(NamedTuple):
    """An object of a source that the caller may do something to: whether it is there, the source knows."""

    origin: Origin
    path: Levels
    node: Node | None
    """What stands for it, if anything does."""
    nearest: int
    """The nearest node that is there: itself, or what it lies in."""
    decision: Decision
    kind: Kind
    refusal: Forbidden | None = None
    """What is said when it is there: the caller may only learn that it is not."""


class Unshadowed(NotFound):
    """Nothing stands for an object of a source yet. `readings` are the paths that its name may mean.

    Whoever catches it to decide says in `allowed` by which decision the object was asked for.
    """

    def __init__(self, message: str, *, scope: Scope, object_kind: Kind, readings: tuple[Levels, ...]) -> None:
        super().__init__(message, kind="object")
        self.scope = scope
        self.object_kind = object_kind
        self.readings = readings
        self.allowed: Callable[[Scene, Chain], Decision] | None = None


class ShadowCreate(msgspec.Struct, frozen=True):
    """Let nodes stand for what lies on a path below `parent`: kinds, name spaces and names, the outermost first.

    `renews`: the last one was just made in its source, so what stood for a predecessor of its name goes.
    """

    parent: Node
    steps: tuple[tuple[Kind, str, str], ...]
    owner_id: int | None
    renews: bool
    record: NodeRecord
    """Of the last one."""


def has_shadows(scene: Scene, kind: Kind) -> bool:
    """Say whether nodes may stand for objects of a kind in the scene's catalog."""
    if not is_sourced(scene):
        return False
    return kind in (Kind.NAMESPACE, Kind.TABLE, Kind.TOPIC) or (
        kind is Kind.VIEW and scene.catalog_record.provider in FEDERATED
    )


def seek(scene: Scene, kind: Kind, *, path: Levels, action: Action, probe: Action | None = None) -> Sought:
    """Decide on an object of a source by its name. Raises Forbidden: never NotFound, which is the source's to say.

    Who may `probe` and not do it is told by `require_there` whether there is such a thing.
    """
    scene.require_in_use()
    node, chain = stand_in(scene, kind, path=path)
    nearest = next(link.id for link in chain if link.id > 0)
    decision = scene.decide(action, chain)
    if not decision.allowed and probe is not None:
        probed = scene.decide(probe, chain)
        if probed.allowed:
            return Sought(origin_of(scene), path, node, nearest, probed, kind, scene.refusal(decision))
    return Sought(origin_of(scene), path, node, nearest, scene.require(action, chain), kind)


def stand_in(scene: Scene, kind: Kind, *, path: Levels) -> tuple[Node | None, Chain]:
    """Return what stands for an object, if anything of its kind does, and the chain of links from the object up; its own may be absent."""
    node, chain = scene.find(path, kind)
    if node is not None and node.kind is not kind:  # a view that has become a table, or the reverse
        node, chain = None, chain[1:]
    return node, chain if node is not None else (Link.absent(kind, path[-1]), *chain)


async def require_there(ctx: Context, sought: Sought) -> None:
    """Let who may only learn that something is missing learn that. Raises Forbidden when it is there, else NotFound."""
    if sought.refusal is None:
        return
    if await exists(ctx, sought.origin, kind=sought.kind, path=sought.path):
        raise sought.refusal
    raise NotFound(f"{sought.kind.word.capitalize()} does not exist: {render(sought.path)}", kind=sought.kind.word)


async def exists(ctx: Context, origin: Origin, *, kind: Kind, path: Levels) -> bool:
    """Ask the source whether it has an object."""
    if kind is Kind.NAMESPACE:
        return await ask(ctx, origin, of=with_schemas, question=lambda found: found.schema_exists(path))
    if kind is Kind.TOPIC:
        return await ask(ctx, origin, of=with_topics, question=lambda found: found.topic_exists(path[0], path[1]))
    if kind is Kind.VIEW:
        return await ask(ctx, origin, of=with_views, question=lambda found: found.view_exists(path[:-1], path[-1]))
    return await ask(ctx, origin, of=with_tables, question=lambda found: found.table_exists(path[:-1], path[-1]))


def shadowed(
    work: Callable[Concatenate[Context, P], Awaitable[T]],
) -> Callable[Concatenate[Context, P], Coroutine[object, object, T]]:
    """Let something stand for the objects of sources that a function of the service finds without, and call it again."""

    @wraps(work)
    async def call(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(MADE_MAX):
            try:
                return await work(ctx, *args, **kwargs)
            except Unshadowed as lacking:
                await _make(ctx, lacking)
        return await work(ctx, *args, **kwargs)

    return call


async def seen(
    ctx: Context, scope: Scope, *, reader: Callable[[Scene], T], otherwise: Callable[[Scene, Chain], T]
) -> T:
    """Read what hangs on an object. Of one in a source for which nothing stands, `otherwise` says it from the links that it would have.

    So a read makes nothing, and answers what it would if something stood there already. Raises NotFound, and as the reader does.
    """
    for _ in range(READS_MAX):
        try:
            return await ctx.read(scope, reader)
        except Unshadowed as lacking:
            path, missing = await _live_one(ctx, lacking), lacking
        found = await ctx.read(scope, partial(_unseen, missing=missing, path=path, otherwise=otherwise))
        if found is not None:
            return found[0]
    raise Unavailable("The object changed faster than it could be read: try again")


def _unseen(
    scene: Scene, *, missing: Unshadowed, path: Levels, otherwise: Callable[[Scene, Chain], T]
) -> tuple[T] | None:
    """Decide on an object that nothing stands for, and say what hangs on it; None when something has come to stand for it."""
    node, chain = stand_in(scene, missing.object_kind, path=path)
    if node is not None or missing.allowed is None:
        return None
    missing.allowed(scene, chain)
    return (otherwise(scene, chain),)


async def _make(ctx: Context, lacking: Unshadowed) -> None:
    """Ask the source for an object, and let a node stand for it: for the first that its name may mean. Raises NotFound."""
    path, allowed = await _live_one(ctx, lacking), lacking.allowed
    if allowed is not None:
        await shadow_make(ctx, lacking.scope, kind=lacking.object_kind, path=path, allowed=allowed)


async def _live_one(ctx: Context, lacking: Unshadowed) -> Levels:
    """Return the first path that a name may mean which the source has. Raises NotFound."""
    if lacking.allowed is None:
        raise lacking
    origin = await ctx.read(lacking.scope, origin_of)
    for path in lacking.readings:
        if await exists(ctx, origin, kind=lacking.object_kind, path=path):
            return path
    raise NotFound(lacking.message, kind=lacking.kind)


async def shadow_make(
    ctx: Context, scope: Scope, *, kind: Kind, path: Levels, allowed: Callable[[Scene, Chain], Decision],
    record: NodeRecord | None = None,
) -> Node:  # fmt: skip
    """Let a node stand for an object that the source has. Raises Forbidden.

    `record` is what is kept of it here; what stands for it already keeps its own.
    """

    def decide(scene: Scene) -> Permit[ShadowCreate]:
        decision = allowed(scene, stand_in(scene, kind, path=path)[1])
        return making(scene, kind, path=path, decision=decision, made_here=False, record=record)

    while True:
        try:
            return await ctx.write(scope, decide, shadow_insert)
        except AlreadyExists:  # somebody else was at it
            continue


def making(
    scene: Scene, kind: Kind, *, path: Levels, decision: Decision, made_here: bool = True, record: NodeRecord | None = None
) -> Permit[ShadowCreate]:  # fmt: skip
    """Return the permit by which a node will stand for what the source is going to make, or to change: taken before the source is asked."""
    owner_id = scene.maker_id if made_here else None
    command = ShadowCreate(
        scene.catalog, steps_of(scene, kind, path=path), owner_id, made_here, record or _RECORDS[kind]
    )
    return scene.permit(command, decision, zone=scene.catalog.id)


async def shadow_made(ctx: Context, permit: Permit[ShadowCreate]) -> Node | None:
    """Let a node stand for what the source has made; None when the catalog has gone meanwhile."""
    return await submit_done(ctx, permit, mutation=made_insert)


async def submit_done(ctx: Context, permit: Permit[C], *, mutation: Callable[[Tx, Permit[C]], T]) -> T | None:
    """Write down what a source has done, under the decision that was taken before it: it is done, whatever became of the right since.

    `mutation` must do with what it finds. Returns None, and the log says so, when others change the same names all the time.
    """
    bare = msgspec.structs.replace(permit, stamps=())
    for _ in range(READS_MAX):
        with suppress(AlreadyExists, StalePermit):  # somebody else was at it
            return await ctx.submit(bare, mutation)
    log.warning("nothing stands for what a source has done", zone=permit.zone)
    return None


def made_insert(tx: Tx, permit: Permit[ShadowCreate]) -> Node | None:
    """Insert what is missing of a path in a catalog that may have another name by now. A maker who is gone owns nothing."""
    command = permit.command
    catalog = tx.nodes.live(command.parent.id)
    if catalog is None:
        return None
    owner_id = command.owner_id if command.owner_id is not None and tx.principals.by_id(command.owner_id) else None
    return shadow_insert(tx, permit.about(msgspec.structs.replace(command, parent=catalog, owner_id=owner_id)))


def steps_of(scene: Scene, kind: Kind, *, path: Levels) -> tuple[tuple[Kind, str, str], ...]:
    """Return kinds, name spaces and names of what lies on a path."""
    kinds = (*(Kind.NAMESPACE for _ in path[:-1]), kind)
    return tuple((each, scene.space(each), name) for each, name in zip(kinds, path, strict=True))


def shadow_insert(tx: Tx, permit: Permit[ShadowCreate]) -> Node:
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
