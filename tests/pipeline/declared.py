# SPDX-License-Identifier: Apache-2.0
"""Declared pipelines and tables of tests, of which no rows are read."""

from __future__ import annotations

import textwrap
from pathlib import Path

import httpx2

from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.file import read
from tests.integration.live import LiveServer


def declared_pipeline(steps: str, *, name: str = "p", head: str = "") -> Pipeline:
    """Read a pipeline of these steps in catalog `main`."""
    text = f"pipeline: {name}\ncatalog: main\n{head}steps:\n{textwrap.indent(textwrap.dedent(steps).lstrip(), '  ')}"
    return read(text, file="p.yaml", directory=Path())


def make_table(server: LiveServer, namespace: str, name: str, *, summary: dict[str, str] | None = None) -> None:
    """Create a table over Iceberg REST; with `summary`, a table with one snapshot that has this summary."""
    headers = {"Authorization": f"Bearer {server.token}"}
    url = f"{server.uri}/iceberg/v1/lake.main/namespaces/{namespace}/tables"
    schema = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
    response = httpx2.post(url, headers=headers, json={"name": name, "schema": schema})
    assert response.status_code == 200, response.text
    if summary is None:
        return
    location = response.json()["metadata"]["location"]
    snapshot = {
        "snapshot-id": 77,
        "sequence-number": 1,
        "timestamp-ms": response.json()["metadata"]["last-updated-ms"] + 1,
        "manifest-list": f"{location}/metadata/snap-77.avro",
        "summary": {"operation": "append", **summary},
        "schema-id": 0,
    }
    main_moves = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 77}
    updates = [{"action": "add-snapshot", "snapshot": snapshot}, main_moves]
    moved = httpx2.post(f"{url}/{name}", headers=headers, json={"requirements": [], "updates": updates})
    assert moved.status_code == 200, moved.text
