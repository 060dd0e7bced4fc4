# SPDX-License-Identifier: Apache-2.0
"""Rights that are revoked, and names that change, between a request's decision and its transaction, on every writing
route.

Each write of `test_lost_database` is stopped after its decision, another request is executed, and the write continues.
The write must be refused, and the store must have only the changes of the other request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from limnos.model.declared_kinds import DECLARED
from tests.http import declared_requests
from tests.http.driver import OWN, SCHEDULE, DriverAnswer, DriverNode, grant, let_jobs, node_at
from tests.http.iceberg.wire import rows_of
from tests.http.interference import InterferencePoint, Rows, interfere
from tests.http.test_coverage import FUNCTION
from tests.http.test_lost_database import (
    FUNCTIONS,
    LAKE,
    MAIN,
    MODELS,
    OBJECTS,
    ROLES,
    SPACES,
    WRITES,
    Write,
    fill,
    furnish,
)
from tests.installed import absent_operations, has_room

CHIEFS = f"{OWN}/metalakes/lake/groups/chiefs/members"
REFUSED = (401, 403, 404)
LOOKS = (
    "use_catalog use_schema select_table select_view read_fileset consume_topic use_model execute_function"
    " use_job_template"
)
NOT_BY_OWNERSHIP = {
    **dict.fromkeys(
        (
            "create-metalake",
            "drop-metalake",
            "begin-import",
            "feed-import",
            "finish-import",
            "give-up-import",
            "export-audit",
            "set-password",
            "remove-password",
            "create-secret",
            "end-secret",
            "revoke-token",
            "rotate-storage-keys",
            "retry-task",
        ),
        "for service admins, who are named by a setting, or in another metalake",
    ),
    **dict.fromkeys(("finish-run", "resume-run", "query-service-discard"), "for whoever began it"),
    **dict.fromkeys(("create-token", "login", "create-console-code"), "for everybody, about themselves"),
    "set-catalog": "for whoever may use the catalog",
    "request-access": "for every user of the metalake",
    "withdraw-access-request": "for every user of the metalake, of the own request",
}
"""Writes that ownership of the metalake does not allow, with the users who may send them."""
WITHOUT_CREDENTIAL = {"login"}
FILES_FIRST = {f"lance-{verb}-table-{what}" for verb in ("create", "delete") for what in ("tag", "branch")} | {
    "lance-update-table-tag"
}
"""Writes that change a table's files, irreversibly, before they write to the store. After that no decision is
repeated.
"""
LEASES = ("lease-maintenance-operations", "renew-maintenance-leases", "report-maintenance-operation")
OWN_ALONE = {"beat-run", "put-step", "query-service-discard"}
"""Writes of a run's process or of a client about its own data. They need no privilege and compare no clock
(`services.runs.runners`).
"""
LEAVES = {"lance-create-table": {"task"}}
"""Tables in which a refused write may leave rows: the task that deletes the files of a killed writer."""

World = tuple[DriverNode, dict[str, str]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A node with an object for every write, shared by all tests because refused writes change nothing."""
    with node_at(tmp_path_factory.mktemp("between")) as node:
        names = furnish(node)
        make_boss(node)
        yield node, names


def make_boss(node: DriverNode) -> None:
    """Create a user who owns the metalake through a group, and may still read most objects after leaving it."""
    node.done("POST", f"{LAKE}/users", {"name": "boss"})
    grant(node, "boss", LOOKS, kind="METALAKE", on="lake")
    node.done("POST", f"{LAKE}/groups", {"name": "chiefs"})
    node.done("POST", CHIEFS, {"users": ["boss", "admin"]})
    node.done("PUT", f"{LAKE}/owners/METALAKE/lake", {"name": "chiefs", "type": "GROUP"})


def changed_since(node: DriverNode, rows: Rows) -> set[str]:
    """Return the tables of a node's store whose rows have changed."""
    return {table for table, now in rows_of(node).items() if now != rows[table]}


def carried_out(
    node: DriverNode, patch: pytest.MonkeyPatch, write: Write, *, other: Write, step: InterferencePoint, **caller: str
) -> tuple[DriverAnswer, set[str]]:
    """Stop a write at a step and execute another request there. Returns the write's answer and the changed tables."""

    async def act() -> None:
        answer = await node.answer(*other)
        assert answer.status in (200, 204), answer

    with interfere(node, patch, step=step, act=act) as interference:
        answer = node.ask(*write, **caller)
    assert interference.is_done, f"it was answered before: {answer}"
    return answer, changed_since(node, interference.rows)


