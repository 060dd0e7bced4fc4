# SPDX-License-Identifier: Apache-2.0
"""Steps of the official Gravitino Python client against a server; run by an interpreter that has the client.

Usage: gravitino_script.py URI WAREHOUSE. Prints one JSON object: the result of each step, or its exception. Imports
nothing of Limnos, because the released client pins its own libraries.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from urllib.request import Request, urlopen

from gravitino import GravitinoAdminClient, GravitinoClient, GravitinoMetalake, NameIdentifier
from gravitino.api.authorization.owner import Owner
from gravitino.api.authorization.privileges import CreateSchema, UseCatalog, UseSchema
from gravitino.api.authorization.securable_objects import SecurableObjects
from gravitino.api.catalog import Catalog
from gravitino.api.catalog_change import CatalogChange
from gravitino.api.file.fileset import Fileset
from gravitino.api.file.fileset_change import FilesetChange
from gravitino.api.job.job_template_change import JobTemplateChange
from gravitino.api.metadata_object import MetadataObject
from gravitino.api.metadata_objects import MetadataObjects
from gravitino.api.metalake_change import MetalakeChange
from gravitino.api.model_change import ModelChange
from gravitino.api.model_version_change import ModelVersionChange
from gravitino.api.rel.column import Column
from gravitino.api.rel.expressions.transforms.transforms import Transforms
from gravitino.api.rel.table_change import TableChange
from gravitino.api.rel.types.types import Types
from gravitino.api.schema_change import SchemaChange
from gravitino.api.tag.tag_change import TagChange
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from gravitino.client.metadata_object_role_operations import MetadataObjectRoleOperations
from gravitino.client.metadata_object_tag_operations import MetadataObjectTagOperations
from gravitino.namespace import Namespace

URI, WAREHOUSE = sys.argv[1:]
LAKE = "grav_py"
seen: dict[str, object] = {}


def see(step: str, call: Callable[[], object]) -> object:
    """Run a step and store its result: a value, or the exception's class and message."""
    try:
        value = call()
    except Exception as error:
        seen[step] = f"{type(error).__name__}: {error}"
        return None
    seen[step] = value if isinstance(value, (str, bool, list, dict, type(None))) else type(value).__name__
    return value


def client(user: str, lake: str = LAKE) -> GravitinoClient:
    """Return a client of one user; the Basic password is ignored."""
    return GravitinoClient(uri=URI, metalake_name=lake, auth_data_provider=BasicAuthProvider(user, "x"))


def metalakes(admin: GravitinoAdminClient) -> None:
    """Create, load, alter, disable and drop metalakes."""
    see("metalake-create", lambda: admin.create_metalake(LAKE, "c", {"k": "v"}))
    see("metalake-again", lambda: admin.create_metalake(LAKE, "c", {}))
    see("metalakes", lambda: sorted(lake.name() for lake in admin.list_metalakes()))
    changes = (MetalakeChange.update_comment("new"), MetalakeChange.set_property("a", "b"))
    altered = see("metalake-alter", lambda: admin.alter_metalake(LAKE, *changes))
    seen["metalake-altered"] = [altered.comment(), altered.properties(), altered.audit_info().creator()]
    admin.create_metalake("grav_gone", "", {})
    see("metalake-drop-in-use", lambda: admin.drop_metalake("grav_gone"))
    admin.disable_metalake("grav_gone")
    see("metalake-drop", lambda: admin.drop_metalake("grav_gone"))
    see("metalake-missing", lambda: GravitinoClient(URI, "grav_gone", auth_data_provider=BasicAuthProvider("ana", "x")))


