# SPDX-License-Identifier: Apache-2.0
"""Paths, bodies, credentials and errors of Lance REST, with the peculiarities of its clients as recorded."""

from __future__ import annotations

import json

import pytest

from limnos.rooms.lance.http.protocol import LanceProtocol, LanceRouter
from limnos.rooms.lance.http.unsupported_operations import unsupported_routes
from tests.http.driver import OWN, DriverNode
from tests.rooms.lance.http.wire import ROOT, declare, failure_of, make_space, names, space, table

OPERATIONS = 54
"""The number of the protocol's operations. The route `create-empty`, which older clients send for declare, is not one
of them.
"""


@pytest.fixture
def home(node: DriverNode) -> DriverNode:
    """Namespaces `a` and `a.b` in catalog `lance`, table `a.b.t`."""
    make_space(node, "lance", "a")
    make_space(node, "lance", "a", "b")
    declare(node, "lance", "a", "b", "t")
    return node


def test_every_operation_is_served_or_refused_by_name() -> None:
    """Each operation of the protocol has a route that serves it or refuses it by name."""
    served = {route.operation for route in LanceProtocol().router.routes}
    refused = {route.operation for route in unsupported_routes()}

    assert len(served | refused) == OPERATIONS + 1
    assert not served & refused


@pytest.mark.parametrize(
    "path",
    [
        "/lance/v1/table/lance$a$b$t/describe",
        "/lance/v1/table/lance%24a%24b%24t/describe/",
        "//lance//v1//table/lance$a$b$t/describe",
        "/lance/v1/table/lance.a.b.t/describe?delimiter=.",
        "/lance/v1/table/lance::a::b::t/describe?delimiter=%3A%3A",
        "/v1/table/lance$a$b$t/describe",
        "/lance//v1/table/lance__d__a__d__b__d__t/describe/?delimiter=__d__",
    ],
)
def test_all_path_spellings_address_the_same_table(home: DriverNode, path: str) -> None:
    """Paths with any delimiter, escaped or not, with doubled and final slashes, and the path of the protocol's own port
    name the same table.
    """
    description = home.done("POST", path, {})

    assert (description["namespace"], description["table"]) == (["lance", "a", "b"], "t")


@pytest.mark.parametrize(
    "path",
    [
        "/lance/v1/namespace/%24/list",
        "/lance/v1/namespace/$/list?delimiter=%24",
        "/lance/v1/namespace/list?delimiter=.",
        "/lance/v1/namespace/./list?delimiter=.",
        "/lance/v1/namespace//list",
        "/v1/namespace/list",
        "/lance/v1/namespace/%24/list/",
    ],
)
def test_root_is_addressed_by_delimiter_or_empty_id(home: DriverNode, path: str) -> None:
    """The root is the delimiter itself, or empty."""
    assert names(home.get(path)) == ["lance", "main"]


def test_namespace_named_like_an_action_is_addressable(node: DriverNode) -> None:
    """A namespace with the name of an action, or of the path segment for tables, can be addressed by a path."""
    make_space(node, "list")
    make_space(node, "table")

    assert node.post(f"{ROOT}/namespace/list/describe").status == 200
    assert names(node.get(f"{ROOT}/namespace/list/list")) == []
    assert node.post(f"{ROOT}/namespace/table/exists").status == 200
    assert names(node.get(f"{ROOT}/namespace/table/list")) == []


def test_plus_in_a_path_is_resolved_by_the_body_identifier(node: DriverNode) -> None:
    """A plus in a path may be a space: the identifier in the body decides, otherwise the client's name."""
    make_space(node, "lance", "d e")

    assert node.post(f"{ROOT}/namespace/lance$d+e/describe", {"id": ["lance", "d e"]}).status == 200
    assert node.post(f"{ROOT}/namespace/lance$d+e/describe", {}).status == 200
    assert failure_of(node.post(f"{ROOT}/namespace/lance$d%2Be/describe", {})) == (404, 1)
    assert node.ask("POST", f"{ROOT}/namespace/d+e/describe", {}, x_lancedb_database="lance").status == 404
    assert failure_of(node.post(f"{ROOT}/namespace/lance$d+f/describe", {"id": ["lance", "d e"]})) == (400, 13)


def test_conflicting_identifiers_in_path_and_body_return_400(home: DriverNode) -> None:
    """If path and body name different objects, the request is refused with 400 and code 13."""
    answer = home.post(f"{table('lance', 'a', 'b', 't')}/describe", {"id": ["lance", "a", "b", "u"]})

    assert failure_of(answer) == (400, 13)


@pytest.mark.parametrize(
    "path", ["lance$", "$lance", "lance$$a", "lance$.", "lance$..", "%FF", "lance%00", "lance$a%1Fb"]
)
def test_malformed_identifiers_return_400(node: DriverNode, path: str) -> None:
    """Empty, dotted and malformed names are 400 with code 13."""
    assert failure_of(node.post(f"{ROOT}/namespace/{path}/describe", {})) == (400, 13)


