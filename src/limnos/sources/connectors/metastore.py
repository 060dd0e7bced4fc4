"""A Hive metastore as a catalog: its databases are schemas, and its tables tables, over its Thrift interface.

May import Thrift, the metastore's generated client, this package, `formats` for the shapes of requests, `model`, and `names` for paths. Names are looked for
as a metastore has them, in small letters: another spelling would be another name for our rights. Views are not shown.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import Database, EnvironmentContext
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import AlreadyExists, LimnosError, NotFound, UnsupportedOperation
from limnos.sources.connectors.capabilities import SourceSchemaInfo
from limnos.sources.connectors.metastore_errors import MISSING, REFUSALS, translate_metastore_errors
from limnos.sources.connectors.metastore_tables import (
    EXTERNAL,
    VIEWS,
    alter_table,
    is_name,
    name_of,
    source_table_of,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hive_metastore.ttypes import Table

    from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
    from limnos.names.path import Levels
    from limnos.sources.connectors.addresses import SourceAddress
    from limnos.sources.connectors.capabilities import SourceTableInfo

IDLE_MAX: Final = 4
ANSWER_BYTES_MAX: Final = 64 << 20
"""How much is read of one question's answers: a source that lies shall not fill the memory."""
_ITEMS_MAX: Final = 1_000_000
"""How many things a list in an answer may say that it has."""
_LOCATION: Final = "location"
_READ_TO_END: Final = (LimnosError, TApplicationException, *REFUSALS)
"""After these a connection has nothing left of an answer."""


class _BoundedSocket(TSocket):  # type: ignore[misc]  # the library has no types
    """A socket from which only so much is read before `begin` is called again."""

    left = ANSWER_BYTES_MAX

    def begin(self) -> None:
        """Let another question be answered."""
        self.left = ANSWER_BYTES_MAX

    def read(self, size: int) -> bytes:
        """Read some. Raises TTransportException when it is too much."""
        found: bytes = super().read(size)
        self.left -= len(found)
        if self.left < 0:
            raise TTransportException(TTransportException.SIZE_LIMIT, f"more than {ANSWER_BYTES_MAX} bytes")
        return found


class _ThriftConnection(NamedTuple):
    socket: _BoundedSocket
    transport: TBufferedTransport
    client: Client


