"""Tags and policies on objects: attach and detach them, see what came down from above, and what one is on.

May import the rooms below. Knows no wire format. What hangs on what is on the metalake's clock, whatever catalog the object lies in (decision
record on what lies in no catalog).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Link
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, IllegalObject, NotFound
from limnos.model.kinds import LEAVES, Kind
from limnos.services.apart import apart_load
from limnos.services.objects import codec_of, scope_for, target_require
from limnos.services.scene import Scope
from limnos.services.shadows import shadowed
from limnos.services.together import read_together
from limnos.store.ancestry import path_of
from limnos.store.attachments import attached_objects_read
from limnos.view.cold import for_each, need_all
from limnos.view.keys import attached_key, node_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from limnos.model.decisions import Chain
    from limnos.model.permits import Permit
    from limnos.services.context import Context
    from limnos.services.objects import Target
    from limnos.services.scene import Scene
    from limnos.store.tx import Tx

HOLDERS: Final = (Kind.CATALOG, Kind.NAMESPACE, *LEAVES)
"""What something may be attached to."""
PLURAL: Final = {Kind.TAG: "tags", Kind.POLICY: "policies"}
NAMES_MAX: Final = 1_000
"""How many one request may attach or detach."""


class On(NamedTuple):
    """An object of the metalake's tree, as a request names it."""

    metalake: str
    kind: Kind
    full_name: str

    @property
    def scope(self) -> Scope:
        """Where it lies."""
        return scope_for(self.metalake, self.kind, self.full_name)


class AttachmentsChange(msgspec.Struct, frozen=True):
    """Attach to an object and detach from it; `shown` are those, by id, that the caller may hear of."""

    kind: Kind
    target: Node
    attached: tuple[Node, ...]
    detached: tuple[Node, ...]
    shown: frozenset[int]


class Attached(NamedTuple):
    """A tag or policy as an object has it: its own, or inherited from something above it."""

    node: Node
    inherited: bool


class Holder(NamedTuple):
    """An object that something is attached to: its path below the metalake, the catalog first."""

    kind: Kind
    path: tuple[str, ...]


def _holder(scene: Scene, on: On, *, kind: Kind) -> Target:
    """Find what something may be attached to, for whoever may know of it. Raises IllegalObject, NotFound, Forbidden."""
    if on.kind not in HOLDERS:
        taken = ", ".join(each.word for each in HOLDERS)
        raise IllegalObject(f"A {on.kind.word} takes no {PLURAL[kind]}: attach them to a {taken}")
    scene.require_in_metalake_use()
    return target_require(scene, on.kind, on.full_name, codec_of(scene), Action.METADATA_LOAD)


@shadowed
async def attached_list(ctx: Context, on: On, *, kind: Kind) -> list[Attached]:
    """Return what is attached to an object, its own first, then what comes down to it; what the caller may load."""
    return await ctx.read(on.scope, lambda scene: attached_of(scene, _holder(scene, on, kind=kind).chain, kind=kind))


async def attached_load(ctx: Context, on: On, *, kind: Kind, name: str) -> Attached:
    """Return one of what is attached to an object. Raises NotFound when it is not on it, nor on anything above it."""
    for found in await attached_list(ctx, on, kind=kind):
        if found.node.name == name:
            return found
    word = kind.word.capitalize()
    raise NotFound(f"{word} {name} is not on {on.kind.word} {on.full_name}, or you may not know of it", kind=kind.word)


def attached_of(scene: Scene, chain: Chain, *, kind: Kind) -> list[Attached]:
    """Return what is attached along a chain up to the catalog, each once, as near to its first object as it is; what one may load."""
    holders = [link for link in chain if link.kind is not Kind.METALAKE]
    zone = scene.metalake.id
    ids = need_all(scene.view, [attached_key(kind, link.id) for link in holders], zone=zone)
    places: dict[int, bool] = {}
    for depth, on in enumerate(ids):
        for attached_id in on:
            places.setdefault(attached_id, depth > 0)
    nodes = need_all(scene.view, [node_key(attached_id) for attached_id in places], zone=zone)
    pairs = zip(nodes, places.values(), strict=True)
    found = [Attached(node, inherited) for node, inherited in pairs if node is not None]
    seen = for_each(found, lambda each: _may_load(scene, each.node))
    return [each for each, shown in zip(found, seen, strict=True) if shown]


