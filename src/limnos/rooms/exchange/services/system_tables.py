# SPDX-License-Identifier: Apache-2.0
"""System tables: the tree of a metalake as tables, read in parts at one revision, with the rows that the caller may
see.

Must not know how rows are built or encoded. The caller's rights are those at the revision of the snapshot. After each
page they are decided again: if they have changed, the rest of the read is refused. Decision record 0236.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from json import dumps
from typing import Final, NamedTuple

from limnos.access.actions import Action
from limnos.formats.system_tables import ArrowEncoder, Cells, RowRequest, SystemTable
from limnos.model.errors import BadRequest, PermissionDenied, RevisionEnded
from limnos.rooms.exchange.services.access_rows import AccessRows
from limnos.rooms.exchange.services.activity_rows import ActivityRows
from limnos.rooms.exchange.services.audit_rows import audit_pages
from limnos.rooms.exchange.services.change_rows import change_feeds, change_pages
from limnos.rooms.exchange.services.held_snapshots import HELD_SNAPSHOTS, UNUSED_S, Clocks, HeldSnapshot
from limnos.rooms.exchange.services.part_reads import IdRange
from limnos.rooms.exchange.services.table_access import Caller, TableAccess, catalog_facts
from limnos.rooms.exchange.services.table_rows import PageRows, Pages, TableRows
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.exchange import system_tables as statements

PARTS_MAX: Final = 64
PAGES_AT_ONCE: Final = 2
"""The number of pages that a node builds at a time; readers take turns page by page."""
ATTEMPTS_MAX: Final = 5
CATALOGS_CONFIRMED_EVERY: Final = 20
"""The number of pages after which the rights in catalogs are confirmed; those in the metalake are for each page."""
ID_MAX: Final = 2**62
WHOLE: Final = IdRange(0, ID_MAX)


@dataclass(slots=True)
class PageTurns:
    """The turns of readers to build a page."""

    turns: asyncio.Semaphore


PAGE_TURNS: ComponentKey[PageTurns] = ComponentKey("page_turns", lambda _: PageTurns(asyncio.Semaphore(PAGES_AT_ONCE)))


class TableScan(NamedTuple):
    """A revision at which a table can be read, the ranges of ids of its parts, and how long the revision is held
    between two requests, in seconds.
    """

    revision: str
    parts: list[IdRange]
    held_s: float


class PartRequest(NamedTuple):
    """A request for the rows of a part at a revision; without a revision, at the current one."""

    rows: RowRequest
    part: IdRange = WHOLE
    revision: str | None = None


class _Reader(NamedTuple):
    """The caller at one moment, and the access revision of the metalake then."""

    caller: Caller
    access_revision: int
    admins: frozenset[str]


def _decide(request_view: RequestView) -> _Reader:
    """Authorize the read of a metalake's system tables. Raises PermissionDenied, NotFound, NotInUse."""
    outer = request_view.settled.outer
    request_view.require(Action.METALAKE_LOAD, outer)
    request_view.require_in_metalake_use()
    if request_view.second_user_id:
        raise PermissionDenied("This token is only valid for the work of a task")
    rules, metalake = request_view.rules, request_view.metalake
    caller = Caller(
        metalake=metalake,
        owner_id=request_view.owner_of(outer[-1]),
        subject=request_view.subject,
        active=request_view.active,
        is_enforced=rules.access_enabled,
        is_auditor=request_view.decide(Action.AUDIT_READ, outer).allowed,
    )
    return _Reader(caller, dict(request_view.stamps)[metalake.id], frozenset(rules.service_admins))


async def tables_list(ctx: Context, metalake: str) -> None:
    """Check that the caller may read system tables. Raises PermissionDenied, NotFound, NotInUse."""
    await ctx.read(RequestScope(metalake), _decide)


