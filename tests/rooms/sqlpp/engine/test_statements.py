# SPDX-License-Identifier: Apache-2.0
"""Statements executed by Spark for a real server: their results, the rows that they write, and refusals."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from bench.cpu import descendants
from limnos.rooms.sqlpp.language.errors import DuplicateKey, SqlppError
from limnos.rooms.sqlpp.language.evaluator import results
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.jobs import DatasetRef, ExternalSource, type_of
from limnos.rooms.sqlpp.language.lookups import LookupIndex
from limnos.rooms.sqlpp.language.relations import UntranslatableExpression
from limnos.rooms.sqlpp.language.stored import object_shaper, storage_form_of_record
from tests.rooms.sqlpp.language.relations import relation_queries
from tests.rooms.sqlpp.language.relations.random_queries import Queries

if TYPE_CHECKING:
    from tests.rooms.sqlpp.engine.conftest import Do
    from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

pytestmark = [pytest.mark.spark, pytest.mark.integration]
TYPE = (
    "{ id: bigint, name: string?, n: integer?, seen: datetime?, tags: [string]?, home: closed { zip: string, city:"
    " string? }? }"
)
PEOPLE = """[
  {'id': 1, 'name': 'Ann', 'n': 3, 'tags': ['x', 'y'], 'home': {'zip': '1'}, 'pay': 10.5},
  {'id': 2, 'name': null, 'n': -7, 'seen': datetime('2020-01-02T03:04:05.678'), 'more': {'of': [date('2012-01-01'), {{1}}]}},
  {'id': 3, 'name': 'Bob', 'n': 3, 'home': {'zip': '2', 'city': null}, 'pay': 'much'},
  {'id': 4, 'name': 'ann', 'tags': []},
  {'id': 9007199254740993, 'name': '', 'n': 0, 'seen': datetime('1969-12-31T23:59:59.999')}
]"""


@pytest.fixture(scope="module")
def people(asking: EngineDataverse, do: Do) -> list[object]:
    """A dataset of five objects; as JSON, in the order of their keys."""
    asking.make("people", TYPE, "id")
    do(asking.insert("people", PEOPLE))
    objects: list[object] = do(asking.query("select value p from people p order by p.id"))
    return objects


def test_inserted_objects_are_read_unchanged(people: list[object]) -> None:
    """Inserted objects are read unchanged, with MISSING, NULL, undeclared fields, and integers that a double cannot
    represent.
    """
    assert people == [
        {"id": 1, "name": "Ann", "n": 3, "tags": ["x", "y"], "home": {"zip": "1"}, "pay": 10.5},
        {"id": 2, "name": None, "n": -7, "seen": "2020-01-02T03:04:05.678", "more": {"of": ["2012-01-01", [1]]}},
        {"id": 3, "name": "Bob", "n": 3, "home": {"zip": "2", "city": None}, "pay": "much"},
        {"id": 4, "name": "ann", "tags": []},
        {"id": 9007199254740993, "name": "", "n": 0, "seen": "1969-12-31T23:59:59.999"},
    ]


QUERIES = [
    "select p.id from people p where p.n = 3 and p.name < 'B'",
    "select p.id from people p where p.id = 9007199254740993.0",
    "select p.id from people p where p.id in [1, 4.0, 7]",
    "select p.id, p.name is missing as m, p.name is null as u from people p where p.id <= 4",
    "select p.id from people p where p.seen >= datetime('2020-01-02T03:04:05.678')",
    "select p.id from people p where p.home.zip between '1' and '2'",
    "select p.id from people p where p.pay > 10",
    "select value count(*) from people p",
    "select value [count(p.n), sum(p.n), min(p.name)] from people p",
    "select p.id, sum(p.n * integer('700000000')) over (order by p.id) as s from people p where p.n = 3 order by p.id",
    (
        "select p.n, sum(p.n * integer('700000000')) as s, avg(p.n * integer('700000000')) as a from people p where p.n"
        " = 3 group by p.n"
    ),
    "select p.n, count(*) as c, array_agg(p.id) as ids from people p group by p.n order by p.n",
    (
        "select n, count(distinct p.name) as c, max(p.seen) as m from people p group by p.n as n having count(*) > 0"
        " order by n"
    ),
    "select count(*) as c, min(p.id) as l from people p where p.seen < datetime('2000-01-01T00:00:00')",
    "select zip, count(*) as c from people p group by p.home.zip as zip",
    "select p.id, t from people p unnest p.tags as t order by p.id, t",
    "select p.id, q.id as other from people p join people q on p.n = q.n and p.id < q.id",
    (
        "select p.id, q.pay, initcap(q.name) as name, q.more.of[0] as first from people p join people q on p.n = q.n"
        " order by p.id, q.id"
    ),
    "select p.id, q.id as other from people p left join people q on q.n = -p.n order by p.id limit 3",
    "select value (select value q.id from people q where q.n = p.n order by q.id) from people p order by p.id",
    "select value some t in p.tags satisfies t = 'y' from people p order by p.id",
    "select p.id from people p where p.name like '%nn' order by p.id desc",
    "array_count((select value p from people p))",
    "select value p from people p limit 0",
    # Spark's planner fails if it pushes these conditions to a table, because a part of each is always unknown.
    (
        "select value p.id from people p where ((p.name < p.home.zip) and (p.name > p.n)) >= ((p.name is distinct from"
        " p.name) or (3.0 = 3.0))"
    ),
    (
        "select value p.id from people p where not (not (p.n is distinct from 9007199254740992.0)) order by p.id limit"
        " 2 offset 1"
    ),
    (
        "select k, count(p.n) as c from people p where ((date('2020-01-31') <= null) or (p.n >= -2.5)) is not null"
        " group by get_year(date('2020-01-31')) as k"
    ),
]


@pytest.mark.parametrize(
    "text, names",
    [
        ("select p.pay, p.name, p.n + 1 as m from people p where p.id = 1", "name m pay"),
        ("select p.pay, q.name, q.n from people p, people q where p.n = q.n and p.id = 1 and q.id = 3", "name n pay"),
        ("select p.more as k, count(*) as c, sum(p.n) as s from people p where p.n = 3 group by p.more", "c s"),
        (
            (
                "select p.pay, upper(p.name) as u, (select value 1 + q.n from people q where q.id = p.id) as l from"
                " people p where p.name = 'Ann' order by p.id"
            ),
            "u l pay",
        ),
    ],
)
def test_spark_and_evaluator_order_fields_alike(
    asking: EngineDataverse, do: Do, people: list[object], text: str, names: str
) -> None:
    """If fields are not ordered, results of Spark and of the evaluator have the same order of fields and the same
    values.
    """
    job = asking.job(text)
    (fields,) = do(asking.run(structs.replace(job, ordered_fields=False)))
    (ordered,) = do(asking.run(job))

    assert list(fields) == names.split()
    assert fields == ordered


@pytest.mark.parametrize("text", QUERIES)
def test_spark_and_evaluator_return_same_results(
    asking: EngineDataverse, do: Do, people: list[object], text: str
) -> None:
    """A query that is pushed down to Spark gives the same results as the evaluator over the same objects."""
    job = asking.job(text)
    (source,) = results_of(asking, PEOPLE)
    shape = object_shaper(storage_form_of_record(type_of(TYPE), (("id",),)))
    objects = [shape(one) for one in source]  # type: ignore[union-attr]

    spark_results = do(asking.run(job))

    bound = asking.bound(text)
    expected = [json.loads(json_text(value)) for value in results(bound, lambda *_: objects)]
    assert sorted(spark_results, key=str) == sorted(expected, key=str)
    if "order by" in text:
        assert spark_results == expected


RANDOM = int(os.environ.get("LIMNOS_TEST_SPARK_QUERIES", "15"))


def test_random_queries_on_spark_match_evaluator(asking: EngineDataverse, do: Do) -> None:
    """Random queries on Spark give the same results as the evaluator. `LIMNOS_TEST_SPARK_QUERIES` is their number; the
    complete check uses 2,000.
    """
    for name, type_ in (("orders", relation_queries.ORDERS), ("people", relation_queries.PEOPLE)):
        asking.make(f"random_{name}", type_, "id")
        do(asking.insert(f"random_{name}", relation_queries.HELD[name]))
    queries, failures, left = Queries(41), [], RANDOM

    while left:
        text = queries.query()
        try:
            relation_queries.rewritten(text)
            expected = relation_queries.by_evaluator(text)
        except (UntranslatableExpression, SqlppError):
            continue
        left -= 1
        try:
            spark_results = do(asking.query(re.sub(r"\b(from|join|,) (orders|people) ", r"\1 random_\2 ", text)))
        except SqlppError as error:
            failures.append(f"{text}: {error}")
            continue
        if not relation_queries.same(
            map(json.dumps, spark_results), expected, ordered="order by" in text and "over (" not in text
        ):
            failures.append(text)

    assert failures == []


def test_evaluator_filters_if_spark_planner_fails(asking: EngineDataverse, do: Do) -> None:
    """If Spark's planner fails on a condition, in the query and in its pushed part, the evaluator reads the objects and
    filters them.
    """
    asking.make("pairs", "{ id: bigint, age: integer? }", "id")
    do(asking.insert("pairs", "[{'id': 1, 'age': 3}, {'id': 3, 'age': 4}, {'id': 7}]"))
    older = "select value q.id from pairs q where q.age is distinct from -2.5"

    ids = do(asking.query(f"select value p.id from pairs p where p.age not in ({older})"))

    assert ids == [3]


def test_many_results_keep_requested_order(asking: EngineDataverse, do: Do) -> None:
    """More results than fit in one partition or batch keep the requested order; a reader that stops after the first has
    no effect on others.
    """
    asking.make("many", "{ id: bigint, day: date, tags: [string]? }", "id")
    do(
        asking.insert(
            "many", "(select value {'id': i, 'day': date('2020-01-01'), 'tags': ['a', null]} from range(1, 30000) as i)"
        )
    )

    rows = do(asking.query("select value [m.id, m.day, m.tags] from many m order by m.id desc"))
    first = do(_first(asking, "select value m from many m"))

    assert [row[0] for row in rows] == list(range(30000, 0, -1))  # type: ignore[index]
    assert rows[0] == [30000, "2020-01-01", ["a", None]]
    assert b'"id":' in first
    assert do(asking.query("select value count(*) from many m")) == [30000]


async def _first(asking: EngineDataverse, text: str) -> bytes:
    """Return the first result of a query, and discard the others."""
    job = await asyncio.to_thread(asking.pinned, asking.job(text))
    async with contextlib.aclosing(asking.engine.run(job)) as rows:
        return await anext(rows)


def test_a_statement_that_takes_all_memory_is_refused(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """The error for a statement that exceeds the memory says so, and the same engine executes the next statement."""
    before = asking.engine._process

    with pytest.raises(SqlppError, match="needs more memory"):
        do(
            asking.query(
                "select value len((select value repeat(p.name, 300000) || to_string(r) from range(1, 100000) as r))"
                " from people p where p.id = 1"
            )
        )

    assert do(asking.query("select value count(*) from people p")) == [5]
    assert asking.engine._process is before


def test_engine_has_namespaces_of_its_own(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """The engine and its Java process are in a PID namespace and a file tree of their own, where the server's data have
    no path.
    """
    assert do(asking.query("select value count(*) from people p")) == [5]
    process = asking.engine._process
    assert process is not None
    inner = [pid for pid in descendants([process.pid]) if pid != process.pid]
    spaces = {Path(f"/proc/{pid}/ns/pid").readlink() for pid in inner}
    trees = [Path(f"/proc/{pid}/root{asking.server.data}/admin.token").exists() for pid in inner]

    assert "java" in [Path(f"/proc/{pid}/comm").read_text().strip() for pid in inner]
    assert (len(spaces), Path("/proc/self/ns/pid").readlink() in spaces, any(trees)) == (1, False, False)
    assert (asking.server.data / "admin.token").exists()


def test_an_engine_without_its_java_machine_is_replaced(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """If the Java process has ended, the caller is asked to retry, and the next statement gets another engine."""
    process = asking.engine._process
    assert process is not None
    (java,) = (pid for pid in descendants([process.pid]) if (Path("/proc") / str(pid) / "comm").read_text() == "java\n")
    os.kill(java, signal.SIGKILL)

    with pytest.raises(SqlppError, match="try again"):
        do(asking.query("select value count(*) from people p"))
    assert do(asking.query("select value count(*) from people p")) == [5]
    assert asking.engine._process is not process


def test_numeric_overflow_raises_sqlpp_error(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """A numeric overflow on Spark raises the error of SQL++."""
    with pytest.raises(SqlppError, match="ASX0007"):
        do(asking.query("select value p.id * 9007199254740993 from people p where p.id > 1000"))


def results_of(asking: EngineDataverse, text: str) -> list[object]:
    """Return the value of a constant expression."""
    return list(results(asking.bound(text), lambda *_: ()))


FEW_TYPE = """{ id: bigint, kind: string, day: date?, seen: datetime?, x: double?, f: float?, tags: [string]?, who: uuid?,
  home: { zip: string, n: integer? }? }"""
FEW = """[{'id': 1, 'kind': 'a', 'day': date('2020-02-29'), 'seen': datetime('1969-12-31T23:59:59.999'), 'x': 0.1, 'f': float('1.1'), 'tags': ['ä', null],
   'who': uuid('00000000-0000-0000-0000-000000000001'), 'home': {'zip': '1', 'what': [1]}, 'more': {'of': date('2012-01-01')}},
  {'id': 1, 'kind': 'b', 'x': null}, {'id': 2, 'kind': 'a', 'n': smallint('7')}]"""


def test_objects_added_by_library_match_in_spark_and_key_lookup(asking: EngineDataverse, do: Do) -> None:
    """Objects of every type that Iceberg's library adds are read equally by Spark and by a key lookup; an existing key
    is refused.
    """
    asking.make("few", FEW_TYPE, "id", "kind")
    do(asking.insert("few", FEW))
    files = [task.file.file_path for task in asking.table("few").scan().plan_files()]
    by_spark = do(asking.query("select value t from few t order by t.id, t.kind"))

    for one in by_spark:
        key = f"t.id = {one['id']} and t.kind = '{one['kind']}'"  # type: ignore[index]
        assert do(asking.query(f"select value t from few t where {key}")) == [one]
    shape = object_shaper(storage_form_of_record(type_of(FEW_TYPE), (("id",), ("kind",))))
    expected = [json.loads(json_text(shape(one))) for one in results_of(asking, FEW)[0]]  # type: ignore[union-attr]
    assert by_spark == expected
    assert len(files) == 1
    assert "/few-" in files[0]
    with pytest.raises(DuplicateKey):
        do(asking.insert("few", "[{'id': 3, 'kind': 'a'}, {'id': 2, 'kind': 'a'}]"))
    assert do(asking.query("select value t from few t where t.id = 3 and t.kind = 'a'")) == []
    do(asking.upsert("few", "[{'id': 2, 'kind': 'a', 'n': 8}, {'id': 3, 'kind': 'a'}]"))
    do(asking.delete("few", "t.id = 1 and t.kind = 'a'"))
    assert do(asking.query("select t.id, t.n from few t order by t.id, t.kind")) == [
        {"id": 1},
        {"id": 2, "n": 8},
        {"id": 3},
    ]
    assert do(asking.query("select value t.n from few t where t.id = 2.0 and t.kind = 'a'")) == [8]
    assert do(asking.query("select value count(*) from few t where t.id = 1 and t.kind = 'a'")) == [0]


def test_external_dataset_files_are_queried(asking: EngineDataverse, do: Do) -> None:
    """Files of an external dataset are read by its type, joined with datasets, and inserted into one; malformed lines
    are reported.
    """
    folder = next(Path(one) for one in asking.engine._start.writable) / "files"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("id,day,name\n1,2020-02-29,Ann\n2,,Bob\n")
    options = (("path", folder.as_uri()), ("format", "csv"), ("header", "true"))
    type_ = "{ id: bigint, day: date?, name: string? }"
    asking.refs["files"] = DatasetRef(
        path=("main", *asking.dataverse, "files"),
        type=type_,
        key=(),
        files=ExternalSource(adapter="localfs", options=options),
    )
    asking.make("loaded", type_, "id")

    rows = do(asking.query("select f.name, g.id as other from files f join files g on f.id = g.id + 1"))
    by_key = do(asking.query("select value f from files f where f.id = 1"))
    do(asking.insert("loaded", "(select value f from files f where f.id > 1)"))

    assert rows == [{"name": "Bob", "other": 1}]
    assert by_key == [{"id": 1, "day": "2020-02-29", "name": "Ann"}]
    assert do(asking.query("select value l from loaded l join files f on f.id = l.id")) == [{"id": 2, "name": "Bob"}]
    (folder / "b.csv").write_text("id,day,name\nx,,\n")
    with pytest.raises(SqlppError, match="ASX"):
        do(asking.query("select value count(*) from files f where f.id > 0"))


def test_values_unsupported_by_library_are_added_by_spark(asking: EngineDataverse, do: Do) -> None:
    """NaN, dates outside of Python's range, keys of other types and partitioned tables are added and found by Spark."""
    asking.make("strange", "{ id: double, day: date?, x: double? }", "id")
    do(asking.insert("strange", "{'id': 1.5, 'x': double('NaN'), 'day': date('-0044-03-15')}"))
    do(asking.insert("strange", "{'id': 2.0, 'x': double('INF')}"))

    rows = do(asking.query("select value t from strange t where t.id = 1.5"))

    assert rows == [{"id": 1.5, "x": "NaN", "day": "-0044-03-15"}]
    with pytest.raises(DuplicateKey):
        do(asking.insert("strange", "{'id': 2}"))


