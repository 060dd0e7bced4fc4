# SPDX-License-Identifier: Apache-2.0
"""A disk with input/output errors, on SQLite: requests are refused with that reason, and work goes on afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.mutations import properties_of
from tests.faults.rig import Rig
from tests.faults.store_integrity import complaints
from tests.nodes.wire import (
    GRAVITINO,
    OWN,
    PREFIX,
    WireAnswer,
    namespace_body,
    namespace_path,
    properties_body,
    table_body,
    table_path,
)

IN_REACH = str(Path(__file__).parent / "disk")
MARK = "broken"
READY_WITHIN_S = 60


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node on SQLite, whose disk breaks while the file MARK exists."""
    directory = tmp_path_factory.mktemp("broken")
    env = {"PYTHONPATH": IN_REACH, "LIMNOS_TEST_BROKEN": str(directory / MARK)}
    with Rig(directory, None, env=env) as running:
        yield running


@pytest.fixture
def home(rig: Rig) -> str:
    """A namespace with a table."""
    tag = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(tag))
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    return tag


@contextmanager
def broken(rig: Rig, *accesses: str) -> Iterator[None]:
    """Let reads or writes of the store's file fail with EIO."""
    mark = rig.directory / MARK
    mark.write_text(" ".join(accesses))
    try:
        yield
    finally:
        mark.unlink()


def ask_without_cached_pages(rig: Rig, method: str, path: str, body: object) -> WireAnswer:
    """Ask after a commit of another program, which makes the node read pages again that it has cached."""
    rig.sql("UPDATE node_seen SET clock_offset_ms = clock_offset_ms + 1")
    return rig.admin.ask(method, path, body)


@pytest.mark.room("exchange")
def test_read_errors_return_503_with_the_reason(rig: Rig, home: str) -> None:
    """While reads fail with EIO, each request is 503 and says so, a commit too: nothing was committed. Afterwards
    everything works.
    """
    requests: list[tuple[str, str, object | None]] = [
        ("GET", table_path(home, "t"), None),
        ("GET", f"{GRAVITINO}/catalogs/main/schemas/{home}/tables/t", None),
        ("GET", f"{OWN}/whoami", None),
        ("GET", f"{OWN}/metalakes/lake/export", None),
        ("POST", table_path(home, "t"), properties_body(mark="never")),
        ("POST", f"{PREFIX}/namespaces", namespace_body(f"{home}_never")),
        ("POST", "/query/service", {"statement": "select value 1"}),
    ]

    with broken(rig, "read"):
        answers = [ask_without_cached_pages(rig, *request) for request in requests]
        ready = rig.admin.ask("GET", "/api/health/ready")

    bodies = [str(answer.body) for answer in answers]
    assert [answer.status for answer in answers] == [503] * len(requests), bodies
    assert [text for text in bodies if "input/output error" not in text or str(rig.directory) in text] == []
    assert "CommitStateUnknown" not in bodies[4]
    assert ready.status == 503
    assert rig.admin.ask("GET", table_path(home, "t")).status == 200
    rig.admin.do("POST", table_path(home, "t"), properties_body(mark="after"))
    assert properties_of(rig, home, "t")["mark"] == "after"
    assert complaints(rig.database) == []


def test_write_errors_return_503_until_writes_succeed(rig: Rig, home: str) -> None:
    """While writes fail with EIO, a write is 503 with that reason, and reads go on. The node is not ready, until
    writes succeed again.
    """
    with broken(rig, "write"):
        commit = rig.admin.ask("POST", table_path(home, "t"), properties_body(mark="never"))
        create = rig.admin.ask("POST", f"{PREFIX}/namespaces", namespace_body(f"{home}_never"))
        read = rig.admin.ask("GET", table_path(home, "t"))
        unready = [rig.admin.ask("GET", "/api/health/ready") for _ in range(3)]

    assert [commit.status, create.status, read.status] == [503, 503, 200]
    assert [each.status for each in unready] == [503] * 3
    assert "can be read, but not written" in str(unready[0].body)
    until = time.monotonic() + READY_WITHIN_S  # by its own heartbeats: nobody else writes
    while rig.admin.ask("GET", "/api/health/ready").status != 200:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert [each.message for each in (commit, create) if "input/output error" not in each.message] == []
    assert [each.message for each in (commit, create) if "full" in each.message] == []
    assert rig.admin.ask("HEAD", namespace_path(f"{home}_never")).status == 404
    assert "mark" not in properties_of(rig, home, "t")
