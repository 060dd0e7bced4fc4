# SPDX-License-Identifier: Apache-2.0
"""The audit has a record for every operation of every protocol, for every caller and result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from limnos.access.authentication import Credential
from limnos.config.audit import AuditSection
from limnos.model.audit import AuditRecord
from limnos.services.activity.audit import audit_read
from limnos.services.request.context import Context
from limnos.store.activity.audit import AuditFilter
from scripts.generate_openapi import documented_protocols
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.test_coverage import OPERATIONS, Operation, ask, prepare

WHOLE = AuditSection(reads="whole", refusals="whole", refusals_per_s_max=1_000_000)
OPEN = frozenset().union(*(each.anonymous for each in documented_protocols()))
"""Operations that need no credentials. Everybody gets their answers, and only their refusals are audited."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node whose audit records everything."""
    with wire.node_over(tmp_path_factory.mktemp("audited"), audit=WHOLE) as audited_node:
        prepare(audited_node)
        yield audited_node


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[DriverNode]:
    """A node of one test whose audit records everything."""
    with wire.node_over(tmp_path, audit=WHOLE) as audited_node:
        yield audited_node


def read_audit_records(node: DriverNode) -> dict[str, list[AuditRecord]]:
    """Return every record of the server by its request."""
    ctx, records, after = Context(node.built.services, Credential(user="admin"), "audit"), {}, 0
    while lines := node.runner.run(audit_read(ctx, None, filters=AuditFilter(after=after), limit=1000)).lines:
        after = lines[-1].id
        for line in lines:
            records.setdefault(line.request_id, []).append(line)
    return records


def send_operations(node: DriverNode, user: str) -> dict[Operation, tuple[int, str]]:
    """Send every operation. Returns each status and the request's id."""
    statuses = {}
    for operation in OPERATIONS:
        answer = ask(node, operation, {"user": user})
        statuses[operation] = (answer.status, answer.headers["x-request-id"])
    return statuses


@pytest.mark.parametrize(
    "method, target, body, user",
    [
        ("GET", "/api/metalakes/lake", None, "admin"),
        ("POST", "/api/metalakes/lake/tags", {"name": "audited", "comment": "", "properties": {}}, "admin"),
        ("GET", "/api/metalakes/lake/users", None, "stranger"),
    ],
    ids=["read", "change", "refusal"],
)
def test_record_has_user_agent_and_address(node: DriverNode, method: str, target: str, body: object, user: str) -> None:
    """Records of reads, changes and refusals have the user agent as the client, and its address as the peer."""
    answer = node.ask(method, target, body, user=user, user_agent="acme/1", peer="192.0.2.7")

    lines = read_audit_records(node)[answer.headers["x-request-id"]]
    assert {(each.client, each.peer, each.credential) for each in lines} == {("acme/1", "192.0.2.7", "basic")}


@pytest.mark.parametrize("user", ["stranger", "member", "admin"])
def test_every_request_writes_an_audit_record(node: DriverNode, user: str) -> None:
    """Each request has a record with operation, protocol and user, whether it succeeded, was refused or failed."""
    answers = send_operations(node, user)
    lines = read_audit_records(node)

    for operation, (status, request) in answers.items():
        if operation.name in OPEN and (status < 400 or status == 404):
            continue
        own, who = lines.get(request, []), "anonymous" if operation.name in OPEN else user
        assert {(each.protocol, each.operation, each.user) for each in own} == {
            (operation.protocol, operation.name, who)
        }, (operation, status, own)
        refused = {each.outcome for each in own} == {"refused"}
        assert refused == (status in (401, 403)) or status == 404, (operation, status, own)


def records_of(node: DriverNode, answer: DriverAnswer) -> list[tuple[str, str, str]]:
    """Return the outcomes, actions and objects of a request's records."""
    lines = read_audit_records(node)[answer.headers["x-request-id"]]
    return [(line.outcome, line.action, line.path) for line in lines]


