# SPDX-License-Identifier: Apache-2.0
"""PyIceberg against a real server: names, writes, evolution, time travel, rename, register, drop and purge."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    OAuthError,
    RESTError,
    TableAlreadyExistsError,
    UnauthorizedError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

from tests.integration.live import LiveServer

ODD_NAMES = ["dot.ted", "sla/sh", "sp ace", "per%cent", "%2F", "Ünïcödé", "数据", "plus+sign", "q?u#ery"]
PURGE_WAIT_S = 300

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType(), required=False),
    identifier_field_ids=[1],
)
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])


def connect(server: LiveServer, **properties: object) -> RestCatalog:
    """Return a catalog client for the server, by default of `main` with the admin's token."""
    all_properties: dict[str, object] = {"warehouse": "main", "token": server.token, **properties}
    present_properties = {key: value for key, value in all_properties.items() if value is not None}
    catalog = load_catalog("limnos", **{"type": "rest", "uri": f"{server.uri}/iceberg", **present_properties})  # type: ignore[arg-type]
    assert isinstance(catalog, RestCatalog)
    return catalog


def basic(user: str) -> dict[str, object]:
    """Return the properties with which PyIceberg authenticates by Basic."""
    return {"token": None, "auth": {"type": "basic", "basic": {"username": user, "password": "unchecked"}}}


@pytest.fixture(params=["token", "basic"])
def catalog(server: LiveServer, request: pytest.FixtureRequest) -> Iterator[RestCatalog]:
    """The catalog `main` as the administrator, by token and by Basic."""
    connected = connect(server) if request.param == "token" else connect(server, **basic("admin"))
    yield connected
    connected.close()


@pytest.fixture
def space(catalog: RestCatalog, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = re.sub(r"\W+", "_", str(request.node.name))
    catalog.create_namespace((name,))
    return name


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    """Arrow rows of (id, city)."""
    return pa.Table.from_pylist([{"id": number, "city": city} for number, city in pairs], schema=ARROW)


def content(table: Table) -> list[tuple[object, ...]]:
    """The table's rows as tuples, sorted by their first column."""
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=lambda row: str(row[0]))


def local_path(location: str) -> Path:
    """Return the file of a `file:` location."""
    return Path(unquote(urlsplit(location).path))


