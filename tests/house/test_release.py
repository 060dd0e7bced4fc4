# SPDX-License-Identifier: Apache-2.0
"""A release is tagged only from a clean tree with one version and a dated changelog.

tests/deploy/test_packages.py builds its files.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from scripts import release
from scripts.release import BuildPoint, ReleaseError

ROOT = Path(__file__).parents[2]
POINT = BuildPoint("0123abc", 1_790_000_000)


def test_places_state_one_version() -> None:
    """Package, project, changelog and chart state one version."""
    stated = release.stated_versions(ROOT)

    assert len(stated) == 5
    assert release.check_versions(stated) == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_different_versions_are_refused() -> None:
    """A place with another version is named."""
    with pytest.raises(ReleaseError, match=r"Chart\.yaml version.*0\.2\.0"):
        release.check_versions({"pyproject.toml": "0.1.0", "Chart.yaml version": "0.2.0"})


@pytest.mark.parametrize(
    "text,wrong",
    [
        ("# Changelog\n\n## Unreleased\n\n## 1.2.3 – 2026-01-02\n\n- x\n", None),
        ("# Changelog\n\n## 1.2.3 – 2026-01-02\n", None),
        ("# Changelog\n\n## 1.2.3 – unreleased\n", "write the day"),
        ("# Changelog\n\n## Unreleased\n\n- y\n\n## 1.2.3 – 2026-01-02\n", "unreleased changes"),
    ],
    ids=["empty", "none", "undated", "waiting"],
)
def test_changelog_of_a_release_is_dated_and_complete(text: str, wrong: str | None) -> None:
    """The release has a day, and nothing waits below Unreleased."""
    if wrong is None:
        release.check_changelog(text, "1.2.3")
        return
    with pytest.raises(ReleaseError, match=wrong):
        release.check_changelog(text, "1.2.3")


def test_changed_tree_and_existing_tag_are_refused(tmp_path: Path) -> None:
    """A clean tree gives its commit; a changed file or an existing tag is refused."""

    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "a").write_text("1")
    for words in (["init"], ["add", "."], ["commit", "-m", "first"]):
        git(*words)
    assert len(release.check_tree(tmp_path, "v1.2.3").commit) == 40

    git("tag", "v1.2.3")
    with pytest.raises(ReleaseError, match=r"v1\.2\.3 exists"):
        release.check_tree(tmp_path, "v1.2.3")

    (tmp_path / "a").write_text("2")
    with pytest.raises(ReleaseError, match="M a"):
        release.check_tree(tmp_path, "v1.2.4")
    assert release.build_point(tmp_path).commit.endswith("-changed")


@pytest.mark.integration
def test_bill_of_materials_lists_the_locked_packages() -> None:
    """The bill names each locked package of the extras with its hashes, and is the same for each build of a commit."""
    text = release.bill_of_materials(ROOT, POINT)
    components = {each["name"] for each in json.loads(text)["components"]}
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    direct = next(each for each in lock["package"] if each["name"] == "limnos")

    assert text == release.bill_of_materials(ROOT, POINT)
    required = {each["name"] for extra in direct["optional-dependencies"].values() for each in extra} - {"limnos"}
    assert required | {each["name"] for each in direct["dependencies"]} <= components
    assert "pytest" not in components
