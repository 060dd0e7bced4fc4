# SPDX-License-Identifier: Apache-2.0
"""Steps about metalakes and access: users, groups, roles, grants, owners; and every operation that a user without
rights is denied.

Run by an interpreter that has the client; imports nothing of Limnos.
"""

from __future__ import annotations

from call_record import CallRecord

from gravitino import GravitinoAdminClient, GravitinoClient, NameIdentifier
from gravitino.api.authorization import privileges
from gravitino.api.authorization.owner import Owner
from gravitino.api.authorization.privileges import UseCatalog, UseSchema
from gravitino.api.authorization.securable_objects import SecurableObjects
from gravitino.api.catalog import Catalog
from gravitino.api.catalog_change import CatalogChange
from gravitino.api.metadata_object import MetadataObject
from gravitino.api.metadata_objects import MetadataObjects
from gravitino.api.metalake_change import MetalakeChange
from gravitino.client.gravitino_client_config import GravitinoClientConfig
from gravitino.client.metadata_object_role_operations import MetadataObjectRoleOperations
from gravitino.namespace import Namespace

EVERYTHING = (
    "CreateCatalog",
    "UseCatalog",
    "CreateSchema",
    "UseSchema",
    "CreateTag",
    "ApplyTag",
    "ManageUsers",
    "ManageGroups",
    "CreateRole",
    "ManageGrants",
    "RegisterJobTemplate",
    "UseJobTemplate",
    "RunJob",
)
"""Privileges on the metalake for users with rights; objects in their own catalogs they own."""


def metalakes(record: CallRecord, admin: GravitinoAdminClient, *, name: str) -> None:
    """Create, load, alter, disable and drop metalakes; versions and settings of the client."""

    def see(step: str, call: object, wants: object = None) -> object:
        return record.see("admin", step, call, wants=wants)

    see("create_metalake", lambda: admin.create_metalake(name, "c", {"k": "v"}).name(), name)
    see("create_metalake again", lambda: admin.create_metalake(name, "c", {}), "MetalakeAlreadyExistsException")
    see("list_metalakes", lambda: name in [each.name() for each in admin.list_metalakes()], True)
    see("load_metalake", lambda: admin.load_metalake(name).comment(), "c")
    see("load_metalake missing", lambda: admin.load_metalake("none"), "ForbiddenException")
    see("alter_metalake", lambda: admin.alter_metalake(name, MetalakeChange.update_comment("d")).comment(), "d")
    see("enable_metalake", lambda: admin.enable_metalake(name))
    admin.create_metalake("grav_gone", "", {})
    see("drop_metalake in use", lambda: admin.drop_metalake("grav_gone"), "MetalakeInUseException")
    see("disable_metalake", lambda: admin.disable_metalake("grav_gone"))
    see("drop_metalake", lambda: admin.drop_metalake("grav_gone"), True)
    see("drop_metalake missing", lambda: admin.drop_metalake("grav_gone"), "ForbiddenException")
    see("check_version", admin.check_version)
    own, theirs = admin.get_client_version(), admin.get_server_version()
    see("compatible_with_server_version", lambda: own.compatible_with_server_version(theirs), True)
    config = GravitinoClientConfig.build_from_properties({"gravitino_client_request_timeout": 9})
    see("get_client_request_timeout", config.get_client_request_timeout, 9)


def people(record: CallRecord, lake: GravitinoClient) -> tuple[str, ...]:
    """Create users: one with rights, and one without. Returns all names."""

    def see(step: str, call: object, wants: object = None) -> object:
        return record.see("admin", step, call, wants=wants)

    names = ("worker", "outsider")
    see("get_metalake", lambda: lake.get_metalake().name(), "grav_conformance")
    see("check_metalake_name", lambda: lake.check_metalake_name("grav_conformance"))
    see("add_user", lambda: [lake.add_user(name).name() for name in names], list(names))
    return ("admin", *names)


def rights(admin: GravitinoClient, user: str) -> None:
    """Grant a user all privileges that the steps need, by one role."""
    granted = [getattr(privileges, name).allow() for name in EVERYTHING]
    whole = SecurableObjects.of_metalake(admin.get_metalake().name(), granted)
    admin.create_role("workers", {}, [whole])
    admin.grant_roles_to_user(["workers"], user)


def principals(record: CallRecord, lake: GravitinoClient, user: str) -> None:
    """Users and groups: add, load, list, remove."""
    one, crew = f"u_{user}", f"g_{user}"

    def see(step: str, call: object, wants: object = None) -> object:
        return record.see(user, step, call, wants=wants)

    see("add_user", lambda: lake.add_user(one).name(), one)
    see("add_user again", lambda: lake.add_user(one), "UserAlreadyExistsException")
    see("get_user", lambda: lake.get_user(one).roles(), [])
    see("get_user missing", lambda: lake.get_user("none"), "NoSuchUserException")
    see("list_users", lambda: one in [each.name() for each in lake.list_users()], True)
    see("list_user_names", lambda: one in lake.list_user_names(), True)
    see("add_group", lambda: lake.add_group(crew).name(), crew)
    see("get_group", lambda: lake.get_group(crew).roles(), [])
    see("list_groups", lambda: crew in [each.name() for each in lake.list_groups()], True)
    see("list_group_names", lambda: crew in lake.list_group_names(), True)
    roles(record, lake, user, one=one, crew=crew)
    see("remove_group", lambda: [lake.remove_group(crew) for _ in range(2)], [True, False])
    see("remove_user", lambda: [lake.remove_user(one) for _ in range(2)], [True, False])


