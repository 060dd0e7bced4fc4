# SPDX-License-Identifier: Apache-2.0
"""The official Gravitino Python client 1.3.1, in its own environment, against a real server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, DescribeTableRequest
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField

from conformance.gravitino.client import interpreter
from limnos.client import Client
from tests.integration.live import LiveServer

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("gravitino_script.py")
Seen = dict[str, object]


@pytest.fixture(scope="module")
def seen(server: LiveServer) -> Seen:
    """The result of every step of the script."""
    _make_tables(server)
    warehouse = f"file://{server.data}/warehouse/grav"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAVITINO_"))}
    done = subprocess.run(
        [str(interpreter()), str(SCRIPT), server.uri, warehouse],
        env=environment,
        cwd=server.data,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    steps: Seen = json.loads(done.stdout)
    return steps


def _make_tables(server: LiveServer) -> None:
    """Create tables over the protocols of their formats, because the client only reads them."""
    ours = RestNamespace(**{"uri": f"{server.uri}/lance", "header.Authorization": f"Bearer {server.token}"})
    for path in (["lance", "grav"], ["lance", "grav", "text"]):
        ours.create_namespace(CreateNamespaceRequest(id=path))
    rows = pa.table({"id": [1], "vector": pa.array([[0.0, 1.0]], pa.list_(pa.float32(), 2))})
    for path in (["lance", "grav", "text", "docs"], ["lance", "grav_top"]):
        lance.write_dataset(rows, namespace_client=ours, table_id=path, mode="create")
        ours.describe_table(
            DescribeTableRequest(id=path)
        )  # so that a worker process runs, and answers within the client's timeout
    with Client(server.uri, token=server.token) as admin:
        admin.namespaces.create("main.grav")
        catalog = load_catalog("main", **admin.iceberg_properties("main"))
    schema = Schema(NestedField(1, "id", LongType(), required=True))
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(8), "id_bucket"))
    catalog.create_table("grav.t", schema, partition_spec=spec)


def starts(seen: Seen, expected: dict[str, str]) -> dict[str, object]:
    """Return the steps that did not end as expected: with an exception of that class and those words in its message."""
    wrong = {}
    for step, words in expected.items():
        name, _, rest = words.partition(" ")
        outcome = str(seen[step])
        if not outcome.startswith(f"{name}: ") or rest not in outcome:
            wrong[step] = outcome
    return wrong


def test_metalakes_are_created_altered_and_dropped(seen: Seen) -> None:
    """A metalake is created, altered, not dropped while in use, and dropped; a missing one is refused like one of
    another user.
    """
    expected = {
        "metalake-again": "MetalakeAlreadyExistsException grav_py",
        "metalake-drop-in-use": "MetalakeInUseException disable it first",
        "metalake-missing": "ForbiddenException ana doesn't exist in the metalake grav_gone",
    }

    assert starts(seen, expected) == {}
    assert seen["metalake"] == ["grav_py", True]
    assert {"grav_py", "lake"} <= set(seen["metalakes"])
    assert seen["metalake-altered"] == ["new", {"a": "b", "k": "v", "in-use": "true"}, "admin"]
    assert seen["metalake-drop"] is True


def test_catalogs_are_created_renamed_tested_and_dropped(seen: Seen) -> None:
    """A catalog with Gravitino's backend properties is created, listed, renamed, tested in both ways, and dropped."""
    expected = {
        "catalog-again": "CatalogAlreadyExistsException main",
        "catalog-bad": "IllegalArgumentException a.b",
        "catalog-test-bad": "IllegalArgumentException what://x",
        "catalog-drop-in-use": "CatalogInUseException disable it first",
        "catalog-missing": "NoSuchCatalogException third",
    }

    assert starts(seen, expected) == {}
    assert seen["catalog"] == ["main", "RELATIONAL", "lakehouse-iceberg", "c", "jdbc"]
    assert seen["catalogs"] == ["main", "other"]
    assert seen["catalogs-info"] == ["lakehouse-iceberg"] * 2
    assert seen["catalog-alter"] == "third"
    assert seen["catalog-test"] is None
    assert seen["catalog-drop"] == [True, False]


def test_create_schema_creates_all_nested_levels(seen: Seen) -> None:
    """`create_schema("A:B:C")`, whose name the client encodes in the body, creates all three schemas; lists are by
    parent.
    """
    assert seen["schema"] == ["A:B:C", "deep", {"k": "v"}]
    assert seen["schemas"] == [["A"], ["A:B"], ["A:B:C"]]
    assert seen["schema-exists"] == [True, False]
    assert seen["schema-alter"] == {"p": "1"}
    assert seen["schema-drop"] == [True, False]


def test_schema_failures_raise_client_exceptions(seen: Seen) -> None:
    """Each failure raises the exception that users of the client catch."""
    expected = {
        "schema-again": "SchemaAlreadyExistsException A.B.C",
        "schema-empty-segment": "IllegalArgumentException contains an empty segment after splitting by ':'.",
        "schema-missing-parent": "NoSuchSchemaException Z",
        "schema-drop-parent": "NonEmptySchemaException is not empty",
        "schema-drop-cascade": "IllegalArgumentException cascade",
    }

    assert starts(seen, expected) == {}


