# SPDX-License-Identifier: Apache-2.0
"""Tables of a Hive metastore: converts requests to the metastore's Thrift structures, and the structures to Gravitino's
JSON.

Pure. A caller may not set the location of a table's files, their deletion at a drop, or the InputFormat, OutputFormat
and SerDe: this could delete another table's files, or load classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hive_metastore.ttypes import FieldSchema, Order, SerDeInfo, StorageDescriptor, Table

from limnos.formats.gravitino import tables as gravitino_tables
from limnos.formats.gravitino.partitions import distribution_of
from limnos.formats.gravitino.tables import GravitinoCreate, TableChange
from limnos.formats.iceberg.json_types import Json, preview_value, text_at
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.rooms.connectors.sources.hive_types import type_json, type_of
from limnos.sources.connectors.capabilities import SourceTableInfo

MANAGED: Final = "MANAGED_TABLE"
EXTERNAL: Final = "EXTERNAL_TABLE"
VIEWS: Final = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")
_NAME: Final = re.compile(r"[a-z0-9_]{1,128}")
_COMMENT: Final = "comment"
_ICEBERG: Final = "iceberg"
_SECRET: Final = re.compile(r"(?i)passw|secret|credential|token|access.?key")


class _FileFormat(NamedTuple):
    """Hive's InputFormat, OutputFormat and SerDe of a file format."""

    reads: str
    writes: str
    library: str


_QL, _SERDE = "org.apache.hadoop.hive.ql.io", "org.apache.hadoop.hive.serde2"
_TEXT: Final = ("org.apache.hadoop.mapred.TextInputFormat", f"{_QL}.HiveIgnoreKeyTextOutputFormat")
_FORMATS: Final[Mapping[str, _FileFormat]] = {
    "TEXTFILE": _FileFormat(*_TEXT, f"{_SERDE}.lazy.LazySimpleSerDe"),
    "CSV": _FileFormat(*_TEXT, f"{_SERDE}.OpenCSVSerde"),
    "JSON": _FileFormat(*_TEXT, "org.apache.hive.hcatalog.data.JsonSerDe"),
    "SEQUENCEFILE": _FileFormat(
        "org.apache.hadoop.mapred.SequenceFileInputFormat",
        f"{_QL}.HiveSequenceFileOutputFormat",
        f"{_SERDE}.lazy.LazySimpleSerDe",
    ),
    "RCFILE": _FileFormat(
        f"{_QL}.RCFileInputFormat", f"{_QL}.RCFileOutputFormat", f"{_SERDE}.columnar.LazyBinaryColumnarSerDe"
    ),
    "ORC": _FileFormat(f"{_QL}.orc.OrcInputFormat", f"{_QL}.orc.OrcOutputFormat", f"{_QL}.orc.OrcSerde"),
    "PARQUET": _FileFormat(
        f"{_QL}.parquet.MapredParquetInputFormat",
        f"{_QL}.parquet.MapredParquetOutputFormat",
        f"{_QL}.parquet.serde.ParquetHiveSerDe",
    ),
    "AVRO": _FileFormat(
        f"{_QL}.avro.AvroContainerInputFormat", f"{_QL}.avro.AvroContainerOutputFormat", f"{_SERDE}.avro.AvroSerDe"
    ),
}
_NOT_A_CALLERS: Final = re.compile(
    r"(?i)location|external|avro\.schema\.url|external\.table\.purge|auto\.purge|table_type|storage_handler|.*metadata_location|input-format|output-format|serde-.*|serde\..*"
    r"|skip\.aliased.*|spark\.sql\..*|transient_.*|numfiles|totalsize|numrows|rawdatasize|column_stats_accurate"
)
"""Properties that a caller may not set: locations and deletion of files, classes to load, and values that engines write
themselves.
"""


def name_of(name: str, *, what: str) -> str:
    """Return a new name if it is in lower case: a metastore converts names, and rights belong to exact names.

    Raises BadRequest for any other name.
    """
    if _NAME.fullmatch(name) is None:
        raise BadRequest(
            f"{what} {preview_value(name)} needs a name of 1 to 128 lower-case ASCII letters, digits and '_'"
        )
    return name


