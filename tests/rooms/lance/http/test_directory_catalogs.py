# SPDX-License-Identifier: Apache-2.0
"""Directory catalogs, which show the Lance tables of a directory: current, read-only, and with the rights on the
catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.config.storage import StorageSection
from limnos.rooms.lance.sources.directories import LanceDirectory
from tests.arrow_rows import arrow
from tests.http.driver import API, DriverNode, grant, node_at
from tests.rooms.lance.http.wire import ROOT, failure_of, names, rows_of, space, table

pytestmark = pytest.mark.slow

ROWS = pa.table({"id": [1, 2]})
NEW = {"name": "shown", "type": "RELATIONAL", "provider": "lakehouse-generic"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory of layout V2 with a namespace, tables with rows, declared and at the top, and a foreign folder."""
    place = tmp_path / "lake"
    directory = LanceDirectory(str(place))
    directory.create_namespace(("a",), {"k": "v"})
    directory.create_namespace(("a", "b"), {})
    docs = directory.declare(("a", "b", "docs"), {"p": "q"})
    lance.write_dataset(ROWS, directory.location(docs), mode="append")
    directory.declare(("a", "later"))
    lance.write_dataset(ROWS, str(place / "top.lance"))
    (place / "foreign.lance").mkdir()
    return place


@pytest.fixture
def lake(tmp_path: Path, root: Path) -> Iterator[DriverNode]:
    """A node with a catalog of the directory."""
    with node_at(tmp_path / "data", storage=StorageSection(allowed_roots=(str(root),))) as running:
        running.done("POST", f"{API}/lake/catalogs", {**NEW, "properties": {"lance-directory": f"file://{root}"}})
        yield running


def test_directory_changes_are_listed_and_described_immediately(lake: DriverNode, root: Path) -> None:
    """Namespaces and tables are listed in pages with full identifiers. Changes of the directory are visible
    immediately.
    """
    assert names(lake.get(f"{space('shown')}/list")) == ["a"]
    assert names(lake.get(f"{space('shown', 'a')}/list")) == ["b"]
    assert names(lake.get(f"{space('shown')}/table/list")) == ["foreign", "top"]
    assert names(lake.get(f"{space('shown', 'a')}/table/list?include_declared=false")) == []
    assert lake.done("POST", f"{space('shown', 'a')}/describe", {}) == {"properties": {"k": "v"}}
    page = lake.get(f"{space('shown')}/table/list?limit=1").json()
    assert page["tables"] == ["foreign"]
    assert names(lake.get(f"{space('shown')}/table/list?limit=1&page_token={page['page_token']}")) == ["top"]
    assert names(lake.get(f"{ROOT}/table")) == ["shown$foreign", "shown$top", "shown$a$later", "shown$a$b$docs"]

    description = lake.done("POST", f"{table('shown', 'a', 'b', 'docs')}/describe", {})
    assert (description["version"], description["properties"], description["table"]) == (1, {"p": "q"}, "docs")
    assert lance.dataset(description["location"]).count_rows() == 2
    assert lake.done("POST", f"{table('shown', 'a', 'later')}/describe", {})["is_only_declared"]
    lance.write_dataset(ROWS, description["location"], mode="append")
    lance.write_dataset(ROWS, str(root / "new.lance"))
    assert lake.done("POST", f"{table('shown', 'a', 'b', 'docs')}/describe", {})["version"] == 2
    assert names(lake.get(f"{space('shown')}/table/list")) == ["foreign", "new", "top"]
    assert lake.post(f"{table('shown', 'new')}/exists", {"version": 1}).status == 200