def test_duplicate_keys_are_refused(asking: EngineDataverse, do: Do) -> None:
    """An existing key, and a key that occurs twice, are refused and nothing is written; UPSERT uses the last object."""
    asking.make("keys", "{ id: bigint, box: { u: string } }", "id", "box.u")
    do(asking.insert("keys", "{'id': 1, 'box': {'u': 'a'}, 'v': 1}"))

    for text in (
        "[{'id': 2, 'box': {'u': 'a'}}, {'id': 1, 'box': {'u': 'a'}}]",
        "[{'id': 3, 'box': {'u': 'a'}}, {'id': 3, 'box': {'u': 'a'}}]",
    ):
        with pytest.raises(DuplicateKey, match=r"HYR0033: Inserting duplicate keys.*\"id\":"):
            do(asking.insert("keys", text))
    do(asking.insert("keys", "{'id': 1, 'box': {'u': 'b'}}"))
    do(asking.upsert("keys", "[{'id': 1, 'box': {'u': 'a'}, 'v': 2}, {'id': 1, 'box': {'u': 'a'}, 'v': 3}]"))

    assert do(asking.query("select value k from keys k order by k.box.u")) == [
        {"id": 1, "box": {"u": "a"}, "v": 3},
        {"id": 1, "box": {"u": "b"}},
    ]


