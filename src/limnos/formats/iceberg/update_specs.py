"""Updates of partition specs: add, make default, remove.

May import the standard library, `limnos.model.errors` and this package. Must not know other updates.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.formats.iceberg.draft import Draft, added_or
from limnos.formats.iceberg.json_types import Json, integer_at, integers_at, object_at
from limnos.formats.iceberg.partitioning import (
    FIRST_FIELD_ID,
    check_binding,
    compatible,
    highest_field_id,
    is_sequential,
    key_of,
    spec_fields,
    stored_fields,
    with_field_ids,
)
from limnos.model.errors import BadRequest


def add_spec(draft: Draft, update: Json) -> None:
    """Add a partition spec, or find the one that computes the same; either way it is what -1 means afterwards."""
    spec = object_at(update, "spec", where="add-spec")
    fields = spec_fields(spec)
    known = next((row for row in draft.rows("partition-specs") if compatible(stored_fields(row), fields)), None)
    if known is not None:
        draft.added_spec_id = integer_at(known, "spec-id", where="add-spec")
        return
    check_binding(fields, draft.current_columns("partition spec"), named=True)
    fields = with_field_ids(fields, _field_ids(draft, fields))
    _check_numbers(draft, fields)
    _append(draft, {**spec, "fields": fields}, highest=highest_field_id(fields))


def _append(draft: Draft, spec: Json, *, highest: int) -> None:
    specs = draft.edit_rows("partition-specs")
    spec_id = 1 + max((integer_at(row, "spec-id", where="add-spec") for row in specs), default=-1)
    specs.append({**spec, "spec-id": spec_id})
    draft.doc["last-partition-id"] = max(draft.integer("last-partition-id"), highest)
    draft.added_spec_id = spec_id


def _field_ids(draft: Draft, fields: list[Json]) -> Callable[[Json], int]:
    """How fields without an id get one: that of the same source and transform in an older spec, else the next free.

    Version 1 counts from 1000 within each spec instead.
    """
    if draft.version == 1:
        places = {id(one): FIRST_FIELD_ID + place for place, one in enumerate(fields)}
        return lambda one: places[id(one)]
    older = {key_of(one): one.get("field-id") for row in draft.rows("partition-specs") for one in stored_fields(row)}
    taken = {one.get("field-id") for one in fields}
    last = max(draft.integer("last-partition-id"), FIRST_FIELD_ID - 1, *(i for i in taken if isinstance(i, int)))

    def next_id(one: Json) -> int:
        nonlocal last
        reused = older.get(key_of(one))
        if isinstance(reused, int) and reused not in taken:
            taken.add(reused)
            return reused
        last += 1
        return last

    return next_id


def _check_numbers(draft: Draft, fields: list[Json]) -> None:
    if draft.version == 1 and not is_sequential(fields):
        raise BadRequest("Spec does not use sequential IDs that are required in v1: count field-id from 1000")


def set_default_spec(draft: Draft, update: Json) -> None:
    """Make a partition spec the default for new data; -1 is the one added last in this request."""
    chosen = integer_at(update, "spec-id", where="set-default-spec")
    chosen = added_or(chosen, draft.added_spec_id, what="partition spec", update="add-spec")
    if draft.find("partition-specs", "spec-id", chosen) is None:
        raise BadRequest(f"Cannot set default partition spec to unknown spec: {chosen}")
    draft.doc["default-spec-id"] = chosen


def remove_partition_specs(draft: Draft, update: Json) -> None:
    """Remove partition specs by id. The default one cannot be removed; unknown ids are ignored."""
    gone = set(integers_at(update, "spec-ids", where="remove-partition-specs"))
    if draft.integer("default-spec-id") in gone:
        raise BadRequest("Cannot remove the default partition spec; set another one as default first")
    kept = [row for row in draft.rows("partition-specs") if row.get("spec-id") not in gone]
    if len(kept) < len(draft.rows("partition-specs")):
        draft.put_rows("partition-specs", kept)
