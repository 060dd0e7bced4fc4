"""What the routes of tags and policies have in common: listed, loaded and dropped in a metalake, and attached to objects.

May import `model`, `services` and this package. Knows neither of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from limnos.http.gravitino import dto
from limnos.http.gravitino.dto import ok
from limnos.http.gravitino.leaves import dropped
from limnos.http.gravitino.told import names_of
from limnos.model.kinds import Kind
from limnos.services.governance import attachments
from limnos.services.governance.attachments import PLURAL, On
from limnos.services.lookup import apart
from limnos.services.lookup.objects import codec_outside, parse_kind
from limnos.services.request.scene import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limnos.http.request import Request
    from limnos.http.response import Response
    from limnos.model.entities import Node
    from limnos.services.governance.attachments import Attached
    from limnos.services.request.context import Context


def object_of(request: Request) -> On:
    """Return the object that a request is about. Raises BadRequest, InvalidName."""
    metalake, kind, full_name = names_of(request)[:3]
    return On(metalake, parse_kind(kind), full_name)


class Apart(NamedTuple):
    """A kind that lies beside the tree, and how one is told: the handlers that are the same for each."""

    kind: Kind
    encode: Callable[[Node], dict[str, object]]

    async def list(self, request: Request, ctx: Context) -> Response:
        """Answer each {kind} that the caller may load: its name, or with `details` all of it."""
        details = request.query_flag("details")
        found = await ctx.read(Scope(*names_of(request)), lambda scene: apart.apart_list(scene, self.kind))
        return self._listed([self.encode(each) if details else each.name for each in found], details=details)

    async def load(self, request: Request, ctx: Context) -> Response:
        """Answer one {kind}."""
        metalake, name = names_of(request)
        node = await ctx.read(Scope(metalake), lambda scene: apart.apart_load(scene, self.kind, name=name))
        return self.told(node)

    async def drop(self, request: Request, ctx: Context) -> Response:
        """Drop one {kind}; a missing one is no failure."""
        metalake, name = names_of(request)
        return await dropped(apart.apart_drop(ctx, metalake=metalake, kind=self.kind, name=name), self.kind.word)

    async def objects(self, request: Request, ctx: Context, *, value: str | None = None) -> Response:
        """Answer the objects that one {kind} is on, of those that the caller may know of; a tag with a value: that have it."""
        metalake, name = names_of(request)
        found = await attachments.holders(ctx, metalake=metalake, kind=self.kind, name=name, value=value)
        codec = codec_outside(ctx.services.defaults)
        return ok(metadataObjects=[dto.metadata_object(each.kind, each.path, codec) for each in found])

    async def list_on(self, request: Request, ctx: Context) -> Response:
        """Answer each {kind} of an object, inherited ones among them: its name, or with `details` all of it."""
        details = request.query_flag("details")
        found = await attachments.attached_list(ctx, object_of(request), kind=self.kind)
        return self._listed([self._on(each) if details else each.node.name for each in found], details=details)

    async def load_on(self, request: Request, ctx: Context) -> Response:
        """Answer one {kind} of an object."""
        on, name = object_of(request), names_of(request)[3]
        found = await attachments.attached_load(ctx, on, kind=self.kind, name=name)
        return ok(**{self.kind.word: self._on(found)})

    def told(self, node: Node) -> Response:
        """Answer with one."""
        return ok(**{self.kind.word: self.encode(node)})

    def _on(self, found: Attached) -> dict[str, object]:
        """Encode one as an object has it."""
        values = {"assignmentValues": found.values} if self.kind is Kind.TAG else {}
        return {**self.encode(found.node), "inherited": found.inherited, **values}

    def _listed(self, told: Sequence[object], *, details: bool) -> Response:
        return ok(**{PLURAL[self.kind] if details else "names": told})