def test_lance_and_iceberg_tables_are_listed_and_loaded(seen: Seen) -> None:
    """Lance tables, including those directly in a catalog, are listed and loaded with columns; Iceberg tables with
    partitioning.
    """
    vector = seen["lance-table"][1][1] if isinstance(seen["lance-table"], list) else seen["lance-table"]

    assert seen["lance-tables"] == ["docs"]
    assert seen["lance-table"] == ["docs", [["id", "long", True], vector], "lance", 0]
    assert vector[0] == "vector"
    assert seen["root-tables"] is True
    assert seen["root-table"][0] == "grav_top"
    assert seen["iceberg-table"] == ["t", [["id", "long", False]], "iceberg v2", 1]
    assert starts(seen, {"table-missing": "NoSuchTableException none"}) == {}


def test_users_and_groups_are_added_and_removed(seen: Seen) -> None:
    """Users and groups are added and removed; a percent sign in a message does not break the client."""
    expected = {
        "user-again": "UserAlreadyExistsException ana",
        "user-percent-missing": "NoSuchUserException 50%",
        "group-missing": "NoSuchGroupException none",
    }

    assert starts(seen, expected) == {}
    assert (seen["user-add"], seen["group-add"]) == ("ana", "staff")
    assert seen["user-percent"] == ["50%", "50%", True]
    assert seen["users"] == [["admin", "ana"], ["admin", "ana"]]
    assert seen["groups"] == [["staff"], [[]]]
    assert seen["removals"] == [False, False]


def test_role_changes_apply_to_the_next_call(seen: Seen) -> None:
    """Roles are created, granted, altered and revoked; each change applies to the next call."""
    assert seen["role-create"] == "r"
    assert seen["grant-role"] == ["r"]
    assert seen["allowed-catalog"] == "main"
    assert seen["granted"] == [
        ["main", "CATALOG", ["USE_CATALOG"]],
        ["main.A:B", "SCHEMA", ["CREATE_SCHEMA", "USE_SCHEMA"]],
    ]
    assert seen["allowed-create"] == "A:B:D"
    assert seen["filtered"] == [["A"], ["A:B:C", "A:B:D"]]
    assert seen["object-roles"] == ["r"]
    assert seen["revoke-privileges"] is True
    assert (seen["grant-group"], seen["revoke-group"], seen["revoke-role"]) == (["r"], [], [])
    assert seen["roles"] == ["r"]
    assert seen["role-delete"] == [True, False]


def test_pipelines_are_managed_as_job_templates_and_jobs(seen: Seen) -> None:
    """Pipelines are listed, loaded, renamed and dropped as job templates, and their runs are listed, loaded and
    cancelled as jobs.
    """
    runs = [f"01234567-0123-4567-89ab-00000000000{number}" for number in (1, 2)]
    builtin = [
        f"builtin-iceberg-{each}"
        for each in (
            "expire-snapshots",
            "remove-orphan-files",
            "rewrite-data-files",
            "rewrite-manifests",
            "update-stats",
        )
    ]
    assert seen["templates"] == [*builtin, "idle", "nyc"]
    assert seen["template"] == ["c", "1"]
    assert seen["template-alter"] == "rest"
    assert seen["jobs"] == [[runs[0], "nyc", "started"], [runs[1], "rest", "failed"]]
    assert seen["jobs-of"] == runs[:1]
    assert seen["job"] == "started"
    assert seen["job-cancel"] == ["cancelling", "failed"]
    assert seen["template-delete"] == [True, False]
    expected = {
        "template-missing": "NoSuchJobTemplateException none",
        "template-busy": "InUseException h:1",
        "job-missing": "NoSuchJobException none",
        "job-run": "UnsupportedOperationException limnos.pipeline",
    }
    assert starts(seen, expected) == {}


def test_policies_are_inherited_and_built_in_jobs_run(seen: Seen) -> None:
    """A table inherits a policy of the catalog; jobs of built-in templates run to the end, and are cancelled."""
    assert seen["policy-inherited"] is True
    assert seen["builtin-template"] == "spark"
    assert seen["builtin-ended"] in ("succeeded", "failed")
    assert seen["builtin-queued"] == ["queued", "cancelled"]
    assert seen["builtin-jobs"] is True
    assert starts(seen, {"builtin-bad": "IllegalArgumentException where_clause"}) == {}


