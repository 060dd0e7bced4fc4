# SPDX-License-Identifier: Apache-2.0
"""Scheduling: owners share executors fairly, quiet hours and budgets delay operations, and the status has the
reason.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest

from limnos.app.room_parts import LoopStart
from limnos.config.settings import Settings
from limnos.model.permits import upkeep_permit
from limnos.model.quiet_hours import parse_quiet_hours
from limnos.rooms.maintenance.server import pauses_loop
from limnos.rooms.maintenance.services.rewriting import planning
from limnos.rooms.maintenance.services.rewriting.pauses import pauses_refresh
from limnos.rooms.maintenance.services.rewriting.planning import INTERVAL_MS
from limnos.rooms.maintenance.services.rewriting.scheduling import (
    BUDGET_PAUSE_MS,
    OPERATION_BYTES,
    REQUESTED_PRIORITY,
    fair_order,
)
from limnos.store.activity.rewrites import RecentUse, WaitingRewrite, metalake_due, recent_use_read
from limnos.store.sql import Load, Sql
from limnos.store.tx import Tx
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import DAY_MS, FIRST_MS, HistoryTable, add_policy, assess, set_clock
from tests.rooms.maintenance.services.rewriting.executor import FakeExecutor, ask, list_operations
from tests.rooms.maintenance.services.rewriting.test_planning import COMPACTION, NOW_MS, WHOLE, plan

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000
NOON_MS = NOW_MS // DAY_MS * DAY_MS + 12 * HOUR_MS


def waiting(number: int, owner: int, *, place: int, size: int = 0, priority: int = 1) -> WaitingRewrite:
    """Return a waiting operation."""
    return WaitingRewrite(
        operation_id=number,
        node_id=number,
        catalog_id=1,
        metalake_id=1,
        kind="compact",
        user="u",
        policy=None,
        attempts=0,
        options="{}",
        bytes=size,
        priority=priority,
        owner_id=owner,
        place=place,
    )


def test_owner_with_many_tables_does_not_delay_others() -> None:
    """An owner with a thousand tables does not delay an owner with two. The best operation of each owner comes
    first.
    """
    rows = [waiting(number, 1, place=number) for number in range(1, 6)]
    rows += [waiting(10 + number, 2, place=number) for number in (1, 2)]

    assert [row.operation_id for row in fair_order(rows, [])] == [1, 11, 2, 12, 3, 4, 5]


def test_owners_with_many_rewritten_bytes_come_later() -> None:
    """Owners with many bytes rewritten in the last day come later; large operations count more than small ones."""
    rows = [waiting(1, 1, place=1), waiting(2, 1, place=2), waiting(11, 2, place=1, size=2 * OPERATION_BYTES)]
    rows.append(waiting(12, 2, place=2))
    used = [RecentUse(owner_id=1, policy="p", bytes=OPERATION_BYTES, operations=1, metalake_id=1)]

    assert [row.operation_id for row in fair_order(rows, used)] == [11, 1, 2, 12]


def test_owners_with_many_small_operations_come_later() -> None:
    """Each operation has a cost besides its bytes, so an owner with many small operations comes later, too."""
    rows = [waiting(1, 1, place=1), waiting(11, 2, place=1)]
    used = [
        RecentUse(owner_id=1, policy="p", bytes=0, operations=1_000, metalake_id=1),
        RecentUse(owner_id=2, policy="p", bytes=10 * OPERATION_BYTES, operations=1, metalake_id=1),
    ]

    assert [row.operation_id for row in fair_order(rows, used)] == [11, 1]


def test_requested_operations_are_leased_first() -> None:
    """Requested operations are leased before those of policies."""
    rows = [waiting(1, 1, place=1), waiting(2, 2, place=1, priority=REQUESTED_PRIORITY)]

    assert [row.operation_id for row in fair_order(rows, [])] == [2, 1]


def limit(node: DriverNode, **settings: object) -> None:
    """Change settings of maintenance."""
    services = node.built.services
    services.defaults = services.defaults._replace(maintenance=services.defaults.maintenance._replace(**settings))  # type: ignore[arg-type]


@pytest.fixture
def tables(lake: DriverNode) -> dict[str, HistoryTable]:
    """Two tables of `admin` with 12 and 30 small files and one of `eve` with 12, at noon, and a policy that compacts
    them.
    """
    history_tables = {name: HistoryTable(lake, name) for name in ("t", "u", "eves")}
    for name, table in history_tables.items():
        table.append(30 if name == "u" else 12)
    lake.post(f"{API}/lake/users", {"name": "eve"})
    owner = {"name": "eve", "type": "USER"}
    assert lake.put(f"{API}/lake/owners/table/main.a.eves", owner).status == 200
    set_clock(lake, NOON_MS)
    assess(lake)
    return history_tables


def test_first_two_leases_belong_to_two_owners(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """The first two leased operations are of two owners, although both tables of one owner have larger gains."""
    add_policy(lake, "small", COMPACTION, {}, on="main", kind="catalog")
    assert plan(lake) == 3
    leased = [each["path"][-1] for each in FakeExecutor(lake).lease(2)]

    assert sorted(leased) == ["eves", "u"]


def test_operations_in_quiet_hours_do_not_delay_other_owners(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """Operations that wait for quiet hours do not delay operations of other owners, even if their owner has used the
    least so far.
    """
    add_policy(lake, "poor", WHOLE, {"quietHours": ["01:00-01:01"]}, on="main", kind="catalog")
    add_policy(lake, "rich", WHOLE, {}, on="main.a.eves", kind="table")
    plan(lake)
    ask(lake, "a.eves", "manifests")
    FakeExecutor(lake).report(FakeExecutor(lake).lease(1)[0]["operation"])

    assert [each["path"][-1] for each in FakeExecutor(lake).lease(1)] == ["eves"]


def test_full_queue_of_one_owner_does_not_delay_others(
    lake: DriverNode, tables: dict[str, HistoryTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full queue of one owner does not delay the operations of others."""
    monkeypatch.setattr(planning, "OPEN_MAX", 1)
    add_policy(lake, "small", WHOLE, {"quietHours": ["01:00-01:01"]}, on="main", kind="catalog")
    planned = [plan(lake), plan(lake)]

    assert planned == [2, 0]
    assert {each["table"] for each in list_operations(lake)} > {"a.eves"}


