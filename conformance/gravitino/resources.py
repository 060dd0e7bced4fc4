# SPDX-License-Identifier: Apache-2.0
"""Steps about objects of a metalake: catalogs, schemas, tables, views, functions, models, filesets, tags, statistics,
jobs; by one user, with unique names.

Run by an interpreter that has the client; imports nothing of Limnos.
"""

from __future__ import annotations

import json
import sys
import time
from base64 import b64encode
from urllib.request import Request, urlopen

from access_steps import principals
from call_record import CallRecord

from gravitino import GravitinoClient, NameIdentifier
from gravitino.api.catalog import Catalog
from gravitino.api.catalog_change import CatalogChange
from gravitino.api.file.fileset import Fileset
from gravitino.api.file.fileset_change import FilesetChange
from gravitino.api.function.function_change import FunctionChange
from gravitino.api.function.function_definition import FunctionDefinitions
from gravitino.api.function.function_impl import FunctionImpl
from gravitino.api.function.function_param import FunctionParams
from gravitino.api.function.function_type import FunctionType
from gravitino.api.function.sql_impl import SQLImpl
from gravitino.api.job.job_template_change import JobTemplateChange, ShellTemplateUpdate, SparkTemplateUpdate
from gravitino.api.job.shell_job_template import ShellJobTemplate
from gravitino.api.job.spark_job_template import SparkJobTemplate
from gravitino.api.metadata_object import MetadataObject
from gravitino.api.metadata_objects import MetadataObjects
from gravitino.api.model_change import ModelChange
from gravitino.api.model_version_change import ModelVersionChange
from gravitino.api.rel.column import Column
from gravitino.api.rel.expressions.transforms.transforms import Transforms
from gravitino.api.rel.sql_representation import SQLRepresentation
from gravitino.api.rel.table_change import TableChange
from gravitino.api.rel.types.types import Types
from gravitino.api.rel.view_change import ViewChange
from gravitino.api.schema_change import SchemaChange
from gravitino.api.stats.statistic_values import StatisticValues
from gravitino.api.tag.tag_change import TagChange
from gravitino.client.metadata_object_credential_operations import MetadataObjectCredentialOperations
from gravitino.dto.credential_dto import CredentialDTO
from gravitino.namespace import Namespace

URI = sys.argv[1]
SPACE, KEPT = Namespace.of("a"), NameIdentifier.of("a", "kept")
COLUMNS = [Column.of("id", Types.LongType.get(), "key", False), Column.of("n", Types.VarCharType.of(20), None)]


class Steps:
    """One user's steps with a metalake."""

    def __init__(self, record: CallRecord, lake: GravitinoClient, user: str) -> None:
        self.record, self.lake, self.user = record, lake, user

    def see(self, step: str, call: object, wants: object = None) -> object:
        """Run a step."""
        return self.record.see(self.user, step, call, wants=wants)

    def told(self, thing: object, *names: str) -> None:
        """Call all given getters of an object: each returns a value, and its audit names the user."""
        for name in names:
            self.see(f"{type(thing).__name__}.{name}", getattr(thing, name))
        self.see(f"{type(thing).__name__}.audit_info", lambda: thing.audit_info().creator(), self.user)


def everything(record: CallRecord, lake: GravitinoClient, user: str) -> None:
    """Run all steps as one user."""
    steps = Steps(record, lake, user)
    for part in (
        catalogs,
        schemas,
        tables,
        partitions,
        statistics,
        views,
        functions,
        models,
        versions,
        filesets,
        tags,
        jobs,
    ):
        part(steps)
    principals(record, lake, user)


