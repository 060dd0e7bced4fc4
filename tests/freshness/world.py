# SPDX-License-Identifier: Apache-2.0
"""Random mutations through the services, and random questions, on a small metalake.

There are few names, so they are constantly dropped, reused, moved onto and granted on. A mutation that the current
state forbids raises a LimnosError, which is a valid result, too. Questions return a value or that error.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from limnos.access.actions import Action
from limnos.access.authentication import Credential, hash_secret
from limnos.model.decisions import ChainLink
from limnos.model.errors import LimnosError
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.model.records import BLANK_NAMESPACE, CatalogRecord, MetalakeRecord, TagRecord
from limnos.services.catalog import catalogs, metalakes, namespaces, protection, tables, views
from limnos.services.governance import attachments, restrictions
from limnos.services.iceberg import commits
from limnos.services.iceberg import tables as iceberg_tables
from limnos.services.iceberg import views as iceberg_views
from limnos.services.iceberg.commit_values import CommitChange
from limnos.services.identity import explain, grants, groups, owners, roles, tokens, users
from limnos.services.identity.grants import PrivilegeRequest
from limnos.services.lance import tables as lance_tables
from limnos.services.lookup import metalake_objects
from limnos.services.lookup.securables import AttachmentTarget
from limnos.services.request import multi_catalog_reads
from limnos.services.request.context import Context
from limnos.services.request.name_pages import ALL_NAMES, NamePage
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.transactions import transactions
from limnos.services.transactions.operations import (
    NamespaceCreateOperation,
    NamespaceDropOperation,
    NamespaceMoveOperation,
    TableCommitOperation,
    TableCreateOperation,
    TableDropOperation,
    TableMoveOperation,
    TransactionOperation,
)
from limnos.services.upkeep import trash
from limnos.view.cache_miss import require_fact
from limnos.view.keys import rules_key
from tests.backends import Query
from tests.freshness import namespace_objects, runs
from tests.freshness.runs import list_pipeline_questions as asked_of_pipelines
from tests.freshness.runs import pipeline
from tests.inprocess import ADMIN, ICEBERG, LAKE, add_catalog, new_table
from tests.installed import room_part

USERS = ("ana", "bob", "eve")
GROUPS = ("g", "h")
TAGS = ("red", "blue")
ROLES = ("r", "s", "q")
CATALOGS = ("main", "side")
LANCE = "lance"
table_declare = room_part("limnos.rooms.lance.services.table_drafts:table_declare")
"""A catalog of Lance tables, in sequences with Lance."""
NAMES = ("a", "b")
TABLES = ("t", "u")
VIEWS = ("v", "t")
"""Names of views. One of them is also a table's name, because tables and views share their names."""
Levels = tuple[str, ...]
Work = Coroutine[Any, Any, object]
REFUSALS = LimnosError
_PRIVILEGES = {
    Kind.METALAKE: (
        Privilege.USE_CATALOG,
        Privilege.MANAGE_GRANTS,
        Privilege.CREATE_SCHEMA,
        Privilege.MANAGE_USERS,
        Privilege.RUN_JOB,
        Privilege.REGISTER_JOB_TEMPLATE,
    ),
    Kind.JOB_TEMPLATE: (Privilege.USE_JOB_TEMPLATE,),
    Kind.CATALOG: (
        Privilege.USE_CATALOG,
        Privilege.USE_SCHEMA,
        Privilege.CREATE_SCHEMA,
        Privilege.SELECT_TABLE,
        Privilege.CREATE_VIEW,
    ),
    Kind.NAMESPACE: (
        Privilege.USE_SCHEMA,
        Privilege.CREATE_TABLE,
        Privilege.SELECT_TABLE,
        Privilege.MODIFY_TABLE,
        Privilege.SELECT_VIEW,
    ),
    Kind.TABLE: (Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE),
    Kind.VIEW: (Privilege.SELECT_VIEW,),
    Kind.FUNCTION: (Privilege.EXECUTE_FUNCTION, Privilege.MODIFY_FUNCTION),
}


