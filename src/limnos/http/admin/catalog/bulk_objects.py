# SPDX-License-Identifier: Apache-2.0
"""Items of bulk jobs about objects in catalogs: create, register, change and drop them.

Has no business rules: each item calls the service that its single request calls.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal

from limnos.files import is_local, normalise
from limnos.http.admin.catalog.bulk_item import Exists, PathItem, unless_exists
from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.records import ModelRecord, NamespaceRecord
from limnos.names.path import Levels
from limnos.services.catalog import filesets, models, namespaces, tables, views
from limnos.services.catalog.filesets import FilesetRequest
from limnos.services.iceberg.registrations import table_register
from limnos.services.iceberg.table_evolution import table_edit
from limnos.services.lance import tables as lance_tables
from limnos.services.lance.table_files import LANCE_FILES
from limnos.services.lookup import namespace_objects
from limnos.services.lookup.securables import parse_kind
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.transactions import operations as operated
from limnos.services.transactions.operations import TransactionOperation


class NamespaceItem(PathItem, frozen=True, tag="create-namespace", kw_only=True):
    """Creates a namespace with its missing parents."""

    comment: str | None = None
    properties: dict[str, str] | None = None
    exists: Exists = "refuse"

    @property
    def wave_key(self) -> str:
        """A namespace waits for those above it."""
        return f"create-namespace {len(self.path)}"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Create the namespace."""
        create = namespaces.namespace_create(
            ctx, self.scope(metalake), levels=self.levels, comment=self.comment, properties=self.properties or {}
        )
        return await unless_exists(create, self.exists)

    def to_operation(self) -> TransactionOperation:
        """Convert the item to an operation of a transaction."""
        record = NamespaceRecord(comment=self.comment, properties=self.properties or {})
        return operated.NamespaceCreateOperation(self.levels, record)


class RegisterItem(PathItem, frozen=True, tag="register-table", kw_only=True):
    """Creates an Iceberg table from an existing metadata file, which is not copied.

    With `exists: replace`, a table that exists is pointed at the file; `expected` is the file that it must have then.
    """

    metadata_location: str
    exists: Literal["refuse", "skip", "replace"] = "refuse"
    expected: str | None = None

    @property
    def registered_file(self) -> tuple[str, Levels, str] | None:
        """The catalog, the path below it, and the metadata file."""
        return (self.path[0], tuple(self.path[1:]), self.metadata_location) if len(self.path) > 2 else None

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Register the table."""
        scope, levels = self.scope(metalake), self.levels
        if len(levels) < 2:
            raise BadRequest("A table must be in a namespace: give at least three names")
        replaces = self.exists == "replace"
        if replaces and await self._is_current(ctx, scope):
            return False
        register = table_register(
            ctx,
            scope,
            namespace=levels[:-1],
            name=levels[-1],
            metadata_location=self.metadata_location,
            overwrite=replaces,
            expected=self.expected,
        )
        return await unless_exists(register, self.exists)

    async def _is_current(self, ctx: Context, scope: RequestScope) -> bool:
        location = self.metadata_location
        location = normalise(location) if is_local(location) else location
        levels = self.levels
        try:
            document = await ctx.read(scope, lambda view: tables.table_load(view, levels[:-1], levels[-1]))
        except (NotFound, PermissionDenied):
            return False
        return document.metadata_location == location

    def to_operation(self) -> TransactionOperation:
        """Convert the item to an operation of a transaction."""
        if self.exists != "refuse":
            raise BadRequest("In an all-or-nothing job a registered table must be new: leave out exists")
        return operated.TableRegisterOperation(self.levels, self.metadata_location)


class LanceItem(PathItem, frozen=True, tag="register-lance-table", kw_only=True):
    """Creates a Lance table from existing files."""

    location: str
    properties: dict[str, str] | None = None
    exists: Exists = "refuse"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Register the table."""
        register = LANCE_FILES.of(ctx.services).register(
            ctx, self.scope(metalake), levels=self.levels, location=self.location, properties=self.properties or {}
        )
        return await unless_exists(register, self.exists)