def catalogs(lake: GravitinoClient) -> None:
    """Create, list, load, alter, test, disable and drop catalogs."""
    properties = {"catalog-backend": "jdbc", "warehouse": WAREHOUSE}

    def create(name: str) -> Catalog:
        return lake.create_catalog(name, Catalog.Type.RELATIONAL, "lakehouse-iceberg", "c", properties)

    catalog = see("catalog-create", lambda: create("main"))
    seen["catalog"] = [
        catalog.name(),
        catalog.type().name,
        catalog.provider(),
        catalog.comment(),
        catalog.properties()["catalog-backend"],
    ]
    see("catalog-again", lambda: create("main"))
    see("catalog-bad", lambda: create("a.b"))
    create("other")
    see("catalogs", lake.list_catalogs)
    see("catalogs-info", lambda: [each.provider() for each in lake.list_catalogs_info()])
    see("catalog-alter", lambda: lake.alter_catalog("other", CatalogChange.rename("third")).name())
    see("catalog-test", lambda: lake.test_connection("main"))
    bad = CatalogChange.set_property("warehouse", "what://x")
    see("catalog-test-bad", lambda: lake.test_connection("main", bad))
    see("catalog-drop-in-use", lambda: lake.drop_catalog("third"))
    lake.disable_catalog("third")
    see("catalog-drop", lambda: [lake.drop_catalog("third"), lake.drop_catalog("third")])
    see("catalog-missing", lambda: lake.load_catalog("third"))


def schemas(lake: GravitinoClient) -> None:
    """Create nested schemas in one call; list by parent; alter, drop."""
    main = lake.load_catalog("main").as_schemas()
    schema = see("schema-create", lambda: main.create_schema("A:B:C", "deep", {"k": "v"}))
    seen["schema"] = [schema.name(), schema.comment(), schema.properties()]
    see("schemas", lambda: [main.list_schemas(), main.list_schemas("A"), main.list_schemas(parent_schema="A:B")])
    see("schema-again", lambda: main.create_schema("A:B:C", "", {}))
    see("schema-empty-segment", lambda: main.create_schema("A::B", "", {}))
    see("schema-missing-parent", lambda: main.list_schemas("Z"))
    see("schema-exists", lambda: [main.schema_exists(name) for name in ("A:B", "Z")])
    see("schema-alter", lambda: main.alter_schema("A:B", SchemaChange.set_property("p", "1")).properties())
    see("schema-drop-parent", lambda: main.drop_schema("A", False))
    see("schema-drop-cascade", lambda: main.drop_schema("A", True))
    see("schema-drop", lambda: [main.drop_schema("A:B:C", False), main.drop_schema("A:B:C", False)])
    main.create_schema("A:B:C", "", {})


def people(lake: GravitinoClient) -> None:
    """Users, groups, and errors with percent signs."""
    see("user-add", lambda: lake.add_user("ana").name())
    see("user-again", lambda: lake.add_user("ana"))
    see("user-percent", lambda: [lake.add_user("50%").name(), lake.get_user("50%").name(), lake.remove_user("50%")])
    see("user-percent-missing", lambda: lake.get_user("50%"))
    see("users", lambda: [lake.list_user_names(), [user.name() for user in lake.list_users()]])
    see("group-add", lambda: lake.add_group("staff").name())
    see("groups", lambda: [lake.list_group_names(), [group.roles() for group in lake.list_groups()]])
    see("group-missing", lambda: lake.get_group("none"))
    see("removals", lambda: [lake.remove_user("none"), lake.remove_group("none")])


