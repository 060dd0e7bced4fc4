# SPDX-License-Identifier: Apache-2.0
"""POST bulk: items of a job, each with its outcome, its own decision and its own audit record; all or nothing."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limnos.config.storage import StorageSection
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import (
    SCHEMA,
    local,
    make_space,
    make_table,
    metadata_of,
    nothing_done,
    set_properties,
    space_path,
    table_path,
)
from tests.http.interference import InterferencePoint, interfere

pytestmark = pytest.mark.slow

BULK = f"{OWN}/metalakes/lake/bulk"
AUDIT = f"{OWN}/metalakes/lake/audit"
Item = dict[str, object]


def send(
    node: DriverNode, *items: Item | bytes, job: str = "j", after: int = 0, user: str = "admin", more: str = ""
) -> DriverAnswer:
    """Send items as a part of a job."""
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in items]
    return node.ask("POST", f"{BULK}?job={job}&after={after}{more}", b"\n".join(lines) + b"\n", user=user)


def outcomes_of(answer: DriverAnswer) -> list[dict]:
    """Return the lines of an answer without the last, which has the counts."""
    assert answer.status == 200, answer.body
    *lines, counts = [json.loads(line) for line in answer.body.splitlines()]
    assert counts["items"] == len(lines)
    assert counts == {"items": len(lines), **{key: counts[key] for key in ("made", "same", "refused", "failed")}}
    for word in ("made", "same", "refused", "failed"):
        assert counts[word] == sum(each["outcome"] == word for each in lines)
    return lines


def words_of(answer: DriverAnswer) -> list[str]:
    """Return the outcomes, with the code of an error."""
    return [f"{each['outcome']} {each.get('code', '')}".strip() for each in outcomes_of(answer)]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[DriverNode]:
    """A node whose catalog may have tables below the directory `ext`."""
    (tmp_path / "srv").mkdir()
    root = f"file://{tmp_path}/ext"
    with node_at(tmp_path / "srv", storage=StorageSection(allowed_roots=(root,))) as node:  # type: ignore[arg-type]
        update = {"@type": "setProperty", "property": "allowed-locations", "value": root}
        node.done("PUT", f"{API}/lake/catalogs/main", {"updates": [update]})
        make_table(node, "a", "model")
        yield node


def files(node: DriverNode, count: int) -> list[str]:
    """Write the metadata files of tables that no catalog has, and return their locations."""
    document = metadata_of(node, "a", "model")
    outcomes = []
    for _ in range(count):
        name = uuid.uuid4()
        base = node.data.parent / "ext" / name.hex
        (base / "metadata").mkdir(parents=True)
        file = base / "metadata" / "00000-x.metadata.json"
        file.write_text(json.dumps({**document, "table-uuid": str(name), "location": f"file://{base}"}))
        outcomes.append(f"file://{file}")
    return outcomes


def registered(name: str, location: str, **more: object) -> Item:
    """Return the item that registers a table."""
    return {"do": "register-table", "path": ["main", "a", name], "metadata_location": location, **more}


def test_each_item_has_its_outcome(lake: DriverNode) -> None:
    """Items that succeed and items that fail are in one part, and each has its outcome at its position."""
    good = files(lake, 70)
    items: list[Item | bytes] = [registered(f"t{number}", location) for number, location in enumerate(good)]
    items[3] = b"{not json"
    items[5] = {"do": "dance"}
    items[40] = registered("gone", good[40].replace("00000-x", "00001-y"))
    items[41] = registered("model", good[41])
    items[42] = registered("twin", good[43])

    words = words_of(send(lake, *items, after=100))

    wrong = {3: "bad-request", 5: "bad-request", 40: "missing-file", 41: "already-exists"}
    for number, code in wrong.items():
        assert words[number] == f"refused {code}", words[number]
    assert sorted((words[42], words[43])) == ["made", "refused bad-request"]
    assert words.count("made") == 70 - len(wrong) - 1
    assert metadata_of(lake, "a", "t0")["location"] == good[0].rpartition("/metadata/")[0]
    assert [each["index"] for each in outcomes_of(send(lake, *items, after=100))] == list(range(100, 170))


def test_links_and_foreign_locations_are_refused_within_a_group(lake: DriverNode) -> None:
    """Items of one group are checked as single requests are: a table behind a link, a file outside of the roots, and a
    document whose location is elsewhere are refused, and their neighbours are registered.
    """
    good, behind, elsewhere, outside, also = files(lake, 5)
    ext = lake.data.parent / "ext"
    real = Path(behind.removeprefix("file://")).parent.parent
    (ext / "alias").symlink_to(real)
    document = json.loads(Path(behind.removeprefix("file://")).read_text())
    alias = f"file://{ext}/alias/metadata/{Path(behind).name}"
    Path(behind.removeprefix("file://")).write_text(json.dumps({**document, "location": f"file://{ext}/alias"}))
    far = Path(elsewhere.removeprefix("file://"))
    far.write_text(json.dumps({**json.loads(far.read_text()), "location": f"file://{lake.data.parent}/srv/x"}))
    secret = lake.data.parent / "secret.metadata.json"
    secret.write_bytes(Path(outside.removeprefix("file://")).read_bytes())
    link = ext / "out.metadata.json"
    link.symlink_to(secret)
    locations = [good, alias, behind, elsewhere, f"file://{link}", f"file://{ext}/none.metadata.json", also]

    answer = send(lake, *[registered(f"t{number}", each) for number, each in enumerate(locations)])

    refused = ["bad-request", "bad-request", "outside-roots", "missing-file", "missing-file"]
    assert words_of(answer) == ["made", *[f"refused {code}" for code in refused], "made"]
    lines = outcomes_of(answer)
    assert all("is a symbolic link to another location" in each["message"] for each in lines[1:3])
    assert lines[4]["message"].replace("out.metadata", "none.metadata") == lines[5]["message"]


def test_item_is_executed_once_in_its_job(lake: DriverNode) -> None:
    """A part that is sent again executes nothing again, and another item at the same position is refused."""
    first, second = files(lake, 2)
    link: Item = {"do": "link-model-version", "path": ["ml", "s", "m"], "uris": {"u": "s3://b/x"}}
    make = {"do": "create-model", "path": ["ml", "s", "m"]}
    items = [registered("x", first), make, link]
    catalog = {"name": "ml", "type": "MODEL", "provider": "model", "comment": "", "properties": {}}
    lake.done("POST", f"{API}/lake/catalogs", catalog)
    lake.done("POST", f"{API}/lake/catalogs/ml/schemas", {"name": "s"})

    assert words_of(send(lake, *items)) == ["made"] * 3
    again = outcomes_of(send(lake, *items))
    assert [(each["outcome"], each["repeated"]) for each in again] == [("made", True)] * 3
    versions = lake.get(f"{API}/lake/catalogs/ml/schemas/s/models/m/versions").json()["versions"]
    assert versions == [0]
    assert words_of(send(lake, registered("y", second))) == ["refused idempotency-key-reused"]
    assert lake.ask("DELETE", table_path("a", "x")).status == 204
    assert words_of(send(lake, *items, job="other"))[0] == "made"


def test_refused_item_is_decided_again(lake: DriverNode) -> None:
    """A refusal is not stored: the same item is executed when it is sent again after the reason has gone."""
    item = {"do": "create-namespace", "path": ["main", "n"]}
    make_space(lake, "n")
    assert words_of(send(lake, item)) == ["refused already-exists"]
    assert lake.ask("DELETE", space_path("n")).status == 204

    assert words_of(send(lake, item)) == ["made"]


def test_item_needs_the_right_of_its_request(lake: DriverNode) -> None:
    """A caller with rights on one namespace changes that one, and each other item is refused, also in a group."""
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    make_space(lake, "b")
    grant(lake, "ana", "use_schema create_table", kind="SCHEMA", on="main.b")
    one, other, third = files(lake, 3)
    items: list[Item] = [
        registered("x", one),
        {**registered("y", other), "path": ["main", "b", "y"]},
        {"do": "tag", "kind": "table", "on": ["main", "a", "model"], "tag": "pii"},
        {"do": "set-owner", "kind": "table", "on": ["main", "a", "model"], "owner": "ana"},
        {"do": "drop", "kind": "table", "path": ["main", "a", "model"]},
        {"do": "set-properties", "kind": "namespace", "path": ["main", "a"], "set": {"a": "b"}},
        {"do": "create-principal", "kind": "user", "name": "eve"},
        {"do": "grant", "role": "r", "kind": "table", "on": ["main", "a", "model"], "privileges": ["select_table"]},
        {"do": "assign-roles", "kind": "user", "name": "ana", "roles": ["r"]},
        {"do": "create-tag", "name": "pii"},
        {**registered("z", third), "path": ["main", "b", "z"]},
    ]

    words = words_of(send(lake, *items, user="ana"))

    assert [word for number, word in enumerate(words) if number not in (1, 10)] == ["refused forbidden"] * 9
    assert (words[1], words[10]) == ("made", "made")
    assert send(lake, items[0], user="stranger").status == 403
    assert send(lake, items[0], user="nobody", job="k").status == 403


def test_right_to_list_a_namespace_registers_no_table(lake: DriverNode) -> None:
    """The right to list a namespace's tables is not the one to register some: neither one by one nor all or none."""
    grant(lake, "lea", "use_catalog use_schema", kind="CATALOG", on="main")
    assert lake.get("/iceberg/v1/lake.main/namespaces/a/tables", user="lea").status == 200
    items = [registered(name, location) for name, location in zip("xy", files(lake, 2), strict=True)]

    assert words_of(send(lake, *items, user="lea")) == ["refused forbidden"] * 2
    with nothing_done(lake):
        assert send(lake, *items, user="lea", job="k", more="&atomic=true").status == 403


