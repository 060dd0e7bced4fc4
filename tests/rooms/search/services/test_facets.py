# SPDX-License-Identifier: Apache-2.0
"""Facets: counts of hits by kind, catalog and format."""

from __future__ import annotations

from limnos.model.kinds import Kind
from limnos.rooms.search.services.facets import facets_of


def test_hits_are_counted_by_kind_catalog_and_format() -> None:
    """The most frequent value of each filter comes first. Catalogs and tags themselves do not count towards a catalog's
    facet.
    """
    hits = [
        (Kind.TABLE, ("main", "a", "t"), "iceberg"),
        (Kind.TABLE, ("other", "a", "t"), "lance"),
        (Kind.TABLE, ("other", "a", "u"), "lance"),
        (Kind.CATALOG, ("main",), ""),
        (Kind.TAG, ("pii",), ""),
    ]

    assert [tuple(each) for each in facets_of(hits)] == [
        ("kind", "table", 3),
        ("kind", "catalog", 1),
        ("kind", "tag", 1),
        ("in", "other", 2),
        ("in", "main", 1),
        ("format", "lance", 2),
        ("format", "iceberg", 1),
    ]
    assert facets_of([]) == []
