# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables of a Hive metastore, by the parameter `metadata_location` of its tables.

Must not know Hive's own tables beyond their type. Changes take the metastore's lock on the table, as commits of Iceberg
do, and name the metadata file that the metastore must still have, which releases from 2.3.10 and 4.0 on compare
themselves.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    CheckLockRequest,
    EnvironmentContext,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    Table,
    UnlockRequest,
)
from thrift.Thrift import TApplicationException, TException

from limnos.model.errors import AlreadyExists, CommitConflict, InvalidTable, UnsupportedOperation
from limnos.names.path import Levels
from limnos.sources.catalogs.entries import (
    ICEBERG,
    METADATA,
    PREVIOUS,
    TABLE_TYPE,
    CatalogEntry,
    EntryKind,
    quote_word,
)
from limnos.sources.catalogs.metastore_connections import MetastoreConnections
from limnos.sources.catalogs.metastore_errors import MISSING
from limnos.sources.connectors.addresses import metastore_addresses

BATCH: Final = 100
"""The number of tables that are read by one call: a table of Hive may have thousands of columns."""
WITHOUT_METADATA: Final = f"the metastore has no {METADATA} of it"
LOCK_WAIT_S: Final = 20.0
LOCK_PAUSE_S: Final = 0.2
_VIEW: Final = "iceberg-view"
_VIEWS: Final = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")
_EXTERNAL: Final = "EXTERNAL_TABLE"
_LOCKS: Final = "engine.hive.lock-enabled"
"""The property of a table whose writers take no lock."""
_EXPECTED: Final = ("expected_parameter_key", "expected_parameter_value")
_KEEPS_STATISTICS: Final = ("DO_NOT_UPDATE_STATS", "true")


class HiveCatalog:
    """The databases of a metastore. Raises BadRequest for an address that is none; connects with the first call."""

    def __init__(self, uri: str, *, timeout_s: float) -> None:
        addresses = metastore_addresses(uri, name="URL")
        self.label = ",".join(f"thrift://{each}" for each in addresses)
        self._connections = MetastoreConnections(addresses, timeout_s=timeout_s)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def namespaces(self) -> list[Levels]:
        """Return the databases, sorted."""
        with self._connections.open_client("the metastore", kind="namespace") as client:
            return sorted((name,) for name in client.get_all_databases())

    def namespace_properties(self, namespace: Levels) -> dict[str, str]:
        """Return a database's parameters, location, and description."""
        with self._connections.open_client(f"Database {namespace[-1]}", kind="namespace") as client:
            database = client.get_database(namespace[-1])
        properties = {str(key): str(value) for key, value in (database.parameters or {}).items()}
        if database.locationUri:
            properties["location"] = database.locationUri
        if database.description:
            properties.setdefault("comment", database.description)
        return properties

    def names(self, namespace: Levels) -> list[tuple[str, EntryKind]]:
        """Return the names in a database; those of Hive's own tables and views are of the kind `other`."""
        return [(name, entry.kind) for name, entry in self.entries(namespace)]

    def entries(self, namespace: Levels) -> list[tuple[str, CatalogEntry]]:
        """Return the names in a database with their entries, sorted; the location of a metadata file that the metastore
        does not have is empty. Raises NotFound.
        """
        about = f"Database {namespace[-1]}"
        with self._connections.open_client(about, kind="namespace") as client:
            client.get_database(namespace[-1])  # the list of a database that is missing is empty
            names = sorted(client.get_all_tables(namespace[-1]))
        entries: list[tuple[str, CatalogEntry]] = []
        for start in range(0, len(names), BATCH):
            with self._connections.open_client(about, kind="namespace") as client:
                tables = client.get_table_objects_by_name(namespace[-1], names[start : start + BATCH])
            entries += [(each.tableName, _entry_of(each)) for each in tables]
        return sorted(entries)

    def entry(self, path: Levels) -> CatalogEntry:
        """Read a table's parameters."""
        with self._connections.open_client(f"Table {path[-1]}", kind="table") as client:
            try:
                table = client.get_table(path[0], path[-1])
            except MetaException as error:
                raise InvalidTable(f"the metastore fails on it: {quote_word(str(error.message))}") from error
        entry = _entry_of(table)
        if entry.kind != "other" and not entry.metadata_location:
            raise InvalidTable(WITHOUT_METADATA)
        return entry

    def replace(self, path: Levels, location: str, *, expected: str, properties: Mapping[str, str]) -> None:
        """Set the parameters of a table under its lock. Raises UnsupportedOperation if the metastore gives no locks."""
        with self._lock_table(path) as (client, table):
            parameters = dict(table.parameters or {})
            if parameters.get(METADATA) != expected:
                raise CommitConflict("another client committed to it meanwhile")
            table.parameters = {**parameters, **properties, METADATA: location, PREVIOUS: expected}
            _alter(client, path, table=table, expected=expected)

    def retire(self, path: Levels, *, name: str) -> str:
        """Rename a table under its lock. Raises UnsupportedOperation for a table whose files the metastore would
        move.
        """
        with self._lock_table(path) as (client, table):
            parameters = dict(table.parameters or {})
            if table.tableType != _EXTERNAL or parameters.get("EXTERNAL", "").upper() != "TRUE":
                raise UnsupportedOperation(
                    "it is a managed table, whose files the metastore moves at a rename: use --cut-over mark"
                )
            with suppress(*MISSING):
                client.get_table(path[0], name)
                raise AlreadyExists(f"{name} already exists there", kind="table")
            table.tableName = name
            _alter(client, path, table=table, expected=parameters.get(METADATA, ""))
        return name

    @contextmanager
    def _lock_table(self, path: Levels) -> Iterator[tuple[Client, Table]]:
        """Yield a client and a table under an exclusive lock, which other clients' commits wait for."""
        about = f"Table {path[-1]}"
        with self._connections.open_client(about, kind="table", changes=True) as client:
            table = client.get_table(path[0], path[-1])
            if (table.parameters or {}).get(_LOCKS, "").lower() == "false":
                yield client, table
                return
            lock = _take_lock(client, path)
            try:
                yield client, client.get_table(path[0], path[-1])
            finally:
                with suppress(TException, OSError):  # the metastore ends the lock by itself
                    client.unlock(UnlockRequest(lock))