def grants(lake: GravitinoClient) -> None:
    """Roles and their privileges, with refused and allowed calls."""
    catalog = SecurableObjects.of_catalog("main", [UseCatalog.allow()])
    schema = SecurableObjects.of_schema(catalog, "A:B", [UseSchema.allow(), CreateSchema.allow()])
    see("role-create", lambda: lake.create_role("r", {"k": "v"}, [catalog]).name())
    see("role-again", lambda: lake.create_role("r", {}, []))
    see("role-illegal", lambda: lake.create_role("q", {}, [SecurableObjects.of_catalog("none", [UseCatalog.allow()])]))
    see("stranger", lambda: client("zoe"))
    ana = client("ana")
    see("refused-catalog", lambda: ana.load_catalog("main"))
    see("grant-role", lambda: lake.grant_roles_to_user(["r"], "ana").roles())
    see("allowed-catalog", lambda: ana.load_catalog("main").name())
    main = ana.load_catalog("main").as_schemas()
    see("refused-create", lambda: main.create_schema("A:B:D", "", {}))
    granted = see("grant-privileges", lambda: lake.grant_privileges_to_role("r", schema, schema.privileges()))
    seen["granted"] = sorted(
        [each.full_name(), each.type().name, sorted(p.name().name for p in each.privileges())]
        for each in granted.securable_objects()
    )
    see("allowed-create", lambda: main.create_schema("A:B:D", "", {}).name())
    see("filtered", lambda: [main.list_schemas(), main.list_schemas("A:B")])
    see("object-roles", lambda: MetadataObjectRoleOperations(LAKE, schema, lake._rest_client).list_binding_role_names())
    see(
        "revoke-privileges",
        lambda: len(lake.revoke_privileges_from_role("r", schema, schema.privileges()).securable_objects()) == 1,
    )
    see("refused-again", lambda: main.create_schema("A:B:E", "", {}))
    tags(lake, schema)
    jobs(lake.get_metalake())
    maintenance(lake.get_metalake())
    see("grant-unknown-role", lambda: lake.grant_roles_to_user(["none"], "ana"))
    see("grant-group", lambda: lake.grant_roles_to_group(["r"], "staff").roles())
    see("revoke-group", lambda: lake.revoke_roles_from_group(["r"], "staff").roles())
    owners(lake, ana)
    see("revoke-role", lambda: lake.revoke_roles_from_user(["r"], "ana").roles())
    see("refused-catalog-again", lambda: ana.load_catalog("main"))
    see("roles", lake.list_role_names)
    see("role-delete", lambda: [lake.delete_role("r"), lake.delete_role("r")])
    see("role-missing", lambda: lake.get_role("r"))


def tags(lake: GravitinoClient, schema: MetadataObject) -> None:
    """Tags, their objects, and inherited tags."""
    on = MetadataObjectTagOperations(LAKE, schema, lake._rest_client)
    above = MetadataObjectTagOperations(LAKE, SecurableObjects.of_catalog("main", []), lake._rest_client)
    see("tag-create", lambda: [lake.create_tag(name, "c", {"k": "v"}).name() for name in ("red", "blue")])
    see("tag-again", lambda: lake.create_tag("red", "c", {}))
    see(
        "tag-alter",
        lambda: lake.alter_tag("red", TagChange.rename("rot"), TagChange.set_property("k", "w")).properties(),
    )
    see("tag-associate", lambda: [above.associate_tags(["rot"], []), on.associate_tags(["blue"], ["rot"])])
    see("tag-twice", lambda: on.associate_tags(["blue"], []))
    see("tags-on", lambda: [on.list_tags(), [[tag.name(), tag.inherited()] for tag in on.list_tags_info()]])
    see("tag-on", lambda: on.get_tag("rot").comment())
    see("tag-objects", lambda: [each.full_name() for each in lake.get_tag("blue").associated_objects().objects()])
    see("tags", lambda: [lake.list_tags(), [tag.name() for tag in lake.list_tags_info()]])
    see("tag-delete", lambda: [lake.delete_tag("blue"), lake.delete_tag("blue"), on.list_tags()])
    see("tag-missing", lambda: lake.get_tag("blue"))


def own(method: str, path: str, body: object) -> None:
    """Send a request to the admin API, which declares and runs pipelines."""
    sent = Request(f"{URI}/api/limnos/v1/metalakes/{LAKE}/{path}", json.dumps(body).encode(), method=method)
    sent.add_header("Authorization", "Basic YWRtaW46eA==")
    sent.add_header("Content-Type", "application/json")
    with urlopen(sent, timeout=30) as answer:
        answer.read()


