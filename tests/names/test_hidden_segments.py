# SPDX-License-Identifier: Apache-2.0
"""Dot segments of paths, plain and hidden, and paths outside of a location."""

from __future__ import annotations

import pytest

from limnos.names.hidden_segments import has_dot_segments, has_foreign_path


@pytest.mark.parametrize(
    "path",
    [
        "/w/t/../u",
        "/w/t/./u",
        "s3://b/t/%2e%2e/u",
        "s3://b/t/.%2E/u",
        "file:///w/t/..%2fu",
        "file:///w/t/%252e%252e/u",
        "file:///w/t/..\\u",
        "file:///w/t/.\t./u",
        "file:///w/t/.%09./u",
        "file:///w/t/.. ",
        "file:///w/t/%" + "25" * 9 + "2e./u",
    ],
)
def test_dot_segment_is_found_behind_each_encoding(path: str) -> None:
    """A dot segment is found behind percent signs, backslashes, and characters that parsers of URLs remove."""
    assert has_dot_segments(path)


@pytest.mark.parametrize(
    "path", ["/w/t/a..b", "s3://b/t/...", "/w/t/100%", "/w/t/a%20b", "/w/t/x=%2Fe", "/w/.hidden/t", "/w/a. .b/t"]
)
def test_plain_names_have_no_dot_segment(path: str) -> None:
    """Dots within a name, and percent signs that hide nothing, are plain."""
    assert not has_dot_segments(path)


@pytest.mark.parametrize(
    "location, path, is_foreign",
    [
        ("file:///w/t", "/w/t", False),
        ("/w/t", "file:///w/t/tree/dev", False),
        ("/w/t", "file:/w/t/", False),
        ("s3://b/t", "s3://b/t/tree/dev", False),
        ("s3://b/t", "s3://b/t2", True),
        ("s3://b/t", "s3a://b/t", True),
        ("s3://b/t", "s3://b/t/%2e%2e/u", True),
        ("file:///w/t", "file:///w", True),
        ("file:///w/t", "file://host/w/t", True),
        ("file:///w/t", "s3://w/t", True),
        ("file:///w/t", "http://127.0.0.1/w/t", True),
    ],
)
def test_path_is_foreign_unless_it_is_below_the_location(location: str, path: str, *, is_foreign: bool) -> None:
    """A path is foreign unless it is the location or lies below it, in the same store."""
    assert has_foreign_path(location, [location, path]) is is_foreign
