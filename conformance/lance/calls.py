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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    Call(operation="create_namespace", thing="n", fields=_set(properties={"a": "b"}), check=_is(properties={"a": "b"})),
    Call(operation="namespace_exists", thing="n"),
    Call(operation="describe_namespace", thing="n", check=lambda answer, _: answer["properties"]["a"] == "b"),  # type: ignore[index,call-overload,no-any-return]
    Call(operation="list_namespaces", thing="", check=_has("namespaces", "n")),
    Call(operation="list_tables", thing="n", check=_is(tables=[])),
    Call(operation="create_namespace", thing="n", fields=_set(), code=2),
    Call(operation="create_namespace", thing="n", fields=_set(mode="ExistOk"), check=_is(properties={"a": "b"})),
    Call(operation="drop_namespace", thing="n", fields=_set(behavior="Restrict")),
    Call(operation="namespace_exists", thing="n", code=1),
)
"""Calls about a namespace, from create to drop."""

DATABASES: Final = (
    Call(operation="create_namespace", thing="n", fields=_set()),
    Call(operation="list_namespaces", thing="", check=_has("namespaces", "n")),
    Call(operation="list_tables", thing="n", check=_is(tables=[])),
    Call(operation="create_namespace", thing="n", fields=_set(), code=2),
    Call(operation="create_namespace", thing="n", fields=_set(mode="ExistOk")),
    Call(operation="drop_namespace", thing="n"),
)
"""The same for a catalog, as far as LanceDB has calls for it."""

