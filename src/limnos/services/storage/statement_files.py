"""Files of running statements: what a statement's tables consist of is still what the server has checked.

May import the layers below. Must not know SQL++. While a job of the engine reads tables, their writers may replace a
manifest after its check, so that the job reads files of others. So the versions of these files are compared once more
before anything that the job read is given to anybody, and before anything that it wrote is committed. The engine
commits over HTTP to its own node, with the token of the statement's lock, so what a statement reads is in the node's
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from limnos.model.errors import BadRequest
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.storage.checked_files import CheckedSnapshot


class StatementFiles:
    """The checked snapshots that the running statements of a node read, by the token of the statement's lock."""

    def __init__(self) -> None:
        self._by_lock: dict[int, tuple[CheckedSnapshot, ...]] = {}

    @contextmanager
    def of_lock(self, token: int | None, snapshots: tuple[CheckedSnapshot, ...]) -> Iterator[None]:
        """Compare the files of these snapshots before each commit with a lock's token, while the block runs; no-op
        without a token.
        """
        if token is None:
            yield
            return
        self._by_lock[token] = snapshots
        try:
            yield
        finally:
            self._by_lock.pop(token, None)

    async def require_unchanged(self, ctx: Context, token: int) -> None:
        """Check the files that a statement has read, before it commits.

        Raises BadRequest if one was replaced, StorageFailed, ServiceUnavailable.
        """
        if await find_changed(ctx, self._by_lock.get(token, ())):
            raise BadRequest(
                "Files of a table were replaced while the statement read them, so it is not committed: run it again"
            )


async def find_changed(ctx: Context, snapshots: tuple[CheckedSnapshot, ...]) -> bool:
    """Return whether a manifest list or manifest was replaced after its check. Raises StorageFailed,
    ServiceUnavailable.
    """
    return any([not await each.is_unchanged(ctx) for each in snapshots])


STATEMENT_FILES: ComponentKey[StatementFiles] = ComponentKey("files of statements", lambda _: StatementFiles())
