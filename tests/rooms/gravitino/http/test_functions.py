# SPDX-License-Identifier: Apache-2.0
"""Functions over Gravitino REST: registered with several definitions and runtimes, altered, and listed beside those of
SQL++.
"""

from __future__ import annotations

import pytest

from limnos.formats.gravitino import functions
from tests.http.driver import API, OWN, DriverNode

FUNCTIONS = f"{API}/lake/catalogs/main/schemas/f/functions"
X, Y = (
    {"name": "x", "dataType": "integer"},
    {
        "name": "y",
        "dataType": "decimal(10,2)",
        "defaultValue": {"type": "literal", "dataType": "integer", "value": "1"},
    },
)
SPARK = {"language": "sql", "runtime": "spark", "sql": "SELECT x", "resources": None, "properties": None}
TRINO = {
    "language": "JAVA",
    "runtime": "TRINO",
    "className": "org.example.F",
    "resources": {"jars": ["s3://lake/f.jar"]},
}
DEFINITION = {"parameters": [X], "returnType": "integer", "returnColumns": None, "impls": [SPARK]}
BODY = {"name": "f", "functionType": "SCALAR", "deterministic": True, "comment": "c", "definitions": [DEFINITION]}


@pytest.fixture
def function_node(node: DriverNode) -> DriverNode:
    """A node with a function."""
    node.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": "f"})
    node.done("POST", FUNCTIONS, BODY)
    return node


def alter(node: DriverNode, *updates: dict[str, object]) -> dict:
    """Alter the function."""
    return node.done("PUT", f"{FUNCTIONS}/f", {"updates": list(updates)})["function"]


def test_function_lifecycle(function_node: DriverNode) -> None:
    """A function is returned as registered with normalized keywords, listed, altered, dropped and restored."""
    loaded = function_node.done("GET", f"{FUNCTIONS}/f")["function"]
    names = function_node.done("GET", FUNCTIONS)["identifiers"]
    details = function_node.done("GET", f"{FUNCTIONS}?details=true")["functions"]
    altered = alter(function_node, {"@type": "updateComment", "newComment": "d"})
    dropped = [function_node.done("DELETE", f"{FUNCTIONS}/f")["dropped"] for _ in range(2)]
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash"
    (trash_entry,) = function_node.get(trash).json()["trash"]
    function_node.done("POST", f"{trash}/{trash_entry['id']}/undrop", {})

    assert details == [loaded]
    assert loaded.pop("audit")["creator"] == "admin"
    assert loaded == {
        "name": "f",
        "comment": "c",
        "functionType": "scalar",
        "deterministic": True,
        "definitions": [
            {
                "parameters": [X],
                "returnType": "integer",
                "impls": [{"language": "SQL", "runtime": "SPARK", "sql": "SELECT x"}],
            }
        ],
    }
    assert names == [{"namespace": ["lake", "main", "f"], "name": "f"}]
    assert altered["comment"] == "d"
    assert dropped == [True, False]
    assert function_node.done("GET", f"{FUNCTIONS}/f")["function"]["comment"] == "d"


def test_alter_changes_definitions_and_implementations(function_node: DriverNode) -> None:
    """An alter changes definitions by their parameters and implementations by their runtimes, and leaves the others
    unchanged.
    """
    other = {"parameters": [X, Y], "returnType": "double", "impls": [SPARK]}
    shorter = {**other, "parameters": [{"name": "t", "dataType": "string"}]}
    both = alter(function_node, {"@type": "addDefinition", "definition": shorter})["definitions"]
    target = {"parameters": [X]}
    more = alter(function_node, {"@type": "addImpl", **target, "implementation": TRINO})["definitions"][0]["impls"]
    changed = alter(
        function_node,
        {"@type": "updateImpl", **target, "runtime": "spark", "implementation": {**SPARK, "sql": "SELECT 2"}},
    )["definitions"][0]["impls"]
    fewer = alter(function_node, {"@type": "removeImpl", **target, "runtime": "TRINO"})["definitions"][0]["impls"]
    last = function_node.put(f"{FUNCTIONS}/f", {"updates": [{"@type": "removeImpl", **target, "runtime": "SPARK"}]})
    left = alter(function_node, {"@type": "removeDefinition", **target})["definitions"]

    assert [each["parameters"][0]["name"] for each in both] == ["x", "t"]
    assert [each["runtime"] for each in more] == ["SPARK", "TRINO"]
    assert more[1]["resources"] == {"jars": ["s3://lake/f.jar"]}
    assert changed[0]["sql"] == "SELECT 2"
    assert [each["runtime"] for each in fewer] == ["SPARK"]
    assert (last.status, "remove the definition" in last.json()["message"]) == (400, True)
    assert [(each["parameters"], len(each["impls"])) for each in left] == [([{"name": "t", "dataType": "string"}], 1)]


