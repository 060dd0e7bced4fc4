# SPDX-License-Identifier: Apache-2.0
"""Dataset metadata for AsterixDB's connectors: a dataset's key, its type and its location.

Must not know any wire format. The caller needs the right to load the table.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.declarations import declarations_of
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.metadata import type_of_dataset
from limnos.rooms.sqlpp.services.definitions.datasets import ref_of
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.services.request.context import Context
from limnos.services.request.request_view import RequestView


class DatasetInfo(NamedTuple):
    """A dataset: the field paths of its primary key, its type with name, and the location of its table."""

    keys: tuple[tuple[str, ...], ...]
    type_name: Levels
    type: tree.RecordType | None
    location: str


async def dataset_info(ctx: Context, path: Levels) -> DatasetInfo:
    """Return the metadata of a dataset; the type is None for a table that SQL++ did not create.

    Raises NotFound if the caller may not know the dataset, PermissionDenied if the caller may not load it.
    """

    def read(request_view: RequestView) -> DatasetInfo:
        request_view.require_in_use()
        node = request_view.look_up(Kind.TABLE, path, Action.TABLE_LOAD, probe=Action.TABLE_MAY_PROBE).entity
        ref, datasets = ref_of(request_view, node, path=path), declarations_of(node, tree.CreateDataset)
        name = type_of_dataset(path, datasets[0].type) if datasets else ("Metadata", "AnyObject")
        return DatasetInfo(
            ref.key, name, type_of(ref.type) if ref.type else None, request_view.document(node.id).location
        )

    return await ctx.read(scope_of(ctx), read)
