# SPDX-License-Identifier: Apache-2.0
"""Queries over Lance REST, in the protocol's format and in that of LanceDB's remote clients."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg.wire import node_over
from tests.rooms.lance.http.wire import failure_of, fill, make_space, rows_of, table

T = table("lance", "s", "t")
NEAR = [1.0, 0.0]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a table of three rows."""
    with node_over(tmp_path_factory.mktemp("queries")) as node:
        make_space(node, "lance", "s")
        fill(node, "lance", "s", "t")
        yield node


def ids(answer: DriverAnswer) -> list[object]:
    """Return the ids of the results, in order."""
    return [row["id"] for row in rows_of(answer)]


def ask(node: DriverNode, **body: object) -> DriverAnswer:
    """Query the table."""
    return node.post(f"{T}/query", body)


@pytest.mark.parametrize(
    "body, expected",
    [
        ({"k": 10, "vector": {}}, [1, 2, 3]),
        ({"k": 10, "vector": {"single_vector": []}, "filter": "id > 1"}, [2, 3]),
        ({"k": 10, "vector": []}, [1, 2, 3]),
        ({"k": 2, "vector": [], "offset": 1}, [2, 3]),
        ({"k": 0, "vector": {}}, []),
        ({"vector": None}, [1, 2, 3]),
        ({"k": 18446744073709551615, "vector": []}, [1, 2, 3]),
        ({"k": 2, "vector": {"single_vector": NEAR}}, [2, 3]),
        ({"k": 2, "vector": NEAR, "vector_column": "vector"}, [2, 3]),
        ({"k": 1, "vector": NEAR, "offset": 1}, [3]),
        ({"k": 1, "vector": NEAR, "filter": "id != 2", "prefilter": True}, [3]),
        ({"k": 1, "vector": NEAR, "filter": "id != 2", "prefilter": False}, []),
        ({"k": 1, "vector": NEAR, "distance_type": "Cosine", "bypass_vector_index": True}, [2]),
        ({"k": 9, "vector": NEAR, "upper_bound": 1.5}, [2, 3]),
        ({"k": 1, "vector": {"multi_vector": [NEAR, [0.0, 1.0]]}}, [2, 1]),
        ({"k": 1, "vector": [NEAR, [0.0, 1.0]]}, [2, 1]),
        (
            {
                "k": 1,
                "vector": NEAR,
                "nprobes": 20,
                "minimum_nprobes": 20,
                "maximum_nprobes": 0,
                "refine_factor": None,
                "version": 1,
            },
            [2],
        ),
    ],
)
def test_vectors_filters_and_versions_select_rows(
    home: DriverNode, body: dict[str, object], expected: list[object]
) -> None:
    """Vectors, filters, pages and versions select rows in both clients' formats."""
    assert ids(ask(home, **body)) == expected


@pytest.mark.parametrize(
    "columns, expected",
    [
        (["id"], {"id": 2}),
        ({"column_names": ["id"]}, {"id": 2}),
        ({"column_aliases": {"twice": "id * 2"}}, {"twice": 4}),
        ([["twice", "id * 2"]], {"twice": 4}),
        ({"twice": "id * 2"}, {"twice": 4}),
    ],
)
def test_columns_may_be_names_or_expressions(home: DriverNode, columns: object, expected: dict[str, object]) -> None:
    """Columns may be names or expressions; the distance is always returned, the row id on request."""
    (row,) = rows_of(ask(home, k=1, vector=NEAR, columns=columns, with_row_id=True))

    assert row == {**expected, "_distance": 0.0, "_rowid": 1}


@pytest.mark.parametrize(
    "body, expected",
    [
        ({"k": -1}, (400, 13)),
        ({"k": 1, "offset": -1}, (400, 13)),
        ({"vector": NEAR}, (400, 13)),
        ({"k": 1, "vector": [1.0, 2.0, 3.0]}, (400, 13)),
        ({"k": 1, "vector": [1.0, [2.0]]}, (400, 13)),
        ({"k": 1, "vector": NEAR, "vector_column": "nope"}, (404, 12)),
        ({"k": 1, "vector": NEAR, "distance_type": "far"}, (400, 13)),
        ({"k": 1, "filter": "nope > 1"}, (404, 12)),
        ({"k": 1, "filter": "id >"}, (400, 13)),
        ({"k": 1, "columns": ["nope"]}, (404, 12)),
        ({"k": 1, "columns": [["a"]]}, (400, 13)),
        ({"k": 1, "columns": {"column_names": "a"}}, (400, 13)),
        ({"k": 1, "columns": {"column_aliases": {"x": "id +"}}}, (400, 13)),
        ({"k": 1, "version": 9}, (404, 11)),
        ({"k": 1, "branch": "b"}, (404, 22)),
        ({"k": 1, "full_text_query": {}}, (400, 13)),
        ({"k": 1, "full_text_query": {"string_query": {"query": "cat"}}}, (400, 13)),
        ({"k": 200_000, "vector": NEAR}, (400, 13)),
        ({"k": 1, "full_text_query": {"structured_query": {"query": {"match": {}, "phrase": {}}}}}, (400, 13)),
        ({"k": "many"}, (400, 13)),
    ],
)
def test_invalid_queries_are_refused_with_their_code(
    home: DriverNode, body: dict[str, object], expected: tuple[int, int]
) -> None:
    """An invalid query is refused with its code before the answer begins."""
    assert failure_of(ask(home, **body)) == expected


