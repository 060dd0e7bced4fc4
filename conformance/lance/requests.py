# SPDX-License-Identifier: Apache-2.0
"""Valid and invalid requests that are sent to the reference server and to this one, in this order.

May import this package's home for rows. Each row has a unique name, which the table of differences uses, and names the
reason why the answers may differ.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from conformance.lance.home import NEAR, ROWS, Json, stream


class ReferenceRequest(NamedTuple):
    """A request: a name, method and address, and a body as JSON or bytes. `why`: a key of `reasons.REASONS`, for
    rows whose answers differ.
    """

    name: str
    method: str
    path: str
    body: object = None
    why: str = ""

    @property
    def sent(self) -> tuple[bytes | None, str]:
        """The body's bytes and type."""
        if isinstance(self.body, str):
            return self.body.encode(), "application/json"
        if isinstance(self.body, bytes):
            return self.body, "application/vnd.apache.arrow.stream"
        if self.body is None:
            return None, ""
        return json.dumps(self.body).encode(), "application/json"

    @property
    def address(self) -> str:
        """Return the path as it is sent."""
        return "/v1/" + quote(self.path, safe="/?=&%+.:,")


def _file() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return bytes(sink.getvalue())


A: Final = "namespace/lance$a"
T: Final = "table/lance$a$t"
W: Final = "table/lance$w$t"
"""A table like T, for requests that only one of the servers accepts, so that T stays equal on both."""
FEW: Final = stream(ROWS.slice(0, 10))
_ONE: Final[Json] = {"single_vector": NEAR}


def _space(action: str, name: str, body: object = None, *, why: str = "", at: str = A) -> ReferenceRequest:
    return ReferenceRequest(
        name=f"namespace {action}: {name}",
        method="POST",
        path=f"{at}/{action}",
        body={} if body is None else body,
        why=why,
    )


def _listed(name: str, path: str, *, why: str = "") -> ReferenceRequest:
    return ReferenceRequest(name=f"list: {name}", method="GET", path=path, body=None, why=why)


def _table(action: str, name: str, body: object = None, *, why: str = "", at: str = T) -> ReferenceRequest:
    return ReferenceRequest(
        name=f"table {action.partition('?')[0]}: {name}",
        method="POST",
        path=f"{at}/{action}",
        body={} if body is None else body,
        why=why,
    )