async def table_scan(ctx: Context, metalake: str, *, table: SystemTable, parts: int) -> TableScan:
    """Hold the current revision of a metalake for a read of a table in at most `parts` parts.

    Raises BadRequest for a number of parts that is not allowed, ServiceUnavailable if too many revisions are held; and
    as `tables_list`.
    """
    if not 1 <= parts <= PARTS_MAX:
        raise BadRequest(f"parts must be a number from 1 to {PARTS_MAX}")
    async with _snapshot_with_rights(ctx, metalake, table=table, revision=None, is_kept=True) as rights:
        snapshot = rights.snapshot
        return TableScan(snapshot.revision, _ranges(await _last_keys(rights, table=table, parts=parts)), UNUSED_S)


async def _last_keys(rights: _Rights, *, table: SystemTable, parts: int) -> list[int]:
    """Return the last keys of ranges with about equal counts of rows."""
    snapshot, caller = rights.snapshot, rights.reader.caller
    if table.name == "changes":
        return (await change_feeds(await _access_of(rights))).last_keys(parts)
    if table.name == "audit":
        params = {"parts": parts, "metalake": snapshot.metalake_id}
        # the times of others' records are unknown to a caller who reads own records, so these are one part
        rows = await snapshot.rows((statements.AUDIT_RANGES, params)) if caller.is_auditor else []
    else:
        rows = await snapshot.rows((statements.RANGES, {"parts": parts, "zones": dumps(sorted(snapshot.clocks))}))
    return [row[0] for row in rows]


def _ranges(lasts: list[int]) -> list[IdRange]:
    """Return ranges that cover all keys, from the last keys of ranges of rows."""
    firsts = [0, *(last + 1 for last in lasts[:-1])]
    return [IdRange(first, last) for first, last in zip(firsts, [*lasts[:-1], ID_MAX], strict=True)]


async def _access_of(rights: _Rights) -> TableAccess:
    snapshot = rights.snapshot
    return TableAccess(snapshot, rights.reader.caller, catalogs=await catalog_facts(snapshot))


async def table_read(ctx: Context, metalake: str, *, request: PartRequest) -> AsyncGenerator[bytes, None]:
    """Yield the rows of a part as an Arrow IPC stream.

    Raises RevisionEnded if the revision can no longer be read, or if the caller's rights have changed since; then the
    whole table must be read again. Further raises as `table_scan`, all before the first chunk, except for a change
    during the read.
    """
    encoder = await asyncio.to_thread(ArrowEncoder, request.rows)
    async with _snapshot_with_rights(ctx, metalake, table=request.rows.table, revision=request.revision) as rights:
        reader, access = rights.reader, await _access_of(rights)
        turns = PAGE_TURNS.of(ctx.services).turns
        count = 0
        now_ms = ctx.services.store.time.now_ms()
        async for page in _pages(access, request, admins=reader.admins, now_ms=now_ms):
            async with turns:
                data = await asyncio.to_thread(_encode, page, request.rows, encoder=encoder)
            await rights.confirm(with_catalogs=count % CATALOGS_CONFIRMED_EVERY == 0)
            count += 1
            if data:
                yield data
        await rights.confirm(with_catalogs=True)
        yield encoder.end()


