# SPDX-License-Identifier: Apache-2.0
"""Addresses of databases with tables of Iceberg's JDBC catalog, as Java, SQLAlchemy and people write them.

Pure. Without this, a password in a URL would be part of messages, and SQLite would create a database that is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import sqlalchemy as sa

from limnos.model.errors import BadRequest

FORMS: Final = "write postgresql://USER@HOST:5432/DATABASE or sqlite:////DIRECTORY/FILE, also with jdbc: before it"
_POSTGRESQL: Final = ("postgresql", "postgres")
_PASSED: Final = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs"})
"""Parameters that libpq has under the same name."""
_OWN: Final = frozenset({"user", "password", "ssl", "currentSchema", "host"})
"""Parameters that are read here; `host` is the directory of a Unix socket."""
_PORT: Final = 5432


class CatalogDatabase(NamedTuple):
    """A database: the URL for SQLAlchemy, arguments of its driver, and the address for messages."""

    url: sa.URL
    arguments: dict[str, object]
    label: str

    def __repr__(self) -> str:
        return f"CatalogDatabase({self.label})"


def parse_database(text: str, *, password: str | None = None) -> CatalogDatabase:
    """Parse the address of a database.

    Args:
        text: A JDBC URL of PostgreSQL or SQLite, or a URL of SQLAlchemy.
        password: The password, if the address has none.

    Raises:
        BadRequest: The address has another form; the message repeats no part of it that may be a secret.
    """
    address = text.removeprefix("jdbc:")
    scheme = address.partition(":")[0].partition("+")[0].lower()
    if scheme == "sqlite":
        return _sqlite(address.partition(":")[2])
    if scheme in _POSTGRESQL:
        return _postgresql(address, password)
    raise BadRequest(f"The address of the catalog's database is not one of PostgreSQL or SQLite: {FORMS}")


def _sqlite(rest: str) -> CatalogDatabase:
    path = rest.removeprefix("///") if rest.startswith("///") else rest
    if rest.startswith("//") and not rest.startswith("///"):
        raise BadRequest(f"The address of an SQLite database names no host: {FORMS}")
    if path.startswith("file:"):
        path = unquote(path.removeprefix("file:").partition("?")[0])
        path = "/" + path.lstrip("/") if path.startswith("//") else path
    path = path.partition("?")[0]
    if not path or path == ":memory:" or "\0" in path:
        raise BadRequest(f"The address of the SQLite database names no file: {FORMS}")
    file = Path(path).absolute()
    if not file.is_file():
        raise BadRequest(f"There is no SQLite database {file}: check the path")
    url = sa.URL.create("sqlite", database=f"file:{quote(str(file))}", query={"mode": "rw", "uri": "true"})
    return CatalogDatabase(url, {}, f"sqlite:///{file}")


def _postgresql(text: str, password: str | None) -> CatalogDatabase:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadRequest(
            f"The address of the catalog's database is not a URL of one host and one port: {FORMS}"
        ) from None
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    if further := sorted(set(parameters) - _PASSED - _OWN):
        raise BadRequest(
            f"The address of the catalog's database has the parameter {further[0][:60]!r}: supported are"
            f" {', '.join(sorted(_PASSED | _OWN))}"
        )
    database = unquote(parts.path.strip("/"))
    host = host or parameters.get("host")
    if not host or not database:
        raise BadRequest(f"The address of the catalog's database names no host, or no database: {FORMS}")
    arguments: dict[str, object] = {name: value for name, value in parameters.items() if name in _PASSED}
    if parameters.get("ssl", "false").lower() == "true":
        arguments.setdefault("sslmode", "require")
    if schema := parameters.get("currentSchema"):
        arguments["options"] = f"-c search_path={_escape(schema)}"
    user = unquote(parts.username) if parts.username else parameters.get("user")
    secret = unquote(parts.password) if parts.password else parameters.get("password") or password
    url = sa.URL.create("postgresql+psycopg", user, secret, host, port or _PORT, database)
    bracketed_host = f"[{host}]" if ":" in host else host
    return CatalogDatabase(url, arguments, f"postgresql://{bracketed_host}:{port or _PORT}/{database}")


def _escape(schema: str) -> str:
    """Return a value of libpq's `options`, in which spaces and backslashes are escaped."""
    return schema.replace("\\", "\\\\").replace(" ", "\\ ")