def test_planned_operations_wait_outside_of_quiet_hours(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """Planned operations wait for the quiet hours, and the status says so; requested operations do not wait."""
    limit(lake, quiet_hours=(parse_quiet_hours("22:00-06:00"),))
    add_policy(lake, "small", COMPACTION, {}, on="main.a.t", kind="table")
    plan(lake)
    at_noon = FakeExecutor(lake).lease()
    (waits,) = list_operations(lake)
    ask(lake, "a.u")
    requested = FakeExecutor(lake).lease()
    FakeExecutor(lake).report(requested[0]["operation"])
    lake.built.services.store.time.at_ms += 10 * HOUR_MS  # type: ignore[attr-defined]
    at_night = FakeExecutor(lake, "two").lease()

    assert (at_noon, waits["state"]) == ([], "waiting")
    assert waits["result"] == "waits for the quiet hours 22:00-06:00 UTC"
    assert [each["path"][-1] for each in requested] == ["u"]
    assert [each["path"][-1] for each in at_night] == ["t"]


def test_removed_quiet_hours_make_operation_wait_for_the_budget(
    lake: DriverNode, tables: dict[str, HistoryTable]
) -> None:
    """If the setting changes from quiet hours to a budget, an operation that waited for the hours waits for the budget,
    and the status says so without an executor's request.
    """
    services = lake.built.services
    limit(lake, quiet_hours=(parse_quiet_hours("22:00-06:00"),))
    add_policy(lake, "small", COMPACTION, {}, on="main.a.t", kind="table")
    plan(lake)
    FakeExecutor(lake).lease()
    ask(lake, "a.u")
    (requested,) = FakeExecutor(lake, "two").lease()
    FakeExecutor(lake, "two").report(requested["operation"])
    limit(lake, quiet_hours=(), bytes_per_day=1_000)
    changed = [lake.runner.run(pauses_refresh(services)) for _ in range(2)]
    (waits,) = [each for each in list_operations(lake) if each["table"] == "a.t"]
    due = lake.runner.run(services.gate.look_up(lambda: metalake_due(services.store.time.now_ms())))

    assert (changed, waits["state"], due) == ([1, 0], "waiting", None)
    assert waits["result"].startswith("waits for the budget of setting maintenance.bytes_per_day: 42000 bytes")


def test_server_start_recomputes_delays(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """The server recomputes delays when it starts: an operation that waited for quiet hours is due at once if the
    setting is removed.
    """
    limit(lake, quiet_hours=(parse_quiet_hours("22:00-06:00"),))
    add_policy(lake, "small", COMPACTION, {}, on="main.a.t", kind="table")
    plan(lake)
    FakeExecutor(lake).lease()
    limit(lake, quiet_hours=())

    async def start() -> str | None:
        services, due = lake.built.services, None
        loop = pauses_loop(LoopStart(services=services, settings=Settings(), bound=socket.socket))
        task = asyncio.ensure_future(loop)
        for _ in range(200):
            await asyncio.sleep(0.05)
            due = await services.gate.look_up(lambda: metalake_due(services.store.time.now_ms()))
            if due is not None:
                break
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return due

    assert lake.runner.run(start()) == "lake"
    assert [each["path"][-1] for each in FakeExecutor(lake).lease()] == ["t"]


@pytest.mark.parametrize("content", [{"compact": False}, None])
def test_delayed_operation_is_cancelled_when_its_policy_ends(
    lake: DriverNode, tables: dict[str, HistoryTable], content: dict[str, object] | None
) -> None:
    """An operation that waits for quiet hours is cancelled once its policy no longer requires it."""
    limit(lake, quiet_hours=(parse_quiet_hours("22:00-06:00"),))
    add_policy(lake, "small", WHOLE, {}, on="main.a.t", kind="table")
    plan(lake)
    FakeExecutor(lake).lease()
    body = {"enable": False}
    if content is None:
        assert lake.patch(f"{API}/lake/policies/small", body).status == 200
    else:
        update = {"@type": "updateContent", "policyType": WHOLE, "newContent": content}
        lake.done("PUT", f"{API}/lake/policies/small", {"updates": [update]})
    lake.runner.run(pauses_refresh(lake.built.services))
    (operation,) = list_operations(lake)

    assert (operation["state"], operation["result"]) == ("cancelled", "The policy small no longer requires this")


def test_quiet_hours_of_setting_and_policy_must_both_allow(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """Quiet hours of both the setting and the policy must allow an operation."""
    limit(lake, quiet_hours=(parse_quiet_hours("11:00-14:00"),))
    add_policy(lake, "late", WHOLE, {"quietHours": ["13:00-20:00"]}, on="main.a.t", kind="table")
    plan(lake)
    clock, leased = lake.built.services.store.time, []
    for _ in range(3):  # 12, 13 and 14 o'clock
        leased.append(len(FakeExecutor(lake, f"e{clock.at_ms}").lease()))  # type: ignore[attr-defined]
        clock.at_ms += HOUR_MS  # type: ignore[attr-defined]

    assert leased == [0, 1, 0]


def test_busy_table_is_rewritten_in_quiet_hours_without_a_pause(lake: DriverNode) -> None:
    """A table that is overwritten constantly is rewritten in its quiet hours only, without waiting for a pause of its
    writers.
    """
    table = HistoryTable(lake)
    table.append(12)
    table.append(1, operation="overwrite")
    clock = set_clock(lake, FIRST_MS + 60_000)
    assess(lake)
    add_policy(lake, "small", COMPACTION, {}, on="main.a.t", kind="table")
    assert plan(lake) == 1
    before = FakeExecutor(lake).lease()
    reason = list_operations(lake)[0]["result"]
    limit(lake, quiet_hours=(parse_quiet_hours("00:00-23:59"),))
    clock.at_ms += 20 * 60_000
    table.append_at(clock.at_ms - 1_000, operation="overwrite")

    assert (before, (reason or "").partition(",")[0]) == ([], "waits until the table's writers are quiet")
    assert len(FakeExecutor(lake).lease()) == 1


@pytest.mark.parametrize("whose", ["setting", "policy"])
def test_operations_wait_when_the_byte_budget_is_used_up(
    lake: DriverNode, tables: dict[str, HistoryTable], whose: str
) -> None:
    """When the byte budget is used up, operations wait, and the status says so. A day later they are leased."""
    content: dict[str, object] = {"maxBytesPerDay": 31_000} if whose == "policy" else {}
    if whose == "setting":
        limit(lake, bytes_per_day=31_000)
    add_policy(lake, "small", WHOLE, content, on="main", kind="catalog")
    plan(lake)
    executor = FakeExecutor(lake)
    first = executor.lease()
    for each in first:
        executor.report(each["operation"])
    waits = [each for each in list_operations(lake) if each["state"] == "waiting"]
    clock = lake.built.services.store.time
    clock.at_ms += BUDGET_PAUSE_MS  # type: ignore[attr-defined]
    soon = executor.lease()
    clock.at_ms += DAY_MS  # type: ignore[attr-defined]
    later = executor.lease()

    assert (len(first), len(waits), soon, len(later)) == (2 if len(first) == 2 else 1, 3 - len(first), [], len(waits))
    assert all("waits for the budget of " + whose in each["result"] for each in waits), waits


def test_operation_larger_than_the_unused_budget_is_leased(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """An operation larger than the budget is leased if no other operation has used the budget; otherwise it would never
    run.
    """
    limit(lake, bytes_per_day=1)
    add_policy(lake, "small", WHOLE, {}, on="main.a.u", kind="table")
    plan(lake)

    assert len(FakeExecutor(lake).lease()) == 1


def test_requested_operation_counts_towards_the_budget(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """The bytes of a requested operation count towards the budget."""
    limit(lake, bytes_per_day=20_000)
    add_policy(lake, "small", WHOLE, {}, on="main.a.t", kind="table")
    plan(lake)
    ask(lake, "a.u")

    assert [each["path"][-1] for each in FakeExecutor(lake).lease()] == ["u"]
    assert "waits for the budget" in list_operations(lake)[-1]["result"]


@pytest.mark.parametrize("outcome", ["yielded", "failed"])
def test_yielded_operation_counts_towards_budget_and_share(
    lake: DriverNode, tables: dict[str, HistoryTable], outcome: str
) -> None:
    """An operation that was returned as `yielded` counts towards the budget and the owner's share, because it rewrote
    files.
    """
    add_policy(lake, "small", WHOLE, {}, on="main.a.u", kind="table")
    plan(lake)
    (leased,) = FakeExecutor(lake).lease()
    FakeExecutor(lake).report(leased["operation"], outcome)
    services = lake.built.services
    (used,) = lake.runner.run(services.gate.look_up(lambda: recent_use_read(services.store.time.now_ms())))

    assert (used.bytes, used.operations) == (30_000, 1)


def test_policies_of_one_name_in_two_metalakes_have_own_budgets(
    lake: DriverNode, tables: dict[str, HistoryTable]
) -> None:
    """Policies of the same name in two metalakes have separate budgets."""
    for method, path, body in (
        ("POST", API, {"name": "other"}),
        ("POST", f"{API}/other/catalogs", {"name": "main", "type": "relational", "provider": "lakehouse-iceberg"}),
    ):
        lake.done(method, path, body)
    services = lake.built.services
    catalog = lake.runner.run(services.gate.look_up(lambda: _catalog_of("other")))

    def rewrite(tx: Tx) -> None:
        operation = tx.maintenance.begin(
            catalog_id=catalog, node_id=catalog, kind="compact", user="eve", policy="small", bytes_=1 << 40
        )
        assert tx.rewrites.take(operation, node_id=catalog, token_id=0, holder="x", lease_ms=1)

    lake.runner.run(services.store.submit(upkeep_permit("limnos"), rewrite))
    add_policy(lake, "small", WHOLE, {"maxBytesPerDay": 31_000}, on="main.a.t", kind="table")
    plan(lake)

    assert [each["path"][-1] for each in FakeExecutor(lake).lease()] == ["t"]


def _catalog_of(metalake: str) -> Load[int]:
    rows = yield (
        Sql("SELECT c.id FROM node c JOIN node m ON m.id = c.parent_id WHERE m.name = :name"),
        {"name": metalake},
    )
    return int(rows[0][0])


def test_operations_on_a_table_in_the_trash_start_no_executor(
    lake: DriverNode, tables: dict[str, HistoryTable]
) -> None:
    """Operations on a table in the trash start no executor and do not delay another metalake."""
    add_policy(lake, "small", WHOLE, {}, on="main.a.t", kind="table")
    plan(lake)
    now_ms = lake.built.services.store.time.now_ms()
    due = [lake.runner.run(lake.built.services.gate.look_up(lambda: metalake_due(now_ms)))]
    assert lake.delete(wire.table_path("a", "t")).status == 204
    due.append(lake.runner.run(lake.built.services.gate.look_up(lambda: metalake_due(now_ms))))

    assert due == ["lake", None]


@pytest.mark.parametrize("hours", [["22:00-06:00"] * 100, ["22:00-06:00 " + "x" * 65]])
def test_policy_with_too_many_quiet_hours_is_refused(node: DriverNode, hours: list[str]) -> None:
    """A policy with too many quiet hours is refused, because each operation compares and lists them."""
    body = {"name": "p", "policyType": WHOLE, "enabled": True, "content": {"quietHours": hours}}
    answer = node.post(f"{API}/lake/policies", body)

    assert (answer.status, b"quietHours" in answer.body) == (400, True), answer.body


def test_operation_of_a_disabled_policy_is_not_leased(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """An operation of a policy that was disabled before the lease is not leased."""
    add_policy(lake, "small", COMPACTION, {}, on="main.a.t", kind="table")
    plan(lake)
    assert lake.patch(f"{API}/lake/policies/small", {"enable": False}).status == 200

    assert FakeExecutor(lake).lease() == []
    (operation,) = list_operations(lake)
    assert (operation["state"], operation["result"]) == ("cancelled", "The policy small no longer requires this")


@pytest.mark.parametrize("removal", ["disable", "detach", "replace"])
def test_operation_of_a_policy_is_not_leased_for_another_one_or_the_setting(
    lake: DriverNode, tables: dict[str, HistoryTable], removal: str
) -> None:
    """An operation that a policy planned is not carried out under the limits of the setting, nor of another policy,
    after its own no longer decides.
    """
    limit(lake, rewrite=True)
    add_policy(lake, "small", WHOLE, {"maxBytesPerDay": 1 << 40}, on="main.a.t", kind="table")
    plan(lake)
    if removal == "disable":
        add_policy(lake, "far", WHOLE, {}, on="main", kind="catalog")
        assert lake.patch(f"{API}/lake/policies/small", {"enable": False}).status == 200
    else:
        body = {"policiesToAdd": [], "policiesToRemove": ["small"]}
        assert lake.post(f"{API}/lake/objects/table/main.a.t/policies", body).status == 200
    if removal == "replace":
        add_policy(lake, "other", WHOLE, {}, on="main.a.t", kind="table")
    leased = {each["path"][-1] for each in FakeExecutor(lake).lease()}
    results = {each["table"]: each["result"] for each in list_operations(lake)}

    assert "t" not in leased
    assert results["a.t"] == "The policy small no longer requires this"


def test_operation_of_the_setting_is_not_leased_for_a_policy(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """An operation that the setting planned is not carried out under the limits of a policy that decides since."""
    limit(lake, rewrite=True)
    plan(lake)
    add_policy(lake, "small", WHOLE, {}, on="main.a.t", kind="table")
    leased = {each["path"][-1] for each in FakeExecutor(lake).lease()}
    results = {each["table"]: each["result"] for each in list_operations(lake)}

    assert leased == {"u"}
    assert results["a.t"] == "The setting maintenance.rewrite_files no longer requires this"


def test_setting_operation_is_not_leased_if_a_policy_disables_it(
    lake: DriverNode, tables: dict[str, HistoryTable]
) -> None:
    """An operation of the setting is not leased after a nearer policy has disabled its kind."""
    limit(lake, rewrite=True)
    assert plan(lake) == 3
    add_policy(lake, "no", WHOLE, {"compact": False}, on="main.a.t", kind="table")
    leased = {each["path"][-1] for each in FakeExecutor(lake).lease()}
    reasons = {each["table"]: each["result"] for each in list_operations(lake)}

    assert leased == {"u"}
    assert reasons["a.t"] == "The setting maintenance.rewrite_files no longer requires this"


@pytest.mark.parametrize(
    "content, words",
    [
        ({"quietHours": ["22-6"]}, "quietHours"),
        ({"quietHours": ["22:00-06:00 Moon/Base"]}, "time zone"),
        ({"maxBytesPerDay": 0}, "maxBytesPerDay"),
    ],
)
def test_invalid_quiet_hours_or_budgets_are_400(node: DriverNode, content: dict[str, object], words: str) -> None:
    """Invalid quiet hours or budgets of a policy are 400, and the message names the field."""
    body = {"name": "p", "policyType": WHOLE, "enabled": True, "content": content}
    answer = node.post(f"{API}/lake/policies", body)

    assert (answer.status, words in answer.body.decode()) == (400, True), answer.body


def test_waiting_operation_is_planned_only_once(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """An operation that waits for its quiet hours is planned once, however many rounds run."""
    limit(lake, quiet_hours=(parse_quiet_hours("22:00-06:00"),))
    add_policy(lake, "small", COMPACTION, {}, on="main.a.t", kind="table")
    planned = [plan(lake)]
    FakeExecutor(lake).lease()
    lake.built.services.store.time.at_ms += INTERVAL_MS  # type: ignore[attr-defined]
    planned.append(plan(lake))

    assert planned == [1, 0]


def test_wait_reason_is_hidden_from_readers(lake: DriverNode, tables: dict[str, HistoryTable]) -> None:
    """The reason of a wait is visible to users who may modify the table, not to readers."""
    limit(lake, bytes_per_day=1)
    add_policy(lake, "small", WHOLE, {}, on="main", kind="catalog")
    plan(lake)
    FakeExecutor(lake).lease()
    grant(lake, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")

    rows = lake.get("/api/limnos/v1/metalakes/lake/catalogs/main/maintenance/operations", user="reader").json()
    assert rows["operations"] == []