@asynccontextmanager
async def _snapshot_with_rights(
    ctx: Context, metalake: str, *, table: SystemTable, revision: str | None, is_kept: bool = False
) -> AsyncGenerator[_Rights, None]:
    """Use a snapshot at a revision, or at the current one, with the caller's rights at that revision.

    A snapshot of a table about activity is held for later requests only if it is `is_kept`.

    Raises RevisionEnded if the rights have changed since; and as `HeldSnapshots.at`.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        reader = await ctx.read(RequestScope(metalake), _decide)
        user, metalake_id = reader.caller.subject.user_name, reader.caller.metalake.id
        if table.name == "audit" and revision is None:
            await ctx.services.audit.catch_up()
        snapshots = HELD_SNAPSHOTS.of(ctx.services)
        is_shared = not table.is_activity
        async with snapshots.at(
            metalake_id, user=user, revision=revision, is_shared=is_shared, is_kept=is_kept
        ) as snapshot:
            rights = _Rights(ctx, RequestScope(metalake), snapshot=snapshot)
            try:
                await rights.begin()
            except RevisionEnded:
                if revision is not None or attempt == ATTEMPTS_MAX:
                    raise
                continue
            yield rights
            return


def _pages(access: TableAccess, request: PartRequest, *, admins: frozenset[str], now_ms: int) -> Pages:
    if request.rows.table.name == "changes":
        return change_pages(access, request.rows, part=request.part)
    if request.rows.table.name == "audit":
        return audit_pages(access, request.rows, part=request.part)
    if request.rows.table.is_activity:
        return ActivityRows(access, request.rows, part=request.part, now_ms=now_ms).pages()
    if request.rows.table.name == "effective_access":
        return AccessRows(access, request.rows, part=request.part, admins=admins).pages()
    return TableRows(access, request.rows, part=request.part).pages()


def _encode(page: PageRows, request: RowRequest, *, encoder: ArrowEncoder) -> bytes:
    rows: list[Cells] = page()
    return encoder.page(request.select_rows(rows) if request.conditions else rows)


class _Rights:
    """The rights of a caller at the revision of a snapshot, which are compared with the current ones."""

    def __init__(self, ctx: Context, scope: RequestScope, *, snapshot: HeldSnapshot) -> None:
        self.snapshot = snapshot
        self._ctx, self._scope = ctx, scope
        self._clocks: Clocks = snapshot.clocks
        self._reader: _Reader | None = None

    @property
    def reader(self) -> _Reader:
        """The caller at the snapshot's revision. Raises RevisionEnded before `begin`."""
        if self._reader is None:
            raise _rights_changed_error()
        return self._reader

    async def begin(self) -> None:
        """Find the caller's rights at the snapshot's revision: those of an earlier request at the same revision, or the
        current ones if no right of the metalake has changed since. Raises RevisionEnded otherwise.
        """
        current = await self._ctx.read(self._scope, _decide)
        key = (current.caller.subject.user_name, current.caller.active)
        reader = self.snapshot.readers.get(key)
        if not isinstance(reader, _Reader):
            own_clock = self.snapshot.clocks.get(current.caller.metalake.id)
            if own_clock is None or own_clock[1] != current.access_revision:
                raise _rights_changed_error()
            self.snapshot.remember(key, current)
            reader = current
        self._reader = reader
        await self.confirm(with_catalogs=True)

    async def confirm(self, *, with_catalogs: bool) -> None:
        """Decide again. Raises RevisionEnded if the caller's rights have changed since the snapshot's revision.

        Owners and restrictions of objects are compared too, if a catalog's rights have moved; this is checked only
        `with_catalogs`.
        """
        current = await self._ctx.read(self._scope, _decide)
        if _rights_of(current) != _rights_of(self.reader):
            raise _rights_changed_error()
        if not with_catalogs:
            return
        rows = await self._ctx.find((statements.CLOCKS, {"metalake": self.snapshot.metalake_id}))
        clocks: Clocks = {row[0]: (row[1], row[2]) for row in rows}
        if all(clocks.get(zone, (0, access))[1] == access for zone, (_, access) in self._clocks.items()):
            return
        await self._compare()
        self._clocks = {zone: clocks.get(zone, clock) for zone, clock in self._clocks.items()}

    async def _compare(self) -> None:
        """Compare the objects that the caller owns, and the restrictions, in the snapshot and now."""
        snapshot = self.snapshot
        ids, zones = dumps(sorted(self.reader.caller.subject.principal_ids)), dumps(sorted(snapshot.clocks))
        last = (await snapshot.rows((statements.LAST_ID, {})))[0][0]
        queries = ((statements.OWNED, {"ids": ids, "last": last}), (statements.RESTRICTIONS, {"zones": zones}))
        async with self._ctx.services.store.snapshot() as now:
            for query in queries:
                if await snapshot.rows(query) != await now.rows(query):
                    raise _rights_changed_error()


def _rights_of(reader: _Reader) -> object:
    caller = reader.caller
    return (caller.metalake.id, caller.owner_id, caller.subject, caller.active, caller.is_enforced, caller.is_auditor)


def _rights_changed_error() -> RevisionEnded:
    return RevisionEnded("Your rights changed since the revision: read the whole table again")
