# SPDX-License-Identifier: Apache-2.0
"""Changes of a dataset's table over Iceberg REST: which are refused, and commits of statements that lost their lock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Final

import pytest

from limnos.model.permits import upkeep_permit
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest
from limnos.names.dataverse import DataverseName
from limnos.rooms.sqlpp.language.errors import EngineFailed, EngineUnavailable, OutcomeUnknown, SqlppError
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.execution import data_statements as sqlpp_data
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.rooms.sqlpp.services.locks.statement_locks import LOCKS, HeldLocks
from limnos.services.storage.table_files import STATEMENT_FILES
from tests.http.driver import DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import (
    Document,
    commit,
    error_of,
    metadata_of,
    nothing_done,
    placed,
    point,
    set_properties,
    snapshot,
    space_path,
    table_path,
)
from tests.rooms.sqlpp.http.wire import ask, refusal, rows

SEED = (
    "create type Pair as { a: bigint }; create type Item as { id: bigint, name: string?, pair: Pair, n: integer? };"
    " create dataset items(Item) primary key id; create dataset others(Item) primary key id;"
)
ITEMS = ("Default", "items")
HEADER = "x_limnos_lock"
LONG_S = 60.0
ALLOW = set_properties(**{"sqlpp_outside-writers": "allowed"})


@pytest.fixture
def lake(shared: DriverNode) -> Iterator[DriverNode]:
    """A node with two fresh datasets."""
    services = shared.built.services
    engine = ENGINE.of(services)
    rows(shared, SEED)
    yield shared
    ENGINE.put(services, engine)
    rows(
        shared,
        "drop dataset items if exists; drop dataset others if exists; drop type Item if exists; drop type Pair if"
        " exists",
    )


def appended(
    node: DriverNode,
    number: int = 1,
    *,
    parent: int | None = None,
    path: tuple[str, ...] = ITEMS,
    user: str = "admin",
    **headers: str,
) -> DriverAnswer:
    """Return an append, as an engine commits it."""
    updates = [snapshot(number, parent=parent), point(number)]
    body = {"requirements": [], "updates": placed(node, *path, updates=updates)}
    return node.ask("POST", table_path(*path), body, user=user, **headers)


def refused(answer: DriverAnswer, *words: str) -> None:
    """Check that a response is a 400 whose message contains these words."""
    status, kind, message = error_of(answer)
    assert (status, kind) == (400, "IllegalArgumentException"), message
    for word in words:
        assert word in message


def test_appends_by_other_clients_are_refused(lake: DriverNode) -> None:
    """Appends by other clients than SQL++ are refused with advice, for every user and in multi-table commits, too."""
    updates = placed(lake, *ITEMS, updates=[snapshot(1), point(1)])
    change = {"identifier": {"namespace": ["Default"], "name": "items"}, "requirements": [], "updates": updates}

    with nothing_done(lake):
        refused(appended(lake), "Default.items accepts rows only from SQL++", "sqlpp.outside-writers", "/query/service")
        refused(
            lake.ask("POST", "/iceberg/v1/lake.main/transactions/commit", {"table-changes": [change]}),
            "accepts rows only from SQL++",
        )


def test_server_without_the_room_refuses_commits_to_datasets(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that cannot read a dataset's rules refuses each commit to it, and says which room to install."""
    monkeypatch.setattr("limnos.services.iceberg.dataset_fence.stored_statements", lambda: None)

    with nothing_done(lake):
        refused(commit(lake, *ITEMS, updates=[set_properties(mine="1")]), "Default.items is a dataset", "room sqlpp")


def test_commits_that_change_no_rows_are_accepted(lake: DriverNode) -> None:
    """Branches, tags, properties and new columns are accepted, because SQL++ reads `main`. Moving `main` to another
    snapshot is refused.
    """
    branch = commit(lake, *ITEMS, updates=[snapshot(1), point(1, "audit")])
    column = {"id": 99, "name": "more", "required": False, "type": "string"}

    assert branch.status == 200, branch.body
    assert commit(lake, *ITEMS, updates=[point(1, "release", "tag")]).status == 200
    assert commit(lake, *ITEMS, updates=[set_properties(mine="1", write_merge_mode="copy-on-write")]).status == 200
    assert commit(lake, *ITEMS, updates=with_schema(lake, lambda fields: [*fields, column])).status == 200
    refused(commit(lake, *ITEMS, updates=[point(1)]), "accepts rows only from SQL++")
    refs: Document = metadata_of(lake, *ITEMS)["refs"]  # type: ignore[assignment]
    assert {name: ref["type"] for name, ref in refs.items()} == {"audit": "branch", "release": "tag"}  # type: ignore[index]


