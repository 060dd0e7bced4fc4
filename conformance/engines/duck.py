# SPDX-License-Identifier: Apache-2.0
"""DuckDB with the extensions of the lock file, on the local warehouse.

May import this package's checks and DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import duckdb

from conformance.engines.checks import Check, Checks, Lake
from conformance.engines.page import block
from conformance.engines.views import make_view

_EXTENSIONS = ("avro", "httpfs", "iceberg")


def run(lake: Lake) -> list[Check]:
    """Create a table in every way as the admin; then read as the reader."""
    checks = Checks(f"DuckDB {duckdb.__version__}")
    with attached(lake.iceberg, lake.admin) as duck:
        ask = lambda text: duck.execute(text).fetchall()  # noqa: E731 - short, and used often
        ask("CREATE SCHEMA lake.duck")
        checks.expect(
            "CREATE TABLE AS", lambda: ask("CREATE TABLE lake.duck.c AS SELECT 1 AS id, 'Oslo' AS city"), [(1,)]
        )
        checks.expect("SELECT", lambda: ask("SELECT id, city FROM lake.duck.c"), [(1, "Oslo")])
        checks.expect("create and insert in one transaction", lambda: _together(duck), [(2,)])
        checks.expect("two tables in one transaction", lambda: _two(duck), [(1, 1)])
        checks.expect("a rolled back CREATE TABLE AS leaves no table", lambda: _rolled_back(duck), [(0,)])
        _views(checks, lake, duck)
        checks.expect("DROP TABLE", lambda: [ask(f"DROP TABLE lake.duck.{name}") for name in "ct"], [[], []])
    with attached(lake.iceberg, lake.reader) as duck:
        checks.expect("a reader selects", lambda: duck.execute("SELECT count(*) FROM lake.open.t").fetchall(), [(2,)])
        checks.expect_refusal(
            "a reader may not write", lambda: duck.execute("INSERT INTO lake.open.t VALUES (3, 'x')"), "MODIFY_TABLE"
        )
        checks.expect(
            "a reader finds a nested schema by its parent", lambda: _schemas(duck), ["open", "outer", "outer.inner"]
        )
    return checks.made


def _schemas(duck: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the schemas of the catalog that DuckDB lists."""
    rows = duck.execute("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake' ORDER BY 1").fetchall()
    return [name for (name,) in rows]


def _views(checks: Checks, lake: Lake, duck: duckdb.DuckDBPyConnection) -> None:
    """Check that DuckDB, which has no views over Iceberg REST yet, creates and lists none, reports that, and damages
    none.
    """
    for dialect in ("spark", "duckdb"):
        make_view(lake, "duck", f"of_{dialect}", dialect=dialect, text="SELECT id FROM lake.duck.c")
        read = f"SELECT * FROM lake.duck.of_{dialect}"
        checks.expect_refusal(
            f"a view with a text for {dialect}", lambda read=read: duck.execute(read), "does not exist"
        )  # type: ignore[misc]
    make = "CREATE VIEW lake.duck.v AS SELECT id FROM lake.duck.c"
    checks.expect_refusal("CREATE VIEW", lambda: duck.execute(make), "Not implemented Error: Create View")
    checks.expect_refusal(
        "a table of a view's name",
        lambda: duck.execute("CREATE TABLE lake.duck.of_spark (id BIGINT)"),
        "already exists",
    )
    duck.execute("CREATE VIEW memory.main.v AS SELECT id FROM lake.duck.c")
    checks.expect(
        "a view of its own over a table", lambda: duck.execute("SELECT * FROM memory.main.v").fetchall(), [(1,)]
    )


def _together(duck: duckdb.DuckDBPyConnection) -> object:
    duck.execute("BEGIN; CREATE TABLE lake.duck.t (id BIGINT); INSERT INTO lake.duck.t VALUES (1), (2); COMMIT")
    return duck.execute("SELECT count(*) FROM lake.duck.t").fetchall()


def _two(duck: duckdb.DuckDBPyConnection) -> object:
    duck.execute("CREATE TABLE lake.duck.a (id BIGINT); CREATE TABLE lake.duck.b (id BIGINT)")
    duck.execute("BEGIN; INSERT INTO lake.duck.a VALUES (1); INSERT INTO lake.duck.b VALUES (1); COMMIT")
    return duck.execute("SELECT (SELECT count(*) FROM lake.duck.a), (SELECT count(*) FROM lake.duck.b)").fetchall()


def _rolled_back(duck: duckdb.DuckDBPyConnection) -> object:
    duck.execute("BEGIN; CREATE TABLE lake.duck.r AS SELECT 1 AS id; ROLLBACK")
    return duck.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake' AND schema_name = 'duck' AND table_name"
        " = 'r'"
    ).fetchall()


@contextmanager
def attached(
    uri: str, token: str, *, catalog: str = "main", section: str = "DuckDB"
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB with a catalog attached as `lake`; nothing is downloaded at run time."""
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        for name in _EXTENSIONS:
            folder = files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
            connection.load_extension(str(folder / f"{name}.duckdb_extension"))
        connection.execute(block(section, uri=uri, token=token, catalog=catalog))
        yield connection