def test_each_item_has_an_audit_record(lake: DriverNode) -> None:
    """Each change has the record of its transaction, and each refused item one of its own."""
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    (location,) = files(lake, 1)
    send(lake, registered("x", location), {"do": "create-tag", "name": "red"})
    send(lake, registered("y", location), {"do": "create-tag", "name": "blue"}, user="ana")
    lake.settle()

    lines = lake.get(f"{AUDIT}?limit=200").json()["lines"]
    mine = [each for each in lines if each["operation"] == "bulk"]
    done = {(each["object"]["path"], each["user"]) for each in mine if each["outcome"] == "done"}
    assert {("main.a.x", "admin"), ("red", "admin")} <= done, mine
    refused = [each["user"] for each in mine if each["outcome"] == "refused"]
    assert refused == ["ana", "ana"], mine


def test_items_of_every_type_are_executed(lake: DriverNode) -> None:
    """Each type of item does what its single request does."""
    (location, newer) = files(lake, 2)
    ext = f"file://{lake.data.parent}/ext"
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    items: list[Item] = [
        {"do": "create-namespace", "path": ["main", "n"], "comment": "c", "properties": {"k": "v"}},
        {"do": "create-namespace", "path": ["main", "n", "deep"]},
        {"do": "create-namespace", "path": ["main", "n"], "exists": "skip"},
        registered("x", location),
        registered("x", location, exists="replace"),
        registered("x", newer, exists="replace", expected=location),
        registered("x", location, exists="replace", expected=location),
        {"do": "create-fileset", "path": ["main", "n", "f"], "external": True, "locations": {"unknown": f"{ext}/f"}},
        {"do": "set-properties", "kind": "table", "path": ["main", "a", "model"], "set": {"mark": "1"}},
        {"do": "set-properties", "kind": "namespace", "path": ["main", "n"], "remove": ["k"], "comment": "d"},
        {"do": "create-tag", "name": "pii", "allowed_values": ["high"]},
        {"do": "tag", "kind": "table", "on": ["main", "a", "model"], "tag": "pii", "value": "high"},
        {"do": "tag", "kind": "namespace", "on": ["main", "n", "deep"], "tag": "pii", "value": "high"},
        {"do": "create-principal", "kind": "group", "name": "crew"},
        {"do": "add-members", "group": "crew", "users": ["ana"]},
        {"do": "create-principal", "kind": "role", "name": "hands"},
        {
            "do": "grant",
            "role": "hands",
            "kind": "namespace",
            "on": ["main", "n"],
            "privileges": ["use_schema", "select_table"],
        },
        {"do": "assign-roles", "kind": "group", "name": "crew", "roles": ["hands"]},
        {"do": "set-owner", "kind": "namespace", "on": ["main", "n", "deep"], "owner": "crew", "owner_kind": "group"},
        {"do": "drop", "kind": "fileset", "path": ["main", "n", "f"]},
        {"do": "drop", "kind": "table", "path": ["main", "n", "none"], "missing": "skip"},
    ]

    words = words_of(send(lake, *items))

    unlike = {
        2: "same",
        4: "same",
        6: "refused commit-conflict",
        7: "refused unsupported",
        19: "refused not-found",
        20: "same",
    }
    assert words == [unlike.get(number, "made") for number in range(len(items))]
    assert lake.get(table_path("a", "x")).json()["metadata-location"] == newer
    assert metadata_of(lake, "a", "model")["properties"]["mark"] == "1"
    properties = lake.get(space_path("n")).json()["properties"]
    assert (properties["comment"], "k" in properties) == ("d", False)
    owner = lake.get(f"{API}/lake/owners/SCHEMA/main.n:deep").json()["owner"]
    assert (owner["name"], owner["type"]) == ("crew", "group")
    role = lake.get(f"{API}/lake/roles/hands").json()["role"]["securableObjects"]
    assert [(each["fullName"], len(each["privileges"])) for each in role] == [("main.n", 2)]
    assert lake.get(f"{API}/lake/objects/TABLE/main.a.model/tags").json()["names"] == ["pii"]
    assert lake.get(f"{API}/lake/groups/crew").json()["group"]["roles"] == ["hands"]


