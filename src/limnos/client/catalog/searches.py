# SPDX-License-Identifier: Apache-2.0
"""Calls that search objects of the client's metalake (own API).

Paths start with the catalog.
"""

from __future__ import annotations

import msgspec

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.values import Parts


class SearchMatch(msgspec.Struct, frozen=True):
    """The part of an object that matched a search: `where` is `name`, `path`, `id`, `column`, `comment` or `filter`."""

    where: str
    text: str


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """An object that matches a search. Hits of a lower `tier` are better. `changed_at` is an ISO 8601 string in UTC."""

    id: int
    kind: str
    path: Parts
    tier: int
    matched: tuple[SearchMatch, ...] = ()
    format: str | None = None
    changed_at: str | None = None


class SearchFacet(msgspec.Struct, frozen=True):
    """A filter, as `kind` and `table`, and the number of hits that pass it."""

    key: str
    value: str
    count: int


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The hits of a search, best first.

    `more`: further hits exist. `bounded`: the server examined only the first few thousand candidates. `behind`: the
    count of changes that are not indexed yet. `meant`: suggested queries, each with one corrected word and at least one
    hit. `facets`: counts of the first 200 hits, if requested.
    """

    hits: tuple[SearchHit, ...]
    more: bool = False
    bounded: bool = False
    behind: int = 0
    meant: tuple[str, ...] = ()
    facets: tuple[SearchFacet, ...] = ()


class Searches(Resource[S]):
    """Calls that search the objects of all catalogs of the metalake."""

    @verb
    def find(self, question: str, *, limit: int = 50, facets: bool = False) -> Flow[SearchResult]:
        """Return the objects that match a query and that the caller may load, best first, at most `limit`.

        A query consists of words and filters, such as `flights kind:table tag:pii in:main.raw`. With `facets` the
        first 200 hits are counted by kind, catalog and format.
        """
        query = {"q": question, "limit": str(limit), "facets": "true" if facets else None}
        return call("GET", self.own_url("search"), answer=SearchResult, query=query)
