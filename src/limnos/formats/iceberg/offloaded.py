# SPDX-License-Identifier: Apache-2.0
"""CPU-intensive work on metadata as pure functions from bytes to bytes, for worker processes that can be killed.

Decoding, building and encoding are done together here, so that the server never decodes a large request or document.
The server receives an outline (the few fields that it uses) and the document's bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from limnos.formats.iceberg import (
    current_files,
    file_lists,
    mending,
    named_paths,
    read_restrictions,
    requirements,
    row_filters,
    updates,
    view_metadata,
    view_updates,
)
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.client_times import AHEAD_MS
from limnos.formats.iceberg.create import new_table
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.registered_metadata import check_registrable
from limnos.formats.iceberg.repeated_commits import build
from limnos.formats.iceberg.scan_modes import scan_mode
from limnos.model.errors import BadRequest

if TYPE_CHECKING:
    from pyparsing import ParseException

OUTLINE = (
    "table-uuid",
    "view-uuid",
    "location",
    "properties",
    "metadata-log",
    "current-snapshot-id",
    "current-schema-id",
)


class CommitBody(msgspec.Struct):
    """The JSON body of a commit request, for a worker process."""

    requirements: list[object] = []
    updates: list[object] = []


class CreateBody(msgspec.Struct, rename="kebab"):
    """The fields of a create request's body that go into metadata."""

    schema: dict[str, object]
    partition_spec: object = None
    write_order: object = None
    properties: dict[str, str] | None = None


class CreateViewBody(msgspec.Struct, rename="kebab"):
    """The fields of a view create request's body that go into metadata."""

    schema: dict[str, object]
    view_version: dict[str, object]
    properties: dict[str, str] | None = None


class CommitTerms(msgspec.Struct):
    """Arguments of a commit in a worker process, besides the metadata document and the request body."""

    uuid: str
    now_ms: int
    previous_location: str | None
    """The document's metadata file; None if the same request created the document."""
    ahead_ms: int = AHEAD_MS


class CreateTerms(msgspec.Struct):
    """Arguments of a create in a worker process, besides the request body."""

    uuid: str
    now_ms: int
    location: str
    ahead_ms: int = AHEAD_MS


B = TypeVar("B", CommitBody, CreateBody, CreateViewBody)


def _read(body: bytes, shape: type[B]) -> B:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"Malformed json request: {error}") from None


def _outline(metadata: Json) -> bytes:
    outline = {key: metadata[key] for key in OUTLINE if key in metadata}
    if "table-uuid" in metadata:
        outline["schemas"] = [iceberg_metadata.current_schema(metadata)]
    return msgspec.json.encode(outline)


def _encode_document(metadata: Json) -> list[bytes]:
    """Return the outline, the document's JSON bytes, and the gzip-compressed bytes (empty unless the table's properties
    require compression).
    """
    body = iceberg_metadata.encode(metadata)
    return [_outline(metadata), body, iceberg_metadata.pack(body) if iceberg_metadata.wants_gzip(metadata) else b""]


def commit(body: bytes, request: bytes, terms: bytes) -> list[bytes]:
    """Apply a commit to a document.

    Returns an empty list if nothing changes; otherwise the old outline, the new outline, the bytes and the compressed
    bytes.
    """
    commit_body, commit_terms = _read(request, CommitBody), msgspec.json.decode(terms, type=CommitTerms)
    base = iceberg_metadata.with_uuid(iceberg_metadata.decode(body), commit_terms.uuid)
    new = build(
        base,
        commit_body.requirements,
        commit_body.updates,
        now_ms=commit_terms.now_ms,
        previous_location=commit_terms.previous_location,
        ahead_ms=commit_terms.ahead_ms,
    )
    return [] if new is base else [_outline(base), *_encode_document(new)]


def commit_create(request: bytes, times: bytes) -> list[bytes]:
    """Build the table of a staged create. Returns outline, bytes, compressed bytes.

    `times`: the current time, and the maximum time by which clients' clocks may be ahead, in milliseconds, separated by
    a space.
    """
    now_ms, ahead_ms = map(int, times.split())
    body = _read(request, CommitBody)
    requirements.check(None, body.requirements)
    return _encode_document(updates.apply(None, body.updates, now_ms=now_ms, previous_location=None, ahead_ms=ahead_ms))


def create(request: bytes, terms: bytes) -> list[bytes]:
    """Build a new table. Returns outline, bytes, compressed bytes."""
    body, create_terms = _read(request, CreateBody), msgspec.json.decode(terms, type=CreateTerms)
    metadata = new_table(
        uuid=create_terms.uuid,
        location=create_terms.location,
        schema=body.schema,
        partition_spec=body.partition_spec,
        write_order=body.write_order,
        properties=body.properties,
        now_ms=create_terms.now_ms,
    )
    return _encode_document(metadata)


def register(data: bytes, terms: bytes) -> list[bytes]:
    """Check a metadata file. Returns outline and bytes, with the given uuid if the file has none, and its paths of
    files.

    `terms`: the uuid, and the latest allowed time of its logs in milliseconds, separated by a space.
    """
    uuid, latest_ms = terms.split()
    metadata = iceberg_metadata.decode(data)
    check_registrable(metadata, latest_ms=int(latest_ms))
    paths = msgspec.json.encode(named_paths.named_paths(metadata))
    return [*_encode_document(iceberg_metadata.with_uuid(metadata, uuid.decode()))[:2], paths]


def view_create(request: bytes, terms: bytes) -> list[bytes]:
    """Build a new view. Returns outline, bytes, compressed bytes."""
    body, create_terms = _read(request, CreateViewBody), msgspec.json.decode(terms, type=CreateTerms)
    metadata = view_updates.new_view(
        uuid=create_terms.uuid,
        location=create_terms.location,
        schema=body.schema,
        version=body.view_version,
        properties=body.properties,
        now_ms=create_terms.now_ms,
        ahead_ms=create_terms.ahead_ms,
    )
    return _encode_document(metadata)


