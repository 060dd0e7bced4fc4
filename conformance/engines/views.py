# SPDX-License-Identifier: Apache-2.0
"""A view created by another client, for engines to read.

May import the standard library and what a lake is. Uses Iceberg REST directly, not an engine.
"""

from __future__ import annotations

import json
import urllib.request

from conformance.engines.checks import Lake

_ANSWER_S = 60


def make_view(
    lake: Lake, namespace: str, name: str, *, dialect: str, text: str, kind: str = "int", catalog: str = "main"
) -> None:
    """Create a view of one column `id` of a type, with a text in one dialect, as the admin."""
    version = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "default-namespace": [namespace],
        "representations": [{"type": "sql", "dialect": dialect, "sql": text}],
    }
    fields = [{"id": 1, "name": "id", "required": False, "type": kind}]
    body = {"name": name, "schema": {"type": "struct", "fields": fields}, "view-version": version, "properties": {}}
    request = urllib.request.Request(
        f"{lake.iceberg}/v1/lake.{catalog}/namespaces/{namespace}/views",
        data=json.dumps(body).encode(),
        method="POST",
        headers={"Authorization": f"Bearer {lake.admin}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
        answer.read()
