# SPDX-License-Identifier: Apache-2.0
"""AsterixDB's error codes of refused statements: each has a test of its message and position here, or names its test
elsewhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.driver import DriverNode
from tests.http.iceberg.wire import node_over, nothing_done
from tests.rooms.sqlpp.http.wire import SERVICE, ask, refusal, rows, status_and_message

ROOT = Path(__file__).parents[4]
SEED = (
    "create dataverse x.y; create type x.y.t as { id: int, a: int }; create dataset x.y.d(t) primary key id; create"
    " view x.y.v as select value 1; create function x.y.f(r) { r }; create function x.y.user_of_f(r) { x.y.f(r) };"
    " create synonym x.y.s for x.y.d; create index i on x.y.d(a); create dataverse other; create view other.w as select"
    " value z from x.y.d z; create dataverse loop; create synonym loop.a for loop.b; create synonym loop.b for loop.a"
)
VECTORS = {
    "ASX0004": ("array_stddev_samp(['a'])", "Unsupported type: agg-stddev_samp cannot process input type string"),
    "ASX0008": ("-9223372036854775807 - 2", "Underflow in numeric-subtract"),
    "ASX0010": (
        "2 ^ -1",
        "Invalid value: function power expects its second input parameter to be a non-negative value, got -1",
    ),
    "ASX0037": (
        "create index j on x.y.d(a: string?) enforced",
        "Type mismatch: expected value of type bigint, but got the value of type string (in line 1, at column 25)",
    ),
    "ASX0040": ("", "No statement provided"),
    "ASX0046": ("'a' like 'b\\\\q'", "Invalid pattern 'b\\q' for LIKE"),
    "ASX1001": (
        "select value 1;\n selec 1",
        'Syntax error: In line 2 >> selec 1<< Encountered <INTEGER_LITERAL> "1" at column 8.',
    ),
    "ASX1050": (
        "drop dataset x.y.none",
        "Cannot find dataset with name none in dataverse x.y (in line 1, at column 14)",
    ),
    "ASX1063": ("use gone.away", "Cannot find dataverse with name gone.away (in line 1, at column 5)"),
    "ASX1071": ("create dataverse x.y", "A dataverse with this name x.y already exists. (in line 1, at column 18)"),
    "ASX1072": (
        "create dataset x.y.d(x.y.t) primary key id",
        "A dataset with name d already exists in dataverse x.y (in line 1, at column 16)",
    ),
    "ASX1073": (
        "select value\n q",
        "Cannot resolve alias reference for undefined identifier q (in line 2, at column 2)",
    ),
    "ASX1074": (
        "select value q from x.y.v a, x.y.v b",
        "Cannot resolve ambiguous alias reference for identifier q (in line 1, at column 14)",
    ),
    "ASX1077": (
        "select * from none",
        "Cannot find dataset none in dataverse Default nor an alias with name none (in line 1, at column 15)",
    ),
    "ASX1079": (
        "create dataverse Metadata",
        "Compilation error: Invalid operation - Cannot create dataverse: Metadata (in line 1, at column 18)",
    ),
    "ASX1081": ("x.y.nof(1)", "Cannot find function with signature x.y.nof(1 argument) (in line 1, at column 1)"),
    "ASX1082": ("drop type x.y.none", "Cannot find datatype with name none in dataverse x.y (in line 1, at column 11)"),
    "ASX1083": ("drop index x.y.d.none", "Cannot find index with name none in dataverse x.y (in line 1, at column 1)"),
    "ASX1084": ("create index i on x.y.d(a)", "An index with this name i already exists (in line 1, at column 1)"),
    "ASX1085": ("create type x.y.t as {}", "A datatype with this name t already exists (in line 1, at column 13)"),
    "ASX1086": ("[1, $p]", "No value for parameter: $p (in line 1, at column 5)"),
    "ASX1091": (
        "select value x from 1 x",
        (
            "Type mismatch: expected value of type multiset or array, but got the value of type bigint (in line 1, at"
            " column 21)"
        ),
    ),
    "ASX1092": (
        "create index j on x.y.d(b: date) cast (default null day 'DD')",
        "Parameter day cannot be set (in line 1, at column 53)",
    ),
    "ASX1102": (
        "select lower(x) over () from [1] x",
        "Expected window or aggregate function, got: lower (in line 1, at column 8)",
    ),
    "ASX1103": (
        "from [{'a': 1}] t let b = t.a group by t.a group as g (t as u) select sum(b)",
        "Illegal use of identifier: b: GROUP AS leaves it out of its fields (in line 1, at column 53)",
    ),
    "ASX1104": (
        "from [1] x select first_value(x) from last over (order by x)",
        "Invalid modifier FROM FIRST/LAST for function first_value (in line 1, at column 44)",
    ),
    "ASX1115": ("create dataverse x.` a`", "Invalid name for a database object: ' a' (in line 1, at column 18)"),
    "ASX1116": (
        "drop synonym x.y.none",
        "Cannot find synonym with name none in dataverse x.y (in line 1, at column 14)",
    ),
    "ASX1117": ("drop function x.y.lib#f@1", "Cannot find library with name lib (in line 1, at column 15)"),
    "ASX1123": (
        "create function x.y.f(q) { q }",
        "A function with name `f(1)` already exists in dataverse x.y (in line 1, at column 17)",
    ),
    "ASX1131": (
        "create synonym x.y.s for x.y.d",
        "A synonym with name s already exists in dataverse x.y (in line 1, at column 16)",
    ),
    "ASX1147": (
        "drop dataverse x.y",
        "Cannot drop dataverse: x.y: table x.y.d being used by view other.w (in line 1, at column 16)",
    ),
    "ASX1148": ("drop type x.y.t", "Cannot drop type x.y.t being used by dataset x.y.d (in line 1, at column 11)"),
    "ASX1150": (
        "declare function g(a) { a }; create function x.y.h(b) { g(b) }",
        "Illegal use of function g(1): only the request that declares it can call it (in line 1, at column 57)",
    ),
    "ASX1159": ("drop view x.y.none", "Cannot find view with name none in dataverse x.y (in line 1, at column 11)"),
    "ASX1160": (
        "create view x.y.v as select value 1",
        "A view with name v already exists in dataverse x.y (in line 1, at column 13)",
    ),
}
"""For each code: a statement over the seed, and the message."""
MORE = {
    "ASX1050": [
        (
            "insert into x.y.gone ({'id': 1})",
            "Cannot find dataset with name gone in dataverse x.y (in line 1, at column 13)",
        ),
        ("drop index x.y.none.i", "Cannot find dataset with name none in dataverse x.y (in line 1, at column 12)"),
    ],
    "ASX1063": [
        ("select * from gone.none", "Cannot find dataverse with name gone (in line 1, at column 15)"),
        ("from x.y.d.east select *", "Cannot find dataverse with name x.y.d (in line 1, at column 6)"),
        ("insert into gone.d ({'id': 1})", "Cannot find dataverse with name gone (in line 1, at column 13)"),
        ("drop dataverse gone.away", "Cannot find dataverse with name gone.away (in line 1, at column 16)"),
    ],
    "ASX1077": [
        (
            "array_count(x.y.none)",
            "Cannot find dataset none in dataverse x.y nor an alias with name x.y.none (in line 1, at column 13)",
        )
    ],
    "ASX1079": [
        (
            "drop dataverse Default",
            "Compilation error: Invalid operation - Cannot drop dataverse: Default (in line 1, at column 16)",
        ),
        (
            "create type Metadata.t as {}",
            (
                "Compilation error: Invalid operation - Cannot create a type belonging to the dataverse: Metadata (in"
                " line 1, at column 13)"
            ),
        ),
        (
            "insert into Metadata.`Dataset` ({'a': 1})",
            (
                "Compilation error: Invalid operation - Insert operation is not permitted in dataverse Metadata (in"
                " line 1, at column 13)"
            ),
        ),
        ("select * from loop.a", "Compilation error: Synonym loop.a refers to itself (in line 1, at column 15)"),
    ],
    "ASX1081": [
        ("drop function x.y.f@3", "Cannot find function with name `f(3)` in dataverse x.y (in line 1, at column 15)")
    ],
    "ASX1082": [
        (
            "create dataset x.y.e(x.y.gone) primary key id",
            "Cannot find datatype with name x.y.gone (in line 1, at column 22)",
        )
    ],
    "ASX1104": [
        (
            "from [1] x select rank() ignore nulls over (order by x)",
            "Invalid modifier RESPECT/IGNORE NULLS for function rank (in line 1, at column 39)",
        ),
    ],
    "ASX1115": [
        ("drop index ` x`.d.i", "Invalid name for a database object: ' x' (in line 1, at column 12)"),
    ],
    "ASX1148": [
        (
            "drop function x.y.f@1",
            "Cannot drop function x.y.f(1) being used by function x.y.user_of_f(1) (in line 1, at column 15)",
        ),
        ("drop dataset x.y.d", "Cannot drop dataset x.y.d being used by view other.w (in line 1, at column 14)"),
    ],
    "ASX1160": [
        (
            "create dataset x.y.v(x.y.t) primary key id",
            "A view with name v already exists in dataverse x.y (in line 1, at column 16)",
        ),
    ],
}
ELSEWHERE = {
    "ASX0041": "tests/rooms/sqlpp/http/test_result_handles.py::test_async_request_is_cancelled_by_client_id",
    "ASX0044": "tests/rooms/sqlpp/http/test_service.py::test_writing_statement_in_read_only_request_is_refused",
    "ASX0047": "tests/rooms/sqlpp/http/test_service.py::test_invalid_parameter_is_400_with_name_and_value",
    "ASX0048": "tests/rooms/sqlpp/http/test_service.py::test_malformed_json_is_refused",
    "ASX0049": "tests/rooms/sqlpp/http/test_codes.py::test_missing_parameter_is_reported_by_name",
    "ASX1039": "tests/rooms/sqlpp/services/locks/test_statement_locks.py::test_invalid_lock_operations_have_asterixdb_codes",
    "ASX1045": "tests/rooms/sqlpp/language/test_locks.py::test_only_exclusive_modify_can_be_upgraded",
    "ASX1046": "tests/rooms/sqlpp/language/test_locks.py::test_only_exclusive_modify_can_be_upgraded",
    "ASX1047": "tests/rooms/sqlpp/language/test_locks.py::test_only_exclusive_modify_can_be_upgraded",
    "ASX1048": "tests/rooms/sqlpp/language/test_locks.py::test_only_exclusive_modify_can_be_upgraded",
    "ASX1049": "tests/rooms/sqlpp/language/test_locks.py::test_incompatible_modes_of_one_key_are_refused",
    "ASX3102": "tests/rooms/sqlpp/http/test_result_handles.py::test_requests_of_a_stopped_node_fail_after_its_lease",
    "ASX3109": "tests/rooms/sqlpp/http/test_refusals.py::test_every_caller_gets_the_status_and_code_in_the_table",
    "HYR0032": "tests/rooms/sqlpp/language/test_errors.py::test_duplicate_key_code_differs_between_load_and_insert",
    "HYR0033": "tests/rooms/sqlpp/engine/test_writing.py::test_duplicate_keys_are_refused",
}
"""Codes that no statement alone causes, and the test of each."""
NOT_HERE = {
    "ASX1076": "a dataverse is always in use",
    "ASX1185": "there are no databases: a name of a dataverse has all parts",
    "ASX1186": "there are no databases: a name of a dataverse has all parts",
}
NAMED = {
    "ASX0040",
    "ASX0044",
    "ASX0047",
    "ASX0048",
    "ASX0049",
    "ASX1039",
    "ASX1045",
    "ASX1046",
    "ASX1047",
    "ASX1048",
    "ASX1049",
    "ASX1050",
    "ASX1063",
    "ASX1071",
    "ASX1072",
    "ASX1073",
    "ASX1074",
    "ASX1076",
    "ASX1077",
    "ASX1079",
    "ASX1081",
    "ASX1082",
    "ASX1083",
    "ASX1084",
    "ASX1085",
    "ASX1115",
    "ASX1116",
    "ASX1117",
    "ASX1123",
    "ASX1131",
    "ASX1147",
    "ASX1148",
    "ASX1159",
    "ASX1160",
    "ASX1185",
    "ASX1186",
    "HYR0033",
}
"""AsterixDB's codes about its users' names, objects, locks and requests."""


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with an object of each kind."""
    with node_over(tmp_path_factory.mktemp("codes")) as node:
        rows(node, SEED)
        yield node


