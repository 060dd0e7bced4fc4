# SPDX-License-Identifier: Apache-2.0
"""The engines' environment: a server with access control, catalogs on disk and in an object store, a reader.

May import the client, the demo's server starter, the tests' object store and the witness.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from conformance.engines import restricted
from conformance.engines.checks import Lake
from conformance.engines.driver import Place
from conformance.engines.drivers.pyiceberg_driver import Engine as Witness
from conformance.engines.page import PROGRAM
from examples.demo.server import running_server
from limnos.client import Client
from tests.objects import BUCKET, ObjectStoreServer, authorized

REMOTE = "far"
"""The catalog in the object store."""
CATALOGS = ("main", REMOTE)
WRONG = "limnos_wrong"
SESSION_S = 60
"""Lifetime in seconds of a service account's token: short enough that a client must refresh it during a run."""

_OVER_S = 5


@contextmanager
def world(work: Path, *, log: Path) -> Iterator[tuple[Lake, ObjectStoreServer]]:
    """Run the prepared server and the store for the body of a `with`."""
    with authorized() as store:
        settings = work / "lake.toml"
        settings.write_text(f"[access]\nsession_s = {SESSION_S}\n", encoding="utf-8")
        flags = ("--config", str(settings), "--allow-root", f"s3://{BUCKET}", "--allow-endpoint", store.uri)
        with running_server(work / "data", log=log, flags=flags) as server:
            yield furnish(server.uri, work, store), store


def furnish(uri: str, work: Path, store: ObjectStoreServer) -> Lake:
    """Create in both catalogs the namespaces `open` and `closed` with a table `t` of two rows each, and a reader of
    `open`, and of `outer.inner` in `main`, whose parent the reader has no right on.
    """
    token = (work / "data" / "admin.token").read_text().strip()
    with Client(uri, token=token) as client:
        client.catalogs.create(REMOTE, properties={**store.properties, "warehouse": f"s3://{BUCKET}/{REMOTE}"})
        for user in ("rita", PROGRAM):
            client.users.add(user)
        client.roles.create("readers")
        for catalog in CATALOGS:
            for name in ("open", "closed", "crossed"):
                client.namespaces.create(f"{catalog}.{name}")
            client.roles.allow("readers", ["use_catalog"], on=catalog, kind="catalog")
            client.roles.allow("readers", ["use_schema", "select_table"], on=f"{catalog}.open", kind="namespace")
        for name in ("outer", "outer.inner", "outer.hidden"):
            client.namespaces.create(f"main.{name}")
        client.roles.allow("readers", ["use_schema", "select_table"], on="main.outer.inner", kind="namespace")
        for user in ("rita", PROGRAM):
            client.roles.grant_to_user(user, ["readers"])
        program = f"{PROGRAM}:{client.service_accounts.create_secret(PROGRAM).client_secret}"
        reader = client.tokens.create(user="rita").token
        lake = Lake(uri=uri, admin=token, reader=reader, work=work, program=program, store=store.uri)
        for catalog in CATALOGS:
            witness = witness_of(lake, catalog)
            for space in ("open", "closed"):
                witness.create([space], "t")
                witness.append([space], "t", [[1, "Oslo"], [2, "Rome"]])
        return replace(lake, restricted=restricted.furnish(client, {each: witness_of(lake, each) for each in CATALOGS}))


def outlive(began: float) -> None:
    """Wait until a service account's token that was issued at the given monotonic time has expired."""
    time.sleep(max(0.0, began + SESSION_S + _OVER_S - time.monotonic()))


def place_of(lake: Lake, catalog: str, *, folder: str) -> Place:
    """Return a catalog's place for an engine."""
    tokens = {"admin": lake.admin, "reader": lake.reader, "wrong": WRONG, "program": lake.program}
    tokens[restricted.CALLER] = lake.restricted
    return Place(
        uri=lake.iceberg,
        warehouse=catalog,
        tokens=tokens,
        work=lake.work / folder,
        is_remote=catalog == REMOTE,
        store=lake.store,
    )


def witness_of(lake: Lake, catalog: str) -> Witness:
    """Return the client that verifies the engines' effects."""
    witness = Witness()
    witness.start(place_of(lake, catalog, folder="witness"))
    witness.be("admin")
    return witness
