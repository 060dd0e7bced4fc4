# SPDX-License-Identifier: Apache-2.0
"""Writing of a Lance table from Spark: tasks write fragments, the driver commits them as one version.

Everything is checked before the first task: the caller's right, the table's location, and whether its columns accept
the data. Fragments of a failed task attempt are never committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from limnos.client import Client, ConflictError
from limnos.client.values import LanceTable
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.spark.lance.reading import without_foreign_bases
from limnos.spark.lance.server_access import LanceOptions, ServerAccess
from limnos.spark.lance.types import arrow_schema_of, as_schema, check_append


@dataclass
class WrittenFragments(WriterCommitMessage):
    """The fragments that one task wrote, as JSON."""

    fragments: tuple[str, ...]


class LanceWriteTarget(NamedTuple):
    """The target of a write: location, whether this write declared the table, and version (None without data)."""

    location: str
    options: dict[str, str]
    version: int | None
    is_new: bool
    managed: bool


def target_of(home: ServerAccess, options: LanceOptions) -> LanceWriteTarget:
    """Find the table to write, or declare it.

    Raises BadRequest for options that only a read may have, PermissionDenied without the right to write, and the
    client's errors.
    """
    if options.columns is not None or options.version is not None or options.tag is not None:
        raise BadRequest("The options columns, version and tag are for reading: leave them out of a write")
    with home.client() as client:
        table = options.find(client)
        if table is None:
            table = _declare(client, options)
            if table is not None:
                return LanceWriteTarget(
                    location=table.location,
                    options=table.storage_options,
                    version=None,
                    is_new=True,
                    managed=table.managed,
                )
            table = options.load(client)
        _require_right(client, options)
        return LanceWriteTarget(
            location=table.location,
            options=table.storage_options,
            version=table.version,
            is_new=False,
            managed=table.managed,
        )


def _declare(client: Client, options: LanceOptions) -> LanceTable | None:
    """Declare a missing table; None if another writer declared it concurrently."""
    try:
        client.lance.declare(options.path)
    except ConflictError:
        return None
    return options.load(client)


def _require_right(client: Client, options: LanceOptions) -> None:
    """Raise PermissionDenied for a caller who may read the table but not write it, because the storage does not check
    that.
    """
    decision = client.access.explain("table_commit", options.path, kind="table").decision
    if not decision.allowed:
        raise PermissionDenied(decision.message or f"{options.name} is read-only for you")


class LanceWriter(DataSourceArrowWriter):
    """The Spark data source writer that appends rows to a Lance table, or overwrites it."""

    def __init__(self, home: ServerAccess, options: LanceOptions, *, schema: StructType, overwrite: bool) -> None:
        self._target = target = target_of(home, options)
        self._home, self._asked, self._overwrite = home, options, overwrite
        try:
            if target.version is None or overwrite:
                self._schema = arrow_schema_of(schema, vectors=dict(options.vectors))
            else:
                self._schema = check_append(schema, self._open_dataset().schema)
        except BaseException:
            self._let_go()
            raise

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFragments:
        """Write the rows of one task as fragments. Without rows, writes no fragment."""
        batches = (as_schema(batch, self._schema) for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return WrittenFragments(())

        def rows() -> Iterator[pa.RecordBatch]:
            yield first
            yield from batches

        mode = "append" if self._appends else "overwrite" if self._target.version is not None else "create"
        fragments = write_fragments(
            pa.RecordBatchReader.from_batches(self._schema, rows()),
            self._target.location,
            schema=self._schema,
            mode=mode,
            storage_options=self._target.options or None,
        )
        return WrittenFragments(tuple(json.dumps(each.to_json()) for each in fragments))

    @property
    def _appends(self) -> bool:
        return self._target.version is not None and not self._overwrite

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit all fragments as one version. An append without rows commits nothing."""
        fragment_messages = [message for message in messages if isinstance(message, WrittenFragments)]
        fragments = [FragmentMetadata.from_json(each) for message in fragment_messages for each in message.fragments]
        version = self._target.version
        if version is not None and self._overwrite:
            self._commit(lance.LanceOperation.Overwrite(self._schema, fragments), version)
            return
        if version is None:
            version = self._begin()
        if fragments:
            self._commit(lance.LanceOperation.Append(fragments), version)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop the table if this write declared it.

        Fragments that tasks have written belong to no version; Lance's clean-up deletes their files.
        """
        self._let_go()

    def _let_go(self) -> None:
        if self._target.is_new:
            with self._home.client() as client:
                client.lance.deregister(self._asked.path)

    def _begin(self) -> int:
        """Create the table's first version, without rows. If another writer created it concurrently, append to that
        version.

        Raises BadRequest if that version has other columns.
        """
        table, options = self._schema.empty_table(), self._target.options or None
        if self._target.managed:
            dataset = lance.write_dataset(
                table, mode="append", namespace_client=self._home.namespace(), table_id=list(self._asked.path)
            )
        else:
            try:
                dataset = lance.write_dataset(table, self._target.location, mode="create", storage_options=options)
            except OSError as error:
                if "already exists" not in str(error):
                    raise
                dataset = self._open_dataset()
        if dataset.schema != self._schema:
            raise BadRequest(
                f"Another client has just written {self._asked.name}, with other columns: read it, and write again"
            )
        return int(dataset.version)

    def _commit(self, operation: lance.LanceOperation.BaseOperation, version: int) -> None:
        options = self._target.options or None
        if self._target.managed:
            lance.LanceDataset.commit(self._open_dataset(), operation, read_version=version, storage_options=options)
        else:
            lance.LanceDataset.commit(self._target.location, operation, read_version=version, storage_options=options)

    def _open_dataset(self) -> lance.LanceDataset:
        if self._target.managed:
            dataset = lance.dataset(namespace_client=self._home.namespace(), table_id=list(self._asked.path))
        else:
            dataset = lance.dataset(self._target.location, storage_options=self._target.options or None)
        return without_foreign_bases(dataset, self._target.location)
