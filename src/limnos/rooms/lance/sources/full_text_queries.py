# SPDX-License-Identifier: Apache-2.0
"""Builds full-text queries of Lance's library from the protocol's JSON.

Must not know tables. A structured query is an object with one of match, phrase, boost, multi_match and boolean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lance.query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

from limnos.model.errors import BadRequest

_SORTS: Final = ("match", "phrase", "boost", "multi_match", "boolean")
_DEPTH_MAX: Final = 20
Json = Mapping[str, Any]


def query_of(text: Json, columns: list[str], *, indexed: Callable[[], list[str]]) -> dict[str, Any] | FullTextQuery:
    """Convert the protocol's full-text query to an argument of a Lance scanner. Raises BadRequest for a malformed
    query.

    Args:
        text: Search words (`{"query": "lake"}`) or a structured query (`{"query": {"match": {"terms": "lake"}}}`).
        columns: The columns to search for words that name no column; all indexed ones if empty.
        indexed: Returns the columns with a full-text index.
    """
    query = text.get("query")
    if isinstance(query, str):
        return {"query": query, "columns": columns or None}
    if not isinstance(query, Mapping):
        raise BadRequest("A full-text query needs words, or a structure, as its 'query'")
    return _structure(query, lambda: columns or indexed(), depth=0)


def _structure(query: Json, columns: Callable[[], list[str]], *, depth: int) -> FullTextQuery:
    query_types = [sort for sort in _SORTS if query.get(sort) is not None]
    if len(query_types) != 1 or depth > _DEPTH_MAX:
        raise BadRequest(f"A full-text query must be one of {', '.join(_SORTS)}, nested at most {_DEPTH_MAX} times")
    sort = query_types[0]
    try:
        entries: Json = query[sort]
        if sort == "match":
            return _match(entries, columns)
        if sort == "phrase":
            return _phrase(entries, columns)
        if sort == "multi_match":
            return _multi_match_query(entries)
        if sort == "boost":
            negative = entries.get("negative_boost")
            return BoostQuery(
                _structure(entries["positive"], columns, depth=depth + 1),
                _structure(entries["negative"], columns, depth=depth + 1),
                negative_boost=0.5 if negative is None else float(negative),
            )
        parts = ((Occur.MUST, "must"), (Occur.SHOULD, "should"), (Occur.MUST_NOT, "must_not"))
        return BooleanQuery(
            [
                (occur, _structure(each, columns, depth=depth + 1))
                for occur, key in parts
                for each in entries.get(key) or ()
            ]
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise BadRequest(f"The {sort} of a full-text query cannot be read: {type(error).__name__} {error}") from None


def _match(entries: Json, columns: Callable[[], list[str]]) -> FullTextQuery:
    """Build a query for words in one column. Without a column, all of `columns` are searched, as in Lance's library."""
    boost, expansions = entries.get("boost"), entries.get("max_expansions")
    boost = 1.0 if boost is None else float(boost)
    fields = [entries["column"]] if entries.get("column") is not None else _default_columns(columns)
    if len(fields) > 1:
        _check_exact(entries)
        return MultiMatchQuery(_terms(entries), fields, boosts=[boost] * len(fields), operator=_operator(entries))
    return MatchQuery(
        _terms(entries),
        fields[0],
        boost=boost,
        fuzziness=entries.get("fuzziness") or 0,
        max_expansions=50 if expansions is None else expansions,
        operator=_operator(entries),
        prefix_length=entries.get("prefix_length") or 0,
    )


def _phrase(entries: Json, columns: Callable[[], list[str]]) -> PhraseQuery:
    fields = [entries["column"]] if entries.get("column") is not None else _default_columns(columns)
    if len(fields) > 1:
        raise BadRequest(f"A phrase is searched in one column: name it as the 'column', one of {', '.join(fields)}")
    return PhraseQuery(_terms(entries), fields[0], slop=entries.get("slop") or 0)


def _default_columns(columns: Callable[[], list[str]]) -> list[str]:
    fields = columns()
    if not fields:
        raise BadRequest("The table has no full-text index: create one on the column to search")
    return fields


def _multi_match_query(entries: Json) -> MultiMatchQuery:
    """Build a query for the same words in several columns. LanceDB's clients state the words once, and the columns.
    Raises BadRequest for a malformed query.
    """
    matches = entries.get("match_queries")
    if matches is None:
        return MultiMatchQuery(
            _terms(entries),
            list(entries["columns"]),
            boosts=entries.get("boosts") or entries.get("boost"),
            operator=_operator(entries),
        )
    if len({(_terms(each), _operator(each)) for each in matches}) != 1:
        raise BadRequest(
            "A multi_match searches the same words in several columns, with one operator; combine other queries with a"
            " boolean"
        )
    for each in matches:
        _check_exact(each)
    boosts = [1.0 if each.get("boost") is None else float(each["boost"]) for each in matches]
    return MultiMatchQuery(
        _terms(matches[0]), [each["column"] for each in matches], boosts=boosts, operator=_operator(matches[0])
    )


def _check_exact(entries: Json) -> None:
    """Raise BadRequest for words that may differ from those of the rows: in several columns, Lance's library searches
    exact words only.
    """
    if entries.get("fuzziness"):
        raise BadRequest("A search with fuzziness needs the 'column' to search: combine several with a boolean")


def _terms(entries: Json) -> str:
    terms = entries.get("terms", entries.get("query"))
    if not isinstance(terms, str):
        raise BadRequest("A full-text query needs the words to search as 'terms'")
    return terms


def _operator(entries: Json) -> FullTextOperator:
    word = str(entries.get("operator") or "or").upper()
    if word not in ("AND", "OR"):
        raise BadRequest(f"The operator of a full-text query must be And or Or, not {word[:40]}")
    return FullTextOperator(word)
