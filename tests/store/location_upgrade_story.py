# SPDX-License-Identifier: Apache-2.0
"""Generates a store of a release without the register of locations, with overlapping locations: `python -m
tests.store.location_upgrade_story`.

This release refuses to create such locations, so the script runs with the code of an earlier release (commit b32e1d9).
It writes `older_places/KIND.sql`, the store as SQL. `LAKE` stands for the directory of all files. The reader replaces
it by a path of the same length (`restored`), because some columns contain lengths.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import build
from limnos.config.access import AccessSection
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection, IcebergSection, Settings
from limnos.config.storage import StorageSection
from tests.backends import PostgresServer, postgres_server
from tests.http.driver import API, DriverNode
from tests.http.iceberg.wire import SCHEMA
from tests.store.upgrade_story import postgres_dump, sqlite_dump

FOLDER = Path(__file__).with_name("older_places")
LAKE = "/tmp/limnos-places-XXXXXXXX"
OPENS = {
    "s3-remote-signing-enabled": "true",
    "credential-providers": "s3-token",
    "s3-role-arn": "arn:aws:iam::123456789012:role/lake",
}
"""Properties of a catalog that vends credentials and signs requests."""
CATALOGS = f"{API}/lake/catalogs"


def make_catalog(node: DriverNode, name: str, provider: str, *, metalake: str = "lake", **properties: str) -> None:
    """Create a catalog with a schema `s`."""
    kind = "fileset" if provider == "fileset" else "relational"
    body = {"name": name, "type": kind, "properties": properties}
    node.done("POST", f"{API}/{metalake}/catalogs", body | ({} if kind == "fileset" else {"provider": provider}))
    if "lance-directory" not in properties:
        node.done("POST", f"{API}/{metalake}/catalogs/{name}/schemas", {"name": "s"})


def make_table(node: DriverNode, catalog: str, name: str, location: str, **properties: str) -> None:
    """Create a table at a location."""
    body = {"name": name, "schema": SCHEMA, "location": location, "properties": properties}
    node.done("POST", f"/iceberg/v1/{catalog}/namespaces/s/tables", body)


def tell(node: DriverNode, lake: str) -> None:
    """Create locations that break each rule, and one object of each kind that breaks none."""
    root = f"file://{lake}"
    make_catalog(node, "sales", "lakehouse-iceberg", warehouse=f"{root}/sales", **OPENS)
    make_table(node, "lake.sales", "orders", f"{root}/sales/orders")
    make_table(
        node, "lake.sales", "writes_into", f"{root}/sales/own", **{"write.data.path": f"{root}/sales/orders/data"}
    )
    make_catalog(node, "rooted", "lakehouse-iceberg", warehouse=f"{root}/rooted", **OPENS)
    make_table(node, "lake.rooted", "old", f"{root}/rooted/old")
    make_catalog(node, "files", "fileset", **{"allowed-locations": root}, **OPENS)
    for name, location in (("over", f"{root}/sales/orders"), ("apart", f"{root}/free/apart")):
        body = {"name": name, "type": "EXTERNAL", "storageLocation": location}
        node.done("POST", f"{CATALOGS}/files/schemas/s/filesets", body)
    make_catalog(node, "shown", "lakehouse-generic", **{"lance-directory": f"{root}/sales"})
    node.done("POST", API, {"name": "pond"})
    make_catalog(node, "ice", "lakehouse-iceberg", metalake="pond", warehouse=f"{root}/both", **OPENS)
    make_catalog(node, "both", "lakehouse-iceberg", warehouse=f"{root}/both", **OPENS)
    make_table(node, "lake.both", "mine", f"{root}/both/mine")
    make_table(node, "pond.ice", "theirs", f"{root}/both/theirs")
    # From here on, the catalog creates new tables in the directory of this table.
    update = {"@type": "setProperty", "property": "warehouse", "value": f"{root}/rooted/old"}
    node.done("PUT", f"{CATALOGS}/rooted", {"updates": [update]})


def restored(text: str, *, lake: str, was: str = LAKE) -> str:
    """Return the SQL of a store whose files are at another path of the same length.

    Raises ValueError for another length.
    """
    if len(lake) != len(was):
        raise ValueError(f"{lake} has not the length of {was}")
    for spelled in (str, lambda path: path.encode().hex(), lambda path: path.encode().hex().upper()):
        text = text.replace(spelled(was), spelled(lake))
    return text


def settings_of(lake: str, database: str | None) -> Settings:
    """Return the settings of a server whose data and files are in one directory."""
    return Settings(
        server=ServerSection(data=f"{lake}/data"),
        access=AccessSection(authentication="simple"),
        database=DatabaseSection.model_validate({"url": database}),
        storage=StorageSection(allowed_roots=(f"file://{lake}",)),
        iceberg=IcebergSection(verify_metadata_file="never"),
    )


@contextmanager
def serving(settings: Settings) -> Iterator[DriverNode]:
    """Serve in process, after the complete startup."""
    with asyncio.Runner() as runner:
        built = build(settings)
        try:
            runner.run(bootstrap(built.services, settings))
            yield DriverNode(built=built, data=Path(settings.server.data), runner=runner)
        finally:
            runner.run(built.close())


def write(kind: str, server: PostgresServer | None) -> None:
    """Generate a new store of a kind, and write it."""
    address = None if server is None else server.empty_database()
    lake = tempfile.mkdtemp(prefix=LAKE.rpartition("/")[2].rstrip("X"), dir=LAKE.rpartition("/")[0])
    data = Path(lake, "data")
    data.mkdir()
    with serving(settings_of(lake, address)) as node:
        tell(node, lake)
    text = sqlite_dump(data) if server is None else postgres_dump(server, str(address))
    (FOLDER / f"{kind}.sql").write_text(restored(text, lake=LAKE, was=lake), encoding="utf-8")


def main() -> int:
    """Write both stores."""
    FOLDER.mkdir(exist_ok=True)
    with postgres_server() as server:
        write("postgres", server)
    write("sqlite", None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