@dataclass(kw_only=True)
class StoryWorld:
    """State of the generators: random generator, the store's rows, and created tokens."""

    dice: random.Random
    sql: Query
    focus: bool = False
    lance: bool = False
    secrets: list[tuple[str, Credential]] = field(default_factory=list)

    @property
    def mutations(self) -> dict[Callable[[StoryWorld, Context], Work], int]:
        """Return the mutations with their weights. In focused sequences they concern a few tables and ana's privileges
        on them.
        """
        return {**_MUTATIONS, **_OF_LANCE} if self.lance else _FOCUS if self.focus else _MUTATIONS

    @property
    def catalogs(self) -> tuple[str, ...]:
        """Return the names of catalogs."""
        return ("main", LANCE) if self.lance else CATALOGS

    def user(self) -> str:
        """Return a user's name."""
        return "ana" if self.focus and self.dice.random() < 0.8 else self.dice.choice(USERS)

    def role(self) -> str:
        """Return a role's name."""
        return "r" if self.focus else self.dice.choice(ROLES)

    def tree(self) -> list[tuple[int, Levels]]:
        """Return kind and names, from the metalake down, of all existing reachable objects."""
        rows = self.sql("SELECT id, parent_id, kind, name FROM node WHERE deleted = 0 ORDER BY id")
        by_id = {row[0]: row for row in rows}
        reachable_objects = []
        for node_id, _, kind, _ in rows:
            names: list[str] = []
            while node_id in by_id:
                names.append(by_id[node_id][3])
                node_id = by_id[node_id][1]  # noqa: PLW2901 - climbs
            if node_id == ROOT_ID:
                reachable_objects.append((kind, tuple(reversed(names))))
        return reachable_objects

    def likely(self, kind: Kind) -> Levels | None:
        """Return the name of an object of this kind, mostly an existing one. Returns None otherwise."""
        existing_names = [names for object_kind, names in self.tree() if object_kind == kind]
        return (
            self.dice.choice(existing_names)
            if existing_names and self.dice.random() < (0.95 if self.focus else 0.8)
            else None
        )

    def tag(self) -> str:
        """Return a tag's name, existing or not."""
        return self.dice.choice(TAGS)

    def metalake(self) -> str:
        """The metalake's current name."""
        metalake_rows = self.sql(
            "SELECT name FROM node WHERE parent_id = ? AND deleted = 0 AND kind = ?", ROOT_ID, Kind.METALAKE
        )
        return str(metalake_rows[0][0]) if metalake_rows else LAKE

    def scope(self) -> RequestScope:
        """Return a catalog, mostly an existing one."""
        names = self.likely(Kind.CATALOG)
        return RequestScope(self.metalake(), self.dice.choice(self.catalogs) if names is None else names[1])

    def some_levels(self, most: int = 3) -> Levels:
        """Return a namespace's name, existing or not."""
        return tuple(self.dice.choice(NAMES) for _ in range(self.dice.randint(1, most)))

    def namespace(self) -> tuple[RequestScope, Levels]:
        """Return a namespace, mostly an existing one."""
        names = self.likely(Kind.NAMESPACE)
        return (self.scope(), self.some_levels()) if names is None else (RequestScope(*names[:2]), names[2:])

    def table(self) -> tuple[RequestScope, Levels]:
        """Return a table's full name, mostly of an existing one."""
        names = self.likely(Kind.TABLE)
        if names is not None:
            return RequestScope(*names[:2]), names[2:]
        scope, levels = self.namespace()
        return scope, (*levels, self.dice.choice(TABLES))

    def view(self) -> tuple[RequestScope, Levels]:
        """Return a view's full name, mostly of an existing one."""
        names = self.likely(Kind.VIEW)
        if names is not None:
            return RequestScope(*names[:2]), names[2:]
        scope, levels = self.namespace()
        return scope, (*levels, self.dice.choice(VIEWS))

    def function(self) -> tuple[RequestScope, Levels]:
        """Return a function's full name, mostly of an existing one."""
        names = self.likely(Kind.FUNCTION)
        if names is not None:
            return RequestScope(*names[:2]), names[2:]
        scope, levels = self.namespace()
        return scope, (*levels, "f")

    def elsewhere(self, scope: RequestScope) -> Levels:
        """Return a target parent for an object: its catalog, or a namespace in it."""
        namespaces = [names[2:] for kind, names in self.tree() if kind == Kind.NAMESPACE and names[1] == scope.catalog]
        return self.dice.choice([(), *namespaces])

    def someone(self) -> Credential:
        """Return a caller: a user by name, or by a token, which may be revoked."""
        if self.secrets and self.dice.random() < (0.05 if self.focus else 0.3):
            return self.dice.choice(self.secrets)[1]
        return Credential(user=ADMIN if self.dice.random() < 0.2 else self.user())

    def securable(self) -> tuple[Kind, str]:
        """Return a kind and a full name, for a grant, a transfer or an explanation."""
        kind = Kind.TABLE if self.focus and self.dice.random() < 0.6 else self.dice.choice(tuple(_PRIVILEGES))
        if kind is Kind.METALAKE:
            return kind, self.metalake()
        if kind is Kind.CATALOG:
            return kind, str(self.scope().catalog)
        if kind is Kind.JOB_TEMPLATE:
            return kind, pipeline(self)
        draw = {Kind.NAMESPACE: self.namespace, Kind.VIEW: self.view, Kind.FUNCTION: self.function}.get(
            kind, self.table
        )
        scope, levels = draw()
        inside, name = (levels, "") if kind is Kind.NAMESPACE else (levels[:-1], f".{levels[-1]}")
        return kind, f"{scope.catalog}.{':'.join(inside)}{name}"

    def principal(self) -> tuple[Kind, str]:
        """Return a user or a group."""
        kind = self.dice.choice((Kind.USER, Kind.USER, Kind.GROUP))
        return kind, self.user() if kind is Kind.USER else self.dice.choice(GROUPS)


