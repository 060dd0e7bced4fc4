# SPDX-License-Identifier: Apache-2.0
"""Build and tag a release: `make dist`, `make release`.

Usage: python -m scripts.release build [--out DIRECTORY], or python -m scripts.release tag.

`build` writes wheel, sdist, the wheel of `limnos-client`, a bill of materials (CycloneDX) and SHA-256 sums into
`dist/`. Each is built twice, and both must have the same bytes. `tag` first checks the tree, the versions and the
changelog, then builds, and creates the tag `v<version>`. It pushes and uploads nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from scripts.client_package import write_project

ROOT: Final = Path(__file__).parents[1]
BIN: Final = Path(sys.executable).parent
UNRELEASED: Final = "## Unreleased\n"
BUILD_FILE: Final = "limnos/build.json"


class ReleaseError(Exception):
    """Why no release can be made of this tree, and what to do."""


class BuildPoint(NamedTuple):
    """The commit that is built, and its time in seconds since 1970: the time of everything in the files."""

    commit: str
    seconds: int


def stated_versions(root: Path) -> dict[str, str]:
    """Return the version that each place states; a place without one is an error."""
    chart = (root / "deploy/helm/limnos/Chart.yaml").read_text(encoding="utf-8")
    patterns = {
        "pyproject.toml": (root / "pyproject.toml", r'^version = "(.+)"$'),
        "src/limnos/__init__.py": (root / "src/limnos/__init__.py", r'^__version__ = "(.+)"$'),
        "CHANGELOG.md": (root / "CHANGELOG.md", r"^## (\d+\.\d+\.\d+)\b"),
    }
    matches = {
        place: re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
        for place, (file, pattern) in patterns.items()
    }
    matches |= {
        f"Chart.yaml {key}": re.search(rf"^{key}: (.+)$", chart, re.MULTILINE) for key in ("version", "appVersion")
    }
    return {place: match[1] if match else "none" for place, match in matches.items()}


def check_versions(stated: Mapping[str, str]) -> str:
    """Return the one version that all places state. Raises ReleaseError if they differ."""
    if len(set(stated.values())) != 1:
        raise ReleaseError(f"the versions differ, so state one everywhere: {dict(stated)}")
    return next(iter(stated.values()))


def check_changelog(text: str, version: str) -> None:
    """Check that the release has a day, and that no change waits as unreleased. Raises ReleaseError."""
    if re.search(rf"^## {re.escape(version)} – \d{{4}}-\d\d-\d\d$", text, re.MULTILINE) is None:
        raise ReleaseError(
            f"CHANGELOG.md has no heading '## {version} – YYYY-MM-DD': write the day of the release there"
        )
    waiting = text.partition(UNRELEASED)[2].partition("\n## ")[0]
    if waiting.strip():
        raise ReleaseError(f"CHANGELOG.md has unreleased changes: move them below the heading of {version}")


def check_tree(root: Path, tag: str) -> BuildPoint:
    """Return the commit to build. Raises ReleaseError if the tree has changes, or the tag exists."""
    if changes := _git(root, "status", "--porcelain"):
        raise ReleaseError(f"the work tree has changes, so commit them first:\n{changes}")
    if _git(root, "tag", "--list", tag):
        raise ReleaseError(f"the tag {tag} exists: raise the version")
    return build_point(root)


def build_point(root: Path) -> BuildPoint:
    """Return the commit of the work tree; its name ends with `-changed` if files differ from it."""
    commit, seconds = _git(root, "log", "-1", "--format=%H %ct").split()
    return BuildPoint(commit + ("-changed" if _git(root, "status", "--porcelain") else ""), int(seconds))


def build_packages(root: Path, point: BuildPoint, *, out: Path) -> list[Path]:
    """Build wheel and sdist, and the wheel of the client, with the builder of this environment; returns the files."""
    _build(root, point, out=out)
    with tempfile.TemporaryDirectory() as folder:
        write_project(root, Path(folder), build_file={"commit": point.commit, "built_at": _time_of(point)})
        _build(Path(folder), point, "--wheel", out=out)
    return sorted(file for file in out.iterdir() if file.suffix in {".whl", ".gz"})


def _build(project: Path, point: BuildPoint, *options: str, out: Path) -> None:
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(point.seconds), "LIMNOS_COMMIT": point.commit}
    words: list[str | Path] = [
        BIN / "uv",
        "build",
        "--quiet",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        out,
        *options,
        project,
    ]
    subprocess.run(words, check=True, env=environ)


def _time_of(point: BuildPoint) -> str:
    return datetime.fromtimestamp(point.seconds, UTC).isoformat()


def check_packages(first: Iterable[Path], second: Iterable[Path], point: BuildPoint) -> None:
    """Check that both builds have the same bytes, the metadata is complete and each wheel names its commit."""
    first = list(first)
    if sums_of(first) != sums_of(second):
        raise ReleaseError("two builds of one commit differ: compare the members of both wheels")
    subprocess.run([BIN / "twine", "check", "--strict", *first], check=True, stdout=subprocess.DEVNULL)
    for wheel in (file for file in first if file.suffix == ".whl"):
        with zipfile.ZipFile(wheel) as archive:
            stated = json.loads(archive.read(BUILD_FILE))["commit"]
        if stated != point.commit:
            raise ReleaseError(f"{wheel.name} states the commit {stated}, not {point.commit}")


def bill_of_materials(root: Path, point: BuildPoint) -> str:
    """Return the packages of uv.lock with all extras, as CycloneDX; the same text for each build of a commit."""
    words: list[str | Path] = [
        BIN / "uv",
        "export",
        "--quiet",
        "--frozen",
        "--no-dev",
        "--all-extras",
        "--format",
        "cyclonedx1.5",
    ]
    environ = {**os.environ, "UV_PREVIEW_FEATURES": "sbom-export"}
    document = json.loads(subprocess.run(words, check=True, cwd=root, env=environ, capture_output=True).stdout)
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, f"https://pypi.org/project/limnos/#{point.commit}").urn
    document["metadata"]["timestamp"] = _time_of(point)
    return json.dumps(document, indent=2) + "\n"


def sums_of(files: Iterable[Path]) -> str:
    """Return a line for each file as `sha256sum` writes it."""
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files))


def build_release(root: Path, point: BuildPoint, *, out: Path) -> list[Path]:
    """Build everything twice, check it, and write it into a directory; returns the files."""
    for old in out.glob("limnos[-_]*") if out.is_dir() else ():
        old.unlink()
    with tempfile.TemporaryDirectory() as again:
        files = build_packages(root, point, out=out)
        check_packages(files, build_packages(root, point, out=Path(again)), point)
    bill = out / re.sub(r"\.tar\.gz$", ".cdx.json", next(file.name for file in files if file.suffix == ".gz"))
    bill.write_text(bill_of_materials(root, point), encoding="utf-8")
    files.append(bill)
    (out / "SHA256SUMS").write_text(sums_of(files), encoding="utf-8")
    return files


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def main(arguments: list[str]) -> int:
    """Build, or check, build and tag. Prints the sums of the files; returns 1 with the reason if none can be made."""
    parser = argparse.ArgumentParser(prog="release.py", description="Build and tag a release.")
    parser.add_argument("what", choices=["build", "tag"])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args(arguments)
    try:
        version = check_versions(stated_versions(ROOT))
        tag = f"v{version}"
        if options.what == "tag":
            check_changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
        point = check_tree(ROOT, tag) if options.what == "tag" else build_point(ROOT)
        sys.stdout.write(sums_of(build_release(ROOT, point, out=options.out)))
        if options.what == "tag":
            _git(ROOT, "tag", "--annotate", tag, "--message", f"Limnos {version}", point.commit)
            sys.stdout.write(f"{tag} is {point.commit}; push it, then upload the files of {options.out} to PyPI\n")
    except ReleaseError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
