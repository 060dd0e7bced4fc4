# SPDX-License-Identifier: Apache-2.0
"""Changes of a few objects without Spark: commits of rows and position deletes, with the same results as Spark's
MERGE.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs
from pyiceberg.types import LongType

from limnos.rooms.sqlpp.language.errors import DuplicateKey
from limnos.rooms.sqlpp.language.functions.table import FUNCTIONS
from limnos.rooms.sqlpp.language.jobs import ExternalSource

if TYPE_CHECKING:
    from tests.rooms.sqlpp.engine.conftest import Do
    from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

TEXTS = (
    "1994-01-01",
    "1996-02-29",
    "1995-02-29",
    "19940131",
    "1994-0131",
    "0000-01-01",
    "-0044-03-15",
    " 1994-05-06 ",
    "\u00a01994-05-06\n",
    "1994-05-06T23:59:59",
    "1994-05-06 01:02:03.5Z",
    "1994-05-06T010203999+0130",
    "1994-12-31T23:30:00-01:00",
    "1994-01-01T00:30:00+01:00",
    "1994-01-01T00:30:00+99:99",
    "1994-05-06T24:00:00",
    "12:00:00",
    "",
    "1994-5-6",
)


def last_summary(asking: EngineDataverse, name: str) -> dict[str, str]:
    """Return the summary of a table's current snapshot."""
    snapshot = asking.table(name).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}


def test_each_upsert_update_delete_is_one_commit(asking: EngineDataverse, do: Do) -> None:
    """UPSERT replaces and adds, UPDATE changes existing objects, DELETE deletes, each in one commit; other objects are
    unchanged.
    """
    asking.make("few", "{ id: bigint, name: string }", "id")
    do(asking.insert("few", "(select i as id, 'n' || to_string(i) as name, i as x from range(1, 1000) as i)"))

    do(asking.upsert("few", "[{'id': 7, 'name': 'new'}, {'id': 1001, 'name': 'added'}]"))
    upserted = last_summary(asking, "few")
    do(asking.run(asking.job("[{'id': 8, 'name': 'changed'}, {'id': 5000, 'name': 'no'}]", "update", target="few")))
    do(asking.delete("few", "t.id = 9"))
    deleted = last_summary(asking, "few")
    do(asking.delete("few", "t.id = 9"))

    assert (upserted["added-records"], upserted["added-position-deletes"]) == ("2", "1")
    assert deleted["operation"] == "delete"
    assert last_summary(asking, "few") == deleted
    query = "select value t from few t where t.id in [6, 7, 8, 9, 1001, 5000] order by t.id"
    by_spark = do(asking.query(query))
    assert by_spark == [
        {"id": 6, "name": "n6", "x": 6},
        {"id": 7, "name": "new"},
        {"id": 8, "name": "changed"},
        {"id": 1001, "name": "added"},
    ]
    assert [do(asking.query(f"select value t from few t where t.id = {one}")) for one in (7, 9)] == [[by_spark[1]], []]
    assert do(asking.query("select value count(*) from few t")) == [1000]


def test_change_keeps_values_of_column_of_another_writer(asking: EngineDataverse, do: Do) -> None:
    """A table with a column of another writer is changed by Spark, and the column keeps its values."""
    asking.make("wider", "{ id: bigint, name: string }", "id")
    do(asking.insert("wider", "[{'id': 1, 'name': 'a'}, {'id': 2, 'name': 'b'}]"))
    with asking.table("wider").update_schema() as update:
        update.add_column("theirs", LongType())

    do(asking.upsert("wider", "{'id': 1, 'name': 'c'}"))

    assert do(asking.query("select value t from wider t order by t.id")) == [
        {"id": 1, "name": "c"},
        {"id": 2, "name": "b"},
    ]
    assert "theirs" in asking.table("wider").scan().to_arrow().column_names


def test_later_change_sees_earlier_change_of_object(asking: EngineDataverse, do: Do) -> None:
    """Each of several changes of one object sees the previous ones."""
    asking.make("often", "{ id: bigint, n: bigint }", "id")
    do(asking.insert("often", "[{'id': 1, 'n': 0}, {'id': 2, 'n': 0}]"))
    for number in range(1, 6):
        do(asking.upsert("often", f"{{'id': 1, 'n': {number}}}"))

    assert do(asking.query("select value t.n from often t where t.id = 1")) == [5]
    assert do(asking.query("select value t.n from often t order by t.id")) == [5, 0]


