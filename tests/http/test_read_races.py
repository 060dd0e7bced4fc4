# SPDX-License-Identifier: Apache-2.0
"""Rights that are lost between a request's decision and its read of data that are not in the view.

Each read is stopped after its decision. The caller's right is revoked, another user writes, and the read continues. Its
answer must not contain what was written after the revoke.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

import pytest

from limnos.access.authentication import Credential
from limnos.services.iceberg.reports import REPORTS
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from tests.http.admin.activity.test_reports import ROUTE, SCAN
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.iceberg.wire import make_table, table_path
from tests.http.test_decision_races import CHIEFS, REFUSED, World
from tests.http.test_lost_database import HOOKS, LAKE, MODELS, RUN, STATISTICS, Write, fill, furnish
from tests.installed import absent_operations, room_part

LAKES = f"{OWN}/metalakes/lake"
MAINTENANCE = f"{LAKES}/catalogs/main/maintenance"
LANCE_MAINTENANCE = f"{LAKES}/catalogs/lance/maintenance"
VERSIONS = f"{MODELS}/churn/versions"
PROTECTION = f"{LAKES}/objects/SCHEMA/main.a/protection"
RULES = f"{LAKES}/access/rules?kind=table&path=main.a.t"
STRATEGY = Write(
    "POST",
    "/api/maintenance/table/ops/strategy-jobs",
    {"identifiers": ["main.a.t"], "strategyName": "small", "dryRun": True},
)
LINK = Write("POST", VERSIONS, {"uri": "s3://later"})


class ReadRace(NamedTuple):
    """A read, and the write of another user that its answer would contain. The read is stopped before one of its
    uncached reads, the first one by default.
    """

    read: Write
    write: Write
    stopped_at: int = 1


def _get(target: str) -> Write:
    return Write("GET", target)


RACES: dict[str, ReadRace] = {
    "list-model-versions": ReadRace(_get(VERSIONS), LINK),
    "list-model-version-infos": ReadRace(_get(f"{VERSIONS}?details=true"), LINK),
    "load-model-version": ReadRace(
        _get(f"{VERSIONS}/0"),
        Write("PUT", f"{VERSIONS}/0", {"updates": [{"@type": "updateComment", "newComment": "later"}]}),
    ),
    "load-model-version-uri": ReadRace(
        _get(f"{VERSIONS}/0/uri"),
        Write(
            "PUT", f"{VERSIONS}/0", {"updates": [{"@type": "updateUri", "uriName": "unknown", "newUri": "s3://later"}]}
        ),
    ),
    "list-reports": ReadRace(_get(f"{ROUTE}?table=a.t"), Write("POST", f"{table_path('a', 't')}/metrics", SCAN)),
    "list-webhooks": ReadRace(_get(HOOKS), Write("POST", HOOKS, {"url": "https://hooks.example.com/later"})),
    "list-statistics": ReadRace(_get(STATISTICS), Write("PUT", STATISTICS, {"updates": {"custom-later": 1}})),
    "list-partition-statistics": ReadRace(
        _get(f"{STATISTICS}/partitions?from=a"),
        Write(
            "PUT", f"{STATISTICS}/partitions", {"updates": [{"partitionName": "p", "statistics": {"custom-later": 1}}]}
        ),
    ),
    "load-protection": ReadRace(_get(PROTECTION), Write("PUT", PROTECTION, {"below": True})),
    "explain-table-maintenance": ReadRace(
        _get(f"{MAINTENANCE}/table?table=a.t"), Write("POST", f"{MAINTENANCE}/operations", {"table": "a.t"})
    ),
    "explain-table-maintenance-lance": ReadRace(
        _get(f"{LANCE_MAINTENANCE}/table?table=s.two"),
        Write("POST", f"{LANCE_MAINTENANCE}/operations", {"table": "s.two", "operation": "compact"}),
        stopped_at=4,
    ),
    "list-access-rules": ReadRace(
        _get(RULES), Write("PUT", f"{LAKE}/permissions/users/bob/grant", {"roleNames": ["hands"]}), stopped_at=2
    ),
    "submit-strategy-jobs": ReadRace(STRATEGY, Write("PATCH", f"{LAKE}/policies/small", {"enable": False})),
}
SERVER_READS: dict[str, Write] = {
    "list-service-accounts": _get(f"{OWN}/service-accounts"),
    "list-secrets": _get(f"{OWN}/users/robot/secrets"),
    "list-tasks": _get(f"{OWN}/tasks"),
    "load-task": _get(f"{OWN}/tasks/TASK"),
    "list-nodes": _get(f"{OWN}/nodes"),
    "list-imports": _get(f"{OWN}/imports"),
    "load-import": _get(f"{OWN}/imports/IMPORT"),
    "list-storage-keys": _get(f"{OWN}/storage/keys"),
    "sqlpp-requests": _get("/admin/requests/running"),
}
"""Reads of service admins, who lose their right with their token."""
ABSENT = {operation for _, operation in absent_operations()}


@contextmanager
def stopped_at_rows(
    node: DriverNode, patch: pytest.MonkeyPatch, *, number: int = 1, act: Callable[[], Awaitable[None]]
) -> Iterator[list[int]]:
    """Stop the next request before an uncached read, counted from 1, execute `act` there once, and continue. Yields the
    uncached reads up to there, as a list.
    """
    node.settle()
    gate, reads = type(node.built.services.gate), list[int]()

    def behind(name: str) -> Callable[..., Awaitable[object]]:
        real = getattr(gate, name)

        async def stop_first(*args: object, **named: object) -> object:
            if len(reads) < number:
                reads.append(len(reads))
                if len(reads) == number:
                    await act()
            return await real(*args, **named)

        return stop_first

    with patch.context() as patches:
        for name in ("look_up", "find"):
            patches.setattr(gate, name, behind(name))
        yield reads


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A node with an object for every read; user `boss` owns the metalake through a group, and has no other right."""
    with node_at(tmp_path_factory.mktemp("reads")) as node:
        names = furnish(node)
        node.done("POST", f"{LAKE}/users", {"name": "boss"})
        node.done("POST", f"{LAKE}/groups", {"name": "chiefs"})
        node.done("POST", CHIEFS, {"users": ["boss", "admin"]})
        node.done("PUT", f"{LAKE}/owners/METALAKE/lake", {"name": "chiefs", "type": "GROUP"})
        policy = {"policyType": "system_iceberg_compaction", "content": {}, "enabled": True}
        node.done("POST", f"{LAKE}/policies", {"name": "small", **policy})
        node.done("POST", f"{LAKE}/objects/TABLE/main.a.t/policies", {"policiesToAdd": ["small"]})
        yield node, names


