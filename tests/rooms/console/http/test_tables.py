# SPDX-License-Identifier: Apache-2.0
"""Pages of tables: nested columns, snapshots with their references, properties, and what each user sees."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing

import pytest

from limnos.rooms.console.http.connect import ICEBERG_CLIENTS, RESTRICTED_READERS
from limnos.rooms.console.http.table_metadata import decode_metadata, type_text
from limnos.rooms.console.http.tables import snapshot_lines
from limnos.spark.jars import ICEBERG_RUNTIMES
from tests.http.driver import OWN, DriverNode, grant
from tests.rooms.console.http.conftest import add_table
from tests.rooms.console.http.visitor import ConsoleVisitor

FLIGHTS = "/console/o/table/lake/main/raw/flights"


def test_struct_fields_are_listed_below_their_column(admin: ConsoleVisitor) -> None:
    """The fields of a struct are listed below it, and a column's comment is beside its type."""
    page = admin.read(FLIGHTS)

    assert "3 columns" in page.text
    for word in (
        "id required long the number",
        "place struct",
        "town string",
        "Flights of three airports",
        "You may read, write",
    ):
        assert word in page.text


def test_page_of_an_empty_table_explains_the_first_write(admin: ConsoleVisitor) -> None:
    """The page of a table without snapshots says how to write the first one."""
    assert "No snapshot yet" in admin.read(f"{FLIGHTS}?tab=snapshots").text


def test_connect_tab_has_address_and_table_name_for_each_client(admin: ConsoleVisitor) -> None:
    """The Connect tab has the address that the browser used and the table's name as each client writes it. No snippet
    has a token.
    """
    page = admin.read(f"{FLIGHTS}?tab=connect")

    for words in (
        'load_table(("raw", "flights"))',
        "`main`.`raw`.`flights`",
        "http://localhost:8090/iceberg",
        "limnos show main.raw.flights",
    ):
        assert words in page.text
    assert "lim_" not in page.text


def test_page_of_a_wide_table_stays_within_size_limit(admin: ConsoleVisitor) -> None:
    """The page of a table with 405 columns is smaller than 256 kB, and smaller than 20 kB compressed."""
    fields = [
        {"id": at + 1, "name": f"sensor_{at}", "required": False, "type": "double", "doc": f"field {at}"}
        for at in range(405)
    ]
    add_table(admin.node, "raw", "wide", {"type": "struct", "fields": fields})

    whole = admin.get("/console/o/table/lake/main/raw/wide")
    packed = admin.get("/console/o/table/lake/main/raw/wide", accept_encoding="gzip")

    assert len(whole.body) < 256_000
    assert len(packed.body) < 20_000
    assert packed.headers["content-encoding"] == "gzip"


def test_types_are_written_as_declared() -> None:
    """The types of lists and maps are shown on one line at any depth."""
    value = {"type": "map", "key": "string", "value": {"type": "list", "element": {"type": "struct", "fields": []}}}

    assert type_text(value) == "map<string, list<struct>>"


def test_snapshots_carry_their_branches_and_tags() -> None:
    """Snapshots are listed newest first, with the branches and tags that point to them, and the run that wrote them."""
    metadata = decode_metadata(
        b'{"format-version":2,"current-snapshot-id":2,"snapshots":[{"snapshot-id":1,"timestamp-ms":10,"summary":{"operation":"append","added-records":"5000","engine-name":"spark"}},'
        b'{"snapshot-id":2,"parent-snapshot-id":1,"timestamp-ms":20,"summary":{"operation":"overwrite","total-files-size":"2048","added-records":"7","deleted-records":"6","limnos.run":"e30c333b-00aa-40a3"}}],'
        b'"refs":{"main":{"snapshot-id":2,"type":"branch"},"v1":{"snapshot-id":1,"type":"tag"}}}'
    )

    newest, oldest = snapshot_lines(metadata)

    assert (newest.id, newest.is_current, [each.text for each in newest.references]) == ("2", True, ["main"])
    assert (newest.size, newest.rows_changed) == ("2.0 KiB", "+7 \N{MINUS SIGN}6")
    assert (newest.writer, newest.run) == ("e30c333b", "e30c333b-00aa-40a3")
    assert (oldest.writer, oldest.run) == ("spark", "")
    assert (oldest.rows_changed, [each.icon for each in oldest.references]) == ("+5\u202f000", ["tag"])


def test_tree_of_a_large_namespace_shows_first_100_tables(lake: DriverNode) -> None:
    """The page of a table in a namespace of 150 tables has the first 100 in the tree, and the table itself."""
    for number in range(150):
        add_table(lake, "raw%1Fnyc", f"t{number:03}")
    visitor = ConsoleVisitor(lake).sign_in()

    page = visitor.read("/console/o/table/lake/main/raw/nyc/t149")

    assert "Next" in page.text
    assert ("aria-current", "page") in page.attributes


