# SPDX-License-Identifier: Apache-2.0
"""The files of Lance tables, as the kernel and other rooms read them: a component of the node, which the room of Lance
has.

Must not know Lance's library or worker processes. A node without the component refuses every call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from limnos.access.actions import Action
from limnos.formats.lance_contents import DirectoryContents, LanceDescription
from limnos.model.entities import Node
from limnos.model.errors import UnsupportedOperation
from limnos.model.permits import Permit
from limnos.model.previews import PreviewRequest, TablePreview
from limnos.names.path import Levels
from limnos.services.lance.directories import CatalogDirectory, catalog_directory_of
from limnos.services.lance.tables import LanceTable, lance_find
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.store.tx import Tx


class NewVersion(NamedTuple):
    """A staged version of a table, which a client asks the server to commit."""

    version: int
    path: str
    size: int | None
    e_tag: str | None
    metadata: str
    branch: str


class StagedVersion(Protocol):
    """A staged version of a table whose manifest was checked."""

    @property
    def table_id(self) -> int:
        """The id of the table to which it belongs."""

    @property
    def is_committed(self) -> bool:
        """Whether an earlier identical request has committed it."""

    @property
    def mutation(self) -> Callable[[Tx, Permit[object]], object]:
        """The mutation that commits it, under a permit about `command`."""

    def command(self, table: Node) -> object:
        """Return the command of the mutation for the node of the table."""

    async def publish(self, result: object) -> None:
        """Give the manifest its final name. `result` is that of the mutation; None if it did not run."""


class TableDescription(NamedTuple):
    """The description of a table: its node from the store, and `details` from its files.

    `is_declared` is None if the files were not read.
    """

    table: LanceTable
    is_declared: bool | None
    details: LanceDescription | None


class LanceFiles(Protocol):
    """Reads and checks the files of Lance tables."""

    async def describe(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> TableDescription:
        """Describe the newest version of a table, of the tree or of a catalog's directory.

        Raises NotFound, PermissionDenied, InvalidTable, StorageFailed, UnsupportedOperation.
        """

    async def preview(
        self, ctx: Context, scope: RequestScope, *, path: Levels, preview_request: PreviewRequest
    ) -> TablePreview:
        """Return the first rows of a table that the caller may read. `snapshot_id` is its version.

        Raises NotFound (also of a version), PermissionDenied, BadRequest (limits, unknown columns), StorageFailed,
        InvalidTable, ServiceUnavailable, UnsupportedOperation.
        """

    async def directory_open(self, ctx: Context, directory: CatalogDirectory) -> DirectoryContents:
        """List the content of a catalog's directory, for a caller who after that still may do the action.

        Raises OutsideRoots, BadRequest, StorageMisconfigured, StorageFailed, InvalidTable, PermissionDenied, NotInUse,
        UnsupportedOperation.
        """

    async def register(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, location: str, properties: dict[str, str]
    ) -> None:
        """Create a table from existing files.

        Raises NotFound, AlreadyExists, OutsideRoots, InvalidTable, BadRequest, PermissionDenied, UnsupportedOperation.
        """

    async def check_version(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, new_version: NewVersion
    ) -> StagedVersion:
        """Check the staged manifest of a version, and complete earlier commits of its table. The caller must be in the
        table's queue. Raises NotFound, PermissionDenied, BadRequest, InvalidTable, UnsupportedOperation.
        """


class NoLanceFiles:
    """The null implementation, for a node without the room of Lance. It refuses what the caller may do, and hides
    objects as the room does.
    """

    async def describe(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> TableDescription:
        """Raise UnsupportedOperation; NotFound or PermissionDenied as the room does."""
        await _require(ctx, scope, levels=levels, action=Action.TABLE_LOAD)
        raise _refusal()

    async def preview(
        self, ctx: Context, scope: RequestScope, *, path: Levels, preview_request: PreviewRequest
    ) -> TablePreview:
        """Raise UnsupportedOperation; NotFound or PermissionDenied as the room does."""
        del preview_request
        await _require(ctx, scope, levels=path, action=Action.TABLE_READ)
        raise _refusal()

    async def directory_open(self, ctx: Context, directory: CatalogDirectory) -> DirectoryContents:
        """Raise UnsupportedOperation."""
        del ctx, directory
        raise _refusal()

    async def register(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, location: str, properties: dict[str, str]
    ) -> None:
        """Raise UnsupportedOperation."""
        del ctx, scope, levels, location, properties
        raise _refusal()

    async def check_version(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, new_version: NewVersion
    ) -> StagedVersion:
        """Raise UnsupportedOperation."""
        del ctx, scope, levels, new_version
        raise _refusal()


async def _require(ctx: Context, scope: RequestScope, *, levels: Levels, action: Action) -> None:
    """Refuse callers who may not do the action on a table, or on a catalog's directory."""
    await ctx.read(
        scope,
        lambda request_view: (
            catalog_directory_of(request_view, action) or lance_find(request_view, levels, action=action)
        ),
    )


def _refusal() -> UnsupportedOperation:
    return UnsupportedOperation("This server does not read the files of Lance tables: it does not serve Lance REST")


LANCE_FILES: ComponentKey[LanceFiles] = ComponentKey("files of Lance tables", lambda _: NoLanceFiles())