def test_concurrent_insert_of_same_key_is_refused(asking: EngineDataverse, do: Do) -> None:
    """Of two concurrent statements that insert one key, one is refused; with different keys both succeed."""
    asking.make("raced", "{ id: bigint }", "id")

    async def race() -> list[object]:
        texts = ("[{'id': 1}, {'id': 2}]", "[{'id': 2}, {'id': 3}]", "{'id': 4}")
        return await asyncio.gather(*(asking.insert("raced", text) for text in texts), return_exceptions=True)

    outcomes = do(race())

    assert [type(one) for one in outcomes[:2]].count(DuplicateKey) == 1
    assert outcomes[2] == []
    ids = do(asking.query("select value r.id from raced r order by r.id"))
    assert ids in ([1, 2, 4], [2, 3, 4])


def test_delete_returning_and_generated_keys_work(asking: EngineDataverse, do: Do) -> None:
    """DELETE deletes matching objects; RETURNING returns the written objects; a key can be generated."""
    asking.make("made", "{ id: uuid }", "id", autogenerated=True)

    returned_rows = do(
        asking.insert("made", "[{'v': 1}, {'v': 2}, {'v': 3}]", returning="{'v': o.v, 'known': o.id is known}")
    )
    do(asking.delete("made", "t.v >= 2"))

    assert returned_rows == [{"v": v, "known": True} for v in (1, 2, 3)]
    assert do(asking.query("select value m.v from made m")) == [1]
    do(asking.insert("made", "{'id': uuid('5c848e5c-6b6a-498f-8452-8847a2957421'), 'v': 9}"))
    assert do(
        asking.query("select value m.v from made m where m.id = uuid('5c848e5c-6b6a-498f-8452-8847a2957421')")
    ) == [9]
    with pytest.raises(DuplicateKey):
        do(asking.insert("made", "[{'v': 1}, {'id': uuid('5c848e5c-6b6a-498f-8452-8847a2957421'), 'v': 9}]"))


