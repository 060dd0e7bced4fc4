# SPDX-License-Identifier: Apache-2.0
"""Directories of data files and of metadata files of one table are separate."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.services.iceberg.added_files import check_directories

LOCATION = "s3://lake/w/t"


def metadata(location: str = LOCATION, **paths: str) -> dict[str, object]:
    """Return table metadata with properties `write.NAME.path`; underscores stand for dashes."""
    properties = {f"write.{name.replace('_', '-')}.path": path for name, path in paths.items()}
    return {"location": location, "properties": properties}


@pytest.mark.parametrize("key", ["data", "object_storage", "folder_storage"])
@pytest.mark.parametrize(
    "path",
    [
        "s3://lake/w/t/metadata",
        "s3://lake/w/t/metadata/",
        "s3://lake/w/t/metadata/x",
        "s3://lake/w/t",
        "s3://lake/w",
        "s3a://lake/w/t/metadata",
        "s3://lake/w/t//metadata",
        "s3://lake/w/t/%6detadata",
        "s3://LAKE/w/t/metadata",
    ],
)
def test_data_directory_at_the_metadata_directory_is_refused(key: str, path: str) -> None:
    """A directory of data files at, above or below that of metadata files is refused, whatever its spelling."""
    with pytest.raises(BadRequest, match=key.replace("_", "-")):
        check_directories(metadata(**{key: path}), before=None)
    with pytest.raises(BadRequest, match=key.replace("_", "-")):
        check_directories(metadata(**{key: path}), before=metadata(**{key: "s3://lake/w/t/data"}))


@pytest.mark.parametrize("path", ["s3://lake/w/t/data", "s3://lake/w/t/data/m", LOCATION, "s3://lake/w/t/d"])
def test_metadata_directory_at_a_data_directory_is_refused(path: str) -> None:
    """A directory of metadata files at, above or below a directory of data files is refused."""
    with pytest.raises(BadRequest, match=r"write\."):
        check_directories(metadata(metadata=path, data="s3://lake/w/t/d"), before=None)


def test_separate_directories_are_allowed() -> None:
    """Directories with a common prefix of their names, beside each other or outside of the location, are separate."""
    for paths in (
        {},
        {"data": "s3://lake/w/t/metadata2"},
        {"data": "s3://lake/w/t/data"},
        {"object_storage": "s3://lake/w/t-data"},
        {"metadata": "s3://lake/w/t/m"},
        {"metadata": "s3://lake/w/t/metadata"},
        {"metadata": "s3://lake/w/t/m", "data": "s3://lake/w/t/metadata"},
    ):
        check_directories(metadata(**paths), before=None)


def test_stored_directories_stay_until_a_commit_changes_one() -> None:
    """A table whose stored directories mix files can be committed to, until a commit changes one of them or the
    location.
    """
    mixed = metadata(data="s3://lake/w/t/metadata")

    check_directories(mixed, before=mixed)
    check_directories(metadata(data="s3://lake/w/t/data"), before=mixed)
    with pytest.raises(BadRequest, match=r"write\.data\.path"):
        check_directories(metadata("s3://lake/w/t/metadata", data="s3://lake/w/t/metadata"), before=mixed)
