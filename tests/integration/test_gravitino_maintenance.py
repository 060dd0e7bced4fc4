# SPDX-License-Identifier: Apache-2.0
"""A user of Gravitino sets a policy, finds it inherited, and runs a built-in job that an executor executes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from conformance.gravitino.client import interpreter
from limnos.client import Client
from tests.integration.live import LiveServer
from tests.integration.maintenance_executors import WITHIN_S, working

pytestmark = [pytest.mark.room("maintenance"), pytest.mark.heavy, pytest.mark.spark]
SCRIPT = Path(__file__).with_name("gravitino_maintenance_script.py")
FILES = 9


def test_rewrite_job_of_a_policy_compacts_the_table(server: LiveServer) -> None:
    """The job of `builtin-iceberg-rewrite-data-files` ends, and the table has fewer files with the same rows."""
    with Client(server.uri, token=server.token) as admin:
        admin.namespaces.create("main.grav_jobs")
        catalog = load_catalog("main", **admin.iceberg_properties("main"))
    table = catalog.create_table("grav_jobs.trips", pa.schema([("id", pa.int64()), ("word", pa.string())]))
    for number in range(FILES):
        table.append(pa.table({"id": [number, number + 100], "word": ["a", "b"]}))
    before = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    files_before = len(table.inspect.files())
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAVITINO_"))}
    with working(server, idle=WITHIN_S):
        done = subprocess.run(
            [str(interpreter()), str(SCRIPT), server.uri, "lake", "main", "grav_jobs.trips"],
            env=environment,
            cwd=server.data,
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    table.refresh()

    assert "ui" in seen["policies"].pop("listed"), "other tests of this server also have policies"
    assert seen["policies"] == {
        "created": "ui",
        "loaded": [{"keep": "7"}, {"k": "v"}, True],
        "edited": ["ui2", "d", {"keep": "8"}],
        "disabled": False,
        "enabled": True,
        "deleted": True,
    }
    assert seen["objects"] == {
        "attached": ["compaction"],
        "of_catalog": [["compaction", "system_iceberg_compaction", False]],
        "of_schema": [["compaction", "system_iceberg_compaction", True]],
        "of_table": [["compaction", "system_iceberg_compaction", True]],
        "objects": [["main", "catalog"]],
    }
    assert seen["job"] == {
        "began": "queued",
        "ended": "succeeded",
        "template": "builtin-iceberg-rewrite-data-files",
        "listed": True,
    }
    assert seen["detached"] == []
    assert (files_before, len(table.inspect.files())) == (FILES, 1)
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == before
    assert table.current_snapshot().summary.operation.value == "replace"
