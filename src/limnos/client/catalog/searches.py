"""Calls that search objects of the client's metalake (own API).

May import this room. Paths start with the catalog.
"""

from __future__ import annotations

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.values import SearchResult


class Searches(Resource[S]):
    """Searches over all catalogs of the metalake."""

    __slots__ = ()

    @verb
    def find(self, question: str, *, limit: int = 50) -> Flow[SearchResult]:
        """Return the objects that meet a question and that the caller may load, best first, at most `limit`.

        A question is words and filters, as `flights kind:table tag:pii in:main.raw`.
        """
        return call("GET", self.own_url("search"), answer=SearchResult, query={"q": question, "limit": str(limit)})
