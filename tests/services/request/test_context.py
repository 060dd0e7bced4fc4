# SPDX-License-Identifier: Apache-2.0
"""Retry loops: a write restarts after a stale permit, a read after a changed answer. Both stop after some attempts."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, PermissionDenied, ServiceUnavailable, StalePermit
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.namespaces import namespace_create
from limnos.services.catalog.tables import table_drop
from limnos.services.identity.groups import members_add
from limnos.services.identity.owners import owner_set
from limnos.services.identity.users import principal_add, principal_look_up, user_enable
from limnos.services.request.context import CONFIRMATIONS_MAX, STALE_PERMITS, WRITES_FREE, WRITES_MAX
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.purges import PURGE
from tests.inprocess import LAKE, MAIN
from tests.services.conftest import ServiceDesk


def interfere(desk: ServiceDesk, patch: pytest.MonkeyPatch, times: int, work: Callable[[], Any]) -> list[int]:
    """Run a callback between decision and transaction, the first few times."""
    tries: list[int] = []
    real = desk.node.store.submit

    async def submit(permit: Any, mutation: Any, *, on_begin: Any) -> Any:  # noqa: ANN401 - as the store has it
        tries.append(1)
        if len(tries) <= times:
            await work()
        return await real(permit, mutation, on_begin=on_begin)

    patch.setattr(desk.node.store, "submit", submit)
    return tries


def other_change(desk: ServiceDesk) -> Callable[[], Any]:
    """Let another node commit a change that moves the access revision and does not concern the writer."""
    other = ServiceDesk(desk.lab)
    other.node.store = other.node.services.store = desk.lab.open()
    other.node.gate.store = other.node.store
    states = iter([False, True] * 10)
    return lambda: user_enable(other.ctx(), metalake=LAKE, name="bob", enabled=next(states))


def create(desk: ServiceDesk, user: str = "admin") -> Node:
    """Create a namespace."""
    return desk.run(namespace_create(desk.ctx(user), MAIN, levels=("a",), properties={}))[0]


def test_stale_permit_is_decided_again(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the access revision moves between decision and transaction, the write is decided again, and a metric counts
    it.
    """
    tries = interfere(desk, monkeypatch, 1, other_change(desk))
    before = STALE_PERMITS[()]

    created = create(desk)

    assert created.name == "a"
    assert len(tries) == 2
    assert STALE_PERMITS[()] - before == 1


def _moving_read(desk: ServiceDesk, moves: list[bool]) -> tuple[Callable[[object], Any], list[str]]:
    """Return work that disables or enables bob at another node each time it runs, and the list of its runs."""
    other = ServiceDesk(desk.lab)
    other.node.store = other.node.services.store = desk.lab.open()
    other.node.gate.store = other.node.store
    runs: list[str] = []

    async def work(decided: object) -> str:
        runs.append(str(decided))
        if moves:
            await user_enable(other.ctx(), metalake=LAKE, name="bob", enabled=moves.pop(0))
        return f"data {len(runs)}"

    return work, runs


def _bob_is_enabled(request_view: RequestView) -> bool:
    """Return whether bob is enabled, which is the decision of these tests."""
    return principal_look_up(request_view, Kind.USER, "bob", Action.USER_LOAD).entity.enabled


def test_read_is_repeated_if_the_decision_changes_meanwhile(desk: ServiceDesk) -> None:
    """Data that were read before the decision changed are not returned; the later decision and its data are."""
    work, runs = _moving_read(desk, [False])

    assert desk.run(desk.ctx().read_confirmed(RequestScope(LAKE), _bob_is_enabled, work=work)) == (False, "data 2")
    assert runs == ["True", "False"]


def test_identity_selects_the_compared_part_of_a_decision(desk: ServiceDesk) -> None:
    """Parts of the decision that `identity` omits may change; the later decision is returned."""
    work, runs = _moving_read(desk, [False])

    assert desk.run(
        desk.ctx().read_confirmed(RequestScope(LAKE), _bob_is_enabled, work=work, identity=lambda _: "the same")
    ) == (False, "data 1")
    assert len(runs) == 1


