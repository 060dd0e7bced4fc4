# SPDX-License-Identifier: Apache-2.0
"""`describe`: the protection of an object, and objects that are outside the tree."""

from __future__ import annotations

import pytest

from limnos.model.restrictions import CLOSED_TO
from tests.cli.conftest import Run
from tests.client.fake import FakeServer


def test_describe_shows_protection(fake: FakeServer, limnos: Run) -> None:
    """`describe` shows the protection of an object; without protection it shows none."""
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw", {"namespace": ["raw"], "properties": {}})
    where = "/api/limnos/v1/metalakes/lake/objects/schema/main.raw/protection"
    fake.on("GET", where, {"protected": True, "by": {"kind": "catalog", "name": "main"}, "below": True})
    fake.on("GET", where, {"protected": False})

    results = [limnos("describe", "main.raw").result for _ in range(2)]

    assert [row.get("protected_by") for row in results if isinstance(row, dict)] == ["catalog main", None]


@pytest.mark.parametrize("verb,command", [("describe", "describe"), ("drop", "delete")])
def test_tag_path_is_refused_with_the_tag_command(fake: FakeServer, limnos: Run, verb: str, command: str) -> None:
    """A tag is neither shown nor dropped as a catalog of the same name: the error names the command for tags, and no
    request is sent.
    """
    done = limnos(verb, "main", "--kind", "tag")

    assert (done.code, done.error["hint"]) == (2, f"'limnos tag {command} main'")
    assert fake.calls == []


def test_list_of_a_tag_is_refused(fake: FakeServer, limnos: Run) -> None:
    """A tag has no content: `list` with `--kind tag` is refused before it sends a request."""
    done = limnos("ls", "main.raw", "--kind", "tag")

    assert (done.code, fake.calls) == (2, [])
    assert "a tag has no content to list" in str(done.error["message"])


def test_restricted_table_is_shown_without_its_closed_location(fake: FakeServer, limnos: Run) -> None:
    """A table that is restricted for the reader is named so, and shown without the location, which opens nothing."""
    metadata = {"format-version": 2, "location": f"file:///{CLOSED_TO}/u", "schemas": [], "current-schema-id": 0}
    answer = {"metadata-location": f"file:///{CLOSED_TO}/u/m", "metadata": metadata}
    fake.on("GET", "/iceberg/v1/lake.main/namespaces/raw/tables/t", answer)
    fake.on(
        "GET",
        "/iceberg/v1/lake.main/namespaces/raw/tables/plain",
        {"metadata-location": "file:///m", "metadata": metadata | {"location": "file:///w"}},
    )

    part, whole = (limnos("describe", f"main.raw.{name}", "--kind", "table").result for name in ("t", "plain"))

    assert isinstance(part, dict)
    assert isinstance(whole, dict)
    assert (part["restricted"], part["location"], part["metadata_location"]) == (
        "you read a part of its rows or columns; 'limnos head' names the masked columns",
        None,
        None,
    )
    assert (whole["restricted"], whole["location"]) == (None, "file:///w")
    assert [each for each in fake.calls if "/lineage" in each and "main.raw.t&" in f"{each}&"] == []


def test_lance_table_is_shown_with_its_rows_and_bytes(fake: FakeServer, limnos: Run) -> None:
    """`describe` counts the rows of a Lance table; a caller who may not count them sees the rest."""
    table, where = "/lance/v1/table/lance%24s%24t", "delimiter=%24&metalake=lake"
    fake.on("POST", f"{table}/describe?{where}", {"location": "/w/t", "version": 2})
    fake.on("POST", f"{table}/stats?{where}", {"total_bytes": 2048, "num_rows": 21, "num_indices": 0})
    fake.on("POST", f"{table}/stats?{where}", {"error": "no", "code": 7}, status=403)

    whole, part = (limnos("describe", "lance.s.t", "--kind", "table").result for _ in range(2))

    assert isinstance(whole, dict)
    assert isinstance(part, dict)
    assert (whole["rows"], whole["size"], whole["size_bytes"]) == (21, "2.0 KiB", 2048)
    assert (part["version"], part.get("rows")) == (2, None)


def test_only_location_of_a_fileset_is_shown_without_a_name(fake: FakeServer, limnos: Run) -> None:
    """A fileset that was created without a named location has one called `unknown`: a table shows it as the location,
    and JSON keeps the names.
    """
    fileset = {
        "name": "f",
        "type": "managed",
        "storageLocation": "file:///w/f",
        "storageLocations": {"unknown": "file:///w/f"},
        "properties": {"default-location-name": "unknown"},
    }
    fake.on("GET", "/api/metalakes/lake/catalogs/files/schemas/s/filesets/f", {"code": 0, "fileset": fileset})

    shown_fields = limnos("describe", "files.s.f", "--kind", "fileset", "--output", "table")
    document = limnos("describe", "files.s.f", "--kind", "fileset").result

    assert isinstance(document, dict)
    assert document["locations"] == {"unknown": "file:///w/f"}
    assert "location  file:///w/f" in shown_fields.out
    assert "unknown" not in shown_fields.out
