# SPDX-License-Identifier: Apache-2.0
"""Indices over Lance REST: built, listed, described, used, dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.arrow_rows import arrow
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import node_over
from tests.rooms.lance.http.wire import failure_of, fill, make_space, rows_of, table

SIZE = 16
MANY = pa.table(
    {
        "id": pa.array(range(400), pa.int64()),
        "text": [f"word{number % 7} cat" if number % 2 else "dog" for number in range(400)],
        "vector": pa.array(
            [[float(number + place) for place in range(SIZE)] for number in range(400)], pa.list_(pa.float32(), SIZE)
        ),
    }
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a namespace `s`."""
    with node_over(tmp_path_factory.mktemp("indices")) as node:
        make_space(node, "lance", "s")
        fill(node, "lance", "s", "many", rows=MANY)
        yield node


@pytest.fixture
def t(home: DriverNode, request: pytest.FixtureRequest) -> str:
    """The URL of a new table with 400 rows."""
    path = ("lance", "s", re.sub(r"\W", "_", request.node.name))
    fill(home, *path, rows=MANY)
    return table(*path)


def make(node: DriverNode, t: str, column: str, kind: str, *, action: str = "create_index", **more: object) -> object:
    """Create an index. Returns status and code."""
    answer = node.post(f"{t}/{action}", {"column": column, "index_type": kind, **more})
    return answer.json() if answer.status == 200 else failure_of(answer)


def test_index_is_created_listed_described_and_dropped(home: DriverNode, t: str) -> None:
    """An index is listed with its coverage, described, and missing after a drop."""
    created = make(home, t, "id", "BTREE", action="create_scalar_index")
    home.done("POST", f"{t}/insert", arrow(MANY.slice(0, 10)))

    (index,) = home.done("POST", f"{t}/index/list", {})["indexes"]
    assert (index["index_name"], index["columns"], index["status"]) == ("id_idx", ["id"], "SUCCEEDED")
    assert (index["num_indexed_rows"], index["num_unindexed_rows"]) == (400, 10)
    stats = home.done("POST", f"{t}/index/id_idx/stats", {"index_name": "id_idx"})
    assert stats == {"index_type": "BTree", "num_indexed_rows": 400, "num_unindexed_rows": 10, "num_indices": 1}
    dropped = home.done("POST", f"{t}/index/id_idx/drop")
    assert {*created, *dropped} == {"transaction_id", "version"}
    assert home.done("POST", f"{t}/index/list", {}) == {"indexes": []}


def test_vector_indices_of_each_kind_return_near_vectors(home: DriverNode, t: str) -> None:
    """Each kind of vector index finds near vectors, and required parameters have defaults."""
    for number, kind in enumerate(("IVF_PQ", "IVF_FLAT", "IVF_HNSW_SQ")):
        make(home, t, "vector", kind, name=f"v{number}", distance_type="l2")
        near = [float(7 + place) for place in range(SIZE)]
        body = {"k": 3, "vector": {"single_vector": near}, "columns": ["id"], "refine_factor": 10, "nprobes": 1}
        ids = [row["id"] for row in rows_of(home.post(f"{t}/query", body))]
        assert ids[0] == 7
        assert "ANN" in home.post(f"{t}/explain_plan", {"query": body}).json()
        stats = home.done("POST", f"{t}/index/v{number}/stats")
        assert (stats["index_type"], stats["distance_type"]) == (kind, "l2")
        home.done("POST", f"{t}/index/v{number}/drop")


def test_full_text_search_works_alone_and_with_vectors(home: DriverNode, t: str) -> None:
    """Full-text search works by words, by a structured query, and combined with a vector; the last merges both result
    lists by rank.
    """
    make(home, t, "text", "FTS", with_position=True, stem=True, language="English", base_tokenizer="simple")
    words = {"string_query": {"query": "word3", "columns": ["text"]}}

    matches = rows_of(home.post(f"{t}/query", {"k": 100, "vector": {}, "full_text_query": words, "columns": ["id"]}))
    assert {row["id"] % 7 for row in matches} == {3}
    assert all(row["_score"] > 0 for row in matches)
    cats = {
        "must": [{"match": {"column": "text", "terms": "cat"}}],
        "must_not": [{"match": {"column": "text", "terms": "word1"}}],
        "should": [],
    }
    body = {"k": 400, "vector": [], "full_text_query": {"structured_query": {"query": {"boolean": cats}}}}
    assert all(row["id"] % 2 and row["id"] % 7 != 1 for row in rows_of(home.post(f"{t}/query", body)))
    phrase = {"structured_query": {"query": {"phrase": {"column": "text", "terms": "word3 cat"}}}}
    assert len(rows_of(home.post(f"{t}/query", {"k": 400, "vector": [], "full_text_query": phrase}))) == len(matches)

    near = [float(17 + place) for place in range(SIZE)]
    both = rows_of(home.post(f"{t}/query", {"k": 4, "vector": near, "full_text_query": words, "columns": ["id"]}))
    assert both[0]["id"] == 17, "it is first in both lists"
    assert both[0].keys() == {"id", "_distance", "_score", "_relevance_score"}
    assert len(both) == 4