def test_long_answer_is_one_valid_arrow_file(home: DriverNode) -> None:
    """The pieces of a long answer form one valid Arrow file."""
    rows = pa.table({"id": pa.array(range(200_000), pa.int64()), "text": ["some words"] * 200_000})
    fill(home, "lance", "s", "long", rows=rows)

    answer = home.post(f"{table('lance', 's', 'long')}/query", {"k": 1 << 40, "vector": []})

    assert pa.ipc.open_file(answer.body).read_all().equals(rows)


def test_multi_vector_rows_have_their_vector_index(home: DriverNode) -> None:
    """Each row of a query with several vectors has the index of its vector."""
    rows = rows_of(ask(home, k=1, vector={"multi_vector": [NEAR, [0.0, 1.0]]}, columns=["id"]))

    assert [(row["query_index"], row["id"]) for row in rows] == [(0, 2), (1, 1)]


def test_each_of_several_vectors_has_its_page(home: DriverNode) -> None:
    """The fields k and offset select a page of the rows of each vector. An order sorts rows, but not those of two
    merged searches.
    """
    rows = rows_of(ask(home, k=1, offset=1, vector=[NEAR, [0.0, 1.0]], columns=["id"]))

    assert [(row["query_index"], row["id"]) for row in rows] == [(0, 3), (1, 3)]
    order = [{"column_name": "id", "ascending": False}]
    assert ids(ask(home, k=9, vector=[], order_by=order)) == [3, 2, 1]
    words = {"string_query": {"query": "cat", "columns": ["text"]}}
    assert failure_of(ask(home, k=9, vector=NEAR, full_text_query=words, order_by=order)) == (400, 13)
    assert failure_of(ask(home, k=9, vector=[], order_by=[{"column_name": "nope"}])) == (404, 12)


def test_multivectors_are_compared_at_once(home: DriverNode) -> None:
    """A query with several vectors of a column with several vectors per row returns each row once, on each page."""
    several = pa.array([[[0.0, 0.0]], [[1.0, 0.0], [5.0, 5.0]], [[9.0, 9.0]]], pa.list_(pa.list_(pa.float32(), 2)))
    fill(home, "lance", "s", "several", rows=pa.table({"id": [1, 2, 3], "pair": several}))

    def page(offset: int) -> list[dict[str, object]]:
        body = {"k": 2, "offset": offset, "vector": [[1.0, 0.0], [5.0, 5.0]], "columns": ["id"]}
        return rows_of(home.post(f"{table('lance', 's', 'several')}/query", body))

    assert [row.keys() for row in page(0)] == [{"id", "_distance"}] * 2
    assert [row["id"] for row in [*page(0), *page(2)]] == [2, 1, 3]


def test_query_plans_and_analyses_are_returned_as_text(home: DriverNode) -> None:
    """Query plans and analyses are returned as text. An invalid query is refused with its code."""
    plan = home.post(f"{T}/explain_plan", {"query": {"k": 1, "vector": [], "filter": "id > 1"}, "verbose": True}).json()
    ran = home.post(f"{T}/analyze_plan", {"k": 1, "vector": NEAR}).json()

    assert "full_filter=id > Int64(1)" in plan
    assert "metrics=" in ran
    assert failure_of(home.post(f"{T}/explain_plan", {"query": {"k": 1, "filter": "nope > 1"}})) == (404, 12)
    assert failure_of(home.post(f"{T}/explain_plan", {})) == (400, 13)


@pytest.mark.parametrize(
    "vector", [[1] * 100_001, {"single_vector": [1] * 100_001}, {"multi_vector": [[1] * 50_001] * 2}]
)
def test_number_of_vector_items_is_limited(home: DriverNode, vector: object) -> None:
    """The number of vector items is limited, because the event loop validates each of them."""
    answer = ask(home, k=1, vector=vector)

    assert answer.status == 400
    assert b"at most 100000 numbers" in answer.body
