# SPDX-License-Identifier: Apache-2.0
"""Checks of Flink alone: CREATE TABLE AS SELECT, short names, and the output of SHOW.

May import this package's driver of Flink, the world and the checks.
"""

from __future__ import annotations

import time

from conformance.engines.checks import Check, Checks, Lake
from conformance.engines.drivers.flink_driver import Engine
from conformance.engines.world import outlive, place_of


def run(kind: type[Engine], lake: Lake) -> list[Check]:
    """Run as the admin, then as the reader."""
    engine = kind()
    checks = Checks(engine.title)
    space = f"admin.alone_{engine.line.removesuffix('.lock')}"
    engine.start(place_of(lake, "main", folder=f"{space}-alone"))
    try:
        for caller in ("admin", "reader", "program"):
            engine.be(caller)
        ask, began = engine.ask, time.monotonic()
        counted = lambda: ask("SELECT COUNT(*) FROM program.`open`.t")  # noqa: E731 - asked twice
        checks.expect("by a secret", counted, [["2"]])
        ask(f"CREATE DATABASE {space}")
        make = f"CREATE TABLE {space}.c AS SELECT id, city FROM admin.`open`.t"
        checks.expect("CREATE TABLE AS", lambda: ask(make), [])
        checks.expect("SELECT", lambda: ask(f"SELECT city FROM {space}.c WHERE id = 2"), [["Rome"]])
        checks.expect("a reader uses the database", lambda: ask("USE reader.`open`"), [["OK"]])
        checks.expect("a reader selects by the short name", lambda: ask("SELECT city FROM t WHERE id = 1"), [["Oslo"]])
        checks.expect_refusal("a reader may not create", lambda: ask("CREATE TABLE u (id BIGINT)"), "CREATE_TABLE")
        outlive(began)
        checks.expect("by a secret, after its first token's end", counted, [["2"]])
    finally:
        engine.stop()
    return checks.made