def test_each_error_code_is_tested_or_has_a_reason() -> None:
    """Each code has a vector here or a test elsewhere; a code that cannot occur has its reason."""
    assert {*VECTORS, *ELSEWHERE, *NOT_HERE} >= NAMED
    assert set(MORE) <= set(VECTORS)
    for code, place in ELSEWHERE.items():
        path, _, name = place.partition("::")
        source = (ROOT / path).read_text(encoding="utf-8")
        names = {each.name for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)}
        assert name in names, place
        table = (ROOT / path).with_name("refusals.md")
        source += table.read_text(encoding="utf-8") if table.exists() else ""
        assert re.search(rf"\b({code}|{int(code[3:])})\b", source), place


CASES = [(code, *vector) for code, vector in VECTORS.items()]
CASES += [(code, *vector) for code, more in MORE.items() for vector in more]


@pytest.mark.parametrize("code, statement, words", CASES, ids=lambda value: None if " " in value else value)
def test_refusal_has_asterixdb_code_message_and_position(
    seeded: DriverNode, code: str, statement: str, words: str
) -> None:
    """The statement is refused with 400 and AsterixDB's code, message, line and column, and nothing is changed."""
    with nothing_done(seeded):
        assert refusal(seeded, statement) == (400, f"{code}: {words}")


