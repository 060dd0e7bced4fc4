# SPDX-License-Identifier: Apache-2.0
"""A release is tagged only from a clean tree with one version and a dated changelog; its files have the same bytes
whenever and wherever they are built.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from scripts import release
from scripts.release import BuildPoint, ReleaseError

ROOT = Path(__file__).parents[2]
POINT = BuildPoint("0123abc", 1_790_000_000)
PACKAGED = (
    "src",
    "proto",
    "openapi",
    "examples/demo",
    "examples/penguins",
    "docs",
    "scripts/build_site.py",
    "scripts/site",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "LICENSE",
    "pyproject.toml",
    "hatch_build.py",
)


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


def checkout_copy(target: Path, *, mode: int) -> Path:
    """Copy what is packaged into a new directory, where all files are new and have another mode."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *PACKAGED],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listing.stdout.splitlines():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target / name)
        (target / name).chmod(mode)
    return target


@pytest.mark.integration
def test_packages_have_the_same_bytes_in_another_checkout(tmp_path: Path) -> None:
    """Builds in two checkouts, with other times and modes of files, give the same wheel and sdist; a later commit
    gives others.
    """
    one, other = checkout_copy(tmp_path / "one", mode=0o644), checkout_copy(tmp_path / "elsewhere/two", mode=0o600)
    first = release.build_packages(one, POINT, out=tmp_path / "first")
    second = release.build_packages(other, POINT, out=tmp_path / "second")
    later = release.build_packages(other, BuildPoint("0456def", POINT.seconds), out=tmp_path / "later")

    release.check_packages(first, second, POINT)
    with pytest.raises(ReleaseError, match="differ"):
        release.check_packages(first, later, POINT)
    with zipfile.ZipFile(next(file for file in first if file.suffix == ".whl")) as wheel:
        members = set(wheel.namelist())
    files = {"openapi/iceberg.json", "documentation.zip.xz", "bundled/examples/demo/run.py"}
    assert {release.BUILD_FILE, *(f"limnos/{name}" for name in files)} <= members
    assert sorted({name.partition("/")[0] for name in members}) == ["limnos", "limnos-0.1.0.dist-info"]


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
