# SPDX-License-Identifier: Apache-2.0
"""A node without free file descriptors: requests that need one are 503 with that reason, and work again afterwards."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.rig import Rig
from tests.nodes.wire import OWN, PREFIX, namespace_body, namespace_path, table_body, table_path

LONG = f"select value {[1] * 40_000}"
"""A statement that a process parses."""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node on SQLite."""
    with Rig(tmp_path_factory.mktemp("descriptors"), None) as running:
        yield running


@contextmanager
def no_descriptors(rig: Rig) -> Iterator[None]:
    """Let the node open no more files and sockets."""
    pid = rig.node.running.pid
    used = max(int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()) + 1
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    free = sorted(set(range(used)) - {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()})
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min([*free, used]), before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.room("exchange")
def test_requests_without_descriptors_return_503(rig: Rig) -> None:
    """An export and a statement for a process are 503 and name the reason; cached reads go on."""
    tag = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(tag))
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    rig.admin.do("GET", table_path(tag, "t"))

    with no_descriptors(rig):
        answers = [
            rig.admin.ask("GET", f"{OWN}/metalakes/lake/export"),
            rig.admin.ask("POST", "/query/service", {"statement": LONG}),
        ]
        read = rig.admin.ask("GET", table_path(tag, "t"))

    assert [answer.status for answer in (*answers, read)] == [503, 503, 200], answers
    assert [answer.body for answer in answers if "out of file descriptors" not in str(answer.body)] == []
    assert rig.admin.ask("GET", f"{OWN}/metalakes/lake/export").status == 200
    assert rig.admin.ask("POST", "/query/service", {"statement": LONG}).status == 200
