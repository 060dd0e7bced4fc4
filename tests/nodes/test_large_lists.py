# SPDX-License-Identifier: Apache-2.0
"""Large lists: a namespace that is paged through while a client writes to it, and lists of all users on a new node.

`conformance/run proofs` uses 110,000 names and 20,000 roles, users and groups; the default is a small number.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from limnos.store.schema import metadata
from tests.faults.measurements import note, timed
from tests.faults.rig import Rig
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import (
    GRAVITINO,
    PREFIX,
    Wire,
    namespace_body,
    namespace_path,
    rights_body,
    rights_path,
    table_body,
    table_path,
)

IS_WHOLE = int(os.environ.get("LIMNOS_TEST_ROUNDS", "0")) >= 1000
NAMES = 110_000 if IS_WHOLE else 3_000
EVERYBODY = 20_000 if IS_WHOLE else 1_000
PAGE = 1_000
FAR = 1 << 52
"""No ids from here on are assigned by the store."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One node, for each database."""
    cluster = PostgresCluster() if request.param == "postgresql" else None
    try:
        with Rig(tmp_path_factory.mktemp("masses"), cluster.database() if cluster else None) as running:
            yield running
    finally:
        if cluster is not None:
            cluster.stop()


def multiply(rig: Rig, table: str, where: str, *, count: int, far: int = FAR, **changed: str) -> None:
    """Copy a row many times while no node runs. SQL expressions give the changed columns, with a free id as `i`."""
    columns = metadata.tables[table].columns.keys()
    numbers = (
        f"WITH RECURSIVE numbers(i) AS (SELECT {far} UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < {far + count})"
    )
    values = ", ".join(changed.get(column, f"{table}.{column}") for column in columns)
    rig.sql(f"INSERT INTO {table} ({', '.join(columns)}) {numbers} SELECT {values} FROM {table}, numbers WHERE {where}")


def number(rig: Rig, statement: str) -> int:
    """Read one number."""
    return int(str(rig.rows(statement)[0][0]))


def walk(wire: Wire, space: str) -> list[str]:
    """Page through the tables of a namespace. Each page must be answered without a refusal."""
    table_names: list[str] = []
    token: object = ""
    while token is not None:
        page = wire.ask("GET", f"{namespace_path(space)}/tables?pageSize={PAGE}&pageToken={token}")
        assert page.status == 200, page
        names = page.body["identifiers"]
        assert isinstance(names, list)
        table_names += [each["name"] for each in names]
        token = page.body.get("next-page-token")
    return table_names


def test_lists_have_no_gaps_during_concurrent_creates(rig: Rig) -> None:
    """While a client creates tables in a namespace, both the whole list and the pages are answered without a refusal or
    a gap.
    """
    space = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(space))
    rig.admin.do("POST", f"{namespace_path(space)}/tables", table_body("first"))
    one = number(
        rig, f"SELECT id FROM node WHERE name = 'first' AND parent_id = (SELECT id FROM node WHERE name = '{space}')"
    )
    rig.node.stop()
    multiply(rig, "node", f"node.id = {one}", count=NAMES, id="i", name="'t' || i")
    rig.start()
    done = threading.Event()
    create_statuses: list[int] = []

    def write() -> None:
        wire = Wire(rig.node.uri, user="admin")
        while not done.is_set():
            create_statuses.append(
                wire.ask("POST", f"{namespace_path(space)}/tables", table_body(f"made{len(create_statuses)}")).status
            )
        wire.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        whole, whole_s = timed(lambda: rig.admin.ask("GET", f"{namespace_path(space)}/tables"))
        walked: list[str] = []
        _, walk_s = timed(lambda: walked.extend(walk(rig.admin, space)))
        _, load_s = timed(lambda: rig.admin.ask("GET", table_path(space, "first")))
    finally:
        done.set()
        writer.join()

    label = "sqlite" if rig.is_sqlite else "postgresql"
    note(**{f"{label}_list_of_{NAMES}_beside_a_writer": whole_s, f"{label}_pages_of_{NAMES}_beside_a_writer": walk_s})
    note(**{f"{label}_load_beside_them": load_s})
    assert set(create_statuses) == {200}
    assert whole.status == 200
    planted = [f"t{FAR + each}" for each in range(NAMES)]
    assert [each for each in walked if each.startswith("t")] == planted
    assert sum(each["name"].startswith("t") for each in whole.body["identifiers"]) == NAMES  # type: ignore[attr-defined]


def test_long_lists_are_complete_on_node_with_empty_view(rig: Rig) -> None:
    """A node with an empty view lists the details of all users, groups and roles, and all roles on an object, whatever
    their number.
    """
    for kind in ("users", "groups"):
        rig.admin.do("POST", f"{GRAVITINO}/{kind}", {"name": "p"})
    rig.admin.do("POST", f"{GRAVITINO}/roles", {"name": "r", "properties": {}, "securableObjects": []})
    rig.admin.do("PUT", rights_path("r", "catalog", "main", "grant"), rights_body("use_catalog"))
    for kind in ("users", "groups"):
        rig.admin.do("PUT", f"{GRAVITINO}/permissions/{kind}/p/grant", {"roleNames": ["r"]})
    rig.node.stop()
    for far, (one,) in enumerate(rig.rows("SELECT id FROM principal WHERE name = 'p'"), start=1):
        ids = {"far": far * FAR, "count": EVERYBODY}
        multiply(rig, "principal", f"principal.id = {one}", id="i", name="'p' || i", **ids)  # type: ignore[arg-type]
        multiply(rig, "role_member", f"principal_id = {one}", principal_id="i", **ids)  # type: ignore[arg-type]
    role = number(rig, "SELECT id FROM role WHERE name = 'r'")
    multiply(rig, "role", f"role.id = {role}", id="i", name="'r' || i", count=EVERYBODY)
    multiply(rig, "access_grant", f"role_id = {role}", role_id="i", count=EVERYBODY)

    label, listings = "sqlite" if rig.is_sqlite else "postgresql", []
    for path, what in (
        ("users?details=true", "users"),
        ("groups?details=true", "groups"),
        ("roles", "names"),
        ("objects/catalog/main/roles", "names"),
    ):
        rig.start()
        answer, seconds = timed(lambda path=path: rig.admin.ask("GET", f"{GRAVITINO}/{path}"))  # type: ignore[misc]
        entries = answer.body.get(what)
        listings.append((answer.status, len(entries) if isinstance(entries, list) else answer.body))
        note(**{f"{label}_{EVERYBODY}_{path.partition('?')[0].replace('/', '_')}": seconds})
        rig.node.stop()

    assert [status for status, _ in listings] == [200] * 4
    assert all(isinstance(count, int) and count > EVERYBODY for _, count in listings), listings