# ------------------------------------------------------------------------------------------------- mutations


def namespace_create(world: StoryWorld, ctx: Context) -> Work:
    """Create a namespace, with missing parents."""
    return namespaces.namespace_create(ctx, world.scope(), levels=world.some_levels(), properties={})


def namespace_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a namespace if it is empty."""
    scope, levels = world.namespace()
    return namespaces.namespace_drop(ctx, scope, levels=levels)


def namespace_move(world: StoryWorld, ctx: Context) -> Work:
    """Rename or move a namespace with its content."""
    scope, source = world.namespace()
    target = (*world.elsewhere(scope), world.dice.choice(NAMES))
    return namespaces.namespace_move(ctx, scope, source=source, target=target)


def namespace_alter(world: StoryWorld, ctx: Context) -> Work:
    """Change a namespace's properties."""
    scope, levels = world.namespace()
    return namespaces.namespace_alter(
        ctx, scope, levels=levels, edits=PropertyEdits(sets={"k": str(world.dice.random())})
    )


def table_create(world: StoryWorld, ctx: Context) -> Work:
    """Create a table."""
    scope, levels = world.namespace()
    return iceberg_tables.table_create(ctx, scope, namespace=levels, request=new_table(world.dice.choice(TABLES)))


def table_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a table."""
    scope, (*inside, name) = world.table()
    return tables.table_drop(ctx, scope, namespace=tuple(inside), name=name, purge=world.dice.random() < 0.2)


def protect(world: StoryWorld, ctx: Context) -> Work:
    """Protect an object for a moment, or remove its protection."""
    kind, full_name = world.securable()
    target: dict[str, Any] = {"metalake": world.metalake(), "kind": kind, "full_name": full_name}
    if world.dice.random() < 0.4:
        return protection.protection_set(ctx, **target, below=world.dice.random() < 0.3)
    return protection.protection_remove(ctx, **target)


def restrict(world: StoryWorld, ctx: Context) -> Work:
    """Restrict an object for a moment, or remove the restriction."""
    kind, full_name = world.securable()
    on = restrictions.RestrictionTarget(world.metalake(), kind, full_name)
    if world.dice.random() < 0.6:
        nobody = restrictions.RestrictionPrincipals()
        request = restrictions.RestrictionRequest(True, {}, nobody, nobody)
        return restrictions.restriction_set(ctx, on, name="r", request=request)
    return restrictions.restriction_remove(ctx, on, name="r")


async def undrop(world: StoryWorld, ctx: Context) -> object:
    """Restore an object from the trash, sometimes elsewhere or with its contents."""
    scope = world.scope()
    trash_page = await trash.trash_list(ctx, scope, below=(), before=trash.NEWEST, limit=20)
    if not trash_page.entries:
        return None
    row = world.dice.choice(trash_page.entries).row
    to = (*world.elsewhere(scope), world.dice.choice((*NAMES, *TABLES))) if world.dice.random() < 0.3 else None
    contents = row.kind is Kind.NAMESPACE and world.dice.random() < 0.5
    return await trash.trash_restore(ctx, scope, dropped_id=row.id, to=to, contents=contents)


def table_move(world: StoryWorld, ctx: Context) -> Work:
    """Rename or move a table."""
    scope, source = world.table()
    into = world.elsewhere(scope) if world.dice.random() < 0.5 else source[:-1]
    return tables.table_move(ctx, scope, source=source, target=(*into, world.dice.choice(TABLES)))


def table_commit(world: StoryWorld, ctx: Context) -> Work:
    """Commit a change of a table's properties."""
    scope, (*inside, name) = world.table()
    updates: list[object] = [{"action": "set-properties", "updates": {"k": str(world.dice.random())}}]
    return commits.table_commit(ctx, scope, namespace=tuple(inside), name=name, requirements=[], updates=updates)


