# SPDX-License-Identifier: Apache-2.0
"""Replacement of views: requirements, updates, and the resulting metadata. The base document is never changed.

Must not know files or stores. Source: Iceberg REST specification, schemas ViewUpdate and ViewRequirement. Ids, trimming
of versions and dialects follow the reference implementation, and so do messages that its compatibility kit searches
for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from limnos.formats.iceberg import view_metadata
from limnos.formats.iceberg.class_properties import refuse_view_classes
from limnos.formats.iceberg.client_times import AHEAD_MS, check_time
from limnos.formats.iceberg.draft import resolve_added_id
from limnos.formats.iceberg.json_types import (
    Json,
    as_objects,
    as_string_map,
    integer_at,
    object_at,
    preview_value,
    string_at,
    string_map_at,
    strings_at,
    text_at,
    without_nulls,
)
from limnos.formats.iceberg.metadata import properties_of, rows, strip_slash
from limnos.formats.iceberg.rows import SCANS_MAX
from limnos.formats.iceberg.schema import columns, content_of, same_schema
from limnos.formats.iceberg.stored_schemas import in_stored_form
from limnos.formats.iceberg.update_properties import check_codec
from limnos.formats.iceberg.view_metadata import HERE, VERSION, check_version, current_version, dialects, history_size
from limnos.model.errors import BadRequest, CommitConflict

UPDATES_MAX = 1000
LAST_ADDED = -1
_SAME = ("schema-id", "default-catalog", "default-namespace", "representations")


@dataclass(slots=True, kw_only=True)
class ViewDraft:
    """A view's metadata during one request. `doc` is a shallow copy: replace its values, never modify them."""

    doc: Json
    now_ms: int
    ahead_ms: int = AHEAD_MS
    added_schema_id: int | None = None
    added_version_id: int | None = None
    new_versions: list[int] = field(default_factory=list)
    switched_ms: int | None = None
    """The time at which this request changes the current version, for the log."""
    schema_updates: int = 0

    def rows(self, key: str) -> list[Json]:
        """Return a list of objects in the document, for reading only."""
        return rows(self.doc, key)


def new_view(
    *, uuid: str, location: str, schema: Json, version: Json, properties: object, now_ms: int, ahead_ms: int = AHEAD_MS
) -> Json:
    """Return the metadata of a new view.

    Its first version has id 1 and its schema id 0, regardless of the ids in the request. Field ids of the request are
    not changed, because no file refers to them. `now_ms` is milliseconds since 1970. Raises BadRequest for an invalid
    schema, version or property, also for a property that names a class.
    """
    requested = {} if properties is None else as_string_map(properties, "Field 'properties'")
    check_codec(requested)
    refuse_view_classes(requested)
    doc: Json = {"view-uuid": uuid, "format-version": VERSION, "location": strip_slash(location), "schemas": []}
    doc |= {"current-version-id": LAST_ADDED, "versions": [], "version-log": [], "properties": dict(requested)}
    draft = ViewDraft(doc=doc, now_ms=now_ms, ahead_ms=ahead_ms)
    _add_schema(draft, {"schema": schema})
    _add_version(draft, {"view-version": {**version, "schema-id": LAST_ADDED}})
    _set_current(draft, {"view-version-id": LAST_ADDED})
    return _finish(draft, None)


def check(base: Json, requirements: list[object]) -> None:
    """Check all requirements.

    Raises CommitConflict if a requirement is not met, BadRequest for an unknown requirement.
    """
    for one in as_objects(requirements, "Field 'requirements'"):
        kind = string_at(one, "type", where="Requirement")
        if kind != "assert-view-uuid":
            raise BadRequest(f"Unknown requirement type '{preview_value(kind)}' for a view; known is assert-view-uuid")
        text, has = text_at(one, "uuid", where=kind), string_at(base, "view-uuid", where=HERE)
        if text.lower() != has.lower():
            raise CommitConflict(
                f"Requirement failed: view UUID does not match: expected {has} != {preview_value(text)}"
            )


