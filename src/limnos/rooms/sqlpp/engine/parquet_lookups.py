# SPDX-License-Identifier: Apache-2.0
"""Reads rows of a few local Parquet files by conditions, with a cache of columns, without the JVM.

Must not know Iceberg's library or Spark. The caller names the files of a snapshot and their delete files. A file of a
table is never changed, so a cached column stays valid; who may read which file is decided by the table that the caller
loaded. Unsupported files and types (other formats, files without field ids, structs that changed) raise
`UnsupportedFile`, and the caller uses another reader.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Value

if TYPE_CHECKING:
    from limnos.rooms.sqlpp.engine.single_values import Json
    from limnos.rooms.sqlpp.language.lookups import KeyConditions
    from limnos.rooms.sqlpp.language.stored import Plain

CACHE_BYTES_MAX: Final = 32 << 20
COLUMN_BYTES_MAX: Final = 16 << 20
"""The maximum size of a cached column of a row group."""
FOOTERS_MAX: Final = 256
COLUMNS_MAX: Final = 4096
"""The maximum number of cached columns. Small ones take about 1 KB each besides their values."""
READ_BYTES_MAX: Final = 16 << 20
"""The maximum number of bytes that one lookup reads from files. Larger lookups are left to Spark."""
FIELD_ID: Final = b"PARQUET:field_id"
_PATHS: Final = "file_path"
_POSITIONS: Final = "pos"
_ALONE: Final = frozenset({"boolean", "int", "long", "float", "double", "string", "binary"})
"""Types whose Arrow values need no conversion, also within structs and lists."""
_Schema: TypeAlias = "Mapping[str, Json]"


class UnsupportedFile(Exception):
    """Raised if a file or a type is not supported, or if the lookup would read too many bytes."""


class FileWithDeletes(NamedTuple):
    """A data file and the position delete files that apply to it, as local paths.

    It also has the location by which the delete files refer to the data file.
    """

    path: str
    location: str
    deletes: tuple[str, ...] = ()


@dataclass(slots=True)
class ReadAllowance:
    """The read budget of one lookup, in bytes."""

    bytes_left: int = READ_BYTES_MAX

    def spend(self, size: int) -> None:
        """Deduct bytes from the budget. Raises UnsupportedFile if it is exceeded."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise UnsupportedFile(f"the lookup exceeds its read budget of {READ_BYTES_MAX} bytes")


class FileCache:
    """An LRU cache of footers and columns of Parquet files. Safe for use by several threads."""

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX, *, columns_max: int = COLUMNS_MAX) -> None:
        self._bytes_max = bytes_max
        self._columns_max = columns_max
        self._lock = threading.Lock()
        self._columns: OrderedDict[tuple[str, int, str], pa.Array] = OrderedDict()
        self._footers: OrderedDict[str, pq.FileMetaData] = OrderedDict()
        self.size = 0

    def footer(self, path: str) -> pq.FileMetaData:
        """Return a file's footer from the cache, or read it and cache it."""
        with self._lock:
            footer = self._footers.get(path)
            if footer is not None:
                self._footers.move_to_end(path)
                return footer
        footer = pq.read_metadata(path)
        with self._lock:
            self._footers[path] = footer
            while len(self._footers) > FOOTERS_MAX:
                self._footers.popitem(last=False)
        return footer

    def column(self, path: str, group: int, *, name: str, reading: ReadAllowance) -> pa.Array:
        """Return a top-level column of a row group, from the cache or the file.

        Raises UnsupportedFile if reading it would exceed the read budget.
        """
        key = (path, group, name)
        with self._lock:
            array = self._columns.get(key)
            if array is not None:
                self._columns.move_to_end(key)
                return array
        footer = self.footer(path)
        reading.spend(_bytes_of(footer, group, name=name))
        with pq.ParquetFile(path, metadata=footer) as opened:
            column = opened.read_row_group(group, columns=[name], use_threads=False).column(0).combine_chunks()
        array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        self._keep(key, array)
        return array

    def _keep(self, key: tuple[str, int, str], array: pa.Array) -> None:
        if array.nbytes > COLUMN_BYTES_MAX:
            return
        with self._lock:
            if key in self._columns:
                return
            self._columns[key] = array
            self.size += array.nbytes
            while self.size > self._bytes_max or len(self._columns) > self._columns_max:
                _, array = self._columns.popitem(last=False)
                self.size -= array.nbytes


