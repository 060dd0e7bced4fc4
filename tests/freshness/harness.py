# SPDX-License-Identifier: Apache-2.0
"""Two nodes under random mutations, with invariants that are checked at every moment.

Checked: after each step, every fact in a node's view equals SQL's answer (`facts`). An answer is true at some moment
between question and answer, and is never a mixture of moments (`answers`). The user of a commit has the privilege at
the commit, on the object that the path names then (`rights`). No id is assigned twice (`ids`).

On SQLite everything runs on one thread with a seeded random generator. The store's reads complete late and in any
order, each COMMIT is observed, and a seed reproduces the sequence. On PostgreSQL real time decides the order; there the
views are compared after each step.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from limnos.access.authentication import Credential
from limnos.model.kinds import Kind
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.catalog.namespaces import namespace_create
from limnos.services.iceberg.tables import table_create
from limnos.services.identity.grants import PrivilegeRequest, roles_give
from limnos.services.identity.owners import owner_set
from limnos.services.identity.roles import role_create
from limnos.services.identity.users import principal_add
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.upkeep import feed_prune
from limnos.store.backends.mutation_queue import BlockingThread, ignore_begin
from limnos.store.backends.sqlite import SqliteStore
from limnos.store.changes import GateResult
from limnos.store.interface import KnownRevisions
from limnos.store.sql import Load
from limnos.store.tx import Tx
from limnos.view.fact_reads import read_facts
from limnos.view.facts import Value
from limnos.view.freshness_gate import InlineFreshnessGate, SharedFreshnessGate
from limnos.view.keys import Key
from limnos.view.view import BrokenFeed, StoreView
from tests.backends import Database
from tests.freshness.world import (
    GROUPS,
    REFUSALS,
    TABLES,
    USERS,
    StoryQuestion,
    StoryWorld,
    catalog_made,
    explained,
    mending,
    questions,
)
from tests.inprocess import ADMIN, LAKE, Node, fill, new_table

if TYPE_CHECKING:
    from limnos.store.backends.mutation_queue import Again, Decided

T = TypeVar("T")
PAUSES = (0, 0, 1, 1, 2, 3, 6, 12, 30)
LOAD_PAUSES = (0, 2, 6, 12, 30, 60)
SLEEP_STEPS = 12


class InvariantViolation(AssertionError):
    """An invariant is violated."""


class Writer(Context):
    """A request that stores the facts of its decision, so that its right can be checked again at the commit."""

    __slots__ = ("asked",)

    async def read(self, scope: RequestScope, reader: Callable[[RequestView], T], *, refuse_disabled: bool = True) -> T:
        """Read as a request does."""
        self.asked = (scope, reader)
        return await super().read(scope, reader, refuse_disabled=refuse_disabled)


class InlineThread(BlockingThread):
    """Runs the store's work at once on the same thread, and observes every COMMIT."""

    def __init__(self, harness: Harness, store: SqliteStore) -> None:
        self.harness = harness
        self.commit = store._commit_now

    def run(self, call: Callable[[], object]) -> asyncio.Future[None]:
        """Run the work. The waiting caller continues in a later turn of the event loop, as it would with a thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        try:
            if call == self.commit:
                self.harness.before_commit()
            call()
            if call == self.commit:
                self.harness.after_commit()
        except BaseException as error:
            loop.call_soon(future.set_exception, error)
        else:
            loop.call_soon(future.set_result, None)
        return future

    def close(self) -> None:
        """No-op: there is no thread."""


class LateStore:
    """An SQLite store whose reads are asynchronous, start late and complete late."""

    inline = False

    def __init__(self, real: SqliteStore, harness: Harness) -> None:
        self.real = real
        self.time = real.time
        self.harness = harness

    async def pause(self, turns: tuple[int, ...] = PAUSES) -> None:
        """Yield to other tasks, or not, at random."""
        for _ in range(self.harness.delays.choice(turns)):
            await asyncio.sleep(0)

    async def gate_async(self, epoch: int, known: KnownRevisions) -> GateResult:
        """Read late, complete late."""
        await self.pause()
        moved = self.real.gate(epoch, known)
        await self.pause()
        return moved

    async def load_async(self, epoch: int, known: KnownRevisions, load: Callable[[], Load[T]]) -> tuple[GateResult, T]:
        """Read late, complete later, so that gate reads can overtake it."""
        await self.pause()
        load_result = self.real.load(epoch, known, load)
        await self.pause(LOAD_PAUSES)
        return load_result

    async def submit(
        self, permit: Permit[object], mutation: Callable[[Tx], T], *, on_begin: Callable[[], None] = ignore_begin
    ) -> T:
        """Submit late, and report to the harness when the mutation has run."""
        await self.pause()
        return await self.real.submit(permit, self.harness.witnessed(permit, mutation), on_begin=on_begin)

    async def submit_held(
        self, permit: Permit[object], again: Again[T], *, on_begin: Callable[[], None] = ignore_begin
    ) -> T:
        """Submit a decision under locks late, and report to the harness when the mutation has run."""
        await self.pause()

        async def decide() -> Decided[T]:
            decided, mutation = await again()
            return decided, self.harness.witnessed(decided, mutation)

        return await self.real.submit_held(permit, decide, on_begin=on_begin)

    async def close(self) -> None:
        """Close the file."""
        await self.real.close()


@dataclass(eq=False)
class WatchedQuestion:
    """A running question, and every answer that was true since it was asked."""

    question: StoryQuestion
    truths: list[object]


@dataclass(kw_only=True)
class Tally:
    """Counters of what happened, so that a test in which too little happens fails."""

    mutations: int = 0
    refused: int = 0
    answers: int = 0
    facts: int = 0
    rights: int = 0
    prunes: int = 0
    operations: dict[str, int] = field(default_factory=dict)


class Harness:
    """Two nodes, a reference node, and the random generator."""

    def __init__(
        self, database: Database, seed: int, *, inline: bool = False, focus: bool = False, lance: bool = False
    ) -> None:
        self.database = database
        self._connection = ExitStack()
        self.world = StoryWorld(
            dice=random.Random(seed), sql=self._connection.enter_context(database.connected()), focus=focus, lance=lance
        )
        self.dice = random.Random(seed + 1)
        self.delays = random.Random(seed + 2)
        self.sequential = database.kind != "sqlite"
        self.inline = inline
        self.tally = Tally()
        self.asleep_until = 0
        self.steps = 0
        self.watched: list[WatchedQuestion] = []
        self.writers: dict[str, Writer] = {}
        self.ran: list[tuple[Permit[object], Tx]] = []
        self.created: set[int] = set()
        self.broken: list[InvariantViolation] = []
        self.truth = Node(database.open())
        self.nodes = [self._node(64 << 20), self._node(40_000)]

    def _node(self, bytes_max: int) -> Node:
        store = self.database.open()
        if not isinstance(store, SqliteStore):
            return Node(store, bytes_max=bytes_max)
        store._thread.close()
        store._thread = InlineThread(self, store)
        store._queue.pause_s = 0  # event loop turns are the only clock, so a seed determines everything
        return Node(store if self.inline else LateStore(store, self), bytes_max=bytes_max)

    async def close(self) -> None:
        """Close every store."""
        for node in (self.truth, *self.nodes):
            await node.store.close()
            node.services.files.close()
        self._connection.close()

    # -- the expected answers --------------------------------------------------------------------------------------

    def _fresh(self) -> Node:
        """Return the reference node with a new empty view."""
        node = self.truth
        node.view = StoreView()
        node.gate = (
            InlineFreshnessGate(node.view, node.store)
            if node.store.inline
            else SharedFreshnessGate(node.view, node.store)
        )
        node.services.gate, node.services.view = node.gate, node.view
        return node

    def now(self, question: StoryQuestion) -> object:
        """Return the true answer to a question at this moment."""
        return _at_once(question.ask(self._fresh().ctx(question.who)))

    async def direct(self, keys: tuple[Key, ...]) -> dict[Key, Value]:
        """Return SQL's answer for these keys."""
        store = self.truth.store
        if store.inline:
            return store.load(0, ((0, -1),), lambda: read_facts(keys))[1].values  # type: ignore[no-any-return]
        return (await store.load_async(0, ((0, -1),), lambda: read_facts(keys)))[1].values  # type: ignore[no-any-return]

    # -- at every commit -----------------------------------------------------------------------------------------

    def witnessed(self, permit: Permit[object], mutation: Callable[[Tx], T]) -> Callable[[Tx], T]:
        """Wrap a mutation so that it is recorded when it has run."""

        def run(tx: Tx) -> T:
            result = mutation(tx)
            self.ran.append((permit, tx))
            return result

        return run

    def before_commit(self) -> None:
        """Check the rights of all mutations in the batch, in the last committed state."""
        ran, self.ran = self.ran, []
        for permit, tx in ran:
            created_ids = [draft.node_id for draft in tx.drafts if draft.operation == "create"]
            if len({*created_ids} - self.created) < len(created_ids):
                self.broken.append(InvariantViolation(f"ids: {created_ids} were made before"))
            self.created.update(created_ids)
            if permit.request_id in self.writers:
                self._check_right(self.writers[permit.request_id], permit)

    def _check_right(self, writer: Writer, permit: Permit[object]) -> None:
        scope, reader = writer.asked
        fresh = Context(self._fresh().services, writer.credential, "again")
        what = f"{type(permit.command).__name__} by {writer.credential}"
        try:
            again = _at_once(fresh.read(scope, reader))
        except REFUSALS as error:
            self.broken.append(InvariantViolation(f"rights: {what} commits, but would be refused: {error}"))
            return
        decided = (again if isinstance(again, Permit) else again.permit).decisions
        if [each.target_id for each in decided] != [each.target_id for each in permit.decisions]:
            self.broken.append(
                InvariantViolation(f"rights: {what} commits to {permit.decisions}, but the path means {decided}")
            )
        self.tally.rights += 1

    def after_commit(self) -> None:
        """Record the new true answers for all running questions."""
        for each in self.watched:
            each.truths.append(self.now(each.question))

    # -- a step --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Create the first metalake with its catalog, users, and a role with access."""
        ctx = self.nodes[0].ctx()
        await fill(ctx)
        for name in (*USERS, *GROUPS):
            kind = Kind.GROUP if name in GROUPS else Kind.USER
            await principal_add(ctx, metalake=LAKE, kind=kind, name=name)
        privilege_request = PrivilegeRequest(
            Kind.METALAKE,
            LAKE,
            ((Privilege.USE_CATALOG, GrantCondition.ALLOW), (Privilege.USE_SCHEMA, GrantCondition.ALLOW)),
        )
        await role_create(ctx, metalake=LAKE, name="r", properties={}, privilege_requests=(privilege_request,))
        for name in USERS:
            await roles_give(ctx, metalake=LAKE, kind=Kind.USER, name=name, roles=("r",))
        await catalog_made(ctx, self.world.catalogs[1], metalake=LAKE)
        for scope in (RequestScope(LAKE, name) for name in self.world.catalogs):
            await namespace_create(ctx, scope, levels=("a",), properties={})
            for name in TABLES if self.world.focus else ():
                await table_create(ctx, scope, namespace=("a",), request=new_table(name))
                await owner_set(
                    ctx,
                    metalake=LAKE,
                    kind=Kind.TABLE,
                    full_name=f"{scope.catalog}.a.{name}",
                    owner_kind=Kind.USER,
                    owner="ana",
                )

    async def run(self, steps: int) -> Tally:
        """Run a number of steps. Raises InvariantViolation with the step's number."""
        for number in range(steps + 1):
            self.steps = number
            try:
                await (self.step() if number else self.start())
            except Exception as error:
                raise InvariantViolation(f"step {number}: {error!r}") from error
        return self.tally

    async def step(self) -> None:
        """Run some mutations and questions concurrently; then check the views."""
        dice, crowd = self.dice, 2 if self.world.focus else 1
        awake = self.nodes if self.steps >= self.asleep_until else self.nodes[:1]
        work = [self._mutate(dice.choice(awake)) for _ in range(crowd * dice.choice((1, 1, 2)))]
        for _ in range(dice.choice((0, 1, 2, 3))):
            question, node = questions(self.world), dice.choice(awake)
            work += [self._ask(question, node) for _ in range(crowd)]
        if dice.random() < 0.2:
            work.append(self._wander(dice.choice(awake)))
        if dice.random() < 0.3:
            self._forget_some(dice.choice(awake))
        dice.shuffle(work)
        for outcome in [*await asyncio.gather(*work, return_exceptions=True), *self.broken]:
            if isinstance(outcome, BaseException):
                raise outcome
        if self.steps >= self.asleep_until and dice.random() < 0.03:
            self.asleep_until = self.steps + dice.randint(2, SLEEP_STEPS)
        elif len(awake) == 1 and dice.random() < 0.2:
            await self._prune()
        for node in awake:
            await self.check(node)

    def _forget_some(self, node: Node) -> None:
        """Evict facts from a view, as a full view does, so that they are loaded during changes."""
        for key in node.view.items():
            if self.dice.random() < 0.3:
                node.view._forget(key)

    async def _mutate(self, node: Node) -> None:
        drawn = self.world.mutations
        kind = self.dice.choices(list(drawn), list(drawn.values()))[0]
        who = (
            Credential(user=ADMIN) if self.dice.random() < (0.5 if self.world.focus else 0.7) else self.world.someone()
        )
        request_id = f"w{self.steps}-{len(self.writers)}"
        self.writers[request_id] = writer = Writer(node.services, who, request_id)
        await self._wait()
        try:
            mend = mending(self.world, node.ctx()) if self.dice.random() < 0.3 else None
            await (mend or kind(self.world, writer))
        except BrokenFeed:
            raise
        except REFUSALS:
            self.tally.refused += 1
        else:
            self.tally.mutations += 1
            self.tally.operations[kind.__name__] = self.tally.operations.get(kind.__name__, 0) + 1
        finally:
            del self.writers[request_id]

    async def _ask(self, question: StoryQuestion, node: Node) -> None:
        """Ask a question during changes. Its answer must have been true at some moment since the question."""
        await self._wait()
        if self.sequential:
            await question.ask(node.ctx(question.who))
            return
        watched = WatchedQuestion(question, [self.now(question)])
        self.watched.append(watched)
        answer = await question.ask(node.ctx(question.who))
        self.watched.remove(watched)
        self.tally.answers += 1
        if answer not in watched.truths:
            raise InvariantViolation(
                f"answers: {question.text} by {question.who}: {answer}, true were {watched.truths}"
            )

    async def _wander(self, node: Node) -> None:
        """Read facts in several request views, to fill the view."""
        try:
            await explained(self.world, node.ctx())
        except BrokenFeed:
            raise
        except REFUSALS:
            pass

    async def _prune(self) -> None:
        await self.nodes[0].store.submit(upkeep_permit("upkeep"), lambda tx: feed_prune(tx, keep_ms=-60_000))
        self.tally.prunes += 1

    async def _wait(self) -> None:
        for _ in range(self.delays.choice(PAUSES)):
            await asyncio.sleep(0)

    # -- after a step --------------------------------------------------------------------------------------------

    async def check(self, node: Node) -> None:
        """Update the node's view. Compare all facts in it with SQL, and some answers with those of an empty view."""
        for chain in self.chains(node):
            await node.gate.refresh(chain, "test")
        facts = node.view.items()
        direct = await self.direct(tuple(facts))
        for key, value in facts.items():
            if direct[key] != value:
                raise InvariantViolation(f"facts: {key} is {value}, SQL says {direct[key]}")
        self.tally.facts += len(facts)
        for _ in range(2):
            question = questions(self.world)
            answer = await question.ask(node.ctx(question.who))
            truth = await question.ask(self._fresh().ctx(question.who))
            self.tally.answers += 1
            if answer != truth:
                raise InvariantViolation(
                    f"answers: {question.text} by {question.who}: {answer}, a fresh view says {truth}"
                )

    def chains(self, node: Node) -> list[tuple[int, ...]]:
        """Return every zone that the node knows, with the zones above it."""
        rows = self.world.sql("SELECT id, parent_id, kind FROM node WHERE kind <= 2 ORDER BY id")
        chains = [(0,), *((0, own) if kind == 1 else (0, parent, own) for own, parent, kind in rows)]
        return [chain for chain in chains if chain[-1] in node.view.zones]


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("the truth had to wait")


def play(
    database: Database, seed: int, steps: int, *, inline: bool = False, focus: bool = False, lance: bool = False
) -> Tally:
    """Run one random sequence to its end. Raises InvariantViolation."""

    async def story() -> Tally:
        harness = Harness(database, seed, inline=inline, focus=focus, lance=lance)
        try:
            return await harness.run(steps)
        finally:
            await harness.close()

    return asyncio.run(story())