def apply(base: Json, updates: list[object], *, now_ms: int, ahead_ms: int = AHEAD_MS) -> Json:
    """Return the metadata after a replace: `base` itself if nothing has changed, else a new document that shares its
    parts.

    Raises BadRequest for too many, unknown or invalid updates, or if a dialect is dropped without permission.
    """
    requested = as_objects(updates, "Field 'updates'")
    if len(requested) > UPDATES_MAX:
        raise BadRequest(f"A replace of a view has at most {UPDATES_MAX} updates, not {len(requested)}: send several")
    draft = ViewDraft(doc=dict(base), now_ms=now_ms, ahead_ms=ahead_ms)
    for update in requested:
        _action(update)(draft, update)
    return base if draft.doc == base else _finish(draft, base)


def writes_text(updates: list[object]) -> bool:
    """Return whether updates set the view's SQL text, even to its current text."""
    return any(one.get("action") in _TEXTUAL for one in as_objects(updates, "Field 'updates'"))


def _action(update: Json) -> Callable[[ViewDraft, Json], None]:
    name = string_at(update, "action", where="Update")
    result = ACTIONS.get(name)
    if result is None:
        raise BadRequest(f"Unknown update action '{preview_value(name)}' for a view; known are {', '.join(ACTIONS)}")
    return result


def _assign_uuid(draft: ViewDraft, update: Json) -> None:
    text, current_uuid = text_at(update, "uuid", where="assign-uuid"), str(draft.doc["view-uuid"])
    if text.lower() != current_uuid.lower():
        raise BadRequest(f"Cannot reassign uuid: the view has {current_uuid}, the update says {preview_value(text)}")


def _upgrade(draft: ViewDraft, update: Json) -> None:
    version = integer_at(update, "format-version", where="upgrade-format-version")
    former_version = integer_at(draft.doc, "format-version", where=HERE)
    if version < former_version:
        raise BadRequest(f"Cannot downgrade v{former_version} view to v{version}")
    if version > VERSION:
        raise BadRequest(f"Cannot upgrade view to unsupported format version: v{version} (supported: v{VERSION})")


def _add_schema(draft: ViewDraft, update: Json) -> None:
    """Add a schema, or reuse an equal one. The schema id in the request is ignored."""
    sent_schema = object_at(update, "schema", where="add-schema")
    schema = in_stored_form(sent_schema, columns(sent_schema))
    schemas = draft.rows("schemas")
    draft.schema_updates += 1
    if draft.schema_updates <= SCANS_MAX:
        same = next((row for row in schemas if same_schema(row, schema)), None)
    else:
        content = content_of(schema)
        same = next((row for row in schemas if content_of(row) == content), None)
    if same is None:
        same = {**schema, "schema-id": _next_id(schemas, "schema-id", first=0)}
        draft.doc["schemas"] = [*schemas, same]
    draft.added_schema_id = integer_at(same, "schema-id", where="add-schema")


def _add_version(draft: ViewDraft, update: Json) -> None:
    """Add a version, or reuse one with equal content. The version id in the request is ignored.

    Raises BadRequest for a malformed version, an unknown schema, or a time in the future.
    """
    version = object_at(update, "view-version", where="add-view-version")
    check_version(version)
    schema_id = integer_at(version, "schema-id", where="Invalid view version")
    schema_id = resolve_added_id(schema_id, draft.added_schema_id, what="schema", update="add-schema")
    if all(row.get("schema-id") != schema_id for row in draft.rows("schemas")):
        raise BadRequest(f"Cannot add version with unknown schema: {schema_id}")
    version = {"summary": {}, **without_nulls(version), "schema-id": schema_id}
    versions = draft.rows("versions")
    same = next((row for row in versions if _same_version(row, version)), None)
    if same is None:
        at = integer_at(version, "timestamp-ms", where="Invalid view version")
        check_time(at, latest_ms=draft.now_ms + draft.ahead_ms, what="view version timestamp")
        version_id = _next_id(versions, "version-id", first=1)
        draft.doc["versions"] = [*versions, {**version, "version-id": version_id}]
        draft.new_versions.append(version_id)
        draft.added_version_id = version_id
        return
    draft.added_version_id = integer_at(same, "version-id", where=HERE)


