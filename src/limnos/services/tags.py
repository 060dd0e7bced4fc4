"""Tags of a metalake: make, load, list, alter, drop; attach them to what lies in catalogs, and see what came down from above.

May import the rooms below. Knows no wire format. A tag is a node of the metalake; what it is on is on the metalake's
clock too, whatever catalog that lies in (decision record on what lies in no catalog).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import Link
from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, BadRequest, IllegalObject, NotFound
from limnos.model.kinds import LEAVES, Kind
from limnos.model.records import TagRecord
from limnos.names.path import check_gravitino_name
from limnos.services.objects import codec_of, scope_for, target_require
from limnos.services.pages import EVERY, page_of
from limnos.services.properties import apart_edit
from limnos.services.scene import Scope
from limnos.services.together import read_together
from limnos.store.ancestry import path_of
from limnos.store.tags import tag_objects_read
from limnos.view.cold import for_each, need_all
from limnos.view.keys import node_key, tags_on_key

if TYPE_CHECKING:
    from limnos.model.decisions import Chain
    from limnos.model.permits import Permit
    from limnos.services.context import Context
    from limnos.services.objects import Target
    from limnos.services.properties import Edits
    from limnos.services.scene import Scene
    from limnos.store.tx import Tx

TAGGABLE = (Kind.CATALOG, Kind.NAMESPACE, *LEAVES)
NAMES_MAX = 1_000
"""Tags that one request may attach or detach."""


class TagCreate(msgspec.Struct, frozen=True):
    """Make a tag."""

    metalake: Node
    name: str
    record: TagRecord
    owner_id: int | None


class TagAlter(msgspec.Struct, frozen=True):
    """Change a tag's name, comment or properties."""

    tag: Node
    edits: Edits


class TagDrop(msgspec.Struct, frozen=True):
    """Drop a tag; it goes from everything that it is on."""

    tag: Node


class TagsChange(msgspec.Struct, frozen=True):
    """Attach tags to an object, and detach others; `shown` are those, by id, that the caller may hear of."""

    target: Node
    attached: tuple[Node, ...]
    detached: tuple[Node, ...]
    shown: frozenset[int]


class TagOn(NamedTuple):
    """A tag as an object has it: its own, or inherited from something above it."""

    tag: Node
    inherited: bool


class TagObject(NamedTuple):
    """An object that a tag is on: its path below the metalake, the catalog first."""

    kind: Kind
    path: tuple[str, ...]


def tag_load(scene: Scene, name: str, *, action: Action = Action.TAG_LOAD) -> Node:
    """Return a tag, for its owner and whoever may apply it."""
    scene.require_in_metalake_use()
    return scene.look_up(Kind.TAG, (name,), action).entity


def tags_list(scene: Scene) -> list[Node]:
    """Return the tags that the caller may load, by name."""
    scene.require_in_metalake_use()
    chain = scene.settled.outer[-1:]
    scene.require(Action.TAG_LIST, chain)
    names = page_of(scene, Action.TAG_LIST, kind=Kind.TAG, chain=chain, asked=EVERY).texts()
    found = for_each(names, lambda name: scene.find_outside(Kind.TAG, (name,))[0])
    return [tag for tag in found if tag is not None]


async def tag_create(
    ctx: Context, *, metalake: str, name: str, comment: str | None, properties: dict[str, str]
) -> Node:
    """Make a tag; its maker owns it. Raises AlreadyExists, InvalidName."""
    check_gravitino_name(name)

    def decide(scene: Scene) -> Permit[TagCreate]:
        scene.require_in_metalake_use()
        decision = scene.require(Action.TAG_CREATE, scene.settled.outer)
        if scene.find_outside(Kind.TAG, (name,))[0] is not None:
            raise _exists(name, metalake)
        record = TagRecord(comment, properties)
        return scene.permit(TagCreate(scene.metalake, name, record, scene.maker_id), decision)

    try:
        return await ctx.write(Scope(metalake), decide, tag_insert)
    except AlreadyExists:
        raise _exists(name, metalake) from None


def _exists(name: str, metalake: str) -> AlreadyExists:
    return AlreadyExists(f"Tag {name} already exists in metalake {metalake}", kind="tag")


