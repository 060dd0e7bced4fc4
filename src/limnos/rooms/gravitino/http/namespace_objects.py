# SPDX-License-Identifier: Apache-2.0
"""Shared handlers of filesets, topics, models, functions and tables: paths, common operations, and drops of missing
objects.

Must not know resources.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from limnos.http.request import Request
from limnos.http.response import Response
from limnos.model.entities import Node
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.model.records import NodeRecord
from limnos.names.path import Levels
from limnos.rooms.gravitino.http.dto import identifiers, ok
from limnos.rooms.gravitino.http.handler_wrappers import names_of
from limnos.rooms.gravitino.http.updates import EntityUpdate, edits_of
from limnos.services.lookup import namespace_objects
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_sourced


class SchemaPath(NamedTuple):
    """The schema that a request's path names: the names of metalake, catalog and schema."""

    metalake: str
    catalog: str
    schema: str

    @property
    def scope(self) -> RequestScope:
        """The catalog of the schema."""
        return RequestScope(self.metalake, self.catalog)

    @property
    def names(self) -> list[str]:
        """The names of metalake, catalog and schema: the namespace in lists of identifiers."""
        return [self.metalake, self.catalog, self.schema]

    def levels(self, request_view: RequestView) -> Levels:
        """Return the levels of the schema below the catalog. Raises InvalidName for an invalid schema name."""
        return codec_of(request_view).split(self.schema)

    async def find(self, ctx: Context, name: str) -> tuple[Levels, bool]:
        """Return the levels of an object in this schema, and whether an external system holds the objects of this
        catalog.
        """
        return await ctx.read(
            self.scope, lambda request_view: ((*self.levels(request_view), name), is_sourced(request_view))
        )

    async def path(self, ctx: Context, name: str) -> Levels:
        """Return the levels of an object in this schema, its name last."""
        return (*await ctx.read(self.scope, self.levels), name)


def schema_path_of(request: Request) -> SchemaPath:
    """Return the schema that the request's path names. Raises InvalidName for a malformed path segment."""
    return SchemaPath(*names_of(request)[:3])


def object_path_of(request: Request) -> tuple[SchemaPath, str]:
    """Return the schema and the name of the object in a request's path. Raises InvalidName for a malformed path
    segment.
    """
    names = names_of(request)
    return SchemaPath(*names[:3]), names[3]


class NamespaceObjectRoutes(NamedTuple):
    """A kind of object in schemas with its encoder, and the handlers that all such kinds share."""

    kind: Kind
    encode: Callable[[Node], dict[str, object]]

    async def list(self, request: Request, ctx: Context) -> Response:
        """Return the name of each {kind} of a schema that is visible to the caller."""
        schema_path = schema_path_of(request)
        names = await ctx.read(
            schema_path.scope,
            lambda request_view: namespace_objects.namespace_object_names(
                request_view, schema_path.levels(request_view), kind=self.kind
            ),
        )
        return identifiers(schema_path.names, names)

    async def make(self, request: Request, ctx: Context, *, name: str, record: NodeRecord) -> Response:
        """Create an object in a schema, and return the response with it. 409 if the name is taken."""
        schema_path = schema_path_of(request)
        path = await schema_path.path(ctx, name)
        return self.object_response(
            await namespace_objects.namespace_object_create(
                ctx, schema_path.scope, path=path, kind=self.kind, record=lambda _: record
            )
        )

    async def load(self, request: Request, ctx: Context) -> Response:
        """Return one {kind}."""
        schema_path, name = object_path_of(request)
        node = await ctx.read(
            schema_path.scope,
            lambda request_view: namespace_objects.namespace_object_load(
                request_view, (*schema_path.levels(request_view), name), kind=self.kind
            ),
        )
        return self.object_response(node)

    async def change(self, request: Request, ctx: Context, *, updates: Sequence[EntityUpdate]) -> Response:
        """Change an object's name, comment or properties."""
        schema_path, name = object_path_of(request)
        path = await schema_path.path(ctx, name)
        return self.object_response(
            await namespace_objects.namespace_object_alter(
                ctx, schema_path.scope, path=path, kind=self.kind, edits=edits_of(updates)
            )
        )

    async def drop(self, request: Request, ctx: Context) -> Response:
        """Drop one {kind}; a missing one is not an error."""
        schema_path, name = object_path_of(request)
        path = await schema_path.path(ctx, name)
        return await drop_response(
            namespace_objects.namespace_object_drop(ctx, schema_path.scope, path=path, kind=self.kind), self.kind.word
        )

    def object_response(self, node: Node) -> Response:
        """Build the response with one object under the field of its kind, such as `fileset`."""
        return ok(**{self.kind.word: self.encode(node)})


async def drop_response(drop: Awaitable[None], *kinds: str) -> Response:
    """Await a drop, and return its response. A missing object of these `kinds` is not an error."""
    try:
        await drop
    except NotFound as error:
        if error.kind not in kinds:
            raise
        return ok(dropped=False)
    return ok(dropped=True)