async def answer_ok(node: DriverNode, write: Write) -> None:
    """Send a request as `admin`, which must succeed, and write the queued reports of clients."""
    answer = await node.answer(*write)
    assert answer.status in (200, 204), answer
    await REPORTS.of(node.built.services).flush()


@pytest.mark.parametrize("operation", [each for each in RACES if each.removesuffix("-lance") not in ABSENT])
def test_read_is_refused_if_its_privilege_is_lost_before_the_rows_are_read(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """If the caller leaves the group that allowed a read, and another user writes then, the read is refused."""
    node, race = world[0], RACES[operation]
    before = node.ask(*race.read, user="boss")

    async def act() -> None:
        await answer_ok(node, Write("DELETE", f"{CHIEFS}/boss"))
        await answer_ok(node, race.write)

    try:
        with stopped_at_rows(node, monkeypatch, number=race.stopped_at, act=act) as reads:
            answer = node.ask(*race.read, user="boss")
    finally:
        node.done("POST", CHIEFS, {"users": ["boss"]})

    assert len(reads) == race.stopped_at, "it was answered before"
    assert before.status == 200, before
    assert node.ask(*race.read, user="boss").body != before.body
    assert answer.status in REFUSED, answer


@pytest.mark.parametrize("operation", [each for each in SERVER_READS if each not in ABSENT])
def test_server_read_is_refused_if_its_token_is_revoked_before_the_rows_are_read(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """If a service admin's token is revoked before the rows are read, the answer is 401."""
    node, names = world
    read = fill(SERVER_READS[operation], names)
    token = node.post(f"{OWN}/tokens", {"name": "short"}).json()
    bearer = {"authorization": f"Bearer {token['token']}"}
    before = node.ask(*read, user=None, **bearer)

    async def act() -> None:
        await answer_ok(node, Write("DELETE", f"{OWN}/tokens/{token['id']}"))

    with stopped_at_rows(node, monkeypatch, act=act) as reads:
        answer = node.ask(*read, user=None, **bearer)

    assert len(reads) == 1, "it was answered before"
    assert before.status == 200, before
    assert answer.status == 401, answer


def _waiting_operation(node: DriverNode) -> int:
    """Create a table with an operation that waits for an executor; user `ana` may use the catalog, and owns the
    metalake through a group.
    """
    make_table(node, "a", "t")
    grant(node, "ana", "use_catalog", kind="CATALOG", on="main")
    node.done("POST", f"{LAKE}/groups", {"name": "chiefs"})
    node.done("POST", CHIEFS, {"users": ["ana", "admin"]})
    node.done("PUT", f"{LAKE}/owners/METALAKE/lake", {"name": "chiefs", "type": "GROUP"})
    body = {"table": "a.t", "operation": "manifests"}
    return int(node.done("POST", f"{MAINTENANCE}/operations", body)["operation"])


@pytest.mark.room("maintenance")
@pytest.mark.parametrize("stopped_at", [3, 5])
def test_operations_and_queue_are_listed_with_the_rights_at_the_end(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, stopped_at: int
) -> None:
    """If the caller loses a table while its operations are read, the answer has neither the reason for which one waits
    after that, nor the number of those that wait.
    """
    _waiting_operation(node)
    before = node.get(f"{MAINTENANCE}/operations", user="ana")

    async def act() -> None:
        await answer_ok(node, Write("DELETE", f"{CHIEFS}/ana"))
        await answer_ok(node, Write("POST", f"{LAKES}/maintenance/leases", {"holder": "x"}))

    with stopped_at_rows(node, monkeypatch, number=stopped_at, act=act) as reads:
        answer = node.get(f"{MAINTENANCE}/operations", user="ana")

    assert len(reads) == stopped_at, "it was answered before"
    assert before["waiting_for_executor"] == 1
    assert answer["waiting_for_executor"] == 0
    assert "waits for operation" not in str(answer["operations"])


@pytest.mark.room("maintenance")
def test_state_of_an_operation_needs_the_right_to_maintain_its_table(node: DriverNode) -> None:
    """The state of an operation is empty for a caller who may not maintain its table."""
    operation = _waiting_operation(node)
    node.delete(f"{CHIEFS}/ana")

    def state(user: str) -> str:
        ctx = Context(node.built.services, Credential(user=user), "r")
        return node.runner.run(
            room_part("limnos.rooms.maintenance.services.reports:operation_state")(
                ctx, RequestScope("lake", "main"), operation=operation
            )
        )

    assert state("admin") == "waits for an executor"
    assert state("ana") == ""


@pytest.mark.room("search")
def test_search_by_a_tag_needs_the_right_on_the_tag_at_the_end(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the caller loses the right on the tag of a search, the objects that get the tag after that are not found by
    it.
    """
    make_table(node, "a", "t")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    node.done("POST", f"{LAKE}/tags", {"name": "red"})
    role = grant(node, "ana", "apply_tag", kind="METALAKE", on="lake")

    async def act() -> None:
        await answer_ok(node, Write("PUT", f"{LAKE}/permissions/users/ana/revoke", {"roleNames": [role]}))
        await answer_ok(node, Write("POST", f"{LAKE}/objects/TABLE/main.a.t/tags", {"tagsToAdd": ["red"]}))

    with stopped_at_rows(node, monkeypatch, act=act):
        answer = node.get(f"{LAKES}/search?q=tag:red", user="ana")

    assert node.get(f"{LAKES}/search?q=tag:red")["hits"]
    assert answer["hits"] == []


@pytest.mark.room("jobs")
@pytest.mark.parametrize(
    "target, stopped_at",
    [(f"{LAKE}/jobs/runs", 2), (f"{LAKE}/jobs/runs?jobTemplateName=program", 1), (f"{LAKES}/runs", 1)],
    ids=["jobs", "jobs-of-template", "runs"],
)
def test_jobs_and_runs_are_listed_with_the_rights_at_the_end(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, target: str, stopped_at: int
) -> None:
    """If the caller ceases to own the metalake before its jobs or runs are read, those of other users are not listed,
    neither earlier ones nor one that was started after that.
    """
    furnish(node)
    node.done("POST", f"{LAKE}/groups", {"name": "chiefs"})
    node.done("POST", CHIEFS, {"users": ["ana", "admin"]})
    node.done("PUT", f"{LAKE}/owners/METALAKE/lake", {"name": "chiefs", "type": "GROUP"})
    grant(node, "ana", "use_job_template", kind="METALAKE", on="lake")
    start = Write("POST", f"{LAKE}/jobs/runs", {"jobTemplateName": "program"})
    job = node.done(*start)["job"]["jobId"]
    hidden = str(UUID(int=2)) if target == f"{LAKES}/runs" else job
    before = node.get(target, user="ana").body.decode()

    async def act() -> None:
        await answer_ok(node, Write("DELETE", f"{CHIEFS}/ana"))
        await answer_ok(node, start)

    with stopped_at_rows(node, monkeypatch, number=stopped_at, act=act) as reads:
        answer = node.get(target, user="ana").body.decode()

    assert len(reads) == stopped_at, "it was answered before"
    assert hidden in before
    assert hidden not in answer
    assert "program" not in answer


async def replace_metalake(node: DriverNode, *, owner: str) -> None:
    """Let the owner of metalake `lake` rename it and give it to `admin`, and let `admin` create another one of that
    name for user `ana`.
    """
    rename = {"updates": [{"@type": "rename", "newName": "former"}]}
    for user, write in (
        (owner, Write("PUT", LAKE, rename)),
        (owner, Write("PUT", f"{API}/former/owners/METALAKE/former", {"name": "admin", "type": "USER"})),
        ("admin", Write("POST", API, {"name": "lake"})),
        ("admin", Write("POST", f"{LAKE}/users", {"name": "ana"})),
        ("admin", Write("PUT", f"{LAKE}/owners/METALAKE/lake", {"name": "ana", "type": "USER"})),
    ):
        answer = await node.answer(*write, user=user)
        assert answer.status == 200, answer


@pytest.mark.room("jobs")
@pytest.mark.parametrize(
    "target, stopped_at",
    [
        (RUN, 1),
        (f"{LAKES}/runs", 1),
        pytest.param(f"{LAKE}/jobs/runs/{UUID(int=2)}", 2, marks=pytest.mark.room("pipelines")),
        (f"{LAKE}/jobs/runs", 1),
        (f"{LAKE}/jobs/runs/JOB", 1),
        (f"{LAKES}/jobs/JOB", 1),
    ],
    ids=["run", "runs", "run-as-job", "jobs", "job", "job-output"],
)
def test_runs_of_a_renamed_metalake_are_hidden_from_the_owner_of_a_new_one(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, target: str, stopped_at: int
) -> None:
    """If a metalake is renamed and gets another owner, and the former owner creates another one under its old name, a
    request of the former owner that found the id of the old one does not get its runs and jobs.
    """
    furnish(node)
    job = node.done("POST", f"{LAKE}/jobs/runs", {"jobTemplateName": "program"})["job"]["jobId"]
    node.done("PUT", f"{LAKE}/owners/METALAKE/lake", {"name": "ana", "type": "USER"})

    async def act() -> None:
        await replace_metalake(node, owner="ana")

    before = node.get(target.replace("JOB", job), user="ana")
    with stopped_at_rows(node, monkeypatch, number=stopped_at, act=act) as reads:
        answer = node.get(target.replace("JOB", job), user="ana")

    assert len(reads) == stopped_at, "it was answered before"
    assert before.status == 200, before
    is_hidden = [each not in answer.body.decode() for each in (str(UUID(int=2)), job)]
    assert answer.status == 404 or (answer.status == 200 and all(is_hidden)), answer


def test_changes_of_a_renamed_metalake_are_hidden_from_the_owner_of_a_new_one(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a metalake is renamed and another one gets its name, a request of the new one's owner that found the id of the
    old one gets the changes of the new one.
    """
    furnish(node)

    async def act() -> None:
        await replace_metalake(node, owner="admin")

    with stopped_at_rows(node, monkeypatch, act=act) as reads:
        answer = node.get(f"{LAKES}/changes", user="ana")

    assert len(reads) == 1, "it was answered before"
    assert answer.status == 200, answer
    assert str(UUID(int=2)) not in answer.body.decode()
    assert answer.json()["changes"] == node.get(f"{LAKES}/changes", user="ana").json()["changes"]
