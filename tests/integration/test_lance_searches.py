# SPDX-License-Identifier: Apache-2.0
"""Searches and new columns by LanceDB's remote client: the server answers as LanceDB's library does for local files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import lancedb.query
import pyarrow as pa
import pytest

from limnos.client import Client
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
by: Any = lancedb.query
"""LanceDB's kinds of queries; their declarations need a plugin of the type checker."""
WORDS = ("love", "format", "cat", "dog", "lake", "lance", "table", "fox")
COUNT = 60


def _text(number: int, length: int) -> str:
    """Return words that depend on the number alone, so that scores differ between rows."""
    return " ".join(WORDS[(number * number + number * place + place) % len(WORDS)] for place in range(length))


ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "s": [_text(number, 3 + number % 5) for number in range(COUNT)],
        "s2": [None if number % 7 == 0 else _text(3 * number + 1, 2 + number % 9) for number in range(COUNT)],
        "group": pa.array([None if number % 5 == 0 else number % 4 for number in range(COUNT)], pa.int32()),
        "vector": pa.array(
            [[number * 1.25, float((number * 7) % 11), 1.0] for number in range(COUNT)], pa.list_(pa.float32(), 3)
        ),
        "several": pa.array(
            [[[float(number), 1.0 + number % 3], [float(number * 3 % 17), 2.0]] for number in range(COUNT)],
            pa.list_(pa.list_(pa.float32(), 2)),
        ),
    }
)
Table = Any  # LanceDB's, local or remote
Query = Any  # LanceDB's builder
Search = Callable[[Table], Query]


def make_space(server: LiveServer, name: str) -> None:
    """Create a namespace of the catalog `lance`."""
    with Client(server.uri, token=server.token) as client:
        client.namespaces.create(f"lance.{name}")


@pytest.fixture(scope="module")
def tables(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Table]:
    """The same table twice: on the server, and in a local directory."""
    make_space(server, "searches")
    remote = lancedb.connect("db://lance", api_key=server.token, host_override=f"{server.uri}/lance")
    local = lancedb.connect(tmp_path_factory.mktemp("local"))
    pair = remote.create_table("t", ROWS, namespace_path=["searches"]), local.create_table("t", ROWS)
    for table in pair:
        for column in ("s", "s2"):
            table.create_fts_index(column, with_position=True, stem=False)
    return pair


def rows_of(table: Table, search: Search, columns: object = ("id",)) -> list[dict[str, object]]:
    """Return the rows of a search. Rows of equal score are in the order of their ids."""
    query = search(table)
    rows = (query.select(list(columns)) if isinstance(columns, tuple) else query.select(columns)).to_arrow().to_pylist()
    for row in rows:
        for name in ("_score", "_distance"):
            if row.get(name) is not None:
                row[name] = round(row[name], 3)
    return rows


def text(query: object, **options: object) -> Search:
    """A full-text search."""
    return lambda table: table.search(query, query_type="fts", **options).limit(COUNT)


LOVE, CAT = by.MatchQuery("love", "s"), by.MatchQuery("cat", "s2")
TEXTS: dict[str, Search] = {
    "words in all indexed columns": text("love cat"),
    "words in one column": text("love cat", fts_columns="s"),
    "words in two columns": text("love cat", fts_columns=["s", "s2"]),
    "phrase in one column": text('"love format"', fts_columns="s"),
    "match": text(by.MatchQuery("love lake", "s")),
    "match of both words": text(by.MatchQuery("love lake", "s", operator="AND")),
    "match with two edits": text(by.MatchQuery("lvoe", "s", fuzziness=2)),
    "match with a fixed prefix": text(by.MatchQuery("laje", "s", fuzziness=2, prefix_length=2)),
    "match with one expansion": text(by.MatchQuery("lade", "s", fuzziness=2, max_expansions=1)),
    "match with a boost": text(
        by.BooleanQuery([(by.Occur.SHOULD, by.MatchQuery("love", "s", boost=9.0)), (by.Occur.SHOULD, CAT)])
    ),
    "phrase": text(by.PhraseQuery("love format", "s")),
    "phrase with slop": text(by.PhraseQuery("love cat", "s", slop=3)),
    "boost": text(by.BoostQuery(LOVE, by.MatchQuery("cat", "s"), negative_boost=0.1)),
    "boost of a phrase": text(by.BoostQuery(by.PhraseQuery("love format", "s"), CAT)),
    "words in boosted columns": text(by.MultiMatchQuery("love cat", ["s", "s2"], boosts=[1.0, 4.0])),
    "must and must not": text(by.BooleanQuery([(by.Occur.MUST, LOVE), (by.Occur.MUST_NOT, CAT)])),
    "should": text(by.BooleanQuery([(by.Occur.SHOULD, LOVE), (by.Occur.SHOULD, CAT)])),
    "and": text(LOVE & by.MatchQuery("lake", "s")),
    "or": text(LOVE | CAT),
    "boolean in a boolean": text(
        by.BooleanQuery(
            [
                (by.Occur.MUST, by.BooleanQuery([(by.Occur.SHOULD, LOVE), (by.Occur.SHOULD, CAT)])),
                (by.Occur.MUST_NOT, by.PhraseQuery("dog lake", "s")),
            ]
        )
    ),
    "filter before": lambda table: text(LOVE)(table).where("id > 20", prefilter=True),
    "filter after": lambda table: text(LOVE)(table).where("id > 20", prefilter=False),
    "pages": lambda table: text(LOVE)(table).limit(5).offset(3),
    "row ids": lambda table: text(LOVE)(table).with_row_id(True),
}
ONE, TWO = [4.0, 3.0, 1.0], [[4.0, 3.0, 1.0], [31.0, 9.0, 0.0]]
PAIR = [[4.0, 3.0], [9.0, 2.0]]