ABSENT = {operation for _, operation in absent_operations()} | (set() if has_room("pipelines") else {"cancel-job"})
"""Operations of rooms that are not installed; the job that is cancelled is a run of a pipeline."""
"""The operations of rooms that are not installed."""


def cells(left_out: set[str]) -> list[object]:
    """Return every write of the installed rooms at both steps, without the exceptions; writes that change files first
    are refused only at the first step.
    """
    return [
        pytest.param(each, step, id=f"{each}-{step.value}")
        for each in WRITES
        for step in InterferencePoint
        if each not in left_out | ABSENT and not (each in FILES_FIRST and step is InterferencePoint.SUBMIT)
    ]


@pytest.mark.parametrize("operation, step", cells(set(NOT_BY_OWNERSHIP)))
def test_write_is_refused_if_its_privilege_is_lost_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str, step: InterferencePoint
) -> None:
    """If the caller leaves the group that allowed a write after the decision, it is refused, and nothing is changed."""
    node, names = world
    departure = Write("DELETE", f"{CHIEFS}/boss")

    try:
        answer, changed = carried_out(
            node, monkeypatch, fill(WRITES[operation], names), other=departure, step=step, user="boss"
        )
    finally:
        node.done("POST", CHIEFS, {"users": ["boss"]})

    assert answer.status in REFUSED, answer
    assert changed <= LEAVES.get(operation, set())


@pytest.mark.parametrize("operation, step", cells(WITHOUT_CREDENTIAL | OWN_ALONE))
def test_write_is_refused_if_its_token_is_revoked_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str, step: InterferencePoint
) -> None:
    """If the caller's token is revoked after the decision, the write is 401, and nothing is changed."""
    node, names = world
    token = node.post(f"{OWN}/tokens", {"name": "short"}).json()
    revoke = Write("DELETE", f"{OWN}/tokens/{token['id']}")

    answer, changed = carried_out(
        node,
        monkeypatch,
        fill(WRITES[operation], names),
        other=revoke,
        step=step,
        user=None,
        authorization=f"Bearer {token['token']}",
    )

    assert answer.status == 401, answer
    assert changed <= LEAVES.get(operation, set())


class Away(NamedTuple):
    """A request that renames, moves or drops the object of a write, and the requests that restore it."""

    go: Write
    back: tuple[Write, ...]


def _renamed(path: str) -> Away:
    """Return a rename by Gravitino's update, and the rename back."""
    above, _, name = path.rpartition("/")
    bodies = [{"updates": [{"@type": "rename", "newName": each}]} for each in ("away", name)]
    return Away(Write("PUT", path, bodies[0]), (Write("PUT", f"{above}/away", bodies[1]),))


def _moved(kind: str, *path: str, catalog: str = "main") -> Away:
    """Return a rename, and the rename back."""
    move, away = f"{OWN}/metalakes/lake/catalogs/{catalog}/move", [*path[:-1], "away"]
    bodies = [
        {"kind": kind, "source": source, "target": target}
        for source, target in ((list(path), away), (away, list(path)))
    ]
    return Away(Write("POST", move, bodies[0]), (Write("POST", move, bodies[1]),))


def _replaced(path: str, create: str, body: object, *more: Write) -> Away:
    """Return a drop, and the create of another object of the name."""
    return Away(Write("DELETE", path), (Write("POST", create, body), *more))


TOPICS = f"{LAKE}/catalogs/topics/schemas/a/topics"
TOPIC = f"{TOPICS}/x"
HANDS = (
    f"{LAKE}/roles",
    {"name": "hands", "properties": {}, "securableObjects": OBJECTS},
    Write("PUT", f"{LAKE}/permissions/users/ana/grant", ROLES),
    Write("PUT", f"{LAKE}/permissions/groups/staff/grant", ROLES),
)
ANA = (
    f"{LAKE}/users",
    {"name": "ana"},
    Write("PUT", f"{LAKE}/permissions/users/ana/grant", ROLES),
    Write("POST", f"{OWN}/metalakes/lake/groups/staff/members", {"users": ["ana"]}),
)
PIPELINE = f"{OWN}/metalakes/lake/pipelines/idle"
LAKE_AWAY, MAIN_AWAY = _renamed(LAKE), _renamed(MAIN)
TABLE, VIEW, SPACE, EMPTY = (
    _moved("table", "a", "t"),
    _moved("view", "a", "v"),
    _moved("namespace", "a"),
    _moved("namespace", "empty"),
)
PIPELINE_AWAY = Away(Write("DELETE", PIPELINE), (Write("PUT", PIPELINE, {"declaration": {}}),))