SPACES: Final = (
    _space("create", "a namespace", {"properties": {"k": "v"}}),
    _space("create", "a taken name", {}),
    _space("create", "another namespace", {"properties": {"k": "v"}}, at="namespace/lance$w"),
    _space("create", "a taken name, exist ok", {"mode": "ExistOk"}, why="modes"),
    _space("create", "a taken name, exist_ok", {"mode": "exist_ok"}, why="modes"),
    _space(
        "create",
        "over an empty one",
        {"mode": "Overwrite", "properties": {"k": "w"}},
        at="namespace/lance$w",
        why="modes",
    ),
    _space("create", "no such mode", {"mode": "sometimes"}, why="modes"),
    _space("create", "a mode that is a number", {"mode": 7}),
    _space("create", "no parent", {}, at="namespace/lance$none$b"),
    _space("create", "one below", {}, at="namespace/lance$a$b"),
    _space("create", "the root", {}, at="namespace/$"),
    _space("create", "properties that are no texts", {"properties": {"n": 1}}, at="namespace/lance$n"),
    _space("create", "an id that is another", {"id": ["lance", "other"]}, at="namespace/lance$n"),
    _space("create", "an id that is no list", {"id": "lance$n"}, at="namespace/lance$n"),
    _space("create", "no JSON", "{", at="namespace/lance$n"),
    _space("create", "a list for a body", [1], at="namespace/lance$n"),
    _space("create", "null for a body", "null", at="namespace/lance$w$nothing", why="null"),
    _space("create", "fields that nobody knows", {"future": {"x": 1}}, at="namespace/lance$n"),
    _space(
        "create",
        "a name with a plus for a space",
        {"id": ["lance", "w", "two words"]},
        at="namespace/lance$w$two+words",
        why="plus",
    ),
    _space("create", "an empty name", {}, at="namespace/lance$w$$e", why="empty names"),
    _space("create", "a name of two dots", {}, at="namespace/lance$w$%2e%2e", why="dots"),
    _space("describe", "a namespace"),
    _space("describe", "none", at="namespace/lance$none"),
    _space("describe", "none in none", at="namespace/lance$none$b"),
    _space("describe", "the root", at="namespace/$"),
    _space("describe", "another delimiter", at="namespace/lance::a", body={}),
    ReferenceRequest(
        name="namespace describe: by another delimiter",
        method="POST",
        path="namespace/lance::a/describe?delimiter=::",
        body={},
    ),
    ReferenceRequest(
        name="namespace describe: by a dot", method="POST", path="namespace/lance.a/describe?delimiter=.", body={}
    ),
    ReferenceRequest(
        name="namespace describe: by an empty delimiter",
        method="POST",
        path="namespace/lance$a/describe?delimiter=",
        body={},
        why="delimiters",
    ),
    ReferenceRequest(
        name="namespace describe: the root without an id",
        method="POST",
        path="namespace/describe?delimiter=.",
        body={},
        why="root",
    ),
    _space("exists", "a namespace"),
    _space("exists", "none", at="namespace/lance$none"),
    _space("exists", "the root", at="namespace/$"),
    _listed("the root", "namespace/$/list", why="root names"),
    _listed("the root by a dot", "namespace/./list?delimiter=.", why="root names"),
    _listed("the root without an id", "namespace/list?delimiter=.", why="root"),
    _listed("a namespace", "namespace/lance$a/list"),
    _listed("a namespace that is not there", "namespace/lance$none/list", why="missing lists"),
    _listed("one name", "namespace/lance/list?limit=1", why="page tokens"),
    _listed("behind a name", "namespace/lance/list?page_token=a", why="page tokens"),
    _listed("no names", "namespace/lance/list?limit=0"),
    _listed("fewer than none", "namespace/lance/list?limit=-1", why="limits"),
    _listed("no number of names", "namespace/lance/list?limit=many"),
    _listed("no tables", "namespace/lance$a/table/list"),
    _listed("tables of nothing", "namespace/lance$none/table/list", why="missing lists"),
    _space("drop", "what has something in it", {}),
    _space("drop", "restricted", {"behavior": "Restrict"}),
    _space("drop", "no such behaviour", {"behavior": "maybe"}, why="modes"),
    _space("drop", "no such mode", {"mode": "maybe"}, why="modes"),
    _space("drop", "none", {}, at="namespace/lance$none"),
    _space("drop", "none, skipped", {"mode": "Skip"}, at="namespace/lance$none", why="modes"),
    _space("drop", "the root", {}, at="namespace/$"),
    _space("create", "one to go", {}, at="namespace/lance$gone"),
    _space("create", "one in it", {}, at="namespace/lance$gone$b"),
    _space("drop", "all in it", {"behavior": "Cascade"}, at="namespace/lance$gone", why="modes"),
    ReferenceRequest(name="a trailing slash", method="POST", path="namespace/lance$a/describe/", body={}),
    ReferenceRequest(name="a doubled slash", method="POST", path="/namespace/lance$a/describe", body={}, why="slashes"),
    ReferenceRequest(name="no such route", method="POST", path="namespace/lance$a/dance", body={}, why="error bodies"),
    ReferenceRequest(
        name="no such method", method="PUT", path="namespace/lance$a/describe", body={}, why="error bodies"
    ),
    ReferenceRequest(
        name="GET where POST is meant", method="GET", path="namespace/lance$a/describe", body=None, why="error bodies"
    ),
)
"""Requests about namespaces."""

