# SPDX-License-Identifier: Apache-2.0
"""Plans scans from Iceberg's metadata without the JVM: finds the files of a table that may have rows of a key.

Must not know statements. The table's metadata comes from the server with the credential of a statement, so the server
decides who may read the files. Decoded manifests are cached until their file changes. Unsupported tables (partitions,
equality deletes, other format versions than 2, files in object stores) raise `UnsupportedFile`, and the caller uses
Iceberg's library.
"""

from __future__ import annotations

import http.client
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from limnos.rooms.sqlpp.engine.parquet_lookups import FileWithDeletes, UnsupportedFile, literal_of, may_be
from limnos.rooms.sqlpp.language.conditions import Condition

if TYPE_CHECKING:
    from limnos.rooms.sqlpp.language.jobs import DatasetRef, SnapshotPin
    from limnos.rooms.sqlpp.language.lookups import KeyConditions

T = TypeVar("T")
FILES_MAX: Final = 16
"""The maximum number of data files of a lookup."""
DELETES_MAX: Final = 128
"""The maximum number of their delete files."""
MANIFEST_BYTES_MAX: Final = 1 << 20
MANIFESTS_MAX: Final = 64
"""The maximum number of manifests of a table, and the number of lists and manifests that are cached."""
VERSION: Final = 2
WAITING_S: Final = 30.0
_PATHS: Final = 2147483546
"""The field id of the paths in position delete files."""
_DELETED: Final = 2


class _Snapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    manifest_list: str | None = None
    schema_id: int | None = None


class _Metadata(msgspec.Struct, rename="kebab", kw_only=True):
    format_version: int
    current_schema_id: int
    schemas: list[dict[str, Any]]
    partition_specs: list[dict[str, Any]]
    current_snapshot_id: int | None = None
    snapshots: list[_Snapshot] = []


class _LoadedTable(msgspec.Struct, rename="kebab"):
    metadata: _Metadata
    config: dict[str, str] = {}


_LOADED_TABLE: Final = msgspec.json.Decoder(_LoadedTable)
"""A constant, because several threads decode: `model.struct_types`."""


class _File(NamedTuple):
    """A data or delete file in a manifest, with its column bounds by field id."""

    location: str
    is_parquet: bool
    content: int
    sequence: int
    lower: dict[int, bytes]
    upper: dict[int, bytes]
    referenced: str | None


class TableSnapshot(NamedTuple):
    """The pinned snapshot of a table: its schema as Iceberg's JSON, and the location of its manifest list (None before
    the first commit).
    """

    schema: dict[str, Any]
    manifest_list: str | None


class TableClient:
    """Loads the metadata of tables from the server. Threads may share it."""

    def __init__(self, uri: str, *, metalake: str) -> None:
        parts = urlsplit(uri)
        self._is_plain = parts.scheme == "http"
        self._host = parts.netloc
        self._metalake = metalake
        self._idle: deque[http.client.HTTPConnection] = deque(maxlen=8)

    def load(self, ref: DatasetRef, credential: str) -> TableSnapshot:
        """Load the pinned snapshot of a dataset's table. Raises UnsupportedFile for a table that this reader does not
        support, for one without that snapshot, and if the server uses TLS, refuses or does not respond.
        """
        if not self._is_plain:
            raise UnsupportedFile("a server with TLS")
        catalog, *namespace, name = (quote(part, safe="") for part in ref.path)
        target = (
            f"/iceberg/v1/{quote(self._metalake, safe='')}.{catalog}/namespaces/{'%1F'.join(namespace)}/tables/{name}"
        )
        try:
            status, body = self._get(target, credential)
            if status != http.HTTPStatus.OK:
                raise UnsupportedFile(f"the server answers {status}")
            return _snapshot_of(_LOADED_TABLE.decode(body), ref.pin)
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            raise UnsupportedFile(str(error)) from error

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _get(self, target: str, credential: str) -> tuple[int, bytes]:
        """Send a GET request over an idle connection, or over a new one if the server has closed it. Returns status and
        body.

        Raises OSError or HTTPException if the server does not respond.
        """
        headers = {"Authorization": f"Bearer {credential}"}
        while True:
            try:
                connection, is_new = self._idle.pop(), False
            except IndexError:
                connection, is_new = http.client.HTTPConnection(self._host, timeout=WAITING_S), True
            try:
                connection.request("GET", target, headers=headers)
                response = connection.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                if is_new:
                    raise
                continue
            if response.will_close:
                connection.close()
            else:
                self._idle.append(connection)
            return response.status, body


