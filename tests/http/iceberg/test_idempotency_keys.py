# SPDX-License-Identifier: Apache-2.0
"""Requests with an `Idempotency-Key`, over both backends: executed once, answered again, decided again, stored for a
time.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import NamedTuple

import psycopg
import pytest

from limnos.app.task_kinds import PRUNE_OUTCOMES
from limnos.http.iceberg.protocol import CATALOG_ROUTES, KEYED
from limnos.model.uuids import new_uuid
from limnos.services.request.idempotency_replay import KEY_QUEUE
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import (
    MISSING_LIST,
    ROOT,
    SCHEMA,
    SPACES,
    commit,
    creation,
    drop_for_good,
    error_of,
    local,
    make_space,
    make_table,
    make_view,
    metadata_of,
    placed,
    point,
    replaced_by,
    set_properties,
    snapshot,
    space_path,
    table_path,
    view_body,
    view_path,
    view_version,
)

NOT_KEYED = {"report-metrics", "sign-request", "plan-scan", "load-tasks", "cancel-plan"}
"""Routes without idempotency keys, because repeating their requests does no harm: another plan starts, and a cancelled
plan stays cancelled.
"""
USER = "ana"


class Case(NamedTuple):
    """A changing request in namespace `a` with table `t`, and the privileges that it needs."""

    method: str
    target: str
    body: object = None
    rights: tuple[str, str, str] = ("create_schema", "CATALOG", "main")
    counter: tuple[str, str, object] | None = None
    """Another caller's request. If the first request were executed again after it, its answer would be different."""


RENAME = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}}
RENAME_VIEW = {"source": {"namespace": ["a"], "name": "v"}, "destination": {"namespace": ["a"], "name": "w"}}
CASES: dict[str, Case] = {
    "create-namespace": Case(method="POST", target=SPACES, body={"namespace": ["n", "m"], "properties": {"k": "v"}}),
    "drop-namespace": Case(method="DELETE", target=space_path("empty"), rights=("OWNER", "schema", "main.empty")),
    "update-properties": Case(
        method="POST",
        target=f"{space_path('empty')}/properties",
        body={"updates": {"k": "v"}, "removals": ["old", "none"]},
        rights=("OWNER", "schema", "main.empty"),
    ),
    "create-table": Case(
        method="POST",
        target=f"{space_path('a')}/tables",
        body={"name": "n", "schema": SCHEMA},
        rights=("create_table", "SCHEMA", "main.a"),
    ),
    "register-table": Case(
        method="POST",
        target=f"{space_path('a')}/register",
        body={"name": "n", "metadata-location": "LOCATION"},
        rights=("create_table", "SCHEMA", "main.a"),
    ),
    "commit-table": Case(
        method="POST",
        target=table_path("a", "t"),
        body={"updates": [set_properties(k="v")]},
        rights=("modify_table", "TABLE", "main.a.t"),
    ),
    "commit-transaction": Case(
        method="POST",
        target=f"{ROOT}/transactions/commit",
        body={"table-changes": [{"identifier": {"namespace": ["a"], "name": "t"}, "updates": [set_properties(k="v")]}]},
        rights=("modify_table", "TABLE", "main.a.t"),
    ),
    "drop-table": Case(method="DELETE", target=table_path("a", "t"), rights=("OWNER", "table", "main.a.t")),
    "unregister-table": Case(
        method="POST", target=f"{table_path('a', 't')}/unregister", rights=("OWNER", "table", "main.a.t")
    ),
    "rename-table": Case(
        method="POST", target=f"{ROOT}/tables/rename", body=RENAME, rights=("OWNER", "table", "main.a.t")
    ),
    "create-view": Case(
        method="POST",
        target=f"{space_path('a')}/views",
        body=view_body("n"),
        rights=("create_view", "SCHEMA", "main.a"),
    ),
    "register-view": Case(
        method="POST",
        target=f"{space_path('a')}/register-view",
        body={"name": "n", "metadata-location": "LOCATION"},
        rights=("create_view", "SCHEMA", "main.a"),
    ),
    "replace-view": Case(
        method="POST",
        target=view_path("a", "v"),
        body=replaced_by(view_version("select 2 as id")),
        rights=("OWNER", "view", "main.a.v"),
    ),
    "drop-view": Case(method="DELETE", target=view_path("a", "v"), rights=("OWNER", "view", "main.a.v")),
    "rename-view": Case(
        method="POST", target=f"{ROOT}/views/rename", body=RENAME_VIEW, rights=("OWNER", "view", "main.a.v")
    ),
}
WITH_FILES = ("commit-table", "commit-transaction")
OPERATIONS = sorted(CASES)


