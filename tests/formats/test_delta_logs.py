# SPDX-License-Identifier: Apache-2.0
"""Entries of Delta's logs: versions by name, and the metadata that an entry states."""

from __future__ import annotations

import pytest

from limnos.formats.delta_logs import log_versions, metadata_of


def test_versions_follow_from_names() -> None:
    """Only entries count: checkpoints, checksums, and numbers that no version can have are other files."""
    names = [f"{0:020}.json", f"{12:020}.json", f"{12:020}.checkpoint.parquet", f"{3:020}.crc", "9" * 20 + ".json"]

    assert log_versions(names) == {0: names[0], 12: names[1]}


def test_metadata_is_the_last_of_an_entry() -> None:
    """An entry may have no metadata; of several ones the last counts."""
    lines = [b'{"metaData":{"id":"a","schemaString":"{}"}}', b'{"add":{"path":"x"}}', b'{"metaData":{"id":"b"}}']
    last = metadata_of(b"\n".join(lines))

    assert metadata_of(lines[1]) is None
    assert last is not None
    assert (last.id, last.columns) == ("b", None)


@pytest.mark.parametrize("line", [b'{"metaData":7}', b'{"metaData"', b'["metaData"]'])
def test_other_content_is_an_error(line: bytes) -> None:
    """A line that mentions metadata and is none is no entry."""
    with pytest.raises(ValueError):  # noqa: PT011 - of the library, with its words
        metadata_of(line)
