# SPDX-License-Identifier: Apache-2.0
"""Tables with rows over Lance REST: created, inserted into, counted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from tests.arrow_rows import ROWS, arrow
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import node_over
from tests.http.interference import InterferencePoint, interfere
from tests.rooms.lance.http.wire import declare, failure_of, fill, lay, make_space, table


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a namespace `s`, and worker processes that have loaded Lance's library."""
    with node_over(tmp_path_factory.mktemp("rows")) as node:
        make_space(node, "lance", "s")
        yield node


@pytest.fixture
def t(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The name of a new table."""
    return "lance", "s", re.sub(r"\W", "_", request.node.name)


def properties(**values: str) -> str:
    """Return properties as a query parameter."""
    return f"properties={quote(json.dumps(values))}"


def count(node: DriverNode, *path: str, user: str = "admin", **body: object) -> object:
    """Return the number of rows of a table, or the status and code of a refusal."""
    answer = node.ask("POST", f"{table(*path)}/count_rows", body, user=user)
    return answer.json() if answer.status == 200 else failure_of(answer)


def create(
    node: DriverNode, query: str, *path: str, body: bytes | None = None, user: str = "admin", **headers: str
) -> object:
    """Create a table with rows."""
    return node.ask("POST", f"{table(*path)}/create?{query}", arrow() if body is None else body, user=user, **headers)


def test_table_is_created_with_rows_and_properties(home: DriverNode, t: tuple[str, ...]) -> None:
    """A created table has its rows at version 1 in its own location, and its properties are stored."""
    created = create(home, f"mode=Create&{properties(k='v')}", *t).json()

    assert (created["version"], created["properties"], count(home, *t)) == (1, {"k": "v"}, 3)
    assert t[-1] not in str(created["location"])
    details = home.done("POST", f"{table(*t)}/describe", {})
    assert (details["version"], details["properties"], details["location"]) == (1, {"k": "v"}, created["location"])


def test_location_and_properties_are_read_from_headers(home: DriverNode, t: tuple[str, ...]) -> None:
    """Location and properties can be sent in headers."""
    place = f"file://{home.data}/warehouse/lance/mine"
    headers = {"x_lance_table_location": place, "x_lance_table_properties": '{"k":"v"}'}

    created = create(home, "", *t, **headers).json()

    assert (created["location"], created["properties"]) == (place, {"k": "v"})


def test_create_with_a_used_name_depends_on_the_mode(home: DriverNode, t: tuple[str, ...]) -> None:
    """A create with a name in use is refused. With exist_ok it returns the existing table, and with overwrite it writes
    the table's next version and removes its properties.
    """
    first = create(home, f"{properties(k='v')}", *t).json()

    assert failure_of(create(home, "mode=create", *t)) == (409, 5)
    existing = create(home, "mode=ExistOk", *t, body=arrow(ROWS.slice(0, 1))).json()
    assert (existing.get("version"), existing["properties"], count(home, *t)) == (None, {"k": "v"}, 3)
    other = pa.table({"name": ["x"]})
    over = create(home, "mode=overwrite", *t, body=arrow(other)).json()
    assert (over["version"], over["location"], over["properties"], count(home, *t)) == (2, first["location"], {}, 1)
    assert failure_of(create(home, "mode=nonsense", *t)) == (400, 13)
    assert failure_of(create(home, "", "lance", "s")) == (409, 5)


def test_ownership_lost_during_overwrite_keeps_properties(
    home: DriverNode, t: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the owner loses the ownership while rows are overwritten, the table's properties do not change."""
    grant(home, "former", "use_catalog use_schema select_table create_table", kind="CATALOG", on="lance")
    create(home, properties(k="v"), *t)
    owners = f"{API}/lake/owners/TABLE/{'.'.join(t)}"
    home.done("PUT", owners, {"name": "former", "type": "USER"})

    async def lose() -> None:
        await home.answer("PUT", owners, {"name": "admin", "type": "USER"})

    with interfere(home, monkeypatch, step=InterferencePoint.SUBMIT, act=lose) as interference:
        refused = create(home, "mode=overwrite", *t, user="former")
    assert (interference.is_done, failure_of(refused)) == (True, (403, 15))
    assert home.done("POST", f"{table(*t)}/describe", {})["properties"] == {"k": "v"}


def test_a_declared_table_is_filled(home: DriverNode, t: tuple[str, ...]) -> None:
    """A create or the first insert writes rows into a declared table. Counting rows before that is 404."""
    first, second = (*t[:-1], "a"), (*t[:-1], "b")
    for path in (first, second):
        declare(home, *path, properties={"k": "v"})
    assert count(home, *first) == (404, 4)

    filled = create(home, f"{properties(m='n')}", *first).json()
    home.done("POST", f"{table(*second)}/insert", arrow())

    assert filled["properties"] == {"k": "v", "m": "n"}
    assert [count(home, *path) for path in (first, second)] == [3, 3]


def test_rows_are_added(home: DriverNode, t: tuple[str, ...]) -> None:
    """An insert that appends adds a version with more rows, and one that overwrites a version with other rows. Rows of
    old versions can still be counted.
    """
    fill(home, *t)

    added = home.done("POST", f"{table(*t)}/insert?mode=append", arrow())
    assert (added["num_inserted_rows"], added["version"], count(home, *t)) == (3, 2, 6)
    over = home.done("POST", f"{table(*t)}/insert?mode=overwrite", arrow(ROWS.slice(0, 1)))
    assert (over["num_inserted_rows"], count(home, *t), count(home, *t, version=2)) == (1, 1, 6)
    assert failure_of(home.post(f"{table(*t)}/insert?mode=merge", arrow())) == (400, 13)


@pytest.mark.parametrize(
    "body, code",
    [
        (b"", 13),
        (b"no arrow at all, but long enough to be some", 13),
        (arrow()[:-30], 13),
        (arrow() + b"more", 13),
        (arrow(pa.table({"id": pa.array([1], pa.int32())})), 20),
        (arrow(pa.table({"other": [1]})), 20),
    ],
)
def test_bodies_without_matching_arrow_rows_are_refused(
    home: DriverNode, t: tuple[str, ...], body: bytes, code: int
) -> None:
    """A body that is no Arrow stream is 400 with code 13, other columns are code 20; the table is unchanged."""
    fill(home, *t)

    assert failure_of(home.post(f"{table(*t)}/insert", body)) == (400, code)
    assert count(home, *t) == 3
    assert home.done("POST", f"{table(*t)}/describe", {})["version"] == 1


def test_failed_create_leaves_no_table_or_file(home: DriverNode, t: tuple[str, ...]) -> None:
    """A create with an unreadable body leaves neither a table nor a file."""
    before = {path for path in (home.data / "warehouse").rglob("*") if path.is_file()}

    assert failure_of(create(home, "", *t, body=arrow()[:-30])) == (400, 13)

    assert failure_of(home.post(f"{table(*t)}/describe", {})) == (404, 4)
    assert {path for path in (home.data / "warehouse").rglob("*") if path.is_file()} == before


def test_create_at_a_location_with_data_is_refused(home: DriverNode, t: tuple[str, ...]) -> None:
    """A create at a location with data is refused."""
    answer = create(home, "", *t, x_lance_table_location=lay(home, "old"))

    assert failure_of(answer) == (409, 5)
    assert failure_of(create(home, "", *t, x_lance_table_location="file:///etc/t")) == (400, 13)


@pytest.mark.parametrize(
    "body, expected",
    [
        ({"predicate": "id > 1"}, 2),
        ({"predicate": ""}, 3),
        ({"version": 1}, 3),
        ({"predicate": "nope > 1"}, (404, 12)),
        ({"predicate": "id >"}, (400, 13)),
        ({"predicate": "id + 1"}, (400, 13)),
        ({"version": 9}, (404, 11)),
        ({"version": 0}, (404, 11)),
        ({"tag": "x"}, (404, 8)),
        ({"branch": "x"}, (404, 22)),
    ],
)
def test_rows_are_counted(home: DriverNode, t: tuple[str, ...], body: dict[str, object], expected: object) -> None:
    """All rows, those of a version, and those of a predicate are counted; an invalid request has its code."""
    fill(home, *t)

    assert count(home, *t, **body) == expected


def test_write_through_a_link_out_of_the_roots_is_refused(home: DriverNode, t: tuple[str, ...], tmp_path: Path) -> None:
    """A write through a link out of the catalog's roots is refused."""
    outside = tmp_path / "outside"
    outside.mkdir()
    place = home.data / "warehouse" / "lance" / "led"
    declare(home, *t, location=f"file://{place}")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)

    assert failure_of(home.post(f"{table(*t)}/insert", arrow())) == (400, 13)
    assert not list(outside.iterdir())


