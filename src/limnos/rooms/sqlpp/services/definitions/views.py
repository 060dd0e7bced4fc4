# SPDX-License-Identifier: Apache-2.0
"""Views of SQL++: Iceberg views on the tree whose text has the dialect `sqlpp`.

Must not know any wire format. Such a view has one string column. It also has a text for Spark, which is an error
message that names the query service, since Spark would parse another dialect's text as its own. A view has no definer's
rights: its reader needs the right to read its sources.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg.json_types import Json
from limnos.model.entities import MetadataDocument
from limnos.model.errors import AlreadyExists, NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import ViewRecord
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import render, tree
from limnos.rooms.sqlpp.language.binder import BoundDataset, BoundSynonym, BoundView, NameResolver, UserFunction
from limnos.rooms.sqlpp.language.definitions import DIALECT
from limnos.rooms.sqlpp.services.definitions.body_dependencies import BodyDependencies, ids_of, needs_of
from limnos.rooms.sqlpp.services.definitions.dataverse_objects import (
    MADE_HERE,
    check_not_builtin,
    dataverse_of,
    object_drop,
    statement_missing_error,
)
from limnos.rooms.sqlpp.services.definitions.dataverses import default_dataverse_make
from limnos.rooms.sqlpp.services.definitions.typed_views import typed_query
from limnos.rooms.sqlpp.services.definitions.types import InlinedType, inline_type
from limnos.rooms.sqlpp.services.requests.errors import check_object, object_exists
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.catalog.tables import NewTable
from limnos.services.catalog.views import ViewCreate, new_view_of, view_insert, writer_of
from limnos.services.iceberg.tables import document_of
from limnos.services.iceberg.views import ViewReplaceRequest, ViewRequest, view_build, view_replace
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx

SCHEMA: Final[Json] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "value", "required": False, "type": "string", "doc": "The result of an SQL++ query."}],
}
FOR_SPARK: Final = (
    "SELECT CAST(raise_error('This view is written in SQL++: query it over the query service, or with limnos sql') AS"
    " STRING) AS value"
)


class SqlppViewCreate(msgspec.Struct, frozen=True):
    """The command to create a view, with the ids of the objects that it depends on."""

    view: ViewCreate
    used: tuple[int, ...]


class _WithView:
    """A name resolver that includes the view that is being defined, which may replace an existing one."""

    def __init__(self, names: NameResolver, view: BoundView) -> None:
        self._names = names
        self._view = view

    def has_dataverse(self, dataverse: Levels) -> bool:
        """Return whether a dataverse exists and is visible to the caller."""
        return dataverse == self._view.dataverse or self._names.has_dataverse(dataverse)

    def resolve(self, dataverse: Levels, name: str) -> BoundDataset | BoundView | BoundSynonym | None:
        """Resolve a dataset, view or synonym: the view being defined, else as the wrapped resolver does."""
        if (dataverse, name) == (self._view.dataverse, self._view.name):
            return self._view
        return self._names.resolve(dataverse, name)

    def function(self, dataverse: Levels, name: str, *, arity: int) -> UserFunction | None:
        """Resolve a function, as the wrapped resolver does."""
        return self._names.function(dataverse, name, arity=arity)


async def view_create(session: StatementSession, statement: tree.CreateView) -> None:
    """Create a view, or replace its text. Raises SqlppError if its body is invalid or the view exists,
    PermissionDenied.
    """
    ctx = session.ctx
    check_object(statement.name)
    path, at = session.qualify(statement.name), statement.name.at
    check_not_builtin(path[:-1], Kind.VIEW, at=at)
    used: tuple[int, ...] = ()
    if statement.schema is not None:
        inlined = await _schema_type(session, statement.schema, dataverse=path[:-1])
        body = typed_query(statement.body, statement.schema, type_=inlined.type)
        statement, used = msgspec.structs.replace(statement, body=body, schema=None), inlined.used
    await default_dataverse_make(ctx, path[:-1])
    needs = await _needs(session, statement, path=path)
    try:
        await _make(ctx, path, version=_version(statement, path), needs=needs, used=used)
    except NotFound as error:
        raise statement_missing_error(error, path[:-1], at=at) from None
    except AlreadyExists as error:
        if statement.or_replace and error.kind == Kind.VIEW.word:
            await _replace(ctx, path, version=_version(statement, path), needs=needs, used=used)
        elif not statement.if_not_exists:
            kind = "view" if error.kind == Kind.VIEW.word else "dataset"
            raise object_exists(kind, path, at=at) from None


async def _schema_type(session: StatementSession, schema: tree.ViewSchema, *, dataverse: Levels) -> InlinedType:
    """Return the type of a typed view, with type names replaced. Raises SqlppError."""

    def read(request_view: RequestView) -> InlinedType:
        return inline_type(request_view, schema.type, dataverse=dataverse)

    return await session.ctx.read(scope_of(session.ctx), read)


async def _needs(session: StatementSession, statement: tree.CreateView, *, path: Levels) -> BodyDependencies:
    own_view = BoundView(path[:-1], path[-1], statement.body)
    body = tree.PathExpression(
        statement.at,
        tree.Variable(statement.at, path[0]),
        tuple(tree.FieldStep(statement.at, each) for each in path[1:]),
    )
    await needs_of(session, body, dataverse=path[:-1], within=lambda names: _WithView(names, own_view))
    return await needs_of(session, statement.body, dataverse=path[:-1], within=lambda names: names)


def _version(statement: tree.CreateView, path: Levels) -> Json:
    texts = [("spark", FOR_SPARK), (DIALECT, render(statement.body))]
    return {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 0,
        "summary": {"engine-name": "limnos"},
        "default-namespace": list(path[:-1]),
        "representations": [{"type": "sql", "dialect": dialect, "sql": text} for dialect, text in texts],
    }


async def _make(ctx: Context, path: Levels, *, version: Json, needs: BodyDependencies, used: tuple[int, ...]) -> None:
    scope = scope_of(ctx)
    version = {**version, "timestamp-ms": ctx.services.store.time.now_ms()}
    request = ViewRequest(name=path[-1], location=None, schema=SCHEMA, version=version, properties={})

    def look(request_view: RequestView) -> NewTable:
        dataverse_of(request_view, path[:-1], action=Action.VIEW_CREATE)
        return new_view_of(request_view, path[:-1], path[-1])

    draft = await ctx.read(scope, look)
    whole = await view_build(ctx, request, draft)
    document, data = document_of(whole, previous=None, node_id=0, place=draft.place)
    async with ctx.services.files.written_file(
        document.metadata_location, data, draft.place.catalog.properties, first=True
    ):
        await ctx.write(
            scope,
            lambda request_view: _create_of(request_view, path, document=document, needs=needs, used=used),
            sqlpp_view_insert,
        )


def _create_of(
    request_view: RequestView,
    path: Levels,
    *,
    document: MetadataDocument,
    needs: BodyDependencies,
    used: tuple[int, ...],
) -> Permit[SqlppViewCreate]:
    dataverse_of(request_view, path[:-1], action=Action.VIEW_CREATE)
    draft = new_view_of(request_view, path[:-1], path[-1])
    record = ViewRecord(None, {MADE_HERE: "true"}, writer_of(request_view))
    view = ViewCreate(
        namespace=draft.namespace,
        name=path[-1],
        space=draft.space,
        document=document,
        owner_id=draft.owner_id,
        record=record,
    )
    return draft.permit.about(SqlppViewCreate(view, (*ids_of(request_view, needs), *used)))


def sqlpp_view_insert(tx: Tx, permit: Permit[SqlppViewCreate]) -> None:
    """Insert the view, its document and its dependencies."""
    view_state = view_insert(tx, permit.about(permit.command.view))
    tx.dependencies.replace(view_state.node.id, permit.command.used)


async def _replace(
    ctx: Context, path: Levels, *, version: Json, needs: BodyDependencies, used: tuple[int, ...]
) -> None:
    """Replace a view's text and its dependencies in one mutation.

    Raises NotFound, PermissionDenied, BadRequest, CommitConflict.
    """
    scope = scope_of(ctx)
    current = await ctx.read(
        scope,
        lambda request_view: request_view.document(request_view.look_up(Kind.VIEW, path, Action.VIEW_ALTER).entity.id),
    )
    highest = max(each["version-id"] for each in msgspec.json.decode(current.body)["versions"])
    added_version = {
        **version,
        "version-id": highest + 1,
        "timestamp-ms": ctx.services.store.time.now_ms(),
        "schema-id": -1,
    }
    updates: list[object] = [
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "add-view-version", "view-version": added_version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    request = ViewReplaceRequest(
        namespace=path[:-1],
        name=path[-1],
        requirements=[],
        updates=updates,
        needs=lambda request_view: (*ids_of(request_view, needs), *used),
    )
    await view_replace(ctx, scope, request)


async def view_drop(session: StatementSession, statement: tree.Drop) -> None:
    """Drop a view on which no object depends. Raises SqlppError, PermissionDenied, ProtectedObject."""
    ctx = session.ctx
    path = session.qualify(statement.name)
    session.warnings += await object_drop(ctx, (Kind.VIEW,), name=statement.name, path=path, quiet=statement.if_exists)
