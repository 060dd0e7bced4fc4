# SPDX-License-Identifier: Apache-2.0
"""Table evolution: changes an Iceberg table by a function of its document, and retries after a commit conflict.

Must not know any wire format. The commit is the same as any client's, so its checks are in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import MetadataDocument, Node
from limnos.model.errors import CommitConflict, NotFound
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_find
from limnos.services.iceberg.commits import lost_race_pause, table_commit
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView

TRIES_MAX: Final = 50
"""The maximum number of attempts to commit a change. Each further attempt means that another commit came between
reading and committing.
"""


class EvolvedTable(NamedTuple):
    """The result of `table_evolve`: the table's node, and its document after the change."""

    node: Node
    document: MetadataDocument


async def table_evolve(
    ctx: Context,
    scope: RequestScope,
    *,
    path: Levels,
    build: Callable[[MetadataDocument], tuple[list[object], list[object]]],
) -> EvolvedTable:
    """Commit the requirements and updates that `build` makes from the stored document.

    Raises NotFound, PermissionDenied, CommitConflict, and the errors of `table_commit`.
    """

    def look(request_view: RequestView) -> EvolvedTable:
        node = table_find(request_view, path[:-1], path[-1], Action.TABLE_ALTER).entity
        return EvolvedTable(node, request_view.document(node.id))

    for attempt in range(TRIES_MAX):
        table = await ctx.read(scope, look)
        requirements, updates = build(table.document)
        if not updates:
            return table
        mine: list[object] = [{"type": "assert-table-uuid", "uuid": table.document.uuid}, *requirements]
        try:
            document, _ = await table_commit(
                ctx, scope, namespace=path[:-1], name=path[-1], requirements=mine, updates=updates
            )
        except CommitConflict:
            await lost_race_pause(attempt)
            continue
        return EvolvedTable(table.node, document)
    raise CommitConflict("Too many commits to this table at once: read it again and retry")


async def table_edit(ctx: Context, scope: RequestScope, *, path: Levels, edits: PropertyEdits) -> EvolvedTable:
    """Set and remove properties of an Iceberg table, whose comment is the property `comment`.

    Raises as `table_evolve`.
    """

    def build(document: MetadataDocument) -> tuple[list[object], list[object]]:
        properties = msgspec.json.decode(document.body, type=_Properties).properties
        sets = dict(edits.sets) | ({} if edits.comment is None else {"comment": edits.comment})
        removes = [*edits.removes, *(("comment",) if edits.clears_comment else ())]
        updates: list[object] = []
        if sets:
            updates.append({"action": "set-properties", "updates": sets})
        if missing := [name for name in removes if name in properties]:
            updates.append({"action": "remove-properties", "removals": missing})
        return [], updates

    return await table_evolve(ctx, scope, path=path, build=build)


async def column_describe(ctx: Context, scope: RequestScope, *, path: Levels, field_id: int, text: str) -> EvolvedTable:
    """Set the description of a column of an Iceberg table, nested ones included; an empty text removes it.

    Raises as `table_evolve`, and NotFound if the current schema has no field with the id.
    """

    def build(document: MetadataDocument) -> tuple[list[object], list[object]]:
        metadata = msgspec.json.decode(document.body, type=_Schemas)
        schema = next((each for each in metadata.schemas if each.get("schema-id") == metadata.current_schema_id), {})
        field = next((each for each in _fields_within(schema) if each.get("id") == field_id), None)
        if field is None:
            raise NotFound(f"The table has no column with field id {field_id}", kind="column")
        if field.get("doc", "") == text:
            return [], []
        field.pop("doc", None)
        if text:
            field["doc"] = text
        same: list[object] = [{"type": "assert-current-schema-id", "current-schema-id": metadata.current_schema_id}]
        return same, [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]

    return await table_evolve(ctx, scope, path=path, build=build)


class _Properties(msgspec.Struct, frozen=True):
    properties: dict[str, str] = {}


class _Schemas(msgspec.Struct, frozen=True, rename="kebab"):
    schemas: list[dict[str, object]] = []
    current_schema_id: int = 0


def _fields_within(part: object) -> Iterator[dict[str, object]]:
    """Yield the fields of a schema or type: of structs at any depth, also in lists and maps."""
    if not isinstance(part, dict):
        return
    for field in part.get("fields", ()):
        yield field
        yield from _fields_within(field.get("type"))
    for name in ("element", "key", "value"):
        yield from _fields_within(part.get(name))