def wait_until(holds: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true in time: the purge runs in the background."""
    deadline = time.monotonic() + PURGE_WAIT_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_namespaces_nest_four_levels_deep(catalog: RestCatalog, space: str) -> None:
    """Namespaces nest; each level lists its children by full path and has its own properties."""
    for depth in range(1, 5):
        catalog.create_namespace((space, *"abcd"[:depth]), {"depth": str(depth)})

    assert (space,) in catalog.list_namespaces()
    assert catalog.list_namespaces((space, "a", "b")) == [(space, "a", "b", "c")]
    assert catalog.load_namespace_properties((space, *"abcd"))["depth"] == "4"
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace((space, "a"))


def test_non_empty_namespace_cannot_be_dropped(catalog: RestCatalog, space: str) -> None:
    """A namespace with a child or a table cannot be dropped; an empty one can, and then it does not exist."""
    catalog.create_namespace((space, "child"))
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace((space,))
    catalog.create_table((space, "child", "t"), SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace((space, "child"))

    catalog.drop_table((space, "child", "t"))
    catalog.drop_namespace((space, "child"))

    assert not catalog.namespace_exists((space, "child"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.drop_namespace((space, "child"))


def test_namespace_properties_are_set_and_removed(catalog: RestCatalog, space: str) -> None:
    """Properties are set and removed in one request; the answer has the outcome of each key."""
    catalog.update_namespace_properties((space,), updates={"keep": "1", "drop": "2"})

    summary = catalog.update_namespace_properties((space,), removals={"drop", "never"}, updates={"keep": "3"})

    assert (summary.updated, summary.removed, summary.missing) == (["keep"], ["drop"], ["never"])
    properties = catalog.load_namespace_properties((space,))
    assert properties["keep"] == "3"
    assert "drop" not in properties


@pytest.mark.parametrize("name", ODD_NAMES)
def test_unusual_names_work_for_namespaces_and_tables(catalog: RestCatalog, space: str, name: str) -> None:
    """Namespaces and tables with unusual names can be created, listed, written, read, renamed and dropped."""
    inner = (space, name, "in" + name)
    catalog.create_namespace(inner[:2])
    catalog.create_namespace(inner)
    table = catalog.create_table((*inner, name), SCHEMA)
    table.append(rows((1, "Oslo")))

    assert catalog.list_namespaces((space,)) == [inner[:2]]
    assert catalog.list_namespaces(inner[:2]) == [inner]
    assert catalog.list_tables(inner) == [(*inner, name)]
    assert content(catalog.load_table((*inner, name))) == [(1, "Oslo")]

    catalog.rename_table((*inner, name), (*inner[:2], name + "2"))
    assert not catalog.table_exists((*inner, name))
    assert content(catalog.load_table((*inner[:2], name + "2"))) == [(1, "Oslo")]

    catalog.drop_table((*inner[:2], name + "2"))
    catalog.drop_namespace(inner)
    catalog.drop_namespace(inner[:2])
    assert catalog.list_namespaces((space,)) == []


def test_namespace_name_with_separator_is_refused(catalog: RestCatalog, space: str) -> None:
    """A namespace name with the namespace separator is refused, and the message names the separator; a table name may
    contain it.
    """
    with pytest.raises(BadRequestError, match="'a:b' holds ':'"):
        catalog.create_namespace((space, "a:b"))
    catalog.create_table((space, "a:b"), SCHEMA)

    assert catalog.list_tables((space,)) == [(space, "a:b")]
    assert catalog.table_exists((space, "a:b"))


def test_percent_encoded_name_is_stored_unchanged(catalog: RestCatalog, space: str) -> None:
    """A name that looks percent-encoded is stored unchanged, beside the name that it would decode to."""
    catalog.create_table((space, "a%20b"), SCHEMA)
    catalog.create_table((space, "a b"), SCHEMA)

    assert catalog.list_tables((space,)) == [(space, "a b"), (space, "a%20b")]


def test_dotted_name_is_not_a_path(catalog: RestCatalog, space: str) -> None:
    """The name `a.b` of one level and the name `a`, `b` of two levels are different namespaces, also for tables of the
    same name.
    """
    catalog.create_namespace((space, "a"))
    catalog.create_namespace((space, "a", "b"))
    catalog.create_namespace((space, "a.b"))
    catalog.create_table((space, "a.b", "t"), SCHEMA)

    assert catalog.list_tables((space, "a", "b")) == []
    assert catalog.list_tables((space, "a.b")) == [(space, "a.b", "t")]


def test_created_table_is_loaded_by_name(catalog: RestCatalog, space: str) -> None:
    """A created table is loaded by its name, and a second create is refused."""
    created = catalog.create_table((space, "t"), SCHEMA, properties={"owner-team": "rail"})

    loaded = catalog.load_table((space, "t"))
    assert loaded.metadata == created.metadata
    assert loaded.properties["owner-team"] == "rail"
    assert loaded.schema().identifier_field_names() == {"id"}
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((space, "t"), SCHEMA)


def test_missing_table_and_namespace_have_different_errors(catalog: RestCatalog, space: str) -> None:
    """The errors for a missing table and for a missing namespace differ."""
    with pytest.raises(NoSuchTableError):
        catalog.load_table((space, "nothing"))
    with pytest.raises(NoSuchTableError):
        catalog.drop_table((space, "nothing"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table((space, "nowhere", "t"), SCHEMA)
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables((space, "nowhere"))


def test_rows_are_appended_overwritten_and_deleted(catalog: RestCatalog, space: str) -> None:
    """Rows are appended, overwritten by a filter and deleted by a filter; each change is visible at the next load."""
    table = catalog.create_table((space, "t"), SCHEMA)

    table.append(rows((1, "Oslo"), (2, "Rome"), (3, "Kyiv")))
    table.overwrite(rows((2, "Roma")), overwrite_filter="id = 2")
    table.delete("id > 2")

    assert content(catalog.load_table((space, "t"))) == [(1, "Oslo"), (2, "Roma")]


def test_upsert_updates_and_inserts_rows(catalog: RestCatalog, space: str) -> None:
    """An upsert updates rows with existing identifiers and inserts the others."""
    table = catalog.create_table((space, "t"), SCHEMA)
    table.append(rows((1, "Oslo"), (2, "Rome")))

    result = table.upsert(rows((2, "Roma"), (3, "Kyiv")))

    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert content(catalog.load_table((space, "t"))) == [(1, "Oslo"), (2, "Roma"), (3, "Kyiv")]


def test_old_rows_are_read_under_the_evolved_schema(catalog: RestCatalog, space: str) -> None:
    """Columns are added, renamed, widened, moved and dropped; older rows are read under the new schema."""
    table = catalog.create_table((space, "t"), Schema(*SCHEMA.fields, NestedField(3, "size", IntegerType())))
    table.append(rows((1, "Oslo")).append_column("size", pa.array([7], pa.int32())))

    with table.update_schema() as update:
        update.add_column("height", DoubleType())
        update.rename_column("city", "town")
        update.update_column("size", LongType())
        update.move_first("city")
    with table.update_schema() as update:
        update.delete_column("height")

    loaded = catalog.load_table((space, "t"))
    assert [field.name for field in loaded.schema().fields] == ["town", "id", "size"]
    assert content(loaded) == [("Oslo", 1, 7)]
    assert len(loaded.schemas()) == 3


def test_rows_of_each_partition_spec_are_read(catalog: RestCatalog, space: str) -> None:
    """A table's partition spec changes; rows of each spec are found by a filter, and unused specs are kept."""
    spec = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="city"))
    table = catalog.create_table((space, "t"), SCHEMA, partition_spec=spec)
    table.append(rows((1, "Oslo"), (2, "Rome")))

    with table.update_spec() as update:
        update.remove_field("city")
        update.add_field("id", IdentityTransform(), "number")
    table.append(rows((3, "Rome")))
    with table.update_spec() as update:
        update.add_field("city", BucketTransform(4), "city_bucket")

    loaded = catalog.load_table((space, "t"))
    assert [field.name for field in loaded.spec().fields] == ["number", "city_bucket"]
    assert [[field.name for field in each.fields] for _, each in sorted(loaded.specs().items())] == [
        ["city"],
        ["number"],
        ["number", "city_bucket"],
    ]
    assert sorted(loaded.scan(row_filter="city = 'Rome'").to_arrow()["id"].to_pylist()) == [2, 3]
    assert loaded.scan(row_filter="id = 1").to_arrow().num_rows == 1