GOOD = "01890a5d-ac96-774b-bcce-b302099a8057"


def key() -> str:
    """Return a new key."""
    return new_uuid(1_900_000_000_000)


def furnish(node: DriverNode, operation: str) -> Case:
    """Create the objects of a request, for a user with the privileges for it."""
    make_table(node, "a", "t")
    make_view(node, "a", "v")
    node.done("POST", SPACES, {"namespace": ["empty"], "properties": {"old": "1"}})
    case = CASES[operation]
    what, kind, on = case.rights
    grant(node, USER, "use_catalog", kind="CATALOG", on="main")
    for space in ("a", "empty"):
        grant(node, USER, "use_schema", kind="SCHEMA", on=f"main.{space}")
    if what == "OWNER":
        node.done("PUT", f"{API}/lake/owners/{kind}/{on}", {"name": USER, "type": "USER"})
    else:
        grant(node, USER, what, kind=kind, on=on)
    if operation == "register-table":
        return case._replace(body={"name": "n", "metadata-location": left_file(node)})
    if operation == "register-view":
        location = make_view(node, "a", "gone")["metadata-location"]
        node.done(
            "PUT", f"{API}/lake/owners/view/main.a.gone", {"name": USER, "type": "USER"}
        )  # its place stays its owner's
        drop_for_good(node, view_path("a", "gone"), user=USER)
        return case._replace(body={"name": "n", "metadata-location": location})
    return case


def left_file(node: DriverNode) -> str:
    """Write a metadata file that belongs to no table."""
    metadata = metadata_of(node, "a", "t")
    place = f"{str(metadata['location']).rpartition('/')[0]}/left"
    file = local(place) / "metadata" / "00000-left.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**metadata, "location": place, "table-uuid": GOOD}))
    return f"{place}/metadata/{file.name}"


def ask(node: DriverNode, case: Case, text: str, *, user: str = USER) -> DriverAnswer:
    """Send a request with a key."""
    return node.ask(case.method, case.target, case.body, user=user, idempotency_key=text)


def clocks(node: DriverNode) -> object:
    """Return the revision of every zone."""
    return rows(node, "SELECT zone, revision FROM clock ORDER BY zone")


def rows(node: DriverNode, statement: str) -> list:
    """Return rows of the store."""
    url = node.built.services.store.url if hasattr(node.built.services.store, "url") else None
    if url is None:
        with closing(sqlite3.connect(node.built.services.store.path)) as connection, connection:
            return connection.execute(statement).fetchall()
    with psycopg.connect(url) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def files(node: DriverNode) -> set[str]:
    """Return all metadata files below the data directory."""
    return {str(path) for path in node.data.rglob("*.metadata.json")}


def count_writes(node: DriverNode) -> list[str]:
    """Record all metadata files written from now on, including those that are deleted again."""
    written: list[str] = []
    keep = node.built.services.files.write

    async def write(location: str, *args: object, **more: object) -> None:
        written.append(location)
        await keep(location, *args, **more)  # type: ignore[arg-type]

    node.built.services.files.write = write  # type: ignore[method-assign, assignment]
    return written


@pytest.mark.parametrize("operation", ["create-table", "commit-table", "commit-transaction", "create-view"])
def test_concurrent_equal_requests_are_executed_once(lake: DriverNode, operation: str) -> None:
    """Of ten concurrent equal requests on one node one is executed, the others wait, and all get the same answer."""
    case, text = furnish(lake, operation), key()
    data = json.dumps(case.body).encode()
    written = count_writes(lake)

    async def ask_at_once() -> list[DriverAnswer]:
        requests = [lake._ask(case.method, case.target, data, USER, {"idempotency_key": text}) for _ in range(10)]
        return await asyncio.gather(*requests)

    answers = lake.runner.run(ask_at_once())

    assert {(each.status, each.body) for each in answers} == {(answers[0].status, answers[0].body)}
    assert answers[0].status < 300
    assert len(written) == 1


