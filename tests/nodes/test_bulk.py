# SPDX-License-Identifier: Apache-2.0
"""A bulk job whose server and whose client are killed in the middle: continued by its name, nothing is doubled."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.client import Client
from tests.faults.store_integrity import complaints
from tests.integration.live import LIMNOS
from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster

pytestmark = pytest.mark.heavy
TABLES = int(os.environ.get("LIMNOS_TEST_BULK", "900"))
"""The number of tables that the job registers; half as many items are wrong, and as many link a version."""
KILLS = 4


@pytest.fixture(params=["sqlite", "postgresql"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    """A server on each store that a test kills and restarts. Its catalogs may have tables below `ext`."""
    cluster = PostgresCluster() if request.param == "postgresql" else None
    allowed = {"LIMNOS__STORAGE__ALLOWED_ROOTS": f"file://{tmp_path}/ext"}
    database = cluster.database() if cluster else None
    process = Process(tmp_path / "data", log=tmp_path / "node.log", database=database, env=allowed).start()
    try:
        yield process
    finally:
        process.stop()
        if cluster is not None:
            cluster.stop()


def write_job(client: Client, place: Path) -> Path:
    """Write the metadata files of tables, and the file of a job of which each third item is wrong."""
    client.catalogs.alter("main", updates={"allowed-locations": f"file://{place}/ext"})
    client.catalogs.create("ml", type="model")
    client.namespaces.create("main.a")
    fields = [{"id": 1, "name": "id", "type": "long", "required": False}]
    create = {"do": "create-table", "path": ["a", "model"], "schema": {"type": "struct", "fields": fields}}
    client.transactions.run("main", [create])
    document = client.tables.load("main.a.model").metadata
    created = [{"do": "create-namespace", "path": ["ml", "s"]}, {"do": "create-model", "path": ["ml", "s", "m"]}]
    lines = [json.dumps(each) for each in created]
    for number in range(TABLES):
        base = place / "ext" / f"t{number}"
        (base / "metadata").mkdir(parents=True)
        file = base / "metadata" / "0-x.metadata.json"
        content = {**document, "table-uuid": str(uuid.uuid4()), "location": f"file://{base}"}
        file.write_text(json.dumps(content, separators=(",", ":")))
        item = {"do": "register-table", "path": ["main", "a", f"t{number}"], "metadata_location": f"file://{file}"}
        lines.append(json.dumps(item))
        if number % 2 == 0:
            link = {"do": "link-model-version", "path": ["ml", "s", "m"], "uris": {"u": f"s3://b/{number}"}}
            lines.append(json.dumps(link))
        else:
            lines.append(json.dumps({**item, "path": ["main", "gone", f"t{number}"]}))
    path = place / "job.ndjson"
    path.write_text("\n".join(lines) + "\n")
    return path


def start_job(node: Process, file: Path) -> subprocess.Popen[str]:
    """Start the command that executes the job."""
    command = [*LIMNOS, "bulk", str(file), "--job", "move", "--uri", node.uri, "--token", node.token]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def count_tables(client: Client) -> int:
    """Return the number of the tables that the job has registered."""
    return sum(path[-1].startswith("t") for path in client.tables.list("main.a"))


def test_killed_job_is_continued_without_doubles(node: Process, tmp_path: Path) -> None:
    """Server and client are killed in turns. In the end each table exists once, and each wrong item is refused once."""
    with Client(node.uri, token=node.token) as client:
        file = write_job(client, tmp_path)
    for number in range(KILLS):
        running = start_job(node, file)
        with Client(node.uri, token=node.token) as client:
            before = count_tables(client)
            while count_tables(client) < min(before + TABLES // 10, TABLES - 1):
                assert running.poll() is None, running.communicate()
                time.sleep(0.01)
        if number % 2:
            running.kill()
        else:
            node.kill()
        running.communicate(timeout=120)
        if number % 2 == 0:
            node.start()

    out, errors = start_job(node, file).communicate(timeout=300)

    *refused, counts = [json.loads(line) for line in out.splitlines()]
    half = TABLES // 2
    everything = {"items": TABLES + TABLES + 2, "made": TABLES + half + 2, "same": 0, "refused": half, "failed": 0}
    assert counts == {"job": "move", **everything}, errors
    assert {each["code"] for each in refused} == {"not-found"}
    with Client(node.uri, token=node.token) as client:
        assert count_tables(client) == TABLES
        uris = [version.uris["u"] for version in client.models.versions("ml.s.m")]
    assert len(uris) == len(set(uris)) == half
    node.stop()
    assert complaints(node.database or str(node.data / "limnos.db")) == []
