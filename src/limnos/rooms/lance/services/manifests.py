# SPDX-License-Identifier: Apache-2.0
"""Lance manifests as files: staged manifests, manifests of versions, and manifests moved aside to hide them from
readers.

Must not know the stored versions: the caller passes the version, and the newest version. All files are directly in the
table's own directories of manifests, even if links lead outside. The first access after a commit gives the version's
manifest its final name; this may be repeated on any node. The staged file stays until the next version exists. So a
manifest that was lost before that, or renamed by mistake, is restored automatically.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from limnos.files import ChooseNames, FileEntry, is_local, parse
from limnos.formats.lance_manifests import (
    MAGIC,
    V1,
    V2,
    VERSIONS,
    directory_of,
    manifest_name,
    manifest_of,
    manifests_of,
    staged_name,
    staged_version,
)
from limnos.formats.lance_orphans import BYPASSED
from limnos.model.errors import AlreadyExists, BadRequest, MissingFile
from limnos.model.lance import LanceVersion
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.files import FileOperations
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.lance")
SETTLES_MAX = 8
"""The maximum number of attempts to publish a manifest while others rename the same file."""


async def find_manifests(
    files: FileOperations, location: str, *, place: CatalogStorage, now_ms: int
) -> tuple[LanceVersion, ...]:
    """List the existing versions of all branches of the table at a location."""
    properties = place.catalog.properties
    below = await files.below(f"{location}/tree", properties, roots=place.roots)
    branches = {
        each.removeprefix(f"{location}/tree/").partition(f"/{VERSIONS}/")[0]
        for each in below
        if f"/{VERSIONS}/" in each
    }
    versions: list[LanceVersion] = []
    for branch in ("", *sorted(branches)):
        versions += await BranchManifests(files, location, branch=branch, place=place).versions(now_ms=now_ms)
    return tuple(versions)


class BranchManifests:
    """The manifests of one branch of a table; "" is the main branch."""

    def __init__(self, files: FileOperations, location: str, *, branch: str, place: CatalogStorage) -> None:
        self._files = files
        self._location = location
        self._properties = place.catalog.properties
        self._roots = place.roots
        self.branch = branch
        self.directory = f"{location}/{directory_of(branch)}"

    def path_of(self, name: str) -> str:
        """Return a manifest's path as Lance's clients spell it: without the scheme and the bucket."""
        return "/".join((*parse(self._location).segments, *directory_of(self.branch).split("/"), name))

    def staged_name(self, path: str) -> str:
        """Return the name of a staged manifest from a client's path. Raises BadRequest for any other file."""
        return staged_name(path, table=parse(self._location).segments, branch=self.branch)

    async def check_staged(self, name: str, *, version: int, size: int | None) -> int:
        """Check that a staged manifest exists and is complete. Returns its size in bytes. Raises BadRequest if it is
        missing, incomplete, or of another version.
        """
        at = f"{self.directory}/{name}"
        try:
            data = await self._files.read_within(at, self._properties, [self._location])
        except MissingFile:
            raise BadRequest(
                f"No staged manifest is at {self.path_of(name)}: write it before it is committed"
            ) from None
        if size is not None and size != len(data):
            raise BadRequest(f"The staged manifest {name} has {len(data)} bytes and not {size}: write it again")
        if not data.endswith(MAGIC):
            raise BadRequest(f"The staged manifest {name} does not end like a manifest: write it again")
        version_in_name = staged_version(name)
        if version_in_name is None or version_in_name.version != version:
            raise BadRequest(f"The staged manifest {name} is not that of version {version}: send its own version")
        return len(data)

    async def is_same(self, name: str, version: LanceVersion) -> bool:
        """Return whether a staged manifest has the same bytes as a version's manifest."""
        try:
            staged_manifest = await self._files.read_within(
                f"{self.directory}/{name}", self._properties, [self._location]
            )
            final = await self._files.read(self._final(version), self._properties)
        except MissingFile:
            return False
        return staged_manifest == final

    def _final(self, version: LanceVersion) -> str:
        return f"{self.directory}/{manifest_name(version.version, version.scheme)}"

    async def settle(self, version: LanceVersion, *, aside: str | None = None) -> bool:
        """Give a committed version's manifest its final name. Another file of that name is moved aside.

        Returns whether the manifest exists under its final name. `aside` is the location to which an earlier call moved
        a file of that name.
        """
        if not version.staged:
            return await self.exists(version)
        for _ in range(SETTLES_MAX):
            try:
                await self.publish(version)
            except AlreadyExists:
                aside = await self.move_aside(manifest_name(version.version, version.scheme))
            except MissingFile:
                return await self.exists(version) or await self._restore_moved(version, aside)
            else:
                return True
        return False

    async def _restore_moved(self, version: LanceVersion, aside: str | None) -> bool:
        """Restore a version's manifest that was moved aside just after another node had published it.

        Returns whether the manifest exists now. Restores only on a local disk: in an object store the file at `aside`
        may be another one, so there the staged file is kept instead (`drop_staged`).
        """
        if aside is None or not is_local(aside):
            return False
        try:
            data = await self._files.read(aside, self._properties)
            if len(data) != version.size:
                return False
            await self._files.link_new(aside, self._final(version), properties=self._properties, roots=[self._location])
        except (AlreadyExists, MissingFile):
            return await self.exists(version)
        log.warning("a manifest that was moved aside by mistake was restored", manifest=self._final(version))
        return True

    async def publish(self, version: LanceVersion) -> None:
        """Give a staged manifest its final name, if that is free. Raises AlreadyExists, MissingFile."""
        source, target = f"{self.directory}/{version.staged}", self._final(version)
        await self._files.link_new(source, target, properties=self._properties, roots=[self._location])

    async def exists(self, version: LanceVersion) -> bool:
        """Return whether a version's manifest exists under its final name."""
        return await self._exists(self._final(version))

    async def _exists(self, location: str) -> bool:
        if is_local(location):
            return self._files.exists_now(location)
        return await self._files.exists(location, self._properties)

    async def above(self, top: int) -> list[str]:
        """Return the names of the manifests of versions above `top`; empty if version `top + 1` has no manifest."""
        if top and not any(
            [await self._exists(f"{self.directory}/{manifest_name(top + 1, each)}") for each in (V2, V1)]
        ):
            return []
        return [name for name in await self._names() if (manifest_of(name) or (0,))[0] > top]

    async def move_aside(self, name: str) -> str:
        """Move a manifest to a name that readers ignore.

        Returns its new location; its data files are kept until the debris task deletes them.
        """
        aside = f"{self._location}/{BYPASSED}/{name}-{secrets.token_hex(4)}"
        await self._files.move(f"{self.directory}/{name}", aside, properties=self._properties)
        log.warning(
            "a manifest that was not committed here was moved aside", manifest=f"{self.directory}/{name}", to=aside
        )
        return aside

    async def entries(self) -> list[FileEntry]:
        """List the files in the directory of manifests."""
        return await self._files.entries(self.directory, self._properties, roots=[self._location])

    async def versions(self, *, now_ms: int) -> list[LanceVersion]:
        """Return the versions whose manifests exist in the directory, as rows for the store."""
        results = [(entry, manifest_of(entry.name)) for entry in await self.entries()]
        return [
            LanceVersion(
                branch=self.branch,
                version=manifest[0],
                scheme=manifest[1],
                staged="",
                size=entry.size,
                e_tag=None,
                metadata="{}",
                created_at=entry.modified_ms or now_ms,
                settled=True,
            )
            for entry, manifest in results
            if manifest is not None
        ]

    async def names(self) -> dict[int, str]:
        """Return the names of the existing manifests by version."""
        return manifests_of(await self._names())

    async def _names(self) -> list[str]:
        """Return the names of the files in the directory, on a local disk without reading their sizes and times."""
        names: list[str] = []

        def note(entries: list[str]) -> Sequence[str]:
            names.extend(entries)
            return ()

        await self.list_selected(note)
        return names

    async def list_selected(self, choose: ChooseNames) -> list[FileEntry]:
        """List the files in the directory of manifests whose names `choose` selects."""
        return await self._files.list_selected(self.directory, self._properties, roots=[self._location], choose=choose)

    async def drop_staged(self, version: LanceVersion) -> None:
        """Delete a version's staged file after its manifest got its final name, unless the manifest was ever moved
        aside.

        In an object store, moving a manifest aside may by a race delete the file that replaced it. The staged file is
        then needed to restore the version. The debris task deletes it when it is old, with the manifests that were
        moved aside.
        """
        if version.staged and not await self._is_contended(version):
            await self._files.delete(f"{self.directory}/{version.staged}", self._properties)

    async def _is_contended(self, version: LanceVersion) -> bool:
        if is_local(self._location):
            return False
        bypassed_files = await self._files.entries(
            f"{self._location}/{BYPASSED}", self._properties, roots=[self._location]
        )
        return any(
            each.name.startswith(f"{manifest_name(version.version, version.scheme)}-") for each in bypassed_files
        )

    async def drop(self, names: Mapping[int, str]) -> None:
        """Delete manifests, given as names by version."""
        for name in names.values():
            await self._files.delete(f"{self.directory}/{name}", self._properties)
