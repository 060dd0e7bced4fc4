# SPDX-License-Identifier: Apache-2.0
"""Facets: counts of a search's hits by kind, catalog and format.

Pure. Facets count only hits, which the caller may load, so they reveal no hidden objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from limnos.model.kinds import Kind, ZoneKind

FACETS_OF: Final = 200
"""The maximum number of hits that facets count."""


class SearchFacet(NamedTuple):
    """A value of a filter (`kind`, `in` or `format`), and the number of hits that have it."""

    key: str
    value: str
    hits: int


def facets_of(results: Iterable[tuple[Kind, tuple[str, ...], str]]) -> list[SearchFacet]:
    """Return the facets of hits, each given by its kind, path and format; for each key the most frequent value
    first.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for kind, path, table_format in results:
        counts["kind", kind.word] += 1
        if kind.home is ZoneKind.CATALOG and len(path) > 1:
            counts["in", path[0]] += 1
        if table_format:
            counts["format", table_format] += 1
    keys = ("kind", "in", "format")
    facets = [SearchFacet(key, value, hits) for (key, value), hits in counts.items()]
    return sorted(facets, key=lambda each: (keys.index(each.key), -each.hits, each.value))
