# SPDX-License-Identifier: Apache-2.0
"""Words of other SQL dialects: each is answered by how SQL++ writes the same, and that is SQL++."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import SqlppError, parse
from limnos.rooms.sqlpp.language.dialects import advice_at
from limnos.rooms.sqlpp.language.hints import hint_of_text

SLIPS = (
    ('select cast("5" as int)', 'to_bigint("5")', 'select to_bigint("5")'),
    ("select try_cast(o.x as varchar) from s.o o", "to_string(o.x)", "select to_string(o.x) from s.o o"),
    (
        "select cast(lower(o.x) as int) from s.o o",
        "to_bigint(x), to_double(x)",
        "select to_bigint(lower(o.x)) from s.o o",
    ),
    ("select o.amount::int from s.o o", "to_bigint(o.amount)", "select to_bigint(o.amount) from s.o o"),
    ("select * from s.o a join s.p b using (id)", "a.id = b.id", "select * from s.o a join s.p b on a.id = b.id"),
    ("select * from s.o a full outer join s.p b on true", "UNION ALL", "select 1 union all select 2"),
    ("select * from s.o a natural join s.p b", "JOIN … ON", "select * from s.o a join s.p b on a.id = b.id"),
    ("select * from s.o for system_time as of '2026-01-01'", "current snapshot", "select * from s.o"),
    ("select * from s.o version as of 1", "current snapshot", "select * from s.o"),
    ("select * from s.o o version as of 1", "current snapshot", "select * from s.o"),
    ("select if(a, 1, 2) from s.o o", "CASE WHEN", "select case when a then 1 else 2 end from s.o o"),
    (
        "select a from s.o o qualify row_number() over (order by a) = 1",
        "no QUALIFY",
        "select a from (select 1 as a) x where a = 1",
    ),
    ("select a from s.o o fetch first 3 rows only", "LIMIT 3", "select a from s.o o limit 3"),
    ("select a from s.o o limit 2 offset 1 rows", "OFFSET with the number", "select a from s.o o limit 2 offset 1"),
    ("select top 3 a from s.o o", "LIMIT 3", "select a from s.o o limit 3"),
    ("select a from s.o o limit 1, 2", "LIMIT 2 OFFSET 1", "select a from s.o o limit 2 offset 1"),
    ("show databases", "Metadata.`Dataverse`", "select value d.DataverseName from Metadata.`Dataverse` d"),
    ("select 1;\nshow tables", "Metadata.`Dataset`", "select d.DataverseName, d.DatasetName from Metadata.`Dataset` d"),
    ("use database sales", "USE sales", "use sales"),
    ("\\dt", "Metadata.`Dataset`", "select d.DataverseName, d.DatasetName from Metadata.`Dataset` d"),
    ("\\d main.s.o", "'limnos show PATH'", "select 1"),
    ("\\l+", "Metadata.`Dataverse`", "select value d.DataverseName from Metadata.`Dataverse` d"),
    ("\\dn", "Metadata.`Dataverse`", "select value d.DataverseName from Metadata.`Dataverse` d"),
    ("\\df", "Metadata.`Function`", "select value d.Name from Metadata.`Function` d"),
    ("\\c sales", "USE sales", "use sales"),
    (".tables", "Metadata.`Dataset`", "select d.DataverseName, d.DatasetName from Metadata.`Dataset` d"),
    ("!tables", "Metadata.`Dataset`", "select d.DataverseName, d.DatasetName from Metadata.`Dataset` d"),
    (".mode csv", "another shell", "select 1"),
    ("show grants", "no SHOW", "select 1"),
    ("describe s.o", "'limnos show PATH'", "select 1"),
    ("desc s.o", "as main.sales.orders", "select 1"),
    ("select a ilike 'E%' from s.o o", "lower(x) LIKE", "select lower(a) like 'e%' from s.o o"),
    ("select date '2026-01-31'", 'date("2026-01-31")', 'select date("2026-01-31")'),
    ("select timestamp '2026-01-31'", "datetime(", 'select datetime("2026-01-31T00:00:00")'),
    ("select interval '1 day'", 'duration("P1D")', 'select duration("P1D")'),
    (
        "select distinct on (a) b from s.o o",
        "row_number()",
        "select row_number() over (partition by a order by b) from s.o o",
    ),
    ("select * exclude (a) from s.o o", "SELECT t.* EXCLUDE a", "select o.* exclude a from s.o o"),
    ("insert into s.o (a) values (1)", 'INSERT INTO sales.orders ([{"id": 4', 'insert into s.o ([{"id": 4}])'),
    ("insert overwrite s.o select 1", "Spark overwrites", "upsert into s.o ([{}])"),
    ("merge into s.o a using s.p b on a.id = b.id", "UPSERT INTO", "upsert into s.o ([{}])"),
    ("truncate table s.o", "DELETE FROM", "delete from s.o"),
    (
        "create table s.o (id int)",
        "CREATE DATASET",
        "create type s.t as {id: bigint}; create dataset s.d(t) primary key id",
    ),
    ("create schema s", "CREATE DATAVERSE", "create dataverse s"),
    ("drop table s.o", "DROP DATASET", "drop dataset s.o"),
    ("drop schema s", "DROP DATAVERSE", "drop dataverse s"),
    ("alter table s.o add column x int", "Spark and PyIceberg", "select 1"),
    ("select * from 'o.csv'", "DuckDB reads files", "select 1"),
    ("select * from read_csv('o.csv')", "DuckDB reads files", "select 1"),
    ("select extract(year from a) from s.o o", "get_year(x)", "select get_year(a) from s.o o"),
    ("select sum(a) from s.o o group by all", "no GROUP BY ALL", "select sum(a) from s.o o group by b"),
    ("grant select on s.o to ana", "'limnos grant --preset reader", "select 1"),
    ("start transaction", "of its own", "select 1"),
    ("with recursive t as (select 1) select * from t", "no recursive", "with t as (select 1) select * from t"),
    (
        "select * from s.o o pivot (sum(a) for b in (1))",
        "no PIVOT",
        "select sum(case when b = 1 then a end) from s.o o",
    ),
    ("select * from s.o tablesample (10 percent)", "no TABLESAMPLE", "select * from s.o o where random() < 0.1"),
    ("copy s.o to 'x.csv'", "--results csv > FILE", "select * from s.o"),
    ("explain analyze select 1", "EXPLAIN and the query", "explain select 1"),
    ("select * from values (1), (2)", "array of objects", 'select * from [{"id": 1}, {"id": 2}] v'),
    ("call system.rollback('x')", "no CALL", "select 1"),
    ("analyze table s.o", "'limnos maintenance run PATH'", "select 1"),
    ("set x = 1", 'SET name "value"', 'set x "1"'),
)


def refusal(text: str) -> str:
    """Return the message of a text that is not SQL++."""
    with pytest.raises(SqlppError) as raised:
        parse(text)
    return raised.value.text


@pytest.mark.parametrize("text,advice,right", SLIPS)
def test_words_of_another_dialect_are_answered_in_sqlpp(text: str, advice: str, right: str) -> None:
    """The hint at the error says how SQL++ writes it, names no back-quotes, and the right form has no syntax error."""
    hint = hint_of_text(refusal(text), text, catalog="main")

    assert advice in hint
    assert "back-quotes" not in hint
    assert parse(right)


@pytest.mark.parametrize(
    "text,place,advice",
    [
        ("select date_trunc('month', a)", "date_trunc", "interval_bin("),
        ("select string_agg(a, ',') from s.o o", "string_agg", "string_join(array_agg(x)"),
        ("select * from information_schema.tables", "information_schema", "Metadata.`Dataset`"),
        ("begin", "begin", "of its own"),
        ("select * from s.o o, lateral unnest(o.x)", "lateral", "UNNEST o.items i"),
    ],
)
def test_names_of_another_dialect_are_answered_where_they_stand(text: str, place: str, advice: str) -> None:
    """Functions and names that have the form of SQL++ are answered at their place, and nowhere else."""
    assert advice in advice_at(text, text.index(place), catalog="main")
    assert not advice_at(f"{text} ; selec 1", len(text) + 3, catalog="main")


def test_advice_about_a_long_text_reads_the_words_around_the_error_only() -> None:
    """Words far from the error are not compared."""
    text = f"select cast({'a' * 100_000} as int), {'(' * 50_000}"

    assert not advice_at(text, len(text), catalog="main")
    assert advice_at(text, text.index("cast"), catalog="main")