def catalogs(steps: Steps) -> None:
    """Create one catalog of each type; list, alter, test, disable, drop."""
    lake, see = steps.lake, steps.see
    for name, kind, provider in (
        ("tables", Catalog.Type.RELATIONAL, "lakehouse-iceberg"),
        ("models", Catalog.Type.MODEL, None),
        ("files", Catalog.Type.FILESET, None),
        ("gone", Catalog.Type.MODEL, None),
    ):
        own = f"{name}_{steps.user}"
        see(
            f"create_catalog {name}",
            lambda own=own, kind=kind, provider=provider: lake.create_catalog(own, kind, provider, "c", {}).name(),
            own,
        )
    dropped_catalog, tables_ = f"gone_{steps.user}", f"tables_{steps.user}"
    see("list_catalogs", lambda: {dropped_catalog, tables_} <= set(lake.list_catalogs()), True)
    see("list_catalogs_info", lambda: tables_ in [each.name() for each in lake.list_catalogs_info()], True)
    see("alter_catalog", lambda: lake.alter_catalog(dropped_catalog, CatalogChange.update_comment("d")).comment(), "d")
    see("test_connection", lambda: lake.test_connection(tables_))
    see("enable_catalog", lambda: lake.enable_catalog(dropped_catalog))
    see("drop_catalog in use", lambda: lake.drop_catalog(dropped_catalog), "CatalogInUseException")
    see("disable_catalog", lambda: lake.disable_catalog(dropped_catalog))
    see("drop_catalog", lambda: [lake.drop_catalog(dropped_catalog) for _ in range(2)], [True, False])
    see("load_catalog missing", lambda: lake.load_catalog(dropped_catalog), "NoSuchCatalogException")


def schemas(steps: Steps) -> None:
    """Nested schemas: created in one call, listed by parent, altered, dropped."""
    see = steps.see
    catalog = steps.lake.load_catalog(f"tables_{steps.user}")
    see("validate", catalog.validate)
    on = catalog.as_schemas()
    see("create_schema", lambda: on.create_schema("a", "c", {"k": "v"}).name(), "a")
    see("create_schema nested", lambda: on.create_schema("x:y", "", {}).name(), "x:y")
    see("create_schema again", lambda: on.create_schema("a", "", {}), "SchemaAlreadyExistsException")
    see("list_schemas", lambda: [on.list_schemas(), on.list_schemas("x")], [["a", "x"], ["x:y"]])
    see("alter_schema", lambda: on.alter_schema("a", SchemaChange.set_property("p", "1")).properties().get("p"), "1")
    see("drop_schema full", lambda: on.drop_schema("x", False), "NonEmptySchemaException")
    see("drop_schema", lambda: [on.drop_schema("x:y", False), on.drop_schema("x:y", False)], [True, False])
    steps.told(on.load_schema("a"), "name", "comment", "properties")
    hang(steps, on.load_schema("a"))


def hang(steps: Steps, thing: object) -> None:
    """Tags on an object: attached, listed, loaded, detached."""
    word = type(thing).__name__
    tag = f"tag_{steps.user}_{word.lower()}"
    steps.lake.create_tag(tag, "c", {})
    on = thing.supports_tags()
    steps.see(f"{word}.associate_tags", lambda: on.associate_tags([tag], []), [tag])
    steps.see(f"{word}.list_tags", on.list_tags, [tag])
    steps.see(f"{word}.list_tags_info", lambda: [each.inherited() for each in on.list_tags_info()], [False])
    steps.see(f"{word}.get_tag", lambda: on.get_tag(tag).comment(), "c")
    steps.see(f"{word}.associate_tags off", lambda: on.associate_tags([], [tag]), [])
    steps.see(f"{word}.get_tag missing", lambda: on.get_tag(tag), "NoSuchTagException")


