# SPDX-License-Identifier: Apache-2.0
"""Trino with its own OpenLineage listener, which sends an event for each statement that writes.

Job: run statements, and keep what the server answers to each event, because the listener does not show it. May import
Trino's driver, the client and this package's relay. The listener's settings are those of docs/guides/lineage.md.
"""

from __future__ import annotations

import time
from pathlib import Path

from conformance.engines.driver import Place
from conformance.engines.drivers.trino_driver import Engine
from conformance.producers.relay import Relay
from limnos.client import Client

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "lineage.md"
NAMESPACE = "trino://trino:8080"
UNMAPPED = "CREATE TABLE admin.sold.early AS SELECT 1 AS n FROM system.runtime.nodes"
"""Sent before a property of the metalake maps Trino's namespace."""
STATEMENTS = (
    "CREATE TABLE admin.sold.items AS SELECT 'ann' AS customer, BIGINT '20' AS amount UNION ALL SELECT 'bob', 5",
    "CREATE TABLE admin.sold.sums AS SELECT customer, sum(amount) AS total FROM admin.sold.items GROUP BY customer",
    "CREATE TABLE admin.sold.history (name VARCHAR, total BIGINT)",
    "INSERT INTO admin.sold.history SELECT upper(customer), total FROM admin.sold.sums WHERE total > 10",
    'CREATE SCHEMA admin."sold.deep"',
    'CREATE TABLE admin."sold.deep".copy AS SELECT * FROM admin.sold.history',
    "CREATE TABLE admin.sold.states AS SELECT state AS name FROM system.runtime.nodes",
    'CREATE TABLE admin.sold.changes AS SELECT snapshot_id FROM admin.sold."items$snapshots"',
)
"""Sent afterwards. `history` is also the name of one of Iceberg's metadata tables."""
_EVENTS_S = 60
Answers = dict[str, tuple[int, list[str]]]
"""By statement: how many edges the server kept of its last event, and what it left out, with the reason."""


def settings(uri: str, token: str) -> str:
    """Return the listener's settings from the page, for a server and a caller."""
    code = PAGE.read_text(encoding="utf-8").partition("`etc/event-listener.properties`")[2]
    code = code.partition("```properties\n")[2].partition("\n```")[0]
    return code.replace("http://127.0.0.1:8090", uri).replace("TOKEN", token)


def run_trino(client: Client, place: Place, relay: Relay) -> Answers:
    """Run the statements in a namespace of its own. Returns what the server answered to the events of each."""
    client.namespaces.create("main.sold")
    engine = Engine()
    engine.listener = settings(relay.uri, place.tokens["admin"])
    engine.start(place)
    try:
        engine.ask(UNMAPPED)
        _wait(relay, 1)
        client.metalakes.alter("lake", updates={f"lineage.namespace.{NAMESPACE}": "admin=main"})
        for statement in STATEMENTS:
            engine.ask(statement)
        _wait(relay, 1 + len(STATEMENTS))
    finally:
        engine.stop()
    return answers(relay)


def answers(relay: Relay) -> Answers:
    """Return the server's answers to events of statements that ended."""
    replies: Answers = {}
    for event, _, answer in relay.kept:
        if event["eventType"] != "START":
            left_out = [f"{each['name']}: {each['reason']}" for each in answer.get("left_out", [answer])]
            replies[event["job"]["facets"]["sql"]["query"]] = (answer.get("kept", 0), left_out)
    return replies


def _wait(relay: Relay, number: int) -> None:
    """Wait until the events of so many statements have arrived: Trino sends them after its own answer."""
    end = time.monotonic() + _EVENTS_S
    while len(answers(relay)) < number and time.monotonic() < end:
        time.sleep(0.1)