def test_earlier_snapshots_tags_and_branches_are_read(catalog: RestCatalog, space: str) -> None:
    """A table is read at an earlier snapshot, by id and by tag; a branch has its own writes."""
    table = catalog.create_table((space, "t"), SCHEMA)
    table.append(rows((1, "Oslo")))
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "start").create_branch(first.snapshot_id, "side").commit()
    table.append(rows((2, "Rome")))
    table.append(rows((3, "Kyiv")), branch="side")

    loaded = catalog.load_table((space, "t"))
    assert loaded.scan(snapshot_id=first.snapshot_id).to_arrow().num_rows == 1
    assert loaded.scan().use_ref("start").to_arrow()["id"].to_pylist() == [1]
    assert sorted(loaded.scan().use_ref("side").to_arrow()["id"].to_pylist()) == [1, 3]
    assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_table_properties_are_set_and_removed(catalog: RestCatalog, space: str) -> None:
    """Table properties are set and removed by commits."""
    table = catalog.create_table((space, "t"), SCHEMA, properties={"drop": "1"})

    with table.transaction() as transaction:
        transaction.set_properties({"keep": "2"})
        transaction.remove_properties("drop")

    properties = catalog.load_table((space, "t")).properties
    assert properties["keep"] == "2"
    assert "drop" not in properties


