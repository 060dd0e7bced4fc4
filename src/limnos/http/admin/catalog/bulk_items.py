# SPDX-License-Identifier: Apache-2.0
"""Items of bulk jobs: one JSON object each, with the fields of its single request.

Has no business rules: each item calls the service that its single request calls. Paths are lists of names, the catalog
first.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal

import msgspec

from limnos.files import is_local, normalise
from limnos.http.admin.bodies import AdminRequestBody
from limnos.model.attachments import check_tag_value
from limnos.model.errors import AlreadyExists, BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind, KindGroup
from limnos.model.privileges import GrantCondition, parse_privilege
from limnos.model.records import ModelRecord, NamespaceRecord
from limnos.names.fullname import FullName, render_quoted
from limnos.names.parts import check_some_levels
from limnos.names.path import Levels
from limnos.services.catalog import filesets, models, namespaces, tables, views
from limnos.services.catalog.filesets import FilesetRequest
from limnos.services.governance import attachments, policies, tag_values
from limnos.services.governance.tag_values import tag_record
from limnos.services.iceberg.registrations import table_register
from limnos.services.iceberg.table_evolution import table_edit
from limnos.services.identity import grants, groups, owners, roles, users
from limnos.services.lance import tables as lance_tables
from limnos.services.lookup import metalake_objects, namespace_objects
from limnos.services.lookup.securables import AttachmentTarget, parse_kind
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_for
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.transactions import operations as operated
from limnos.services.transactions.operations import TransactionOperation

Exists = Literal["refuse", "skip"]
"""What an item does if its object exists: it is refused, or has nothing to do."""
_PRINCIPALS = {"user": Kind.USER, "group": Kind.GROUP}


class ItemBody(AdminRequestBody, frozen=True, tag_field="do"):
    """The base class of items. The JSON field `do` selects the type."""

    @property
    def lane(self) -> str:
        """Items of the same type run at the same time."""
        return str(self.__struct_config__.tag)

    @property
    def touches(self) -> tuple[str, ...]:
        """The object that the item changes."""
        return ("\0".join(self._object),)

    @property
    def _object(self) -> Levels:
        return ()

    @property
    def registered_file(self) -> tuple[str, Levels, str] | None:
        """Nothing: the item does not register a table."""
        return None

    @property
    def catalog(self) -> str:
        """The name of the catalog of an item that can be an operation of a transaction."""
        return self._object[0]

    def to_operation(self) -> TransactionOperation:
        """Convert the item to an operation of a transaction. Raises BadRequest if there is none."""
        raise BadRequest(f"Item {self.lane} cannot be part of an all-or-nothing job: send it without atomic")


class PathItem(ItemBody, frozen=True):
    """An item about an object below a catalog."""

    path: list[str]

    @property
    def _object(self) -> Levels:
        return tuple(self.path)

    def scope(self, metalake: str) -> RequestScope:
        """Return the scope of the object's catalog. Raises BadRequest for a path without one."""
        if len(self.path) < 2:
            raise BadRequest('Field path must begin with the catalog, as ["main", "raw", "late"]')
        return RequestScope(metalake, self.path[0])

    @property
    def levels(self) -> Levels:
        """The names below the catalog."""
        return check_some_levels(self.path[1:])


class TargetItem(ItemBody, frozen=True):
    """An item about an object of any kind: `kind`, and `on`, its path, or its name outside of catalogs."""

    kind: str
    on: list[str]

    @property
    def _object(self) -> Levels:
        return (self.kind, *self.on)

    def full_name(self, ctx: Context) -> tuple[Kind, str]:
        """Return the kind, and the object's full name as Gravitino spells it. Raises BadRequest."""
        kind = parse_kind(self.kind)
        if not self.on:
            raise BadRequest('Field on names no object: give its path, as ["main", "raw", "late"]')
        if len(self.on) == 1:
            return kind, self.on[0]
        is_leaf = kind is not Kind.NAMESPACE and kind.form is KindGroup.LEAF
        name = FullName(self.on[0], tuple(self.on[1:-1] if is_leaf else self.on[1:]), self.on[-1] if is_leaf else None)
        return kind, render_quoted(name, codec=codec_for(ctx.services.defaults))

    def attachment_target(self, ctx: Context, metalake: str) -> AttachmentTarget:
        """Return the object as the target of a tag or policy."""
        return AttachmentTarget(metalake, *self.full_name(ctx))


async def _unless_exists(work: Awaitable[object], exists: str) -> bool:
    """Await a create. Returns False if the object exists and that is no error."""
    try:
        await work
    except AlreadyExists:
        if exists == "skip":
            return False
        raise
    return True