def test_every_changing_route_supports_idempotency_keys() -> None:
    """Each changing route of a catalog supports idempotency keys and is tested here."""
    changing = {route.operation for route in CATALOG_ROUTES if route.method in ("POST", "DELETE")}

    assert changing - NOT_KEYED == set(KEYED)
    assert set(KEYED) == set(CASES)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_repeated_request_gets_the_first_answer_without_execution(lake: DriverNode, operation: str) -> None:
    """A request repeated with its key gets the first answer. No revision changes, and no file is written or deleted."""
    case, text = furnish(lake, operation), key()
    first = ask(lake, case, text)
    before = clocks(lake), files(lake)
    written = count_writes(lake)
    again = [ask(lake, case, text), ask(lake, case, text.upper())]

    assert written == []
    assert first.status in (200, 204), first.body
    assert [(each.status, each.body, each.headers.get("etag")) for each in again] == [
        (first.status, first.body, first.headers.get("etag"))
    ] * 2
    assert (clocks(lake), files(lake)) == before


@pytest.mark.parametrize("operation", OPERATIONS)
def test_repeated_request_without_the_right_hides_the_first_answer(lake: DriverNode, operation: str) -> None:
    """A repeated request is decided again: a user who lost the right is refused without the first answer. A repeated
    commit gets an unknown outcome instead of a refusal, because its client would delete the snapshot's files.
    """
    case, text = furnish(lake, operation), key()
    first = ask(lake, case, text)
    for role in lake.done("GET", f"{API}/lake/users/{USER}")["user"]["roles"]:
        lake.done("PUT", f"{API}/lake/permissions/users/{USER}/revoke", {"roleNames": [role]})
    again = ask(lake, case, text)

    assert first.status < 300
    assert again.status == (500 if operation in WITH_FILES else 403)
    assert again.headers.get("etag") is None
    if operation in WITH_FILES:
        assert error_of(again)[1] == "CommitStateUnknownException"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_different_request_under_the_same_key_is_refused(lake: DriverNode, operation: str) -> None:
    """A request that differs in one byte under the same key is refused and not executed, and the first answer stays
    known.
    """
    case, text = furnish(lake, operation), key()
    first = ask(lake, case, text)
    before = clocks(lake)
    body = b"" if case.body is None else json.dumps(case.body).encode()
    others = [
        lake.ask(case.method, case.target, body + b" ", user=USER, idempotency_key=text),
        lake.ask(case.method, f"{case.target}?&", body, user=USER, idempotency_key=text),
        lake.ask("POST", SPACES, {"namespace": ["other"]}, user=USER, idempotency_key=text),
    ]

    assert [error_of(each)[:2] for each in others[-2:]] == [(400, "IdempotencyKeyReused")] * 2
    assert error_of(others[0])[:2] == (400, "IdempotencyKeyReused")
    assert text in error_of(others[1])[2]
    assert clocks(lake) == before
    assert ask(lake, case, text).body == first.body


def test_same_key_of_another_user_is_independent(lake: DriverNode) -> None:
    """The same key of another user belongs to another request, which is decided and executed separately."""
    case, text = furnish(lake, "create-namespace"), key()
    grant(lake, "bob", "use_catalog create_schema", kind="CATALOG", on="main")
    first = ask(lake, case, text)
    same = ask(lake, case, text, user="bob")
    other = ask(lake, case._replace(body={"namespace": ["bobs"]}), key_of := key(), user="bob")
    stranger = ask(lake, case, text, user="stranger")

    assert (first.status, same.status, other.status, stranger.status) == (200, 409, 200, 403)
    assert ask(lake, case._replace(body={"namespace": ["anas"]}), key_of).status == 200
    assert ask(lake, case, text).body == first.body


