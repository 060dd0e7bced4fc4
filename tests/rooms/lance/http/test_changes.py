# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's content over Lance REST: merged, updated and deleted rows; columns, metadata, versions,
transactions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.arrow_rows import ROWS, arrow
from tests.http.driver import OWN, DriverAnswer, DriverNode
from tests.http.iceberg.wire import node_over
from tests.rooms.lance.http.wire import ROOT, declare, failure_of, fill, make_space, rows_of, table

NEWER = ROWS.slice(2, 1).set_column(1, "text", pa.array(["new"]))
"""A row with an existing id and another text."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a namespace `s`, and worker processes that have loaded Lance's library."""
    with node_over(tmp_path_factory.mktemp("changes")) as node:
        make_space(node, "lance", "s")
        yield node


@pytest.fixture
def t(home: DriverNode, request: pytest.FixtureRequest) -> str:
    """The URL of a new table with three rows."""
    path = ("lance", "s", re.sub(r"\W", "_", request.node.name))
    fill(home, *path)
    return table(*path)


def texts(node: DriverNode, t: str) -> dict[object, object]:
    """Return the texts of a table, by ids."""
    return {row["id"]: row["text"] for row in rows_of(node.post(f"{t}/query", {"vector": []}))}


def version(node: DriverNode, t: str) -> object:
    """Return the latest version of a table."""
    return node.done("POST", f"{t}/describe", {})["version"]


@pytest.mark.parametrize(
    "query, expected, counts",
    [
        (
            "when_matched_update_all=true&when_not_matched_insert_all=true",
            {1: "a cat", 2: "a dog", 3: "new", 4: "more"},
            (1, 1, 0),
        ),
        ("when_not_matched_insert_all=true", {1: "a cat", 2: "a dog", 3: "cat and dog", 4: "more"}, (0, 1, 0)),
        (
            "when_matched_update_all=true&when_matched_update_all_filt=target.id+%3C+3",
            {1: "a cat", 2: "a dog", 3: "cat and dog"},
            (0, 0, 0),
        ),
        (
            "when_not_matched_insert_all=true&when_not_matched_by_source_delete=true&when_not_matched_by_source_delete_filt=id+%3D+1",
            {2: "a dog", 3: "cat and dog", 4: "more"},
            (0, 1, 1),
        ),
        (
            "on=text&when_not_matched_insert_all=true&use_index=false&timeout=30s",
            {1: "a cat", 2: "a dog", 3: "new", 4: "more"},
            (0, 2, 0),
        ),
    ],
)
def test_rows_are_merged(
    home: DriverNode, t: str, query: str, expected: dict[object, object], counts: tuple[int, ...]
) -> None:
    """A merge updates existing keys, inserts new ones and deletes unmatched ones, as requested."""
    rows = pa.concat_tables(
        [NEWER, ROWS.slice(0, 1).set_column(0, "id", pa.array([4])).set_column(1, "text", pa.array(["more"]))]
    )

    done = home.done("POST", f"{t}/merge_insert?on=id&{query}", arrow(rows))

    assert tuple(done[f"num_{word}_rows"] for word in ("updated", "inserted", "deleted")) == counts
    assert texts(home, t) == expected


@pytest.mark.parametrize(
    "query, body, expected",
    [
        ("", arrow(), (400, 13)),
        ("on=nope&when_not_matched_insert_all=true", arrow(), (404, 12)),
        ("on=id", arrow(), (400, 13)),
        ("on=id&when_not_matched_insert_all=maybe", arrow(), (400, 13)),
        ("on=id&when_not_matched_insert_all=true&timeout=soon", arrow(), (400, 13)),
        ("on=id&when_not_matched_insert_all=true", b"nothing", (400, 13)),
        ("on=id&when_not_matched_insert_all=true", arrow()[:-30], (400, 13)),
        ("on=id&when_not_matched_insert_all=true", arrow(pa.table({"id": [1], "other": [1]})), (400, 20)),
        ("on=id&when_matched_update_all=true", arrow(pa.concat_tables([ROWS, ROWS])), (400, 13)),
        ("on=id&when_not_matched_insert_all=true&branch=b", arrow(), (404, 22)),
    ],
)
def test_invalid_merges_are_refused_with_their_code(
    home: DriverNode, t: str, query: str, body: bytes, expected: tuple[int, int]
) -> None:
    """An invalid merge has its code, and nothing is changed."""
    assert failure_of(home.post(f"{t}/merge_insert?{query}", body)) == expected
    assert version(home, t) == 1


