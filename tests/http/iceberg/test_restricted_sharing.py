# SPDX-License-Identifier: Apache-2.0
"""Rewritten files for restricted readers: written once, shared by users with the same restrictions, counted, and
deleted when no plan needs them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.services.iceberg import policy_enforcement, restricted_reads
from limnos.services.iceberg.continued_rewrites import CONTINUED_REWRITES
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.test_plans import steer
from tests.http.iceberg.test_restricted_plans import RestrictedTable
from tests.http.iceberg.test_restriction_bypasses import InlineRewrites
from tests.http.iceberg.test_restrictions import restrict, words
from tests.iceberg_manifests import POSITIONS, data_file, entry

pytestmark = pytest.mark.slow

READ = "use_catalog use_schema select_table"


class CountingOffloader(InlineRewrites):
    """Counts the requested and the written files; each write takes some time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.written = 0
        self.under_way: set[bytes] = set()
        self.twice = 0

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Execute offloaded work."""
        if name == "restrict-file":
            self.asked += 1
            self.twice += parts[0] in self.under_way
            self.under_way.add(parts[0])
            await asyncio.sleep(0.01)
        answer = await super().do(name, *parts, caller=caller)
        self.under_way.discard(parts[0])
        if name == "restrict-file":
            self.written += int(answer[1]) > 0
        return answer


@pytest.fixture
def table(lake: DriverNode) -> RestrictedTable:
    """The table of four files, with a mask that is the same for each query."""
    restricted_table = RestrictedTable(lake)
    SCAN_OFFLOADER.put(lake.built.services, CountingOffloader())
    grant(lake, "carl", READ, kind="CATALOG", on="main")
    return restricted_table


def written(table: RestrictedTable) -> int:
    """Return the number of rewritten files so far."""
    offloader = SCAN_OFFLOADER.of(table.node.built.services)
    assert isinstance(offloader, CountingOffloader)
    return offloader.written


def list_rewritten_files(table: RestrictedTable) -> list[str]:
    """Return the rewritten files in the warehouse."""
    root = wire.local(table.location).parent / "restricted-reads"
    return sorted(str(each) for each in root.rglob("*.parquet"))


def files_of(answer: DriverAnswer) -> set[str]:
    """Return the files in an answer."""
    assert answer.status == 200, answer.body
    return {str(wire.local(each["data-file"]["file-path"])) for each in answer.json()["file-scan-tasks"]}


def local_hashes(table: RestrictedTable) -> None:
    """Mask the cards with a different salt for each query."""
    assert restrict(table.node, masks={"card": "sha-256-query-local"}).status == 200


def cancel(table: RestrictedTable, answer: DriverAnswer, *, user: str = "bob") -> None:
    """Cancel a plan."""
    assert table.node.delete(f"{table.path}/plan/{answer.json()['plan-id']}", user=user).status == 204


def test_plans_with_the_same_restrictions_share_one_rewrite(table: RestrictedTable) -> None:
    """A second plan, and a second user with the same restrictions, get the same files without another rewrite."""
    first = table.seen()
    others = [
        table.seen(),
        table.plan(user="carl"),
        table.plan(user="carl", filter={"type": "gt", "term": "id", "value": 3}),
    ]

    assert [files_of(each) for each in others] == [files_of(first)] * 3
    assert written(table) == 4
    assert list_rewritten_files(table) == sorted(files_of(first))


def test_plans_after_a_change_of_the_warehouse_use_files_in_the_new_one(table: RestrictedTable) -> None:
    """A plan shares no files with plans that wrote to another warehouse of the catalog."""
    before = files_of(table.seen())
    root = wire.local(table.location).parent
    places = {"allowed-locations": f"file://{root}", "warehouse": f"file://{root.parent}/second"}
    updates = [{"@type": "setProperty", "property": key, "value": value} for key, value in places.items()]
    table.node.done("PUT", f"{API}/lake/catalogs/main", {"updates": updates})

    after = files_of(table.seen())

    assert all(each.startswith(f"{root.parent}/second/restricted-reads/") for each in after)
    assert not before & after


def test_plans_at_the_same_time_wait_for_one_rewrite(table: RestrictedTable) -> None:
    """Ten concurrent plans cause one rewrite of each file."""

    async def ask() -> list[DriverAnswer]:
        plans = [table.node.answer("POST", f"{table.path}/plan", {}, user=user) for user in ["bob", "carl"] * 5]
        return list(await asyncio.gather(*plans))

    answers = table.node.runner.run(ask())
    offloader = SCAN_OFFLOADER.of(table.node.built.services)
    assert isinstance(offloader, CountingOffloader)

    assert len({frozenset(files_of(each)) for each in answers}) == 1
    assert (written(table), offloader.twice) == (4, 0)


def test_changed_restriction_ends_sharing(table: RestrictedTable) -> None:
    """A changed restriction ends the sharing immediately. Users never get files that were written for other
    restrictions.
    """
    before = table.seen()
    assert restrict(table.node, "carls", masks={"card": "replace-with-null"}, to={"users": ["carl"]}).status == 200
    carls = table.plan(user="carl")
    assert restrict(table.node, filter="City = 'Oslo'", masks={"card": "show-last-4"}).status == 200
    after = table.seen()

    file_sets = [files_of(each) for each in (before, carls, after)]
    assert [len(each) for each in file_sets] == [4, 4, 4]
    assert len(set.union(*file_sets)) == 12
    directories = {str(Path(file).parent) for each in file_sets for file in each}
    assert len(directories) == 3


def test_local_hashes_differ_from_query_to_query(table: RestrictedTable) -> None:
    """The hashes of each plan have their own salt and are equal within the plan. No answer contains the salt."""
    local_hashes(table)
    answers = [table.seen(), table.seen()]

    one, two = ([row["card"] for row in table.rows(each)] for each in answers)
    assert len(set(one)) == len(set(two)) == 10
    assert not set(one) & set(two)


def test_cancelled_plan_with_own_salt_deletes_its_files(table: RestrictedTable) -> None:
    """Files of a plan with its own salt are deleted when its user cancels the plan. Files of another plan stay."""
    local_hashes(table)
    retained, cancelled = table.seen(), table.seen()

    cancel(table, cancelled, user="carl")
    assert len(list_rewritten_files(table)) == 8
    cancel(table, cancelled)

    assert list_rewritten_files(table) == sorted(files_of(retained))
    cancel(table, cancelled)
    assert list_rewritten_files(table) == sorted(files_of(retained))


def test_unused_shared_files_are_deleted_after_a_grace_period(
    table: RestrictedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared directory is kept while a plan needs it, and for a grace period afterwards, in which another plan can
    use it.
    """
    time = table.node.built.services.store.time
    at = [time.now_ms()]
    monkeypatch.setattr(time, "now_ms", lambda: at[0])
    bobs, carls = table.seen(), table.plan(user="carl")
    cancel(table, bobs)
    at[0] += restricted_reads.IDLE_MS + 1
    again = table.seen()
    assert files_of(again) == files_of(carls)  # which carl still reads
    for answer, user in ((carls, "carl"), (again, "bob")):
        cancel(table, answer, user=user)
    at[0] += restricted_reads.IDLE_MS - 60_001
    joined = table.seen()
    assert files_of(joined) == files_of(bobs)
    cancel(table, joined)
    at[0] += restricted_reads.IDLE_MS + 1

    anew = table.plan(user="carl")

    assert not files_of(anew) & files_of(bobs)
    assert list_rewritten_files(table) == sorted(files_of(anew))