def _take_lock(client: Client, path: Levels) -> int:
    part = LockComponent(
        level=LockLevel.TABLE, type=LockType.EXCLUSIVE, dbname=path[0], tablename=path[-1], isTransactional=True
    )
    try:
        lock = client.lock(LockRequest(component=[part], user="limnos", hostname=socket.gethostname()))
    except (TApplicationException, MetaException) as error:
        raise UnsupportedOperation(
            "the metastore gives no locks, without which a commit of another client could be lost: stop the table's"
            " writers, or drop it there without purge"
        ) from error
    until = time.monotonic() + LOCK_WAIT_S
    while lock.state == LockState.WAITING and time.monotonic() < until:
        time.sleep(LOCK_PAUSE_S)
        lock = client.check_lock(CheckLockRequest(lock.lockid))
    if lock.state != LockState.ACQUIRED:
        with suppress(TException, OSError):
            client.unlock(UnlockRequest(lock.lockid))
        raise CommitConflict("another client has a lock on it: run the command again")
    return int(lock.lockid)


def _alter(client: Client, path: Levels, *, table: Table, expected: str) -> None:
    conditions = {_EXPECTED[0]: METADATA, _EXPECTED[1]: expected, _KEEPS_STATISTICS[0]: _KEEPS_STATISTICS[1]}
    try:
        client.alter_table_with_environment_context(path[0], path[-1], table, EnvironmentContext(conditions))
    except MetaException as error:
        if "has been modified" in str(error.message):
            raise CommitConflict("another client committed to it meanwhile") from error
        raise


def _entry_of(table: Table) -> CatalogEntry:
    kind = _kind_of(table)
    if kind == "other":
        return CatalogEntry(kind, note=_note(table))
    return CatalogEntry(kind, (table.parameters or {}).get(METADATA) or "")


def _kind_of(table: Table) -> EntryKind:
    word = str((table.parameters or {}).get(TABLE_TYPE, "")).lower()
    if word == _VIEW:
        return "view"
    return "table" if word == ICEBERG and table.tableType not in _VIEWS else "other"


def _note(table: Table) -> str:
    if table.tableType in _VIEWS:
        return "a view of Hive"
    serde = getattr(getattr(table.sd, "serdeInfo", None), "serializationLib", None) or ""
    library = quote_word(serde.rpartition(".")[2])
    return f"a table of Hive{f' ({library})' if library else ''}"