def test_error_of_a_read_is_hidden_if_the_decision_changes(desk: ServiceDesk) -> None:
    """An error of the work is raised only if the decision is unchanged, else the work runs again."""
    move, runs = _moving_read(desk, [False])

    async def fail(decided: object) -> str:
        await move(decided)
        raise BadRequest(f"attempt {len(runs)}")

    with pytest.raises(BadRequest, match="attempt 2"):
        desk.run(desk.ctx().read_confirmed(RequestScope(LAKE), _bob_is_enabled, work=fail))


def test_read_with_always_changing_decisions_ends(desk: ServiceDesk) -> None:
    """If the decision changes in every attempt, the read ends with a temporary error."""
    work, runs = _moving_read(desk, [False, True] * 10)

    with pytest.raises(ServiceUnavailable, match="changed while this was being read"):
        desk.run(desk.ctx().read_confirmed(RequestScope(LAKE), _bob_is_enabled, work=work))
    assert len(runs) == CONFIRMATIONS_MAX


def hold_off(desk: ServiceDesk, patch: pytest.MonkeyPatch) -> list[int]:
    """Make every permit stale. Counts the attempts."""
    tries: list[int] = []

    async def submit(*_: Any, on_begin: Callable[[], None]) -> None:  # noqa: ANN401 - as the store has it
        tries.append(1)
        on_begin()
        raise StalePermit

    patch.setattr(desk.node.store, "submit", submit)
    patch.setattr(desk.node.store, "submit_held", submit)
    return tries


