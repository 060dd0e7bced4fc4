# SPDX-License-Identifier: Apache-2.0
"""Corrections of stored documents that some readers refuse, where nothing is lost: the update `limnos-mend-metadata`.

Must not know files or stores. Releases before the checks of `registered_metadata` stored such documents. Decision
record 0195.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from limnos.formats.iceberg.draft import MetadataDraft
from limnos.formats.iceberg.json_types import Json, without_nulls
from limnos.formats.iceberg.metadata import encode, rows
from limnos.formats.iceberg.name_mappings import NAME_MAPPING, correct_name_mapping
from limnos.formats.iceberg.registered_counters import NOT_NULL, counters
from limnos.formats.iceberg.registered_metadata import ReaderProblem, find_reader_problems, highest_sequence_number
from limnos.formats.iceberg.stored_schemas import correct_schema
from limnos.formats.iceberg.update_keys import pad_key
from limnos.formats.iceberg.update_snapshots import with_operation
from limnos.formats.iceberg.view_metadata import check_readable
from limnos.model.errors import BadRequest

MEND: Final = "limnos-mend-metadata"
MENDABLE: Final = f"'limnos table mend' corrects it without losing anything (one commit with {MEND})"


def mend_metadata(draft: MetadataDraft, _: Json) -> None:
    """Correct the document so that all readers accept it. No-op if they do already.

    Raises BadRequest, with what the owner can do, for problems that cannot be corrected without losing something.
    """
    draft.settle()
    if not find_reader_problems(draft.doc):
        # The draft has lists that the stored document may lack, and a problem may be that it lacks them.
        if draft.stored is not draft.origin and draft.stored is not None and find_reader_problems(draft.stored):
            draft.is_reworded = True
        return
    corrected = _correct_document(draft.doc)
    left = find_reader_problems(corrected)
    if left:
        raise BadRequest(
            f"The table cannot be mended without losing something: {'; '.join(describe_problem(each) for each in left)}"
        )
    draft.replace_document(corrected)


def find_problems(metadata: Json) -> list[ReaderProblem]:
    """Return why some readers refuse a stored document of a table or view, each with what corrects it."""
    if "view-uuid" in metadata:
        try:
            check_readable(metadata)
        except BadRequest as error:
            return [ReaderProblem(error.message, "drop the view and create it again")]
        return []
    problems = find_reader_problems(metadata)
    if not problems:
        return []
    left = find_reader_problems(_correct_document(metadata))
    mendable = [ReaderProblem(each.reason, MENDABLE) for each in problems if each not in left]
    return mendable + left


def describe_problem(problem: ReaderProblem) -> str:
    """Return a problem and its remedy as one text."""
    return f"{problem.reason}. To correct it, {problem.remedy}"


def _correct_document(metadata: Json) -> Json:
    """Return a document that states the same as readers accept it, as far as that is possible."""
    corrected = {key: value for key, value in metadata.items() if value is not None or key not in NOT_NULL}
    try:
        for key, correct in _CORRECTIONS.items():
            if metadata.get(key) is not None:
                corrected[key] = [correct(row) for row in rows(metadata, key)]
        version = metadata.get("format-version")
        if isinstance(version, int) and version > 1:
            _correct_snapshots(corrected, version)
    except BadRequest:
        return metadata
    _correct_defaults(corrected)
    _correct_properties(corrected)
    with suppress(BadRequest):  # a schema or spec that stays unreadable has no highest id
        for key, lowest in counters(corrected):
            stated_value = corrected.get(key)
            if isinstance(stated_value, int) and stated_value < lowest:
                corrected[key] = lowest
    return corrected


def _correct_defaults(corrected: Json) -> None:
    """Leave out the default of a list that a document of version 1 does not have: readers take it from other fields."""
    if corrected.get("format-version") == 1:
        for key, default in (("schemas", "current-schema-id"), ("partition-specs", "default-spec-id")):
            if key not in corrected:
                corrected.pop(default, None)


def _correct_properties(corrected: Json) -> None:
    properties = corrected.get("properties")
    if not isinstance(properties, dict) or not isinstance(mapping := properties.get(NAME_MAPPING), str):
        return
    better = correct_name_mapping(mapping)
    if better != mapping:
        rest = {key: value for key, value in properties.items() if key != NAME_MAPPING}
        corrected["properties"] = rest if better is None else {**rest, NAME_MAPPING: better}


def _correct_snapshots(corrected: Json, version: int) -> None:
    """Complete summaries, remove repeated equal snapshots, and raise the last sequence number to theirs."""
    if corrected.get("snapshots") is not None:
        snapshots = [with_operation(row, version) for row in rows(corrected, "snapshots")]
        corrected["snapshots"] = [{"sequence-number": 0, **row} for row in snapshots]
    unique = {encode(row): row for row in rows(corrected, "snapshots")}
    if len(unique) < len(rows(corrected, "snapshots")):
        corrected["snapshots"] = list(unique.values())
    last, highest = corrected.get("last-sequence-number"), highest_sequence_number(corrected)
    if isinstance(last, int) and last < highest:
        corrected["last-sequence-number"] = highest


def _correct_entry(entry: Json) -> Json:
    """Return a snapshot, a statistics file or a key without nulls, with the values of its maps as strings."""
    corrected = dict(without_nulls(entry))
    for key in ("summary", "properties"):
        if isinstance(values := corrected.get(key), dict):
            corrected[key] = {name: _text_of(value) for name, value in values.items() if value is not None}
    if isinstance(blobs := corrected.get("blob-metadata"), list):
        corrected["blob-metadata"] = [_correct_entry(blob) if isinstance(blob, dict) else blob for blob in blobs]
    return corrected


def _text_of(value: object) -> object:
    return msgspec.json.encode(value).decode() if isinstance(value, (bool, int, float)) else value


_CORRECTIONS: Final[dict[str, Callable[[Json], Json]]] = {
    "schemas": correct_schema,
    "snapshots": _correct_entry,
    "statistics": _correct_entry,
    "partition-statistics": _correct_entry,
    "encryption-keys": lambda entry: pad_key(_correct_entry(entry)),
}
