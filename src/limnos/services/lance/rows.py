"""The rows of one Lance table, for whoever asks about them: what may be asked, and how a table of the tree answers.

May import the rooms below. Knows no wire format. A table of a directory that is served as it lies answers the same (`services.lance.folders`): so whoever
decodes what is asked has not to know where the table is, or who says that it may be done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from limnos.access.actions import Action
from limnos.services.lance import row_operations as lance_data

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from limnos.names.path import Levels
    from limnos.services.lance.table_description import VersionReference
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestScope
    from limnos.sources.lance.questions import LanceQuestion, LanceWriteResult, Merge, Query, Write

T = TypeVar("T")


class LanceRows(Protocol):
    """One table. Whatever is asked raises NotFound (table, version, tag, branch, …), BadRequest, and what the table's processes refuse with."""

    @property
    def batch_bytes_max(self) -> int:
        """Largest batch that is taken, in bytes when it is decoded."""
        ...

    @property
    def body_bytes_max(self) -> int:
        """Most bytes of rows in one request; 0 for no limit."""
        ...

    async def told(self, question: LanceQuestion, *, at: VersionReference, shape: type[T], reads: bool = False) -> T:
        """Have something told; `reads` where that tells of rows."""
        ...

    async def changed(self, question: LanceQuestion, *, at: VersionReference, shape: type[T]) -> T:
        """Have the table changed. Raises AlreadyExists (index), SchemaMismatch, CommitConflict."""
        ...

    async def query(self, query: Query, *, at: VersionReference) -> AsyncGenerator[bytes, None]:
        """Find rows: an Arrow file in pieces, of which the first one is made already."""
        ...

    async def explain(self, query: Query, *, at: VersionReference, verbose: bool = False, runs: bool = False) -> str:
        """Tell how a query would be done; with `runs` do it, and tell how it went."""
        ...

    async def feed(
        self, question: Write | Merge, *, branch: str | None, body: AsyncGenerator[bytes, None]
    ) -> LanceWriteResult:
        """Have the table changed by the rows in a body. Raises SchemaMismatch, BadRequest for a body that did not end, CommitConflict."""
        ...


class TreeRows:
    """The rows of a table of the tree, for whoever may do that to it."""

    def __init__(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> None:
        self._ctx = ctx
        self._scope = scope
        self._levels = levels

    @property
    def batch_bytes_max(self) -> int:
        """Largest batch that is taken."""
        return self._ctx.services.defaults.lance_batch_bytes_max

    @property
    def body_bytes_max(self) -> int:
        """Most bytes of rows in one request."""
        return self._ctx.services.defaults.lance_body_bytes_max

    async def told(self, question: LanceQuestion, *, at: VersionReference, shape: type[T], reads: bool = False) -> T:
        """Have something told. Raises PermissionDenied, too, as all below."""
        action = Action.TABLE_READ if reads else Action.TABLE_LOAD
        return await lance_data.ask_files(
            self._ctx, self._scope, levels=self._levels, at=at, question=question, shape=shape, action=action
        )

    async def changed(self, question: LanceQuestion, *, at: VersionReference, shape: type[T]) -> T:
        """Have the table changed."""
        return await lance_data.change_files(
            self._ctx, self._scope, levels=self._levels, at=at, question=question, shape=shape
        )

    async def query(self, query: Query, *, at: VersionReference) -> AsyncGenerator[bytes, None]:
        """Find rows."""
        return await lance_data.rows_query(self._ctx, self._scope, levels=self._levels, at=at, question=query)

    async def explain(self, query: Query, *, at: VersionReference, verbose: bool = False, runs: bool = False) -> str:
        """Tell how a query would be done, or went."""
        return await lance_data.query_explain(
            self._ctx, self._scope, levels=self._levels, at=at, query=query, verbose=verbose, runs=runs
        )

    async def feed(
        self, question: Write | Merge, *, branch: str | None, body: AsyncGenerator[bytes, None]
    ) -> LanceWriteResult:
        """Have the table changed by the rows in a body."""
        return await lance_data.rows_write(
            self._ctx, self._scope, levels=self._levels, branch=branch, question=question, body=body
        )