def tables(steps: Steps) -> None:
    """Tables created, altered, renamed, dropped, purged; columns and their tags."""
    see, on = steps.see, steps.lake.load_catalog(f"tables_{steps.user}").as_table_catalog()
    name = NameIdentifier.of("a", "t")
    see(
        "create_table",
        lambda: on.create_table(KEPT, COLUMNS, "c", {"k": "v"}, [Transforms.bucket(4, ["id"])]).name(),
        "kept",
    )
    see("create_table again", lambda: on.create_table(KEPT, COLUMNS, "c", {}), "TableAlreadyExistsException")
    on.create_table(name, COLUMNS, "c", {})
    changes = (
        TableChange.add_column(["x"], Types.ShortType.get(), "new", TableChange.ColumnPosition.first()),
        TableChange.rename_column(["n"], "m"),
        TableChange.update_column_comment(["id"], "d"),
    )
    see("alter_table", lambda: [each.name() for each in on.alter_table(name, *changes).columns()], ["x", "id", "m"])
    see("list_tables", lambda: sorted(each.name() for each in on.list_tables(SPACE)), ["kept", "t"])
    see("load_table missing", lambda: on.load_table(NameIdentifier.of("a", "none")), "NoSuchTableException")
    see("drop_table", lambda: [on.drop_table(name) for _ in range(2)], [True, False])
    on.create_table(name, COLUMNS, "c", {})
    see("purge_table", lambda: on.purge_table(name), True)
    table = on.load_table(KEPT)
    steps.told(table, "name", "comment", "properties", "columns", "partitioning", "sort_order", "distribution", "index")
    see("table_full_name", lambda: table.table_full_name(Namespace.of("m", "c", "s"), "t"))
    hang(steps, table)
    _column(steps, table.columns()[0])


def _column(steps: Steps, column: object) -> None:
    for name in ("name", "data_type", "comment", "nullable", "auto_increment", "default_value"):
        steps.see(f"GenericColumn.{name}", getattr(column, name))
    hang(steps, column)


def partitions(steps: Steps) -> None:
    """Iceberg's partitions follow from rows: none is listed, created or dropped."""
    table = steps.lake.load_catalog(f"tables_{steps.user}").as_table_catalog().load_table(KEPT)
    for name, args in (
        ("list_partition_names", ()),
        ("list_partitions", ()),
        ("get_partition", ("p",)),
        ("drop_partition", ("p",)),
    ):
        steps.see(name, lambda name=name, args=args: getattr(table, name)(*args), "UnsupportedOperationException")
    from gravitino.api.rel.expressions.literals.literals import Literals
    from gravitino.api.rel.partitions.partitions import Partitions

    one = Partitions.identity("p", [["id"]], [Literals.long_literal(1)], {})
    steps.see("add_partition", lambda: table.add_partition(one), "UnsupportedOperationException")


def statistics(steps: Steps) -> None:
    """Statistics written, listed, dropped."""
    table = steps.lake.load_catalog(f"tables_{steps.user}").as_table_catalog().load_table(KEPT)
    on = table.supports_statistics()
    values = {
        "custom-n": StatisticValues.long_value(3),
        "custom-l": StatisticValues.list_value([StatisticValues.string_value("x")]),
    }
    steps.see("update_statistics", lambda: on.update_statistics(values))
    statistics_by_name = {each.name(): each for each in on.list_statistics()}
    steps.see(
        "list_statistics",
        lambda: [statistics_by_name["custom-n"].value().value(), statistics_by_name["custom-n"].modifiable()],
        [3, True],
    )
    wrong = {"rows": StatisticValues.long_value(3)}
    steps.see("update_statistics reserved", lambda: on.update_statistics(wrong), "IllegalStatisticNameException")
    steps.see("drop_statistics", lambda: [on.drop_statistics(["custom-n"]) for _ in range(2)], [True, False])