MAKING: Final = (
    _table("create", "with rows", stream()),
    _table("create", "a taken name", stream()),
    _table("create?mode=ExistOk", "a taken name, exist ok", stream()),
    _table("create?mode=Overwrite", "over it", stream()),
    _table("create?mode=sometimes", "no such mode", stream(), at="table/lance$a$m"),
    _table("create", "no bytes", b"", at="table/lance$a$e"),
    _table("create", "no Arrow", b"not arrow at all", at="table/lance$a$e", why="cut bodies"),
    _table("create", "an Arrow file", _file(), at="table/lance$a$e", why="cut bodies"),
    _table("create", "half a stream", stream()[:3000], at="table/lance$a$e", why="cut bodies"),
    _table("create", "for what is wrong", stream(), at=W),
    _table("create", "a schema without rows", stream(ROWS.slice(0, 0)), at="table/lance$w$s", why="schema only"),
    _table("create", "no namespace", stream(), at="table/lance$none$t", why="missing parents"),
    _table("create", "at a namespace", stream(), at="table/lance$a"),
    _table("create?properties=%7B", "properties that are no JSON", stream(), at="table/lance$a$e"),
    _table("create?properties=%7B%22a%22:%22b%22%7D", "with properties", stream(), at="table/lance$a$p"),
    _table("describe", "with properties", {}, at="table/lance$a$p", why="full describes"),
    _table("declare", "a table", {"properties": {"p": "q"}}, at="table/lance$a$d"),
    _table("declare", "a taken name", {}, at="table/lance$a$d"),
    _table("declare", "no namespace", {}, at="table/lance$none$d", why="missing parents"),
    _table("declare", "outside", {"location": "file:///etc"}, at="table/lance$a$out"),
    _table("declare", "at a namespace", {}, at="table/lance$a"),
    _table("register", "no location", {}, at="table/lance$a$r"),
    _table("register", "an empty location", {"location": ""}, at="table/lance$w$r", why="empty locations"),
    _table("register", "outside", {"location": "file:///etc"}, at="table/lance$a$r"),
    _table("register", "a path up", {"location": "../../etc"}, at="table/lance$a$r"),
    _table("register", "a taken name", {"location": "nowhere"}),
    _table("describe", "a table", {}, why="full describes"),
    _table("describe", "without what takes opening it", {"load_detailed_metadata": False}),
    _table("describe", "with it", {"load_detailed_metadata": True}, why="full describes"),
    _table("describe", "an old version", {"version": 1, "load_detailed_metadata": True}, why="full describes"),
    _table("describe", "no such version", {"version": 99, "load_detailed_metadata": True}, why="bad versions"),
    _table("describe", "no such version, briefly", {"version": 99}, why="bad versions"),
    _table("describe", "version 0", {"version": 0, "load_detailed_metadata": True}, why="bad versions"),
    _table("describe", "a version below none", {"version": -1, "load_detailed_metadata": True}, why="bad versions"),
    _table("describe", "a version that is a text", {"version": "one"}),
    _table("describe", "no such tag", {"tag": "none", "load_detailed_metadata": True}, why="tags in describes"),
    _table("describe", "no such branch", {"branch": "none", "load_detailed_metadata": True}, why="tags in describes"),
    _table("describe", "none", {}, at="table/lance$a$none"),
    _table("describe", "none in no namespace", {}, at="table/lance$none$t", why="missing parents"),
    _table("describe", "a namespace", {}, at="table/lance$a"),
    _table("describe", "a declared one", {"load_detailed_metadata": True}, at="table/lance$a$d"),
    _table(
        "describe",
        "whether it is declared",
        {"check_declared": True, "load_detailed_metadata": False},
        at="table/lance$a$d",
    ),
    _table("describe", "an id that is another", {"id": ["lance", "a", "x"]}),
    _table("exists", "a table"),
    _table("exists", "none", at="table/lance$a$none"),
    _table("exists", "a declared one", at="table/lance$a$d"),
    _table("exists", "no such version", {"version": 99}, why="versions in exists"),
    _listed("tables", "namespace/lance$a/table/list"),
    _listed("tables with rows", "namespace/lance$a/table/list?include_declared=false"),
    _listed("tables, some other flag", "namespace/lance$a/table/list?include_declared=perhaps"),
    _listed("one table", "namespace/lance$a/table/list?limit=1", why="page tokens"),
    _listed("all tables", "table", why="all tables"),
    _listed("all tables, with a slash", "table/", why="all tables"),
)
"""Requests about tables as objects."""

