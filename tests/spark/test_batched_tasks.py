# SPDX-License-Identifier: Apache-2.0
"""Tasks that read the metadata of many tables: one request for all, and another one for a table whose files are gone
since.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from limnos.spark.lance.server_access import ServerAccess
from limnos.spark.statistics.columns import StatisticsTask
from limnos.spark.verification.objects import VerificationTask
from tests.client.fake import FakeServer, running
from tests.iceberg_manifests import data_file, entry, listed, manifest, manifest_list

if TYPE_CHECKING:
    from limnos.client.values import Json

LOAD = "/api/limnos/v1/metalakes/lake/catalogs/main/load"
SINGLE = "/iceberg/v1/lake.main/namespaces/a/tables"


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """A server with scripted answers."""
    with running() as server:
        yield server


def metadata_of(directory: Path, *, manifest_list_name: str = "list") -> Json:
    """Write a table with one data file of 3 rows and 12 bytes. Returns its metadata, with another manifest list by
    name.
    """
    directory.mkdir(exist_ok=True)
    data = f"file://{directory}/data.parquet"
    (directory / "data.parquet").write_bytes(b"x" * 12)
    rows = manifest([entry(data_file(data, record_count=3, file_size_in_bytes=12))])
    (directory / "m").write_bytes(rows)
    (directory / "list").write_bytes(manifest_list([listed(f"file://{directory}/m", rows)]))
    fields = [{"id": 1, "name": "n", "type": "int", "required": False}]
    metadata: Json = {
        "format-version": 2,
        "table-uuid": f"uuid of {directory.name}",
        "location": f"file://{directory}",
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "current-snapshot-id": 5,
        "snapshots": [{"snapshot-id": 5, "manifest-list": f"file://{directory}/{manifest_list_name}"}],
    }
    (directory / f"{manifest_list_name}.json").write_text(json.dumps(metadata))
    return metadata


def tables_of(*names: str) -> pa.RecordBatch:
    """Return tables as the system table `tables` has them."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": number,
                "path": f"main.a.{name}",
                "kind": "table",
                "format": "iceberg",
                "restricted": False,
                "metadata_location": None,
            }
            for number, name in enumerate(names, 1)
        ]
    )


def serve(fake: FakeServer, folder: Path) -> ServerAccess:
    """Let the batch have table `t`, an older `u` whose manifest list is gone, and an error for `v`. Single loads have
    all three as they are now.
    """
    lines: list[dict[str, object]] = []
    for index, (name, list_name) in enumerate((("t", "list"), ("u", "expired"))):
        metadata = metadata_of(folder / name, manifest_list_name=list_name)
        location = f"file://{folder}/{name}/{list_name}.json"
        lines.append({"index": index, "metadata_location": location, "metadata": metadata})
    lines += [{"index": 2, "status": 503, "code": "unavailable", "message": "later"}, {"count": 3}]
    fake.on("POST", LOAD, "".join([f"{json.dumps(each)}\n" for each in lines]))
    for name in "tuv":
        answer = {"metadata": metadata_of(folder / name), "metadata-location": f"file://{folder}/{name}/list.json"}
        fake.on("GET", f"{SINGLE}/{name}?snapshots=refs", answer)
    return ServerAccess(uri=fake.uri, metalake="lake", token="secret")


def test_columns_are_measured_by_one_request(fake: FakeServer, tmp_path: Path) -> None:
    """Each table has its rows; only those without an answer or without their files are loaded by themselves."""
    task = StatisticsTask(home=serve(fake, tmp_path))

    rows = [row for batch in task([tables_of("t", "u", "v")]) for row in batch.to_pylist()]

    assert [(row["path"], row["row_count"], row["problem"]) for row in rows] == [
        (f"main.a.{name}", 3, None) for name in "tuv"
    ]
    assert fake.calls == [f"POST {LOAD}", *[f"GET {SINGLE}/{name}?snapshots=refs" for name in "uv"]]


def test_files_are_verified_by_one_request(fake: FakeServer, tmp_path: Path) -> None:
    """Healthy tables have no findings, though one had another manifest list when the batch was loaded."""
    task = VerificationTask(home=serve(fake, tmp_path))

    rows = [row for batch in task([tables_of("t", "u", "v")]) for row in batch.to_pylist()]

    assert [row["path"] for row in rows if row["row"] == "object"] == [f"main.a.{name}" for name in "tuv"]
    assert [row for row in rows if row["row"] == "finding"] == []
    assert set(fake.calls) == {f"POST {LOAD}", *[f"GET {SINGLE}/{name}?snapshots=refs" for name in "uv"]}
