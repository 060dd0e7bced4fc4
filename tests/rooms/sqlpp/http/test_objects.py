# SPDX-License-Identifier: Apache-2.0
"""Types, synonyms, functions and views over the query service, and their records in the metadata."""

from __future__ import annotations

import pytest

from tests.http.driver import OWN, DriverNode, grant
from tests.http.iceberg import wire as iceberg
from tests.rooms.sqlpp.http.wire import ask, refusal, rows


def test_created_type_is_listed_and_can_be_dropped(node: DriverNode) -> None:
    """A created type is listed with its fields, and anonymous nested types get names."""
    rows(
        node,
        "create dataverse a.b; use a.b; create type t as closed { id: int, name: string?, tags: [string], place: { x:"
        " double } }; create type a.b.u as { t: t }",
    )

    datatypes = rows(
        node, "select value d from Metadata.`Datatype` d where d.DataverseName = 'a.b' order by d.DatatypeName"
    )
    assert [each["DatatypeName"] for each in datatypes] == ["t", "t_place", "t_tags", "u"]
    assert datatypes[0]["Derived"] == {
        "Tag": "RECORD",
        "IsAnonymous": False,
        "Record": {
            "IsOpen": False,
            "Fields": [
                {"FieldName": "id", "FieldType": "int64", "IsNullable": False, "IsMissable": False},
                {"FieldName": "name", "FieldType": "string", "IsNullable": True, "IsMissable": True},
                {"FieldName": "tags", "FieldType": "t_tags", "IsNullable": False, "IsMissable": False},
                {"FieldName": "place", "FieldType": "t_place", "IsNullable": False, "IsMissable": False},
            ],
        },
    }
    assert datatypes[2]["Derived"] == {"Tag": "ORDEREDLIST", "IsAnonymous": True, "OrderedList": "string"}
    assert (
        refusal(node, "drop type a.b.t")[1]
        == "ASX1148: Cannot drop type a.b.t being used by type a.b.u (in line 1, at column 11)"
    )
    rows(node, "drop type a.b.u; drop type a.b.t; drop type if exists a.b.t; drop type a.b.t if exists")
    assert rows(node, "select value d from Metadata.`Datatype` d where d.DataverseName = 'a.b'") == []


@pytest.mark.parametrize(
    "statement, message",
    [
        ("create type t as {}", "ASX1085: A datatype with this name t already exists (in line 1, at column 13)"),
        (
            "create type x as { a: no_such }",
            "ASX1082: Cannot find datatype with name no_such (in line 1, at column 23)",
        ),
        (
            "create type x as { a: [no.such] }",
            "ASX1082: Cannot find datatype with name no.such (in line 1, at column 24)",
        ),
        ("create type x as { a: x }", "ASX1082: Cannot find datatype with name x (in line 1, at column 23)"),
        ("create type no.such as {}", "ASX1063: Cannot find dataverse with name no (in line 1, at column 13)"),
        ("create type `` as {}", "ASX1115: Invalid name for a database object: '' (in line 1, at column 13)"),
        (
            "create type Metadata.x as {}",
            "ASX1079: Compilation error: Invalid operation - Cannot create a type belonging to the dataverse: Metadata",
        ),
        ("drop type x", "ASX1082: Cannot find datatype with name x in dataverse Default (in line 1, at column 11)"),
        ("drop type no.x", "ASX1063: "),
        (
            "create synonym s for t",
            "ASX1131: A synonym with name s already exists in dataverse Default (in line 1, at column 16)",
        ),
        ("drop synonym x", "ASX1116: Cannot find synonym with name x in dataverse Default (in line 1, at column 14)"),
        ("create synonym no.x for y", "ASX1063: "),
        ("select * from s1", "ASX1079: Compilation error: Synonym"),
        ("create function f(x) { 1 }", "ASX1123: A function with name `f(1)` already exists in dataverse Default"),
        ("create function g(x) { x + no_such(1) }", "ASX1081: Cannot find function with signature no_such(1 argument)"),
        ("create function g(x) { g(x) }", "ASX1149: "),
        ("create function g() { y }", "ASX1077: Cannot find dataset y in dataverse Default"),
        ("drop function f@2", "ASX1081: Cannot find function with name `f(2)` in dataverse Default"),
        ("drop function h@1", "ASX1081: "),
        ("create view v as select value 1", "ASX1160: A view with name v already exists in dataverse Default"),
        ("create view w as select value x from no_such x", "ASX1077: "),
        ("create view w as select * from w x", "ASX1149: "),
        ("create view w(a [int]) default null as select 1 as a", "ASX1001: "),
        ("drop view w", "ASX1159: Cannot find view with name w in dataverse Default"),
        ("drop view s", "ASX1159: "),
        ("drop dataset v", "ASX1050: "),
    ],
)
def test_invalid_definition_is_refused_with_its_code(object_node: DriverNode, statement: str, message: str) -> None:
    """Each invalid definition has its code, message and position, and changes nothing."""
    status, error_message = refusal(object_node, statement)

    assert error_message.startswith(message), error_message
    assert status == 400