def test_uuid_keys_are_compared_despite_differing_order(asking: EngineDataverse, do: Do) -> None:
    """Parquet orders UUIDs as unsigned bytes, Iceberg's library as signed numbers: bounds of files must not hide a
    key.
    """
    asking.make("named", "{ id: uuid }", "id")
    keys = [f"{first}0000000-0000-4000-8000-000000000000" for first in "0379bf"]
    do(asking.insert("named", "[" + ", ".join(f"{{'id': uuid('{one}')}}" for one in keys) + "]"))
    either = " or ".join(f"n.id = uuid('{one}')" for one in keys)
    assert do(asking.query(f"select value count(*) from named n where {either}")) == [6]
    for one in keys:
        assert do(asking.query(f"select count(*) c from named n where n.id = uuid('{one}') group by n.v")) == [{"c": 1}]

    for one in keys:
        with pytest.raises(DuplicateKey):
            do(asking.insert("named", f"{{'id': uuid('{one}'), 'v': 1}}"))
        do(asking.upsert("named", f"{{'id': uuid('{one}'), 'v': 2}}"))
    assert do(asking.query("select value count(*) from named n where n.v = 2")) == [6]
    for one in keys:
        assert do(asking.query(f"select value n.v from named n where n.id = uuid('{one}')")) == [2]
        assert do(asking.query(f"select n.v, count(*) c from named n where n.id = uuid('{one}') group by n.v")) == [
            {"v": 2, "c": 1}
        ]
        do(asking.delete("named", f"t.id = uuid('{one}')"))

    assert do(asking.query("select value count(*) from named")) == [0]