def test_words_without_a_column_search_the_indexed_columns(home: DriverNode) -> None:
    """Words that name no column search all columns with a full-text index, with the parameters of the query. Without an
    index, and for a phrase or an inexact search in several columns, the request is refused.
    """
    t = table("lance", "s", "unnamed")
    rows = pa.table({"id": [1, 2, 3], "a": ["lake cat", "dog", "fox"], "b": ["fox", "lake", "late"]})
    fill(home, "lance", "s", "unnamed", rows=rows)

    def search(query: dict[str, object]) -> object:
        answer = home.post(f"{t}/query", {"k": 9, "vector": [], "full_text_query": {"query": query}})
        return sorted(row["id"] for row in rows_of(answer)) if answer.status == 200 else failure_of(answer)

    lake: dict[str, object] = {"terms": "lake", "column": None}
    assert search({"match": lake}) == (400, 13)
    make(home, t, "a", "FTS", with_position=True)
    assert search({"match": lake}) == [1]
    assert search({"match": {"terms": "lake dog", "operator": "And"}}) == []
    assert search({"phrase": {"terms": "lake cat", "column": None}}) == [1]
    assert search({"match": {"terms": "doc", "fuzziness": 1}}) == [2]
    assert search({"match": {"terms": "doc"}}) == []
    make(home, t, "b", "FTS")
    assert search({"match": lake}) == [1, 2]
    assert search(
        {"boolean": {"must": [{"match": lake}], "must_not": [{"match": {"terms": "cat", "column": "a"}}]}}
    ) == [2]
    for refused in ({"phrase": {"terms": "lake cat"}}, {"match": {**lake, "fuzziness": 1}}):
        assert search(refused) == (400, 13)
    columns = [{"terms": "lake", "column": name} for name in ("a", "b")]
    assert search({"multi_match": {"match_queries": columns}}) == [1, 2]
    assert search({"multi_match": {"match_queries": [{**each, "fuzziness": 2} for each in columns]}}) == (400, 13)


@pytest.mark.parametrize(
    "column, kind, more, code",
    [
        ("nope", "BTREE", {}, 12),
        ("nope", "IVF_PQ", {}, 12),
        ("id", "NOPE", {}, 13),
        ("text", "IVF_FLAT", {}, 13),
        ("id", "FTS", {}, 13),
        ("vector", "IVF_FLAT", {"distance_type": "far"}, 13),
        ("text", "FTS", {"language": "Klingon"}, 13),
        ("", "BTREE", {}, 13),
        ("vector", "IVF_FLAT", {"action": "create_scalar_index"}, 13),
        ("id", "LABEL_LIST", {}, 13),
    ],
)
def test_invalid_index_requests_are_refused_with_their_code(
    home: DriverNode, column: str, kind: str, more: dict[str, str], code: int
) -> None:
    """A request for an invalid index is refused with its code."""
    assert make(home, table("lance", "s", "many"), column, kind, **more) == (404 if code == 12 else 400, code)


def test_index_names_are_unique_and_listed_in_order(home: DriverNode, t: str) -> None:
    """Index names are unique unless the request replaces the index. A missing index has code 6, and pages are ordered
    by name.
    """
    make(home, t, "id", "BTREE")
    assert make(home, t, "id", "BITMAP") == (409, 7)
    assert isinstance(make(home, t, "id", "BITMAP", replace=True), dict)
    make(home, t, "text", "FTS", name="words")
    for action in ("stats", "drop"):
        assert failure_of(home.post(f"{t}/index/none/{action}")) == (404, 6)

    first = home.done("POST", f"{t}/index/list", {"limit": 1})
    second = home.done("POST", f"{t}/index/list", {"page_token": first["page_token"]})
    assert [each["index_name"] for part in (first, second) for each in part["indexes"]] == ["id_idx", "words"]
    assert "page_token" not in second
