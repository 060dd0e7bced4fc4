"""What the engines come upon: a server with access control on, a catalog on a disk and one in an object store, a reader with few rights.

May import the client, the demo's server starter, the tests' object store and the witness.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.engines.checks import Lake
from conformance.engines.driver import Place
from conformance.engines.drivers.pyiceberg_driver import Engine as Witness
from limnos.client import Client
from limnos.pipeline.demo.server import running_server
from tests.objects import BUCKET, Objects, authorized

REMOTE = "far"
"""The catalog whose files are in the object store."""
WRONG = "limnos_wrong"


@contextmanager
def world(work: Path, *, log: Path) -> Iterator[tuple[Lake, Objects]]:
    """The server, furnished, and the store; both end with the body."""
    with authorized() as store:
        flags = ("--allow-root", f"s3://{BUCKET}", "--allow-endpoint", store.uri)
        with running_server(work / "data", log=log, flags=flags) as server:
            yield furnish(server.uri, work, store), store


def furnish(uri: str, work: Path, store: Objects) -> Lake:
    """Make in both catalogs the namespaces `open` and `closed` with a table `t` of two rows each, and a reader of `open`."""
    token = (work / "data" / "admin.token").read_text().strip()
    with Client(uri, token=token) as client:
        client.catalogs.create(REMOTE, properties={**store.properties, "warehouse": f"s3://{BUCKET}/{REMOTE}"})
        client.users.add("rita")
        client.roles.create("readers")
        for catalog in ("main", REMOTE):
            for name in ("open", "closed", "crossed"):
                client.namespaces.create(f"{catalog}.{name}")
            client.roles.allow("readers", ["use_catalog"], on=catalog, kind="catalog")
            client.roles.allow("readers", ["use_schema", "select_table"], on=f"{catalog}.open", kind="namespace")
        client.roles.grant_to_user("rita", ["readers"])
        reader = client.tokens.create(user="rita").token
    lake = Lake(uri=uri, admin=token, reader=reader, work=work)
    for catalog in ("main", REMOTE):
        witness = witness_of(lake, catalog)
        for space in ("open", "closed"):
            witness.create([space], "t")
            witness.append([space], "t", [[1, "Oslo"], [2, "Rome"]])
    return lake


def place_of(lake: Lake, catalog: str, *, folder: str) -> Place:
    """A catalog as an engine finds it."""
    tokens = {"admin": lake.admin, "reader": lake.reader, "wrong": WRONG}
    return Place(
        uri=lake.iceberg, warehouse=catalog, tokens=tokens, work=lake.work / folder, is_remote=catalog == REMOTE
    )


def witness_of(lake: Lake, catalog: str) -> Witness:
    """The client that looks at what engines did."""
    witness = Witness()
    witness.start(place_of(lake, catalog, folder="witness"))
    witness.be("admin")
    return witness
