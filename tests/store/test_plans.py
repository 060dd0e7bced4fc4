# SPDX-License-Identifier: Apache-2.0
"""Plans of the store's statements, on both databases: a page reads about as many rows as it returns, and no statement
reads all objects of a zone or of the store.

SQLite plans without statistics, so its plan for an empty file is that for a million objects. PostgreSQL plans with
statistics, so tables are filled first.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import psycopg
import pytest

from limnos.store.backends.migrate import migrate
from limnos.store.backends.read_connections import BY_INDEX
from limnos.store.changes import gate_query_postgres
from limnos.store.sql import Sql
from tests.backends import PostgresServer
from tests.store.statements import BUILT_LATER, cached_builders, is_paged, statements, with_limits

LARGE = frozenset({"node", "document", "owner", "change", "place", "trash", "search_text"})
"""Tables with a row for each object or change."""
PLANTED = 100_000
SORTED_MAX = 5_000
"""The number of rows that a page may sort on PostgreSQL."""
FEW_ROWS = "the table has a row for each zone, server, webhook, import or running request"
ONE_OBJECT = "sorts rows of one object or reader"
ACCEPTED: Mapping[str, str] = {
    "activity.audit_conversion:BEHIND": FEW_ROWS,
    "activity.audit_conversion:NOTES": "reads in the order of ids",
    "activity.audit:_page(path)": "sorts the records of one path, at most 2,000",
    "activity.audit:_page(exact)": "sorts the records of at most 100 paths, at most 2,000",
    **dict.fromkeys(
        [f"activity.audit:_select_period(few{name})" for name in ("", " object_id", " path", " request_id")],
        "sorts the records of a user, object, path or request that has fewer than 2,000",
    ),
    "activity.lineage:COLUMNS_DOWN": ONE_OBJECT,
    "activity.lineage:COLUMNS_UP": ONE_OBJECT,
    "activity.lineage:DOWN": ONE_OBJECT,
    "activity.lineage:EXPORTS": ONE_OBJECT,
    "activity.lineage:JOBS": ONE_OBJECT,
    "activity.lineage:OLDEST": ONE_OBJECT,
    "activity.lineage:UP": ONE_OBJECT,
    "activity.maintenance:OPERATIONS_OF_METALAKE": "sorts the operations of one metalake, which are kept for a month",
    "activity.node_beats:LIST": FEW_ROWS,
    "activity.orphan_files:REMOVED": ONE_OBJECT,
    "activity.rewrites:DELAYED": "reads the waiting rewrites",
    "activity.rewrites:DUE_METALAKE": "reads the waiting rewrites",
    "activity.rewrites:OVER": "reads the leases of running rewrites",
    "activity.runs:EXPIRED": "reads the runs of all pipelines, of which old ones are deleted",
    "activity.scan_plans:OLDER": ONE_OBJECT,
    "activity.search_index:BEHIND": FEW_ROWS,
    "activity.search_index:SCAN": "sorts the ids of a zone once for all its steps, in a thread",
    "activity.sqlpp_requests:OVER": FEW_ROWS,
    "activity.sqlpp_requests:RUNS": FEW_ROWS,
    "activity.tasks:ANY_OF": "reads the tasks of a week",
    "activity.template_jobs:EXPIRED": "sorts the jobs that ended, of which old ones are deleted",
    "activity.upkeep:PRUNE_CLOCKS": FEW_ROWS,
    "activity.webhooks:ANY_DUE": FEW_ROWS,
    "activity.webhooks:DUE": FEW_ROWS,
    "exchange.imports:ALL": FEW_ROWS,
    "identity.access_answers:TRIM": "sorts the answers to one user, which are 50 at most, and a further one",
    "identity.access_requests:NEWEST": "reads in the order of time, and sorts those of one millisecond",
    "exchange.system_tables:POLICED": "sorts the policies of one object after the other",
    "exchange.system_tables:TAGGED": "sorts the tags of one object after the other",
    "exchange.system_tables:RANGES": "walks an index once for a read of all objects, in a thread",
    "identity.access_facts:HOLDING": "reads the members of roles and groups",
    "identity.roles:MANY_GRANTS": "sorts one page of each of a few roles",
    "identity.tokens:ACCOUNTS": "counts the tokens of each user",
    "objects.dependencies:FROM_OUTSIDE": "sorts the views that use the objects of one parent",
    "objects.dependencies:OF_ONE": ONE_OBJECT,
    "objects.documents:UNDIGESTED": "the index has only the rows of an older release",
    "objects.name_search:BY_UUID": ONE_OBJECT,
    "objects.name_search:TAGGED": "merges two pages",
    "objects.name_search:UNFOLDED": "the index has only the rows of an older release",
    "objects.nesting:ANYWHERE": "reads all namespaces once for a new separator",
    "objects.nesting:CONFLICTS": "sorts the namespaces of one catalog",
    "objects.nodes:SUBTREE": "the deepest objects come first, so a drop reads the whole subtree",
    "objects.protection:ON": ONE_OBJECT,
    "objects.restricted_reads:FIND": ONE_OBJECT,
    "objects.restricted_reads:SHARED": ONE_OBJECT,
    "objects.snapshot_pins:OVER": "sorts the pins of readers that expired",
    "objects.successors:LINEAGE[1]": ONE_OBJECT,
    "objects.successors:LINEAGE[3]": ONE_OBJECT,
}
"""Statements whose plan on SQLite sorts, or reads a table to the end, each with the reason."""


def test_every_statement_that_is_built_later_has_an_example() -> None:
    """A cached function that builds statements has examples, so that their plans are checked as well."""
    assert cached_builders() == {name.partition("(")[0] for name in BUILT_LATER}


# -- SQLite --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """An empty SQLite store."""
    path = tmp_path_factory.mktemp("plans") / "limnos.db"
    migrate(str(path))
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def sqlite_plan(file: sqlite3.Connection, statement: Sql) -> list[str]:
    """Return the steps of a statement's plan."""
    plan = file.execute(f"EXPLAIN QUERY PLAN {statement.sqlite}", [1] * len(statement.order))
    return [row[3] for row in plan]