def test_missing_objects_and_foreign_folders_have_their_codes(lake: DriverNode) -> None:
    """Missing namespaces, tables and versions are refused with their codes. A foreign folder exists as a table, but
    describing it is 409.
    """
    assert failure_of(lake.get(f"{space('shown', 'x')}/table/list")) == (404, 1)
    assert failure_of(lake.post(f"{table('shown', 'x', 't')}/describe", {})) == (404, 1)
    assert failure_of(lake.post(f"{table('shown', 'a', 't')}/exists", {})) == (404, 4)
    assert failure_of(lake.post(f"{table('shown', 'top')}/describe", {"version": 9})) == (404, 11)
    assert lake.post(f"{table('shown', 'foreign')}/exists", {}).status == 200
    foreign = lake.post(f"{table('shown', 'foreign')}/describe", {})
    assert failure_of(foreign) == (409, 19)
    assert "does not comply with the Lance table format" in str(foreign["detail"])


def test_rows_versions_and_tags_of_directory_tables_are_read(lake: DriverNode, root: Path) -> None:
    """Rows are counted, queried and explained; versions, tags, branches and indices are listed; declared tables have no
    rows.
    """
    docs = table("shown", "a", "b", "docs")
    place = lake.done("POST", f"{docs}/describe", {})["location"]
    lance.write_dataset(ROWS, place, mode="append").tags.create("two", 2)

    assert lake.done("POST", f"{docs}/count_rows", {}) == 4
    assert lake.done("POST", f"{docs}/count_rows", {"version": 1}) == 2
    assert lake.done("POST", f"{docs}/count_rows", {"tag": "two", "predicate": "id = 1"}) == 2
    assert rows_of(lake.post(f"{docs}/query", {"k": 9, "filter": "id > 1"})) == [{"id": 2}, {"id": 2}]
    assert "LanceRead" in lake.done("POST", f"{docs}/explain_plan", {"query": {"k": 1}})
    assert lake.done("POST", f"{docs}/stats", {})["num_rows"] == 4
    assert [each["version"] for each in lake.done("POST", f"{docs}/version/list", {})["versions"]] == [1, 2]
    assert lake.done("POST", f"{docs}/version/describe", {})["version"]["version"] == 2
    assert list(lake.done("POST", f"{docs}/tags/list", {})["tags"]) == ["two"]
    assert lake.done("POST", f"{docs}/index/list", {})["indexes"] == []
    assert failure_of(lake.post(f"{table('shown', 'a', 'later')}/count_rows", {})) == (404, 4)
    assert failure_of(lake.post(f"{table('shown', 'foreign')}/count_rows", {})) == (409, 19)
    assert failure_of(lake.post(f"{docs}/count_rows", {"version": 9})) == (404, 11)


def test_gravitino_lists_and_loads_directory_tables(lake: DriverNode) -> None:
    """Gravitino REST lists schemas by their parents, with one for the catalog itself, and tables with columns. Creates
    are refused.
    """
    schemas = f"{API}/lake/catalogs/shown/schemas"
    assert [each["name"] for each in lake.done("GET", schemas)["identifiers"]] == ["a", "default"]
    assert [each["name"] for each in lake.done("GET", f"{schemas}?parentSchema=a")["identifiers"]] == ["a:b"]
    assert lake.done("GET", f"{schemas}/a")["schema"]["properties"] == {"k": "v"}
    assert lake.get(f"{schemas}/none").status == 404
    assert [each["name"] for each in lake.done("GET", f"{schemas}/default/tables")["identifiers"]] == ["foreign", "top"]
    assert [each["name"] for each in lake.done("GET", f"{schemas}/a:b/tables")["identifiers"]] == ["docs"]
    loaded_table = lake.done("GET", f"{schemas}/a:b/tables/docs")["table"]
    assert (loaded_table["name"], [each["name"] for each in loaded_table["columns"]]) == ("docs", ["id"])
    assert lake.get(f"{schemas}/none/tables").status == 404


