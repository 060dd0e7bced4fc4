"""Topics of a schema: create, list, load, alter, drop.

May import `access`, `model`, `services` and this package. In a catalog of provider `messaging` a topic is what the server is told of one; a catalog that
shows another system has that one's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.actions import Action
from limnos.http.gravitino import dto
from limnos.http.gravitino.dto import compact, identifiers, ok
from limnos.http.gravitino.leaves import Leaf, dropped, named, place_of
from limnos.http.gravitino.told import Body, told, told_body
from limnos.http.gravitino.updates import RemoveProperty, SetProperty, UpdateComment, checked, edits_of
from limnos.http.routing import Route
from limnos.model.kinds import Kind
from limnos.model.records import TopicRecord
from limnos.services.federation import topics as source_topics
from limnos.services.federation.objects import Seen
from limnos.services.federation.shadows import Sought, seek
from limnos.services.lookup import leaves
from limnos.services.request.table_formats import is_sourced

if TYPE_CHECKING:
    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.model.entities import Node
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene


class TopicCreate(Body, frozen=True):
    """The body of a create."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None


class TopicUpdates(Body, frozen=True):
    """Changes of a topic, which keeps its name."""

    updates: list[UpdateComment | SetProperty | RemoveProperty]


_LEAF = Leaf(Kind.TOPIC, dto.topic)


async def topics_list(request: Request, ctx: Context) -> Response:
    """Answer the name of each topic of a schema that the caller may see."""
    place = place_of(request)

    def read(scene: Scene) -> list[str] | Seen:
        levels = place.levels(scene)
        if is_sourced(scene):
            return source_topics.topics_seen(scene, levels)
        return leaves.leaf_names(scene, levels, kind=Kind.TOPIC)

    found = await ctx.read(place.scope, read)
    return identifiers(place.names, found if isinstance(found, list) else await source_topics.topics_list(ctx, found))


async def topic_create(request: Request, ctx: Context, *, body: TopicCreate) -> Response:
    """Make a topic."""
    place, properties = place_of(request), checked(body.properties)
    path, sourced = await place.find(ctx, body.name)
    if sourced:
        made = await source_topics.topic_create(
            ctx, place.scope, path=path, comment=body.comment, properties=properties
        )
        return _told(made, body.name)
    return await _LEAF.make(request, ctx, name=body.name, record=TopicRecord(body.comment, properties))


async def topic_load(request: Request, ctx: Context) -> Response:
    """Answer one topic."""
    place, name = named(request)

    def read(scene: Scene) -> Node | Sought:
        path = (*place.levels(scene), name)
        if is_sourced(scene):
            return seek(scene, Kind.TOPIC, path=path, action=Action.TOPIC_LOAD)
        return leaves.leaf_load(scene, path, kind=Kind.TOPIC)

    found = await ctx.read(place.scope, read)
    if isinstance(found, Sought):
        return _told(await source_topics.topic_load(ctx, found), name)
    return _LEAF.told(found)


async def topic_alter(request: Request, ctx: Context, *, body: TopicUpdates) -> Response:
    """Apply changes to a topic."""
    place, name = named(request)
    path, sourced = await place.find(ctx, name)
    if sourced:
        edits = edits_of(body.updates)
        return _told(await source_topics.topic_alter(ctx, place.scope, path=path, edits=edits), name)
    return await _LEAF.change(request, ctx, updates=body.updates)


async def topic_drop(request: Request, ctx: Context) -> Response:
    """Drop a topic; a missing one is no failure."""
    place, name = named(request)
    path, sourced = await place.find(ctx, name)
    if sourced:
        return await dropped(source_topics.topic_drop(ctx, place.scope, path=path), Kind.TOPIC.word)
    return await _LEAF.drop(request, ctx)


def _told(found: source_topics.Loaded, name: str) -> Response:
    """Answer with a topic of a source; who made it is known of what stands for it."""
    audit = dto.audit(found.catalog if found.node is None else found.node)
    return ok(topic=compact(name=name, comment=found.comment, properties=found.told.properties, audit=audit))


_TOPICS = "/metalakes/{m}/catalogs/{c}/schemas/{s}/topics"
_LIST = "Failed to operate topic(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate topic(s) [{body.name}] operation [CREATE] under schema [{2}]"
_ONE = "Failed to operate topic(s) [{3}] operation [%s] under schema [{2}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", _TOPICS, told(_LIST, topics_list), "list-topics"),
    Route("POST", _TOPICS, told_body(_NEW, TopicCreate, topic_create), "create-topic", asks=(Action.TOPIC_CREATE,)),
    Route("GET", f"{_TOPICS}/{{topic}}", told(_ONE % "LOAD", topic_load), "load-topic"),
    Route("PUT", f"{_TOPICS}/{{topic}}", told_body(_ONE % "ALTER", TopicUpdates, topic_alter), "alter-topic", asks=(Action.TOPIC_ALTER,)),
    Route("DELETE", f"{_TOPICS}/{{topic}}", told(_ONE % "DROP", topic_drop), "drop-topic"),
)  # fmt: skip
