# SPDX-License-Identifier: Apache-2.0
"""Updates of partition specs: add, make default, remove.

Must not know other updates.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.formats.iceberg import partitioning
from limnos.formats.iceberg.draft import MetadataDraft, resolve_added_id
from limnos.formats.iceberg.json_types import INT_MAX, Json, integer_at, integers_at, object_at
from limnos.model.errors import BadRequest


def add_spec(draft: MetadataDraft, update: Json) -> None:
    """Add a partition spec, or reuse an existing one with the same fields.

    In later updates of the request, -1 refers to it.
    """
    spec = object_at(update, "spec", where="add-spec")
    fields = partitioning.spec_fields(spec)
    specs, content = draft.rows("partition-specs"), partitioning.content_of(fields)
    equal_spec = specs.find_same(content, lambda row: partitioning.content_of(partitioning.stored_fields(row)))
    if equal_spec is not None:
        draft.added_spec_id = integer_at(equal_spec, "spec-id", where="add-spec")
        return
    schema_columns = draft.current_columns("partition spec")
    partitioning.check_binding(fields, schema_columns)
    partitioning.check_readable(fields, schema_columns)
    fields = partitioning.with_field_ids(fields, _field_ids(draft, fields))
    _check_numbers(draft, fields)
    draft.field_ids().update((partitioning.key_of(one), one["field-id"]) for one in fields)
    draft.added_spec_id = specs.next_id(0)
    specs.append({**spec, "fields": fields, "spec-id": draft.added_spec_id}, content=content)
    draft.doc["last-partition-id"] = max(draft.integer("last-partition-id"), partitioning.highest_field_id(fields))


def _field_ids(draft: MetadataDraft, fields: list[Json]) -> Callable[[Json], int]:
    """Return a function that assigns an id to a field without one: the id of a field with the same source and transform
    in an older spec, else the next free id.

    In version 1 ids count from 1000 within each spec instead.
    """
    if draft.version == 1:
        ids_by_field = {id(one): partitioning.FIRST_FIELD_ID + index for index, one in enumerate(fields)}
        return lambda one: ids_by_field[id(one)]
    older = draft.field_ids()
    used_names = {one.get("field-id") for one in fields}
    last = max(
        draft.integer("last-partition-id"),
        partitioning.FIRST_FIELD_ID - 1,
        *(i for i in used_names if isinstance(i, int)),
    )

    def next_id(one: Json) -> int:
        nonlocal last
        reused = older.get(partitioning.key_of(one))
        if isinstance(reused, int) and reused not in used_names:
            used_names.add(reused)
            return reused
        if last >= INT_MAX:
            raise BadRequest(f"Cannot add a partition field: its id would exceed {INT_MAX}")
        last += 1
        return last

    return next_id


def _check_numbers(draft: MetadataDraft, fields: list[Json]) -> None:
    if draft.version == 1 and not partitioning.is_sequential(fields):
        raise BadRequest("Spec does not use sequential IDs that are required in v1: count field-id from 1000")


def set_default_spec(draft: MetadataDraft, update: Json) -> None:
    """Make a partition spec the default for new data; -1 is the last spec added in this request.

    Raises BadRequest for an unknown spec.
    """
    spec_id = integer_at(update, "spec-id", where="set-default-spec")
    spec_id = resolve_added_id(spec_id, draft.added_spec_id, what="partition spec", update="add-spec")
    if draft.rows("partition-specs").find(spec_id) is None:
        raise BadRequest(f"Cannot set default partition spec to unknown spec: {spec_id}")
    draft.doc["default-spec-id"] = spec_id


def remove_partition_specs(draft: MetadataDraft, update: Json) -> None:
    """Remove partition specs by id; unknown ids are ignored. Raises BadRequest for the default spec."""
    removed_ids = set(integers_at(update, "spec-ids", where="remove-partition-specs"))
    if draft.integer("default-spec-id") in removed_ids:
        raise BadRequest("Cannot remove the default partition spec; set another one as default first")
    draft.rows("partition-specs").remove(removed_ids)
