# SPDX-License-Identifier: Apache-2.0
"""A directory of Delta tables as a catalog that is only read: DIRECTORY/SCHEMA/TABLE/_delta_log.

The server's operator allows directories by the environment variable LIMNOS_DELTA_ROOTS, separated by colons. A catalog
names one of them, or one below, by the property `directory`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import ArrayType, Field, MapType, PrimitiveType, StructType

from limnos.model.errors import BadRequest, NotFound, SourceFailed
from limnos.sources.connectors.base import ReadOnlyTables
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTableInfo

ROOTS = "LIMNOS_DELTA_ROOTS"
DIRECTORY = "directory"
LOG = "_delta_log"
TYPES = {"float": "float", "double": "double", "string": "string", "binary": "binary", "boolean": "boolean"} | {
    "byte": "byte",
    "short": "short",
    "integer": "integer",
    "long": "long",
    "date": "date",
    "timestamp": "timestamp_tz",
    "timestamp_ntz": "timestamp",
}
"""Delta's types under Gravitino's names."""


class DeltaDirectory(ReadOnlyTables):
    """The Delta tables of a directory. Each folder of it is a schema, each folder with a log in that one a table."""

    @classmethod
    def check_properties(cls, properties: Mapping[str, str], *, addresses: Collection[str]) -> None:
        """Raise BadRequest unless the operator allows the directory."""
        named = properties.get(DIRECTORY, "")
        if not Path(named).is_absolute() or "\0" in named:
            raise BadRequest(f"Property {DIRECTORY} is missing: name an absolute path on the server's machine")
        roots = [Path(root).resolve() for root in os.environ.get(ROOTS, "").split(":") if root]
        if not any(Path(named).resolve().is_relative_to(root) for root in roots):
            raise BadRequest(f"Property {DIRECTORY} is outside of what the operator allows by {ROOTS}")

    @property
    def root(self) -> Path:
        """The directory, checked again: somebody may have replaced it by a link since."""
        self.check_properties(self.properties, addresses=())
        return Path(self.properties[DIRECTORY]).resolve()

    def check(self) -> None:
        """Raise SourceFailed if the directory cannot be listed."""
        self._folders(self.root)

    def _folders(self, folder: Path) -> list[str]:
        """Return the sorted names of the folders in a folder of the source. Links are not followed."""
        try:
            return sorted(each.name for each in os.scandir(folder) if each.is_dir(follow_symlinks=False))
        except OSError as error:
            raise SourceFailed(f"The directory cannot be listed: {error.strerror}") from error

    def schema_names(self, parent: tuple[str, ...]) -> list[str]:
        """Return the folders of the directory that are no tables."""
        if parent:
            raise NotFound("A schema of this catalog contains no schemas", kind="namespace")
        root = self.root
        return [name for name in self._folders(root) if not (root / name / LOG).is_dir()]

    def schema_exists(self, schema: tuple[str, ...]) -> bool:
        """Return whether a schema is listed: names of callers are never joined to a path unless they are."""
        return len(schema) == 1 and schema[0] in self.schema_names(())

    def schema_load(self, schema: tuple[str, ...]) -> SourceSchemaInfo:
        """Return a schema without comment and properties, which folders do not have."""
        if not self.schema_exists(schema):
            raise NotFound(f"Schema {'.'.join(schema)} does not exist", kind="namespace")
        return SourceSchemaInfo(None, {})

    def table_names(self, schema: tuple[str, ...]) -> list[str]:
        """Return the folders of a schema that have a log."""
        self.schema_load(schema)
        folder = self.root / schema[0]
        return [name for name in self._folders(folder) if (folder / name / LOG).is_dir()]

    def table_exists(self, schema: tuple[str, ...], table: str) -> bool:
        """Return whether a table is listed."""
        return self.schema_exists(schema) and table in self.table_names(schema)

    def table_load(self, schema: tuple[str, ...], table: str) -> SourceTableInfo:
        """Return the columns of the newest version, and the table's configuration, version and location."""
        if table not in self.table_names(schema):
            raise NotFound(f"Table {table} does not exist", kind="table")
        folder = self.root / schema[0] / table
        try:
            delta = deltalake.DeltaTable(str(folder))
            metadata, fields = delta.metadata(), delta.schema().fields
        except (DeltaError, OSError, ValueError) as error:
            raise SourceFailed(f"The log of table {table} cannot be read") from error
        properties = dict(metadata.configuration) | {"version": str(delta.version()), "location": folder.as_uri()}
        partitions = [{"strategy": "identity", "fieldName": [name]} for name in metadata.partition_columns]
        return SourceTableInfo(
            comment=metadata.description,
            columns=[column_of(each) for each in fields],
            indexes=[],
            properties=properties,
            layout={"partitioning": partitions},
        )


def column_of(field: Field) -> dict[str, object]:
    """Return a column in Gravitino's JSON."""
    comment = field.metadata.get("comment")
    column = {"name": field.name, "type": type_of(field.type), "nullable": field.nullable}
    return column | ({"comment": comment} if isinstance(comment, str) else {})


def type_of(kind: object) -> object:
    """Return a type of Delta in Gravitino's JSON; an unknown one is passed on as external."""
    if isinstance(kind, PrimitiveType):
        return TYPES.get(kind.type) or (kind.type if kind.type.startswith("decimal(") else external(kind.type))
    if isinstance(kind, ArrayType):
        return {"type": "list", "elementType": type_of(kind.element_type), "containsNull": kind.contains_null}
    if isinstance(kind, MapType):
        key, value = type_of(kind.key_type), type_of(kind.value_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": kind.value_contains_null}
    if isinstance(kind, StructType):
        fields = [{"name": each.name, "type": type_of(each.type), "nullable": each.nullable} for each in kind.fields]
        return {"type": "struct", "fields": fields}
    return external(str(kind))


def external(text: str) -> dict[str, str]:
    """Return a type that Gravitino has no name for."""
    return {"type": "external", "catalogString": text}
