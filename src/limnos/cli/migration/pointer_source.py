# SPDX-License-Identifier: Apache-2.0
"""A catalog that stores the location of each table's metadata file, as the source of a migration: databases of
Iceberg's JDBC catalog, Hive metastores, Glue.

The metadata files are read with the credentials of this machine. Nothing of a catalog or file is trusted: what is
missing or wrong is an error of that one object.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from limnos.cli.failures import StoppedError
from limnos.cli.migration.states import NOT_ICEBERG, Name, ObjectError, ViewState, state_of
from limnos.model.errors import (
    AlreadyExists,
    CommitConflict,
    LimnosError,
    MissingFile,
    NotFound,
    ServiceUnavailable,
    SourceFailed,
    SourceRefused,
    UnsupportedOperation,
)
from limnos.model.table_states import TableState, plain

if TYPE_CHECKING:
    from limnos.formats.iceberg.json_types import Json
    from limnos.sources.catalogs.entries import CatalogEntry, EntryKind, PointerCatalog

TRIES: Final = 4
PAUSE_S: Final = 0.5
FILE_BYTES_MAX: Final = 256 << 20
_UNCHANGED: Final = (CommitConflict, NotFound, SourceRefused, UnsupportedOperation)
"""Errors after which a commit certainly did not happen, so that its file is deleted."""
T = TypeVar("T")


class PointerSource:
    """A catalog of entries that point to metadata files."""

    def __init__(self, catalog: PointerCatalog) -> None:
        self.catalog = catalog

    def close(self) -> None:
        """Close the connections."""
        self.catalog.close()

    def namespaces(self) -> Iterator[Name]:
        """Yield all namespaces, parents before children. Raises StoppedError if the source refuses to list them."""
        try:
            yield from self._read(self.catalog.namespaces)
        except ObjectError as error:
            raise StoppedError(str(error), code="denied", hint="check the address and the credentials") from error

    def namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return a namespace's properties."""
        return self._read(lambda: self.catalog.namespace_properties(namespace))

    def tables(self, namespace: Name) -> Iterator[str]:
        """Yield the names of tables, also of those that are not Iceberg's."""
        yield from (name for name, kind in self._names(namespace) if kind != "view")

    def views(self, namespace: Name) -> list[str]:
        """Return the names of Iceberg's views; none if they cannot be listed, which `tables` has said."""
        with suppress(ObjectError):
            return [name for name, kind in self._names(namespace) if kind == "view"]
        return []

    def table(self, path: Name) -> TableState:
        """Read a table's entry and its metadata file. Raises ObjectError."""
        entry = self._entry(path)
        document = self._document(entry.metadata_location)
        state = state_of({"metadata-location": entry.metadata_location, "metadata": document})
        return state.as_renamed() if entry.is_closed else state

    def view(self, path: Name) -> ViewState:
        """Read a view's entry and its metadata file. Raises ObjectError."""
        entry = self._read(lambda: self.catalog.entry(path))
        return ViewState.of({"metadata": self._document(entry.metadata_location)})

    def mark(self, path: Name, properties: Mapping[str, str], *, expected: TableState) -> TableState:
        """Commit properties to a table that still has the expected metadata file. Raises ObjectError."""
        entry = self._entry(path)
        if plain(entry.metadata_location) != expected.metadata_location or entry.is_closed:
            raise ObjectError("another client committed to it in the source meanwhile")
        former = self._document(entry.metadata_location)
        location, document = _marked(entry.metadata_location, former, properties=properties)
        self._write(location, document)
        try:
            self.catalog.replace(path, location, expected=entry.metadata_location, properties=properties)
        except _UNCHANGED as error:
            _delete(location)
            raise _object_error(error) from error
        except LimnosError as error:
            raise ObjectError(f"{error.message}; run the command again") from error
        return state_of({"metadata-location": location, "metadata": document})

    def retire(self, path: Name, name: str) -> str:
        """Make later commits to a table fail. Returns its name from then on. Raises ObjectError."""
        try:
            return self.catalog.retire(path, name=name)
        except LimnosError as error:
            raise _object_error(error) from error

    def _names(self, namespace: Name) -> list[tuple[str, EntryKind]]:
        return self._read(lambda: self.catalog.names(namespace))

    def _entry(self, path: Name) -> CatalogEntry:
        entry = self._read(lambda: self.catalog.entry(path))
        if entry.kind != "table":
            what = entry.note or "a view"
            raise ObjectError(f"{what}; it stays where it is, and this server has no name for it", word=NOT_ICEBERG)
        return entry

    def _document(self, location: str) -> dict[str, Any]:
        """Read a metadata file. Raises ObjectError, StoppedError if its store does not answer or needs a package."""
        from limnos.files import store_for
        from limnos.formats.iceberg import metadata as iceberg_metadata

        try:
            data = _repeat(lambda: store_for(location, {}).read(location, bytes_max=FILE_BYTES_MAX))
            return iceberg_metadata.decode(data)
        except (ServiceUnavailable, UnsupportedOperation) as error:
            raise StoppedError(error.message, code="unavailable", hint="run the command again: it continues") from error
        except LimnosError as error:
            raise _object_error(error) from error

    def _write(self, location: str, document: Json) -> None:
        from limnos.files import store_for
        from limnos.formats.iceberg import metadata as iceberg_metadata

        data = iceberg_metadata.encode(document)
        packed = iceberg_metadata.pack(data) if iceberg_metadata.wants_gzip(document) else data
        try:
            store_for(location, {}).write_new(location, packed)
        except LimnosError as error:
            raise ObjectError(f"its marked metadata file cannot be written: {error.message}") from error

    def _read(self, call: Callable[[], T]) -> T:
        """Ask the source, several times if it does not answer. Raises ObjectError, StoppedError."""
        try:
            return _repeat(call)
        except SourceRefused as error:
            raise _object_error(error) from error
        except SourceFailed as error:
            raise StoppedError(error.message, code="unavailable", hint="run the command again: it continues") from error
        except LimnosError as error:
            raise _object_error(error) from error