def test_all_or_nothing_job_is_one_transaction(lake: DriverNode) -> None:
    """With atomic all items share one revision, or none is executed and the answer is that of the refused item."""
    one, two = files(lake, 2)
    make = {"do": "create-namespace", "path": ["main", "n"]}
    into = [{**registered("x", one), "path": ["main", "n", "x"]}, {**registered("y", two), "path": ["main", "n", "y"]}]
    lost = {**registered("z", one + "x"), "path": ["main", "n", "z"]}
    with nothing_done(lake):
        refused = send(lake, make, *into, lost, more="&atomic=true")
    assert refused.status == 404
    assert "main.n.z" in refused.json()["error"]["message"] or "n.z" in refused.json()["error"]["message"]

    assert words_of(send(lake, make, *into, more="&atomic=true")) == ["made"] * 3
    again = outcomes_of(send(lake, make, *into, more="&atomic=true"))
    assert all(each["repeated"] for each in again)
    assert send(lake, make, more="&atomic=true").json()["error"]["code"] == "idempotency-key-reused"
    not_one = send(lake, {"do": "create-tag", "name": "t"}, job="k", more="&atomic=true")
    assert (not_one.status, "atomic" in not_one.json()["error"]["message"]) == (400, True)


def test_transaction_does_not_delete_a_registered_file(lake: DriverNode) -> None:
    """`register-table` is an operation of a transaction. A failing transaction deletes no registered file, and no
    operation commits to a table that the transaction registers.
    """
    (location,) = files(lake, 1)
    url = f"{OWN}/metalakes/lake/catalogs/main/transactions"
    register = {"do": "register-table", "path": ["a", "x"], "metadata_location": location}
    commit = {"do": "commit-table", "path": ["a", "x"], "updates": [set_properties(a="b")]}
    refused = {"do": "create-table", "path": ["a", "model"], "schema": SCHEMA}

    assert lake.post(url, {"operations": [register, commit]}).status == 400
    assert lake.post(url, {"operations": [register, refused]}).status == 409
    assert local(location).is_file()
    answer = lake.post(url, {"operations": [register, {"do": "create-table", "path": ["a", "n"], "schema": SCHEMA}]})

    assert answer.status == 200, answer.body
    assert answer.json()["operations"][0]["metadata_location"] == location
    assert lake.get(table_path("a", "x")).json()["metadata-location"] == location
    assert local(location).is_file()