@pytest.mark.parametrize(
    "condition",
    [
        "r.price > 100.0",
        "r.price >= 100",
        "100.0 < r.price",
        "100 <= r.price",
        "not (r.price <= 100.0)",
        "not (r.price < 100)",
        "not (100.0 > r.price)",
        "r.price > 9007199254740992.0",
        "r.price >= double('NaN')",
        "not (r.price < double('NaN'))",
        "r.price > 50.0 * 2",
        "r.price > sqrt(10000.0)",
        "r.price - 0 > 100.0",
        "r.price not between 0 and 100",
        "not (r.price between 1.0 and 100.0)",
    ],
)
def test_nan_is_greater_than_numbers_despite_file_bounds(asking: EngineDataverse, do: Do, condition: str) -> None:
    """NaN is greater than any number, although Iceberg's file bounds exclude it."""
    if "reals" not in asking.refs:
        asking.make("reals", "{ id: bigint, price: double? }", "id")
        do(asking.insert("reals", "[{'id': 1, 'price': 1.5}, {'id': 2, 'price': double('NaN')}, {'id': 3}]"))

    assert do(asking.query(f"select value r.id from reals r where {condition}")) == [2]
    assert do(asking.query(f"select value count(*) from reals r where {condition}")) == [1]
    assert do(asking.query("select value is_nan(max(r.price)) from reals r")) == [True]
    some = f"some o in (select value r from reals r where {condition}) satisfies o.id > 1"
    assert do(asking.query(f"select value [r.id, {some}] from reals r order by r.id limit 1")) == [[1, True]]