_MANAGED: Final = {"managed_versioning": "true"}
TABLES: Final = (
    Call(
        operation="create_table",
        thing="t",
        fields=_set(mode="Create", properties={"a": "b"}),
        check=_is(version=1, properties={"a": "b"}),
        rows=ROWS,
    ),
    Call(operation="create_table", thing="t", fields=_set(mode="Create"), rows=ROWS, code=5),
    Call(
        operation="declare_table",
        thing="d",
        fields=_set(properties={"p": "q"}),
        check=_is(properties={"p": "q"}),
        key="d",
    ),
    Call(operation="table_exists", thing="d"),
    Call(operation="list_tables", thing="", check=_has("tables", "t", "d")),
    Call(operation="list_tables", thing="", fields=_set(include_declared=False), check=_has("tables", "t", lacks="d")),
    Call(
        operation="list_all_tables",
        thing=None,
        check=lambda answer, home: "$".join(home.named("t")) in answer["tables"],
        outsider=SHOWN_NOTHING,
    ),  # type: ignore[operator]
    Call(
        operation="describe_table",
        thing="t",
        check=lambda answer, _: answer["version"] == 1 and bool(answer["location"]),
        key="t",
    ),
    Call(
        operation="insert_into_table",
        thing="t",
        fields=_set(mode="append"),
        check=_is(num_inserted_rows=10, version=2),
        rows=FEW,
    ),
    Call(operation="insert_into_table", thing="t", fields=_set(mode="append"), rows=pa.table({"other": [1]}), code=20),
    Call(
        operation="merge_insert_into_table",
        thing="t",
        fields=_set(on=["id"], when_matched_update_all=False, when_not_matched_insert_all=True),
        check=_is(num_inserted_rows=1, num_updated_rows=0, version=3),
        rows=FEW.slice(0, 2).set_column(0, "id", pa.array([5, 9999])),
    ),
    Call(operation="count_table_rows", thing="t", fields=_set(predicate="id < 10"), check=_is(value=20)),
    Call(
        operation="update_table",
        thing="t",
        fields=_set(updates=[["text", "'x'"]], predicate="id = 1"),
        check=_is(updated_rows=2, version=4),
    ),
    Call(
        operation="query_table",
        thing="t",
        fields=_set(**QUERY),
        check=_rows_are(
            lambda result_table: (
                result_table["id"][0].as_py() == 17 and set(result_table.column_names) == {"id", "_distance", "_rowid"}
            )
        ),
    ),
    Call(
        operation="query_table", thing="t", fields=_set(k=5, vector={"single_vector": []}, filter="nope > 1"), code=12
    ),
    Call(
        operation="explain_table_query_plan",
        thing="t",
        fields=_set(query=QUERY, verbose=True),
        check=lambda answer, _: "LanceRead" in str(answer["value"]),
    ),
    Call(
        operation="analyze_table_query_plan",
        thing="t",
        fields=_set(**QUERY),
        check=lambda answer, _: "metrics" in str(answer["value"]),
    ),
    Call(operation="delete_from_table", thing="t", fields=_set(predicate="id = 2"), check=_is(version=5)),
    Call(
        operation="alter_table_add_columns",
        thing="t",
        fields=_set(new_columns=[{"name": "twice", "expression": "id * 2"}]),
        check=_is(version=6),
    ),
    Call(
        operation="alter_table_alter_columns",
        thing="t",
        fields=_set(alterations=[{"path": "twice", "rename": "double"}]),
        check=_is(version=7),
    ),
    Call(operation="alter_table_drop_columns", thing="t", fields=_set(columns=["double"]), check=_is(version=8)),
    Call(
        operation="create_table_index",
        thing="t",
        fields=_set(column="vector", index_type="IVF_FLAT", distance_type="l2", num_partitions=2),
    ),
    Call(operation="create_table_scalar_index", thing="t", fields=_set(column="id", index_type="BTREE")),
    Call(
        operation="list_table_indices",
        thing="t",
        check=lambda answer, _: {each["index_name"] for each in answer["indexes"]} == {"vector_idx", "id_idx"},
    ),  # type: ignore[attr-defined]
    Call(
        operation="describe_table_index_stats",
        thing="t",
        fields=_set(index_name="id_idx"),
        check=_is(index_type="BTree", num_unindexed_rows=0),
    ),
    Call(operation="drop_table_index", thing="t", fields=_set(index_name="id_idx"), key="dropped"),
    Call(operation="drop_table_index", thing="t", fields=_set(index_name="id_idx"), code=6),
    Call(operation="describe_transaction", thing="t", check=_is(status="SUCCEEDED"), more=("dropped.transaction_id",)),
    Call(
        operation="alter_transaction",
        thing="t",
        fields=_set(actions=[{"setStatusAction": {"status": "Succeeded"}}]),
        check=_is(status="SUCCEEDED"),
        unsaid=13,
        more=("dropped.transaction_id",),
    ),
    Call(
        operation="alter_transaction",
        thing="t",
        fields=_set(actions=[{"setStatusAction": {"status": "Canceled"}}]),
        code=UNSUPPORTED,
        unsaid=13,
        more=("dropped.transaction_id",),
    ),
    Call(operation="get_table_stats", thing="t", check=_is(num_rows=COUNT + 9, num_indices=1)),
    Call(
        operation="update_table_schema_metadata",
        thing="t",
        fields=_set(metadata={"a": "b"}),
        check=_is(metadata={"a": "b"}),
    ),
    Call(
        operation="update_field_metadata",
        thing="t",
        fields=_set(updates=[{"path": "id", "metadata": {"unit": "one"}}]),
        check=lambda answer, _: (
            answer.get("fields", {"id": {"unit": "one"}})["id"] == {"unit": "one"} and answer["version"] > 9
        ),
    ),  # type: ignore[index,call-overload,no-any-return]
    Call(operation="create_table_tag", thing="t", fields=_set(tag="first", version=1)),
    Call(operation="create_table_tag", thing="t", fields=_set(tag="first", version=1), code=9),
    Call(operation="list_table_tags", thing="t", check=lambda answer, _: list(answer["tags"]) == ["first"]),  # type: ignore[call-overload,no-any-return]
    Call(operation="get_table_tag_version", thing="t", fields=_set(tag="first"), check=_is(version=1)),
    Call(operation="update_table_tag", thing="t", fields=_set(tag="first", version=2)),
    Call(operation="get_table_tag_version", thing="t", fields=_set(tag="first"), check=_is(version=2)),
    Call(operation="delete_table_tag", thing="t", fields=_set(tag="first")),
    Call(operation="get_table_tag_version", thing="t", fields=_set(tag="first"), code=8),
    Call(operation="create_table_branch", thing="t", fields=_set(name="dev", from_version=4)),
    Call(operation="list_table_branches", thing="t", check=lambda answer, _: list(answer["branches"]) == ["dev"]),  # type: ignore[call-overload,no-any-return]
    Call(operation="delete_table_branch", thing="t", fields=_set(name="dev")),
    Call(operation="delete_table_branch", thing="t", fields=_set(name="dev"), code=22),
    Call(
        operation="list_table_versions",
        thing="t",
        check=lambda answer, _: answer["versions"][-1]["version"] == 1 or answer["versions"][0]["version"] == 1,
    ),  # type: ignore[index,call-overload,no-any-return]
    Call(
        operation="describe_table_version",
        thing="t",
        fields=_set(version=2),
        check=lambda answer, _: answer["version"]["version"] == 2,
    ),  # type: ignore[index,call-overload,no-any-return]
    Call(operation="describe_table_version", thing="t", fields=_set(version=99), code=11),
    Call(
        operation="batch_delete_table_versions",
        thing="t",
        fields=_set(ranges=[{"start_version": 2, "end_version": 3}]),
        check=_is(deleted_count=1),
    ),
    Call(operation="restore_table", thing="t", fields=_set(version=1)),
    Call(operation="restore_table", thing="t", fields=_set(version=99), code=11),
    Call(operation="count_table_rows", thing="t", check=_is(value=COUNT)),
    *(
        Call(
            operation="declare_table",
            thing=name,
            fields=_set(properties=_MANAGED),
            check=_is(managed_versioning=True),
            key=name,
        )
        for name in ("m", "n", "o")
    ),
    Call(
        operation="create_table_version",
        thing="m",
        fields=lambda home: home.staged("m", 1),
        check=lambda answer, _: answer["version"]["version"] == 1,
    ),  # type: ignore[index,call-overload,no-any-return]
    Call(operation="count_table_rows", thing="m", check=_is(value=COUNT)),
    Call(operation="create_table_version", thing="m", fields=lambda home: home.staged("m", 1), code=14),
    Call(
        operation="batch_create_table_versions",
        thing=None,
        fields=lambda home: {
            "entries": [
                {"id": home.named(name), **home.staged(name, version)} for name, version in (("m", 2), ("n", 1))
            ]
        },
        check=lambda answer, _: [each["version"] for each in answer["versions"]] == [2, 1],
    ),  # type: ignore[attr-defined]
    Call(
        operation="batch_commit_tables",
        thing=None,
        fields=lambda home: {
            "operations": [
                {"create_table_version": {"id": home.named("o"), **home.staged("o", 1)}},
                {"declare_table": {"id": home.named("p")}},
            ]
        },
        check=lambda answer, _: len(answer["results"]) == 2,
    ),  # type: ignore[arg-type]
    Call(operation="deregister_table", thing="m", check=lambda answer, home: answer["id"] == home.named("m")),
    Call(
        operation="register_table",
        thing="r",
        fields=lambda home: {"location": home.said("m", "location")},
        check=lambda answer, home: answer["location"] == home.said("m", "location"),
    ),
    Call(operation="count_table_rows", thing="r", check=lambda answer, _: int(str(answer["value"])) >= COUNT),
    Call(
        operation="rename_table",
        thing="r",
        fields=lambda home: {"new_table_name": home.named("u")[-1], "new_namespace_id": list(home.path)},
    ),
    Call(operation="table_exists", thing="r", code=4),
    Call(operation="drop_table", thing="u"),
    Call(operation="describe_table", thing="u", code=4),
    Call(
        operation="alter_table_backfill_columns",
        thing="t",
        fields=_set(column="id"),
        code=UNSUPPORTED,
        outsider=UNSUPPORTED,
    ),
    Call(
        operation="create_materialized_view",
        thing="v",
        fields=_set(kind="query", source_query="select 1", output_schema="a"),
        code=UNSUPPORTED,
        outsider=UNSUPPORTED,
    ),
    Call(operation="refresh_materialized_view", thing="v", code=UNSUPPORTED, outsider=UNSUPPORTED),
)
"""Calls about tables, from create to drop: one with rows, one declared, one whose versions the server manages."""
