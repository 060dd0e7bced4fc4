# SPDX-License-Identifier: Apache-2.0
"""The base classes of connectors that other packages bring by the entry point `limnos.connectors`.

A connector shows an external system as a catalog. It implements the protocols of `capabilities` that fit the system:
callers test for them, and answer 405 for what is missing. Calls block, run in a thread of the catalog, and should end
within `timeout_s`. They raise the errors of `limnos.model.errors`; nothing they return is cached. Every other
exception, also a SystemExit or a panic of a library in Rust, is answered 502 (500 for a change), with its traceback in
the log.

`Levels` are the names of a path as a tuple of texts, such as `("sales",)`: a schema is a tuple of one name, since
schemas of such catalogs do not nest. A name is listed as it is in the source. Leave out names that the server cannot
show: empty ones, `.` and `..`, control characters, more than 255 bytes of UTF-8; a schema whose name has the namespace
separator of the server (by default `:`) is left out of lists by Gravitino REST.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.model.errors import UnsupportedOperation
from limnos.names.path import Levels
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo


class Connector:
    """A connector of another package: one catalog of a provider, with its connections.

    Each process of the server has one instance for a catalog, from its first use until its properties change, 256 other
    catalogs were used later, or the server stops. Up to four threads call it at the same time.
    """

    catalog_type: ClassVar[str] = "RELATIONAL"
    """Gravitino's type of its catalogs: `RELATIONAL` for schemas with tables, `MESSAGING` for schemas with topics."""

    def __init__(self, properties: Mapping[str, str], *, timeout_s: float) -> None:
        """Store the catalog's properties, which have been checked, with secrets in clear text. Must not connect: the
        thread that serves all requests calls it.
        """
        self.properties = properties
        self.timeout_s = timeout_s

    @classmethod
    def check_properties(cls, properties: Mapping[str, str], *, addresses: Collection[str]) -> None:
        """Check the properties of a catalog. Whoever may create catalogs chooses them, so a connector must refuse what
        the server's operator has not allowed: hosts that are not among `addresses` (the setting
        `sources.allowed_addresses`), files, programs. No setting for files is passed on: read an environment variable
        of your own. Ignore properties that you do not know; clients add some. Raises BadRequest.

        The server calls it for a create, for a change, and before it opens a connector, in the thread that serves all
        requests: use no file and no network here. Compare paths as texts, and resolve links in the methods that the
        catalog's threads call. Values of properties whose names have a word such as `password`, `token`, `secret`,
        `key` or `credential`, and passwords in URLs, are encrypted in the store and masked in answers. Other values are
        shown to the catalog's owner, so a password inside another text (`dsn=…`) is no secret.
        """
        del properties, addresses
        raise UnsupportedOperation("This connector does not check the properties of catalogs, so none can be created")

    def check(self) -> None:
        """Check that the source answers. Raises SourceFailed, or BadRequest for properties that the source rejects.

        Write it: this one accepts every source. Only a test of the connection calls it, in a thread of its own: a
        catalog of a source that does not answer can be created.
        """

    def close(self) -> None:
        """Close the connections. Calls in progress may still finish. May be called twice."""


class ReadOnlyTables(Connector):
    """A connector of schemas and tables that are only read. `check_properties`, `check` and six methods are to be
    written. Threads of the catalog call these methods, up to four at a time; `check_properties` and the constructor
    run in the thread that serves all requests.
    """

    def schema_names(self, parent: Levels) -> list[str]:
        """Return the sorted names of the schemas. `parent` is empty for the top level, the only one that the server
        sends; in a schema there are none, so raise NotFound for it.
        """
        raise _unwritten("schema_names")

    def schema_exists(self, schema: Levels) -> bool:
        """Return whether the source has a schema."""
        raise _unwritten("schema_exists")

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Return a schema's comment and properties. Raises NotFound."""
        raise _unwritten("schema_load")

    def table_names(self, schema: Levels) -> list[str]:
        """Return the sorted names of all tables of a schema, also of those that cannot be read. Raises NotFound for the
        schema.
        """
        raise _unwritten("table_names")

    def table_exists(self, schema: Levels, table: str) -> bool:
        """Return whether the source has a table."""
        raise _unwritten("table_exists")

    def table_load(self, schema: Levels, table: str) -> SourceTableInfo:
        """Return a table's columns in Gravitino's JSON, and its properties. Raises NotFound, and InvalidTable if the
        table is there but its metadata is missing or malformed.
        """
        raise _unwritten("table_load")

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Refuse: the source is only read."""
        raise _read_only()

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Refuse: the source is only read."""
        raise _read_only()

    def schema_drop(self, schema: Levels) -> None:
        """Refuse: the source is only read."""
        raise _read_only()

    def table_create(self, schema: Levels, table: str, *, definition: GravitinoCreate) -> None:
        """Refuse: the source is only read."""
        raise _read_only()

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[TableChange]) -> None:
        """Refuse: the source is only read."""
        raise _read_only()

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Refuse: the source is only read."""
        raise _read_only()

    def table_drop(self, schema: Levels, table: str, *, purge: bool) -> None:
        """Refuse: the source is only read."""
        raise _read_only()


def _read_only() -> UnsupportedOperation:
    return UnsupportedOperation("The external system of this catalog is only read here: change it there")


def _unwritten(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(f"This connector has no {name}")