def views(steps: Steps) -> None:
    """Views created, listed, altered, dropped."""
    see, on = steps.see, steps.lake.load_catalog(f"tables_{steps.user}").as_view_catalog()
    text = [SQLRepresentation("spark", "select 1 as id")]
    name, columns = NameIdentifier.of("a", "v"), [Column.of("id", Types.IntegerType.get(), None)]
    see("create_view", lambda: on.create_view(name, columns, text, "c", None, "a", {"k": "v"}).name(), "v")
    see("list_views", lambda: [each.name() for each in on.list_views(SPACE)], ["v"])
    see("alter_view", lambda: on.alter_view(name, ViewChange.set_property("p", "1")).properties().get("p"), "1")
    view = on.load_view(name)
    steps.told(view, "name", "comment", "columns", "representations", "default_catalog", "default_schema", "properties")
    hang(steps, view)
    see("drop_view", lambda: [on.drop_view(name) for _ in range(2)], [True, False])
    see("load_view missing", lambda: on.load_view(name), "NoSuchViewException")


def functions(steps: Steps) -> None:
    """Functions registered, listed, altered with every change, dropped."""
    see, on = steps.see, steps.lake.load_catalog(f"tables_{steps.user}").as_function_catalog()
    name, integer = NameIdentifier.of("a", "f"), Types.IntegerType.get()
    x, y = [FunctionParams.of("x", integer)], [FunctionParams.of("y", Types.StringType.get())]
    spark = SQLImpl(FunctionImpl.RuntimeType.SPARK, "SELECT x")
    trino = SQLImpl(FunctionImpl.RuntimeType.TRINO, "x")
    one = FunctionDefinitions.of(x, integer, [spark])
    see("register_function", lambda: on.register_function(name, "c", FunctionType.SCALAR, True, [one]).name(), "f")
    see(
        "register_function again",
        lambda: on.register_function(name, "c", FunctionType.SCALAR, True, [one]),
        "FunctionAlreadyExistsException",
    )
    see("list_functions", lambda: [each.name() for each in on.list_functions(SPACE)], ["f"])
    see("list_function_infos", lambda: [each.comment() for each in on.list_function_infos(SPACE)], ["c"])
    for change in (
        FunctionChange.update_comment("d"),
        FunctionChange.add_definition(FunctionDefinitions.of(y, integer, [trino])),
        FunctionChange.add_impl(x, trino),
        FunctionChange.update_impl(x, FunctionImpl.RuntimeType.TRINO, trino),
        FunctionChange.remove_impl(x, FunctionImpl.RuntimeType.TRINO),
        FunctionChange.remove_definition(y),
    ):
        see(
            f"alter_function {type(change).__name__}",
            lambda change=change: on.alter_function(name, change).comment(),
            "d",
        )
    function = on.get_function(name)
    see(
        "get_function",
        lambda: [len(function.definitions()), function.definitions()[0].impls()[0].sql()],
        [1, "SELECT x"],
    )
    steps.told(function, "name", "function_type", "deterministic", "comment", "definitions")
    hang(steps, function)
    see("drop_function", lambda: [on.drop_function(name) for _ in range(2)], [True, False])
    see("get_function missing", lambda: on.get_function(name), "NoSuchFunctionException")


def models(steps: Steps) -> None:
    """Models registered, listed, altered, deleted."""
    see, catalog = steps.see, steps.lake.load_catalog(f"models_{steps.user}")
    catalog.as_schemas().create_schema("a", "", {})
    on = catalog.as_model_catalog()
    see("register_model", lambda: on.register_model(KEPT, "c", {"k": "v"}).comment(), "c")
    see("register_model again", lambda: on.register_model(KEPT, "c", {}), "ModelAlreadyExistsException")
    uris = {"s3": "s3://x/0", "gcs": "gs://x/0"}
    for name, make in (
        ("one", lambda ident: on.register_model_version(ident, "s3://x/0", ["new"], "v", {})),
        ("two", lambda ident: on.register_model_version_with_multiple_uris(ident, uris, ["new"], "v", {})),
    ):
        see(
            f"register_model_version {name}",
            lambda name=name, make=make: make(NameIdentifier.of("a", name)).name(),
            name,
        )
    see("list_models", lambda: [each.name() for each in on.list_models(SPACE)], ["kept", "one", "two"])
    see("alter_model", lambda: on.alter_model(NameIdentifier.of("a", "one"), ModelChange.rename("uno")).name(), "uno")
    see("delete_model", lambda: [on.delete_model(NameIdentifier.of("a", "uno")) for _ in range(2)], [True, False])
    model = on.get_model(KEPT)
    steps.told(model, "name", "comment", "properties", "latest_version")
    hang(steps, model)