def transaction(world: StoryWorld, ctx: Context) -> Work:
    """Run up to four operations in one transaction. Later ones often concern objects of earlier ones."""
    dice, (scope, first) = world.dice, world.table()
    operations: list[TransactionOperation] = []
    for number in range(dice.randint(1, 4)):
        at, levels = world.table()
        path = first if number == 0 or at != scope or dice.random() < 0.5 else levels
        into = (*world.elsewhere(scope), dice.choice(TABLES))
        change = CommitChange([], [{"action": "set-properties", "updates": {"k": str(dice.random())}}])
        new_namespace = (*path[:-1], dice.choice(NAMES))
        moved = path[:-1] or new_namespace  # a Lance table directly in the catalog
        done: tuple[TransactionOperation, ...] = (
            TableCommitOperation(path, change),
            TableMoveOperation(path, into),
            TableDropOperation(path),
            TableCreateOperation((*new_namespace, "t"), new_table("t")),
            NamespaceCreateOperation(new_namespace, BLANK_NAMESPACE),
            NamespaceMoveOperation(moved, into),
            NamespaceDropOperation(new_namespace),
        )
        operations.append(dice.choices(done, (6, 4, 1, 3, 3, 1, 1))[0])
    return transactions.transaction_execute(ctx, scope, operations)


async def table_exchange(world: StoryWorld, ctx: Context) -> object:
    """Exchange the names of two tables of a namespace in three quick moves. Grants stay with the tables."""
    scope, levels = world.namespace()
    t, u, away = ((*levels, name) for name in (*TABLES, "x"))
    await tables.table_move(ctx, scope, source=t, target=away)
    await tables.table_move(ctx, scope, source=u, target=t)
    return await tables.table_move(ctx, scope, source=away, target=u)


async def table_rename_and_grant(world: StoryWorld, ctx: Context) -> object:
    """Rename a table and grant on it afterwards: under its old name no user had the privilege at any moment."""
    scope, levels = world.table()
    away = (*levels[:-1], "x")
    await tables.table_move(ctx, scope, source=levels, target=away)
    full_name = f"{scope.catalog}.{':'.join(away[:-1])}.x"
    privilege_request = PrivilegeRequest(
        Kind.TABLE,
        full_name,
        ((Privilege.SELECT_TABLE, GrantCondition.ALLOW), (Privilege.MODIFY_TABLE, GrantCondition.ALLOW)),
    )
    granted: dict[str, Any] = {"metalake": world.metalake(), "role": "r", "privilege_request": privilege_request}
    await grants.privileges_grant(ctx, **granted)
    await grants.privileges_grant(ctx, **granted, grants_them=False)
    return await tables.table_move(ctx, scope, source=away, target=levels)


async def right_taken_and_given_back(world: StoryWorld, ctx: Context) -> object:
    """Disable ana for a moment, or transfer her table to bob for a moment.

    Mutations that were decided before must not commit meanwhile.
    """
    metalake = world.metalake()
    if world.dice.random() < 0.5:
        await users.user_enable(ctx, metalake=metalake, name="ana", enabled=False)
        return await users.user_enable(ctx, metalake=metalake, name="ana", enabled=True)
    scope, levels = world.table()
    target: dict[str, Any] = {
        "metalake": metalake,
        "kind": Kind.TABLE,
        "full_name": f"{scope.catalog}.{':'.join(levels[:-1])}.{levels[-1]}",
        "owner_kind": Kind.USER,
    }
    await owners.owner_set(ctx, **target, owner="bob")
    return await owners.owner_set(ctx, **target, owner="ana")


def _lance_table(world: StoryWorld) -> tuple[RequestScope, Levels]:
    """Return a table of the Lance catalog if it exists, else any table."""
    lance_tables = [names for kind, names in world.tree() if kind == Kind.TABLE and names[1] == LANCE]
    return (RequestScope(*(names := world.dice.choice(lance_tables))[:2]), names[2:]) if lance_tables else world.table()


def lance_declare(world: StoryWorld, ctx: Context) -> Work:
    """Declare a Lance table, in a namespace or directly in a catalog; sometimes one with managed versions."""
    scope, levels = world.namespace()
    if scope.catalog != LANCE and world.dice.random() < 0.7:
        scope, levels = RequestScope(world.metalake(), LANCE), ()
    inside = levels if world.dice.random() < 0.8 else ()
    properties = {"managed_versioning": "true"} if world.dice.random() < 0.5 else {}
    path = (*inside, world.dice.choice(TABLES))
    work: Work = table_declare(ctx, scope, levels=path, location=None, properties=properties)
    return work


