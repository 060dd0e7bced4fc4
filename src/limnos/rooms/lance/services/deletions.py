# SPDX-License-Identifier: Apache-2.0
"""Lance deletions: deletes old versions of a table by number, but never the newest or one that a tag or branch needs.

Must not know any wire format. A managed version is deleted by deleting its row; then its manifest is deleted. Lance's
own cleanup deletes files that only this version referred to. In a table whose files define its versions, deleting the
manifest deletes the version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.lance_manifests import VERSION_MAX, check_branch
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, InUse, NotFound
from limnos.model.permits import Permit
from limnos.names.path import Levels
from limnos.rooms.lance.services.commits import announce_change
from limnos.rooms.lance.services.manifests import BranchManifests
from limnos.rooms.lance.services.reference_reads import references_of
from limnos.rooms.lance.services.versions import latest_version, manifests_for
from limnos.rooms.lance.sources.questions import TableReferences
from limnos.services.lance.tables import LanceTable, lance_find, lance_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.tx import Tx

SPANS_MAX = 1000
ALL = -1
"""The exclusive end of a span that includes the newest version."""


class VersionSpan(NamedTuple):
    """The versions from `start` (inclusive) to `end` (exclusive)."""

    start: int
    end: int


class VersionsDelete(msgspec.Struct, frozen=True):
    """The command to delete the rows of versions of a managed table's branch."""

    table: Node
    branch: str
    spans: tuple[VersionSpan, ...]


class VersionDeletion(NamedTuple):
    """Versions that may be deleted: their spans, and their existing manifests."""

    manifests: BranchManifests
    spans: tuple[VersionSpan, ...]
    names: dict[int, str]

    @property
    def branch(self) -> str:
        """The branch that contains the versions; "" is the main branch."""
        return self.manifests.branch

    async def drop_files(self) -> None:
        """Delete the manifests of the versions."""
        await self.manifests.drop(self.names)


async def versions_prune(
    ctx: Context, scope: RequestScope, *, levels: Levels, branch: str, spans: Sequence[VersionSpan]
) -> int:
    """Delete versions. Returns the count of deleted versions.

    Raises InUse for the newest version or one that a tag or branch needs, BadRequest for an invalid span, NotFound,
    PermissionDenied.
    """
    table = await ctx.read(scope, lambda request_view: lance_load(request_view, levels, action=Action.TABLE_COMMIT))
    version_deletion = await version_deletion_of(ctx, table, branch=branch, spans=spans)
    if not table.record.managed:
        await announce_change(ctx, scope, levels=levels)
        await version_deletion.drop_files()
        return len(version_deletion.names)

    def decide(request_view: RequestView) -> Permit[VersionsDelete]:
        node, _, decision = lance_find(request_view, levels, action=Action.TABLE_COMMIT)
        return request_view.permit(VersionsDelete(node, version_deletion.branch, version_deletion.spans), decision)

    removed_count = await ctx.write(scope, decide, versions_delete)
    await version_deletion.drop_files()
    return removed_count


async def version_deletion_of(
    ctx: Context, table: LanceTable, *, branch: str, spans: Sequence[VersionSpan]
) -> VersionDeletion:
    """Check that the versions in the spans may be deleted, and return them. Raises as `versions_prune`."""
    manifests = manifests_for(ctx, table, branch=check_branch(branch))
    if table.record.managed:
        newest = await latest_version(ctx, table, branch=manifests.branch)
        top = 0 if newest is None else newest.version
        existing_versions = await manifests.names()
    else:
        existing_versions = await manifests.names()
        top = max(existing_versions, default=0)
    if manifests.branch and not top:
        raise NotFound(branch, kind="branch")
    checked_spans = _check_spans(spans, top=top)
    _refuse_needed(checked_spans, manifests.branch, top=top, references=await references_of(ctx, table))
    names = {version: name for version, name in existing_versions.items() if _is_in_spans(checked_spans, version)}
    return VersionDeletion(manifests, checked_spans, names)


def _check_spans(spans: Sequence[VersionSpan], *, top: int) -> tuple[VersionSpan, ...]:
    if len(spans) > SPANS_MAX:
        raise BadRequest(f"{len(spans)} ranges are more than the {SPANS_MAX} that are allowed: send several requests")
    for span in spans:
        if span.start < 0 or (span.end != ALL and span.end < span.start) or max(span) > VERSION_MAX:
            raise BadRequest(
                f"Range {span.start} to {span.end} is not valid: it must begin at a version and end before a later one,"
                " or with -1"
            )
    return tuple(VersionSpan(each.start, top + 1 if each.end == ALL else each.end) for each in spans)


def _is_in_spans(spans: Sequence[VersionSpan], version: int) -> bool:
    return any(span.start <= version < span.end for span in spans)


def _refuse_needed(spans: Sequence[VersionSpan], branch: str, *, top: int, references: TableReferences) -> None:
    """Raise InUse if a span contains the newest version `top`, or one to which a tag or branch refers."""
    if top and _is_in_spans(spans, top):
        raise InUse(
            f"Version {top} is the newest one, which cannot be deleted: end the range before it, or drop the table",
            kind="version",
        )
    for name, tag in references.tags.items():
        if (tag.branch or "") == branch and _is_in_spans(spans, tag.version):
            raise InUse(
                f"Version {tag.version} has the tag {name}: delete the tag first, or leave the version out",
                kind="version",
            )
    for name, child in references.branches.items():
        if (child.parent_branch or "") == branch and _is_in_spans(spans, child.parent_version):
            raise InUse(
                f"Branch {name} begins at version {child.parent_version}: delete the branch first, or leave the"
                " version out",
                kind="version",
            )


def versions_delete(tx: Tx, permit: Permit[VersionsDelete]) -> int:
    """Delete the rows, and return their count. Raises InUse if the newest version is among them."""
    command = permit.command
    node, versions = tx.nodes.confirm(command.table), tx.lance_versions
    top = versions.top(node.id, command.branch)
    if top is not None and _is_in_spans(command.spans, top.version):
        raise InUse(
            f"Version {top.version} is the newest one, which cannot be deleted: end the range before it",
            kind="version",
        )
    removed_count = sum(
        versions.delete(node.id, command.branch, start=span.start, end=span.end) for span in command.spans
    )
    if removed_count:
        tx.nodes.add_commit_change(node)
    return removed_count
