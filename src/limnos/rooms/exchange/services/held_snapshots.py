# SPDX-License-Identifier: Apache-2.0
"""Held snapshots: read transactions that stay open between the requests of a read in parts, each at one revision.

Must not know system tables or rights. A held snapshot hinders the database from reusing pages, so their number and
their age are limited, and an unused one is closed soon. One whose query failed is closed at once, because the
transaction is over then. Decision records 0236 and 0242.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256
from secrets import token_hex
from typing import Final

from limnos.model.errors import LimnosError, RevisionEnded, ServiceUnavailable
from limnos.services.request.node_services import ComponentKey
from limnos.store.exchange import system_tables as statements
from limnos.store.interface import Store
from limnos.store.snapshots import StoreSnapshot
from limnos.store.sql import Query, Row
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Gauge

log = get_logger("limnos.exchange")
HELD = Gauge("limnos_held_snapshots", "Read transactions that this node holds for reads of system tables in parts.", ())

HELD_MAX: Final = 8
"""The maximum number of snapshots that a node holds open."""
OF_USER_MAX: Final = 2
"""The number that one user began and that may stay open unused: with one more, the user's oldest one is closed."""
OF_USER_IN_USE_MAX: Final = HELD_MAX // 2
"""The maximum number that one user began and that requests use, so that other users can read, too."""
UNUSED_S: Final = 120.0
"""The time after which a snapshot is closed that no request uses, in seconds."""
AGE_MAX_S: Final = 600.0
"""The time after which a snapshot is closed, in seconds, also if a request uses it: its client may read slowly."""
READERS_MAX: Final = 1_000
"""The maximum number of callers whose rights a snapshot remembers; a caller's active roles count as another caller."""
LOOK_EVERY_S: Final = 30.0
"""The time between two looks for snapshots to close, in seconds."""

Clocks = dict[int, tuple[int, int]]
"""The revision and the access revision of a metalake and its catalogs, by zone."""


class HeldSnapshot:
    """A read transaction on the store, the clocks of one metalake in it, and the requests that use it."""

    def __init__(self, opened: AbstractAsyncContextManager[StoreSnapshot], *, metalake_id: int, user: str) -> None:
        self.metalake_id, self.user = metalake_id, user
        self.clocks: Clocks = {}
        self.revision = ""
        self.readers: dict[object, object] = {}
        """Facts about callers at the revision, by keys of their own."""
        self.users = 0
        self.begun = self.used = asyncio.get_running_loop().time()
        self.is_closed = False
        self._opened = opened
        self._snapshot: StoreSnapshot | None = None
        self._turn = asyncio.Lock()
        self._queries: set[asyncio.Task[list[Row]]] = set()

    async def open(self) -> None:
        """Begin the transaction and read its clocks. Raises the errors of the store."""
        self._snapshot = await self._opened.__aenter__()
        rows = await self.rows((statements.CLOCKS, {"metalake": self.metalake_id}))
        self.clocks = {row[0]: (row[1], row[2]) for row in rows}
        self.revision = revision_of(rows)

    def remember(self, key: object, reader: object) -> None:
        """Remember a fact about a caller, unless there are too many."""
        if len(self.readers) < READERS_MAX:
            self.readers[key] = reader

    async def rows(self, query: Query) -> list[Row]:
        """Read all rows of a query. Requests that share the snapshot take turns: it is one connection.

        A query goes on if its request ends, because the transaction would end with it for the other requests. Raises
        RevisionEnded if the snapshot is closed, and the errors of the store, after which it is closed.
        """
        task = asyncio.get_running_loop().create_task(self._rows(query))
        self._queries.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[list[Row]]) -> None:
        self._queries.discard(task)
        if not task.cancelled():
            task.exception()  # nobody waits for the result if the request has ended

    async def _rows(self, query: Query) -> list[Row]:
        async with self._turn:
            if self._snapshot is None or self.is_closed or self.is_old:
                raise RevisionEnded("The revision is not held any more: read the table again")
            try:
                return await self._snapshot.rows(query)
            except BaseException as error:
                self.is_closed, self._snapshot = True, None
                await self._opened.__aexit__(type(error), error, error.__traceback__)  # raises the store's error
                raise

    @property
    def is_old(self) -> bool:
        """Whether the snapshot must be closed because of its age."""
        return asyncio.get_running_loop().time() - self.begun >= AGE_MAX_S

    async def close(self) -> None:
        """End the transaction, after the query that is running. If the store does not answer, it is left to end it."""
        self.is_closed = True
        async with self._turn:
            if self._snapshot is not None:
                self._snapshot = None
                try:
                    await self._opened.__aexit__(None, None, None)
                except LimnosError as error:
                    log.warning("a held read transaction ended with an error", error=error.message)