ROW_WORK: Final = (
    _table("insert", "rows", FEW),
    _table("insert?mode=append", "a schema alone", stream(ROWS.slice(0, 0))),
    _table("insert?mode=upsert", "no such mode", FEW),
    _table("insert", "other columns", stream(pa.table({"other": [1]})), why="schemas"),
    _table("insert", "other types", stream(pa.table({"id": ["a"], "text": ["b"], "vector": [[1.0]]})), why="schemas"),
    _table("insert", "no bytes", b""),
    _table("insert", "no Arrow", b"garbage garbage garbage"),
    _table("insert", "an Arrow file", _file()),
    _table("insert", "half a stream", stream()[:3000], why="cut bodies"),
    _table("insert", "into none", FEW, at="table/lance$a$none"),
    _table("insert?branch=none", "no such branch", FEW, at=W, why="branches"),
    _table("insert", "into a declared one", FEW, at="table/lance$a$d"),
    _table("insert?mode=overwrite", "in place of all", FEW, at="table/lance$a$d"),
    _table(
        "merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true",
        "by a key",
        stream(ROWS.slice(295, 5)),
    ),
    _table("merge_insert", "no key", FEW),
    _table("merge_insert?on=none", "no such key", FEW, why="columns"),
    _table("merge_insert?on=id", "nothing to be done", FEW, at=W, why="idle merges"),
    _table("merge_insert?on=id&when_matched_update_all=true&timeout=soon", "no such time", FEW, at=W, why="times"),
    _table("merge_insert?on=id&when_matched_update_all=maybe", "no such flag", FEW, at=W),
    _table(
        "merge_insert?on=id&when_matched_update_all=true",
        "other columns",
        stream(pa.table({"other": [1]})),
        why="schemas",
    ),
    _table("update", "a column", {"updates": [["text", "'x'"]], "predicate": "id = 1"}),
    _table("update", "every row", {"updates": [["text", "'y'"]]}),
    _table("update", "nothing", {"updates": []}, why="empty changes"),
    _table("update", "no updates", {}),
    _table("update", "no such column", {"updates": [["none", "1"]]}, why="columns"),
    _table("update", "no expression", {"updates": [["text", "((("]]}),
    _table("update", "half an update", {"updates": [["text"]]}),
    _table("update", "a bad predicate", {"updates": [["text", "'x'"]], "predicate": "id ="}),
    _table("update", "none", {"updates": [["text", "'x'"]]}, at="table/lance$a$none"),
    _table("delete", "a row", {"predicate": "id = 2"}),
    _table("delete", "no predicate", {}),
    _table("delete", "an empty predicate", {"predicate": ""}),
    _table("delete", "a bad predicate", {"predicate": "id ="}),
    _table("delete", "no such column", {"predicate": "none = 1"}, why="columns"),
    _table("delete", "none", {"predicate": "true"}, at="table/lance$a$none"),
    _table("count_rows", "all"),
    _table("count_rows", "some", {"predicate": "id < 10"}),
    _table("count_rows", "a bad predicate", {"predicate": "id <"}, why="predicates"),
    _table("count_rows", "no such column", {"predicate": "none < 1"}, why="columns"),
    _table("count_rows", "an old version", {"version": 1}),
    _table("count_rows", "no such version", {"version": 99}),
    _table("count_rows", "none", {}, at="table/lance$a$none"),
    _table("query", "near a vector", {"k": 3, "vector": _ONE, "columns": {"column_names": ["id"]}}),
    _table(
        "query",
        "with row ids",
        {"k": 2, "vector": _ONE, "columns": {"column_names": ["id"]}, "with_row_id": True, "offset": 1},
        why="offsets",
    ),
    _table("query", "a filter", {"k": 5, "vector": {}, "filter": "id < 3", "columns": {"column_names": ["id"]}}),
    _table(
        "query",
        "a filter beforehand",
        {"k": 2, "vector": _ONE, "filter": "id > 200", "prefilter": True, "columns": {"column_names": ["id"]}},
    ),
    _table(
        "query",
        "other names",
        {"k": 2, "vector": {}, "columns": {"column_aliases": {"x": "id + 1"}}, "filter": "id < 5"},
    ),
    _table(
        "query",
        "both sorts of columns",
        {"k": 2, "vector": {}, "columns": {"column_names": ["id"], "column_aliases": {"x": "id"}}},
        why="both columns",
    ),
    _table(
        "query",
        "several vectors",
        {"k": 2, "vector": {"multi_vector": [NEAR, NEAR]}, "columns": {"column_names": ["id"]}},
        why="several vectors",
    ),
    _table("query", "a vector of another length", {"k": 2, "vector": {"single_vector": [1.0]}}),
    _table("query", "a vector of texts", {"k": 2, "vector": {"single_vector": ["a"]}}),
    _table("query", "no number of rows", {"vector": _ONE}),
    _table("query", "fewer rows than none", {"k": -1, "vector": _ONE}, why="limits"),
    _table("query", "no such vector column", {"k": 2, "vector": _ONE, "vector_column": "none"}, why="columns"),
    _table("query", "no such distance", {"k": 2, "vector": _ONE, "distance_type": "far"}),
    _table("query", "no such column", {"k": 2, "vector": {}, "columns": {"column_names": ["none"]}}, why="columns"),
    _table("query", "a bad filter", {"k": 2, "vector": {}, "filter": "id <"}, why="predicates"),
    _table("query", "a filter on no column", {"k": 2, "vector": {}, "filter": "none < 1"}, why="columns"),
    _table("query", "no such version", {"k": 2, "vector": {}, "version": 99}, why="bad versions"),
    _table(
        "query",
        "words without an index",
        {
            "k": 2,
            "vector": {},
            "full_text_query": {"string_query": {"query": "cat", "columns": ["text"]}},
            "columns": {"column_names": ["id"]},
        },
    ),
    _table("query", "no JSON", "{{"),
    _table("query", "none", {"k": 2, "vector": {}}, at="table/lance$a$none"),
    _table("explain_plan", "a query", {"query": {"k": 2, "vector": _ONE}}),
    _table("explain_plan", "no query", {}),
    _table("explain_plan", "a bad query", {"query": {"k": 2, "vector": {}, "filter": "id <"}}, why="predicates"),
    _table("analyze_plan", "a query", {"k": 2, "vector": _ONE}),
    _table("analyze_plan", "a bad query", {"k": 2, "vector": {}, "filter": "none < 1"}, why="columns"),
)
"""Requests about rows."""

