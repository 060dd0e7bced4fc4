# SPDX-License-Identifier: Apache-2.0
"""The relations that a view's text reads, with the quoting rules of each dialect."""

from __future__ import annotations

import json
from time import process_time

import pytest

from limnos.formats.iceberg.view_names import TEXT_CHARS_MAX, TextBudget, names, relations


@pytest.mark.parametrize(
    "sql, expected",
    [
        ("select * from a.t", ["a.t"]),
        ("SELECT x FROM a.t, b.u AS w JOIN c.v ON w.x = v.x, d", ["a.t", "b.u", "c.v", "d"]),
        ("select * from (select * from a.t where x in (select y from b.u)) s", ["a.t", "b.u"]),
        ("select * from (a.t join b.u on 1 = 1)", ["a.t", "b.u"]),
        ("select 1 union all select * from a.t order by (select max(z) from b.u)", ["a.t", "b.u"]),
        ("select * from `a.b`.`we``ird`", ["a.b.we`ird"]),
        ("select * from a . b . t", ["a.b.t"]),
        ("with w as (select * from a.t), v (x) as (select 1) select * from w join v on 1 = 1 join a.w", ["a.t", "a.w"]),
        ("select t.secret, a.t from b.u t where a.t > 1", ["b.u"]),
        ("select extract(year from a.t), x is distinct from a.t, trim(both from a.t) from b.u", ["b.u"]),
        ("select 'from a.t', \"from a.t\" -- from a.t\n /* from a.t */ from b.u", ["b.u"]),
        ("select 'it\\'s' from b.u -- '", ["b.u"]),
        ("select * from range(1, 2), b.u", ["b.u"]),
        ("select (select 1) from b.u where x = (1, a.t)", ["b.u"]),
        ("", []),
        ("from", []),
        (")))(((", []),
    ],
)
def test_spark_names_count_only_as_relations(sql: str, expected: list[str]) -> None:
    """A name counts only at the place of a relation. Columns, strings, comments, functions and the text's own
    subqueries do not count.
    """
    assert [".".join(parts) for parts in relations(sql, "spark")] == expected


def test_quotes_depend_on_the_dialect() -> None:
    """Text in quotes is a string in one dialect and a name in the other."""
    sql = 'select * from "a"."t"'

    assert relations(sql, "trino") == [("a", "t")]
    assert relations(sql, "spark") == []


def document(sql: str, **more: object) -> bytes:
    """Return the document of a view with one version."""
    version = {"version-id": 3, "representations": [{"type": "sql", "dialect": "trino", "sql": sql}]}
    return json.dumps({"current-version-id": 3, "versions": [version | more]}).encode()


@pytest.mark.parametrize(
    "sql, more, path, expected",
    [
        ("select * from a.t", {}, ("a", "t"), True),
        ("select * from a.t", {}, ("b", "a", "t"), False),
        ("select * from t", {"default-namespace": ["a", "b"]}, ("a", "b", "t"), True),
        ("select * from t", {"default-namespace": ["a.b"]}, ("a", "b", "t"), True),
        ("select * from t", {}, ("a", "t"), False),
        ("select * from main.a.t", {}, ("a", "t"), True),
        ("select * from lake.a.t", {"default-catalog": "lake"}, ("a", "t"), True),
        ("select * from other.a.t", {"default-catalog": "lake"}, ("a", "t"), False),
        ('select * from main."a.b".t', {}, ("a", "b", "t"), True),
        ("select * from A.T", {}, ("a", "t"), True),
        ("select * from a.t", {}, ("A", "T"), False),
        ("select * from a.t", {"version-id": 4}, ("a", "t"), False),
    ],
)
def test_names_are_resolved_relative_to_catalog_and_namespace(
    sql: str, more: dict[str, object], path: tuple[str, ...], expected: bool
) -> None:
    """A name is resolved relative to the catalog, with or without the catalog's name, or to the default namespace of
    the version.
    """
    assert names(document(sql, **more), path, "main") is expected


def test_only_the_current_version_counts() -> None:
    """Only names in the view's current version count, not those in older ones."""
    body = json.loads(document("select * from a.t"))
    body["versions"].append(
        {"version-id": 4, "representations": [{"type": "sql", "dialect": "spark", "sql": "select 1"}]}
    )
    body["current-version-id"] = 4

    assert not names(json.dumps(body).encode(), ("a", "t"), "main")


@pytest.mark.parametrize("bad", ["'", "/*", "(", "`", '"', "a.", "from a,", "--", "\\'"])
def test_unclosed_brackets_are_read_in_bounded_time(bad: str) -> None:
    """Texts with many unclosed brackets or quotes are read to their end in bounded time. Longer texts are not read."""
    text = ("select * from b.u, " + bad * TEXT_CHARS_MAX)[:TEXT_CHARS_MAX]

    for dialect in ("spark", "trino"):
        assert relations(text, dialect)[0] == ("b", "u")
    assert relations(text + "x", "spark") == []


def test_deep_namespace_does_not_slow_name_comparison() -> None:
    """The comparison of many names does not take longer with a deep default namespace of the view."""
    sql = "select 1 from " + "t, " * 20_000
    view = document(sql, **{"default-namespace": ["a"] * 30_000})

    started = process_time()
    assert not names(view, ("a", "t"), "main")

    assert process_time() - started < 5


def test_views_of_chain_share_text_budget() -> None:
    """Views with a shared budget are read as long as their texts fit into it. Only a text that contains the name uses
    the budget.
    """
    long = document("select * from a.t -- " + "x" * (TEXT_CHARS_MAX // 2))
    room = TextBudget()

    name_checks = [names(long, path, "main", room=room) for path in (("a", "u"), ("a", "u"), ("a", "t"), ("a", "t"))]

    assert name_checks == [False, False, True, False]