def test_permanently_stale_permits_end_in_service_unavailable(
    desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If every permit is stale, the caller gets ServiceUnavailable after a few attempts, and nothing is changed."""
    tries = hold_off(desk, monkeypatch)

    with pytest.raises(ServiceUnavailable, match="nothing was changed: try again"):
        create(desk)

    assert len(tries) == WRITES_MAX
    assert desk.rows("SELECT count(*) FROM node WHERE kind = 3") == [(0,)]


def test_outcome_is_unknown_only_during_the_mutation(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a refusal, nothing was changed for certain. The outcome is unknown only while the store executes the
    mutation.
    """
    hold_off(desk, monkeypatch)
    ctx = desk.ctx()

    with pytest.raises(ServiceUnavailable):
        desk.run(namespace_create(ctx, MAIN, levels=("a",), properties={}))

    assert not ctx.submitted


def test_cancel_after_the_mutation_began_has_unknown_outcome(
    desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a caller is cancelled after the mutation began, the outcome is unknown, also with locks first."""
    for name in ("submit", "submit_held"):
        ctx = desk.ctx()
        seen: list[bool] = []
        _watch_begin(desk, monkeypatch, name, lambda ctx=ctx, seen=seen: seen.append(ctx.submitted))
        interfere(desk, monkeypatch, 0 if name == "submit" else 2, other_change(desk))

        desk.run(namespace_create(ctx, MAIN, levels=(name,), properties={}))

        assert seen
        assert all(seen)
        monkeypatch.undo()


def _watch(desk: ServiceDesk, patch: pytest.MonkeyPatch, name: str, look: Callable[[], None]) -> None:
    real = getattr(desk.node.store, name)

    async def watched(*args: Any, on_begin: Any) -> Any:  # noqa: ANN401 - as the store has it
        look()
        return await real(*args, on_begin=on_begin)

    patch.setattr(desk.node.store, name, watched)


def _watch_begin(desk: ServiceDesk, patch: pytest.MonkeyPatch, name: str, look: Callable[[], None]) -> None:
    """Observe the moment at which the store begins a mutation."""
    real = getattr(desk.node.store, name)

    async def watched(*args: Any, on_begin: Any) -> Any:  # noqa: ANN401 - as the store has it
        return await real(*args, on_begin=lambda: (on_begin(), look()))

    patch.setattr(desk.node.store, name, watched)


def test_cancel_before_the_mutation_changes_nothing(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a caller is cancelled before the mutation began, nothing was changed for certain."""
    ctx = desk.ctx()
    seen: list[bool] = []
    _watch(desk, monkeypatch, "submit", lambda: seen.append(ctx.submitted))

    desk.run(namespace_create(ctx, MAIN, levels=("a",), properties={}))

    assert seen == [False]
    assert ctx.submitted


def held_writes(desk: ServiceDesk, patch: pytest.MonkeyPatch) -> list[int]:
    """Count the writes that take the locks first."""
    locked_writes: list[int] = []
    _watch(desk, patch, "submit_held", lambda: locked_writes.append(1))
    return locked_writes


def test_writer_with_twice_stale_permit_takes_locks_and_succeeds(
    desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer whose permit was stale twice takes the locks first, and then succeeds however often the access revision
    moves.
    """
    locked_writes = held_writes(desk, monkeypatch)
    tries = interfere(desk, monkeypatch, 99, other_change(desk))

    assert create(desk).name == "a"
    assert len(tries) == WRITES_FREE
    assert len(locked_writes) == 1


def test_writer_refused_under_locks_releases_them(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer with locks who has lost the privilege meanwhile is refused, and releases the locks."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.CREATE_SCHEMA)
    other = ServiceDesk(desk.lab)
    other.node.services.store = desk.lab.open()
    steps = iter([("bob", False), ("ana", False)])

    async def move() -> None:
        name, enabled = next(steps)
        await user_enable(other.ctx(), metalake=LAKE, name=name, enabled=enabled)

    interfere(desk, monkeypatch, 2, move)
    locked_writes = held_writes(desk, monkeypatch)

    with pytest.raises(PermissionDenied, match="is disabled"):
        create(desk, "ana")
    monkeypatch.undo()

    assert locked_writes == [1]
    assert create(desk).name == "a"


def test_user_disabled_before_the_transaction_is_refused(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer who is disabled between decision and transaction is refused."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.CREATE_SCHEMA)
    other = ServiceDesk(desk.lab)
    other.node.services.store = desk.lab.open()
    interfere(desk, monkeypatch, 1, lambda: user_enable(other.ctx(), metalake=LAKE, name="ana", enabled=False))

    with pytest.raises(PermissionDenied, match="is disabled"):
        create(desk, "ana")

    assert desk.rows("SELECT count(*) FROM node WHERE kind = 3") == [(0,)]


def _give(desk: ServiceDesk, giver: str, kind: Kind, owner: str) -> Coroutine[object, object, None]:
    """Make a user or group the owner of table `main.a.t`."""
    return owner_set(
        desk.ctx(giver), metalake=LAKE, kind=Kind.TABLE, full_name="main.a.t", owner_kind=kind, owner=owner
    )


def test_transfer_takes_effect_at_the_next_request(desk: ServiceDesk) -> None:
    """After a transfer the new owner may write, and the former one may not: an owner gives a table to a group of both,
    and the new owner takes it from the group.
    """
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.CREATE_TABLE)
    desk.allow("bob", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    desk.namespace("a")
    desk.table("a", "t", user="ana")
    desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=Kind.GROUP, name="team"))
    desk.run(members_add(desk.ctx(), metalake=LAKE, group="team", users=("ana", "bob")))

    with pytest.raises(PermissionDenied, match="You may not make user bob an owner"):
        desk.run(_give(desk, "ana", Kind.USER, "bob"))
    desk.run(_give(desk, "ana", Kind.GROUP, "team"))
    desk.run(_give(desk, "bob", Kind.USER, "bob"))

    with pytest.raises(PermissionDenied):
        desk.run(table_drop(desk.ctx("ana"), MAIN, namespace=("a",), name="t", purge=False))
    desk.run(table_drop(desk.ctx("bob"), MAIN, namespace=("a",), name="t", purge=False))


def test_purge_commits_with_the_drop(desk: ServiceDesk) -> None:
    """A drop with purge creates one task, which has the metadata, and wakes the worker; the task deletes the document.
    A plain drop creates no task and keeps the document while the table can be restored.
    """
    desk.namespace("a")
    desk.table("a", "u")
    desk.run(table_drop(desk.ctx(), MAIN, namespace=("a",), name="u", purge=False))
    retained_locations = desk.rows("SELECT metadata_location FROM document")
    desk.table("a", "t")
    ((location,),) = set(desk.rows("SELECT metadata_location FROM document")) - set(retained_locations)

    desk.run(table_drop(desk.ctx(), MAIN, namespace=("a",), name="t", purge=True))

    ((kind, payload),) = desk.rows("SELECT kind, payload FROM task")
    assert kind == PURGE
    assert location in payload
    assert desk.node.woken == 1
    assert desk.rows("SELECT metadata_location FROM document") == retained_locations
