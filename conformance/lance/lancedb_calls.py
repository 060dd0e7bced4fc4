# SPDX-License-Identifier: Apache-2.0
"""Operations for which LanceDB has its own calls, over a namespace and as a remote database.

May import LanceDB's types through its arguments, this package's home and the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa

from conformance.lance.home import NEAR, Json

Foreign: TypeAlias = Any
"""Objects of LanceDB, which has no types."""
Own = Callable[[Foreign, list[str], Json, pa.Table | None], object]
_CODE = re.compile(r'"code": ?(\d+)')
_BY_WORDS: Final = (
    ("Namespace already exists", (2,)),
    ("Database '", (2,)),
    ("Permission denied", (15,)),
    ("Table not found", (4,)),
    ("was not found", (4, 6, 8, 11, 22)),  # the remote client's own message for any 404 about a table
    ("does not exist in table schema", (20,)),  # checked by the client itself
)
_AS_WRONG_REQUEST: Final = {13: (9, 12, 13, 23)}
"""Codes that the server sends to the remote client as a wrong request, because that client treats a 404 as a missing
table and retries a 409.
"""


def codes_of(error: Exception) -> tuple[int, ...]:
    """Return the protocol's codes that LanceDB's exception may stand for: its number, the code in the quoted body, or
    the codes of its message.
    """
    code = getattr(error, "code", None)
    if isinstance(code, int):
        return (int(code),)
    text = str(error)
    match = _CODE.search(text)
    if match is not None:
        return _AS_WRONG_REQUEST.get(int(match[1]), (int(match[1]),))
    return next((codes for words, codes in _BY_WORDS if words in text), ())


def _opened(db: Foreign, ident: list[str]) -> Foreign:
    return db.open_table(ident[-1], namespace_path=ident[:-1])


def _create(db: Foreign, ident: list[str], fields: Json, rows: pa.Table | None) -> object:
    table = db.create_table(ident[-1], rows, namespace_path=ident[:-1], mode=str(fields["mode"]).lower())
    return {"version": table.version, "properties": fields.get("properties")}


def _rename(db: Foreign, ident: list[str], fields: Json, _rows: object) -> object:
    target: Foreign = fields["new_namespace_id"]
    return db.rename_table(
        ident[-1],
        fields["new_table_name"],
        cur_namespace_path=ident[:-1],
        new_namespace_path=target[len(target) - len(ident) + 1 :],
    )


def _create_namespace(db: Foreign, ident: list[str], fields: Json, _rows: object) -> object:
    modes = {"ExistOk": "exist_ok"}
    return db.create_namespace(ident, mode=modes.get(str(fields.get("mode"))), properties=fields.get("properties"))


def _listed(db: Foreign, ident: list[str], fields: Json, _rows: object) -> object:
    if "include_declared" in fields:
        return db.namespace_client().list_tables(_request("ListTablesRequest", id=ident, **fields))
    return {"tables": list(db.list_tables(namespace_path=ident).tables)}


def _request(name: str, **fields: object) -> Foreign:
    import lance_namespace

    return getattr(lance_namespace, name)(**fields)


OVER_NAMESPACE: Final[dict[str, Own]] = {
    "create_namespace": _create_namespace,
    "list_namespaces": lambda db, ident, _f, _: {"namespaces": list(db.list_namespaces(ident).namespaces)},
    "describe_namespace": lambda db, ident, _f, _: db.describe_namespace(ident),
    "drop_namespace": lambda db, ident, fields, _: db.drop_namespace(ident, **fields),
    "list_tables": _listed,
    "drop_table": lambda db, ident, _f, _: db.drop_table(ident[-1], namespace_path=ident[:-1]),
    "rename_table": _rename,
}


def _inserted(db: Foreign, ident: list[str], fields: Json, rows: pa.Table | None) -> object:
    done = _opened(db, ident).add(rows, mode=fields["mode"])
    return {"num_inserted_rows": rows.num_rows if rows is not None else 0, "version": done.version}


def _merged(db: Foreign, ident: list[str], fields: Json, rows: pa.Table | None) -> object:
    done = _opened(db, ident).merge_insert(fields["on"]).when_not_matched_insert_all().execute(rows)
    return {
        "num_inserted_rows": done.num_inserted_rows,
        "num_updated_rows": done.num_updated_rows,
        "version": done.version,
    }


def _updated(db: Foreign, ident: list[str], fields: Json, _rows: object) -> object:
    done = _opened(db, ident).update(where=fields["predicate"], values_sql=dict(fields["updates"]))  # type: ignore[call-overload]
    return {"updated_rows": done.rows_updated, "version": done.version}


def _searched(db: Foreign, ident: list[str], fields: Json) -> Foreign:
    table = _opened(db, ident)
    if "filter" in fields:
        return table.search().where(fields["filter"]).limit(fields["k"])
    return table.search(NEAR).limit(3).select(["id"]).with_row_id(True)


def _scalar_index(db: Foreign, ident: list[str], fields: Json, _rows: object) -> object:
    return _opened(db, ident).create_scalar_index(fields["column"])


def _stats(db: Foreign, ident: list[str], fields: Json, _rows: object) -> object:
    statistics = _opened(db, ident).index_stats(fields["index_name"])
    kinds = {"BTREE": "BTree"}
    return {
        "index_type": kinds.get(statistics.index_type, statistics.index_type),
        "num_unindexed_rows": statistics.num_unindexed_rows,
    }


def _indices(db: Foreign, ident: list[str], _fields: Json, _rows: object) -> object:
    return {"indexes": [{"index_name": each.name} for each in _opened(db, ident).list_indices()]}


def _version_said(done: Foreign) -> Json:
    return {"version": done.version}


REMOTE: Final[dict[str, Own]] = {
    **OVER_NAMESPACE,
    "create_table": _create,
    "insert_into_table": _inserted,
    "merge_insert_into_table": _merged,
    "count_table_rows": lambda db, ident, fields, _: _opened(db, ident).count_rows(fields.get("predicate")),
    "update_table": _updated,
    "delete_from_table": lambda db, ident, fields, _: _version_said(_opened(db, ident).delete(fields["predicate"])),
    "query_table": lambda db, ident, fields, _: _searched(db, ident, fields).to_arrow(),
    "explain_table_query_plan": lambda db, ident, fields, _: _searched(db, ident, fields).explain_plan(verbose=True),
    "analyze_table_query_plan": lambda db, ident, fields, _: _searched(db, ident, fields).analyze_plan(),
    "alter_table_add_columns": lambda db, ident, fields, _: _version_said(
        _opened(db, ident).add_columns({each["name"]: each["expression"] for each in fields["new_columns"]})
    ),  # type: ignore[attr-defined]
    "alter_table_alter_columns": lambda db, ident, fields, _: _version_said(
        _opened(db, ident).alter_columns(*fields["alterations"])
    ),  # type: ignore[misc]
    "alter_table_drop_columns": lambda db, ident, fields, _: _version_said(
        _opened(db, ident).drop_columns(fields["columns"])
    ),
    "create_table_index": lambda db, ident, fields, _: _opened(db, ident).create_index(
        metric="l2", vector_column_name=fields["column"], index_type=fields["index_type"], num_partitions=2
    ),
    "create_table_scalar_index": _scalar_index,
    "list_table_indices": _indices,
    "describe_table_index_stats": _stats,
    "get_table_stats": lambda db, ident, _f, _: _opened(db, ident).stats(),
    "update_field_metadata": lambda db, ident, fields, _: _version_said(
        _opened(db, ident).update_field_metadata(*fields["updates"])
    ),  # type: ignore[misc]
    "list_all_tables": lambda db, _i, _f, _: {"tables": [f"lance${name}" for name in db.table_names(limit=1000)]},
    "create_table_tag": lambda db, ident, fields, _: _opened(db, ident).tags.create(fields["tag"], fields["version"]),
    "update_table_tag": lambda db, ident, fields, _: _opened(db, ident).tags.update(fields["tag"], fields["version"]),
    "delete_table_tag": lambda db, ident, fields, _: _opened(db, ident).tags.delete(fields["tag"]),
    "list_table_tags": lambda db, ident, _f, _: {"tags": _opened(db, ident).tags.list()},
    "get_table_tag_version": lambda db, ident, fields, _: {
        "version": _opened(db, ident).tags.get_version(fields["tag"])
    },
    "list_table_versions": lambda db, ident, _f, _: {"versions": _opened(db, ident).list_versions()},
    "restore_table": lambda db, ident, fields, _: _opened(db, ident).restore(fields["version"]),
}


DATABASES: Final[dict[str, Own]] = {
    "create_namespace": lambda connections, ident, fields, _: _nothing(
        connections[0].create_database(ident[0], exist_ok=fields.get("mode") == "ExistOk")
    ),
    "list_namespaces": lambda connections, _i, _f, _: {"namespaces": list(connections[0].list_databases().databases)},
    "list_tables": lambda connections, ident, _f, _: {
        "tables": list(connections[0].connect_database(ident[0]).table_names())
    },
    "drop_namespace": lambda connections, ident, _f, _: connections[0].drop_database(ident[0]),
}
"""A catalog is a database of the remote client; connecting sends no request until an object in it is used."""


def _nothing(_database: object) -> Json:
    return {}