def test_rows_are_updated_and_deleted(home: DriverNode, t: str) -> None:
    """An update sets expressions and a delete removes rows, where the predicate is true; both return the number of
    rows.
    """
    done = home.done("POST", f"{t}/update", {"predicate": "id = 2", "updates": [["text", "'zz'"], ["id", "id + 10"]]})
    deletion = home.done("POST", f"{t}/delete", {"predicate": "id < 3"})

    assert (done["updated_rows"], done["rows_updated"], done["version"]) == (1, 1, 2)
    assert (deletion["num_deleted_rows"], deletion["version"]) == (1, 3)
    assert texts(home, t) == {12: "zz", 3: "cat and dog"}


@pytest.mark.parametrize(
    "action, body, expected",
    [
        ("update", {"updates": []}, (400, 13)),
        ("update", {"updates": [["id"]]}, (400, 13)),
        ("update", {"updates": [["nope", "1"]]}, (404, 12)),
        ("update", {"updates": [["id", "nope + 1"]]}, (404, 12)),
        ("update", {"updates": [["id", "'abc'"]]}, (400, 13)),
        ("update", {"updates": [["id", "1"]], "predicate": "id >"}, (400, 13)),
        ("update", {"updates": [["id", "1"], ["id", "2"]]}, (400, 13)),
        ("delete", {}, (400, 13)),
        ("delete", {"predicate": " "}, (400, 13)),
        ("delete", {"predicate": "nope = 1"}, (404, 12)),
        ("delete", {"predicate": "true", "branch": "b"}, (404, 22)),
        ("restore", {"version": 9}, (404, 11)),
        ("restore", {"version": 0}, (404, 11)),
        ("restore", {}, (400, 13)),
        ("schema_metadata/update", [1], (400, 13)),
        ("schema_metadata/update", {"a": 1}, (400, 13)),
        ("update_field_metadata", {"updates": []}, (400, 13)),
        ("update_field_metadata", {"updates": [{"path": "nope", "metadata": {}}]}, (404, 12)),
        ("add_columns", {"new_columns": []}, (400, 13)),
        ("add_columns", {"new_columns": [{"name": "x", "expression": "nope + 1"}]}, (404, 12)),
        ("add_columns", {"new_columns": [{"name": "id", "expression": "1"}]}, (400, 13)),
        ("add_columns", {"new_columns": [{"name": "x", "expression": "id *"}]}, (400, 13)),
        ("add_columns", {"new_columns": [{"name": "x", "computed": "udf"}]}, (406, 0)),
        ("alter_columns", {"alterations": [{"path": "id", "rename": "\x00"}]}, (400, 13)),
        ("add_columns", {"new_columns": [{"name": "\x00", "expression": "1"}]}, (400, 13)),
        ("alter_columns", {"alterations": []}, (400, 13)),
        ("alter_columns", {"alterations": [{"path": "nope", "rename": "x"}]}, (404, 12)),
        ("alter_columns", {"alterations": [{"path": "id", "rename": "text"}]}, (400, 13)),
        ("alter_columns", {"alterations": [{"path": "id", "data_type": {"type": "far"}}]}, (400, 13)),
        ("drop_columns", {"columns": []}, (400, 13)),
        ("drop_columns", {"columns": ["nope"]}, (404, 12)),
        ("drop_columns", {"columns": ["id", "text", "vector"]}, (400, 13)),
        ("stats", {"branch": "b"}, (404, 22)),
    ],
)
def test_invalid_changes_are_refused_with_their_code(
    home: DriverNode, t: str, action: str, body: object, expected: tuple[int, int]
) -> None:
    """An invalid change has its code, and nothing is changed."""
    assert failure_of(home.post(f"{t}/{action}", body)) == expected
    assert version(home, t) == 1