def test_staged_table_exists_only_after_its_commit(catalog: RestCatalog, space: str) -> None:
    """A table that is created in a transaction exists only after its commit, with the rows written in it."""
    with catalog.create_table_transaction((space, "t"), SCHEMA) as transaction:
        assert not catalog.table_exists((space, "t"))
        transaction.append(rows((1, "Oslo")))

    assert content(catalog.load_table((space, "t"))) == [(1, "Oslo")]


def test_concurrent_appends_succeed_and_stale_schema_is_refused(catalog: RestCatalog, space: str) -> None:
    """Concurrent appends to one table both succeed; a schema change based on an old schema is refused."""
    catalog.create_table((space, "t"), SCHEMA)
    one, two = catalog.load_table((space, "t")), catalog.load_table((space, "t"))
    one.append(rows((1, "Oslo")))
    two.append(rows((2, "Rome")))
    assert content(catalog.load_table((space, "t"))) == [(1, "Oslo"), (2, "Rome")]

    with one.update_schema() as update:
        update.add_column("height", DoubleType())
    with pytest.raises(CommitFailedException), two.update_schema() as update:
        update.add_column("width", DoubleType())

    names = [field.name for field in catalog.load_table((space, "t")).schema().fields]
    assert names == ["id", "city", "height"]


def test_renamed_table_is_loaded_only_by_its_new_name(catalog: RestCatalog, space: str) -> None:
    """A renamed table is found only under its new name, with its rows, and is unaffected by a new table with the old
    name.
    """
    catalog.create_namespace((space, "from"))
    catalog.create_namespace((space, "to"))
    catalog.create_table((space, "from", "t"), SCHEMA).append(rows((1, "Oslo")))

    catalog.rename_table((space, "from", "t"), (space, "to", "u"))
    again = catalog.create_table((space, "from", "t"), SCHEMA)
    again.append(rows((9, "Kyiv")))
    catalog.purge_table((space, "from", "t"))

    assert wait_until(lambda: not local_path(again.metadata_location).exists())
    assert catalog.list_tables((space, "from")) == []
    assert content(catalog.load_table((space, "to", "u"))) == [(1, "Oslo")]
    with pytest.raises(NoSuchTableError):
        catalog.load_table((space, "from", "t"))