def jobs(lake: GravitinoMetalake) -> None:
    """Job templates and jobs, which are pipelines and their runs."""
    runs = [f"01234567-0123-4567-89ab-00000000000{number}" for number in (1, 2)]
    for name, run in zip(("nyc", "idle"), runs, strict=True):
        own("PUT", f"pipelines/{name}", {"declaration": {"steps": []}, "comment": "c"})
        own("POST", f"pipelines/{name}/runs", {"id": run, "holder": "h:1", "lease_s": 600})
    own("POST", f"runs/{runs[1]}/finish", {"attempt": 1, "state": "failed"})
    see("templates", lambda: sorted(each.name for each in lake.list_job_templates()))
    see(
        "template",
        lambda: [lake.get_job_template("nyc").comment, lake.get_job_template("nyc").custom_fields["limnos.version"]],
    )
    see("template-missing", lambda: lake.get_job_template("none"))
    see("template-busy", lambda: lake.delete_job_template("nyc"))
    see("template-alter", lambda: lake.alter_job_template("idle", JobTemplateChange.rename("rest")).name)
    see(
        "jobs",
        lambda: sorted([each.job_id(), each.job_template_name(), each.job_status().value] for each in lake.list_jobs()),
    )
    see("jobs-of", lambda: [each.job_id() for each in lake.list_jobs("nyc")])
    see("job", lambda: lake.get_job(runs[0]).job_status().value)
    see("job-missing", lambda: lake.get_job("none"))
    see("job-run", lambda: lake.run_job("nyc", {}))
    see("job-cancel", lambda: [lake.cancel_job(run).job_status().value for run in runs])
    see("template-delete", lambda: [lake.delete_job_template(name) for name in ("rest", "rest")])


def maintenance(lake: GravitinoMetalake) -> None:
    """Built-in templates: a job that the server finishes itself, one that waits for an executor, and invalid ones."""
    table = {"name": "kept", "schema": {"type": "struct", "fields": []}}
    iceberg("namespaces", {"namespace": ["jobs"]})
    iceberg("namespaces/jobs/tables", table)
    policy = {"name": "whole", "policyType": "system_iceberg_table_maintenance", "enabled": True, "content": {}}
    gravitino("POST", "policies", policy)
    gravitino("POST", "objects/catalog/main/policies", {"policiesToAdd": ["whole"], "policiesToRemove": []})
    see("policy-inherited", lambda: inherited("objects/table/main.jobs.kept/policies/whole"))
    conf = {"catalog_name": "main", "table_identifier": "jobs.kept"}
    see("builtin-template", lambda: lake.get_job_template("builtin-iceberg-rewrite-data-files").job_type().value)
    expiry = lake.run_job("builtin-iceberg-expire-snapshots", conf)
    see("builtin-ended", lambda: ended(lake, expiry.job_id()))
    rewrite = lake.run_job("builtin-iceberg-rewrite-data-files", conf)
    see("builtin-queued", lambda: [rewrite.job_status().value, lake.cancel_job(rewrite.job_id()).job_status().value])
    see(
        "builtin-jobs",
        lambda: [each.job_id() for each in lake.list_jobs("builtin-iceberg-rewrite-data-files")] == [rewrite.job_id()],
    )
    see("builtin-bad", lambda: lake.run_job("builtin-iceberg-rewrite-data-files", {**conf, "where_clause": "x > 1"}))


def iceberg(path: str, body: object) -> None:
    """Send a request over Iceberg REST."""
    send("POST", f"{URI}/iceberg/v1/{LAKE}.main/{path}", body)


def gravitino(method: str, path: str, body: object = None) -> dict:
    """Send a Gravitino request that the client has no method for."""
    return send(method, f"{URI}/api/metalakes/{LAKE}/{path}", body)


def inherited(path: str) -> object:
    """Return whether an object inherits a policy."""
    return gravitino("GET", path)["policy"]["inherited"]


def send(method: str, url: str, body: object) -> dict:
    """Send a request as the administrator. Returns the answer."""
    sent = Request(url, None if body is None else json.dumps(body).encode(), method=method)
    sent.add_header("Authorization", "Basic YWRtaW46eA==")
    sent.add_header("Content-Type", "application/json")
    with urlopen(sent, timeout=30) as answer:
        return json.loads(answer.read() or b"{}")


