# SPDX-License-Identifier: Apache-2.0
"""Bad input of every kind: the right status and error type, a helpful message, and no partial change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.http.iceberg.protocol import CATALOG_ROUTES, IcebergProtocol
from tests.backends import Database
from tests.http.driver import API, OWN, DriverNode
from tests.http.iceberg.wire import (
    PREFIX,
    ROOT,
    SCHEMA,
    SPACES,
    basic,
    error_of,
    make_space,
    make_table,
    node_over,
    nothing_done,
    space_path,
    table_path,
)

BAD = (400, "IllegalArgumentException")
TABLES = f"{space_path('a')}/tables"
TABLE = table_path("a", "t")
REGISTER = f"{space_path('a')}/register"
RENAME = f"{ROOT}/tables/rename"
END = {"namespace": ["a"], "name": "t"}


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a table that tests of this module must not change."""
    with node_over(tmp_path_factory.mktemp("still"), body_bytes_max=100_000) as node:
        make_space(node, "a", k="v")
        make_table(node, "a", "t")
        yield node


WITH_BODY = [
    ("POST", path.replace("{prefix}", PREFIX).replace("{namespace}", "a").replace("{table}", "t"))
    for method, path in ((route.method, f"/iceberg/v1{route.path}") for route in CATALOG_ROUTES)
    if method == "POST" and not path.endswith("/unregister")
]

NO_OBJECT = {
    "nothing": b"",
    "white space": b"  \n",
    "a word": b"frobnicate",
    "half": b'{"updates": ',
    "two": b"{} {}",
    "null": b"null",
    "a number": b"7",
    "text": b'"x"',
    "an array": b"[]",
    "no UTF-8": b'{"updates": "\xff\xfe"}',
    "a lone surrogate": b'{"updates": "\\ud800"}',
    "NaN": b'{"updates": NaN}',
    "an endless number": b'{"updates": 1e999999}',
    "a comment": b'{"name": /* x */ 1}',
    "single quotes": b"{'name': 1}",
    "a nest": b'{"updates":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
}


@pytest.mark.parametrize("kind", NO_OBJECT)
@pytest.mark.parametrize("route", WITH_BODY, ids=str)
def test_non_object_body_returns_400(still: DriverNode, route: tuple[str, str], kind: str) -> None:
    """On every route with a body, a body that is not a JSON object is refused with 400 and this reason."""
    with nothing_done(still):
        answer = still.ask(*route, NO_OBJECT[kind])

    assert error_of(answer)[:2] == BAD
    assert "json" in error_of(answer)[2].lower()


