# SPDX-License-Identifier: Apache-2.0
"""Every operation as a row: its object, its fields, and the expected result.

The rows of a story are called in their order, each by a user without rights first, who must be refused. May import this
package. It must not know the calling client; LanceDB's own spelling is in `lancedb_calls`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from conformance.lance.home import COUNT, NEAR, ROWS, Home, Json, stream

UNSUPPORTED, DENIED = 0, 15
SHOWN_NOTHING = "nothing"


def _none(_home: Home) -> Json:
    return {}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operation. `thing`: a name in the home, "" for the home itself, None for no identifier.

    `code`: the expected error, None for an answer that `check` accepts. `outsider`: the code for a user without rights,
    or that a list is empty for this user. `key`: the key under which the answer is stored for later rows. `unsaid`: the
    error of a request whose fields the client drops.
    """

    operation: str
    thing: str | None
    fields: Callable[[Home], Json] = _none
    check: Callable[[Json, Home], bool] = lambda _answer, _home: True
    rows: pa.Table | None = None
    code: int | None = None
    outsider: int | str = DENIED
    key: str = ""
    more: tuple[str, ...] = ()
    unsaid: int | None = None

    def code_for(self, home: Home) -> int | None:
        """Return the expected code: only the owner of the metalake learns that a catalog does not exist."""
        return DENIED if self.code == 1 and not home.path else self.code

    @property
    def data(self) -> bytes | None:
        """Return the rows of the body, as a stream."""
        return None if self.rows is None else stream(self.rows)

    def ident(self, home: Home) -> list[str] | None:
        """Return the identifier of the request."""
        return (
            None
            if self.thing is None
            else [*home.named(self.thing), *(str(home.said(*each.split("."))) for each in self.more)]
        )  # type: ignore[arg-type]


def _is(**expected: object) -> Callable[[Json, Home], bool]:
    return lambda answer, _home: all(answer.get(name) == value for name, value in expected.items())


def _has(field: str, *names: str, lacks: str = "") -> Callable[[Json, Home], bool]:
    def check(answer: Json, home: Home) -> bool:
        listed_names = list(answer.get(field) or ())  # type: ignore[call-overload]
        return all(home.named(each)[-1] in listed_names for each in names) and (
            not lacks or home.named(lacks)[-1] not in listed_names
        )

    return check


def _set(**fields: object) -> Callable[[Home], Json]:
    return lambda _home: dict(fields)


def _rows_are(check: Callable[[pa.Table], bool]) -> Callable[[Json, Home], bool]:
    return lambda answer, _home: check(pa.ipc.open_file(io.BytesIO(answer["data"])).read_all())  # type: ignore[arg-type]


QUERY: Final[Json] = {
    "k": 3,
    "vector": {"single_vector": NEAR},
    "columns": {"column_names": ["id"]},
    "with_row_id": True,
}
FEW: Final = ROWS.slice(0, 10)

SPACES: Final = (
    Call("create_namespace", "n", _set(properties={"a": "b"}), _is(properties={"a": "b"})),
    Call("namespace_exists", "n"),
    Call("describe_namespace", "n", check=lambda answer, _: answer["properties"]["a"] == "b"),  # type: ignore[index,call-overload,no-any-return]
    Call("list_namespaces", "", check=_has("namespaces", "n")),
    Call("list_tables", "n", check=_is(tables=[])),
    Call("create_namespace", "n", _set(), code=2),
    Call("create_namespace", "n", _set(mode="ExistOk"), _is(properties={"a": "b"})),
    Call("drop_namespace", "n", _set(behavior="Restrict")),
    Call("namespace_exists", "n", code=1),
)
"""Calls about a namespace, from create to drop."""

DATABASES: Final = (
    Call("create_namespace", "n", _set()),
    Call("list_namespaces", "", check=_has("namespaces", "n")),
    Call("list_tables", "n", check=_is(tables=[])),
    Call("create_namespace", "n", _set(), code=2),
    Call("create_namespace", "n", _set(mode="ExistOk")),
    Call("drop_namespace", "n"),
)
"""The same for a catalog, as far as LanceDB has calls for it."""

