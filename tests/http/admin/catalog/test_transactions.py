# SPDX-License-Identifier: Apache-2.0
"""POST transactions: moves, drops, creates and commits of one catalog in one request, decided in order."""

from __future__ import annotations

import pytest

from limnos.store.objects import nodes as store_nodes
from tests.http.driver import OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import (
    SCHEMA,
    creation,
    files_of,
    make_space,
    make_table,
    make_view,
    metadata_of,
    nothing_done,
    replaced_by,
    set_properties,
    space_path,
    table_path,
    view_body,
    view_path,
    view_version,
)

PATH = f"{OWN}/metalakes/lake/catalogs/main/transactions"
Operation = dict[str, object]


def together(node: DriverNode, *operations: Operation, user: str = "admin") -> DriverAnswer:
    """Send operations."""
    return node.ask("POST", PATH, {"operations": list(operations)}, user=user)


def message(answer: DriverAnswer) -> tuple[int, str, str]:
    """Return status, code and message of a refusal."""
    error = answer.json()["error"]
    return answer.status, error["code"], error["message"]


def is_there(node: DriverNode, *levels: str) -> bool:
    """Return whether a table exists."""
    return node.ask("HEAD", table_path(*levels)).status == 204


@pytest.fixture
def lake(node: DriverNode) -> DriverNode:
    """Two namespaces, and two tables in the first."""
    for name in ("t", "u"):
        make_table(node, "a", name)
    make_space(node, "b")
    return node


def test_operations_of_each_kind_share_one_revision(lake: DriverNode) -> None:
    """Creates, moves, commits and drops of namespaces and tables in one transaction get one revision."""
    answer = together(
        lake,
        {"do": "create-namespace", "path": ["c"], "comment": "new"},
        {"do": "create-namespace", "path": ["c", "d"]},
        {"do": "create-table", "path": ["c", "d", "n"], "schema": SCHEMA},
        {"do": "commit-table", "path": ["c", "d", "n"], "updates": [set_properties(mark="n")]},
        {"do": "move-table", "source": ["a", "t"], "target": ["c", "t"]},
        {"do": "commit-table", "path": ["c", "t"], "updates": [set_properties(mark="t")]},
        {"do": "drop-table", "path": ["a", "u"]},
        {"do": "drop-namespace", "path": ["a"]},
        {"do": "move-namespace", "source": ["c"], "target": ["a"]},
    )

    assert answer.status == 200, answer.body
    transaction = answer.json()
    assert [each["path"][1:] for each in transaction["operations"]][4:] == [
        ["c", "t"],
        ["c", "t"],
        ["a", "u"],
        ["a"],
        ["a"],
    ]
    assert metadata_of(lake, "a", "d", "n")["properties"]["mark"] == "n"
    loaded = lake.get(table_path("a", "t")).json()
    assert loaded["metadata"]["properties"]["mark"] == "t"
    assert transaction["operations"][5]["metadata_location"] == loaded["metadata-location"]
    assert transaction["operations"][5]["uuid"] == loaded["metadata"]["table-uuid"]
    assert not is_there(lake, "a", "u")
    assert lake.ask("HEAD", space_path("c")).status == 404
    again = together(lake, {"do": "create-namespace", "path": ["z"]})
    assert again.json()["revision"] == transaction["revision"] + 1


def test_views_and_their_tables_change_in_one_transaction(lake: DriverNode) -> None:
    """A transaction creates, moves, replaces and drops views together with the tables that they read."""
    for name in ("old", "moved", "gone"):
        make_view(lake, "a", name)
    version = view_version("select 2 as id")
    body = view_body("new", view_version("select * from a.t"))

    answer = together(
        lake,
        {"do": "commit-table", "path": ["a", "t"], "updates": [set_properties(mark="1")]},
        {"do": "create-namespace", "path": ["c"]},
        {"do": "create-view", "path": ["c", "new"], "schema": body["schema"], "view_version": body["view-version"]},
        {"do": "commit-view", "path": ["a", "old"], **replaced_by(version)},
        {"do": "move-view", "source": ["a", "moved"], "target": ["c", "moved"]},
        {"do": "drop-view", "path": ["a", "gone"]},
        {"do": "create-table", "path": ["a", "gone"], "schema": SCHEMA},
    )

    assert answer.status == 200, answer.body
    view = lake.get(view_path("c", "new")).json()
    assert view["metadata"]["view-uuid"] == answer.json()["operations"][2]["uuid"]
    assert (
        lake.get(view_path("a", "old")).json()["metadata"]["versions"][-1]["representations"][0]["sql"]
        == "select 2 as id"
    )
    assert lake.get(view_path("c", "moved")).status == 200
    assert lake.get(view_path("a", "moved")).status == 404
    assert is_there(lake, "a", "gone")