def test_missing_parameter_is_reported_by_name(seeded: DriverNode) -> None:
    """Routes with required parameters refuse a request without them with ASX0049 and the parameters' names."""
    connector = status_and_message(seeded.get("/connector?dataverseName=x"))
    cancel = status_and_message(seeded.delete("/admin/requests/running"))

    assert connector == (400, "ASX0049: Parameter(s) dataverseName,datasetName must be specified")
    assert cancel == (400, "ASX0049: Parameter(s) client_context_id must be specified")


RESOLVED = [
    ("select value x.y from [{'y': 1}] x", [1], "a variable goes before a dataverse"),
    ("select value v from [5] v", [5], "a variable goes before a view of the same name"),
    ("with x as {'y': {'v': 7}} select value x.y.v", [7], "WITH's variable is one"),
    ("from x.y.v as q select value q", [1], "in FROM the whole chain names dataverse and view"),
    ("use x.y; select value q from v as q", [1], "one part is of the dataverse in use"),
    ("use x.y; x.y.f(2) + f(3)", [5], "functions are told by their call, with and without a dataverse"),
    ("select value a from [{'a': 1, 'b': 2}] t where b = 2", [1], "elsewhere a field of the only variable"),
    ("select value v from [{'v': 3}] t", [3], "outside of FROM a field, though there is a view of that name in use"),
    ("use x.y; select value v from [{'v': 3}] t", [3], "the same where its dataverse is in use"),
    ("select value (select value z from [t.n] z)[0] from [{'n': 4}] t", [4], "an inner block sees outer variables"),
    ("array_count(x.y.v)", [1], "in a bare expression a chain is a source, in arguments, too"),
    ("some q in x.y.v satisfies q = 1", [True], "so is that of IN of a quantifier"),
    ("select value k from [{'k': 1}] t group by t.k as k", [1], "after GROUP BY its keys are variables"),
]