def with_schema(node: DriverNode, change: Callable[[list[Document]], list[Document]], **more: object) -> list[Document]:
    """Return the updates that set a table's schema to changed fields."""
    metadata = metadata_of(node, *ITEMS)
    schema = dict(metadata["schemas"][-1]) | more  # type: ignore[index]
    schema["fields"] = change([dict(field) for field in schema["fields"]])
    return [
        {"action": "add-schema", "schema": schema, "last-column-id": 99},
        {"action": "set-current-schema", "schema-id": -1},
    ]


def renamed(name: str, to: str) -> Callable[[list[Document]], list[Document]]:
    """Return the fields with one of them renamed."""
    return lambda fields: [field | ({"name": to} if field["name"] == name else {}) for field in fields]


def without(name: str) -> Callable[[list[Document]], list[Document]]:
    """Return the fields without one of them."""
    return lambda fields: [field for field in fields if field["name"] != name]


def changed(name: str, **more: object) -> Callable[[list[Document]], list[Document]]:
    """Return the fields with one of them changed."""
    return lambda fields: [field | (more if field["name"] == name else {}) for field in fields]


@pytest.mark.parametrize(
    "change, more, words",
    [
        (renamed("name", "label"), {}, "its column name, which would be dropped"),
        (without("_open"), {}, "its column _open, which would be dropped"),
        (changed("n", type="long"), {}, "its column n"),
        (changed("id", required=False), {"identifier-field-ids": []}, "its column id"),
        (lambda fields: fields, {"identifier-field-ids": []}, "its identifier fields"),
        (
            lambda fields: [*fields, {"id": 99, "name": "must", "required": True, "type": "string"}],
            {},
            "the column must",
        ),
        (changed("pair", type={"type": "struct", "fields": []}), {}, "its column pair"),
    ],
)
def test_incompatible_schema_change_is_refused(
    lake: DriverNode, change: Callable[[list[Document]], list[Document]], more: Document, words: str
) -> None:
    """Schema changes that SQL++ cannot read are refused with the field's name, even if other writers are allowed."""
    assert commit(lake, *ITEMS, updates=[ALLOW]).status == 200

    answer = commit(lake, *ITEMS, updates=with_schema(lake, change, **more))

    refused(answer, "Default.items is a dataset of SQL++", words)


def test_comments_and_field_order_may_be_changed(lake: DriverNode) -> None:
    """Comments and the order of fields may be changed."""
    updates = with_schema(lake, lambda fields: changed("name", doc="how it is called")(fields[::-1]))

    assert commit(lake, *ITEMS, updates=updates).status == 200


@pytest.mark.parametrize(
    "update",
    [
        set_properties(**{"write_merge_isolation-level": "snapshot"}),
        {"action": "remove-properties", "removals": ["write.delete.isolation-level"]},
        set_properties(sqlpp_type="{}"),
        set_properties(**{"sqlpp_outside-writers": "perhaps"}),
    ],
)
def test_change_of_a_required_property_is_refused(lake: DriverNode, update: Document) -> None:
    """Changes of properties that the dataset needs are refused with the property's name."""
    names = update.get("removals") or list(update["updates"])  # type: ignore[call-overload]
    refused(commit(lake, *ITEMS, updates=[update]), names[0])


def test_large_requests_are_checked_like_small_ones(lake: DriverNode) -> None:
    """Large requests and metadata documents, which worker processes handle, are checked in the same way as small
    ones.
    """
    large = set_properties(large="x" * 300_000)

    refused(commit(lake, *ITEMS, updates=[large, snapshot(1), point(1)]), "accepts rows only from SQL++")
    assert commit(lake, *ITEMS, updates=[large]).status == 200
    refused(appended(lake), "accepts rows only from SQL++")
    refused(commit(lake, *ITEMS, updates=with_schema(lake, without("name"))), "its column name, which would be dropped")
    assert commit(lake, *ITEMS, updates=[set_properties(mine="1")]).status == 200