def is_name(name: str) -> bool:
    """Return whether an object of the metastore can have this name."""
    return _NAME.fullmatch(name) is not None


# -- creating ------------------------------------------------------------------------------------------------------


def table_of(schema: str, table: str, *, definition: GravitinoCreate) -> Table:
    """Build the Thrift structure of a new table from a request. Raises BadRequest for an invalid definition,
    UnsupportedOperation for a feature that Hive lacks.
    """
    if definition.indexes:
        raise UnsupportedOperation("Tables of this source have no indexes: leave them out")
    properties = dict(definition.properties)
    form, kind = _form(properties), properties.pop("table-type", MANAGED).upper()
    if kind not in (MANAGED, EXTERNAL):
        raise BadRequest(f"Property table-type must be {MANAGED} or {EXTERNAL}")
    for key in properties:
        _refuse_reserved(key)
    columns = [column_of(each) for each in definition.columns]
    if len({each.name for each in columns}) != len(columns):
        raise BadRequest("Two columns have the same name: give each its own")
    split_by = _split(definition.partitioning, columns)
    own_columns = [each for each in columns if each.name not in split_by]
    if not own_columns:
        raise BadRequest("A table needs at least one column besides its partition columns")
    parameters = properties | ({_COMMENT: definition.comment} if definition.comment is not None else {})
    return Table(
        tableName=name_of(table, what="Table"),
        dbName=schema,
        tableType=kind,
        sd=_storage(definition, own_columns, form=form),
        partitionKeys=[next(each for each in columns if each.name == name) for name in split_by],
        parameters=parameters | ({"EXTERNAL": "TRUE"} if kind == EXTERNAL else {}),
    )


def _form(properties: dict[str, str]) -> _FileFormat:
    word = properties.pop("format", "TEXTFILE").upper()
    if word not in _FORMATS:
        raise BadRequest(f"Property format must be one of {', '.join(_FORMATS)}")
    return _FORMATS[word]


def _refuse_reserved(key: str) -> None:
    if _NOT_A_CALLERS.fullmatch(key) is not None:
        raise UnsupportedOperation(
            f"Property {preview_value(key)} is not supported: a table's files are in its schema's directory, and are"
            " read by its format"
        )
    if key == _COMMENT:
        raise BadRequest("Set the comment in the field comment, not as a property")


def column_of(fields: Json) -> FieldSchema:
    """Convert a column in Gravitino's JSON to the metastore's `FieldSchema`. Raises BadRequest for an invalid type,
    UnsupportedOperation for NOT NULL, a default or auto-increment.
    """
    name = name_of(text_at(fields, "name", where="Column"), what="Column")
    if fields.get("nullable") is False or fields.get("autoIncrement") is True or fields.get("defaultValue") is not None:
        raise UnsupportedOperation(
            f"Column {preview_value(name)}: columns of this source are nullable, without autoIncrement and defaults"
        )
    comment = fields.get("comment")
    return FieldSchema(name, type_of(fields.get("type"), column=name), str(comment) if comment is not None else None)


def _split(partitioning: Sequence[Json], columns: Sequence[FieldSchema]) -> list[str]:
    """Return the names of the partition columns. Raises BadRequest unless they are the last columns, in the same order,
    and UnsupportedOperation for a transform other than identity.
    """
    entries = []
    for each in partitioning:
        path = each.get("fieldName")
        if each.get("strategy") != "identity" or not isinstance(path, list) or len(path) != 1:
            raise UnsupportedOperation(
                'Tables of this source are partitioned by identity only: {"strategy": "identity", "fieldName": ["day"]}'
            )
        entries.append(str(path[0]))
    names = [each.name for each in columns]
    if entries and names[-len(entries) :] != entries:
        raise BadRequest("The partition columns of a table must be the last ones, in the same order")
    return entries


