# SPDX-License-Identifier: Apache-2.0
"""Flat signatures: names and types of a query's fields, and queries that have none."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import parse, tree
from limnos.rooms.sqlpp.language.binding import QueryBinding, ResolvedNames
from limnos.rooms.sqlpp.language.signatures import flat_signature


def signature(text: str) -> dict[str, str] | None:
    """Return names with their types."""
    (parsed,) = parse(text)
    assert isinstance(parsed.statement, tree.QueryStatement)
    bound = QueryBinding(body=parsed.statement.body, dataverse=("Default",), parameters={}, moment={}).bind(
        ResolvedNames({})
    )
    result = flat_signature(bound.expression)
    return None if result is None else dict(zip(result.names, result.types, strict=True))


@pytest.mark.parametrize(
    "text, fields",
    [
        (
            "select 1 a, 'x' b, true c, null d, [1] e, {'f': 1} f",
            {"a": "int64", "b": "string", "c": "boolean", "d": "null", "e": "array", "f": "object"},
        ),
        (
            "select int8(x) a, double(x) b, 'p' || string(x) c from [1] x",
            {"a": "int8?", "b": "double?", "c": "string?"},
        ),
        (
            "select year_month_duration('P1Y') a, get_day_time_duration(duration('P1D')) b",
            {"a": "year-month-duration?", "b": "day-time-duration?"},
        ),
        ("select count(*) n, max(x) m, avg(x) a from [1] x", {"n": "int64", "m": "any", "a": "double?"}),
        ("select y, y + 1 z from [1] x let y = bigint(x)", {"y": "int64?", "z": "int64?"}),
        ("select k, count(*) n from [1] x group by string(x) as k", {"k": "string?", "n": "int64"}),
        ("select case when x then 1 end a, case when x then 1 else 'b' end b from [1] x", {"a": "int64?", "b": "any"}),
        ("select x.f, x from [1] x", {"f": "any", "x": "any"}),
        ("select value {'a': 1, 'b': x is null} from [1] x", {"a": "int64", "b": "boolean"}),
        ("select 1 a union all select 2 a", {"a": "int64"}),
        ("select 1 a union all select null a", {"a": "int64?"}),
        ("select row_number() over (order by x) r from [1] x", {"r": "int64"}),
        (
            "select x, int8(x) a, string(x) b, date_from_unix_time_in_days(x) c, missing d from range(1, 2) x",
            {"x": "int64", "a": "int8", "b": "string", "c": "date", "d": "any"},
        ),
        (
            "select day_time_duration(duration_from_ms(x)) a, x + 1 b from range(1, 2) x",
            {"a": "day-time-duration", "b": "int64"},
        ),
        ("select x from [1] y left join range(1, 2) x on x = y", {"x": "any"}),
        ("select x from range(1, 2.5) x", {"x": "any"}),
        (
            (
                "select d.DatasetName n, d.DatasetId i, d.`Hints` h, d.ExternalDetails e, d.ViewDetails v from"
                " Metadata.`Dataset` d"
            ),
            {"n": "string", "i": "int32", "h": "multiset", "e": "object?", "v": "any"},
        ),
    ],
)
def test_fields_have_names_and_types(text: str, fields: dict[str, str]) -> None:
    """Fields have the order of the query; a type that is known only at run time is `any`."""
    result = signature(text)

    assert result == fields
    assert result is not None
    assert list(result) == list(fields)


@pytest.mark.parametrize(
    "text",
    [
        "select value 1",
        "1 + 1",
        "select x.* from [1] x",
        "select 1 a union all select 2 b",
        "select value {x: 1} from ['a'] x",
    ],
)
def test_results_without_known_fields_have_no_signature(text: str) -> None:
    """The signature is None if the fields are not known statically."""
    assert signature(text) is None
