# SPDX-License-Identifier: Apache-2.0
"""Stores with many rows in every table, and parameters of the store's statements, for tests of executed plans.

The rows are the same on both databases. Tables with a row for each object or change get all rows, the others a
twentieth: half of an object's or reader's rows have one key, the others a key for each ten rows.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

import psycopg
from sqlalchemy import Boolean, LargeBinary, SmallInteger, Table, Text

from limnos.store.schema import metadata
from limnos.store.sql import Sql, Value

METALAKE: Final = 90
CATALOG: Final = 91
NAMESPACE: Final = 1001
"""The namespace with half of all objects."""
TABLE: Final = 1004
FEW_MIN: Final = 2_000
LARGE: Final = frozenset({"node", "document", "owner", "change", "place", "search_text", "audit"})
"""Tables with a row for each object or change."""
SMALL: Final = frozenset(
    {"clock", "store", "audit_position", "search_position", "node_seen", "search_lease", "limnos_id"}
)
"""Tables with a row for each zone or server node, or a single row."""

_ONE_OR_MANY = "CASE WHEN i % 2 = 0 THEN 70 ELSE 1000 + i / 10 END"
_COLUMNS: Final[Mapping[str, str]] = {
    "metalake_id": str(METALAKE),
    "catalog_id": str(CATALOG),
    "zone": str(CATALOG),
    "user_name": "CASE WHEN i % 2 = 0 THEN 'anna' ELSE 'u' || i / 10 END",
    "user_id": _ONE_OR_MANY,
    "principal_id": _ONE_OR_MANY,
    "conflicting": "i % 5000 = 0",
    "leased_until": "0",
    "deleted": "CASE WHEN i % 40 = 7 THEN i ELSE 0 END",
    "name_space": "'table'",
    "external_id": "'t' || i",
    "folded": "'t' || i % 9000",
}
"""Expressions of columns, by name; `i` is the number of the row."""
_ROWS: Final[Mapping[str, Mapping[str, str]]] = {
    "node": {
        "zone": f"CASE WHEN i % 10 = 3 THEN 92 + i % 15 ELSE {CATALOG} END",
        "parent_id": (
            f"CASE WHEN i = 1 OR i % 50 = 0 THEN {CATALOG} WHEN i % 2 = 0 OR i < 50 THEN {NAMESPACE} ELSE 1000 + i / 50"
            " * 50 END"
        ),
        "kind": "CASE WHEN i = 1 OR i % 50 = 0 THEN 3 ELSE 4 END",
        "name_space": "CASE WHEN i = 1 OR i % 50 = 0 THEN 'namespace' ELSE 'table' END",
        "format": "'iceberg'",
    },
    "document": {
        "location": "'file:/' || i",
        "metadata_location": "'file:/m' || i",
        "uuid": "'u' || i",
        "digest": "CASE WHEN i % 20000 = 0 THEN NULL ELSE (i - 2147483648) * 4294967296 END",
    },
    "owner": {"principal_id": "CASE WHEN i % 2 = 0 THEN 70 ELSE 71 + i % 100 END"},
    "change": {"revision": "i", "ordinal": "0", "operation": "'create'", "kind": "4", "node_id": "1000 + i"},
    "place": {"location": "'file:/' || i", "owner_id": "1000 + i", "kind": "1", "state": "0", "keys_until": "NULL"},
    "trash": {"node_id": "1000 + i * 40 + 7", "parent_id": f"CASE WHEN i % 2 = 0 THEN {NAMESPACE} ELSE 1000 + i END"},
    "tag_object": {"object_id": "1000 + i", "tag_id": _ONE_OR_MANY},
    "principal": {"kind": "CASE WHEN i % 100 = 0 THEN 21 ELSE 20 END"},
    "role_member": {"principal_id": "1000 + i", "role_id": _ONE_OR_MANY},
    "group_member": {"user_id": "1000 + i", "group_id": _ONE_OR_MANY},
    "access_grant": {"role_id": _ONE_OR_MANY, "object_id": "1000 + i", "privilege": "1", "allowed": "i % 50 <> 0"},
    "lineage_dataset": {"metalake_id": "i"},
    "password": {"user_name": "'u' || i"},
    "restricted_read": {"directory": "'t' || i"},
    "task": {"kind": "'k' || i % 10", "leased_until": "0", "holder": "NULL"},
    "template_job": {"state": "'queued'"},
    "pipeline_run": {"state": "'published'"},
}
"""Expressions of columns of one table."""


def plant(connection: sqlite3.Connection | psycopg.Connection, rows: int) -> None:
    """Insert `rows` rows into the large tables of an empty migrated store, and fewer into the others."""
    on_sqlite = isinstance(connection, sqlite3.Connection)
    zones = [f"(0, {METALAKE}, 0, 1, 'metalake', 'lake')"]
    zones += [f"({METALAKE}, {zone}, {METALAKE}, 2, 'catalog', 'c{zone}')" for zone in range(CATALOG, CATALOG + 20)]
    statements = [
        (
            f"INSERT INTO clock (zone, revision, access_revision, pruned_to) SELECT {METALAKE} + i, 1, 1, 0 FROM"
            f" {_numbers(21, on_sqlite=on_sqlite)}"
        ),
        "INSERT INTO node (zone, id, parent_id, kind, name_space, name, format, implicit, created_by, created_at,"
        " revision, deleted, record, folded) SELECT v.*, '', false, 'a', 1, 1, 0, '', NULL FROM (VALUES "
        + ", ".join(zones)
        + ") AS v",
    ]
    statements += [
        _insert(table, _rows_of(name, rows), on_sqlite=on_sqlite)
        for name, table in metadata.tables.items()
        if name not in SMALL
    ]
    for statement in statements:
        connection.execute(statement)  # type: ignore[arg-type]  # psycopg wants literal strings


def _rows_of(name: str, rows: int) -> int:
    """Return the number of rows of a table: of the objects one in forty is in the trash."""
    return rows if name in LARGE else rows // 40 - 1 if name == "trash" else max(rows // 20, FEW_MIN)


def _insert(table: Table, rows: int, *, on_sqlite: bool) -> str:
    """Return the statement that inserts rows into a table."""
    keys = [column.name for column in table.primary_key.columns]
    values = {}
    for column in table.columns:
        known = _ROWS.get(table.name, {}).get(column.name) or _COLUMNS.get(column.name)
        if known is not None and (column.name not in keys or len(keys) > 1 or column.name in _ROWS.get(table.name, {})):
            values[column.name] = known
            continue
        text = isinstance(column.type, Text)
        if isinstance(column.type, LargeBinary):
            values[column.name] = "x''" if on_sqlite else "''::bytea"
        elif isinstance(column.type, Boolean):
            values[column.name] = "false"
        elif column.name == keys[0] or (column.name.endswith("_id") and column.name != keys[-1]):
            number = "1000 + i" if len(keys) == 1 and column.name == keys[0] else "1000 + i / 10"
            values[column.name] = f"'t' || {number}" if text else number
        elif isinstance(column.type, SmallInteger):
            values[column.name] = "i % 100"
        else:
            values[column.name] = "'t' || i" if text else "i"
    if table.name == "search_text" and not on_sqlite:
        values |= {
            "name_vector": "array_to_tsvector(ARRAY['t' || i % 500])",
            "all_vector": "array_to_tsvector(ARRAY['t'])",
        }
    columns, expressions = ", ".join(f'"{each}"' for each in values), ", ".join(values.values())
    return f"INSERT INTO {table.name} ({columns}) SELECT {expressions} FROM {_numbers(rows, on_sqlite=on_sqlite)}"


def _numbers(count: int, *, on_sqlite: bool) -> str:
    if on_sqlite:
        return f"(WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < {count}) SELECT i FROM g)"
    return f"generate_series(1, {count}) AS g(i)"


_IDS: Final = "[1004, 1006, 1008]"
_VALUES: Final[Mapping[str, Value]] = {
    **dict.fromkeys(("ids", "nodes", "objects", "users", "principals", "roles", "parents", "browsed"), _IDS),
    **dict.fromkeys(("words", "names", "above", "upwards", "places", "exact"), '["file:/4", "t4"]'),
    **dict.fromkeys(("yes", "allowed", "enabled", "everything"), True),
    **dict.fromkeys(
        ("no", "implicit", "direct", "managed", "nests", "goes_on", "revoked", "stopped", "conflicting"), False
    ),
    **dict.fromkeys(("body", "digest", "fingerprint", "hash", "secret_hash", "record", "scan", "outcome", "job"), b"t"),
    **dict.fromkeys(("limit", "rows", "keep", "most"), 100),
    **dict.fromkeys(("now", "before", "until", "to", "expires", "expires_at", "at"), 10**15),
    **dict.fromkeys(("id", "node", "node_id", "object", "object_id", "table", "still_id", "used", "owner_id"), TABLE),
    **dict.fromkeys(("parent", "still_parent", "new_parent", "old_parent"), NAMESPACE),
    **dict.fromkeys(("zone", "catalog", "zone0", "zone1", "zone2"), CATALOG),
    **dict.fromkeys(("metalake", "metalake_id", "of"), METALAKE),
    **dict.fromkeys(("name", "still_name", "new_name", "uuid", "alias", "branch", "space1"), "t4"),
    "spaces": '["table"]',
    "space": "table",
    "kinds": "[4]",
    "kind": 4,
    "zones": "[91, 92]",
    "user": "anna",
    "last": 1050,
    "low": "file:/3",
    "high": "file:/30",
    "location": "file:/4",
    "after": 0,
    "format": "iceberg",
    "principal": 70,
    "tag": 70,
    "role": 1004,
    "query": "t4",
    "match": "t4",
    "fields": '[[1004, 1, "t4"]]',
}


_OTHERS: Final[Mapping[str, Mapping[str, Value]]] = {
    r"activity\.audit_conversion:BEHIND": {"zones": 100},
    r"activity\.search_index:(INDEX_)?(PUT|DELETE)": {
        "rows": '[{"id": 900000001, "zone": 91, "name": "t4", "columns": "", "comment": "", "entry": ["t4", "", ""]}]'
    },
    r"identity\.(access_answers|access_requests|principals):.*|objects\.(dependencies|attachments|successors):.*": {
        "user": TABLE
    },
    r"activity\.schedules:PUT": {"files": b"t", "due": 10**15, "next": 10**15},
    r"objects\.documents:.*": {"digest": 1},
    r".*:PRUNE_CLOCKS": {"before": 0},
}
"""Parameters that mean something else in some statements, by patterns of their names."""


def params_of(name: str, statement: Sql) -> dict[str, Value]:
    """Return the parameters with which a statement is executed, by their names, else 1."""
    values = dict(_VALUES)
    for pattern, others in _OTHERS.items():
        if re.fullmatch(pattern, name):
            values.update(others)
    return {each: values.get(each, 1) for each in statement.order}


def literals(values: Sequence[Value]) -> str:
    """Return the arguments of EXECUTE on PostgreSQL: quoted, so that each gets the type of its parameter."""
    return ", ".join(_literal(value) for value in values)


def _literal(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    return "'" + str(value).replace("'", "''") + "'"