def test_tags_are_created_attached_inherited_and_dropped(seen: Seen) -> None:
    """Tags are created, renamed, attached, inherited and dropped by the client."""
    assert seen["tag-create"] == ["red", "blue"]
    assert seen["tag-alter"] == {"k": "w"}
    assert seen["tag-associate"] == [["rot"], ["blue"]]
    assert seen["tags-on"] == [["blue", "rot"], [["blue", False], ["rot", True]]]
    assert seen["tag-on"] == "c"
    assert seen["tag-objects"] == ["main.A:B"]
    assert seen["tags"] == [["blue", "rot"]] * 2
    assert seen["tag-delete"] == [True, False, ["rot"]]
    expected = {
        "tag-again": "TagAlreadyExistsException red",
        "tag-twice": "TagAlreadyAssociatedException blue",
        "tag-missing": "NoSuchTagException blue",
    }
    assert starts(seen, expected) == {}


def test_models_and_versions_are_registered_and_deleted(seen: Seen) -> None:
    """Models and their versions are registered, linked, loaded, altered and deleted by the client."""
    assert seen["model-register"] == "c"
    assert seen["model-link"] is seen["model-link-two"] is None
    assert seen["models"] == [["churn"], 2]
    assert seen["versions"] == [[0, 1], [["first"], ["best"]]]
    assert seen["version"] == [{"unknown": "s3://x/0"}, 1]
    assert seen["version-uri"] == ["s3://x/0", "gs://x/1"]
    assert (seen["version-alter"], seen["alias-alter"]) == ("new", {"s3": "s3://x/1"})
    assert (seen["version-delete"], seen["model-alter"], seen["model-delete"]) == ([True, False], "loss", [True, False])
    expected = {
        "alias-taken": "ModelVersionAliasesAlreadyExistException best",
        "version-missing": "NoSuchModelVersionException 9",
        "uri-missing": "NoSuchModelVersionURINameException none",
        "model-missing": "NoSuchModelException churn",
    }
    assert starts(seen, expected) == {}


def test_filesets_are_created_altered_and_dropped(seen: Seen) -> None:
    """Filesets are created, loaded, altered and dropped by the client, and return the locations of their files."""
    assert seen["fileset"] == ["f", "managed", ["unknown"]]
    assert (seen["filesets"], seen["fileset-load"], seen["file-location"]) == (["f"], "c", True)
    assert (seen["fileset-alter"], seen["fileset-drop"]) == ("1", [True, False])
    assert starts(seen, {"fileset-missing": "NoSuchFilesetException none"}) == {}


def test_tables_are_created_altered_and_dropped(seen: Seen) -> None:
    """Tables are created, altered, renamed and dropped; types that Iceberg lacks are returned as sent."""
    assert seen["table-create"] == "c"
    assert seen["table-altered"] == [["x", "short"], ["id", "long"], ["m", "varchar(20)"]]
    assert (seen["tables"], seen["table-rename"], seen["table-drop"]) == (["t"], "u", [True, False])
    assert starts(seen, {"table-again": "TableAlreadyExistsException t"}) == {}


def test_refusals_name_the_privilege_and_object(seen: Seen) -> None:
    """A refusal names the missing privilege and its object; an invalid request raises its own exception."""
    expected = {
        "stranger": "ForbiddenException zoe doesn't exist in the metalake grav_py",
        "refused-catalog": "ForbiddenException needs USE_CATALOG on main",
        "refused-create": "ForbiddenException needs CREATE_SCHEMA on main.A.B",
        "refused-again": "ForbiddenException needs CREATE_SCHEMA on main.A.B",
        "refused-drop": "ForbiddenException needs ownership of main.A.B.C",
        "refused-catalog-again": "ForbiddenException needs USE_CATALOG on main",
        "role-again": "RoleAlreadyExistsException r",
        "role-illegal": "IllegalMetadataObjectException none",
        "role-missing": "NoSuchRoleException r",
        "grant-unknown-role": "IllegalRoleException none",
    }

    assert starts(seen, expected) == {}


def test_creator_owns_all_created_schema_levels(seen: Seen) -> None:
    """The creator of a nested schema owns the levels that the call created; the owner of an ancestor may drop its
    descendants.
    """
    assert seen["owners"] == ["admin", "admin", "ana"]
    assert seen["owner-set"] is None
    assert seen["owner"] == ["ana", "USER"]
    assert seen["allowed-drop"] is True
    assert starts(seen, {"owner-missing": "NoSuchMetadataObjectException Z"}) == {}
    assert seen["owner-group"] is None


def test_lance_guide_gravitino_example_runs(server: LiveServer, seen: Seen) -> None:
    """The Gravitino example of docs/guides/lance.md prints the table's location and columns."""
    page = (ROOT / "docs" / "guides" / "lance.md").read_text(encoding="utf-8").partition("\n## Gravitino\n")[2]
    block = (
        page.partition("```python\n")[2]
        .partition("```")[0]
        .replace("ml:text", "grav:text")
        .replace('"pages"', '"docs"')
    )
    script = f"import sys\nuri, token = sys.argv[1:]\n{block}"
    done = subprocess.run(
        [str(interpreter()), "-c", script, server.uri, server.token],
        cwd=server.data,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("file:///")
    assert done.stdout.rstrip().endswith("['id', 'vector']")
