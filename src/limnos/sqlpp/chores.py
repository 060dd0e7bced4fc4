"""Heavy work on statements as pure functions from bytes to bytes, for processes that can be ended while they are at it.

May import plans, the evaluator and `values`. Must not know who runs it. A refusal is an answer: `refused` and what it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from limnos.sqlpp.binder import BoundQuery
from limnos.sqlpp.errors import SqlppError
from limnos.sqlpp.evaluator import results
from limnos.sqlpp.functions.types import json_text
from limnos.sqlpp.plan import wire
from limnos.sqlpp.values.tagged import untagged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limnos.sqlpp.plan import Expression
    from limnos.sqlpp.values.model import Value

EVALUATE: Final = "sqlpp-evaluate"


def source_key(dataverse: tuple[str, ...], name: str) -> str:
    """What a source is called among the rows that a chore is given."""
    return msgspec.json.encode((*dataverse, name)).decode()


def row_line(value: Value) -> bytes:
    """A result as one line of JSON, as users see it. Raises SqlppError for half a surrogate pair, which no UTF-8 can hold."""
    return json_text(value).encode("utf-8", "replace")


def lines_of(answer: bytes) -> list[bytes]:
    """The lines of what a chore answered."""
    return answer.split(b"\n") if answer else []


def evaluate(plan: bytes, *rest: bytes) -> list[bytes]:
    """Work a plan out: `done` with lines, or `refused`. The rest is how many slots it has, and the rows of what it reads, by name."""
    slots, rows = rest
    held = {name: untagged(given) for name, given in msgspec.json.decode(rows, type=dict[str, list[object]]).items()}  # type: ignore[arg-type]
    bound = BoundQuery(cast("Expression", wire.decode(plan)), int(slots), ())
    try:
        lines = [
            row_line(value)
            for value in results(
                bound, lambda dataverse, name: cast("tuple[Value, ...]", held[source_key(dataverse, name)])
            )
        ]
    except SqlppError as error:
        return [b"refused", msgspec.json.encode(error.args)]
    return [b"done", b"\n".join(lines)]


CHORES: Final[Mapping[str, Callable[..., list[bytes]]]] = {EVALUATE: evaluate}
"""What a process can be asked for."""