def lance_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a Lance table, or deregister it."""
    scope, levels = _lance_table(world)
    return lance_tables.table_drop(ctx, scope, levels=levels, purges=world.dice.random() < 0.5)


def lance_rename(world: StoryWorld, ctx: Context) -> Work:
    """Rename or move a Lance table."""
    scope, source = _lance_table(world)
    into = world.elsewhere(scope) if world.dice.random() < 0.5 else source[:-1]
    return lance_tables.table_rename(ctx, scope, source=source, target=(*into, world.dice.choice(TABLES)))


def catalog_made(ctx: Context, name: str, *, metalake: str) -> Work:
    """Create a catalog of the provider that its name implies."""
    return add_catalog(ctx, name, metalake=metalake, provider="lakehouse-generic" if name == LANCE else ICEBERG)


def catalog_add(world: StoryWorld, ctx: Context) -> Work:
    """Create a catalog."""
    return catalog_made(ctx, world.dice.choice(world.catalogs), metalake=world.metalake())


def catalog_rename(world: StoryWorld, ctx: Context) -> Work:
    """Rename a catalog, or change its comment."""
    metalake, name = world.scope()
    edits = PropertyEdits(name=world.dice.choice((*world.catalogs, None)), comment=str(world.dice.random()))
    return catalogs.catalog_alter(ctx, metalake=str(metalake), name=str(name), edits=edits)


def catalog_enable(world: StoryWorld, ctx: Context) -> Work:
    """Enable or disable a catalog."""
    metalake, name = world.scope()
    return catalogs.catalog_enable(ctx, metalake=str(metalake), name=str(name), in_use=world.dice.random() < 0.8)


def catalog_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a catalog with its content."""
    metalake, name = world.scope()
    return catalogs.catalog_drop(ctx, metalake=str(metalake), name=str(name), force=True)


def metalake_rename(world: StoryWorld, ctx: Context) -> Work:
    """Rename the metalake."""
    edits = PropertyEdits(name=world.dice.choice((LAKE, "pond")))
    return metalakes.metalake_alter(ctx, name=world.metalake(), edits=edits)


def metalake_enable(world: StoryWorld, ctx: Context) -> Work:
    """Enable the metalake, or disable it for a moment."""
    return metalakes.metalake_set(ctx, name=world.metalake(), in_use=world.dice.random() < 0.95)


def principal_add(world: StoryWorld, ctx: Context) -> Work:
    """Add a user or group."""
    kind, name = world.principal()
    return users.principal_add(ctx, metalake=world.metalake(), kind=kind, name=name)


def principal_remove(world: StoryWorld, ctx: Context) -> Work:
    """Remove a user or group."""
    kind, name = world.principal()
    return users.principal_remove(ctx, metalake=world.metalake(), kind=kind, name=name)


def user_enable(world: StoryWorld, ctx: Context) -> Work:
    """Enable or disable a user."""
    name, enabled = world.user(), world.dice.random() < 0.7
    return users.user_enable(ctx, metalake=world.metalake(), name=name, enabled=enabled)


def member_add(world: StoryWorld, ctx: Context) -> Work:
    """Add users to a group."""
    names = tuple(world.dice.sample(USERS, world.dice.randint(1, 2)))
    return groups.members_add(ctx, metalake=world.metalake(), group=world.dice.choice(GROUPS), users=names)


def member_remove(world: StoryWorld, ctx: Context) -> Work:
    """Remove a user from a group."""
    group, user = world.dice.choice(GROUPS), world.user()
    return groups.member_remove(ctx, metalake=world.metalake(), group=group, user=user)


def role_create(world: StoryWorld, ctx: Context) -> Work:
    """Create a role with a rule."""
    return roles.role_create(
        ctx, metalake=world.metalake(), name=world.role(), properties={}, privilege_requests=(privilege_request(world),)
    )