def test_recreated_user_does_not_have_the_old_keys(lake: DriverNode) -> None:
    """A user who is removed and added again does not have the idempotency keys from before."""
    case, text = furnish(lake, "create-namespace"), key()
    assert ask(lake, case, text).status == 200
    for space in ("n", "n%3Am"):
        lake.done("PUT", f"{API}/lake/owners/schema/main.{space}", {"name": "admin", "type": "USER"})
    lake.done("DELETE", f"{API}/lake/users/{USER}")
    grant(lake, USER, "use_catalog create_schema", kind="CATALOG", on="main")

    assert ask(lake, case, text).status == 409


REFUSALS: dict[str, tuple[Case, Case, int]] = {
    "taken name": (
        Case(method="POST", target=f"{space_path('a')}/tables", body={"name": "t", "schema": SCHEMA}),
        Case(method="DELETE", target=table_path("a", "t")),
        409,
    ),
    "missing table": (
        Case(method="POST", target=table_path("a", "n"), body={"updates": [set_properties(k="v")]}),
        Case(method="POST", target=f"{space_path('a')}/tables", body={"name": "n", "schema": SCHEMA}),
        404,
    ),
    "missing namespace": (
        Case(method="POST", target=f"{space_path('n')}/tables", body={"name": "n", "schema": SCHEMA}),
        Case(method="POST", target=SPACES, body={"namespace": ["n"]}),
        404,
    ),
    "failed requirement": (
        Case(
            method="POST",
            target=table_path("a", "t"),
            body={"requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}], "updates": []},
        ),
        Case(method="DELETE", target=table_path("a", "t")),
        409,
    ),
    "unknown update": (
        Case(
            method="POST",
            target=table_path("a", "t"),
            body={"updates": [{"action": "set-current-schema", "schema-id": 1}]},
        ),
        Case(method="DELETE", target=table_path("a", "t")),
        400,
    ),
    "full namespace": (
        Case(method="DELETE", target=space_path("a")),
        Case(method="DELETE", target=table_path("a", "t")),
        409,
    ),
}
"""Requests that are refused, the change after which they would succeed (or be refused otherwise), and the status."""


@pytest.mark.parametrize("what", sorted(REFUSALS))
def test_refusal_about_object_state_is_repeated_under_its_key(lake: DriverNode, what: str) -> None:
    """A refusal about the state of objects is repeated under its key, even if the state has changed. Without the key
    the request is decided again.
    """
    case, change, status = REFUSALS[what]
    make_table(lake, "a", "t")
    text = key()
    first = ask(lake, case, text, user="admin")
    changed = lake.ask(change.method, change.target, change.body)
    before = clocks(lake)
    again = ask(lake, case, text, user="admin")

    assert first.status == status, first.body
    assert changed.status < 300
    assert (again.status, again.body) == (first.status, first.body)
    assert clocks(lake) == before
    assert ask(lake, case, key(), user="admin").body != first.body


def test_refusal_about_the_caller_is_not_stored(lake: DriverNode) -> None:
    """A refusal about the caller is not stored. Once the caller has the right, the request succeeds under the same
    key.
    """
    make_table(lake, "a", "t")
    case, text = CASES["commit-table"], key()
    grant(lake, USER, "use_catalog", kind="CATALOG", on="main")
    refused = ask(lake, case, text)
    stored_rows = rows(lake, "SELECT 1 FROM idempotency")
    grant(lake, USER, "use_schema modify_table", kind="CATALOG", on="main")

    assert (refused.status, stored_rows) == (403, [])
    assert ask(lake, case, text).status == 200


def test_refusal_for_a_disabled_catalog_is_not_stored(lake: DriverNode) -> None:
    """A refusal for a disabled catalog is not stored: once it is enabled, the request succeeds under the same key."""
    case, text = CASES["create-namespace"], key()
    lake.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": False})
    refused = ask(lake, case, text, user="admin")
    lake.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": True})

    assert (refused.status, ask(lake, case, text, user="admin").status) == (403, 200)


def test_malformed_request_stores_no_row(lake: DriverNode) -> None:
    """A malformed request is refused before access is decided and stores no row, so that users without rights cannot
    fill the table.
    """
    make_table(lake, "a", "t")
    case = CASES["commit-table"]._replace(body=b"{")
    statuses = [ask(lake, case, key(), user=user).status for user in ("admin", "stranger")]

    assert statuses == [400, 400]
    assert rows(lake, "SELECT 1 FROM idempotency") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0" * 36,
        GOOD[:-1],
        f"{GOOD}0",
        "3fa85f64-5717-4562-b3fc-2c963f66afa6",
        "{" + GOOD[1:],
        f"{GOOD}, {GOOD}",
    ],
)
def test_key_is_a_uuid_of_version_7(node: DriverNode, text: str) -> None:
    """A key that is no UUID of version 7 is 400, and nothing is executed."""
    answer = ask(node, CASES["create-namespace"], text, user="admin")

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")
    assert "Idempotency-Key" in error_of(answer)[2]
    assert node.done("GET", SPACES)["namespaces"] == []