def versions(steps: Steps) -> None:
    """Versions linked, by number and alias; altered, deleted."""
    see, on = steps.see, steps.lake.load_catalog(f"models_{steps.user}").as_model_catalog()
    see("link_model_version", lambda: on.link_model_version(KEPT, "s3://x/0", ["first"], "v", {}))
    two = {"s3": "s3://x/1", "gcs": "gs://x/1"}
    see(
        "link_model_version_with_multiple_uris",
        lambda: on.link_model_version_with_multiple_uris(KEPT, two, ["best"], "v", {}),
    )
    error_name = "ModelVersionAliasesAlreadyExistException"
    see("link_model_version taken alias", lambda: on.link_model_version(KEPT, "s3://x/2", ["best"], "", {}), error_name)
    see("list_model_versions", lambda: on.list_model_versions(KEPT), [0, 1])
    see(
        "list_model_version_infos",
        lambda: [each.aliases() for each in on.list_model_version_infos(KEPT)],
        [["first"], ["best"]],
    )
    see("get_model_version_by_alias", lambda: on.get_model_version_by_alias(KEPT, "best").uris(), two)
    see("get_model_version_uri", lambda: on.get_model_version_uri(KEPT, 0), "s3://x/0")
    see("get_model_version_uri_by_alias", lambda: on.get_model_version_uri_by_alias(KEPT, "best", "gcs"), "gs://x/1")
    see(
        "alter_model_version",
        lambda: on.alter_model_version(KEPT, 0, ModelVersionChange.update_comment("d")).comment(),
        "d",
    )
    fewer = ModelVersionChange.remove_uri("gcs")
    see(
        "alter_model_version_by_alias",
        lambda: on.alter_model_version_by_alias(KEPT, "best", fewer).uris(),
        {"s3": "s3://x/1"},
    )
    steps.told(on.get_model_version(KEPT, 0), "version", "comment", "aliases", "uris", "properties")
    see("get_model_version missing", lambda: on.get_model_version(KEPT, 9), "NoSuchModelVersionException")
    see("delete_model_version", lambda: [on.delete_model_version(KEPT, 0) for _ in range(2)], [True, False])
    see(
        "delete_model_version_by_alias",
        lambda: [on.delete_model_version_by_alias(KEPT, "best") for _ in range(2)],
        [True, False],
    )


