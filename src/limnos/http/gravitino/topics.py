"""Topics of a schema, as the server keeps them: create, list, load, alter, drop.

May import `access`, `model`, `services` and this package. There is no broker behind them: a topic is what is known of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.actions import Action
from limnos.http.gravitino import dto
from limnos.http.gravitino.leaves import Leaf
from limnos.http.gravitino.told import Body, told, told_body
from limnos.http.gravitino.updates import RemoveProperty, SetProperty, UpdateComment, checked
from limnos.http.routing import Route
from limnos.model.kinds import Kind
from limnos.model.records import TopicRecord

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


_LEAF = Leaf(Kind.TOPIC, dto.topic)


async def topic_create(request: Request, ctx: Context, *, body: TopicCreate) -> Response:
    """Make a topic."""
    record = TopicRecord(body.comment, checked(body.properties))
    return await _LEAF.make(request, ctx, name=body.name, record=record)


async def topic_alter(request: Request, ctx: Context, *, body: TopicUpdates) -> Response:
    """Apply changes to a topic."""
    return await _LEAF.change(request, ctx, updates=body.updates)


_TOPICS = "/metalakes/{m}/catalogs/{c}/schemas/{s}/topics"
_LIST = "Failed to operate topic(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate topic(s) [{body.name}] operation [CREATE] under schema [{2}]"
_ONE = "Failed to operate topic(s) [{3}] operation [%s] under schema [{2}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", _TOPICS, told(_LIST, _LEAF.list), "list-topics"),
    Route("POST", _TOPICS, told_body(_NEW, TopicCreate, topic_create), "create-topic", asks=(Action.TOPIC_CREATE,)),
    Route("GET", f"{_TOPICS}/{{topic}}", told(_ONE % "LOAD", _LEAF.load), "load-topic"),
    Route("PUT", f"{_TOPICS}/{{topic}}", told_body(_ONE % "ALTER", TopicUpdates, topic_alter), "alter-topic", asks=(Action.TOPIC_ALTER,)),
    Route("DELETE", f"{_TOPICS}/{{topic}}", told(_ONE % "DROP", _LEAF.drop), "drop-topic"),
)  # fmt: skip