def test_key_on_a_read_is_ignored(node: DriverNode) -> None:
    """A key on a request that changes nothing is ignored."""
    make_space(node, "a")

    assert node.get(SPACES, idempotency_key="x").status == 200
    assert node.ask("HEAD", space_path("a"), idempotency_key="x").status == 204


def test_repeated_commit_returns_the_current_table(lake: DriverNode) -> None:
    """A repeated commit returns the table's current state, with later commits of other clients."""
    case, text = furnish(lake, "commit-table"), key()
    ask(lake, case, text)
    lake.done("POST", table_path("a", "t"), {"updates": [set_properties(more="m")]})
    again = ask(lake, case, text).json()

    assert again["metadata"] == metadata_of(lake, "a", "t")
    assert again["metadata"]["properties"].items() >= {"k": "v", "more": "m"}.items()


@pytest.mark.parametrize("successor", [False, True])
@pytest.mark.parametrize("operation", ["create-table", "register-table", "create-namespace", "commit-table"])
def test_repeated_create_of_a_dropped_table_returns_404(lake: DriverNode, operation: str, successor: bool) -> None:
    """A repeated create of a table that was dropped since is 404, and does not return a new table of its name. A
    repeated commit is never refused.
    """
    case, text = furnish(lake, operation), key()
    ask(lake, case, text, user="admin")
    name = "t" if operation == "commit-table" else "n"
    target = space_path("n", "m") if operation == "create-namespace" else table_path("a", name)
    assert lake.ask("DELETE", target).status == 204
    if successor and operation == "create-namespace":
        make_space(lake, "n", "m")
    elif successor:
        make_table(lake, "a", name)
    again = ask(lake, case, text, user="admin")

    assert again.status == (500 if operation == "commit-table" else 404), again.body
    assert "uuid" not in again.body.decode()


def test_commit_of_a_staged_create_is_idempotent(lake: DriverNode) -> None:
    """A key makes the commit that finishes a staged create idempotent. The staged create itself stores nothing and may
    be repeated.
    """
    make_space(lake, "a")
    stage = Case(
        method="POST", target=f"{space_path('a')}/tables", body={"name": "s", "schema": SCHEMA, "stage-create": True}
    )
    staged = [ask(lake, stage, text, user="admin") for text in [key()] * 2]
    location = staged[1].json()["metadata"]["location"]
    body = {"requirements": [{"type": "assert-create"}], "updates": creation(location)}
    finish, text = Case(method="POST", target=table_path("a", "s"), body=body), key()
    first = ask(lake, finish, text, user="admin")
    before = files(lake)
    again = ask(lake, finish, text, user="admin")

    assert [each.status for each in staged] == [200, 200]
    assert (again.status, again.body) == (first.status, first.body)
    assert first.status == 200
    assert files(lake) == before
    assert ask(lake, finish, key(), user="admin").status == 409