def tag_insert(tx: Tx, permit: Permit[TagCreate]) -> Node:
    """Insert the tag with its owner."""
    command = permit.command
    if not tx.nodes.is_alive(command.metalake.id):
        tx.stale()
    return tx.nodes.create(
        kind=Kind.TAG, space=Kind.TAG.word, name=command.name, parent_id=command.metalake.id, zone=permit.zone,
        record=command.record, owner_id=command.owner_id,
    )  # fmt: skip


async def tag_alter(ctx: Context, *, metalake: str, name: str, edits: Edits) -> Node:
    """Rename a tag, change its comment or properties. Raises NotFound, AlreadyExists, InvalidName."""
    if edits.name is not None:
        check_gravitino_name(edits.name)

    def decide(scene: Scene) -> Permit[TagAlter]:
        scene.require_in_metalake_use()
        found = scene.look_up(Kind.TAG, (name,), Action.TAG_ALTER)
        return scene.permit(TagAlter(found.entity, edits), found.decision)

    try:
        return await ctx.write(Scope(metalake), decide, tag_update)
    except AlreadyExists:
        raise _exists(edits.name or name, metalake) from None


def tag_update(tx: Tx, permit: Permit[TagAlter]) -> Node:
    """Write the tag's edited record, then its new name."""
    return apart_edit(tx, tx.nodes.confirm(permit.command.tag), edits=permit.command.edits)


async def tag_drop(ctx: Context, *, metalake: str, name: str) -> None:
    """Drop a tag. Raises NotFound."""

    def decide(scene: Scene) -> Permit[TagDrop]:
        scene.require_in_metalake_use()
        found = scene.look_up(Kind.TAG, (name,), Action.TAG_DROP)
        return scene.permit(TagDrop(found.entity), found.decision)

    await ctx.write(Scope(metalake), decide, tag_delete)


def tag_delete(tx: Tx, permit: Permit[TagDrop]) -> None:
    """Drop the tag; what it was on is swept later, for its id never comes back."""
    tx.nodes.drop(tx.nodes.confirm(permit.command.tag))


# ------------------------------------------------------------------------------------------------ on objects


def _taggable(scene: Scene, kind: Kind, full_name: str) -> Target:
    """Find what a tag may be on, for whoever may know of it. Raises IllegalObject, NotFound, Forbidden."""
    if kind not in TAGGABLE:
        raise IllegalObject(f"A {kind.word} takes no tags: tag a {', '.join(each.word for each in TAGGABLE)}")
    scene.require_in_metalake_use()
    return target_require(scene, kind, full_name, codec_of(scene), Action.METADATA_LOAD)


async def object_tags(ctx: Context, *, metalake: str, kind: Kind, full_name: str) -> list[TagOn]:
    """Return the tags of an object, its own first, then what comes down to it; those that the caller may load."""
    scope = scope_for(metalake, kind, full_name)
    return await ctx.read(scope, lambda scene: tags_of(scene, _taggable(scene, kind, full_name).chain))


async def object_tag_load(ctx: Context, *, metalake: str, kind: Kind, full_name: str, name: str) -> TagOn:
    """Return one tag of an object. Raises NotFound when it is not on it, nor on anything above it."""
    for found in await object_tags(ctx, metalake=metalake, kind=kind, full_name=full_name):
        if found.tag.name == name:
            return found
    raise NotFound(f"Tag {name} is not on {kind.word} {full_name}, or you may not know of it", kind="tag")


def tags_of(scene: Scene, chain: Chain) -> list[TagOn]:
    """Return the tags of a chain up to the catalog, each once, as near to its first object as it is; those one may load."""
    holders = [link for link in chain if link.kind is not Kind.METALAKE]
    zone = scene.metalake.id
    ids = need_all(scene.view, [tags_on_key(link.id) for link in holders], zone=zone)
    places: dict[int, bool] = {}
    for depth, on in enumerate(ids):
        for tag_id in on:
            places.setdefault(tag_id, depth > 0)
    nodes = need_all(scene.view, [node_key(tag_id) for tag_id in places], zone=zone)
    pairs = zip(nodes, places.values(), strict=True)
    tags = [TagOn(tag, inherited) for tag, inherited in pairs if tag is not None]
    seen = for_each(tags, lambda each: _may_load(scene, each.tag))
    return [each for each, shown in zip(tags, seen, strict=True) if shown]