def _storage(create: GravitinoCreate, columns: list[FieldSchema], *, form: _FileFormat) -> StorageDescriptor:
    buckets, count = _buckets(create.distribution or {}, columns)
    return StorageDescriptor(
        cols=columns,
        inputFormat=form.reads,
        outputFormat=form.writes,
        compressed=False,
        numBuckets=count,
        bucketCols=buckets,
        serdeInfo=SerDeInfo(serializationLib=form.library, parameters={"serialization.format": "1"}),
        sortCols=[_order(each, columns) for each in create.sort_orders],
        parameters={},
    )


def _buckets(fields: Json, columns: Sequence[FieldSchema]) -> tuple[list[str], int]:
    strategy, number = str(fields.get("strategy", "none")).lower(), fields.get("number")
    if strategy == "none":
        return [], -1
    if strategy != "hash" or not isinstance(number, int) or not 0 < number <= 100_000:
        raise UnsupportedOperation(
            "Rows of this source can only be distributed by hash, over a number of buckets from 1 to 100000"
        )
    arguments = fields.get("funcArgs")
    return [_column_name(each, columns) for each in (arguments if isinstance(arguments, list) else [])], number


def _order(fields: Json, columns: Sequence[FieldSchema]) -> Order:
    return Order(
        _column_name(fields.get("sortTerm"), columns), 0 if str(fields.get("direction", "asc")).lower() == "desc" else 1
    )


def _column_name(term: object, columns: Sequence[FieldSchema]) -> str:
    path = term.get("fieldName") if isinstance(term, dict) and term.get("type") == "field" else None
    if not isinstance(path, list) or len(path) != 1 or all(each.name != path[0] for each in columns):
        raise BadRequest(
            'Rows can only be distributed and sorted by columns of the table: {"type": "field", "fieldName": ["id"]}'
        )
    return str(path[0])


# -- reading -------------------------------------------------------------------------------------------------------


def source_table_of(result: Table) -> SourceTableInfo:
    """Convert a table of the metastore to Gravitino's JSON columns, partitioning and properties."""
    parameters, storage, keys = dict(result.parameters or {}), result.sd, list(result.partitionKeys or ())
    comment = parameters.pop(_COMMENT, None)
    properties = {key: value for key, value in parameters.items() if _SECRET.search(key) is None}
    own_properties = {
        "format": format_of(result),
        "table-type": result.tableType or MANAGED,
        "location": storage.location,
        "input-format": storage.inputFormat,
        "output-format": storage.outputFormat,
        "serde-lib": storage.serdeInfo.serializationLib if storage.serdeInfo else None,
    }
    layout: Json = {
        "partitioning": [{"strategy": "identity", "fieldName": [each.name]} for each in keys],
        "distribution": _distribution(storage),
        "sortOrders": [_sort(each) for each in storage.sortCols or ()],
    }
    columns = [_column(each) for each in (*(storage.cols or ()), *keys)]
    return SourceTableInfo(
        comment=comment,
        columns=columns,
        indexes=[],
        properties=properties | {key: value for key, value in own_properties.items() if value},
        layout=layout,
    )


def format_of(result: Table) -> str | None:
    """Return the name of a table's file format; None if it is unknown."""
    if (result.parameters or {}).get("table_type", "").lower() == _ICEBERG:
        return "ICEBERG"
    provider: str | None = (result.parameters or {}).get("spark.sql.sources.provider")
    if provider and provider.lower() != "hive":
        return provider.upper()
    library = result.sd.serdeInfo.serializationLib if result.sd.serdeInfo else None
    return next(
        (word for word, form in _FORMATS.items() if (form.reads, form.library) == (result.sd.inputFormat, library)),
        None,
    )


def _column(result: FieldSchema) -> Json:
    fields: Json = {"name": result.name, "type": type_json(result.type), "nullable": True, "autoIncrement": False}
    return fields | ({"comment": result.comment} if result.comment else {})


