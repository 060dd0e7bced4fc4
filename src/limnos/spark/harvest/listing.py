# SPDX-License-Identifier: Apache-2.0
"""Listing of directories: which of them is a table, of which format, and which file has its newest metadata.

Must not know how metadata is read. A table's directory is not searched for further ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from limnos.formats.delta_logs import LOG as DELTA_LOG
from limnos.formats.delta_logs import log_versions
from limnos.formats.iceberg import metadata_files
from limnos.formats.lance_manifests import VERSIONS as LANCE_VERSIONS
from limnos.formats.lance_manifests import manifests_of
from limnos.model.errors import LimnosError, TooLarge
from limnos.model.harvest_formats import DELTA, HARVEST_FORMATS, ICEBERG, LANCE, PARQUET
from limnos.names.errors import InvalidName
from limnos.names.parts import PARTS_MAX, check_part
from limnos.spark.harvest.stores import DirectoryEntry, EntryKind, FileFacts, HarvestStore, store_of

FILES_MAX: Final = 100_000
"""The maximum number of files of a directory of Parquet files that are counted."""
ROWS_AT_ONCE: Final = 1_000
LEVELS_MAX: Final = PARTS_MAX - 2
"""The maximum depth of a table below the root."""
_LANCE_SUFFIX: Final = ".lance"
_PARQUET_SUFFIX: Final = ".parquet"
SCHEMA: Final = pa.schema(
    [
        pa.field("levels", pa.list_(pa.string())),
        pa.field("is_directory", pa.bool_()),
        pa.field("directory", pa.string()),
        pa.field("format", pa.string()),
        pa.field("namespace", pa.list_(pa.string())),
        pa.field("name", pa.string()),
        pa.field("metadata_location", pa.string()),
        pa.field("version", pa.int64()),
        pa.field("modified_at", pa.timestamp("us", tz="UTC")),
        pa.field("size", pa.int64()),
        pa.field("listed_bytes", pa.int64()),
        pa.field("problem", pa.string()),
    ]
)
"""The columns of listed rows: a directory to list next, by its `levels`, or a table or a problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCandidate:
    """A directory that is a table by the names in it, or that has a problem.

    `facts` are those of the newest metadata file. `byte_count` is known if the listing has all files of the table.
    """

    levels: tuple[str, ...]
    format: str | None = None
    metadata_location: str | None = None
    version: int | None = None
    facts: FileFacts | None = None
    byte_count: int | None = None
    problem: str | None = None


