# SPDX-License-Identifier: Apache-2.0
"""A Hive metastore as a catalog, over its Thrift interface: its databases are schemas.

Must not know callers. Names are matched exactly as the metastore stores them, in lower case, since rights belong to
exact names. Views are hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final, NamedTuple

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import Database, EnvironmentContext, Table
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import AlreadyExists, LimnosError, NotFound, UnsupportedOperation
from limnos.names.path import Levels
from limnos.rooms.connectors.sources import metastore_tables
from limnos.rooms.connectors.sources.addresses import SourceAddress
from limnos.rooms.connectors.sources.metastore_errors import MISSING, REFUSALS, translate_metastore_errors
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo

IDLE_MAX: Final = 4
ANSWER_BYTES_MAX: Final = 64 << 20
"""The maximum number of bytes that are read for one call, so that a faulty source cannot exhaust the memory."""
_ITEMS_MAX: Final = 1_000_000
"""The maximum number of items of a list in a response."""
_LOCATION: Final = "location"
_READ_TO_END: Final = (LimnosError, TApplicationException, *REFUSALS)
"""Errors after which the last response on a connection was read completely."""


class _BoundedSocket(TSocket):  # type: ignore[misc]  # the library has no types
    """A socket that reads at most ANSWER_BYTES_MAX bytes until the next call of `begin`, so that a response cannot
    exhaust the memory.
    """

    left = ANSWER_BYTES_MAX

    def begin(self) -> None:
        """Reset the byte counter before a call."""
        self.left = ANSWER_BYTES_MAX

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes. Raises TTransportException if the response exceeds the limit."""
        data: bytes = super().read(size)
        self.left -= len(data)
        if self.left < 0:
            raise TTransportException(TTransportException.SIZE_LIMIT, f"more than {ANSWER_BYTES_MAX} bytes")
        return data


class _ThriftConnection(NamedTuple):
    socket: _BoundedSocket
    transport: TBufferedTransport
    client: Client


