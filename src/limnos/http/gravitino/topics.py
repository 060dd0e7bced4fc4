"""Topics of a schema, as the server keeps them: create, list, load, alter, drop.

May import `access`, `model`, `services` and this package. There is no broker behind them: a topic is what is known of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.actions import Action
from limnos.http.gravitino import dto
from limnos.http.gravitino.dto import identifiers, ok
from limnos.http.gravitino.leaves import dropped, named, place_of
from limnos.http.gravitino.told import Body, told, told_body
from limnos.http.gravitino.updates import RemoveProperty, SetProperty, UpdateComment, checked, edits_of
from limnos.http.routing import Route
from limnos.model.kinds import Kind
from limnos.model.records import TopicRecord
from limnos.services import leaves

if TYPE_CHECKING:
    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.services.context import Context


class TopicCreate(Body, frozen=True):
    """The body of a create."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None


class TopicUpdates(Body, frozen=True):
    """Changes of a topic, which keeps its name."""

    updates: list[UpdateComment | SetProperty | RemoveProperty]


async def topics_list(request: Request, ctx: Context) -> Response:
    """Answer the topics of a schema that the caller may see."""
    place = place_of(request)
    found = await ctx.read(place.scope, lambda scene: leaves.leaf_names(scene, place.levels(scene), kind=Kind.TOPIC))
    return identifiers(place.names, found)


async def topic_create(request: Request, ctx: Context, *, body: TopicCreate) -> Response:
    """Make a topic."""
    place, record = place_of(request), TopicRecord(body.comment, checked(body.properties))
    path = await place.path(ctx, body.name)
    node = await leaves.leaf_create(ctx, place.scope, path=path, kind=Kind.TOPIC, record=lambda _: record)
    return ok(topic=dto.topic(node))


async def topic_load(request: Request, ctx: Context) -> Response:
    """Answer one topic."""
    place, name = named(request)
    node = await ctx.read(
        place.scope, lambda scene: leaves.leaf_load(scene, (*place.levels(scene), name), kind=Kind.TOPIC)
    )
    return ok(topic=dto.topic(node))


async def topic_alter(request: Request, ctx: Context, *, body: TopicUpdates) -> Response:
    """Apply changes to a topic."""
    place, name = named(request)
    path = await place.path(ctx, name)
    node = await leaves.leaf_alter(ctx, place.scope, path=path, kind=Kind.TOPIC, edits=edits_of(body.updates))
    return ok(topic=dto.topic(node))


async def topic_drop(request: Request, ctx: Context) -> Response:
    """Drop a topic; a missing one is no failure."""
    place, name = named(request)
    path = await place.path(ctx, name)
    return await dropped(leaves.leaf_drop(ctx, place.scope, path=path, kind=Kind.TOPIC), Kind.TOPIC.word)


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
