# SPDX-License-Identifier: Apache-2.0
"""Queries: vector search, full-text search and filters over a table's rows, and their plans.

Must not know engines. LanceDB's remote clients spell a query differently (bare lists, pairs); both spellings are
accepted from every client.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response, json_response, stream_response
from limnos.model.errors import BadRequest
from limnos.rooms.lance.http.identifiers import IdentifiedBody, body_of
from limnos.rooms.lance.http.row_targets import Where, find_rows
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.sources.questions import ColumnOrder, Query

ARROW_FILE: Final = (b"content-type", b"application/vnd.apache.arrow.file")
EVERY: Final = 1 << 31
"""A limit that means no limit: LanceDB's clients send a large number."""
METRICS: Final = ("l2", "cosine", "dot", "hamming")


class QueryVectors(msgspec.Struct):
    """Vectors in the protocol's encoding; if empty, there is no vector search."""

    single_vector: list[float] | None = None
    multi_vector: list[list[float]] | None = None


class QueryColumns(msgspec.Struct):
    """Columns in the protocol's encoding: by name, or as expressions with new names."""

    column_names: list[str] | None = None
    column_aliases: dict[str, str] | None = None


class QueryWords(msgspec.Struct):
    """A full-text query: words, and the columns to search (None: all). LanceDB's clients may send a query tree instead
    of words.
    """

    query: str | dict[str, object]
    columns: list[str] | None = None


class FullTextStructure(msgspec.Struct):
    """A full-text query as a tree of operators, such as match, phrase, boolean and boost."""

    query: dict[str, object]


class FullTextQueryBody(msgspec.Struct):
    """A full-text query: words, or a tree of operators; or LanceDB's encoding without a wrapper."""

    string_query: QueryWords | None = None
    structured_query: FullTextStructure | None = None
    query: str | dict[str, object] | None = None
    columns: list[str] | None = None


class QueryBody(IdentifiedBody, kw_only=True):
    """The JSON body of a vector search, full-text search or scan."""

    vector: list[float | list[float]] | QueryVectors | None = None
    k: int | None = None
    offset: int | None = None
    columns: list[str | list[str]] | dict[str, object] | None = None
    filter: str | None = None
    prefilter: bool | None = None
    order_by: list[ColumnOrder] | None = None
    full_text_query: FullTextQueryBody | None = None
    vector_column: str | None = None
    distance_type: str | None = None
    nprobes: int | None = None
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    refine_factor: int | None = None
    ef: int | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    bypass_vector_index: bool | None = None
    fast_search: bool | None = None
    with_row_id: bool | None = None
    version: int | None = None
    tag: str | None = None
    branch: str | None = None

    @property
    def at(self) -> VersionReference:
        """The version of the table to query: by number or tag, on a branch; by default the newest."""
        return VersionReference(self.version, self.tag, self.branch)


class ExplainBody(IdentifiedBody, kw_only=True):
    """The body of a request for a query's plan."""

    query: QueryBody
    verbose: bool | None = None
    branch: str | None = None


NUMBERS_MAX: Final = 100_000
"""The maximum number of numbers in the vectors of a query: each is checked on the event loop."""


async def table_query(request: Request, where: Where) -> Response:
    """Execute a query, and return its rows as an Arrow file, streamed while it is produced."""
    body = request.decode(await body_of(request), QueryBody)
    rows = find_rows(request, where, body=body)
    pieces = await rows.query(query_of(body), at=body.at)
    return stream_response(pieces, (ARROW_FILE,))


async def query_explain(request: Request, where: Where) -> Response:
    """Return the plan of a query as text."""
    body = request.decode(await body_of(request), ExplainBody)
    rows = find_rows(request, where, body=body)
    at = body.query.at if body.query.branch or not body.branch else body.query.at._replace(branch=body.branch)
    plan_text = await rows.explain(query_of(body.query), at=at, verbose=bool(body.verbose))
    return json_response(plan_text)


async def query_analyze(request: Request, where: Where) -> Response:
    """Run a query, and return its execution statistics as text."""
    body = request.decode(await body_of(request), QueryBody)
    rows = find_rows(request, where, body=body)
    plan_text = await rows.explain(query_of(body), at=body.at, runs=True)
    return json_response(plan_text)


