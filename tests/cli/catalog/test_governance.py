# SPDX-License-Identifier: Apache-2.0
"""`show` prints comment, columns, size and owner of an object, and what governs it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

OBJECTS = "/api/metalakes/lake/objects"
OWN = "/api/limnos/v1/metalakes/lake"
EXPLAIN = f"{OWN}/access/explain"
TABLE = {
    "metadata-location": "file:///t/metadata/1.json",
    "metadata": {
        "format-version": 2,
        "current-snapshot-id": 7,
        "current-schema-id": 0,
        "schemas": [
            {"schema-id": 0, "fields": [{"name": "fare", "type": "double", "required": True, "doc": "in EUR"}]}
        ],
        "snapshots": [{"snapshot-id": 7, "summary": {"total-records": "12", "total-files-size": "2500000"}}],
        "properties": {"comment": "trips by taxi"},
    },
}


def decision(*, allowed: bool) -> dict[str, object]:
    """Return the answer to a question for a decision."""
    result = {"action": "restrict", "user": "ana", "target": "main.raw.t", "target_kind": "table", "message": ""}
    return {"decision": {**result, "allowed": allowed, "factors": [], "revision": []}, "suggestions": []}


@pytest.fixture
def governed(fake: FakeServer) -> FakeServer:
    """A table with a comment, an owner, tags, a restriction, a pipeline that writes it, and files to compact."""
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw/tables/t", TABLE)
    fake.on("GET", "/api/metalakes/lake/owners/table/main.raw.t", {"owner": {"name": "ana", "type": "USER"}})
    tags = [{"name": "pii", "inherited": False}, {"name": "gold", "inherited": True}]
    fake.on("GET", f"{OBJECTS}/table/main.raw.t/tags?details=true", {"tags": tags})
    who: dict[str, list[str]] = {"users": [], "groups": [], "roles": []}
    masks = {
        "name": "eu",
        "on": {"kind": "table", "name": "main.raw.t"},
        "masks": {"fare": "null"},
        "to": who,
        "except": who,
        "set_by": "ana",
        "set_at": "2026-11-01T00:00:00Z",
    }
    fake.on("GET", f"{OWN}/objects/table/main.raw.t/restrictions", {"restrictions": [masks]})
    assertions = [{"job": {"namespace": "limnos", "name": "taxi"}, "at": "2026-11-01T00:00:00Z", "by": "etl"}]
    graph = {"root": "1", "nodes": [], "edges": [{"source": "0", "target": "1", "depth": 1, "said": assertions}]}
    fake.on("GET", f"{OWN}/lineage?path=main.raw.t&depth=1&direction=up", graph)
    finding = {"table": "raw.t", "kind": "compact", "score": 1, "reason": "many small files"}
    report = {
        "snapshots": 1,
        "removable": 0,
        "refs_removable": [],
        "writer": "unknown",
        "history": [],
        "findings": [{**finding, "figures": {}}],
        "policies": [],
        "blocked": [],
        "operations": [],
    }
    fake.on("GET", f"{OWN}/catalogs/main/maintenance/table?table=raw.t", report)
    fake.on("POST", EXPLAIN, decision(allowed=True))
    return fake


def test_table_is_shown_with_all_that_governs_it(governed: FakeServer, limnos: Run) -> None:
    """Comment, columns with their comments, rows, size, owner, tags, restrictions, pipelines and maintenance."""
    done = limnos("show", "main.raw.t", "--kind", "table")

    assert isinstance(done.result, dict), governed.calls
    description = {
        "comment": "trips by taxi",
        "columns": {"fare": "double required"},
        "column_comments": {"fare": "in EUR"},
        "rows": 12,
        "size": "2.4 MiB",
        "size_bytes": 2_500_000,
        "owner": "user ana",
        "tags": ["pii", "gold"],
        "restrictions": ["eu"],
        "written_by": ["taxi"],
        "maintenance": ["compact"],
    }
    assert {key: done.result.get(key) for key in description} == description


def test_tags_of_columns_are_shown_by_column(governed: FakeServer, limnos: Run) -> None:
    """`show` has the tags on the columns themselves, read from each column if the metalake has more tags."""
    governed.on("GET", "/api/metalakes/lake/tags?details=true", {"tags": [{"name": "pii"}, {"name": "gold"}]})
    tags = [{"name": "pii", "inherited": False}, {"name": "gold", "inherited": True}]
    governed.on("GET", f"{OBJECTS}/column/main.raw.t.fare/tags?details=true", {"tags": tags})

    done = limnos("show", "main.raw.t", "--kind", "table")

    assert isinstance(done.result, dict)
    assert done.result["column_tags"] == {"fare": ["pii"]}


def test_table_format_has_a_line_for_each_part(governed: FakeServer, limnos: Run) -> None:
    """People read the same on a terminal."""
    lines = limnos("show", "main.raw.t", "--kind", "table", "--output", "table").out.splitlines()

    known = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert (known["size"], known["tags"], known["maintenance"]) == ("2.4 MiB", "pii, gold", "compact"), governed.calls


def test_parts_that_the_caller_may_not_read_are_left_out(governed: FakeServer, limnos: Run) -> None:
    """A refused or missing part is no error: the rest is shown."""
    governed.on("GET", f"{OBJECTS}/table/main.raw.t/tags?details=true", {"code": 1003, "message": "no"}, status=403)
    governed.on("GET", f"{OWN}/objects/table/main.raw.t/restrictions", {}, status=404)

    limnos("show", "main.raw.t", "--kind", "table")
    done = limnos("show", "main.raw.t", "--kind", "table")

    assert isinstance(done.result, dict)
    assert (done.code, done.result["written_by"]) == (0, ["taxi"])
    assert {"tags", "restrictions"} & done.result.keys() == set()


def test_parts_that_need_a_missing_right_are_not_requested(governed: FakeServer, limnos: Run) -> None:
    """A reader's `show` asks for the rights first, and sends no request that the audit would record as refused."""
    governed.on("POST", EXPLAIN, decision(allowed=False))

    limnos("show", "main.raw.t", "--kind", "table")
    governed.asked.clear()
    done = limnos("show", "main.raw.t", "--kind", "table")

    assert isinstance(done.result, dict)
    assert (done.code, done.result["written_by"], done.result["tags"]) == (0, ["taxi"], ["pii", "gold"])
    assert {"restrictions", "maintenance"} & done.result.keys() == set()
    assert not [each for each in governed.calls if "/restrictions" in each or "/maintenance" in each]


