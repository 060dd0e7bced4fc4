# SPDX-License-Identifier: Apache-2.0
"""Updates of schemas: add, make current, remove.

Must not know other updates.
"""

from __future__ import annotations

from limnos.formats.iceberg.draft import MetadataDraft, resolve_added_id
from limnos.formats.iceberg.json_types import Json, integer_at, integers_at, object_at
from limnos.formats.iceberg.rows import SCANS_MAX
from limnos.formats.iceberg.schema import check_version, columns, content_of, same_schema
from limnos.formats.iceberg.stored_schemas import in_stored_form
from limnos.model.errors import BadRequest


def add_schema(draft: MetadataDraft, update: Json) -> None:
    """Add a schema, or reuse an equal one. In later updates of the request, -1 refers to it.

    The schema id and `last-column-id` in the request are ignored: the next free id is assigned, and the highest field
    id is computed.
    """
    sent_schema = object_at(update, "schema", where="add-schema")
    schema_columns = columns(sent_schema)
    schema = in_stored_form(sent_schema, schema_columns)
    check_version(schema_columns, draft.version)
    schemas, content, equal_schema = draft.rows("schemas"), b"", None
    draft.schema_updates += 1
    if draft.schema_updates <= SCANS_MAX:
        equal_schema = next((row for row in schemas if same_schema(row, schema)), None)
    else:
        content = content_of(schema)
        equal_schema = schemas.find_same(content, content_of)
    if equal_schema is not None:
        draft.added_schema_id = integer_at(equal_schema, "schema-id", where="add-schema")
        return
    schema_id = schemas.next_id(0)
    schemas.append({**schema, "schema-id": schema_id}, content=content)
    draft.doc["last-column-id"] = max(draft.integer("last-column-id"), schema_columns.highest_id)
    draft.cache_columns(schema_id, schema_columns)
    draft.added_schema_id = schema_id


def set_current_schema(draft: MetadataDraft, update: Json) -> None:
    """Make a schema current; -1 is the last schema added in this request.

    Raises BadRequest for an unknown schema.
    """
    schema_id = integer_at(update, "schema-id", where="set-current-schema")
    schema_id = resolve_added_id(schema_id, draft.added_schema_id, what="schema", update="add-schema")
    if draft.rows("schemas").find(schema_id) is None:
        raise BadRequest(f"Cannot set current schema to unknown schema: {schema_id}")
    draft.doc["current-schema-id"] = schema_id


def remove_schemas(draft: MetadataDraft, update: Json) -> None:
    """Remove schemas by id; unknown ids are ignored. Raises BadRequest for the current schema."""
    removed = set(integers_at(update, "schema-ids", where="remove-schemas"))
    if draft.integer("current-schema-id") in removed:
        raise BadRequest("Cannot remove the current schema; set another one as current first")
    draft.removed_schemas |= removed
    draft.rows("schemas").remove(removed)