def _distribution(storage: StorageDescriptor) -> Json:
    if not storage.bucketCols or (storage.numBuckets or 0) <= 0:
        return distribution_of(None)
    arguments = [{"type": "field", "fieldName": [each]} for each in storage.bucketCols]
    return {"strategy": "hash", "number": storage.numBuckets, "funcArgs": arguments}


def _sort(result: Order) -> Json:
    descends = result.order == 0
    return {
        "sortTerm": {"type": "field", "fieldName": [result.col]},
        "direction": "desc" if descends else "asc",
        "nullOrdering": "nulls_last" if descends else "nulls_first",
    }


# -- altering ------------------------------------------------------------------------------------------------------


def alter_table(result: Table, changes: Sequence[TableChange]) -> None:
    """Apply changes to the loaded structure `result`, which the caller then sends to the metastore. Raises BadRequest
    for an invalid change, UnsupportedOperation for a change that Hive lacks.
    """
    form = format_of(result)
    if form is not None and form not in _FORMATS:
        raise UnsupportedOperation(
            f"Table {result.tableName} is of format {form}, which also stores its columns in its files: change it with"
            " an engine that supports it"
        )
    for each in changes:
        _change(result, each)
    names = [each.name for each in (*result.sd.cols, *(result.partitionKeys or ()))]
    if len(set(names)) != len(names):
        raise BadRequest("Two columns have the same name: give each its own")
    if not result.sd.cols:
        raise BadRequest("A table needs at least one column")


def _change(result: Table, change: TableChange) -> None:
    match change:
        case gravitino_tables.UpdateTableComment(comment):
            result.parameters = {key: value for key, value in result.parameters.items() if key != _COMMENT}
            if comment is not None:
                result.parameters[_COMMENT] = comment
        case gravitino_tables.SetTableProperty(key, value):
            _refuse_fixed(key)
            result.parameters[key] = value
        case gravitino_tables.RemoveTableProperty(key):
            _refuse_fixed(key)
            result.parameters.pop(key, None)
        case gravitino_tables.AddColumn(field_name=path) if change.position in (None, "default", "DEFAULT"):
            fields: Json = {
                "name": _flat(path),
                "type": change.type,
                "comment": change.comment,
                "nullable": change.nullable,
                "autoIncrement": change.auto_increment,
                "defaultValue": change.default_value,
            }
            result.sd.cols.append(column_of(fields))
        case gravitino_tables.RenameColumn(old_field_name=path, new_field_name=name):
            _own_column(result, path).name = name_of(name, what="Column")
        case gravitino_tables.UpdateColumnType(field_name=path, new_type=kind):
            _own_column(result, path).type = type_of(kind, column=path[0])
        case gravitino_tables.UpdateColumnComment(field_name=path, new_comment=comment):
            _own_column(result, path).comment = comment
        case gravitino_tables.DeleteColumn(field_name=path, if_exists=if_exists):
            if not (if_exists and all(each.name != _flat(path) for each in result.sd.cols)):
                result.sd.cols.remove(_own_column(result, path))
        case _:
            raise UnsupportedOperation(
                "Tables of this source have neither indexes nor defaults, and nullable columns in the order of their"
                " creation"
            )


def _refuse_fixed(key: str) -> None:
    if key in ("format", "table-type"):
        raise UnsupportedOperation(f"Property {key} can only be set when a table is created")
    _refuse_reserved(key)


def _flat(path: tuple[str, ...]) -> str:
    if len(path) != 1 or not path[0]:
        raise UnsupportedOperation("A column of this source can only be changed as a whole: name it by one part")
    return path[0]


def _own_column(result: Table, path: tuple[str, ...]) -> FieldSchema:
    """Return a column that is not a partition column.

    Raises UnsupportedOperation for a partition column, BadRequest for a missing column.
    """
    name = _flat(path)
    column = next((each for each in result.sd.cols if each.name == name), None)
    if column is not None:
        return column
    if any(each.name == name for each in result.partitionKeys or ()):
        raise UnsupportedOperation(f"The table is partitioned by column {preview_value(name)}, which cannot change")
    raise BadRequest(f"The table has no column {preview_value(name)}")