def near(vector: object, column: str = "vector") -> Search:
    """A vector search."""
    return lambda table: table.search(vector, vector_column_name=column).limit(7)


VECTORS: dict[str, Search] = {
    "one": near(ONE),
    "one with an offset": lambda table: near(ONE)(table).offset(4),
    "several": near(TWO),
    "several with an offset": lambda table: near(TWO)(table).limit(3).offset(2),
    "several with a filter": lambda table: near(TWO)(table).where("id % 3 = 0").offset(1),
    "several by cosine": lambda table: near(TWO)(table).distance_type("cosine"),
    "several in a range": lambda table: near(TWO)(table).distance_range(0.5, 100.0),
    "several with row ids": lambda table: near(TWO)(table).with_row_id(True),
    "multivectors": near(PAIR, "several"),
    "multivectors by cosine": lambda table: near(PAIR, "several")(table).distance_type("cosine"),
    "multivectors with an offset": lambda table: near(PAIR, "several")(table).offset(3),
    "one vector of multivectors": near(PAIR[0], "several"),
}


@pytest.mark.parametrize("search", TEXTS.values(), ids=TEXTS.keys())
def test_text_searches_equal_those_of_local_files(tables: tuple[Table, Table], search: Search) -> None:
    """Each kind of full-text query with each parameter finds the rows and scores of the local library."""
    remote, local = (sorted(map(str, rows_of(table, search))) for table in tables)

    assert remote == local
    assert local


@pytest.mark.parametrize("columns", [("id",), ("id", "vector"), {"twice": "id * 2"}], ids=str)
@pytest.mark.parametrize("search", VECTORS.values(), ids=VECTORS.keys())
def test_vector_searches_equal_those_of_local_files(
    tables: tuple[Table, Table], search: Search, columns: object
) -> None:
    """One vector, several vectors and multivectors find the rows of the local library, in its order, on each page."""
    remote, local = (rows_of(table, search, columns) for table in tables)
    key = (
        "query_index" if "query_index" in local[0] else "_distance"
    )  # the local library mixes searches of several vectors

    assert sorted(remote, key=lambda row: row[key]) == sorted(local, key=lambda row: row[key])


@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("ascending", [True, False])
def test_rows_are_sorted_as_in_local_files(tables: tuple[Table, Table], ascending: bool, nulls_first: bool) -> None:
    """A scan with an order returns its rows in that order, with nulls at the requested end."""
    order = [
        by.ColumnOrdering(column_name="group", ascending=ascending, nulls_first=nulls_first),
        by.ColumnOrdering(column_name="id", ascending=False),
    ]
    remote, local = (
        table.search().where("id > 3").order_by(order).limit(20).offset(2).to_arrow().to_pylist() for table in tables
    )

    assert remote == local


def test_rows_are_taken_by_position_as_from_local_files(tables: tuple[Table, Table]) -> None:
    """Rows are taken by offsets and by row ids."""
    remote, local = tables

    assert (
        remote.take_offsets([5, 2]).to_arrow()["id"].to_pylist()
        == local.take_offsets([5, 2]).to_arrow()["id"].to_pylist()
    )
    assert remote.take_row_ids([7]).to_arrow().to_pylist() == local.take_row_ids([7]).to_arrow().to_pylist()


def test_full_text_index_has_all_options_of_the_client(server: LiveServer, tmp_path: Path) -> None:
    """An index of n-grams with stop words finds what the same index of the local library finds."""
    make_space(server, "options")
    remote = lancedb.connect("db://lance", api_key=server.token, host_override=f"{server.uri}/lance")
    tables = (
        remote.create_table("t", ROWS, namespace_path=["options"]),
        lancedb.connect(tmp_path).create_table("t", ROWS),
    )
    matches = []
    for table in tables:
        table.create_fts_index(
            "s",
            base_tokenizer="ngram",
            ngram_min_length=2,
            ngram_max_length=4,
            prefix_only=True,
            stem=False,
            remove_stop_words=False,
        )
        matches.append([sorted(row["id"] for row in rows_of(table, text(word))) for word in ("lo", "ve", "form", "la")])

    assert matches[0] == matches[1]


@pytest.mark.parametrize(
    "columns",
    [
        pa.field("z", pa.list_(pa.float32(), 3)),
        [pa.field("a", pa.int32()), pa.field("b", pa.utf8())],
        pa.schema(
            [
                pa.field("when", pa.timestamp("us", "UTC"), metadata={"unit": "us"}),
                pa.field("pair", pa.struct([("x", pa.int8())])),
            ]
        ),
        {"twice": "id * 2", "both": "concat(s, s)"},
    ],
    ids=["field", "fields", "schema", "expressions"],
)
def test_columns_are_added_as_to_local_files(
    server: LiveServer, tmp_path: Path, columns: object, request: pytest.FixtureRequest
) -> None:
    """Columns are added by fields, by a schema and by expressions, with the types and values of the local library."""
    name = f"added_{request.node.callspec.id}"
    make_space(server, name)
    db = lancedb.connect("db://lance", api_key=server.token, host_override=f"{server.uri}/lance")
    rows = ROWS.slice(0, 4).select(["id", "s"])
    remote = db.create_table("t", rows, namespace_path=[name])
    local = lancedb.connect(tmp_path).create_table("t", rows)

    versions = [table.add_columns(columns).version for table in (remote, local)]

    assert versions[0] == versions[1] == 2
    assert remote.schema.equals(local.schema, check_metadata=True)
    assert remote.search().to_arrow().equals(local.search().to_arrow())
