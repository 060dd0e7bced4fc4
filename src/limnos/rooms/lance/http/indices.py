# SPDX-License-Identifier: Apache-2.0
"""Indices of tables: create, list, statistics, drop.

Has no business rules. LanceDB's remote clients spell some fields differently (`metric_type`, names of types in
capitals); both are accepted.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest
from limnos.names.percent import unquote_strict
from limnos.rooms.lance.http.changes import BranchBody, change_table
from limnos.rooms.lance.http.identifiers import IdentifiedBody, body_of, is_remote
from limnos.rooms.lance.http.pages import decode_token, page, page_request_of
from limnos.rooms.lance.http.queries import METRICS
from limnos.rooms.lance.http.row_targets import Where, find_rows
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.sources import questions
from limnos.rooms.lance.sources.questions import IndexCoverage, LanceIndex, LanceWriteResult

SCALAR: Final = ("BTREE", "BITMAP", "LABEL_LIST", "INVERTED", "FTS", "NGRAM", "ZONEMAP", "BLOOMFILTER", "RTREE")
VECTOR: Final = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ", "VECTOR")
_TEXT: Final = ("INVERTED", "FTS")
TEXT_OPTIONS: Final = (
    "with_position",
    "base_tokenizer",
    "language",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "custom_stop_words",
    "ascii_folding",
    "min_ngram_length",
    "max_ngram_length",
    "prefix_only",
    "block_size",
    "lance_tokenizer",
    "split_identifiers",
    "split_on_numerics",
    "preserve_original",
    "index_operators",
)
"""The options of a full-text index, under the names of Lance's library."""
_REMOTE: Final = {"Inverted": "FTS", "BTree": "BTREE", "Bitmap": "BITMAP", "LabelList": "LABEL_LIST"}
"""LanceDB's names for types of indices."""


class CreateIndex(IdentifiedBody, kw_only=True):
    """The body of a request to create an index."""

    column: str | list[str]
    index_type: str
    name: str | None = None
    replace: bool | None = None
    branch: str | None = None
    distance_type: str | None = None
    metric_type: str | None = None
    num_partitions: int | None = None
    num_sub_vectors: int | None = None
    num_bits: int | None = None
    sample_rate: int | None = None
    max_iterations: int | None = None
    target_partition_size: int | None = None
    m: int | None = None
    ef_construction: int | None = None
    with_position: bool | None = None
    base_tokenizer: str | None = None
    language: str | None = None
    max_token_length: int | None = None
    lower_case: bool | None = None
    stem: bool | None = None
    remove_stop_words: bool | None = None
    custom_stop_words: list[str] | None = None
    ascii_folding: bool | None = None
    min_ngram_length: int | None = None
    max_ngram_length: int | None = None
    prefix_only: bool | None = None
    block_size: int | None = None
    lance_tokenizer: str | None = None
    split_identifiers: bool | None = None
    split_on_numerics: bool | None = None
    preserve_original: bool | None = None
    index_operators: bool | None = None


class ListIndices(IdentifiedBody, kw_only=True):
    """The body of a request to list indices."""

    version: int | None = None
    branch: str | None = None
    page_token: str | None = None
    limit: int | None = None


class IndexStatsRequest(IdentifiedBody):
    """The body of a request for statistics of an index. Its name is in the path, too."""

    version: int | None = None
    branch: str | None = None
    index_name: str | None = None


async def index_create(request: Request, where: Where) -> Response:
    """Create an index on a column. The response is sent when the index is complete."""
    return await _create_index(request, where, kinds=(*VECTOR, *SCALAR))


async def scalar_index_create(request: Request, where: Where) -> Response:
    """Create a scalar or full-text index on a column."""
    return await _create_index(request, where, kinds=SCALAR)


async def _create_index(request: Request, where: Where, *, kinds: tuple[str, ...]) -> Response:
    body = request.decode(await body_of(request), CreateIndex)
    rows = find_rows(request, where, body=body)
    kind = body.index_type.upper()
    if kind not in kinds:
        raise BadRequest(f"index_type must be one of {', '.join(kinds)}, not {body.index_type[:40]}")
    columns = [body.column] if isinstance(body.column, str) else body.column
    if len(columns) != 1 or not columns[0]:
        raise BadRequest("An index must be on exactly one column: name it")
    question = questions.CreateIndex(
        location="",
        options={},
        column=columns[0],
        index_type=kind,
        name=body.name or None,
        replace=_replaces(request, body),
        details=_details_of(body, kind),
    )
    result = await change_table(rows, question=question, shape=LanceWriteResult, branch=body.branch)
    return json_response({"transaction_id": result.transaction_id, "version": result.version})