@pytest.mark.room("sqlpp")
def test_connect_commands_quote_table_names_for_the_shell(lake: DriverNode) -> None:
    """The commands of the Connect tab quote a table name as one argument, so that the shell runs nothing in it."""
    add_table(lake, "raw", "it's `x`")
    page = ConsoleVisitor(lake).sign_in().read("/console/o/table/lake/main/raw/it%27s%20%60x%60?tab=connect")

    (query,) = [each for each in page.words if each.strip().startswith("limnos sql")]
    (spark,) = [each for each in page.words if each.strip().startswith("spark-sql")]
    assert shlex.split(query)[-2:] == ["-c", "SELECT VALUE t FROM `raw`.`it's \\`x\\`` AS t LIMIT 10;"]
    assert shlex.split(spark)[-2:] == ["-e", "SELECT * FROM `main`.`raw`.`it's ``x``` LIMIT 10;"]
    assert 'warehouse="lake/main"' in page.text


def test_spark_snippet_names_the_pinned_runtime_package(admin: ConsoleVisitor) -> None:
    """The Spark snippet names the runtime package that `limnos spark jars` fetches for the newest Spark."""
    page = admin.read("/console/o/table/lake/main/raw/flights?tab=connect")

    assert any(f"org.apache.iceberg:{each.name}:{each.version}" in page.text for each in ICEBERG_RUNTIMES.values())


def test_page_reports_metadata_that_readers_refuse(lake: DriverNode) -> None:
    """Each problem of the metadata is shown above the columns, with what corrects it."""
    with closing(sqlite3.connect(lake.data / "limnos.db")) as file, file:
        file.execute(
            "UPDATE document SET version = version + 1,"
            " body = CAST(replace(CAST(body AS text), '\"long\"', '\"decimal( 9 , 2 )\"') AS blob)"
            " WHERE node_id = (SELECT id FROM node WHERE name = 'flights')"
        )
        file.execute("UPDATE store SET epoch = epoch + 1")  # makes all views start empty

    visitor = ConsoleVisitor(lake).sign_in()

    for word in ("Some readers refuse this table", "decimal(9, 2)", "limnos table mend"):
        assert word in visitor.read(FLIGHTS).text
    assert "Some readers" not in visitor.read("/console/o/table/lake/main/raw/nyc/hops").text


def test_notice_of_a_restricted_table_names_the_masked_columns(lake: DriverNode) -> None:
    """The page of a table that is restricted for the reader names the masked columns, and the setting of clients."""
    path = f"{OWN}/metalakes/lake/objects/TABLE/main.raw.flights/restrictions/r"
    schema = lake.done("GET", "/iceberg/v1/lake.main/namespaces/raw/tables/flights")["metadata"]["schemas"][0]  # type: ignore[index]
    column = schema["fields"][0]["name"]
    grant(lake, "rita", "use_catalog use_schema select_table", kind="catalog", on="main")
    lake.done("PUT", path, {"masks": {column: "replace-with-null"}, "to": {"users": ["rita"]}})

    visitor = ConsoleVisitor(lake).sign_in("rita")
    page, connect = visitor.get(FLIGHTS).body.decode(), visitor.get(f"{FLIGHTS}?tab=connect").body.decode()

    assert f"values of {column} are masked" in page
    assert "scan-planning-mode=server" in page
    assert "Location" not in page
    assert "read-restricted" not in page
    assert "Location" in ConsoleVisitor(lake).sign_in().get(FLIGHTS).body.decode()
    assert [name for name in ICEBERG_CLIENTS if f'id="snippet-{name}"' in connect] == [*RESTRICTED_READERS]


def test_table_page_links_to_the_dashboards_that_show_it(admin: ConsoleVisitor) -> None:
    """The page of a table has a link to each dashboard of its namespace that names it, and to no other."""
    url = f"{OWN}/metalakes/lake/catalogs/main/dashboards/raw"
    for name, tables in (("delays", ["flights"]), ("noise", ["hops"])):
        body = {"name": name, "url": f"https://charts.example.com/{name}", "tables": tables}
        admin.node.done("POST", url, body)
    admin.node.done("POST", url, {"name": "draft", "tables": ["flights"]})

    page = admin.read("/console/o/table/lake/main/raw/flights")

    assert "https://charts.example.com/delays" in page.hrefs
    assert "Dashboard draft" in page.text
    assert "Dashboard noise" not in page.text
