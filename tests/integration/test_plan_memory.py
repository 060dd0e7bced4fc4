# SPDX-License-Identifier: Apache-2.0
"""A scan plan of ten thousand files over HTTP: every file is in it once, and the server has only a part in memory at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.iceberg_manifests import data_file, entry, listed, manifest, manifest_list
from tests.integration.live import LiveServer, serving
from tests.nodes.planned_tables import files_of, plan, tasks_of
from tests.nodes.wire import Wire, namespace_body, namespace_path, table_body, table_path

pytestmark = pytest.mark.integration
MANIFESTS, FILES = 10, 1_000
HELD_BYTES_MAX = 96 << 20
"""Limit of the additional memory: an answer of 2,000 files is half a megabyte."""
LONG = {"type": "in", "term": "id", "values": list(range(1_000_000, 1_025_000))}
"""A filter of 200 KB: repeated for each file of a manifest, it exceeds the maximum answer."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server."""
    with serving(tmp_path_factory.mktemp("wide") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def path(server: LiveServer) -> str:
    """The URL of a table of ten thousand files, which have names and bounds but no content."""
    admin = Wire(server.uri, token=server.token)
    admin.do("POST", namespace_path("wide").rpartition("/")[0], namespace_body("wide"))
    admin.do("POST", f"{namespace_path('wide')}/tables", table_body("t"))
    metadata = cast("dict[str, str]", admin.do("GET", table_path("wide", "t")).body["metadata"])
    place = metadata["location"]
    at = Path(place.removeprefix("file://")) / "metadata"
    at.mkdir(parents=True, exist_ok=True)
    manifests = []
    for number in range(MANIFESTS):
        raw = manifest([entry(data_file(f"{place}/data/{number}-{each}.parquet")) for each in range(FILES)])
        (at / f"m{number}.avro").write_bytes(raw)
        manifests.append({**listed(f"{place}/metadata/m{number}.avro", raw), "added_files_count": FILES})
    (at / "snap-1.avro").write_bytes(manifest_list(manifests, version=2))
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": int(metadata["last-updated-ms"]) + 1,
        "manifest-list": f"{place}/metadata/snap-1.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    point = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}
    updates = [{"action": "add-snapshot", "snapshot": snapshot}, point]
    admin.do("POST", table_path("wide", "t"), {"requirements": [], "updates": updates})
    admin.close()
    return table_path("wide", "t")


def _peak_memory(server: LiveServer) -> int:
    """Return the peak memory of the server's process, in bytes."""
    lines = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def test_plan_of_ten_thousand_files_has_bounded_memory(server: LiveServer, path: str) -> None:
    """Five tasks of two manifests each name every file once. A filter that each file would repeat is refused, and peak
    memory stays bounded.
    """
    wire = Wire(server.uri, token=server.token, timeout_s=300)
    before = _peak_memory(server)

    planned = plan(wire, path)
    file_names = [
        name for task in tasks_of(planned) for name in files_of(wire.do("POST", f"{path}/tasks", {"plan-task": task}))
    ]
    long = plan(wire, path, filter=LONG)
    refused = [wire.ask("POST", f"{path}/tasks", {"plan-task": each}) for each in tasks_of(long)[:3]]

    assert len(tasks_of(planned)) == MANIFESTS * FILES // 2_000
    assert len(file_names) == len(set(file_names)) == MANIFESTS * FILES
    assert len(tasks_of(long)) == MANIFESTS
    assert [each.status for each in refused] == [406] * 3
    assert _peak_memory(server) - before < HELD_BYTES_MAX
    wire.close()