class DirectoryVisit(NamedTuple):
    """The result of listing a directory: tables and problems, and the directories to list next."""

    candidates: Sequence[TableCandidate] = ()
    below: Sequence[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestRoot:
    """The directory or the metastore of a harvest, and the formats of the tables that have rows."""

    location: str
    formats: tuple[str, ...] = HARVEST_FORMATS

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.location.rpartition("/")[2]

    def path(self, levels: Sequence[str]) -> str:
        """Return the location of a directory below the root, or an address of a database or table of a metastore."""
        return "/".join((self.location, *levels))

    def table_name(self, candidate: TableCandidate) -> tuple[tuple[str, ...], str]:
        """Return the namespace and the name of a table. One directly in the root has the root's name as namespace."""
        *namespace, name = candidate.levels or (self.name,)
        if candidate.format == LANCE:
            name = name.removesuffix(_LANCE_SUFFIX) or name
        return tuple(namespace) or (self.name,), name


class TableLister(Protocol):
    """Lists what is below a root, one level at a time."""

    def visit(self, levels: tuple[str, ...]) -> DirectoryVisit:
        """List the tables and problems directly below, and what to list next. What cannot be listed is a candidate with
        the problem.
        """

    def close(self) -> None:
        """Close connections."""


class DirectoryLister:
    """Lists directories below a root."""

    def __init__(self, root: HarvestRoot, store: HarvestStore | None = None) -> None:
        self._root = root
        self._store = store or store_of(root.location)

    def visit(self, levels: tuple[str, ...]) -> DirectoryVisit:
        """List a directory. A directory that cannot be listed is a candidate with the problem."""
        try:
            return self._visit(levels)
        except (OSError, LimnosError) as error:
            return DirectoryVisit([TableCandidate(levels=levels, problem=f"it cannot be listed: {reason(error)}")])

    def close(self) -> None:
        """No-op: stores of files are shared."""

    def _visit(self, levels: tuple[str, ...]) -> DirectoryVisit:
        entries = self._store.entries(self._root.path(levels))
        directories = {each.name for each in entries if each.kind is EntryKind.DIRECTORY}
        table = self._table(levels, directories, entries=entries)
        if table is not None:
            return DirectoryVisit([table] if table.format in self._root.formats else [])
        candidates: list[TableCandidate] = []
        below: list[tuple[str, ...]] = []
        for each in entries:
            inner = (*levels, each.name)
            if each.kind is EntryKind.LINK:
                candidates.append(TableCandidate(levels=inner, problem="it is a link, which is not followed"))
            elif each.kind is not EntryKind.DIRECTORY or each.name.startswith((".", "_")):
                continue
            elif len(inner) > LEVELS_MAX:
                candidates.append(
                    TableCandidate(levels=inner, problem=f"it is more than {LEVELS_MAX} levels below the root")
                )
            elif (problem := name_problem(each.name)) is not None:
                candidates.append(TableCandidate(levels=inner, problem=problem))
            else:
                below.append(inner)
        return DirectoryVisit(candidates, below)

    def _table(
        self, levels: tuple[str, ...], directories: set[str], *, entries: Sequence[DirectoryEntry]
    ) -> TableCandidate | None:
        """Return the table whose directory has these entries; None if it is none."""
        if metadata_files.DIRECTORY in directories:
            table = self._iceberg(levels)
            if table is not None:
                return table
        if DELTA_LOG in directories:
            return self._versioned(levels, DELTA, directory=DELTA_LOG)
        if LANCE_VERSIONS in directories:
            return self._versioned(levels, LANCE, directory=LANCE_VERSIONS)
        has_files = any(_is_parquet(each) for each in entries)
        has_partitions = bool(directories) and all("=" in name.strip("=") for name in _visible(directories))
        return self._parquet(levels) if has_files or has_partitions else None

    def _iceberg(self, levels: tuple[str, ...]) -> TableCandidate | None:
        directory = self._root.path((*levels, metadata_files.DIRECTORY))
        entries = self._store.entries(directory)
        by_name = {each.name: each for each in entries if each.kind is not EntryKind.DIRECTORY}
        if not any(map(metadata_files.is_metadata_file, by_name)):
            return None
        try:
            hint = None
            if metadata_files.HINT in by_name:
                hint_file = f"{directory}/{metadata_files.HINT}"
                hint = self._store.read(hint_file, bytes_max=metadata_files.HINT_BYTES_MAX).decode("utf-8", "replace")
            name = metadata_files.newest_metadata_file(list(by_name), hint=hint)
            location = f"{directory}/{name}"
            facts = by_name[name].facts or self._store.facts(location)
        except (OSError, LimnosError) as error:
            return TableCandidate(levels=levels, format=ICEBERG, problem=f"its metadata: {reason(error)}")
        return TableCandidate(
            levels=levels,
            format=ICEBERG,
            metadata_location=location,
            version=metadata_files.version_of_file(name),
            facts=facts,
        )

    def _versioned(self, levels: tuple[str, ...], format_: str, *, directory: str) -> TableCandidate | None:
        """Return a table whose versions have a file each in a directory; None if it has none."""
        location = self._root.path((*levels, directory))
        entries = {each.name: each for each in self._store.entries(location) if each.kind is not EntryKind.DIRECTORY}
        versions = manifests_of(entries) if format_ == LANCE else log_versions(entries)
        if not versions:
            return None
        version = max(versions)
        file = f"{location}/{versions[version]}"
        try:
            facts = entries[versions[version]].facts or self._store.facts(file)
        except (OSError, LimnosError) as error:
            return TableCandidate(levels=levels, format=format_, problem=f"its newest version: {reason(error)}")
        return TableCandidate(levels=levels, format=format_, metadata_location=file, version=version, facts=facts)

    def _parquet(self, levels: tuple[str, ...]) -> TableCandidate | None:
        """Return a directory of Parquet files, which may lie in directories `column=value`; None if it has none."""
        newest, size, count, waiting = None, 0, 0, [levels]
        while waiting:
            inner = waiting.pop()
            for each in self._store.entries(self._root.path(inner)):
                if each.kind is EntryKind.DIRECTORY and "=" in each.name.strip("=") and len(inner) < LEVELS_MAX:
                    waiting.append((*inner, each.name))
                if not _is_parquet(each):
                    continue
                file = self._root.path((*inner, each.name))
                facts = each.facts or self._store.facts(file)
                count, size = count + 1, size + facts.size
                if newest is None or (facts.modified_ms, file) > (newest[1].modified_ms, newest[0]):
                    newest = (file, facts)
                if count > FILES_MAX:
                    raise TooLarge(f"it has more than {FILES_MAX:,} Parquet files, the most that are counted")
        if newest is None:
            return None
        # Every file counts for the comparison with the next run, so the size is that of all of them.
        return TableCandidate(
            levels=levels,
            format=PARQUET,
            metadata_location=newest[0],
            facts=FileFacts(size, newest[1].modified_ms),
            byte_count=size,
        )


@dataclass(frozen=True, slots=True)
class ListingTask:
    """The function of a task, from batches of directories to list to batches of rows."""

    root: HarvestRoot
    lister_of: Callable[[HarvestRoot], TableLister] = DirectoryLister

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """List directories, and yield rows of `SCHEMA`."""
        with closing(self.lister_of(self.root)) as lister:
            rows: list[dict[str, object]] = []
            for batch in batches:
                for levels in batch.column("levels").to_pylist():
                    rows.extend(_rows(self.root, lister.visit(tuple(levels))))
                    if len(rows) >= ROWS_AT_ONCE:
                        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
                        rows.clear()
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def visit_table(root: HarvestRoot, visit: DirectoryVisit) -> pa.Table:
    """Convert the result of a listing to rows of `SCHEMA`."""
    return pa.Table.from_pylist(_rows(root, visit), schema=SCHEMA)


def _rows(root: HarvestRoot, visit: DirectoryVisit) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [{"levels": list(levels), "is_directory": True} for levels in visit.below]
    return rows + [_row(root, each) for each in visit.candidates]


def _row(root: HarvestRoot, candidate: TableCandidate) -> dict[str, object]:
    namespace, name = root.table_name(candidate)
    problem = candidate.problem
    if problem is None and not candidate.levels:
        problem = "the root is itself a table: name the directory above it"
    if problem is None:
        problem = next((text for text in map(name_problem, (*namespace, name)) if text is not None), None)
    facts = candidate.facts
    return {
        "is_directory": False,
        "directory": plain_text(root.path(candidate.levels)),
        "format": candidate.format,
        "namespace": [plain_text(each) for each in namespace],
        "name": plain_text(name),
        "metadata_location": None if candidate.metadata_location is None else plain_text(candidate.metadata_location),
        "version": candidate.version,
        "modified_at": None if facts is None else facts.modified_ms * 1000,
        "size": None if facts is None else facts.size,
        "listed_bytes": candidate.byte_count,
        "problem": problem,
    }


def name_problem(name: str) -> str | None:
    """Return why a directory's name cannot be a name here; None if it can."""
    try:
        check_part(name)
    except InvalidName as error:
        return f"its name is not allowed: {error}"
    return None


def plain_text(text: str) -> str:
    """Return a path as text that every reader accepts: bytes that are no UTF-8 are escaped."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def reason(error: Exception) -> str:
    """Return what an error says, without the path, which the row has."""
    if isinstance(error, OSError):
        return error.strerror or str(error)[:300] or type(error).__name__
    return str(getattr(error, "message", "") or error)[:300]


def _is_parquet(entry: DirectoryEntry) -> bool:
    return entry.kind is EntryKind.FILE and entry.name.endswith(_PARQUET_SUFFIX) and entry.name[0] not in "._"


def _visible(names: set[str]) -> list[str]:
    """Return the names that Spark does not hide; one that is not a partition if it hides them all."""
    return [name for name in names if name[0] not in "._"] or [""]