WRONG = [
    (SPACES, {}, "namespace"),
    *[
        (SPACES, {"namespace": value}, "")
        for value in (None, "a", 7, {}, [], [1], [None], ["a", ["b"]], [""], ["b", ""])
    ],
    *[
        (SPACES, {"namespace": ["n"], "properties": value}, "properties")
        for value in (7, "x", [], {"k": 1}, {"k": None})
    ],
    *[(f"{space_path('a')}/properties", {"removals": value}, "removals") for value in ("k", {}, [1], [None])],
    *[(f"{space_path('a')}/properties", {"updates": value}, "updates") for value in ("k", [], {"k": 1}, {"k": None})],
    (TABLES, {"schema": SCHEMA}, "name"),
    (TABLES, {"name": "x"}, "schema"),
    *[
        (TABLES, {"name": value, "schema": SCHEMA}, "")
        for value in (None, 7, ["x"], "", ".", "..", "a\x1fb", "a\0", "x" * 256)
    ],
    *[
        (TABLES, {"name": "x", "schema": value}, "")
        for value in (None, 7, "x", [], {}, {"type": "struct"}, {"type": "list"})
    ],
    *[
        (TABLES, {"name": "x", "schema": {"type": "struct", "fields": [field]}}, "")
        for field in (
            7,
            {},
            {"id": 1},
            {"id": "1", "name": "c", "required": True, "type": "int"},
            {"id": 1, "name": 7, "required": True, "type": "int"},
            {"id": 1, "name": "c", "required": "yes", "type": "int"},
            {"id": 1, "name": "c", "required": True, "type": "number"},
            {"id": 1, "name": "c", "required": True, "type": None},
            {"id": 1, "name": "c", "required": True, "type": {"type": "list"}},
            {"id": 1, "name": "c", "required": True, "type": "decimal(99, 1)"},
            {"id": 1, "name": "c", "required": False, "type": "timestamp_ns"},
            {"id": 1, "name": "c", "required": False, "type": "variant"},
        )
    ],
    (TABLES, {"name": "x", "schema": {**SCHEMA, "fields": [*SCHEMA["fields"], SCHEMA["fields"][0]]}}, ""),
    *[
        (TABLES, {"name": "x", "schema": SCHEMA, "location": value}, "")
        for value in (7, [], "", "relative", "http://h/x", "file://host/x")
    ],
    *[
        (TABLES, {"name": "x", "schema": SCHEMA, "properties": value}, "properties")
        for value in (7, [], {"k": 1}, {"k": None})
    ],
    *[
        (TABLES, {"name": "x", "schema": SCHEMA, "properties": {"format-version": value}}, "")
        for value in ("0", "4", "x", "-1")
    ],
    *[(TABLES, {"name": "x", "schema": SCHEMA, "stage-create": value}, "stage-create") for value in ("true", 1, None)],
    *[
        (TABLES, {"name": "x", "schema": SCHEMA, "partition-spec": value}, "")
        for value in (
            7,
            [],
            {},
            {"fields": [{}]},
            {"fields": [{"source-id": 9, "name": "n", "transform": "identity"}]},
            {"fields": [{"source-id": 1, "name": "n", "transform": "frobnicate"}]},
        )
    ],
    *[
        (TABLES, {"name": "x", "schema": SCHEMA, "write-order": value}, "")
        for value in (
            7,
            [],
            {},
            {
                "order-id": 1,
                "fields": [{"source-id": 9, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
            },
            {
                "order-id": 1,
                "fields": [{"source-id": 1, "transform": "identity", "direction": "up", "null-order": "nulls-first"}],
            },
        )
    ],
    *[(TABLE, {"requirements": value}, "requirements") for value in ("x", {}, 7, [7], [None])],
    *[(TABLE, {"updates": value}, "updates") for value in ("x", {}, 7, [7], [None])],
    *[
        (TABLE, {"requirements": [value]}, "")
        for value in ({}, {"type": 7}, {"type": "assert-nothing"}, {"type": "assert-table-uuid"})
    ],
    *[
        (TABLE, {"requirements": [{"type": kind, field: value}]}, field)
        for kind, field in (
            ("assert-table-uuid", "uuid"),
            ("assert-current-schema-id", "current-schema-id"),
            ("assert-last-assigned-field-id", "last-assigned-field-id"),
            ("assert-default-spec-id", "default-spec-id"),
            ("assert-last-assigned-partition-id", "last-assigned-partition-id"),
            ("assert-default-sort-order-id", "default-sort-order-id"),
        )
        for value in (None, [], 1.5, True)
    ],
    *[
        (TABLE, {"requirements": [{"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": 1}]}, "ref")
        for ref in (None, 7, [])
    ],
    (TABLE, {"requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": "1"}]}, "snapshot-id"),
    (
        TABLE,
        {"requirements": [{"type": "assert-create"}, {"type": "assert-current-schema-id", "current-schema-id": 0}]},
        "assert-create",
    ),
    (REGISTER, {"name": "x"}, "metadata-location"),
    (REGISTER, {"metadata-location": "file:///x"}, "name"),
    *[(REGISTER, {"name": value, "metadata-location": "file:///x"}, "") for value in (7, "", ".", "\x01")],
    *[(REGISTER, {"name": "x", "metadata-location": value}, "") for value in (7, "", "x", "ftp://x/y", "file:///x\n")],
    (REGISTER, {"name": "x", "metadata-location": "file:///x", "overwrite": "yes"}, "overwrite"),
    (RENAME, {"source": END}, "destination"),
    (RENAME, {"destination": END}, "source"),
    *[
        (RENAME, {"source": END, "destination": value}, "")
        for value in (7, [], {}, {"name": "x"}, {"namespace": ["a"]}, ["a", "x"])
    ],
    *[
        (RENAME, {"source": END, "destination": {"namespace": value, "name": "x"}}, "")
        for value in ("a", [], [7], [""], ["a\x1fb"])
    ],
    *[
        (RENAME, {"source": END, "destination": {"namespace": ["a"], "name": value}}, "")
        for value in (7, "", "..", "\0", "é" * 128)
    ],
    (RENAME, {"source": END, "destination": {"namespace": ["n"] * 32, "name": "x"}}, "32"),
    (f"{TABLE}/metrics", [], "object"),
]


@pytest.mark.parametrize("path, body, text", WRONG, ids=lambda value: str(value)[-70:])
def test_invalid_field_returns_400_and_changes_nothing(still: DriverNode, path: str, body: object, text: str) -> None:
    """A field that is missing or has a wrong type or value is refused with 400 and the field's name, and nothing is
    changed.
    """
    with nothing_done(still):
        answer = still.post(path, body)

    assert error_of(answer)[:2] == BAD
    assert text in error_of(answer)[2]