def ended(lake: GravitinoMetalake, job: str) -> str:
    """Wait until a job has ended. Returns its status."""
    for _ in range(300):
        status = lake.get_job(job).job_status().value
        if status not in ("queued", "started"):
            break
        time.sleep(0.2)
    return status


def owners(lake: GravitinoClient, ana: GravitinoClient) -> None:
    """Load owners of created objects, and change one of them."""
    names = {name: MetadataObjects.of(name, MetadataObject.Type.SCHEMA, "main") for name in ("A", "A:B", "A:B:D", "Z")}
    see("owners", lambda: [lake.get_owner(names[name]).name() for name in ("A", "A:B", "A:B:D")])
    see("refused-drop", lambda: ana.load_catalog("main").as_schemas().drop_schema("A:B:C", False))
    see("owner-set", lambda: lake.set_owner(names["A"], "ana", Owner.Type.USER))
    see("owner", lambda: [lake.get_owner(names["A"]).name(), lake.get_owner(names["A"]).type().name])
    see("allowed-drop", lambda: ana.load_catalog("main").as_schemas().drop_schema("A:B:C", False))
    see("owner-missing", lambda: lake.get_owner(names["Z"]))
    see("owner-group", lambda: lake.set_owner(names["A"], "staff", Owner.Type.GROUP))


def tables() -> None:
    """List and load tables that the test created, in the metalake `lake`: a Lance table in a schema, one directly in
    its catalog, and an Iceberg table.
    """
    lake = client("admin", "lake")

    def describe_table(catalog: str, schema: str, name: str) -> object:
        table = lake.load_catalog(catalog).as_table_catalog().load_table(NameIdentifier.of(schema, name))
        columns = [[column.name(), column.data_type().simple_string(), column.nullable()] for column in table.columns()]
        return [table.name(), columns, table.properties().get("format"), len(table.partitioning())]

    def listed(catalog: str, schema: str) -> object:
        return [each.name() for each in lake.load_catalog(catalog).as_table_catalog().list_tables(Namespace.of(schema))]

    see("lance-tables", lambda: listed("lance", "grav:text"))
    see("lance-table", lambda: describe_table("lance", "grav:text", "docs"))
    see("root-tables", lambda: "grav_top" in listed("lance", "default"))
    see("root-table", lambda: describe_table("lance", "default", "grav_top"))
    see("iceberg-table", lambda: describe_table("main", "grav", "t"))
    see("table-missing", lambda: describe_table("lance", "grav:text", "none"))


def models(lake: GravitinoClient) -> None:
    """Models with versions, by number and by alias."""
    catalog = lake.create_catalog("models", Catalog.Type.MODEL, None, "c", {})
    catalog.as_schemas().create_schema("ml", "", {})
    on, name = catalog.as_model_catalog(), NameIdentifier.of("ml", "churn")
    see("model-register", lambda: on.register_model(name, "c", {"k": "v"}).comment())
    see("model-link", lambda: on.link_model_version(name, "s3://x/0", ["first"], "v", {}))
    two = {"s3": "s3://x/1", "gcs": "gs://x/1"}
    see("model-link-two", lambda: on.link_model_version_with_multiple_uris(name, two, ["best"], "v", {}))
    see(
        "models",
        lambda: [[each.name() for each in on.list_models(Namespace.of("ml"))], on.get_model(name).latest_version()],
    )
    see(
        "versions",
        lambda: [on.list_model_versions(name), [each.aliases() for each in on.list_model_version_infos(name)]],
    )
    see(
        "version", lambda: [on.get_model_version(name, 0).uris(), on.get_model_version_by_alias(name, "best").version()]
    )
    see(
        "version-uri",
        lambda: [on.get_model_version_uri(name, 0), on.get_model_version_uri_by_alias(name, "best", "gcs")],
    )
    see("version-alter", lambda: on.alter_model_version(name, 0, ModelVersionChange.update_comment("new")).comment())
    see(
        "alias-alter",
        lambda: on.alter_model_version_by_alias(name, "best", ModelVersionChange.remove_uri("gcs")).uris(),
    )
    see("alias-taken", lambda: on.link_model_version(name, "s3://x/2", ["best"], "", {}))
    see("version-missing", lambda: on.get_model_version(name, 9))
    see("uri-missing", lambda: on.get_model_version_uri(name, 0, "none"))
    see("version-delete", lambda: [on.delete_model_version(name, 0), on.delete_model_version_by_alias(name, "none")])
    see("model-alter", lambda: on.alter_model(name, ModelChange.rename("loss")).name())
    see("model-missing", lambda: on.get_model(name))
    see("model-delete", lambda: [on.delete_model(NameIdentifier.of("ml", "loss")), on.delete_model(name)])