@pytest.fixture(scope="module")
def object_node(shared: DriverNode) -> DriverNode:
    """A node with one object of each kind in `Default`."""
    rows(
        shared,
        "create type t as { id: int }; create synonym s for t; create synonym s1 for s2; create synonym s2 for s1;"
        " create function f(x) { x + 1 }; create view v as select value f(x) from [1, 2] x",
    )
    return shared


@pytest.mark.parametrize(
    "statement",
    [
        "create type t if not exists as {}",
        "create type if not exists t as {}",
        "create synonym s if not exists for x",
        "create function f(x) if not exists { 2 }",
        "create view v if not exists as select value 2",
        "create view if not exists v as select value 2",
        "drop type x if exists",
        "drop synonym x if exists",
        "drop view x if exists",
        "drop function x@1 if exists",
        "drop function f@7 if exists",
        "drop dataset x if exists",
    ],
)
def test_if_exists_and_if_not_exists_change_nothing(object_node: DriverNode, statement: str) -> None:
    """IF EXISTS and IF NOT EXISTS make statements succeed without a change."""
    rows(object_node, statement)

    assert rows(object_node, "select value x from v x; f(1)") == [2, 3, 2]


def test_functions_are_overloaded_by_arity(node: DriverNode) -> None:
    """Overloads by arity share one node; each is created, replaced, called and dropped separately."""
    rows(
        node,
        "create dataverse a; use a; create function f(x) { x }; create function f(x, y) { f(x) + y };"
        " create function f(...) { array_count(args) }",
    )

    assert rows(node, "use a; [f(1), f(1, 2), f(1, 2, 3), a.f(5)]") == [[1, 3, 3, 5]]
    rows(node, "use a; create or replace function f(x, y) { x * y }")
    assert rows(node, "a.f(3, 4)") == [12]
    functions = rows(
        node, "select value [f.Name, f.Arity, f.Params, f.`Definition`] from Metadata.`Function` f order by f.Arity"
    )
    assert functions == [
        ["f", "-1", ["args"], "array_count(args)"],
        ["f", "1", ["x"], "x"],
        ["f", "2", ["x", "y"], "x * y"],
    ]
    rows(node, "create function a.g() { a.f(1) }; create or replace function a.f(x) { x + 1 }")
    assert rows(node, "a.g()") == [2]
    assert refusal(node, "drop function a.f@2")[1].startswith(
        "ASX1148: Cannot drop function a.f(2) being used by function a.g(0)"
    )
    rows(node, "drop function a.g@0; drop function a.f@1; drop function a.f@2")
    assert rows(node, "a.f(1)") == [1]
    rows(node, "drop function a.f(...)")
    assert refusal(node, "a.f(1)")[1].startswith("ASX1081: ")