def test_user_who_may_drop_can_allow_other_writers(lake: DriverNode) -> None:
    """Only a user who may drop the table can allow other writers. The property applies from the next commit on and can
    be removed.
    """
    grant(lake, "ana", "use_catalog use_schema modify_table select_table", kind="CATALOG", on="main")

    assert error_of(commit(lake, *ITEMS, updates=[ALLOW], user="ana"))[0] == 403
    refused(commit(lake, *ITEMS, updates=[ALLOW, snapshot(1), point(1)]), "accepts rows only from SQL++")
    assert commit(lake, *ITEMS, updates=[ALLOW]).status == 200
    assert appended(lake, user="ana").status == 200
    removal = {"action": "remove-properties", "removals": ["sqlpp.outside-writers"]}
    assert error_of(commit(lake, *ITEMS, updates=[removal], user="ana"))[0] == 403
    assert commit(lake, *ITEMS, updates=[removal]).status == 200
    refused(appended(lake, 2, parent=1, user="ana"), "accepts rows only from SQL++")


def test_with_option_allows_other_writers_at_creation(lake: DriverNode) -> None:
    """WITH can allow other writers when it creates the dataset; an invalid value of the option is refused."""
    rows(lake, "create dataset free(Item) primary key id with {'outside-writers': 'allowed'}")

    assert appended(lake, path=("Default", "free")).status == 200
    rows(lake, "drop dataset free")
    status, message = refusal(lake, "create dataset d(Item) primary key id with {'outside-writers': 'all'}")
    assert (status, message[:8]) == (400, "ASX1079:")
    assert "outside-writers is refused" in message


def test_register_overwrite_of_a_dataset_is_refused(lake: DriverNode) -> None:
    """Register with overwrite is refused for a dataset, unless the metadata file is the table's current one."""
    other = lake.done("GET", table_path("Default", "others"))["metadata-location"]
    metadata_of(lake, *ITEMS)
    body = {"name": "items", "metadata-location": other, "overwrite": True}
    assert commit(lake, *ITEMS, updates=[ALLOW]).status == 200
    assert appended(lake).status == 200
    assert (
        commit(lake, *ITEMS, updates=[{"action": "remove-properties", "removals": ["sqlpp.outside-writers"]}]).status
        == 200
    )

    refused(lake.post(f"{space_path('Default')}/register", body), "accepts rows only from SQL++")
    mine = lake.done("GET", table_path(*ITEMS))["metadata-location"]
    assert lake.post(f"{space_path('Default')}/register", body | {"metadata-location": mine}).status == 200


def test_renamed_dataset_refuses_appends_and_dropped_is_404(lake: DriverNode) -> None:
    """A renamed dataset refuses appends under its new name, and a dropped one is 404."""
    body = {
        "source": {"namespace": ["Default"], "name": "items"},
        "destination": {"namespace": ["Default"], "name": "things"},
    }

    assert lake.post("/iceberg/v1/lake.main/tables/rename", body).status == 204
    things = ("Default", "things")
    refused(appended(lake, path=things), "Default.things accepts rows")
    append = {"requirements": [], "updates": placed(lake, *things, updates=[snapshot(1), point(1)])}
    assert lake.delete(table_path(*things)).status == 204
    assert lake.post(table_path(*things), append).status == 404


# Statements and their locks


RUNNING: Final = ExitStack()
"""The statements of the locks of tests: for their node they run until the end of all tests."""


def acquire_lock(node: DriverNode, name: str = "items", mode: LockMode = LockMode.EXCLUSIVE_MODIFY) -> HeldLocks:
    """Acquire the lock of a statement that writes a dataset, and begin the statement."""
    catalog_id = node.runner.run(catalog_of(node))
    key = LockKey(catalog_id, LockKind.DATASET, DataverseName.create(("Default",)), name)
    locks = node.runner.run(LOCKS.of(node.built.services).acquire([LockRequest(key, mode)], LONG_S))
    RUNNING.enter_context(STATEMENT_FILES.of(node.built.services).of_lock(locks.token, ()))
    return locks