class FilesetItem(PathItem, frozen=True, tag="create-fileset", kw_only=True):
    """Creates a fileset; `locations` are its named locations."""

    locations: dict[str, str] | None = None
    external: bool = False
    comment: str | None = None
    properties: dict[str, str] | None = None
    exists: Exists = "refuse"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Create the fileset."""
        request = FilesetRequest(self.comment, self.external, self.locations or {}, self.properties or {})
        create = filesets.fileset_create(ctx, self.scope(metalake), path=self.levels, request=request)
        return await unless_exists(create, self.exists)


class ModelItem(PathItem, frozen=True, tag="create-model", kw_only=True):
    """Creates a model without versions."""

    comment: str | None = None
    properties: dict[str, str] | None = None
    exists: Exists = "refuse"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Create the model."""
        record = ModelRecord(comment=self.comment, properties=self.properties or {})
        create = namespace_objects.namespace_object_create(
            ctx, self.scope(metalake), path=self.levels, kind=Kind.MODEL, record=lambda _: record
        )
        return await unless_exists(create, self.exists)


class ModelVersionItem(PathItem, frozen=True, tag="link-model-version", kw_only=True):
    """Adds a version to a model."""

    uris: dict[str, str]
    aliases: list[str] | None = None
    comment: str | None = None
    properties: dict[str, str] | None = None

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Link the version."""
        await models.version_link(
            ctx,
            self.scope(metalake),
            path=self.levels,
            uris=self.uris,
            aliases=tuple(self.aliases or ()),
            comment=self.comment,
            properties=self.properties or {},
        )
        return True


class PropertiesItem(PathItem, frozen=True, tag="set-properties", kw_only=True):
    """Sets and removes properties, and sets the comment, of a namespace, Iceberg table, fileset, model or topic."""

    kind: Literal["namespace", "table", "fileset", "model", "topic"]
    set: dict[str, str] | None = None
    remove: list[str] | None = None
    comment: str | None = None

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Change the properties."""
        scope, levels = self.scope(metalake), self.levels
        edits = PropertyEdits(comment=self.comment, sets=self.set or {}, removes=tuple(self.remove or ()))
        kind = parse_kind(self.kind)
        if kind is Kind.NAMESPACE:
            await namespaces.namespace_alter(ctx, scope, levels=levels, edits=edits)
        elif kind is Kind.TABLE:
            await table_edit(ctx, scope, path=levels, edits=edits)
        else:
            if kind is Kind.FILESET and any(map(filesets.is_fixed, (*edits.sets, *edits.removes))):
                raise BadRequest("A property of a fileset that says where its files are is fixed: create another")
            await namespace_objects.namespace_object_alter(ctx, scope, path=levels, kind=kind, edits=edits)
        return True


class DropItem(PathItem, frozen=True, tag="drop", kw_only=True):
    """Drops an object. `purge` deletes an Iceberg table's files, too."""

    kind: Literal["namespace", "table", "view", "lance-table", "fileset", "model", "topic"]
    purge: bool = False
    missing: Literal["refuse", "skip"] = "refuse"

    @property
    def wave_key(self) -> str:
        """A namespace waits for what is in it."""
        return f"drop {self.kind} {len(self.path) if self.kind == 'namespace' else ''}"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Drop the object."""
        try:
            await self._drop(ctx, self.scope(metalake), levels=self.levels)
        except NotFound:
            if self.missing == "skip":
                return False
            raise
        return True

    def _drop(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> Awaitable[object]:
        if self.purge and self.kind != "table":
            raise BadRequest("Only an Iceberg table is dropped with purge")
        match self.kind:
            case "namespace":
                return namespaces.namespace_drop(ctx, scope, levels=levels)
            case "table":
                return tables.table_drop(ctx, scope, namespace=levels[:-1], name=levels[-1], purge=self.purge)
            case "view":
                return views.view_drop(ctx, scope, namespace=levels[:-1], name=levels[-1])
            case "lance-table":
                return lance_tables.table_drop(ctx, scope, levels=levels)
            case "fileset":
                return filesets.fileset_drop(ctx, scope, path=levels)
            case _:
                return namespace_objects.namespace_object_drop(ctx, scope, path=levels, kind=parse_kind(self.kind))

    def to_operation(self) -> TransactionOperation:
        """Convert the item to an operation of a transaction."""
        if self.missing == "refuse" and self.kind == "table":
            return operated.TableDropOperation(self.levels, self.purge)
        if self.missing == "refuse" and self.kind == "view":
            return operated.ViewDropOperation(self.levels)
        if self.missing == "refuse" and self.kind == "namespace":
            return operated.NamespaceDropOperation(self.levels)
        return super().to_operation()
