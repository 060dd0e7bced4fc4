"""What the routes of filesets, topics, models, functions and tables have in common: where a request points, and drops that find nothing.

May import `model`, `names`, `services` and this package. Knows no resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.http.gravitino.dto import ok
from limnos.http.gravitino.told import names_of
from limnos.model.errors import NotFound
from limnos.services.objects import codec_of
from limnos.services.scene import Scope

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.names.path import Levels
    from limnos.services.context import Context
    from limnos.services.scene import Scene


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


async def dropped(drop: Awaitable[None], *kinds: str) -> Response:
    """Answer a drop; that nothing of the kinds is there is no failure."""
    try:
        await drop
    except NotFound as error:
        if error.kind not in kinds:
            raise
        return ok(dropped=False)
    return ok(dropped=True)
