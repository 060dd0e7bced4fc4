# SPDX-License-Identifier: Apache-2.0
"""Table description: describes a Lance table from the store and from the table's own files.

The store decides first; only then a worker process reads the files. Reads write nothing. Clients commit to such tables
without this server, so descriptions are cached only as `rooms.lance.services.description_cache` allows.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple, cast

from limnos.access.actions import Action
from limnos.formats.lance_contents import LanceDescription
from limnos.formats.lance_manifests import check_branch
from limnos.model.errors import BadRequest, NotFound
from limnos.model.lance import LanceVersion
from limnos.names.path import Levels
from limnos.rooms.lance.services.catalog_directories import (
    not_a_table_error,
    readable_identity,
    readable_table_of,
    table_in,
)
from limnos.rooms.lance.services.description_cache import DESCRIPTIONS, DirectorySnapshot
from limnos.rooms.lance.services.reference_reads import references_of
from limnos.rooms.lance.services.table_data import has_data
from limnos.rooms.lance.services.versions import latest_version, manifests_for, version_require
from limnos.rooms.lance.services.workers import answer_question, storage_options_of, worker_task_of
from limnos.rooms.lance.sources.questions import Describe
from limnos.services.lance.directories import CatalogDirectory
from limnos.services.lance.table_files import TableDescription
from limnos.services.lance.tables import LanceTable
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.objects.lance_versions import lance_top_read

VERSION_END: Final = 1 << 63


class VersionReference(NamedTuple):
    """The requested state of a table: the latest version, a version by number, the latest of a branch, or a tagged
    version.
    """

    version: int | None = None
    tag: str | None = None
    branch: str | None = None


class _NewestState(NamedTuple):
    """What a cached description of the newest version must match, and the cached description; None without one."""

    directory_snapshot: DirectorySnapshot | None
    top: LanceVersion | None
    description: LanceDescription | None


async def table_describe(
    ctx: Context, scope: RequestScope, *, levels: Levels, at: VersionReference, detailed: bool, looks: bool
) -> TableDescription:
    """Describe a table.

    Access is decided again after files were read. A description from the cache needs no second decision: it was cached
    before the first one, and the table's directory was still unchanged at that moment.

    Args:
        ctx: The request.
        scope: The catalog.
        levels: The levels of the table's name.
        at: The state to describe.
        detailed: Whether to read the table's files.
        looks: Whether to check that the table has data, even if its files are not read.

    Raises:
        NotFound: The table, version, tag or branch is missing.
        BadRequest: The request has both a tag and a version or branch.
        InvalidTable: The files are not a Lance table.
        StorageFailed: The storage does not respond.
        PermissionDenied: The caller may not load the table.
    """

    def decide(request_view: RequestView) -> CatalogDirectory | LanceTable:
        return readable_table_of(request_view, levels, action=Action.TABLE_LOAD)

    is_newest, states = at == VersionReference(), list[_NewestState]()
    first = await ctx.read(scope, decide)
    table = first if isinstance(first, LanceTable) else None
    if table is not None and not detailed and not looks:
        return TableDescription(table, None, None)
    if table is not None and is_newest:
        states.append(await _newest_state(ctx, table))
        if states[0].description is not None:
            return TableDescription(table, False, states[0].description if detailed else None)

    async def describe(decided: CatalogDirectory | LanceTable) -> TableDescription:
        if isinstance(decided, CatalogDirectory):
            return await _describe_in_directory(ctx, decided, levels=levels, at=at, detailed=detailed)
        if not is_newest:
            return await _describe_state(ctx, decided, at=at, detailed=detailed)
        newest_state = states.pop() if states else await _newest_state(ctx, decided)
        return await _describe_newest(ctx, decided, newest_state=newest_state, detailed=detailed)

    confirmed: tuple[CatalogDirectory | LanceTable, TableDescription] = await ctx.read_confirmed(
        scope, decide, work=describe, identity=readable_identity, first=first
    )
    return confirmed[1]


async def _newest_state(ctx: Context, table: LanceTable) -> _NewestState:
    """Look in the cache for a description of the newest version, which is found only if the files are unchanged."""
    descriptions = DESCRIPTIONS.of(ctx.services)
    directory_snapshot = descriptions.directory_snapshot(table)
    if directory_snapshot is None:
        return _NewestState(None, None, None)
    top = await ctx.look_up(partial(lance_top_read, table.node.id, "")) if table.record.managed else None
    description = None if table.record.managed and top is None else descriptions.find(directory_snapshot, top=top)
    return _NewestState(directory_snapshot, top, description)


async def _describe_newest(
    ctx: Context, table: LanceTable, *, newest_state: _NewestState, detailed: bool
) -> TableDescription:
    """Describe a table's newest version from its files, and cache the description."""
    directory_snapshot, top, _ = newest_state
    table_description = await _describe_state(ctx, table, at=VersionReference(), detailed=detailed)
    if directory_snapshot is not None and table_description.details is not None:
        DESCRIPTIONS.of(ctx.services).keep(directory_snapshot, table_description.details, top=top)
    return table_description