CACHE: Final = FileCache()


def _bytes_of(footer: pq.FileMetaData, group: int, *, name: str) -> int:
    """Return the compressed size in bytes of a column in a row group."""
    columns = footer.row_group(group)
    return sum(
        chunk.total_compressed_size
        for at in range(columns.num_columns)
        if (chunk := columns.column(at)).path_in_schema.partition(".")[0] == name
    )


def read_rows(
    files: Sequence[FileWithDeletes],
    schema: _Schema,
    *,
    keys: Sequence[KeyConditions],
    most: int | None = None,
    cache: FileCache = CACHE,
) -> list[FoundRow] | None:
    """Read the rows that meet all conditions of at least one key, with the file and position of each.

    Args:
        files: The files that may have such rows.
        schema: The columns as Iceberg's JSON.
        keys: The conditions of each key.
        most: The largest count of rows to return; None for no limit.
        cache: The cache of columns.

    Returns:
        The rows; None if there are more than `most`.

    Raises:
        UnsupportedFile: A file, type or condition is not supported, or the read budget is exceeded.
    """
    fields: Sequence[Any] = schema["fields"]  # type: ignore[assignment]
    for field in fields:
        _check_type(field["type"])
    reading, results = ReadAllowance(), []
    for file in files:
        try:
            results += FileLookup(file, fields, cache=cache, reading=reading).rows(keys)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise UnsupportedFile(str(error)) from error
        if most is not None and len(results) > most:
            return None
    return results


class FoundRow(NamedTuple):
    """A row with the location of its file and its position (row ordinal) in that file."""

    row: dict[str, Plain]
    location: str
    position: int