def test_restricted_read_is_one_record_of_a_scan(fresh: DriverNode) -> None:
    """Loads and plans of a restricted reader are recorded as scans, not as reads of all rows; those of others as
    loads and reads.
    """
    wire.make_space(fresh, "masked")
    wire.make_table(fresh, "masked", "t")
    table = wire.table_path("masked", "t")
    for user in ("rita", "otto"):
        grant(fresh, user, "use_catalog use_schema select_table", kind="catalog", on="main")
    terms = {"filter": "id > 1", "to": {"users": ["rita"]}}
    fresh.done("PUT", f"{OWN}/metalakes/lake/objects/TABLE/main.masked.t/restrictions/eu", terms)

    loads = {user: records_of(fresh, fresh.get(table, user=user)) for user in ("rita", "otto")}
    again = records_of(fresh, fresh.get(table, user="rita"))
    plan = fresh.ask("POST", f"{table}/plan", {}, user="rita")

    assert loads["rita"] == again == [("done", "table_scan", "main.masked.t")]
    assert loads["otto"] == [("done", "table_load", "main.masked.t")]
    assert plan.status == 200
    assert records_of(fresh, plan) == [("done", "table_scan", "main.masked.t")]


def test_refusal_of_a_disabled_user_is_recorded_with_its_reason(fresh: DriverNode) -> None:
    """The record of a disabled user's refused request has the reason in words, and is one of the metalake."""
    fresh.done("POST", f"{API}/lake/users", {"name": "dina"})
    fresh.done("PATCH", f"{OWN}/metalakes/lake/users/dina", {"enabled": False})

    answer = fresh.get(f"{API}/lake/catalogs", user="dina")

    assert answer.status == 403
    (line,) = read_audit_records(fresh)[answer.headers["x-request-id"]]
    assert (line.outcome, line.user) == ("refused", "dina")
    assert "User dina is disabled in metalake lake" in line.detail
    listed = fresh.done("GET", f"{OWN}/metalakes/lake/audit?user=dina")["lines"]
    assert [each["request_id"] for each in listed] == [line.request_id]


def test_refusal_that_is_answered_as_missing_is_recorded(fresh: DriverNode) -> None:
    """Iceberg's configuration calls a catalog missing that the caller may not use; its record says that it was
    refused, and by which privilege. That of a catalog that does not exist says that the request failed.
    """
    fresh.done("POST", f"{API}/lake/users", {"name": "dora"})

    hidden = fresh.get("/iceberg/v1/config?warehouse=main", user="dora")
    missing = fresh.get("/iceberg/v1/config?warehouse=nothing", user="admin")

    assert (hidden.status, missing.status) == (404, 404)
    records = read_audit_records(fresh)
    (line,) = records[hidden.headers["x-request-id"]]
    assert (line.outcome, line.user, line.kind, line.path) == ("refused", "dora", "catalog", "main")
    assert [line.outcome for line in records[missing.headers["x-request-id"]]] == ["failed"]


def sign_ins_of(fresh: DriverNode, secret: dict[str, object]) -> list[DriverAnswer]:
    """Send a sign-in and a service account's exchange with right credentials, and a sign-in with a wrong password."""
    form = {"grant_type": "client_credentials", **{each: str(secret[each]) for each in ("client_id", "client_secret")}}
    exchange = fresh.ask(
        "POST",
        "/iceberg/v1/oauth/tokens",
        urlencode(form).encode(),
        user=None,
        content_type="application/x-www-form-urlencoded",
    )
    passwords = ("a few words of my own", "some other words of hers")
    return [
        exchange,
        *(fresh.post(f"{OWN}/login", {"user": "dina", "password": each}, user=None) for each in passwords),
    ]


def test_refused_sign_in_is_recorded_under_the_name_that_it_proved(fresh: DriverNode) -> None:
    """The records of a disabled service account's exchange and of a disabled user's sign-in name them. One with a wrong
    password proves no name, and has none.
    """
    for user in ("dina", "etl"):
        fresh.done("POST", f"{API}/lake/users", {"name": user})
    fresh.done("PUT", f"{OWN}/users/dina/password", {"password": "a few words of my own"})
    secret = fresh.post(f"{OWN}/users/etl/secrets", {}, user="admin").json()
    for user in ("dina", "etl"):
        fresh.done("PATCH", f"{OWN}/metalakes/lake/users/{user}", {"enabled": False})

    answers = sign_ins_of(fresh, secret)

    records = read_audit_records(fresh)
    lines = [records[each.headers["x-request-id"]][0] for each in answers]
    assert [each.status for each in answers] == [401, 401, 401]
    assert [(each.outcome, each.user) for each in lines] == [
        ("refused", "etl"),
        ("refused", "dina"),
        ("refused", "anonymous"),
    ]