def _may_load(scene: Scene, node: Node) -> bool:
    chain = (Link(node.id, node.kind, node.name), *scene.settled.outer[-1:])
    return scene.decide(Action(f"{node.kind.word}_load"), chain).allowed


@shadowed
async def associate(
    ctx: Context, on: On, *, kind: Kind, adds: tuple[str, ...], removes: tuple[str, ...],
    check: Callable[[Node], None] = lambda _: None,
) -> tuple[str, ...]:  # fmt: skip
    """Attach to an object and detach from it, all or nothing; what is named for both is left as it is.

    `check` may refuse to attach one. Raises NotFound for the object or what is named, Forbidden, AlreadyExists for what is on the object already;
    that one is not there to be detached is fine. Returns the names of what is on the object itself then, of what the caller may load.
    """
    if len(adds) + len(removes) > NAMES_MAX:
        many = len(adds) + len(removes)
        raise BadRequest(f"{many} {PLURAL[kind]} in one request are more than the {NAMES_MAX} that are taken")
    both = frozenset(adds) & frozenset(removes)
    added, removed = (tuple(dict.fromkeys(each for each in names if each not in both)) for names in (adds, removes))

    def decide(scene: Scene) -> Permit[AttachmentsChange]:
        scene.require_in_metalake_use()
        apply = Action(f"{kind.word}_apply")
        found = for_each((*added, *removed), lambda name: scene.look_up(kind, (name,), apply))
        nodes, decisions = tuple(each.entity for each in found), [each.decision for each in found]
        target = _holder(scene, on, kind=kind)  # after them: who may not apply one learns nothing of the object
        decisions.append(scene.require(Action.METADATA_LOAD, target.chain))
        if target.node is None:
            raise IllegalObject(f"{on.kind.word.capitalize()} {on.full_name} takes no {PLURAL[kind]}")
        for node in nodes[: len(added)]:
            check(node)
        shown = {each.node.id for each in attached_of(scene, target.chain, kind=kind)} | {node.id for node in nodes}
        command = AttachmentsChange(kind, target.node, nodes[: len(added)], nodes[len(added) :], frozenset(shown))
        return scene.permit(command, *decisions, zone=scene.metalake.id)

    return await ctx.write(on.scope, decide, attachments_change)


def attachments_change(tx: Tx, permit: Permit[AttachmentsChange]) -> tuple[str, ...]:
    """Write and delete the attachments, if the object and what is attached are still there."""
    command, rows = permit.command, tx.attachments(permit.command.kind)
    target = tx.nodes.confirm(command.target)
    for node in command.attached:
        if not rows.attach(tx.nodes.confirm(node).id, target.id):
            word = command.kind.word
            raise AlreadyExists(
                f"{word.capitalize()} {node.name} is on {target.kind.word} {target.name} already",
                kind=f"{word}_attachment",
            )
    for node in command.detached:
        rows.detach(tx.nodes.confirm(node).id, target.id)
    return tuple([name for attached_id, name in rows.on(target.id) if attached_id in command.shown])


async def holders(ctx: Context, *, metalake: str, kind: Kind, name: str) -> list[Holder]:
    """Return the objects that something is attached to, in the order of their paths: those that the caller may know of."""
    node = await ctx.read(Scope(metalake), lambda scene: apart_load(scene, kind, name=name))
    ids, nodes = await ctx.look_up(lambda: attached_objects_read(kind, node.id))
    named = [(nodes[object_id][1], path_of(object_id, nodes)) for object_id in ids if object_id in nodes]
    objects = sorted({Holder(held, path) for held, path in named if path is not None}, key=lambda each: each[::-1])
    catalogs = dict.fromkeys(each.path[0] for each in objects)
    scopes = tuple(Scope(metalake, catalog) for catalog in catalogs)
    return await read_together(ctx, scopes, lambda scenes: _known(objects, dict(zip(catalogs, scenes, strict=True))))


def _known(objects: list[Holder], scenes: dict[str, Scene]) -> list[Holder]:
    known = for_each(objects, lambda each: _may_know(scenes[each.path[0]], each))
    return [each for each, shown in zip(objects, known, strict=True) if shown]


def _may_know(scene: Scene, found: Holder) -> bool:
    """Say whether the caller may know of an object, which may have gone since it was named."""
    if found.kind is Kind.CATALOG:
        return scene.decide(Action.METADATA_LOAD, scene.settled.outer).allowed
    node, chain = scene.find(found.path[1:], found.kind)
    return node is not None and scene.decide(Action.METADATA_LOAD, chain).allowed
