# SPDX-License-Identifier: Apache-2.0
"""The kit's class path: archives of a Maven repository, pinned in `jars.lock`, fetched once.

Job: lock file in, local paths out. May import `limnos.spark.jars`, whose downloader verifies each SHA-256. It must not
know what runs on the class path. The archives are cached in `limnos/conformance` of the XDG cache and come from the
repository of `LIMNOS__SPARK__REPOSITORY`.
"""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from limnos.spark.jars import Artifact, ensure

LOCK = Path(__file__).with_name("jars.lock")
UNPACK_FILTER: Final[dict[str, Any]] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""The filter for members of archives, which Python has from 3.11.4 on. Archives are checked by their hashes before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KitArtifact(Artifact):
    """An archive with an optional classifier, such as `tests`."""

    classifier: str = ""

    @property
    def filename(self) -> str:
        """The file's name: `name-version[-classifier].jar`."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{suffix}.jar"


def cache_directory() -> Path:
    """Return the directory that caches the archives between runs."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    # The XDG specification: a relative path there is invalid and to be ignored.
    root = base if base.is_absolute() else Path.home() / ".cache"
    return root / "limnos" / "conformance"


def parse_lock(text: str) -> list[KitArtifact]:
    """Read the lock file: `group:name:version[:classifier] SHA256 SIZE` per line, `#` begins a comment line."""
    lines = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [_artifact(coordinates, sha256, int(size)) for coordinates, sha256, size in lines]


def _artifact(coordinates: str, sha256: str, size_bytes: int) -> KitArtifact:
    group, name, version, *rest = coordinates.split(":")
    return KitArtifact(
        group=group, name=name, version=version, sha256=sha256, size_bytes=size_bytes, classifier="".join(rest)
    )


def class_path(cache: Path, lock: Path = LOCK) -> list[Path]:
    """Return the local path of every archive of a lock file, fetching what is missing."""
    artifacts = parse_lock(lock.read_text(encoding="utf-8"))
    missing = _missing(artifacts, cache)
    if missing:
        size = sum(artifact.size_bytes for artifact in missing) // 1_000_000
        sys.stderr.write(f"fetching {len(missing)} archives, {size} MB, into {cache}\n")
    return [ensure(artifact, cache=cache) for artifact in artifacts]


def _missing(artifacts: Sequence[KitArtifact], cache: Path) -> list[KitArtifact]:
    maven = Path.home() / ".m2" / "repository"
    places = {artifact: (cache / artifact.filename, maven / artifact.relative_path) for artifact in artifacts}
    return [artifact for artifact, paths in places.items() if not any(path.is_file() for path in paths)]
