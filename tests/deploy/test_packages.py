# SPDX-License-Identifier: Apache-2.0
"""The packages of a release have the same bytes whenever and wherever they are built."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from scripts import release
from scripts.release import BuildPoint, ReleaseError

pytestmark = [pytest.mark.integration, pytest.mark.heavy]
ROOT = Path(__file__).parents[2]
POINT = BuildPoint("0123abc", 1_790_000_000)
CLIENT_BYTES_MAX = 1_000_000
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
    whole, client = (file for file in first if file.suffix == ".whl")
    with zipfile.ZipFile(whole) as wheel:
        members = set(wheel.namelist())
        contents = {name: wheel.read(name) for name in members}
    files = {"openapi/iceberg.json", "documentation.zip.xz", "bundled/examples/demo/run.py"}
    assert {release.BUILD_FILE, *(f"limnos/{name}" for name in files)} <= members
    assert sorted({name.partition("/")[0] for name in members}) == ["limnos", "limnos-0.1.0.dist-info"]
    assert client.stat().st_size <= CLIENT_BYTES_MAX
    with zipfile.ZipFile(client) as wheel:
        own = [name for name in wheel.namelist() if name.startswith("limnos/")]
        assert release.BUILD_FILE in own
        assert [name for name in own if wheel.read(name) != contents.get(name)] == []
