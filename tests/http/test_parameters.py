# SPDX-License-Identifier: Apache-2.0
"""Query parameters: changes refuse unknown parameters by name, and no parameter may occur twice."""

from __future__ import annotations

import re

import pytest

from limnos.http.application import READING
from limnos.http.parameters import check_parameters
from limnos.http.route_targets import Protocol
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.names.errors import InvalidName
from scripts.generate_openapi import documented_protocols, read_of, unwrap
from tests.http.driver import API, DriverNode
from tests.installed import room_part

ROUTES = [(protocol, route) for protocol in documented_protocols() for route in protocol.router.routes]
STATEMENT_PARAMETERS: tuple[str, ...] = room_part("limnos.rooms.sqlpp.http.parameters:GET_PARAMETERS") or ()
DECLARED_ONLY = {
    "lance-batch-create-table-versions": {"delimiter"},
    "lance-batch-commit-tables": {"delimiter"},
    "query-service-read": {
        "statement",
        "mode",
        "dataverse",
        "pretty",
        "readonly",
        "compile-only",
        "plan-format",
        "timeout",
        "client_context_id",
        *STATEMENT_PARAMETERS,
    },
    "list-maintenance-findings": {"after"},
    "list-maintenance-operations": {"before"},
}
"""Parameters that a route declares but its handler does not name: clients send the delimiter to every operation, a
statement's parameters are read as a form, and a shared function reads the page's position.
"""

READ_ELSEWHERE = {"take-lineage-of-metalake": {"metalake"}}
"""Parameters that a handler of several routes reads only for the others: the path of this route names the metalake."""


def address(protocol: Protocol, route: Route) -> str:
    """Return a path that matches a route."""
    return re.sub(r"\{[^}]*\}", "x", protocol.router.root + route.path)


@pytest.mark.parametrize("protocol, route", ROUTES, ids=lambda each: getattr(each, "operation", ""))
def test_routes_declare_what_their_handlers_read(protocol: Protocol, route: Route) -> None:
    """Routes declare exactly the parameters that their handlers read."""
    del protocol

    read = set(read_of(unwrap(route.handler)))

    assert set(route.query) == read - READ_ELSEWHERE.get(route.operation, set()) | DECLARED_ONLY.get(
        route.operation, set()
    )
    assert set(route.query_repeatable) <= set(route.query)
    assert not set(route.query) & set(route.query_ignored)


def test_every_change_refuses_an_unknown_parameter(open_node: DriverNode) -> None:
    """Each changing operation refuses an unknown parameter with 400, in its protocol's error format and with the known
    parameters.
    """
    accepted = []
    for protocol, route in ROUTES:
        if route.method in READING or route.operation in protocol.anonymous:
            continue
        answer = open_node.ask(route.method, f"{address(protocol, route)}?surprise=1", {})
        message = answer.body.decode()
        named = "surprise" in message and all(name in message for name in route.query)
        if answer.status != 400 or not named:
            accepted.append((protocol.name, route.operation, answer.status, message[:200]))

    assert accepted == []


def test_no_operation_takes_a_parameter_twice(open_node: DriverNode) -> None:
    """A parameter that occurs twice is refused with 400, also by reads."""
    accepted = []
    for protocol, route in ROUTES:
        for name in (*route.query, *route.query_ignored):
            answer = open_node.ask(route.method, f"{address(protocol, route)}?{name}=a&{name}=b", {})
            message = answer.body.decode()
            refused = answer.status == 400 and (f"{name} is repeated" in message or route.method == "HEAD")
            if refused == (name in route.query_repeatable):
                accepted.append((protocol.name, route.operation, name, answer.status, message[:200]))

    assert accepted == []


def test_two_parents_are_refused(open_node: DriverNode) -> None:
    """A list with two parents is refused; unknown parameters of reads are ignored."""
    schemas = f"{API}/lake/catalogs/main/schemas"
    for name in ("a", "b"):
        open_node.done("POST", schemas, {"name": name})

    twice = open_node.get(f"{schemas}?parentSchema=a&parentSchema=b")
    unknown = open_node.get(f"{schemas}?_t=17")

    assert twice.status == 400
    assert "parentSchema" in str(twice["message"])
    assert unknown.status == 200


def test_a_cascade_is_refused_and_drops_nothing(open_node: DriverNode) -> None:
    """Iceberg's drop of a namespace refuses `cascade=true` by name and drops nothing. `cascade=false` is accepted."""
    spaces = "/iceberg/v1/lake.main/namespaces"
    open_node.done("POST", spaces, {"namespace": ["a"]})

    refused = open_node.delete(f"{spaces}/a?cascade=true")
    remaining = open_node.get(f"{spaces}/a")
    dropped = open_node.delete(f"{spaces}/a?cascade=False")

    assert refused.status == 400
    assert "cascade" in refused.json()["error"]["message"]
    assert (remaining.status, dropped.status) == (200, 204)


def test_names_are_compared_decoded() -> None:
    """Parameter names are compared after decoding. A name that is not UTF-8 is refused."""
    with pytest.raises(BadRequest, match="purge is repeated"):
        check_parameters(b"purge=true&p%75rge=false", ("purge",), changes=True)
    with pytest.raises(InvalidName):
        check_parameters(b"%ff=1", ("purge",), changes=False)


def test_refusal_truncates_a_long_unknown_parameter() -> None:
    """A refusal contains the beginning of a long parameter name, and the known parameters."""
    with pytest.raises(BadRequest) as refused:
        check_parameters(b"x" * 5000, ("force",), changes=True)

    assert len(refused.value.message) < 300
    assert "this operation has force" in refused.value.message