def _unscheduled(name: str) -> Away:
    """Return the drop of a pipeline with a schedule."""
    one = f"{OWN}/metalakes/lake/pipelines/{name}"
    return Away(
        Write("DELETE", one), (Write("PUT", one, {"declaration": {}}), Write("PUT", f"{one}/schedule", SCHEDULE))
    )


MODEL = _renamed(f"{MODELS}/churn")


def _declared() -> dict[str, tuple[Away, ...]]:
    """Return the renames of every declared kind: of the object by its own route, and of its namespace and catalog."""
    away: dict[str, tuple[Away, ...]] = {}
    for each in DECLARED:
        above, word = declared_requests.collection(each), each.kind.word
        own = Away(Write("PUT", f"{above}/x", {"name": "away"}), (Write("PUT", f"{above}/away", {"name": "x"}),))
        away |= {f"create-{word}": (SPACE, MAIN_AWAY)}
        away |= {f"{verb}-{word}": (own, SPACE, MAIN_AWAY) for verb in ("alter", "drop")}
    return away


AWAY: dict[str, tuple[Away, ...]] = {
    **_declared(),
    "create-namespace": (MAIN_AWAY,),
    "drop-namespace": (EMPTY,),
    "drop-schema": (EMPTY,),
    **dict.fromkeys(
        (
            "update-properties",
            "create-table",
            "register-table",
            "create-view",
            "register-view",
            "create-schema-view",
            "alter-schema",
            "create-schema-table",
            "register-function",
            "protect",
            "associate-tags",
            "associate-tags-old",
            "associate-policies",
            "set-owner",
            "remove-restriction",
        ),
        (SPACE, MAIN_AWAY),
    ),
    **dict.fromkeys(
        (
            "commit-table",
            "drop-table",
            "unregister-table",
            "commit-transaction",
            "alter-schema-table",
            "drop-schema-table",
            "update-statistics",
            "start-maintenance-operation",
            "change-access-preset",
            "submit-update-stats-jobs",
            "append-table-statistics",
            "drop-statistics",
            "update-partition-statistics",
            "drop-partition-statistics",
            "set-restriction",
        ),
        (TABLE, SPACE),
    ),
    **dict.fromkeys(("rename-table", "move"), (TABLE, EMPTY)),
    **dict.fromkeys(("replace-view", "drop-view", "alter-schema-view", "drop-schema-view"), (VIEW, SPACE)),
    "rename-view": (VIEW, EMPTY),
    **dict.fromkeys(
        ("alter-function", "drop-function"), (_replaced(f"{FUNCTIONS}/f", FUNCTIONS, {"name": "f", **FUNCTION}),)
    ),
    "transaction": (MAIN_AWAY,),
    "joint-transaction": (MAIN_AWAY,),
    "bulk": (MAIN_AWAY,),
    "plan-name-changes": (MAIN_AWAY,),
    "change-names": (MAIN_AWAY,),
    "confirm-name-changes": (MAIN_AWAY,),
    "undrop": (MAIN_AWAY,),
    "forget-trash": (MAIN_AWAY,),
    "unprotect": (_moved("namespace", "kept"),),
    **dict.fromkeys(("alter-catalog", "set-catalog"), (MAIN_AWAY, LAKE_AWAY)),
    **dict.fromkeys(
        (
            "alter-metalake",
            "set-metalake",
            "create-catalog",
            "create-schema",
            "add-user",
            "add-users",
            "remove-users",
            "add-group",
            "create-role",
            "create-policy",
            "create-tag",
            "create-webhook",
            "drop-webhook",
            "retry-webhook",
            "put-pipeline",
            "register-job-template",
            "run-job",
            "cancel-job",
            "take-lineage-of-metalake",
            "finish-run",
            "cancel-run",
            "resume-run",
            "query-service",
            "grant-privileges",
            "revoke-privileges",
            "override-role",
            "create-fileset",
            "create-topic",
            "register-model",
        ),
        (LAKE_AWAY,),
    ),
    **dict.fromkeys(("alter-fileset", "drop-fileset"), (_renamed(f"{LAKE}/catalogs/filesets/schemas/a/filesets/x"),)),
    **dict.fromkeys(("alter-topic", "drop-topic"), (_replaced(TOPIC, TOPICS, {"name": "x"}),)),
    **dict.fromkeys(
        ("drop-role", "grant-roles-to-user", "grant-roles-to-group"), (_replaced(f"{LAKE}/roles/hands", *HANDS),)
    ),
    "remove-user": (_replaced(f"{LAKE}/users/ana", *ANA),),
    "remove-group": (_replaced(f"{LAKE}/groups/crew", f"{LAKE}/groups", {"name": "crew"}),),
    "enable-user": (_replaced(f"{LAKE}/users/ana", *ANA),),
    "add-members": (_replaced(f"{LAKE}/groups/crew", f"{LAKE}/groups", {"name": "crew"}),),
    **dict.fromkeys(
        (
            "lance-drop-table",
            "lance-deregister-table",
            "lance-rename-table",
            "lance-batch-commit-tables",
        ),
        (_moved("table", "s", "t", catalog="lance"), _moved("namespace", "s", catalog="lance")),
    ),
    **dict.fromkeys(
        ("lance-create-table-version", "lance-batch-create-table-versions"),
        (_moved("table", "s", "kept", catalog="lance"),),
    ),
    "lance-batch-delete-table-versions": (_moved("table", "s", "two", catalog="lance"),),
    **dict.fromkeys(
        (
            "lance-drop-namespace",
            "lance-declare-table",
            "lance-create-empty-table",
            "lance-register-table",
            "lance-create-table",
        ),
        (_moved("namespace", "s", catalog="lance"),),
    ),
    **dict.fromkeys(
        (
            "alter-model",
            "delete-model",
            "link-model-version",
            "alter-model-version",
            "delete-model-version",
            "alter-model-alias",
            "delete-model-alias",
        ),
        (MODEL,),
    ),
    **dict.fromkeys(("alter-tag", "drop-tag"), (_renamed(f"{LAKE}/tags/red"),)),
    **dict.fromkeys(("alter-policy", "set-policy", "drop-policy"), (_renamed(f"{LAKE}/policies/keep"),)),
    **dict.fromkeys(("alter-job-template", "drop-job-template"), (_renamed(f"{LAKE}/jobs/templates/idle"),)),
    **dict.fromkeys(("drop-pipeline", "start-run", "put-schedule"), (PIPELINE_AWAY,)),
    "set-schedule": (_unscheduled("timed"),),
    "delete-schedule": (_unscheduled("undue"),),
}