def role_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a role."""
    return roles.role_drop(ctx, metalake=world.metalake(), name=world.role())


def role_give(world: StoryWorld, ctx: Context) -> Work:
    """Grant a role to a user or group, or revoke it."""
    kind, name = world.principal()
    return grants.roles_give(
        ctx,
        metalake=world.metalake(),
        kind=kind,
        name=name,
        roles=(world.role(),),
        gives=world.dice.random() < 0.7,
    )


def privilege_grant(world: StoryWorld, ctx: Context) -> Work:
    """Grant privileges on an object to a role, or revoke them."""
    return grants.privileges_grant(
        ctx,
        metalake=world.metalake(),
        role=world.role(),
        privilege_request=privilege_request(world),
        grants_them=world.dice.random() < 0.7,
    )


def rules_override(world: StoryWorld, ctx: Context) -> Work:
    """Replace all rules of a role."""
    return roles.rules_override(
        ctx, metalake=world.metalake(), role=world.role(), privilege_requests=(privilege_request(world),)
    )


def owner_set(world: StoryWorld, ctx: Context) -> Work:
    """Transfer an object, or a role, to another owner."""
    kind, full_name = world.securable()
    if world.dice.random() < 0.15:
        kind, full_name = Kind.ROLE, world.role()
    if kind is Kind.METALAKE:
        return owners.owner_load(ctx, metalake=world.metalake(), kind=kind, full_name=full_name)
    owner_kind, owner = world.principal()
    return owners.owner_set(
        ctx, metalake=world.metalake(), kind=kind, full_name=full_name, owner_kind=owner_kind, owner=owner
    )


def tag_make(world: StoryWorld, ctx: Context) -> Work:
    """Create a tag."""
    return metalake_objects.metalake_object_create(
        ctx, metalake=world.metalake(), kind=Kind.TAG, name=world.tag(), record=TagRecord(comment=None, properties={})
    )


def tag_rename(world: StoryWorld, ctx: Context) -> Work:
    """Rename a tag."""
    return metalake_objects.metalake_object_alter(
        ctx, metalake=world.metalake(), kind=Kind.TAG, name=world.tag(), edits=PropertyEdits(name=world.tag())
    )


def tag_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a tag."""
    return metalake_objects.metalake_object_drop(ctx, metalake=world.metalake(), kind=Kind.TAG, name=world.tag())


def tag_associate(world: StoryWorld, ctx: Context) -> Work:
    """Attach a tag to an object, or detach it."""
    kind, full_name = world.securable()
    names = (world.tag(),)
    adds, removes = (names, ()) if world.dice.random() < 0.7 else ((), names)
    return attachments.attachments_associate(
        ctx, AttachmentTarget(world.metalake(), kind, full_name), kind=Kind.TAG, adds=adds, removes=removes
    )


async def token_make(world: StoryWorld, ctx: Context) -> object:
    """Create a token for a user."""
    user = world.user()
    token, text = await tokens.token_create(ctx, user=user, name="n", expires_in_s=world.dice.choice((None, 9999)))
    world.secrets.append(
        (user, Credential(user=None, token_id=token.id, secret_hash=hash_secret(text.split("_", 2)[2])))
    )
    return token


def _text(world: StoryWorld) -> dict[str, object]:
    """Return the text of a view that reads some table."""
    _, table = world.table()
    sql = f"select * from {'.'.join(table)}"
    return {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": -1,
        "summary": {},
        "default-namespace": [],
        "representations": [{"type": "sql", "dialect": "spark", "sql": sql}],
    }


def view_create(world: StoryWorld, ctx: Context) -> Work:
    """Create a view of some table."""
    scope, levels = world.namespace()
    schema = new_table("t").schema
    assert isinstance(schema, dict)
    request = iceberg_views.ViewRequest(
        name=world.dice.choice(VIEWS), location=None, schema=schema, version=_text(world), properties=None
    )
    return iceberg_views.view_create(ctx, scope, namespace=levels, request=request)