INSIDE: Final = (
    _table(
        "create_index",
        "near vectors",
        {"column": "vector", "index_type": "IVF_FLAT", "num_partitions": 2, "distance_type": "l2"},
    ),
    _table("create_index", "a taken name", {"column": "vector", "index_type": "IVF_FLAT", "num_partitions": 2}),
    _table("create_scalar_index", "numbers", {"column": "id", "index_type": "BTREE"}),
    _table("create_scalar_index", "no such column", {"column": "none", "index_type": "BTREE"}),
    _table("create_scalar_index", "no such type", {"column": "id", "index_type": "TREEISH"}),
    _table("create_scalar_index", "no column", {"index_type": "BTREE"}),
    _table("create_index", "no type", {"column": "id"}),
    _table("create_index", "none", {"column": "id", "index_type": "BTREE"}, at="table/lance$a$none"),
    _table("index/list", "all"),
    _table("index/list", "one", {"limit": 1}, why="index pages"),
    _table("index/list", "none", {}, at="table/lance$a$none"),
    _table("index/id_idx/stats", "of one", {}),
    _table("index/none/stats", "of none", {}),
    ReferenceRequest(name="table index/drop: one", method="POST", path=f"{T}/index/id_idx/drop", body=None),
    ReferenceRequest(name="table index/drop: none", method="POST", path=f"{T}/index/none/drop", body=None),
    _table("stats", "of a table", why="stats"),
    _table("stats", "of none", {}, at="table/lance$a$none"),
    _table("add_columns", "one", {"new_columns": [{"name": "twice", "expression": "id * 2"}]}),
    _table("add_columns", "a taken name", {"new_columns": [{"name": "id", "expression": "1"}]}, why="taken columns"),
    _table(
        "add_columns", "a bad expression", {"new_columns": [{"name": "bad", "expression": "id *"}]}, why="predicates"
    ),
    _table(
        "add_columns", "no such column", {"new_columns": [{"name": "bad", "expression": "none * 2"}]}, why="columns"
    ),
    _table("add_columns", "no expression", {"new_columns": [{"name": "bad"}]}, why="empty columns"),
    _table("add_columns", "none", {"new_columns": []}, at=W, why="empty changes"),
    _table("alter_columns", "a name", {"alterations": [{"path": "twice", "rename": "double"}]}),
    _table("alter_columns", "no such column", {"alterations": [{"path": "none", "rename": "x"}]}, why="columns"),
    _table("alter_columns", "nothing", {"alterations": []}, at=W, why="empty changes"),
    _table("drop_columns", "one", {"columns": ["double"]}),
    _table("drop_columns", "no such column", {"columns": ["none"]}, why="columns"),
    _table("drop_columns", "none", {"columns": []}, at=W, why="empty changes"),
    _table("schema_metadata/update", "texts", {"a": "b"}),
    _table("schema_metadata/update", "numbers", {"a": 1}),
    _table(
        "update_field_metadata",
        "a column",
        {"updates": [{"path": "id", "metadata": {"u": "one"}}]},
        at=W,
        why="unserved",
    ),
    _table(
        "update_field_metadata",
        "no such column",
        {"updates": [{"path": "none", "metadata": {"u": "one"}}]},
        why="unserved",
    ),
    ReferenceRequest(name="table tags/list: none yet", method="POST", path=f"{T}/tags/list", body=None),
    _table("tags/create", "a tag", {"tag": "first", "version": 1}),
    _table("tags/create", "a taken name", {"tag": "first", "version": 1}),
    _table("tags/create", "no such version", {"tag": "other", "version": 99}),
    _table("tags/create", "no name", {"version": 1}),
    _table("tags/create", "a name that is none", {"tag": "a/../b", "version": 1}),
    _table("tags/version", "a tag", {"tag": "first"}),
    _table("tags/version", "none", {"tag": "none"}),
    _table("tags/update", "a tag", {"tag": "first", "version": 2}),
    _table("tags/update", "none", {"tag": "none", "version": 2}),
    _table("tags/update", "no such version", {"tag": "first", "version": 99}),
    _table("describe", "a tag", {"tag": "first", "load_detailed_metadata": True}, why="full describes"),
    ReferenceRequest(name="table tags/list: one", method="POST", path=f"{T}/tags/list", body=None),
    _table("tags/delete", "a tag", {"tag": "first"}),
    _table("tags/delete", "none", {"tag": "none"}),
    _table("branches/create", "a branch", {"name": "dev"}),
    _table("branches/create", "a taken name", {"name": "dev"}),
    _table("branches/create", "of no version", {"name": "late", "from_version": 99}, why="branches"),
    _table("branches/create", "of no branch", {"name": "late", "from_branch": "none"}, why="branches"),
    _table("branches/create", "a name that is none", {"name": "../x"}),
    _table("branches/create", "no name", {}),
    ReferenceRequest(name="table branches/list: one", method="POST", path=f"{T}/branches/list", body=None),
    ReferenceRequest(name="table insert: into a branch", method="POST", path=f"{T}/insert?branch=dev", body=FEW),
    _table("count_rows", "of a branch", {"branch": "dev"}, why="branches"),
    _table("branches/delete", "a branch", {"name": "dev"}),
    _table("branches/delete", "none", {"name": "none"}),
    ReferenceRequest(name="table version/list: all", method="POST", path=f"{T}/version/list", body=None, why="e_tags"),
    ReferenceRequest(
        name="table version/list: newest first",
        method="POST",
        path=f"{T}/version/list?descending=true&limit=2",
        body=None,
        why="e_tags",
    ),
    ReferenceRequest(
        name="table version/list: no such branch",
        method="POST",
        path=f"{T}/version/list?branch=none",
        body=None,
        why="branches",
    ),
    ReferenceRequest(name="table version/list: none", method="POST", path="table/lance$a$none/version/list", body=None),
    _table("version/describe", "one", {"version": 2}, why="e_tags"),
    _table("version/describe", "none", {"version": 99}),
    _table("version/describe", "the newest", {}, why="e_tags"),
    _table("version/delete", "an old one", {"ranges": [{"start_version": 2, "end_version": 3}]}),
    _table("version/delete", "no ranges", {"ranges": []}, why="empty changes"),
    _table(
        "version/delete", "a range that goes back", {"ranges": [{"start_version": 5, "end_version": 2}]}, why="ranges"
    ),
    _table(
        "version/create",
        "a manifest that is not there",
        {"version": 99, "manifest_path": "nowhere/x.manifest"},
        why="version creates",
    ),
    _table("restore", "an old version", {"version": 1}),
    _table("restore", "no such version", {"version": 99}, why="bad versions"),
    _table("restore", "no version", {}),
    ReferenceRequest(
        name="transaction/describe: none",
        method="POST",
        path="transaction/lance$a$t$00000000-0000-0000-0000-000000000000/describe",
        body={},
    ),
    ReferenceRequest(
        name="transaction/describe: of no table", method="POST", path="transaction/lance$a$none$x/describe", body={}
    ),
    ReferenceRequest(
        name="transaction/alter: none",
        method="POST",
        path="transaction/lance$a$t$x/alter",
        body={"actions": [{"setStatusAction": {"status": "Canceled"}}]},
    ),
    _table("backfill_column", "a column", {"column": "id"}, why="unserved"),
    ReferenceRequest(
        name="materialized_view/create: a view",
        method="POST",
        path="materialized_view/lance$a$v/create",
        body={"kind": "query", "source_query": "q", "output_schema": "s"},
        why="unserved",
    ),
    ReferenceRequest(
        name="materialized_view/refresh: a view",
        method="POST",
        path="materialized_view/lance$a$v/refresh",
        body={},
        why="unserved",
    ),
    ReferenceRequest(
        name="batch-create: nothing",
        method="POST",
        path="table/version/batch-create",
        body={"entries": []},
        why="unserved",
    ),
    ReferenceRequest(
        name="batch-commit: nothing", method="POST", path="table/batch-commit", body={"operations": []}, why="unserved"
    ),
    _table("rename", "a table", {"new_table_name": "s2"}, at="table/lance$w$s", why="unserved"),
    _table("rename", "none", {"new_table_name": "p2"}, at="table/lance$a$none", why="unserved"),
    _table("rename", "no name", {}, at="table/lance$a$t", why="unserved"),
    _table("deregister", "a declared one", {}, at="table/lance$a$d"),
    _table("deregister", "none", {}, at="table/lance$a$none"),
    ReferenceRequest(name="table drop: a table", method="POST", path=f"{T}/drop", body=None),
    ReferenceRequest(name="table drop: it again", method="POST", path=f"{T}/drop", body=None),
    ReferenceRequest(
        name="table drop: with a body", method="POST", path="table/lance$a$p/drop", body={"id": ["lance", "a", "p"]}
    ),
    _listed("what is left", "namespace/lance$a/table/list"),
)
"""Requests about the content of a table, and its end."""
REQUESTS: Final = (*SPACES, *MAKING, *ROW_WORK, *INSIDE)