def filesets(steps: Steps) -> None:
    """Filesets with one location and with several; locations of files; credentials."""
    see, catalog = steps.see, steps.lake.load_catalog(f"files_{steps.user}")
    catalog.as_schemas().create_schema("a", "", {})
    on, other = catalog.as_fileset_catalog(), NameIdentifier.of("a", "many")
    see("create_fileset", lambda: on.create_fileset(KEPT, "c", Fileset.Type.MANAGED, None, {"k": "v"}).name(), "kept")
    place = next(iter(on.load_fileset(KEPT).storage_locations().values()))
    places = {"one": f"{place}-1", "two": f"{place}-2"}
    default = {"default-location-name": "two"}
    many = on.create_multiple_location_fileset
    see(
        "create_multiple_location_fileset",
        lambda: sorted(many(other, "c", Fileset.Type.MANAGED, places, default).storage_locations()),
        ["one", "two"],
    )
    see("list_filesets", lambda: [each.name() for each in on.list_filesets(SPACE)], ["kept", "many"])
    see(
        "get_file_location",
        lambda: [on.get_file_location(other, "a/b"), on.get_file_location(other, "c", "one")],
        [f"{place}-2/a/b", f"{place}-1/c"],
    )
    see(
        "alter_fileset", lambda: on.alter_fileset(KEPT, FilesetChange.set_property("p", "1")).properties().get("p"), "1"
    )
    see("alter_fileset comment", lambda: on.alter_fileset(KEPT, FilesetChange.remove_comment()).comment(), None)
    see("drop_fileset", lambda: [on.drop_fileset(other) for _ in range(2)], [True, False])
    see("load_fileset missing", lambda: on.load_fileset(other), "NoSuchFilesetException")
    fileset = on.load_fileset(KEPT)
    steps.told(fileset, "name", "type", "storage_locations", "comment", "properties")
    see("GenericFileset.get_credentials", lambda: fileset.support_credentials().get_credentials(), [])
    see("FilesetCatalog.get_credentials", lambda: catalog.support_credentials().get_credentials(), [])
    hang(steps, fileset)
    thing = MetadataObjects.of("kept", MetadataObject.Type.FILESET, f"files_{steps.user}.a")
    lake = steps.lake.get_metalake().name()
    keys = MetadataObjectCredentialOperations(lake, thing, steps.lake._rest_client)
    see("MetadataObjectCredentialOperations.get_credentials", keys.get_credentials, [])
    info = {"s3-access-key-id": "k", "s3-secret-access-key": "s", "s3-session-token": "t"}
    credential = CredentialDTO(_credential_type="s3-token", _expire_time_in_ms=9, _credential_info=info)
    see("to_credential", lambda: keys.to_credential(credential).session_token(), "t")


def tags(steps: Steps) -> None:
    """Tags of the metalake, and of a catalog."""
    lake, see, name = steps.lake, steps.see, f"red_{steps.user}"
    see("create_tag", lambda: lake.create_tag(name, "c", {"k": "v"}).name(), name)
    see("create_tag again", lambda: lake.create_tag(name, "c", {}), "TagAlreadyExistsException")
    see("alter_tag", lambda: lake.alter_tag(name, TagChange.update_comment("d")).comment(), "d")
    see("list_tags", lambda: name in lake.list_tags(), True)
    see("list_tags_info", lambda: name in [each.name() for each in lake.list_tags_info()], True)
    catalog = lake.load_catalog(f"tables_{steps.user}")
    hang(steps, catalog)
    catalog.supports_tags().associate_tags([name], [])
    tag = lake.get_tag(name)
    steps.told(tag, "name", "comment", "properties", "inherited")
    see(
        "associated_objects",
        lambda: [each.full_name() for each in tag.associated_objects().objects()],
        [f"tables_{steps.user}"],
    )
    see("delete_tag", lambda: lake.delete_tag(name), True)
    see("delete_tag missing", lambda: lake.delete_tag(name), False if steps.user == "admin" else "ForbiddenException")
    see("get_tag missing", lambda: lake.get_tag(name), "NoSuchTagException")


def jobs(steps: Steps) -> None:
    """Templates of programs and of Spark, and jobs that the server runs; pipelines and their runs, which the server
    only records.
    """
    lake, see, user = steps.lake, steps.see, steps.user
    programs(steps, f"t_{user}")
    name, run = f"p_{user}", f"{len(user):08}-0123-4567-89ab-0123456789ab"
    own(steps, "PUT", f"pipelines/{name}", {"declaration": {"steps": []}, "comment": "c"})
    own(steps, "POST", f"pipelines/{name}/runs", {"id": run, "holder": "h:1", "lease_s": 600})
    see("list_job_templates", lambda: name in [each.name for each in lake.list_job_templates()], True)
    see("get_job_template", lambda: lake.get_job_template(name).comment, "c")
    see("alter_job_template", lambda: lake.alter_job_template(name, JobTemplateChange.update_comment("d")).comment, "d")
    update = JobTemplateChange.update_template(SparkTemplateUpdate(new_executable="x"))
    see(
        "alter_job_template of a pipeline",
        lambda: lake.alter_job_template(name, update),
        "UnsupportedOperationException",
    )
    see("run_job", lambda: lake.run_job(name, {}), "UnsupportedOperationException")
    see("list_jobs", lambda: [each.job_id() for each in lake.list_jobs(name)], [run])
    job = lake.get_job(run)
    see("get_job", lambda: [job.job_template_name(), job.job_status().value], [name, "started"])
    see("cancel_job", lambda: lake.cancel_job(run).job_status().value, "cancelling")
    own(steps, "POST", f"runs/{run}/finish", {"attempt": 1, "state": "cancelled"})
    see("delete_job_template", lambda: lake.delete_job_template(name), True)
    missing = "NoSuchJobTemplateException" if user == "admin" else "ForbiddenException"
    see("get_job_template missing", lambda: lake.get_job_template("none"), "NoSuchJobTemplateException")
    see("alter_job_template missing", lambda: lake.alter_job_template("none", JobTemplateChange.rename("u")), missing)
    see(
        "get_job missing",
        lambda: lake.get_job("none"),
        "NoSuchJobException" if user == "admin" else "ForbiddenException",
    )