def roles(record: CallRecord, lake: GravitinoClient, user: str, *, one: str, crew: str) -> None:
    """Roles, their privileges and holders; owners."""
    name, tables = f"r_{user}", f"tables_{user}"
    catalog = SecurableObjects.of_catalog(tables, [UseCatalog.allow()])
    schema = SecurableObjects.of_schema(catalog, "a", [UseSchema.allow()])

    def see(step: str, call: object, wants: object = None) -> object:
        return record.see(user, step, call, wants=wants)

    see("create_role", lambda: lake.create_role(name, {"k": "v"}, [catalog]).name(), name)
    see("create_role again", lambda: lake.create_role(name, {}, []), "RoleAlreadyExistsException")
    see("get_role", lambda: lake.get_role(name).properties(), {"k": "v"})
    see("list_role_names", lambda: name in lake.list_role_names(), True)
    see("grant_roles_to_user", lambda: lake.grant_roles_to_user([name], one).roles(), [name])
    see("revoke_roles_from_user", lambda: lake.revoke_roles_from_user([name], one).roles(), [])
    see("grant_roles_to_group", lambda: lake.grant_roles_to_group([name], crew).roles(), [name])
    see("revoke_roles_from_group", lambda: lake.revoke_roles_from_group([name], crew).roles(), [])
    see("grant_roles_to_user unknown", lambda: lake.grant_roles_to_user(["none"], one), "IllegalRoleException")
    grant, revoke = lake.grant_privileges_to_role, lake.revoke_privileges_from_role
    see("grant_privileges_to_role", lambda: len(grant(name, schema, schema.privileges()).securable_objects()), 2)
    on = MetadataObjectRoleOperations(lake.get_metalake().name(), schema, lake._rest_client)
    see("list_binding_role_names", on.list_binding_role_names, [name])
    see("revoke_privileges_from_role", lambda: len(revoke(name, schema, schema.privileges()).securable_objects()), 1)
    owned = MetadataObjects.of("a", MetadataObject.Type.SCHEMA, tables)
    see("get_owner", lambda: lake.get_owner(owned).name(), user)
    see("set_owner", lambda: lake.set_owner(owned, one, Owner.Type.USER))
    see("get_owner of the new one", lambda: lake.get_owner(owned).name(), one)
    lake.set_owner(owned, user, Owner.Type.USER)
    see("delete_role", lambda: lake.delete_role(name), True)
    see("delete_role missing", lambda: lake.delete_role(name), False if user == "admin" else "ForbiddenException")
    see("get_role missing", lambda: lake.get_role(name), "NoSuchRoleException")


def refusals(record: CallRecord, outsider: GravitinoClient, worker: GravitinoClient) -> None:
    """Every operation that a user without rights is denied, and lists that are empty for this user."""

    def see(step: str, call: object, wants: object = "ForbiddenException") -> None:
        record.see("outsider", step, call, wants=wants)

    for listed in (
        "list_catalogs",
        "list_tags",
        "list_role_names",
        "list_group_names",
        "list_jobs",
    ):
        see(listed, getattr(outsider, listed), [])
    templates = {each.name.partition("-")[0] for each in outsider.list_job_templates()}
    see("list_job_templates", lambda: templates, {"builtin"})
    see("list_user_names", outsider.list_user_names, ["outsider"])
    see("load_catalog", lambda: outsider.load_catalog("tables_worker"))
    see("create_catalog", lambda: outsider.create_catalog("x", Catalog.Type.MODEL, None, "", {}))
    see("alter_catalog", lambda: outsider.alter_catalog("tables_worker", CatalogChange.rename("x")))
    see("drop_catalog", lambda: outsider.drop_catalog("tables_worker"))
    see("disable_catalog", lambda: outsider.disable_catalog("tables_worker"))
    see("create_tag", lambda: outsider.create_tag("x", "", {}))
    see("get_tag", lambda: outsider.get_tag("none"))
    see("create_role", lambda: outsider.create_role("x", {}, []), "ForbiddenException")
    see("get_owner", lambda: outsider.get_owner(MetadataObjects.of("tables_worker", MetadataObject.Type.CATALOG)))
    _below(record, outsider, worker)


def _below(record: CallRecord, outsider: GravitinoClient, worker: GravitinoClient) -> None:
    """The same for objects in catalogs: the catalog objects are those of the user with rights, with the other user's
    credential.
    """

    def see(step: str, call: object) -> None:
        record.see("outsider", step, call, wants="ForbiddenException")

    def of(catalog: str) -> Catalog:
        worker_catalog = worker.load_catalog(f"{catalog}_worker")
        worker_catalog.rest_client = outsider._rest_client
        return worker_catalog

    tables, models, files = of("tables"), of("models"), of("files")
    space, name = Namespace.of("a"), NameIdentifier.of("a", "kept")
    see("load_schema", lambda: tables.as_schemas().load_schema("a"))
    see("create_schema", lambda: tables.as_schemas().create_schema("x", "", {}))
    see("drop_schema", lambda: tables.as_schemas().drop_schema("a", False))
    see("list_schemas", lambda: tables.as_schemas().list_schemas())
    see("list_tables", lambda: tables.as_table_catalog().list_tables(space))
    see("load_table", lambda: tables.as_table_catalog().load_table(name))
    see("drop_table", lambda: tables.as_table_catalog().drop_table(name))
    see("load_view", lambda: tables.as_view_catalog().load_view(name))
    see("list_views", lambda: tables.as_view_catalog().list_views(space))
    see("list_models", lambda: models.as_model_catalog().list_models(space))
    see("get_model", lambda: models.as_model_catalog().get_model(name))
    see("delete_model", lambda: models.as_model_catalog().delete_model(name))
    see("list_filesets", lambda: files.as_fileset_catalog().list_filesets(space))
    see("load_fileset", lambda: files.as_fileset_catalog().load_fileset(name))
    see("get_file_location", lambda: files.as_fileset_catalog().get_file_location(name, "x"))