def test_columns_are_added_renamed_cast_and_dropped(home: DriverNode, t: str) -> None:
    """Columns are added by expressions, renamed, cast and dropped; each change is a version."""
    home.done(
        "POST", f"{t}/add_columns", {"new_columns": [{"name": "twice", "expression": "id * 2", "computed": None}]}
    )
    change = {"path": "twice", "rename": "double", "data_type": {"type": "int32"}, "nullable": None}
    home.done("POST", f"{t}/alter_columns", {"alterations": [change]})
    done = home.done("POST", f"{t}/drop_columns", {"columns": ["text", "vector"]})

    assert done["version"] == 4
    fields = home.done("POST", f"{t}/describe", {})["schema"]["fields"]
    assert [(each["name"], each["type"]["type"]) for each in fields] == [("id", "int64"), ("double", "int32")]
    assert [row["double"] for row in rows_of(home.post(f"{t}/query", {"vector": []}))] == [2, 4, 6]


ARROW = "application/vnd.apache.arrow.stream"


def test_columns_are_added_by_a_schema(home: DriverNode, t: str) -> None:
    """The columns of an Arrow schema are added with null in all rows. A schema that the table cannot have, rows beside
    it and other types of bodies are refused, and nothing is changed.
    """
    schema = pa.schema([pa.field("near", pa.list_(pa.float32(), 2)), pa.field("note", pa.utf8(), metadata={"k": "v"})])

    done = home.ask("POST", f"{t}/add_columns/", arrow(schema.empty_table()), content_type=ARROW).json()

    assert done["version"] == 2
    fields = home.done("POST", f"{t}/describe", {})["schema"]["fields"]
    assert [(each["name"], each["type"]["type"]) for each in fields[3:]] == [
        ("near", "fixed_size_list"),
        ("note", "utf8"),
    ]
    assert {row["note"] for row in rows_of(home.post(f"{t}/query", {"vector": []}))} == {None}
    schemas = (
        pa.schema([field])
        for field in (pa.field("id", pa.int8()), pa.field("x", pa.int8(), False), pa.field("a\0", pa.int8()))
    )
    for body in (*(arrow(each.empty_table()) for each in schemas), arrow(), arrow()[:40], b"{}"):
        assert failure_of(home.ask("POST", f"{t}/add_columns", body, content_type=ARROW)) == (400, 13)
    assert failure_of(home.ask("POST", f"{t}/add_columns", b"a,b", content_type="text/csv", content_length="3")) == (
        415,
        13,
    )
    assert version(home, t) == 2


