# SPDX-License-Identifier: Apache-2.0
"""The demo's check of search answers."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import PermissionDeniedError
from lance_namespace_urllib3_client.models.query_table_request import QueryTableRequest
from lance_namespace_urllib3_client.models.query_table_response import QueryTableResponse

from examples.demo import search
from examples.demo.access import AccessAnswer


class SearchableNamespace:
    """A namespace that answers searches with names, or refuses without a prepared name."""

    def __init__(self, near: str | None, word: str | None) -> None:
        self.near = near
        self.word = word

    def query_table(self, query: QueryTableRequest) -> QueryTableResponse:
        """Return an Arrow file, as the server does."""
        name = self.near if query.full_text_query is None else self.word
        if name is None:
            raise PermissionDeniedError("needs SELECT_TABLE on lance.nyc.airports")
        sink = pa.BufferOutputStream()
        table = pa.table({"name": pa.array([name] if name else [], pa.string())})
        with pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
        return QueryTableResponse(data=sink.getvalue().to_pybytes())


def searched(near: str | None, word: str | None) -> AccessAnswer:
    """Return the search results of ana."""
    return search._search(cast("LanceNamespace", SearchableNamespace(near, word)), [0.0, 1.0])


def test_expected_search_results_are_accepted() -> None:
    """A misspelled name finds the right one, a word finds the name with it; a user who is refused both searches is
    reported as refused.
    """
    assert searched(search.MEANT, search.NAMED).allowed
    assert searched(None, None) == AccessAnswer(allowed=False, text="needs SELECT_TABLE on lance.nyc.airports")


@pytest.mark.parametrize(
    "near, word", [(search.NAMED, search.NAMED), (search.MEANT, ""), (search.MEANT, None), (None, search.NAMED)]
)
def test_unexpected_search_results_fail_demo(near: str | None, word: str | None) -> None:
    """Another name, no name, or only one refused search fails the demo."""
    with pytest.raises(search.SearchCheckFailed, match=search.MEANT):
        searched(near, word)