def test_ambiguous_definition_is_refused(function_node: DriverNode) -> None:
    """A definition whose calls are ambiguous because of another definition's default arguments is refused, and nothing
    is changed.
    """
    both = {**DEFINITION, "parameters": [X, Y]}
    refused = [
        function_node.ask("PUT", f"{FUNCTIONS}/f", {"updates": [{"@type": "addDefinition", "definition": both}]}),
        function_node.ask("POST", FUNCTIONS, {**BODY, "name": "g", "definitions": [DEFINITION, both]}),
    ]

    for answer in refused:
        assert answer.status == 400
        assert "are both possible for a call with (integer)" in answer.json()["message"]
    assert len(function_node.done("GET", f"{FUNCTIONS}/f")["function"]["definitions"]) == 1
    assert function_node.ask("GET", f"{FUNCTIONS}/g").json()["type"] == "NoSuchFunctionException"


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"functionType": "window"}, "scalar, aggregate or table"),
        ({"definitions": []}, "1 to 200 definitions"),
        ({"functionType": "table"}, "returnColumns"),
        ({"definitions": [{**DEFINITION, "returnType": None}]}, "must have returnType"),
        ({"definitions": [{**DEFINITION, "parameters": [X, X]}]}, "a unique name"),
        ({"definitions": [{**DEFINITION, "parameters": [{**Y, "name": "a"}, X]}]}, "follows a parameter that has one"),
        ({"definitions": [{**DEFINITION, "impls": []}]}, "at least one implementation"),
        ({"definitions": [{**DEFINITION, "impls": None}]}, "at least one implementation"),
        ({"definitions": [{**DEFINITION, "impls": [SPARK, SPARK]}]}, "one implementation per runtime"),
        ({"definitions": [{**DEFINITION, "impls": [{**SPARK, "runtime": "perl"}]}]}, "SPARK, TRINO"),
        ({"definitions": [{**DEFINITION, "impls": [{**SPARK, "sql": " "}]}]}, "needs a value for sql"),
        ({"definitions": [{**DEFINITION, "returnType": {"type": "tree"}}]}, "no type tree"),
        ({"definitions": [{**DEFINITION, "returnType": {"type": "list", "elementType": 3}}]}, "must be an object"),
        ({"name": "a b"}, "a b"),
    ],
)
def test_invalid_function_is_refused_with_advice(
    function_node: DriverNode, wrong: dict[str, object], says: str
) -> None:
    """An invalid function is refused with advice."""
    answer = function_node.ask("POST", FUNCTIONS, {**BODY, "name": "g", **wrong})

    assert answer.status == 400
    assert says in answer.json()["message"]


def test_sqlpp_and_gravitino_functions_do_not_replace_each_other(function_node: DriverNode) -> None:
    """SQL++ neither sees nor replaces functions that were registered over Gravitino REST. Functions of SQL++ are listed
    with their statements, changed only by SQL++, and not dropped while other objects need them.
    """
    outcomes = [
        function_node.ask("POST", "/query/service", {"statement": text}).json()
        for text in (
            "create dataverse g; create function g.twice(n) { n * 2 }; create view g.w as select value g.twice(2);",
            "create or replace function f.f(x) { x }",
            "drop function f.f(1)",
            "select value d.Name from Metadata.`Function` d where d.DataverseName = 'f'",
            "drop dataverse f",
        )
    ]
    theirs = f"{API}/lake/catalogs/main/schemas/g/functions/twice"
    function = function_node.done("GET", theirs)["function"]
    change = function_node.ask("PUT", theirs, {"updates": [{"@type": "removeDefinition", "parameters": []}]})
    needed = function_node.ask("DELETE", theirs)
    function_node.ask("POST", "/query/service", {"statement": "drop view g.w"})
    dropped = function_node.done("DELETE", theirs)["dropped"]

    assert outcomes[0]["status"] == "success"
    assert [each["status"] for each in outcomes[1:]] == ["fatal", "fatal", "success", "fatal"]
    assert outcomes[3]["results"] == []
    assert function["definitions"][0]["parameters"] == [
        {"name": "n", "dataType": {"type": "external", "catalogString": "any"}}
    ]
    assert "twice" in function["definitions"][0]["statement"].lower()
    assert (change.status, change.json()["code"]) == (405, 1006)
    assert (needed.status, needed.json()["code"]) == (409, 1010)
    assert dropped
    assert function_node.done("GET", f"{FUNCTIONS}/f")["function"]["comment"] == "c"


def test_functions_without_implementation_can_be_completed() -> None:
    """A function that an older release stored takes an implementation, definition by definition, and other changes."""
    bare = functions.FunctionDefinition([functions.FunctionParameter("x", "long")], "long", impls=[])
    other = functions.FunctionDefinition([], "long", impls=[])
    implementation = functions.FunctionImplementation(language="SQL", runtime="SPARK", sql="1")
    added = functions.AddImpl(list(bare.parameters or []), implementation)

    completed = functions.change_function(functions.Function("scalar", True, (bare, other)), [added])

    assert [each.impls for each in completed.definitions] == [[implementation], []]
    assert functions.change_function(completed, [functions.RemoveDefinition([])]).definitions[0].impls