def programs(steps: Steps, name: str) -> None:
    """Register, alter, run, wait for and cancel a program."""
    lake, see = steps.lake, steps.see
    shell = (
        ShellJobTemplate.builder().with_name(name).with_executable("/bin/sleep").with_arguments(["{{seconds}}"]).build()
    )
    see("register_job_template", lambda: lake.register_job_template(shell))
    see("register_job_template again", lambda: lake.register_job_template(shell), "JobTemplateAlreadyExistsException")
    spark = (
        SparkJobTemplate.builder()
        .with_name(f"{name}_s")
        .with_executable("/x.jar")
        .with_class_name("org.example.X")
        .build()
    )
    see("register_job_template of Spark", lambda: lake.register_job_template(spark))
    see("get_job_template of Spark", lambda: lake.get_job_template(f"{name}_s").class_name, "org.example.X")
    see("run_job without a value", lambda: lake.run_job(name, {}), "IllegalArgumentException")
    see("run_job of what is not allowed", lambda: lake.run_job(f"{name}_s", {}), "IllegalArgumentException")
    done = lake.run_job(name, {"seconds": "0"}).job_id()
    see("get_job that ended", lambda: ended(lake, done), "succeeded")
    runs = lake.run_job(name, {"seconds": "600"}).job_id()
    see("delete_job_template in use", lambda: lake.delete_job_template(name), "InUseException")
    see("cancel_job that runs", lambda: lake.cancel_job(runs).job_status().value in ("cancelling", "cancelled"), True)
    see("get_job cancelled", lambda: ended(lake, runs), "cancelled")
    see("list_jobs of a program", lambda: [each.job_id() for each in lake.list_jobs(name)], [runs, done])
    change = JobTemplateChange.update_template(ShellTemplateUpdate(new_executable="/bin/true", new_arguments=[]))
    see("alter_job_template of a program", lambda: lake.alter_job_template(name, change).executable, "/bin/true")
    see("delete_job_template of a program", lambda: lake.delete_job_template(name), True)


def ended(lake: GravitinoClient, job: str) -> str:
    """Wait until a job has ended, and return its status."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        status = lake.get_job(job).job_status().value
        if status in ("succeeded", "failed", "cancelled"):
            return str(status)
        time.sleep(0.1)
    return "still at it"


def own(steps: Steps, method: str, path: str, body: object) -> None:
    """Send a request to the admin API, which declares and runs pipelines."""
    lake = steps.lake.get_metalake().name()
    sent = Request(f"{URI}/api/limnos/v1/metalakes/{lake}/{path}", json.dumps(body).encode(), method=method)
    sent.add_header("Authorization", f"Basic {b64encode(f'{steps.user}:x'.encode()).decode()}")
    sent.add_header("Content-Type", "application/json")
    with urlopen(sent, timeout=30) as answer:
        answer.read()
