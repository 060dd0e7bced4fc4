# SPDX-License-Identifier: Apache-2.0
"""Lost answers: a request with an idempotency key is repeated until an answer arrives, and is executed once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import pytest

from limnos.http.admin.protocol import KEYED as OWN_KEYED
from limnos.http.iceberg.protocol import KEYED as ICEBERG_KEYED
from limnos.model.uuids import new_uuid
from tests.faults.cutter import Cutter, When
from tests.faults.idempotent_operations import CASES, Asked, table_commit, table_create
from tests.faults.mutations import owner_set
from tests.faults.rig import FULL, Rig, on_backends
from tests.faults.store_integrity import complaints
from tests.nodes.wire import ConnectionLost, Wire, WireAnswer, table_path

KEYED = {**ICEBERG_KEYED, **OWN_KEYED}
REVISIONS = "SELECT sum(revision) FROM clock"
PAIRS = 50
KILLED = (
    sorted(CASES) if FULL else ["commit-table", "commit-transaction", "create-table", "rename-table", "transaction"]
)

KILLED_AT = [
    (each, point)
    for number, each in enumerate(KILLED)
    for turn, point in enumerate(("before-commit", "after-commit"))
    if FULL or number % 2 == turn or each == "commit-table"
]
"""In a sample each operation is killed at one of the points, alternately, and a commit at both."""

PAIRED = sorted(CASES) if FULL else ["commit-table", "create-table", "drop-table", "update-properties"]


def key() -> str:
    """Return a new key."""
    return new_uuid(1_900_000_000_000)


def changes(rig: Rig) -> int:
    """Return the number of changes in the store."""
    return int(str(rig.rows(REVISIONS)[0][0]))


def changes_of(operation: str) -> int:
    """Return the number of revisions that an operation takes: one for each catalog."""
    return 2 if operation == "joint-transaction" else 1


def repeated(wire: Wire, request: Asked, text: str) -> WireAnswer:
    """Repeat a request until an answer arrives, as clients do."""
    for _ in range(5):
        try:
            return wire.ask(*request, key=text)
        except ConnectionLost:
            continue
    raise AssertionError("no answer came")


@contextmanager
def wires_to(*uris: str) -> Iterator[list[Wire]]:
    """Return connections of the admin to a node."""
    with ExitStack() as closes:
        yield [closes.enter_context(closing(Wire(uri, user="admin"))) for uri in uris]


@pytest.fixture(scope="module")
def cutter(rig: Rig) -> Iterator[Cutter]:
    """The proxy in front of the node."""
    with Cutter(rig.node.uri) as running:
        yield running


def test_every_idempotent_operation_is_covered() -> None:
    """The tests cover every operation that accepts idempotency keys."""
    assert set(CASES) == set(KEYED)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", sorted(CASES))
def test_cut_request_repeated_with_key_is_executed_once(rig: Rig, cutter: Cutter, operation: str, when: When) -> None:
    """A request that is cut before its arrival or after its execution, and repeated with its key, is executed once."""
    request, text = CASES[operation](rig), key()
    before = changes(rig)
    wire = Wire(cutter.uri, user="admin")
    cutter.cut(when)

    with pytest.raises(ConnectionLost):
        wire.ask(*request, key=text)
    done = changes(rig) - before
    answers = [repeated(wire, request, text) for _ in range(2)]
    wire.close()

    assert done == (changes_of(operation) if when == "after" else 0)
    assert [each.status for each in answers] == [KEYED[operation].status] * 2, answers
    assert answers[0].body == answers[1].body
    assert changes(rig) == before + changes_of(operation)
    assert cutter.pending == 0
    assert complaints(rig.database) == []


@pytest.mark.parametrize(
    "rig,operation,point",
    on_backends(KILLED_AT),
    indirect=["rig"],
)
def test_idempotency_key_survives_killed_node(rig: Rig, operation: str, point: str) -> None:
    """If a node is killed before or after the commit, the next node answers the repeated request, which is executed
    once.
    """
    request, text = CASES[operation](rig), key()
    before = changes(rig)
    rig.arm(point)

    with pytest.raises(ConnectionLost):
        rig.admin.ask(*request, key=text)
    rig.node.wait_killed()
    done = changes(rig) - before
    rig.start()
    answers = [rig.admin.ask(*request, key=text) for _ in range(2)]

    assert done == (changes_of(operation) if point == "after-commit" else 0)
    assert [each.status for each in answers] == [KEYED[operation].status] * 2, answers
    assert changes(rig) == before + changes_of(operation)
    assert complaints(rig.database) == []


@pytest.mark.parametrize("operation", PAIRED)
def test_same_key_at_two_nodes_is_executed_once(rig: Rig, operation: str) -> None:
    """The same request with one key at two nodes concurrently gets the same answer from both, and is executed once."""
    pairs = PAIRS if operation in ("commit-table", "update-properties") or FULL else PAIRS // 5
    with rig.beside() as other, wires_to(rig.node.uri, other.node.uri) as wires, ThreadPoolExecutor(2) as hands:
        for _ in range(pairs):
            request, text = CASES[operation](rig), key()
            before = changes(rig)
            answers = list(hands.map(lambda wire: wire.ask(*request, key=text), wires))  # noqa: B023 - it ends within the turn

            assert [each.status for each in answers] == [KEYED[operation].status] * 2, answers
            assert answers[0].body == answers[1].body
            assert changes(rig) == before + changes_of(operation)
    assert complaints(rig.database) == []


def test_repeated_drop_by_owner_is_accepted_at_other_node(rig: Rig) -> None:
    """An owner's drop that is repeated at another node is not refused there, although the owner's privilege ended with
    the table: the node reads the key's outcome again.
    """
    with rig.beside() as other, ThreadPoolExecutor(2) as hands:
        for _ in range(PAIRS // 5):
            case, text = owner_set(rig), key()
            rig.admin.do(case.method, case.path, case.body)
            tag = case.path.rpartition("main.")[2].partition(".")[0]
            uris = (rig.node.uri, other.node.uri)
            statuses = list(hands.map(dropped, uris, [f"user_{tag}"] * 2, [table_path(tag, "t")] * 2, [text] * 2))

            assert statuses == [204, 204]
    assert complaints(rig.database) == []


def dropped(uri: str, user: str, path: str, text: str) -> int:
    """Drop an object with a key on a separate connection. Returns the status."""
    with closing(Wire(uri, user=user)) as wire:
        return wire.ask("DELETE", path, key=text).status


def test_concurrent_requests_with_same_key_share_one_answer(rig: Rig) -> None:
    """Of ten equal requests at one node, nine wait for the first and get its answer."""
    with wires_to(*[rig.node.uri] * 10) as wires, ThreadPoolExecutor(10) as hands:
        for prepare in (table_create, table_commit):
            request, text = prepare(rig), key()
            before = changes(rig)
            answers = list(hands.map(lambda wire: wire.ask(*request, key=text), wires))  # noqa: B023

            assert [each.status for each in answers] == [200] * len(wires), answers
            assert all(each.body == answers[0].body for each in answers)
            assert changes(rig) == before + 1
    assert complaints(rig.database) == []