def long_steps(file: sqlite3.Connection, statement: Sql) -> list[str]:
    """Return the steps of a plan that read a whole table or zone, and for a page also those that sort."""
    tables = {row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    names = {
        alias: table
        for table, alias in re.findall(r"\b(?:FROM|JOIN|UPDATE|INTO) (\w+)(?: AS)?(?: ([a-z]\w*))?", statement.sqlite)
    } | {table: table for table in tables}
    walked, is_page = tables if is_paged(statement) else LARGE, is_paged(statement)
    return [
        step
        for step in sqlite_plan(file, statement)
        if ((match := re.match(r"SCAN (\w+)(?!.*VIRTUAL TABLE)", step)) and names.get(match[1]) in walked)
        or "(zone=?)" in step.partition("node_folded ")[2]
        or (is_page and "TEMP B-TREE" in step)
    ]


def test_sqlite_reads_neither_a_table_nor_a_zone_to_the_end(file: sqlite3.Connection) -> None:
    """No statement walks the objects of the store or of a zone, and no paged statement sorts what it reads or reads a
    table to the end, but for those whose reason is listed.
    """
    long = {
        name: steps
        for name, statement in statements().items()
        if not name.startswith("backends.")
        and not name.endswith("_POSTGRES")
        and (steps := long_steps(file, statement))
    }

    assert {name: steps for name, steps in long.items() if name not in ACCEPTED} == {}
    assert ACCEPTED.keys() - long.keys() == set()


@pytest.mark.parametrize(
    "name, index",
    [
        ("objects.location_reconciliation:CONFLICTS", "place_conflicting ((owner_id,location)>(?,?))"),
        ("objects.location_reconciliation:LIVE_CONFLICTS", "place_conflicting ((owner_id,location)>(?,?))"),
        ("objects.nodes:HEIGHT", "node_namespace (zone=? AND parent_id=?)"),
        ("objects.trash:IN", "trash_parent (parent_id=?)"),
        ("activity.audit:_select_period(few)", "audit_user (user_name=?)"),
        ("activity.audit:_select_period(few object_id)", "audit_object (object_id=?)"),
        ("activity.audit:_select_period(few path)", "audit_path (path>? AND path<?)"),
        ("activity.audit:_select_period(few request_id)", "audit_request (request_id=?)"),
        ("activity.audit:_select_period(since)", "audit_time (metalake_id=? AND at>? AND at<?)"),
        ("activity.audit:TIME_END", "COVERING INDEX audit_time (metalake_id=? AND at>? AND at<?)"),
        ("activity.feed:change_page(all)", "PRIMARY KEY (zone=? AND (revision,ordinal)>(?,?) AND revision<?)"),
        ("exchange.system_tables:AUDIT_RANGES", "COVERING INDEX audit_time (metalake_id=?)"),
    ],
)
def test_sqlite_uses_the_index_made_for_a_statement(file: sqlite3.Connection, name: str, index: str) -> None:
    """A statement whose condition another index also meets uses the one that has only its rows."""
    assert index in " ".join(sqlite_plan(file, statements()[name]))


# -- PostgreSQL ----------------------------------------------------------------------------------------------------

_NUMBERS = f"FROM generate_series(1, {PLANTED}) i"
PLANT = (
    (
        "INSERT INTO clock (zone, revision, access_revision, pruned_to) SELECT 90 + i, 1, 1, 0 FROM generate_series(1,"
        " 20) i"
    ),
    (
        "INSERT INTO node (id, zone, parent_id, kind, name_space, name, format, implicit, created_by, created_at,"
        " revision, deleted, record, folded) SELECT 1000 + i, CASE WHEN i % 10 = 0 THEN 92 + i % 15 ELSE 91 END, CASE"
        " WHEN i % 2 = 0 THEN 1001 ELSE 1001 + i / 50 END, CASE WHEN i % 50 = 0 THEN 3 ELSE 4 END, CASE WHEN i % 50 ="
        " 0 THEN 'namespace' ELSE 'table' END, 't' || i, 'iceberg', false, 'a', 1, 1, CASE WHEN i % 40 = 7 THEN i ELSE"
        f" 0 END, '', 't' || i % 9000 {_NUMBERS}"
    ),
    f"INSERT INTO document SELECT 1000 + i, 1, 'u' || i, 'file:/' || i, 'file:/m' || i, '' {_NUMBERS}",
    f"INSERT INTO owner SELECT 1000 + i, CASE WHEN i % 2 = 0 THEN 70 ELSE 71 + i % 100 END {_NUMBERS}",
    (
        "INSERT INTO change (zone, revision, ordinal, operation, kind, node_id, name_space, actor, request_id, at)"
        f" SELECT 91, i, 0, 'create', 4, 1000 + i, 'table', 'a', 'r', i {_NUMBERS}"
    ),
    (
        "INSERT INTO place (location, owner_id, kind, catalog_id, metalake_id, state, conflicting, since)"
        f" SELECT 'file:/' || i, 1000 + i, 1, 91, 90, 0, i % 5000 = 0, 1 {_NUMBERS}"
    ),
    (
        "INSERT INTO trash (node_id, zone, parent_id, dropped_by, dropped_at, expires_at) SELECT 1000 + i, 91, CASE"
        f" WHEN i % 2 = 0 THEN 1001 ELSE 1001 + i / 50 END, 'a', i, i {_NUMBERS} WHERE i % 40 = 7"
    ),
    (
        "INSERT INTO search_text (object_id, zone, name, columns, comment, name_vector, all_vector) SELECT 1000 + i,"
        f" 91, 't', '', '', array_to_tsvector(ARRAY['t' || i % 500]), array_to_tsvector(ARRAY['t']) {_NUMBERS}"
    ),
    "ANALYZE",
)
_FREQUENCIES = "the planner knows the frequency of the words, which the test leaves open"
ACCEPTED_ON_POSTGRES: Mapping[str, str] = {
    "activity.search_index:IN_ALL": _FREQUENCIES,
    "activity.search_index:IN_NAMES": _FREQUENCIES,
    "objects.nodes:SUBTREE": ACCEPTED["objects.nodes:SUBTREE"],
    "objects.owners:CONTAINERS": "the planner chooses between the objects of one owner and all containers",
}
"""Statements whose plan on PostgreSQL sorts many rows, or reads a large table to the end, each with the reason."""


@pytest.fixture(scope="module")
def planted(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    """A PostgreSQL store whose large tables have 100,000 rows."""
    address = postgres_server.empty_database()
    migrate(address)
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in PLANT:
            connection.execute(statement.encode())
        yield connection


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a plan's nodes."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes_of(below)


def long_nodes(connection: psycopg.Connection, statement: Sql) -> list[str]:
    """Return the nodes of a plan that read a planted table to the end, and for a page also those that sort many
    rows. It may read the trash, which is small, into a hash table.
    """
    explained = connection.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {with_limits(statement).asyncpg}".encode())
    row = explained.fetchone()
    assert row is not None
    return [
        f"{node['Node Type']} {node.get('Relation Name', node.get('Sort Key'))} {node['Plan Rows']}"
        for node in nodes_of(row[0][0]["Plan"])
        if (node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE - {"trash"})
        or (is_paged(statement) and node["Node Type"] == "Sort" and node["Plans"][0]["Plan Rows"] > SORTED_MAX)
    ]


@pytest.mark.integration
def test_postgres_reads_no_large_table_to_the_end(planted: psycopg.Connection) -> None:
    """No paged statement walks the objects of the store or sorts those of a zone, but for those whose reason is
    listed.
    """
    long: dict[str, list[str]] = {}
    for name, statement in statements().items():
        if is_paged(statement) and (nodes := long_nodes(planted, statement)):
            long[name] = nodes

    assert {name: nodes for name, nodes in long.items() if name not in ACCEPTED_ON_POSTGRES} == {}
    assert ACCEPTED_ON_POSTGRES.keys() - long.keys() == set()


@pytest.mark.integration
@pytest.mark.parametrize(
    "settings", [BY_INDEX, "set_config('plan_cache_mode', 'force_custom_plan', false)"], ids=["own", "other"]
)
@pytest.mark.parametrize("others", [0, 2, 19])
def test_postgres_gate_reads_only_new_changes(planted: psycopg.Connection, settings: str, others: int) -> None:
    """The freshness gate finds the one new change of a zone without the 100,000 before it, however many zones are
    asked about, with the planner's settings of the server and with others.
    """
    epoch: int = planted.execute("SELECT epoch FROM store").fetchone()[0]  # type: ignore[index]
    statement, params = gate_query_postgres(epoch, ((91, PLANTED - 1), *[(92 + other, 1) for other in range(others)]))
    arguments = ", ".join(
        f"ARRAY{value}" if isinstance(value, list) else str(value) for value in statement.values(params)
    )
    with planted.transaction(force_rollback=True):
        planted.execute(f"SELECT {settings}".encode())
        planted.execute(f"UPDATE clock SET revision = {PLANTED} WHERE zone = 91".encode())
        planted.execute(f"PREPARE gate AS {statement.asyncpg}".encode())
        explained = planted.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE gate({arguments})".encode()).fetchone()
        planted.execute("DEALLOCATE gate")

    assert explained is not None
    nodes = list(nodes_of(explained[0][0]["Plan"]))
    read = [node["Actual Rows"] * node["Actual Loops"] for node in nodes if node.get("Relation Name") == "change"]
    assert nodes[0]["Actual Rows"] == 1
    assert sum(read) == 1
