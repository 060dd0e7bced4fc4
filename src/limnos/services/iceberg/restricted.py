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
from limnos.formats.iceberg.read_restrictions import bound_of, restricted
from limnos.model.errors import Forbidden
from limnos.services.catalog.tables import table_find, table_load
from limnos.services.request.chores import is_heavy

if TYPE_CHECKING:
    from limnos.formats.iceberg.read_restrictions import Bound
    from limnos.model.entities import Document
    from limnos.names.path import Levels
    from limnos.services.lookup.lending import Through
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene


class Sight(NamedTuple):
    """A table as far as the caller may see it: the whole document, and what restricts what they may know of it, if anything does."""

    document: Document
    bound: Bound | None = None


def table_sight(scene: Scene, path: Levels, *, through: Through = ()) -> Sight:
    """Return a table's document to who may load it, or may only have its scans planned; the second have the restrictions with it.

    Raises NotFound, Forbidden as `table_load` does; Forbidden, too, where a restriction cannot be kept any more.
    """
    try:
        return Sight(table_load(scene, path[:-1], path[-1], through))
    except Forbidden as refused:
        if not is_restricted(refused):
            raise
    return bound_sight(scene, path)


def bound_sight(scene: Scene, path: Levels) -> Sight:
    """Return a table's document, and what binds the caller, to whom restrictions alone close it. Raises NotFound, Forbidden."""
    found = table_find(scene, path[:-1], path[-1], Action.TABLE_SCAN)
    document = scene.document(found.entity.id)
    applying = [(each.restriction.name, each.restriction.terms) for each in scene.bindings_of(scene.user, found.chain)]
    return Sight(document, bound_of(applying, schema_of(document.body)))


def is_restricted(refused: Forbidden) -> bool:
    """Say whether it is read restrictions, and nothing else, that somebody was refused for."""
    factors = getattr(refused.decision, "factors", ())
    return any(factor.kind == "restricted" for factor in factors)


async def document_shown(ctx: Context, sight: Sight) -> Document:
    """Return the document as the caller may know it."""
    document, bound = sight
    if bound is None:
        return document
    if is_heavy(document):
        (body,) = await ctx.services.chores.do("iceberg-restricted", document.body, msgspec.json.encode(bound))
        metadata = iceberg_metadata.decode(body)
    else:
        metadata = restricted(iceberg_metadata.decode(document.body), bound)
        body = iceberg_metadata.encode(metadata)
    nowhere = str(metadata["location"])
    return msgspec.structs.replace(document, body=body, location=nowhere, metadata_location=f"{nowhere}/metadata.json")