async def _describe_state(ctx: Context, table: LanceTable, *, at: VersionReference, detailed: bool) -> TableDescription:
    state = await state_of(ctx, table, at=at)
    if state is None:
        if detailed:
            _refuse_reference(at)
        return TableDescription(table, True, None)
    if not detailed:
        return TableDescription(table, False, None)
    description = await _read(ctx, table, at=state)
    return TableDescription(table, description is None, description)


async def table_exists(ctx: Context, scope: RequestScope, *, levels: Levels, version: int | None) -> None:
    """Check that a table exists, and has the version if one is given. Raises NotFound, PermissionDenied, and for a
    version InvalidTable, StorageFailed.
    """

    def decide(request_view: RequestView) -> CatalogDirectory | LanceTable:
        return readable_table_of(request_view, levels, action=Action.TABLE_EXISTS)

    async def check(decided: CatalogDirectory | LanceTable) -> None:
        at = VersionReference(version)
        if isinstance(decided, CatalogDirectory):
            await _describe_in_directory(ctx, decided, levels=levels, at=at, detailed=version is not None)
        elif version is not None:
            state = await state_of(ctx, decided, at=at)
            if state is None:
                _refuse_reference(at)
            else:
                await _read(ctx, decided, at=state)

    first = await ctx.read(scope, decide)
    if version is None and isinstance(first, LanceTable):
        return
    _: tuple[CatalogDirectory | LanceTable, None] = await ctx.read_confirmed(
        scope, decide, work=check, identity=readable_identity, first=first
    )


async def _describe_in_directory(
    ctx: Context, visible_object: CatalogDirectory, *, levels: Levels, at: VersionReference, detailed: bool
) -> TableDescription:
    """Describe a table of a directory. Raises NotFound, InvalidTable (if `detailed`)."""
    table, entry = await table_in(ctx, visible_object, levels=levels)
    if not detailed or entry.declared:
        if detailed:
            _refuse_reference(at)
        return TableDescription(table, entry.declared, None)
    description = await _read(ctx, table, at=at)
    if description is None:
        raise not_a_table_error(table)
    return TableDescription(table, False, description)


async def state_of(ctx: Context, table: LanceTable, *, at: VersionReference) -> VersionReference | None:
    """Resolve a reference to the version to read; None for a table without data.

    For a managed table the result is always a version number in the store.

    Raises NotFound (version, tag, branch), BadRequest (a tag with a version or branch), InvalidTable,
    ServiceUnavailable.
    """
    if not table.record.managed:
        return at if await has_data(ctx, table.location, place=table.place) else None
    if at.tag is not None:
        at = await _resolve_tag(ctx, table, at=at)
    branch = check_branch(at.branch or "")
    top = await latest_version(ctx, table, branch=branch)
    if top is None:
        if branch:
            raise NotFound(branch, kind="branch")
        return None
    if at.version is not None and at.version != top.version:
        await version_require(ctx, table, manifests=manifests_for(ctx, table, branch=branch), version=at.version)
    return VersionReference(at.version or top.version, branch=branch or None)


async def _resolve_tag(ctx: Context, table: LanceTable, *, at: VersionReference) -> VersionReference:
    """Return the version of a managed table's tag. Raises NotFound for an unknown tag, BadRequest if a version or
    branch is given, too.
    """
    if at.version is not None or at.branch is not None:
        raise BadRequest("A tag determines version and branch: leave out version and branch, or the tag")
    reference = (await references_of(ctx, table)).tags.get(cast("str", at.tag))
    if reference is None:
        raise NotFound(cast("str", at.tag), kind="tag")
    return VersionReference(reference.version, branch=reference.branch)


async def _read(ctx: Context, table: LanceTable, *, at: VersionReference) -> LanceDescription | None:
    if at.version is not None and not 0 < at.version < VERSION_END:
        raise NotFound(str(at.version), kind="version")
    options = storage_options_of(table.place.catalog.properties)
    question = Describe(location=table.location, options=options, version=at.version, tag=at.tag, branch=at.branch)
    return await answer_question(ctx, worker_task_of(ctx, question, quick=True), shape=LanceDescription | None)  # type: ignore[arg-type]  # a union is a shape


def _refuse_reference(at: VersionReference) -> None:
    """Raise NotFound for a version, tag or branch of a table without data."""
    for kind, name in (("version", at.version), ("tag", at.tag), ("branch", at.branch)):
        if name is not None:
            raise NotFound(str(name), kind=kind)
