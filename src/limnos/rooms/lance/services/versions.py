# SPDX-License-Identifier: Apache-2.0
"""Lance versions: list and describe the versions of a table.

Must not know any wire format. For a managed table the store defines the versions: the row is the commit, by
compare-and-swap on the newest number, and the manifest gets its final name after it. A manifest that a client wrote
directly to storage is moved aside before a version is returned, so that no client reads it. For any other table its
files define the versions, and nothing is cached here.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from limnos.formats.lance_manifests import VERSION_MAX, check_branch, manifest_name, manifest_of, manifests_of
from limnos.model.errors import InvalidTable, NotFound, ServiceUnavailable
from limnos.model.lance import LanceVersion
from limnos.names.path import Levels
from limnos.rooms.lance.services.catalog_directories import table_read_confirmed
from limnos.rooms.lance.services.manifests import BranchManifests
from limnos.services.lance.tables import LanceTable
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.store.objects.lance_versions import lance_top_read, lance_version_read, lance_versions_read

ROUNDS = 20
CHUNK = 1000


class VersionWindow(NamedTuple):
    """The requested page of a list: at most `limit` versions after the version `after`, in ascending or descending
    order.
    """

    after: int | None = None
    limit: int | None = None
    descending: bool = False


NEWEST: Final = VersionWindow(limit=1, descending=True)


class VersionView(NamedTuple):
    """A version for responses: its number, its manifest's path as clients spell it, and its details."""

    version: int
    path: str
    size: int | None
    e_tag: str | None
    at_ms: int | None
    metadata: str = "{}"


def manifests_for(ctx: Context, table: LanceTable, *, branch: str) -> BranchManifests:
    """Return the manifests of a table's branch."""
    return BranchManifests(ctx.services.files, table.location, branch=branch, place=table.place)


async def latest_version(ctx: Context, table: LanceTable, *, branch: str) -> LanceVersion | None:
    """Return a managed table's newest version; None without versions.

    First gives its manifest its final name, and moves manifests of later versions aside.

    Raises InvalidTable if its manifest was deleted, ServiceUnavailable if the table changes too fast.
    """
    manifests = manifests_for(ctx, table, branch=branch)
    read = partial(lance_top_read, table.node.id, branch)
    moved_names: dict[int, str] = {}
    for _ in range(ROUNDS):
        top = await ctx.look_up(read)
        if top is not None and moved_names:
            await _restore_manifests(ctx, table, manifests=manifests, moved=moved_names, top=top.version)
        if top is None and branch:
            return None
        if top is not None and not await manifests.settle(top):
            if branch and not await manifests.names():
                return None  # a client deleted the branch by deleting its directory
            raise manifest_lost_error(table, top)
        above = await manifests.above(0 if top is None else top.version)
        if not above:
            return top
        if top == await ctx.look_up(read):  # no concurrent commit, so those manifests belong to no version
            for name in above:
                moved_names[(manifest_of(name) or (0,))[0]] = await manifests.move_aside(name)
    raise ServiceUnavailable("The table changed faster than it could be read: try again")


async def _restore_manifests(
    ctx: Context, table: LanceTable, *, manifests: BranchManifests, moved: dict[int, str], top: int
) -> None:
    """Restore the manifests in `moved` (locations by version) whose versions have been committed since."""
    for version in [each for each in moved if each <= top]:
        row = await ctx.look_up(partial(lance_version_read, table.node.id, manifests.branch, version=version))
        aside = moved.pop(version)
        if row is not None:
            await manifests.settle(row, aside=aside)


def manifest_lost_error(table: LanceTable, version: LanceVersion) -> InvalidTable:
    """Return the error for a newest version whose manifest is lost and cannot be restored."""
    name = manifest_name(version.version, version.scheme)
    return InvalidTable(
        f"The newest version, {version.version}, of the table at {table.location} has lost its manifest {name}: restore"
        " the file, or deregister the table and register its remaining versions"
    )


async def versions_list(
    ctx: Context, scope: RequestScope, *, levels: Levels, branch: str, window: VersionWindow
) -> tuple[list[VersionView], int | None]:
    """Return a page of a branch's versions, and the version after which the next page begins; None at the end.

    Raises NotFound (table, branch), PermissionDenied, InvalidTable, ServiceUnavailable.
    """
    read = partial(_read_versions, ctx, branch=check_branch(branch), window=window)
    return await table_read_confirmed(ctx, scope, levels=levels, work=read)


async def _read_versions(
    ctx: Context, table: LanceTable, *, branch: str, window: VersionWindow
) -> tuple[list[VersionView], int | None]:
    """Read a page of versions. Raises as `versions_list`."""
    if not table.record.managed:
        return await _in_storage(ctx, table, branch=branch, window=window)
    top = await latest_version(ctx, table, branch=branch)
    if top is None:
        if branch:
            raise NotFound(branch, kind="branch")
        return [], None
    manifests = manifests_for(ctx, table, branch=branch)
    if window.descending and window.limit == 1 and window.after is None:
        return [version_view_of(manifests, top)], top.version if top.version > 1 else None
    views = {
        each.version: each for each in await _stored_versions(ctx, table, manifests=manifests, top=top, window=window)
    }
    page, after = _version_page(list(views), window)
    return [views[version] for version in page], after