@pytest.mark.parametrize("statement, expected, why", RESOLVED)
def test_dotted_name_is_resolved_as_in_asterixdb(seeded: DriverNode, statement: str, expected: list, why: str) -> None:
    """A dotted name is resolved as in AsterixDB: variables come first. In FROM, the whole name is a dataverse and a
    dataset; elsewhere it is a field of the only variable.
    """
    assert rows(seeded, statement) == expected, why


@pytest.mark.parametrize(
    "statement, message",
    [
        ("from x.y.v.w as q select value q", "ASX1063: Cannot find dataverse with name x.y.v (in line 1, at column 6)"),
        ("select value q from x.v as q", "ASX1063: Cannot find dataverse with name x (in line 1, at column 21)"),
        (
            "select value k from [{'k': 1}] t group by t.k as g",
            "ASX1073: Cannot resolve alias reference for undefined identifier k (in line 1, at column 14)",
        ),
        (
            "select value (select value n) from [{'n': 4}] t",
            "ASX1073: Cannot resolve alias reference for undefined identifier n (in line 1, at column 28)",
        ),
        (
            "select value p from [1] t, [2] u",
            "ASX1074: Cannot resolve ambiguous alias reference for identifier p (in line 1, at column 14)",
        ),
    ],
)
def test_ambiguous_dotted_name_is_refused(seeded: DriverNode, statement: str, message: str) -> None:
    """A prefix of a dotted name in FROM is not resolved as a shorter name. A field of an outer block, of one of several
    variables, or of a block after GROUP BY needs its variable.
    """
    assert refusal(seeded, statement) == (400, message)


def test_get_reads_the_same_codes(seeded: DriverNode) -> None:
    """Statements sent by GET and by POST have the same codes."""
    answer = seeded.get(f"{SERVICE}?statement=use+gone.away")

    assert status_and_message(answer) == status_and_message(ask(seeded, "use gone.away"))