def test_namespace_is_shown_with_comment_owner_tags_and_restrictions(fake: FakeServer, limnos: Run) -> None:
    """A namespace has its comment, which is one of its properties, owner, tags and no maintenance."""
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw", {"namespace": ["raw"], "properties": {"comment": "as sent"}})
    fake.on("GET", "/api/metalakes/lake/owners/schema/main.raw", {"owner": {"name": "crew", "type": "GROUP"}})
    fake.on("GET", f"{OBJECTS}/schema/main.raw/tags?details=true", {"tags": [{"name": "pii"}]})

    description = limnos("show", "main.raw", "--kind", "namespace").result

    assert isinstance(description, dict)
    assert (description["comment"], description["owner"], description["tags"]) == ("as sent", "group crew", ["pii"])
    assert "maintenance" not in description


@pytest.mark.parametrize("kind", ["fileset", "model"])
def test_tags_of_other_objects_are_shown(fake: FakeServer, limnos: Run, kind: str) -> None:
    """Filesets and models have tags, too."""
    url = f"/api/metalakes/lake/catalogs/main/schemas/raw/{kind}s/f"
    fake.on("GET", url, {kind: {"name": "f", "type": "managed"}})
    fake.on("GET", f"{url}/versions?details=true", {"infos": []})
    fake.on("GET", f"{OBJECTS}/{kind}/main.raw.f/tags?details=true", {"tags": [{"name": "pii"}]})

    description = limnos("show", "main.raw.f", "--kind", kind).result

    assert isinstance(description, dict)
    assert description["tags"] == ["pii"]


def test_metalake_is_shown_with_its_owner(fake: FakeServer, limnos: Run) -> None:
    """A metalake has an owner."""
    fake.on("GET", "/api/metalakes/lake", {"metalake": {"name": "lake"}})
    fake.on("GET", "/api/metalakes/lake/owners/metalake/lake", {"owner": {"name": "ana", "type": "USER"}})

    description = limnos("show").result

    assert isinstance(description, dict)
    assert description["owner"] == "user ana"