PARTS = {
    "%00": "U+0000",
    "%01": "U+0001",
    "a%01b": "U+0001",
    ".": "'.'",
    "..": "'..'",
    "%2E%2E": "'..'",
    "%": "percent escape",
    "%2": "percent escape",
    "%zz": "percent escape",
    "a%g0": "percent escape",
    "%FF": "UTF-8",
    "%C3%28": "UTF-8",
    "%ED%A0%80": "UTF-8",
    "x" * 256: "255",
    "%C3%A9" * 128: "255",
}
"""Invalid spellings of one name part, and the text that the refusal must contain."""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part[:20])
@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "{}/namespaces/{{}}"),
        ("HEAD", "{}/namespaces/{{}}"),
        ("DELETE", "{}/namespaces/{{}}"),
        ("GET", "{}/namespaces?parent={{}}"),
        ("GET", "{}/namespaces/a/tables/{{}}"),
        ("GET", "{}/namespaces/{{}}/tables"),
        ("HEAD", "{}/namespaces/a/tables/{{}}"),
        ("DELETE", "{}/namespaces/a/tables/{{}}"),
        ("GET", "{}/namespaces/a%1F{{}}/tables/t"),
    ],
)
def test_invalid_name_in_path_returns_400(still: DriverNode, method: str, path: str, part: str) -> None:
    """On every route, an invalid name in the path is refused with 400 and the reason."""
    with nothing_done(still):
        answer = still.ask(method, path.format(ROOT).format(part))

    assert answer.status == 400
    if method != "HEAD":
        assert error_of(answer)[:2] == BAD
        assert PARTS[part] in error_of(answer)[2]


@pytest.mark.parametrize("levels", ["a%1F", "%1Fa", "a%1F%1Fb", "%1F", "%1F".join(["a"] * 33)])
def test_empty_or_too_many_levels_return_400(still: DriverNode, levels: str) -> None:
    """Empty levels, and more than 32 levels, are 400."""
    answers = [
        still.get(f"{SPACES}/{levels}"),
        still.get(f"{SPACES}?parent={levels}"),
        still.get(f"{SPACES}/{levels}/tables/t"),
    ]

    assert [error_of(answer)[:2] for answer in answers] == [BAD] * 3


def test_empty_path_segment_returns_400(still: DriverNode) -> None:
    """A path with an empty segment is 400 and not another route."""
    answers = [still.get(f"{SPACES}//tables"), still.get(f"{SPACES}//views/v"), still.delete(f"{SPACES}//tables/t")]

    assert [error_of(answer)[:2] for answer in answers] == [BAD] * 3


def test_table_without_a_namespace_does_not_exist(still: DriverNode) -> None:
    """Java's clients load a missing `shop.files` also as a metadata table of a table `shop`, and go on only if the
    answer is that there is no such table.
    """
    answer, head = still.get(f"{SPACES}//tables/shop"), still.ask("HEAD", f"{SPACES}//tables/shop")

    assert error_of(answer) == (404, "NoSuchTableException", "Table does not exist: shop")
    assert head.status == 404
    assert error_of(still.get(f"{SPACES}//tables/..."))[0] == 404
    assert error_of(still.get(f"{SPACES}//tables/.."))[:2] == BAD


@pytest.mark.parametrize("name", ["\0", "a\x01", "\x1f", ".", "..", "", "x" * 256, "é" * 128, "with:separator"])
def test_invalid_namespace_name_in_body_returns_400(still: DriverNode, name: str) -> None:
    """Invalid names in bodies are 400 at any level, and no parent is created."""
    with nothing_done(still):
        answers = [still.post(SPACES, {"namespace": levels}) for levels in ([name], ["p", name], [name, "c"])]

    assert [error_of(answer)[:2] for answer in answers] == [BAD] * 3


def test_name_with_too_many_parts_returns_400(still: DriverNode) -> None:
    """A name of more than 32 parts, the table's own included, is 400 in paths and bodies."""
    deep = [f"d{number}" for number in range(33)]
    with nothing_done(still):
        answers = [
            still.post(SPACES, {"namespace": deep}),
            still.post(f"{space_path(*deep[:32])}/tables", {"name": "t", "schema": SCHEMA}),
            still.post(f"{space_path(*deep[:32])}/register", {"name": "t", "metadata-location": "file:///x"}),
        ]

    assert [error_of(answer)[:2] for answer in answers] == [BAD] * 3
    assert all("32" in error_of(answer)[2] for answer in answers)


