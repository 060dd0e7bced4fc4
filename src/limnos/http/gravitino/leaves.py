"""What the routes of filesets, topics, models, functions and tables have in common: where a request points, what is done to each kind alike, and
drops that find nothing.

May import `model`, `names`, `services` and this package. Knows no resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.http.gravitino.dto import identifiers, ok
from limnos.http.gravitino.told import names_of
from limnos.http.gravitino.updates import edits_of
from limnos.model.errors import NotFound
from limnos.services.lookup import leaves
from limnos.services.lookup.objects import codec_of
from limnos.services.request.scene import Scope
from limnos.services.request.table_formats import is_sourced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from limnos.http.gravitino.updates import Update
    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.model.entities import Node
    from limnos.model.kinds import Kind
    from limnos.model.records import NodeRecord
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene


class Place(NamedTuple):
    """A schema, as a request's path spells it."""

    metalake: str
    catalog: str
    schema: str

    @property
    def scope(self) -> Scope:
        """The catalog it is in."""
        return Scope(self.metalake, self.catalog)

    @property
    def names(self) -> list[str]:
        """Its three names, as lists of identifiers tell them."""
        return [self.metalake, self.catalog, self.schema]

    def levels(self, scene: Scene) -> Levels:
        """Its levels below the catalog. Raises InvalidName."""
        return codec_of(scene).split(self.schema)

    async def find(self, ctx: Context, name: str) -> tuple[Levels, bool]:
        """The levels of something in it, and whether an outside system has it."""
        return await ctx.read(self.scope, lambda scene: ((*self.levels(scene), name), is_sourced(scene)))

    async def path(self, ctx: Context, name: str) -> Levels:
        """The levels of something in it."""
        return (*await ctx.read(self.scope, self.levels), name)


def place_of(request: Request) -> Place:
    """Return the schema that a request is about. Raises InvalidName."""
    return Place(*names_of(request)[:3])


def named(request: Request) -> tuple[Place, str]:
    """Return the schema and the name of what a request is about."""
    names = names_of(request)
    return Place(*names[:3]), names[3]


class Leaf(NamedTuple):
    """A kind of object in schemas, and how one is told: the handlers that are the same for each."""

    kind: Kind
    encode: Callable[[Node], dict[str, object]]

    async def list(self, request: Request, ctx: Context) -> Response:
        """Answer the name of each {kind} of a schema that the caller may see."""
        place = place_of(request)
        found = await ctx.read(place.scope, lambda scene: leaves.leaf_names(scene, place.levels(scene), kind=self.kind))
        return identifiers(place.names, found)

    async def make(self, request: Request, ctx: Context, *, name: str, record: NodeRecord) -> Response:
        """Make one."""
        place = place_of(request)
        path = await place.path(ctx, name)
        return self.told(await leaves.leaf_create(ctx, place.scope, path=path, kind=self.kind, record=lambda _: record))

    async def load(self, request: Request, ctx: Context) -> Response:
        """Answer one {kind}."""
        place, name = named(request)
        node = await ctx.read(
            place.scope, lambda scene: leaves.leaf_load(scene, (*place.levels(scene), name), kind=self.kind)
        )
        return self.told(node)

    async def change(self, request: Request, ctx: Context, *, updates: Sequence[Update]) -> Response:
        """Apply changes of its name, comment and properties."""
        place, name = named(request)
        path = await place.path(ctx, name)
        return self.told(await leaves.leaf_alter(ctx, place.scope, path=path, kind=self.kind, edits=edits_of(updates)))

    async def drop(self, request: Request, ctx: Context) -> Response:
        """Drop one {kind}; a missing one is no failure."""
        place, name = named(request)
        path = await place.path(ctx, name)
        return await dropped(leaves.leaf_drop(ctx, place.scope, path=path, kind=self.kind), self.kind.word)

    def told(self, node: Node) -> Response:
        """Answer with one."""
        return ok(**{self.kind.word: self.encode(node)})


async def dropped(drop: Awaitable[None], *kinds: str) -> Response:
    """Answer a drop; that nothing of the kinds is there is no failure."""
    try:
        await drop
    except NotFound as error:
        if error.kind not in kinds:
            raise
        return ok(dropped=False)
    return ok(dropped=True)
