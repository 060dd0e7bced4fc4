"""Heavy work on statements as pure functions from bytes to bytes, for processes that can be ended while they are at it.

May import the parser, the binder, plans, scans, the evaluator, records of the metadata and `values`. Must not know who runs it. A refusal is an answer: `refused` and what it
says. All that is exchanged is data.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, cast

import msgspec

from limnos.sqlpp.binder import BoundQuery
from limnos.sqlpp.binding import KnownNames, NameQuestion, PackedBinding, QueryBinding
from limnos.sqlpp.conditions import Condition, Operator
from limnos.sqlpp.errors import SqlppError, TextPosition, compilation
from limnos.sqlpp.evaluator import results
from limnos.sqlpp.functions.costs import character_cost
from limnos.sqlpp.functions.types import json_text
from limnos.sqlpp.metadata import MetadataObject, metadata_records
from limnos.sqlpp.parser import StatementSpan, find_spans
from limnos.sqlpp.plan import EncodedPlan, wire
from limnos.sqlpp.scans import ScanRequirement, prepare_scans
from limnos.sqlpp.values.tagged import from_tagged_json, to_tagged_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from limnos.sqlpp.plan import Expression
    from limnos.sqlpp.values.model import Value
    from limnos.sqlpp.values.tagged import Json

EVALUATE: Final = "sqlpp-evaluate"
SCANS: Final = "sqlpp-scans"
PARSE: Final = "sqlpp-parse"
BIND: Final = "sqlpp-bind"
RESULT_BYTES_MAX: Final = 32 << 20
"""Most bytes of results that a process hands to the server for one query over constants and metadata."""
PART_BYTES: Final = 256 << 10
"""Lines are handed over in parts of about this size."""
_PackedScan = tuple[
    tuple[str, ...], str, frozenset[str] | None, tuple[tuple[tuple[str, ...], Operator, object], ...], int | None
]


def source_key(dataverse: tuple[str, ...], name: str) -> str:
    """What a source is called among the rows that a chore is given."""
    return msgspec.json.encode((*dataverse, name)).decode()


def row_line(value: Value, bytes_max: int = RESULT_BYTES_MAX) -> bytes:
    """A result as one line of JSON, as users see it. Raises SqlppError for one of more bytes, before its text is made."""
    if character_cost((value,), bytes_max) > bytes_max:
        raise _too_large()
    line = json_text(value).encode("utf-8", "replace")
    if len(line) > bytes_max:
        raise _too_large()
    return line


def _too_large() -> SqlppError:
    return compilation(
        f"The query has more than {RESULT_BYTES_MAX >> 20} MiB of results: make it select less, or in several parts"
    )


def lines_of(part: bytes) -> list[bytes]:
    """The lines of one part of an answer."""
    return part.split(b"\n") if part else []


class SourceRows(msgspec.Struct, frozen=True):
    """The rows of one source that a chore is given: tagged values, or the records of a dataset of the metadata.

    Those are made of the objects in parts of what the chore is given, by their numbers. `fields` None: whole records.
    """

    rows: tuple[msgspec.Raw, ...] = ()
    dataset: str = ""
    parts: tuple[int, ...] = ()
    fields: frozenset[str] | None = None

    def made(self, given: tuple[bytes, ...]) -> tuple[Value, ...]:
        """The rows as values."""
        if not self.dataset:
            return tuple(from_tagged_json(cast("Json", msgspec.json.decode(row))) for row in self.rows)
        objects = chain.from_iterable(_OBJECTS.decode(given[number]) for number in self.parts)
        return tuple(metadata_records(self.dataset, objects, fields=self.fields))


_OBJECTS: Final = msgspec.json.Decoder(tuple[MetadataObject, ...])


def evaluate(plan: bytes, *rest: bytes) -> list[bytes]:
    """Work a plan out: `done` and lines in parts, or `refused`.

    The rest is how many slots it has, what each source has by its name (`SourceRows`), and objects of the metadata in parts.
    """
    slots, sources, *given = rest
    bound = BoundQuery(cast("Expression", wire.decode(plan)), int(slots), ())
    try:
        found = msgspec.json.decode(sources, type=dict[str, SourceRows])
        held = {name: source.made(tuple(given)) for name, source in found.items()}
        values = results(bound, lambda dataverse, name: held[source_key(dataverse, name)])
        return [b"done", *_parts(values)]
    except SqlppError as error:
        return _encode_error(error)


def find_scans(plan: bytes) -> list[bytes]:
    """Number the scans of a plan (`scans.prepare_scans`): the plan then, and what each scan needs."""
    numbered, wanted = prepare_scans(cast("Expression", wire.decode(plan)), carries=False)
    return [b"done", wire.encode(numbered), msgspec.json.encode(tuple(map(_packed_scan, wanted)))]


def _packed_scan(wanted: ScanRequirement) -> tuple[object, ...]:
    conditions = tuple((each.path, each.operator, to_tagged_json(each.value)) for each in wanted.conditions)
    return wanted.dataverse, wanted.name, wanted.fields, conditions, wanted.limit


def scans_of(told: bytes) -> tuple[ScanRequirement, ...]:
    """What each scan needs, as `find_scans` told it."""
    packed = msgspec.json.decode(told, type=tuple[_PackedScan, ...])
    return tuple(
        ScanRequirement(dataverse, name, fields, tuple(Condition(path, operator, from_tagged_json(cast("Json", value))) for path, operator, value in conditions), limit)
        for dataverse, name, fields, conditions, limit in packed
    )  # fmt: skip


def _parts(values: Iterable[Value]) -> list[bytes]:
    """Results as lines, in parts. Raises SqlppError for more than RESULT_BYTES_MAX."""
    parts: list[bytes] = []
    lines: list[bytes] = []
    size = total = 0
    for value in values:
        lines.append(row_line(value, RESULT_BYTES_MAX - total))
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


def refusal_of(told: bytes) -> SqlppError:
    """The error of a chore that was refused."""
    number, message, place, is_told = msgspec.json.decode(told, type=tuple[int, str, TextPosition | None, bool])
    return SqlppError(number, message, place, is_told)


def parse_text(text: bytes) -> list[bytes]:
    """Parse the statements of a text: `done` with where each stands, or `refused`."""
    try:
        return [b"done", msgspec.json.encode(find_spans(text.decode("utf-8", "surrogatepass")))]
    except SqlppError as error:
        return _encode_error(error)


def spans_of(told: bytes) -> tuple[StatementSpan, ...]:
    """Where statements stand, as `parse_text` told it."""
    return msgspec.json.decode(told, type=tuple[StatementSpan, ...])


def packed_binding(binding: QueryBinding, known: KnownNames) -> bytes:
    """What `bind_query` is given."""
    return msgspec.json.encode(PackedBinding.of(binding, known))


def bind_query(given: bytes) -> list[bytes]:
    """Bind a query: `done` with plan, slots and what is read, `wanted` with what has to be known first, or `refused`."""
    try:
        binding, known = msgspec.json.decode(given, type=PackedBinding).unpacked()
        try:
            bound = binding.bind(known)
        except SqlppError:
            if not known.wanted:
                raise
        if known.wanted:
            return [b"wanted", msgspec.json.encode(tuple(known.wanted))]
        return [b"done", wire.encode(bound.expression), msgspec.json.encode((bound.slots, bound.reads))]
    except SqlppError as error:
        return _encode_error(error)


def questions_of(told: bytes) -> tuple[NameQuestion, ...]:
    """What has to be known first, as `bind_query` told it."""
    return msgspec.json.decode(told, type=tuple[NameQuestion, ...])


def bound_of(plan: bytes, rest: bytes, *, at: TextPosition) -> BoundQuery:
    """The query that `bind_query` has bound: its plan stays encoded."""
    slots, reads = msgspec.json.decode(rest, type=tuple[int, tuple[tuple[tuple[str, ...], str], ...]])
    return BoundQuery(EncodedPlan(at, plan), slots, reads)


CHORES: Final[Mapping[str, Callable[..., list[bytes]]]] = {
    EVALUATE: evaluate, SCANS: find_scans, PARSE: parse_text, BIND: bind_query,
}  # fmt: skip
"""What a process can be asked for."""
