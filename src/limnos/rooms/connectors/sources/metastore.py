# SPDX-License-Identifier: Apache-2.0
"""A Hive metastore as a catalog, over its Thrift interface: its databases are schemas.

Must not know callers. Names are matched exactly as the metastore stores them, in lower case, since rights belong to
exact names. Views are hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import Database, EnvironmentContext, Table
from thrift.Thrift import TApplicationException

from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import AlreadyExists, NotFound, UnsupportedOperation
from limnos.names.path import Levels
from limnos.rooms.connectors.sources import metastore_tables
from limnos.sources.catalogs.metastore_connections import MetastoreConnections
from limnos.sources.catalogs.metastore_errors import MISSING
from limnos.sources.connectors.addresses import SourceAddress
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo

_LOCATION: Final = "location"


class MetastoreSource:
    """A connector for a Hive metastore, which uses the first of the given addresses that responds."""

    def __init__(self, addresses: Sequence[SourceAddress], *, timeout_s: float) -> None:
        self._connections = MetastoreConnections(addresses, timeout_s=timeout_s)

    def check(self) -> None:
        """List the databases, which shows that the metastore responds."""
        with self._connections.open_client("the metastore", kind="namespace") as client:
            client.get_all_databases()

    def close(self) -> None:
        """Close idle connections now, and connections in use after their call."""
        self._connections.close()

    # -- schemas ---------------------------------------------------------------------------------------------------

    def schema_names(self, parent: Levels) -> list[str]:
        """Return the names of all databases, sorted. Raises UnsupportedOperation for a `parent`."""
        if parent:
            raise UnsupportedOperation("Schemas of this source do not nest")
        with self._connections.open_client("the metastore", kind="namespace") as client:
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
        with self._connections.open_client(_schema(schema), kind="namespace") as client:
            database = _database(client, schema)
        place = {_LOCATION: database.locationUri} if database.locationUri else {}
        return SourceSchemaInfo(database.description or None, {**(database.parameters or {}), **place})

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Create a database in the directory that the metastore chooses. Raises AlreadyExists, BadRequest for a name in
        upper case, and UnsupportedOperation for a location.
        """
        _refuse_location(properties)
        single = metastore_tables.name_of(_single(schema), what="Schema")
        with self._connections.open_client(_schema(schema), kind="namespace", changes=True) as client:
            client.create_database(Database(name=single, description=comment or "", parameters=properties))

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Set and remove a database's parameters. Raises NotFound, and UnsupportedOperation for a change of the
        location.
        """
        _refuse_location({**sets, **dict.fromkeys(removes, "")})
        with self._connections.open_client(_schema(schema), kind="namespace", changes=True) as client:
            database = _database(client, schema)
            entries = {key: value for key, value in (database.parameters or {}).items() if key not in removes}
            database.parameters = {**entries, **sets}
            client.alter_database(database.name, database)

    def schema_drop(self, schema: Levels) -> None:
        """Drop an empty database; the metastore itself checks that it is empty."""
        with self._connections.open_client(_schema(schema), kind="namespace", changes=True) as client:
            database = _database(client, schema)
            client.drop_database(database.name, True, False)

    # -- tables ----------------------------------------------------------------------------------------------------

    def table_names(self, schema: Levels) -> list[str]:
        """Return the names of a database's tables, without views, sorted. Raises NotFound for the database."""
        with self._connections.open_client(_schema(schema), kind="namespace") as client:
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
        with self._connections.open_client(_table(table), kind="table") as client:
            return metastore_tables.source_table_of(_get_table(client, schema, table=table))

    def table_create(self, schema: Levels, table: str, *, definition: GravitinoCreate) -> None:
        """Create a table in the directory of its database. Raises AlreadyExists, NotFound for the database, BadRequest
        for an invalid definition.
        """
        result = metastore_tables.table_of(_single(schema), table, definition=definition)
        with self._connections.open_client(_schema(schema), kind="namespace") as client:
            _database(client, schema)
        with self._connections.open_client(_table(table), kind="table", changes=True) as client:
            client.create_table(result)

    def table_alter(self, schema: Levels, table: str, *, changes: Sequence[TableChange]) -> None:
        """Apply all changes to a table's definition by one `alter_table` call. Raises NotFound, BadRequest for an
        invalid change, UnsupportedOperation for a change that Hive lacks.
        """
        with self._connections.open_client(_table(table), kind="table", changes=True) as client:
            result = _get_table(client, schema, table=table)
            metastore_tables.alter_table(result, changes)
            client.alter_table(result.dbName, result.tableName, result)

    def table_rename(self, schema: Levels, table: str, *, target: Levels) -> None:
        """Rename a table, also into another database. The metastore moves the files of a managed table. Raises
        NotFound, AlreadyExists, BadRequest for a name in upper case.
        """
        name = metastore_tables.name_of(target[-1], what="Table")
        with self._connections.open_client(_schema(target[:-1]), kind="namespace") as client:
            into = _database(client, target[:-1]).name
        with self._connections.open_client(_table(name), kind="table", changes=True) as client:
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
        with self._connections.open_client(_table(table), kind="table", changes=True) as client:
            result = _get_table(client, schema, table=table)
            external = result.tableType == metastore_tables.EXTERNAL
            if purge and external:
                raise UnsupportedOperation(
                    f"Table {preview_value(table)} is external: the source may not purge its files"
                )
            words = EnvironmentContext({"ifPurge": "TRUE"}) if purge else None
            client.drop_table_with_environment_context(result.dbName, result.tableName, not external, words)


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