async def _stored_versions(
    ctx: Context, table: LanceTable, *, manifests: BranchManifests, top: LanceVersion, window: VersionWindow
) -> list[VersionView]:
    """Read a page of stored versions up to the newest one, without versions whose manifests a cleanup has deleted."""
    existing_names = {**await manifests.names(), top.version: ""}
    requested = None if window.limit is None else window.limit + 1
    views: list[VersionView] = []
    after: int | None = window.after
    while requested is None or len(views) < requested:
        read = partial(lance_versions_read, table.node.id, manifests.branch)
        rows = await ctx.look_up(partial(read, after=after, descending=window.descending, limit=CHUNK))
        views += [
            version_view_of(manifests, each)
            for each in rows
            if each.version <= top.version
            and (each.version in existing_names or (not each.settled and await manifests.settle(each)))
        ]
        if len(rows) < CHUNK:
            break
        after = rows[-1].version
    return views


def _version_page(versions: list[int], window: VersionWindow) -> tuple[list[int], int | None]:
    """Return a page of version numbers, and the number after which the next page begins; None at the end."""
    ordered_versions = sorted(versions, reverse=window.descending)
    after = window.after
    if after is not None:
        ordered_versions = [each for each in ordered_versions if (each < after if window.descending else each > after)]
    if window.limit is None or len(ordered_versions) <= window.limit:
        return ordered_versions, None
    page = ordered_versions[: window.limit]
    return page, page[-1] if page else None


def version_view_of(manifests: BranchManifests, version: LanceVersion) -> VersionView:
    """Convert a version's row to the form for responses."""
    path = manifests.path_of(manifest_name(version.version, version.scheme))
    return VersionView(
        version=version.version,
        path=path,
        size=version.size,
        e_tag=version.e_tag,
        at_ms=version.created_at,
        metadata=version.metadata,
    )


async def _in_storage(
    ctx: Context, table: LanceTable, *, branch: str, window: VersionWindow
) -> tuple[list[VersionView], int | None]:
    """Return a page of versions, read from the manifests in the table's directory, and the version after which the next
    page begins.

    The names of all manifests are read, but sizes and times only of those on the page. Raises NotFound for a branch
    without manifests.
    """
    manifests = manifests_for(ctx, table, branch=branch)
    existing_names: dict[int, str] = {}

    def choose(names: list[str]) -> list[str]:
        existing_names.update(manifests_of(names))
        return [existing_names[version] for version in _version_page(list(existing_names), window)[0]]

    entries = await manifests.list_selected(choose)
    if branch and not existing_names:
        raise NotFound(branch, kind="branch")
    views = [
        VersionView(
            version=manifest.version,
            path=manifests.path_of(entry.name),
            size=entry.size,
            e_tag=None,
            at_ms=entry.modified_ms or None,
        )
        for entry in entries
        if (manifest := manifest_of(entry.name)) is not None
    ]
    return views, _version_page(list(existing_names), window)[1]


async def version_describe(
    ctx: Context, scope: RequestScope, *, levels: Levels, branch: str, version: int | None
) -> VersionView:
    """Describe one version; None for the newest.

    Raises NotFound (table, branch, version), PermissionDenied, InvalidTable, ServiceUnavailable.
    """
    read = partial(_read_version, ctx, branch=check_branch(branch), version=version)
    return await table_read_confirmed(ctx, scope, levels=levels, work=read)


async def _read_version(ctx: Context, table: LanceTable, *, branch: str, version: int | None) -> VersionView:
    """Read one version; None for the newest. Raises as `version_describe`."""
    if not table.record.managed:
        window = NEWEST if version is None else VersionWindow(after=version - 1, limit=1)
        views, _ = await _in_storage(ctx, table, branch=branch, window=window)
        if not views or version not in (None, views[0].version):
            raise _no_version(version)
        return views[0]
    top = await latest_version(ctx, table, branch=branch)
    if top is None:
        raise NotFound(branch, kind="branch") if branch else _no_version(version)
    manifests = manifests_for(ctx, table, branch=branch)
    if version is None or version == top.version:
        return version_view_of(manifests, top)
    row = await version_require(ctx, table, manifests=manifests, version=version)
    return version_view_of(manifests, row)


async def version_require(ctx: Context, table: LanceTable, *, manifests: BranchManifests, version: int) -> LanceVersion:
    """Return a version of a managed table whose manifest exists. Raises NotFound."""
    row = None
    if 0 < version <= VERSION_MAX:
        row = await ctx.look_up(partial(lance_version_read, table.node.id, manifests.branch, version=version))
    if row is None or not (await manifests.exists(row) if row.settled else await manifests.settle(row)):
        raise _no_version(version)
    return row


def _no_version(version: int | None) -> NotFound:
    return NotFound("latest" if version is None else str(version), kind="version")
