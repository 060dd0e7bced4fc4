"""What schemas, tables and topics of outside systems have in common: which names of a list are seen, and how something is made or dropped there.

May import the rooms below, and `sources` for capabilities. Knows no kind of thing: whoever calls says what is asked of the source. Each function decides
first, on one scene, and then asks; what a caller may not know of is refused in the same words whether the source has it or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from limnos.access.policy import ITEMS
from limnos.model.decisions import Link
from limnos.model.errors import Protected
from limnos.model.kinds import Kind
from limnos.names.path import check_gravitino_name
from limnos.services.federation.shadows import making, seek, shadow_made, stand_in, submit_done
from limnos.services.federation.sources import ask, origin_of
from limnos.services.request.pages import EVERY, NO_PAGE, every_name, page_of
from limnos.store.protection import protection_read

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.access.actions import Action
    from limnos.model.decisions import Chain
    from limnos.model.entities import Node
    from limnos.model.permits import Permit
    from limnos.model.records import NodeRecord
    from limnos.names.path import Levels
    from limnos.services.federation.shadows import ShadowCreate, Sought
    from limnos.services.federation.sources import Origin
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene, Scope
    from limnos.sources.connectors.capabilities import BaseCatalog
    from limnos.store.tx import Tx

C = TypeVar("C")


class Seen(NamedTuple):
    """Which names of a list the caller sees: those of `shown`, and of those that nothing stands for all or none."""

    origin: Origin
    path: Levels
    shown: frozenset[str]
    others: bool
    known: frozenset[str]

    def of(self, names: list[str]) -> list[str]:
        """Return the names that are seen, in their order."""
        return [name for name in names if (name in self.shown if name in self.known else self.others)]


def seen_in(scene: Scene, path: Levels, *, chain: Chain, kind: Kind, action: Action) -> Seen:
    """Return which names of a kind in a container the caller sees, whatever the source will list."""
    listed = page_of(scene, action, kind=kind, chain=chain, asked=EVERY) if chain[0].id > 0 else NO_PAGE
    known = every_name(scene, kind=kind, chain=chain) if chain[0].id > 0 else ()
    others = scene.decide(ITEMS[action], (Link.absent(kind, "…"), *chain)).allowed
    return Seen(origin_of(scene), path, frozenset(listed.texts()), others, frozenset(known))


def leaves_seen(scene: Scene, schema: Levels, *, kind: Kind, action: Action) -> Seen:
    """Decide on listing what a schema has of a kind. Raises Forbidden."""
    scene.require_in_use()
    chain = stand_in(scene, Kind.NAMESPACE, path=schema)[1]
    scene.require(action, chain)
    return seen_in(scene, schema, chain=chain, kind=kind, action=action)


def above_of(scene: Scene, path: Levels) -> Chain:
    """Return the chain of what an object lies in, as far as anything stands for that."""
    return stand_in(scene, Kind.NAMESPACE, path=path[:-1])[1] if path[:-1] else scene.settled.outer


async def made_in_source(
    ctx: Context, scope: Scope, *, kind: Kind, path: Levels, action: Action, of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], None], record: NodeRecord | None = None,
) -> tuple[Origin, Node | None]:  # fmt: skip
    """Make something in the source; its maker owns what stands for it. Raises AlreadyExists, NotFound (what it lies in), BadRequest, Unsupported, Forbidden.

    `action` is done to what it lies in; `record` is what is kept of it here.
    """
    check_gravitino_name(path[-1], kind="SCHEMA" if kind is Kind.NAMESPACE else kind.word.upper())

    def decide(scene: Scene) -> tuple[Origin, Permit[ShadowCreate]]:
        scene.require_in_use()
        decision = scene.require(action, above_of(scene, path))
        return origin_of(scene), making(scene, kind, path=path, decision=decision, record=record)

    origin, permit = await ctx.read(scope, decide)
    await ask(ctx, origin, of=of, question=question, changes=True)
    return origin, await shadow_made(ctx, permit)


async def dropped_in_source(
    ctx: Context, scope: Scope, *, kind: Kind, path: Levels, action: Action, of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], None],
) -> None:  # fmt: skip
    """Drop something in the source, and what stands for it. Raises NotFound, NotEmpty, Protected, Unsupported, Forbidden."""
    sought, permit = await ctx.read(scope, lambda scene: dropping(scene, seek(scene, kind, path=path, action=action)))
    await refuse_protected(ctx, sought)
    await ask(ctx, sought.origin, of=of, question=question, changes=True)
    await shadow_dropped(ctx, permit)


async def refuse_protected(ctx: Context, sought: Sought) -> None:
    """Refuse to drop what lies in something that is protected with all that is below. Raises Protected."""
    found = await ctx.look_up(lambda: protection_read(sought.nearest))
    if found is not None and (found.below or (sought.node is not None and found.node_id == sought.node.id)):
        raise Protected(
            f"{sought.path[-1]} lies in what is protected with all that is below: end that protection first",
            kind=sought.kind.word,
        )


def dropping(scene: Scene, sought: Sought) -> tuple[Sought, Permit[Node] | None]:
    """Return the permit to drop what stands for an object that the source is going to drop; None where nothing does."""
    if sought.node is None or sought.refusal is not None:
        return sought, None
    return sought, scene.permit(sought.node, sought.decision, zone=scene.catalog.id)


async def shadow_dropped(ctx: Context, permit: Permit[Node] | None) -> None:
    """Drop what stood for an object that the source has no longer. Nothing has to stand for it, and nobody has to be let in again."""
    if permit is not None:
        await submit_done(ctx, permit, mutation=_drop)


def _drop(tx: Tx, permit: Permit[Node]) -> None:
    held = tx.nodes.live(permit.command.id)
    if held is not None:
        tx.nodes.drop(held)
