"""Topics of outside systems: list, load, make, alter, drop, by rights that hang on names of the tree.

May import the rooms below, and `sources` for capabilities. Each function decides first, on one scene, and then asks the source. A source knows no comments
of topics: they are kept with what stands for a topic in the tree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.model.records import TopicRecord
from limnos.services.federation.objects import dropped_in_source, leaves_seen, made_in_source
from limnos.services.federation.shadows import made_insert, making, seek, submit_done
from limnos.services.federation.sources import ask
from limnos.sources.connectors.capabilities import with_topics

if TYPE_CHECKING:
    from limnos.model.entities import Node
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.federation.objects import Seen
    from limnos.services.federation.shadows import ShadowCreate, Sought
    from limnos.services.request.context import Context
    from limnos.services.request.properties import Edits
    from limnos.services.request.scene import Scene, Scope
    from limnos.sources.connectors.capabilities import TopicTold
    from limnos.store.tx import Tx


class Loaded(NamedTuple):
    """A topic, and what stands for it."""

    told: TopicTold
    node: Node | None
    catalog: Node

    @property
    def comment(self) -> str | None:
        """What is said of it."""
        return None if self.node is None else cast("TopicRecord", self.node.record).comment


def topics_seen(scene: Scene, schema: Levels) -> Seen:
    """Decide on listing the topics of a schema. Raises Forbidden."""
    return leaves_seen(scene, schema, kind=Kind.TOPIC, action=Action.TOPIC_LIST)


async def topics_list(ctx: Context, seen: Seen) -> list[str]:
    """Return the topics that the source has in a schema and the caller sees. Raises NotFound for the schema."""
    return seen.of(await ask(ctx, seen.origin, of=with_topics, question=lambda found: found.topic_names(seen.path[0])))


async def topic_load(ctx: Context, sought: Sought) -> Loaded:
    """Return a topic that was decided on. Raises NotFound."""
    schema, name = sought.path
    told = await ask(ctx, sought.origin, of=with_topics, question=lambda found: found.topic_load(schema, name))
    return Loaded(told, sought.node, sought.origin.catalog)


async def topic_create(
    ctx: Context, scope: Scope, *, path: Levels, comment: str | None, properties: dict[str, str]
) -> Loaded:
    """Make a topic in the source; its maker owns what stands for it. Raises AlreadyExists, NotFound (schema), BadRequest, Forbidden."""
    schema, name = path
    origin, node = await made_in_source(
        ctx, scope, kind=Kind.TOPIC, path=path, action=Action.TOPIC_CREATE, of=with_topics,
        question=lambda found: found.topic_create(schema, name, properties=properties), record=TopicRecord(comment, {}),
    )  # fmt: skip
    told = await ask(ctx, origin, of=with_topics, question=lambda found: found.topic_load(schema, name))
    return Loaded(told, node, origin.catalog)


async def topic_alter(ctx: Context, scope: Scope, *, path: Levels, edits: Edits) -> Loaded:
    """Change a topic in the source, and what is said of it here. Raises NotFound, BadRequest, Forbidden."""
    schema, name = path

    def decide(scene: Scene) -> tuple[Sought, Permit[tuple[ShadowCreate, Edits]]]:
        found = seek(scene, Kind.TOPIC, path=path, action=Action.TOPIC_ALTER)
        permit = making(scene, Kind.TOPIC, path=path, decision=found.decision, made_here=False)
        return found, permit.about((permit.command, edits))

    sought, permit = await ctx.read(scope, decide)
    if edits.sets or edits.removes:
        await ask(
            ctx, sought.origin, of=with_topics,
            question=lambda found: found.topic_alter(schema, name, sets=edits.sets, removes=edits.removes), changes=True,
        )  # fmt: skip
    loaded = await topic_load(ctx, sought)
    if edits.comment is None and not edits.clears_comment:
        return loaded
    return loaded._replace(node=await submit_done(ctx, permit, mutation=topic_annotate))


def topic_annotate(tx: Tx, permit: Permit[tuple[ShadowCreate, Edits]]) -> Node | None:
    """Write the comment to what stands for the topic."""
    command, edits = permit.command
    held = made_insert(tx, permit.about(command))
    if held is None:
        return None
    record = cast("TopicRecord", held.record)
    tx.nodes.write_record(held, replace(record, comment=edits.comment_over(record.comment)))
    return tx.nodes.by_id(held.id)


async def topic_drop(ctx: Context, scope: Scope, *, path: Levels) -> None:
    """Drop a topic in the source with what is in it, and what stands for it. Raises NotFound, Protected, Unsupported, Forbidden."""
    schema, name = path
    await dropped_in_source(
        ctx, scope, kind=Kind.TOPIC, path=path, action=Action.TOPIC_DROP, of=with_topics,
        question=lambda found: found.topic_drop(schema, name),
    )  # fmt: skip