def test_writes_to_a_directory_catalog_are_refused(lake: DriverNode, root: Path) -> None:
    """Over every protocol, declaring, registering, dropping, moving and writing tables of the directory is refused."""
    before = sorted(root.rglob("*"))
    for address, body in (
        (f"{space('shown', 'new')}/create", {}),
        (f"{table('shown', 'new')}/declare", {}),
        (f"{table('shown', 'new')}/register", {"location": f"file://{root}/top.lance"}),
        (f"{table('shown', 'top')}/drop", {}),
        (f"{table('shown', 'top')}/rename", {"new_table_name": "t"}),
        (f"{table('shown', 'top')}/delete", {"predicate": "true"}),
        (f"{table('shown', 'top')}/insert", arrow(ROWS)),
        (f"{table('shown', 'top')}/tags/create", {"tag": "t", "version": 1}),
        (f"{table('shown', 'top')}/create_index", {"column": "id", "index_type": "BTREE"}),
        (f"{table('shown', 'top')}/version/delete", {"ranges": [{"start_version": 1, "end_version": 2}]}),
    ):
        answer = lake.post(address, body)
        assert (answer.status, answer.json().get("code")) == (406, 0), (address, answer.json())
    assert lake.post(f"{API}/lake/catalogs/shown/schemas", {"name": "s"}).status == 405
    assert sorted(root.rglob("*")) == before


def test_directory_access_follows_catalog_privileges(lake: DriverNode) -> None:
    """A user without rights gets the same refusal for existing and missing tables. Grants and revokes on the catalog
    take effect immediately.
    """
    lake.done("POST", f"{API}/lake/users", {"name": "eve"})
    for address in (f"{table('shown', 'top')}/describe", f"{table('shown', 'none')}/describe"):
        assert failure_of(lake.post(address, {}, user="eve")) == (403, 15)
    assert failure_of(lake.get(f"{space('shown')}/table/list", user="eve")) == (403, 15)
    assert failure_of(lake.post(f"{table('shown', 'top')}/count_rows", {}, user="eve")) == (403, 15)
    assert lake.get(f"{API}/lake/catalogs/shown/schemas/default/tables", user="eve").status == 403
    assert names(lake.get(f"{ROOT}/table", user="eve")) == []

    role = grant(lake, "eve", "use_catalog use_schema select_table", kind="CATALOG", on="shown")
    assert lake.done("POST", f"{table('shown', 'top')}/describe", {}, user="eve")["version"] == 1
    assert lake.done("POST", f"{table('shown', 'top')}/count_rows", {}, user="eve") == 2
    assert names(lake.get(f"{space('shown')}/table/list", user="eve")) == ["foreign", "top"]
    lake.done("PUT", f"{API}/lake/permissions/users/eve/revoke", {"roleNames": [role]})
    assert failure_of(lake.post(f"{table('shown', 'top')}/describe", {}, user="eve")) == (403, 15)


def test_directory_outside_the_server_roots_is_refused(lake: DriverNode, tmp_path: Path, root: Path) -> None:
    """A catalog of a directory outside of the server's roots is refused at its creation. Links out of the directory are
    refused at each access.
    """
    outside = tmp_path / "outside"
    lance.write_dataset(ROWS, str(outside / "secret.lance"))
    other = {**NEW, "name": "other", "properties": {"lance-directory": f"file://{outside}"}}
    assert "--allow-root" in lake.post(f"{API}/lake/catalogs", other).body.decode()
    (root / "way.lance").symlink_to(outside / "secret.lance")
    for action in ("describe", "count_rows", "version/list", "tags/list"):
        assert failure_of(lake.post(f"{table('shown', 'way')}/{action}", {})) == (400, 13)
    (root / "inner").symlink_to(outside)
    led = {**NEW, "name": "led", "properties": {"lance-directory": f"file://{root}/inner"}}
    lake.done("POST", f"{API}/lake/catalogs", led)
    assert failure_of(lake.get(f"{space('led')}/table/list")) == (400, 13)


def test_gravitino_schema_needs_use_catalog(lake: DriverNode) -> None:
    """Over Gravitino REST the right to use schemas is not enough without USE_CATALOG."""
    grant(lake, "dan", "use_schema select_table", kind="CATALOG", on="shown")

    assert lake.get(f"{API}/lake/catalogs/shown/schemas/a", user="dan").status == 403
    assert lake.get(f"{API}/lake/catalogs/shown/schemas/a").status == 200