@pytest.mark.parametrize(
    "last, expected",
    [
        ({"do": "create-view", "path": ["a", "t"]}, (409, "already-exists", "a.t")),
        ({"do": "create-view", "path": ["v"]}, (400, "bad-request", "must be in a namespace")),
        ({"do": "commit-view", "path": ["a", "t"]}, (404, "not-found", "a.t")),
        ({"do": "commit-view", "path": ["a", "w"], "updates": [{"action": "fly"}]}, (400, "bad-request", "View a.w: ")),
        (
            {
                "do": "commit-view",
                "path": ["a", "w"],
                "requirements": [{"type": "assert-view-uuid", "uuid": "00000000-0000-7000-8000-000000000000"}],
            },
            (409, "commit-conflict", "view a.w"),
        ),
        ({"do": "commit-view", "path": ["a", "v"]}, (400, "bad-request", "An earlier operation")),
        ({"do": "drop-view", "path": ["a", "v"]}, (400, "bad-request", "creates or changes a.v")),
        ({"do": "drop-view", "path": ["a", "t"]}, (404, "not-found", "a.t")),
        ({"do": "move-view", "source": ["a", "w"], "target": ["a", "u"]}, (409, "already-exists", "a.u")),
        ({"do": "drop-table", "path": ["a", "w"]}, (404, "not-found", "a.w")),
    ],
    ids=lambda value: str(value)[:50],
)
def test_refused_view_operation_rolls_back_all(
    lake: DriverNode, last: Operation, expected: tuple[int, str, str]
) -> None:
    """A refused view operation rolls back all earlier operations and deletes their files."""
    for name in ("v", "w"):
        make_view(lake, "a", name)
    if last["do"] == "create-view":
        last = last | {"schema": SCHEMA, "view_version": view_version()}

    with nothing_done(lake):
        answer = together(
            lake,
            {"do": "commit-table", "path": ["a", "t"], "updates": [set_properties(mark="1")]},
            {"do": "commit-view", "path": ["a", "v"], **replaced_by(view_version("select 2 as id"))},
            last,
        )

    status, code, words = message(answer)
    assert (status, code) == expected[:2], words
    assert expected[2] in words


def test_swap_of_two_tables(lake: DriverNode) -> None:
    """Two tables exchange their names through a third name."""
    uuids = [metadata_of(lake, "a", name)["table-uuid"] for name in ("t", "u")]

    answer = together(
        lake,
        {"do": "move-table", "source": ["a", "t"], "target": ["a", "x"]},
        {"do": "move-table", "source": ["a", "u"], "target": ["a", "t"]},
        {"do": "move-table", "source": ["a", "x"], "target": ["a", "u"]},
    )

    assert answer.status == 200
    assert [metadata_of(lake, "a", name)["table-uuid"] for name in ("u", "t")] == uuids


@pytest.mark.parametrize(
    "last, expected",
    [
        ({"do": "drop-table", "path": ["a", "none"]}, (404, "not-found", "Table does not exist: a.none")),
        ({"do": "drop-table", "path": ["a", "t"]}, (404, "not-found", "Table does not exist: a.t")),
        ({"do": "drop-namespace", "path": ["a"]}, (409, "not-empty", "Namespace a is not empty: drop its table")),
        ({"do": "create-namespace", "path": ["b"]}, (409, "already-exists", "Namespace already exists: b")),
        ({"do": "create-namespace", "path": ["none", "x"]}, (404, "not-found", "Namespace does not exist: none")),
        ({"do": "move-namespace", "source": ["a"], "target": ["b"]}, (409, "already-exists", "already exists: b")),
        ({"do": "move-namespace", "source": ["a"], "target": ["a", "c"]}, (400, "bad-request", "into itself")),
        ({"do": "create-table", "path": ["a", "u"], "schema": SCHEMA}, (409, "already-exists", "already exists: a.u")),
        ({"do": "create-table", "path": ["v"], "schema": SCHEMA}, (400, "bad-request", "must be in a namespace")),
        ({"do": "drop-table", "path": ["b", "t"]}, (404, "not-found", "Table does not exist: b.t")),
        ({"do": "drop-table", "path": ["a", "new"]}, (400, "bad-request", "creates or changes a.new")),
        ({"do": "drop-table", "path": ["a", "u"]}, (400, "bad-request", "creates or changes a.u")),
        (
            {"do": "commit-table", "path": ["a", "u"], "requirements": [{"type": "assert-create"}]},
            (409, "commit-conflict", "Requirement failed: table a.u: table already exists"),
        ),
        (
            {"do": "commit-table", "path": ["a", "u"], "updates": [{"action": "fly"}]},
            (400, "bad-request", "Table a.u: "),
        ),
        ({"do": "fly", "path": ["a"]}, (400, "bad-request", "fly")),
    ],
    ids=lambda value: str(value)[:50],
)
def test_refused_last_operation_rolls_back_earlier_ones(
    lake: DriverNode, last: Operation, expected: tuple[int, str, str]
) -> None:
    """For every reason of refusal of the last operation, the earlier ones are rolled back and no file is left."""
    with nothing_done(lake):
        answer = together(
            lake,
            {"do": "move-table", "source": ["a", "t"], "target": ["a", "x"]},
            {"do": "create-table", "path": ["a", "new"], "schema": SCHEMA},
            {"do": "commit-table", "path": ["a", "u"], "updates": [set_properties(mark="1")]},
            last,
        )

    status, code, words = message(answer)
    assert (status, code) == expected[:2]
    assert expected[2] in words


