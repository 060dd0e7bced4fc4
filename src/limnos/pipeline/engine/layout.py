# SPDX-License-Identifier: Apache-2.0
"""Layout of a table: partition fields and sort orders, from declarations and from metadata.

Parses both notations into one comparable value. Must not know Spark's session or the handling of differences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from limnos.model.errors import BadRequest
from limnos.names import InvalidName, engine
from limnos.pipeline.engine.metadata import TableMetadata

_CALL = re.compile(r"\s*(?P<name>[A-Za-z_]+)\s*\((?P<arguments>.*)\)\s*", re.DOTALL)
_SORT = re.compile(
    r"(?P<term>.*?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*", re.DOTALL | re.IGNORECASE
)
_TRANSFORMS: Mapping[str, str] = {
    "year": "year",
    "years": "year",
    "month": "month",
    "months": "month",
    "day": "day",
    "days": "day",
    "date": "day",
    "hour": "hour",
    "hours": "hour",
    "date_hour": "hour",
    "bucket": "bucket",
    "truncate": "truncate",
    "identity": "identity",
}
_WITH_NUMBER = frozenset({"bucket", "truncate"})


class PartitionTerm(NamedTuple):
    """A transform of a column: `day`, `bucket[16]` or `identity`, with the column's path."""

    transform: str
    column: tuple[str, ...]

    def sql(self) -> str:
        """Return the term as Spark SQL: ``bucket(16, `id`)``."""
        name = engine.render_spark(self.column)
        kind, _, number = self.transform.rstrip("]").partition("[")
        if kind == "identity":
            return name
        return f"{kind}({number}, {name})" if number else f"{kind}s({name})"


class SortTerm(NamedTuple):
    """A sort term: a transform with direction and order of NULLs."""

    term: PartitionTerm
    direction: str = "asc"
    nulls: str = "nulls-first"

    def sql(self) -> str:
        """Return the term as Spark SQL: ``days(`ts`) DESC NULLS LAST``."""
        return f"{self.term.sql()} {self.direction.upper()} {self.nulls.replace('-', ' ').upper()}"


def partition_term(text: str) -> PartitionTerm:
    """Parse a declared partition field. Raises BadRequest with the allowed forms."""
    return _term(text, what="partition")


def sort_term(text: str) -> SortTerm:
    """Parse a declared sort field, `flight_date DESC NULLS LAST`. Raises BadRequest with the allowed forms."""
    match = _SORT.fullmatch(text)
    if match is None:
        raise BadRequest(f"sort: {text!r} is not a column: write `name`, `name DESC` or `name DESC NULLS LAST`.")
    direction = (match["direction"] or "asc").lower()
    nulls = (match["nulls"] or ("first" if direction == "asc" else "last")).lower()
    return SortTerm(_term(match["term"], what="sort"), direction, f"nulls-{nulls}")


def partition_of(metadata: TableMetadata) -> tuple[PartitionTerm, ...]:
    """Return the fields of the table's current partition spec, without dropped (void) fields."""
    names = column_paths(metadata)
    return tuple(
        PartitionTerm(each.transform, names.get(each.source_id, (each.name,)))
        for each in metadata.spec.fields
        if each.transform != "void"
    )


def sort_of(metadata: TableMetadata) -> tuple[SortTerm, ...]:
    """Return the table's current sort order."""
    names = column_paths(metadata)
    return tuple(
        SortTerm(PartitionTerm(each.transform, names.get(each.source_id, ("?",))), each.direction, each.null_order)
        for each in metadata.order.fields
    )


def column_paths(metadata: TableMetadata) -> dict[int, tuple[str, ...]]:
    """Return the paths of all columns and nested fields by field id."""
    top = [{"id": each.id, "name": each.name, "type": each.type} for each in metadata.schema.fields]
    return {number: path for number, path, _ in _paths(top)}


def column_docs(metadata: TableMetadata) -> dict[tuple[str, ...], str | None]:
    """Return the comments of all columns and nested fields by lower-case path."""
    top = [{"id": each.id, "name": each.name, "type": each.type, "doc": each.doc} for each in metadata.schema.fields]
    return {tuple(part.lower() for part in path): doc for _, path, doc in _paths(top)}


def same_term(one: PartitionTerm, other: PartitionTerm) -> bool:
    """Return whether two terms are the same, ignoring the case of columns."""
    return one.transform == other.transform and [each.lower() for each in one.column] == [
        each.lower() for each in other.column
    ]


def _term(text: str, *, what: str) -> PartitionTerm:
    call = _CALL.fullmatch(text)
    if call is None:
        return PartitionTerm("identity", _column(text, what=what))
    name = _TRANSFORMS.get(call["name"].lower())
    if name is None:
        raise BadRequest(
            f"{what}: {text.strip()!r} has no transform {call['name']!r}. Transforms are years, months, days, hours, "
            "bucket(N, column) and truncate(N, column)."
        )
    if name not in _WITH_NUMBER:
        return PartitionTerm(name, _column(call["arguments"], what=what))
    one, comma, other = call["arguments"].partition(",")
    if other.strip().isdigit():
        one, other = other, one
    if not comma or not one.strip().isdigit():
        raise BadRequest(f"{what}: {text.strip()!r} needs a number and a column: {name}(16, column).")
    return PartitionTerm(f"{name}[{int(one)}]", _column(other, what=what))


def _column(text: str, *, what: str) -> tuple[str, ...]:
    try:
        return engine.parse_spark(text.strip())
    except InvalidName as error:
        raise BadRequest(f"{what}: {text.strip()!r} is not a column: {error}") from error


def _paths(
    fields: Sequence[Mapping[str, Any]], above: tuple[str, ...] = ()
) -> Iterator[tuple[int, tuple[str, ...], str | None]]:
    for each in fields:
        path = (*above, each["name"])
        yield each["id"], path, each.get("doc")
        yield from _below(each["type"], path)


def _below(kind: object, path: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...], str | None]]:
    if not isinstance(kind, Mapping):
        return
    if kind["type"] == "struct":
        yield from _paths(kind["fields"], path)
    for part in ("element", "key", "value"):
        if part in kind:
            yield kind[f"{part}-id"], (*path, part), None
            yield from _below(kind[part], (*path, part))
