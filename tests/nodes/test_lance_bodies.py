# SPDX-License-Identifier: Apache-2.0
"""A body of rows that stalls exactly after a batch, and a killed server: no row of the body is committed.

Arrow accepts a stream that ends there, and its rows are on disk when the server dies. They are not committed only
because the body was not declared complete. Tested with a storage-managed and a server-managed table.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import httpx2
import lance
import pyarrow as pa
import pytest

from tests.arrow_rows import ROWS, arrow
from tests.nodes.process import Process

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
KILLS = int(os.environ.get("LIMNOS_TEST_CUTS", "2"))
"""The number of kills of the server, alternately during a body for each of the two tables."""
BATCHES = 4
WITHIN_S = 300


class Target(NamedTuple):
    """A table that receives rows."""

    name: str
    location: Path

    def on_disk(self) -> set[str]:
        """Return the names of the data files, complete or not."""
        return {each.name for each in (self.location / "data").iterdir()}

    def held(self) -> tuple[int, int]:
        """Return the newest version and its rows, as read from the files."""
        dataset = lance.dataset(str(self.location))
        return dataset.version, dataset.count_rows()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that a test kills and restarts."""
    place = tmp_path_factory.mktemp("bodies")
    process = Process(place / "data", log=place / "node.log").start()
    try:
        yield process
    finally:
        process.stop()


def post_table_action(node: Process, name: str, action: str, body: bytes = b"{}") -> dict[str, Any]:
    """Send a request about a table that must succeed. Returns the answer."""
    url = f"{node.uri}/lance/v1/table/{quote(f'lance${name}', safe='')}/{action}"
    answer = httpx2.post(url, content=body, headers={"authorization": f"Bearer {node.token}"}, timeout=WITHIN_S)
    assert answer.status_code == 200, answer.text
    answer_body: dict[str, Any] = answer.json()
    return answer_body


def stream() -> tuple[bytes, list[int]]:
    """Return an Arrow stream of some batches, and the offsets at which the batches end."""
    sink, ends = pa.BufferOutputStream(), []
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        for _ in range(BATCHES):
            writer.write_table(ROWS)
            ends.append(sink.tell())
    return sink.getvalue().to_pybytes(), ends


def hanging(node: Process, target: Target, part: bytes) -> socket.socket:
    """Send a part of a body, and wait until some of its rows are on disk."""
    before, address = target.on_disk(), urlsplit(node.uri)
    head = (
        f"POST /lance/v1/table/lance%24{target.name}/insert HTTP/1.1\r\nhost: {address.netloc}\r\nauthorization: Bearer"
        f" {node.token}\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    wire = socket.create_connection((address.hostname, address.port))
    wire.sendall(head.encode() + b"%x\r\n%b\r\n" % (len(part), part))
    until = time.monotonic() + WITHIN_S
    while target.on_disk() <= before:
        assert time.monotonic() < until, "no row of the body was written"
        time.sleep(0.005)
    return wire


def test_server_killed_during_a_body_commits_nothing(node: Process) -> None:
    """A server that is killed while the body stalls after any number of batches commits no version and no row,
    according to the files and to the restarted server. A complete body is then accepted.
    """
    targets = []
    for name, properties in (("plain", b"{}"), ("kept", b'{"properties": {"managed_versioning": "true"}}')):
        location = str(post_table_action(node, name, "declare", properties)["location"]).removeprefix("file://")
        post_table_action(node, name, "insert", arrow())
        targets.append(Target(name, Path(location)))
    body, ends = stream()

    for number in range(KILLS):
        target = targets[number % 2]
        with closing(hanging(node, target, body[: ends[number % BATCHES]])):
            node.kill()
        node.start()
        assert target.held() == (1, len(ROWS))
        assert [each["version"] for each in post_table_action(node, target.name, "version/list")["versions"]] == [1]

    for target in targets:
        insert_answer = post_table_action(node, target.name, "insert", body)
        assert (insert_answer["version"], insert_answer["num_inserted_rows"]) == (2, BATCHES * len(ROWS))
        assert target.held() == (2, (BATCHES + 1) * len(ROWS))
    sys.stdout.write(f"server killed {KILLS} times behind a batch of a body: nothing of it committed\n")
