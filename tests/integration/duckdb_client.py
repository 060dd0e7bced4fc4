# SPDX-License-Identifier: Apache-2.0
"""DuckDB attached to the catalog of a real server; the extensions come from PyPI wheels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import duckdb

from tests.integration.live import LiveServer

EXTENSIONS = ("avro", "httpfs", "iceberg")


@contextmanager
def attached(
    server: LiveServer, *, catalog: str = "main", secret: str | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield DuckDB with a catalog of the server attached as `lake`, by the administrator's token or by a DuckDB
    secret.
    """
    # Nothing is downloaded at run time: the lock file pins the loaded extensions.
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        for name in EXTENSIONS:
            folder = files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
            connection.load_extension(str(folder / f"{name}.duckdb_extension"))
        options = f"TYPE iceberg, TOKEN '{server.token}'" if secret is None else secret
        connection.execute(f"CREATE SECRET admin ({options})")
        connection.execute(
            f"ATTACH '{catalog}' AS lake (TYPE iceberg, ENDPOINT '{server.uri}/iceberg', SECRET admin,"
            " ACCESS_DELEGATION_MODE 'none', SUPPORT_NESTED_NAMESPACES true)"
        )
        yield connection