def test_failed_requirement_changes_no_table(lake: DriverNode) -> None:
    """Requirements on UUID, snapshot and absence apply to each table; if one of them fails, no table of the transaction
    changes.
    """
    uuid = metadata_of(lake, "a", "t")["table-uuid"]
    asserts = [
        {"type": "assert-table-uuid", "uuid": uuid},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    ]
    location = f"file://{lake.data}/warehouse/main/made"
    new = {
        "do": "commit-table",
        "path": ["a", "new"],
        "requirements": [{"type": "assert-create"}],
        "updates": creation(location),
    }
    old = {"do": "commit-table", "path": ["a", "t"], "requirements": asserts, "updates": [set_properties(mark="1")]}
    assert together(lake, old, new).status == 200

    with nothing_done(lake):
        answer = together(lake, old, new)

    assert message(answer)[:2] == (409, "commit-conflict")


def test_purge_task_is_created_in_the_same_transaction(lake: DriverNode) -> None:
    """A drop with purge creates its task in the same transaction; a refused one creates none."""
    refused = together(
        lake, {"do": "drop-table", "path": ["a", "t"], "purge": True}, {"do": "drop-table", "path": ["a", "none"]}
    )
    tasks = lake.get(f"{OWN}/tasks?state=waiting").json()["tasks"]
    assert (refused.status, tasks) == (404, [])

    assert together(lake, {"do": "drop-table", "path": ["a", "t"], "purge": True}).status == 200

    assert not is_there(lake, "a", "t")
    assert [each["kind"] for each in lake.get(f"{OWN}/tasks?state=waiting").json()["tasks"]] == ["purge-table"]


def test_each_operation_needs_its_own_right(lake: DriverNode) -> None:
    """A user who may commit but not drop is refused a transaction of both. The creator of an object may change it in
    the same transaction.
    """
    grant(lake, "bob", "use_catalog use_schema modify_table create_schema create_table", kind="CATALOG", on="main")
    commit = {"do": "commit-table", "path": ["a", "t"], "updates": [set_properties(mark="b")]}

    with nothing_done(lake):
        refused = together(lake, commit, {"do": "drop-table", "path": ["a", "u"]}, user="bob")
        stolen = together(lake, commit, {"do": "move-table", "source": ["a", "u"], "target": ["b", "u"]}, user="bob")

    assert message(refused)[:2] == (403, "forbidden")
    assert "a.u" in message(refused)[2]
    assert stolen.status == 403
    answer = together(
        lake,
        commit,
        {"do": "create-namespace", "path": ["own"]},
        {"do": "create-table", "path": ["own", "n"], "schema": SCHEMA},
        {"do": "move-table", "source": ["own", "n"], "target": ["own", "m"]},
        {"do": "move-namespace", "source": ["own"], "target": ["mine"]},
        user="bob",
    )
    assert answer.status == 200, answer.body
    assert is_there(lake, "mine", "m")