async def catalog_of(node: DriverNode) -> int:
    """Return the id of the catalog."""
    from limnos.store.sql import Sql

    ((catalog_id,),) = await node.built.services.gate.find(
        (Sql("SELECT id FROM node WHERE name = 'main' AND deleted = 0"), {})
    )
    return int(catalog_id)


def test_commit_is_accepted_only_while_the_lock_is_held(lake: DriverNode) -> None:
    """Commits are accepted while the lock is held, and refused after its release."""
    lock = acquire_lock(lake)

    assert appended(lake, **{HEADER: lock.token_text}).status == 200
    lake.runner.run(lock.release())
    status, kind, message = error_of(appended(lake, 2, parent=1, **{HEADER: lock.token_text}))

    assert (status, kind) == (409, "CommitFailedException")
    assert "doesn't hold its lock" in message


def test_forged_or_foreign_lock_is_refused(lake: DriverNode) -> None:
    """A lock of another dataset, a read lock, or a bare number is refused."""
    lock, other, reads = acquire_lock(lake), acquire_lock(lake, "others"), acquire_lock(lake, "others2", LockMode.READ)
    token, _, secret = lock.token_text.partition(".")

    for text in (
        f"{token}.{'0' * len(secret)}",
        other.token_text,
        reads.token_text,
        f"{other.token}.{secret}",
        f"{token}.é",
    ):
        assert error_of(appended(lake, **{HEADER: text}))[0] == 409, text
    for text in (token, f"{token}.", ".x", "-1.x", "x.y", "9" * 40 + ".x"):
        assert error_of(appended(lake, **{HEADER: text}))[0] == 400, text
    assert "main" not in metadata_of(lake, *ITEMS).get("refs", {})  # type: ignore[operator]
    for each in (lock, other, reads):
        lake.runner.run(each.release())


def test_engine_of_a_node_that_lost_its_locks_cannot_commit(lake: DriverNode) -> None:
    """Commits of an engine whose node lost its locks are refused, whether or not another statement has acquired
    them.
    """
    lock, locks = acquire_lock(lake), LOCKS.of(lake.built.services)
    lake.runner.run(lake.built.services.store.submit(upkeep_permit("tester"), lambda tx: tx.locks.delete(lock.token)))
    again = acquire_lock(lake)

    assert again.token > lock.token
    assert error_of(appended(lake, **{HEADER: lock.token_text}))[0] == 409
    assert appended(lake, **{HEADER: again.token_text}).status == 200
    lake.runner.run(again.release())
    lake.runner.run(lock.release())
    assert locks is LOCKS.of(lake.built.services)


def test_table_without_a_key_accepts_commits_of_all_clients(lake: DriverNode) -> None:
    """Tables without a key accept commits of all clients. Commits of SQL++ statements still need their lock."""
    lake.done("POST", f"{space_path('Default')}/tables", {"name": "plain", "schema": {"type": "struct", "fields": []}})
    path = ("Default", "plain")

    assert error_of(appended(lake, path=path, **{HEADER: "1.x"}))[0] == 409
    assert appended(lake, path=path).status == 200