class MetastoreSource:
    """A connector for a Hive metastore, which uses the first of the given addresses that responds."""

    def __init__(self, addresses: Sequence[SourceAddress], *, timeout_s: float) -> None:
        self._addresses = addresses
        self._late_ms = max(50, int(timeout_s * 800 / max(1, len(addresses))))
        self._lock = Lock()
        self._idle: list[_ThriftConnection] = []
        self._closed = False

    def check(self) -> None:
        """List the databases, which shows that the metastore responds."""
        with self._open_client("the metastore", kind="namespace") as client:
            client.get_all_databases()

    def close(self) -> None:
        """Close idle connections now, and connections in use after their call."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for each in idle:
            each.transport.close()

    # -- schemas ---------------------------------------------------------------------------------------------------

    def schema_names(self, parent: Levels) -> list[str]:
        """Return the names of all databases, sorted. Raises UnsupportedOperation for a `parent`."""
        if parent:
            raise UnsupportedOperation("Schemas of this source do not nest")
        with self._open_client("the metastore", kind="namespace") as client:
            return sorted(client.get_all_databases())

    def schema_exists(self, schema: Levels) -> bool:
        """Return whether the metastore has a database of exactly this name."""
        try:
            self.schema_load(schema)
        except NotFound:
            return False
        return True

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Return a database's description and parameters, with its location as a property. Raises NotFound."""
        with self._open_client(_schema(schema), kind="namespace") as client:
            database = _database(client, schema)
        place = {_LOCATION: database.locationUri} if database.locationUri else {}
        return SourceSchemaInfo(database.description or None, {**(database.parameters or {}), **place})

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Create a database in the directory that the metastore chooses. Raises AlreadyExists, BadRequest for a name in
        upper case, and UnsupportedOperation for a location.
        """
        _refuse_location(properties)
        single = metastore_tables.name_of(_single(schema), what="Schema")
        with self._open_client(_schema(schema), kind="namespace", changes=True) as client:
            client.create_database(Database(name=single, description=comment or "", parameters=properties))

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Set and remove a database's parameters. Raises NotFound, and UnsupportedOperation for a change of the
        location.
        """
        _refuse_location({**sets, **dict.fromkeys(removes, "")})
        with self._open_client(_schema(schema), kind="namespace", changes=True) as client:
            database = _database(client, schema)
            entries = {key: value for key, value in (database.parameters or {}).items() if key not in removes}
            database.parameters = {**entries, **sets}
            client.alter_database(database.name, database)

    def schema_drop(self, schema: Levels) -> None:
        """Drop an empty database; the metastore itself checks that it is empty."""
        with self._open_client(_schema(schema), kind="namespace", changes=True) as client:
            database = _database(client, schema)
            client.drop_database(database.name, True, False)

    # -- tables ----------------------------------------------------------------------------------------------------

    def table_names(self, schema: Levels) -> list[str]:
        """Return the names of a database's tables, without views, sorted. Raises NotFound for the database."""
        with self._open_client(_schema(schema), kind="namespace") as client:
            single = _database(client, schema).name
            views = {name for kind in metastore_tables.VIEWS for name in _of_type(client, single, kind=kind)}
            return sorted(name for name in client.get_all_tables(single) if name not in views)

    def table_exists(self, schema: Levels, table: str) -> bool:
        """Return whether a database has a table of exactly this name; False for a view."""
        try:
            self.table_load(schema, table)
        except NotFound:
            return False
        return True

    def table_load(self, schema: Levels, table: str) -> SourceTableInfo:
        """Read a table with its columns and partitioning from the Hive metastore. Raises NotFound."""
        with self._open_client(_table(table), kind="table") as client:
            return metastore_tables.source_table_of(_get_table(client, schema, table=table))

    def table_create(self, schema: Levels, table: str, *, definition: GravitinoCreate) -> None:
        """Create a table in the directory of its database. Raises AlreadyExists, NotFound for the database, BadRequest
        for an invalid definition.
        """
        result = metastore_tables.table_of(_single(schema), table, definition=definition)
        with self._open_client(_schema(schema), kind="namespace") as client:
            _database(client, schema)
        with self._open_client(_table(table), kind="table", changes=True) as client:
            client.create_table(result)

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[TableChange]) -> None:
        """Apply all changes to a table's definition by one `alter_table` call. Raises NotFound, BadRequest for an
        invalid change, UnsupportedOperation for a change that Hive lacks.
        """
        with self._open_client(_table(table), kind="table", changes=True) as client:
            result = _get_table(client, schema, table=table)
            metastore_tables.alter_table(result, changes)
            client.alter_table(result.dbName, result.tableName, result)

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Rename a table, also into another database. The metastore moves the files of a managed table. Raises
        NotFound, AlreadyExists, BadRequest for a name in upper case.
        """
        name = metastore_tables.name_of(target[-1], what="Table")
        with self._open_client(_schema(target[:-1]), kind="namespace") as client:
            into = _database(client, target[:-1]).name
        with self._open_client(_table(name), kind="table", changes=True) as client:
            result = _get_table(client, schema, table=table)
            was = (result.dbName, result.tableName)
            if _has(client, into, table=name):
                raise AlreadyExists(f"{_table(name)} already exists in the source", kind="table")
            result.dbName, result.tableName = into, name
            client.alter_table(*was, result)

    def table_drop(self, schema: Levels, table: str, *, purge: bool) -> None:
        """Drop a table.

        The files of a managed table are deleted; `purge` bypasses Hadoop's trash. The files of an external table stay,
        and `purge` then raises UnsupportedOperation.
        """
        with self._open_client(_table(table), kind="table", changes=True) as client:
            result = _get_table(client, schema, table=table)
            external = result.tableType == metastore_tables.EXTERNAL
            if purge and external:
                raise UnsupportedOperation(
                    f"Table {preview_value(table)} is external: the source may not purge its files"
                )
            words = EnvironmentContext({"ifPurge": "TRUE"}) if purge else None
            client.drop_table_with_environment_context(result.dbName, result.tableName, not external, words)

    # -- connections -----------------------------------------------------------------------------------------------

    @contextmanager
    def _open_client(self, about: str, *, kind: str, changes: bool = False) -> Iterator[Client]:
        """Yield a client for one call. A connection is reused only if its last response was read completely."""
        with translate_metastore_errors(about, kind=kind):
            connection = self._taken()
            connection.socket.begin()
        reusable = False
        try:
            with translate_metastore_errors(about, kind=kind, changes=changes):
                try:
                    yield connection.client
                except _READ_TO_END:
                    reusable = True
                    raise
                reusable = True
        finally:
            if reusable:
                self._give_back(connection)
            else:
                connection.transport.close()

    def _taken(self) -> _ThriftConnection:
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                return self._opened()
            try:
                idle.client.get_config_value("hive.metastore.uris", "")
            except (TException, OSError) as error:
                idle.transport.close()
                if isinstance(error, TTransportException) and error.type == TTransportException.TIMED_OUT:
                    raise  # a new connection would time out, too; other errors mean that this one is broken
            else:
                return idle

    def _opened(self) -> _ThriftConnection:
        for position, address in enumerate(self._addresses):
            socket = _BoundedSocket(address.host.strip("[]"), address.port)
            socket.setTimeout(self._late_ms)
            transport = TBufferedTransport(socket)
            protocol = TBinaryProtocolAccelerated(
                transport, string_length_limit=ANSWER_BYTES_MAX, container_length_limit=_ITEMS_MAX
            )
            try:
                transport.open()
            except (TException, OSError):
                transport.close()
                if position + 1 == len(self._addresses):
                    raise
            else:
                return _ThriftConnection(socket, transport, Client(protocol))
        raise TTransportException(TTransportException.NOT_OPEN, "no address")

    def _give_back(self, connection: _ThriftConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        connection.transport.close()


def _single(schema: Levels) -> str:
    """Return the single name of a schema. Raises NotFound for a nested name."""
    if len(schema) != 1:
        raise NotFound(
            f"Schemas of this source do not nest: {preview_value(schema[0])} cannot contain schemas", kind="namespace"
        )
    return schema[0]


def _schema(schema: Levels) -> str:
    return f"Schema {preview_value('.'.join(schema))}"


def _table(table: str) -> str:
    return f"Table {preview_value(table)}"


def _refuse_location(properties: Mapping[str, str]) -> None:
    if _LOCATION in properties:
        raise UnsupportedOperation("The metastore chooses the directory of a schema: leave location out")


def _database(client: Client, schema: Levels) -> Database:
    """Return a database by its exact stored name. Raises NotFound."""
    single = _single(schema)
    if not metastore_tables.is_name(single):
        raise NotFound(f"{_schema(schema)} does not exist in the source, where names are lower case", kind="namespace")
    try:
        return client.get_database(single)
    except MISSING:
        raise NotFound(f"{_schema(schema)} does not exist in the source", kind="namespace") from None


def _get_table(client: Client, schema: Levels, *, table: str) -> Table:
    """Return a table by its exact stored name. Raises NotFound, also for a view."""
    single = _single(schema)
    if metastore_tables.is_name(single) and metastore_tables.is_name(table):
        try:
            result = client.get_table(single, table)
        except MISSING:
            _database(client, schema)  # raises NotFound for the schema if that is missing
        else:
            if result.tableType not in metastore_tables.VIEWS:
                return result
    raise NotFound(f"{_table(table)} does not exist in the source", kind="table")


def _has(client: Client, schema: str, *, table: str) -> bool:
    try:
        client.get_table(schema, table)
    except MISSING:
        return False
    return True


def _of_type(client: Client, schema: str, *, kind: str) -> list[str]:
    """Return the names of tables of a type; empty for metastores before 2.3, which lack the call and so list views as
    tables.
    """
    try:
        tables: list[str] = client.get_tables_by_type(schema, "*", kind)
    except TApplicationException:
        return []
    return tables