@pytest.mark.parametrize(
    "prefix", ["main", "lake", "lake.main.x", "lake.", ".main", "la%20ke.main", "lake%2Emain%2Ex", "é.main", "%"]
)
def test_invalid_prefix_returns_400(still: DriverNode, prefix: str) -> None:
    """A prefix that is not a metalake and a catalog is 400, and the message says where to get one."""
    answer = still.get(f"/iceberg/v1/{prefix}/namespaces")

    assert error_of(answer)[:2] == BAD


def test_body_over_the_limit_returns_413(still: DriverNode) -> None:
    """A body over the limit is 413 by its declared and by its actual length; one at the limit is read."""
    limit = still.built.application.body_bytes_max
    padded = {"namespace": ["a"], "properties": {"k": ""}}
    with nothing_done(still):
        real = still.post(SPACES, b'{"namespace": ["z"], "x": "' + b"x" * limit + b'"}')
        declared = still.ask("POST", SPACES, {"namespace": ["z"]}, content_length=str(limit + 1))
        padded["properties"] = {"k": "x" * (limit - len(str(padded)))}
        under = still.post(SPACES, padded)

    assert [error_of(answer)[:2] for answer in (real, declared)] == [(413, "BadRequestException")] * 2
    assert "server.body_bytes_max" in error_of(real)[2]
    assert under.status == 409


@pytest.mark.parametrize(
    "path",
    [
        "/iceberg",
        "/iceberg/v1",
        "/iceberg/v2/config",
        f"{ROOT}",
        f"{ROOT}/views",
        f"{TABLE}/plans",
        f"{TABLE}/signs",
        f"{ROOT}/transactions",
        f"{space_path('a')}/functions",
        "/iceberg/v1/oauth/token",
        "/iceberg/v1/config/x",
        f"{ROOT}/tables",
    ],
)
def test_unknown_route_returns_404(still: DriverNode, path: str) -> None:
    """An unknown path below `/iceberg`, including unsupported routes of the protocol, is 404 in Iceberg's error
    format.
    """
    answers = [still.ask(method, path, {}) for method in ("GET", "POST")]

    assert [error_of(answer)[:2] for answer in answers] == [(404, "NotFoundException")] * 2


def test_wrong_method_returns_405(still: DriverNode) -> None:
    """A wrong method is refused with 405 in Iceberg's error format. A request without a required prefix is refused with
    400.
    """
    routes = {(route.path, route.method) for route in IcebergProtocol().router.routes}
    paths = {path for path, _ in routes}
    for path in paths:
        filled = path.replace("{prefix}", PREFIX).replace("{namespace}", "a").replace("{table}", "t")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FROBNICATE"):
            if not {(path, method), (f"/{{prefix}}{path}", method)} & routes:
                answer = still.ask(method, f"/iceberg/v1{filled}", {})
                lacks_prefix = (f"/{{prefix}}{path}", method) in routes

                expected = BAD if lacks_prefix else (405, "UnsupportedOperationException")
                assert error_of(answer)[:2] == expected, (method, path)


CREDENTIALS = [
    "Bearer",
    "Bearer ",
    "Bearer x",
    "Bearer lim_",
    "Bearer lim_1",
    "Bearer lim_1_",
    "Bearer lim_x_y",
    "Bearer lim_1_wrong",
    "Bearer lim_99999999999999999999_x",
    "Bearer lim_9999999999999999_x",
    "Bearer lim_-1_x",
    "Bearer lim_\u00b2_x",
    "Basic",
    "Basic !!!",
    "Basic QUJD/w==",
    "Basic Og==",
    "Digest x",
    "None",
    "bearer none",
    "Negotiate",
    "lim_1_x",
    "Bearer eyJhbGciOiJub25lIn0.e30.",
]


@pytest.mark.parametrize("header", CREDENTIALS)
def test_unverifiable_credential_returns_401(still: DriverNode, header: str) -> None:
    """A malformed or wrong credential is refused on every route with 401 and a Bearer challenge. The answer does not
    repeat the credential.
    """
    answers = [
        still.ask(method, path, body, user=None, authorization=header)
        for method, path, body in (
            ("GET", "/iceberg/v1/config", None),
            ("GET", TABLE, None),
            ("POST", TABLE, {"updates": []}),
        )
    ]

    assert [error_of(answer)[:2] for answer in answers] == [(401, "NotAuthorizedException")] * 3
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert "wrong" not in header or header.rpartition("_")[2] not in error_of(answers[0])[2].split()[3:]


