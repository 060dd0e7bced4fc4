# SPDX-License-Identifier: Apache-2.0
"""Which metadata file of a directory is the newest: by version, and by the hint of Hadoop's catalogs."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.metadata_files import is_metadata_file, newest_metadata_file, version_of_file
from limnos.model.errors import InvalidTable, MissingFile

HADOOP = [f"v{version}.metadata.json" for version in (1, 2, 3, 4, 6)]


@pytest.mark.parametrize(
    "names, hint, newest",
    [
        (["00001-a.metadata.json", "00010-b.metadata.json", "snap-1.avro"], None, "00010-b.metadata.json"),
        (["00001-a.gz.metadata.json"], None, "00001-a.gz.metadata.json"),
        (HADOOP, None, "v6.metadata.json"),
        (HADOOP, "4\n", "v4.metadata.json"),
        (HADOOP, "2", "v4.metadata.json"),
        (HADOOP, "5", "v6.metadata.json"),
        (HADOOP, "\u0663", "v6.metadata.json"),
        (HADOOP, "-1", "v6.metadata.json"),
        (HADOOP, "../../x", "v6.metadata.json"),
        (HADOOP, "9" * 64, "v6.metadata.json"),
        (["v1.gz.metadata.json", "v2.gz.metadata.json"], "1", "v2.gz.metadata.json"),
    ],
)
def test_newest_file_follows_from_names_and_hint(names: list[str], hint: str | None, newest: str) -> None:
    """The highest version counts; with a hint, the versions that follow it without a gap, as Hadoop's readers go."""
    assert newest_metadata_file(names, hint=hint) == newest


def test_two_files_of_a_version_are_refused() -> None:
    """Two writers committed, and only their catalog knows which one won."""
    with pytest.raises(InvalidTable, match="2 metadata files of version 2"):
        newest_metadata_file(["00002-a.metadata.json", "00002-b.metadata.json", "00001-c.metadata.json"])


def test_directory_without_metadata_is_missing() -> None:
    """Other files of a directory are no metadata."""
    with pytest.raises(MissingFile):
        newest_metadata_file(["x.metadata.json", "v.metadata.json", "version-hint.text", "v1.metadata.json.tmp"])


def test_other_names_have_no_version() -> None:
    """Numbers that no catalog writes are other names, as those of 4,000 digits are."""
    assert version_of_file("00012-x.metadata.json") == 12
    for name in ("v\u0661.metadata.json", f"v{'9' * 4000}.metadata.json", "v1-.metadata.json", "1.metadata.json"):
        assert not is_metadata_file(name)
        with pytest.raises(InvalidTable):
            version_of_file(name)