class FileLookup:
    """Looks up rows of one Parquet file by key."""

    def __init__(
        self, file: FileWithDeletes, fields: Sequence[Any], *, cache: FileCache, reading: ReadAllowance
    ) -> None:
        self._file = file
        self._cache = cache
        self._reading = reading
        self._footer = cache.footer(file.path)
        self._fields = fields
        self._columns = _columns_of(self._footer.schema.to_arrow_schema(), fields)

    def rows(self, keys: Sequence[KeyConditions]) -> list[FoundRow]:
        """Return the rows that meet all conditions of at least one key and are not deleted.

        Raises UnsupportedFile for an unsupported condition, or if the read budget is exceeded.
        """
        results: list[FoundRow] = []
        first = 0
        for group in range(self._footer.num_row_groups):
            count = self._footer.row_group(group).num_rows
            near = [key for key in keys if self._may_match(group, key)]
            positions = self._matching_positions(group, near) if near else None
            if positions is not None and len(positions):
                results += self._rows_at(group, positions, first=first)
            first += count
        deleted = self._deleted_positions() if results else frozenset()
        return [one for one in results if one.position not in deleted]

    def has_value(self, name: str, values: pa.Array) -> bool:
        """Return whether a row that is not deleted has one of these values in a column.

        Raises UnsupportedFile if the file lacks the column, or if the read budget is exceeded.
        """
        own_column = self._columns[name]
        if own_column is None:
            raise UnsupportedFile("a column that the file does not have")
        first, positions = 0, []
        for group in range(self._footer.num_row_groups):
            column = self._column(group, own_column)
            indices = pc.indices_nonzero(pc.is_in(column, value_set=values.cast(column.type)))
            positions += [first + place for place in indices.to_pylist()]
            first += len(column)
        return bool(positions) and not self._deleted_positions().issuperset(positions)

    def _may_match(self, group: int, key: KeyConditions) -> bool:
        """Return whether a row group may contain a row that meets a key's conditions, by its column statistics."""
        return all(self._may_meet(group, condition) for condition in key)

    def _may_meet(self, group: int, condition: Condition) -> bool:
        name = self._name(condition)
        columns = self._footer.row_group(group)
        at = next((at for at in range(columns.num_columns) if columns.column(at).path_in_schema == name), None)
        statistics = None if at is None else columns.column(at).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        low, high, value = statistics.min, statistics.max, condition.value
        values = [literal_of(each) for each in (value if isinstance(value, tuple) else (value,))]
        if not isinstance(low, (int, str)) or not all(type(each) is type(low) is type(high) for each in values):
            return True
        return any(may_be(condition.operator, each, low=low, high=high) for each in values)

    def _name(self, condition: Condition) -> str:
        """Return the name of a condition's column in the file. Raises UnsupportedFile for a nested field, and for a
        column that the file does not have.
        """
        if len(condition.path) > 1:
            raise UnsupportedFile("a condition about a field of a record")
        name = self._columns.get(condition.path[0])
        if name is None:
            raise UnsupportedFile("a condition about a column that the file does not have")
        return name

    def _column(self, group: int, name: str) -> pa.Array:
        return self._cache.column(self._file.path, group, name=name, reading=self._reading)

    def _matching_positions(self, group: int, keys: Sequence[KeyConditions]) -> pa.Array:
        """Return the positions, within a row group, of the rows that meet all conditions of at least one key."""
        mask = None
        for key in keys:
            here = None
            for condition in key:
                one = _mask(self._column(group, self._name(condition)), condition)
                here = one if here is None else pc.and_(here, one)
            mask = here if mask is None else pc.or_(mask, here)
        return pc.indices_nonzero(pc.fill_null(mask, False))

    def _rows_at(self, group: int, places: pa.Array, *, first: int) -> list[FoundRow]:
        count = len(places)
        columns = {
            str(field["name"]): [None] * count
            if (name := self._columns[field["name"]]) is None
            else _plain_values(self._column(group, name).take(places), field["type"])
            for field in self._fields
        }
        return [
            FoundRow({name: values[at] for name, values in columns.items()}, self._file.location, first + place)
            for at, place in enumerate(places.to_pylist())
        ]

    def _deleted_positions(self) -> frozenset[int]:
        """Return the positions of the file's deleted rows, from its position delete files."""
        positions: set[int] = set()
        for path in self._file.deletes:
            for group in range(self._cache.footer(path).num_row_groups):
                paths, position_column = (
                    self._cache.column(path, group, name=name, reading=self._reading) for name in (_PATHS, _POSITIONS)
                )
                positions.update(position_column.filter(pc.equal(paths, self._file.location)).to_pylist())
        return frozenset(positions)


def _columns_of(schema: pa.Schema, fields: Sequence[Any]) -> dict[str, str | None]:
    """Map each column of the table to its name in the file; None for a column that the file does not have.

    Raises UnsupportedFile if the file has no field ids, lacks a column that is required or has a default, or stores a
    column with another structure.
    """
    by_id = {}
    for field in schema:
        number = (field.metadata or {}).get(FIELD_ID)
        if number is None:
            raise UnsupportedFile("a file without field ids")
        by_id[int(number)] = field
    results: dict[str, str | None] = {}
    for field in fields:
        own_field = by_id.get(field["id"])
        if own_field is None and ("initial-default" in field or field.get("required")):
            raise UnsupportedFile("a column with a default")
        if own_field is not None and not _is_same(own_field, field):
            raise UnsupportedFile("a column of another form")
        results[field["name"]] = None if own_field is None else own_field.name
    return results