def test_function_dependencies_are_listed_per_overload(node: DriverNode) -> None:
    """Metadata lists the datasets, functions and synonyms that each overload uses; replacing one keeps those of the
    others.
    """
    rows(
        node,
        "create dataverse dep.x; use dep.x; create type T as { id: bigint }; create dataset d(T) primary key id; create"
        " synonym s for d; create function one(a) { a + 1 }; create function two() { (select value one(t.id) from d t)"
        " }; create function two(a) { (select value t.id from s t where t.id = a) };",
    )
    rows(node, "use dep.x; create or replace function two() { (select value t.id from d t) }")

    dependencies = rows(
        node,
        "select value [f.Name, f.Arity, f.Dependencies] from Metadata.`Function` f where f.DataverseName = 'dep/x' or"
        " f.DataverseName like 'dep%' order by f.Name, f.Arity",
    )
    rows(node, "drop function dep.x.two(0)")
    left = rows(node, "select value f.Dependencies from Metadata.`Function` f where f.Name = 'two'")

    where = rows(node, "select value f.DataverseName from Metadata.`Function` f where f.Name = 'one'")[0]
    assert dependencies == [
        ["one", "1", [[], [], []]],
        ["two", "0", [[[where, "d"]], [], []]],
        ["two", "1", [[[where, "d"]], [], [], [[where, "s"]]]],
    ]
    assert left == [[[[where, "d"]], [], [], [[where, "s"]]]]
    rows(node, "drop function dep.x.two(1); drop function dep.x.one(1); drop dataverse dep.x")


def test_sqlpp_views_are_visible_over_iceberg_rest(node: DriverNode) -> None:
    """Views of SQL++ are listed and loaded over Iceberg REST and can be replaced. They cannot be dropped while other
    objects need them.
    """
    rows(
        node,
        "create dataverse a; use a; create view one as select value 1; create view two as select value x + 1 from one"
        " x; create synonym three for two",
    )

    assert rows(node, "select value x from a.three x") == [2]
    names = node.get(f"{iceberg.SPACES}/a/views").json()["identifiers"]
    assert [each["name"] for each in names] == ["one", "two"]
    metadata = node.get(iceberg.view_path("a", "two")).json()["metadata"]
    texts = {each["dialect"]: each["sql"] for each in metadata["versions"][0]["representations"]}
    assert texts["sqlpp"] == "SELECT VALUE x + 1 FROM one AS x"
    assert "raise_error" in texts["spark"]
    rows(node, "use a; create or replace view one as select value 10")
    assert rows(node, "select value x from a.two x") == [11]
    assert refusal(node, "drop view a.one")[1].startswith("ASX1148: Cannot drop view a.one being used by view a.two")
    assert refusal(node, "create or replace view a.one as select value x from a.two x")[1].startswith("ASX1149: ")
    rows(node, "drop view a.two; drop view a.one")
    assert refusal(node, "select value x from a.three x")[1].startswith("ASX1077: ")


def test_view_of_another_dialect_is_refused(node: DriverNode) -> None:
    """A query over a view of another SQL dialect is refused with this reason."""
    iceberg.make_view(node, "a", "v")

    assert "has no SQL++ text" in refusal(node, "select * from a.v")[1]


def test_drop_dataverse_drops_its_sqlpp_objects(node: DriverNode) -> None:
    """DROP DATAVERSE drops all of its SQL++ objects, unless an object elsewhere needs one."""
    rows(
        node,
        "create dataverse a; create dataverse b; create type a.t as {}; create view a.v as select value 1;"
        " create function a.f() { 1 }; create synonym a.s for a.v; create view b.w as select value x from a.v x",
    )

    assert refusal(node, "drop dataverse a")[1].startswith(
        "ASX1147: Cannot drop dataverse: a: view a.v being used by view b.w"
    )
    rows(node, "drop dataverse b; drop dataverse a; create dataverse a; create type a.t as {}")


def test_default_dataverse_is_created_with_its_first_object(node: DriverNode) -> None:
    """The dataverse `Default` is created with its first object."""
    assert iceberg_names(node) == []
    rows(node, "create function f() { 1 }")
    assert iceberg_names(node) == [["Default"]]
    assert rows(node, "f()") == [1]


