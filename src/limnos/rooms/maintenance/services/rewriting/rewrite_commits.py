# SPDX-License-Identifier: Apache-2.0
"""Commits of maintenance operations: the server checks that each commit rewrites files without changing rows.

Must not know any wire format, nor the executor of an operation. A commit with an operation's token applies to one
version of the table only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

import msgspec

from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, CommitConflict, LimnosError, OutsideRoots, PermissionDenied
from limnos.rooms.maintenance.formats import rewrites
from limnos.rooms.maintenance.formats.row_retention import RETENTION
from limnos.rooms.maintenance.formats.table_metadata import TableMetadata, metadata_of
from limnos.rooms.maintenance.services.rewriting.kinds import RESTRICTED_FILES
from limnos.rooms.maintenance.services.rewriting.row_retention import deletion_require
from limnos.services.iceberg.added_files import check_operation_files, own_files
from limnos.services.iceberg.commit_values import CommitChange
from limnos.services.iceberg.rewrite_commits import LEASE_OVER, REWRITES, CheckedRewrite, RewriteTotals
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from limnos.store.activity.maintenance import operation_read
from limnos.store.activity.rewrites import lease_by_token
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
BYTES_MAX: Final = 128 << 20
"""The maximum number of bytes of manifests that one check reads."""


class ManifestReader(Protocol):
    """Reads manifests and manifest lists of one table."""

    async def read(self, location: str) -> bytes:
        """Read a manifest or manifest list. Raises MissingFile, OutsideRoots, TooLarge, StorageFailed."""


class RewriteCommits:
    """Checks commits of operations by the manifests of the snapshots before and after them."""

    async def check(
        self, ctx: Context, *, document: MetadataDocument, place: CatalogStorage, token_id: int, change: CommitChange
    ) -> CheckedRewrite:
        """Check a commit with an operation's token. Raises as `OperationCommits.check`."""
        lease = await ctx.look_up(partial(lease_by_token, token_id))
        if lease is None or lease.node_id != document.node_id or lease.expires_at <= ctx.services.store.time.now_ms():
            raise PermissionDenied(LEASE_OVER)
        operation = await ctx.look_up(partial(operation_read, lease.operation_id))
        if operation is not None and operation.kind == RESTRICTED_FILES:
            raise PermissionDenied("This operation writes files for restricted users: it commits nothing to the table")
        deletes_rows = operation is not None and operation.kind == RETENTION
        requirements, updates = change.requirements, change.updates
        if change.raw is not None:
            requirements, updates = await asyncio.to_thread(_parts_of, change.raw)
        try:
            await check_operation_files(ctx, token_id)
            if deletes_rows:
                await deletion_require(ctx, document, operation=lease.operation_id)
            metadata = metadata_of(document.body)
            requested = rewrites.rewrite_request(updates, metadata, deletes_rows=deletes_rows)
            files = own_files(ctx, document, place=place, bytes_max=BYTES_MAX)
            figures = None
            if requested.snapshot is not None:
                figures = await _check_snapshot(
                    ctx, files, snapshot=requested.snapshot, metadata=metadata, deletes_rows=deletes_rows
                )
            try:
                await files.require([*requested.statistics, *(() if figures is None else figures.paths)])
            except OutsideRoots as error:
                raise BadRequest("The commit adds a file outside of the table's locations") from error
        except CommitConflict:
            REWRITES["conflict",] += 1
            raise
        except LimnosError as error:
            REWRITES["refused",] += 1
            log.warning(
                "a rewrite was refused", table=document.node_id, operation=lease.operation_id, error=error.message
            )
            raise
        summary = rewrites.carried_summary(metadata, lease.operation_id, deletes_rows=deletes_rows)
        totals = None if figures is None else RewriteTotals(figures.removed, figures.bytes)
        return CheckedRewrite(requirements, [_with_summary(each, summary) for each in updates], totals)


def _parts_of(raw: bytes) -> tuple[list[object], list[object]]:
    body = msgspec.json.decode(raw, type=dict[str, object])
    requirements, updates = body.get("requirements"), body.get("updates")
    return requirements if isinstance(requirements, list) else [], updates if isinstance(updates, list) else []


def _with_summary(update: object, summary: Mapping[str, str]) -> object:
    """Return an update with the server's entries in the summary of its snapshot, if it adds one."""
    if not isinstance(update, dict) or update.get("action") != "add-snapshot":
        return update
    snapshot = update["snapshot"]
    return {**update, "snapshot": {**snapshot, "summary": {**snapshot["summary"], **summary}}}


async def _check_snapshot(
    ctx: Context, files: ManifestReader, *, snapshot: Mapping[str, object], metadata: TableMetadata, deletes_rows: bool
) -> rewrites.RewriteFigures:
    """Compare the files of a new snapshot with those of the current snapshot, and return the figures of the rewrite.

    Raises BadRequest if they differ in more than rewritten files, or are too large to check.
    """
    current = metadata.current
    if current is None or current.manifest_list is None:
        raise BadRequest("The table's head has no manifest list: a rewrite of it cannot be checked")
    before, after = (
        await _entries(ctx, files, location=current.manifest_list),
        await _entries(ctx, files, location=str(snapshot["manifest-list"])),
    )
    paths = list(dict.fromkeys([*before, *after]))
    both = before.keys() & after.keys()
    paths.sort(key=lambda path: path in both and not before[path].has_deletes)
    checked_manifests: list[rewrites.CheckedManifest] = []
    data: list[bytes] = []
    left, is_complete = BYTES_MAX, True
    for path in paths:
        piece = await files.read(path)
        left -= len(piece)
        if left < 0 and not (path in both and not before[path].has_deletes):
            raise BadRequest(
                f"The manifests of this rewrite have more than {BYTES_MAX >> 20} MiB: rewrite fewer files at once"
            )
        if left < 0:
            is_complete = False
            break  # unchanged data manifests are read only to find duplicate files: stop at the limit
        about = after[path] if path in after else before[path]
        checked_manifests.append(rewrites.CheckedManifest(path in before, path in after, about.sequence))
        data.append(piece)
    least = min([each.least for each in after.values() if not each.has_deletes], default=0)
    terms = msgspec.json.encode(rewrites.RewriteTerms(checked_manifests, least, deletes_rows, is_complete))
    (text,) = await ctx.services.offloader.do("maintenance-rewrite", terms, *data)
    return msgspec.json.decode(text, type=rewrites.RewriteFigures)


async def _entries(ctx: Context, files: ManifestReader, *, location: str) -> dict[str, rewrites.ManifestEntry]:
    (text,) = await ctx.services.offloader.do("maintenance-manifest-entries", await files.read(location))
    return {each.path: each for each in msgspec.json.decode(text, type=list[rewrites.ManifestEntry])}
