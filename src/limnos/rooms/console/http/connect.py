# SPDX-License-Identifier: Apache-2.0
"""Code snippets that open an object: one for each client, with this server's URL and the object's name.

A snippet contains no secret: it reads its token from the environment. The texts are files in `snippets/`. Commands
quote names for the shell: a name may contain anything.
"""

from __future__ import annotations

import shlex
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from limnos.model.extras import install_hint
from limnos.names import display
from limnos.names.path import Levels
from limnos.names.sqlpp import identifier
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.page_requests import PageRequest

ICEBERG_CLIENTS: Final = {
    "pyiceberg": "PyIceberg",
    "spark": "Spark",
    "duckdb": "DuckDB",
    "trino": "Trino",
    "sqlpp": "SQL++",
    "limnos": "Command line",
}
_DUCKDB_DATABASES: Final = frozenset({"main", "memory", "system", "temp"})
RESTRICTED_READERS: Final = ("pyiceberg", "spark", "limnos")
"""The clients that read a restricted table; the others plan all scans themselves."""
LANCE_CLIENTS: Final = {"lancedb": "LanceDB", "limnos": "Command line"}


class Snippet(msgspec.Struct, frozen=True):
    """A code snippet that opens an object in one client; with `note`, why this server has no use for it."""

    id: str
    client: str
    text: str
    note: str = ""


@cache
def _text(name: str) -> str:
    return (files("limnos.rooms.console.http") / "snippets" / f"{name}.txt").read_text(encoding="utf-8")


def snippets_of(
    page_request: PageRequest, address: ObjectAddress, *, is_lance: bool = False, is_restricted: bool = False
) -> tuple[Snippet, ...]:
    """Return the snippets that open an object, one for each client that reads its format, and a restricted table."""
    clients = LANCE_CLIENTS if is_lance else ICEBERG_CLIENTS
    words = _words(page_request, address)
    has_sqlpp = sqlpp_query(page_request, address) != ""
    return tuple(
        Snippet(name, title, "", no_engine_text())
        if name == "sqlpp" and not page_request.site.has_engine
        else Snippet(name, title, _fill_placeholders(_text(name), words))
        for name, title in clients.items()
        if (has_sqlpp or name != "sqlpp") and (not is_restricted or name in RESTRICTED_READERS)
    )


def no_engine_text() -> str:
    """Return what an operator does on a server that has no engine for statements over data."""
    return (
        "This server has no engine for statements over data: its administrator installs the extra with"
        f" {install_hint('spark')}, and starts it again."
    )


def sqlpp_query(page_request: PageRequest, address: ObjectAddress) -> str:
    """Return a statement of SQL++ that reads a table; empty if statements of this server cannot refer to the table.

    Names in statements begin below the catalog of the setting `sqlpp.catalog`, and no statement reads another catalog.
    """
    defaults = page_request.ctx.services.defaults
    if not page_request.site.has_sqlpp or address.scope != (defaults.metalake, defaults.sqlpp_catalog):
        return ""
    return select_text(address.levels)


def select_text(levels: Levels) -> str:
    """Return the statement of SQL++ that reads up to ten objects of a table. Each level is an identifier of its own."""
    return f"SELECT VALUE t FROM {'.'.join(map(identifier, levels))} AS t LIMIT 10;"  # noqa: S608 - shown, not run


def _fill_placeholders(text: str, words: dict[str, str]) -> str:
    """Replace the placeholders of a snippet, such as `@URI@`, with their values in one pass."""
    parts = text.split("@")
    return "".join(words.get(part, f"@{part}@") if number % 2 else part for number, part in enumerate(parts))


def _words(page_request: PageRequest, address: ObjectAddress) -> dict[str, str]:
    levels, parts = address.levels, (address.catalog, *address.levels)
    name = ".".join(_sql(part, "`") for part in parts)
    origin = page_request.site.own_origin(page_request.request.headers) + page_request.site.prefix
    return {
        "URI": origin,
        "METALAKE": address.metalake,
        "CATALOG": address.catalog,
        "CATALOG_SQL": _sql(address.catalog, "`"),
        "LEVELS": ", ".join(msgspec.json.encode(level).decode() for level in levels),
        "ATTACH_DUCKDB": _python(_duckdb_attach(address, f"{origin}/iceberg")),
        "SELECT_DUCKDB": _python(f"SELECT * FROM {_duckdb_name(address)} LIMIT 10"),  # noqa: S608 - shown, not run
        "NAME_TRINO": (
            f"{_sql(address.catalog, chr(34))}.{_sql('.'.join(levels[:-1]), chr(34))}.{_sql(address.name, chr(34))}"
        ),
        "WAREHOUSE": f"{address.metalake}/{address.catalog}",
        "NAME_SHELL": shlex.quote(display.render(parts)),
        "SELECT_SHELL": shlex.quote(f"SELECT * FROM {name} LIMIT 10;"),  # noqa: S608 - shown, not run
        "SELECT_VALUE_SHELL": shlex.quote(select_text(levels)),
    }


def _python(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _duckdb_alias(catalog: str) -> str:
    """Return the name of an attached catalog: its own, unless DuckDB has a database of that name."""
    return _sql(f"{catalog}_lake" if catalog.lower() in _DUCKDB_DATABASES else catalog, '"')


def _duckdb_attach(address: ObjectAddress, endpoint: str) -> str:
    warehouse = f"{address.metalake}/{address.catalog}".replace("'", "''")
    return (
        f"ATTACH '{warehouse}' AS {_duckdb_alias(address.catalog)} (TYPE iceberg, SECRET lake, ENDPOINT '{endpoint}',"
        " ACCESS_DELEGATION_MODE 'none', SUPPORT_NESTED_NAMESPACES true)"
    )


def _duckdb_name(address: ObjectAddress) -> str:
    namespace = ".".join(address.levels[:-1])
    return f"{_duckdb_alias(address.catalog)}.{_sql(namespace, chr(34))}.{_sql(address.name, chr(34))}"


def _sql(name: str, mark: str) -> str:
    """Quote an identifier for SQL with the quote character `mark`, which is doubled inside the name."""
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"
