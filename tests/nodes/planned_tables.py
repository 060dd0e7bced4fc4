# SPDX-License-Identifier: Apache-2.0
"""Tables with real files on a running node: several manifests, so that a scan plan has parts, and readable rows."""

from __future__ import annotations

from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from tests.iceberg_manifests import data_file, entry, listed, manifest, manifest_list
from tests.nodes.wire import OWN, Wire, WireAnswer, namespace_body, namespace_path, table_body, table_path

TOLD_FILES = 1_000_000
"""File count in each manifest's list entry. It is so large that a plan of two manifests is answered in parts."""
PARTS = 3
_FIELD = pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "1"})


def table_with_parts(admin: Wire, tag: str) -> str:
    """Create table `TAG.t` with `PARTS` manifests of one file with ten rows each; `id` counts from 0.

    Returns its path.
    """
    admin.do("POST", f"{namespace_path(tag).rpartition('/')[0]}", namespace_body(tag))
    admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    path = table_path(tag, "t")
    metadata = cast("dict[str, str]", admin.do("GET", path).body["metadata"])
    place = metadata["location"]
    manifests = [_manifest(place, number) for number in range(PARTS)]
    at = _written(place, "metadata/snap-1.avro", manifest_list(manifests, version=2))
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": int(metadata["last-updated-ms"]) + 1,
        "manifest-list": at,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    point = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}
    admin.do("POST", path, {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}, point]})
    return path


def _manifest(place: str, number: int) -> dict[str, object]:
    name = f"data/{number}.parquet"
    at = _written(place, name, b"")
    rows = pa.array(range(number * 10, number * 10 + 10), pa.int64())
    pq.write_table(pa.table([rows], schema=pa.schema([_FIELD])), _local(at))
    raw = manifest([entry(data_file(at, file_size_in_bytes=_local(at).stat().st_size))])
    manifest_file = listed(_written(place, f"metadata/m{number}.avro", raw), raw)
    return {**manifest_file, "added_files_count": TOLD_FILES}


def _written(place: str, name: str, data: bytes) -> str:
    at = f"{place}/{name}"
    _local(at).parent.mkdir(parents=True, exist_ok=True)
    _local(at).write_bytes(data)
    return at


def _local(location: str) -> Path:
    return Path(unquote(urlsplit(location).path))


def plan(wire: Wire, path: str, **arguments: object) -> WireAnswer:
    """Request a scan plan, and poll until it is ready: worker processes start slowly on a busy machine."""
    submission = answer = wire.do("POST", f"{path}/plan", arguments)
    while answer.body["status"] == "submitted":
        answer = wire.do("GET", f"{path}/plan/{submission.body['plan-id']}")
    return WireAnswer(answer.status, {**answer.body, "plan-id": submission.body["plan-id"]}, answer.headers)


def tasks_of(answer: WireAnswer) -> list[str]:
    """Return the tasks of a plan's parts."""
    return cast("list[str]", answer.body.get("plan-tasks", []))


def files_of(answer: WireAnswer) -> list[str]:
    """Return the data files in an answer."""
    return [
        each["data-file"]["file-path"]
        for each in cast("list[dict[str, dict[str, str]]]", answer.body["file-scan-tasks"])
    ]


def restriction_path(tag: str, name: str = "r") -> str:
    """Return the path of a restriction of the table."""
    return f"{OWN}/metalakes/lake/objects/TABLE/main.{tag}.t/restrictions/{name}"