def test_function_statements_need_their_privileges(node: DriverNode) -> None:
    """Calling needs EXECUTE_FUNCTION, replacing MODIFY_FUNCTION, creating REGISTER_FUNCTION, dropping the last overload
    ownership.
    """
    rows(node, "create dataverse a; create function a.f() { 1 }; create function a.f(x) { 2 }")
    for user, right in (("caller", "execute_function"), ("changer", "modify_function"), ("maker", "register_function")):
        grant(node, user, f"use_catalog use_schema {right}", kind="CATALOG", on="main")
    replace, make = "create or replace function a.f() { 3 }", "create function a.g() { 4 }"

    assert rows(node, "a.f()", user="caller") == rows(node, "a.f()", user="changer") == [1]
    assert refusal(node, "a.f()", user="maker")[1].startswith("ASX1081: ")
    for user, statement in (
        ("caller", replace),
        ("maker", replace),
        ("caller", make),
        ("changer", make),
        ("caller", "drop function a.f@1"),
    ):
        assert refusal(node, statement, user=user)[0] == 403, (user, statement)
    rows(node, f"{replace}; drop function a.f@1", user="changer")
    assert refusal(node, "drop function a.f@0", user="changer")[0] == 403
    rows(node, f"{make}; drop function a.g@0", user="maker")
    assert rows(node, "a.f()") == [3]


def test_hidden_objects_are_refused_like_missing_ones(node: DriverNode) -> None:
    """The metadata does not contain hidden objects. A statement that names a hidden object is refused like one that
    names a missing object.
    """
    rows(
        node,
        "create dataverse a; create type a.t as {}; create view a.v as select value 1; create function a.f() { 1 };"
        " create synonym a.s for a.v; create dataverse b; create view b.w as select value x from a.v x",
    )
    grant(node, "user", "use_catalog", kind="CATALOG", on="main")
    grant(node, "user", "use_schema select_view", kind="SCHEMA", on="main.b")

    for dataset in ("Dataset", "Datatype", "Function", "Synonym", "Index"):
        dataverses = rows(node, f"select value d.DataverseName from Metadata.`{dataset}` d", user="user")
        assert set(dataverses) <= {"Metadata", "b"}, dataset
    for statement in (
        "select * from a.v",
        "select * from a.nothing",
        "select * from b.w",
        "use a",
        "create type b.t as { x: a.t }",
    ):
        assert refusal(node, statement, user="user")[0] == 403, statement
    existing, missing = (refusal(node, f"select * from a.{name}", user="user")[1] for name in ("v", "nothing"))
    assert existing.replace("a.v", "a.NAME") == missing.replace("a.nothing", "a.NAME")
    assert refusal(node, "a.f()", user="user")[0] == 403


def iceberg_names(node: DriverNode) -> list:
    """Return the top-level namespaces of the catalog."""
    return node.get(iceberg.SPACES).json()["namespaces"]


def test_dataset_resources_has_one_row_per_index(node: DriverNode) -> None:
    """`dataset_resources` has one row per index; its dataverse argument is a string for one part, or an array of
    parts.
    """
    rows(
        node,
        "create dataverse a.b; create type a.b.t as { id: int, n: int }; create dataset a.b.d(t) primary key id; create"
        " index i on a.b.d(n)",
    )
    rows(node, "create dataverse one; create dataset one.d(a.b.t) primary key id; create synonym one.s for a.b.d")

    resources = rows(node, "select value r from dataset_resources(['a', 'b'], 'd') r")
    assert [sorted(each) for each in resources] == [
        sorted(("dir", "memory", "disk", "num-scheduled-flushes", "current-memory-component"))
    ] * 2
    assert [each["disk"] for each in resources] == [0, 0]
    assert resources[1]["dir"] == f"{resources[0]['dir']}#i"
    assert rows(node, "select value r from storage_components(['a', 'b'], 'd') r") == [
        {"node": "limnos", "path": each["dir"], "components": []} for each in resources
    ]
    assert len(rows(node, "select value r from `dataset-resources`('one', 'd') r")) == 1
    assert rows(node, "select value r.dir from dataset_resources('one', 's') r") == [each["dir"] for each in resources]
    assert rows(node, "select value count(*) from dataset_resources('Metadata', 'Dataset') r") == [1]
    assert rows(
        node,
        "select value count(*) from Metadata.`Index` x, dataset_resources(['a', 'b'], 'd') r where x.DatasetName = 'd'"
        " and x.IsPrimary",
    ) == [4]


