# SPDX-License-Identifier: Apache-2.0
"""Offloaded work on statements, as pure functions from bytes to bytes, for worker processes that can be killed.

Must not know a server or a store. A SqlppError is returned as `refused`, followed by the encoded error. All arguments
and results are plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final, cast

import msgspec

from limnos.names.errors import InvalidName
from limnos.rooms.sqlpp.language.binder import BoundQuery
from limnos.rooms.sqlpp.language.binding import NameLookup, PackedBinding, QueryBinding, ResolvedNames
from limnos.rooms.sqlpp.language.conditions import Condition, Operator
from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition, compilation
from limnos.rooms.sqlpp.language.evaluator import Budget, results
from limnos.rooms.sqlpp.language.functions.costs import character_cost
from limnos.rooms.sqlpp.language.functions.types import json_text
from limnos.rooms.sqlpp.language.metadata import MetadataObject, metadata_records
from limnos.rooms.sqlpp.language.parameters import BAD_VALUE, EncodedParameter, form_parameters, json_parameters
from limnos.rooms.sqlpp.language.parser import StatementSpan, find_spans
from limnos.rooms.sqlpp.language.plan import EncodedPlan, Expression, wire
from limnos.rooms.sqlpp.language.result_text import tagged_line
from limnos.rooms.sqlpp.language.scans import ScanRequirement, prepare_scans
from limnos.rooms.sqlpp.language.values.model import Value
from limnos.rooms.sqlpp.language.values.tagged import Json, from_tagged_json, to_tagged_json

EVALUATE: Final = "sqlpp-evaluate"
SCANS: Final = "sqlpp-scans"
PARSE: Final = "sqlpp-parse"
BIND: Final = "sqlpp-bind"
PARAMETERS: Final = "sqlpp-parameters"
TAGGED, PLAIN = b"tagged", b"plain"
RESULT_BYTES_MAX: Final = 32 << 20
"""The maximum size of the results that a worker returns for one query over constants and metadata, in bytes."""
PART_BYTES: Final = 256 << 10
"""The approximate size of the parts in which lines are returned, in bytes."""
_PackedScan = tuple[
    tuple[str, ...], str, frozenset[str] | None, tuple[tuple[tuple[str, ...], Operator, object], ...], int | None
]


def source_key(dataverse: tuple[str, ...], name: str) -> str:
    """Return the key of a dataset in the `sources` argument of `evaluate`."""
    return msgspec.json.encode((*dataverse, name)).decode()


def row_line(value: Value, bytes_max: int = RESULT_BYTES_MAX, *, tagged: bool = False) -> bytes:
    """Encode a result as one line of JSON for users; if `tagged`, with type tags, for `result_text`.

    Raises SqlppError if it is longer than `bytes_max`, if possible before it is encoded.
    """
    if character_cost((value,), bytes_max) > bytes_max:
        raise _too_large()
    line = (tagged_line(value) if tagged else json_text(value)).encode("utf-8", "replace")
    if len(line) > bytes_max:
        raise _too_large()
    return line


def _too_large() -> SqlppError:
    return compilation(
        f"The query has more than {RESULT_BYTES_MAX >> 20} MiB of results: make it select less, or in several parts"
    )


def lines_of(part: bytes) -> list[bytes]:
    """Split a chunk of results into lines."""
    return part.split(b"\n") if part else []


class SourceRows(msgspec.Struct, frozen=True):
    """The rows of one source: tagged values, or records of a metadata dataset.

    `parts` are the indexes of the arguments that contain the objects from which the records are built. `fields` are the
    fields of a record, None for all.
    """

    rows: tuple[msgspec.Raw, ...] = ()
    dataset: str = ""
    parts: tuple[int, ...] = ()
    fields: frozenset[str] | None = None

    def decode_rows(self, argument: tuple[bytes, ...]) -> tuple[Value, ...]:
        """Decode the rows, or build the records from the objects in `argument`."""
        if not self.dataset:
            return tuple(from_tagged_json(cast("Json", msgspec.json.decode(row))) for row in self.rows)
        objects = chain.from_iterable(_OBJECTS.decode(argument[number]) for number in self.parts)
        return tuple(metadata_records(self.dataset, objects, fields=self.fields))


_OBJECTS: Final = msgspec.json.Decoder(tuple[MetadataObject, ...])


def evaluate(plan: bytes, *rest: bytes) -> list[bytes]:
    """Evaluate a plan. Returns `done`, the warnings, and chunks of result lines; or `refused`.

    Args:
        plan: The encoded plan.
        *rest: The count of slots, `TAGGED` or `PLAIN`, the sources by name (`SourceRows`), and chunks of metadata
            objects.
    """
    slots, form, sources, *arguments = rest
    bound_query = BoundQuery(cast("Expression", wire.decode(plan)), int(slots), ())
    try:
        rows = msgspec.json.decode(sources, type=dict[str, SourceRows])
        item = {name: source.decode_rows(tuple(arguments)) for name, source in rows.items()}
        budget = Budget()
        values = results(bound_query, lambda dataverse, name: item[source_key(dataverse, name)], budget=budget)
        parts = list(_parts(values, tagged=form == TAGGED))
        return [b"done", packed_warnings(budget.warnings.values()), *parts]
    except SqlppError as error:
        return _encode_error(error)


def packed_warnings(warnings: Iterable[SqlppError]) -> bytes:
    """Encode warnings for the caller, which decodes them with `warnings_of`."""
    return msgspec.json.encode([(each.number, each.message, each.place, each.has_position) for each in warnings])


def warnings_of(data: bytes) -> list[SqlppError]:
    """Decode warnings from `packed_warnings`."""
    entries = msgspec.json.decode(data, type=list[tuple[int, str, tuple[int, int] | None, bool]])
    return [
        SqlppError(number, text, at and TextPosition(*at), has_position) for number, text, at, has_position in entries
    ]


def find_scans(plan: bytes) -> list[bytes]:
    """Number the scans of a plan (`scans.prepare_scans`).

    Returns the changed plan and the requirements of each scan, encoded.
    """
    numbered, requirements = prepare_scans(cast("Expression", wire.decode(plan)), carries=False)
    return [b"done", wire.encode(numbered), msgspec.json.encode(tuple(map(_packed_scan, requirements)))]


def _packed_scan(requirement: ScanRequirement) -> tuple[object, ...]:
    conditions = tuple((each.path, each.operator, to_tagged_json(each.value)) for each in requirement.conditions)
    return requirement.dataverse, requirement.name, requirement.fields, conditions, requirement.limit


def scans_of(data: bytes) -> tuple[ScanRequirement, ...]:
    """Decode the scan requirements that `find_scans` returned."""
    packed = msgspec.json.decode(data, type=tuple[_PackedScan, ...])
    return tuple(
        ScanRequirement(
            dataverse=dataverse,
            name=name,
            fields=fields,
            conditions=tuple(
                Condition(path, operator, from_tagged_json(cast("Json", value))) for path, operator, value in conditions
            ),
            limit=limit,
        )
        for dataverse, name, fields, conditions, limit in packed
    )


def _parts(values: Iterable[Value], *, tagged: bool) -> list[bytes]:
    """Encode results as chunks of lines. Raises SqlppError for more than RESULT_BYTES_MAX."""
    parts: list[bytes] = []
    lines: list[bytes] = []
    size = total = 0
    for value in values:
        lines.append(row_line(value, RESULT_BYTES_MAX - total, tagged=tagged))
        size += len(lines[-1]) + 1
        total += len(lines[-1]) + 1
        if size >= PART_BYTES:
            parts.append(b"\n".join(lines))
            lines, size = [], 0
    if lines:
        parts.append(b"\n".join(lines))
    return parts


def _encode_error(error: SqlppError) -> list[bytes]:
    return [b"refused", msgspec.json.encode(error.args)]


def refusal_of(data: bytes) -> SqlppError:
    """Decode the error of a `refused` result."""
    number, message, place, is_told = msgspec.json.decode(data, type=tuple[int, str, TextPosition | None, bool])
    return SqlppError(number, message, place, is_told)


def parse_text(text: bytes) -> list[bytes]:
    """Parse the statements of a text. Returns `done` and their spans, or `refused`."""
    try:
        return [b"done", msgspec.json.encode(find_spans(text.decode("utf-8", "surrogatepass")))]
    except SqlppError as error:
        return _encode_error(error)


def spans_of(data: bytes) -> tuple[StatementSpan, ...]:
    """Decode the spans that `parse_text` returned."""
    return msgspec.json.decode(data, type=tuple[StatementSpan, ...])


def packed_binding(binding: QueryBinding, known: ResolvedNames) -> bytes:
    """Encode the argument of `bind_query`."""
    return msgspec.json.encode(PackedBinding.of(binding, known))


def bind_query(data: bytes) -> list[bytes]:
    """Bind a query. Returns `done` with plan, slots and reads; `wanted` with unresolved names; or `refused`."""
    try:
        binding, resolved_names = msgspec.json.decode(data, type=PackedBinding).unpack()
        try:
            bound_query = binding.bind(resolved_names)
        except SqlppError:
            if not resolved_names.unresolved:
                raise
        if resolved_names.unresolved:
            return [b"wanted", msgspec.json.encode(tuple(resolved_names.unresolved))]
        return [
            b"done",
            wire.encode(bound_query.expression),
            msgspec.json.encode((bound_query.slots, bound_query.reads)),
        ]
    except SqlppError as error:
        return _encode_error(error)


def decode_lookups(data: bytes) -> tuple[NameLookup, ...]:
    """Decode the unresolved names that `bind_query` returned."""
    return msgspec.json.decode(data, type=tuple[NameLookup, ...])


def bound_of(plan: bytes, rest: bytes, *, at: TextPosition) -> BoundQuery:
    """Decode the bound query that `bind_query` returned; its plan stays encoded."""
    slots, reads = msgspec.json.decode(rest, type=tuple[int, tuple[tuple[tuple[str, ...], str], ...]])
    return BoundQuery(EncodedPlan(at, plan), slots, reads)


def read_parameters(body: bytes, kind: bytes) -> list[bytes]:
    """Parse the parameters of a long request, whose body is of kind `form` or `json`.

    Returns `done` and the encoded parameters (see `parameters_of`), or `refused`.
    """
    try:
        parameters = form_parameters(body) if kind == b"form" else json_parameters(body)
    except SqlppError as error:
        return _encode_error(error)
    except InvalidName as error:
        return _encode_error(SqlppError(BAD_VALUE, error.message))
    return [b"done", msgspec.json.encode(parameters)]


def parameters_of(data: bytes) -> tuple[EncodedParameter, ...]:
    """Decode the parameters that `read_parameters` returned."""
    return msgspec.json.decode(data, type=tuple[EncodedParameter, ...])


OFFLOADED_WORK: Final[Mapping[str, Callable[..., list[bytes]]]] = {
    EVALUATE: evaluate,
    SCANS: find_scans,
    PARSE: parse_text,
    BIND: bind_query,
    PARAMETERS: read_parameters,
}
"""The functions that a worker process can run, by name."""