@pytest.mark.parametrize("count", [0, 4000])
def test_repeated_commit_without_key_is_detected_by_its_snapshot(lake: DriverNode, count: int) -> None:
    """A commit whose snapshot the table already has returns the current table, although its requirements fail, for
    large and small commits. A different snapshot with the id, or one that was rolled back, is refused.
    """
    make_table(lake, "a", "t")
    summary = {"operation": "append", **{f"k{number}": "v" * 20 for number in range(count)}}
    (added,) = placed(lake, "a", "t", updates=[snapshot(1)])
    added["snapshot"]["summary"] = summary
    needs = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}]
    first = commit(lake, "a", "t", updates=[added, point(1)], requirements=needs)
    before = clocks(lake), files(lake)
    again = commit(lake, "a", "t", updates=[added, point(1)], requirements=needs)
    body = {
        "table-changes": [
            {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": needs, "updates": [added, point(1)]}
        ]
    }
    together = lake.ask("POST", f"{ROOT}/transactions/commit", body)
    other = commit(
        lake, "a", "t", updates=[snapshot(1, manifest_list=f"{MISSING_LIST}.2"), point(1)], requirements=needs
    )

    assert (again.status, again.body, together.status) == (200, first.body, 204)
    assert other.status == 409
    assert (clocks(lake), files(lake)) == before


@pytest.mark.parametrize("operation", ["commit-table", "drop-table"])
def test_deadline_while_waiting_for_same_key_returns_unknown_state(node: DriverNode, operation: str) -> None:
    """If the deadline passes while another request with the same key runs, the answer is 500 of unknown state instead
    of 503.
    """
    make_table(node, "a", "t")
    lines = KEY_QUEUE.of(node.built.services)
    node.runner.run(lines.enter(0))  # the first request, which does not end
    turn = lines.turn
    lines.turn = lambda _: turn(0)  # type: ignore[method-assign]
    node.built.application.deadlines.seconds = 0.05
    answer = ask(node, CASES[operation], key(), user="admin")

    assert error_of(answer)[:2] == (500, "CommitStateUnknownException")


@pytest.mark.parametrize("size", [1_000, 400_000])
def test_large_bodies_under_the_same_key_are_compared_completely(lake: DriverNode, size: int) -> None:
    """Large bodies are compared completely, like small ones."""
    make_table(lake, "a", "t")
    case, text = (
        Case(method="POST", target=table_path("a", "t"), body={"updates": [set_properties(k="v" * size)]}),
        key(),
    )
    first = ask(lake, case, text, user="admin")
    again = ask(lake, case, text, user="admin")
    other = ask(lake, case._replace(body={"updates": [set_properties(k="v" * (size - 1) + "w")]}), text, user="admin")

    assert (first.status, again.body) == (200, first.body)
    assert error_of(other)[1] == "IdempotencyKeyReused"


def test_purge_is_not_repeated(lake: DriverNode) -> None:
    """A drop with purge that is repeated with its key creates one task."""
    make_table(lake, "a", "t")
    case, text = Case(method="DELETE", target=f"{table_path('a', 't')}?purgeRequested=true"), key()
    statuses = [ask(lake, case, text, user="admin").status for _ in range(3)]

    assert statuses == [204] * 3
    assert rows(lake, "SELECT count(*) FROM task WHERE kind = 'purge-table'") == [(1,)]


def test_request_without_effect_counts_as_executed(lake: DriverNode) -> None:
    """A request that sets unchanged properties counts as executed: repeating it does not undo a later change by another
    user.
    """
    make_space(lake, "a", k="v")
    case, text = Case(method="POST", target=f"{space_path('a')}/properties", body={"updates": {"k": "v"}}), key()
    first = ask(lake, case, text, user="admin")
    lake.done("POST", f"{space_path('a')}/properties", {"updates": {"k": "w"}})
    again = ask(lake, case, text, user="admin")

    assert (again.status, again.body) == (first.status, first.body)
    assert lake.done("GET", space_path("a"))["properties"]["k"] == "w"


def test_expired_key_can_be_reused(lake: DriverNode) -> None:
    """After its lifetime a key can be used for another request. The pruning task deletes only expired rows."""
    case, old, young = CASES["create-namespace"], key(), key()
    ask(lake, case, old, user="admin")
    rows(lake, "UPDATE idempotency SET expires_at = 1")
    anew = ask(lake, case, old, user="admin")
    ask(lake, case._replace(body={"namespace": ["other"]}), young, user="admin")
    rows(lake, f"UPDATE idempotency SET expires_at = 1 WHERE key = '{old}'")
    lake.runner.run(lake.built.upkeep.sweep())
    while lake.runner.run(lake.built.upkeep.run_one()):
        pass

    assert anew.status == 409
    assert rows(lake, "SELECT key FROM idempotency") == [(young,)]
    assert rows(lake, f"SELECT error FROM task WHERE kind = '{PRUNE_OUTCOMES}'") == [(None,)]
