# SPDX-License-Identifier: Apache-2.0
"""Names and locations of the manifests of a Lance table's versions.

Pure. Must not know stores. A version's manifest is in `_versions`, that of a branch in `tree/BRANCH/_versions`. There
are two naming schemes: the decimal version (V1), and the inverted version, which sorts the newest first (V2). A staged
manifest, written but not committed, has an additional suffix, and readers ignore it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from limnos.model.errors import BadRequest
from limnos.names.percent import unquote_strict

VERSIONS: Final = "_versions"
V1: Final = 1
V2: Final = 2
SCHEMES: Final = {"V1": V1, "V2": V2}
VERSION_MAX: Final = (1 << 63) - 1
MAGIC: Final = b"LANC"
"""The last bytes of every manifest."""
_TOP: Final = (1 << 64) - 1
_FINAL: Final = re.compile(r"(\d{1,20})\.manifest")
_STAGED: Final = re.compile(r"\d{1,20}\.manifest[-.][A-Za-z0-9._-]{1,80}")
_BRANCH: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
_BRANCH_LENGTH_MAX: Final = 200


class VersionManifest(NamedTuple):
    """The version and naming scheme of a manifest."""

    version: int
    scheme: int


def check_branch(branch: str) -> str:
    """Return a branch's name, "" for main.

    Raises BadRequest for a name that could escape the branch directory, such as one with `..`.
    """
    if branch in ("", "main"):
        return ""
    if len(branch) > _BRANCH_LENGTH_MAX or not _BRANCH.fullmatch(branch) or ".." in branch or branch.endswith(".lock"):
        raise BadRequest(
            f"{branch[:80]!r} is not a name of a branch: letters, digits, '.', '-' and '_', with '/' between parts"
        )
    return branch


def directory_of(branch: str) -> str:
    """Return the directory of a branch's manifests, relative to the table."""
    return f"tree/{branch}/{VERSIONS}" if branch else VERSIONS


def manifest_name(version: int, scheme: int) -> str:
    """Return the file name of a version's manifest in a naming scheme (1 or 2)."""
    return f"{version}.manifest" if scheme == V1 else f"{_TOP - version:020d}.manifest"


def manifest_of(name: str) -> VersionManifest | None:
    """Parse a manifest's name; None for another file."""
    match = _FINAL.fullmatch(name)
    if match is None:
        return None
    digits = match[1]
    number = int(digits)
    if len(digits) == len(str(_TOP)) and number > VERSION_MAX:
        return VersionManifest(_TOP - number, V2) if number <= _TOP else None
    return VersionManifest(number, V1) if number <= VERSION_MAX else None


def manifests_of(names: Iterable[str]) -> dict[int, str]:
    """Return the manifests among file names, as a mapping from version to name."""
    results: dict[int, str] = {}
    for name in names:
        manifest = manifest_of(name)
        if manifest is not None:
            results[manifest.version] = name
    return results


def staged_name(path: str, *, table: tuple[str, ...], branch: str) -> str:
    """Return the name of a staged manifest for a writer's full path.

    Args:
        path: The path in the store.
        table: The segments of the table's location.
        branch: The branch's name.

    Raises:
        BadRequest: The path is not that of a staged manifest directly in the branch's directory. A commit may reference
            only files of its own table.
    """
    expected = (*table, *directory_of(branch).split("/"))
    segments = tuple(_path_without_scheme(path).split("/"))
    name = segments[-1]
    if not _STAGED.fullmatch(name) or not _is_same(segments[:-1], expected):
        raise BadRequest(
            f"manifest_path {path[:200]!r} is not a staged manifest of this table: write it as VERSION.manifest-UUID"
            f" below {'/'.join(expected)}"
        )
    return name


def _path_without_scheme(path: str) -> str:
    """Return a path without scheme and bucket, which some clients send."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return path.lstrip("/")
    return rest.lstrip("/") if scheme == "file" else rest.partition("/")[2]


def _is_same(path: tuple[str, ...], expected: tuple[str, ...]) -> bool:
    """Return whether a path equals the expected path, as it is or percent-decoded (some clients encode special
    characters).
    """
    return path == expected or tuple(map(unquote_strict, path)) == expected


def is_staged_name(name: str) -> bool:
    """Return whether a file name is that of a staged manifest, `VERSION.manifest-UUID`."""
    return _STAGED.fullmatch(name) is not None


def staged_version(name: str) -> VersionManifest | None:
    """Parse the version in a staged manifest's name; None for another name."""
    return manifest_of(name.partition(".manifest")[0] + ".manifest")
