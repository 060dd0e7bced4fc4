# SPDX-License-Identifier: Apache-2.0
"""Names of manifests: versions, staged manifests, and invalid names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.formats.lance_manifests import (
    V1,
    V2,
    VERSION_MAX,
    VersionManifest,
    check_branch,
    directory_of,
    manifest_name,
    manifest_of,
    staged_name,
)
from limnos.model.errors import BadRequest
from limnos.names.errors import InvalidName

TABLE = ("d", "my warehouse", "t")


@given(version=st.integers(1, VERSION_MAX), scheme=st.sampled_from([V1, V2]))
def test_manifest_name_round_trip(version: int, scheme: int) -> None:
    """The names of both schemes are parsed back to the version."""
    assert manifest_of(manifest_name(version, scheme)) == VersionManifest(version, scheme)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x.manifest",
        "1.manifest-uuid",
        "d1.manifest",
        "99999999999999999999.manifest",
        "latest_version_hint.json",
        "1.manifest.tmp",
    ],
)
def test_other_files_are_not_versions(name: str) -> None:
    """Other files beside the manifests are not parsed as versions."""
    assert manifest_of(name) is None


@pytest.mark.parametrize(
    "path",
    [
        "d/my warehouse/t/_versions/1.manifest-a",
        "d/my%20warehouse/t/_versions/1.manifest-a",
        "file:///d/my warehouse/t/_versions/1.manifest-a",
        "s3://bucket/d/my warehouse/t/_versions/1.manifest-a",
    ],
)
def test_staged_manifest_is_accepted_in_any_spelling(path: str) -> None:
    """A staged manifest can be named plainly, percent-encoded or with a scheme: each names the same file in the table's
    own directory.
    """
    assert staged_name(path, table=TABLE, branch="") == "1.manifest-a"


@pytest.mark.parametrize(
    "path",
    [
        "d/my warehouse/t/_versions/1.manifest",
        "d/my warehouse/u/_versions/1.manifest-a",
        "d/my warehouse/t/tree/dev/_versions/1.manifest-a",
        "d/my warehouse/t/_versions/x/1.manifest-a",
        "d/my warehouse/t/_versions/../1.manifest-a",
        "d/my%zzwarehouse/t/_versions/1.manifest-a",
        "1.manifest-a",
    ],
)
def test_other_staged_files_are_refused(path: str) -> None:
    """Manifests of another table or branch, final names, and names that leave the directory are refused."""
    with pytest.raises((BadRequest, InvalidName)):
        staged_name(path, table=TABLE, branch="")


@pytest.mark.parametrize(
    "branch", ["../x", "a/../b", "a//b", "/a", "a/", ".a", "a b", "a..b", "x.lock", "é", "b" * 300]
)
def test_branch_name_leaving_its_folder_is_refused(branch: str) -> None:
    """A branch name that could lead out of the branch's own folder is refused."""
    with pytest.raises(BadRequest):
        check_branch(branch)


def test_each_branch_has_own_folder() -> None:
    """A branch has its own folder. The main branch, under both of its names, has the table's folder."""
    assert (check_branch("main"), check_branch(""), check_branch("feat/x")) == ("", "", "feat/x")
    assert (directory_of(""), directory_of("feat/x")) == ("_versions", "tree/feat/x/_versions")
