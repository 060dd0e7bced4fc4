# SPDX-License-Identifier: Apache-2.0
"""A store with slow writes: readers do not wait, writers get a late answer, and every answer is true."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg
import pytest

from tests.faults.mutations import properties_of, table_create
from tests.faults.rig import Rig
from tests.faults.store_integrity import complaints
from tests.nodes.wire import PREFIX, Wire, namespace_body, namespace_path, properties_body, table_body, table_path

SLOW_S = 0.7
"""Seconds by which a write is delayed."""
DEADLINE_S = "0.5"
"""Deadline of requests to the node of the second test, in seconds."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def hasty_rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One node with a short request timeout."""
    database = request.getfixturevalue("cluster").database() if request.param == "postgresql" else None
    directory = tmp_path_factory.mktemp(f"hasty-{request.param}")
    with Rig(directory, database, env={"LIMNOS__SERVER__REQUEST_TIMEOUT_S": DEADLINE_S}) as running:
        yield running


@contextmanager
def delay_writes(rig: Rig) -> Iterator[None]:
    """Delay every write to the catalogs: by the file's write lock, or by locks on the clocks' rows."""
    if rig.is_sqlite:
        with closing(sqlite3.connect(rig.database, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
    else:
        with psycopg.connect(rig.database) as connection:
            connection.execute("SELECT 1 FROM clock WHERE zone > 0 FOR UPDATE")
            yield
            connection.rollback()


def test_reads_do_not_wait_for_slow_writes(rig: Rig) -> None:
    """While writes are delayed, the same node answers reads. Afterwards the writes are executed and acknowledged."""
    case = table_create(rig)
    writer = Wire(rig.node.uri, user="admin")

    with ThreadPoolExecutor(1) as thread, delay_writes(rig):
        written = thread.submit(writer.ask, case.method, case.path, case.body)
        time.sleep(SLOW_S)
        read = [rig.admin.ask("GET", f"{PREFIX}/namespaces").status for _ in range(10)]
        waited = not written.done()
        there_meanwhile = case.is_done()

    assert read == [200] * 10
    assert waited
    assert not there_meanwhile
    assert written.result().status == 200
    assert case.is_done()
    assert complaints(rig.database) == []
    writer.close()


def test_late_write_returns_503_only_if_never_executed(hasty_rig: Rig) -> None:
    """A write that exceeds the node's deadline gets 503 only if it is never executed, and else 500 for an unknown
    state.
    """
    rig = hasty_rig
    tag = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(tag))
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    wires = [Wire(rig.node.uri, user="admin") for _ in range(3)]
    sent = (
        ("POST", f"{PREFIX}/namespaces", namespace_body(tag, "n")),
        ("POST", f"{namespace_path(tag)}/tables", table_body("u")),
        ("POST", table_path(tag, "t"), properties_body(mark="x")),
    )

    with delay_writes(rig):
        for wire, request in zip(wires, sent, strict=True):
            wire.send(*request)
        answers = [wire.receive() for wire in wires]
    while rig.admin.ask("POST", f"{PREFIX}/namespaces", namespace_body(rig.tag())).status != 200:
        time.sleep(0.05)  # writes are executed in order: the earlier ones have ended

    executed_writes = (
        rig.admin.ask("HEAD", namespace_path(tag, "n")).status == 204,
        rig.admin.ask("HEAD", table_path(tag, "u")).status == 204,
        "mark" in properties_of(rig, tag, "t"),
    )
    for answer, done in zip(answers, executed_writes, strict=True):
        assert answer.status in (500, 503)
        assert answer.status == 500 or not done, f"reported as not done although it was: {answer}"
    assert complaints(rig.database) == []
    for wire in wires:
        wire.close()