def test_namespace_right_does_not_cover_a_table_moved_out(lake: DriverNode) -> None:
    """A right on a namespace does not apply to a table that an earlier operation has moved out of it."""
    grant(lake, "bob", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "bob", "use_schema modify_table create_table", kind="SCHEMA", on="main.a")
    grant(lake, "bob", "use_schema create_table", kind="SCHEMA", on="main.b")
    lake.done("PUT", "/api/metalakes/lake/owners/TABLE/main.a.t", {"name": "bob", "type": "USER"})
    make_space(lake, "c")
    commit = [set_properties(mark="b")]

    with nothing_done(lake):
        closed = together(
            lake,
            {"do": "move-table", "source": ["a", "u"], "target": ["a", "v"]},
            {"do": "move-table", "source": ["a", "t"], "target": ["c", "t"]},
            user="bob",
        )
    moved = together(
        lake,
        {"do": "move-table", "source": ["a", "t"], "target": ["b", "t"]},
        {"do": "commit-table", "path": ["b", "t"], "updates": commit},
        user="bob",
    )

    assert closed.status == 403
    assert moved.status == 200  # its owner
    lake.done("PUT", "/api/metalakes/lake/owners/TABLE/main.b.t", {"name": "admin", "type": "USER"})
    with nothing_done(lake):
        refused = together(lake, {"do": "commit-table", "path": ["b", "t"], "updates": commit}, user="bob")
    assert refused.status == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"operations": []},
        {"operations": [{"do": "drop-table"}]},
        {"operations": [{"path": ["a"]}]},
        {"operations": [{"do": "drop-table", "path": ["a", "t"], "more": 1}]},
        {"operations": [{"do": "drop-table", "path": ["a", "t"]}] * 1001},
    ],
    ids=str,
)
def test_malformed_body_is_400_and_changes_nothing(lake: DriverNode, body: object) -> None:
    """A malformed body is 400, and nothing is changed."""
    with nothing_done(lake):
        answer = lake.ask("POST", PATH, body)

    assert answer.status == 400


def test_location_outside_the_roots_deletes_all_new_files(lake: DriverNode) -> None:
    """A location outside of the catalog's roots refuses the transaction, and the files of its other tables are
    deleted.
    """
    files = files_of(lake)

    answer = together(
        lake,
        {"do": "commit-table", "path": ["a", "t"], "updates": [set_properties(mark="1")]},
        {"do": "create-table", "path": ["a", "n"], "schema": SCHEMA, "location": "file:///etc/x"},
    )

    assert message(answer)[:2] == (400, "outside-roots")
    assert files_of(lake) == files


KEY = "01890a5d-ac96-774b-bcce-b302099a8057"


def test_repeated_idempotency_key_executes_once(lake: DriverNode) -> None:
    """A request repeated with its idempotency key is executed once and gets the first answer. Another request with the
    key is refused.
    """
    operations = [
        {"do": "create-table", "path": ["b", "n"], "schema": SCHEMA},
        {"do": "commit-table", "path": ["a", "t"], "updates": [set_properties(mark="t")]},
        {"do": "drop-table", "path": ["a", "u"]},
    ]
    first = lake.ask("POST", PATH, {"operations": operations}, idempotency_key=KEY)
    lake.done("POST", table_path("a", "t"), {"updates": [set_properties(more="m")]})
    with nothing_done(lake):
        again = lake.ask("POST", PATH, {"operations": operations}, idempotency_key=KEY)
        other = lake.ask("POST", PATH, {"operations": operations[:1]}, idempotency_key=KEY)

    assert first.status == 200, first.body
    assert (again.status, again.body) == (200, first.body)
    assert message(other)[:2] == (400, "idempotency-key-reused")


def test_refusal_under_an_idempotency_key_is_repeated(lake: DriverNode) -> None:
    """A refusal under a key is repeated with its original request id; the same request without the key is decided
    again.
    """
    operation = {"do": "create-table", "path": ["a", "u"], "schema": SCHEMA}
    first = lake.ask("POST", PATH, {"operations": [operation]}, idempotency_key=KEY)
    lake.ask("DELETE", table_path("a", "u"))
    again = lake.ask("POST", PATH, {"operations": [operation]}, idempotency_key=KEY)

    assert first.status == 409
    assert (again.status, again.body) == (409, first.body)
    assert together(lake, operation).status == 200


def test_drop_of_a_protected_object_refuses_the_transaction(lake: DriverNode) -> None:
    """A transaction that drops a protected object is refused as a whole."""
    lake.done("PUT", f"{OWN}/metalakes/lake/objects/table/main.a.u/protection", {})

    with nothing_done(lake):
        answer = together(
            lake,
            {"do": "move-table", "source": ["a", "t"], "target": ["b", "t"]},
            {"do": "drop-table", "path": ["a", "u"]},
        )

    assert message(answer)[0] == 409
    assert is_there(lake, "a", "u")


def test_moved_objects_are_limited_per_transaction(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects of all namespaces moved down in one transaction are counted together, even if one is moved
    repeatedly.
    """
    monkeypatch.setattr(store_nodes, "BELOW_MAX", 5)
    for name in ("n", "m"):
        make_space(node, name)
    for number in range(3):
        make_space(node, "n", f"k{number}")
    down = {"do": "move-namespace", "source": ["n"], "target": ["m", "n"]}
    up = {"do": "move-namespace", "source": ["m", "n"], "target": ["n"]}

    few = node.post(PATH, {"operations": [down, up, down, up]})
    many = node.post(PATH, {"operations": [down, up] * 3})

    assert few.status == 200
    assert many.status == 400
    assert "another transaction" in many.body.decode()