NOT_AWAY = {
    **dict.fromkeys(
        (
            "create-metalake",
            "begin-import",
            "create-token",
            "create-console-code",
            "login",
            "create-secret",
            "set-password",
            "remove-password",
            "rotate-storage-keys",
        ),
        "about no object that has a name",
    ),
    **dict.fromkeys(
        (
            "feed-import",
            "finish-import",
            "give-up-import",
            "revoke-token",
            "end-secret",
            "retry-task",
            "query-service-discard",
            "export-audit",
            "cancel-maintenance-operation",
        ),
        "found by an id that nobody else gets",
    ),
    **dict.fromkeys(("beat-run", "put-step"), "found by the id of a run, which its metalake keeps under any name"),
    **dict.fromkeys(LEASES, "leases of whatever waits in the metalake"),
    **dict.fromkeys(
        ("take-lineage", "take-lineage-v1", "request-access", "answer-access-request", "withdraw-access-request"),
        "what it names need not be there",
    ),
    **dict.fromkeys(("drop-catalog", "drop-metalake"), "not in use, so nothing renames them"),
    **dict.fromkeys(
        ("revoke-roles-from-user", "revoke-roles-from-group", "remove-member", "lance-create-namespace"),
        "another request's end is this one's",
    ),
}
"""Writes whose object is not renamed, moved or dropped, with the reason."""


def test_every_writing_route_has_a_rename_case() -> None:
    """Each writing route is in the list of renames above, or has a reason."""
    assert set(AWAY) | set(NOT_AWAY) | FILES_FIRST == set(WRITES)
    assert not set(AWAY) & set(NOT_AWAY)


@pytest.mark.parametrize(
    "operation, number",
    [(each, number) for each, renames in AWAY.items() if each not in ABSENT for number in range(len(renames))],
)
@pytest.mark.parametrize("step", InterferencePoint, ids=lambda each: each.value)
def test_write_is_refused_if_its_object_is_renamed_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str, number: int, step: InterferencePoint
) -> None:
    """If the object is renamed after the decision, the write is refused as not found, and nothing is changed."""
    node, names = world
    away = AWAY[operation][number]
    go, back = fill(away.go, names), away.back

    try:
        answer, changed = carried_out(node, monkeypatch, fill(WRITES[operation], names), other=go, step=step)
    finally:
        for each in back:
            node.done(*each)

    assert is_refused(answer), answer
    assert changed <= LEAVES.get(operation, set())


def is_refused(answer: DriverAnswer) -> bool:
    """Return whether an answer is a refusal, or reports that nothing was dropped or done."""
    if answer.status != 200:
        return answer.status in (400, 403, 404, 409)
    body = answer.json()
    return body.get("dropped") is False or body.get("removed") is False or body.get("summary", {}).get("succeeded") == 0