def revision_of(rows: list[Row]) -> str:
    """Return the text that identifies the state of a metalake and its catalogs: a digest of their clocks."""
    text = repr(sorted((row[0], row[1], row[3]) for row in rows))
    return sha256(text.encode()).hexdigest()[:32]


class HeldSnapshots:
    """The held snapshots of one node."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: list[HeldSnapshot] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """The number of open snapshots."""
        return len(self._held)

    @asynccontextmanager
    async def at(
        self, metalake_id: int, *, user: str, revision: str | None, is_shared: bool = True, is_kept: bool = True
    ) -> AsyncGenerator[HeldSnapshot, None]:
        """Use a snapshot of a metalake: at a revision, or without one at the current revision.

        A snapshot that is not `is_shared` gets a revision of its own, which ends with it: for rows that change while
        the clocks stay the same. If it is not `is_kept` either, it is closed after this use: nobody knows its revision.

        Raises RevisionEnded if the revision can no longer be read, ServiceUnavailable if too many are held.
        """
        snapshot = self._find(metalake_id, revision) if revision else None
        if snapshot is None:
            snapshot = await self._begin(metalake_id, user=user, revision=revision, is_shared=is_shared)
        snapshot.users += 1
        self._schedule()
        try:
            yield snapshot
        finally:
            snapshot.users -= 1
            snapshot.used = asyncio.get_running_loop().time()
            if not (is_shared or is_kept or revision):
                self._drop([snapshot])
            self._close_old()

    def _find(self, metalake_id: int, revision: str) -> HeldSnapshot | None:
        for each in self._held:
            if (each.metalake_id, each.revision) == (metalake_id, revision) and not each.is_closed and not each.is_old:
                return each
        return None

    async def _begin(self, metalake_id: int, *, user: str, revision: str | None, is_shared: bool) -> HeldSnapshot:
        """Open a snapshot. One at the same revision that is held already takes its place."""
        self._close_old()
        own_snapshots = [each for each in self._held if each.user == user]
        if len(own_snapshots) >= OF_USER_MAX:
            self._drop([each for each in own_snapshots if not each.users][:1])
        if sum(each.users > 0 for each in own_snapshots) >= OF_USER_IN_USE_MAX:
            raise ServiceUnavailable(
                f"You are reading {OF_USER_IN_USE_MAX} revisions on this node: try again when one of these reads has"
                " ended"
            )
        if len(self._held) >= HELD_MAX:
            raise ServiceUnavailable(f"{HELD_MAX} revisions are being read in parts on this node: try again later")
        snapshot = HeldSnapshot(self._store.snapshot(), metalake_id=metalake_id, user=user)
        self._held.append(snapshot)
        HELD[()] = len(self._held)
        snapshot.users += 1
        try:
            await snapshot.open()
        except BaseException:
            self._drop([snapshot])
            raise
        finally:
            snapshot.users -= 1
        if not is_shared:
            snapshot.revision = token_hex(16)
        same = next((each for each in self._held if each is not snapshot and self._is_same(each, snapshot)), None)
        if same is not None or (revision is not None and snapshot.revision != revision):
            self._drop([snapshot])
        if revision is not None and snapshot.revision != revision:
            raise RevisionEnded(
                "The revision can no longer be read, because the metalake changed: read the table again"
            )
        return snapshot if same is None else same

    @staticmethod
    def _is_same(one: HeldSnapshot, other: HeldSnapshot) -> bool:
        is_new = other.begun - one.begun < AGE_MAX_S / 2 and not one.is_closed
        return is_new and (one.metalake_id, one.revision) == (other.metalake_id, other.revision)

    def _close_old(self) -> None:
        """Close the snapshots that failed, are old, or were not used for long."""
        now = asyncio.get_running_loop().time()
        unused = [each for each in self._held if not each.users and now - each.used >= UNUSED_S]
        self._drop([each for each in self._held if each.is_closed or each.is_old or each in unused])

    def _drop(self, some: list[HeldSnapshot]) -> None:
        for each in some:
            if each in self._held:
                self._held.remove(each)
            HELD[()] = len(self._held)
            task = asyncio.get_running_loop().create_task(each.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _schedule(self) -> None:
        """Look for snapshots to close later, as long as any is held."""
        if self._timer is None and self._held:
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._close_old()
        self._schedule()

    async def close(self) -> None:
        """Close all snapshots."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._drop(list(self._held))
        await asyncio.gather(*self._closing)


HELD_SNAPSHOTS: ComponentKey[HeldSnapshots] = ComponentKey(
    "held_snapshots", lambda services: HeldSnapshots(services.store)
)
