"""Builds full-text queries of Lance's library from the protocol's JSON.

May import Lance's library and `model`. Must not know tables. A structured query is an object with one of match, phrase,
boost, multi_match and boolean.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def query_of(text: Json, columns: list[str]) -> dict[str, Any] | FullTextQuery:
    """Convert the protocol's full-text query to an argument of a Lance scanner. Raises BadRequest for a malformed
    query.

    Args:
        text: Search words (`{"query": "lake"}`) or a structured query (`{"query": {"match": {"terms": "lake"}}}`).
        columns: The columns to search; all if empty.
    """
    query = text.get("query")
    if isinstance(query, str):
        return {"query": query, "columns": columns or None}
    if not isinstance(query, Mapping):
        raise BadRequest("A full-text query needs words, or a structure, as its 'query'")
    return _structure(query, columns, depth=0)


def _structure(query: Json, columns: list[str], *, depth: int) -> FullTextQuery:
    named = [sort for sort in _SORTS if query.get(sort) is not None]
    if len(named) != 1 or depth > _DEPTH_MAX:
        raise BadRequest(f"A full-text query must be one of {', '.join(_SORTS)}, nested at most {_DEPTH_MAX} times")
    sort = named[0]
    try:
        entries: Json = query[sort]
        if sort == "match":
            return _match(entries, columns)
        if sort == "phrase":
            return PhraseQuery(_terms(entries), _column(entries, columns), slop=entries.get("slop") or 0)
        if sort == "multi_match":
            return _multi(entries)
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


def _match(entries: Json, columns: list[str]) -> MatchQuery:
    boost, expansions = entries.get("boost"), entries.get("max_expansions")
    return MatchQuery(
        _terms(entries), _column(entries, columns), boost=1.0 if boost is None else float(boost), fuzziness=entries.get("fuzziness") or 0,
        max_expansions=50 if expansions is None else expansions, operator=_operator(entries), prefix_length=entries.get("prefix_length") or 0,
    )  # fmt: skip


def _multi(entries: Json) -> MultiMatchQuery:
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
    words = {_terms(each) for each in matches}
    if len(words) != 1:
        raise BadRequest(
            "A multi_match searches the same words in several columns; combine other queries with a boolean"
        )
    boosts = [1.0 if each.get("boost") is None else float(each["boost"]) for each in matches]
    return MultiMatchQuery(
        words.pop(), [_column(each, []) for each in matches], boosts=boosts, operator=_operator(matches[0])
    )


def _terms(entries: Json) -> str:
    terms = entries.get("terms", entries.get("query"))
    if not isinstance(terms, str):
        raise BadRequest("A full-text query needs the words to search as 'terms'")
    return terms


def _column(entries: Json, columns: list[str]) -> str:
    column = entries.get("column") or (columns[0] if len(columns) == 1 else None)
    if not isinstance(column, str):
        raise BadRequest("A full-text query with a structure must name the 'column' to search")
    return column


def _operator(entries: Json) -> FullTextOperator:
    word = str(entries.get("operator") or "or").upper()
    if word not in ("AND", "OR"):
        raise BadRequest(f"The operator of a full-text query must be And or Or, not {word[:40]}")
    return FullTextOperator(word)
