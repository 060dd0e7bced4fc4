# SPDX-License-Identifier: Apache-2.0
"""Trino with its own OpenLineage listener, which sends an event for each statement that writes.

Job: run statements, and keep what the server answers to each event, because the listener does not show it. May import
Trino's driver, the client and this package's relay. The listener's settings are those of docs/guides/lineage.md.
"""

from __future__ import annotations

from pathlib import Path

from conformance.engines.driver import Place
from conformance.engines.drivers.trino_driver import Engine
from conformance.producers.relay import Relay
from limnos.client import Client

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "lineage.md"
NAMESPACE = "trino://trino:8080"
STATEMENTS = (
    "CREATE TABLE admin.sold.items AS SELECT 'ann' AS customer, BIGINT '20' AS amount UNION ALL SELECT 'bob', 5",
    "CREATE TABLE admin.sold.sums AS SELECT customer, sum(amount) AS total FROM admin.sold.items GROUP BY customer",
    "CREATE TABLE admin.sold.top (name VARCHAR, total BIGINT)",
    "INSERT INTO admin.sold.top SELECT upper(customer), total FROM admin.sold.sums WHERE total > 10",
    'CREATE SCHEMA admin."sold.deep"',
    'CREATE TABLE admin."sold.deep".copy AS SELECT * FROM admin.sold.top',
    "CREATE TABLE admin.sold.states AS SELECT state AS name FROM system.runtime.nodes",
    'CREATE TABLE admin.sold.history AS SELECT snapshot_id FROM admin.sold."items$snapshots"',
    "CREATE TABLE reader.open.refused AS SELECT * FROM admin.sold.items",
)
"""One query or change each. The last one is denied to its caller."""


def settings(uri: str, token: str) -> str:
    """Return the listener's settings from the page, for a server and a caller."""
    code = PAGE.read_text(encoding="utf-8").partition("`etc/event-listener.properties`")[2]
    code = code.partition("```properties\n")[2].partition("\n```")[0]
    return code.replace("http://127.0.0.1:8090", uri).replace("TOKEN", token)


def run_trino(client: Client, place: Place, relay: Relay) -> list[str]:
    """Run the statements in a namespace of its own. Returns the statements that failed, with Trino's message."""
    key = f"lineage.namespace.{NAMESPACE}"
    client.metalakes.alter("lake", updates={key: "admin=main, reader=main"})
    client.namespaces.create("main.sold")
    engine = Engine()
    engine.listener = settings(relay.uri, place.tokens["admin"])
    engine.start(place)
    failures = []
    try:
        for statement in STATEMENTS:
            try:
                engine.ask(statement)
            except RuntimeError as error:
                failures.append(f"{statement}: {error}")
    finally:
        engine.stop()
    return failures
