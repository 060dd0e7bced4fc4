# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of views: the query that Spark reads, and the columns of the current version."""

from __future__ import annotations

import json

import msgspec
import pytest

from limnos.formats.iceberg.view_fingerprints import metadata_fingerprint, view_fingerprint


def body(*queries: tuple[str, str], columns: tuple[str, ...] = ("a", "b")) -> bytes:
    """Return the metadata of a view whose second version has these queries by dialect, and these columns."""
    representations = [{"type": "sql", "dialect": dialect, "sql": sql} for dialect, sql in queries]
    return json.dumps(
        {
            "view-uuid": "1",
            "current-version-id": 2,
            "versions": [
                {"version-id": 1, "schema-id": 0, "representations": [{"sql": "SELECT 0", "dialect": "spark"}]},
                {"version-id": 2, "schema-id": 1, "representations": representations},
            ],
            "schemas": [
                {"schema-id": 0, "fields": [{"id": 1, "name": "z"}]},
                {"schema-id": 1, "fields": [{"id": 1, "name": name} for name in columns]},
            ],
        }
    ).encode()


def test_fingerprint_has_query_of_spark_and_columns() -> None:
    """The query is that of Spark's dialect in any case, else the first one; blanks around it do not count."""
    expected = view_fingerprint("SELECT 1, 2", ["a", "b"])

    assert metadata_fingerprint(body(("trino", "SELECT 3"), ("SPARK", "SELECT 1, 2\n"))) == expected
    assert metadata_fingerprint(body(("trino", " SELECT 1, 2"), ("duckdb", "SELECT 3"))) == expected
    assert metadata_fingerprint(body(("spark", "SELECT 1, 2"), columns=("a", "c"))) != expected
    assert metadata_fingerprint(body(("spark", "SELECT 1, 3"))) != expected


def test_views_without_query_have_no_fingerprint() -> None:
    """A version without a query has none, and another document is an error."""
    assert metadata_fingerprint(body()) is None
    with pytest.raises(msgspec.ValidationError):
        metadata_fingerprint(b'{"format-version": 2}')