def query_of(body: QueryBody) -> Query:
    """Return the query of a body in the protocol's encoding or in LanceDB's. Raises BadRequest for an invalid field."""
    columns, aliases = _columns_of(body)
    vectors = _vectors_of(body)
    text, text_columns = _text_of(body)
    if body.k is None and vectors:
        raise BadRequest("A vector search needs its number of rows: send k")
    for name, number in (("k", body.k), ("offset", body.offset)):
        if number is not None and number < 0:
            raise BadRequest(f"{name} must be a non-negative integer, not {number}")
    return Query(
        location="",
        options={},
        limit=None if body.k is None or body.k >= EVERY else body.k,
        offset=body.offset or 0,
        columns=columns,
        aliases=aliases,
        filter=body.filter or None,
        prefilter=True if body.prefilter is None else body.prefilter,
        vectors=vectors,
        order_by=body.order_by or [],
        vector_column=body.vector_column or None,
        text=text,
        text_columns=text_columns,
        nearest=_nearest_of(body),
        with_row_id=bool(body.with_row_id),
        fast_search=bool(body.fast_search),
    )


def _vectors_of(body: QueryBody) -> list[list[float]]:
    vectors = body.vector
    if isinstance(vectors, QueryVectors):
        several = vectors.multi_vector or ([vectors.single_vector] if vectors.single_vector else [])
        flat = []
    else:
        several = [each for each in vectors or () if isinstance(each, list)]
        flat = [each for each in vectors or () if not isinstance(each, list)]
    if len(flat) + sum(map(len, several)) > NUMBERS_MAX:
        raise BadRequest(f"The vectors of a query may have at most {NUMBERS_MAX} numbers in all")
    if flat and several:
        raise BadRequest("The vector must be a list of numbers, or a list of such lists")
    return [flat] if flat else several


def _columns_of(body: QueryBody) -> tuple[list[str] | None, dict[str, str] | None]:
    columns = body.columns
    if columns is None:
        return None, None
    if isinstance(columns, dict):
        return _named_columns(columns)
    names = [each for each in columns if isinstance(each, str)]
    pairs = [each for each in columns if isinstance(each, list)]
    if any(len(each) != 2 for each in pairs) or (names and pairs):
        raise BadRequest("Columns must be a list of names, or of pairs of a new name and an expression")
    return (None, {each[0]: each[1] for each in pairs}) if pairs else (names, None)


def _named_columns(arguments: dict[str, object]) -> tuple[list[str] | None, dict[str, str] | None]:
    """Return columns from the protocol's encoding, or from LanceDB's, which maps new names to expressions.

    Raises BadRequest if they are malformed, or given both by name and as expressions.
    """
    try:
        if not arguments.keys() <= {"column_names", "column_aliases"}:
            return None, msgspec.convert(arguments, dict[str, str])
        query_columns = msgspec.convert(arguments, QueryColumns)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The columns cannot be read: {error}") from None
    if query_columns.column_names is not None and query_columns.column_aliases is not None:
        raise BadRequest("Give columns by their names, or as expressions under new names, not both")
    return query_columns.column_names, query_columns.column_aliases


def _text_of(body: QueryBody) -> tuple[dict[str, object] | None, list[str]]:
    text_query = body.full_text_query
    if text_query is None:
        return None, []
    if text_query.structured_query is not None:
        query = text_query.structured_query.query
        return {"query": query.get("query", query)}, []
    words = text_query.string_query
    if words is None:
        if text_query.query is None:
            raise BadRequest("A full_text_query must be a string_query or a structured_query")
        words = QueryWords(text_query.query, text_query.columns)
    return {"query": words.query}, words.columns or []


def _nearest_of(body: QueryBody) -> dict[str, object]:
    """Return the options of a vector search, such as metric and probes. A value of 0 is treated as omitted.

    Raises BadRequest for an unknown distance type.
    """
    response: dict[str, object] = {}
    if body.distance_type:
        if body.distance_type.lower() not in METRICS:
            raise BadRequest(f"distance_type must be one of {', '.join(METRICS)}, not {body.distance_type[:40]}")
        response["metric"] = body.distance_type.lower()
    if body.minimum_nprobes or body.maximum_nprobes:
        response |= {"minimum_nprobes": body.minimum_nprobes or None, "maximum_nprobes": body.maximum_nprobes or None}
    elif body.nprobes:
        response["nprobes"] = body.nprobes
    response |= {
        "refine_factor": body.refine_factor or None,
        "ef": body.ef or None,
        "use_index": not body.bypass_vector_index,
    }
    if body.lower_bound is not None or body.upper_bound is not None:
        response["distance_range"] = [body.lower_bound, body.upper_bound]
    return {name: value for name, value in response.items() if value is not None}
