# SPDX-License-Identifier: Apache-2.0
"""The requests of a third table of refusals, `source_refusals.md`: for connector catalogs, over a real PostgreSQL.

`python -m tests.rooms.gravitino.http.source_refusals` rewrites the table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from limnos.config.storage import SourcesSection
from tests.backends import PostgresServer, postgres_server
from tests.bridges import bridge_to
from tests.http import refusal_tables
from tests.http.driver import API, DriverNode, node_at
from tests.http.refusal_tables import RefusalCase, own

TABLE = Path(__file__).with_suffix(".md")
_USE = "use_catalog use_schema"
CALLERS: dict[str, str] = {
    "nobody": "",
    "stranger": "",
    "member": "",
    "visitor": "use_catalog",
    "uses": _USE,
    "maker": "use_catalog create_schema",
    "creator": f"{_USE} create_table",
    "reader": f"{_USE} select_table",
    "writer": f"{_USE} modify_table",
    "keyless": "use_schema select_table modify_table",
    "granter": "manage_grants",
    "table_owner": _USE,
    "keeper": "use_catalog",
    "owner": "",
    "laker": "",
    "admin": "",
}
"""Each column: the caller's privileges on the metalake. `table_owner` owns the tables, `keeper` the schemas, `owner`
the catalog.
"""
SCHEMAS = "/metalakes/{m}/catalogs/{c}/schemas"
TABLES = f"{SCHEMAS}/{{s}}/tables"
COLUMNS = [{"name": "id", "type": "long"}]
COMMENT = {"updates": [{"@type": "updateComment", "newComment": "c"}]}


@contextmanager
def node_over(folder: Path, server: PostgresServer) -> Iterator[DriverNode]:
    """Return a node with a catalog `shop` of a separate PostgreSQL database."""
    database = server.empty_database()
    with psycopg.connect(database) as connection:
        name, user = connection.info.dbname, connection.info.user
    with bridge_to(database) as bridge:
        sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{bridge.port}",), timeout_s=30.0)
        with node_at(folder, sources=sources) as node:
            properties = {
                "jdbc-url": f"jdbc:postgresql://127.0.0.1:{bridge.port}/{name}",
                "jdbc-user": user,
                "jdbc-password": "word",
            }
            body = {"name": "shop", "type": "relational", "provider": "jdbc-postgresql", "properties": properties}
            node.done("POST", f"{API}/lake/catalogs", body)
            yield node


def prepare(node: DriverNode) -> None:
    """Create all users and objects of the rows; the table `bare` has no placeholder node."""
    schemas = f"{API}/lake/catalogs/shop/schemas"
    refusal_tables.hire(node, CALLERS)
    for name in ("there", *(f"drop_{who}" for who in CALLERS)):
        node.done("POST", schemas, {"name": name})
        own(node, "keeper", "SCHEMA", f"shop.{name}")
    for name in ("t", *(f"{verb}_{who}" for verb in ("rename", "drop") for who in CALLERS)):
        node.done("POST", f"{schemas}/there/tables", {"name": name, "columns": COLUMNS})
        own(node, "table_owner", "TABLE", f"shop.there.{name}")
    refusal_tables.endow(node, CALLERS, catalog="shop")


def _case(route: str, thing: str, *names: str, body: object = None, query: str = "") -> RefusalCase:
    return refusal_tables.case(route, thing, *names, root="/api", body=body, query=query)


def cases(_node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of the table for one caller."""
    at = ("lake", "shop")
    yield _case(f"GET {SCHEMAS}", "of a source", *at)
    yield _case(f"POST {SCHEMAS}", "of a source", *at, body={"name": f"new_{who}"})
    yield _case(f"POST {SCHEMAS}", "taken name", *at, body={"name": "there"})
    for name, thing in (("there", "schema"), ("gone", "no schema")):
        yield _case(f"GET {SCHEMAS}/{{s}}", thing, *at, name)
        yield _case(f"PUT {SCHEMAS}/{{s}}", thing, *at, name, body={"updates": []})
        yield _case(f"DELETE {SCHEMAS}/{{s}}", thing, *at, name if name == "gone" else f"drop_{who}")
        yield _case(f"GET {TABLES}", f"of {thing}", *at, name)
        yield _case(f"POST {TABLES}", f"in {thing}", *at, name, body={"name": f"new_{who}", "columns": COLUMNS})
    yield _case(f"POST {TABLES}", "taken name", *at, "there", body={"name": "t", "columns": COLUMNS})
    for name, thing in (("t", "table"), ("gone", "no table")):
        one = f"{TABLES}/{{t}}"
        missing = name == "gone"
        yield _case(f"GET {one}", thing, *at, "there", name)
        yield _case(f"GET {one}", f"{thing}, to modify", *at, "there", name, query="?privileges=MODIFY_TABLE")
        yield _case(f"GET {one}/partitions", thing, *at, "there", name)
        yield _case(f"PUT {one}", thing, *at, "there", name, body=COMMENT)
        renamed = {"updates": [{"@type": "rename", "newName": f"renamed_{who}"}]}
        yield _case(f"PUT {one}", f"{thing}, rename", *at, "there", name if missing else f"rename_{who}", body=renamed)
        yield _case(f"DELETE {one}", thing, *at, "there", name if missing else f"drop_{who}")
        yield _case(f"DELETE {one}", f"{thing}, purge", *at, "there", name, query="?purge=true")
        yield _case("GET /metalakes/{m}/owners/{type}/{f}", thing, "lake", "table", f"shop.there.{name}")
        yield _case(
            "PUT /metalakes/{m}/owners/{type}/{f}",
            thing,
            "lake",
            "table",
            f"shop.there.{name}",
            body={"name": "table_owner", "type": "USER"},
        )
        yield _case(f"GET {SCHEMAS}/{{s}}/views", f"beside {thing}", *at, "there" if name == "t" else "gone")


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as place,
        postgres_server() as database,
        node_over(Path(place), database) as running_node,
    ):
        prepare(running_node)
        refusal_tables.keep(TABLE, running_node, cases=cases, callers=CALLERS)
