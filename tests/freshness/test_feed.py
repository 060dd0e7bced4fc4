# SPDX-License-Identifier: Apache-2.0
"""The change feed under random mutations on two nodes, with readers that start and stop at random.

A reader with all privileges receives every row of the change table, each once and in the order of its zone, whatever
happens between two pages. A reader with few privileges receives exactly the changes of objects that it may load at that
moment, also from a node with an empty view. `LIMNOS_FEED_MUTATIONS=10000` runs a long sequence.
"""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from limnos.access.authentication import Credential
from limnos.model.errors import BadRequest, NotFound, NotInUse, PermissionDenied, ServiceUnavailable
from limnos.model.kinds import NAMESPACE_OBJECTS, Kind
from limnos.services.activity.feed import NOW, FeedPage, changes_read
from limnos.services.activity.feed_positions import FeedPosition, position_of
from limnos.services.identity.owners import owner_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from tests.backends import Database, PostgresServer, Query, StoreLab, sqlite_copy
from tests.freshness.world import REFUSALS, USERS, StoryWorld, mending
from tests.inprocess import ADMIN, Node, add_catalog, fill

pytestmark = pytest.mark.slow

MUTATIONS = int(os.environ.get("LIMNOS_FEED_MUTATIONS", "0"))
SEED = int(os.environ.get("LIMNOS_FRESHNESS_SEED", "1"))
GONE = (NotFound, PermissionDenied, NotInUse, BadRequest, ServiceUnavailable)
Row = tuple[int, int, int]
"""Zone, revision and ordinal."""


@dataclass
class Reader:
    """A reader of the feed: its first position, its current position, and the received changes."""

    who: str
    position: str | None = None
    base: dict[int, int] = field(default_factory=dict)
    told: list[Row] = field(default_factory=list)

    async def read(self, ctx: Context, scope: RequestScope, *, limit: int) -> FeedPage:
        """Read the following pages."""
        page = await changes_read(ctx, scope, after=self.position, limit=limit)
        if self.position == NOW:
            self.base = page.position.zones
        self.position = page.position.text()
        self.told += [(each.zone, each.revision, each.ordinal) for each in page.changes]
        return page

    @property
    def at(self) -> FeedPosition | None:
        """Return the reader's current position, decoded."""
        return None if self.position in (None, NOW) else position_of(self.position)


