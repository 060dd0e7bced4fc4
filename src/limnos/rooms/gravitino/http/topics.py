# SPDX-License-Identifier: Apache-2.0
"""Topics of a schema: create, list, load, alter, drop.

Has no business rules. In a catalog of provider `messaging`, topics are only metadata of the server. A connector catalog
has the topics of an external system.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.records import TopicRecord
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import compact, identifiers, ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.namespace_objects import (
    NamespaceObjectRoutes,
    drop_response,
    object_path_of,
    schema_path_of,
)
from limnos.rooms.gravitino.http.updates import RemoveProperty, SetProperty, UpdateComment, check_properties, edits_of
from limnos.services.federation import topics as source_topics
from limnos.services.federation.placeholder_nodes import SourceLookup, find_source_object
from limnos.services.federation.source_objects import VisibleSourceNames
from limnos.services.lookup import namespace_objects
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_sourced


class TopicCreate(GravitinoRequestBody, frozen=True):
    """The body of a request to create a topic."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None


class TopicUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a topic: its changes, in order. Its name never changes."""

    updates: list[UpdateComment | SetProperty | RemoveProperty]


_LEAF = NamespaceObjectRoutes(Kind.TOPIC, dto.topic)


async def topics_list(request: Request, ctx: Context) -> Response:
    """Return the names of a schema's topics that are visible to the caller."""
    schema_path = schema_path_of(request)

    def read(request_view: RequestView) -> list[str] | VisibleSourceNames:
        levels = schema_path.levels(request_view)
        if is_sourced(request_view):
            return source_topics.topics_visible(request_view, levels)
        return namespace_objects.namespace_object_names(request_view, levels, kind=Kind.TOPIC)

    topics = await ctx.read(schema_path.scope, read)
    return identifiers(
        schema_path.names, topics if isinstance(topics, list) else await source_topics.topics_list(ctx, topics)
    )


async def topic_create(request: Request, ctx: Context, *, body: TopicCreate) -> Response:
    """Create a topic, in the external system if the catalog has one. 409 if the name is taken."""
    schema_path, properties = schema_path_of(request), check_properties(body.properties)
    path, sourced = await schema_path.find(ctx, body.name)
    if sourced:
        topic = await source_topics.topic_create(
            ctx, schema_path.scope, path=path, comment=body.comment, properties=properties
        )
        return _source_topic_response(topic, body.name)
    return await _LEAF.make(request, ctx, name=body.name, record=TopicRecord(body.comment, properties))


async def topic_load(request: Request, ctx: Context) -> Response:
    """Return a topic with its comment and properties."""
    schema_path, name = object_path_of(request)

    def read(request_view: RequestView) -> Node | SourceLookup:
        path = (*schema_path.levels(request_view), name)
        if is_sourced(request_view):
            return find_source_object(request_view, Kind.TOPIC, path=path, action=Action.TOPIC_LOAD)
        return namespace_objects.namespace_object_load(request_view, path, kind=Kind.TOPIC)

    loaded_topic = await ctx.read(schema_path.scope, read)
    if isinstance(loaded_topic, SourceLookup):
        return _source_topic_response(await source_topics.topic_load(ctx, loaded_topic), name)
    return _LEAF.object_response(loaded_topic)


async def topic_alter(request: Request, ctx: Context, *, body: TopicUpdates) -> Response:
    """Apply updates of comment and properties to a topic."""
    schema_path, name = object_path_of(request)
    path, sourced = await schema_path.find(ctx, name)
    if sourced:
        edits = edits_of(body.updates)
        return _source_topic_response(
            await source_topics.topic_alter(ctx, schema_path.scope, path=path, edits=edits), name
        )
    return await _LEAF.change(request, ctx, updates=body.updates)


async def topic_drop(request: Request, ctx: Context) -> Response:
    """Drop a topic; a missing one is not an error."""
    schema_path, name = object_path_of(request)
    path, sourced = await schema_path.find(ctx, name)
    if sourced:
        return await drop_response(source_topics.topic_drop(ctx, schema_path.scope, path=path), Kind.TOPIC.word)
    return await _LEAF.drop(request, ctx)


def _source_topic_response(topic: source_topics.FederatedTopic, name: str) -> Response:
    """Return a response with a topic of an external system. The creator and the times come from its placeholder
    node.
    """
    audit = dto.audit(topic.catalog if topic.node is None else topic.node)
    return ok(topic=compact(name=name, comment=topic.comment, properties=topic.info.properties, audit=audit))


_TOPICS = "/metalakes/{m}/catalogs/{c}/schemas/{s}/topics"
_LIST = "Failed to operate topic(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate topic(s) [{body.name}] operation [CREATE] under schema [{2}]"
_ONE = "Failed to operate topic(s) [{3}] operation [%s] under schema [{2}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_TOPICS, handler=wrap_handler(_LIST, topics_list), operation="list-topics"),
    Route(
        method="POST",
        path=_TOPICS,
        handler=wrap_body_handler(_NEW, TopicCreate, topic_create),
        operation="create-topic",
        asks=(Action.TOPIC_CREATE,),
    ),
    Route(
        method="GET",
        path=f"{_TOPICS}/{{topic}}",
        handler=wrap_handler(_ONE % "LOAD", topic_load),
        operation="load-topic",
    ),
    Route(
        method="PUT",
        path=f"{_TOPICS}/{{topic}}",
        handler=wrap_body_handler(_ONE % "ALTER", TopicUpdates, topic_alter),
        operation="alter-topic",
        asks=(Action.TOPIC_ALTER,),
    ),
    Route(
        method="DELETE",
        path=f"{_TOPICS}/{{topic}}",
        handler=wrap_handler(_ONE % "DROP", topic_drop),
        operation="drop-topic",
    ),
)