def test_expired_plans_free_their_files(table: RestrictedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that is not cancelled needs its files for `planning.keep_s`; the next plan after that deletes them."""
    local_hashes(table)
    time = table.node.built.services.store.time
    at = [time.now_ms()]
    monkeypatch.setattr(time, "now_ms", lambda: at[0])
    old = table.seen()
    at[0] += table.node.built.services.defaults.scan_keep_ms + 1

    new = table.seen()

    assert not files_of(new) & files_of(old)
    assert list_rewritten_files(table) == sorted(files_of(new))


@pytest.mark.parametrize("setting", ["restricted_reader_bytes", "restricted_table_bytes"])
def test_plan_beyond_a_quota_is_refused(table: RestrictedTable, setting: str) -> None:
    """A plan beyond a quota is refused with `Retry-After` and leaves no file. Cancelled plans free the quota."""
    local_hashes(table)
    first = table.seen()
    size = sum(Path(each).stat().st_size for each in list_rewritten_files(table))
    steer(table.node, **{setting: size + size // 2})

    refused = table.seen()

    assert refused.status == 503, refused.body
    assert int(refused.headers["retry-after"]) >= 1
    assert "planning.restricted_bytes_per" in words(refused)
    assert "cancel plans" in words(refused)
    assert list_rewritten_files(table) == sorted(files_of(first))
    others = table.plan(user="carl")
    assert others.status == (503 if "table" in setting else 200)
    if others.status == 200:
        cancel(table, others, user="carl")
    cancel(table, first)
    assert table.seen().status == 200


def test_number_of_plans_with_own_salt_is_limited_per_user(table: RestrictedTable) -> None:
    """A user has at most `planning.plans_max` plans with their own salt; another user has as many."""
    local_hashes(table)
    steer(table.node, scan_plans_max=2)
    statuses = [table.seen().status for _ in range(3)]

    assert statuses == [200, 200, 503]
    assert table.plan(user="carl").status == 200


def test_number_of_shared_directories_is_not_limited(table: RestrictedTable) -> None:
    """A user reads any number of restricted tables, though shared files stay for a while after their plan was
    cancelled. Plans with their own salt count alone.
    """
    steer(table.node, scan_plans_max=1)
    statuses = []
    for place in ("Rome", "Oslo", "Bonn"):
        assert restrict(table.node, filter=f"City = '{place}'").status == 200
        answer = table.seen()
        statuses.append(answer.status)
        if place == "Rome":
            cancel(table, answer)
    local_hashes(table)

    assert statuses == [200] * 3
    assert [table.seen().status for _ in range(2)] == [200, 503]


def test_failed_plan_deletes_its_files(table: RestrictedTable) -> None:
    """A failed plan with its own salt leaves no file and does not count."""
    local_hashes(table)
    missing_file = wire.local(f"{table.location}/metadata/1-1.parquet")
    data = missing_file.read_bytes()
    missing_file.unlink()
    assert table.seen().status == 503
    assert list_rewritten_files(table) == []
    missing_file.write_bytes(data)
    steer(table.node, restricted_reader_bytes=1 << 20)

    assert table.seen().status == 200


def test_rows_deleted_after_a_rewrite_are_not_returned(table: RestrictedTable) -> None:
    """Rows deleted after a rewrite are not in the files of the next plan. Files without deleted rows stay shared."""
    before = table.seen()
    path = f"{table.location}/metadata/0-0.parquet"
    at = wire.local(table.write("deletes.parquet", b""))
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    pq.write_table(pa.table({"file_path": [path], "pos": [4]}, schema=schema), at)
    of_one = {2147483546: path.encode()}
    file = data_file(
        f"{table.location}/metadata/deletes.parquet",
        content=POSITIONS,
        file_size_in_bytes=at.stat().st_size,
        lower_bounds=of_one,
        upper_bounds=of_one,
    )
    deletes = table.manifest("d.avro", [entry(file, sequence=2)], content=1)

    table.commit([*table.told, deletes], operation="delete")
    after = table.seen()

    assert len(table.rows(before)) == 20
    assert len(table.rows(after)) == 19
    assert len(files_of(after) & files_of(before)) == 3


def test_unfinished_plan_continues_on_the_server(table: RestrictedTable) -> None:
    """A plan whose files are not written within the wait is 503 with Retry-After. The server writes the rest, and the
    repeated request gets all files without another rewrite.
    """
    steer(table.node, scan_wait_s=0.0)

    async def ask() -> DriverAnswer:
        answer = await table.node.answer("POST", f"{table.path}/plan", {}, user="bob")
        continued = CONTINUED_REWRITES.of(table.node.built.services)
        await asyncio.gather(*continued.tasks())
        return answer

    unfinished = table.node.runner.run(ask())
    count = written(table)
    steer(table.node, scan_wait_s=20.0)
    complete = files_of(table.seen())

    assert (unfinished.status, unfinished.headers["retry-after"]) == (503, "30"), unfinished.body
    assert "still writing the files" in words(unfinished)
    assert (count, written(table), len(complete)) == (4, 4, 4)


def test_unfinished_plan_with_a_salt_ends_with_its_request(table: RestrictedTable) -> None:
    """A plan with hashes of its own waits for its files as long as its request, since no other plan may use them."""
    local_hashes(table)
    steer(table.node, scan_wait_s=0.0)

    assert len(files_of(table.seen())) == 4
    assert len(CONTINUED_REWRITES.of(table.node.built.services)) == 0


def test_existing_files_are_looked_up_at_once(table: RestrictedTable) -> None:
    """A second plan of many files finds them with one call, and asks for no rewrite."""
    first = files_of(table.seen())
    offloader = SCAN_OFFLOADER.of(table.node.built.services)
    assert isinstance(offloader, CountingOffloader)
    count = offloader.asked
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy_enforcement, "AT_ONCE", 1)
        second = files_of(table.seen())

    assert second == first
    assert offloader.asked == count