METALAKE_CREATIONS = (
    "create-tag",
    "create-policy",
    "create-role",
    "create-catalog",
    "add-user",
    "add-group",
    "put-pipeline",
    "register-job-template",
    "create-webhook",
)
"""Writes that create an object directly in a metalake."""


@pytest.mark.parametrize("operation", [each for each in METALAKE_CREATIONS if each not in ABSENT])
@pytest.mark.parametrize("step", InterferencePoint, ids=lambda each: each.value)
def test_nothing_is_created_in_a_metalake_dropped_meanwhile(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, operation: str, step: InterferencePoint
) -> None:
    """If the metalake is dropped after the decision, nothing is created in it."""
    let_jobs(node)
    node.done("POST", SPACES, {"namespace": ["a"]})

    answer, changed = carried_out(
        node, monkeypatch, WRITES[operation], other=Write("DELETE", f"{LAKE}?force=true"), step=step
    )

    assert answer.status in REFUSED, answer
    assert changed == set()


PROTECTED = {
    **declared_requests.PROTECTED,
    "drop-namespace": "SCHEMA/main.empty",
    "drop-schema": "SCHEMA/main.empty",
    **dict.fromkeys(("drop-table", "drop-schema-table", "unregister-table"), "TABLE/main.a.t"),
    **dict.fromkeys(("drop-view", "drop-schema-view"), "VIEW/main.a.v"),
    **dict.fromkeys(("lance-drop-table", "lance-deregister-table", "lance-batch-commit-tables"), "TABLE/lance.s.t"),
    "lance-drop-namespace": "SCHEMA/lance.s",
    "drop-catalog": "CATALOG/side",
    "drop-fileset": "FILESET/filesets.a.x",
    "drop-topic": "TOPIC/topics.a.x",
    "delete-model": "MODEL/models.a.churn",
    "drop-function": "FUNCTION/main.a.f",
}
"""Drops, and the object that is protected before their transaction."""
NOT_PROTECTED = {
    "drop-metalake": "protection is for catalogs and the objects in them",
    **dict.fromkeys(
        ("drop-role", "drop-tag", "drop-policy", "drop-job-template", "drop-pipeline", "drop-webhook"),
        "not in a catalog",
    ),
    "delete-schedule": "of a pipeline, which stays",
    **dict.fromkeys(("drop-statistics", "drop-partition-statistics"), "of a table, which stays"),
    **dict.fromkeys(("delete-model-version", "delete-model-alias"), "of a model, which stays"),
    **{each: "of a table, which stays" for each in WRITES if each.startswith("lance-delete-table-")},
}
"""Drops of objects that cannot be protected, with the reason."""


def test_every_drop_route_has_a_protection_case() -> None:
    """Each drop is in the list of protected objects above, or has a reason."""
    drops = {each for each in WRITES if each.removeprefix("lance-").startswith(("drop-", "delete-"))}

    unlisted = sorted(drops - set(PROTECTED) - set(NOT_PROTECTED))
    assert not unlisted, f"{', '.join(unlisted)}: add what it drops to PROTECTED, or a reason to NOT_PROTECTED"
    assert not set(PROTECTED) & set(NOT_PROTECTED)


@pytest.mark.parametrize("step", InterferencePoint, ids=lambda each: each.value)
@pytest.mark.parametrize("operation", PROTECTED)
def test_drop_is_refused_if_its_object_is_protected_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str, step: InterferencePoint
) -> None:
    """If the object is protected after the decision, the drop is refused and nothing is changed."""
    node, names = world
    path = f"{OWN}/metalakes/lake/objects/{PROTECTED[operation]}/protection"

    try:
        answer, changed = carried_out(
            node, monkeypatch, fill(WRITES[operation], names), other=Write("PUT", path), step=step
        )
    finally:
        node.done("DELETE", path)

    assert answer.status in (400, 403, 409), answer
    assert b"protected" in answer.body
    assert changed == set()


@pytest.mark.parametrize("operation", sorted(FILES_FIRST))
def test_write_succeeds_if_privilege_is_lost_after_file_change(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """If the right is revoked after a table's files were changed, the request still succeeds and writes its change
    row.
    """
    names = furnish(node)
    make_boss(node)
    departure = Write("DELETE", f"{CHIEFS}/boss")

    answer, changed = carried_out(
        node, monkeypatch, fill(WRITES[operation], names), other=departure, step=InterferencePoint.SUBMIT, user="boss"
    )

    assert answer.status == 200, answer
    assert "change" in changed