def view_commit(body: bytes, request: bytes, terms: bytes) -> list[bytes]:
    """Apply a commit that replaces a view to the view's document.

    The first part returned is `text` if the request sets the view's SQL text, else empty. If anything changes, the
    parts of `commit` follow.
    """
    commit_body, commit_terms = _read(request, CommitBody), msgspec.json.decode(terms, type=CommitTerms)
    base = iceberg_metadata.decode(body)
    view_updates.check(base, commit_body.requirements)
    new = view_updates.apply(base, commit_body.updates, now_ms=commit_terms.now_ms, ahead_ms=commit_terms.ahead_ms)
    data = b"text" if view_updates.writes_text(commit_body.updates) else b""
    return [data] if new is base else [data, _outline(base), *_encode_document(new)]


def view_register(data: bytes, latest_ms: bytes) -> list[bytes]:
    """Check a view's metadata file. Returns outline and bytes."""
    metadata = iceberg_metadata.decode(data)
    view_metadata.check_registrable(metadata, latest_ms=int(latest_ms))
    return _encode_document(metadata)[:2]


def relocate(body: bytes, location: bytes) -> list[bytes]:
    """Set the location in a metadata document.

    Returns the document's bytes, and its compressed bytes (empty unless required).
    """
    return _encode_document({**iceberg_metadata.decode(body), "location": location.decode()})[1:]


def reader_problems(body: bytes) -> list[bytes]:
    """Search a table's document for what some readers refuse. Returns the descriptions as a JSON list of strings."""
    problems = mending.find_problems(iceberg_metadata.decode(body))
    return [msgspec.json.encode([mending.describe_problem(each) for each in problems])]


def refs_only(body: bytes) -> list[bytes]:
    """Reduce a document to the snapshots that references point to (`snapshots=refs`). Returns its bytes."""
    return [iceberg_metadata.encode(iceberg_metadata.refs_only(iceberg_metadata.decode(body)))]


def filter_read(text: bytes) -> list[bytes]:
    """Parse a row filter in SQL syntax and return its normal form. Raises BadRequest for invalid syntax, or too many
    conditions or levels.
    """
    from pyiceberg.expressions.parser import parse  # noqa: PLC0415 - slow to load, and rarely needed
    from pyparsing import ParseException  # noqa: PLC0415 - as above

    try:
        expression = parse(text.decode())
    except RecursionError:
        raise BadRequest(f"A row filter has at most {row_filters.DEPTH_MAX} levels: write it flatter") from None
    except (ParseException, ValueError) as error:
        raise BadRequest(_filter_problem(text.decode(), error)) from None
    result = msgspec.json.decode(expression.model_dump_json())
    return [msgspec.json.encode(row_filters.filter_read(result))]


_FUNCTION_CALL = re.compile(r"\b(?!in\b|and\b|or\b|not\b)(\w+)\s*\(", re.IGNORECASE)


def _filter_problem(text: str, error: ValueError | ParseException) -> str:
    """Return what is wrong with a row filter, and what conditions there are; without the parser's grammar."""
    call = _FUNCTION_CALL.search(text)
    if call is not None:
        cause = f"functions, such as {call[1]}(), are not supported"
    elif '"' in text and "'" not in text:
        cause = "a text is written in single quotes; double quotes are for names of columns"
    else:
        at = getattr(error, "loc", 0)
        cause = f"it cannot be read from '{text[at : at + 20].strip()}' on"
    return (
        f"This is not a condition on columns, such as region = 'EU' and amount < 100: {cause}. Conditions compare a"
        " column with a value (=, <>, <, <=, >, >=, IN, BETWEEN, LIKE 'abc%', IS NULL, IS NAN), joined by AND, OR, NOT"
    )


def restrict(body: bytes, bound: bytes) -> list[bytes]:
    """Reduce a metadata document to the parts visible to a restricted user. `bound`: `BoundRestrictions` as JSON."""
    terms = msgspec.json.decode(bound, type=read_restrictions.BoundRestrictions)
    return [iceberg_metadata.encode(read_restrictions.restrict_metadata(iceberg_metadata.decode(body), terms))]


def reading_shape(body: bytes) -> list[bytes]:
    """Reduce a document to the parts that are needed to read its files."""
    return [msgspec.json.encode(read_restrictions.reading_shape(iceberg_metadata.decode(body)))]


OFFLOADED_WORK: Mapping[str, Callable[..., list[bytes]]] = {
    "iceberg-commit": commit,
    "iceberg-commit-create": commit_create,
    "iceberg-create": create,
    "iceberg-register": register,
    "iceberg-relocate": relocate,
    "iceberg-reader-problems": reader_problems,
    "iceberg-refs-only": refs_only,
    "iceberg-scan-mode": scan_mode,
    "iceberg-filter": filter_read,
    "iceberg-restricted": restrict,
    "iceberg-reading-shape": reading_shape,
    "iceberg-view-create": view_create,
    "iceberg-view-commit": view_commit,
    "iceberg-view-register": view_register,
    "iceberg-manifests": file_lists.offloaded_manifests,
    "iceberg-files": file_lists.offloaded_files,
    "iceberg-added": file_lists.offloaded_added,
    "iceberg-snapshots": file_lists.offloaded_snapshots,
    "iceberg-document-files": current_files.offloaded_document_files,
    "iceberg-outside-paths": current_files.offloaded_outside_paths,
}
"""The functions that a worker process can run, by name. All arguments and results are bytes."""