def _snapshot_of(table: _LoadedTable, pin: SnapshotPin | None) -> TableSnapshot:
    metadata = table.metadata
    if table.config:
        raise UnsupportedFile("a table with a configuration for its readers")
    if metadata.format_version != VERSION or any(spec.get("fields") for spec in metadata.partition_specs):
        raise UnsupportedFile("a table with partitions, or of another format version")
    current = next((one for one in metadata.snapshots if pin is not None and one.snapshot_id == pin.snapshot_id), None)
    if pin is None or (pin.snapshot_id, pin.manifest_list) != (
        (None, None) if current is None else (current.snapshot_id, current.manifest_list)
    ):
        raise UnsupportedFile("a table whose snapshot is not the one that the server has checked")
    number = metadata.current_schema_id if current is None or current.schema_id is None else current.schema_id
    schema = next((one for one in metadata.schemas if one.get("schema-id") == number), None)
    if schema is None or (current is not None and current.manifest_list is None):
        raise UnsupportedFile("metadata without a schema or a manifest list")
    return TableSnapshot(schema, None if current is None else current.manifest_list)


def files_of(table: TableSnapshot, keys: Sequence[KeyConditions]) -> list[FileWithDeletes]:
    """Return the data files that may have a row that meets all conditions of a key, with the delete files that apply.

    Raises UnsupportedFile for unsupported files, and for too many.
    """
    if table.manifest_list is None:
        return []
    fields = {str(field["name"]): field for field in table.schema["fields"]}
    bounds = [[_ConditionBounds(fields, condition) for condition in key] for key in keys]
    manifests = _CACHE.get(table.manifest_list, _manifests)
    files = [file for manifest in manifests for file in _CACHE.get(manifest.path, manifest.files)]
    data = [
        file for file in files if not file.content and any(all(bound.may_meet(file) for bound in key) for key in bounds)
    ]
    if len(data) > FILES_MAX:
        raise UnsupportedFile("too many files")
    deletes = [file for file in files if file.content]
    if data and any(file.content != 1 or not file.is_parquet for file in deletes):
        raise UnsupportedFile("delete files other than position deletes")
    results = [_with_deletes(file, deletes) for file in data]
    if len({path for file in results for path in file.deletes}) > DELETES_MAX:
        raise UnsupportedFile("too many delete files")
    return results


def _with_deletes(file: _File, deletes: Sequence[_File]) -> FileWithDeletes:
    if not file.is_parquet:
        raise UnsupportedFile("a file that is not Parquet")
    paths = (
        local_path(one.location) for one in deletes if one.sequence >= file.sequence and _may_name(one, file.location)
    )
    return FileWithDeletes(local_path(file.location), file.location, tuple(paths))


def _may_name(deletes: _File, location: str) -> bool:
    """Return whether a position delete file may refer to a data file, by its bounds of file paths.

    A truncated upper bound covers all paths that begin with it.
    """
    if deletes.referenced is not None:
        return deletes.referenced == location
    low, high, spelled = deletes.lower.get(_PATHS), deletes.upper.get(_PATHS), location.encode()
    return (low is None or low <= spelled) and (high is None or spelled <= high or spelled.startswith(high))


def local_path(location: str) -> str:
    """Return the local path of a location. Raises UnsupportedFile if it is not local.

    Iceberg does not percent-decode locations, so a location with a percent sign would be ambiguous.
    """
    scheme, _, path = location.rpartition(":")
    if scheme not in ("", "file") or not path.startswith("/") or (path.startswith("//") and not path.startswith("///")):
        raise UnsupportedFile("a location that is not on this machine")
    if "%" in path:
        raise UnsupportedFile("a location with a percent sign")
    return "/" + path.lstrip("/")


