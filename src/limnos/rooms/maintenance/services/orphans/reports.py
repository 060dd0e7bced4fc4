# SPDX-License-Identifier: Apache-2.0
"""Reports about the orphan files of a table: the findings of the last check, the deleted files, and the reasons why
files are kept.

Must not know any wire format. The callers of this module check that the reader may maintain the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from limnos.formats.gravitino.policies import ORPHAN_FILE_REMOVAL
from limnos.model.number_texts import count_with_noun
from limnos.rooms.maintenance.services.orphans.rounds import OFF, ORPHANS, orphan_terms
from limnos.rooms.maintenance.services.policies import EffectivePolicy
from limnos.services.request.context import Context
from limnos.store.activity.maintenance import FindingRow
from limnos.store.activity.orphan_files import (
    CANDIDATE,
    DELETED,
    REMOVING,
    OrphanCheckRow,
    OrphanFileRow,
    orphan_check_read,
    orphan_checks_page,
    orphan_files_read,
    removed_files_read,
)

FILES_SHOWN: Final = 100
ORPHAN_STATES: Final = {CANDIDATE: "waiting", REMOVING: "deleting", DELETED: "deleted"}


class OrphanReport(NamedTuple):
    """The report about one table's orphan files: the state of removal, the last check, orphan files and deleted
    files.
    """

    removal: str
    """Whether files are removed, or the reason why not."""
    age_ms: int | None
    """The minimum time for which a file must have been an orphan, in milliseconds; None if the removal is off."""
    check: OrphanCheckRow | None
    """The last check; None before the first one."""
    files: tuple[OrphanFileRow, ...]
    """Candidates and files that are being deleted, oldest first, at most `FILES_SHOWN`."""
    removed: tuple[OrphanFileRow, ...]
    """Files that were deleted in the last 30 days, newest first, at most `FILES_SHOWN`."""


async def orphans_report(
    ctx: Context, node_id: int, *, policies: Mapping[str, EffectivePolicy], names_files: bool
) -> OrphanReport:
    """Return the report about the orphan files of a table. With `names_files` it lists files, whose names may have
    values of rows (partitions): for callers who may read the rows.
    """
    policy = policies.get(ORPHAN_FILE_REMOVAL)
    terms = orphan_terms(ctx.services, policy)
    check = await ctx.look_up(lambda: orphan_check_read(node_id))
    rows = await ctx.look_up(lambda: orphan_files_read(node_id))
    removed_files = await ctx.look_up(lambda: removed_files_read(node_id, limit=FILES_SHOWN))
    rows = sorted(rows, key=lambda row: (-row.waited_ms, row.name))[:FILES_SHOWN]
    if terms is not None:
        removal = "on" if terms.removes else "off: the policy is a dry run"
    elif ctx.services.defaults.maintenance.orphans == OFF:
        removal = "off: setting maintenance.orphan_files"
    else:
        removal = "off: no policy requires it" if policy is None else "off: the nearest policy is disabled"
    age_ms = None if terms is None else terms.age_ms
    return OrphanReport(
        removal=removal,
        age_ms=age_ms,
        check=check,
        files=tuple(rows) if names_files else (),
        removed=tuple(removed_files) if names_files else (),
    )


async def orphan_findings(ctx: Context, catalog_id: int, *, after: int, limit: int) -> list[FindingRow]:
    """Return findings about orphan files of a catalog's tables, ordered by table id, starting after the table
    `after`.
    """
    checks = await ctx.look_up(lambda: orphan_checks_page(catalog_id, after=after, limit=limit))
    return [
        FindingRow(
            node_id=row.node_id,
            kind=ORPHANS,
            catalog_id=row.catalog_id,
            score=row.candidates,
            reason=(
                f"{count_with_noun(row.candidates, 'file')} ({row.candidate_bytes} bytes) that no metadata refers to"
            ),
            figures=f'{{"files":{row.candidates},"bytes":{row.candidate_bytes}}}',
            version=0,
            found_at=row.checked_at,
        )
        for row in checks
    ]