def view_replace(world: StoryWorld, ctx: Context) -> Work:
    """Replace a view's text, or store the same text again as another writer."""
    scope, (*inside, name) = world.view()
    updates: list[object] = [
        {"action": "add-view-version", "view-version": {**_text(world), "schema-id": 0}},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    return iceberg_views.view_replace(
        ctx,
        scope,
        iceberg_views.ViewReplaceRequest(namespace=tuple(inside), name=name, requirements=[], updates=updates),
    )


def view_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a view."""
    scope, (*inside, name) = world.view()
    return views.view_drop(ctx, scope, namespace=tuple(inside), name=name)


def view_move(world: StoryWorld, ctx: Context) -> Work:
    """Rename or move a view."""
    scope, source = world.view()
    into = world.elsewhere(scope) if world.dice.random() < 0.5 else source[:-1]
    return views.view_move(ctx, scope, source=source, target=(*into, world.dice.choice(VIEWS)))


async def token_revoke(world: StoryWorld, ctx: Context) -> object:
    """Revoke a token."""
    if not world.secrets:
        return None
    return await tokens.token_revoke(ctx, token_id=world.dice.choice(world.secrets)[1].token_id)


def privilege_request(world: StoryWorld) -> PrivilegeRequest:
    """Return a request for a privilege on an object, allowed or denied."""
    kind, full_name = world.securable()
    condition = GrantCondition.ALLOW if world.dice.random() < 0.8 else GrantCondition.DENY
    return PrivilegeRequest(kind, full_name, ((world.dice.choice(_PRIVILEGES[kind]), condition),))


_MUTATIONS: dict[Callable[[StoryWorld, Context], Work], int] = {
    namespace_create: 8,
    namespace_drop: 5,
    namespace_move: 6,
    namespace_alter: 3,
    table_create: 10,
    table_drop: 5,
    table_move: 8,
    table_commit: 5,
    transaction: 8,
    undrop: 6,
    protect: 4,
    restrict: 4,
    view_create: 8,
    view_replace: 6,
    view_drop: 3,
    view_move: 4,
    catalog_add: 3,
    catalog_rename: 6,
    catalog_enable: 2,
    catalog_drop: 1,
    metalake_rename: 2,
    metalake_enable: 1,
    principal_add: 6,
    principal_remove: 2,
    user_enable: 3,
    member_add: 4,
    member_remove: 2,
    role_create: 5,
    role_drop: 2,
    role_give: 8,
    privilege_grant: 12,
    rules_override: 2,
    owner_set: 6,
    token_make: 1,
    token_revoke: 1,
    tag_make: 3,
    tag_rename: 1,
    tag_drop: 1,
    tag_associate: 5,
    **runs.MUTATIONS,
    **namespace_objects.MUTATIONS,
}
_FOCUS: dict[Callable[[StoryWorld, Context], Work], int] = {
    table_create: 8,
    table_drop: 3,
    table_move: 8,
    table_commit: 16,
    undrop: 3,
    transaction: 6,
    table_exchange: 6,
    table_rename_and_grant: 4,
    namespace_move: 3,
    catalog_rename: 5,
    privilege_grant: 10,
    role_give: 4,
    owner_set: 5,
    right_taken_and_given_back: 14,
    user_enable: 1,
    member_add: 1,
    role_create: 1,
    namespace_create: 1,
    principal_add: 1,
    token_make: 1,
}


_OF_LANCE: dict[Callable[[StoryWorld, Context], Work], int] = {
    lance_declare: 25,
    lance_drop: 10,
    lance_rename: 16,
    table_create: 4,
    view_create: 2,
}


def mending(world: StoryWorld, ctx: Context) -> Work | None:
    """Enable disabled objects, and create a missing catalog, because otherwise few other mutations would succeed."""
    metalake = world.metalake()
    live = "SELECT name, record FROM node WHERE kind = ? AND deleted = 0 ORDER BY name"
    if not all(MetalakeRecord.read(record).in_use for _, record in world.sql(live, int(Kind.METALAKE))):
        return metalakes.metalake_set(ctx, name=metalake, in_use=True)
    catalogs_in_use = {name: CatalogRecord.read(record).in_use for name, record in world.sql(live, int(Kind.CATALOG))}
    for name in world.catalogs:
        if name not in catalogs_in_use:
            return catalog_made(ctx, name, metalake=metalake)
        if not catalogs_in_use[name]:
            return catalogs.catalog_enable(ctx, metalake=metalake, name=name, in_use=True)
    return None


# ------------------------------------------------------------------------------------------------- questions


@dataclass(frozen=True)
class StoryQuestion:
    """A question to any node at any time: the caller, the subject, and the read."""

    who: Credential
    scope: RequestScope
    reader: Callable[[RequestView], object]
    text: str

    async def ask(self, ctx: Context) -> object:
        """Return the answer, or the refusal's message."""
        try:
            return await ctx.read(self.scope, self.reader)
        except REFUSALS as error:
            return type(error).__name__, str(error)


_WEIGHTS = [6, 8, 2, 3, 3, 3, 4, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 2, 3, 5, 2, 1, 2, 2, 2, 2, 2, 2, 1]
_FOCUSED_WEIGHTS = [8, 12, 4, 1, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]


def questions(world: StoryWorld) -> StoryQuestion:
    """Draw a question."""
    (scope, levels), (at, table), (view_scope, view) = world.namespace(), world.table(), world.view()
    lake = RequestScope(scope.metalake)
    user, role, name = world.user(), world.role(), pipeline(world)
    function_scope, path = world.function()
    action = world.dice.choice((Action.TABLE_LOAD, Action.TABLE_COMMIT, Action.TABLE_DROP))
    readers: list[tuple[str, RequestScope, Callable[[RequestView], object]]] = [
        (f"load {table}", at, lambda request_view: tables.table_load(request_view, table[:-1], table[-1])),
        (f"{action} {table}", at, lambda request_view: decisions(request_view, table, Kind.TABLE, action)),
        (f"own {table}", at, lambda request_view: decisions(request_view, table, Kind.TABLE, Action.OWNER_SET)),
        (f"load {levels}", scope, lambda request_view: namespaces.namespace_load(request_view, levels)),
        (
            f"alter {levels}",
            scope,
            lambda request_view: decisions(request_view, levels, Kind.NAMESPACE, Action.NAMESPACE_ALTER),
        ),
        (
            f"list in {levels}",
            scope,
            lambda request_view: names_on(namespaces.namespaces_list(request_view, levels[:-1])),
        ),
        (f"list tables in {levels}", scope, lambda request_view: names_on(tables.tables_list(request_view, levels))),
        ("catalogs", lake, lambda request_view: [node.name for node in catalogs.catalogs_list(request_view)]),
        ("users", lake, lambda request_view: users.holders_list(request_view, Kind.USER)),
        (f"user {user}", lake, lambda request_view: users.principal_load(request_view, Kind.USER, user)),
        ("members", lake, lambda request_view: groups.members_list(request_view, "g")),
        (f"role {role}", lake, lambda request_view: rules_of(request_view, role)),
        ("roles", lake, roles.roles_list),
        (f"tags of {table}", at, lambda request_view: tags_on(request_view, table)),
        ("tags", lake, lambda request_view: metalake_objects.metalake_objects_list(request_view, Kind.TAG)),
        ("tokens", RequestScope(), lambda request_view: tokens.tokens_list(request_view, request_view.user)),
        ("metalakes", RequestScope(), multi_catalog_reads.metalakes_list),
        (f"who {user}", lake, lambda request_view: request_view.subject_of(user)),
        (f"load {view}", view_scope, lambda request_view: views.view_load(request_view, view[:-1], view[-1])),
        (
            f"load {table} by {view}",
            view_scope,
            lambda request_view: tables.table_load(request_view, table[:-1], table[-1], (view,)),
        ),
        (f"list views in {levels}", scope, lambda request_view: names_on(views.views_list(request_view, levels))),
        *(
            (f"{what} pipeline {name}", lake, reader)
            for what, reader in zip(("list", "load", "run"), asked_of_pipelines(name), strict=True)
        ),
        *(
            (text, function_scope if "function" in text else at, reader)
            for text, reader in namespace_objects.list_object_questions(path, table)
        ),
        ("policies", lake, lambda request_view: metalake_objects.metalake_objects_list(request_view, Kind.POLICY)),
    ]
    if world.lance:
        readers += [
            (f"describe {table}", at, lambda request_view: described(request_view, table)),
            (
                f"list Lance tables in {levels}",
                scope,
                lambda request_view: names_on(lance_tables.tables_page(request_view, levels, page_request=ALL_NAMES)),
            ),
        ]
        text, where, reader = world.dice.choices(readers, [*_WEIGHTS, 20, 10])[0]
        return StoryQuestion(world.someone(), where, reader, text)
    text, where, reader = world.dice.choices(readers, _FOCUSED_WEIGHTS if world.focus else _WEIGHTS)[0]
    return StoryQuestion(world.someone(), where, reader, text)


def names_on(name_page: NamePage) -> list[str]:
    """Return the names of a listing that the caller sees."""
    return name_page.texts()


def rules_of(request_view: RequestView, name: str) -> object:
    """Return a role with its rules. Depending on their number the rules come with the role or are read separately."""
    role = roles.role_load(request_view, name).role
    return role, require_fact(request_view.view, rules_key(role.id), zone=request_view.metalake.id)


def described(request_view: RequestView, levels: Levels) -> object:
    """Return the store's description of a Lance table."""
    lance_table = lance_tables.lance_load(request_view, levels, action=Action.TABLE_LOAD)
    return lance_table.node, lance_table.record, lance_table.location


def tags_on(request_view: RequestView, levels: Levels) -> object:
    """Return the tags that a table has or inherits, for callers who may load it."""
    table_lookup = request_view.look_up(Kind.TABLE, levels, Action.TABLE_LOAD)
    return attachments.attachments_of(request_view, table_lookup.chain, kind=Kind.TAG)


def decisions(request_view: RequestView, levels: Levels, kind: Kind, action: Action) -> object:
    """Return the complete decision about an object, existing or not."""
    request_view.require_in_use()
    node, chain = request_view.find(levels, kind)
    return request_view.decide(action, chain if node is not None else (ChainLink.absent(kind, levels[-1]), *chain))


async def explained(world: StoryWorld, ctx: Context) -> object:
    """Request an explanation, the roles on an object, and its owner, in several request views."""
    kind, full_name = world.securable()
    metalake, (scope, table) = world.metalake(), world.table()
    await roles.roles_on_object(ctx, metalake=metalake, kind=kind, full_name=full_name)
    await owners.owner_load(ctx, metalake=metalake, kind=kind, full_name=full_name)
    return await explain.access_explain(
        ctx,
        metalake=metalake,
        user=world.user(),
        action=Action.TABLE_LOAD,
        kind=Kind.TABLE,
        path=(str(scope.catalog), *table),
    )