@pytest.mark.parametrize(
    "call, message",
    [
        ("dataset_resources('a.b', 'd')", "ASX1063: Cannot find dataverse with name `a.b` (in line 1, at column 21)"),
        (
            "dataset_resources('Default', 'd')",
            "ASX1050: Cannot find dataset with name d in dataverse Default (in line 1, at column 21)",
        ),
        ("storage_components([], 'd')", "ASX1079: "),
        ("storage_components(['a', 1], 'd')", "ASX0004: Unsupported type: storage_components"),
        ("storage_components(1, 'd')", "ASX0004: "),
        ("storage_components('a', lower('D'))", "ASX0004: "),
        ("storage_components('a')", "ASX1079: "),
    ],
)
def test_dataset_functions_refuse_arguments_without_a_dataset(shared: DriverNode, call: str, message: str) -> None:
    """`dataset_resources` and `storage_components` refuse arguments that name no dataset, with AsterixDB's code."""
    status, error_message = refusal(shared, f"select value x from {call} x")

    assert status == 400
    assert error_message.startswith(message)


def test_dataset_resources_needs_the_right_to_the_dataset(node: DriverNode) -> None:
    """`dataset_resources` needs the same right as the dataset itself."""
    rows(node, "create dataverse a; create type a.t as { id: int }; create dataset a.d(t) primary key id")
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    refused = refusal(node, "select value r from dataset_resources('a', 'd') r", user="ana")
    grant(node, "ana", "select_table", kind="CATALOG", on="main")

    assert refused[0] == 403
    assert len(rows(node, "select value r from dataset_resources('a', 'd') r", user="ana")) == 1


def test_objects_in_a_dataverse_need_use_privileges(node: DriverNode) -> None:
    """A user without USE_SCHEMA or USE_CATALOG is refused objects in a dataverse, and no message names an object behind
    a synonym.
    """
    rows(
        node,
        "create dataverse a; use a; create function f(x) { x + 1 }; create type d as { id: int };"
        " create dataset t(d) primary key id; create synonym s for t",
    )
    grant(node, "ana", "use_catalog execute_function", kind="CATALOG", on="main")
    grant(node, "eve", "use_schema create_table modify_table", kind="CATALOG", on="main")

    assert refusal(node, "a.f(1)", user="ana")[0] in (400, 403)
    assert refusal(node, "create type a.e as { one: d }", user="eve")[0] == 403
    status, words = refusal(node, "insert into a.s ({'id': 1})", user="eve")
    assert status == 403
    assert "a.t" not in words


def check_invalid_samples(node: DriverNode) -> None:
    """Check that ANALYZE refuses each wrong option with its code."""
    for wrong, number in (
        ("'sample': 'x'", 1175),
        ("'sample': 0", 1176),
        ("'sample-seed': 'x'", 1177),
        ("'sample-seed': 'nan'", 1177),
        ("'sample-seed': 'inf'", 1177),
        ("'sample-seed': 1e19", 1177),
        ("'sample': 'nan'", 1175),
        ("'sample-method': 'x'", 1256),
        ("'sample-full-scan': 'x'", 1255),
        ("'other': 1", 1079),
    ):
        status, text = refusal(node, f"analyze dataset counted.d with {{{wrong}}}")
        assert (status, text[:7]) == (400, f"ASX{number}"), text