def test_read_and_write_privileges_are_separate(home: DriverNode, t: tuple[str, ...]) -> None:
    """Users who may only read are refused to write, and users who may only write are refused to read."""
    fill(home, *t)
    for user, privilege in (("reader", "select_table"), ("writer", "modify_table")):
        grant(home, user, f"use_catalog use_schema {privilege}", kind="CATALOG", on="lance")

    assert count(home, *t, user="reader") == 3
    assert count(home, *t, user="writer") == (403, 15)
    assert failure_of(home.ask("POST", f"{table(*t)}/insert", arrow(), user="reader")) == (403, 15)
    assert home.ask("POST", f"{table(*t)}/insert", arrow(), user="writer").status == 200
    assert failure_of(create(home, "mode=overwrite", *t, user="writer")) == (403, 15)


def _cast(column: str, kind: str) -> object:
    return {"alterations": [{"path": column, "data_type": {"type": kind}}]}


def test_changes_that_depend_on_rows_need_the_right_to_read(home: DriverNode, t: tuple[str, ...]) -> None:
    """Updates, deletes, merges, computed columns, casts and indices answer questions about the stored rows by counts,
    errors and new values: they need SELECT_TABLE beside MODIFY_TABLE. Inserts and renamed columns need MODIFY_TABLE
    alone.
    """
    fill(home, *t)
    for user, rights in (("adder", "modify_table"), ("both", "select_table modify_table")):
        grant(home, user, f"use_catalog use_schema {rights}", kind="CATALOG", on="lance")
    requests: tuple[tuple[str, object], ...] = (
        ("update", {"predicate": "id = 1", "updates": [["id", "id"]]}),
        ("delete", {"predicate": "id = 77"}),
        ("merge_insert?on=id&when_matched_update_all=true", arrow()),
        ("merge_insert?on=id&when_not_matched_insert_all=true", arrow()),
        ("add_columns", {"new_columns": [{"name": "twice", "expression": "id * 2"}]}),
        ("alter_columns", _cast("id", "int32")),
        (
            "alter_columns",
            {"alterations": [{"path": "twice", "rename": "double"}, {"path": "text", "nullable": False}]},
        ),
        ("create_scalar_index", {"column": "id", "index_type": "BTREE"}),
        ("create_index", {"column": "text", "index_type": "FTS"}),
    )

    for path, body in requests:
        assert failure_of(home.ask("POST", f"{table(*t)}/{path}", body, user="adder")) == (403, 15), path
    cast = home.ask("POST", f"{table(*t)}/alter_columns", _cast("text", "int64"), user="adder")
    assert (cast.status, b"a cat" in cast.body) == (403, False)
    assert home.ask("POST", f"{table(*t)}/insert", arrow(), user="adder").status == 200
    assert count(home, *t) == 6
    rename = {"alterations": [{"path": "text", "rename": "note"}, {"path": "id", "nullable": True}]}
    assert home.ask("POST", f"{table(*t)}/alter_columns", rename, user="adder").status == 200
    schema = arrow(pa.schema([pa.field("empty", pa.utf8())]).empty_table())
    by = {"content_type": "application/vnd.apache.arrow.stream"}
    assert home.ask("POST", f"{table(*t)}/add_columns", schema, user="adder", **by).status == 200
    back = {"alterations": [{"path": "note", "rename": "text"}]}
    assert home.ask("POST", f"{table(*t)}/alter_columns", back, user="adder").status == 200
    for path, body in requests:
        answer = home.ask("POST", f"{table(*t)}/{path}", body, user="both")
        assert answer.status == 200, (path, answer)


def test_filling_and_overwriting_need_their_own_privileges(home: DriverNode, t: tuple[str, ...]) -> None:
    """Filling a declared table needs the right to change it, overwriting the right to drop it; other rights are not
    enough.
    """
    for user, privilege in (("maker", "select_table"), ("builder", "modify_table")):
        grant(home, user, f"use_catalog use_schema create_table {privilege}", kind="CATALOG", on="lance")
    declare(home, *t)

    assert failure_of(create(home, "mode=create", *t, user="maker")) == (409, 5)
    assert create(home, "mode=exist_ok", *t, user="maker").status == 200
    assert create(home, "mode=create", *t, user="builder").status == 200
    assert failure_of(create(home, "mode=overwrite", *t, user="builder")) == (403, 15)
    assert count(home, *t) == 3