def test_impossible_renames_are_refused(catalog: RestCatalog, space: str) -> None:
    """A rename to an existing name, of a missing table, or to a missing namespace is refused and changes nothing."""
    catalog.create_table((space, "t"), SCHEMA)
    catalog.create_table((space, "u"), SCHEMA)

    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table((space, "t"), (space, "u"))
    with pytest.raises(NoSuchTableError):
        catalog.rename_table((space, "nothing"), (space, "v"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table((space, "t"), (space, "nowhere", "v"))

    assert catalog.list_tables((space,)) == [(space, "t"), (space, "u")]


def test_dropped_table_can_be_registered_again(catalog: RestCatalog, space: str) -> None:
    """A drop keeps the files; the table can be registered again by its last metadata file."""
    table = catalog.create_table((space, "t"), SCHEMA)
    table.append(rows((1, "Oslo")))
    location = table.metadata_location
    catalog.drop_table((space, "t"))
    assert not catalog.table_exists((space, "t"))
    assert local_path(location).is_file()

    registered = catalog.register_table((space, "back again"), location)

    assert registered.metadata_location == location
    assert content(catalog.load_table((space, "back again"))) == [(1, "Oslo")]
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table((space, "back again"), location)


def test_purge_deletes_only_listed_files(catalog: RestCatalog, space: str) -> None:
    """A purge deletes the files that the metadata lists, and keeps an unrelated file in the same directory."""
    table = catalog.create_table((space, "t"), SCHEMA)
    table.append(rows((1, "Oslo")))
    table.append(rows((2, "Rome")))
    root = local_path(table.location())
    (root / "data" / "stranger.parquet").write_bytes(b"not the table's")
    files = [path for path in root.rglob("*") if path.is_file() and path.name != "stranger.parquet"]
    assert len(files) >= 9

    catalog.purge_table((space, "t"))

    assert not catalog.table_exists((space, "t"))
    assert wait_until(lambda: not any(path.exists() for path in files))
    assert (root / "data" / "stranger.parquet").is_file()


def test_locations_outside_the_roots_are_refused(catalog: RestCatalog, space: str, tmp_path: Path) -> None:
    """A table cannot be created or registered outside the catalog's allowed roots; no file is written there."""
    with pytest.raises((BadRequestError, ForbiddenError)):
        catalog.create_table((space, "t"), SCHEMA, location=f"file://{tmp_path}/elsewhere")
    with pytest.raises((BadRequestError, ForbiddenError)):
        catalog.register_table((space, "t"), f"file://{tmp_path}/elsewhere/v1.metadata.json")

    assert not catalog.table_exists((space, "t"))
    assert list(tmp_path.iterdir()) == []


def test_lists_are_complete_with_and_without_pages(server: LiveServer) -> None:
    """Lists are complete with and without page requests."""
    whole, paged = connect(server), connect(server, **{"rest-page-size": "3"})
    whole.create_namespace(("test_lists_are_complete_with_and_without_pages",))
    for number in range(10):
        whole.create_namespace(("test_lists_are_complete_with_and_without_pages", f"n{number}"))
        whole.create_table(("test_lists_are_complete_with_and_without_pages", f"t{number}"), SCHEMA)

    namespaces = [("test_lists_are_complete_with_and_without_pages", f"n{number}") for number in range(10)]
    tables = [("test_lists_are_complete_with_and_without_pages", f"t{number}") for number in range(10)]
    for catalog in (whole, paged):
        assert catalog.list_namespaces(("test_lists_are_complete_with_and_without_pages",)) == namespaces
        assert catalog.list_tables(("test_lists_are_complete_with_and_without_pages",)) == tables
        catalog.close()


@pytest.mark.parametrize("warehouse", [None, "main", "lake/main"])
def test_all_warehouse_spellings_select_the_catalog(server: LiveServer, warehouse: str | None) -> None:
    """A client finds the catalog by its name, by metalake and name, and without a name."""
    catalog = connect(server, warehouse=warehouse)
    name = f"warehouse_{(warehouse or 'none').replace('/', '_')}"
    catalog.create_namespace((name,))

    assert catalog.namespace_exists((name,))
    catalog.close()


def test_unknown_token_is_refused(server: LiveServer) -> None:
    """An unknown token is refused at the first request."""
    with pytest.raises(UnauthorizedError):
        connect(server, token="made-up")


def test_catalog_is_hidden_from_an_unknown_user(server: LiveServer) -> None:
    """For a user that does not exist, the catalog does not exist."""
    with pytest.raises(RESTError, match="NoSuchWarehouseException"):
        connect(server, **basic("stranger"))


def test_missing_credential_error_explains_how_to_get_a_token(server: LiveServer) -> None:
    """The error for a client without a credential says that a token is missing, and how to get one."""
    with pytest.raises(UnauthorizedError, match="limnos create token"):
        connect(server, token=None)


def test_oauth_credential_is_a_user_and_a_token(server: LiveServer) -> None:
    """A client with credential=USER:TOKEN is authenticated; for another value OAuth's error explains the format."""
    assert connect(server, token=None, credential=f"admin:{server.token}").list_namespaces() is not None

    with pytest.raises(OAuthError, match="limnos create token"):
        connect(server, token=None, credential="ana:secret")
    with pytest.raises(OAuthError, match="credential=USER:TOKEN"):
        connect(server, token=None, credential=f"ana:{server.token}")
