# SPDX-License-Identifier: Apache-2.0
"""Lance rows: the operations on the rows of one table, and their implementation for tables of the tree.

Must not know any wire format. `services.directory_tables` implements the same operations for a directory. So the
code that decodes requests is the same for both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, TypeVar

from limnos.access.actions import Action
from limnos.names.path import Levels
from limnos.rooms.lance.services import row_operations as lance_data
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.sources.questions import AddFields, LanceQuestion, LanceWriteResult, Merge, Query, Write
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

T = TypeVar("T")


class LanceRows(Protocol):
    """Reads and changes the rows of one Lance table."""

    @property
    def batch_bytes_max(self) -> int:
        """The maximum size of a decoded batch, in bytes."""

    @property
    def body_bytes_max(self) -> int:
        """The maximum size of the rows in one request, in bytes; 0 for no limit."""

    async def answer(self, question: LanceQuestion, *, at: VersionReference, shape: type[T], reads: bool = False) -> T:
        """Read information from the table's files, decoded as type `shape`; `reads` is true if the result contains
        rows.
        """

    async def change(self, question: LanceQuestion, *, at: VersionReference, shape: type[T]) -> T:
        """Change the table. Returns the result, decoded as type `shape`. Raises AlreadyExists (index), SchemaMismatch,
        CommitConflict.
        """

    async def query(self, query: Query, *, at: VersionReference) -> AsyncGenerator[bytes, None]:
        """Query rows: yields an Arrow file in chunks, of which the first exists when this returns."""

    async def explain(self, query: Query, *, at: VersionReference, verbose: bool = False, runs: bool = False) -> str:
        """Return the plan of a query; with `runs` execute it and return the measured plan."""

    async def feed(
        self, question: Write | Merge | AddFields, *, branch: str | None, body: AsyncGenerator[bytes, None]
    ) -> LanceWriteResult:
        """Write the rows in a body to the table.

        Raises SchemaMismatch, BadRequest for an incomplete body, CommitConflict.
        """


class TreeRows:
    """The rows of a table of the tree, under the caller's rights."""

    def __init__(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> None:
        self._ctx = ctx
        self._scope = scope
        self._levels = levels

    @property
    def batch_bytes_max(self) -> int:
        """The maximum size of a decoded batch, in bytes."""
        return self._ctx.services.defaults.lance_batch_bytes_max

    @property
    def body_bytes_max(self) -> int:
        """The maximum size of the rows in one request, in bytes; 0 for no limit."""
        return self._ctx.services.defaults.lance_body_bytes_max

    async def answer(self, question: LanceQuestion, *, at: VersionReference, shape: type[T], reads: bool = False) -> T:
        """Read information from the table's files, decoded as type `shape`. Raises PermissionDenied, as all operations
        of this class.
        """
        action = Action.TABLE_READ if reads else Action.TABLE_LOAD
        return await lance_data.ask_files(
            self._ctx, self._scope, levels=self._levels, at=at, question=question, shape=shape, action=action
        )

    async def change(self, question: LanceQuestion, *, at: VersionReference, shape: type[T]) -> T:
        """Change the table in a worker process. Returns the result, decoded as type `shape`."""
        return await lance_data.change_files(
            self._ctx, self._scope, levels=self._levels, at=at, question=question, shape=shape
        )

    async def query(self, query: Query, *, at: VersionReference) -> AsyncGenerator[bytes, None]:
        """Query rows: yields an Arrow file in chunks, of which the first exists when this returns."""
        return await lance_data.rows_query(self._ctx, self._scope, levels=self._levels, at=at, question=query)

    async def explain(self, query: Query, *, at: VersionReference, verbose: bool = False, runs: bool = False) -> str:
        """Return the plan of a query; with `runs` execute it and return the measured plan."""
        return await lance_data.query_explain(
            self._ctx, self._scope, levels=self._levels, at=at, query=query, verbose=verbose, runs=runs
        )

    async def feed(
        self, question: Write | Merge | AddFields, *, branch: str | None, body: AsyncGenerator[bytes, None]
    ) -> LanceWriteResult:
        """Write the rows in a body to the table."""
        return await lance_data.rows_write(
            self._ctx, self._scope, levels=self._levels, branch=branch, question=question, body=body
        )
