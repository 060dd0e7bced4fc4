# SPDX-License-Identifier: Apache-2.0
"""Checks of chDB in catalogs other than the default one: a second catalog, and one in an object store.

May import this package's archives, checks and the runner's end of a driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformance.engines.checks import Check, Checks, Lake
from conformance.engines.remote import Remote, hosted
from conformance.engines.world import REMOTE, place_of, witness_of
from limnos.client import Client


def run(lake: Lake) -> list[Check]:
    """Drop in another catalog without effect on the default one; read from an object store that is not Amazon's."""
    with Client(lake.uri, token=lake.admin) as client:
        client.catalogs.create("other", properties={"warehouse": f"file://{lake.work}/data/warehouse/other"})
        client.namespaces.create("other.open")
    witness_of(lake, "other").create(["open"], "t")
    with _started(lake, "other") as chdb:
        checks = Checks(chdb.title)
        checks.expect_refusal(
            "DROP TABLE forgets its prefix", lambda: chdb.ask("drop", ["open"], "t"), "Without a catalog's prefix"
        )
    checks.expect(
        "the default catalog's table is there still", lambda: witness_of(lake, "main").exists(["open"], "t"), True
    )
    with _started(lake, REMOTE) as chdb:
        # It requests the table's folder below the table's folder from such a store.
        checks.expect_refusal(
            "a store with an address of its own",
            lambda: chdb.ask("read", ["open"], "t", ["id"]),
            "HTTP response code: 404",
        )
    return checks.made


@contextmanager
def _started(lake: Lake, catalog: str) -> Iterator[Remote]:
    command, environment = hosted("chdb", "chdb")()
    remote = Remote(command=command, environment=environment, log=lake.work / "chdb.log")
    try:
        remote.start(place_of(lake, catalog, folder=f"chdb-deeper-{catalog}"))
        remote.ask("be", "admin")
        yield remote
    finally:
        remote.stop()