def test_insert_with_invalid_object_writes_none(asking: EngineDataverse, do: Do) -> None:
    """If the last of many objects is invalid, none is written."""
    asking.make("typed", "closed { id: bigint, n: tinyint? }", "id")

    for text, code in (
        ("[{'id': 1}, {'id': 2, 'n': 128}]", "ASX0001"),
        ("[{'id': 1}, {'n': 1}]", "ASX0037"),
        ("[{'id': 1}, {'id': 2, 'x': 1}]", "ASX3058"),
        ("[{'id': 1}, 2]", "ASX0037"),
        ("[{'id': 1}, {'id': 9223372036854775807 + 1}]", "ASX0007"),
    ):
        with pytest.raises(SqlppError, match=code):
            do(asking.insert("typed", text))

    assert do(asking.query("select value t from typed t")) == []


def test_foreign_table_can_be_read_and_appended_to(asking: EngineDataverse, do: Do) -> None:
    """A table that SQL++ did not create can be read and appended to; without a key its objects cannot be changed."""
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "a", "required": False, "type": "decimal(5, 2)"},
            {"id": 2, "name": "B", "required": False, "type": "string"},
            {"id": 3, "name": "b", "required": False, "type": "timestamp"},
        ],
    }
    asking.rest("POST", "/iceberg/v1/lake.main/namespaces/sales%1Feast/tables", {"name": "other", "schema": schema})
    asking.refs["other"] = DatasetRef(path=("main", "sales", "east", "other"), type="", key=())

    do(asking.insert("other", "[{'a': 1.25, 'B': 'x'}, {'b': datetime('2020-01-01T00:00:00')}]"))

    assert do(asking.query("select value o from other o order by o.a")) == [
        {"b": "2020-01-01T00:00:00.000"},
        {"a": 1.25, "B": "x"},
    ]
    with pytest.raises(SqlppError, match="needs a dataset with a primary key"):
        do(asking.upsert("other", "{'a': 1}"))


