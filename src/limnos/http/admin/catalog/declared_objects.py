# SPDX-License-Identifier: Apache-2.0
"""Objects of declared kinds: list, create, load, alter and drop them in a namespace.

Must not know any kind: the declaration of each has its fields.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.access.actions import kind_action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.declared_kinds import DECLARED, DeclaredKind
from limnos.model.entities import Node
from limnos.model.records import ObjectRecord
from limnos.names import display
from limnos.names.parts import check_levels
from limnos.names.path import Levels
from limnos.services.lookup import namespace_objects
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope

_COMMON: Final = frozenset({"name", "comment", "clears_comment", "sets", "removes"})


class ObjectCreate(AdminRequestBody, frozen=True):
    """The common fields of a body that creates an object."""

    name: str
    comment: str | None = None
    properties: dict[str, str] = msgspec.field(default_factory=dict)


class ObjectAlter(AdminRequestBody, frozen=True, kw_only=True):
    """The common fields of a body that changes an object. An omitted field stays unchanged."""

    name: str | None = None
    comment: str | None = None
    clears_comment: bool = False
    sets: dict[str, str] = msgspec.field(default_factory=dict)
    removes: list[str] = msgspec.field(default_factory=list)


class DeclaredObjectRoutes:
    """The handlers of one declared kind, and the types of its bodies."""

    def __init__(self, declared: DeclaredKind) -> None:
        self.kind, self.plural, self.fields = declared.kind, declared.plural, declared.fields
        title = declared.kind.word.title().replace("_", "")
        own_fields = msgspec.structs.fields(declared.fields)
        self.create_body = msgspec.defstruct(
            f"{title}Create",
            [(each.name, each.type, each.default) for each in own_fields],
            bases=(ObjectCreate,),
            frozen=True,
        )
        self.alter_body = msgspec.defstruct(
            f"{title}Alter",
            [(each.name, each.type | None, None) for each in own_fields],
            bases=(ObjectAlter,),
            frozen=True,
        )
        self.bodies = {"create": self.create_body, "alter": self.alter_body}

    async def list(self, request: Request, ctx: Context) -> Response:
        """Return each {kind} of a namespace that is visible to the caller, by name."""
        scope, levels = _place_of(request)
        nodes = await ctx.read(
            scope, lambda view: namespace_objects.namespace_objects_list(view, levels, kind=self.kind)
        )
        return json_response({self.plural: [self._encode(each, (*levels, each.name), scope=scope) for each in nodes]})

    async def create(self, request: Request, ctx: Context) -> Response:
        """Create a {kind}, which the caller then owns. 409 if the name is taken."""
        scope, levels = _place_of(request)
        body = Request.decode(await request.body(), self.create_body)
        values = msgspec.structs.asdict(body)
        name, comment, properties = (values.pop(each) for each in ("name", "comment", "properties"))
        path = check_levels((*levels, name))
        record = ObjectRecord(comment, properties).with_fields(values)
        node = await namespace_objects.namespace_object_create(
            ctx, scope, path=path, kind=self.kind, record=lambda _: record
        )
        return json_response(self._encode(node, path, scope=scope))

    async def load(self, request: Request, ctx: Context) -> Response:
        """Return one {kind}."""
        scope, path = _object_of(request)
        node = await ctx.read(scope, lambda view: namespace_objects.namespace_object_load(view, path, kind=self.kind))
        return json_response(self._encode(node, path, scope=scope))

    async def alter(self, request: Request, ctx: Context) -> Response:
        """Change a {kind}: its name, comment, properties and own fields. An omitted field stays unchanged."""
        scope, path = _object_of(request)
        body = Request.decode(await request.body(), self.alter_body)
        values = msgspec.structs.asdict(body)
        edits = PropertyEdits(
            name=values["name"],
            comment=values["comment"],
            clears_comment=values["clears_comment"],
            sets=values["sets"],
            removes=tuple(values["removes"]),
        )
        fields = {key: value for key, value in values.items() if key not in _COMMON and value is not None}
        node = await namespace_objects.namespace_object_alter(
            ctx, scope, path=path, kind=self.kind, edits=edits, fields=fields
        )
        return json_response(self._encode(node, (*path[:-1], node.name), scope=scope))

    async def drop(self, request: Request, ctx: Context) -> Response:
        """Drop one {kind}. It stays in the trash for some time."""
        scope, path = _object_of(request)
        await namespace_objects.namespace_object_drop(ctx, scope, path=path, kind=self.kind)
        return json_response({"dropped": display.render((str(scope.catalog), *path))})

    def _encode(self, node: Node, path: Levels, *, scope: RequestScope) -> dict[str, object]:
        record = node.record
        own_fields = record.own_fields() if isinstance(record, ObjectRecord) else {}
        return {
            "name": node.name,
            "path": [scope.catalog, *path],
            "comment": record.comment,
            "properties": record.properties,
            **{each.name: own_fields.get(each.name, each.default) for each in msgspec.structs.fields(self.fields)},
            "created_by": node.created_by,
            "created_at": instant(node.created_at),
            "modified_by": node.modified_by,
            "modified_at": instant(node.modified_at),
        }


def _place_of(request: Request) -> tuple[RequestScope, Levels]:
    metalake, catalog, namespace = names_of(request)[:3]
    return RequestScope(metalake, catalog), check_levels(display.parse(namespace))


def _object_of(request: Request) -> tuple[RequestScope, Levels]:
    scope, levels = _place_of(request)
    return scope, check_levels((*levels, names_of(request)[3]))


def _routes(declared: DeclaredKind) -> tuple[Route[Handler], ...]:
    routes, kind = DeclaredObjectRoutes(declared), declared.kind
    above = f"/api/limnos/v1/metalakes/{{m}}/catalogs/{{c}}/{declared.plural}/{{namespace}}"
    one = f"{above}/{{{kind.word}}}"
    return (
        Route(method="GET", path=above, handler=routes.list, operation=f"list-{declared.plural}"),
        Route(
            method="POST",
            path=above,
            handler=routes.create,
            operation=f"create-{kind.word}",
            asks=(kind_action(kind, "create"),),
        ),
        Route(method="GET", path=one, handler=routes.load, operation=f"load-{kind.word}"),
        Route(
            method="PUT",
            path=one,
            handler=routes.alter,
            operation=f"alter-{kind.word}",
            asks=(kind_action(kind, "alter"),),
        ),
        Route(method="DELETE", path=one, handler=routes.drop, operation=f"drop-{kind.word}"),
    )


ROUTES: tuple[Route[Handler], ...] = tuple(route for declared in DECLARED for route in _routes(declared))