class MetastoreSource:
    """A metastore, at the first of its addresses that answers."""

    def __init__(self, addresses: Sequence[SourceAddress], *, timeout_s: float) -> None:
        self._addresses = addresses
        self._late_ms = max(50, int(timeout_s * 800 / max(1, len(addresses))))
        self._lock = Lock()
        self._idle: list[_ThriftConnection] = []
        self._closed = False

    def check(self) -> None:
        """Ask for a database that every metastore has."""
        with self._asking("the metastore", kind="namespace") as client:
            client.get_all_databases()

    def close(self) -> None:
        """Close what is idle; what is at work is closed after it."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for each in idle:
            each.transport.close()

    # -- schemas ---------------------------------------------------------------------------------------------------

    def schema_names(self, parent: Levels) -> list[str]:
        """Return all databases."""
        if parent:
            raise UnsupportedOperation("Schemas of this source do not nest")
        with self._asking("the metastore", kind="namespace") as client:
            return sorted(client.get_all_databases())

    def schema_exists(self, schema: Levels) -> bool:
        """Say whether there is such a database."""
        try:
            self.schema_load(schema)
        except NotFound:
            return False
        return True

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Return a database's description and properties."""
        with self._asking(_schema(schema), kind="namespace") as client:
            found = _database(client, schema)
        place = {_LOCATION: found.locationUri} if found.locationUri else {}
        return SourceSchemaInfo(found.description or None, {**(found.parameters or {}), **place})

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Make a database, in the directory that the metastore chooses."""
        _refuse_location(properties)
        single = name_of(_single(schema), what="Schema")
        with self._asking(_schema(schema), kind="namespace", changes=True) as client:
            client.create_database(Database(name=single, description=comment or "", parameters=properties))

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Set and remove properties of a database."""
        _refuse_location({**sets, **dict.fromkeys(removes, "")})
        with self._asking(_schema(schema), kind="namespace", changes=True) as client:
            found = _database(client, schema)
            kept = {key: value for key, value in (found.parameters or {}).items() if key not in removes}
            found.parameters = {**kept, **sets}
            client.alter_database(found.name, found)

    def schema_drop(self, schema: Levels) -> None:
        """Drop an empty database; the metastore itself says whether it is."""
        with self._asking(_schema(schema), kind="namespace", changes=True) as client:
            found = _database(client, schema)
            client.drop_database(found.name, True, False)

    # -- tables ----------------------------------------------------------------------------------------------------

    def table_names(self, schema: Levels) -> list[str]:
        """Return the tables of a database; views are none."""
        with self._asking(_schema(schema), kind="namespace") as client:
            single = _database(client, schema).name
            views = {name for kind in VIEWS for name in _of_type(client, single, kind=kind)}
            return sorted(name for name in client.get_all_tables(single) if name not in views)

    def table_exists(self, schema: Levels, table: str) -> bool:
        """Say whether a database has a table."""
        try:
            self.table_load(schema, table)
        except NotFound:
            return False
        return True

    def table_load(self, schema: Levels, table: str) -> SourceTableInfo:
        """Return a table."""
        with self._asking(_table(table), kind="table") as client:
            return source_table_of(_get_table(client, schema, table=table))

    def table_create(self, schema: Levels, table: str, *, asked: GravitinoCreate) -> None:
        """Make a table in the directory of its database."""
        made = table_of(_single(schema), table, asked=asked)
        with self._asking(_schema(schema), kind="namespace") as client:
            _database(client, schema)
        with self._asking(_table(table), kind="table", changes=True) as client:
            client.create_table(made)

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[TableChange]) -> None:
        """Change what the metastore says of a table, in one request."""
        with self._asking(_table(table), kind="table", changes=True) as client:
            found = _get_table(client, schema, table=table)
            alter_table(found, changes)
            client.alter_table(found.dbName, found.tableName, found)

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Give a table another name, or another database too; the files of a managed one go along."""
        name = name_of(target[-1], what="Table")
        with self._asking(_schema(target[:-1]), kind="namespace") as client:
            into = _database(client, target[:-1]).name
        with self._asking(_table(name), kind="table", changes=True) as client:
            found = _get_table(client, schema, table=table)
            was = (found.dbName, found.tableName)
            if _has(client, into, table=name):
                raise AlreadyExists(f"{_table(name)} already exists in the source", kind="table")
            found.dbName, found.tableName = into, name
            client.alter_table(*was, found)

    def table_drop(self, schema: Levels, table: str, *, purge: bool) -> None:
        """Drop a table: a managed one with its files, past any trash with `purge`; of an external one they stay."""
        with self._asking(_table(table), kind="table", changes=True) as client:
            found = _get_table(client, schema, table=table)
            external = found.tableType == EXTERNAL
            if purge and external:
                raise UnsupportedOperation(
                    f"Table {preview_value(table)} is external: its files are not this source's to purge"
                )
            words = EnvironmentContext({"ifPurge": "TRUE"}) if purge else None
            client.drop_table_with_environment_context(found.dbName, found.tableName, not external, words)

    # -- connections -----------------------------------------------------------------------------------------------

    @contextmanager
    def _asking(self, about: str, *, kind: str, changes: bool = False) -> Iterator[Client]:
        """Give a client for one question; only one whose answer was read to its end is used again."""
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
                    raise  # it is silent, and would be so on another connection; what was closed meanwhile is no reason
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
    """Return the one name of a schema. Raises NotFound, as none lies in another."""
    if len(schema) != 1:
        raise NotFound(f"Schemas of this source do not nest: {preview_value(schema[0])} holds none", kind="namespace")
    return schema[0]


def _schema(schema: Levels) -> str:
    return f"Schema {preview_value('.'.join(schema))}"


def _table(table: str) -> str:
    return f"Table {preview_value(table)}"


def _refuse_location(properties: Mapping[str, str]) -> None:
    if _LOCATION in properties:
        raise UnsupportedOperation("The metastore chooses the directory of a schema: leave location out")


def _database(client: Client, schema: Levels) -> Database:
    """Return a database by its name, spelled as the metastore has it."""
    single = _single(schema)
    if not is_name(single):
        raise NotFound(
            f"{_schema(schema)} does not exist in the source, where names are small letters", kind="namespace"
        )
    try:
        return client.get_database(single)
    except MISSING:
        raise NotFound(f"{_schema(schema)} does not exist in the source", kind="namespace") from None


def _get_table(client: Client, schema: Levels, *, table: str) -> Table:
    """Return a table by its name, spelled as the metastore has it; views are none."""
    single = _single(schema)
    if is_name(single) and is_name(table):
        try:
            found = client.get_table(single, table)
        except MISSING:
            _database(client, schema)  # which of the two is missing
        else:
            if found.tableType not in VIEWS:
                return found
    raise NotFound(f"{_table(table)} does not exist in the source", kind="table")


def _has(client: Client, schema: str, *, table: str) -> bool:
    try:
        client.get_table(schema, table)
    except MISSING:
        return False
    return True


def _of_type(client: Client, schema: str, *, kind: str) -> list[str]:
    """Return the names of a type; metastores from before 2.3 cannot say, and their views are listed as tables are."""
    try:
        found: list[str] = client.get_tables_by_type(schema, "*", kind)
    except TApplicationException:
        return []
    return found
