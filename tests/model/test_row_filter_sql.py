# SPDX-License-Identifier: Apache-2.0
"""Row filters are printed as SQL."""

from __future__ import annotations

import msgspec
import pytest

from limnos.formats.iceberg.offloaded import filter_read
from limnos.model.errors import BadRequest
from limnos.model.row_filter_sql import sql_of


@pytest.mark.parametrize(
    "text",
    [
        "region = 'EU'",
        "city = 'BERN' and (a < 3 or b in (1, 2))",
        "not (a = 1 and b = 2)",
        "c is not null and d like 'x%' or d not like 'it''s%'",
        "fare >= 1.5 and paid = true and c is nan",
        "b not in ('a', 'b') or c <> 7",
    ],
)
def test_filter_is_printed_as_sql_that_reads_as_the_same_filter(text: str) -> None:
    """The SQL of a stored filter, read again, is the same filter."""
    stored = filter_read(text.encode())

    assert filter_read(sql_of(msgspec.json.decode(stored[0])).encode()) == stored


@pytest.mark.parametrize(
    "text,cause",
    [
        ("upper(city) = 'BERN'", "functions, such as upper(), are not supported"),
        ('city = "BERN"', "a text is written in single quotes"),
        ("city is", "it cannot be read from 'city is' on"),
    ],
)
def test_error_of_a_filter_omits_the_grammar(text: str, cause: str) -> None:
    """A filter that cannot be read is refused with its cause in a short sentence, not with the parser's grammar."""
    with pytest.raises(BadRequest) as refused:
        filter_read(text.encode())

    assert cause in refused.value.message
    assert len(refused.value.message) < 400
    assert "W:(" not in refused.value.message