@pytest.mark.parametrize(
    "body", [b"", b"  ", b"{}", b"null", b'{"id":null,"identity":{"api_key":"x"},"context":{"a":"b"},"later":1}']
)
def test_missing_bodies_and_unknown_fields_are_accepted(home: DriverNode, body: bytes) -> None:
    """A missing body is an empty one, null fields count as absent, and unknown fields are ignored."""
    assert home.post(f"{table('lance', 'a', 'b', 't')}/describe", body).status == 200


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"id":"lance"}', b'{"version":"1"}', b"\xff", b"[" * 20_000])
def test_malformed_bodies_return_400(home: DriverNode, body: bytes) -> None:
    """A body that is not a JSON object of the operation is refused with 400 and code 13."""
    assert failure_of(home.post(f"{table('lance', 'a', 'b', 't')}/describe", body)) == (400, 13)


def test_unknown_routes_and_methods_return_a_json_error(node: DriverNode) -> None:
    """An unknown path or a wrong method is answered with a JSON body and code 0."""
    for method, path, expected in (
        ("GET", "/lance", 404),
        ("GET", "/lance/v2/table", 404),
        ("POST", f"{ROOT}/table/lance$t/dance", 404),
        ("GET", "/v1/table/x/y/z", 404),
        ("PUT", f"{ROOT}/table/lance$t/describe", 405),
        ("GET", f"{ROOT}/table/lance$t/drop", 405),
        ("DELETE", f"{ROOT}/table", 405),
    ):
        assert failure_of(node.ask(method, path)) == (expected, 0), path


def test_iceberg_paths_below_v1_get_no_lance_error(node: DriverNode) -> None:
    """A request to Iceberg REST without /iceberg in its path is not answered in Lance's format."""
    assert "instance" not in node.get("/v1/config").json()
    assert LanceRouter("/lance/v1", ()).reach([b"v1", b"config"]) == 0


def test_token_is_accepted_as_bearer_or_api_key(node: DriverNode) -> None:
    """A token is accepted in Authorization as Bearer, which takes precedence, and in x-api-key. Missing credentials are
    401 with code 16.
    """
    key = node.post(f"{OWN}/tokens", {"name": "k"}).json()
    token = str(key["token"])
    path = f"{space()}/list"

    assert node.get(path, user=None, x_api_key=token).status == 200
    assert node.get(path, user=None, authorization=f"Bearer {token}").status == 200
    assert node.get(path, user=None, authorization=f"Bearer {token}", x_api_key="nonsense").status == 200
    for headers in (
        {},
        {"x_api_key": ""},
        {"x_api_key": "lim_1_wrong"},
        {"x_api_key": "x"},
        {"authorization": "Bearer x"},
    ):
        answer = node.get(path, user=None, **headers)
        assert failure_of(answer) == (401, 16), headers
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (
        node.get("/api/metalakes/lake/catalogs", user=None, x_api_key=token).status == 403
    )  # other protocols do not accept it as a credential


def test_database_header_selects_the_catalog(home: DriverNode) -> None:
    """Identifiers are relative to the catalog that LanceDB's clients name as database in a header."""
    database = {"x_lancedb_database": "lance"}

    assert names(home.get(f"{ROOT}/namespace/$/list", **database)) == ["a"]
    description = home.ask("POST", f"{ROOT}/table/a$b$t/describe/", {"version": None}, **database).json()
    assert (description["namespace"], description["table"]) == (["a", "b"], "t")
    declare(home, "lance", "r")
    assert home.get(f"{ROOT}/table/?limit=10", **database).json() == {"tables": ["r"]}
    renamed = home.ask("POST", f"{ROOT}/table/r/rename/", {"new_table_name": "s", "new_namespace": ["a"]}, **database)
    assert renamed.status == 200
    assert names(home.get(f"{ROOT}/namespace/a/table/list", **database)) == ["s"]


def test_answers_have_the_version_for_lancedb(home: DriverNode) -> None:
    """Successful answers have the header by which LanceDB's remote clients learn which queries a server takes."""
    for path in (f"{table('lance', 'a', 'b', 't')}/describe", f"{table('lance', 'a', 'b', 't')}/describe/"):
        assert home.ask("POST", path, {"version": None}).headers["phalanx-version"] == "0.3.0"


def test_metalake_is_selected_by_parameter_or_header(home: DriverNode) -> None:
    """A parameter or a header selects the metalake; the parameter takes precedence. Users who are not in it are
    refused.
    """
    home.done("POST", "/api/metalakes", {"name": "sea"})
    listed = f"{space()}/list"

    assert names(home.get(listed, x_limnos_metalake="lake")) == ["lance", "main"]
    assert names(home.get(listed, x_limnos_metalake="sea")) == []
    assert names(home.get(f"{listed}?metalake=lake", x_limnos_metalake="sea")) == ["lance", "main"]
    assert failure_of(home.get(listed, x_limnos_metalake="none")) == (403, 15)
    assert failure_of(home.get(listed, x_limnos_metalake="a/b")) == failure_of(home.get(f"{listed}?metalake=a/b"))


def test_error_body_names_object_detail_and_request_id(node: DriverNode) -> None:
    """`error` begins with the object, because clients put text before it; `detail` is a sentence, `instance` the
    request id.
    """
    answer = node.post(f"{space('lance', 'x')}/describe", {})

    body = json.loads(answer.body)
    assert (body["error"], body["detail"]) == ("lance.x", "Namespace does not exist: lance.x")
    assert body["instance"] == answer.headers["x-request-id"]