def test_revoked_or_expired_token_returns_401(node: DriverNode) -> None:
    """A token is accepted until it is revoked or expires. The next request gets 401."""
    make_table(node, "a", "t")
    issued_token = node.post(f"{OWN}/tokens", {"name": "kept"}).json()
    short = node.post(f"{OWN}/tokens", {"name": "short", "expires_in_s": 1}).json()

    def status(token: dict[str, object], secret: str = "") -> int:
        return node.get(TABLE, user=None, authorization=f"Bearer {token['token']}{secret}").status

    first = [status(issued_token), status(short), status(issued_token, "x")]
    node.delete(f"{OWN}/tokens/{issued_token['id']}")
    ends = time.monotonic() + 1.1
    revoked = status(issued_token)
    while time.monotonic() < ends:
        time.sleep(0.05)

    assert first == [200, 200, 401]
    assert (revoked, status(short)) == (401, 401)


def test_missing_credentials_return_401(still: DriverNode) -> None:
    """A request without credentials, and one with `Bearer None`, get 401. `tests/http/iceberg/test_credentials.py` has
    the other cases.
    """
    answers = [still.get(TABLE, user=None), still.get(TABLE, user=None, authorization="Bearer None")]

    assert [error_of(answer)[:2] for answer in answers] == [(401, "NotAuthorizedException")] * 2
    assert all("anonymous" in error_of(answer)[2] for answer in answers)


@pytest.mark.parametrize("target", ["metalake", "catalog"])
def test_requests_below_a_disabled_metalake_or_catalog_return_403(node: DriverNode, target: str) -> None:
    """Every request below a disabled metalake or catalog is refused with 403 and the reason, also to its owner, until
    it is enabled.
    """
    make_table(node, "a", "t")
    path = f"{API}/lake" + ("/catalogs/main" if target == "catalog" else "")
    node.done("PATCH", path, {"inUse": False})

    with nothing_done(node):
        refused = [
            node.get(SPACES),
            node.get(space_path("a")),
            node.get(TABLES),
            node.get(TABLE),
            node.ask("HEAD", TABLE),
            node.post(SPACES, {"namespace": ["b"]}),
            node.post(TABLES, {"name": "u", "schema": SCHEMA}),
            node.post(TABLE, {"updates": [{"action": "set-properties", "updates": {"k": "v"}}]}),
            node.delete(TABLE),
            node.post(RENAME, {"source": END, "destination": {**END, "name": "u"}}),
            node.delete(space_path("a")),
            node.post(f"{space_path('a')}/properties", {"updates": {"k": "v"}}),
            node.post(f"{TABLE}/metrics", {"report-type": "scan-report"}),
        ]
    node.done("PATCH", path, {"inUse": True})

    assert [answer.status for answer in refused] == [403] * len(refused)
    assert "is disabled" in error_of(refused[3])[2]
    assert node.get(TABLE).status == 200


def test_null_character_is_refused_in_names_and_stored_in_properties(database: Database, tmp_path: Path) -> None:
    """U+0000 is refused in names and stored in properties on both backends; as a user name it is unknown."""
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as node:
        make_space(node, "a")
        foreign = [
            node.get("/api/metalakes/a%00b"),
            node.get(f"{API}/lake/users/a%00b"),
            node.post(f"{API}/lake/users", {"name": "a\0b"}),
            node.put(f"{API}/lake/permissions/users/a%00b/grant", {"roleNames": ["a\0b"]}),
            node.get(f"{OWN}/tokens?user=a%00b"),
            node.post(f"{OWN}/metalakes/lake/groups/a%00b/members", {"users": ["a\0b"]}),
            node.post(f"{OWN}/tokens", {"name": "a\0b"}),
        ]
        created = node.post(SPACES, {"namespace": ["b"], "properties": {"k\0": "v\0"}})
        table = node.post(TABLES, {"name": "t", "schema": SCHEMA, "properties": {"k\0": "v\0"}})
        users = [
            node.get(TABLE, user=None, authorization=basic(user))
            for user in ("a\0b", "x" * 5000, "ü", "\x1f", "' OR 1=1 --")
        ]

        properties = node.get(space_path("b"))["properties"]
        assert (created.status, properties["k\0"], set(properties)) == (200, "v\0", {"k\0", "location"})
        assert table["metadata"]["properties"]["k\0"] == "v\0"
        assert [error_of(answer)[0] for answer in users] == [401, 401, 403, 401, 403]
        assert error_of(node.get(f"{SPACES}/a%00"))[:2] == BAD
        assert {answer.status for answer in foreign} <= {200, 400, 403, 404}