def test_pyiceberg_reads_typed_columns_and_open_part(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """PyIceberg reads the table with typed columns and the open part as a string."""
    rows = asking.table("people").scan(row_filter="id < 3").to_arrow().to_pylist()

    assert [(row["id"], row["n"], row["tags"], row["_open"]) for row in sorted(rows, key=lambda row: row["id"])] == [
        (1, 3, ["x", "y"], '{"pay":10.5}'),
        (2, -7, None, '{"name":null,"more":{"of":[{"$date":"2012-01-01"},{"$multiset":[1]}]}}'),
    ]


def test_invalid_credential_affects_only_its_statement(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """A statement with an invalid credential is refused while a concurrent one succeeds."""
    with pytest.raises(SqlppError, match="A privilege that the statement needs"):
        do(asking.run(asking.job("select value p from people p", credential="lim_1_nothing")))

    assert do(asking.query("select value count(*) from people p")) == [5]


def test_a_deadline_ends_a_statement(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """A statement that exceeds its timeout gets an error; the engine executes the next statement."""
    hog = "select value count(*) from range(1, 3000) as a, range(1, 3000) as b, people p where a + b + p.n = 0"

    with pytest.raises(SqlppError, match="ASX0030"):
        do(asking.run(asking.job(hog, deadline_s=1)))

    assert do(asking.query("select value p.id from people p where p.id = 4")) == [4]


def test_cancelled_statement_does_not_delay_others(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """A cancelled statement gets an error, and a concurrent small statement is not delayed."""
    hog = asking.job(
        "select value count(*) from range(1, 3000) as a, range(1, 3000) as b, people p where a + b + p.n = 0"
    )

    async def cancel_statement() -> list[object]:
        task = asyncio.create_task(asking.run(hog))
        await asyncio.sleep(0.5)
        small = await asking.query("select value p.id from people p where p.id = 4")
        await asking.engine.cancel(hog.id)
        (error,) = await asyncio.gather(task, return_exceptions=True)
        return [*small, error.code]

    assert do(cancel_statement()) == [4, "ASX0041"]


def test_killed_engine_inserts_all_objects_or_none(asking: EngineDataverse, do: Do, people: list[object]) -> None:
    """If the engine is killed during an INSERT, the answer states what that means, and all objects exist or none."""
    asking.make("killed", "{ id: bigint }", "id")
    long = (
        "select value {'id': a} from range(1, 3000) as a, range(1, 3000) as b, people p where a = b + p.n - p.n and"
        " p.id = 4"
    )
    writing = asking.job(f"({long})", "insert", target="killed")

    async def kill() -> object:
        task = asyncio.create_task(asking.run(writing))
        await asyncio.sleep(0.7)
        process = asking.engine._process
        assert process is not None
        os.killpg(process.pid, 9)
        (error,) = await asyncio.gather(task, return_exceptions=True)
        return error

    error = do(kill())
    rows = asking.table("killed").scan().to_arrow().num_rows

    assert isinstance(error, SqlppError)
    assert "completely or not at all" in error.text
    assert rows in (0, 3_000)


def test_index_lookup_matches_spark_results(asking: EngineDataverse, do: Do) -> None:
    """An index finds objects by values and bounds; for many objects Spark finds the same ones."""
    ref = asking.make("indexed", "{ id: bigint, n: integer?, name: string? }", "id")
    do(asking.insert("indexed", "(select i as id, i % 100 as n, 'n' || to_string(i) as name from range(1, 300) as i)"))
    do(asking.upsert("indexed", "[{'id': 7, 'n': 1000, 'name': 'x'}, {'id': 301, 'n': null}]"))
    texts = (
        "select value t.id from indexed t where t.n = 5 and t.name > 'n2' order by t.id",
        "select value t.id from indexed t where t.n > 98.0 order by t.id",
        "select value t.id from indexed t where t.n in [7, 1000] order by t.id",
        "select value count(*) from indexed t where t.n >= 0",
        "select value [a.id, b.id] from indexed a, indexed b where a.n = 1000 and b.id = a.id + 0",
    )
    without = [do(asking.query(text)) for text in texts]

    asking.refs["indexed"] = structs.replace(ref, indexes=(LookupIndex("by_n", (("n",), ("name",))),))
    by_index = [do(asking.query(text)) for text in texts]

    assert by_index == without
    assert without == [[5, 205], [7, 99, 199, 299], [7, 107, 207], [300], [[7, 7]]]


def test_open_part_as_variant_is_read_unchanged(asking: EngineDataverse, do: Do) -> None:
    """Objects with an open part of type VARIANT are unchanged for every way to read and write; other engines see a
    VARIANT.
    """
    asking.make("loose", TYPE, "id", variant=True)
    do(asking.insert("loose", PEOPLE))
    do(
        asking.insert(
            "loose",
            "[{'id': 5, 'x': 1.0, 'y': -0.0, 'z': 0.1, 'big': 1e300, 'w': [1, 2.0, null, {'b': 1, 'a': missing}]}]",
        )
    )
    do(asking.upsert("loose", "[{'id': 1, 'pay': float('2')}, {'id': 6, 'b': {{1, date('2020-01-01')}}}]"))
    do(asking.delete("loose", "t.pay = 'much'"))

    rows = do(asking.query("select value p from loose p order by p.id"))
    keyed = do(asking.query("select value p.more from loose p where p.id = 2"))
    typed = do(
        asking.query(
            "select value [get_type(p.x), get_type(p.w[1]), get_type(p.z), p.x, p.big] from loose p where p.id = 5"
        )
    )
    null = do(asking.query("select value p.id from loose p where p.name is null order by p.id"))
    response = asking.rest("GET", "/iceberg/v1/lake.main/namespaces/sales%1Feast/tables/loose")

    assert rows == [
        {"id": 1, "pay": 2.0},
        {"id": 2, "name": None, "n": -7, "seen": "2020-01-02T03:04:05.678", "more": {"of": ["2012-01-01", [1]]}},
        {"id": 4, "name": "ann", "tags": []},
        {"id": 5, "big": 1e300, "w": [1, 2.0, None, {"b": 1}], "x": 1.0, "y": -0.0, "z": 0.1},
        {"id": 6, "b": [1, "2020-01-01"]},
        {"id": 9007199254740993, "name": "", "n": 0, "seen": "1969-12-31T23:59:59.999"},
    ]
    assert (keyed, typed, null) == ([{"of": ["2012-01-01", [1]]}], [["double", "double", "double", 1.0, 1e300]], [2])
    assert response["metadata"]["schemas"][0]["fields"][-1]["type"] == "variant"  # type: ignore[index]
