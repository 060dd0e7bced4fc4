"""Heavy work on statements as pure functions from bytes to bytes, for processes that can be ended while they are at it.

May import the parser, the binder, plans, the evaluator and `values`. Must not know who runs it. A refusal is an answer: `refused` and what it
says. All that is exchanged is data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from limnos.sqlpp.binder import BoundQuery
from limnos.sqlpp.binding import Binding, Known, PackedBinding, Question
from limnos.sqlpp.errors import Place, SqlppError, compilation
from limnos.sqlpp.evaluator import results
from limnos.sqlpp.functions.costs import characters
from limnos.sqlpp.functions.types import json_text
from limnos.sqlpp.parser import Span, find_spans
from limnos.sqlpp.plan import EncodedPlan, wire
from limnos.sqlpp.values.tagged import untagged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from limnos.sqlpp.plan import Expression
    from limnos.sqlpp.values.model import Value

EVALUATE: Final = "sqlpp-evaluate"
PARSE: Final = "sqlpp-parse"
BIND: Final = "sqlpp-bind"
RESULT_BYTES_MAX: Final = 32 << 20
"""Most bytes of results that a process hands to the server for one query over constants and metadata."""
PART_BYTES: Final = 256 << 10
"""Lines are handed over in parts of about this size."""


def source_key(dataverse: tuple[str, ...], name: str) -> str:
    """What a source is called among the rows that a chore is given."""
    return msgspec.json.encode((*dataverse, name)).decode()


def row_line(value: Value, bytes_max: int = RESULT_BYTES_MAX) -> bytes:
    """A result as one line of JSON, as users see it. Raises SqlppError for one of more bytes, before its text is made."""
    if characters((value,), bytes_max) > bytes_max:
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


def evaluate(plan: bytes, *rest: bytes) -> list[bytes]:
    """Work a plan out: `done` and lines in parts, or `refused`. The rest is how many slots it has, and the rows of what it reads, by name."""
    slots, rows = rest
    held = {name: untagged(given) for name, given in msgspec.json.decode(rows, type=dict[str, list[object]]).items()}  # type: ignore[arg-type]
    bound = BoundQuery(cast("Expression", wire.decode(plan)), int(slots), ())
    try:
        values = results(bound, lambda dataverse, name: cast("tuple[Value, ...]", held[source_key(dataverse, name)]))
        return [b"done", *_parts(values)]
    except SqlppError as error:
        return _refused(error)


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


def _refused(error: SqlppError) -> list[bytes]:
    return [b"refused", msgspec.json.encode(error.args)]


def refusal_of(told: bytes) -> SqlppError:
    """The error of a chore that was refused."""
    number, message, place, is_told = msgspec.json.decode(told, type=tuple[int, str, Place | None, bool])
    return SqlppError(number, message, place, is_told)


def parse_text(text: bytes) -> list[bytes]:
    """Parse the statements of a text: `done` with where each stands, or `refused`."""
    try:
        return [b"done", msgspec.json.encode(find_spans(text.decode("utf-8", "surrogatepass")))]
    except SqlppError as error:
        return _refused(error)


def spans_of(told: bytes) -> tuple[Span, ...]:
    """Where statements stand, as `parse_text` told it."""
    return msgspec.json.decode(told, type=tuple[Span, ...])


def packed_binding(binding: Binding, known: Known) -> bytes:
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
        return _refused(error)


def questions_of(told: bytes) -> tuple[Question, ...]:
    """What has to be known first, as `bind_query` told it."""
    return msgspec.json.decode(told, type=tuple[Question, ...])


def bound_of(plan: bytes, rest: bytes, *, at: Place) -> BoundQuery:
    """The query that `bind_query` has bound: its plan stays encoded."""
    slots, reads = msgspec.json.decode(rest, type=tuple[int, tuple[tuple[tuple[str, ...], str], ...]])
    return BoundQuery(EncodedPlan(at, plan), slots, reads)


CHORES: Final[Mapping[str, Callable[..., list[bytes]]]] = {EVALUATE: evaluate, PARSE: parse_text, BIND: bind_query}
"""What a process can be asked for."""
