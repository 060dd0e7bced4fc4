"""Tags of a metalake: list, create, load, alter, drop, what they are on; and the tags on an object.

May import `access`, `model`, `services` and this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.actions import Action
from limnos.http.gravitino import dto
from limnos.http.gravitino.dto import ok
from limnos.http.gravitino.told import Body, names_of, told, told_body
from limnos.http.gravitino.updates import Updates, edits_of
from limnos.http.routing import Route
from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.services import tags
from limnos.services.objects import codec_outside, parse_kind
from limnos.services.scene import Scope

if TYPE_CHECKING:
    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.services.context import Context


class TagCreate(Body, frozen=True):
    """The body of a create."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None


class TagItem(Body, frozen=True):
    """A tag to attach or detach, as version 2 of the protocol spells it; values are not served."""

    name: str
    value: str | None = None


class TagsAssociate(Body, frozen=True):
    """What to attach to an object and what to detach from it: names, or with version 2 items with names."""

    tags_to_add: list[str | TagItem] | None = None
    tags_to_remove: list[str | TagItem] | None = None


async def tags_list(request: Request, ctx: Context) -> Response:
    """Answer the tags that the caller may load: their names, or with `details` all of them."""
    details = request.query_flag("details")
    found = await ctx.read(Scope(*names_of(request)), tags.tags_list)
    return ok(tags=[dto.tag(tag) for tag in found]) if details else ok(names=[tag.name for tag in found])


async def tag_create(request: Request, ctx: Context, body: TagCreate) -> Response:
    """Make a tag."""
    (metalake,) = names_of(request)
    found = await tags.tag_create(
        ctx, metalake=metalake, name=body.name, comment=body.comment, properties=body.properties or {}
    )
    return ok(tag=dto.tag(found))


async def tag_load(request: Request, ctx: Context) -> Response:
    """Answer one tag."""
    metalake, name = names_of(request)
    return ok(tag=dto.tag(await ctx.read(Scope(metalake), lambda scene: tags.tag_load(scene, name))))


async def tag_alter(request: Request, ctx: Context, body: Updates) -> Response:
    """Apply changes to a tag."""
    metalake, name = names_of(request)
    return ok(tag=dto.tag(await tags.tag_alter(ctx, metalake=metalake, name=name, edits=edits_of(body.updates))))


async def tag_drop(request: Request, ctx: Context) -> Response:
    """Drop a tag; a missing one is no failure."""
    metalake, name = names_of(request)
    try:
        await tags.tag_drop(ctx, metalake=metalake, name=name)
    except NotFound as error:
        if error.kind != Kind.TAG.word:
            raise
        return ok(dropped=False)
    return ok(dropped=True)


async def tag_objects(request: Request, ctx: Context) -> Response:
    """Answer the objects that a tag is on, of those that the caller may know of."""
    metalake, name = names_of(request)
    found = await tags.tag_objects(ctx, metalake=metalake, name=name)
    codec = codec_outside(ctx.services.defaults)
    return ok(metadataObjects=[dto.metadata_object(each.kind, each.path, codec) for each in found])


async def object_tags(request: Request, ctx: Context) -> Response:
    """Answer the tags of an object, inherited ones among them: their names, or with `details` all of them."""
    metalake, kind, full_name = names_of(request)
    details = request.query_flag("details")
    found = await tags.object_tags(ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name)
    if details:
        return ok(tags=[dto.tag(each.tag, inherited=each.inherited) for each in found])
    return ok(names=[each.tag.name for each in found])


async def object_tag_load(request: Request, ctx: Context) -> Response:
    """Answer one tag of an object."""
    metalake, kind, full_name, name = names_of(request)
    found = await tags.object_tag_load(ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name, name=name)
    return ok(tag=dto.tag(found.tag, inherited=found.inherited))


async def tags_associate(request: Request, ctx: Context, body: TagsAssociate) -> Response:
    """Attach tags to an object and detach others; answer the names of those that are on it then."""
    metalake, kind, full_name = names_of(request)
    if body.tags_to_add is None and body.tags_to_remove is None:
        raise BadRequest("Nothing is asked for: give tagsToAdd, tagsToRemove or both")
    names = await tags.tags_associate(
        ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name, adds=_names(body.tags_to_add),
        removes=_names(body.tags_to_remove),
    )  # fmt: skip
    return ok(names=names)


def _names(items: list[str | TagItem] | None) -> tuple[str, ...]:
    for item in items or ():
        if isinstance(item, TagItem) and item.value is not None:
            raise BadRequest(f"Tag {item.name} comes with a value, and tags have none here: leave the value out")
    names = tuple(item.name if isinstance(item, TagItem) else item for item in items or ())
    if not all(name.strip() for name in names):
        raise BadRequest("A tag's name is empty: tagsToAdd and tagsToRemove hold names of tags")
    return names


_LIST = "Failed to operate tag(s) operation [LIST] under metalake [{0}]"
_NEW = "Failed to operate tag {body.name} operation [CREATE] under metalake [{0}]"
_ONE = "Failed to operate tag {1} operation [%s] under metalake [{0}]"
_ON = "Failed to operate tag(s) operation [%s] under object [{1} {2}]"
_OBJECTS = "/metalakes/{m}/objects/{type}/{fullName}/tags"
_OLD = "/metalakes/{m}/tags/{type}/{fullName}"
"""Deprecated twins of the routes about objects, which older clients call."""
_list_on = told(_ON % "LIST", object_tags)
_load_on = told(_ON % "GET", object_tag_load)
_associate = told_body(_ON % "ASSOCIATE", TagsAssociate, tags_associate)
ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", "/metalakes/{m}/tags", told(_LIST, tags_list), "list-tags"),
    Route(
        "POST", "/metalakes/{m}/tags", told_body(_NEW, TagCreate, tag_create), "create-tag", asks=(Action.TAG_CREATE,)
    ),
    Route("GET", "/metalakes/{m}/tags/{tag}", told(_ONE % "GET", tag_load), "load-tag"),
    Route(
        "PUT",
        "/metalakes/{m}/tags/{tag}",
        told_body(_ONE % "ALTER", Updates, tag_alter),
        "alter-tag",
    ),
    Route("DELETE", "/metalakes/{m}/tags/{tag}", told(_ONE % "DELETE", tag_drop), "drop-tag"),
    Route("GET", "/metalakes/{m}/tags/{tag}/objects", told(_ONE % "LIST", tag_objects), "list-tag-objects"),
    Route("GET", _OBJECTS, _list_on, "list-object-tags"),
    Route("POST", _OBJECTS, _associate, "associate-tags"),
    Route("GET", f"{_OBJECTS}/{{tag}}", _load_on, "load-object-tag"),
    Route("GET", _OLD, _list_on, "list-object-tags-old"),
    Route("POST", _OLD, _associate, "associate-tags-old"),
    Route("GET", f"{_OLD}/{{tag}}", _load_on, "load-object-tag-old"),
)