def _same_version(one: Json, other: Json) -> bool:
    """Return whether two versions have equal content; ids and times are ignored."""
    return all(one.get(key) == other.get(key) for key in _SAME) and (one.get("summary") or {}) == other.get("summary")


def _set_current(draft: ViewDraft, update: Json) -> None:
    """Make a version current; -1 is the last version added in this request.

    Raises BadRequest for an unknown version.
    """
    version_id = integer_at(update, "view-version-id", where="set-current-view-version")
    version_id = resolve_added_id(version_id, draft.added_version_id, what="view version", update="add-view-version")
    if version_id == draft.doc.get("current-version-id"):
        return
    fields = next((row for row in draft.rows("versions") if row.get("version-id") == version_id), None)
    if fields is None:
        raise BadRequest(f"Cannot set current version to unknown version: {version_id}")
    draft.doc["current-version-id"] = version_id
    is_new = version_id in draft.new_versions
    draft.switched_ms = integer_at(fields, "timestamp-ms", where=HERE) if is_new else draft.now_ms


def _next_id(known: list[Json], key: str, *, first: int) -> int:
    return max((integer_at(row, key, where=HERE) for row in known), default=first - 1) + 1


def _set_location(draft: ViewDraft, update: Json) -> None:
    draft.doc["location"] = strip_slash(text_at(update, "location", where="set-location"))


def _set_properties(draft: ViewDraft, update: Json) -> None:
    """Set properties. The key `updated` of early clients is accepted for `updates`."""
    key = "updated" if "updates" not in update and "updated" in update else "updates"
    string_map = string_map_at(update, key, where="set-properties")
    check_codec(string_map)
    refuse_view_classes(string_map)
    draft.doc["properties"] = properties_of(draft.doc) | string_map


def _remove_properties(draft: ViewDraft, update: Json) -> None:
    """Remove properties; missing ones are ignored."""
    key = "removed" if "removals" not in update and "removed" in update else "removals"
    names = set(strings_at(update, key, where="remove-properties"))
    draft.doc["properties"] = {name: value for name, value in properties_of(draft.doc).items() if name not in names}


ACTIONS: dict[str, Callable[[ViewDraft, Json], None]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade,
    "add-schema": _add_schema,
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "add-view-version": _add_version,
    "set-current-view-version": _set_current,
}
_TEXTUAL = frozenset(("add-view-version", "set-current-view-version"))


def _finish(draft: ViewDraft, base: Json | None) -> Json:
    """Return the finished document: with an entry in the version log and expired versions removed.

    Raises BadRequest if a dialect was dropped, unless the property `replace.drop-dialect.allowed` permits that.
    """
    doc = draft.doc
    if draft.switched_ms is not None:
        entry: Json = {"timestamp-ms": draft.switched_ms, "version-id": doc["current-version-id"]}
        doc["version-log"] = [*draft.rows("version-log"), entry]
        if base is not None and not view_metadata.may_drop_dialect(doc):
            _keep_dialects(current_version(base), current_version(doc))
    _trim(doc, max(len(draft.new_versions), history_size(doc)))
    return doc


def _keep_dialects(before: Json, after: Json) -> None:
    had, has = dialects(before), dialects(after)
    if not set(had) <= set(has):
        raise BadRequest(
            f"Cannot replace view due to loss of view dialects ({view_metadata.DROP_DIALECT}=false):\n"
            f"Previous dialects: [{', '.join(had)}]\nNew dialects: [{', '.join(has)}]"
        )


def _trim(doc: Json, count: int) -> None:
    """Expire old versions of a view: keep the current one and the newest, `count` in total.

    All entries of the version log up to the last entry with an expired version are removed.
    """
    versions = rows(doc, "versions")
    if len(versions) <= count:
        return
    current = doc["current-version-id"]
    newest = sorted((integer_at(row, "version-id", where=HERE) for row in versions), reverse=True)
    entries = {current, *[each for each in newest if each != current][: count - 1]}
    doc["versions"] = [row for row in versions if row.get("version-id") in entries]
    log: list[Json] = []
    for entry in rows(doc, "version-log"):
        if entry.get("version-id") in entries:
            log.append(entry)
        else:
            log.clear()
    doc["version-log"] = log
