# SPDX-License-Identifier: Apache-2.0
"""Description cache: caches descriptions of local Lance tables while the files that they were read from are unchanged.

Makes no access decisions: the request has been authorized before. Clients commit to such tables without this server. So
each lookup first checks the table's directory of manifests: every commit creates a file there, which changes the
directory's change time (`ctime`), and no program can set that time. A second change in the same tick of the file
system's clock would not be detected, so a description is not cached shortly after a change. Remote tables are not
cached: the check would cost as much as it saves. Decision record 0071.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from limnos.files import FileIdentity, is_local
from limnos.formats.lance_contents import LanceDescription
from limnos.formats.lance_manifests import V1, V2, VERSIONS, manifest_name
from limnos.model.lance import LanceVersion
from limnos.services.lance.tables import LanceTable
from limnos.services.request.node_services import ComponentKey

KEPT_BYTES_MAX: Final = 16 << 20
ENTRY_BYTES: Final = 2_000
"""The memory of a cached description in addition to its strings, in bytes."""
SETTLED_NS: Final = 3_000_000_000
"""The age in nanoseconds from which a change is certain to differ in time from any later one, even on the coarsest file
systems.
"""

DescriptionKey = tuple[str, tuple[str, ...]]
"""A table's location and its roots; with other roots the files are checked again."""


class DirectorySnapshot(NamedTuple):
    """The state of a table's directory of manifests at one time."""

    key: DescriptionKey
    directory: FileIdentity
    at_ns: int


class CachedDescription(NamedTuple):
    """A description, the identities of its files, and a managed table's newest version in the store."""

    directory: FileIdentity
    manifest_at: str
    manifest: FileIdentity
    top: LanceVersion | None
    described: LanceDescription


class DescriptionCache:
    """The cached descriptions of a node; the least recently used are removed when the cache is full."""

    def __init__(
        self,
        identity_of: Callable[[str], FileIdentity | None],
        *,
        bytes_max: int = KEPT_BYTES_MAX,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._identity_of = identity_of
        self._bytes_max = bytes_max
        self._now_ns = now_ns
        self._kept: dict[DescriptionKey, CachedDescription] = {}
        self._bytes = 0

    def directory_snapshot(self, table: LanceTable) -> DirectorySnapshot | None:
        """Return the current state of a table's directory of manifests; None if descriptions of this table are not
        cacheable.
        """
        if not is_local(table.location):
            return None
        at_ns = self._now_ns()
        directory = self._identity_of(f"{table.location}/{VERSIONS}")
        if directory is None or not directory.is_directory:
            return None
        return DirectorySnapshot((table.location, table.place.roots), directory, at_ns)

    def find(self, directory_snapshot: DirectorySnapshot, *, top: LanceVersion | None) -> LanceDescription | None:
        """Return the cached description if the directory, the newest manifest and, for a managed table, `top` are
        unchanged.
        """
        description = self._kept.get(directory_snapshot.key)
        if description is None:
            return None
        if (
            description.directory != directory_snapshot.directory
            or not _is_same(description.top, top)
            or self._identity_of(description.manifest_at) != description.manifest
        ):
            self._drop(directory_snapshot.key)
            return None
        self._kept[directory_snapshot.key] = self._kept.pop(directory_snapshot.key)
        return description.described

    def keep(
        self, directory_snapshot: DirectorySnapshot, described: LanceDescription, *, top: LanceVersion | None
    ) -> None:
        """Cache a description read after the snapshot, unless the directory has changed since, or shortly before."""
        location = f"{directory_snapshot.key[0]}/{VERSIONS}"
        if self._identity_of(location) != directory_snapshot.directory or (
            top is not None and top.version != described.version
        ):
            return
        for scheme in (V2, V1):
            at = f"{location}/{manifest_name(described.version, scheme)}"
            manifest = self._identity_of(at)
            if manifest is not None:
                break
        else:
            return
        newest_ns = max(directory_snapshot.directory.changed_ns, manifest.changed_ns)
        if manifest.is_file and newest_ns < directory_snapshot.at_ns - SETTLED_NS:
            self._put(
                directory_snapshot.key,
                CachedDescription(
                    directory=directory_snapshot.directory,
                    manifest_at=at,
                    manifest=manifest,
                    top=top,
                    described=described,
                ),
            )

    def _put(self, key: DescriptionKey, description: CachedDescription) -> None:
        self._drop(key)
        self._kept[key] = description
        self._bytes += _size(description)
        while self._bytes > self._bytes_max:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: DescriptionKey) -> None:
        description = self._kept.pop(key, None)
        if description is not None:
            self._bytes -= _size(description)


def _is_same(version: LanceVersion | None, top: LanceVersion | None) -> bool:
    """Return whether two rows describe the same commit, whether or not its manifest has its final name."""
    if version is None or top is None:
        return version is top
    return (version.version, version.staged) == (top.version, top.staged)


def _size(description: CachedDescription) -> int:
    described = description.described
    texts = sum(
        len(key) + len(value) for each in (described.metadata, described.schema_metadata) for key, value in each.items()
    )
    return ENTRY_BYTES + len(described.fields) + len(described.logical_fields) + texts


DESCRIPTIONS: ComponentKey[DescriptionCache] = ComponentKey(
    "descriptions", lambda services: DescriptionCache(services.files.identity_now)
)