def _repeat(call: Callable[[], T]) -> T:
    """Return the result of a read, which is repeated after errors that may pass."""
    for attempt in range(TRIES):
        try:
            return call()
        except SourceRefused:
            raise
        except (SourceFailed, ServiceUnavailable):
            if attempt == TRIES - 1:
                raise
            time.sleep(PAUSE_S * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


def _marked(location: str, former: Json, *, properties: Mapping[str, str]) -> tuple[str, Json]:
    """Return the location and the document of a commit that sets properties. The file lies beside the former one."""
    from limnos.formats.iceberg import metadata as iceberg_metadata
    from limnos.formats.iceberg import updates as iceberg_updates

    update: list[object] = [{"action": "set-properties", "updates": dict(properties)}]
    try:
        document = iceberg_updates.apply(former, update, now_ms=time.time_ns() // 1_000_000, previous_location=location)
    except LimnosError as error:
        raise ObjectError(f"its metadata cannot be marked: {error.message}") from error
    version = iceberg_metadata.version_of(location) + 1
    is_packed = iceberg_metadata.wants_gzip(document)
    file = iceberg_metadata.file_name(version, uuid=str(uuid.uuid4()), gzip=is_packed)
    return f"{location.rpartition('/')[0]}/{file}", document


def _delete(location: str) -> None:
    """Delete a file of a commit that certainly did not succeed; a file that stays is an orphan, and harmless."""
    from limnos.files import store_for

    with suppress(LimnosError):
        store_for(location, {}).delete(location)


def _object_error(error: LimnosError) -> ObjectError:
    status = 404 if isinstance(error, NotFound | MissingFile) else 409 if isinstance(error, AlreadyExists) else 0
    cause = error.context.get("cause")
    return ObjectError(f"{error.message}{f' ({str(cause)[:200]})' if cause else ''}", status=status)
