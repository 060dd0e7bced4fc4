# SPDX-License-Identifier: Apache-2.0
"""The components that the room of Lance gives to the kernel and to other rooms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from limnos.access.actions import Action
from limnos.formats.lance_contents import DirectoryContents
from limnos.model.entities import Node
from limnos.model.lance import LanceVersion
from limnos.model.permits import Permit
from limnos.model.previews import PreviewRequest, TablePreview
from limnos.names.path import Levels
from limnos.rooms.lance.services.catalog_directories import directory_open
from limnos.rooms.lance.services.commits import VersionDraft, publish_manifest, version_draft_of, version_insert
from limnos.rooms.lance.services.previews import lance_preview
from limnos.rooms.lance.services.table_description import VersionReference, table_describe
from limnos.rooms.lance.services.table_drafts import table_register
from limnos.services.lance.directories import CatalogDirectory
from limnos.services.lance.table_files import NewVersion, TableDescription
from limnos.services.lance.tables import lance_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.store.tx import Tx


class CheckedVersion(NamedTuple):
    """A staged version whose manifest was checked, for the table with this id."""

    table_id: int
    draft: VersionDraft

    @property
    def is_committed(self) -> bool:
        """Whether an earlier identical request has committed it."""
        return self.draft.done

    @property
    def mutation(self) -> Callable[[Tx, Permit[object]], object]:
        """The mutation that inserts its row."""
        return cast("Callable[[Tx, Permit[object]], object]", version_insert)

    def command(self, table: Node) -> object:
        """Return the command that inserts its row."""
        return self.draft.command(table)

    async def publish(self, result: object) -> None:
        """Give the manifest its final name."""
        await publish_manifest(self.draft._replace(row=result) if isinstance(result, LanceVersion) else self.draft)


class LanceTableFiles:
    """Reads the files of Lance tables by worker processes, and checks them."""

    async def describe(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> TableDescription:
        """Describe the newest version of a table. Raises as `table_describe`."""
        return await table_describe(ctx, scope, levels=levels, at=VersionReference(), detailed=True, looks=False)

    async def preview(
        self, ctx: Context, scope: RequestScope, *, path: Levels, preview_request: PreviewRequest
    ) -> TablePreview:
        """Return the first rows of a table. Raises as `lance_preview`."""
        return await lance_preview(ctx, scope, path=path, preview_request=preview_request)

    async def directory_open(self, ctx: Context, directory: CatalogDirectory) -> DirectoryContents:
        """List the content of a catalog's directory. Raises as `catalog_directories.directory_open`."""
        return await directory_open(ctx, directory)

    async def register(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, location: str, properties: dict[str, str]
    ) -> None:
        """Create a table from existing files. Raises as `table_register`."""
        await table_register(ctx, scope, levels=levels, location=location, properties=properties, overwrite=False)

    async def check_version(
        self, ctx: Context, scope: RequestScope, *, levels: Levels, new_version: NewVersion
    ) -> CheckedVersion:
        """Check a staged version, and complete earlier commits of its table. Raises as `version_draft_of`."""
        table = await ctx.read(scope, lambda request_view: lance_load(request_view, levels, action=Action.TABLE_COMMIT))
        return CheckedVersion(table.node.id, await version_draft_of(ctx, table, new_version=new_version))
