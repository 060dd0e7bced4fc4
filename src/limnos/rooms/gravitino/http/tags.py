# SPDX-License-Identifier: Apache-2.0
"""Tags of a metalake: list, create, load, alter, drop; their objects, and the tags of an object.

Has no business rules.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.attachments import check_tag_value
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.metalake_objects import MetalakeObjectRoutes, object_of
from limnos.rooms.gravitino.http.updates import EntityUpdates, edits_of
from limnos.services.governance import attachments, tag_values
from limnos.services.governance.tag_values import TagValuePair, tag_record
from limnos.services.lookup import metalake_objects
from limnos.services.request.context import Context


class TagCreate(GravitinoRequestBody, frozen=True):
    """The body of a request to create a tag."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None
    allowed_values: list[str] | None = None


class TagItem(GravitinoRequestBody, frozen=True):
    """A tag to attach or detach, with or without a value, as in version 2 of the protocol."""

    name: str
    value: str | None = None


class TagsAssociate(GravitinoRequestBody, frozen=True):
    """Tags to attach to an object and to detach from it: names, or with version 2 pairs of tag and value."""

    tags_to_add: list[str | TagItem] | None = None
    tags_to_remove: list[str | TagItem] | None = None


_TAG = MetalakeObjectRoutes(Kind.TAG, dto.tag)


async def tag_create(request: Request, ctx: Context, *, body: TagCreate) -> Response:
    """Create a tag, which the caller then owns. 409 if the name is taken."""
    (metalake,) = names_of(request)
    record = tag_record(body.comment, body.properties or {}, allowed_values=body.allowed_values)
    return _TAG.object_response(
        await metalake_objects.metalake_object_create(
            ctx, metalake=metalake, kind=Kind.TAG, name=body.name, record=record
        )
    )


async def tag_alter(request: Request, ctx: Context, *, body: EntityUpdates) -> Response:
    """Apply updates of name, comment and properties to a tag."""
    metalake, name = names_of(request)
    edits = edits_of(body.updates)
    return _TAG.object_response(
        await metalake_objects.metalake_object_alter(ctx, metalake=metalake, kind=Kind.TAG, name=name, edits=edits)
    )


async def tags_associate(request: Request, ctx: Context, *, body: TagsAssociate) -> Response:
    """Attach tags to an object and detach others. Returns the names of its tags after the change."""
    if body.tags_to_add is None and body.tags_to_remove is None:
        raise BadRequest("The request has no changes: give tagsToAdd, tagsToRemove or both")
    adds, removes = body.tags_to_add or [], body.tags_to_remove or []
    names = [item if isinstance(item, str) else item.name for item in (*adds, *removes)]
    if not all(name.strip() for name in names):
        raise BadRequest("A tag's name is empty: tagsToAdd and tagsToRemove must contain names of tags")
    on, pairs = object_of(request), [_pairs(items) for items in (adds, removes)]
    count = len(pairs[0]) + len(pairs[1])
    if count == 0:
        added_names, removed_names = tuple(names[: len(adds)]), tuple(names[len(adds) :])
        return ok(
            names=await attachments.attachments_associate(
                ctx, on, kind=Kind.TAG, adds=added_names, removes=removed_names
            )
        )
    if count < len(names):
        raise BadRequest("Some tags are names and others are pairs of a name and a value: use one form for all")
    return ok(names=await tag_values.pairs_associate(ctx, on, adds=pairs[0], removes=pairs[1]))


def _pairs(items: list[str | TagItem]) -> tuple[TagValuePair, ...]:
    return tuple(TagValuePair(item.name, item.value) for item in items if isinstance(item, TagItem))


async def tag_objects(request: Request, ctx: Context) -> Response:
    """Return the visible objects that a tag is attached to; optionally only those where the tag has a given value."""
    value = request.query("value")
    return await _TAG.objects(request, ctx, value=None if value is None else check_tag_value(value))


_LIST = "Failed to operate tag(s) operation [LIST] under metalake [{0}]"
_NEW = "Failed to operate tag {body.name} operation [CREATE] under metalake [{0}]"
_ONE = "Failed to operate tag {1} operation [%s] under metalake [{0}]"
_ON = "Failed to operate tag(s) operation [%s] under object [{1} {2}]"
_OBJECTS = "/metalakes/{m}/objects/{type}/{fullName}/tags"
_OLD = "/metalakes/{m}/tags/{type}/{fullName}"
"""Deprecated duplicates of the routes about objects, for older clients."""
_list_on = wrap_handler(_ON % "LIST", _TAG.list_on)
_load_on = wrap_handler(_ON % "GET", _TAG.load_on)
_associate = wrap_body_handler(_ON % "ASSOCIATE", TagsAssociate, tags_associate)
_TAGS = "/metalakes/{m}/tags"
ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_TAGS, handler=wrap_handler(_LIST, _TAG.list), operation="list-tags", query=("details",)),
    Route(
        method="POST",
        path=_TAGS,
        handler=wrap_body_handler(_NEW, TagCreate, tag_create),
        operation="create-tag",
        asks=(Action.TAG_CREATE,),
    ),
    Route(method="GET", path=f"{_TAGS}/{{tag}}", handler=wrap_handler(_ONE % "GET", _TAG.load), operation="load-tag"),
    Route(
        method="PUT",
        path=f"{_TAGS}/{{tag}}",
        handler=wrap_body_handler(_ONE % "ALTER", EntityUpdates, tag_alter),
        operation="alter-tag",
    ),
    Route(
        method="DELETE", path=f"{_TAGS}/{{tag}}", handler=wrap_handler(_ONE % "DELETE", _TAG.drop), operation="drop-tag"
    ),
    Route(
        method="GET",
        path=f"{_TAGS}/{{tag}}/objects",
        handler=wrap_handler(_ONE % "LIST", tag_objects),
        operation="list-tag-objects",
        query=("value",),
    ),
    Route(method="GET", path=_OBJECTS, handler=_list_on, operation="list-object-tags", query=("details",)),
    Route(method="POST", path=_OBJECTS, handler=_associate, operation="associate-tags"),
    Route(method="GET", path=f"{_OBJECTS}/{{tag}}", handler=_load_on, operation="load-object-tag"),
    Route(method="GET", path=_OLD, handler=_list_on, operation="list-object-tags-old", query=("details",)),
    Route(method="POST", path=_OLD, handler=_associate, operation="associate-tags-old"),
    Route(method="GET", path=f"{_OLD}/{{tag}}", handler=_load_on, operation="load-object-tag-old"),
)