class NamespaceItem(PathItem, frozen=True, tag="create-namespace", kw_only=True):
    """Creates a namespace with its missing parents."""

    comment: str | None = None
    properties: dict[str, str] | None = None
    exists: Exists = "refuse"

    @property
    def lane(self) -> str:
        """A namespace waits for those above it."""
        return f"create-namespace {len(self.path)}"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Create the namespace."""
        create = namespaces.namespace_create(
            ctx, self.scope(metalake), levels=self.levels, comment=self.comment, properties=self.properties or {}
        )
        return await _unless_exists(create, self.exists)

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
        return await _unless_exists(register, self.exists)

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
        register = lance_tables.table_register(
            ctx,
            self.scope(metalake),
            levels=self.levels,
            location=self.location,
            properties=self.properties or {},
            overwrite=False,
        )
        return await _unless_exists(register, self.exists)


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
        return await _unless_exists(create, self.exists)


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
        return await _unless_exists(create, self.exists)


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
    def lane(self) -> str:
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


class TagCreateItem(ItemBody, frozen=True, tag="create-tag", kw_only=True):
    """Creates a tag."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None
    allowed_values: list[str] | None = None
    exists: Exists = "refuse"

    @property
    def _object(self) -> Levels:
        return (self.name,)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Create the tag."""
        record = tag_record(self.comment, self.properties or {}, allowed_values=self.allowed_values)
        create = metalake_objects.metalake_object_create(
            ctx, metalake=metalake, kind=Kind.TAG, name=self.name, record=record
        )
        return await _unless_exists(create, self.exists)


class PrincipalItem(ItemBody, frozen=True, tag="create-principal", kw_only=True):
    """Adds a user or group, or creates a role without privileges."""

    kind: Literal["user", "group", "role"]
    name: str
    exists: Exists = "refuse"

    @property
    def _object(self) -> Levels:
        return (self.kind, self.name)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Create the user, group or role."""
        if self.kind == "role":
            create: Awaitable[object] = roles.role_create(
                ctx, metalake=metalake, name=self.name, properties={}, privilege_requests=()
            )
        else:
            create = users.principal_add(ctx, metalake=metalake, kind=_PRINCIPALS[self.kind], name=self.name)
        return await _unless_exists(create, self.exists)


class MembersItem(ItemBody, frozen=True, tag="add-members", kw_only=True):
    """Adds users to a group."""

    group: str
    users: list[str]

    @property
    def _object(self) -> Levels:
        return (self.group,)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Add the members."""
        await groups.members_add(ctx, metalake=metalake, group=self.group, users=tuple(self.users))
        return True


class AssignItem(ItemBody, frozen=True, tag="assign-roles", kw_only=True):
    """Assigns roles to a user or group, or revokes them."""

    kind: Literal["user", "group"]
    name: str
    roles: list[str]
    revoke: bool = False

    @property
    def _object(self) -> Levels:
        return (self.kind, self.name)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Assign the roles."""
        if not self.roles:
            raise BadRequest("Field roles is empty: name at least one role")
        await grants.roles_give(
            ctx,
            metalake=metalake,
            kind=_PRINCIPALS[self.kind],
            name=self.name,
            roles=tuple(self.roles),
            gives=not self.revoke,
        )
        return True


class TagItem(TargetItem, frozen=True, tag="tag", kw_only=True):
    """Attaches a tag to an object, with or without a value, or detaches it."""

    tag: str
    value: str | None = None
    detach: bool = False
    exists: Exists = "refuse"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Attach or detach the tag."""
        on = self.attachment_target(ctx, metalake)
        if self.value is None:
            names = (self.tag,)
            work: Awaitable[object] = attachments.attachments_associate(
                ctx, on, kind=Kind.TAG, adds=() if self.detach else names, removes=names if self.detach else ()
            )
        else:
            pairs = (tag_values.TagValuePair(self.tag, check_tag_value(self.value)),)
            work = tag_values.pairs_associate(
                ctx, on, adds=() if self.detach else pairs, removes=pairs if self.detach else ()
            )
        return await _unless_exists(work, self.exists)


class PolicyItem(TargetItem, frozen=True, tag="policy", kw_only=True):
    """Attaches a policy to an object, or detaches it."""

    policy: str
    detach: bool = False
    exists: Exists = "refuse"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Attach or detach the policy."""
        names = (self.policy,)
        work = policies.policies_associate(
            ctx,
            self.attachment_target(ctx, metalake),
            adds=() if self.detach else names,
            removes=names if self.detach else (),
        )
        return await _unless_exists(work, self.exists)


class GrantItem(TargetItem, frozen=True, tag="grant", kw_only=True):
    """Grants privileges on an object to a role, as allowed or denied, or revokes them."""

    role: str
    privileges: list[str]
    deny: bool = False
    revoke: bool = False

    @property
    def touches(self) -> tuple[str, ...]:
        """The role."""
        return (self.role,)

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Change the role's privileges."""
        condition = GrantCondition.DENY if self.deny else GrantCondition.ALLOW
        rules = tuple((parse_privilege(name), condition) for name in self.privileges)
        privilege_request = grants.PrivilegeRequest(*self.full_name(ctx), rules)
        await grants.privileges_grant(
            ctx, metalake=metalake, role=self.role, privilege_request=privilege_request, grants_them=not self.revoke
        )
        return True


class OwnerItem(TargetItem, frozen=True, tag="set-owner", kw_only=True):
    """Sets the owner of an object."""

    owner: str
    owner_kind: Literal["user", "group"] = "user"

    async def run(self, ctx: Context, metalake: str) -> bool:
        """Set the owner."""
        kind, name = self.full_name(ctx)
        await owners.owner_set(
            ctx,
            metalake=metalake,
            kind=kind,
            full_name=name,
            owner_kind=_PRINCIPALS[self.owner_kind],
            owner=self.owner,
        )
        return True


AnyItem = (
    NamespaceItem
    | RegisterItem
    | LanceItem
    | FilesetItem
    | ModelItem
    | ModelVersionItem
    | PropertiesItem
    | DropItem
    | TagCreateItem
    | PrincipalItem
    | MembersItem
    | AssignItem
    | TagItem
    | PolicyItem
    | GrantItem
    | OwnerItem
)
ITEM_DECODER = msgspec.json.Decoder(AnyItem)