class _ConditionBounds:
    """Compares a condition with the column bounds of files."""

    def __init__(self, fields: dict[str, dict[str, Any]], condition: Condition) -> None:
        field = fields.get(condition.path[0]) if len(condition.path) == 1 else None
        if field is None:
            raise UnsupportedFile("a condition on a nested field, or on an unknown column")
        self._id, self._type = int(field["id"]), field["type"]
        self._operator = condition.operator
        value = condition.value
        self._values = [literal_of(each) for each in (value if isinstance(value, tuple) else (value,))]

    def may_meet(self, file: _File) -> bool:
        """Return whether a file may contain a row that meets the condition, by its column bounds."""
        low, high = file.lower.get(self._id), file.upper.get(self._id)
        if low is None or high is None:
            return True
        try:
            least, most = self._read(low), self._read(high)
            return any(may_be(self._operator, each, low=least, high=most) for each in self._values)
        except (TypeError, UnicodeDecodeError):
            return True

    def _read(self, bound: bytes) -> object:
        if self._type in ("int", "long"):
            return int.from_bytes(bound, "little", signed=True)
        if self._type == "string":
            return bound.decode()
        raise TypeError(self._type)


class _Manifest(NamedTuple):
    path: str
    length: int
    is_deletes: bool
    sequence: int

    def files(self, path: str) -> list[_File]:
        """Read the live entries of a manifest. Raises UnsupportedFile for a large or malformed one."""
        if self.length > MANIFEST_BYTES_MAX:
            raise UnsupportedFile("a large manifest")
        return [self._file(entry) for entry in _records(path) if entry["status"] != _DELETED]

    def _file(self, entry: dict[str, Any]) -> _File:
        file, sequence = entry["data_file"], entry.get("sequence_number")
        if sequence is None and entry["status"] != 1 and self.sequence:
            raise UnsupportedFile("an entry without a sequence number")
        return _File(
            location=str(file["file_path"]),
            is_parquet=str(file["file_format"]).lower() == "parquet",
            content=int(file.get("content") or 0),
            sequence=self.sequence if sequence is None else int(sequence),
            lower=_map_of(file.get("lower_bounds")),
            upper=_map_of(file.get("upper_bounds")),
            referenced=file.get("referenced_data_file"),
        )


def _manifests(path: str) -> list[_Manifest]:
    """Read the manifests from a manifest list. Raises UnsupportedFile for too many, and for a large or malformed
    list.
    """
    results = [
        _Manifest(
            str(one["manifest_path"]),
            int(one["manifest_length"]),
            bool(one.get("content")),
            int(one.get("sequence_number") or 0),
        )
        for one in _records(path)
    ]
    if len(results) > MANIFESTS_MAX:
        raise UnsupportedFile("too many manifests")
    return results


def _map_of(pairs: list[dict[str, Any]] | None) -> dict[int, bytes]:
    return {int(pair["key"]): pair["value"] for pair in pairs or ()}


def _records(path: str) -> Iterator[dict[str, Any]]:
    try:
        import fastavro  # noqa: PLC0415 - in the extra of the server, which an engine always has beside it

        data = Path(path)
        if data.stat().st_size > MANIFEST_BYTES_MAX:
            raise UnsupportedFile("a large manifest")
        with data.open("rb") as opened:
            for record in fastavro.reader(opened):
                if not isinstance(record, dict):
                    raise UnsupportedFile("a file that is not a manifest")
                yield record
    except UnsupportedFile:
        raise
    except Exception as error:  # fastavro raises errors of many kinds for malformed files
        raise UnsupportedFile(str(error)) from error


class _ManifestCache:
    """An LRU cache of decoded manifests and manifest lists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, tuple[int, ...]], Any] = OrderedDict()

    def get(self, location: str, read: Callable[[str], list[T]]) -> list[T]:
        """Return the decoded content of a file from the cache; on a miss, `read` decodes the file.

        Raises UnsupportedFile if the file is not on this machine, and the errors of `read`.
        """
        path = local_path(location)
        key = location, _version(path)
        with self._lock:
            content: list[T] | None = self._kept.get(key)
            if content is not None:
                self._kept.move_to_end(key)
                return content
        content = read(path)
        with self._lock:
            self._kept[key] = content
            while len(self._kept) > MANIFESTS_MAX:
                self._kept.popitem(last=False)
        return content


def _version(path: str) -> tuple[int, ...]:
    """Return values that change whenever a file is written or replaced. Raises UnsupportedFile for a missing file."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise UnsupportedFile(str(error)) from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


_CACHE: Final = _ManifestCache()