def test_large_files_are_added_completely_or_not_at_all(asking: EngineDataverse, do: Do) -> None:
    """All objects of large files are added, or none if a key exists or occurs twice; COPY uses the later of two."""
    folder = next(Path(one) for one in asking.engine._start.writable) / "staged"
    folder.mkdir(parents=True)
    asking.make("staged", "closed { id: bigint, name: string, day: date }", "id")
    padding = "x" * 400

    def run(kind: str, lines: list[str]) -> None:
        path = folder / "rows.tbl"
        path.write_text("".join(f"{line}|\n" for line in lines))
        assert path.stat().st_size > 4 << 20
        options = (("path", path.as_uri()), ("format", "delimited-text"), ("delimiter", "|"))
        job = asking.job("null", kind, target="staged")  # type: ignore[arg-type]
        do(asking.run(structs.replace(job, source=ExternalSource(adapter="localfs", options=options), plan=b"")))

    rows = [f"{number}|{padding}|1994-01-{number % 28 + 1:02}" for number in range(12_000)]
    run("load", rows)
    assert do(asking.query("select value [count(*), min(t.day), max(t.id)] from staged t")) == [
        [12_000, "1994-01-01", 11_999]
    ]
    new = [f"{number}|{padding}|1994-01-01" for number in range(20_000, 31_000)]
    for wrong in (rows, [*new, new[0]]):
        with pytest.raises(DuplicateKey):
            run("load", wrong)
    again = [f"{number}|{padding}|1995-01-01" for number in range(11_999, -1, -1)]
    run("copy", [*again, f"5|{padding}|1996-01-01", f"30000|{padding}|1996-01-01"])
    assert do(asking.query("select t.day, count(*) as c from staged t group by t.day order by t.day")) == [
        {"day": "1995-01-01", "c": 11_999},
        {"day": "1996-01-01", "c": 2},
    ]


def test_files_with_generated_keys_are_appended(asking: EngineDataverse, do: Do) -> None:
    """Files without keys are appended, small and large ones; a given key replaces the stored object."""
    folder = next(Path(one) for one in asking.engine._start.writable) / "generated"
    folder.mkdir(parents=True)
    asking.make("generated", "{ id: uuid, name: string }", "id", autogenerated=True)
    padding = "x" * 400

    def run(kind: str, lines: list[str]) -> None:
        path = folder / "rows.json"
        path.write_text("\n".join(lines))
        options = (("path", path.as_uri()), ("format", "json"))
        job = asking.job("null", kind, target="generated")  # type: ignore[arg-type]
        do(asking.run(structs.replace(job, source=ExternalSource(adapter="localfs", options=options), plan=b"")))

    large = [f'{{"name": "{padding}", "n": {number}}}' for number in range(11_000)]
    expected = 0
    for kind, lines in (("load", large), ("copy", large), ("load", large[:2]), ("copy", large[:2])):
        run(kind, lines)
        expected += len(lines)
        summary = last_summary(asking, "generated")
        assert (summary["operation"], summary["added-records"]) == ("append", str(len(lines)))
    object_text = '{"id": "5c848e5c-6b6a-498f-8452-8847a2957421", "name": "%s"}'
    run("copy", [*large, object_text % "a"])
    run("copy", [*large, object_text % "b", object_text % "c"])
    run("copy", [object_text % "d"])
    assert do(asking.query("select value t.name from generated t where t.name != " + repr(padding))) == ["d"]
    assert do(asking.query("select value count(*) from generated t")) == [expected + 2 * len(large) + 1]


@pytest.mark.parametrize("part", ["year", "month", "day"])
def test_date_parts_of_strings_match_evaluator(asking: EngineDataverse, do: Do, part: str) -> None:
    """Spark extracts date parts from strings as the evaluator does; other strings give NULL."""
    name = f"texts_{part}"
    asking.make(name, "{ id: bigint, t: string }", "id")
    do(asking.insert(name, str([{"id": at, "t": text} for at, text in enumerate(TEXTS)]).replace("\\xa0", "\u00a0")))

    date_parts = do(
        asking.query(
            f"select get_{part}(t.t) as p, count(*) as c from {name} t group by get_{part}(t.t), t.id order by t.id"
        )
    )

    assert [one["p"] for one in date_parts] == [FUNCTIONS[f"get_{part}"].run(text) for text in TEXTS]