class Story:
    """A lake on one database with two nodes that check access and two nodes with access control off."""

    def __init__(self, lab: StoreLab, sql: Query, seed: int) -> None:
        self.dice = random.Random(seed)
        self.sql = sql
        self.world = StoryWorld(dice=self.dice, sql=sql)
        self.nodes = [Node(lab.open(), bytes_max=16 << 20) for _ in range(2)]
        self.open = [Node(lab.open(), access=False, bytes_max=16 << 20) for _ in range(2)]
        self.readers = [Reader(ADMIN)]
        self.callers = {user: Reader(user, NOW) for user in USERS}
        self.mutations = self.pages = self.checked = 0
        self.left: list[Reader] = []

    @property
    def scope(self) -> RequestScope:
        """Return the metalake's scope by its current name."""
        return RequestScope(self.world.metalake())

    async def play(self, mutations: int) -> None:
        """Change objects and read until the given number of changes is made."""
        await fill(self.nodes[0].ctx())
        await add_catalog(self.nodes[0].ctx(), "side")
        while self.mutations < mutations:
            for _ in range(5):
                work = [self.mutate() for _ in range(self.dice.randint(1, 4))]
                work += [self.follow(each) for each in self.readers]
                await asyncio.gather(*work)
            self.come_and_go()
            await self.check_callers()
        for reader in self.readers:
            await self.finish(reader)

    async def mutate(self) -> None:
        """Make a random change."""
        drawn = self.world.mutations
        kind = self.dice.choices(list(drawn), list(drawn.values()))[0]
        who = Credential(user=ADMIN) if self.dice.random() < 0.7 else self.world.someone()
        node = self.dice.choice(self.nodes)
        try:
            mend = mending(self.world, node.ctx()) if self.dice.random() < 0.3 else None
            await (mend or kind(self.world, node.ctx(who)))
        except REFUSALS:
            return
        self.mutations += 1

    async def follow(self, reader: Reader) -> None:
        """Let a reader with all privileges read on at a random node during changes."""
        try:
            await reader.read(self.dice.choice(self.open).ctx(), self.scope, limit=self.dice.choice((1, 3, 50, 1000)))
        except GONE:
            return  # the metalake has been renamed or disabled meanwhile
        self.pages += 1

    def come_and_go(self) -> None:
        """Add readers that start at the beginning or at the current position, and remove others."""
        if self.dice.random() < 0.3:
            self.readers.append(Reader(ADMIN, self.dice.choice((None, NOW))))
        if len(self.readers) > 4:
            self.left.append(self.readers.pop(self.dice.randrange(1, len(self.readers))))
            self.check_rows(self.left[-1])

    async def finish(self, reader: Reader) -> None:
        """Let a reader read to the end, and check that no change is missing."""
        more = True
        while more:
            try:
                more = (await reader.read(self.open[0].ctx(), self.scope, limit=1000)).more
            except ServiceUnavailable:
                continue  # a busy machine: the database did not answer for a while
            except NotInUse:
                await mending(self.world, self.nodes[0].ctx())  # type: ignore[misc]
        self.check_rows(reader)
        assert reader.at is not None
        zones = {row[0] for row in self.sql("SELECT id FROM node WHERE kind = ? AND deleted = 0", int(Kind.CATALOG))}
        assert zones <= set(reader.at.zones)

    def check_rows(self, reader: Reader) -> None:
        """Check that a reader received exactly the rows of the table between its first and its current position, each
        once.
        """
        assert len(reader.told) == len(set(reader.told)), "delivered twice"
        if reader.at is None:
            return
        for zone, at in reader.at.zones.items():
            delivered = [row[1:] for row in reader.told if row[0] == zone]
            since = reader.base.get(zone, 0)
            change_rows = self.sql(
                "SELECT revision, ordinal FROM change WHERE zone = ? AND revision > ? AND revision <= ? ORDER BY 1, 2",
                zone,
                since,
                at,
            )
            assert delivered == [tuple(row) for row in change_rows], f"zone {zone} after {since} to {at}"

    async def check_callers(self) -> None:
        """While nothing changes, let a user read to the end, and check that the changes of existing objects are exactly
        those of objects that the user may load.
        """
        reader = self.callers[self.dice.choice(USERS)]
        before, visible_rows, told_of = reader.at, list[Row](), dict[Row, bool]()
        try:
            more = True
            while more:
                page = await reader.read(self.dice.choice(self.nodes).ctx(reader.who), self.scope, limit=1000)
                told_of |= {(each.zone, each.revision, each.ordinal): each.path is not None for each in page.changes}
                more = page.more
        except GONE:
            return
        visible_rows = [row for row, sees in told_of.items() if sees]
        if before is None:
            return
        home, named = before.home, self.names()
        may, expected, rows = dict[int, bool](), set[Row](), dict[Row, int]()
        fresh, metalake = Node(self.nodes[0].store, bytes_max=16 << 20), self.world.metalake()
        after = "SELECT revision, ordinal, node_id FROM change WHERE zone = ? AND revision > ?"
        for zone in (home, *[node_id for node_id, (kind, _) in named.items() if kind is Kind.CATALOG]):
            for revision, ordinal, node_id in self.sql(after, zone, before.zones.get(zone, 0)):
                if node_id in named:
                    rows[zone, revision, ordinal] = node_id
                    if node_id not in may:
                        may[node_id] = await may_load(fresh.ctx(reader.who), metalake, *named[node_id])
                    if may[node_id]:
                        expected.add((zone, revision, ordinal))
        assert {row for row in visible_rows if row in rows} == expected, reader.who
        assert len(reader.told) == len(set(reader.told)), "delivered twice"
        self.checked += len(rows)

    def names(self) -> dict[int, tuple[Kind, str]]:
        """Return kind and full name of all reachable objects, by id."""
        rows = {row[0]: row for row in self.sql("SELECT id, parent_id, kind, name FROM node WHERE deleted = 0")}
        names_by_id = {}
        for node_id, (_, above, kind, _) in rows.items():
            parts, each = list[str](), node_id
            while each in rows and rows[each][2] != Kind.METALAKE:
                parts.append(rows[each][3])
                each = rows[each][1]
            if each in rows and parts and above in rows:
                names_by_id[node_id] = (Kind(kind), full_name(Kind(kind), list(reversed(parts))))  # type: ignore[call-arg]  # the number of a kind
        return names_by_id


async def may_load(ctx: Context, metalake: str, kind: Kind, name: str) -> bool:
    """Return whether the user may load an object: request its owner by name, which needs that right."""
    while True:
        try:
            await owner_load(ctx, metalake=metalake, kind=kind, full_name=name)
        except (PermissionDenied, NotFound):
            return False
        except ServiceUnavailable:
            continue
        return True


def full_name(kind: Kind, parts: list[str]) -> str:
    """Spell a path as Gravitino does."""
    if kind is Kind.NAMESPACE:
        return f"{parts[0]}.{':'.join(parts[1:])}"
    if kind in NAMESPACE_OBJECTS:
        return f"{parts[0]}.{':'.join(parts[1:-1])}.{parts[-1]}"
    return parts[0]


def play(database: Database, seed: int, mutations: int) -> Story:
    """Run one random sequence to its end."""
    lab = StoreLab(database)
    try:
        with database.connected() as sql:
            story = Story(lab, sql, seed)
            lab.run(story.play(mutations))
            return story
    finally:
        lab.close()


@pytest.fixture
def file(sqlite_template: Path, tmp_path: Path) -> Database:
    """A path for an SQLite file of the test."""
    return sqlite_copy(sqlite_template, tmp_path)


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_readers_get_each_visible_change_once(file: Database, seed: int) -> None:
    """On SQLite, readers miss no change, receive none twice, and receive no hidden one."""
    story = play(file, seed, MUTATIONS or 150)

    assert story.pages > 50
    assert story.checked > 50
    assert story.left


@pytest.mark.integration
def test_readers_get_each_visible_change_once_on_postgresql(postgres_server: PostgresServer) -> None:
    """On PostgreSQL, where real time decides the order, readers miss no change, receive none twice, and receive no
    hidden one.
    """
    story = play(postgres_server.fresh_database(), SEED, MUTATIONS or 80)

    assert story.pages > 30
    assert story.checked > 30