def test_table_that_another_request_registers_meanwhile_exists_already(
    lake: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registered table whose name is taken before the transaction is refused as existing, not as a lost commit."""
    first, second = files(lake, 2)
    url = f"{OWN}/metalakes/lake/catalogs/main/transactions"

    async def register() -> None:
        body = {"name": "x", "metadata-location": first}
        await lake.answer("POST", "/iceberg/v1/lake.main/namespaces/a/register", body, user="admin")

    with interfere(lake, monkeypatch, step=InterferencePoint.SUBMIT, act=register) as interference:
        operation = {"do": "register-table", "path": ["a", "x"], "metadata_location": second}
        refused = lake.post(url, {"operations": [operation]})

    assert interference.is_done
    assert (refused.status, refused.json()["error"]["code"]) == (409, "already-exists")
    assert lake.get(table_path("a", "x")).json()["metadata-location"] == first


def test_store_that_fails_before_the_first_outcome_is_one_error(lake: DriverNode) -> None:
    """A job whose first statement meets a failed store is 503 as a whole, and the same part is executed afterwards."""
    item = {"do": "create-namespace", "path": ["main", "n"]}
    with closing(sqlite3.connect(lake.data / "limnos.db")) as other:
        other.execute("ALTER TABLE idempotency RENAME TO gone")
        failed = send(lake, item)
        other.execute("ALTER TABLE gone RENAME TO idempotency")

    assert (failed.status, failed.json()["error"]["code"]) == (503, "unavailable")
    assert words_of(send(lake, item)) == ["made"]


@pytest.mark.parametrize(
    "target, body, code",
    [
        ("", b"{}", "bad-request"),
        ("?job=../x", b"{}", "bad-request"),
        ("?job=j&after=-1", b"{}", "bad-request"),
        ("?job=j", b"\n\n", "bad-request"),
        ("?job=j", b"{}\n" * 1001, "bad-request"),
        ("?job=j&atomic=perhaps", b"{}", "bad-request"),
    ],
)
def test_malformed_part_is_refused(lake: DriverNode, target: str, body: bytes, code: str) -> None:
    """A part without a job, with a malformed position, and one with no or too many items are refused as a whole."""
    answer = lake.ask("POST", BULK + target, body)

    assert (answer.status, answer.json()["error"]["code"]) == (400, code)
