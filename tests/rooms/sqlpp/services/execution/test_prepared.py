# SPDX-License-Identifier: Apache-2.0
"""Prepared statements: binding that depends on the text alone is done once; objects and rights are checked for each
execution.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from limnos.rooms.sqlpp.services.execution.prepared import PREPARED, PreparedStatements
from tests.http.driver import DriverNode, grant
from tests.http.iceberg.wire import make_space, make_table, node_over
from tests.rooms.sqlpp.http.wire import refusal, rows

DATASETS = "select value d.DatasetName from Metadata.`Dataset` d where d.DataverseName = 'a' order by d.DatasetName"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node whose dataverse `a` has the datasets `t` and `u`."""
    with node_over(tmp_path_factory.mktemp("prepared")) as running:
        make_space(running, "a")
        make_table(running, "a", "t")
        make_table(running, "a", "u")
        yield running


@pytest.fixture
def prepared_cache(shared: DriverNode) -> PreparedStatements:
    """The node's cache of prepared statements, initially empty."""
    statements = PreparedStatements()
    PREPARED.put(shared.built.services, statements)
    return statements


def test_prepared_query_returns_objects_inserted_later(shared: DriverNode, prepared_cache: PreparedStatements) -> None:
    """A prepared query returns objects that were inserted after its first execution."""
    before = rows(shared, DATASETS)
    (query,) = prepared_cache.queries.values()
    make_table(shared, "a", "v")

    assert before == ["t", "u"]
    assert rows(shared, DATASETS) == ["t", "u", "v"]
    assert prepared_cache.queries.values() == [query]
    assert len(prepared_cache.parsed) == 1


def test_prepared_query_is_authorized_for_each_caller(shared: DriverNode, prepared_cache: PreparedStatements) -> None:
    """A query that one caller prepared is authorized again for other callers, and after a revoke."""
    rows(shared, DATASETS)
    role = grant(shared, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(shared, "ana", "use_schema select_table", kind="SCHEMA", on="main.a")
    grant(shared, "ana", "select_table", kind="TABLE", on="main.a.u", condition="deny")
    seen = rows(shared, DATASETS, user="ana")
    shared.done("PUT", "/api/metalakes/lake/permissions/users/ana/revoke", {"roleNames": [role]})

    assert "t" in seen
    assert "u" not in seen
    assert "t" not in rows(shared, DATASETS, user="ana")
    assert len(prepared_cache.queries) == 1


@pytest.mark.parametrize(
    "statement, more",
    [
        ("select value current_date() = current_date()", {}),
        ("current_datetime()", {}),
        ("use Metadata; select value current_time() from `Dataset` d", {}),
        ("select value x from [1] x where current_datetime() > datetime('2020-01-01T00:00:00')", {}),
        ("select value $x", {"$x": 1}),
        ("select value d.DatasetName from Metadata.`Dataset` d where d.DatasetName = $x", {"$x": "t"}),
        ("declare function f() { 1 }; select value f()", {}),
        ("select value n from a.none as n", {}),
    ],
)
def test_queries_depending_on_request_state_are_not_cached(
    shared: DriverNode, prepared_cache: PreparedStatements, statement: str, more: dict[str, object]
) -> None:
    """Queries that use the request's time, parameters, functions or catalog metadata are not cached."""
    if "none" in statement:
        refusal(shared, statement)
    else:
        rows(shared, statement, **more)

    assert prepared_cache.queries.values() == []


def test_writing_statements_are_not_cached(shared: DriverNode, prepared_cache: PreparedStatements) -> None:
    """Writing statements are not cached, because they are rarely repeated and may contain secrets."""
    rows(shared, "create type a.T as { x: string }")

    assert (len(prepared_cache.parsed), len(prepared_cache.queries)) == (0, 0)


def test_replaced_view_changes_the_result_of_a_prepared_query(
    shared: DriverNode, prepared_cache: PreparedStatements
) -> None:
    """After a view is replaced, the same statement gives the new result."""
    rows(shared, "create view a.w as select value 41")
    first = rows(shared, "select value x from a.w as x")
    rows(shared, "create or replace view a.w as select value 42")

    assert (first, rows(shared, "select value x from a.w as x")) == ([41], [42])
    assert prepared_cache.queries.values() == []


def test_same_text_in_another_dataverse_is_another_query(
    shared: DriverNode, prepared_cache: PreparedStatements
) -> None:
    """In another dataverse the same text refers to another dataset."""
    statement = "select value count(*) from `Dataset` d"

    first = rows(shared, f"use Metadata; {statement}")

    assert first[0] >= 9
    assert refusal(shared, f"use a; {statement}")[1].startswith("ASX1077")
    assert len(prepared_cache.queries) == 1
