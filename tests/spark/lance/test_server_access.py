# SPDX-License-Identifier: Apache-2.0
"""Options of a read or a write."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.spark.lance.server_access import LanceOptions, ServerAccess, lance_options_of


def test_option_names_are_case_insensitive() -> None:
    """Option names are case-insensitive, because Spark passes them in lower case; names with commas are written as
    JSON.
    """
    options = lance_options_of(
        {"PATH": "lance.`m l`.docs", "columns": "id, text", "version": "3", "vectors": "a=2, b=256"}
    )

    assert options == LanceOptions(
        path=("lance", "m l", "docs"), columns=("id", "text"), version=3, tag=None, vectors=(("a", 2), ("b", 256))
    )
    assert lance_options_of({"path": "lance.docs", "columns": '["a,b"]', "tag": "golden"}) == LanceOptions(
        path=("lance", "docs"), columns=("a,b",), version=None, tag="golden"
    )


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, "Name a table"),
        ({"path": "lance"}, "Name a table"),
        ({"path": "lance.t", "colums": "a"}, "no option colums: the options are columns"),
        ({"path": "lance.t", "version": "latest"}, "version must be a number"),
        ({"path": "lance.t", "columns": "[1]"}, "not a list of names"),
        ({"path": "lance.t", "vectors": "embedding"}, "must give the dimension"),
        ({"path": "lance.t", "vectors": "embedding=0"}, "must give the dimension"),
    ],
)
def test_wrong_option_error_names_the_correction(options: dict[str, str], words: str) -> None:
    """The error for a wrong option says what to write."""
    with pytest.raises(BadRequest, match=words):
        lance_options_of(options)


def test_printed_source_has_no_secret() -> None:
    """The printed form of a source has no secret."""
    assert "lim_" not in repr(ServerAccess(uri="http://x", metalake="lake", token="lim_1_secret"))