def _is_same(own: pa.Field, field: Mapping[str, Any]) -> bool:
    """Return whether a column has the same structure in the file as in the table: the ids, names and order of nested
    fields.
    """
    type_ = field["type"]
    if isinstance(type_, str):
        return not pa.types.is_nested(own.type)
    if type_["type"] == "list":
        item = {"id": type_["element-id"], "type": type_["element"]}
        return pa.types.is_list(own.type) and _is_same(own.type.value_field, item)
    parts = type_["fields"]
    return (
        pa.types.is_struct(own.type)
        and own.type.num_fields == len(parts)
        and all(
            one.name == part["name"]
            and int((one.metadata or {}).get(FIELD_ID, -1)) == part["id"]
            and _is_same(one, part)
            for one, part in zip(own.type, parts, strict=True)
        )
    )


def _check_type(type_: Any, *, alone: bool = True) -> None:  # noqa: ANN401 - JSON
    """Check that values of a type can be read. Raises UnsupportedFile.

    `alone`: the type is that of a column, not nested in a list or struct, where fewer types are supported.
    """
    if isinstance(type_, str):
        if type_ not in _ALONE and not (alone and type_ in _CONVERTED):
            raise UnsupportedFile(f"values of type {type_}")
    elif type_["type"] == "list":
        _check_type(type_["element"], alone=False)
    elif type_["type"] == "struct":
        for field in type_["fields"]:
            _check_type(field["type"], alone=False)
    else:
        raise UnsupportedFile(f"values of type {type_['type']}")


def _plain_values(column: pa.Array, type_: object) -> list[Plain]:
    """Return a column's values as Python values. Some types, such as dates, are converted to numbers."""
    convert = _CONVERTED.get(type_) if isinstance(type_, str) else None
    values: list[Plain] = column.to_pylist() if convert is None else convert(column)
    return values


def _uuids(column: pa.Array) -> list[Plain]:
    storage = column.storage if isinstance(column, pa.ExtensionArray) else column
    return [None if one is None else str(uuid.UUID(bytes=one)) for one in storage.to_pylist()]


_CONVERTED: Final[Mapping[str, Any]] = {
    "date": lambda column: column.cast(pa.int32()).to_pylist(),
    "timestamptz": lambda column: column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist(),
    "uuid": _uuids,
}


def may_be(operator: str, value: Any, *, low: Any, high: Any) -> bool:  # noqa: ANN401 - one type for all
    """Return whether values between `low` and `high` may meet a condition.

    `value` is the condition's operand; for `in` one value of its list.
    """
    if operator in ("=", "in"):
        return bool(low <= value <= high)
    return bool({"<": low < value, "<=": low <= value, ">": high > value, ">=": high >= value}[operator])


def _mask(column: pa.Array, condition: Condition) -> pa.Array:
    """Return a boolean array that marks the rows that meet a condition. Raises UnsupportedFile as `literal_of`."""
    storage = column.storage if isinstance(column, pa.ExtensionArray) else column
    if pa.types.is_timestamp(storage.type):
        storage = storage.cast(pa.timestamp("us", "UTC"))
    if condition.operator == "in":
        values = condition.value if isinstance(condition.value, tuple) else ()
        return pc.is_in(storage, value_set=pa.array([literal_of(each) for each in values]).cast(storage.type))
    return _COMPARE[condition.operator](storage, pa.scalar(literal_of(condition.value)).cast(storage.type))


_COMPARE: Final[Mapping[str, Any]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def literal_of(value: Value) -> object:
    """Convert an integer, string, date, datetime or UUID to the type of an Arrow column, for a comparison.

    Raises UnsupportedFile for another value.
    """
    if isinstance(value, Date):
        return pa.scalar(value.days, pa.int32()).cast(pa.date32()).as_py()
    if isinstance(value, DateTime):
        return pa.scalar(value.ms * 1000, pa.timestamp("us", "UTC")).as_py()
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise UnsupportedFile("a value that is not an integer, string, date, datetime or UUID")
    return int(value) if isinstance(value, int) else value