def _replaces(request: Request, body: CreateIndex) -> bool:
    """Return whether to replace an existing index. LanceDB's clients omit `replace` for true."""
    return is_remote(request) if body.replace is None else body.replace


def _details_of(body: CreateIndex, kind: str) -> dict[str, object]:
    """Return the options of an index of this type; options of other types are ignored.

    Raises BadRequest for an unknown distance type.
    """
    if kind in VECTOR:
        metric = (body.distance_type or body.metric_type or "l2").lower()
        if metric not in METRICS:
            raise BadRequest(f"distance_type must be one of {', '.join(METRICS)}, not {metric[:40]}")
        response: dict[str, object] = {
            "metric": metric,
            "num_partitions": body.num_partitions,
            "num_sub_vectors": body.num_sub_vectors,
            "num_bits": body.num_bits,
            "sample_rate": body.sample_rate,
            "max_iters": body.max_iterations,
            "target_partition_size": body.target_partition_size,
            "m": body.m,
            "ef_construction": body.ef_construction,
        }
    elif kind in _TEXT:
        response = {name: getattr(body, name) for name in TEXT_OPTIONS}
    else:
        response = {}
    return {name: value for name, value in response.items() if value is not None}


async def indices_list(request: Request, where: Where) -> Response:
    """List the indices of a table, by name, in pages."""
    body = request.decode(await body_of(request), ListIndices)
    rows = find_rows(request, where, body=body)
    page_request = page_request_of(request)
    after = page_request.after or (decode_token(body.page_token) if body.page_token else "")
    size = page_request.size if page_request.size is not None else body.limit
    if size is not None and size < 0:
        raise BadRequest(f"limit must be a non-negative integer, not {size}")
    question, at = questions.ListIndices(location="", options={}), VersionReference(body.version, branch=body.branch)
    indexes = await rows.answer(question, at=at, shape=list[LanceIndex])
    rest = [each for each in indexes if each.index_name > after]
    entries = rest if size is None else rest[:size]
    last = entries[-1].index_name if entries and len(entries) < len(rest) else None
    return json_response(
        page("indexes", [_encode_index(each, remote=is_remote(request)) for each in entries], last=last)
    )


def _encode_index(index: LanceIndex, *, remote: bool) -> dict[str, object]:
    body: dict[str, object] = msgspec.to_builtins(index)
    return body | {"index_type": _REMOTE.get(index.index_type, index.index_type)} if remote else body


async def index_stats(request: Request, where: Where) -> Response:
    """Return statistics of an index, such as the number of rows it covers."""
    body = request.decode(await body_of(request), IndexStatsRequest)
    rows = find_rows(request, where, body=body)
    name = _name_of(request)
    if body.index_name is not None and body.index_name != name:
        raise BadRequest("The path and the body name two indices: send one of them")
    question, at = (
        questions.IndexStats(location="", options={}, name=name),
        VersionReference(body.version, branch=body.branch),
    )
    coverage = await rows.answer(question, at=at, shape=IndexCoverage)
    kind = _REMOTE.get(coverage.index_type, coverage.index_type) if is_remote(request) else coverage.index_type
    answer: dict[str, object] = {**msgspec.to_builtins(coverage), "index_type": kind}
    return json_response({key: value for key, value in answer.items() if value is not None})


async def index_drop(request: Request, where: Where) -> Response:
    """Drop an index by its name, as one new version of the table."""
    body = request.decode(await body_of(request), BranchBody)
    rows = find_rows(request, where, body=body)
    question = questions.DropIndex(location="", options={}, name=_name_of(request))
    branch = body.branch or request.query("branch")
    result = await change_table(rows, question=question, shape=LanceWriteResult, branch=branch)
    return json_response({"transaction_id": result.transaction_id, "version": result.version})


def _name_of(request: Request) -> str:
    return unquote_strict(request.params[1])