def test_analyze_stores_and_drop_deletes_statistics(shared: DriverNode) -> None:
    """ANALYZE stores counts from the table's metadata, DROP STATISTICS deletes them; both need the right to alter."""
    rows(
        shared,
        "create dataverse counted; create dataset counted.d primary key (id: int); create index i on counted.d(n: int)",
    )
    query = "select value i from Metadata.`Index` i where i.DataverseName = 'counted' and i.IndexStructure = 'SAMPLE'"
    (warning,) = ask(shared, "analyze dataset counted.d").json()["warnings"]
    assert warning["msg"] == "ASX1174: Sample has zero rows (in line 1, at column 1)"
    (empty,) = rows(shared, query)
    assert (empty["SourceCardinality"], empty["SourceAvgItemSize"]) == (0, 0)
    table = iceberg.table_path("counted", "d")
    requirement = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}]
    summary = {
        "operation": "append",
        "total-records": "100",
        "total-position-deletes": "10",
        "total-files-size": "5000",
    }
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": shared.built.services.store.time.now_ms(),
        "schema-id": 0,
        "manifest-list": f"{shared.get(table).json()['metadata']['location']}/metadata/l.avro",
        "summary": summary,
    }
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    ]
    rows(
        shared,
        "drop dataset counted.d; create dataset counted.d primary key (id: int) with {'outside-writers': 'allowed'}",
    )
    rows(shared, "create index i on counted.d(n: int)")
    snapshot["manifest-list"] = f"{shared.get(table).json()['metadata']['location']}/metadata/l.avro"
    assert shared.ask("POST", table, {"requirements": requirement, "updates": updates}).status == 200
    rows(shared, "analyze dataset counted.d with {'sample': 'high', 'sample-seed': -2.5}; drop index counted.d.i")
    (statistics,) = rows(shared, query)
    assert (statistics["IndexName"], statistics["SourceCardinality"], statistics["SourceAvgItemSize"]) == (
        "sample_idx_2_d",
        90,
        50,
    )
    assert (statistics["SampleCardinalityTarget"], statistics["SampleSeed"]) == (17008, -2)
    grant(shared, "filtered", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    assert len(rows(shared, query, user="filtered")) == 1
    restriction = f"{OWN}/metalakes/lake/objects/TABLE/main.counted.d/restrictions/few"
    answer = shared.put(restriction, {"filter": "id = 1"})
    assert answer.status == 200, answer.body
    assert rows(shared, query, user="filtered") == []
    assert shared.delete(restriction).status < 300
    rows(shared, "analyze dataset counted.d")
    assert [each["IndexName"] for each in rows(shared, query)] == ["sample_idx_1_d"]
    check_invalid_samples(shared)
    grant(shared, "counter", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    assert refusal(shared, "analyze dataset counted.d", user="nobody")[0] == 403
    rows(shared, "analyze dataset counted.d drop statistics")

    assert rows(shared, query) == []
    assert refusal(shared, "analyze dataset counted.none")[1].startswith("ASX1050")


def test_typed_view_casts_its_results(shared: DriverNode) -> None:
    """A typed view casts its query's results, and its type cannot be dropped before the view."""
    rows(
        shared,
        """create dataverse typed; use typed; create type t as closed { id: int, at_: date?, n: tinyint? };
        create view v(t) default null date 'MM/DD/YYYY' primary key (id) not enforced as
          select value r from [{'id': '1', 'at_': '02/20/2020', 'n': 'x', 'more': 1}, {'id': 'no'}, {'id': 2.0}] r;
        create view w(id string not unknown, n int) default null as v""",
    )
    first, second = {"id": 1, "at_": "2020-02-20", "n": None}, {"id": 2, "at_": None, "n": None}
    assert rows(shared, "select value v from typed.v v order by v.id") == [first, second]
    assert rows(shared, "select value w from typed.w w order by w.id") == [
        {"id": "1", "n": None},
        {"id": "2", "n": None},
    ]
    assert refusal(shared, "drop type typed.t")[1].startswith("ASX1148: Cannot drop type typed.t being used by")
    for wrong, says in (
        ("x(a none) default null", "Cannot find datatype with name none"),
        ("x(a int) default null foo 'YYYY'", "foo"),
        ("x(a int) default null primary key (b) not enforced", "view's key"),
    ):
        assert says in refusal(shared, f"use typed; create view {wrong} as select 1 a")[1], wrong
    rows(shared, "create or replace view typed.v as select 1 a; drop type typed.t; drop dataverse typed")


def test_typed_view_omits_objects_without_a_key(shared: DriverNode) -> None:
    """A typed view omits objects whose key is null, missing or cannot be cast, also if the field is optional."""
    rows(
        shared,
        """create dataverse keyed; use keyed; create type t as closed { id: int?, n: int? };
        create view v(t) default null primary key (id) not enforced as
          select value r from [{'id': 1, 'n': 1}, {'id': null, 'n': 2}, {'n': 3}, {'id': 'x', 'n': 4}, {'id': 5}] r;
        create view w(t) default null as
          select value r from [{'id': 1, 'n': 1}, {'id': null, 'n': 2}] r""",
    )

    keyed = rows(shared, "select value v from keyed.v v order by v.id")
    without_key = rows(shared, "select value w from keyed.w w order by w.n")

    assert keyed == [{"id": 1, "n": 1}, {"id": 5, "n": None}]
    assert without_key == [{"id": 1, "n": 1}, {"id": None, "n": 2}]
    rows(shared, "drop dataverse keyed")


def test_dataset_storage_settings_are_validated(shared: DriverNode) -> None:
    """AsterixDB's storage settings are validated and ignored; unknown settings are refused by name."""
    create = "create dataset Default.settled primary key (id: int) with "
    for settings, says in (
        ("{'unknown-field': 1}", "ASX1059: Field(s) [unknown-field] unsupported in the with clause"),
        (
            "{'merge-policy': {'parameters': {}}}",
            "ASX1061: Field 'merge-policy.name' in the with clause cannot be null or missing",
        ),
        ("{'merge-policy': {'name': 'x', 'y': 1}}", "ASX1097: Subfield(s) [y] in 'merge-policy' unsupported"),
        (
            "{'merge-policy': {'name': 'x', 'parameters': {'num-components': '1'}}}",
            "must be of type bigint, but found string",
        ),
        ("{'storage-block-compression': 'snappy'}", "must be of type object, but found string"),
        (
            "{'storage-block-compression': {'scheme': 'zip'}}",
            "ASX1096: Unknown compression scheme zip. Supported schemes are [snappy,none]",
        ),
    ):
        status, text = refusal(shared, f"{create}{settings}")
        assert (status, says in text) == (400, True), text
    rows(
        shared,
        f"{create}{{'merge-policy': {{'name': 'prefix', 'parameters': {{'size-ratio': 1, 'num-components': 5}}}}}}",
    )
    rows(shared, f"{create}{{'storage-block-compression': {{'scheme': 'Snappy'}}}}".replace("settled", "settled2"))
    rows(shared, "drop dataset Default.settled; drop dataset Default.settled2")


def test_index_fields_must_exist_in_the_type(shared: DriverNode) -> None:
    """Fields of an index must exist in the dataset's type."""
    rows(
        shared,
        """create dataverse fields; use fields; create type item as closed { n: int };
        create type t as closed { id: int, name: string, items: [item], nested: [[item]] };
        create type o as { id: int }; create dataset d(t) primary key id; create dataset e(o) primary key id""",
    )
    for index, says in (
        ("d(name, name)", "same field '[name]' specified more than once"),
        ("d(UNNEST items SELECT m) exclude unknown key", "ASX1014: Field 'm' is not found"),
        (
            "d(UNNEST name: string) exclude unknown key",
            "ASX0037: Type mismatch: expected value of type array or multiset",
        ),
        ("e(UNNEST none) exclude unknown key", "cannot find type of elements of field 'none'"),
        ("d(name) cast (default null)", "CAST modifier is used without specifying the type"),
    ):
        status, text = refusal(shared, f"use fields; create index i on {index}")
        assert (status, says in text) == (400, True), text
    rows(shared, "use fields; create index i on d(UNNEST items SELECT n) exclude unknown key")
    rows(shared, "use fields; create index i on e(UNNEST none: string) exclude unknown key; drop dataverse fields")
