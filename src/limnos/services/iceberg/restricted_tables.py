"""What somebody gets of a table whom read restrictions bind: its columns and snapshots, and none of its files.

May import the rooms below and `formats.iceberg`. Knows no wire format. Every action that opens files is closed to them (`access.restrictions.CLOSED`), so a
door that does not ask here refuses them; those that do load the table's metadata, and plan its scans, as far as restrictions let.
Decision record 0093.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.field_ids import schema_of
from limnos.formats.iceberg.read_restrictions import bound_of, restrict_metadata
from limnos.model.errors import PermissionDenied
from limnos.services.catalog.tables import table_find, table_load
from limnos.services.request.offloaded_work import is_heavy

if TYPE_CHECKING:
    from limnos.formats.iceberg.read_restrictions import BoundRestrictions
    from limnos.model.entities import MetadataDocument
    from limnos.names.path import Levels
    from limnos.services.lookup.definer_rights import ViewChain
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView


class TableVisibility(NamedTuple):
    """A table as far as the caller may see it: the whole document, and what restricts what they may know of it, if anything does."""

    document: MetadataDocument
    bound: BoundRestrictions | None = None


def table_visibility(request_view: RequestView, path: Levels, *, through: ViewChain = ()) -> TableVisibility:
    """Return a table's document to who may load it, or may only have its scans planned; the second have the restrictions with it.

    Raises NotFound, Forbidden as `table_load` does; Forbidden, too, where a restriction cannot be kept any more.
    """
    try:
        return TableVisibility(table_load(request_view, path[:-1], path[-1], through))
    except PermissionDenied as refused:
        if not is_restricted(refused):
            raise
    return restricted_visibility(request_view, path)


def restricted_visibility(request_view: RequestView, path: Levels) -> TableVisibility:
    """Return a table's document, and what binds the caller, to whom restrictions alone close it. Raises NotFound, Forbidden."""
    found = table_find(request_view, path[:-1], path[-1], Action.TABLE_SCAN)
    document = request_view.document(found.entity.id)
    applying = [
        (each.restriction.name, each.restriction.terms)
        for each in request_view.bindings_of(request_view.user, found.chain)
    ]
    return TableVisibility(document, bound_of(applying, schema_of(document.body)))


def is_restricted(refused: PermissionDenied) -> bool:
    """Say whether it is read restrictions, and nothing else, that somebody was refused for."""
    factors = getattr(refused.decision, "factors", ())
    return any(factor.kind == "restricted" for factor in factors)


async def document_for_caller(ctx: Context, sight: TableVisibility) -> MetadataDocument:
    """Return the document as the caller may know it."""
    document, bound = sight
    if bound is None:
        return document
    if is_heavy(document):
        (body,) = await ctx.services.chores.do("iceberg-restricted", document.body, msgspec.json.encode(bound))
        metadata = iceberg_metadata.decode(body)
    else:
        metadata = restrict_metadata(iceberg_metadata.decode(document.body), bound)
        body = iceberg_metadata.encode(metadata)
    nowhere = str(metadata["location"])
    return msgspec.structs.replace(document, body=body, location=nowhere, metadata_location=f"{nowhere}/metadata.json")
