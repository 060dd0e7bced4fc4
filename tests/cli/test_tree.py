"""Commands on views: found out, told, moved and dropped."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import Fake

I = "/iceberg/v1/lake.main"  # noqa: E741 - the Iceberg prefix


def test_views_are_told_dropped_and_moved(fake: Fake, limnos: Run) -> None:
    """What a path means is found out; a view is described with its texts, moved and dropped as one."""
    texts = [{"type": "sql", "dialect": "spark", "sql": "select 1"}]
    version = {"version-id": 2, "schema-id": 0, "representations": texts, "default-namespace": ["raw"]}
    columns = [{"id": 1, "name": "id", "type": "int", "required": True}]
    metadata = {
        "view-uuid": "u", "format-version": 1, "schemas": [{"schema-id": 0, "fields": columns}],
        "current-version-id": 2, "versions": [{"version-id": 1}, version],
    }  # fmt: skip
    fake.on("GET", f"{I}/namespaces/raw/views/v", {"metadata-location": "file:///m", "metadata": metadata})
    fake.on("DELETE", f"{I}/namespaces/raw/views/v", status=204)
    fake.on("POST", "/api/limnos/v1/metalakes/lake/catalogs/main/move", {"kind": "view", "path": ["main", "raw", "w"]})

    told = limnos("describe", "main.raw.v").result
    moved = limnos("mv", "main.raw.v", "main.raw.w")
    dropped = limnos("drop", "main.raw.v")
    purged = limnos("drop", "main.raw.v", "--kind", "view", "--purge")

    assert isinstance(told, dict)
    assert (told["sql"], told["columns"]) == ({"spark": "select 1"}, {"id": "int required"})
    assert (told["version"], told["versions"]) == (2, 2)
    assert (moved.code, dropped.code) == (0, 0)
    assert purged.code != 0
    assert "--purge is for tables" in purged.err
