# SPDX-License-Identifier: Apache-2.0
"""POST load: many tables or views of a catalog by one request, each as its single load answers, or with an error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from limnos.config.audit import AuditSection
from limnos.http.admin.catalog.batch_loads import _line
from limnos.services.iceberg import batch_loads
from limnos.services.iceberg.batch_loads import LoadedObject
from limnos.services.request.context import Context
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.interference import interfere_before

pytestmark = pytest.mark.slow

LOAD = f"{OWN}/metalakes/lake/catalogs/main/load"
AUDIT = f"{OWN}/metalakes/lake/audit"
CALLERS = ("admin", "reader", "owner", "viewer", "keyless", "uses", "denied", "member", "stranger")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with tables and a view in two namespaces, one of them nested, and callers with different rights."""
    with wire.node_over(tmp_path_factory.mktemp("loads"), audit=AuditSection(reads="whole")) as running:
        for levels in (("a", "t"), ("a", "u"), ("b", "c", "deep"), ("a", "gone"), ("a", "secret")):
            wire.make_table(running, *levels)
        wire.make_view(running, "a", "v")
        wire.make_view(running, "b", "w")
        wire.local(running.get(wire.table_path("a", "gone")).json()["metadata-location"]).unlink()
        for number in (1, 2):
            assert wire.commit(running, "a", "t", updates=[wire.snapshot(number), wire.point(number)]).status == 200
        grant(running, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        grant(running, "viewer", "use_catalog use_schema select_view", kind="CATALOG", on="main")
        grant(running, "keyless", "use_schema select_table select_view", kind="CATALOG", on="main")
        grant(running, "uses", "use_catalog use_schema", kind="CATALOG", on="main")
        grant(running, "owner", "use_catalog use_schema", kind="CATALOG", on="main")
        grant(running, "denied", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        grant(running, "denied", "select_table", kind="TABLE", on="main.a.u", condition="deny")
        running.done("POST", f"{API}/lake/users", {"name": "member"})
        running.done("PUT", f"{API}/lake/owners/TABLE/main.a.t", {"name": "owner", "type": "USER"})
        yield running


def load(node: DriverNode, *paths: Sequence[str], user: str = "admin", url: str = LOAD, **more: object) -> DriverAnswer:
    """Load objects."""
    return node.ask("POST", url, {"paths": list(paths), **more}, user=user)


def lines_of(answer: DriverAnswer) -> list[dict[str, Any]]:
    """Return the lines of an answer without the last, which has their number."""
    assert answer.status == 200, answer.body
    *lines, last = [json.loads(line) for line in answer.body.splitlines()]
    assert last == {"count": len(lines)}
    assert [each["index"] for each in lines] == list(range(len(lines)))
    return lines


def test_metadata_with_line_breaks_is_one_line() -> None:
    """Metadata that a client has written with line breaks of any system is one line of the answer."""
    line = _line(LoadedObject(3, "file:/m.json", b'{\r\n"a":\r1,\n"b": "x\\n"}'), "request")

    assert line.splitlines() == [line[:-1]]
    assert json.loads(line)["metadata"] == {"a": 1, "b": "x\n"}


TABLES = (("a", "t"), ("a", "u"), ("b", "c", "deep"), ("a", "gone"), ("a", "none"), ("none", "t"), ("a", "v"), ("a",))
VIEWS = (("a", "v"), ("b", "w"), ("a", "t"), ("a", "none"))


@pytest.mark.parametrize("user", CALLERS)
@pytest.mark.parametrize("snapshots", ["all", "refs"])
def test_tables_are_loaded_as_by_single_requests(node: DriverNode, user: str, snapshots: str) -> None:
    """Each caller gets the metadata that the single load returns, and the error code and status of its refusal."""
    answer = load(node, *TABLES[:-1], user=user, snapshots=snapshots)
    singles = [node.get(f"{wire.table_path(*path)}?snapshots={snapshots}", user=user) for path in TABLES[:-1]]

    if answer.status != 200:
        assert {answer.status} == {each.status for each in singles}
        return
    for line, single in zip(lines_of(answer), singles, strict=True):
        if single.status == 200:
            expected = {key: single.json()[key] for key in ("metadata-location", "metadata")}
            assert {"metadata-location": line["metadata_location"], "metadata": line["metadata"]} == expected
            assert set(line) == {"index", "metadata_location", "metadata"}
        else:
            assert line["status"] == single.status
            assert line["message"] == single.json()["error"]["message"]
            assert set(line) == {"index", "status", "code", "message", "request_id"}


@pytest.mark.parametrize("user", CALLERS)
def test_views_are_loaded_as_by_single_requests(node: DriverNode, user: str) -> None:
    """Views are loaded with `kind: view`, and each caller gets what the single load returns."""
    answer = load(node, *VIEWS, user=user, kind="view")
    singles = [node.get(wire.view_path(*path), user=user) for path in VIEWS]

    if answer.status != 200:
        assert {answer.status} == {each.status for each in singles}
        return
    for line, single in zip(lines_of(answer), singles, strict=True):
        assert line.get("status", 200) == single.status
        assert line.get("metadata") == (single.json()["metadata"] if single.status == 200 else None)


def test_callers_get_their_own_objects_alone(node: DriverNode) -> None:
    """The owner of a table gets it and no other; a denied table is refused among allowed ones."""
    own = lines_of(load(node, *TABLES[:3], user="owner"))
    rest = lines_of(load(node, *TABLES[:3], user="denied"))

    assert ["metadata" in each for each in own] == [True, False, False]
    assert ["metadata" in each for each in rest] == [True, False, True]
    assert rest[1]["code"] == "forbidden"


@pytest.mark.parametrize(
    "body, text",
    [
        ({"paths": []}, "1 to 100 objects, not 0"),
        ({"paths": [["a", "t"]] * 101}, "1 to 100 objects, not 101"),
        ({"paths": [["a", "t"]], "kind": "model"}, "kind"),
        ({"paths": [["a", "t"]], "snapshots": "some"}, "snapshots"),
        ({"paths": [["a", 1]]}, "paths"),
        ({"paths": [["a", "t"]], "more": 1}, "more"),
        ({}, "paths"),
        (b"[", ""),
    ],
)
def test_malformed_request_is_refused_after_access(node: DriverNode, body: object, text: str) -> None:
    """A malformed body is refused with the field's name; a caller without rights is refused before it is decoded."""
    answer = node.ask("POST", LOAD, body)

    assert answer.status == 400
    assert text in answer.json()["error"]["message"]
    assert node.ask("POST", LOAD, body, user="stranger").status == 403


def test_odd_paths_have_errors_of_their_own(node: DriverNode) -> None:
    """A path without a namespace, with too many parts or with an empty name has an error, and its neighbours are
    loaded.
    """
    lines = lines_of(load(node, ["t"], [], ["a", ""], ["a"] * 40, ["a", "t"], ["a", "t"]))

    assert ["metadata" in each for each in lines] == [False] * 4 + [True] * 2
    assert all(each["status"] in (400, 404) for each in lines[:4])


def test_table_without_its_metadata_file_has_an_error(node: DriverNode) -> None:
    """A table whose metadata file is gone has the code by which clients know that the table itself exists."""
    lines = lines_of(load(node, ["a", "gone"], ["a", "none"]))

    assert [each["code"] for each in lines] == ["missing-file", "not-found"]


def test_restricted_reader_gets_no_metadata(tmp_path: Path) -> None:
    """A table whose reads are restricted for the caller is refused without metadata or locations: its single load
    returns a reduced document.
    """
    with wire.node_over(tmp_path) as node:
        for name in ("t", "plain"):
            wire.make_table(node, "a", name)
        grant(node, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        node.done("PUT", f"{OWN}/metalakes/lake/objects/TABLE/main.a.t/restrictions/eu", {"filter": "city = 'x'"})
        restricted, plain = lines_of(load(node, ["a", "t"], ["a", "plain"], user="reader"))

        assert (restricted["status"], restricted["code"]) == (405, "unsupported"), restricted
        assert set(restricted) == {"index", "status", "code", "message", "request_id"}
        assert "metadata" in plain
        assert node.get(wire.table_path("a", "t"), user="reader").status == 200
        assert "metadata" in lines_of(load(node, ["a", "t"]))[0]


def test_answer_ends_after_its_size(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer has objects until its size is reached, and at least one; the rest have no line."""
    monkeypatch.setattr(batch_loads, "BODY_BYTES_MAX", 1)
    one = lines_of(load(node, *TABLES[:3]))
    first_bytes = len(json.dumps(one[0]["metadata"], separators=(",", ":")))
    monkeypatch.setattr(batch_loads, "BODY_BYTES_MAX", first_bytes + 1)
    two = lines_of(load(node, *TABLES[:3]))

    assert (len(one), len(two)) == (1, 2)


def test_right_that_ends_meanwhile_ends_the_rest(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller who loses the right between two groups of objects gets no object of the later group."""
    role = grant(node, "leaver", "use_catalog use_schema select_table", kind="CATALOG", on="main")

    async def leave() -> None:
        target = f"{API}/lake/permissions/users/leaver/revoke"
        assert (await node.answer("PUT", target, {"roleNames": [role]})).status == 200

    paths = [["a", "t"]] * (batch_loads.DECIDED_AT_ONCE + 2)
    with interfere_before(monkeypatch, Context, method="read", act=leave, call=3) as interference:
        lines = lines_of(load(node, *paths, user="leaver"))

    assert interference.is_done
    assert ["metadata" in each for each in lines] == [True] * batch_loads.DECIDED_AT_ONCE + [False] * 2


def test_refused_and_loaded_objects_are_in_the_audit(node: DriverNode) -> None:
    """A refused object has the audit record of a refusal, and each loaded one that of a read."""
    lines_of(load(node, ["a", "t"], ["a", "u"], ["b", "c", "deep"], user="denied"))

    records = node.get(f"{AUDIT}?limit=100&user=denied").json()["lines"]
    mine = {(each["object"]["path"], each["outcome"]) for each in records if each["operation"] == "load-objects"}
    assert {("main.a.t", "done"), ("main.b.c.deep", "done"), ("main.a.u", "refused")} <= mine
    assert ("main.a.u", "done") not in mine