def _may_load(scene: Scene, tag: Node) -> bool:
    return scene.decide(Action.TAG_LOAD, (Link(tag.id, Kind.TAG, tag.name), *scene.settled.outer[-1:])).allowed


async def tags_associate(
    ctx: Context, *, metalake: str, kind: Kind, full_name: str, adds: tuple[str, ...], removes: tuple[str, ...]
) -> tuple[str, ...]:
    """Attach tags to an object and detach others, all or nothing; what is named for both is left as it is.

    Raises NotFound for the object or a tag, Forbidden, AlreadyExists for a tag that is on the object already; that one is
    not there to be detached is fine. Returns the names of the tags that are on the object itself then, of those that the
    caller may load.
    """
    if len(adds) + len(removes) > NAMES_MAX:
        raise BadRequest(f"{len(adds) + len(removes)} tags in one request are more than the {NAMES_MAX} that are taken")
    both = frozenset(adds) & frozenset(removes)
    added, removed = (tuple(dict.fromkeys(each for each in names if each not in both)) for names in (adds, removes))

    def decide(scene: Scene) -> Permit[TagsChange]:
        scene.require_in_metalake_use()
        found = for_each((*added, *removed), lambda name: scene.look_up(Kind.TAG, (name,), Action.TAG_APPLY))
        tags, decisions = tuple(each.entity for each in found), [each.decision for each in found]
        target = _taggable(scene, kind, full_name)  # after the tags: who may not apply one learns nothing of the object
        decisions.append(scene.require(Action.METADATA_LOAD, target.chain))
        if target.node is None:
            raise IllegalObject(f"{kind.word.capitalize()} {full_name} takes no tags")
        shown = {each.tag.id for each in tags_of(scene, target.chain)} | {tag.id for tag in tags}
        command = TagsChange(target.node, tags[: len(added)], tags[len(added) :], frozenset(shown))
        return scene.permit(command, *decisions, zone=scene.metalake.id)

    return await ctx.write(scope_for(metalake, kind, full_name), decide, tags_change)


def tags_change(tx: Tx, permit: Permit[TagsChange]) -> tuple[str, ...]:
    """Write and delete the attachments, if the object and the tags are still there."""
    command = permit.command
    target = tx.nodes.confirm(command.target)
    for tag in command.attached:
        if not tx.tags.attach(tx.nodes.confirm(tag).id, target.id):
            raise AlreadyExists(f"Tag {tag.name} is on {target.kind.word} {target.name} already", kind="attachment")
    for tag in command.detached:
        tx.tags.detach(tx.nodes.confirm(tag).id, target.id)
    return tuple([name for tag_id, name in tx.tags.on(target.id) if tag_id in command.shown])


async def tag_objects(ctx: Context, *, metalake: str, name: str) -> list[TagObject]:
    """Return the objects that a tag is on, in the order of their paths: those that the caller may know of."""
    tag = await ctx.read(Scope(metalake), lambda scene: tag_load(scene, name))
    ids, nodes = await ctx.look_up(lambda: tag_objects_read(tag.id))
    named = [(nodes[object_id][1], path_of(object_id, nodes)) for object_id in ids if object_id in nodes]
    objects = sorted({TagObject(kind, path) for kind, path in named if path is not None}, key=lambda each: each[::-1])
    catalogs = dict.fromkeys(each.path[0] for each in objects)
    scopes = tuple(Scope(metalake, catalog) for catalog in catalogs)
    return await read_together(ctx, scopes, lambda scenes: _known(objects, dict(zip(catalogs, scenes, strict=True))))


def _known(objects: list[TagObject], scenes: dict[str, Scene]) -> list[TagObject]:
    known = for_each(objects, lambda each: _may_know(scenes[each.path[0]], each))
    return [each for each, shown in zip(objects, known, strict=True) if shown]


def _may_know(scene: Scene, found: TagObject) -> bool:
    """Say whether the caller may know of an object, which may have gone since it was named."""
    if found.kind is Kind.CATALOG:
        return scene.decide(Action.METADATA_LOAD, scene.settled.outer).allowed
    node, chain = scene.find(found.path[1:], found.kind)
    return node is not None and scene.decide(Action.METADATA_LOAD, chain).allowed
