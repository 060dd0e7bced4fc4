# SPDX-License-Identifier: Apache-2.0
"""Checks of Trino alone: locations of tables, and the life of views.

May import this package's driver of Trino, the world and the checks.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from conformance.engines.checks import Check, Checks, Lake
from conformance.engines.drivers.trino_driver import Engine
from conformance.engines.rows import Row
from conformance.engines.views import make_view
from conformance.engines.world import outlive, place_of

Ask = Callable[[str], list[Row]]
OWN_SCHEMAS = ("information_schema", "system")
"""Schemas that Trino adds to every Iceberg catalog."""


def run(lake: Lake) -> list[Check]:
    """Run as the admin, and once as the reader."""
    checks = Checks(Engine.title)
    engine = Engine()
    engine.start(place_of(lake, "main", folder="trino-alone"))
    try:
        ask, began = engine.ask, time.monotonic()
        counted = lambda: ask("SELECT count(*) FROM program.open.t")  # noqa: E731 - asked twice
        checks.expect("by a secret", counted, [[2]])
        ask("CREATE SCHEMA admin.trino")
        ask("CREATE TABLE admin.trino.t AS SELECT BIGINT '1' AS id, 'Oslo' AS city UNION ALL SELECT 2, 'Rome'")
        _places(checks, lake, ask)
        _replaced(checks, ask)
        _views(checks, lake, ask)
        checks.expect_refusal(
            "a reader may not create", lambda: ask("CREATE TABLE reader.open.u (id bigint)"), "CREATE_TABLE"
        )
        schemas = ["open", "outer", "outer.inner"]
        checks.expect(
            "a reader finds a nested schema by its parent",
            lambda: [name for (name,) in ask("SHOW SCHEMAS FROM reader") if name not in OWN_SCHEMAS],
            schemas,
        )
        outlive(began)
        checks.expect("by a secret, after its first token's end", counted, [[2]])
    finally:
        engine.stop()
    return checks.made


def _replaced(checks: Checks, ask: Ask) -> None:
    """Replace a table that CREATE TABLE AS SELECT created; reuse a name."""
    checks.expect("CREATE TABLE AS", lambda: ask("CREATE TABLE admin.trino.c AS SELECT * FROM admin.trino.t"), [[2]])
    checks.expect("rename", lambda: ask("ALTER TABLE admin.trino.c RENAME TO admin.trino.d"), [])
    checks.expect("the old name is free", lambda: ask("CREATE TABLE admin.trino.c AS SELECT 9 AS id"), [[1]])
    both = "SELECT count(*) FROM admin.trino.d UNION ALL SELECT id FROM admin.trino.c"
    checks.expect("both are read", lambda: sorted(ask(both)), [[2], [9]])
    checks.expect("CREATE OR REPLACE", lambda: ask("CREATE OR REPLACE TABLE admin.trino.c AS SELECT 7 AS n"), [[1]])


def _places(checks: Checks, lake: Lake, ask: Ask) -> None:
    """A schema has a location, which may be another one within the catalog's roots."""
    check_name = "a schema's location is told"
    checks.expect(check_name, lambda: "location = 'file:" in str(ask("SHOW CREATE SCHEMA admin.trino")), True)
    place = f"file://{lake.work}/data/warehouse/main/chosen"
    ask(f"CREATE SCHEMA admin.chosen WITH (location = '{place}')")
    ask("CREATE TABLE admin.chosen.t AS SELECT 1 AS n")
    chosen = "a location that was chosen"
    checks.expect(chosen, lambda: f"{place}/t-" in str(ask("SHOW CREATE TABLE admin.chosen.t")), True)
    checks.expect_refusal(
        "a location elsewhere",
        lambda: ask("CREATE SCHEMA admin.bad WITH (location = 'file:///etc/x')"),
        "outside the catalog's allowed roots",
    )


def _views(checks: Checks, lake: Lake, ask: Ask) -> None:
    """Replace, rename and drop views, including nested ones; the error for a view in another dialect names it."""
    view = "admin.trino.v"
    ask(f"CREATE VIEW {view} AS SELECT id, city FROM admin.trino.t")
    replace = f"CREATE OR REPLACE VIEW {view} AS SELECT city FROM admin.trino.t WHERE id = 2"
    checks.expect("CREATE OR REPLACE VIEW", lambda: ask(replace) + ask(f"SELECT * FROM {view}"), [["Rome"]])
    ask('CREATE SCHEMA admin."trino.deep"')
    ask('CREATE TABLE admin."trino.deep".t AS SELECT 1 AS n')
    deep = 'CREATE VIEW admin."trino.deep".v AS SELECT n FROM admin."trino.deep".t'
    checks.expect("a deep view", lambda: ask(deep) + ask('SELECT * FROM admin."trino.deep".v'), [[1]])
    listed = "SELECT table_name FROM admin.information_schema.views WHERE table_schema = 'trino'"
    checks.expect("views are listed", lambda: ask(listed), [["v"]])
    make = "CREATE TABLE admin.trino.v (id bigint)"
    checks.expect_refusal("a table of a view's name", lambda: ask(make), "already exists")
    make_view(lake, "trino", "of_spark", dialect="spark", text="SELECT 1 AS id")
    checks.expect_refusal("a view in Spark's dialect", lambda: ask("SELECT * FROM admin.trino.of_spark"), "of_spark")
    checks.expect("rename a view", lambda: ask(f"ALTER VIEW {view} RENAME TO admin.trino.w"), [])
    checks.expect("it is read by its new name", lambda: ask("SELECT * FROM admin.trino.w"), [["Rome"]])
    checks.expect("DROP VIEW", lambda: ask("DROP VIEW admin.trino.w"), [])