class CommittingEngine:
    """A fake engine that commits over Iceberg REST as Spark does, and may then fail as if its answer were lost."""

    def __init__(self, node: DriverNode, *, commits: bool, error: SqlppError | None, hangs: bool = False) -> None:
        self.node = node
        self.hangs = hangs
        self.commits = commits
        self.error = error
        self.updates = placed(node, *ITEMS, updates=[snapshot(1), point(1)])
        self.answers: list[DriverAnswer] = []

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Commit, return a row, fail."""
        if self.commits:
            self.updates[0]["snapshot"]["summary"]["sqlpp.statement"] = job.id
            body = {"requirements": [], "updates": self.updates}
            headers = {"authorization": f"Bearer {job.credential}", HEADER: job.lock}
            self.answers.append(await self.node._ask("POST", table_path(*ITEMS), body, None, headers))
        if self.hangs:
            await asyncio.sleep(LONG_S)
        if self.error is not None:
            raise self.error
        yield b'{"id":1}'

    async def cancel(self, _job_id: str) -> None:
        """No-op: no job runs."""

    def close(self) -> None:
        """No-op: the fake holds no resources."""


LOST = OutcomeUnknown()
AWAY = EngineUnavailable("The engine could not be started: no Java", retry_after_s=7)
BROKEN = EngineFailed("Its log has the reason")
LATE = SqlppError(30, "Request timed out and will be cancelled")


@pytest.mark.parametrize(
    "commits, error, returning, expected",
    [
        (True, None, "", (200, None)),
        (True, LOST, "", (200, None)),
        (True, LATE, "", (200, None)),
        (True, AWAY, "", (200, None)),
        (True, LOST, " returning items", (500, "ASX3102: The statement was executed, but its result is incomplete")),
        (True, AWAY, " returning items", (500, "ASX3102: The statement was executed, but its result is incomplete")),
        (True, LATE, " returning items", (400, "ASX0030: The statement was executed, but its result is incomplete")),
        (
            False,
            LOST,
            "",
            (503, "ASX3102: The engine ended in the middle of the statement; nothing was changed: try again"),
        ),
        (False, AWAY, "", (503, "ASX3109: The engine could not be started: no Java")),
        (False, BROKEN, "", (500, "ASX3102: Its log has the reason")),
        (False, LATE, "", (400, "ASX0030: Request timed out")),
    ],
)
def test_lost_engine_answer_is_resolved_from_snapshot_history(
    lake: DriverNode, commits: bool, error: SqlppError | None, returning: str, expected: tuple[int, str | None]
) -> None:
    """If the engine's answer is lost, the snapshot history shows whether the statement committed. The answer is 503
    only if nothing was changed.
    """
    status, message_start = expected
    engine = CommittingEngine(lake, commits=commits, error=error)
    ENGINE.put(lake.built.services, engine)

    response = ask(lake, f"insert into items ({{'id': 1}}){returning}")
    answer = response.json()

    assert [each.status for each in engine.answers] == [200] * commits
    assert (response.status, response.headers.get("retry-after")) == (
        status,
        {True: "7", False: "1"}[error is AWAY] if status == 503 else None,
    )
    assert [each["msg"][: len(message_start or "")] for each in answer.get("errors", [])] == [message_start] * bool(
        message_start
    )


@pytest.mark.parametrize("commits", [True, False])
def test_timed_out_statement_reports_whether_it_was_executed(lake: DriverNode, commits: bool) -> None:
    """A statement that exceeds its deadline is cancelled, and the message says whether the statement was executed."""
    ENGINE.put(lake.built.services, CommittingEngine(lake, commits=commits, error=None, hangs=True))

    _, message = refusal(lake, "insert into items ({'id': 1})", timeout="1s")

    assert message.endswith("the statement was executed before that" if commits else "nothing was changed"), message


def test_statement_timed_out_waiting_for_lock_changes_nothing(
    lake: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement whose deadline passes before it gets the lock reports that nothing was changed."""
    engine = CommittingEngine(lake, commits=True, error=None)
    ENGINE.put(lake.built.services, engine)

    @asynccontextmanager
    async def for_ever(*_: object, **_named: object) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(sqlpp_data, "hold_dataset_lock", for_ever)

    _, message = refusal(lake, "insert into items ({'id': 1})", timeout="0.2s")

    assert message.endswith("was ended: nothing was changed"), message
    assert engine.answers == []


def test_undeterminable_outcome_is_reported_as_unknown(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the outcome cannot be determined, because the lock cannot be released, the answer says that it is unknown."""
    ENGINE.put(lake.built.services, CommittingEngine(lake, commits=False, error=LATE))

    held_locks: set[HeldLocks] = set()

    async def keep(lock: HeldLocks) -> None:
        """Fail as if the store were unreachable."""
        held_locks.add(lock)

    with monkeypatch.context() as patched:
        patched.setattr(HeldLocks, "release", keep)
        message = refusal(lake, "insert into items ({'id': 1})")[1]
    for each in held_locks:
        lake.runner.run(each.release())

    assert len(held_locks) == 1
    assert "executed completely or not at all" in message
