# SPDX-License-Identifier: Apache-2.0
"""Shared handlers of tags and policies: listed, loaded and dropped in a metalake, and attached to objects.

Must not know the content of tags and policies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from limnos.http.request import Request
from limnos.http.response import Response
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import names_of
from limnos.rooms.gravitino.http.namespace_objects import drop_response
from limnos.services.governance import attachments
from limnos.services.governance.attachments import PLURAL, ObjectAttachment
from limnos.services.lookup import metalake_objects
from limnos.services.lookup.securables import AttachmentTarget, parse_kind
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_for
from limnos.services.request.request_scope import RequestScope


def object_of(request: Request) -> AttachmentTarget:
    """Return the object that a request's path names. Raises BadRequest for an unknown kind, InvalidName for an invalid
    name.
    """
    metalake, kind, full_name = names_of(request)[:3]
    return AttachmentTarget(metalake, parse_kind(kind), full_name)


class MetalakeObjectRoutes(NamedTuple):
    """A kind of metalake object with its encoder, and the handlers that all such kinds share."""

    kind: Kind
    encode: Callable[[Node], dict[str, object]]

    async def list(self, request: Request, ctx: Context) -> Response:
        """Return each {kind} that the caller may load: its name, or with `details` all fields."""
        details = request.query_flag("details")
        nodes = await ctx.read(
            RequestScope(*names_of(request)),
            lambda request_view: metalake_objects.metalake_objects_list(request_view, self.kind),
        )
        return self._list_response([self.encode(each) if details else each.name for each in nodes], details=details)

    async def load(self, request: Request, ctx: Context) -> Response:
        """Return one {kind}."""
        metalake, name = names_of(request)
        node = await ctx.read(
            RequestScope(metalake),
            lambda request_view: metalake_objects.metalake_object_load(request_view, self.kind, name=name),
        )
        return self.object_response(node)

    async def drop(self, request: Request, ctx: Context) -> Response:
        """Drop one {kind}; a missing one is not an error."""
        metalake, name = names_of(request)
        return await drop_response(
            metalake_objects.metalake_object_drop(ctx, metalake=metalake, kind=self.kind, name=name), self.kind.word
        )

    async def objects(self, request: Request, ctx: Context, *, value: str | None = None) -> Response:
        """Return the visible objects that one {kind} is attached to; with `value`, only those where the tag has this
        value.
        """
        metalake, name = names_of(request)
        objects = await attachments.attached_objects_list(
            ctx, metalake=metalake, kind=self.kind, name=name, value=value
        )
        codec = codec_for(ctx.services.defaults)
        results = [dto.metadata_object(each.kind, each.path, codec) for each in objects]
        return ok(metadataObjects=[each for each in results if each is not None])

    async def list_on(self, request: Request, ctx: Context) -> Response:
        """Return each {kind} of an object, inherited ones included: its name, or with `details` all fields."""
        details = request.query_flag("details")
        object_attachment = await attachments.attachments_list(ctx, object_of(request), kind=self.kind)
        return self._list_response(
            [self._encode_attachment(each) if details else each.node.name for each in object_attachment],
            details=details,
        )

    async def load_on(self, request: Request, ctx: Context) -> Response:
        """Return one {kind} of an object."""
        on, name = object_of(request), names_of(request)[3]
        attachment = await attachments.attachment_load(ctx, on, kind=self.kind, name=name)
        return ok(**{self.kind.word: self._encode_attachment(attachment)})

    def object_response(self, node: Node) -> Response:
        """Build the response with one object under the field of its kind, such as `tag`."""
        return ok(**{self.kind.word: self.encode(node)})

    def _encode_attachment(self, attachment: ObjectAttachment) -> dict[str, object]:
        """Encode a tag or policy of an object: its fields, `inherited`, and the values of a tag."""
        values = {"assignmentValues": attachment.values} if self.kind is Kind.TAG else {}
        return {**self.encode(attachment.node), "inherited": attachment.inherited, **values}

    def _list_response(self, entries: Sequence[object], *, details: bool) -> Response:
        return ok(**{PLURAL[self.kind] if details else "names": entries})