_MANAGED: Final = {"managed_versioning": "true"}
TABLES: Final = (
    Call(
        "create_table",
        "t",
        _set(mode="Create", properties={"a": "b"}),
        _is(version=1, properties={"a": "b"}),
        rows=ROWS,
    ),
    Call("create_table", "t", _set(mode="Create"), rows=ROWS, code=5),
    Call("declare_table", "d", _set(properties={"p": "q"}), _is(properties={"p": "q"}), key="d"),
    Call("table_exists", "d"),
    Call("list_tables", "", check=_has("tables", "t", "d")),
    Call("list_tables", "", _set(include_declared=False), _has("tables", "t", lacks="d")),
    Call(
        "list_all_tables",
        None,
        check=lambda answer, home: "$".join(home.named("t")) in answer["tables"],
        outsider=SHOWN_NOTHING,
    ),  # type: ignore[operator]
    Call("describe_table", "t", check=lambda answer, _: answer["version"] == 1 and bool(answer["location"]), key="t"),
    Call("insert_into_table", "t", _set(mode="append"), _is(num_inserted_rows=10, version=2), rows=FEW),
    Call("insert_into_table", "t", _set(mode="append"), rows=pa.table({"other": [1]}), code=20),
    Call(
        "merge_insert_into_table",
        "t",
        _set(on=["id"], when_matched_update_all=False, when_not_matched_insert_all=True),
        _is(num_inserted_rows=1, num_updated_rows=0, version=3),
        rows=FEW.slice(0, 2).set_column(0, "id", pa.array([5, 9999])),
    ),
    Call("count_table_rows", "t", _set(predicate="id < 10"), _is(value=20)),
    Call("update_table", "t", _set(updates=[["text", "'x'"]], predicate="id = 1"), _is(updated_rows=2, version=4)),
    Call(
        "query_table",
        "t",
        _set(**QUERY),
        _rows_are(
            lambda result_table: (
                result_table["id"][0].as_py() == 17 and set(result_table.column_names) == {"id", "_distance", "_rowid"}
            )
        ),
    ),
    Call("query_table", "t", _set(k=5, vector={"single_vector": []}, filter="nope > 1"), code=12),
    Call(
        "explain_table_query_plan",
        "t",
        _set(query=QUERY, verbose=True),
        lambda answer, _: "LanceRead" in str(answer["value"]),
    ),
    Call("analyze_table_query_plan", "t", _set(**QUERY), lambda answer, _: "metrics" in str(answer["value"])),
    Call("delete_from_table", "t", _set(predicate="id = 2"), _is(version=5)),
    Call("alter_table_add_columns", "t", _set(new_columns=[{"name": "twice", "expression": "id * 2"}]), _is(version=6)),
    Call("alter_table_alter_columns", "t", _set(alterations=[{"path": "twice", "rename": "double"}]), _is(version=7)),
    Call("alter_table_drop_columns", "t", _set(columns=["double"]), _is(version=8)),
    Call("create_table_index", "t", _set(column="vector", index_type="IVF_FLAT", distance_type="l2", num_partitions=2)),
    Call("create_table_scalar_index", "t", _set(column="id", index_type="BTREE")),
    Call(
        "list_table_indices",
        "t",
        check=lambda answer, _: {each["index_name"] for each in answer["indexes"]} == {"vector_idx", "id_idx"},
    ),  # type: ignore[attr-defined]
    Call("describe_table_index_stats", "t", _set(index_name="id_idx"), _is(index_type="BTree", num_unindexed_rows=0)),
    Call("drop_table_index", "t", _set(index_name="id_idx"), key="dropped"),
    Call("drop_table_index", "t", _set(index_name="id_idx"), code=6),
    Call("describe_transaction", "t", check=_is(status="SUCCEEDED"), more=("dropped.transaction_id",)),
    Call(
        "alter_transaction",
        "t",
        _set(actions=[{"setStatusAction": {"status": "Succeeded"}}]),
        _is(status="SUCCEEDED"),
        unsaid=13,
        more=("dropped.transaction_id",),
    ),
    Call(
        "alter_transaction",
        "t",
        _set(actions=[{"setStatusAction": {"status": "Canceled"}}]),
        code=UNSUPPORTED,
        unsaid=13,
        more=("dropped.transaction_id",),
    ),
    Call("get_table_stats", "t", check=_is(num_rows=COUNT + 9, num_indices=1)),
    Call("update_table_schema_metadata", "t", _set(metadata={"a": "b"}), _is(metadata={"a": "b"})),
    Call(
        "update_field_metadata",
        "t",
        _set(updates=[{"path": "id", "metadata": {"unit": "one"}}]),
        lambda answer, _: (
            answer.get("fields", {"id": {"unit": "one"}})["id"] == {"unit": "one"} and answer["version"] > 9
        ),
    ),  # type: ignore[index,call-overload,no-any-return]
    Call("create_table_tag", "t", _set(tag="first", version=1)),
    Call("create_table_tag", "t", _set(tag="first", version=1), code=9),
    Call("list_table_tags", "t", check=lambda answer, _: list(answer["tags"]) == ["first"]),  # type: ignore[call-overload,no-any-return]
    Call("get_table_tag_version", "t", _set(tag="first"), _is(version=1)),
    Call("update_table_tag", "t", _set(tag="first", version=2)),
    Call("get_table_tag_version", "t", _set(tag="first"), _is(version=2)),
    Call("delete_table_tag", "t", _set(tag="first")),
    Call("get_table_tag_version", "t", _set(tag="first"), code=8),
    Call("create_table_branch", "t", _set(name="dev", from_version=4)),
    Call("list_table_branches", "t", check=lambda answer, _: list(answer["branches"]) == ["dev"]),  # type: ignore[call-overload,no-any-return]
    Call("delete_table_branch", "t", _set(name="dev")),
    Call("delete_table_branch", "t", _set(name="dev"), code=22),
    Call(
        "list_table_versions",
        "t",
        check=lambda answer, _: answer["versions"][-1]["version"] == 1 or answer["versions"][0]["version"] == 1,
    ),  # type: ignore[index,call-overload,no-any-return]
    Call("describe_table_version", "t", _set(version=2), lambda answer, _: answer["version"]["version"] == 2),  # type: ignore[index,call-overload,no-any-return]
    Call("describe_table_version", "t", _set(version=99), code=11),
    Call(
        "batch_delete_table_versions", "t", _set(ranges=[{"start_version": 2, "end_version": 3}]), _is(deleted_count=1)
    ),
    Call("restore_table", "t", _set(version=1)),
    Call("restore_table", "t", _set(version=99), code=11),
    Call("count_table_rows", "t", check=_is(value=COUNT)),
    *(
        Call("declare_table", name, _set(properties=_MANAGED), _is(managed_versioning=True), key=name)
        for name in ("m", "n", "o")
    ),
    Call(
        "create_table_version",
        "m",
        lambda home: home.staged("m", 1),
        lambda answer, _: answer["version"]["version"] == 1,
    ),  # type: ignore[index,call-overload,no-any-return]
    Call("count_table_rows", "m", check=_is(value=COUNT)),
    Call("create_table_version", "m", lambda home: home.staged("m", 1), code=14),
    Call(
        "batch_create_table_versions",
        None,
        lambda home: {
            "entries": [
                {"id": home.named(name), **home.staged(name, version)} for name, version in (("m", 2), ("n", 1))
            ]
        },
        lambda answer, _: [each["version"] for each in answer["versions"]] == [2, 1],
    ),  # type: ignore[attr-defined]
    Call(
        "batch_commit_tables",
        None,
        lambda home: {
            "operations": [
                {"create_table_version": {"id": home.named("o"), **home.staged("o", 1)}},
                {"declare_table": {"id": home.named("p")}},
            ]
        },
        lambda answer, _: len(answer["results"]) == 2,
    ),  # type: ignore[arg-type]
    Call("deregister_table", "m", check=lambda answer, home: answer["id"] == home.named("m")),
    Call(
        "register_table",
        "r",
        lambda home: {"location": home.said("m", "location")},
        lambda answer, home: answer["location"] == home.said("m", "location"),
    ),
    Call("count_table_rows", "r", check=lambda answer, _: int(str(answer["value"])) >= COUNT),
    Call(
        "rename_table", "r", lambda home: {"new_table_name": home.named("u")[-1], "new_namespace_id": list(home.path)}
    ),
    Call("table_exists", "r", code=4),
    Call("drop_table", "u"),
    Call("describe_table", "u", code=4),
    Call("alter_table_backfill_columns", "t", _set(column="id"), code=UNSUPPORTED, outsider=UNSUPPORTED),
    Call(
        "create_materialized_view",
        "v",
        _set(kind="query", source_query="select 1", output_schema="a"),
        code=UNSUPPORTED,
        outsider=UNSUPPORTED,
    ),
    Call("refresh_materialized_view", "v", code=UNSUPPORTED, outsider=UNSUPPORTED),
)
"""Calls about tables, from create to drop: one with rows, one declared, one whose versions the server manages."""
