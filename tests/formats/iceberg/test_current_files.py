# SPDX-License-Identifier: Apache-2.0
"""Files that a reader of a table opens, from documents and manifests."""

from __future__ import annotations

import json

import pytest

from limnos.formats.iceberg import current_files
from limnos.formats.iceberg.current_files import document_files, is_plainly_below, outside_paths
from limnos.model.errors import InvalidTable
from tests.iceberg_manifests import DELETED, data_file, entry, manifest

DOCUMENT = {
    "location": "/t",
    "current-snapshot-id": 2,
    "snapshots": [{"snapshot-id": 1, "manifest-list": "/1"}, {"snapshot-id": 2, "manifest-list": "/2"}],
    "statistics": [{"snapshot-id": 1, "statistics-path": "/s1"}, {"snapshot-id": 2, "statistics-path": "/s2"}],
    "partition-statistics": [{"snapshot-id": 2, "statistics-path": "/p2"}],
    "properties": {"a": "b"},
    "more": 1,
}


def test_the_current_snapshot_has_its_list_and_statistics() -> None:
    """The current snapshot's paths are its manifest list and its statistics; all snapshots have all paths."""
    files = document_files(json.dumps(DOCUMENT).encode())

    assert files.paths == ["/1", "/2", "/s1", "/s2", "/p2"]
    assert files.of_current_snapshot().paths == ["/2", "/s2", "/p2"]
    assert files.of_current_snapshot().properties == {"a": "b"}


@pytest.mark.parametrize(
    "body",
    [{"location": "/t"}, {"location": "/t", "current-snapshot-id": -1, "snapshots": None}],
)
def test_a_document_without_snapshots_has_no_paths(body: dict[str, object]) -> None:
    """A table before its first commit has no current snapshot."""
    files = document_files(json.dumps(body).encode())

    assert (files.current, files.paths, files.of_current_snapshot().paths) == (None, [], [])


def test_a_malformed_document_is_refused() -> None:
    """A document whose parts are of other types cannot be read."""
    for body in (b"{}", b"[", b'{"location": 1}', b'{"location": "/t", "snapshots": [{"snapshot-id": "x"}]}'):
        with pytest.raises(InvalidTable):
            document_files(body)


@pytest.mark.parametrize(
    "path,expected",
    [
        ("/w/t/a", True),
        ("/w/t/a/b c.parquet", True),
        ("/w/t/a..b", True),
        ("/w/t/...", True),
        ("/w/t/x=1/é", True),
        ("/w/t", False),
        ("/w/tx/a", False),
        ("/w/t/../u", False),
        ("/w/t/./u", False),
        ("/w/t/a/..", False),
        ("/w/t//a", False),
        ("/w/t/a//b", False),
        ("/w/t/%61", False),
        ("/w/t/a?b", False),
        ("/w/t/a#b", False),
        ("/w/t/a\\b", False),
        ("/w/t/a\nb", False),
        ("s3://b/t/x", True),
        ("s3://b/tt/x", False),
        ("", False),
    ],
)
def test_only_usual_paths_are_plainly_below(path: str, expected: bool) -> None:
    """A path with a part that readers interpret differently is left to the comparison of keys."""
    assert is_plainly_below(path, ("/w/t/", "s3://b/t/")) == expected


def test_outside_paths_are_the_live_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths outside of the prefixes are returned once; deleted entries do not count, and too many are refused."""
    entries = [entry(data_file(path)) for path in ("/w/t/1", "/x/2", "/x/2", "/x/3")]
    data = manifest([*entries, entry(data_file("/x/4"), status=DELETED, snapshot=1)])

    assert outside_paths(("/w/t/",), [data, data]) == ["/x/2", "/x/3"]
    with pytest.raises(InvalidTable):
        outside_paths((), [b"Obj"])
    monkeypatch.setattr(current_files, "OUTSIDE_MAX", 1)
    with pytest.raises(InvalidTable):
        outside_paths(("/w/t/",), [data])