def test_schema_and_field_metadata_are_updated(home: DriverNode, t: str) -> None:
    """An update replaces a schema's metadata as a whole, and a field's metadata key by key unless it requests a
    replacement.
    """
    assert home.done("POST", f"{t}/schema_metadata/update", {"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    assert home.done("POST", f"{t}/schema_metadata/update", {"c": "3"}) == {"c": "3"}
    home.done("POST", f"{t}/update_field_metadata", {"updates": [{"path": "id", "metadata": {"unit": "m", "x": "y"}}]})
    changes = [
        {"path": "id", "metadata": {"x": None, "z": "1"}},
        {"path": "text", "metadata": {"k": "v"}, "replace": True},
    ]

    done = home.done("POST", f"{t}/update_field_metadata", {"updates": changes})

    assert done["fields"] == {"id": {"unit": "m", "z": "1"}, "text": {"k": "v"}}
    assert done["version"] == home.done("POST", f"{t}/describe", {})["version"] == 5
    assert home.done("POST", f"{t}/describe", {})["schema"]["metadata"] == {"c": "3"}


def test_a_version_is_restored(home: DriverNode, t: str) -> None:
    """Restoring a version creates a new latest version with its content."""
    home.done("POST", f"{t}/delete", {"predicate": "true"})
    done = home.done("POST", f"{t}/restore", {"version": 1})

    assert (done["version"], len(texts(home, t))) == (3, 3)


def test_table_statistics_are_returned(home: DriverNode, t: str) -> None:
    """Statistics have rows, bytes, indices and fragment lengths. The request body may be omitted."""
    home.done("POST", f"{t}/insert", arrow(ROWS.slice(0, 1)))

    stats = home.done("POST", f"{t}/stats")

    assert (stats["num_rows"], stats["num_indices"]) == (4, 0)
    assert stats["total_bytes"] > 0
    assert stats["fragment_stats"] == {
        "num_fragments": 2,
        "num_small_fragments": 2,
        "lengths": {"min": 1, "max": 3, "mean": 2, "p25": 1, "p50": 3, "p75": 3, "p99": 3},
    }


def about(t: str, uuid: object) -> str:
    """Return the URL of a transaction."""
    return f"{ROOT}/transaction/{t.rpartition('/')[2]}%24{uuid}"


def test_change_returns_a_transaction_that_can_be_described(home: DriverNode, t: str) -> None:
    """A change returns its transaction, which can be described and does not change."""
    done = home.done("POST", f"{t}/delete", {"predicate": "id = 1"})
    place = about(t, done["transaction_id"])

    transaction = home.done("POST", f"{place}/describe", {})
    assert transaction["status"] == "SUCCEEDED"
    assert transaction["properties"]["operation"] == "Delete"
    assert (transaction["properties"]["version"], transaction["properties"]["read_version"]) == ("2", "1")
    same = {"actions": [{"setStatusAction": {"status": "Succeeded"}}]}
    assert home.done("POST", f"{place}/alter", same)["status"] == "SUCCEEDED"
    for action in ({"setStatusAction": {"status": "Canceled"}}, {"setPropertyAction": {"key": "a", "value": "b"}}):
        assert failure_of(home.post(f"{place}/alter", {"actions": [action]})) == (406, 0)
    assert failure_of(home.post(f"{place}/alter", {"actions": [{}]})) == (
        400,
        13,
    )  # pylance 14 does so for every action
    assert failure_of(home.post(f"{about(t, 'none')}/describe", {})) == (404, 10)
    assert failure_of(home.post(f"{about(t, 'none')}/alter", {"actions": [{}]})) == (404, 10)


@pytest.mark.parametrize(
    "action", ["update", "delete", "stats", "index/list", "merge_insert?on=id&when_not_matched_insert_all=true"]
)
def test_changes_of_a_table_without_data_return_404(home: DriverNode, action: str) -> None:
    """Changes of a declared table without data are 404 with code 4 and that reason."""
    name = f"empty{abs(hash(action))}"
    declare(home, "lance", "s", name)
    bodies: dict[str, object] = {"update": {"updates": [["a", "1"]]}, "delete": {"predicate": "true"}}

    answer: DriverAnswer = home.post(
        f"{table('lance', 's', name)}/{action}", arrow() if "merge" in action else bodies.get(action)
    )

    assert failure_of(answer) == (404, 4)
    assert "declared" in answer.json()["detail"]


def test_each_change_of_rows_has_an_audit_record(home: DriverNode, t: str) -> None:
    """Inserted, merged, updated and deleted rows, columns and indexes have records, with counts and versions."""
    on_id = "on=id&when_matched_update_all=true&when_not_matched_insert_all=true"
    home.done("POST", f"{t}/insert", arrow(ROWS))
    home.done("POST", f"{t}/merge_insert?{on_id}", arrow(NEWER))
    home.done("POST", f"{t}/update", {"predicate": "id = 1", "updates": [["text", "'x'"]]})
    home.done("POST", f"{t}/delete", {"predicate": "id = 2"})
    home.done("POST", f"{t}/add_columns", {"new_columns": [{"name": "twice", "expression": "id * 2"}]})
    home.done("POST", f"{t}/create_scalar_index", {"column": "id", "index_type": "BTREE"})
    home.done("POST", f"{t}/count_rows", {})

    home.runner.run(home.built.services.audit.flush())
    name = t.rsplit("%24", 1)[-1]
    lines = home.done("GET", f"{OWN}/metalakes/lake/audit?path=lance.s.{name}")["lines"]
    assert {line["user"] for line in lines} == {"admin"}
    assert {line["operation"]: (line["outcome"], line["detail"]) for line in lines} == {
        "lance-create-table": ("done", None),
        "lance-insert-into-table": ("done", "3 rows inserted, version 2"),
        "lance-merge-insert-into-table": ("done", "2 rows updated, version 3"),
        "lance-update-table": ("done", "2 rows updated, version 4"),
        "lance-delete-from-table": ("done", "2 rows deleted, version 5"),
        "lance-alter-table-add-columns": ("done", "version 6"),
        "lance-create-table-scalar-index": ("done", "version 7"),
    }
    assert len(lines) == 7
    assert {line["action"] for line in lines} == {"table_create", "table_commit"}