def filesets(lake: GravitinoClient) -> None:
    """Filesets with one location, and the location of a file."""
    catalog = lake.create_catalog("files", Catalog.Type.FILESET, None, "c", {})
    catalog.as_schemas().create_schema("raw", "", {})
    on, name = catalog.as_fileset_catalog(), NameIdentifier.of("raw", "f")
    fileset = see("fileset-create", lambda: on.create_fileset(name, "c", Fileset.Type.MANAGED, None, {"k": "v"}))
    seen["fileset"] = [fileset.name(), fileset.type().value, list(fileset.storage_locations())]
    see("filesets", lambda: [each.name() for each in on.list_filesets(Namespace.of("raw"))])
    see("fileset-load", lambda: on.load_fileset(name).comment())
    see("file-location", lambda: on.get_file_location(name, "a/b").endswith("/a/b"))
    see("fileset-alter", lambda: on.alter_fileset(name, FilesetChange.set_property("p", "1")).properties()["p"])
    see("fileset-missing", lambda: on.load_fileset(NameIdentifier.of("raw", "none")))
    see("fileset-drop", lambda: [on.drop_fileset(name), on.drop_fileset(name)])


def changed_tables(lake: GravitinoClient) -> None:
    """Tables that are created, altered, renamed and dropped."""
    on, name = lake.load_catalog("main").as_table_catalog(), NameIdentifier.of("A:B", "t")
    columns = [Column.of("id", Types.LongType.get(), "key", False), Column.of("n", Types.VarCharType.of(20), None)]
    see(
        "table-create",
        lambda: on.create_table(name, columns, "c", {"k": "v"}, [Transforms.bucket(4, ["id"])]).comment(),
    )
    changes = (
        TableChange.add_column(["x"], Types.ShortType.get(), "new", TableChange.ColumnPosition.first()),
        TableChange.rename_column(["n"], "m"),
        TableChange.update_column_comment(["id"], "changed"),
        TableChange.set_property("p", "1"),
    )
    altered = see("table-alter", lambda: on.alter_table(name, *changes))
    seen["table-altered"] = [[each.name(), each.data_type().simple_string()] for each in altered.columns()]
    see("tables", lambda: [each.name() for each in on.list_tables(Namespace.of("A:B"))])
    see("table-again", lambda: on.create_table(name, columns, "c", {}))
    see("table-rename", lambda: on.alter_table(name, TableChange.rename("u")).name())
    see("table-drop", lambda: [on.drop_table(NameIdentifier.of("A:B", "u")), on.purge_table(name)])


def main() -> None:
    """Run all steps in order, then print the results."""
    admin = GravitinoAdminClient(uri=URI, auth_data_provider=BasicAuthProvider("admin", "x"))
    metalakes(admin)
    lake = client("admin")
    seen["metalake"] = [lake.get_metalake().name(), isinstance(lake.get_metalake(), GravitinoMetalake)]
    catalogs(lake)
    schemas(lake)
    people(lake)
    changed_tables(lake)
    models(lake)
    filesets(lake)
    grants(lake)
    tables()
    admin.drop_metalake(LAKE, force=True)
    sys.stdout.write(json.dumps(seen))


main()
